#include <string.h>

#include "assignment.h"
#include "baselines.h"
#include "budget.h"
#include "contiguous.h"
#include "local_search.h"
#include "placing_state.h"
#include "problem.h"

enum {
  MAX_STEPS = 64,
  MOST_SIMPLE = 4000,   /* clusters of which what is simple is cheap, */
  MOST_PAIRS = 40000000 /* and pairs of them, for each stage */
};
static const double LEAST_SECONDS = 0.001;              /* for orders, where there is no time */
static const uint64_t ORDER_WORK = UINT64_C(200000000); /* pairs of positions times moves */

/* The best contiguous throughput split, by node, from which every other search starts. */
static psplit_code contiguous_start(const psplit_i_solver_request *request,
                                    psplit_i_result *result) {
  psplit_partition_options options = *request->options;
  options.objective = PSPLIT_THROUGHPUT;
  options.noncontiguous = false;
  options.chunks = 1;
  const double limit = request->options->time_limit_s;
  options.time_limit_s = limit < 0 || limit > 4 ? 2 : limit / 2;
  psplit_i_budget budget = psplit_i_budget_inner(request->budget, &options);
  const psplit_i_solver_request inner = {.problem = request->problem,
                                         .options = &options,
                                         .budget = &budget,
                                         .arena = request->arena,
                                         .diag = request->diag};
  const psplit_code code = psplit_i_contiguous(&inner, result);
  psplit_i_spend(request->budget, budget.spent);
  return code;
}

/* The links of the devices, repeated for each chunk. Returns false if out of memory. */
static bool repeat_links(const psplit_i_solver_request *request, uint32_t chunks,
                         psplit_problem *problem) {
  const uint32_t n = problem->n_devices, all = n * chunks;
  uint32_t *link = psplit_i_arena_array(request->arena, all, all * sizeof *link);
  for (size_t i = 0; link && i < all; i++)
    for (size_t j = 0; j < all; j++) link[i * all + j] = problem->device_link[i % n * n + j % n];
  problem->device_link = link;
  return link != NULL;
}

/* The start for chunks: the devices are repeated as stages of their own, with labels 0 .. chunks *
 * K - 1. It may exceed memory then, which the evaluation of the placement detects. */
static psplit_code folded_start(const psplit_i_solver_request *request, uint32_t chunks,
                                uint32_t *stage) {
  psplit_problem problem = *request->problem;
  psplit_partition_options options = *request->options;
  const uint32_t n = problem.n_devices;
  psplit_device *devices = PSPLIT_NEW(request->arena, psplit_device, (size_t)n * chunks);
  psplit_i_result result;
  psplit_diag ignored = {0};
  if (!devices) return PSPLIT_NOMEM;
  for (uint32_t c = 0; c < chunks; c++)
    memcpy(devices + (size_t)c * n, problem.devices, n * sizeof *devices);
  if (problem.n_link_classes && !repeat_links(request, chunks, &problem)) return PSPLIT_NOMEM;
  problem.devices = devices;
  problem.n_devices = n * chunks;
  problem.any_device_order = false;
  problem.pin = NULL;
  options.chunks = 1;
  options.noncontiguous = options.require_nonempty = false;
  options.objective = PSPLIT_THROUGHPUT;
  const double limit = request->options->time_limit_s;
  options.time_limit_s = limit < 0 || limit > 4 ? 1 : limit / 4;
  psplit_i_budget budget = psplit_i_budget_inner(request->budget, &options);
  const psplit_i_solver_request inner = {.problem = &problem,
                                         .options = &options,
                                         .budget = &budget,
                                         .arena = request->arena,
                                         .diag = &ignored};
  psplit_code code = psplit_i_result_init(&result, &inner);
  if (code == PSPLIT_OK) code = psplit_i_contiguous(&inner, &result);
  psplit_i_spend(request->budget, budget.spent);
  if (code == PSPLIT_OK) memcpy(stage, result.stage, problem.n_nodes * sizeof *stage);
  return code;
}

/* Stages for which a contiguous result names no device, because they hold nothing, get the
 * remaining devices of each type. Without a result (NULL) this applies to all stages. */
static void complete_types(const psplit_i_solver_request *request, const psplit_i_result *result,
                           uint32_t *types) {
  const psplit_problem *p = request->problem;
  const uint32_t n_stages = psplit_problem_n_stages(p);
  if (!p->any_device_order || (request->options->noncontiguous && !p->pin)) {
    uint32_t k = 0;
    for (uint32_t d = 0; d < p->n_devices; d++)
      for (uint32_t i = 0; i < p->devices[d].count; i++) types[k++] = d;
    return;
  }
  for (uint32_t s = 0; s < n_stages; s++) types[s] = PSPLIT_NONE;
  for (uint32_t v = 0; result && v < p->n_nodes; v++)
    types[result->stage[v]] = result->device[result->stage[v]];
  for (uint32_t d = 0; d < p->n_devices; d++) {
    uint32_t left = p->devices[d].count;
    for (uint32_t s = 0; s < n_stages; s++) left -= types[s] == d;
    for (uint32_t s = 0; s < n_stages && left > 0; s++)
      if (types[s] == PSPLIT_NONE) types[s] = d, left--;
  }
}

/* A contiguous result may use its devices in another order than the placement lists them. */
static void labels_of(const psplit_i_solver_request *request, const psplit_i_instance *instance,
                      const psplit_i_result *result, const uint32_t *types, uint32_t *label,
                      uint32_t *slot) {
  const uint32_t n_stages = instance->n_stages;
  for (uint32_t s = 0; s < n_stages; s++) slot[s] = s;
  if (request->options->noncontiguous && request->problem->any_device_order &&
      !request->problem->pin) {
    bool *taken = PSPLIT_NEW(request->arena, bool, n_stages);
    bool *in_use = PSPLIT_NEW(request->arena, bool, n_stages);
    if (!taken || !in_use) return;
    for (uint32_t v = 0; v < request->problem->n_nodes; v++) in_use[result->stage[v]] = true;
    for (uint32_t s = 0; s < n_stages; s++) {
      uint32_t k = 0;
      while (in_use[s] && k < n_stages && (taken[k] || types[k] != result->device[s])) k++;
      if (!in_use[s] || k == n_stages) continue;
      taken[k] = true;
      slot[s] = k;
    }
  }
  for (uint32_t v = 0; v < request->problem->n_nodes; v++)
    label[instance->cluster_of_node[v]] = slot[result->stage[v]];
}

/* Solves another problem, or the same with other options, as a start for the request: without
 * bounds, and in a part of its time. */
static psplit_code place_first(psplit_i_placing *p, const psplit_problem *problem,
                               psplit_partition_options options) {
  const psplit_i_solver_request *request = p->request;
  psplit_diag ignored = {0};
  options.time_limit_s = options.time_limit_s < 0 ? 2 : options.time_limit_s * 0.2;
  psplit_i_budget budget = psplit_i_budget_inner(request->budget, &options);
  const psplit_i_solver_request inner = {.problem = problem,
                                         .options = &options,
                                         .budget = &budget,
                                         .arena = request->arena,
                                         .diag = &ignored};
  const psplit_code code = p->place(&inner, false, p->result);
  psplit_i_spend(request->budget, budget.spent);
  return code;
}

/* A split into two chunks per device, as a start for free placement. */
static psplit_code two_chunks(psplit_i_placing *p) {
  psplit_partition_options options = *p->request->options;
  options.noncontiguous = false;
  options.chunks = 2;
  return place_first(p, p->request->problem, options);
}

/* A start without the devices that pay no communication, which attract work that annealing seldom
 * takes away again. UNSUPPORTED if there is no such device, or no other. */
static psplit_code paying_alone(psplit_i_placing *p) {
  const psplit_i_solver_request *request = p->request;
  psplit_problem problem = *request->problem;
  psplit_device *devices = PSPLIT_NEW(request->arena, psplit_device, problem.n_devices);
  if (!devices) return PSPLIT_NOMEM;
  memcpy(devices, problem.devices, problem.n_devices * sizeof *devices);
  for (uint32_t d = 0; d < problem.n_devices; d++)
    if (devices[d].free_comm) devices[d].count = 0;
  problem.devices = devices;
  const uint32_t n_stages = psplit_problem_n_stages(&problem);
  if (n_stages == 0 || n_stages == psplit_problem_n_stages(request->problem) || problem.pin ||
      request->options->require_nonempty)
    return PSPLIT_UNSUPPORTED;
  return place_first(p, &problem, *request->options);
}

/* For latency: everything on one device, so no tensor is sent. */
static void one_device(psplit_i_placing *p, psplit_i_placement *placement, uint32_t *label) {
  const psplit_i_instance *instance = &p->instance;
  for (uint32_t k = 0; k < instance->n_stages; k++) {
    bool again = false;
    for (uint32_t i = 0; i < k; i++) again |= p->types[i] == p->types[k];
    if (again) continue;
    for (uint32_t v = 0; v < instance->n; v++) label[v] = k;
    const int64_t value = psplit_i_placing_judge(placement, p->types, label);
    if (value < p->value) psplit_i_placing_take(p, label, value);
  }
}

/* For latency: a split by construction instead of by solving, which may cut less than one that
 * balances loads. */
static psplit_code simple_starts(psplit_i_placing *p, psplit_i_placement *placement,
                                 uint32_t *label) {
  static const psplit_i_method simple[] = {PSPLIT_I_SOLVER_EVEN, PSPLIT_I_SOLVER_PIPEDREAM,
                                           PSPLIT_I_SOLVER_ISLANDS};
  const psplit_i_solver_request *request = p->request;
  const psplit_i_instance *instance = &p->instance;
  const uint64_t n = instance->n, n_pairs = n * n * instance->n_stages;
  psplit_partition_options options = *request->options;
  options.objective = PSPLIT_THROUGHPUT;
  psplit_diag ignored = {0};
  psplit_i_solver_request inner = *request;
  psplit_i_result result;
  uint32_t *types = PSPLIT_NEW(request->arena, uint32_t, instance->n_stages);
  inner.options = &options;
  inner.diag = &ignored;
  psplit_code code = types ? psplit_i_result_init(&result, &inner) : PSPLIT_NOMEM;
  for (uint32_t i = 0; i < sizeof simple / sizeof *simple && code == PSPLIT_OK; i++) {
    const bool pairs = simple[i] == PSPLIT_I_SOLVER_PIPEDREAM;
    if (n > MOST_SIMPLE || (pairs && n_pairs > MOST_PAIRS)) continue;
    psplit_i_spend_pass(request->budget, request->problem);
    if (pairs) psplit_i_spend(request->budget, n_pairs / 4);
    const psplit_code made = psplit_i_baseline_split(&inner, simple[i], &result);
    if (made == PSPLIT_NOMEM) code = made;
    if (made != PSPLIT_OK) continue;
    complete_types(request, &result, types);
    for (uint32_t v = 0; v < request->problem->n_nodes; v++)
      label[instance->cluster_of_node[v]] = result.stage[v];
    const int64_t value = psplit_i_placing_judge(placement, types, label);
    if (value >= p->value) continue;
    memcpy(p->types, types, instance->n_stages * sizeof *types);
    psplit_i_placing_take(p, label, value);
  }
  return code;
}

/* For latency: searches for a split with the least sum of loads, which is its latency if each stage
 * waits for the previous one. Takes half of the remaining budget, since annealing gets further. */
static psplit_code adding_start(psplit_i_placing *p, psplit_i_placement *placement,
                                uint32_t *label) {
  const psplit_i_instance *instance = &p->instance;
  const uint64_t one_order =
    1 + (uint64_t)instance->n * instance->n / 2 * p->automaton.move_off[p->automaton.n_states];
  if (one_order > ORDER_WORK) return PSPLIT_OK;
  psplit_i_budget half = psplit_i_budget_share(p->request->budget, 2);
  psplit_i_budget_extend(&half, LEAST_SECONDS);
  psplit_i_local_search_options options = {.seed = p->request->options->seed,
                                           .n_threads = p->request->options->n_threads,
                                           .n_rounds = 4,
                                           .budget = &half};
  const uint64_t n_steps = ORDER_WORK / one_order / 8;
  options.n_steps = n_steps < MAX_STEPS ? (uint32_t)n_steps : MAX_STEPS;
  psplit_i_assignment assignment;
  psplit_code code = psplit_i_assignment_init(&assignment, instance, p->request->arena);
  if (code != PSPLIT_OK) return code;
  p->automaton.adds_up = true;
  code = psplit_i_local_search(instance, &p->automaton, &options, &assignment);
  psplit_i_spend(p->request->budget, half.spent);
  p->automaton.adds_up = false;
  if (code != PSPLIT_OK || assignment.value >= PSPLIT_I_INF) return code;
  const int64_t value = psplit_i_placing_judge(placement, assignment.device, assignment.stage);
  if (value < p->value) {
    memcpy(label, assignment.stage, instance->n * sizeof *label);
    memcpy(p->types, assignment.device, instance->n_stages * sizeof *p->types);
    psplit_i_placing_take(p, label, value);
  }
  return PSPLIT_OK;
}

/* For latency: parallel branches. */
static psplit_code branches_apart(psplit_i_placing *p, psplit_i_placement *placement,
                                  uint32_t *label) {
  static psplit_code (*const starts[])(const psplit_i_placing *, uint32_t *, bool *) = {
    psplit_i_branch_start, psplit_i_level_start};
  for (uint32_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    bool found;
    const psplit_code code = starts[i](p, label, &found);
    if (code != PSPLIT_OK) return code;
    const int64_t value = found ? psplit_i_placing_judge(placement, p->types, label) : p->value;
    if (value < p->value) psplit_i_placing_take(p, label, value);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_placing_start(psplit_i_placing *p) {
  const psplit_i_solver_request *request = p->request;
  psplit_i_result *result = p->result;
  const psplit_problem *problem = request->problem;
  const uint32_t chunks = request->options->chunks;
  psplit_i_placement placement;
  psplit_code code;
  uint32_t *label = PSPLIT_NEW(request->arena, uint32_t, p->instance.n);
  uint32_t *slot = PSPLIT_NEW(request->arena, uint32_t, p->instance.n_stages);
  uint32_t *folded = PSPLIT_NEW(request->arena, uint32_t, problem->n_nodes);
  PSPLIT_TRY(label && slot && folded ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(
    psplit_i_placement_init(&placement, &p->instance, chunks, request->options, request->arena));
  code = contiguous_start(request, result);
  p->contiguous_bound = result->bound;
  /* Without one the result has what a start of more stages left there. */
  complete_types(request, code == PSPLIT_OK ? result : NULL, p->types);
  if (code == PSPLIT_INFEASIBLE) { /* a freer placement may still exist */
    *request->diag = (psplit_diag){0};
    code = PSPLIT_OK;
  } else {
    PSPLIT_TRY(code);
    labels_of(request, &p->instance, result, p->types, label, slot);
    psplit_i_placing_take(p, label, psplit_i_placing_judge(&placement, p->types, label));
  }
  if (request->options->objective == PSPLIT_LATENCY) {
    one_device(p, &placement, label);
    PSPLIT_TRY(simple_starts(p, &placement, label));
    PSPLIT_TRY(branches_apart(p, &placement, label));
    PSPLIT_TRY(adding_start(p, &placement, label));
  }
  if (chunks > 1 && folded_start(request, chunks, folded) == PSPLIT_OK) {
    for (uint32_t v = 0; v < problem->n_nodes; v++)
      label[p->instance.cluster_of_node[v]] = folded[v];
    const int64_t value = psplit_i_placing_judge(&placement, p->types, label);
    if (value < p->value) psplit_i_placing_take(p, label, value);
  }
  psplit_code (*const starts[])(psplit_i_placing *) = {two_chunks, paying_alone};
  for (uint32_t i = 0; request->options->noncontiguous && i < 2; i++) {
    if (starts[i](p) != PSPLIT_OK) continue;
    labels_of(request, &p->instance, result, p->types, label, slot);
    const int64_t value = psplit_i_placing_judge(&placement, p->types, label);
    if (value < p->value) psplit_i_placing_take(p, label, value);
  }
out:
  return code;
}
