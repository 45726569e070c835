#include "tune.h"

#include <math.h>
#include <stdlib.h>

/* The grid: factors of 2, of nets of 4, and of 4 for the number of perturbations; then, around the
 * best, the factors' square roots. */
enum { STEPS_FROM = -13, STEPS_TO = 4, GAMMAS_FROM = -10, GAMMAS_TO = 1, MOST_FOURS = 4 };

static bool waits(lab_method by) { return by != LAB_DELAYED && by != LAB_DELAYED_NESTEROV; }

double lab_step_time(const lab_setting *s, const lab_loss *f, double depth) {
  return waits(s->by) ? 2 * ((double)f->m * s->n_perturbations + depth - 1) : 2.0 * f->m;
}

double lab_fill_time(const lab_setting *s, double depth) {
  return waits(s->by) ? 0 : 2 * (depth - 1);
}

static double gradient_time(const lab_question *q, double depth) {
  return 2 * (q->loss->m + depth - 1);
}

/* A visit to one setting, at one depth or (methods that wait) for all. */
typedef void (*visit)(void *user, const lab_setting *setting);

static int stride(const lab_question *q) { return q->loss->depth ? 2 : 1; }

static void over_grid(const lab_question *q, lab_method by, visit each, void *user) {
  const bool smooths = by == LAB_PPRS;
  const int by_twos = stride(q);
  for (int form = 0; form < 2; form++)
    for (int k = 0; k <= (smooths ? MOST_FOURS : 0); k++)
      for (int g = GAMMAS_FROM; g <= (smooths ? GAMMAS_TO : GAMMAS_FROM); g += by_twos)
        for (int e = STEPS_FROM; e <= STEPS_TO; e += by_twos) {
          const lab_setting s = {.by = by,
                                 .form = form,
                                 .step = q->shift * pow(2, e),
                                 .gamma = smooths ? pow(2, g) : 0,
                                 .n_perturbations = 1 << 2 * k};
          each(user, &s);
        }
}

static void around(const lab_question *q, const lab_setting *best, visit each, void *user) {
  const bool smooths = best->by == LAB_PPRS;
  for (int k = -1; k <= 1; k++)
    for (int g = -1; g <= 1; g++)
      for (int e = -1; e <= 1; e++) {
        lab_setting s = *best;
        if (!smooths && (k || g)) continue;
        s.step *= pow(2, e * stride(q) / 2.0);
        s.gamma *= pow(2, g * stride(q) / 2.0);
        s.n_perturbations = (int)(s.n_perturbations * pow(2, k));
        if (s.n_perturbations >= 1) each(user, &s);
      }
}

/* --- time to a goal --- */

typedef struct race {
  const lab_question *q;
  int depth; /* of methods that do not wait; -1: all */
  lab_best (*best)[LAB_MOST_GOALS];
} race;

static void run_race(void *user, const lab_setting *setting) {
  race *r = user;
  const lab_question *q = r->q;
  const int from = r->depth < 0 ? 0 : r->depth, to = r->depth < 0 ? q->n_depths : r->depth + 1;
  lab_setting s = *setting;
  double most = 0;
  uint64_t steps[LAB_MOST_GOALS];
  if (!waits(s.by)) s.delay = (int)ceil((q->depths[from] - 1) / q->loss->m);
  for (int d = from; d < to; d++)
    for (int g = 0; g < q->n_goals; g++) {
      const double left = r->best[d][g].value - lab_fill_time(&s, q->depths[d]);
      most = fmax(most, left / lab_step_time(&s, q->loss, q->depths[d]));
    }
  if (most < 1) return;
  lab_run(q->loss, &s, q->seed, q->goals, q->n_goals, (uint64_t)most, steps);
  for (int d = from; d < to; d++)
    for (int g = 0; g < q->n_goals; g++) {
      const double time = lab_fill_time(&s, q->depths[d]) +
                          (double)steps[g] * lab_step_time(&s, q->loss, q->depths[d]);
      if (steps[g] && time < r->best[d][g].value)
        r->best[d][g] = (lab_best){.value = time, .by = s, .steps = steps[g]};
    }
}

void lab_tune_time(const lab_question *q, lab_method by, lab_answer rival, lab_answer out) {
  const double slack = waits(by) ? 8 : 2;
  for (int d = 0; d < q->n_depths; d++)
    for (int g = 0; g < q->n_goals; g++) {
      const double most = q->most_gradients * gradient_time(q, q->depths[d]);
      out[d][g] = (lab_best){.value = rival ? fmin(most, slack * rival[d][g].value) : most};
    }
  for (int d = waits(by) ? -1 : 0; d < (waits(by) ? 0 : q->n_depths); d++) {
    race r = {.q = q, .depth = d, .best = out};
    over_grid(q, by, run_race, &r);
  }
  for (int d = 0; d < q->n_depths; d++)
    for (int g = 0; g < q->n_goals; g++) {
      race r = {.q = q, .depth = waits(by) ? -1 : d, .best = out};
      const lab_setting s = out[d][g].by;
      if (out[d][g].steps) around(q, &s, run_race, &r);
    }
  for (int d = 0; d < q->n_depths; d++)
    for (int g = 0; g < q->n_goals; g++)
      if (!out[d][g].steps) out[d][g].value = INFINITY;
}

/* --- value within a time --- */

typedef struct descent {
  const lab_question *q;
  int depth;
  lab_best *best;
} descent;

static void run_descent(void *user, const lab_setting *setting) {
  descent *r = user;
  const double depth = r->q->depths[r->depth];
  lab_setting s = *setting;
  if (!waits(s.by)) s.delay = (int)ceil((depth - 1) / r->q->loss->m);
  const double time = r->q->most_gradients * gradient_time(r->q, depth) - lab_fill_time(&s, depth);
  const double steps = time / lab_step_time(&s, r->q->loss, depth);
  if (steps < 1) return;
  const double found = lab_run(r->q->loss, &s, r->q->seed, NULL, 0, (uint64_t)steps, NULL);
  if (found < r->best->value)
    *r->best = (lab_best){.value = found, .by = s, .steps = (uint64_t)steps};
}

void lab_tune_value(const lab_question *q, lab_method by, lab_best out[LAB_MOST_DEPTHS]) {
  for (int d = 0; d < q->n_depths; d++) {
    descent r = {.q = q, .depth = d, .best = &out[d]};
    out[d] = (lab_best){.value = INFINITY};
    over_grid(q, by, run_descent, &r);
    const lab_setting s = out[d].by;
    if (out[d].steps) around(q, &s, run_descent, &r);
  }
}
