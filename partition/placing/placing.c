/* Latency, interleaved chunks and non-contiguous placement: starts from the best contiguous split,
 * improves it by annealing, solves small problems exactly by branch and bound, and takes lower
 * bounds from minimum cuts and critical paths. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "bounds.h"
#include "branch_and_bound.h"
#include "budget.h"
#include "instance.h"
#include "label_annealing.h"
#include "latency_blocks.h"
#include "latency_calls.h"
#include "multilevel_annealing.h"
#include "placement.h"
#include "placing.h"
#include "placing_state.h"
#include "problem.h"
#include "reductions.h"
#include "result.h"

enum {
  BRUTE_STEPS = 3000000,
  ANNEAL_STEPS = 3000000,   /* of a chain */
  STEPS_PER_CLUSTER = 4000, /* of one descent from coarse to fine */
  MOST_STEPS = 1300000,
  WIDE = 2000,        /* above this, moving one cluster changes next to nothing */
  COARSE_PART = 16,   /* of the budget, for latency from coarse to fine below that */
  MOST_ROUNDS = 1000, /* of annealing */
};

static psplit_code bind(psplit_i_placing *p) {
  psplit_i_automaton_fini(&p->automaton);
  return psplit_i_automaton_init(&p->automaton, &p->instance, &p->loose, p->request->diag);
}

/* The steps of a solver in the table. Each may be NULL. */
typedef struct placement_steps {
  psplit_code (*first)(psplit_i_placing *);   /* makes the start of all others */
  psplit_code (*improve)(psplit_i_placing *); /* requires a placement */
  psplit_code (*last)(psplit_i_placing *);
} placement_steps;

static psplit_i_placement_task task_of(psplit_i_placing *p) {
  return (psplit_i_placement_task){&p->instance, p->request->options->chunks, p->request, p->types};
}

/* Steps of one descent from coarse to fine. */
static uint64_t steps_of(const psplit_i_instance *instance) {
  const uint64_t n_steps = (uint64_t)(instance->n > 20000 ? 20 : STEPS_PER_CLUSTER) * instance->n;
  const uint64_t most = n_steps < MOST_STEPS ? n_steps : MOST_STEPS;
  /* Relays are recounted after every move. */
  return instance->problem->next_hop ? most / (1 + instance->net_off[instance->n_nets] / 16) : most;
}

/* For latency, first from coarse to fine: that moves branches and other groups that single clusters
 * do not follow one by one, and finds in little time what it finds at all. */
static psplit_code anneal_coarse(psplit_i_placing *p) {
  const psplit_i_solver_request *request = p->request;
  psplit_i_budget part = psplit_i_budget_share(request->budget, COARSE_PART);
  psplit_i_solver_request inner = *request;
  inner.budget = &part;
  psplit_i_placement_task task = task_of(p);
  task.request = &inner;
  const psplit_code code = psplit_i_anneal_multilevel(
    &task, p->parent, MOST_ROUNDS, steps_of(&p->instance), p->node_label, &p->value);
  psplit_i_spend(request->budget, part.spent);
  return code;
}

/* Alternates rounds of annealing single clusters, long and hot, with rounds of multilevel
 * annealing: the first mix clusters, and the second move whole aggregates. */
static psplit_code anneal_round(psplit_i_placing *p, uint64_t round) {
  const psplit_i_solver_request *request = p->request;
  const psplit_i_placement_task task = task_of(p);
  const bool latency = request->options->objective == PSPLIT_LATENCY,
             wide = latency && p->instance.n >= WIDE;
  if (wide || round % 2)
    return psplit_i_anneal_multilevel(&task, p->parent, round, steps_of(&p->instance),
                                      p->node_label, &p->value);
  if (latency && round == 0) {
    const psplit_code code = anneal_coarse(p);
    if (code != PSPLIT_OK) return code;
  }
  uint32_t *label = PSPLIT_NEW(request->arena, uint32_t, p->instance.n);
  if (!label) return PSPLIT_NOMEM;
  for (uint32_t v = request->problem->n_nodes; v-- > 0;)
    label[p->instance.cluster_of_node[v]] = p->node_label[v];
  int64_t value = p->value;
  const psplit_code code = psplit_i_anneal_labels(&task, round, ANNEAL_STEPS, label, &value);
  if (code == PSPLIT_OK && value < p->value) psplit_i_placing_take(p, label, value);
  return code;
}

/* Solves on an instance that shrinks as the limit rule is applied with better values. */
static psplit_code anneal(psplit_i_placing *p) {
  const psplit_i_solver_request *request = p->request;
  const double limit = request->options->time_limit_s;
  const uint64_t n_rounds =
    limit < 0 || limit > MOST_ROUNDS ? MOST_ROUNDS : (uint64_t)(limit + 0.99);
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
static psplit_code call_blocks(psplit_i_placing *p, psplit_i_placement *placement,
                               uint32_t *label) {
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
    const int64_t value = psplit_i_placing_judge(placement, split.type, label);
    if (value < p->value) {
      memcpy(p->types, split.type, p->instance.n_stages * sizeof *p->types);
      psplit_i_placing_take(p, label, value);
      psplit_i_result_improve(p->result, value, PSPLIT_I_SOLVER_BLOCKS);
    }
  }
  psplit_i_result_raise(p->result, bound, PSPLIT_I_SOLVER_BLOCKS);
  return PSPLIT_OK;
}

/* Latency: all ways to cut a graph that is blocks in sequence. */
static psplit_code blocks(psplit_i_placing *p) {
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
  const int64_t value = split.value < PSPLIT_I_INF
                          ? psplit_i_placing_judge(&placement, split.device, split.stage)
                          : PSPLIT_I_INF;
  if (value < p->value) {
    memcpy(p->types, split.device, p->instance.n_stages * sizeof *p->types);
    psplit_i_placing_take(p, split.stage, value);
    psplit_i_result_improve(p->result, value, PSPLIT_I_SOLVER_BLOCKS);
  }
  psplit_i_result_raise(p->result, bound, PSPLIT_I_SOLVER_BLOCKS);
  return PSPLIT_OK;
}

static psplit_code brute(psplit_i_placing *p) {
  bool finished;
  if (p->value <= p->result->bound) return PSPLIT_OK;
  uint32_t *label = PSPLIT_NEW(p->request->arena, uint32_t, p->instance.n);
  if (!label) return PSPLIT_NOMEM;
  int64_t value = p->value;
  const psplit_i_placement_task task = task_of(p);
  const psplit_code code = psplit_i_branch_and_bound(&task, BRUTE_STEPS, label, &value, &finished);
  if (code != PSPLIT_OK) return code;
  if (psplit_i_result_improve(p->result, value, PSPLIT_I_SOLVER_BRANCH_AND_BOUND))
    psplit_i_placing_take(p, label, value);
  p->none = finished && value >= PSPLIT_I_INF;
  if (finished && value < PSPLIT_I_INF)
    psplit_i_result_raise(p->result, value, PSPLIT_I_SOLVER_BRANCH_AND_BOUND);
  return PSPLIT_OK;
}

static const placement_steps STEPS[PSPLIT_I_N_METHODS] = {
#define STRIP(...) __VA_ARGS__
#define PSPLIT_I_SOLVER(id, name, may_be_asked, does, stages, placement) \
  [PSPLIT_I_SOLVER_##id] = {STRIP placement},
#include "methods.def"
#undef STRIP
};

static psplit_code ask_bounds(psplit_i_placing *p, psplit_i_bound_time when) {
  const psplit_i_bound_query query = {.request = p->request,
                                      .instance = &p->instance,
                                      .automaton = &p->automaton,
                                      .variant = psplit_i_variant_of(p->request->options),
                                      .value = p->value,
                                      .throughput_bound = p->contiguous_bound};
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS && code == PSPLIT_OK; i++)
    if (psplit_i_bound_is_due(i, &query, when)) code = psplit_i_bound_run(i, &query, p->result);
  return code;
}

static psplit_code say_none(const psplit_i_placing *p) {
  psplit_diag *diag = p->request->diag;
  if (p->none)
    return psplit_i_fail(diag, PSPLIT_INFEASIBLE, "no placement satisfies memory limits and pins");
  return psplit_i_fail_about(
    diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIME_LIMIT),
    "no placement was found that satisfies memory limits and pins (infeasibility was not proved)");
}

static void write_placement(const psplit_i_placing *p, uint32_t n_stages,
                            psplit_i_result *out_result) {
  for (uint32_t v = 0; v < p->request->problem->n_nodes; v++) {
    out_result->stage[v] = p->node_label[v] % n_stages;
    out_result->chunk[v] = p->node_label[v] / n_stages;
  }
  for (uint32_t s = 0; s < n_stages; s++) {
    out_result->device[s] = p->types[s];
    out_result->replicas[s] = 1;
  }
}

static psplit_code place(const psplit_i_solver_request *request, bool with_bounds,
                         psplit_i_result *out_result) {
  const psplit_problem *problem = request->problem;
  const uint32_t n_stages = psplit_problem_n_stages(problem);
  psplit_i_placing p = {.request = request,
                        .place = place,
                        .result = out_result,
                        .loose = *request->options,
                        .value = PSPLIT_I_INF};
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
  /* The proofs of the starts are for other problems. */
  out_result->bound = 0;
  out_result->value = p.value;
  out_result->solver = PSPLIT_I_SOLVER_CONTIGUOUS;
  PSPLIT_TRY(ask_bounds(&p, PSPLIT_I_AT_ONCE));
  PSPLIT_TRY(ask_bounds(&p, PSPLIT_I_WITH_A_SPLIT));
  /* The search takes all that is left of the budget: once before it, and again with its result. */
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
  code = p.value < PSPLIT_I_INF ? PSPLIT_OK : say_none(&p);
  if (code == PSPLIT_OK) write_placement(&p, n_stages, out_result);
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
