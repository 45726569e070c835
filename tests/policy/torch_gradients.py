"""The gradients that are written by hand against those that torch finds by itself, tensor by tensor: torch_gradients.py
GRADIENTS, a program that prints problems and its own. Without torch it is skipped, and says so. Results as TAP."""
import json
import os
import subprocess
import sys

try:
    import torch
except ImportError:
    # Debian's python3-torch is for Debian's Python, which need not be the first one on the PATH.
    debian = "/usr/bin/python3"
    if os.path.realpath(sys.executable) != os.path.realpath(debian) and os.path.exists(debian) and subprocess.run(
            [debian, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
        os.execv(debian, [debian] + sys.argv)
    print("1..0 # SKIP torch is not installed (Debian: python3-torch)")
    sys.exit(0)

WORST = 1e-9


def loss_of_decision(problem, chances, decision):
    """Of one decision, by the chances of its candidates."""
    now, clip = chances[decision["chosen"]], problem["clip"]
    gain = problem["weight"] * torch.log(now)
    if clip > 0:
        ratio = now / decision["chance"]
        gain = torch.minimum(problem["weight"] * ratio, problem["weight"] * ratio.clamp(1 - clip, 1 + clip))
    entropy = -(chances * torch.log(chances)).sum()
    return -gain - problem["entropy_weight"] * entropy


def loss_of(problem, weights, rounds):
    """As policy/network.h defines it; sums over the decisions that have a choice."""
    x = torch.tensor(problem["x"], dtype=torch.float64).reshape(-1, weights["item_weight"].shape[0])
    n = x.shape[0]
    before, behind = torch.zeros(n, n, dtype=torch.float64), torch.zeros(n, n, dtype=torch.float64)
    for a, b in problem["edges"]:
        before[b, a] = behind[a, b] = 1
    mean = [m / m.sum(1, keepdim=True).clamp(min=1) for m in (before, behind)]
    e = torch.relu(x @ weights["item_weight"] + weights["item_bias"])
    for r in range(rounds):
        own, pred, succ = (weights["round_" + k].chunk(rounds)[r] for k in ("self", "pred", "succ"))
        e = e + torch.relu(e @ own + (mean[0] @ e) @ pred + (mean[1] @ e) @ succ + weights["round_bias"][r])
    memory = torch.tanh(e.mean(0) @ weights["start_weight"] + weights["start_bias"][0])
    schedule = problem["schedule"]
    q = torch.tensor(schedule["candidates"], dtype=torch.float64).reshape(-1, weights["schedule_in"].shape[0])
    hidden = torch.relu(q @ weights["schedule_in"] + weights["schedule_bias"][0])
    loss = loss_of_decision(problem, torch.softmax(hidden @ weights["schedule_out"][0], 0), schedule)
    share = 1 / len(problem["decisions"])
    for decision in problem["decisions"]:
        here = e[decision["item"]]
        c = torch.tensor(decision["candidates"], dtype=torch.float64).reshape(-1, weights["score_candidate"].shape[0])
        if len(c) > 1:
            hidden = torch.relu(here @ weights["score_item"] + memory @ weights["score_memory"] +
                                c @ weights["score_candidate"] + weights["score_bias"][0])
            chances = torch.softmax(hidden @ weights["score_out"][0], 0)
            loss = loss + share * loss_of_decision(problem, chances, decision)
        chosen = c[decision["chosen"]]
        from_input = (here @ weights["gru_item"] + weights["gru_bias"][0] + chosen @ weights["gru_candidate"]).chunk(3)
        from_memory = (memory @ weights["gru_memory"] + weights["gru_memory_bias"][0]).chunk(3)
        reset, update = (torch.sigmoid(from_input[k] + from_memory[k]) for k in (0, 1))
        new = torch.tanh(from_input[2] + reset * from_memory[2])
        memory = new + update * (memory - new)
    return loss


def main():
    said = json.loads(subprocess.run([sys.argv[1]], check=True, capture_output=True).stdout)
    n = 0
    for number, problem in enumerate(said["problems"]):
        weights = {name: torch.tensor(problem["network"][name], dtype=torch.float64).reshape(shape).requires_grad_()
                   for name, shape in said["shapes"].items()}
        loss = loss_of(problem, weights, said["rounds"])
        loss.backward()
        n += 1
        off = abs(loss.item() - problem["loss"])
        print("%sok %d - problem %d: the loss" % ("" if off < WORST * (1 + abs(loss.item())) else "not ", n, number))
        worst, where = 0, ""
        for name, tensor in weights.items():
            own = torch.tensor(problem["gradient"][name], dtype=torch.float64).reshape(tensor.shape)
            error = ((own - tensor.grad).abs().max() / tensor.grad.abs().max().clamp(min=1e-12)).item()
            if error > worst:
                worst, where = error, name
        n += 1
        print("%sok %d - problem %d: gradients of %d tensors, the worst of them off by %.1e (%s)" % (
            "" if worst < WORST else "not ", n, number, len(weights), worst, where))
    print("1..%d" % n)


main()
