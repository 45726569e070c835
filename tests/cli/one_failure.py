#!/usr/bin/env python3
"""Whole commands in which one allocation or one system call fails: one_failure.py LIBRARY WHICH SPLIT
INSPECT VERIFY PLAN MERGE LEARN

WHICH: alloc or call. Each in turn: status 0 and the usual output, byte for byte, or status 6 (3 for
calls), one error line with a reason, and every file as it was. TAP. PSPLIT_FAULTS_STEP=N asks every
N-th alone (calls: all, allocations: every 5th), PSPLIT_FAULTS_ONLY=TEXT the commands whose title has it.
"""
import os
import shutil
import subprocess
import sys
import tempfile

from bad_input import FILE, LIMIT, Tap, chain
from inputs import COSTS, DEVICES, PATTERNS, PROBLEM, write

from faults import HIDDEN, Made, problem_of, tree  # tests/support, by bad_input

MOST_SHOWN = 8


FEW_STEPS = ("--warm-steps", "1", "--steps", "1", "--schedule-steps", "1", "--graphs", "1", "--rollouts", "2",
             "-q")


def commands(split, inspect, verify, plan, merge, learn):
    """(title, command) for each way through the commands."""
    one = ("--threads", "1", "-q")
    passes = "infer-shapes,cost,mark,attach,fuse:patterns=patterns,coarsen,partition,replicate"
    return [
        ("split", (split, "m.onnx", "-k", "2", "-o", "out", *one)),
        ("split, with all that it writes", (
            split, "m.onnx", "-o", "out", "--devices", "devices", "--costs", "costs",
            "--annotate", "a.onnx", "--depfile", "d.d", "--certificate", "c", "--verify",
            "--weights", "external", "--boundary", "io", "--json", *one)),
        ("split --force", (split, "m.onnx", "-k", "2", "-o", "old", "--force", *one)),
        ("split --weights reference", (split, "m.onnx", "-k", "2", "-o", ".", "--weights",
                                       "reference", *one)),
        ("split --passes", (split, "m.onnx", "-k", "2", "--plan-only", "--json", "--passes", passes,
                            *one)),
        ("split --training", (split, "t.onnx", "-k", "2", "-o", "out", "--training", "--loss-output",
                              "loss", "--json", *one)),
        ("split -k 1..3", (split, "m.onnx", "-k", "1..3", "--plan-only", *one)),
        ("inspect", (inspect, "m.onnx", "-k", "2", *one)),
        ("inspect --format json", (inspect, "m.onnx", "-k", "2", "--format", "json", *one)),
        ("inspect --format html", (inspect, "m.onnx", "-k", "2", "--format", "html", "-o", "page",
                                   *one)),
        ("inspect --format onnx", (inspect, "m.onnx", "-k", "2", "--format", "onnx", "-o", "n.onnx",
                                   *one)),
        ("verify", (verify, "old", "--model", "m.onnx", "--threads", "1")),
        ("plan", (plan, "problem", "--certificate", "c", "--json", "--threads", "1")),
        ("plan --policy", (plan, "problem", "--policy", "policy", "--solver", "auto", "--schedule", "4",
                           "--json", "--threads", "1")),
        ("split --overlap", (split, "m.onnx", "--devices", "devices", "--overlap", "--message-latency",
                             "per-pair", "--plan-only", "--json", *one)),
        ("merge", (merge, "old", "-o", "whole.onnx", "-m", "m.onnx")),
        ("merge --weights external", (merge, "old", "-o", "w.onnx", "--weights", "external")),
        ("learn", (learn, "problem", "-o", "learned", "--log", os.devnull, *FEW_STEPS)),
        ("learn --resume", (learn, "problem", "-o", "policy", "--state", "old-state", "--resume",
                            *FEW_STEPS)),
        ("learn from a model", (learn, "m.onnx", "-k", "2", "--from", "policy", "-o", "new", *FEW_STEPS)),
    ]


def prepare(home, split, learn):
    os.chdir(home)
    with open("m.onnx", "wb") as file:
        file.write(chain(4))
    with open("t.onnx", "wb") as file:
        file.write(trained())
    for name, content in (("devices", DEVICES), ("costs", COSTS), ("patterns", PATTERNS),
                          ("problem", PROBLEM)):
        write(name, content)
    if os.spawnl(os.P_WAIT, split, split, "m.onnx", "-k", "2", "-q", "-o", "old"):
        sys.exit("the first split failed")
    if os.spawnl(os.P_WAIT, learn, learn, "problem", "-o", "policy", "--state", "old-state", *FEW_STEPS):
        sys.exit("the first policy failed")


def trained():
    from bad_input import model
    return model("""(float[4,8] x) => (float loss) <float[8,8] w1 = random(1), float[8,8] w2 = random(2)> {
        a = MatMul (x, w1)
        b = Relu (a)
        c = MatMul (b, w2)
        loss = ReduceMean <keepdims = 0> (c)
      }""")


def hidden_problem(made, command):
    """Hidden leftovers are for the next run to remove."""
    if not made.hidden:
        return None
    again = subprocess.run(command, cwd=made.cwd, stdin=subprocess.DEVNULL, capture_output=True)
    left = [path for path in tree(made.cwd) if HIDDEN.search(path)]
    return "the next run leaves %s" % left if left and again.returncode == 0 else None


def each(tap, library, which, home, scratch, title, command, step):
    before = tree(home)
    whole = Made(library, home, scratch, command, which)
    n = whole.fault.calls if which == "call" else whole.fault.allocations
    if whole.fault.unavailable:
        print("1..0 # SKIP system calls cannot be made to fail here: %d" % whole.fault.unavailable)
        sys.exit(0)
    if whole.status or not n:
        tap.ok(False, title, "without a fault: status %s\n%s" % (whole.status, whole.err))
        return
    statuses = {LIMIT} if which == "alloc" else {FILE, LIMIT}
    wrong, by_kind = [], {}
    for at in range(1, n + 1, step):
        made = Made(library, home, scratch, command, which, at)
        problem = problem_of(made, whole, before, statuses) or hidden_problem(made, command)
        if problem:
            kind = (problem, made.fault.call)
            by_kind.setdefault(kind, []).append(at)
            if len(by_kind[kind]) == 1 and len(wrong) < MOST_SHOWN:
                wrong.append("number %d, call %d(%d): %s: %s" % (
                    at, made.fault.call, made.fault.argument, problem, made.err.strip()[:300]))
    counts = ["%s, call %s: %d times, %s" % (problem, call, len(ats), ats[:10])
              for (problem, call), ats in by_kind.items()]
    tap.ok(not wrong, "%s, %d failures" % (title, (n + step - 1) // step), "\n".join(wrong + counts))


def main(argv):
    if len(argv) != 9 or argv[2] not in ("alloc", "call"):
        sys.exit("usage: one_failure.py LIBRARY alloc|call SPLIT INSPECT VERIFY PLAN MERGE LEARN")
    library, which, tools = os.path.abspath(argv[1]), argv[2], list(map(os.path.abspath, argv[3:]))
    step = int(os.environ.get("PSPLIT_FAULTS_STEP", "5" if which == "alloc" else "1"))
    only = os.environ.get("PSPLIT_FAULTS_ONLY", "")
    work = os.path.realpath(tempfile.mkdtemp(prefix="psplit-faults-"))
    home, scratch = os.path.join(work, "home"), os.path.join(work, "scratch")
    tap = Tap()
    os.environ["OMP_NUM_THREADS"] = "1"  # of commands without --threads
    try:
        os.mkdir(home)
        os.mkdir(scratch)
        prepare(home, tools[0], tools[5])
        for title, command in commands(*tools):
            if only in title:
                each(tap, library, which, home, scratch, title, command, step)
    finally:
        os.chdir("/")
        shutil.rmtree(work, ignore_errors=True)
    print("1..%d" % tap.count)
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
