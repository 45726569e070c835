/* Decides whether there is any split within the limits, and if not, says why. */
#include "feasible.h"
#include "budget.h"
#include "exact.h"
#include "instance.h"
#include "problem.h"
#include "result.h"
#include "solver_state.h"

enum { MOST_STAGES = 65535, TRIED_STAGES = 4096 };

/* Even a time limit of 0 looks this long for a split. */
static const double LEAST_SECONDS = 0.25;

/* More bytes than all devices have together? */
static bool overflows_memory(const psplit_i_solver_state *a) {
  const psplit_i_instance *instance = &a->instance;
  uint64_t need = 0, have = 0;
  for (uint32_t i = 0; i < instance->n; i++)
    need += instance->weight_bytes[i] + instance->act_bytes[i];
  for (uint32_t g = 0; g < instance->n_groups; g++) need += instance->group_bytes[g];
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const psplit_device *device = &instance->problem->devices[t];
    if (device->count > 0 && device->memory_bytes == 0) return false;
    have = psplit_i_sat_add_u64(have, psplit_i_sat_mul_u64(device->count, device->memory_bytes));
  }
  return need > have;
}

psplit_code psplit_i_state_find_any(psplit_i_solver_state *a) {
  const int64_t everything = PSPLIT_I_INF / 2;
  if (a->instance.has_memory && overflows_memory(a)) return PSPLIT_INFEASIBLE;
  if (!psplit_i_takes(PSPLIT_I_RULE_WHOLE_LOADS, a->automaton.features)) {
    const psplit_code found = psplit_i_state_brute(a, NULL);
    if (found != PSPLIT_OK || a->best.value < PSPLIT_I_INF) return found;
  }
  /* A short run of the exact program often decides; then a search, then a long run. */
  psplit_code code = PSPLIT_OK;
  psplit_i_verdict verdict = PSPLIT_I_UNKNOWN;
  psplit_i_budget *budget = a->request->budget;
  const psplit_i_budget asked = *budget;
  psplit_i_budget_extend(budget, LEAST_SECONDS);
  PSPLIT_TRY(psplit_i_state_exact(a, everything, PSPLIT_I_FIRST_STEPS, &verdict));
  if (verdict == PSPLIT_I_UNKNOWN && a->best.value >= PSPLIT_I_INF)
    PSPLIT_TRY(
      psplit_i_state_search(a, 4, psplit_i_state_affords(a, PSPLIT_I_SEARCH_WORK, 4, 100), 1));
  if (verdict == PSPLIT_I_UNKNOWN && a->best.value >= PSPLIT_I_INF)
    PSPLIT_TRY(psplit_i_state_exact(a, everything, a->most, &verdict));
  if (a->best.value >= PSPLIT_I_INF)
    code = verdict == PSPLIT_I_NO ? PSPLIT_INFEASIBLE : PSPLIT_UNSUPPORTED;
out:
  budget->end = asked.end;
  budget->most = asked.most;
  return code;
}

/* Whether local search finds a split into the stages of `request`. */
static bool finds_split(const psplit_i_solver_request *request) {
  psplit_i_solver_state a = {.request = request};
  psplit_i_result result;
  a.result = &result;
  const bool found =
    psplit_i_result_init(&result, request) == PSPLIT_OK && psplit_i_state_init(&a) == PSPLIT_OK &&
    a.instance.n <= PSPLIT_I_LARGE &&
    psplit_i_state_search(&a, 2, psplit_i_state_affords(&a, PSPLIT_I_SEARCH_WORK / 20, 2, 20), 1) ==
      PSPLIT_OK &&
    a.best.value < PSPLIT_I_INF;
  psplit_i_state_fini(&a);
  return found;
}

/* Smallest number of devices of the first type for which local search finds a split; 0: none. */
static uint32_t devices_that_do(const psplit_i_solver_request *request) {
  psplit_problem problem = *request->problem;
  problem.next_hop = NULL; /* of other numbers of stages */
  problem.n_link_classes = 0;
  problem.message_ns = NULL;
  psplit_device devices = problem.devices[0];
  psplit_partition_options options = *request->options;
  psplit_diag ignored = {0};
  options.require_nonempty = false;
  uint32_t low = psplit_problem_n_stages(&problem), high = 0;
  problem.devices = &devices;
  problem.n_devices = 1;
  options.time_limit_s = options.time_limit_s < 0 ? -1 : (options.time_limit_s + LEAST_SECONDS) / 4;
  psplit_i_budget budget = psplit_i_budget_of(&options); /* the others found nothing with theirs */
  options.time_limit_s = request->options->time_limit_s;
  const psplit_i_solver_request inner = {.problem = &problem,
                                         .options = &options,
                                         .budget = &budget,
                                         .arena = request->arena,
                                         .diag = &ignored};
  while (low < MOST_STAGES && (high == 0 || high - low > 1)) {
    devices.count =
      high == 0 ? (low * 2 < MOST_STAGES ? low * 2 : MOST_STAGES) : low + (high - low) / 2;
    ignored = (psplit_diag){0};
    if (finds_split(&inner))
      high = devices.count;
    else if (high == 0 && (devices.count >= TRIED_STAGES || psplit_i_expired(&budget)))
      return 0;
    else
      low = devices.count;
  }
  return high;
}

psplit_code psplit_i_state_explain(const psplit_i_solver_state *a, bool counts) {
  const psplit_i_solver_request *request = a->request;
  const psplit_problem *p = request->problem;
  if (!a->instance.has_memory)
    return psplit_i_fail(request->diag, PSPLIT_INFEASIBLE,
                         "no split satisfies the pins and the devices' order");
  uint64_t most = 0;
  for (uint32_t d = 0; d < p->n_devices; d++)
    if (p->devices[d].count && p->devices[d].memory_bytes > most) most = p->devices[d].memory_bytes;
  for (uint32_t i = 0; i < a->instance.n; i++)
    if (a->instance.weight_bytes[i] + a->instance.act_bytes[i] > most) {
      uint32_t v = 0;
      while (a->instance.cluster_of_node[v] != i) v++;
      char name[32];
      return psplit_i_fail(
        request->diag, PSPLIT_INFEASIBLE,
        "memory: node %s and the nodes it must stay with need %llu bytes, the largest "
        "device has %llu; no number of stages helps",
        psplit_i_node_name(p, v, name),
        (unsigned long long)(a->instance.weight_bytes[i] + a->instance.act_bytes[i]),
        (unsigned long long)most);
    }
  const uint32_t enough = counts && !p->pin ? devices_that_do(request) : 0;
  if (enough)
    return psplit_i_fail(request->diag, PSPLIT_INFEASIBLE,
                         "memory: no split into %u stages fits the devices; %u stages would fit%s",
                         psplit_problem_n_stages(p), enough,
                         p->n_devices > 1 ? " on devices of the first type" : "");
  return psplit_i_fail(request->diag, PSPLIT_INFEASIBLE,
                       "memory: no split into %u stages fits the devices",
                       psplit_problem_n_stages(p));
}
