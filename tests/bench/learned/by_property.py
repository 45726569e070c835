#!/usr/bin/env python3
"""What bench_learned printed, over properties of the problems: by_property.py [FILE]; standard input by default.

Geometric means of values over the bound and, in brackets, over the best value that any way found: where no optimum is
proved, the first says as much of the bound as of the split."""
import math
import re
import sys

WAYS = ["auto", "search", "anneal", "even", "pipedream", "islands", "copies", "slice", "rand+slice", "untrained", "greedy", "best",
        "best+slice", "greedy+slice", "start+search"]
SPLITS = [w for w in WAYS if w != "copies"]  # copies are no split
SHOWN = ["slice", "rand+slice", "greedy", "best", "best+slice"]


def rows(lines):
    section = ""
    for line in lines:
        if line.startswith("== "):
            section = line[3:].split(":")[0].strip()
        head = re.match(r"(.{46}) +(\d+) +(\d+) +(\d+)([* ])", line)
        if not head:
            continue
        rest, values = line[head.end():], {}
        for k, way in enumerate(WAYS):
            words = rest[15 * k:15 * k + 15].split()
            if len(words) == 2 and words[0] != "-":
                values[way] = float(words[0])
        yield section, head.group(1).strip(), int(head.group(2)), int(head.group(3)), head.group(5) == "*", values


def properties(section, name, nodes, stages, proved):
    yield "list", section
    yield "stages", "%2d" % stages
    yield "nodes", next(("up to %5d" % most for most in (100, 400, 1000, 2500) if nodes <= most), "more")
    yield "optimum", "proved" if proved else "open"
    made = re.match(r"(.*?)-\d+-\d+-k\d+-(\d)([ag]?)-c([\d.]+)(.*)", name)
    if not made:
        return
    yield "family", made.group(1)
    yield "kinds of devices", made.group(2)
    yield "tensors cost", "x %g" % float(made.group(4))
    yield "memory", "binds" if "-memory" in made.group(5) else "does not bind"


def mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else float("nan")


def main():
    groups = {}
    for section, name, nodes, stages, proved, values in rows(open(sys.argv[1], encoding="utf-8") if sys.argv[1:] else sys.stdin):
        best = min(values[w] for w in SPLITS if w in values)
        for key in properties(section, name, nodes, stages, proved):
            groups.setdefault(key, []).append((values, best))
    print("%-44s %4s  %s" % ("property", "n", "  ".join("%15s" % w for w in SHOWN)))
    for (what, which), members in sorted(groups.items()):
        cells = []
        for way in SHOWN:
            have = [(v[way], best) for v, best in members if way in v]
            cells.append("%6.3f (%6.4f)" % (mean([v for v, _ in have]), mean([v / best for v, best in have])))
        print("%-44s %4d  %s" % (what + ": " + which, len(members), "  ".join("%15s" % c for c in cells)))


main()
