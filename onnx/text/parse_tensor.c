/* Tensors and their data. */
#include <inttypes.h>
#include <string.h>

#include "names.h"
#include "parse.h"

/* A file holds no more in one message. */
enum { MOST_DATA_BYTES = INT32_MAX };

Onnx__TensorProto *psplit_i_tensor_of_type(psplit_i_parser *parser, const Onnx__TypeProto *type,
                                           size_t at) {
  Onnx__TensorProto *tensor = psplit_i_new_message(parser, &onnx__tensor_proto__descriptor);
  if (parser->lexer.code != PSPLIT_OK) return tensor;
  const Onnx__TypeProto__Tensor *own =
    type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type : NULL;
  if (!own || !own->shape || type->denotation || type->base.n_unknown_fields) {
    psplit_i_error_at(&parser->lexer, at,
                      "expected an element type and dimensions, without more, before data");
    return tensor;
  }
  tensor->has_data_type = own->has_elem_type;
  tensor->data_type = own->elem_type;
  for (size_t i = 0; i < own->shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *dim = own->shape->dim[i];
    if (dim->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
        dim->denotation || dim->base.n_unknown_fields)
      psplit_i_error_at(&parser->lexer, at, "expected dimensions that are numbers before data");
    PSPLIT_I_PUSH(parser, tensor, dims, dim->dim_value);
  }
  return tensor;
}

/* Where values go: raw_data that grows in `raw`, or the tensor's typed field. */
typedef struct target {
  Onnx__TensorProto *tensor;
  const ProtobufCFieldDescriptor *field; /* NULL: raw */
  psplit_i_number_kind kind;
  unsigned bytes; /* of a number */
  psplit_i_text raw;
  uint64_t n_bytes; /* so far */
} target;

static target raw_target(Onnx__TensorProto *tensor) {
  const psplit_i_element *element = psplit_i_element_of(tensor->data_type);
  return (target){
    .tensor = tensor, .kind = element->kind, .bytes = element->bits / 8 / element->parts};
}

static target typed_target(Onnx__TensorProto *tensor) {
  const uint32_t id = psplit_i_element_of(tensor->data_type)->field;
  target out = {.tensor = tensor};
  if (!id) return out;
  out.field = protobuf_c_message_descriptor_get_field(&onnx__tensor_proto__descriptor, id);
  switch (out.field->type) {
    case PROTOBUF_C_TYPE_FLOAT: out.kind = PSPLIT_I_REAL, out.bytes = 4; break;
    case PROTOBUF_C_TYPE_DOUBLE: out.kind = PSPLIT_I_REAL, out.bytes = 8; break;
    case PROTOBUF_C_TYPE_INT32: out.kind = PSPLIT_I_SIGNED, out.bytes = 4; break;
    case PROTOBUF_C_TYPE_INT64: out.kind = PSPLIT_I_SIGNED, out.bytes = 8; break;
    case PROTOBUF_C_TYPE_UINT64: out.kind = PSPLIT_I_UNSIGNED, out.bytes = 8; break;
    default: break;
  }
  return out;
}

static void put(psplit_i_parser *parser, target *to, uint64_t bits, ProtobufCBinaryData string) {
  if (!to->field) {
    for (unsigned i = 0; i < to->bytes; i++) {
      const uint8_t byte = (uint8_t)(bits >> (8 * i));
      psplit_i_text_add(&to->raw, &byte, 1);
    }
    return;
  }
  size_t *n = (size_t *)(void *)((char *)to->tensor + to->field->quantifier_offset);
  void **items = (void **)(void *)((char *)to->tensor + to->field->offset);
  const uint32_t narrow = (uint32_t)bits;
  if (to->field->type == PROTOBUF_C_TYPE_BYTES)
    psplit_i_push(parser, n, items, &string, sizeof string);
  else if (to->bytes == 4)
    psplit_i_push(parser, n, items, &narrow, sizeof narrow);
  else
    psplit_i_push(parser, n, items, &bits, sizeof bits);
}

static bool charge(psplit_i_parser *parser, target *to, uint64_t bytes) {
  if (bytes <= MOST_DATA_BYTES - to->n_bytes) {
    to->n_bytes += bytes;
    return true;
  }
  if (parser->lexer.code == PSPLIT_OK)
    psplit_i_lexer_fail(&parser->lexer, psplit_i_fail(parser->lexer.diag, PSPLIT_LIMIT,
                                                      "the text makes a tensor of over 2 GiB"));
  return false;
}

static uint64_t parse_number(psplit_i_parser *parser, const target *to) {
  const unsigned bits = 8 * to->bytes;
  uint64_t out = 0;
  if (to->kind == PSPLIT_I_UNSIGNED)
    return psplit_i_parse_uint(parser, UINT64_MAX >> (64 - bits), "a number");
  if (to->kind == PSPLIT_I_SIGNED) {
    const int64_t most = INT64_MAX >> (64 - bits);
    return (uint64_t)psplit_i_parse_int(parser, -most - 1, most, "a number");
  }
  if (to->bytes == 4) {
    uint32_t narrow;
    const float value = psplit_i_parse_float(parser);
    memcpy(&narrow, &value, sizeof narrow);
    return narrow;
  }
  const double value = psplit_i_parse_double(parser);
  memcpy(&out, &value, sizeof out);
  return out;
}

/* value, value * count, ... up to '}' */
static void parse_values(psplit_i_parser *parser, target *to) {
  psplit_i_lexer *lexer = &parser->lexer;
  const bool strings = to->field && to->field->type == PROTOBUF_C_TYPE_BYTES;
  if (to->kind == PSPLIT_I_NO_NUMBER && !strings) {
    psplit_i_expected(lexer, to->field ? "'}'"
                                       : "a string with the bytes, \"...\": the elements "
                                         "of this type are not written as numbers");
    return;
  }
  do {
    ProtobufCBinaryData string = {0};
    uint64_t bits = 0, n = 1;
    if (strings)
      string = psplit_i_parse_bytes(parser, "a string, \"...\"");
    else
      bits = parse_number(parser, to);
    if (psplit_i_accept(lexer, "*"))
      n = psplit_i_parse_uint(parser, MOST_DATA_BYTES, "how often the value is repeated");
    if (!charge(parser, to, n * (strings ? sizeof string : to->bytes))) return;
    for (; n && lexer->code == PSPLIT_OK; n--) put(parser, to, bits, string);
  } while (psplit_i_accept(lexer, ","));
}

/* A number that a computation with it survives: floats from -0.5 to 0.5, bits of halves in that
 * range, 0 and 1 for bool, any whole numbers of a byte or less, of more those from 0 to 127, which
 * may be indices. */
static uint64_t made_up(const target *to, uint64_t random) {
  switch (to->tensor->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL: return random & 1;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16: return (random & 0x83ff) | 0x3400;
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16: return (random & 0x807f) | 0x3e80;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E4M3FN:
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E4M3FNUZ:
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E5M2:
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E5M2FNUZ:
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E8M0: return random & 0x3f;
    default: break;
  }
  if (to->tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT8)
    return (uint64_t)(int64_t)(int8_t)(random & 0xff);
  if (to->bytes == 1 || to->tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8)
    return random & 0xff;
  if (to->kind != PSPLIT_I_REAL) return random & 0x7f;
  const double value = (double)(random >> 40) / (1 << 24) - 0.5;
  const float narrow = (float)value;
  uint64_t bits = 0;
  uint32_t narrow_bits;
  memcpy(&bits, &value, sizeof bits);
  memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
  return to->bytes == 4 ? narrow_bits : bits;
}

/* Numbers that the seed alone decides, as many as the dims say. */
static void make_up(psplit_i_parser *parser, target *to, uint64_t seed) {
  const psplit_i_element *element = psplit_i_element_of(to->tensor->data_type);
  uint64_t n = element->parts;
  for (size_t i = 0; i < to->tensor->n_dims; i++) {
    const int64_t dim = to->tensor->dims[i];
    n = psplit_i_sat_mul_u64(n, dim > 0 ? (uint64_t)dim : 0);
  }
  const uint32_t bits = element->bits / element->parts;
  if (bits % 8 != 0) { /* several elements to the byte, or to a number of the typed field */
    n = psplit_i_sat_mul_u64(n, bits) / 8 + (n * bits % 8 != 0);
    if (!to->field) to->bytes = 1;
  }
  const bool strings = to->field && to->field->type == PROTOBUF_C_TYPE_BYTES;
  if (!to->bytes && !strings) {
    psplit_i_expected(&parser->lexer, "data: nothing can be made up for this element type");
    return;
  }
  const ProtobufCBinaryData no_string = {0};
  if (!charge(parser, to, psplit_i_sat_mul_u64(n, to->bytes ? to->bytes : sizeof no_string)))
    return;
  for (uint64_t i = 0; i < n && parser->lexer.code == PSPLIT_OK; i++)
    put(parser, to, made_up(to, psplit_i_splitmix64(seed, i)), no_string);
}

/* Behind '{': '}', '...' and '}', or values and '}'. */
static void parse_braces(psplit_i_parser *parser, target *to) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (psplit_i_accept(lexer, "}")) return;
  const char *name = to->tensor->name ? to->tensor->name : "";
  if (!psplit_i_at(lexer, "...")) {
    parse_values(parser, to);
  } else if (!parser->fill_left_out) {
    psplit_i_error_at(lexer, lexer->token.at,
                      "data was left out when this text was printed: print it whole, or have data "
                      "made up for it");
  } else {
    psplit_i_lexer_next(lexer);
    make_up(parser, to, psplit_i_hash_bytes(name, strlen(name), 0));
  }
  psplit_i_expect(lexer, "}", "after the values of a tensor");
}

static void take_raw(psplit_i_parser *parser, target *to) {
  Onnx__TensorProto *tensor = to->tensor;
  tensor->has_raw_data = true;
  tensor->raw_data.len = to->raw.n;
  tensor->raw_data.data =
    (uint8_t *)psplit_i_arena_strndup(parser->arena, to->raw.bytes ? to->raw.bytes : "", to->raw.n);
  if (to->raw.failed || !tensor->raw_data.data)
    psplit_i_lexer_fail(&parser->lexer, psplit_i_nomem(parser->lexer.diag));
  psplit_i_text_fini(&to->raw);
}

/* raw {...}, raw "bytes" or random(seed); false where none of them stands here. */
static bool parse_raw(psplit_i_parser *parser, Onnx__TensorProto *tensor) {
  psplit_i_lexer *lexer = &parser->lexer;
  target to = raw_target(tensor);
  if (psplit_i_at_word(lexer, "random")) {
    psplit_i_lexer_next(lexer);
    psplit_i_expect(lexer, "(", "after random");
    make_up(parser, &to, psplit_i_parse_uint(parser, UINT64_MAX, "a seed"));
    psplit_i_expect(lexer, ")", "after the seed");
  } else if (psplit_i_at_word(lexer, "raw")) {
    psplit_i_lexer_next(lexer);
    if (lexer->token.kind == PSPLIT_I_TOKEN_STRING) {
      tensor->has_raw_data = true;
      tensor->raw_data = psplit_i_parse_bytes(parser, "");
      return true;
    }
    if (psplit_i_expect(lexer, "{", "or a string after raw")) parse_braces(parser, &to);
  } else {
    return false;
  }
  take_raw(parser, &to);
  return true;
}

void psplit_i_parse_data(psplit_i_parser *parser, Onnx__TensorProto *tensor, bool assigned) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (lexer->code != PSPLIT_OK) return;
  if (assigned && psplit_i_accept(lexer, "[")) {
    tensor->has_data_location = true;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    psplit_i_parse_pairs(parser, &tensor->n_external_data, &tensor->external_data);
  } else if (psplit_i_accept(lexer, "{")) {
    target to = typed_target(tensor);
    parse_braces(parser, &to);
  } else if (!assigned || !parse_raw(parser, tensor)) {
    psplit_i_expected(lexer, assigned ? "data: '{', '[', raw or random" : "'{' and data, or '='");
  }
  psplit_i_parse_more(parser, &tensor->base);
}

void psplit_i_parse_tensor_rest(psplit_i_parser *parser, Onnx__TensorProto *tensor) {
  if (psplit_i_at_name(parser)) tensor->name = psplit_i_parse_name(parser, "");
  psplit_i_parse_data(parser, tensor, psplit_i_accept(&parser->lexer, "="));
}

Onnx__TensorProto *psplit_i_parse_tensor(psplit_i_parser *parser) {
  const size_t at = parser->lexer.token.at;
  const Onnx__TypeProto *type = psplit_i_parse_type(parser);
  Onnx__TensorProto *tensor = psplit_i_tensor_of_type(parser, type, at);
  psplit_i_parse_tensor_rest(parser, tensor);
  return tensor;
}
