#!/usr/bin/env python3
"""Inputs that are no regular files, or too large: inputs.py SPLIT INSPECT VERIFY PLAN LEARN [RUN]

Every JSON or text file that a command reads. A FIFO is not waited for, a device not read without
end, and memory has a limit that an option lifts: one error line, soon, and nothing left behind.
TAP; the models are those of bad_input.py.
"""
import gzip
import io
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile

from bad_input import FILE, LIMIT, MALFORMED, OK, USAGE, Tap, chain, listing

DEVICES = {"devices": [{"name": "a", "preset": "cpu"}, {"name": "b", "preset": "cpu"}]}
PINS = "# where it begins\nmake_m0=0\n"
COSTS = {"format": "onnx-pipeline-split-costs", "version": 1,
         "costs": [{"outputs": ["m0"], "ns": 1000}]}
PATTERNS = "pattern mine\n  a = MatMul(x, w)\n  b = Relu(a)\n"
PROBLEM = {"format": "psplit-problem", "version": 1, "devices": [{"count": 2}],
           "nodes": [{"id": i, "time_ns": 5} for i in range(4)],
           "tensors": [{"producer": i, "consumers": [i + 1], "bytes": 8} for i in range(3)]}

FEW_STEPS = ["-o", "policy", "-q", "--warm-steps", "1", "--steps", "0", "--schedule-steps", "0",
             "--solve", "0"]


def bounded():
    """2 GiB of addresses: less than a device without end would take, and than a hostile tree."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


class Inputs:
    def __init__(self, tap, cwd, limited):
        self.tap, self.cwd, self.limited = tap, cwd, limited

    def each(self, title, status, says, command, stdin=subprocess.DEVNULL, **more):
        before = listing(self.cwd)
        try:
            done = subprocess.run(command, cwd=self.cwd, capture_output=True, text=True, timeout=120,
                                  stdin=None if "input" in more else stdin,
                                  preexec_fn=bounded if self.limited else None, **more)
        except subprocess.TimeoutExpired:
            self.tap.ok(False, title, "it does not end")
            return
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        left = set(listing(self.cwd)) ^ set(before)
        self.tap.ok(done.returncode == status and len(lines) == (status != OK)
                    and says in done.stderr and (status == OK or not left), title,
                    "status %d\n%s%s" % (done.returncode, done.stderr, left or ""))


def write(path, content):
    with open(path, "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def readers(tools):
    """(title, what it reads, the command around the file's name, whether - is standard input)."""
    split, inspect, verify, plan, learn, run = tools
    passes = "infer-shapes,cost,mark,attach,fuse:patterns=%s,coarsen,partition"
    found = [("split --devices", DEVICES, lambda f: [split, "m.onnx", "--plan-only", "-q",
                                                     "--devices", f], True),
             ("split --costs", COSTS, lambda f: [split, "m.onnx", "-k", "2", "--plan-only", "-q",
                                                 "--costs", f], True),
             ("split --pins", PINS, lambda f: [split, "m.onnx", "-k", "2", "--plan-only", "-q", "--pins", f],
              True),
             ("split, patterns", PATTERNS, lambda f: [split, "m.onnx", "-k", "2", "--plan-only",
                                                      "-q", "--passes", passes % f], False),
             ("inspect --devices", DEVICES, lambda f: [inspect, "m.onnx", "-q", "--devices", f],
              True),
             ("inspect --costs", COSTS, lambda f: [inspect, "m.onnx", "-q", "--costs", f], True),
             ("inspect --pins", PINS, lambda f: [inspect, "m.onnx", "-k", "2", "-q", "--pins", f], True),
             ("plan", PROBLEM, lambda f: [plan, f], True),
             ("learn", PROBLEM, lambda f: [learn, f, *FEW_STEPS], False),
             ("learn --devices", DEVICES, lambda f: [learn, "m.onnx", *FEW_STEPS, "--devices", f], True),
             ("learn --costs", COSTS, lambda f: [learn, "m.onnx", "-k", "2", *FEW_STEPS, "--costs", f],
              True)]
    if run:
        found.append(("run --devices", DEVICES, lambda f: [run, "out", "--random", "--devices", f],
                      False))
    return found


def not_regular(s, title, command, reads_stdin):
    for kind, path, says in (("a FIFO", "fifo", "is a pipe"), ("a link to a FIFO", "link", "is a pipe"),
                             ("a directory", "directory", "is a directory"),
                             ("/dev/zero", "/dev/zero", "is a device"),
                             ("a socket", "socket", ""), ("nothing", "nothing.json", "No such file"),
                             ("a pipe by its name", "/dev/stdin", "is a pipe")):
        if title == "learn" and path == "directory":  # of problems: it may be one
            continue
        pipe = {"input": ""} if path == "/dev/stdin" else {}
        s.each("%s: %s" % (title, kind), FILE, says, command(path), **pipe)
    if not reads_stdin:
        s.each("%s: - is a file's name" % title, FILE, "-: cannot be read", command("-"), input="{}")


def foreign(s, title, status, text, path, command):
    """Text in another encoding, packed, or in place of which something else came."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x", text)
    for kind, made, says in (
            ("UTF-16", text.encode("utf-16"), "it is UTF-16 text; save it as UTF-8"),
            ("UTF-16, big end first", b"\xfe\xff" + text.encode("utf-16-be"), "it is UTF-16 text"),
            ("UTF-16 without a mark", text.encode("utf-16-le"), "it is UTF-16 text"),
            ("UTF-32", text.encode("utf-32"), "it is UTF-32 text"),
            ("a byte order mark", text.encode("utf-8-sig"), "it is text behind a byte order mark"),
            ("gzip", gzip.compress(text.encode()), "it is compressed by gzip; gunzip it first"),
            ("a ZIP archive", packed.getvalue(), "it is a ZIP archive; unpack it first"),
            ("a web page", b"\n<!DOCTYPE HTML>\n<html>", "it is a web page"),
            ("NULs", b"\0" * len(text), "it is NUL bytes")):
        with open(path, "wb") as file:
            file.write(made)
        s.each("%s: %s" % (title, kind), status, says, command)


def too_large(s, title, content, command, what):
    """One byte over 64 MiB, as a file with a hole; and as much JSON as fits into less."""
    text = content if isinstance(content, str) else json.dumps(content)
    path = os.path.join(s.cwd, "large")
    write(path, text)
    with open(path, "r+b") as file:
        file.truncate((64 << 20) + 1)
    s.each("%s: larger than 64 MiB" % title, LIMIT, "large: has more than 67108864 bytes; the limit is "
           "lifted by --max-text", command("large"))
    with open(path, "r+b") as file:
        file.write(b"\x08\x08\x12\x07pytorch")
    s.each("%s: a large model" % title, MALFORMED, "is an ONNX model", command("large"))
    if what == "json":
        with open(path, "w") as file:
            file.write(" " * (64 << 20) + text)
        s.each("%s: the limit lifted" % title, OK, "", [*command("large"), "--max-text", "65"])
        write(path, "[" + "{}," * (5 << 20) + "1]")
        s.each("%s: 5 million values" % title, LIMIT, "values", command("large"))
    os.unlink(path)
    for bad in ("0", "-1", "x", ""):
        if what == "json":
            s.each("%s --max-text %r" % (title, bad), USAGE, "max-text",
                   [*command("large"), "--max-text", bad])


def manifests(s, tools):
    """pipeline.json, of every command that reads a split."""
    split, _, verify, _, _, run = tools
    manifest = os.path.join(s.cwd, "out/pipeline.json")
    text = open(manifest).read()
    commands = [("verify", [verify, "out", "--model", "m.onnx"])]
    if run:
        commands.append(("run", [run, "out", "--random"]))
    for title, command in commands:
        for kind, make, status, says in (
                ("a FIFO", lambda: os.mkfifo(manifest), FILE, "pipeline.json: cannot be read: it is a pipe"),
                ("a directory", lambda: os.mkdir(manifest), FILE, "it is a directory"),
                ("/dev/zero", lambda: os.symlink("/dev/zero", manifest), FILE, "it is a device"),
                ("too large", lambda: os.truncate(write(manifest, text), (64 << 20) + 1), LIMIT,
                 "--max-text"),
                ("5 million values", lambda: write(manifest, "[" + "{}," * (5 << 20) + "1]") and None,
                 LIMIT, "values"),
                ("not JSON", lambda: write(manifest, "x") and None, MALFORMED, "pipeline.json:1")):
            os.rename(manifest, manifest + ".kept")
            make()
            s.each("%s: pipeline.json is %s" % (title, kind), status, says, command)
            os.rmdir(manifest) if os.path.isdir(manifest) else os.unlink(manifest)
            os.rename(manifest + ".kept", manifest)
    foreign(s, "verify: pipeline.json", MALFORMED, text, manifest, commands[0][1])
    with open(manifest, "w") as file:
        file.write(text + " " * (64 << 20))
    s.each("verify: the limit lifted", OK, "", [*commands[0][1], "--max-text", "66"])
    if run: # which then looks for ONNX Runtime
        s.each("run: the limit lifted", FILE, "no-such.so",
               [*commands[1][1], "--max-text", "66", "--onnxruntime", "/no-such.so"])
    write(manifest, text)


def standard_input(s, tools):
    split, _, _, plan, learn, _ = tools
    devices, costs = json.dumps(DEVICES), json.dumps(COSTS)
    s.each("plan -", OK, "", [plan, "-"], input=json.dumps(PROBLEM))
    s.each("plan -, not JSON", MALFORMED, "standard input:1", [plan, "-"], input="x")
    s.each("--devices -", OK, "", [split, "m.onnx", "--plan-only", "--devices", "-"], input=devices)
    s.each("--devices -, a range of stages", OK, "",
           [split, "m.onnx", "-k", "1..2", "--plan-only", "--devices", "-"], input=devices)
    s.each("--costs -", OK, "", [split, "m.onnx", "-k", "2", "--plan-only", "--costs", "-"],
           input=costs)
    s.each("learn --devices -", OK, "", [learn, "m.onnx", *FEW_STEPS, "--devices", "-"], input=devices)
    s.each("--devices - --costs -", USAGE, "standard input",
           [split, "m.onnx", "--plan-only", "--devices", "-", "--costs", "-"], input=devices)
    s.each("--devices -, with a rule", OK, "",
           [split, "m.onnx", "-q", "--devices", "-", "-o", "ruled", "--depfile", "d.d"], input=devices)
    s.each("--pins -", OK, "", [split, "m.onnx", "-k", "2", "--plan-only", "--pins", "-"], input=PINS)
    s.each("--pins - --costs -", USAGE, "standard input",
           [split, "m.onnx", "-k", "2", "--plan-only", "--pins", "-", "--costs", "-"], input=PINS)
    rule = open(os.path.join(s.cwd, "d.d")).read()
    s.tap.ok(rule == "ruled/pipeline.json: \\\n  m.onnx\n", "the rule has no -", rule)


def main(argv):
    if len(argv) not in (6, 7):
        sys.exit("usage: inputs.py SPLIT INSPECT VERIFY PLAN LEARN [RUN]")
    limited = not os.environ.get("PSPLIT_UNLIMITED")
    tools = [*map(os.path.abspath, argv[1:]), None][:6]
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-inputs-"))
    s = Inputs(Tap(), cwd, limited)
    try:
        os.chdir(cwd)
        with open("m.onnx", "wb") as file:
            file.write(chain(6))
        os.mkfifo("fifo")
        os.symlink("fifo", "link")
        os.mkdir("directory")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
            s.each("a split to go on with", OK, "",
                   [tools[0], "m.onnx", "-q", "-k", "2", "-o", "out"])
            for title, content, command, reads_stdin in readers(tools):
                kind = "text" if isinstance(content, str) else "json"
                write("right", content)
                if "run" not in title:  # that needs ONNX Runtime
                    s.each(title + ": a file", OK, "", command("right"))
                not_regular(s, title, command, reads_stdin)
                if not title.startswith("inspect"):  # which reads as split does
                    foreign(s, title, USAGE if kind == "text" else MALFORMED,
                            content if kind == "text" else json.dumps(content), "foreign",
                            command("foreign"))
                too_large(s, title, content, command, "run" if "run" in title else kind)
        manifests(s, tools)
        standard_input(s, tools)
    finally:
        os.chdir("/")
        shutil.rmtree(cwd, ignore_errors=True)
    print("1..%d" % s.tap.count)
    return s.tap.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
