#!/usr/bin/env python3
"""--limits of onnx-pipeline-split: limits.py SPLIT

What is printed agrees with itself and with the report of training, and what cannot be is refused.
TAP; the numbers themselves are held by tests/schedule.
"""
import os
import re
import subprocess
import sys
import tempfile

from bad_input import OK, USAGE, Tap, chain, model, write

LINEAR = """(float[4,8] x, int64[4] y) => (float[4,16] logits)
  <float[8,8] w1 = random(1), float[8,16] w2 = random(2)> {
    a = MatMul (x, w1)
    b = Relu (a)
    logits = MatMul (b, w2)
  }"""
NUMBER = r"([0-9.e+-]+)"


def main(split):
    tap = Tap()

    def run(*args):
        return subprocess.run([split, *args, "--plan-only"], capture_output=True, text=True,
                              timeout=60)

    def numbers(text, pattern):
        found = re.search(pattern, text)
        return [float(n) for n in found.groups()] if found else None

    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        write(".", "chain.onnx", chain(12))
        made = run("chain.onnx", "-k", "3", "--limits", "16")
        step = numbers(made.stdout, f"less than {NUMBER} s .*; a stream takes {NUMBER} s")
        gain = numbers(made.stdout, f"at most {NUMBER}x of 3, {NUMBER}x for any number")
        tap.ok(made.returncode == OK and step and 0 < step[0] <= step[1],
               "a stream of inferences takes no less than its limit", made.stdout + made.stderr)
        tap.ok(gain and 1 <= gain[0] <= gain[1] <= 3, "speed-ups are at most the stages", made.stdout)

        write(".", "linear.onnx", model(LINEAR))
        training = ["linear.onnx", "-k", "2", "--training", "--loss",
                    "softmax-cross-entropy:logits=logits,labels=y"]
        made = run(*training, "--limits", "8,loss=nonsmooth,dim=auto,accuracy=0.001")
        tap.ok(made.returncode == OK and "; 1F1B takes" in made.stdout
               and "nonsmooth loss of 192 weights" in made.stdout,
               "a step of training, in as many weights as are trained", made.stdout + made.stderr)

        for args, says in (
                (["chain.onnx", "-k", "2", "--limits", "0"], "--limits"),
                (["chain.onnx", "-k", "2", "--limits", "8,loss=flat,dim=2"], "nonsmooth"),
                (["chain.onnx", "-k", "2", "--limits", "8,loss=smooth,dim=auto"], "--training"),
                (["chain.onnx", "-k", "2", "--limits", "8", "--json"], "without --json"),
                (["chain.onnx", "-k", "2..3", "--limits", "8"], "one number of stages")):
            made = run(*args)
            tap.ok(made.returncode == USAGE and says in made.stderr and not made.stdout,
                   " ".join(args[3:]) + " is refused", made.stderr)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
