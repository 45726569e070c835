/* Splits of large graphs: an order is cut into segments, which are solved as clusters. Then those
 * near stage boundaries are cut finer, and so on. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "branch_order.h"
#include "budget.h"
#include "contraction.h"
#include "instance.h"
#include "local_search.h"
#include "multilevel.h"
#include "problem.h"
#include "result.h"
#include "segments.h"

enum {
  N_ORDERS = 3,
  FINE_PARTS = 24,
  BOUND_PARTS = 2, /* one of so many parts is left to the bound that sees branches */
  FEW_SEGMENTS = 1024,
  FINE_STAGES = 64,     /* above that, segments are as many as stages need */
  STAGE_SEGMENTS = 16,  /* for each of those stages */
  MAX_CELLS = 17 << 20, /* segments times states, at most */
  MANY_STAGES = 256,    /* above that a search takes long, and has few chains: they hardly differ */
  FEW_CHAINS = 2,
  SEARCH_STEPS = 4,
  SEARCH_WORK = 50000000 /* pins added to load trackers by one search over segments */
};

typedef struct zoom {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  const psplit_i_solver_request *request;
  psplit_i_arena arena;
  uint32_t *order, *aggregate, *scratch; /* [n] */
  int64_t *weight;                       /* [n] of clusters, at least 1 so that segments end */
  int64_t total;
  psplit_i_assignment *best;
  bool has_branches; /* that differ, between separators */
} zoom;

static uint32_t even_segments(zoom *z, uint32_t n_segments) {
  return psplit_i_even_segments(z->instance, z->order, z->weight, z->total, n_segments,
                                z->aggregate);
}

/* Sorts z->order by the stages of the best split. The sort is stable, so the order stays
 * topological. off[n_stages + 1]: zeroed scratch. */
static void sort_by_stage(zoom *z, uint32_t *off) {
  const uint32_t n = z->instance->n;
  for (uint32_t i = 0; i < n; i++) off[z->best->stage[i] + 1]++;
  for (uint32_t s = 0; s < z->instance->n_stages; s++) off[s + 1] += off[s];
  for (uint32_t k = 0; k < n; k++) z->scratch[off[z->best->stage[z->order[k]]]++] = z->order[k];
  memcpy(z->order, z->scratch, n * sizeof *z->order);
}

/* Cuts the order, sorted by stages of the best split, into segments: of weight reach / FINE_PARTS
 * within `reach` of a boundary, and one for the rest of each stage. Returns 0 if out of memory. */
static uint32_t fine_segments(zoom *z, int64_t reach) {
  const psplit_i_instance *instance = z->instance;
  const uint32_t n = instance->n, n_stages = instance->n_stages;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  uint32_t *off = PSPLIT_NEW(&scratch, uint32_t, (size_t)n_stages + 1);
  int64_t *size = PSPLIT_NEW(&scratch, int64_t, n_stages); /* of each stage */
  if (!off || !size) {
    psplit_i_arena_fini(&scratch);
    return 0;
  }
  sort_by_stage(z, off);
  for (uint32_t i = 0; i < n; i++) size[z->best->stage[i]] += z->weight[i];
  const int64_t part = reach / FINE_PARTS + 1;
  uint32_t segment = 0;
  int64_t inside = 0, passed = 0;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = z->order[k], s = z->best->stage[i];
    const bool new_stage = k > 0 && s != z->best->stage[z->order[k - 1]];
    if (new_stage) passed = 0;
    const bool near_before = passed <= reach && s > 0;
    const bool near_after = size[s] - passed <= reach && s + 1 < n_stages;
    const bool full = (near_before || near_after) && inside + z->weight[i] / 2 >= part;
    /* The middle of a stage is one segment, which begins where the first margin ends. */
    const bool leaves = near_before && passed + z->weight[i] > reach;
    const bool enters =
      !near_before && near_after && size[s] - passed + z->weight[i] > reach && inside > part;
    if (k > 0 && (new_stage || full || leaves || enters || instance->pin[i] != PSPLIT_NONE ||
                  instance->pin[z->order[k - 1]] != PSPLIT_NONE)) {
      segment++;
      inside = 0;
    }
    inside += z->weight[i];
    passed += z->weight[i];
    z->aggregate[i] = segment;
  }
  psplit_i_arena_fini(&scratch);
  return segment + 1;
}

/* Solves the segments in z->aggregate, and takes the split if it is better. `from_best`: starts
 * from the best split. */
static psplit_code solve_segments(zoom *z, uint32_t n_segments, bool from_best, uint64_t salt,
                                  uint32_t n_steps) {
  const psplit_i_instance *instance = z->instance;
  psplit_i_instance coarse;
  psplit_i_automaton automaton;
  psplit_i_arena arena;
  psplit_i_assignment assignment;
  psplit_code code = psplit_i_contract(instance, z->aggregate, n_segments, &coarse);
  if (code != PSPLIT_OK) return code;
  psplit_i_arena_init(&arena, 0);
  memset(&automaton, 0, sizeof automaton);
  int64_t *scratch = PSPLIT_NEW(&arena, int64_t, (size_t)instance->n_stages * 5);
  PSPLIT_TRY(scratch ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_automaton_init(&automaton, &coarse, z->request->options, NULL));
  PSPLIT_TRY(psplit_i_assignment_init(&assignment, &coarse, &arena));
  if (from_best) {
    for (uint32_t i = 0; i < instance->n; i++)
      assignment.stage[z->aggregate[i]] = z->best->stage[i];
    memcpy(assignment.device, z->best->device, instance->n_stages * sizeof *assignment.device);
    memcpy(assignment.replicas, z->best->replicas,
           instance->n_stages * sizeof *assignment.replicas);
    psplit_i_assignment_evaluate(&assignment, &coarse, &automaton, scratch);
  }
  const uint64_t one =
    ((uint64_t)coarse.net_off[coarse.n_nets] + coarse.n) * (coarse.n / instance->n_stages + 1);
  while (n_steps > 1 && one * n_steps * 8 > SEARCH_WORK) n_steps--;
  psplit_i_spend(z->request->budget,
                 8 * ((uint64_t)instance->n + instance->net_off[instance->n_nets]));
  const psplit_i_local_search_options options = {
    .seed = z->request->options->seed + salt,
    .n_threads = z->request->options->n_threads,
    .n_rounds = 1,
    .n_steps = n_steps,
    .n_chains = instance->n_stages > MANY_STAGES ? FEW_CHAINS : 0,
    .budget = z->request->budget, /* the first order is sliced in any case */
  };
  PSPLIT_TRY(psplit_i_local_search(&coarse, &automaton, &options, &assignment));
  if (assignment.value >= PSPLIT_I_INF || assignment.value > z->best->value) goto out;
  if (assignment.value == z->best->value && assignment.comm >= z->best->comm) goto out;
  for (uint32_t i = 0; i < instance->n; i++) z->best->stage[i] = assignment.stage[z->aggregate[i]];
  memcpy(z->best->device, assignment.device, instance->n_stages * sizeof *assignment.device);
  memcpy(z->best->replicas, assignment.replicas, instance->n_stages * sizeof *assignment.replicas);
  z->best->value = assignment.value;
  z->best->comm = assignment.comm;
out:
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&coarse);
  psplit_i_arena_fini(&arena);
  return code;
}

/* The order of a given kind. Depth first from the sources, the branches between separators are
 * sorted if they differ. */
static psplit_code make_order(zoom *z, uint32_t kind) {
  bool any = false;
  psplit_code code = PSPLIT_OK;
  if (kind == PSPLIT_I_FROM_SOURCES)
    code = psplit_i_branch_order(z->instance, z->automaton, 0, z->order, &any);
  z->has_branches |= any;
  if (!any) psplit_i_topological_order(z->instance, kind, z->scratch, z->aggregate, z->order);
  return code;
}

psplit_code psplit_i_multilevel(const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton,
                                const psplit_i_solver_request *request,
                                psplit_i_assignment *out_assignment) {
  zoom z = {
    .instance = instance, .automaton = automaton, .request = request, .best = out_assignment};
  psplit_i_arena_init(&z.arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  const uint32_t n = instance->n;
  z.order = PSPLIT_NEW(&z.arena, uint32_t, n);
  z.aggregate = PSPLIT_NEW(&z.arena, uint32_t, n);
  z.scratch = PSPLIT_NEW(&z.arena, uint32_t, n);
  z.weight = PSPLIT_NEW(&z.arena, int64_t, n);
  uint32_t *keep = PSPLIT_NEW(&z.arena, uint32_t, n);
  if (!z.order || !z.aggregate || !z.scratch || !z.weight || !keep) goto out;
  for (uint32_t i = 0; i < n; i++) {
    z.weight[i] = automaton->min_time[i] > 0 ? automaton->min_time[i] : 1;
    z.total += z.weight[i];
  }
  out_assignment->value = out_assignment->comm = PSPLIT_I_INF;
  uint32_t n_segments =
    instance->n_stages > FINE_STAGES ? instance->n_stages * STAGE_SEGMENTS : FEW_SEGMENTS;
  while (n_segments > FEW_SEGMENTS && (uint64_t)n_segments * automaton->n_states > MAX_CELLS)
    n_segments /= 2;
  if (n_segments < instance->n_stages) n_segments = instance->n_stages;
  if (n_segments > n) n_segments = n;
  for (uint32_t kind = 0; kind < N_ORDERS; kind++) {
    if (out_assignment->value < PSPLIT_I_INF && psplit_i_expired(request->budget)) break;
    const int64_t before = out_assignment->value;
    PSPLIT_TRY(make_order(&z, kind));
    PSPLIT_TRY(solve_segments(&z, even_segments(&z, n_segments), false, kind, 1));
    if (out_assignment->value < before) memcpy(keep, z.order, n * sizeof *keep);
  }
  if (out_assignment->value >= PSPLIT_I_INF) { /* memory may need finer pieces */
    psplit_i_topological_order(instance, 0, z.scratch, z.aggregate, z.order);
    PSPLIT_TRY(
      solve_segments(&z, even_segments(&z, n_segments * 4 < n ? n_segments * 4 : n), false, 9, 4));
    memcpy(keep, z.order, n * sizeof *keep);
  }
  if (out_assignment->value >= PSPLIT_I_INF) goto out;
  memcpy(z.order, keep, n * sizeof *keep);
  const psplit_i_budget own = *request->budget;
  if (z.has_branches) psplit_i_budget_hold_back(request->budget, BOUND_PARTS);
  for (int64_t reach = z.total / n_segments * 3; reach > 0; reach = reach * 3 / FINE_PARTS) {
    if (psplit_i_expired(request->budget)) break;
    const uint32_t n_fine = fine_segments(&z, reach);
    if (n_fine == 0) {
      code = PSPLIT_NOMEM;
      goto out;
    }
    PSPLIT_TRY(solve_segments(&z, n_fine, true, 100 + (uint64_t)reach, SEARCH_STEPS));
    if (n_fine == n || reach / FINE_PARTS * n < z.total / 4) break;
  }
  request->budget->most = own.most;
  request->budget->end = own.end;
out:
  psplit_i_arena_fini(&z.arena);
  return code;
}
