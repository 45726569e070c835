#!/usr/bin/env python3
"""The bare problem of a model: bare_problem.py SPLIT INSPECT PLAN. TAP.

Why: who compares planners needs what this one is asked, not a model; so what is written must be the
problem that the split solves, for devices and links of every kind."""
import json
import os
import subprocess
import sys
import tempfile

from bad_input import OK, USAGE, Tap, chain, model

NO_COPIES = "infer-shapes,cost,mark,attach,fuse,coarsen,partition"  # which problems know nothing of


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def branches(n):
    """x -> n branches of two MatMuls, read by a sum."""
    nodes, weights = ["[make_s] s = Relu (x)"], []
    for i in range(n):
        nodes.append("[a%d] a%d = MatMul (s, w%d) [b%d] b%d = MatMul (a%d, w%d)" %
                     (i, i, i, i, i, i, i))
        weights.append("float[64,64] w%d = random(%d)" % (i, i))
    nodes.append("[make_y] y = Sum (%s)" % ", ".join("b%d" % i for i in range(n)))
    return model("(float[64,64] x) => (float[64,64] y) <%s> {\n%s\n}" %
                 (", ".join(weights), "\n".join(nodes)))


def devices(name, *places, **more):
    link = {"bytes_per_second": 2.5e10, "latency_ns": 1000}
    with open(name, "w") as file:
        json.dump({"devices": [dict({"name": "d%d" % i, "preset": "cpu"}, **place)
                               for i, place in enumerate(places)],
                   "topology": {"same_host": link, "anywhere": dict(link, latency_ns=20000)}} |
                  more, file)
    return "--devices", name, "--device-order", "given"


def small(tap, split, inspect, plan):
    for name, content in (("chain.onnx", chain(12, 64)), ("branches.onnx", branches(5))):
        with open(name, "wb") as file:
            file.write(content)
    for name, arguments in (
            ("a chain", ("chain.onnx", "-k", "3")),
            ("branches", ("branches.onnx", "-k", "2")),  # of more a plan may pass tensors on
            ("tensors with a latency each", ("branches.onnx", "-k", "4", "--message-latency",
                                             "per-tensor")),
            ("limited memory", ("branches.onnx", "-k", "3", *devices(
                "m.json", *[{"memory_bytes": 3000000}] * 3))),
            ("two hosts", ("branches.onnx", "-k", "3", *devices(
                "h.json", {}, {"host": "h2"}, {})))):
        written = run(inspect, *arguments, "-q", "--format", "problem", "-o", "p.json")
        asked = run(split, *arguments, "--passes", NO_COPIES, "-q", "--plan-only", "--json")
        solved = run(plan, "--no-empty-stages", "--json", "p.json")
        best = json.loads(asked.stdout)["plan"]["bottleneck_ns"] if asked.returncode == OK else None
        tap.ok(written.returncode == solved.returncode == OK and
               json.loads(solved.stdout)["objective"] == best, name + ": solved alone it is the plan",
               written.stderr + asked.stderr + solved.stderr + solved.stdout[:300])
        problem = json.load(open("p.json"))
        tap.ok(len(problem["devices"]) == int(arguments[2]) and len(problem["nodes"]) > 4 and
               ("link_ns" in problem["tensors"][0]) == (name == "two hosts") and
               ("memory_bytes" in problem["devices"][0]) == (name == "limited memory"),
               name + ": devices, nodes and tensors", str(problem)[:500])
    missing = devices("l.json", {}, {}, {}, links=[{"from": "d0", "to": "d2", "bytes_per_second": 0}])
    kinds = devices("k.json", {}, {"preset": "cpu-sse"}, {})[:2]  # in any order
    for k, what, why in ((3, missing, "some devices have no link: the problem is written as if all had one"),
                         (1, kinds, "the problem has the first 1 of 3 devices: a plan would choose among all")):
        done = run(inspect, "branches.onnx", "-k", str(k), *what, "--format", "problem", "-o", "p.json")
        tap.ok(done.returncode == OK and "warning: " + why in done.stderr and
               run(plan, "p.json").returncode == OK, "it is said, and the problem can be solved: " + why, done.stderr)
    # of two stages: of more it may be the problem by shared memory, which bounds all ways to send
    run(split, "chain.onnx", "-k", "2", "-q", "--plan-only", "--certificate", "c")
    printed = run(inspect, "chain.onnx", "-k", "2", "-q", "--format", "problem").stdout
    tap.ok(printed and printed == open("c.problem.json").read(),
           "to standard output: what certificates are of", printed[:300])
    for name, arguments in (("without devices", ()), ("of operators", ("-k", "2", "--level",
                                                                       "operators")),
                            ("before there are supernodes", ("-k", "2", "--after", "mark")),
                            ("for several numbers", ("-k", "2..3"))):
        done = run(inspect, "chain.onnx", "-q", "--format", "problem", *arguments)
        tap.ok(done.returncode == USAGE and done.stderr.startswith("error: ") and not done.stdout,
               name + ": refused", done.stderr)


def main():
    programs = [os.path.abspath(name) for name in sys.argv[1:]]
    tap = Tap()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        small(tap, *programs)
    return tap.end()


sys.exit(main())
