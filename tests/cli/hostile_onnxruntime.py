#!/usr/bin/env python3
"""Libraries that are not ONNX Runtime: hostile_onnxruntime.py SERVE NOT OLD HOSTILE RUN VERIFY SPLIT LEARN GENERATE TRAIN

NOT and OLD: ../runtime/not_onnxruntime.c; HOSTILE: its neighbour
hostile_onnxruntime.c. Each command that opens one ends with an error and one line, and leaves nothing.
TAP.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from bad_input import FILE, MALFORMED, UNSUPPORTED, Tap, chain, listing, model

NO_MESSAGE = "an error without a message"  # of ONNX Runtime, as any other
LINE = "an error that ends a line"
HOW = ("no base", "no functions", "no version", "no API", "turning version", "no entries", "one entry too few",
       NO_MESSAGE, LINE, "success with nothing")
GENERATOR = ("g (int64[1,s] input_ids) => (float[1,s,8] logits) <float[8,4] e = random(1), float[4,8] w = random(2)> "
             "{ a = Gather (e, input_ids) logits = MatMul (a, w) }")


def prepare(split):
    for name, data in (("m.onnx", chain(4)), ("g.onnx", model(GENERATOR))):
        with open(name, "wb") as file:
            file.write(data)
    for args in (("m.onnx", "-o", "out"), ("g.onnx", "-o", "words"),
                 ("m.onnx", "-o", "trained", "--training", "--trained-weights", "input", "--loss", "mse:prediction=y,target=t")):
        subprocess.run([split, *args, "-q", "-k", "2"], check=True)
    with open("text", "w") as file:
        file.write("no library\n")
    with open("devices", "w") as file:
        json.dump({"devices": [{"name": name, "preset": "cpu", "session": {"provider": "CPU"}} for name in "ab"]}, file)


def commands(serve, run, verify, split, learn, generate, train):
    return (("run", (run, "out", "--random")),
            ("run --profile", (run, "--profile", "costs", "m.onnx", "--random")),
            ("verify --run", (verify, "out", "--model", "m.onnx", "--run")),
            ("split --autotune", (split, "m.onnx", "-k", "2", "-o", "new", "--autotune", "1")),
            ("split --probe", (split, "m.onnx", "-k", "2", "-o", "new", "--probe", "CPU", "--devices", "devices")),
            ("learn", (learn, "m.onnx", "-k", "2", "-o", "policy", "--reward", "measured")),
            ("generate", (generate, "words", "--prompt-ids", "1")),
            ("train", (train, "trained", "--data", "x=x.npy")),
            ("serve", (serve, "out", "--listen", "127.0.0.1:0")))


def judge(tap, title, command, library, how=""):
    before = listing(".")
    try:
        done = subprocess.run([*command, "--onnxruntime", library], capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, env={**os.environ, "HOSTILE": how})
    except subprocess.TimeoutExpired:
        tap.ok(False, title, "it does not end")
        return
    said = done.stderr.decode(errors="replace")
    statuses = (FILE, UNSUPPORTED) if how not in (NO_MESSAGE, LINE) else (MALFORMED,)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    left = set(listing(".")) ^ set(before)
    if how == LINE:
        errors = [line for line in errors if line.endswith(": cannot do that")]
    raw = [c for c in said if c != "\n" and (c < " " or c == "\u202e")]
    tap.ok(done.returncode in statuses and len(errors) == 1 and "(null)" not in said
           and not left and not raw and os.path.basename(library) in said, title,
           "status %d\n%r %s" % (done.returncode, said, left or ""))


def main(argv):
    if len(argv) != 11:
        sys.exit("usage: hostile_onnxruntime.py SERVE NOT OLD HOSTILE RUN VERIFY SPLIT LEARN GENERATE TRAIN")
    serve, wrong, old, hostile, *tools = map(os.path.abspath, argv[1:])
    tap, home = Tap(), tempfile.mkdtemp(prefix="psplit-hostile-")
    try:
        os.chdir(home)
        prepare(tools[2])
        for name, command in commands(serve, *tools):
            judge(tap, name + ": text", command, "./text")
            judge(tap, name + ": another library", command, wrong)
            judge(tap, name + ": an old library", command, old)
            for how in HOW:
                judge(tap, "%s: %s" % (name, how), command, hostile, how)
    finally:
        os.chdir("/")
        shutil.rmtree(home, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
