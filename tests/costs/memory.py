#!/usr/bin/env python3
"""What a plan says of memory is what a process takes: memory.py SPLIT RUN MAKE_MODEL LIBRARY CACHE

Each model of the cache that fits is split into one stage and run; the peak of the process, less that of
one that runs next to nothing, is held against memory_bytes: said at least 0.95 and at most 1.3 times what
it was, but for one. What --weights external is said to save is held against what it does. Then all are
split for devices with a limit, and each stage is run by itself: none goes over it. Peaks are counted by the
kernel (ru_maxrss). They do not hang on how busy the machine is, but on where the heap happens to place things: a
longer path alone makes a tenth of difference. So where a peak is below what is said it is taken again, from
directories of longer names, and the largest counts. TAP.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

TINY = '<ir_version: 8, opset_import: ["": 17]> g (float[1,4] x) => (y) {a = Relu (x) y = Abs (a)}'
# Name, dimensions; None where the model fixes all. Sizes are those of models.json or larger.
MODELS = [
    ("resnet50", {"batch": 1}), ("densenet121", {"batch": 1}), ("mobilenet_v3_small", {"batch": 1}),
    ("vit_b_16", {"batch": 1}), ("retinaface", {}), ("ppocr_cls", "models"), ("ppocr_rec", "models"),
    ("ppocr_det", "models"), ("moonshine_tiny_encoder", "models"),
    ("densenet121", {"batch": 4}), ("vit_b_16", {"batch": 4}),
    ("ppocr_rec", {"p2o.DynamicDimension.0": 4, "p2o.DynamicDimension.1": 1280}),
]
LIMITED = [("resnet50", {"batch": 1}, 3, 130), ("densenet121", {"batch": 1}, 2, 80),
           ("vit_b_16", {"batch": 1}, 3, 240)]
# The others in two, with what these need if nothing limits them, so that the limit just holds.
LIMITED += [(name, dims, 2, None) for name, dims in MODELS if (name, dims) not in [each[:2] for each in LIMITED]]
# Also with weights in the stage, which runtimes copy, and in a file of their own.
PLACES = [("resnet50", {"batch": 1}), ("densenet121", {"batch": 1}), ("vit_b_16", {"batch": 1})]
LEAST, MOST = 0.95, 1.3
PLACEMENTS = 6  # of the heap, that are tried for a peak


def peak(*command):
    """Bytes that the command had in memory at most; an error where it failed."""
    os.environ.pop("MALLOC_PERTURB_", None)  # writes to memory that nobody would touch
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1):
            os.dup2(null, fd)
        os.execv(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError("%s: status %d" % (" ".join(command), status))
    return usage.ru_maxrss << 10


class Tools:
    def __init__(self, split, run, library, directory):
        self.split, self.run, self.library, self.directory = split, run, library, directory

    def stages(self, model, n, sizes, *more):
        """A split of the model, and the stages of its manifest."""
        out = os.path.join(self.directory, "out")
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([self.split, model, "-k", str(n), "-o", out, "-q", "--boundary", "io",
                               *sizes, *more], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        with open(os.path.join(out, "pipeline.json")) as file:
            return out, json.load(file)["stages"]

    def peak(self, directory, sizes):
        return peak(self.run, directory, "--random", "-m", "4", "--onnxruntime", self.library, *sizes)

    def largest_peak(self, directory, sizes, enough):
        """The largest of the peaks with the heap in other places, until one is enough."""
        largest = self.peak(directory, sizes)
        for i in range(1, PLACEMENTS):
            if largest >= enough:
                break
            longer = directory + i * 8 * "-"
            os.rename(directory, longer)
            largest = max(largest, self.peak(longer, sizes))
            os.rename(longer, directory)
        return largest

    def said_to_be_saved(self, model, sizes):
        """Bytes that the plan of one stage says --weights external saves; None where it says nothing."""
        done = subprocess.run([self.split, model, "-k", "1", "--plan-only", *sizes],
                              check=True, capture_output=True, text=True)
        said = re.search(r"--weights external would save about ([\d.]+) MiB of memory", done.stdout)
        return float(said[1]) * 2**20 if said else None

    def peak_alone(self, stage, sizes):
        """Of a stage's file as a model of its own, which has these sizes or names none; None where its
        inputs have sizes without a name."""
        for given in (sizes, []):
            try:
                return self.peak(self.stages(stage, 1, given)[0], given)
            except RuntimeError:
                continue
        return None


def options(dims):
    return [text for name, n in dims.items() for text in ("--dim", "%s=%d" % (name, n))]


def main(split, run, make_model, library, cache):
    cache = os.environ.get("PSPLIT_MODEL_CACHE", cache)
    with open(os.path.join(os.path.dirname(__file__), "../models/models.json")) as file:
        known = json.load(file)["models"]
    tap = Tap()
    if not os.path.exists(library):
        print("1..0 # SKIP onnxruntime-node has no library here")
        return
    with tempfile.TemporaryDirectory(prefix="psplit-memory-") as directory:
        tools = Tools(os.path.abspath(split), os.path.abspath(run), library, directory)
        tiny = os.path.join(directory, "tiny.onnx")
        text = tiny + "txt"
        with open(text, "w") as file:
            file.write(TINY)
        subprocess.run([make_model, tiny, text], check=True)
        out = tools.stages(tiny, 1, [])[0]
        nothing = sorted(tools.peak(out, []) for _ in range(3))[1]
        outside, n_models = [], 0

        def compare(name, model, sizes, *more):
            """Bytes said and true; what is too far off is noted."""
            nonlocal n_models
            out, stages = tools.stages(model, 1, sizes, *more)
            said = stages[0]["memory_bytes"]
            true = tools.largest_peak(out, sizes, nothing + said / MOST) - nothing
            n_models += 1
            line = "%s %s: said %.1f MB, was %.1f: %.2f" % (name, " ".join((*sizes[1::2], *more)), said / 1e6,
                                                            true / 1e6, said / true)
            print("# " + line, flush=True)
            if not LEAST * true <= said <= MOST * true:
                outside.append(line)
            return true

        for name, dims in MODELS:
            model = os.path.join(cache, name + ".onnx")
            if not os.path.exists(model):
                continue
            sizes = options(known[name].get("dims", {}) if dims == "models" else dims)
            compare(name, model, sizes)
            if (name, dims) in PLACES:
                copied = compare(name, model, sizes, "--weights", "inline")
                out, _ = tools.stages(model, 1, sizes, "--weights", "external")
                mapped = tools.peak(out, sizes) - nothing
                tap.ok(mapped < copied, "%s: %.1f MB with --weights external, %.1f with inline"
                       % (name, mapped / 1e6, copied / 1e6))
                saved = tools.said_to_be_saved(model, sizes)
                if saved is not None:
                    tap.ok(0.6 * (copied - mapped) <= saved <= 1.5 * (copied - mapped),
                           "%s: said to save %.1f MB, did %.1f" % (name, saved / 1e6, (copied - mapped) / 1e6))
        if not n_models:
            tap.skip("memory of models", "the model cache is empty")
            tap.end()
            return
        tap.ok(len(outside) <= 1, "of %d runs, what is said of all but one is between %s and %s of what is true"
               % (n_models, LEAST, MOST), "\n".join(outside))
        for name, dims, n, limit in LIMITED:
            model = os.path.join(cache, name + ".onnx")
            if not os.path.exists(model):
                continue
            sizes = options(known[name].get("dims", {}) if dims == "models" else dims)
            if limit is None:
                limit = -(-max(stage["memory_bytes"] for stage in tools.stages(model, n, sizes)[1]) // 10**6)
            devices = os.path.join(directory, "devices.json")
            with open(devices, "w") as file:
                json.dump({"devices": [{"name": "d%d" % i, "preset": "cpu", "memory_bytes": limit * 10**6}
                                       for i in range(n)]}, file)
            out, stages = tools.stages(model, n, sizes, "--devices", devices)
            kept = os.path.join(directory, "kept")
            shutil.rmtree(kept, ignore_errors=True)
            os.rename(out, kept)
            over, n_run = [], 0
            for stage in stages:
                true = tools.peak_alone(os.path.join(kept, stage["file"]), sizes)
                if true is None:
                    print("# %s stage %d: cannot be run by itself" % (name, stage["index"]), flush=True)
                    continue
                true -= nothing
                n_run += 1
                print("# %s stage %d: said %.1f MB, was %.1f" % (name, stage["index"], stage["memory_bytes"] / 1e6,
                                                             true / 1e6), flush=True)
                if true > limit * 10**6:
                    over.append("stage %d: %d bytes" % (stage["index"], true))
            tap.ok(not over and n_run, "%s in %d stages of at most %d MB: of %d that run by themselves none takes more"
                   % (name, n, limit, n_run), "\n".join(over))
    tap.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
