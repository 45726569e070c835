#!/usr/bin/env python3
"""No failure is overlooked: must_use.py SOURCE_ROOT CC...

Every function that a header declares to return psplit_code says PSPLIT_MUST_USE, the compiler
refuses a call whose result goes nowhere, and no result is cast away. What always fails is no branch.
Results as TAP.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

DECLARATION = re.compile(r"^[ \t]*((?:[A-Za-z_]\w*\s+)*)psplit_code\s+(\w+)\s*\(", re.M)
# gcc heeds no such cast, so one is for clang alone, or of a function that may be ignored anyway.
CAST_AWAY = r"\(void\)\s*(%s)\s*\("
# What never succeeds leaves no way on for PSPLIT_TRY, which would look for one.
ALWAYS_FAILS = re.compile(r"PSPLIT_TRY\(\s*psplit_i_(?:fail|fail_about|fail_unknown|nomem)\(")
SKIPPED = re.compile(r"/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.S | re.M)


def code_of(text):
    """`text` without comments and directives, line for line."""
    return SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def declared(text):
    """(name, whether its result must be used, line) of each function that returns psplit_code."""
    text = code_of(text)
    return [(match[2], "PSPLIT_MUST_USE" in match[1].split(), line_of(text, match.start(2)))
            for match in DECLARATION.finditer(text)]


def sources(root, endings):
    for folder, folders, names in os.walk(root):
        # Builds and packages are not the project's own text.
        folders[:] = sorted(each for each in folders if each != "node_modules" and each[0] != "."
                            and not os.path.exists(os.path.join(folder, each, "meson-private")))
        for name in sorted(names):
            if name.endswith(endings):
                path = os.path.join(folder, name)
                with open(path) as file:
                    yield os.path.relpath(path, root), file.read()


def refuses(cc, root, call):
    """Whether the compiler refuses a function with this statement for its unused result."""
    program = ("#include <psplit/model.h>\n"
               "static psplit_code own(int i) { return i ? PSPLIT_IO : PSPLIT_OK; }\n"
               "int main(int n, char **words) {\n"
               "  psplit_model *m;\n  (void)own;\n  %s\n}\n" % call)
    done = subprocess.run([*cc, "-std=c11", "-Werror=unused-result",
                           "-I", os.path.join(root, "include"),
                           "-c", "-o", os.devnull, "-x", "c", "-"],
                          input=program, capture_output=True, text=True)
    return done.returncode != 0 and "unused-result" in done.stderr


def main(root, *cc):
    tap = Tap()
    report = tap.none

    report("what lacks PSPLIT_MUST_USE is seen", [] if declared(
        "/* psplit_code f(int); */\nPSPLIT_API psplit_code\nf(int a);\n"
        "PSPLIT_MUST_USE psplit_code g(\n  int);\ntypedef psplit_code (*h)(int);\n"
        "#define I(x) psplit_code x(int)\nstatic inline psplit_code j(void) {\n}\n")
        == [("f", False, 3), ("g", True, 4), ("j", False, 8)] else ["the search has a hole"])

    names = set()
    lacking = []
    for path, text in sources(root, ".h"):
        for name, must_use, line in declared(text):
            names.add(name)
            if not must_use:
                lacking.append("%s:%d: %s lacks PSPLIT_MUST_USE" % (path, line, name))
    if len(names) < 100:
        lacking.append("only %d functions were found" % len(names))
    report("functions that return psplit_code say that it must be used", lacking)

    cast = re.compile(CAST_AWAY % "|".join(sorted(names)))
    report("no result is cast away",
           ["%s:%d: %s" % (path, line_of(text, match.start()), match[0])
            for path, text in sources(root, (".c", ".h"))
            for match in cast.finditer(code_of(text))])

    sample = "PSPLIT_TRY(f(psplit_i_nomem(d)));\nPSPLIT_TRY(\n  psplit_i_fail(d, 1));"
    report("what always fails goes to PSPLIT_FAIL",
           ["the search has a hole"] * (len(ALWAYS_FAILS.findall(sample)) != 1)
           + ["%s:%d: %s" % (path, line_of(text, match.start()), match[0])
              for path, text in sources(root, (".c", ".h"))
              for match in ALWAYS_FAILS.finditer(code_of(text))])

    call = "psplit_model_open(words[0], 0, 0, &m);"
    clang = subprocess.run([*cc, "-dM", "-E", "-x", "c", os.devnull], capture_output=True,
                           text=True).stdout.find("__clang__") >= 0
    report("the compiler refuses a call whose result goes nowhere",
           ["%s passes" % bad for bad in [call] + ["own(n);"] * clang if not refuses(cc, root, bad)]
           + ["return %s does not pass" % call] * refuses(cc, root, "return " + call))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
