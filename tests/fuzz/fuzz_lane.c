/* Fuzz target: what the other rank of a link sends, in messages and through memory in common. The
 * first byte says which, in which direction the link goes, how many tensors a bundle has and how
 * many bundles may wait. Then, of messages: two bytes of length and as many bytes each. Through
 * memory, one step after the other: up to 127, so many bytes are put into the ring as they should
 * be; more, eight bytes are written to any place of the segment.
 *
 * Whatever comes, the link ends with a reason, waits, or hands on bundles that are whole. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "mpi_lane.h"
#include "mpi_shared.h"
#include "ort.h"

/* What malloc and realloc are in the code under test: sizes that a liar names do not count as
 * memory that was lost. */
void *fuzz_lane_malloc(size_t n);
void *fuzz_lane_realloc(void *old, size_t n);
enum { MOST_MEMORY = 1 << 24 };
void *fuzz_lane_malloc(size_t n) { return n > MOST_MEMORY ? NULL : malloc(n); }
void *fuzz_lane_realloc(void *old, size_t n) { return n > MOST_MEMORY ? NULL : realloc(old, n); }

/* What the other rank has left to send. */
typedef struct liar {
  const uint8_t *at;
  size_t n;
} liar;

static liar peer;

/* The next n bytes, or as many as there are; returns how many. */
static size_t take(void *out, size_t n) {
  if (n > peer.n) n = peer.n;
  if (n) memcpy(out, peer.at, n);
  peer.at += n;
  peer.n -= n;
  return n;
}

/* Requests to receive, in order; a request is its place plus one. */
enum { MOST_REQUESTS = 1 << 16, SENT = MOST_REQUESTS + 1 };
static struct {
  void *at;
  size_t n;
} requests[MOST_REQUESTS];
static int n_requests;

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  static volatile unsigned char seen;
  (void)to, (void)tag, (void)comm;
  const size_t n = (size_t)count * (type == MPI_UINT64_T ? sizeof(uint64_t) : 1);
  for (size_t i = 0; i < n; i++) seen = ((const unsigned char *)data)[i];
  (void)seen;
  *request = SENT;
  return 0;
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
  (void)from, (void)tag, (void)comm;
  if (n_requests == MOST_REQUESTS) abort();
  requests[n_requests].at = data;
  requests[n_requests].n = (size_t)count * (type == MPI_UINT64_T ? sizeof(uint64_t) : 1);
  *request = ++n_requests;
  return 0;
}

/* MPI refuses a message that is longer than asked for, and the run ends: it comes cut off here. */
int MPI_Test(MPI_Request *request, int *complete, MPI_Status *status) {
  uint8_t head[2];
  *complete = 1;
  if (status) status->n_bytes = 0;
  if (*request != MPI_REQUEST_NULL && *request != SENT) {
    if (take(head, sizeof head) < sizeof head) {
      *complete = 0;
      return 0;
    }
    const size_t n = (size_t)head[0] | (size_t)head[1] << 8, most = requests[*request - 1].n;
    const size_t n_bytes = take(requests[*request - 1].at, n < most ? n : most);
    if (status) status->n_bytes = (int)n_bytes;
  }
  *request = MPI_REQUEST_NULL;
  return 0;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count) {
  (void)type;
  *count = status->n_bytes;
  return 0;
}

void psplit_i_doorbell_ring(psplit_i_doorbell *bell, uint32_t rank, bool can_wait) {
  (void)bell, (void)rank, (void)can_wait;
}

/* Memory in common: of rank 0, which is under test, as large as it asks for; of rank 1 some. */
struct psplit_i_shared {
  unsigned char *of[2];
  uint64_t n_bytes[2];
};

psplit_code psplit_i_shared_create(uint32_t n_ranks, uint64_t n_bytes, psplit_diag *diag,
                                   psplit_i_shared **out) {
  enum { OF_LIAR = 8192 };
  (void)n_ranks;
  psplit_i_shared *s = calloc(1, sizeof *s);
  if (!s) return psplit_i_nomem(diag);
  s->n_bytes[0] = n_bytes;
  s->n_bytes[1] = OF_LIAR;
  for (int i = 0; i < 2; i++) s->of[i] = calloc(1, (size_t)s->n_bytes[i]);
  if (!s->of[0] || !s->of[1]) abort();
  *out = s;
  return PSPLIT_OK;
}

void psplit_i_shared_destroy(psplit_i_shared *s) {
  for (int i = 0; s && i < 2; i++) free(s->of[i]);
  free(s);
}

void *psplit_i_shared_of(const psplit_i_shared *s, uint32_t rank, uint64_t *out_bytes) {
  *out_bytes = s->n_bytes[rank];
  return s->of[rank];
}

static psplit_i_shared *in_common;

/* Where its ring is, and how large, the other rank says now. */
void psplit_i_shared_meet(const psplit_i_shared *s) {
  in_common = (psplit_i_shared *)s;
  take(s->of[1], 2 * sizeof(uint64_t));
}

bool psplit_i_shared_reserve(void *at, uint64_t n) {
  memset(at, 0, (size_t)n);
  return true;
}

/* The head of the only link: where the ring is, its size, and bytes that were put in. */
enum { RING_AT = 0, RING_BYTES = 8, N_PUT = 64 };

static uint64_t word_at(const unsigned char *segment, size_t at) {
  uint64_t word;
  memcpy(&word, segment + at, sizeof word);
  return word;
}

static void lie_in_memory(uint32_t owner) {
  unsigned char *segment = in_common->of[owner], bytes[128];
  uint8_t what, where[3];
  if (!take(&what, 1)) return;
  if (what > 127) {
    uint64_t word = 0;
    take(where, sizeof where);
    take(&word, sizeof word);
    const size_t at = (size_t)where[0] | (size_t)where[1] << 8 | (size_t)where[2] << 16;
    const size_t most = (size_t)in_common->n_bytes[owner] - sizeof word;
    memcpy(segment + (what & 1 ? at % 256 : at % most), &word, sizeof word);
    return;
  }
  if (owner != 0) return;
  const uint64_t offset = word_at(segment, RING_AT), n_ring = word_at(segment, RING_BYTES);
  uint64_t n_put = word_at(segment, N_PUT);
  const size_t n = take(bytes, what);
  for (size_t i = 0; i < n && n_ring; i++, n_put++) {
    const uint64_t at = offset + n_put % n_ring;
    if (at < in_common->n_bytes[0]) segment[at] = bytes[i];
  }
  memcpy(segment + N_PUT, &n_put, sizeof n_put);
}

/* Values as ONNX Runtime has them, as far as links use them; no larger than MOST_MEMORY. */
struct OrtValue {
  int type;
  size_t n_dims, n_elements, n_text;
  int64_t dims[PSPLIT_I_MAX_RANK];
  char **strings; /* [n_elements] */
  void *data;
};

static char refusal;

static const char *message_of(const OrtStatus *status) {
  (void)status;
  return "too large";
}

static void release_status(OrtStatus *status) { (void)status; }

static OrtStatus *create_tensor(OrtAllocator *allocator, const int64_t *dims, size_t n_dims,
                                int type, OrtValue **out) {
  (void)allocator;
  uint64_t n_elements, n_bytes;
  const int32_t ours = psplit_i_element_from_ort(type);
  if (!psplit_i_tensor_size(ours, dims, n_dims, &n_elements, &n_bytes) || n_bytes > MOST_MEMORY ||
      (type == ORT_STRING && n_elements > MOST_MEMORY / 64))
    return (OrtStatus *)&refusal;
  OrtValue *value = calloc(1, sizeof *value);
  if (!value) abort();
  value->type = type;
  value->n_dims = n_dims;
  value->n_elements = (size_t)n_elements;
  if (n_dims) memcpy(value->dims, dims, n_dims * sizeof *dims);
  if (type == ORT_STRING)
    value->strings = calloc((size_t)n_elements + 1, sizeof *value->strings);
  else
    value->data = malloc((size_t)n_bytes + (n_bytes == 0));
  *out = value;
  return NULL;
}

static void release_value(OrtValue *value) {
  for (size_t i = 0; value->strings && i < value->n_elements; i++) free(value->strings[i]);
  free(value->strings);
  free(value->data);
  free(value);
}

static OrtStatus *is_tensor(const OrtValue *value, int *out) {
  *out = value != NULL;
  return NULL;
}

/* A value is its own shape. */
static OrtStatus *shape_of(const OrtValue *value, OrtShapeInfo **out) {
  memcpy(out, &value, sizeof value);
  return NULL;
}

static void release_shape(OrtShapeInfo *info) { (void)info; }

static OrtStatus *type_of(const OrtShapeInfo *info, int *out) {
  *out = ((const OrtValue *)info)->type;
  return NULL;
}

static OrtStatus *rank_of(const OrtShapeInfo *info, size_t *out) {
  *out = ((const OrtValue *)info)->n_dims;
  return NULL;
}

static OrtStatus *dims_of(const OrtShapeInfo *info, int64_t *out, size_t n) {
  if (n) memcpy(out, ((const OrtValue *)info)->dims, n * sizeof *out);
  return NULL;
}

static OrtStatus *data_of(OrtValue *value, void **out) {
  *out = value->data;
  return NULL;
}

static OrtStatus *text_bytes_of(const OrtValue *value, size_t *out) {
  *out = value->n_text;
  return NULL;
}

static OrtStatus *resize_string(OrtValue *value, size_t index, size_t n, char **out) {
  if (index >= value->n_elements || n > MOST_MEMORY) return (OrtStatus *)&refusal;
  free(value->strings[index]);
  *out = value->strings[index] = malloc(n + 1);
  value->n_text += n;
  return NULL;
}

static void touch(const psplit_i_bundle *bundle, uint32_t n_tensors) {
  static volatile unsigned seen;
  psplit_diag diag = {0};
  if (bundle->n != n_tensors) abort();
  for (uint32_t i = 0; i < bundle->n; i++) {
    psplit_i_tensor_view view;
    if (!bundle->tensors[i]) continue;
    if (bundle->end || bundle->failure) abort();
    if (psplit_i_tensor_look(bundle->tensors[i], &diag, &view) != PSPLIT_OK) abort();
    for (uint64_t k = 0; view.data && k < view.n_bytes; k++)
      seen += ((const unsigned char *)view.data)[k];
  }
  if (bundle->failure) seen += (unsigned)strlen(bundle->failure->message);
  (void)seen;
}

/* Bundles for a link that goes out: none has tensors, some have failed, the last is the end. */
static void fill(psplit_i_queue *queue, uint32_t n_tensors) {
  while (psplit_i_queue_has_room(queue)) {
    psplit_i_bundle *bundle = psplit_i_bundle_create(n_tensors);
    if (!bundle) abort();
    bundle->end = queue->n + 1 == queue->depth;
    psplit_i_queue_arrive(queue, bundle);
  }
}

static void drive(psplit_i_lane *lane, bool through_memory) {
  psplit_diag diag = {0};
  bool moved = true;
  while (!lane->ended && (moved || peer.n)) {
    moved = false;
    if (through_memory) lie_in_memory(lane->carrier.outward ? 1 : 0);
    const size_t left = peer.n;
    const psplit_code code = psplit_i_lane_step(lane, &diag, &moved);
    if ((code == PSPLIT_OK) == (*diag.message != '\0')) abort();
    if (code != PSPLIT_OK) return;
    while (!lane->carrier.outward && lane->queue->n) {
      psplit_i_bundle *bundle = psplit_i_queue_pop(lane->queue);
      touch(bundle, lane->n_tensors);
      psplit_i_bundle_destroy(bundle);
      moved = true;
    }
    if (!through_memory && !moved && left == peer.n) return;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static psplit_i_ort ort;
  if (n < 2) return 0;
  const bool through_memory = data[0] & 1, outward = data[0] & 2;
  const uint32_t n_tensors = data[0] >> 2 & 3, depth = 1 + (data[0] >> 4 & 3);
  ort.api = (OrtApi){.GetErrorMessage = message_of,
                     .ReleaseStatus = release_status,
                     .CreateTensorAsOrtValue = create_tensor,
                     .ReleaseValue = release_value,
                     .IsTensor = is_tensor,
                     .GetTensorTypeAndShape = shape_of,
                     .ReleaseTensorTypeAndShapeInfo = release_shape,
                     .GetTensorElementType = type_of,
                     .GetDimensionsCount = rank_of,
                     .GetDimensions = dims_of,
                     .GetTensorMutableData = data_of,
                     .GetStringTensorDataLength = text_bytes_of,
                     .GetResizedStringTensorElementBuffer = resize_string};
  peer = (liar){data + 1, n - 1};
  n_requests = 0;
  psplit_diag diag = {0};
  psplit_i_queue queue;
  psplit_i_channels *channels = NULL;
  if (psplit_i_queue_init(&queue, depth, &diag) != PSPLIT_OK) abort();
  psplit_i_lane lane = {.n_tensors = n_tensors,
                        .carrier = {.peer = 1, .outward = outward, .chunk_bytes = 1 << 12},
                        .queue = &queue,
                        .ort = &ort};
  if (psplit_i_lane_init(&lane, &diag) != PSPLIT_OK) abort();
  if (outward) fill(&queue, n_tensors);
  if (through_memory) {
    const psplit_i_channel_row row = {outward ? 0 : 1, outward ? 1 : 0, 4096};
    if (psplit_i_channels_create(0, 2, &row, 1, &diag, &channels) != PSPLIT_OK) abort();
    lane.carrier.channel = psplit_i_channels_get(channels, 0);
  }
  if (lane.carrier.channel || !through_memory) drive(&lane, through_memory);
  psplit_i_bundle_destroy(lane.bundle);
  for (uint32_t i = 0; i < n_tensors; i++) free(lane.packed[i]);
  psplit_i_lane_fini(&lane);
  psplit_i_channels_destroy(channels);
  psplit_i_queue_fini(&queue);
  return 0;
}
