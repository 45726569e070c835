#include "mpi_lane.h"

#include <stdlib.h>
#include <string.h>

/* The message of sizes: what it is, ns to the deadline (0: none), of a failure its code and the
 * bytes of its text, which are the data; then for each tensor: type, bytes, rank, dims. */
enum { WHAT, DEADLINE, FAILURE_CODE, FAILURE_BYTES, N_HEAD };
enum { IS_DATA, IS_END, IS_FAILURE };
enum { SIZES_EACH = 3 + PSPLIT_I_MAX_RANK };

static int n_sizes(const psplit_i_lane *l) { return N_HEAD + (int)l->n_tensors * SIZES_EACH; }
static int64_t *sizes_of(const psplit_i_lane *l, uint32_t i) {
  return l->sizes + N_HEAD + (size_t)i * SIZES_EACH;
}

static int tag_of(const psplit_i_lane *l, int what) {
  return PSPLIT_I_TAG_LANES + PSPLIT_I_TAGS_EACH * (int)l->link + what;
}

psplit_code psplit_i_lane_init(psplit_i_lane *l, psplit_diag *diag) {
  l->credit_request = MPI_REQUEST_NULL;
  l->sizes = calloc((size_t)n_sizes(l), sizeof *l->sizes);
  l->packed = calloc((size_t)l->n_tensors + 1, sizeof *l->packed);
  return l->sizes && l->packed ? PSPLIT_OK : psplit_i_nomem(diag);
}

void psplit_i_lane_fini(psplit_i_lane *l) {
  free(l->sizes);
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

static psplit_code begin_out(psplit_i_lane *l, psplit_diag *diag) {
  /* What takes as long as to wake a thread, or less, waits until the stage has computed. */
  enum { OVERLAPPED_BYTES = 256 << 10 };
  psplit_code code = PSPLIT_OK;
  uint64_t bytes = 0;
  psplit_i_tensor_view view;
  if (!reserve_requests(l, 1)) return psplit_i_nomem(diag);
  const psplit_diag *failure = l->bundle->failure;
  const int64_t deadline_ns = l->bundle->deadline_ns;
  int64_t left_ns = deadline_ns ? deadline_ns - psplit_i_now_ns() : 0;
  if (deadline_ns && !left_ns) left_ns = -1;
  l->sizes[WHAT] = l->bundle->end ? IS_END : failure ? IS_FAILURE : IS_DATA;
  l->sizes[DEADLINE] = left_ns;
  l->sizes[FAILURE_CODE] = failure ? (int64_t)failure->code : 0;
  l->sizes[FAILURE_BYTES] = failure ? (int64_t)strlen(failure->message) : 0;
  const uint32_t n = l->sizes[WHAT] == IS_DATA ? l->n_tensors : 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t *sizes = sizes_of(l, i);
    PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
    sizes[0] = view.data_type;
    sizes[1] = (int64_t)view.n_bytes;
    sizes[2] = (int64_t)view.n_dims;
    memcpy(sizes + 3, view.dims, view.n_dims * sizeof *sizes);
  }
  MPI_Isend(l->sizes, n_sizes(l), MPI_INT64_T, l->peer, tag_of(l, PSPLIT_I_TAG_SIZES),
            MPI_COMM_WORLD, &l->requests[l->n_requests++]);
  for (uint32_t i = 0; i < n; i++) {
    psplit_i_tensor *tensor = l->bundle->tensors[i];
    PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
    if (!view.data && view.n_bytes) {
      l->packed[i] = malloc((size_t)view.n_bytes);
      if (!l->packed[i]) return psplit_i_nomem(diag);
      PSPLIT_TRY(psplit_i_tensor_pack(tensor, &view, diag, l->packed[i]));
    }
    if (!move(l, view.data ? view.data : l->packed[i], view.n_bytes)) return psplit_i_nomem(diag);
    bytes += view.n_bytes;
  }
  if (failure && !move(l, l->bundle->failure->message, (uint64_t)l->sizes[FAILURE_BYTES]))
    return psplit_i_nomem(diag);
  psplit_i_bell_ring(l->bell, (uint32_t)l->peer, bytes < OVERLAPPED_BYTES);
  l->state = PSPLIT_I_LANE_DATA;
out:
  return code;
}

static psplit_code no_sense(psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_INTERNAL, "a message of sizes makes no sense");
}

static psplit_code begin_head_in(psplit_i_lane *l, psplit_diag *diag) {
  psplit_i_bundle *bundle = l->bundle;
  const int64_t *sizes = l->sizes, code = sizes[FAILURE_CODE], bytes = sizes[FAILURE_BYTES];
  bundle->end = sizes[WHAT] == IS_END;
  if (sizes[DEADLINE]) bundle->deadline_ns = psplit_i_now_ns() + sizes[DEADLINE];
  if (sizes[WHAT] < IS_DATA || sizes[WHAT] > IS_FAILURE) return no_sense(diag);
  if (sizes[WHAT] != IS_FAILURE) return PSPLIT_OK;
  if (code <= PSPLIT_OK || code > PSPLIT_INTERNAL || bytes < 0 || bytes >= PSPLIT_DIAG_BYTES)
    return no_sense(diag);
  bundle->failure = calloc(1, sizeof *bundle->failure);
  if (!bundle->failure || !move(l, bundle->failure->message, (uint64_t)bytes))
    return psplit_i_nomem(diag);
  bundle->failure->code = (psplit_code)code;
  return PSPLIT_OK;
}

static psplit_code begin_data_in(psplit_i_lane *l, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  l->began_ns = psplit_i_now_ns();
  l->bundle = psplit_i_bundle_create(l->n_tensors);
  if (!l->bundle) return psplit_i_nomem(diag);
  PSPLIT_TRY(begin_head_in(l, diag));
  for (uint32_t i = 0; i < l->n_tensors && l->sizes[WHAT] == IS_DATA; i++) {
    const int64_t *sizes = sizes_of(l, i);
    psplit_i_tensor_view view;
    if (sizes[2] < 0 || sizes[2] > PSPLIT_I_MAX_RANK || sizes[1] < 0) return no_sense(diag);
    PSPLIT_TRY(psplit_i_tensor_create(l->ort, (int32_t)sizes[0], sizes + 3, (size_t)sizes[2], diag,
                                      &l->bundle->tensors[i]));
    PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
    if (!view.data && sizes[1]) {
      l->packed[i] = malloc((size_t)sizes[1]);
      if (!l->packed[i]) return psplit_i_nomem(diag);
    } else if (view.data && (uint64_t)sizes[1] != view.n_bytes) {
      return no_sense(diag);
    }
    if (!move(l, view.data ? view.data : l->packed[i], (uint64_t)sizes[1]))
      return psplit_i_nomem(diag);
    l->bundle->bytes += (uint64_t)sizes[1];
  }
  l->state = PSPLIT_I_LANE_DATA;
out:
  return code;
}

/* All data is there: strings are made, the bundle goes to the stage. */
static psplit_code end_data_in(psplit_i_lane *l, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    if (!l->packed[i]) continue;
    psplit_i_tensor_view view;
    PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
    PSPLIT_TRY(psplit_i_tensor_unpack(l->bundle->tensors[i], view.n_elements, l->packed[i],
                                      (uint64_t)sizes_of(l, i)[1], diag));
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
    MPI_Test(&l->requests[l->n_complete], &complete, MPI_STATUS_IGNORE);
    if (!complete) return false;
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
  MPI_Irecv(l->sizes, n_sizes(l), MPI_INT64_T, l->peer, tag_of(l, PSPLIT_I_TAG_SIZES),
            MPI_COMM_WORLD, &l->requests[0]);
  l->n_requests = 1;
  l->state = PSPLIT_I_LANE_SIZES;
  return PSPLIT_OK;
}

/* Sends the credits of what the stage has taken. */
static bool step_credits_out(psplit_i_lane *l) {
  uint64_t taken = psplit_i_queue_n_popped(l->queue);
  if (taken > l->n_moved) taken = l->n_moved; /* the end was taken too */
  if (taken == l->n_credited) return false;
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
    MPI_Test(&l->credit_request, &complete, MPI_STATUS_IGNORE);
    if (!complete) return PSPLIT_OK;
    *out_moved = true;
    if (l->outward) {
      if (l->credits > l->n_moved - l->n_credited)
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
  if (l->state == PSPLIT_I_LANE_SIZES) return begin_data_in(l, diag);
  if (!l->outward) return end_data_in(l, diag);
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
