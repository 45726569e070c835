/* The state of each sequence in the stages, and sampling in the last stage. */
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
  psplit_i_tensor **tensors;     /* [n_slots * n_kept]: each accessed by the thread of one stage */
  _Atomic uint64_t *bytes;       /* [n_slots * n_kept] of these */
  psplit_i_tensor **same;        /* [n_slots * n_same] constants received with the first step */
  _Atomic uint64_t now, at_most; /* sums */
} psplit_i_kept;

/* Initialises `kept`, whose ort, pipe, decoder and sampling are set. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_kept_init(psplit_i_kept *kept, uint32_t n_slots,
                                               psplit_diag *diag);
void psplit_i_kept_fini(psplit_i_kept *kept); /* a zeroed one is fine */

/* At the begin of a sequence (position 0), states are empty: zeros with the declared shape of the
 * stage file, where a dynamic first dimension is 1 and other dynamic dimensions are 0. Constants
 * are stored when received, and reused afterwards. The logits are replaced by the sampled token,
 * int64 [1]. */
psplit_i_keeper psplit_i_kept_keeper(psplit_i_kept *kept);

#endif
