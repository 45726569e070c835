#!/usr/bin/env python3
"""ONNX Runtime's own placement beside the plan: placement.py BUILD PROVIDER DEVICES MODEL[:DIM=N,...]...

Asks PROVIDER what it takes of each model (--probe), plans for the devices of the file DEVICES, of which one has sessions of
PROVIDER (--non-contiguous), writes the stages, and asks of every stage planned for that device what ONNX Runtime leaves of it to
the CPU. OPTIONS are more of onnx-pipeline-split, for all models. Prints how many nodes run where the plan has them: of all, and of those planned for the provider. Nodes that compute
sizes may be on the CPU. Fails where it is under 99 % of all nodes. PSPLIT_ONNXRUNTIME names the library; WebGPU without a
GPU: tests/models/swiftshader.sh.
"""
import json
import os
import subprocess
import sys
import tempfile

LEAST = 0.99


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    return done


def read(probe):
    """Names of nodes that the provider leaves to the CPU, those that ONNX Runtime makes itself included, and of those that compute sizes."""
    with open(probe) as file:
        said = json.load(file)
    return set(said["unsupported"]["nodes"]) | set(said["others"]), set(said["host_nodes"])


def ask(split, model, devices, provider, found):
    """What of a stage is left. A stage that the device does not take whole has no plan; the answer is written before."""
    if os.path.exists(found):
        os.unlink(found)
    subprocess.run([split, model, "--devices", devices, "--probe", provider + "=" + found, "--plan-only", "-q"],
                   capture_output=True)
    return read(found)[0]


def main(argv):
    if len(argv) < 5:
        sys.exit("usage: placement.py BUILD PROVIDER DEVICES MODEL[:DIM=N,...]...")
    split = os.path.join(argv[1], "tools", "onnx-pipeline-split")
    provider, devices = argv[2:4]
    with open(devices) as file:
        ours = [each for each in json.load(file)["devices"]
                if each.get("session", {}).get("provider") == provider]
    print("%-28s %6s %6s %8s %9s %9s %8s" % ("model", "nodes", "left", "stages", "planned", "elsewhere", "equal"))
    worse = 0
    for row in argv[4:]:
        model, _, sizes = row.partition(":")
        dims = [word for size in filter(None, sizes.split(",")) for word in ("--dim", size)]
        with tempfile.TemporaryDirectory() as folder:
            probe, out = os.path.join(folder, "probe.json"), os.path.join(folder, "out")
            run(split, model, *dims, *os.environ.get("OPTIONS", "").split(), "--devices", devices, "--probe", provider + "=" + probe, "--non-contiguous",
                "--boundary", "io", "-q", "-o", out)
            refused, of_sizes = read(probe)
            with open(os.path.join(out, "pipeline.json")) as file:
                stages = json.load(file)["stages"]
            one = os.path.join(folder, "one.json")
            with open(one, "w") as file:
                json.dump({"devices": [ours[0] | {"name": "one"}]}, file)
            n = there = elsewhere = 0
            for stage in stages:
                n += stage["nodes"]
                if stage["device"] == ours[0]["name"]:
                    there += stage["nodes"]
                    elsewhere += len(ask(split, os.path.join(out, stage["file"]), one, provider,
                                         os.path.join(folder, "stage.json")) - of_sizes)
            equal = 1 - elsewhere / n
            worse += equal < LEAST
            print("%-28s %6d %6d %8d %9d %9d %7.2f%%" % (os.path.basename(model)[:28], n, len(refused), len(stages), there,
                                                       elsewhere, 100 * equal), flush=True)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
