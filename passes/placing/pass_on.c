/* Relays: tensors that stages pass on.
 *
 * A message of its own for each receiver costs both ends the latency of a link. Where a stage in
 * between receives a message from the sender and sends one to the receiver anyway, relaying the
 * tensor costs that stage the bytes twice, and saves the others a message. A split through shared
 * memory (shared_split.h) is the relaxation of all relays. Its split, and that of direct messages,
 * are then evaluated with the links that are best for them (message_routes.h). */
#include "pass_on.h"

#include <string.h>

#include "devices_inside.h"
#include "message_routes.h"
#include "order_by_memory.h"

/* Relative gap to the bound at which a plan is accepted without further search. */
static const double CLOSE = 0.001;

/* A chosen order of devices is supported only if all orders of the candidate devices are
 * equivalent, except for memory. */
static bool applies(const psplit_planner *planner) {
  return !planner->next_hop && psplit_i_planner_may_pass_on(planner) &&
         (!planner->order_chosen ||
          psplit_i_devices_links_alike(planner->devices, planner->n_candidates, true));
}

/* Checks whether the plan with these stages and routes fits. If it fits only in another order of
 * devices, that order is applied; if it fits in none, the order is unchanged. */
static psplit_code find_room(psplit_planner *planner, const uint32_t *stage, uint32_t *next,
                             bool reorder, bool *out_fits, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  uint32_t *order;
  const uint32_t *before = planner->device_id;
  PSPLIT_TRY(psplit_i_fit_by_memory(planner, reorder, out_fits, &order, diag));
  if (!order) goto out;
  PSPLIT_TRY(psplit_i_choose_order(planner, order, diag));
  PSPLIT_TRY(psplit_i_routes_adopt(planner, stage, next, diag));
  *out_fits = psplit_i_plan_fits(planner);
  if (!*out_fits) PSPLIT_TRY(psplit_i_choose_order(planner, before, diag));
out:
  return code;
}

/* Exchanges the solution with that of the planner, which then owns it. Its bound ignores memory,
 * and holds for any order of devices with relays. */
static psplit_code make_it_the_plan(psplit_planner *planner, psplit_i_shared_split *shared,
                                    psplit_diag *diag) {
  psplit_solution *solution = shared->solution;
  solution->objective_ns = planner->plan->bottleneck_ns;
  solution->proved_optimal = solution->objective_ns <= solution->lower_bound_ns;
  shared->solution = planner->solution;
  planner->solution = solution;
  planner->any_order_bound_ns = 0;
  planner->other_orders_bound_ns = INT64_MAX;
  return psplit_i_plan_make(planner, diag);
}

/* A bound on all routes and all orders of devices also holds for direct messages. */
static void raise_bound(psplit_planner *planner, const psplit_solution *shared) {
  psplit_solution *direct = planner->solution;
  if (shared->lower_bound_ns > planner->any_order_bound_ns) {
    planner->any_order_bound_ns = shared->lower_bound_ns;
    planner->any_order_bound = shared->bound;
  }
  if (shared->lower_bound_ns > planner->other_orders_bound_ns)
    planner->other_orders_bound_ns = shared->lower_bound_ns;
  if (shared->lower_bound_ns <= direct->lower_bound_ns) return;
  direct->lower_bound_ns = shared->lower_bound_ns;
  direct->bound = shared->bound;
  direct->proved_optimal = direct->objective_ns <= direct->lower_bound_ns;
}

/* Whether `ns` is better than before by more than the permitted slack. */
static bool pays(const psplit_planner *planner, int64_t ns, int64_t before_ns) {
  const double slack = planner->options.slack_frac > 0 ? planner->options.slack_frac : 0;
  return (double)ns * (1 + slack) < (double)before_ns;
}

/* Adopts the shared split as the plan if it fits, without relays if these save too little. */
static psplit_code take(psplit_planner *planner, psplit_i_shared_split *shared, bool reorder,
                        bool *out_fits, psplit_diag *diag) {
  psplit_code code;
  const bool directly = !pays(planner, shared->slowest_ns, shared->direct_ns);
  uint32_t *next = directly ? NULL : shared->next;
  PSPLIT_TRY(psplit_i_routes_adopt(planner, shared->stage, next, diag));
  PSPLIT_TRY(find_room(planner, shared->stage, next, reorder, out_fits, diag));
  if (*out_fits) PSPLIT_TRY(make_it_the_plan(planner, shared, diag));
out:
  return code;
}

typedef struct shared_cutter {
  psplit_planner *planner;
  const psplit_i_tied_weights *ties;
} shared_cutter;

/* A psplit_i_cutter. Without joined weights, the plan exists already. */
static psplit_code cut_shared(void *user, const uint8_t *joined, psplit_i_effort effort,
                              psplit_diag *diag) {
  const shared_cutter *c = user;
  psplit_i_shared_split split = {0};
  bool fits = false;
  if (effort == PSPLIT_I_CUT) return PSPLIT_OK;
  psplit_code code = psplit_i_shared_split_find(c->planner, c->ties, joined, &split, diag);
  if (code == PSPLIT_OK && split.solution && split.slowest_ns < INT64_MAX)
    code = take(c->planner, &split, false, &fits, diag);
  if (code == PSPLIT_OK && !fits) code = PSPLIT_INFEASIBLE;
  psplit_i_shared_split_fini(&split);
  return code;
}

/* Keeps the plan, or replaces it by an equally good one that duplicates no weights. */
static psplit_code settle_ties(psplit_planner *planner, const psplit_i_tied_weights *ties,
                               psplit_diag *diag) {
  shared_cutter c = {planner, ties};
  const psplit_plan *plan = planner->plan;
  uint32_t *next = planner->next_hop;
  const bool passes_on = planner->passes_on;
  const psplit_code code = psplit_i_tied_weights_settle(planner, ties, cut_shared, &c, diag);
  if (planner->plan != plan) return code;
  planner->next_hop = next;
  planner->passes_on = passes_on;
  return code;
}

psplit_code psplit_i_share_memory_first(psplit_planner *planner, const psplit_i_tied_weights *ties,
                                        psplit_i_shared_split *out, bool *out_settled,
                                        psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  *out_settled = false;
  *out = (psplit_i_shared_split){0};
  if (!applies(planner) || planner->grouping.n_groups < planner->options.n_stages) return code;
  psplit_solution_destroy(planner->solution);
  planner->solution = NULL;
  PSPLIT_TRY(psplit_i_shared_split_find(planner, NULL, NULL, out, diag));
  if (!out->solution || out->slowest_ns == INT64_MAX ||
      !psplit_i_shared_split_is_within(out, CLOSE))
    goto out;
  /* If relays save too little, another split may be better with direct messages. */
  if (out->direct_ns > out->slowest_ns && !pays(planner, out->slowest_ns, out->direct_ns)) goto out;
  PSPLIT_TRY(take(planner, out, true, out_settled, diag));
  if (*out_settled) PSPLIT_TRY(settle_ties(planner, ties, diag));
out:
  if (!*out_settled) psplit_i_pass_nothing_on(planner);
  return code;
}

/* Restores the plan with direct messages, with the bounds that are known by now. */
static psplit_code go_straight(psplit_planner *planner, const uint32_t *stage, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_routes_adopt(planner, stage, NULL, diag));
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

psplit_code psplit_i_pass_on(psplit_planner *planner, psplit_i_shared_split *shared,
                             psplit_diag *diag) {
  psplit_code code;
  psplit_i_route_cost found;
  if (!planner->solution || !applies(planner)) return PSPLIT_OK;
  const size_t n_nodes = planner->graph->n_nodes;
  if (!planner->plan) PSPLIT_TRY(psplit_i_plan_make(planner, diag));
  const int64_t before_ns = planner->plan->bottleneck_ns;
  uint32_t *direct = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *direct);
  uint32_t *next = psplit_i_routes_new(planner);
  if (!direct || !next) PSPLIT_FAIL(psplit_i_nomem(diag));
  memcpy(direct, planner->stage, n_nodes * sizeof *direct);
  if (shared->n_groups != planner->grouping.n_groups)
    PSPLIT_TRY(psplit_i_shared_split_find(planner, NULL, NULL, shared, diag));
  if (!shared->solution) {
    PSPLIT_TRY(go_straight(planner, direct, diag));
    goto out;
  }
  raise_bound(planner, shared->solution);
  if (shared->solution->lower_bound_ns >= before_ns) {
    PSPLIT_TRY(go_straight(planner, direct, diag));
    goto out;
  }
  PSPLIT_TRY(psplit_i_routes_adopt(planner, direct, NULL, diag));
  PSPLIT_TRY(psplit_i_routes_find(planner, diag, next, &found));
  const bool other =
    psplit_i_route_cost_is_less((psplit_i_route_cost){shared->slowest_ns, shared->sum_ns}, found);
  const uint32_t *stage = other ? shared->stage : direct;
  if (other) next = shared->next;
  bool fits = false;
  PSPLIT_TRY(psplit_i_routes_adopt(planner, stage, next, diag));
  if (pays(planner, planner->plan->bottleneck_ns, before_ns))
    PSPLIT_TRY(find_room(planner, stage, next, true, &fits, diag));
  if (fits)
    PSPLIT_TRY(make_it_the_plan(planner, shared, diag));
  else
    PSPLIT_TRY(go_straight(planner, direct, diag));
out:
  return code;
}
