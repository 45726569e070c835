/* Splits that fit the memory of devices: by the solver, which is offered less memory in each round,
 * and then by the best cut of one order. Reports what does not fit, and what would. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fit.h"
#include "keep_state.h"
#include "least_memory.h"
#include "methods.h"
#include "request.h"
#include "units.h"
#include "what_fits.h"

/* The first stage that needs more than its device has, or n_stages if all fit. */
static uint32_t first_too_large(const psplit_planner *planner) {
  uint32_t s = 0;
  while (s < planner->options.n_stages &&
         planner->plan->stages[s].memory_bytes <= psplit_devices_memory_bytes(planner->devices, s))
    s++;
  return s;
}

static bool any_memory_limit(const psplit_planner *planner) {
  for (uint32_t s = 0; s < planner->options.n_stages; s++)
    if (psplit_devices_memory_bytes(planner->devices, s) != UINT64_MAX) return true;
  return false;
}

/* Reports what does not fit where, and what would. `solved`: there is a plan, the best that was
 * found. */
static psplit_code too_large(psplit_planner *planner, const psplit_i_request *r, bool solved,
                             psplit_diag *diag) {
  char need[PSPLIT_I_UNIT_BYTES], weights[PSPLIT_I_UNIT_BYTES], activations[PSPLIT_I_UNIT_BYTES];
  char stash[PSPLIT_I_UNIT_BYTES], buffers[PSPLIT_I_UNIT_BYTES], workspace[PSPLIT_I_UNIT_BYTES];
  char limit[PSPLIT_I_UNIT_BYTES], lacks[PSPLIT_I_UNIT_BYTES];
  psplit_i_what_fits fits;
  const uint32_t s = solved ? first_too_large(planner) : planner->options.n_stages;
  const psplit_code code = psplit_i_what_fits_find(planner, r, &fits, diag);
  if (code != PSPLIT_OK) return code;
  uint64_t largest = 0, smallest = UINT64_MAX;
  for (uint32_t d = 0; d < planner->options.n_stages; d++) {
    const uint64_t bytes = psplit_devices_memory_bytes(planner->devices, d);
    if (bytes > largest) largest = bytes;
    if (bytes < smallest) smallest = bytes;
  }
  const bool bounded = largest != UINT64_MAX; /* otherwise the largest device is unlimited */
  if (s == planner->options.n_stages)
    return psplit_i_fail_about(diag, PSPLIT_INFEASIBLE, fits.advice,
                               "memory: no split into %" PRIu32
                               " stage%s fits the devices, of which the %s has %s%s",
                               s, s == 1 ? "" : "s", bounded ? "largest" : "smallest",
                               psplit_i_in_bytes(bounded ? largest : smallest, limit), fits.words);
  const psplit_plan_stage *stage = &planner->plan->stages[s];
  const uint64_t has_bytes = psplit_devices_memory_bytes(planner->devices, s);
  return psplit_i_fail_about(
    diag, PSPLIT_INFEASIBLE, fits.advice,
    "memory: stage %" PRIu32
    " needs %s (weights %s, activations %s,%s%s%s buffers %s, workspace %s) and "
    "device %s has %s, %s too little%s",
    s, psplit_i_in_bytes(stage->memory_bytes, need),
    psplit_i_in_bytes(stage->weight_bytes, weights),
    psplit_i_in_bytes(stage->peak_activation_bytes, activations),
    planner->options.training ? " stash " : "",
    planner->options.training ? psplit_i_in_bytes(stage->stash_bytes, stash) : "",
    planner->options.training ? "," : "", psplit_i_in_bytes(stage->buffer_bytes, buffers),
    psplit_i_in_bytes(stage->workspace_bytes, workspace), stage->device,
    psplit_i_in_bytes(has_bytes, limit), psplit_i_in_bytes(stage->memory_bytes - has_bytes, lacks),
    fits.words);
}

/* Renumbers groups in another topological order: by the stages that the solver assigned, then by
 * number. */
static psplit_code number_by_stage(psplit_i_builder *b) {
  const psplit_planner *planner = b->planner;
  const uint32_t n_stages = planner->options.n_stages;
  uint32_t *stage = psplit_i_builder_array(b, b->n_groups, sizeof *stage);
  uint32_t *at = psplit_i_builder_array(b, (size_t)n_stages + 1, sizeof *at);
  uint32_t *number = psplit_i_builder_array(b, b->n_groups, sizeof *number);
  if (!stage || !at || !number) return psplit_i_nomem(b->diag);
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) stage[b->group[n]] = planner->stage[n];
  for (uint32_t g = 0; g < b->n_groups; g++) at[stage[g] + 1]++;
  for (uint32_t s = 0; s < n_stages; s++) at[s + 1] += at[s];
  for (uint32_t g = 0; g < b->n_groups; g++) number[g] = at[stage[g]]++;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) b->group[n] = number[b->group[n]];
  return PSPLIT_OK;
}

/* Assigns these stages to the nodes that are not free, and makes the plan. */
static psplit_code adopt(psplit_i_builder *b, const uint32_t *node_stage) {
  psplit_code code;
  psplit_planner *planner = b->planner;
  planner->copies.n = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) planner->stage[n] = node_stage[n];
  PSPLIT_TRY(psplit_i_builder_place_free(b));
  /* resets the scratch, which invalidates b's arrays */
  PSPLIT_TRY(psplit_i_plan_make(planner, b->diag));
out:
  return code;
}

/* The best cut of an order of the groups, if the solver's split does not fit or is worse. Fails
 * with the reason if nothing fits. `solved`: there is a plan, which fits if first_too_large() says
 * so. */
static psplit_code cut_to_fit(psplit_planner *planner, const psplit_i_request *r, bool solved,
                              psplit_diag *diag) {
  psplit_code code;
  psplit_i_fit fit;
  bool found;
  const uint32_t n_nodes = planner->graph->n_nodes;
  const bool fitting = solved && first_too_large(planner) == planner->options.n_stages;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  uint32_t *group_stage = psplit_i_builder_array(&b, b.n_groups, sizeof *group_stage);
  uint32_t *classes = psplit_i_builder_array(&b, planner->n_state_classes, sizeof *classes);
  uint32_t *old = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *old);
  uint32_t *cut = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *cut);
  if (!group_stage || !classes || !old || !cut) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_fit_memory(planner, b.group, b.n_groups, group_stage, &fit, &found, diag));
  if (solved && !found) {
    PSPLIT_TRY(number_by_stage(&b));
    PSPLIT_TRY(psplit_i_fit_memory(planner, b.group, b.n_groups, group_stage, &fit, &found, diag));
  }
  /* The cut ignores all of these constraints. */
  found =
    found && !psplit_i_any_wish(planner) && !planner->next_hop && !psplit_i_request_joins_any(r);
  if (!found && !fitting) return too_large(planner, r, solved, diag);
  if (!found) goto out;
  memcpy(old, planner->stage, n_nodes * sizeof *old);
  for (uint32_t n = 0; n < n_nodes; n++)
    cut[n] = b.group[n] == PSPLIT_NONE ? 0 : group_stage[b.group[n]];
  if (!psplit_i_states_are_kept(planner, cut, classes)) {
    if (!fitting) return too_large(planner, r, solved, diag);
    goto out;
  }
  const int64_t old_ns = fitting ? planner->plan->value_ns : INT64_MAX;
  PSPLIT_TRY(adopt(&b, cut));
  if (first_too_large(planner) < planner->options.n_stages) {
    if (!fitting) return too_large(planner, r, true, diag);
  } else if (planner->plan->value_ns < old_ns) {
    const char *by = psplit_i_method_name(PSPLIT_I_SOLVER_FIT);
    if (planner->solution) planner->solution->solver = by;
    planner->plan->solver = by;
    goto out;
  }
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(adopt(&b, old));
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* Whether there are groups with work for all stages: a node that reaches an output. */
static psplit_code enough_work(psplit_planner *planner, bool *out, psplit_diag *diag) {
  psplit_code code;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  bool *works = psplit_i_builder_array(&b, b.n_groups, sizeof *works);
  if (!works) PSPLIT_FAIL(psplit_i_nomem(diag));
  uint32_t n_works = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) {
    if (b.group[n] == PSPLIT_NONE || !psplit_i_node_runs(planner->node_flags[n])) continue;
    n_works += !works[b.group[n]];
    works[b.group[n]] = true;
  }
  *out = planner->options.n_stages == 1 || n_works >= planner->options.n_stages;
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* The number of stages that the supernodes fill consecutively. */
static psplit_code first_fit(psplit_planner *planner, psplit_i_fit *out, psplit_diag *diag) {
  psplit_code code;
  bool cut;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(psplit_i_fit_memory(planner, b.group, b.n_groups, NULL, out, &cut, diag));
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* Reports what does not fit, where that is known without a search. */
static psplit_code refuse(psplit_planner *planner, const psplit_i_request *r,
                          const psplit_i_least_memory *least, psplit_diag *diag) {
  char has[PSPLIT_I_UNIT_BYTES], need[PSPLIT_I_UNIT_BYTES];
  const psplit_code code = too_large(planner, r, false, diag);
  if (code == PSPLIT_INFEASIBLE && least->node == PSPLIT_NONE && least->device != PSPLIT_NONE)
    psplit_i_diag_add(
      diag, "device %s has %s, and a stage on it needs %s at least",
      psplit_devices_name(planner->devices, least->device),
      psplit_i_in_bytes(psplit_devices_memory_bytes(planner->devices, least->device), has),
      psplit_i_in_bytes(least->n_bytes, need));
  return code;
}

psplit_code psplit_i_solve_within_memory(psplit_planner *planner, const psplit_i_request *r,
                                         double share, psplit_diag *diag) {
  enum { MAX_ROUNDS = 6, MANY_STAGES = 32 };
  psplit_code code = PSPLIT_OK;
  int64_t bound_ns = 0;
  const char *bound = NULL;
  const uint32_t n_stages = planner->options.n_stages;
  uint64_t *offered = psplit_i_arena_array(&planner->arena, n_stages, sizeof *offered);
  if (!offered) return psplit_i_nomem(diag);
  /* It may be for other groups, so its bound would not hold here. */
  psplit_solution_destroy(planner->solution);
  planner->solution = NULL;
  for (uint32_t s = 0; s < n_stages; s++)
    offered[s] = psplit_devices_memory_bytes(planner->devices, s);
  psplit_i_least_memory least;
  PSPLIT_TRY(psplit_i_least_memory_find(planner, n_stages, &least, diag));
  if (least.too_little) return refuse(planner, r, &least, diag);
  if (any_memory_limit(planner) && !psplit_i_any_wish(planner)) {
    psplit_i_fit fit;
    PSPLIT_TRY(first_fit(planner, &fit, diag));
    /* A group that does not fit alone may fit together with its inputs, but only with few
     * stages. */
    if (!fit.n_stages && n_stages >= MANY_STAGES) return cut_to_fit(planner, r, false, diag);
    if (!fit.n_stages || fit.n_stages > n_stages || fit.n_skipped)
      share /= 5; /* there may be no split at all, so the search should not take all the time */
  }
  for (unsigned round = 0; round < MAX_ROUNDS; round++) {
    psplit_diag why = {0};
    code = psplit_i_request_solve(planner, r, offered, round ? share / 10 : share, &why);
    if (code == PSPLIT_INFEASIBLE && round) break;
    if (code == PSPLIT_INFEASIBLE && any_memory_limit(planner) &&
        (n_stages == 1 || !psplit_i_any_wish(planner))) {
      bool enough = false;
      PSPLIT_TRY(enough_work(planner, &enough, diag));
      return enough ? cut_to_fit(planner, r, false, diag) : psplit_i_fail_as(diag, &why);
    }
    if (code != PSPLIT_OK) return psplit_i_fail_as(diag, &why);
    if (planner->solution) {
      if (round == 0) {
        bound_ns = planner->solution->lower_bound_ns;
        bound = planner->solution->bound;
      } else if (round == 1) { /* part of its gap may come from memory that it does not count */
        char text[96];
        const int n = snprintf(text, sizeof text, "%s, of weights' memory alone", bound);
        if (!(bound = psplit_i_arena_strndup(&planner->arena, text, (size_t)n)))
          PSPLIT_FAIL(psplit_i_nomem(diag));
      }
      planner->solution->lower_bound_ns = bound_ns;
      planner->solution->bound = bound;
      planner->solution->proved_optimal &= planner->solution->objective_ns == bound_ns;
    }
    planner->plan = NULL; /* it was for other stages */
    if (!any_memory_limit(planner)) return PSPLIT_OK;
    PSPLIT_TRY(psplit_i_plan_make(planner, diag));
    if (first_too_large(planner) == n_stages) break;
    for (uint32_t s = 0; s < n_stages; s++) {
      const uint64_t need = planner->plan->stages[s].memory_bytes;
      const uint64_t limit = psplit_devices_memory_bytes(planner->devices, s);
      if (need <= limit) continue;
      const uint64_t excess = need - limit;
      offered[s] = offered[s] > excess + 1 ? offered[s] - excess : 1;
    }
  }
  /* By the counted costs, whatever a measured run says. */
  const bool best = planner->plan->value_ns <= planner->plan->lower_bound_ns;
  if (first_too_large(planner) == n_stages && best) return PSPLIT_OK;
  return cut_to_fit(planner, r, true, diag);
out:
  return code;
}
