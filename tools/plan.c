/* onnx-pipeline-plan: solve a bare partition problem, no ONNX involved. */
#include <getopt.h>
#include <inttypes.h>
#include <psplit/file.h>
#include <psplit/partition.h>
#include <psplit/policy.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "cli.h"
#include "limits.h"
#include "places.h"

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
  OPT_POLICY,
  OPT_PROPOSALS,
  OPT_SCHEDULE,
  OPT_TIME,
  OPT_GAP,
  OPT_THREADS,
  OPT_SEED,
  OPT_MEMORY,
  OPT_JSON,
  OPT_LIMITS,
  OPT_CERTIFICATE,
  OPT_MAX_TEXT
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Problem:"},
  {'k', "stages", "N", "number of accelerators (default: the file's)"},
  {OPT_CPUS, "cpus", "N", "number of CPUs, for problems that have any"},
  {OPT_OBJECTIVE, "objective", "throughput|latency|call-latency|fill-drain",
   "what to minimise: the slowest stage; the time of one sample; the same where accelerators are "
   "called; the slowest forward plus the slowest backward part of a stage"},
  {OPT_NONCONTIGUOUS, "non-contiguous", NULL, "allow any node on any device"},
  {OPT_CHUNKS, "chunks", "C", "virtual stages per device, for interleaved schedules (1)"},
  {OPT_REPLICAS, "replicas", "R", "maximum number of data-parallel replicas of a stage (1)"},
  {OPT_SYNC, "sync-bandwidth", "BYTES/S",
   "bandwidth between replicas, for synchronising weights (0: free)"},
  {OPT_MICRO, "micro-batches", "M", "micro-batches between two synchronisations of replicas (1)"},
  {OPT_COMM, "comm", "p2p|shared",
   "send a tensor to each receiving stage, or once to shared memory"},
  {OPT_OVERLAP, "overlap", NULL,
   "transfers overlap with computation: a load is its largest part, not the sum"},
  {OPT_NONEMPTY, "no-empty-stages", NULL, "every stage holds at least one node"},
  {0, NULL, NULL, "Solving:"},
  {OPT_SOLVER, "solver", "SOLVER", CLI_SOLVERS},
  {OPT_POLICY, "policy", "FILE", "a learned policy; solvers start from its proposals"},
  {OPT_PROPOSALS, "proposals", "N", "number of proposals to ask the policy for (8)"},
  {OPT_TIME, "time-limit", "SECONDS",
   "limit on wall time; default: a fixed amount of work, about 10 s; -1: none"},
  {OPT_GAP, "gap", "FRACTION", "stop when value and bound are within this fraction (0)"},
  {OPT_THREADS, "threads", "N", "number of threads (0: all cores); never changes the plan"},
  {OPT_SEED, "seed", "N", "seed of the search (1)"},
  {OPT_MEMORY, "memory-cap", "BYTES", "memory limit of the exact solver's tables (1 GiB)"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  {0, NULL, NULL, "Output:"},
  {OPT_JSON, "json", NULL, "print the plan as JSON"},
  LIMITS_OPTION(OPT_LIMITS, "N"),
  CHOOSE_OPTION(OPT_SCHEDULE, "units"),
  {OPT_CERTIFICATE, "certificate", "FILE", "write a proof that psplit-check-certificate.py checks"},
  {'q', "quiet", NULL, "no hints or progress on stderr"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const char *const OBJECTIVES[] = {"throughput", "latency", "call-latency", "fill-drain"};

static const cli PROGRAM = {
  "onnx-pipeline-plan",
  "[OPTION]... PROBLEM.json",
  "Partitions a weighted graph into pipeline stages, and proves a lower bound.\n"
  "PROBLEM.json is a psplit-problem, or a problem of dnn-partitioning or of Piper\n"
  "(docs/partitioning/problem.md); - is standard input.\n\n"
  "Example: onnx-pipeline-plan -k 4 problem.json",
  OPTIONS,
  sizeof OPTIONS / sizeof *OPTIONS,
};

typedef struct settings {
  const char *path, *comm, *certificate, *policy;
  uint32_t n_proposals;
  psplit_partition_options options;
  int64_t stages, cpus; /* -1: as the file says */
  uint64_t max_text_bytes;
  bool overlap, json;
  limits_options limits;
  choose_options choose;
  bool quiet;
} settings;

static bool devices(const char *name, const char *text, int64_t *out) {
  uint64_t value;
  if (!cli_count(&PROGRAM, name, text, 0, 65535, &value)) return false;
  *out = (int64_t)value;
  return true;
}

static bool take_option(settings *s, int id, const char *text) {
  psplit_partition_options *o = &s->options;
  int which;
  switch (id) {
    case 'k': return devices("stages", text, &s->stages);
    case OPT_CPUS: return devices("cpus", text, &s->cpus);
    case OPT_OBJECTIVE:
      if (!cli_choice(&PROGRAM, "objective", text, &which)) return false;
      o->objective = (psplit_objective)which;
      return true;
    case OPT_NONCONTIGUOUS: o->noncontiguous = true; return true;
    case OPT_CHUNKS: return cli_count32(&PROGRAM, "chunks", text, 1, 1024, &o->chunks);
    case OPT_REPLICAS: return cli_count32(&PROGRAM, "replicas", text, 1, 65535, &o->max_replicas);
    case OPT_SYNC: return cli_real(&PROGRAM, "sync-bandwidth", text, 0, 1e18, &o->sync_bytes_per_s);
    case OPT_MICRO:
      return cli_count32(&PROGRAM, "micro-batches", text, 1, 1000000, &o->micro_batches);
    case OPT_COMM: s->comm = text; return cli_choice(&PROGRAM, "comm", text, &which);
    case OPT_OVERLAP: s->overlap = true; return true;
    case OPT_NONEMPTY: o->require_nonempty = true; return true;
    case OPT_SOLVER: o->solver = text; return true;
    case OPT_POLICY: s->policy = text; return true;
    case OPT_PROPOSALS:
      return cli_count32(&PROGRAM, "proposals", text, 1, 1000000, &s->n_proposals);
    case OPT_SCHEDULE: return choose_parse(&PROGRAM, text, &s->choose);
    case OPT_TIME:
      o->limit_by_work = false;
      return cli_real(&PROGRAM, "time-limit", text, -1, 1e9, &o->time_limit_s);
    case OPT_GAP: return cli_real(&PROGRAM, "gap", text, 0, 1, &o->gap_frac);
    case OPT_THREADS: return cli_count32(&PROGRAM, "threads", text, 0, 1024, &o->n_threads);
    case OPT_SEED: return cli_count(&PROGRAM, "seed", text, 0, UINT64_MAX, &o->seed);
    case OPT_MEMORY:
      return cli_count(&PROGRAM, "memory-cap", text, 1, UINT64_MAX, &o->memory_cap_bytes);
    case OPT_JSON: s->json = true; return true;
    case OPT_LIMITS: return limits_parse(&PROGRAM, text, false, &s->limits);
    case OPT_CERTIFICATE: s->certificate = text; return true;
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, text, &s->max_text_bytes);
    case 'q': s->quiet = true; return true;
    default: return false;
  }
}

/* 0, or the exit status of a usage error. */
static int read_arguments(int argc, char **argv, settings *s) {
  const char *argument;
  psplit_partition_options_init(&s->options);
  s->stages = s->cpus = -1;
  s->n_proposals = 8;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (id == CLI_BAD || !take_option(s, id, argument)) return cli_exit_status(PSPLIT_USAGE);
  if (optind == argc) return cli_usage(&PROGRAM, "a problem file is needed");
  if (optind + 1 < argc)
    return cli_usage(&PROGRAM, "one problem at a time: \"%s\" and \"%s\"", argv[optind],
                     argv[optind + 1]);
  if (s->limits.wanted && (s->options.max_replicas > 1 || s->options.noncontiguous))
    return cli_usage(&PROGRAM, "--limits is for contiguous stages without copies");
  if (s->options.objective == PSPLIT_CALL_LATENCY && (s->limits.wanted || s->choose.n_samples))
    return cli_usage(&PROGRAM, "--limits and --schedule are for pipelines, not for call-latency");
  if (s->choose.n_samples && !s->policy)
    return cli_usage(&PROGRAM, "--schedule needs --policy FILE, which makes the choice");
  if (s->choose.n_samples &&
      (s->options.max_replicas > 1 || s->options.noncontiguous || s->options.chunks > 1))
    return cli_usage(&PROGRAM, "--schedule is for contiguous stages without copies or chunks");
  if (!s->policy && strncmp(s->options.solver, "drlpp", 5) == 0)
    return cli_usage(&PROGRAM, "solver %s needs --policy FILE", s->options.solver);
  s->path = argv[optind];
  return 0;
}

/* Counts of the first device that pays communication and of the first that does not. */
static const char *set_devices(const settings *s, psplit_device *list, uint32_t n) {
  bool have_cpu = false, have_other = false;
  for (uint32_t d = 0; d < n; d++) {
    if (list[d].free_comm && !have_cpu) {
      have_cpu = true;
      if (s->cpus >= 0) list[d].count = (uint32_t)s->cpus;
    } else if (!list[d].free_comm && s->stages >= 0) {
      list[d].count = have_other ? 0 : (uint32_t)s->stages;
      have_other = true;
    }
  }
  if (s->cpus > 0 && !have_cpu) return "the problem describes no CPU, so --cpus cannot add any";
  return NULL;
}

static bool are_alike(const psplit_device *a, const psplit_device *b) {
  return a->class_id == b->class_id && a->memory_bytes == b->memory_bytes &&
         a->free_comm == b->free_comm;
}

/* Copies of a stage are of one entry: the first of those that are alike becomes all of them, so
 * that a problem may list its devices one by one. Of a fixed order those that follow each other;
 * links between pairs of entries keep them apart. */
static void join_devices(const psplit_problem *problem, psplit_device *list) {
  uint32_t last = 0; /* 1 + the last entry that has devices */
  if (problem->n_link_classes) return;
  for (uint32_t d = 0; d < problem->n_devices; d++) {
    uint32_t to = problem->any_device_order || last == 0 ? 0 : last - 1;
    while (to < d && !(list[to].count && are_alike(&list[to], &list[d])))
      to = problem->any_device_order ? to + 1 : d;
    if (list[d].count) last = (to < d ? to : d) + 1;
    if (to == d || list[to].count > UINT32_MAX - list[d].count) continue;
    list[to].count += list[d].count;
    list[d].count = 0;
  }
}

/* Of fill-drain: what of a stage's load is forward, and what backward. */
static void print_directions(const psplit_stage_load *load, double unit) {
  printf(", \"forward\": %.15g, \"backward\": %.15g", (double)load->forward_ns / unit,
         (double)load->backward_ns / unit);
}

static void print_json(const psplit_problem *p, const settings *s, const psplit_solution *plan) {
  const double planner = p->ticks_per_unit;
  printf("{\n  \"format\": \"psplit-plan\",\n  \"version\": 1,\n");
  printf("  \"objective_kind\": \"%s\",\n", OBJECTIVES[s->options.objective]);
  printf("  \"objective\": %.15g,\n  \"lower_bound\": %.15g,\n  \"gap_frac\": %.9g,\n",
         (double)plan->objective_ns / planner, (double)plan->lower_bound_ns / planner,
         plan->gap_frac);
  printf("  \"proved_optimal\": %s,\n  \"device_order\": \"%s\",\n  \"ties\": \"%s\",\n",
         plan->proved_optimal ? "true" : "false", plan->device_order,
         plan->ties_proved ? "proved" : "searched");
  printf("  \"solver\": \"%s\",\n  \"bound\": \"%s\",\n", plan->solver, plan->bound);
  printf("  \"solve_seconds\": %.6f,\n  \"n_stages\": %" PRIu32 ",\n  \"loads\": [", plan->seconds,
         plan->n_stages);
  for (uint32_t k = 0; k < plan->n_stages; k++)
    printf("%s%.15g", k ? ", " : "", (double)plan->stages[k].load_ns / planner);
  printf("],\n  \"stages\": [");
  for (uint32_t k = 0; k < plan->n_stages; k++) {
    const psplit_stage_load *l = &plan->stages[k];
    printf("%s\n    {\"index\": %" PRIu32 ", \"device\": %" PRIu32 ", \"nodes\": %" PRIu32
           ", \"replicas\": %" PRIu32
           ", \"compute\": %.15g, \"recv\": %.15g, \"send\": %.15g, "
           "\"load\": %.15g, \"memory_bytes\": %" PRIu64,
           k ? "," : "", k, l->device, l->n_nodes, l->replicas, (double)l->compute_ns / planner,
           (double)l->recv_ns / planner, (double)l->send_ns / planner, (double)l->load_ns / planner,
           l->memory_bytes);
    if (s->options.objective == PSPLIT_FILL_DRAIN) print_directions(l, planner);
    printf("}");
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
  if (s->limits.wanted) printf(",\n  \"limits\": ");
}

static const char *name_of(const psplit_problem *p, uint32_t device) {
  return p->devices[device].name ? p->devices[device].name : "device";
}

static void print_table(const psplit_problem *p, psplit_objective objective,
                        const psplit_solution *plan) {
  const double planner = p->ticks_per_unit;
  int64_t forward = 0, backward = 0;
  int width = 12;
  for (uint32_t k = 0; k < plan->n_stages; k++)
    width = cli_width(width, name_of(p, plan->stages[k].device));
  printf("%5s  %-*s %8s %14s %14s %14s %14s %16s\n", "stage", width, "device", "nodes", "load",
         "compute", "recv", "send", "memory");
  for (uint32_t k = 0; k < plan->n_stages; k++) {
    const psplit_stage_load *l = &plan->stages[k];
    char name[CLI_NAME], text[CLI_NAME + 16];
    snprintf(text, sizeof text, "%s%s", cli_printable(name_of(p, l->device), name, sizeof name),
             l->replicas > 1 ? " (copies)" : "");
    printf("%5" PRIu32 "  %-*s %8" PRIu32 " %14.6f %14.6f %14.6f %14.6f %16" PRIu64 "\n", k, width,
           text, l->n_nodes, (double)l->load_ns / planner, (double)l->compute_ns / planner,
           (double)l->recv_ns / planner, (double)l->send_ns / planner, l->memory_bytes);
    forward = l->forward_ns > forward ? l->forward_ns : forward;
    backward = l->backward_ns > backward ? l->backward_ns : backward;
  }
  if (objective == PSPLIT_FILL_DRAIN)
    printf("slowest forward %.6f, slowest backward %.6f\n", (double)forward / planner,
           (double)backward / planner);
  const bool given = strcmp(plan->device_order, "given") == 0;
  printf("objective %.6f, lower bound %.6f, gap %.4f %%, %s%s%s; solver %s, bound %s, %.3f s\n",
         (double)plan->objective_ns / planner, (double)plan->lower_bound_ns / planner,
         plan->gap_frac * 100, plan->proved_optimal ? "proved optimal" : "not proved: ",
         plan->proved_optimal ? "" : plan->unproved,
         plan->proved_optimal && given ? " for this order of devices" : "", plan->solver,
         plan->bound, plan->seconds);
}

static psplit_code print_limits(const psplit_problem *p, const settings *s,
                                const psplit_solution *plan, psplit_diag *diag) {
  const uint32_t chunks = s->options.chunks;
  const size_t n = (size_t)plan->n_stages * chunks;
  int64_t *forward = calloc(n + 1, sizeof *forward), *backward = calloc(n + 1, sizeof *backward);
  uint64_t *bytes = calloc(n + 1, sizeof *bytes);
  psplit_code code = forward && backward && bytes ? PSPLIT_OK : cli_nomem(diag);
  if (code == PSPLIT_OK) {
    const bool trains = psplit_solution_pieces(p, plan, chunks, forward, backward, bytes);
    const psplit_schedule_input input = {.kind = chunks > 1 ? PSPLIT_SCHEDULE_INTERLEAVED
                                                 : trains   ? PSPLIT_SCHEDULE_1F1B
                                                            : PSPLIT_SCHEDULE_STREAM,
                                         .n_stages = plan->n_stages,
                                         .n_chunks = chunks,
                                         .n_micro_batches = s->limits.n_micro_batches,
                                         .forward_ns = forward,
                                         .backward_ns = trains || chunks > 1 ? backward : NULL,
                                         .activation_bytes = bytes};
    const limits_report report = {&s->limits, &input, p->ticks_per_unit, "", stdout};
    code = limits_print(&report, s->json, diag);
  }
  free(forward);
  free(backward);
  free(bytes);
  return code;
}

/* Says what the certificate leaves out, so that nobody takes it for a proof of the whole bound. */
static psplit_code certify(const psplit_problem *p, const settings *s, const psplit_solution *plan,
                           psplit_diag *diag) {
  char *text;
  size_t n;
  int64_t bound;
  psplit_code code = psplit_certificate_make(p, &s->options, plan, diag, &text, &n, &bound);
  if (code != PSPLIT_OK) return code;
  code = psplit_file_write(s->certificate, text, n, s->options.cancel, diag);
  free(text);
  if (code == PSPLIT_OK && bound < plan->lower_bound_ns)
    cli_warn("not certified: the bound %.6f (%s); %s certifies %.6f%s",
             (double)plan->lower_bound_ns / p->ticks_per_unit, plan->bound, s->certificate,
             (double)bound / p->ticks_per_unit,
             p->message_ns && p->comm == PSPLIT_COMM_P2P ? CLI_SOME_MESSAGES : "");
  return code;
}

/* Before the work, and not over what was read for it. */
static psplit_code check_certificate(const settings *s, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (strcmp(s->path, "-") != 0) code = place_check_unread(s->certificate, s->path, diag);
  if (code == PSPLIT_OK && s->policy) code = place_check_unread(s->certificate, s->policy, diag);
  return code == PSPLIT_OK ? place_check(s->certificate, NULL, diag) : code;
}

/* What is read, made and freed. */
typedef struct job {
  psplit_problem *file;
  psplit_device *devices; /* of the file, as options change them */
  psplit_policy *policy;
  psplit_proposer *proposer;
  psplit_solution *plan;
} job;

static psplit_code load(const settings *s, job *j, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (s->policy) code = psplit_policy_read(s->policy, diag, &j->policy);
  if (code == PSPLIT_OK && s->policy)
    code = psplit_policy_proposer_create(j->policy, s->n_proposals, diag, &j->proposer);
  if (code != PSPLIT_OK) return code;
  if (strcmp(s->path, "-") != 0 && place_holds_model(s->path))
    return psplit_diag_fail(diag, PSPLIT_MALFORMED,
                            "%s is an ONNX model, not a problem; onnx-pipeline-inspect MODEL -k K "
                            "--format problem writes the problem of one",
                            s->path);
  cli_doing("reading %s", s->path);
  code = cli_read_problem(s->path, s->max_text_bytes, true, diag, &j->file);
  if (code != PSPLIT_OK) return code;
  const size_t bytes = j->file->n_devices * sizeof *j->devices;
  if (!(j->devices = malloc(bytes))) return cli_nomem(diag);
  memcpy(j->devices, j->file->devices, bytes);
  return PSPLIT_OK;
}

static psplit_code print(const settings *s, const job *j, const psplit_problem *problem,
                         psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  cli_make_room();
  if (s->json)
    print_json(problem, s, j->plan);
  else
    print_table(problem, s->options.objective, j->plan);
  if (s->limits.wanted) code = print_limits(problem, s, j->plan, diag);
  if (s->json && s->choose.n_samples) printf(",\n  \"schedule\": ");
  if (code == PSPLIT_OK && s->choose.n_samples)
    code = choose_print_problem(&s->choose, j->policy, problem, j->plan, s->json, stdout, diag);
  if (s->json) printf("\n}\n");
  return code;
}

/* Returns the exit status. */
static int solve(settings *s, job *j, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_problem problem = *j->file;
  s->options.proposer = j->proposer;
  s->options.cancel = cli_ends(CLI_ENDS_SOON);
  s->options.activity = cli_activity();
  cli_doing("partitioning");
  problem.devices = j->devices;
  if (s->comm) problem.comm = s->comm[0] == 's' ? PSPLIT_COMM_SHARED : PSPLIT_COMM_P2P;
  if (s->overlap) problem.overlap = true;
  const char *wrong = set_devices(s, j->devices, problem.n_devices);
  if (wrong) return cli_usage(&PROGRAM, "%s", wrong);
  if (s->options.max_replicas > 1) join_devices(&problem, j->devices);
  if (s->certificate) code = check_certificate(s, diag);
  if (code == PSPLIT_OK) code = psplit_partition_solve(&problem, &s->options, diag, &j->plan);
  if (code == PSPLIT_OK && s->certificate) code = certify(&problem, s, j->plan, diag);
  if (code == PSPLIT_OK) code = print(s, j, &problem, diag);
  return code == PSPLIT_OK ? 0 : cli_fail(diag);
}

int main(int argc, char **argv) {
  settings s = {0};
  int status = read_arguments(argc, argv, &s);
  if (status) return cli_finish(status);
  const psplit_logger logger = cli_sink(&s.quiet);
  s.options.logger = &logger;
  psplit_diag diag = {0};
  job j = {0};
  status = load(&s, &j, &diag) == PSPLIT_OK ? solve(&s, &j, &diag) : cli_fail(&diag);
  psplit_solution_destroy(j.plan);
  psplit_problem_destroy(j.file);
  psplit_policy_proposer_destroy(j.proposer);
  psplit_policy_destroy(j.policy);
  free(j.devices);
  return cli_finish(status);
}
