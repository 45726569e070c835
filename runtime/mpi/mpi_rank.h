/* What is the same for all that computes over MPI, stages of a run and devices of a training: a
 * rank computes in threads of its own, which know only queues. Queues that lead to other ranks are
 * moved by whoever uses them (mpi_driver.c, mpi_lane.c). The main thread gives signs of life
 * (mpi_heartbeat.c) and moves what comes while the others compute. Every call is non-blocking and
 * tested in turn, so no order of arrival on different links can make ranks wait for each other (see
 * runtime.h), and silence is noticed.
 *
 * A transport puts a psplit_i_rank first in what it knows of itself. */
#ifndef PSPLIT_RUNTIME_MPI_RANK_H
#define PSPLIT_RUNTIME_MPI_RANK_H

#include "mpi_driver.h"
#include "mpi_heartbeat.h"

typedef struct psplit_i_rank psplit_i_rank;

/* What a transport says of that which computes on its rank. */
typedef struct psplit_i_rank_work {
  /* Whether it has ended, after waiting for it so long at most. */
  bool (*wait)(psplit_i_rank *rank, int64_t most_ns);
  /* The rank has failed: it is told to end, and not waited for. */
  void (*stop)(psplit_i_rank *rank);
  /* Now and then, by the main thread: whether it is stuck, or somebody interrupts. `done`: nothing
   * is left to do here. Errors: those of what is looked at. */
  psplit_code (*check)(psplit_i_rank *rank, bool done, psplit_diag *diag);
  /* All ranks have met for the first time; may be NULL. */
  void (*met)(void);
} psplit_i_rank_work;

/* A link between two ranks, or within one. */
typedef struct psplit_i_rank_link {
  psplit_i_channel_row ends; /* with the bytes that may wait in it */
  uint32_t n_tensors, depth; /* of a bundle; bundles that may wait */
} psplit_i_rank_link;

struct psplit_i_rank {
  psplit_i_host host; /* first: what computes knows only this */
  const psplit_i_rank_work *work;
  uint32_t index, n_ranks;
  pthread_mutex_t mutex;
  pthread_cond_t changed;      /* waits for it are by the monotonic clock */
  uint32_t n_met, n_allowed;   /* meetings that the work has come to, and that have taken place */
  psplit_diag diag;            /* the first failure */
  atomic_bool *failed;         /* set by that; may be NULL */
  psplit_i_rank_link *links;   /* [n_links] */
  psplit_i_queue *queues;      /* [n_links] */
  psplit_i_queue **queue_list; /* [n_links] NULL: this rank has nothing to do with the link */
  psplit_i_lane *lanes;
  uint32_t n_links;
  psplit_i_doorbell *doorbell;
  psplit_i_channels *channels;
  psplit_i_driver driver;
  psplit_i_heartbeat *heartbeat;
};

/* Zeroes all but what is given here. */
void psplit_i_rank_init(psplit_i_rank *rank, const psplit_i_rank_work *work, uint32_t index,
                        uint32_t n_ranks);

/* By all ranks at once: doorbells, and channels for links[n_links], which the rank owns from here
 * on and may be NULL where memory is short. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_rank_meet_others(psplit_i_rank *rank,
                                                      psplit_i_rank_link *links, uint32_t n_links,
                                                      psplit_diag *diag);
/* A queue for each link that this rank has to do with, and a lane, which moves chunks of so many
 * bytes, where it leads to another. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_rank_open_links(psplit_i_rank *rank, const psplit_i_ort *ort,
                                                     uint64_t chunk_bytes, psplit_diag *diag);
/* Signs of life: psplit_i_heartbeat_create for this rank. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_rank_open_heartbeat(psplit_i_rank *rank, double timeout_s,
                                                         psplit_i_live *live, psplit_diag *diag);

/* Serves the lanes until this rank and all others have nothing more to do. Errors: the first
 * failure of what computes, those of the heartbeat and of work->check. */
PSPLIT_MUST_USE psplit_code psplit_i_rank_serve(psplit_i_rank *rank, psplit_diag *diag);
/* While work that was told to stop may still do so, until most_ns after since_ns: others are to
 * hear of the failure from here, not that this rank is silent. */
void psplit_i_rank_stay_heard(psplit_i_rank *rank, int64_t since_ns, int64_t most_ns);

/* When no thread uses them any more. Without `good` what MPI may still use is not freed: after a
 * failure, requests are under way, and the caller ends the process. */
void psplit_i_rank_close(psplit_i_rank *rank, bool good);

#endif
