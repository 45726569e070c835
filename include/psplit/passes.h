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

/* Is told after each pass, those included that ran because a later one needs them. A failure ends
 * the run. */
typedef struct psplit_observer {
  psplit_code (*after_pass)(void *user, psplit_planner *planner, const char *pass,
                            psplit_diag *diag);
  void *user;
} psplit_observer;

/* Reads a file that a pass's option names (passes do no I/O themselves) into *out_text, malloc'd,
 * *out_n bytes. Errors: IO, LIMIT, NOMEM; outputs untouched then. */
typedef psplit_code (*psplit_read_text)(void *user, const char *path, psplit_diag *diag,
                                        char **out_text, size_t *out_n);

/* What becomes of a weight that several nodes use. */
typedef enum psplit_tied_weights {
  PSPLIT_TIED_AUTO,      /* one copy where no stage gets slower by that, else as many as are used */
  PSPLIT_TIED_DUPLICATE, /* each stage that uses it has its own */
  PSPLIT_TIED_TOGETHER   /* its users share a stage */
} psplit_tied_weights;

/* What comes on top of computing forward where a plan is to train; arrays are the caller's and
 * outlive the planner. Transfers are those of `devices`: a gradient that comes back doubles them
 * (psplit_devices_round_trip). */
typedef struct psplit_planner_training {
  const int64_t *node_ns; /* [n_stages][nodes] more, on the stage's device: backward, recomputing */
  /* [values] 1: a stage that makes or receives it keeps it until the micro-batch comes back, which
   * is so for as many micro-batches as stages are from this one to the last (1F1B), and with
   * PSPLIT_FILL_DRAIN for all of a step. */
  const uint8_t *stashed;
  const uint8_t *weight_copies; /* [values] of a weight: how many more of its size are kept */
} psplit_planner_training;

/* Which stage runs on which device. */
typedef enum psplit_device_order {
  /* As is best: of the devices, n_stages in the best order. Where nodes are pinned to stages, or no
   * order is better than another, as with GIVEN. */
  PSPLIT_DEVICE_ORDER_CHOSEN,
  PSPLIT_DEVICE_ORDER_GIVEN /* stage i on device i */
} psplit_device_order;

/* What a link's latency is charged for. */
typedef enum psplit_message_latency {
  PSPLIT_LATENCY_PER_PAIR,  /* all that one stage sends another for a micro-batch, which the runner
                               hands on together: the default */
  PSPLIT_LATENCY_PER_TENSOR /* every tensor that crosses */
} psplit_message_latency;

/* An output and the input that takes it in the next run. */
typedef struct psplit_planner_state {
  const char *output, *input;
} psplit_planner_state;

/* A step of a decoder: so many new tokens of each of `batch` sequences, behind `past` others. */
typedef struct psplit_working_point {
  int64_t past, tokens, batch; /* >= 0, >= 1, >= 1 */
} psplit_working_point;

typedef struct psplit_planner_options {
  size_t struct_size;            /* set by psplit_planner_options_init() */
  uint32_t n_stages;             /* >= 1 */
  const psplit_devices *devices; /* at least n_stages; NULL: n_stages times the preset "cpu" */
  const psplit_dim_value *dims;
  size_t n_dims;
  const psplit_cost_table *const *costs; /* [n_costs], not the roofline; a later one overrides */
  size_t n_costs;
  /* "PATTERN=STAGE": nodes of this name or, where none has it, whose name matches, shell-style */
  const char *const *pins;
  size_t n_pins;
  const char *const *keep_together; /* "PATTERN": matching nodes share a stage */
  size_t n_keep_together;
  psplit_tied_weights tied_weights; /* weights of at least 1 KiB; smaller ones are duplicated */
  /* Nodes that the model itself gives a stage (pipeline_stage of the ONNX multi-device fields) are
   * pinned to it, unless `pins` say otherwise. */
  bool ignore_annotations;
  const char *configuration; /* whose stages count; NULL: the only one that has some */
  /* Micro-batches that wait between two stages besides the one computed: their tensors take memory
   * on both devices. */
  uint32_t queue_depth;
  psplit_objective objective; /* not CALL_LATENCY; FILL_DRAIN to train alone */
  const char *solver;         /* NULL: auto */
  double time_limit_s;        /* of the partitioner; < 0: none */
  bool limit_by_work;         /* the limit counts work, not the clock: see partition.h */
  uint32_t n_threads;         /* 0: as many as OpenMP gives; never changes the result */
  uint64_t seed;
  bool verify_each;                /* check grouping after every pass; always in debug builds */
  const psplit_logger *logger;     /* warnings, notes, progress; may be NULL */
  const psplit_observer *observer; /* may be NULL */
  const char *stop_before, *stop_after; /* a pass of the pipeline, its first; NULL: to the end */
  psplit_read_text read_text; /* for passes with an option that names a file; may be NULL */
  void *read_text_user;
  const psplit_plugins *plugins; /* passes besides the built-in ones; may be NULL */
  bool allow_invalid; /* a model that no runtime loads is planned, with a warning; else INVALID */
  const psplit_planner_training *training; /* NULL: the plan is to compute alone */
  const volatile int *cancel;              /* of psplit_planner_run: see base.h */
  bool certify; /* keep what psplit_planner_certificate needs: the problems that were solved */
  /* The stages will be written with PSPLIT_WEIGHTS_INLINE, which takes runtimes more memory where a
   * stage's weights are over 64 MiB. */
  bool inline_weights;
  psplit_device_order device_order;
  /* State: what a run gives and the next one takes. Besides these pairs, unless no_states, those
   * that are found by name (docs/generating.md). Who reads a state shares a stage with who writes
   * it: always for these pairs, where there is such a split for the others. */
  const psplit_planner_state *states;
  size_t n_states;
  bool no_states;
  /* 0 (default) <= s <= 1: of splits whose bottleneck is at most this part above the best one's,
   * one with fewest transfers that is found, and of these the one with the least bottleneck. For
   * throughput over equal devices and links, without pins or training. The plan says what it gave
   * up. */
  double slack_frac;
  psplit_message_latency message_latency;
  /* Sizes of a decoder's inputs, where `dims` do not give them: found by the inputs' names and by
   * what is state (docs/generating.md). NULL: there are none. With `prefill` the plan is for both
   * kinds of steps: prefill_frac (0 < f < 1) of all steps are that, the others `decode`. Then times
   * and transfers are means over steps, and memory is that of the larger one. */
  const psplit_working_point *decode, *prefill;
  double prefill_frac;
  uint32_t
    n_sequences; /* that hold a state at a time; 0: as many as stages, so that all have work */
  /* Segments: a device may run several parts of the model, which are stages of the plan in their
   * order of execution; n_stages is then a number of devices, at most, in any order. At most so
   * many for each device; 0 or 1: each device has one stage; UINT32_MAX: as many as pay. */
  uint32_t max_segments;
  /* Devices for a stage, which compute a micro-batch each: n_stages is then a number of devices,
   * which are alike, and there are as many stages as pay. 0 or 1: each stage has one. */
  uint32_t max_replicas;
  /* Splits that others propose, which solvers begin with and which the solvers "drlpp" and
   * "drlpp+slice" need (proposer.h; a learned policy is one); NULL: nobody does. Only where each
   * device has one stage. It must outlive the planner. */
  const psplit_proposer *proposer;
  psplit_activity *activity; /* see activity.h: work of the partitioner */
  /* Sizes of inputs, for costs: those of their symbolic dimensions, as in `dims`, and of those
   * that have no name. */
  const psplit_input_size *shapes;
  size_t n_shapes;
  /* Stages receive and send while they compute: a load is the largest of the three, not their sum.
   * For throughput, not for training. */
  bool overlap;
  /* More pins, of any number: a text with one a line, as in `pins`. Empty lines and those that
   * begin with '#' are passed over. Messages call it pins_name. NULL: there are none. */
  const char *pins_text, *pins_name;
  size_t n_pins_text; /* bytes */
  uint32_t
    n_micro_batches; /* of a step, with PSPLIT_FILL_DRAIN: stages keep what all of them stash */
} psplit_planner_options;

/* Defaults: 1 stage, queue depth 2, 10 s of work, seed 1, 8 micro-batches, everything else 0 or
 * NULL. */
PSPLIT_API void psplit_planner_options_defaults(psplit_planner_options *options,
                                                size_t struct_size);
static inline void psplit_planner_options_init(psplit_planner_options *options) {
  psplit_planner_options_defaults(options, sizeof *options);
}

/* The model must outlive the planner; the options' strings, devices and logger too.
 * Errors: USAGE (a dimension or a state that the model does not have, a pin that is not
 * PATTERN=STAGE, a text of pins that is none, a pattern that matches nothing, a working point of
 * what is no decoder, annotations with more stages or of several configurations), UNSUPPORTED
 * (overlap with latency or training, fill-drain with what does not train, has two kinds of steps or
 * is to be certified), INVALID (annotations that break a rule), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_create(const psplit_model *model,
                                                             const psplit_planner_options *options,
                                                             psplit_diag *diag,
                                                             psplit_planner **out_planner);
PSPLIT_API void psplit_planner_destroy(psplit_planner *planner);

/* Runs a pipeline text; NULL runs the default one. Facts that a pass needs and that are not there
 * are established first. A failed pass leaves the planner only to be destroyed.
 * Errors: USAGE (the text, a pass to stop at that is not in it), UNSUPPORTED (segments with what
 * does not go with them), INFEASIBLE (no split), PLUGIN, CANCELLED, INTERNAL (a pass broke
 * convexity; the message names it), and what passes return. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_run(psplit_planner *planner,
                                                          const char *pipeline, psplit_diag *diag);

/* The default pipeline's text. */
PSPLIT_API const char *psplit_default_pipeline(void);

/* Canonical form of a pipeline text, with every option of every pass spelled out, malloc'd.
 * Errors: USAGE, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_pipeline_canonical(const char *pipeline,
                                                                 psplit_diag *diag,
                                                                 char **out_text);

/* Passes and their options as text for --help, malloc'd; NULL when out of memory. */
PSPLIT_API char *psplit_passes_help(void);

/* The plan, once a pipeline with `partition` has run; NULL before. Owned by the planner. */
PSPLIT_API const psplit_plan *psplit_planner_plan(const psplit_planner *planner);

/* The supernodes as a bare problem, JSON of the project's own format
 * (docs/partitioning/problem.md): what `partition` asks the solver first, on options.n_stages
 * devices, with their memory. Costs, live nodes and supernodes must have been found, as they are
 * before `partition`. *out_text (NUL-terminated, the caller's to free()) has *out_n bytes.
 * Errors: USAGE (not found yet), UNSUPPORTED (nothing but constants), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_problem(psplit_planner *planner,
                                                              psplit_diag *diag, char **out_text,
                                                              size_t *out_n);

/* The plan's lower bound for others to check (docs/certificates.md). */
typedef struct psplit_certified {
  char *problem; /* the bare problem that the bound is of, as JSON (psplit-problem) */
  size_t n_problem;
  char *certificate; /* its certificate, for psplit-check-certificate.py */
  size_t n_certificate;
  int64_t bound_ns; /* that it proves; at most the plan's, where that is of this problem */
} psplit_certified;

/* With options.certify, once a pipeline with `partition` has run. *out is the caller's
 * (psplit_certified_fini). Errors: USAGE (no partition has run), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_planner_certificate(const psplit_planner *planner,
                                                                  psplit_diag *diag,
                                                                  psplit_certified *out);
PSPLIT_API void psplit_certified_fini(psplit_certified *certified);

/* Time of every node on a device, ns, as the costs have it: out_ns[nodes of the model], by their
 * position in the file. `device` < n_stages is a position in the options' devices. All 0 before
 * `cost` has run. */
PSPLIT_API void psplit_planner_node_ns(const psplit_planner *planner, uint32_t device,
                                       int64_t *out_ns);

/* The schedule of n_micro_batches through the plan's stages, each busy for its load, forward only
 * (PSPLIT_SCHEDULE_STREAM). Errors: those of psplit_schedule_simulate. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_plan_schedule(const psplit_plan *plan,
                                                            uint32_t n_micro_batches,
                                                            psplit_diag *diag,
                                                            psplit_schedule **out_schedule);

#ifdef __cplusplus
}
#endif
#endif
