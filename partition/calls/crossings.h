/* Ways to cut one block of a problem of calls, for blocks.c. */
#ifndef PSPLIT_PARTITION_CALLS_CROSSINGS_H
#define PSPLIT_PARTITION_CALLS_CROSSINGS_H

#include "budget.h"
#include "clusters.h"
#include "vec.h"

/* What runs a separator: an accelerator of type 0 .. n_types - 1, a CPU, or nothing, where there is
 * no separator. */
static inline uint32_t psplit_i_calls_cpu(const psplit_i_calls_clusters *x) { return x->n_types; }
static inline uint32_t psplit_i_calls_outside(const psplit_i_calls_clusters *x) {
  return x->n_types + 1;
}
static inline uint32_t psplit_i_calls_kinds(const psplit_i_calls_clusters *x) {
  return x->n_types + 2;
}

/* The left part of a block goes to the accelerator of the separator before it, the right part to
 * that of the one behind; what is between is inside. */
typedef struct psplit_i_calls_crossing {
  int64_t cost;         /* of all that the block adds; separators compute for themselves */
  uint64_t left, right; /* bytes, rounded down */
  uint32_t calls;       /* inside, or more */
} psplit_i_calls_crossing;

typedef PSPLIT_VEC(psplit_i_calls_crossing) psplit_i_calls_crossings;

typedef struct psplit_i_calls_block {
  int64_t path;        /* longest path of least times */
  int64_t first, last; /* its clusters are first + 1 .. last - 1; -1, n: there is no separator */
  int64_t limit[PSPLIT_I_CALLS_TYPES + 2][PSPLIT_I_CALLS_TYPES + 2];
  /* By kind on the left and on the right, ascending by cost: of each way to cut the block that is
   * part of a placement and costs less than the limit, one that costs no more, with no more bytes
   * on either side and no more calls. */
  psplit_i_calls_crossings list[PSPLIT_I_CALLS_TYPES + 2][PSPLIT_I_CALLS_TYPES + 2];
} psplit_i_calls_block;

/* Fills block->list. Bytes are told apart by so many parts of the memory. `again`: the lists are
 * those of a call before, with limits as high at least, and one call inside is told from several,
 * at what all of it takes. Where that would be too many, or the budget is spent, the list stays as
 * it was, or the longest path alone counts. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_cross(const psplit_i_calls_clusters *clusters,
                                                 psplit_i_budget *budget, uint32_t parts,
                                                 bool again, psplit_i_calls_block *block);

#endif
