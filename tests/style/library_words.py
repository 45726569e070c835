#!/usr/bin/env python3
"""The library speaks of no command: library_words.py SOURCE_ROOT

No string of a component of the library, or of the runtime, names an option of the commands; what would
help is a psplit_hint. No text there, comments included, tells exit statuses of the library's codes.
The test sees both where they stand. Results as TAP.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

COMPONENTS = ["base", "onnx", "shapes", "partition", "passes", "manifest", "emit", "view", "verify", "merge", "generate",
         "runtime", "tune", "include"]
TOKEN = re.compile(r'/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
OPTION = re.compile(r"(?<![\w-])--[a-z]")


def named(text):
    """(line, string) of each string literal that names an option; comments may."""
    return [(text.count("\n", 0, match.start()) + 1, match[1]) for match in TOKEN.finditer(text)
            if match[1] is not None and OPTION.search(match[1])]


def sources(root):
    for component in COMPONENTS:
        for folder, folders, names in os.walk(os.path.join(root, component)):
            folders[:] = sorted(each for each in folders if each != "node_modules")
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    path = os.path.join(folder, name)
                    with open(path) as file:
                        yield os.path.relpath(path, root), file.read()


def main(root):
    tap = Tap()
    report = tap.none

    seen = named('/* "--a" */ "x; --force" \'"\' "--" "a--b" "\\"--dim\\""\n"\\n --pin %s"')
    report("options in strings are seen", [] if [line for line, _ in seen] == [1, 1, 2]
           else ["the search has a hole: %s" % seen])
    texts = list(sources(root))
    report("there are sources to search", [] if len(texts) > 200 else ["%d files" % len(texts)])
    report("no string of the library names an option",
           ["%s:%d: %s" % (path, line, string) for path, text in texts
            for line, string in named(text)])
    report("exit statuses are the commands'",
           [path for path, text in texts if re.search(r"_exit_status\b", text)])
    return tap.end()


sys.exit(main(*sys.argv[1:]))
