#!/usr/bin/env python3
"""What devices support: support.py SPLIT VERIFY

A node goes only to devices that support it, by operator, type, opset, rank, size, open sizes or
name; what no device supports is named before anything is planned. TAP.
"""
import json
import os
import re
import shutil
import subprocess
import sys

from bad_input import OK, Tap, model
from tap import scratch

MALFORMED, INFEASIBLE = 4, 7

TEXT = """(float[batch,64] x) => (float[batch,64] y)
  <float[64,64] w = random(1)> {
    [p1] a = MatMul (x, w)
    [r] b = Relu (a)
    [s] c = Softmax (b)
    [t] d = %s (c)
    [p2] y = MatMul (d, w)
  }"""


def main(argv):
    if len(argv) != 3:
        sys.exit("usage: support.py SPLIT VERIFY")
    split, verify = map(os.path.abspath, argv[1:])
    tap = Tap()

    def run(devices, *options, presets=None):
        with open("devices.json", "w") as file:
            json.dump({"devices": devices} | ({"presets": presets} if presets else {}), file)
        return subprocess.run([split, "m.onnx", "--devices", "devices.json", "--dim", "batch=64",
                               *options], capture_output=True, text=True, timeout=60)

    def where(devices, *options, **more):
        """The device of each node, by name; None where there is no plan."""
        shutil.rmtree("out", ignore_errors=True)
        made = run(devices, "-o", "out", "-q", "--verify", *options, **more)
        if made.returncode != OK:
            return made.stderr
        with open("out/pipeline.json") as file:
            manifest = json.load(file)
        proof = subprocess.run([verify, "out", "--model", "m.onnx"], capture_output=True, timeout=60)
        found = {}
        for stage in manifest["stages"]:
            with open("out/" + stage["file"], "rb") as file:
                text = file.read()
            for node in (b"p1", b"r", b"s", b"t", b"p2"):
                if re.search(b"\\x1a" + bytes([len(node)]) + node + b"\\x22", text):
                    found[node.decode()] = stage["device"]
        return found if proof.returncode == OK else "not verified"

    def refused(title, status, says, devices, *options, **more):
        done = run(devices, "--plan-only", *options, **more)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        tap.ok(done.returncode == status and len(lines) == 1 and re.search(says, lines[0]), title,
               "%d\n%s" % (done.returncode, done.stderr))

    cpu = {"name": "cpu", "preset": "cpu"}
    npu = {"name": "npu", "preset": "cpu", "overhead_ns": 0}
    with scratch("support"):
        with open("m.onnx", "wb") as file:
            file.write(model(TEXT % "Tanh"))
        for title, what in (
                ("operators that are listed", {"supports": {"operators": ["MatMul", "Relu"]}}),
                ("operators with their domain", {"supports": {"operators": ["ai.onnx.MatMul", "Relu"]}}),
                ("operators that are not supported", {"unsupported": {"operators": ["Softmax"]}}),
                ("names of nodes", {"unsupported": {"nodes": ["s*"]}}),
                ("a type of an operator",
                 {"unsupported": {"operators": [{"operator": "Softmax", "types": ["float32"]}]}}),
                ("an opset of an operator",
                 {"supports": {"operators": ["MatMul", "Relu", "Tanh",
                                             {"operator": "Softmax", "opsets": [1, 12]}]}}),
                ("a rank of an operator",
                 {"supports": {"operators": ["MatMul", "Relu", "Tanh",
                                             {"operator": "Softmax", "max_rank": 1}]}})):
            got = where([cpu, npu | what])
            tap.ok(isinstance(got, dict) and got.get("s") == "cpu" and "npu" in got.values(), title, str(got))
        got = where([cpu, npu | {"preset": "mine"}],
                    presets={"mine": {"preset": "cpu", "supports": {"operators": ["MatMul", "Relu"]}}})
        tap.ok(isinstance(got, dict) and got.get("s") == "cpu" and "npu" in got.values(),
               "what a preset of the file supports", str(got))
        got = where([cpu, npu | {"supports": {"operators": ["MatMul", "Relu"]}}, cpu | {"name": "cpu2"}])
        tap.ok(isinstance(got, dict) and got.get("s") != "npu" and got.get("t") != "npu",
               "three devices", str(got))
        table = run([cpu, npu | {"unsupported": {"operators": ["Softmax"]}}], "--plan-only").stdout
        tap.ok("over cpu, the best single device" in table,
               "a device that does not run all is no single device", table)
        table = run([cpu | {"unsupported": {"operators": ["Relu"]}},
                     npu | {"unsupported": {"operators": ["Softmax"]}}], "--plan-only").stdout
        tap.ok("supports all of it" in table, "where none runs all, there is no speed-up to tell", table)

        for title, limits in (("types", {"types": ["float16"]}), ("ranks", {"max_rank": 1}),
                              ("sizes", {"max_tensor_bytes": 100}), ("opsets", {"opsets": [1, 5]})):
            refused("no device takes such " + title, INFEASIBLE,
                    r'no device supports node "p1" \(MatMul\)', [cpu | {"supports": limits}])
        refused("a device that supports nothing of the model", INFEASIBLE,
                r'device "npu" supports no node', [cpu, npu | {"supports": {"operators": ["LSTM"]}}])
        refused("why no device does", INFEASIBLE, r"cpu: operator Softmax; npu: type float32",
                [cpu | {"unsupported": {"operators": ["Softmax"]}},
                 npu | {"supports": {"types": ["int8"]}}])
        got = run([cpu, npu | {"unsupported": {"operators": ["Tanh", "Relu", "MatMul"]}}], "--plan-only",
                  "--pin", "p1=1")
        tap.ok(got.returncode == INFEASIBLE and "run on some devices alone" in got.stderr,
               "a pin to a device that does not support the node", got.stderr)
        with open("devices.json", "w") as file:
            json.dump({"devices": [cpu | {"supports": {"static_shapes": True}}]}, file)
        done = subprocess.run([split, "m.onnx", "--devices", "devices.json", "--plan-only"],
                              capture_output=True, text=True, timeout=60)
        tap.ok(done.returncode == INFEASIBLE and "open sizes of x" in done.stderr, "open sizes", done.stderr)
        tap.ok(run([cpu | {"supports": {"static_shapes": True}}], "--plan-only").returncode == OK,
               "sizes that --dim fixes are not open")

        # What presets say.
        intel = {"name": "npu", "preset": "intel-npu-meteor-lake"}
        with open("devices.json", "w") as file:
            json.dump({"devices": [intel]}, file)
        done = subprocess.run([split, "m.onnx", "--devices", "devices.json", "--plan-only"],
                              capture_output=True, text=True, timeout=60)
        tap.ok(done.returncode == INFEASIBLE and "open sizes of x" in done.stderr,
               "presets of NPUs take no open sizes", done.stderr)
        tap.ok(run([intel], "--plan-only").returncode == OK, "but those that --dim fixes")
        tap.ok(run([intel | {"supports": {}}], "--plan-only").returncode == OK and
               subprocess.run([split, "m.onnx", "--devices", "devices.json", "--plan-only"],
                              capture_output=True, timeout=60).returncode == OK,
               "a device says something else in their place")
        qnn = {"name": "npu", "preset": "qualcomm-hexagon-x-elite"}
        tap.ok(run([qnn], "--plan-only").returncode == OK, "operators that a preset lists")
        with open("m.onnx", "wb") as file:
            file.write(model(TEXT % "Erf"))
        refused("an operator that no preset's device supports", INFEASIBLE,
                r'no device supports node "t" \(Erf\).*npu: operator Erf; npu2: operator Erf',
                [qnn, qnn | {"name": "npu2", "overhead_ns": 5}])
        got = where([cpu, qnn | {"overhead_ns": 0}])
        tap.ok(isinstance(got, dict) and got.get("t") == "cpu", "and goes to another device", str(got))
        got = where([cpu, qnn | {"overhead_ns": 0, "supports": {}}])
        tap.ok(isinstance(got, dict), "supports of a device takes the place of the list", str(got))
        with open("m.onnx", "wb") as file:
            file.write(model("(double[batch,64] x) => (double[batch,64] y) { y = Tanh (x) }"))
        refused("nor float64", INFEASIBLE, r"npu: a type of Tanh", [intel])
        with open("m.onnx", "wb") as file:
            file.write(model(TEXT % "Tanh"))

        refused("an operator that is not known", MALFORMED,
                r"devices\[0\]\.supports\.operators\[0\].*Sofmax", [cpu | {"supports": {"operators": ["Sofmax"]}}])
        refused("a type that is not known", MALFORMED, r"devices\[0\]\.supports\.types\[0\]",
                [cpu | {"supports": {"types": ["float31"]}}])
        refused("a device that supports nothing", MALFORMED,
                r"devices\[0\]\.supports\.operators: is empty", [cpu | {"supports": {"operators": []}}])
        refused("a key that is not known", MALFORMED, r"devices\[0\]\.unsupported\.ops",
                [cpu | {"unsupported": {"ops": ["Conv"]}}])
        refused("opsets the wrong way round", MALFORMED, r"devices\[0\]\.supports\.opsets",
                [cpu | {"supports": {"opsets": [9, 3]}}])
        # The two fastest of three have no room for most nodes; the slow one has.
        tight = cpu | {"memory_bytes": 1052 << 10}
        roomy = where([tight | {"name": "a"}, tight | {"name": "b", "overhead_ns": 100},
                       cpu | {"name": "c", "overhead_ns": 90000}], "-k", "2")
        tap.ok(isinstance(roomy, dict) and set(roomy.values()) == {"b", "c"},
               "devices with room, where those that are fast have none", str(roomy))
        slow, fast = tight | {"name": "a"}, tight | {"name": "b", "overhead_ns": 100}
        equal = [where([*two, cpu | {"name": "c", "overhead_ns": 90000}], "-k", "2")
                 for two in ([slow, fast], [fast, slow])]
        tap.ok(all(isinstance(each, dict) and set(each.values()) == {"b", "c"} for each in equal),
               "of those with as much memory the fastest, however they are listed", str(equal))

        def stages(*options):
            done = subprocess.run([split, "m.onnx", "--plan-only", "--json", "-q", "--dim", "batch=64",
                                   *options], capture_output=True, text=True, timeout=60)
            return json.loads(done.stdout)["stages"] if done.returncode == OK else done.stderr

        with open("m.onnx", "wb") as file:
            file.write(model("(float[batch,512] x0) => (float[batch,512] x8) <%s> {%s}" % (
                ", ".join("float[512,512] w%d = random(%d)" % (i, i) for i in range(8)),
                " ".join("x%d = MatMul (x%d, w%d)" % (i + 1, i, i) for i in range(8)))))
        whole = stages("-k", "1")[0]["memory_bytes"]
        tap.ok(len(stages("--max-bytes-per-stage", str(whole))) == 1, "one stage, where that fits")
        half = whole // 2 >> 10 << 10
        tap.ok(stages("--max-bytes-per-stage", "%dKiB" % (half >> 10)) == stages("--max-bytes-per-stage", str(half)),
               "bytes may have a unit")
        for text, size in (("1.5MB", 1500000), ("1.0625GiB", 1140850688), ("0.25kB", 250), ("1.0009kB", 1000),
                           ("1." + 40 * "9" + "TB", None)):
            made = [stages("--max-bytes-per-stage", each) for each in (text, str(size or 1999999999999))]
            tap.ok(made[0] == made[1], "%s of bytes" % text, "%s\n%s" % tuple(made))
        for text in ("1.5", "1.GB", ".5GB", "0.0GB", "0.0001kB", "1.5.5GB", "1.5gb", "9999999999.5TiB", "1.5 GB"):
            done = subprocess.run([split, "m.onnx", "--plan-only", "--max-bytes-per-stage", text], capture_output=True,
                                  text=True, timeout=60)
            tap.ok(done.returncode == 2 and "takes bytes" in done.stderr, "%s is no number of bytes" % text, done.stderr)
        limit = str(whole // 2)
        few = stages("--max-bytes-per-stage", limit)
        tap.ok(isinstance(few, list) and len(few) > 1
               and all(each["memory_bytes"] <= int(limit) for each in few),
               "several, where they fit", str(few))
        less = stages("--max-bytes-per-stage", limit, "-k", str(len(few) - 1))
        tap.ok(isinstance(less, str) and "memory" in less, "no fewer would", str(less))
        # Nodes without names go by their first outputs.
        pinned = stages("-k", "2", "--pin", "x[12]=0", "--pin", "x3=1")
        tap.ok([each["nodes"] for each in pinned] == [2, 6], "a pin names outputs of nodes without names", str(pinned))
        kept = stages("-k", "2", "--keep-together", "x[1-7]")
        tap.ok([each["nodes"] for each in kept] == [7, 1], "so does what is kept together", str(kept))
        most = max(each["memory_bytes"] for each in stages("-k", "2"))
        close = stages("--max-bytes-per-stage", str(most - 7), "-k", "2")
        tap.ok(isinstance(close, str) and "7 B too little" in close, "how much a stage lacks", str(close))
        few = stages("--max-bytes-per-stage", "1000")
        tap.ok("no number of stages fits" in few, "none, where a node is too large", str(few))
        # No power of two: 8 stages cannot all have work.
        with open("m.onnx", "wb") as file:
            file.write(model("(float[batch,512] x0) => (float[batch,512] x6) <%s> {%s}" % (
                ", ".join("float[512,512] w%d = random(%d)" % (i, i) for i in range(6)),
                " ".join("x%d = MatMul (x%d, w%d)" % (i + 1, i, i) for i in range(6)))))
        most = max(each["memory_bytes"] for each in stages("-k", "6"))
        few = stages("--max-bytes-per-stage", str(most))
        tap.ok(isinstance(few, list) and len(few) == 6, "six stages fit, and no fewer", str(few))
        few = stages("--max-bytes-per-stage", str(most // 2))
        tap.ok("no number of stages fits" in few, "none, where no number does", str(few))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
