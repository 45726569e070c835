"""The seeds of fuzz_checkpoint: make_checkpoints.py [DIRECTORY]. Without DIRECTORY, says as TAP
whether the files in checkpoints/ are these; with it, writes them there."""
import json
import os
import struct
import zlib

from kept_files import write_or_compare


def safetensors(header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def array(shape, data):
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n" % shape
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def archive(name, content, deflate):
    """One member, as zipfile writes it, with no time in it."""
    if deflate:
        packed = b"\1" + struct.pack("<HH", len(content), ~len(content) & 0xffff) + content
    else:
        packed = content
    common = struct.pack("<HHIIIIHH", 8 if deflate else 0, 0, 0, zlib.crc32(content), len(packed),
                         len(content), len(name), 0)
    local = b"PK\3\4" + struct.pack("<HH", 20, 0) + common + name + packed
    # Method, time, checksum, sizes and lengths of names stand in both, in this order.
    entry = (b"PK\1\2" + struct.pack("<HHH", 20, 20, 0) + common + struct.pack("<HHHII", 0, 0, 0, 0, 0)
             + name)
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)
    return local + entry + end


def seeds():
    floats = struct.pack("<6f", *range(6))
    run = {"version": 1, "step": 7, "epoch": 1, "batch": 2, "seed": "18446744073709551615",
           "optimizer": "adamw:weight_decay=0.05", "rows": 100, "batch_rows": 20,
           "micro_batches": 4, "digest": "fb4de88dbb58abaad3c622d6178d74e5",
           "stages": [{"file": "stage0.safetensors", "bytes": 200}],
           "weights": [{"name": "w", "dtype": "float32", "shape": [2, 3]}]}
    return {
        "safetensors": safetensors(
            {"__metadata__": {"format": "pt"},
             "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
             "none": {"dtype": "I64", "shape": [0], "data_offsets": [24, 24]},
             "s": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]}}, floats + b"\0\1"),
        "training.json": json.dumps(run, indent=1).encode(),
        "stored.npz": archive(b"x.npy", array(b"(2, 3)", floats), False),
        "packed.npz": archive(b"x.npy", array(b"(2, 3)", floats), True),
    }


if __name__ == "__main__":
    write_or_compare(seeds(), os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints"))
