#!/usr/bin/env python3
"""Names that a model does not have: unknown_names.py SPLIT INSPECT VERIFY [RUN]

A misspelt --dim or --shape changed nothing, or only a warning that --quiet hides. Every command
that takes one refuses it, says which name is near and which there are, and leaves nothing behind.
TAP; the models are those of bad_input.py.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from bad_input import OK, USAGE, Tap, listing, model

NAMES = ["batch", "sequence_length"]


def make():
    """x [batch, sequence_length, 8] -> MatMul -> Relu -> y; a body has a dimension of its own."""
    body = "() => (float[inner_rows,8] r) { r = Relu (m) }"
    return model("""(float[batch,sequence_length,8] x, bool c) => (float[batch,sequence_length,8] y)
      <float[8,8] w = random(1)> {
        m = MatMul (x, w)
        i = If (c) <then_branch = %s, else_branch = %s>
        y = Tanh (i)
      }""" % (body, body))


class Names:
    def __init__(self, tap, cwd):
        self.tap, self.cwd = tap, cwd

    def each(self, title, status, says, *command):
        before = listing(self.cwd)
        done = subprocess.run(command, cwd=self.cwd, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        good = (done.returncode == status and len(lines) == (status != OK)
                and all(word in done.stderr for word in says))
        left = set(listing(self.cwd)) ^ set(before)
        self.tap.ok(good and (status == OK or not left), title,
                    "status %d\n%s%s" % (done.returncode, done.stderr, left or ""))


def main(argv):
    if len(argv) not in (4, 5):
        sys.exit("usage: unknown_names.py SPLIT INSPECT VERIFY [RUN]")
    split, inspect, verify, run = (*map(os.path.abspath, argv[1:]), None)[:4]
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-names-"))
    s = Names(Tap(), cwd)
    try:
        with open(os.path.join(cwd, "m.onnx"), "wb") as file:
            file.write(make())
        both = ("did you mean batch?", "batch, sequence_length")
        for quiet in ((), ("-q",)):
            flag = " -q" if quiet else ""
            bad = ("--dim", "bacth=8", *quiet)
            for title, *command in (
                    ("split -o", split, "m.onnx", "-k", "2", "-o", "out"),
                    ("split --plan-only", split, "m.onnx", "-k", "2", "--plan-only"),
                    ("split, a range", split, "m.onnx", "-k", "1..3", "--plan-only"),
                    ("split --json", split, "m.onnx", "-k", "2", "--plan-only", "--json"),
                    ("split --annotate", split, "m.onnx", "-k", "2", "--annotate", "a.onnx"),
                    ("split, too many stages", split, "m.onnx", "-k", "400", "-o", "out"),
                    ("inspect", inspect, "m.onnx"),
                    ("inspect, before any pass", inspect, "m.onnx", "--level", "operators",
                     "--before", "infer-shapes"),
                    ("inspect --format html", inspect, "m.onnx", "-k", "2", "--format", "html",
                     "-o", "page.html")):
                s.each("%s%s: a --dim that is none" % (title, flag), USAGE,
                       ("dimension bacth", *both), *command, *bad)
        for name, near in (("Batch", "batch"), ("sequence", "sequence_length"),
                           ("seqence_lenght", "sequence_length"), ("inner_row", "inner_rows"),
                           ("batch ", "batch")):
            s.each("--dim %s: the nearest is %s" % (name, near), USAGE,
                   ("did you mean %s?" % near,), split, "m.onnx", "-k", "2", "--plan-only", "--dim",
                   "%s=2" % name)
        s.each("--dim height: none is near", USAGE, ("dimension height; it has batch, ",), split,
               "m.onnx", "-k", "2", "--plan-only", "--dim", "height=2")
        s.each("names that there are", OK, (), split, "m.onnx", "-k", "2", "--plan-only", "--dim",
               "batch=2", "--dim", "sequence_length=3", "--dim", "inner_rows=6")
        with open(os.path.join(cwd, "odd.txt"), "w") as file:
            file.write("pattern odd\n  a = Sofmax(*)\npattern odd\n  a = Sofmxa(*)\n"
                       "pattern there\n  a = MatMul(*)\n")
        with_odd = [split, "m.onnx", "-k", "2", "--plan-only", "--passes",
                    "fuse:patterns=odd.txt,partition"]
        s.each("a pattern that matches nothing is told of", OK,
               ('odd.txt: pattern "odd" matches nothing',), *with_odd)
        done = subprocess.run(with_odd, cwd=cwd, capture_output=True, text=True)
        s.tap.ok(done.stderr.count("matches nothing") == 1, "once, and no other", done.stderr)
        shapes = [subprocess.run([split, "m.onnx", "-k", "2", "--plan-only", "--json", *sizes], cwd=cwd,
                                 capture_output=True, text=True) for sizes in (
                  ("--shape", "x=4,16,8"), ("--dim", "batch=4", "--dim", "sequence_length=16"), ())]
        s.tap.ok(shapes[0].stdout == shapes[1].stdout != shapes[2].stdout and not shapes[0].stderr,
                 "--shape of an input is --dim of its dimensions", shapes[0].stderr + shapes[0].stdout)
        with open(os.path.join(cwd, "open.onnx"), "wb") as file:
            file.write(model("(float[?,8] x) => (float[?,8] y) <float[8,8] w = random(1)> {"
                             " m = MatMul (x, w) y = Relu (m) }"))
        done = [subprocess.run([split, "open.onnx", "-k", "2", "--plan-only", "--json", *sizes],
                               cwd=cwd, capture_output=True, text=True) for sizes in
                (("--shape", "x=64,8"), ())]
        s.tap.ok('"bytes": 2048' in done[0].stdout and '"bytes": 2048' not in done[1].stdout,
                 "--shape fixes a dimension without a name", done[0].stderr + done[0].stdout)
        made = subprocess.run([split, "m.onnx", "-k", "1..4", "--plan-only", "--json", "-q"], cwd=cwd,
                              capture_output=True, text=True)
        rows = json.loads(made.stdout)
        s.tap.ok([row["n_stages"] for row in rows] == [1, 2, 3, 4] and "infeasible" in rows[3]
                 and rows[0]["speed_up"] == 1 and rows[1]["value_ns"] >= rows[1]["lower_bound_ns"] > 0,
                 "--json of a range of stages", made.stdout + made.stderr)
        s.each("a split to go on with", OK, (), split, "m.onnx", "-k", "2", "-o", "out", "-q")
        if run:
            for title, *command in (
                    ("run", run, "out", "--random"),
                    ("run -q", run, "out", "--random", "-q", "-o", "results"),
                    ("run --profile", run, "--profile", "costs.json", "m.onnx"),
                    ("verify --run", verify, "out", "--model", "m.onnx", "--run"),
                    ("verify --run -q", verify, "out", "--model", "m.onnx", "--run", "-q"),
                    ("split --autotune", split, "m.onnx", "-k", "2", "-o", "tuned", "--autotune",
                     "1", "-q")):
                s.each(title + ": a --dim that is none", USAGE, ("dimension bacth", *both),
                       *command, "--dim", "bacth=8")
                s.each(title + ": a --shape that is none", USAGE,
                       ("no input X", "did you mean x?", "x, c"), *command, "--shape", "X=1,2,8")
                s.each(title + ": an --input that is none", USAGE, ("no input image", "x, c"),
                       *command, "--input", "image=none.npy")
            s.each("verify --dim without --run", USAGE, ("--run",), verify, "out", "--model",
                   "m.onnx", "--dim", "batch=8")
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    print("1..%d" % s.tap.count)
    return s.tap.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
