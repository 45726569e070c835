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

from bad_input import (FILE, INFEASIBLE, LIMIT, MALFORMED, OK, Tap, block, chain, check, make,
                       model, no_core, number, varint, write)
from text_model import quoted

DATA_BYTES = 4096


def in_10_s():
    no_core()
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))


def in_10_s_and_1_gib():
    in_10_s()
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def dims_of(dims):
    """A shape; dims from 2^63 on are what protobuf makes of them."""
    return ",".join(str((d + (1 << 63)) % (1 << 64) - (1 << 63)) for d in dims)


def external(dims=(8, 8), **entries):
    """A tensor whose data is in another file."""
    pairs = ", ".join("%s: %s" % (quoted(key), quoted(str(each))) for key, each in entries.items())
    return "float[%s] w = {} @{data_location: EXTERNAL, external_data: [%s]}" % (dims_of(dims), pairs)


def reads(weight):
    """x -> MatMul(w) -> Relu -> y"""
    return model("(float[8,8] x) => (float[8,8] y) <%s> { m = MatMul (x, w) y = Relu (m) }" % weight)


def nodes(body, outputs="float[4] y"):
    return model("(float[4] x) => (%s) {\n%s\n}" % (outputs, body))


def calling(*functions):
    """Functions F0, F1, ... of x and y with these bodies, the first of which is called."""
    header = '<domain: "f", opset_import: ["": 17, "f": 1]>'
    return make('<ir_version: 8, opset_import: ["": 17, "f": 1]>'
                "(float[4] x) => (float[4] y) { a = f.F0 (x) y = Relu (a) }\n"
                + "\n".join("%s %s (x) => (y) { %s }" % (header, name, body)
                            for name, body in functions))


def doubling(depth):
    """Each function calls the next twice: 2^depth calls for who follows each."""
    each = [("F%d" % i, "a = f.F%d (x) y = f.F%d (a)" % (i + 1, i + 1)) for i in range(depth)]
    return calling(*each, ("F%d" % depth, "y = Relu (x)"))


def ring(n):
    """n nodes, each reading the one before and the first the last."""
    return nodes("\n".join("a%d = Add (x, a%d)" % (i, (i - 1) % n) for i in range(n)),
                 "float[4] a0")


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
    pair = block(1, b"location") + block(2, b"w.bin\0x")
    yield "a location with a zero byte", MALFORMED, (
        number(1, 8) + block(7, block(5, number(1, 1) + number(2, 1) + block(13, pair) + number(14, 1))))
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
    for dims in ((1 << 32, 1 << 32), (1 << 62, 4), (1 << 63,), (-1, 8), (-8, -8),
                 (1 << 31, 1 << 31, 1 << 31), (1 << 40,)):
        shown = "x".join(map(str, dims))
        yield "a weight of %s" % shown, MALFORMED, reads("float[%s] w = raw {0 * 64}" % dims_of(dims))
        yield "external, %s" % shown, MALFORMED, reads(external(dims, location="w.bin"))
    yield "2^20 dimensions", MALFORMED, reads(
        "float[%s] w = raw {0 * 64}" % dims_of([1] * (1 << 20)))
    claim = number(1, 8) + b"\x3a"
    for n in (1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1):
        yield "a graph of %d bytes" % n, MALFORMED, claim + varint(n) + bytes(64)
    yield "a packed field of 2^40 numbers", MALFORMED, (
        number(1, 8) + block(7, block(5, b"\x0a" + varint(1 << 40) + bytes(8))))


def graphs(_):
    relu = "a = Relu (x) y = Relu (a) "
    yield "a node that reads its own output", MALFORMED, nodes("y = Add (x, y)")
    for n in (2, 100000):
        yield "a cycle of %d nodes" % n, MALFORMED, ring(n)
    yield "two nodes that make one value", MALFORMED, nodes(relu + "a = Neg (x)")
    yield "a node that makes an input", MALFORMED, nodes(relu + "x = Neg (a)")
    yield "a node that makes one value twice", MALFORMED, nodes(relu + "b, b = Split (x)")
    yield "two inputs of one name", MALFORMED, model(
        "(float[4] x, float[4] x) => (float[4] y) { %s }" % relu)
    yield "two weights of one name", MALFORMED, model(
        "(float[4] x) => (float[4] y) <float[1] w = {0}, float[1] w = {0}> { %s }" % relu)
    yield "an input that nothing makes", MALFORMED, nodes(relu + "b = Add (x, nowhere)")
    yield "an output that nothing makes", MALFORMED, nodes(relu, "float[4] y, float[4] nowhere")


def functions(_):
    yield "a function that calls itself", MALFORMED, calling(("F0", "y = f.F0 (x)"))
    yield "two functions that call each other", MALFORMED, calling(
        ("F0", "y = f.F1 (x)"), ("F1", "y = f.F0 (x)"))
    yield "two functions of one name", MALFORMED, calling(*[("F0", "y = Relu (x)")] * 2)
    yield "a cycle in a function", MALFORMED, calling(("F0", "a = Add (x, y) y = Relu (a)"))
    yield "a function with an input that nothing makes", MALFORMED, calling(
        ("F0", "y = Add (x, nowhere)"))
    yield "functions that call the next twice, 60 deep", LIMIT, doubling(60)
    # A model like any other, but its one call cannot be cut and its depth must not be walked.
    yield "the same, 5000 deep", (LIMIT, INFEASIBLE), doubling(5000)


def killed_before(tap, tool, cwd, before_exec):
    """A process with this id was killed as its OpenMP runtime began, or its record cannot be had (base/team.c)."""
    made = os.path.join(cwd, "record")

    def leave(make):
        before_exec()
        path = "/dev/shm/__KMP_REGISTERED_LIB_%d_%d" % (os.getpid(), os.getuid())
        make(path)
        with open(made, "w", encoding="utf-8") as note:
            note.write(path)

    def leave_record(length):
        def make(path):
            record = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            os.ftruncate(record, length)
        leave(make)

    write(cwd, "model.onnx", chain(6))
    for what, make in (("a FIFO", os.mkfifo), ("a directory", os.mkdir),
                       ("a link to a file", lambda path: os.symlink("/etc/passwd", path)),
                       ("a link to nothing", lambda path: os.symlink("nowhere", path))):
        check(tap, tool, cwd, "%s in place of the record of OpenMP" % what, OK,
              ["model.onnx", "-k", "2", "-o", "out", "--force", "--threads", "2"],
              functools.partial(leave, make))
        with open(made, encoding="utf-8") as note:
            path = note.read()
        tap.ok(os.path.lexists(path), "stays")
        (os.rmdir if what == "a directory" else os.unlink)(path)
    for length in (0, 1024):
        write(cwd, "record", b"")
        check(tap, tool, cwd, "a killed process's record of OpenMP, %d bytes of nothing" % length,
              OK, ["model.onnx", "-k", "2", "-o", "out", "--force"],
              functools.partial(leave_record, length))
        with open(made, encoding="utf-8") as note:
            path = note.read()
        tap.ok(not os.path.exists(path), "is gone after it")


def numbers_of_threads(tap, tool, cwd, before_exec):
    """What OMP_NUM_THREADS says without being a number: LLVM's OpenMP runtime fails over it, or takes any number."""
    write(cwd, "model.onnx", chain(6))
    before = os.environ.get("OMP_NUM_THREADS")
    for value in ("", " ", "abc", "2x", "0x2", "-1", "+2", "2 3", "2,abc", "2,-1", "2,", ",", "0", " 2 ", "4, 3", "2147483647",
                  "4294967297", "99999999999999999999", "\u00b2"):
        os.environ["OMP_NUM_THREADS"] = value
        for threads in ([], ["--threads", "2"]):
            check(tap, tool, cwd, "OMP_NUM_THREADS=%r %s" % (value, " ".join(threads)), OK,
                  ["model.onnx", "-k", "2", "-o", "out", "--force", *threads], before_exec)
    os.environ.pop("OMP_NUM_THREADS")
    if before is not None:
        os.environ["OMP_NUM_THREADS"] = before


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
            numbers_of_threads(tap, tool, cwd, before_exec)
        killed_before(tap, tool, cwd, before_exec)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv)
