/* Rewrites a message with moved tensors: a walk over its wire format, in skeleton form, that copies
 * every field unchanged except tensor data and enclosing lengths. The bytes have passed the bounded
 * scan, which also bounds the recursion. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "fields.h"
#include "wire.h"

typedef struct rewriter {
  psplit_i_weights *weights;
  psplit_i_arena *arena;
  psplit_diag *diag;
} rewriter;

static psplit_code lost(const rewriter *r) {
  return psplit_i_fail(r->diag, PSPLIT_INTERNAL, "a message changed since it was scanned");
}

static void add_entry(psplit_i_rope *out, psplit_i_arena *arena, const char *key,
                      const char *value) {
  psplit_i_text entry = {0}, whole = {0};
  psplit_i_wire_bytes(&entry, 1, key, strlen(key));
  psplit_i_wire_bytes(&entry, 2, value, strlen(value));
  psplit_i_wire_bytes(&whole, PSPLIT_I_TENSOR_EXTERNAL_DATA, entry.bytes, entry.n);
  if (entry.failed || whole.failed) out->failed = true;
  psplit_i_rope_copy(out, arena, whole.bytes, whole.n);
  psplit_i_text_fini(&entry);
  psplit_i_text_fini(&whole);
}

static void add_external(psplit_i_rope *out, psplit_i_arena *arena, const psplit_i_place *place,
                         uint64_t bytes, bool was_external) {
  char number[24];
  add_entry(out, arena, "location", place->location);
  snprintf(number, sizeof number, "%" PRIu64, place->offset);
  add_entry(out, arena, "offset", number);
  snprintf(number, sizeof number, "%" PRIu64, bytes);
  add_entry(out, arena, "length", number);
  const uint8_t external[] = {PSPLIT_I_TENSOR_DATA_LOCATION << 3 | PSPLIT_I_WIRE_VARINT,
                              ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL};
  if (!was_external) psplit_i_rope_copy(out, arena, external, sizeof external);
}

static void add_payload(psplit_i_rope *out, psplit_i_arena *arena, uint32_t number, uint32_t file,
                        uint64_t offset, uint64_t bytes) {
  psplit_i_rope payload = {0};
  psplit_i_rope_range(&payload, file, offset, bytes);
  psplit_i_rope_message(out, arena, number, &payload);
  psplit_i_rope_fini(&payload);
}

/* Whether an external_data entry says where the data is; others (checksum) stay true. */
static bool is_place_entry(const psplit_i_field *f) {
  const uint8_t *at = f->content;
  for (psplit_i_field key; at < f->end && psplit_i_next_field(&at, f->end, &key);) {
    if (key.number != 1 || key.wire_type != PSPLIT_I_WIRE_BYTES) continue;
    const size_t n = (size_t)(key.end - key.content);
    return (n == 8 && memcmp(key.content, "location", n) == 0) ||
           (n == 6 &&
            (memcmp(key.content, "offset", n) == 0 || memcmp(key.content, "length", n) == 0));
  }
  return false;
}

static psplit_code add_view(rewriter *r, const psplit_i_field *f, bool external,
                            psplit_i_rope *out) {
  ProtobufCAllocator *plain = NULL;
  Onnx__PayloadView *view =
    onnx__payload_view__unpack(plain, (size_t)(f->end - f->content), f->content);
  if (!view) return psplit_i_nomem(r->diag);
  if (view->field != PSPLIT_I_TENSOR_RAW_DATA || !external)
    add_payload(out, r->arena, view->field, 0, view->offset, view->bytes);
  onnx__payload_view__free_unpacked(view, plain);
  return PSPLIT_OK;
}

static void *scratch_alloc(void *arena, size_t bytes) { return psplit_i_arena_alloc(arena, bytes); }

static void scratch_free(void *arena, void *memory) {
  (void)arena;
  (void)memory;
}

/* Whether a tensor has no elements, whatever its type; nothing was checked in training_info. */
static bool is_empty(const Onnx__TensorProto *tensor) {
  bool empty = false;
  for (size_t i = 0; i < tensor->n_dims; i++) {
    if (tensor->dims[i] < 0) return false;
    empty |= tensor->dims[i] == 0;
  }
  return empty;
}

static psplit_code rewrite_tensor(rewriter *r, const uint8_t *at, const uint8_t *end,
                                  psplit_i_rope *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  ProtobufCAllocator allocator = {scratch_alloc, scratch_free, &scratch};
  const Onnx__TensorProto *tensor = onnx__tensor_proto__unpack(&allocator, (size_t)(end - at), at);
  if (!tensor) PSPLIT_FAIL(psplit_i_nomem(r->diag));
  const bool was_external = tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  psplit_i_payload payload;
  psplit_i_place place = {0};
  static const uint8_t no_data[] = {PSPLIT_I_TENSOR_RAW_DATA << 3 | PSPLIT_I_WIRE_BYTES, 0};
  const bool found = psplit_i_tensor_payload(r->weights->model, tensor, &payload);
  if (was_external && !found && !is_empty(tensor))
    PSPLIT_FAIL(psplit_i_fail(r->diag, PSPLIT_UNSUPPORTED,
                              "tensor \"%s\" has external data in a part of the model that is not "
                              "run (training_info), which cannot be taken along",
                              tensor->name ? tensor->name : ""));
  if (found)
    PSPLIT_TRY(psplit_i_weights_place(r->weights, &payload, was_external, r->diag, &place));
  while (at < end) {
    psplit_i_field f;
    if (!psplit_i_next_field(&at, end, &f)) PSPLIT_TRY(lost(r));
    if (f.number == PSPLIT_I_TENSOR_VIEW) {
      PSPLIT_TRY(add_view(r, &f, place.external, out));
      continue;
    }
    const bool drop =
      was_external &&
      ((f.number == PSPLIT_I_TENSOR_EXTERNAL_DATA && (!place.external || is_place_entry(&f))) ||
       (f.number == PSPLIT_I_TENSOR_DATA_LOCATION && !place.external));
    if (!drop) psplit_i_rope_view(out, f.start, (size_t)(f.end - f.start));
  }
  if (place.external)
    add_external(out, r->arena, &place, payload.bytes, was_external);
  else if (was_external && !found)
    psplit_i_rope_copy(out, r->arena, no_data, sizeof no_data);
  else if (was_external)
    add_payload(out, r->arena, PSPLIT_I_TENSOR_RAW_DATA, payload.file, payload.offset,
                payload.bytes);
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

static psplit_code rewrite_message(rewriter *r, const ProtobufCMessageDescriptor *descriptor,
                                   const uint8_t *at, const uint8_t *end, psplit_i_rope *out);

static psplit_code rewrite_content(rewriter *r, const ProtobufCMessageDescriptor *descriptor,
                                   const psplit_i_field *f, psplit_i_rope *out) {
  psplit_code code;
  psplit_i_rope inner = {0};
  if (descriptor == &onnx__tensor_proto__descriptor)
    PSPLIT_TRY(rewrite_tensor(r, f->content, f->end, &inner));
  else
    PSPLIT_TRY(rewrite_message(r, descriptor, f->content, f->end, &inner));
  psplit_i_rope_message(out, r->arena, f->number, &inner);
out:
  psplit_i_rope_fini(&inner);
  return code;
}

static psplit_code rewrite_message(rewriter *r, const ProtobufCMessageDescriptor *descriptor,
                                   const uint8_t *at, const uint8_t *end, psplit_i_rope *out) {
  psplit_code code = PSPLIT_OK;
  while (at < end) {
    psplit_i_field f;
    if (!psplit_i_next_field(&at, end, &f)) return lost(r);
    const ProtobufCFieldDescriptor *known =
      f.wire_type == PSPLIT_I_WIRE_BYTES
        ? protobuf_c_message_descriptor_get_field(descriptor, f.number)
        : NULL;
    if (known && known->type == PROTOBUF_C_TYPE_MESSAGE)
      PSPLIT_TRY(rewrite_content(r, known->descriptor, &f, out));
    else
      psplit_i_rope_view(out, f.start, (size_t)(f.end - f.start));
  }
out:
  return code;
}

psplit_code psplit_i_rewrite_field(psplit_i_weights *weights,
                                   const ProtobufCMessageDescriptor *descriptor,
                                   const uint8_t *bytes, size_t n, psplit_i_arena *arena,
                                   psplit_diag *diag, psplit_i_rope *out) {
  rewriter r = {.weights = weights, .arena = arena, .diag = diag};
  psplit_i_field f;
  if (!psplit_i_next_field(&bytes, bytes + n, &f)) return lost(&r);
  return rewrite_content(&r, descriptor, &f, out);
}
