/* From logits to a token. */
#ifndef PSPLIT_GENERATE_SAMPLER_H
#define PSPLIT_GENERATE_SAMPLER_H

#include "tensor.h"

typedef struct psplit_i_sampling {
  double temperature; /* these as psplit_generator_options has them */
  uint32_t top_k;
  double top_p;
  uint64_t seed;
} psplit_i_sampling;

/* The token at place `position` of sequence `sequence`, from the last row of `logits` ([...,
 * rows, tokens] of floats). The first of those that are equally likely. O(tokens), with top_p
 * O(tokens log tokens). Errors: UNSUPPORTED (not floats, no row), INVALID (none of them is a
 * number, or one is NaN), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_sample(const psplit_i_tensor *logits,
                                            const psplit_i_sampling *how, uint64_t sequence,
                                            uint64_t position, psplit_diag *diag,
                                            int64_t *out_token);

#endif
