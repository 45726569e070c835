#!/usr/bin/python3
"""Counts single checks: summary.py TESTLOG.json [NAME=passed|failed...]

A TAP test of meson counts its lines, any other test counts as one check. A reason is printed for
each that was skipped, and what a test says (`# ...`) below a line that failed. The last line is `N passed, M failed, K skipped`; the status is 0 only if
something passed and nothing failed.
"""
import json
import re
import sys

TAP = re.compile(r"(not )?ok\b(?: \d+)?(.*?)(?:(?<!\\)#\s*(SKIP|TODO)\S*\s*(.*))?$", re.I)
PLAN_SKIP = re.compile(r"1\.\.0\s*#\s*SKIP\S*\s*(.*)$", re.I)


def subtests(test):
    """(outcome, title, reason) of each check of one meson test."""
    found = []
    for line in (test.get("stdout") or "").splitlines():
        plan, result = PLAN_SKIP.match(line), TAP.match(line)
        if plan:
            found.append(("skipped", "", plan[1]))
        elif result:
            title = re.sub(r"^\s*-\s+", "", result[2]).strip()
            if (result[3] or "").upper() == "SKIP":
                found.append(("skipped", title, result[4]))
            else:
                todo = (result[3] or "").upper() == "TODO"
                found.append(("failed" if result[1] and not todo else "passed", title, ""))
        elif line.startswith("# ") and found and found[-1][0] == "failed":
            outcome, title, reason = found[-1]
            found[-1] = (outcome, title, "%s%s%s" % (reason, "; " if reason else "", line[2:]))
    outcomes = [outcome for outcome, _, _ in found]
    bad = test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
    # A crash, a timeout or a broken plan fails the test without a line of its own.
    if bad and "failed" not in outcomes:
        found.append(("failed", "", "meson says %s" % test["result"]))
    if not found:
        skip = test["result"] == "SKIP"
        found.append(("skipped", "", "no reason given") if skip else ("passed", "", ""))
    return found


def main(argv):
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name, outcome in (each.rsplit("=", 1) for each in argv[2:]):
        count[outcome] += 1
        if outcome == "failed":
            print("failed: %s" % name)
    with open(argv[1]) as log:
        for test in map(json.loads, log):
            for outcome, title, reason in subtests(test):
                count[outcome] += 1
                if outcome != "passed":
                    parts = [part for part in (test["name"], title, reason) if part]
                    print("%s: %s" % (outcome, ": ".join(parts)))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
    sys.exit(count["failed"] > 0 or count["passed"] == 0)


if __name__ == "__main__":
    main(sys.argv)
