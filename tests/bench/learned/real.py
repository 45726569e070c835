#!/usr/bin/env python3
"""Partition problems of real models, as onnx-pipeline-split makes them:

    real.py BUILD LIST DIRECTORY [MODELS]

A line of LIST is MODEL STAGES DEVICES: a model of tests/models/models.json (tests/models/fetch.sh gets it), for how
many stages, and a preset of devices with its links' speed, PRESET@GB/s. MODELS: where models are; .cache/models.
A model that is not there is said on stderr and left out; --need makes that an error."""
import json
import os
import subprocess
import sys
import tempfile


def problem_of(split, model, dims, stages, devices, output):
    preset, speed = devices.split("@")
    with tempfile.TemporaryDirectory() as folder:
        described = os.path.join(folder, "devices.json")
        with open(described, "w", encoding="utf-8") as file:
            json.dump({"devices": [{"name": "d%d" % k, "preset": preset, "host": "a"} for k in range(stages)],
                       "topology": {"same_host": {"bytes_per_second": 1e9 * float(speed), "latency_ns": 5000}}}, file)
        command = [split, model, "--devices", described, "--plan-only", "--quiet", "--certificate",
                   os.path.join(folder, "proof")]
        for name, size in dims.items():
            command += ["--dim", "%s=%s" % (name, size)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip().splitlines()[-1]
        os.replace(os.path.join(folder, "proof.problem.json"), output)
    return ""


def main():
    arguments = [a for a in sys.argv[1:] if a != "--need"]
    build, rows, directory = arguments[:3]
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    models = arguments[3] if len(arguments) > 3 else os.path.join(root, ".cache", "models")
    with open(os.path.join(root, "tests", "models", "models.json"), encoding="utf-8") as file:
        known = json.load(file)
    known = {**known["models"], **known.get("variants", {})}
    os.makedirs(directory, exist_ok=True)
    n, missing = 0, set()
    for line in open(rows, encoding="utf-8"):
        words = line.split("#")[0].split()
        if not words:
            continue
        name, stages, devices = words
        path = os.path.join(models, name + ".onnx")
        if not os.path.exists(path):
            missing.add(name)
            continue
        output = os.path.join(directory, "%s-k%s-%s.json" % (name, stages, devices))
        why = problem_of(os.path.join(build, "tools", "onnx-pipeline-split"), path,
                         known.get(name, {}).get("dims", {}), int(stages), devices, output)
        if why:
            sys.exit("error: %s: %s" % (name, why))
        n += 1
    print("%d problems" % n)
    for name in sorted(missing):
        print("%s: %s is not among the models, tests/models/fetch.sh gets it"
              % ("error" if "--need" in sys.argv else "warning", name), file=sys.stderr)
    return 3 if missing and "--need" in sys.argv else 0


sys.exit(main())
