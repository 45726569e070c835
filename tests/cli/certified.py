#!/usr/bin/env python3
"""Certificates of plans of models: certified.py SPLIT CHECKER [MODEL...]

The certificate and the bare problem that onnx-pipeline-split writes hold to the checker, on devices
of every kind; of another problem they are refused. TAP. With models: a table, one line each, of
sizes and times at 16 stages instead."""
import json
import os
import subprocess
import sys
import tempfile

from bad_input import OK, USAGE, Tap, chain, model

CHECK = None


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def checked(certificate):
    return run(sys.executable, CHECK, certificate + ".problem.json", certificate)


def branches(n):
    """x -> n branches of two MatMuls, read by a sum: one tensor goes to many stages."""
    nodes, weights, ends = ["[make_s] s = Relu (x)"], [], []
    for i in range(n):
        nodes += ["[a%d] a%d = MatMul (s, w%d)" % (i, i, i), "[b%d] b%d = MatMul (a%d, v%d)" %
                  (i, i, i, i)]
        weights += ["float[64,64] w%d = random(%d)" % (i, i), "float[64,64] v%d = random(%d)" %
                    (i, 50 + i)]
        ends.append("b%d" % i)
    nodes.append("[make_y] y = Sum (%s)" % ", ".join(ends))
    return model("(float[64,64] x) => (float[64,64] y) <%s> {\n%s\n}" %
                 (", ".join(weights), "\n".join(nodes)))


def residual(n):
    """n blocks of a residual run: where it is cut, layouts cost."""
    nodes = ["[c] v0 = Conv (x, w)"]
    for i in range(1, n + 1):
        nodes.append("[c%d] a%d = Conv (v%d, w) [s%d] s%d = Add (a%d, v%d) [r%d] v%d = Relu (s%d)" %
                     (i, i, i - 1, i, i, i, i - 1, i, i, i))
    return model("(float[1,64,16,16] x) => (float[1,64,16,16] v%d)"
                 " <float[64,64,1,1] w = random(1)> {\n%s\n}" % (n, "\n".join(nodes)))


def skips(n, far):
    """A row of MatMuls, each with a sum that reads what stands so far in front."""
    nodes, last = [], "x"
    for i in range(n):
        nodes.append("[m%d] m%d = MatMul (%s, w%d)" % (i, i, last, i))
        last = "m%d" % i
        if i >= far:
            nodes.append("[s%d] s%d = Add (m%d, m%d)" % (i, i, i, i - far))
            last = "s%d" % i
    return model("(float[64,64] x) => (float[64,64] %s) <%s> {\n%s\n}" % (
        last, ", ".join("float[64,64] w%d = random(%d)" % (i, i) for i in range(n)), "\n".join(nodes)))


def write(name, content):
    with open(name, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content if isinstance(content, bytes) else json.dumps(content))
    return name


def readable(tap):
    """d.problem.json and d are a problem and its certificate: what is no file, or too long, is told by its name."""
    os.mkfifo("fifo")
    with open("long", "w") as file:
        file.truncate((64 << 20) + 1)
    write("deep", b"[" * 200000)
    write("odd", b'{"format": "psplit-problem", "nodes": [{"id": 0, "time_ns": [1e999]}]}')
    for name, names, why in (
            ("a FIFO for a problem", ("fifo", "d"), "error: fifo: ValueError: it is not a regular file"),
            ("a FIFO for a certificate", ("d.problem.json", "fifo"), "error: fifo: ValueError: it is not a regular file"),
            ("a device", ("d.problem.json", "/dev/zero"), "error: /dev/zero: ValueError: it is not a regular file"),
            ("a directory", (".", "d"), "error: .: "),
            ("a certificate too long", ("d.problem.json", "long"),
             "error: long: ValueError: it has more than 67108864 bytes; the limit is lifted by --max-text MIB"),
            ("a problem too long", ("--max-text", "1", "long", "d"),
             "error: long: ValueError: it has more than 1048576 bytes"),
            ("no certificate", ("d.problem.json", "none"), "error: none: FileNotFoundError"),
            ("brackets without end", ("deep", "d"), "error: deep: "),
            ("no problem", ("odd", "d"), "error: odd: ")):
        done = run(sys.executable, CHECK, *names)
        tap.ok(done.returncode == 3 and done.stderr.startswith(why) and done.stderr.count("\n") == 1,
               name + " cannot be read", "%d %s" % (done.returncode, done.stderr))
    done = run(sys.executable, CHECK, "--max-text", "65", "d.problem.json", "long")
    tap.ok(done.returncode == 1 and "refused: long:0" in done.stderr, "a limit that is lifted", done.stderr)
    for mebibytes in ("0", "x", "-1"):
        done = run(sys.executable, CHECK, "--max-text", mebibytes, "d.problem.json", "d")
        tap.ok(done.returncode == USAGE, "no number of MiB: " + mebibytes, done.stderr)


def small(tap, split):
    write("chain.onnx", chain(12, 64))
    write("branches.onnx", branches(5))
    write("residual.onnx", residual(6))
    write("skips.onnx", skips(8, 3))
    place = [{"name": "a", "preset": "cpu"}, {"name": "b", "preset": "cpu", "host": "h2"},
             {"name": "c", "preset": "cpu"}]
    link = {"bytes_per_second": 2.5e10, "latency_ns": 1000}
    missing = [dict(link, bytes_per_second=0, **{"from": "a", "to": "c"})]
    hosts = write("hosts.json", {"devices": place, "topology": {
        "same_host": link, "anywhere": dict(link, latency_ns=20000)}})
    relays = write("relays.json", {"devices": place, "links": missing + [
        dict(link, **{"from": x, "to": "b"}) for x in "ac"]})
    for name, arguments in (
            ("a chain", ("chain.onnx", "-k", "3")), ("branches", ("branches.onnx", "-k", "4")),
            ("latency", ("branches.onnx", "-k", "3", "--objective", "latency")),
            ("layouts", ("residual.onnx", "-k", "3")),
            ("layouts, on two hosts", ("residual.onnx", "-k", "3", "--devices", hosts)),
            ("layouts, latency", ("residual.onnx", "-k", "2", "--objective", "latency")),
            ("one stage", ("chain.onnx", "-k", "1")),
            ("as many as there are nodes", ("chain.onnx", "-k", "24")),
            ("two hosts", ("branches.onnx", "-k", "3", "--devices", hosts)),
            ("a link that is missing", ("branches.onnx", "-k", "3", "--devices", relays))):
        made = run(split, *arguments, "--plan-only", "--json", "--certificate", "c")
        plan = json.loads(made.stdout)["plan"] if made.returncode == OK else {}
        done = checked("c")
        tap.ok(made.returncode == OK and done.returncode == 0 and "holds" in done.stdout, name,
               made.stderr + done.stdout + done.stderr)
        if name.startswith("layouts"):
            paid = [stage["layout_ns"] for stage in json.loads(made.stdout)["stages"]]
            tap.ok(sum(paid) > 0, name + ": what cuts cost is in the plan", paid)
        said = "not certified" in made.stderr
        tap.ok(said or "bound %d " % plan.get("lower_bound_ns", -1) in done.stdout,
               name + ": it is the plan's bound, or a warning says that it is less", done.stdout)
    made = run(split, "skips.onnx", "-k", "5", "--plan-only", "--json", "--slack", "0", "--certificate", "c")
    plan, done = json.loads(made.stdout)["plan"], checked("c")
    tap.ok("bound %d " % plan["lower_bound_ns"] in done.stdout and "whatever way tensors go" in done.stdout and
           "optimal: the split has the value %d " % plan["bottleneck_ns"] in done.stdout and made.stderr == "",
           "what stages pass on", made.stderr + done.stdout + done.stderr)
    with open("c") as file:
        tap.ok(any(line.startswith("way ") for line in file), "some tensors are passed on")
    run(split, "chain.onnx", "-k", "3", "--plan-only", "-q", "--certificate", "d")
    done = run(sys.executable, CHECK, "d.problem.json", "c")
    tap.ok(done.returncode == 1 and "c:2: of another problem" in done.stderr,
           "the certificate of another model is refused", done.stderr)
    done = run(split, "chain.onnx", "-k", "2", "-o", "out", "-q", "--certificate", "e")
    tap.ok(done.returncode == OK and os.path.exists("out/pipeline.json") and
           checked("e").returncode == 0, "beside the stages", done.stderr)
    readable(tap)
    before = open("d.problem.json", "rb").read(), open("d", "rb").read()
    run(split, "chain.onnx", "-k", "3", "--plan-only", "-q", "--threads", "1", "--certificate", "d")
    tap.ok(before == (open("d.problem.json", "rb").read(), open("d", "rb").read()),
           "the same bytes with one thread")
    for name, arguments in (("a range of stages", ("-k", "2..3", "--plan-only")),
                            ("standard output", ("-k", "2", "--plan-only", "--certificate", "-"))):
        done = run(split, "chain.onnx", "--certificate", "f", *arguments)
        tap.ok(done.returncode == USAGE and done.stderr.startswith("error: ") and
               not os.path.exists("f"), name + " is refused", done.stderr)


def cpu_seconds():
    """Of all programs that have ended."""
    return sum(os.times()[2:4])


def real(split, models):
    print("CPU seconds: without a certificate, with one, to check it")
    print("%-32s %9s %9s %9s %9s  %s" % ("model", "solve", "certify", "check", "bytes", "what"))
    for path in models:
        plain = (split, path, "-k", "16", "--plan-only", "-q")
        times = [cpu_seconds()]
        made = run(*plain)
        times.append(cpu_seconds())
        made = run(*plain, "--certificate", "c")
        times.append(cpu_seconds())
        done = checked("c") if made.returncode == OK else made
        times.append(cpu_seconds())
        lines = done.stdout.splitlines()
        print("%-32s %9.2f %9.2f %9.2f %9d  %s" % (
            os.path.basename(path), times[1] - times[0], times[2] - times[1], times[3] - times[2],
            os.path.getsize("c") if made.returncode == OK else 0,
            "; ".join(lines[1:]) or done.stderr.strip().splitlines()[-1]), flush=True)


def main():
    global CHECK
    split, CHECK = (os.path.abspath(name) for name in sys.argv[1:3])
    models = [os.path.abspath(name) for name in sys.argv[3:]]
    tap = Tap()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        if models:
            real(split, models)
            return 0
        small(tap, split)
    return tap.end()


sys.exit(main())
