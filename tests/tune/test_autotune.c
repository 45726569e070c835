/* Rounds of tuning on times that are made up: how many there are, what they tell, which costs come
 * out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_runs.h"
#include "scratch.h"
#include "text_model.h"
#include "tunings.h"

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
  set_up_tuning(&planner, &options, &rounds);
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
  psplit_model *model = open_tuned("chain.onnx", false);
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
  psplit_model *model = open_tuned("chain.onnx", false);
  set_up_tuning(&planner, &options, &rounds);
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
  psplit_model *model = open_tuned("chain.onnx", false);
  psplit_cost_table *costs, *given = even_costs(100);
  psplit_diag diag = {0};
  psplit_planner_options planner;
  psplit_autotune_options options;
  told told_rounds = {0};
  char cut[N_NODES + 1];
  set_up_tuning(&planner, &options, &told_rounds);
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
  psplit_model *model = open_tuned("branch.onnx", true);
  for (int one = 0; one < 2; one++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    psplit_cost_table *costs;
    told told_rounds = {0};
    char cut[N_NODES + 2];
    set_up_tuning(&planner, &options, &told_rounds);
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(rounds, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(what_is_asked_for, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(balanced_by_chance, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(inlined, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
