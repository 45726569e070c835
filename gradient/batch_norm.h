/* Batch normalisation of a model as it is to be trained, and what an export for inference lacks. */
#ifndef PSPLIT_GRADIENT_BATCH_NORM_H
#define PSPLIT_GRADIENT_BATCH_NORM_H

#include <psplit/gradient.h>

#include "node_edits.h"

/* Nodes of the model's graph that compute through the statistics of a batch where they would not,
 * or the other way round, appended to *out; bytes in `arena`. Errors: UNSUPPORTED (an opset whose
 * nodes cannot say so, running statistics that something reads), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_batch_norm_edits(const psplit_model *model,
                                                      psplit_batch_norm how, psplit_i_arena *arena,
                                                      psplit_diag *diag, psplit_i_node_edits *out);

/* A running mean or variance that a node reads and gives the next value of. */
typedef struct psplit_i_running {
  uint32_t value, next; /* what nothing else reads: an initializer, or a constant that is movable
                           (moved_constants.h); an output of the node */
} psplit_i_running;

/* Those of node n, which trains, into out[2]; how many. */
uint32_t psplit_i_batch_norm_running(const psplit_i_graph *graph, uint32_t n,
                                     psplit_i_running out[2]);

/* Says where the model looks as if it were exported for inference. */
void psplit_i_say_inference_export(const psplit_i_graph *graph, psplit_batch_norm how,
                                   const psplit_logger *logger);

#endif
