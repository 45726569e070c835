"""Tests that a tool of tests/analyse.sh watches: analysed.py BUILD TOOL [LEFT_OUT]

Names, one a line, of the tests of BUILD whose command is a program in C of our own, but for those that LEFT_OUT
(default: analysed.txt beside this) has with a reason: `TOOL PATTERN...: REASON`, of SUITE/TEST, where `*` stands for
any characters. Status 1 for a pattern that leaves out nothing, or only what another has left out.
"""
import fnmatch
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))


def programs(build):
    """(name, its SUITE/NAMEs) of the tests of programs that BUILD makes of files in tests/."""
    made = json.loads(subprocess.check_output(["meson", "introspect", "--tests", build]))
    folder = os.path.join(os.path.realpath(build), "tests", "")
    return [(test["name"], ["%s/%s" % (suite.rpartition(":")[2], test["name"]) for suite in test["suite"]])
            for test in made if os.path.realpath(test["cmd"][0]).startswith(folder)]


def left_out(path, tool, tests):
    """Names of the tests that the file leaves out for the tool, and what is wrong with the file."""
    out, wrong = set(), []
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    for line in lines:
        head, _, reason = line.partition(": ")
        of, *patterns = head.split()
        if not reason or not patterns:
            wrong.append("`%s`: not `TOOL PATTERN...: REASON`" % line)
        for pattern in patterns if of == tool else []:
            met = {name for name, full in tests if fnmatch.filter(full, pattern)}
            if not met - out:
                wrong.append("%s leaves out nothing more" % pattern)
            out |= met
    return out, wrong


def main(build, tool, path=os.path.join(HERE, "analysed.txt")):
    tests = programs(build)
    out, wrong = left_out(path, tool, tests)
    for line in wrong:
        print("%s: %s" % (path, line), file=sys.stderr)
    print("\n".join(name for name, _ in tests if name not in out))
    return 1 if wrong else 0


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
