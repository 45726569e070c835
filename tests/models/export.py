#!/usr/bin/python3
"""Exports the torchvision test models that are not there yet: export.py DIR [NAME...]

Debian's python3-torch 1.13 and python3-torchvision 0.14. Random weights from a fixed seed, so
nothing is downloaded; opset 17; the batch axis is named `batch`. A file appears complete or not at
all.

vit_h_14 is made only when named: 2.5 GB, which torch writes as external data, a file for each
tensor, so it becomes a directory of its own. Models that only benchmarks take, likewise.
"""
import os
import shutil
import sys

NAMES = ("resnet50", "densenet121", "mobilenet_v3_small", "vit_b_16")
# Made only when named, for the figures of docs/costs/predictions.md.
MORE_NAMES = ("convnext_tiny", "densenet169", "efficientnet_b0", "efficientnet_b1", "googlenet", "mnasnet0_5",
              "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "regnet_x_400mf",
              "regnet_x_800mf", "regnet_y_400mf", "resnet18", "resnet34", "resnext50_32x4d",
              "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "squeezenet1_1", "swin_t")
LARGE_NAMES = ("vit_h_14",)
OPTIONS = {"googlenet": {"aux_logits": False, "init_weights": False}}


def build(name):
    import torch
    import torchvision

    torch.manual_seed(20)
    model = getattr(torchvision.models, name)(weights=None, **OPTIONS.get(name, {}))
    if name.startswith("vit_"):
        # Starts as zeros, which would make every output zero and every comparison vacuous.
        torch.nn.init.normal_(model.heads.head.weight, std=0.02)
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    if norms:
        # As after training: weights that differ, and statistics that keep activations near 1. Left
        # as they start, signals fade to 1e-10 and equal tensors are exported as one plus Identity.
        for norm in norms:
            torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
            torch.nn.init.normal_(norm.bias, std=0.1)
            norm.momentum = None
        with torch.no_grad():
            model.train()(torch.randn(8, 3, 224, 224))
    return model.eval()


def write(name, path):
    import torch

    torch.onnx.export(
        build(name), torch.zeros(1, 3, 224, 224), path, opset_version=17,
        input_names=["image"], output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})


def export(name, path):
    part = "%s.part.%d" % (path, os.getpid())
    try:
        write(name, part)
        os.rename(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def export_large(name, directory):
    part = "%s.part.%d" % (directory, os.getpid())
    os.mkdir(part)
    try:
        write(name, os.path.join(part, name + ".onnx"))
        os.rename(part, directory)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def main(argv):
    if len(argv) < 2:
        sys.exit("usage: export.py DIR [NAME...]")
    out, names = argv[1], argv[2:] or NAMES
    os.makedirs(out, exist_ok=True)
    for name in names:
        if name not in NAMES + MORE_NAMES + LARGE_NAMES:
            sys.exit("export.py: unknown model %s; there are: %s"
                     % (name, " ".join(NAMES + MORE_NAMES + LARGE_NAMES)))
        path = os.path.join(out, name if name in LARGE_NAMES else name + ".onnx")
        if not os.path.exists(path):
            print("exporting", path, flush=True)
            (export_large if name in LARGE_NAMES else export)(name, path)


if __name__ == "__main__":
    main(sys.argv)
