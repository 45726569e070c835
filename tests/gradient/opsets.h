/* How model texts begin that need an opset, or operators of ONNX Runtime's own. */
#ifndef PSPLIT_TESTS_OPSETS_H
#define PSPLIT_TESTS_OPSETS_H

#define OPSET(n) "<ir_version: 8, opset_import: [\"\": " #n "]>"
#define FUSED "<ir_version: 8, opset_import: [\"\": 18, \"com.microsoft\": 1]>"

#endif
