#!/usr/bin/env python3
"""Times of published programs and of onnx-pipeline-plan on the published problems, side by side.

    published.py CHECKOUT [--plan PROGRAM] [--limit SECONDS] [--runs N] [NAME...]

CHECKOUT is a copy of msr-fiddle/dnn-partitioning, or of msr-fiddle/piper: its program is compiled
with g++ -O2 into a temporary directory and run on its own inputs, for at most SECONDS of processor
time each (60), as is this planner with one thread; of N runs of the planner (3) the fastest counts.
Processor times are of whole processes, reading included. Piper's program chooses copies and tensor
parallelism as well, which are switched off: both answer the same question then, and must agree.
NAME...: inputs whose path contains one of these. Exit status 1: an answer differs."""
import argparse
import glob
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

# The program tries every number of devices; here one is asked for.
PIPER_MAIN = """
int main(int argc, char **argv) {
  DATA_PARALLELISM_ALLOWED = TENSOR_PARALLELISM_ALLOWED = ACTIVATION_RECOMPUTATION_ALLOWED = false;
  json j;
  std::ifstream(argv[1]) >> j;
  Instance ins = j.get<Instance>();
  Graph graph(ins);
  const Result result = graph.runDP();
  printf("%.9f\\n", graph.getTPSForResult(result));
}
"""


def compile_with(source, directory, text):
    path = os.path.join(directory, "program.cpp")
    with open(path, "w") as out:
        out.write(text)
    subprocess.run(["g++", "-O2", "-w", "-I", os.path.dirname(source), "-include", "cassert",
                    "-include", "cmath", "-include", "numeric", "-include", "algorithm", path,
                    "-o", os.path.join(directory, "program")], check=True)
    return os.path.join(directory, "program")


def timed(command, limit, stdin=None):
    """(output or None beyond the limit, seconds of processor time)."""
    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(stdin or os.devnull) as source:
        done = subprocess.run(command, stdin=source, capture_output=True, text=True,
                              preexec_fn=limited)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout if done.returncode == 0 else None, seconds


def dnn_partitioning(checkout, directory):
    """Its inputs, its command and how to read its answer."""
    source = os.path.join(checkout, "throughput-dp", "dp.cpp")
    header = os.path.join(checkout, "nlohmann", "json.hpp")
    text = re.sub(r'#include "[^"]*json.hpp"', f'#include "{header}"', open(source).read())
    program = compile_with(source, directory, text)
    inputs = sorted(glob.glob(os.path.join(checkout, "throughput-inputs", "*", "*.json")))

    def value(output):
        found = re.search(r'"maxLoad"\s*:\s*([0-9.eE+-]+)', output)
        return float(found.group(1)) if found else None
    return inputs, lambda path: ([program], path), value


def piper(checkout, directory):
    source = os.path.join(checkout, "algo.cpp")
    text = re.sub(r"\bint main\b", "int original_main", open(source).read()) + PIPER_MAIN
    program = compile_with(source, directory, text)
    inputs = sorted(glob.glob(os.path.join(checkout, "inputs", "*.json")))
    return inputs, lambda path: ([program, path], None), lambda output: float(output.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("--plan", default="build/tools/onnx-pipeline-plan")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    checkout = os.path.abspath(options.checkout)
    differs = False
    print(f"{'input':56} {'its value':>14} {'its s':>9} {'our value':>14} {'our s':>8} {'ratio':>9}")
    with tempfile.TemporaryDirectory() as directory:
        kind = piper if os.path.exists(os.path.join(checkout, "algo.cpp")) else dnn_partitioning
        inputs, command, value = kind(checkout, directory)
        for path in inputs:
            name = os.path.relpath(path, checkout)
            if options.names and not any(part in name for part in options.names):
                continue
            runs = [timed([options.plan, "--json", "--quiet", "--threads", "1", path], 3600)
                    for _ in range(options.runs)]
            ours = json.loads(runs[0][0])
            seconds = min(run[1] for run in runs)
            output, theirs = timed(command(path)[0], options.limit, command(path)[1])
            found = value(output) if output else None
            if found and ours["proved_optimal"]:
                differs |= abs(found - ours["objective"]) > 1e-4 * found
            print(f"{name:56} {f'{found:14.6f}' if found else '-':>14} "
                  f"{'' if output else '>':1}{theirs:8.2f} {ours['objective']:14.6f} {seconds:8.3f} "
                  f"{'' if output else '>':1}{theirs / seconds:8.1f}"
                  f"{'' if ours['proved_optimal'] else '  not proved'}", flush=True)
    if differs:
        print("error: an answer differs", file=sys.stderr)
    return differs


sys.exit(main())
