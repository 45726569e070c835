#!/usr/bin/env python3
"""Are weights that are Constant nodes trained as initializers are? constants.py SPLIT VERIFY

Beside each model stands one whose weights are initializers and which is the same otherwise: the files that train have to be
the same. Results as TAP.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "verify")]
from tap import Tap, scratch  # noqa: E402
from text_model import make  # noqa: E402
from wire import Message  # noqa: E402

GRAPH, NODE, INITIALIZER, OPERATOR, OUTPUT, NAME = 7, 1, 5, 4, 2, 8
# What stands in the graph for each weight: an initializer, or a node.
WEIGHTS = [
    ("w", "float[2,2] w = {1, 2, 3, 4}", "[a] w = Constant <value = float[2,2] {1, 2, 3, 4}> ()"),
    ("b", "float[2] b = {0.5, -0.5}", "[b] b = Constant <value = float[2] {0.5, -0.5}> ()"),
    ("listed", "float[2] listed = {1.0, 2.0}", "[e] listed = Constant <value_floats = [1.0, 2.0]> ()"),
    ("large", "float[2,300] large = random(1)", "[g] large = Constant <value = float[2,300] n = random(1)> ()"),
    ("tied", "float[300,2] tied = random(2)", "[i] tied = Constant <value = float[300,2] large = random(2)> ()"),
]
MODEL = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,2] x) => (float[n,2] y, float[1] told) <
  %s
> {
  %s
  [c] half = Constant <value = float {0.5}> ()
  [j] old = Constant <value = int64[2] {-1, 2}> ()
  [d] shape = Constant <value = int64[2] {-1, 2}> ()
  [f] told = Constant <value = float[1] {7}> ()
  [m] p = MatMul (x, w)
  [s] q = Add (p, b)
  [h] r = Mul (q, half)
  [t] u = Tanh (r)
  [r] v = Reshape (u, shape)
  [k] k = Reshape (v, old)
  [l] z = Mul (k, listed)
  [n] wide = MatMul (z, large)
  [z] back = MatMul (wide, tied)
  [x] again = MatMul (back, large)
  [u] ends = Add (again, told)
  [o] y = MatMul (ends, tied)
}
"""
NORM = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,3] x) => (float[n,3] y) <%s> {
  %s
  a, m2, v2 = BatchNormalization <training_mode = 1> (x, scale, shift, mean, var)
  y = Tanh (a)
}
"""
NORMS = [(name, "float[3] %s = {1, 2, 3}" % name, "[%s] %s = Constant <value = float[3] {1, 2, 3}> ()" % (name, name))
         for name in ("scale", "shift", "mean", "var")]


def call(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return path


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def model(text, weights, as_nodes):
    initializers = [] if as_nodes else [initializer for _, initializer, _ in weights]
    return make(text % (", ".join(initializers), "\n  ".join(node for _, _, node in weights if as_nodes)))


def split(tool, path, output, *more, loss="mse:prediction=y"):
    return call(tool, path, "-k", "2", "-o", output, "--force", "--training", "--loss", loss, "--micro-batches", "2", *more)


def training(output):
    return json.loads(read(output, "pipeline.json"))["training"]


def trained(output):
    return sorted(row["name"] for row in training(output)["weights"])


def first_values(output):
    """The initializers of all weights.onnx, but for the order of their fields: nodes and initializers are written otherwise."""
    out = {}
    for name in os.listdir(output):
        if name.endswith(".weights.onnx"):
            for each in Message(Message(read(output, name)).first(GRAPH)).all(INITIALIZER):
                tensor = Message(each)
                out[tensor.text(NAME)] = sorted(map(str, tensor.fields))
    return out


def same(tap, old, new, what):
    """That what trains is the same."""
    files = sorted(os.listdir(old))
    other = [name for name in files if name.endswith(".onnx") and not name.endswith(".weights.onnx")
             and read(old, name) != read(new, name)]
    tap.ok(files == sorted(os.listdir(new)) and not other, "%s: the same files" % what, str(other))
    tap.ok(first_values(old) == first_values(new), "%s: the same first values" % what,
           "%s %s" % (first_values(old), first_values(new)))


def check_both(tap, tmp, tools, text, weights, what):
    """A model of constants and that of initializers."""
    splitter, verifier = tools
    paths, outputs = [], []
    for as_nodes in (False, True):
        os.makedirs(os.path.join(tmp, what, str(as_nodes)))
        paths.append(write(os.path.join(tmp, what, str(as_nodes), "m.onnx"), model(text, weights, as_nodes)))
        outputs.append(os.path.join(tmp, what, str(as_nodes), "parts"))
    for form in ("input", "default"):
        for path, output in zip(paths, outputs):
            run = split(splitter, path, output, "--trained-weights", form)
            tap.ok(run.returncode == 0, "%s: trained as %s" % (what, form), run.stderr)
            run = call(verifier, output, "--model", path)
            tap.ok(run.returncode == 0, "%s: and proved" % what, run.stdout + run.stderr)
        tap.ok(trained(outputs[0]) == trained(outputs[1]) == sorted(name for name, _, _ in weights), "%s: all weights" % what,
               "%s %s" % (trained(outputs[0]), trained(outputs[1])))
        if form == "input":
            same(tap, *outputs, what)
    nodes = [Message(node).text(OUTPUT) for name in os.listdir(outputs[1]) if name.endswith(".onnx")
             for node in Message(Message(read(outputs[1], name)).first(GRAPH)).all(NODE)]
    tap.ok(not {name for name, _, _ in weights} & set(nodes), "%s: no node makes a weight" % what, str(nodes))
    return paths, outputs


def check_proof(tap, tmp, tools, paths, outputs):
    """Stages and other models: a constant is what the manifest trains, with its own numbers."""
    splitter, verifier = tools
    run = call(verifier, outputs[1], "--model", paths[0])
    tap.ok(run.returncode == 0, "trained initializers are not told from trained constants", run.stderr)
    for form in ("input", "default"):
        run = split(splitter, paths[1], outputs[1], "--trained-weights", form)
        tap.ok(run.returncode == 0, "trained as %s again" % form, run.stderr)
        for old, new in (("{1, 2, 3, 4}", "{1, 2, 3, 5}"), ("[1.0, 2.0]", "[1.0, 2.5]"), ("random(1)", "random(3)")):
            nodes = [(name, initializer, node.replace(old, new)) for name, initializer, node in WEIGHTS]
            other = write(os.path.join(tmp, "other.onnx"), model(MODEL, nodes, True))
            run = call(verifier, outputs[1], "--model", other)
            tap.ok(run.returncode == 1, "another number is told, trained as %s: %s" % (form, new), run.stdout + run.stderr)
    run = split(splitter, paths[1], outputs[1], "--freeze", "l*")
    tap.ok(run.returncode == 0 and trained(outputs[1]) == ["b", "tied", "w"], "constants are frozen by patterns", run.stderr)
    run = call(verifier, outputs[1], "--model", paths[1])
    tap.ok(run.returncode == 0 and "gradients of 3 weights" in run.stdout, "and proved with the rest", run.stderr)
    run = split(splitter, paths[1], outputs[1], "--train", "half", "--train", "w")
    tap.ok(run.returncode == 0 and trained(outputs[1]) == ["half", "w"], "a scalar is trained by its name", run.stderr)
    run = call(verifier, outputs[1], "--model", paths[1])
    tap.ok(run.returncode == 0, "and proved", run.stderr)
    run = split(splitter, paths[1], outputs[1], "--train", "told")
    tap.ok(run.returncode == 2, "an output of the model is not", run.stderr)


def main(*tools):
    tap = Tap()
    with scratch("constants") as tmp:
        paths, outputs = check_both(tap, tmp, tools, MODEL, WEIGHTS, "weights")
        check_proof(tap, tmp, tools, paths, outputs)
        _, outputs = check_both(tap, tmp, tools, NORM, NORMS, "statistics")
        states = sorted(row["name"] for row in training(outputs[1])["weights"] if row.get("next"))
        tap.ok(states == ["mean", "var"], "running statistics are states", str(states))
        old = write(os.path.join(tmp, "old.onnx"), model(MODEL, WEIGHTS, True).replace(b"\x08\x08", b"\x08\x03", 1))
        run = split(tools[0], old, os.path.join(tmp, "parts"))
        tap.ok(run.returncode == 2 and "of an IR version before" in run.stderr, "an old version is refused", run.stderr)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
