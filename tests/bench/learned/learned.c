/* Bench of learned splits beside all else that finds some: a row for each problem.
 *
 *   bench_learned --policy FILE [--list LIST] [--dir DIR] [--stages K[,K...]|given] [--proposals N]
 *                 [--work SECONDS]
 *
 * LIST: lines of listed.h; DIR: *.json problems, e.g. the published ones. Values are over the best
 * bound of the problem; `*` behind the bound's name says that it is proved to be the optimum. CPU
 * times are ms. In the end geometric means, and wins, ties and losses against `random`, with
 * Wilcoxon's signed-rank test. */
#include <dirent.h>
#include <math.h>
#include <psplit/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "baselines.h"
#include "listed.h"

/* Ways to a split, in the order of columns. */
typedef enum way {
  WAY_AUTO,
  WAY_SEARCH,
  WAY_ANNEAL,
  WAY_EVEN,
  WAY_PIPEDREAM,
  WAY_ISLANDS,
  WAY_COPIES,
  WAY_SLICE,
  WAY_RANDOM,
  WAY_UNTRAINED,
  WAY_GREEDY,
  WAY_BEST,
  WAY_SLICED,
  WAY_SLICED_1,
  WAY_START,
  N_WAYS
} way;

static const char *const kWays[N_WAYS] = {
  "auto",       "search",    "anneal", "even", "pipedream",  "islands",      "copies",      "slice",
  "rand+slice", "untrained", "greedy", "best", "best+slice", "greedy+slice", "start+search"};

enum { MOST_ROWS = 512 };

typedef struct bench {
  psplit_policy *policy, *untrained;
  uint32_t n_proposals;
  double work;
  bool times; /* of the policy alone */
  uint32_t n_rows, n_proved, n_invalid;
  double ratio[MOST_ROWS][N_WAYS]; /* value over bound; 0: not for this problem */
  double ms[MOST_ROWS][N_WAYS];
} bench;

static double cpu(void) { return (double)clock() * 1e3 / CLOCKS_PER_SEC; }

/* Random keys, for as many orders as the policy says. */
static psplit_code no_stages(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                             uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag) {
  (void)user, (void)seed, (void)attempt, (void)out_type, (void)diag;
  memset(out_stage, 0xff, items->n_items * sizeof *out_stage);
  return PSPLIT_OK;
}

static psplit_code random_keys(void *user, const psplit_items *items, uint64_t seed,
                               uint32_t attempt, uint32_t *out_key, psplit_diag *diag) {
  uint64_t x = seed * 977 + attempt + 1;
  (void)user, (void)diag;
  for (uint32_t i = 0; i < items->n_items; i++) {
    x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    out_key[i] = attempt == 0 ? i : (uint32_t)(x >> 33);
  }
  return PSPLIT_OK;
}

/* --- one problem --- */

/* The value of a solver, 0 where it fails; *out_own whether the split is the proposer's. */
static double solved(const bench *b, const psplit_problem *p, const char *solver,
                     const psplit_proposer *proposer, double work, double *out_ms,
                     double *out_bound, bool *out_own) {
  psplit_partition_options o;
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  psplit_partition_options_init(&o);
  o.solver = solver;
  o.proposer = proposer;
  o.n_threads = 1;
  o.time_limit_s = work > 0 ? work : b->work;
  const double start = cpu();
  const psplit_code code = psplit_partition_solve(p, &o, &diag, &s);
  *out_ms = cpu() - start;
  if (code != PSPLIT_OK) {
    fprintf(stderr, "%s: %s\n", solver, diag.message);
    return 0;
  }
  const double value = (double)s->objective_ns;
  if (out_bound) *out_bound = (double)s->lower_bound_ns;
  if (out_own) *out_own = strncmp(s->solver, "drlpp", 5) == 0;
  psplit_solution_destroy(s);
  return value;
}

static double proposed(bench *b, const psplit_problem *p, const psplit_policy *policy,
                       uint32_t n_proposals, const char *solver, double *out_ms, bool *out_own) {
  psplit_proposer *proposer;
  psplit_diag diag = {0};
  if (psplit_policy_proposer_create(policy, n_proposals, &diag, &proposer) != PSPLIT_OK) return 0;
  const double value = solved(b, p, solver, proposer, 1000, out_ms, NULL, out_own);
  psplit_policy_proposer_destroy(proposer);
  return value;
}

static const struct {
  way way;
  baseline of;
} kOthers[] = {{WAY_EVEN, BASELINE_EVEN},
               {WAY_PIPEDREAM, BASELINE_PIPEDREAM},
               {WAY_ISLANDS, BASELINE_ISLANDS},
               {WAY_COPIES, BASELINE_COPIES}};

static void row(bench *b, const char *name, const psplit_problem *p) {
  const uint32_t k = psplit_problem_n_stages(p);
  if (b->n_rows == MOST_ROWS) return;
  double *ratio = b->ratio[b->n_rows], *ms = b->ms[b->n_rows], value[N_WAYS] = {0}, bound = 0;
  bool own = false;
  const psplit_proposer random = {NULL, b->n_proposals, NULL, no_stages, random_keys};
  value[WAY_AUTO] = solved(b, p, "auto", NULL, 0, &ms[WAY_AUTO], &bound, NULL);
  if (value[WAY_AUTO] <= 0 || bound <= 0) return; /* nothing fits */
  const bool proved = bound == value[WAY_AUTO];
  value[WAY_SEARCH] = solved(b, p, "search", NULL, 0, &ms[WAY_SEARCH], NULL, NULL);
  value[WAY_ANNEAL] = solved(b, p, "anneal", NULL, 0, &ms[WAY_ANNEAL], NULL, NULL);
  value[WAY_SLICE] = solved(b, p, "slice", NULL, 0, &ms[WAY_SLICE], NULL, NULL);
  double others[N_BASELINES], others_ms[N_BASELINES];
  baselines_run(p, others, others_ms);
  for (uint32_t i = 0; i < sizeof kOthers / sizeof *kOthers; i++) {
    value[kOthers[i].way] = others[kOthers[i].of];
    ms[kOthers[i].way] = others_ms[kOthers[i].of];
  }
  value[WAY_RANDOM] = solved(b, p, "drlpp+slice", &random, 1000, &ms[WAY_RANDOM], NULL, NULL);
  value[WAY_UNTRAINED] = proposed(b, p, b->untrained, 1, "drlpp", &ms[WAY_UNTRAINED], &own);
  if (!own) value[WAY_UNTRAINED] = 0;
  value[WAY_GREEDY] = proposed(b, p, b->policy, 1, "drlpp", &ms[WAY_GREEDY], &own);
  b->n_invalid += !own;
  if (!own) value[WAY_GREEDY] = 0;
  value[WAY_BEST] = proposed(b, p, b->policy, b->n_proposals, "drlpp", &ms[WAY_BEST], &own);
  if (!own) value[WAY_BEST] = 0;
  value[WAY_SLICED] =
    proposed(b, p, b->policy, b->n_proposals, "drlpp+slice", &ms[WAY_SLICED], NULL);
  value[WAY_SLICED_1] = proposed(b, p, b->policy, 1, "drlpp+slice", &ms[WAY_SLICED_1], NULL);
  psplit_proposer *proposer;
  if (psplit_policy_proposer_create(b->policy, b->n_proposals, NULL, &proposer) == PSPLIT_OK) {
    value[WAY_START] = solved(b, p, "search", proposer, 0, &ms[WAY_START], NULL, NULL);
    psplit_policy_proposer_destroy(proposer);
  }
  printf("%-46.46s %6u %4u %14.0f%s", name, p->n_nodes, k, bound, proved ? "*" : " ");
  for (uint32_t w = 0; w < N_WAYS; w++) {
    ratio[w] = value[w] / bound;
    if (value[w] > 0)
      printf(" %6.3f %7.1f", ratio[w], ms[w]);
    else
      printf("      -       -");
  }
  printf("\n");
  fflush(stdout);
  b->n_proved += proved;
  b->n_rows++;
}

/* --- time of the policy itself --- */

/* A proposer that counts what another one takes. */
typedef struct timed {
  const psplit_proposer *inner;
  double ms;
  uint32_t n_items;
} timed;

static psplit_code timed_begin(void *user, const psplit_items *items, psplit_diag *diag) {
  timed *t = user;
  t->n_items = items->n_items;
  return t->inner->begin(t->inner->user, items, diag);
}

static psplit_code timed_stages(void *user, const psplit_items *items, uint64_t seed,
                                uint32_t attempt, uint32_t *out_stage, uint32_t *out_type,
                                psplit_diag *diag) {
  timed *t = user;
  const double start = cpu();
  const psplit_code code =
    t->inner->stages(t->inner->user, items, seed, attempt, out_stage, out_type, diag);
  t->ms += cpu() - start;
  return code;
}

/* CPU time of the likeliest choices, the least of five, and with all that the solver does beside
 * them: reductions, the bound and the check. */
static void row_of_times(bench *b, const char *name, const psplit_problem *p) {
  enum { TIMES = 5 };
  double least[2] = {0};
  uint32_t n_items = 0;
  for (int k = 0; k < TIMES; k++) {
    psplit_proposer *policy;
    double ms;
    if (psplit_policy_proposer_create(b->policy, 1, NULL, &policy) != PSPLIT_OK) return;
    timed t = {.inner = policy};
    const psplit_proposer proposer = {&t, 1, timed_begin, timed_stages, policy->keys};
    solved(b, p, "drlpp", &proposer, 1000, &ms, NULL, NULL);
    psplit_policy_proposer_destroy(policy);
    if (k == 0 || t.ms < least[0]) least[0] = t.ms;
    if (k == 0 || ms < least[1]) least[1] = ms;
    n_items = t.n_items;
  }
  printf("%-46.46s %6u %6u %4u %10.1f %10.1f\n", name, p->n_nodes, n_items,
         psplit_problem_n_stages(p), least[0], least[1]);
  fflush(stdout);
}

/* --- all of them --- */

static int by_size(const void *a, const void *b) {
  const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
  return x < y ? -1 : x > y;
}

/* Wins, ties and losses of one way against another, and the chance of so uneven ranks if neither
 * were better: Wilcoxon's test by the normal approximation, ties of size with mean ranks. */
static void compare(const bench *b, way a, way against) {
  static double d[MOST_ROWS];
  uint32_t n = 0, wins = 0, losses = 0, rows = 0;
  double up = 0, variance = 0;
  for (uint32_t r = 0; r < b->n_rows; r++) {
    if (b->ratio[r][a] <= 0 || b->ratio[r][against] <= 0) continue;
    rows++;
    const double x = log(b->ratio[r][a] / b->ratio[r][against]);
    if (fabs(x) < 1e-12) continue;
    d[n++] = x;
    wins += x < 0;
    losses += x > 0;
  }
  qsort(d, n, sizeof *d, by_size);
  for (uint32_t i = 0, j; i < n; i = j) {
    for (j = i; j < n && fabs(d[j]) <= fabs(d[i]) * (1 + 1e-12); j++) {
    }
    const double rank = (i + 1 + j) / 2.0;
    for (uint32_t k = i; k < j; k++) {
      if (d[k] > 0) up += rank;
      variance += rank * rank / 4;
    }
  }
  const double mean = n * (n + 1.0) / 4;
  const double z = variance > 0 ? (up - mean) / sqrt(variance) : 0;
  printf("%-13s against %-12s: %3u wins, %3u ties, %3u losses; signed ranks z = %+.2f, p = %.2g\n",
         kWays[a], kWays[against], wins, rows - wins - losses, losses, z, erfc(fabs(z) / sqrt(2)));
}

static void summarize(const bench *b) {
  printf("\n%u problems, %u proved optimal; the likeliest choices broke memory or an order in %u\n",
         b->n_rows, b->n_proved, b->n_invalid);
  printf("%-14s %8s %8s %8s %8s %10s\n", "way", "problems", "mean", "median", "worst", "ms, mean");
  for (uint32_t w = 0; w < N_WAYS; w++) {
    static double sorted[MOST_ROWS];
    double sum = 0, time = 0;
    uint32_t n = 0;
    for (uint32_t r = 0; r < b->n_rows; r++) {
      if (b->ratio[r][w] <= 0) continue;
      sorted[n++] = b->ratio[r][w];
      sum += log(b->ratio[r][w]);
      time += b->ms[r][w];
    }
    if (n == 0) continue;
    qsort(sorted, n, sizeof *sorted, by_size);
    printf("%-14s %8u %8.4f %8.4f %8.4f %10.1f\n", kWays[w], n, exp(sum / n), sorted[n / 2],
           sorted[n - 1], time / n);
  }
  compare(b, WAY_SLICED, WAY_RANDOM);
  compare(b, WAY_SLICED_1, WAY_SLICE);
  compare(b, WAY_START, WAY_SEARCH);
  compare(b, WAY_GREEDY, WAY_PIPEDREAM);
  compare(b, WAY_GREEDY, WAY_UNTRAINED);
  compare(b, WAY_SLICED, WAY_AUTO);
}

static int is_json(const struct dirent *entry) {
  const size_t n = strlen(entry->d_name);
  return n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static int run_directory(bench *b, const char *dir, const char *stages) {
  struct dirent **entries;
  const int n = scandir(dir, &entries, is_json, alphasort);
  if (n < 0) {
    fprintf(stderr, "error: %s: cannot read the directory\n", dir);
    return 3;
  }
  for (int i = 0; i < n; i++) {
    char path[4096], name[512];
    psplit_diag diag = {0};
    psplit_problem *p;
    snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
    if (psplit_problem_read_json(path, &diag, &p) != PSPLIT_OK) {
      fprintf(stderr, "error: %s\n", diag.message);
      return 4;
    }
    if (strcmp(stages, "given") == 0) row(b, entries[i]->d_name, p);
    for (const char *at = strcmp(stages, "given") ? stages : NULL; at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
      /* The published ones have CPUs beside accelerators: without them. */
      psplit_device one = p->devices[0];
      psplit_problem q = *p;
      one.count = (uint32_t)strtoul(at, NULL, 10);
      q.devices = &one;
      q.n_devices = 1;
      snprintf(name, sizeof name, "%s k%u", entries[i]->d_name, one.count);
      row(b, name, &q);
    }
    psplit_problem_destroy(p);
    free(entries[i]);
  }
  free(entries);
  return 0;
}

static int run_list(bench *b, const char *path) {
  char line[512], name[128];
  FILE *list = fopen(path, "r");
  if (!list) {
    fprintf(stderr, "error: %s: cannot be read\n", path);
    return 3;
  }
  while (fgets(line, sizeof line, list)) {
    listed l;
    if (!listed_make(line, &l)) continue;
    listed_name(&l, name, sizeof name);
    (b->times ? row_of_times : row)(b, name, &l.problem);
    listed_fini(&l);
  }
  fclose(list);
  return 0;
}

int main(int argc, char **argv) {
  static bench b = {.n_proposals = 32, .work = 1};
  const char *policy = NULL, *list = NULL, *dir = NULL, *stages = "4,8,16";
  psplit_diag diag = {0};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--policy") == 0) policy = argv[i + 1];
    if (strcmp(argv[i], "--list") == 0 || strcmp(argv[i], "--times") == 0) list = argv[i + 1];
    if (strcmp(argv[i], "--times") == 0) b.times = true;
    if (strcmp(argv[i], "--dir") == 0) dir = argv[i + 1];
    if (strcmp(argv[i], "--stages") == 0) stages = argv[i + 1];
    if (strcmp(argv[i], "--proposals") == 0)
      b.n_proposals = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--work") == 0) b.work = strtod(argv[i + 1], NULL);
  }
  if (!policy || b.n_proposals == 0) {
    fputs(
      "usage: bench_learned --policy FILE [--list LIST|--times LIST] [--dir DIR] [--stages "
      "K,...|given] "
      "[--proposals N] [--work SECONDS]\n",
      stderr);
    return 2;
  }
  if (psplit_policy_read(policy, &diag, &b.policy) != PSPLIT_OK ||
      psplit_policy_create(1, &diag, &b.untrained) != PSPLIT_OK) {
    fprintf(stderr, "error: %s\n", diag.message);
    return 4;
  }
  if (b.times)
    printf("%-46s %6s %6s %4s %10s %10s", "problem", "nodes", "items", "K", "ms", "solver, ms");
  else
    printf("%-46s %6s %4s %15s", "problem", "nodes", "K", "bound");
  for (uint32_t w = 0; w < N_WAYS && !b.times; w++) printf(" %14s", kWays[w]);
  printf("\n");
  int status = list ? run_list(&b, list) : 0;
  if (status == 0 && dir) status = run_directory(&b, dir, stages);
  if (!b.times) summarize(&b);
  psplit_policy_destroy(b.policy);
  psplit_policy_destroy(b.untrained);
  return status;
}
