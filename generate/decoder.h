/* generate: token generation with decoders, on the stages of a pipeline.
 *
 *   decoder.c     roles of inputs and outputs of the models
 *   kept.c        the state of each sequence in the stages
 *   sampler.c     sampling a token from logits
 *   sequences.c, sequences_flow.c, sequence_lists.c   scheduling of the steps of sequences
 *   step_input.c  inputs of a step that are derived from its tokens
 *   generator.c   the API of psplit/generate.h
 *   generator_mpi.c   the same over MPI
 *
 * A decoder is a model whose inputs are tokens, values derived from their number, states, and
 * constants of a sequence. A separate model for the first step, which reads the prompt, and an
 * encoder are phases of the same pipeline (phases.h). */
#ifndef PSPLIT_GENERATE_DECODER_H
#define PSPLIT_GENERATE_DECODER_H

#include <psplit/generate.h>

#include "pipeline.h"

typedef enum psplit_i_role {
  PSPLIT_I_ROLE_OTHER, /* constant, provided per sequence */
  PSPLIT_I_ROLE_IDS,   /* [1, new] tokens */
  PSPLIT_I_ROLE_TYPES, /* [1, new] zeros */
  /* [1, past + new] ones, padded with zeros to a fixed size. Of rank 3 and more, [1, ..., new, past
   * + new]: which tokens a token attends to, as ones, or as 0 and -65504 to be added. */
  PSPLIT_I_ROLE_MASK,
  PSPLIT_I_ROLE_POSITIONS, /* [1, new] or [new]: past, past + 1, ...; [3, 1, new]: three times */
  PSPLIT_I_ROLE_LAST,      /* all elements are past + new - 1 */
  PSPLIT_I_ROLE_TOTAL,     /* past + new */
  PSPLIT_I_ROLE_HAS_PAST,  /* whether past > 0 */
  PSPLIT_I_ROLE_STATE,     /* kept by the stage that reads it */
  PSPLIT_I_ROLE_ENCODED    /* constant: an output of the encoder */
} psplit_i_role;

/* Phases of the pipeline. */
typedef struct psplit_i_decoder_phases {
  uint32_t encode; /* once per sequence; PSPLIT_NONE: no encoder */
  uint32_t prompt; /* the first step; may be the same as ... */
  uint32_t token;  /* ... that of all later ones */
} psplit_i_decoder_phases;

/* A state: the input port that reads it and the output ports that write it, of one stage. */
typedef struct psplit_i_kept_port {
  uint32_t stage, input;
  uint32_t first_output; /* in the first step */
  uint32_t output;       /* in later ones; PSPLIT_NONE: unchanged */
} psplit_i_kept_port;

typedef struct psplit_i_input_port {
  uint32_t stage, input;
} psplit_i_input_port;

/* The logits of a phase. */
typedef struct psplit_i_logits {
  uint32_t output; /* of the pipeline */
  uint32_t stage, port;
} psplit_i_logits;

typedef struct psplit_i_decoder {
  psplit_i_decoder_phases phases;
  psplit_i_role *roles;          /* [n_needed] of the pipeline's inputs */
  uint32_t *encoded;             /* [n_needed] for ENCODED inputs: the output of the pipeline */
  psplit_i_logits prompt, token; /* equal if the phases are */
  uint32_t n_kept;
  psplit_i_kept_port *kept; /* by stage */
  /* Inputs of a first step for states that do not exist yet, where no stage keeps them. */
  uint32_t n_empty;
  psplit_i_input_port *empty;
  /* Constant inputs: sent with the first step of a phase. */
  uint32_t n_same;
  psplit_i_input_port *same;
} psplit_i_decoder;

/* The batch axis of a state's input: the one with the same symbol as the first axis of the tokens'
 * input, otherwise the first. */
uint32_t psplit_i_decoder_batch_axis(const psplit_i_pipe *pipe, const psplit_i_decoder *decoder,
                                     uint32_t input);

/* Whether a mask of this name covers all previous tokens. Masks of a window do not: their size is
 * not in the model's inputs, so they must be provided. */
bool psplit_i_decoder_knows_mask(const char *name);

/* Determines the roles of inputs and outputs, and configures the pipeline to keep the states and
 * return only logits and the encoder's outputs. Errors: USAGE, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_decoder_make(psplit_i_pipe *pipe,
                                                  const psplit_i_decoder_phases *phases,
                                                  const psplit_generator_options *options,
                                                  psplit_diag *diag, psplit_i_decoder *out);

/* The phase of input `input` of the pipeline. */
uint32_t psplit_i_decoder_phase_of(const psplit_i_pipe *pipe, uint32_t input);

#endif
