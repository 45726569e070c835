#!/usr/bin/env python3
"""The sources are as .clang-format says: format.py SOURCE_ROOT CLANG_FORMAT

clang-format leaves comments as they are, so that it cannot flatten the lists in them; that they
keep to the width of a line is asked here. Results as TAP.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from must_use import sources  # noqa: E402
from tap import Tap  # noqa: E402

VERSION = "14"  # Debian 12's; others break lines elsewhere
COLUMNS = 100
LIST = """/* Two kinds:
 *   one    %s
 *   other  and a second line
 *          of it */
""" % " ".join(["word"] * 30)


def main(root, clang_format=None):
    if not clang_format:
        print("1..0 # SKIP there is no clang-format")
        return
    version = subprocess.run([clang_format, "--version"], capture_output=True, text=True).stdout
    version = version.split("\n")[0]
    if not re.search(r"version %s\." % VERSION, version):
        print("1..0 # SKIP clang-format %s decides, this is %s" % (VERSION, version))
        return
    tap = Tap()
    report = tap.none

    def formatted(text):
        return subprocess.run([clang_format, "--assume-filename=" + os.path.join(root, "text.c")],
                              input=text, capture_output=True, text=True).stdout

    report("a list in a comment stays one", [] if formatted(LIST) == LIST else [formatted(LIST)])
    report("a space too many is seen",
           [] if formatted("int  n;\n") == "int n;\n" else ["nothing is put right"])

    files = list(sources(root, (".c", ".h")))
    done = subprocess.run([clang_format, "--dry-run", "-Werror", *(path for path, _ in files)],
                          cwd=root, capture_output=True, text=True)
    places = re.findall(r"^(\S+:\d+):\d+: error", done.stderr, re.M)
    if done.returncode and not places:
        places = done.stderr.splitlines()
    report("sources are formatted (clang-format -i FILE)", places)
    report("no line has more than %d columns" % COLUMNS,
           ["%s:%d: %d" % (path, i, len(line)) for path, text in files
            for i, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS]
           + ["no sources were found"] * (len(files) < 300))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
