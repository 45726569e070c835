#!/usr/bin/python3
"""checker.py FILE: status 0 if onnx.checker takes FILE, 77 with a reason if it cannot judge it."""
import sys

try:
    import onnx
except ImportError:
    print("there is no python3-onnx")
    sys.exit(77)

model = onnx.load(sys.argv[1])
if model.ir_version > onnx.IR_VERSION:
    print("IR %d is newer than onnx %s" % (model.ir_version, onnx.__version__))
    sys.exit(77)
for value in [*model.graph.input, *model.graph.output]:
    # The checker wants a shape at the rim of a graph; runtimes do without.
    if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
        print("%s has no known rank, which onnx.checker wants" % value.name)
        sys.exit(77)
onnx.checker.check_model(sys.argv[1])
