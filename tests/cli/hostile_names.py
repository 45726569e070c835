#!/usr/bin/env python3
"""Names that quote, end lines, colour terminals or turn text round, through all that is printed and written:
hostile_names.py TOOL...

What is JSON parses, and says the names as the model has them; nothing that is printed or written as text has a control or
bidirectional character. Commands that run stages are asked where there is an ONNX Runtime. TAP.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from bad_input import Tap, model
from durable import ONNXRUNTIME

# One for each placeholder, of as many bytes, so that the file around it stays what it is.
ODD = 'q"\\\x1b\n\x7f\u202e\u2066</x>'
PLACES = ["input_of_16_byte", "middle_of_16_byt", "output_of_16_byt", "node_a_of_16_byt", "node_b_of_16_byt", "weight_of_16_byt",
          "symbol_of_16_byt"]
HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def odd(place):
    """Each its own: the letter in front tells them apart."""
    return chr(ord("A") + PLACES.index(place)) + ODD[1:]


def hostile_model():
    data = model("(float[symbol_of_16_byt,8] input_of_16_byte) => (float[symbol_of_16_byt,8] output_of_16_byt) "
                 "<float[8,8] weight_of_16_byt = random(1)> {\n"
                 "[node_a_of_16_byt] middle_of_16_byt = MatMul (input_of_16_byte, weight_of_16_byt)\n"
                 "[node_b_of_16_byt] output_of_16_byt = Tanh (middle_of_16_byt) }")
    for place in PLACES:
        data = data.replace(place.encode(), odd(place).encode())
    return data


def array(rows, columns):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)).ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(4 * rows * columns)


class Bed:
    def __init__(self, tools):
        self.tap = Tap()
        self.tools = {os.path.basename(tool)[len("onnx-pipeline-"):]: tool for tool in tools}
        self.cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-names-"))
        found = glob.glob(ONNXRUNTIME)
        self.env = {**os.environ, **({"PSPLIT_ONNXRUNTIME": found[0]} if found else {})}
        self.runs = bool(found)

    def put(self, name, data):
        with open(os.path.join(self.cwd, name), "wb") as file:
            file.write(data)

    def text(self, name):
        with open(os.path.join(self.cwd, name), "rb") as file:
            return file.read().decode()

    def clean(self, title, text):
        found = HOSTILE.search(text)
        self.tap.ok(not found, title, found and "%r in %r" % (found[0], text[max(0, found.start() - 60):found.end() + 20]))

    def parses(self, title, text, names):
        try:
            root = json.loads(text)
        except ValueError as error:
            return self.tap.ok(False, title, "%s\n%r" % (error, text[:400]))
        said = json.dumps(root, ensure_ascii=False)
        missing = [name for name in names if json.dumps(odd(name), ensure_ascii=False)[1:-1] not in said]
        return self.tap.ok(not missing, title, "not said: %s\n%.600s" % (missing, text))

    def run(self, title, tool, *args, status=0, names=None, writes=()):
        """names: of what is printed as JSON; of each file of `writes`, [FILE, names] is JSON, too."""
        done = subprocess.run([self.tools[tool], *args], cwd=self.cwd, env=self.env, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL)
        out, err = done.stdout.decode(), done.stderr.decode()
        self.tap.ok(done.returncode == status, title, "status %d\n%s" % (done.returncode, err))
        self.clean(title + ": printed", out)
        self.clean(title + ": said", err)
        if names is not None:
            self.parses(title + ": JSON", out, names)
        for name, of in writes:
            self.clean("%s: %s" % (title, name), self.text(name))
            if of is not None:
                self.parses("%s: %s is JSON" % (title, name), self.text(name), of)
        return out, err


def plans(bed):
    io, values = ["input_of_16_byte", "output_of_16_byt"], ["input_of_16_byte", "middle_of_16_byt", "output_of_16_byt"]
    sized = ("--dim", odd("symbol_of_16_byt") + "=2")
    bed.run("split", "split", "m.onnx", "-k", "2", "-o", "stages", "--depfile", "rule", "--certificate", "proof", *sized,
            writes=[("stages/pipeline.json", values), ("rule", None), ("proof", None), ("proof.problem.json", [])])
    bed.run("split --json", "split", "m.onnx", "-k", "2", "--plan-only", "--json", names=values)
    bed.run("split --json -k 1..4", "split", "m.onnx", "-k", "1..4", "--plan-only", "--json", names=[])
    bed.run("split, verbose", "split", "m.onnx", "-k", "2", "--plan-only", "-v", *sized)
    _, err = bed.run("a pin that cannot be", "split", "m.onnx", "-k", "2", "--plan-only", "--json", "--pin",
                     "D*=1", "--pin", "E*=0", status=7)
    bed.tap.ok(err.count("\n") <= 2, "a pin that cannot be: in a line", err)
    bed.run("a pin by a name that is a pattern, too", "split", "m.onnx", "-k", "2", "--plan-only", "--pin",
            odd("node_a_of_16_byt") + "=1", status=7)  # it is a name first, of a node that nothing is before
    out, _ = bed.run("rows that do not fit", "split", "m.onnx", "-k", "2..3", "--plan-only", "--json",
                     "--max-bytes-per-stage", "100", names=[], status=7)
    bed.tap.ok("infeasible" in out, "rows that do not fit: with their reasons", out)
    bed.run("an unknown dimension", "split", "m.onnx", "-k", "2", "--plan-only", "--dim", ODD + "=3", status=2)
    for form in ("json", "dot", "html", "svg", "text", "problem"):
        bed.run("inspect --format " + form, "inspect", "m.onnx", "-k", "2", "--format", form,
                names=[] if form in ("json", "problem") else None)
    bed.run("inspect --format onnxtxt", "inspect", "m.onnx", "--format", "onnxtxt")
    bed.run("a problem", "inspect", "m.onnx", "-k", "2", "--format", "problem", "-o", "p.json", writes=[("p.json", [])])
    problem = json.loads(bed.text("p.json"))
    for device in problem["devices"]:
        device["name"] = ODD
    bed.put("q.json", json.dumps(problem).encode())
    for file in ("p.json", "q.json"):
        bed.run("plan --json " + file, "plan", file, "--json", names=[])
        bed.run("plan " + file, "plan", file)
    bed.run("verify", "verify", "stages", "-m", "m.onnx")
    bed.run("merge", "merge", "stages", "-o", "again.onnx")
    bed.run("learn", "learn", "q.json", "p.json", "-o", "policy.onnx", "--log", "log.json", "--steps", "1", "--warm-steps", "1",
            writes=[("log.json", None)])
    return io, values, sized


def runs(bed, io, values, sized):
    bed.run("run --json", "run", "stages", "--random", *sized, "--json", "--trace", "trace.json", "-o", "outputs",
            names=[], writes=[("trace.json", []), ("outputs/outputs.json", ["output_of_16_byt"])])
    bed.run("run", "run", "stages", "--random", *sized)
    bed.run("run, sizes missing", "run", "stages", "--random", "--json", status=2)
    bed.run("run --json, another type", "run", "stages", "--json", "--input", odd("input_of_16_byte") + "=p.json", *sized, status=4)
    bed.run("--profile", "run", "--profile", "costs.json", "m.onnx", *sized, "-m", "2", writes=[("costs.json", ["node_a_of_16_byt"])])
    bed.run("generate", "generate", "stages", "--prompt-ids", "1", "--json", status=5)
    made = ("-k", "1", "-q", "--training", "--loss", "mse:target=" + ODD, "--trained-weights", "input", *sized)
    bed.run("split --training", "split", "m.onnx", "-o", "trains", *made, writes=[("trains/pipeline.json", io + ["weight_of_16_byt"])])
    bed.put("x.npy", array(4, 8))
    data = ("--data", odd("input_of_16_byte") + "=x.npy")
    bed.run("train --json", "train", "trains", *data, "--data", ODD + "=x.npy", "-m", "2", "--json", "--trace", "trace.json",
            "--checkpoint", "kept", names=[], writes=[("trace.json", []), ("kept/training.json", ["weight_of_16_byt"])])
    bed.run("train, without a target", "train", "trains", *data, status=2)
    bed.run("train, with another input", "train", "trains", *data, "--data", ODD[::-1] + "=x.npy", status=2)


def main(argv):
    bed = Bed([os.path.abspath(tool) for tool in argv[1:]])
    try:
        bed.put("m.onnx", hostile_model())
        of = plans(bed)
        if bed.runs and "run" in bed.tools:
            runs(bed, *of)
    finally:
        shutil.rmtree(bed.cwd, ignore_errors=True)
    print("1..%d" % bed.tap.count)
    return bed.tap.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
