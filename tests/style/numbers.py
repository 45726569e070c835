#!/usr/bin/env python3
"""What libraries read and write as numbers does not hang on the program's locale: numbers.py SOURCE_ROOT

A program may write 0,5. So text of a double goes through base/number.h, or through what already does so: messages,
growing texts, JSON. The commands never set a locale. Results as TAP.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

# Programs of our own, which stay in locale C.
PROGRAMS = ("tests", "samples", "tools", "serve")
# Between psplit_i_plain_numbers_begin() and _end(), their own or a caller's.
SET_ASIDE = {"base/number.c", "base/json_read.c", "base/units.c", "onnx/text/parse_value.c", "onnx/text/print_value.c"}
READS = re.compile(r"\b(?:strto(?:d|f|ld)|ato[f]|wcstod)\s*\(")
CALL = re.compile(r"\b(?:v?(?:sn?|f|d|as)?(?:printf|scanf)|strftime|strfmon)\s*\(")
REAL = re.compile(r"%[-+ #0']*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[lL]*[aefgAEFG]")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def arguments(text, at):
    """Of the call whose parenthesis opens before `at`, its end included."""
    depth, quoted = 1, False
    for i in range(at, len(text)):
        c = text[i]
        if c == '"' and text[i - 1] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (c == "(") - (c == ")")
            if not depth:
                return text[at:i]
    return text[at:]


def goes_by_locale(text):
    text = COMMENT.sub("", text)
    if READS.search(text):
        return True
    return any(REAL.search("".join(TEXT.findall(arguments(text, call.end()))))
               for call in CALL.finditer(text))


def main(root):
    tap = Tap()
    met = set()
    for directory, below, names in os.walk(root):
        at = os.path.relpath(directory, root)
        if at in PROGRAMS:
            below[:] = []
            continue
        below[:] = sorted(
            name for name in below if name[0] != "." and name not in ("build", "node_modules")
            and not os.path.exists(os.path.join(directory, name, "build.ninja")))
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                with open(os.path.join(directory, name), errors="replace") as file:
                    if goes_by_locale(file.read()):
                        met.add(os.path.normpath(os.path.join(at, name)))
    tap.none("no number of a library goes by the locale", sorted(met - SET_ASIDE))
    tap.none("what sets it aside is known", sorted(SET_ASIDE - met))
    said = 'snprintf(text, sizeof text, "%s takes " /* ( */\n  "%.3g s", what(")"), s);'
    tap.ok(goes_by_locale(said) and goes_by_locale("x = strtod (text, NULL);")
           and not goes_by_locale('psplit_i_fail(diag, "%g", x); snprintf(t, n, "%d", (f)); /* %g */')
           and not goes_by_locale('snprintf(t, n, "100 %% of %s", name);'), "both are told apart")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
