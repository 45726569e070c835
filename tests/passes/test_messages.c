/* Latency that counts once for all that one stage sends another: in the figures of plans, which are
 * counted here by hand from their transfers, and in what is best, by enumeration. */
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
#include "small_plans.h"

enum { N_PLANS = 24, MOST_STAGES = 4 };

static psplit_planner_options per_pair(uint32_t n_stages, const psplit_devices *devices) {
  psplit_planner_options options = options_for(n_stages, devices);
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
  options.message_latency = PSPLIT_LATENCY_PER_PAIR;
  return options;
}

/* Receiving and sending of each stage, from the plan's transfers alone. */
static void expect_figures(const psplit_plan *plan, const psplit_devices *devices, uint32_t seed) {
  int64_t recv[MOST_STAGES] = {0}, send[MOST_STAGES] = {0};
  bool met[MOST_STAGES][MOST_STAGES] = {{false}};
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    const psplit_plan_transfer *x = &plan->transfers[t];
    const int64_t latency = psplit_devices_transfer_ns(devices, x->from, x->to, 0);
    int64_t ns = psplit_devices_transfer_ns(devices, x->from, x->to, x->bytes) - latency;
    if (!met[x->from][x->to]) ns += latency;
    met[x->from][x->to] = true;
    send[x->from] += ns;
    recv[x->to] += ns;
  }
  for (uint32_t s = 0; s < plan->n_stages; s++)
    if (plan->stages[s].recv_ns != recv[s] || plan->stages[s].send_ns != send[s])
      fail_msg("seed %u, stage %u: %lld and %lld, not %lld and %lld", seed, s,
               (long long)plan->stages[s].recv_ns, (long long)plan->stages[s].send_ns,
               (long long)recv[s], (long long)send[s]);
}

static void plans_count_messages(void **state) {
  (void)state;
  uint32_t n_plans = 0, n_best = 0, n_proved = 0, n_several = 0;
  for (uint32_t seed = 0; seed < N_PLANS; seed++) {
    dice d = {.seed = 900 + seed};
    const uint32_t n = 2 + draw(&d, 2);
    psplit_model *model = random_model(&d, 7);
    psplit_devices *devices = random_devices(&d, n);
    const psplit_planner_options options = per_pair(n, devices);
    psplit_planner *planner = unit_of(model, &options);
    if (plan_of(planner)) {
      const psplit_plan *plan = psplit_planner_plan(planner);
      const int64_t best_ns = best_of_all(model, &options), value_ns = plan->bottleneck_ns;
      assert_true(plan->latency_per_pair);
      expect_figures(plan, devices, seed);
      if (plan->lower_bound_ns > best_ns || value_ns < best_ns ||
          (plan->proved_optimal && value_ns != best_ns))
        fail_msg("seed %u: bound %lld (%s) <= optimum %lld <= value %lld does not hold", seed,
                 (long long)plan->lower_bound_ns, plan->bound, (long long)best_ns,
                 (long long)value_ns);
      n_plans++;
      /* Where memory decides, a plan may be one of those that fit. */
      n_best += value_ns == best_ns || strcmp(plan->solver, "fit") == 0;
      n_proved += plan->proved_optimal;
      for (uint32_t t = 1; t < plan->n_transfers; t++)
        n_several += plan->transfers[t].from == plan->transfers[t - 1].from &&
                     plan->transfers[t].to == plan->transfers[t - 1].to;
    }
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message(
    "# of %u plans %u are best, %u proved; %u tensors behind another of their message\n", n_plans,
    n_best, n_proved, n_several);
  assert_true(n_plans > N_PLANS / 2 && n_best == n_plans && n_several > 0);
}

/* The same model with latency for each tensor is never cheaper. */
static void a_message_is_never_dearer_than_its_tensors(void **state) {
  (void)state;
  for (uint32_t seed = 0; seed < 6; seed++) {
    dice d = {.seed = 1700 + seed};
    psplit_model *model = random_model(&d, 7);
    psplit_planner_options options = per_pair(3, NULL);
    const int64_t together_ns = best_of_all(model, &options);
    options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
    assert_true(together_ns <= best_of_all(model, &options));
    psplit_model_close(model);
  }
}

/* --- tensors that are passed on --- */

/* Devices that differ in memory_bytes[n] alone (NULL: not in that either) on alike links, but for
 * those that the bits of `missing` say: of stages 0 and 2, 0 and 3, 1 and 3. */
static psplit_devices *devices_without(uint32_t n, uint32_t latency_ns, uint32_t missing,
                                       const uint32_t *memory_bytes) {
  static const uint32_t FROM[] = {0, 0, 1}, TO[] = {2, 3, 3};
  char text[1024];
  size_t used = (size_t)snprintf(text, sizeof text, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++) {
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "%s{\"name\": \"d%u\", \"preset\": \"cpu\"", i ? ", " : "", i);
    used +=
      (size_t)snprintf(text + used, sizeof text - used,
                       memory_bytes ? ", \"keeps_copies\": false, \"memory_bytes\": %u}" : "}",
                       memory_bytes ? memory_bytes[i] : 0);
  }
  used += (size_t)snprintf(text + used, sizeof text - used,
                           "], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e10, "
                           "\"latency_ns\": %u}}, \"links\": [",
                           latency_ns);
  bool any = false;
  for (uint32_t k = 0; k < 3; k++) {
    if (!(missing >> k & 1)) continue;
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "%s{\"from\": \"d%u\", \"to\": \"d%u\", \"bytes_per_second\": 0}",
                             any ? ", " : "", FROM[k], TO[k]);
    any = true;
  }
  snprintf(text + used, sizeof text - used, "]}");
  return parsed(text);
}

/* The best of all splits and of all links that stages may leave unused, on devices in this order.
 */
static int64_t best_of_all_ways(const psplit_model *model, uint32_t n, uint32_t latency_ns,
                                const uint32_t *memory_bytes, int64_t *out_direct_ns) {
  int64_t best_ns = INT64_MAX;
  for (uint32_t missing = 0; missing < (n == 3 ? 2u : 8u); missing++) {
    psplit_devices *devices = devices_without(n, latency_ns, missing, memory_bytes);
    const psplit_planner_options options = per_pair(n, devices);
    const int64_t ns = best_of_all(model, &options);
    if (missing == 0) *out_direct_ns = ns;
    if (ns < best_ns) best_ns = ns;
    psplit_devices_destroy(devices);
  }
  return best_ns;
}

/* Over links without latency messages are nothing: the same problem, so the same solver and
 * bound. */
static void without_latency_nothing_changes(void **state) {
  (void)state;
  psplit_devices *devices = devices_without(3, 0, 0, NULL);
  for (uint32_t seed = 0; seed < 12; seed++) {
    dice d = {.seed = 400 + seed};
    psplit_model *model = random_model(&d, 7);
    psplit_planner_options options = per_pair(3, devices);
    psplit_planner *pairs = unit_of(model, &options);
    options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
    psplit_planner *tensors = unit_of(model, &options);
    assert_true(plan_of(pairs) && plan_of(tensors));
    const psplit_plan *a = psplit_planner_plan(pairs), *b = psplit_planner_plan(tensors);
    assert_string_equal(a->solver, b->solver);
    assert_string_equal(a->bound, b->bound);
    assert_int_equal(a->bottleneck_ns, b->bottleneck_ns);
    psplit_planner_destroy(pairs);
    psplit_planner_destroy(tensors);
    psplit_model_close(model);
  }
  psplit_devices_destroy(devices);
}

static uint32_t n_passed_on(const psplit_planner *planner) {
  const psplit_plan *plan = psplit_planner_plan(planner);
  uint32_t n = 0;
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    const psplit_plan_transfer *x = &plan->transfers[t];
    n += planner->stage[planner->graph->values[x->value].producer] != x->from;
  }
  return n;
}

static void what_is_passed_on_saves_messages(void **state) {
  (void)state;
  uint32_t n_plans = 0, n_best = 0, n_proved = 0, n_passing = 0, n_could = 0, n_settled = 0;
  for (uint32_t seed = 0; seed < 8; seed++) {
    dice d = {.seed = 2600 + seed};
    const uint32_t n = seed % 4 ? 3 : 4, latency_ns = 6000 + draw(&d, 4) * 4000;
    psplit_model *model = random_model(&d, n == 3 ? 8 : 7);
    int64_t direct_ns = 0;
    const int64_t best_ns = best_of_all_ways(model, n, latency_ns, NULL, &direct_ns);
    psplit_devices *devices = devices_without(n, latency_ns, 0, NULL);
    psplit_planner_options options = per_pair(n, devices);
    options.slack_frac = 0;
    options.certify = true; /* each problem that is solved is kept */
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    const int64_t value_ns = plan->bottleneck_ns, bound_ns = plan->lower_bound_ns;
    expect_figures(plan, devices, seed);
    const bool passes_on = n_passed_on(planner) > 0;
    assert_true(passes_on == planner->passes_on);
    /* The bound is for all ways where one was taken, else for sending directly. */
    if (value_ns < best_ns || bound_ns > (passes_on ? best_ns : direct_ns) ||
        value_ns > direct_ns || (plan->proved_optimal && bound_ns != value_ns))
      fail_msg("seed %u: bound %lld (%s) <= optimum %lld (direct %lld) <= value %lld does not hold",
               seed, (long long)bound_ns, plan->bound, (long long)best_ns, (long long)direct_ns,
               (long long)value_ns);
    n_plans++;
    n_best += value_ns == best_ns;
    n_proved += plan->proved_optimal;
    n_passing += passes_on;
    n_could += best_ns < direct_ns;
    /* By shared memory alone: it is solved first, and may settle the plan. */
    n_settled += planner->solved.n == 1 && plan->proved_optimal;
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message(
    "# of %u plans %u are best, %u proved; %u pass on, of %u that better do; %u are settled "
    "by shared memory\n",
    n_plans, n_best, n_proved, n_passing, n_could, n_settled);
  assert_true(n_passing > 0 && n_best == n_plans && n_settled > 0);
}

/* Where the order of devices is chosen, and they differ in memory alone, the same is best as where
 * they do not, as long as it fits in some order; what a plan is proved best of is all orders and
 * all ways. */
static void it_saves_messages_in_every_order_of_devices(void **state) {
  (void)state;
  static const uint32_t ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  /* Memory is small where seeds are odd; 11 and 63 need devices in another order than was best for
   * sending directly. */
  static const uint32_t SEEDS[] = {0, 1, 2, 4, 11, 63};
  enum { N = sizeof SEEDS / sizeof *SEEDS };
  uint32_t n_best = 0, n_passing = 0, n_chosen = 0;
  for (uint32_t k = 0; k < N; k++) {
    const uint32_t seed = SEEDS[k];
    dice d = {.seed = 7100 + seed};
    const uint32_t latency_ns = 6000 + draw(&d, 4) * 4000;
    psplit_model *model = random_model(&d, 7);
    uint32_t memory_bytes[3];
    for (uint32_t i = 0; i < 3; i++)
      memory_bytes[i] = seed % 2 ? 50000 + draw(&d, 150000) : 1000000 + i;
    int64_t best_ns = INT64_MAX;
    for (uint32_t o = 0; o < (seed % 2 ? 6u : 1u); o++) {
      uint32_t ordered[3];
      int64_t direct_ns = 0;
      for (uint32_t s = 0; s < 3; s++) ordered[s] = memory_bytes[ORDERS[o][s]];
      const int64_t ns = best_of_all_ways(model, 3, latency_ns, ordered, &direct_ns);
      if (ns < best_ns) best_ns = ns;
    }
    psplit_devices *devices = devices_without(3, latency_ns, 0, memory_bytes);
    psplit_planner_options options = per_pair(3, devices);
    options.device_order = PSPLIT_DEVICE_ORDER_CHOSEN;
    options.slack_frac = 0;
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    const bool passes_on = n_passed_on(planner) > 0;
    const int64_t value_ns = plan->bottleneck_ns, bound_ns = plan->lower_bound_ns;
    expect_figures(plan, devices, seed);
    for (uint32_t s = 0; s < 3; s++) {
      assert_true(plan->stages[s].memory_bytes <= memory_bytes[plan->stages[s].device_id]);
      n_chosen += plan->stages[s].device_id != s;
    }
    if (value_ns < best_ns || bound_ns > best_ns)
      fail_msg("seed %u: bound %lld (%s) <= optimum %lld <= value %lld does not hold", seed,
               (long long)bound_ns, plan->bound, (long long)best_ns, (long long)value_ns);
    n_best += value_ns == best_ns;
    n_passing += passes_on;
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# of %u plans %u are best; %u pass on; %u stages are on other devices\n",
                (unsigned)N, n_best, n_passing, n_chosen);
  assert_true(n_best == N && n_passing > 1 && n_chosen > 0);
}

/* Where no split keeps a state in one stage, the plan parts it: what shared memory says was of
 * splits that keep it. The weights alone would fit. */
static void a_state_is_parted(void **state) {
  (void)state;
  static const char text[] =
    "(float[1,64,512] x, float[1,64,512] \"past_key_values.0.key\") =>"
    " (float[1,64,512] y, float[1,128,512] \"present.0.key\")"
    " <float[512,512] w = raw {0 * 262144}, float[512,512] w2 = raw {0 * 262144},"
    " float[512,512] w3 = raw {0 * 262144}, float[512,512] w4 = raw {0 * 262144},"
    " float[512,512] w5 = raw {0 * 262144}, float[512,512] w6 = raw {0 * 262144}> {"
    " a = MatMul (x, w) m = ReduceMean <keepdims = 1> (\"past_key_values.0.key\")"
    " b = MatMul (a, w2) b2 = Add (b, m) c = MatMul (b2, w3) d = MatMul (c, w4)"
    " e = MatMul (d, w5) \"present.0.key\" = Concat <axis = 1> (\"past_key_values.0.key\", e)"
    " y = MatMul (e, w6) }";
  psplit_model *model = opened_text(text);
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"memory_bytes\": 7500000},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": 7500000},"
    " {\"name\": \"c\", \"preset\": \"cpu\", \"memory_bytes\": 7500000}]}");
  const psplit_planner_options options = per_pair(3, devices);
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  if (psplit_planner_run(planner, "infer-shapes,cost,mark,attach,fuse,partition", &diag))
    fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_true(plan->lower_bound_ns <= plan->bottleneck_ns);
  assert_int_not_equal(plan->node_stage[1], plan->node_stage[7]);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* Seven stages send to the eighth, most by way of each other: these receive a message as well, and
 * compute less. Where all computed alike, as by shared memory, 9.7 % stayed open. */
static void who_has_fewer_messages_computes_more(void **state) {
  (void)state;
  enum { WIDTH = 60, STAGES = 8 };
  static char text[16 * 1024];
  size_t used = (size_t)snprintf(text, sizeof text, "(float[1,64] x) => (float[1,4] y) <");
  for (uint32_t i = 0; i < WIDTH; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%sfloat[64,4] w%u = raw {0 * 256}",
                             i ? ", " : "", i);
  used += (size_t)snprintf(text + used, sizeof text - used, "> {");
  for (uint32_t i = 0; i < WIDTH; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, " m%u = MatMul (x, w%u)", i, i);
  used += (size_t)snprintf(text + used, sizeof text - used, " y = Sum (m0");
  for (uint32_t i = 1; i < WIDTH; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, ", m%u", i);
  snprintf(text + used, sizeof text - used, ") }");
  psplit_model *model = opened_text(text);
  psplit_planner_options options = per_pair(STAGES, NULL);
  options.slack_frac = 0;
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  if (psplit_planner_run(planner, "infer-shapes,cost,mark,attach,fuse,partition", &diag))
    fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_true((double)plan->bottleneck_ns < 1.03 * (double)plan->lower_bound_ns);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_passed_on_saves_messages),
    cmocka_unit_test(it_saves_messages_in_every_order_of_devices),
    cmocka_unit_test(a_state_is_parted),
    cmocka_unit_test(who_has_fewer_messages_computes_more),
    cmocka_unit_test(plans_count_messages),
    cmocka_unit_test(without_latency_nothing_changes),
    cmocka_unit_test(a_message_is_never_dearer_than_its_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
