#include "canonical.h"

#include "fields.h"
#include "wire.h"

typedef struct writer {
  const psplit_model *model;
  psplit_i_text *out;
  psplit_i_payloads *payloads;
  psplit_diag *diag;
  const uint8_t *raw; /* raw_data of the tensor at hand, where it is in memory */
  size_t n_raw;
} writer;

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
    psplit_i_wire_tag(w->out, PSPLIT_I_TENSOR_RAW_DATA, PSPLIT_I_WIRE_BYTES);
    psplit_i_wire_varint(w->out, has_data ? payload.bytes : 0);
  }
  if (has_data && !psplit_i_vec_push(w->payloads, payload)) code = psplit_i_nomem(w->diag);
  /* Typed fields that stayed in the file. */
  for (size_t v = 0; v < tensor->n_payload_view && code == PSPLIT_OK; v++) {
    const Onnx__PayloadView *view = tensor->payload_view[v];
    if (view->field == PSPLIT_I_TENSOR_RAW_DATA) continue;
    psplit_i_wire_tag(w->out, view->field, PSPLIT_I_WIRE_BYTES);
    psplit_i_wire_varint(w->out, view->bytes);
    const psplit_i_payload typed = {.file = 0, .offset = view->offset, .bytes = view->bytes};
    if (!psplit_i_vec_push(w->payloads, typed)) code = psplit_i_nomem(w->diag);
  }
  onnx__tensor_proto__free_unpacked(tensor, NULL);
  return code;
}

/* One field of a message. `is_tensor` leaves out where the data is stored. */
static psplit_code write_field(writer *w, const ProtobufCMessageDescriptor *descriptor,
                               bool is_tensor, const psplit_i_field *field) {
  const size_t n = (size_t)(field->end - field->content);
  uint64_t value;
  switch (field->wire_type) {
    case PSPLIT_I_WIRE_BYTES: break;
    case PSPLIT_I_WIRE_VARINT:
      if (is_tensor && field->number == PSPLIT_I_TENSOR_DATA_LOCATION) return PSPLIT_OK;
      (void)psplit_i_varint_read(field->content, n, &value);
      psplit_i_wire_tag(w->out, field->number, PSPLIT_I_WIRE_VARINT);
      psplit_i_wire_varint(w->out, value);
      return PSPLIT_OK;
    default: /* fixed width */
      psplit_i_wire_tag(w->out, field->number, field->wire_type);
      psplit_i_text_add(w->out, field->content, n);
      return PSPLIT_OK;
  }
  if (is_tensor && field->number == PSPLIT_I_TENSOR_RAW_DATA) {
    w->raw = field->content;
    w->n_raw = n;
  }
  if (is_tensor &&
      (field->number == PSPLIT_I_TENSOR_RAW_DATA ||
       field->number == PSPLIT_I_TENSOR_EXTERNAL_DATA || field->number == PSPLIT_I_TENSOR_VIEW))
    return PSPLIT_OK;
  const ProtobufCFieldDescriptor *known =
    protobuf_c_message_descriptor_get_field(descriptor, field->number);
  if (!known || known->type != PROTOBUF_C_TYPE_MESSAGE) {
    psplit_i_wire_bytes(w->out, field->number, field->content, n);
    return PSPLIT_OK;
  }
  /* No length: tag, content, end. Content cannot start with the end's zero byte. */
  psplit_i_wire_tag(w->out, field->number, PSPLIT_I_WIRE_BYTES);
  const psplit_code code = write_message(w, known->descriptor, field->content, n);
  psplit_i_text_add(w->out, "", 1);
  return code;
}

/* The field at *io_at, which moves past it. */
static psplit_code write_next(writer *w, const ProtobufCMessageDescriptor *descriptor,
                              bool is_tensor, const uint8_t **io_at, const uint8_t *end) {
  psplit_i_field field;
  if (!psplit_i_next_field(io_at, end, &field))
    return psplit_i_fail(w->diag, PSPLIT_INTERNAL, "a scanned message cannot be walked");
  return write_field(w, descriptor, is_tensor, &field);
}

/* Depth is bounded by the scan. */
static psplit_code write_message(writer *w, const ProtobufCMessageDescriptor *descriptor,
                                 const uint8_t *bytes, size_t n) {
  psplit_code code = PSPLIT_OK;
  const bool is_tensor = descriptor == &onnx__tensor_proto__descriptor;
  if (is_tensor) w->n_raw = 0;
  for (const uint8_t *at = bytes; at < bytes + n;)
    PSPLIT_TRY(write_next(w, descriptor, is_tensor, &at, bytes + n));
  if (is_tensor) PSPLIT_TRY(write_payload(w, bytes, n));
out:
  return code;
}

psplit_code psplit_i_canonical_span(const psplit_model *model,
                                    const ProtobufCMessageDescriptor *owner,
                                    const psplit_i_span *span, psplit_i_text *out,
                                    psplit_i_payloads *payloads, psplit_diag *diag) {
  writer w = {.model = model, .out = out, .payloads = payloads, .diag = diag};
  const uint8_t *at = model->skeleton.bytes + span->skeleton_offset;
  const psplit_code code = write_next(&w, owner, false, &at, at + span->skeleton_bytes);
  if (code != PSPLIT_OK) return code;
  return out->failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}
