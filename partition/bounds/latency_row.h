/* Latency of a row: clusters each of which needs the one before, and what lies between them.
 *
 * The stages that hold such clusters run one after the other. All that lies between two neighbours
 * is in the stage that holds both, or these are in two stages, and what lies between is in those
 * two and in stages of its own: a stage with clusters of two blocks holds the cluster between them.
 * The two stages run before all of these and behind them, so that with q stages of its own a block
 * takes at least its work over q (over 1 for none), and its longest path. What stages send counts
 * where blocks were cut (row_cuts.h). */
#ifndef PSPLIT_PARTITION_LATENCY_ROW_H
#define PSPLIT_PARTITION_LATENCY_ROW_H

#include "budget.h"

/* What lies between two clusters of a row, before the first or behind the last: what all of it
 * takes, and the longest path through it; and the cluster behind it, 0 for the last. */
typedef struct psplit_i_row_block {
  int64_t work, path, end;
  /* [psplit_i_row_enough() + 1] by stages of its own, what it takes besides (row_cuts.h); NULL: it
   * is not known. */
  const int64_t *least;
} psplit_i_row_block;

/* Stages of its own from which on more do not help a block, by its work and path; 1 at least. */
uint32_t psplit_i_row_enough(const psplit_i_row_block *b, uint32_t n_devices);

/* after[k]: the least time up to the next cluster of the row, without it, where that is in another
 * stage and k stages are used; before[k]: up to this one. [n_devices + 1] each, INF: never.
 * `outside`: one side has no cluster, and no stage of it. O(n_devices^2); false: the budget does
 * not do. */
bool psplit_i_row_cut(const psplit_i_row_block *b, const int64_t *before, uint32_t n_devices,
                      bool outside, psplit_i_budget *budget, int64_t *after);

#endif
