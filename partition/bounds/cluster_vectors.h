/* What cutting a set of clusters into parts of limited weight takes at least, by vectors.
 *
 * Between clusters are pairs, each of which takes its cost where its two clusters are in different
 * parts. No part weighs more than `most`. With a unit vector for each cluster in place of a part
 * (the same vector for clusters of one part, orthogonal ones for others), this is a semidefinite
 * program. Whatever multipliers its solution leaves are proved by a matrix: see cut_proof.c. */
#ifndef PSPLIT_PARTITION_CLUSTER_VECTORS_H
#define PSPLIT_PARTITION_CLUSTER_VECTORS_H

#include "arena.h"
#include "budget.h"

/* Costs and weights are exact in parts of a power of two each: about 1 in the mean. */
typedef struct psplit_i_pairs {
  uint32_t n;           /* clusters */
  const double *weight; /* [n] */
  double most;          /* what a part may weigh */
  const uint32_t *off;  /* [n + 1] */
  const uint32_t *to;   /* [off[n]] each pair in both of its lists */
  const double *cost;   /* [off[n]] */
  const double *alone;  /* [off[n]] what the part of one of both pays by itself; NULL: not known */
  /* Small nets, of three or four clusters: what is paid for them is in their pairs' costs, too. */
  uint32_t n_nets;
  const uint32_t *net; /* [off[n]] a pair's, or NONE; NULL: none has one */
  const double *sides; /* [n_nets] all pairs between any two sides of a net may cost that much */
} psplit_i_pairs;

/* Multipliers: any numbers are valid, and say the more the better they are. */
typedef struct psplit_i_multipliers {
  uint32_t n_dims;
  double *price; /* [n] of clusters */
  double *row;   /* [n] >= 0, of what a cluster's part weighs */
  double *wide;  /* [n x n_dims] of how many parts there are: 0 where a cluster weighs nothing */
  double about;  /* roughly the bound that they prove; 0: there are none */
} psplit_i_multipliers;

/* Dimensions that solutions for n clusters and so many parts need. */
uint32_t psplit_i_vector_dims(uint32_t n, uint32_t n_parts);
/* Operations that a round takes. */
uint64_t psplit_i_vector_ops(const psplit_i_pairs *pairs, uint32_t n_dims);

/* Makes multipliers, in the arena. Ends early, without any, when their bound will not reach
 * `least`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cluster_vectors(const psplit_i_pairs *pairs, uint32_t n_dims,
                                                     uint32_t n_rounds, double least,
                                                     psplit_i_budget *budget, psplit_i_arena *arena,
                                                     psplit_i_multipliers *out);

#endif
