/* Running passes over a model: from operators to a plan.
 *
 * A planner is what passes work on: an open model, what has been found out about it (facts), its
 * grouping into supernodes and, at the end, its plan. Passes group and place nodes; none rewrites
 * one. The order of passes lives in a pipeline text such as
 *   infer-shapes,cost,mark,attach,fuse,coarsen:max_nodes=5000,partition,replicate
 * with options after a colon, several joined by ':' (`partition:solver=exact:gap=0.01`). */
#ifndef PSPLIT_PASSES_H
#define PSPLIT_PASSES_H

#include <psplit/activity.h>
#include <psplit/base.h>
#include <psplit/cost_table.h>
#include <psplit/devices.h>
#include <psplit/model.h>
#include <psplit/partition.h>
#include <psplit/plan.h>
#include <psplit/plugins.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_planner psplit_planner;

/* Called after each pass, including those that were run because a later one needs them. A failure
 * ends the run. */
typedef struct psplit_observer {
  psplit_code (*after_pass)(void *user, psplit_planner *planner, const char *pass,
                            psplit_diag *diag);
  void *user;
} psplit_observer;

/* Reads a file named by an option of a pass (passes do no I/O themselves) into *out_text, malloc'd,
 * *out_n bytes. Errors: IO, LIMIT, NOMEM; outputs untouched then. */
typedef psplit_code (*psplit_read_text)(void *user, const char *path, psplit_diag *diag,
                                        char **out_text, size_t *out_n);

/* Placement of weights with several users. */
typedef enum psplit_tied_weights {
  PSPLIT_TIED_AUTO,      /* one copy if that costs no time, else one per stage that uses it */
  PSPLIT_TIED_DUPLICATE, /* each stage that uses it has its own */
  PSPLIT_TIED_TOGETHER   /* its users share a stage */
} psplit_tied_weights;

/* Additional costs of training; arrays are the caller's and must outlive the planner. Transfers are
 * those of `devices`: returning gradients double them (psplit_devices_round_trip). */
typedef struct psplit_planner_training {
  const int64_t
    *node_ns; /* [n_stages][nodes] additional time on the stage's device: backward, recomputing */
  /* [values] 1: stages that produce or receive it keep it until the backward pass of the
   * micro-batch: with 1F1B for as many micro-batches as there are stages from this one to the last,
   * with PSPLIT_FILL_DRAIN for all of a step. */
  const uint8_t *stashed;
  const uint8_t *weight_copies; /* [values] of weights: number of additional tensors of that size */
} psplit_planner_training;

/* Assignment of stages to devices. */
typedef enum psplit_device_order {
  /* Chooses n_stages of the devices and their order. As GIVEN if nodes are pinned to stages or all
   * orders are equivalent. */
  PSPLIT_DEVICE_ORDER_CHOSEN,
  PSPLIT_DEVICE_ORDER_GIVEN /* stage i on device i */
} psplit_device_order;

/* Unit that a link's latency is charged for. */
typedef enum psplit_message_latency {
  /* The default: one message per micro-batch and pair of stages for all tensors, as runs send. */
  PSPLIT_LATENCY_PER_PAIR,
  PSPLIT_LATENCY_PER_TENSOR /* every transferred tensor */
} psplit_message_latency;

/* An output and the input that receives it in the next run. */
typedef struct psplit_planner_state {
  const char *output, *input;
} psplit_planner_state;

/* A step of a decoder: `tokens` new tokens for each of `batch` sequences, after `past` others. */
typedef struct psplit_working_point {
  int64_t past, tokens, batch; /* >= 0, >= 1, >= 1 */
} psplit_working_point;

typedef struct psplit_planner_options {
  size_t struct_size;            /* set by psplit_planner_options_init() */
  uint32_t n_stages;             /* >= 1 */
  const psplit_devices *devices; /* at least n_stages; NULL: n_stages times the preset "cpu" */
  const psplit_dim_value *dims;
  size_t n_dims;
  const psplit_cost_table *const
    *costs; /* [n_costs] override the roofline; later ones override earlier ones */
  size_t n_costs;
  /* "PATTERN=STAGE": the nodes with this name or, if there are none, those whose name matches the
   * shell pattern. A node without a name goes by its first output. */
  const char *const *pins;
  size_t n_pins;
  const char *const *keep_together; /* "PATTERN": matching nodes share a stage */
  size_t n_keep_together;
  psplit_tied_weights tied_weights; /* weights of at least 1 KiB; smaller ones are duplicated */
  /* Unless this is set, nodes with a stage in the model (pipeline_stage of the ONNX multi-device
   * fields) are pinned to it, with lower priority than `pins`. */
  bool ignore_annotations;
  const char
    *configuration; /* the configuration to read stages from; NULL: the only one with stages */
  /* Capacity of the queues between stages, in micro-batches: their tensors occupy memory on both
   * devices. */
  uint32_t queue_depth;
  psplit_objective objective; /* not CALL_LATENCY; FILL_DRAIN only for training */
  const char *solver;         /* NULL: auto */
  /* For all problems that the partitioner solves in a pipeline, together; < 0: none. */
  double time_limit_s;
  /* The limit applies to counted work (see partition.h); a single problem then gets at most two
   * fifths of it. */
  bool limit_by_work;
  uint32_t n_threads; /* 0: OpenMP's default; does not affect the result */
  uint64_t seed;
  bool verify_each;                /* check grouping after every pass; always in debug builds */
  const psplit_logger *logger;     /* warnings, notes, progress; may be NULL */
  const psplit_observer *observer; /* may be NULL */
  const char *stop_before,
    *stop_after;              /* name of a pass, at its first occurrence; NULL: run to the end */
  psplit_read_text read_text; /* for passes with an option that names a file; may be NULL */
  void *read_text_user;
  const psplit_plugins *plugins; /* additional passes; may be NULL */
  bool allow_invalid;            /* plan invalid models with a warning; otherwise INVALID */
  const psplit_planner_training *training; /* NULL: inference */
  const volatile int *cancel;              /* of psplit_planner_run: see base.h */
  bool certify; /* keep the solved problems for psplit_planner_certificate */
  /* The stages will be written with PSPLIT_WEIGHTS_INLINE, which needs more memory at run time if a
   * stage's weights exceed 64 MiB. */
  bool inline_weights;
  psplit_device_order device_order;
  /* State: outputs that are inputs of the next run. In addition to these pairs, unless no_states,
   * pairs are found by name (docs/generating.md). Reader and writer of a state share a stage:
   * always for these pairs, and for the others if such a split exists. */
  const psplit_planner_state *states;
  size_t n_states;
  bool no_states;
  /* In 0..1, default 0: among splits whose bottleneck exceeds the best one's by at most this
   * fraction, choose one with the fewest transfers found, then the least bottleneck. For throughput
   * over identical devices and links, without pins or training. The plan reports the sacrificed
   * bottleneck. */
  double slack_frac;
  psplit_message_latency message_latency;
  /* Working point of a decoder, which determines sizes of inputs that `dims` does not: found by the
   * inputs' names and the states (docs/generating.md). NULL: none. With `prefill`, the plan is for
   * both kinds of steps: a fraction prefill_frac (0 < f < 1) of the steps is of this kind, the
   * others are `decode`. Times and transfers are then means over steps, and memory is the
   * maximum. */
  const psplit_working_point *decode, *prefill;
  double prefill_frac;
  uint32_t n_sequences; /* concurrent sequences, each with its state; 0: one per stage */
  /* Segments: a device may run several parts of the model, which are stages of the plan in order of
   * execution; n_stages is then a maximum number of devices, in any order. Maximum number of
   * segments per device; 0 or 1: one stage per device; UINT32_MAX: no limit. */
  uint32_t max_segments;
  /* Maximum number of replicas of a stage, which process alternate micro-batches; n_stages is then
   * a number of identical devices, and the number of stages is chosen. 0 or 1: no replicas. */
  uint32_t max_replicas;
  /* External proposals of splits, as starting points of solvers, required by the solvers "drlpp"
   * and "drlpp+slice" (proposer.h; a learned policy is one); NULL: none. Only for one stage per
   * device. Must outlive the planner. */
  const psplit_proposer *proposer;
  psplit_activity *activity; /* see activity.h: work of the partitioner */
  /* Sizes of inputs, for costs: values of their symbolic dimensions, as in `dims`, and of unnamed
   * ones. */
  const psplit_input_size *shapes;
  size_t n_shapes;
  /* Communication overlaps with computation: a load is the largest of compute, receive and send
   * times, not their sum. For throughput, not for training. */
  bool overlap;
  /* Additional pins as text, one per line, as in `pins`. Empty lines and lines starting with '#'
   * are ignored. pins_name is used in messages. NULL: none. */
  const char *pins_text, *pins_name;
  size_t n_pins_text; /* bytes */
  /* In a step, with PSPLIT_FILL_DRAIN: stages hold the stash of all of them. */
  uint32_t n_micro_batches;
} psplit_planner_options;

/* Defaults: 1 stage, queue depth 2, 25 s of work, seed 1, 8 micro-batches, everything else 0 or
 * NULL. */
PSPLIT_API void psplit_planner_options_defaults(psplit_planner_options *options,
                                                size_t struct_size);
static inline void psplit_planner_options_init(psplit_planner_options *options) {
  psplit_planner_options_defaults(options, sizeof *options);
}

/* The model must outlive the planner, and so must the options' strings, devices and logger. Errors:
 * USAGE (a dimension, a state or a configuration that the model does not have, a pin that is not
 * PATTERN=STAGE, an invalid text of pins, a pattern without a match, a working point for a model
 * that is not a decoder, annotations with more stages or of several configurations), UNSUPPORTED
 * (overlap with latency or training; fill-drain without training, with two kinds of steps or a
 * certificate), INVALID (annotations that violate a rule), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_create(const psplit_model *model,
                                                             const psplit_planner_options *options,
                                                             psplit_diag *diag,
                                                             psplit_planner **out_planner);
PSPLIT_API void psplit_planner_destroy(psplit_planner *planner);

/* Runs a pipeline given as text; NULL: the default one. Missing facts that a pass needs are
 * computed first. After a failure, the planner can only be destroyed. Errors: USAGE (the text,
 * stop_before or stop_after not in it), UNSUPPORTED (options that segments do not support),
 * INFEASIBLE (no split), PLUGIN, CANCELLED, INTERNAL (a pass violated convexity; the message names
 * it), and those of passes. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_run(psplit_planner *planner,
                                                          const char *pipeline, psplit_diag *diag);

/* The default pipeline's text. */
PSPLIT_API const char *psplit_default_pipeline(void);

/* Canonical form of a pipeline text, with all options of all passes, malloc'd. Errors: USAGE,
 * NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_pipeline_canonical(const char *pipeline,
                                                                 psplit_diag *diag,
                                                                 char **out_text);

/* Passes and their options as text for --help, malloc'd; NULL when out of memory. */
PSPLIT_API char *psplit_passes_help(void);

/* The plan, after a pipeline with `partition` has run; NULL before. Owned by the planner. */
PSPLIT_API const psplit_plan *psplit_planner_plan(const psplit_planner *planner);

/* The supernodes as a bare problem, JSON in the project's own format
 * (docs/partitioning/problem.md): the first problem that `partition` passes to the solver, on
 * options.n_stages devices with their memory. Requires costs, live nodes and supernodes, as before
 * `partition`. *out_text (NUL-terminated, to be freed by the caller) has *out_n bytes. Errors:
 * USAGE (these are missing), UNSUPPORTED (only constants), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_problem(psplit_planner *planner,
                                                              psplit_diag *diag, char **out_text,
                                                              size_t *out_n);

/* The plan's lower bound with a checkable proof (docs/certificates.md). */
typedef struct psplit_certified {
  char *problem; /* the bare problem that the bound is of, as JSON (psplit-problem) */
  size_t n_problem;
  char *certificate; /* its certificate, for psplit-check-certificate.py */
  size_t n_certificate;
  int64_t bound_ns; /* the proved bound; at most the plan's, if that is for this problem */
} psplit_certified;

/* Requires options.certify and a pipeline with `partition`. *out is owned by the caller
 * (psplit_certified_fini). Errors: USAGE (no partition has run), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_certificate(const psplit_planner *planner,
                                                                  psplit_diag *diag,
                                                                  psplit_certified *out);
PSPLIT_API void psplit_certified_fini(psplit_certified *certified);

/* Time of every node on a device, ns: out_ns[nodes of the model], by position in the file. `device`
 * < n_stages is an index into the options' devices. All 0 before `cost` has run. */
PSPLIT_API void psplit_planner_node_ns(const psplit_planner *planner, uint32_t device,
                                       int64_t *out_ns);

/* The schedule of n_micro_batches through the plan's stages, each busy for its load; forward only
 * (PSPLIT_SCHEDULE_STREAM). Errors: those of psplit_schedule_simulate. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_plan_schedule(const psplit_plan *plan,
                                                            uint32_t n_micro_batches,
                                                            psplit_diag *diag,
                                                            psplit_schedule **out_schedule);

#ifdef __cplusplus
}
#endif
#endif
