/* A graph to learn from: the items that the partitioner would show a proposer, a good split of
 * them, and what no split is below. */
#ifndef PSPLIT_POLICY_CASE_H
#define PSPLIT_POLICY_CASE_H

#include <psplit/partition.h>

#include "arena.h"

enum { PSPLIT_I_MOST_CASE_ITEMS = 4096 };

typedef struct psplit_i_case {
  psplit_i_arena arena;
  psplit_items items;
  uint32_t number;      /* of the problem, in the order in which they were added */
  int64_t bound, value; /* of the problem: the best that is known */
  uint32_t *label;      /* [n_items] of that split; NULL where it is not one of the items */
  double
    *backward_share; /* [n_items] of its time, on the first kind of devices; NULL: none has any */
  /* That split's stages that hold something, for schedules. */
  uint32_t n_pieces;
  int64_t *forward_ns, *backward_ns; /* [n_pieces] */
  uint64_t *piece_bytes;             /* [n_pieces] of a sample in flight */
} psplit_i_case;

/* Solves a copy of the problem with as much work as `seconds`. Errors: those of
 * psplit_partition_solve; LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_case_init(psplit_i_case *c, const psplit_problem *problem,
                                               double seconds, const volatile int *cancel,
                                               psplit_diag *diag);
void psplit_i_case_fini(psplit_i_case *c);

#endif
