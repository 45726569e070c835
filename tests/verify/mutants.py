#!/usr/bin/env python3
"""Does onnx-pipeline-verify notice? mutants.py SPLIT VERIFY ACCEPT_SPOILT

Splits a model that holds a bit of everything, spoils the split in one way after the other, and
wants each told: exit status 1 (or 3, 4, 5 where a file itself is bad) and one `error:` line that
names the thing. What is not spoilt has to pass. Results as TAP.
"""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402
from text_model import make  # noqa: E402
from wire import Message  # noqa: E402

MISMATCH, FILE, INVALID, UNSUPPORTED = 1, 3, 4, 5
INT64 = 7
# ModelProto and GraphProto; NodeProto; AttributeProto; TensorProto.
IR, GRAPH, OPSETS, METADATA, FUNCTIONS = 1, 7, 8, 14, 25
NODE, INITIALIZER, INPUT, OUTPUT, VALUE_INFO, ANNOTATION = 1, 5, 11, 12, 13, 14
N_INPUT, N_OUTPUT, N_NAME, N_OP, N_ATTRIBUTE, N_DOC, N_DOMAIN = 1, 2, 3, 4, 5, 6, 7
FUTURE = 4000


# --- the model ---

def noise(name, n):
    """n floats; small ones, so that nothing here is a NaN by chance."""
    source = random.Random(name)
    return b"".join(struct.pack("<f", source.uniform(-1, 1)) for _ in range(n))


def build(directory):
    """A model in three parts, a, b and c; the letters say where the test pins each node. w_big has a
    size that stays in a file of its own."""
    with open(os.path.join(directory, "weights.bin"), "wb") as file:
        file.write(b"\0" * 512 + noise("w_ext", 64))
    big = noise("w_big_1", 1024) + b"\x01\x00\xc0\x7f" + noise("w_big_2", 1023)
    path = os.path.join(directory, "model.onnx")
    with open(path, "wb") as file:
        file.write(make("""
<
  ir_version: 8,
  producer_name: "mutants.py",
  opset_import: ["": 17, "local": 1],
  metadata_props: ["key": "value"],
  4000: "model"
>
main (float[n,8] x, bool flag) => (float[n,8] b3, float[32,n,8] y) @{
  doc_string: "about the graph",
  quantization_annotation: [{tensor_name: "b4", quant_parameter_tensor_names: ["SCALE_TENSOR": "w_in"]}],
  4000: "graph"
} <
  float[8,8] w_in = random(1),
  float[8,8] w_fun = random(2),
  float[8,8] w_ext = ["location": "weights.bin", "offset": "512", "length": "256"],
  float[32,8,8] w_big = raw x"%s",
  float[n,8] a1,
  float[rows @{denotation: "DATA_BATCH"},8] a4,
  float[n,8] b1
> {
  [make_a1] a1 = MatMul (x, w_in)
  [make_a2] a2 = local.Layer (a1, w_fun)
  [make_a3] a3 = Tanh (a2) @{doc_string: "a doc string", 4000: "node"}
  [make_k] k = Constant <value = float[8] "" = random(3)> ()
  [make_a4] a4 = Add (a3, k)
  [make_b1] b1 = MatMul (a4, w_ext)
  [make_b2] b2 = If (flag) <then_branch = main () => (float[n,8] nested_out) {
    [make_nested_out] nested_out = If (flag) <then_branch = main () => (float[n,8] deep_out) {
      [make_deep_out] deep_out = LeakyRelu <alpha = 0.5> (a3)
    }, else_branch = main () => (float[n,8] inner) <float[8,8] w_body = random(4)> {
      [make_t] t = MatMul (a4, w_body)
      [make_inner] inner = Relu (t)
    }>
  }, else_branch = main () => (float[n,8] negative) {
    [make_negative] negative = Neg (a4) @{doc_string: "of a node"}
  }>
  [make_b3] b3 = Sub (b2, b1)
  [make_b4] b4 = Add (b3, k)
  [make_c1] c1 = MatMul (b4, w_in)
  [make_c2] c2 = MatMul (c1, w_big)
  [make_c3] c3 = Add (c2, a4)
  [make_c4] c4 = RandomNormalLike (c3)
  [make_y] y = Add (c3, c4)
}
<domain: "local", opset_import: ["": 17]>
Layer (X, W) => (Y) {
  [make_M] M = MatMul (X, W)
  [make_Y] Y = Tanh (M)
}
""" % big.hex()))
    return path


# Messages that stages are spoilt with, out of models that hold nothing else.

def graph_of(text):
    return Message(Message(make(text)).first(GRAPH))


def node_of(text):
    return graph_of("() => () { %s }" % text).first(NODE)


def value_of(text):
    return graph_of("(%s) => () {}" % text).first(INPUT)


def tensor_of(text):
    return graph_of("() => () <%s> {}" % text).first(INITIALIZER)


def function_of(text):
    return Message(make("() => () {} " + text)).first(FUNCTIONS)


def opset_of(text):
    return Message(make("<opset_import: [%s]> () => () {}" % text)).first(OPSETS)


def model_file(path, text, domain=None):
    opsets = '"": 17' + (', "%s": 1' % domain if domain else "")
    with open(path, "wb") as file:
        file.write(make('<ir_version: 8, producer_name: "mutants.py", opset_import: [%s]>\n%s'
                        % (opsets, text)))


def save(whole, path):
    with open(path, "wb") as file:
        file.write(whole.bytes())


def load(path):
    with open(path, "rb") as file:
        return Message(file.read())


# --- a split in a directory, to be spoilt ---

class Split:
    def __init__(self, directory, model_path):
        self.directory, self.model_path = directory, model_path
        with open(os.path.join(directory, "pipeline.json")) as file:
            self.manifest = json.load(file)

    def path(self, name):
        return os.path.join(self.directory, name)

    def stage(self, index, change):
        """change(model), on stage `index`."""
        path = self.path(f"stage{index}.onnx")
        whole = load(path)
        change(whole)
        save(whole, path)

    def graph(self, index, change):
        """change(graph), on the main graph of stage `index`."""
        def inside(main):
            change(main)
            return main
        self.stage(index, lambda whole: whole.edit(GRAPH, inside))

    def node(self, index, output, change):
        """Replaces the node that makes `output`; change gives None to drop it."""
        def here(main):
            met = main.edit(NODE, change, lambda each: output.encode() in each.all(N_OUTPUT))
            assert met == 1, f"{met} nodes make {output}"
        self.graph(index, here)

    def boundary(self, index, op, tensor_name, change):
        def here(main):
            met = main.edit(NODE, change, lambda each: is_boundary(each, op, tensor_name))
            assert met == 1, f"{met} {op} nodes for {tensor_name}"
        self.graph(index, here)

    def row(self, index, table, tensor_name, **where):
        return next(row for row in self.manifest["stages"][index][table]
                    if row["tensor"] == tensor_name
                    and all(row.get(key) == wanted for key, wanted in where.items()))

    def transfer(self, tensor_name, from_, to):
        return next(each for each in self.manifest["transfers"]
                    if (each["tensor"], each["from"], each["to"]) == (tensor_name, from_, to))

    def done(self):
        with open(self.path("pipeline.json"), "w") as file:
            json.dump(self.manifest, file)


def attribute_of(each, name):
    return next((Message(raw) for raw in each.all(N_ATTRIBUTE) if Message(raw).text(1) == name),
                None)


def is_boundary(each, op, tensor_name):
    return (each.text(N_DOMAIN) == "psplit" and each.text(N_OP) == op
            and attribute_of(each, "tensor").text(4) == tensor_name)


def with_attribute(each, name, number, new):
    each.edit(N_ATTRIBUTE, lambda a: a.set(number, new), lambda a: a.text(1) == name)
    return each


def initializer(name, change):
    def apply(main):
        assert main.edit(INITIALIZER, change, lambda each: each.text(8) == name) == 1
    return apply


def flipped(data, at=None):
    data = bytearray(data)
    data[len(data) // 2 if at is None else at] ^= 1
    return bytes(data)


def in_attribute(each, name, number, change):
    """change(message) on field `number` of an attribute."""
    def inside(found):
        found.edit(number, change)
        return found
    assert each.edit(N_ATTRIBUTE, inside, lambda a: a.text(1) == name) == 1
    return each


def nested_body(which, change):
    """change(graph) on a branch of the If inside the If."""
    def nested(main):
        main.edit(NODE, lambda each: in_attribute(each, which, 6, change))
        return main
    return lambda each: in_attribute(each, "then_branch", 6, nested)


# --- what is spoilt ---
# (title, boundary or None for both, mutation, exit statuses, pattern that the line has to match)

def deep_alpha(main):
    main.edit(NODE, lambda each: with_attribute(each, "alpha", 2, b"\1\0\0\x3f"))
    return main


def body_weight(main):
    main.edit(INITIALIZER, lambda each: each.set(9, flipped(each.first(9))))
    return main


def last_field_behind(main):
    """The last field of the body's first node stands behind it: a field of the body that nobody knows."""
    at = next(i for i, (key, _) in enumerate(main.fields) if key >> 3 == NODE)
    inner = Message(main.fields[at][1])
    last = inner.fields.pop()
    assert last == [N_DOC << 3 | 2, b"of a node"]
    main.fields[at:at + 1] = [[main.fields[at][0], inner.bytes()], last]
    return main


def rename_in_stage(split):
    def rename(each):
        for number in (N_INPUT, N_OUTPUT):
            for place in each.fields:
                if place[0] >> 3 == number and place[1] == b"b2":
                    place[1] = b"zz"
        return each
    split.graph(1, lambda main: main.edit(NODE, rename))


def external_byte(split):
    path = split.path("stage1.onnx.data")
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(flipped(data, 100))


def swap_tags(split):
    first, second = split.manifest["transfers"][:2]
    first["tag"], second["tag"] = second["tag"], first["tag"]


def send_with_tag_of_another(split):
    other = split.transfer("a4", 0, 1)["tag"]
    split.boundary(0, "Send", "a3", lambda each: with_attribute(each, "tag", 3, other))


def drop_output(split, index, name):
    split.graph(index, lambda main: main.edit(OUTPUT, lambda _: None,
                                              lambda each: each.text(1) == name))
    rows = split.manifest["stages"][index]["outputs"]
    rows[:] = [row for row in rows if row["name"] != name]


def no_sender(split):
    """Stage 1 still receives a3; stage 0 has forgotten about it."""
    row = split.row(0, "outputs", "a3")
    if split.manifest["boundary"] == "sendrecv":
        split.boundary(0, "Send", "a3", lambda each: None)
    drop_output(split, 0, row["name"])
    split.manifest["transfers"].remove(split.transfer("a3", 0, 1))


def backward(split):
    each = split.transfer("a4", 0, 2)
    each["from"], each["to"] = 2, 0


def from_later(split):
    split.row(1, "inputs", "a3")["from"] = 2


def no_capture(split):
    """The body in stage 1 reads a3, which is no longer received there."""
    row = split.row(1, "inputs", "a3")
    split.graph(1, lambda main: main.edit(INPUT, lambda _: None,
                                          lambda each: each.text(1) == row["name"]))
    if split.manifest["boundary"] == "sendrecv":
        split.boundary(1, "Recv", "a3", lambda each: None)
    split.manifest["stages"][1]["inputs"].remove(row)


def undeclared(split):
    split.manifest.pop("duplicates")


def copy_elsewhere(split):
    """The copy is declared, in another stage than it is."""
    each = split.manifest["duplicates"][0]
    each["also"] = [2]
    split.manifest["stages"][1]["duplicated_nodes"] -= 1
    split.manifest["stages"][2]["duplicated_nodes"] += 1


def extra_transfer(split):
    again = dict(split.transfer("a3", 0, 1))
    again["tag"] = 99
    split.manifest["transfers"].append(again)


def port_with_a_name_of_the_model(split):
    row = split.row(0, "outputs", "a3")
    old = row["name"]

    def rename(each, number):
        return each.set(number, "b1")
    split.boundary(0, "Send", "a3", lambda each: rename(each, N_OUTPUT))
    split.graph(0, lambda main: main.edit(OUTPUT, lambda each: rename(each, 1),
                                          lambda each: each.text(1) == old))
    row["name"] = "b1"


def second_send(split):
    def add(main):
        send = next(each for each in map(Message, main.all(NODE)) if is_boundary(each, "Send", "a3"))
        send.set(N_OUTPUT, "a3.again")
        main.add(NODE, send)
    split.graph(0, add)


def received_type(split):
    """Stage 1 declares what it receives as another type than stage 0 sends."""
    name = split.row(1, "inputs", "a3")["name"]

    def retype(port):
        def as_int(kind):
            kind.edit(1, lambda t: t.set(1, INT64))
            return kind
        port.edit(2, as_int)
        return port
    split.graph(1, lambda main: main.edit(INPUT, retype, lambda each: each.text(1) == name))


def received_dim(split):
    name = split.row(1, "inputs", "a3")["name"]
    split.graph(1, lambda main: main.edit(INPUT, lambda port: dim_param(port, b"q"),
                                          lambda each: each.text(1) == name))


def dim_param(port, new):
    return symbolic_dims(port, lambda dim: dim.set(2, new))


def symbolic_dims(port, change):
    """change(dimension) on those of a port's dimensions that are symbols."""
    def in_shape(shape):
        assert shape.edit(1, change, lambda dim: dim.first(2) is not None) > 0
        return shape

    def in_tensor(kind):
        kind.edit(2, in_shape)
        return kind

    def in_type(kind):
        kind.edit(1, in_tensor)
        return kind
    assert port.edit(2, in_type) == 1
    return port


def declared_dim(change):
    """change(dimension) where a4 leaves stage 0, whose rows the model names."""
    def mutate(split):
        name = split.row(0, "outputs", "a4")["name"]
        split.graph(0, lambda main: main.edit(OUTPUT, lambda port: symbolic_dims(port, change),
                                              lambda each: each.text(1) == name))
    return mutate


def crossing_dim(split):
    """Both ends and the manifest agree on a dimension that the tensor does not have."""
    for index, table, number in ((0, "outputs", OUTPUT), (1, "inputs", INPUT)):
        name = split.row(index, table, "a3")["name"]
        split.graph(index, lambda main: main.edit(number, lambda port: dim_param(port, b"q"),
                                                  lambda each: each.text(1) == name))
    split.transfer("a3", 0, 1)["shape"][0] = "q"


def identity_to(op):
    def change(whole):
        def inside(each):
            each.edit(7, lambda inner: inner.set(N_OP, op))
            return each
        assert whole.edit(FUNCTIONS, inside, lambda each: each.text(10) == "psplit") >= 1
    return change


def other_function(whole):
    def inside(each):
        each.edit(7, lambda inner: inner.set(N_OP, "Sin"), lambda inner: inner.text(N_OP) == "Tanh")
        return each
    assert whole.edit(FUNCTIONS, inside, lambda each: each.text(10) == "local") == 1


def truncate(split):
    with open(split.path("stage1.onnx"), "r+b") as file:
        file.truncate(os.path.getsize(file.name) - 7)


def of_sendrecv(title, mutation, names):
    return (title, "sendrecv", mutation, (MISMATCH,), names)


def dropped(output, index):
    def mutate(split):
        split.node(index, output, lambda each: None)
        split.manifest["stages"][index]["nodes"] -= 1
    return mutate


def swapped_inputs(each):
    first, second = each.all(N_INPUT)
    return each.set(N_INPUT, second, 0).set(N_INPUT, first, 1)


def constant_byte(each):
    return in_attribute(each, "value", 5, lambda t: t.set(9, flipped(t.first(9))))


def stray_initializer(main):
    main.add(INITIALIZER, tensor_of("float[1] stray = raw {1}"))


def lost(number, text):
    """Drops the plain field `number` that holds `text`."""
    def change(each):
        before = len(each.fields)
        each.fields = [f for f in each.fields if not (f[0] >> 3 == number and f[1] == text)]
        assert len(each.fields) == before - 1
        return each
    return change


def lost_function(whole):
    assert whole.edit(FUNCTIONS, lambda _: None, lambda each: each.text(10) == "local") == 1


def replaced_function(whole):
    """The calls stay valid; what is called is not the model's."""
    lost_function(whole)
    whole.add(FUNCTIONS, function_of('<domain: "local", opset_import: ["": 17]>'
                                     "Layer (X, W) => (Y) { Y = MatMul (X, W) }"))


MUTANTS = [
    ("a dropped node that others read", None, lambda s: s.node(1, "b3", lambda _: None), (INVALID,),
     "b3"),
    ("a dropped node at the end", None, lambda s: (drop_output(s, 2, "y"), dropped("y", 2)(s)),
     (MISMATCH,), "make_y"),
    ("a wrong count of nodes", None,
     lambda s: s.manifest["stages"][0].__setitem__("nodes", 4), (MISMATCH,), "4 nodes"),
    ("an undeclared duplicate", None, undeclared, (MISMATCH,), "make_k"),
    ("a copy that is declared elsewhere", None, copy_elsewhere, (MISMATCH,), "make_k"),
    ("a wrong count of duplicates", None,
     lambda s: s.manifest["stages"][1].__setitem__("duplicated_nodes", 5), (MISMATCH,), "stage 1"),
    ("an attribute inside a nested body", None,
     lambda s: s.node(1, "b2", nested_body("then_branch", deep_alpha)), (MISMATCH,), "make_b2"),
    ("a field of a node that stands behind it", None,
     lambda s: s.node(1, "b2", lambda each: in_attribute(each, "else_branch", 6, last_field_behind)),
     (MISMATCH,), "make_b2"),
    ("a byte of an initializer of a nested body", None,
     lambda s: s.node(1, "b2", nested_body("else_branch", body_weight)), (MISMATCH,), "make_b2"),
    ("a node's inputs the other way round", None,
     lambda s: s.node(1, "b3", swapped_inputs), (MISMATCH,), "make_b3"),
    ("a node's operator", None, lambda s: s.node(0, "a3", lambda n: n.set(N_OP, "Sinh")),
     (MISMATCH,), "make_a3"),
    ("a node's name", None, lambda s: s.node(0, "a3", lambda n: n.set(N_NAME, "other")),
     (MISMATCH,), "other"),
    ("a node's doc string", None, lambda s: s.node(0, "a3", lambda n: n.set(6, "another")),
     (MISMATCH,), "make_a3"),
    ("a node's unknown field", None, lambda s: s.node(0, "a3", lost(FUTURE, b"node")), (MISMATCH,),
     "make_a3"),
    ("a value renamed throughout a stage", None, rename_in_stage, (MISMATCH,), "zz|b2"),
    ("a byte of a small inline weight", None, lambda s: s.graph(
        0, initializer("w_in", lambda t: t.set(9, flipped(t.first(9))))), (MISMATCH,), "w_in"),
    ("a byte of a large inline weight", None, lambda s: s.graph(
        2, initializer("w_big", lambda t: t.set(9, flipped(t.first(9), 1)))), (MISMATCH,), "w_big"),
    ("the bits of a NaN", None, lambda s: s.graph(
        2, initializer("w_big", lambda t: t.set(9, flipped(t.first(9), 4096)))), (MISMATCH,),
     "w_big"),
    ("a byte of an external weight", None, external_byte, (MISMATCH,), "w_ext"),
    ("a byte of a weight in an attribute", None, lambda s: s.node(0, "k", constant_byte),
     (MISMATCH,), "make_k"),
    ("the dims of a weight", None, lambda s: s.graph(
        0, initializer("w_in", lambda t: t.set(1, 4).set(1, 16, 1))), (MISMATCH,), "w_in"),
    ("an initializer that the model does not have", None, lambda s: s.graph(0, stray_initializer),
     (MISMATCH,), "stray"),
    ("an initializer that nothing in the stage reads", None,
     lambda s: s.graph(1, lambda g: g.add(
         INITIALIZER, tensor_of("float[8,8] w_fun = random(2)"))),
     (MISMATCH,), "w_fun"),
    ("a lost initializer", None,
     lambda s: s.graph(0, initializer("w_in", lambda _: None)), (INVALID,), "w_in"),
    ("a wrong `to` among the transfers", None,
     lambda s: s.transfer("a3", 0, 1).__setitem__("to", 2), (MISMATCH,), "a3"),
    ("a wrong `to` among the outputs", None,
     lambda s: s.row(0, "outputs", "a3").__setitem__("to", [2]), (MISMATCH,), "a3"),
    ("a wrong `from` among the transfers", None,
     lambda s: s.transfer("a4", 0, 2).__setitem__("from", 1), (MISMATCH,), "a4"),
    ("a wrong `from` among the inputs", None,
     lambda s: s.row(2, "inputs", "a4").__setitem__("from", 1), (MISMATCH,), "a4"),
    ("an input from a later stage", None, from_later, (MISMATCH,), "a3"),
    ("a transfer that goes backward", None, backward, (MISMATCH,), "a4"),
    ("a wrong tensor of an input", None,
     lambda s: s.row(1, "inputs", "a3").__setitem__("tensor", "a2"), (MISMATCH,), "a[23]"),
    ("an input listed twice", None,
     lambda s: s.manifest["stages"][1]["inputs"].append(dict(s.manifest["stages"][1]["inputs"][0])),
     (MISMATCH,), "twice"),
    ("a transfer listed twice", None, extra_transfer, (MISMATCH,), "a3"),
    ("a tag used twice", None,
     lambda s: s.manifest["transfers"][1].__setitem__("tag", s.manifest["transfers"][0]["tag"]),
     (MISMATCH,), "tag"),
    ("a transfer of another dtype", None,
     lambda s: s.transfer("a3", 0, 1).__setitem__("dtype", "float16"), (MISMATCH,), "a3"),
    ("a port of another type", None, received_type, (MISMATCH,), "a3"),
    ("a port with another dimension", None, received_dim, (MISMATCH,), "a3"),
    ("a dimension that both ends invent", None, crossing_dim, (MISMATCH,), "a3"),
    ("a transfer of another shape", None,
     lambda s: s.transfer("a3", 0, 1).__setitem__("shape", ["n", 9]), (MISMATCH,), "a3"),
    ("a transfer of no shape", None,
     lambda s: s.transfer("a3", 0, 1).__setitem__("shape", None), (MISMATCH,), "a3"),
    ("a declared symbol that is another", None, declared_dim(lambda dim: dim.set(2, "n")),
     (MISMATCH,), "a4.*shape that is not the model's"),
    ("a declared symbol that is lost", None, declared_dim(lambda dim: dim.drop(2)),
     (MISMATCH,), "a4.*shape that is not the model's"),
    ("a denotation that is lost", None, declared_dim(lambda dim: dim.drop(3)),
     (MISMATCH,), "a4.*shape that is not the model's"),
    ("a denotation that is another", None, declared_dim(lambda dim: dim.set(3, "DATA_TIME")),
     (MISMATCH,), "a4.*shape that is not the model's"),
    ("a shape that is none", None,
     lambda s: s.transfer("a3", 0, 1).__setitem__("shape", [-1]), (INVALID,), "shape"),
    ("another dtype of an input in the manifest", None,
     lambda s: s.manifest["inputs"][0].__setitem__("dtype", "float16"), (MISMATCH,), '"x"'),
    ("another shape of an input in the manifest", None,
     lambda s: s.manifest["inputs"][0].__setitem__("shape", [8]), (MISMATCH,), '"x"'),
    ("another symbol of an output in the manifest", None,
     lambda s: s.manifest["outputs"][0]["shape"].__setitem__(0, "m"), (MISMATCH,), '"b3"'),
    ("a tensor that nobody sends", None, no_sender, (MISMATCH,), "a3"),
    ("a missing capture", None, no_capture, (MISMATCH, INVALID), "a3"),
    ("stages in another order", None, lambda s: (
        s.manifest["stages"][0].__setitem__("file", "stage1.onnx"),
        s.manifest["stages"][1].__setitem__("file", "stage0.onnx")), (MISMATCH,), "stage 0"),
    ("a lost function", None, lambda s: s.stage(1, lost_function), (MISMATCH,), "function"),
    ("another body of a function", None, lambda s: s.stage(0, other_function), (MISMATCH,),
     "function"),
    ("another function of the same name", None, lambda s: s.stage(0, replaced_function),
     (MISMATCH,), "function"),
    ("another opset import", None, lambda s: s.stage(0, lambda m: m.edit(
        OPSETS, lambda o: o.set(2, 16), lambda o: o.text(1) == "")), (MISMATCH,), "opset"),
    ("one opset import more", None, lambda s: s.stage(0, lambda m: m.add(OPSETS, opset_of('"more": 1'))),
     (MISMATCH,), "opset"),
    ("another IR version", None, lambda s: s.stage(0, lambda m: m.set(IR, 7)), (MISMATCH,),
     "ir_version"),
    ("other metadata", None, lambda s: s.stage(0, lambda m: m.edit(
        METADATA, lambda each: each.set(2, "other"))), (MISMATCH,), "metadata"),
    ("lost metadata", None, lambda s: s.stage(2, lambda m: m.drop(METADATA)), (MISMATCH,),
     "metadata"),
    ("a lost unknown field of the model", None, lambda s: s.stage(1, lost(FUTURE, b"model")),
     (MISMATCH,), "4000"),
    ("a lost unknown field of the graph", None, lambda s: s.graph(1, lost(FUTURE, b"graph")),
     (MISMATCH,), "4000"),
    ("another doc string of the graph", None, lambda s: s.graph(1, lambda g: g.set(10, "other")),
     (MISMATCH,), "doc_string"),
    ("a lost output of the model", None, lambda s: drop_output(s, 1, "b3"), (MISMATCH,), "b3"),
    ("an output that the manifest forgets", None, lambda s: s.manifest["outputs"].pop(),
     (MISMATCH,), "outputs"),
    ("outputs in another order", None, lambda s: s.manifest["outputs"].reverse(), (MISMATCH,),
     "b3|y"),
    ("an input that the manifest forgets", None, lambda s: s.manifest["inputs"].pop(0),
     (MISMATCH,), '"x"'),
    ("an input that the model does not have", None,
     lambda s: s.manifest["inputs"].append(dict(s.manifest["inputs"][0], name="more")),
     (MISMATCH,), '"more"'),
    ("another dimension of an input", None, lambda s: s.graph(0, lambda g: g.edit(
        INPUT, lambda port: dim_param(port, b"m"), lambda each: each.text(1) == "x")), (MISMATCH,),
     '"x"'),
    ("another dimension of an output", None, lambda s: s.graph(2, lambda g: g.edit(
        OUTPUT, lambda port: dim_param(port, b"m"), lambda each: each.text(1) == "y")), (MISMATCH,),
     '"y"'),
    ("a lost value_info", None, lambda s: s.graph(0, lambda g: g.edit(
        VALUE_INFO, lambda _: None, lambda each: each.text(1) == "a1")), (MISMATCH,), "a1"),
    ("another value_info", None, lambda s: s.graph(0, lambda g: g.edit(
        VALUE_INFO, lambda info: dim_param(info, b"m"), lambda each: each.text(1) == "a1")),
     (MISMATCH,), "a1"),
    ("a lost quantization annotation", None, lambda s: s.graph(2, lambda g: g.drop(ANNOTATION)),
     (MISMATCH,), "b4"),
    ("another quantization annotation", None, lambda s: s.graph(1, lambda g: g.edit(
        ANNOTATION, lambda a: a.set(1, "b1"))), (MISMATCH,), "b1|b4"),
    ("a missing stage file", None, lambda s: os.remove(s.path("stage1.onnx")), (FILE,),
     "stage1.onnx"),
    ("a missing data file", None, lambda s: os.remove(s.path("stage1.onnx.data")), (FILE,),
     "stage1.onnx.data"),
    ("a truncated stage", None, truncate, (INVALID,), "stage1.onnx"),
    ("a missing manifest", None, lambda s: setattr(s, "manifest", None), (FILE,), "pipeline.json"),
    ("another version of the manifest", None, lambda s: s.manifest.__setitem__("version", 2),
     (UNSUPPORTED,), "version"),
    ("another format", None, lambda s: s.manifest.__setitem__("format", "other"), (UNSUPPORTED,),
     "format"),
    ("a path as a file's name", None,
     lambda s: s.manifest["stages"][0].__setitem__("file", "../x"), (INVALID,), r"\.\./x"),
    ("one stage less", None, lambda s: s.manifest["stages"].pop(), (MISMATCH, INVALID),
     "stage|from|to|transfers"),
    ("the wrong boundary", None, lambda s: s.manifest.__setitem__(
        "boundary", "io" if s.manifest["boundary"] == "sendrecv" else "sendrecv"), (MISMATCH,),
     "stage 0"),
    of_sendrecv("swapped tags", swap_tags, "stage 0"),
    of_sendrecv("a Send with the tag of another", send_with_tag_of_another, "a3"),
    of_sendrecv("a Send to another peer", lambda s: s.boundary(
        0, "Send", "a3", lambda n: with_attribute(n, "peer", 3, 2)), "a3"),
    of_sendrecv("a Recv from another peer", lambda s: s.boundary(
        1, "Recv", "a3", lambda n: with_attribute(n, "peer", 3, 2)), "a3"),
    of_sendrecv("a Recv that says another tensor", lambda s: s.boundary(
        1, "Recv", "a3", lambda n: with_attribute(n, "tensor", 4, "a2")), "a[23]"),
    of_sendrecv("a Send that says another dtype", lambda s: s.boundary(
        0, "Send", "a3", lambda n: with_attribute(n, "dtype", 3, INT64)), "a3"),
    of_sendrecv("a Send of another value", lambda s: s.boundary(
        0, "Send", "a3", lambda n: n.set(N_INPUT, "a2")), "a[23]"),
    of_sendrecv("two Sends for one transfer", second_send, "a3"),
    of_sendrecv("a port with a name of the model", port_with_a_name_of_the_model, r"a3\.send1"),
    of_sendrecv("a boundary function that computes", lambda s: s.stage(0, identity_to("Neg")),
                   "function"),
    of_sendrecv("a lost boundary function", lambda s: s.stage(0, lambda m: m.edit(
        FUNCTIONS, lambda _: None, lambda each: each.text(10) == "psplit")), "Send"),
]


# --- running ---

def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def check(tap, title, result, statuses, named):
    errors = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    good = (result.returncode in statuses and not result.stdout and len(errors) == 1
            and len(result.stderr.splitlines()) == 1 and re.search(named, errors[0]))
    tap.ok(good, title, f"exit status {result.returncode}, wanted one of {statuses} and a line "
           f"that names {named}\n{result.stdout}{result.stderr}")


def split(tap, tool, path, directory, boundary, pins, stages, *options):
    pinned = [word for pin in pins for word in ("--pin", pin)]
    result = run(tool, path, "-k", str(stages), "-o", directory, "--boundary", boundary, "-q",
                 *pinned, *options)
    return tap.ok(result.returncode == 0, f"{os.path.basename(path)} is split with {boundary}",
                  result.stderr)


def spoil_all(tap, tools, path, tmp, boundary):
    whole = os.path.join(tmp, "split-" + boundary)
    pins = ["make_a*=0", "make_b*=1", "make_c*=2", "make_y=2"]
    # per tensor nothing is passed on: a tensor skips a stage
    if split(tap, tools[0], path, whole, boundary, pins, 3, "--message-latency", "per-tensor"):
        spoil(tap, tools, path, tmp, whole, boundary, MUTANTS)


def spoil(tap, tools, path, tmp, whole, boundary, mutants):
    """Each of `mutants`, of the good split in `whole`, is noticed."""
    result = run(tools[1], whole, "--model", path)
    tap.ok(result.returncode == 0 and len(result.stdout.splitlines()) == 1 and not result.stderr,
           f"{boundary}: nothing spoilt", result.stderr)
    for title, only, mutate, statuses, named in mutants:
        if only not in (None, boundary):
            continue
        directory = os.path.join(tmp, "mutant")
        shutil.copytree(whole, directory)
        mutant = Split(directory, path)
        try:
            mutate(mutant)
            if mutant.manifest is None:
                os.remove(mutant.path("pipeline.json"))
            else:
                mutant.done()
        except Exception as error:  # a mutation that finds nothing to spoil shows nothing
            tap.ok(False, f"{boundary}: {title}", f"{type(error).__name__}: {error}")
        else:
            check(tap, f"{boundary}: {title}", run(tools[1], directory, "--model", path), statuses,
                  named)
        shutil.rmtree(directory)


def copied_operator(tap, tools, tmp, op, domain, good):
    """Stage 1 computes r again instead of receiving it: right for a function of its inputs only."""
    path = os.path.join(tmp, f"{op}.onnx")
    model_file(path, """(float[n,8] x) => (float[n,8] y, float[n,8] z) <float[n,8] r> {
      [make_r] r = %s (x)
      [make_y] y = Add (r, x)
      [make_z] z = Mul (r, x)
    }""" % (f"{domain}.{op}" if domain else op), domain)
    directory = os.path.join(tmp, f"{op}-split")
    if not split(tap, tools[0], path, directory, "io", ["make_r=0", "make_y=0", "make_z=1"], 2):
        return
    mutant = Split(directory, path)
    stages = mutant.manifest["stages"]
    if not mutant.manifest.get("duplicates"):
        copied = Message(load(path).first(GRAPH)).all(NODE)[0]
        mutant.graph(1, lambda g: (
            g.edit(INPUT, lambda _: None, lambda each: each.text(1) == "r"),
            g.add(VALUE_INFO, value_of("float[n,8] r")), g.fields.insert(0, [NODE << 3 | 2, copied])))
        mutant.graph(0, lambda g: (
            g.edit(OUTPUT, lambda _: None, lambda each: each.text(1) == "r"),
            g.drop(VALUE_INFO), g.add(VALUE_INFO, value_of("float[n,8] r"))))
        stages[1]["inputs"] = [row for row in stages[1]["inputs"] if row["tensor"] != "r"]
        stages[0]["outputs"] = [row for row in stages[0]["outputs"] if row["tensor"] != "r"]
        mutant.manifest["transfers"] = []
        stages[1]["nodes"] += 1
        stages[1]["duplicated_nodes"] += 1
        mutant.manifest["duplicates"] = [{"index": 0, "node": "make_r", "stage": 0, "also": [1]}]
    mutant.done()
    result = run(tools[1], directory, "--model", path)
    if good:
        tap.ok(result.returncode == 0, f"a declared copy of {op}", result.stderr)
    else:
        check(tap, f"a declared copy of {op}", result, (MISMATCH,), "make_r")


# h goes from stage 0 to 2 by way of 1, which does not read it.

def relay_computes(split):
    """Stage 1 sends what it made of h, under its name."""
    def change(main):
        main.edit(NODE, lambda each: each.set(N_OUTPUT, "h.in"),
                  lambda each: is_boundary(each, "Recv", "h"))
        main.add(NODE, node_of('[make_h] h = Neg ("h.in")'))
    split.graph(1, change)
    split.manifest["stages"][1]["nodes"] += 1


def relay_skipped(split):
    """Stage 2 says that it gets h from stage 0, which sends it to stage 1 alone."""
    split.row(2, "inputs", "h")["from"] = 0


def relay_of_another(split):
    """Stage 1 passes a on where stage 2 waits for h."""
    if split.manifest["boundary"] == "sendrecv":
        split.boundary(1, "Send", "h", lambda each: each.set(N_INPUT, "a"))
    else:
        name = split.row(1, "outputs", "h")["name"]
        split.graph(1, lambda main: main.edit(OUTPUT, lambda each: each.set(1, "a0"),
                                              lambda each: each.text(1) == name))
        split.row(1, "outputs", "h")["name"] = "a0"


def relay_without_source(split):
    """Stage 1 sends h, which it no longer receives."""
    row = split.row(1, "inputs", "h")
    split.graph(1, lambda main: main.edit(INPUT, lambda _: None,
                                          lambda each: each.text(1) == row["name"]))
    if split.manifest["boundary"] == "sendrecv":
        split.boundary(1, "Recv", "h", lambda each: None)
    split.manifest["stages"][1]["inputs"].remove(row)


RELAYED = [
    of_sendrecv("a relay that computes", relay_computes, r"\"h\.in\""),
    ("a relay that is passed by", None, relay_skipped, (MISMATCH,), '"h"'),
    ("a relay of another tensor", None, relay_of_another, (MISMATCH,), '"h"|"a"|a0'),
    ("a relay without a source", None, relay_without_source, (MISMATCH, INVALID), '"h'),
    ("a hop of another size", None,
     lambda s: s.transfer("h", 1, 2).__setitem__("bytes", 97), (MISMATCH,), "96 bytes"),
    ("a hop that is not listed", None,
     lambda s: s.manifest["transfers"].remove(s.transfer("h", 1, 2)), (MISMATCH,), '"h"'),
]


def relays(tap, tools, tmp):
    path = os.path.join(tmp, "relayed.onnx")
    model_file(path, """(float[3,8] x) => (float[3,8] y)
    <float[3,8] h, float[3,8] h2, float[3,8] a0, float[3,8] a> {
      [make_h] h = Tanh (x)
      [make_a0] a0 = Tanh (h2)
      [make_h2] h2 = Sin (x)
      [make_a] a = Sin (a0)
      [make_y] y = Add (a, h)
    }""")
    devices = os.path.join(tmp, "chain.json")
    with open(devices, "w") as file:
        json.dump({"devices": [{"name": name, "preset": "cpu"} for name in "abc"],
                   "topology": {"same_host": {"bytes_per_second": 0}},
                   "links": [{"from": "a", "to": "b", "bytes_per_second": 1e9},
                             {"from": "b", "to": "c", "bytes_per_second": 1e9}]}, file)
    for boundary in ("sendrecv", "io"):
        whole = os.path.join(tmp, "relayed-" + boundary)
        pins = ["make_h*=0", "make_a*=1", "make_y=2"]
        if split(tap, tools[0], path, whole, boundary, pins, 3, "--devices", devices):
            spoil(tap, tools, path, tmp, whole, boundary, RELAYED)


def from_other_branch(name):
    """The stage that holds the branch's last Sinh computes what the other branch would."""
    def mutate(split):
        index = next(i for i in range(2) if any(
            name.encode() in Message(raw).all(N_OUTPUT) and Message(raw).text(N_OP) == "Sinh"
            for raw in Message(load(split.path(f"stage{i}.onnx")).first(GRAPH)).all(NODE)))
        split.node(index, name, lambda each: each.set(N_OP, "Cosh"))
    return mutate


def of_inlined(key, new):
    return lambda split: split.manifest["inlined"][0].__setitem__(key, new)


def of_branch(last):
    """Of a branch whose first value is t1 and whose last, its output, has this name."""
    return [
        ("the other branch of an inlined If", None, of_inlined("branch", "else"), (MISMATCH,), ""),
        ("another condition of an inlined If", None, of_inlined("condition", "x"), (MISMATCH,),
         "make_y"),
        ("an assumption that is not told", None, of_inlined("assumed", False), (MISMATCH,), "flag"),
        ("an inlined If that is not told", None, lambda s: s.manifest.pop("inlined"), (MISMATCH,),
         "t[12]"),
        ("an inlined If that the model does not have", None, of_inlined("node", "other"),
         (MISMATCH,), "other"),
        ("a branch that is none", None, of_inlined("branch", "both"), (INVALID,), "inlined"),
        ("a node of the other branch", None, from_other_branch(last), (MISMATCH,), "make_" + last),
    ]


def inlined(tap, tools, tmp, then_last, else_last):
    """A branch's output has a name of its own, or that of the If's output, and is then that value."""
    path = os.path.join(tmp, "inlined.onnx")

    def branch(op, names):
        return """() => (float[n,8] %s) {
          [make_%s] %s = %s (x)
          [make_%s] %s = %s (%s)
        }""" % (names[1], names[0], names[0], op, names[1], names[1], op, names[0])
    model_file(path, """(float[n,8] x, bool flag) => (float[n,8] y) {
      [make_y] y = If (flag) <then_branch = %s, else_branch = %s>
    }""" % (branch("Sinh", ["t1", then_last]), branch("Cosh", ["e1", else_last])))
    for boundary in ("sendrecv", "io"):
        whole = os.path.join(tmp, "inlined-" + boundary)
        if split(tap, tools[0], path, whole, boundary, [], 2, "--inline-if", "make_y=then"):
            spoil(tap, tools, path, tmp, whole, boundary, of_branch(then_last))
        shutil.rmtree(whole, ignore_errors=True)


def foreign_boundary(tap, tools, path, tmp):
    """The model has a psplit::Send of its own, which negates; the split's Send nodes call it."""
    directory = os.path.join(tmp, "foreign")
    if not split(tap, tools[0], path, directory, "sendrecv",
                 ["make_a*=0", "make_b*=1", "make_c*=2", "make_y=2"], 3):
        return
    negate = function_of('<domain: "psplit", opset_import: ["": 17]> Send (x) => (y) { y = Neg (x) }')
    other = load(path).add(OPSETS, opset_of('"psplit": 1')).add(FUNCTIONS, negate)
    other_path = os.path.join(os.path.dirname(path), "foreign.onnx")
    save(other, other_path)
    mutant = Split(directory, path)

    def replace(whole):
        whole.edit(FUNCTIONS, lambda _: None,
                   lambda each: (each.text(10), each.text(1)) == ("psplit", "Send"))
        whole.edit(OPSETS, lambda _: None, lambda each: each.text(1) == "psplit")
        receives = [raw for raw in whole.all(FUNCTIONS) if Message(raw).text(10) == "psplit"]
        whole.edit(FUNCTIONS, lambda _: None, lambda each: each.text(10) == "psplit")
        whole.add(OPSETS, opset_of('"psplit": 1')).add(FUNCTIONS, negate)
        for raw in receives:
            whole.add(FUNCTIONS, raw)
    for index in range(3):
        mutant.stage(index, replace)
    mutant.done()
    check(tap, "a function of the model behind Send",
          run(tools[1], directory, "--model", other_path), (MISMATCH,), "Send")
    os.remove(other_path)


def before_it_appears(tap, tools, path, tmp):
    """--verify: the proof comes before the directory."""
    for weights in ("auto", "inline", "external", "reference"):
        for boundary in ("sendrecv", "io"):
            beside = os.path.join(tmp, "beside")
            os.mkdir(beside)
            for name in ("model.onnx", "weights.bin"):
                shutil.copy(os.path.join(tmp, name), beside)
            out = beside if weights == "reference" else os.path.join(beside, "out")
            copy = os.path.join(beside, "model.onnx")
            result = run(tools[0], copy, "-k", "3", "-o", out, "--verify", "--weights", weights,
                         "--boundary", boundary)
            again = run(tools[1], out, "--model", copy)
            tap.ok(result.returncode == 0 and result.stdout.endswith(
                "\nverified: the stages together are the model\n") and again.returncode == 0,
                f"--verify with --weights {weights} --boundary {boundary}",
                result.stderr + again.stderr)
            shutil.rmtree(beside)
    before = sorted(os.listdir(tmp))
    result = run(tools[2], path, os.path.join(tmp, "never"))
    check(tap, "a split that is spoilt before it is proved", result, (MISMATCH, INVALID), "stage1?")
    tap.ok(sorted(os.listdir(tmp)) == before, "it never appears and leaves nothing",
           sorted(os.listdir(tmp)))
    result = run(tools[0], path, "-k", "2", "--plan-only", "--verify")
    tap.ok(result.returncode == 2, "--verify without a directory is a mistake", result.stderr)


def main():
    tools = sys.argv[1:4]
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="psplit-mutants-") as tmp:
        path = build(tmp)
        for boundary in ("sendrecv", "io"):
            spoil_all(tap, tools, path, tmp, boundary)
        copied_operator(tap, tools, tmp, "Tanh", None, True)
        copied_operator(tap, tools, tmp, "RandomNormalLike", None, False)
        copied_operator(tap, tools, tmp, "Dropout", None, False)
        copied_operator(tap, tools, tmp, "Mystery", "unheard.of", False)
        relays(tap, tools, tmp)
        inlined(tap, tools, tmp, "t2", "e2")
        inlined(tap, tools, tmp, "y", "y")
        foreign_boundary(tap, tools, path, tmp)
        before_it_appears(tap, tools, path, tmp)
        result = run(tools[1], tmp, "--model", os.path.join(tmp, "no.onnx"))
        check(tap, "a missing model", result, (FILE,), "no.onnx")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
