/* Latency of a row: clusters each of which depends on the one before, and the blocks between them.
 *
 * The stages that hold the clusters of the row run one after the other. If one stage holds two
 * neighbouring clusters, it also holds the whole block between them. Otherwise the block is divided
 * among the stages of the two clusters and stages of its own, since a stage with nodes of two
 * blocks also holds the cluster between them. The two stages run before and after the stages of the
 * block, so with q stages of its own a block takes at least its work over q (over 1 if there are
 * none), and its longest path. Communication is counted where blocks were cut (row_cuts.h). */
#ifndef PSPLIT_PARTITION_LATENCY_ROW_H
#define PSPLIT_PARTITION_LATENCY_ROW_H

#include "budget.h"

/* The block between two clusters of a row, before the first, or behind the last: its work, its
 * longest path, and the time of the cluster behind it, which is 0 for the last block. */
typedef struct psplit_i_row_block {
  int64_t work, path, end;
  /* [psplit_i_row_enough() + 1] by number of stages of its own: the least time with tensors
   * (row_cuts.h), or NULL if it is not known. */
  const int64_t *least;
} psplit_i_row_block;

/* The number of own stages above which more do not help a block, by its work and path. At least
 * 1. */
uint32_t psplit_i_row_enough(const psplit_i_row_block *b, uint32_t n_devices);

/* after[k]: the least time up to the next cluster of the row, without it, if it is in another stage
 * and k stages are used. before[k]: the same up to this one. [n_devices + 1] each; INF: infeasible.
 * `outside`: the block lies outside of the row, so one side has no cluster and no stage.
 * O(n_devices^2). Returns false if the budget ran out. */
bool psplit_i_row_cut(const psplit_i_row_block *b, const int64_t *before, uint32_t n_devices,
                      bool outside, psplit_i_budget *budget, int64_t *after);

#endif
