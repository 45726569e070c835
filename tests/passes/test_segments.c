/* Several stages on a device: the best of all placements by enumeration, never worse than one
 * device or than what takes all that it can, and bounds that hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "sample.h"
#include "small_plans.h"

enum { N_DEVICES = 2, MOST_NODES = 8 };

/* Two devices of different speed, which may refuse an operator each. */
static psplit_devices *two_devices(dice *d) {
  static const char *const refused[] = {"", "\"MatMul\"", "\"Softmax\""};
  const uint32_t first = draw(d, 3), second = first ? 0 : draw(d, 3);
  const char *preset = draw(d, 2) ? "cpu-sse" : "cpu-avx512";
  const char *speed = draw(d, 2) ? "1e9" : "1e10";
  char text[1024];
  snprintf(text, sizeof text,
           "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\","
           " \"unsupported\": {\"operators\": [%s]}},"
           " {\"name\": \"b\", \"preset\": \"%s\", \"unsupported\": {\"operators\": [%s]}}],"
           " \"topology\": {\"same_host\": {\"bytes_per_second\": %s, \"latency_ns\": %u}}}",
           refused[first], preset, refused[second], speed, draw(d, 3) * 3000);
  return parsed(text);
}

/* Load of the device with most to do if node n is on device on >> n & 1; INT64_MAX: one refuses. A
 * tensor is sent to the other device once. */
static int64_t value_of(const psplit_planner *planner, const psplit_devices *devices, uint32_t on,
                        int64_t ns[N_DEVICES][MOST_NODES]) {
  const psplit_i_graph *graph = planner->graph;
  int64_t load_ns[N_DEVICES] = {0};
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const uint32_t d = on >> n & 1;
    if (ns[d][n] == INT64_MAX) return INT64_MAX;
    load_ns[d] += ns[d][n];
  }
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t p = graph->values[v].producer;
    bool crosses = false;
    for (uint32_t c = graph->consumer_off[v]; p != PSPLIT_NONE && c < graph->consumer_off[v + 1];
         c++)
      crosses |= (on >> graph->consumers[c] & 1) != (on >> p & 1);
    if (!crosses) continue;
    const int64_t sent_ns =
      psplit_devices_transfer_ns(devices, 0, 1, psplit_i_planner_value_bytes(planner, v, NULL));
    load_ns[0] += sent_ns;
    load_ns[1] += sent_ns;
  }
  return load_ns[0] > load_ns[1] ? load_ns[0] : load_ns[1];
}

/* Times of nodes by device, INT64_MAX where it refuses. */
static void times_of(const psplit_planner *planner, int64_t ns[N_DEVICES][MOST_NODES]) {
  const size_t n_nodes = planner->graph->n_nodes;
  for (uint32_t d = 0; d < N_DEVICES; d++) {
    psplit_planner_node_ns(planner, d, ns[d]);
    for (size_t n = 0; planner->node_refused && n < n_nodes; n++)
      if (planner->node_refused[planner->given_class[d] * n_nodes + n]) ns[d][n] = INT64_MAX;
  }
}

/* A device that is preferred takes what it can, the other the rest. */
static int64_t greedy(const psplit_planner *planner, const psplit_devices *devices,
                      uint32_t preferred, int64_t ns[N_DEVICES][MOST_NODES]) {
  uint32_t on = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    on |= (ns[preferred][n] < INT64_MAX ? preferred : 1 - preferred) << n;
  return value_of(planner, devices, on, ns);
}

static void segments_are_the_best(void **state) {
  (void)state;
  const uint64_t n_seeds = sample_of(45, 100);
  uint32_t n_plans = 0, n_best = 0, n_back = 0;
  for (uint64_t seed = 0; seed < n_seeds; seed++) {
    dice d = {.seed = 5000 + seed};
    psplit_model *model = random_model(&d, 2 + draw(&d, MOST_NODES - 1));
    psplit_devices *devices = two_devices(&d);
    int64_t ns[N_DEVICES][MOST_NODES], best_ns = INT64_MAX;
    psplit_planner_options options = options_for(N_DEVICES, devices);
    options.max_segments = UINT32_MAX;
    options.message_latency = PSPLIT_LATENCY_PER_TENSOR; /* as value_of counts */
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    times_of(planner, ns);
    for (uint32_t on = 0; on < UINT32_C(1) << planner->graph->n_nodes; on++) {
      const int64_t value_ns = value_of(planner, devices, on, ns);
      if (value_ns < best_ns) best_ns = value_ns;
    }
    if (plan->bottleneck_ns < best_ns || plan->lower_bound_ns > best_ns)
      fail_msg("seed %u: bound %lld, value %lld, but the optimum is %lld", (unsigned)seed,
               (long long)plan->lower_bound_ns, (long long)plan->bottleneck_ns, (long long)best_ns);
    for (uint32_t p = 0; p < N_DEVICES; p++)
      assert_true(plan->bottleneck_ns <= greedy(planner, devices, p, ns));
    assert_true(plan->bottleneck_ns <= value_of(planner, devices, 0, ns));
    assert_true(plan->bottleneck_ns <= value_of(planner, devices, UINT32_MAX, ns));
    n_plans++;
    n_best += plan->bottleneck_ns == best_ns;
    n_back += plan->n_stages > N_DEVICES;
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# %u plans, %u go back and forth, %u are best\n", n_plans, n_back, n_best);
  assert_true(n_back > n_plans / 10 && n_best >= n_plans * 9 / 10);
}

/* What one input takes where node n is on device on >> n & 1, each a segment by itself. */
static int64_t latency_of(psplit_planner *planner, uint32_t on) {
  const psplit_i_graph *graph = planner->graph;
  psplit_diag diag = {0};
  uint32_t device[MOST_NODES];
  for (uint32_t i = 0; i < graph->n_nodes; i++) device[i] = on >> graph->topo[i] & 1;
  if (psplit_i_planner_order_devices(planner, device, graph->n_nodes, &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  for (uint32_t i = 0; i < graph->n_nodes; i++) planner->stage[graph->topo[i]] = i;
  planner->segmented = true;
  planner->segments_bound_ns = 0;
  if (psplit_i_plan_make(planner, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  return planner->plan->latency_ns;
}

/* Of no placement is it above what that takes; and it is not far below the plan. */
static void the_bound_on_latency_holds(void **state) {
  (void)state;
  uint32_t n_plans = 0, n_close = 0;
  for (uint64_t seed = 0; seed < 30; seed++) {
    dice d = {.seed = 7000 + seed};
    psplit_model *model = random_model(&d, 2 + draw(&d, MOST_NODES - 2));
    psplit_devices *devices = two_devices(&d);
    int64_t ns[N_DEVICES][MOST_NODES];
    psplit_planner_options options = options_for(N_DEVICES, devices);
    options.max_segments = UINT32_MAX;
    options.objective = PSPLIT_LATENCY;
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const int64_t bound_ns = planner->plan->lower_bound_ns, value_ns = planner->plan->latency_ns;
    times_of(planner, ns);
    for (uint32_t on = 0; on < UINT32_C(1) << planner->graph->n_nodes; on++)
      if (value_of(planner, devices, on, ns) < INT64_MAX && latency_of(planner, on) < bound_ns)
        fail_msg("seed %u: bound %lld, but %lld is possible", (unsigned)seed, (long long)bound_ns,
                 (long long)planner->plan->latency_ns);
    n_plans++;
    n_close += value_ns - bound_ns <= value_ns / 10;
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# %u plans, of %u the bound is within a tenth\n", n_plans, n_close);
  assert_true(n_close > n_plans / 2);
}

/* Runs of device 1 in a chain whose node i is on device on >> i & 1. */
static uint32_t runs_of(uint32_t on, uint32_t n, uint32_t device) {
  uint32_t runs = 0;
  for (uint32_t i = 0; i < n; i++)
    runs += (on >> i & 1) == device && (i == 0 || (on >> (i - 1) & 1) != device);
  return runs;
}

/* Products alike with Softmax in between, which the fast device does not run: of all ways
 * to give each device two runs of the chain at most, the plan is the best. */
static void few_segments_are_the_best(void **state) {
  (void)state;
  enum { MOST_RUNS = 2 };
  psplit_model *model = opened_text(
    "(float[64,512] x, float[512,512] w, float[512,520] v) => (float[64,520] t) {"
    " p1 = MatMul (x, w) s1 = Softmax (p1) p2 = MatMul (s1, w) s2 = Softmax (p2)"
    " p3 = MatMul (s2, w) s3 = Softmax (p3) p4 = MatMul (s3, v) t = Softmax (p4) }");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu-sse\"},"
    " {\"name\": \"b\", \"preset\": \"cpu-avx512\","
    " \"unsupported\": {\"operators\": [\"Softmax\"]}}],"
    " \"topology\": {\"same_host\": {\"bytes_per_second\": 1e10, \"latency_ns\": 1000}}}");
  int64_t ns[N_DEVICES][MOST_NODES], best_ns = INT64_MAX;
  psplit_planner_options options = options_for(N_DEVICES, devices);
  options.max_segments = MOST_RUNS;
  options.objective = PSPLIT_LATENCY;
  psplit_planner *planner = unit_of(model, &options);
  assert_true(plan_of(planner));
  const int64_t value_ns = planner->plan->latency_ns;
  const uint32_t n = planner->graph->n_nodes;
  assert_int_equal(n, MOST_NODES);
  times_of(planner, ns);
  for (uint32_t on = 0; on < UINT32_C(1) << n; on++) {
    if (runs_of(on, n, 0) > MOST_RUNS || runs_of(on, n, 1) > MOST_RUNS ||
        value_of(planner, devices, on, ns) == INT64_MAX)
      continue;
    const int64_t one_ns = latency_of(planner, on);
    if (one_ns < best_ns) best_ns = one_ns;
  }
  assert_int_equal(value_ns, best_ns);
  assert_true(best_ns < latency_of(planner, 0));
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_segments_are_the_best),
                                     cmocka_unit_test(segments_are_the_best),
                                     cmocka_unit_test(the_bound_on_latency_holds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
