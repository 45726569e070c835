/* The lower bound of a plan, and whether the plan is proved optimal. */
#include <inttypes.h>

#include "methods.h"
#include "plan.h"

/* Time of a node on the device that is fastest at it. */
static int64_t least_ns(const psplit_planner *planner, size_t node) {
  int64_t least = INT64_MAX;
  for (size_t c = 0; c < planner->n_classes; c++) {
    const size_t at = c * planner->graph->n_nodes + node;
    if (planner->node_refused && planner->node_refused[at]) continue;
    if (planner->node_ns[at] < least) least = planner->node_ns[at];
  }
  return least;
}

/* Some stage does its share of all work, and one does the heaviest node. */
static int64_t share_of_work(const psplit_planner *planner) {
  int64_t total_ns = 0, heaviest_ns = 0;
  for (size_t n = 0; n < planner->graph->n_nodes; n++) {
    const int64_t ns = least_ns(planner, n);
    psplit_i_add_ns(&total_ns, ns);
    if (ns > heaviest_ns) heaviest_ns = ns;
  }
  const int64_t share_ns = total_ns / planner->options.n_stages;
  return share_ns > heaviest_ns ? share_ns : heaviest_ns;
}

/* Nodes that wait for each other do so wherever they are computed. */
static psplit_code critical_path(psplit_planner *planner, psplit_diag *diag, int64_t *out_ns) {
  const psplit_i_graph *graph = planner->graph;
  int64_t *ready_ns = PSPLIT_NEW(&planner->scratch, int64_t, graph->n_values);
  if (!ready_ns) return psplit_i_nomem(diag);
  *out_ns = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const psplit_i_node *node = &graph->nodes[graph->topo[i]];
    int64_t end_ns = 0;
    PSPLIT_FOR_EACH_READ(node, value)
      if (ready_ns[value] > end_ns) end_ns = ready_ns[value];
    psplit_i_add_ns(&end_ns, least_ns(planner, graph->topo[i]));
    for (uint32_t o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] != PSPLIT_NONE) ready_ns[node->outputs[o]] = end_ns;
    if (end_ns > *out_ns) *out_ns = end_ns;
  }
  return PSPLIT_OK;
}

/* Raises the bound to what holds for any plan, by the times of nodes only. */
static psplit_code bound_any_plan(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag,
                                  psplit_i_bound_of *out_of) {
  psplit_code code = PSPLIT_OK;
  const bool latency = planner->options.objective == PSPLIT_LATENCY;
  int64_t bound_ns = 0;
  if (latency)
    PSPLIT_TRY(critical_path(planner, diag, &bound_ns));
  else
    bound_ns = share_of_work(planner);
  if (bound_ns <= plan->lower_bound_ns) goto out;
  plan->lower_bound_ns = bound_ns;
  plan->bound =
    psplit_i_method_name(latency ? PSPLIT_I_BOUND_CRITICAL_PATH : PSPLIT_I_BOUND_SHARE_OF_WORK);
  *out_of = PSPLIT_I_BOUND_OF_ANY_PLAN;
out:
  return code;
}

/* The solver's is for nodes that stand anywhere, which no segments are below. */
static psplit_code bound_segments(psplit_planner *planner, psplit_plan *plan, int64_t value_ns,
                                  psplit_diag *diag, psplit_i_bound_of *out_of) {
  psplit_code code = PSPLIT_OK;
  plan->solver = planner->segments_solver;
  plan->lower_bound_ns = planner->segments_bound_ns;
  plan->bound = planner->segments_bound;
  if (planner->options.objective == PSPLIT_LATENCY)
    PSPLIT_TRY(bound_any_plan(planner, plan, diag, out_of));
  plan->proved_optimal = plan->lower_bound_ns == value_ns;
out:
  return code;
}

/* What holds for all orders of devices: no order is below the first bound, and none but the chosen
 * one, which the solver's bound is for, below the second. */
static void for_all_orders(const psplit_planner *planner, psplit_plan *plan) {
  if (planner->other_orders_bound_ns < plan->lower_bound_ns)
    plan->lower_bound_ns = planner->other_orders_bound_ns;
  if (planner->any_order_bound_ns >= plan->lower_bound_ns) {
    plan->lower_bound_ns = planner->any_order_bound_ns;
    plan->bound = planner->any_order_bound;
  }
}

/* What holds for any split, and for splits with copies if that was asked for. */
static psplit_code bound_with_copies(psplit_planner *planner, psplit_plan *plan, int64_t value_ns,
                                     psplit_diag *diag, psplit_i_bound_of *out_of) {
  psplit_code code = PSPLIT_OK;
  plan->lower_bound_ns = -1;
  PSPLIT_TRY(bound_any_plan(planner, plan, diag, out_of));
  if (planner->copies_bound_ns > plan->lower_bound_ns) {
    plan->lower_bound_ns = planner->copies_bound_ns;
    const bool tried = planner->copies_tried;
    plan->bound =
      psplit_i_method_name(tried ? PSPLIT_I_BOUND_ALL_COPIES : PSPLIT_I_BOUND_FREE_COPIES);
    *out_of = tried ? PSPLIT_I_BOUND_OF_ALL_COPIES : PSPLIT_I_BOUND_OF_COPIES;
  }
  plan->proved_optimal = plan->lower_bound_ns >= value_ns;
out:
  return code;
}

/* Whether the bound for splits with copies, which is for more plans than the solver's, is no lower,
 * and is for all ways of tensors where the solver's is or the plan passes tensors on. A certificate
 * knows no copies: with one the plan says what that proves, unless it is less. */
static bool copies_say_as_much(const psplit_planner *planner, const psplit_plan *plan) {
  const int64_t bound_ns = planner->copies_bound_ns;
  if (bound_ns <= 0 || bound_ns < plan->lower_bound_ns) return false;
  if (planner->options.certify && bound_ns == plan->lower_bound_ns) return false;
  return planner->n_asked < 3 || planner->copies_any_route ||
         (!planner->passes_on && planner->any_route_bound_ns < plan->lower_bound_ns);
}

/* The solver's bound is for splits that compute each node once. A plan with copies takes the bound
 * for splits with copies, if that was asked for, and one without where that says as much; a plan
 * whose copies get below the solver's falls back on what holds for any split. */
static psplit_code bound_split(psplit_planner *planner, psplit_plan *plan, int64_t value_ns,
                               psplit_diag *diag, psplit_i_bound_of *out_of) {
  psplit_code code = PSPLIT_OK;
  const psplit_solution *solution = planner->solution;
  plan->lower_bound_ns = solution->lower_bound_ns;
  plan->proved_optimal = solution->proved_optimal && value_ns == solution->objective_ns;
  if (planner->order_chosen) {
    for_all_orders(planner, plan);
    /* Of orders and selections of devices that were not tried, nothing else may be known. */
    PSPLIT_TRY(bound_any_plan(planner, plan, diag, out_of));
    plan->proved_optimal = plan->lower_bound_ns == value_ns;
  }
  const bool asked = planner->copies_bound_ns > 0; /* with copies */
  const bool copies = psplit_i_copies_take_time(planner);
  if (copies ? asked || value_ns < plan->lower_bound_ns : copies_say_as_much(planner, plan))
    PSPLIT_TRY(bound_with_copies(planner, plan, value_ns, diag, out_of));
out:
  return code;
}

psplit_code psplit_i_plan_bound(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag,
                                psplit_i_bound_of *out_of) {
  psplit_code code = PSPLIT_OK;
  const int64_t value_ns = plan->value_ns;
  *out_of = PSPLIT_I_BOUND_OF_SOLVER;
  if (planner->segmented)
    PSPLIT_TRY(bound_segments(planner, plan, value_ns, diag, out_of));
  else if (planner->solution)
    PSPLIT_TRY(bound_split(planner, plan, value_ns, diag, out_of));
  else
    return PSPLIT_OK;
  /* A bound that is above the plan is a bug, and must not look like a proof. */
  if (plan->lower_bound_ns > value_ns)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INTERNAL,
                              "the bound %" PRId64 " ns (%s) is above the plan's %" PRId64
                              " ns (%s); please report the model and the options",
                              plan->lower_bound_ns, plan->bound, value_ns, plan->solver));
  if (value_ns > 0) plan->gap_frac = (double)(value_ns - plan->lower_bound_ns) / (double)value_ns;
out:
  return code;
}
