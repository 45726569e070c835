/* Learned policies: networks that propose splits of partition problems, and their training.
 * docs/learned.md describes and evaluates them: if an optimum can be proved, they gain nothing. */
#ifndef PSPLIT_POLICY_H
#define PSPLIT_POLICY_H

#include <psplit/partition.h>
#include <psplit/proposer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_policy psplit_policy;

/* A randomly initialised policy. Errors: NOMEM. */
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

/* Equal for all policies. */
PSPLIT_API uint32_t psplit_policy_n_parameters(const psplit_policy *policy);
/* Parameter 0 .. n_parameters - 1, in the order of the tensors of its file. */
PSPLIT_API float psplit_policy_parameter(const psplit_policy *policy, uint32_t index);

/* A proposer that runs the policy `n_attempts` times (>= 1): first the most likely choices, for
 * eight orders of the items, then random samples. The policy must outlive it. *out_proposer is
 * owned by the caller (psplit_policy_proposer_destroy) and not thread-safe. Errors: USAGE (0
 * attempts), NOMEM. An attempt takes O(items (weights + candidates) + pins). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_policy_proposer_create(const psplit_policy *policy, uint32_t n_attempts, psplit_diag *diag,
                              psplit_proposer **out_proposer);
PSPLIT_API void psplit_policy_proposer_destroy(psplit_proposer *proposer);

/* --- schedules --- */

/* A training step, or a batch of inferences, on the stages of a split. Times are per sample; a
 * piece of a micro-batch of b samples takes fixed_ns + b times that. */
typedef struct psplit_policy_batch {
  uint32_t n_stages;          /* 1 .. 1024 */
  uint32_t n_samples;         /* 1 .. 65536 */
  int64_t fixed_ns;           /* >= 0 */
  const int64_t *forward_ns;  /* [n_stages] >= 0 */
  const int64_t *backward_ns; /* [n_stages] NULL: inferences */
  /* [n_stages] time of weight gradients, excluded from backward_ns, if they can be separate pieces;
   * NULL: they cannot. Not for inferences. */
  const int64_t *weights_ns;
  const uint64_t *activation_bytes; /* [n_stages] per sample in flight; NULL: 0 */
  const uint64_t *room_bytes;       /* [n_stages] limit on these; UINT64_MAX, or NULL: none */
} psplit_policy_batch;

typedef struct psplit_policy_choice {
  psplit_schedule_kind kind;
  uint32_t n_micro_batches; /* of n_samples / n_micro_batches samples each */
  int64_t step_ns;          /* as simulated */
  bool fits;                /* false: no choice fits into memory */
} psplit_policy_choice;

/* Chooses a schedule and a number of micro-batches. Candidates: for training 1F1B, fill-drain and,
 * with weights_ns, zero bubble, for inferences the stream; each with 1, 2, 3, 4, 6, 8, 12 .. 512
 * micro-batches that divide the samples evenly, and with one sample per micro-batch up to 512; only
 * those that fit into memory, if any do. *out_choice is the most likely one; *out_best (may be
 * NULL) is the fastest by simulation of all: an exact search in O(stages * samples), as a
 * reference. Errors: USAGE (the batch), LIMIT (times overflow), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_choose(const psplit_policy *policy,
                                                            const psplit_policy_batch *batch,
                                                            psplit_diag *diag,
                                                            psplit_policy_choice *out_choice,
                                                            psplit_policy_choice *out_best);

/* --- learning --- */

typedef enum psplit_policy_reward {
  PSPLIT_REWARD_MODEL,    /* lower bound / load of the slowest stage */
  PSPLIT_REWARD_SCHEDULE, /* the same for a step of `batch` samples, with the chosen schedule */
  PSPLIT_REWARD_MEASURED  /* the same with the time that `measure` returns */
} psplit_policy_reward;

/* Measured time of a split, > 0 ns per micro-batch, for problem 0, 1, .. in the order of
 * psplit_policy_learner_add, rejected ones included; by its items, as returned by a proposer. May
 * be called repeatedly for the same split. Errors: any, which ends the step. */
typedef psplit_code (*psplit_policy_measure)(void *user, uint32_t problem,
                                             const psplit_items *items, const uint32_t *stage,
                                             const uint32_t *type, double *out_ns,
                                             psplit_diag *diag);

typedef struct psplit_policy_learn_options {
  size_t struct_size; /* set by psplit_policy_learn_options_init() */
  uint64_t seed;
  uint32_t warm_steps; /* supervised steps on good splits, by cross-entropy */
  uint32_t steps;      /* after them, reinforcement learning (PPO) */
  uint32_t graphs;     /* of a step */
  uint32_t rollouts;   /* of a graph */
  uint32_t epochs;     /* maximum, over the rollouts of a step */
  double warm_rate, rate,
    last_rate;                  /* learning rates of Adam; `rate` falls linearly to `last_rate` */
  double entropy, last_entropy; /* weight of entropy, likewise */
  double clip;                  /* of probability ratios */
  double kl_stop;               /* limit on the KL divergence of a step, which ends its epochs */
  psplit_policy_reward reward;
  uint32_t batch;          /* samples of the simulated step, each with a problem's times */
  double fixed_cost;       /* fixed cost per piece, relative to the bound */
  uint32_t schedule_steps; /* after all others, on schedules only: other weights are frozen */
  double solve_seconds;    /* effort for the optimum of each graph */
  const volatile int *cancel;
  psplit_policy_measure measure; /* for PSPLIT_REWARD_MEASURED */
  void *measure_user;
} psplit_policy_learn_options;

/* The defaults: 600 supervised steps at a rate of 2e-3, 400 of PPO at 1e-3 falling to 1e-4, 200 on
 * schedules; 8 graphs with 12 rollouts per step, 3 epochs; entropy 0.03 falling to 0.003, clip 0.2,
 * kl_stop 0.02; batch 64, fixed_cost 0.05, a second per optimum, seed 1. */
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
  /* Geometric mean of value / bound of the samples, for schedules relative to the best one; 0 while
   * warm. */
  double ratio;
  double valid; /* fraction of rollouts that satisfy memory limits and pins */
  uint32_t epochs;
  double micro_batches; /* mean over the sampled schedules; 0: none */
} psplit_policy_step;

typedef struct psplit_policy_learner psplit_policy_learner;

/* Trains `policy`, which must outlive the learner. Errors: USAGE, UNSUPPORTED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_policy_learner_create(psplit_policy *policy, const psplit_policy_learn_options *options,
                             psplit_diag *diag, psplit_policy_learner **out_learner);
PSPLIT_API void psplit_policy_learner_destroy(psplit_policy_learner *learner);

/* Adds a graph, which is copied, and solves it to determine value and bound. Errors: those of
 * psplit_partition_solve; LIMIT (more than 4,096 items). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_add(psplit_policy_learner *learner,
                                                                 const psplit_problem *problem,
                                                                 psplit_diag *diag);
/* Performs the next step; *out_done: there are no more. The same seed, graphs and options give the
 * same policy. Errors: USAGE (no graphs), INVALID (a gradient is not finite), CANCELLED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_step(psplit_policy_learner *learner,
                                                                  psplit_diag *diag,
                                                                  psplit_policy_step *out_step,
                                                                  bool *out_done);
/* Geometric mean of value / bound of the most likely choices on all graphs, and the fraction of
 * them that is valid. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_evaluate(
  psplit_policy_learner *learner, psplit_diag *diag, double *out_ratio, double *out_valid);

/* Trains on a given split of problem 0, 1, .. (numbered as in psplit_policy_measure), by
 * cross-entropy, until the most likely choices reproduce it for each of three orders of the items,
 * or for max_steps (>= 1); *out_steps: number of steps. stage[n_nodes] is by nodes of the problem,
 * equal within an item: for example a measured split. Does nothing for a rejected problem.
 * Afterwards, the policy can be written but not trained further. Errors: USAGE (another number of
 * nodes, an item in two stages), INVALID (a gradient is not finite), CANCELLED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_imitate(
  psplit_policy_learner *learner, uint32_t problem, const uint32_t *stage, uint32_t n_nodes,
  uint32_t max_steps, psplit_diag *diag, uint32_t *out_steps);

/* Saves and restores weights and moments after the last step, to continue training. The number of
 * parameters must match. Errors: IO, MALFORMED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_save(
  const psplit_policy_learner *learner, const char *path, psplit_diag *diag);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_policy_learner_load(psplit_policy_learner *learner,
                                                                  const char *path,
                                                                  psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
