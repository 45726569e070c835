/* Nodes, graphs, functions and the model around them. */
#include <stdlib.h>

#include "number.h"
#include "parse.h"

/* Names of a node's inputs or outputs, up to a mark that ends them. One may be left out, which is
 * the empty name; after the last comma nothing is. */
static void parse_ids(psplit_i_parser *parser, size_t *n, char ***items) {
  psplit_i_lexer *lexer = &parser->lexer;
  do {
    if (!psplit_i_at_name(parser) && !psplit_i_at(lexer, ",")) return;
    char *name = psplit_i_parse_optional_name(parser);
    psplit_i_push(parser, n, (void **)items, &name, sizeof name);
  } while (psplit_i_accept(lexer, ","));
}

/* Op, domain.Op, "domain".Op; the names before the last, joined, are the domain. */
static void parse_operator(psplit_i_parser *parser, Onnx__NodeProto *node) {
  psplit_i_lexer *lexer = &parser->lexer;
  psplit_i_text domain = {0};
  node->op_type = psplit_i_parse_name(parser, "an operator");
  const bool has_domain = psplit_i_at(lexer, ".");
  while (psplit_i_accept(lexer, ".")) {
    if (domain.n) psplit_i_text_puts(&domain, ".");
    psplit_i_text_puts(&domain, node->op_type);
    node->op_type = psplit_i_parse_name(parser, "a name after '.'");
  }
  if (has_domain) {
    node->domain = domain.failed ? NULL
                                 : psplit_i_arena_strndup(
                                     parser->arena, domain.bytes ? domain.bytes : "", domain.n);
    if (!node->domain) psplit_i_lexer_fail(lexer, psplit_i_nomem(lexer->diag));
  }
  psplit_i_text_fini(&domain);
}

static Onnx__NodeProto *parse_node(psplit_i_parser *parser) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (psplit_i_at(lexer, "{"))
    return psplit_i_parse_spelled_out(parser, &onnx__node_proto__descriptor);
  Onnx__NodeProto *node = psplit_i_new_message(parser, &onnx__node_proto__descriptor);
  if (psplit_i_accept(lexer, "[")) {
    node->name = psplit_i_parse_optional_name(parser);
    psplit_i_expect(lexer, "]", "after the name of a node");
  }
  parse_ids(parser, &node->n_output, &node->output);
  psplit_i_expect(lexer, "=", "after the outputs of a node");
  if (psplit_i_at_name(parser)) parse_operator(parser, node);
  if (psplit_i_accept(lexer, ":")) node->overload = psplit_i_parse_name(parser, "an overload");
  if (psplit_i_accept(lexer, "<"))
    psplit_i_parse_attributes(parser, &node->n_attribute, &node->attribute, NULL, NULL);
  psplit_i_expect(lexer, "(", "before the inputs of a node");
  parse_ids(parser, &node->n_input, &node->input);
  psplit_i_expect(lexer, ")", "after the inputs of a node");
  if (!node->n_attribute && psplit_i_accept(lexer, "<"))
    psplit_i_parse_attributes(parser, &node->n_attribute, &node->attribute, NULL, NULL);
  psplit_i_parse_more(parser, &node->base);
  return node;
}

static void parse_nodes(psplit_i_parser *parser, size_t *n, Onnx__NodeProto ***items) {
  if (!psplit_i_expect(&parser->lexer, "{", "before nodes")) return;
  while (parser->lexer.code == PSPLIT_OK && !psplit_i_accept(&parser->lexer, "}")) {
    Onnx__NodeProto *node = parse_node(parser);
    psplit_i_push(parser, n, (void **)items, &node, sizeof node);
  }
}

/* type name, or type name = data, which makes an initializer as well (inputs) or instead. */
static void parse_value(psplit_i_parser *parser, Onnx__GraphProto *graph, bool is_input) {
  const size_t at = parser->lexer.token.at;
  Onnx__ValueInfoProto *info = psplit_i_parse_value_info(parser);
  const bool has_data = psplit_i_accept(&parser->lexer, "=");
  if (has_data) {
    Onnx__TensorProto *tensor = psplit_i_tensor_of_type(parser, info->type, at);
    if (!is_input && (info->doc_string || info->n_metadata_props || info->base.n_unknown_fields))
      psplit_i_error_at(&parser->lexer, at, "the fields of an initializer come after its data");
    tensor->name = info->name;
    psplit_i_parse_data(parser, tensor, true);
    PSPLIT_I_PUSH(parser, graph, initializer, tensor);
  }
  if (is_input)
    PSPLIT_I_PUSH(parser, graph, input, info);
  else if (!has_data)
    PSPLIT_I_PUSH(parser, graph, value_info, info);
}

static void parse_infos(psplit_i_parser *parser, const char *close, size_t *n,
                        Onnx__ValueInfoProto ***items) {
  if (psplit_i_accept(&parser->lexer, close)) return;
  do {
    Onnx__ValueInfoProto *info = psplit_i_parse_value_info(parser);
    psplit_i_push(parser, n, (void **)items, &info, sizeof info);
  } while (psplit_i_accept(&parser->lexer, ","));
  psplit_i_expect(&parser->lexer, close, "after typed names");
}

static void parse_values(psplit_i_parser *parser, Onnx__GraphProto *graph, bool are_inputs) {
  const char *close = are_inputs ? ")" : ">";
  if (psplit_i_accept(&parser->lexer, close)) return;
  do parse_value(parser, graph, are_inputs);
  while (psplit_i_accept(&parser->lexer, ","));
  psplit_i_expect(&parser->lexer, close,
                  are_inputs ? "after the inputs of a graph" : "after initializers and types");
}

static Onnx__GraphProto *parse_graph(psplit_i_parser *parser) {
  psplit_i_lexer *lexer = &parser->lexer;
  Onnx__GraphProto *graph = psplit_i_new_message(parser, &onnx__graph_proto__descriptor);
  if (!psplit_i_enter(parser)) return graph;
  if (psplit_i_at_name(parser)) graph->name = psplit_i_parse_name(parser, "");
  if (psplit_i_expect(lexer, "(", "before the inputs of a graph"))
    parse_values(parser, graph, true);
  psplit_i_expect(lexer, "=>", "after the inputs of a graph");
  if (psplit_i_expect(lexer, "(", "before the outputs of a graph"))
    parse_infos(parser, ")", &graph->n_output, &graph->output);
  psplit_i_parse_more(parser, &graph->base);
  if (psplit_i_accept(lexer, "<")) parse_values(parser, graph, false);
  parse_nodes(parser, &graph->n_node, &graph->node);
  psplit_i_leave(parser);
  return graph;
}

/* Behind '(': names, each perhaps with a type, which goes to the function's value_info. */
static void parse_typed_ids(psplit_i_parser *parser, Onnx__FunctionProto *function, size_t *n,
                            char ***items) {
  if (psplit_i_accept(&parser->lexer, ")")) return;
  do {
    Onnx__ValueInfoProto *info = NULL;
    if (psplit_i_at_type(parser)) {
      info = psplit_i_new_message(parser, &onnx__value_info_proto__descriptor);
      info->type = psplit_i_parse_type(parser);
      PSPLIT_I_PUSH(parser, function, value_info, info);
    }
    char *name = psplit_i_parse_name(parser, "a name");
    if (info) info->name = name;
    psplit_i_push(parser, n, (void **)items, &name, sizeof name);
  } while (psplit_i_accept(&parser->lexer, ","));
  psplit_i_expect(&parser->lexer, ")", "after names");
}

static Onnx__FunctionProto *parse_function(psplit_i_parser *parser) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (psplit_i_at(lexer, "{"))
    return psplit_i_parse_spelled_out(parser, &onnx__function_proto__descriptor);
  Onnx__FunctionProto *function = psplit_i_new_message(parser, &onnx__function_proto__descriptor);
  if (psplit_i_accept(lexer, "<")) psplit_i_parse_fields(parser, &function->base, ">");
  const size_t at = lexer->token.at;
  char *name = psplit_i_parse_name(parser, "a function: '<' or its name");
  if (function->name) psplit_i_error_at(lexer, at, "the function has a name already");
  function->name = name;
  if (psplit_i_accept(lexer, "<"))
    psplit_i_parse_attributes(parser, &function->n_attribute_proto, &function->attribute_proto,
                              &function->n_attribute, &function->attribute);
  if (psplit_i_expect(lexer, "(", "before the inputs of a function"))
    parse_typed_ids(parser, function, &function->n_input, &function->input);
  psplit_i_expect(lexer, "=>", "after the inputs of a function");
  if (psplit_i_expect(lexer, "(", "before the outputs of a function"))
    parse_typed_ids(parser, function, &function->n_output, &function->output);
  if (psplit_i_accept(lexer, "<"))
    parse_infos(parser, ">", &function->n_value_info, &function->value_info);
  parse_nodes(parser, &function->n_node, &function->node);
  return function;
}

static Onnx__ModelProto *parse_model(psplit_i_parser *parser) {
  psplit_i_lexer *lexer = &parser->lexer;
  Onnx__ModelProto *model = psplit_i_new_message(parser, &onnx__model_proto__descriptor);
  if (psplit_i_accept(lexer, "<")) psplit_i_parse_fields(parser, &model->base, ">");
  if (!model->graph && lexer->token.kind != PSPLIT_I_TOKEN_END) model->graph = parse_graph(parser);
  while (lexer->token.kind != PSPLIT_I_TOKEN_END) {
    Onnx__FunctionProto *function = parse_function(parser);
    PSPLIT_I_PUSH(parser, model, functions, function);
  }
  return model;
}

static void *read_graph(psplit_i_parser *parser) { return parse_graph(parser); }
static void *read_tensor(psplit_i_parser *parser) { return psplit_i_parse_tensor(parser); }
static void *read_type(psplit_i_parser *parser) { return psplit_i_parse_type(parser); }
static void *read_value_info(psplit_i_parser *parser) { return psplit_i_parse_value_info(parser); }

static const psplit_i_message_syntax MESSAGE_SYNTAX[] = {
  {&onnx__graph_proto__descriptor, read_graph},
  {&onnx__tensor_proto__descriptor, read_tensor},
  {&onnx__type_proto__descriptor, read_type},
  {&onnx__value_info_proto__descriptor, read_value_info},
  {NULL, NULL}};

psplit_code psplit_i_text_parse(const char *text, size_t n_text,
                                const psplit_parse_text_options *options, psplit_i_arena *arena,
                                psplit_diag *diag, Onnx__ModelProto **out_model) {
  psplit_i_parser *parser = calloc(1, sizeof *parser);
  if (!parser) return psplit_i_nomem(diag);
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  parser->arena = arena;
  parser->syntax = MESSAGE_SYNTAX;
  parser->fill_left_out = options && options->fill_left_out;
  psplit_i_lexer_init(&parser->lexer, text, n_text, options ? options->file_name : NULL, arena,
                      diag);
  Onnx__ModelProto *model = parse_model(parser);
  const psplit_code code = parser->lexer.code;
  psplit_i_plain_numbers_end(numbers);
  free(parser);
  if (code == PSPLIT_OK) *out_model = model;
  return code;
}
