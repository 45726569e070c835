/* Latency, interleaved chunks, non-contiguous placement: from the best contiguous split by
 * annealing, exact by branch and bound where the problem is small, bounded by min cuts and critical
 * paths. */
#include <stdlib.h>
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "bounds.h"
#include "branch_and_bound.h"
#include "budget.h"
#include "contiguous.h"
#include "instance.h"
#include "label_annealing.h"
#include "latency_blocks.h"
#include "latency_calls.h"
#include "local_search.h"
#include "multilevel_annealing.h"
#include "placement.h"
#include "placing.h"
#include "problem.h"
#include "reductions.h"
#include "result.h"

enum {
  BRUTE_STEPS = 3000000,
  MAX_STEPS = 64,
  ANNEAL_STEPS = 3000000,   /* of a chain */
  STEPS_PER_CLUSTER = 4000, /* of one descent from coarse to fine */
  MOST_STEPS = 1300000,
};
static const uint64_t ORDER_WORK = UINT64_C(200000000); /* pairs of positions times moves */

/* The best contiguous throughput split, by node: where every other search starts. */
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

/* The links of the devices, repeated. False: out of memory. */
static bool repeat_links(const psplit_i_solver_request *request, uint32_t chunks,
                         psplit_problem *problem) {
  const uint32_t n = problem->n_devices, all = n * chunks;
  uint32_t *link = psplit_i_arena_array(request->arena, all, all * sizeof *link);
  for (size_t i = 0; link && i < all; i++)
    for (size_t j = 0; j < all; j++) link[i * all + j] = problem->device_link[i % n * n + j % n];
  problem->device_link = link;
  return link != NULL;
}

/* Start for chunks: the devices, repeated, as stages of their own; labels 0 .. chunks * K - 1.
 * Memory may not fit then, and the placement says so. */
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
  options.time_limit_s = 1;
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

/* Value of a full placement, INF when it breaks a rule. Leaves the placement empty. */
static int64_t judge(psplit_i_placement *placement, const uint32_t *types, const uint32_t *label) {
  const psplit_i_instance *instance = placement->instance;
  memcpy(placement->type, types, placement->n_devices * sizeof *types);
  bool ok = true;
  for (uint32_t v = 0; v < instance->n; v++) {
    const uint32_t k = label[v] % placement->n_devices;
    ok &= instance->w[(size_t)types[k] * instance->n + v] < PSPLIT_I_INF;
    ok &= instance->pin[v] == PSPLIT_NONE || instance->pin[v] == k;
  }
  if (!ok) return PSPLIT_I_INF;
  for (uint32_t v = 0; v < instance->n; v++) psplit_i_placement_add(placement, v, label[v]);
  for (uint32_t k = 0; k < placement->n_devices; k++) {
    ok &= psplit_i_placement_fits(placement, k);
    ok &= !placement->nonempty || placement->n_counted[k] > 0;
  }
  const int64_t value = ok ? psplit_i_placement_settle(placement, NULL) : PSPLIT_I_INF;
  for (uint32_t v = 0; v < instance->n; v++) psplit_i_placement_remove(placement, v);
  return value;
}

/* Stages for which a contiguous result names no device, because they hold nothing, get what is left
 * of each type. */
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
  for (uint32_t v = 0; v < p->n_nodes; v++)
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

/* A placement by node, and the instance it is being improved on. */
typedef struct placing {
  const psplit_i_solver_request *request;
  psplit_i_result *result;  /* bound, and who found the placement */
  bool none;                /* branch and bound has finished without any */
  int64_t contiguous_bound; /* on the throughput of contiguous stages */
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_partition_options loose; /* the automaton is only asked for measures */
  uint32_t *node_label, *types, *parent;
  int64_t value;
} placing;

static psplit_code bind(placing *p) {
  psplit_i_automaton_fini(&p->automaton);
  return psplit_i_automaton_init(&p->automaton, &p->instance, &p->loose, p->request->diag);
}

static void to_nodes(placing *p, const uint32_t *label, int64_t value) {
  for (uint32_t v = 0; v < p->request->problem->n_nodes; v++)
    p->node_label[v] = label[p->instance.cluster_of_node[v]];
  p->value = value;
}

/* A solver's steps in the table: each may be NULL. */
typedef struct placement_steps {
  psplit_code (*first)(placing *);   /* where all others start */
  psplit_code (*improve)(placing *); /* with a placement */
  psplit_code (*last)(placing *);
} placement_steps;

static psplit_code place(const psplit_i_solver_request *request, bool with_bounds,
                         psplit_i_result *out_result);

/* Another problem or other options as a start for the request: no bounds, and a part of its
 * time. */
static psplit_code place_first(const psplit_i_solver_request *request,
                               const psplit_problem *problem, psplit_partition_options options,
                               psplit_i_result *result) {
  psplit_diag ignored = {0};
  options.time_limit_s = options.time_limit_s < 0 ? 3 : options.time_limit_s * 0.3;
  psplit_i_budget budget = psplit_i_budget_inner(request->budget, &options);
  const psplit_i_solver_request inner = {.problem = problem,
                                         .options = &options,
                                         .budget = &budget,
                                         .arena = request->arena,
                                         .diag = &ignored};
  const psplit_code code = place(&inner, false, result);
  psplit_i_spend(request->budget, budget.spent);
  return code;
}

/* A split into two chunks per device, as a start for free placement. */
static psplit_code two_chunks(const psplit_i_solver_request *request, psplit_i_result *result) {
  psplit_partition_options options = *request->options;
  options.noncontiguous = false;
  options.chunks = 2;
  return place_first(request, request->problem, options, result);
}

/* A start without the devices that pay no communication: these draw work to them that annealing
 * seldom takes away again. UNSUPPORTED where there is no such device, or no other. */
static psplit_code paying_alone(const psplit_i_solver_request *request, psplit_i_result *result) {
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
  return place_first(request, &problem, *request->options, result);
}

/* For latency: search for a split whose loads add up to the least, which is its latency where each
 * stage waits for the one before. */
static psplit_code adding_start(placing *p, psplit_i_placement *placement, uint32_t *label) {
  const psplit_i_instance *instance = &p->instance;
  const uint64_t one_order =
    1 + (uint64_t)instance->n * instance->n / 2 * p->automaton.move_off[p->automaton.n_states];
  if (one_order > ORDER_WORK) return PSPLIT_OK;
  psplit_i_local_search_options options = {.seed = p->request->options->seed,
                                           .n_threads = p->request->options->n_threads,
                                           .n_rounds = 4,
                                           .budget = p->request->budget};
  const uint64_t n_steps = ORDER_WORK / one_order / 8;
  options.n_steps = n_steps < MAX_STEPS ? (uint32_t)n_steps : MAX_STEPS;
  psplit_i_assignment assignment;
  psplit_code code = psplit_i_assignment_init(&assignment, instance, p->request->arena);
  if (code != PSPLIT_OK) return code;
  p->automaton.adds_up = true;
  code = psplit_i_local_search(instance, &p->automaton, &options, &assignment);
  p->automaton.adds_up = false;
  if (code != PSPLIT_OK || assignment.value >= PSPLIT_I_INF) return code;
  const int64_t value = judge(placement, assignment.device, assignment.stage);
  if (value < p->value) {
    memcpy(label, assignment.stage, instance->n * sizeof *label);
    memcpy(p->types, assignment.device, instance->n_stages * sizeof *p->types);
    to_nodes(p, label, value);
  }
  return PSPLIT_OK;
}

static psplit_code start(placing *p) {
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
  complete_types(request, result, p->types);
  if (code == PSPLIT_INFEASIBLE) { /* a freer placement may still exist */
    *request->diag = (psplit_diag){0};
    code = PSPLIT_OK;
  } else {
    PSPLIT_TRY(code);
    labels_of(request, &p->instance, result, p->types, label, slot);
    to_nodes(p, label, judge(&placement, p->types, label));
  }
  if (request->options->objective == PSPLIT_LATENCY) PSPLIT_TRY(adding_start(p, &placement, label));
  if (chunks > 1 && folded_start(request, chunks, folded) == PSPLIT_OK) {
    for (uint32_t v = 0; v < problem->n_nodes; v++)
      label[p->instance.cluster_of_node[v]] = folded[v];
    const int64_t value = judge(&placement, p->types, label);
    if (value < p->value) to_nodes(p, label, value);
  }
  psplit_code (*const starts[])(const psplit_i_solver_request *, psplit_i_result *) = {
    two_chunks, paying_alone};
  for (uint32_t i = 0; request->options->noncontiguous && i < 2; i++) {
    if (starts[i](request, result) != PSPLIT_OK) continue;
    labels_of(request, &p->instance, result, p->types, label, slot);
    const int64_t value = judge(&placement, p->types, label);
    if (value < p->value) to_nodes(p, label, value);
  }
out:
  return code;
}

/* Steps of one descent from coarse to fine. */
static uint64_t steps_of(const psplit_i_instance *instance) {
  const uint64_t n_steps = (uint64_t)(instance->n > 20000 ? 20 : STEPS_PER_CLUSTER) * instance->n;
  const uint64_t most = n_steps < MOST_STEPS ? n_steps : MOST_STEPS;
  /* Relays are counted anew after every move. */
  return instance->problem->next_hop ? most / (1 + instance->net_off[instance->n_nets] / 16) : most;
}

/* Rounds of annealing single clusters, long and hot, and of multilevel annealing, in turn: the
 * first mixes, the second moves whole aggregates. */
static psplit_code anneal_round(placing *p, uint64_t round) {
  const psplit_i_solver_request *request = p->request;
  const uint32_t chunks = request->options->chunks;
  if (round % 2)
    return psplit_i_anneal_multilevel(&p->instance, chunks, request, p->types, p->parent, round,
                                      steps_of(&p->instance), p->node_label, &p->value);
  uint32_t *label = PSPLIT_NEW(request->arena, uint32_t, p->instance.n);
  if (!label) return PSPLIT_NOMEM;
  for (uint32_t v = request->problem->n_nodes; v-- > 0;)
    label[p->instance.cluster_of_node[v]] = p->node_label[v];
  int64_t value = p->value;
  const psplit_code code = psplit_i_anneal_labels(&p->instance, chunks, request, p->types, round,
                                                  ANNEAL_STEPS, label, &value);
  if (code == PSPLIT_OK && value < p->value) to_nodes(p, label, value);
  return code;
}

/* Solves on an instance that shrinks as the limit rule is applied with better values. */
static psplit_code anneal(placing *p) {
  const psplit_i_solver_request *request = p->request;
  const double limit = request->options->time_limit_s;
  const uint64_t n_rounds = limit < 0 || limit > 1000 ? 1000 : (uint64_t)(limit + 0.99);
  psplit_code code = PSPLIT_OK;
  uint32_t n_idle = 0;
  for (uint64_t round = 0; round < n_rounds && n_idle < 4 && p->value > p->result->bound; round++) {
    const int64_t before = p->value;
    if (psplit_i_expired(request->budget)) break;
    if (p->instance.unordered && !request->options->require_nonempty) {
      PSPLIT_TRY(psplit_i_reduce(&p->instance, &p->automaton, p->value, p->parent, request->budget,
                                 request->diag));
      PSPLIT_TRY(bind(p));
    }
    PSPLIT_TRY(anneal_round(p, round));
    n_idle = p->value < before ? 0 : n_idle + 1;
    psplit_i_result_improve(p->result, p->value, PSPLIT_I_SOLVER_ANNEAL);
  }
out:
  return code;
}

/* Latency: blocks of calls. */
static psplit_code call_blocks(placing *p, psplit_i_placement *placement, uint32_t *label) {
  const psplit_i_solver_request *request = p->request;
  psplit_i_latency_split split = {
    .stage = PSPLIT_NEW(request->arena, uint32_t, request->problem->n_nodes),
    .type = PSPLIT_NEW(request->arena, uint32_t, p->instance.n_stages)};
  const psplit_i_latency_split best = {
    .value = p->value, .stage = p->value < PSPLIT_I_INF ? p->node_label : NULL, .type = p->types};
  int64_t bound = p->result->bound;
  psplit_code code = split.stage && split.type ? PSPLIT_OK : PSPLIT_NOMEM;
  if (code == PSPLIT_OK)
    code = psplit_i_latency_calls(request, &p->automaton, &best, &bound, &split);
  if (code != PSPLIT_OK) return code;
  if (split.value < p->value) {
    for (uint32_t v = 0; v < request->problem->n_nodes; v++)
      label[p->instance.cluster_of_node[v]] = split.stage[v];
    const int64_t value = judge(placement, split.type, label);
    if (value < p->value) {
      memcpy(p->types, split.type, p->instance.n_stages * sizeof *p->types);
      to_nodes(p, label, value);
      psplit_i_result_improve(p->result, value, PSPLIT_I_SOLVER_BLOCKS);
    }
  }
  psplit_i_result_raise(p->result, bound, PSPLIT_I_SOLVER_BLOCKS);
  return PSPLIT_OK;
}

/* Latency: all ways to cut a graph that is blocks in a row. */
static psplit_code blocks(placing *p) {
  const psplit_i_solver_request *request = p->request;
  if (request->options->objective != PSPLIT_LATENCY || p->value <= p->result->bound)
    return PSPLIT_OK;
  psplit_i_placement placement;
  psplit_i_assignment split;
  psplit_code code =
    psplit_i_placement_init(&placement, &p->instance, 1, request->options, request->arena);
  if (code == PSPLIT_OK) code = psplit_i_assignment_init(&split, &p->instance, request->arena);
  if (code == PSPLIT_OK) code = call_blocks(p, &placement, split.stage);
  if (code != PSPLIT_OK || p->value <= p->result->bound) return code;
  psplit_i_budget budget = psplit_i_budget_share(request->budget, 1);
  int64_t bound = p->result->bound;
  code = psplit_i_blocks(&p->instance, &p->automaton, &budget, PSPLIT_I_BLOCKS_EXACT_OPS, p->value,
                         &split, &bound);
  psplit_i_spend(request->budget, budget.spent);
  if (code != PSPLIT_OK) return code;
  const int64_t value =
    split.value < PSPLIT_I_INF ? judge(&placement, split.device, split.stage) : PSPLIT_I_INF;
  if (value < p->value) {
    memcpy(p->types, split.device, p->instance.n_stages * sizeof *p->types);
    to_nodes(p, split.stage, value);
    psplit_i_result_improve(p->result, value, PSPLIT_I_SOLVER_BLOCKS);
  }
  psplit_i_result_raise(p->result, bound, PSPLIT_I_SOLVER_BLOCKS);
  return PSPLIT_OK;
}

static psplit_code brute(placing *p) {
  bool finished;
  if (p->value <= p->result->bound) return PSPLIT_OK;
  uint32_t *label = PSPLIT_NEW(p->request->arena, uint32_t, p->instance.n);
  if (!label) return PSPLIT_NOMEM;
  int64_t value = p->value;
  const psplit_code code =
    psplit_i_branch_and_bound(&p->instance, p->request->options->chunks, p->request, p->types,
                              BRUTE_STEPS, label, &value, &finished);
  if (code != PSPLIT_OK) return code;
  if (psplit_i_result_improve(p->result, value, PSPLIT_I_SOLVER_BRANCH_AND_BOUND))
    to_nodes(p, label, value);
  p->none = finished && value >= PSPLIT_I_INF;
  if (finished && value < PSPLIT_I_INF)
    psplit_i_result_raise(p->result, value, PSPLIT_I_SOLVER_BRANCH_AND_BOUND);
  return PSPLIT_OK;
}

static const placement_steps STEPS[PSPLIT_I_N_METHODS] = {
#define STRIP(...) __VA_ARGS__
#define PSPLIT_I_BOUND(...)
#define PSPLIT_I_SOLVER(id, name, may_be_asked, does, stages, placement) \
  [PSPLIT_I_SOLVER_##id] = {STRIP placement},
#define PSPLIT_I_NAME(...)
#define PSPLIT_I_RULE(...)
#include "methods.def"
#undef PSPLIT_I_BOUND
#undef PSPLIT_I_SOLVER
#undef PSPLIT_I_NAME
#undef PSPLIT_I_RULE
#undef STRIP
};

static psplit_code ask_bounds(placing *p, psplit_i_bound_time when) {
  const psplit_i_bound_query query = {.request = p->request,
                                      .instance = &p->instance,
                                      .automaton = &p->automaton,
                                      .variant = psplit_i_variant_of(p->request->options),
                                      .value = p->value,
                                      .throughput_bound = p->contiguous_bound};
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS && code == PSPLIT_OK; i++)
    if (psplit_i_bound_is_due(i, &query, when)) code = psplit_i_bound_ask(i, &query, p->result);
  return code;
}

static psplit_code place(const psplit_i_solver_request *request, bool with_bounds,
                         psplit_i_result *out_result) {
  const psplit_problem *problem = request->problem;
  const uint32_t n_stages = psplit_problem_n_stages(problem);
  placing p = {
    .request = request, .result = out_result, .loose = *request->options, .value = PSPLIT_I_INF};
  p.loose.require_nonempty = false;
  psplit_code code;
  p.node_label = PSPLIT_NEW(request->arena, uint32_t, problem->n_nodes);
  p.parent = PSPLIT_NEW(request->arena, uint32_t, problem->n_nodes);
  p.types = PSPLIT_NEW(request->arena, uint32_t, n_stages);
  PSPLIT_TRY(p.node_label && p.parent && p.types ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t v = 0; v < problem->n_nodes; v++) p.parent[v] = v;
  PSPLIT_TRY(request->options->noncontiguous
               ? psplit_i_instance_init_unordered(&p.instance, problem, NULL, request->diag)
               : psplit_i_instance_init(&p.instance, problem, NULL, request->diag));
  psplit_i_spend_pass(request->budget, problem);
  PSPLIT_TRY(bind(&p));
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++)
    if (STEPS[i].first) PSPLIT_TRY(STEPS[i].first(&p));
  /* What the starts proved is of other problems. */
  out_result->bound = 0;
  out_result->value = p.value;
  out_result->solver = PSPLIT_I_SOLVER_CONTIGUOUS;
  PSPLIT_TRY(ask_bounds(&p, PSPLIT_I_AT_ONCE));
  PSPLIT_TRY(ask_bounds(&p, PSPLIT_I_WITH_A_SPLIT));
  /* The search takes all that is left: once before it, and again with what it finds. */
  if (with_bounds) PSPLIT_TRY(ask_bounds(&p, PSPLIT_I_AFTER_SEARCH));
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS && p.value < PSPLIT_I_INF; i++)
    if (STEPS[i].improve) PSPLIT_TRY(STEPS[i].improve(&p));
  if (with_bounds && p.value > out_result->bound) PSPLIT_TRY(ask_bounds(&p, PSPLIT_I_AFTER_SEARCH));
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++)
    if (STEPS[i].last) PSPLIT_TRY(STEPS[i].last(&p));
  out_result->unproved = psplit_i_expired(request->budget)
                           ? "the time is spent"
                           : "branch and bound has spent its steps; the exact program is for "
                             "contiguous throughput";
  if (p.value >= PSPLIT_I_INF) {
    code = p.none
             ? psplit_i_fail(request->diag, PSPLIT_INFEASIBLE,
                             "no placement satisfies memory limits and pins")
             : psplit_i_fail_about(request->diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIME_LIMIT),
                                   "no placement was found that satisfies memory limits and pins "
                                   "(that there is none was not proved)");
    goto out;
  }
  for (uint32_t v = 0; v < problem->n_nodes; v++) {
    out_result->stage[v] = p.node_label[v] % n_stages;
    out_result->chunk[v] = p.node_label[v] / n_stages;
  }
  for (uint32_t s = 0; s < n_stages; s++) {
    out_result->device[s] = p.types[s];
    out_result->replicas[s] = 1;
  }
out:
  if (code == PSPLIT_NOMEM) code = psplit_i_nomem(request->diag);
  if (code == PSPLIT_LIMIT && request->diag->code == PSPLIT_OK)
    code = psplit_i_fail(request->diag, code, "too many tensors times devices for this variant");
  psplit_i_automaton_fini(&p.automaton);
  psplit_i_instance_fini(&p.instance);
  return code;
}

psplit_code psplit_i_place(const psplit_i_solver_request *request, psplit_i_result *out_result) {
  return place(request, true, out_result);
}
