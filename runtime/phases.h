/* Combines several splits into one pipeline: a stage has a file of each, and the phase of a
 * micro-batch selects the split. So models that process the same sequences, such as the two models
 * of a decoder and its encoder, share stages, links and ranks. */
#ifndef PSPLIT_RUNTIME_PHASES_H
#define PSPLIT_RUNTIME_PHASES_H

#include "pipeline.h"

/* Joins pipes[n] in the order of their phases; the last one says how many stages there are, and
 * what was planned. All outlive *out, whose links have no ends yet. A micro-batch brings the inputs
 * of its own phase alone, and the other tensors of a link are NULL. Errors: UNSUPPORTED (one has
 * more stages than the last, or trains), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pipes_join(const psplit_i_pipe *const *pipes, uint32_t n,
                                                psplit_diag *diag, psplit_i_pipe *out);

#endif
