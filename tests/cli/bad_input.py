#!/usr/bin/env python3
"""What a bad input or a bad option does to onnx-pipeline-split: bad_input.py TOOL

Each case: the exact exit status, one line on stderr that starts with `error:`, no signal, and a
working directory that holds afterwards what it held before. Results as TAP.
"""
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402
from text_model import make  # noqa: E402

OK, USAGE, FILE, MALFORMED, UNSUPPORTED, LIMIT, INFEASIBLE = 0, 2, 3, 4, 5, 6, 7


# --- models ---

HEADER = '<ir_version: 8, producer_name: "bad_input.py", opset_import: ["": 17]>\n'


def model(text):
    """The file of a model that a graph and functions say."""
    return make(HEADER + text)


def chain(depth, n=8):
    """x -> (MatMul, Relu) * depth -> y, with n x n weights."""
    nodes, last = [], "x"
    for i in range(depth):
        out = "y" if i == depth - 1 else "r%d" % i
        nodes += ["[make_m%d] m%d = MatMul (%s, w%d)" % (i, i, last, i),
                  "[make_%s] %s = Relu (m%d)" % (out, out, i)]
        last = out
    weights = ", ".join("float[%d,%d] w%d = random(%d)" % (n, n, i, i) for i in range(depth))
    return model("g (float[batch,%d] x) => (float[batch,%d] y) <%s> {\n%s\n}"
                 % (n, n, weights, "\n".join(nodes)))


# What no text says is written as bytes: fields that lie about their length, and nest too deep.

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def nested(levels):
    """A graph in an attribute of a node in a graph, `levels` times: field 6 in 5 in 1."""
    graph = b""
    for _ in range(levels):
        graph = block(1, block(5, block(6, graph)))
    return number(1, 8) + block(7, graph)


# --- the harness ---

def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Run:
    """One run of the tool in a directory, judged by what the contract says of failures."""

    def __init__(self, tool, cwd, args, before_exec=no_core):
        before = listing(cwd)
        try:
            done = subprocess.run([tool, *args], cwd=cwd, timeout=60, stdin=subprocess.DEVNULL,
                                  capture_output=True, preexec_fn=before_exec)
            self.status = done.returncode
        except subprocess.TimeoutExpired as late:
            done, self.status = late, "none within 60 s"
        self.err = (done.stderr or b"").decode(errors="replace")
        self.left = sorted(set(listing(cwd)) ^ set(before))

    def problem(self, expected):
        found = []
        if self.status not in expected:
            found.append("exit status %s, not %s" % (
                self.status, " or ".join(str(status) for status in expected)))
        errors = [line for line in self.err.splitlines() if line.startswith("error:")]
        if self.status != OK:
            if len(errors) != 1 or not re.match(r"error: \S", errors[0]):
                found.append("%d lines start with error:" % len(errors))
            if self.left:
                found.append("left behind: %s" % ", ".join(self.left))
        elif errors:
            found.append("status 0 and an error line")
        if found and self.err:
            found.append(self.err[:600])
        return "\n".join(found)


def listing(cwd):
    return [os.path.join(at, name)[len(cwd):] for at, dirs, files in os.walk(cwd)
            for name in dirs + files]


def write(cwd, name, data):
    with open(os.path.join(cwd, name), "wb") as file:
        file.write(data)
    return name


def check(tap, tool, cwd, title, expected, args, before_exec=no_core):
    expected = expected if isinstance(expected, tuple) else (expected,)
    problem = Run(tool, cwd, args, before_exec).problem(expected)
    tap.ok(not problem, title, problem)


def bad_bytes(tap, tool, cwd):
    good = chain(6)
    write(cwd, "good.onnx", good)

    def each(title, expected, name):
        check(tap, tool, cwd, title, expected, [name, "-k", "2", "-o", "out"])

    each("an empty file", MALFORMED, write(cwd, "empty.onnx", b""))
    each("text", MALFORMED, write(cwd, "text.onnx", b"These are not the bytes of a model.\n" * 40))
    each("a picture", MALFORMED,
         write(cwd, "png.onnx", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(500)))
    each("zeros", MALFORMED, write(cwd, "zeros.onnx", bytes(4096)))
    each("a model without a graph", MALFORMED, write(cwd, "nograph.onnx", number(1, 8)))
    each("a length of 2^63", MALFORMED, write(cwd, "long.onnx", b"\x3a" + varint(1 << 63)))
    each("a varint of 11 bytes", MALFORMED, write(cwd, "varint.onnx", b"\x08" + b"\xff" * 11))
    each("a cycle", MALFORMED, write(cwd, "cycle.onnx", model("(x) => (b) { a = Add (x, b) b = Relu (a) }")))
    for levels in (200, 10000):
        each("If nested %d deep" % levels, LIMIT, write(cwd, "deep.onnx", nested(levels)))
    each("group nested 10000 deep", (MALFORMED, LIMIT),
         write(cwd, "groups.onnx", number(1, 8) + b"\x3b" * 10000))

    # The operator set comes last in the file, so every proper prefix lacks something.
    for part in (1, 2, 3, 10, len(good) // 4, len(good) // 2, len(good) - 200, len(good) - 1):
        each("the first %d of %d bytes" % (part, len(good)), MALFORMED,
             write(cwd, "part.onnx", good[:part]))


def flipped_bits(tap, tool, cwd):
    """Any status a model can earn will do; a signal, a hang or a leftover will not."""
    good, rng = chain(3, 4), random.Random(7)
    expected = (OK, MALFORMED, UNSUPPORTED, LIMIT, INFEASIBLE)
    problems = []
    flips = 400
    for _ in range(flips):
        bit = rng.randrange(8 * len(good))
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        write(cwd, "flipped.onnx", data)
        problem = Run(tool, cwd, ["flipped.onnx", "-k", "2", "-o", "out"]).problem(expected)
        shutil.rmtree(os.path.join(cwd, "out"), ignore_errors=True)
        if problem:
            problems.append("bit %d: %s" % (bit, problem))
    tap.ok(not problems, "%d models with one flipped bit" % flips,
           "%d of them\n%s" % (len(problems), "\n".join(problems[:4])))


def bad_files(tap, tool, cwd):
    def each(title, expected, *args):
        check(tap, tool, cwd, title, expected, args)

    write(cwd, "file", b"")
    os.mkdir(os.path.join(cwd, "there"))
    write(cwd, "there/mine", b"kept")
    os.mkfifo(os.path.join(cwd, "fifo"))
    each("no such model", FILE, "missing.onnx", "-k", "2", "-o", "out")
    each("a directory as model", FILE, "there", "-k", "2", "-o", "out")
    each("a FIFO as model", FILE, "fifo", "-k", "2", "-o", "out")
    each("a device as model", (FILE, MALFORMED), "/dev/null", "-k", "2", "-o", "out")
    each("DIR below a file", FILE, "good.onnx", "-k", "2", "-o", "file/out")
    each("DIR below a missing directory", FILE, "good.onnx", "-k", "2", "-o", "no/such/out")
    each("DIR in /proc", FILE, "good.onnx", "-k", "2", "-o", "/proc/out")
    each("DIR is a file", FILE, "good.onnx", "-k", "2", "-o", "file")
    each("DIR exists", FILE, "good.onnx", "-k", "2", "-o", "there")
    tap.ok(os.listdir(os.path.join(cwd, "there")) == ["mine"], "a DIR that exists is left alone")
    each("bad model with --force", FILE, "missing.onnx", "-k", "2", "-o", "there", "--force")
    tap.ok(os.listdir(os.path.join(cwd, "there")) == ["mine"],
           "--force replaces DIR only by a complete new one")
    each("DIR holds another's file, with --force", FILE, "good.onnx", "-k", "2", "-o", "there",
         "--force")
    tap.ok(os.listdir(os.path.join(cwd, "there")) == ["mine"],
           "--force replaces nothing but a split")
    os.unlink(os.path.join(cwd, "there/mine"))
    each("DIR is empty, with --force", OK, "good.onnx", "-k", "3", "-o", "there", "--force")
    each("DIR exists, with --force", OK, "good.onnx", "-k", "2", "-o", "there", "--force")
    found = sorted(os.listdir(os.path.join(cwd, "there")))
    tap.ok(found == ["pipeline.json", "stage0.onnx", "stage1.onnx"], "--force replaces DIR",
           " ".join(found))


def bad_options(tap, tool, cwd):
    def each(title, expected, *args):
        check(tap, tool, cwd, title, expected, args)

    for k in ("0", "-1", "abc", "", "2x", "1e1", "99999999999999999999"):
        each("-k %r" % k, USAGE, "good.onnx", "-k", k, "-o", "out")
    each("more stages than nodes", INFEASIBLE, "good.onnx", "-k", "4000", "-o", "out")
    each("no model", USAGE, "-k", "2", "-o", "out")
    each("two models", USAGE, "good.onnx", "good.onnx", "-k", "2", "-o", "out")
    each("no number of stages", USAGE, "good.onnx", "-o", "out")
    each("no DIR", USAGE, "good.onnx", "-k", "2")
    each("an unknown option", USAGE, "good.onnx", "-k", "2", "-o", "out", "--no-such-option")
    each("an option without its value", USAGE, "good.onnx", "-k", "2", "-o")
    each("an unknown pass", USAGE, "good.onnx", "-k", "2", "-o", "out", "--passes", "no-such-pass")
    each("an unknown pass option", USAGE, "good.onnx", "-k", "2", "-o", "out",
         "--passes", "coarsen:no_such_option=1")
    each("an unknown boundary", USAGE, "good.onnx", "-k", "2", "-o", "out", "--boundary", "x")
    each("a dimension without a value", USAGE, "good.onnx", "-k", "2", "-o", "out",
         "--dim", "batch")
    each("a negative dimension", USAGE, "good.onnx", "-k", "2", "-o", "out", "--dim", "batch=-4")


def main(argv):
    if len(argv) != 2:
        sys.exit("usage: bad_input.py TOOL")
    tool = os.path.abspath(argv[1])
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-cli-"))
    tap = Tap()
    try:
        bad_bytes(tap, tool, cwd)
        flipped_bits(tap, tool, cwd)
        bad_files(tap, tool, cwd)
        bad_options(tap, tool, cwd)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv)
