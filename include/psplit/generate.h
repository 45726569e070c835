/* Decoders that generate: tokens go into a pipeline and come out of it, one a step, and each
 * stage keeps the state of every sequence, such as its part of the KV cache: libpsplit-run.
 *
 * A step of a sequence is a micro-batch of the pipeline; the steps of several sequences are
 * under way at once, so that all stages are at work. What a sequence gets does not depend on the
 * others. */
#ifndef PSPLIT_GENERATE_H
#define PSPLIT_GENERATE_H

#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_generator psplit_generator;

/* An output of the model that is an input of its next step. */
typedef struct psplit_state_pair {
  const char *output, *input;
} psplit_state_pair;

typedef struct psplit_generator_options {
  size_t struct_size;        /* set by psplit_generator_options_init() */
  uint32_t n_in_flight;      /* sequences at work at once; 0: one more than there are stages */
  uint32_t max_waiting;      /* prompts that wait for their turn; at least 1 */
  uint64_t context;          /* most tokens of a sequence with its prompt; 0: any */
  const int64_t *end_tokens; /* a sequence ends with any of these, which is its last token */
  size_t n_end_tokens;
  /* The next token is the most likely one where temperature is 0; else it is drawn from the
   * softmax of logits / temperature over the top_k most likely (0: all), of those over the fewest
   * whose probabilities sum up to top_p (1: all). It depends on the seed, the sequence's number and
   * the token's place alone. */
  double temperature;
  uint32_t top_k;
  double top_p;
  uint64_t seed;
  /* Of the model; NULL: found by name and type (docs/generating.md). */
  const char *ids, *logits;
  const psplit_state_pair *states; /* besides those that are found by name */
  size_t n_states;
  /* Splits that outlive the generator, with as many stages as the decoder's at most; NULL: none.
   * `encoder` runs once for each sequence, and what it gives are inputs of the decoder. `prompt` is
   * a model for the first step alone, whose stages write the state that the decoder's stages of the
   * same numbers read. */
  psplit_pipeline *encoder, *prompt;
  /* The stages have ended, whatever ended them, and prompts are not taken any more: for who waits
   * for the next one. By a thread of the generator, once; may be NULL. */
  void (*ended)(void *ended_user);
  void *ended_user;
  bool prompt_inputs; /* what `feed` gives no input for, prompts do: psplit_prompt.inputs */
} psplit_generator_options;

/* The most likely token; 64 wait, else 0 or NULL. */
PSPLIT_API void psplit_generator_options_defaults(psplit_generator_options *options,
                                                  size_t struct_size);
static inline void psplit_generator_options_init(psplit_generator_options *options) {
  psplit_generator_options_defaults(options, sizeof *options);
}

/* Opens all stages and returns when they can take prompts. Of `run` are used: sessions, depth,
 * pin, one_at_a_time, cancel, give_up, the timeouts, and `feed` for inputs of the models that are
 * neither tokens nor follow from them, which are read once for each sequence: {} is its number.
 * `own` may be NULL. `ort` and `pipeline` outlive *out_generator. Errors: those of
 * psplit_pipeline_run, USAGE and UNSUPPORTED where the model is no such decoder: no input that
 * takes tokens, no logits, a state that one stage reads and another writes, also of the model for
 * the first step. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_generator_start(
  const psplit_onnxruntime *ort, psplit_pipeline *pipeline, const psplit_run_options *run,
  const psplit_generator_options *own, psplit_diag *diag, psplit_generator **out_generator);

typedef enum psplit_generation_end {
  PSPLIT_GENERATION_END_TOKEN, /* one of end_tokens */
  PSPLIT_GENERATION_LENGTH,    /* max_new_tokens */
  PSPLIT_GENERATION_CONTEXT,   /* options->context */
  PSPLIT_GENERATION_FAILED,    /* a step of it: `code` and `message` say why */
  PSPLIT_GENERATION_STOPPED    /* the generator ended before it did; they say why */
} psplit_generation_end;

/* What became of a prompt; lent for the call. */
typedef struct psplit_generation {
  uint64_t id; /* 0, 1, ... in the order of prompts: the sequence's number */
  psplit_generation_end end;
  psplit_code code; /* OK, or why it failed */
  const char *message;
  uint64_t n_prompt, n_tokens;
  const int64_t *tokens; /* [n_tokens] that were made */
  int64_t waited_ns;     /* until it was admitted */
  int64_t first_ns;      /* from then to its first token; 0: none came */
  int64_t total_ns;      /* and to its last */
} psplit_generation;

typedef struct psplit_prompt {
  size_t struct_size;    /* set by psplit_prompt_init() */
  const int64_t *tokens; /* [n_tokens], at least one, none negative; copied */
  uint64_t n_tokens;
  uint64_t max_new_tokens; /* at least 1 */
  /* Both by a thread of the generator, one call at a time; either may be NULL. `index` counts the
   * tokens that were made. */
  void (*token)(void *user, uint64_t id, uint64_t index, int64_t token);
  void (*end)(void *user, const psplit_generation *generation);
  void *user;
  /* Files for inputs of the models that are neither tokens nor follow from them, and for masks,
   * positions and types of all tokens that there will be, in place of what the generator's `feed`
   * says; copied, and read when the sequence is admitted. One that cannot be read fails the
   * sequence. */
  const psplit_feed_file *inputs; /* [n_inputs], each with its input's name */
  size_t n_inputs;
} psplit_prompt;

static inline void psplit_prompt_init(psplit_prompt *prompt) {
  memset(prompt, 0, sizeof *prompt);
  prompt->struct_size = sizeof *prompt;
}

/* Hands in a prompt, from any thread; waits for room. *out_id may be NULL, and is set before
 * anything is told of it. Errors: USAGE (no tokens, more than the context, a file for no such
 * input), IO (the generator has ended), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_generator_submit(psplit_generator *generator,
                                                               const psplit_prompt *prompt,
                                                               psplit_diag *diag, uint64_t *out_id);

typedef struct psplit_generator_stats {
  size_t struct_size; /* set by the caller: sizeof */
  uint64_t n_prompts, n_ended, n_failed;
  uint64_t n_prompt_tokens, n_tokens; /* read, made */
  uint64_t n_steps;                   /* of the decoder */
  uint64_t n_states;                  /* pairs that stages keep */
  uint64_t state_bytes;               /* of all sequences, in this process, at most so far */
  double seconds;                     /* from the first step to the last */
  uint64_t n_encoded;                 /* runs of the encoder */
} psplit_generator_stats;
/* So far; fills out->struct_size bytes. Any thread may. */
PSPLIT_API void psplit_generator_get_stats(psplit_generator *generator,
                                           psplit_generator_stats *out);

/* Takes no more prompts, and returns when all that were taken have ended and the stages, too. Once.
 * Errors: what stopped the stages. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_generator_finish(psplit_generator *generator,
                                                               psplit_diag *diag);
/* After that: how busy stages were, where a micro-batch is a step; NULL where nothing is known.
 * Owned by the generator. */
PSPLIT_API const psplit_run *psplit_generator_get_run(const psplit_generator *generator);

/* One that was not finished is stopped: its sequences fail. NULL is fine. */
PSPLIT_API void psplit_generator_destroy(psplit_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
