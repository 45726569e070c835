/* The order in which devices are listed, beside the one that was chosen.
 *
 * Where links differ, orders are tried in a part of the time each. So the best of them may be worse
 * than the one that the user listed, and that one is planned with as much care. */
#include "devices_inside.h"
#include "laid_aside.h"
#include "order_by_memory.h"
#include "record.h"
#include "request.h"

/* Of the time for a split, what the chosen order takes, so that enough of the limit is left for
 * the listed order to be planned as if it had been asked for. */
static const double FIRST = 0.5;

/* Whether the listed order is another one, which may turn out to be better. */
static bool may_pay(const psplit_planner *planner) {
  bool other = false;
  for (uint32_t s = 0; s < planner->options.n_stages; s++) other |= planner->device_id[s] != s;
  return planner->order_chosen && other &&
         !psplit_i_devices_links_alike(planner->devices, planner->n_candidates, true);
}

/* Makes the plan; whether another may be faster. */
static psplit_code is_open(psplit_planner *planner, psplit_diag *diag, bool *out) {
  const psplit_code code = psplit_i_plan_make(planner, diag);
  *out = code == PSPLIT_OK && planner->plan->value_ns > planner->plan->lower_bound_ns;
  return code;
}

/* The planner's plan in the listed order, if that is faster than `value_ns`. */
static psplit_code plan_listed(psplit_planner *planner, const psplit_i_request *r, double share,
                               int64_t value_ns, psplit_diag *diag, bool *out_faster) {
  psplit_code code;
  psplit_diag why = {0};
  *out_faster = false;
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, NULL, 0, diag));
  code = psplit_i_solve_within_memory(planner, r, share, &why);
  if (code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED) PSPLIT_FAIL(psplit_i_fail_as(diag, &why));
  if (code != PSPLIT_OK || !planner->solution) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
  *out_faster = planner->plan->value_ns < value_ns;
out:
  return code;
}

psplit_code psplit_i_solve_in_orders(psplit_planner *planner, const psplit_i_request *r,
                                     double share, psplit_diag *diag) {
  psplit_code code;
  psplit_i_laid_aside chosen = {0};
  bool open, faster;
  const bool alone = !may_pay(planner);
  PSPLIT_TRY(psplit_i_solve_within_memory(planner, r, alone ? share : FIRST * share, diag));
  if (alone || !planner->solution) goto out;
  PSPLIT_TRY(is_open(planner, diag, &open));
  if (!open) goto out;
  const uint32_t *order = planner->device_id;
  const int64_t value_ns = planner->plan->value_ns;
  const size_t n_recorded = planner->solved.n;
  if (!psplit_i_lay_aside(planner, &chosen)) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(plan_listed(planner, r, share, value_ns, diag, &faster));
  if (faster) {
    planner->order_chosen = true;
    /* The one that was chosen is one of the others now. */
    if (chosen.solution->lower_bound_ns < planner->other_orders_bound_ns)
      planner->other_orders_bound_ns = chosen.solution->lower_bound_ns;
  } else {
    psplit_i_record_forget(planner, n_recorded);
    PSPLIT_TRY(psplit_i_choose_order(planner, order, diag));
    const bool back = psplit_i_take_back(planner, &chosen);
    chosen.solution = NULL;
    if (!back) PSPLIT_FAIL(psplit_i_nomem(diag));
  }
  PSPLIT_TRY(psplit_i_plan_make(planner, diag)); /* of the devices and bounds as they are now */
out:
  psplit_solution_destroy(chosen.solution);
  return code;
}
