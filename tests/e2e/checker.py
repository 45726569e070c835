#!/usr/bin/python3
"""checker.py FILE: status 0 if onnx.checker takes FILE, 77 with a reason if it cannot judge it.

What the checker alone asks for is given to a copy, which is then checked: an IR version that it knows,
and a shape of inputs and outputs, which runtimes do without where the rank is not known.
"""
import os
import sys

try:
    import onnx
except ImportError:
    print("there is no python3-onnx")
    sys.exit(77)

path = sys.argv[1]
model = onnx.load(path, load_external_data=False)
known = onnx.defs.onnx_opset_version()
newer = ["%s %d" % (each.domain or "ai.onnx", each.version) for each in model.opset_import
         if each.domain in ("", "ai.onnx") and each.version > known]
if newer:
    print("onnx %s knows no operators of %s" % (onnx.__version__, newer[0]))
    sys.exit(77)
edited = model.ir_version > onnx.IR_VERSION
model.ir_version = min(model.ir_version, onnx.IR_VERSION)
for value in [*model.graph.input, *model.graph.output]:
    if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
        value.type.tensor_type.shape.SetInParent()
        edited = True
if edited:
    path += ".checked"
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
try:
    onnx.checker.check_model(path)
finally:
    if edited:
        os.unlink(path)
