"""Stages that point into the model's own data files (--weights reference): the proof does not read what
both take from one place, and tells where a stage takes another: referenced.py ONNX_PIPELINE_SPLIT
ONNX_PIPELINE_VERIFY. Results as TAP."""
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402
from text_model import make  # noqa: E402

N, BYTES = 512, 2048  # floats of a weight: above a kilobyte, so that it is compared apart
MODEL = ('<ir_version: 8, opset_import: ["": 17]> g (float[%d] x) => (float[%d] y) <'
         'float[%d] w = ["location": "one.bin", "offset": "1000", "length": "2048"], '
         'float[%d] v = ["location": "one.bin", "offset": "4000", "length": "2048"]> '
         "{ [a] a = Add (x, w) [b] b = Tanh (a) [y] y = Mul (b, v) }" % ((N,) * 4))
# title, the weight that is told ("": none), and what a stage says instead of what; all of one length
CASES = [("another place in the same file", "w", b"1000", b"4001"),
         ("the place of another weight", "v", b"4000", b"1000"),
         ("another place with the same bytes", "", b"1000", b"7000"),
         ("the same place in another file", "w", b"one.bin", b"two.bin"),
         ("another name of the same file", "", b"one.bin", b"uno.bin"),
         ("a copy of the file", "", b"one.bin", b"eno.bin"),
         ("a file that differs in its last byte there", "w", b"one.bin", b"ono.bin")]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def main():
    tap = Tap()
    source = random.Random(1)
    one = bytearray(source.randbytes(10000))
    one[7000:7000 + BYTES] = one[1000:1000 + BYTES]
    other = bytearray(one)
    other[1000 + BYTES - 1] ^= 1
    with tempfile.TemporaryDirectory(prefix="psplit-referenced-") as tmp:
        def at(name):
            return os.path.join(tmp, name)
        for name, data in (("one.bin", one), ("two.bin", source.randbytes(10000)), ("eno.bin", one),
                           ("ono.bin", other), ("model.onnx", make(MODEL))):
            write(at(name), data)
        os.link(at("one.bin"), at("uno.bin"))
        result = run(sys.argv[1], at("model.onnx"), "-k", "2", "-o", tmp, "--weights", "reference", "--pin",
                     "[ab]=0", "--pin", "y=1", "-q")
        result = run(sys.argv[2], tmp, "--model", at("model.onnx")) if result.returncode == 0 else result
        tap.ok(result.returncode == 0, "the split is proved", result.stderr)
        for title, told, old, new in CASES:
            path = at("stage1.onnx" if told == "v" else "stage0.onnx")
            with open(path, "rb") as file:
                data = file.read()
            write(path, data.replace(old, new))
            result = run(sys.argv[2], tmp, "--model", at("model.onnx"))
            good = (result.returncode == 1 and '"%s"' % told in result.stderr if told
                    else result.returncode == 0)
            tap.ok(good and data.count(old) == 1, title, result.stderr)
            write(path, data)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
