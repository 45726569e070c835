#!/usr/bin/env python3
"""What goes with what is decided in one table, which docs/partitioning/features.md shows:
capabilities.py SOURCE_ROOT [--print]. Results as TAP.

With --print: the rows as the document should have them.
"""
import os
import re
import sys

FILE = "partition/methods/capabilities.def"
TITLES = "partition/methods/methods.def"

# Fields that say whether a problem has a feature. Who reads one decides by itself, or has to.
FIELDS = r"\b(next_hop|max_replicas|n_link_classes|replicated|message_ns)\b"
LOADS = "what a split costs"
INPUT = "what a problem may be"
ANOTHER = "another problem is made, without it"
EFFORT = "how long a step takes"
READERS = {
    "partition/contiguous/baselines.c": INPUT, "partition/check/check.c": LOADS, "partition/check/check_transfers.c": LOADS, "partition/contiguous/feasible.c": ANOTHER, "partition/placing/placing.c": EFFORT, "partition/placing/placing_start.c": ANOTHER,
    "partition/solve.c": INPUT, "partition/instance/assignment.c": LOADS,
    "partition/instance/automaton.c": LOADS, "partition/instance/automaton.h": LOADS,
    "partition/instance/device_merge.c": INPUT, "partition/instance/instance.c": LOADS,
    "partition/instance/pair_links.c": LOADS, "partition/instance/placement.c": LOADS, "partition/instance/problem.c": INPUT,
    "partition/instance/reductions.c": LOADS, "partition/instance/relay.c": LOADS,
    "partition/methods/capabilities.c": "the table itself", "partition/search/label_annealing.c": EFFORT,
    "partition/search/order_dp.c": LOADS, "partition/instance/instance.h": LOADS,
    "partition/instance/load_tracker.c": LOADS, "partition/io/read_own.c": INPUT,
    "partition/search/contraction.c": LOADS, "partition/search/link_guess.c": LOADS,
    "partition/search/local_search.c": LOADS, "partition/exact/exact.c": LOADS,
    "partition/exact/receiver_groups.c": LOADS, "partition/exact/latency_block_options.c": LOADS,
    "partition/instance/messages.c": LOADS, "partition/instance/messages.h": LOADS, "partition/contiguous/contiguous.c": ANOTHER,
    "partition/certificate/digest.c": INPUT, "partition/certificate/certificate.c": ANOTHER, "partition/certificate/least_links.c": ANOTHER,
    "partition/certificate/routes.c": LOADS, "partition/certificate/routes.h": LOADS,
    "partition/copying.c": LOADS, "partition/copying.h": LOADS, "partition/copying_value.c": LOADS,
    "partition/certificate/node_proof.c": INPUT, "partition/io/write_own.c": INPUT,
}


def decisions(root):
    """(file, line) of code that reads such a field."""
    for folder, _, files in sorted(os.walk(os.path.join(root, "partition"))):
        for name in sorted(files):
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.relpath(os.path.join(folder, name), root)
            text = open(os.path.join(folder, name), encoding="utf-8").read()
            code = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", lambda m: re.sub(r"[^\n]", " ", m[0]),
                          text, flags=re.S)
            for match in re.finditer(FIELDS, code):
                yield path, code.count("\n", 0, match.start()) + 1


def read_code(root):
    """features, [(title, cells)] of the .def files."""
    names = {}
    text = open(os.path.join(root, TITLES), encoding="utf-8").read()
    for kind, name, title in re.findall(r'^PSPLIT_I_(BOUND|SOLVER)\((\w+), "([^"]+)"', text, re.M):
        names["%s_%s" % (kind, name)] = title
    for name, what in re.findall(r"^PSPLIT_I_RULE\((\w+)\) +/\* (.*) \*/", text, re.M):
        names["RULE_" + name] = what
    text = open(os.path.join(root, FILE), encoding="utf-8").read()
    features = re.findall(r'^PSPLIT_I_FEATURE\(\w+, "([^"]+)"\)', text, re.M)
    rows = [(names[name], cells.split())
            for name, cells in re.findall(r'^PSPLIT_I_TAKES\((\w+), +"([^"]+)"\)', text, re.M)]
    return features, rows


def written(features, rows):
    """The lines of the document."""
    return (["| | " + " | ".join(features) + " |", "|---|" + "---|" * len(features)] +
            ["| %s | %s |" % (title, " | ".join(cells)) for title, cells in rows])


def main(root, how=None):
    features, rows = read_code(root)
    lines = written(features, rows)
    if how == "--print":
        print("\n".join(lines))
        return
    bad = ["%s has %d cells, there are %d features" % (title, len(cells), len(features))
           for title, cells in rows if len(cells) != len(features)]
    bad += ["%s: what is %r?" % (title, c) for title, cells in rows for c in cells if c not in "+-."]
    text = open(os.path.join(root, "docs/partitioning/features.md"), encoding="utf-8").read()
    missing = [] if "\n".join(lines) in text else lines
    readers = list(decisions(root))
    alone = ["%s:%d" % place for place in readers if place[0] not in READERS]
    alone += ["%s reads none" % path for path in READERS if path not in {p for p, _ in readers}]
    print("1..3")
    for n, (title, found) in enumerate((("every row of the table has a cell for every feature", bad),
                                        ("docs/partitioning/features.md has the table", missing),
                                        ("nothing else decides by what a problem has", alone)), 1):
        for line in found:
            print("# " + line)
        print("%sok %d - %s" % ("not " if found else "", n, title))


main(*sys.argv[1:])
