"""onnx-pipeline-learn and --policy of onnx-pipeline-plan and onnx-pipeline-split from outside: learn_command.py LEARN PLAN
SPLIT MAKE_MODEL. Results as TAP."""
import glob
import json
import os
import subprocess
import sys
import tempfile

learn, plan = sys.argv[1:3]
split, make_model = sys.argv[3:5]
n = 0


def check(what, good, why=""):
    global n
    n += 1
    print("%sok %d - %s" % ("" if good else "not ", n, what))
    if not good:
        print("# %s" % str(why)[:500].replace("\n", "\n# "))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def split_with_policy(model, policy, folder):
    """A policy is a model: it splits itself."""
    call = [split, model, "-k", "2", "--quiet", "--message-latency", "per-tensor", "--dim", "items=40", "--dim", "edges=60", "--dim", "candidates=4",
            "--dim", "schedules=9"]
    for solver in ("drlpp", "drlpp+slice"):
        said = [run(*call, "--plan-only", "--json", "--policy", policy, "--solver", solver, "--threads", k) for k in "12"]
        by = json.loads(said[0].stdout)["plan"]["solver"] if said[0].returncode == 0 else said[0].stderr
        check("a model's plan by %s, with any number of threads" % solver,
              by.startswith("drlpp") and said[0].stdout == said[1].stdout, by)
    made = run(*[word for word in call if word != "--quiet"], "-o", os.path.join(folder, "out"), "--policy", policy, "--verify", "--depfile", os.path.join(folder, "d"),
               "--schedule", "8,fixed=1e-6")
    check("with the schedule of a batch", "policy: stream, " in made.stdout and " for 8 samples: " in made.stdout, made.stdout)
    check("a model is split with a policy, which its rule names",
          made.returncode == 0 and policy in read(os.path.join(folder, "d")).decode(), made.stderr)
    for what, more, status, text in (
            ("--solver drlpp without a policy", ["--solver", "drlpp"], 2, "--policy"),
            ("--proposals without a policy", ["--proposals", "3"], 2, "--policy"),
            ("a policy that is not a number of times asked", ["--policy", policy, "--proposals", "0"], 2, "--proposals"),
            ("a policy that is another model", ["--policy", os.path.join(folder, "out", "stage0.onnx")], 4, "policy")):
        said = run(*call, "--plan-only", *more)
        check("split: %s" % what, said.returncode == status and text in said.stderr and said.stderr.count("error: ") == 1,
              (said.returncode, said.stderr))


def schedules(corpus, policy, folder):
    """--schedule: what the policy chooses for a batch, beside the best of all."""
    call = [plan, "--policy", policy, os.path.join(corpus, "a.json")]
    said = run(*call, "--schedule", "12,fixed=2")
    check("the schedule of a batch is told, with the best one", said.returncode == 0 and "policy: stream, " in said.stdout and
          "of all that are tried the best is stream with " in said.stdout, said.stdout + said.stderr)
    said = run(*call, "--schedule", "12", "--json")
    one = json.loads(said.stdout)["schedule"] if said.returncode == 0 else {}
    # Without a fixed cost, the more micro-batches the better: stages of 13 and twice less one after another.
    check("and as JSON", one.get("samples") == 12 and one["best"]["micro_batches"] == 12 and one["step"] >= one["best"]["step"] >= 12 * 13
          and one["fits"], said.stdout + said.stderr)
    step = ["--warm-steps", "1", "--steps", "2", "--rollouts", "4", "--graphs", "2", "--schedule-steps", "4"]
    log = os.path.join(folder, "schedules")
    rewarded = run(learn, corpus, "-o", os.path.join(folder, "s.onnx"), "--reward", "schedule", "--batch", "24", "--log", log, *step)
    rows = [json.loads(line) for line in read(log).decode().splitlines()] if rewarded.returncode == 0 else []
    check("a reward by schedules draws them", [r["micro_batches"] > 0 for r in rows] == [False, True, True, False, False, False, True], rewarded.stderr or rows)
    long = os.path.join(folder, "long.json")
    problem(long, [10**14] * 3, 2)
    said = run(learn, long, "-o", os.path.join(folder, "s.onnx"), "--reward", "schedule", "--fixed-cost", "100000", *step)
    check("fixed times that no schedule can add up are too large, not negative", said.returncode == 6 and "overflow" in said.stderr, said.stderr)
    for what, command, text in (
            ("a batch of nothing", [*call, "--schedule", "0"], "--schedule"),
            ("a batch with what is no number", [*call, "--schedule", "8,fixed=x"], "fixed"),
            ("a batch with another key", [*call, "--schedule", "8,cost=2"], "fixed=T"),
            ("a batch without a policy", [plan, call[3], "--schedule", "8"], "--policy"),
            ("a batch and copies", [*call, "--schedule", "8", "--replicas", "2"], "--schedule"),
            ("a split's batch without a policy", [split, policy, "-k", "2", "--plan-only", "--schedule", "8"], "--policy"),
            ("a split's batch and JSON", [split, policy, "-k", "2", "--plan-only", "--json", "--policy", policy, "--schedule", "8"], "--json"),
            ("a step of no sample", [learn, corpus, "-o", os.path.join(folder, "s.onnx"), "--batch", "0"], "--batch")):
        said = run(*command)
        check("%s is refused" % what, said.returncode == 2 and text in said.stderr and said.stderr.count("error: ") == 1, said.stderr)


MODEL = """<ir_version: 8, opset_import: ["": 17]>
layers (float[4,64] x) => (float[4,64] y)
<%s> {
%s  y = Identity (t8)
}
""" % (", ".join("float[64,64] w%d = random(%d)" % (k, k) for k in range(8)),
       "".join("  t%d = MatMul (%s, w%d)\n" % (k + 1, "t%d" % k if k else "x", k) for k in range(8)))

# One device is better than two here, so that splits are drawn that leave a stage empty; without it the
# solver works on other items.
SMALL = """<ir_version: 8, opset_import: ["": 17]>
small (float[256,256] x) => (float[256,256] y)
{
  t1 = Relu (x)
  t2 = Relu (t1)
  t3 = Relu (t2)
  y = Identity (t3)
}
"""


def measured(model, policy, output, folder):
    """Models in a corpus, and what their splits take when they are run."""
    made = subprocess.run([make_model, model], input=MODEL, capture_output=True, text=True)
    check("a model for the corpus", made.returncode == 0, made.stderr)
    steps = ["--warm-steps", "3", "--steps", "2", "--rollouts", "3", "--graphs", "1", "--seed", "3", "--schedule-steps", "1"]
    whole = run(learn, model, "-k", "2", "-o", output, *steps)
    check("a model is learned from as its problem", whole.returncode == 0 and "1 problem, " in whole.stdout, whole.stderr)
    again = run(learn, model, "-k", "2", "-o", os.path.join(folder, "from.onnx"), "--from", policy, "--warm-steps", "0", "--steps", "0",
                "--schedule-steps", "0")
    check("--from begins with a policy's weights",
          again.returncode == 0 and read(os.path.join(folder, "from.onnx")) == read(policy), again.stderr)
    again = run(learn, model, os.path.join(folder, "corpus/a.json"), "--devices", "cpu", "-k", "2", "--shape", "x=4,64", "-o", output, *steps)
    check("sizes of a model's inputs and its devices, beside a bare problem", again.returncode == 0 and "2 problems" in again.stdout,
          again.stderr)
    open_sizes = os.path.join(folder, "open.onnx")
    subprocess.run([make_model, open_sizes], input=MODEL.replace("float[4,64] x", "float[n,64] x").replace("float[4,64] y", "float[n,64] y"),
                   check=True, text=True)
    policies = []
    for how in (["--shape", "x=4096,64"], ["--dim", "n=4096"], []):
        said = run(learn, open_sizes, "-k", "2", "-o", output, *how, *steps)
        policies.append(read(output) if said.returncode == 0 else said.stderr)
    check("--shape fixes what --dim does, and costs depend on it", policies[0] == policies[1] != policies[2])
    can_run = os.path.exists(os.path.join(os.path.dirname(learn), "onnx-pipeline-run"))
    for what, more, status, text in (
            ("a model without -k", [model], 2, "-k"),
            ("measured rewards of a bare problem", [os.path.join(folder, "corpus/a.json"), "--reward", "measured"], 2, "a.json"),
            ("a dimension that no model has", [model, "-k", "2", "--dim", "bach=1"], 2, "bach"),
            ("an input that no model has", [model, "-k", "2", "--shape", "z=4,64"], 2, "z"),
            ("--shape without sizes", [model, "-k", "2", "--shape", "x"], 2, "--shape"),
            ("--shape of a bare problem", [os.path.join(folder, "corpus/a.json"), "--shape", "x=4,64"], 2, "--shape"),
            ("a devices file that is not there", [model, "--devices", os.path.join(folder, "none.json")], 3, "none.json"),
            ("a file of costs that is none", [model, "-k", "2", "--costs", model], 4, "model.onnx"),
            ("no ONNX Runtime", [model, "-k", "2", "--reward", "measured", "--onnxruntime", os.path.join(folder, "none.so")],
             *((3, "none.so") if can_run else (5, "cannot run stages"))),
            ("--from a model that is no policy", [model, "-k", "2", "--from", model], 4, "policy")):
        said = run(learn, *more, "-o", output, *steps)
        check("%s: one line, exit status %d" % (what, status), said.returncode == status and text in said.stderr and
              said.stderr.count("error: ") == 1, (said.returncode, said.stderr))
    found = glob.glob(os.path.join(os.path.dirname(__file__), "../e2e/node_modules/onnxruntime-node/bin/*/linux/*/libonnxruntime.so.1"))
    if not found or not can_run:
        print("# measured rewards are left out:", "no onnxruntime-node" if can_run else "built without what runs stages")
        return
    before = set(glob.glob("/tmp/psplit-learn-*"))
    runs = [learn, model, "-k", "2", "-o", output, "--reward", "measured", "--runs", "4", "--onnxruntime", found[0], *steps]
    said = run(*runs)
    check("measured rewards, with what the splits took", said.returncode == 0 and "splits were run" in said.stdout, said.stderr)
    nowhere = os.path.join(folder, "nowhere")
    said = run("env", "TMPDIR=" + nowhere, *runs)
    check("the splits stand below TMPDIR meanwhile", said.returncode == 3 and "no directory can be made under " + nowhere in said.stderr,
          said.stderr)
    small = os.path.join(folder, "small.onnx")
    subprocess.run([make_model, small], input=SMALL, check=True, text=True)
    said = run(learn, small, "-k", "2", "-o", output, "--reward", "measured", "--runs", "4", "--onnxruntime", found[0], *steps)
    check("measured rewards of splits that leave a stage empty", said.returncode == 0 and "splits were run" in said.stdout,
          said.stderr)
    check("nothing of them is left in /tmp", set(glob.glob("/tmp/psplit-learn-*")) <= before)


def problem(path, times, count, memory=0):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": "psplit-problem", "version": 1,
                   "devices": [{"class": 0, "count": count, "memory_bytes": memory}],
                   "nodes": [{"id": i, "time_ns": t, "weight_bytes": 10} for i, t in enumerate(times)],
                   "tensors": [{"producer": i, "consumers": [i + 1], "send_ns": 1, "recv_ns": 1}
                               for i in range(len(times) - 1)]}, file)


with tempfile.TemporaryDirectory() as folder:
    at = lambda name: os.path.join(folder, name)
    os.mkdir(at("corpus"))
    problem(at("corpus/a.json"), [7, 3, 9, 2, 8, 4, 6], 3)
    problem(at("corpus/b.json"), [1, 9, 1, 1, 5], 2)
    steps = ["--warm-steps", "4", "--rollouts", "4", "--graphs", "2", "--seed", "3", "--schedule-steps", "1"]
    whole = run(learn, at("corpus"), "-o", at("whole.onnx"), "--steps", "26", "--log", at("log"), *steps)
    check("a directory is learned from", whole.returncode == 0, whole.stderr)
    rows = [json.loads(line) for line in read(at("log")).decode().splitlines()]
    check("the log has a line a step", [r["step"] for r in rows] == list(range(1, 32)), rows[-1:])
    check("with what it says", {"reward", "entropy", "kl", "cpu_seconds"} <= set(rows[0]), rows[0])
    again = run(learn, at("corpus/a.json"), at("corpus/b.json"), "-o", at("again.onnx"), "--steps", "26", "--quiet", *steps)
    check("files one by one give the same bytes, without a line",
          again.returncode == 0 and again.stdout == "" and read(at("whole.onnx")) == read(at("again.onnx")), again.stderr)
    problem(at("corpus/c.json"), [1, 2, 3], 2, memory=12)
    left_out = run(learn, at("corpus"), "-o", at("third.onnx"), "--steps", "26", *steps)
    check("a problem without any split is left out, with its name",
          left_out.returncode == 0 and "c.json is left out" in left_out.stderr and
          read(at("whole.onnx")) == read(at("third.onnx")), left_out.stderr)

    for solver in ("drlpp", "drlpp+slice", "auto"):
        said = run(plan, "--json", "--solver", solver, "--policy", at("whole.onnx"), at("corpus/a.json"))
        check("solver %s with a policy" % solver, said.returncode == 0 and json.loads(said.stdout)["objective"] >= 13,
              said.stderr)
    for what, command, status, text in (
            ("drlpp without a policy", [plan, "--solver", "drlpp", at("corpus/a.json")], 2, "--policy"),
            ("a policy that is none", [plan, "--policy", at("corpus/a.json"), at("corpus/a.json")], 4, "a.json"),
            ("a policy that is not there", [plan, "--policy", at("none"), at("corpus/a.json")], 3, "none"),
            ("no output", [learn, at("corpus")], 2, "-o"),
            ("no corpus", [learn, "-o", at("x.onnx")], 2, "corpus"),
            ("a corpus that is not there", [learn, at("none"), "-o", at("x.onnx")], 3, "none"),
            ("--resume without --state", [learn, at("corpus"), "-o", at("x.onnx"), "--resume"], 2, "--state"),
            ("a state that is none", [learn, at("corpus"), "-o", at("x.onnx"), "--resume", "--state", at("log")], 4, "log")):
        said = run(*command)
        lines = [line for line in said.stderr.splitlines() if line.startswith("error: ")]
        check("%s: one line, exit status %d" % (what, status),
              said.returncode == status and len(lines) == 1 and text in said.stderr, (said.returncode, said.stderr))
    schedules(at("corpus"), at("whole.onnx"), folder)
    split_with_policy(at("again.onnx"), at("whole.onnx"), folder)
    measured(at("model.onnx"), at("whole.onnx"), at("measured.onnx"), folder)
print("1..%d" % n)
