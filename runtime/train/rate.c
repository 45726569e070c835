#include "rate.h"

#include <math.h>

double psplit_i_rate_at(const psplit_train_options *o, uint64_t step, uint64_t n_steps) {
  static const double PI = 3.14159265358979323846;
  if (step < o->warmup_steps)
    return o->learning_rate * ((double)(step + 1) / (double)o->warmup_steps);
  if (o->rate == PSPLIT_RATE_CONSTANT || n_steps <= o->warmup_steps) return o->learning_rate;
  const double gone = (double)(step - o->warmup_steps) / (double)(n_steps - o->warmup_steps);
  const double left = o->rate == PSPLIT_RATE_LINEAR ? 1 - gone : (1 + cos(PI * gone)) / 2;
  return o->last_learning_rate + (o->learning_rate - o->last_learning_rate) * left;
}

double psplit_i_clip_scale(double norm, double most) {
  static const double EPSILON = 1e-6;
  if (!(most > 0)) return 1;
  const double scale = most / (norm + EPSILON);
  return scale < 1 ? scale : 1;
}
