#!/usr/bin/env python3
"""Planned time of segments beside greedy islands and one device: segments.py BUILD MODEL[:DIM=N,...]...

A made-up second provider is ten times as fast as the CPU at every node, a crossing takes 200 us at
each end, and a fifth of each model's operators, drawn by name, it does not support. Prints, for each
model, what the plan (--non-contiguous, latency) takes, what the CPU alone, and what greedy islands
take: all that the provider supports goes there, as runtimes place nodes. "over" is how much faster
the plan is than the better of the two, "at most" how much faster any placement could be: the same
over the plan's lower bound. Fails where a plan is slower than either. SEEDS (default 3) draws for
each model; END_NS (default 200000) is what a tensor takes at each end besides its bytes.
"""
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

CPU = {"name": "cpu", "flops_per_second": {"float32": 9.6e10}, "memory_bandwidth": 1.6e10,
       "overhead_ns": 1000}
NPU = {"name": "npu", "flops_per_second": {"float32": 9.6e11}, "memory_bandwidth": 1.6e11,
       "overhead_ns": 100}
LINKS = {"same_host": {"bytes_per_second": 8e9, "latency_ns": int(os.environ.get("END_NS", "200000"))}}
FRAGMENTED = 8  # islands


def planned(split, model, dims, devices, folder, *options):
    """Latency in ns, number of stages, bound; None where there is no plan."""
    file = os.path.join(folder, "devices.json")
    with open(file, "w") as out:
        json.dump({"devices": devices, "topology": LINKS}, out)
    done = subprocess.run([split, model, *dims, "--devices", file, "--plan-only", "--json", "-q",
                           "--objective", "latency", *options], capture_output=True, text=True)
    if done.returncode:
        return None
    made = json.loads(done.stdout)
    return made["plan"]["latency_ns"], len(made["stages"]), made["plan"]["lower_bound_ns"]


def operators(inspect, model, dims):
    """Names of all operators of the main graph, with their domains."""
    text = subprocess.run([inspect, model, *dims, "--level", "operators", "--format", "json"],
                          capture_output=True, text=True, check=True).stdout
    found = {(node["domain"], node["op"]) for node in json.loads(text)["operators"]
             if not node["constant"] and not node["dead"]}
    return sorted(".".join(filter(None, each)) for each in found)


def main(argv):
    if len(argv) < 3:
        sys.exit("usage: segments.py BUILD MODEL[:DIM=N,...]...")
    split, inspect = (os.path.join(argv[1], "tools", "onnx-pipeline-" + each)
                      for each in ("split", "inspect"))
    ratios, overs, mosts, worse = [], [], [], 0
    print("%-28s %5s %10s %10s %10s %8s %8s %6s %8s" % (
        "model", "draw", "plan us", "one us", "greedy us", "islands", "segments", "over", "at most"))
    with tempfile.TemporaryDirectory() as folder:
        for row in argv[2:]:
            model, _, sizes = row.partition(":")
            dims = [word for size in filter(None, sizes.split(",")) for word in ("--dim", size)]
            names = operators(inspect, model, dims)
            for draw in range(int(os.environ.get("SEEDS", "3"))):
                def rank(name):
                    return hashlib.sha1(("%d %s" % (draw, name)).encode()).hexdigest()
                refused = sorted(names, key=rank)[:max(1, round(len(names) / 5))]
                npu = NPU | {"unsupported": {"operators": refused}}
                rest = [name for name in names if name not in refused]
                plan = planned(split, model, dims, [CPU, npu], folder, "--non-contiguous")
                one = planned(split, model, dims, [CPU], folder)
                greedy = planned(split, model, dims,
                                 [CPU | {"unsupported": {"operators": rest}}, npu], folder,
                                 "--non-contiguous")
                if not plan or not one or not greedy:
                    print("%-28s %5d no plan" % (os.path.basename(model), draw))
                    continue
                slower = plan[0] > min(one[0], greedy[0])
                worse += slower
                better = min(one[0], greedy[0])
                over, most = better / plan[0], better / max(plan[2], 1)
                if greedy[1] >= FRAGMENTED:
                    ratios.append(greedy[0] / plan[0])
                    overs.append(over)
                    mosts.append(most)
                print("%-28s %5d %10.0f %10.0f %10.0f %8d %8d %6.2f %8.2f%s" % (
                    os.path.basename(model), draw, plan[0] / 1e3, one[0] / 1e3, greedy[0] / 1e3,
                    greedy[1], plan[1], over, most, "  slower!" if slower else ""), flush=True)
    if ratios:
        print("greedy over plan at the median of %d fragmented draws (%d islands or more): %.2f" % (
            len(ratios), FRAGMENTED, statistics.median(ratios)))
        print("the better of both over plan at that median: %.2f; no placement is above %.2f" % (
            statistics.median(overs), statistics.median(mosts)))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
