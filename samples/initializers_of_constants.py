"""Makes initializers of weights that are Constant nodes, as Paddle exports them: training takes initializers alone.

    python3 initializers_of_constants.py MODEL OUTPUT

Constants of the main graph that are floating-point tensors of rank 1 or more; all else is copied byte for byte. Weights in
files of their own are named as before: OUTPUT goes beside MODEL then. Needs nothing but Python.
"""
import sys

FLOATING = (1, 10, 11, 16)  # float, float16, double, bfloat16
# Fields of onnx.proto.
MODEL_IR_VERSION, MODEL_GRAPH = 1, 7
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_OUTPUT = 1, 5, 12
NODE_OUTPUT, NODE_OP_TYPE, NODE_ATTRIBUTE, NODE_DOMAIN = 2, 4, 5, 7
ATTRIBUTE_NAME, ATTRIBUTE_TENSOR = 1, 5
TENSOR_DIMS, TENSOR_DATA_TYPE, TENSOR_NAME = 1, 2, 8
VALUE_NAME = 1


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value, all bytes of the field); values of fixed width are left out."""
    at = 0
    while at < len(data):
        begin = at
        key, at = read_varint(data, at)
        kind, value = key & 7, None
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            n, at = read_varint(data, at)
            value = data[at:at + n]
            at += n
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("no model: a field of kind %d" % kind)
        if at > len(data):
            raise ValueError("no model: it ends within a field")
        yield key >> 3, value, data[begin:at]


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def first(data, number, default=b""):
    return next((value for n, value, _ in fields(data) if n == number), default)


def weight_of(node):
    """(name, tensor) of a node that is such a constant, or None."""
    if bytes(first(node, NODE_OP_TYPE)) != b"Constant" or first(node, NODE_DOMAIN):
        return None
    attribute = first(node, NODE_ATTRIBUTE)
    if bytes(first(attribute, ATTRIBUTE_NAME)) != b"value":
        return None
    tensor = first(attribute, ATTRIBUTE_TENSOR)
    if first(tensor, TENSOR_DATA_TYPE, 0) not in FLOATING or not any(n == TENSOR_DIMS for n, _, _ in fields(tensor)):
        return None
    name = bytes(first(node, NODE_OUTPUT))
    unnamed = b"".join(bytes(whole) for n, _, whole in fields(tensor) if n != TENSOR_NAME)
    return name, unnamed + field(TENSOR_NAME, name)


def convert(model):
    """The model's bytes, and how many constants became initializers."""
    if first(model, MODEL_IR_VERSION, 0) < 4:
        raise ValueError("of an IR version below 4, in which initializers are inputs: convert it to a newer one first")
    count, parts = 0, []
    for number, value, whole in fields(model):
        if number == MODEL_GRAPH:
            outputs = {bytes(first(v, VALUE_NAME)) for n, v, _ in fields(value) if n == GRAPH_OUTPUT}
            kept, made = [], []
            for n, part, bytes_of_it in fields(value):
                weight = weight_of(part) if n == GRAPH_NODE else None
                if weight and weight[0] not in outputs:
                    made.append(field(GRAPH_INITIALIZER, weight[1]))
                else:
                    kept.append(bytes(bytes_of_it))
            count += len(made)
            whole = field(MODEL_GRAPH, b"".join(kept + made))
        parts.append(bytes(whole))
    return b"".join(parts), count


def main(path, output):
    try:
        with open(path, "rb") as file:
            model, count = convert(memoryview(file.read()))
        with open(output, "xb") as file:
            file.write(model)
    except (OSError, ValueError, IndexError) as error:
        return "error: %s: %s" % (path, error)
    print("%d constants are initializers now" % count)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else __doc__)
