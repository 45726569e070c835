/* Types and typed names. */

#include "names.h"
#include "parse.h"

bool psplit_i_at_type(const psplit_i_parser *parser) {
  const psplit_i_token *token = &parser->lexer.token;
  return psplit_i_at(&parser->lexer, "?") ||
         (token->kind == PSPLIT_I_TOKEN_WORD && psplit_i_starts_type(token->bytes, token->n));
}

/* float; ?(99) for a number without a name; ? for none. */
static bool parse_element(psplit_i_parser *parser, int32_t *out) {
  psplit_i_lexer *lexer = &parser->lexer;
  *out = 0;
  if (psplit_i_accept(lexer, "?")) {
    if (!psplit_i_accept(lexer, "(")) return false;
    *out =
      (int32_t)psplit_i_parse_int(parser, INT32_MIN, INT32_MAX, "the number of an element type");
    psplit_i_expect(lexer, ")", "after the number of an element type");
    return true;
  }
  if (lexer->token.kind == PSPLIT_I_TOKEN_WORD)
    *out = psplit_i_element_named(lexer->token.bytes, lexer->token.n);
  if (*out == 0) psplit_i_expected(lexer, "an element type");
  psplit_i_lexer_next(lexer);
  return true;
}

static void parse_dim(psplit_i_parser *parser, Onnx__TensorShapeProto *shape) {
  Onnx__TensorShapeProto__Dimension *dim =
    psplit_i_new_message(parser, &onnx__tensor_shape_proto__dimension__descriptor);
  if (psplit_i_accept(&parser->lexer, "?")) {
    /* a dimension of which nothing is known */
  } else if (psplit_i_at_name(parser)) {
    dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    dim->dim_param = psplit_i_parse_name(parser, "");
  } else {
    dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    dim->dim_value =
      psplit_i_parse_int(parser, INT64_MIN, INT64_MAX, "a dimension: a number, a name or '?'");
  }
  psplit_i_parse_more(parser, &dim->base);
  PSPLIT_I_PUSH(parser, shape, dim, dim);
}

/* Nothing: a scalar. []: no shape. [dims]: that shape. */
static Onnx__TensorShapeProto *parse_shape(psplit_i_parser *parser) {
  const bool brackets = psplit_i_accept(&parser->lexer, "[");
  if (brackets && psplit_i_accept(&parser->lexer, "]")) return NULL;
  Onnx__TensorShapeProto *shape =
    psplit_i_new_message(parser, &onnx__tensor_shape_proto__descriptor);
  if (!brackets) return shape;
  do parse_dim(parser, shape);
  while (psplit_i_accept(&parser->lexer, ","));
  psplit_i_expect(&parser->lexer, "]", "after dimensions");
  return shape;
}

static void parse_map(psplit_i_parser *parser, Onnx__TypeProto *type) {
  Onnx__TypeProto__Map *map = psplit_i_new_message(parser, &onnx__type_proto__map__descriptor);
  type->value_case = ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
  type->map_type = map;
  map->has_key_type = parse_element(parser, &map->key_type);
  if (psplit_i_accept(&parser->lexer, ",")) map->value_type = psplit_i_parse_type(parser);
}

static void parse_sparse(psplit_i_parser *parser, Onnx__TypeProto *type) {
  Onnx__TypeProto__SparseTensor *sparse =
    psplit_i_new_message(parser, &onnx__type_proto__sparse_tensor__descriptor);
  type->value_case = ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE;
  type->sparse_tensor_type = sparse;
  sparse->has_elem_type = parse_element(parser, &sparse->elem_type);
  sparse->shape = parse_shape(parser);
}

/* word.word, joined; or one string. */
static char *parse_dotted(psplit_i_parser *parser) {
  char *first = psplit_i_parse_name(parser, "a name");
  if (!psplit_i_at(&parser->lexer, ".")) return first;
  psplit_i_text joined = {0};
  psplit_i_text_puts(&joined, first);
  while (psplit_i_accept(&parser->lexer, ".")) {
    psplit_i_text_puts(&joined, ".");
    psplit_i_text_puts(&joined, psplit_i_parse_name(parser, "a name after '.'"));
  }
  char *out = joined.failed ? NULL : psplit_i_arena_strndup(parser->arena, joined.bytes, joined.n);
  psplit_i_text_fini(&joined);
  if (!out) psplit_i_lexer_fail(&parser->lexer, psplit_i_nomem(parser->lexer.diag));
  return out ? out : first;
}

/* opaque(), opaque(name), opaque(domain, name) */
static void parse_opaque(psplit_i_parser *parser, Onnx__TypeProto *type) {
  Onnx__TypeProto__Opaque *opaque =
    psplit_i_new_message(parser, &onnx__type_proto__opaque__descriptor);
  type->value_case = ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE;
  type->opaque_type = opaque;
  if (psplit_i_at(&parser->lexer, ")")) return;
  opaque->name = parse_dotted(parser);
  if (!psplit_i_accept(&parser->lexer, ",")) return;
  opaque->domain = opaque->name;
  opaque->name = psplit_i_parse_name(parser, "the name of an opaque type");
}

/* What stands in the parentheses of seq(...) and optional(...). */
static Onnx__TypeProto *parse_inner(psplit_i_parser *parser) {
  return psplit_i_at(&parser->lexer, ")") ? NULL : psplit_i_parse_type(parser);
}

static void parse_sequence(psplit_i_parser *parser, Onnx__TypeProto *type) {
  type->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
  type->sequence_type = psplit_i_new_message(parser, &onnx__type_proto__sequence__descriptor);
  type->sequence_type->elem_type = parse_inner(parser);
}

static void parse_optional(psplit_i_parser *parser, Onnx__TypeProto *type) {
  type->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
  type->optional_type = psplit_i_new_message(parser, &onnx__type_proto__optional__descriptor);
  type->optional_type->elem_type = parse_inner(parser);
}

static void parse_tensor_type(psplit_i_parser *parser, Onnx__TypeProto *type) {
  Onnx__TypeProto__Tensor *tensor =
    psplit_i_new_message(parser, &onnx__type_proto__tensor__descriptor);
  type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  type->tensor_type = tensor;
  tensor->has_elem_type = parse_element(parser, &tensor->elem_type);
  tensor->shape = parse_shape(parser);
}

static void parse_any(psplit_i_parser *parser, Onnx__TypeProto *type) {
  static const struct {
    const char *word;
    void (*parse)(psplit_i_parser *parser, Onnx__TypeProto *type);
  } kinds[] = {{"seq", parse_sequence},
               {"map", parse_map},
               {"optional", parse_optional},
               {"sparse_tensor", parse_sparse},
               {"opaque", parse_opaque}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (psplit_i_at_word(&parser->lexer, kinds[i].word)) {
      psplit_i_lexer_next(&parser->lexer);
      if (!psplit_i_expect(&parser->lexer, "(", "after the kind of a type")) return;
      kinds[i].parse(parser, type);
      psplit_i_expect(&parser->lexer, ")", "after what a type is made of");
      return;
    }
  if (psplit_i_at_type(parser))
    parse_tensor_type(parser, type);
  else
    psplit_i_expected(&parser->lexer, "a type");
}

Onnx__TypeProto *psplit_i_parse_type(psplit_i_parser *parser) {
  if (psplit_i_at(&parser->lexer, "{"))
    return psplit_i_parse_spelled_out(parser, &onnx__type_proto__descriptor);
  Onnx__TypeProto *type = psplit_i_new_message(parser, &onnx__type_proto__descriptor);
  if (!psplit_i_enter(parser)) return type;
  parse_any(parser, type);
  psplit_i_parse_more(parser, &type->base);
  psplit_i_leave(parser);
  return type;
}

Onnx__ValueInfoProto *psplit_i_parse_value_info(psplit_i_parser *parser) {
  if (psplit_i_at(&parser->lexer, "{"))
    return psplit_i_parse_spelled_out(parser, &onnx__value_info_proto__descriptor);
  Onnx__ValueInfoProto *info = psplit_i_new_message(parser, &onnx__value_info_proto__descriptor);
  if (psplit_i_at_type(parser)) info->type = psplit_i_parse_type(parser);
  if (!info->type || psplit_i_at_name(parser))
    info->name = psplit_i_parse_name(parser, "a type or a name");
  psplit_i_parse_more(parser, &info->base);
  return info;
}
