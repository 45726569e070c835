/* generate: decoders that make tokens, on the stages of a pipeline.
 *
 *   decoder.c     what each input and output of the models is for
 *   kept.c        the state that stages keep of each sequence
 *   sampler.c     from logits to a token
 *   sequences.c, sequences_flow.c, sequence_lists.c   which sequence takes its next step when
 *   step_input.c  what a step gives inputs that follow from the tokens
 *   generator.c   what psplit/generate.h declares
 *   generator_mpi.c   the same over MPI
 *
 * A decoder, here: a model whose inputs are tokens, what follows from how many there are, state,
 * and what stays the same for a sequence. Where the first step, which reads the prompt, has a model
 * of its own, and where there is an encoder, these are phases of one pipeline (phases.h). */
#ifndef PSPLIT_GENERATE_DECODER_H
#define PSPLIT_GENERATE_DECODER_H

#include <psplit/generate.h>

#include "pipeline.h"

typedef enum psplit_i_role {
  PSPLIT_I_ROLE_OTHER, /* stays the same: given for each sequence */
  PSPLIT_I_ROLE_IDS,   /* [1, new] tokens */
  PSPLIT_I_ROLE_TYPES, /* [1, new] zeros */
  /* [1, past + new] ones; zeros behind them where it has a fixed size. Of rank 3 and more [1, ...,
   * new, past + new], what a token may look at: ones, or zeros that are added and -65504. */
  PSPLIT_I_ROLE_MASK,
  PSPLIT_I_ROLE_POSITIONS, /* [1, new] or [new]: past, past + 1, ...; [3, 1, new] so thrice */
  PSPLIT_I_ROLE_LAST,      /* all its elements past + new - 1 */
  PSPLIT_I_ROLE_TOTAL,     /* past + new */
  PSPLIT_I_ROLE_HAS_PAST,  /* whether past > 0 */
  PSPLIT_I_ROLE_STATE,     /* kept by the stage that reads it */
  PSPLIT_I_ROLE_ENCODED    /* stays the same: an output of the encoder */
} psplit_i_role;

/* The phases of the pipe. */
typedef struct psplit_i_decoder_phases {
  uint32_t encode; /* once for each sequence; PSPLIT_NONE: there is no encoder */
  uint32_t prompt; /* the first step; may be the same as ... */
  uint32_t token;  /* ... that of all later ones */
} psplit_i_decoder_phases;

/* A state: the input port that reads it and the output ports that write it, of one stage. */
typedef struct psplit_i_kept_port {
  uint32_t stage, input;
  uint32_t first_output; /* in the first step */
  uint32_t output;       /* in later ones; PSPLIT_NONE: it stays as it is */
} psplit_i_kept_port;

typedef struct psplit_i_input_port {
  uint32_t stage, input;
} psplit_i_input_port;

/* Where a phase gives logits. */
typedef struct psplit_i_logits {
  uint32_t output; /* of the pipe */
  uint32_t stage, port;
} psplit_i_logits;

typedef struct psplit_i_decoder {
  psplit_i_decoder_phases phases;
  psplit_i_role *roles;          /* [n_needed] of the pipe's inputs */
  uint32_t *encoded;             /* [n_needed] of those that are ENCODED: the output of the pipe */
  psplit_i_logits prompt, token; /* the same where the phases are */
  uint32_t n_kept;
  psplit_i_kept_port *kept; /* by stage */
  /* Inputs of a first step for a state that there is none of yet, where no stage keeps it. */
  uint32_t n_empty;
  psplit_i_input_port *empty;
  /* Inputs that stay the same: they come with the first step of a phase. */
  uint32_t n_same;
  psplit_i_input_port *same;
} psplit_i_decoder;

/* The axis of a state's input that is the batch: that of the size by which the first one of the
 * tokens' input is called, else the first. */
uint32_t psplit_i_decoder_batch_axis(const psplit_i_pipe *pipe, const psplit_i_decoder *decoder,
                                     uint32_t input);

/* Whether a mask of that name is of all tokens before. One of a window is not: its size is not in
 * the model's inputs, so that the mask has to be given. */
bool psplit_i_decoder_knows_mask(const char *name);

/* Finds out what is what, and has the pipe keep the states and give nothing but logits and what the
 * encoder gives. Errors: USAGE, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_decoder_make(psplit_i_pipe *pipe,
                                                  const psplit_i_decoder_phases *phases,
                                                  const psplit_generator_options *options,
                                                  psplit_diag *diag, psplit_i_decoder *out);

/* The phase that input `input` of the pipe is of. */
uint32_t psplit_i_decoder_phase_of(const psplit_i_pipe *pipe, uint32_t input);

#endif
