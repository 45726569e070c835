/* Branch and bound over placements: exact for small problems of every variant. Clusters are placed
 * in topological order. Monotonicity: the value of a partial placement only grows as clusters are
 * added, and relays are added at the end, so a partial placement whose value reaches that of the
 * incumbent is pruned. */
#include <assert.h>
#include <string.h>

#include "branch_and_bound.h"
#include "budget.h"
#include "instance.h"
#include "placement.h"
#include "problem.h"
#include "result.h"

typedef struct brute {
  psplit_i_placement placement;
  const psplit_i_solver_request *request;
  uint64_t n_steps, max_steps, step_ops;
  bool stopped, same_devices;
  int64_t best;
  uint32_t *label, *types; /* the incumbent */
  uint32_t *next;          /* [n] next label to try */
  uint32_t *last;          /* [n] */
} brute;

static bool allowed(const brute *b, uint32_t cluster, uint32_t label) {
  const psplit_i_instance *instance = b->placement.instance;
  const uint32_t k = label % b->placement.n_devices;
  if (instance->pin[cluster] != PSPLIT_NONE && instance->pin[cluster] != k) return false;
  return instance->w[(size_t)b->placement.type[k] * instance->n + cluster] < PSPLIT_I_INF;
}

/* Symmetry: equal devices without an order are interchangeable, so a new one is used only after all
 * earlier ones of its type. */
static uint32_t last_label(const brute *b, uint32_t high) {
  if (b->placement.ordered || !b->same_devices) return high;
  uint32_t k = 0;
  while (k < high && b->placement.n_clusters[k] > 0) k++;
  return k;
}

static void keep(brute *b) {
  psplit_i_placement *placement = &b->placement;
  if (placement->nonempty)
    for (uint32_t k = 0; k < placement->n_devices; k++)
      if (placement->n_counted[k] == 0) return;
  const int64_t value = psplit_i_placement_settle(placement, NULL);
  if (value >= b->best) return;
  b->best = value;
  memcpy(b->label, placement->label, placement->instance->n * sizeof *b->label);
  memcpy(b->types, placement->type, placement->n_devices * sizeof *b->types);
}

static void search(brute *b) {
  psplit_i_placement *placement = &b->placement;
  const uint32_t n = placement->instance->n;
  uint32_t depth = 0;
  bool enter = true;
  for (;;) {
    if (depth == n) {
      keep(b);
      enter = false;
    } else if (enter) {
      uint32_t low, high;
      const bool any = psplit_i_placement_range(placement, depth, &low, &high);
      b->next[depth] = low;
      b->last[depth] = any ? last_label(b, high) : 0;
      if (!any) b->next[depth] = 1;
      enter = false;
    }
    if (depth == n || b->next[depth] > b->last[depth]) {
      if (depth == 0) return;
      psplit_i_placement_remove(placement, --depth);
      continue;
    }
    const uint32_t label = b->next[depth]++;
    if (!allowed(b, depth, label)) continue;
    if (++b->n_steps > b->max_steps || !psplit_i_spend(b->request->budget, b->step_ops)) {
      b->stopped = true;
      while (depth > 0) psplit_i_placement_remove(placement, --depth);
      return;
    }
    psplit_i_placement_add(placement, depth, label);
    if (!psplit_i_placement_fits(placement, label % placement->n_devices) ||
        psplit_i_placement_value(placement) >= b->best) {
      psplit_i_placement_remove(placement, depth);
      continue;
    }
    depth++;
    enter = true;
  }
}

/* Searches with every order of the device types. */
static void search_orders(brute *b, uint32_t at, uint32_t *left) {
  psplit_i_placement *placement = &b->placement;
  if (at == placement->n_devices) {
    if (!b->stopped) search(b);
    return;
  }
  for (uint32_t t = 0; t < placement->instance->n_types && !b->stopped; t++) {
    if (left[t] == 0) continue;
    left[t]--;
    placement->type[at] = t;
    search_orders(b, at + 1, left);
    left[t]++;
  }
}

psplit_code psplit_i_branch_and_bound(const psplit_i_placement_task *task, uint64_t max_steps,
                                      uint32_t *label, int64_t *inout_value, bool *out_done) {
  const psplit_i_instance *instance = task->instance;
  const psplit_i_solver_request *request = task->request;
  *out_done = false;
  brute b = {.request = request,
             .max_steps = max_steps,
             .step_ops = 16 + 4 * (uint64_t)instance->net_off[instance->n_nets] / (instance->n + 1),
             .best = *inout_value,
             .label = label,
             .types = task->types};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code;
  uint32_t *left = PSPLIT_NEW(&arena, uint32_t, instance->n_types);
  b.next = PSPLIT_NEW(&arena, uint32_t, instance->n);
  b.last = PSPLIT_NEW(&arena, uint32_t, instance->n);
  PSPLIT_TRY(left && b.next && b.last ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(
    psplit_i_placement_init(&b.placement, instance, task->chunks, request->options, &arena));
  assert(b.placement.n_devices > 0);
  uint32_t n_types_used = 0;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    left[t] = instance->problem->devices[t].count;
    n_types_used += left[t] > 0;
  }
  const uint32_t features = psplit_i_features_of(instance->problem, request->options);
  b.same_devices = n_types_used == 1 && psplit_i_takes(PSPLIT_I_RULE_CLOSE_RANKS, features);
  /* The order of devices matters if stages are ordered or pinned, or if their stash depends on the
   * position. */
  const bool any_order = instance->problem->any_device_order && n_types_used > 1 &&
                         (b.placement.ordered || instance->has_pins || instance->stash);
  if (any_order && instance->n_stages <= 16)
    search_orders(&b, 0, left);
  else
    search(&b);
  *out_done = !b.stopped && !(any_order && instance->n_stages > 16);
  *inout_value = b.best;
out:
  psplit_i_arena_fini(&arena);
  return code;
}
