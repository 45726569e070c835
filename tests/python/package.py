#!/usr/bin/env python3
"""import psplit, as a program uses it: plans, splits, proofs, merges, errors, Ctrl-C. Results as TAP."""
import gc
import json
import os
import pathlib
import pickle
import signal
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import psplit
from tap import Tap
from text_model import make

tap = Tap()
ok = tap.ok


def raises(kind, name, call, code=None, says=""):
    try:
        result = call()
    except kind as error:
        good = (code is None or error.code == code) and says in str(error)
        ok(good, name, repr(error))
        return error
    ok(False, name, f"nothing was raised: {result!r}")
    return None


TEXT = """(float[N, 64] x) => (float[N, 64] y) {
  a = Exp (x)
  b = Relu (a)
  c = Sqrt (b)
  d = Sin (c)
  e = Cos (d)
  y = Neg (e)
}"""
data = make(TEXT)
LOG = []

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    path = root / "model.onnx"
    path.write_bytes(data)
    ok(psplit.version().count(".") == 2, "it has a version")
    ok("cpu" in psplit.presets() and all(psplit.presets().values()), "presets are listed with what they are")

    model = psplit.open(path)
    plan = model.plan(3, dims={"N": 8}, log=lambda *line: LOG.append(line))
    ok((plan.overlap, plan.message_latency) == (False, "per_pair"), "a link's latency counts once for a pair of stages")
    other = model.plan(3, dims={"N": 8}, overlap=True, message_latency="per_tensor")
    ok((other.overlap, other.message_latency) == (True, "per_tensor"), "what a manifest leaves out has its value", other.manifest["plan"])
    raises(ValueError, "a latency that there is not is refused", lambda: model.plan(3, message_latency="pair"), says="'per_pair'")
    named = psplit.split(model, root / "named", 2, dims={"N": 8}, name_template="part{stage:02}.onnx")
    ok(sorted(file.name for file in (root / "named").glob("*.onnx")) == ["part00.onnx", "part01.onnx"],
       "files have the names of the template", list((root / "named").iterdir()))
    ok(psplit.verify(root / "named", model).stages == len(named.stages), "and are the model")
    raises(psplit.Error, "a template without a stage is refused", lambda: plan.split(root / "no", name_template="x.onnx"),
           "USAGE", "{stage}")
    ok(len(plan.stages) == 3 and sum(stage.nodes for stage in plan.stages) == 6, "a plan has its stages", plan.stages)
    ok(plan.proved_optimal is True and plan.lower_bound_ns == plan.bottleneck_ns, "attributes are those of the manifest")
    ok(plan.bottleneck_ns == max(stage.load_ns for stage in plan.stages), "the slowest stage is the bottleneck")
    ok(all(line[0] in ("note", "warning", "progress") for line in LOG), "what is said has a severity", LOG)
    ok("headline" in dir(plan) and "3 stages" in repr(plan), "it shows itself", repr(plan))
    raises(AttributeError, "what a plan has not is an AttributeError", lambda: plan.nonsense)
    ok([(t.source, t.target) for t in plan.transfers] == [(0, 1), (1, 2)], "transfers join the stages", plan.transfers)
    ok(plan.stages[1].inputs[0].other == (0,) and plan.stages[2].outputs[0].other == ("model",), "ports say where from and to")

    manifest = plan.split(root / "parts")
    ok(sorted(os.listdir(root / "parts")) == ["pipeline.json", "stage0.onnx", "stage1.onnx", "stage2.onnx"], "the stages are written")
    ok(manifest == json.loads((root / "parts/pipeline.json").read_text()), "what is returned is what is written")
    proof = psplit.verify(root / "parts", model)
    ok((proof.stages, proof.nodes, proof.transfers) == (3, 6, 2), "they are proved", proof)
    merged = psplit.merge(root / "parts", root / "again.onnx", path)
    ok(merged.nodes == 6 and merged.renamed == 0, "they are merged", merged)
    ok(psplit.verify(root / "again.onnx", path).nodes == 6, "and are the model again")
    ok(psplit.verify(root / "again.onnx", psplit.open(data)).nodes == 6, "as they are of its bytes")

    again = psplit.split(data, root / "io", 2, boundary="io", dims={"N": 8})
    ok(again.transfers[0].tensor == "c" or len(again.transfers) == 1, "one call splits bytes", again.transfers)
    devices = {"devices": [{"name": "a", "preset": "cpu"}, {"name": "b", "preset": "cpu"}]}
    ok([s.device for s in psplit.open(data).plan(devices=devices).stages] == ["a", "b"], "devices may be a dict")
    pinned = model.plan(2, dims={"N": 8}, solver="slice", threads=2, seed=7)
    ok(len(pinned.stages) == 2, "solver, threads and seed are taken")
    unsaid = psplit.open(data, inline_if=None).plan(2, dims=None, shapes=None, pins=None, keep_together=None, states=None,
                                                    costs=None)
    ok(unsaid.manifest == psplit.open(data).plan(2).manifest, "None says as little as an argument left out")
    held = psplit.open(data).plan(2, dims={"N": 8})
    gc.collect()
    ok(held.split(root / "held")["stages"][0]["nodes"] > 0, "a plan keeps its model")

    error = raises(psplit.Error, "a place that is taken is said", lambda: plan.split(root / "parts"), "IO", "replace=True")
    copy = pickle.loads(pickle.dumps(error))
    ok((copy.code, copy.message, copy.hint) == (error.code, error.message, error.hint), "errors travel between processes")
    plan.split(root / "parts", replace=True, verify=False)
    ok(True, "replace replaces")
    raises(psplit.Error, "no such file", lambda: psplit.open(root / "nowhere.onnx"), "IO", "nowhere.onnx")
    raises(psplit.Error, "no model", lambda: psplit.open(b"nonsense"), "MALFORMED")
    raises(psplit.Error, "no such dimension", lambda: model.plan(2, dims={"M": 1}), "USAGE", "N")
    raises(psplit.Error, "no such pattern", lambda: model.plan(2, pins={"zz*": 1}), "USAGE", "pins: zz*")
    raises(psplit.Error, "too many stages", lambda: model.plan(2, pins={"*": 7}))
    raises(psplit.Error, "devices that are none", lambda: model.plan(devices={"devices": []}), "INVALID")
    raises(ValueError, "no number of stages", lambda: model.plan())
    raises(ValueError, "no stages", lambda: model.plan(0))
    raises(ValueError, "an unknown word", lambda: model.plan(2, objective="speed"), says="'latency'")
    raises(ValueError, "a number that is too large", lambda: model.plan(2**32 + 2), says="from 0 to 4294967295")
    raises(FileNotFoundError, "devices that there are not", lambda: model.plan(2, devices="gpu"), says="presets are cpu, ")
    raises(ValueError, "a number below 0", lambda: model.plan(2, depth=-1), says="depth is a number")
    raises(TypeError, "a size that is no whole number", lambda: model.plan(2, dims={"N": 2.5}))
    raises(TypeError, "a stage that is no whole number", lambda: model.plan(2, pins={"*": 0.5}))
    raises(ValueError, "no segments", lambda: model.plan(2, segments=0), says="segments")
    raises(ValueError, "a word for replicas", lambda: model.plan(2, replicas="all"), says="'auto'")
    raises(ValueError, "more slack than all", lambda: model.plan(2, slack=101), says="slack")
    raises(ValueError, "a time that is none", lambda: model.plan(2, time_limit=-1.0), says="time_limit")
    raises(ValueError, "a part of steps that is all", lambda: model.plan(2, context=8, prefill=(4, 1)), says="prefill")
    raises(ValueError, "prompts without a context", lambda: model.plan(2, prefill=(4, 0.5)), says="context")
    raises(psplit.Error, "a context of what is no decoder", lambda: model.plan(2, context=8), "USAGE", "not a decoder")
    raises(psplit.Error, "a shape of no input", lambda: model.plan(2, shapes={"z": (1, 2)}), "USAGE", "z")
    raises(psplit.Error, "a shape of another rank", lambda: model.plan(2, shapes={"x": (1, 2, 3)}), "USAGE", "shapes: x")
    raises(psplit.Error, "a state that is none", lambda: model.plan(2, states={"y": "z"}), "USAGE", "states: y=z")
    raises(ValueError, "a learned solver without a policy", lambda: model.plan(2, solver="drlpp"), says="policy")
    raises(psplit.Error, "a policy that is none", lambda: model.plan(2, policy=path), "MALFORMED")
    raises(psplit.Error, "no memory is enough", lambda: model.plan(max_bytes_per_stage=1), "INFEASIBLE")
    raises(ValueError, "blocks twice", lambda: model.plan(2, keep_blocks=True, passes="partition"), says="'blocks'")
    raises(ValueError, "a NUL", lambda: model.plan(2, solver="a\0b"))
    raises(ValueError, "an annotation that there is not", lambda: plan.annotate(root / "a.onnx", "json"), says="'olive'")
    raises(psplit.Error, "an annotated model in place of a file", lambda: plan.annotate(path), "IO")
    raises(TypeError, "an unknown option", lambda: model.plan(2, speed=1))
    raises(TypeError, "a type that is wrong", lambda: model.plan("2"))
    other = psplit.open(make(TEXT.replace("Sqrt", "Abs")))
    raises(psplit.Error, "another model is a mismatch", lambda: psplit.verify(root / "parts", other), "MISMATCH", "node")
    raises(FileNotFoundError, "a devices file that is not there", lambda: model.plan(devices=root / "d.json"))
    raises(TypeError, "handles cannot be made by hand", lambda: type(model._handle)())

    # Threads plan side by side; only the main thread hears Ctrl-C.
    results = []
    workers = [threading.Thread(target=lambda: results.append(psplit.open(data).plan(3, dims={"N": 8}).bottleneck_ns))
               for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    ok(results == [plan.bottleneck_ns] * 4, "threads get the same plan", results)

    lines = ["(float[64] x) => (float[64] y) {"]
    names = ["x"]
    for i in range(600):
        lines.append(f"  v{i} = Add ({names[(i * 7919) % len(names)]}, {names[-1]})")
        names.append(f"v{i}")
    lines += [f"  y = Neg ({names[-1]})", "}"]
    hard = psplit.open(make("\n".join(lines)))
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        for _ in range(100):
            hard.plan(16, time_limit=1e6)
        ok(False, "Ctrl-C ends a plan")
    except KeyboardInterrupt:
        ok(True, "Ctrl-C ends a plan")
    timer.join()
    ok(model.plan(2, dims={"N": 8}).stages, "and the next one is made")

sys.exit(tap.end())
