"""Compares onnx/onnx.proto with the definitions that Debian packages (libonnx-dev, python3-onnx):
every message and enum that both have must agree on each field's name, number, type and label, and
ours must lack nothing that theirs has. Python's standard library only.

    schema_test.py PROTOC OURS [THEIRS...]

Exit 77 (meson: skipped) where none of THEIRS exists."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verify"))
from wire import read_varint  # noqa: E402

# Types of ours that no published version has, and of theirs that carry no data.
OUR_OWN = {"payload_view"}
NOT_NEEDED = {"onnx.Version", "onnx.OperatorStatus"}

# Field numbers of google/protobuf/descriptor.proto.
SET_FILE, FILE_MESSAGE, FILE_ENUM = 1, 4, 5
MESSAGE_NAME, MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM, MESSAGE_ONEOF = 1, 2, 3, 4, 8
FIELD_NAME, FIELD_NUMBER, FIELD_LABEL, FIELD_TYPE, FIELD_TYPE_NAME = 1, 3, 4, 5, 6
FIELD_OPTIONS, FIELD_ONEOF, OPTION_PACKED = 8, 9, 2
ENUM_NAME, ENUM_VALUE = 1, 2


def fields(data):
    """A message as {field number: [values]}."""
    found, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 2:
            n, at = read_varint(data, at)
            value, at = data[at:at + n], at + n
        else:
            raise ValueError("a descriptor holds no such wire type")
        found.setdefault(tag >> 3, []).append(value)
    return found


def text(message, number):
    return message.get(number, [b""])[0].decode()


def read_enum(data, scope, out):
    enum = fields(data)
    out[scope + text(enum, ENUM_NAME)] = {
        text(value, 1): ("value", value.get(2, [0])[0])
        for value in map(fields, enum.get(ENUM_VALUE, []))}


def read_message(data, scope, out):
    message = fields(data)
    name = scope + text(message, MESSAGE_NAME)
    oneofs = [text(fields(one), 1) for one in message.get(MESSAGE_ONEOF, [])]
    out[name] = {}
    for field in map(fields, message.get(MESSAGE_FIELD, [])):
        options = fields(field.get(FIELD_OPTIONS, [b""])[0])
        out[name][text(field, FIELD_NAME)] = (
            "field", field[FIELD_NUMBER][0], "label", field[FIELD_LABEL][0],
            "type", field[FIELD_TYPE][0], text(field, FIELD_TYPE_NAME),
            "packed", options.get(OPTION_PACKED, [0])[0],
            "oneof", oneofs[field[FIELD_ONEOF][0]] if FIELD_ONEOF in field else "")
    for nested in message.get(MESSAGE_NESTED, []):
        read_message(nested, name + ".", out)
    for nested in message.get(MESSAGE_ENUM, []):
        read_enum(nested, name + ".", out)


def read_proto(protoc, path):
    """{full name: {member: what it is}} of the messages and enums of a .proto file."""
    with tempfile.TemporaryDirectory() as directory:
        descriptors = os.path.join(directory, "set")
        subprocess.run([protoc, "--proto_path=" + os.path.dirname(path),
                        "--descriptor_set_out=" + descriptors, path], check=True)
        with open(descriptors, "rb") as file:
            data = file.read()
    out = {}
    for file in map(fields, fields(data)[SET_FILE]):
        for message in file.get(FILE_MESSAGE, []):
            read_message(message, "onnx.", out)
        for enum in file.get(FILE_ENUM, []):
            read_enum(enum, "onnx.", out)
    return out


def compare(ours, theirs):
    """Number of members compared, and a line for each difference."""
    n, differences = 0, []
    for name, members in theirs.items():
        if name not in ours:
            if name not in NOT_NEEDED:
                differences.append(f"{name} is missing")
            continue
        numbers = {what[1]: member for member, what in ours[name].items()}
        for member, what in members.items():
            n += 1
            if member not in ours[name]:
                differences.append(f"{name}.{member} is missing; number {what[1]} is "
                                   f"{numbers.get(what[1], 'free')}")
            elif ours[name][member] != what:
                differences.append(f"{name}.{member}: ours {ours[name][member]}, theirs {what}")
        for member, what in ours[name].items():
            clash = [m for m, w in members.items() if w[1] == what[1] and m != member]
            if member not in OUR_OWN and clash:
                differences.append(f"{name}.{member}: number {what[1]} is {clash[0]} of theirs")
    return n, differences


def main():
    protoc, our_path = sys.argv[1:3]
    paths = [path for path in sys.argv[3:] if os.path.exists(path)]
    if not paths:
        print("skipped: no packaged onnx.proto; Debian has it in libonnx-dev and python3-onnx")
        return 77
    ours = read_proto(protoc, our_path)
    failed = False
    for path in paths:
        n, differences = compare(ours, read_proto(protoc, path))
        print(f"{path}: {n} members compared, {len(differences)} differ")
        for line in differences:
            print("  " + line)
        # The first public version has more than this; fewer means that nothing was read.
        failed = failed or n < 100 or bool(differences)
    return 1 if failed else 0


sys.exit(main())
