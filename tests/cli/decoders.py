#!/usr/bin/env python3
"""Decoders: state, whole layers, working points and targets: decoders.py SPLIT INSPECT

State that a run gives and the next one takes stays in one stage, counts once for each sequence, and
stands in the manifest; layers stay whole on request; `--context` sets the sizes of a step, and a
plan for two kinds of steps is one for their mean; what other programs read has the fields that
they read. Bad pairs, points and targets: one line, its exit status, nothing written. TAP; the
models are small decoders.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from bad_input import INFEASIBLE, OK, UNSUPPORTED, USAGE, Tap, listing, model

HEADS, HEAD = 2, 16
WIDTH = HEADS * HEAD


def layer(i):
    """Attention over what was there before and what is new, and a product of its own."""
    part = """["/layers.{0}/{1}/MatMul"] {1}m{0} = MatMul (x{0}, w{1}{0})
      ["/layers.{0}/{1}/Reshape"] {1}r{0} = Reshape ({1}m{0}, heads)
      ["/layers.{0}/{1}/Transpose"] {1}{0} = Transpose <perm = [0, 2, 1, 3]> ({1}r{0})\n"""
    return "".join(part.format(i, p) for p in "qkv") + """
      ["/layers.{0}/keys"] "present.{0}.key" = Concat <axis = 2> ("past_key_values.{0}.key", k{0})
      ["/layers.{0}/values"] "present.{0}.value" = Concat <axis = 2> ("past_key_values.{0}.value", v{0})
      ["/layers.{0}/turn"] t{0} = Transpose <perm = [0, 1, 3, 2]> ("present.{0}.key")
      ["/layers.{0}/scores"] s{0} = MatMul (q{0}, t{0})
      ["/layers.{0}/shares"] a{0} = Softmax <axis = -1> (s{0})
      ["/layers.{0}/mean"] c{0} = MatMul (a{0}, "present.{0}.value")
      ["/layers.{0}/turned"] d{0} = Transpose <perm = [0, 2, 1, 3]> (c{0})
      ["/layers.{0}/joined"] j{0} = Reshape (d{0}, flat)
      ["/layers.{0}/up"] u{0} = MatMul (j{0}, wu{0})
      ["/layers.{0}/bend"] b{0} = Tanh (u{0})
      ["/layers.{0}/down"] o{0} = MatMul (b{0}, wd{0})
      ["/layers.{0}/sum"] x{1} = Add (x{0}, o{0})\n""".format(i, i + 1)


def decoder(layers, extra_input="", extra_output="", extra_nodes="", past="past", total="total"):
    """input_ids [batch, new] -> logits, with keys and values [batch, heads, past, head]."""
    kinds = ["%d.%s" % (i, k) for i in range(layers) for k in ("key", "value")]
    given = ", ".join('float[batch,%d,%s,%d] "past_key_values.%s"' % (HEADS, past, HEAD, k)
                      for k in kinds)
    made = ", ".join('float[batch,%d,%s,%d] "present.%s"' % (HEADS, total, HEAD, k) for k in kinds)
    weights = ["float[50,%d] emb = random(1)" % WIDTH, "float[%d,50] head = random(2)" % WIDTH,
               "int64[4] heads = {0, 0, %d, %d}" % (HEADS, HEAD), "int64[3] flat = {0, 0, %d}" % WIDTH]
    for i in range(layers):
        weights += ["float[%d,%d] w%s%d = random(%d)" % (WIDTH, WIDTH, p, i, 5 * i + 3) for p in "qkv"]
        weights += ["float[%d,%d] wu%d = random(%d)" % (WIDTH, 4 * WIDTH, i, 5 * i + 4),
                    "float[%d,%d] wd%d = random(%d)" % (4 * WIDTH, WIDTH, i, 5 * i + 5)]
    return model("""(int64[batch,new] input_ids, int64[batch,whole] attention_mask, %s%s)
      => (float[batch,new,50] logits, %s%s) <%s> {
      ["/embed"] e = Gather (emb, input_ids)
      ["/mask"] mm = Cast <to = 1> (attention_mask) ["/most"] mx = ReduceMax <keepdims = 1> (mm)
      ["/in"] x0 = Add (e, mx)
      %s %s
      ["/head"] logits = MatMul (x%d, head)
    }""" % (given, extra_input, made, extra_output, ", ".join(weights),
            "".join(layer(i) for i in range(layers)), extra_nodes, layers))


# What is read at the one end and written at the other: `memo` by the first and the last node.
FAR = dict(extra_input=", float[batch,1,%d] memo" % WIDTH,
           extra_output=", float[batch,1,%d] note" % WIDTH,
           extra_nodes='["/read"] xm = Add (e, memo) ["/write"] note = ReduceMean <axes = [1]> (xm)')


class Shell:
    def __init__(self, tap, cwd, split, inspect):
        self.tap, self.cwd, self.split, self.inspect = tap, cwd, split, inspect

    def ok(self, good, title, why=""):
        self.tap.ok(bool(good), title, str(why))

    def run(self, *command):
        return subprocess.run(command, cwd=self.cwd, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=120)

    def manifest(self, *args):
        done = self.run(self.split, *args, "--plan-only", "--json", "-q")
        if done.returncode != OK:
            raise RuntimeError(" ".join(args) + ": " + done.stderr)
        return json.loads(done.stdout)

    def refused(self, title, status, says, *args):
        before = listing(self.cwd)
        done = self.run(self.split, *args)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.ok(done.returncode == status and len(lines) == 1
                and all(word in lines[0] for word in says) and listing(self.cwd) == before,
                "refused: " + title, "status %d: %s" % (done.returncode, done.stderr))

    def write(self, name, content):
        with open(os.path.join(self.cwd, name), "wb") as file:
            file.write(content)


def check_state(s):
    for k in (2, 3, 4):
        made = s.manifest("d.onnx", "-k", str(k), "--context", "64")
        pairs = {row["output"]: row for row in made["state"]}
        s.ok(len(pairs) == 12 and all(r["input"] == "past_key_values" + n[len("present"):]
                                      and r["writer"] == r["reader"] and not r["shared_buffer"]
                                      and r["bytes"] == HEADS * 64 * HEAD * 4
                                      for n, r in pairs.items()),
             "state of 6 layers stays in its stages, of %d" % k, made["state"])
        where = {t["tensor"]: i for i, st in enumerate(made["stages"])
                 for t in st["inputs"] + st["outputs"] if t["tensor"].startswith(("pa", "pr"))
                 and "model" in (t.get("from"), *t.get("to", ()))}
        s.ok(all(where[n] == r["writer"] and where[r["input"]] == r["reader"]
                 for n, r in pairs.items()), "and the stages' files have it there: %d" % k, where)
        s.ok(all(st["state_bytes"] == k * sum(r["bytes"] for r in pairs.values()
                                              if r["writer"] == i)
                 for i, st in enumerate(made["stages"])), "once for each sequence: %d" % k)
    made = s.manifest("d.onnx", "-k", "2", "--no-state")
    s.ok("state" not in made and all("state_bytes" not in st for st in made["stages"]),
         "--no-state looks for none")
    table = s.run(s.split, "d.onnx", "-k", "2", "--plan-only", "--context", "64").stdout
    s.ok("state of a sequence" in table and "past_key_values.0.key ... " in table,
         "the report lists it", table)
    text = s.run(s.inspect, "d.onnx", "-q", "-k", "2", "--level", "stages").stdout
    shown = json.loads(s.run(s.inspect, "d.onnx", "-q", "-k", "2", "--format", "json").stdout)
    s.ok(text.count("\nstate ") == 12 and len(shown["state"]) == 12
         and shown["state"][0]["input"] == "past_key_values.0.key", "inspect shows it", text[:800])
    one = s.manifest("fixed.onnx", "-k", "2", "--dim", "batch=1", "--dim", "new=1")
    s.ok(all(r["shared_buffer"] for r in one["state"])
         and sum(st["state_bytes"] for st in one["stages"]) == 2 * 4 * HEADS * 32 * HEAD * 4,
         "past and present of one size are one buffer, which counts once", one["state"])


def check_named(s):
    free = s.manifest("far.onnx", "-k", "2")
    near = s.manifest("far.onnx", "-k", "2", "--state", "note=memo")
    row = [r for r in near["state"] if r["output"] == "note"]
    s.ok("note" not in [r["output"] for r in free["state"]] and len(near["state"]) == 9
         and row and row[0]["writer"] == row[0]["reader"],
         "--state adds a pair to those that names tell", near["state"])
    only = s.manifest("far.onnx", "-k", "2", "--no-state", "--state", "note=memo")
    s.ok([r["output"] for r in only["state"]] == ["note"], "--no-state leaves what is named")
    # Read by the first node and written by the last: nothing is left to cut.
    s.refused("a named pair that leaves no split", INFEASIBLE, ("memo", "note"),
              "ends.onnx", "-k", "2", "--state", "note=memo", "-o", "out")
    done = s.run(s.split, "named_ends.onnx", "-k", "2", "--plan-only", "--json")
    row = json.loads(done.stdout)["state"][0] if done.returncode == OK else None
    s.ok(row and row["writer"] == 1 and row["reader"] == 0 and "no such split keeps" in done.stderr,
         "one that a name tells is sent back where nothing else is left, with a warning",
         done.stderr)
    for pair, why in (("nothing=memo", ("no output \"nothing\"",)),
                      ("notes=memo", ("no output \"notes\"", "did you mean note?")),
                      ("note=nothing", ("no input \"nothing\"",)),
                      ("memo=note", ("no output \"memo\"",)),
                      ("note", ("OUTPUT=INPUT",)), ("=memo", ("OUTPUT=INPUT",)),
                      ("logits=input_ids", ("float32[batch, new, 50]", "int64[batch, new]")),
                      ("note=past_key_values.0.key", ("no run can take",))):
        s.refused("--state " + pair, USAGE, why + ("--state",), "far.onnx", "-k", "2", "--state",
                  pair, "-o", "out")
    s.refused("--state twice", USAGE, ("another pair",), "far.onnx", "-k", "2", "--state",
              "note=memo", "--state", "present.0.key=memo", "-o", "out")


def stages_of_layers(s, *args):
    """{layer: stages of its nodes}, and how many stages there are."""
    shown = json.loads(s.run(s.inspect, "d.onnx", "-q", "--level", "operators", "--format", "json",
                             "--context", "64", *args).stdout)
    found = {}
    for node in shown["operators"]:
        if node["name"].startswith("/layers."):
            found.setdefault(node["name"].split("/")[1], set()).add(node["stage"])
    return found


def check_blocks(s):
    torn = [k for k in (2, 3, 4, 5)
            if any(len(x) > 1
                   for x in stages_of_layers(s, "-k", str(k), "--slack", "0").values())]
    s.ok(torn, "some best splits cut through layers", torn)
    for k in (2, 3, 4, 5):
        found = stages_of_layers(s, "-k", str(k), "--keep-blocks")
        s.ok(len(found) == 6 and all(len(x) == 1 for x in found.values()),
             "--keep-blocks keeps layers whole: %d" % k, found)
    free, whole = (s.manifest("d.onnx", "-k", "4", "--context", "64", *more)["plan"]
                   for more in ((), ("--keep-blocks",)))
    s.ok(free["bottleneck_ns"] <= whole["bottleneck_ns"] and whole["proved_optimal"]
         and whole["lower_bound_ns"] >= free["lower_bound_ns"], "and its bound is of such splits")
    done = s.run(s.split, "plain.onnx", "-k", "2", "--plan-only", "--keep-blocks")
    s.ok(done.returncode == OK and "no repeated blocks" in done.stderr,
         "a model without any says so", done.stderr)
    s.refused("--keep-blocks beside --passes", USAGE, ("blocks",), "d.onnx", "-k", "2",
              "--keep-blocks", "--passes", "infer-shapes,cost,partition", "-o", "out")


def check_points(s):
    by_hand = s.manifest("d.onnx", "-k", "3", "--dim", "batch=2", "--dim", "new=1", "--dim",
                         "past=100", "--dim", "whole=101", "--dim", "total=101")
    at = s.manifest("d.onnx", "-k", "3", "--context", "100", "--batch", "2")
    phases = at["plan"].pop("phases")
    del by_hand["plan"]["headline"], at["plan"]["headline"]
    s.ok(at == by_hand, "--context sets the sizes that --dim would")
    s.ok(len(phases) == 1 and phases[0]["load_ns"] == [st["load_ns"] for st in at["stages"]]
         and phases[0]["past"] == 100 and phases[0]["batch"] == 2, "and the plan says so", phases)
    own = s.manifest("d.onnx", "-k", "3", "--context", "100", "--dim", "past=7")
    s.ok(own["state"][0]["bytes"] == HEADS * 7 * HEAD * 4, "--dim wins", own["state"][0])
    for n in (1, 8):
        made = s.manifest("d.onnx", "-k", "3", "--context", "100", "--sequences", str(n))
        s.ok(sum(st["state_bytes"] for st in made["stages"])
             == n * sum(r["bytes"] for r in made["state"]), "%d sequences hold their state" % n)
    both = s.manifest("d.onnx", "-k", "3", "--context", "100", "--prefill", "200:0.25")
    decode, prefill = both["plan"]["phases"]
    s.ok(prefill["tokens"] == 200 and prefill["past"] == 0 and decode["tokens"] == 1
         and abs(prefill["step_frac"] - 0.25) < 1e-12, "--prefill adds prompts", both["plan"])
    off = [abs(0.75 * d + 0.25 * p - st["load_ns"]) / st["load_ns"]
           for d, p, st in zip(decode["load_ns"], prefill["load_ns"], both["stages"])]
    s.ok(max(off) < 1e-3, "a stage's load is the mean over steps", off)
    # What is best for one kind of step alone is no better for both together.
    best = both["plan"]
    for alone in (("--context", "100"), ("--dim", "past=0", "--dim", "new=200", "--dim", "whole=200",
                                         "--dim", "total=200", "--dim", "batch=1")):
        cut = json.loads(s.run(s.inspect, "d.onnx", "-q", "-k", "3", "--level", "operators",
                               "--format", "json", *alone).stdout)["operators"]
        pins = [x for n in cut if n["name"] and n["supernode"] is not None
                for x in ("--pin", "%s=%d" % (n["name"], n["stage"]))]
        held = s.manifest("d.onnx", "-k", "3", "--context", "100", "--prefill", "200:0.25", *pins)
        s.ok(best["bottleneck_ns"] <= held["plan"]["bottleneck_ns"] and best["proved_optimal"],
             "no plan for one kind is better: " + alone[0],
             (best["bottleneck_ns"], held["plan"]["bottleneck_ns"]))
    for args, why in ((("--batch", "2"), ("--context",)), (("--prefill", "9:0.5"), ("--context",)),
                      (("--context", "9", "--prefill", "9"), ("TOKENS:PART",)),
                      (("--context", "9", "--prefill", "0:0.5"), ("--prefill",)),
                      (("--context", "9", "--prefill", "9:1"), ("--prefill",)),
                      (("--context", "9", "--prefill", "9:0"), ("--prefill",)),
                      (("--context", "-1"), ("--context",)), (("--sequences", "0"), ("--sequences",))):
        s.refused(" ".join(args), USAGE, why, "d.onnx", "-k", "2", *args, "-o", "out")
    s.refused("a context for what is no decoder", USAGE, ("decoder",), "plain.onnx", "-k", "2",
              "--context", "9", "-o", "out")
    s.refused("one size for two things", USAGE, ("\"past\"",), "clash.onnx", "-k", "2", "--context",
              "9", "-o", "out")


def check_slack(s):
    gave = 0
    for k in (2, 3, 4, 5):
        best, some, plain = (s.manifest("d.onnx", "-k", str(k), "--context", "64", *more)
                             for more in (("--slack", "0"), ("--slack", "5"), ()))
        given, plan = some["plan"].get("given_up"), some["plan"]
        s.ok("given_up" not in best["plan"] and best["plan"]["proved_optimal"]
             and len(some["transfers"]) <= len(plain["transfers"]) <= len(best["transfers"]),
             "--slack 0 keeps the best split, more takes no more tensors: %d" % k)
        s.ok(plan["lower_bound_ns"] == best["plan"]["lower_bound_ns"] <= plan["bottleneck_ns"]
             <= 1.05 * best["plan"]["bottleneck_ns"]
             and plan["proved_optimal"] == (plan["bottleneck_ns"] == plan["lower_bound_ns"]),
             "the bound stays, and so does the promise: %d" % k, plan)
        if given:
            gave += 1
            s.ok(given == {"best_bottleneck_ns": best["plan"]["bottleneck_ns"],
                           "best_transfers": len(best["transfers"]), "best_proved": True,
                           "best_proof_scope": best["plan"]["proof_scope"]}
                 and len(some["transfers"]) < len(best["transfers"]), "what was given up is told",
                 given)
            table = s.run(s.split, "d.onnx", "-k", str(k), "--context", "64", "--plan-only",
                          "--slack", "5").stdout
            n = len(some["transfers"])
            s.ok("given up: %d crossing tensor%s, not %d"
                 % (n, "s" if n != 1 else "", len(best["transfers"])) in table, "and printed", table)
    s.ok(gave, "something was given up")
    for bad in ("-1", "101", "x", ""):
        s.refused("--slack '%s'" % bad, USAGE, ("--slack",), "d.onnx", "-k", "2", "--slack", bad,
                  "-o", "out")
    done = s.run(s.split, "heavy.onnx", "-k", "2..5", "--plan-only")
    s.ok("to 5 stages have the same bottleneck" in done.stdout and "heavy" in done.stdout,
         "stages that do not help are told", done.stdout)
    done = s.run(s.split, "heavy.onnx", "-k", "5", "--plan-only")
    s.ok("and is not divided: fewer devices may do as well (-k 1..5" in done.stdout,
         "of one plan too", done.stdout)
    done = s.run(s.split, "d.onnx", "-k", "1..3", "--plan-only")
    s.ok("same bottleneck" not in done.stdout, "and only these", done.stdout)
    done = s.run(s.split, "d.onnx", "-k", "3", "--plan-only")
    s.ok("not divided" not in done.stdout, "and not where others work as long", done.stdout)


# The fields that the reader of GenAI knows; an unknown one ends it. {} holds any names.
TEXT, NUMBER, FLAG, NAMES = str, int, bool, [str]
SESSION = {"log_id": TEXT, "intra_op_num_threads": NUMBER, "graph_optimization_level": TEXT,
           "provider_options": [{"": {"": TEXT}}], "": TEXT}
GENAI = {
    "model": {
        "type": TEXT, "vocab_size": NUMBER, "context_length": NUMBER,
        "decoder": {
            "num_hidden_layers": NUMBER, "num_key_value_heads": NUMBER, "head_size": NUMBER,
            "inputs": dict.fromkeys(["input_ids", "inputs_embeds", "attention_mask", "position_ids",
                                     "past_key_names", "past_value_names", "past_names",
                                     "past_sequence_length", "current_sequence_length",
                                     "total_sequence_length"], TEXT),
            "outputs": dict.fromkeys(["logits", "present_key_names", "present_value_names",
                                      "present_names"], TEXT),
            "pipeline": [{"": {"filename": TEXT, "inputs": NAMES, "outputs": NAMES,
                               "output_names_forwarder": {"": TEXT}, "run_on_prompt": FLAG,
                               "run_on_token_gen": FLAG, "is_lm_head": FLAG,
                               "session_options": SESSION}}]}},
    "search": {"max_length": NUMBER}}


def unread(value, known, path=""):
    """Paths that the reader does not take."""
    if isinstance(known, dict):
        if not isinstance(value, dict):
            return [path]
        return [p for k, v in value.items()
                for p in (unread(v, known[k] if k in known else known[""], path + "/" + k)
                          if k in known or "" in known else [path + "/" + k])]
    if isinstance(known, list):
        return [p for v in value for p in unread(v, known[0], path + "[]")] \
            if isinstance(value, list) else [path]
    return [] if type(value) is known else [path]


def play(config):
    """What is missing when GenAI hands tensors from stage to stage by their names."""
    decoder_ = config["model"]["decoder"]
    numbers = range(decoder_["num_hidden_layers"])
    ins, outs = decoder_["inputs"], decoder_["outputs"]
    managed_in = {ins[k] for k in ("input_ids", "attention_mask", "position_ids") if k in ins} \
        | {ins[k] % i for k in ("past_key_names", "past_value_names") for i in numbers}
    managed_out = {outs["logits"]} \
        | {outs[k] % i for k in ("present_key_names", "present_value_names") for i in numbers}
    store, given, missing = set(), set(), []
    for stages in decoder_["pipeline"]:
        for name, stage in stages.items():
            missing += [name + " wants " + i for i in stage["inputs"] if i not in managed_in | store]
            given |= set(stage["outputs"]) & managed_out
            forward = stage.get("output_names_forwarder", {})
            store |= {forward.get(o, o) for o in stage["outputs"] if o not in managed_out}
    return missing + sorted(managed_out - given)


def check_genai(s):
    with open(os.path.join(s.cwd, "devices.json"), "w", encoding="utf-8") as file:
        json.dump({"devices": [
            {"name": "a", "preset": "cpu", "session": {"threads": 3, "optimization": 1}},
            {"name": "b", "preset": "cpu", "session": {
                "provider": "CUDA", "provider_options": {"device_id": 1},
                "config": {"session.use_env_allocators": "1"}}},
            {"name": "c", "preset": "cpu"}]}, file)
    for k in (1, 2, 3):
        for boundary in ("io", "sendrecv"):
            out = "genai%d%s" % (k, boundary)
            done = s.run(s.split, "d.onnx", "-q", "-k", str(k), "--boundary", boundary, "--context",
                         "64", "--target", "genai", "-o", out, "--devices", "devices.json")
            s.ok(done.returncode == OK, "genai, %d stages, %s" % (k, boundary), done.stderr)
            with open(os.path.join(s.cwd, out, "genai_config.json"), encoding="utf-8") as file:
                config = json.load(file)
            with open(os.path.join(s.cwd, out, "pipeline.json"), encoding="utf-8") as file:
                made = json.load(file)
            s.ok(not unread(config, GENAI), "its reader knows every field", unread(config, GENAI))
            s.ok(not play(config), "every stage finds what it reads", play(config))
            (stages,) = config["model"]["decoder"]["pipeline"]
            s.ok([(x["filename"], x["inputs"], x["outputs"]) for x in stages.values()]
                 == [(x["file"], [i["name"] for i in x["inputs"]], [o["name"] for o in x["outputs"]])
                     for x in made["stages"]], "names are those of the stages' files")
            s.ok(made["files"] == ["genai_config.json"], "the manifest names the file")
    sessions = [x["session_options"] for x in stages.values()]
    s.ok(sessions[0]["intra_op_num_threads"] == 3
         and sessions[0]["graph_optimization_level"] == "ORT_ENABLE_BASIC"
         and sessions[1]["provider_options"] == [{"CUDA": {"device_id": "1"}}]
         and sessions[1]["session.use_env_allocators"] == "1"
         and sessions[2]["provider_options"] == [], "sessions are those of the devices", sessions)
    decoder_ = config["model"]["decoder"]
    s.ok((decoder_["num_hidden_layers"], decoder_["num_key_value_heads"], decoder_["head_size"],
          config["model"]["vocab_size"], config["model"]["context_length"])
         == (6, HEADS, HEAD, 50, 64), "sizes are the model's", decoder_)
    again = s.run(s.split, "d.onnx", "-q", "-k", "2", "-o", "genai2io", "--force")
    s.ok(again.returncode == OK
         and not os.path.exists(os.path.join(s.cwd, "genai2io", "genai_config.json")),
         "--force replaces it with the split that it belongs to", again.stderr)
    for title, status, says, name in (
            ("no context", USAGE, ("--context",), "d.onnx"),
            ("no decoder", USAGE, ("decoder",), "plain.onnx"),
            ("an input that nobody gives", UNSUPPORTED, ("\"memo\"",), "far.onnx"),
            ("a state that nobody reads", UNSUPPORTED, ("nothing reads", "\"past_key_values.0.key\""), "unread.onnx")):
        point = () if title == "no context" else ("--context", "9")
        s.refused("genai: " + title, status, says, name, "-k", "2", "--target", "genai", "-o", "out",
                  *point)
    s.refused("a target that there is not", USAGE, ("genai, triton, k8s, vllm, llama.cpp",), "d.onnx", "-k", "2",
              "--target", "tpu", "-o", "out")
    s.refused("genai without a directory", USAGE, ("-o DIR",), "d.onnx", "-k", "2", "--context", "9",
              "--target", "genai", "--plan-only")


def check_lines(s):
    for k in (2, 3, 4):
        for target, head, more in (("vllm", "VLLM_PP_LAYER_PARTITION=", 0), ("llama.cpp", "-ts ", 1)):
            done = s.run(s.split, "d.onnx", "-q", "-k", str(k), "--context", "64", "--keep-blocks",
                         "--target", target)
            line = done.stdout.strip()
            numbers = [int(n) for n in line[len(head):].split(",")] if line.startswith(head) else []
            found = stages_of_layers(s, "-k", str(k), "--keep-blocks")
            want = [sum(x == {i} for x in found.values()) for i in range(k)]
            want[-1] += more
            s.ok(done.returncode == OK and numbers == want and not done.stderr,
                 "%s, %d stages: %s" % (target, k, line), (want, done.stderr))
    torn = [k for k in (2, 3, 4, 5)
            if any(len(x) > 1
                   for x in stages_of_layers(s, "-k", str(k), "--slack", "0").values())][0]
    done = s.run(s.split, "d.onnx", "-k", str(torn), "--context", "64", "--slack", "0", "--target",
                 "vllm")
    s.ok(done.returncode == OK and "--keep-blocks" in done.stderr, "cut layers are told",
         done.stderr)
    s.refused("layers of a model that has none", UNSUPPORTED, ("no layers",), "plain.onnx", "-k", "2",
              "--target", "vllm")
    s.refused("layers that are asked for beside a directory", UNSUPPORTED, ("no layers",), "plain.onnx",
              "-k", "2", "--target", "vllm", "-o", "out")


def main(argv):
    if len(argv) != 3:
        sys.exit("usage: decoders.py SPLIT INSPECT")
    cwd = os.path.realpath(tempfile.mkdtemp(prefix="psplit-decoders-"))
    s = Shell(Tap(), cwd, os.path.abspath(argv[1]), os.path.abspath(argv[2]))
    try:
        s.write("d.onnx", decoder(6))
        s.write("far.onnx", decoder(4, **FAR))
        s.write("clash.onnx", decoder(2, extra_input=", int64[batch,past] position_ids",
                                      extra_output=", int64[batch,past] at",
                                      extra_nodes="at = Identity (position_ids)"))
        s.write("fixed.onnx", model("""(int64[batch,new] input_ids, %s) => (float[batch,new,8] y, %s)
            <float[9,8] emb = random(1)> { x = Gather (emb, input_ids) %s y = Tanh (x) }""" % (
                ", ".join("float[1,%d,32,%d] past_%d" % (HEADS, HEAD, i) for i in range(4)),
                ", ".join("float[1,%d,32,%d] present_%d" % (HEADS, HEAD, i) for i in range(4)),
                " ".join("m%d = ReduceMean <keepdims = 0> (x) present_%d = Add (past_%d, m%d)"
                         % (i, i, i, i) for i in range(4)))))
        ends = """(float[1,8] memo, float[1,8] x) => (float[1,8] note) <float[8,8] w = random(1)> {
            a = Add (x, memo) b = MatMul (a, w) c = Tanh (b) note = MatMul (c, w) }"""
        s.write("ends.onnx", model(ends))
        s.write("named_ends.onnx", model(ends.replace("memo", "past_0").replace("note", "present_0")))
        s.write("heavy.onnx", model("""(float[64,64] x) => (float[64,900] y)
            <float[64,900] w = random(1)> { ["a"] a = Tanh (x) ["b"] b = Sigmoid (a)
            ["c"] c = Sin (b) ["heavy"] h = MatMul (c, w) ["d"] d = Cos (h) ["e"] y = Abs (d) }"""))
        s.write("unread.onnx", model("""(int64[b,s] input_ids, float[b,1,p,8] "past_key_values.0.key") =>
            (float[b,s,8] logits, float[b,1,s,8] "present.0.key")
            <float[9,8] w = random(1), int64[1] one = {1}> { x = Gather (w, input_ids)
            logits = Tanh (x) y = Unsqueeze (x, one) "present.0.key" = Sin (y) }"""))
        s.write("plain.onnx", model("""(float[1,8] x) => (float[1,8] y) <float[8,8] w = random(1)> {
            a = MatMul (x, w) b = Tanh (a) c = Sigmoid (b) y = Softmax (c) }"""))
        check_state(s)
        check_named(s)
        check_blocks(s)
        check_points(s)
        check_slack(s)
        check_genai(s)
        check_lines(s)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    print("1..%d" % s.tap.count)
    return 1 if s.tap.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
