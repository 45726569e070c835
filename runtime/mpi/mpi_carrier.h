/* Transfers the bytes of bundles between two ranks, one bundle at a time: an envelope, which is one
 * message, then data of the size given in the envelope. Uses a channel on the same host, if there
 * is one, otherwise MPI messages. Non-blocking. */
#ifndef PSPLIT_RUNTIME_MPI_CARRIER_H
#define PSPLIT_RUNTIME_MPI_CARRIER_H

#include <mpi.h>

#include "mpi_channel.h"
#include "mpi_doorbell.h"

/* Tags of messages; link l has PSPLIT_I_TAGS_EACH from TAG_LANES + l * PSPLIT_I_TAGS_EACH on. */
enum { PSPLIT_I_TAG_CLOCK, PSPLIT_I_TAG_PULSE, PSPLIT_I_TAG_FAILURES, PSPLIT_I_TAG_LANES };
enum { PSPLIT_I_TAG_ENVELOPE, PSPLIT_I_TAG_DATA, PSPLIT_I_TAG_CREDITS, PSPLIT_I_TAGS_EACH };

/* A message, or bytes that go through the channel. */
typedef struct psplit_i_parcel {
  MPI_Request request; /* of a message */
  unsigned char *at;
  uint64_t n_left;
} psplit_i_parcel;

typedef struct psplit_i_carrier {
  uint32_t link;
  int peer;
  bool outward;
  uint64_t chunk_bytes;        /* the largest message */
  psplit_i_doorbell *doorbell; /* is rung for the peer, where it may not be looking */
  psplit_i_channel *channel;   /* NULL: messages */
  psplit_i_parcel *parts;      /* under way; the first n_complete of n are not any more */
  uint32_t n, n_complete, capacity;
  uint64_t n_received; /* bytes of parts, since the last envelope was asked for */
  /* Of an envelope in a channel: how many there were, its number and size, which go ahead of it,
   * whether these are to come, and what it may have at most. */
  uint64_t n_envelopes, size, most_bytes;
  bool awaits_size;
  bool can_wait;              /* what goes out, until the other stage has computed */
  MPI_Request credit_request; /* MPI_REQUEST_NULL: no message of credits is under way */
  uint64_t credits;           /* that message */
} psplit_i_carrier;

/* What the caller has set stays. */
void psplit_i_carrier_init(psplit_i_carrier *carrier);
void psplit_i_carrier_fini(psplit_i_carrier *carrier); /* not while messages are under way */

/* Whether something is under way that moves only while MPI is called; `moving`: so is data. */
bool psplit_i_carrier_is_busy(const psplit_i_carrier *carrier, bool moving);

/* Begin to send, or to receive, an envelope of n bytes, at most of n, and then data, in the order
 * of calls. What is pointed to stays until all has gone. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_carrier_envelope(psplit_i_carrier *carrier, void *envelope,
                                                      uint64_t n, psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_carrier_data(psplit_i_carrier *carrier, void *data, uint64_t n,
                                                  psplit_diag *diag);
/* All of a bundle was begun to send: the other rank is to look. `can_wait`: when it looks anyway,
 * before and after it computes. Errors: INTERNAL (the channel makes no sense). */
PSPLIT_MUST_USE psplit_code psplit_i_carrier_go(psplit_i_carrier *carrier, bool can_wait,
                                                psplit_diag *diag);
/* Looks whether all that is under way has gone or come. Errors: INTERNAL (what comes makes no
 * sense). */
PSPLIT_MUST_USE psplit_code psplit_i_carrier_look(psplit_i_carrier *carrier, psplit_diag *diag,
                                                  bool *out_complete);

/* Credits, counted since the beginning, flow against the bundles. Who receives gives them where no
 * earlier ones are under way, and looks for that; who sends takes them: *n_all is what it had, and
 * changes where some have come; `some_left`: some have to. Errors: INTERNAL (they make no sense).
 */
void psplit_i_carrier_give_credits(psplit_i_carrier *carrier, uint64_t n_all);
bool psplit_i_carrier_is_giving(psplit_i_carrier *carrier);
PSPLIT_MUST_USE psplit_code psplit_i_carrier_take_credits(psplit_i_carrier *carrier, bool some_left,
                                                          psplit_diag *diag, uint64_t *n_all);

#endif
