#!/usr/bin/env python3
"""Whole commands in which one allocation or one system call fails, or to which SIGTERM comes before a
system call: one_failure.py LIBRARY WHICH SPLIT INSPECT VERIFY PLAN MERGE LEARN

WHICH: alloc, call or signal. Each in turn: status 0 and the usual output, byte for byte, or status 6 (3
for calls, 143 for signals), one error line with a reason, and every file as it was. TAP.
What fails is done in memory where there is such a file system, signals where TMPDIR is: else most of the time goes into waiting for a disk.
PSPLIT_FAULTS_STEP=N asks every N-th alone (calls: all, others: every 5th), PSPLIT_FAULTS_ONLY=TEXT the
commands whose title has it.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from bad_input import FILE, LIMIT, Tap, chain, model
from inputs import COSTS, DEVICES, PATTERNS, PROBLEM, write

from faults import HIDDEN, Made, problem_of, tree  # tests/support, by bad_input
from tap import small_files

MOST_SHOWN = 8
STATUSES = {"alloc": {LIMIT}, "call": {FILE, LIMIT}, "signal": {128 + signal.SIGTERM}}


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
        ("merge", (merge, "old", "-o", "again.onnx", "-m", "m.onnx")),
        ("merge --weights external", (merge, "old", "-o", "w.onnx", "--weights", "external")),
        ("merge --force over a model with its data", (merge, "wide", "-o", "whole.onnx", "--weights",
                                                      "external", "--force", "-m", "wide.onnx")),
        ("split --target triton, named", (split, "m.onnx", "-k", "2", "-o", "out", "--target", "triton",
                                          "--name-template", "{model}-{stage:02}.onnx", *one)),
        ("split --segments", (split, "m.onnx", "--devices", "devices", "--segments", "2", "--plan-only",
                              "--json", *one)),
        ("split --replicas", (split, "m.onnx", "-k", "3", "--replicas", "auto", "-o", "out", *one)),
        ("split --policy --schedule", (split, "m.onnx", "-k", "2", "--policy", "policy", "--schedule", "8",
                                       "--limits", "8", "--plan-only", *one)),
        ("split --objective latency", (split, "m.onnx", "-k", "2", "--objective", "latency", "--annotate",
                                       "a.onnx", "--annotate-as", "layer_ann", "-o", "out", *one)),
        ("split --training-info", (split, "t.onnx", "-k", "2", "--training", "--loss-output", "loss",
                                   "--training-info", "info.onnx", *one)),
        ("split --inline-if", (split, "if.onnx", "-k", "2", "--inline-if", "choice=then", "-o", "out",
                               "--verify", *one)),
        ("split --clean", (split, "--clean", ".")),
        ("inspect --format problem", (inspect, "m.onnx", "-k", "2", "--format", "problem", "-o", "p.json",
                                      *one)),
        ("inspect --format svg", (inspect, "m.onnx", "-k", "2", "--format", "svg", "-o", "picture", *one)),
        ("inspect --format onnxtxt", (inspect, "m.onnx", "--format", "onnxtxt", "-o", "text", *one)),
        ("verify --weights-of", (verify, "m.onnx", "--weights-of", "m.onnx", "--threads", "1")),
        ("verify a file", (verify, "m.onnx", "--model", "m.onnx", "--threads", "1")),
        ("plan --objective call-latency", (plan, "calls", "--objective", "call-latency", "--json",
                                           "--threads", "1")),
        ("plan --objective fill-drain", (plan, "trained", "--objective", "fill-drain", "--json",
                                         "--threads", "1")),
        ("plan, baselines", (plan, "problem", "--solver", "pipedream", "--limits", "8", "--threads", "1")),
        ("learn", (learn, "problem", "-o", "learned", "--log", os.devnull, *FEW_STEPS)),
        ("learn --resume", (learn, "problem", "-o", "policy", "--state", "old-state", "--resume",
                            *FEW_STEPS)),
        ("learn from a model", (learn, "m.onnx", "-k", "2", "--from", "policy", "-o", "new", *FEW_STEPS)),
    ]


CALLS = {"format": "psplit-problem",
         "devices": [{"class": 0, "count": 2}, {"class": 1, "count": 1, "free_comm": True}],
         "nodes": [{"time_ns": [2 + i % 3, 9 + i]} for i in range(6)],
         "tensors": [{"producer": i, "consumers": [i + 1], "send_ns": 1, "recv_ns": 2} for i in range(5)]}
# Of which no bound on throughput says all: the program of two limits has to.
TRAINED = {"format": "psplit-problem", "devices": [{"count": 3}],
           "nodes": [{"time_ns": 2 + 2 * i % 5, "together": i} for i in range(6)]
           + [{"time_ns": 9 - 2 * i % 5, "together": i, "backward": True} for i in range(6)],
           "tensors": [{"producer": i, "consumers": [i + 1, min(i + 2, 5)], "send_ns": 1, "recv_ns": 2}
                       for i in range(5)]
           + [{"producer": i + 7, "consumers": [i + 6], "send_ns": 1, "recv_ns": 1} for i in range(5)]}
CHOICE = """(float[2] x, bool flag) => (float[2] y) { [choice] y = If (flag) <
    then_branch = t () => (float[2] a) { b = Relu (x) a = Exp (b) },
    else_branch = e () => (float[2] c) { c = Neg (x) }> }"""


def prepare(home, split, merge, learn):
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
    with open("if.onnx", "wb") as file:
        file.write(model(CHOICE))
    write("calls", json.dumps(CALLS))
    write("trained", json.dumps(TRAINED))
    for name, depth in (("wide", 4), ("older", 3)): # whose weights are large enough for a file of their own
        with open(name + ".onnx", "wb") as file:
            file.write(chain(depth, 20))
        if os.spawnl(os.P_WAIT, split, split, name + ".onnx", "-k", "2", "-q", "-o", name):
            sys.exit("a split failed")
    if os.spawnl(os.P_WAIT, merge, merge, "older", "-q", "-o", "whole.onnx", "--weights", "external"):
        sys.exit("a merge failed")
    shutil.rmtree("older")
    if os.spawnl(os.P_WAIT, learn, learn, "problem", "-o", "policy", "--state", "old-state", *FEW_STEPS):
        sys.exit("the first policy failed")


def trained():
    return model("""(float[4,8] x) => (float loss) <float[8,8] w1 = random(1), float[8,8] w2 = random(2)> {
        a = MatMul (x, w1)
        b = Relu (a)
        c = MatMul (b, w2)
        loss = ReduceMean <keepdims = 0> (c)
      }""")


def hidden_problem(made, which, command):
    """Hidden leftovers are for the next run to remove, where they could not be; a signal leaves none."""
    if not made.hidden:
        return None
    if which == "signal":
        return "left hidden: %s" % made.hidden
    again = subprocess.run(command, cwd=made.cwd, stdin=subprocess.DEVNULL, capture_output=True)
    left = [path for path in tree(made.cwd) if HIDDEN.search(path)]
    return "the next run leaves %s" % left if left and again.returncode == 0 else None


def each(tap, library, which, home, scratch, title, command, step):
    before = tree(home)
    whole = Made(library, home, scratch, command, which)
    n = whole.fault.allocations if which == "alloc" else whole.fault.calls
    if whole.fault.unavailable:
        print("1..0 # SKIP system calls cannot be made to fail here: %d" % whole.fault.unavailable)
        sys.exit(0)
    if whole.status or not n:
        tap.ok(False, title, "without a fault: status %s\n%s" % (whole.status, whole.err))
        return
    statuses = STATUSES[which]
    wrong, by_kind = [], {}
    for at in range(1, n + 1, step):
        made = Made(library, home, scratch, command, which, at)
        problem = problem_of(made, whole, before, statuses) or hidden_problem(made, which, command)
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
    if len(argv) != 9 or argv[2] not in STATUSES:
        sys.exit("usage: one_failure.py LIBRARY alloc|call|signal SPLIT INSPECT VERIFY PLAN MERGE LEARN")
    library, which, tools = os.path.abspath(argv[1]), argv[2], list(map(os.path.abspath, argv[3:]))
    step = int(os.environ.get("PSPLIT_FAULTS_STEP", "1" if which == "call" else "5"))
    only = os.environ.get("PSPLIT_FAULTS_ONLY", "")
    memory = small_files() if which != "signal" else None
    work = os.path.realpath(tempfile.mkdtemp(prefix="psplit-faults-", dir=memory))
    home, scratch = os.path.join(work, "home"), os.path.join(work, "scratch")
    tap = Tap()
    os.environ["OMP_NUM_THREADS"] = "1"  # of commands without --threads
    try:
        os.mkdir(home)
        os.mkdir(scratch)
        prepare(home, tools[0], tools[4], tools[5])
        for title, command in commands(*tools):
            if only in title:
                each(tap, library, which, home, scratch, title, command, step)
    finally:
        os.chdir("/")
        shutil.rmtree(work, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
