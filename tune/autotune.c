/* Split, run, take the costs from the stages, again.
 *
 * A profile of the whole model does not know what a cut changes: a weight that two products share
 * is dequantised for both, but where each has a stage of its own it becomes a part of either's
 * kernel. So every round profiles its stages, and what their kernels took is what nodes cost in the
 * next one, brought to what the stages took while all ran at once. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed_check.h"
#include "hidden_directory.h"
#include "tune.h"

/* How far costs follow a measurement that is not far from what was predicted, as an exponent: less
 * than 1 keeps noise from swinging the cut. */
static const double DAMPING = 0.8;
static const double FAR = 1.25; /* the ratio from which on it is not noise */
static const double BALANCED = 0.05;

typedef struct tuner {
  psplit_autotune_options options;
  const psplit_model *model;
  psplit_emit_options emit;
  char *scratch, *stages; /* a hidden directory, and one in it */
  int lock;               /* of it */
  const psplit_onnxruntime *ort;
  psplit_i_run_options run;
  psplit_planner_options planner;        /* its costs are those below */
  const psplit_cost_table **cost_tables; /* the caller's, then `costs` */
  size_t n_given_costs;
  psplit_cost_table *costs; /* of this round; NULL: those given alone */
  psplit_cost_table *best;  /* of the best round; the same, or its own */
  uint32_t n_nodes, n_stages;
  int64_t *node_ns;     /* [n_nodes] of the first round, on the first device */
  uint32_t *node_stage; /* [n_nodes] of the round before */
  int64_t *measured_ns; /* [n_stages] */
  int64_t best_slowest_ns;
  bool last_was_best; /* the round before is the best so far */
} tuner;

static void remove_stages(const char *path) { psplit_i_remove_tree(AT_FDCWD, path); }

/* The plan's costs become `table`, which the tuner owns from here on. */
static void use_table(tuner *t, psplit_cost_table *table) {
  const size_t n = t->n_given_costs;
  if (t->costs != t->best) psplit_cost_table_destroy(t->costs);
  t->costs = table;
  t->cost_tables[n] = table;
  t->planner.costs = t->cost_tables;
  t->planner.n_costs = n + 1;
}

static psplit_code use_text(tuner *t, const char *name, const char *text, psplit_diag *diag) {
  psplit_cost_table *table;
  const psplit_code code = psplit_cost_table_parse(name, text, strlen(text), diag, &table);
  if (code == PSPLIT_OK) use_table(t, table);
  return code;
}

static psplit_code plan_with(const tuner *t, const psplit_planner_options *options,
                             const char *pipeline, psplit_diag *diag, psplit_planner **out) {
  psplit_code code;
  PSPLIT_TRY(psplit_planner_create(t->model, options, diag, out));
  PSPLIT_TRY(psplit_planner_run(*out, pipeline, diag));
out:
  return code;
}

/* Without costs, those of the whole model are where to begin. */
static psplit_code measure_whole(tuner *t, const char *path, psplit_diag *diag) {
  enum { RUNS = 10 };
  psplit_code code;
  char *text = NULL;
  psplit_read_options read;
  psplit_run_options run;
  psplit_run_options_init(&run);
  run.sessions = t->options.session;
  run.n_sessions = t->options.session ? 1 : 0;
  run.feed = &t->run.feed.given;
  run.n_warmup = t->run.n_warmup;
  run.n_micro_batches = RUNS;
  run.cancel = t->options.cancel;
  psplit_read_options_init(&read);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_read_options, t->options.read, &read, diag));
  read.n_inline_ifs = 0;
  PSPLIT_TRY(psplit_profile_model(t->ort, path, &read, &run, diag, &text));
  PSPLIT_TRY(use_text(t, "the profile", text, diag));
out:
  free(text);
  return code;
}

/* What begins now, in the emitter's words for progress: its logger hears it too. */
static void say(const tuner *t, const char *what, uint32_t round) {
  char line[96];
  if (!t->emit.logger || !t->emit.logger->emit) return;
  snprintf(line, sizeof line, "%s, round %" PRIu32 " of at most %" PRIu32, what, round,
           t->options.n_rounds);
  t->emit.logger->emit(t->emit.logger->user, PSPLIT_PROGRESS, line);
}

/* A model in which Ifs were replaced is in no file: it is written as one stage. */
static psplit_code measure_inlined(tuner *t, psplit_diag *diag) {
  psplit_code code;
  psplit_planner *made = NULL;
  psplit_i_text path = {0};
  psplit_planner_options one = t->planner;
  one.n_stages = 1;
  one.devices = NULL;
  one.n_pins = one.n_keep_together = 0;
  one.pins_text = NULL;
  one.ignore_annotations = true;
  one.logger = NULL;
  PSPLIT_TRY(plan_with(t, &one, NULL, diag, &made));
  PSPLIT_TRY(psplit_emit(t->model, psplit_planner_plan(made), t->stages, &t->emit, diag));
  psplit_i_text_addf(&path, "%s/stage0.onnx", t->stages);
  if (path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(measure_whole(t, path.bytes, diag));
out:
  remove_stages(t->stages);
  psplit_i_text_fini(&path);
  psplit_planner_destroy(made);
  return code;
}

/* What each stage took for a micro-batch: the lower quartile, since what disturbs a stage from
 * outside only makes it slower, while the least may be of a moment when the other stages waited. */
static psplit_code take_times(const psplit_i_timeline *timeline, psplit_diag *diag,
                              int64_t *out_ns) {
  const uint32_t n = psplit_i_timeline_n(timeline);
  int64_t *ns = calloc(n, sizeof *ns);
  if (!ns) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < timeline->n_stages; s++) {
    psplit_i_timeline_times(timeline, s, ns);
    out_ns[s] = ns[n / 4];
  }
  free(ns);
  return PSPLIT_OK;
}

static bool is_far(double ratio) { return ratio > FAR || ratio < 1 / FAR; }

/* The sum of a stage's nodes for the next round. What the plan adds for layouts it adds again. */
static int64_t next_ns(const tuner *t, const psplit_plan *plan, uint32_t stage) {
  const double predicted = (double)plan->stages[stage].compute_ns;
  const double layout = (double)plan->stages[stage].layout_ns;
  const double measured = (double)t->measured_ns[stage];
  if (predicted <= layout || measured <= 0) return t->measured_ns[stage];
  const double ratio = measured / predicted;
  return llround((predicted - layout) * (is_far(ratio) ? ratio : pow(ratio, DAMPING)));
}

/* What the stages' kernels say becomes the costs of the next round. */
static psplit_code take_costs(tuner *t, const psplit_i_pipe *pipe, const psplit_plan *plan,
                              psplit_diag *diag) {
  enum { RUNS = 10 };
  psplit_code code;
  char *text = NULL;
  psplit_i_run_options run = t->run;
  psplit_i_profile *profiles = calloc((size_t)t->n_stages + 1, sizeof *profiles);
  if (!profiles) return psplit_i_nomem(diag);
  run.n_micro_batches = RUNS;
  PSPLIT_TRY(psplit_i_profile_stages(&t->ort->ort, pipe, &run, diag, profiles));
  for (uint32_t s = 0; s < t->n_stages; s++)
    profiles[s].least_ns = profiles[s].median_ns = next_ns(t, plan, s);
  PSPLIT_TRY(psplit_i_costs_of_stages(&t->ort->ort, pipe, &run, profiles, diag, &text));
  PSPLIT_TRY(use_text(t, "the stages' profile", text, diag));
out:
  for (uint32_t s = 0; s < t->n_stages; s++) psplit_i_profile_fini(&profiles[s]);
  free(profiles);
  free(text);
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

static void tell_round(const tuner *t, uint32_t round, const psplit_plan *plan, double imbalance) {
  const psplit_autotune_round told = {.round = round,
                                      .imbalance_frac = imbalance,
                                      .predicted_ns = plan->bottleneck_ns,
                                      .n_stages = t->n_stages,
                                      .measured_ns = t->measured_ns,
                                      .best = t->best};
  if (t->options.after_round) t->options.after_round(t->options.after_round_user, &told);
}

static psplit_code make_room(tuner *t, const psplit_plan *plan, psplit_diag *diag) {
  t->n_nodes = plan->n_nodes;
  t->n_stages = plan->n_stages;
  t->node_ns = calloc((size_t)t->n_nodes + 1, sizeof *t->node_ns);
  t->node_stage = calloc((size_t)t->n_nodes + 1, sizeof *t->node_stage);
  t->measured_ns = calloc((size_t)t->n_stages + 1, sizeof *t->measured_ns);
  return t->node_ns && t->node_stage && t->measured_ns ? PSPLIT_OK : psplit_i_nomem(diag);
}

static void keep_as_best(tuner *t, psplit_cost_table *best) {
  if (t->best != t->costs) psplit_cost_table_destroy(t->best);
  t->best = best;
}

/* Stages may be balanced by chance where costs are wrong. What is then planned, and told, would be
 * far from what runs. */
static bool contradicts(const psplit_plan *plan, int64_t slowest_ns) {
  if (plan->bottleneck_ns <= 0 || slowest_ns <= 0) return false;
  return is_far((double)slowest_ns / (double)plan->bottleneck_ns);
}

/* Keeps the costs of a round that is the best so far. A first one that had the costs given alone is
 * told as its nodes were counted. */
static psplit_code keep_best(tuner *t, uint32_t round, int64_t slowest_ns, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_cost_table *best = t->costs;
  t->last_was_best = round == 1 || slowest_ns < t->best_slowest_ns;
  if (!t->last_was_best) return PSPLIT_OK;
  if (!best) PSPLIT_TRY(psplit_cost_table_of_nodes(t->node_ns, t->n_nodes, diag, &best));
  keep_as_best(t, best);
  t->best_slowest_ns = slowest_ns;
out:
  return code;
}

/* Writes the stages, runs them, and gives their times; the costs of the next round follow from
 * them, unless this was the last. About a second of work. */
static psplit_code run_stages(tuner *t, const psplit_plan *plan, uint32_t round, psplit_diag *diag,
                              bool *out_done) {
  psplit_code code;
  int64_t slowest_ns;
  psplit_i_pipe pipe = {0};
  psplit_i_timeline timeline = {0};
  const double n = plan->bottleneck_ns > 0 ? 1e9 / (double)plan->bottleneck_ns : 100;
  t->run.n_micro_batches = n < 10 ? 10 : n > 1000 ? 1000 : (uint32_t)n;
  PSPLIT_TRY(psplit_emit(t->model, plan, t->stages, &t->emit, diag));
  PSPLIT_TRY(psplit_i_pipe_read(t->stages, t->options.max_text_bytes, diag, &pipe));
  PSPLIT_TRY(psplit_i_feed_meet_inputs(&t->run.feed, &pipe, diag));
  say(t, "running stages", round);
  PSPLIT_TRY(psplit_i_run_threads(&t->ort->ort, &pipe, &t->run, diag, &timeline));
  PSPLIT_TRY(take_times(&timeline, diag, t->measured_ns));
  const double imbalance = slowest_over_mean(t, &slowest_ns);
  PSPLIT_TRY(keep_best(t, round, slowest_ns, diag));
  tell_round(t, round, plan, imbalance);
  *out_done =
    (imbalance <= BALANCED && !contradicts(plan, slowest_ns)) || round == t->options.n_rounds;
  if (!*out_done) {
    say(t, "profiling stages", round);
    PSPLIT_TRY(take_costs(t, &pipe, plan, diag));
  }
out:
  psplit_i_timeline_fini(&timeline);
  psplit_i_pipe_fini(&pipe);
  remove_stages(t->stages);
  return code;
}

/* One round; *out_done: another would not help. */
static psplit_code tune_once(tuner *t, uint32_t round, psplit_diag *diag, bool *out_done) {
  psplit_code code;
  psplit_planner *made = NULL;
  say(t, "planning", round);
  PSPLIT_TRY(plan_with(t, &t->planner, t->options.pipeline, diag, &made));
  const psplit_plan *plan = psplit_planner_plan(made);
  if (!plan)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "the pipeline has no pass that partitions"));
  if (round == 1) {
    PSPLIT_TRY(make_room(t, plan, diag));
    psplit_planner_node_ns(made, 0, t->node_ns);
  }
  const size_t n_bytes = t->n_nodes * sizeof *t->node_stage;
  *out_done = round > 1 && memcmp(t->node_stage, plan->node_stage, n_bytes) == 0;
  if (*out_done) { /* the split that ran last, by costs that know what it took */
    if (t->last_was_best) keep_as_best(t, t->costs);
    goto out;
  }
  memcpy(t->node_stage, plan->node_stage, n_bytes);
  PSPLIT_TRY(run_stages(t, plan, round, diag, out_done));
out:
  psplit_planner_destroy(made);
  return code;
}

static psplit_code tune(tuner *t, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  bool done = false;
  for (uint32_t round = 1; round <= t->options.n_rounds && !done; round++) {
    PSPLIT_TRY(psplit_i_go_on(t->options.cancel, diag));
    PSPLIT_TRY(tune_once(t, round, diag, &done));
    t->planner.logger = NULL; /* the same warnings once */
  }
out:
  if (code != PSPLIT_CANCELLED || !t->best || !t->options.keep_best) return code;
  if (diag) *diag = (psplit_diag){0};
  return PSPLIT_OK;
}

/* The caller ends the process, and so the threads that are left: with nothing beside the output. */
static void give_up(void *user, const psplit_diag *diag) {
  const tuner *t = user;
  int fd = t->lock;
  psplit_i_hidden_remove(strdup(t->scratch), &fd);
  t->options.give_up(t->options.give_up_user, diag);
}

void psplit_autotune_options_defaults(psplit_autotune_options *options, size_t struct_size) {
  psplit_autotune_options defaults = {.n_rounds = 1};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

static psplit_code prepare(tuner *t, const psplit_autotune_options *given, psplit_diag *diag) {
  psplit_code code;
  psplit_autotune_options *o = &t->options;
  psplit_autotune_options_init(o);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_autotune_options, given, o, diag));
  if (!o->planner || !o->beside || !o->n_rounds)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE,
                              "autotuning needs a planner's options, a path and a round"));
  psplit_planner_options_init(&t->planner);
  psplit_emit_options_init(&t->emit);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_planner_options, o->planner, &t->planner, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, o->emit, &t->emit, diag));
  t->emit.accept = NULL;
  t->emit.no_sync = true; /* rounds are thrown away */
  t->planner.cancel = t->emit.cancel = o->cancel;
  t->cost_tables = calloc(t->planner.n_costs + 1, sizeof *t->cost_tables);
  if (!t->cost_tables) PSPLIT_FAIL(psplit_i_nomem(diag));
  t->n_given_costs = t->planner.n_costs;
  for (size_t i = 0; i < t->n_given_costs; i++) t->cost_tables[i] = t->planner.costs[i];
  t->run = (psplit_i_run_options){.session = psplit_i_take_session(o->session),
                                  .n_warmup = 2,
                                  .depth = 2,
                                  .interrupted = psplit_i_flag(o->cancel),
                                  .give_up = o->give_up ? give_up : NULL,
                                  .give_up_user = t};
  psplit_feed_options *feed = &t->run.feed.given;
  PSPLIT_TRY(psplit_i_take_feed(o->feed, diag, feed));
  feed->dims = t->planner.dims;
  feed->n_dims = t->planner.n_dims;
  feed->random = true;
out:
  return code;
}

/* A hidden directory beside `path`, whatever else has a name like it. */
static psplit_code make_scratch(tuner *t, const char *path, psplit_diag *diag) {
  psplit_code code;
  psplit_i_text stages = {0};
  char *target = NULL, *parent = NULL;
  const char *name;
  PSPLIT_TRY(psplit_i_take_place(path, diag, &target, &parent, &name));
  psplit_i_hidden_sweep(parent, name, NULL);
  PSPLIT_TRY(psplit_i_hidden_make(parent, name, 0777, diag, &t->scratch, &t->lock));
  psplit_i_text_addf(&stages, "%s/stages", t->scratch);
  t->stages = stages.bytes;
  if (stages.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
out:
  free(target);
  free(parent);
  return code;
}

psplit_code psplit_autotune(const psplit_onnxruntime *ort, const char *path,
                            const psplit_model *model, const psplit_autotune_options *options,
                            psplit_diag *diag, psplit_cost_table **out_costs) {
  psplit_code code;
  tuner t = {.ort = ort, .model = model, .lock = -1};
  PSPLIT_TRY(prepare(&t, options, diag));
  PSPLIT_TRY(make_scratch(&t, t.options.beside, diag));
  if (!t.planner.n_costs)
    PSPLIT_TRY(psplit_model_n_inlined(model) ? measure_inlined(&t, diag)
                                             : measure_whole(&t, path, diag));
  PSPLIT_TRY(tune(&t, diag));
  *out_costs = t.best;
out:
  if (code != PSPLIT_OK) psplit_cost_table_destroy(t.best);
  if (t.stages && psplit_i_diag_show(diag, t.stages, t.options.beside))
    psplit_i_diag_context(diag, "autotuning");
  if (t.costs != t.best) psplit_cost_table_destroy(t.costs);
  if (t.scratch) psplit_i_hidden_remove(t.scratch, &t.lock);
  free(t.stages);
  free(t.cost_tables);
  free(t.measured_ns);
  free(t.node_stage);
  free(t.node_ns);
  return code;
}
