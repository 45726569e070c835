#include "mpi_carrier.h"

#include <stdlib.h>

enum { SIZE_BITS = 32 }; /* of an envelope, below its number */

void psplit_i_carrier_init(psplit_i_carrier *c) { c->credit_request = MPI_REQUEST_NULL; }

void psplit_i_carrier_fini(psplit_i_carrier *c) { free(c->parts); }

static int tag_of(const psplit_i_carrier *c, int what) {
  return PSPLIT_I_TAG_LANES + PSPLIT_I_TAGS_EACH * (int)c->link + what;
}

bool psplit_i_carrier_is_busy(const psplit_i_carrier *c, bool moving) {
  const bool gives = !c->outward && c->credit_request != MPI_REQUEST_NULL;
  return (moving && !c->channel) || gives;
}

static bool reserve(psplit_i_carrier *c, uint64_t n) {
  if (n > (uint64_t)INT32_MAX / 2) return false;
  if (n <= c->capacity) return true;
  psplit_i_parcel *grown = realloc(c->parts, (size_t)n * sizeof *grown);
  if (!grown) return false;
  c->parts = grown;
  c->capacity = (uint32_t)n;
  return true;
}

static void begin(psplit_i_carrier *c, void *bytes, uint64_t n, int tag) {
  psplit_i_parcel *p = &c->parts[c->n++];
  *p = (psplit_i_parcel){.request = MPI_REQUEST_NULL, .at = bytes, .n_left = n};
  if (c->channel) return;
  if (c->outward)
    MPI_Isend(bytes, (int)n, MPI_BYTE, c->peer, tag, MPI_COMM_WORLD, &p->request);
  else
    MPI_Irecv(bytes, (int)n, MPI_BYTE, c->peer, tag, MPI_COMM_WORLD, &p->request);
}

psplit_code psplit_i_carrier_envelope(psplit_i_carrier *c, void *envelope, uint64_t n,
                                      psplit_diag *diag) {
  if (!reserve(c, 2)) return psplit_i_nomem(diag);
  c->n = c->n_complete = 0;
  c->n_received = 0;
  if (c->channel) { /* which has no messages: their size goes ahead, with their number as a check */
    c->size = ++c->n_envelopes << SIZE_BITS | (c->outward ? n : 0);
    c->most_bytes = n;
    c->awaits_size = !c->outward;
    begin(c, &c->size, sizeof c->size, 0);
  }
  begin(c, envelope, n, tag_of(c, PSPLIT_I_TAG_ENVELOPE));
  return PSPLIT_OK;
}

psplit_code psplit_i_carrier_data(psplit_i_carrier *c, void *data, uint64_t n, psplit_diag *diag) {
  const uint64_t most = c->channel ? UINT64_MAX : c->chunk_bytes;
  if (!reserve(c, c->n + n / most + 1)) return psplit_i_nomem(diag);
  for (uint64_t at = 0; at < n; at += most)
    begin(c, (char *)data + at, n - at < most ? n - at : most, tag_of(c, PSPLIT_I_TAG_DATA));
  return PSPLIT_OK;
}

/* One after the other: MPI_Testall's own declaration makes gcc warn of MPI_STATUSES_IGNORE. */
static bool look_at_message(psplit_i_carrier *c, psplit_i_parcel *p) {
  int complete = 0, n_bytes = 0;
  MPI_Status status;
  MPI_Test(&p->request, &complete, &status);
  if (!complete) return false;
  if (!c->outward) MPI_Get_count(&status, MPI_BYTE, &n_bytes);
  if (n_bytes > 0) c->n_received += (uint64_t)n_bytes;
  p->n_left = 0;
  return true;
}

/* The size of an envelope has come. */
static bool take_size(psplit_i_carrier *c) {
  const uint64_t n = c->size & ((UINT64_C(1) << SIZE_BITS) - 1);
  c->awaits_size = false;
  c->n_received = 0;
  c->parts[1].n_left = n;
  return c->size == (c->n_envelopes << SIZE_BITS | n) && n <= c->most_bytes;
}

/* Moves as much of a part as goes now. False: what the other end says makes no sense. */
static bool move(psplit_i_carrier *c, psplit_i_parcel *p, bool *out_moved) {
  uint64_t n = 1;
  while (p->n_left && n) {
    if (c->outward ? !psplit_i_channel_put(c->channel, p->at, p->n_left, &n)
                   : !psplit_i_channel_take(c->channel, p->at, p->n_left, &n))
      return false;
    p->at += n;
    p->n_left -= n;
    *out_moved |= n > 0;
    if (c->outward) continue;
    c->n_received += n;
    if (n && psplit_i_channel_is_waited_for(c->channel))
      psplit_i_doorbell_ring(c->doorbell, (uint32_t)c->peer, false);
  }
  return p->n_left || !c->awaits_size || take_size(c);
}

static psplit_code look_at_channel(psplit_i_carrier *c, psplit_diag *diag, bool *out_complete) {
  bool moved = false, good = true;
  while (c->n_complete < c->n) {
    psplit_i_parcel *p = &c->parts[c->n_complete];
    good = move(c, p, &moved);
    if (!good || p->n_left) break;
    c->n_complete++;
  }
  *out_complete = c->n_complete == c->n;
  if (moved && c->outward)
    psplit_i_doorbell_ring(c->doorbell, (uint32_t)c->peer, c->can_wait && *out_complete);
  if (good) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_INTERNAL, "malformed message from rank %d", c->peer);
}

psplit_code psplit_i_carrier_look(psplit_i_carrier *c, psplit_diag *diag, bool *out_complete) {
  if (c->channel) return look_at_channel(c, diag, out_complete);
  while (c->n_complete < c->n && look_at_message(c, &c->parts[c->n_complete])) c->n_complete++;
  *out_complete = c->n_complete == c->n;
  return PSPLIT_OK;
}

psplit_code psplit_i_carrier_go(psplit_i_carrier *c, bool can_wait, psplit_diag *diag) {
  bool complete;
  c->can_wait = can_wait;
  if (c->channel) return look_at_channel(c, diag, &complete);
  psplit_i_doorbell_ring(c->doorbell, (uint32_t)c->peer, can_wait);
  return PSPLIT_OK;
}

void psplit_i_carrier_give_credits(psplit_i_carrier *c, uint64_t n_all) {
  c->credits = n_all;
  if (c->channel)
    psplit_i_channel_give_credits(c->channel, n_all);
  else
    MPI_Isend(&c->credits, 1, MPI_UINT64_T, c->peer, tag_of(c, PSPLIT_I_TAG_CREDITS),
              MPI_COMM_WORLD, &c->credit_request);
  /* A stage that computes needs no credits now. */
  psplit_i_doorbell_ring(c->doorbell, (uint32_t)c->peer, true);
}

bool psplit_i_carrier_is_giving(psplit_i_carrier *c) {
  int complete = 1;
  if (c->credit_request != MPI_REQUEST_NULL)
    MPI_Test(&c->credit_request, &complete, MPI_STATUS_IGNORE);
  return !complete;
}

psplit_code psplit_i_carrier_take_credits(psplit_i_carrier *c, bool some_left, psplit_diag *diag,
                                          uint64_t *n_all) {
  int complete = 0, n_bytes = 0;
  MPI_Status status;
  if (c->channel) {
    *n_all = psplit_i_channel_credits(c->channel);
    return PSPLIT_OK;
  }
  if (c->credit_request == MPI_REQUEST_NULL && some_left)
    MPI_Irecv(&c->credits, 1, MPI_UINT64_T, c->peer, tag_of(c, PSPLIT_I_TAG_CREDITS),
              MPI_COMM_WORLD, &c->credit_request);
  if (c->credit_request == MPI_REQUEST_NULL) return PSPLIT_OK;
  MPI_Test(&c->credit_request, &complete, &status);
  if (!complete) return PSPLIT_OK;
  MPI_Get_count(&status, MPI_BYTE, &n_bytes);
  if (n_bytes != sizeof c->credits || c->credits <= *n_all)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "malformed credit message");
  *n_all = c->credits;
  return PSPLIT_OK;
}
