#!/usr/bin/env python3
"""What a plan promises, and when it must not: headline.py SPLIT INSPECT [real]

A speed-up and a proof stand only where a run cannot make them wrong: sizes that hang on the data
withhold both, symbols of inputs that were merely counted as 1 are named, an order of devices that
the caller chose is said, and the speed-up is over the device that is best alone. The table, the
manifest, the text and the page must agree. TAP; the models are written with bad_input.py. With
`real` it is a speech synthesizer whose decoder's length the data decides, from the model cache.
"""
import json
import os
import re
import subprocess
import sys

from bad_input import LIMIT, OK, Tap, chain, model
from tap import scratch

PLAN_KEYS = {"device_order", "single_device", "single_device_ns", "speed_up", "headline"}


class Shell:
    def __init__(self, tap, split, inspect):
        self.tap, self.tools = tap, {"split": split, "inspect": inspect}

    def ok(self, good, name, why=""):
        self.tap.ok(good, name, str(why))

    def run(self, tool, *args):
        return subprocess.run([self.tools[tool], *args], capture_output=True, text=True,
                              errors="replace", timeout=300)

    def plan(self, *args):
        """The table, and the plan of the manifest."""
        table = self.run("split", *args, "--plan-only")
        made = self.run("split", *args, "--plan-only", "--json", "-q")
        good = table.returncode == OK and made.returncode == OK
        self.ok(good, "planned: " + " ".join(args), table.stderr + made.stderr)
        return table.stdout, json.loads(made.stdout)["plan"] if good else {}

    def views(self, *args):
        """All that inspect says of the plan in each format, together with the table."""
        text = [self.run("inspect", *args, "--level", "stages", "--format", kind).stdout
                for kind in ("text", "json")]
        page = self.run("inspect", *args, "--format", "html").stdout
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
        if found:  # a build without the front-end library makes no pages
            text.append(json.dumps(json.loads(found.group(1))["plans"][-1]["plan"]))
        return text


def write(name, content):
    with open(name, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content if isinstance(content, bytes) else json.dumps(content))
    return name


def nonzero(depth, n=64, heavy=True, backbone=0, rows=64):
    """x [rows, n] -> backbone MatMuls -> rows that NonZero finds -> `depth` nodes on them -> y."""
    nodes, last, weights = [], "x", []
    for i in range(backbone):
        nodes.append("[make_k%d] k%d = MatMul (%s, b%d)" % (i, i, last, i))
        weights.append("float[%d,%d] b%d = random(%d)" % (n, n, i, i))
        last = "k%d" % i
    nodes += ["[make_where] where = NonZero (%s)" % last,
              "[make_rows] rows = Gather (%s, where)" % last]
    last = "rows"
    for i in range(depth):
        out = "y" if i == depth - 1 else "m%d" % i
        nodes.append("[make_%s] %s = %s" % (out, out, "MatMul (%s, w%d)" % (last, i) if heavy
                                           else "Exp (%s)" % last))
        last = out
    if heavy:
        weights += ["float[%d,%d] w%d = random(%d)" % (n, n, i, 100 + i) for i in range(depth)]
    return model("(float[%d,%d] x) => (float[2,found,%d] y) <%s> {\n%s\n}"
                 % (rows, n, n, ", ".join(weights), "\n".join(nodes)))


def costs(path, ns, complete=True):
    return write(path, {"format": "onnx-pipeline-split-costs", "version": 1, "measured": True,
                        "complete": complete,
                        "costs": [{"nodes": [name], "ns": time} for name, time in ns.items()]})


def withheld(s, what, table, plan, views, *names):
    """Neither a speed-up nor a proof, anywhere; what is unknown has a name."""
    words = re.search(r"expected speed-up|proved|[0-9]x of", table)
    s.ok(not words, what + ": the table promises nothing", table)
    s.ok("no speed-up is stated" in table and all(name in table for name in names),
             what + ": it says why", table)
    s.ok(plan.get("speed_up", 0) is None and plan.get("proved_optimal") is False
             and "data_dependent" in plan and PLAN_KEYS <= set(plan),
             what + ": so does the manifest", plan)
    for text in views:
        s.ok("no speed-up is stated" in text and not re.search(r"proved_optimal=yes|\"proved_optimal\": true",
                 text), what + ": so does inspect", text[:2000])


def told(s, what, table, plan, *words):
    s.ok("expected speed-up" in table and "no speed-up" not in table
             and all(word in table for word in words), what, table)
    s.ok(isinstance(plan.get("speed_up"), float) and "data_dependent" not in plan
             and PLAN_KEYS <= set(plan), what + ": the manifest has it", plan)


def one_group(s):
    write("one.onnx", model("(float[64,64] x) => (float[64,64] y) <float[64,64] w = random(1)> "
                            "{ a = MatMul (x, w) y = Relu (a) }"))
    said = s.run("split", "one.onnx", "-k", "2", "--plan-only").stderr
    s.ok("1 supernode allows no such split" in said, "one supernode is spoken of in the singular", said)
    page = s.run("inspect", "one.onnx", "-k", "1..4", "--format", "html")
    s.ok(page.returncode == OK and "</html>" in page.stdout
             and page.stderr.count("no plan for -k 3:") == page.stderr.count("no plan for -k 4:") == 1,
         "a page has the numbers of stages that have a plan, and names the others", page.stderr)
    none = s.run("inspect", "one.onnx", "-k", "3..4", "--format", "html")
    s.ok(none.returncode != OK and not none.stdout and "error:" in none.stderr, "no page is of no plan", none.stderr)


def slower(s):
    """A split that costs more than it saves: sending takes longer than all that is computed."""
    write("tiny.onnx", model("(float[4,4] x) => (float[4,4] y) <float[4,4] w = random(1)> "
                             "{ a = MatMul (x, w) b = MatMul (a, w) c = MatMul (b, w) y = MatMul (c, w) }"))
    table, plan = s.plan("tiny.onnx", "-k", "2")
    told(s, "a split that does not pay says so", table, plan, "slower than that one alone")
    s.ok("slower than that one alone" in plan["headline"] and plan["speed_up"] < 1, "in the manifest too", plan)
    table, plan = s.plan("tiny.onnx", "-k", "1")
    s.ok("slower" not in table and plan["speed_up"] == 1, "one stage is not slower than one", table)
    text = s.run("split", "tiny.onnx", "-k", "1..3", "--plan-only").stdout
    s.ok(text.endswith("no number of stages here is faster than one device alone\n"), "nor is a range that pays nothing",
         text)
    write("deep.onnx", chain(6, 512))
    text = s.run("split", "deep.onnx", "-k", "1..3", "--plan-only", "--dim", "batch=64").stdout
    s.ok("faster than one device" not in text and "2" in text, "but one that pays is not called so", text)


def data_dependent(s):
    write("nz.onnx", nonzero(6))
    table, plan = s.plan("nz.onnx", "-k", "2")
    withheld(s, "NonZero before MatMuls", table, plan, s.views("nz.onnx", "-k", "2"), "make_m",
             "--profile", "--costs")
    found = plan.get("data_dependent", {})
    s.ok(found.get("nodes", 0) >= 6 and found.get("transfers", 0) >= 1 and found.get("tensor")
             and found["time_frac_1000x"] >= found["time_frac"] > 0.05 and "make_m" in str(found.get("node")),
             "the manifest counts them", found)
    listed = s.run("split", "nz.onnx", "-k", "1..3", "--plan-only").stdout
    s.ok("optimal" not in listed and not re.search(r"[0-9]x ", listed)
             and "no speed-up is stated" in listed, "nor does a range of stages", listed)
    operators = s.run("inspect", "nz.onnx", "--level", "operators").stdout
    s.ok("data-dependent" in re.search(r".*make_m0 .*", operators).group(0),
             "operators are marked", operators)
    # One class of heavy nodes is enough, however small it counts beside what is known.
    write("tail.onnx", nonzero(1, n=256, backbone=8, rows=4096))
    args = ("tail.onnx", "-k", "2", "--pin", "make_k?=0", "--pin", "make_where=1", "--pin", "make_y=1")
    table, plan = s.plan(*args)
    withheld(s, "a heavy node behind a heavier model", table, plan, s.views(*args), "make_y")
    s.ok("transfers" not in plan.get("data_dependent", {"transfers": 0})
             or plan["data_dependent"]["transfers"] == 0, "nothing unknown crosses there", plan)
    # Light nodes count by what they would take if a thousand times as much were found.
    write("light.onnx", nonzero(2, n=256, heavy=False, backbone=8, rows=4096))
    table, plan = s.plan("light.onnx", "-k", "2", "--pin", "make_k[0-3]=0", "--pin", "make_where=1")
    told(s, "a light tail behind a heavy model", table, plan, "proved optimal")
    write("wide.onnx", nonzero(24, heavy=False, backbone=1))
    table, plan = s.plan("wide.onnx", "-k", "1")
    withheld(s, "many light nodes", table, plan, s.views("wide.onnx", "-k", "1"))


def measured(s):
    """Times are cured by --costs; the size of what crosses is not."""
    write("tail.onnx", nonzero(1, n=256, backbone=8, rows=4096))
    names = ["make_k%d" % i for i in range(8)] + ["make_where", "make_rows", "make_y"]
    file = costs("costs.json", {name: 1e6 for name in names})
    pins = ("--pin", "make_k?=0", "--pin", "make_where=1", "--pin", "make_y=1")
    table, plan = s.plan("tail.onnx", "-k", "2", "--costs", file, *pins)
    told(s, "measured nodes are known", table, plan, "costs measured")
    pins = ("--pin", "make_where=0", "--pin", "make_rows=0", "--pin", "make_y=1")
    table, plan = s.plan("tail.onnx", "-k", "2", "--costs", file, *pins)
    withheld(s, "what crosses is not measured", table, plan, [], "\"rows\"")
    s.ok(plan.get("data_dependent", {}).get("nodes") == 0
             and plan.get("data_dependent", {}).get("transfers", 0) > 0, "only what crosses", plan)
    file = costs("part.json", {name: 1e6 for name in names[:-1]}, complete=False)
    table, plan = s.plan("tail.onnx", "-k", "1", "--costs", file)
    withheld(s, "what a costs file leaves out", table, plan, [], "make_y")


def assumed(s):
    write("batch.onnx", chain(8))
    table, plan = s.plan("batch.onnx", "-k", "2")
    told(s, "a symbol of an input", table, plan, "for batch = 1 (assumed)", "proved optimal",
         "over one device")
    s.ok(plan.get("assumed_dims") == {"batch": 1} and plan.get("proved_optimal") is True,
             "and in the manifest", plan)
    s.ok(all("batch = 1 (assumed)" in text for text in s.views("batch.onnx", "-k", "2")),
             "and in every view")
    table, plan = s.plan("batch.onnx", "-k", "2", "--dim", "batch=1")
    told(s, "a size that was given", table, plan, "proved optimal")
    s.ok("assumed" not in table and "assumed_dims" not in plan, "nothing is assumed then", table)
    listed = s.run("split", "batch.onnx", "-k", "1..3", "--plan-only").stdout
    s.ok("for batch = 1 (assumed)" in listed, "a range of stages says so too", listed)
    write("unnamed.onnx", model("(float[?,8] x) => (y) <float[8,8] w = random(1)> {"
                                " m = MatMul (x, w) y = Relu (m) }"))
    table, plan = s.plan("unnamed.onnx", "-k", "2")
    told(s, "a dimension of an input without a name", table, plan, "for x[0] = 1 (assumed)")
    # No output of a convolution is left of a sound that is shorter than its kernel.
    why = ", since with less more costs would not be known; pass --dim "
    for shape, wanted, sizes in (("batch,1,samples", " each, a batch as well as a length", "batch=N --dim samples=N"),
                                 ("2,1,samples", "", "samples=N"), ("batch,1,700", None, "batch=N")):
        write("sound.onnx", model("(float[%s] x) => (y) <float[4,1,400] w = random(1)> {"
                                  " m = Conv (x, w) y = Relu (m) }" % shape))
        said = s.run("split", "sound.onnx", "-k", "1", "--plan-only").stderr
        counted = "counted as 1; pass --dim " if wanted is None else "counted as 1024" + wanted + why
        s.ok(counted + sizes + " to cost them" in said, "as many as a kernel needs: [%s]" % shape, said)
    # The same name, but of no input: nobody but a run can say how many.
    outside = model("(float[8,8] x) => (float[made,8] y) <float[8,8] w = random(1)> {"
                    " o = Odd (x) m = MatMul (o, w) y = Relu (m) }")
    write("odd.onnx", outside)
    table, plan = s.plan("odd.onnx", "-k", "1")
    withheld(s, "an operator that nobody knows", table, plan, [])


def devices(s):
    write("m.onnx", chain(8, 64))
    slow = {"name": "slow", "preset": "cpu-sse"}
    fast = {"name": "fast", "preset": "cpu-avx512"}
    alike = [{"name": "one", "preset": "cpu"}, {"name": "two", "preset": "cpu"}]
    links = {"same_host": {"bytes_per_second": 1e12, "latency_ns": 0}}

    def planned(devices, *more, **topology):
        file = write("devices.json", {"devices": devices, "topology": links, **topology})
        return s.plan("m.onnx", "--devices", file, "--dim", "batch=64", *more)

    table, plan = planned(alike)
    told(s, "devices that are alike", table, plan, "over one device")
    s.ok("order of devices" not in table and plan.get("device_order") == "alike"
             and plan.get("proved_optimal"), "their order does not matter", table)
    table, plan = planned([slow, fast])
    told(s, "devices that differ", table, plan, "proved optimal among plans", "over fast, the best single device")
    s.ok("order of devices" not in table and plan.get("device_order") == "chosen",
         "their order is chosen", table)
    turned, other = planned([fast, slow])
    s.ok(table.split("\ntook")[0] == turned.split("\ntook")[0] and plan == other,
         "the file's order does not count", turned)
    for what, devices, between in (("devices", [slow, fast | {"memory_bandwidth": 1e-300}], []),
                                 ("links", [slow, fast], [{"from": "slow", "to": "fast", "bytes_per_second": 1e-300,
                                                           "latency_ns": 0}])):
        write("endless.json", {"devices": devices, "links": between})
        done = s.run("split", "m.onnx", "--devices", "endless.json", "--dim", "batch=64", "--plan-only")
        s.ok(done.returncode == LIMIT and "too many kinds" not in done.stderr
             and re.search(f"most of them of (what )?node make_m0( gives)?; .* or faster {what}$", done.stderr.strip()), what + " of 36 years", done.stderr)
    table, plan = planned([slow, fast], "--device-order", "given")
    told(s, "devices as listed", table, plan, "proved optimal among plans", ", for this order of devices (",
         "over fast, the best single device")
    s.ok(plan.get("device_order") == "given" and plan.get("single_device") == "fast"
             and plan["speed_up"] <= 2 and plan["single_device_ns"] < plan["total_compute_ns"]
             and abs(plan["speed_up"] * plan["bottleneck_ns"] - plan["single_device_ns"])
             <= 1e-9 * plan["single_device_ns"], "the speed-up is over the best of them", plan)
    args = ("m.onnx", "--devices", "devices.json", "--dim", "batch=64", "--device-order", "given")
    page = s.views(*args)
    s.ok("device_order=given" in page[0] and all('"device_order": "given"' in text
             for text in page[1:]), "every view says whose order it is", page[0])
    listed = s.run("split", *args, "-k", "1..2", "--plan-only").stdout
    s.ok("for this order of devices" in listed, "a range of stages says so", listed)
    table, plan = planned([slow, slow | {"name": "slow2"}, fast], "-k", "2", "--device-order", "given")
    s.ok("for this order of devices" in table and plan.get("single_device") == "fast",
             "a device that is left over counts", table)
    table, plan = planned([slow, slow | {"name": "slow2"}, fast], "-k", "1")
    s.ok(re.search(r"^ *0  fast ", table, re.M), "the best of three devices takes the one stage", table)
    table, plan = planned([slow, fast | {"keeps_copies": False, "memory_bytes": 80 << 10}])
    told(s, "a fast device that cannot hold the model", table, plan, "over slow, the best single")
    table, plan = planned([d | {"keeps_copies": False, "memory_bytes": 150 << 10} for d in alike])
    s.ok("no speed-up over one device" in table and "can hold the whole model" in table
             and "expected" not in table and "proved optimal" in table, "a model that no device holds", table)
    s.ok(plan.get("speed_up", 0) is None and plan.get("single_device", 0) is None
             and plan.get("proved_optimal") is True, "and in the manifest", plan)
    table, plan = planned(alike + [alike[0] | {"name": "three"}],
                          links=[{"from": "one", "to": "two", "bytes_per_second": 1e9}])
    s.ok(plan.get("device_order") == "chosen" and "over one device" in table,
         "a link that differs from the others", table)
    table, plan = planned(alike, "-k", "1")
    s.ok("order of devices" not in table, "one of two that are alike", table)


def kokoro(s):
    here = os.path.dirname(os.path.abspath(__file__))
    cache = os.environ.get("PSPLIT_MODEL_CACHE") or os.path.join(here, "../../.cache/models")
    file = os.path.join(cache, "kokoro.onnx")
    if not os.path.exists(file):
        print("1..0 # SKIP the model cache has no kokoro.onnx; tests/models/fetch.sh fills it")
        sys.exit(0)
    table, plan = s.plan(file, "-k", "4", "--dim", "sequence_length=64", "--time-limit", "1")
    withheld(s, "kokoro", table, plan, [], "--profile")
    s.ok(plan.get("data_dependent", {}).get("time_frac_1000x", 0) > 0.5, "most of it is unknown", plan)


def main(argv):
    if len(argv) != 3 and argv[3:] != ["real"]:
        sys.exit("usage: headline.py SPLIT INSPECT [real]")
    s = Shell(Tap(), *map(os.path.abspath, argv[1:3]))
    with scratch("headline"):
        for test in (kokoro,) if argv[3:] else (data_dependent, measured, assumed, devices, one_group, slower):
            test(s)
    return s.tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
