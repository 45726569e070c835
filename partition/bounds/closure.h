/* The transitive closure of an instance's order: which cluster comes before which. */
#ifndef PSPLIT_PARTITION_CLOSURE_H
#define PSPLIT_PARTITION_CLOSURE_H

#include "budget.h"
#include "instance.h"

/* Which cluster comes before which, as bits. */
typedef struct psplit_i_closure {
  uint32_t n, words;
  uint64_t *before, *behind; /* [n * words] with the cluster itself */
  psplit_i_arena arena;
} psplit_i_closure;

/* O(n * edges / 64). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_closure_make(const psplit_i_instance *instance,
                                                  psplit_i_budget *budget,
                                                  psplit_i_closure *out_closure);
void psplit_i_closure_fini(psplit_i_closure *closure);

#endif
