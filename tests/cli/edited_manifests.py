#!/usr/bin/env python3
"""A pipeline.json that one command refuses is refused by all: edited_manifests.py SPLIT VERIFY MERGE RUN [SERVE]

Each field is taken out, emptied or given another type, and tables of different stages are made to disagree. Merging,
running and serving have to answer alike, and nothing that they refuse is the model to verify. There is no ONNX Runtime,
which is looked for after pipeline.json is read: a good manifest comes as far as that. TAP.
"""
import copy
import json
import os
import subprocess
import sys
import tempfile

from bad_input import FILE, MALFORMED, OK, Tap, chain, no_core, write

UNSUPPORTED = 5
EDITS = {"taken out": None, "[]": [], "{}": {}, "null": None, "5": 5, '"x"': "x"}

# Title: what changes, what is said. A chain of two stages; r is the tensor between them.
DISAGREEING = {
    "a model without inputs": (lambda m: m["inputs"].clear(),
                               'stage 0 takes "x" from the model, which has no such input'),
    "another tensor of the model": (lambda m: m["stages"][0]["inputs"][0].update(tensor="u"),
                                    'stage 0 takes "u" from the model, which has no such input'),
    "a tensor from a stage that is not before": (lambda m: m["stages"][1]["inputs"][0].update({"from": 1}),
                                                 'receives "%(r)s" from stage 1, which is not before it'),
    "a model without outputs": (lambda m: m["outputs"].clear(),
                                'stage 1 gives "y" to the model, which has no such output'),
    "an output that goes nowhere": (lambda m: m["stages"][1]["outputs"][0]["to"].clear(),
                                    'no stage gives the model\'s output "y"'),
    "a tensor that is not sent": (lambda m: m["stages"][0]["outputs"].clear(),
                                  'stage 1 waits for "%(r)s", which stage 0 does not send'),
    "a tensor that is not taken": (lambda m: m["stages"][1]["inputs"].clear(),
                                   'stage 0 sends "%(r)s" to stage 1, which does not take it'),
    "no transfers": (lambda m: m["transfers"].clear(),
                     '"%(r)s" from stage 0 to stage 1 is missing among the transfers'),
    "a transfer too many": (lambda m: m["transfers"].append(dict(m["transfers"][0], tag=1)),
                            'transfers list "%(r)s" from stage 0 to stage 1, which the stages do not'),
    "a transfer that goes back": (lambda m: m["transfers"][0].update({"from": 1, "to": 0}),
                                  'transfers list "%(r)s" from stage 1 to stage 0, which the stages do not'),
    "a transfer twice": (lambda m: (m["transfers"].append(dict(m["transfers"][0], tag=1)),
                                    m["stages"][0]["outputs"][0]["to"].append(1),
                                    m["stages"][1]["inputs"].append(m["stages"][1]["inputs"][0])),
                         'transfers list "%(r)s" from stage 0 to stage 1 more than once'),
    "a transfer of no type": (lambda m: m["transfers"][0].update(dtype="float"),
                              'the transfer of "%(r)s" has the unknown type "float"'),
    "an input of no type": (lambda m: m["inputs"][0].update(dtype="float"), '"x" has the unknown type "float"'),
    "an output of no type": (lambda m: m["outputs"][0].update(dtype=""), '"y" has the unknown type ""'),
}


def places(value, path=()):
    """Of all members, and of the last element of each list."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else list(enumerate(value))[-1:] if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, path + (key,))


def edited(manifest, path):
    """A title and a manifest for each edit of the place."""
    for name, value in EDITS.items():
        changed = copy.deepcopy(manifest)
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        if name == "taken out":
            del holder[path[-1]]
        elif type(holder[path[-1]]) is not type(value) or not value:
            holder[path[-1]] = copy.copy(value)
        else:
            continue
        if changed != manifest:
            yield "%s: %s" % (".".join(map(str, path)), name), changed


def main(argv):
    if len(argv) not in (5, 6):
        sys.exit("usage: edited_manifests.py SPLIT VERIFY MERGE RUN [SERVE]")
    split, verify, merge, run, *serve = map(os.path.abspath, argv[1:])
    tap = Tap()
    os.environ["PSPLIT_ONNXRUNTIME"] = "/nowhere/libonnxruntime.so"
    with tempfile.TemporaryDirectory(prefix="psplit-manifests-") as folder:
        os.chdir(folder)
        write(".", "m.onnx", chain(6))

        def ends(*command):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=no_core)
            return done.returncode, done.stderr.strip()

        def make(name, *more):
            subprocess.run([split, "m.onnx", "-k", "2", "-o", name, "-q", "--dim", "batch=2", *more], check=True)
            with open(os.path.join(name, "pipeline.json"), encoding="utf-8") as file:
                return json.load(file)

        def put(name, manifest):
            with open(os.path.join(name, "pipeline.json"), "w", encoding="utf-8") as file:
                json.dump(manifest, file)

        # Commands and how each ends with a good manifest.
        stages = [([merge, "s", "-o", "merged.onnx", "--force"], OK), ([run, "s", "--random", "--dim", "batch=2"], FILE)]
        stages += [([each, "s", "--listen", "127.0.0.1:0"], FILE) for each in serve]
        training = [([run, "t", "--random", "--dim", "batch=2"], FILE)]

        def refusals(commands):
            """Status and message of each that refuses, None of each that does not."""
            all_ends = [(ends(*command), good) for command, good in commands]
            return [None if end[0] == good and (good == OK or "ONNX Runtime cannot be opened" in end[1]) else end
                    for end, good in all_ends]

        good = make("s")
        tensor = good["transfers"][0]["tensor"]
        tap.ok(set(refusals(stages)) == {None}, "the manifest as it was written is taken")
        for title, (change, says) in DISAGREEING.items():
            changed = copy.deepcopy(good)
            change(changed)
            put("s", changed)
            got = refusals(stages)
            message = "error: s/pipeline.json: "
            tap.ok(all(end and end[0] == MALFORMED and end[1].startswith(message) and says % {"r": tensor} in end[1]
                       for end in got), title + " is refused by all who merge, run and serve", repr(got))
            tap.ok(ends(verify, "s", "--model", "m.onnx")[0] != OK, title + " is not the model")

        def agree(name, manifest, commands):
            for path in places(manifest):
                wrong = []
                for title, changed in edited(manifest, path):
                    put(name, changed)
                    got = refusals(commands)
                    if len({end and end[0] for end in got}) != 1:
                        wrong.append((title, got))
                    elif got[0] and got[0][0] not in (MALFORMED, UNSUPPORTED, FILE):
                        wrong.append((title, got))
                    elif got[0] and ends(verify, name, "--model", "m.onnx")[0] == OK:
                        wrong.append((title, got, "verified"))
                tap.ok(not wrong, "%s: %s: all answer alike" % (name, ".".join(map(str, path))), repr(wrong[:3]))

        agree("s", good, stages)
        trained = make("t", "--training", "--loss", "mse:")
        tap.ok(refusals(training) == [None], "a manifest for training is taken")
        agree("t", trained, training)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
