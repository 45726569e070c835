/* A link between two ranks: moves bundles between a queue and the other rank, one at a time, so
 * that they keep their order. A bundle is an envelope, which says what it is and what data comes
 * behind it; little data goes in the envelope where each message costs. Nothing here waits: each
 * step looks whether something can go on.
 *
 * A small message may be taken long before anybody wants it, so one that has gone says nothing of
 * the receiver. The places in the sender's queue are credits: one is spent with each bundle and
 * comes back when the receiving stage has taken that bundle, for as many at once as make a quarter
 * of the places. */
#ifndef PSPLIT_RUNTIME_MPI_LANE_H
#define PSPLIT_RUNTIME_MPI_LANE_H

#include "mpi_carrier.h"
#include "queue.h"

typedef struct psplit_i_lane {
  uint32_t n_tensors;
  bool ended; /* the end of the stream has gone through, and all credits are back */
  enum { PSPLIT_I_LANE_IDLE, PSPLIT_I_LANE_ENVELOPE, PSPLIT_I_LANE_DATA } state;
  psplit_i_carrier carrier;
  psplit_i_queue *queue;
  const psplit_i_ort *ort;
  psplit_i_bundle *bundle; /* on its way */
  int64_t *envelope;       /* a message, of words */
  int64_t **rows;          /* [n_tensors] in it */
  void **packed;           /* [n_tensors] strings as bytes */
  int64_t began_ns;
  bool data_ended;     /* the end of the stream has gone through */
  uint64_t n_moved;    /* bundles that have gone through, or that are going, but the end */
  uint64_t n_credited; /* of these, those whose credit is on its way or back */
} psplit_i_lane;

/* Allocates for lane->n_tensors; what the caller has set, in its carrier too, stays.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lane_init(psplit_i_lane *lane, psplit_diag *diag);
/* Not while messages are under way. */
void psplit_i_lane_fini(psplit_i_lane *lane);

/* Bytes that `depth` bundles of n_tensors tensors, with n_bytes of data each, take in a channel. */
uint64_t psplit_i_lane_bytes(uint32_t n_tensors, uint64_t n_bytes, uint32_t depth);

/* Whether something is under way that moves only while MPI is called. */
bool psplit_i_lane_is_busy(const psplit_i_lane *lane);

/* One look; *out_moved is set where something happened. Errors: NOMEM, INTERNAL (a message makes no
 * sense), those of tensors. */
PSPLIT_MUST_USE psplit_code psplit_i_lane_step(psplit_i_lane *lane, psplit_diag *diag,
                                               bool *out_moved);

#endif
