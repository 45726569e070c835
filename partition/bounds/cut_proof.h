/* Proves a lower bound from multipliers of the semidefinite program, rounding errors included. */
#ifndef PSPLIT_PARTITION_CUT_PROOF_H
#define PSPLIT_PARTITION_CUT_PROOF_H

#include "cluster_vectors.h"

/* Operations that a proof of n clusters takes. */
uint64_t psplit_i_cut_proof_ops(uint32_t n, uint32_t n_dims);

/* *out_least: pairs in different parts cost no less together, however clusters are divided into
 * parts that weigh no more than pairs->most each; 0 where the multipliers say nothing. Any finite
 * multipliers may be asked about. n^3 / 6 multiplications, 8 n^2 bytes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cut_proof(const psplit_i_pairs *pairs,
                                               const psplit_i_multipliers *multipliers,
                                               psplit_i_budget *budget, double *out_least);

#endif
