/* Proves a lower bound from multipliers of the semidefinite program, rounding errors included. */
#ifndef PSPLIT_PARTITION_CUT_PROOF_H
#define PSPLIT_PARTITION_CUT_PROOF_H

#include "cluster_vectors.h"

/* Operations that a proof of n clusters takes. */
uint64_t psplit_i_cut_proof_ops(uint32_t n, uint32_t n_dims);

/* *out_least: a proved lower bound on the cost of all pairs in different parts, for any division of
 * the clusters into parts that weigh at most pairs->most each; 0 if the multipliers prove nothing.
 * Valid for any finite multipliers. n^3 / 6 multiplications, 8 n^2 bytes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cut_proof(const psplit_i_pairs *pairs,
                                               const psplit_i_multipliers *multipliers,
                                               psplit_i_budget *budget, double *out_least);

#endif
