#!/usr/bin/env python3
"""INT, TERM and HUP end every command, wherever it is blocked: signals.py HANG CHECKER TOOL...

HANG is the library of tests/support/hang.c: a read or an fsync that never returns. Commands wait, too, for the reader of
their standard output and of FIFOs. The first signal ends each within a second, or, where it writes what it then undoes,
the second does, at once: the exit status is 128 and the number of the last one, and one line says why. TAP.
"""
import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from bad_input import Tap, chain, listing
from durable import ONNXRUNTIME
from interrupt import Watch, heed_signals, sleeps, wait_until

SOON_S, AT_ONCE_S = 1.7, 0.7  # 1 s and 0, and what the machine takes
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
PROBLEM = {"format": "psplit-problem", "devices": [{"count": 2}], "nodes": [{"time_ns": 5}] * 2,
           "tensors": [{"producer": 0, "consumers": [1]}]}
ONCE, TWICE, WHOLE = "once", "twice", "whole"


# What blocks a command, and how far it is then: ONCE the first signal ends it at once, TWICE the second does, WHOLE the first
# one waits until what it writes is whole.
ROWS = [
    ("split", "m.onnx -k 2 -o out", "pread m.onnx", TWICE),
    ("split", "m.onnx -k 2 -o out --costs costs.json", "read costs.json", ONCE),
    ("split", "m.onnx -k 2 -o out -q", "fsync stage1", WHOLE),
    ("split", "m.onnx -k 2 -o out", "stdout", TWICE),
    ("split", "m.onnx -k 1..2 --plan-only", "stdout", TWICE),
    ("split", "--help", "stdout", ONCE),
    ("split", "m.onnx -k 2 -o out --depfile fifo -q", "fifo", ONCE),
    ("inspect", "m.onnx -k 2", "pread m.onnx", TWICE),
    ("inspect", "m.onnx -k 2 -o page.html --format html", "fsync page.html", TWICE),
    ("inspect", "m.onnx -k 2", "stdout", ONCE),
    ("inspect", "m.onnx -k 2 -o fifo", "fifo", ONCE),
    ("merge", "stages -o new.onnx", "pread stage1", TWICE),
    ("merge", "stages -o new.onnx --model m.onnx", "pread m.onnx", TWICE),
    ("merge", "stages -o new.onnx", "fsync new.onnx", TWICE),
    ("merge", "stages -o new.onnx", "stdout", TWICE),
    ("merge", "stages --force -o fifo", "fifo", ONCE),
    ("verify", "stages --model m.onnx", "pread m.onnx", TWICE),
    ("verify", "stages --model m.onnx", "read pipeline.json", TWICE),
    ("verify", "stages --model m.onnx", "pread stage1", TWICE),
    ("verify", "stages --model m.onnx", "stdout", ONCE),
    ("plan", "p.json", "read p.json", ONCE),
    ("plan", "p.json --certificate proof", "fsync proof", TWICE),
    ("plan", "p.json", "stdout", TWICE),
    ("plan", "p.json --certificate fifo", "fifo", ONCE),
    ("learn", "p.json -o policy.onnx --steps 2 --warm-steps 1", "read p.json", TWICE),
    ("learn", "p.json -o policy.onnx --steps 2 --warm-steps 1 -q", "fsync policy.onnx", TWICE),
    ("learn", "p.json -o policy.onnx --steps 2 --warm-steps 1", "stdout", TWICE),
    ("learn", "p.json -o fifo --steps 2 --warm-steps 1 -q", "fifo", ONCE),
    ("run", "stages --random --dim batch=1", "read pipeline.json", TWICE),
    ("run", "--help", "stdout", ONCE),
    ("generate", "stages --prompt-ids 1", "read pipeline.json", TWICE),
    ("generate", "--help", "stdout", ONCE),
    ("train", "trains --data x.npz", "read pipeline.json", TWICE),
    ("train", "--help", "stdout", ONCE),
    ("serve", "stages", "read pipeline.json", TWICE),
    ("serve", "--help", "stdout", ONCE),
    ("check", "--help", "stdout", ONCE),
]


def full_pipe():
    """Both ends of a pipe into which nothing more goes."""
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, bytes(1))
    except BlockingIOError:
        fcntl.fcntl(writer, fcntl.F_SETFL, flags)
    return reader, writer


def is_pending(pid, number):
    """Whether a signal has been sent that a process has not begun to handle."""
    try:
        with open("/proc/%d/status" % pid) as status:
            masks = [int(line.split()[1], 16) for line in status if line.startswith(("SigPnd:", "ShdPnd:"))]
        return any(mask >> (number - 1) & 1 for mask in masks)
    except OSError:
        return False


class Bed:
    """A directory with what the rows name, and the commands."""

    def __init__(self, hang, checker, tools):
        self.tap, self.hang = Tap(), hang
        self.home = os.path.realpath(tempfile.mkdtemp(prefix="psplit-signals-"))
        self.cwd = os.path.join(self.home, "cwd")
        self.commands = {os.path.basename(tool)[len("onnx-pipeline-"):]: [tool] for tool in tools}
        self.commands["check"] = [sys.executable, checker]
        os.mkdir(self.cwd)
        self.put("m.onnx", chain(4))
        self.put("p.json", json.dumps(PROBLEM).encode())
        self.put("costs.json", b'{"format": "onnx-pipeline-split-costs", "version": 1, "costs": []}')
        os.mkfifo(os.path.join(self.cwd, "fifo"))
        self.make("split", "m.onnx -k 2 -q -o stages")
        self.make("split", "m.onnx -k 2 -q -o trains --training --loss mse: --trained-weights input --optimizer sgd")
        found = glob.glob(ONNXRUNTIME)
        self.library = {"PSPLIT_ONNXRUNTIME": found[0]} if found else {}

    def can(self, row):
        """Serving opens ONNX Runtime before the stages."""
        return row[0] in self.commands and (row[0] != "serve" or row[2] == "stdout" or self.library)

    def put(self, name, data):
        with open(os.path.join(self.cwd, name), "wb") as file:
            file.write(data)

    def make(self, tool, args):
        subprocess.run([*self.commands[tool], *args.split()], cwd=self.cwd, check=True, stdout=subprocess.DEVNULL)

    def tidy(self, before):
        """What is new, visible and hidden; it goes."""
        new = sorted(set(listing(self.cwd)) - before, key=len, reverse=True)
        for name in new:
            path = self.cwd + name
            (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
        roots = {name.split("/")[1] for name in new}
        return ([name for name in roots if not name.startswith(".")],
                [name for name in roots if name.startswith(".")])

    def start(self, row):
        tool, args, block, _ = row
        told, env = os.path.join(self.home, "told"), {**os.environ, **self.library}
        reader, writer = full_pipe() if block == "stdout" else (None, None)
        if " " in block:
            env.update(LD_PRELOAD=self.hang, PSPLIT_HANG=block, PSPLIT_HANG_TOLD=told)
        if os.path.exists(told):
            os.unlink(told)
        running = subprocess.Popen([*self.commands[tool], *args.split()], cwd=self.cwd, env=env, text=True,
                                   stdin=subprocess.DEVNULL, preexec_fn=heed_signals, stderr=subprocess.PIPE,
                                   stdout=writer if writer is not None else subprocess.DEVNULL)
        wait_until(running, lambda: os.path.exists(told) or (" " not in block and sleeps(running.pid)))
        return running, [end for end in (reader, writer) if end is not None]

    def signalled(self, row, numbers):
        """(status, stderr, seconds behind the last signal, whether it was there for all)"""
        running, ends = self.start(row)
        there = running.poll() is None
        watch = Watch(running)
        for i, number in enumerate(numbers):
            if i:
                wait_until(running, lambda: not is_pending(running.pid, numbers[i - 1]))
                time.sleep(0.25)
            there = there and running.poll() is None
            watch = Watch(running)
            if running.poll() is None:
                running.send_signal(number)
        took_s = watch.until_ended() if there else 0
        killed = running.poll() is None
        running.kill()
        _, err = running.communicate()
        err += "(killed)" if killed else ""
        for end in ends:
            os.close(end)
        return running.returncode, err, took_s, there

    def ask(self, row, number):
        tool, args, block, how = row
        title = "%s %s: %s" % (tool, args, block)
        before = set(listing(self.cwd))
        if how != WHOLE:
            status, err, took_s, there = self.signalled(row, [number])
            whole, hidden = self.tidy(before)
            done = block == "stdout" and whole in (["out"], ["new.onnx"])  # what was written stays
            lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
            self.tap.ok(there and status == 128 + number and took_s < SOON_S and len(lines) == 1
                        and lines[0].startswith("error: interrupted") and (done or not whole)
                        and (not hidden or block.startswith("fsync")),
                        "%s, %s" % (title, number.name), "%s, status %s after %.2f s, left %s %s\n%s"
                        % (there, status, took_s, whole, hidden, err))
        if how != ONCE:
            status, err, took_s, there = self.signalled(row, [INT, TERM])
            whole, _ = self.tidy(before)
            self.tap.ok(there and status == 128 + TERM and took_s < AT_ONCE_S and (not whole or block == "stdout")
                        and err.endswith("error: interrupted again; what was under way was left\n"),
                        title + ", twice", "%s, status %s after %.2f s, left %s\n%s" % (there, status, took_s, whole, err))


def main(argv):
    if len(argv) < 4:
        sys.exit("usage: signals.py HANG CHECKER TOOL...")
    bed = Bed(os.path.abspath(argv[1]), os.path.abspath(argv[2]), [os.path.abspath(tool) for tool in argv[3:]])
    try:
        asked = {row[0] for row in ROWS}
        bed.tap.ok(set(bed.commands) <= asked, "every command is in the table", ", ".join(set(bed.commands) - asked))
        for i, row in enumerate(ROWS):
            if bed.can(row):
                bed.ask(row, (INT, TERM, HUP)[i % 3])
    finally:
        shutil.rmtree(bed.home, ignore_errors=True)
    print("1..%d" % bed.tap.count)
    return bed.tap.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
