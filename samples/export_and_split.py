#!/usr/bin/env python3
"""From PyTorch to stages in one go: export_and_split.py DIRECTORY [STAGES]

Exports a small model, plans with a batch of 8, writes the stages, and says how good the cut is.
"""
import io
import sys

import psplit
import torch


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def main():
    directory, stages = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    model = torch.nn.Sequential(*(Block(256) for _ in range(6))).eval()
    file = io.BytesIO()
    torch.onnx.export(model, torch.zeros(8, 256), file, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
    plan = psplit.open(file.getvalue(), name="blocks.onnx").plan(stages, dims={"batch": 8})
    plan.split(directory)
    for stage in plan.stages:
        print(f"stage {stage.index}: {stage.nodes} nodes, {stage.weight_bytes} bytes of weights, {stage.load_ns / 1e6:.3f} ms")
    print(plan.headline)


if __name__ == "__main__":
    main()
