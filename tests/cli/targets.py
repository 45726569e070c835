#!/usr/bin/env python3
"""Files of --target triton and k8s: targets.py GOLDEN SPLIT VERIFY [--bless]

What is written is what stands in the directory GOLDEN. The script of the one lays out a repository in
which every model stands with its files, and whose ensemble gives each step what it takes: the names
and sizes are those of pipeline.json. TAP; --bless writes GOLDEN anew.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from bad_input import OK, UNSUPPORTED, USAGE, Tap, model

MODEL = """(float[batch,8] x, bool[?] mask, float scale) => (float[batch,8] a, float[batch,8] y)
  <float[8,8] w = random(1), float[8,8] v = random(2)> {
    [n0] a = MatMul (x, w)
    [n1] b = Relu (a)
    [n2] c = Mul (b, scale)
    [n3] d = MatMul (c, v)
    [n4] e = Add (d, a)
    [n5] f = Where (mask, e, x)
    [n6] y = Tanh (f)
  }"""
DEVICES = {"devices": [
    {"name": "gpu", "preset": "cpu", "session": {"provider": "CUDA", "provider_options": {"device_id": 1}}},
    {"name": "cpu0", "preset": "cpu", "session": {"threads": 2}}, {"name": "cpu1", "preset": "cpu"}]}
PINS = [option for i, stage in enumerate((0, 0, 1, 1, 1, 2, 2)) for option in ("--pin", "n%d=%d" % (i, stage))]


def parse(text):
    """Text of protocol buffers as [(key, value)]; what is no field is an error."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|-?\d+|[][{}:,]', text)
    at = 0

    def message(end):
        nonlocal at
        fields = []
        while at < len(tokens) and tokens[at] != end:
            key = tokens[at]
            assert re.match(r"[a-z_]+$", key), key
            at += 1
            if tokens[at] == ":":
                at += 1
            fields += [(key, value) for value in values()]
            if at < len(tokens) and tokens[at] == ",":
                at += 1
        at += 1
        return fields

    def values():
        nonlocal at
        token = tokens[at]
        at += 1
        if token == "{":
            return [message("}")]
        if token != "[":
            return [json.loads(token) if token[0] == '"' else token]
        found = []
        while tokens[at] != "]":
            found += values()
            if tokens[at] == ",":
                at += 1
        at += 1
        return found

    return message(None)


def all_of(fields, key):
    return [value for name, value in fields if name == key]


def one(fields, key):
    (value,) = all_of(fields, key)
    return value


def check_repository(tap, where, manifest):
    configs = {}
    for name in sorted(os.listdir(where)):
        with open(os.path.join(where, name, "config.pbtxt"), encoding="utf-8") as file:
            configs[name] = parse(file.read())
        tap.ok(one(configs[name], "name") == name and os.path.isdir(os.path.join(where, name, "1")),
               "triton: " + name)
    ensemble = configs["m"]
    known = {one(port, "name") for port in all_of(ensemble, "input")}
    sizes = {}
    for stage, step in zip(manifest["stages"], all_of(one(ensemble, "ensemble_scheduling"), "step")):
        config = configs[one(step, "model_name")]
        file = one(config, "default_model_filename")
        tap.ok(file == stage["file"] and os.path.exists(
            os.path.join(where, one(config, "name"), "1", file)), "its file: " + file)
        for key, ports in (("input", stage["inputs"]), ("output", stage["outputs"])):
            names = [one(port, "name") for port in all_of(config, key)]
            mapped = {one(each, "key"): one(each, "value") for each in all_of(step, key + "_map")}
            tap.ok(names == [port["name"] for port in ports] == list(mapped),
                   "its %ss are those of the manifest" % key, "%s %s" % (names, mapped))
            for port in all_of(config, key):
                tensor, size = mapped[one(port, "name")], (all_of(port, "dims"), one(port, "data_type"))
                tap.ok(sizes.setdefault(tensor, size) == size, "one size of " + tensor, str(size))
            if key == "input":
                tap.ok(set(mapped.values()) <= known, "what it takes is there", str(mapped))
            else:
                tap.ok(not set(mapped.values()) & known, "nothing is given twice", str(mapped))
                known |= set(mapped.values())
    tap.ok({one(port, "name") for port in all_of(ensemble, "output")} <= known, "the outputs are given")
    groups = [one(one(configs["m_stage%d" % s], "instance_group"), "kind") for s in range(3)]
    tap.ok(groups == ["KIND_GPU", "KIND_CPU", "KIND_CPU"]
           and one(one(configs["m_stage0"], "instance_group"), "gpus") == "1", "on its device", str(groups))


def main(argv):
    golden, split, verify = map(os.path.abspath, argv[1:4])
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-targets-"))
    tap = Tap()

    def run(*command):
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)

    try:
        with open(os.path.join(cwd, "m.onnx"), "wb") as file:
            file.write(model(MODEL))
        with open(os.path.join(cwd, "devices.json"), "w") as file:
            json.dump(DEVICES, file)
        options = ("-q", "--dim", "batch=4", "--devices", "devices.json", *PINS)
        for target, name in (("triton", "triton.sh"), ("k8s", "mpijob.yaml")):
            for boundary in ("sendrecv", "io"):
                out = target + "-" + boundary
                done = run(split, "m.onnx", *options, "--target", target, "-o", out, "--boundary", boundary)
                tap.ok(done.returncode == OK, out, done.stderr)
                with open(os.path.join(cwd, out, name), encoding="utf-8") as file:
                    made = file.read()
                place = os.path.join(golden, "%s-%s" % (boundary, name) if target == "triton" else name)
                if "--bless" in argv:
                    with open(place, "w", encoding="utf-8") as file:
                        file.write(made)
                with open(place, encoding="utf-8") as file:
                    tap.ok(made == file.read(), out + " is as in " + os.path.basename(place), made)
                with open(os.path.join(cwd, out, "pipeline.json"), encoding="utf-8") as file:
                    manifest = json.load(file)
                proof = run(verify, out, "--model", "m.onnx")
                tap.ok(manifest["files"] == [name] and proof.returncode == OK, out + " belongs to the split",
                       proof.stderr)
                if target == "triton":
                    done = run("sh", out + "/triton.sh", "repository " + boundary)
                    tap.ok(done.returncode == OK and done.stderr == "", "triton.sh runs", done.stderr)
                    check_repository(tap, os.path.join(cwd, "repository " + boundary), manifest)
        for title, status, says, *more in (
                ("without a directory", USAGE, "needs -o DIR", "--target", "k8s", "--plan-only"),
                ("of weights elsewhere", USAGE, "weights", "--target", "triton", "-o", ".",
                 "--weights", "reference"),
                ("of a number of stages", USAGE, "one number", "-k", "1..2", "--target", "triton", "-o", "o")):
            done = run(split, "m.onnx", *options, *more)
            tap.ok(done.returncode == status and says in done.stderr, "no target " + title, done.stderr)
        # What the job runs is random numbers of the sizes that were given; what is missing is said.
        for title, sizes, passed, missing in (
                ("--shape", ("--shape", "mask=8", "--dim", "batch=4"), ["--dim", "batch=4", "--shape", "mask=8"], ()),
                ("both inputs", ("--shape", "mask=1", "--shape", "x=4,8"),
                 ["--shape", "mask=1", "--shape", "x=4,8"], ()),
                ("one", ("--dim", "batch=4"), ["--dim", "batch=4"], ("mask[0]",)),
                ("none", (), [], ("batch, mask[0]", "--dim or --shape"))):
            done = run(split, "m.onnx", "-k", "2", *sizes, "--target", "k8s", "-o", "sized", "--force")
            with open(os.path.join(cwd, "sized", "mpijob.yaml"), encoding="utf-8") as file:
                command = json.loads(re.search("command: .mpirun, -n, (.*)", file.read()).group(1).join("[]")[:-1])
            says = [line for line in done.stderr.splitlines() if "mpijob.yaml" in line]
            tap.ok(command[6:] == passed and len(says) == (len(missing) > 0) and all(m in says[0] for m in missing),
                   "the job with sizes of %s" % title, "%s %s" % (command, done.stderr))
        # The order of devices is chosen: what a stage runs on is told, whatever its place in the file.
        slow = {"name": "slow", "preset": "cpu", "flops_per_second": {"float32": 1e3}, "session": {"threads": 2}}
        fast = {"name": "fast", "preset": "cpu", "session": {"provider": "CUDA", "provider_options": {"device_id": 3}}}
        for order in ((slow, fast), (fast, slow)):
            with open(os.path.join(cwd, "two.json"), "w") as file:
                json.dump({"devices": order}, file)
            done = run(split, "m.onnx", "-q", "--dim", "batch=4", "--devices", "two.json", "-k", "2", "--target", "triton",
                       "-o", "two", "--force")
            with open(os.path.join(cwd, "two", "pipeline.json"), encoding="utf-8") as file:
                devices = [stage["device"] for stage in json.load(file)["stages"]]
            with open(os.path.join(cwd, "two", "triton.sh"), encoding="utf-8") as file:
                kinds = re.findall("kind: (.*) }", file.read())
            tap.ok(done.returncode == OK and sorted(devices) == ["fast", "slow"]
                   and kinds == [{"fast": "KIND_GPU gpus: [ 3 ]", "slow": "KIND_CPU"}[name] for name in devices],
                   "stages on %s and %s" % tuple(devices), "%s %s" % (kinds, done.stderr))
        for number, status, says in (("12", OK, ""), (12, OK, ""), ("first", USAGE, "stage 0 on CUDA: device_id is \"first\""),
                                     ("1x", USAGE, "device_id"), (-1, USAGE, "device_id")):
            DEVICES["devices"][0]["session"]["provider_options"]["device_id"] = number
            with open(os.path.join(cwd, "devices.json"), "w") as file:
                json.dump(DEVICES, file)
            done = run(split, "m.onnx", *options, "--target", "triton", "-o", "on", "--force")
            tap.ok(done.returncode == status and says in done.stderr, "on device %r" % number, done.stderr)
            if status == OK:
                with open(os.path.join(cwd, "on", "triton.sh"), encoding="utf-8") as file:
                    tap.ok("gpus: [ 12 ]" in file.read(), "which Triton is told", "")
        with open(os.path.join(cwd, "odd.onnx"), "wb") as file:
            file.write(model("(float16[?] x) => (float8e4m3fn[?] y) {\na = Relu (x)\ny = Cast <to = 17> (a)\n}"))
        done = run(split, "odd.onnx", "-k", "1", "--target", "triton", "-o", "odd", "-q", "--allow-invalid")
        tap.ok(done.returncode == UNSUPPORTED and '"y"' in done.stderr and not os.path.exists(cwd + "/odd"),
               "a type that Triton has not", done.stderr)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
