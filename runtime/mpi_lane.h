/* A link between two ranks: moves bundles between a queue and the other rank, one at a time, so
 * that they keep their order. A bundle is one message of sizes, then its data in chunks. Nothing
 * here waits: each step looks whether something can go on. */
#ifndef PSPLIT_RUNTIME_MPI_LANE_H
#define PSPLIT_RUNTIME_MPI_LANE_H

#include <mpi.h>

#include "queue.h"

/* Tags of messages; link l has TAG_LANES + 2 * l for sizes and the next one for data. */
enum { PSPLIT_I_TAG_CLOCK, PSPLIT_I_TAG_PULSE, PSPLIT_I_TAG_LANES };

typedef struct psplit_i_lane {
  uint32_t link, n_tensors;
  int peer;
  bool outward;
  bool ended; /* the end of the stream has gone through */
  enum { PSPLIT_I_LANE_IDLE, PSPLIT_I_LANE_SIZES, PSPLIT_I_LANE_DATA } state;
  psplit_i_queue *queue;
  const psplit_i_ort *ort;
  uint64_t chunk_bytes;
  psplit_i_bundle *bundle; /* on its way */
  int64_t *sizes;          /* the message of sizes */
  void **packed;           /* [n_tensors] strings as bytes */
  MPI_Request *requests;
  int n_requests, n_complete, capacity;
  int64_t began_ns;
} psplit_i_lane;

/* Allocates for lane->n_tensors; what the caller has set stays. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lane_init(psplit_i_lane *lane, psplit_diag *diag);
/* Not while messages are under way. */
void psplit_i_lane_fini(psplit_i_lane *lane);

/* One look; *out_moved is set where something happened. Errors: NOMEM, INTERNAL (a message makes no
 * sense), those of tensors. */
PSPLIT_MUST_USE psplit_code psplit_i_lane_step(psplit_i_lane *lane, psplit_diag *diag,
                                               bool *out_moved);

#endif
