#include "method.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counter_random.h"
#include "normal.h"

typedef struct state {
  const lab_loss *f;
  const lab_setting *s;
  uint64_t seed, t; /* t: steps begun */
  double theta;     /* weight of the newest iterate */
  double *x;        /* what counts as the iterate */
  double *y;        /* where the gradient is taken */
  double *z;        /* of dual averaging; momentum of the others */
  double *sum;      /* of gradients, weighted */
  double *g, *part, *point, *mean;
  double *old; /* [delay + 1][n] past iterates */
} state;

static void project(const lab_loss *f, double *x) {
  double norm = 0;
  if (!(f->radius > 0)) return;
  for (int i = 0; i < f->n; i++) norm += x[i] * x[i];
  norm = sqrt(norm);
  if (norm <= f->radius) return;
  for (int i = 0; i < f->n; i++) x[i] *= f->radius / norm;
}

/* The mean gradient around `at`; the draws are those of seed, step and perturbation. */
static void smoothed_gradient(state *r, const double *at, double gamma) {
  const int n = r->f->n, k = r->s->n_perturbations;
  memset(r->g, 0, (size_t)n * sizeof *r->g);
  for (int p = 0; p < k; p++) {
    const psplit_i_random_stream stream = {.seed = r->seed,
                                           .use = PSPLIT_I_RANDOM_SMOOTHING,
                                           .major = (uint32_t)r->t,
                                           .minor = (uint32_t)p};
    lab_normal normal = lab_normal_begin(&stream);
    for (int i = 0; i < n; i++) r->point[i] = at[i] + gamma * lab_normal_next(&normal);
    r->f->value(r->f, r->point, r->part);
    for (int i = 0; i < n; i++) r->g[i] += r->part[i] / k;
  }
}

static void gradient(state *r, const double *at, double gamma) {
  if (r->s->by == LAB_PPRS)
    smoothed_gradient(r, at, gamma * r->f->length);
  else
    r->f->value(r->f, at, r->g);
}

/* Tseng's weights: 1 / t, about, times 2. */
static double next_theta(double theta) { return 2 / (1 + sqrt(1 + 4 / (theta * theta))); }

static void step_dual(state *r, double step) {
  const int n = r->f->n;
  for (int i = 0; i < n; i++) r->y[i] = (1 - r->theta) * r->x[i] + r->theta * r->z[i];
  gradient(r, r->y, r->s->gamma * r->theta);
  const double later = next_theta(r->theta);
  for (int i = 0; i < n; i++) {
    r->sum[i] += r->g[i] / r->theta;
    r->z[i] = r->f->start[i] - step * later * r->sum[i];
  }
  project(r->f, r->z);
  for (int i = 0; i < n; i++) r->x[i] = (1 - r->theta) * r->x[i] + r->theta * r->z[i];
  r->theta = later;
}

static void step_primal(state *r, double step) {
  const int n = r->f->n;
  gradient(r, r->y, r->s->gamma);
  const double later = next_theta(r->theta), push = later * (1 / r->theta - 1);
  for (int i = 0; i < n; i++) r->point[i] = r->y[i] - step * r->g[i];
  project(r->f, r->point);
  for (int i = 0; i < n; i++) {
    r->y[i] = r->point[i] + push * (r->point[i] - r->x[i]);
    r->x[i] = r->point[i];
  }
  r->theta = later;
}

/* A plain step, with a gradient of the iterate `delay` steps ago. */
static void step_plain(state *r, double step) {
  const int n = r->f->n, kept = r->s->delay + 1;
  double *slot = r->old + (r->t % (uint64_t)kept) * (uint64_t)n;
  memcpy(slot, r->x, (size_t)n * sizeof *slot);
  const uint64_t from = r->t >= (uint64_t)r->s->delay ? r->t - (uint64_t)r->s->delay : 0;
  gradient(r, r->old + (from % (uint64_t)kept) * (uint64_t)n, 0);
  if (r->s->form == 1) step /= sqrt((double)(r->t + 1));
  for (int i = 0; i < n; i++) r->x[i] -= step * r->g[i];
  project(r->f, r->x);
}

/* Momentum with a look ahead over the delay, gradients of old weights. */
static void step_delayed_nesterov(state *r, double step) {
  const int n = r->f->n, kept = r->s->delay + 1;
  const double momentum = r->s->form ? 0.99 : 0.9;
  double *slot = r->old + (r->t % (uint64_t)kept) * (uint64_t)n;
  for (int i = 0; i < n; i++) slot[i] = r->x[i] + momentum * r->z[i];
  const uint64_t from = r->t >= (uint64_t)r->s->delay ? r->t - (uint64_t)r->s->delay : 0;
  gradient(r, r->old + (from % (uint64_t)kept) * (uint64_t)n, 0);
  memcpy(r->point, r->x, (size_t)n * sizeof *r->point);
  for (int i = 0; i < n; i++) r->x[i] += momentum * r->z[i] - step * (1 - momentum) * r->g[i];
  project(r->f, r->x);
  for (int i = 0; i < n; i++) r->z[i] = r->x[i] - r->point[i];
}

static void take_step(state *r) {
  const double step = r->s->step * r->f->length / r->f->slope;
  switch (r->s->by) {
    case LAB_SUBGRADIENT:
    case LAB_DELAYED: step_plain(r, step); break;
    case LAB_DELAYED_NESTEROV: step_delayed_nesterov(r, step); break;
    case LAB_NESTEROV:
    case LAB_PPRS:
      if (r->s->form)
        step_dual(r, step);
      else
        step_primal(r, step);
      break;
  }
  r->t++;
}

static double *copy_of(const lab_loss *f) {
  double *to = lab_numbers(f->n);
  memcpy(to, f->start, (size_t)f->n * sizeof *to);
  return to;
}

static state begin(const lab_loss *f, const lab_setting *s, uint64_t seed) {
  const int n = f->n;
  state r = {.f = f, .s = s, .seed = seed, .theta = 1};
  const bool moves = s->by == LAB_DELAYED_NESTEROV;
  r.x = copy_of(f);
  r.y = copy_of(f);
  r.z = moves ? lab_numbers(n) : copy_of(f);
  r.sum = lab_numbers(n);
  r.g = lab_numbers(n);
  r.part = lab_numbers(n);
  r.point = lab_numbers(n);
  r.mean = lab_numbers(n);
  r.old = lab_numbers(n * (s->delay + 1));
  return r;
}

static void end(state *r) {
  double *const all[] = {r->x, r->y, r->z, r->sum, r->g, r->part, r->point, r->mean, r->old};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

double lab_run(const lab_loss *f, const lab_setting *setting, uint64_t seed, const double *goals,
               int n_goals, uint64_t most_steps, uint64_t *out_steps) {
  state r = begin(f, setting, seed);
  const double first = f->value(f, r.x, NULL);
  double lowest = first;
  int reached = 0;
  for (int g = 0; g < n_goals; g++) out_steps[g] = 0;
  while (r.t < most_steps && (n_goals == 0 || reached < n_goals)) {
    take_step(&r);
    for (int i = 0; i < f->n; i++) r.mean[i] += (r.x[i] - r.mean[i]) / (double)r.t;
    double now = f->value(f, r.x, NULL);
    if (!f->depth) now = fmin(now, f->value(f, r.mean, NULL)); /* a mean of nets is no net */
    if (!(now < 1e6 * (fabs(first) + 1))) break;
    if (now < lowest) lowest = now;
    while (reached < n_goals && lowest <= goals[reached]) out_steps[reached++] = r.t;
  }
  end(&r);
  return lowest;
}
