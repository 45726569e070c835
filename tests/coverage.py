"""Lines and branches that tests reached, by component, and the files that they reach least:

    coverage.py FILE [--floors FLOORS] [--missed COMPONENT|SOURCE]...

FILE is what llvm-cov export wrote. FLOORS has a line `COMPONENT LINES BRANCHES`, in %, for each component that is held:
status 1 where one is below. --missed lists the conditions that were never true, or never false.
"""
import argparse
import json
import os
import sys

LEAST_FILES = 15
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def percent(part):
    covered, count = part
    return 100 * covered / count if count else 100.0


def sources(path):
    """(path from the root, what llvm-cov says of it) of each source of a component."""
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)["data"][0]["files"]
    for entry in entries:
        source = os.path.relpath(os.path.realpath(entry["filename"]), ROOT)
        if not os.path.dirname(source).startswith(("build-", "tests", "include", "..")):
            yield source, entry


def below_floors(path, components):
    """A line for each figure that is below its floor, or that is of a component which is not there."""
    with open(path, encoding="utf-8") as file:
        floors = [line.split() for line in file if line.strip() and not line.startswith("#")]
    found = []
    for component, *wanted in floors:
        if component not in components:
            found.append("%s: no such component" % component)
            continue
        for what, part, least in zip(("lines", "branches"), components[component], wanted):
            if percent(part) < float(least):
                found.append("%s: %.2f %% of %s, at least %s %% are held" % (component, percent(part), what, least))
    return found


def list_missed(source, entry):
    """Conditions of a source that were never true or never false, as its text has them."""
    counts = {}
    found = [(branch[:4], branch) for branch in entry["branches"]]
    found += [(each["source_region"][:4], branch) for each in entry["expansions"] for branch in each["branches"]]
    for place, branch in found: # of macros: where they are used
        taken = counts.setdefault(tuple(place), [0, 0])
        taken[0] += branch[4]
        taken[1] += branch[5]
    with open(os.path.join(ROOT, source), encoding="utf-8") as file:
        text = file.read().split("\n")
    for (line, column, end, end_column), (true, false) in sorted(counts.items()):
        if not true or not false:
            what = text[line - 1][column - 1:end_column - 1 if line == end else None]
            never = "taken" if not true and not false else "false" if true else "true"
            print("%s:%d:%d: never %s: %s" % (source, line, column, never, what))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("file")
    parser.add_argument("--floors")
    parser.add_argument("--missed", action="append", default=[])
    options = parser.parse_args()
    components, files = {}, []
    for source, entry in sources(options.file):
        component = os.path.dirname(source)
        found = [(entry["summary"][of]["covered"], entry["summary"][of]["count"]) for of in ("lines", "branches")]
        sums = components.setdefault(component, [(0, 0), (0, 0)])
        components[component] = [(a + c, b + d) for (a, b), (c, d) in zip(sums, found)]
        files.append((percent(found[0]), percent(found[1]), found[0][1], source))
        if {component, source} & set(options.missed):
            list_missed(source, entry)
    if options.missed:
        return 0
    print("%-24s %8s %7s %10s" % ("component", "lines", "%", "branches %"))
    for component, (lines, branches) in sorted(components.items()):
        print("%-24s %8d %7.1f %10.1f" % (component, lines[1], percent(lines), percent(branches)))
    whole = [(sum(r[i][0] for r in components.values()), sum(r[i][1] for r in components.values())) for i in (0, 1)]
    print("%-24s %8d %7.1f %10.1f" % ("all", whole[0][1], percent(whole[0]), percent(whole[1])))
    print("\nleast of all files, by lines:")
    for lines, branches, n, path in sorted(files)[:LEAST_FILES]:
        print("%6.1f %% of %4d lines, %5.1f %% of branches  %s" % (lines, n, branches, path))
    below = below_floors(options.floors, components) if options.floors else []
    for line in below:
        print(line, file=sys.stderr)
    return 1 if below else 0


sys.exit(main())
