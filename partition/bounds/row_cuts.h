/* A lower bound on the time of one block of a row (latency_row.h), with the cost of its tensors.
 *
 * A cluster of the block is in the stage of the cluster in front of it, in that of the cluster
 * behind it, or in one of q stages in between. The first two stages execute their part of the block
 * sequentially. The stages in between take at least the mean of their work, and at least their part
 * of any path. A tensor from the first stage is sent by it, and one to the last stage is received
 * by it. The total is minimised by a minimum cut with two vertices per cluster, where infinite arcs
 * keep edges from running backwards. Transfers among the stages in between are counted only in
 * part. */
#ifndef PSPLIT_PARTITION_ROW_CUTS_H
#define PSPLIT_PARTITION_ROW_CUTS_H

#include "automaton.h"
#include "cut_network.h"
#include "latency_row.h"

typedef struct psplit_i_row_cuts {
  const psplit_i_instance *instance;
  const int64_t *min_time;
  psplit_i_budget *whole; /* the caller's budget, to which fini charges the work of the cuts */
  psplit_i_budget budget; /* the part of it that the cuts may spend */
  psplit_i_cut_network network;
  /* [n_nets] minimum over device types; send is NULL if tensors cost nothing */
  int64_t *send, *recv;
  uint32_t *cluster; /* [n] clusters of the block, ascending; filled by the caller */
  uint32_t n_clusters;
  /* Scratch, by cluster: */
  uint32_t *local; /* its index in the block, or NONE */
  bool *on_path;   /* it is on the block's longest path */
  int64_t *length;
  uint32_t *before;
  int64_t *least; /* [n_stages + 1] */
  psplit_i_arena arena;
} psplit_i_row_cuts;

/* The cuts may spend a quarter of what is left of `budget`. Errors: NOMEM. Call fini in any
 * case. */
PSPLIT_MUST_USE psplit_code psplit_i_row_cuts_init(psplit_i_row_cuts *cuts,
                                                   const psplit_i_instance *instance,
                                                   const psplit_i_automaton *automaton,
                                                   psplit_i_budget *budget);
void psplit_i_row_cuts_fini(psplit_i_row_cuts *cuts);

/* Sets io_block->least for the block cuts->cluster[n_clusters], which lies behind cluster `front`
 * and before cluster `behind` (NONE: there is none). The array is valid until the next call. The
 * block is unchanged if tensors cost nothing or the budget ran out. Computes one or more cuts for
 * each number of stages up to psplit_i_row_enough(). Returns false if out of memory. */
bool psplit_i_row_cuts_measure(psplit_i_row_cuts *cuts, uint32_t front, uint32_t behind,
                               psplit_i_row_block *io_block);

#endif
