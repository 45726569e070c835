/* Measuring what the nodes of a model cost, and correcting costs by runs: part of libpsplit-run. */
#ifndef PSPLIT_PROFILE_H
#define PSPLIT_PROFILE_H

#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the model file `path` whole, at the level and with the threads of options->sessions[0],
 * n_warmup + n_micro_batches times under ONNX Runtime's profiler and as often without, and gives
 * what its nodes cost as a costs file (docs/costs/measured.md), malloc'd JSON. Inputs that
 * options->feed does not give are random; its `give` is not used, nor is any option of pipelines.
 * `read` says how the model is opened to find the nodes; NULL: defaults. The optimised model,
 * weights included, is in a directory under TMPDIR meanwhile. Errors: those of opening and running
 * the model; USAGE (an input that it does not have); CANCELLED. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_profile_model(const psplit_onnxruntime *ort,
                                                            const char *path,
                                                            const psplit_read_options *read,
                                                            const psplit_run_options *options,
                                                            psplit_diag *diag, char **out_text);

/* Likewise of the stages of a split, one at a time, on what they hand each other: a costs file of
 * the model that was split. What a cut lets ONNX Runtime fuse, or keeps it from, is in it as it
 * ran. options->stream, n_sessions other than 0, 1 and that of the stages, and outputs are not for
 * it. Errors: those of opening and running the stages; USAGE; IO; CANCELLED. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_profile_stages(const psplit_onnxruntime *ort,
                                                             const psplit_pipeline *pipeline,
                                                             const psplit_run_options *options,
                                                             psplit_diag *diag, char **out_text);

/* What a provider takes of a model. */
typedef struct psplit_probe {
  char *text;       /* JSON for psplit_devices_restrict, malloc'd */
  uint32_t n_nodes; /* of the main graph that are no constants and reach an output; of these ... */
  uint32_t n_left;  /* ... the provider leaves so many to the CPU ... */
  uint32_t n_host;  /* ... and so many more, which only compute sizes */
  char *left;       /* the former by operator, most first: "Clip 28, Gather 2"; malloc'd */
} psplit_probe;
PSPLIT_API void psplit_probe_fini(psplit_probe *probe);

/* Asks ONNX Runtime, 1.24 or newer, which nodes of `model`, opened from `path`, the provider of
 * `session` takes: opens it in a session of that provider at the level of `session`, with all sizes
 * as open as stages have them, and runs nothing. Of a node that ONNX Runtime's optimiser merged
 * into another one before it asked the provider, that one tells. Where names of nodes are missing
 * or not distinct, or Ifs are inlined, a copy of the model, weights included, is in a directory
 * under TMPDIR meanwhile. Of `planner` sizes count (dims, decode), by which nodes that compute
 * sizes are known. Errors: USAGE (no provider), UNSUPPORTED (an older ONNX Runtime; a provider that
 * is not there or does not start), those of opening the model and of planning. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_probe_provider(const psplit_onnxruntime *ort,
                                                             const char *path,
                                                             const psplit_model *model,
                                                             const psplit_session *session,
                                                             const psplit_planner_options *planner,
                                                             psplit_diag *diag, psplit_probe *out);

/* A round of psplit_autotune; lent. */
typedef struct psplit_autotune_round {
  uint32_t round;        /* from 1 */
  double imbalance_frac; /* the slowest stage over the mean, less 1 */
  int64_t predicted_ns;  /* of the slowest stage */
  uint32_t n_stages;
  const int64_t *measured_ns; /* [n_stages] of a micro-batch */
  /* What psplit_autotune would give if it ended here: costs of the best round so far. Lent until
   * the next round is told. */
  const psplit_cost_table *best;
} psplit_autotune_round;

typedef struct psplit_autotune_options {
  size_t struct_size;
  uint32_t n_rounds; /* at most so many, at least 1 */
  /* The plan: read_text and plugins included; `costs` are where it begins, without any the whole
   * model is profiled first. */
  const psplit_planner_options *planner;
  const char *pipeline;            /* text of passes; NULL: the default one */
  const psplit_read_options *read; /* how `model` was opened; NULL: defaults */
  const psplit_emit_options *emit; /* how stages are written; `accept` is not called */
  const psplit_session *session;   /* of all stages and of the profile; NULL: defaults */
  const psplit_feed_options *feed; /* files and shapes of inputs, else random; NULL: none */
  uint64_t max_text_bytes;         /* of each round's pipeline.json; 0: 64 MiB */
  const char *beside;              /* stages are written in a new directory beside this path */
  /* Told after each round, from the calling thread; may be NULL. */
  void (*after_round)(void *user, const psplit_autotune_round *round);
  void *after_round_user;
  const volatile int *cancel; /* see base.h */
  void (*give_up)(void *user,
                  const psplit_diag *diag); /* likewise; the stages are removed before */
  void *give_up_user;
  bool keep_best; /* cancelled behind its first round, it ends with the best one, and OK */
} psplit_autotune_options;

/* 1 round, else 0, NULL or false. */
PSPLIT_API void psplit_autotune_options_defaults(psplit_autotune_options *options,
                                                 size_t struct_size);
static inline void psplit_autotune_options_init(psplit_autotune_options *options) {
  psplit_autotune_options_defaults(options, sizeof *options);
}

/* Splits `model`, opened from `path`, runs the stages at once in this process with a thread each,
 * takes from profiles of these stages what their nodes cost, and splits again, until the slowest
 * stage is within 5 % of the mean, the cut does not change any more, or n_rounds have passed.
 * *out_costs, the caller's, holds costs of the round whose slowest stage was fastest: behind the
 * planner's own they give its split. Everything that was written is removed, also after a failure
 * or a cancellation. Errors: those of planning, writing and running; CANCELLED. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_autotune(const psplit_onnxruntime *ort,
                                                       const char *path, const psplit_model *model,
                                                       const psplit_autotune_options *options,
                                                       psplit_diag *diag,
                                                       psplit_cost_table **out_costs);

#ifdef __cplusplus
}
#endif
#endif
