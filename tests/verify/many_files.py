"""A model with a data file for each of its 5,000 tensors, where a process may open 256 files:
many_files.py ONNX_PIPELINE_SPLIT ONNX_PIPELINE_VERIFY. Results as TAP."""
import os
import resource
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from text_model import make  # noqa: E402

N_FILES, MAX_OPEN, N = 5000, 256, 8


def write_model(directory):
    """x -> Add(w0) -> Add(w1) -> ... -> y"""
    nodes, weights, last = [], [], "x"
    for i in range(N_FILES):
        out = "y" if i == N_FILES - 1 else "a%d" % i
        nodes.append("%s = Add (%s, w%d)" % (out, last, i))
        weights.append('float[%d] w%d = ["location": "w%d"]' % (N, i, i))
        last = out
        with open(os.path.join(directory, "w%d" % i), "wb") as file:
            file.write(struct.pack("<%df" % N, *[i] * N))
    path = os.path.join(directory, "many.onnx")
    with open(path, "wb") as file:
        file.write(make('<ir_version: 8, opset_import: ["": 17]>'
                        "many (float[%d] x) => (float[%d] y) <%s> {\n%s\n}"
                        % (N, N, ", ".join(weights), "\n".join(nodes))))
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
