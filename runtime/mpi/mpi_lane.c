#include "mpi_lane.h"

#include <stdlib.h>
#include <string.h>

#include "checked.h"

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

static size_t most_bytes(const psplit_i_lane *l) {
  return most_words(l) * sizeof *l->envelope + INLINE_BYTES;
}

uint64_t psplit_i_lane_bytes(uint32_t n_tensors, uint64_t n_bytes, uint32_t depth) {
  enum { USUAL_RANK = 4 };
  const uint64_t n_words = 1 + N_HEAD + (uint64_t)n_tensors * (N_ROW + USUAL_RANK);
  return psplit_i_sat_mul_u64(psplit_i_sat_add_u64(n_bytes, n_words * sizeof(int64_t)), depth);
}

psplit_code psplit_i_lane_init(psplit_i_lane *l, psplit_diag *diag) {
  psplit_i_carrier_init(&l->carrier);
  l->envelope = calloc(1, most_bytes(l));
  l->rows = calloc((size_t)l->n_tensors + 1, sizeof *l->rows);
  l->packed = calloc((size_t)l->n_tensors + 1, sizeof *l->packed);
  return l->envelope && l->rows && l->packed ? PSPLIT_OK : psplit_i_nomem(diag);
}

void psplit_i_lane_fini(psplit_i_lane *l) {
  free(l->envelope);
  free(l->rows);
  free(l->packed);
  psplit_i_carrier_fini(&l->carrier);
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
    if (view.n_dims) memcpy(row + N_ROW, view.dims, view.n_dims * sizeof *row);
    n += N_ROW + view.n_dims;
    *out_bytes += view.n_bytes;
  }
  words[HAS_DATA] =
    !l->carrier.channel && *out_bytes <= INLINE_BYTES && *out_bytes <= l->carrier.chunk_bytes;
  *out_n = n;
out:
  return code;
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
    } else {
      PSPLIT_TRY(psplit_i_carrier_data(&l->carrier, data, view.n_bytes, diag));
    }
  }
out:
  return code;
}

static psplit_code begin_out(psplit_i_lane *l, psplit_diag *diag) {
  /* What takes as long as to wake a thread, or less, waits until the stage has computed. */
  enum { OVERLAPPED_BYTES = 256 << 10 };
  psplit_i_carrier *c = &l->carrier;
  psplit_code code;
  size_t n;
  uint64_t bytes;
  PSPLIT_TRY(write_words(l, diag, &n, &bytes));
  unsigned char *behind = (unsigned char *)(l->envelope + n);
  const size_t n_words = n * sizeof *l->envelope;
  /* The envelope is ahead of data in messages of its own: behind these it might leave late, after
   * the doorbell, and a peer that has looked in vain sleeps on. */
  const bool ahead = l->envelope[WHAT] != IS_FAILURE && !l->envelope[HAS_DATA];
  if (ahead) PSPLIT_TRY(psplit_i_carrier_envelope(c, l->envelope, n_words, diag));
  if (l->envelope[WHAT] == IS_DATA) PSPLIT_TRY(send_data(l, behind, diag));
  const psplit_diag *failure = l->bundle->failure;
  if (failure && l->envelope[WHAT] == IS_FAILURE) {
    const size_t n_behind = (size_t)l->envelope[FAILURE_BYTES];
    memcpy(behind, failure->message, n_behind);
    PSPLIT_TRY(psplit_i_carrier_envelope(c, l->envelope, n_words + n_behind, diag));
  } else if (!ahead) {
    PSPLIT_TRY(psplit_i_carrier_envelope(c, l->envelope, n_words + (size_t)bytes, diag));
  }
  PSPLIT_TRY(psplit_i_carrier_go(c, bytes < OVERLAPPED_BYTES, diag));
  l->state = PSPLIT_I_LANE_DATA;
out:
  return code;
}

static psplit_code no_sense(const psplit_i_lane *l, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_INTERNAL, "malformed message from rank %d", l->carrier.peer);
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
  if (code <= PSPLIT_OK || code > PSPLIT_CANCELLED || n >= PSPLIT_DIAG_BYTES ||
      l->envelope[FAILURE_BYTES] != (int64_t)n)
    return no_sense(l, diag);
  psplit_diag *failure = l->bundle->failure = calloc(1, sizeof *failure);
  if (!failure) return psplit_i_nomem(diag);
  memcpy(failure->message, text, n);
  failure->code = (psplit_code)code;
  return PSPLIT_OK;
}

/* Whether so many bytes can be the data of a tensor of that row: asked before there is room for it,
 * which may be more than there is. What is no row of a tensor is told where it is made. */
static bool bytes_fit(const int64_t *row) {
  const int32_t type = (int32_t)row[TYPE];
  uint64_t n_elements, n_bytes;
  if (!psplit_i_element_name(type) ||
      !psplit_i_tensor_size(type, row + N_ROW, (size_t)row[RANK], &n_elements, &n_bytes))
    return true;
  return psplit_i_element_bits(type) ? (uint64_t)row[BYTES] == n_bytes
                                     : (uint64_t)row[BYTES] / sizeof(uint64_t) >= n_elements;
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
  if (!bytes_fit(row)) return no_sense(l, diag);
  PSPLIT_TRY(psplit_i_tensor_make(l->ort, (int32_t)row[TYPE], row + N_ROW, (size_t)row[RANK], diag,
                                  &l->bundle->tensors[i], &view));
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
  else
    code = psplit_i_carrier_data(&l->carrier, data, bytes, diag);
out:
  return code;
}

/* What is none is told by the stage. */
static uint32_t phase_of(int64_t word) {
  return word >= 0 && word < PSPLIT_NONE ? (uint32_t)word : PSPLIT_NONE;
}

/* Of what another rank says is left: past is past, however long, and what is too far ahead never
 * comes. */
static int64_t deadline_of(int64_t now_ns, int64_t left_ns) {
  if (!left_ns) return 0;
  return psplit_i_sat_add_i64(now_ns, left_ns < 0 ? -1 : left_ns);
}

/* An envelope has come. */
static psplit_code begin_data_in(psplit_i_lane *l, psplit_diag *diag) {
  psplit_code code;
  size_t n_words = 0;
  l->began_ns = psplit_i_now_ns();
  l->bundle = psplit_i_bundle_create(l->n_tensors);
  if (!l->bundle) return psplit_i_nomem(diag);
  PSPLIT_TRY(read_words(l, (size_t)l->carrier.n_received, diag, &n_words));
  const unsigned char *at = (const unsigned char *)(l->envelope + n_words);
  size_t n = (size_t)l->carrier.n_received - n_words * sizeof *l->envelope;
  l->carrier.n_received = 0; /* from here on, of data behind it */
  l->bundle->end = l->envelope[WHAT] == IS_END;
  l->bundle->deadline_ns = deadline_of(l->began_ns, l->envelope[DEADLINE]);
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
  if (l->envelope[WHAT] == IS_DATA && !l->envelope[HAS_DATA] &&
      l->carrier.n_received != l->bundle->bytes)
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

static psplit_code begin(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  if (l->carrier.outward) {
    l->bundle = psplit_i_queue_send_off(l->queue);
    if (!l->bundle) return PSPLIT_OK;
    l->n_moved += !l->bundle->end;
    *out_moved = true;
    return begin_out(l, diag);
  }
  if (!psplit_i_queue_has_room(l->queue)) return PSPLIT_OK;
  *out_moved = true;
  l->state = PSPLIT_I_LANE_ENVELOPE;
  return psplit_i_carrier_envelope(&l->carrier, l->envelope, most_bytes(l), diag);
}

/* Gives credits for what the stage has taken, a quarter of the places together: the sender has the
 * others, and each time may wake it. Behind the end none are kept back. */
static void give_credits(psplit_i_lane *l, bool *out_moved) {
  const uint64_t least = l->data_ended ? 1 : l->queue->depth / 4;
  if (psplit_i_carrier_is_giving(&l->carrier)) return;
  uint64_t taken = psplit_i_queue_n_popped(l->queue);
  if (taken > l->n_moved) taken = l->n_moved; /* the end was taken too */
  if (taken == l->n_credited || taken - l->n_credited < least) return;
  l->n_credited = taken;
  psplit_i_carrier_give_credits(&l->carrier, taken);
  *out_moved = true;
}

static psplit_code take_credits(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  uint64_t n = l->n_credited;
  const psplit_code code =
    psplit_i_carrier_take_credits(&l->carrier, l->n_moved > l->n_credited, diag, &n);
  if (code != PSPLIT_OK || n == l->n_credited) return code;
  if (n < l->n_credited || n > l->n_moved)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "malformed credit message");
  psplit_i_queue_free_places(l->queue, (uint32_t)(n - l->n_credited));
  l->n_credited = n;
  *out_moved = true;
  return PSPLIT_OK;
}

static psplit_code step_data(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  bool complete;
  psplit_code code;
  if (l->data_ended) return PSPLIT_OK;
  if (l->state == PSPLIT_I_LANE_IDLE) return begin(l, diag, out_moved);
  PSPLIT_TRY(psplit_i_carrier_look(&l->carrier, diag, &complete));
  if (!complete) return PSPLIT_OK;
  *out_moved = true;
  if (!l->carrier.outward) {
    code = l->state == PSPLIT_I_LANE_ENVELOPE ? begin_data_in(l, diag) : end_data_in(l, diag);
    if (code != PSPLIT_OK) psplit_i_diag_context(diag, "from rank %d", l->carrier.peer);
    return code;
  }
  clear_packed(l);
  l->data_ended = l->bundle->end;
  psplit_i_bundle_destroy(l->bundle);
  l->bundle = NULL;
  l->state = PSPLIT_I_LANE_IDLE;
out:
  return code;
}

bool psplit_i_lane_is_busy(const psplit_i_lane *l) {
  return psplit_i_carrier_is_busy(&l->carrier, l->state == PSPLIT_I_LANE_DATA);
}

psplit_code psplit_i_lane_step(psplit_i_lane *l, psplit_diag *diag, bool *out_moved) {
  psplit_code code = PSPLIT_OK;
  if (l->ended) return PSPLIT_OK;
  if (l->carrier.outward)
    PSPLIT_TRY(take_credits(l, diag, out_moved));
  else
    give_credits(l, out_moved);
  PSPLIT_TRY(step_data(l, diag, out_moved));
  l->ended = l->data_ended && l->n_credited == l->n_moved &&
             (l->carrier.outward || !psplit_i_carrier_is_giving(&l->carrier));
out:
  return code;
}
