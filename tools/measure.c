/* A split of a model is run as it would be used: planned as given, written to a scratch directory,
 * run by ONNX Runtime with random inputs, a thread a stage. */
#include "measure.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if PSPLIT_HAS_RUNTIME
#include <psplit/emit.h>
#include <psplit/run.h>
#endif

/* What makes the problem and nothing that changes the split behind it. */
static const char PASSES[] = "infer-shapes,cost,mark,attach,fuse,coarsen,partition";

enum { MOST_RUNS = 3, LEAST_MICRO_BATCHES = 12, MOST_MICRO_BATCHES = 100000, RUN_NS = 500000000 };

/* A model of the corpus. */
typedef struct subject {
  char *name;
  psplit_model *model; /* NULL: a bare problem */
  /* Of --dim and --shape what it has: other models of the corpus may have other names. */
  psplit_dim_value dims[PLAN_MAX_REPEATED];
  psplit_input_size shapes[PLAN_MAX_REPEATED];
  size_t n_dims, n_shapes;
  uint32_t n_micro_batches; /* of a run; 0: not yet known */
} subject;

/* What is known of a split. */
typedef struct known {
  uint32_t problem, n_nodes, n_stages;
  uint32_t *stage, *type; /* [n_nodes], [n_stages] */
  uint32_t n_runs;
  double ns;     /* the least */
  uint64_t last; /* when it was asked for */
  bool chosen;   /* as the best, in the end */
} known;

struct measure {
  measure_options options;
  subject **subjects; /* [n_subjects] by problem */
  size_t n_subjects;
  known *known;
  size_t n_known;
  uint64_t n_asked;
  char *scratch; /* directory; NULL: none was made */
  char *stages;  /* the split at hand, in it */
#if PSPLIT_HAS_RUNTIME
  psplit_onnxruntime *ort;
#endif
};

static psplit_code make_scratch(measure *m, psplit_diag *diag) {
  const char *where = getenv("TMPDIR");
  if (!where || !*where) where = "/tmp";
  const size_t bytes = strlen(where) + sizeof "/psplit-learn-XXXXXX/stages";
  char *scratch = malloc(bytes);
  m->stages = malloc(bytes);
  if (!scratch || !m->stages) {
    free(scratch);
    return cli_nomem(diag);
  }
  snprintf(scratch, bytes, "%s/psplit-learn-XXXXXX", where);
  if (!mkdtemp(scratch)) {
    free(scratch);
    return psplit_diag_fail(diag, PSPLIT_IO, "no directory can be made under %s", where);
  }
  m->scratch = scratch;
  snprintf(m->stages, bytes, "%s/stages", scratch);
  return PSPLIT_OK;
}

psplit_code measure_create(const measure_options *options, psplit_diag *diag, measure **out) {
  if (options->run && !PSPLIT_HAS_RUNTIME)
    return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED,
                            "--reward measured: this build cannot run stages");
  measure *m = calloc(1, sizeof *m);
  if (!m) return cli_nomem(diag);
  m->options = *options;
  psplit_code code = PSPLIT_OK;
#if PSPLIT_HAS_RUNTIME
  if (options->run) code = ort_library_open(&options->library, diag, &m->ort);
#endif
  if (code == PSPLIT_OK && options->run) code = make_scratch(m, diag);
  if (code == PSPLIT_OK)
    *out = m;
  else
    measure_destroy(m);
  return code;
}

static void remove_stages(const char *path) {
  DIR *directory = opendir(path);
  if (!directory) return;
  for (struct dirent *each; (each = readdir(directory));)
    if (each->d_name[0] != '.') unlinkat(dirfd(directory), each->d_name, 0);
  closedir(directory);
  rmdir(path);
}

void measure_destroy(measure *m) {
  if (!m) return;
  for (size_t i = 0; i < m->n_subjects; i++) {
    psplit_model_close(m->subjects[i]->model);
    free(m->subjects[i]->name);
    free(m->subjects[i]);
  }
  for (size_t i = 0; i < m->n_known; i++) {
    free(m->known[i].stage);
    free(m->known[i].type);
  }
  free(m->subjects);
  free(m->known);
  if (m->scratch) {
    remove_stages(m->stages);
    rmdir(m->scratch);
  }
  free(m->scratch);
  free(m->stages);
#if PSPLIT_HAS_RUNTIME
  psplit_onnxruntime_close(m->ort);
#endif
  free(m);
}

/* `model` becomes the measure's. */
static psplit_code add(measure *m, psplit_model *model, const char *path, psplit_diag *diag) {
  const psplit_planner_options *given = &m->options.plan->planner;
  subject **grown = cli_grow(m->subjects, m->n_subjects, sizeof *grown);
  if (grown) m->subjects = grown;
  subject *one = grown ? calloc(1, sizeof *one) : NULL;
  char *name = one ? strdup(path) : NULL;
  if (!name) {
    free(one);
    psplit_model_close(model);
    return cli_nomem(diag);
  }
  one->name = name;
  one->model = model;
  one->n_micro_batches = m->options.n_micro_batches;
  for (size_t i = 0; model && i < given->n_dims; i++)
    if (psplit_model_check_dims(model, &given->dims[i], 1, NULL) == PSPLIT_OK)
      one->dims[one->n_dims++] = given->dims[i];
  for (size_t i = 0; model && i < given->n_shapes; i++)
    if (psplit_model_check_inputs(model, &given->shapes[i].input, 1, NULL) == PSPLIT_OK)
      one->shapes[one->n_shapes++] = given->shapes[i];
  m->subjects[m->n_subjects++] = one;
  return PSPLIT_OK;
}

psplit_code measure_bare(measure *m, psplit_diag *diag) { return add(m, NULL, "", diag); }

psplit_code measure_check_names(const measure *m, psplit_diag *diag) {
  const psplit_planner_options *given = &m->options.plan->planner;
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < given->n_dims + given->n_shapes && code == PSPLIT_OK; i++) {
    const bool dim = i < given->n_dims;
    psplit_diag why = {0};
    code = psplit_diag_fail(&why, PSPLIT_USAGE, "--%s is for models, and the corpus has none",
                            dim ? "dim" : "shape");
    for (size_t k = 0; k < m->n_subjects && code != PSPLIT_OK; k++) {
      const psplit_model *model = m->subjects[k]->model;
      if (!model) continue;
      why = (psplit_diag){0};
      code = dim
               ? psplit_model_check_dims(model, &given->dims[i], 1, &why)
               : psplit_model_check_inputs(model, &given->shapes[i - given->n_dims].input, 1, &why);
    }
    if (code != PSPLIT_OK) *diag = why;
  }
  return code;
}

/* With a proposer its split, else whatever is found in a short time. */
static psplit_code plan(const measure *m, const subject *of, const psplit_proposer *proposer,
                        psplit_diag *diag, planned *out) {
  psplit_planner_options options;
  psplit_code code = planned_prepare(m->options.plan, m->options.n_stages, diag, out, &options);
  if (code != PSPLIT_OK) return code;
  options.dims = of->dims;
  options.n_dims = of->n_dims;
  options.shapes = of->shapes;
  options.n_shapes = of->n_shapes;
  options.slack_frac = 0; /* the split itself, not one like it */
  options.cancel = m->options.cancel;
  options.certify = !proposer;
  options.proposer = proposer;
  options.solver = proposer ? "drlpp" : NULL;
  if (!proposer) options.time_limit_s = 0.2; /* its own optimum is sought when it is added */
  code = psplit_planner_create(of->model, &options, diag, &out->planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(out->planner, PASSES, diag);
  return code;
}

psplit_code measure_model(measure *m, const char *path, psplit_diag *diag,
                          psplit_problem **out_problem) {
  psplit_model *model = NULL;
  planned made = {0};
  psplit_certified certified = {0};
  psplit_code code = psplit_model_open(path, &m->options.plan->read, diag, &model);
  if (code != PSPLIT_OK) return code;
  code = add(m, model, path, diag);
  if (code == PSPLIT_OK) code = plan(m, m->subjects[m->n_subjects - 1], NULL, diag, &made);
  if (code == PSPLIT_OK) code = psplit_planner_certificate(made.planner, diag, &certified);
  if (code == PSPLIT_OK)
    code =
      psplit_problem_parse_json(certified.problem, certified.n_problem, path, diag, out_problem);
  psplit_certified_fini(&certified);
  planned_fini(&made);
  return code;
}

#if PSPLIT_HAS_RUNTIME
/* A proposer of one split. It is kept by nodes, since items are not the same from run to run of the
 * solver: one that may leave no stage empty makes no reductions. An item whose nodes are apart has
 * no stage, and the solver refuses what it is in. */
static psplit_code propose(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                           uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag) {
  const known *k = user;
  (void)seed, (void)attempt;
  if (items->n_nodes != k->n_nodes || items->n_stages != k->n_stages)
    return psplit_diag_fail(diag, PSPLIT_INTERNAL, "a model's problem is not the same again");
  for (uint32_t v = 0; v < items->n_nodes; v++) out_stage[items->item_of_node[v]] = k->stage[v];
  for (uint32_t v = 0; v < items->n_nodes; v++)
    if (out_stage[items->item_of_node[v]] != k->stage[v])
      out_stage[items->item_of_node[v]] = PSPLIT_NONE;
  memcpy(out_type, k->type, items->n_stages * sizeof *out_type);
  return PSPLIT_OK;
}

static psplit_code no_keys(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                           uint32_t *out_key, psplit_diag *diag) {
  (void)user, (void)seed, (void)attempt, (void)diag;
  for (uint32_t i = 0; i < items->n_items; i++) out_key[i] = i;
  return PSPLIT_OK;
}

static psplit_code run(const measure *m, const subject *of, uint32_t n, psplit_diag *diag,
                       double *out_ns) {
  psplit_pipeline *pipeline = NULL;
  psplit_run *done = NULL;
  psplit_feed_options feed;
  psplit_run_options options;
  psplit_feed_options_init(&feed);
  feed.dims = of->dims;
  feed.n_dims = of->n_dims;
  feed.shapes = of->shapes;
  feed.n_shapes = of->n_shapes;
  feed.random = true;
  psplit_run_options_init(&options);
  options.feed = &feed;
  options.n_micro_batches = n;
  options.n_warmup = 2 + n / 16;
  options.cancel = m->options.cancel;
  psplit_code code = psplit_pipeline_open(m->stages, NULL, diag, &pipeline);
  if (code == PSPLIT_OK) code = psplit_pipeline_run(m->ort, pipeline, &options, diag, &done);
  if (code == PSPLIT_OK) {
    const psplit_run_report *report = psplit_run_get_report(done);
    *out_ns =
      1e9 / (report->steady_throughput > 0 ? report->steady_throughput : report->throughput);
  }
  psplit_run_destroy(done);
  psplit_pipeline_close(pipeline);
  return code;
}

/* As often as it takes to tell small models apart: a micro-batch of 0.8 ms needs more than one of
 * 200 ms. All splits of a model run as many. */
static psplit_code run_long(const measure *m, subject *of, psplit_diag *diag, double *out_ns) {
  if (of->n_micro_batches) return run(m, of, of->n_micro_batches, diag, out_ns);
  double n = LEAST_MICRO_BATCHES, next = n;
  do {
    n = next;
    const psplit_code code = run(m, of, (uint32_t)n, diag, out_ns);
    if (code != PSPLIT_OK) return code;
    next = *out_ns > 0 ? RUN_NS / *out_ns : n;
    next = next > MOST_MICRO_BATCHES ? MOST_MICRO_BATCHES : next;
  } while (next > 1.25 * n);
  of->n_micro_batches = (uint32_t)n;
  return PSPLIT_OK;
}

/* A split that is refused, since a stage has no work, counts as twice as slow as what is planned in
 * its place. */
static psplit_code write_and_run(measure *m, const known *k, psplit_diag *diag, double *out_ns) {
  subject *of = m->subjects[k->problem];
  planned made = {0};
  psplit_emit_options emit;
  const psplit_proposer proposer = {(void *)(uintptr_t)k, 1, NULL, propose, no_keys};
  psplit_emit_options_init(&emit);
  emit.no_sync = true;
  emit.cancel = m->options.cancel;
  psplit_code code = plan(m, of, &proposer, diag, &made);
  const psplit_plan *split = code == PSPLIT_OK ? psplit_planner_plan(made.planner) : NULL;
  remove_stages(m->stages);
  if (code == PSPLIT_OK) code = psplit_emit(of->model, split, m->stages, &emit, diag);
  if (code == PSPLIT_OK) code = run_long(m, of, diag, out_ns);
  if (code == PSPLIT_OK && strcmp(split->solver, "drlpp") != 0) *out_ns *= 2;
  planned_fini(&made);
  return code;
}

static bool is_split(const known *k, uint32_t problem, const psplit_items *items,
                     const uint32_t *stage, const uint32_t *type) {
  if (k->problem != problem) return false;
  for (uint32_t v = 0; v < items->n_nodes; v++)
    if (k->stage[v] != stage[items->item_of_node[v]]) return false;
  return memcmp(k->type, type, items->n_stages * sizeof *type) == 0;
}

static known *find(measure *m, uint32_t problem, const psplit_items *items, const uint32_t *stage,
                   const uint32_t *type) {
  for (size_t i = 0; i < m->n_known; i++)
    if (is_split(&m->known[i], problem, items, stage, type)) return &m->known[i];
  known *grown = cli_grow(m->known, m->n_known, sizeof *grown);
  if (!grown) return NULL;
  m->known = grown;
  known *one = &m->known[m->n_known];
  *one = (known){.problem = problem,
                 .n_nodes = items->n_nodes,
                 .n_stages = items->n_stages,
                 .stage = calloc((size_t)items->n_nodes + 1, sizeof *stage),
                 .type = calloc((size_t)items->n_stages + 1, sizeof *type)};
  m->n_known++;
  if (!one->stage || !one->type) return NULL;
  for (uint32_t v = 0; v < items->n_nodes; v++) one->stage[v] = stage[items->item_of_node[v]];
  memcpy(one->type, type, items->n_stages * sizeof *type);
  return one;
}

psplit_code measure_split(void *user, uint32_t problem, const psplit_items *items,
                          const uint32_t *stage, const uint32_t *type, double *out_ns,
                          psplit_diag *diag) {
  measure *m = user;
  if (problem >= m->n_subjects || !m->subjects[problem]->model)
    return psplit_diag_fail(diag, PSPLIT_USAGE,
                            "--reward measured is for models, not for bare problems");
  known *k = find(m, problem, items, stage, type);
  if (!k) return cli_nomem(diag);
  k->last = ++m->n_asked;
  if (k->n_runs < MOST_RUNS) {
    double ns = 0;
    const psplit_code code = write_and_run(m, k, diag, &ns);
    if (code != PSPLIT_OK) return code;
    if (k->n_runs++ == 0 || ns < k->ns) k->ns = ns;
  }
  *out_ns = k->ns;
  return PSPLIT_OK;
}

/* All in turn, so that what else the machine does is the same for each: the least of each. */
static psplit_code run_in_turn(measure *m, known *const *list, uint32_t n, uint32_t n_rounds,
                               double *out_ns, psplit_diag *diag) {
  for (uint32_t k = 0; k < n * n_rounds; k++) {
    double ns = 0;
    const psplit_code code = write_and_run(m, list[k % n], diag, &ns);
    if (code != PSPLIT_OK) return code;
    if (k < n || ns < out_ns[k % n]) out_ns[k % n] = ns;
  }
  return PSPLIT_OK;
}

/* The least of three runs of one split and of three of another are not at the same time: those that
 * come near the best meet again, and what they take then is what counts of them. */
psplit_code measure_choose(measure *m, uint32_t problem, const uint32_t **out_stage,
                           uint32_t *out_n_nodes, psplit_diag *diag) {
  enum { FINALISTS = 4, ROUNDS = 5 };
  known *best[FINALISTS];
  double ns[FINALISTS] = {0};
  uint32_t n = 0, first = 0;
  for (size_t i = 0; i < m->n_known; i++) {
    known *k = &m->known[i];
    uint32_t at = n;
    if (k->problem != problem || k->n_runs == 0) continue;
    for (; at > 0 && best[at - 1]->ns > k->ns; at--)
      if (at < FINALISTS) best[at] = best[at - 1];
    if (at < FINALISTS) best[at] = k;
    if (n < FINALISTS) n++;
  }
  *out_stage = NULL;
  if (n == 0) return PSPLIT_OK;
  const psplit_code code = run_in_turn(m, best, n, n > 1 ? ROUNDS : 1, ns, diag);
  if (code != PSPLIT_OK) return code;
  for (uint32_t k = 0; k < n; k++)
    if (ns[k] < ns[first]) first = k;
  for (uint32_t k = 0; k < n; k++) best[k]->ns = ns[k];
  best[first]->chosen = true;
  *out_stage = best[first]->stage;
  *out_n_nodes = best[first]->n_nodes;
  return PSPLIT_OK;
}

/* Of one model: its best split and the policy's once more in turn. If both are one split, that says
 * how well runs repeat. */
static psplit_code print_one(measure *m, uint32_t problem, FILE *out, psplit_diag *diag) {
  enum { ROUNDS = 7 };
  known *two[2] = {NULL, NULL}; /* the best, and what was asked for last */
  double ns[2] = {0};
  uint32_t n = 0;
  for (size_t i = 0; i < m->n_known; i++) {
    known *k = &m->known[i];
    if (k->problem != problem || k->n_runs == 0) continue;
    n++;
    if (!two[0] || k->chosen > two[0]->chosen ||
        (k->chosen == two[0]->chosen && k->ns < two[0]->ns))
      two[0] = k;
    if (!two[1] || k->last > two[1]->last) two[1] = k;
  }
  if (n == 0) return PSPLIT_OK;
  const psplit_code code = run_in_turn(m, two, 2, ROUNDS, ns, diag);
  if (code != PSPLIT_OK) return code;
  char first[CLI_TEXT], second[CLI_TEXT];
  fprintf(out,
          "%s: %" PRIu32 " splits were run, %" PRIu32
          " micro-batches each time; the best takes %s a micro-batch; the policy's%s %s "
          "(%+.1f %%)\n",
          m->subjects[problem]->name, n, m->subjects[problem]->n_micro_batches,
          cli_time((int64_t)ns[0], first), two[0] == two[1] ? ", the same, run again" : "",
          cli_time((int64_t)ns[1], second), 100 * (ns[1] / ns[0] - 1));
  return PSPLIT_OK;
}

psplit_code measure_print(measure *m, FILE *out, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t problem = 0; problem < m->n_subjects && code == PSPLIT_OK; problem++)
    code = print_one(m, problem, out, diag);
  return code;
}
#else
psplit_code measure_split(void *user, uint32_t problem, const psplit_items *items,
                          const uint32_t *stage, const uint32_t *type, double *out_ns,
                          psplit_diag *diag) {
  (void)user, (void)problem, (void)items, (void)stage, (void)type, (void)out_ns;
  return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED, "this build cannot run stages");
}

psplit_code measure_choose(measure *m, uint32_t problem, const uint32_t **out_stage,
                           uint32_t *out_n_nodes, psplit_diag *diag) {
  (void)m, (void)problem, (void)out_n_nodes, (void)diag;
  *out_stage = NULL;
  return PSPLIT_OK;
}

psplit_code measure_print(measure *m, FILE *out, psplit_diag *diag) {
  (void)m, (void)out, (void)diag;
  return PSPLIT_OK;
}
#endif
