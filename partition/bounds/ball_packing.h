/* A lower bound on what it costs to cut clusters into parts of limited weight, from a packing of
 * balls around clusters. */
#ifndef PSPLIT_PARTITION_BALL_PACKING_H
#define PSPLIT_PARTITION_BALL_PACKING_H

#include "arena.h"
#include "budget.h"
#include "cluster_vectors.h"

/* Balls in all: with any T, pairs in different parts of load T at most cost no less than
 * weight - balls T. */
typedef struct psplit_i_packed {
  double weight, balls;
} psplit_i_packed;

/* The packing with the best bound for n_parts parts that the budget allows; an empty one if it
 * turns out that `most`, a load that is proved already, cannot be improved. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pack_balls(const psplit_i_pairs *pairs, uint32_t n_parts,
                                                double most, psplit_i_budget *budget,
                                                psplit_i_arena *arena, psplit_i_packed *out);

#endif
