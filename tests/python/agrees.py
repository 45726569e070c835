#!/usr/bin/env python3
"""Options of Model.plan() mean what those of the command mean: agrees.py SPLIT CHECK-CERTIFICATE POLICY SCHEMA

For each option the plan as the command prints it and as Python has it are the same, and what is written
beside stages is the same, byte for byte. Every field of docs/manifest.schema.json is an attribute, and
what the command alone takes is listed here. TAP.
"""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "cli")]
import psplit
from bad_input import chain
from decoders import decoder
from tap import Tap
from text_model import make

tap = Tap()
ok = tap.ok

# What the command does besides planning, splitting, annotating and certifying, or before it; what is said otherwise.
COMMAND_ALONE = set("""help version quiet verbose log color json depfile plan-only print-pipeline help-passes
    completion clean all-transfers micro-batches limits schedule target probe autotune onnxruntime custom-ops optimization input
    load-pass-plugin training loss loss-output train freeze print-trainable gradient-of lower-gradient training-info
    optimizer recompute trained-weights weight-gradients batch-norm dropout max-text max-unpacked""".split())
# Hints of running, training and generating, of limits that only the commands lift, and of speed-ups.
HINTS_OF_COMMANDS = set("""NONE MEASURE_NODES MEASURE_PIPELINE MEASURE_BOTH ONNXRUNTIME MICRO_BATCHES INPUT INPUT_SIZE
    INPUT_SHAPE INPUT_SIZES STREAM TIMEOUT MAX_TEXT FEWER_MICRO_BATCHES WEIGHT_INPUTS DROPOUT TRAIN_DATA
    WEIGHT_GRADIENTS MAX_UNPACKED TRAINER TRAINING CUSTOM_OPS IDS LOGITS KEEP_TOGETHER PINS""".split())
SAID_OTHERWISE = {
    "stages": "stages", "output": "Plan.split", "force": "replace", "dim": "dims", "shape": "shapes", "pin": "pins",
    "state": "states", "non-contiguous": "segments", "max-graph-memory": "max_graph_bytes", "certificate": "certify",
    "annotate": "Plan.annotate", "annotate-as": "form",
}


def main(split, checker, policy, schema):
    def command(model, *options, cwd):
        done = subprocess.run([split, model, *options], cwd=cwd, capture_output=True, text=True, timeout=60)
        return done.stdout if done.returncode == 0 else done.stderr

    three = {"devices": [{"name": name, "preset": "cpu", "memory_bandwidth": bytes}
                         for name, bytes in (("a", 2e9), ("b", 8e9), ("c", 4e9))]}
    cases = (
        ("defaults", "m.onnx", {"stages": 3}, ("-k", "3")),
        ("dims", "m.onnx", {"stages": 3, "dims": {"batch": 64}}, ("-k", "3", "--dim", "batch=64")),
        ("shapes", "m.onnx", {"stages": 3, "shapes": {"x": (64, 8)}}, ("-k", "3", "--shape", "x=64,8")),
        ("a devices file", "m.onnx", {"devices": three}, ("--devices", "three.json")),
        ("device_order", "m.onnx", {"devices": three, "device_order": "given"},
         ("--devices", "three.json", "--device-order", "given")),
        ("overlap and messages", "m.onnx", {"stages": 3, "overlap": True, "message_latency": "per_pair"},
         ("-k", "3", "--overlap", "--message-latency", "per-pair")),
        ("segments", "m.onnx", {"devices": three, "stages": 2, "segments": 2},
         ("--devices", "three.json", "-k", "2", "--segments", "2")),
        ("as many segments as pay", "m.onnx", {"devices": three, "segments": "auto"},
         ("--devices", "three.json", "--non-contiguous")),
        ("replicas", "m.onnx", {"stages": 4, "replicas": "auto", "dims": {"batch": 4096}},
         ("-k", "4", "--replicas", "auto", "--dim", "batch=4096")),
        ("two replicas", "m.onnx", {"stages": 4, "replicas": 2, "dims": {"batch": 4096}},
         ("-k", "4", "--replicas", "2", "--dim", "batch=4096")),
        ("a memory limit", "d.onnx", {"max_bytes_per_stage": 1400 << 10, "context": 64},
         ("--max-bytes-per-stage", str(1400 << 10), "--context", "64")),
        # No power of two: 8 stages cannot all have work.
        ("a memory limit of six stages", "six.onnx", {"max_bytes_per_stage": 3 << 20},
         ("--max-bytes-per-stage", str(3 << 20))),
        ("slack", "d.onnx", {"stages": 3, "slack": 0, "context": 64}, ("-k", "3", "--slack", "0", "--context", "64")),
        ("keep_blocks", "d.onnx", {"stages": 3, "keep_blocks": True, "context": 64},
         ("-k", "3", "--keep-blocks", "--context", "64")),
        ("working points", "d.onnx",
         {"stages": 2, "context": 128, "batch": 2, "prefill": (64, 0.25), "sequences": 3},
         ("-k", "2", "--context", "128", "--batch", "2", "--prefill", "64:0.25", "--sequences", "3")),
        ("no_state", "d.onnx", {"stages": 2, "dims": {"past": 64, "new": 1}, "no_state": True},
         ("-k", "2", "--dim", "past=64", "--dim", "new=1", "--no-state")),
        ("states", "d.onnx", {"stages": 2, "context": 64, "no_state": True,
                              "states": {"present.0.key": "past_key_values.0.key"}},
         ("-k", "2", "--context", "64", "--no-state", "--state", "present.0.key=past_key_values.0.key")),
        ("pins", "m.onnx", {"stages": 2, "pins": {"make_m5": 1}}, ("-k", "2", "--pin", "make_m5=1")),
        ("keep_together", "d.onnx", {"stages": 2, "context": 64, "keep_together": ["/layers.1/*"]},
         ("-k", "2", "--context", "64", "--keep-together", "/layers.1/*")),
        ("tied_weights", "d.onnx", {"stages": 2, "context": 64, "tied_weights": "duplicate"},
         ("-k", "2", "--context", "64", "--tied-weights", "duplicate")),
        ("depth", "m.onnx", {"stages": 2, "depth": 7}, ("-k", "2", "--depth", "7")),
        ("objective", "m.onnx", {"stages": 2, "objective": "latency"}, ("-k", "2", "--objective", "latency")),
        ("solver and seed", "m.onnx", {"stages": 3, "solver": "anneal", "seed": 7, "threads": 1},
         ("-k", "3", "--solver", "anneal", "--seed", "7", "--threads", "1")),
        ("policy", "m.onnx", {"stages": 3, "policy": policy, "proposals": 3},
         ("-k", "3", "--policy", policy, "--proposals", "3")),
        ("passes", "m.onnx", {"stages": 3, "passes": "infer-shapes,cost,mark,partition"},
         ("-k", "3", "--passes", "infer-shapes,cost,mark,partition")),
        ("patterns of a file", "m.onnx", {"stages": 3, "passes": "infer-shapes,cost,mark,fuse:patterns=p.txt,partition"},
         ("-k", "3", "--passes", "infer-shapes,cost,mark,fuse:patterns=p.txt,partition")),
        ("inline weights", "d.onnx", {"stages": 2, "context": 64, "inline_weights": True},
         ("-k", "2", "--context", "64", "--weights", "inline")),
    )
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        os.chdir(root)
        (root / "m.onnx").write_bytes(chain(8))
        (root / "d.onnx").write_bytes(decoder(4))
        (root / "six.onnx").write_bytes(make("(float[batch,512] x0) => (float[batch,512] x6) <%s> {%s}" % (
            ", ".join("float[512,512] w%d = random(%d)" % (i, i) for i in range(6)),
            " ".join("x%d = MatMul (x%d, w%d)" % (i + 1, i, i) for i in range(6)))))
        (root / "three.json").write_text(json.dumps(three))
        (root / "p.txt").write_text("pattern bent-product\n  m = MatMul(x, _)\n  y = Relu(m)\n")
        # That these options are seen to do something.
        effects = {"replicas": lambda plan: any(stage.replicas > 1 and len(stage.devices) > 1 for stage in plan.stages),
                   "as many segments as pay": lambda plan: len({stage.device for stage in plan.stages}) <= 3,
                   "a memory limit": lambda plan: len(plan.stages) > 1,
                   "a memory limit of six stages": lambda plan: len(plan.stages) == 6,
                   "working points": lambda plan: len(plan.phases) == 2 and plan.stages[0].state_bytes}
        for title, model, options, arguments in cases:
            printed = command(model, *arguments, "--plan-only", "--json", "--quiet", cwd=root)
            try:
                made = psplit.open(model).plan(**options)
                plan = made.manifest if effects.pop(title, bool)(made) else f"without effect: {made}"
            except (psplit.Error, ValueError, TypeError) as error:
                plan = repr(error)
            same = isinstance(plan, dict) and printed.startswith("{") and json.loads(printed) == plan
            ok(same, f"{title}: the command's plan", f"{printed}\n{plan}")

        ok(not effects, "every effect was looked for", effects)
        model = psplit.open("m.onnx")
        plan = model.plan(3, certify=True)
        command("m.onnx", "-k", "3", "--plan-only", "--certificate", "c.json", cwd=root)
        plan.certificate().write(root / "p.json")
        ok(all((root / f"c.json{end}").read_bytes() == (root / f"p.json{end}").read_bytes()
               for end in ("", ".problem.json")), "a certificate is the command's")
        checked = subprocess.run([sys.executable, checker, "p.json.problem.json", "p.json"], capture_output=True, text=True)
        ok(checked.returncode == 0 and plan.certificate().bound_ns == plan.lower_bound_ns, "and holds", checked.stdout + checked.stderr)
        for form in ("onnx", "layer_ann"):
            command("m.onnx", "-k", "3", "--annotate", f"c-{form}.onnx", "--annotate-as", form, cwd=root)
            plan.annotate(root / f"p-{form}.onnx", form)
            ok((root / f"c-{form}.onnx").read_bytes() == (root / f"p-{form}.onnx").read_bytes(), f"annotated as {form}")
        providers = {"devices": [{"name": "a", "preset": "cpu", "session": {"provider": "CUDAExecutionProvider"}},
                                 {"name": "b", "preset": "cpu"}]}
        (root / "two.json").write_text(json.dumps(providers))
        said = command("m.onnx", "--devices", "two.json", "--annotate", "names.txt", "--annotate-as", "names", cwd=root)
        try:
            names = model.plan(devices=providers).name_assignment()
        except psplit.Error as error:
            names = repr(error)
        ok((root / "names.txt").exists() and (root / "names.txt").read_text() == names, "names for ONNX Runtime", said + names)
        ok(plan.page().startswith("<!doctype html>") and "m.onnx" in plan.page(), "a page", plan.page()[:200])
        try:
            model.plan(2).certificate()
            ok(False, "no certificate without certify")
        except psplit.Error as error:
            ok(error.code == "USAGE", "no certificate without certify", error)

        command("m.onnx", "-k", "2", "-o", "trained", "--training", "--loss", "mse:", cwd=root)
        for title, call, words in (
                ("too many stages", lambda: model.plan(99), "a smaller number of stages may do"),
                ("no such option of a pass", lambda: model.plan(2, passes="partition:guess=1"), "docs/passes.md lists them"),
                ("no costs", lambda: model.plan(2, costs={}), "docs/costs/measured.md says what a table of costs is"),
                ("stages for training", lambda: psplit.merge("trained", "whole.onnx"),
                 "onnx-pipeline-train --export writes trained weights into the model")):
            try:
                hint = call()
            except psplit.Error as error:
                hint = error.hint
            ok(hint == words, f"{title}: what helps", hint)

        defined = json.loads(pathlib.Path(schema).read_text())["$defs"]
        missing = [name for name in defined["plan"]["properties"] if not hasattr(plan, name)]
        ok(not missing and set(defined["plan"]["properties"]) <= set(type(plan).__annotations__),
           "a plan has all fields of the schema, with types", missing)
        fields = {field.name for field in dataclasses.fields(psplit.Stage)}
        ok(fields == set(defined["stage"]["properties"]), "so has a stage", fields ^ set(defined["stage"]["properties"]))

    help_text = subprocess.run([split, "--help"], capture_output=True, text=True).stdout
    import inspect
    taken = {name for call in (psplit.Model.plan, psplit.Plan.split, psplit.Plan.annotate, psplit.open)
             for name in inspect.signature(call).parameters}
    unknown = [option for option in re.findall(r"^  (?:-\w, |    )--([\w-]+)", help_text, re.M)
               if option not in COMMAND_ALONE and option not in SAID_OTHERWISE and option.replace("-", "_") not in taken]
    ok(not unknown, "every option of the command is one of Python's, or known to be the command's alone", unknown)
    ok(all("." in name or name in taken for name in SAID_OTHERWISE.values()), "what is said otherwise is said")

    source = pathlib.Path(HERE, "..", "..")
    listed = re.findall(r"^  PSPLIT_HINT_(\w+)", (source / "include/psplit/base.h").read_text(), re.M)
    named = set(re.findall(r'\[PSPLIT_HINT_(\w+)\] = "\1"', (source / "python/psplit/support.c").read_text()))
    ok(named == set(psplit._HINTS), "every hint that Python hears of has words", named ^ set(psplit._HINTS))
    ok(named | HINTS_OF_COMMANDS == set(listed) and not named & HINTS_OF_COMMANDS,
       "every hint of the library has words, or is known to be the commands' alone", (named | HINTS_OF_COMMANDS) ^ set(listed))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
