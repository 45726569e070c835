#!/usr/bin/env python3
"""Models made to do harm: hostile.py TOOL [unlimited]

Each is refused with the exact exit status and one `error:` line, within 1 GiB of address space and
10 s of processor time, and leaves nothing behind. `unlimited` lifts the limit of address space for
tools built with sanitizers, which reserve terabytes. Results as TAP.
"""
import functools
import os
import resource
import shutil
import stat
import sys
import tempfile

from bad_input import (FILE, INFEASIBLE, LIMIT, MALFORMED, OK, Tap, block, chain, check, graph,
                       model, no_core, node, number, value, varint, write)

DATA_BYTES = 4096


def in_10_s():
    no_core()
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))


def in_10_s_and_1_gib():
    in_10_s()
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def signed(n):
    """int64 as protobuf writes it."""
    return n % (1 << 64)


def tensor(dims, *fields):
    return (b"".join(number(1, signed(d)) for d in dims) + number(2, 1) + block(8, "w")
            + b"".join(fields))


def external(dims=(8, 8), **entries):
    """A tensor whose data is in another file."""
    pairs = (block(13, block(1, key) + block(2, str(each))) for key, each in entries.items())
    return tensor(dims, *pairs, number(14, 1))


def reads(weight):
    """x -> MatMul(w) -> Relu -> y"""
    return model(graph([node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["y"])],
                       [value("x", [8, 8])], [value("y", [8, 8])], [weight]))


def nodes(*each, outputs=("y",)):
    return model(graph(each, [value("x", [4])], [value(name, [4]) for name in outputs]))


def call(name, inputs, outputs):
    return node(name, inputs, outputs) + block(7, "f")


def function(name, *each):
    """x -> ... -> y"""
    return block(25, block(1, name) + block(4, "x") + block(5, "y")
                 + b"".join(block(7, n) for n in each) + block(9, number(2, 17))
                 + block(9, block(1, "f") + number(2, 1)) + block(10, "f"))


def calling(*functions):
    return (nodes(call("F0", ["x"], ["a"]), node("Relu", ["a"], ["y"]))
            + block(8, block(1, "f") + number(2, 1)) + b"".join(functions))


def doubling(depth):
    """Each function calls the next twice: 2^depth calls for who follows each."""
    inner = [function("F%d" % i, call("F%d" % (i + 1), ["x"], ["a"]),
                      call("F%d" % (i + 1), ["a"], ["y"])) for i in range(depth)]
    return calling(*inner, function("F%d" % depth, node("Relu", ["x"], ["y"])))


def ring(n):
    """n nodes, each reading the one before and the first the last."""
    each = [node("Add", ["x", "a%d" % ((i - 1) % n)], ["a%d" % i]) for i in range(n)]
    return nodes(*each, outputs=("a0",))


def data_files(cwd):
    """What must not be read lies beside the directory of the model, what may be read within."""
    here = os.path.join(cwd, "m")
    os.mkdir(here)
    write(cwd, "secret", bytes(DATA_BYTES))
    write(here, "w.bin", bytes(DATA_BYTES))
    os.symlink("../secret", os.path.join(here, "link"))
    os.symlink("..", os.path.join(here, "up"))
    os.symlink("loop", os.path.join(here, "loop"))
    os.mkfifo(os.path.join(here, "fifo"))
    os.mkdir(os.path.join(here, "directory"))
    try:
        os.mknod(os.path.join(here, "zero"), stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pass  # only root makes devices


def places(cwd):
    good = external(location="w.bin", offset=256, length=256)
    yield "external data in its place", OK, reads(good)
    for location in ("../secret", "directory/../../secret", os.path.join(cwd, "secret"),
                     "/dev/zero", "/proc/self/mem", "link", "up/secret", "loop", "fifo",
                     "zero", "directory", ""):
        if location == "zero" and not os.path.exists(os.path.join(cwd, "m", location)):
            continue
        shown = location.replace(cwd, "CWD")
        yield "external data in %r" % shown, MALFORMED, reads(external(location=location))
    yield "external data that is missing", FILE, reads(external(location="missing"))
    yield "a location with a zero byte", MALFORMED, reads(external(location="w.bin\0x"))
    yield "no location", MALFORMED, reads(external(offset=0))


def extents(_):
    top = 1 << 63
    for entries in ({"offset": -1}, {"length": -1}, {"offset": -top}, {"offset": top},
                    {"offset": top - 1}, {"offset": 2 * top}, {"offset": 2 * top - 128},
                    {"length": top - 1}, {"offset": top - 1, "length": top - 1},
                    {"offset": DATA_BYTES}, {"offset": DATA_BYTES - 255}, {"length": 255},
                    {"length": 257}, {"offset": "0x10"}, {"offset": "1e3"}, {"offset": " 1"},
                    {"offset": ""}, {"offset": "9" * 400}):
        shown = ", ".join("%s %.24s" % each for each in entries.items())
        bad = external(location="w.bin", **entries)
        yield "external data with %s" % shown, MALFORMED, reads(bad)


def sizes(_):
    raw = block(9, bytes(256))
    for dims in ((1 << 32, 1 << 32), (1 << 62, 4), (1 << 63,), (-1, 8), (-8, -8),
                 (1 << 31, 1 << 31, 1 << 31), (1 << 40,)):
        shown = "x".join(map(str, dims))
        yield "a weight of %s" % shown, MALFORMED, reads(tensor(dims, raw))
        yield "external, %s" % shown, MALFORMED, reads(external(dims, location="w.bin"))
    yield "2^20 dimensions", MALFORMED, reads(tensor([1] * (1 << 20), raw))
    claim = number(1, 8) + b"\x3a"
    for n in (1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1):
        yield "a graph of %d bytes" % n, MALFORMED, claim + varint(n) + bytes(64)
    good = graph([node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", [1])])
    yield "a packed field of 2^40 numbers", MALFORMED, model(
        good + block(5, b"\x0a" + varint(1 << 40) + bytes(8)))


def graphs(_):
    relu = [node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["y"])]
    yield "a node that reads its own output", MALFORMED, nodes(
        node("Add", ["x", "y"], ["y"]), outputs=("y",))
    for n in (2, 100000):
        yield "a cycle of %d nodes" % n, MALFORMED, ring(n)
    yield "two nodes that make one value", MALFORMED, nodes(*relu, node("Neg", ["x"], ["a"]))
    yield "a node that makes an input", MALFORMED, nodes(*relu, node("Neg", ["a"], ["x"]))
    yield "a node that makes one value twice", MALFORMED, nodes(
        *relu, node("Split", ["x"], ["b", "b"]))
    yield "two inputs of one name", MALFORMED, model(graph(
        relu, [value("x", [4])] * 2, [value("y", [4])]))
    yield "two weights of one name", MALFORMED, model(graph(
        relu, [value("x", [4])], [value("y", [4])], [tensor([1], block(9, bytes(4)))] * 2))
    yield "an input that nothing makes", MALFORMED, nodes(
        *relu, node("Add", ["x", "nowhere"], ["b"]))
    yield "an output that nothing makes", MALFORMED, nodes(*relu, outputs=("y", "nowhere"))


def functions(_):
    yield "a function that calls itself", MALFORMED, calling(
        function("F0", call("F0", ["x"], ["y"])))
    yield "two functions that call each other", MALFORMED, calling(
        function("F0", call("F1", ["x"], ["y"])), function("F1", call("F0", ["x"], ["y"])))
    yield "two functions of one name", MALFORMED, calling(
        *[function("F0", node("Relu", ["x"], ["y"]))] * 2)
    yield "a cycle in a function", MALFORMED, calling(
        function("F0", node("Add", ["x", "y"], ["a"]), node("Relu", ["a"], ["y"])))
    yield "a function with an input that nothing makes", MALFORMED, calling(
        function("F0", node("Add", ["x", "nowhere"], ["y"])))
    yield "functions that call the next twice, 60 deep", LIMIT, doubling(60)
    # A model like any other, but its one call cannot be cut and its depth must not be walked.
    yield "the same, 5000 deep", (LIMIT, INFEASIBLE), doubling(5000)


def killed_before(tap, tool, cwd, before_exec):
    """A process with this id was killed as its OpenMP runtime began (base/team.c)."""
    made = os.path.join(cwd, "record")

    def leave_record(length):
        before_exec()
        path = "/dev/shm/__KMP_REGISTERED_LIB_%d_%d" % (os.getpid(), os.getuid())
        record = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        os.ftruncate(record, length)
        with open(made, "w", encoding="utf-8") as note:
            note.write(path)

    write(cwd, "model.onnx", chain(6))
    for length in (0, 1024):
        write(cwd, "record", b"")
        check(tap, tool, cwd, "a killed process's record of OpenMP, %d bytes of nothing" % length,
              OK, ["model.onnx", "-k", "2", "-o", "out", "--force"],
              functools.partial(leave_record, length))
        with open(made, encoding="utf-8") as note:
            path = note.read()
        tap.ok(not os.path.exists(path), "is gone after it")


def main(argv):
    if len(argv) not in (2, 3) or argv[2:] not in ([], ["unlimited"]):
        sys.exit("usage: hostile.py TOOL [unlimited]")
    tool = os.path.abspath(argv[1])
    before_exec = in_10_s if argv[2:] else in_10_s_and_1_gib
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-hostile-"))
    tap = Tap()
    try:
        data_files(cwd)
        for cases in (places, extents, sizes, graphs, functions):
            for title, expected, data in cases(cwd):
                write(cwd, "m/model.onnx", data)
                check(tap, tool, cwd, title, expected, ["m/model.onnx", "-k", "2", "-o", "out"],
                      before_exec)
                shutil.rmtree(os.path.join(cwd, "out"), ignore_errors=True)
        if os.path.isdir("/dev/shm"):
            killed_before(tap, tool, cwd, before_exec)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    print("1..%d" % tap.count)
    sys.exit(tap.failed > 0)


if __name__ == "__main__":
    main(sys.argv)
