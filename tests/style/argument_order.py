#!/usr/bin/env python3
"""No call leaves the order open in which its arguments make nodes, or are drawn: argument_order.py SOURCE_ROOT

C does not say in which order arguments are computed, and compilers differ. What rules of gradients make is
numbered and named as it is made, so two arguments of one call that both make something give other bytes from
another compiler, and a proof that does not know them. The names of gradient/rule.h that hold one argument after
the other are macros and may be called so. Likewise for what a test draws: with another compiler it would look at
other problems. The test sees a call where it stands. Results as TAP.
"""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

MAKES = re.compile(r"^(?:static )?(?:inline )?(?:psplit_i_)?ref (\w+)\(", re.M)
HOLDS = re.compile(r"^#define (\w+)\(at, ", re.M)
DRAWS = re.compile(r"\b(?:draw|below)\s*\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
WORDS = ("if", "for", "while", "switch", "return", "sizeof")


def arguments(text, begin):
    """Those of the call whose bracket opens at `begin`."""
    depth, start, found = 0, begin + 1, []
    for at in range(begin, len(text)):
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
            if not depth:
                return found + [text[start:at]]
        elif text[at] == "," and depth == 1:
            found.append(text[start:at])
            start = at + 1
    return found


def open_calls(text, makes):
    """(line, name) of each call with two arguments that make something."""
    for match in re.finditer(r"\b(\w+)\s*\(", text):
        if match[1] in WORDS:
            continue
        if sum(bool(makes.search(each)) for each in arguments(text, match.end() - 1)) > 1:
            yield text.count("\n", 0, match.start()) + 1, match[1]


def read(path):
    """The code of a file, line by line where it stands."""
    with open(path) as file:
        return STRING.sub('""', COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), file.read()))


def main(root):
    tap = Tap()
    texts = {os.path.basename(path): read(path) for path in glob.glob(os.path.join(root, "gradient", "*.[ch]"))}
    holds = set(HOLDS.findall(texts["rule.h"]))
    names = holds.union(*(MAKES.findall(text) for text in texts.values()))
    makes = re.compile(r"\b(?:%s)\s*\(" % "|".join(sorted(names)))
    example = "x = put(at, number(at, 1), add(at, a, number(at, 2)));"
    tap.ok({"add", "op3", "gathered"} <= holds and {"number", "psplit_i_shape_in"} <= names - holds
           and list(open_calls(example, makes)) == [(1, "put")], "calls are seen where they stand", str(sorted(holds)))
    found = ["%s:%d: %s" % (name, line, call) for name, text in texts.items() for line, call in open_calls(text, makes)
             if call not in holds]
    tap.none("no call makes two arguments in an order that is left open", sorted(found))
    drawn = ["%s:%d: %s" % (os.path.relpath(path, root), line, call)
             for path in sorted(glob.glob(os.path.join(root, "tests", "**", "*.[ch]"), recursive=True))
             for line, call in open_calls(read(path), DRAWS)]
    tap.none("no test draws two arguments in an order that is left open", drawn)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
