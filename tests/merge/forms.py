#!/usr/bin/env python3
"""What onnx-pipeline-merge makes of stages and manifests in every form: forms.py SPLIT INSPECT MERGE

A chain is split in two; then its stages are written anew and pipeline.json is changed. What is merged has to
be the expected model, printed and compared to the letter; what cannot be has to be refused by one line. TAP.
"""
import copy
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from bad_input import Tap
from text_model import make

CHAIN = """(float[2,4] x) => (float[2,4] y, float[2,4] z) {
  a = Exp (x) b = Relu (a) c = Sqrt (b) y = Neg (c) z = Sin (c)
}"""
HEAD = '<ir_version: 10, opset_import: ["": 18, "local": 1]>\n'
STAGES = ["(float[2,4] x) => (float[2,4] c) { a = Exp (x) c = Sqrt (a) }",
          "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = Neg (c) z = Sin (c) }"]


def function(body, overload=""):
    return ('<domain: "local", opset_import: ["": 18]%s> F (v) => (w) { %s }'
            % (', overload: "%s"' % overload if overload else "", body))


def big(seed):
    """A function with more data than stays in the structure."""
    return function("t = Constant <value = float[400] = random(%d)> () s = ReduceMax <keepdims = 0> (t) w = Mul (v, s)"
                    % seed)


# Title: the texts of stage 0 and 1 (None: as above), of the merged model; options.
MERGED = {
    "one function of both stages": (
        "(float[2,4] x) => (float[2,4] c) { c = local.F (x) }\n" + function("w = Exp (v)"),
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = local.F (c) z = Sin (c) }\n" + function("w = Exp (v)"),
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { c = local.F (x) y = local.F (c) z = Sin (c) }\n"
        + function("w = Exp (v)")),
    "large constants of one function of both stages": (
        "(float[2,4] x) => (float[2,4] c) { c = local.F (x) }\n" + big(1),
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = local.F (c) z = Sin (c) }\n" + big(1),
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { c = local.F (x) y = local.F (c) z = Sin (c) }\n" + big(1)),
    "functions of one name and two overloads": (
        "<ir_version: 10, opset_import: [\"\": 18, \"local\": 1]>\n"
        "(float[2,4] x) => (float[2,4] c) { c = local.F:one (x) }\n" + function("w = Exp (v)", "one"),
        "<ir_version: 10, opset_import: [\"\": 18, \"local\": 1]>\n"
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = local.F:two (c) z = Sin (c) }\n"
        + function("w = Neg (v)", "two"),
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { c = local.F:one (x) y = local.F:two (c) z = Sin (c) }\n"
        + function("w = Exp (v)", "one") + "\n" + function("w = Neg (v)", "two")),
    "the newest IR version": (
        None, '<ir_version: 11, opset_import: ["": 18, "local": 1]>\n' + STAGES[1],
        '<ir_version: 11, opset_import: ["": 18, "local": 1]>\n'
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { a = Exp (x) c = Sqrt (a) y = Neg (c) z = Sin (c) }"),
    "operators that one stage alone has": (
        None, '<ir_version: 10, opset_import: ["ai.onnx": 18, "other": 2, "local": 1]>\n'
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = other.Op (c) z = Sin (c) }",
        '<ir_version: 10, opset_import: ["": 18, "local": 1, "other": 2]>\n'
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { a = Exp (x) c = Sqrt (a) y = other.Op (c) z = Sin (c) }"),
    "types and annotations by the names of the whole": (
        "(float[2,4] x) => (float[2,4] c) @{quantization_annotation: [{tensor_name: \"a\","
        " quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\"]}]} <float s = {1}, float[2,4] a>"
        " { a = Mul (x, s) c = Sqrt (a) }",
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) @{quantization_annotation: [{tensor_name: \"a\","
        " quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\", \"ZERO_POINT_TENSOR\": \"elsewhere\"]},"
        " {tensor_name: \"nothing\"}]} <float s = {2}, float[2,4] a> { a = Mul (c, s) y = Neg (a) z = Sin (a) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) @{quantization_annotation: [{tensor_name: \"a\","
        " quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\"]}, {tensor_name: \"a.stage1\","
        " quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s.stage1\", \"ZERO_POINT_TENSOR\": \"elsewhere\"]}]}"
        " <float s = {1}, float[2,4] a, float \"s.stage1\" = {2}, float[2,4] \"a.stage1\", float[2,4] c>"
        " { a = Mul (x, s) c = Sqrt (a)"
        " \"a.stage1\" = Mul (c, \"s.stage1\") y = Neg (\"a.stage1\") z = Sin (\"a.stage1\") }"),
    "sparse weights of one name": (
        "(float[2,4] x) => (float[2,4] c) @{sparse_initializer: [{values: float[1] s {1}, indices: int64[1] {2},"
        " dims: [4]}]} { c = Mul (x, s) }",
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) @{sparse_initializer: [{values: float[1] s {1}, indices:"
        " int64[1] {3}, dims: [4]}]} { y = Mul (c, s) z = Sin (c) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) @{sparse_initializer: [{values: float[1] s {1},"
        " indices: int64[1] {2}, dims: [4]}, {values: float[1] \"s.stage1\" {1}, indices: int64[1] {3}, dims: [4]}]}"
        " { c = Mul (x, s) y = Mul (c, \"s.stage1\") z = Sin (c) }"),
    "one sparse weight of both stages": (
        "(float[2,4] x) => (float[2,4] c) @{sparse_initializer: [{values: float[1] s {1}, indices: int64[1] {2},"
        " dims: [4]}]} { c = Mul (x, s) }",
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) @{sparse_initializer: [{values: float[1] s {1}, indices:"
        " int64[1] {2}, dims: [4]}]} { y = Mul (c, s) z = Sin (c) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) @{sparse_initializer: [{values: float[1] s {1},"
        " indices: int64[1] {2}, dims: [4]}]} { c = Mul (x, s) y = Mul (c, s) z = Sin (c) }"),
    "nodes in a body that reads what has another name": (
        "(float[2,4] x) => (float[2,4] c) { a = Exp (x) c = Sqrt (a) }",
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) <bool[2] t = {1, 0}> { a = Neg (c)"
        " y = Scan <num_scan_inputs = 1, body = g (float[4] i) => (float[4] o) { k = ReduceMax <keepdims = 0> (a)"
        " o = Add (i, k) }> (a) z = Sin (c) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) <bool[2] t = {1, 0}> { a = Exp (x) c = Sqrt (a)"
        " \"a.stage1\" = Neg (c) y = Scan <num_scan_inputs = 1, body = g (float[4] i) => (float[4] o) {"
        " k = ReduceMax <keepdims = 0> (\"a.stage1\") o = Add (i, k) }> (\"a.stage1\") z = Sin (c) }"),
    "a name that a body of a stage before has, where the value is not read": (
        "(float[2,4] x) => (float[2,4] c) { a = Exp (x) c = Scan <num_scan_inputs = 1, body = g (float[4] i) =>"
        " (float[4] d) { d = Sqrt (i) }> (a) }",
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { d = Abs (c) y = Neg (d) z = Sin (d) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { a = Exp (x) c = Scan <num_scan_inputs = 1, body ="
        " g (float[4] i) => (float[4] d) { d = Sqrt (i) }> (a) d = Abs (c) y = Neg (d) z = Sin (d) }"),
    "a name that a body of a stage behind has": (
        "(float[2,4] x) => (float[2,4] c) { a = Exp (x) c = Sqrt (a) }",
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = Scan <num_scan_inputs = 1, body = g (float[4] i) =>"
        " (float[4] a) { a = Sqrt (i) }> (c) z = Sin (c) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { \"a.stage0\" = Exp (x) c = Sqrt (\"a.stage0\")"
        " y = Scan <num_scan_inputs = 1, body = g (float[4] i) => (float[4] a) { a = Sqrt (i) }> (c) z = Sin (c) }"),
    "an output of the model whose name a body of a stage before has": (
        "(float[2,4] x) => (float[2,4] c) { a = Scan <num_scan_inputs = 1, body = g (float[4] i) => (float[4] y)"
        " { y = Sqrt (i) }> (x) c = Sqrt (a) }", None,
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { a = Scan <num_scan_inputs = 1, body = g (float[4] i) =>"
        " (float[4] y) { y = Sqrt (i) }> (x) c = Sqrt (a) y = Neg (c) z = Sin (c) }"),
    "a second name that is taken": (
        "(float[2,4] x) => (float[2,4] c) { a = Exp (x) \"a.stage1\" = Abs (a) c = Sqrt (\"a.stage1\") }",
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { a = Neg (c) y = Neg (a) z = Sin (a) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { a = Exp (x) \"a.stage1\" = Abs (a) c = Sqrt (\"a.stage1\")"
        " \"a.stage1.1\" = Neg (c) y = Neg (\"a.stage1.1\") z = Sin (\"a.stage1.1\") }"),
    "sizes and ranks that one stage leaves open": (
        "(float[n,4] x) => (float[n,m] c) { c = Exp (x) }",
        "(float[2,4] c) => (float[2,4] y, float[] z) { y = Neg (c) z = Sin (c) }",
        "(float[n,4] x) => (float[2,4] y, float[] z) { c = Exp (x) y = Neg (c) z = Sin (c) }"),
    "a type that one stage does not say": (
        "(float[2,4] x) => (c) { c = Exp (x) }", None,
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) { c = Exp (x) y = Neg (c) z = Sin (c) }"),
    "a tensor that nothing takes any more": (
        None, "() => (float[2,4] y, float[2,4] z) <float[2,4] w = {1 * 8}> { y = Neg (w) z = Sin (w) }",
        "(float[2,4] x) => (float[2,4] y, float[2,4] z) <float[2,4] w = {1 * 8}>"
        " { a = Exp (x) c = Sqrt (a) y = Neg (w) z = Sin (w) }"),
    "a default of an input that the manifest does not name": (
        "(float[2,4] x, float[4] d) => (float[2,4] c) <float[4] d = {1, 2, 3, 4}> { c = Mul (x, d) }",
        "(float[2,4] c, float[4] d) => (float[2,4] y, float[2,4] z) <float[4] d = {1, 2, 3, 4}>"
        " { y = Mul (c, d) z = Sin (c) }",
        "(float[2,4] x, float[4] d) => (float[2,4] y, float[2,4] z) <float[4] d = {1, 2, 3, 4}>"
        " { c = Mul (x, d) y = Mul (c, d) z = Sin (c) }"),
}

# What the command says besides, by title: a name that is tried in vain is not counted.
SAYS = {"a second name that is taken": ", 1 value renamed,"}

# Weights that move, one of them in both stages, one in a node, one in a function.
LARGE = [
    "(float[2,4] x) => (float[2,4] c) <float[400] w = random(1), float[400] u = random(2)>"
    " { a = ReduceMax <keepdims = 0> (w) b = ReduceMax <keepdims = 0> (u) d = Add (a, b) c = local.F (x, d) }\n%s",
    "(float[2,4] c) => (float[2,4] y, float[2,4] z) <float[400] w = random(1), float[400] u = random(3)>"
    " { k = Constant <value = float[400] = random(4)> () a = Sum (w, u, k) e = ReduceMax <keepdims = 0> (a)"
    " y = local.F (c, e) z = Sin (c) }\n%s",
    "(float[2,4] x) => (float[2,4] y, float[2,4] z) <float[400] w = random(1), float[400] u = random(2),"
    " float[400] \"u.stage1\" = random(3)> { a = ReduceMax <keepdims = 0> (w) b = ReduceMax <keepdims = 0> (u)"
    " d = Add (a, b) c = local.F (x, d) k = Constant <value = float[400] = random(4)> ()"
    " \"a.stage1\" = Sum (w, \"u.stage1\", k) e = ReduceMax <keepdims = 0> (\"a.stage1\") y = local.F (c, e)"
    " z = Sin (c) }\n%s"]
LARGE = [text % function("t = Constant <value = float[400] = random(5)> () s = ReduceMax <keepdims = 0> (t)"
                         " q = Mul (u, s) w = Mul (v, q)").replace("F (v)", "F (v, u)") for text in LARGE]

# Title: texts of the stages, exit status, what is said.
REFUSED = {
    "a function that is another one in a stage": (
        "(float[2,4] x) => (float[2,4] c) { c = local.F (x) }\n" + function("w = Exp (v)"),
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = local.F (c) z = Sin (c) }\n" + function("w = Neg (v)"),
        5, r"function F of stage 1 is another one in stage 0"),
    "a function with another large constant": (
        "(float[2,4] x) => (float[2,4] c) { c = local.F (x) }\n" + big(1),
        "(float[2,4] c) => (float[2,4] y, float[2,4] z) { y = local.F (c) z = Sin (c) }\n" + big(2),
        5, r"function F of stage 1 is another one in stage 0"),
    "other versions of operators of one's own": (
        '<ir_version: 10, opset_import: ["": 18, "o": 1]>\n' + STAGES[0],
        '<ir_version: 10, opset_import: ["": 18, "o": 2]>\n' + STAGES[1],
        5, r'stage 1 has version 2 of the operators "o", stage 0 version 1: convert them to one version first'),
    "a sequence where a tensor is sent": (
        None, "(seq(float[2,4]) c) => (float[2,4] y, float[2,4] z) { y = ConcatFromSequence <axis = 0> (c) z = Sin (y) }",
        4, r'"c" is float32 where stage 0 sends it and no tensor where stage 1 takes it'),
    "two defaults of one input": (
        "(float[2,4] x, float d) => (float[2,4] c) <float d = {1}> { c = Mul (x, d) }",
        "(float[2,4] c, float d) => (float[2,4] y, float[2,4] z) <float d = {2}> { y = Mul (c, d) z = Sin (c) }",
        4, r'input "d" has another default in .*stage1.onnx than in .*stage0.onnx'),
    "a scalar where a tensor is sent": (
        None, "(float c) => (float[2,4] y, float[2,4] z) { y = Neg (c) z = Sin (c) }",
        4, r'"c" has 2 dimensions in stage 0 and 0 in stage 1'),
    "an empty tensor where one with elements is sent": (
        None, "(float[0,4] c) => (float[2,4] y, float[2,4] z) { y = Neg (c) z = Sin (c) }",
        4, r'dimension 0 of "c" is 2 in stage 0 and 0 in stage 1'),
    "a tensor with elements where an empty one is sent": (
        "(float[2,4] x) => (float[0,4] c) { a = Exp (x) c = Sqrt (a) }", None,
        4, r'dimension 0 of "c" is 0 in stage 0 and 2 in stage 1'),
    "an input of the model that no stage takes": (
        "() => (float[2,4] c) <float[2,4] w = {1 * 8}> { c = Exp (w) }", None,
        4, r'no stage takes the model\'s input "x" any more'),
}


def many_functions(number, given, result, last="", n=25000):
    """A stage that calls n functions of its own in a row, and imports a set of operators for each."""
    names = ["torch_nn_modules_transformer_TransformerEncoderLayer_of_stage%d_%d" % (number, i) for i in range(n)]
    values = [given] + ["v%d_%d" % (number, i) for i in range(1, n)] + [result]
    nodes = ["%s = local.%s (%s)" % (values[i + 1], names[i], values[i]) for i in range(n)] + [last]
    return "\n".join(['<ir_version: 10, opset_import: ["": 18, "local": 1, %s]>'
                      % ", ".join('"%s": 1' % name for name in names),
                      "(float[2,4] %s) => (float[2,4] %s%s) {" % (given, result, last and ", float[2,4] z"), *nodes, "}",
                      *('<domain: "local", opset_import: ["": 18]> %s (v) => (w) { w = Exp (v) }' % name
                        for name in names)])


def stage(manifest, number):
    return manifest["stages"][number]


# Title: what changes in the manifest, exit status, what is said.
CHANGED = {
    "a tensor from a stage that is not before": (
        lambda m: stage(m, 1)["inputs"][0].update({"from": 1}), 4, r'receives "c" from stage 1, which is not before it'),
    "a tensor that is sent elsewhere": (
        lambda m: (stage(m, 0)["outputs"][0].update(to=["model"]), m["outputs"].append(dict(m["outputs"][0], name="c"))),
        4, r'waits for "c", which stage 0 does not send'),
    "another tensor for the stage": (
        lambda m: stage(m, 0)["outputs"][0].update(tensor="d"), 4, r'waits for "c", which stage 0 does not send'),
    "an input that the model has not": (
        lambda m: stage(m, 0)["inputs"][0].update(tensor="u"), 4, r'takes "u" from the model, which has no such input'),
    "an output that the model has not": (
        lambda m: m["outputs"].pop(), 4, r'stage 1 gives "z" to the model, which has no such output'),
    "outputs of a model that has none": (
        lambda m: m["outputs"].clear(), 4, r'stage 1 gives "y" to the model, which has no such output'),
    "an output that no stage gives": (
        lambda m: stage(m, 1)["outputs"].pop(), 4, r'no stage gives the model\'s output "z"'),
    "a port that is no output": (
        lambda m: stage(m, 1)["outputs"][1].update(name="c"), 4, r'has no output "c" any more'),
    "a port that is not an input": (
        lambda m: stage(m, 1)["inputs"][0].update(name="y"), 4, r'takes "c", which pipeline\.json does not give it'),
    "a file that is not there": (
        lambda m: stage(m, 1).update(file="stage7.onnx"), 3, r'stage7\.onnx'),
}


def main(argv):
    if len(argv) != 4:
        sys.exit("usage: forms.py SPLIT INSPECT MERGE")
    split, inspect, merge = map(os.path.abspath, argv[1:])
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="psplit-forms-") as folder:
        os.chdir(folder)

        def run(*args):
            return subprocess.run(args, capture_output=True, text=True, timeout=60)

        def write(path, text):
            with open(path, "wb") as file:
                file.write(make(text if text.startswith("<") else HEAD + text))

        def printed(path):
            """The model as text, without the graph's name."""
            done = run(inspect, path, "--format", "onnxtxt", "--max-data", "all")
            return done.stdout or done.stderr

        def put(manifest=None, texts=STAGES):
            with open("s/pipeline.json", "w") as file:
                json.dump(manifest or whole, file)
            for number, text in enumerate(texts):
                write("s/stage%d.onnx" % number, text or STAGES[number])

        def refused(title, status, says):
            for path in ("merged.onnx", "merged.onnx.data"):
                if os.path.exists(path):
                    os.remove(path)
            done = run(merge, "s", "-o", "merged.onnx")
            tap.ok(done.returncode == status and done.stderr.count("\n") == 1 and re.search(says, done.stderr)
                   and not os.path.exists("merged.onnx"), title + " is refused",
                   "status %d\n%s%s" % (done.returncode, done.stderr, done.stdout))

        write("m.onnx", CHAIN)
        plain = "infer-shapes,cost,mark,attach,fuse,coarsen,partition"  # no node in both stages
        made = run(split, "m.onnx", "-k", "2", "-o", "s", "--boundary", "io", "-q", "--passes", plain)
        with open("s/pipeline.json") as file:
            whole = json.load(file)
        tap.ok([row["tensor"] for row in whole["transfers"]] == ["c"], "the chain is cut at c", made.stderr)
        for title, (first, second, *rest) in REFUSED.items():
            put(texts=[first, second])
            refused(title, *rest)
        for title, (change, *rest) in CHANGED.items():
            manifest = copy.deepcopy(whole)
            change(manifest)
            put(manifest)
            refused(title, *rest)
        for title, (first, second, expected) in MERGED.items():
            put(texts=[first, second])
            write("expected.onnx", expected)
            done = run(merge, "s", "-o", "merged.onnx", "--force")
            found, wanted = printed("merged.onnx"), printed("expected.onnx")
            tap.ok(done.returncode == 0 and found == wanted and SAYS.get(title, "") in done.stdout, title,
                   done.stdout + done.stderr + found + "wanted\n" + wanted)
        # Stages with many functions: 10 s of a processor are not enough to compare each with each.
        put(texts=[many_functions(0, "x", "c"), many_functions(1, "c", "y", "z = Sin (c)")])
        done = subprocess.run([merge, "s", "-o", "merged.onnx", "--force"], capture_output=True, text=True, timeout=300,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (10, 10)))
        tap.ok(done.returncode == 0, "stages with 25000 functions and sets of operators each", done.stderr)
        # Data of both stages in one file, and from there into a model again.
        put(texts=LARGE[:2])
        write("expected.onnx", LARGE[2])
        for step in ([merge, "s", "-o", "merged.onnx", "--force", "--weights", "external"],
                     [split, "merged.onnx", "-k", "1", "-o", "one", "--weights", "external", "-q"],
                     [merge, "one", "-o", "inside.onnx", "--weights", "inline"]):
            done = run(*step)
            tap.ok(done.returncode == 0, " ".join(map(os.path.basename, step)), done.stderr)
        tap.ok(os.path.getsize("merged.onnx.data") >= 4 * 1600, "data is outside, once")
        tap.ok(os.path.getsize("merged.onnx.data") < 4 * 4096 * 3, "and no more than that")
        found, wanted = printed("inside.onnx"), printed("expected.onnx")
        tap.ok(found == wanted, "weights of both stages come back", found + "wanted\n" + wanted)
        # Options that change nothing, of a merge that is proved.
        os.mkdir("sub")
        put(texts=[None, None])
        write("expected.onnx", "(float[2,4] x) => (float[2,4] y, float[2,4] z)"
              " { a = Exp (x) c = Sqrt (a) y = Neg (c) z = Sin (c) }")
        done = run(merge, "s", "-o", "sub/merged.onnx", "-q", "--follow-symlinks", "--max-text", "8", "--max-graph-memory",
                   "64", "--weights", "auto", "--model", "m.onnx")
        tap.ok(done.returncode == 0 and not done.stdout and os.listdir("sub") == ["merged.onnx"]
               and printed("sub/merged.onnx") == printed("expected.onnx"), "options that change nothing",
               done.stdout + done.stderr + printed("sub/merged.onnx"))
        # Send and Recv that the model has of its own: a stage is split again, or the domain is used for something else.
        write("chain.onnx", "(float[2,4] x) => (float[2,4] y) { %s }"
              % " ".join("v%d = Exp (%s)" % (i, "v%d" % (i - 1) if i else "x") for i in range(8)).replace("v7", "y"))
        write("own.onnx", '<ir_version: 10, opset_import: ["": 18, "psplit": 1]>\n'
              "(float[2,4] x) => (float[2,4] y) { a = psplit.Send (x) b = Exp (a) c = psplit.Other (b) y = Exp (c) }\n"
              '<domain: "psplit", opset_import: ["": 18]> Send (v) => (w) { w = Exp (v) }\n'
              '<domain: "psplit", opset_import: ["": 18]> Other (v) => (w) { w = Neg (v) }')
        done = run(split, "chain.onnx", "-k", "3", "-o", "parts", "-q", "--passes", plain)
        tap.ok(done.returncode == 0, "a chain in three", done.stderr)
        for model, boundary in [("parts/stage%d.onnx" % s, b) for s in (0, 1, 2) for b in ("io", "sendrecv")] + [
                ("own.onnx", "io")]:
            for more in [], ["--model", model]:
                step = [[split, model, "-k", "2", "-o", "twice", "--force", "--boundary", boundary, "-q", "--verify",
                         "--passes", plain], [merge, "twice", "-o", "merged.onnx", "--force", *more]]
                done = [run(*args) for args in step]
                found, wanted = printed("merged.onnx"), printed(model)
                tap.ok(not any(d.returncode for d in done) and found == wanted,
                       " ".join([model, "split and merged", boundary, *more[:1]]),
                       "".join(d.stderr for d in done) + found + "wanted\n" + wanted)
        # Over what is read, under whatever name, nothing is written.
        os.link("s/stage1.onnx", "linked.onnx")
        read = ["s/stage0.onnx", "s/stage1.onnx", "s/pipeline.json", "linked.onnx", "m.onnx"]
        before = [open(path, "rb").read() for path in read]
        for path in read:
            done = run(merge, "s", "-o", path, "--force", "--model", "m.onnx")
            whose = "model" if path == "m.onnx" else "split"
            tap.ok(done.returncode == 3 and re.search("is a file of the %s itself" % whose, done.stderr),
                   "%s is not written over" % path, "status %d\n%s" % (done.returncode, done.stderr))
        after = [open(path, "rb").read() for path in read]
        tap.ok(before == after, "what is read stays as it is")
        for tool in (split, inspect, merge):
            done = run(tool, "--version")
            tap.ok(done.returncode == 0 and done.stdout.startswith(os.path.basename(tool) + " "),
                   os.path.basename(tool) + " --version", done.stdout + done.stderr)
        # An output of the model whose name a body behind it has.
        manifest = copy.deepcopy(whole)
        stage(manifest, 0)["outputs"].append(dict(stage(manifest, 1)["outputs"].pop(), name="z"))
        put(manifest, ["(float[2,4] x) => (float[2,4] c, float[2,4] z) { a = Exp (x) c = Sqrt (a) z = Abs (a) }",
                       "(float[2,4] c) => (float[2,4] y) { y = Scan <num_scan_inputs = 1, body = g (float[4] i) =>"
                       " (float[4] z) { z = Sqrt (i) }> (c) }"])
        refused("an output of the model whose name is something else's", 4,
                r'output "z" of the model is the name of another value in a stage')
        # A node of both stages, until a tool changed it in one of them.
        manifest = copy.deepcopy(whole)
        stage(manifest, 1).update(duplicated_nodes=1)
        first, second = ("(float[2,4] %s) => (%s) { k = Constant <value_float = %s> () %s }" % row for row in (
            ("x", "float[2,4] c", "%d", "c = Mul (x, k)"),
            ("c", "float[2,4] y, float[2,4] z", "2", "y = Mul (c, k) z = Sin (c)")))
        for value, two, name in ((2, "", "k"), (3, '"k.stage1" = Constant <value_float = 2> ()', '"k.stage1"')):
            put(manifest, [first % value, second])
            write("expected.onnx", "(float[2,4] x) => (float[2,4] y, float[2,4] z) { k = Constant <value_float = %d> ()"
                  " c = Mul (x, k) %s y = Mul (c, %s) z = Sin (c) }" % (value, two, name))
            done = run(merge, "s", "-o", "merged.onnx", "--force")
            found, wanted = printed("merged.onnx"), printed("expected.onnx")
            tap.ok(done.returncode == 0 and found == wanted, "a node of both stages, %s" % (two or "alike"),
                   done.stderr + found + "wanted\n" + wanted)
        # Nodes of the same bytes that read a weight of one name, which a tool changed in one stage, are two.
        branches = "If <then_branch = t () => (r) { r = Neg (w) }, else_branch = e () => (q) { q = Abs (w) }> (b)"
        for what, node in ("reads", "Neg (w)"), ("captures", branches):
            weights = "float w = {%d}, bool b = {1}"
            put(manifest, [
                "(float[2,4] x) => (float[2,4] c) <%s> { k = %s c = Mul (x, k) }" % (weights % 2, node),
                "(float[2,4] c) => (float[2,4] y, float[2,4] z) <%s> { k = %s y = Mul (c, k) z = Sin (c) }"
                % (weights % 3, node)])
            write("expected.onnx", "(float[2,4] x) => (float[2,4] y, float[2,4] z)"
                  " <%s, float \"w.stage1\" = {3}> { k = %s c = Mul (x, k) \"k.stage1\" = %s"
                  " y = Mul (c, \"k.stage1\") z = Sin (c) }"
                  % (weights % 2, node, node.replace("(w)", '("w.stage1")')))
            done = run(merge, "s", "-o", "merged.onnx", "--force")
            found, wanted = printed("merged.onnx"), printed("expected.onnx")
            tap.ok(done.returncode == 0 and found == wanted, "a node of both stages %s a changed weight" % what,
                   done.stderr + found + "wanted\n" + wanted)
        # Ports that are called otherwise than the tensor that goes through them.
        manifest = copy.deepcopy(whole)
        stage(manifest, 0)["outputs"][0].update(name="sent")
        stage(manifest, 1)["inputs"][0].update(name="received")
        put(manifest, ["(float[2,4] x) => (float[2,4] sent) { a = Exp (x) sent = Sqrt (a) }",
                       "(float[2,4] received) => (float[2,4] y, float[2,4] z) { y = Neg (received) z = Sin (received) }"])
        write("expected.onnx", "(float[2,4] x) => (float[2,4] y, float[2,4] z)"
              " { a = Exp (x) c = Sqrt (a) y = Neg (c) z = Sin (c) }")
        done = run(merge, "s", "-o", "merged.onnx", "--force")
        found, wanted = printed("merged.onnx"), printed("expected.onnx")
        tap.ok(done.returncode == 0 and found == wanted, "what crosses has its tensor's name, not its ports'",
               done.stderr + found + "wanted\n" + wanted)
        # A model whose If was replaced by a branch: it is that of --model, as it was split, with what it declares.
        write("if.onnx", "(float[2,4] x, bool b) => (float[2,4] y) { [if] y = If <then_branch = t () => (r)"
              " <float[2,4] p, float[2,4] q> { p = Exp (x) q = Sqrt (p) r = Neg (q) },"
              " else_branch = e () => (u) { u = Abs (x) }> (b) }")
        done = run(split, "if.onnx", "-k", "2", "-o", "branch", "-q", "--inline-if", "if=then", "--boundary", "io")
        tap.ok(done.returncode == 0, "a branch in two", done.stderr)
        done = run(merge, "branch", "-o", "merged.onnx", "--force", "--model", "if.onnx")
        tap.ok(done.returncode == 0 and "it is equivalent to if.onnx: every stage is unchanged" in done.stdout
               and all("float[2,4] " + name in printed("merged.onnx") for name in "pq"),
               "the model with the branch is proved", done.stdout + done.stderr + printed("merged.onnx"))
        # A training algorithm binds weights of every stage.
        write("training.onnx", '<ir_version: 8, opset_import: ["": 17], training_info: [{algorithm: f (float[4] g) =>'
              ' (float[4] h, float[4] i) { h = Neg (g) i = Abs (g) }, update_binding: ["v": "h", "w": "i"]}]>\n'
              "(float[2,4] x) => (float[2,4] y) <float[4] v = {1, 2, 3, 4}, float[4] w = {5, 6, 7, 8}>"
              " { a = Mul (x, v) b = Exp (a) c = Sqrt (b) y = Mul (c, w) }")
        done = run(split, "training.onnx", "-k", "2", "-o", "trains", "-q")
        tap.ok(done.returncode == 0, "a model with a training algorithm in two", done.stderr)
        done = run(merge, "trains", "-o", "merged.onnx", "--force")
        found, wanted = printed("merged.onnx"), printed("training.onnx")
        tap.ok(done.returncode == 0 and found == wanted, "bindings of weights of both stages",
               done.stderr + found + "wanted\n" + wanted)
        # One value under two names of the model.
        manifest = copy.deepcopy(whole)
        stage(manifest, 1)["outputs"][1].update(name="y")
        put(manifest, [None, "(float[2,4] c) => (float[2,4] y) { y = Neg (c) }"])
        done = run(merge, "s", "-o", "merged.onnx", "--force")
        tap.ok("z = Identity (y)" in printed("merged.onnx"), "two outputs that are one value", done.stderr)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
