/* Inputs of a step that are derived from its tokens. */
#ifndef PSPLIT_GENERATE_STEP_INPUT_H
#define PSPLIT_GENERATE_STEP_INPUT_H

#include "decoder.h"
#include "tensor.h"

/* The step that takes tokens n_past to n_tokens of a sequence. */
typedef struct psplit_i_step_tokens {
  const int64_t *tokens; /* [n_tokens] */
  uint64_t n_tokens, n_past;
} psplit_i_step_tokens;

/* An input of the pipeline. */
typedef struct psplit_i_step_input {
  const char *name;
  psplit_i_role role;
  const psplit_i_manifest_value *declared;
} psplit_i_step_input;

/* Whether a file may provide an input of this role, for all tokens of a sequence: its last axis is
 * tokens; for a mask with rows, also the one before. */
bool psplit_i_step_input_may_be_given(psplit_i_role role);

/* A tensor for an input whose role is none of OTHER, STATE and ENCODED. If `given` is not NULL, its
 * values at the step's tokens. Errors: UNSUPPORTED (the input has a fixed size that differs from
 * the number of tokens, or a type that does not hold them), USAGE (`given` is too short), NOMEM,
 * PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_step_input_make(const psplit_i_ort *ort,
                                                     const psplit_i_step_input *input,
                                                     const psplit_i_tensor *given,
                                                     const psplit_i_step_tokens *step,
                                                     psplit_diag *diag, psplit_i_tensor **out);

#endif
