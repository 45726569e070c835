/* A set of distinct downsets, as bits by cluster, at which splits may be cut. */
#ifndef PSPLIT_PARTITION_DOWNSETS_H
#define PSPLIT_PARTITION_DOWNSETS_H

#include "assignment.h"
#include "bits.h"
#include "budget.h"

typedef struct psplit_i_downsets {
  uint32_t n_clusters, words; /* of one */
  uint32_t n;
  PSPLIT_VEC(uint64_t) bits;  /* [n * words] */
  PSPLIT_VEC(uint32_t) table; /* of numbers + 1, by hash; 0: free */
  PSPLIT_VEC(uint64_t) split; /* scratch */
} psplit_i_downsets;

/* Of the instance's clusters, with none in it. */
void psplit_i_downsets_init(psplit_i_downsets *set, const psplit_i_instance *instance);
void psplit_i_downsets_fini(psplit_i_downsets *set);

/* Downset i as bits, until another one is added. */
static inline const uint64_t *psplit_i_downset(const psplit_i_downsets *set, uint32_t i) {
  return set->bits.items + (size_t)i * set->words;
}

/* Adds one that is not in it yet; false: out of memory. */
bool psplit_i_downsets_add(psplit_i_downsets *set, const uint64_t *bits);
/* The number of one that is in it. */
uint32_t psplit_i_downsets_number(psplit_i_downsets *set, const uint64_t *bits);
/* Drops all but the first n. */
void psplit_i_downsets_forget(psplit_i_downsets *set, uint32_t n);
/* Adds, for each stage of a split but the first, the downset of all that is before it, in the order
 * of stages; false: out of memory. */
bool psplit_i_downsets_add_split(psplit_i_downsets *set, const psplit_i_instance *instance,
                                 const uint32_t *stage);

#endif
