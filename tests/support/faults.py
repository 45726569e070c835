"""Commands under the library of faults.c: what one failed allocation or system call makes of them."""
import os
import re
import shutil
import struct
import subprocess

RECORD = struct.Struct("QQqQQq")  # of faults.c
WRITE, ENDED = 1, "does not end"
# In JSON and in text: they differ from run to run.
TIMES = re.compile(rb'(?<="solve_seconds": )[0-9.e-]+|[0-9]+\.[0-9]+(?= s\b)')
HIDDEN = re.compile(r"(^|/)\.[^/]*\.psplit-[0-9a-f]+(-[0-9]+)?($|/)")


class Fault:
    """What happened in a run: how many allocations and calls there were, what failed."""

    def __init__(self, path):
        with open(path, "rb") as file:
            fields = RECORD.unpack(file.read(RECORD.size))
        self.allocations, self.calls, self.call, self.argument, hit, self.unavailable = fields
        self.hit = hit != 0

    def to(self, descriptor):
        return self.call == WRITE and self.argument == descriptor


def tree(home):
    """Every path below `home`, with its mode and what it holds."""
    found, directories = {}, [""]
    while directories:
        at = directories.pop()
        with os.scandir(os.path.join(home, at)) as entries:
            for entry in entries:
                path, content = os.path.join(at, entry.name), None
                if entry.is_dir(follow_symlinks=False):
                    directories.append(path)
                elif entry.is_file(follow_symlinks=False):
                    with open(entry.path, "rb", buffering=0) as file:
                        content = file.read()
                found[path] = (entry.stat(follow_symlinks=False).st_mode, content)
    return found


class Made:
    """A command that ran in a copy of a directory: its status, output, and what it left.

    What one leaves as it found it is the copy for the next: most fail so, and making it takes as long as a command.
    """
    _unchanged = None  # (directory, of which it is a copy, what it holds)

    def __init__(self, library, home, scratch, command, which, at=0, n=1, environment=None):
        cwd, record = os.path.join(scratch, "cwd"), os.path.join(scratch, "record")
        if Made._unchanged is None or Made._unchanged[:2] != (cwd, home):
            shutil.rmtree(cwd, ignore_errors=True)
            shutil.copytree(home, cwd, symlinks=True)
            Made._unchanged = cwd, home, tree(cwd)
        if os.path.exists(record):
            os.unlink(record)
        settings = {"LD_PRELOAD": library, "PSPLIT_FAULT": which, "PSPLIT_FAULT_AT": str(at),
                    "PSPLIT_FAULT_FOR": str(n), "PSPLIT_FAULT_FILE": record}
        try:
            done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=120, env={**os.environ, **(environment or {}), **settings})
            self.status = done.returncode
            self.out = TIMES.sub(b"", done.stdout)
            self.err = done.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            self.status, self.out, self.err = ENDED, b"", str(late.stderr or "")
        self.fault = Fault(record)
        self.cwd = cwd
        self.left = tree(cwd)
        if self.left != Made._unchanged[2]:
            Made._unchanged = None
        self.hidden = [path for path in self.left if HIDDEN.search(path)]
        for path in self.hidden: # what cannot be removed, the next run removes
            del self.left[path]

    def errors(self):
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


def problem_of(made, whole, before, statuses):
    """What is wrong with a run in which something failed, beside the one in which nothing did."""
    errors = made.errors()
    if made.status == 0:
        if made.out != whole.out:
            return "status 0 and another output"
        if made.left != whole.left:
            return "status 0 and other files: %s" % changes(made.left, whole.left)
        return "status 0 and an error line" if errors else None
    if made.status not in statuses:
        return "status %s" % made.status
    if len(errors) != 1 and not made.fault.to(2):
        return "%d error lines" % len(errors)
    if any(not line[len("error: "):].strip() or line.rstrip().endswith(":") for line in errors):
        return "an error without a reason"
    if made.fault.to(1) and made.left == whole.left:
        return None  # all was done but for telling so
    return None if made.left == before else "left behind: %s" % changes(made.left, before)


def changes(now, then):
    return ", ".join(sorted(path for path in {**now, **then} if now.get(path) != then.get(path)))
