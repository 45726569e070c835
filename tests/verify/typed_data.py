"""A tensor whose numbers stand in a typed field of the file, more of them than are read into memory:
a split with another number is told apart. typed_data.py ONNX_PIPELINE_SPLIT ONNX_PIPELINE_VERIFY.
Results as TAP."""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from text_model import make  # noqa: E402

N = 600  # floats: above a kilobyte


def model():
    numbers = [i + 0.5 for i in range(N)]
    return make('<ir_version: 8, opset_import: ["": 17]>'
                "typed (float[%d] x) => (float[%d] y) { c = Constant <value = float[%d] {%s}> () a = Add (x, c) "
                "y = Add (a, c) }" % (N, N, N, ", ".join(map(str, numbers)))), numbers


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def changed(directory, old, new):
    """The one stage that holds `old`, with `new` in its place; its path and what it was."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        with open(path, "rb") as file:
            data = file.read()
        if old in data and name.endswith(".onnx"):
            with open(path, "wb") as file:
                file.write(data.replace(old, new))
            return path, data
    return None, b""


def main():
    split, verify = sys.argv[1:3]
    data, numbers = model()
    packed = struct.pack("<%df" % N, *numbers)
    results = [("the numbers stand in a typed field", b"\x22\xe0\x12" + packed in data)]
    with tempfile.TemporaryDirectory(prefix="psplit-typed-") as home:
        whole, out = os.path.join(home, "m.onnx"), os.path.join(home, "out")
        with open(whole, "wb") as file:
            file.write(data)
        done = run(split, whole, "-k", "2", "-o", out, "-q")
        results.append(("it is split", done.returncode == 0))
        results.append(("the split is the model's", run(verify, out, "--model", whole).returncode == 0))
        for at in (0, N // 2, N - 1):
            other = numbers[:at] + [numbers[at] + 1] + numbers[at + 1:]
            path, was = changed(out, packed, struct.pack("<%df" % N, *other))
            told = run(verify, out, "--model", whole)
            results.append(("number %d is another" % at, path is not None and told.returncode == 1))
            if path:
                with open(path, "wb") as file:
                    file.write(was)
        results.append(("and back again", run(verify, out, "--model", whole).returncode == 0))
    for count, (what, good) in enumerate(results, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", count, what))
    print("1..%d" % len(results))
    sys.exit(not all(good for _, good in results))


main()
