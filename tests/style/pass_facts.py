#!/usr/bin/env python3
"""A pass says in its first line what it needs and keeps: pass_facts.py SOURCE_ROOT

What counts is the row at the end of the file; the line is what is read. Results as TAP.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

ROW = re.compile(r"^const psplit_i_pass psplit_i_pass_\w+ = \{(.*?)^\};", re.S | re.M)


def facts(expression):
    return [name.lower() for name in re.findall(r"PSPLIT_I_FACT_(\w+)", expression)]


def field(row, name):
    found = re.search(r"\.%s = ([^,]*)," % name, row)
    return found[1] if found else ""


def first_line(row):
    needs, lost = facts(field(row, "needs")), facts(field(row, "keeps"))
    return "/* needs: %s  keeps: everything%s  breaks: nothing" % (
        ", ".join(needs) or "nothing", " but " + ", ".join(lost) if lost else "")


def main(root):
    tap = Tap()
    wrong, n = [], 0
    folder = os.path.join(root, "passes")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".c"):
            continue
        with open(os.path.join(folder, name)) as file:
            text = file.read()
        row = ROW.search(text)
        if not row:
            continue
        n += 1
        said = text.split("\n", 1)[0].removesuffix(" */")
        if said != first_line(row[1]):
            wrong.append("%s: says %s; its row: %s" % (name, said, first_line(row[1])))
    tap.none("first lines of passes say what their rows do", wrong)
    with open(os.path.join(folder, "passes.def")) as file:
        tap.ok(n == len(re.findall(r"^X\(", file.read(), re.M)), "of all passes", n)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
