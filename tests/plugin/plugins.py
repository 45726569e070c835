#!/usr/bin/env python3
"""What the commands say to pass plugins: plugins.py SPLIT INSPECT ODD_PLUGINS SAMPLES

Refusals are exit status 8 and one `error:` line that names the file or the pass and the reason; good
plugins do what they are for. Results as TAP.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from bad_input import Tap, chain, model, write
from text_model import make  # tests/support, by bad_input

OK, UNSUPPORTED, INFEASIBLE, PLUGIN = 0, 5, 7, 8
BEFORE, AFTER = "infer-shapes,cost,mark,attach,fuse", "coarsen,partition,replicate"


# What asks.c asks about.
ASKED = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
(float[2,4] x, float[n,4] u, bool c, float[] r) => (y, z, q) <float[4,4] w = random(1)> {
  [mm] a = MatMul (x, w)
  [lrn] b = LeakyRelu <alpha = 0.25> (a)
  [t] d = Transpose <perm = [1, 0]> (b)
  [g] e = com.microsoft.Gelu (d)
  [ein] f = Einsum <equation = "ij,jk"> (b, e)
  [s] z = Softmax <axis = -1> (f)
  [if] y = If (c) <then_branch = p () => (o) { o = Neg (b) }, else_branch = k () => (i) { i = Abs (b) }>
  [cst] v = Constant <value_ints = [1]> ()
  [sum] h = ReduceSum (u, v)
  [abs] q = Abs (r)
}"""


class Bench:
    def __init__(self, tool, cwd, tap):
        self.tool, self.cwd, self.tap = tool, cwd, tap

    def run(self, *args, stages="2", file="m.onnx", passes=None):
        command = [self.tool, file, "-k", stages, "--plan-only", "--json", *args]
        if passes:
            command += ["--passes", ",".join([BEFORE, passes, AFTER])]
        return subprocess.run(command, cwd=self.cwd, capture_output=True, text=True, timeout=60)

    def check(self, title, done, status, *parts):
        problems = []
        if done.returncode != status:
            problems.append("exit status %d, not %d" % (done.returncode, status))
        errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        if len(errors) != (status != OK):
            problems.append("%d error lines" % len(errors))
        problems += ["\"%s\" is not said" % part for part in parts if part not in done.stderr]
        self.tap.ok(not problems, title, "\n".join(problems + [done.stderr[:600]]))


def refusals(bench, plugins):
    def each(case, *parts):
        path = os.path.join(plugins, case + ".so")
        bench.check("refused: " + case.replace("_", " "),
                    bench.run("--load-pass-plugin", path), PLUGIN, path, *parts)

    each("older_abi", "plugin ABI 0", "speaks 1")
    each("newer_abi", "plugin ABI 2", "speaks 1")
    each("short", "too short")
    each("short_pass", "too short", "psplit_plugin_pass")
    each("future", "newer psplit")
    each("sanitized", "other sanitizer")
    each("twice", "there is a pass odd already")
    each("builtin", "there is a pass fuse already")
    each("upper_case", "a-z")
    each("no_symbol", "exports no psplit_plugin_query")
    each("no_run", "nothing to run")
    each("bad_default", "\"20\"", "option n")
    each("null_name", "a-z")
    each("odd_name", "a-z")
    each("null_pass", "one of its passes is NULL")
    for case in ("no_passes", "no_list", "many_passes"):
        each(case, "it has no passes, or more than 256")
    each("many_options", "pass odd: it has 17 options; at most 16")
    each("no_options", "pass odd: it has 1 options; at most 16")
    for case in ("half_option", "no_fallback", "option_type"):
        each(case, "pass odd: option 0 lacks a name, a default or a type")
    each("returns_null", "its psplit_plugin_query returns NULL")
    each("future_plugin", "its description uses what this version does not have")

    plain = os.path.join(plugins, "plain.so")
    bench.check("refused: the same plugin twice",
                bench.run("--load-pass-plugin", plain, "--load-pass-plugin", plain), PLUGIN,
                "there is a pass odd already")
    bench.check("refused: no such file", bench.run("--load-pass-plugin", "none.so"), PLUGIN,
                "none.so", "cannot be loaded")
    write(bench.cwd, "text.so", b"not a shared object\n")
    bench.check("refused: not a shared object", bench.run("--load-pass-plugin", "text.so"), PLUGIN,
                "text.so", "cannot be loaded")


def runs(bench, plugins):
    def each(title, case, status, *parts):
        path = os.path.join(plugins, case + ".so")
        done = bench.run("--load-pass-plugin", path, passes="odd")
        bench.check(title, done, status, *parts)
        return done

    each("a good plugin runs", "plain", OK)
    each("a plugin of a newer header that uses nothing new runs", "longer", OK)
    each("ids out of range do no harm", "wild", OK)
    each("a pass that tears a group is refused by name", "tears", PLUGIN, "pass odd is refused",
         "not convex")
    each("a pass that fails is quoted, on one line", "fails", PLUGIN,
         "pass odd failed with 3: the moon is?full")
    write(bench.cwd, "asked.onnx", make(ASKED))
    asks = os.path.join(plugins, "asks.so")
    bench.check("a plugin is told what the model says",
                bench.run("--load-pass-plugin", asks, passes="asks:count=3:part=0.5:word=so:really=true",
                          file="asked.onnx"), OK, "asked all")
    bench.check("a pass may fail without a reason",
                bench.run("--load-pass-plugin", asks, passes="asks", file="asked.onnx"), PLUGIN,
                "pass asks failed with 4")
    pinned = each("pins hold", "pins", OK)
    if pinned.returncode == OK:
        stages = json.loads(pinned.stdout)["stages"]
        bench.tap.ok([stage["nodes"] for stage in stages] == [2, 10], "and put nodes where they say",
                     pinned.stdout)
    each("a value that may not be cut is not", "forbids", INFEASIBLE)

    path = os.path.join(plugins, "plain.so")
    done = bench.run("--load-pass-plugin", path, "--passes", "odd", "--print-pipeline")
    bench.tap.ok(done.stdout == "odd\n", "--print-pipeline knows the pass", done.stdout + done.stderr)
    done = bench.run("--load-pass-plugin", path, "--help-passes")
    bench.tap.ok("an odd pass" in done.stdout, "--help-passes shows it", done.stdout + done.stderr)
    shutil.copy(path, os.path.join(bench.cwd, "here.so"))
    bench.check("a name without a slash is a file here",
                bench.run("--load-pass-plugin", "here.so", passes="odd"), OK)


def inspects(bench, inspect, plugins):
    """onnx-pipeline-inspect loads plugins as well, and shows the notes that they leave."""
    passes = ["--passes", BEFORE + ",odd,coarsen"]

    def show(case, *args):
        command = [inspect, "m.onnx", "--load-pass-plugin", os.path.join(plugins, case + ".so"), *args]
        return subprocess.run(command, cwd=bench.cwd, capture_output=True, text=True, timeout=60)

    bench.check("inspect refuses what is not for this host", show("newer_abi"), PLUGIN, "plugin ABI 2")
    bench.check("inspect names a pass that tears a group", show("tears", *passes), PLUGIN,
                "pass odd is refused")
    bench.check("a plugin's pass is one to stop after", show("plain", *passes, "--after", "odd"), OK)
    done = show("notes", *passes)
    bench.check("inspect runs a pass that leaves notes", done, OK)
    notes = [line for line in done.stdout.splitlines() if line.startswith("note ")]
    owner = next((line.split()[1] for line in done.stdout.splitlines()
                  if line.startswith("supernode ") and "make_m1" in line.split("members=")[1].split(",")), "")
    bench.tap.ok(notes == [
        "note odd supernode=%s operator=make_m1 text=slow on Tuesdays, </script><b>always</b>" % owner,
        "note odd supernode=- operator=- text=two\\x0alines"], "text has a line for each", "\n".join(notes))
    for level in ("operators", "supernodes"):
        done = show("notes", *passes, "--format", "json", "--level", level)
        bench.tap.ok(done.returncode == OK and json.loads(done.stdout)["notes"] == [
            {"pass": "odd", "operator": 2, "supernode": int(owner),
             "text": "slow on Tuesdays, </script><b>always</b>"},
            {"pass": "odd", "operator": None, "supernode": None, "text": "two\nlines"}],
            "json has them with the %s" % level, done.stdout[:600] + done.stderr)
    done = show("notes", *passes, "--format", "html")
    if done.returncode == UNSUPPORTED:
        bench.tap.ok(True, "html has them # SKIP this build makes no pages")
    else:
        bench.tap.ok("slow on Tuesdays, \\u003c/script>" in done.stdout and
                     "<b>always" not in done.stdout, "html has them, as data", done.stderr)


def decoder():
    """Two layers; the cache of each is read at its start and written at its end. Computing one takes longer than
    sending a tensor, so that none is computed twice."""
    nodes, last, inputs, outputs, weights = [], "x", ["float[512,512] x"], [], []
    for layer in (0, 1):
        past, present = "past_key_values.%d." % layer, "present.%d." % layer
        nodes += ["h%d = MatMul (%s, w%d)" % (layer, last, layer),
                  '"%skey" = Concat <axis = 0> (h%d, "%skey")' % (present, layer, past),
                  "s%d = Softmax (h%d)" % (layer, layer),
                  "t%d = MatMul (s%d, w%d)" % (layer, layer, layer),
                  '"%svalue" = Concat <axis = 0> (t%d, "%svalue")' % (present, layer, past)]
        inputs += ['float[512,512] "%s%s"' % (past, kind) for kind in ("key", "value")]
        outputs += ['float[1024,512] "%s%s"' % (present, kind) for kind in ("key", "value")]
        weights.append("float[512,512] w%d = random(%d)" % (layer, layer))
        last = "t%d" % layer
    return model("(%s) => (%s) <%s> {\n%s\n}" % (", ".join(inputs), ", ".join(outputs),
                                                ", ".join(weights), "\n".join(nodes)))


def samples(bench, folder):
    write(bench.cwd, "decoder.onnx", decoder())
    kv = os.path.join(folder, "keep_kv_pairs.so")
    done = bench.run("--load-pass-plugin", kv, "--message-latency", "per-tensor", passes="keep-kv-pairs",
                     file="decoder.onnx")
    bench.check("keep-kv-pairs runs", done, OK, "caches of 2 layers")
    if done.returncode == OK:
        cut = [t["tensor"] for t in json.loads(done.stdout)["transfers"]]
        bench.tap.ok(cut == ["t0"], "keep-kv-pairs leaves the cut between the layers", str(cut))

    write(bench.cwd, "devices.json", json.dumps({"devices": [
        {"name": "npu0", "preset": "cpu"}, {"name": "cpu0", "preset": "cpu"}]}).encode())
    write(bench.cwd, "table.txt", b"# operator device factor\nSoftmax npu never\n")
    write(bench.cwd, "bad.txt", b"MatMul npu\n")
    write(bench.cwd, "soft.onnx", model("""
      (float[8,8] x) => (float[8,8] y) <float[8,8] w = random(8)> {
        a = Relu (x)
        b = MatMul (a, w)
        c = Softmax (b)
        d = MatMul (c, w)
        e = MatMul (d, w)
        y = MatMul (e, w)
      }"""))
    table = os.path.join(folder, "device_table.so")

    def with_table(name):
        return bench.run("--load-pass-plugin", table, "--devices", "devices.json",
                         passes="device-table" + name, file="soft.onnx")

    done = with_table(":file=table.txt")
    bench.check("device-table runs", done, OK)
    if done.returncode == OK:
        nodes = [stage["nodes"] for stage in json.loads(done.stdout)["stages"]]
        bench.tap.ok(nodes[0] <= 2, "device-table keeps Softmax off the npu", str(nodes))
    bench.check("device-table names a bad line", with_table(":file=bad.txt"), PLUGIN,
                "pass device-table failed", "bad.txt:1:")
    bench.check("device-table wants a table", with_table(""), PLUGIN, "a table is needed")


def main(tool, inspect, plugins, folder):
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-plugin-"))
    tap = Tap()
    bench = Bench(os.path.abspath(tool), cwd, tap)
    try:
        write(cwd, "m.onnx", chain(6))
        refusals(bench, plugins)
        runs(bench, plugins)
        inspects(bench, os.path.abspath(inspect), plugins)
        samples(bench, folder)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    sys.exit(tap.end())


if __name__ == "__main__":
    main(*sys.argv[1:])
