#include "fill_stages.h"

#include "order_dp.h"
#include "problem.h"
#include "solver_state.h"

/* For dividing the nodes of a split anew, when less is left. */
static const double FILL_SECONDS = 0.1;

bool psplit_i_all_stages_used(const psplit_i_solver_request *request,
                              const psplit_i_result *result) {
  const psplit_problem *problem = request->problem;
  const uint32_t n_stages = psplit_problem_n_stages(problem);
  bool *used = PSPLIT_NEW(request->arena, bool, n_stages);
  uint32_t n = 0;
  for (uint32_t v = 0; used && v < problem->n_nodes; v++)
    if (!problem->node_flags || !(problem->node_flags[v] & PSPLIT_NODE_AUXILIARY))
      used[result->stage[v]] = true;
  for (uint32_t s = 0; used && s < n_stages; s++) n += used[s];
  return n == n_stages;
}

psplit_code psplit_i_fill_stages(const psplit_i_solver_request *strict, int64_t limit, bool take,
                                 psplit_i_result *result, int64_t *out_value) {
  psplit_i_solver_state a = {.request = strict, .result = result};
  psplit_i_order_dp dp = {0};
  psplit_i_budget budget = *strict->budget;
  psplit_code code;
  psplit_i_budget_extend(&budget, FILL_SECONDS);
  *out_value = PSPLIT_I_INF;
  if (!psplit_i_takes(PSPLIT_I_RULE_DIVIDE_AGAIN,
                      psplit_i_features_of(strict->problem, strict->options)))
    return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_state_init(&a));
  const uint32_t n = a.instance.n, n_stages = a.instance.n_stages;
  if (n > PSPLIT_I_LARGE) goto out;
  uint32_t *order = PSPLIT_NEW(&a.arena, uint32_t, n);
  uint32_t *at = PSPLIT_NEW(&a.arena, uint32_t, (size_t)n_stages + 1);
  PSPLIT_TRY(order && at ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t v = 0; v < strict->problem->n_nodes; v++)
    a.trial.stage[a.instance.cluster_of_node[v]] = result->stage[v];
  for (uint32_t i = 0; i < n; i++) at[a.trial.stage[i] + 1]++;
  for (uint32_t s = 0; s < n_stages; s++) at[s + 1] += at[s];
  for (uint32_t i = 0; i < n; i++) order[at[a.trial.stage[i]]++] = i;
  PSPLIT_TRY(psplit_i_order_dp_init(&dp, &a.instance, &a.automaton));
  PSPLIT_TRY(psplit_i_order_dp_run(&dp, order, NULL, limit, &budget, &a.trial) ? PSPLIT_OK
                                                                               : PSPLIT_NOMEM);
  if (a.trial.value > limit) goto out; /* point to point, with all receivers counted */
  *out_value = a.trial.value;
  if (!take) goto out;
  psplit_i_result_take(result, &a.instance, &a.trial);
  result->solver = PSPLIT_I_SOLVER_SEARCH;
out:
  strict->budget->spent = budget.spent;
  psplit_i_order_dp_fini(&dp);
  psplit_i_state_fini(&a);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(strict->diag) : code;
}
