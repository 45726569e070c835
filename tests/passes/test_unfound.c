/* Where the solver finds no split for some devices, or an order of them, and has not proved that
 * there is none: what is said of all of them holds for these, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "devices_inside.h"
#include "open.h"
#include "request.h"
#include "small_plans.h"

enum { MOST_STAGES = 3, SECOND_OPS = 128000000 };

/* Devices, by stage, for which no split is found; NULL: there are no such. */
static const char *const *unfound;
static bool met;
static bool none_is_found; /* in no order that is given, which takes half a second each time */
static uint32_t n_unfound;

psplit_code __real_psplit_i_request_try(psplit_planner *planner, const psplit_i_request *r,
                                        const psplit_i_solver_run *run, psplit_diag *diag,
                                        uint64_t *io_n_ops, bool *out_lacks_layouts,
                                        psplit_solution **out_solution);
psplit_code __wrap_psplit_i_request_try(psplit_planner *planner, const psplit_i_request *r,
                                        const psplit_i_solver_run *run, psplit_diag *diag,
                                        uint64_t *io_n_ops, bool *out_lacks_layouts,
                                        psplit_solution **out_solution);

psplit_code __wrap_psplit_i_request_try(psplit_planner *planner, const psplit_i_request *r,
                                        const psplit_i_solver_run *run, psplit_diag *diag,
                                        uint64_t *io_n_ops, bool *out_lacks_layouts,
                                        psplit_solution **out_solution) {
  const uint32_t n_stages = planner->options.n_stages;
  if (none_is_found && !run->any_order) {
    n_unfound++;
    *io_n_ops += SECOND_OPS / 2;
    return psplit_i_fail_about(diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIME_LIMIT),
                               "no split was found");
  }
  bool is_it = unfound && run->any_order == (n_stages == 1);
  for (uint32_t s = 0; s < n_stages && is_it; s++)
    is_it = strcmp(psplit_devices_name(planner->devices, s), unfound[s]) == 0;
  if (!is_it)
    return __real_psplit_i_request_try(planner, r, run, diag, io_n_ops, out_lacks_layouts,
                                       out_solution);
  met = true;
  return psplit_i_fail_about(diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIME_LIMIT),
                             "no split was found");
}

static void holds_for(uint32_t n_stages, const char *devices_text) {
  psplit_model *model = opened_text(
    "(float[512,256] x, float[256,256] w, float[8,512] v) => (float[8,256] p4) {"
    "  p1 = MatMul (x, w)"
    "  p2 = MatMul (v, p1)"
    "  p3 = MatMul (p2, w)"
    "  p4 = MatMul (p3, w)"
    "}");
  psplit_devices *devices = parsed(devices_text);
  const psplit_planner_options options = options_for(n_stages, devices);
  const char *best[MOST_STAGES];
  unfound = NULL;
  psplit_planner *planner = unit_of(model, &options);
  const psplit_plan *plan = plan_of(planner) ? psplit_planner_plan(planner) : NULL;
  assert_non_null(plan);
  assert_true(plan->proved_optimal);
  const int64_t best_ns = plan->bottleneck_ns;
  for (uint32_t s = 0; s < n_stages; s++)
    best[s] = psplit_devices_name(devices, plan->stages[s].device_id);
  psplit_planner_destroy(planner);
  unfound = best;
  met = false;
  planner = unit_of(model, &options);
  plan = plan_of(planner) ? psplit_planner_plan(planner) : NULL;
  assert_non_null(plan);
  assert_true(met);
  assert_true(plan->bottleneck_ns > best_ns);
  assert_true(plan->lower_bound_ns <= best_ns);
  assert_false(plan->proved_optimal);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

static void the_bound_holds_for_devices(void **state) {
  (void)state;
  holds_for(1,
            "{\"devices\": [{\"name\": \"cpu\", \"preset\": \"cpu\"},"
            " {\"name\": \"gpu\", \"preset\": \"nvidia-l4\"}]}");
}

static void the_bound_holds_for_orders(void **state) {
  (void)state;
  holds_for(3,
            "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"host\": \"1\"},"
            " {\"name\": \"b\", \"preset\": \"cpu\", \"host\": \"2\"},"
            " {\"name\": \"c\", \"preset\": \"cpu-sse\", \"host\": \"1\"}]}");
}

/* Sixty orders, which the time would not do for: they end where the time ends. */
static void the_time_is_that_of_all_orders(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(float[64,64] x, float[64,64] w) => (float[64,64] p5) {"
    "  p1 = MatMul (x, w)"
    "  p2 = MatMul (p1, w)"
    "  p3 = MatMul (p2, w)"
    "  p4 = MatMul (p3, w)"
    "  p5 = MatMul (p4, w)"
    "}");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"c\", \"preset\": \"cpu-sse\", \"host\": \"1\"},"
    " {\"name\": \"d\", \"preset\": \"cpu-avx512\", \"host\": \"2\"},"
    " {\"name\": \"e\", \"preset\": \"nvidia-t4\", \"host\": \"2\"}]}");
  psplit_planner_options options = options_for(5, devices);
  options.time_limit_s = 4;
  options.limit_by_work = true;
  none_is_found = true;
  n_unfound = 0;
  psplit_planner *planner = unit_of(model, &options);
  assert_non_null(plan_of(planner)); /* as they are listed */
  none_is_found = false;
  assert_in_range(n_unfound, 2, 10);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_bound_holds_for_devices),
    cmocka_unit_test(the_bound_holds_for_orders),
    cmocka_unit_test(the_time_is_that_of_all_orders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
