#include "frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const uint32_t MAGIC = 0x70736c74;
/* Before the data of a tensor: its type, bytes and rank, then dims. Type 0, and nothing else: an
 * output that is not a dense tensor. */
enum { TYPE, BYTES, RANK, N_ROW };

static const char *const KINDS[PSPLIT_I_FRAME_N_KINDS] = {"nothing", "open",    "opened",
                                                          "run",     "outputs", "failure"};

static psplit_code put(int fd, const void *bytes, uint64_t n, psplit_diag *diag) {
  const char *at = bytes;
  while (n) {
    const ssize_t done = send(fd, at, (size_t)n, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return psplit_i_fail(diag, PSPLIT_IO, "the peer is gone");
    at += done;
    n -= (uint64_t)done;
  }
  return PSPLIT_OK;
}

static psplit_code get(int fd, void *bytes, uint64_t n, psplit_diag *diag) {
  char *at = bytes;
  while (n) {
    const ssize_t done = recv(fd, at, (size_t)n, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return psplit_i_fail(diag, PSPLIT_IO, "the peer is gone");
    at += done;
    n -= (uint64_t)done;
  }
  return PSPLIT_OK;
}

static psplit_code put_tensor(int fd, const psplit_i_tensor *tensor, psplit_diag *diag) {
  psplit_i_tensor_view view;
  int64_t row[N_ROW + PSPLIT_I_MAX_RANK];
  void *packed = NULL;
  bool is_dense = false;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_is_dense(tensor, diag, &is_dense));
  if (!is_dense) return put(fd, (const int64_t[N_ROW]){0}, N_ROW * sizeof *row, diag);
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
  row[TYPE] = view.data_type;
  row[BYTES] = (int64_t)view.n_bytes;
  row[RANK] = (int64_t)view.n_dims;
  memcpy(row + N_ROW, view.dims, view.n_dims * sizeof *row);
  PSPLIT_TRY(put(fd, row, (N_ROW + view.n_dims) * sizeof *row, diag));
  if (!view.data && view.n_bytes) { /* strings */
    packed = malloc((size_t)view.n_bytes);
    if (!packed) return psplit_i_nomem(diag);
    PSPLIT_TRY(psplit_i_tensor_pack(tensor, &view, diag, packed));
  }
  PSPLIT_TRY(put(fd, packed ? packed : view.data, view.n_bytes, diag));
out:
  free(packed);
  return code;
}

psplit_code psplit_i_frame_send(int fd, const psplit_i_frame *frame, const char *text,
                                psplit_i_tensor *const *tensors, psplit_diag *diag) {
  psplit_i_frame head = *frame;
  psplit_i_tensor_view view;
  psplit_code code = PSPLIT_OK;
  head.magic = MAGIC;
  /* What cannot be sent is found before anything is. */
  for (uint32_t i = 0; i < head.n_tensors; i++) {
    bool is_dense = true;
    if (head.kind == PSPLIT_I_FRAME_OUTPUTS)
      PSPLIT_TRY(psplit_i_tensor_is_dense(tensors[i], diag, &is_dense));
    if (is_dense) PSPLIT_TRY(psplit_i_tensor_look(tensors[i], diag, &view));
  }
  PSPLIT_TRY(put(fd, &head, sizeof head, diag));
  PSPLIT_TRY(put(fd, text, head.n_text, diag));
  for (uint32_t i = 0; i < head.n_tensors; i++) PSPLIT_TRY(put_tensor(fd, tensors[i], diag));
out:
  return code;
}

psplit_code psplit_i_frame_receive(int fd, psplit_i_frame_kind wanted, uint64_t number,
                                   uint32_t n_tensors, psplit_diag *diag, psplit_i_frame *out) {
  psplit_i_frame head;
  psplit_code code;
  PSPLIT_TRY(get(fd, &head, sizeof head, diag));
  const bool answers = wanted == PSPLIT_I_FRAME_OPENED || wanted == PSPLIT_I_FRAME_OUTPUTS;
  const bool fails = answers && head.kind == PSPLIT_I_FRAME_FAILURE;
  if (head.magic != MAGIC || (head.kind != (uint32_t)wanted && !fails))
    return psplit_i_fail(
      diag, PSPLIT_INVALID, "malformed message: expected \"%s\", got %" PRIu32 " (%s)",
      KINDS[wanted], head.kind, head.kind < PSPLIT_I_FRAME_N_KINDS ? KINDS[head.kind] : "unknown");
  if (number && head.number != number)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "malformed message: it is about run %" PRIu64 ", not %" PRIu64,
                         head.number, number);
  if (head.n_tensors != (fails ? 0 : n_tensors))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "malformed message: it has %" PRIu32 " tensors, not %" PRIu32,
                         head.n_tensors, fails ? 0 : n_tensors);
  if (head.n_text > (fails ? PSPLIT_DIAG_BYTES + PSPLIT_HINT_BYTES : PSPLIT_I_FRAME_TEXT_BYTES))
    return psplit_i_fail(diag, PSPLIT_INVALID, "malformed message: its text has %" PRIu64 " bytes",
                         head.n_text);
  if (fails && (head.code <= PSPLIT_OK || head.code > PSPLIT_CANCELLED))
    return psplit_i_fail(diag, PSPLIT_INVALID, "malformed message: a failure with code %" PRId32,
                         head.code);
  if (fails && (head.subject >= PSPLIT_N_SUBJECTS || head.hint >= PSPLIT_N_HINTS))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "malformed message: a failure with subject %" PRIu32 " and hint %" PRIu32,
                         head.subject, head.hint);
  *out = head;
out:
  return code;
}

psplit_code psplit_i_frame_text(int fd, const psplit_i_frame *frame, psplit_diag *diag,
                                char **out_text) {
  char *text = malloc((size_t)frame->n_text + 1);
  if (!text) return psplit_i_nomem(diag);
  const psplit_code code = get(fd, text, frame->n_text, diag);
  text[frame->n_text] = '\0';
  if (code == PSPLIT_OK)
    *out_text = text;
  else
    free(text);
  return code;
}

psplit_code psplit_i_frame_send_failure(int fd, uint64_t number, const psplit_diag *why,
                                        psplit_diag *diag) {
  psplit_i_text text = {0};
  psplit_code code;
  psplit_i_text_add(&text, why->message, strlen(why->message) + 1);
  for (uint32_t i = 0; i < why->n_hint_arguments; i++) {
    const char *argument = psplit_hint_argument(why, i);
    psplit_i_text_add(&text, argument, strlen(argument) + 1);
  }
  const psplit_i_frame frame = {.kind = PSPLIT_I_FRAME_FAILURE,
                                .number = number,
                                .n_text = text.n,
                                .code = (int32_t)why->code,
                                .subject = (uint32_t)why->subject,
                                .hint = (uint32_t)why->hint};
  code =
    text.failed ? psplit_i_nomem(diag) : psplit_i_frame_send(fd, &frame, text.bytes, NULL, diag);
  psplit_i_text_fini(&text);
  return code;
}

psplit_code psplit_i_frame_failure(const psplit_i_frame *frame, const char *text,
                                   psplit_diag *out) {
  psplit_i_advice advice = {.hint = (psplit_hint)frame->hint,
                            .subject = (psplit_subject)frame->subject};
  const char *at = text + strlen(text) + 1, *end = text + frame->n_text;
  for (uint32_t i = 0; i < PSPLIT_HINT_ARGUMENTS && at < end; i++) {
    advice.arguments[i] = at;
    at += strlen(at) + 1;
  }
  return psplit_i_fail_about(out, (psplit_code)frame->code, advice, "%s", text);
}

/* What precedes the elements of a tensor. */
typedef struct heading {
  int32_t type;
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
  uint64_t n_elements, n_bytes;
} heading;

static bool of_strings(const heading *h) { return !psplit_i_element_bits(h->type); }

/* Numbers are read into the tensor itself: the memory of one that is only announced is not touched
 * before its bytes arrive. */
static psplit_code get_numbers(int fd, const psplit_i_ort *ort, const heading *h, psplit_diag *diag,
                               psplit_i_tensor **out) {
  psplit_i_tensor_view view;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_make(ort, h->type, h->dims, h->n_dims, diag, out, &view));
  PSPLIT_TRY(get(fd, view.data, view.n_bytes, diag));
out:
  return code;
}

/* n bytes that are malloc'd as they come: more may be promised than there is room for. */
static psplit_code get_all(int fd, uint64_t n, psplit_diag *diag, char **out) {
  static const uint64_t STEP_BYTES = 1 << 20;
  psplit_code code = PSPLIT_OK;
  char *all = NULL;
  uint64_t at = 0;
  do {
    const uint64_t step = n - at < STEP_BYTES + at ? n - at : STEP_BYTES + at;
    char *grown = realloc(all, (size_t)(at + step) + 1);
    if (!grown) PSPLIT_FAIL(psplit_i_nomem(diag));
    all = grown;
    PSPLIT_TRY(get(fd, all + at, step, diag));
    at += step;
  } while (at < n);
  *out = all;
  all = NULL;
out:
  free(all);
  return code;
}

/* Strings come as n_elements lengths, then texts. The tensor is created after all of them have
 * arrived, since creating it takes memory for each. */
static psplit_code get_strings(int fd, const psplit_i_ort *ort, const heading *h, psplit_diag *diag,
                               psplit_i_tensor **out) {
  psplit_code code;
  if (h->n_elements > h->n_bytes / sizeof(uint64_t) || h->n_bytes > SIZE_MAX / 2)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "malformed message: %" PRIu64 " strings in %" PRIu64 " bytes",
                         h->n_elements, h->n_bytes);
  char *packed = NULL;
  PSPLIT_TRY(get_all(fd, h->n_bytes, diag, &packed));
  PSPLIT_TRY(psplit_i_tensor_create(ort, h->type, h->dims, h->n_dims, diag, out));
  code = psplit_i_tensor_unpack(*out, h->n_elements, packed, h->n_bytes, diag);
out:
  free(packed);
  return code;
}

/* Reads and checks a heading. Type 0: an output that is absent, where it `may_lack`. */
static psplit_code get_heading(int fd, bool may_lack, psplit_diag *diag, heading *out) {
  int64_t row[N_ROW];
  psplit_code code;
  *out = (heading){0};
  PSPLIT_TRY(get(fd, row, sizeof row, diag));
  if (may_lack && !row[TYPE] && !row[BYTES] && !row[RANK]) return PSPLIT_OK;
  out->type = row[TYPE] > 0 && row[TYPE] <= INT32_MAX ? (int32_t)row[TYPE] : 0;
  if (!psplit_i_element_name(out->type))
    return psplit_i_fail(diag, PSPLIT_INVALID, "malformed message: a tensor of data type %" PRId64,
                         row[TYPE]);
  if (row[RANK] < 0 || row[RANK] > PSPLIT_I_MAX_RANK)
    return psplit_i_fail(diag, PSPLIT_INVALID, "malformed message: a tensor of rank %" PRId64,
                         row[RANK]);
  out->n_dims = (size_t)row[RANK];
  PSPLIT_TRY(get(fd, out->dims, out->n_dims * sizeof *out->dims, diag));
  uint64_t n_bytes = 0;
  if (!psplit_i_tensor_size(out->type, out->dims, out->n_dims, &out->n_elements, &n_bytes) ||
      row[BYTES] < 0 || (!of_strings(out) && (uint64_t)row[BYTES] != n_bytes))
    return psplit_i_fail(
      diag, PSPLIT_INVALID,
      "malformed message: a tensor of %" PRId64 " bytes, which are not its shape's", row[BYTES]);
  out->n_bytes = (uint64_t)row[BYTES];
out:
  return code;
}

static psplit_code get_tensor(int fd, const psplit_i_ort *ort, bool may_lack, psplit_diag *diag,
                              psplit_i_tensor **out) {
  heading h;
  psplit_i_tensor *tensor = NULL;
  psplit_code code;
  PSPLIT_TRY(get_heading(fd, may_lack, diag, &h));
  if (!h.type) return PSPLIT_OK;
  code = (of_strings(&h) ? get_strings : get_numbers)(fd, ort, &h, diag, &tensor);
out:
  if (code == PSPLIT_OK)
    *out = tensor;
  else
    psplit_i_tensor_release(tensor);
  return code;
}

psplit_code psplit_i_frame_tensors(int fd, const psplit_i_frame *frame, const psplit_i_ort *ort,
                                   psplit_diag *diag, psplit_i_tensor **out) {
  psplit_code code = PSPLIT_OK;
  uint32_t n = 0;
  const bool may_lack = frame->kind == PSPLIT_I_FRAME_OUTPUTS;
  for (; n < frame->n_tensors; n++) PSPLIT_TRY(get_tensor(fd, ort, may_lack, diag, &out[n]));
out:
  for (uint32_t i = 0; code != PSPLIT_OK && i < n; i++) {
    psplit_i_tensor_release(out[i]);
    out[i] = NULL;
  }
  return code;
}
