/* Who calls MPI: any thread of a rank, one at a time.
 *
 * A thread that has given or taken a bundle, or waits for one, moves what can be moved itself: no
 * other has to be woken for it, and none takes the core from a stage that computes. The main thread
 * stands in for what comes while all others compute. */
#ifndef PSPLIT_RUNTIME_MPI_DRIVER_H
#define PSPLIT_RUNTIME_MPI_DRIVER_H

#include "mpi_doorbell.h"
#include "mpi_lane.h"
#include "stage.h"

typedef struct psplit_i_driver {
  psplit_i_mover mover;     /* first: queues know only this */
  pthread_mutex_t turn;     /* whoever holds it may call MPI */
  atomic_bool asked;        /* somebody wants a look that did not get the turn */
  atomic_bool busy;         /* data is under way, which moves only while MPI is called */
  _Atomic int64_t moved_ns; /* when something moved last */
  psplit_i_lane *lanes;
  uint32_t n_lanes;
  psplit_i_host *host; /* is told of failures */
  psplit_i_doorbell *doorbell;
} psplit_i_driver;

void psplit_i_driver_init(psplit_i_driver *driver, psplit_i_host *host, psplit_i_doorbell *doorbell,
                          psplit_i_lane *lanes);
void psplit_i_driver_fini(psplit_i_driver *driver); /* when no thread waits in a queue any more */

/* Around calls of MPI by the main thread, with a look at all lanes; `leave` looks again where
 * others asked for it meanwhile. */
void psplit_i_driver_enter(psplit_i_driver *driver);
void psplit_i_driver_leave(psplit_i_driver *driver);
/* The main thread sleeps, with a ticket from before it entered; not for long with `hurry`. */
void psplit_i_driver_stand_by(psplit_i_driver *driver, uint32_t ticket, bool hurry);

#endif
