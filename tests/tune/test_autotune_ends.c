/* Tuning that is refused, cancelled or fails: what is said, which costs are kept, and that nothing
 * stays behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>

#include "failing.h"
#include "failing_requests.h"
#include "scratch.h"
#include "text_model.h"
#include "tunings.h"

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
  note_round(&c->rounds, round);
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
  psplit_model *model = open_tuned("chain.onnx", false);
  for (size_t i = 0; i < sizeof cases / sizeof *cases * 2; i++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    psplit_cost_table *given = even_costs(100), *costs = NULL;
    char cut[N_NODES + 1];
    set_up_tuning(&planner, &options, NULL);
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
  psplit_model *model = open_tuned("chain.onnx", false);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    psplit_cost_table *costs = NULL;
    told told_rounds = {0};
    set_up_tuning(&planner, &options, &told_rounds);
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
  psplit_model *model = open_tuned("chain.onnx", false);
  set_up_tuning(&planner, &options, &told_rounds);
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
  psplit_model *model = open_tuned("chain.onnx", false);
  for (int asked = 0; asked < 2; asked++) {
    psplit_diag diag = {0};
    psplit_planner_options planner;
    psplit_autotune_options options;
    told told_rounds = {0};
    set_up_tuning(&planner, &options, &told_rounds);
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
  set_up_tuning(&planner, &options, &told_rounds);
  planner.time_limit_s = 0.02; /* of work */
  options.n_rounds = 2;
  fake = (fake_runs){.kernel_us = 10, .stage_ns = {{30000, 90000}, {60000, 61000}}};
  fake.fails_at = fails_at;
  return psplit_autotune(&FAKE_ORT, path, model, &options, diag, out);
}

static void runs_fail(void **state) {
  (void)state;
  write_model_text("chain.onnx", CHAIN);
  psplit_model *model = open_tuned("chain.onnx", false);
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
    psplit_model *model = open_tuned(models[i].path, i == 1);
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
    cmocka_unit_test_setup_teardown(cancelled_behind, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(refused, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(cancelled_between, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(given_up, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(runs_fail, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(out_of_memory, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
