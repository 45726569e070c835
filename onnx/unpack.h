/* Unpacking messages of a model from its skeleton.
 *
 * Messages are kept unpacked (psplit_model.proto) except nodes of the main graph: there may be a
 * million, and the graph index has their names already. They are unpacked when needed. */
#ifndef PSPLIT_ONNX_UNPACK_H
#define PSPLIT_ONNX_UNPACK_H

#include "model.h"

/* Unpacks a message of type `descriptor` into `arena`, which need not be the model's. `cancel` may
 * be NULL. Errors: MALFORMED, CANCELLED, NOMEM. */
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

/* Fills model->nodes from the skeleton, without references to other entities: inputs, outputs and
 * bodies are only counted, and connected by psplit_i_graph_build. Errors: as psplit_i_unpack. */
PSPLIT_MUST_USE psplit_code psplit_i_nodes_read(psplit_model *model, psplit_diag *diag);

/* Iterator over the names of a node's inputs or outputs. */
typedef struct psplit_i_node_names {
  char *const *unpacked; /* in a message: */
  size_t n_unpacked;
  const uint8_t *at, *end; /* in bytes: fields with this number */
  uint32_t field;
} psplit_i_node_names;

/* For a node of the main graph or of a body. */
psplit_i_node_names psplit_i_node_inputs(const psplit_i_graph *graph, uint32_t node);
psplit_i_node_names psplit_i_node_outputs(const psplit_i_graph *graph, uint32_t node);
/* The next name, "" for an omitted one, not NUL-terminated for nodes of the main graph; false after
 * the last. */
bool psplit_i_next_name(psplit_i_node_names *names, const char **out, size_t *out_bytes);

#endif
