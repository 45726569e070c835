/* Stages of nodes in a model's multi-device annotations. */
#ifndef PSPLIT_ONNX_PLACEMENT_H
#define PSPLIT_ONNX_PLACEMENT_H

#include "graph.h"

/* Reads NodeProto.device_configurations of the main graph: the pipeline_stage of each node in the
 * configuration `name`, or, if that is NULL, in the only one with stages. out_stage[n_nodes] is
 * PSPLIT_NONE for nodes without one; *out_any (may be NULL): there are others. Checks that the
 * configuration is in the model, that stages are less than its number of devices, and that no node
 * depends on one of a later stage. Errors: INVALID (a violation, with the node's name), USAGE (the
 * model has none called `name`; several have stages and none was named), NOMEM. O(nodes + edges).
 */
PSPLIT_MUST_USE psplit_code psplit_i_placement_read(const psplit_i_graph *graph, const char *name,
                                                    psplit_diag *diag, uint32_t *out_stage,
                                                    bool *out_any);

#endif
