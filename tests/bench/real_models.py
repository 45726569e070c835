#!/usr/bin/env python3
"""Gap of the plans of real models: one line each, then the median gap and the geometric mean of
bound / value.

    real_models.py [-k STAGES] [--split PROGRAM] [--message-latency WHAT] MODEL.onnx...

Bound and value are the partitioner's own: copying nodes afterwards (replicate) is left out, because
it makes a plan better than the bound it was proved with."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

PASSES = "infer-shapes,cost,mark,attach,fuse,coarsen,partition"


def plan(program, model, stages, latency):
    command = [program, model, "-k", str(stages), "--plan-only", "--json", "--quiet",
               "--passes", PASSES, "--message-latency", latency]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1], seconds
    return json.loads(done.stdout)["plan"], "", seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", "--stages", type=int, default=16)
    parser.add_argument("--message-latency", default="per-pair")
    parser.add_argument("--split", default="build/tools/onnx-pipeline-split")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    gaps, ratios = [], []
    print(f"{'model':40} {'value us':>14} {'bound us':>14} {'gap %':>8} {'s':>7}  solver")
    for model in sorted(options.models, key=os.path.basename):
        name = os.path.basename(model)
        result, error, seconds = plan(options.split, model, options.stages, options.message_latency)
        if not result:
            print(f"{name:40} {error}")
            continue
        value, bound = result["bottleneck_ns"], result["lower_bound_ns"]
        gaps.append(100 * (value - bound) / value if value else 0)
        ratios.append(bound / value if value else 1)
        print(f"{name:40} {value / 1e3:14.1f} {bound / 1e3:14.1f} {gaps[-1]:8.3f} {seconds:7.2f}"
              f"  {result['solver']}")
    if not gaps:
        return 1
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(gaps)} models, K = {options.stages}: median gap {statistics.median(gaps):.3f} %, "
          f"{sum(g == 0 for g in gaps)} proved, geometric mean of bound / value {mean:.4f}")
    return 0


sys.exit(main())
