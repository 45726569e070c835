#!/usr/bin/env python3
"""No command writes over what it reads: unread.py TOOLS

Each option that writes a file, of each command in the directory TOOLS, with the name of each file that the
command reads: one error line, and every file as it was. So for two outputs of one name. TAP.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from bad_input import FILE, OK, USAGE, Tap, chain
from faults import tree
from inputs import COSTS, DEVICES, PROBLEM, write
from one_failure import trained

# Not that something else is missing.
REASON = re.compile("is read, as|is a file of the (model|split) itself|the same file; give|is not a log of learning")


def prepare(tool):
    """The files that commands read, made by the commands."""
    def run(name, *args):
        made = subprocess.run([tool(name), *args], capture_output=True, text=True)
        if made.returncode != OK:
            sys.exit("%s: %s" % (name, made.stderr))
    for name, content in (("m.onnx", chain(4)), ("t.onnx", trained())):
        with open(name, "wb") as file:
            file.write(content)
    for name, content in (("devices", DEVICES), ("costs", COSTS), ("problem", PROBLEM)):
        write(name, content)
    os.mkdir("corpus")
    write("corpus/one.json", PROBLEM)
    write("x.npy", "samples, which nobody gets to")
    write("other.npy", "more of them")
    write("trace", json.dumps({"traceEvents": []}))
    write("notes", "a thesis\n")
    write("pins", "make_m0=0\n")
    run("learn", "problem", "-o", "policy", "-q", "--warm-steps", "1", "--steps", "1", "--schedule-steps",
        "0", "--state", "state")
    run("split", "m.onnx", "-k", "2", "-q", "-o", "out")
    if os.path.exists(tool("train")):
        run("split", "t.onnx", "-k", "2", "-q", "-o", "tout", "--training", "--loss-output", "loss",
            "--trained-weights", "input", "--optimizer", "sgd")


def of_split(directory):
    return [directory + "/" + name for name in ("pipeline.json", "stage0.onnx", "stage1.onnx")]


def commands():
    """(command, its arguments, options that write, files that it reads) for each."""
    few = ("--warm-steps", "1", "--steps", "1", "--schedule-steps", "0", "-q")
    planned = ("--devices", "devices", "--costs", "costs", "--policy", "policy", "--pins", "pins")
    yield ("split", ("m.onnx", *planned, "--force", "-o", "new"),
           ("--annotate", "--depfile", "--certificate"), ("m.onnx", "devices", "costs", "policy", "pins"))
    yield ("split", ("t.onnx",), ("--lower-gradient",), ("t.onnx",))
    yield ("split", ("t.onnx", "-k", "2", "--training", "--loss-output", "loss"), ("--training-info",),
           ("t.onnx",))
    yield ("inspect", ("m.onnx", *planned, "--format", "html", "--trace", "trace"), ("-o",),
           ("m.onnx", "devices", "costs", "policy", "pins", "trace"))
    yield "plan", ("problem", "--policy", "policy"), ("--certificate",), ("problem", "policy")
    yield "merge", ("out", "--force", "-m", "m.onnx"), ("-o",), ("m.onnx", *of_split("out"))
    yield ("learn", ("problem", "corpus", "-o", "new", *few), ("--state", "--log"),
           ("problem", "corpus/one.json"))
    yield "learn", ("problem", "-o", "new", *few), ("--log",), ("notes", "link")
    yield "learn", ("problem", "corpus", *few), ("-o",), ("problem", "corpus/one.json")
    yield ("learn", ("m.onnx", *planned[:4], *few), ("-o",), ("m.onnx", "devices", "costs"))
    yield ("run", ("out", "--random", "--devices", "devices", "-i", "x=x.npy"), ("--trace", "--profile"),
           (*of_split("out"), "devices", "x.npy"))
    yield "run", ("m.onnx",), ("--profile",), ("m.onnx",)
    trains = ("tout", "--data", "x=x.npy", "--eval-data", "x=other.npy", "--eval-every", "1", "--devices",
              "devices", "--checkpoint", "new", "--model", "t.onnx")
    reads = (*of_split("tout"), "devices", "x.npy", "other.npy", "t.onnx")
    yield "train", (*trains, "--force"), ("--export",), reads
    yield "train", (*trains, "--export", "exported"), ("--trace",), reads


def doubles():
    """(command, arguments) that name one file for two outputs."""
    yield "learn", ("problem", "-o", "same", "--state", "./same")
    yield "learn", ("problem", "-o", "same", "--log", "./same")
    yield "learn", ("problem", "-o", "new", "--state", "same", "--log", "same")
    yield "train", ("tout", "--data", "x=x.npy", "--checkpoint", "new", "--model", "t.onnx", "--export",
                    "same", "--trace", "./same")


def each(tap, before, command, args):
    made = subprocess.run(command + args, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    errors = [line for line in made.stderr.splitlines() if line.startswith("error: ")]
    changed = sorted(set(before.items()) ^ set(tree(".").items()))
    tap.ok(made.returncode in (FILE, USAGE) and len(errors) == 1 and REASON.search(errors[0])
           and not changed,
           " ".join([os.path.basename(command[0]), *args]),
           "status %d\n%s%s" % (made.returncode, made.stderr, changed))


def main(argv):
    if len(argv) != 2:
        sys.exit("usage: unread.py TOOLS")
    tools = os.path.abspath(argv[1])

    def tool(name):
        return os.path.join(tools, "onnx-pipeline-" + name)
    tap, home = Tap(), os.getcwd()
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-unread-"))
    try:
        os.chdir(cwd)
        prepare(tool)
        os.symlink("notes", "link")
        kept = os.path.join(cwd, ".kept")
        shutil.copytree(".", kept, symlinks=True)
        shutil.move(kept, cwd + ".kept")
        before = tree(".")
        calls = [(name, [*args, option, "./" + path]) for name, args, options, paths in commands()
                 for option in options for path in paths]
        for name, args in calls + [(name, list(args)) for name, args in doubles()]:
            if not os.path.exists(tool(name)):
                print("# no " + name)
                continue
            each(tap, before, [tool(name)], args)
            if tree(".") != before: # as they were, for the next one
                os.chdir(home)
                shutil.rmtree(cwd)
                shutil.copytree(cwd + ".kept", cwd, symlinks=True)
                os.chdir(cwd)
    finally:
        os.chdir(home)
        for path in (cwd, cwd + ".kept"):
            shutil.rmtree(path, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
