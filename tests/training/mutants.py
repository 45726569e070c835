#!/usr/bin/env python3
"""Does onnx-pipeline-verify notice what is wrong with stages that train? mutants.py SPLIT VERIFY

Splits a model for training, changes one thing after the other in each of its files and in the
manifest's object "training", and wants each told: exit status 1 (4 or 5 where a file is bad by
itself, 3 where it is gone) and one `error:` line. What is not changed has to pass. Results as TAP.
"""
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "verify")]
from tap import Tap, small_files  # noqa: E402
from text_model import make  # noqa: E402
from wire import Message  # noqa: E402

# Keys of length-delimited fields: of ModelProto and GraphProto, NodeProto, TensorProto,
# ValueInfoProto.
GRAPH, NODE, INITIALIZER, INPUT, OUTPUT = (n << 3 | 2 for n in (7, 1, 5, 11, 12))
N_INPUT, N_OP, N_ATTRIBUTE, N_DOMAIN = (n << 3 | 2 for n in (1, 4, 5, 7))
RAW, NAME = 9 << 3 | 2, 1 << 3 | 2
MUTANTS = 300

MODEL = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,8] x, int64[n] order) => (float[n,4] y) <
  float[8,8] w1 = random(1), float[8] b1 = random(2), float[8,8] w2 = random(3),
  float[8] scale = random(4), float[8] shift = random(5), float[8,4] w3 = random(6)
> {
  [m1] p1 = MatMul (x, w1)
  [a1] s1 = Add (p1, b1)
  [t1] h1 = Tanh (s1)
  [m2] p2 = MatMul (h1, w2)
  [g2] q2 = Gather (p2, order)
  [e2] h2 = Sigmoid (q2)
  [r2] r2 = Add (h2, h1)
  [l3] n3 = LayerNormalization (r2, scale, shift)
  [m3] y0 = MatMul (n3, w1)
  [t3] y1 = Tanh (y0)
  [m4] y = MatMul (y1, w3)
}
"""
PINS = {"m1": 0, "a1": 0, "t1": 0, "m2": 1, "g2": 1, "e2": 1, "r2": 1, "l3": 2, "m3": 2, "t3": 2, "m4": 2}
OTHER = {"Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "Tanh": "Sigmoid", "MatMul": "Add"}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def load(path):
    with open(path, "rb") as file:
        return file.read()


def save(path, data):
    with open(path, "wb") as file:
        file.write(data)


# --- changes of a model: each takes the graph's fields and a source of numbers, and gives the
# changed fields or None where there is nothing to change ---

def positions(fields, number):
    return [i for i, (field, _) in enumerate(fields) if field == number]


def pick(source, items):
    return items[source.randrange(len(items))] if items else None


def changed_node(source, fields, change):
    """Changes a node by its fields; tries all, from one on."""
    nodes = positions(fields, NODE)
    source.shuffle(nodes)
    for at in nodes:
        node = change(source, list(Message(fields[at][1]).fields))
        if node is not None:
            whole = Message(b"")
            whole.fields = node
            return fields[:at] + [(NODE, whole.bytes())] + fields[at + 1:]
    return None


def drop(number):
    def change(source, fields):
        at = pick(source, positions(fields, number))
        return None if at is None else fields[:at] + fields[at + 1:]
    return change


def twice(number):
    def change(source, fields):
        at = pick(source, positions(fields, number))
        return None if at is None else fields[:at] + [fields[at]] + fields[at:]
    return change


def other_operator(source, fields):
    def change(_, node):
        for i, (field, value) in enumerate(node):
            if field == N_OP and value.decode() in OTHER:
                return node[:i] + [(N_OP, OTHER[value.decode()].encode())] + node[i + 1:]
        return None
    return changed_node(source, fields, change)


def swapped_inputs(source, fields):
    def change(_, node):
        inputs = [i for i, (field, _) in enumerate(node) if field == N_INPUT]
        if len(inputs) < 2 or node[inputs[0]][1] == node[inputs[1]][1]:
            return None
        node[inputs[0]], node[inputs[1]] = node[inputs[1]], node[inputs[0]]
        return node
    return changed_node(source, fields, change)


def other_input(source, fields):
    names = sorted({value for field, raw in fields if field == NODE
                    for each, value in Message(raw).fields if each == N_INPUT})

    def change(numbers, node):
        inputs = [i for i, (field, value) in enumerate(node) if field == N_INPUT and value]
        at = pick(numbers, inputs)
        others = [name for name in names if at is not None and name != node[at][1]]
        if not others:
            return None
        return node[:at] + [(N_INPUT, pick(numbers, others))] + node[at + 1:]
    return changed_node(source, fields, change)


def lost_attribute(source, fields):
    """Those of boundary nodes that say a tensor's type may be left out."""
    def change(numbers, node):
        if (N_DOMAIN, b"psplit") in map(tuple, node):
            return None
        at = pick(numbers, [i for i, (field, _) in enumerate(node) if field == N_ATTRIBUTE])
        return None if at is None else node[:at] + node[at + 1:]
    return changed_node(source, fields, change)


def other_number(source, fields):
    """A bit of an initializer's data."""
    at = pick(source, [i for i in positions(fields, INITIALIZER) if Message(fields[i][1]).first(RAW >> 3)])
    if at is None:
        return None
    tensor = Message(fields[at][1])
    for i, (field, value) in enumerate(tensor.fields):
        if field == RAW:
            data = bytearray(value)
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
            tensor.fields[i] = (RAW, bytes(data))
    return fields[:at] + [(INITIALIZER, tensor.bytes())] + fields[at + 1:]


def renamed_port(number):
    def change(source, fields):
        at = pick(source, positions(fields, number))
        if at is None:
            return None
        port = Message(fields[at][1])
        port.fields = [(f, v + b"_" if f == NAME else v) for f, v in port.fields]
        return fields[:at] + [(number, port.bytes())] + fields[at + 1:]
    return change


CHANGES = {
    "a node is gone": drop(NODE), "a node stands twice": twice(NODE), "an input is gone": drop(INPUT),
    "an output is gone": drop(OUTPUT), "an initializer is gone": drop(INITIALIZER),
    "another operator": other_operator, "inputs in another order": swapped_inputs,
    "another input": other_input, "an attribute is gone": lost_attribute, "another number": other_number,
    "an input of another name": renamed_port(INPUT), "an output of another name": renamed_port(OUTPUT),
}


def spoil_file(path, source):
    """Changes a model in one way that is possible; its name, or None."""
    names = sorted(CHANGES)
    source.shuffle(names)
    whole = Message(load(path))
    graph = Message(whole.first(GRAPH >> 3))
    for name in names:
        fields = CHANGES[name](source, list(graph.fields))
        if fields is None:
            continue
        graph.fields = fields
        whole.fields = [(f, graph.bytes() if f == GRAPH else v) for f, v in whole.fields]
        save(path, whole.bytes())
        return name
    return None


# --- changes of the manifest ---

# What says how long things take, and what types are for readers alone: nothing rests on them.
FREE = {"forward_ns", "again_ns", "backward_ns", "weight_gradients_ns", "stash_bytes", "recompute", "dtype", "shape", "node",
        "nodes_ns"}


def places(value, path=()):
    """Paths of all leaves and lists under "training"."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in FREE:
                yield from places(each, path + (key,))
    elif isinstance(value, list):
        if value:
            yield path
        for i, each in enumerate(value):
            yield from places(each, path + (i,))
    else:
        yield path


def at(value, path):
    for key in path:
        value = value[key]
    return value


def spoil_manifest(manifest, path, source):
    """One change at a place; what it is now."""
    parent, key = at(manifest, path[:-1]), path[-1]
    value = parent[key]
    if isinstance(value, list):
        del value[source.randrange(len(value))]
    elif isinstance(value, bool):
        parent[key] = not value
    elif isinstance(value, int):
        parent[key] = (value + 1) % 3
    elif isinstance(value, str):
        parent[key] = value + "_"
    else:
        parent[key] = "something"
    return json.dumps(parent[key])[:60]


def told(result):
    return result.returncode in (1, 3, 4, 5) and result.stderr.startswith("error: ") and \
        result.stderr.count("\n") == 1


def check_all(tap, tools, tmp, model, options):
    good = os.path.join(tmp, "good")
    pins = [part for name, stage in PINS.items() for part in ("--pin", f"{name}={stage}")]
    made = run(tools[0], model, "-k", "3", "-o", good, "--force", "--training", "--quiet",
               "--loss", "mse:target=t", *pins, *options)
    label = " ".join(options)
    tap.ok(made.returncode == 0, f"split with {label}", made.stderr)
    proof = run(tools[1], good, "--model", model)
    tap.ok(proof.returncode == 0, "it is proved", proof.stderr)
    bad = os.path.join(tmp, "bad")
    manifest = json.loads(load(os.path.join(good, "pipeline.json")))
    files = sorted(name for name in os.listdir(good) if name.endswith(".onnx"))
    missed = []
    for number in range(MUTANTS):
        source = random.Random(f"{label} {number}")
        shutil.copytree(good, bad)
        name = files[number % len(files)]
        what = spoil_file(os.path.join(bad, name), source)
        result = run(tools[1], bad, "--model", model)
        if what and not told(result):
            missed.append(f"{number}: {name}: {what}: {result.returncode} {result.stderr}")
        shutil.rmtree(bad)
    tap.ok(not missed, f"{MUTANTS} changes of {len(files)} files are told", "\n".join(missed[:9]))
    missed = []
    for name in files:
        for make_odd in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
            shutil.copytree(good, bad)
            os.remove(os.path.join(bad, name))
            make_odd(os.path.join(bad, name))
            result = run(tools[1], bad, "--model", model)
            if result.returncode != 3 or not told(result) or name not in result.stderr:
                missed.append(f"{name}: {result.returncode} {result.stderr}")
            shutil.rmtree(bad)
    tap.ok(not missed, f"{len(files)} files that are none are told", "\n".join(missed[:9]))
    missed, n = [], 0
    shutil.copytree(good, bad)
    for path in places(manifest["training"], ("training",)):
        spoilt = copy.deepcopy(manifest)
        now = spoil_manifest(spoilt, path, random.Random(str(path)))
        save(os.path.join(bad, "pipeline.json"), json.dumps(spoilt).encode())
        result = run(tools[1], bad, "--model", model)
        n += 1
        if not told(result):
            missed.append(f"{'.'.join(map(str, path))}: {now}: {result.returncode} {result.stderr}")
    shutil.rmtree(bad)
    tap.ok(not missed, f"{n} changes of the manifest are told", "\n".join(missed[:25]))


def main():
    tools = sys.argv[1:3]
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="psplit-mutants-", dir=small_files()) as tmp:
        model = os.path.join(tmp, "model.onnx")
        save(model, make(MODEL))
        check_all(tap, tools, tmp, model, ["--trained-weights", "input", "--recompute", "heavy", "--boundary", "io"])
        check_all(tap, tools, tmp, model, ["--recompute", "none", "--optimizer", "momentum", "--gradient-of", "x"])
        check_all(tap, tools, tmp, model, ["--recompute", "all", "--weight-gradients", "apart", "--gradient-of", "x"])
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
