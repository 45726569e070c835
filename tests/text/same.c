#include "same.h"

#include <stdlib.h>
#include <string.h>

#include "wire.h"

static void shorten(ProtobufCMessageUnknownField *field) {
  uint64_t value;
  if (field->wire_type != PROTOBUF_C_WIRE_TYPE_VARINT &&
      field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
    return;
  const unsigned width = psplit_i_varint_read(field->data, field->len, &value);
  const unsigned shortest = psplit_i_varint_width(value);
  memmove(field->data + shortest, field->data + width, field->len - width);
  psplit_i_varint_write(field->data, shortest, value);
  field->len -= width - shortest;
}

void shorten_unknown(ProtobufCMessage *message) {
  for (unsigned i = 0; i < message->n_unknown_fields; i++) shorten(&message->unknown_fields[i]);
  for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
    const char *quantifier = (char *)message + field->quantifier_offset;
    void *place = (char *)message + field->offset;
    size_t n = 1;
    uint32_t which = field->id;
    ProtobufCMessage **inner = place;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) continue;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
      memcpy(&n, quantifier, sizeof n);
      memcpy(&inner, place, sizeof inner);
    } else if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
      memcpy(&which, quantifier, sizeof which);
    }
    for (size_t k = 0; k < n && which == field->id; k++)
      if (inner[k]) shorten_unknown(inner[k]);
  }
}

packed pack_model(const Onnx__ModelProto *model) {
  packed out;
  out.n = onnx__model_proto__get_packed_size(model);
  out.bytes = malloc(out.n + 1);
  if (!out.bytes) abort();
  onnx__model_proto__pack(model, out.bytes);
  return out;
}

bool same_packed(const Onnx__ModelProto *a, const Onnx__ModelProto *b) {
  packed one = pack_model(a), two = pack_model(b);
  const bool same = one.n == two.n && memcmp(one.bytes, two.bytes, one.n) == 0;
  free(one.bytes);
  free(two.bytes);
  return same;
}
