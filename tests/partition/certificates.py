#!/usr/bin/env python3
"""Certificates from outside: made by onnx-pipeline-plan for random problems of every kind, checked,
and then spoilt: a certificate that was altered is refused, or what it says is still true.

    certificates.py PLAN CHECKER [--mutations N] [--problems N] [--seed N]
    certificates.py PLAN CHECKER --dir DIR

True is what enumeration finds, or for larger problems a value that was proved. The long run is
--problems 600 --mutations 40. With a directory of problems: a table, one line each, of sizes and
times; and --mutations N of each certificate."""
import argparse
import copy
import importlib.util
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zlib

N, FAILED = [0], [False]


def check(name, holds, more=""):
    N[0] += 1
    print(f"{'ok' if holds else 'not ok'} {N[0]} - {name}")
    if not holds:
        FAILED[0] = True
        print("# " + str(more).replace("\n", "\n# "))


def load(path):
    spec = importlib.util.spec_from_file_location("checker", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_problem(rng):
    """A small problem and options for it."""
    n, k = rng.randint(2, 6), rng.randint(1, 3)
    twins = rng.random() < 0.25
    n_classes = rng.choice((1, 1, 2))
    kinds = [{"class": c, "count": 0} for c in range(n_classes)]
    for _ in range(k):
        rng.choice(kinds)["count"] += 1
    problem = {"format": "psplit-problem", "comm": rng.choice(("p2p", "shared")),
               "overlap": rng.random() < 0.15, "any_device_order": rng.random() < 0.5,
               "stash_1f1b": rng.random() < 0.1, "devices": kinds}
    if n_classes == 2 and rng.random() < 0.3:
        kinds[1]["free_comm"] = True
    binds = rng.random() < 0.25
    if binds:
        kinds[0]["memory_bytes"] = rng.randint(2, 4) * n
    dear = rng.choice((1, 4, 20))
    nodes = []
    for v in range(n):
        node = {"id": v, "time_ns": [rng.randint(0, 12) for _ in range(n_classes)]}
        if n_classes == 2 and rng.random() < 0.1:
            node["time_ns"][rng.randrange(2)] = None
        if binds:
            node["weight_bytes"], node["activation_bytes"] = rng.randint(0, 4), rng.randint(0, 2)
        if rng.random() < 0.1:
            node["together"] = rng.randint(0, 1)
        if rng.random() < 0.05:
            node["pin"] = rng.randrange(k)
        if rng.random() < 0.1:
            node["auxiliary"] = True
        if twins and v >= (n + 1) // 2:
            node["backward"] = True
            if rng.random() < 0.8:
                node["together"] = 10 + n - 1 - v
        elif twins:
            node["together"] = 10 + v
        nodes.append(node)
    problem["nodes"] = nodes
    tensors = []
    for u in range(n - 1):
        readers = [v for v in range(u + 1, n) if rng.random() < (0.8 if v == u + 1 else 0.25)]
        if not readers:
            continue
        cost = [rng.randint(0, dear) for _ in range(n_classes)]
        tensors.append({"producer": u, "consumers": readers, "send_ns": cost,
                        "recv_ns": cost if rng.random() < 0.5 else
                        [rng.randint(0, dear) for _ in range(n_classes)],
                        "uncuttable": rng.random() < 0.03})
    problem["tensors"] = tensors
    if rng.random() < 0.3:
        problem.update(comm=rng.choice(("p2p", "shared")), message_latency="per_pair",
                       links=[{"latency_ns": rng.randint(0, 2 * dear)} for _ in range(n_classes)])
        for tensor in tensors:
            tensor["no_message"] = rng.random() < 0.1
    if rng.random() < 0.2:
        problem["weights"] = [{"bytes": rng.randint(1, n), "users": rng.sample(range(n), 2)}]
    options = rng.choice([[]] * 6 + [["--non-contiguous"], ["--objective", "latency"],
                                     ["--chunks", "2"] * ("message_latency" not in problem)])
    if rng.random() < 0.3:
        options = options + ["--no-empty-stages"]
    return problem, options


def large_problem(rng):
    """Blocks of branches: big enough for a tree of cases."""
    nodes, tensors, last = [], [], None
    def node(low, high):
        nodes.append({"time_ns": rng.randint(low, high)})
        return len(nodes) - 1
    def tensor(u, readers):
        tensors.append({"producer": u, "consumers": readers, "send_ns": rng.randint(1, 30),
                        "recv_ns": rng.randint(1, 30)})
    for _ in range(rng.randint(5, 12)):
        fork = node(5, 60)
        if last is not None:
            tensor(last, [fork])
        branches = [[node(1, 40) for _ in range(rng.randint(1, 3))]
                    for _ in range(rng.randint(1, 3))]
        last = node(1, 20)
        tensor(fork, [branch[0] for branch in branches] + [last] * (rng.random() < 0.5))
        for branch in branches:
            for u, v in zip(branch, branch[1:] + [last]):
                tensor(u, [v])
    return {"format": "psplit-problem", "comm": rng.choice(("p2p", "shared")),
            "overlap": rng.random() < 0.2, "devices": [{"count": rng.randint(2, 5)}],
            "nodes": nodes, "tensors": tensors}, ["--no-empty-stages"] * (rng.random() < 0.3)


def two_kinds_of_devices(seed):
    """As large_problem, where the second kind has other times and other links."""
    rng = random.Random(seed)
    problem, _ = large_problem(rng)
    problem["devices"] = [{"class": c, "count": rng.randint(1, 2)} for c in range(2)]
    for node in problem["nodes"]:
        node["time_ns"] = [node["time_ns"], rng.randint(1, 60)]
    for tensor in problem["tensors"]:
        for key in ("send_ns", "recv_ns"):
            tensor[key] = [tensor[key], rng.randint(1, 40)]
    return problem


def many_clusters(seed, n=84):
    """More clusters than a word has bits, and no more memory than they need."""
    rng = random.Random(seed)
    nodes = [{"time_ns": rng.randint(1, 40), "weight_bytes": rng.randint(1, 9)} for _ in range(n)]
    tensors = [{"producer": u, "consumers": sorted({u + rng.randint(1, 2),
                                                    min(n - 1, u + rng.randint(2, 4))}),
                "send_ns": rng.randint(8, 40), "recv_ns": rng.randint(8, 40)} for u in range(n - 2)]
    memory = sum(node["weight_bytes"] for node in nodes) // 3 + 12
    return {"format": "psplit-problem", "devices": [{"count": 3, "memory_bytes": memory}],
            "nodes": nodes, "tensors": tensors}


def shared_messages():
    """A chain by shared memory whose bound is that of messages: without them it is half."""
    return {"format": "psplit-problem", "comm": "shared", "message_latency": "per_pair",
            "devices": [{"count": 3}], "links": [{"latency_ns": 5}],
            "nodes": [{"time_ns": ns} for ns in (4, 6) * 3],
            "tensors": [{"producer": u, "consumers": [u + 1], "send_ns": 1, "recv_ns": 1}
                        for u in range(5)]}


def seal(lines):
    """The certificate with a checksum that fits."""
    text = "\n".join(lines) + "\n"
    return (text + f"end {zlib.crc32(text.encode()):08x}\n").encode()


# Two nodes and a message between them, of which one may be at its reader's without one; two devices.
PAIR = {"format": "psplit-problem", "devices": [{"count": 2}], "nodes": [{"time_ns": 10}, {"time_ns": 10}],
        "tensors": [{"producer": 0, "consumers": [1], "send_ns": 1, "recv_ns": 2}]}
KINDS = PAIR | {"devices": [{"class": 0}, {"class": 1}],
                "nodes": [{"time_ns": [10, 9]}, {"time_ns": [10, 9]}]}
MESSAGE = {"format": "psplit-problem", "comm": "shared", "message_latency": "per_pair", "devices": [{"count": 2}],
           "links": [{"latency_ns": 5}], "nodes": [{"time_ns": 10}, {"time_ns": 0}, {"time_ns": 10}],
           "tensors": [{"producer": 0, "consumers": [1], "send_ns": 0, "recv_ns": 0},
                       {"producer": 1, "consumers": [2], "send_ns": 0, "recv_ns": 0, "no_message": True}]}
PASSED_ON = MESSAGE | {"devices": [{"count": 3}], "nodes": [{"time_ns": 10}] * 3,
                       "tensors": [{"producer": 0, "consumers": [1, 2], "send_ns": 0, "recv_ns": 0}]}
APART = {"devices": "3", "device": "0 0 0", "stage": "0 1 2", "no-empty-stages": 1, "messages": "", "any-way": ""}
FORK = PASSED_ON | {"tensors": [{"producer": 0, "consumers": [v], "send_ns": 0, "recv_ns": 0} for v in (1, 2)]}
UNCUTTABLE = PAIR | {"tensors": [PAIR["tensors"][0] | {"uncuttable": True}]}
FULL = PAIR | {"devices": [{"count": 2, "memory_bytes": 5}], "nodes": [{"time_ns": 10, "weight_bytes": 3}] * 2}
BACK = MESSAGE | {"nodes": [{"time_ns": 10}, {"time_ns": 0, "backward": True}, {"time_ns": 10, "backward": True}]}
CHAIN = PAIR | {"nodes": [{"time_ns": 10}, {"time_ns": 0}, {"time_ns": 10}],
                "tensors": [{"producer": a, "consumers": [a + 1], "send_ns": 1, "recv_ns": 2} for a in (0, 1)]}
FOUR = PAIR | {"nodes": [{"time_ns": time} for time in (10, 0, 0, 10)],
               "tensors": [{"producer": a, "consumers": [a + 1], "send_ns": 1, "recv_ns": 2} for a in range(3)]}
MANY = KINDS | {"any_device_order": True, "devices": [{"class": 0, "count": 64}, {"class": 1, "count": 64}]}
NOWHERE = KINDS | {"nodes": [{"time_ns": [None, 9]}, {"time_ns": [10, 9]}]}
CASES = ["proof cases", "empty-stages 1", "receivers 0"]
# In its second cell node 0 is in and node 2 is out: paths lead from the one to the other.
PATHS = [*CASES, "in 0", "cell", "in 2", "cell"]
# Problem, what differs from the head below, bound, proof, and what the refusal says; "": it is true.
BY_HAND = (
    (PAIR, {}, 11, ["proof cut", "node 0", "send 0 1 1"], ""),
    (PAIR, {}, 12, ["proof cut", "node 1", "receive 0 1 2"], ""),
    (PAIR, {}, 13, ["proof cut", "node 1", "receive 0 1 3"], "more flow than the tensor costs"),
    (PAIR, {}, 12, ["proof cut", "node 0", "send 0 1 1"], "the cut is 11, less than the bound"),
    (PAIR, {}, 11, ["proof cut", "node 1", "send 0 1 1"], "the flow does not add up at the items of node 0"),
    (PAIR, {}, 11, ["proof cut", "node 0", "send 0 0 1"], "the node does not read the tensor"),
    (PAIR, {}, 11, ["proof cut", "node 0", "send 1 1 1"], "the node does not read the tensor"),
    (PAIR, {"overlap": 1}, 11, ["proof cut", "node 0", "send 0 1 1"], "a cut proves nothing with overlap"),
    (PAIR, {}, 10, ["proof totals"], ""),
    (PAIR, {}, 11, ["proof totals"], "devices have room for all with loads of 10"),
    (PAIR, {}, 12, ["round", "limit 0 1", "proof totals"], "the two may be in different stages"),
    (PAIR, {}, 11, ["round", "limit 0 1", "proof totals"], ""),
    (PAIR, {}, 20, ["round", "join 0 1", "proof totals"], "the one may not join the other"),
    (PAIR, {"contiguous": 0}, 11, ["round", "limit 0 1", "proof totals"], "no rule unites nodes here"),
    (PAIR, {"overlap": 1}, 11, ["round", "limit 0 1", "proof totals"], "no rule unites nodes here"),
    (FOUR, {}, 10, ["round", "join 1 0", "join 2 3", "proof totals"], ""),
    (FOUR, {}, 10, ["round", "join 1 0", "join 1 2", "proof totals"], "the one may not join the other"),
    (FOUR, {}, 10, ["round", "join 1 0", "join 2 1", "proof totals"], "the one may not join the other"),
    (FOUR, {}, 10, ["round", "join 1 0", "round", "join 2 1", "proof totals"], ""),
    (BACK, {}, 10, [*CASES, "cell"], ""),
    (PAIR, {"devices": "0"}, 10, ["proof totals"], "no such number of devices"),
    (PAIR, {"relays": ""}, 10, ["proof totals"], "with relays a tensor counts once"),
    (PAIR, {"messages": ""}, 10, ["proof totals"], "no messages count here"),
    (KINDS, {"devices": "1 1", "stage": "0 1", "device": "0 1", "value": 11}, 10, ["proof totals"], ""),
    (KINDS, {"devices": "1 1", "stage": "0 1", "device": "1 0", "value": 12}, 10, ["proof totals"],
     "devices are out of order"),
    (MESSAGE, {"messages": ""}, 15, ["proof cut", "node 0", "sent 5"], "the cut is 10, less than the bound"),
    (MESSAGE, {"messages": ""}, 15, ["proof cut", "node 0", "sent 6"], "more than a message"),
    (MESSAGE, {"messages": ""}, 15, ["round", "join 1 2", "proof totals"], "the one may not join the other"),
    (BACK, {"messages": ""}, 15, ["proof cut", "node 0", "sent 5"], "more than a message"),
    (BACK, {"messages": ""}, 10, [*CASES, "cell"], "messages do not count where tensors run back"),
    (PAIR, {"objective": "none"}, 10, ["proof totals"], "\"objective\" is one of throughput, latency"),
    (PAIR, {"objective": "latency", "contiguous": 0}, 10, ["proof totals"], "latency requires contiguous stages"),
    (PAIR, {"no-empty-stages": 1}, 10, ["proof totals"], "stage 1 is empty"),
    (UNCUTTABLE, {"stage": "0 1"}, 10, ["proof totals"], "a tensor of node 0 cannot be sent"),
    (FULL, {}, 10, ["proof totals"], "stage 0 holds 6 bytes, more than its device"),
    (KINDS, {"devices": "2 0", "stage": "0 1", "device": "0 1"}, 10, ["proof totals"],
     "more devices are in use than there are"),
    (NOWHERE, {"devices": "2 0", "comm": "shared", "relays": ""}, 10, ["proof totals"], "a node can run on no device"),
    (MESSAGE, {"messages": "", "any-way": ""}, 10, ["proof totals"], "what stages pass on does not count here"),
    (PASSED_ON, APART | {"way": "0 0 1 1 2"}, 10, ["proof totals"], ""),
    (PASSED_ON, APART | {"way": "0 0 1 1"}, 10, ["proof totals"], "no such tensor is passed on"),
    (PASSED_ON, APART | {"way": "1 0 1 1 2"}, 10, ["proof totals"], "no such tensor is passed on"),
    (PASSED_ON, APART | {"way": "0 0 1 1 2 2 3"}, 10, ["proof totals"], "no such tensor is passed on"),
    (PASSED_ON, APART | {"way": "0 1 2 0 1"}, 10, ["proof totals"], "stage 1 cannot pass it on to 2"),
    (PASSED_ON, APART | {"way": "0 0 1 1 2 0 2"}, 10, ["proof totals"], "stage 0 cannot pass it on to 2"),
    (PASSED_ON, APART | {"way": "0 0 2 2 1"}, 10, ["proof totals"], "stage 2 cannot pass it on to 1"),
    (PASSED_ON, APART | {"way": "0 0 1 1 2"}, 10, [*CASES, "cell"], "that proves nothing here"),
    (PASSED_ON, {k: v for k, v in APART.items() if k != "any-way"} | {"way": "0 0 1 1 2"}, 10, ["proof totals"],
     "no such tensor is passed on"),
    (PASSED_ON, APART | {"way": "0 0 1"}, 10, ["proof totals"], "it does not come to all that read it"),
    (MESSAGE, {"trunk": "0"}, 10, ["proof totals"], ""),
    (MESSAGE, {"trunk": "0 0"}, 10, ["proof totals"], "nothing orders stages and messages, or it is there twice"),
    (MESSAGE, {"trunk": "0", "contiguous": 0}, 10, ["proof totals"], "nothing orders stages and messages"),
    (PAIR, {"trunk": "0"}, 10, ["proof totals"], "nothing orders stages and messages"),
    (MESSAGE, {"trunk": "1"}, 10, ["proof totals"], "it makes no message, or is of the backward pass"),
    (BACK, {"trunk": "0"}, 10, ["proof totals"], "it makes no message, or is of the backward pass"),
    (FORK, {"devices": "3", "device": "0 0 0", "value": 30, "trunk": "0 1"}, 10, ["proof totals"],
     "a consumer is not before the producer of tensor 1"),
    (PAIR, {}, 10, [*CASES, "cell"], ""),
    (PAIR, {"contiguous": 0}, 10, [*CASES, "cell"], "that proves nothing here"),
    (PAIR, {}, 10, ["proof cases", "empty-stages 0", "receivers 0", "cell"], "that proves nothing here"),
    (PAIR, {}, 10, [*CASES, "in 0", "cell", "in 1", "cell", "send 1 0 1", "cell"], "tensor 0 has no such cost left"),
    (PAIR, {}, 10, [*CASES, "in 0", "cell", "cell", "send 2 0 1"], "tensor 0 has no such cost left"),
    (PAIR, {}, 10, [*CASES, "in 0", "cell", "cell", "send 1 0 1"], "the path does not end with what is out"),
    (PAIR, {}, 10, [*CASES, "in 0", "cell", "cell", "send 1 0"], "the path does not end with what is out"),
    (PAIR, {}, 12, [*CASES, "in 0", "cell", "in 1", "cell", "cell"], ""),
    (PAIR, {}, 13, [*CASES, "in 0", "cell", "in 1", "cell", "cell"], "the cases leave a chain of stages within 12"),
    (PAIR, {}, 10, [*CASES, "in 0", "cell", "send 1 0 1", "cell"], "the path does not hang together"),
    (CHAIN, {}, 10, [*PATHS, "send 1 0 1 1 2", "cell"], ""),
    (CHAIN, {}, 10, [*PATHS, "send 1 0 2 1 2", "cell"], "the path does not hang together"),
    (CHAIN, {}, 10, [*PATHS, "send 1 1 2", "cell"], "the path does not hang together"),
    (CHAIN, {}, 10, [*PATHS, "send 1 0 1 1 2 1", "cell"], "the path does not end with what is out"),
    (CHAIN, {}, 10, [*PATHS, "send 1 0 1", "cell"], "the path does not end with what is out"),
    (CHAIN, {}, 10, [*PATHS, "send 1", "cell"], "the path does not end with what is out"),
    (CHAIN, {}, 10, [*PATHS, "send 1 0 1 1 2", "send 1 0 1 1 2", "cell"], "tensor 0 has no such cost left"),
    (MANY, {"devices": "64 64", "device": " ".join(["0"] * 128)}, 9, [*CASES, "cell"],
     "too many combinations of devices"),
    (PAIR, {"value": 21}, 10, ["proof totals"], "the value of the split is 20, the bound 10"),
    (PAIR, {}, 21, ["proof totals"], "the value of the split is 20, the bound 21"),
    (PAIR, {"stage": "1 0"}, 10, ["proof totals"], "nodes 0 and 1 are in the wrong order"),
    (PAIR | {"nodes": [{"time_ns": 10, "pin": 1}, {"time_ns": 10}]}, {}, 10, ["proof totals"],
     "node 0 is pinned to stage 1"),
    (PAIR | {"nodes": [{"time_ns": 10, "together": 0}] * 2}, {"stage": "0 1"}, 10, ["proof totals"],
     "nodes 0 and 1 must stay together"),
    (NOWHERE, {"devices": "1 1"}, 10, ["proof totals"], "node 0 cannot run on the device of stage 0"),
    (PAIR, {}, 10, ["proof totals", "end 00000000"], "more lines behind the end"),
)


def by_hand(checker, content, changes, bound, proof):
    """A certificate that nobody made, whose split is all in the first stage."""
    problem = checker.Problem(content)
    head = {"psplit-certificate": 1, "problem": f"{problem.digest()} {problem.n} {len(problem.nets)}",
            "objective": "throughput", "contiguous": 1, "no-empty-stages": 0, "chunks": 1,
            "comm": content.get("comm", "p2p"), "overlap": 0, "devices": 2, "stage": " ".join("0" * problem.n),
            "device": "0 0", "value": 20} | changes | {"claimed": bound, "bound": bound}
    return problem, seal([f"{word} {value}".rstrip() for word, value in head.items()] + proof)


def mutate(rng, lines):
    lines = list(lines)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        i, kind = rng.randrange(len(lines)), rng.random()
        if kind < 0.25:  # the claim itself
            i = max(k for k, line in enumerate(lines) if line.startswith("bound")) if any(
                line.startswith("bound") for line in lines) else i
        if kind < 0.7:
            words = lines[i].split(" ")
            places = [k for k, word in enumerate(words) if re.fullmatch(r"-?\d+", word)]
            if places:
                k = rng.choice(places)
                value = int(words[k])
                words[k] = str(rng.choice((value + 1, value - 1, value + rng.randint(2, 9), 0,
                                           value * 2, rng.randint(0, 12))))
                lines[i] = " ".join(words)
        elif kind < 0.8:
            del lines[i]
        elif kind < 0.87:
            lines.insert(i, rng.choice(lines))
        elif kind < 0.95:
            j = rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines[i] = rng.choice(("cell", "round", "in 0", "above 5", "join 0 1", "limit 0 1",
                                   "send 0 1 3", "proof cut", "proof totals", "proof cases",
                                   "empty-stages 0", "receivers 1", "relays", "messages", "any-way", "", "\xff"))
        if not lines:
            lines = ["bound 1"]
    return lines


def orders(problem, claim):
    """Devices by stage, in every order that is allowed."""
    places = [d for d, n in enumerate(claim.counts) for _ in range(n)]
    return set(itertools.permutations(places)) if problem.any_order else {tuple(places)}


def optimum(checker, problem, claim):
    """The least value over all splits for what the claim is about; None: there is none."""
    best, quiet = None, checker.Lines(seal([]))
    c = copy.copy(claim)
    labels = list(itertools.product(range(c.chunks), range(c.n_stages)))
    for device in orders(problem, c):
        c.device = list(device)
        for split in itertools.product(labels, repeat=problem.n):
            c.chunk, c.stage = [x for x, _ in split], [x for _, x in split]
            try:
                value = checker.value_of(problem, c, quiet)
            except checker.Refused:
                continue
            best = value if best is None else min(best, value)
    return best


class Spoiler:
    """Checks certificates in this process."""

    def __init__(self, checker):
        self.checker, self.refused, self.true, self.false, self.cache = checker, 0, 0, [], {}

    def verdict(self, problem, data):
        """None, or (line, text) of a refusal."""
        try:
            list(self.checker.check(problem, data))
        except self.checker.Refused as error:
            return error.args
        return None

    def spoil(self, rng, name, problem, lines, known=None):
        """One altered certificate; known: the optimum for the head as it was."""
        spoilt = mutate(rng, lines)
        data = seal(spoilt)
        try:
            verdict = self.verdict(problem, data)
        except Exception as error:  # pylint: disable=broad-except
            self.false.append(f"{name}: {type(error).__name__}: {error}\n" + data.decode("latin-1"))
            return
        if verdict:
            self.refused += 1
            if not (isinstance(verdict[0], int) and 0 < verdict[0] <= len(spoilt) + 2):
                self.false.append(f"{name}: refused without a line: {verdict}")
            return
        claim = self.checker.Claim(problem, self.checker.Lines(data))
        if claim.any_way:
            return  # message_certificates.py has the ways
        about = (claim.objective, claim.contiguous, claim.no_empty, claim.chunks, claim.comm,
                 claim.overlap, tuple(claim.counts))
        if known is None or about != self.about(lines, problem):
            if problem.n * (claim.n_stages * claim.chunks) > 45:
                return  # a question that enumeration does not answer
            key = (name, about)
            if key not in self.cache:
                self.cache[key] = optimum(self.checker, problem, claim)
            known = self.cache[key]
        if known is not None and claim.bound > known:
            self.false.append(f"{name}: {claim.bound} > {known}\n" + data.decode("latin-1"))
        self.true += 1

    def about(self, lines, problem):
        c = self.checker.Claim(problem, self.checker.Lines(seal(lines)))
        return (c.objective, c.contiguous, c.no_empty, c.chunks, c.comm, c.overlap,
                tuple(c.counts))


def table(options, spoiler, rng):
    def cpu_seconds(*command):
        before = sum(os.times()[2:4])
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        return sum(os.times()[2:4]) - before, done

    print("CPU seconds: without a certificate, with one, to check it")
    print(f"{'problem':36} {'solve':>8} {'certify':>8} {'check':>8} {'bytes':>8}  what")
    with tempfile.TemporaryDirectory() as directory:
        cert = os.path.join(directory, "c")
        for name in sorted(os.listdir(options.dir)):
            path = os.path.join(options.dir, name)
            if not name.endswith(".json"):
                continue
            solve, _ = cpu_seconds(options.plan, path)
            certify, _ = cpu_seconds(options.plan, "--certificate", cert, path)
            seconds, done = cpu_seconds(sys.executable, options.checker, path, cert)
            print(f"{name:36} {solve:8.2f} {certify:8.2f} {seconds:8.2f} "
                  f"{os.path.getsize(cert):8}  {'; '.join(done.stdout.splitlines()[1:])}"
                  f"{done.stderr.strip()}", flush=True)
            with open(path, encoding="utf-8") as file:
                problem = spoiler.checker.Problem(json.load(file))
            with open(cert, "rb") as file:
                data = file.read()
            known = spoiler.checker.Claim(problem, spoiler.checker.Lines(data)).value
            for _ in range(options.mutations):
                spoiler.spoil(rng, name, problem, data.decode().split("\n")[:-2], known)
    print(f"{spoiler.refused} spoilt ones refused, {spoiler.true} still true, "
          f"{len(spoiler.false)} false")
    return 1 if spoiler.false else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan")
    parser.add_argument("checker")
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--mutations", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir")
    options = parser.parse_args()
    checker, rng = load(options.checker), random.Random(options.seed)
    spoiler = Spoiler(checker)
    if options.dir:
        return table(options, spoiler, rng)
    wrong, partial, kinds, n_optimal, n_made = [], 0, {}, 0, 0
    with tempfile.TemporaryDirectory() as directory:
        path, cert = os.path.join(directory, "p.json"), os.path.join(directory, "p.cert")

        def make(content, more):
            """(problem, certificate, plan), or None where there is no split."""
            with open(path, "w", encoding="utf-8") as out:
                json.dump(content, out)
            done = subprocess.run([options.plan, "--json", "--quiet", "--certificate", cert, *more,
                                   path], capture_output=True, text=True, timeout=120)
            if done.returncode in (4, 5, 7):
                return None
            if done.returncode:
                wrong.append(f"exit status {done.returncode}: {done.stderr}\n{content} {more}")
                return None
            with open(cert, "rb") as file:
                return checker.Problem(content), file.read(), json.loads(done.stdout)

        problem, data, plan = make(shared_messages(), [])
        claim = checker.Claim(problem, checker.Lines(data))
        check("messages by shared memory are in the certificate", plan["proved_optimal"] and
              spoiler.verdict(problem, data) is None and claim.bound == claim.value == 20)
        for name, content, more, line in (
                ("cases over two kinds of devices", two_kinds_of_devices(0), [], b"proof cases"),
                ("cases of more than 64 clusters", many_clusters(2), [], b"proof cases"),
                ("cases with overlap", large_problem(random.Random(176))[0] | {"overlap": True},
                 ["--no-empty-stages"], b"proof cases"),
                ("flows", random_problem(random.Random(1120))[0], ["--non-contiguous"], b"send "),
                ("flows of 1", random_problem(random.Random(1104))[0], ["--non-contiguous"],
                 b"receive 0 3 1")):
            problem, data, plan = make(content, more)
            claim, verdict = checker.Claim(problem, checker.Lines(data)), spoiler.verdict(problem, data)
            check(f"{name} prove the whole bound", plan["proved_optimal"] and not verdict and
                  claim.bound == claim.claimed == claim.value and b"\n" + line in data,
                  verdict or data.decode())
        others = []
        for i in range(options.problems):
            small = i % 3 != 2
            content, more = (random_problem if small else large_problem)(rng)
            made = make(content, more)
            if not made:
                continue
            problem, data, plan = made
            n_made += 1
            verdict = spoiler.verdict(problem, data)
            if verdict:
                wrong.append(f"refused: {verdict}\n{json.dumps(content)} {more}\n{data.decode()}")
                continue
            lines = data.decode().split("\n")[:-2]
            claim = checker.Claim(problem, checker.Lines(data))
            kind = next(line for line in lines if line.startswith("proof"))
            kinds[kind] = kinds.get(kind, 0) + 1
            partial += claim.bound < claim.claimed
            n_optimal += claim.bound == claim.value
            known = claim.value if plan["proved_optimal"] else None
            if small and problem.n * claim.n_stages * claim.chunks <= 24:
                best = optimum(checker, problem, claim)
                if best is None or claim.bound > best or (known is not None and known != best):
                    wrong.append(f"best {best}, bound {claim.bound}, proved {known}\n"
                                 f"{json.dumps(content)} {more}\n{data.decode()}")
            for _ in range(options.mutations):
                spoiler.spoil(rng, f"problem {i}", problem, lines, known)
            others.append((problem, data))
        check(f"certificates of {n_made} random problems hold ({n_optimal} optimal, {partial} of "
              f"less than the program's bound; {kinds})", not wrong, "\n".join(wrong[:3]))
        check("most are of the whole bound", partial <= n_made // 10, partial)
        check(f"{spoiler.refused + spoiler.true} spoilt ones: {spoiler.refused} refused with a "
              f"line, {spoiler.true} still true", not spoiler.false, "\n".join(spoiler.false[:3]))
        check("some of both", spoiler.refused > 0 and spoiler.true > 0)

        problem, data = others[0]
        swapped = [spoiler.verdict(problem, other) for _, other in others[1:9]]
        check("another problem's is refused, at the line that names the problem",
              swapped and all(v and v[0] == 2 for v in swapped), swapped)
        cut = [spoiler.verdict(problem, data[:n]) for n in range(len(data))]
        check("one that is cut short is refused", all(cut), [n for n, v in enumerate(cut) if not v])
        flipped = [spoiler.verdict(problem, data[:n] + bytes([data[n] ^ 1]) + data[n + 1:])
                   for n in range(len(data))]
        check("one with another byte is refused", all(flipped))

        wrong = []
        for *lie, words in BY_HAND:
            verdict = spoiler.verdict(*by_hand(checker, *lie))
            if (verdict or (0, "no"))[1].find(words) < 0 or bool(verdict) != bool(words):
                wrong.append(f"{lie[1:]}: {verdict}, not: {words or 'it holds'}")
        check("what is written by hand is told", not wrong, "\n".join(wrong))

        def outside(*arguments):
            return subprocess.run([sys.executable, options.checker, *arguments],
                                  capture_output=True, text=True, timeout=120)

        chain = {"format": "psplit-problem", "devices": [{"count": 2}],
                 "nodes": [{"time_ns": 4}, {"time_ns": 5}, {"time_ns": 3}],
                 "tensors": [{"producer": 0, "consumers": [1], "send_ns": 2, "recv_ns": 2}]}
        make(chain, [])
        done = outside(path, cert)
        check("the checker says what holds", done.returncode == 0 and "bound 9 (9) holds" in
              done.stdout and "optimal" in done.stdout, done.stdout + done.stderr)
        with open(cert, "rb") as file:
            lines = file.read().decode().split("\n")[:-2]
        bound = next(i for i, line in enumerate(lines) if line.startswith("bound "))
        lines[bound] = "bound 10"
        with open(cert, "wb") as out:
            out.write(seal(lines))
        done = outside(path, cert)
        check("a refusal names file and line", done.returncode == 1 and re.match(
            r"refused: .*p\.cert:\d+: ", done.stderr) and done.stdout == "", done.stderr)
        unread = []
        for change in ({"version": 2}, {"nodes": []}, {"format": "other"}, *(
                {"nodes": [{"time_ns": time}, *chain["nodes"][1:]]} for time in (-1, True, "4", [4, 4]))):
            with open(os.path.join(directory, "bad.json"), "w", encoding="utf-8") as out:
                json.dump(chain | change, out)
            done = outside(os.path.join(directory, "bad.json"), cert)
            if done.returncode != 3 or not re.match(r"error: .*bad\.json: ", done.stderr):
                unread.append(f"{change}: {done.returncode}, {done.stderr}")
        check("a problem that is none is told", not unread, "\n".join(unread))
        check("a missing file", outside(path, os.path.join(directory, "none")).returncode == 3)
        check("no arguments", outside().returncode == 2)
        done = subprocess.run([options.plan, "--certificate", os.path.join(directory, "no", "x"),
                               path], capture_output=True, text=True, timeout=60)
        check("a place that takes no file is refused before the work", done.returncode == 3,
              done.stderr)
        done = subprocess.run([options.plan, "--certificate", cert, "--replicas", "2", path],
                              capture_output=True, text=True, timeout=60)
        check("replicas have no certificates", done.returncode == 5 and "replicas" in done.stderr,
              done.stderr)
    print(f"1..{N[0]}")
    return 1 if FAILED[0] else 0


if __name__ == "__main__":
    sys.exit(main())
