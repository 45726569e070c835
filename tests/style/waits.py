#!/usr/bin/env python3
"""Threads wait by a clock that nobody sets, and look at flags that are atomic: waits.py SOURCE_ROOT

A wait that ends at a time of day lasts for as long as that is put back. What a signal handler writes as a
sig_atomic_t may be read by the thread alone that it interrupts, and nobody knows which that is. Results as TAP.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

# The library's waits are in the one, the commands', which see no more than its API, in the other.
WAITING = {"runtime/clock.c", "tools/logging.c"}
TIMED = re.compile(r"\b(?:pthread_cond_timedwait|pthread_mutex_timedlock|sem_timedwait)\s*\(")


def main(root):
    tap = Tap()
    by_day, elsewhere, plain, met = [], [], [], set()
    for directory, below, names in os.walk(root):
        at = os.path.relpath(directory, root)
        below[:] = [] if at.startswith(("tests", "samples")) else sorted(
            name for name in below if name[0] != "." and name not in ("build", "node_modules")
            and not os.path.exists(os.path.join(directory, name, "build.ninja")))
        for name in sorted(names):
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.normpath(os.path.join(at, name))
            with open(os.path.join(directory, name), errors="replace") as file:
                text = file.read()
            if "CLOCK_REALTIME" in text:
                by_day.append(path)
            if "sig_atomic_t" in text:
                plain.append(path)
            if TIMED.search(text):
                met.add(path)
                if path not in WAITING or "CLOCK_MONOTONIC" not in text:
                    elsewhere.append(path)
    tap.none("nothing goes by the time of day", by_day)
    tap.none("flags that signal handlers write are atomic", plain)
    tap.none("waits that end are in one place", elsewhere)
    tap.ok(met == WAITING, "and that place is known", ", ".join(sorted(met)))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
