/* Rounds of tuning on times that are made up: how many there are, what they tell, which costs come
 * out, and that nothing stays behind whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <psplit/profile.h>

#include "failing.h"
#include "failing_requests.h"
#include "fake_runs.h"
#include "scratch.h"
#include "text_model.h"

enum { N_NODES = 6, MOST_TOLD = 8 };

static const char CHAIN[] =
  "(float[1,16] x) => (float[1,16] v5) {"
  " [\"n0\"] v0 = Relu (x) [\"n1\"] v1 = Exp (v0) [\"n2\"] v2 = Neg (v1)"
  " [\"n3\"] v3 = Sqrt (v2) [\"n4\"] v4 = Abs (v3) [\"n5\"] v5 = Tanh (v4) }";
/* The same in a branch. */
static const char BRANCH[] =
  "(float[1,16] x, bool flag) => (float[1,16] y) { [\"choice\"] y = If (flag) <"
  "then_branch = t () => (float[1,16] v5) {"
  " [\"n0\"] v0 = Relu (x) [\"n1\"] v1 = Exp (v0) [\"n2\"] v2 = Neg (v1)"
  " [\"n3\"] v3 = Sqrt (v2) [\"n4\"] v4 = Abs (v3) [\"n5\"] v5 = Tanh (v4) },"
  "else_branch = e () => (float[1,16] w) { w = Neg (x) }> }";

/* What rounds told, in their order. */
typedef struct told {
  uint32_t n;
  psplit_autotune_round rounds[MOST_TOLD];
  int64_t measured_ns[MOST_TOLD][MOST_STAGES];
} told;

static void after_round(void *user, const psplit_autotune_round *round) {
  told *t = user;
  assert_true(t->n < MOST_TOLD);
  memcpy(t->measured_ns[t->n], round->measured_ns, round->n_stages * sizeof(int64_t));
  t->rounds[t->n++] = *round;
}

static psplit_model *open_model(const char *path, bool inlined) {
  psplit_diag diag = {0};
  psplit_model *model;
  psplit_read_options read;
  const psplit_inline_if branch = {.node = "choice", .then_branch = true};
  psplit_read_options_init(&read);
  read.inline_ifs = &branch;
  read.n_inline_ifs = inlined;
  if (psplit_model_open(path, &read, &diag, &model) != PSPLIT_OK) fail_msg("%s", diag.message);
  return model;
}

/* Each node takes so long. */
static psplit_cost_table *even_costs(int us) {
  psplit_i_text text = {0};
  psplit_diag diag = {0};
  psplit_cost_table *table;
  psplit_i_text_puts(&text,
                     "{\"format\": \"onnx-pipeline-split-costs\", \"version\": 1, \"costs\": [");
  for (int n = 0; n < N_NODES; n++)
    psplit_i_text_addf(&text, "%s{\"nodes\": [\"n%d\"], \"ns\": %d}", n ? ", " : "", n, 1000 * us);
  psplit_i_text_puts(&text, "]}");
  if (psplit_cost_table_parse("even", text.bytes, text.n, &diag, &table) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_i_text_fini(&text);
  return table;
}

/* The stage of each node by the costs given and those that came out; gives the slowest in ns. */
static int64_t cut_with(const psplit_model *model, const psplit_planner_options *given,
                        const psplit_cost_table *costs, char *out) {
  psplit_diag diag = {0};
  psplit_planner *planner;
  psplit_planner_options options = *given;
  const psplit_cost_table *tables[2] = {given->n_costs ? given->costs[0] : costs, costs};
  options.costs = tables;
  options.n_costs = 2;
  if (psplit_planner_create(model, &options, &diag, &planner) != PSPLIT_OK ||
      psplit_planner_run(planner, NULL, &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  for (uint32_t n = 0; n < plan->n_nodes; n++) *out++ = (char)('0' + plan->node_stage[n]);
  *out = '\0';
  const int64_t bottleneck_ns = plan->bottleneck_ns;
  psplit_planner_destroy(planner);
  return bottleneck_ns;
}

/* Files and directories here besides models. */
static int n_left(void) {
  int n = 0;
  DIR *here = opendir(".");
  assert_non_null(here);
  for (struct dirent *each; (each = readdir(here));)
    n += each->d_name[0] != '.' && !strstr(each->d_name, ".onnx");
  closedir(here);
  return n;
}

static void set_up(psplit_planner_options *planner, psplit_autotune_options *options,
                   told *rounds) {
  psplit_planner_options_init(planner);
  planner->n_stages = 2;
  planner->n_threads = 1;
  psplit_autotune_options_init(options);
  options->planner = planner;
  options->beside = "out";
  options->after_round = after_round;
  options->after_round_user = rounds;
}

/* Times of stages in us; the first plan halves six nodes. */
static const struct tuning {
  const char *title;
  int node_us; /* given; < 0: none, so that the whole is profiled */
  int stages, rounds, stage_us[MOST_RUNS][MOST_STAGES];
  uint32_t told, n_micro_batches; /* of the first */
  double imbalance;               /* of the last */
  const char *cut;
} tunings[] = {
  {"balanced at once", 100, 2, 4, {{300, 310}}, 1, 1000, 310 / 305. - 1, "000111"},
  {"the slow half gets less",
   100,
   2,
   4,
   {{300, 900}, {600, 610}},
   2,
   1000,
   610 / 605. - 1,
   "000011"},
  {"so it does by a profile of the whole",
   -1,
   2,
   4,
   {{30, 90}, {60, 61}},
   2,
   1000,
   61 / 60.5 - 1,
   "000011"},
  {"what was slower is not kept",
   100,
   2,
   2,
   {{300, 900}, {2000, 100}},
   2,
   1000,
   2000 / 1050. - 1,
   "000111"},
  {"the last round has no successor", 100, 2, 1, {{300, 900}}, 1, 1000, 0.5, "000111"},
  {"the same cut again is no round", 100, 2, 4, {{300, 350}}, 1, 1000, 350 / 325. - 1, "000111"},
  {"far faster than thought",
   100,
   2,
   2,
   {{100, 300}, {200, 205}},
   2,
   1000,
   205 / 202.5 - 1,
   "000011"},
  {"back to the first by way of another",
   100,
   2,
   3,
   {{300, 900}, {1200, 300}, {500, 520}},
   3,
   1000,
   520 / 510. - 1,
   "000111"},
  {"stages that take no time", 100, 2, 3, {{0, 0}}, 1, 1000, 0, "000111"},
  {"one that takes none costs what its kernels say",
   100,
   2,
   3,
   {{0, 300}, {100, 101}},
   2,
   1000,
   101 / 100.5 - 1,
   "000011"},
  {"long runs are few", 1000000, 2, 1, {{3000000, 3100000}}, 1, 10, 3100 / 3050. - 1, "000111"},
  {"about a second of work", 10000, 2, 1, {{30000, 31000}}, 1, 33, 31000 / 30500. - 1, "000111"},
  {"nodes that cost nothing", 0, 1, 2, {{300}}, 1, 100, 0, "000000"},
};

static void check_told(const struct tuning *t, const told *rounds) {
  if (rounds->n != t->told) fail_msg("%s: %u rounds", t->title, rounds->n);
  if (fake.n_micro_batches[0] != t->n_micro_batches)
    fail_msg("%s: %u micro-batches", t->title, fake.n_micro_batches[0]);
  for (uint32_t r = 0; r < rounds->n; r++) {
    assert_int_equal(rounds->rounds[r].round, r + 1);
    assert_int_equal(rounds->rounds[r].n_stages, t->stages);
    for (int s = 0; s < t->stages; s++)
      if (rounds->measured_ns[r][s] != fake.stage_ns[r][s])
        fail_msg("%s: round %u, stage %d: %lld ns", t->title, r + 1, s,
                 (long long)rounds->measured_ns[r][s]);
  }
  const double imbalance = rounds->rounds[rounds->n - 1].imbalance_frac - t->imbalance;
  if (imbalance > 1e-9 || imbalance < -1e-9) fail_msg("%s: %g", t->title, imbalance + t->imbalance);
}

static void rounds_of(const psplit_model *model, const struct tuning *t) {
  psplit_diag diag = {0};
  psplit_planner_options planner;
  psplit_autotune_options options;
  psplit_cost_table *costs, *given = t->node_us < 0 ? NULL : even_costs(t->node_us);
  told rounds = {0};
  char cut[N_NODES + 1];
  set_up(&planner, &options, &rounds);
  planner.n_stages = (uint32_t)t->stages;
  planner.costs = (const psplit_cost_table *const *)&given;
  planner.n_costs = given != NULL;
  options.n_rounds = (uint32_t)t->rounds;
  fake = (fake_runs){.kernel_us = 10};
  for (int r = 0; r < MOST_RUNS; r++)
    for (int s = 0; s < MOST_STAGES; s++) fake.stage_ns[r][s] = t->stage_us[r][s] * INT64_C(1000);
  if (psplit_autotune(&FAKE_ORT, "chain.onnx", model, &options, &diag, &costs) != PSPLIT_OK)
    fail_msg("%s: %s", t->title, diag.message);
  check_told(t, &rounds);
  cut_with(model, &planner, costs, cut);
  if (strcmp(cut, t->cut) != 0) fail_msg("%s: cut %s", t->title, cut);
  if (n_left()) fail_msg("%s: something stays", t->title);
  psplit_cost_table_destroy(costs);
  psplit_cost_table_destroy(given);
}

static void rounds(void **state) {
  (void)state;
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  for (size_t i = 0; i < sizeof tunings / sizeof *tunings; i++) rounds_of(model, &tunings[i]);
  psplit_model_close(model);
}

/* Lines of progress that name rounds, one behind the other. */
typedef struct lines {
  char text[1024];
} lines;

static void note_line(void *user, psplit_severity severity, const char *line) {
  lines *all = user;
  if (severity != PSPLIT_PROGRESS || !strstr(line, ", round ")) return;
  strncat(all->text, line, sizeof all->text - strlen(all->text) - 2);
  strcat(all->text, "\n");
}

/* The logger of the emitter hears what begins, and sessions are as they were asked for: those of
 * the profile of the whole, too. */
static void what_is_asked_for(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_planner_options planner;
  psplit_autotune_options options;
  psplit_cost_table *costs;
  psplit_emit_options emit;
  told rounds = {0};
  lines heard = {""};
  const psplit_logger logger = {.emit = note_line, .user = &heard}, deaf = {.emit = NULL};
  const psplit_session session = {.provider = "odd", .optimization = 1};
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  set_up(&planner, &options, &rounds);
  psplit_emit_options_init(&emit);
  options.emit = &emit;
  options.session = &session;
  options.n_rounds = 2;
  for (int listens = 0; listens < 2; listens++) {
    emit.logger = listens ? &logger : &deaf;
    fake = (fake_runs){.kernel_us = 10, .stage_ns = {{30000, 90000}, {60000, 61000}}};
    rounds.n = 0;
    if (psplit_autotune(&FAKE_ORT, "chain.onnx", model, &options, &diag, &costs) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    assert_int_equal(rounds.n, 2);
    assert_string_equal(fake.session.provider, "odd");
    assert_int_equal(fake.session.optimization, 1);
    psplit_cost_table_destroy(costs);
  }
  assert_string_equal(heard.text,
                      "planning, round 1 of at most 2\nrunning stages, round 1 of at most 2\n"
                      "profiling stages, round 1 of at most 2\nplanning, round 2 of at most 2\n"
                      "running stages, round 2 of at most 2\n");
  psplit_model_close(model);
}

/* Costs that are ten times too high halve a chain as well as true ones do: the split is right, and
 * what it is said to take comes from what it took. */
static void balanced_by_chance(void **state) {
  (void)state;
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  psplit_cost_table *costs, *given = even_costs(100);
  psplit_diag diag = {0};
  psplit_planner_options planner;
  psplit_autotune_options options;
  told told_rounds = {0};
  char cut[N_NODES + 1];
  set_up(&planner, &options, &told_rounds);
  planner.costs = (const psplit_cost_table *const *)&given;
  planner.n_costs = 1;
  options.n_rounds = 3;
  fake = (fake_runs){.kernel_us = 10, .stage_ns = {{30000, 31000}}};
  if (psplit_autotune(&FAKE_ORT, "chain.onnx", model, &options, &diag, &costs) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  assert_int_equal(told_rounds.n, 1);
  assert_in_range(told_rounds.rounds[0].predicted_ns, 300000, 320000);
  assert_in_range(cut_with(model, &planner, costs, cut), 31000, 50000);
  assert_string_equal(cut, "000111");
  psplit_cost_table_destroy(costs);
  psplit_cost_table_destroy(given);
  psplit_model_close(model);
}

/* Where an If was replaced, the file is not what is split: one stage of it is profiled. */
static void inlined(void **state) {
  (void)state;
  write_model_text("branch.onnx", BRANCH);
  psplit_model *model = open_model("branch.onnx", true);
  for (int one = 0; one < 2; one++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    psplit_cost_table *costs;
    told told_rounds = {0};
    char cut[N_NODES + 2];
    set_up(&planner, &options, &told_rounds);
    fake = (fake_runs){.kernel_us = 10, .stage_ns = {{300000, 310000}}, .no_optimized = one == 1};
    if (psplit_autotune(&FAKE_ORT, "branch.onnx", model, &options, &diag, &costs) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    assert_non_null(strstr(fake.opened, "/stages/stage0.onnx"));
    cut_with(model, &planner, costs, cut);
    assert_string_equal(cut, "0000111"); /* the last one hands the branch's result on */
    assert_int_equal(n_left(), 0);
    psplit_cost_table_destroy(costs);
  }
  psplit_model_close(model);
}

/* Cancelled by whoever is told of round `last`. */
static struct canceller {
  told rounds;
  uint32_t last;
  int cancel;
  char best[N_NODES + 1]; /* the cut of what that round told as the best */
  const psplit_model *model;
  const psplit_planner_options *planner;
} canceller;

static void cancel_after(void *user, const psplit_autotune_round *round) {
  struct canceller *c = user;
  after_round(&c->rounds, round);
  if (round->round != c->last) return;
  cut_with(c->model, c->planner, round->best, c->best);
  c->cancel = 1;
}

/* The best of the rounds until then, where that is asked for. */
static void cancelled_behind(void **state) {
  static const struct {
    int64_t us[MOST_RUNS][MOST_STAGES];
    uint32_t last;
    const char *cut;
  } cases[] = {{{{300, 900}, {600, 800}, {500, 700}}, 1, "000111"},
               {{{300, 900}, {600, 800}, {500, 700}}, 2, "000011"},
               {{{300, 900}, {1200, 300}, {500, 520}}, 2, "000111"}};
  (void)state;
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  for (size_t i = 0; i < sizeof cases / sizeof *cases * 2; i++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    psplit_cost_table *given = even_costs(100), *costs = NULL;
    char cut[N_NODES + 1];
    set_up(&planner, &options, NULL);
    planner.costs = (const psplit_cost_table *const *)&given;
    planner.n_costs = 1;
    canceller = (struct canceller){.last = cases[i / 2].last, .model = model, .planner = &planner};
    options.n_rounds = 5;
    options.after_round = cancel_after;
    options.after_round_user = &canceller;
    options.cancel = &canceller.cancel;
    options.keep_best = i % 2 == 0;
    fake = (fake_runs){.kernel_us = 10};
    for (int r = 0; r < MOST_RUNS; r++)
      for (int s = 0; s < MOST_STAGES; s++)
        fake.stage_ns[r][s] = cases[i / 2].us[r][s] * INT64_C(1000);
    const psplit_code code =
      psplit_autotune(&FAKE_ORT, "chain.onnx", model, &options, &diag, &costs);
    assert_int_equal(canceller.rounds.n, cases[i / 2].last);
    assert_string_equal(canceller.best, cases[i / 2].cut);
    assert_int_equal(n_left(), 0);
    if (options.keep_best) {
      assert_int_equal(code, PSPLIT_OK);
      assert_string_equal(diag.message, "");
      cut_with(model, &planner, costs, cut);
      assert_string_equal(cut, cases[i / 2].cut);
    } else {
      assert_int_equal(code, PSPLIT_CANCELLED);
      assert_null(costs);
    }
    psplit_cost_table_destroy(costs);
    psplit_cost_table_destroy(given);
  }
  psplit_model_close(model);
}

/* What is asked for in vain. */
static void no_planner(psplit_autotune_options *options) { options->planner = NULL; }
static void no_path(psplit_autotune_options *options) { options->beside = NULL; }
static void no_round(psplit_autotune_options *options) { options->n_rounds = 0; }
static void no_struct(psplit_autotune_options *options) { options->struct_size = 1; }
static void no_directory(psplit_autotune_options *options) { options->beside = "nowhere/out//"; }
static void no_partition(psplit_autotune_options *options) { options->pipeline = "infer-shapes"; }
static void no_such_pass(psplit_autotune_options *options) { options->pipeline = "guess"; }
static void wrong_feed(psplit_autotune_options *options) {
  static psplit_feed_options feed = {.struct_size = 1};
  options->feed = &feed;
}
static void other_input(psplit_autotune_options *options) {
  static const int64_t one[] = {1};
  static const psplit_feed_shape shape = {.input = "z", .dims = one, .n_dims = 1};
  static psplit_feed_options feed;
  psplit_feed_options_init(&feed);
  feed.shapes = &shape;
  feed.n_shapes = 1;
  options->feed = &feed;
}
static void wrong_planner(psplit_autotune_options *options) {
  static psplit_planner_options planner = {.struct_size = 1};
  options->planner = &planner;
}
static void wrong_emit(psplit_autotune_options *options) {
  static psplit_emit_options emit = {.struct_size = 1};
  options->emit = &emit;
}
static void wrong_read(psplit_autotune_options *options) {
  static psplit_read_options read = {.struct_size = 1};
  options->read = &read;
}
static void small_text(psplit_autotune_options *options) { options->max_text_bytes = 10; }
static void cancelled(psplit_autotune_options *options) {
  static const volatile int yes = 1;
  options->cancel = &yes;
}

static void refused(void **state) {
  (void)state;
  static const struct {
    void (*set)(psplit_autotune_options *options);
    psplit_code code;
    const char *message;
  } wrong[] = {
    {no_planner, PSPLIT_USAGE, "a planner's options, a path and a round"},
    {no_path, PSPLIT_USAGE, "a planner's options, a path and a round"},
    {no_round, PSPLIT_USAGE, "a planner's options, a path and a round"},
    {no_struct, PSPLIT_USAGE, "psplit_autotune_options"},
    {wrong_planner, PSPLIT_USAGE, "psplit_planner_options"},
    {wrong_emit, PSPLIT_USAGE, "psplit_emit_options"},
    {wrong_read, PSPLIT_USAGE, "psplit_read_options"},
    {wrong_feed, PSPLIT_USAGE, "psplit_feed_options"},
    {no_directory, PSPLIT_IO, "a directory in nowhere: "},
    {no_partition, PSPLIT_USAGE, "no pass that partitions"},
    {no_such_pass, PSPLIT_USAGE, "guess"},
    {other_input, PSPLIT_USAGE, "no input z"},
    {small_text, PSPLIT_LIMIT, "pipeline.json"},
    {cancelled, PSPLIT_CANCELLED, ""},
  };
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    psplit_cost_table *costs = NULL;
    told told_rounds = {0};
    set_up(&planner, &options, &told_rounds);
    wrong[i].set(&options);
    fake = (fake_runs){.kernel_us = 10, .stage_ns = {{300000, 310000}}};
    const psplit_code code =
      psplit_autotune(&FAKE_ORT, "chain.onnx", model, &options, &diag, &costs);
    if (code != wrong[i].code || !strstr(diag.message, wrong[i].message) || costs || n_left())
      fail_msg("%s: %s, %s", wrong[i].message, psplit_code_name(code), diag.message);
  }
  psplit_model_close(model);
}

/* Between rounds it is asked whether to go on. */
static void cancelled_between(void **state) {
  (void)state;
  atomic_int cancel = 0;
  psplit_diag diag = {0};
  psplit_planner_options planner;
  psplit_autotune_options options;
  psplit_cost_table *costs = NULL;
  told told_rounds = {0};
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  set_up(&planner, &options, &told_rounds);
  options.n_rounds = 3;
  options.after_round = NULL;
  options.cancel = (const volatile int *)&cancel;
  fake = (fake_runs){.kernel_us = 10, .stage_ns = {{300000, 900000}}, .cancel = &cancel};
  assert_int_equal(psplit_autotune(&FAKE_ORT, "chain.onnx", model, &options, &diag, &costs),
                   PSPLIT_CANCELLED);
  assert_int_equal(fake.n_runs, 1);
  assert_int_equal(n_left(), 0);
  psplit_model_close(model);
}

static void note_giving_up(void *user, const psplit_diag *diag) {
  assert_string_equal(diag->message, "stage 1 does not end");
  assert_int_equal(n_left(), 0); /* the process may end here */
  ++*(int *)user;
}

static void given_up(void **state) {
  (void)state;
  int n_given_up = 0;
  psplit_cost_table *costs = NULL;
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  for (int asked = 0; asked < 2; asked++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    told told_rounds = {0};
    set_up(&planner, &options, &told_rounds);
    options.give_up = asked ? note_giving_up : NULL;
    options.give_up_user = &n_given_up;
    fake = (fake_runs){.kernel_us = 10, .gives_up = true};
    assert_int_equal(psplit_autotune(&FAKE_ORT, "chain.onnx", model, &options, &diag, &costs),
                     PSPLIT_IO);
    assert_int_equal(n_given_up, asked);
    assert_int_equal(n_left(), 0);
  }
  psplit_model_close(model);
}

/* Two rounds from a profile of the whole; something in it fails. */
static psplit_code tune_twice(const psplit_model *model, const char *path, psplit_diag *diag,
                              psplit_cost_table **out) {
  psplit_planner_options planner;
  psplit_autotune_options options;
  told told_rounds = {0};
  const int fails_at = fake.fails_at;
  set_up(&planner, &options, &told_rounds);
  planner.time_limit_s = 0.02; /* of work */
  options.n_rounds = 2;
  fake = (fake_runs){.kernel_us = 10, .stage_ns = {{30000, 90000}, {60000, 61000}}};
  fake.fails_at = fails_at;
  return psplit_autotune(&FAKE_ORT, path, model, &options, diag, out);
}

static void runs_fail(void **state) {
  (void)state;
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_model("chain.onnx", false);
  psplit_code code = PSPLIT_IO;
  int n = 0;
  while (code != PSPLIT_OK) {
    psplit_diag diag = {0};
    psplit_cost_table *costs = NULL;
    const long live = live_blocks();
    fake.fails_at = ++n;
    code = tune_twice(model, "chain.onnx", &diag, &costs);
    assert_true(code == PSPLIT_OK ||
                (code == PSPLIT_IO && strstr(diag.message, "told to fail") && !costs));
    psplit_cost_table_destroy(costs);
    assert_int_equal(live_blocks(), live);
    assert_int_equal(n_left(), 0);
  }
  assert_int_equal(n, 5); /* of the whole, a round, its profile, a round */
  fake.fails_at = 0;
  psplit_model_close(model);
}

/* One try where an allocation fails; whether one has. */
static bool try_failing(const psplit_model *model, const char *path, long nth, bool (*stop)(void)) {
  psplit_diag diag = {0};
  psplit_cost_table *costs = NULL;
  const long live = live_blocks();
  const psplit_code code = tune_twice(model, path, &diag, &costs);
  const bool failed = stop();
  psplit_cost_table_destroy(costs);
  if ((code != PSPLIT_OK && (code != PSPLIT_NOMEM || !failed)) || live_blocks() != live || n_left())
    fail_msg("%s, allocation %ld: %s, %s; %ld blocks and %d files stay", path, nth,
             psplit_code_name(code), diag.message, live_blocks() - live, n_left());
  return failed;
}

static void out_of_memory(void **state) {
  (void)state;
  static const struct {
    const char *path, *text;
  } models[] = {{"chain.onnx", CHAIN}, {"branch.onnx", BRANCH}};
  for (size_t i = 0; i < 2; i++) {
    write_model_text(models[i].path, models[i].text);
    psplit_model *model = open_model(models[i].path, i == 1);
    long nth = 0;
    for (bool failed = true; failed; nth += i ? 7 : 1) { /* the branch's are mostly the same */
      fail_allocation_after(nth);
      failed = try_failing(model, models[i].path, nth, stop_failing);
    }
    assert_true(nth > 100);
    psplit_model_close(model);
  }
}

int main(void) {
  fail_requests_by_chain();
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(rounds, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(what_is_asked_for, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(balanced_by_chance, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(inlined, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(refused, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(cancelled_behind, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(cancelled_between, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(given_up, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(runs_fail, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(out_of_memory, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
