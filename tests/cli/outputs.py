#!/usr/bin/env python3
"""What the commands print and write where users look: outputs.py SPLIT INSPECT

Standard output that cannot be written, make rules, names in tables, messages that say which file,
numbers of stages of which some fit, and output names that would cost the user a file. TAP; the
models are those of bad_input.py.
"""
import json
import os
import shutil
import subprocess
import sys

from bad_input import FILE, INFEASIBLE, MALFORMED, OK, USAGE, Tap, chain
from tap import scratch


class Shell:
    def __init__(self, tap, split, inspect):
        self.tap, self.split, self.inspect = tap, split, inspect

    def run(self, tool, *args, **more):
        return subprocess.run([tool, *args], capture_output=True, text=True, errors="replace",
                              timeout=60, **more)

    def each(self, name, status, says, tool, *args):
        """Exact status; `says` stands in one line on stderr, after `error:` where it failed."""
        made = self.run(tool, *args)
        lines = [line for line in made.stderr.splitlines() if line.startswith("error: ")]
        good = made.returncode == status and says in made.stderr
        good = good and len(lines) == (status != OK)
        self.tap.ok(good, name, "status %d\n%s" % (made.returncode, made.stderr))
        return made


def full_disk(s):
    """A manifest longer than the buffer of stdout leaves it empty: the failure shows earlier."""
    for tool, name, args in ((s.split, "manifest", ["m.onnx", "-k", "8", "--plan-only", "--json"]),
                             (s.split, "table", ["m.onnx", "-k", "2", "--plan-only"]),
                             (s.split, "--help", ["--help"]), (s.split, "--version", ["-V"]),
                             (s.split, "--print-pipeline", ["--print-pipeline"]),
                             (s.inspect, "operators", ["m.onnx", "--level", "operators"])):
        with open("/dev/full", "w") as full:
            made = subprocess.run([tool, *args, *(["-q"] if "m.onnx" in args and name != "table" else [])],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        lines = [line for line in made.stderr.splitlines() if line.startswith("error: ")]
        s.tap.ok(made.returncode == FILE and len(lines) == 1 and "standard output" in lines[0],
                 "standard output is full: " + name, "%d %s" % (made.returncode, made.stderr))


def make_rules(s):
    if not shutil.which("make"):
        print("# no make")
        return
    os.mkdir("a b")
    shutil.copy("m.onnx", "a b/m #$1.onnx")
    with open("a b/devices 1.json", "w") as file:
        json.dump({"devices": [{"name": "a", "preset": "cpu"}, {"name": "b", "preset": "cpu"}]}, file)
    with open("a b/patterns", "w") as file:
        file.write("pattern mine\n  a = MatMul(x, w)\n  b = Relu(a)\n")
    made = s.run(s.split, "a b/m #$1.onnx", "-o", "a b/out $x", "--depfile", "d.d", "-q",
                 "--devices", "a b/devices 1.json", "--passes",
                 "infer-shapes,cost,mark,attach,fuse:patterns=a b/patterns,coarsen,partition")
    with open("Makefile", "w") as file:
        file.write("a\\ b/out\\ $$x/pipeline.json:\n\t@echo again\n-include d.d\n")
    target = "a b/out $x/pipeline.json"
    clean = s.run("make", "-q", target)
    stale = []
    for name in ("a b/m #$1.onnx", "a b/devices 1.json", "a b/patterns"):
        os.utime(name, (2e9, 2e9))
        stale.append("again" in s.run("make", target).stdout)
        os.utime(name, (1e9, 1e9))
    s.tap.ok(made.returncode == OK and clean.returncode == 0 and all(stale),
             "make reads the rule: spaces, dollars, devices",
             made.stderr + open("d.d").read() + clean.stderr + str(stale))


def tables(s):
    names = ["edge-device-number-%d" % i for i in range(2)]
    with open("long.json", "w") as file:
        json.dump({"devices": [{"name": name, "preset": "cpu"} for name in names]}, file)
    table = s.run(s.split, "m.onnx", "--devices", "long.json", "--plan-only").stdout.splitlines()
    columns = [table[0].index("  nodes") + 7] + [row.index(name) + len(name) for row, name
                                                in zip(table[1:3], names) if name in row]
    s.tap.ok(len(columns) == 3 and len({len(row.rstrip(" <")) for row in table[:3]}) == 1,
             "long names of devices are told apart, in columns", "\n".join(table[:4]))


def ranges(s):
    """One device of 40 KiB holds a part of the weights of 8 * 16 KiB; four hold all."""
    with open("small.json", "w") as file:
        json.dump({"devices": [{"name": "d%d" % i, "preset": "cpu", "keeps_copies": False,
                                "memory_bytes": 40 << 10}
                               for i in range(8)]}, file)
    args = ("wide.onnx", "--dim", "batch=1", "--devices", "small.json", "--plan-only", "-k")
    made = s.each("a range of which the first numbers do not fit", OK, "", s.split, *args, "1..8")
    lines = made.stdout.splitlines()
    s.tap.ok(len(lines) == 11 and "1 infeasible: memory" in lines[1] and "optimal" in lines[8]
             and lines[9].startswith("6 to 8 stages have the same bottleneck, ")
             and "none can hold the whole model" in lines[10],
             "each number of stages has its line, with the reason", made.stdout)
    s.each("a range of which none fits", INFEASIBLE, "memory", s.split, *args, "1..2")


def words(s):
    for content, says in (("{\"devices\": [{\"name\": \"a\", \"preset\": \"x\"}]}", "devices[0].preset"),
                          ("{\"devices\": [", "line 1")):
        with open("wrong.json", "w") as file:
            file.write(content)
        s.each("the file of devices is named: " + says, MALFORMED, "wrong.json: " + says, s.split,
               "m.onnx", "--devices", "wrong.json", "--plan-only")
    s.each("no such preset", FILE, "presets are cpu,", s.split, "m.onnx", "-k", "2", "--devices",
           "nvidia-l5", "--plan-only")
    s.each("an unknown word", USAGE, "auto, inline, external, reference", s.split, "m.onnx", "-k",
           "2", "--weights", "outside", "--plan-only")


def names(s):
    """An output's name that is easily given by mistake."""
    before = open("m.onnx", "rb").read()
    s.each("inspect writes over the model", FILE, "is a file of the model itself", s.inspect,
           "m.onnx", "-o", "./m.onnx")
    s.each("split's rule over the model", FILE, "is a file of the model itself", s.split,
           "m.onnx", "-k", "2", "-o", "out", "--depfile", "./m.onnx")
    s.tap.ok(open("m.onnx", "rb").read() == before and not os.path.exists("out"),
             "the model is as it was")
    for ending, begins in (("html", "<!doctype html>"), ("svg", "<svg"), ("json", "{"), ("dot", "digraph"),
                           ("onnxtxt", "<"), ("txt", "model "), ("text.json.x", "model ")):
        name = "shown." + ending
        s.each("inspect -o " + name, OK, "", s.inspect, "m.onnx", "-o", name, "-q",
               *(() if ending == "onnxtxt" else ("-k", "2", "--dim", "batch=1")))
        with open(name, encoding="utf-8") as file:
            s.tap.ok(file.read(50).lstrip().startswith(begins), "is what it ends in: " + ending)
    s.each("--format goes before the ending", OK, "", s.inspect, "m.onnx", "-o", "shown.txt", "--format", "json", "-q")
    with open("shown.txt", encoding="utf-8") as file:
        s.tap.ok(file.read(1) == "{", "and is written")
    made = s.each("inspect to -", OK, "", s.inspect, "m.onnx", "-o", "-", "--dim", "batch=1")
    s.tap.ok(made.stdout.startswith("model operators=16"), "- is standard output", made.stdout)
    for option in ("-o", "--annotate"):
        s.each("split %s -" % option, USAGE, "standard output", s.split, "m.onnx", "-k", "2", option,
               "-")
    s.tap.ok(not os.path.lexists("-"), "no file is called -")
    s.each("a name of two lines", FILE, "error: a?b: cannot open", s.split, "a\nb", "-k", "2",
           "--plan-only")
    s.each("a model in no directory", FILE, "nodir/m.onnx: cannot be written", s.split, "m.onnx", "-k",
           "2", "--annotate", "nodir/m.onnx", "-q")


def in_a_split(s):
    """What would be in a split keeps --force from replacing it, with a warning before; its own files stay."""
    s.run(s.split, "m.onnx", "-k", "2", "-o", "whole", "-q", "--weights", "inline")
    manifest = open("whole/pipeline.json").read()
    told = "would be in a split, and onnx-pipeline-split --force does not replace"
    s.each("a page in the manifest's place", FILE, "is a file of the split itself", s.inspect,
           "m.onnx", "-o", "whole/pipeline.json")
    s.tap.ok(open("whole/pipeline.json").read() == manifest, "the manifest stays")
    page = [s.inspect, "m.onnx", "-o", "whole/page"]
    again = [s.split, "m.onnx", "-k", "2", "-o", "whole", "--force"]
    for name, tool, *args in (("a page", *page), ("a page by another way", *page[:-1], "./whole//page"),
                              ("an annotated model", s.split, "m.onnx", "-k", "2", "--annotate", "whole/page"),
                              ("a split", *again[:-2], "whole/page"), ("its slash", *again[:-2], "whole/page/")):
        s.each(name + " in a split", OK, "warning: %s %s" % (args[-1], told), tool, *args)
        made = s.run(tool, *args, *(["--force"] if "-k" in args else []))
        s.tap.ok(made.returncode == OK and told not in made.stderr, name + ": known the second time", made.stderr)
        s.each(name + " is in the way", FILE, "whole holds page, which does not belong to the split there", *again)
        (shutil.rmtree if os.path.isdir("whole/page") else os.remove)("whole/page")
    made = s.run(*again)
    s.tap.ok(made.returncode == OK and told not in made.stderr, "the split is replaced without it", made.stderr)
    made = s.run(*page[:-1], "whole/../page")
    s.tap.ok(made.returncode == OK and told not in made.stderr, "beside it nothing is told", made.stderr)


def places(s):
    """Weights of 34 MiB a layer: only the stage of two layers is too large to be one file."""
    with open("heavy.onnx", "wb") as file:
        file.write(chain(3, 3000))
    for weights, outside in (("auto", [0]), ("inline", []), ("external", [0, 1])):
        made = s.run(s.split, "heavy.onnx", "-k", "2", "-o", "heavy", "--force", "-q", "--verify",
                     "--weights", weights, "--pin", "make_m1=0", "--pin", "make_m2=1")
        found = [i for i in (0, 1) if os.path.exists("heavy/stage%d.onnx.data" % i)]
        small = [i for i in (0, 1) if os.path.exists("heavy/stage%d.onnx" % i)
                 and os.path.getsize("heavy/stage%d.onnx" % i) < 1 << 20]
        s.tap.ok(made.returncode == OK and found == outside and small == outside,
                 "weights of large stages stand outside: " + weights,
                 "%s %s %s" % (made.stderr, found, small))


def main(argv):
    if len(argv) != 3:
        sys.exit("usage: outputs.py SPLIT INSPECT")
    s = Shell(Tap(), *map(os.path.abspath, argv[1:]))
    with scratch("outputs"):
        for name, n in (("m.onnx", 8), ("wide.onnx", 64)):
            with open(name, "wb") as file:
                file.write(chain(8, n))
        for test in (full_disk, make_rules, tables, ranges, words, names, in_a_split, places):
            test(s)
    return s.tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
