#include "canonical.h"

#include <string.h>

#include "wire.h"

enum { RAW_DATA = 9, EXTERNAL_DATA = 13, DATA_LOCATION = 14, PAYLOAD_VIEW = 536870911 };

typedef struct writer {
  const psplit_model *model;
  psplit_i_text *out;
  psplit_i_payloads *payloads;
  psplit_diag *diag;
  const uint8_t *raw; /* raw_data of the tensor at hand, where it is in memory */
  size_t n_raw;
} writer;

static psplit_code broken(writer *w) {
  return psplit_i_fail(w->diag, PSPLIT_INTERNAL, "a scanned message cannot be walked");
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *descriptor,
                                                  uint64_t number) {
  return number <= UINT32_MAX
           ? protobuf_c_message_descriptor_get_field(descriptor, (unsigned)number)
           : NULL;
}

static psplit_code write_message(writer *w, const ProtobufCMessageDescriptor *descriptor,
                                 const uint8_t *bytes, size_t n);

/* A tensor's raw bytes, after its other fields: how many, and where to read them. */
static psplit_code write_payload(writer *w, const uint8_t *bytes, size_t n) {
  psplit_code code = PSPLIT_OK;
  Onnx__TensorProto *tensor = onnx__tensor_proto__unpack(NULL, n, bytes);
  if (!tensor) return psplit_i_nomem(w->diag);
  psplit_i_payload payload = {.memory = w->raw, .bytes = w->n_raw};
  const bool external = tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  const bool has_data = w->n_raw || psplit_i_tensor_payload(w->model, tensor, &payload);
  if (has_data || tensor->has_raw_data || external) {
    psplit_i_wire_tag(w->out, RAW_DATA, PSPLIT_I_WIRE_BYTES);
    psplit_i_wire_varint(w->out, has_data ? payload.bytes : 0);
  }
  if (has_data && !psplit_i_vec_push(w->payloads, payload)) code = psplit_i_nomem(w->diag);
  /* Typed fields that stayed in the file. */
  for (size_t v = 0; v < tensor->n_payload_view && code == PSPLIT_OK; v++) {
    const Onnx__PayloadView *view = tensor->payload_view[v];
    if (view->field == RAW_DATA) continue;
    psplit_i_wire_tag(w->out, view->field, PSPLIT_I_WIRE_BYTES);
    psplit_i_wire_varint(w->out, view->bytes);
    const psplit_i_payload typed = {.file = 0, .offset = view->offset, .bytes = view->bytes};
    if (!psplit_i_vec_push(w->payloads, typed)) code = psplit_i_nomem(w->diag);
  }
  onnx__tensor_proto__free_unpacked(tensor, NULL);
  return code;
}

/* One field at `bytes`; *out_used is its width. `is_tensor` leaves out where the data is stored. */
static psplit_code write_field(writer *w, const ProtobufCMessageDescriptor *descriptor,
                               bool is_tensor, const uint8_t *bytes, size_t n, size_t *out_used) {
  uint64_t tag, length;
  const unsigned tag_width = psplit_i_varint_read(bytes, n, &tag);
  if (!tag_width) return broken(w);
  const uint64_t number = tag >> 3;
  size_t used = tag_width;
  unsigned width;
  switch (tag & 7) {
    case PSPLIT_I_WIRE_VARINT:
      width = psplit_i_varint_read(bytes + used, n - used, &length);
      if (!width) return broken(w);
      used += width;
      if (!(is_tensor && number == DATA_LOCATION)) {
        psplit_i_wire_varint(w->out, tag);
        psplit_i_wire_varint(w->out, length);
      }
      break;
    case PSPLIT_I_WIRE_FIXED64:
    case PSPLIT_I_WIRE_FIXED32:
      width = (tag & 7) == PSPLIT_I_WIRE_FIXED64 ? 8 : 4;
      if (n - used < width) return broken(w);
      psplit_i_wire_varint(w->out, tag);
      psplit_i_text_add(w->out, bytes + used, width);
      used += width;
      break;
    case PSPLIT_I_WIRE_BYTES: {
      width = psplit_i_varint_read(bytes + used, n - used, &length);
      if (!width || length > n - used - width) return broken(w);
      used += width;
      const bool storage =
        is_tensor && (number == RAW_DATA || number == EXTERNAL_DATA || number == PAYLOAD_VIEW);
      if (is_tensor && number == RAW_DATA) {
        w->raw = bytes + used;
        w->n_raw = (size_t)length;
      }
      const ProtobufCFieldDescriptor *field = find_field(descriptor, number);
      if (!storage && field && field->type == PROTOBUF_C_TYPE_MESSAGE) {
        /* No length: tag, content, end. Content cannot start with the end's zero byte. */
        psplit_i_wire_varint(w->out, tag);
        const psplit_code code = write_message(w, field->descriptor, bytes + used, (size_t)length);
        if (code != PSPLIT_OK) return code;
        psplit_i_text_add(w->out, "", 1);
      } else if (!storage) {
        psplit_i_wire_bytes(w->out, (uint32_t)number, bytes + used, (size_t)length);
      }
      used += (size_t)length;
      break;
    }
    default: return broken(w);
  }
  *out_used = used;
  return PSPLIT_OK;
}

/* Depth is bounded by the scan. */
static psplit_code write_message(writer *w, const ProtobufCMessageDescriptor *descriptor,
                                 const uint8_t *bytes, size_t n) {
  psplit_code code = PSPLIT_OK;
  const bool is_tensor = descriptor == &onnx__tensor_proto__descriptor;
  if (is_tensor) w->n_raw = 0;
  for (size_t at = 0; at < n;) {
    size_t used = 0;
    PSPLIT_TRY(write_field(w, descriptor, is_tensor, bytes + at, n - at, &used));
    at += used;
  }
  if (is_tensor) PSPLIT_TRY(write_payload(w, bytes, n));
out:
  return code;
}

psplit_code psplit_i_canonical_span(const psplit_model *model,
                                    const ProtobufCMessageDescriptor *owner,
                                    const psplit_i_span *span, psplit_i_text *out,
                                    psplit_i_payloads *payloads, psplit_diag *diag) {
  writer w = {.model = model, .out = out, .payloads = payloads, .diag = diag};
  size_t used;
  const psplit_code code = write_field(
    &w, owner, false, model->skeleton.bytes + span->skeleton_offset, span->skeleton_bytes, &used);
  if (code != PSPLIT_OK) return code;
  return out->failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}
