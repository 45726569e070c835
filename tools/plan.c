/* onnx-pipeline-plan: solve a bare partition problem, no ONNX involved. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <psplit/partition.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct settings {
  const char *path, *objective, *comm;
  psplit_partition_options options;
  long stages, cpus; /* -1: as the file says */
  bool overlap, json, quiet;
} settings;

enum {
  OPT_CPUS = 256,
  OPT_OBJECTIVE,
  OPT_NONCONTIGUOUS,
  OPT_CHUNKS,
  OPT_REPLICAS,
  OPT_SYNC,
  OPT_MICRO,
  OPT_COMM,
  OPT_OVERLAP,
  OPT_NONEMPTY,
  OPT_SOLVER,
  OPT_TIME,
  OPT_GAP,
  OPT_THREADS,
  OPT_SEED,
  OPT_MEMORY,
  OPT_JSON,
  OPT_QUIET,
  OPT_HELP,
  OPT_VERSION
};

/* One table: what getopt reads and what --help prints. */
static const struct {
  struct option option;
  const char *argument, *help;
} kOptions[] = {
  {{"stages", required_argument, NULL, 'k'}, "N", "number of accelerators (default: the file's)"},
  {{"cpus", required_argument, NULL, OPT_CPUS},
   "N",
   "number of CPUs beside them, for problems that have any"},
  {{"objective", required_argument, NULL, OPT_OBJECTIVE},
   "throughput|latency",
   "what to minimise: the slowest stage, or one sample's way through"},
  {{"non-contiguous", no_argument, NULL, OPT_NONCONTIGUOUS}, NULL, "any node on any device"},
  {{"chunks", required_argument, NULL, OPT_CHUNKS},
   "C",
   "virtual stages per device, for interleaved schedules (1)"},
  {{"replicas", required_argument, NULL, OPT_REPLICAS},
   "R",
   "data-parallel copies of one stage, at most (1)"},
  {{"sync-bandwidth", required_argument, NULL, OPT_SYNC},
   "BYTES/S",
   "between copies, for their weights (0: free)"},
  {{"micro-batches", required_argument, NULL, OPT_MICRO},
   "M",
   "micro-batches between two synchronisations (1)"},
  {{"comm", required_argument, NULL, OPT_COMM},
   "p2p|shared",
   "a tensor is sent to each receiving stage, or once to shared memory"},
  {{"overlap", no_argument, NULL, OPT_OVERLAP},
   NULL,
   "transfers overlap with compute: a load is the largest part, not the sum"},
  {{"no-empty-stages", no_argument, NULL, OPT_NONEMPTY},
   NULL,
   "every stage holds at least one node"},
  {{"solver", required_argument, NULL, OPT_SOLVER},
   "NAME",
   "auto, exact, search, anneal, multilevel, slice (auto)"},
  {{"time-limit", required_argument, NULL, OPT_TIME},
   "SECONDS",
   "stop then, with what there is (10); -1: none"},
  {{"gap", required_argument, NULL, OPT_GAP},
   "FRACTION",
   "stop when value and bound are this close (0)"},
  {{"threads", required_argument, NULL, OPT_THREADS},
   "N",
   "threads (all); never changes the answer"},
  {{"seed", required_argument, NULL, OPT_SEED}, "N", "of the random choices (1)"},
  {{"memory-cap", required_argument, NULL, OPT_MEMORY},
   "BYTES",
   "for the exact solver's tables (1 GiB)"},
  {{"json", no_argument, NULL, OPT_JSON}, NULL, "print the plan as JSON"},
  {{"quiet", no_argument, NULL, OPT_QUIET}, NULL, "no advice on stderr"},
  {{"help", no_argument, NULL, OPT_HELP}, NULL, "this text"},
  {{"version", no_argument, NULL, OPT_VERSION}, NULL, "the version"},
};
enum { N_OPTIONS = sizeof kOptions / sizeof *kOptions };

static int usage_error(const char *format, const char *what) {
  fputs("error: ", stderr);
  fprintf(stderr, format, what);
  fputs("; see onnx-pipeline-plan --help\n", stderr);
  return psplit_code_exit_status(PSPLIT_USAGE);
}

static void print_help(void) {
  puts(
    "Usage: onnx-pipeline-plan [OPTION]... PROBLEM.json\n"
    "Cut a weighted graph into pipeline stages and prove how good the cut is.\n"
    "PROBLEM.json: a psplit-problem or a dnn-partitioning problem (docs/partitioning.md).\n");
  for (int i = 0; i < N_OPTIONS; i++) {
    char left[64];
    const int code = kOptions[i].option.val;
    snprintf(left, sizeof left, "%s--%s%s%s", code == 'k' ? "-k, " : "    ",
             kOptions[i].option.name, kOptions[i].argument ? " " : "",
             kOptions[i].argument ? kOptions[i].argument : "");
    printf("  %-36s %s\n", left, kOptions[i].help);
  }
  puts(
    "\nExit status: 0 ok, 2 usage, 3 unreadable file, 4 invalid problem, 5 unsupported,\n"
    "6 limit exceeded, 7 infeasible, 70 internal error.");
}

static bool parse_number(const char *text, double low, double high, double *out) {
  char *end;
  errno = 0;
  const double value = strtod(text, &end);
  if (errno || end == text || *end || !(value >= low && value <= high)) return false;
  *out = value;
  return true;
}

static bool parse_count(const char *text, double high, double *out) {
  return parse_number(text, 0, high, out) && *out == (double)(uint64_t)*out;
}

/* -1: go on; otherwise the exit status. */
static int read_option(settings *s, int code) {
  psplit_partition_options *o = &s->options;
  double value = 0;
  bool ok = true;
  switch (code) {
    case 'k':
      ok = parse_count(optarg, 1e6, &value);
      s->stages = (long)value;
      break;
    case OPT_CPUS:
      ok = parse_count(optarg, 1e6, &value);
      s->cpus = (long)value;
      break;
    case OPT_CHUNKS:
      ok = parse_count(optarg, 1024, &value);
      o->chunks = (uint32_t)value;
      break;
    case OPT_REPLICAS:
      ok = parse_count(optarg, 65535, &value);
      o->max_replicas = (uint32_t)value;
      break;
    case OPT_MICRO:
      ok = parse_count(optarg, 1e6, &value);
      o->micro_batches = (uint32_t)value;
      break;
    case OPT_SYNC: ok = parse_number(optarg, 0, 1e18, &o->sync_bytes_per_s); break;
    case OPT_TIME: ok = parse_number(optarg, -1, 1e9, &o->time_limit_s); break;
    case OPT_GAP: ok = parse_number(optarg, 0, 1, &o->gap_frac); break;
    case OPT_THREADS:
      ok = parse_count(optarg, 1024, &value);
      o->n_threads = (uint32_t)value;
      break;
    case OPT_SEED:
      ok = parse_count(optarg, 0x1p53, &value);
      o->seed = (uint64_t)value;
      break;
    case OPT_MEMORY:
      ok = parse_count(optarg, 0x1p53, &value);
      o->memory_cap_bytes = (uint64_t)value;
      break;
    case OPT_OBJECTIVE:
      ok = strcmp(optarg, "throughput") == 0 || strcmp(optarg, "latency") == 0;
      o->objective = optarg[0] == 'l' ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
      break;
    case OPT_COMM:
      ok = strcmp(optarg, "p2p") == 0 || strcmp(optarg, "shared") == 0;
      s->comm = optarg;
      break;
    case OPT_NONCONTIGUOUS: o->noncontiguous = true; break;
    case OPT_OVERLAP: s->overlap = true; break;
    case OPT_NONEMPTY: o->require_nonempty = true; break;
    case OPT_SOLVER: o->solver = optarg; break;
    case OPT_JSON: s->json = true; break;
    case OPT_QUIET: s->quiet = true; break;
    case OPT_HELP: print_help(); return 0;
    case OPT_VERSION: printf("onnx-pipeline-plan %s\n", psplit_version()); return 0;
    default: fputs("see onnx-pipeline-plan --help\n", stderr); return 2;
  }
  return ok ? -1 : usage_error("\"%s\" is not a value for this option", optarg);
}

static int read_arguments(int argc, char **argv, settings *s) {
  struct option options[N_OPTIONS + 1] = {{0}};
  for (int i = 0; i < N_OPTIONS; i++) options[i] = kOptions[i].option;
  psplit_partition_options_init(&s->options);
  s->stages = s->cpus = -1;
  for (int code; (code = getopt_long(argc, argv, "k:", options, NULL)) != -1;) {
    const int status = read_option(s, code);
    if (status >= 0) return status;
  }
  if (optind + 1 != argc)
    return usage_error("%s", optind == argc ? "no problem file given" : "more than one file given");
  s->path = argv[optind];
  return -1;
}

/* Counts of the first device that pays communication and of the first that does not. */
static const char *set_devices(const settings *s, psplit_device *devices, uint32_t n) {
  bool have_cpu = false, have_other = false;
  for (uint32_t d = 0; d < n; d++) {
    if (devices[d].free_comm && !have_cpu) {
      have_cpu = true;
      if (s->cpus >= 0) devices[d].count = (uint32_t)s->cpus;
    } else if (!devices[d].free_comm && s->stages >= 0) {
      devices[d].count = have_other ? 0 : (uint32_t)s->stages;
      have_other = true;
    }
  }
  if (s->cpus > 0 && !have_cpu) return "the problem describes no CPU, so --cpus cannot add any";
  return NULL;
}

static void print_json(const psplit_problem *p, const settings *s, const psplit_solution *plan) {
  const double unit = p->ticks_per_unit;
  printf("{\n  \"format\": \"psplit-plan\",\n  \"version\": 1,\n");
  printf("  \"objective_kind\": \"%s\",\n",
         s->options.objective == PSPLIT_LATENCY ? "latency" : "throughput");
  printf("  \"objective\": %.15g,\n  \"lower_bound\": %.15g,\n  \"gap_frac\": %.9g,\n",
         (double)plan->objective_ns / unit, (double)plan->lower_bound_ns / unit, plan->gap_frac);
  printf("  \"proved_optimal\": %s,\n  \"solver\": \"%s\",\n  \"bound\": \"%s\",\n",
         plan->proved_optimal ? "true" : "false", plan->solver, plan->bound);
  printf("  \"solve_seconds\": %.6f,\n  \"n_stages\": %" PRIu32 ",\n  \"loads\": [", plan->seconds,
         plan->n_stages);
  for (uint32_t k = 0; k < plan->n_stages; k++)
    printf("%s%.15g", k ? ", " : "", (double)plan->stages[k].load_ns / unit);
  printf("],\n  \"stages\": [");
  for (uint32_t k = 0; k < plan->n_stages; k++) {
    const psplit_stage_load *l = &plan->stages[k];
    printf("%s\n    {\"index\": %" PRIu32 ", \"device\": %" PRIu32 ", \"nodes\": %" PRIu32
           ", \"replicas\": %" PRIu32
           ", \"compute\": %.15g, \"recv\": %.15g, \"send\": %.15g, "
           "\"load\": %.15g, \"memory_bytes\": %" PRIu64 "}",
           k ? "," : "", k, l->device, l->n_nodes, l->replicas, (double)l->compute_ns / unit,
           (double)l->recv_ns / unit, (double)l->send_ns / unit, (double)l->load_ns / unit,
           l->memory_bytes);
  }
  printf("\n  ],\n  \"stage\": {");
  for (uint32_t v = 0; v < plan->n_nodes; v++)
    printf("%s\"%" PRId64 "\": %" PRIu32, v ? ", " : "", p->file_id ? p->file_id[v] : v,
           plan->stage[v]);
  printf("}");
  if (s->options.chunks > 1) {
    printf(",\n  \"chunk\": {");
    for (uint32_t v = 0; v < plan->n_nodes; v++)
      printf("%s\"%" PRId64 "\": %" PRIu32, v ? ", " : "", p->file_id ? p->file_id[v] : v,
             plan->chunk[v]);
    printf("}");
  }
  printf("\n}\n");
}

static void print_table(const psplit_problem *p, const psplit_solution *plan) {
  const double unit = p->ticks_per_unit;
  printf("%5s  %-12s %8s %14s %14s %14s %14s %16s\n", "stage", "device", "nodes", "load", "compute",
         "recv", "send", "memory");
  for (uint32_t k = 0; k < plan->n_stages; k++) {
    const psplit_stage_load *l = &plan->stages[k];
    const char *name = p->devices[l->device].name;
    char text[32];
    snprintf(text, sizeof text, "%.12s%s", name ? name : "device",
             l->replicas > 1 ? " (copies)" : "");
    printf("%5" PRIu32 "  %-12s %8" PRIu32 " %14.6f %14.6f %14.6f %14.6f %16" PRIu64 "\n", k, text,
           l->n_nodes, (double)l->load_ns / unit, (double)l->compute_ns / unit,
           (double)l->recv_ns / unit, (double)l->send_ns / unit, l->memory_bytes);
  }
  printf("objective %.6f, lower bound %.6f, gap %.4f %%, %s; solver %s, bound %s, %.3f s\n",
         (double)plan->objective_ns / unit, (double)plan->lower_bound_ns / unit,
         plan->gap_frac * 100, plan->proved_optimal ? "proved optimal" : "not proved", plan->solver,
         plan->bound, plan->seconds);
}

static void advise(void *user, psplit_severity severity, const char *line) {
  (void)user;
  if (severity != PSPLIT_PROGRESS || isatty(STDERR_FILENO)) fprintf(stderr, "%s\n", line);
}

static int fail(const psplit_diag *diag, psplit_code code) {
  fprintf(stderr, "error: %s\n", diag->message);
  return psplit_code_exit_status(code);
}

int main(int argc, char **argv) {
  settings s = {0};
  int status = read_arguments(argc, argv, &s);
  if (status >= 0) return status;
  const psplit_sink sink = {advise, NULL};
  if (!s.quiet) s.options.sink = &sink;
  psplit_diag diag = {0};
  psplit_problem *file = NULL;
  psplit_solution *plan = NULL;
  psplit_code code = psplit_problem_read_json(s.path, &diag, &file);
  if (code != PSPLIT_OK) return fail(&diag, code);
  psplit_problem problem = *file;
  psplit_device *devices = malloc(problem.n_devices * sizeof *devices);
  if (!devices) {
    psplit_problem_destroy(file);
    return psplit_code_exit_status(PSPLIT_NOMEM);
  }
  memcpy(devices, problem.devices, problem.n_devices * sizeof *devices);
  problem.devices = devices;
  if (s.comm) problem.comm = s.comm[0] == 's' ? PSPLIT_COMM_SHARED : PSPLIT_COMM_P2P;
  if (s.overlap) problem.overlap = true;
  const char *wrong = set_devices(&s, devices, problem.n_devices);
  if (wrong) {
    status = usage_error("%s", wrong);
  } else if ((code = psplit_partition_solve(&problem, &s.options, &diag, &plan)) != PSPLIT_OK) {
    status = fail(&diag, code);
  } else {
    if (s.json)
      print_json(&problem, &s, plan);
    else
      print_table(&problem, plan);
    status = fflush(stdout) == 0 && !ferror(stdout) ? 0 : psplit_code_exit_status(PSPLIT_IO);
  }
  psplit_solution_destroy(plan);
  psplit_problem_destroy(file);
  free(devices);
  return status;
}
