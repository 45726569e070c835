#!/usr/bin/env python3
"""--devices cpu measures this machine once and remembers it: this_machine.py TOOL. Results as TAP."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from bad_input import model


def main():
    tool = sys.argv[1]
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        onnx = scratch / "m.onnx"
        onnx.write_bytes(model("(float[64,64] x) => (float[64,64] y) <float[64,64] w = random(1)> {"
                               " a = MatMul (x, w) y = MatMul (a, w) }"))

        def plan(cache, devices="cpu", stages=2):
            env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
            done = subprocess.run([tool, onnx, "-k", f"{stages}", "--plan-only", "--json",
                                   "--devices", devices], env=env, capture_output=True, text=True, check=False)
            return json.loads(done.stdout) if done.returncode == 0 else done.stderr

        def kept():
            return list((scratch / "cache").glob("onnx-pipeline-split/device-*.json"))

        first = plan(scratch / "cache")
        results.append(("a plan for two cores of this machine",
                        [s["device"] for s in first["stages"]] == ["cpu0", "cpu1"]))
        results.append(("the measurement is kept", len(kept()) == 1))
        results.append(("and is a devices file",
                        plan(scratch / "x", kept()[0], 1)["stages"][0]["device"] == "cpu"))
        text = kept()[0].read_text()
        results.append(("and used again", plan(scratch / "cache") == first
                        and kept()[0].read_text() == text))
        kept()[0].write_text("{")
        results.append(("a spoilt one is measured again",
                        plan(scratch / "cache")["stages"][0]["device"] == "cpu0"
                        and json.loads(kept()[0].read_text())["devices"][0]["name"] == "cpu"))
        results.append(("no place to keep it is no error",
                        plan("/proc/none")["stages"][1]["device"] == "cpu1"))
    print(f"1..{len(results)}")
    for i, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {i} - {name}")


if __name__ == "__main__":
    main()
