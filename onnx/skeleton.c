#include "skeleton.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activity.h"
#include "fields.h"
#include "onnx.pb-c.h"
#include "wire.h"
#include "wire_rules.h"

enum {
  SMALL_WINDOW = 4 << 10, /* after a skip: more may be skipped soon */
  LARGE_WINDOW = 1 << 20
};

/* protobuf-c reads lengths of at most five bytes, which is enough for what a skeleton can hold. */
enum { WIDEST_LENGTH = 5 };

/* Memory protobuf-c and our arena take: for each message beyond its sizeof, for each field while
 * parsing, for each string or byte string beyond its length, for each field kept as unknown. */
enum {
  MESSAGE_OVERHEAD_BYTES = 16,
  FIELD_OVERHEAD_BYTES = 40,
  BYTES_OVERHEAD_BYTES = 16,
  UNKNOWN_OVERHEAD_BYTES = 64
};

typedef struct frame {
  const psplit_i_message_rule *rule;
  uint64_t file_end; /* of the content */
  size_t length_at;  /* where the skeleton holds its length */
  unsigned length_width;
  uint32_t seen; /* singular message fields met, by number */
  bool has_view;
} frame;

typedef struct scanner {
  int fd;
  uint64_t file_bytes;
  uint64_t position; /* next byte to scan */
  /* window: bytes [window_start, window_start + n_window) of the file */
  uint8_t *window;
  uint64_t window_start;
  size_t n_window, window_step;
  psplit_i_wire_rules rules;
  frame stack[PSPLIT_I_MAX_DEPTH];
  unsigned depth, graph_depth; /* open messages; graphs among them */
  uint64_t max_unpacked_bytes;
  psplit_diag *diag;
  psplit_i_skeleton *out;
} scanner;

static psplit_code malformed(scanner *s, uint64_t at, const char *what) {
  return psplit_i_fail(s->diag, PSPLIT_MALFORMED,
                       "not a readable ONNX model: %s at byte %" PRIu64 ", in %s", what, at,
                       s->stack[s->depth - 1].rule->descriptor->short_name);
}

/* A field of the model itself that goes on behind the end of the file. */
static psplit_code cut_off(scanner *s, unsigned width, uint64_t length) {
  const uint64_t least = psplit_i_sat_add_u64(s->position + width, length);
  return psplit_i_fail(s->diag, PSPLIT_MALFORMED,
                       "not a whole ONNX model: a length at byte %" PRIu64
                       " runs past the end of the file, which has %" PRIu64 " bytes, to %" PRIu64
                       ": it was cut off, or is not a model",
                       s->position, s->file_bytes, least);
}

/* Makes the window hold the byte at `position` and as many as are left, up to `n` <= SMALL_WINDOW;
 * *out_n of them. */
static psplit_code peek(scanner *s, size_t n, const uint8_t **out_bytes, size_t *out_n) {
  const uint64_t left = s->file_bytes - s->position;
  if (n > left) n = (size_t)left;
  if (s->position < s->window_start || s->position + n > s->window_start + s->n_window) {
    s->window_start = s->position;
    s->n_window = 0;
    while (s->n_window < n) {
      uint64_t want = s->window_step - s->n_window;
      if (want > left - s->n_window) want = left - s->n_window;
      const ssize_t got =
        pread(s->fd, s->window + s->n_window, (size_t)want, (off_t)(s->window_start + s->n_window));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return psplit_i_fail(s->diag, PSPLIT_IO, "reading failed: %s", strerror(errno));
      if (got == 0)
        return psplit_i_fail(s->diag, PSPLIT_IO, "the file was truncated while it was read");
      s->n_window += (size_t)got;
    }
    if (s->window_step < LARGE_WINDOW) s->window_step *= 2;
  }
  *out_bytes = s->window + (s->position - s->window_start);
  *out_n = n;
  return PSPLIT_OK;
}

/* Room for `n` more skeleton bytes. */
static psplit_code reserve(scanner *s, size_t n) {
  psplit_i_skeleton *out = s->out;
  /* protobuf-c takes messages below 2 GiB, and spans hold 32-bit offsets. */
  if (n > INT32_MAX || out->n_bytes + n > INT32_MAX)
    return psplit_i_fail(s->diag, PSPLIT_LIMIT,
                         "the model's structure without its weights is over 2 GiB");
  if (!psplit_i_vec_grow((void **)&out->bytes, &out->capacity, out->n_bytes, n, 1))
    return psplit_i_nomem(s->diag);
  return PSPLIT_OK;
}

static psplit_code append(scanner *s, const void *bytes, size_t n) {
  psplit_code code;
  PSPLIT_TRY(reserve(s, n));
  memcpy(s->out->bytes + s->out->n_bytes, bytes, n);
  s->out->n_bytes += n;
out:
  return code;
}

/* Copies `n` file bytes from the scan position to the skeleton; strings may not hold a NUL, which
 * would cut them short once unpacked. */
static psplit_code copy_bytes(scanner *s, uint64_t n, bool is_string) {
  psplit_code code = PSPLIT_OK;
  while (n) {
    const uint8_t *bytes;
    size_t got;
    PSPLIT_TRY(peek(s, n < SMALL_WINDOW ? (size_t)n : SMALL_WINDOW, &bytes, &got));
    if (is_string && memchr(bytes, 0, got))
      return malformed(s, s->position, "a string holds a NUL byte");
    PSPLIT_TRY(append(s, bytes, got));
    s->position += got;
    n -= got;
  }
out:
  return code;
}

psplit_code psplit_i_graph_over_limit(uint64_t max_bytes, psplit_diag *diag) {
  return psplit_i_fail_about(diag, PSPLIT_LIMIT, PSPLIT_I_HELPS(MAX_GRAPH_BYTES),
                             "the model's structure needs over %" PRIu64 " MiB of memory",
                             max_bytes >> 20);
}

static psplit_code charge(scanner *s, uint64_t bytes) {
  s->out->unpacked_bytes = psplit_i_sat_add_u64(s->out->unpacked_bytes, bytes);
  const uint64_t total = psplit_i_sat_add_u64(s->out->unpacked_bytes, s->out->n_bytes);
  if (total <= s->max_unpacked_bytes) return PSPLIT_OK;
  return psplit_i_graph_over_limit(s->max_unpacked_bytes, s->diag);
}

static psplit_code open_message(scanner *s, const psplit_i_message_rule *rule,
                                uint64_t content_bytes, unsigned length_width) {
  psplit_code code;
  if (s->depth == PSPLIT_I_MAX_DEPTH)
    return psplit_i_fail(s->diag, PSPLIT_LIMIT, "messages nest more than %d deep at byte %" PRIu64,
                         PSPLIT_I_MAX_DEPTH, s->position);
  PSPLIT_TRY(
    charge(s, rule->descriptor->sizeof_message + MESSAGE_OVERHEAD_BYTES + rule->index_bytes));
  const unsigned width = length_width > WIDEST_LENGTH ? WIDEST_LENGTH : length_width;
  PSPLIT_TRY(reserve(s, width));
  s->stack[s->depth++] = (frame){.rule = rule,
                                 .file_end = s->position + content_bytes,
                                 .length_at = s->out->n_bytes,
                                 .length_width = width,
                                 .has_view = width != length_width};
  if (rule->is_scope) s->graph_depth++;
  s->out->n_bytes += width;
out:
  return code;
}

/* Where the fields of the message on top are recorded: the model's own, its graph's, or nowhere. */
static psplit_i_spans *spans_of(scanner *s) {
  assert(s->out);
  if (s->depth == 1) return &s->out->model_fields;
  if (s->depth == 2 && s->stack[1].rule->descriptor == &onnx__graph_proto__descriptor)
    return &s->out->graph_fields;
  return NULL;
}

static psplit_code close_message(scanner *s) {
  psplit_i_skeleton *out = s->out;
  const frame *top = &s->stack[--s->depth];
  if (s->depth == 0) return PSPLIT_OK;
  if (top->rule->is_scope) s->graph_depth--;
  const size_t content_at = top->length_at + top->length_width;
  psplit_i_varint_write(out->bytes + top->length_at, top->length_width, out->n_bytes - content_at);
  if (top->has_view) s->stack[s->depth - 1].has_view = true;
  psplit_i_spans *spans = spans_of(s);
  if (spans) {
    psplit_i_span *span = &spans->items[spans->n - 1];
    span->file_bytes = top->file_end - span->file_offset;
    span->skeleton_bytes = (uint32_t)(out->n_bytes - span->skeleton_offset);
    span->has_view = top->has_view;
  }
  return PSPLIT_OK;
}

/* Leaves `bytes` payload bytes in the file and puts a PayloadView where the field stood;
 * `tag_at` is the skeleton offset of the field's tag, which the view's own replaces. */
static psplit_code leave_payload(scanner *s, uint32_t field, uint64_t bytes, size_t tag_at) {
  psplit_code code;
  Onnx__PayloadView view = ONNX__PAYLOAD_VIEW__INIT;
  view.has_field = view.has_offset = view.has_bytes = 1;
  view.field = field;
  view.offset = s->position;
  view.bytes = bytes;
  uint8_t packed[64];
  unsigned n = psplit_i_varint_width((uint64_t)PSPLIT_I_TENSOR_VIEW << 3);
  psplit_i_varint_write(packed, n, ((uint64_t)PSPLIT_I_TENSOR_VIEW << 3) | PSPLIT_I_WIRE_BYTES);
  packed[n] = (uint8_t)onnx__payload_view__get_packed_size(&view);
  n += 1 + (unsigned)onnx__payload_view__pack(&view, packed + n + 1);
  s->out->n_bytes = tag_at;
  PSPLIT_TRY(append(s, packed, n));
  PSPLIT_TRY(charge(s, sizeof view + MESSAGE_OVERHEAD_BYTES));
  s->position += bytes;
  s->stack[s->depth - 1].has_view = true;
  if (bytes > SMALL_WINDOW) s->window_step = SMALL_WINDOW;
out:
  return code;
}

static bool wire_type_fits(const psplit_i_field_rule *rule, unsigned wire_type) {
  switch (rule->kind) {
    case PSPLIT_I_FIELD_UNKNOWN: return true;
    case PSPLIT_I_FIELD_VARINT:
      return wire_type == PSPLIT_I_WIRE_VARINT ||
             (rule->repeated && wire_type == PSPLIT_I_WIRE_BYTES);
    case PSPLIT_I_FIELD_FIXED32:
      return wire_type == PSPLIT_I_WIRE_FIXED32 ||
             (rule->repeated && wire_type == PSPLIT_I_WIRE_BYTES);
    case PSPLIT_I_FIELD_FIXED64:
      return wire_type == PSPLIT_I_WIRE_FIXED64 ||
             (rule->repeated && wire_type == PSPLIT_I_WIRE_BYTES);
    default: return wire_type == PSPLIT_I_WIRE_BYTES;
  }
}

/* Whether `n` bytes are a whole number of packed elements, of those kinds whose width is fixed. */
static bool packs_evenly(const psplit_i_field_rule *rule, uint64_t n) {
  if (rule->kind == PSPLIT_I_FIELD_FIXED32) return n % 4 == 0;
  return rule->kind != PSPLIT_I_FIELD_FIXED64 || n % 8 == 0;
}

static bool are_varints(const uint8_t *bytes, size_t n) {
  uint64_t ignored;
  for (unsigned width; n; bytes += width, n -= width)
    if (!(width = psplit_i_varint_read(bytes, n, &ignored))) return false;
  return true;
}

/* Whether the next `n_bytes` bytes, which stay in the file, are whole packed numbers: what is left
 * there is never unpacked, and would be handed on as it is. Leaves the position where it is. */
static psplit_code check_left_varints(scanner *s, uint64_t n_bytes) {
  const uint64_t start = s->position, end = start + n_bytes;
  psplit_code code = PSPLIT_OK;
  while (s->position < end) {
    const uint8_t *bytes;
    size_t n, at = 0;
    uint64_t ignored;
    PSPLIT_TRY(peek(s, SMALL_WINDOW, &bytes, &n));
    if (n > end - s->position) n = (size_t)(end - s->position);
    const bool last = n == end - s->position;
    while (at < n && (last || n - at >= PSPLIT_I_VARINT_MAX)) {
      const unsigned width = psplit_i_varint_read(bytes + at, n - at, &ignored);
      if (width == 0) return malformed(s, s->position + at, "a packed number is cut off");
      at += width;
    }
    s->position += at;
  }
  s->position = start;
out:
  return code;
}

/* The content of a length-delimited field; `tag_at` is where the skeleton holds its tag. */
static psplit_code scan_delimited(scanner *s, uint32_t field, const psplit_i_field_rule *rule,
                                  size_t tag_at) {
  psplit_code code;
  frame *top = &s->stack[s->depth - 1];
  const uint8_t *bytes;
  size_t n;
  PSPLIT_TRY(peek(s, PSPLIT_I_VARINT_MAX, &bytes, &n));
  uint64_t length;
  const unsigned width = psplit_i_varint_read(bytes, n, &length);
  if (width == 0 || width > top->file_end - s->position)
    return malformed(s, s->position, "a length is cut off");
  if (length > top->file_end - s->position - width)
    return s->depth == 1 ? cut_off(s, width, length)
                         : malformed(s, s->position, "a length runs past the end of its message");

  if (rule->kind == PSPLIT_I_FIELD_MESSAGE) {
    if (!rule->repeated) {
      if (top->seen & (UINT32_C(1) << field))
        return malformed(s, s->position, "a message that may occur once occurs twice");
      top->seen |= UINT32_C(1) << field;
    }
    s->position += width;
    PSPLIT_TRY(open_message(s, &s->rules.items[rule->message], length, width));
    return PSPLIT_OK;
  }
  if (!packs_evenly(rule, length)) return malformed(s, s->position, "a packed number is cut off");
  if (rule->payload && length > PSPLIT_I_VIEW_BYTES) {
    s->position += width;
    if (rule->kind == PSPLIT_I_FIELD_VARINT) PSPLIT_TRY(check_left_varints(s, length));
    return leave_payload(s, field, length, tag_at);
  }
  /* A packed element takes a byte in the file and up to eight in memory. */
  const bool packed = rule->kind == PSPLIT_I_FIELD_VARINT;
  PSPLIT_TRY(charge(s, BYTES_OVERHEAD_BYTES));
  PSPLIT_TRY(charge(s, psplit_i_sat_mul_u64(length, packed ? 8 : 1)));
  const unsigned kept_width = width > WIDEST_LENGTH ? WIDEST_LENGTH : width;
  if (kept_width != width) top->has_view = true;
  PSPLIT_TRY(reserve(s, kept_width));
  psplit_i_varint_write(s->out->bytes + s->out->n_bytes, kept_width, length);
  s->out->n_bytes += kept_width;
  s->position += width;
  PSPLIT_TRY(copy_bytes(s, length, rule->kind == PSPLIT_I_FIELD_STRING));
  if (packed && !are_varints(s->out->bytes + s->out->n_bytes - length, (size_t)length))
    return malformed(s, s->position, "a packed number is cut off");
out:
  return code;
}

/* A field that is a number, of which `n` bytes are at `bytes`, its tag included. */
static psplit_code scan_number(scanner *s, unsigned wire_type, unsigned tag_width,
                               const uint8_t *bytes, size_t n) {
  psplit_code code;
  uint64_t ignored;
  unsigned width = 0;
  if (wire_type == PSPLIT_I_WIRE_VARINT)
    width = psplit_i_varint_read(bytes + tag_width, n - tag_width, &ignored);
  else if (wire_type == PSPLIT_I_WIRE_FIXED64)
    width = 8;
  else if (wire_type == PSPLIT_I_WIRE_FIXED32)
    width = 4;
  else
    return malformed(s, s->position, "a field has a wire type that ONNX does not use");
  if (width == 0 || tag_width + width > n) return malformed(s, s->position, "a number is cut off");
  PSPLIT_TRY(append(s, bytes, tag_width + width));
  s->position += tag_width + width;
out:
  return code;
}

/* What the field takes in memory once it is unpacked and indexed. */
static psplit_code charge_field(scanner *s, const psplit_i_field_rule *rule) {
  psplit_code code;
  PSPLIT_TRY(charge(
    s, FIELD_OVERHEAD_BYTES + (rule->kind == PSPLIT_I_FIELD_UNKNOWN ? UNKNOWN_OVERHEAD_BYTES : 0)));
  if (rule->defines) PSPLIT_TRY(charge(s, PSPLIT_I_VALUE_INDEX_BYTES));
  if (rule->captures && s->graph_depth > 1)
    PSPLIT_TRY(charge(s, (uint64_t)PSPLIT_I_VALUE_INDEX_BYTES * (s->graph_depth - 1)));
out:
  return code;
}

static psplit_code scan_field(scanner *s) {
  psplit_code code;
  frame *top = &s->stack[s->depth - 1];
  const uint8_t *bytes;
  size_t n;
  const uint64_t start = s->position;
  const size_t tag_at = s->out->n_bytes;
  PSPLIT_TRY(peek(s, 2 * PSPLIT_I_VARINT_MAX, &bytes, &n));
  if (n > top->file_end - start) n = (size_t)(top->file_end - start);
  uint64_t tag;
  const unsigned tag_width = psplit_i_varint_read(bytes, n, &tag);
  const uint64_t number = tag_width ? tag >> 3 : 0;
  if (tag_width == 0 || tag_width > 5 || number == 0 || number > PSPLIT_I_TENSOR_VIEW)
    return malformed(s, start, "no field starts");
  const uint32_t field = (uint32_t)number;
  const unsigned wire_type = (unsigned)(tag & 7);
  const psplit_i_field_rule unknown = {0};
  const psplit_i_field_rule *rule =
    field < PSPLIT_I_MAX_FIELD ? &top->rule->fields[field] : &unknown;
  if (field == PSPLIT_I_TENSOR_VIEW && top->rule->descriptor == &onnx__tensor_proto__descriptor)
    return psplit_i_fail(s->diag, PSPLIT_UNSUPPORTED,
                         "a tensor uses field number %d, which is reserved, at byte %" PRIu64,
                         PSPLIT_I_TENSOR_VIEW, start);
  if (!wire_type_fits(rule, wire_type))
    return malformed(s, start, "a field has the wrong wire type");

  psplit_i_spans *spans = spans_of(s);
  size_t span_index = 0;
  if (spans) {
    span_index = spans->n;
    if (!psplit_i_vec_push(
          spans, ((psplit_i_span){
                   .file_offset = start, .skeleton_offset = (uint32_t)tag_at, .field = field})))
      return psplit_i_nomem(s->diag);
  }
  PSPLIT_TRY(charge_field(s, rule));
  if (wire_type == PSPLIT_I_WIRE_BYTES) {
    PSPLIT_TRY(append(s, bytes, tag_width));
    s->position += tag_width;
    PSPLIT_TRY(scan_delimited(s, field, rule, tag_at));
    if (rule->kind == PSPLIT_I_FIELD_MESSAGE) return PSPLIT_OK; /* its span ends when it closes */
  } else {
    PSPLIT_TRY(scan_number(s, wire_type, tag_width, bytes, n));
  }
  if (spans) {
    psplit_i_span *span = &spans->items[span_index];
    span->file_bytes = s->position - start;
    span->skeleton_bytes = (uint32_t)(s->out->n_bytes - tag_at);
    span->has_view = span->file_bytes != span->skeleton_bytes;
  }
out:
  return code;
}

psplit_code psplit_i_skeleton_scan(int fd, uint64_t file_bytes, uint64_t max_unpacked_bytes,
                                   const volatile int *cancel, psplit_activity *activity,
                                   psplit_diag *diag, psplit_i_skeleton *out_skeleton) {
  psplit_code code = PSPLIT_OK;
  *out_skeleton = (psplit_i_skeleton){0};
  scanner *s = calloc(1, sizeof *s);
  uint8_t *window = malloc(LARGE_WINDOW);
  if (!s || !window) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  s->fd = fd;
  s->file_bytes = file_bytes;
  s->window = window;
  s->window_step = 16 * SMALL_WINDOW;
  s->max_unpacked_bytes = max_unpacked_bytes;
  s->diag = diag;
  s->out = out_skeleton;
  const unsigned model = psplit_i_wire_rule(&s->rules, &onnx__model_proto__descriptor);
  s->stack[s->depth++] = (frame){.rule = &s->rules.items[model], .file_end = file_bytes};
  psplit_i_activity_begin(activity, PSPLIT_ACTIVITY_BYTES, file_bytes);
  while (s->depth) {
    PSPLIT_TRY(psplit_i_go_on(cancel, diag));
    psplit_i_activity_set(activity, s->position);
    if (s->position == s->stack[s->depth - 1].file_end)
      PSPLIT_TRY(close_message(s));
    else
      PSPLIT_TRY(scan_field(s));
  }
out:
  free(window);
  free(s);
  if (code != PSPLIT_OK) psplit_i_skeleton_fini(out_skeleton);
  return code;
}

void psplit_i_skeleton_fini(psplit_i_skeleton *skeleton) {
  free(skeleton->bytes);
  psplit_i_vec_fini(&skeleton->model_fields);
  psplit_i_vec_fini(&skeleton->graph_fields);
  *skeleton = (psplit_i_skeleton){0};
}
