#!/usr/bin/python3
"""Exports models with Debian's torch, and writes what torch says their gradients are.

    families.py [--steps N] OUT [NAME...]
    families.py --clock NAME

OUT/NAME/model.onnx, and OUT/NAME/expected.json with OUT/NAME/expected.bin: inputs, and for each
parameter the gradient in float64 and in float32; for gpt and vit also the loss of each of N training
steps with each optimizer. Weights are random from a fixed seed. Without names: the small families. A
list of all: families.py --list. With --clock torch trains instead: ../bench/training.mjs.
"""
import copy
import json
import os
import sys
import time
import warnings

# One thread each, in the libraries below torch too.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")


class Attention(nn.Module):
    def __init__(self, d, heads, causal):
        super().__init__()
        self.qkv, self.out, self.heads, self.causal = nn.Linear(d, 3 * d), nn.Linear(d, d), heads, causal

    def forward(self, x, mask=None):
        n, t, d = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
        if self.causal:
            scores = scores.masked_fill(torch.triu(torch.ones(t, t), 1).bool(), float("-inf"))
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None, :] == 0, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d))


class Block(nn.Module):
    def __init__(self, d, heads, causal, gelu, pre=True):
        super().__init__()
        self.a, self.b, self.attention = nn.LayerNorm(d), nn.LayerNorm(d), Attention(d, heads, causal)
        self.up, self.down, self.gelu, self.pre = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), gelu, pre

    def forward(self, x, mask=None):
        if self.pre:
            x = x + self.attention(self.a(x), mask)
            return x + self.down(F.gelu(self.up(self.b(x)), approximate=self.gelu))
        x = self.a(x + self.attention(x, mask))
        return self.b(x + self.down(F.gelu(self.up(x), approximate=self.gelu)))


class Gpt(nn.Module):
    def __init__(self, d=48, layers=2, words=61, length=24):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList([Block(d, 4, True, "tanh") for _ in range(layers)])
        self.norm = nn.LayerNorm(d)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.words.weight.T


class Bert(nn.Module):
    def __init__(self, d=48, layers=2, words=61, length=20, classes=5):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(length, d)
        self.norm = nn.LayerNorm(d)
        self.blocks = nn.ModuleList([Block(d, 4, False, "none", pre=False) for _ in range(layers)])
        self.pool, self.head = nn.Linear(d, d), nn.Linear(d, classes)

    def forward(self, tokens, mask):
        x = self.norm(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Vit(nn.Module):
    def __init__(self, d=48, layers=2, classes=10, size=32):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, d) * 0.1)
        self.places = nn.Parameter(torch.randn(1, (size // 8) ** 2 + 1, d) * 0.1)
        self.blocks = nn.ModuleList([Block(d, 4, False, "none") for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.one, self.two = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.n1, self.n2 = nn.BatchNorm2d(b), nn.BatchNorm2d(b)
        self.side = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        y = F.relu(self.n1(self.one(x)))
        return F.relu(self.n2(self.two(y)) + self.side(x))


class SmallResnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16)
        self.body = nn.Sequential(Residual(16, 24, 1), Residual(24, 32, 2))
        self.head = nn.Linear(32, 10)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.norm(self.stem(image))), 3, 2, 1)
        return self.head(F.adaptive_avg_pool2d(self.body(x), 1).flatten(1))


class Separable(nn.Module):
    """Depthwise convolutions, squeeze and excitation, HardSwish."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32), nn.Hardswish(),
                                  nn.Conv2d(32, 32, 5, 2, 2, groups=32, bias=False), nn.BatchNorm2d(32))
        self.squeeze = nn.Sequential(nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Conv2d(8, 32, 1), nn.Hardsigmoid())
        self.last = nn.Sequential(nn.Conv2d(32, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6())
        self.head = nn.Linear(24, 6)

    def forward(self, image):
        x = self.deep(self.stem(image))
        x = self.last(x * self.squeeze(F.adaptive_avg_pool2d(x, 1)))
        return self.head(x.mean((2, 3)))


class Unet(nn.Module):
    def __init__(self, up):
        super().__init__()
        def conv(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        self.a, self.b, self.c = conv(3, 12), conv(12, 24), conv(36, 12)
        if up == "transposed":
            self.up = nn.ConvTranspose2d(24, 24, 2, 2)
        else:
            self.up = nn.Upsample(scale_factor=2, mode=up)
        self.out = nn.Conv2d(12, 2, 1)

    def forward(self, image):
        a = self.a(image)
        return self.out(self.c(torch.cat([a, self.up(self.b(F.max_pool2d(a, 2)))], 1)))


class Tagger(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.words = nn.Embedding(31, 12)
        self.rnn = kind(12, 16, batch_first=True, **options)
        self.head = nn.Linear(16 * (2 if options.get("bidirectional") else 1), 7)

    def forward(self, tokens):
        return self.head(self.rnn(self.words(tokens))[0])


class Mlp(nn.Module):
    """Norms and activations that no other family has."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 8, 5, padding=2, padding_mode="reflect")
        self.group, self.instance = nn.GroupNorm(2, 8), nn.InstanceNorm1d(8, affine=True)
        self.a, self.b, self.p = nn.Linear(8, 12), nn.Linear(12, 3), nn.PReLU(8)

    def forward(self, x):
        x = self.p(self.group(self.conv(x)))
        x = F.silu(self.instance(x))[:, :, ::2].transpose(1, 2)
        x = F.softplus(self.a(x)) + F.elu(self.a(x.flip(1)))
        return self.b(F.mish(x).amax(1))


def image(size, batch=2):
    return [("image", torch.randn(batch, 3, size, size))]


def tokens(batch, length, words=61):
    return [("tokens", torch.randint(words, (batch, length)))]


def vision(name, size, classes=1000):
    def build():
        import torchvision
        model = getattr(torchvision.models, name)(weights=None)
        for module in model.modules():
            if type(module).__name__ == "StochasticDepth":
                module.p = 0.0
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        if name.startswith("vit"):
            nn.init.normal_(model.heads.head.weight, std=0.02)
        return model
    return build, lambda: image(size), "classes"


SMALL = {
    "gpt": (Gpt, lambda: tokens(2, 24), "next"),
    "bert": (Bert, lambda: tokens(3, 20) + [("mask", (torch.arange(20)[None] < torch.tensor([[20], [13], [7]])).long())],
             "classes"),
    "vit": (Vit, lambda: image(32), "classes"),
    "resnet": (SmallResnet, lambda: image(32, 4), "classes"),
    "separable": (Separable, lambda: image(32, 4), "classes"),
    "unet_transposed": (lambda: Unet("transposed"), lambda: image(16), "mse"),
    "unet_nearest": (lambda: Unet("nearest"), lambda: image(16), "bce"),
    "unet_bilinear": (lambda: Unet("bilinear"), lambda: image(16), "pixels"),
    "lstm": (lambda: Tagger(nn.LSTM), lambda: tokens(3, 9, 31), "tags"),
    "lstm_both": (lambda: Tagger(nn.LSTM, bidirectional=True, num_layers=2), lambda: tokens(3, 9, 31), "tags"),
    "gru_both": (lambda: Tagger(nn.GRU, bidirectional=True), lambda: tokens(3, 9, 31), "tags"),
    "rnn": (lambda: Tagger(nn.RNN), lambda: tokens(3, 9, 31), "tags"),
    "mlp": (Mlp, lambda: [("x", torch.randn(3, 4, 10))], "classes"),
}
LARGE = {
    "resnet18": vision("resnet18", 64),
    "resnet50": vision("resnet50", 64),
    "mobilenet_v3_small": vision("mobilenet_v3_small", 64),
    "densenet121": vision("densenet121", 64),
    "efficientnet_b0": vision("efficientnet_b0", 64),
    "swin_t": vision("swin_t", 64),
    "vit_b_16": vision("vit_b_16", 224),
}


# For figures of cost.
COST = {
    "cost_gpt": (lambda: Gpt(256, 4, 1000, 128), lambda: tokens(4, 128, 1000), "next"),
    "cost_vit": (lambda: Vit(256, 4, size=64), lambda: image(64, 4), "classes"),
    "cost_resnet18": (vision("resnet18", 0)[0], lambda: image(112, 4), "classes"),
    "cost_resnet50": (vision("resnet50", 0)[0], lambda: image(112, 4), "classes"),
    "cost_mobilenet": (vision("mobilenet_v3_small", 0)[0], lambda: image(112, 4), "classes"),
}


def milliseconds(run):
    """CPU time of a run."""
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1e3


def targets(kind, y):
    """Labels, torch's loss, and the option that says the same."""
    if kind == "mse":
        return torch.randn_like(y), F.mse_loss, "mse:target=target"
    if kind == "bce":
        return torch.rand_like(y), F.binary_cross_entropy_with_logits, "bce-with-logits:labels=target"
    if kind in ("classes", "pixels"):
        shape = y.shape[:1] + y.shape[2:]
        return torch.randint(y.shape[1], shape), F.cross_entropy, "softmax-cross-entropy:labels=target"
    labels = torch.randint(y.shape[2], y.shape[:2])
    labels[0, :3] = -100
    def loss(y, labels):
        return F.cross_entropy(y.flatten(0, 1), labels.flatten())
    return labels, loss, "softmax-cross-entropy:labels=target,ignore=-100,axis=-1"


class Blob:
    def __init__(self):
        self.parts, self.bytes = [], 0

    def add(self, tensor):
        tensor = tensor.detach().contiguous()
        entry = {"dtype": str(tensor.dtype).split(".")[1], "dims": list(tensor.shape), "offset": self.bytes}
        self.parts.append(tensor.numpy().tobytes())
        self.bytes += len(self.parts[-1])
        if self.bytes % 8:
            self.parts.append(bytes(8 - self.bytes % 8))
            self.bytes += 8 - self.bytes % 8
        return entry


def gradients(model, inputs, loss, target, dtype):
    model = model.to(dtype)
    model.zero_grad()
    y = model(*[x.to(dtype) if x.is_floating_point() else x for x in inputs])
    value = loss(y, target.to(dtype) if target.is_floating_point() else target)
    value.backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return value.detach(), grads


OPTIMIZERS = {
    "sgd:weight_decay=0.01": (0.05, lambda p, lr: torch.optim.SGD(p, lr, weight_decay=0.01)),
    "momentum:momentum=0.8": (0.02, lambda p, lr: torch.optim.SGD(p, lr, momentum=0.8)),
    "momentum:momentum=0.9,nesterov=1": (0.01, lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9, nesterov=True)),
    "adam:beta1=0.8,beta2=0.99,weight_decay=0.01":
        (0.002, lambda p, lr: torch.optim.Adam(p, lr, (0.8, 0.99), weight_decay=0.01)),
    "adamw:weight_decay=0.1": (0.002, lambda p, lr: torch.optim.AdamW(p, lr, weight_decay=0.1)),
}


def curve(model, inputs, loss, target, make, lr, steps, dtype):
    model = copy.deepcopy(model).to(dtype).train()
    optimizer = make(model.parameters(), lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model(*[x.to(dtype) if x.is_floating_point() else x for x in inputs]), target)
        value.backward()
        optimizer.step()
        losses.append(float(value))
    return losses


def write(name, out, steps):
    build, make_inputs, kind = {**SMALL, **LARGE, **COST}[name]
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = build().train()
    named = make_inputs()
    names, inputs = [n for n, _ in named], [x for _, x in named]
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        target, loss, loss_option = targets(kind, model(*inputs))
    dynamic = {n: {0: "batch"} for n in names + ["y"]} if name in SMALL else {}
    if name in ("gpt", "lstm", "lstm_both", "gru_both", "rnn"):
        dynamic = {n: {0: "batch", 1: "length"} for n in names + ["y"]}
    torch.onnx.export(model, tuple(inputs), os.path.join(folder, "model.onnx"), opset_version=17,
                      input_names=names, output_names=["y"], dynamic_axes=dynamic,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    curves = {}
    for option, (lr, make) in OPTIMIZERS.items() if name in ("gpt", "vit") else ():
        both = [curve(model, inputs, loss, target, make, lr, steps, d) for d in (torch.float32, torch.float64)]
        curves[option] = {"lr": lr, "float32": both[0], "float64": both[1]}
    value32, grads32 = gradients(model, inputs, loss, target, torch.float32)
    value64, grads64 = gradients(model, inputs, loss, target, torch.float64)
    blob = Blob()
    expected = {
        "loss": loss_option, "curves": curves, "value": float(value64), "value32": float(value32),
        "inputs": {n: blob.add(x) for n, x in named + [("target", target)]},
        "gradients": {n: {"float64": blob.add(g), "float32": blob.add(grads32[n])}
                      for n, g in grads64.items()},
    }
    with open(os.path.join(folder, "expected.bin"), "wb") as file:
        for part in blob.parts:
            file.write(part)
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file)


def clock(name):
    """For each line on standard input the CPU time of a forward and backward pass, in milliseconds."""
    build, make_inputs, kind = COST[name]
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model, inputs = build().train(), [x for _, x in make_inputs()]
    with torch.no_grad():
        target, loss, _ = targets(kind, model(*inputs))
    for _ in sys.stdin:
        model.zero_grad()
        print(milliseconds(lambda: loss(model(*inputs), target).backward()), flush=True)


def main(argv):
    arguments = argv[1:]
    steps = 10
    if arguments[:1] == ["--clock"]:
        clock(arguments[1])
        return
    if arguments == ["--list"]:
        print(*SMALL, *LARGE, *COST)
        return
    if arguments[:1] == ["--steps"]:
        steps, arguments = int(arguments[1]), arguments[2:]
    if not arguments:
        sys.exit("usage: families.py [--steps N] OUT [NAME...]")
    for name in arguments[1:] or SMALL:
        write(name, arguments[0], steps)


main(sys.argv)
