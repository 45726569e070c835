/* Stages that a model's own multi-device annotations give its nodes. */
#ifndef PSPLIT_ONNX_PLACEMENT_H
#define PSPLIT_ONNX_PLACEMENT_H

#include "graph.h"

/* Reads NodeProto.device_configurations of the main graph: the pipeline_stage of each node under
 * the configuration `name`, or, where that is NULL, under the only one that gives stages.
 * out_stage[n_nodes]  PSPLIT_NONE for a node without one; *out_any (may be NULL) tells of others.
 * Checked: the configuration is in the model, stages are below its number of devices, and no node
 * depends on one of a later stage.
 * Errors: INVALID (a rule is broken, with the node's name; no such configuration), USAGE (several
 * configurations give stages and none was named), NOMEM. O(nodes + edges). */
PSPLIT_MUST_USE psplit_code psplit_i_placement_read(const psplit_i_graph *graph, const char *name,
                                                    psplit_diag *diag, uint32_t *out_stage,
                                                    bool *out_any);

#endif
