/* The state that stages keep of each sequence, and what the last of them makes of logits. */
#ifndef PSPLIT_GENERATE_KEPT_H
#define PSPLIT_GENERATE_KEPT_H

#include "decoder.h"
#include "sampler.h"
#include "source.h"

typedef struct psplit_i_kept {
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  const psplit_i_decoder *decoder;
  psplit_i_sampling sampling;
  uint32_t n_slots;
  psplit_i_tensor **tensors; /* [n_slots * n_kept]: each is touched by the thread of one stage */
  _Atomic uint64_t *bytes;   /* [n_slots * n_kept] of these */
  psplit_i_tensor **same;    /* [n_slots * n_same] what came with the first step */
  _Atomic uint64_t now, at_most; /* sums */
} psplit_i_kept;

/* `kept` with its ort, pipe, decoder and sampling set. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_kept_init(psplit_i_kept *kept, uint32_t n_slots,
                                               psplit_diag *diag);
void psplit_i_kept_fini(psplit_i_kept *kept); /* a zeroed one is fine */

/* Where a sequence begins (position 0), state is empty: zeros of the shape that the stage file
 * declares, where the first dimension is 1 if it is open and all others that are open are 0. What
 * stays the same is kept when it comes, and given where it does not. The logits are replaced by the
 * token that is drawn, int64 [1]. */
psplit_i_keeper psplit_i_kept_keeper(psplit_i_kept *kept);

#endif
