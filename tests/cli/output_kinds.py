#!/usr/bin/env python3
"""Every option of every command that writes a file or a directory, and what may stand in its place: output_kinds.py TOOL...

Nothing, an old file and its mode, links, a FIFO, devices, a directory, a place that there is not, what the command reads:
written, written through or refused, always the same for one kind, and what is not a regular file stays what it is. Commands that
run stages are asked where there is an ONNX Runtime. TAP.
"""
import glob
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time

from bad_input import FILE, MALFORMED, OK, USAGE, Tap, chain
from durable import ONNXRUNTIME
from hostile_names import array
from inputs import PROBLEM
from one_failure import FEW_STEPS, trained

PAGE = b"an old page\n"
OURS, LEARNED = b"# log of onnx-pipeline: old\n", b'{"step": 1}\n'
TWO = "m.onnx -k 2 -q"
TRAINS = "tout --data x=x.npy -q -m 1"


class Row:
    """@ is the file's name. `force`: what replaces an old file, without which it is refused; `log`: what a log has to hold
    to be begun anew, else it is refused; `reads`: files of the command."""

    def __init__(self, tool, args, force=None, log=None, reads="", runs=False):
        self.tool, self.args, self.force, self.log, self.runs = tool, args, force, log, runs
        self.reads = reads.split()
        option = re.search(r"(\S+)[ =]@", args)
        self.title = tool + " " + option[1]


FILES = [
    Row("split", TWO + " --annotate @", "--force", reads="m.onnx"),
    Row("split", TWO + " -o out --force --depfile @", reads="m.onnx"),
    Row("split", TWO + " -o out --force --certificate @", reads="m.onnx"),
    Row("split", "t.onnx -q --lower-gradient @", "--force", reads="t.onnx"),
    Row("split", "t.onnx -k 2 -q --training --loss-output loss --training-info @", "--force", reads="t.onnx"),
    Row("split", TWO + " --plan-only --log @", log=OURS, reads="m.onnx"),
    *[Row("inspect", TWO + " --format %s -o @" % form, reads="m.onnx") for form in ("text", "json", "dot", "svg", "html", "problem")],
    Row("inspect", TWO + " --format onnx -o @", "--force", reads="m.onnx"),
    Row("inspect", TWO + " --log @", log=OURS, reads="m.onnx"),
    Row("plan", "p.json -q --certificate @", reads="p.json"),
    Row("plan", "p.json -q --log @", log=OURS, reads="p.json"),
    Row("merge", "stages -q -o @", "--force", reads="stages/stage0.onnx stages/pipeline.json"),
    Row("merge", "stages -q -o merged.onnx --force --log @", log=OURS, reads="stages/stage0.onnx stages/pipeline.json"),
    Row("verify", "stages -q -m m.onnx --log @", log=OURS, reads="m.onnx stages/stage0.onnx"),
    Row("learn", "p.json -q %s -o @" % " ".join(FEW_STEPS), reads="p.json"),
    Row("learn", "p.json -q %s -o policy --state @" % " ".join(FEW_STEPS), reads="p.json"),
    Row("learn", "p.json -q %s -o policy --log @" % " ".join(FEW_STEPS), log=LEARNED, reads="p.json"),
    Row("run", "--profile @ m.onnx --dim batch=1 -m 2 -q", reads="m.onnx", runs=True),
    Row("run", "stages --random --dim batch=1 -q --trace @", reads="stages/stage1.onnx", runs=True),
    Row("run", "stages --random --dim batch=1 -q --log @", log=OURS, reads="stages/stage1.onnx", runs=True),
    Row("train", TRAINS + " --trace @", reads="x.npy tout/pipeline.json", runs=True),
    Row("train", TRAINS + " --checkpoint kept --model t.onnx --export @", "--force", reads="t.onnx", runs=True),
    Row("train", TRAINS + " --log @", log=OURS, reads="x.npy", runs=True),
]
# A file that is read where it is, and else made.
PROBED = [Row("split", TWO + " --plan-only --devices devices.json --probe CPU=@", reads="m.onnx devices.json", runs=True)]
# (title, tool, arguments), into a directory that appears, or is made.
DIRECTORIES = [
    Row("split", TWO + " -o @", "--force"),
    Row("inspect", TWO + " --dump-after partition --dump-dir @"),
    Row("run", "stages --random --dim batch=1 -q -o @", runs=True),
    Row("train", TRAINS + " --checkpoint @", runs=True),
]
# Options of these tables alone, by the words of --help, are outputs.
OUTPUTS = {"split": "output annotate certificate depfile lower-gradient training-info log clean",
           "inspect": "output log dump-dir", "plan": "certificate log", "merge": "output log", "verify": "log",
           "learn": "output state log", "run": "output profile trace log", "train": "trace export log checkpoint",
           "generate": "log", "serve": "log"}
READ = ("model prompts prompt-split encoder input onnxruntime custom-ops devices costs pins policy load-pass-plugin data eval-data resume "
        "weights-of trace probe")


class Bed:
    def __init__(self, tools):
        self.tap = Tap()
        self.tools = {os.path.basename(tool)[len("onnx-pipeline-"):]: tool for tool in tools}
        found = glob.glob(ONNXRUNTIME)
        self.env = {**os.environ, **({"PSPLIT_ONNXRUNTIME": found[0]} if found else {})}
        self.runs = bool(found)

    def prepare(self):
        for name, content in (("m.onnx", chain(4)), ("t.onnx", trained()), ("p.json", json.dumps(PROBLEM).encode()), ("x.npy", array(4, 8)),
                              ("devices.json", b'{"devices": [{"name": "a", "preset": "cpu", "session": {"provider": "CPU"}},'
                                               b' {"name": "b", "preset": "cpu"}]}')):
            put(name, content)
        self.call("split", *TWO.split(), "-o", "stages")
        self.call("split", *"t.onnx -k 2 -q -o tout --training --loss-output loss --trained-weights input --optimizer sgd".split())

    def call(self, tool, *args, **more):
        return subprocess.run([self.tools[tool], *args], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              **more)

    def run(self, row, path, force=True):
        args = [word.replace("@", path) for word in row.args.split()]
        made = self.call(row.tool, *args, *([row.force] if row.force and force else []))
        made.errors = [line for line in made.stderr.decode().splitlines() if line.startswith("error: ")]
        made.told = "status %d %s" % (made.returncode, made.stderr.decode())
        return made

    def can(self, row):
        return row.tool in self.tools and (self.runs or not row.runs)


def put(name, content):
    with open(name, "wb") as file:
        file.write(content)


def get(name):
    with open(name, "rb") as file:
        return file.read()


def kind(path):
    return stat.S_IFMT(os.lstat(path).st_mode)


def names():
    return sorted(os.listdir("place"))


def old(row):
    return PAGE if row.log is None else row.log


def fresh(bed, row):
    made = bed.run(row, "place/new")
    bed.tap.ok(made.returncode == OK and os.path.isfile("place/new") and "new" in names()
               and not any(name.startswith(".") for name in names()), row.title + ": a new file", made.told + str(names()))


def replaced(bed, row):
    for mode in (0o600, 0o444):
        put("place/page", old(row))
        os.chmod("place/page", mode)
        made = bed.run(row, "place/page")
        content = get("place/page")
        bed.tap.ok(made.returncode == OK and stat.S_IMODE(os.stat("place/page").st_mode) == mode and (content != PAGE),
                   "%s: over a file of mode %o, which it keeps" % (row.title, mode), made.told)
        os.unlink("place/page")
    if row.force or row.log is not None:
        put("place/page", PAGE)
        made = bed.run(row, "place/page", force=False)
        bed.tap.ok(made.returncode in (FILE, USAGE) and len(made.errors) == 1 and get("place/page") == PAGE and names() == ["page"],
                   row.title + ": an old file that is not to go stays", made.told + str(names()))


def linked(bed, row):
    os.mkdir("place/there")
    put("place/there/page", old(row))
    os.symlink("there/page", "place/link")
    made = bed.run(row, "place/link")
    bed.tap.ok(made.returncode == OK and os.readlink("place/link") == "there/page" and get("place/there/page") != PAGE
               and [name for name in os.listdir("place/there") if not name.startswith("page")] == [],
               row.title + ": through a link to a file, which stays", made.told + str(os.listdir("place/there")))
    os.unlink("place/there/page")
    made = bed.run(row, "place/link")
    bed.tap.ok(made.returncode == OK and os.readlink("place/link") == "there/page" and os.path.isfile("place/there/page"),
               row.title + ": through a link to what is not there yet", made.told)
    os.unlink("place/link")
    os.symlink("link", "place/link")
    made = bed.run(row, "place/link")
    bed.tap.ok(made.returncode == FILE and len(made.errors) == 1 and os.path.islink("place/link"), row.title + ": a link to itself", made.told)


def read_until(ended, fd, content):
    while True:
        last = ended.is_set()  # asked before: the command may write and end behind a look that finds nothing
        try:
            part = os.read(fd, 1 << 16)
        except BlockingIOError:  # it is open for writing
            part = None
        if part:
            content.append(part)
        elif part == b"" and last:
            return
        else:
            time.sleep(0.01)


def piped(bed, row):
    os.mkfifo("place/fifo")
    content, ended = [], threading.Event()
    fd = os.open("place/fifo", os.O_RDONLY | os.O_NONBLOCK)  # before the command asks whether somebody reads
    reader = threading.Thread(target=read_until, args=(ended, fd, content), daemon=True)
    reader.start()
    made = bed.run(row, "place/fifo")
    ended.set()
    reader.join(5)
    content = [b"".join(content)]
    bed.tap.ok(made.returncode == OK and stat.S_ISFIFO(kind("place/fifo")) and content and len(content[0]) > 20,
               row.title + ": into a FIFO, which stays", made.told + str([len(each) for each in content]))


def devices(bed, row):
    for name, minor, status in (("null", 3, OK), ("full", 7, FILE)):
        try:
            os.mknod("place/" + name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            open("place/" + name, "wb").close()
        except PermissionError:
            return
        made = bed.run(row, "place/" + name)
        bed.tap.ok(made.returncode == status and stat.S_ISCHR(kind("place/" + name)) and len(made.errors) == (status != OK),
                   "%s: /dev/%s, which stays" % (row.title, name), made.told)


def logged(bed, row):
    """The name of another output: one of the two would be lost."""
    if row.log is None:
        made = bed.run(Row(row.tool, row.args + " --log place/same", row.force), "place/same")
        bed.tap.ok(made.returncode in (FILE, USAGE) and len(made.errors) == 1 and "place/same" in made.errors[0] and not names(),
                   row.title + ": the log's own name", made.told)


def refused(bed, row):
    os.mkdir("place/directory")
    made = bed.run(row, "place/directory")
    bed.tap.ok(made.returncode == FILE and len(made.errors) == 1 and names() == ["directory"] and not os.listdir("place/directory"),
               row.title + ": a directory", made.told + str(names()))
    made = bed.run(row, "place/nowhere/page")
    bed.tap.ok(made.returncode == FILE and len(made.errors) == 1 and names() == ["directory"], row.title + ": in a directory that there is not",
               made.told + str(names()))
    for name in row.reads:
        content = get(name)
        made = bed.run(row, "./" + name)
        bed.tap.ok(made.returncode in (FILE, USAGE) and len(made.errors) == 1 and get(name) == content,
                   "%s: %s, which it reads" % (row.title, name), made.told)
        put(name, content)


def probed(bed, row):
    for name in ("new", "link"):
        if name == "link":
            os.symlink("there", "place/link")
        for title in ("made", "read again"):
            made = bed.run(row, "place/" + name)
            bed.tap.ok(made.returncode == OK and os.path.isfile("place/" + name), "%s: %s, %s" % (row.title, name, title), made.told)
    put("place/page", PAGE)
    os.mkfifo("place/fifo")
    os.mkdir("place/directory")
    before = names()
    for path in ["place/" + name for name in ("page", "fifo", "directory", "nowhere/page")] + ["/dev/null", "./m.onnx"]:
        made = bed.run(row, path)
        bed.tap.ok(made.returncode in (FILE, MALFORMED) and len(made.errors) == 1 and names() == before and get("place/page") == PAGE
                   and stat.S_ISFIFO(kind("place/fifo")), "%s: %s" % (row.title, path), made.told)


def directories(bed, row):
    def each(title, status, path, before=None, force=True):
        made = bed.run(row, path, force)
        after = sorted(os.listdir("place"))
        good = made.returncode == status if isinstance(status, int) else made.returncode in status
        bed.tap.ok(good and len(made.errors) == (status != OK) and (before is None or after == before)
                   and not any(name.startswith(".") for name in after), "%s: %s" % (row.title, title), made.told + str(after))
    each("a new directory", OK, "place/new", ["new"])
    os.chmod("place/new", 0o700)
    each("over it", OK, "place/new", ["new"])
    bed.tap.ok(stat.S_IMODE(os.stat("place/new").st_mode) == 0o700, row.title + ": whose mode stays")
    if row.force:
        each("over it, not asked for", FILE, "place/new", ["new"], False)
    shutil.rmtree("place/new")
    os.mkdir("place/empty")
    each("an empty one", OK, "place/empty", ["empty"])
    shutil.rmtree("place/empty")
    put("place/page", PAGE)
    each("a file", (FILE, USAGE), "place/page", ["page"])
    bed.tap.ok(get("place/page") == PAGE, row.title + ": a file stays")
    each("below a file", (FILE, USAGE), "place/page/new", ["page"])
    os.unlink("place/page")
    os.mkdir("place/there")
    put("place/there/thesis", PAGE)
    os.symlink("there", "place/link")
    bed.run(row, "place/link")
    bed.tap.ok(os.path.islink("place/link") and get("place/there/thesis") == PAGE, row.title + ": a link to a directory, which stays",
               str(os.listdir("place")))


def listed(bed):
    """Every option of --help that takes a file or a directory is in a table, or is known to be read."""
    for tool in bed.tools:
        text = bed.call(tool, "--help").stdout.decode()
        options = re.findall(r"^  (?:-., |    )--([a-z-]+) \S*(?:FILE|DIR|PATH)\b", text, re.M)
        unknown = [name for name in options if name not in OUTPUTS.get(tool, "").split() and name not in READ.split()]
        bed.tap.ok(not unknown, tool + ": its options that name files are known here", ", ".join(unknown))


def main(argv):
    bed = Bed([os.path.abspath(tool) for tool in argv[1:]])
    home, cwd = os.getcwd(), os.path.realpath(tempfile.mkdtemp(prefix="psplit-kinds-"))
    try:
        os.chdir(cwd)
        bed.prepare()
        listed(bed)
        for rows, checks in ((FILES, (fresh, replaced, linked, piped, devices, logged, refused)), (PROBED, (probed,)), (DIRECTORIES, (directories,))):
            for row in rows:
                for check in checks if bed.can(row) else ():
                    os.mkdir("place")
                    check(bed, row)
                    shutil.rmtree("place")
                    for left in ("out", "kept", "policy", "merged.onnx"):
                        shutil.rmtree(left, ignore_errors=True) if os.path.isdir(left) else os.path.exists(left) and os.unlink(left)
    finally:
        os.chdir(home)
        shutil.rmtree(cwd, ignore_errors=True)
    print("1..%d" % bed.tap.count)
    return bed.tap.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
