#include "adam.h"

#include <math.h>

psplit_code psplit_i_adam_step(psplit_i_adam *adam, double rate, psplit_i_policy_network *gradient,
                               psplit_i_policy_network *network) {
  static const double kMeanKeep = 0.9, kSquareKeep = 0.99, kSmall = 1e-8;
  psplit_i_real *g = (psplit_i_real *)gradient, *w = (psplit_i_real *)network;
  psplit_i_real *mean = (psplit_i_real *)&adam->mean, *square = (psplit_i_real *)&adam->square;
  double norm = 0, mean_left = 1, square_left = 1;
  for (size_t k = 0; k < PSPLIT_I_N_PARAMETERS; k++) norm += (double)g[k] * (double)g[k];
  if (!isfinite(norm)) return PSPLIT_INVALID;
  norm = sqrt(norm); /* which IEEE 754 rounds correctly */
  const double scale = norm > 1 ? 1 / norm : 1;
  adam->n_steps++;
  for (uint64_t k = 0; k < adam->n_steps && k < 20000; k++) {
    mean_left *= kMeanKeep;
    square_left *= kSquareKeep;
  }
  for (size_t k = 0; k < PSPLIT_I_N_PARAMETERS; k++) {
    const double x = (double)g[k] * scale;
    mean[k] = (psplit_i_real)(kMeanKeep * (double)mean[k] + (1 - kMeanKeep) * x);
    square[k] = (psplit_i_real)(kSquareKeep * (double)square[k] + (1 - kSquareKeep) * x * x);
    const double step =
      (double)mean[k] / (1 - mean_left) / (sqrt((double)square[k] / (1 - square_left)) + kSmall);
    w[k] = (psplit_i_real)((double)w[k] - rate * step);
  }
  return PSPLIT_OK;
}
