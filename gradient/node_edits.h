/* Nodes of a model that become others before it is differentiated. */
#ifndef PSPLIT_GRADIENT_NODE_EDITS_H
#define PSPLIT_GRADIENT_NODE_EDITS_H

#include "model.h"

typedef PSPLIT_VEC(psplit_i_node_edit) psplit_i_node_edits;

/* "<value>.<what>", or that with a number, which no value of the graph has. NULL: out of memory. */
char *psplit_i_name_beside(const psplit_i_graph *graph, const char *value, const char *what,
                           psplit_i_arena *arena);

/* Appends an edit whose fields are copied to `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_edits_add(psplit_i_node_edits *edits, uint32_t node,
                                               const psplit_i_text *fields, psplit_i_arena *arena,
                                               psplit_diag *diag);
/* Makes them ascend by node. */
void psplit_i_edits_sort(psplit_i_node_edits *edits);

struct Onnx__NodeProto;
/* Appends a node message as a field of the graph. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pack_node(const struct Onnx__NodeProto *node,
                                               psplit_i_text *out, psplit_diag *diag);

#endif
