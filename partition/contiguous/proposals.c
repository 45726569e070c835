/* A proposer sees the reduced instance or, above MOST_ITEMS, segments of an order of it. Its stages
 * are judged by the checker, so nothing that it says can make a plan wrong; its keys order the
 * items, and any order is divided into a valid plan. */
#include <psplit/proposer.h>
#include <string.h>

#include "check_merged.h"
#include "contraction.h"
#include "min_heap.h"
#include "order_dp.h"
#include "problem.h"
#include "proposals.h"
#include "segments.h"

enum {
  MOST_ITEMS = 4096,
  OPS_PER_ITEM = 2500 /* that one attempt of a network is charged with */
};

typedef struct proposals {
  psplit_i_solver_state *a;
  const psplit_proposer *proposer;
  psplit_i_arena arena;
  psplit_i_instance coarse; /* of segments; n = 0: items are the clusters themselves */
  psplit_i_automaton coarse_automaton;
  const psplit_i_instance *instance; /* what is proposed on */
  const psplit_i_automaton *automaton;
  uint32_t *item; /* [clusters] */
  psplit_items items;
  psplit_i_assignment trial; /* of items */
  psplit_i_order_dp dp;
  uint32_t *key, *order, *indegree, *node_stage, *times_sent, *mark;
  uint64_t *heap;
  int64_t *scratch;
  int64_t value; /* of the best so far: splits that are worse need not be looked for */
} proposals;

static psplit_code make_coarse(proposals *p) {
  const psplit_i_instance *fine = &p->a->instance;
  const uint32_t n = fine->n;
  uint32_t *order = PSPLIT_NEW(&p->arena, uint32_t, n);
  uint32_t *left = PSPLIT_NEW(&p->arena, uint32_t, n);
  uint32_t *stack = PSPLIT_NEW(&p->arena, uint32_t, n);
  int64_t *weight = PSPLIT_NEW(&p->arena, int64_t, n);
  if (!order || !left || !stack || !weight) return PSPLIT_NOMEM;
  int64_t total = 0;
  for (uint32_t i = 0; i < n; i++) {
    weight[i] = p->a->automaton.min_time[i] > 0 ? p->a->automaton.min_time[i] : 1;
    total += weight[i];
  }
  psplit_i_topological_order(fine, PSPLIT_I_FROM_SOURCES, left, stack, order);
  const uint32_t n_segments =
    psplit_i_even_segments(fine, order, weight, total, MOST_ITEMS / 2, p->item);
  psplit_code code = psplit_i_contract(fine, p->item, n_segments, &p->coarse);
  if (code == PSPLIT_OK)
    code = psplit_i_automaton_init(&p->coarse_automaton, &p->coarse, p->a->request->options, NULL);
  p->instance = &p->coarse;
  p->automaton = &p->coarse_automaton;
  return code;
}

static psplit_code describe(proposals *p) {
  const psplit_i_instance *in = p->instance;
  const psplit_i_automaton *m = p->automaton;
  uint64_t *memory = PSPLIT_NEW(&p->arena, uint64_t, in->n_types);
  uint32_t *item_of_node = PSPLIT_NEW(&p->arena, uint32_t, in->problem->n_nodes);
  if (!memory || !item_of_node) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < in->problem->n_nodes; v++)
    item_of_node[v] = p->item[p->a->instance.cluster_of_node[v]];
  for (uint32_t t = 0; t < in->n_types; t++) memory[t] = in->problem->devices[t].memory_bytes;
  p->items = (psplit_items){.n_items = in->n,
                            .n_types = in->n_types,
                            .n_nets = in->n_nets,
                            .n_groups = in->n_groups,
                            .n_stages = in->n_stages,
                            .n_nodes = in->problem->n_nodes,
                            .item_of_node = item_of_node,
                            .time_ns = in->w,
                            .weight_bytes = in->weight_bytes,
                            .activation_bytes = in->act_bytes,
                            .pin = in->pin,
                            .pred_off = in->pred_off,
                            .pred = in->pred,
                            .succ_off = in->succ_off,
                            .succ = in->succ,
                            .net_off = in->net_off,
                            .net_pin = in->net_pin,
                            .send_ns = in->send,
                            .recv_ns = in->recv,
                            .inc_off = in->inc_off,
                            .inc = in->inc,
                            .group_bytes = in->group_bytes,
                            .own_off = in->own_off,
                            .own = in->own,
                            .type_count = m->count,
                            .type_memory = memory,
                            .stage_type = m->any_order ? NULL : m->stage_type,
                            .p2p = in->p2p,
                            .overlap = in->overlap,
                            .stash = in->stash};
  return PSPLIT_OK;
}

static psplit_code init(proposals *p, psplit_i_solver_state *a) {
  psplit_code code;
  *p = (proposals){.a = a,
                   .proposer = a->request->options->proposer,
                   .instance = &a->instance,
                   .automaton = &a->automaton,
                   .value = a->best.value};
  psplit_i_arena_init(&p->arena, 0);
  const uint32_t n_stages = a->instance.n_stages;
  p->item = PSPLIT_NEW(&p->arena, uint32_t, a->instance.n);
  p->node_stage = PSPLIT_NEW(&p->arena, uint32_t, a->request->problem->n_nodes);
  PSPLIT_TRY(p->item && p->node_stage ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t i = 0; i < a->instance.n; i++) p->item[i] = i;
  if (a->instance.n > MOST_ITEMS) PSPLIT_TRY(make_coarse(p));
  PSPLIT_TRY(describe(p));
  const uint32_t n = p->instance->n;
  p->key = PSPLIT_NEW(&p->arena, uint32_t, n);
  p->order = PSPLIT_NEW(&p->arena, uint32_t, n);
  p->indegree = PSPLIT_NEW(&p->arena, uint32_t, n);
  p->heap = PSPLIT_NEW(&p->arena, uint64_t, n);
  p->scratch = PSPLIT_NEW(&p->arena, int64_t, (size_t)n_stages * 5);
  p->times_sent = PSPLIT_NEW(&p->arena, uint32_t, p->instance->n_nets);
  p->mark = PSPLIT_NEW(&p->arena, uint32_t, n_stages);
  PSPLIT_TRY(p->key && p->order && p->indegree && p->heap && p->scratch && p->times_sent && p->mark
               ? PSPLIT_OK
               : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_assignment_init(&p->trial, p->instance, &p->arena));
  PSPLIT_TRY(psplit_i_order_dp_init(&p->dp, p->instance, p->automaton));
  p->dp.grain = 1;
out:
  return code;
}

static void fini(proposals *p) {
  psplit_i_order_dp_fini(&p->dp);
  psplit_i_automaton_fini(&p->coarse_automaton);
  psplit_i_instance_fini(&p->coarse);
  psplit_i_arena_fini(&p->arena);
}

/* The split of the items as one of the clusters; the solver keeps it if it is better. */
static void take(proposals *p, psplit_i_method by) {
  psplit_i_solver_state *a = p->a;
  const uint32_t n_stages = a->instance.n_stages;
  if (p->trial.value >= PSPLIT_I_INF) return;
  for (uint32_t i = 0; i < a->instance.n; i++) a->trial.stage[i] = p->trial.stage[p->item[i]];
  memcpy(a->trial.device, p->trial.device, n_stages * sizeof *a->trial.device);
  memcpy(a->trial.replicas, p->trial.replicas, n_stages * sizeof *a->trial.replicas);
  psplit_i_assignment_evaluate(&a->trial, &a->instance, &a->automaton, a->scratch);
  psplit_i_state_take(a, &a->trial, by);
  if (a->best.value < p->value) p->value = a->best.value;
}

/* Whether the checker, which shares nothing with proposers or solvers, finds the split valid. */
static bool valid(const proposals *p) {
  const psplit_i_solver_request *request = p->a->request;
  psplit_solution *solution;
  psplit_diag ignored = {0};
  for (uint32_t i = 0; i < p->instance->n; i++)
    if (p->trial.stage[i] >= p->instance->n_stages) return false;
  for (uint32_t v = 0; v < request->problem->n_nodes; v++)
    p->node_stage[v] = p->trial.stage[p->items.item_of_node[v]];
  if (psplit_i_check_merged(request, p->node_stage, p->trial.device, p->trial.replicas, &ignored,
                            &solution) != PSPLIT_OK)
    return false;
  psplit_solution_destroy(solution);
  return true;
}

static psplit_code ask_stages(proposals *p, uint32_t attempt) {
  const psplit_i_solver_request *request = p->a->request;
  const uint32_t n_stages = p->instance->n_stages;
  p->trial.value = PSPLIT_I_INF;
  for (uint32_t s = 0; s < n_stages; s++) p->trial.replicas[s] = 1;
  const psplit_code code =
    p->proposer->stages(p->proposer->user, &p->items, request->options->seed, attempt,
                        p->trial.stage, p->trial.device, request->diag);
  if (code != PSPLIT_OK) return code;
  for (uint32_t s = 0; s < n_stages; s++)
    if (p->trial.device[s] >= p->instance->n_types) p->trial.device[s] = PSPLIT_NONE;
  psplit_i_automaton_name_devices(p->automaton, p->trial.replicas, p->trial.device);
  if (!valid(p)) return PSPLIT_OK;
  psplit_i_assignment_evaluate(&p->trial, p->instance, p->automaton, p->scratch);
  return PSPLIT_OK;
}

/* Of the items that may come next, the one with the least key, then id. */
static void order_by_keys(proposals *p) {
  const psplit_i_instance *in = p->instance;
  uint32_t size = 0;
  for (uint32_t i = 0; i < in->n; i++) {
    p->indegree[i] = in->pred_off[i + 1] - in->pred_off[i];
    if (p->indegree[i] == 0) psplit_i_heap_push(p->heap, &size, (uint64_t)p->key[i] << 32 | i);
  }
  for (uint32_t at = 0; size > 0; at++) {
    const uint32_t i = (uint32_t)psplit_i_heap_pop(p->heap, &size);
    p->order[at] = i;
    for (uint32_t k = in->succ_off[i]; k < in->succ_off[i + 1]; k++) {
      const uint32_t j = in->succ[k];
      if (--p->indegree[j] == 0) psplit_i_heap_push(p->heap, &size, (uint64_t)p->key[j] << 32 | j);
    }
  }
}

/* Divides the order by keys; with what the best split so far sends how often, if there is one. */
static psplit_code ask_keys(proposals *p, uint32_t attempt) {
  const psplit_i_solver_request *request = p->a->request;
  const psplit_code code = p->proposer->keys(p->proposer->user, &p->items, request->options->seed,
                                             attempt, p->key, request->diag);
  if (code != PSPLIT_OK) return code;
  order_by_keys(p);
  const bool counts = p->trial.value < PSPLIT_I_INF && p->instance->p2p;
  if (counts) psplit_i_assignment_times_sent(&p->trial, p->instance, p->times_sent, p->mark);
  int64_t limit = p->value;
  /* Without a split, a limit that is not too far away saves most of the work. */
  if (limit >= PSPLIT_I_INF) limit = 2 * p->a->result->bound + 1;
  do {
    if (!psplit_i_order_dp_run(&p->dp, p->order, counts ? p->times_sent : NULL, limit,
                               request->budget, &p->trial))
      return PSPLIT_NOMEM;
    limit = limit < PSPLIT_I_INF / 4 ? 4 * limit : PSPLIT_I_INF;
  } while (p->trial.value >= PSPLIT_I_INF && p->value >= PSPLIT_I_INF && limit < PSPLIT_I_INF &&
           !psplit_i_expired(request->budget));
  return PSPLIT_OK;
}

psplit_code psplit_i_propose(psplit_i_solver_state *a, bool sliced) {
  const psplit_proposer *proposer = a->request->options->proposer;
  proposals p;
  psplit_code code = PSPLIT_OK;
  if (!proposer || a->instance.n == 0) return code;
  PSPLIT_TRY(init(&p, a));
  if (proposer->begin) PSPLIT_TRY(proposer->begin(proposer->user, &p.items, a->request->diag));
  for (uint32_t attempt = 0; attempt < proposer->n_attempts; attempt++) {
    if (attempt > 0 && psplit_i_state_done(a)) break;
    psplit_i_spend(a->request->budget, OPS_PER_ITEM * (uint64_t)p.instance->n);
    PSPLIT_TRY(ask_stages(&p, attempt));
    take(&p, PSPLIT_I_SOLVER_DRLPP);
    if (!sliced) continue;
    PSPLIT_TRY(ask_keys(&p, attempt));
    take(&p, PSPLIT_I_SOLVER_DRLPP_SLICE);
  }
out:
  fini(&p);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(a->request->diag) : code;
}
