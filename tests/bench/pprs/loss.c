#include "loss.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter_random.h"

enum { WIDTH = 12, N_INPUTS = 6, MOST_LAYERS = 64, LAYER = WIDTH * (WIDTH + 1), FEW = 10 };

double *lab_numbers(int n) {
  double *memory = calloc((size_t)n + 1, sizeof *memory);
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

static double max_value(const lab_loss *f, const double *x, double *g) {
  int at = 0;
  for (int i = 1; i < f->n; i++)
    if (x[i] > x[at]) at = i;
  if (g) {
    memset(g, 0, (size_t)f->n * sizeof *g);
    g[at] = 1;
  }
  return x[at];
}

static double chain_value(const lab_loss *f, const double *x, double *g) {
  double sum = 0;
  for (int i = 0; i <= f->n; i++) {
    const double r = (i < f->n ? x[i] : 0) - (i > 0 ? x[i - 1] : 1);
    sum += r * r;
  }
  for (int i = 0; g && i < f->n; i++)
    g[i] = (2 * x[i] - (i > 0 ? x[i - 1] : 1) - (i + 1 < f->n ? x[i + 1] : 0)) / 4;
  return sum / 8;
}

/* a[s] x, of sample s. */
static double product(const lab_loss *f, int s, const double *x) {
  const double *a = f->data + (size_t)s * (size_t)f->n;
  double sum = 0;
  for (int i = 0; i < f->n; i++) sum += a[i] * x[i];
  return sum;
}

static void add_sample(const lab_loss *f, int s, double factor, double *g) {
  const double *a = f->data + (size_t)s * (size_t)f->n;
  for (int i = 0; i < f->n; i++) g[i] += factor / f->m * a[i];
}

static double l1_value(const lab_loss *f, const double *x, double *g) {
  double sum = 0;
  if (g) memset(g, 0, (size_t)f->n * sizeof *g);
  for (int s = 0; s < f->m; s++) {
    const double r = product(f, s, x) - f->target[s];
    sum += fabs(r);
    if (g) add_sample(f, s, r > 0 ? 1 : -1, g);
  }
  return sum / f->m;
}

static double hinge_value(const lab_loss *f, const double *x, double *g) {
  double sum = 0;
  if (g) memset(g, 0, (size_t)f->n * sizeof *g);
  for (int s = 0; s < f->m; s++) {
    const double margin = product(f, s, x) * f->target[s];
    if (margin >= 1) continue;
    sum += 1 - margin;
    if (g) add_sample(f, s, -f->target[s], g);
  }
  return sum / f->m;
}

/* Outputs of all layers for sample s; the last one has no kink. */
static double forward(const lab_loss *f, const double *x, int s,
                      double act[MOST_LAYERS + 1][WIDTH]) {
  memset(act[0], 0, sizeof act[0]);
  memcpy(act[0], f->data + (size_t)s * N_INPUTS, N_INPUTS * sizeof *act[0]);
  for (int l = 0; l < f->depth; l++) {
    const double *w = x + l * LAYER;
    for (int i = 0; i < WIDTH; i++) {
      double z = w[WIDTH * WIDTH + i];
      for (int j = 0; j < WIDTH; j++) z += w[i * WIDTH + j] * act[l][j];
      act[l + 1][i] = z > 0 || l == f->depth - 1 ? z : 0;
    }
  }
  return act[f->depth][0];
}

static void backward(const lab_loss *f, const double *x, double error,
                     double act[MOST_LAYERS + 1][WIDTH], double *g) {
  double err[WIDTH] = {error}, next[WIDTH];
  for (int l = f->depth - 1; l >= 0; l--) {
    const double *w = x + l * LAYER;
    double *gw = g + l * LAYER;
    memset(next, 0, sizeof next);
    for (int i = 0; i < WIDTH; i++) {
      if (l < f->depth - 1 && act[l + 1][i] <= 0) continue;
      gw[WIDTH * WIDTH + i] += err[i];
      for (int j = 0; j < WIDTH; j++) {
        gw[i * WIDTH + j] += err[i] * act[l][j];
        next[j] += err[i] * w[i * WIDTH + j];
      }
    }
    memcpy(err, next, sizeof err);
  }
}

static double relu_value(const lab_loss *f, const double *x, double *g) {
  double sum = 0, act[MOST_LAYERS + 1][WIDTH];
  if (g) memset(g, 0, (size_t)f->n * sizeof *g);
  for (int s = 0; s < f->m; s++) {
    const double r = forward(f, x, s, act) - f->target[s];
    sum += fabs(r);
    if (g) backward(f, x, (r > 0 ? 1.0 : -1.0) / f->m, act, g);
  }
  return sum / f->m;
}

/* --- making --- */

static double drawn(uint64_t seed, uint32_t what, uint64_t i) {
  const psplit_i_random_stream stream = {.seed = seed, .use = PSPLIT_I_RANDOM_TEST, .major = what};
  return psplit_i_random_normal(&stream, i);
}

enum { DATA, TRUTH, START };

/* `m` samples of `n_columns` numbers, and what a hidden linear rule says of them. */
static void draw_samples(lab_loss *f, int n_columns, uint64_t seed) {
  f->data = lab_numbers(f->m * n_columns);
  f->target = lab_numbers(f->m);
  for (int i = 0; i < f->m * n_columns; i++) f->data[i] = drawn(seed, DATA, (uint64_t)i);
  for (int s = 0; s < f->m; s++)
    for (int i = 0; i < n_columns; i++)
      f->target[s] +=
        f->data[s * n_columns + i] * drawn(seed, TRUTH, (uint64_t)i) / sqrt(n_columns);
}

static void make_max(lab_loss *f, bool random_start, uint64_t seed) {
  double norm = 0;
  f->value = max_value;
  f->radius = 1;
  f->least = -1 / sqrt(f->n);
  for (int i = 0; random_start && i < f->n; i++) {
    f->start[i] = drawn(seed, START, (uint64_t)i);
    norm += f->start[i] * f->start[i];
  }
  for (int i = 0; random_start && i < f->n; i++) f->start[i] /= 2 * sqrt(norm);
}

static void make_chain(lab_loss *f) {
  f->value = chain_value;
  f->least = 1.0 / (8 * (f->n + 1));
}

static void make_l1(lab_loss *f, uint64_t seed) {
  f->value = l1_value;
  f->m = 2 * f->n;
  draw_samples(f, f->n, seed);
}

static void make_hinge(lab_loss *f, uint64_t seed) {
  f->value = hinge_value;
  f->m = FEW;
  draw_samples(f, f->n, seed);
  for (int s = 0; s < f->m; s++) f->target[s] = f->target[s] > 0 ? 1 : -1;
  f->length = 1 / sqrt(f->n);
  f->slope = sqrt(f->n);
}

static void make_relu(lab_loss *f, uint64_t seed) {
  f->value = relu_value;
  f->m = FEW;
  draw_samples(f, N_INPUTS, seed);
  for (int i = 0; i < f->n; i++)
    if (i % LAYER < WIDTH * WIDTH)
      f->start[i] = drawn(seed, START, (uint64_t)i) * sqrt(2.0 / WIDTH);
}

bool lab_loss_make(const char *name, int n, int depth, uint64_t seed, lab_loss *out) {
  const bool net = strcmp(name, "relu") == 0;
  lab_loss f = {.name = name, .n = net ? depth * LAYER : n, .m = 1, .length = 1, .slope = 1};
  if (net && (depth < 1 || depth > MOST_LAYERS)) return false;
  if (net) f.depth = depth;
  f.start = lab_numbers(f.n);
  if (strcmp(name, "max") == 0)
    make_max(&f, false, seed);
  else if (strcmp(name, "max-start") == 0)
    make_max(&f, true, seed);
  else if (strcmp(name, "chain") == 0)
    make_chain(&f);
  else if (strcmp(name, "l1") == 0)
    make_l1(&f, seed);
  else if (strcmp(name, "hinge") == 0)
    make_hinge(&f, seed);
  else if (net)
    make_relu(&f, seed);
  else {
    free(f.start);
    return false;
  }
  *out = f;
  return true;
}

void lab_loss_free(lab_loss *loss) {
  free(loss->data);
  free(loss->target);
  free(loss->start);
}
