#include "latency_calls.h"

#include "blocks.h"

typedef struct search {
  const psplit_i_solver_request *request;
  psplit_i_arena arena;
  psplit_i_calls calls;
  psplit_i_calls_closure closure;
  psplit_i_calls_placed best;
} search;

/* Sets the best placement to that of a split: a device of each stage's entry. */
static psplit_code take_split(search *s, const psplit_i_latency_split *split) {
  const psplit_i_calls *c = &s->calls;
  const uint32_t n_stages = psplit_problem_n_stages(c->problem);
  uint32_t *device = PSPLIT_NEW(&s->arena, uint32_t, n_stages);
  bool *used = PSPLIT_NEW(&s->arena, bool, c->n_accelerators);
  if (!device || !used) return PSPLIT_NOMEM;
  for (uint32_t stage = 0; stage < n_stages; stage++) {
    uint32_t a = 0;
    while (a < c->n_accelerators && (used[a] || c->entry[a] != split->type[stage])) a++;
    if (a < c->n_accelerators) used[a] = true;
    device[stage] = a;
  }
  for (uint32_t v = 0; v < c->n; v++) s->best.device[v] = device[split->stage[v]];
  return PSPLIT_OK;
}

/* How many devices wait for one another in front of each: they form no circle. O(devices * edges).
 */
static void rank_devices(const search *s, uint32_t *rank) {
  const psplit_i_calls *c = &s->calls;
  bool any = true;
  while (any) {
    any = false;
    for (uint32_t v = 0; v < c->n; v++)
      for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++) {
        const uint32_t from = s->best.device[v], to = s->best.device[c->succ[k]];
        if (from == to || rank[to] > rank[from]) continue;
        rank[to] = rank[from] + 1;
        any = true;
      }
  }
}

/* Stages of devices by rank, then by number, and behind them those that hold nothing. */
static psplit_code order_stages(search *s, psplit_i_latency_split *split) {
  const psplit_i_calls *c = &s->calls;
  const uint32_t n = c->n_accelerators;
  uint32_t *rank = PSPLIT_NEW(&s->arena, uint32_t, n), *stage = PSPLIT_NEW(&s->arena, uint32_t, n);
  bool *used = PSPLIT_NEW(&s->arena, bool, n);
  uint32_t n_stages = 0;
  if (!rank || !stage || !used) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < c->n; v++) used[s->best.device[v]] = true;
  rank_devices(s, rank);
  for (uint32_t level = 0; level < n; level++)
    for (uint32_t a = 0; a < n; a++)
      if (used[a] && rank[a] == level) stage[a] = n_stages++;
  for (uint32_t a = 0; a < n; a++)
    if (!used[a]) stage[a] = n_stages++;
  for (uint32_t a = 0; a < n; a++) split->type[stage[a]] = c->entry[a];
  for (uint32_t v = 0; v < c->n; v++) split->stage[v] = stage[s->best.device[v]];
  split->value = s->best.value;
  return PSPLIT_OK;
}

static psplit_code look(search *s, const psplit_i_latency_split *best, int64_t *inout_bound,
                        psplit_i_latency_split *out_split) {
  const bool free_order = s->request->problem->any_device_order;
  psplit_code code;
  psplit_i_budget budget = psplit_i_budget_share(s->request->budget, 2);
  PSPLIT_TRY(psplit_i_calls_init(&s->calls, s->request->problem, false, s->request->diag));
  PSPLIT_TRY(psplit_i_calls_closure_init(&s->closure, &s->calls, &s->arena));
  s->best = (psplit_i_calls_placed){best->value, PSPLIT_NEW(&s->arena, uint32_t, s->calls.n)};
  PSPLIT_TRY(s->best.device ? PSPLIT_OK : PSPLIT_NOMEM);
  if (best->stage) PSPLIT_TRY(take_split(s, best));
  PSPLIT_TRY(psplit_i_calls_blocks(&s->calls, &s->closure,
                                   best->stage && free_order ? s->request : NULL, &budget,
                                   inout_bound, &s->best));
  if (s->best.value < best->value && free_order) PSPLIT_TRY(order_stages(s, out_split));
out:
  psplit_i_spend(s->request->budget, budget.spent);
  return code;
}

psplit_code psplit_i_latency_calls(const psplit_i_solver_request *request,
                                   const psplit_i_automaton *automaton,
                                   const psplit_i_latency_split *best, int64_t *inout_bound,
                                   psplit_i_latency_split *out_split) {
  search s = {.request = request};
  out_split->value = PSPLIT_I_INF;
  if (!psplit_i_takes(PSPLIT_I_RULE_STAGES_AS_CALLS, automaton->features) ||
      request->problem->n_nodes > PSPLIT_I_CALLS_NODES)
    return PSPLIT_OK;
  psplit_i_arena_init(&s.arena, 0);
  const psplit_code code = look(&s, best, inout_bound, out_split);
  psplit_i_calls_fini(&s.calls);
  psplit_i_arena_fini(&s.arena);
  return code;
}
