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

#include "small_plans.h"

enum { N_PLANS = 24, MOST_STAGES = 4 };

static psplit_planner_options per_pair(uint32_t n_stages, const psplit_devices *devices) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = n_stages;
  options.devices = devices;
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(plans_count_messages),
    cmocka_unit_test(a_message_is_never_dearer_than_its_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
