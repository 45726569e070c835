/* Random smoothing: weights are perturbed before a piece, so that the mean gradient over draws is
 * that of the loss smoothed by a normal distribution. */
#ifndef PSPLIT_RUNTIME_TRAIN_SMOOTHING_H
#define PSPLIT_RUNTIME_TRAIN_SMOOTHING_H

#include "base.h"
#include "tensor.h"

/* One draw. What it is for an element depends on nothing else, so not on the cut. */
typedef struct psplit_i_perturbation {
  double gamma; /* standard deviation, above 0 */
  uint64_t seed;
  uint32_t step, sample; /* from 0; samples count over all replicas */
  uint32_t weight;       /* index in training.weights */
} psplit_i_perturbation;

/* out[i] = weight[i] + gamma * N(0, 1), rounded once to the type, where *io_out is NULL or what was
 * made here for the same weight. The caller releases it. O(elements). Errors: UNSUPPORTED (neither
 * float32 nor float64), LIMIT (more than 2^33 elements), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_perturb(const psplit_i_ort *ort, const psplit_i_tensor *weight,
                                             const psplit_i_perturbation *at, psplit_diag *diag,
                                             psplit_i_tensor **io_out);

#endif
