#include "autotune.h"

#ifndef PSPLIT_HAS_RUNTIME
psplit_code autotune(const autotune_options *options, const char *path, const psplit_model *model,
                     uint32_t n_stages, const psplit_emit_options *emit, const char *directory,
                     FILE *out, psplit_diag *diag, plan_options *plan) {
  (void)options, (void)path, (void)model, (void)n_stages, (void)emit, (void)directory, (void)out;
  (void)plan;
  snprintf(diag->message, sizeof diag->message,
           "--autotune runs stages, and this program was built without the runner; build it with "
           "-Druntime=enabled");
  return diag->code = PSPLIT_UNSUPPORTED;
}
#else

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile_model.h"
#include "runtime.h"

/* How far costs follow a measurement, as an exponent: less than 1 keeps noise from swinging the
 * cut. */
static const double DAMPING = 0.8;
static const double BALANCED = 0.05;

typedef struct tuner {
  const autotune_options *options;
  const psplit_model *model;
  const psplit_emit_options *emit;
  char *scratch, *stages; /* a new directory, and one in it */
  plan_options *plan;
  psplit_i_ort ort;
  psplit_i_run_options run;
  psplit_i_dim_value *dims;
  uint32_t n_nodes, n_stages;
  int64_t *node_ns;     /* [n_nodes] of this round, on the first device */
  int64_t *best_ns;     /* of the best */
  uint32_t *node_stage; /* [n_nodes] of the round before */
  int64_t *measured_ns; /* [n_stages] */
  int64_t best_slowest_ns;
} tuner;

static void remove_stages(const char *path) {
  DIR *directory = path ? opendir(path) : NULL;
  if (!directory) return;
  for (struct dirent *each; (each = readdir(directory));)
    if (each->d_name[0] != '.') unlinkat(dirfd(directory), each->d_name, 0);
  closedir(directory);
  rmdir(path);
}

/* The plan's costs become `table`, which `plan` owns from here on. */
static void use_table(plan_options *plan, psplit_cost_table *table) {
  psplit_cost_table_destroy(plan->costs[plan->n_cost_files]);
  plan->costs[plan->n_cost_files] = table;
  plan->planner.costs = (const psplit_cost_table *const *)plan->costs;
  plan->planner.n_costs = plan->n_cost_files + 1;
}

static psplit_code use_times(tuner *t, const int64_t *node_ns, psplit_diag *diag) {
  psplit_cost_table *table;
  const psplit_code code = psplit_cost_table_of_nodes(node_ns, t->n_nodes, diag, &table);
  if (code == PSPLIT_OK) use_table(t->plan, table);
  return code;
}

/* Without costs, those of the whole model are where to begin. */
static psplit_code measure_whole(tuner *t, const char *path, psplit_diag *diag) {
  enum { RUNS = 10 };
  psplit_code code;
  char *text = NULL;
  psplit_cost_table *table;
  feed_settings feed = {.options = t->run.feed};
  psplit_i_run_options run = t->run;
  run.n_micro_batches = RUNS;
  psplit_read_options read = t->plan->read;
  read.n_inline_ifs = 0;
  PSPLIT_TRY(profile_model(path, &read, t->options->onnxruntime, &run, &feed, diag, &text));
  PSPLIT_TRY(psplit_cost_table_parse("the profile", text, strlen(text), diag, &table));
  use_table(t->plan, table);
out:
  free(text);
  return code;
}

/* A model in which Ifs were replaced is in no file: it is written as one stage. */
static psplit_code measure_inlined(tuner *t, psplit_diag *diag) {
  psplit_code code;
  planned made = {0};
  psplit_i_text path = {0};
  plan_options one = *t->plan;
  one.devices = one.pipeline = NULL;
  one.planner.n_pins = one.planner.n_keep_together = 0;
  one.planner.ignore_annotations = true;
  one.planner.logger = NULL;
  PSPLIT_TRY(planned_make(&one, t->model, 1, diag, &made));
  PSPLIT_TRY(psplit_emit(t->model, psplit_planner_plan(made.planner), t->stages, t->emit, diag));
  psplit_i_text_addf(&path, "%s/stage0.onnx", t->stages);
  if (path.failed) PSPLIT_TRY(psplit_i_nomem(diag));
  PSPLIT_TRY(measure_whole(t, path.bytes, diag));
out:
  remove_stages(t->stages);
  psplit_i_text_fini(&path);
  planned_fini(&made);
  return code;
}

static int by_size(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* What each stage took for a micro-batch: the lower quartile, since what disturbs a stage from
 * outside only makes it slower, while the least may be of a moment when the other stages waited. */
static psplit_code take_times(const psplit_i_timeline *timeline, psplit_diag *diag,
                              int64_t *out_ns) {
  const uint32_t n = psplit_i_timeline_n(timeline);
  int64_t *ns = calloc(n, sizeof *ns);
  if (!ns) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < timeline->n_stages; s++) {
    for (uint32_t m = 0; m < n; m++) {
      const psplit_i_event *e = psplit_i_timeline_event(timeline, s, m);
      ns[m] = e->done_ns - e->ready_ns;
    }
    qsort(ns, n, sizeof *ns, by_size);
    out_ns[s] = ns[n / 4];
  }
  free(ns);
  return PSPLIT_OK;
}

/* Writes the stages, runs them, and gives their times. About a second of work. */
static psplit_code run_stages(tuner *t, const psplit_plan *plan, psplit_diag *diag) {
  psplit_code code;
  psplit_i_pipe pipe = {0};
  psplit_i_timeline timeline = {0};
  const double n = plan->bottleneck_ns > 0 ? 1e9 / (double)plan->bottleneck_ns : 100;
  t->run.n_micro_batches = n < 10 ? 10 : n > 1000 ? 1000 : (uint32_t)n;
  PSPLIT_TRY(psplit_emit(t->model, plan, t->stages, t->emit, diag));
  PSPLIT_TRY(psplit_i_pipe_read(t->stages, t->plan->max_text_bytes, diag, &pipe));
  if (t->options->feed) PSPLIT_TRY(feed_check(t->options->feed, &pipe, diag));
  PSPLIT_TRY(psplit_i_run_threads(&t->ort, &pipe, &t->run, diag, &timeline));
  PSPLIT_TRY(take_times(&timeline, diag, t->measured_ns));
out:
  psplit_i_timeline_fini(&timeline);
  psplit_i_pipe_fini(&pipe);
  remove_stages(t->stages);
  return code;
}

static double slowest_over_mean(const tuner *t, int64_t *out_slowest_ns) {
  double sum = 0;
  int64_t slowest_ns = 0;
  for (uint32_t s = 0; s < t->n_stages; s++) {
    sum += (double)t->measured_ns[s];
    if (t->measured_ns[s] > slowest_ns) slowest_ns = t->measured_ns[s];
  }
  *out_slowest_ns = slowest_ns;
  return sum > 0 ? (double)slowest_ns * t->n_stages / sum - 1 : 0;
}

static void print_round(const tuner *t, uint32_t round, const psplit_plan *plan, double imbalance,
                        FILE *out) {
  char text[CLI_TEXT];
  if (!out) return;
  if (round == 1) fputs("round  imbalance   predicted  measured stages\n", out);
  fprintf(out, "%5" PRIu32 " %8.1f %% %11s ", round, 100 * imbalance,
          cli_time(plan->bottleneck_ns, text));
  for (uint32_t s = 0; s < t->n_stages; s++) fprintf(out, " %s", cli_time(t->measured_ns[s], text));
  fputs("\n", out);
  fflush(out);
}

/* The nodes of a stage get dearer as it was slower than predicted. */
static void correct(tuner *t, const psplit_plan *plan) {
  for (uint32_t n = 0; n < t->n_nodes; n++) {
    const uint32_t s = plan->node_stage[n];
    const double predicted = (double)plan->stages[s].compute_ns;
    if (predicted > 0 && t->measured_ns[s] > 0)
      t->node_ns[n] =
        llround((double)t->node_ns[n] * pow((double)t->measured_ns[s] / predicted, DAMPING));
  }
}

static psplit_code make_room(tuner *t, const psplit_plan *plan, psplit_diag *diag) {
  t->n_nodes = plan->n_nodes;
  t->n_stages = plan->n_stages;
  t->node_ns = calloc((size_t)t->n_nodes + 1, sizeof *t->node_ns);
  t->best_ns = calloc((size_t)t->n_nodes + 1, sizeof *t->best_ns);
  t->node_stage = calloc((size_t)t->n_nodes + 1, sizeof *t->node_stage);
  t->measured_ns = calloc((size_t)t->n_stages + 1, sizeof *t->measured_ns);
  return t->node_ns && t->best_ns && t->node_stage && t->measured_ns ? PSPLIT_OK
                                                                     : psplit_i_nomem(diag);
}

/* One round; *out_done: another would not help. */
static psplit_code tune_once(tuner *t, uint32_t round, FILE *out, psplit_diag *diag,
                             bool *out_done) {
  psplit_code code;
  planned made = {0};
  int64_t slowest_ns;
  PSPLIT_TRY(planned_make(t->plan, t->model, t->n_stages, diag, &made));
  const psplit_plan *plan = psplit_planner_plan(made.planner);
  if (!plan)
    PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_USAGE, "the pipeline has no pass that partitions"));
  if (round == 1) PSPLIT_TRY(make_room(t, plan, diag));
  const size_t n_bytes = t->n_nodes * sizeof *t->node_stage;
  *out_done = round > 1 && memcmp(t->node_stage, plan->node_stage, n_bytes) == 0;
  if (*out_done) goto out;
  memcpy(t->node_stage, plan->node_stage, n_bytes);
  psplit_planner_node_ns(made.planner, 0, t->node_ns);
  PSPLIT_TRY(run_stages(t, plan, diag));
  const double imbalance = slowest_over_mean(t, &slowest_ns);
  print_round(t, round, plan, imbalance, out);
  if (round == 1 || slowest_ns < t->best_slowest_ns) {
    t->best_slowest_ns = slowest_ns;
    memcpy(t->best_ns, t->node_ns, t->n_nodes * sizeof *t->best_ns);
  }
  correct(t, plan);
  *out_done = imbalance <= BALANCED;
out:
  planned_fini(&made);
  return code;
}

static psplit_code tune(tuner *t, FILE *out, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  bool done = false;
  for (uint32_t round = 1; round <= t->options->n_rounds && !done; round++) {
    if (atomic_load(t->options->interrupted))
      PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_IO, "interrupted"));
    PSPLIT_TRY(tune_once(t, round, out, diag, &done));
    if (!done) PSPLIT_TRY(use_times(t, t->node_ns, diag));
    t->plan->planner.logger = NULL; /* the same warnings once */
  }
  code = use_times(t, t->best_ns, diag);
out:
  return code;
}

/* Ends the process, and so the threads that are left, with nothing beside the output. */
static void give_up(void *user, const psplit_diag *diag) {
  const tuner *t = user;
  const int number = atomic_load(t->options->interrupted);
  remove_stages(t->stages);
  rmdir(t->scratch);
  const int status = cli_fail(diag);
  _exit(number ? 128 + number : status);
}

static psplit_code prepare(tuner *t, psplit_diag *diag) {
  const plan_options *plan = t->plan;
  t->dims = calloc(plan->planner.n_dims + 1, sizeof *t->dims);
  if (!t->dims) return psplit_i_nomem(diag);
  for (size_t i = 0; i < plan->planner.n_dims; i++)
    t->dims[i] = (psplit_i_dim_value){plan->planner.dims[i].name, plan->planner.dims[i].value};
  t->run = (psplit_i_run_options){
    .session = {.optimization = t->options->optimization, .n_threads = 1},
    .feed = {.dims = t->dims, .n_dims = plan->planner.n_dims, .random = true, .seed = 1},
    .n_warmup = 2,
    .depth = 2,
    .interrupted = t->options->interrupted,
    .give_up = give_up,
    .give_up_user = t};
  if (t->options->feed) {
    const psplit_i_feed_options *given = &t->options->feed->options;
    t->run.feed.given = given->given;
    t->run.feed.n_given = given->n_given;
    t->run.feed.shapes = given->shapes;
    t->run.feed.n_shapes = given->n_shapes;
  }
  return psplit_i_ort_open(t->options->onnxruntime, diag, &t->ort);
}

/* A new directory beside `directory`, whatever else has a name like it. */
static psplit_code make_scratch(tuner *t, const char *directory, psplit_diag *diag) {
  psplit_i_text path = {0}, stages = {0};
  int n = (int)strlen(directory);
  while (n > 1 && directory[n - 1] == '/') n--;
  psplit_i_text_addf(&path, "%.*s.autotune-XXXXXX", n, directory);
  if (!path.failed && !mkdtemp(path.bytes)) {
    psplit_i_text_fini(&path);
    return psplit_i_fail(diag, PSPLIT_IO, "cannot make a directory beside %s: %s", directory,
                         strerror(errno));
  }
  t->scratch = path.bytes;
  psplit_i_text_addf(&stages, "%s/stages", path.failed ? "" : path.bytes);
  t->stages = stages.bytes;
  return path.failed || stages.failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

psplit_code autotune(const autotune_options *options, const char *path, const psplit_model *model,
                     uint32_t n_stages, const psplit_emit_options *emit, const char *directory,
                     FILE *out, psplit_diag *diag, plan_options *plan) {
  psplit_code code;
  tuner t = {.options = options, .model = model, .emit = emit, .plan = plan, .n_stages = n_stages};
  const psplit_logger *logger = plan->planner.logger;
  PSPLIT_TRY(prepare(&t, diag));
  PSPLIT_TRY(make_scratch(&t, directory, diag));
  if (!plan->n_cost_files)
    PSPLIT_TRY(plan->read.n_inline_ifs ? measure_inlined(&t, diag) : measure_whole(&t, path, diag));
  PSPLIT_TRY(tune(&t, out, diag));
out:
  plan->planner.logger = logger;
  psplit_i_ort_close(&t.ort);
  if (t.scratch) rmdir(t.scratch);
  free(t.stages);
  free(t.scratch);
  free(t.dims);
  free(t.measured_ns);
  free(t.node_stage);
  free(t.best_ns);
  free(t.node_ns);
  return code;
}
#endif
