/* Nodes that are computed again: no split with such copies is below the bound that is given for
 * them, and where copies help, the bound is mostly the best split's value. Told by enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all_copies.h"
#include "builder.h"
#include "copied_plans.h"
#include "copies.h"
#include "copies_add.h"
#include "open.h"
#include "pass_on.h"

typedef struct counts {
  unsigned n_helped, n_tight, n_close; /* the bound is the best, or within a tenth of it */
  unsigned n_better;                   /* of all copies some are better than those that pay */
} counts;

/* Of all splits with copies the best is as the program counts it, if it sends directly, and no
 * split is below its bound, whatever copies it has. */
static void try_all(psplit_planner *planner, psplit_i_all_copies *out) {
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_all_copies_find(planner, INT64_MAX / 8, 0.1, &diag, out), PSPLIT_OK);
  assert_true(out->bound_ns > 0 && out->value_ns < INT64_MAX / 8);
  assert_true(out->any_bound_ns <= out->bound_ns && out->bound_ns == out->value_ns);
  uint32_t *next = planner->next_hop;
  const bool passes_on = planner->passes_on;
  psplit_solution *solution = planner->solution;
  planner->solution = NULL; /* no bound of its own */
  psplit_i_pass_nothing_on(planner);
  assert_int_equal(psplit_i_builder_adopt(planner, out->stage, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_copies_give(planner, out->copies, out->n_copies, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_plan_make(planner, &diag), PSPLIT_OK);
  assert_true(planner->plan->bottleneck_ns == out->value_ns);
  planner->solution = solution;
  planner->next_hop = next;
  planner->passes_on = passes_on;
}

static counts compare(uint32_t n_models, bool overlap, psplit_message_latency latency) {
  counts found = {0};
  for (uint32_t m = 0; m < n_models; m++) {
    dice d = {m, 0};
    psplit_planner_options options = options_for(2 + draw(&d, 2), NULL);
    options.overlap = overlap;
    options.message_latency = latency;
    psplit_model *model = draw_model(&d, 4 + draw(&d, MOST_NODES - 3));
    psplit_planner *planner = unit_of(model, &options);
    if (planner->graph->n_nodes <= MOST_NODES + 2 && plan_of(planner)) {
      psplit_diag diag = {0};
      copied_search s = {.planner = planner, .best_ns = INT64_MAX, .plain_ns = INT64_MAX};
      uint32_t stage[2 * MOST_NODES];
      int64_t bound_ns = 0;
      psplit_i_all_copies all;
      assert_int_equal(psplit_i_bound_with_copies(planner, &diag, &bound_ns, stage), PSPLIT_OK);
      try_all(planner, &all);
      find_best_copied(&s);
      assert_true((planner->passes_on ? all.any_bound_ns : all.bound_ns) <= s.best_ns);
      found.n_better += all.value_ns < s.best_ns;
      if (bound_ns > s.best_ns)
        fail_msg("model %u: the bound %ld is above %ld", m, (long)bound_ns, (long)s.best_ns);
      if (s.best_ns < s.plain_ns) {
        found.n_helped++;
        found.n_tight += bound_ns == s.best_ns;
        found.n_close += bound_ns >= s.best_ns - s.best_ns / 10;
      }
    }
    psplit_planner_destroy(planner);
    psplit_model_close(model);
  }
  print_message(
    "# copies help in %u, the bound is the best in %u, and near it in %u; others are "
    "better in %u\n",
    found.n_helped, found.n_tight, found.n_close, found.n_better);
  return found;
}

static void no_split_is_below_the_bound(void **state) {
  (void)state;
  const counts found = compare(50, false, PSPLIT_LATENCY_PER_TENSOR);
  assert_true(found.n_helped >= 15);
  assert_true(found.n_tight * 10 >= found.n_helped * 6);
}

/* Where copies may save all that they can, the bound holds and is mostly lower. */
static void none_is_where_stages_send_while_they_compute(void **state) {
  (void)state;
  assert_true(compare(16, true, PSPLIT_LATENCY_PER_TENSOR).n_helped >= 2);
}

/* Where latency is a message's, bytes have their price, and so have messages that stages need
 * whatever they compute again: without the price of messages the bound is the best in two and near
 * in four, without that of bytes, too, near in two. Where the plan passes tensors on, the bound is
 * by shared memory, for all ways, and lower. */
static void none_is_where_latency_is_a_messages(void **state) {
  (void)state;
  const counts found = compare(50, false, PSPLIT_LATENCY_PER_PAIR);
  assert_true(found.n_helped >= 20 && found.n_tight >= 6 && found.n_close >= 10);
}

/* A mask that takes three nodes to make, each of which takes less than what it reads takes to be
 * received: where it is read again, all three are computed again. */
static void a_mask_is_computed_again_from_the_models_inputs(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[256,256] x, float[1,8] m) => "
    "(float[256,256] y)"
    "<float[256,256] w = random(1)> {"
    " a = Neg (m)\n b = Abs (a)\n c = Neg (b)\n d = ReduceMean <keepdims = 0> (c)\n"
    " h1 = MatMul (x, w)\n h2 = Add (h1, d)\n h3 = MatMul (h2, w)\n h4 = MatMul (h3, w)\n"
    " h5 = Add (h4, d)\n y = MatMul (h5, w)}");
  psplit_planner_options options = options_for(2, NULL);
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  assert_true(plan_of(planner));
  assert_int_equal(psplit_planner_plan(planner)->n_transfers, 2);
  assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_int_equal(plan->n_transfers, 1);
  assert_int_equal(plan->n_copies, 4);
  for (uint32_t c = 0; c < plan->n_copies; c++) assert_int_equal(plan->copies[c].stage, 1);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

/* Two, of which the second has so much memory. */
static psplit_devices *two_devices(uint64_t memory_bytes, double bytes_per_second, int latency_ns) {
  char text[512];
  snprintf(text, sizeof text,
           "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"},"
           " {\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": %lu}], \"topology\": "
           "{\"same_host\": {\"bytes_per_second\": %.0f, \"latency_ns\": %d}}}",
           (unsigned long)memory_bytes, bytes_per_second, latency_ns);
  return parsed(text);
}

/* In their order, with a latency for each tensor. */
static psplit_planner_options options_for_two(const psplit_devices *devices) {
  psplit_planner_options options = options_for(2, devices);
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
  return options;
}

/* What two results follow from is cheap beside a message: another split is far better with a copy,
 * though the best one without has no use for any. */
static void a_split_that_only_copies_make_best_is_found(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[4,64] x) => (float[4,64] v3, float[4,64] "
    "v5)"
    "<float[64,64] w = random(1), float[64,64] u = random(2), float[64,64] t = random(3)> {"
    " v0 = MatMul (x, w)\n v1 = Relu (v0)\n v2 = MatMul (v0, u)\n v3 = Add (v1, v1)\n"
    " v4 = Add (v2, v0)\n v5 = MatMul (v4, t)}");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": "
    "\"cpu\"}], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e9, \"latency_ns\": "
    "1000000}}}");
  for (int per_tensor = 0; per_tensor < 2; per_tensor++) {
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.n_stages = 2;
    options.devices = devices;
    options.slack_frac = 0;
    options.message_latency = per_tensor ? PSPLIT_LATENCY_PER_TENSOR : PSPLIT_LATENCY_PER_PAIR;
    psplit_planner *planner = unit_of(model, &options);
    psplit_diag diag = {0};
    assert_true(plan_of(planner));
    assert_true(psplit_planner_plan(planner)->bottleneck_ns > 1000000);
    assert_non_null(strstr(psplit_planner_plan(planner)->bound_scope, "without copies"));
    assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
    const psplit_plan *plan = psplit_planner_plan(planner);
    assert_true(plan->bottleneck_ns < 1000000);
    assert_true(plan->lower_bound_ns <= plan->bottleneck_ns);
    assert_true(!plan->proof_scope || !strstr(plan->proof_scope, "without copies"));
    assert_int_equal(plan->n_transfers, 0);
    psplit_planner_destroy(planner);
  }
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* Two halves of nine products each, which begin with three cheap results and end with another one:
 * the best split without copies cuts both in their middles, and the one where each stage has a half
 * and makes all that is cheap itself sends nothing. */
typedef struct moved {
  int64_t before_ns, after_ns, bound_ns;
  uint64_t bytes; /* of the second stage */
  bool differs;   /* the split is another one */
} moved;

static moved move_with_copies(uint64_t memory_bytes) {
  psplit_i_text nodes = {0};
  psplit_i_text_puts(&nodes,
                     "<ir_version: 8, opset_import: [\"\": 13]> m (float[256,256] x, float[1,8] m) "
                     "=> (float[256,256] y, float[256,256] z) <float[1] one = {1}");
  for (int i = 0; i < 8; i++)
    psplit_i_text_addf(&nodes, ", float[256,256] v%d = random(2), float[256,256] w%d = random(3)",
                       i, i);
  psplit_i_text_puts(&nodes,
                     "> { d0 = Neg (m)\n d = ReduceMean <keepdims = 0> (d0)\n c1 = Add (x, d)\n"
                     " c2 = Abs (x)\n c3 = Relu (x)\n a0 = Gemm (c2, c1, c3)\n"
                     " b0 = Gemm (c1, c2, c3)\n");
  for (int i = 0; i < 8; i++)
    psplit_i_text_addf(&nodes, " a%d = MatMul (a%d, v%d)\n b%d = MatMul (b%d, w%d)\n", i + 1, i, i,
                       i + 1, i, i);
  psplit_i_text_puts(&nodes, " y = Add (a8, d)\n z = Add (b8, d)}");
  psplit_model *model = opened_text(nodes.bytes);
  psplit_devices *devices = two_devices(memory_bytes, 1e13, 300000);
  psplit_planner_options options = options_for_two(devices);
  options.slack_frac = 0;
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  moved found = {0};
  assert_true(plan_of(planner));
  const uint32_t n = planner->graph->n_nodes;
  uint32_t *stage = malloc(n * sizeof *stage);
  assert_non_null(stage);
  memcpy(stage, planner->stage, n * sizeof *stage);
  found.before_ns = psplit_planner_plan(planner)->bottleneck_ns;
  if (psplit_planner_run(planner, "replicate", &diag)) fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  found.after_ns = plan->bottleneck_ns;
  found.bound_ns = plan->lower_bound_ns;
  found.bytes = plan->stages[1].memory_bytes;
  found.differs = memcmp(stage, planner->stage, n * sizeof *stage) != 0;
  free(stage);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
  psplit_i_text_fini(&nodes);
  return found;
}

static void another_split_is_taken_for_its_copies(void **state) {
  (void)state;
  const moved found = move_with_copies(UINT64_C(1) << 30);
  assert_true(found.differs && found.after_ns < found.before_ns);
  assert_true(found.bound_ns > 0 && found.bound_ns <= found.after_ns);
  /* Where the second device has room for few of the weights, the plan is slower than that split
   * is without copies. */
  const moved limited = move_with_copies(found.bytes - 7 * (UINT64_C(1) << 18));
  assert_true(!limited.differs && limited.after_ns < limited.before_ns);
  assert_true(limited.bound_ns > 0 && limited.bound_ns <= limited.after_ns);
}

/* The plan on two devices, of which the second has so much memory; what that holds. */
static uint64_t held_by_second(const psplit_model *model, uint64_t memory_bytes,
                               const char *pipeline, uint32_t *out_n_copies) {
  psplit_diag diag = {0};
  psplit_devices *devices = two_devices(memory_bytes, 1e10, 100000);
  const psplit_planner_options options = options_for_two(devices);
  psplit_planner *planner = unit_of(model, &options);
  if (psplit_planner_run(planner, pipeline, &diag)) fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  const uint64_t bytes = plan->stages[1].memory_bytes;
  *out_n_copies = plan->n_copies;
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  return bytes;
}

/* What copies hold besides weights counts, too: with less memory there are fewer, or none. */
static void copies_fit_into_memory(void **state) {
  (void)state;
  static const char without[] = "infer-shapes,cost,mark,partition",
                    with[] = "infer-shapes,cost,mark,partition,replicate";
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[256,256] x, float[64,256] m) => "
    "(float[256,256] y)"
    "<float[256,256] w = random(1)> {"
    " d = ReduceMean <axes = [0]> (m)\n"
    " h1 = MatMul (x, w)\n h2 = Add (h1, d)\n h3 = MatMul (h2, w)\n h4 = MatMul (h3, w)\n"
    " h5 = Add (h4, d)\n y = MatMul (h5, w)}");
  uint32_t n_copies;
  const uint64_t most = UINT64_C(1) << 40, least = held_by_second(model, most, without, &n_copies);
  const uint64_t enough = held_by_second(model, most, with, &n_copies);
  print_message("# %lu bytes, %lu with copies\n", (unsigned long)least, (unsigned long)enough);
  assert_true(enough > least && n_copies > 0);
  const uint64_t limits[] = {least, least + 1, enough - 1, enough};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    const uint64_t need = held_by_second(model, limits[i], with, &n_copies);
    if (need > limits[i] || (n_copies > 0) != (limits[i] == enough))
      fail_msg("%lu bytes are needed of %lu, with %u copies", (unsigned long)need,
               (unsigned long)limits[i], n_copies);
  }
  psplit_model_close(model);
}

static void keep_line(void *user, psplit_severity severity, const char *line) {
  char *kept = user;
  if (severity == PSPLIT_NOTE && strstr(line, "without")) snprintf(kept, 200, "%s", line);
}

/* Five branches on three devices, and nodes that reach no output. */
static psplit_model *branches_beside(unsigned n_dead) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text,
                     "<ir_version: 8, opset_import: [\"\": 13]> m (float[64,64] x) => "
                     "(float[64,64] y)<float[64,64] w = random(1)> { a = Neg (x)\n");
  for (unsigned b = 0; b < 5; b++)
    psplit_i_text_addf(&text, "b%u = MatMul (a, w)\n c%u = MatMul (b%u, w)\n", b, b, b);
  for (unsigned d = 0; d < n_dead; d++) psplit_i_text_addf(&text, "d%u = Neg (x)\n", d);
  psplit_i_text_puts(&text, "y = Sum (c0, c1, c2, c3, c4)}");
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

/* Copies might save more than what is known of plans without, where there are too many nodes to try
 * all splits. */
static void gaps_without_copies_are_told(void **state) {
  (void)state;
  char line[200] = "";
  const psplit_logger logger = {.emit = keep_line, .user = line};
  psplit_planner_options options = options_for(3, NULL);
  options.logger = &logger;
  psplit_model *model = branches_beside(60);
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  assert_true(plan_of(planner));
  const int64_t plain_ns = psplit_planner_plan(planner)->lower_bound_ns;
  assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  const psplit_plan *plan = psplit_planner_plan(planner);
  char want[200];
  snprintf(want, sizeof want,
           "the gap is to plans with copies; to those without that the bound covers, it is %.2f %%",
           100.0 * (double)(plan->bottleneck_ns - plain_ns) / (double)plan->bottleneck_ns);
  assert_true(plan->n_copies > 0 && plan->lower_bound_ns < plain_ns);
  assert_string_equal(line, want);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

/* Of few nodes all splits with copies are tried: what was found of many is not the best. */
static void the_best_of_all_is_found(void **state) {
  (void)state;
  const psplit_planner_options options = options_for(3, NULL);
  int64_t of_many_ns = 0;
  for (unsigned few = 0; few < 2; few++) {
    psplit_model *model = branches_beside(few ? 0 : 60);
    psplit_planner *planner = unit_of(model, &options);
    psplit_diag diag = {0};
    assert_true(plan_of(planner));
    assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
    const psplit_plan *plan = psplit_planner_plan(planner);
    assert_true(plan->n_copies > 0 && plan->proved_optimal == few);
    assert_true(plan->bound_scope && plan->proof_scope == (few ? plan->bound_scope : NULL));
    if (few) {
      assert_true(plan->bottleneck_ns < of_many_ns);
      assert_string_equal(plan->bound, "all splits with copies");
      assert_string_equal(plan->proof_scope, "among plans that send directly");
    }
    of_many_ns = plan->bottleneck_ns;
    psplit_planner_destroy(planner);
    psplit_model_close(model);
  }
}

/* Of a chain of four products, in which no copy pays. */
static const char *scope_of(uint32_t n_stages, const psplit_devices *devices, bool try_copies,
                            char *buffer, size_t n) {
  psplit_diag diag = {0};
  psplit_planner_options options = options_for(n_stages, devices);
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[64,64] x) => (float[64,64] y)"
    "<float[64,64] w = random(1)> {"
    " a = MatMul (x, w)\n b = MatMul (a, w)\n c = MatMul (b, w)\n y = MatMul (c, w)}");
  psplit_planner *planner = unit_of(model, &options);
  assert_true(plan_of(planner));
  if (try_copies) assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_true(plan->proved_optimal && plan->proof_scope);
  snprintf(buffer, n, "%s", plan->proof_scope);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  return buffer;
}

static void proofs_say_among_which_plans(void **state) {
  (void)state;
  char scope[200];
  psplit_devices *differ = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": "
    "\"cpu-sse\"}]}");
  assert_string_equal(scope_of(1, NULL, false, scope, sizeof scope), "among all plans");
  assert_string_equal(scope_of(2, NULL, false, scope, sizeof scope), "among plans without copies");
  assert_string_equal(scope_of(3, NULL, false, scope, sizeof scope),
                      "among plans without copies that send directly");
  assert_string_equal(scope_of(2, differ, false, scope, sizeof scope),
                      "among plans without copies, for this order of devices");
  /* All copies were tried: the words stayed all the same. */
  assert_string_equal(scope_of(2, NULL, true, scope, sizeof scope), "among all plans");
  assert_string_equal(scope_of(3, NULL, true, scope, sizeof scope),
                      "among plans that send directly");
  assert_string_equal(scope_of(2, differ, true, scope, sizeof scope),
                      "among all plans, for this order of devices");
  psplit_devices_destroy(differ);
}

/* Whoever cancels while the bound is asked for is not told a bound. */
static void cancelling_ends_it(void **state) {
  (void)state;
  dice d = {3, 0};
  const volatile int cancelled = 1;
  psplit_planner_options options = options_for(2, NULL);
  psplit_model *model = draw_model(&d, MOST_NODES);
  psplit_planner *planner = unit_of(model, &options);
  uint32_t stage[4 * MOST_NODES];
  int64_t bound_ns;
  psplit_diag diag = {0};
  assert_true(plan_of(planner) && planner->graph->n_nodes <= 4 * MOST_NODES);
  planner->options.cancel = &cancelled;
  assert_int_equal(psplit_i_bound_with_copies(planner, &diag, &bound_ns, stage), PSPLIT_CANCELLED);
  assert_int_equal(diag.code, PSPLIT_CANCELLED);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_fit_into_memory),
    cmocka_unit_test(gaps_without_copies_are_told),
    cmocka_unit_test(the_best_of_all_is_found),
    cmocka_unit_test(proofs_say_among_which_plans),
    cmocka_unit_test(cancelling_ends_it),
    cmocka_unit_test(a_mask_is_computed_again_from_the_models_inputs),
    cmocka_unit_test(a_split_that_only_copies_make_best_is_found),
    cmocka_unit_test(another_split_is_taken_for_its_copies),
    cmocka_unit_test(no_split_is_below_the_bound),
    cmocka_unit_test(none_is_where_stages_send_while_they_compute),
    cmocka_unit_test(none_is_where_latency_is_a_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
