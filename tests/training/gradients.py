#!/usr/bin/env python3
"""Does onnx-pipeline-verify --gradients tell wrong gradients from right ones?
gradients.py SPLIT VERIFY CHECK_GRADIENTS

Models with a smooth loss and with kinks, in float and double, are split for training in several
ways; every gradient has to hold. Then backward files are spoilt, one node or constant after the
other, and CHECK_GRADIENTS, which asks for no proof first, has to find a weight whose gradient differs
wherever the change is one that gradients show. Results as TAP.
"""
import glob
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "verify")]
from mutants import (GRAPH, INITIALIZER, N_INPUT, N_OP, NODE, RAW, Tap, load, positions, save)  # noqa: E402
from text_model import make  # noqa: E402
from wire import Message  # noqa: E402

# The tied w1, a residual, a frozen weight, a normalisation; cuts through all of it.
SMOOTH = """
<ir_version: 8, opset_import: ["": 17]>
main (%(t)s[n,8] x) => (%(t)s[n,4] y) <
  %(t)s[8,8] w1 = random(1), %(t)s[8] b1 = random(2), %(t)s[8,8] w2 = random(3),
  %(t)s[8] scale = random(4), %(t)s[8] shift = random(5), %(t)s[8,4] w3 = random(6),
  %(t)s[8] frozen = random(7), int64[1] axis = {-1}
> {
  [m1] p1 = MatMul (x, w1)
  [a1] s1 = Add (p1, b1)
  [t1] h1 = Tanh (s1)
  [m2] p2 = MatMul (h1, w2)
  [e2] h2 = Sigmoid (p2)
  [r2] r2 = Add (h2, h1)
  [l3] n3 = LayerNormalization (r2, scale, shift)
  [q3] q3 = Mul (n3, frozen)
  [m3] y0 = MatMul (q3, w1)
  [s3] y1 = Softmax (y0)
  [m4] y = MatMul (y1, w3)
}
"""
KINKS = """
<ir_version: 8, opset_import: ["": 17]>
main (float[b,3,8,8] image) => (float[b,5] y) <
  float[6,3,3,3] w1 = random(1), float[6] g = random(2), float[6] h = random(3),
  float[6] mean = {0, 0, 0, 0, 0, 0}, float[6] variance = {1, 1, 1, 1, 1, 1}, float[4,6,3,3] w2 = random(4),
  float[4] b2 = random(5), float[64,5] w3 = random(6), float[5] b3 = random(7)
> {
  [c1] c1 = Conv <pads = [1, 1, 1, 1]> (image, w1)
  [n1] n1, running_mean, running_variance = BatchNormalization <training_mode = 1> (c1, g, h, mean, variance)
  [r1] r1 = Relu (n1)
  [p1] p1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r1)
  [c2] c2 = Conv <pads = [1, 1, 1, 1]> (p1, w2, b2)
  [r2] r2 = Relu (c2)
  [f] f = Flatten (r2)
  [m3] y = Gemm (f, w3, b3)
}
"""
# Frozen weights that are inputs with a default.
DEFAULTS = """
<ir_version: %d, opset_import: ["": 17]>
main (float[n,8] x, float[8,8] w2 = random(3), float[8] frozen = random(4)) => (float[n,4] y) <
  float[8,8] w1 = random(1), float[8,4] w3 = random(6)
> {
  [m1] p1 = MatMul (x, w1)
  [q1] q1 = Mul (p1, frozen)
  [t1] h1 = Tanh (q1)
  [m2] p2 = MatMul (h1, w2)
  [e2] h2 = Sigmoid (p2)
  [m4] y = MatMul (h2, w3)
}
"""
# Weights of the main graph and of a branch.
BRANCH = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,8] x, bool flag) => (float[n,8] y) <float[8,8] w1 = random(1)> {
  [a] a = MatMul (x, w1)
  [choice] b = If (flag) <then_branch = t () => (s) <float[8,8] w2 = random(2), float[8,40] w3 = random(3)> {
    [p] p = MatMul (a, w2)
    [o] o = Constant <value = float[40,8] = random(4)> ()
    [q] q = MatMul (p, w3)
    [r] r = Tanh (q)
    [s] s = MatMul (r, o)
  }, else_branch = e () => (m) { [m] m = Neg (a) }>
  [y] y = Tanh (b)
}
"""
# In float32 the losses are blind to most of what changes: small numbers beside large ones.
BLURRED = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,3,8] x) => (float[n,3,400] y) <
  float[8,8] w1 = random(1), float[8,400] w2 = random(2), float[400] far = {%s}
> {
  [m1] p1 = MatMul (x, w1)
  [t1] h1 = Tanh (p1)
  [m2] p2 = MatMul (h1, w2)
  [s2] q2 = Add (p2, far)
  [y] y = %s (q2)
}
"""
# A move to either side changes the loss by something else: no derivative is that of differences.
EDGE = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,4] x) => (float[n,4] y) <float[4] w = random(2)> {
  [k] k = Relu (w)
  [y] y = Add (x, k)
}
"""
SWAPS = {"Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "ReduceSum": "ReduceMean", "Sqrt": "Identity",
         "Neg": "Identity", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Greater": "Less", "Exp": "Identity",
         "Softmax": "LogSoftmax"}


def library():
    found = glob.glob(os.path.join(HERE, "..", "e2e", "node_modules", "onnxruntime-node", "bin", "*", "linux",
                                   {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "none"),
                                   "libonnxruntime.so.1"))
    return os.environ.get("PSPLIT_ONNXRUNTIME") or (found[0] if found else None)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def split(tool, model, directory, stages, loss, *options):
    status, _, said = run(tool, model, "-k", str(stages), "-o", directory, "--force", "--quiet", "--training",
                          "--loss", loss, "--optimizer", "none", *options)
    if status:
        raise RuntimeError(said)


# --- changes of backward files ---

def node_changes(fields):
    """(node, what, changed fields) for each node that can be made another."""
    for at in positions(fields, NODE):
        node = list(Message(fields[at][1]).fields)
        op = next(value.decode() for field, value in node if field == N_OP)
        inputs = [i for i, (field, _) in enumerate(node) if field == N_INPUT]

        def renamed(to, without=()):
            return [(N_OP, to.encode()) if field == N_OP else (field, value)
                    for i, (field, value) in enumerate(node) if i not in without]
        changes = []
        if op in SWAPS:
            changes.append((f"{op} is {SWAPS[op]}", renamed(SWAPS[op])))
        if op == "Add":
            changes += [(f"Add without input {i}", renamed("Identity", [inputs[i]])) for i in (0, 1)]
        for what, changed in changes:
            whole = Message()
            whole.fields = changed
            yield what, fields[:at] + [(NODE, whole.bytes())] + fields[at + 1:]


def constant_changes(fields):
    """Floats of one element by half larger."""
    for at in positions(fields, INITIALIZER):
        tensor = Message(fields[at][1])
        for i, (field, value) in enumerate(tensor.fields):
            if field == RAW and len(value) == 4 and [2 << 3, 1] in tensor.fields:
                old, = struct.unpack("<f", value)
                if old:
                    tensor.fields[i] = [RAW, struct.pack("<f", 1.5 * old)]
                    yield f"{old:.3g} is {1.5 * old:.3g}", fields[:at] + [(INITIALIZER, tensor.bytes())] + fields[at + 1:]


def changes(path):
    model = Message(load(path))
    where = next(i for i, (field, _) in enumerate(model.fields) if field == GRAPH)
    fields = Message(model.fields[where][1]).fields
    for kind in (node_changes, constant_changes):
        for what, changed in kind(fields):
            graph, whole = Message(), Message()
            graph.fields = changed
            whole.fields = model.fields[:where] + [[GRAPH, graph.bytes()]] + model.fields[where + 1:]
            yield what, whole.bytes()


def findings(tool, model, directory, options):
    """{weight: (verdict, scale)}, or the error."""
    status, out, _ = run(tool, model, directory, *options)
    if status:
        return out.strip()
    return {row[0]: (row[1], *map(float, row[2:])) for row in map(str.split, out.splitlines())}


def same_scales(a, b):
    return all(abs(a[name][1] - b[name][1]) <= 2e-3 * abs(a[name][1]) for name in a)


def spoil(tap, tool, model, directory, options, title):
    right = findings(tool, model, directory, options)
    counts = {"differs": 0, "refused by ONNX Runtime": 0, "the same gradients": 0}
    unseen = []
    for path in sorted(glob.glob(os.path.join(directory, "*.backward.onnx"))):
        kept = load(path)
        for what, spoilt in changes(path):
            save(path, spoilt)
            found = findings(tool, model, directory, options)
            if isinstance(found, str):
                counts["refused by ONNX Runtime"] += 1
            elif any(verdict == "differs" for verdict, *_ in found.values()):
                counts["differs"] += 1
            elif same_scales(right, found):
                counts["the same gradients"] += 1
            else:
                unseen.append(f"{os.path.basename(path)}: {what}: {found}")
        save(path, kept)
    tap.ok(not unseen and counts["differs"] >= 20, f"{title}: spoilt files are told: "
           + ", ".join(f"{n} {what}" for what, n in counts.items()), "\n".join(unseen) or "too few differ")


def main(split_tool, verify, check):
    ort = library()
    if not ort:
        print("1..0 # SKIP there is no libonnxruntime.so.1; npm ci in tests/e2e brings one")
        return 0
    os.environ["PSPLIT_ONNXRUNTIME"] = ort
    tap = Tap()
    work = tempfile.mkdtemp(prefix="psplit-gradients-")
    try:
        def model(name, text):
            path = os.path.join(work, name + ".onnx")
            save(path, make(text))
            return path
        labels = "softmax-cross-entropy:labels=target"
        smooth = model("smooth", SMOOTH % {"t": "float"}), labels, ["--dim", "n=6", "--input", "target=0..3"]
        double = model("double", SMOOTH % {"t": "double"}), labels, smooth[2]
        kinks = model("kinks", KINKS), labels, ["--dim", "b=4", "--input", "target=0..4"]
        directory = os.path.join(work, "stages")
        cases = [(*smooth, 1, ["--recompute", "none"]), (*smooth, 3, ["--recompute", "heavy", "--boundary", "io"]),
                 (*smooth, 2, ["--recompute", "all", "--trained-weights", "input", "--gradient-of", "x"]),
                 (*smooth, 2, ["--weights", "external"]),
                 (*double, 2, ["--freeze", "frozen"]), (*kinks, 2, ["--recompute", "all"]), (*kinks, 3, [])]
        for path, loss, feed, stages, options in cases:
            split(split_tool, path, directory, stages, loss, *options)
            for seed in ("1", "2"):
                status, said, wrong = run(verify, directory, "--model", path, "--gradients", *feed, "--seed", seed)
                held = len(re.findall("^gradient of .*: holds", said, re.M))
                total = re.search(r"(\d+) hold, 0 differ, 0 cannot be told", said)
                tap.ok(status == 0 and total and held == int(total[1]) >= 6,
                       f"{os.path.basename(path)}, {stages} stages, {' '.join(options) or 'as is'}, seed {seed}: "
                       f"{held} gradients hold", said + wrong)
        bounds = [float(b) / float(a) for a, b in re.findall("holds, ([^ ]+) within ([^ ]+)", run(
            verify, split_again(split_tool, double, directory), "--model", double[0], "--gradients", *double[2])[1])]
        tap.ok(bounds and max(bounds) < 1e-5, f"in double they hold within {max(bounds, default=1):.1g} of themselves")
        status, said, wrong = run(verify, split_again(split_tool, smooth, directory), "--model", smooth[0], "--run", *smooth[2])
        tap.ok(status == 0 and re.search("^output y: 48 elements, the same bits$", said, re.M)
               and re.search("^output loss: not compared, MODEL has none", said, re.M),
               "--run compares what the model gives, and not the loss", said + wrong)
        # Weights of a model's session are packed, those of stages that train are inputs: sums in another order.
        sums = model("sums", """<ir_version: 8, opset_import: [{version: 17}]>
sums (float[n,300] x) => (float[n,40] y)
<float[300,64] w0 = random(1), float[64] b0 = random(2), float[64,40] w1 = random(3)> {
  [n_a] a = Gemm (x, w0, b0)
  [n_b] b = Tanh (a)
  [n_c] c = MatMul (b, w1)
  [n_y] y = Tanh (c)
}""")
        for options in ([], ["--freeze", "w1"]):
            split(split_tool, sums, directory, 2, "mse:target=t", *options)
            status, said, wrong = run(verify, directory, "--model", sums, "--run", "--dim", "n=1")
            tap.ok(status == 0 and re.search("^output y: 80 elements, the same bits$", said, re.M),
                   f"--run: long sums have the same bits {' '.join(options)}", said + wrong)
        for (path, loss, feed), stages in ((smooth, 2), (kinks, 2)):
            split(split_tool, path, directory, stages, loss)
            spoil(tap, check, path, directory, feed, os.path.basename(path))
        branch = model("branch", BRANCH)
        split(split_tool, branch, directory, 2, "mse:target=t", "--inline-if", "choice=then")
        status, said, wrong = run(verify, directory, "--model", branch, "--gradients", "--dim", "n=5",
                                  "--input", "flag=ones")
        tap.ok(status == 0 and "3 of 3 hold" in said, "an If inlined: gradients of its branch's weights hold",
               said + wrong)
        check_rounding(tap, split_tool, verify, model, directory)
        check_defaults(tap, split_tool, verify, model, directory, work)
        check_messages(tap, split_tool, verify, model, smooth, directory, work)
    finally:
        shutil.rmtree(work)
    print(f"1..{tap.count}")
    return tap.failed != 0


def split_again(tool, case, directory):
    split(tool, case[0], directory, 2, case[1])
    return directory


def check_rounding(tap, split_tool, verify, model, directory):
    """Differences are of the loss in float64, so gradients are told where the loss in float32 hides them."""
    one, all_ = "14, 0 * 399", "9 * 400"
    for far, last, loss, feed in (
            (one, "Softmax", "mse:target=t", ["--shape", "t=2,3,400"]),
            (one, "Identity", "softmax-cross-entropy:labels=t,axis=-1,ignore=1", ["--input", "t=0..1"]),
            (all_, "Identity", "bce-with-logits:labels=t", ["--input", "t=ones", "--shape", "t=2,3,400"])):
        path = model("blurred", BLURRED % (far, last))
        split(split_tool, path, directory, 2, loss, "--freeze", "far")
        status, said, wrong = run(verify, directory, "--model", path, "--gradients", "--dim", "n=2", *feed)
        told = [float(b) / float(a) for a, b in re.findall("holds, ([^ ]+) within ([^ ]+)", said)]
        tap.ok(status == 0 and len(told) == 2 and max(told) < (0.1 if last == "Softmax" else 2e-3),
               f"{loss}: rounding of the loss hides no gradient", said + wrong)


def check_defaults(tap, split_tool, verify, model, directory, work):
    """Inputs with a default need not be fed; where they are, all files take what is fed."""
    fed = os.path.join(work, "w2.raw")
    save(fed, struct.pack("<64f", *((i * 37 % 64 - 32) / 40 for i in range(64))))
    for version, recompute in ((8, "all"), (8, "none"), (3, "all"), (3, "none")):
        title = f"inputs with a default, IR version {version}, recompute {recompute}"
        path = model("defaults", DEFAULTS % version)
        split(split_tool, path, directory, 2, "mse:target=t", "--freeze", "frozen", "--freeze", "w2",
              "--recompute", recompute, "--trained-weights", "input", "--boundary", "io")
        with open(os.path.join(directory, "pipeline.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        parts = [part for stage in manifest["training"]["stages"] for part in (stage["again"], stage["backward"]) if part]
        needed = {row["name"] for part in parts for row in part["inputs"] if row["from"] == "model"}
        optional = {row["name"] for part in parts for row in part.get("optional_inputs", [])}
        tap.ok(needed <= {"x", "t"} and optional == ({"w2", "frozen"} if version == 8 else set()),
               f"{title}: they are optional", f"{needed} {optional}")
        for options in ([], ["--input", f"w2={fed}"]) if version == 8 else ([],):
            status, said, wrong = run(verify, directory, "--model", path, "--gradients", "--dim", "n=3", *options)
            tap.ok(status == 0 and "2 of 2 hold" in said, f"{title}: gradients hold {' '.join(options[:1])}", said + wrong)
        for part in parts:
            if not part.get("optional_inputs"):
                continue
            row = part["optional_inputs"].pop()
            part["inputs"].append(row)
            with open(os.path.join(directory, "pipeline.json"), "w", encoding="utf-8") as file:
                json.dump(manifest, file)
            status, said, wrong = run(verify, directory, "--model", path)
            tap.ok(status == 1, f"{title}: {row['name']} as an input that has to be fed is told", said + wrong)
            part["inputs"].pop()
            part["optional_inputs"].append(row)


def check_messages(tap, split_tool, verify, model, smooth, directory, work):
    path, loss, feed = smooth
    split(split_tool, path, directory, 2, loss)

    def says(title, status, pattern, *command):
        got, out, wrong = run(*command)
        tap.ok(got == status and re.search(pattern, wrong) and wrong.count("error:") == 1, title, f"{got} {out}{wrong}")
    gradients = [verify, directory, "--model", path, "--gradients"]
    says("a size that is not known", 2, "size of n in input x", *gradients)
    says("no such input", 2, "no input \"labels\"|no input labels", *gradients, *feed, "--input", "labels=0..2")
    says("--input needs a run", 2, "--input needs --run or --gradients", verify, directory, "--model", path, "--input", "x=0..3")
    status, said, _ = run(*gradients, *feed, "-q")
    tap.ok(status == 0 and not said, "nothing is said with -q", said)
    plain = os.path.join(work, "plain")
    run(split_tool, path, "-k", "2", "-o", plain, "--quiet")
    says("stages that do not train", 2, "do not train", verify, plain, "--model", path, "--gradients")
    kink = model("edge", EDGE.replace("random(2)", "{0, 0, 0, 0}"))
    edge = os.path.join(work, "edge")
    split(split_tool, kink, edge, 1, "mse:target=t", "--train", "w")
    says("at a kink no gradient is that of differences: the exit status of a proof that fails", 1,
         'the gradient of "w" is not that of the loss', verify, edge, "--model", kink, "--gradients", "--dim", "n=2")
    drawn = "r = RandomNormal <shape = [1]> ()"
    add = "\n  z = Add (x, r)\n  y = Add (z, k)"
    noise = model("noise", EDGE.replace("[y] y = Add (x, k)", drawn + add))
    split(split_tool, noise, edge, 1, "mse:target=t", "--train", "w")
    status, said, wrong = run(verify, edge, "--model", noise, "--gradients", "--dim", "n=2")
    tap.ok(status == 0 and "1 of 1 hold" in said, "what is drawn is an input: the gradient holds", said + wrong)
    branches = "c = Constant <value = bool {1}> ()\n  r = If (c) <then_branch = t () => (float[1] a) { a = RandomNormal <shape = [1]> () }, " \
        "else_branch = e () => (float[1] b) { b = RandomNormal <shape = [1]> () }>"
    noise = model("branches", EDGE.replace("[y] y = Add (x, k)", branches + add))
    split(split_tool, noise, edge, 1, "mse:target=t", "--train", "w")
    says("a loss that is random", 4, "draws random numbers", verify, edge, "--model", noise, "--gradients", "--dim", "n=2")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
