"""onnx-pipeline-plan from outside: exit statuses, JSON, and the same bytes for any thread count."""
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

PLAN = sys.argv[1]
N = [0]
FAILED = [False]


def check(name, holds, more=""):
    N[0] += 1
    print(f"{'ok' if holds else 'not ok'} {N[0]} - {name}")
    if not holds:
        FAILED[0] = True
        print("# " + str(more).replace("\n", " "))


def run(*arguments):
    return subprocess.run([PLAN, *arguments], capture_output=True, text=True, timeout=120)


def published(n, backward=False):
    """A chain with skip edges in the published format."""
    nodes = [{"id": 100 - i, "supportedOnFpga": True, "cpuLatency": 10.0 * (i % 5 + 1),
              "fpgaLatency": i % 5 + 1.5, "isBackwardNode": backward and i >= n // 2,
              "colorClass": 7 + min(i, n - 1 - i) if backward else 7 + i, "size": 10.0}
             for i in range(n)]
    edges = [{"sourceId": 100 - i, "destId": 100 - j, "cost": 0.25 + i % 3}
             for i in range(n) for j in (i + 1, i + 4)
             if j < n and (not backward or (i < n // 2) == (j < n // 2))]
    return {"maxFPGAs": 3, "maxCPUs": 1, "maxSizePerFPGA": 1000.0, "nodes": nodes, "edges": edges}


def piper(n, devices, memory):
    """A chain with skip edges in Piper's format; each node can be run in several ways."""
    edges = [(i, j, 10.0 * (1 + i % 4)) for i in range(n) for j in (i + 1, i + 3) if j < n]

    def ways(v, degree):
        sync = {"syncTimeFw": {str(7 * a): 0.5 + a % 3 for a, b, _ in edges if b == v},
                "syncTimeBw": {str(7 * b): 0.25 * (b % 5) for a, b, _ in edges if a == v}}
        return [sync | {"id": name, "timePerSample": more + (3.5 + v % 5) / degree,
                        "parameterSize": 5.0, "memoryUsageA": 4.0 / less + v % 3,
                        "memoryUsageB": 2.0 + v % 2}
                for name, more, less in (("vanilla", 0, 1), ("activation recomp", 1, 4))]

    nodes = [{"id": 7 * v, "name": f"n{v}", "TMPCs": {str(t): ways(v, t) for t in (1, 2)}}
             for v in range(n)]
    return {"maxDevices": devices, "maxMemoryPerDevice": memory, "bandwidth": 16.0,
            "mbsInBatch": 8, "nodes": nodes,
            "edges": [{"sourceId": 7 * a, "destId": 7 * b, "communicationCost": c}
                      for a, b, c in edges]}


def pinned_chains(seed, n_chains=6, length=30, n_stages=3):
    """Chains beside each other, pinned where a stage's part of each begins and ends, and the one
    split that is left: few orders of the nodes have a division that obeys."""
    rng = random.Random(seed)
    nodes, tensors, stages = [], [], []
    for chain in range(n_chains):
        cuts = sorted(rng.sample(range(1, length), n_stages - 1))
        for i in range(length):
            stage = sum(i >= cut for cut in cuts)
            node = {"id": len(nodes), "time_ns": rng.randint(1, 1000)}
            if i in cuts or i + 1 in cuts:
                node["pin"] = stage
            if i:
                tensors.append({"producer": len(nodes) - 1, "consumers": [len(nodes)],
                                "send_ns": rng.randint(1, 300), "recv_ns": 5})
            nodes.append(node)
            stages.append(stage)
    return {"format": "psplit-problem", "version": 1, "nodes": nodes, "tensors": tensors,
            "devices": [{"name": "d", "count": n_stages}]}, stages


def piper_best(problem):
    """By enumeration of contiguous stages, as Piper counts without copies: an edge costs each of
    its ends twice its bytes and what the node there adds, and a stage holds A bytes for itself and
    for each stage behind it. None: nothing fits. Node i only feeds later ones here."""
    nodes, edges = problem["nodes"], problem["edges"]
    way = [x["TMPCs"]["1"][0] for x in nodes]
    place = {x["id"]: v for v, x in enumerate(nodes)}
    ends = [(place[e["sourceId"]], place[e["destId"]], e["communicationCost"]) for e in edges]
    best = None
    for stage in itertools.product(range(problem["maxDevices"]), repeat=len(nodes)):
        if any(stage[a] > stage[b] for a, b, _ in ends):
            continue
        used = sorted(set(stage))
        slowest, fits = 0.0, True
        for rank, s in enumerate(used):
            load = sum(w["timePerSample"] for v, w in enumerate(way) if stage[v] == s)
            held = sum(w["memoryUsageA"] * (len(used) - rank) + w["memoryUsageB"]
                       for v, w in enumerate(way) if stage[v] == s)
            for a, b, cost in ends:
                if stage[a] == s != stage[b]:
                    load += 2 * (cost + way[a]["syncTimeBw"][str(7 * b)]) / problem["bandwidth"]
                if stage[b] == s != stage[a]:
                    load += 2 * (cost + way[b]["syncTimeFw"][str(7 * a)]) / problem["bandwidth"]
            slowest, fits = max(slowest, load), fits and held <= problem["maxMemoryPerDevice"]
        if fits and (best is None or slowest < best):
            best = slowest
    return best


with tempfile.TemporaryDirectory() as directory:
    def write(name, content):
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(content if isinstance(content, str) else json.dumps(content))
        return path

    chain = write("chain.json", published(24))
    result = run("--json", chain)
    plan = json.loads(result.stdout) if result.returncode == 0 else {}
    keys = {"objective", "lower_bound", "gap_frac", "proved_optimal", "solver", "solve_seconds",
            "loads", "stage"}
    check("json has the promised keys", keys <= set(plan), result.stderr)
    check("small problems are proved", plan.get("proved_optimal") is True, plan)
    check("and so are their ties", plan.get("ties") == "proved", plan)
    check("every node has a stage", set(plan["stage"]) == {str(100 - i) for i in range(24)})
    check("the objective is the largest load", abs(max(plan["loads"]) - plan["objective"]) < 1e-9)
    check("the bound is the objective", plan["lower_bound"] == plan["objective"])

    result = run("--json", "--limits", "16", chain)
    limits = json.loads(result.stdout)["limits"]
    check("limits: no schedule beats the limit", 0 < limits["step"] <= limits["simulated"], limits)
    check("limits: speed-ups are below the stages",
          1 <= limits["speed_up"] <= limits["speed_up_limit"] <= 4, limits)
    twins = write("twins.json", published(24, backward=True))
    result = run("--cpus", "0", "--limits", "16,loss=nonsmooth,dim=1e6,accuracy=0.001", twins)
    check("limits: a training graph is run as 1F1B", "; 1F1B takes" in result.stdout, result.stdout)
    check("limits: smoothing is judged", "random smoothing (PPRS)" in result.stdout, result.stdout)
    for text, says in (("0", "--limits"), ("5000", "--limits"), ("8,loss=flat,dim=3", "nonsmooth"),
                       ("8,loss=smooth", "dim=N"), ("8,dim=0.5", "limits dim"),
                       ("8,accuracy", "has no value"), ("8,speed=3", "no key \"speed\"")):
        result = run("--limits", text, chain)
        check(f"limits: {text} is refused", result.returncode == 2 and says in result.stderr
              and result.stdout == "", result.stderr)
    result = run("--limits", "8", "--non-contiguous", chain)
    check("limits: free placement is no pipeline", result.returncode == 2, result.stderr)

    def without_time(text):
        return re.sub(r'"solve_seconds": [0-9.]+', "", text)

    same = {without_time(run("--json", "--threads", str(t), chain).stdout) for t in (1, 2, 5)}
    check("threads do not change a byte", len(same) == 1)
    table = run(chain)
    check("the table ends with the proof", "proved optimal" in table.stdout, table.stdout)
    check("its devices may stand in any order", plan.get("device_order") == "chosen"
          and "order of devices" not in table.stdout, plan)
    own = {"format": "psplit-problem", "version": 1,
           "nodes": [{"id": i, "time_ns": [4, 8]} for i in range(6)],
           "tensors": [{"producer": i, "consumers": [i + 1], "send_ns": 1, "recv_ns": 1}
                       for i in range(5)]}

    def ordered(name, devices, *options, **more):
        path = write("own.json", own | {"devices": devices} | more)
        table, made = run(*options, path), run("--json", *options, path)
        text = table.stdout + table.stderr
        order = json.loads(made.stdout)["device_order"] if made.returncode == 0 else made.stderr
        said = "proved optimal for this order of devices" in text
        check(name, "proved optimal" in text and said == (order == "given"), text)
        return order

    two, none = [{"class": 0, "count": 1}, {"class": 1, "count": 2}], {"class": 1, "count": 0}
    check("the file's order", ordered("given", two) == "given")
    check("the solver's", ordered("chosen", two, any_device_order=True) == "chosen")
    check("devices that are alike", ordered("alike", [two[0], none, two[0]]) == "alike")
    check("that differ in memory",
          ordered("memory", [two[0], two[0] | {"memory_bytes": 9}, none]) == "given")
    check("any node on any device", ordered("free", two, "--non-contiguous") == "alike")
    def copied(devices, **more):
        heavy = {"nodes": [{"id": 0, "time_ns": [12, 30]}, {"id": 1, "time_ns": [1, 30]}],
                 "tensors": [{"producer": 0, "consumers": [1], "send_ns": 0, "recv_ns": 0}]}
        made = run("--json", "--replicas", "3", write("heavy.json", own | heavy | {"devices": devices + [none]} | more))
        plan = json.loads(made.stdout)
        return plan["objective"], [(stage["device"], stage["replicas"]) for stage in plan["stages"]
                                   if stage["nodes"]]

    one, other = {"class": 0, "count": 1}, {"class": 1, "count": 1}
    check("copies of a stage take devices that are listed one by one",
          copied([one, one, one]) == copied([one | {"count": 3}]) == (5, [(0, 3)]), copied([one, one, one]))
    check("and what has no device keeps none apart", copied([one, other | {"count": 0}, one, one]) == (5, [(0, 3)]))
    check("but not past others in a fixed order", copied([one, other, one])[0] == 12)
    check("which an open order allows", copied([one, other, one], any_device_order=True) == (7, [(0, 2)]))
    check("nor with other memory", copied([one, one | {"memory_bytes": 9}, one])[0] == 12)
    hosts = {"link_classes": [{}, {"latency_ns": 100}], "device_links": [[0, 1], [1, 0]]}
    own["tensors"] = [{"producer": i, "consumers": [i + 1], "bytes": 8} for i in range(5)]
    check("links between pairs, by host",
          ordered("hosts", [{"count": 2}, {"count": 2}], "--no-empty-stages",
                  nodes=[{"id": i, "time_ns": 4} for i in range(6)], **hosts) == "given")
    far = json.loads(run("--json", "--no-empty-stages", os.path.join(directory, "own.json")).stdout)
    check("one tensor crosses between hosts, and both its stages pay",
          sorted(stage["send"] for stage in far["stages"]) == [0, 0, 0, 100]
          and far["stages"][1]["send"] == far["stages"][2]["recv"] == 100, far)
    same = {without_time(run("--json", "--threads", str(t), os.path.join(directory, "own.json"))
                         .stdout) for t in (1, 3)}
    check("threads do not change that", len(same) == 1)
    training = run("--json", write("training.json", published(24, True)))
    check("training graphs are solved", training.returncode == 0, training.stderr)
    for extra in (["--non-contiguous"], ["--chunks", "2"], ["--objective", "latency"],
                  ["--replicas", "2"], ["--overlap"], ["--comm", "p2p"], ["-k", "2", "--cpus", "0"],
                  ["--time-limit", "0"], ["--cpus", "0", "--no-empty-stages"]):
        result = run("--json", *extra, chain)
        check("option " + " ".join(extra), result.returncode == 0 and json.loads(result.stdout),
              result.stderr)

    def refuses(name, status, *arguments):
        bad = run(*arguments)
        line = bad.stderr.strip().split("\n")[-1] if bad.stderr else ""
        check(name, bad.returncode == status and line.startswith("error: ") and not bad.stdout,
              f"{bad.returncode} {bad.stderr}")

    refuses("no file: usage", 2)
    refuses("unknown option: usage", 2, "--frobnicate", chain)
    refuses("bad number: usage", 2, "-k", "many", chain)
    refuses("no devices: usage", 2, "-k", "0", "--cpus", "0", chain)
    refuses("no such file", 3, os.path.join(directory, "absent.json"))
    refuses("not JSON", 4, write("broken.json", "{"))
    cyclic = published(6)
    cyclic["edges"].append({"sourceId": 95, "destId": 100, "cost": 1})
    refuses("a cycle", 4, write("cyclic.json", cyclic))
    negative = published(6)
    negative["nodes"][2]["fpgaLatency"] = -1
    refuses("a negative time", 4, write("negative.json", negative))
    huge = published(6)
    huge["nodes"][1]["fpgaLatency"] = huge["nodes"][1]["cpuLatency"] = 1e300
    refuses("times that overflow", 4, write("huge.json", huge))
    refuses("not a number", 4, write("nan.json", '{"maxFPGAs": 2, "nodes": [{"id": NaN}]}'))
    refuses("more stages than nodes, none empty", 7, "-k", "30", "--cpus", "0",
            "--no-empty-stages", chain)
    own |= hosts | {"nodes": [{"id": i, "time_ns": 4} for i in range(6)], "devices": [{}, {}],
                    "any_device_order": True}
    refuses("links between pairs of devices in any order", 5, write("any.json", own))
    own |= {"any_device_order": False, "device_links": [[0, 2], [1, 0]]}
    refuses("a link of no class", 4, write("class.json", own))
    tight = published(12)
    tight["maxSizePerFPGA"], tight["maxCPUs"] = 25.0, 0
    refuses("memory that cannot fit", 7, write("tight.json", tight))
    for memory in (1e18, 70.0, 44.0, 5.0):
        foreign = piper(9, 3, memory)
        result = run("--json", write("piper.json", foreign))
        found = json.loads(result.stdout)["objective"] if result.returncode == 0 else None
        best = piper_best(foreign)
        check(f"piper: the best within {memory:g} bytes, as it counts",
              found == best or abs(found - best) < 1e-6, f"{found} {best} {result.stderr}")
    del foreign["nodes"][2]["TMPCs"]["1"]
    refuses("piper: a node that one device cannot run", 4, write("piper.json", foreign))

    for seed in range(3):
        pinned, stages = pinned_chains(seed)
        result = run("--json", "--time-limit", "0", write("pinned.json", pinned))
        found = json.loads(result.stdout)["stage"] if result.returncode == 0 else {}
        check(f"pins that leave one split are obeyed at once ({seed})",
              [found.get(str(v)) for v in range(len(stages))] == stages, result.stderr)

    check("version", run("--version").stdout.startswith("onnx-pipeline-plan "))
    check("help", "--non-contiguous" in run("--help").stdout)

print(f"1..{N[0]}")
sys.exit(FAILED[0])
