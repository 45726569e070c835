/* Bench of the partitioner: one line for every problem and number of threads.
 *
 *   bench_partition [--dir DIR | --kind KIND --nodes N | --grid N | --regal N] [--stages K]
 *                   [--baselines | --seeds N]
 *                   [--threads T[,T...]] [--repeat R] [--solver NAME] [--comm FACTOR]
 *                   [--work-limit SECONDS | --time-limit SECONDS] [--variant VARIANT]
 *
 * Without DIR and KIND: stand-ins with the structure of the published problems, which are not part
 * of the project (docs/partitioning/figures.md says where they are). KIND: transformer (repeated
 * blocks), layered (random layers), chain, wide (layers of 1,000), experts (mixtures of 128), unet,
 * dense (blocks of 32), one of partition_hard.c (encoder, vocoder, detector, nested,
 * power-flow, experts-256),
 * or a model of random graphs (erdos-renyi, barabasi-albert, watts-strogatz, stochastic-block);
 * all tensors cost FACTOR times as much.
 *
 * VARIANT: free (placement in any order), chunks (two a device), latency, calls, fill-drain (of
 * problems with backward nodes); default: throughput.
 *
 * --seeds: each problem with seeds 1 to N, and how far values differ: the largest over the least.
 *
 * --regal: N random graphs of 50 to 200 nodes, of those models in turn (random_graphs.c).
 *
 * --baselines: beside the solver what others do (baselines.h), in one row; without CPUs where there
 * are some.
 *
 * --grid: all kinds, or KIND, 1,000 nodes up to N, K = 2, 16, 128, 1,024, and how time grows.
 *
 * `cpu s` is the processor time of all threads, `busy s` that of the busiest: on a machine that
 * others use as well, `cpu s` of one thread over `busy s` of two says what two threads gain.
 * `of limit` says how a limit was kept: of one that counts work, `cpu s` over it; of one of the
 * clock, the seconds beyond it and, in brackets, the processor time since it struck, which is the
 * same on a machine that others use as well. The grid ends with the worst of it, of each row the
 * best of R runs. Exit status 1: the answer depends on the number of threads. */
#include <dirent.h>
#include <math.h>
#include <omp.h>
#include <psplit/partition.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "partition_make.h"
#include "side_by_side.h"

enum { MAX_THREAD_COUNTS = 8, MAX_THREADS = 256 };

/* What one run says of itself. */
typedef struct outcome {
  uint64_t hash; /* of the answer; 0: there is none */
  double seconds, cpu, busy;
  double late; /* processor time since a limit of the clock struck */
} outcome;

typedef struct bench {
  const char *dir, *kind;
  uint32_t nodes, stages, n_threads, repeat;
  uint32_t threads[MAX_THREAD_COUNTS];
  psplit_partition_options options;
  int64_t comm; /* tensors cost so many times as much */
  bool grid, differ, baselines;
  uint32_t n_random; /* random graphs */
  uint64_t seed;     /* of a generated problem; 0: its own */
  uint32_t n_seeds;  /* of the solver: how far they differ */
  double most_spread;
  side_by_side table;
  outcome least; /* of the runs of the last problem */
} bench;

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double peak_mib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_maxrss / 1024;
}

/* Adds sign * the processor time that each thread of the pool has used so far. */
static void add_thread_times(int n_threads, double sign, double *seconds) {
#pragma omp parallel num_threads(n_threads)
  seconds[omp_get_thread_num()] += sign * now(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t hash_stages(const psplit_solution *s) {
  uint64_t hash = 14695981039346656037u;
  for (uint32_t v = 0; v < s->n_nodes; v++) hash = (hash ^ s->stage[v]) * 1099511628211u;
  return hash ^ (uint64_t)s->objective_ns ^ ((uint64_t)s->lower_bound_ns << 20);
}

/* Process time when the limit struck, seconds; negative: it did not. */
static volatile double struck;

static void on_alarm(int signal) {
  (void)signal;
  struck = now(CLOCK_PROCESS_CPUTIME_ID);
}

/* From now on; a limit of 0 has struck already. */
static void set_alarm(const psplit_partition_options *options) {
  const double limit = options->time_limit_s;
  struck = limit == 0 ? now(CLOCK_PROCESS_CPUTIME_ID) : -1;
  if (options->limit_by_work || !(limit > 0)) return;
  signal(SIGALRM, on_alarm);
  const struct itimerval once = {
    .it_value = {.tv_sec = (time_t)limit,
                 .tv_usec = (suseconds_t)((limit - (double)(time_t)limit) * 1e6)}};
  setitimer(ITIMER_REAL, &once, NULL);
}

/* How the limit was kept; see above. */
static void print_kept(const psplit_partition_options *options, const outcome *o) {
  const double limit = options->time_limit_s;
  if (limit < 0)
    printf(" %14s", "");
  else if (!options->limit_by_work)
    printf(" %+6.3f (%.3f)", o->seconds - limit, o->late);
  else if (limit > 0)
    printf(" %14.3f", o->cpu / limit);
  else
    printf(" %14s", "-");
}

/* Solves and prints. */
static outcome solve(const char *name, const psplit_problem *p,
                     const psplit_partition_options *options, double read_seconds) {
  psplit_diag diag = {0};
  psplit_solution *s;
  double busy[MAX_THREADS] = {0};
  outcome o = {0};
  const int n_threads = options->n_threads ? (int)options->n_threads : omp_get_max_threads();
  add_thread_times(n_threads, -1, busy);
  set_alarm(options);
  const double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  const psplit_code code = psplit_partition_solve(p, options, &diag, &s);
  o.seconds = now(CLOCK_MONOTONIC) - start;
  o.cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  if (struck >= 0) o.late = cpu + o.cpu - struck;
  add_thread_times(n_threads, 1, busy);
  for (int i = 0; i < n_threads; i++)
    if (busy[i] > o.busy) o.busy = busy[i];
  if (code != PSPLIT_OK) {
    printf("%-34s %8u %5u %s: %s\n", name, p->n_nodes, psplit_problem_n_stages(p),
           psplit_code_name(code), diag.message);
    return o;
  }
  printf("%-34s %8u %5u %16.6f %16.6f %8.4f %7.3f %8.3f %8.3f %8.3f", name, p->n_nodes,
         psplit_problem_n_stages(p), (double)s->objective_ns / p->ticks_per_unit,
         (double)s->lower_bound_ns / p->ticks_per_unit, s->gap_frac * 100, read_seconds, o.seconds,
         o.cpu, o.busy);
  print_kept(options, &o);
  printf(" %6.0f %3d %s\n", peak_mib(), n_threads, s->solver);
  o.hash = hash_stages(s);
  psplit_solution_destroy(s);
  return o;
}

/* Each run in a process of its own, so that its memory is its own. */
static outcome solve_apart(const char *name, const psplit_problem *p,
                           const psplit_partition_options *options, double read_seconds) {
  int ends[2];
  outcome o = {0};
  if (pipe(ends) != 0) return o;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    o = solve(name, p, options, read_seconds);
    fflush(stdout);
    _exit(write(ends[1], &o, sizeof o) == (ssize_t)sizeof o ? 0 : 1);
  }
  close(ends[1]);
  if (child < 0 || read(ends[0], &o, sizeof o) != (ssize_t)sizeof o) o = (outcome){0};
  close(ends[0]);
  if (child > 0) waitpid(child, NULL, 0);
  return o;
}

/* One row for all seeds: their mean value, and how far they differ. */
static void report_seeds(bench *b, const char *name, const psplit_problem *p) {
  int64_t least = INT64_MAX, most = 0, bound = 0;
  double sum = 0;
  const double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  b->options.n_threads = b->threads[0];
  for (b->options.seed = 1; b->options.seed <= b->n_seeds; b->options.seed++) {
    psplit_diag diag = {0};
    psplit_solution *s;
    if (psplit_partition_solve(p, &b->options, &diag, &s) != PSPLIT_OK) {
      printf("%-34s %8u %5u %s\n", name, p->n_nodes, psplit_problem_n_stages(p), diag.message);
      return;
    }
    if (s->objective_ns < least) least = s->objective_ns;
    if (s->objective_ns > most) most = s->objective_ns;
    sum += (double)s->objective_ns;
    if (s->lower_bound_ns > bound) bound = s->lower_bound_ns;
    psplit_solution_destroy(s);
  }
  const double spread = least > 0 ? (double)(most - least) / (double)least * 100 : 0;
  if (spread > b->most_spread) b->most_spread = spread;
  printf("%-34s %8u %5u %16.6f %16.6f %16.6f %9.4f %16.6f %8.3f\n", name, p->n_nodes,
         psplit_problem_n_stages(p), (double)least / p->ticks_per_unit,
         sum / b->n_seeds / p->ticks_per_unit, (double)most / p->ticks_per_unit, spread,
         (double)bound / p->ticks_per_unit, (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / b->n_seeds);
  fflush(stdout);
}

static double less(double a, double b) { return a < b ? a : b; }

static void report(bench *b, const char *name, const psplit_problem *p, double read_seconds) {
  if (b->baselines) {
    side_by_side_row(&b->table, name, p, &b->options);
    return;
  }
  if (b->n_seeds) {
    report_seeds(b, name, p);
    return;
  }
  for (uint32_t r = 0; r < b->repeat; r++)
    for (uint32_t t = 0; t < b->n_threads; t++) {
      b->options.n_threads = b->threads[t];
      const outcome o = solve_apart(name, p, &b->options, read_seconds);
      if (r == 0 && t == 0) b->least = o;
      if (o.hash != b->least.hash) b->differ = true;
      b->least.seconds = less(o.seconds, b->least.seconds);
      b->least.cpu = less(o.cpu, b->least.cpu);
      b->least.busy = less(o.busy, b->least.busy);
      b->least.late = less(o.late, b->least.late);
    }
}

static void bench_generated(bench *b) {
  const psplit_device device = {.count = b->stages ? b->stages : 16};
  maker m;
  maker_init(&m, b->nodes + 512);
  if (b->seed) m.state = b->seed;
  made_shape_named(b->kind)->make(&m, b->nodes);
  for (uint32_t e = 0; e < m.n_nets; e++) m.send[e] *= b->comm;
  psplit_problem p = maker_problem(&m, &device, 1);
  p.comm = PSPLIT_COMM_P2P;
  report(b, b->kind, &p, 0);
  maker_fini(&m);
}

/* As REGAL's synthetic set, on two devices unless --stages says otherwise. */
static void bench_random(bench *b) {
  if (!b->stages) b->stages = 2;
  for (uint32_t i = 0; i < b->n_random; i++) {
    b->kind = kMadeRandom[i % kNMadeRandom].name;
    b->seed = i + 1;
    b->nodes = 50 + i * 37 % 151;
    bench_generated(b);
  }
}

/* Least squares of log time = c + x log nodes + y log stages. */
typedef struct growth {
  double n, x, y, t, xx, xy, yy, xt, yt;
} growth;

static void growth_add(growth *g, double n_nodes, double n_stages, double seconds) {
  const double x = log(n_nodes), y = log(n_stages), t = log(seconds);
  g->n += 1;
  g->x += x, g->y += y, g->t += t;
  g->xx += x * x, g->xy += x * y, g->yy += y * y;
  g->xt += x * t, g->yt += y * t;
}

static void growth_print(const growth *g, const char *name) {
  const double xx = g->xx - g->x * g->x / g->n, yy = g->yy - g->y * g->y / g->n;
  const double xy = g->xy - g->x * g->y / g->n;
  const double xt = g->xt - g->x * g->t / g->n, yt = g->yt - g->y * g->t / g->n;
  const double determinant = xx * yy - xy * xy;
  if (g->n < 3 || determinant <= 0) return;
  printf("%-34s time grows as nodes^%.2f K^%.2f\n", name, (xt * yy - yt * xy) / determinant,
         (yt * xx - xt * xy) / determinant);
}

/* All shapes, from 1,000 nodes tenfold up to b->nodes, into 2, 16, 128 and 1,024 stages; behind
 * each shape, how its processor time grows; in the end, how the limit was kept at worst. */
static void bench_grid(bench *b) {
  const uint32_t most = b->nodes ? b->nodes : 1000000;
  const char *only = b->kind;
  const bool by_work = b->options.limit_by_work;
  const double limit = b->options.time_limit_s;
  double worst = 0, worst_late = 0;
  for (uint32_t i = 0; i < kNMadeShapes; i++) {
    growth grows = {0};
    b->kind = kMadeShapes[i].name;
    if (only && strcmp(only, b->kind) != 0) continue;
    for (b->stages = 2; b->stages <= 1024; b->stages *= 8)
      for (b->nodes = 1000; b->nodes <= most; b->nodes *= 10) {
        if (b->nodes < 2 * b->stages) continue;
        bench_generated(b);
        growth_add(&grows, b->nodes, b->stages, b->least.cpu);
        const double kept = by_work ? b->least.cpu / limit : b->least.seconds - limit;
        if (kept > worst) worst = kept;
        if (b->least.late > worst_late) worst_late = b->least.late;
      }
    growth_print(&grows, b->kind);
  }
  if (by_work && limit > 0)
    printf("at worst %.3f times the limit of work\n", worst);
  else if (!by_work && limit >= 0)
    printf("at worst %.3f s beyond the limit, %.3f s of processor time since then\n", worst,
           worst_late);
}

/* As the published problems are: tensors over shared memory, accelerators in any order. */
static void bench_families(bench *b) {
  for (uint32_t i = 0; i < kNMadeFamilies; i++) {
    const psplit_device device = {.count = b->stages ? b->stages : kMadeFamilies[i].n_stages};
    maker m;
    make_family(&kMadeFamilies[i], &m);
    psplit_problem p = maker_problem(&m, &device, 1);
    p.comm = PSPLIT_COMM_SHARED;
    p.any_device_order = true;
    report(b, kMadeFamilies[i].name, &p, 0);
    maker_fini(&m);
  }
}

static int is_json(const struct dirent *entry) {
  const size_t n = strlen(entry->d_name);
  return n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

/* --stages: so many of the first entry; further entries stay, of other classes (CPUs). Problems of
 * models list each device alone. */
static uint32_t with_stages(const bench *b, psplit_device *devices, uint32_t n) {
  uint32_t kept = 1;
  if (!b->stages) return n;
  devices[0].count = b->stages;
  for (uint32_t d = 1; d < n; d++)
    if (devices[d].class_id != devices[0].class_id) devices[kept++] = devices[d];
  return kept;
}

static int bench_directory(bench *b) {
  struct dirent **entries;
  const int n = scandir(b->dir, &entries, is_json, alphasort);
  if (n < 0) {
    fprintf(stderr, "error: %s: cannot read the directory\n", b->dir);
    return 3;
  }
  const double start = now(CLOCK_MONOTONIC);
  for (int i = 0; i < n; i++) {
    char path[4096];
    psplit_diag diag = {0};
    psplit_problem *p;
    snprintf(path, sizeof path, "%s/%s", b->dir, entries[i]->d_name);
    const double before = now(CLOCK_MONOTONIC);
    if (psplit_problem_read_json(path, &diag, &p) != PSPLIT_OK) {
      fprintf(stderr, "error: %s\n", diag.message);
      return 4;
    }
    psplit_problem q = *p;
    psplit_device *devices = malloc((p->n_devices + 1) * sizeof *devices);
    if (!devices) return 6;
    memcpy(devices, p->devices, p->n_devices * sizeof *devices);
    q.devices = devices;
    q.n_devices = with_stages(b, devices, p->n_devices);
    report(b, entries[i]->d_name, &q, now(CLOCK_MONOTONIC) - before);
    free(devices);
    psplit_problem_destroy(p);
    free(entries[i]);
  }
  free(entries);
  printf("total %.3f s\n", now(CLOCK_MONOTONIC) - start);
  return 0;
}

static uint32_t read_threads(const char *list, uint32_t *threads) {
  uint32_t n = 0;
  for (const char *at = list; n < MAX_THREAD_COUNTS;) {
    char *end;
    const unsigned long count = strtoul(at, &end, 10);
    threads[n++] = (uint32_t)(count < MAX_THREADS ? count : MAX_THREADS);
    if (end == at || *end != ',') break;
    at = end + 1;
  }
  return n;
}

static const char USAGE[] =
  "usage: bench_partition [--dir DIR | --kind KIND --nodes N | --grid N | --regal N] [--stages K]\n"
  "                       [--baselines | --seeds N]\n"
  "                       [--threads T[,T...]] [--repeat R] [--solver NAME] [--comm FACTOR]\n"
  "                       [--work-limit SECONDS | --time-limit SECONDS] [--variant VARIANT]\n"
  "KIND, VARIANT and columns: at the head of tests/bench/partition.c.\n";

static uint32_t count(const char *value) { return (uint32_t)strtoul(value, NULL, 10); }

static void take_variant(psplit_partition_options *options, const char *value) {
  options->noncontiguous = strcmp(value, "free") == 0;
  if (strcmp(value, "chunks") == 0) options->chunks = 2;
  if (strcmp(value, "latency") == 0) options->objective = PSPLIT_LATENCY;
  if (strcmp(value, "fill-drain") == 0) options->objective = PSPLIT_FILL_DRAIN;
  if (strcmp(value, "calls") == 0) options->objective = PSPLIT_CALL_LATENCY;
}

/* False: there is no such option. */
static bool take_option(bench *b, const char *option, const char *value) {
  const bool by_time = strcmp(option, "--time-limit") == 0;
  if (strcmp(option, "--seeds") == 0) {
    b->n_seeds = count(value);
  } else if (strcmp(option, "--regal") == 0) {
    b->n_random = count(value);
  } else if (strcmp(option, "--dir") == 0) {
    b->dir = value;
  } else if (strcmp(option, "--kind") == 0) {
    b->kind = value;
  } else if (strcmp(option, "--nodes") == 0 || strcmp(option, "--grid") == 0) {
    b->grid |= strcmp(option, "--grid") == 0;
    b->nodes = count(value);
  } else if (strcmp(option, "--stages") == 0) {
    b->stages = count(value);
  } else if (strcmp(option, "--threads") == 0) {
    b->n_threads = read_threads(value, b->threads);
  } else if (strcmp(option, "--repeat") == 0) {
    b->repeat = count(value);
  } else if (by_time || strcmp(option, "--work-limit") == 0) {
    b->options.time_limit_s = strtod(value, NULL);
    b->options.limit_by_work &= !by_time;
  } else if (strcmp(option, "--variant") == 0) {
    take_variant(&b->options, value);
  } else if (strcmp(option, "--comm") == 0) {
    b->comm = strtol(value, NULL, 10);
  } else if (strcmp(option, "--solver") == 0) {
    b->options.solver = value;
  } else {
    return false;
  }
  return true;
}

int main(int argc, char **argv) {
  bench b = {.repeat = 1, .n_threads = 1, .comm = 1};
  psplit_partition_options_init(&b.options);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) return fputs(USAGE, stdout) < 0;
    if (strcmp(argv[i], "--baselines") == 0) {
      b.baselines = true;
    } else if (i + 1 == argc || !take_option(&b, argv[i], argv[i + 1])) {
      fprintf(stderr, "error: %s is no option with a value\n%s", argv[i], USAGE);
      return 2;
    } else {
      i++;
    }
  }
  if (b.kind && !b.nodes) b.nodes = 10000;
  if (!b.kind && b.nodes && !b.grid) b.kind = "transformer";
  if (b.kind && !made_shape_named(b.kind)) {
    fprintf(stderr, "error: --kind %s: there is no such shape\n", b.kind);
    return 2;
  }
  if (b.baselines)
    side_by_side_begin(&b.table);
  else if (b.n_seeds)
    printf("%-34s %8s %5s %16s %16s %16s %9s %16s %8s\n", "problem", "nodes", "K", "least", "mean",
           "largest", "spread %", "best bound", "cpu s");
  else
    printf("%-34s %8s %5s %16s %16s %8s %7s %8s %8s %8s %14s %6s %3s %s\n", "problem", "nodes", "K",
           "value", "bound", "gap %", "read s", "solve s", "cpu s", "busy s", "of limit", "MiB",
           "thr", "solver");
  int status = 0;
  if (b.dir)
    status = bench_directory(&b);
  else if (b.grid)
    bench_grid(&b);
  else if (b.n_random)
    bench_random(&b);
  else if (b.kind)
    bench_generated(&b);
  else
    bench_families(&b);
  if (b.baselines) side_by_side_end(&b.table);
  if (b.n_seeds) printf("largest spread %.4f %%\n", b.most_spread);
  if (b.differ) fputs("error: the answer depends on the number of threads\n", stderr);
  return status ? status : b.differ;
}
