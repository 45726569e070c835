/* Ways to cut one block, for latency_blocks.c. */
#ifndef PSPLIT_PARTITION_LATENCY_BLOCKS_INSIDE_H
#define PSPLIT_PARTITION_LATENCY_BLOCKS_INSIDE_H

#include "automaton.h"
#include "budget.h"
#include "vec.h"

enum {
  PSPLIT_I_BLOCK_TYPES = 4,     /* of devices */
  PSPLIT_I_BLOCK_CLUSTERS = 64, /* of one block that is enumerated */
  PSPLIT_I_BLOCK_INSIDE = 3     /* stages inside one that are told apart */
};

/* The part left of the cut goes to the stage of the separator before the block, the right part to
 * that of the one behind, what is between to stages inside. */
typedef struct psplit_i_block_option {
  int64_t cost; /* of all that the block adds: the ends' separators compute for themselves */
  uint64_t left_bytes, right_bytes;       /* 0 where the device has no limit */
  uint64_t least_left, least_right;       /* the same, rounded down */
  uint64_t left;                          /* clusters of the block, as bits */
  uint64_t inside[PSPLIT_I_BLOCK_INSIDE]; /* by stage inside, from the first; 0: no more of them */
} psplit_i_block_option;

typedef PSPLIT_VEC(psplit_i_block_option) psplit_i_block_options;

/* The block of clusters first + 1 .. last - 1; first or last: separators, or outside. */
typedef struct psplit_i_block {
  int64_t first, last;                 /* -1, n: there is none */
  int64_t whole[PSPLIT_I_BLOCK_TYPES]; /* time of all of it; INF: cannot run there */
  uint64_t bytes;                      /* of all of it */
  int64_t path;                        /* longest path of least times */
  bool loose;                          /* not enumerated: options are no more than bounds */
  psplit_i_block_options *list;        /* ascending by cost */
} psplit_i_block;

/* Lists are by type on the left, on the right (n_types: outside), and by what is inside: nothing,
 * stages of so many types in their order, or several of which the cost is no more than a bound. */
static inline uint32_t psplit_i_block_most_inside(uint32_t n_types) {
  return n_types <= 2 ? PSPLIT_I_BLOCK_INSIDE : 1;
}

/* The number of a list's last part: code is the types as digits, the first stage's the highest. */
static inline uint32_t psplit_i_block_inside(uint32_t n_types, uint32_t n_inside, uint32_t code) {
  uint32_t at = 0, power = 1;
  for (uint32_t k = 0; k < n_inside; k++) at += power, power *= n_types;
  return at + code;
}

/* That of several stages inside, of which the cost is no more than a bound. */
static inline uint32_t psplit_i_block_several(uint32_t n_types) {
  return psplit_i_block_inside(n_types, psplit_i_block_most_inside(n_types) + 1, 0);
}

/* The number of a list, from its three parts; and how many lists there are. */
static inline size_t psplit_i_block_list(uint32_t n_types, uint32_t left, uint32_t right,
                                         uint32_t inside) {
  return ((size_t)left * (n_types + 1) + right) * (psplit_i_block_several(n_types) + 1) + inside;
}

static inline size_t psplit_i_block_n_lists(uint32_t n_types) {
  return psplit_i_block_list(n_types, n_types + 1, 0, 0);
}

/* Memory of a cluster: weights and activations. */
static inline uint64_t psplit_i_cluster_bytes(const psplit_i_instance *instance, uint32_t i) {
  return psplit_i_sat_add_u64(instance->weight_bytes[i], instance->act_bytes[i]);
}

/* What all on one side of a block takes at least, by the bytes that its separator's stage holds
 * there: ascending by bytes, descending by cost. */
typedef struct psplit_i_block_rest_point {
  uint64_t bytes;
  int64_t cost;
} psplit_i_block_rest_point;
typedef PSPLIT_VEC(psplit_i_block_rest_point) psplit_i_block_rest;

/* What enumeration writes on, all zero between calls: consumers of a net, by parts of the block;
 * and by list and bytes, rounded, 1 + the option that stays. */
typedef struct psplit_i_block_tables {
  uint32_t *count, *cell;
} psplit_i_block_tables;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_block_tables_init(psplit_i_block_tables *tables,
                                                       const psplit_i_instance *instance);
void psplit_i_block_tables_fini(psplit_i_block_tables *tables);

/* Fills block->list with what, together with the rest, costs less than `limit`; before, behind: by
 * type, NULL where nothing is known or there. Options are exact where that takes exact_ops at most,
 * or else told apart by parts of the memory, rounded down. Where the block is too large, or the
 * budget spent, it is loose: the first list of any two types gets one option, below all. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_block_enumerate(
  const psplit_i_instance *instance, const psplit_i_automaton *automaton,
  const psplit_i_block_tables *tables, uint64_t exact_ops, psplit_i_budget *budget, int64_t limit,
  const psplit_i_block_rest *before, const psplit_i_block_rest *behind, psplit_i_block *block);

#endif
