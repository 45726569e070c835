#!/usr/bin/env python3
"""Promised beside measured speed-up: speed_up.py BUILD [K [ROUNDS [MODEL...]]]

Each model is profiled and split in K by these costs for devices whose links take no time. The whole and
the stages then run by turns with one thread (alternate.mjs). Real: the least time of the whole over the
largest of the stages' least; sum: of the stages' over the whole's. A MODEL is a name in models.json, or
FILE.onnx[:DIM=N...]. No test: nothing fails.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ["resnet50", "densenet121", "mobilenet_v3_small", "retinaface", "ppocr_det", "ppocr_rec", "ppocr_cls"]


def find(text, cache, known):
    """Name, file and sizes of a model."""
    if text in known:
        dims = known[text].get("dims", {})
        return text, os.path.join(cache, text + ".onnx"), ["%s=%d" % dim for dim in dims.items()]
    path, *dims = text.split(":")
    return os.path.basename(path)[:-len(".onnx")], path, dims


def workplace(build, k):
    """The commands, ONNX Runtime, where models are and what is known of them, a directory to work in and the
    file of k devices in it."""
    tool = {name: os.path.join(os.path.abspath(build), "tools", "onnx-pipeline-" + name)
            for name in ("split", "run")}
    library = os.environ.get("PSPLIT_ONNXRUNTIME") or os.path.join(
        HERE, "../e2e/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1")
    cache = os.environ.get("PSPLIT_MODEL_CACHE") or os.path.join(HERE, "../../.cache/models")
    with open(os.path.join(HERE, "../models/models.json")) as file:
        known = json.load(file)["models"]
    tmp = tempfile.mkdtemp(prefix="psplit-speed-")
    devices = os.path.join(tmp, "devices.json")
    with open(devices, "w") as file:
        json.dump({"devices": [{"name": "d%d" % i, "preset": "cpu-avx512"} for i in range(int(k))],
                   "topology": {"same_host": {"bytes_per_second": 1e15, "latency_ns": 0}}}, file)
    return tool, library, cache, known, tmp, devices


def main(build, k="4", rounds="50", *wanted):
    tool, library, cache, known, tmp, devices = workplace(build, k)
    path = lambda name: os.path.join(tmp, name)

    def split(model, out, n, *args):
        subprocess.run([tool["split"], model, "-k", str(n), "-o", out, "-q", "--force", "--slack", "0", *args],
                       check=True, capture_output=True)
        with open(os.path.join(out, "pipeline.json")) as file:
            return json.load(file)

    print("| model | whole ms | promised | without layouts | measured | promised / measured | sum / whole |\n"
          "|---|---|---|---|---|---|---|")
    off, off_without, sums = [], [], []
    for text in wanted or MODELS:
        name, model, dims = find(text, cache, known)
        sizes = [arg for dim in dims for arg in ("--dim", dim)]
        if not os.path.exists(model):
            continue
        turns = int(rounds)
        for n_runs in (5, None):  # the first tells how small the model is: short ones take more turns
            subprocess.run([tool["run"], "--profile", path("costs.json"), model, "--onnxruntime", library,
                            "-m", str(n_runs or 4 * turns), *sizes], check=True, capture_output=True)
            with open(path("costs.json")) as file:
                turns = max(turns, min(1000, int(1e9 / max(1, json.load(file)["total_ns"]))))
        manifest = split(model, path("parts"), k, "--boundary", "io", "--devices", devices,
                         "--costs", path("costs.json"), *sizes)
        plan, stages = manifest["plan"], manifest["stages"]
        whole, *times = json.loads(subprocess.run(
            ["node", os.path.join(HERE, "alternate.mjs"), str(turns), model, path("parts"), *dims],
            check=True, capture_output=True, text=True).stdout)
        real, total = whole / max(times), sum(times) / whole
        without = plan["single_device_ns"] / max(s["load_ns"] - s.get("layout_ns", 0) for s in stages)
        off.append(abs(plan["speed_up"] / real - 1))
        off_without.append(abs(without / real - 1))
        sums.append(total)
        print("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |" % (
            name, whole / 1e6, plan["speed_up"], without, real, plan["speed_up"] / real, total), flush=True)
        if os.environ.get("STAGES"):  # of each stage: measured and promised part of the whole
            print("  " + " ".join("%.3f/%.3f" % (t / whole, s["load_ns"] / plan["single_device_ns"])
                                  for t, s in zip(times, stages)), flush=True)
    print("| median | | %.0f %% off | %.0f %% off | | worst %.0f %% | %.2f |" % (
        100 * statistics.median(off), 100 * statistics.median(off_without), 100 * max(off),
        statistics.median(sums)))
    shutil.rmtree(tmp)


if __name__ == "__main__":
    main(*sys.argv[1:])
