#!/usr/bin/python3
"""Small modules as torch's exporter writes them, each one kernel of a runtime:

    exported.py SHOW_GROUPS [DIR]

Each is exported with Debian's python3-torch, and what it computes must end up in as many groups as
its entry says. With DIR the models are kept there: tests/e2e/fusion.mjs holds them against ONNX
Runtime. Results as TAP.
"""
import os
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("1..0 # SKIP there is no python3-torch")
    sys.exit(0)


class Call(nn.Module):
    """A function of x, and of modules that it names."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def behind_linear(function):
    return Call(lambda m, x: function(m.fc(x)), fc=nn.Linear(16, 16))


def softmax(x):
    return torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)


def rms_norm(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotary(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-1, -2) / 4.0
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ v


def masked_attention(q, k, v, mask):
    scores = (q * 0.25) @ k.transpose(-1, -2)
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v


def larger(image):
    return F.interpolate(image, scale_factor=2, mode="bilinear")


def gelu_fast(x):
    return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


def gelu_new(x):
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


ATTENTION = "MatMul+Softmax+MatMul"
BIAS_GELU = "MatMul+Add+Div+Erf+Add+Mul+Mul"
BIAS_SUM = "MatMul+Add+Add"
LAYER_NORM = "ReduceMean+Sub+Pow+ReduceMean+Add+Sqrt+Div+Mul+Add"


def modules():
    """name: (module, inputs, how many groups at most, opset); or, instead of a number, operators
    that must follow each other in a group"""
    x = torch.randn(2, 8, 16)
    image = torch.randn(1, 4, 8, 8)
    heads = [torch.randn(2, 4, 8, 16) for _ in range(3)]
    mask = torch.zeros(2, 1, 8, 8)
    angles = [torch.randn(8, 16), torch.randn(8, 16)]
    return {
        "gelu": (behind_linear(nn.GELU()), (x,), 1, 17),
        "gelu_tanh": (behind_linear(nn.GELU("tanh")), (x,), 1, 17),
        "gelu_new": (behind_linear(gelu_new), (x,), 1, 17),
        "gelu_fast": (behind_linear(gelu_fast), (x,), 1, 17),
        "mish": (behind_linear(nn.Mish()), (x,), 1, 17),
        "silu": (behind_linear(nn.SiLU()), (x,), 1, 17),
        "hardswish": (behind_linear(nn.Hardswish()), (x,), 1, 17),
        "hardswish_old": (behind_linear(nn.Hardswish()), (x,), 1, 12),
        "softmax_by_hand": (Call(lambda m, x: softmax(x)), (x,), 2, 17),
        "layer_norm": (nn.LayerNorm(16), (x,), 1, 17),
        "layer_norm_old": (nn.LayerNorm(16), (x,), 1, 12),
        "skip_layer_norm": (Call(lambda m, x, y: m.norm(x + y), norm=nn.LayerNorm(16)), (x, x),
                            1, 17),
        "skip_layer_norm_old": (Call(lambda m, x, y: m.norm(x + y), norm=nn.LayerNorm(16)), (x, x),
                                1, 12),
        "group_norm": (nn.GroupNorm(2, 4), (image,), 1, 17),
        "rms_norm": (Call(lambda m, x: rms_norm(x) * m.scale.weight[0], scale=nn.Linear(16, 1)),
                     (x,), 1, 17),
        "rotary": (Call(lambda m, x, cos, sin: rotary(x, cos, sin)), (heads[0], *angles), 2, 17),
        "attention": (Call(lambda m, q, k, v: attention(q, k, v)), heads, 1, 17),
        "attention_added": (Call(lambda m, *a: attention(*a)), (*heads, mask), 1, 17),
        "attention_masked": (Call(lambda m, *a: masked_attention(*a)), (*heads, mask > 0), 2, 17),
        "conv_norm_act": (nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU6()),
                          (image,), 1, 17),
        "upsample": (Call(lambda m, x: larger(x)), (image,), 1, 17),
        "upsample_chain": (Call(lambda m, x: larger(larger(x))), (image,), 1, 17),
        "upsample_to": (Call(lambda m, x, y: F.interpolate(
            x, size=y.shape[-2:], mode="bilinear", align_corners=True)),
            (image, torch.randn(1, 4, 20, 20)), 1, 17),
        "lstm": (Call(lambda m, x: m.rnn(x)[0], rnn=nn.LSTM(16, 8, batch_first=True)), (x,), 1, 17),
        "lstm_both_ways": (Call(lambda m, x: m.rnn(x)[0], rnn=nn.LSTM(
            16, 8, batch_first=True, bidirectional=True)), (x,), 1, 17),
        "multihead_attention": (Call(lambda m, x: m.mha(x, x, x)[0], mha=nn.MultiheadAttention(
            16, 4, batch_first=True)), (x,), [ATTENTION], 17),
        "transformer_layer": (
            nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), (x,),
            [ATTENTION, BIAS_GELU, BIAS_SUM + "+LayerNormalization"], 17),
        "transformer_layer_old": (
            nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), (x,),
            [ATTENTION, BIAS_GELU, BIAS_SUM + "+" + LAYER_NORM], 12),
        "gru": (Call(lambda m, x: m.rnn(x)[0], rnn=nn.GRU(16, 8)), (x,), 1, 17),
    }


def export(name, entry, directory):
    module, inputs, _, opset = entry
    path = os.path.join(directory, name + ".onnx")
    names = ["x%d" % i for i in range(len(inputs))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), tuple(inputs), path, opset_version=opset,
                          input_names=names, dynamic_axes={n: {0: "batch"} for n in names[:1]})
    return path


def groups(tool, path):
    """The operators of each group, by its number."""
    done = subprocess.run([tool, path, "1", "batch=2"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return None, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        _, group, _, op = line.split(" ")[:4]
        if group not in ("-", "dead"):
            found.setdefault(group, []).append(op)
    return found, ""


def main(tool, directory=None):
    torch.manual_seed(7)
    count = 0
    with tempfile.TemporaryDirectory(prefix="psplit-exported-") as own:
        for name, entry in modules().items():
            count += 1
            found, problem = groups(tool, export(name, entry, directory or own))
            wanted = entry[2]
            if isinstance(wanted, int):
                title = "one group" if wanted == 1 else "%d groups" % wanted
                good = found is not None and len(found) <= wanted
            else:
                title = ", ".join(wanted)
                good = found is not None and all(
                    any(ops in "+".join(group) for group in found.values()) for ops in wanted)
            print("%sok %d - %s: %s" % ("" if good else "not ", count, name, title))
            if not good:
                print("# %s" % (problem or " | ".join("+".join(ops) for ops in found.values())))
    print("1..%d" % count)


if __name__ == "__main__":
    main(*sys.argv[1:])
