#!/usr/bin/env python3
"""Symbols files of the Debian packages name what the libraries show: symbols.py DEBIAN LIBRARY... [--bless]

dpkg-gensymbols refuses a package that shows other symbols, which building packages tells alone. --bless
adds and removes lines of DEBIAN/*.symbols. TAP; skipped without nm.
"""
import os
import re
import shutil
import subprocess
import sys


def shown(library):
    """NAME@VERSION of what the library defines for others, the versions themselves too."""
    done = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                          capture_output=True, text=True, check=True)
    names = {line.split()[2].replace("@@", "@") for line in done.stdout.splitlines()}
    return {f"{name}@{name}" if kind == "A" else name if "@" in name else name + "@Base"
            for name, kind in ((name, kind_of(done.stdout, name)) for name in names)}


def kind_of(listing, name):
    """The letter of nm: A for a version's own name."""
    return re.search(r" (\w) " + re.escape(name).replace("@", "@+") + "$", listing, re.M)[1]


def main(argv):
    bless = "--bless" in argv
    debian, *libraries = [argument for argument in argv[1:] if argument != "--bless"]
    if not shutil.which("nm"):
        print("1..0 # SKIP there is no nm")
        return
    for n, library in enumerate(libraries, 1):
        name = re.sub(r"\.so.*", "", os.path.basename(library))
        path = os.path.join(debian, name + "0.symbols")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        head = [line for line in lines if not line.startswith(" ")]
        listed = dict(line.split() for line in lines if line.startswith(" "))
        now = shown(library)
        if bless:
            version = next(iter(listed.values()))
            with open(path, "w", encoding="utf-8") as file:
                lines = head + [f" {each} {listed.get(each, version)}" for each in sorted(now)]
                file.write("\n".join(lines) + "\n")
            listed = dict.fromkeys(now)
        good = now == set(listed)
        print(f"{'ok' if good else 'not ok'} {n} - {os.path.basename(path)} names what {name} shows")
        for sign, names in (("+", now - set(listed)), ("-", set(listed) - now)):
            for each in sorted(names):
                print(f"# {sign} {each}")
    print(f"1..{len(libraries)}")


if __name__ == "__main__":
    main(sys.argv)
