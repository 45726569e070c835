/* Enumerates the ways to cut one block of a problem of calls, for blocks.c. */
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

/* Of a block's clusters; inside: in a call on a device of the type that is counted from there. */
enum {
  PSPLIT_I_CALLS_LEFT,
  PSPLIT_I_CALLS_RIGHT,
  PSPLIT_I_CALLS_ON_CPU,
  PSPLIT_I_CALLS_INSIDE,
  PSPLIT_I_CALLS_PART_BITS = 3
};

enum { PSPLIT_I_CALLS_PLACED = 64 /* clusters of a block that are known one by one */ };

/* Parts of a block's clusters from its first one on, by bits of their numbers; not known: of more
 * clusters than that, or of none of them. */
typedef struct psplit_i_calls_parts {
  uint64_t bit[PSPLIT_I_CALLS_PART_BITS];
  bool known;
} psplit_i_calls_parts;

static inline uint32_t psplit_i_calls_part(const psplit_i_calls_parts *parts, uint32_t i) {
  uint32_t part = 0;
  for (uint32_t k = 0; k < PSPLIT_I_CALLS_PART_BITS; k++)
    part |= (uint32_t)(parts->bit[k] >> i & 1) << k;
  return part;
}

/* The left part of a block goes to the accelerator of the separator before it, the right part to
 * that of the one behind; what is between is inside. */
typedef struct psplit_i_calls_crossing {
  int64_t cost;         /* of all that the block adds; separators compute for themselves */
  uint64_t left, right; /* bytes, rounded down */
  uint8_t calls[PSPLIT_I_CALLS_TYPES]; /* inside, by type, or more */
  /* The same of a way to cut it that is like this, and where that puts its clusters. */
  int64_t own_cost;
  uint64_t own_left, own_right;
  uint8_t ones; /* types, as bits, of which one call is inside at most, at what all of it takes */
  bool told;    /* nothing else is inside */
  psplit_i_calls_parts parts;
} psplit_i_calls_crossing;

typedef PSPLIT_VEC(psplit_i_calls_crossing) psplit_i_calls_crossings;

/* All on one side of a separator, and the separator: `bytes` of its call on that side. */
typedef struct psplit_i_calls_side {
  uint64_t bytes;
  int64_t cost;
} psplit_i_calls_side;

/* Ascending by bytes, descending by cost. */
typedef PSPLIT_VEC(psplit_i_calls_side) psplit_i_calls_sides;

/* The first side of more bytes than these. */
static inline size_t psplit_i_calls_more_than(const psplit_i_calls_sides *sides, uint64_t bytes) {
  size_t low = 0, high = sides->n;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (sides->items[middle].bytes <= bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The least cost of a side of at most so many bytes. */
static inline int64_t psplit_i_calls_least_with(const psplit_i_calls_sides *sides, uint64_t bytes) {
  const size_t at = psplit_i_calls_more_than(sides, bytes);
  return at ? sides->items[at - 1].cost : PSPLIT_I_INF;
}

typedef struct psplit_i_calls_block {
  int64_t path;        /* longest path of least times */
  int64_t first, last; /* its clusters are first + 1 .. last - 1; -1, n: there is no separator */
  int64_t limit;       /* of its cost, and of what is before and behind */
  int64_t price[PSPLIT_I_CALLS_TYPES]; /* that each call inside costs besides, against the limit */
  /* Of the separators, by kind; NULL: nothing is there, or known of it. */
  const psplit_i_calls_sides *before, *behind;
  /* By kind on the left and on the right, ascending by cost: of each way to cut the block that is
   * part of a placement and costs less than the limit, one that costs no more, with no more bytes
   * on either side and no more calls. */
  psplit_i_calls_crossings list[PSPLIT_I_CALLS_TYPES + 2][PSPLIT_I_CALLS_TYPES + 2];
} psplit_i_calls_block;

/* How finely ways are told apart: by so many parts of a memory, and costs that differ by more. */
typedef struct psplit_i_calls_grain {
  uint32_t n_bytes;
  int64_t cost;
} psplit_i_calls_grain;

/* Fills block->list. `again`: the lists are those of a call before, with limits as high at least,
 * and one call inside is told from several, at what all of it takes. Where that would be too many,
 * or the budget is spent, the list stays as it was, or the longest path alone counts. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_cross(const psplit_i_calls_clusters *clusters,
                                                 psplit_i_budget *budget,
                                                 psplit_i_calls_grain grain, bool again,
                                                 psplit_i_calls_block *block);

/* The same as a call `again` for one list, of kinds a and b: one call of some types, as bits, is
 * told from several whatever else is inside. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_tell(const psplit_i_calls_clusters *clusters,
                                                psplit_i_budget *budget, psplit_i_calls_grain grain,
                                                uint32_t a, uint32_t b, uint32_t types,
                                                psplit_i_calls_block *block);

#endif
