#!/usr/bin/env python3
"""What is known of operators stands in shapes/rules.def: operator_names.py SOURCE_ROOT

A string in another source that is an operator's name is a second list in the making. Where code
means the operator itself, as a node that it makes, splices or reads a value from, the place is
listed here with the reason. Results as TAP.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from must_use import sources  # noqa: E402
from tap import Tap  # noqa: E402

FOLDED = "a Constant node is a weight in other clothes"
INLINED = "the branches of an If are spliced, by exporters' semantics of If alone"
PORT = "a boundary node's function does nothing: it is an Identity, or a CastLike of a tensor to itself"
SAME = "an output of the model that is another value, too, is an Identity of it"
MADE = "a node that ONNX Runtime itself puts into a graph"
PROOF = "the proof shares no table with what it judges"
ALLOWED = {
    ("emit/annotate.c", "Constant"): FOLDED,
    ("emit/name_assignment.c", "Constant"): FOLDED,
    ("onnx/inline.c", "Constant"): FOLDED,
    ("onnx/moved_constants.c", "Constant"): FOLDED,
    ("onnx/tensor.c", "Constant"): FOLDED,
    ("passes/cost/cost_names.c", "Constant"): FOLDED,
    ("shapes/infer_site.c", "Constant"): FOLDED,
    ("verify/inlined.c", "Constant"): FOLDED,
    ("onnx/inline.c", "If"): INLINED,
    ("onnx/inline.c", "Identity"): INLINED,
    ("onnx/inline_hint.c", "If"): INLINED,
    ("passes/planner/heavy_if.c", "If"): INLINED,
    ("verify/inlined.c", "If"): INLINED,
    ("verify/inlined.c", "Identity"): INLINED,
    ("emit/boundary_functions.c", "CastLike"): PORT,
    ("emit/boundary_functions.c", "Identity"): PORT,
    ("runtime/sessions/placement.c", "Identity"): PORT,
    ("verify/compare.c", "CastLike"): PORT,
    ("verify/compare.c", "Identity"): PORT,
    ("tune/probe.c", "Gather"): MADE,
    ("tune/probe.c", "Shape"): MADE,
    ("merge/graph.c", "Identity"): SAME,
    ("verify/coverage.c", "Bernoulli"): PROOF,
    ("verify/coverage.c", "Dropout"): PROOF,
    ("verify/coverage.c", "Multinomial"): PROOF,
    ("verify/mask_expression.c", "Bernoulli"): PROOF,
    ("verify/mask_expression.c", "Constant"): FOLDED,
    ("verify/mask_expression.c", "Dropout"): PROOF,
    ("verify/mask_expression.c", "RandomNormal"): PROOF,
    ("verify/mask_expression.c", "RandomNormalLike"): PROOF,
    ("verify/training_ports.c", "Shape"): PROOF,
    ("verify/training_masks.c", "BatchNormalization"): PROOF,
    ("verify/training_masks.c", "Constant"): FOLDED,
    ("verify/training_masks.c", "Dropout"): PROOF,
}
ROW = re.compile(r'^PSPLIT_(?:NO_)?RULE\("([^"]*)", "(\w+)"', re.M)
# Not asked: what is no part of the library, and what writes graphs of operators by its own table.
OUTSIDE = ("tests", "samples", "gradient")


def names_in(text, operators):
    """(line, name) of string literals that are operators' names; comments do not count."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    code = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    for i, line in enumerate(code.split("\n"), 1):
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            if literal in operators:
                yield i, literal


def main(root):
    with open(os.path.join(root, "shapes", "rules.def"), encoding="utf-8") as file:
        operators = {name for _, name in ROW.findall(file.read())}
    found, met, n_files = [], set(), 0
    for path, text in sources(root, (".c", ".h")):
        if path.split(os.sep)[0] in OUTSIDE:
            continue
        n_files += 1
        for line, name in names_in(text, operators):
            met.add((path, name))
            if (path, name) not in ALLOWED:
                found.append('%s:%d: "%s": make it a flag in shapes/rules.def' % (path, line, name))
    with open(os.path.join(root, "shapes", "words.def"), encoding="utf-8") as file:
        words = set(re.findall(r'^PSPLIT_WORD\("(\w+)"', file.read(), re.M))
    sample = 'static const char *const ops[] = {"Add", "add"}; /* "Mul" */\n'
    checks = [
        ("a name in a string is seen, one in a comment is none",
         [] if list(names_in(sample, {"Add", "Mul"})) == [(1, "Add")] else ["it is not"]),
        ("the table and the sources were found",
         [] if len(operators) > 250 and n_files > 150 else
         ["%d operators, %d files" % (len(operators), n_files)]),
        ("no source but the table lists operators", found),
        ("words are for operators that the table has", sorted(words - operators) if words else ["none"]),
        ("every exception is needed", ["%s: %s" % key for key in sorted(set(ALLOWED) - met)]),
    ]
    tap = Tap()
    for title, bad in checks:
        tap.none(title, bad)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
