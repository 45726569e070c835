/* generate: decoders that make tokens, on the stages of a pipeline.
 *
 *   decoder.c     what each input and output of the model is for
 *   kept.c        the state that stages keep of each sequence
 *   sampler.c     from logits to a token
 *   sequences.c   which sequence takes its next step when
 *   generator.c   what psplit/generate.h declares
 *   generator_mpi.c   the same over MPI
 *
 * A decoder, here: a model whose inputs are tokens, what follows from how many there are, state,
 * and what stays the same for a sequence. */
#ifndef PSPLIT_GENERATE_DECODER_H
#define PSPLIT_GENERATE_DECODER_H

#include <psplit/generate.h>

#include "pipeline.h"

typedef enum psplit_i_role {
  PSPLIT_I_ROLE_OTHER,     /* stays the same: given for each sequence */
  PSPLIT_I_ROLE_IDS,       /* [1, new] tokens */
  PSPLIT_I_ROLE_MASK,      /* [1, past + new] ones; zeros behind them where it has a fixed size */
  PSPLIT_I_ROLE_POSITIONS, /* [1, new] or [new]: past, past + 1, ... */
  PSPLIT_I_ROLE_LAST,      /* all its elements past + new - 1 */
  PSPLIT_I_ROLE_TOTAL,     /* past + new */
  PSPLIT_I_ROLE_HAS_PAST,  /* whether past > 0 */
  PSPLIT_I_ROLE_STATE      /* kept by the stage that reads it */
} psplit_i_role;

/* A state: the output port that writes it and the input port that reads it, of one stage. */
typedef struct psplit_i_kept_port {
  uint32_t stage, output, input;
} psplit_i_kept_port;

typedef struct psplit_i_decoder {
  psplit_i_role *roles; /* [n_needed] of the model's inputs */
  uint32_t logits;      /* output of the model */
  uint32_t logits_stage, logits_port;
  uint32_t n_kept;
  psplit_i_kept_port *kept; /* by stage */
} psplit_i_decoder;

/* Finds out what is what, and has the pipe keep the states and give nothing but the logits. Errors:
 * USAGE, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_decoder_make(psplit_i_pipe *pipe,
                                                  const psplit_generator_options *options,
                                                  psplit_diag *diag, psplit_i_decoder *out);

#endif
