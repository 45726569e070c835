#!/usr/bin/env python3
"""Bars of stages on a terminal, and all crossing tensors on request: chart.py SPLIT

Standard output is a pseudo-terminal or a pipe; a pipe gets bars from `--color always` alone. The
model is a made-up one with many tensors between two halves. TAP.
"""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile

from bad_input import OK, USAGE, Tap, model

WIDE = 20


LOOKS = ("TERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG")  # what bars depend on


def on_terminal(args, **env):
    """Standard output as a terminal shows it; of LOOKS what is given alone."""
    main, other = pty.openpty()
    others = {name: value for name, value in os.environ.items() if name not in LOOKS}
    made = subprocess.Popen(args, stdout=other, stderr=subprocess.DEVNULL, env=others | env)
    os.close(other)
    text = b""
    while True:
        try:
            more = os.read(main, 4096)
        except OSError:  # the other end is closed: Linux
            break
        if not more:
            break
        text += more
    os.close(main)
    made.wait(60)
    return text.decode(errors="replace").replace("\r\n", "\n")


def piped(tap, name, status, args):
    made = subprocess.run(args, capture_output=True, text=True, timeout=60)
    tap.ok(made.returncode == status, name, "%d %s" % (made.returncode, made.stderr))
    return made


def bars(text):
    return [line for line in text.splitlines() if re.match(r" +\d  cpu\d (\033|[<#>]{4}|\u2588)", line)]


def main(argv):
    tap, split = Tap(), os.path.abspath(argv[1])
    os.chdir(tempfile.mkdtemp())
    with open("m.onnx", "wb") as file:
        file.write(wide())
    links = [{"from": a, "to": b, "bytes_per_second": 1e9} for a, b in ("ab", "bc")]
    with open("row.json", "w", encoding="utf-8") as file:
        json.dump({"devices": [{"name": name, "preset": "cpu"} for name in "abc"],
                   "topology": {"same_host": {"bytes_per_second": 0}}, "links": links}, file)
    plain = [split, "m.onnx", "-k", "2", "--plan-only", "--pin", "a*=0", "--pin", "y*=1"]
    table = piped(tap, "a pipe", OK, plain).stdout
    tap.ok(not bars(table) and "\033" not in table, "a pipe gets no bars", table)
    tap.ok("... and %d more; --all-transfers lists them" % (WIDE - 12) in table, "twelve tensors are listed", table)
    full = piped(tap, "all of them", OK, plain + ["--all-transfers"]).stdout
    tap.ok(len(re.findall(r"0 -> 1 ", full)) == WIDE and "more;" not in full, "all tensors are, when asked for", full)
    passed = piped(tap, "in a row", OK, [split, "m.onnx", "--devices", "row.json", "--plan-only", "--pin", "a*=0",
                                         "--pin", "y0=1", "--pin", "y[1-9]*=2", "--all-transfers"]).stdout
    told = [line.split() for line in passed.splitlines() if " -> " in line]
    tap.ok(sorted(line[-3] for line in told if line[-1] == "on)") == sorted("b%d" % i for i in range(1, WIDE))
           and all(line[0] == "1" for line in told if line[-1] == "on)"), "what a stage passes on is told", passed)
    always = piped(tap, "always", OK, plain + ["--color", "always"]).stdout
    tap.ok(len(bars(always)) == 2 and "\033[" in always, "--color always: bars and colours in a pipe", always)
    never = piped(tap, "never", OK, plain + ["--color", "never"]).stdout
    tap.ok(not bars(never), "--color never: none", never)
    piped(tap, "--color sometimes", USAGE, plain + ["--color", "sometimes"])
    shown = on_terminal(plain, TERM="xterm", LC_ALL="C.UTF-8")
    tap.ok(len(bars(shown)) == 2 and "\u2588" in shown and "\033[" in shown, "a terminal: blocks in colours", shown)
    tap.ok("lower bound" in "".join(shown.split("crossing")[0]), "and the lower bound", shown)
    for name, env in (("NO_COLOR", {"TERM": "xterm", "NO_COLOR": "1"}), ("a dumb one", {"TERM": "dumb"}), ("none that is named", {})):
        text = on_terminal(plain, LC_ALL="C", **env)
        tap.ok(len(bars(text)) == 2 and "#" in text and "\033" not in text, "a terminal, %s: bars in letters" % name, text)
    next_steps(tap, split)
    quiet = on_terminal(plain + ["-q"], TERM="xterm")
    tap.ok(quiet == "", "-q: nothing", quiet)
    sys.exit(tap.end())


def next_steps(tap, split):
    """What a terminal is told to do next can be copied; a pipe is not told."""
    os.rename("m.onnx", "it's m.onnx")
    args = [split, "it's m.onnx", "-k", "2", "-o", "a b", "--force"]
    text = on_terminal(args, TERM="xterm")
    commands = text.split("\nnext:\n")[-1].splitlines()
    verify = next((line.strip() for line in commands if "verify" in line), "false")
    done = subprocess.run(["sh", "-c", verify], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"PATH": os.path.dirname(split) + ":" + os.environ["PATH"]})
    tap.ok(done.returncode == OK and "a b is equivalent to it's m.onnx" in done.stdout, "a terminal: the next command runs as it stands",
           text + done.stderr)
    if os.path.exists(os.path.join(os.path.dirname(split), "onnx-pipeline-run")):
        tap.ok(commands[-1] == "  onnx-pipeline-run 'a b' --random --micro-batches 100", "and how to run the stages", text)
    for name, more in (("a pipe", None), ("without DIR", ["--plan-only"]), ("as JSON", ["--json"])):
        said = piped(tap, name, OK, args).stdout if more is None else on_terminal(args + more, TERM="xterm")
        tap.ok("next:" not in said, "%s: no next command" % name, said)
    os.rename("it's m.onnx", "m.onnx")


def wide():
    """Chains side by side, which each cut goes through."""
    lines = []
    for i in range(WIDE):
        lines += ["[a%d] b%d = MatMul (x, w)" % (i, i), "[y%d] y%d = MatMul (b%d, w)" % (i, i, i)]
    outputs = ", ".join("float[256,256] y%d" % i for i in range(WIDE))
    return model("g (float[256,256] x) => (%s) <float[256,256] w = random(1)> {\n%s\n}" % (outputs, "\n".join(lines)))


if __name__ == "__main__":
    main(sys.argv)
