#!/usr/bin/env python3
"""Checks a certificate that onnx-pipeline-plan or onnx-pipeline-split wrote: whether the split has
the value that it says, and whether no split can be better than the bound that it says.

    psplit-check-certificate.py [--max-text MIB] PROBLEM.json CERTIFICATE

Each is a regular file of up to 64 MiB, or as --max-text says. Needs nothing but Python and shares
nothing with the programs. What each line of a certificate claims, and why that proves the bound, is
in docs/certificates.md.

Exit status: 0 it holds, 1 refused (with the line that fails), 2 usage, 3 a file cannot be read,
129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM."""
import functools
import graphlib
import json
import math
import operator
import os
import re
import signal
import stat
import sys
import zlib
from fractions import Fraction

BACKWARD, AUXILIARY, UNCUTTABLE, NO_MESSAGE = 1, 2, 1, 2
INF, MOST_STATES = 1 << 61, 1 << 12
# What is known of the stage in front of those that are formed, where tensors go any way: it is not bypassed; it is,
# and sends the one behind it something, or nothing; either, beside one that is and receives something, or may not.
NOT_BYPASSED, SENDS, SENDS_NOTHING, BESIDE_READER, BESIDE_ANY = range(5)
OPEN = [(NOT_BYPASSED,), (SENDS, SENDS_NOTHING), (SENDS_NOTHING,), (BESIDE_READER, SENDS, SENDS_NOTHING), range(5)]

class Refused(Exception):
    """The number of a line and what is wrong with it."""

def truth(value):
    return isinstance(value, (int, float)) and value != 0

def scale_of(total):
    scale = 1e9
    while scale > 1e-12 and total * scale > 2.0**58:
        scale /= 10
    return scale

def number_of_bytes(value):
    if value is not None and (isinstance(value, bool) or not 0 <= value < 2**53):
        raise ValueError(f"{value!r} is not a number of bytes")
    return math.ceil(value or 0)

def from_published(root):
    """A dnn-partitioning problem in terms of the other format, and its scale."""
    total, lists = 1.0, {}
    for x in root["nodes"]:
        total += max(x["cpuLatency"], x["fpgaLatency"], 0)
    for x in root["edges"]:
        total += 2 * max(x["cost"], 0.0)
        lists.setdefault(x["sourceId"], []).append((x["destId"], x["cost"]))
    colors = sorted({x["colorClass"] for x in root["nodes"] if x.get("colorClass") is not None})
    rank = {color: i for i, color in enumerate(colors)}
    nodes = [{"id": x.get("id", v), "weight_bytes": x.get("size"),
              "time_ns": [x["fpgaLatency"] if truth(x.get("supportedOnFpga")) else None,
                          x["cpuLatency"]],
              "backward": x.get("isBackwardNode"), "together": rank.get(x.get("colorClass"))}
             for v, x in enumerate(root["nodes"])]
    place = {x["id"]: v for v, x in enumerate(nodes)}
    costs = {u: [max(cost for _, cost in list_), 0] for u, list_ in lists.items()}
    tensors = [{"producer": u, "consumers": sorted((v for v, _ in lists[u]), key=place.get),
                "send_ns": costs[u], "recv_ns": costs[u]} for u in sorted(lists, key=place.get)]
    memory = root.get("maxSizePerFPGA", 0)
    return {"nodes": nodes, "tensors": tensors, "any_device_order": True, "devices": [
        {"name": "accelerator", "count": root["maxFPGAs"],
         "memory_bytes": memory if memory < 2**53 else 0},
        {"name": "cpu", "class": 1, "count": root.get("maxCPUs", 0), "free_comm": True}
    ]}, scale_of(total)

def from_piper(root):
    """A problem of Piper in terms of the other format, and its scale."""
    total, ways, place = 1.0, [x["TMPCs"]["1"][0] for x in root["nodes"]], {}
    for v, x in enumerate(root["nodes"]):
        place[x.get("id", v)] = v
        total += max(ways[v]["timePerSample"], 0.0)
    tensors = []
    for x in root["edges"]:
        u, v, n_bytes = x["sourceId"], x["destId"], x["communicationCost"]
        ends = [2 * (n_bytes + sync.get(str(other), 0.0)) / root["bandwidth"] for sync, other in
                ((ways[place[u]]["syncTimeBw"], v), (ways[place[v]]["syncTimeFw"], u))]
        total += ends[0] + ends[1]
        tensors.append({"producer": u, "consumers": [v], "send_ns": ends[0], "recv_ns": ends[1]})
    nodes = [{"id": x.get("id", v), "time_ns": float(ways[v]["timePerSample"]),
              "weight_bytes": ways[v].get("memoryUsageB"),
              "activation_bytes": ways[v].get("memoryUsageA")} for v, x in enumerate(root["nodes"])]
    memory = root["maxMemoryPerDevice"]
    return {"format": "piper", "nodes": nodes, "tensors": tensors, "stash_1f1b": True, "devices": [
        {"name": "accelerator", "count": root["maxDevices"],
         "memory_bytes": memory if memory < 2**53 else 0}]}, scale_of(total)

class Problem:
    """Numbers of a problem: times are integers (ticks), a time of None: cannot run there."""
    def __init__(self, root):
        if root.get("format") == "psplit-problem":
            self.scale = None
        elif "maxFPGAs" in root:
            root, self.scale = from_published(root)
        elif "maxDevices" in root:
            root, self.scale = from_piper(root)
        else:
            raise ValueError("neither a psplit-problem nor a problem of dnn-partitioning or Piper")
        if root.get("version", 1) != 1 or not root["nodes"]:
            raise ValueError("only version 1 is known, and one node is needed")
        nodes, tensors, links = root["nodes"], root.get("tensors", []), root.get("links")
        self.scale = self.scale or self.find_scale(nodes, tensors)
        self.index = {}
        for v, x in enumerate(nodes):
            if self.index.setdefault(x.get("id", v), v) != v:
                raise ValueError(f"two nodes have the id {x['id']!r}")
        self.n, self.node = len(nodes), self.index.__getitem__
        self.devices = [(d.get("class", 0), number_of_bytes(d.get("memory_bytes")),
                         truth(d.get("free_comm")), d.get("name", "device"))
                        for d in root["devices"]]
        self.n_classes = max(d[0] for d in self.devices) + 1 if "format" in root else 2
        self.time = [self.per_class(x["time_ns"], True) for x in nodes]
        self.weight_bytes = [number_of_bytes(x.get("weight_bytes")) for x in nodes]
        self.activation_bytes = [number_of_bytes(x.get("activation_bytes")) for x in nodes]
        self.flags = [truth(x.get("backward")) * BACKWARD + truth(x.get("auxiliary")) * AUXILIARY
                      for x in nodes]
        self.together, self.pin = ([x.get(key) for x in nodes] for key in ("together", "pin"))
        pairs = root.get("message_latency", "per_tensor") == "per_pair"
        self.message = [self.over(link, 0, True) for link in links] if pairs and links else None
        self.nets = []
        for x in tensors:
            n_bytes = number_of_bytes(x.get("bytes"))
            linked = [self.over(link, n_bytes, not pairs) for link in
                      links or [{}] * self.n_classes]
            self.nets.append((self.node(x["producer"]), [self.node(v) for v in x["consumers"]],
                              self.per_class(x["send_ns"], False) if "send_ns" in x else linked,
                              self.per_class(x["recv_ns"], False) if "recv_ns" in x else linked,
                              truth(x.get("uncuttable")) * UNCUTTABLE +
                              truth(x.get("no_message")) * NO_MESSAGE))
        self.least_nets = self.nets  # what bounds count
        self.order = [(self.node(a), self.node(b)) for a, b in root.get("order", [])]
        self.groups = [(number_of_bytes(g.get("bytes")), [self.node(v) for v in g["users"]])
                       for g in root.get("weights", [])]
        self.any_order = truth(root.get("any_device_order"))
        self.stash = truth(root.get("stash_1f1b"))
    @staticmethod
    def find_scale(nodes, tensors):
        """Whole numbers stay what they are; else a power of ten."""
        total, fraction = 1.0, False
        for keys, items in ((["time_ns"], nodes), (["send_ns", "recv_ns"], tensors)):
            for value in (x.get(key) for x in items for key in keys):
                values = value if isinstance(value, list) else [value]
                fraction |= any(isinstance(x, float) for x in values)
                total += max([0.0] + [float(x) for x in values if x is not None])
        return scale_of(total) if fraction else 1
    def ticks(self, value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise ValueError(f"{value!r} is no time")
        if self.scale == 1 and isinstance(value, int):
            return value
        scaled = float(value) * self.scale
        return math.floor(scaled) + (scaled - math.floor(scaled) >= 0.5)
    def per_class(self, value, none_allowed):
        values = value if isinstance(value, list) else [value] * self.n_classes
        if len(values) != self.n_classes:
            raise ValueError(f"{value!r} is not one number per class")
        return [None if none_allowed and x is None else self.ticks(x) for x in values]
    def over(self, link, n_bytes, latency):
        rate = float(link.get("bytes_per_s", 0))
        ns = float(math.ceil(n_bytes / rate * 1e9)) if rate > 0 else 0.0
        more = float(math.ceil(link.get("latency_ns", 0))) if latency else 0.0
        return int((ns + more) * self.scale)
    def digest(self):
        out = [self.n, self.n_classes]
        for v in range(self.n):
            out += [-1 if t is None else t for t in self.time[v]]
            out += [self.weight_bytes[v], self.activation_bytes[v], self.flags[v]]
            out += [0 if x is None else x + 1 for x in (self.together[v], self.pin[v])]
        out.append(len(self.nets))
        for producer, consumers, send, recv, flags in self.nets:
            out += [producer, len(consumers), *consumers]
            out += [x for pair in zip(send, recv) for x in pair] + [flags]
        out += [len(self.order)] + [v for pair in self.order for v in pair] + [len(self.groups)]
        for n_bytes, users in self.groups:
            out += [n_bytes, len(users), *users]
        out += [len(self.devices)] + [int(x) for device in self.devices for x in device[:3]]
        out += [int(self.any_order), int(self.stash), *(self.message or [])]
        return f"{zlib.crc32((' '.join(map(str, out)) + ' ').encode()):08x}"
    def edges(self):
        """What orders stages, as pairs: the first is in no later stage than the second. Between
        backward nodes, of which one has no forward node to stay with: the other way round."""
        forward = {self.together[v] for v in range(self.n) if not self.flags[v] & BACKWARD} - {None}
        twin = [not self.flags[v] & BACKWARD or self.together[v] in forward for v in range(self.n)]
        edges = set(self.order).union((u, v) for u, vs, *_ in self.nets for v in vs)
        for u, v in sorted(edges):
            back = self.flags[u] & BACKWARD, self.flags[v] & BACKWARD
            if not any(back):
                yield u, v
            elif all(back) and not (twin[u] and twin[v]):
                yield v, u

class Lines:
    """The lines of a certificate; `at` is the number of the last one taken, from 1."""
    def __init__(self, data):
        self.lines = data.decode("ascii", errors="replace").split("\n")
        self.at = len(self.lines) - 1
        if self.lines.pop() != "" or not self.lines or not self.lines[-1].startswith("end "):
            self.fail("cut short: the last line is not \"end\" and a checksum")
        if self.lines[-1] != f"end {zlib.crc32(data[:data.rindex(b'end ')]):08x}":
            self.fail("altered: the checksum is of other lines")
        self.at = 0
    def fail(self, text, at=None):
        raise Refused(at or self.at, text)
    def peek(self):
        return self.lines[self.at].split(" ", 1)[0] if self.at < len(self.lines) else ""
    def number(self, word, low=0, high=INF):
        return self.integer(self.take(word, 1)[0], low, high)
    def integers(self, word, n, high):
        return [self.integer(x, 0, high) for x in self.take(word, n)]
    def take(self, word, n):
        """The n words behind `word` on the next line."""
        words = self.lines[self.at].split(" ") if self.at < len(self.lines) else [""]
        self.at += 1
        if words[0] != word or n not in (None, len(words) - 1):
            self.fail(f"\"{word}\" and {n} more words are expected")
        return words[1:]
    def integer(self, text, low=0, high=INF):
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            self.fail(f"\"{text}\" is not a number from {low} to {high}")
        return int(text)
    def choice(self, word, *choices):
        chosen = self.take(word, 1)[0]
        if chosen not in choices:
            self.fail(f"\"{word}\" is one of " + ", ".join(choices))
        return chosen

class Claim:
    """What the head of a certificate says."""
    def __init__(self, p, lines):
        lines.choice("psplit-certificate", "1")
        known = [p.digest(), str(p.n), str(len(p.nets))]
        if lines.take("problem", 3) != known:
            lines.fail("of another problem: this one is " + " ".join(known))
        self.objective = lines.choice("objective", "throughput", "latency")
        self.contiguous, self.no_empty, self.chunks = (
            lines.number(word, *limits) for word, *limits in (
                ("contiguous", 0, 1), ("no-empty-stages", 0, 1), ("chunks", 1, 1024)))
        self.comm = lines.choice("comm", "p2p", "shared")
        self.overlap = lines.number("overlap", 0, 1)
        if self.objective == "latency" and (self.chunks > 1 or not self.contiguous):
            lines.fail("latency requires contiguous stages and one chunk")
        self.counts = lines.integers("devices", len(p.devices), 1 << 32)
        self.n_stages = sum(self.counts)
        if not 0 < self.n_stages <= 1 << 24:
            lines.fail("no such number of devices")
        self.stage, self.chunk = lines.integers("stage", p.n, self.n_stages - 1), [0] * p.n
        self.stage_line = lines.at
        if self.chunks > 1:
            self.chunk = lines.integers("chunk", p.n, self.chunks - 1)
        self.device = lines.integers("device", self.n_stages, len(p.devices) - 1)
        self.value, self.value_line = lines.number("value"), lines.at
        self.relays = lines.peek() == "relays" and lines.take("relays", 0) == []
        self.trunk = lines.integers("trunk", None, len(p.nets) - 1) if (
            lines.peek() == "trunk") else []
        self.trunk_line = lines.at
        self.messages, self.any_way = (
            lines.peek() == word and lines.take(word, 0) == [] for word in ("messages", "any-way"))
        messages_line = lines.at
        self.ways = dict(self.take_way(p, lines) for _ in iter(lambda: lines.peek() == "way", False))
        self.claimed, self.bound = lines.number("claimed"), lines.number("bound")
        self.plain = self.objective == "throughput" and self.contiguous and self.chunks == 1
        if self.relays and self.comm != "shared":
            lines.fail("with relays a tensor counts once")
        if self.messages and (not p.message or self.trunk or not self.plain):
            lines.fail("no messages count here, or a trunk stands for them", messages_line)
        if self.any_way and (not self.messages or self.comm != "shared" or self.overlap or
                             not self.no_empty or any(device[2] for device in p.devices)):
            lines.fail("what stages pass on does not count here", messages_line)

    def take_way(self, p, lines):
        """A tensor that is passed on, and its hops between stages: each from where it is by then."""
        words = lines.integers("way", None, INF)
        net, stages = (words or [len(p.nets)])[0], words[1:]
        if not self.any_way or net >= len(p.nets) or len(stages) % 2 or (
                any(s >= self.n_stages for s in stages)):
            lines.fail("no such tensor is passed on")
        hops, held = list(zip(stages[::2], stages[1::2])), {self.stage[p.nets[net][0]]}
        for a, b in hops:
            if a not in held or b in held or a >= b:
                lines.fail(f"stage {a} cannot pass it on to {b}")
            held.add(b)
        if not held.issuperset(self.stage[v] for v in p.nets[net][1]):
            lines.fail("it does not come to all that read it")
        return net, hops

def take_trunk(p, c, lines):
    """Tensors of which no stage receives two, nor sends two: each has all its consumers at or
    before the producer of the next. Each takes as long as a message longer."""
    def wrong(e, text):
        lines.fail(f"tensor {e} is on no trunk: {text}", c.trunk_line)
    if not c.trunk:
        return
    if not p.message or not c.contiguous or len(set(c.trunk)) < len(c.trunk):
        wrong(c.trunk[0], "nothing orders stages and messages, or it is there twice")
    before = [[] for _ in range(p.n)]  # of forward nodes
    for u, v in [(u, v) for u, vs, *_ in p.nets for v in vs] + p.order:
        if not (p.flags[u] | p.flags[v]) & BACKWARD:
            before[v].append(u)
    place = {v: i for i, v in enumerate(graphlib.TopologicalSorter(
        dict(enumerate(before))).static_order())}
    trunk = sorted(c.trunk, key=lambda e: place[p.nets[e][0]])
    for e, after in zip(trunk, trunk[1:] + [None]):
        producer, consumers, _, _, flags = p.nets[e]
        if flags & NO_MESSAGE or any(p.flags[v] & BACKWARD for v in (producer, *consumers)):
            wrong(e, "it makes no message, or is of the backward pass")
        if after is None:
            continue
        first = min(place[v] for v in consumers)
        found, open_ = {p.nets[after][0]}, [p.nets[after][0]]
        while open_:
            for u in before[open_.pop()]:
                if u not in found and place[u] >= first:
                    found.add(u)
                    open_.append(u)
        if not found.issuperset(consumers):
            wrong(e, f"a consumer is not before the producer of tensor {after}")
    p.least_nets = list(p.nets)
    for e in trunk:
        producer, consumers, send, recv, flags = p.nets[e]
        p.least_nets[e] = (producer, consumers, [a + b for a, b in zip(send, p.message)],
                           [a + b for a, b in zip(recv, p.message)], flags)

def check_split(p, c, lines):
    """Every demand on the split; what each stage computes and holds."""
    def wrong(text):
        lines.fail(text, c.stage_line)
    k, busy = c.n_stages, sorted(set(c.stage))
    place = [chunk * k + stage for chunk, stage in zip(c.chunk, c.stage)]
    first, used = {}, [0] * len(p.devices)
    compute, memory, filled = [0] * k, [0] * k, [False] * k
    for v, s in enumerate(c.stage):
        if p.pin[v] not in (None, s):
            wrong(f"node {v} is pinned to stage {p.pin[v]}")
        if p.together[v] is not None and place[first.setdefault(p.together[v], v)] != place[v]:
            wrong(f"nodes {first[p.together[v]]} and {v} must stay together")
        time = p.time[v][p.devices[c.device[s]][0]]
        if time is None:
            wrong(f"node {v} cannot run on the device of stage {s}")
        compute[s] += time
        filled[s] |= not p.flags[v] & AUXILIARY
        memory[s] += p.weight_bytes[v] + p.activation_bytes[v] * (k - s if p.stash else 1)
    for u, vs, _, _, flags in p.nets:
        if flags & UNCUTTABLE and {place[v] for v in vs} - {place[u]}:
            wrong(f"a tensor of node {u} cannot be sent")
    for u, v in p.edges() if c.contiguous else []:
        if place[u] > place[v]:
            wrong(f"nodes {u} and {v} are in the wrong order")
    for n_bytes, users in p.groups:
        for s in {c.stage[v] for v in users}:
            memory[s] += n_bytes
    for s in busy:
        used[c.device[s]] += 1
        if 0 < p.devices[c.device[s]][1] < memory[s]:
            wrong(f"stage {s} holds {memory[s]} bytes, more than its device")
    if c.no_empty and not all(filled):
        wrong(f"stage {filled.index(False)} is empty")
    if any(n > most for n, most in zip(used, c.counts)):
        wrong("more devices are in use than there are")
    if not p.any_order and any(c.device[a] > c.device[b] for a, b in zip(busy, busy[1:])):
        wrong("devices are out of order")
    return compute

def value_of(p, c, lines):
    compute, k = check_split(p, c, lines), c.n_stages
    recv, send, ready = ([0] * k for _ in range(3))
    after = [set() for _ in range(k)]
    devices = [p.devices[d] for d in c.device]
    pairs = set()  # of stages, of which the first sends the second a message
    for e, (u, vs, to_send, to_recv, flags) in enumerate(p.nets):
        home = c.stage[u]
        readers = {c.stage[v] for v in vs} - {home}
        after[home] |= readers
        message = p.message and not flags & NO_MESSAGE
        hops = c.ways.get(e) if message else None
        hops = [(home, s) for s in readers] if hops is None else hops
        if message:
            pairs.update(hops)
        for _, s in hops:
            recv[s] += 0 if devices[s][2] else to_recv[devices[s][0]]
        once = c.comm == "shared" and not (message and c.any_way)
        for a in {a for a, _ in hops} if once else [a for a, _ in hops]:
            send[a] += 0 if devices[a][2] else to_send[devices[a][0]]
    senders, receivers = [a for a, _ in pairs], [b for _, b in pairs]
    if c.comm == "shared" and not c.any_way:  # one for all
        senders, receivers = set(senders), set(receivers)
    for a in senders:
        send[a] += 0 if devices[a][2] else p.message[devices[a][0]]
    for b in receivers:
        recv[b] += 0 if devices[b][2] else p.message[devices[b][0]]
    for u, v in p.order:
        after[c.stage[u]].add(c.stage[v])
    load = [max(parts) if c.overlap else sum(parts) for parts in zip(compute, recv, send)]
    if c.objective == "throughput":
        return max(load)
    for s in range(k):  # a stage starts when all that feeds it has ended
        for t in after[s]:
            ready[t] = max(ready[t], ready[s] + load[s] if t > s else 0)
    return max(a + b for a, b in zip(ready, load))

def find(parent, x):
    while parent[x] != x:
        parent[x] = x = parent[parent[x]]
    return x

def unite(parent, a, b):
    a, b = find(parent, a), find(parent, b)
    parent[max(a, b)] = min(a, b)

class Types:
    """Devices that differ: class, memory, whether they pay nothing; and how many of each."""
    def __init__(self, p, c):
        self.place = [device[:3] for device, n in zip(p.devices, c.counts) for _ in range(n)]
        self.of = list(dict.fromkeys(self.place))
        self.place = [self.of.index(key) for key in self.place]
        self.count = [self.place.count(t) for t in range(len(self.of))]
        self.n = len(self.of)

class Instance:
    """The problem with classes of nodes as its items, numbered so that edges go up."""
    def __init__(self, p, c, types, parent, edges):
        self.types, self.messages = types, c.messages
        while True:
            roots = [find(parent, v) for v in range(p.n)]
            pred = {r: set() for r in roots}
            for u, v in edges:
                if roots[u] != roots[v]:
                    pred[roots[v]].add(roots[u])
            try:
                self.sorted = list(graphlib.TopologicalSorter(pred).static_order())
                break
            except graphlib.CycleError as error:  # what is on a cycle shares a stage
                for r in error.args[1]:
                    unite(parent, r, error.args[1][0])
        self.n = len(self.sorted)
        index = {r: i for i, r in enumerate(self.sorted)}
        self.item = [index[r] for r in roots]
        self.pred = [[index[x] for x in pred[r]] for r in self.sorted]
        self.succ = [[] for _ in range(self.n)]
        for i, before in enumerate(self.pred):
            for j in before:
                self.succ[j].append(i)
        self.members(p, c)
        self.fill_nets(p)
    def members(self, p, c):
        n, of = self.n, self.types.of
        self.w, self.bytes = [[0] * n for _ in of], [0] * n
        self.counted, self.pins = 0, [None] * n
        for v, i in enumerate(self.item):
            for t, (class_, _, _) in enumerate(of):
                time, w = p.time[v][class_], self.w[t]
                w[i] = None if time is None or w[i] is None else w[i] + time
            self.bytes[i] += p.weight_bytes[v] + p.activation_bytes[v]
            if not p.flags[v] & AUXILIARY:
                self.counted |= 1 << i
            if p.pin[v] is not None:
                self.pins[i] = p.pin[v]
        shared = {self.item[v] for _, users in p.groups for v in users}
        self.has_bytes = [self.bytes[i] > 0 or i in shared for i in range(n)]
        stages = c.n_stages if p.stash else 1
        total = (sum(p.weight_bytes) + stages * sum(p.activation_bytes) +
                 sum(n_bytes for n_bytes, _ in p.groups))
        self.memory_binds = any(0 < memory < total for _, memory, _ in of)
        self.min_time = [min((w[i] for w in self.w if w[i] is not None), default=INF)
                      for i in range(n)]
    def fill_nets(self, p):
        """Nets as [producer, consumers, forward, sends and receives by type], same ones summed."""
        table, self.net_of, makers = {}, [], set()
        for u, vs, send, recv, flags in p.least_nets:
            others = [v for v in vs if self.item[v] != self.item[u]]
            key = (self.item[u], frozenset(self.item[v] for v in others),
                   not any(p.flags[v] & BACKWARD for v in (u, *others)))
            if not others:
                self.net_of.append(None)
                continue
            e, to_send, to_recv = table.setdefault(
                key, (len(table), [0] * self.types.n, [0] * self.types.n))
            self.net_of.append(e)
            if self.messages and not flags & NO_MESSAGE:
                makers.add(e)
            for t, (class_, _, free) in enumerate(self.types.of):
                to_send[t] += 0 if free else send[class_]
                to_recv[t] += 0 if free else recv[class_]
        self.nets = [(*key, send, recv) for key, (_, send, recv) in table.items()]
        self.makes_message = [e in makers for e in range(len(self.nets))]
        self.touching = [[] for _ in range(self.n)]
        for e, (a, consumers, *_) in enumerate(self.nets):
            for i in (a, *consumers):
                self.touching[i].append(e)
    def least(self, e, which):
        return min((self.nets[e][which][t] for t, key in enumerate(self.types.of) if not key[2]),
                   default=0)
    def joins(self, v, u, p2p):
        """Rule M: whether v may move to u, its only neighbour on one side."""
        if self.pred[v] != [u] and self.succ[v] != [u]:
            return False
        if self.pins[v] is not None or (self.memory_binds and self.has_bytes[v]):
            return False
        if not self.messages_stay(v, u):
            return False
        for t, w in enumerate(self.w):
            if w[v] is None:
                return False
            joined, left = w[v], -w[v]
            for e in self.touching[v]:
                a, consumers, _, send, recv = self.nets[e]
                s, r, with_u = send[t], recv[t], a == u or u in consumers
                if a == v:
                    others = len(consumers) - with_u
                    joined += s * (others if p2p or others == 0 else 1) - (r if with_u else 0)
                    left += (r if others else 0) - (s if with_u else 0)
                elif with_u:
                    if len(consumers) == 1:
                        joined -= s
                        left -= r
                elif p2p and len(consumers) > 1 and s > 0:
                    return False
                else:
                    joined += r
                    left += s
            if joined > 0 or left > 0:
                return False
        return True
    def messages_stay(self, v, u):
        """Whether the stages of v and u send and receive a message anyway, if v's other nets do."""
        from_u = to_u = sends = receives = False
        for e in self.touching[v]:
            a, consumers, *_ = self.nets[e]
            if not self.makes_message[e]:
                continue
            if a == v:
                to_u |= u in consumers
                sends |= bool(consumers - {u})
            else:
                from_u |= a == u
                receives |= a != u and u not in consumers
        return (from_u or not sends) and (to_u or not receives)
    def cannot_part(self, x, y, limit):
        """Limit rule: a stage with x and without y has a load above the limit."""
        if any(free for _, _, free in self.types.of):
            return False
        paid = self.min_time[x]
        for e in self.touching[x]:
            a, consumers, *_ = self.nets[e]
            if a == x:
                paid += self.least(e, 3) if y in consumers else 0
            elif a == y:
                paid += self.least(e, 4)
            elif y in consumers:
                paid += min(self.least(e, 3), self.least(e, 4))
        return paid > limit

def read_merges(p, c, types, lines):
    """The instance in which the proof is, and whether rule M was used."""
    parent, first = list(range(p.n)), {}
    for v, class_ in enumerate(p.together):
        unite(parent, v, v if class_ is None else first.setdefault(class_, v))
    for u, v in ((net[0], v) for net in p.nets if net[4] & UNCUTTABLE for v in net[1]):
        unite(parent, u, v)
    edges = list(p.edges()) if c.contiguous else []
    joined = False
    while lines.peek() == "round":
        lines.take("round", 0)
        if not c.plain or c.overlap:
            lines.fail("no rule unites nodes here")
        instance, moved = Instance(p, c, types, parent, edges), set()
        while lines.peek() in ("join", "limit"):
            by_limit = lines.peek() == "limit"
            x, y = (instance.item[v] for v in lines.integers(lines.peek(), 2, p.n - 1))
            if by_limit and not instance.cannot_part(x, y, c.bound - 1):
                lines.fail("the two may be in different stages")
            if not by_limit:
                if x in moved or y in moved or not instance.joins(x, y, c.comm == "p2p"):
                    lines.fail("the one may not join the other")
                moved |= {x, y}
                joined = True
            unite(parent, instance.sorted[x], instance.sorted[y])
    return Instance(p, c, types, parent, edges), joined

def scales(instance):
    """By type: the least time over min_time, as a fraction."""
    return [min((Fraction(time, min_time) for time, min_time in zip(w, instance.min_time)
                 if time is not None and min_time > 0), default=Fraction(1)).as_integer_ratio()
            for w in instance.w]

def check_totals(_p, c, types, instance, _joined, lines):
    limit = c.bound - 1
    room = sum(n * (limit * down // up) for n, (up, down) in zip(types.count, scales(instance)))
    if limit >= 0 and room >= sum(instance.min_time) and limit >= max(instance.min_time):
        lines.fail(f"devices have room for all with loads of {limit}")

def check_cut(p, c, types, instance, _joined, lines):
    """A flow from a node: what does not stay within a set of items is paid for by the set."""
    if c.overlap:
        lines.fail("a cut proves nothing with overlap")
    v = instance.item[lines.number("node", 0, p.n - 1)]
    excess, through = [0] * instance.n, {}
    for word, ends in (("sent", 0), ("received", 1)) if c.messages else ():
        if lines.peek() != word:
            continue
        amount = lines.number(word)
        makers = [net for net, makes in zip(instance.nets, instance.makes_message) if makes]
        if not all(net[2] for net in instance.nets) or amount > min(
                (p.message[class_] for class_, _, free in types.of if not free), default=0):
            lines.fail("more than a message")
        others = {i for a, consumers, *_ in makers for i in (consumers if ends else [a])}
        excess[v] -= amount
        for i in set(range(instance.n)) - others:  # roots, or leaves
            excess[i] += amount
    while lines.peek() in ("send", "receive"):
        sending = lines.peek() == "send"
        net, node, amount = lines.integers(lines.peek(), 3, INF)
        e = instance.net_of[net] if net < len(p.nets) else None
        consumer = instance.item[node] if node < p.n else None
        if e is None or consumer not in instance.nets[e][1]:
            lines.fail("the node does not read the tensor")
        a = instance.nets[e][0]
        through[e, sending] = through.get((e, sending), 0) + amount
        if through[e, sending] > instance.least(e, 3 if sending else 4):
            lines.fail("more flow than the tensor costs")
        excess[a] -= amount if sending else -amount
        excess[consumer] += amount if sending else -amount
    over = 0
    for i in range(instance.n):
        if i != v and excess[i] < 0:
            lines.fail(f"the flow does not add up at the items of node {instance.item.index(i)}")
        over += max(0, excess[i] - instance.min_time[i]) if i != v else 0
    alone = [w[v] for w, key in zip(instance.w, types.of) if key[2] and w[v] is not None]
    pays = any(not free for _, _, free in types.of)
    value = min([instance.min_time[v] - excess[v] - over] * pays + alone, default=0)
    if value < c.bound:
        lines.fail(f"the cut is {value}, less than the bound")

def bits_of(mask):
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1

class Cell:
    """Downsets with the items of `inn`, without those of `out`, that weigh from low to high."""
    def __init__(self, *known):
        self.inn, self.out, self.low, self.high, self.line = known
        self.paths = [], []  # of what is received behind a downset, and sent before one

class Cases:
    """A proof by cases: a tree of questions, its cells, and the stages between them."""
    def __init__(self, p, c, types, instance, joined, lines):
        self.c, self.types, self.instance, self.lines = c, types, instance, lines
        self.limit, self.strict = c.bound - 1, not lines.number("empty-stages", 0, 1)
        if not c.plain or self.strict and (joined or not c.no_empty) or (
                c.any_way and not self.strict):
            lines.fail("that proves nothing here")
        self.receivers = lines.number("receivers", 0, c.comm == "p2p")
        n = instance.n
        self.all = (1 << n) - 1
        self.before, self.behind = [0] * n, [0] * n
        for masks, near, order in ((self.before, instance.pred, range(n)),
                                   (self.behind, instance.succ, range(n - 1, -1, -1))):
            for i in order:
                masks[i] = functools.reduce(lambda a, j: a | masks[j], near[i], 1 << i)
        self.n_bytes = (n + 7) // 8
        self.table, self.memory = self.tabulate(instance.min_time), self.tabulate(instance.bytes)
        self.time = [self.tabulate([x or 0 for x in w]) for w in instance.w]
        self.forbidden = [sum(1 << i for i in range(n) if w[i] is None) for w in instance.w]
        self.scale, self.total = scales(instance), sum(instance.min_time)
        self.binds = [0 < memory < sum(instance.bytes) for _, memory, _ in types.of]
        self.nets = [(1 << a, sum(1 << i for i in consumers), forward, send, recv)
                     for a, consumers, forward, send, recv in instance.nets]
        self.mixed = not all(net[2] for net in self.nets)
        if c.messages and self.mixed:
            lines.fail("messages do not count where tensors run back")
        self.message = [p.message[class_] if c.messages else 0 for class_, *_ in types.of]
        makers = [net for net, makes in zip(self.nets, instance.makes_message) if makes]
        self.makers = makers
        self.roots, self.leaves = (
            self.all & ~functools.reduce(operator.or_, (net[k] for net in makers), 0)
            for k in (1, 0))
        self.make_states(p.any_order)
        self.read_tree(p)
        self.check()
    def tabulate(self, weights):
        """Sums of weights by the value of each byte of a set."""
        return [functools.reduce(lambda table, weight: table + [weight + x for x in table],
                                 weights[at:at + 8], [0]) for at in range(0, len(weights), 8)]
    def sum(self, tables, mask):
        return sum([t[b] for t, b in zip(tables, mask.to_bytes(self.n_bytes, "little")) if b])
    def close(self, inn, out, low, high):
        """The conclusions, as (inn, out, low, high); None: nothing is in the cell."""
        while True:
            weight_in, weight_out = self.sum(self.table, inn), self.sum(self.table, out)
            low, high = max(low, weight_in), min(high, self.total - weight_out)
            if low > high:
                return None
            if low == weight_in and high == self.total - weight_out:
                return None if inn & out else (inn, out, low, high)
            free, more_in, more_out = self.all & ~inn & ~out, inn, out
            for i in bits_of(free):
                if self.total - weight_out - self.sum(self.table, self.behind[i] & free) < low:
                    more_in |= self.before[i]
                elif weight_in + self.sum(self.table, self.before[i] & free) > high:
                    more_out |= self.behind[i]
            if more_in & more_out:
                return None
            if (more_in, more_out) == (inn, out):
                return inn, out, low, high
            inn, out = more_in, more_out
    def describe(self, cell):
        """What a stage pays at least that begins behind, or ends with, a downset of the cell."""
        inn, out = cell.inn, cell.out
        cell.least = [self.sum(table, inn) for table in self.time]
        cell.most = [self.sum(table, self.all & ~out) for table in self.time]
        ahead = [net for net in self.nets if net[0] & inn and net[1] & out]
        cell.behind = [net for net in self.nets if net[0] & out and net[1] & inn
                       ] if self.mixed else []
        cell.crossing = [net for net in self.makers if net[0] & inn and net[1] & out]
        cell.ahead = [([(consumers, r[t]) for _, consumers, _, _, r in ahead if r[t]],
                       [(producer, s[t]) for producer, _, _, s, _ in ahead if s[t]])
                      for t in range(self.types.n)]
        return cell
    def read_tree(self, p):
        """The cells: leaves of the tree in the lines from here on."""
        lines, cells, stack = self.lines, [], [(0, 0, 0, self.total)]
        while stack:
            known, no, yes = stack.pop(), None, None
            inn, out, low, high = known or (0, 0, 0, 0)
            if lines.peek() == "in":
                i = self.instance.item[lines.number("in", 0, p.n - 1)]
                if known:
                    no = self.close(inn, out | self.behind[i], low, high)
                    yes = self.close(inn | self.before[i], out, low, high)
                stack += [yes, no]
            elif lines.peek() == "above":
                weight = lines.number("above")
                if known:
                    no = self.close(inn, out, low, min(high, weight))
                    yes = self.close(inn, out, max(low, weight + 1), high)
                stack += [yes, no]
            else:
                lines.take("cell", 0)
                cell = self.describe(Cell(*(known or (0, self.all, 0, 0)), lines.at))
                self.read_paths(p, cell)
                cells += [cell] if known else []
        cells.sort(key=lambda cell: cell.low)
        ends = Cell(0, self.all, 0, 0, None), Cell(self.all, 0, self.total, self.total, None)
        self.cells = [self.describe(ends[0]), *cells, self.describe(ends[1])]
    def read_paths(self, p, cell):
        """Paths from what is in to what is out, which share what their tensors cost."""
        lines, used = self.lines, {}
        while lines.peek() in ("receive", "send"):
            sends = lines.peek() == "send"
            words = lines.integers(lines.peek(), None, INF)
            reach, pins, message = cell.inn, 0, True
            for net, node in zip(words[1::2], words[2::2]):
                e = self.instance.net_of[net] if net < len(p.nets) else None
                item = self.instance.item[node] if node < p.n else self.instance.n
                if e is None or not self.nets[e][0] & reach or not self.nets[e][1] >> item & 1:
                    lines.fail("the path does not hang together")
                producer, consumers, *_ = self.nets[e]
                used[e, sends] = used.get((e, sends), 0) + words[0]
                if used[e, sends] > self.instance.least(e, 3 if sends else 4) or (
                        producer & cell.inn and consumers & cell.out):
                    lines.fail(f"tensor {net} has no such cost left")
                reach, pins = self.before[item], pins | producer | consumers
                message = message and self.instance.makes_message[e]
            if len(words) < 3 or len(words) % 2 == 0 or not cell.out >> item & 1:
                lines.fail("the path does not end with what is out")
            cell.paths[sends].append((pins, words[0], message))
    def load(self, start, end, t, more=0):
        """What a stage on type t takes at least from a downset of `start` to one of `end`, which
        sends `more` besides; INF: there is no such stage. And the part that adds to any time."""
        inside = end.inn & start.out
        maybe = self.all & ~start.inn & ~end.out
        if start.inn & end.out or inside & self.forbidden[t] or start.low > end.high or (
                not maybe or self.strict and not maybe & self.instance.counted):
            return INF, 0
        up, down = self.scale[t]
        w = max(0, -(-(end.low - start.high) * up // down), end.least[t] - start.most[t])
        if self.binds[t] and self.sum(self.memory, inside) > self.types.of[t][1]:
            return INF, 0
        if self.all & ~start.out & ~end.inn:
            w = max(w, self.sum(self.time[t], inside))
        if self.types.of[t][2]:
            return w, 0
        got, sent = self.messages_of(start, end) if self.makers else (0, 0)
        more += sent * self.message[t]
        recv = got * self.message[t]
        recv += sum([r for consumers, r in start.ahead[t][0] if consumers & inside])
        recv += sum([amount for pins, amount, _ in start.paths[0] if not pins & ~end.inn])
        send = more + sum([s for producer, s in end.ahead[t][1] if producer & start.out])
        send += sum([amount for pins, amount, _ in end.paths[1] if not pins & ~start.out])
        for _, consumers, _, _, r in end.behind:
            recv += r[t] if consumers & inside else 0
        for producer, consumers, _, s, _ in start.behind:
            send += s[t] if producer & end.inn and not consumers & end.out else 0
        return (max(w, recv, send), 0) if self.c.overlap else (w + recv + send, recv + send)
    def messages_of(self, start, end):
        """Whether a stage receives, and whether it sends, a message for certain: its first item is
        no root, its last no leaf, or a tensor crosses, which one of a path does."""
        maybe = self.all & ~start.inn & ~end.out
        inside = end.inn & start.out
        return (not maybe & self.roots or any(net[1] & inside for net in start.crossing) or
                any(message and not pins & ~end.inn for pins, _, message in start.paths[0]),
                not maybe & self.leaves or any(net[0] & start.out for net in end.crossing) or
                any(message and not pins & ~start.out for pins, _, message in end.paths[1]))
    def starts(self, j, t):
        """The cells from which a stage to cell j fits on type t, and what that pays."""
        if t is None:
            return [(j, 0)]
        end, found = self.cells[j], []
        low, least = end.low - self.reach[t], end.least[t] - self.limit
        for i, start in enumerate(self.cells[:-1]):
            if start.high < low or start.most[t] < least or start.inn & end.out:
                continue
            if start.low > end.high:
                break
            load, comm = self.load(start, end, t)
            if load <= self.limit:
                found.append((i, comm))
        return found
    def make_states(self, any_order):
        """States: devices used by type, or the place in the order, from the last device on. What is
        left has room on the devices not used; moves are (type, next state)."""
        c, types, pins = self.c, self.types, self.instance.pins
        self.by_place = types.n > 1 and not any_order or (
            types.n == 1 and any(pin is not None for pin in pins))
        self.reach = [self.limit * down // up for up, down in self.scale]
        if self.by_place:
            place = types.place[::-1] + [None]
            self.room = [sum(self.reach[t] for t in place[s:-1]) for s in range(c.n_stages + 1)]
            skip = [] if self.strict else [None]
            self.moves = [[(t, s + 1) for t in [place[s]] + skip] for s in range(c.n_stages)] + [[]]
            self.below = [[s] for s in range(len(place))]
            return
        radix = [1]
        for count in types.count:
            radix.append(radix[-1] * (count + 1))
        if radix[-1] > MOST_STATES:
            self.lines.fail("too many combinations of devices")
        used = [[s // r % (n + 1) for r, n in zip(radix, types.count)] for s in range(radix[-1])]
        left = [[n - x for n, x in zip(types.count, state)] for state in used]
        self.room = [sum(n * reach for n, reach in zip(state, self.reach)) for state in left]
        self.moves = [[(t, s + radix[t]) for t in range(types.n) if state[t]]
                      for s, state in enumerate(left)]
        few = len(used) <= 64 and not self.strict
        self.below = [[q for q in range(s + 1) if all(map(operator.le, used[q], state))]
                      if few else [s] for s, state in enumerate(used)]
    def allowed(self, s):
        """The cells, as bits, that pins allow to be what is left in a state."""
        front = self.c.n_stages - s
        pins = [(1 << i, pin) for i, pin in enumerate(self.instance.pins)
                if self.by_place and pin is not None]
        must = sum(bit for bit, pin in pins if pin < front)
        must_not = sum(bit for bit, pin in pins if pin >= front)
        return sum(1 << k for k, cell in enumerate(self.cells)
                   if not cell.out & must and not cell.inn & must_not)
    def check(self):
        """Which cells may be left, state by state: with how much weight at least, how many
        stages behind receive each tensor (where that counts; 1 is not noted), and what is known of the
        stage in front. With no more of all that, and of devices used, a cell leads to all that it can.
        No chain may come to the end."""
        last, known, labels = len(self.cells) - 1, {}, [{} for _ in self.room]
        tracked = [(e, *net) for e, net in enumerate(self.nets)
                   if self.receivers and net[2] and net[1] & (net[1] - 1)]
        allowed = [self.allowed(s) for s in range(len(labels))]
        if allowed[0] >> last & 1 and self.total <= self.room[0]:
            labels[0][last] = [(self.total, {}, NOT_BYPASSED)]
        for s, here in enumerate(labels):
            for j, left, counts, beside in [(j, *label) for j in sorted(here) if j for label in here[j]]:
                end = self.cells[j]
                tensors = [net for net in tracked if not net[1] & end.out]
                for t, after in self.moves[s]:
                    if (j, t) not in known:
                        known[j, t] = self.starts(j, t)
                    for i, comm, more, next_, then in [
                            (*found, *way) for found in known[j, t]
                            for way in self.ways(self.cells[found[0]], end, t, counts, beside, tensors)]:
                        start, rest = self.cells[i], left
                        if t is not None:
                            load, comm = self.load(start, end, t, more) if more else (0, comm)
                            if load > self.limit:
                                continue
                            up, down = self.scale[t]
                            rest = max(left - (self.limit - comm) * down // up, start.low)
                        if rest > start.high or rest > self.room[after] or (
                                not allowed[after] >> i & 1):
                            continue
                        if i == 0 and (not self.strict or after == len(labels) - 1):
                            self.lines.fail("the cases leave a chain of stages within "
                                            f"{self.limit}, whose first ends here", end.line)
                        if not any(self.no_more(x, (rest, next_, then)) for state in self.below[after]
                                   for x in labels[state].get(i, ())):
                            labels[after][i] = [x for x in labels[after].get(i, ()) if
                                                not self.no_more((rest, next_, then), x)]
                            labels[after][i].append((rest, next_, then))
    @staticmethod
    def no_more(a, b):
        return a[0] <= b[0] and b[2] in OPEN[a[2]] and all(b[1].get(e, 1) >= n for e, n in a[1].items())
    def ways(self, start, end, t, counts, beside, tensors):
        """What a stage pays more than load() knows, the counts behind it, and what is known then of
        the next one in front."""
        if t is not None and tensors:
            yield *self.receive(tensors, counts, start, end, t), beside
        elif t is None or not self.c.any_way:
            yield 0, counts, beside
        else:
            for more, then in self.any_ways(start, end, t, beside):
                yield more, counts, then
    def any_ways(self, start, end, t, beside):
        """The same of a stage that is bypassed, where it may be, and of one that is not."""
        received, sent = map(bool, self.messages_of(start, end))
        if beside != NOT_BYPASSED and start is not self.cells[0] and not (
                beside == SENDS_NOTHING and sent):
            yield 0, BESIDE_READER if received else BESIDE_ANY
        if beside in (SENDS, SENDS_NOTHING):
            return
        passed = [net for net in self.makers if net[0] & start.inn and net[1] & end.out]
        more = sum(net[3][t] + (0 if net[1] & end.inn & start.out else net[4][t])
                   for net in passed)
        n_sent = 2 if beside == BESIDE_READER else int(sent or bool(passed))
        for then, least in ((NOT_BYPASSED, 0), (SENDS, 2), (SENDS_NOTHING, 1)):
            if then == NOT_BYPASSED or (start is not self.cells[0] and (
                    then == SENDS or self.leaves & ~start.out)):
                n_received = max(least, int(received or bool(passed)))
                yield more + (n_sent - sent + n_received - received) * self.message[t], then
    @staticmethod
    def receive(tensors, counts, start, end, t):
        """What a stage sends beyond once each, and the counts behind it."""
        more, next_, inside = 0, {}, end.inn & start.out
        for e, producer, consumers, _, send, _ in tensors:
            n = counts.get(e, 1)
            if producer & start.out:
                more += (n - 1) * send[t] if producer & end.inn else 0
                continue
            n += bool(consumers & end.out and consumers & inside)
            if n >= 2:
                next_[e] = n
        return more, next_

def check(p, data):
    """What the certificate proves, in lines; Refused."""
    lines = Lines(data)
    c = Claim(p, lines)
    if not c.relays:
        value = value_of(p, c, lines)
        if value != c.value or c.bound > value:
            lines.fail(f"the value of the split is {value}, the bound {c.bound}", c.value_line)
    take_trunk(p, c, lines)
    types = Types(p, c)
    instance, joined = read_merges(p, c, types, lines)
    if max(instance.min_time) >= INF:
        lines.fail("a node can run on no device")
    kind = lines.choice("proof", "totals", "cut", "cases")
    {"totals": check_totals, "cut": check_cut, "cases": Cases}[kind](
        p, c, types, instance, joined, lines)
    lines.take("end", 1)
    if lines.at != len(lines.lines):
        lines.fail("more lines behind the end")
    devices = ", ".join(f"{n} {device[3]}" for device, n in zip(p.devices, c.counts)) if (
        len(p.devices) < 5) else f"{c.n_stages} devices"
    yield (f"problem: {p.n} nodes, {devices}; {c.objective}, {c.comm}" + ", overlap" * c.overlap
           + ", no empty stages" * c.no_empty + ", not contiguous" * (not c.contiguous)
           + f", {c.chunks} chunks" * (c.chunks > 1))
    yield f"bound {c.bound} ({c.bound / p.scale:.9g}) holds: {kind}" + (
        ", whatever way tensors go" * c.any_way)
    yield ("not certified: the value, which counts tensors that are passed on" if c.relays else
           f"{'optimal' if c.bound == c.value else 'not proved optimal'}: "
           f"the split has the value {c.value} ({c.value / p.scale:.9g})")
    if c.claimed > c.bound:
        yield (f"not certified: the bound {c.claimed} that the program claims"
               + ("; no messages but those of a trunk are counted" if not c.messages else
                  "; one message is counted where a stage sends any" * (c.comm == "p2p")) * (
                      p.message is not None))

def interrupted(number, _):
    os.write(2, b"error: interrupted\n")
    os._exit(128 + number)

def read(path, most):
    """The bytes of a regular file of up to so many: nothing is waited for, no device read without end."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most} bytes; the limit is lifted by --max-text MIB")
    return data

def main():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupted)
    names, mebibytes = sys.argv[1:], "64"
    if names[:1] == ["--max-text"] and len(names) > 1:
        mebibytes, names = names[1], names[2:]
    asked = names in (["-h"], ["--help"])
    if asked or len(names) != 2 or not re.fullmatch("[1-9][0-9]{0,9}", mebibytes):
        print(__doc__, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    path, certificate = names
    most, reading = int(mebibytes) << 20, certificate
    try:
        data = read(certificate, most)
        reading = path
        problem = Problem(json.loads(read(path, most).decode("utf-8")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
            MemoryError) as error:
        print(f"error: {reading}: {type(error).__name__}: {error}", file=sys.stderr)
        return 3
    try:
        print("\n".join(check(problem, data)))
    except Refused as error:
        print("refused: {}:{}: {}".format(certificate, *error.args), file=sys.stderr)
        return 1
    return 0

if __name__ == "__main__":
    sys.exit(main())
