#!/usr/bin/env python3
"""What the build promises against misuse of a fault: hardening.py FORTIFIED FILE...

Every program and library that is installed is position-independent, has its tables of calls
read-only and bound from the start, a stack that cannot be executed, no section that can be written
and executed, and guards on its stack frames; where FORTIFIED is "true", libc is called with the
sizes of what it writes to. TAP; read by readelf.
"""
import re
import shutil
import subprocess
import sys


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def segments(path):
    """kind -> flags of the program headers, as readelf prints them: R, RW, R E, ..."""
    found = {}
    for line in readelf("-l", path).splitlines():
        match = re.match(r"\s+([A-Z_]+)\s+(?:0x\w+\s+){5}([RWE ]{3})", line)
        if match:
            found.setdefault(match[1], set()).add(match[2])
    return found


def checks(path):
    """(what is promised, whether it holds)"""
    header, dynamic, symbols = readelf("-h", path), readelf("-d", path), readelf("-s", path)
    parts = segments(path)
    yield "is position-independent", re.search(r"Type:\s+DYN", header) is not None
    yield "binds its calls from the start", re.search(r"FLAGS.*\bNOW\b|BIND_NOW", dynamic) is not None
    yield "has its tables of calls read-only", "GNU_RELRO" in parts
    yield "has a stack that cannot be executed", parts.get("GNU_STACK") == {"RW "}
    yield "has nothing that can be written and executed", not any(
        "W" in flags and "E" in flags for each in parts.values() for flags in each)
    yield "guards its stack frames", "__stack_chk_fail" in symbols
    yield "needs no relocation in its code", "TEXTREL" not in dynamic


def main(fortified, paths):
    if not shutil.which("readelf"):
        print("1..0 # SKIP there is no readelf")
        return
    n = 0
    for path in paths:
        name = path.rsplit("/", 1)[-1]
        for what, holds in checks(path):
            n += 1
            print(f"{'ok' if holds else 'not ok'} {n} - {name} {what}")
    # The size of what is written to is known in some places alone, of which the first file has many.
    n += 1
    checked = re.search(r"\b__\w+_chk\b", readelf("-s", paths[0]))
    why = "" if fortified == "true" else " # SKIP built without optimisation or with sanitizers"
    print(f"{'ok' if checked or why else 'not ok'} {n} - calls libc with sizes{why}")
    print(f"1..{n}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
