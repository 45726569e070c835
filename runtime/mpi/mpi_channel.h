/* Channels: bytes in order, and credits against them, between two ranks of one host, through a ring
 * of memory that they share. No call of MPI or of the system, and no wait, is in them; who puts
 * something in, or makes room, rings the other's doorbell.
 *
 * What is there may be anything that the other rank puts there: positions are held against this
 * rank's own, and bytes are copied before anybody reads them. */
#ifndef PSPLIT_RUNTIME_MPI_CHANNEL_H
#define PSPLIT_RUNTIME_MPI_CHANNEL_H

#include "base.h"

/* All channels of a run, one or none for each link. */
typedef struct psplit_i_channels psplit_i_channels;
/* One end of a channel. */
typedef struct psplit_i_channel psplit_i_channel;

/* Between which ranks a link is, and the bytes that may wait in it; 0: that is not known. */
typedef struct psplit_i_channel_row {
  uint32_t from, to;
  uint64_t n_bytes;
} psplit_i_channel_row;

/* By all ranks at once; waits for them. Links within a rank, between hosts, and where the system
 * has too little memory for them, get none. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_channels_create(uint32_t rank, uint32_t n_ranks,
                                                     const psplit_i_channel_row *links,
                                                     uint32_t n_links, psplit_diag *diag,
                                                     psplit_i_channels **out);
/* By all ranks at once, when nothing is under way. NULL is fine. */
void psplit_i_channels_destroy(psplit_i_channels *channels);
/* This rank's end of the channel of a link; NULL: there is none. */
psplit_i_channel *psplit_i_channels_get(psplit_i_channels *channels, uint32_t link);

/* Put in, or take out, at most n bytes; *out_n: so many were. False: the other end makes no sense.
 */
PSPLIT_MUST_USE bool psplit_i_channel_put(psplit_i_channel *channel, const void *bytes, uint64_t n,
                                          uint64_t *out_n);
PSPLIT_MUST_USE bool psplit_i_channel_take(psplit_i_channel *channel, void *bytes, uint64_t n,
                                           uint64_t *out_n);
/* Whether the other end has put less in than it wanted; once. */
bool psplit_i_channel_is_waited_for(psplit_i_channel *channel);

/* Credits, since the beginning: by who takes out, and as who puts in hears of them. */
void psplit_i_channel_give_credits(psplit_i_channel *channel, uint64_t n);
uint64_t psplit_i_channel_credits(const psplit_i_channel *channel);

#endif
