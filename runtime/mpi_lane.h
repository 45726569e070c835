/* A link between two ranks: moves bundles between a queue and the other rank, one at a time, so
 * that they keep their order. A bundle is one message, the envelope, which says what it is and
 * holds the data of all its tensors; where that is much, it comes behind, in chunks. Nothing here
 * waits: each step looks whether something can go on.
 *
 * MPI may take a small message long before anybody wants it, so a send that has completed says
 * nothing of the receiver. The places in the sender's queue are credits: one is spent with each
 * bundle and comes back when the receiving stage has taken that bundle, in a message for as many as
 * make a quarter of the places. */
#ifndef PSPLIT_RUNTIME_MPI_LANE_H
#define PSPLIT_RUNTIME_MPI_LANE_H

#include <mpi.h>

#include "mpi_bell.h"
#include "queue.h"

/* Tags of messages; link l has PSPLIT_I_TAGS_EACH from TAG_LANES + l * PSPLIT_I_TAGS_EACH on. */
enum { PSPLIT_I_TAG_CLOCK, PSPLIT_I_TAG_PULSE, PSPLIT_I_TAG_FAILURES, PSPLIT_I_TAG_LANES };
enum { PSPLIT_I_TAG_ENVELOPE, PSPLIT_I_TAG_DATA, PSPLIT_I_TAG_CREDITS, PSPLIT_I_TAGS_EACH };

typedef struct psplit_i_lane {
  uint32_t link, n_tensors;
  int peer;
  bool outward;
  bool ended; /* the end of the stream has gone through, and all credits are back */
  enum { PSPLIT_I_LANE_IDLE, PSPLIT_I_LANE_ENVELOPE, PSPLIT_I_LANE_DATA } state;
  psplit_i_queue *queue;
  const psplit_i_ort *ort;
  psplit_i_bell *bell; /* is rung for the peer, where it may not be looking */
  uint64_t chunk_bytes;
  psplit_i_bundle *bundle; /* on its way */
  int64_t *envelope;       /* a message, of words */
  int64_t **rows;          /* [n_tensors] in it */
  size_t n_received;       /* bytes of it, then of the data behind it */
  void **packed;           /* [n_tensors] strings as bytes */
  MPI_Request *requests;
  int n_requests, n_complete, capacity;
  int64_t began_ns;
  bool data_ended;            /* the end of the stream has gone through */
  uint64_t n_moved;           /* bundles that have gone through, or that are going, but the end */
  uint64_t n_credited;        /* of these, those whose credit is on its way or back */
  MPI_Request credit_request; /* MPI_REQUEST_NULL: no message of credits is under way */
  uint64_t credits;           /* that message */
} psplit_i_lane;

/* Allocates for lane->n_tensors; what the caller has set stays. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lane_init(psplit_i_lane *lane, psplit_diag *diag);
/* Not while messages are under way. */
void psplit_i_lane_fini(psplit_i_lane *lane);

/* Whether something is under way that moves only while MPI is called. */
bool psplit_i_lane_is_busy(const psplit_i_lane *lane);

/* One look; *out_moved is set where something happened. Errors: NOMEM, INTERNAL (a message makes no
 * sense), those of tensors. */
PSPLIT_MUST_USE psplit_code psplit_i_lane_step(psplit_i_lane *lane, psplit_diag *diag,
                                               bool *out_moved);

#endif
