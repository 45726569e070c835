#!/usr/bin/env python3
"""Where what is written first under a hidden name finds no room: no_room.py TOOLS

The error names what was asked for, not a directory that is gone by then; nothing is left. TAP.
"""
import glob
import os
import resource
import subprocess
import sys
import tempfile

from bad_input import FILE, Tap, chain
from durable import ONNXRUNTIME, write_samples
from one_failure import trained


def refused(tap, home, title, says, command, kilobytes):
    disk = os.path.join(home, "disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kilobytes, "none", disk], check=True)
    try:
        made = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120)
        left = os.listdir(disk)
    finally:
        subprocess.run(["umount", disk], check=True)
    errors = [line for line in made.stderr.splitlines() if line.startswith("error: ")]
    good = (made.returncode == FILE and len(errors) == 1 and says in errors[0]
            and "No space left" in errors[0] and ".psplit-" not in errors[0] and not left)
    tap.ok(good, title, "status %d\n%s%s" % (made.returncode, made.stderr, left))


def limited(tap, home, title, limit, says, command):
    """A limit on the size of files, which ONNX Runtime meets in files that it writes itself."""
    before = set(os.listdir(home))
    made = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    left = set(os.listdir(home)) - before
    errors = [line for line in made.stderr.splitlines() if line.startswith("error: ")]
    tap.ok(made.returncode == FILE and len(errors) == 1 and says in errors[0] and "TMPDIR" in errors[0] and not left,
           title, "status %d\n%s%s" % (made.returncode, made.stderr, left))


def may_mount(directory):
    made = subprocess.run(["mount", "-t", "tmpfs", "none", directory], capture_output=True)
    return made.returncode == 0 and subprocess.run(["umount", directory], check=True).returncode == 0


def main(argv):
    tools = os.path.abspath(argv[1])
    tap = Tap()
    found = glob.glob(ONNXRUNTIME)
    if not found or not os.path.exists(tools + "/onnx-pipeline-train"):
        print("1..0 # SKIP no onnxruntime-node")
        return 0
    os.environ["PSPLIT_ONNXRUNTIME"] = os.path.abspath(found[0])
    split, train = tools + "/onnx-pipeline-split", tools + "/onnx-pipeline-train"
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(home, "disk"))
        if not may_mount(os.path.join(home, "disk")):
            print("1..0 # SKIP mounting is not allowed here")
            return 0
        for name, content in (("m.onnx", chain(3, 300)), ("s.onnx", chain(6, 8)), ("t.onnx", trained())):
            with open(os.path.join(home, name), "wb") as file:
                file.write(content)
        for limit, what in ((100, "the optimised model"), (4096, "all of its profile")):
            says = "ONNX Runtime could not write %s in " % what
            limited(tap, home, "no room for %s of a run" % what, limit, says,
                    (tools + "/onnx-pipeline-run", "--profile", "c.json", "s.onnx", "--random", "--dim", "batch=2", "-q"))
            limited(tap, home, "or of a round of --autotune", limit, says,
                    (split, "s.onnx", "-k", "2", "-q", "-o", "tuned", "--autotune", "1", "--dim", "batch=2"))
        write_samples(os.path.join(home, "x.npy"))
        subprocess.run([split, "t.onnx", "-k", "2", "-q", "-o", "tout", "--training", "--loss-output", "loss",
                        "--trained-weights", "input", "--optimizer", "sgd"], cwd=home, check=True)
        trains = (train, "tout", "-q", "--data", "x=x.npy", "--batch", "4", "-m", "1", "--steps", "1")
        for place in ("disk/checkpoint", "disk/checkpoint/", home + "/disk/checkpoint"):
            refused(tap, home, "a checkpoint in " + place.replace(home, ""), "disk/checkpoint/",
                    (*trains, "--checkpoint", place), 4)
        refused(tap, home, "a round of --autotune", "autotuning: cannot write disk/tuned/stage",
                (split, "m.onnx", "-k", "2", "-q", "-o", "disk/tuned", "--autotune", "1", "--dim", "batch=2"), 64)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
