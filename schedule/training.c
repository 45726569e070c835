/* How many gradients training takes: the classes of losses with what is proved of each.
 *
 * Sources: S. Bubeck, "Convex Optimization: Algorithms and Complexity" (2015), theorems 3.2, 3.3,
 * 3.13 to 3.15, 3.18, 3.19; J. Duchi, P. Bartlett, M. Wainwright, "Randomized Smoothing for
 * Stochastic Optimization" (SIAM J. Optim. 2012), corollary 2.3, for the constants of smoothing;
 * I. Colin, L. Dos Santos, K. Scaman (NeurIPS 2019) for pipelines of them. */
#include <math.h>

#include <psplit/limits.h>
#include "base.h"

typedef struct loss_class {
  const char *method;
  double (*least)(const psplit_training_input *in);
  double (*enough)(const psplit_training_input *in);
} loss_class;

static double least_nonsmooth(const psplit_training_input *in) {
  /* Error >= L R / (2 (1 + sqrt t)) as long as t <= dimension. */
  const double root = 1 / (2 * in->accuracy) - 1;
  const double t = root > 0 ? root * root : 0;
  return t < in->dimension ? t : in->dimension;
}

static double enough_nonsmooth(const psplit_training_input *in) {
  return 1 / (in->accuracy * in->accuracy);
}

static double least_smooth(const psplit_training_input *in) {
  /* Error >= 3 B R^2 / (32 (t + 1)^2) as long as t <= (dimension - 1) / 2. */
  const double t = sqrt(3 / (32 * in->accuracy)) - 1, most = (in->dimension - 1) / 2;
  return t < 0 ? 0 : t < most ? t : most;
}

static double enough_smooth(const psplit_training_input *in) { return sqrt(2 / in->accuracy); }

static double least_strong(const psplit_training_input *in) {
  /* Error >= alpha R^2 / 2 * rho^(2 (t - 1)); the loss has as many weights as it takes. */
  const double root = sqrt(in->condition), rho = (root - 1) / (root + 1);
  if (rho <= 0 || 2 * in->accuracy >= 1) return 1;
  return 1 + log(1 / (2 * in->accuracy)) / (2 * log(1 / rho));
}

static double enough_strong(const psplit_training_input *in) {
  return 1 + sqrt(in->condition) * log((1 + in->condition) / (2 * in->accuracy));
}

static double least_nonconvex(const psplit_training_input *in) {
  (void)in;
  return 0;
}

static double enough_nonconvex(const psplit_training_input *in) {
  return 2 / (in->accuracy * in->accuracy);
}

static const loss_class CLASSES[] = {
  [PSPLIT_LOSS_NONSMOOTH] = {"the subgradient method", least_nonsmooth, enough_nonsmooth},
  [PSPLIT_LOSS_SMOOTH] = {"Nesterov's method", least_smooth, enough_smooth},
  [PSPLIT_LOSS_STRONGLY_CONVEX] = {"Nesterov's method", least_strong, enough_strong},
  [PSPLIT_LOSS_NONCONVEX] = {"gradient descent", least_nonconvex, enough_nonconvex},
};

/* After T steps of K perturbations each, the error is at most 10 L R d^(1/4) / T +
 * 5 L R / sqrt(T K): half of what is allowed goes to each. */
static void smooth(const psplit_training_input *in, psplit_training_limit *out) {
  const double r = 1 / in->accuracy, quarter = pow(in->dimension, 0.25);
  const double m = in->n_samples, depth = in->depth;
  out->smoothed_gradients = ceil(20 * r * quarter);
  out->perturbations = ceil(5 * r / quarter);
  const double batch = m * out->perturbations;
  out->smoothed_time = out->smoothed_gradients * 2 * (batch + depth - 1);
  /* smoothed_time < enough_time is linear in the depth. */
  const double fewer = out->enough_gradients - out->smoothed_gradients;
  const double more = out->smoothed_gradients * batch - out->enough_gradients * m;
  /* There are a hundred times 1 / accuracy^2 perturbations and more, so that `more` is above 0. */
  if (fewer > 0) out->smoothing_pays_from = floor(1 + more / fewer) + 1;
}

psplit_code psplit_limits_training(const psplit_training_input *in, psplit_diag *diag,
                                   psplit_training_limit *out_limit) {
  if ((uint32_t)in->loss >= sizeof CLASSES / sizeof *CLASSES)
    return psplit_i_fail(diag, PSPLIT_USAGE, "no such class of losses");
  if (in->depth == 0 || in->n_samples == 0 || !(in->dimension >= 1) || !isfinite(in->dimension))
    return psplit_i_fail(diag, PSPLIT_USAGE, "depth, samples and dimension are at least 1");
  if (!(in->accuracy > 0 && in->accuracy <= 1))
    return psplit_i_fail(diag, PSPLIT_USAGE, "an accuracy is above 0 and at most 1");
  if (in->loss == PSPLIT_LOSS_STRONGLY_CONVEX && !(in->condition >= 1 && isfinite(in->condition)))
    return psplit_i_fail(diag, PSPLIT_USAGE, "a condition number is at least 1");
  const loss_class *class = &CLASSES[in->loss];
  psplit_training_limit out = {.method = class->method};
  out.least_gradients = floor(class->least(in));
  out.enough_gradients = ceil(class->enough(in));
  out.gradient_time = 2 * ((double)in->n_samples + in->depth - 1);
  out.least_time = out.least_gradients * out.gradient_time;
  out.enough_time = out.enough_gradients * out.gradient_time;
  if (in->loss == PSPLIT_LOSS_NONSMOOTH) smooth(in, &out);
  *out_limit = out;
  return PSPLIT_OK;
}
