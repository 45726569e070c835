/* What pipelining can gain at most: of one step, whatever the schedule, and of training with a
 * class of losses, whatever the method of the class. docs/limits.md has statements and proofs. */
#ifndef PSPLIT_LIMITS_H
#define PSPLIT_LIMITS_H

#include <psplit/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a step ---------------------------------------------------------------------------------- */

typedef struct psplit_step_limit {
  int64_t step_ns; /* no schedule ends a step sooner */
  /* The device whose work, or round trips, take that long; NONE: one micro-batch's way alone. */
  uint32_t device;
  int64_t work_ns;       /* of all devices in a step: what one device of their kind would take */
  double speed_up;       /* at most, over that one device: work_ns / step_ns */
  double speed_up_limit; /* at most, with any number of micro-batches */
  double bubble_frac;    /* at least this share of the devices' time is idle */
  /* With fewer micro-batches, no schedule has nine tenths of speed_up_limit; 0: more than 2^32. */
  uint32_t micro_batches_90;
} psplit_step_limit;

/* What no order of the pieces beats: devices, chunks, times, links and micro-batches are those of
 * `input`, its kind does not count. max_in_flight[n_stages], each >= 1: micro-batches that a device
 * may hold at once between forward and backward (chunks counted as one); NULL: any number.
 * O(chunks * stages). Errors: USAGE, LIMIT (overflow). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_limits_step(const psplit_schedule_input *input,
                                                          const uint32_t *max_in_flight,
                                                          psplit_diag *diag,
                                                          psplit_step_limit *out_limit);

/* The least number of micro-batches with which the schedule of input->kind has `share` of
 * speed_up_limit; 0: none up to `most` (at most 4096). input->n_micro_batches does not count.
 * O(chunks * stages * most^2). Errors: as psplit_schedule_simulate, USAGE (share not in 0..1). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_limits_micro_batches(const psplit_schedule_input *input, double share, uint32_t most,
                            psplit_diag *diag, uint32_t *out_n_micro_batches);

/* --- training -------------------------------------------------------------------------------- */

typedef enum psplit_loss_class {
  PSPLIT_LOSS_NONSMOOTH,       /* convex, Lipschitz: ReLU-like kinks, L1, hinge */
  PSPLIT_LOSS_SMOOTH,          /* convex, with Lipschitz gradient */
  PSPLIT_LOSS_STRONGLY_CONVEX, /* the same, at least quadratic */
  PSPLIT_LOSS_NONCONVEX        /* with Lipschitz gradient; a small gradient is looked for */
} psplit_loss_class;

/* L: Lipschitz constant of the loss; B: of its gradient; R: distance of the start from the best
 * weights; F: loss at the start above the least; all in units of one another, so that only
 * `accuracy` is asked for. Time is in units of one stage's forward or backward piece of one
 * sample. */
typedef struct psplit_training_input {
  psplit_loss_class loss;
  uint32_t depth;     /* stages, >= 1 */
  uint32_t n_samples; /* samples of a gradient, each a micro-batch of its own; >= 1 */
  double dimension;   /* trainable weights, >= 1 */
  /* In 0..1: error of the loss / (L R) where nonsmooth, / (B R^2) where smooth, / (alpha R^2) with
   * alpha the strong convexity where strongly convex; norm of the gradient / sqrt(B F) where
   * non-convex. */
  double accuracy;
  double condition; /* B / alpha >= 1, of strongly convex losses; else not read */
} psplit_training_input;

typedef struct psplit_training_limit {
  /* On some loss of the class, each method that takes one gradient after another (and combines
   * those it has seen) needs so many; 0: no constant is proved. */
  double least_gradients;
  /* With so many gradients, the method named below is sure to be there. */
  double enough_gradients;
  const char *method;   /* static text */
  double gradient_time; /* of one gradient over all samples, pipelined: 2 (samples + depth - 1) */
  double least_time, enough_time; /* gradients times gradient_time */
  /* Pipeline parallel random smoothing; for nonsmooth losses, else 0. */
  double smoothed_gradients; /* steps that are enough */
  double perturbations;      /* of a step: micro-batches of it are samples times these */
  double smoothed_time;
  /* By what is proved, smoothing is faster than `method` from this depth on; 0: at none. */
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
