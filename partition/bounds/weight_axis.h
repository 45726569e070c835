/* The weight-axis minimum cut: a bound on contiguous splits, and windows for the exact program. */
#ifndef PSPLIT_PARTITION_WEIGHT_AXIS_H
#define PSPLIT_PARTITION_WEIGHT_AXIS_H

#include "automaton.h"
#include "budget.h"

/* Lower bound along the weight axis, and what it says about every place on the axis. */
typedef struct psplit_i_weight_axis {
  int64_t limit;      /* for which it was made; 0: it was not */
  int64_t bound;      /* no contiguous split has a smaller bottleneck (if <= limit; see below) */
  uint32_t n_buckets; /* 0: not computed; then every window is open */
  int64_t *low,
    *high; /* [n_buckets] min_time of the downsets in a bucket; first: empty; last: all */
  /* [n_buckets * n_states] bound on the bottleneck of everything before a downset of the bucket
   * when the devices of the state are used up behind it. */
  int64_t *before;
  uint32_t n_states;
  psplit_i_arena arena;
} psplit_i_weight_axis;

/* Only stages with a load <= limit are considered: the bound is min(true bound, limit + 1).
 * Errors: NOMEM. Needs O(b^2 / 8) bytes for b clusters, at most 16,384, between clusters comparable
 * with all others. Where there are no windows only the bound: n_buckets is 0. A spent budget leaves
 * the bound weaker, in the end 0 without windows. Parallel over buckets; integer results, the same
 * for any number of threads. */
PSPLIT_MUST_USE psplit_code psplit_i_weight_axis_make(const psplit_i_instance *instance,
                                                      const psplit_i_automaton *automaton,
                                                      int64_t limit, uint32_t n_threads,
                                                      psplit_i_budget *budget,
                                                      psplit_i_weight_axis *out_axis);
/* The bound alone, by fewer buckets whose crossings know what their downsets weigh (Lagrange's
 * multipliers in the cut): slower, and better where much is free. Raises *inout_bound up to limit
 * + 1. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_weight_axis_weighed(const psplit_i_instance *instance,
                                                         const psplit_i_automaton *automaton,
                                                         int64_t limit, uint32_t n_threads,
                                                         psplit_i_budget *budget,
                                                         int64_t *inout_bound);
/* *out: windows are made. In very large graphs only where separators (separators.h) are close: few
 * downsets are possible there, and the exact program may decide. O(n + edges).
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_weight_axis_has_windows(const psplit_i_instance *instance,
                                                             bool *out);
void psplit_i_weight_axis_fini(psplit_i_weight_axis *axis);

/* Bound on the stages before a downset of weight `min_time` (neither empty nor all) in `state`. */
int64_t psplit_i_weight_axis_before(const psplit_i_weight_axis *axis, int64_t min_time,
                                    uint32_t state);

#endif
