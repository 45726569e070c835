/* Strict reader and writer of training.json of a checkpoint; private to runtime/train. */
#ifndef PSPLIT_RUNTIME_TRAIN_CHECKPOINT_JSON_H
#define PSPLIT_RUNTIME_TRAIN_CHECKPOINT_JSON_H

#include "checkpoint.h"

/* The text, with the digest of `weights`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_training_json_write(const psplit_i_checkpoint_state *state,
                                                         const psplit_i_trained_weight *weights,
                                                         uint32_t n_weights,
                                                         const uint64_t *stage_bytes,
                                                         psplit_diag *diag, psplit_i_text *out);

typedef struct psplit_i_training_json {
  psplit_i_checkpoint_state state;
  const psplit_i_trained_weight *weights; /* by name */
  uint32_t n_weights;
  const uint64_t *stage_bytes; /* [state.n_stages] */
} psplit_i_training_json;

/* What it says lives in `arena`; `path` is for messages. Errors: MALFORMED, INVALID, UNSUPPORTED (a
 * later version), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_training_json_parse(const char *path, const char *text,
                                                         size_t n, psplit_i_arena *arena,
                                                         psplit_diag *diag,
                                                         psplit_i_training_json *out);

#endif
