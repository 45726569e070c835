/* Policies: networks that propose splits of partition problems, and learn to. docs/learned.md says
 * what they are and what they are worth: where an optimum can be proved, nothing. */
#ifndef PSPLIT_POLICY_H
#define PSPLIT_POLICY_H

#include <psplit/partition.h>
#include <psplit/proposer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_policy psplit_policy;

/* A policy that has learned nothing. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_create(uint64_t seed, psplit_diag *diag,
                                                            psplit_policy **out_policy);
PSPLIT_API void psplit_policy_destroy(psplit_policy *policy);

/* A policy's file is an ONNX model of the encoder and one decision (docs/learned.md), whose
 * initializers are the weights. Errors of reading: those of psplit_model_open; MALFORMED (no
 * policy). Of writing: those of psplit_file_write. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_read(const char *path, psplit_diag *diag,
                                                          psplit_policy **out_policy);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_write(const psplit_policy *policy,
                                                           const char *path, psplit_diag *diag);

/* The same for all policies. */
PSPLIT_API uint32_t psplit_policy_n_parameters(const psplit_policy *policy);
/* Parameter 0 .. n_parameters - 1, in the order of the tensors of its file. */
PSPLIT_API float psplit_policy_parameter(const psplit_policy *policy, uint32_t index);

/* A proposer that asks the policy `n_attempts` times (>= 1): the likeliest choices first, over
 * eight orders of the items, then draws. The policy must live as long. *out_proposer is the
 * caller's (psplit_policy_proposer_destroy), for one thread at a time. Errors: USAGE (0 attempts),
 * NOMEM. An attempt takes O(items (weights + candidates) + pins). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_policy_proposer_create(const psplit_policy *policy, uint32_t n_attempts, psplit_diag *diag,
                              psplit_proposer **out_proposer);
PSPLIT_API void psplit_policy_proposer_destroy(psplit_proposer *proposer);

/* --- schedules --- */

/* A step of training, or a number of inferences, through the stages of a split. Times are those of
 * one sample; a piece of a micro-batch of b samples takes fixed_ns + b times that. */
typedef struct psplit_policy_batch {
  uint32_t n_stages;          /* 1 .. 1024 */
  uint32_t n_samples;         /* 1 .. 65536 */
  int64_t fixed_ns;           /* >= 0 */
  const int64_t *forward_ns;  /* [n_stages] >= 0 */
  const int64_t *backward_ns; /* [n_stages] NULL: inferences */
  /* [n_stages] Gradients of weights, which backward_ns does not hold then, where they can be pieces
   * of their own; NULL: they cannot. Not for inferences. */
  const int64_t *weights_ns;
  const uint64_t *activation_bytes; /* [n_stages] of a sample in flight; NULL: 0 */
  const uint64_t *room_bytes; /* [n_stages] for them; UINT64_MAX: no limit; NULL: none has one */
} psplit_policy_batch;

typedef struct psplit_policy_choice {
  psplit_schedule_kind kind;
  uint32_t n_micro_batches; /* of n_samples / n_micro_batches samples each */
  int64_t step_ns;          /* as simulated */
  bool fits;                /* false: no choice is within memory */
} psplit_policy_choice;

/* What a policy chooses among: for training 1F1B, fill-drain and, with weights_ns, zero bubble, for
 * inferences the stream, each in 1, 2, 3, 4, 6, 8, 12 .. 512 micro-batches that divide the samples
 * evenly, and in as many as samples up to 512; of these what fits into memory, if something does.
 * *out_choice is the likeliest, *out_best (may be NULL) the one that takes least when each is
 * simulated: that is a search of O(stages * samples) which is exact, and what the choice is to be
 * held against. Errors: USAGE (the batch), LIMIT (times overflow), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_choose(const psplit_policy *policy,
                                                            const psplit_policy_batch *batch,
                                                            psplit_diag *diag,
                                                            psplit_policy_choice *out_choice,
                                                            psplit_policy_choice *out_best);

/* --- learning --- */

typedef enum psplit_policy_reward {
  PSPLIT_REWARD_MODEL,    /* the bound on the slowest stage over what it takes */
  PSPLIT_REWARD_SCHEDULE, /* the same of a step of `batch` samples, in the schedule that it chose */
  PSPLIT_REWARD_MEASURED  /* the same of what `measure` says */
} psplit_policy_reward;

/* How long a split takes when it is run, > 0 ns a micro-batch: of problem 0, 1, .. in the order in
 * which they were given to psplit_policy_learner_add, those that it refused included; by its items,
 * as a proposer returns it. Asked again and again, also for the same split. Errors: any, which ends
 * the step. */
typedef psplit_code (*psplit_policy_measure)(void *user, uint32_t problem,
                                             const psplit_items *items, const uint32_t *stage,
                                             const uint32_t *type, double *out_ns,
                                             psplit_diag *diag);

typedef struct psplit_policy_learn_options {
  size_t struct_size; /* set by psplit_policy_learn_options_init() */
  uint64_t seed;
  uint32_t warm_steps;               /* on splits that are known to be good, by cross-entropy */
  uint32_t steps;                    /* behind them, by reinforcement (PPO) */
  uint32_t graphs;                   /* of a step */
  uint32_t rollouts;                 /* of a graph */
  uint32_t epochs;                   /* over the rollouts of a step, at most */
  double warm_rate, rate, last_rate; /* of Adam; from `rate` to `last_rate` linearly */
  double entropy, last_entropy;      /* weight of entropy, likewise */
  double clip;                       /* of ratios of chances */
  double kl_stop;                    /* no more epochs of a step beyond it */
  psplit_policy_reward reward;
  uint32_t batch;    /* samples of the simulated step, each of which takes a problem's times */
  double fixed_cost; /* of each piece of it, however few samples it has; times the bound */
  uint32_t schedule_steps; /* behind all others, on schedules alone: other weights stay */
  double solve_seconds;    /* work for each graph's own optimum */
  const volatile int *cancel;
  psplit_policy_measure measure; /* for PSPLIT_REWARD_MEASURED */
  void *measure_user;
} psplit_policy_learn_options;

/* 600 steps by example at a rate of 2e-3, 400 by trial at 1e-3 falling to 1e-4, 200 on schedules;
 * 8 graphs of 12 rollouts in a step, gone over 3 times; entropy 0.03 falling to 0.003, clip 0.2,
 * kl_stop 0.02; batch 64, fixed_cost 0.05, a second of work for a graph's optimum, seed 1. */
PSPLIT_API void psplit_policy_learn_options_defaults(psplit_policy_learn_options *options,
                                                     size_t struct_size);
static inline void psplit_policy_learn_options_init(psplit_policy_learn_options *options) {
  psplit_policy_learn_options_defaults(options, sizeof *options);
}

/* One step of learning, for logs. */
typedef struct psplit_policy_step {
  uint32_t step; /* 1 .. warm_steps + steps + schedule_steps */
  bool warm;
  double loss, entropy, kl; /* means over decisions; kl 0 while warm */
  /* Geometric mean of value over bound of what was drawn, of schedules over the best one; 0 while
   * warm. */
  double ratio;
  double valid; /* share of rollouts within memory and pins */
  uint32_t epochs;
  double micro_batches; /* mean over the schedules that were drawn; 0: none was */
} psplit_policy_step;

typedef struct psplit_policy_learner psplit_policy_learner;

/* Learns into `policy`, which must live as long. Errors: USAGE, UNSUPPORTED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_policy_learner_create(psplit_policy *policy, const psplit_policy_learn_options *options,
                             psplit_diag *diag, psplit_policy_learner **out_learner);
PSPLIT_API void psplit_policy_learner_destroy(psplit_policy_learner *learner);

/* Adds a graph, which is copied; it is solved at once, so that value and bound are known. Errors:
 * those of psplit_partition_solve; LIMIT (more than 4,096 items). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_add(psplit_policy_learner *learner,
                                                                 const psplit_problem *problem,
                                                                 psplit_diag *diag);
/* The next step; *out_done once there are no more. The same seed, graphs and options give the same
 * policy. Errors: USAGE (no graphs), INVALID (a gradient is not finite), CANCELLED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_step(psplit_policy_learner *learner,
                                                                  psplit_diag *diag,
                                                                  psplit_policy_step *out_step,
                                                                  bool *out_done);
/* The geometric mean of value over bound of the likeliest choices on all graphs, and the share of
 * them that is valid. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_evaluate(
  psplit_policy_learner *learner, psplit_diag *diag, double *out_ratio, double *out_valid);

/* Steps on a split of problem 0, 1, .. (as of psplit_policy_measure), by cross-entropy, until the
 * likeliest choices are that split over each of three orders of the items, or max_steps (>= 1) are
 * done; *out_steps of them. stage[n_nodes] by nodes of the problem, those of an item alike: for a
 * split that was measured. Nothing is done for a problem that was refused. What it leaves is for
 * psplit_policy_write, not to go on from. Errors: USAGE (another number of nodes, an item in two
 * stages), INVALID (a gradient is not finite), CANCELLED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_imitate(
  psplit_policy_learner *learner, uint32_t problem, const uint32_t *stage, uint32_t n_nodes,
  uint32_t max_steps, psplit_diag *diag, uint32_t *out_steps);

/* Weights and moments after the last step, to go on from: the file's place is `path`. What is
 * loaded must be of the same number of parameters. Errors: IO, MALFORMED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_save(
  const psplit_policy_learner *learner, const char *path, psplit_diag *diag);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_load(psplit_policy_learner *learner,
                                                                  const char *path,
                                                                  psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
