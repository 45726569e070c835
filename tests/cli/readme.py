#!/usr/bin/env python3
"""What README.md shows is what the tool prints: readme.py SOURCE_ROOT SPLIT

The plan of the text recogniser, by the line of samples/quickstart.sh; seconds may differ. TAP; skipped
where the model cache has no ppocr_rec.
"""
import os
import re
import subprocess
import sys
import tempfile


def main(source, split):
    cache = os.environ.get("PSPLIT_MODEL_CACHE") or os.path.join(source, ".cache/models")
    model = os.path.join(cache, "ppocr_rec.onnx")
    if not os.path.exists(model):
        print(f"1..0 # SKIP there is no {model}; tests/models/fetch.sh ppocr_rec")
        return
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        shown = re.search(r"```\n(stage  device.*?)```", file.read(), re.S)[1]
    with open(os.path.join(source, "samples/quickstart.sh"), encoding="utf-8") as file:
        script = re.sub(r"\\\n", " ", file.read())
    options = re.search(r'set -- "\$model" (.*)', script)[1].split()
    options = options[:options.index("-o")] + options[options.index("--force") + 1:]
    with tempfile.TemporaryDirectory() as directory:
        made = subprocess.run([split, model, *options, "-o", os.path.join(directory, "out")],
                              capture_output=True, text=True, timeout=120)
    print("1..1")
    lines = [re.sub(r"took .*", "took", text).splitlines() for text in (shown, made.stdout)]
    same = made.returncode == 0 and lines[0] == lines[1]
    print(f"{'ok' if same else 'not ok'} 1 - README.md shows what onnx-pipeline-split prints")
    if not same:
        print("\n".join("# " + line for line in lines[1] + made.stderr.splitlines()))


if __name__ == "__main__":
    main(sys.argv[1], os.path.abspath(sys.argv[2]))
