/* Shared memory of the ranks on one host: each rank provides a segment. */
#ifndef PSPLIT_RUNTIME_MPI_SHARED_H
#define PSPLIT_RUNTIME_MPI_SHARED_H

#include "base.h"

typedef struct psplit_i_shared psplit_i_shared;

/* By all ranks at once; waits for them. n_bytes: of the segment of this rank. Where the system
 * gives the ranks of a host no common memory, each counts as a host of its own. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_shared_create(uint32_t n_ranks, uint64_t n_bytes,
                                                   psplit_diag *diag, psplit_i_shared **out);
/* By all ranks at once, when no one uses it any more. NULL is fine. */
void psplit_i_shared_destroy(psplit_i_shared *shared);

/* The segment of a rank, aligned for anything; NULL: it is on another host, or gives none. */
void *psplit_i_shared_of(const psplit_i_shared *shared, uint32_t rank, uint64_t *out_bytes);
/* Waits for all ranks of this host. */
void psplit_i_shared_meet(const psplit_i_shared *shared);

/* Makes sure of n bytes of this rank's segment, which become 0. The system promises more than it
 * has: who writes where it has none is killed. */
bool psplit_i_shared_reserve(void *at, uint64_t n);

#endif
