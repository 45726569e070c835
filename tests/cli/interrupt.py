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

MOST_S = 2  # from the signal to the end, on a busy machine; commands give themselves 1 s
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


def interrupted(tap, cwd, number, *command, stdin=subprocess.DEVNULL):
    before = listing(cwd)
    running = subprocess.Popen(command, cwd=cwd, stdin=stdin, text=True, preexec_fn=heed_signals,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.8)
    begun = time.monotonic()
    still = running.poll() is None
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    took_s = time.monotonic() - begun
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
