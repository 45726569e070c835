/* A bound on latency from separators: clusters that all others are before or behind.
 *
 * The stages that hold separators run one after the other. All that lies between two neighbouring
 * separators is in the stage that holds both, or these are in two stages, and what lies between is
 * in those two and in stages of its own: a stage with clusters of two blocks holds the separator
 * between them. The two stages run before all of these and behind them, so that with q stages of
 * its own a block takes at least its work over q (over 1 for none), and its longest path. A program
 * over the separators shares out the devices. Of what stages send nothing counts. O(clusters +
 * edges + separators * devices^2). */
#include "automaton.h"
#include "bounds.h"
#include "budget.h"
#include "separators.h"

/* What lies between two separators, before the first or behind the last. */
typedef struct between {
  int64_t work, path;
} between;

/* Of the clusters from `first` to `last` - 1. end[n]: the longest path to a cluster, in there. */
static between measure(const psplit_i_instance *instance, const int64_t *min_time, uint32_t first,
                       uint32_t last, int64_t *end) {
  between b = {0};
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

/* What a block takes at least with n_own stages besides those of the separators around it. */
static int64_t least_time(const between *b, uint32_t n_own) {
  const int64_t n = n_own > 1 ? n_own : 1, share = b->work / n + (b->work % n != 0);
  return share > b->path ? share : b->path;
}

/* Stages of its own from which on more do not help a block. */
static uint32_t enough(const between *b, uint32_t n_devices) {
  uint32_t n = 1;
  while (n < n_devices && least_time(b, n) > b->path) n++;
  return n;
}

static void relax(int64_t *cell, int64_t value) {
  if (value < *cell) *cell = value;
}

/* after[k]: the least time up to the next separator, with it, in k stages; before[k]: up to this
 * one. `cut`: the two are in different stages for certain, as where one side has no separator. */
static bool pass_block(const between *b, const int64_t *before, uint32_t n_devices, bool cut,
                       psplit_i_budget *budget, int64_t *after) {
  const uint32_t most = enough(b, n_devices);
  if (!psplit_i_spend(budget, 1 + (uint64_t)n_devices * most / 4)) return false;
  for (uint32_t k = 0; k <= n_devices; k++) after[k] = PSPLIT_I_INF;
  for (uint32_t k = 0; k <= n_devices; k++) {
    if (before[k] >= PSPLIT_I_INF) continue;
    if (!cut) relax(&after[k], before[k] + b->work);
    for (uint32_t q = 0; q <= most && k + q + !cut <= n_devices; q++)
      relax(&after[k + q + !cut], before[k] + least_time(b, q));
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
  psplit_code code = PSPLIT_NOMEM;
  uint32_t *sinks = PSPLIT_NEW(&arena, uint32_t, n), *ends = PSPLIT_NEW(&arena, uint32_t, n);
  int64_t *end = PSPLIT_NEW(&arena, int64_t, n);
  int64_t *row = PSPLIT_NEW(&arena, int64_t, 2 * ((size_t)n_devices + 1));
  if (!sinks || !ends || !end || !row) goto out;
  code = PSPLIT_OK;
  if (!psplit_i_spend(budget, 4 * ((uint64_t)n + instance->succ_off[n]))) goto out;
  uint32_t n_separators = psplit_i_separators(instance, sinks, ends);
  if (n_separators && !psplit_i_ends_in_separator(instance, sinks)) n_separators--;
  if (!n_separators) goto out;
  int64_t *now = row, *next = row + n_devices + 1;
  for (uint32_t k = 0; k <= n_devices; k++) now[k] = PSPLIT_I_INF;
  now[1] = 0;
  for (uint32_t s = 0, first = 0; s <= n_separators; s++) {
    const uint32_t last = s < n_separators ? ends[s] - 1 : n;
    const between b = measure(instance, min_time, first, last, end);
    if (!pass_block(&b, now, n_devices, s == 0 || s == n_separators, budget, next)) goto out;
    for (uint32_t k = 0; k <= n_devices && s < n_separators; k++)
      if (next[k] < PSPLIT_I_INF) next[k] += min_time[last];
    int64_t *const swap = now;
    now = next;
    next = swap;
    first = last + 1;
  }
  int64_t least = PSPLIT_I_INF;
  for (uint32_t k = 1; k <= n_devices; k++) relax(&least, now[k]);
  if (least < PSPLIT_I_INF && least > *inout_bound) *inout_bound = least;
out:
  psplit_i_arena_fini(&arena);
  return code;
}
