/* A bound on latency from separators: clusters that all others are before or behind. They are a row
 * whose blocks hold all other clusters, and a program over it shares out the devices.
 * O(clusters + edges + separators * devices^2). */
#include "automaton.h"
#include "bounds.h"
#include "budget.h"
#include "latency_row.h"
#include "row_cuts.h"
#include "separators.h"

/* Of the clusters from `first` to `last` - 1. end[n]: the longest path to a cluster, in there. */
static psplit_i_row_block measure(const psplit_i_instance *instance, const int64_t *min_time,
                                  uint32_t first, uint32_t last, int64_t *end) {
  psplit_i_row_block b = {0};
  for (uint32_t i = first; i < last; i++) {
    end[i] = 0;
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
      if (instance->pred[k] >= first && end[instance->pred[k]] > end[i])
        end[i] = end[instance->pred[k]];
    end[i] += min_time[i];
    if (end[i] > b.path) b.path = end[i];
    b.work += min_time[i];
  }
  return b;
}

/* Passes a block and the separator behind it: row[k], next[k] as psplit_i_row_cut() has them.
 * False: the budget does not do. */
static bool pass_block(const psplit_i_row_block *b, uint32_t n_devices, bool outside,
                       psplit_i_budget *budget, int64_t *row, int64_t *next) {
  if (!psplit_i_row_cut(b, row, n_devices, outside, budget, next)) return false;
  for (uint32_t k = 0; k <= n_devices; k++) {
    const int64_t held = row[k] < PSPLIT_I_INF && !outside ? row[k] + b->work : PSPLIT_I_INF;
    row[k] = held < next[k] ? held : next[k];
    if (row[k] < PSPLIT_I_INF) row[k] += b->end;
  }
  return true;
}

psplit_code psplit_i_bound_separator_row(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                         int64_t *inout_bound) {
  const psplit_i_instance *instance = query->instance;
  const int64_t *min_time = query->automaton->min_time;
  const uint32_t n = instance->n, n_devices = instance->n_stages;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_row_cuts cuts;
  psplit_code code = psplit_i_row_cuts_init(&cuts, instance, query->automaton, budget);
  if (code != PSPLIT_OK) goto out;
  code = PSPLIT_NOMEM;
  uint32_t *sinks = PSPLIT_NEW(&arena, uint32_t, n), *ends = PSPLIT_NEW(&arena, uint32_t, n);
  int64_t *end = PSPLIT_NEW(&arena, int64_t, n);
  int64_t *row = PSPLIT_NEW(&arena, int64_t, (size_t)n_devices + 1);
  int64_t *next = PSPLIT_NEW(&arena, int64_t, (size_t)n_devices + 1);
  if (!sinks || !ends || !end || !row || !next) goto out;
  code = PSPLIT_OK;
  if (!psplit_i_spend(budget, 4 * ((uint64_t)n + instance->succ_off[n]))) goto out;
  uint32_t n_separators = psplit_i_separators(instance, sinks, ends);
  if (n_separators && !psplit_i_ends_in_separator(instance, sinks)) n_separators--;
  if (!n_separators) goto out;
  for (uint32_t k = 0; k <= n_devices; k++) row[k] = PSPLIT_I_INF;
  row[1] = 0;
  for (uint32_t s = 0, first = 0; s <= n_separators; s++) {
    const uint32_t last = s < n_separators ? ends[s] - 1 : n;
    psplit_i_row_block b = measure(instance, min_time, first, last, end);
    if (s < n_separators) b.end = min_time[last];
    cuts.n_clusters = last - first;
    for (uint32_t i = first; i < last; i++) cuts.cluster[i - first] = i;
    code = PSPLIT_NOMEM;
    if (!psplit_i_row_cuts_measure(&cuts, s ? first - 1 : PSPLIT_NONE,
                                   s < n_separators ? last : PSPLIT_NONE, &b))
      goto out;
    code = PSPLIT_OK;
    if (!pass_block(&b, n_devices, s == 0 || s == n_separators, budget, row, next)) goto out;
    first = last + 1;
  }
  int64_t least = PSPLIT_I_INF;
  for (uint32_t k = 1; k <= n_devices; k++)
    if (row[k] < least) least = row[k];
  if (least < PSPLIT_I_INF && least > *inout_bound) *inout_bound = least;
out:
  psplit_i_row_cuts_fini(&cuts);
  psplit_i_arena_fini(&arena);
  return code;
}
