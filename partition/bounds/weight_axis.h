/* The weight-axis minimum cut: a bound on contiguous splits, and windows for the exact program. */
#ifndef PSPLIT_PARTITION_WEIGHT_AXIS_H
#define PSPLIT_PARTITION_WEIGHT_AXIS_H

#include "automaton.h"

/* Lower bound along the weight axis, and what it says about every place on the axis. */
typedef struct psplit_wamc {
  int64_t bound;       /* no contiguous split has a smaller bottleneck (if <= limit; see below) */
  uint32_t n_buckets;  /* 0: not computed; then every window is open */
  int64_t *low, *high; /* [n_buckets] omega of the downsets in a bucket; first: empty; last: all */
  /* [n_buckets * n_states] bound on the bottleneck of everything before a downset of the bucket
   * when the devices of the state are used up behind it. */
  int64_t *before;
  uint32_t n_states;
  psplit_arena arena;
} psplit_wamc;

/* Only stages with a load <= limit are considered: the bound is min(true bound, limit + 1).
 * Errors: NOMEM. Needs O(b^2 / 8) bytes for b items, at most 16,384, between items comparable with
 * all others. Above 16,384 items only the bound: n_buckets is 0. Parallel over buckets; integer
 * results, the same for any number of threads. */
PSPLIT_MUST_USE psplit_code psplit_i_wamc(const psplit_core *core, const psplit_machine *machine,
                                          int64_t limit, uint32_t n_threads, psplit_wamc *out_wamc);
void psplit_i_wamc_fini(psplit_wamc *wamc);

/* Bound on the stages before a downset of weight `omega` (neither empty nor all) in `state`. */
int64_t psplit_i_wamc_before(const psplit_wamc *wamc, int64_t omega, uint32_t state);

#endif
