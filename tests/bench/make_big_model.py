#!/usr/bin/env python3
"""Writes a model with large weights, to measure with: make_big_model.py inline|external GIB FILE

Layers of MatMul and Tanh with weights of 64 MiB each, pseudo-random bytes, streamed: inline in FILE
(which may pass protobuf's 2 GiB), or external in FILE.data beside it. Prints nothing.
"""
import random
import sys

N = 4096
WEIGHT_BYTES = 4 * N * N


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def number(field, value):
    return varint(field << 3) + varint(value)


def head(field, n):
    return varint(field << 3 | 2) + varint(n)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return head(field, len(data)) + data


def node(op, inputs, output):
    return (b"".join(block(1, i) for i in inputs) + block(2, output) + block(3, "make_" + output)
            + block(4, op))


def value(name):
    shape = block(1, block(2, "batch")) + block(1, number(1, N))
    return block(1, name) + block(2, block(1, number(1, 1) + block(2, shape)))


def main():
    kind, layers, path = sys.argv[1], int(float(sys.argv[2]) * 2**30 / WEIGHT_BYTES), sys.argv[3]
    noise = random.Random(1).randbytes(WEIGHT_BYTES)
    external = open(path + ".data", "wb") if kind == "external" else None
    before = block(2, "big")
    for i in range(layers):
        before += block(1, node("MatMul", [f"t{i - 1}" if i else "x", f"w{i}"], f"m{i}"))
        before += block(1, node("Tanh", [f"m{i}"], f"t{i}"))
    after = block(11, value("x")) + block(12, value(f"t{layers - 1}"))
    tensors = []
    for i in range(layers):
        tensor = number(1, N) + number(1, N) + number(2, 1) + block(8, f"w{i}")
        if external:
            entries = (("location", path.split("/")[-1] + ".data"),
                       ("offset", str(i * WEIGHT_BYTES)), ("length", str(WEIGHT_BYTES)))
            tensor += b"".join(block(13, block(1, k) + block(2, v)) for k, v in entries)
            tensor += number(14, 1)
            tensors.append((head(5, len(tensor)) + tensor, False))
        else:
            tensor += head(9, WEIGHT_BYTES)
            tensors.append((head(5, len(tensor) + WEIGHT_BYTES) + tensor, True))
    n_graph = len(before) + len(after) + sum(len(t) + inline * WEIGHT_BYTES for t, inline in tensors)
    with open(path, "wb") as file:
        file.write(number(1, 8) + head(7, n_graph) + before)
        for i, (tensor, inline) in enumerate(tensors):
            # Each layer starts elsewhere in the noise, so that no two are equal.
            turned = noise[i * 4096:] + noise[:i * 4096]
            file.write(tensor)
            if inline:
                file.write(turned)
            else:
                external.write(turned)
        file.write(after + block(8, block(1, "") + number(2, 17)))


if __name__ == "__main__":
    main()
