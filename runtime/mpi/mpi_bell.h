/* Wakes ranks of the same host, and threads of the same rank, where MPI can only be asked again and
 * again whether something has come. Each rank has a bell, a word of memory that the ranks of its
 * host share; who has sent it something rings it.
 *
 * A thread takes a ticket, then looks, then waits with the ticket: a bell that has been rung in
 * between does not let it wait. Ranks on other hosts cannot ring, so no wait may be long where
 * there are any. */
#ifndef PSPLIT_RUNTIME_MPI_BELL_H
#define PSPLIT_RUNTIME_MPI_BELL_H

#include "base.h"

typedef struct psplit_i_bell psplit_i_bell;

/* Who waits at a bell: a thread with nothing else to do, or one that only stands in where there is
 * none of these. */
typedef enum psplit_i_bell_waiter {
  PSPLIT_I_BELL_IDLE = 1,
  PSPLIT_I_BELL_STAND_IN = 2
} psplit_i_bell_waiter;

/* By all ranks at once; waits for them. Where the system gives them no common memory, each counts
 * as a host of its own. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bell_create(uint32_t n_ranks, psplit_diag *diag,
                                                 psplit_i_bell **out);
/* By all ranks at once, when no one rings or waits any more. NULL is fine. */
void psplit_i_bell_destroy(psplit_i_bell *bell);

/* Whether all ranks are on this host. */
bool psplit_i_bell_reaches_all(const psplit_i_bell *bell);

/* Wakes one thread of another rank, if that is on this host; no stand-in where that can wait. */
void psplit_i_bell_ring(psplit_i_bell *bell, uint32_t rank, bool can_wait);
/* Wakes all such threads of this rank. */
void psplit_i_bell_ring_here(psplit_i_bell *bell, psplit_i_bell_waiter who);

uint32_t psplit_i_bell_ticket(const psplit_i_bell *bell);
/* Until the bell of this rank is, or was, rung after the ticket was taken; at most so long. */
void psplit_i_bell_wait(psplit_i_bell *bell, uint32_t ticket, psplit_i_bell_waiter who,
                        int64_t most_ns);

#endif
