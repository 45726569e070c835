#!/usr/bin/env python3
"""What wrong usage says, to the letter: wrong_usage.py TABLE DIRECTORY... [--bless]

TABLE (wrong_usage.txt) has a command and below it the exit status and the one line on standard
error; DIRECTORY is where commands are. Nothing may be written and nothing be left behind. With
--bless the table gets what is said now; the diff is the thing to read. TAP.
"""
import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

from bad_input import Tap, chain, listing, model, write


def make_files(cwd, split):
    """What the commands of the table name."""
    good = chain(6)
    write(cwd, "m.onnx", good)
    write(cwd, "half.onnx", good[:len(good) // 2])
    write(cwd, "empty.onnx", b"")
    write(cwd, "words.onnx", b"These are words.\n" * 40)
    write(cwd, "json.onnx", b'{"a": 1}\n')
    write(cwd, "page.onnx", b"<!DOCTYPE html>\n<html><body>404</body></html>\n")
    write(cwd, "lfs.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    write(cwd, "m.onnx.gz", gzip.compress(good, mtime=0))
    write(cwd, "text.onnx", b'<ir_version: 8, opset_import: ["": 17]>\ng (float[2] x) => (float[2] y) { y = Relu(x) }\n')
    write(cwd, "m.tflite", b"\x20\0\0\0TFL3" + bytes(500))
    write(cwd, "m.safetensors", b"\x14\0\0\0\0\0\0\0" + b'{"__metadata__": {}}' + bytes(100))
    write(cwd, "m.gguf", b"GGUF" + bytes(500))
    write(cwd, "old.pt", b"\x80\2}q\0(X" + bytes(100))
    write(cwd, "m.h5", b"\x89HDF\r\n\x1a\n" + bytes(100))
    write(cwd, "m.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(500))
    for name, entry in (("m.pt", "archive/data.pkl"), ("m.zip", "m.onnx"), ("m.npz", "x.npy")):
        with zipfile.ZipFile(os.path.join(cwd, name), "w") as archive:
            archive.writestr(zipfile.ZipInfo(entry), good)
    write(cwd, "preset.json", b'{"devices": [{"name": "a", "preset": "nvidia-t44"}]}')
    write(cwd, "key.json", b'{"devices": [{"name": "a", "preset": "cpu", "ovrhead_ns": 5}]}')
    write(cwd, "top.json", b'{"device": []}')
    write(cwd, "not.json", b"devices: cpu\n")
    write(cwd, "one.json", b'{"devices": [{"name": "a", "preset": "cpu"}]}')
    write(cwd, "small.json", b'{"devices": [{"name": "a", "preset": "cpu", "memory_bytes": 9}, '
                             b'{"name": "b", "preset": "cpu", "memory_bytes": 9}]}')
    write(cwd, "p.json", b'{"format": "psplit-problem", "devices": [{"count": 2}], '
                         b'"nodes": [{"time_ns": 1}, {"time_ns": 2}], "tensors": []}')
    write(cwd, "r.json", b'{"format": "psplit-problem", "devices": [{"count": 2, "memory_byte": 1}], '
                         b'"nodes": [{"time_ns": 1}], "tensors": []}')
    write(cwd, "t.json", b'{"format": "psplit-problem", "devices": [{}], "ordr": [], '
                         b'"nodes": [{"time_ns": 1}], "tensors": []}')
    write(cwd, "n.json", b'{"format": "psplit-problem", "devices": [{}], '
                         b'"nodes": [{"time_ns": 1, "wieght_bytes": 1}], "tensors": []}')
    write(cwd, "two.pins", b"# a stage each\nmake_m0=0\n\nmake_y\n")
    write(cwd, "good.pins", b"make_m0=0\n")
    write(cwd, "nine.pins", b"make_m0=9\n")
    write(cwd, "near.pins", b"make_m0=0\r\nmake_mm1=1\r\n")
    write(cwd, "nul.pins", b"make_m0=0\nmake\0m1=1\n")
    write(cwd, "q.json", b'{"format": "psplit-problm"}')
    write(cwd, "memory.json", b'{"devices": [{"name": "a", "preset": "cpu", "memory": "16GB"}]}')
    write(cwd, "map.json", b'{"transformer.h.0": 0, "transformer.h.1": 1}')
    write(cwd, "names.json", b'{"devices": ["cuda:0", "cuda:1"]}')
    write(cwd, "list.json", b'[{"name": "a"}, {"name": "b"}]')
    write(cwd, "a100.json", b'{"devices": [{"name": "a", "preset": "a100"}]}')
    write(cwd, "smi.csv", b"name, memory.total [MiB]\nNVIDIA A100, 40960 MiB\n")
    write(cwd, "none.onnx", model("g (float[2] x) => (float[2] x) {}"))
    write(cwd, "constants.onnx", model("g () => (float[1] y, float[1] z) { y = Constant <value = float[1] {1}> () "
                                       "z = Constant <value = float[1] {2}> () }"))
    os.makedirs(os.path.join(cwd, "mine"))
    write(os.path.join(cwd, "mine"), "notes.txt", b"kept\n")
    subprocess.run([split, "m.onnx", "-k", "2", "-o", "s", "-q", "--dim", "batch=2"], cwd=cwd, check=True)
    subprocess.run([split, "m.onnx", "-k", "2", "-o", "trains", "-q", "--dim", "batch=2", "--training", "--loss", "mse:",
                    "--trained-weights", "input"], cwd=cwd, check=True)
    # c.onnx has device configurations: one, called pipeline.
    subprocess.run([split, "m.onnx", "-k", "2", "--plan-only", "-q", "--dim", "batch=2", "--annotate", "c.onnx"],
                   cwd=cwd, check=True)


def read_table(path):
    """[(command, expected)]; comments are kept with what follows them."""
    rows, comments = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("$ "):
                rows.append([comments, line[2:].rstrip("\n"), ""])
                comments = []
            elif line.startswith("#") or not line.strip():
                comments.append(line)
            else:
                rows[-1][2] = line.rstrip("\n")
    return rows


def check_empty(tap, tool, cwd):
    """An argument that is empty, as of a variable that is not set, is wrong of every option, and of the commands."""
    said = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^  (?:-\w,|   ) --([\w-]+) (\S+)", said, re.MULTILINE)
    wrong = []
    for name, argument in options:
        done = subprocess.run([tool, "--%s=" % name], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
        if (done.returncode, done.stdout) != (2, "") or done.stderr != (
                'error: --%s takes %s, not ""; see %s --help\n' % (name, argument, os.path.basename(tool))):
            wrong.append("--%s=: status %d, %s" % (name, done.returncode, done.stderr))
    tap.ok(options and not wrong, "%s: %d options with an empty argument" % (os.path.basename(tool), len(options)),
           "".join(wrong))


def main(argv):
    bless = "--bless" in argv
    table, *places = [argument for argument in argv[1:] if argument != "--bless"]
    places = [os.path.abspath(place) for place in places]
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-usage-"))
    tap = Tap()

    def find(name):
        return next((path for path in (os.path.join(place, "onnx-pipeline-" + name) for place in places)
                     if os.path.exists(path)), None)

    try:
        make_files(cwd, find("split"))
        rows = read_table(table)
        env = {name: value for name, value in os.environ.items() if name != "PSPLIT_ONNXRUNTIME"}
        before = listing(cwd)
        for row in rows:
            name, *arguments = shlex.split(row[1])
            tool = find(name)
            if not tool:
                tap.ok(True, row[1] + " # SKIP not built")
                continue
            done = subprocess.run([tool, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, env=env,
                                  capture_output=True, text=True, timeout=60)
            said = "%d %s" % (done.returncode, done.stderr.rstrip("\n").replace("\n", " | "))
            quiet = done.stdout == "" and listing(cwd) == before
            if bless:
                row[2] = said
            tap.ok(said == row[2] and quiet, row[1].replace("#", ""), "%s\n%s" % (said, done.stdout))
        for name in sorted({row[1].split()[0] for row in rows}):
            if find(name):
                check_empty(tap, find(name), cwd)
        if bless:
            with open(table, "w", encoding="utf-8") as file:
                for comments, command, expected in rows:
                    file.write("".join(comments) + "$ %s\n%s\n" % (command, expected))
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
