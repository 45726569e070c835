#!/usr/bin/env python3
"""What certificates say of messages, from outside: message_certificates.py CHECKER [--problems N] [--seed N]

For small random problems: a certificate that tells all downsets apart, made here, with messages that stages need at
least and with what they pass on. The checker must refuse each bound above what enumeration finds, of
splits and of ways for their tensors; and it must believe most of those that are true."""
import argparse
import itertools
import os
import random
import sys

from certificates import load, seal

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

def random_problem(rng):
    n, k = rng.randint(4, 6), rng.randint(3, 4)
    heavy = rng.randrange(n)
    tensors = []
    for u in range(n - 1):
        readers = [v for v in range(u + 1, n) if rng.random() < (0.7 if v == u + 1 else 0.3)]
        if readers and len(tensors) < 5:
            tensors.append({"producer": u, "consumers": readers, "send_ns": rng.randint(0, 3),
                            "recv_ns": rng.randint(0, 3), "no_message": rng.random() < 0.1})
    return {"format": "psplit-problem", "comm": rng.choice(("shared", "shared", "p2p")),
            "message_latency": "per_pair", "devices": [{"count": k}],
            "links": [{"latency_ns": rng.randint(1, 9)}],
            "nodes": [{"time_ns": rng.choice((rng.randint(0, 12), 40))} if v == heavy else {"time_ns": rng.randint(0, 12)}
                      for v in range(n)], "tensors": tensors}


def splits(problem, k):
    """All contiguous ones without an empty stage."""
    for stage in itertools.product(range(k), repeat=problem.n):
        if len(set(stage)) == k and all(stage[u] <= stage[v] for u, v in problem.edges()):
            yield stage


def trees(home, readers, k):
    """All ways from a stage to its readers, as hops."""
    others = [s for s in range(home + 1, k) if s not in readers]
    for n in range(len(others) + 1):
        for more in itertools.combinations(others, n):
            stages = sorted(readers | set(more))
            yield from (tuple(zip(froms, stages)) for froms in itertools.product(
                *([home] + [u for u in stages if u < s] for s in stages)))


def all_ways(problem, stage, k):
    """The bottlenecks of the split over all ways for its tensors, and hops by tensor."""
    base, choices, message = [0] * k, [], problem.message[0]
    for v, s in enumerate(stage):
        base[s] += problem.time[v][0]
    for e, (u, vs, send, recv, flags) in enumerate(problem.nets):
        readers = {stage[v] for v in vs} - {stage[u]}
        if not readers:
            continue
        if flags:  # what makes no message is not a tensor: it costs where it is made and read
            base[stage[u]] += send[0]
            for s in readers:
                base[s] += recv[0]
        else:
            choices.append([(hops, send[0], recv[0], e) for hops in trees(stage[u], readers, k)])
    for ways in itertools.product(*choices):
        load = list(base)
        for hops, send, recv, _ in ways:
            for a, b in hops:
                load[a] += send
                load[b] += recv
        for a, b in {hop for hops, *_ in ways for hop in hops}:
            load[a] += message
            load[b] += message
        yield max(load), {e: hops for hops, _, _, e in ways}


def tree(v, n):
    """Questions that tell all downsets apart."""
    return ["cell"] if v == n else [f"in {v}", *tree(v + 1, n), *tree(v + 1, n)]


def cases(n):
    return ["proof cases", "empty-stages 0", "receivers 0", *tree(0, n)]


def cut(rng, problem, node):
    """Messages of sets that hold a node, and the flow of its own tensors, or some other."""
    words = rng.choice((["sent"], ["received"], ["sent", "received"]))
    lines = ["proof cut", f"node {node}", *(f"{word} {problem.message[0]}" for word in words)]
    own = rng.random() < 0.7
    for e, (u, vs, send, recv, _) in enumerate(problem.nets):
        if own and u == node:
            lines.append(f"send {e} {rng.choice(vs)} {send[0]}")
        if own and node in vs:
            lines.append(f"receive {e} {node} {recv[0]}")
        lines += [f"{word} {e} {rng.choice(vs)} {rng.randint(0, most)}"
                  for word, most in (("send", send[0]), ("receive", recv[0])) if rng.random() < 0.3 and not own]
    return lines


def certificate(problem, content, stage, k, value, bound, ways, proof):
    """ways: by tensor, or None: by shared memory, or straight."""
    return seal([
        "psplit-certificate 1", f"problem {problem.digest()} {problem.n} {len(problem.nets)}",
        "objective throughput", "contiguous 1", "no-empty-stages 1", "chunks 1",
        f"comm {content['comm']}", "overlap 0", f"devices {k}", "stage " + " ".join(map(str, stage)),
        "device" + " 0" * k, f"value {value}", "messages", *["any-way"] * (ways is not None),
        *(f"way {e} " + " ".join(f"{a} {b}" for a, b in hops) for e, hops in (ways or {}).items()),
        f"claimed {bound}", f"bound {bound}", *proof])


def believed(checker, problem, data):
    try:
        list(checker.check(problem, data))
    except checker.Refused as error:
        return "leave a chain" not in error.args[1] and error
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checker")
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    checker, rng = load(options.checker), random.Random(options.seed)
    false, odd, n, n_whole, n_above, n_cut = [], [], 0, 0, 0, 0
    for i in range(options.problems):
        content = random_problem(rng)
        problem, k = checker.Problem(content), content["devices"][0]["count"]
        all_splits = list(splits(problem, k))
        if not all_splits:
            continue
        claim = argparse.Namespace(
            n_stages=k, chunk=[0] * problem.n, counts=[k], contiguous=1, no_empty=1, overlap=0,
            comm=content["comm"], objective="throughput", device=[0] * k, stage_line=0, any_way=False, ways={})
        values = []
        for stage in all_splits:
            claim.stage = stage
            values.append((checker.value_of(problem, claim, checker.Lines(seal([]))), stage))
        least = min(value for value, _ in values)
        claims = [(*max(values), None, least)]
        if content["comm"] == "shared":
            ways = [(value, i, stage, hops) for stage in all_splits
                    for i, (value, hops) in enumerate(all_ways(problem, stage, k))]
            value, _, stage, hops = max(ways)
            claims.append((value, stage, hops, min(ways)[0]))
        for value, stage, hops, best in claims:
            if best == value:
                continue
            say = [believed(checker, problem, certificate(problem, content, stage, k, value, bound, hops,
                                                          cases(problem.n)))
                   for bound in (best + 1, best, least + 1)]
            if hops:
                lies = [believed(checker, problem, certificate(problem, content, stage, k, value + more, least, hops,
                                                               cases(problem.n)))
                        for more in (-1, 1)]
                odd += [f"{i}: another value is believed" for x in lies if isinstance(x, bool)]
            odd += [f"{i}: {x}" for x in say if not isinstance(x, bool)]
            if say[0] is True or best < least:
                false.append(f"{i}: {best + 1} is believed, {best} is the optimum; {content}")
            cuts = [(bound, v) for bound in (best + 1, best) for v in range(problem.n) if believed(
                checker, problem, certificate(problem, content, stage, k, value, bound, hops,
                                              cut(rng, problem, v))) is True]
            false += [f"{i}: {bound} is believed by the cut of node {v}, {best} is the optimum; {content}"
                      for bound, v in cuts if bound > best]
            n_cut += bool(cuts)
            n += 1
            n_whole += say[1] is True
            n_above += best > least and say[2] is True
    tap = Tap()
    tap.none(f"{n} bounds above the optimum are refused", false)
    tap.none("for a chain of stages that is left", odd)
    tap.ok(n_whole > n // 2, f"most optima are believed: {n_whole}")
    tap.ok(n_cut > n // 30, f"{n_cut} by a cut")
    tap.ok(n_above > n // 40, f"{n_above} bounds are above what shared memory tells")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
