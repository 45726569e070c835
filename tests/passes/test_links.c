/* Links that differ between pairs of devices: a transfer counts over the link it uses, and what a
 * plan says of its bound is true of every split. Told by enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"
#include "links.h"
#include "open.h"
#include "sample.h"
#include "small_plans.h"

enum { MAX_NODES = 7, MAX_STAGES = 4 };

/* --- a chain of four products beside a node that nothing depends on --- */

static psplit_model *products_and_a_bystander(void) {
  return opened_text(
    "(float[256,256] x, float[256,256] u, float[256,256] w)"
    "=> (float[256,256] p4, float[256,256] alone) {"
    "  p1 = MatMul (x, w)"
    "  p2 = MatMul (p1, w)"
    "  p3 = MatMul (p2, w)"
    "  p4 = MatMul (p3, w)"
    "  alone = Relu (u)"
    "}");
}

/* Left and right are near, the device between them is far from both: the products go to the outer
 * two, whatever the stages' order says of neighbours. */
static void a_cut_goes_over_the_link_it_uses(void **state) {
  (void)state;
  static const char *const files[] = {
    "{\"devices\": [{\"name\": \"left\", \"preset\": \"cpu\", \"host\": \"here\"},"
    " {\"name\": \"middle\", \"preset\": \"cpu\", \"host\": \"there\"},"
    " {\"name\": \"right\", \"preset\": \"cpu\", \"host\": \"here\"}]}",
    "{\"devices\": [{\"name\": \"left\", \"preset\": \"cpu\"},"
    " {\"name\": \"middle\", \"preset\": \"cpu\"}, {\"name\": \"right\", \"preset\": \"cpu\"}],"
    " \"links\": [{\"from\": \"left\", \"to\": \"middle\", \"bytes_per_second\": 1e6},"
    " {\"from\": \"middle\", \"to\": \"right\", \"bytes_per_second\": 1e6},"
    " {\"from\": \"left\", \"to\": \"right\", \"bytes_per_second\": 2.5e10}]}"};
  psplit_model *model = products_and_a_bystander();
  for (size_t f = 0; f < 2; f++)
    for (int latency = 0; latency < 2; latency++) {
      psplit_devices *devices = parsed(files[f]);
      psplit_planner_options options = options_for(3, devices);
      options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
      options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
      options.objective = latency ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
      psplit_planner *planner = unit_of(model, &options);
      assert_true(plan_of(planner));
      const psplit_plan *plan = psplit_planner_plan(planner);
      const int64_t near_ns = psplit_devices_transfer_ns(devices, 0, 2, 4 * 256 * 256);
      for (uint32_t t = 0; t < plan->n_transfers; t++) {
        assert_int_equal(plan->transfers[t].from, 0);
        assert_int_equal(plan->transfers[t].to, 2);
      }
      assert_int_equal(plan->n_transfers, 1);
      assert_int_equal(plan->stages[0].send_ns, near_ns);
      assert_true(plan->lower_bound_ns <= plan->value_ns);
      if (!latency) {
        assert_true(plan->proved_optimal);
        assert_int_equal(plan->bottleneck_ns, plan->stages[0].compute_ns + near_ns);
      }
      psplit_planner_destroy(planner);
      psplit_devices_destroy(devices);
    }
  psplit_model_close(model);
}

/* Four devices on two hosts, and a tensor that skips from the first block to the last: which blocks
 * share a host decides. */
static void a_skip_from_host_to_host_is_paid_for(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(float[256,256] x, float[256,256] w) => (float[256,256] y) {"
    "  a = MatMul (x, w)\n"
    "  s = MatMul (a, w)\n"
    "  t2 = MatMul (s, w)\n"
    "  t3 = MatMul (t2, w)\n"
    "  t4 = MatMul (t3, w)\n"
    "  t5 = MatMul (t4, w)\n"
    "  t6 = MatMul (t5, w)\n"
    "  t7 = MatMul (t6, w)\n"
    "  z = Add (t7, s)\n"
    "  y = MatMul (z, w)\n"
    "}");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\", \"host\": \"2\"},"
    " {\"name\": \"d\", \"preset\": \"cpu\", \"host\": \"2\"}]}");
  for (int latency = 0; latency < 2; latency++) {
    psplit_planner_options options = options_for(4, devices);
    options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    options.objective = latency ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    assert_true(plan->proved_optimal);
    assert_int_equal(plan->value_ns, best_of_all(model, &options));
    psplit_planner_destroy(planner);
  }
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

static void plans_say_what_is_true(void **state) {
  (void)state;
  const uint64_t n_seeds = sample_of(80, 100);
  uint32_t n_plans = 0, n_proved = 0, n_best = 0, n_differ = 0;
  for (uint64_t seed = 0; seed < n_seeds; seed++) {
    dice d = {.seed = seed};
    const uint32_t n_stages = 2 + draw(&d, MAX_STAGES - 1);
    psplit_model *model = random_model(&d, n_stages + draw(&d, MAX_NODES + 1 - n_stages));
    psplit_devices *devices = random_devices(&d, n_stages);
    psplit_planner_options options = options_for(n_stages, devices);
    options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    options.n_threads = 1;
    options.objective = draw(&d, 3) ? PSPLIT_THROUGHPUT : PSPLIT_LATENCY;
    const int64_t best_ns = best_of_all(model, &options);
    psplit_planner *planner = unit_of(model, &options);
    const bool any = plan_of(planner);
    if (any && best_ns == INT64_MAX) fail_msg("seed %u: a plan where none fits", (unsigned)seed);
    if (any) {
      const psplit_plan *plan = psplit_planner_plan(planner);
      const int64_t value_ns = plan->value_ns;
      psplit_i_links links;
      assert_int_equal(psplit_i_links_find(planner, false, &planner->scratch, NULL, &links),
                       PSPLIT_OK);
      n_plans++;
      n_differ += links.n > 1;
      n_proved += plan->proved_optimal && links.n > 1;
      n_best += value_ns == best_ns && links.n > 1;
      if (plan->lower_bound_ns > best_ns || value_ns < best_ns)
        fail_msg("seed %u: bound %lld (%s) <= optimum %lld <= value %lld does not hold",
                 (unsigned)seed, (long long)plan->lower_bound_ns, plan->bound, (long long)best_ns,
                 (long long)value_ns);
      if (plan->proved_optimal && value_ns != best_ns)
        fail_msg("seed %u: %lld is called proved, %lld is possible", (unsigned)seed,
                 (long long)value_ns, (long long)best_ns);
    }
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# %u plans, of %u where links differ %u are best and %u proved\n", n_plans,
                n_differ, n_best, n_proved);
  assert_true(n_differ > n_plans / 4 && n_proved == n_differ && n_best == n_differ);
}

/* --- kinds of links --- */

/* Of one kind are links that are equal, whatever names their devices' hosts have. */
static void equal_links_are_of_one_kind(void **state) {
  (void)state;
  psplit_model *model = products_and_a_bystander();
  for (int near = 0; near < 2; near++) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"host\": \"1\"},"
             " {\"name\": \"b\", \"preset\": \"cpu\", \"host\": \"1\"},"
             " {\"name\": \"c\", \"preset\": \"cpu\", \"host\": \"%d\"}]}",
             near ? 1 : 2);
    psplit_devices *devices = parsed(text);
    psplit_planner_options options = options_for(3, devices);
    options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    psplit_i_links links;
    assert_int_equal(psplit_i_links_find(planner, false, &planner->scratch, NULL, &links),
                     PSPLIT_OK);
    assert_int_equal(links.n, near ? 1 : 2);
    const uint64_t bytes = 1 << 20;
    for (uint32_t i = 0; i < 3; i++)
      for (uint32_t j = i + 1; j < 3; j++)
        assert_int_equal(psplit_i_link_ns(&links.link[links.of_pair[i * 3 + j]], bytes),
                         psplit_devices_transfer_ns(devices, i, j, bytes));
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
  }
  psplit_model_close(model);
}

/* A bound above the plan, which no copy explains, is a bug, and told as such. */
static void a_bound_above_the_plan_is_an_internal_error(void **state) {
  (void)state;
  psplit_model *model = products_and_a_bystander();
  psplit_planner_options options = options_for(2, NULL);
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  assert_true(plan_of(planner));
  planner->solution->lower_bound_ns = planner->plan->bottleneck_ns + 1;
  assert_int_equal(psplit_i_plan_make(planner, &diag), PSPLIT_INTERNAL);
  assert_non_null(strstr(diag.message, "above the plan's"));
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cut_goes_over_the_link_it_uses),
    cmocka_unit_test(a_skip_from_host_to_host_is_paid_for),
    cmocka_unit_test(plans_say_what_is_true),
    cmocka_unit_test(equal_links_are_of_one_kind),
    cmocka_unit_test(a_bound_above_the_plan_is_an_internal_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
