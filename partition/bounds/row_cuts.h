/* What a block of a row (latency_row.h) takes at least, with what its tensors take.
 *
 * A cluster of the block is in the stage of the cluster in front of it, in that of the one behind
 * it, or in one of q stages of its own. The first two take its time one after the other; those
 * between them take the mean of what they hold at least, and what they hold of any path. A tensor
 * from the first to others is sent by it, and one to the last received. All of this is a minimum
 * cut with two vertices for a cluster, in which edges never lead backwards. Part of what the
 * stages between send and receive does not count. */
#ifndef PSPLIT_PARTITION_ROW_CUTS_H
#define PSPLIT_PARTITION_ROW_CUTS_H

#include "automaton.h"
#include "cut_network.h"
#include "latency_row.h"

typedef struct psplit_i_row_cuts {
  const psplit_i_instance *instance;
  const int64_t *min_time;
  psplit_i_budget *budget;
  psplit_i_cut_network network;
  int64_t *send, *recv; /* [n_nets] least over types; NULL: tensors take nothing */
  uint32_t *cluster;    /* [n] of the block, ascending; the caller's */
  uint32_t n_clusters;
  /* Scratch, by cluster: */
  uint32_t *local; /* its number in the block, or NONE */
  bool *on_path;   /* of the block's longest path */
  int64_t *length;
  uint32_t *before;
  int64_t *least; /* [n_stages + 1] */
  psplit_i_arena arena;
} psplit_i_row_cuts;

/* Errors: NOMEM. To be freed by fini in any case. */
PSPLIT_MUST_USE psplit_code psplit_i_row_cuts_init(psplit_i_row_cuts *cuts,
                                                   const psplit_i_instance *instance,
                                                   const psplit_i_automaton *automaton,
                                                   psplit_i_budget *budget);
void psplit_i_row_cuts_fini(psplit_i_row_cuts *cuts);

/* Sets io_block->least of the block cuts->cluster[n_clusters] behind cluster `front` and before
 * `behind`, NONE: there is none; it lives until the next call. Where tensors take nothing, or the
 * budget does not do, nothing changes. False: out of memory. A cut of the block for each number of
 * stages that makes a difference. */
bool psplit_i_row_cuts_measure(psplit_i_row_cuts *cuts, uint32_t front, uint32_t behind,
                               psplit_i_row_block *io_block);

#endif
