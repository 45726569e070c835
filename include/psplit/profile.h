/* Profiling the nodes of a model, and autotuning: part of libpsplit-run. */
#ifndef PSPLIT_PROFILE_H
#define PSPLIT_PROFILE_H

#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Profiles the whole model file `path`, with options->sessions[0]: n_warmup + n_micro_batches runs
 * under ONNX Runtime's profiler and as many without. Returns the costs of its nodes as a costs file
 * (docs/costs/measured.md), malloc'd JSON. Inputs not in options->feed are random; its `give` and
 * all pipeline options are ignored. `read`: how to open the model to find the nodes; NULL:
 * defaults. The optimised model, weights included, is temporarily stored under TMPDIR. Errors:
 * those of opening and running the model; USAGE (an unknown input); CANCELLED. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_profile_model(const psplit_onnxruntime *ort,
                                                            const char *path,
                                                            const psplit_read_options *read,
                                                            const psplit_run_options *options,
                                                            psplit_diag *diag, char **out_text);

/* Profiles the stages of a split, one at a time, on the tensors that they pass on: a costs file for
 * the original model. It includes effects of the cut on ONNX Runtime's fusion. Of replicas only the
 * first one of each stage runs, and any failure ends it, whatever options->on_error.
 * options->stream and outputs are not supported. Errors: those of opening and running the stages;
 * USAGE; IO; CANCELLED. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_profile_stages(const psplit_onnxruntime *ort,
                                                             const psplit_pipeline *pipeline,
                                                             const psplit_run_options *options,
                                                             psplit_diag *diag, char **out_text);

/* Nodes of a model that a provider runs. */
typedef struct psplit_probe {
  char *text;       /* JSON for psplit_devices_restrict, malloc'd */
  uint32_t n_nodes; /* nodes of the main graph that are neither constant nor dead; of these ... */
  uint32_t n_left;  /* ... number that the provider leaves to the CPU ... */
  uint32_t n_host;  /* ... and number of others there, which only compute sizes */
  char *left;       /* the former by operator, most frequent first: "Clip 28, Gather 2"; malloc'd */
} psplit_probe;
PSPLIT_API void psplit_probe_fini(psplit_probe *probe);

/* Determines which nodes of `model`, opened from `path`, the provider of `session` runs in ONNX
 * Runtime 1.24 or newer: opens a session with that provider and level, with dynamic sizes as in
 * stages, without running it. A node that the optimiser merged into another one before partitioning
 * is treated like that one. If node names are missing or ambiguous, or Ifs are inlined, a copy of
 * the model, weights included, is temporarily stored under TMPDIR. Of `planner`, sizes are used
 * (dims, decode), to detect nodes that compute sizes. Errors: USAGE (no provider), UNSUPPORTED (an
 * older ONNX Runtime; a missing or failing provider), those of opening the model and of
 * planning. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_probe_provider(const psplit_onnxruntime *ort,
                                                             const char *path,
                                                             const psplit_model *model,
                                                             const psplit_session *session,
                                                             const psplit_planner_options *planner,
                                                             psplit_diag *diag, psplit_probe *out);

/* A round of psplit_autotune; valid during the callback. */
typedef struct psplit_autotune_round {
  uint32_t round;        /* from 1 */
  double imbalance_frac; /* slowest stage / mean - 1 */
  int64_t predicted_ns;  /* of the slowest stage */
  uint32_t n_stages;
  const int64_t *measured_ns; /* [n_stages] of a micro-batch */
  /* The result of psplit_autotune if it ended here: costs of the best round so far. Valid until the
   * next round. */
  const psplit_cost_table *best;
} psplit_autotune_round;

typedef struct psplit_autotune_options {
  size_t struct_size;
  uint32_t n_rounds; /* maximum number, at least 1 */
  /* Options of the plan, read_text and plugins included; `costs` are the starting point; without
   * any, the whole model is profiled first. */
  const psplit_planner_options *planner;
  const char *pipeline;            /* as text; NULL: the default one */
  const psplit_read_options *read; /* how `model` was opened; NULL: defaults */
  const psplit_emit_options *emit; /* how stages are written; `accept` is not called */
  const psplit_session *session;   /* of all stages and of the profile; NULL: defaults */
  const psplit_feed_options *feed; /* files and shapes of inputs, else random; NULL: none */
  uint64_t max_text_bytes;         /* of each round's pipeline.json; 0: 64 MiB */
  const char *beside;              /* stages are written to a new directory next to this path */
  /* Called after each round, from the calling thread; may be NULL. */
  void (*after_round)(void *user, const psplit_autotune_round *round);
  void *after_round_user;
  const volatile int *cancel; /* see base.h */
  void (*give_up)(void *user,
                  const psplit_diag *diag); /* see run.h; called after the stages are removed */
  void *give_up_user;
  bool keep_best; /* if cancelled after the first round, return the best one, and OK */
} psplit_autotune_options;

/* The defaults: 1 round, everything else 0, NULL or false. */
PSPLIT_API void psplit_autotune_options_defaults(psplit_autotune_options *options,
                                                 size_t struct_size);
static inline void psplit_autotune_options_init(psplit_autotune_options *options) {
  psplit_autotune_options_defaults(options, sizeof *options);
}

/* Splits `model`, opened from `path`, runs the stages concurrently in this process, one thread
 * each, takes node costs from profiles of these stages, and splits again, until the slowest stage
 * is within 5 % of the mean, the cut no longer changes, or after n_rounds. *out_costs, owned by the
 * caller, holds costs of the round with the fastest slowest stage: appended to the planner's own,
 * they reproduce its split. All written files are removed, also after a failure or cancellation.
 * Errors: those of planning, writing and running; CANCELLED. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_autotune(const psplit_onnxruntime *ort,
                                                       const char *path, const psplit_model *model,
                                                       const psplit_autotune_options *options,
                                                       psplit_diag *diag,
                                                       psplit_cost_table **out_costs);

#ifdef __cplusplus
}
#endif
#endif
