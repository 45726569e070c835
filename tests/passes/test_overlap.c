/* Stages that receive and send while they compute: a load is the largest of the three, and what a
 * plan says of itself is true of every split. Told by enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "sample.h"
#include "small_plans.h"

enum { MOST_NODES = 7, MOST_STAGES = 4, N_DEVICES = 2 };

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* --- what the figures are --- */

/* Four products in four stages, whose tensors take as long to send as a product to compute. */
static void a_load_is_the_largest_of_the_three(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(float[256,256] x, float[256,256] w) => (float[256,256] p4) {"
    "  p1 = MatMul (x, w)\n  p2 = MatMul (p1, w)\n  p3 = MatMul (p2, w)\n  p4 = MatMul (p3, w)\n"
    "}");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": \"cpu\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\"}, {\"name\": \"d\", \"preset\": \"cpu\"}],"
    " \"topology\": {\"same_host\": {\"bytes_per_second\": 1e9, \"latency_ns\": 0}}}");
  psplit_planner_options options = options_for(4, devices);
  psplit_planner *one = unit_of(model, &options);
  options.overlap = true;
  psplit_planner *other = unit_of(model, &options);
  assert_true(plan_of(one) && plan_of(other));
  const psplit_plan *sums = psplit_planner_plan(one), *overlaps = psplit_planner_plan(other);
  assert_true(overlaps->overlap && !sums->overlap && overlaps->proved_optimal);
  for (uint32_t s = 0; s < 4; s++) {
    const psplit_plan_stage *a = &sums->stages[s], *b = &overlaps->stages[s];
    assert_int_equal(a->load_ns, a->compute_ns + a->recv_ns + a->send_ns);
    assert_int_equal(b->load_ns, larger(b->compute_ns, larger(b->recv_ns, b->send_ns)));
    assert_int_equal(a->compute_ns, b->compute_ns);
  }
  assert_true(overlaps->bottleneck_ns < sums->bottleneck_ns);
  assert_int_equal(overlaps->latency_ns, sums->latency_ns); /* of one, nothing overlaps */
  psplit_planner_destroy(one);
  psplit_planner_destroy(other);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

static void it_is_refused_where_it_says_nothing(void **state) {
  (void)state;
  psplit_model *model = opened_text("(float[2,2] x) => (float[2,2] y) { y = Relu (x) }");
  const psplit_planner_training training = {0};
  for (int latency = 0; latency < 2; latency++) {
    psplit_planner_options options;
    psplit_diag diag = {0};
    psplit_planner *planner = NULL;
    psplit_planner_options_init(&options);
    options.overlap = true;
    if (latency)
      options.objective = PSPLIT_LATENCY;
    else
      options.training = &training;
    assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_UNSUPPORTED);
    assert_non_null(strstr(diag.message, latency ? "latency" : "training"));
    assert_null(planner);
  }
  psplit_model_close(model);
}

/* Half of the model is a residual run, which a cut costs layouts: they are part of computing, and
 * where tensors take no time the plan is the one that adds up. */
static void layouts_are_paid_for(void **state) {
  (void)state;
  enum { N_BLOCKS = 6, N_STAGES = 3 };
  psplit_i_text text = {0};
  psplit_i_text_puts(&text,
                     "(float[1,64,16,16] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
                     " v0 = Conv (x, w)");
  for (uint32_t b = 1; b <= N_BLOCKS; b++)
    psplit_i_text_addf(&text, " a%u = Conv (v%u, w) s%u = Add (a%u, v%u) v%u = Relu (s%u)", b,
                       b - 1, b, b, b - 1, b, b);
  for (uint32_t b = N_BLOCKS + 1; b <= 2 * N_BLOCKS; b++)
    psplit_i_text_addf(&text, " v%u = Conv (v%u, w)", b, b - 1);
  psplit_i_text_addf(&text, " y = GlobalAveragePool (v%u) }", 2 * N_BLOCKS);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": \"cpu\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\"}],"
    " \"topology\": {\"same_host\": {\"bytes_per_second\": 1e15, \"latency_ns\": 0}}}");
  int64_t bottleneck_ns[2];
  for (int overlap = 0; overlap < 2; overlap++) {
    psplit_planner_options options = options_for(N_STAGES, devices);
    options.overlap = overlap != 0;
    options.certify = true;
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    psplit_certified certified;
    psplit_diag diag = {0};
    assert_true(plan->proved_optimal && plan->layout_ns > 0);
    bottleneck_ns[overlap] = plan->bottleneck_ns;
    assert_int_equal(psplit_planner_certificate(planner, &diag, &certified), PSPLIT_OK);
    assert_true(certified.bound_ns <= plan->lower_bound_ns);
    psplit_certified_fini(&certified);
    psplit_planner_destroy(planner);
  }
  /* A tensor takes a nanosecond at each end, rounded up. */
  assert_true(bottleneck_ns[1] <= bottleneck_ns[0] && bottleneck_ns[1] > bottleneck_ns[0] - 9);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* --- against enumeration --- */

static void check_loads(const psplit_plan *plan) {
  int64_t most_ns = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage *stage = &plan->stages[s];
    assert_int_equal(stage->load_ns,
                     larger(stage->compute_ns, larger(stage->recv_ns, stage->send_ns)));
    most_ns = larger(most_ns, stage->load_ns);
  }
  assert_int_equal(plan->bottleneck_ns, most_ns);
}

/* Devices in the order they stand, or any: with copies of nodes no plan is slower. */
static void plans_say_what_is_true(void **state) {
  (void)state;
  uint32_t n_plans = 0, n_best = 0, n_proved = 0, n_faster = 0;
  for (uint64_t seed = 0; seed < sample_of(14, 100); seed++) {
    dice d = {.seed = 9000 + seed};
    const uint32_t n_stages = 2 + draw(&d, MOST_STAGES - 1);
    psplit_model *model = random_model(&d, n_stages + draw(&d, MOST_NODES + 1 - n_stages));
    psplit_devices *devices = random_devices(&d, n_stages);
    psplit_planner_options options = options_for(n_stages, devices);
    options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    options.n_threads = 1;
    const int64_t sum_ns = best_of_all(model, &options);
    options.overlap = true;
    const int64_t best_ns = best_of_all(model, &options);
    psplit_planner *planner = unit_of(model, &options);
    psplit_planner *whole = unit_of(model, &options);
    const bool any = plan_of(planner);
    if (any && best_ns == INT64_MAX) fail_msg("seed %u: a plan where none fits", (unsigned)seed);
    if (any) {
      const psplit_plan *plan = psplit_planner_plan(planner);
      psplit_diag diag = {0};
      check_loads(plan);
      if (plan->lower_bound_ns > best_ns || plan->bottleneck_ns < best_ns ||
          (plan->proved_optimal && plan->bottleneck_ns != best_ns))
        fail_msg("seed %u: bound %lld (%s) <= optimum %lld <= value %lld does not hold",
                 (unsigned)seed, (long long)plan->lower_bound_ns, plan->bound, (long long)best_ns,
                 (long long)plan->bottleneck_ns);
      n_plans++;
      n_proved += plan->proved_optimal;
      n_best += plan->bottleneck_ns == best_ns;
      n_faster += best_ns < sum_ns;
      if (psplit_planner_run(whole, "infer-shapes,cost,mark,partition,replicate", &diag))
        fail_msg("%s", diag.message);
      check_loads(psplit_planner_plan(whole));
      assert_true(psplit_planner_plan(whole)->bottleneck_ns <= plan->bottleneck_ns);
    }
    psplit_planner_destroy(whole);
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# %u plans, %u are best, %u proved, %u faster than without\n", n_plans, n_best,
                n_proved, n_faster);
  assert_true(n_best >= n_plans * 9 / 10 && n_proved >= n_plans * 8 / 10 && n_faster > n_plans / 4);
}

/* What the slower of two devices takes, node n on device on >> n & 1: of what it computes, receives
 * and sends the largest, each tensor once. */
static int64_t value_of(const psplit_planner *planner, const psplit_devices *devices, uint32_t on,
                        int64_t ns[N_DEVICES][MOST_NODES]) {
  const psplit_i_graph *graph = planner->graph;
  int64_t compute_ns[N_DEVICES] = {0}, out_ns[N_DEVICES] = {0};
  for (uint32_t n = 0; n < graph->n_nodes; n++) compute_ns[on >> n & 1] += ns[on >> n & 1][n];
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t p = graph->values[v].producer;
    bool crosses = false;
    for (uint32_t c = graph->consumer_off[v]; p != PSPLIT_NONE && c < graph->consumer_off[v + 1];
         c++)
      crosses |= (on >> graph->consumers[c] & 1) != (on >> p & 1);
    if (crosses)
      out_ns[on >> p & 1] +=
        psplit_devices_transfer_ns(devices, 0, 1, psplit_i_planner_value_bytes(planner, v, NULL));
  }
  return larger(larger(compute_ns[0], compute_ns[1]), larger(out_ns[0], out_ns[1]));
}

static void segments_are_the_best(void **state) {
  (void)state;
  uint32_t n_plans = 0, n_best = 0, n_back = 0;
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"},"
    " {\"name\": \"b\", \"preset\": \"cpu-sse\"}],"
    " \"topology\": {\"same_host\": {\"bytes_per_second\": 8e9, \"latency_ns\": 300}}}");
  for (uint64_t seed = 0; seed < sample_of(20, 100); seed++) {
    dice d = {.seed = 12000 + seed};
    psplit_model *model = random_model(&d, 2 + draw(&d, MOST_NODES - 1));
    int64_t ns[N_DEVICES][MOST_NODES], best_ns = INT64_MAX;
    psplit_planner_options options = options_for(N_DEVICES, devices);
    options.max_segments = UINT32_MAX;
    options.overlap = true;
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    for (uint32_t i = 0; i < N_DEVICES; i++) psplit_planner_node_ns(planner, i, ns[i]);
    for (uint32_t on = 0; on < UINT32_C(1) << planner->graph->n_nodes; on++) {
      const int64_t value_ns = value_of(planner, devices, on, ns);
      if (value_ns < best_ns) best_ns = value_ns;
    }
    if (plan->bottleneck_ns < best_ns || plan->lower_bound_ns > best_ns)
      fail_msg("seed %u: bound %lld, value %lld, but the optimum is %lld", (unsigned)seed,
               (long long)plan->lower_bound_ns, (long long)plan->bottleneck_ns, (long long)best_ns);
    n_plans++;
    n_best += plan->bottleneck_ns == best_ns;
    n_back += plan->n_stages > N_DEVICES;
    psplit_planner_destroy(planner);
    psplit_model_close(model);
  }
  psplit_devices_destroy(devices);
  print_message("# %u plans, %u go back and forth, %u are best\n", n_plans, n_back, n_best);
  assert_true(n_back > 0 && n_best >= n_plans * 9 / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_load_is_the_largest_of_the_three),
    cmocka_unit_test(layouts_are_paid_for),
    cmocka_unit_test(it_is_refused_where_it_says_nothing),
    cmocka_unit_test(plans_say_what_is_true),
    cmocka_unit_test(segments_are_the_best),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
