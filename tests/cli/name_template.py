#!/usr/bin/env python3
"""--name-template: name_template.py SPLIT VERIFY MERGE

Stages have the names that were asked for, wherever a file names them, and what reads a split follows
pipeline.json. Names that would collide, leave the directory or need quoting are refused before
anything is written. TAP.
"""
import json
import os
import subprocess
import sys

from bad_input import OK, USAGE, Tap, model
from tap import scratch

TEXT = """(float[batch,64] x) => (float[batch,64] b)
  <float[64,64] w = random(1), float[64,64] v = random(2)> {
    [n0] a = MatMul (x, w)
    [n1] b = MatMul (a, v)
  }"""
GOOD = (("{model}-stage{stage:02}.onnx", ["my_net-stage00.onnx", "my_net-stage01.onnx"]),
        ("part{stage}of{stages:03}.onnx", ["part0of002.onnx", "part1of002.onnx"]),
        ("stage{stage}.onnx", ["stage0.onnx", "stage1.onnx"]),
        ("{stage}.onnx", ["0.onnx", "1.onnx"]))
FIELDS = "the fields are {model}, {stage}, {stage:02}, {stages} and {stages:02}"
WRONG = (("{stages}.onnx", "without {stage} all stages would have the same name"),
         ("stage.onnx", "without {stage} all stages would have the same name"),
         ("../s{stage}.onnx", "neither with '.' nor with '-'"),
         ("a/s{stage}.onnx", "no '/'"),
         ("-s{stage}.onnx", "neither with '.' nor with '-'"),
         (".s{stage}.onnx", "neither with '.' nor with '-'"),
         ("s{stage}", "end in .onnx"), (".onnx", "end in .onnx"), ("", "takes NAME, not"),
         ("{stag}.onnx", FIELDS), ("{stage:2}.onnx", FIELDS), ("{stage:00}.onnx", FIELDS),
         ("{model:02}{stage}.onnx", FIELDS), ("{stage.onnx", FIELDS), ("{device}{stage}.onnx", FIELDS),
         ("s {stage}.onnx", "only letters"), ("s$(x){stage}.onnx", "only letters"),
         ("s}{stage}.onnx", "only letters"), ("s\u00e9{stage}.onnx", "only letters"),
         ("s\n{stage}.onnx", "only letters"), ("x" * 250 + "{stage}.onnx", "more bytes"))


def main(argv):
    split, verify, merge = (os.path.abspath(path) for path in argv[1:4])
    tap = Tap()

    def call(*words):
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    def cut(out, *options):
        return call(split, "my net.v2.onnx", "-k", "2", "--dim", "batch=4", "-q", "-o", out,
                    *options)

    def contents(directory):
        found = {}
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), "rb") as file:
                found[name] = file.read()
        return found

    with scratch("names"):
        with open("my net.v2.onnx", "wb") as file:
            file.write(model(TEXT))
        done = cut("plain", "--pin", "n0=0", "--pin", "n1=1")
        tap.ok(done.returncode == OK, "names by default", done.stderr)
        plain = contents("plain")
        for template, names in GOOD:
            done = cut("out", "--pin", "n0=0", "--pin", "n1=1", "--name-template", template, "--force", "--verify")
            tap.ok(done.returncode == OK, "%s: written, in place of other names" % template, done.stderr)
            here = contents("out")
            manifest = json.loads(here["pipeline.json"])
            tap.ok(sorted(here) == sorted(names + ["pipeline.json"]) and
                   [stage["file"] for stage in manifest["stages"]] == names, "names are those that were asked for",
                   str(sorted(here)))
            tap.ok([here[name] for name in names] == [plain["stage0.onnx"], plain["stage1.onnx"]],
                   "and the files are the same bytes")
            done = call(verify, "out", "--model", "my net.v2.onnx")
            tap.ok(done.returncode == OK, "which are proved to be the model", done.stderr)
            done = call(merge, "out", "-o", "merged.onnx", "--force")
            tap.ok(done.returncode == OK, "and become a model again", done.stderr)
        tap.ok(contents("out") != plain and cut("same", "--pin", "n0=0", "--pin", "n1=1", "--name-template",
                                                 "stage{stage}.onnx").returncode == OK and
               contents("same") == plain, "the default's template is the default, byte for byte")

        done = cut("big", "--name-template", "s{stage}.onnx", "--weights", "external")
        tap.ok(done.returncode == OK and "s0.onnx.data" in contents("big"), "weights beside a stage have its name",
               done.stderr)
        done = call(split, "my net.v2.onnx", "-k", "2", "--dim", "batch=4", "-q", "-o", ".",
                    "--weights", "reference", "--name-template", "r{stage}.onnx", "--verify")
        tap.ok(done.returncode == OK and os.path.exists("r0.onnx") and os.path.exists("r1.onnx"),
               "stages among other files", done.stderr)
        done = call(split, "my net.v2.onnx", "-k", "2", "-q", "-o", ".", "--weights", "reference",
                    "--name-template", "r{stage}.onnx")
        tap.ok(done.returncode != OK and "r0.onnx exists" in done.stderr or "pipeline.json exists" in done.stderr,
               "which are not replaced by mistake", done.stderr)
        done = call(split, "my net.v2.onnx", "-k", "2", "-q", "-o", ".", "--weights", "reference", "--force",
                    "--name-template", "d{stage}.onnx", "--depfile", "d1.onnx")
        tap.ok(done.returncode != OK and not os.path.exists("d1.onnx"), "nor is a stage a make rule", done.stderr)

        done = cut("triton", "--boundary", "io", "--target", "triton", "--name-template", "{model}.{stage}.onnx")
        with open("triton/triton.sh") as file:
            script = file.read()
        tap.ok(done.returncode == OK and 'default_model_filename: "my_net.1.onnx"' in script and
               "my_net.0.onnx <<" in script and "stage0.onnx" not in script, "a server's files follow", done.stderr)
        done = call("sh", "triton/triton.sh", "repository")
        tap.ok(done.returncode == OK and any("my_net.0.onnx" in files for _, _, files in os.walk("repository")),
               "and its repository is laid out", done.stdout + done.stderr)

        done = cut("train", "--training", "--loss", "mse:prediction=b,target=t", "--name-template", "t{stage}.onnx")
        here = sorted(os.listdir("train")) if done.returncode == OK else []
        tap.ok("t0.onnx" in here and "t0.backward.onnx" in here and not any("stage" in name for name in here),
               "files of training have the stage's name", done.stderr + str(here))
        tap.ok(here and call(verify, "train", "--model", "my net.v2.onnx").returncode == OK, "and are proved, too")

        for template, why in WRONG:
            for options in (("-o", "no"), ("--plan-only",)):
                done = call(split, "my net.v2.onnx", "-k", "2", *options, "--name-template", template)
                tap.ok(done.returncode == USAGE and why in done.stderr and done.stderr.count("\n") == 1 and
                       "--name-template" in done.stderr and not os.path.exists("no"),
                       "%.30r %s is refused" % (template, options[0]), done.stderr)
        done = call(split, "my net.v2.onnx", "-k", "2", "--plan-only", "--json", "-q", "--name-template",
                    "j{stage}.onnx")
        tap.ok(json.loads(done.stdout)["stages"][1]["file"] == "j1.onnx", "the manifest that is printed has them")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
