#!/usr/bin/env python3
"""Does onnx-pipeline-verify notice what is spoilt in stages that train?
training_changes.py SPLIT VERIFY [STRIDE]

Splits a small model for training in several ways, and spoils each split in one place after the other:
every node, attribute, constant, initializer, input and output of every file, and every entry of the
object "training" but its times. Each has to be told: exit status 1 (or 3, 4, 5 where a file itself
is bad) and one `error:` line that names the file, the stage or the thing. With a STRIDE, every
STRIDE-th of these mutations alone. Results as TAP.
"""
import copy
import json
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from mutants import (GRAPH, INITIALIZER, INPUT, N_ATTRIBUTE, N_INPUT, N_NAME, N_OP,  # noqa: E402
                     N_OUTPUT, NODE, OPSETS, OUTPUT, Tap, flipped, load, node_of, opset_of, run,
                     save, tensor_of)
from tap import small_files  # noqa: E402
from text_model import make  # noqa: E402
from wire import Message  # noqa: E402

MODEL = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,8] x) => (float[n,4] y) <
  float[8,16] w1 = random(1), float[16] b1 = random(2), float[16,16] w2 = random(3),
  float[16] b2 = random(4), float[16] g = random(5), float[16] h = random(6),
  float[16,4] w3 = random(7), float[4] c = random(8), float[4] frozen = random(9),
  float[4] g4 = random(11), float[4] h4 = random(12), float[4] mean = {0, 0, 0, 0}, float[4] variance = {1, 1, 1, 1}
> {
  [m1] m1 = MatMul (x, w1)
  [a1] a1 = Add (m1, b1)
  [r1] r1 = Sigmoid (a1)
  [m2] m2 = MatMul (r1, w2)
  [a2] a2 = Add (m2, b2)
  [s2] s2 = Add (a2, r1)
  [n2] n2 = LayerNormalization <axis = -1, epsilon = 0.001> (s2, g, h)
  [r2] r2 = Tanh (n2)
  [m3] m3 = MatMul (r2, w2)
  [q3] q3 = Mul (m3, r1)
  [m4] m4 = MatMul (q3, w3)
  [k] k = Constant <value = float[4] "" = random(10)> ()
  [n4] n4, next_mean, next_variance = BatchNormalization <training_mode = 1> (m4, g4, h4, mean, variance)
  [z4] z4 = Mul (n4, c)
  [k4] k4 = Add (z4, k)
  [y] y = Mul (k4, frozen)
}
"""
# The same with what is drawn; a size of the last mask is a product.
MASKED = """
<ir_version: 8, opset_import: ["": 17]>
main (float[n,m,8] x) => (float[rows,4] y) <
  float[8,8] w1 = random(1), float[8,8] w2 = random(2), float[8,4] w3 = random(3), float[8] frozen = random(4),
  float[8] s = random(5), float[8] b = random(6), float[8] mean = random(7), float[8] var = raw {1, 1, 1, 1, 1, 1, 1, 1},
  float ratio = {0.25}, bool yes = {1}, int64[2] flat = {-1, 8}
> {
  [m1] m1 = MatMul (x, w1)
  [d1] d1, kept = Dropout (m1, ratio, yes)
  [c1] c1 = Cast <to = 1> (kept)
  [r1] r1 = Mul (d1, c1)
  [n2] n2 = RandomNormalLike <mean = 0.5, scale = 0.25> (r1)
  [a2] a2 = Add (r1, n2)
  [m2] m2 = MatMul (a2, w2)
  [s2] s2 = Sigmoid (m2)
  [k2] k2 = Bernoulli (s2)
  [q2] q2 = Mul (m2, k2)
  [u2] u2 = RandomUniform <low = 1.0, high = 3.0, shape = [8]> ()
  [z2] z2 = Mul (q2, u2)
  [f3] f3 = Reshape (z2, flat)
  [b3] b3 = BatchNormalization (f3, s, b, mean, var)
  [d3] d3 = Dropout (b3, ratio)
  [z3] z3 = Mul (d3, frozen)
  [m3] y = MatMul (z3, w3)
}
"""
MASKED_PINS = ["m1=0", "d1=0", "n2=0", "m2=1", "k2=1", "u2=1", "b3=1", "d3=2", "m3=2"]
PINS = ["m1=0", "a1=0", "r1=0", "m2=0", "n2=1", "r2=1", "m3=1", "q3=1", "m4=2", "y=2"]
# boundary, weights, recompute, optimizer; cuts through a residual and between readers of w2.
SPLITS = [
    ("sendrecv", "default", "heavy", "adamw:weight_decay=0.05"),
    ("io", "input", "all", "momentum:nesterov=1"),
    ("io", "input", "none", "adam"),
    ("io", "input", "heavy", "sgd", PINS, ("--weight-gradients", "apart")),
]
NOT_PROVED = {"forward_ns", "again_ns", "backward_ns", "weight_gradients_ns", "stash_bytes"}
STATUSES = (1, 3, 4, 5)


# --- files: (title, change(model), what the line has to name) ---

def on_graph(change):
    def apply(whole):
        def inside(main):
            change(main)
            return main
        whole.edit(GRAPH, inside)
    return apply


def on_nth(number, index, change):
    """change(message) on the index-th field `number` of the graph; None drops it."""
    def apply(main):
        seen = -1
        for at, (key, value) in enumerate(main.fields):
            seen += key >> 3 == number
            if key >> 3 == number and seen == index:
                new = change(Message(value))
                if new is None:
                    del main.fields[at]
                else:
                    main.fields[at][1] = new.bytes()
                return
        raise LookupError(f"no field {number} at {index}")
    return on_graph(apply)


def swapped(each, number):
    first, second = each.all(number)[:2]
    return each.set(number, second, 0).set(number, first, 1)


def spoilt_attribute(each, index):
    """Another value for the index-th attribute of a node, whatever it is."""
    seen = -1
    for field in each.fields:
        seen += field[0] >> 3 == N_ATTRIBUTE
        if field[0] >> 3 == N_ATTRIBUTE and seen == index:
            attribute = Message(field[1])
            for part in attribute.fields:
                if part[0] >> 3 in (2, 3, 4, 8):
                    part[1] = part[1] + 1 if isinstance(part[1], int) else flipped(part[1])
                    break
                if part[0] >> 3 == 5:
                    tensor = Message(part[1])
                    tensor.set(9, flipped(tensor.first(9)))
                    part[1] = tensor.bytes()
                    break
            else:
                raise LookupError(attribute.fields)
            field[1] = attribute.bytes()
    return each


def retyped(port):
    def as_double(kind):
        kind.edit(1, lambda tensor: tensor.set(1, 11 if tensor.first(1) != 11 else 1))
        return kind
    port.edit(2, as_double)
    return port


def of_nodes(main):
    names = {raw.decode() for node in map(Message, main.all(NODE)) for raw in node.all(N_OUTPUT)}
    for index, node in enumerate(map(Message, main.all(NODE))):
        label = node.text(N_NAME) or node.first(N_OUTPUT).decode()
        inputs = node.all(N_INPUT)

        def spoil(what, change, index=index, label=label):
            return f"node {label}: {what}", on_nth(NODE, index, change), label
        yield spoil("operator", lambda n: n.set(N_OP, "Sinh" if n.text(N_OP) != "Sinh" else "Cosh"))
        yield spoil("dropped", lambda n: None)
        boundary = node.text(7) == "psplit"
        if not index % 3 and not boundary:  # what is said of a Send is no business of the model's
            yield spoil("doc string", lambda n: n.add(6, "another"))
            yield spoil("domain", lambda n: n.add(7, "elsewhere"))
        if len(set(inputs)) > 1:
            yield spoil("inputs turned", lambda n: swapped(n, N_INPUT))
        other = next((name for name in sorted(names) if name.encode() not in inputs
                      and name.encode() not in node.all(N_OUTPUT)), None)
        if inputs and other:
            yield spoil(f"reads {other}", lambda n, other=other: n.set(N_INPUT, other, 0))
        for k in range(len(node.all(N_ATTRIBUTE))):
            yield spoil(f"attribute {k}", lambda n, k=k: spoilt_attribute(n, k))


def of_ports(main):
    for number, what in ((INPUT, "input"), (OUTPUT, "output")):
        for index, port in enumerate(map(Message, main.all(number))):
            name = port.text(1)
            yield f"{what} {name}: another type", on_nth(number, index, retyped), name
            yield f"{what} {name}: another name", on_nth(
                number, index, lambda p: p.set(1, "zz")), f"{name}|zz"
            yield f"{what} {name}: dropped", on_nth(number, index, lambda p: None), name
        yield f"one more {what}", on_graph(lambda m, number=number: m.add(
            number, Message(main.all(number)[0]).set(1, "zz"))
            if main.all(number) else m.add(number, tensor_port())), "zz"


def tensor_port():
    return Message(Message(make("(float[1] zz) => () {}")).first(GRAPH)).first(INPUT)


def of_initializers(main):
    for index, tensor in enumerate(map(Message, main.all(INITIALIZER))):
        name = tensor.text(8)
        if tensor.first(9):
            yield f"initializer {name}: a byte", on_nth(
                INITIALIZER, index, lambda t: t.set(9, flipped(t.first(9)))), name
        yield f"initializer {name}: dropped", on_nth(INITIALIZER, index, lambda t: None), name
        yield f"initializer {name}: another name", on_nth(
            INITIALIZER, index, lambda t: t.set(8, "zz")), f"{name}|zz"
    yield "one more initializer", on_graph(lambda m: m.add(
        INITIALIZER, tensor_of("float[1] stray = raw {1}"))), "stray"
    yield "one more node", on_graph(lambda m: m.add(
        NODE, node_of("[more] zz = Constant <value_float = 1.0> ()"))), "more|zz"


def of_model(_):
    yield "opset", lambda whole: whole.edit(
        OPSETS, lambda o: o.set(2, o.first(2) + 1), lambda o: not o.text(1)), "opset"
    yield "one more opset", lambda whole: whole.add(OPSETS, opset_of('"elsewhere": 1')), "opset"
    yield "ir version", lambda whole: whole.set(1, 9), "ir_version|IR"
    yield "graph name", on_graph(lambda m: m.set(2, "another")), "name|graph"


def of_file(path):
    whole = load(path)
    main = Message(whole.first(GRAPH))
    for source in (of_nodes, of_ports, of_initializers, of_model):
        yield from source(main)


# --- the manifest: (title, change(training)) ---

def at_path(path, change):
    def apply(training):
        place = training
        for step in path[:-1]:
            place = place[step]
        change(place, path[-1])
    return apply


def others(value, key, seen):
    """Other values for a leaf: of its own kind, and another that stands under the same key."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [value / 2]
    if value is None:
        return ["zz"]
    if isinstance(value, str):
        return [value + "z"] + [other for other in sorted(seen[key] - {value})][:1]
    return []


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in NOT_PROVED:
                yield from leaves(part, path + (key,))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from leaves(part, path + (index,))
    else:
        yield path, value


def lists(value, path=()):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from lists(part, path + (key,))
    elif isinstance(value, list):
        yield path, value
        for index, part in enumerate(value):
            yield from lists(part, path + (index,))


def key_of(path):
    return next(step for step in reversed(path) if isinstance(step, str))


# What may stand in any order: ports go by their names, transfers by their tags.
ANY_ORDER = {"inputs", "stash", "to", "transfers", "duplicates", "also"}


def of_manifest(training):
    seen = {}
    for path, value in leaves(training):
        if isinstance(value, str):
            seen.setdefault(key_of(path), set()).add(value)
    for path, value in leaves(training):
        title = "/".join(map(str, path))
        for other in others(value, key_of(path), seen):
            yield f"{title}: {other!r}", at_path(
                path, lambda place, last, other=other: place.__setitem__(last, other))
    for path, rows in lists(training):
        title = "/".join(map(str, path))
        for index in {0, len(rows) - 1} if rows else ():
            yield f"{title}: without {index}", at_path(
                path + (index,), lambda place, last: place.pop(last))
            yield f"{title}: {index} twice", at_path(
                path + (index,), lambda place, last: place.append(copy.deepcopy(place[last])))
        if len(rows) > 1 and rows[0] != rows[1] and key_of(path) not in ANY_ORDER:
            yield f"{title}: turned", at_path(path, lambda place, last: place[last].insert(
                0, place[last].pop(1)))
    for path, part in [((*path[:-1],), None) for path, value in leaves(training)
                       if path[-1] == "file"]:
        yield f"{'/'.join(map(str, path))}: null", at_path(
            path, lambda place, last: place.__setitem__(last, None))


# --- running ---

def judge(tools, path, directory, title, spoil, named):
    try:
        spoil(directory)
    except Exception as error:  # a mutation that finds nothing to spoil shows nothing
        return False, title, f"{type(error).__name__}: {error}"
    result = run(tools[1], directory, "--model", path)
    errors = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    good = (result.returncode in STATUSES and not result.stdout and len(errors) == 1
            and len(result.stderr.splitlines()) == 1 and re.search(named, errors[0]))
    # A stage has one number, in names of files and elsewhere, though backward passes run from the last.
    numbers = re.search(r"stage(\d+)\.(?:backward|weight_gradients)\.onnx[^:]*: stage (\d+)", "".join(errors))
    good = good and (not numbers or numbers[1] == numbers[2])
    shutil.rmtree(directory)
    return bool(good), title, (f"exit status {result.returncode}; the line should name {named}\n"
                               f"{result.stdout}{result.stderr}")


def in_file(name, change):
    def spoil(directory):
        path = os.path.join(directory, name)
        whole = load(path)
        before = whole.bytes()
        change(whole)
        assert whole.bytes() != before, "nothing is spoilt"
        save(whole, path)
    return spoil


def in_manifest(change):
    def spoil(directory):
        path = os.path.join(directory, "pipeline.json")
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
        before = json.dumps(manifest)
        change(manifest["training"])
        assert json.dumps(manifest) != before, "nothing is spoilt"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(manifest, file)
    return spoil


def mutations(whole):
    """(kind, title, spoil(directory), pattern)"""
    for name in sorted(os.listdir(whole)):
        if not name.endswith(".onnx"):
            continue
        stage, kind = re.match(r"stage(\d+)\.(?:(\w+)\.)?onnx", name).groups()
        for title, change, named in of_file(os.path.join(whole, name)):
            yield (kind or "forward", f"{name}: {title}", in_file(name, change),
                   rf"stage ?{stage}\b|\b(?:{named})\b")
    with open(os.path.join(whole, "pipeline.json"), encoding="utf-8") as file:
        training = json.load(file)["training"]
    for title, change in of_manifest(training):
        yield "manifest", f"training/{title}", in_manifest(change), "stage|manifest|pipeline|input|weight"


def spoil_all(tap, tools, path, tmp, counts, stride, boundary, weights, recompute, optimizer,
              pinned=PINS, options=()):
    whole = os.path.join(tmp, f"{boundary}-{recompute}-{len(options)}")
    pins = [word for pin in pinned for word in ("--pin", pin)]
    result = run(tools[0], path, "-k", "3", "-o", whole, "--boundary", boundary, "-q", *pins,
                 "--training", "--loss", "mse:target=t", "--trained-weights", weights,
                 "--recompute", recompute, "--optimizer", optimizer, "--gradient-of", "x",
                 "--freeze", "frozen", *options)
    if not tap.ok(result.returncode == 0, f"{boundary}, {recompute}: split", result.stderr):
        return
    result = run(tools[1], whole, "--model", path)
    tap.ok(result.returncode == 0 and not result.stderr, f"{boundary}, {recompute}: nothing spoilt",
           result.stderr)

    def one(job):
        number, (kind, title, spoil, named) = job
        directory = os.path.join(tmp, f"mutant{number}")
        shutil.copytree(whole, directory)
        return kind, judge(tools, path, directory, title, spoil, named)
    failures, jobs = [], list(mutations(whole))[::stride]
    with ThreadPoolExecutor(2) as pool:
        for kind, (good, title, why) in pool.map(one, enumerate(jobs)):
            counts[kind] = counts.get(kind, 0) + 1
            if not good:
                failures.append((title, why))
    for title, why in failures[:int(os.environ.get("MUTANTS_SHOWN", 20))]:
        tap.ok(False, f"{boundary}, {recompute}: {title}", why)
    tap.ok(not failures, f"{boundary}, {recompute}: every mutation is found",
           f"{len(failures)} are not")


def main():
    tools, stride = sys.argv[1:3], int((sys.argv + ["1"])[3])
    tap, counts = Tap(), {}
    with tempfile.TemporaryDirectory(prefix="psplit-training-mutants-", dir=small_files()) as tmp:
        path = os.path.join(tmp, "model.onnx")
        with open(path, "wb") as file:
            file.write(make(MODEL))
        for each in SPLITS:
            spoil_all(tap, tools, path, tmp, counts, stride, *each)
        path = os.path.join(tmp, "masked.onnx")
        with open(path, "wb") as file:
            file.write(make(MASKED))
        spoil_all(tap, tools, path, tmp, counts, stride, "io", "input", "heavy", "adam", MASKED_PINS,
                  ("--dropout", "train", "--batch-norm", "train"))
    total = sum(counts.values())
    tap.ok(total >= 500 and len(counts) == 7 and min(counts.values()) >= 10,
           f"{total} mutations: " + ", ".join(f"{n} of {kind}" for kind, n in sorted(counts.items())),
           counts)
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
