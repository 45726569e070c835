/* Fields without a syntax of their own, by name or number of onnx.proto. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parse.h"
#include "wire.h"

enum { LARGEST_FIELD = (1 << 29) - 1, MAX_NESTING = 100 };

bool psplit_i_enter(psplit_i_parser *parser) {
  if (parser->depth < MAX_NESTING) {
    parser->depth++;
    return true;
  }
  if (parser->lexer.code == PSPLIT_OK)
    psplit_i_lexer_fail(
      &parser->lexer,
      psplit_i_fail(parser->lexer.diag, PSPLIT_LIMIT,
                    "graphs, types or messages nest more than %d deep in the text", MAX_NESTING));
  return false;
}

void psplit_i_leave(psplit_i_parser *parser) { parser->depth--; }

/* "key": "value" */
static Onnx__StringStringEntryProto *parse_pair(psplit_i_parser *parser) {
  if (psplit_i_at(&parser->lexer, "{"))
    return psplit_i_parse_spelled_out(parser, &onnx__string_string_entry_proto__descriptor);
  Onnx__StringStringEntryProto *pair =
    psplit_i_new_message(parser, &onnx__string_string_entry_proto__descriptor);
  pair->key = psplit_i_parse_string(parser, "a key, \"...\"");
  psplit_i_expect(&parser->lexer, ":", "after a key");
  pair->value = psplit_i_parse_string(parser, "a value, \"...\"");
  return pair;
}

void psplit_i_parse_pairs(psplit_i_parser *parser, size_t *n,
                          Onnx__StringStringEntryProto ***items) {
  do {
    Onnx__StringStringEntryProto *pair = parse_pair(parser);
    psplit_i_push(parser, n, (void **)items, &pair, sizeof pair);
  } while (psplit_i_accept(&parser->lexer, ","));
  psplit_i_expect(&parser->lexer, "]", "after \"key\": \"value\"");
}

/* "domain" : version */
static Onnx__OperatorSetIdProto *parse_opset(psplit_i_parser *parser) {
  if (psplit_i_at(&parser->lexer, "{"))
    return psplit_i_parse_spelled_out(parser, &onnx__operator_set_id_proto__descriptor);
  Onnx__OperatorSetIdProto *opset =
    psplit_i_new_message(parser, &onnx__operator_set_id_proto__descriptor);
  opset->domain = psplit_i_parse_string(parser, "a domain, \"...\"");
  psplit_i_expect(&parser->lexer, ":", "after the domain of an operator set");
  opset->version = psplit_i_parse_int(parser, INT64_MIN, INT64_MAX, "the version");
  opset->has_version = true;
  return opset;
}

void *psplit_i_parse_message(psplit_i_parser *parser,
                             const ProtobufCMessageDescriptor *descriptor) {
  if (psplit_i_at(&parser->lexer, "{")) return psplit_i_parse_spelled_out(parser, descriptor);
  if (descriptor == &onnx__string_string_entry_proto__descriptor) return parse_pair(parser);
  if (descriptor == &onnx__operator_set_id_proto__descriptor) return parse_opset(parser);
  for (const psplit_i_message_syntax *kind = parser->syntax; kind->descriptor; kind++)
    if (kind->descriptor == descriptor) return kind->parse(parser);
  psplit_i_expected(&parser->lexer, "'{' and the fields of a message");
  return psplit_i_new_message(parser, descriptor);
}

static int parse_enum(psplit_i_parser *parser, const ProtobufCEnumDescriptor *descriptor) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (lexer->token.kind != PSPLIT_I_TOKEN_WORD)
    return (int)psplit_i_parse_int(parser, INT32_MIN, INT32_MAX, "a name or a number");
  const ProtobufCEnumValue *value =
    protobuf_c_enum_descriptor_get_value_by_name(descriptor, psplit_i_token_string(parser));
  if (!value) {
    char what[96];
    snprintf(what, sizeof what, "a name of %s, or a number", descriptor->short_name);
    psplit_i_expected(lexer, what);
    return 0;
  }
  psplit_i_lexer_next(lexer);
  return value->value;
}

/* A value of the field's type; returns its size. */
static size_t parse_value(psplit_i_parser *parser, const ProtobufCFieldDescriptor *field,
                          void *out) {
#define STORE(type, expression)        \
  do {                                 \
    const type value = (expression);   \
    memcpy(out, &value, sizeof value); \
    return sizeof value;               \
  } while (0)
  switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
      STORE(int32_t, (int32_t)psplit_i_parse_int(parser, INT32_MIN, INT32_MAX, "a number"));
    case PROTOBUF_C_TYPE_INT64:
      STORE(int64_t, psplit_i_parse_int(parser, INT64_MIN, INT64_MAX, "a number"));
    case PROTOBUF_C_TYPE_UINT64:
      STORE(uint64_t, psplit_i_parse_uint(parser, UINT64_MAX, "a number"));
    case PROTOBUF_C_TYPE_FLOAT: STORE(float, psplit_i_parse_float(parser));
    case PROTOBUF_C_TYPE_DOUBLE: STORE(double, psplit_i_parse_double(parser));
    case PROTOBUF_C_TYPE_ENUM: STORE(int, parse_enum(parser, field->descriptor));
    case PROTOBUF_C_TYPE_STRING: STORE(char *, psplit_i_parse_string(parser, "a string, \"...\""));
    case PROTOBUF_C_TYPE_BYTES:
      STORE(ProtobufCBinaryData, psplit_i_parse_bytes(parser, "a string, \"...\""));
    case PROTOBUF_C_TYPE_MESSAGE: STORE(void *, psplit_i_parse_message(parser, field->descriptor));
    default: break; /* no other type is in onnx.proto, but for PayloadView's */
  }
#undef STORE
  psplit_i_expected(&parser->lexer, "a field of another type");
  return 0;
}

/* Marks a field that stands once as set; false if it was. */
static bool claim(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  void *quantifier = (char *)message + field->quantifier_offset;
  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
    uint32_t *which = quantifier;
    if (*which) return false;
    *which = field->id;
    return true;
  }
  if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
    void *value;
    memcpy(&value, (char *)message + field->offset, sizeof value);
    return !value;
  }
  protobuf_c_boolean *has = quantifier;
  if (*has) return false;
  *has = true;
  return true;
}

static void parse_known(psplit_i_parser *parser, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field, size_t at) {
  psplit_i_lexer *lexer = &parser->lexer;
  char *const place = (char *)message + field->offset;
  if (field->label != PROTOBUF_C_LABEL_REPEATED) {
    if (!claim(message, field)) {
      psplit_i_error_at(lexer, at, "%s is given twice, or beside a field that excludes it",
                        field->name);
      return;
    }
    parse_value(parser, field, place);
    return;
  }
  psplit_i_expect(lexer, "[", "before the values of a repeated field");
  if (psplit_i_accept(lexer, "]")) return;
  size_t *n = (size_t *)(void *)((char *)message + field->quantifier_offset);
  do {
    ProtobufCBinaryData value; /* as large as any */
    const size_t size = parse_value(parser, field, &value);
    psplit_i_push(parser, n, (void **)(void *)place, &value, size);
  } while (psplit_i_accept(lexer, ","));
  psplit_i_expect(lexer, "]", "after the values of a repeated field");
}

/* The value of a field that onnx.proto has not, as it stands on the wire behind the tag. */
static unsigned parse_wire_value(psplit_i_parser *parser, psplit_i_text *out) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (lexer->token.kind == PSPLIT_I_TOKEN_STRING) {
    const ProtobufCBinaryData bytes = psplit_i_parse_bytes(parser, "");
    psplit_i_wire_varint(out, bytes.len);
    psplit_i_text_add(out, bytes.data, bytes.len);
    return PSPLIT_I_WIRE_BYTES;
  }
  const bool narrow = psplit_i_at_word(lexer, "fixed32");
  if (narrow || psplit_i_at_word(lexer, "fixed64")) {
    psplit_i_lexer_next(lexer);
    psplit_i_expect(lexer, "(", "after fixed32 or fixed64");
    const uint64_t value =
      psplit_i_parse_uint(parser, narrow ? UINT32_MAX : UINT64_MAX, "a number");
    psplit_i_expect(lexer, ")", "after a number");
    for (unsigned i = 0; i < (narrow ? 4u : 8u); i++) {
      const uint8_t byte = (uint8_t)(value >> (8 * i));
      psplit_i_text_add(out, &byte, 1);
    }
    return narrow ? PSPLIT_I_WIRE_FIXED32 : PSPLIT_I_WIRE_FIXED64;
  }
  if (lexer->token.kind != PSPLIT_I_TOKEN_INTEGER)
    psplit_i_expected(lexer, "a number, fixed32(number), fixed64(number) or a string");
  const bool negative = lexer->token.kind == PSPLIT_I_TOKEN_INTEGER && *lexer->token.bytes == '-';
  psplit_i_wire_varint(
    out, negative ? (uint64_t)psplit_i_parse_int(parser, INT64_MIN, INT64_MAX, "a number")
                  : psplit_i_parse_uint(parser, UINT64_MAX, "a number"));
  return PSPLIT_I_WIRE_VARINT;
}

static void parse_unknown(psplit_i_parser *parser, ProtobufCMessage *message, uint32_t number) {
  psplit_i_text wire = {0};
  ProtobufCMessageUnknownField field = {.tag = number};
  field.wire_type = (ProtobufCWireType)parse_wire_value(parser, &wire);
  field.len = wire.n;
  field.data = wire.failed ? NULL
                           : (uint8_t *)psplit_i_arena_strndup(
                               parser->arena, wire.bytes ? wire.bytes : "", wire.n);
  psplit_i_text_fini(&wire);
  if (!field.data) {
    psplit_i_lexer_fail(&parser->lexer, psplit_i_nomem(parser->lexer.diag));
    return;
  }
  size_t n = message->n_unknown_fields;
  psplit_i_push(parser, &n, (void **)&message->unknown_fields, &field, sizeof field);
  message->n_unknown_fields = (unsigned)n;
}

static void parse_field(psplit_i_parser *parser, ProtobufCMessage *message) {
  psplit_i_lexer *lexer = &parser->lexer;
  const ProtobufCMessageDescriptor *descriptor = message->descriptor;
  const size_t at = lexer->token.at;
  char what[96];
  if (lexer->token.kind == PSPLIT_I_TOKEN_INTEGER) {
    const int64_t number = psplit_i_parse_int(parser, 1, LARGEST_FIELD, "a field number");
    const ProtobufCFieldDescriptor *known =
      protobuf_c_message_descriptor_get_field(descriptor, (unsigned)number);
    if (known)
      psplit_i_error_at(lexer, at, "field %" PRId64 " has a name: %s", number, known->name);
    psplit_i_expect(lexer, ":", "after the number of a field");
    if (lexer->code == PSPLIT_OK) parse_unknown(parser, message, (uint32_t)number);
    return;
  }
  const ProtobufCFieldDescriptor *field =
    lexer->token.kind == PSPLIT_I_TOKEN_WORD
      ? protobuf_c_message_descriptor_get_field_by_name(descriptor, psplit_i_token_string(parser))
      : NULL;
  if (!field || field->type == PROTOBUF_C_TYPE_UINT32 ||
      field->descriptor == &onnx__payload_view__descriptor) {
    snprintf(what, sizeof what, "a field of %s, or a number", descriptor->short_name);
    psplit_i_expected(lexer, what);
    return;
  }
  psplit_i_lexer_next(lexer);
  psplit_i_expect(lexer, ":", "after the name of a field");
  if (lexer->code == PSPLIT_OK) parse_known(parser, message, field, at);
}

void psplit_i_parse_fields(psplit_i_parser *parser, ProtobufCMessage *message, const char *close) {
  if (psplit_i_accept(&parser->lexer, close)) return;
  if (!psplit_i_enter(parser)) return;
  do parse_field(parser, message);
  while (psplit_i_accept(&parser->lexer, ","));
  psplit_i_expect(&parser->lexer, close, "after fields");
  psplit_i_leave(parser);
}

void psplit_i_parse_more(psplit_i_parser *parser, ProtobufCMessage *message) {
  if (!psplit_i_accept(&parser->lexer, "@")) return;
  psplit_i_expect(&parser->lexer, "{", "after '@'");
  psplit_i_parse_fields(parser, message, "}");
}

void *psplit_i_parse_spelled_out(psplit_i_parser *parser,
                                 const ProtobufCMessageDescriptor *descriptor) {
  ProtobufCMessage *message = psplit_i_new_message(parser, descriptor);
  if (psplit_i_expect(&parser->lexer, "{", "before the fields of a message"))
    psplit_i_parse_fields(parser, message, "}");
  return message;
}
