/* Tie-breaking: of the splits with the least bottleneck the one that sends least, and of those the
 * one whose stages, read by node id, are lexicographically least. The exact program finds it, on an
 * instance that keeps it: the search's own keeps some best split, not this one. The less a known
 * split sends, the more labels the program can drop: so the descent on ties comes first. */
#include <string.h>

#include "automaton.h"
#include "budget.h"
#include "exact.h"
#include "instance.h"
#include "result.h"
#include "solver_state.h"
#include "tie_breaking.h"
#include "tie_descent.h"

enum {
  TIE_STEPS = 1 << 20,     /* of the exact program */
  DESCENT_STEPS = 1 << 22, /* of the descent before it */
  MOST_TOGETHER = 64,      /* clusters in one of them */
  MOST_MOVES = 1 << 20,    /* of an automaton that numbers stages freely */
};

/* Whether a stage number means more than an order. */
static bool numbers_matter(const psplit_i_solver_state *a) {
  uint32_t n_types_used = 0;
  for (uint32_t t = 0; t < a->automaton.n_types; t++) n_types_used += a->automaton.count[t] > 0;
  return !psplit_i_takes(PSPLIT_I_RULE_CLOSE_RANKS, a->automaton.features) ||
         (n_types_used > 1 && !a->automaton.any_order);
}

/* Whether the exact program sees every split, and every number that a stage can have. */
static bool is_within_reach(const psplit_i_solver_state *a) {
  const psplit_i_automaton *m = &a->automaton;
  if (a->instance.n > PSPLIT_I_LARGE || !psplit_i_exact_has_keys(&a->instance)) return false;
  if (!psplit_i_takes(PSPLIT_I_RULE_TIES_PROVED, m->features)) return false;
  if (!numbers_matter(a) || m->all_used) return true;
  if (m->any_order && !m->stage_radix) return false;
  return (uint64_t)m->n_states * m->n_stages * m->n_types <= MOST_MOVES;
}

/* Clusters by their smallest node, and the position of each. */
typedef struct sequence {
  uint32_t *clusters, *position; /* [n] */
} sequence;

static bool order_clusters(psplit_i_solver_state *a, sequence *out) {
  const psplit_i_instance *instance = &a->instance;
  out->clusters = PSPLIT_NEW(&a->arena, uint32_t, instance->n);
  out->position = PSPLIT_NEW(&a->arena, uint32_t, instance->n);
  if (!out->clusters || !out->position) return false;
  memset(out->position, 0xff, instance->n * sizeof *out->position);
  for (uint32_t v = 0, n = 0; v < instance->problem->n_nodes; v++) {
    const uint32_t cluster = instance->cluster_of_node[v];
    if (out->position[cluster] != PSPLIT_NONE) continue;
    out->position[cluster] = n;
    out->clusters[n++] = cluster;
  }
  return true;
}

/* A solver state that holds the result as its best split, with the reductions that keep the
 * lexicographically least one. */
static psplit_code open_state(psplit_i_solver_state *a) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_state_init(a));
  const uint32_t n_nodes = a->request->problem->n_nodes;
  uint32_t *parent = psplit_i_arena_array(&a->arena, n_nodes, sizeof *parent);
  PSPLIT_TRY(parent ? PSPLIT_OK : psplit_i_nomem(a->request->diag));
  for (uint32_t v = 0; v < n_nodes; v++) parent[v] = v;
  psplit_i_result_give(a->result, &a->instance, &a->automaton, &a->best, a->scratch);
  PSPLIT_TRY(psplit_i_state_reduce(a, a->best.value, true, parent));
out:
  return code;
}

psplit_code psplit_i_ties_descend(psplit_i_solver_state *a, bool keep_full, uint32_t most_together,
                                  uint64_t max_steps) {
  sequence order;
  if (!order_clusters(a, &order)) return psplit_i_nomem(a->request->diag);
  const psplit_i_tie_descent_options options = {order.clusters, most_together, keep_full,
                                                max_steps};
  if (psplit_i_descend_ties(&a->instance, &a->automaton, &options, &a->best) != PSPLIT_OK)
    return psplit_i_nomem(a->request->diag);
  psplit_i_result_take(a->result, &a->instance, &a->best);
  return PSPLIT_OK;
}

static psplit_code prove(psplit_i_solver_state *a, bool *out_proved) {
  psplit_i_verdict verdict;
  psplit_code code;
  sequence order;
  PSPLIT_TRY(psplit_i_state_run_bound(a, PSPLIT_I_BOUND_WEIGHT_AXIS));
  if (numbers_matter(a) && !a->automaton.all_used)
    PSPLIT_TRY(psplit_i_automaton_number_freely(&a->automaton));
  PSPLIT_TRY(order_clusters(a, &order) ? PSPLIT_OK : PSPLIT_NOMEM);
  const psplit_i_lexicographic first = {order.position, !numbers_matter(a), a->best.comm};
  PSPLIT_TRY(psplit_i_state_least_comm(a, &first, TIE_STEPS, &verdict));
  *out_proved = verdict == PSPLIT_I_YES;
  if (*out_proved) psplit_i_result_take(a->result, &a->instance, &a->trial);
out:
  return code == PSPLIT_NOMEM ? psplit_i_nomem(a->request->diag) : code;
}

psplit_code psplit_i_ties_break(const psplit_i_solver_request *request, psplit_i_result *result) {
  psplit_i_solver_state a = {.request = request, .result = result};
  psplit_code code = PSPLIT_OK;
  if (request->problem->n_nodes > PSPLIT_I_TIE_NODES ||
      !psplit_i_takes(PSPLIT_I_RULE_TIES,
                      psplit_i_features_of(request->problem, request->options)) ||
      psplit_i_expired(request->budget))
    return code;
  PSPLIT_TRY(open_state(&a));
  PSPLIT_TRY(psplit_i_ties_descend(&a, a.automaton.all_used, MOST_TOGETHER, DESCENT_STEPS));
  if (result->bound >= a.best.value && a.most >= TIE_STEPS && is_within_reach(&a))
    PSPLIT_TRY(prove(&a, &result->ties_proved));
out:
  psplit_i_state_fini(&a);
  return code;
}
