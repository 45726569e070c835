#!/usr/bin/env python3
"""What commands say while they work: progress.py SPLIT INSPECT PLAN VERIFY MERGE

On a terminal (a pty) long work shows a line that says what is done and how far it is, from half a
second on, and takes it away again; short work, --quiet and what is no terminal show nothing. Ctrl-C
is answered at once. --verbose tells the parts' times, --log writes a file. TAP.
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from bad_input import FILE, OK, Tap, chain
from interrupt import MOST_WAIT_S, Watch, layers, problem

BATCH = ("--dim", "batch=8")
AFTER_S = 0.3  # until a signal comes
ENDLESS = ("-k", "8", "--time-limit", "1e9", "--passes", "infer-shapes,cost,mark,partition:solver=exact")


def on_terminal(cwd, seconds, command, number=None, words=None):
    """What the command writes to a terminal as standard error, with the time, and the time but for what it waits for
    a processor; ended after `seconds`, or where there are words a while after it has written these, by the signal
    where there is one. Also when that was, the second way, and its status."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=theirs, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    watch, begun = Watch(running), time.monotonic()
    chunks, sent, most = [], None, seconds if words is None else MOST_WAIT_S
    while True:
        now = watch.seconds()
        if words is not None and words in text_of(chunks):
            most, words = now + AFTER_S, None
        if sent is None and now > most:
            sent = watch.seconds()
            running.send_signal(number or signal.SIGTERM)
        if select.select([ours], [], [], 0.02)[0]:
            try:
                data = os.read(ours, 4096)
            except OSError:
                break
            if not data:
                break
            chunks.append((time.monotonic() - begun, watch.seconds(), data.decode()))
    os.close(ours)
    return chunks, sent, running.wait(timeout=20)


def text_of(chunks):
    return "".join(text for _, _, text in chunks)


def main(argv):
    if len(argv) != 6:
        sys.exit("usage: progress.py SPLIT INSPECT PLAN VERIFY MERGE")
    split, inspect, plan, verify, merge = map(os.path.abspath, argv[1:])
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-progress-"))
    tap = Tap()

    def run(*command):
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)

    def read(name):
        with open(os.path.join(cwd, name), encoding="utf-8") as file:
            return file.read()

    try:
        with open(os.path.join(cwd, "m.onnx"), "wb") as file:
            file.write(layers())
        with open(os.path.join(cwd, "small.onnx"), "wb") as file:
            file.write(chain(4))
        with open(os.path.join(cwd, "p.json"), "w") as file:
            json.dump(problem(), file)

        for name, words, *command in (
                ("split", "pass partition: ", split, "m.onnx", "-o", "out", *ENDLESS),
                ("inspect", "pass partition: ", inspect, "m.onnx", *ENDLESS),
                ("plan", "partitioning: ", plan, "--time-limit", "-1", "p.json")):
            chunks, sent, status = on_terminal(cwd, None, command, signal.SIGINT, words)
            text = text_of(chunks)
            first, own = next((each[:2] for each in chunks if words in each[2]), (99, 99))
            tap.ok(words in text and 0.4 < first and own < 1.4, name + " says what it does, after half a second",
                   "at %s, %s: %r" % (first, own, text))
            heard = next((own for _, own, part in chunks if "interrupted: ending" in part), 99)
            tap.ok(sent and heard - sent < 0.5 and status == 130 and "error: interrupted" in text,
                   name + " answers Ctrl-C at once", "%s, %s: status %s %r" % (sent, heard, status, text))
        endless = [each if each != "8" else "8..9" for each in ENDLESS]
        for name, *command in (("split", split, "m.onnx", "--plan-only"), ("inspect", inspect, "m.onnx", "--format", "html")):
            chunks, _, _ = on_terminal(cwd, None, (*command, *endless), words="1 of 2, pass partition: ")
            tap.ok("1 of 2, pass partition: " in text_of(chunks), name + " says which plan of several it makes",
                   repr(text_of(chunks)))
        chunks, _, status = on_terminal(cwd, 1.2, (split, "m.onnx", "-q", "-o", "out", *ENDLESS))
        tap.ok(re.sub(r"error: [^\n]*\r?\n", "", text_of(chunks)) == "", "--quiet shows nothing",
               repr(text_of(chunks)))
        chunks, _, status = on_terminal(cwd, 5, (plan, "--time-limit", "1.5", "--solver", "exact", "p.json"))
        text = text_of(chunks)
        tap.ok(status == OK and not text.split("\033[K")[-1].startswith("partitioning"),
               "the line goes when the work has ended", repr(text))
        chunks, _, status = on_terminal(cwd, None, (split, "m.onnx", "-o", "out", "-k", "8", "--passes",
                                                    "infer-shapes,cost,mark,partition:solver=anneal"), words=" left")
        tap.ok(re.search(r"pass partition: \d+ % of the limit, at most [0-9.]+ m?s left", text_of(chunks)),
               "the limit of work gives an estimate", repr(text_of(chunks)))
        for _ in range(5):  # a busy machine may leave it half a second without a processor, not each time
            chunks, _, status = on_terminal(cwd, 5, (split, "small.onnx", "-k", "2", "--plan-only", *BATCH))
            if status != OK or text_of(chunks) == "":
                break
        tap.ok(status == OK and text_of(chunks) == "", "what takes no time shows nothing",
               repr(text_of(chunks)))

        done = run(split, "small.onnx", "-k", "2", "-o", "s", "-v", "--verify", *BATCH)
        table = done.stderr.splitlines()
        parts = [line.split("  ")[-1].strip() for line in table]
        tap.ok(done.returncode == OK and table and re.match(r" +time +share +part$", table[0])
               and parts[1:3] == ["reading small.onnx", "pass infer-shapes"]
               and parts[-4:] == ["writing stages", "proving that the stages are the model", "all else",
                                  "in all"], "-v tells the times of all parts", done.stderr)
        shares = [float(share) for share in re.findall(r"([0-9.-]+) %  (?!in all)", done.stderr)]
        tap.ok(98 < sum(shares) < 102, "whose shares are all of the time", done.stderr)
        again = run(split, "small.onnx", "-k", "2", "-o", "s2", *BATCH)
        tap.ok(again.stderr == "" and re.sub("took.*", "", again.stdout) ==
               re.sub("took.*", "", done.stdout.replace("\nverified: the stages together are the model\n", "")),
               "and changes no result", again.stderr + again.stdout + done.stdout)

        commands = [("split", split, "small.onnx", "-k", "2", "--plan-only"),
                    ("inspect", inspect, "small.onnx"), ("plan", plan, "p.json", "--solver", "search"),
                    ("verify", verify, "s", "--model", "small.onnx"),
                    ("merge", merge, "s", "-o", "merged.onnx")]
        for name, *command in commands:
            done = run(*command, "--log", "log.txt", "-v")
            text = read("log.txt")
            tap.ok(done.returncode == OK and "in all" in done.stderr
                   and re.match(r"# log of onnx-pipeline: onnx-pipeline-%s [0-9.]+\n" % name, text)
                   and " ".join(command) in text and re.search(r"  (reading|writing) ", text)
                   and text.endswith("exit status 0\n"), name + " --log FILE -v", done.stderr + text)
        done = run(split, "small.onnx", "-k", "400", "--plan-only", "--log", "log.txt")
        tap.ok("  error: " in read("log.txt") and read("log.txt").endswith("exit status 7\n"),
               "a log has the error", read("log.txt"))
        before = chain(4)
        done = run(split, "small.onnx", "-k", "2", "--plan-only", "--log", "small.onnx")
        with open(os.path.join(cwd, "small.onnx"), "rb") as file:
            tap.ok(done.returncode == FILE and "it is not a log" in done.stderr and file.read() == before,
                   "a log replaces nothing but a log", done.stderr)
        done = run(split, "small.onnx", "-k", "2", "--plan-only", "--log", "no/such/log")
        apart = run(split, "small.onnx", "-k", "2", "--plan-only", "--log", "/sys/no-log")
        tap.ok(apart.returncode == FILE and "/sys/no-log: cannot be written: Permission denied" in apart.stderr,
               "why a log cannot be made", apart.stderr)
        tap.ok(done.returncode == FILE and "--log no/such/log: cannot be written" in done.stderr,
               "a log that cannot be written", done.stderr)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
