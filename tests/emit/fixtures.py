#!/usr/bin/python3
"""fixtures.py DIR: writes small models into DIR, each with something that splitters lose.

Needs python3-onnx. Every input has known sizes, so that tests/e2e/chain.mjs can feed it.
"""
import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.helper import make_graph, make_node as node, make_tensor_value_info as value

home = sys.argv[1]
FLOAT, INT64, STRING, BOOL, FLOAT16 = 1, 7, 8, 9, 10
x = value("x", FLOAT, [2, 4])
y = value("y", FLOAT, [2, 4])


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def weights(name, *shape):
    return tensor(name, np.random.RandomState(3).randn(*shape).astype(np.float32))


def model(name, nodes, inputs, outputs, initializers=(), ir=8, opsets=(("", 15),), sparse=(),
          functions=()):
    graph = make_graph(nodes, name, inputs, outputs, list(initializers),
                       sparse_initializer=list(sparse))
    made = helper.make_model(graph, functions=list(functions),
                             opset_imports=[helper.make_opsetid(*each) for each in opsets])
    made.ir_version = ir
    return made


def save(name, *args, **kinds):
    onnx.save(model(name, *args, **kinds), os.path.join(home, name + ".onnx"))


# An output that is read on, one that is an input, one that is an initializer; inputs nobody reads.
save("outputs",
     [node("Relu", ["x"], ["a"]), node("Add", ["a", "w"], ["b"]), node("Tanh", ["b"], ["y"])],
     [x, value("z", FLOAT, [3]), value("unused", INT64, [2])],
     [value("a", FLOAT, [2, 4]), value("z", FLOAT, [3]), value("w", FLOAT, [2, 4]), y],
     [weights("w", 2, 4)])

# A value read twice by one node, omitted inputs, odd names, nodes without names.
odd = 'a/:,-;"{} é'
save("names",
     [node("Relu", ["x"], [odd]), node("Mul", [odd, odd], ["b b"]),
      node("Clip", ["b b", "", "top"], ["y"])],
     [x], [y], [tensor("top", np.float32(0.5))])

# Scalars, empty tensors, values without a declared shape.
save("ranks",
     [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Mul", ["x", "s"], ["m"]),
      node("NonZero", ["m"], ["n"]), node("Cast", ["n"], ["nf"], to=FLOAT),
      node("Slice", ["m", "zero", "zero"], ["empty"]),
      node("Concat", ["empty", "m"], ["c"], axis=0),
      node("ReduceSum", ["nf"], ["r"], keepdims=0), node("Add", ["c", "r"], ["y"])],
     [x], [value("y", FLOAT, None)], [tensor("zero", np.zeros(1, np.int64))])

# A sparse initializer, used on both sides of a cut.
save("sparse",
     [node("Add", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["b", "w"], ["y"])],
     [x], [y],
     sparse=[helper.make_sparse_tensor(tensor("w", np.float32([1, 2])),
                                       tensor("w_at", np.int64([1, 5])), [2, 4])])

# Bodies in bodies that capture values and initializers of the outermost graph.
more = make_graph([node("Mul", ["s1", "w"], ["more"])], "more", [], [value("more", FLOAT, None)])
less = make_graph([node("Sub", ["s1", "cap"], ["less"])], "less", [], [value("less", FLOAT, None)])
body = make_graph(
    [node("Add", ["s", "cap"], ["s1"]), node("Greater", ["i", "one"], ["late"]),
     node("If", ["late"], ["s2"], then_branch=more, else_branch=less),
     node("Identity", ["go"], ["on"])],
    "body", [value("i", INT64, []), value("go", BOOL, []), value("s", FLOAT, [2, 4])],
    [value("on", BOOL, []), value("s2", FLOAT, [2, 4])])
save("bodies",
     [node("Relu", ["x"], ["cap"]), node("Tanh", ["cap"], ["start"]),
      node("Loop", ["trips", "", "start"], ["end"], body=body), node("Add", ["end", "cap"], ["y"])],
     [x], [y], [tensor("trips", np.int64(4)), tensor("one", np.int64(1)), weights("w", 2, 4)])

# Functions that call functions.
standard, own = helper.make_opsetid("", 15), helper.make_opsetid("my", 1)
inner = helper.make_function("my", "F", ["a"], ["b"],
                             [node("Relu", ["a"], ["t"]), node("Add", ["t", "t"], ["b"])],
                             [standard])
outer = helper.make_function("my", "G", ["a"], ["b"],
                             [node("F", ["a"], ["t"], domain="my"), node("Tanh", ["t"], ["b"])],
                             [standard, own])
save("functions",
     [node("G", ["x"], ["a"], domain="my"), node("F", ["a"], ["b"], domain="my"),
      node("G", ["b"], ["y"], domain="my")],
     [x], [y], opsets=(("", 15), ("my", 1)), functions=[inner, outer])

# int8 on the wire.
save("quantized",
     [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
      node("DequantizeLinear", ["q", "s", "z"], ["d"]), node("Relu", ["d"], ["r"]),
      node("QuantizeLinear", ["r", "s", "z"], ["q2"]),
      node("DequantizeLinear", ["q2", "s", "z"], ["d2"]), node("Add", ["d2", "d"], ["y"])],
     [x], [y], [tensor("s", np.float32(0.05)), tensor("z", np.int8(0))])

# Strings, halves and truth values on the wire.
save("types",
     [node("Cast", ["x"], ["h"], to=FLOAT16), node("Cast", ["x"], ["b"], to=BOOL),
      node("Cast", ["x"], ["s"], to=STRING), node("Identity", ["s"], ["s2"]),
      node("Identity", ["h"], ["h2"]), node("Not", ["b"], ["b2"]),
      node("Cast", ["b2"], ["b3"], to=FLOAT), node("Cast", ["h2"], ["h3"], to=FLOAT),
      node("Add", ["b3", "h3"], ["y"])],
     [x], [y, value("s2", STRING, [2, 4])])

# Initializers listed as inputs; every IR version with its own opset; no standard operators at all.
chain = [node("Add", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["b", "w"], ["y"])]
for ir, opset in ((3, 8), (4, 9), (5, 10), (6, 11), (7, 12), (8, 15), (9, 19), (10, 21)):
    save("ir%d" % ir, chain, [x, value("w", FLOAT, [2, 4])], [y], [weights("w", 2, 4)], ir=ir,
         opsets=(("", opset),))
save("custom", [node("Gelu", [a], [b], domain="com.microsoft")
                for a, b in (("x", "a"), ("a", "b"), ("b", "y"))],
     [x], [y], opsets=(("com.microsoft", 1),))

# External data, some of it small, one range used by two tensors.
kept = model("external", [node("Add", ["x", "w"], ["a"]), node("MatMul", ["a", "big"], ["b"]),
                          node("MatMul", ["b", "back"], ["c"]), node("Add", ["c", "w"], ["y"])],
             [x], [y], [weights("w", 2, 4), weights("big", 4, 600), weights("back", 600, 4)])
onnx.save_model(kept, os.path.join(home, "external.onnx"), save_as_external_data=True,
                location="external.bin", size_threshold=0)
