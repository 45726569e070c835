/* Token generation with decoders, part of libpsplit-run: tokens enter a pipeline, which produces
 * one per step, and each stage keeps the state of every sequence, such as its part of the KV cache.
 *
 * A step of a sequence is a micro-batch of the pipeline; steps of several sequences are in flight
 * at once, so that all stages are busy. The result of a sequence does not depend on the others. */
#ifndef PSPLIT_GENERATE_H
#define PSPLIT_GENERATE_H

#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_generator psplit_generator;

/* An output of a step and the input of the next step that receives it. */
typedef struct psplit_state_pair {
  const char *output, *input;
} psplit_state_pair;

typedef struct psplit_generator_options {
  size_t struct_size;        /* set by psplit_generator_options_init() */
  uint32_t n_in_flight;      /* concurrent sequences; 0: one more than there are stages */
  uint32_t max_waiting;      /* capacity of the queue of prompts; at least 1 */
  uint64_t context;          /* maximum length of a sequence, prompt included; 0: unlimited */
  const int64_t *end_tokens; /* any of these ends a sequence, as its last token */
  size_t n_end_tokens;
  /* Sampling. Temperature 0: the most likely token. Otherwise the token is drawn from
   * softmax(logits / temperature), restricted to the top_k most likely (0: all) and then to the
   * fewest whose probabilities sum to top_p (1: all). It depends only on the seed, the number of
   * the sequence and the position of the token. */
  double temperature;
  uint32_t top_k;
  double top_p;
  uint64_t seed;
  /* Inputs and outputs of the model; NULL: found by name and type (docs/generating.md). */
  const char *ids, *logits;
  const psplit_state_pair *states; /* in addition to those found by name */
  size_t n_states;
  /* Further splits, which must outlive the generator and have no more stages than the decoder;
   * NULL: none. `encoder` runs once per sequence, and its outputs are inputs of the decoder.
   * `prompt` is a model for the first step only, whose stages write the state that the decoder's
   * stages of the same index read. */
  psplit_pipeline *encoder, *prompt;
  /* Called once, by a thread of the generator, when the stages have ended for any reason and no
   * more prompts are accepted. May be NULL. */
  void (*ended)(void *ended_user);
  void *ended_user;
  bool prompt_inputs; /* inputs without a `feed` come with each prompt: psplit_prompt.inputs */
} psplit_generator_options;

/* The defaults: greedy decoding, a queue of 64; everything else 0 or NULL. */
PSPLIT_API void psplit_generator_options_defaults(psplit_generator_options *options,
                                                  size_t struct_size);
static inline void psplit_generator_options_init(psplit_generator_options *options) {
  psplit_generator_options_defaults(options, sizeof *options);
}

/* Opens all stages and returns when they accept prompts. Of `run`, these are used: sessions, depth,
 * pin, one_at_a_time, cancel, give_up, the timeouts, and `feed` for inputs that are neither tokens
 * nor derived from them; these are read once per sequence, whose number replaces {}. `own` may be
 * NULL. `ort` and `pipeline` must outlive *out_generator. Errors: those of psplit_pipeline_run;
 * USAGE and UNSUPPORTED if the model is not a suitable decoder: no input for tokens, no logits, or
 * a state that one stage reads and another writes (also of the model for the first step). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_generator_start(
  const psplit_onnxruntime *ort, psplit_pipeline *pipeline, const psplit_run_options *run,
  const psplit_generator_options *own, psplit_diag *diag, psplit_generator **out_generator);

typedef enum psplit_generation_end {
  PSPLIT_GENERATION_END_TOKEN, /* one of end_tokens */
  PSPLIT_GENERATION_LENGTH,    /* max_new_tokens */
  PSPLIT_GENERATION_CONTEXT,   /* options->context */
  PSPLIT_GENERATION_FAILED,    /* a step failed: see `code` and `message` */
  PSPLIT_GENERATION_STOPPED    /* the generator ended first: likewise */
} psplit_generation_end;

/* Result of a prompt; valid during the callback. */
typedef struct psplit_generation {
  uint64_t id; /* 0, 1, ... in the order of prompts: the sequence's number */
  psplit_generation_end end;
  psplit_code code; /* OK, or why it failed */
  const char *message;
  uint64_t n_prompt, n_tokens;
  const int64_t *tokens; /* [n_tokens] generated */
  int64_t waited_ns;     /* until it was admitted */
  int64_t first_ns;      /* from then to its first token; 0: none */
  int64_t total_ns;      /* and to its last token */
} psplit_generation;

typedef struct psplit_prompt {
  size_t struct_size;    /* set by psplit_prompt_init() */
  const int64_t *tokens; /* [n_tokens], at least one, none negative; copied */
  uint64_t n_tokens;
  uint64_t max_new_tokens; /* at least 1 */
  /* Callbacks, made by a thread of the generator, one at a time; either may be NULL. `index` counts
   * the generated tokens. */
  void (*token)(void *user, uint64_t id, uint64_t index, int64_t token);
  void (*end)(void *user, const psplit_generation *generation);
  void *user;
  /* Files for inputs that are neither tokens nor derived from them, and for masks, positions and
   * types of all tokens of the sequence; they override the generator's `feed`. Copied, and read
   * when the sequence is admitted; a file that cannot be read fails the sequence. */
  const psplit_feed_file *inputs; /* [n_inputs], each with its input's name */
  size_t n_inputs;
} psplit_prompt;

static inline void psplit_prompt_init(psplit_prompt *prompt) {
  memset(prompt, 0, sizeof *prompt);
  prompt->struct_size = sizeof *prompt;
}

/* Submits a prompt, from any thread; blocks while the queue is full. *out_id (may be NULL) is set
 * before any callback of the prompt. Errors: USAGE (no tokens, more than the context, a file for an
 * unknown input), IO (the generator has ended), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_generator_submit(psplit_generator *generator,
                                                               const psplit_prompt *prompt,
                                                               psplit_diag *diag, uint64_t *out_id);

typedef struct psplit_generator_stats {
  size_t struct_size; /* set by the caller: sizeof */
  uint64_t n_prompts, n_ended, n_failed;
  uint64_t n_prompt_tokens, n_tokens; /* of prompts; generated */
  uint64_t n_steps;                   /* of the decoder */
  uint64_t n_states;                  /* pairs that stages keep */
  uint64_t state_bytes;               /* peak over time, of all sequences in this process */
  double seconds;                     /* from the first step to the last */
  uint64_t n_encoded;                 /* runs of the encoder */
} psplit_generator_stats;
/* Statistics so far; fills out->struct_size bytes. Thread-safe. */
PSPLIT_API void psplit_generator_get_stats(psplit_generator *generator,
                                           psplit_generator_stats *out);

/* Accepts no more prompts, and returns when all accepted ones and the stages have ended. To be
 * called once. Errors: the failure that stopped the stages. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_generator_finish(psplit_generator *generator,
                                                               psplit_diag *diag);
/* After that: utilisation of the stages, with a step as a micro-batch; NULL if unknown. Owned by
 * the generator. */
PSPLIT_API const psplit_run *psplit_generator_get_run(const psplit_generator *generator);

/* Stops a generator that was not finished: its sequences fail. NULL is fine. */
PSPLIT_API void psplit_generator_destroy(psplit_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
