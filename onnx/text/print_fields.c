/* Fields by the names and numbers of onnx.proto. */
#include <inttypes.h>
#include <string.h>

#include "print.h"
#include "wire.h"

static size_t count_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  size_t n;
  memcpy(&n, (const char *)message + field->quantifier_offset, sizeof n);
  return n;
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  const char *const quantifier = (const char *)message + field->quantifier_offset;
  if (field->label == PROTOBUF_C_LABEL_REPEATED) return count_of(message, field) > 0;
  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
    uint32_t which;
    memcpy(&which, quantifier, sizeof which);
    return which == field->id;
  }
  if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
    const void *value;
    memcpy(&value, (const char *)message + field->offset, sizeof value);
    return value != NULL;
  }
  protobuf_c_boolean has;
  memcpy(&has, quantifier, sizeof has);
  return has;
}

static bool is_left(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                    uint64_t printed) {
  if (field->id >= 64 || (printed & PSPLIT_I_FIELD(field->id))) return false; /* payload_view */
  return is_set(message, field);
}

bool psplit_i_has_more(const ProtobufCMessage *message, uint64_t printed) {
  if (message->n_unknown_fields) return true;
  for (unsigned i = 0; i < message->descriptor->n_fields; i++)
    if (is_left(message, &message->descriptor->fields[i], printed)) return true;
  return false;
}

/* "key": "value" */
static void print_pair(psplit_i_printer *printer, const Onnx__StringStringEntryProto *pair) {
  if (!pair->key || !pair->value || pair->base.n_unknown_fields) {
    psplit_i_print_spelled_out(printer, &pair->base);
    return;
  }
  psplit_i_print_string(printer, pair->key, strlen(pair->key));
  psplit_i_print(printer, ": ");
  psplit_i_print_string(printer, pair->value, strlen(pair->value));
}

void psplit_i_print_pairs(psplit_i_printer *printer, size_t n,
                          Onnx__StringStringEntryProto *const *items) {
  psplit_i_print(printer, "[");
  for (size_t i = 0; i < n; i++) {
    psplit_i_print_comma(printer, i == 0);
    print_pair(printer, items[i]);
  }
  psplit_i_print(printer, "]");
}

static void print_opset(psplit_i_printer *printer, const Onnx__OperatorSetIdProto *opset) {
  if (!opset->domain || !opset->has_version || opset->base.n_unknown_fields) {
    psplit_i_print_spelled_out(printer, &opset->base);
    return;
  }
  psplit_i_print_string(printer, opset->domain, strlen(opset->domain));
  psplit_i_text_addf(printer->out, ": %" PRId64, opset->version);
}

static void print_message(psplit_i_printer *printer, const ProtobufCMessage *message) {
  const ProtobufCMessageDescriptor *descriptor = message->descriptor;
  const void *own = message;
  const psplit_i_message_printer *kind = printer->syntax;
  while (kind->descriptor && kind->descriptor != descriptor) kind++;
  if (descriptor == &onnx__string_string_entry_proto__descriptor)
    print_pair(printer, own);
  else if (descriptor == &onnx__operator_set_id_proto__descriptor)
    print_opset(printer, own);
  else if (kind->descriptor)
    kind->print(printer, own);
  else
    psplit_i_print_spelled_out(printer, message);
}

/* The value at `at`; returns its size. */
static size_t print_value(psplit_i_printer *printer, const ProtobufCFieldDescriptor *field,
                          const char *at) {
#define LOAD(type) \
  type value;      \
  memcpy(&value, at, sizeof value)
  switch (field->type) {
    case PROTOBUF_C_TYPE_INT32: {
      LOAD(int32_t);
      psplit_i_text_addf(printer->out, "%" PRId32, value);
      return sizeof value;
    }
    case PROTOBUF_C_TYPE_INT64: {
      LOAD(int64_t);
      psplit_i_text_addf(printer->out, "%" PRId64, value);
      return sizeof value;
    }
    case PROTOBUF_C_TYPE_UINT64: {
      LOAD(uint64_t);
      psplit_i_text_addf(printer->out, "%" PRIu64, value);
      return sizeof value;
    }
    case PROTOBUF_C_TYPE_FLOAT: {
      LOAD(float);
      psplit_i_print_float(printer, value, false);
      return sizeof value;
    }
    case PROTOBUF_C_TYPE_DOUBLE: {
      LOAD(double);
      psplit_i_print_double(printer, value);
      return sizeof value;
    }
    case PROTOBUF_C_TYPE_ENUM: {
      LOAD(int);
      const ProtobufCEnumValue *named =
        protobuf_c_enum_descriptor_get_value(field->descriptor, value);
      if (named)
        psplit_i_print(printer, named->name);
      else
        psplit_i_text_addf(printer->out, "%d", value);
      return sizeof value;
    }
    case PROTOBUF_C_TYPE_STRING: {
      LOAD(const char *);
      psplit_i_print_string(printer, value, strlen(value));
      return sizeof value;
    }
    case PROTOBUF_C_TYPE_BYTES: {
      LOAD(ProtobufCBinaryData);
      psplit_i_print_string(printer, value.data, value.len);
      return sizeof value;
    }
    default: {
      LOAD(const ProtobufCMessage *);
      print_message(printer, value);
      return sizeof value;
    }
  }
#undef LOAD
}

static void print_known(psplit_i_printer *printer, const ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field) {
  const char *place = (const char *)message + field->offset;
  psplit_i_text_addf(printer->out, "%s: ", field->name);
  if (field->label != PROTOBUF_C_LABEL_REPEATED) {
    print_value(printer, field, place);
    return;
  }
  const char *item;
  memcpy(&item, place, sizeof item);
  psplit_i_print(printer, "[");
  for (size_t i = 0, n = count_of(message, field); i < n; i++) {
    psplit_i_print_comma(printer, i == 0);
    item += print_value(printer, field, item);
  }
  psplit_i_print(printer, "]");
}

static void print_unknown(psplit_i_printer *printer, const ProtobufCMessageUnknownField *field) {
  uint64_t value = 0;
  psplit_i_text_addf(printer->out, "%" PRIu32 ": ", field->tag);
  switch (field->wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
      psplit_i_varint_read(field->data, field->len, &value);
      psplit_i_text_addf(printer->out, "%" PRIu64, value);
      return;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED: {
      const unsigned width = psplit_i_varint_read(field->data, field->len, &value);
      psplit_i_print_string(printer, field->data + width, field->len - width);
      return;
    }
    default:
      for (size_t i = field->len; i > 0; i--) value = value << 8 | field->data[i - 1];
      psplit_i_text_addf(printer->out, "fixed%u(%" PRIu64 ")", 8 * (unsigned)field->len, value);
  }
}

static void separate(psplit_i_printer *printer, bool lines, bool *io_first) {
  if (!*io_first) psplit_i_print(printer, lines ? "," : ", ");
  if (lines) psplit_i_print_line(printer);
  *io_first = false;
}

void psplit_i_print_fields(psplit_i_printer *printer, const ProtobufCMessage *message,
                           uint64_t printed, bool lines) {
  bool first = true;
  for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
    if (!is_left(message, field, printed)) continue;
    separate(printer, lines, &first);
    print_known(printer, message, field);
  }
  for (unsigned i = 0; i < message->n_unknown_fields; i++) {
    separate(printer, lines, &first);
    print_unknown(printer, &message->unknown_fields[i]);
  }
}

void psplit_i_print_more(psplit_i_printer *printer, const ProtobufCMessage *message,
                         uint64_t printed) {
  if (!psplit_i_has_more(message, printed)) return;
  psplit_i_print(printer, " @{");
  psplit_i_print_fields(printer, message, printed, false);
  psplit_i_print(printer, "}");
}

void psplit_i_print_spelled_out(psplit_i_printer *printer, const ProtobufCMessage *message) {
  psplit_i_print(printer, "{");
  psplit_i_print_fields(printer, message, 0, false);
  psplit_i_print(printer, "}");
}
