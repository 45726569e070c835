#include "mpi_lane.h"

#include <stdlib.h>
#include <string.h>

/* The envelope, in 64-bit words: what it is, ns to the deadline (0: none), of a failure its code
 * and the bytes of its text, whether the data is in here, the step; then for each tensor: type (0:
 * none is sent), bytes, rank, dims. Behind them the text, or the data of all tensors. */
enum {
  WHAT,
  DEADLINE,
  FAILURE_CODE,
  FAILURE_BYTES,
  HAS_DATA,
  SEQUENCE,
  POSITION,
  SLOT,
  PHASE,
  N_HEAD
};
enum { IS_DATA, IS_END, IS_FAILURE };
enum { TYPE, BYTES, RANK, N_ROW };
/* So much data costs less to copy than another message does. */
enum { INLINE_BYTES = 32 << 10 };

static size_t most_words(const psplit_i_lane *l) {
  return N_HEAD + (size_t)l->n_tensors * (N_ROW + PSPLIT_I_MAX_RANK);
}

static int most_bytes(const psplit_i_lane *l) {
  return (int)(most_words(l) * sizeof *l->envelope) + INLINE_BYTES;
}

static int tag_of(const psplit_i_lane *l, int what) {
  return PSPLIT_I_TAG_LANES + PSPLIT_I_TAGS_EACH * (int)l->link + what;
}

psplit_code psplit_i_lane_init(psplit_i_lane *l, psplit_diag *diag) {
  l->credit_request = MPI_REQUEST_NULL;
  l->envelope = calloc(1, (size_t)most_bytes(l));
  l->rows = calloc((size_t)l->n_tensors + 1, sizeof *l->rows);
  l->packed = calloc((size_t)l->n_tensors + 1, sizeof *l->packed);
  return l->envelope && l->rows && l->packed ? PSPLIT_OK : psplit_i_nomem(diag);
}

void psplit_i_lane_fini(psplit_i_lane *l) {
  free(l->envelope);
  free(l->rows);
  free(l->packed);
  free(l->requests);
}

static bool reserve_requests(psplit_i_lane *l, uint64_t n) {
  if (n > (uint64_t)INT32_MAX / 2) return false;
  if ((int)n <= l->capacity) return true;
  MPI_Request *grown = realloc(l->requests, (size_t)n * sizeof *grown);
  if (!grown) return false;
  l->requests = grown;
  l->capacity = (int)n;
  return true;
}

/* Starts moving `bytes` in messages of at most chunk_bytes each. */
static bool move(psplit_i_lane *l, void *data, uint64_t bytes) {
  const int tag = tag_of(l, PSPLIT_I_TAG_DATA);
  if (!reserve_requests(l, (uint64_t)l->n_requests + bytes / l->chunk_bytes + 1)) return false;
  for (uint64_t at = 0; at < bytes; at += l->chunk_bytes) {
    const int n = (int)(bytes - at < l->chunk_bytes ? bytes - at : l->chunk_bytes);
    MPI_Request *request = &l->requests[l->n_requests++];
    if (l->outward)
      MPI_Isend((char *)data + at, n, MPI_BYTE, l->peer, tag, MPI_COMM_WORLD, request);
    else
      MPI_Irecv((char *)data + at, n, MPI_BYTE, l->peer, tag, MPI_COMM_WORLD, request);
  }
  return true;
}

static void clear_packed(psplit_i_lane *l) {
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    free(l->packed[i]);
    l->packed[i] = NULL;
  }
}

/* The words of what goes out; *out_bytes of data. Returns how many words. */
static psplit_code write_words(psplit_i_lane *l, psplit_diag *diag, size_t *out_n,
                               uint64_t *out_bytes) {
  const psplit_i_bundle *bundle = l->bundle;
  const psplit_diag *failure = bundle->failure;
  int64_t *words = l->envelope, left_ns = 0;
  psplit_code code = PSPLIT_OK;
  size_t n = N_HEAD;
  if (bundle->deadline_ns) left_ns = bundle->deadline_ns - psplit_i_now_ns();
  words[WHAT] = bundle->end ? IS_END : failure ? IS_FAILURE : IS_DATA;
  words[DEADLINE] = bundle->deadline_ns && !left_ns ? -1 : left_ns;
  words[SEQUENCE] = (int64_t)bundle->step.sequence;
  words[POSITION] = (int64_t)bundle->step.position;
  words[SLOT] = (int64_t)bundle->step.slot;
  words[PHASE] = bundle->step.phase;
  words[FAILURE_CODE] = failure ? (int64_t)failure->code : 0;
  words[FAILURE_BYTES] = failure ? (int64_t)strlen(failure->message) : 0;
  *out_bytes = 0;
  for (uint32_t i = 0; words[WHAT] == IS_DATA && i < l->n_tensors; i++) {
    psplit_i_tensor_view view = {0};
    int64_t *row = l->rows[i] = words + n;
    if (bundle->tensors[i]) PSPLIT_TRY(psplit_i_tensor_look(bundle->tensors[i], diag, &view));
    row[TYPE] = view.data_type;
    row[BYTES] = (int64_t)view.n_bytes;
    row[RANK] = (int64_t)view.n_dims;
    memcpy(row + N_ROW, view.dims, view.n_dims * sizeof *row);
    n += N_ROW + view.n_dims;
    *out_bytes += view.n_bytes;
  }
  words[HAS_DATA] = *out_bytes <= INLINE_BYTES && *out_bytes <= l->chunk_bytes;
  *out_n = n;
out:
  return code;
}

static void send_envelope(psplit_i_lane *l, size_t n_bytes) {
  MPI_Isend(l->envelope, (int)n_bytes, MPI_BYTE, l->peer, tag_of(l, PSPLIT_I_TAG_ENVELOPE),
            MPI_COMM_WORLD, &l->requests[0]);
}

/* Puts the data behind the words, at `at`, or where it does not go with them sends it in messages
 * of its own. */
static psplit_code send_data(psplit_i_lane *l, unsigned char *at, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    psplit_i_tensor *tensor = l->bundle->tensors[i];
    psplit_i_tensor_view view;
    if (!tensor) continue;
    PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
    if (!view.n_bytes) continue;
    void *data = view.data;
    if (!data) { /* strings */
      data = l->packed[i] = malloc((size_t)view.n_bytes);
      if (!data) return psplit_i_nomem(diag);
      PSPLIT_TRY(psplit_i_tensor_pack(tensor, &view, diag, data));
    }
    if (l->envelope[HAS_DATA]) {
      memcpy(at, data, (size_t)view.n_bytes);
      at += view.n_bytes;
    } else if (!move(l, data, view.n_bytes)) {
      return psplit_i_nomem(diag);
    }
  }
out:
  return code;
}

static psplit_code begin_out(psplit_i_lane *l, psplit_diag *diag) {
  /* What takes as long as to wake a thread, or less, waits until the stage has computed. */
  enum { OVERLAPPED_BYTES = 256 << 10 };
  psplit_code code;
  size_t n;
  uint64_t bytes;
  if (!reserve_requests(l, 1)) return psplit_i_nomem(diag);
  l->n_requests = 1; /* the first is that of the envelope */
  l->requests[0] = MPI_REQUEST_NULL;
  PSPLIT_TRY(write_words(l, diag, &n, &bytes));
  unsigned char *behind = (unsigned char *)(l->envelope + n);
  const size_t n_words = n * sizeof *l->envelope;
  /* The envelope is ahead of data in messages of its own: behind these it might leave late, after
   * the bell, and a peer that has looked in vain sleeps on. */
  const bool ahead = l->envelope[WHAT] != IS_FAILURE && !l->envelope[HAS_DATA];
  if (ahead) send_envelope(l, n_words);
  if (l->envelope[WHAT] == IS_DATA) PSPLIT_TRY(send_data(l, behind, diag));
  if (l->envelope[WHAT] == IS_FAILURE) {
    const size_t n_behind = (size_t)l->envelope[FAILURE_BYTES];
    memcpy(behind, l->bundle->failure->message, n_behind);
    send_envelope(l, n_words + n_behind);
  } else if (!ahead) {
    send_envelope(l, n_words + (size_t)bytes);
  }
  psplit_i_bell_ring(l->bell, (uint32_t)l->peer, bytes < OVERLAPPED_BYTES);
  l->state = PSPLIT_I_LANE_DATA;
out:
  return code;
}

static psplit_code no_sense(const psplit_i_lane *l, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_INTERNAL, "a message of rank %d makes no sense", l->peer);
}

/* Finds the rows of what has come, of n_bytes; *out_n words. */
static psplit_code read_words(psplit_i_lane *l, size_t n_bytes, psplit_diag *diag, size_t *out_n) {
  int64_t *words = l->envelope;
  const size_t most = n_bytes / sizeof *words;
  size_t n = N_HEAD;
  if (most < N_HEAD || words[WHAT] < IS_DATA || words[WHAT] > IS_FAILURE) return no_sense(l, diag);
  for (uint32_t i = 0; words[WHAT] == IS_DATA && i < l->n_tensors; i++) {
    int64_t *row = l->rows[i] = words + n;
    if (most - n < N_ROW || row[RANK] < 0 || row[RANK] > PSPLIT_I_MAX_RANK || row[BYTES] < 0 ||
        most - n - N_ROW < (size_t)row[RANK])
      return no_sense(l, diag);
    n += N_ROW + (size_t)row[RANK];
  }
  *out_n = n;
  return PSPLIT_OK;
}

static psplit_code take_failure(psplit_i_lane *l, const char *text, size_t n, psplit_diag *diag) {
  const int64_t code = l->envelope[FAILURE_CODE];
  if (code <= PSPLIT_OK || code > PSPLIT_INTERNAL || n >= PSPLIT_DIAG_BYTES ||
      l->envelope[FAILURE_BYTES] != (int64_t)n)
    return no_sense(l, diag);
  psplit_diag *failure = l->bundle->failure = calloc(1, sizeof *failure);
  if (!failure) return psplit_i_nomem(diag);
  memcpy(failure->message, text, n);
  failure->code = (psplit_code)code;
  return PSPLIT_OK;
}

/* Makes tensor i and takes its data from the n bytes at `at`, where it is in the envelope, or
 * starts to receive it. */
static psplit_code take_tensor(psplit_i_lane *l, uint32_t i, const unsigned char *at, size_t n,
                               psplit_diag *diag) {
  const int64_t *row = l->rows[i];
  const uint64_t bytes = (uint64_t)row[BYTES];
  psplit_i_tensor_view view;
  psplit_code code;
  if (l->envelope[HAS_DATA] && bytes > n) return no_sense(l, diag);
  if (!row[TYPE]) return bytes || row[RANK] ? no_sense(l, diag) : PSPLIT_OK;
  PSPLIT_TRY(psplit_i_tensor_create(l->ort, (int32_t)row[TYPE], row + N_ROW, (size_t)row[RANK],
                                    diag, &l->bundle->tensors[i]));
  PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
  if (view.data ? bytes != view.n_bytes : bytes > SIZE_MAX / 2) return no_sense(l, diag);
  l->bundle->bytes += bytes;
  if (!bytes) return PSPLIT_OK;
  void *data = view.data;
  if (!data) {
    data = l->packed[i] = malloc((size_t)bytes);
    if (!data) return psplit_i_nomem(diag);
  }
  if (l->envelope[HAS_DATA])
    memcpy(data, at, (size_t)bytes);
  else if (!move(l, data, bytes))
    return psplit_i_nomem(diag);
out:
  return code;
}

/* What is none is told by the stage. */
static uint32_t phase_of(int64_t word) {
  return word >= 0 && word < PSPLIT_NONE ? (uint32_t)word : PSPLIT_NONE;
}

/* An envelope has come. */
static psplit_code begin_data_in(psplit_i_lane *l, psplit_diag *diag) {
  psplit_code code;
  size_t n_words = 0;
  l->began_ns = psplit_i_now_ns();
  l->bundle = psplit_i_bundle_create(l->n_tensors);
  if (!l->bundle) return psplit_i_nomem(diag);
  PSPLIT_TRY(read_words(l, l->n_received, diag, &n_words));
  const unsigned char *at = (const unsigned char *)(l->envelope + n_words);
  size_t n = l->n_received - n_words * sizeof *l->envelope;
  l->n_received = 0; /* from here on, of data behind it */
  l->bundle->end = l->envelope[WHAT] == IS_END;
  if (l->envelope[DEADLINE]) l->bundle->deadline_ns = l->began_ns + l->envelope[DEADLINE];
  l->bundle->step = (psplit_i_step){.sequence = (uint64_t)l->envelope[SEQUENCE],
                                    .position = (uint64_t)l->envelope[POSITION],
                                    .slot = (uint64_t)l->envelope[SLOT],
                                    .phase = phase_of(l->envelope[PHASE])};
  if (l->envelope[WHAT] == IS_FAILURE) PSPLIT_TRY(take_failure(l, (const char *)at, n, diag));
  for (uint32_t i = 0; i < l->n_tensors && l->envelope[WHAT] == IS_DATA; i++) {
    PSPLIT_TRY(take_tensor(l, i, at, n, diag));
    if (!l->envelope[HAS_DATA]) continue;
    at += l->rows[i][BYTES];
    n -= (size_t)l->rows[i][BYTES];
  }
  if (n && l->envelope[WHAT] != IS_FAILURE) return no_sense(l, diag);
  l->state = PSPLIT_I_LANE_DATA;
out:
  return code;
}

/* All data is there: strings are made, the bundle goes to the stage. */
static psplit_code end_data_in(psplit_i_lane *l, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (l->envelope[WHAT] == IS_DATA && !l->envelope[HAS_DATA] && l->n_received != l->bundle->bytes)
    return no_sense(l, diag);
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    if (!l->packed[i]) continue;
    psplit_i_tensor_view view;
    PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
    PSPLIT_TRY(psplit_i_tensor_unpack(l->bundle->tensors[i], view.n_elements, l->packed[i],
                                      (uint64_t)l->rows[i][BYTES], diag));
  }
  clear_packed(l);
  l->bundle->transfer_ns = psplit_i_now_ns() - l->began_ns;
  l->data_ended = l->bundle->end;
  l->n_moved += !l->bundle->end;
  psplit_i_queue_arrive(l->queue, l->bundle); /* there was room when the bundle began */
  l->bundle = NULL;
  l->state = PSPLIT_I_LANE_IDLE;
out:
  return code;
}

/* Whether all that is under way has arrived. One after the other: MPI_Testall's own declaration
 * makes gcc warn of MPI_STATUSES_IGNORE. */
static bool all_complete(psplit_i_lane *l) {
  for (; l->n_complete < l->n_requests; l->n_complete++) {
    int complete = 0;
    MPI_Status status;
    MPI_Test(&l->requests[l->n_complete], &complete, &status);
    if (!complete) return false;
    int n_bytes = 0;
    if (!l->outward) MPI_Get_count(&status, MPI_BYTE, &n_bytes);
    if (n_bytes > 0) l->n_received += (size_t)n_bytes;
  }
  l->n_requests = l->n_complete = 0;
  return true;
}

static psplit_code begin(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  if (l->outward) {
    l->bundle = psplit_i_queue_send_off(l->queue);
    if (!l->bundle) return PSPLIT_OK;
    l->n_moved += !l->bundle->end;
    *out_moved = true;
    return begin_out(l, diag);
  }
  if (!psplit_i_queue_has_room(l->queue)) return PSPLIT_OK;
  *out_moved = true;
  if (!reserve_requests(l, 1)) return psplit_i_nomem(diag);
  MPI_Irecv(l->envelope, most_bytes(l), MPI_BYTE, l->peer, tag_of(l, PSPLIT_I_TAG_ENVELOPE),
            MPI_COMM_WORLD, &l->requests[0]);
  l->n_requests = 1;
  l->n_received = 0;
  l->state = PSPLIT_I_LANE_ENVELOPE;
  return PSPLIT_OK;
}

/* Sends the credits of what the stage has taken, a quarter of the places together: the sender has
 * the others, and each message may wake it. Behind the end none are kept back. */
static bool step_credits_out(psplit_i_lane *l) {
  const uint64_t least = l->data_ended ? 1 : l->queue->depth / 4;
  uint64_t taken = psplit_i_queue_n_popped(l->queue);
  if (taken > l->n_moved) taken = l->n_moved; /* the end was taken too */
  if (taken == l->n_credited || taken - l->n_credited < least) return false;
  l->credits = taken - l->n_credited;
  l->n_credited = taken;
  MPI_Isend(&l->credits, 1, MPI_UINT64_T, l->peer, tag_of(l, PSPLIT_I_TAG_CREDITS), MPI_COMM_WORLD,
            &l->credit_request);
  /* A stage that computes needs no credits now. */
  psplit_i_bell_ring(l->bell, (uint32_t)l->peer, true);
  return true;
}

/* Credits flow against the bundles. A receive is posted only where one must come. */
static psplit_code step_credits(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  if (l->credit_request != MPI_REQUEST_NULL) {
    int complete = 0;
    MPI_Status status;
    MPI_Test(&l->credit_request, &complete, &status);
    if (!complete) return PSPLIT_OK;
    *out_moved = true;
    if (l->outward) {
      int n_bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &n_bytes);
      if (n_bytes != sizeof l->credits || !l->credits || l->credits > l->n_moved - l->n_credited)
        return psplit_i_fail(diag, PSPLIT_INTERNAL, "a message of credits makes no sense");
      l->n_credited += l->credits;
      psplit_i_queue_free_places(l->queue, (uint32_t)l->credits);
    }
  }
  if (!l->outward)
    *out_moved |= step_credits_out(l);
  else if (l->n_moved > l->n_credited)
    MPI_Irecv(&l->credits, 1, MPI_UINT64_T, l->peer, tag_of(l, PSPLIT_I_TAG_CREDITS),
              MPI_COMM_WORLD, &l->credit_request);
  return PSPLIT_OK;
}

static psplit_code step_data(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  if (l->data_ended) return PSPLIT_OK;
  if (l->state == PSPLIT_I_LANE_IDLE) return begin(l, diag, out_moved);
  if (!all_complete(l)) return PSPLIT_OK;
  *out_moved = true;
  if (!l->outward) {
    const psplit_code code =
      l->state == PSPLIT_I_LANE_ENVELOPE ? begin_data_in(l, diag) : end_data_in(l, diag);
    if (code != PSPLIT_OK) psplit_i_diag_context(diag, "from rank %d", l->peer);
    return code;
  }
  clear_packed(l);
  l->data_ended = l->bundle->end;
  psplit_i_bundle_destroy(l->bundle);
  l->bundle = NULL;
  l->state = PSPLIT_I_LANE_IDLE;
  return PSPLIT_OK;
}

bool psplit_i_lane_is_busy(const psplit_i_lane *l) {
  const bool sends_credits = !l->outward && l->credit_request != MPI_REQUEST_NULL;
  return l->state == PSPLIT_I_LANE_DATA || sends_credits;
}

psplit_code psplit_i_lane_step(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  psplit_code code = PSPLIT_OK;
  if (l->ended) return PSPLIT_OK;
  PSPLIT_TRY(step_credits(l, diag, out_moved));
  PSPLIT_TRY(step_data(l, diag, out_moved));
  l->ended = l->data_ended && l->n_credited == l->n_moved && l->credit_request == MPI_REQUEST_NULL;
out:
  return code;
}
