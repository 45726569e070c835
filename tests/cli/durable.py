#!/usr/bin/env python3
"""What a power cut leaves behind a command that has said it is done: durable.py JOURNAL TOOLS

Each command runs under the library of tests/support/journal.c. A file is on the disk where nothing
was written to it after it was synced; a name is, where its directory was synced after it was given.
After status 0 every output is, under its name. And --clean removes what killed runs left. TAP.
"""
import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile

from bad_input import FILE, OK, USAGE, Tap, chain
from inputs import PROBLEM, write
from one_failure import FEW_STEPS, trained


HOSTS = {"devices": [{"name": name, "preset": "cpu", "session": {"provider": "CPU"}} for name in "ab"]}
ONNXRUNTIME = os.path.join(os.path.dirname(__file__),
                           "../e2e/node_modules/onnxruntime-node/bin/*/linux/*/libonnxruntime.so.1")


def identity(path):
    status = os.lstat(path)
    return "%x:%d" % (status.st_dev, status.st_ino)


class Disk:
    """What of the tree below `home` a power cut would leave."""

    def __init__(self, home):
        self.now, self.durable, self.dirty = {}, {}, set()
        for at, directories, files in os.walk(home):
            names = {name: identity(os.path.join(at, name)) for name in directories + files}
            self.now[identity(at)] = names
        self.sync_all()

    def sync(self, what):
        self.dirty.discard(what)
        if what in self.now:
            self.durable[what] = dict(self.now[what])

    def sync_all(self):
        self.dirty.clear()
        for directory in list(self.now):
            self.sync(directory)

    def replay(self, journal):
        for line in journal:
            kind, *rest = line.rstrip("\n").split(" ", 3 if line[0] in "ERX" else 2)
            if kind == "W":
                self.dirty.add(rest[0])
            elif kind == "S":
                self.sync(rest[0])
            elif kind == "A":
                self.sync_all()
            elif kind == "E":
                self.entry(rest[0])[rest[2]] = rest[1]
                self.dirty.add(rest[1])
                self.now.setdefault(rest[1], {})
            elif kind == "U":
                self.entry(rest[0]).pop(rest[1], None)
            else:
                (a, b), (source, target) = rest[:2], rest[2].split("/")
                moved, other = self.entry(a).get(source), self.entry(b).get(target)
                self.entry(b)[target] = moved
                if kind == "X":
                    self.entry(a)[source] = other
                elif (a, source) != (b, target):
                    self.entry(a).pop(source, None)

    def entry(self, directory):
        return self.now.setdefault(directory, {})

    def lost(self, home, path):
        """Why the file or directory `path` below `home` would not be what it is."""
        directory = identity(home)
        at = home
        for part in os.path.relpath(path, home).split(os.sep):
            at = os.path.join(at, part)
            if self.durable.get(directory, {}).get(part) != identity(at):
                return "the name %s is not" % at
            directory = identity(at)
        if directory in self.dirty and not os.path.isdir(path):
            return "the content of %s is not" % path
        return None


def files_below(path):
    if not os.path.isdir(path):
        return [path]
    return [path] + [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]


def durable(tap, library, home, title, outputs, command, environment=None):
    disk = Disk(home)
    with tempfile.TemporaryDirectory() as place:
        journal = os.path.join(place, "journal")
        made = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120, env={**os.environ, **(environment or {}),
                                                "LD_PRELOAD": library, "PSPLIT_JOURNAL": journal})
        with open(journal) as file:
            disk.replay(file)
    lost = [disk.lost(home, path) for output in outputs for path in files_below(
        os.path.join(home, output))] if made.returncode == OK else []
    why = [each for each in lost if each]
    tap.ok(made.returncode == OK and lost and not why, title,
           "status %d\n%s%s" % (made.returncode, made.stderr, "\n".join(why)))
    return why


def others(tap, library, home, tools):
    """What the other commands write."""
    def tool(name):
        return os.path.join(tools, "onnx-pipeline-" + name)
    write(os.path.join(home, "problem"), PROBLEM)
    with open(os.path.join(home, "heavy.onnx"), "wb") as file:
        file.write(chain(3, 300))
    subprocess.run([tool("split"), "heavy.onnx", "-k", "2", "-q", "-o", "heavy"], cwd=home, check=True)
    for title, outputs, command in (
            ("a page's stages, one after each pass", ["dumps"],
             (tool("inspect"), "m.onnx", "-q", "-k", "2", "--dump-after", "all", "--dump-dir", "dumps")),
            ("a model of supernodes", ["n.onnx"],
             (tool("inspect"), "m.onnx", "-q", "-k", "2", "--format", "onnx", "-o", "n.onnx")),
            ("a certificate", ["c2"], (tool("plan"), "problem", "--certificate", "c2")),
            ("a merged model and its weights", ["merged.onnx", "merged.onnx.data"],
             (tool("merge"), "heavy", "-q", "-o", "merged.onnx", "--weights", "external")),
            ("the same over old ones", ["merged.onnx", "merged.onnx.data"],
             (tool("merge"), "heavy", "-q", "-o", "merged.onnx", "--weights", "external", "--force")),
            ("a policy and what goes on with it", ["policy", "state"],
             (tool("learn"), "problem", "-o", "policy", "--state", "state", *FEW_STEPS)),
            ("the same over old ones", ["policy", "state"],
             (tool("learn"), "problem", "-o", "policy", "--state", "state", *FEW_STEPS))):
        durable(tap, library, home, title, outputs, command)


def running(tap, library, home, tools):
    """What commands write that run stages."""
    found = glob.glob(ONNXRUNTIME)
    if not found or not os.path.exists(tools + "/onnx-pipeline-train"):
        print("# what runs is left out: no onnxruntime-node")
        return
    os.environ["PSPLIT_ONNXRUNTIME"] = os.path.abspath(found[0])
    split, run, train = (os.path.join(tools, "onnx-pipeline-" + name) for name in ("split", "run", "train"))
    with open(os.path.join(home, "t.onnx"), "wb") as file:
        file.write(trained())
    write_samples(os.path.join(home, "x.npy"))
    write(os.path.join(home, "hosts"), HOSTS)
    durable(tap, library, home, "results and a trace", ["results", "trace"],
            (run, "out", "-q", "--random", "--dim", "batch=2", "-m", "2", "-o", "results", "--trace", "trace"))
    durable(tap, library, home, "a table of costs", ["table"],
            (run, "--profile", "table", "-q", "m.onnx", "--random", "--dim", "batch=2", "-m", "2"))
    durable(tap, library, home, "a split that --autotune chose", ["tuned"],
            (split, "m.onnx", "-k", "2", "-q", "-o", "tuned", "--autotune", "1", "--dim", "batch=2"))
    durable(tap, library, home, "what a provider takes, and a split by it", ["probe", "probed"],
            (split, "m.onnx", "-k", "2", "-q", "-o", "probed", "--devices", "hosts", "--probe", "CPU=probe", "--dim", "batch=2"))
    durable(tap, library, home, "a split to train", ["tout"],
            (split, "t.onnx", "-k", "2", "-q", "-o", "tout", "--training", "--loss-output", "loss",
             "--trained-weights", "input", "--optimizer", "sgd"))
    trains = (train, "tout", "-q", "--data", "x=x.npy", "--batch", "4", "-m", "1", "--steps")
    durable(tap, library, home, "a checkpoint and a trained model", ["checkpoint", "trained.onnx"],
            (*trains, "1", "--checkpoint", "checkpoint", "--export", "trained.onnx", "--model", "t.onnx"))
    durable(tap, library, home, "the same over old ones", ["checkpoint", "trained.onnx"],
            (*trains, "2", "--checkpoint", "checkpoint", "--resume", "checkpoint", "--export", "trained.onnx",
             "--model", "t.onnx", "--force"))


def write_samples(path):
    """8 rows of 8 floats, all zero."""
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8), }"
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(256))


def splits(tap, library, home, tools):
    split, inspect = (os.path.join(tools, "onnx-pipeline-" + name) for name in ("split", "inspect"))
    two = (split, "m.onnx", "-k", "2", "-q")
    durable(tap, library, home, "a split", ["out"], (*two, "-o", "out"))
    durable(tap, library, home, "a split in place of another", ["out"],
            (*two, "-o", "out", "--force", "--boundary", "io"))
    durable(tap, library, home, "weights in files of their own", ["apart"],
            (*two, "-o", "apart", "--weights", "external"))
    durable(tap, library, home, "weights of the model's own file", ["stage0.onnx", "pipeline.json"],
            (*two, "-o", ".", "--weights", "reference"))
    durable(tap, library, home, "the same again", ["stage0.onnx", "pipeline.json"],
            (*two, "-o", ".", "--weights", "reference", "--force"))
    durable(tap, library, home, "what is written beside a split",
            ["beside", "a.onnx", "d.d", "c", "c.problem.json"],
            (*two, "-o", "beside", "--annotate", "a.onnx", "--depfile", "d.d", "--certificate", "c"))
    durable(tap, library, home, "the same over old ones", ["beside", "a.onnx", "d.d"],
            (*two, "-o", "beside", "--annotate", "a.onnx", "--depfile", "d.d", "--force"))
    durable(tap, library, home, "a page", ["page"],
            (inspect, "m.onnx", "-q", "-k", "2", "--format", "html", "-o", "page"))
    others(tap, library, home, tools)
    # The check itself has to see what is missing.
    quiet = Tap()
    quiet.ok = lambda *_: None
    why = durable(quiet, library, home, "", ["loose"], (*two, "-o", "loose", "--no-sync"))
    tap.ok(why, "with --no-sync a power cut would lose it, and this test sees so")


def cleaning(tap, home, split):
    def run(*args):
        return subprocess.run([split, *args], cwd=home, capture_output=True, text=True)

    def make(name, content=None):
        path = os.path.join(home, "mess", name)
        if content is None:
            os.makedirs(path)
        else:
            with open(path, "w") as file:
                file.write(content)

    make(".out.psplit-123-0")
    make(".out.psplit-123-0/stage0.onnx", "half")
    make(".page.psplit-0123456789abcdef", "half")
    kept = [".out.psplit-mine", ".psplit-1-0", ".page.psplit-0123", "page", ".git", ".t.psplit-9-0"]
    for name in kept:
        make(name)
    make(".t.psplit-9-0/training.json", "{}")
    make(".locked.psplit-0123456789abcdef", "half")
    with open(os.path.join(home, "mess/.locked.psplit-0123456789abcdef")) as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        made = run("--clean", "mess")
        left = sorted(os.listdir(os.path.join(home, "mess")))
    tap.ok(made.returncode == OK and made.stdout == "removed 2\n"
           and left == sorted(kept + [".locked.psplit-0123456789abcdef"]),
           "--clean removes what was left, and nothing else", "%s %s" % (made, left))
    tap.ok(run("--clean", "missing").returncode == FILE, "--clean of what is not there")
    tap.ok(run("--clean", "mess", "m.onnx").returncode == USAGE, "--clean stands alone")


def main(argv):
    if len(argv) != 3:
        sys.exit("usage: durable.py JOURNAL TOOLS")
    library, tools = map(os.path.abspath, argv[1:])
    tap = Tap()
    home = os.path.realpath(tempfile.mkdtemp(prefix="psplit-durable-"))
    try:
        with open(os.path.join(home, "m.onnx"), "wb") as file:
            file.write(chain(6))
        splits(tap, library, home, tools)
        running(tap, library, home, tools)
        cleaning(tap, home, os.path.join(tools, "onnx-pipeline-split"))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
