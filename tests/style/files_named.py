#!/usr/bin/env python3
"""Files that documentation names exist: files_named.py SOURCE_ROOT

A name with a folder is a path from the root of the sources, or, of a header, from include/; one
without a folder is the name of a single file. `*` stands for any characters. Results as TAP.
"""
import fnmatch
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from must_use import line_of, sources  # noqa: E402
from tap import Tap  # noqa: E402

ENDINGS = (".c", ".h", ".def", ".proto", ".sh", ".py", ".mjs")
NAME = r"[\w*][\w./*-]*(?:%s)(?![\w/])" % "|".join(map(re.escape, ENDINGS))
QUOTED = re.compile(r"`<?(%s)>?(?=[`: ])" % NAME)
# What a reader is told to write.
FOREIGN = {"docs/manual.md": ["split4.c"], "docs/deploying.md": ["triton.sh", "model_config.proto"]}


def in_document(text, folders):
    """(name, line): of files in backticks, and of paths below a folder of the sources anywhere."""
    path = re.compile(r"(?<![\w./-])((?:%s)/%s)" % ("|".join(map(re.escape, folders)), NAME))
    return sorted({(match[1], line_of(text, match.start()))
                   for pattern in (QUOTED, path) for match in pattern.finditer(text)})


def in_opening(path, text):
    """What the comment that opens a header lists, a line a file or some: their names, and whether these have to be all
    .c files of the folder, since the comment is the room's and lists such alone."""
    opening = re.match(r"/\*.*?\*/", text, re.S)
    lines = re.findall(r"^ \*   ((?:\w+\.[ch](?:, |,?$| ))+)", opening[0] if opening else "", re.M)
    names = [name for line in lines for name in re.findall(r"\w+\.[ch]", line)]
    folder = os.path.basename(os.path.dirname(path))
    whole = re.match(r"/\* %s/?: " % folder, text) and all(name.endswith(".c") for name in names)
    return (names, bool(whole)) if len(lines) > 2 else ([], False)


def exists(name, paths):
    """Whether one file, or with `*` some, can be meant by `name`."""
    if "/" in name:
        return any(fnmatch.fnmatchcase(path, want) for want in (name, "include/" + name)
                   for path in paths)
    n = sum(fnmatch.fnmatchcase(os.path.basename(path), name) for path in paths)
    return n == 1 or (n > 1 and "*" in name)


def main(root):
    tap = Tap()
    report = tap.none

    paths = {path for path, _ in sources(root, ENDINGS)}
    folders = sorted({path.split(os.sep)[0] for path in paths})
    report("a name that is no file's is seen", [] if
           [in_document("`a.c`, `b/c.h`:\n`<d.h>` a.c\n  sh tests/e.sh x/tests/f.sh\n", ["tests"]),
            exists("b.c", {"a/b.c"}), exists("b.c", {"a/b.c", "c/b.c"}),
            exists("c/b.c", {"a/b.c"}), exists("a/*.c", {"a/b.c"}), exists("d.c", {"a/b.c"})]
           == [[("a.c", 1), ("b/c.h", 1), ("d.h", 2), ("tests/e.sh", 3)],
               True, False, False, True, False]
           else ["the search has a hole"])

    wrong, n = [], 0
    for path, text in sources(root, ".md"):
        for name, line in in_document(text, folders):
            n += 1
            if name not in FOREIGN.get(path, []) and not exists(name, paths):
                wrong.append("%s:%d: %s is no file, or several" % (path, line, name))
    report("files that documentation names exist", wrong + ["few were found"] * (n < 50))

    sample = "/* a: does.\n *\n *   b.c   one\n *   c.c, d.c,\n *   e.c  more\n */\n"
    report("a list that opens a header is read whole", [] if
           [in_opening("a/a.h", sample), in_opening("x/a.h", sample), in_opening("a/a.h", "/* a: b.c */")]
           == [(["b.c", "c.c", "d.c", "e.c"], True), (["b.c", "c.c", "d.c", "e.c"], False), ([], False)]
           else ["the search has a hole"])
    wrong, n = [], 0
    for path, text in sources(root, ".h"):
        names, whole = in_opening(path, text)
        folder = os.path.dirname(path)
        here = {os.path.basename(each) for each in paths if os.path.dirname(each) == folder and each.endswith(".c")}
        n += whole
        wrong += ["%s: %s is not in %s" % (path, name, folder) for name in names
                  if os.path.join(folder, name) not in paths]
        wrong += ["%s: says nothing of %s" % (path, name) for name in sorted(here - set(names) if whole else ())]
    report("headers that open with their folder's files name them all", wrong + ["few were found"] * (n < 5))

    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
