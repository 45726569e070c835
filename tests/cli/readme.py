#!/usr/bin/env python3
"""What README.md shows is what the tools print: readme.py SOURCE_ROOT TOOLS_DIRECTORY [--bless]

The plan of the text recogniser, by the line of samples/quickstart.sh (seconds may differ), figures in the
text around it, and its commands over ResNet-50; --bless writes the plan into README.md. Options in the
commands of all pages are in their tools' help. TAP; models that the cache does not have are skipped.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

NUMBERS = ("no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
           "sixteen seventeen eighteen nineteen twenty").split()
PLAN = r"```\n(stage  device.*?)```"


class Page:
    """README.md and the build that it is held against; `report` prints a line of TAP."""

    def __init__(self, source, tools):
        self.source, self.tools, self.n = source, tools, 0
        self.cache = os.environ.get("PSPLIT_MODEL_CACHE") or os.path.join(source, ".cache/models")
        self.text = self.read("README.md")

    def read(self, name):
        with open(os.path.join(self.source, name), encoding="utf-8") as file:
            return file.read()

    def model(self, name):
        path = os.path.join(self.cache, name + ".onnx")
        return path if os.path.exists(path) else None

    def report(self, good, title, detail=""):
        self.n += 1
        print(f"{'ok' if good else 'not ok'} {self.n} - {title}")
        if not good:
            print("\n".join("# " + line for line in str(detail).splitlines()))

    def skip(self, title, name):
        self.n += 1
        why = name if name.startswith("python3") else f"{name}.onnx; tests/models/fetch.sh {name}"
        print(f"ok {self.n} - {title} # SKIP no {why}")


def quickstart_plan(page, model):
    """The run of the quickstart's last command."""
    script = re.sub(r"\\\n", " ", page.read("samples/quickstart.sh"))
    options = re.search(r'set -- "\$model" (.*)', script)[1].split()
    options = options[:options.index("-o")] + options[options.index("--force") + 1:]
    with tempfile.TemporaryDirectory() as directory:
        command = [os.path.join(page.tools, "onnx-pipeline-split"), model, *options,
                   "-o", os.path.join(directory, "out")]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)


def check_plan(page, bless):
    model = page.model("ppocr_rec")
    if not model:
        page.skip("README.md shows what onnx-pipeline-split prints", "ppocr_rec")
        return
    made = quickstart_plan(page, model)
    shown = re.search(PLAN, page.text, re.S)[1]
    if bless and made.returncode == 0:
        page.text = page.text.replace(shown, made.stdout)
        with open(os.path.join(page.source, "README.md"), "w", encoding="utf-8") as file:
            file.write(page.text)
        shown = made.stdout
    lines = [re.sub(r"took .*", "took", text).splitlines() for text in (shown, made.stdout)]
    page.report(made.returncode == 0 and lines[0] == lines[1],
                "README.md shows what onnx-pipeline-split prints", made.stdout + made.stderr)


def check_figures(page):
    """Figures in the text, of the plan and of the tests."""
    rows = re.findall(r"^ +\d+  cpu\d+ +(\d+) ", re.search(PLAN, page.text, re.S)[1], re.M)
    said = re.search(r"recognition model \(PP-OCRv4, (\d+) nodes\) and\s+splits it into (\w+)", page.text)
    page.report(said and int(said[1]) == sum(map(int, rows)) and said[2] == NUMBERS[len(rows)],
                "nodes and stages of the recogniser are those of the plan", f"{said and said[0]}: {rows}")
    tests = page.read("tests/e2e/meson.build")
    names = re.findall(r"'(\w+)'", re.search(r"e2e_models = \[(.*?)\]", tests, re.S)[1])
    decoders = re.findall(r"'(\w+)_first'", tests)
    said = re.search(r"(\w+) real models run in stages", page.text)
    page.report(said and said[1] == NUMBERS[len(names) + len(decoders)],
                "as many real models as tests/e2e/meson.build names", names + decoders)
    missing = [name for name in re.findall(r"\]\(([\w./-]+)\)", page.text)
               if not os.path.exists(os.path.join(page.source, name))]
    page.report(not missing, "pages and pictures that README.md links exist", missing)


# For the page's loop in Python, where there is no ONNX Runtime for Python: takes what a stage takes and nothing
# else, and gives as many numbers as asked for.
STAND_IN = """
import numpy, onnx
class InferenceSession:
    def __init__(self, path):
        self.graph = onnx.load(path).graph
    def run(self, names, feeds):
        wanted = {each.name for each in self.graph.input} - {each.name for each in self.graph.initializer}
        assert set(feeds) == wanted, (set(feeds), wanted)
        assert set(names) <= {each.name for each in self.graph.output}, names
        return [numpy.zeros(3, numpy.float32) for each in names]
"""


def run_loop(page, directory):
    """(ran, what it said); None: Debian's interpreter, by its path as in other tests, has no onnx or numpy."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import numpy, onnx"], capture_output=True, timeout=60).returncode:
        return None
    with open(os.path.join(directory, "onnxruntime.py"), "w", encoding="utf-8") as file:
        file.write(STAND_IN)
    block = re.search(r"```python\n(.*?)```", page.text, re.S)[1]
    made = subprocess.run([python, "-"], input=block, cwd=directory, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": directory})
    return made.returncode == 0 and made.stdout == "0\n", made.stdout + made.stderr


def check_commands(page):
    """The commands over ResNet-50, as they stand, and the loop over its stages."""
    title = "the commands over ResNet-50 do what README.md says"
    model = page.model("resnet50")
    if not model:
        page.skip(title, "resnet50")
        return
    lines = re.findall(r"^onnx-pipeline-(?:split|verify) .*resnet50.*", page.text, re.M)
    stages = re.search(r"contains `(stage\d)\.onnx` to `stage(\d)\.onnx`", page.text)
    with tempfile.TemporaryDirectory() as directory:
        os.symlink(os.path.abspath(model), os.path.join(directory, "resnet50.onnx"))
        made = subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=directory, capture_output=True, text=True,
                              timeout=120, env={**os.environ, "PATH": page.tools + ":" + os.environ["PATH"]})
        files = sorted(glob.glob("stage*.onnx", root_dir=os.path.join(directory, "out")))
        loop = run_loop(page, directory)
    expected = [f"stage{i}.onnx" for i in range(int(stages[2]) + 1)]
    page.report(len(lines) == 2 and made.returncode == 0 and files == expected, title,
                f"{lines}: {files}\n{made.stdout}{made.stderr}")
    if loop is None:
        page.skip("the loop in Python runs the stages", "python3-onnx")
    else:
        page.report(loop[0], "the loop in Python feeds the stages what they take", loop[1])


def commands_in(text):
    """Commands of the sh blocks of a page, continued lines joined, without comments."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            line = re.sub(r"(^|\s)#(\s.*)?$", "", line)
            yield from (part for part in re.split(r"\||;|&&|>", line) if "onnx-pipeline-" in part)


def check_options(page):
    """No page names an option that a command does not have."""
    known, wrong = {}, []
    for path in ["README.md", *sorted(glob.glob("docs/**/*.md", root_dir=page.source,
                                                recursive=True))]:
        for command in commands_in(page.read(path)):
            before, tool, rest = re.search(r"(.*?)onnx-pipeline-(\w+)(.*)", command).groups()
            if re.search(r"\.(?:py|mjs|sh)\b", before):
                continue  # options of a script that is told the command
            if tool not in known:
                folder = os.path.join(page.tools, "../serve" if tool == "serve" else "")
                path_of = os.path.join(folder, "onnx-pipeline-" + tool)
                known[tool] = os.path.exists(path_of) and subprocess.run(
                    [path_of, "--help"], capture_output=True, text=True, timeout=60).stdout
            for option in re.findall(r"(?:^|\s)(--[a-z][a-z0-9-]*)", rest):
                if known[tool] and not re.search(re.escape(option) + r"(?![\w-])", known[tool]):
                    wrong.append(f"{path}: onnx-pipeline-{tool} {option}")
    page.report(not wrong and "split" in known, "options that pages name exist", "\n".join(wrong))


def main(source, tools, bless=None):
    page = Page(source, os.path.abspath(tools))
    check_plan(page, bless == "--bless")
    check_figures(page)
    check_commands(page)
    check_options(page)
    print(f"1..{page.n}")


if __name__ == "__main__":
    main(*sys.argv[1:])
