"""Lines and branches that tests reached, by room, and the files that they reach least: coverage.py FILE,
which llvm-cov export wrote."""
import json
import os
import sys

LEAST_FILES = 15


def room_of(path, root):
    relative = os.path.relpath(path, root)
    return os.path.dirname(relative)


def percent(part):
    covered, count = part
    return 100 * covered / count if count else 100.0


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rooms, files = {}, []
    for entry in json.load(open(sys.argv[1], encoding="utf-8"))["data"][0]["files"]:
        path = entry["filename"]
        if not path.startswith(root + os.sep):
            continue
        path = os.path.realpath(path)
        room = room_of(path, root)
        if room.startswith(("build-", "tests", "include", "..")):
            continue
        found = [(entry["summary"][of]["covered"], entry["summary"][of]["count"]) for of in ("lines", "branches")]
        sums = rooms.setdefault(room, [(0, 0), (0, 0)])
        rooms[room] = [(a + c, b + d) for (a, b), (c, d) in zip(sums, found)]
        files.append((percent(found[0]), percent(found[1]), found[0][1], os.path.relpath(path, root)))
    print("%-24s %8s %7s %10s" % ("room", "lines", "%", "branches %"))
    for room, (lines, branches) in sorted(rooms.items()):
        print("%-24s %8d %7.1f %10.1f" % (room, lines[1], percent(lines), percent(branches)))
    whole = [(sum(r[i][0] for r in rooms.values()), sum(r[i][1] for r in rooms.values())) for i in (0, 1)]
    print("%-24s %8d %7.1f %10.1f" % ("all", whole[0][1], percent(whole[0]), percent(whole[1])))
    print("\nleast of all files, by lines:")
    for lines, branches, n, path in sorted(files)[:LEAST_FILES]:
        print("%6.1f %% of %4d lines, %5.1f %% of branches  %s" % (lines, n, branches, path))


main()
