/* Graphs that were made here to ONNX files. */
#ifndef PSPLIT_GRADIENT_WRITE_H
#define PSPLIT_GRADIENT_WRITE_H

#include "backward.h"
#include "onnx_fields.h"

/* Appends the living nodes of a graph as fields of a GraphProto. Every living value has a name. */
void psplit_i_put_nodes(const psplit_i_backward *b, psplit_i_text *out);
/* Appends its living new constants, as initializers. */
void psplit_i_put_constants(const psplit_i_backward *b, psplit_i_text *out);
/* The fields of a ModelProto but its graph: opset 18 and what made it. */
void psplit_i_put_model_head(psplit_i_text *out);

#endif
