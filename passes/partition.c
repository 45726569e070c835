/* needs: costs, live, groups  keeps: everything  breaks: nothing
 *
 * Turns supernodes into a bare partition problem, solves it, and gives every node its stage. Free
 * nodes (functions of constants) are not part of the problem: each goes to every stage that reads
 * its result. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "liveness.h"
#include "problem.h"
#include "tied.h"

#define COARSE_GAP 0.005

enum { OPTION_SOLVER, OPTION_GAP, OPTION_TIME_LIMIT };

/* What one run of the solver is asked for. */
typedef struct request {
  const psplit_i_option_value *values;
  const psplit_i_ties *ties;
  const uint8_t *joined; /* [ties->weights.n] the weight's users share a stage */
  bool quick;            /* is there a split at all? */
} request;

typedef struct cutter {
  psplit_unit *unit;
  const psplit_i_option_value *values;
  const psplit_i_ties *ties;
} cutter;

static bool joins_any(const request *r) {
  bool any = false;
  for (size_t w = 0; w < r->ties->weights.n; w++) any |= r->joined[w] != 0;
  return any;
}

static psplit_code join_tied(psplit_i_builder *b, const request *r) {
  if (!joins_any(r)) return PSPLIT_OK;
  if (!psplit_i_ties_join(r->ties, r->joined, b->group, b->n_groups, b->unit->n_together, b->arena,
                          b->together))
    return psplit_i_nomem(b->diag);
  b->problem.together = b->together;
  return PSPLIT_OK;
}

/* `share` of the time limit is for this solution. */
static psplit_code solve(psplit_unit *unit, const request *r, const uint64_t *memory_bytes,
                         double share, psplit_diag *diag) {
  psplit_code code;
  const psplit_i_option_value *values = r->values;
  psplit_i_builder b = {.unit = unit, .arena = &unit->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  unit->copies.n = 0;
  unit->copies_bound_ns = 0;
  if (b.n_groups == 0) { /* constants alone: all of them in the one stage */
    PSPLIT_TRY(psplit_i_builder_place_free(&b));
    goto out;
  }
  PSPLIT_TRY(psplit_i_builder_build(&b, memory_bytes));
  PSPLIT_TRY(join_tied(&b, r));
  psplit_partition_options options;
  psplit_i_partition_options(unit, &options);
  options.solver = strcmp(values[OPTION_SOLVER].text, "auto") != 0 ? values[OPTION_SOLVER].text
                   : unit->options.solver                          ? unit->options.solver
                                                                   : "auto";
  if (values[OPTION_TIME_LIMIT].real >= 0) {
    options.time_limit_s = values[OPTION_TIME_LIMIT].real;
    options.limit_by_work = false;
  }
  options.time_limit_s *= share; /* no limit, which is below 0, stays none */
  if (r->quick) options.time_limit_s = 0;
  options.gap_frac = values[OPTION_GAP].real;
  /* What coarsening lost is not known: proofs to the last bit say nothing about the model. */
  if (unit->coarsened && options.gap_frac < COARSE_GAP) options.gap_frac = COARSE_GAP;
  psplit_solution *solution;
  PSPLIT_TRY(psplit_partition_solve(&b.problem, &options, diag, &solution));
  psplit_solution_destroy(unit->solution);
  unit->solution = solution;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b.group[n] != PSPLIT_NONE) unit->stage[n] = solution->stage[b.group[n]];
  PSPLIT_TRY(psplit_i_builder_place_free(&b));
out:
  psplit_i_arena_reset(&unit->scratch);
  return code;
}

/* First stage that needs more than its device has; n_stages where all fit. */
static uint32_t first_too_large(const psplit_unit *unit) {
  uint32_t s = 0;
  while (s < unit->options.n_stages &&
         unit->plan->stages[s].memory_bytes <= psplit_devices_memory_bytes(unit->devices, s))
    s++;
  return s;
}

static bool any_memory_limit(const psplit_unit *unit) {
  for (uint32_t s = 0; s < unit->options.n_stages; s++)
    if (psplit_devices_memory_bytes(unit->devices, s) != UINT64_MAX) return true;
  return false;
}

static bool any_pin(const psplit_unit *unit) {
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (unit->pin[n] != PSPLIT_NONE || unit->together[n] != PSPLIT_NONE) return true;
  return false;
}

static const char *name_of_value(const psplit_unit *unit, uint32_t value) {
  return value == PSPLIT_NONE ? "?" : unit->graph->values[value].name;
}

/* An unnamed node goes by what it makes. */
static const char *name_of_node(const psplit_unit *unit, uint32_t node) {
  if (node == PSPLIT_NONE) return "?";
  const psplit_node *n = &unit->graph->nodes[node];
  return *n->name || !n->n_outputs ? n->name : name_of_value(unit, n->outputs[0]);
}

/* Bytes as people read them in an error: whole MiB where that loses little. */
static const char *amount(uint64_t bytes, char out[32]) {
  const bool large = bytes >= UINT64_C(10) << 20;
  snprintf(out, 32, "%" PRIu64 " %s", large ? bytes >> 20 : bytes >> 10, large ? "MiB" : "KiB");
  return out;
}

/* Says what does not fit where, and what would. `solved`: the plan is the best that was found. */
static psplit_code too_large(psplit_unit *unit, bool solved, const psplit_i_fit *fit,
                             psplit_diag *diag) {
  char need[32], weights[32], activations[32], buffers[32], workspace[32], limit[32];
  char advice[PSPLIT_DIAG_BYTES / 2];
  uint64_t largest = 0;
  for (uint32_t s = 0; s < unit->options.n_stages; s++)
    if (psplit_devices_memory_bytes(unit->devices, s) > largest)
      largest = psplit_devices_memory_bytes(unit->devices, s);
  if (fit->n_stages == 0)
    snprintf(advice, sizeof advice,
             "no number of stages fits: node \"%s\" and what must stay with it need %s, the "
             "largest tensor there is \"%s\"",
             name_of_node(unit, fit->blocking_node), amount(fit->blocking_bytes, need),
             name_of_value(unit, fit->blocking_value));
  else if (fit->n_stages != unit->options.n_stages)
    snprintf(advice, sizeof advice, "%" PRIu32 " stages would fit%s", fit->n_stages,
             any_pin(unit) ? " without pins" : "");
  else
    snprintf(advice, sizeof advice, "without pins it would fit");
  const uint32_t s = solved ? first_too_large(unit) : unit->options.n_stages;
  if (s == unit->options.n_stages)
    return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                         "memory: no split into %" PRIu32
                         " stage%s fits the devices, of which the largest has %s; %s",
                         s, s == 1 ? "" : "s", amount(largest, limit), advice);
  const psplit_plan_stage *stage = &unit->plan->stages[s];
  return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                       "memory: stage %" PRIu32
                       " needs %s (weights %s, activations %s, buffers %s, workspace %s) and "
                       "device %s has %s; %s",
                       s, amount(stage->memory_bytes, need), amount(stage->weight_bytes, weights),
                       amount(stage->peak_activation_bytes, activations),
                       amount(stage->buffer_bytes, buffers),
                       amount(stage->workspace_bytes, workspace), stage->device,
                       amount(psplit_devices_memory_bytes(unit->devices, s), limit), advice);
}

/* Numbers groups in another topological order: by the stage that the solver gave them, then as they
 * are. */
static psplit_code number_by_stage(psplit_i_builder *b) {
  const psplit_unit *unit = b->unit;
  const uint32_t n_stages = unit->options.n_stages;
  uint32_t *stage = psplit_i_builder_array(b, b->n_groups, sizeof *stage);
  uint32_t *at = psplit_i_builder_array(b, (size_t)n_stages + 1, sizeof *at);
  uint32_t *number = psplit_i_builder_array(b, b->n_groups, sizeof *number);
  if (!stage || !at || !number) return psplit_i_nomem(b->diag);
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) stage[b->group[n]] = unit->stage[n];
  for (uint32_t g = 0; g < b->n_groups; g++) at[stage[g] + 1]++;
  for (uint32_t s = 0; s < n_stages; s++) at[s + 1] += at[s];
  for (uint32_t g = 0; g < b->n_groups; g++) number[g] = at[stage[g]]++;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) b->group[n] = number[b->group[n]];
  return PSPLIT_OK;
}

/* Gives the nodes that are not free these stages, and makes the plan. */
static psplit_code adopt(psplit_i_builder *b, const uint32_t *node_stage) {
  psplit_code code;
  psplit_unit *unit = b->unit;
  unit->copies.n = 0;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) unit->stage[n] = node_stage[n];
  PSPLIT_TRY(psplit_i_builder_place_free(b));
  PSPLIT_TRY(psplit_i_plan_make(unit, b->diag)); /* ends the scratch, and with it b's arrays */
out:
  return code;
}

/* The best cut of an order of the groups where the solver's does not fit, or is worse; an error
 * that says why not where none fits. `solved`: there is a plan; it fits if first_too_large says so.
 */
static psplit_code cut_to_fit(psplit_unit *unit, const request *r, bool solved, psplit_diag *diag) {
  psplit_code code;
  psplit_i_fit fit;
  bool found;
  const uint32_t n_nodes = unit->graph->n_nodes;
  const bool fitting = solved && first_too_large(unit) == unit->options.n_stages;
  psplit_i_builder b = {.unit = unit, .arena = &unit->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  uint32_t *group_stage = psplit_i_builder_array(&b, b.n_groups, sizeof *group_stage);
  uint32_t *old = psplit_i_arena_array(&unit->arena, n_nodes, sizeof *old);
  uint32_t *cut = psplit_i_arena_array(&unit->arena, n_nodes, sizeof *cut);
  if (!group_stage || !old || !cut) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_fit_memory(unit, b.group, b.n_groups, group_stage, &fit, &found, diag));
  if (solved && !found) {
    psplit_i_fit other;
    PSPLIT_TRY(number_by_stage(&b));
    PSPLIT_TRY(psplit_i_fit_memory(unit, b.group, b.n_groups, group_stage, &other, &found, diag));
    if (other.n_stages && (!fit.n_stages || other.n_stages < fit.n_stages)) fit = other;
  }
  /* It knows nothing of these. */
  found = found && !any_pin(unit) && !unit->next_hop && !joins_any(r);
  if (!found && !fitting) return too_large(unit, solved, &fit, diag);
  if (!found) goto out;
  memcpy(old, unit->stage, n_nodes * sizeof *old);
  for (uint32_t n = 0; n < n_nodes; n++)
    cut[n] = b.group[n] == PSPLIT_NONE ? 0 : group_stage[b.group[n]];
  const int64_t old_ns = fitting ? psplit_i_plan_value_ns(unit, unit->plan) : INT64_MAX;
  PSPLIT_TRY(adopt(&b, cut));
  if (first_too_large(unit) < unit->options.n_stages) {
    if (!fitting) return too_large(unit, true, &fit, diag);
  } else if (psplit_i_plan_value_ns(unit, unit->plan) < old_ns) {
    if (unit->solution) unit->solution->solver = "fit";
    unit->plan->solver = "fit";
    goto out;
  }
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(adopt(&b, old));
out:
  psplit_i_arena_reset(&unit->scratch);
  return code;
}

static psplit_code first_fit_suffices(psplit_unit *unit, bool *out, psplit_diag *diag) {
  psplit_code code;
  psplit_i_fit fit;
  bool cut;
  psplit_i_builder b = {.unit = unit, .arena = &unit->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(psplit_i_fit_memory(unit, b.group, b.n_groups, NULL, &fit, &cut, diag));
  *out = fit.n_stages && fit.n_stages <= unit->options.n_stages;
  psplit_i_arena_reset(&unit->scratch);
out:
  return code;
}

/* Whether all devices together cannot hold what each weight takes once: no search can help. */
static bool weights_exceed_memory(const psplit_unit *unit) {
  const psplit_graph *graph = unit->graph;
  uint64_t weights = 0, room = 0;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (psplit_i_unit_is_constant(unit, v))
      for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
        if (!(unit->node_flags[graph->consumers[c]] & PSPLIT_I_NODE_FREE)) {
          weights = psplit_i_sat_add_u64(weights, psplit_i_unit_weight_bytes(unit, v));
          break;
        }
  for (uint32_t s = 0; s < unit->options.n_stages; s++)
    room = psplit_i_sat_add_u64(room, psplit_devices_memory_bytes(unit->devices, s));
  return weights > room;
}

/* The solver limits weights alone; a stage's other memory is known once it is cut. While a stage
 * does not fit, its device offers the solver that much less. The bound of the first round, which
 * offered everything, holds for every split; those of later rounds do not. */
static psplit_code solve_within_memory(psplit_unit *unit, const request *r, double share,
                                       psplit_diag *diag) {
  enum { MAX_ROUNDS = 6 };
  psplit_code code = PSPLIT_OK;
  int64_t bound_ns = 0;
  const char *bound = NULL;
  const uint32_t n_stages = unit->options.n_stages;
  uint64_t *offered = psplit_i_arena_array(&unit->arena, n_stages, sizeof *offered);
  if (!offered) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < n_stages; s++)
    offered[s] = psplit_devices_memory_bytes(unit->devices, s);
  if (any_memory_limit(unit) && !any_pin(unit)) {
    if (weights_exceed_memory(unit)) return cut_to_fit(unit, r, false, diag);
    bool easy;
    PSPLIT_TRY(first_fit_suffices(unit, &easy, diag));
    if (!easy) share /= 5; /* there may be no split at all: a search should not take all the time */
  }
  for (unsigned round = 0; round < MAX_ROUNDS; round++) {
    psplit_diag why = {0};
    code = solve(unit, r, offered, round ? share / 10 : share, &why);
    if (code == PSPLIT_INFEASIBLE && round) break;
    if (code == PSPLIT_INFEASIBLE && any_memory_limit(unit) && !any_pin(unit))
      return cut_to_fit(unit, r, false, diag);
    if (code != PSPLIT_OK) return psplit_i_fail(diag, code, "%s", why.message);
    if (unit->solution) {
      if (round == 0) {
        bound_ns = unit->solution->lower_bound_ns;
        bound = unit->solution->bound;
      } else if (round == 1) { /* its gap may be due to what it does not count */
        char text[96];
        const int n = snprintf(text, sizeof text, "%s, of weights' memory alone", bound);
        if (!(bound = psplit_i_arena_strndup(&unit->arena, text, (size_t)n)))
          PSPLIT_TRY(psplit_i_nomem(diag));
      }
      unit->solution->lower_bound_ns = bound_ns;
      unit->solution->bound = bound;
      unit->solution->proved_optimal &= unit->solution->objective_ns == bound_ns;
    }
    PSPLIT_TRY(psplit_i_plan_make(unit, diag));
    if (first_too_large(unit) == n_stages) break;
    for (uint32_t s = 0; s < n_stages; s++) {
      const uint64_t need = unit->plan->stages[s].memory_bytes;
      const uint64_t limit = psplit_devices_memory_bytes(unit->devices, s);
      if (need <= limit) continue;
      const uint64_t excess = need - limit;
      offered[s] = offered[s] > excess + 1 ? offered[s] - excess : 1;
    }
  }
  if (first_too_large(unit) == n_stages && (unit->plan->proved_optimal || !any_memory_limit(unit)))
    return PSPLIT_OK;
  return cut_to_fit(unit, r, true, diag);
out:
  return code;
}

/* Says what may stand in the way: values that keep their producer and their readers together. */
static void name_unsendable(const psplit_unit *unit, psplit_diag *diag) {
  uint32_t first = PSPLIT_NONE, n = 0;
  for (uint32_t v = 0; v < unit->graph->n_values; v++) {
    if (unit->graph->values[v].producer == PSPLIT_NONE || psplit_i_unit_sendable(unit, v) ||
        unit->graph->consumer_off[v] == unit->graph->consumer_off[v + 1])
      continue;
    if (!n++) first = v;
  }
  const size_t used = strlen(diag->message);
  if (n == 1)
    snprintf(diag->message + used, sizeof diag->message - used,
             "; \"%s\" is not known to be a dense tensor and is never sent",
             unit->graph->values[first].name);
  else if (n)
    snprintf(diag->message + used, sizeof diag->message - used,
             "; \"%s\" and %" PRIu32 " more are not known to be dense tensors and are never sent",
             unit->graph->values[first].name, n - 1);
}

static psplit_code cut(psplit_unit *unit, const request *r, psplit_diag *diag) {
  psplit_code code = PSPLIT_INFEASIBLE;
  const uint32_t n_stages = unit->options.n_stages;
  psplit_diag first = {0};
  if (unit->grouping.n_groups >= n_stages || n_stages == 1)
    code = solve_within_memory(unit, r, 1, &first);
  if (code == PSPLIT_INFEASIBLE && unit->grouping.n_groups < unit->graph->n_nodes) {
    /* Groups are a wish, stages are asked for: let go of the groups before giving up. */
    const uint32_t n_groups = unit->grouping.n_groups;
    if (!psplit_i_grouping_init(&unit->grouping, unit->graph, unit->node_flags, unit->pin,
                                &unit->arena))
      return psplit_i_nomem(diag);
    if (unit->grouping.n_groups > n_groups && unit->grouping.n_groups >= n_stages) {
      code = solve_within_memory(unit, r, 0.25, diag);
      if (code == PSPLIT_OK)
        psplit_i_say(unit->options.sink, PSPLIT_NOTE,
                     "%" PRIu32 " supernodes allow no such split; cut between operators instead",
                     n_groups);
      return code;
    }
  }
  if (code == PSPLIT_INFEASIBLE && first.code == PSPLIT_OK)
    return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                         "%" PRIu32 " stages cannot all have work: the model has %" PRIu32
                         " nodes besides constants; ask for fewer stages",
                         n_stages, unit->grouping.n_groups);
  if (code != PSPLIT_OK) psplit_i_fail(diag, code, "%s", first.message);
  return code;
}

static psplit_code cut_joined(void *user, const uint8_t *joined, psplit_i_effort effort,
                              psplit_diag *diag) {
  cutter *c = user;
  const request r = {c->values, c->ties, joined, effort == PSPLIT_I_CUT_ANY};
  return effort == PSPLIT_I_CUT ? cut(c->unit, &r, diag)
                                : solve_within_memory(c->unit, &r, 1, diag);
}

static psplit_code run(psplit_unit *unit, const psplit_i_option_value *values, psplit_diag *diag) {
  psplit_i_ties ties = {0};
  cutter c = {unit, values, &ties};
  psplit_code code = psplit_i_ties_find(unit, diag, &ties);
  psplit_i_arena_reset(&unit->scratch);
  if (code == PSPLIT_OK) code = psplit_i_ties_settle(unit, &ties, cut_joined, &c, diag);
  psplit_i_ties_fini(&ties);
  if (code == PSPLIT_INFEASIBLE) name_unsendable(unit, diag);
  if (code == PSPLIT_INFEASIBLE) psplit_i_name_unreachable(unit, diag);
  return code;
}

static const psplit_i_option OPTIONS[] = {
  [OPTION_SOLVER] = {"solver", PSPLIT_I_OPTION_TEXT, "auto", 0, 0,
                     "auto, exact, search, anneal, multilevel or slice"},
  [OPTION_GAP] = {"gap", PSPLIT_I_OPTION_REAL, "0", 0, 1, "stop at this relative gap"},
  [OPTION_TIME_LIMIT] = {"time_limit", PSPLIT_I_OPTION_REAL, "-1", -1, 1e9,
                         "seconds; -1: as --time-limit says"},
};

const psplit_i_pass psplit_i_pass_partition = {
  .name = "partition",
  .help = "assign supernodes to stages, minimising the slowest one",
  .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~0u,
  .makes = PSPLIT_I_FACT_STAGES,
  .options = OPTIONS,
  .n_options = sizeof OPTIONS / sizeof *OPTIONS,
  .run = run,
};
