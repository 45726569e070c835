#include "mpi_channel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shared.h"

enum { LINE_BYTES = 64 };

/* At the beginning of a segment, one for each link: what ranks share of a channel. The rank that
 * takes out owns the segment. */
typedef struct head {
  uint64_t offset, capacity; /* of the ring in the segment; 0: there is none */
  char rest_of_line[LINE_BYTES - 2 * sizeof(uint64_t)];
  _Atomic uint64_t n_put; /* bytes, since the beginning, as all of these */
  _Atomic uint32_t waits; /* for room */
  char rest_of_puts[LINE_BYTES - sizeof(uint64_t) - sizeof(uint32_t)];
  _Atomic uint64_t n_taken;
  _Atomic uint64_t n_credits;
  char rest_of_takes[LINE_BYTES - 2 * sizeof(uint64_t)];
} head;

struct psplit_i_channel {
  head *shared; /* NULL: there is no such channel */
  unsigned char *ring;
  uint64_t capacity;
  uint64_t n_put, n_taken; /* this end's own is what holds */
};

struct psplit_i_channels {
  psplit_i_shared *memory;
  psplit_i_channel each[]; /* [n_links] */
};

/* What makes up a link whose bytes are not known, and limits: of a ring, and of all of a rank. More
 * than a ring holds goes through it in pieces. */
static const uint64_t USUAL_BYTES = 1 << 20, LEAST_BYTES = 64 << 10, MOST_BYTES = 4 << 20,
                      MOST_OF_RANK = 64 << 20;

static uint64_t capacity_for(uint64_t n_bytes, uint32_t n_links) {
  const uint64_t share = MOST_OF_RANK / n_links / LINE_BYTES * LINE_BYTES;
  const uint64_t most = share < MOST_BYTES ? share : MOST_BYTES;
  if (!n_bytes) n_bytes = USUAL_BYTES;
  if (n_bytes < LEAST_BYTES) n_bytes = LEAST_BYTES;
  if (n_bytes > most) n_bytes = most;
  return (n_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* Where each ring to this rank goes; returns the bytes of the segment. */
static uint64_t lay_out(uint32_t rank, const psplit_i_channel_row *links, uint32_t n_links,
                        head *out) {
  uint64_t at = n_links * sizeof(head);
  uint32_t n_in = 0;
  for (uint32_t l = 0; l < n_links; l++) n_in += links[l].to == rank && links[l].from != rank;
  for (uint32_t l = 0; l < n_links; l++) {
    if (links[l].to != rank || links[l].from == rank) continue;
    out[l].offset = at;
    out[l].capacity = capacity_for(links[l].n_bytes, n_in);
    at += out[l].capacity;
  }
  return at;
}

/* What others find in the segment of this rank. */
static void publish(const psplit_i_channels *channels, uint32_t rank,
                    const psplit_i_channel_row *links, uint32_t n_links, const head *layout) {
  uint64_t n_mine, n_theirs;
  unsigned char *mine = psplit_i_shared_of(channels->memory, rank, &n_mine);
  if (!mine || !psplit_i_shared_reserve(mine, n_links * sizeof(head))) return;
  for (uint32_t l = 0; l < n_links; l++)
    if (layout[l].capacity && psplit_i_shared_of(channels->memory, links[l].from, &n_theirs) &&
        psplit_i_shared_reserve(mine + layout[l].offset, layout[l].capacity)) {
      head *h = (head *)mine + l;
      h->offset = layout[l].offset;
      h->capacity = layout[l].capacity;
    }
}

/* This rank's end of a link whose ring is in the segment of rank `to`. */
static void find(psplit_i_channels *channels, uint32_t link, uint32_t n_links, uint32_t to) {
  uint64_t n;
  unsigned char *base = psplit_i_shared_of(channels->memory, to, &n);
  if (!base || n < n_links * sizeof(head)) return;
  head *h = (head *)base + link;
  const uint64_t offset = h->offset, capacity = h->capacity;
  /* What moves at once is a part of the ring: none that is smaller than a line ever has one. */
  if (capacity < LINE_BYTES || offset > n || capacity > n - offset) return;
  channels->each[link] =
    (psplit_i_channel){.shared = h, .ring = base + offset, .capacity = capacity};
}

psplit_code psplit_i_channels_create(uint32_t rank, uint32_t n_ranks,
                                     const psplit_i_channel_row *links, uint32_t n_links,
                                     psplit_diag *diag, psplit_i_channels **out) {
  psplit_i_channels *channels = calloc(1, sizeof *channels + n_links * sizeof *channels->each);
  head *layout = calloc((size_t)n_links + 1, sizeof *layout);
  psplit_code code = channels && layout ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code != PSPLIT_OK) goto out;
  const uint64_t n = lay_out(rank, links, n_links, layout);
  PSPLIT_TRY(psplit_i_shared_create(n_ranks, n, diag, &channels->memory));
  publish(channels, rank, links, n_links, layout);
  psplit_i_shared_meet(channels->memory);
  for (uint32_t l = 0; l < n_links; l++)
    if (links[l].from != links[l].to && (links[l].from == rank || links[l].to == rank))
      find(channels, l, n_links, links[l].to);
  *out = channels;
  channels = NULL;
out:
  free(channels);
  free(layout);
  return code;
}

void psplit_i_channels_destroy(psplit_i_channels *channels) {
  if (channels) psplit_i_shared_destroy(channels->memory);
  free(channels);
}

psplit_i_channel *psplit_i_channels_get(psplit_i_channels *channels, uint32_t link) {
  return channels->each[link].shared ? &channels->each[link] : NULL;
}

/* What moves at once: the other end goes on with it meanwhile. */
static uint64_t piece(const psplit_i_channel *c, uint64_t n) {
  return n < c->capacity / 4 ? n : c->capacity / 4;
}

/* From, or to, its place in the ring, which may go over the end. */
static void copy_in(psplit_i_channel *c, const unsigned char *bytes, uint64_t n) {
  const uint64_t at = c->n_put % c->capacity, left = c->capacity - at;
  memcpy(c->ring + at, bytes, (size_t)(n < left ? n : left));
  if (n > left) memcpy(c->ring, bytes + left, (size_t)(n - left));
}

static void copy_out(const psplit_i_channel *c, unsigned char *bytes, uint64_t n) {
  const uint64_t at = c->n_taken % c->capacity, left = c->capacity - at;
  memcpy(bytes, c->ring + at, (size_t)(n < left ? n : left));
  if (n > left) memcpy(bytes + left, c->ring, (size_t)(n - left));
}

/* Bytes that there is room for; UINT64_MAX: that makes no sense. */
static uint64_t room_in(const psplit_i_channel *c) {
  const uint64_t under_way = c->n_put - atomic_load(&c->shared->n_taken);
  return under_way <= c->capacity ? c->capacity - under_way : UINT64_MAX;
}

bool psplit_i_channel_put(psplit_i_channel *c, const void *bytes, uint64_t n, uint64_t *out_n) {
  const unsigned char *at = bytes;
  *out_n = 0;
  while (n) {
    uint64_t room = room_in(c);
    if (!room) { /* it may come before the other end sees that it is waited for */
      atomic_store(&c->shared->waits, 1);
      room = room_in(c);
    }
    if (room == UINT64_MAX) return false;
    if (!room) return true;
    const uint64_t most = piece(c, n), now = most < room ? most : room;
    copy_in(c, at, now);
    c->n_put += now;
    atomic_store(&c->shared->n_put, c->n_put);
    at += now;
    n -= now;
    *out_n += now;
  }
  return true;
}

bool psplit_i_channel_take(psplit_i_channel *c, void *bytes, uint64_t n, uint64_t *out_n) {
  *out_n = 0;
  const uint64_t there = atomic_load(&c->shared->n_put) - c->n_taken;
  if (there > c->capacity) return false;
  const uint64_t most = piece(c, n), now = most < there ? most : there;
  if (!now) return true;
  copy_out(c, bytes, now);
  c->n_taken += now;
  atomic_store(&c->shared->n_taken, c->n_taken);
  *out_n = now;
  return true;
}

bool psplit_i_channel_is_waited_for(psplit_i_channel *c) {
  return atomic_load(&c->shared->waits) && atomic_exchange(&c->shared->waits, 0);
}

void psplit_i_channel_give_credits(psplit_i_channel *c, uint64_t n) {
  atomic_store(&c->shared->n_credits, n);
}

uint64_t psplit_i_channel_credits(const psplit_i_channel *c) {
  return atomic_load(&c->shared->n_credits);
}
