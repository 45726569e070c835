/* Attributes of nodes and of functions. */
#include <string.h>

#include "names.h"
#include "parse.h"

#define TYPE(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name
typedef Onnx__AttributeProto__AttributeType attribute_type;

/* The type of the elements of a list type, and back; UNDEFINED for others. */
static attribute_type element_type(attribute_type list) {
  switch (list) {
    case TYPE(FLOATS): return TYPE(FLOAT);
    case TYPE(INTS): return TYPE(INT);
    case TYPE(STRINGS): return TYPE(STRING);
    case TYPE(TENSORS): return TYPE(TENSOR);
    case TYPE(GRAPHS): return TYPE(GRAPH);
    case TYPE(SPARSE_TENSORS): return TYPE(SPARSE_TENSOR);
    case TYPE(TYPE_PROTOS): return TYPE(TYPE_PROTO);
    default: return TYPE(UNDEFINED);
  }
}

static attribute_type list_type(attribute_type element) {
  for (attribute_type type = TYPE(FLOAT); type <= TYPE(TYPE_PROTOS); type++)
    if (element && element_type(type) == element) return type;
  return TYPE(UNDEFINED);
}

static const char *type_name(attribute_type type) {
  const char *name = psplit_i_attribute_type_name((int32_t)type);
  return name ? name : "none";
}

/* One value; `type` says which member holds it. */
typedef struct value {
  attribute_type type;
  float f;
  int64_t i;
  ProtobufCBinaryData s;
  void *message; /* t, g, tp or sparse_tensor */
} value;

/* A message that is spelled out; its kind has to be known. */
static value parse_spelled_out(psplit_i_parser *parser, attribute_type expected) {
  const ProtobufCMessageDescriptor *descriptor = NULL;
  switch (expected) {
    case TYPE(TENSOR): descriptor = &onnx__tensor_proto__descriptor; break;
    case TYPE(GRAPH): descriptor = &onnx__graph_proto__descriptor; break;
    case TYPE(TYPE_PROTO): descriptor = &onnx__type_proto__descriptor; break;
    case TYPE(SPARSE_TENSOR): descriptor = &onnx__sparse_tensor_proto__descriptor; break;
    default: break;
  }
  value out = {.type = expected};
  if (descriptor)
    out.message = psplit_i_parse_spelled_out(parser, descriptor);
  else
    psplit_i_expected(&parser->lexer,
                      "a value; '{' needs a type that is a message, name: tensor = {...}");
  return out;
}

/* A type, or a tensor, which starts with one. */
static value parse_typed(psplit_i_parser *parser) {
  const size_t at = parser->lexer.token.at;
  Onnx__TypeProto *type = psplit_i_parse_type(parser);
  if (!psplit_i_at(&parser->lexer, "{") && !psplit_i_at(&parser->lexer, "=") &&
      !psplit_i_at_name(parser))
    return (value){.type = TYPE(TYPE_PROTO), .message = type};
  Onnx__TensorProto *tensor = psplit_i_tensor_of_type(parser, type, at);
  psplit_i_parse_tensor_rest(parser, tensor);
  return (value){.type = TYPE(TENSOR), .message = tensor};
}

/* A string, or a graph whose name is quoted. */
static value parse_quoted(psplit_i_parser *parser) {
  const size_t at = parser->lexer.token.at;
  const ProtobufCBinaryData bytes = psplit_i_parse_bytes(parser, "");
  if (!psplit_i_at(&parser->lexer, "(")) return (value){.type = TYPE(STRING), .s = bytes};
  if (memchr(bytes.data, 0, bytes.len))
    psplit_i_error_at(&parser->lexer, at, "this string may not hold a NUL byte");
  Onnx__GraphProto *graph = psplit_i_parse_message(parser, &onnx__graph_proto__descriptor);
  graph->name = (char *)bytes.data;
  return (value){.type = TYPE(GRAPH), .message = graph};
}

static value parse_single(psplit_i_parser *parser, attribute_type expected) {
  const psplit_i_token *token = &parser->lexer.token;
  const bool real =
    token->kind == PSPLIT_I_TOKEN_REAL ||
    (token->kind == PSPLIT_I_TOKEN_WORD && psplit_i_is_real_word(token->bytes, token->n)) ||
    (token->kind == PSPLIT_I_TOKEN_INTEGER && expected == TYPE(FLOAT));
  value out = {0};
  if (psplit_i_at(&parser->lexer, "{")) return parse_spelled_out(parser, expected);
  if (real)
    out = (value){.type = TYPE(FLOAT), .f = psplit_i_parse_float(parser)};
  else if (psplit_i_at_type(parser))
    out = parse_typed(parser);
  else if (token->kind == PSPLIT_I_TOKEN_STRING)
    out = parse_quoted(parser);
  else if (token->kind == PSPLIT_I_TOKEN_WORD || psplit_i_at(&parser->lexer, "("))
    out = (value){.type = TYPE(GRAPH),
                  .message = psplit_i_parse_message(parser, &onnx__graph_proto__descriptor)};
  else if (token->kind == PSPLIT_I_TOKEN_INTEGER)
    out =
      (value){.type = TYPE(INT), .i = psplit_i_parse_int(parser, INT64_MIN, INT64_MAX, "a number")};
  else
    psplit_i_expected(&parser->lexer, "the value of an attribute");
  return out;
}

static void set_single(Onnx__AttributeProto *attribute, const value *from) {
  switch (from->type) {
    case TYPE(FLOAT): attribute->has_f = true, attribute->f = from->f; break;
    case TYPE(INT): attribute->has_i = true, attribute->i = from->i; break;
    case TYPE(STRING): attribute->has_s = true, attribute->s = from->s; break;
    case TYPE(TENSOR): attribute->t = from->message; break;
    case TYPE(GRAPH): attribute->g = from->message; break;
    case TYPE(TYPE_PROTO): attribute->tp = from->message; break;
    default: attribute->sparse_tensor = from->message; break;
  }
}

static void append(psplit_i_parser *parser, Onnx__AttributeProto *attribute, const value *from) {
  switch (from->type) {
    case TYPE(FLOAT): PSPLIT_I_PUSH(parser, attribute, floats, from->f); break;
    case TYPE(INT): PSPLIT_I_PUSH(parser, attribute, ints, from->i); break;
    case TYPE(STRING): PSPLIT_I_PUSH(parser, attribute, strings, from->s); break;
    case TYPE(TENSOR): PSPLIT_I_PUSH(parser, attribute, tensors, from->message); break;
    case TYPE(GRAPH): PSPLIT_I_PUSH(parser, attribute, graphs, from->message); break;
    case TYPE(TYPE_PROTO): PSPLIT_I_PUSH(parser, attribute, type_protos, from->message); break;
    default: PSPLIT_I_PUSH(parser, attribute, sparse_tensors, from->message); break;
  }
}

/* One value of the type that is expected (UNDEFINED: any). */
static value parse_expected(psplit_i_parser *parser, attribute_type expected) {
  const size_t at = parser->lexer.token.at;
  const value out = parse_single(parser, expected);
  if (expected && out.type != expected)
    psplit_i_error_at(&parser->lexer, at, "expected a value of type %s, found one of type %s",
                      type_name(expected), type_name(out.type));
  return out;
}

/* Behind '['. */
static void parse_list(psplit_i_parser *parser, Onnx__AttributeProto *attribute, size_t at) {
  if (attribute->has_type && !element_type(attribute->type)) {
    psplit_i_error_at(&parser->lexer, at, "a list, for an attribute of type %s",
                      type_name(attribute->type));
    return;
  }
  if (psplit_i_accept(&parser->lexer, "]")) {
    if (!attribute->has_type)
      psplit_i_error_at(&parser->lexer, at, "an empty list needs a type: name: ints = []");
    return;
  }
  do {
    const value one =
      parse_expected(parser, attribute->has_type ? element_type(attribute->type) : TYPE(UNDEFINED));
    if (parser->lexer.code != PSPLIT_OK) return;
    append(parser, attribute, &one);
    attribute->has_type = true;
    attribute->type = list_type(one.type);
  } while (psplit_i_accept(&parser->lexer, ","));
  psplit_i_expect(&parser->lexer, "]", "after the values of an attribute");
}

static void parse_type_name(psplit_i_parser *parser, Onnx__AttributeProto *attribute) {
  const psplit_i_token *token = &parser->lexer.token;
  const int32_t type =
    token->kind == PSPLIT_I_TOKEN_WORD ? psplit_i_attribute_type_named(token->bytes, token->n) : 0;
  if (!type) psplit_i_expected(&parser->lexer, "the type of an attribute");
  psplit_i_lexer_next(&parser->lexer);
  attribute->has_type = true;
  attribute->type = (attribute_type)type;
}

/* Behind the name: (@{fields})? (: type)? = value. */
static Onnx__AttributeProto *parse_rest(psplit_i_parser *parser, char *name) {
  psplit_i_lexer *lexer = &parser->lexer;
  Onnx__AttributeProto *attribute =
    psplit_i_new_message(parser, &onnx__attribute_proto__descriptor);
  attribute->name = name;
  psplit_i_parse_more(parser, &attribute->base);
  if (psplit_i_accept(lexer, ":")) parse_type_name(parser, attribute);
  psplit_i_expect(lexer, "=", "after the name of an attribute");
  const size_t at = lexer->token.at;
  if (lexer->code != PSPLIT_OK) return attribute;
  if (psplit_i_accept(lexer, "@")) {
    attribute->ref_attr_name = psplit_i_parse_name(parser, "the name of a function's attribute");
  } else if (psplit_i_accept(lexer, "[")) {
    parse_list(parser, attribute, at);
  } else {
    const value one =
      parse_expected(parser, attribute->has_type ? attribute->type : TYPE(UNDEFINED));
    if (lexer->code != PSPLIT_OK) return attribute;
    set_single(attribute, &one);
    attribute->has_type = true;
    attribute->type = one.type;
  }
  return attribute;
}

void psplit_i_parse_attributes(psplit_i_parser *parser, size_t *n, Onnx__AttributeProto ***items,
                               size_t *n_names, char ***names) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (psplit_i_accept(lexer, ">")) return;
  if (!psplit_i_enter(parser)) return;
  do {
    Onnx__AttributeProto *attribute;
    if (psplit_i_at(lexer, "{")) {
      attribute = psplit_i_parse_spelled_out(parser, &onnx__attribute_proto__descriptor);
    } else {
      char *name = psplit_i_parse_name(parser, "the name of an attribute");
      const bool valued =
        psplit_i_at(lexer, "=") || psplit_i_at(lexer, ":") || psplit_i_at(lexer, "@");
      if (names && !valued) {
        psplit_i_push(parser, n_names, (void **)names, &name, sizeof name);
        continue;
      }
      attribute = parse_rest(parser, name);
    }
    psplit_i_push(parser, n, (void **)items, &attribute, sizeof attribute);
  } while (psplit_i_accept(lexer, ","));
  psplit_i_expect(lexer, ">", "after attributes");
  psplit_i_leave(parser);
}
