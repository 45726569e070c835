/* What splits with copied nodes pay at least for results of other stages, as charges. */
#ifndef PSPLIT_PASSES_COPY_CHARGES_H
#define PSPLIT_PASSES_COPY_CHARGES_H

#include "builder.h"

/* Stages whose links are alike. */
typedef struct psplit_i_copy_kind {
  /* No link from an earlier stage, or to a later one, has less latency or more bandwidth. */
  psplit_device_link in, out;
  const uint8_t *copied; /* [n_nodes] 1: a copy there may be cheaper than receiving the results */
} psplit_i_copy_kind;

typedef struct psplit_i_copy_costs {
  const int64_t *compute_ns; /* [n_nodes] no device takes less */
  uint32_t n_kinds;
  psplit_i_copy_kind *kinds;
  /* [columns of the problem] each a stage; NULL: all are of the one kind */
  uint32_t *kind_of_column;
} psplit_i_copy_costs;

/* Makes the charges in the builder's arena. b->copied tells which nodes may be copied in any stage,
 * and b->charges_messages whether messages are among the charges. O(kinds * tensors). Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_copy_charges_make(psplit_i_builder *b,
                                                       const psplit_i_copy_costs *costs,
                                                       psplit_i_charges *out);

/* The number of results that the node makes. */
static inline uint32_t psplit_i_n_results(const psplit_i_node *node) {
  uint32_t n = 0;
  for (uint32_t o = 0; o < node->n_outputs; o++) n += node->outputs[o] != PSPLIT_NONE;
  return n;
}

#endif
