"""A model with a data file for each of its 5,000 tensors, where a process may open 256 files:
many_files.py ONNX_PIPELINE_SPLIT ONNX_PIPELINE_VERIFY. Results as TAP."""
import os
import resource
import struct
import subprocess
import sys
import tempfile

from wire import message

N_FILES, MAX_OPEN, N = 5000, 256, 8


def value(name):
    shape = message((1, message((1, N))))
    return message((1, name), (2, message((1, message((1, 1), (2, shape))))))


def write_model(directory):
    """x -> Add(w0) -> Add(w1) -> ... -> y"""
    graph, last = message((2, "many")), "x"
    for i in range(N_FILES):
        out = "y" if i == N_FILES - 1 else "a%d" % i
        graph.add(1, message((1, last), (1, "w%d" % i), (2, out), (4, "Add")))
        last = out
    for i in range(N_FILES):
        location = "w%d" % i
        with open(os.path.join(directory, location), "wb") as file:
            file.write(struct.pack("<%df" % N, *[i] * N))
        graph.add(5, message((1, N), (2, 1), (8, location),
                             (13, message((1, "location"), (2, location))), (14, 1)))
    graph.add(11, value("x")).add(12, value("y"))
    path = os.path.join(directory, "many.onnx")
    with open(path, "wb") as file:
        file.write(message((1, 8), (7, graph), (8, message((1, ""), (2, 17)))).bytes())
    return path


def run(*command):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_OPEN, MAX_OPEN))
    return subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=lower)


def main():
    split, verify = sys.argv[1:3]
    count = failed = 0
    with tempfile.TemporaryDirectory(prefix="psplit-many-") as home:
        beside = os.path.join(home, "whole")
        os.mkdir(beside)
        model = write_model(beside)
        for weights in ("auto", "inline", "external", "reference"):
            out = beside if weights == "reference" else os.path.join(home, weights)
            runs = [run(split, model, "-k", "3", "-o", out, "--weights", weights, "--force", "-q",
                        "--verify"),
                    run(verify, out, "--model", model)]
            good = all(done.returncode == 0 for done in runs)
            count += 1
            failed += not good
            print("%s %d - 5000 data files, 256 open at most, weights %s"
                  % ("ok" if good else "not ok", count, weights))
            for done in runs:
                if not good:
                    print("# %s %s" % (done.returncode, done.stderr.strip()))
    print("1..%d" % count)
    sys.exit(failed > 0)


main()
