#!/usr/bin/env python3
"""Can weights that are Constant nodes be trained? constants.py SPLIT VERIFY

They are refused, and samples/initializers_of_constants.py makes initializers of them, of those alone, and changes nothing
else. Results as TAP.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "verify")]
from tap import Tap, scratch  # noqa: E402
from text_model import make  # noqa: E402
from wire import Message  # noqa: E402

SAMPLE = os.path.join(HERE, "..", "..", "samples", "initializers_of_constants.py")
GRAPH, NODE, INITIALIZER, OPERATOR, OUTPUT, ATTRIBUTE, TENSOR, NAME = 7, 1, 5, 4, 2, 5, 5, 8
MODEL = """
<ir_version: %d, opset_import: ["": 17]>
main (float[n,2] x) => (float[n,2] y, float[1] told) <
  int64[2] old = {-1, 2}, float[2] unused = {5, 6}
> {
  [a] w = Constant <value = float[2,2] {1, 2, 3, 4}> ()
  [b] b = Constant <value = float[2] {0.5, -0.5}> ()
  [c] half = Constant <value = float {0.5}> ()
  [d] shape = Constant <value = int64[2] {-1, 2}> ()
  [e] listed = Constant <value_floats = [1.0, 2.0]> ()
  [f] told = Constant <value = float[1] {7}> ()
  [m] p = MatMul (x, w)
  [s] q = Add (p, b)
  [h] r = Mul (q, half)
  [t] u = Tanh (r)
  [r] v = Reshape (u, shape)
  [k] k = Reshape (v, old)
  [l] z = Mul (k, listed)
  [o] y = Identity (z)
}
"""


def call(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def split(tool, model, output):
    return call(tool, model, "-k", "2", "-o", output, "--training", "--loss", "mse:prediction=y", "--micro-batches", "2")


def constants(graph, names):
    """name -> the tensor of such a constant, as bytes without a name."""
    out = {}
    for node in map(Message, graph.all(NODE)):
        if node.text(OPERATOR) == "Constant" and node.text(OUTPUT) in names:
            out[node.text(OUTPUT)] = Message(node.first(ATTRIBUTE)).first(TENSOR)
    return out


def main(splitter, verifier):
    tap = Tap()
    with scratch("constants") as tmp:
        old, new, parts = (os.path.join(tmp, name) for name in ("old.onnx", "new.onnx", "parts"))
        model = make(MODEL % 8)
        with open(old, "wb") as file:
            file.write(model)
        run = split(splitter, old, parts)
        tap.ok(run.returncode == 2 and "make initializers of them" in run.stderr, "constants are refused",
               "%d %s" % (run.returncode, run.stderr))
        run = call(sys.executable, SAMPLE, old, new)
        tap.ok(run.returncode == 0 and run.stdout == "2 constants are initializers now\n", "two of them are weights",
               "%d %s %s" % (run.returncode, run.stdout, run.stderr))
        with open(new, "rb") as file:
            made = file.read()
        before, after = Message(Message(model).first(GRAPH)), Message(Message(made).first(GRAPH))
        wanted = constants(before, ("w", "b"))
        got = {Message(each).text(NAME): Message(each) for each in after.all(INITIALIZER)}
        for each in got.values():
            each.fields = [field for field in each.fields if field[0] >> 3 != NAME]
        tap.ok(sorted(got) == ["b", "old", "unused", "w"] and all(got[name].bytes() == wanted[name] for name in wanted),
               "with their bytes", "%s %s" % (got, wanted))
        before.edit(NODE, lambda _: None, lambda node: node.text(OPERATOR) == "Constant" and node.text(OUTPUT) in wanted)
        after.edit(INITIALIZER, lambda _: None, lambda tensor: tensor.text(NAME) in wanted)
        outer = [[field for field in Message(each).fields if field[0] >> 3 != GRAPH] for each in (model, made)]
        tap.ok(before.bytes() == after.bytes() and outer[0] == outer[1], "and nothing else")
        run = split(splitter, new, parts)
        tap.ok(run.returncode == 0, "then they are trained", run.stderr)
        run = call(verifier, parts, "--model", new)
        tap.ok(run.returncode == 0 and "gradients of 2 weights" in run.stdout, "and proved", run.stdout + run.stderr)
        run = call(sys.executable, SAMPLE, old, new)
        tap.ok(run.returncode == 1 and run.stderr.startswith("error: "), "no file is replaced", run.stderr)
        for name, data in (("of an old version", make(MODEL % 3)), ("cut short", model[:-3]), ("text", b"no model at all")):
            with open(old, "wb") as file:
                file.write(data)
            run = call(sys.executable, SAMPLE, old, os.path.join(tmp, "none.onnx"))
            tap.ok(run.returncode == 1 and run.stderr.startswith("error: ") and run.stderr.count("\n") == 1
                   and not os.path.exists(os.path.join(tmp, "none.onnx")), name, run.stderr)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
