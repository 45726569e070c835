/* Messages of a model from their bytes in its skeleton.
 *
 * A model keeps its messages unpacked (psplit_model.proto), but for the nodes of its main graph:
 * there may be a million, and the graph index has their names anyway. Who needs such a node as a
 * message unpacks it. */
#ifndef PSPLIT_ONNX_UNPACK_H
#define PSPLIT_ONNX_UNPACK_H

#include "model.h"

/* A message of type `descriptor` in `arena`, which need not be the model's. `cancel` may be NULL.
 * Errors: MALFORMED, CANCELLED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_unpack(const ProtobufCMessageDescriptor *descriptor,
                                            const void *bytes, size_t n, psplit_i_arena *arena,
                                            const volatile int *cancel, psplit_diag *diag,
                                            ProtobufCMessage **out);

/* The skeleton's ModelProto without the nodes of its main graph. Errors: as psplit_i_unpack. */
PSPLIT_MUST_USE psplit_code psplit_i_unpack_without_nodes(const psplit_i_skeleton *skeleton,
                                                          psplit_i_arena *arena,
                                                          const volatile int *cancel,
                                                          psplit_diag *diag,
                                                          Onnx__ModelProto **out);

/* model->nodes from the skeleton: what stands on the node itself. Inputs, outputs and bodies are
 * counted, and connected by psplit_i_graph_build. Errors: as psplit_i_unpack. */
PSPLIT_MUST_USE psplit_code psplit_i_nodes_read(psplit_model *model, psplit_diag *diag);

/* Names that a node lists as inputs or outputs, one after the other. */
typedef struct psplit_i_node_names {
  char *const *unpacked; /* of a message: */
  size_t n_unpacked;
  const uint8_t *at, *end; /* of bytes: fields of this number */
  uint32_t field;
} psplit_i_node_names;

/* Of a node of the main graph or of a body. */
psplit_i_node_names psplit_i_node_inputs(const psplit_i_graph *graph, uint32_t node);
psplit_i_node_names psplit_i_node_outputs(const psplit_i_graph *graph, uint32_t node);
/* The next name, "" for an omitted one, without a NUL behind its bytes where the node is one of the
 * main graph; false behind the last. */
bool psplit_i_next_name(psplit_i_node_names *names, const char **out, size_t *out_bytes);

#endif
