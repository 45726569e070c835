/* The laboratory of pipelined training: how long methods take, in time of a pipeline, on losses
 * that are hard for them. docs/limits.md has the figures.
 *
 *   pprs LOSS... [--dim N] [--depths A,B,...] [--accuracies A,B,...] [--seeds N] [--shift X]
 *        [--waiting]  without the methods that do not wait, which take long at great depths
 *   pprs relu [--depths A,B,...] [--seeds N] [--gradients N]
 *   pprs --slopes     exponents, beside those of the theory
 *   pprs --bounds N   N runs against what psplit_limits_training says none can do
 *
 * A stage's forward or backward of a sample takes one unit. Each method is tuned for each seed,
 * depth and accuracy, over the same grid (tune.h), and counts its best iterate or their mean,
 * whichever is better. An accuracy is a share of the way from the start to the least loss. "Never"
 * is eight times the subgradient method's time (twice, of delayed ones), or --gradients.
 * Medians [quartiles] of the seeds. */
#include <inttypes.h>
#include <math.h>
#include <psplit/limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter_random.h"
#include "normal.h"
#include "tune.h"

enum { MOST_SEEDS = 32 };
static const char *const METHODS[LAB_N_METHODS] = {"subgradient", "Nesterov", "PPRS", "delayed",
                                                   "delayed Nesterov"};

typedef struct settings {
  int dim, n_seeds, n_depths, n_goals;
  int n_methods; /* the first so many */
  double depths[LAB_MOST_DEPTHS], accuracies[LAB_MOST_GOALS];
  double shift, gradients;
  bool details;
} settings;

/* --- statistics --- */

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Quartiles of n numbers, which are sorted. */
static void quartiles(double *of, int n, double out[3]) {
  qsort(of, (size_t)n, sizeof *of, by_size);
  for (int q = 1; q <= 3; q++) out[q - 1] = of[(n - 1) * q / 4];
}

/* Slope of the line through the logarithms. */
static double log_slope(const double *x, const double *y, int n) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (int i = 0; i < n; i++) {
    sx += log(x[i]);
    sy += log(y[i]);
    sxx += log(x[i]) * log(x[i]);
    sxy += log(x[i]) * log(y[i]);
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

static void print_quartiles(double *of, int n) {
  double q[3];
  quartiles(of, n, q);
  if (isfinite(q[1]))
    printf(" | %.4g [%.4g, %.4g]", q[1], q[0], q[2]);
  else
    printf(" | never");
}

/* --- time to an accuracy --- */

static void print_setting(const lab_best *best) {
  if (best->steps)
    printf("#   %s: %" PRIu64 " steps, form %d, step %.4g, gamma %.4g, %d perturbations\n",
           METHODS[best->by.by], best->steps, best->by.form, best->by.step, best->by.gamma,
           best->by.n_perturbations);
}

typedef double times[LAB_MOST_DEPTHS][LAB_MOST_GOALS][MOST_SEEDS];

/* What a thread does: one seed. */
typedef struct race {
  const char *name;
  const settings *s;
  int seed;
  times *found;
} race;

static void *run_race(void *user) {
  const race *r = user;
  const settings *s = r->s;
  lab_loss f;
  lab_answer best[LAB_N_METHODS];
  double goals[LAB_MOST_GOALS];
  if (!lab_loss_make(r->name, s->dim, 0, (uint64_t)r->seed + 1, &f)) exit(2);
  const double first = f.value(&f, f.start, NULL);
  for (int g = 0; g < s->n_goals; g++) goals[g] = f.least + s->accuracies[g] * (first - f.least);
  const lab_question q = {.loss = &f,
                          .seed = (uint64_t)r->seed,
                          .n_depths = s->n_depths,
                          .n_goals = s->n_goals,
                          .depths = s->depths,
                          .goals = goals,
                          .most_gradients = s->gradients,
                          .shift = s->shift};
  for (int by = 0; by < s->n_methods; by++) {
    lab_tune_time(&q, (lab_method)by, by ? best[LAB_SUBGRADIENT] : NULL, best[by]);
    for (int d = 0; d < s->n_depths; d++)
      for (int g = 0; g < s->n_goals; g++) r->found[by][d][g][r->seed] = best[by][d][g].value;
    for (int d = 0; s->details && r->seed == 0 && d < s->n_depths; d++)
      for (int g = 0; g < s->n_goals; g++) print_setting(&best[by][d][g]);
  }
  lab_loss_free(&f);
  return NULL;
}

static void race_all(const char *name, const settings *s, times found[LAB_N_METHODS]) {
  pthread_t threads[MOST_SEEDS];
  race races[MOST_SEEDS];
  for (int seed = 0; seed < s->n_seeds; seed++) {
    races[seed] = (race){.name = name, .s = s, .seed = seed, .found = found};
    if (pthread_create(&threads[seed], NULL, run_race, &races[seed]) != 0) exit(1);
  }
  for (int seed = 0; seed < s->n_seeds; seed++) pthread_join(threads[seed], NULL);
}

static void print_header(const settings *s, const char *last) {
  printf("| depth");
  for (int by = 0; by < s->n_methods; by++) printf(" | %s", METHODS[by]);
  printf(" | %s |\n|---", last);
  for (int by = 0; by <= s->n_methods; by++) printf("|---");
  printf("|\n");
}

static void print_times(const char *name, const settings *s) {
  times *found = calloc(LAB_N_METHODS, sizeof *found);
  if (!found) exit(1);
  race_all(name, s, found);
  for (int g = 0; g < s->n_goals; g++) {
    printf("\n%s, %d weights, to %g of the way: units of time, %d seeds\n\n", name, s->dim,
           s->accuracies[g], s->n_seeds);
    print_header(s, "PPRS gains");
    for (int d = 0; d < s->n_depths; d++) {
      double gains[MOST_SEEDS];
      for (int seed = 0; seed < s->n_seeds; seed++) {
        double others = INFINITY;
        for (int by = 0; by < s->n_methods; by++)
          if (by != LAB_PPRS) others = fmin(others, found[by][d][g][seed]);
        gains[seed] = others / found[LAB_PPRS][d][g][seed];
      }
      printf("| %g", s->depths[d]);
      for (int by = 0; by < s->n_methods; by++) print_quartiles(found[by][d][g], s->n_seeds);
      print_quartiles(gains, s->n_seeds);
      printf(" |\n");
    }
  }
  free(found);
}

/* --- nets: the least loss in a time --- */

static void print_nets(const settings *s) {
  printf("\nrelu, 10 samples: least loss in the time of %g gradients, %d seeds\n\n", s->gradients,
         s->n_seeds);
  print_header(s, "PPRS has less by");
  for (int d = 0; d < s->n_depths; d++) {
    double found[LAB_N_METHODS][MOST_SEEDS], gains[MOST_SEEDS];
    for (int seed = 0; seed < s->n_seeds; seed++) {
      lab_loss f;
      lab_best best[LAB_MOST_DEPTHS];
      double others = INFINITY;
      if (!lab_loss_make("relu", 0, (int)s->depths[d], (uint64_t)seed + 1, &f)) exit(2);
      const lab_question q = {.loss = &f,
                              .seed = (uint64_t)seed,
                              .n_depths = 1,
                              .depths = &s->depths[d],
                              .most_gradients = s->gradients,
                              .shift = s->shift};
      for (int by = 0; by < s->n_methods; by++) {
        lab_tune_value(&q, (lab_method)by, best);
        found[by][seed] = best[0].value;
        if (by != LAB_PPRS) others = fmin(others, best[0].value);
        if (s->details && seed == 0) print_setting(&best[0]);
      }
      gains[seed] = others / found[LAB_PPRS][seed];
      lab_loss_free(&f);
    }
    printf("| %g", s->depths[d]);
    for (int by = 0; by < s->n_methods; by++) print_quartiles(found[by], s->n_seeds);
    print_quartiles(gains, s->n_seeds);
    printf(" |\n");
    fflush(stdout);
  }
}

/* --- exponents --- */

/* Fewest steps of a method to `error`, whatever its perturbations: a pipeline without end. */
typedef struct point {
  const char *name;
  int n;
  double error;
  lab_method by;
  double steps; /* found; INFINITY: none */
} point;

static void *find_steps(void *user) {
  static const double endless = 1e7;
  point *p = user;
  lab_loss f;
  lab_answer simple, best;
  if (!lab_loss_make(p->name, p->n, 0, 1, &f)) exit(2);
  const double goal = f.least + p->error;
  const lab_question q = {.loss = &f,
                          .seed = 1,
                          .n_depths = 1,
                          .n_goals = 1,
                          .depths = &endless,
                          .goals = &goal,
                          .most_gradients = 20000,
                          .shift = 1};
  if (p->by == LAB_PPRS) lab_tune_time(&q, LAB_SUBGRADIENT, NULL, simple);
  lab_tune_time(&q, p->by, p->by == LAB_PPRS ? simple : NULL, best);
  lab_loss_free(&f);
  p->steps = best[0][0].steps ? (double)best[0][0].steps : INFINITY;
  return NULL;
}

enum { MOST_POINTS = 8 };

static void find_all_steps(point *points, int n, double *out) {
  pthread_t threads[MOST_POINTS];
  for (int i = 0; i < n; i++)
    if (pthread_create(&threads[i], NULL, find_steps, &points[i]) != 0) exit(1);
  for (int i = 0; i < n; i++) {
    pthread_join(threads[i], NULL);
    out[i] = points[i].steps;
  }
}

static void print_slope(const char *title, const char *theory, const double *x, const double *y,
                        int n) {
  printf("%s: %.2f (theory %s); steps", title, log_slope(x, y, n), theory);
  for (int i = 0; i < n; i++) printf(" %g", y[i]);
  printf("\n");
  fflush(stdout);
}

static void print_slopes(void) {
  static const double errors[] = {1 / 8.0, 1 / 12.0, 1 / 16.0, 1 / 24.0, 1 / 32.0};
  static const int links[] = {50, 100, 200, 400, 800};
  static const double inner[] = {1 / 32.0, 1 / 45.0, 1 / 64.0, 1 / 91.0, 1 / 128.0};
  static const double dims[] = {64, 128, 256, 512};
  enum { N = 5, N_DIMS = 4 };
  double x[N], y[N];
  point points[N];
  /* The dimension that an error is hardest in. */
  for (int i = 0; i < N; i++)
    points[i] =
      (point){"max", (int)(0.25 / (errors[i] * errors[i])), errors[i], LAB_SUBGRADIENT, 0};
  find_all_steps(points, N, y);
  print_slope("subgradient method over the error", "-2", errors, y, N);
  for (int i = 0; i < N; i++) { /* the error that half as many gradients cannot get below */
    const double error = 1 / (8.0 * (links[i] + 1)), reach2 = (links[i] + 1) / 3.0;
    x[i] = error / reach2;
    points[i] = (point){"chain", links[i], error, LAB_NESTEROV, 0};
  }
  find_all_steps(points, N, y);
  print_slope("Nesterov on the chain over error / (B R^2)", "-0.5", x, y, N);
  for (int i = 0; i < N; i++) points[i] = (point){"max", 256, inner[i], LAB_PPRS, 0};
  find_all_steps(points, N, y);
  print_slope("PPRS over the error, 256 weights", "-1", inner, y, N);
  for (int i = 0; i < N_DIMS; i++) points[i] = (point){"max", (int)dims[i], 1 / 64.0, LAB_PPRS, 0};
  find_all_steps(points, N_DIMS, y);
  print_slope("PPRS over the number of weights, error 1/64", "0.25", dims, y, N_DIMS);
}

/* --- bounds --- */

static double draw(uint64_t run, unsigned what) {
  const psplit_i_random_stream stream = {
    .seed = 5, .use = PSPLIT_I_RANDOM_TEST, .major = (uint32_t)run, .minor = what};
  return psplit_i_random_uniform(&stream, 0);
}

/* One run of a method that stays in the span of its gradients; false: it was faster than it can be.
 */
static bool hold_bound(uint64_t number, uint64_t *io_arrived, double *io_closest) {
  static const lab_method methods[] = {LAB_SUBGRADIENT, LAB_NESTEROV, LAB_DELAYED,
                                       LAB_DELAYED_NESTEROV};
  const bool smooth = draw(number, 0) < 0.3;
  const int n = 5 + 2 * (int)(draw(number, 1) * 100);
  const lab_setting s = {.by = methods[(int)(draw(number, 2) * 4)],
                         .form = draw(number, 3) < 0.5,
                         .step = pow(2, -8 + 10 * draw(number, 4)),
                         .n_perturbations = 1,
                         .delay = draw(number, 5) < 0.5 ? 0 : (int)(draw(number, 6) * 20)};
  lab_loss f;
  psplit_diag diag = {0};
  psplit_training_limit limit;
  uint64_t steps;
  if (!lab_loss_make(smooth ? "chain" : "max", n, 0, 1, &f)) exit(2);
  /* On the chain of n links the bound holds from n / 2 gradients on: Bubeck, theorem 3.14. */
  const double reach2 = smooth ? (n + 1) / 3.0 : 1,
               first = smooth ? 1 / (8.0 * (n + 1)) : f.value(&f, f.start, NULL) - f.least,
               error = first * pow(10, -2 * draw(number, 7)), goal = f.least + error;
  const psplit_training_input input = {
    .loss = smooth ? PSPLIT_LOSS_SMOOTH : PSPLIT_LOSS_NONSMOOTH,
    .depth = 1,
    .n_samples = 1,
    .dimension = n,
    .accuracy = error / reach2,
  };
  if (psplit_limits_training(&input, &diag, &limit) != PSPLIT_OK) {
    fprintf(stderr, "%s\n", diag.message);
    exit(1);
  }
  lab_run(&f, &s, 1, &goal, 1, 4000, &steps);
  lab_loss_free(&f);
  if (!steps) return true;
  ++*io_arrived;
  const double ratio = (double)steps / limit.least_gradients;
  if (limit.least_gradients >= 1 && ratio < *io_closest) *io_closest = ratio;
  return (double)steps >= limit.least_gradients;
}

static int print_bounds(uint64_t n) {
  uint64_t below = 0, arrived = 0;
  double closest = INFINITY;
  for (uint64_t i = 0; i < n; i++)
    if (!hold_bound(i, &arrived, &closest)) below++;
  printf("%" PRIu64 " runs, %" PRIu64 " arrived, %" PRIu64
         " below the lower bound; the closest took %.3f times it\n",
         n, arrived, below, closest);
  return below ? 1 : 0;
}

/* --- the command --- */

static int read_list(const char *text, double *out, int most) {
  int n = 0;
  for (char *end; *text && n < most; text = *end == ',' ? end + 1 : end) {
    out[n++] = strtod(text, &end);
    if (end == text) return 0;
  }
  return n;
}

static int usage(void) {
  fprintf(stderr,
          "pprs LOSS... [--dim N] [--depths A,...] [--accuracies A,...] [--seeds N] "
          "[--shift X] [--gradients N] [--waiting] [--details]\n"
          "losses: max max-start chain l1 hinge relu; or --slopes, or --bounds N\n");
  return 2;
}

int main(int argc, char **argv) {
  settings s = {.dim = 256,
                .n_seeds = 5,
                .n_depths = 5,
                .n_goals = 2,
                .n_methods = LAB_N_METHODS,
                .depths = {1, 4, 16, 64, 256},
                .accuracies = {0.25, 0.1},
                .shift = 1,
                .gradients = 5000};
  const char *names[8];
  int n_names = 0;
  lab_normal_prepare();
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (argv[i][0] != '-' && n_names < 8) {
      names[n_names++] = argv[i];
      continue;
    }
    if (strcmp(argv[i], "--slopes") == 0) return print_slopes(), 0;
    if (strcmp(argv[i], "--bounds") == 0) return print_bounds(strtoull(value, NULL, 10));
    if (strcmp(argv[i], "--details") == 0) {
      s.details = true;
      continue;
    }
    if (strcmp(argv[i], "--waiting") == 0) {
      s.n_methods = LAB_DELAYED;
      continue;
    }
    if (strcmp(argv[i], "--dim") == 0)
      s.dim = atoi(value);
    else if (strcmp(argv[i], "--seeds") == 0)
      s.n_seeds = atoi(value);
    else if (strcmp(argv[i], "--shift") == 0)
      s.shift = atof(value);
    else if (strcmp(argv[i], "--gradients") == 0)
      s.gradients = atof(value);
    else if (strcmp(argv[i], "--depths") == 0)
      s.n_depths = read_list(value, s.depths, LAB_MOST_DEPTHS);
    else if (strcmp(argv[i], "--accuracies") == 0)
      s.n_goals = read_list(value, s.accuracies, LAB_MOST_GOALS);
    else
      return usage();
    i++;
  }
  if (!n_names || s.dim < 2 || s.dim > 65536 || s.n_seeds < 1 || s.n_seeds > MOST_SEEDS ||
      s.n_depths < 1 || s.n_goals < 1 || !(s.shift > 0) || !(s.gradients >= 1))
    return usage();
  for (int i = 0; i < n_names; i++) {
    lab_loss probe;
    const bool net = strcmp(names[i], "relu") == 0;
    if (!lab_loss_make(names[i], s.dim, net ? 1 : 0, 1, &probe)) return usage();
    lab_loss_free(&probe);
    if (net)
      print_nets(&s);
    else
      print_times(names[i], &s);
    fflush(stdout);
  }
  return 0;
}
