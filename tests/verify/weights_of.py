"""What the proof that a model has other weights and nothing else prints: weights_of.py
ONNX_PIPELINE_VERIFY. Results as TAP."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from text_model import make  # noqa: E402

TEXT = ('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
        '<float[2] a = {%s}, float[2] b = {%s}> { t = Add (x, a) y = %s (t, b) }')


def main():
    verify = os.path.abspath(sys.argv[1])
    count = 0

    def check(title, holds, detail=""):
        nonlocal count
        count += 1
        print("%sok %d - %s" % ("" if holds else "not ", count, title))
        if not holds:
            print("# " + detail.replace("\n", "\n# "))

    # What else is another, and what the proof says of it.
    more = (('["": 17]', '["": 18]', 'the model\'s field "opset_import"'),
            ('["": 17]>', '["": 17], metadata_props: ["k": "v"]>', "the model's field"),
            ("{%s}>", "{%s}, float[2] t>", "the graph's field"),
            ("(float[2] y)", "(float[2] y, float[2] t)", "the graph's field"),
            ("float[2] b", "float[2,1] b", 'in its name, type or shape the initializer "b"'),
            ("float[2] b", "int32[2] b", 'in its name, type or shape the initializer "b"'))

    with tempfile.TemporaryDirectory() as tmp:
        def write(name, *parts):
            with open(os.path.join(tmp, name), "wb") as file:
                file.write(make(TEXT % parts))

        def run(*args):
            done = subprocess.run([verify, *args], capture_output=True, text=True, cwd=tmp,
                                  timeout=60, check=False)
            return done.returncode, done.stdout, done.stderr

        write("old.onnx", "1, 2", "3, 4", "Add")
        write("new.onnx", "1, 2", "3, 5", "Add")
        write("other.onnx", "1, 2", "3, 5", "Mul")
        got = run("new.onnx", "--weights-of", "old.onnx")
        check("the weights that differ are listed",
              got[0] == 0 and got[1].startswith("new.onnx equals old.onnx except for the values of 1 of 2 "
                                                "initializers, ") and got[1].endswith(":\n  b\n"),
              str(got))
        got = run("old.onnx", "--weights-of", "old.onnx")
        check("of the same model none",
              got[0] == 0 and "0 of 2" in got[1] and got[1].count("\n") == 1, str(got))
        got = run("new.onnx", "--weights-of", "old.onnx", "-q")
        check("nothing is said with --quiet", got == (0, "", ""), str(got))
        got = run("other.onnx", "--weights-of", "old.onnx")
        check("another difference is named, and no weight",
              got == (1, "", "error: other.onnx is not old.onnx with other weights: the graph's "
                             'field "node" differs\n'), str(got))
        for old, new, says in more:
            with open(os.path.join(tmp, "more.onnx"), "wb") as file:
                file.write(make(TEXT.replace(old, new) % ("1, 2", "3, 4", "Add")))
            for name, of in (("more.onnx", "old.onnx"), ("old.onnx", "more.onnx")):
                got = run(name, "--weights-of", of)
                check("%s in place of %s in %s" % (new, old, name),
                      got[:2] == (1, "") and "with other weights: " + says in got[2], str(got))
        got = run("new.onnx", "--weights-of", "old.onnx", "--model", "old.onnx")
        check("one of the two ways", got[0] == 2 and "--weights-of" in got[2], str(got))
    print("1..%d" % count)


main()
