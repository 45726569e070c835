/* A split of a model is run as it would be used: planned as given, written to a scratch directory,
 * run by ONNX Runtime with random inputs, a thread a stage. */
#include "measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PSPLIT_HAS_RUNTIME
#define PSPLIT_HAS_RUNTIME 0
#endif
#if PSPLIT_HAS_RUNTIME
#include <psplit/emit.h>
#include <psplit/run.h>
#endif

/* What makes the problem and nothing that changes the split behind it. */
static const char kPasses[] = "infer-shapes,cost,mark,attach,fuse,coarsen,partition";

enum { MOST_RUNS = 3 };

/* What is known of a split. */
typedef struct known {
  uint32_t problem, n_nodes, n_stages;
  uint32_t *stage, *type; /* [n_nodes], [n_stages] */
  uint32_t n_runs;
  double ns;     /* the least */
  uint64_t last; /* when it was asked for */
} known;

struct measure {
  measure_options options;
  char **names;          /* [n_models] their paths */
  psplit_model **models; /* [n_models] of problems; NULL: a bare one */
  size_t n_models;
  known *known;
  size_t n_known;
  uint64_t n_asked;
  char scratch[64], stages[80];
#if PSPLIT_HAS_RUNTIME
  psplit_onnxruntime *ort;
#endif
};

psplit_code measure_create(const measure_options *options, psplit_diag *diag, measure **out) {
  if (options->run && !PSPLIT_HAS_RUNTIME)
    return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED,
                            "--reward measured: this build cannot run stages");
  measure *m = calloc(1, sizeof *m);
  if (!m) return cli_nomem(diag);
  m->options = *options;
  psplit_code code = PSPLIT_OK;
#if PSPLIT_HAS_RUNTIME
  if (options->run) code = psplit_onnxruntime_open(options->onnxruntime, diag, &m->ort);
#endif
  if (code == PSPLIT_OK && options->run) {
    snprintf(m->scratch, sizeof m->scratch, "/tmp/psplit-learn-XXXXXX");
    if (!mkdtemp(m->scratch)) {
      m->scratch[0] = 0;
      code = psplit_diag_fail(diag, PSPLIT_IO, "cannot make a directory in /tmp");
    }
    snprintf(m->stages, sizeof m->stages, "%s/stages", m->scratch);
  }
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
  for (size_t i = 0; i < m->n_models; i++) psplit_model_close(m->models[i]);
  for (size_t i = 0; i < m->n_models; i++) free(m->names[i]);
  for (size_t i = 0; i < m->n_known; i++) {
    free(m->known[i].stage);
    free(m->known[i].type);
  }
  free(m->models);
  free(m->names);
  free(m->known);
  if (m->scratch[0]) {
    remove_stages(m->stages);
    rmdir(m->scratch);
  }
#if PSPLIT_HAS_RUNTIME
  psplit_onnxruntime_close(m->ort);
#endif
  free(m);
}

/* `model` becomes the measure's. */
static psplit_code add(measure *m, psplit_model *model, const char *path, psplit_diag *diag) {
  psplit_model **models = cli_grow(m->models, m->n_models, sizeof *models);
  if (models) m->models = models;
  char **names = models ? cli_grow(m->names, m->n_models, sizeof *names) : NULL;
  if (names) m->names = names;
  char *name = names ? strdup(path) : NULL;
  if (!name) {
    psplit_model_close(model);
    return cli_nomem(diag);
  }
  m->models[m->n_models] = model;
  m->names[m->n_models++] = name;
  return PSPLIT_OK;
}

psplit_code measure_bare(measure *m, psplit_diag *diag) { return add(m, NULL, "", diag); }

static psplit_code plan(const measure *m, const psplit_model *model,
                        const psplit_proposer *proposer, psplit_diag *diag, psplit_planner **out) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = m->options.n_stages;
  options.dims = m->options.dims;
  options.n_dims = m->options.n_dims;
  options.cancel = m->options.cancel;
  options.certify = !proposer;
  options.proposer = proposer;
  options.solver = proposer ? "drlpp" : NULL;
  if (!proposer) options.time_limit_s = 0.2; /* its own optimum is sought when it is added */
  psplit_code code = psplit_planner_create(model, &options, diag, out);
  if (code == PSPLIT_OK) code = psplit_planner_run(*out, kPasses, diag);
  return code;
}

psplit_code measure_model(measure *m, const char *path, psplit_diag *diag,
                          psplit_problem **out_problem) {
  psplit_model *model = NULL;
  psplit_planner *planner = NULL;
  psplit_certified certified = {0};
  psplit_code code = psplit_model_open(path, NULL, diag, &model);
  if (code != PSPLIT_OK) return code;
  code = add(m, model, path, diag);
  if (code == PSPLIT_OK) code = plan(m, model, NULL, diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_certificate(planner, diag, &certified);
  if (code == PSPLIT_OK)
    code =
      psplit_problem_parse_json(certified.problem, certified.n_problem, path, diag, out_problem);
  psplit_certified_fini(&certified);
  psplit_planner_destroy(planner);
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

static psplit_code run(const measure *m, psplit_diag *diag, double *out_ns) {
  psplit_pipeline *pipeline = NULL;
  psplit_run *done = NULL;
  psplit_feed_options feed;
  psplit_run_options options;
  psplit_feed_options_init(&feed);
  feed.dims = m->options.dims;
  feed.n_dims = m->options.n_dims;
  feed.random = true;
  psplit_run_options_init(&options);
  options.feed = &feed;
  options.n_micro_batches = m->options.n_micro_batches;
  options.n_warmup = 2;
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

/* A split that is refused, since a stage has no work, counts as twice as slow as what is planned in
 * its place. */
static psplit_code write_and_run(measure *m, const known *k, psplit_diag *diag, double *out_ns) {
  const psplit_model *model = m->models[k->problem];
  psplit_planner *planner = NULL;
  psplit_emit_options emit;
  const psplit_proposer proposer = {(void *)(uintptr_t)k, 1, NULL, propose, no_keys};
  psplit_emit_options_init(&emit);
  emit.no_sync = true;
  emit.cancel = m->options.cancel;
  psplit_code code = plan(m, model, &proposer, diag, &planner);
  remove_stages(m->stages);
  if (code == PSPLIT_OK)
    code = psplit_emit(model, psplit_planner_plan(planner), m->stages, &emit, diag);
  if (code == PSPLIT_OK) code = run(m, diag, out_ns);
  if (code == PSPLIT_OK && strcmp(psplit_planner_plan(planner)->solver, "drlpp") != 0) *out_ns *= 2;
  psplit_planner_destroy(planner);
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
  if (problem >= m->n_models || !m->models[problem])
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

/* Both in turn, so that what else the machine does is the same for both: the least of each. If
 * both are one split, that says how well runs repeat. */
static psplit_code run_in_turn(measure *m, const known *a, const known *b, double out_ns[2],
                               psplit_diag *diag) {
  enum { ROUNDS = 7 };
  for (uint32_t k = 0; k < 2 * ROUNDS; k++) {
    double ns = 0;
    const psplit_code code = write_and_run(m, k % 2 ? b : a, diag, &ns);
    if (code != PSPLIT_OK) return code;
    if (k < 2 || ns < out_ns[k % 2]) out_ns[k % 2] = ns;
  }
  return PSPLIT_OK;
}

psplit_code measure_print(measure *m, FILE *out, psplit_diag *diag) {
  for (uint32_t problem = 0; problem < m->n_models; problem++) {
    const known *best = NULL, *last = NULL;
    uint32_t n = 0;
    double ns[2] = {0};
    for (size_t i = 0; i < m->n_known; i++) {
      const known *k = &m->known[i];
      if (k->problem != problem || k->n_runs == 0) continue;
      n++;
      if (!best || k->ns < best->ns) best = k;
      if (!last || k->last > last->last) last = k;
    }
    if (!best) continue;
    const psplit_code code = run_in_turn(m, best, last, ns, diag);
    if (code != PSPLIT_OK) return code;
    char first[CLI_TEXT], second[CLI_TEXT];
    fprintf(out,
            "%s: %" PRIu32
            " splits were run, the best takes %s a micro-batch; the policy's%s %s "
            "(%+.1f %%)\n",
            m->names[problem], n, cli_time((int64_t)ns[0], first),
            best == last ? ", the same, run again" : "", cli_time((int64_t)ns[1], second),
            100 * (ns[1] / ns[0] - 1));
  }
  return PSPLIT_OK;
}
#else
psplit_code measure_split(void *user, uint32_t problem, const psplit_items *items,
                          const uint32_t *stage, const uint32_t *type, double *out_ns,
                          psplit_diag *diag) {
  (void)user, (void)problem, (void)items, (void)stage, (void)type, (void)out_ns;
  return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED, "this build cannot run stages");
}

psplit_code measure_print(measure *m, FILE *out, psplit_diag *diag) {
  (void)m, (void)out, (void)diag;
  return PSPLIT_OK;
}
#endif
