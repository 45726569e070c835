/* Pareto lists of the ways to cut a block: those that no other way dominates. */
#ifndef PSPLIT_PARTITION_LATENCY_BLOCK_LISTS_H
#define PSPLIT_PARTITION_LATENCY_BLOCK_LISTS_H

#include "latency_blocks_inside.h"

/* The lists of a block while they are filled. */
typedef struct psplit_i_block_lists {
  psplit_i_block *block;
  uint32_t n_types;
  uint64_t memory[PSPLIT_I_BLOCK_TYPES]; /* UINT64_MAX: no limit */
  uint32_t *cell;                        /* see psplit_i_block_tables */
  bool exact;                            /* bytes are not rounded */
  bool failed;                           /* out of memory */
  uint64_t n_ops; /* operations that the budget has not been charged with, of the caller too */
} psplit_i_block_lists;

/* Makes them empty. */
void psplit_i_block_lists_clear(psplit_i_block_lists *lists);

/* Adds an option, with the bytes that it really holds, to the list of these parts, as
 * psplit_i_block_list has them. `exact`: unless one that is there dominates it, O(list). Else only
 * the cheapest stays of those that hold as many parts of the memory. */
void psplit_i_block_lists_add(psplit_i_block_lists *lists, uint32_t left, uint32_t right,
                              uint32_t inside, psplit_i_block_option option);

/* Drops what others dominate, sorts the rest by cost, and leaves lists->cell all zero. */
void psplit_i_block_lists_finish(psplit_i_block_lists *lists);

#endif
