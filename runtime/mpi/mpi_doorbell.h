/* Wakes ranks of the same host, and threads of the same rank: MPI by itself can only be polled for
 * whether something has come. Each rank has a doorbell, a word of memory that the ranks of its host
 * share; a rank that has sent it something rings it.
 *
 * A thread takes a ticket, then looks, then waits with the ticket: a doorbell that has been rung in
 * between does not let it wait. Ranks on other hosts cannot ring, so no wait may be long where
 * there are any. */
#ifndef PSPLIT_RUNTIME_MPI_DOORBELL_H
#define PSPLIT_RUNTIME_MPI_DOORBELL_H

#include "base.h"

typedef struct psplit_i_doorbell psplit_i_doorbell;

/* Who waits at a doorbell: a thread with nothing else to do, or one that only stands in where
 * there is none of these. */
typedef enum psplit_i_doorbell_waiter {
  PSPLIT_I_DOORBELL_IDLE = 1,
  PSPLIT_I_DOORBELL_STAND_IN = 2
} psplit_i_doorbell_waiter;

/* By all ranks at once; waits for them. Where the system gives them no common memory, each counts
 * as a host of its own. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_doorbell_create(uint32_t n_ranks, psplit_diag *diag,
                                                     psplit_i_doorbell **out);
/* By all ranks at once, when no one rings or waits any more. NULL is fine. */
void psplit_i_doorbell_destroy(psplit_i_doorbell *doorbell);

/* Whether all ranks are on this host. */
bool psplit_i_doorbell_reaches_all(const psplit_i_doorbell *doorbell);

/* Wakes one thread of another rank, if that is on this host; no stand-in where that can wait. */
void psplit_i_doorbell_ring(psplit_i_doorbell *doorbell, uint32_t rank, bool can_wait);
/* Wakes all such threads of this rank. */
void psplit_i_doorbell_ring_here(psplit_i_doorbell *doorbell, psplit_i_doorbell_waiter who);

uint32_t psplit_i_doorbell_ticket(const psplit_i_doorbell *doorbell);
/* Until the doorbell of this rank is, or was, rung after the ticket was taken; at most so long. */
void psplit_i_doorbell_wait(psplit_i_doorbell *doorbell, uint32_t ticket,
                            psplit_i_doorbell_waiter who, int64_t most_ns);

#endif
