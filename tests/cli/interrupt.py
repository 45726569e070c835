#!/usr/bin/env python3
"""Ctrl-C is answered at once, whatever a command plans: interrupt.py SPLIT INSPECT PLAN MERGE

What would not end for days (the exact program, every node by itself), or waits for the reader of a FIFO, is begun and interrupted: the
exit status tells the signal, one line says so, and nothing is left behind. TAP.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from bad_input import Tap, chain, listing, model

MOST_S = 2  # from the signal to the end; commands give themselves 1 s
MOST_WAIT_S = 120  # for what comes for certain, however busy the machine is
ROWS, WIDTH = 60, 20


def layers():
    """Each node reads two of the row above."""
    nodes = []
    for row in range(ROWS):
        for i in range(WIDTH):
            above = "v%d_%%d" % (row - 1) if row else "x"
            reads = [above % k if row else "x" for k in (i, (7 * i + row) % WIDTH)]
            nodes.append("v%d_%d = Add (%s, %s)" % (row, i, *reads))
    return model("(float[64] x) => (float[64] y) {\n%s\ny = Relu (v%d_0) }"
                 % ("\n".join(nodes), ROWS - 1))


def problem():
    """The same without ONNX."""
    n = ROWS * WIDTH
    return {"format": "psplit-problem", "devices": [{"count": 8}],
            "nodes": [{"time_ns": 1000 + v * 7919 % 1000} for v in range(n)],
            "tensors": [{"producer": v, "consumers": [v + WIDTH], "send_ns": 500 + v * 104729 % 1000,
                         "recv_ns": 500} for v in range(n - WIDTH)]}


def heed_signals():
    """A run of all tests that outlives its terminal ignores SIGHUP, and so would commands."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def takes(pid, number):
    """Whether a process has a handler for a signal, or ignores it."""
    with open("/proc/%d/status" % pid) as status:
        masks = dict(line.split(":", 1) for line in status)
    return (int(masks["SigCgt"], 16) | int(masks["SigIgn"], 16)) >> (number - 1) & 1


def by_thread(pid, name):
    """A file of each thread of a process."""
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/%s" % (pid, task, name)) as file:
                yield task, file.read()
        except OSError:  # it has ended
            pass


def cpu_ticks(pid):
    """What each thread has used of a processor; None while one runs."""
    fields = {task: text.rpartition(")")[2].split() for task, text in by_thread(pid, "stat")}
    return None if any(each[0] == "R" for each in fields.values()) else {t: each[11:13] for t, each in fields.items()}


def sleeps(pid):
    """Whether all its threads have slept for a while."""
    try:
        first = cpu_ticks(pid)
        time.sleep(0.25)
        return first is not None and first == cpu_ticks(pid)
    except OSError:
        return False


def is_at_work(pid, number):
    """Whether a process takes the signal, and computes or waits for others."""
    try:
        used_s = sum(float(text.split()[0]) for _, text in by_thread(pid, "schedstat")) / 1e9
        return takes(pid, number) and (used_s > 0.5 or sleeps(pid))
    except OSError:
        return False


def wait_until(running, holds):
    """Until something is so, or the process has ended."""
    begun = time.monotonic()
    while running.poll() is None and time.monotonic() - begun < MOST_WAIT_S and not holds():
        time.sleep(0.02)


def waited_s(pid):
    """What the first thread of a process, which ends it, has waited for a processor that others had."""
    try:
        with open("/proc/%d/task/%d/schedstat" % (pid, pid)) as file:
            return 1e-9 * int(file.read().split()[1])
    except OSError:
        return 0


class Watch:
    """How long a process takes to end, but for what it waits for a processor."""

    def __init__(self, running):
        self.pid, self.begun, self.waited_s = running.pid, time.monotonic(), waited_s(running.pid)

    def seconds(self):
        return time.monotonic() - self.begun - max(0, waited_s(self.pid) - self.waited_s)

    def until_ended(self):
        """Once the process has ended; its status is still to be asked for. Or until it should have long ago."""
        took_s = 0
        while not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) and took_s < 20:
            own_s = waited_s(os.getpid())
            time.sleep(0.01)
            took_s = self.seconds()
        # It may have ended while this process waited to look again.
        return took_s - max(0, waited_s(os.getpid()) - own_s) if took_s else self.seconds()


def interrupted(tap, cwd, number, *command, stdin=subprocess.DEVNULL):
    before = listing(cwd)
    running = subprocess.Popen(command, cwd=cwd, stdin=stdin, text=True, preexec_fn=heed_signals,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(running, lambda: is_at_work(running.pid, number))
    still = running.poll() is None
    watch = Watch(running)
    running.send_signal(number)
    took_s = watch.until_ended() if still else 0
    running.kill()
    out, err = running.communicate()
    good = (still and running.returncode == 128 + number and err == "error: interrupted\n"
            and took_s < MOST_S and listing(cwd) == before)
    tap.ok(good, "%s, %s" % (os.path.basename(command[0]), number.name),
           "%s, status %d after %.1f s: %s%s" % (still, running.returncode, took_s, out[:300], err))


def waits_for_input(tap, cwd, number, split, plan):
    """Standard input that nobody writes, before there is any work."""
    end, unwritten = os.pipe()
    try:
        for command in ((plan, "-"), (split, "small.onnx", "-o", "out", "--devices", "-"),
                        (split, "small.onnx", "-k", "2", "-o", "out", "--costs", "-")):
            interrupted(tap, cwd, number, *command, stdin=end)
    finally:
        os.close(end)
        os.close(unwritten)


def unread(tap, cwd, number, split, inspect, plan, merge):
    """Outputs into a FIFO that nobody reads."""
    with open(os.path.join(cwd, "small.onnx"), "wb") as file:
        file.write(chain(4))
    with open(os.path.join(cwd, "small.json"), "w") as file:
        json.dump({"format": "psplit-problem", "devices": [{"count": 2}], "nodes": [{"time_ns": 5}] * 2,
                   "tensors": [{"producer": 0, "consumers": [1]}]}, file)
    if not os.path.exists(os.path.join(cwd, "fifo")):
        os.mkfifo(os.path.join(cwd, "fifo"))
        subprocess.run([split, "small.onnx", "-k", "2", "-q", "-o", "stages"], cwd=cwd, check=True)
    made = ("small.onnx", "-k", "2", "-q", "--threads", "1")
    interrupted(tap, cwd, number, split, *made, "-o", "out", "--depfile", "fifo")
    interrupted(tap, cwd, number, split, *made, "-o", "out", "--certificate", "fifo")
    interrupted(tap, cwd, number, split, *made, "-o", "out", "--annotate", "fifo")
    interrupted(tap, cwd, number, inspect, *made, "-o", "fifo")
    interrupted(tap, cwd, number, inspect, *made, "--format", "onnx", "--force", "-o", "fifo")
    interrupted(tap, cwd, number, merge, "stages", "--force", "-o", "fifo")
    interrupted(tap, cwd, number, plan, "small.json", "--certificate", "fifo")


def main(argv):
    if len(argv) != 5:
        sys.exit("usage: interrupt.py SPLIT INSPECT PLAN MERGE")
    split, inspect, plan, merge = map(os.path.abspath, argv[1:])
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-interrupt-"))
    tap = Tap()
    try:
        with open(os.path.join(cwd, "m.onnx"), "wb") as file:
            file.write(layers())
        with open(os.path.join(cwd, "p.json"), "w") as file:
            json.dump(problem(), file)
        endless = ("-k", "8", "--time-limit", "1e9", "--passes",
                   "infer-shapes,cost,mark,partition:solver=exact")
        for number in (signal.SIGINT, signal.SIGTERM):
            interrupted(tap, cwd, number, split, "m.onnx", "-o", "out", *endless)
            interrupted(tap, cwd, number, inspect, "m.onnx", *endless)
            interrupted(tap, cwd, number, plan, "--time-limit", "-1", "p.json")
        for number in (signal.SIGTERM, signal.SIGHUP):
            unread(tap, cwd, number, split, inspect, plan, merge)
            waits_for_input(tap, cwd, number, split, plan)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
