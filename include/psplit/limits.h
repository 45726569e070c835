/* Upper bounds on the gain of pipelining: for one step with any schedule, and for training with a
 * class of losses and any method of a class. docs/limits.md has statements and proofs. */
#ifndef PSPLIT_LIMITS_H
#define PSPLIT_LIMITS_H

#include <psplit/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a step ---------------------------------------------------------------------------------- */

typedef struct psplit_step_limit {
  int64_t step_ns; /* no schedule ends a step sooner */
  /* The device whose work, or round trips, determine it; NONE: the latency of one micro-batch. */
  uint32_t device;
  int64_t work_ns;       /* total work of a step: its time on a single device of the same kind */
  double speed_up;       /* upper bound over that single device: work_ns / step_ns */
  double speed_up_limit; /* upper bound for any number of micro-batches */
  double bubble_frac;    /* lower bound on the idle fraction of the devices' time */
  /* With fewer micro-batches, no schedule reaches 90 % of speed_up_limit; 0: more than 2^32. */
  uint32_t micro_batches_90;
} psplit_step_limit;

/* Bounds that hold for any order of the pieces. Devices, chunks, times, links and micro-batches are
 * those of `input`; its kind is ignored. max_in_flight[n_stages], each >= 1: micro-batches that a
 * device may hold between forward and backward (all chunks together); NULL: unlimited. O(chunks *
 * stages). Errors: USAGE, LIMIT (overflow). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_limits_step(const psplit_schedule_input *input,
                                                          const uint32_t *max_in_flight,
                                                          psplit_diag *diag,
                                                          psplit_step_limit *out_limit);

/* The least number of micro-batches with which the schedule input->kind reaches `share` of
 * speed_up_limit; 0: none up to `most` (at most 4096). input->n_micro_batches is ignored. O(chunks
 * * stages * most^2). Errors: as psplit_schedule_simulate, USAGE (share not in 0..1). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_limits_micro_batches(const psplit_schedule_input *input, double share, uint32_t most,
                            psplit_diag *diag, uint32_t *out_n_micro_batches);

/* --- training -------------------------------------------------------------------------------- */

typedef enum psplit_loss_class {
  PSPLIT_LOSS_NONSMOOTH,       /* convex, Lipschitz: ReLU-like kinks, L1, hinge */
  PSPLIT_LOSS_SMOOTH,          /* convex, with Lipschitz gradient */
  PSPLIT_LOSS_STRONGLY_CONVEX, /* the same, at least quadratic */
  PSPLIT_LOSS_NONCONVEX        /* with Lipschitz gradient; the goal is a small gradient */
} psplit_loss_class;

/* L: Lipschitz constant of the loss; B: of its gradient; R: distance of the start from the optimum;
 * F: loss at the start above the minimum. `accuracy` is relative to these, so they are not needed.
 * Time is in units of the forward or backward piece of one sample in one stage. */
typedef struct psplit_training_input {
  psplit_loss_class loss;
  uint32_t depth;     /* stages, >= 1 */
  uint32_t n_samples; /* samples of a gradient, each a micro-batch of its own; >= 1 */
  double dimension;   /* trainable weights, >= 1 */
  /* In 0..1: error of the loss / (L R) where nonsmooth, / (B R^2) where smooth, / (alpha R^2) with
   * alpha the strong convexity where strongly convex; norm of the gradient / sqrt(B F) where
   * non-convex. */
  double accuracy;
  double condition; /* B / alpha >= 1, for strongly convex losses; otherwise ignored */
} psplit_training_input;

typedef struct psplit_training_limit {
  /* Number of gradients that any method that computes them one after another (and combines previous
   * ones) needs on some loss of the class; 0: no constant is proved. */
  double least_gradients;
  /* Number of gradients that suffices for the method below. */
  double enough_gradients;
  const char *method;   /* static text */
  double gradient_time; /* of one gradient over all samples, pipelined: 2 (samples + depth - 1) */
  double least_time, enough_time; /* gradients times gradient_time */
  /* Pipeline parallel random smoothing, for nonsmooth losses; otherwise 0. */
  double smoothed_gradients; /* number of steps that suffices */
  double perturbations;      /* per step, which has samples times as many micro-batches */
  double smoothed_time;
  /* Depth from which smoothing is provably faster than `method`; 0: none. */
  double smoothing_pays_from;
} psplit_training_limit;

/* Errors: USAGE (a number out of range). O(1). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_limits_training(const psplit_training_input *input,
                                                              psplit_diag *diag,
                                                              psplit_training_limit *out_limit);

#ifdef __cplusplus
}
#endif
#endif
