/* What a step gives the inputs that follow from the tokens. */
#ifndef PSPLIT_GENERATE_STEP_INPUT_H
#define PSPLIT_GENERATE_STEP_INPUT_H

#include "decoder.h"
#include "tensor.h"

/* The step that takes tokens n_past to n_tokens of a sequence. */
typedef struct psplit_i_step_tokens {
  const int64_t *tokens; /* [n_tokens] */
  uint64_t n_tokens, n_past;
} psplit_i_step_tokens;

/* Whether a file may give an input of such a role, for all tokens that a sequence will have: its
 * last axis stands for tokens; of a mask with rows the one before, too. */
bool psplit_i_step_input_may_be_given(psplit_i_role role);

/* A tensor for an input of the pipe whose role is none of OTHER, STATE and ENCODED: of `given`,
 * where that is not NULL, what stands at the step's tokens. Errors: UNSUPPORTED (of a fixed size
 * that so many tokens do not have, a type that does not hold them), USAGE (too little is given),
 * NOMEM, PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_step_input_make(const psplit_i_ort *ort,
                                                     const psplit_i_pipe *pipe,
                                                     const psplit_i_decoder *decoder,
                                                     uint32_t input, const psplit_i_tensor *given,
                                                     const psplit_i_step_tokens *step,
                                                     psplit_diag *diag, psplit_i_tensor **out);

#endif
