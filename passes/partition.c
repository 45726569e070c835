/* needs: shapes, costs, live, groups  keeps: everything  breaks: nothing
 *
 * Turns supernodes into a bare partition problem, solves it, and gives every node its stage. Free
 * nodes (functions of constants) are not part of the problem: each goes to every stage that reads
 * its result. */
#include <inttypes.h>
#include <string.h>

#include "keep_state.h"
#include "least_memory.h"
#include "methods.h"
#include "order_by_memory.h"
#include "pass.h"
#include "pass_on.h"
#include "plan_budget.h"
#include "request.h"
#include "slack.h"

enum { OPTION_SOLVER, OPTION_GAP, OPTION_TIME_LIMIT };

typedef struct cutter {
  psplit_planner *planner;
  const psplit_i_option_value *values;
  const psplit_i_tied_weights *ties;
  psplit_i_shared_split shared;
} cutter;

/* Says what may stand in the way: values that keep their producer and their readers together. */
static void name_unsendable(const psplit_planner *planner, psplit_diag *diag) {
  uint32_t first = PSPLIT_NONE, n = 0;
  for (uint32_t v = 0; v < planner->graph->n_values; v++) {
    if (planner->graph->values[v].producer == PSPLIT_NONE ||
        psplit_i_planner_sendable(planner, v) ||
        planner->graph->consumer_off[v] == planner->graph->consumer_off[v + 1])
      continue;
    if (!n++) first = v;
  }
  if (n == 1)
    psplit_i_diag_add(diag, "\"%s\" is not known to be a dense tensor and is never sent",
                      planner->graph->values[first].name);
  else if (n)
    psplit_i_diag_add(
      diag, "\"%s\" and %" PRIu32 " more are not known to be dense tensors and are never sent",
      planner->graph->values[first].name, n - 1);
}

/* Nodes that no stage can have as its work, as they reach no output. */
static void name_dead(const psplit_planner *planner, psplit_diag *diag) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < planner->graph->n_nodes; i++)
    n += (planner->node_flags[i] & PSPLIT_I_NODE_DEAD) != 0;
  if (n)
    psplit_i_diag_add(diag, "%" PRIu32 " node%s no output of the model and %s for nothing", n,
                      n == 1 ? " reaches" : "s reach", n == 1 ? "counts" : "count");
}

/* Cuts between operators, on devices that are chosen for that; where these leave no split, on those
 * that the planner has. */
static psplit_code cut_operators(psplit_planner *planner, const psplit_i_request *r,
                                 psplit_diag *diag) {
  static const double SHARE = 0.25;
  psplit_code code;
  psplit_diag why = {0};
  const uint32_t *order = planner->device_id;
  const uint32_t n_stages = planner->options.n_stages;
  planner->order_chosen = false; /* for all orders of the groups, not of the operators */
  PSPLIT_TRY(psplit_i_choose_devices(planner, r, diag));
  if (!planner->order_chosen) return psplit_i_solve_within_memory(planner, r, SHARE, diag);
  code = psplit_i_solve_in_orders(planner, r, SHARE, &why);
  if (code != PSPLIT_INFEASIBLE) return code == PSPLIT_OK ? code : psplit_i_fail_as(diag, &why);
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, order, n_stages, diag));
  PSPLIT_TRY(psplit_i_solve_within_memory(planner, r, SHARE, diag));
out:
  return code;
}

static psplit_code cut(psplit_planner *planner, const psplit_i_request *r, double share,
                       psplit_diag *diag) {
  psplit_code code = PSPLIT_INFEASIBLE;
  const uint32_t n_stages = planner->options.n_stages;
  psplit_diag first = {0};
  if (planner->grouping.n_groups >= n_stages || n_stages == 1)
    code = psplit_i_solve_in_orders(planner, r, share, &first);
  if (code == PSPLIT_INFEASIBLE && planner->grouping.n_groups < planner->graph->n_nodes) {
    /* Groups are a wish, stages are asked for: let go of the groups before giving up. */
    const uint32_t n_groups = planner->grouping.n_groups;
    if (!psplit_i_grouping_init(&planner->grouping, planner->graph, planner->node_flags,
                                planner->apart, &planner->arena))
      return psplit_i_nomem(diag);
    if (planner->grouping.n_groups > n_groups && planner->grouping.n_groups >= n_stages) {
      planner->any_route_bound_ns = 0;
      code = cut_operators(planner, r, diag);
      if (code == PSPLIT_OK)
        psplit_i_say(planner->options.logger, PSPLIT_NOTE,
                     "%" PRIu32 " supernode%s no such split; cut between operators instead",
                     n_groups, n_groups == 1 ? " allows" : "s allow");
      return code;
    }
  }
  if (code == PSPLIT_INFEASIBLE && first.code == PSPLIT_OK && !planner->grouping.n_groups)
    return psplit_i_fail(
      diag, PSPLIT_INFEASIBLE,
      "%" PRIu32
      " stages cannot all have work: the model has only constants, so there is nothing to split",
      n_stages);
  if (code == PSPLIT_INFEASIBLE && first.code == PSPLIT_OK)
    return psplit_i_fail_about(
      diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(FEWER_STAGES),
      "%" PRIu32 " stages cannot all have work: the model has %" PRIu32 " node%s besides constants",
      n_stages, planner->grouping.n_groups, planner->grouping.n_groups == 1 ? "" : "s");
  return code == PSPLIT_OK ? code : psplit_i_fail_as(diag, &first);
}

static psplit_i_request request_of(const cutter *c, const uint8_t *joined) {
  return (psplit_i_request){.solver = c->values[OPTION_SOLVER].text,
                            .gap_frac = c->values[OPTION_GAP].real,
                            .time_limit_s = c->values[OPTION_TIME_LIMIT].real,
                            .ties = c->ties,
                            .joined = joined};
}

static psplit_code cut_joined(void *user, const uint8_t *joined, psplit_i_effort effort,
                              psplit_diag *diag) {
  cutter *c = user;
  const double share = c->shared.solution ? c->shared.left_frac : 1;
  psplit_i_request r = request_of(c, joined);
  r.quick = effort == PSPLIT_I_CUT_ANY;
  return effort == PSPLIT_I_CUT ? cut(c->planner, &r, share, diag)
                                : psplit_i_solve_within_memory(c->planner, &r, share, diag);
}

/* Pairs of state that were named and leave no split. */
static void name_states(const psplit_planner *planner, psplit_diag *diag) {
  if (!planner->options.n_states) return;
  psplit_i_diag_add(diag,
                    "the nodes that read \"%s\" share a stage with the node that computes \"%s\"",
                    planner->options.states[0].input, planner->options.states[0].output);
}

/* Groups as they were before a search let go of them. */
static psplit_code restore_groups(psplit_planner *planner, const uint32_t *label, uint32_t n_labels,
                                  psplit_diag *diag) {
  if (!psplit_i_grouping_init(&planner->grouping, planner->graph, planner->node_flags, planner->pin,
                              &planner->arena))
    return psplit_i_nomem(diag);
  psplit_i_grouping_assign(&planner->grouping, label, n_labels);
  return PSPLIT_OK;
}

/* Who reads a state and who writes it share a stage, unless there is no such split: then those that
 * were found by name need not. */
static psplit_code settle_states(cutter *c, psplit_diag *diag) {
  psplit_planner *planner = c->planner;
  const uint32_t n_groups = planner->grouping.n_groups;
  psplit_diag why = {0};
  uint32_t *label = psplit_i_arena_array(&planner->arena, planner->graph->n_nodes, sizeof *label);
  if (!label) return psplit_i_nomem(diag);
  psplit_i_grouping_number(&planner->grouping, label);
  psplit_code code = psplit_i_tied_weights_settle(planner, c->ties, cut_joined, c, &why);
  if (code != PSPLIT_INFEASIBLE || !psplit_i_planner_part_states(planner))
    return code == PSPLIT_OK ? code : psplit_i_fail_as(diag, &why);
  psplit_i_shared_split_fini(&c->shared); /* of splits that keep them: its bound holds no more */
  planner->any_route_bound_ns = 0;
  code = restore_groups(planner, label, n_groups, diag);
  if (code == PSPLIT_OK) code = psplit_i_tied_weights_settle(planner, c->ties, cut_joined, c, diag);
  if (code == PSPLIT_OK)
    psplit_i_say(
      planner->options.logger, PSPLIT_WARNING,
      "no such split keeps the readers of each state in the stage of its writer: of %" PRIu32
      " pairs some are separated, and would have to be sent back after each step",
      planner->states.n);
  return code;
}

/* Whether it is left to the solver how it is solved, and how well. */
static bool asks_all(const psplit_planner *planner, const psplit_i_request *r) {
  return strcmp(psplit_i_request_solver(planner, r), "auto") == 0 && r->time_limit_s < 0 &&
         r->gap_frac <= 0;
}

/* The same on n other devices, order[n]; NULL: as they were given. */
static psplit_code settle_on(cutter *c, const uint32_t *order, uint32_t n, psplit_diag *diag) {
  *diag = (psplit_diag){0};
  const psplit_code code = psplit_i_planner_order_devices(c->planner, order, n, diag);
  return code == PSPLIT_OK ? settle_states(c, diag) : code;
}

/* In the order of devices that is chosen; where its memory is too small after all, in the order
 * that was given, then on the devices with the most memory, whose error it is if these do not do
 * either. */
static psplit_code settle(cutter *c, psplit_diag *diag) {
  psplit_code code;
  psplit_planner *planner = c->planner;
  uint8_t *none = psplit_i_arena_zeroed(&planner->arena, c->ties->weights.n, sizeof *none);
  if (!none) return psplit_i_nomem(diag);
  const psplit_i_request r = request_of(c, none);
  if (planner->options.max_replicas > 1) return psplit_i_place_replicas(planner, &r, diag);
  if (planner->options.max_segments > 1) {
    if (psplit_i_planner_part_states(planner))
      psplit_i_say(planner->options.logger, PSPLIT_WARNING,
                   "segments do not keep the readers of a state in the stage of its writer");
    return psplit_i_place_segments(planner, &r, diag);
  }
  psplit_i_least_memory least;
  PSPLIT_TRY(psplit_i_least_memory_find(planner, planner->n_candidates, &least, diag));
  bool settled = false;
  if (!least.too_little) PSPLIT_TRY(psplit_i_choose_devices(planner, &r, diag));
  if (!least.too_little && asks_all(planner, &r))
    PSPLIT_TRY(psplit_i_share_memory_first(planner, c->ties, &c->shared, &settled, diag));
  if (settled) return PSPLIT_OK;
  const bool chosen = planner->order_chosen;
  psplit_diag why = {0};
  code = settle_states(c, &why);
  if (code == PSPLIT_INFEASIBLE && chosen) code = settle_on(c, NULL, 0, &why);
  if (code == PSPLIT_INFEASIBLE && planner->order_is_free &&
      planner->n_candidates > planner->options.n_stages) {
    uint32_t *roomiest;
    PSPLIT_TRY(psplit_i_roomiest_devices(planner, diag, &roomiest));
    code = settle_on(c, roomiest, planner->options.n_stages, &why);
  }
  if (code != PSPLIT_OK) code = psplit_i_fail_as(diag, &why);
out:
  return code;
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  psplit_i_tied_weights ties = {0};
  cutter c = {.planner = planner, .values = values, .ties = &ties};
  psplit_code code = psplit_i_tied_weights_find(planner, diag, &ties);
  psplit_i_arena_reset(&planner->scratch);
  psplit_i_pass_nothing_on(planner);
  planner->any_route_bound_ns = 0;
  planner->copies_bound_ns = 0; /* of other groups, perhaps */
  planner->copies_tried = false;
  /* `replicate` asks what copies gain. */
  if (planner->options.objective == PSPLIT_THROUGHPUT && planner->options.max_segments <= 1 &&
      planner->options.max_replicas <= 1)
    psplit_i_plan_hold_back(planner);
  if (code == PSPLIT_OK) code = settle(&c, diag);
  if (code == PSPLIT_OK) code = psplit_i_pass_on(planner, &c.shared, diag);
  psplit_i_plan_release(planner);
  if (code == PSPLIT_OK) code = psplit_i_take_slack(planner, &ties, diag);
  psplit_i_shared_split_fini(&c.shared);
  psplit_i_tied_weights_fini(&ties);
  if (code == PSPLIT_INFEASIBLE) name_unsendable(planner, diag);
  if (code == PSPLIT_INFEASIBLE) name_dead(planner, diag);
  if (code == PSPLIT_INFEASIBLE) psplit_i_name_refused(planner, diag);
  if (code == PSPLIT_INFEASIBLE) name_states(planner, diag);
  if (code == PSPLIT_INFEASIBLE) psplit_i_name_unreachable(planner, diag);
  return code;
}

static const psplit_i_option OPTIONS[] = {
  [OPTION_SOLVER] = {"solver", PSPLIT_I_OPTION_TEXT, "auto", 0, 0, PSPLIT_I_SOLVERS_ASKED},
  [OPTION_GAP] = {"gap", PSPLIT_I_OPTION_REAL, "0", 0, 1,
                  "stop once value and bound are within this fraction"},
  [OPTION_TIME_LIMIT] = {"time_limit", PSPLIT_I_OPTION_REAL, "-1", -1, 1e9,
                         "seconds; -1: the limit of the whole plan"},
};

const psplit_i_pass psplit_i_pass_partition = {
  .name = "partition",
  .help = "assign supernodes to stages, minimising the objective",
  .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~0u,
  .makes = PSPLIT_I_FACT_STAGES,
  .options = OPTIONS,
  .n_options = sizeof OPTIONS / sizeof *OPTIONS,
  .run = run,
};
