#!/usr/bin/env python3
"""What pages say of devices is what the code has: docs_devices.py SOURCE_ROOT SPLIT [--bless]

docs/costs/devices.md has each row of presets.def. docs/providers.md has the presets of NPUs with as many
operators as qnn_operators.def, and a plan of two providers that the tool prints. Each devices file on a page
is one that the tool reads. --bless writes the rows and the plan. TAP.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402
from text_model import make  # noqa: E402

MODEL = '<ir_version: 8, opset_import: ["": 17]> g (float[2,8] x) => (float[2,8] y) { %s }'
STAGES = 6  # of the model that devices files are read for: none on a page has more devices


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def write(root, name, text):
    with open(os.path.join(root, name), "w", encoding="utf-8") as file:
        file.write(text)


def amount(number, units):
    """1.5 of the first unit, or a thousand times that of the next."""
    for unit in units[:-1]:
        if number >= 1:
            return "%.6g %s" % (number, unit)
        number *= 1000
    return "%.6g %s" % (number, units[-1])


def preset_row(name, numbers, about):
    vector, float16, tensor, tensor16, int8, uint8, bandwidth, memory = numbers
    rates = [amount(rate, "TG") if rate else "" for rate in (vector, tensor, tensor16 or float16, int8)]
    if uint8:
        rates[3] += "; by weights without a sign " + amount(uint8, "TG")
    rates.append(amount(bandwidth / 1000, ["TB/s", "GB/s"]))
    if memory:
        rates[4] += ", " + amount(memory, ["GB", "MB"])
    return "| " + " | ".join(["`%s`" % name, *rates, about]) + " |"


def check_presets(tap, root, bless):
    page = read(root, "docs/costs/devices.md")
    rows = [preset_row(name, [float(each) for each in numbers.split(",")[:8]], "".join(re.findall(r'"(.*?)"', about)))
            for name, numbers, about in re.findall(r'^PSPLIT_PRESET\("(.*?)", \w+, ([\d., ]+),\s*((?:"[^"]*"\s*)+)\)',
                                                   read(root, "passes/cost/presets.def"), re.M)]
    shown = re.search(r"^\| preset \|.*\n\|---.*\n((?:\|.*\n)+)", page, re.M)[1]
    if bless:
        write(root, "docs/costs/devices.md", page.replace(shown, "\n".join(rows) + "\n"))
        shown = "\n".join(rows) + "\n"
    tap.ok(len(rows) > 20, "rows of presets.def", rows)
    tap.none("docs/costs/devices.md has the presets", sorted(set(rows) ^ set(shown.splitlines())))


def check_operators(tap, root):
    page = read(root, "docs/providers.md")
    table = read(root, "passes/cost/qnn_operators.def")
    n = [len(re.findall(r'^PSPLIT_RUNS\("%s"' % domain, table, re.M)) for domain in ("", "com.microsoft")]
    said = re.search(r"(\d+) of the standard domain and (\d+) of\s+`com.microsoft`", page)
    tap.ok(said and [int(each) for each in said.groups()] == n, "docs/providers.md has how many operators QNN runs", n)
    commit = re.search(r"commit ([0-9a-f]{8,})", table)[1]
    tap.ok(f"commit {commit}" in page, "and of which commit", commit)
    npus = re.findall(r'^PSPLIT_PRESET\("(.*?)", NPU', read(root, "passes/cost/presets.def"), re.M)
    tap.ok(npus, "there are NPUs")
    tap.none("docs/providers.md has a row for each NPU", [npu for npu in npus if f"\n| `{npu}` |" not in page])


def check_plan(tap, root, split, folder, bless):
    """The plan of two providers, by the devices file above it."""
    name = "docs/providers.md shows what onnx-pipeline-split prints"
    cache = os.environ.get("PSPLIT_MODEL_CACHE") or os.path.join(root, ".cache/models")
    model = os.path.join(cache, "retinaface.onnx")
    if not os.path.exists(model):
        tap.skip(name, "no retinaface")
        return
    page = read(root, "docs/providers.md")
    write(folder, "devices.json", re.search(r"^```json\n(.*?)^```", page, re.S | re.M)[1])
    command = re.search(r"^onnx-pipeline-split retinaface.onnx (--devices devices.json .*?) -o out --verify$", page, re.M)[1]
    made = subprocess.run([split, model, *command.split(), "--plan-only"], cwd=folder, capture_output=True, text=True)
    shown = re.search(r"^```\n(stage  device.*?)^```", page, re.S | re.M)[1]
    above, below = shown.split("...\n", 1)
    lines = made.stdout.splitlines(keepends=True)
    table = "".join(lines[:lines.index("\n")]) if "\n" in lines else ""
    last = "".join(line for line in lines if line.startswith(("latency ", "expected ")))
    last = re.sub(r"(expected .*? of 2, ).*", r"\1...", last)
    if bless:
        write(root, "docs/providers.md", page.replace(shown, table + "...\n" + last))
        above, below = table, last
    tap.ok(made.returncode == 0 and above == table and below == last, name, made.stderr + made.stdout)


def check_files(tap, root, split, folder):
    bad, n = [], 0
    values = ["x", *("v%d" % i for i in range(STAGES - 1)), "y"]
    with open(os.path.join(folder, "m.onnx"), "wb") as file:
        file.write(make(MODEL % " ".join("%s = Relu (%s)" % (b, a) for a, b in zip(values, values[1:]))))
    for page in ["README.md", *sorted(glob.glob("docs/**/*.md", root_dir=root, recursive=True))]:
        if page == "docs/partitioning/problem.md":  # devices of bare problems
            continue
        for block in re.findall(r'^```json\n(\{[^`]*?"devices": \[.*?)^```', read(root, page), re.S | re.M):
            n += 1
            write(folder, "devices.json", block)
            made = subprocess.run([split, "m.onnx", "--devices", "devices.json", "--plan-only", "-q"], cwd=folder,
                                  capture_output=True, text=True)
            if made.returncode:
                bad.append(f"{page}: {made.stderr.strip()}")
    tap.ok(n > 5, "devices files on pages", n)
    tap.none("the tool reads each of them", bad)


def main(argv):
    root, split, bless = argv[1], os.path.abspath(argv[2]), "--bless" in argv[3:]
    tap = Tap()
    check_presets(tap, root, bless)
    check_operators(tap, root)
    with tempfile.TemporaryDirectory() as folder:
        check_plan(tap, root, split, folder, bless)
        check_files(tap, root, split, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
