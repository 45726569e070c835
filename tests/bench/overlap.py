#!/usr/bin/env python3
"""Plans with --overlap against runs over slow links: overlap.py BUILD RATE MODEL[:DIM=N,...]...

Costs come from a profile of each model. It is cut in two, with and without --overlap, for a link of
RATE bytes a second, and runs as two ranks of MPI over such a link (tests/runtime/slow_link.c, which
takes no processor). Prints for both plans the bottleneck as --overlap counts it (the largest of
computing, receiving and sending) and as their sum; the same with the time that stages computed in
the run; and what a micro-batch took there once the pipeline was filled: medians of ROUNDS (default
3) runs in turns. PSPLIT_ONNXRUNTIME names the library, PSPLIT_MPIRUN the
launcher ("mpirun.mpich -n"). No test: nothing fails.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    return done.stdout


def measured(build, launcher, directory, dims, rate, n):
    shim = os.path.abspath(os.path.join(build, "tests", "runtime", "libslow_link.so"))
    text = run(*launcher, "2", os.path.join(build, "tools", "onnx-pipeline-run"), directory, "--random", "--json", "-m", str(n), *dims,
               env=os.environ | {"FEW_WINDOWS": "1", "SLOW_LINK": rate, "LD_PRELOAD": shim})
    report = json.loads(text)
    return 1e3 / report["steady_throughput_per_s"], [stage["busy_ns"] / 1e6 for stage in report["stages"]]


def main(argv):
    if len(argv) < 4:
        sys.exit("usage: overlap.py BUILD RATE MODEL[:DIM=N,...]...")
    build, rate = argv[1:3]
    launcher = os.environ.get("PSPLIT_MPIRUN", "mpirun.mpich -n").split()
    tools = os.path.join(build, "tools", "onnx-pipeline-")
    print("%-24s %-10s %8s %8s | %8s %8s %8s %8s" % (
        "model", "plan", "largest", "sum", "largest", "sum", "run ms", "over"))
    for row in argv[3:]:
        model, _, sizes = row.partition(":")
        dims = [word for size in filter(None, sizes.split(",")) for word in ("--dim", size)]
        with tempfile.TemporaryDirectory() as folder:
            costs, devices = os.path.join(folder, "costs.json"), os.path.join(folder, "devices.json")
            run(tools + "run", "--profile", costs, model, "-q", *dims)
            with open(devices, "w") as out:
                json.dump({"devices": [{"name": name, "preset": "cpu"} for name in "ab"],
                           "topology": {"same_host": {"bytes_per_second": float(rate), "latency_ns": 0}}}, out)
            made = {}
            for name, options in (("sums", []), ("--overlap", ["--overlap"])):
                out = os.path.join(folder, name)
                run(tools + "split", model, "-o", out, "-q", "--devices", devices, "--costs", costs, *dims, *options)
                with open(os.path.join(out, "pipeline.json")) as file:
                    stages = json.load(file)["stages"]
                parts = [[stage[key] / 1e6 for key in ("compute_ns", "recv_ns", "send_ns")] for stage in stages]
                made[name] = [out, parts, []]
            for _ in range(int(os.environ.get("ROUNDS", "3"))):
                for out, parts, runs in made.values():
                    n = max(8, min(400, int(2000 / max(map(max, parts)))))
                    runs.append(measured(build, launcher, out, dims, rate, n))
            for name, (_, parts, runs) in made.items():
                took = statistics.median(period for period, _ in runs)
                busy = [statistics.median(times) for times in zip(*(times for _, times in runs))]
                ran = [[ms, *part[1:]] for ms, part in zip(busy, parts)]
                print("%-24s %-10s %8.2f %8.2f | %8.2f %8.2f %8.2f %8.2f" % (
                    os.path.basename(model)[:24], name, max(map(max, parts)), max(map(sum, parts)),
                    max(map(max, ran)), max(map(sum, ran)), took, took / max(map(max, ran))), flush=True)


if __name__ == "__main__":
    main(sys.argv)
