#!/usr/bin/env python3
"""What outputs do to what is there already: files.py SPLIT INSPECT

A command never removes what it did not make: devices, pipes, links, an old file when the disk is
full. What it cannot write it says before it works. TAP; the models are those of bad_input.py.
"""
import json
import os
import random
import resource
import shutil
import stat
import subprocess
import sys
import threading
import time

from bad_input import FILE, OK, UNSUPPORTED, USAGE, Tap, chain, model
from tap import scratch

PAGE = b"an old page\n"


class Shell:
    def __init__(self, tap, split, inspect):
        self.tap, self.split, self.inspect = tap, split, inspect

    def run(self, tool, *args, **more):
        return subprocess.run([tool, *args], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=60, **more)

    def each(self, name, status, says, tool, *args, **more):
        """Exact status, `says` in one error line, and the same directory as before if it fails."""
        before = tree(".")
        made = self.run(tool, *args, **more)
        lines = [line for line in made.stderr.splitlines() if line.startswith("error: ")]
        good = made.returncode == status and len(lines) == (status != OK) and says in made.stderr
        changed = [] if status == OK else sorted(set(before.items()) ^ set(tree(".").items()))
        self.tap.ok(good and not changed, name,
                    "status %d\n%s%s" % (made.returncode, made.stderr, changed or ""))
        return made


def tree(home):
    """Every file below `home`, with its mode and its content."""
    found = {}
    for at, dirs, files in os.walk(home):
        for name in dirs + files:
            path = os.path.join(at, name)
            status = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(status.st_mode) else None
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            found[path] = (status.st_mode, content)
    return found


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)
    return name


def read(name):
    with open(name, "rb") as file:
        return file.read()


def remove(name):
    if os.path.lexists(name):
        os.unlink(name)


def drained(name):
    """Reads a FIFO to its end, in a thread; its content once join() has returned."""
    content = []
    thread = threading.Thread(target=lambda: content.append(read(name)), daemon=True)
    thread.start()
    return thread, content


def outputs(s):
    """(title, tool, arguments before the file's name) of every command that writes one file."""
    return (("inspect -o", s.inspect, ("m.onnx", "-o")),
            ("inspect --format html -o", s.inspect, ("m.onnx", "-k", "2", "--format", "html", "-o")),
            ("inspect --format onnx -o", s.inspect, ("m.onnx", "--format", "onnx", "--force", "-o")),
            ("split --annotate", s.split, ("m.onnx", "-k", "2", "-q", "--force", "--annotate")),
            ("split --depfile", s.split, ("m.onnx", "-k", "2", "-q", "--force", "-o", "out",
                                          "--depfile")))


def fifos(s):
    for title, tool, args in outputs(s):
        os.mkfifo("fifo")
        thread, content = drained("fifo")
        made = s.run(tool, *args, "fifo")
        thread.join(20)
        s.tap.ok(made.returncode == OK and stat.S_ISFIFO(os.lstat("fifo").st_mode)
                 and content and len(content[0]) > 20, title + " into a FIFO, which stays",
                 "%d %s %s" % (made.returncode, made.stderr, content))
        remove("fifo")


def devices(s):
    for title, tool, args in outputs(s):
        for name, minor, status in (("null", 3, OK), ("full", 7, FILE)):
            try:
                os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
                open(name, "wb").close()
            except PermissionError:
                remove(name)
                print("# no device nodes can be made here")
                return
            made = s.run(tool, *args, name)
            s.tap.ok(made.returncode == status and os.path.lexists(name)
                     and stat.S_ISCHR(os.lstat(name).st_mode),
                     "%s onto a device like /dev/%s, which stays" % (title, name),
                     "%d %s" % (made.returncode, made.stderr))
            remove(name)


def links(s):
    for title, tool, args in outputs(s):
        os.symlink("/dev/stdout", "link")
        made = subprocess.run([tool, *args, "link"], capture_output=True, timeout=60)
        s.tap.ok(made.returncode == OK and len(made.stdout) > 20 and os.path.islink("link"),
                 title + " to a link to standard output, which stays",
                 "%d %s" % (made.returncode, made.stderr))
        with open("log", "wb") as log:
            log.write(PAGE)
            log.flush()
            inode = os.fstat(log.fileno()).st_ino
            made = subprocess.run([tool, *args, "link"], stdout=log, stderr=subprocess.PIPE,
                                  timeout=60)
            log.seek(0, os.SEEK_END)
            log.write(PAGE)
        content = read("log")
        s.tap.ok(made.returncode == OK and os.stat("log").st_ino == inode and len(content) > 40
                 and content.startswith(PAGE) and content.endswith(PAGE),
                 title + " to a link to standard output, which is a file in use",
                 "%d %s\n%s" % (made.returncode, made.stderr, content[:200]))
        remove("link")
        remove("log")

        write("page", PAGE)
        os.mkdir("other")
        os.symlink("../page", "other/link")
        made = s.run(tool, *args, "other/link")
        s.tap.ok(made.returncode == OK and os.path.islink("other/link") and read("page") != PAGE
                 and os.listdir("other") == ["link"],
                 title + " to a link to a file: the link stays and leads to what is new",
                 "%d %s" % (made.returncode, made.stderr))
        remove("page")
        made = s.run(tool, *args, "other/link")
        s.tap.ok(made.returncode == OK and os.path.islink("other/link") and os.path.isfile("page"),
                 title + " to a link to what is not there yet", made.stderr)
        shutil.rmtree("other")
        remove("page")
        os.symlink("loop", "loop")
        s.each(title + " to a link to itself", FILE, "loop", tool, *args, "loop")
        remove("loop")


def modes(s):
    for title, tool, args in outputs(s):
        for mode in (0o600, 0o664, 0o755):
            write("page", PAGE)
            os.chmod("page", mode)
            made = s.run(tool, *args, "page")
            s.tap.ok(made.returncode == OK and read("page") != PAGE
                     and stat.S_IMODE(os.stat("page").st_mode) == mode,
                     "%s over a file of mode %o, which it keeps" % (title, mode), made.stderr)
        remove("page")
        before = os.umask(0o027)
        made = s.run(tool, *args, "page")
        os.umask(before)
        s.tap.ok(made.returncode == OK and stat.S_IMODE(os.stat("page").st_mode) == 0o640,
                 title + ": a new file has the mode that umask leaves", made.stderr)
        remove("page")


def full_disks(s):
    """A limit on the size of files, and a file system without room: the old page stays."""
    def limit():  # LLVM's OpenMP makes a file of 1 KiB for itself
        resource.setrlimit(resource.RLIMIT_FSIZE, (1100, 1100))
    # A build for coverage writes a file at the end, too, where the signal of the limit ends the process.
    limited = {"preexec_fn": limit, "env": {**os.environ, "LLVM_PROFILE_FILE": os.devnull}}
    shutil.rmtree("out", ignore_errors=True)
    for title, tool, args in outputs(s):
        if "--depfile" in args:  # its directory would be too large as well
            continue
        write("page", PAGE)
        s.each(title + " past a file-size limit: the old page stays", FILE, "File too large", tool,
               *args, "page", **limited)
        remove("page")
        s.each(title + " past a file-size limit: nothing is left", FILE, "File too large", tool,
               *args, "page", **limited)
    os.mkdir("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", "disk"],
                      capture_output=True).returncode:
        print("# mounting is not allowed here")
        os.rmdir("disk")
        return
    try:
        for title, tool, args in outputs(s):
            write("disk/page", PAGE)
            write("disk/filler", b"")
            with open("disk/filler", "wb", buffering=0) as filler:
                try:
                    while filler.write(bytes(512)):
                        pass
                except OSError:
                    pass
            shutil.rmtree("out", ignore_errors=True)
            s.each(title + " on a full disk: the old page stays", FILE, "No space left", tool,
                   *args, "disk/page")
    finally:
        subprocess.run(["umount", "disk"], check=True)
        os.rmdir("disk")


def few_descriptors(s):
    """Where hardly a file can be opened, nothing is left of what was begun."""
    shutil.rmtree("out", ignore_errors=True)
    for n in range(4, 10):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
        made = s.run(s.split, "m.onnx", "-k", "2", "-q", "-o", "out", "--threads", "1",
                     preexec_fn=limit)
        left = [name for name in os.listdir(".") if "psplit-" in name]
        good = made.returncode == OK and os.path.isdir("out") or (
            made.returncode == FILE and made.stderr.count("error: ") == 1
            and not os.path.exists("out"))
        s.tap.ok(good and not left, "%d descriptors: a split or an error, and nothing else" % n,
                 "%d %s %d names: %s" % (made.returncode, made.stderr, len(left), left[:3]))
        shutil.rmtree("out", ignore_errors=True)


def planted(s):
    """Names that the commands used for what they write: links there are not followed."""
    for title, tool, args in outputs(s):
        write("victim", PAGE)
        os.mkdir("place")
        for end in (".part", ".tmp", ".%d" % os.getpid()):
            os.symlink("../victim", "place/page" + end)
        made = s.run(tool, *args, "place/page")
        s.tap.ok(made.returncode == OK and read("victim") == PAGE and len(os.listdir("place")) == 4,
                 title + " beside planted links", made.stderr)
        write("place/.page.psplit-0123456789abcdef", b"half a page")
        os.symlink("../victim", "place/.page.psplit-0123456789abcde0")
        write("place/.page.psplit-mine", b"")
        made = s.run(tool, *args, "place/page")
        s.tap.ok(made.returncode == OK and read("victim") == PAGE and len(os.listdir("place")) == 6
                 and not os.path.lexists("place/.page.psplit-0123456789abcdef"),
                 title + " removes what a killed run left, and nothing like it",
                 made.stderr + str(os.listdir("place")))
        shutil.rmtree("place")


def kills(s):
    """At any moment: the old page or the new one; the next run removes what is left."""
    rng = random.Random(5)
    write("m8.onnx", chain(200))
    args = [s.inspect, "m8.onnx", "-q", "-k", "2", "--format", "html", "-o", "killed/page"]
    os.mkdir("killed")
    start = time.monotonic()
    s.run(*args)
    took = time.monotonic() - start
    new, problems, interrupted = read("killed/page"), [], 0
    for attempt in range(40):
        write("killed/page", PAGE)
        running = subprocess.Popen(args, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 1.2 * took))
        running.kill()
        interrupted += running.wait() != 0
        if read("killed/page") not in (PAGE, new):
            problems.append("attempt %d" % attempt)
    s.run(*args)
    s.tap.ok(not problems and read("killed/page") == new and os.listdir("killed") == ["page"],
             "40 runs killed, %d of them in time" % interrupted,
             "%s %s" % (problems, os.listdir("killed")))
    shutil.rmtree("killed")


def read_as_well(s):
    """An output that is also an input: told, and the input is as it was."""
    with open("devices.json", "w") as file:
        json.dump({"devices": [{"name": "a", "preset": "cpu"}, {"name": "b", "preset": "cpu"}]},
                  file)
    with open("costs.csv", "w") as file:
        file.write("node,ns\nmake_m0,1000\n")
    os.symlink("m.onnx", "model-link")
    for title, tool, args in outputs(s):
        s.each(title + " over the devices file", FILE, "devices.json", tool, "--devices",
               "devices.json", *args, "./devices.json")
        s.each(title + " over a link to the model", FILE, "is a file of the model itself", tool,
               *args, "model-link")
    for name in ("devices.json", "costs.csv", "model-link"):
        remove(name)


def before_work(s):
    """What cannot be written is said before the work: here with a work that cannot end well."""
    shutil.rmtree("out", ignore_errors=True)
    hopeless = ("-k", "4000")  # infeasible, told after the model is read
    os.mkdir("there")
    write("page", PAGE)
    s.run(s.split, "m.onnx", "-k", "2", "-o", "old")
    for title, says, args in (
            ("an existing DIR", "--force", ("-o", "there")),
            ("DIR below a missing directory", "missing", ("-o", "missing/out")),
            ("DIR below a file", "page", ("-o", "page/out")),
            ("a depfile in a missing directory", "missing/d.d",
             ("-o", "out", "--depfile", "missing/d.d")),
            ("a depfile that is a directory", "there", ("-o", "out", "--depfile", "there")),
            ("a depfile that is the model", "model itself", ("-o", "out", "--depfile", "m.onnx")),
            ("an annotated model that exists", "--force", ("-o", "out", "--annotate", "page")),
            ("an annotated model that is the model", "model itself",
             ("-o", "out", "--annotate", "m.onnx", "--force")),
            ("a rule and an annotated model of one name", "the same file",
             ("-o", "out", "--annotate", "./x", "--depfile", "x")),
            ("an annotated model in DIR", "replaced as a whole",
             ("-o", "old", "--force", "--annotate", "old/m.onnx")),
            ("an annotated model in a missing directory", "missing/m.onnx",
             ("-o", "out", "--annotate", "missing/m.onnx"))):
        status = USAGE if "same" in says or "whole" in says else FILE
        s.each("split: " + title, status, says, s.split, "m.onnx", *hopeless, *args)
    for title, says, args in (
            ("a page in a missing directory", "missing/page", ("-o", "missing/page")),
            ("a page that is a directory", "there", ("-o", "there")),
            ("a model that exists", "--force", ("--format", "onnx", "-o", "page"))):
        s.each("inspect: " + title, FILE, says, s.inspect, "m.onnx", *hopeless, *args)
    s.each("split: an annotated model in place of a stage", USAGE, "the same file", s.split, "m.onnx",
           "-k", "2", "-o", ".", "--weights", "reference", "--annotate", "stage1.onnx")
    os.rmdir("there")
    remove("page")
    s.each("an annotation that cannot be made leaves no DIR", UNSUPPORTED, "Olive", s.split,
           write("odd.onnx", odd()), "-k", "2", "-o", "out", "--annotate", "a.onnx",
           "--annotate-as", "olive")


def odd():
    """A node whose name has what separates names in Olive's form."""
    return model("""(float[8,8] x) => (float[8,8] y) <float[8,8] w = random(1)> {
        ["make_a;b"] a = MatMul (x, w)
        y = Relu (a)
      }""")


def endings(s):
    """What a file's name ends in says what inspect writes."""
    for ending, begins in (("html", b"<!DOCTYPE html"), ("svg", b"<svg"), ("json", b"{"), ("dot", b"digraph"),
                           ("txt", b"")):
        for name in ("shown." + ending, "shown." + ending.upper()):
            made = s.run(s.inspect, "m.onnx", "-k", "2", "-q", "-o", name)
            written = read(name) if made.returncode == OK else b""
            others = (b"<", b"{", b"digraph")
            good = written.lower().startswith(begins.lower()) if begins else not written.startswith(others)
            s.tap.ok(written and good, "inspect -o " + name, made.stderr + str(written[:80]))
            remove(name)


def main(argv):
    if len(argv) != 3:
        sys.exit("usage: files.py SPLIT INSPECT")
    s = Shell(Tap(), *map(os.path.abspath, argv[1:]))
    with scratch("files"):
        write("m.onnx", chain(8))
        for test in (fifos, devices, links, modes, full_disks, few_descriptors, planted, kills,
                     read_as_well, before_work, endings):
            test(s)
    return s.tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
