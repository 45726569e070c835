#!/usr/bin/env python3
"""What a full disk, a file-size limit or a kill leaves of a split: failures.py SLICE_EMIT

The old directory or none, never a part of a new one. Results as TAP.
"""
import filecmp
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402
from text_model import make  # noqa: E402


def model(depth, n):
    """x -> Add(w0) -> ... -> y, with n floats each."""
    nodes, weights, last = [], [], "x"
    for i in range(depth):
        out = "y" if i == depth - 1 else "a%d" % i
        nodes.append("%s = Add (%s, w%d)" % (out, last, i))
        weights.append("float[%d] w%d = random(%d)" % (n, i, i))
        last = out
    return make('<ir_version: 8, opset_import: ["": 17]> g (float[%d] x) => (float[%d] y) <%s> {\n%s\n}'
                % (n, n, ", ".join(weights), "\n".join(nodes)))


def split(tool, model_path, out, *more, before=(), **options):
    return subprocess.run([*before, tool, model_path, "4", out, *more], capture_output=True, text=True,
                          timeout=120, **options)


def refused(tap, title, done, says, directory, left):
    there = sorted(os.listdir(directory))
    good = done.returncode == 3 and says in done.stderr and there == left
    tap.ok(good, title, "%s %s %s" % (done.returncode, done.stderr, there))


def file_limit(tap, tool, source, work):
    limit = os.path.getsize(source) // 8

    def lower():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for weights in ("inline", "external"):
        done = split(tool, source, os.path.join(work, "out"), "io", weights, preexec_fn=lower)
        refused(tap, "a file-size limit, weights " + weights, done, "File too large", work, [])


def full_disk(tap, tool, source, work):
    title = "a full disk"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", work],
                             capture_output=True, text=True)
    if mounted.returncode:
        tap.skip(title, "mounting is not allowed here")
        return
    try:
        done = split(tool, source, os.path.join(work, "out"))
        refused(tap, title, done, "No space left", work, [])
    finally:
        subprocess.run(["umount", work], check=True)


def not_writable(tap, tool, source, work):
    # Root writes everywhere, but for what it may do against permissions.
    powerless = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    if os.geteuid() == 0 and subprocess.run([*powerless, "true"], capture_output=True).returncode:
        tap.skip("a directory that cannot be written", "root writes everywhere, and setpriv cannot keep it from that")
        return
    os.chmod(work, 0o555)
    done = split(tool, source, os.path.join(work, "out"), before=powerless if os.geteuid() == 0 else [])
    os.chmod(work, 0o755)
    refused(tap, "a directory that cannot be written", done, "Permission denied", work, [])


def same(a, b):
    names = sorted(os.listdir(a))
    return names == sorted(os.listdir(b)) and all(
        filecmp.cmp(os.path.join(a, name), os.path.join(b, name), shallow=False) for name in names)


def kills(tap, tool, source, work):
    """At any moment: no DIR, or all of it; over an old one: the old, or the new."""
    rng = random.Random(2)
    whole, old = os.path.join(work, "whole"), os.path.join(work, "old")
    start = time.monotonic()
    split(tool, source, whole)
    took = time.monotonic() - start
    split(tool, source, old, "io")
    place = os.path.join(work, "place")
    os.mkdir(place)
    out = os.path.join(place, "out")
    problems, interrupted = [], 0
    for attempt in range(40):
        shutil.rmtree(out, ignore_errors=True)
        replaced = attempt % 2 == 1
        if replaced:
            shutil.copytree(old, out)
            os.chmod(out, 0o700)
        running = subprocess.Popen([tool, source, "4", out, "sendrecv", "auto", "force"],
                                   stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 1.2 * took))
        running.send_signal(signal.SIGKILL)
        interrupted += running.wait() == -signal.SIGKILL
        if os.path.exists(out):
            if not same(out, whole) and not (replaced and same(out, old)):
                problems.append("attempt %d: neither the old nor the new" % attempt)
            if replaced and os.stat(out).st_mode & 0o777 != 0o700:
                problems.append("attempt %d: others may look into it" % attempt)
        elif replaced:
            problems.append("attempt %d: the old one is gone" % attempt)
    tap.ok(not problems, "40 runs killed, %d of them in time" % interrupted, "\n".join(problems))
    shutil.rmtree(out, ignore_errors=True)
    done = split(tool, source, out)
    there = os.listdir(place)
    tap.ok(done.returncode == 0 and there == ["out"] and same(out, whole),
           "the next run removes what they left", "%s %s" % (done.stderr, there))


def together(tap, tool, source, work):
    """Runs for one directory at a time: one wins, the others say so, nothing is left."""
    out = os.path.join(work, "out")
    running = [subprocess.Popen([tool, source, "4", out], stderr=subprocess.PIPE, text=True)
               for _ in range(6)]
    said = [(each.communicate()[1], each.returncode) for each in running]
    won = [text for text, status in said if status == 0]
    lost = [text for text, status in said if status == 3 and "exists" in text]
    tap.ok(len(won) == 1 and len(lost) == 5 and os.listdir(work) == ["out"],
           "six runs at a time for one directory", "%s %s" % (said, os.listdir(work)))


def main():
    tool = os.path.abspath(sys.argv[1])
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="psplit-emit-") as home:
        source = os.path.join(home, "model.onnx")
        with open(source, "wb") as file:
            file.write(model(16, 1 << 19))  # enough for several stages to be written at a time
        for i, case in enumerate((file_limit, full_disk, not_writable, kills, together)):
            work = os.path.join(home, "work%d" % i)
            os.mkdir(work)
            case(tap, tool, source, work)
    sys.exit(tap.end())


main()
