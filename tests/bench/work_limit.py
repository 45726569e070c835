#!/usr/bin/python3
"""Seconds of processor time that splits take which use up the limit on work: work_limit.py BUILD.

10,000 branches of three nodes; 1,000 nodes before 26 nested Ifs; 2,000 nodes in 20 random layers, of
which devices may take any. One line each; about ten seconds at most with a processor to itself.
"""
import os
import random
import resource
import subprocess
import sys
import tempfile

UNARY = ["Relu", "Exp", "Tanh", "Sigmoid", "Neg"]
BINARY = ["Add", "Mul", "MatMul"]
HEADER = '<ir_version: 10, opset_import: ["": 18]>\nagraph (%s) => (float[64,64] y) {\n%s}\n'


def branches(n, length):
    lines, ends = [], []
    for b in range(n):
        end = "x"
        for i in range(length):
            name = "b%d_%d" % (b, i)
            lines.append("%s = MatMul (%s, %s)" % (name, end, end) if random.random() < 0.3
                         else "%s = %s (%s)" % (name, UNARY[(b * 7 + i) % 5], end))
            end = name
        ends.append(end)
    lines.append("y = Sum (%s)\n" % ", ".join(ends))
    return HEADER % ("float[64,64] x", "\n".join(lines))


def layered(n, width):
    """Lines and names of n nodes, each of two of the `width` before it."""
    names, lines = ["x"], []
    for i in range(n):
        a, b = random.choice(names[-width:]), random.choice(names[-width:])
        lines.append("a%d = %s (%s, %s)" % (i, BINARY[i % 3], a, b))
        names.append("a%d" % i)
    return lines, names


def nested(n, depth):
    """Ifs in the branches of Ifs, each of which reads 40 values of the graph around them."""
    lines, names = layered(n, 12)

    def body(d):
        text = "".join("t%d_%d = Add (%s, %s)\n" % (d, i, name, names[-1 - d])
                       for i, name in enumerate(random.sample(names, 40)))
        if d == depth:
            return text + "r%d = Sum (%s)\n" % (d, ", ".join("t%d_%d" % (d, i) for i in range(40)))
        return text + (
            "r%d = If (c) <then_branch = th%d () => (float[64,64] r%d) {\n%s}, "
            "else_branch = el%d () => (float[64,64] z%d) { z%d = Relu (t%d_0) }>\n"
            % (d, d, d + 1, body(d + 1), d, d, d, d))
    return HEADER % ("float[64,64] x, bool c", "\n".join(lines) + "\n" + body(0) + "y = Relu (r0)\n")


def in_layers(n, width):
    lines, names = layered(n, width)
    return HEADER % ("float[64,64] x", "\n".join(lines) + "\ny = Relu (%s)\n" % names[-1])


def main():
    build = sys.argv[1]
    random.seed(7)
    cases = [("10,000 branches", branches(10000, 3), []), ("26 nested Ifs", nested(1000, 26), []),
             ("2,000 nodes, --non-contiguous", in_layers(2000, 20), ["--non-contiguous"])]
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "m.onnx")
        for title, text, options in cases:
            subprocess.run([os.path.join(build, "tests/support/make_model"), path],
                           input=text.encode(), check=True)
            for k in (2, 4, 16):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([os.path.join(build, "tools/onnx-pipeline-split"), path, "-k", str(k),
                                "--plan-only", "-q", *options], check=True, stdout=subprocess.DEVNULL)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                print("%-30s -k %-3d %5.1f s" % (
                    title, k, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime),
                      flush=True)


main()
