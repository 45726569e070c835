"""Seeds and dictionaries of targets that read texts and arrays: make_inputs.py [DIRECTORY]. Without
DIRECTORY, says as TAP whether the files in inputs/ and dictionaries/ are these; with it, writes them
there. Seeds of TARGET are inputs/TARGET/*."""
import json
import os
import struct

from kept_files import write_or_compare


def devices():
    cpu = {"flops_per_second": {"float32": 1e11}, "memory_bandwidth": 2e10, "overhead_ns": 2000}
    return {
        "preset": {"devices": [{"name": "a", "preset": "cpu"}, {"name": "b", "preset": "cpu"}]},
        "links": {
            "format": "onnx-pipeline-split-devices", "version": 1,
            "devices": [dict(cpu, name="a", memory_bytes=1 << 30, host="h", rack="r"),
                        dict(cpu, name="b", keeps_copies=True, workspace_bytes=1000, host="i"),
                        dict(cpu, name="c", efficiency={"conv": 0.5, "matmul": 1})],
            "topology": {"same_host": {"bytes_per_second": 1e10, "latency_ns": 1000},
                         "anywhere": {"bytes_per_second": 1e8, "latency_ns": 50000}},
            "links": [{"from": "a", "to": "c", "bytes_per_second": 0, "one_way": True}]},
        "supports": {
            "presets": {"npu": dict(cpu, supports={
                "operators": ["Conv", {"operator": "Relu", "types": ["float32"], "opsets": [1, 20],
                                       "max_rank": 4}],
                "static_shapes": True, "max_tensor_bytes": 1 << 20}, unsupported={
                    "operators": ["Sigmoid"], "types": ["int4"], "nodes": ["add*"]})},
            "devices": [{"name": "n", "preset": "npu"},
                        {"name": "g", "preset": "cpu", "session": {
                            "provider": "CUDA", "provider_options": {"device_id": 0},
                            "config": {"a": "b"}, "threads": 2, "optimization": 99}}]},
    }


def costs():
    ours = {"format": "onnx-pipeline-split-costs", "version": 1, "measured": True, "complete": True,
            "optimization": 99, "spread_frac": 0.1, "dims": {"n": 2}, "values": {"e": [2, 8, 16, 16]},
            "costs": [{"nodes": ["conv_a", "relu"], "ns": 1000, "blocked": True, "workspace_bytes": 64},
                      {"outputs": ["e"], "ns": 5.5}]}

    def event(name, op, microseconds):
        return {"cat": "Node", "ph": "X", "name": name + "_kernel_time", "ts": 1,
                "dur": microseconds, "pid": 1, "tid": 1,
                "args": {"op_name": op, "provider": "CPUExecutionProvider", "node_index": "0",
                         "output_type_shape": [{"float": [1, 8, 16, 16]}]}}
    run = {"cat": "Session", "ph": "X", "name": "model_run", "ts": 1, "dur": 900, "args": {}}
    return {
        "ours": json.dumps(ours, indent=1),
        "profile": json.dumps([event("conv_a", "Conv", 300), event("relu", "Relu", 10),
                               event("conv_b", "Conv", 310), event("add", "Add", 9), run]),
        "memory": "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n"
                  "conv_a,8192,2304,8192,0\nadd,1,0,2,3\n",
        "olive": "module,num_params,num_bytes,num_flops\nconv_a,576,2304,100\nadd,0,12.5,9\n",
    }


def problems():
    def node(i, **more):
        return dict({"id": i, "name": "n%d" % i, "time_ns": 5 + i}, **more)
    return {
        "own": {"format": "psplit-problem", "version": 1, "comm": "p2p",
                "devices": [{"name": "d", "count": 3, "memory_bytes": 1000}],
                "links": [{"latency_ns": 1, "bytes_per_s": 1e9}],
                "nodes": [node(0, weight_bytes=8), node(1, pin=1), node(2, together=3),
                          node(3, together=3), node(4, activation_bytes=9)],
                "tensors": [{"producer": 0, "consumers": [1, 2], "bytes": 64},
                            {"producer": 2, "consumers": [4], "send_ns": 1, "recv_ns": 2},
                            {"producer": 1, "consumers": [4], "bytes": 9, "uncuttable": True}],
                "order": [[0, 3]], "weights": [{"bytes": 100, "users": [0, 4]}]},
        "classes": {"format": "psplit-problem", "comm": "shared", "overlap": True,
                    "any_device_order": True, "stash_1f1b": True,
                    "devices": [{"class": 0, "count": 1}, {"class": 1, "count": 1, "free_comm": True}],
                    "links": [{"latency_ns": 5}, {"bytes_per_s": 1e10}],
                    "nodes": [node(0, time_ns=[3, 4]), node(1, time_ns=[None, 2.5]),
                              node(2, time_ns=[1, 1], backward=True),
                              node(3, time_ns=[1, 9], auxiliary=True)],
                    "tensors": [{"producer": 0, "consumers": [1], "bytes": 10},
                                {"producer": 1, "consumers": [2, 3], "send_ns": [1, 2], "recv_ns": 4}]},
        "pairs": {"format": "psplit-problem", "devices": [{"count": 1}, {"count": 1}, {"count": 1}],
                  "link_classes": [{"latency_ns": 1, "bytes_per_s": 1e10}, {"latency_ns": 30}],
                  "device_links": [[0, 1, 1], [1, 0, 0], [1, 0, 0]],
                  "nodes": [node(i) for i in range(4)],
                  "tensors": [{"producer": 0, "consumers": [1], "bytes": 10},
                              {"producer": 1, "consumers": [2], "link_ns": [1, 3]},
                              {"producer": 2, "consumers": [3], "bytes": 7}]},
        "published": {"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 100,
                      "nodes": [{"id": 1, "supportedOnFpga": 1, "cpuLatency": 5.5, "fpgaLatency": 1,
                                 "isBackwardNode": 0, "size": 10},
                                {"id": 2, "supportedOnFpga": 0, "cpuLatency": 2, "fpgaLatency": 1,
                                 "isBackwardNode": 0, "size": 1}],
                      "edges": [{"sourceId": 1, "destId": 2, "cost": 0.25}]},
        # Accelerators that are called, and a CPU that runs all, though slowly.
        "calls": {"format": "psplit-problem",
                  "devices": [{"class": 0, "count": 2, "memory_bytes": 100},
                              {"class": 1, "count": 1, "free_comm": True}],
                  "nodes": [node(i, time_ns=[2 + i % 3, 9 + i], weight_bytes=20) for i in range(8)],
                  "tensors": [{"producer": i, "consumers": sorted({i + 1, min(i + 3, 7)}), "send_ns": 1,
                               "recv_ns": 2} for i in range(7)]},
        # Most of the work in nodes that cannot be cut, with small ones between.
        "heavy": {"format": "psplit-problem", "devices": [{"count": 4}],
                  "nodes": [node(i, time_ns=900 if i % 5 == 2 else 7 + i % 4) for i in range(30)],
                  "tensors": [{"producer": i, "consumers": sorted({i + 1, min(i + 4, 29)}), "send_ns": 3,
                               "recv_ns": 4} for i in range(29)]},
    }


def prompts():
    return {
        "lines": "1,2,3\n4 5 6\n\n[7, 8, 9]\n18446744073709551615\n",
        "objects": json.dumps({"prompt_ids": [1, 2], "max_new_tokens": 8, "input_features": "a/b.npy"})
                   + "\n{\"prompt_ids\":[3],\"a\\u00e9\\n\":\"\\ud83d\\ude00\"}\r\n",
        "foreign": b"\xff\xfe1\x00,\x002\x00\n\x00",
        "mark": b"\xef\xbb\xbf1,2\n",
    }


PATTERNS = """set heavy = Conv | MatMul | my.domain:Fancy
pattern silu   # a name
  k = @heavy(*)
  b ?= Add(k, const)
  either
    s = Sigmoid(b)
    m = Mul(b, ~s)
  or
    m, _ = Relu(_, 2.0, *)
  end
  y = * (m)
  out m y
"""


def passes():
    return {
        "default": "infer-shapes,cost,mark,attach,fuse,coarsen:max_nodes=5000,partition,replicate\n",
        "patterns": "infer-shapes,cost,mark,attach,fuse:patterns=f,partition:solver=exact:gap=0.01\n"
                    + PATTERNS,
        "blocks": "cost,fuse:patterns=f,blocks,coarsen:exact=true,partition\n" + PATTERNS,
        # Once the canonical form of this was that of another text.
        "option-without-value": "partition:solver\n",
    }


def npy(descr, shape, data, order="False"):
    text = ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)).encode()
    text += b" " * (-(11 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def tensor(*fields):
    """A TensorProto of (field, bytes or number) pairs, all shorter than 128."""
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += bytes([number << 3 | 2, len(value)]) + value
        else:
            out += bytes([number << 3, value])
    return out


def arrays():
    import make_checkpoints
    floats = struct.pack("<6f", *range(6))
    stored = make_checkpoints.seeds()
    return {
        "npy": b"\0\0" + npy("<f4", "(2, 3)", floats),
        "npy-fortran": b"\0\0" + npy(">f4", "(2, 3)", floats, "True"),
        "npy-strings": b"\0\7" + npy("<U2", "(2,)", "a\0bc".encode("utf-32-le")),
        "npy-bytes": b"\0\7" + npy("|S3", "(2,)", b"a\0\0bcd"),
        "npy-widened": b"\4\6" + npy("|i1", "(3,)", b"\1\2\xff"),
        "npy-scalar": b"\0\12" + npy("<f8", "()", struct.pack("<d", 1.5)),
        "npz": b"\1\0" + stored["stored.npz"],
        "npz-packed": b"\1\0" + stored["packed.npz"],
        "pb": b"\2\0" + tensor((1, 2), (1, 3), (2, 1), (9, floats)),
        "pb-floats": b"\2\0" + tensor((1, 2), (2, 1), (4, floats[:8])),
        "pb-strings": b"\2\7" + tensor((1, 2), (2, 8), (6, b"a"), (6, b"bc")),
        "pb-int4": b"\2\25" + tensor((1, 3), (2, 22), (5, b"\1\2")),
        "pb-int64": b"\2\6" + tensor((1, 2), (2, 7), (7, b"\5\6")),
        "sequence": b"\22\0" + tensor((2, 1), (3, tensor((1, 2), (2, 1), (4, floats[:8]))),
                                      (3, tensor((1, 2), (2, 8), (6, b"a"), (6, b"bc")))),
        "sequence-of-little": b"\22\0" + tensor(*[(3, tensor((1, 0), (2, 1)))] * 40),
        "sequence-of-maps": b"\22\0" + tensor((2, 5)),
        "raw": b"\13\0" + floats,
        # For these memory was once taken before it was asked whether the file has as much.
        "npy-shape-without-data": b"\0\0" + npy("<f4", "(1073741824, 8)", b""),
        "npy-strings-of-nothing": b"\0\7" + npy("<U0", "(1073741824,)", b""),
        "pb-dims-without-data": b"\2\0" + b"\x08\x80\x80\x80\x80\x10" + tensor((2, 1)),
    }


def stages():
    """Edits (offset, gone, bytes) of one file of a fixed split."""
    def edits(which, *of):
        return bytes([which]) + b"".join(
            struct.pack("<HBB", at, gone, len(come)) + come for at, gone, come in of)
    seeds = {"same-%02d" % which: edits(which) for which in range(24)}
    seeds["one-byte"] = edits(0, (100, 1, b"7"))
    seeds["two-places"] = edits(4, (20, 0, b"\x0a\x01x"), (60, 2, b"{}"))
    return seeds


def pipelines():
    """Edits of pipeline.json (fuzz_pipeline.c): the first byte says of which and how it is run, then place, what, by what."""
    def edits(how, *each):
        return bytes([how]) + b"".join(struct.pack("<HBB", *one) for one in each)
    seeds = {"same-%02d" % how: edits(how) for how in range(48)}
    seeds.update({"number": edits(0, (700, 0, 5)), "text": edits(1, (900, 1, 60)), "twice": edits(2, (2000, 2, 0)),
                  "gone": edits(1, (400, 3, 0)), "several": edits(2, (5000, 0, 2), (300, 2, 0), (4000, 1, 9))})
    return seeds


def dictionary(words):
    return "".join('"%s"\n' % word.replace("\\", "\\\\").replace('"', '\\"') for word in words)


def keys(value):
    """Every key and text in JSON, as a dictionary has them."""
    if isinstance(value, dict):
        return {'"%s"' % k for k in value}.union(*[keys(v) for v in value.values()])
    if isinstance(value, list):
        return set().union(*[keys(v) for v in value])
    return {'"%s"' % value} if isinstance(value, str) else set()


JSON_WORDS = ["true", "false", "null", "{", "}", "[", "]", ":", ",", "-1", "0", "1e308", "1e-308",
              "9223372036854775807", "18446744073709551616", "0.5", '""', "[]", "{}", '"\\u0000"']


def schema_words(*names):
    """Keys and choices of JSON Schemas in docs/."""
    found = set()

    def walk(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "properties":
                    found.update('"%s"' % k for k in inner)
                if key in ("enum", "const"):
                    found.update(keys(inner if isinstance(inner, list) else [inner]))
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
    for name in names:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", name)
        with open(path, encoding="utf-8") as file:
            walk(json.load(file))
    return sorted(found)


def dictionaries():
    return {
        "fuzz_devices": dictionary(JSON_WORDS + schema_words("devices.schema.json")),
        "fuzz_costs": dictionary(JSON_WORDS + sorted(
            set(schema_words("costs.schema.json")) | keys(json.loads(costs()["profile"])))),
        "fuzz_problem": dictionary(JSON_WORDS + sorted(keys(problems()))),
        "fuzz_stages": dictionary(JSON_WORDS + schema_words("manifest.schema.json")),
        "fuzz_probe": dictionary(JSON_WORDS + sorted(keys(probes())) + schema_words("devices.schema.json")),
        "fuzz_pins": dictionary(["a=0", "block/", "[c]", "d=0=", "b*", "\\\\", "[a-", "?", "=2", "# "]),
        "fuzz_request": dictionary(JSON_WORDS + [
            '"inputs"', '"outputs"', '"name"', '"shape"', '"datatype"', '"data"', '"parameters"', '"id"',
            '"binary_data_size"', '"binary_data_output"', '"binary_data"', '"FP32"', '"INT64"', '"BYTES"',
            '"BOOL"', '"FP16"', '"UINT8"']),
        "fuzz_passes": dictionary([
            "infer-shapes", "cost", "mark", "attach", "fuse", "blocks", "coarsen", "partition", "replicate",
            ":patterns=f", ":max_nodes=2", ":exact=true", ":solver=", "exact", "search", "anneal", ":gap=0.5",
            "set ", "pattern ", "either", "or", "end", "out ", "const", "?=", "@", "~", "*", "_", "Mul", "Sigmoid",
            "com.microsoft:Gelu"]),
        "fuzz_prompts": dictionary(JSON_WORDS + ['"prompt_ids":', '"max_new_tokens":', "\\ud83d\\ude00"]),
        "fuzz_arrays": dictionary([
            "'descr': ", "'fortran_order': True", "'shape': (", "<f4", ">f8", "<U0", "|S0", "<U1000000", "|b1",
            "|V2", "<c16", "9223372036854775807, ", "0, ", "4294967296, ", "x.npy", "PK"]),
        "fuzz_text": dictionary([
            "=>", "float[", "<ir_version: 10, opset_import: [", "If", "Loop", "then_branch", "raw {", "seq(",
            "map(", "optional(", "sparse_tensor(", "@{", "doc_string: ", "[\"location\": "]),
    }


def lanes():
    """What another rank sends (fuzz_lane.c): envelopes of 9 words, then type, bytes, rank and dims of each tensor."""
    def words(*values):
        return struct.pack("<%dq" % len(values), *values)

    def envelope(rows, data=b"", inside=True, what=0, failure=b"", left_ns=0):
        head = words(what, left_ns, 3 if failure else 0, len(failure), inside, 7, 2, 1, 0)
        return head + b"".join(words(kind, n, len(dims), *dims) for kind, n, *dims in rows) + failure + (
            data if inside else b"")

    def messages(first, *each):
        return bytes([first]) + b"".join(struct.pack("<H", len(m)) + m for m in each)

    def in_memory(first, *each):
        out = bytes([first]) + bytes(16)
        for number, message in enumerate(each, 1):
            text = words(number << 32 | len(message)) + message
            out += b"".join(bytes([len(text[at:at + 100])]) + text[at:at + 100] for at in range(0, len(text), 100))
        return out + bytes(8)

    floats = envelope([(1, 16, 2, 2)], bytes(16))
    strings = envelope([(8, 19, 2)], struct.pack("<2Q", 1, 2) + b"abc")
    apart = envelope([(1, 16, 4), (0, 0), (7, 8)], inside=False)
    end, failure = envelope([], what=1), envelope([], what=2, failure=b"it failed")
    # Bits of the first byte: through memory, out, tensors (2 bits), depth less one (2 bits).
    return {
        "message": messages(0x14, floats, floats, end), "strings": messages(0x14, strings, end),
        "apart": messages(0x2c, apart, bytes(16), bytes(8), end), "failure": messages(0x14, failure, end),
        "deadlines": messages(0x14, *[envelope([(1, 16, 2, 2)], bytes(16), left_ns=n) for n in (2**63 - 1, -2**63)], end),
        "short": messages(0x14, floats[:-1]), "credits": messages(0x32, words(1), words(3)),
        "memory": in_memory(0x15, floats, strings, end),
        "memory-apart": in_memory(0x2d, apart + bytes(24)),
        "memory-position": in_memory(0x15, floats) + bytes([0x81, 64, 0, 0]) + words(-1),
        "memory-out": bytes([0x33]) + words(1024, 4096) + bytes([0x81, 136, 0, 0]) + words(2) + bytes(9),
        "memory-no-ring": bytes([0x33]) + words(1024, 1) + bytes(9),
    }


def pins():
    return {"names": "# where\na=0\nblock/1/e=2\r\nd=0=1\n", "patterns": "block/*=2\n\\[c\\]=1\nb\\*=1\n?=0\n[a-b]=0\n",
            "none": "z=0\n", "first": "a=1", "backslash": "\\\\=2\na\\=1\n"}


def probes():
    said = {"format": "onnx-pipeline-split-support", "version": 1, "provider": "WebGpuExecutionProvider",
            "onnxruntime": "1.30.0", "optimization": 99, "model": "m.onnx", "nodes": 6}
    return {"none": said, "operators": dict(said, supports={"operators": [
                "MatMul", {"operator": "Relu", "types": ["float32"], "opsets": [1, 20], "max_rank": 4}]}),
            "nodes": dict(said, unsupported={"nodes": ["d", "b*"], "operators": ["Sigmoid"]}, host_nodes=["d"],
                          others=["Sigmoid"])}


def policies():
    """Edits of a good file (fuzz_policy.c): the first byte says of which, then place, length less one, bytes."""
    def edits(how, *each):
        return bytes([how]) + b"".join(struct.pack(">I", place)[1:] + bytes([len(data) - 1]) + data for place, data in each)

    weight, everywhere = struct.pack("<f", 3e5), 1 << 23
    return {"policy": bytes([0]), "state": bytes([1]), "policy-weight": edits(0, (everywhere | 5000, weight)),
            "policy-dims": edits(0, (200, b"\x08")), "policy-cut": edits(4, (everywhere | 900, b"\0")),
            "state-count": edits(3, (8, b"\1")), "state-weights": edits(3, (everywhere | 320, weight), (everywhere | 40000, weight)),
            "state-huge": edits(3, *[(everywhere | (32 + 6000 * k), 4 * struct.pack("<f", 1e20)) for k in range(30)]),
            "policy-huge": edits(0, *[(everywhere | (3000 + 3000 * k), 4 * struct.pack("<f", 9e5)) for k in range(30)]),
            "state-unsigned": edits(1, (everywhere | 320, weight)), "state-cut": edits(5, (everywhere | 900, b"\0"))}


def seeds():
    made = {}
    for target, of in (("fuzz_devices", devices()), ("fuzz_costs", costs()), ("fuzz_problem", problems()),
                       ("fuzz_passes", passes()), ("fuzz_arrays", arrays()), ("fuzz_stages", stages()),
                       ("fuzz_pipeline", pipelines()),
                       ("fuzz_lane", lanes()), ("fuzz_prompts", prompts()), ("fuzz_pins", pins()), ("fuzz_probe", probes()),
                       ("fuzz_policy", policies())):
        for name, content in of.items():
            if isinstance(content, dict):
                content = json.dumps(content, indent=1)
            made[os.path.join("inputs", target, name)] = content
    for target, content in dictionaries().items():
        made[os.path.join("dictionaries", target + ".dict")] = content
    return {name: content if isinstance(content, bytes) else content.encode() for name, content in made.items()}


if __name__ == "__main__":
    write_or_compare(seeds(), os.path.dirname(os.path.abspath(__file__)))
