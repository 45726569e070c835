#!/usr/bin/env python3
"""Promised beside real speed-up: speed_up_by_clock.py BUILD [K [ROUNDS [MODEL...]]]

As speed_up.py, for models whose stages cannot be run by themselves as well. Each model of the cache is profiled, split in K by these costs for devices whose links take no time, and
the whole and each stage by itself run by turns with one thread. Times are the processor's, which do not
count what others had it for: that of a run of many micro-batches less that of a run of few, the least of
ROUNDS. Real: the whole's time over the slowest stage's; sum: of the stages over the whole. Where a stage
cannot be run by itself (its inputs have sizes that no dimension names), the stages run behind each other, one
at a time, and times are those of the clock: such a row is marked. No test.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

import speed_up

MODELS = ["resnet50", "densenet121", "mobilenet_v3_small", "retinaface", "ppocr_det", "ppocr_rec",
          "moonshine_tiny_encoder", "vit_b_16"]


def cpu_s(command):
    """Seconds of processor time that a command took."""
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execv(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(" ".join(command))
    return usage.ru_utime + usage.ru_stime


def main(build, k="4", rounds="3", *wanted):
    tool, library, cache, known, tmp, devices = speed_up.workplace(build, k)
    path = lambda name: os.path.join(tmp, name)

    def split(model, out, n, *args):
        subprocess.run([tool["split"], model, "-k", str(n), "-o", out, "-q", "--force", "--boundary",
                        "io", *args], check=True, capture_output=True)
        return out

    def alone(model, out, sizes):
        """A stage as a model of its own, and the sizes of its inputs: its dimensions are some."""
        for given in (sizes, []):
            try:
                return split(model, out, 1, *given), given
            except subprocess.CalledProcessError:
                pass
        raise RuntimeError(model)

    def time_ns(directory, sizes, few, many):
        seconds = [cpu_s([tool["run"], directory, "--random", "-q", "--onnxruntime", library, "-m",
                          str(n), *sizes]) for n in (few, many)]
        return 1e9 * (seconds[1] - seconds[0]) / (many - few)

    def by_turns_ns(directory, sizes):
        """Of each stage, in a pipeline in which no two compute at once; the same inputs each time."""
        done = subprocess.run([tool["run"], directory, "--random", "--json", "--one-at-a-time", "-q",
                               "--onnxruntime", library, "-m", "3", *sizes],
                              check=True, capture_output=True, text=True)
        return [stage["busy_ns"] for stage in json.loads(done.stdout)["stages"]]

    print("| model | whole ms | promised | without layouts | real | promised / real | sum / whole |\n"
          "|---|---|---|---|---|---|---|")
    off, off_without, sums = [], [], []
    for name in wanted or MODELS:
        model = os.path.join(cache, name + ".onnx")
        if not os.path.exists(model):
            continue
        sizes = [text for dim in known[name].get("dims", {}).items()
                 for text in ("--dim", "%s=%d" % dim)]
        subprocess.run([tool["run"], "--profile", path("costs.json"), model, "--onnxruntime", library,
                        "-m", "20", *sizes], check=True, capture_output=True)
        parts = split(model, path("parts"), k, "--devices", devices, "--costs", path("costs.json"), *sizes)
        with open(os.path.join(parts, "pipeline.json")) as file:
            manifest = json.load(file)
        plan = manifest["plan"]
        runs = [(split(model, path("whole"), 1, *sizes), sizes)]
        clock = False
        few = 3
        many = few + max(10, min(400, int(1e9 / max(1, plan["single_device_ns"]))))
        least = [float("inf")] * (1 + len(manifest["stages"]))
        try:
            runs += [alone(os.path.join(parts, stage["file"]), path("alone%d" % i), sizes)
                     for i, stage in enumerate(manifest["stages"])]
            for _ in range(int(rounds)):
                least = [min(ns, time_ns(*run, few, many)) for ns, run in zip(least, runs)]
        except RuntimeError:  # a stage whose inputs have sizes that no dimension names
            clock = True
            for _ in range(int(rounds)):
                now = by_turns_ns(runs[0][0], sizes) + by_turns_ns(parts, sizes)
                least = [min(ns, more) for ns, more in zip(least, now)]
        whole, stages = least[0], least[1:]
        real, total = whole / max(stages), sum(stages) / whole
        without = plan["single_device_ns"] / plan["bottleneck_ns"]
        off.append(abs(plan["speed_up"] / real - 1))
        off_without.append(abs(without / real - 1))
        sums.append(total)
        print("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |" % (
            name + (" (clock)" if clock else ""), whole / 1e6, plan["speed_up"], without, real, plan["speed_up"] / real, total), flush=True)
    print("| median | | %.0f %% off | %.0f %% off | | | %.2f |" % (
        100 * statistics.median(off), 100 * statistics.median(off_without), statistics.median(sums)))
    shutil.rmtree(tmp)


if __name__ == "__main__":
    main(*sys.argv[1:])
