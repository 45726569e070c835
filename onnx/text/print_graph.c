/* Attributes, nodes, graphs, functions and the model around them. */
#include <inttypes.h>
#include <string.h>

#include "lexer.h"
#include "names.h"
#include "number.h"
#include "print.h"

#define TYPE(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name
#define FIELD PSPLIT_I_FIELD

/* An attribute holds graphs, and a graph nodes with attributes. */
static void print_graph(psplit_i_printer *printer, const Onnx__GraphProto *graph);

/* AttributeProto's field that holds values of a type; 0 where the attribute has none such. */
static uint32_t value_field(const Onnx__AttributeProto *a) {
  if (!a->has_type) return 0;
  switch (a->type) {
    case TYPE(FLOAT): return a->has_f ? 2 : 0;
    case TYPE(INT): return a->has_i ? 3 : 0;
    case TYPE(STRING): return a->has_s ? 4 : 0;
    case TYPE(TENSOR): return a->t ? 5 : 0;
    case TYPE(GRAPH): return a->g ? 6 : 0;
    case TYPE(FLOATS): return 7;
    case TYPE(INTS): return 8;
    case TYPE(STRINGS): return 9;
    case TYPE(TENSORS): return 10;
    case TYPE(GRAPHS): return 11;
    case TYPE(TYPE_PROTO): return a->tp ? 14 : 0;
    case TYPE(TYPE_PROTOS): return 15;
    case TYPE(SPARSE_TENSOR): return a->sparse_tensor ? 22 : 0;
    case TYPE(SPARSE_TENSORS): return 23;
    default: return 0;
  }
}

/* How many values a list has; 1 for what is no list. */
static size_t n_values(const Onnx__AttributeProto *a) {
  switch (a->type) {
    case TYPE(FLOATS): return a->n_floats;
    case TYPE(INTS): return a->n_ints;
    case TYPE(STRINGS): return a->n_strings;
    case TYPE(TENSORS): return a->n_tensors;
    case TYPE(GRAPHS): return a->n_graphs;
    case TYPE(TYPE_PROTOS): return a->n_type_protos;
    case TYPE(SPARSE_TENSORS): return a->n_sparse_tensors;
    default: return 1;
  }
}

static void print_indexed(psplit_i_printer *printer, const Onnx__AttributeProto *a, size_t i) {
  switch (a->type) {
    case TYPE(FLOAT): psplit_i_print_float(printer, a->f, true); break;
    case TYPE(FLOATS): psplit_i_print_float(printer, a->floats[i], true); break;
    case TYPE(INT): psplit_i_text_addf(printer->out, "%" PRId64, a->i); break;
    case TYPE(INTS): psplit_i_text_addf(printer->out, "%" PRId64, a->ints[i]); break;
    case TYPE(STRING): psplit_i_print_string(printer, a->s.data, a->s.len); break;
    case TYPE(STRINGS):
      psplit_i_print_string(printer, a->strings[i].data, a->strings[i].len);
      break;
    case TYPE(TENSOR): psplit_i_print_tensor(printer, a->t, false); break;
    case TYPE(TENSORS): psplit_i_print_tensor(printer, a->tensors[i], false); break;
    case TYPE(GRAPH): print_graph(printer, a->g); break;
    case TYPE(GRAPHS): print_graph(printer, a->graphs[i]); break;
    case TYPE(TYPE_PROTO): psplit_i_print_type(printer, a->tp); break;
    case TYPE(TYPE_PROTOS): psplit_i_print_type(printer, a->type_protos[i]); break;
    case TYPE(SPARSE_TENSOR): psplit_i_print_spelled_out(printer, &a->sparse_tensor->base); break;
    default: psplit_i_print_spelled_out(printer, &a->sparse_tensors[i]->base);
  }
}

/* Whether the value says the type of the attribute: not an empty list, nor what is spelled out. */
static bool says_type(const Onnx__AttributeProto *a) {
  switch (a->type) {
    case TYPE(SPARSE_TENSOR):
    case TYPE(SPARSE_TENSORS):
    case TYPE(TYPE_PROTO):
    case TYPE(TYPE_PROTOS): return false;
    default: return n_values(a) > 0;
  }
}

static bool is_list(const Onnx__AttributeProto *a) {
  switch (a->type) {
    case TYPE(FLOATS):
    case TYPE(INTS):
    case TYPE(STRINGS):
    case TYPE(TENSORS):
    case TYPE(GRAPHS):
    case TYPE(TYPE_PROTOS):
    case TYPE(SPARSE_TENSORS): return true;
    default: return false;
  }
}

static void print_attribute(psplit_i_printer *printer, const Onnx__AttributeProto *a) {
  enum { NAME = 1, TYPE_FIELD = 20, REF = 21 };
  const uint32_t field = a->ref_attr_name ? REF : value_field(a);
  const char *type = a->has_type ? psplit_i_attribute_type_name((int32_t)a->type) : NULL;
  if (!a->name || !field || (a->has_type && !type)) {
    psplit_i_print_spelled_out(printer, &a->base);
    return;
  }
  psplit_i_print_word(printer, a->name);
  psplit_i_print_more(printer, &a->base, FIELD(NAME) | FIELD(TYPE_FIELD) | FIELD(field));
  if (type && (field == REF || !says_type(a))) psplit_i_text_addf(printer->out, ": %s", type);
  psplit_i_print(printer, " = ");
  if (field == REF) {
    psplit_i_print(printer, "@");
    psplit_i_print_word(printer, a->ref_attr_name);
    return;
  }
  if (is_list(a)) psplit_i_print(printer, "[");
  for (size_t i = 0; i < n_values(a); i++) {
    psplit_i_print_comma(printer, i == 0);
    print_indexed(printer, a, i);
  }
  if (is_list(a)) psplit_i_print(printer, "]");
}

/* `typed`: a type might stand before each. */
static void print_ids(psplit_i_printer *printer, size_t n, char *const *names, bool typed) {
  for (size_t i = 0; i < n; i++) {
    psplit_i_print_comma(printer, i == 0);
    if (typed)
      psplit_i_print_name(printer, names[i]);
    else
      psplit_i_print_word(printer, names[i]);
  }
}

static void print_attributes(psplit_i_printer *printer, const Onnx__NodeProto *node) {
  psplit_i_print(printer, " <");
  for (size_t i = 0; i < node->n_attribute; i++) {
    psplit_i_print_comma(printer, i == 0);
    print_attribute(printer, node->attribute[i]);
  }
  psplit_i_print(printer, ">");
}

static void print_domain(psplit_i_printer *printer, const char *domain) {
  const char *c = domain;
  size_t n;
  while (psplit_i_is_word(c, n = strcspn(c, ".")) && c[n]) c += n + 1;
  if (psplit_i_is_word(c, strlen(c)))
    psplit_i_print(printer, domain);
  else
    psplit_i_print_string(printer, domain, strlen(domain));
  psplit_i_print(printer, ".");
}

/* [name] outputs = domain.Op:overload <attributes> (inputs), with graphs behind the inputs. */
static void print_node(psplit_i_printer *printer, const Onnx__NodeProto *node) {
  enum { INPUT = 1, OUTPUT = 2, NAME = 3, OP_TYPE = 4, ATTRIBUTE = 5, DOMAIN = 7, OVERLOAD = 8 };
  uint64_t printed = FIELD(INPUT) | FIELD(OUTPUT) | FIELD(NAME) | FIELD(OP_TYPE) |
                     FIELD(ATTRIBUTE) | FIELD(OVERLOAD);
  bool has_graph = false;
  for (size_t i = 0; i < node->n_attribute; i++)
    has_graph |= node->attribute[i]->g || node->attribute[i]->n_graphs;
  if (node->name) {
    psplit_i_print(printer, "[");
    psplit_i_print_word(printer, node->name);
    psplit_i_print(printer, "] ");
  }
  print_ids(printer, node->n_output, node->output, false);
  psplit_i_print(printer, node->n_output ? " = " : "= ");
  if (node->op_type) {
    printed |= FIELD(DOMAIN);
    if (node->domain) print_domain(printer, node->domain);
    psplit_i_print_word(printer, node->op_type);
  }
  if (node->overload) {
    psplit_i_print(printer, ":");
    psplit_i_print_word(printer, node->overload);
  }
  if (node->n_attribute && !has_graph) print_attributes(printer, node);
  const bool named = node->op_type || node->overload || (node->n_attribute && !has_graph);
  psplit_i_print(printer, named ? " (" : "(");
  print_ids(printer, node->n_input, node->input, false);
  psplit_i_print(printer, ")");
  if (has_graph) print_attributes(printer, node);
  psplit_i_print_more(printer, &node->base, printed);
}

static void print_nodes(psplit_i_printer *printer, size_t n, Onnx__NodeProto *const *nodes) {
  psplit_i_print(printer, "{");
  printer->indent++;
  for (size_t i = 0; i < n; i++) {
    psplit_i_print_line(printer);
    print_node(printer, nodes[i]);
  }
  printer->indent--;
  if (n) psplit_i_print_line(printer);
  psplit_i_print(printer, "}");
}

static void print_infos(psplit_i_printer *printer, size_t n, Onnx__ValueInfoProto *const *infos) {
  psplit_i_print(printer, "(");
  for (size_t i = 0; i < n; i++) {
    psplit_i_print_comma(printer, i == 0);
    psplit_i_print_value_info(printer, infos[i]);
  }
  psplit_i_print(printer, ")");
}

/* Initializers and types of values, one a line. */
static void print_declarations(psplit_i_printer *printer, const Onnx__GraphProto *graph) {
  const size_t n = graph->n_initializer + graph->n_value_info;
  if (!n) return;
  psplit_i_print_line(printer);
  psplit_i_print(printer, "<");
  printer->indent++;
  for (size_t i = 0; i < n; i++) {
    if (i) psplit_i_print(printer, ",");
    psplit_i_print_line(printer);
    if (i < graph->n_initializer)
      psplit_i_print_tensor(printer, graph->initializer[i], true);
    else
      psplit_i_print_value_info(printer, graph->value_info[i - graph->n_initializer]);
  }
  printer->indent--;
  psplit_i_print_line(printer);
  psplit_i_print(printer, ">");
}

static void print_graph(psplit_i_printer *printer, const Onnx__GraphProto *graph) {
  enum { NODE = 1, NAME = 2, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, VALUE_INFO = 13 };
  if (graph->name) {
    psplit_i_print_name(printer, graph->name);
    psplit_i_print(printer, " ");
  }
  print_infos(printer, graph->n_input, graph->input);
  psplit_i_print(printer, " => ");
  print_infos(printer, graph->n_output, graph->output);
  psplit_i_print_more(printer, &graph->base,
                      FIELD(NODE) | FIELD(NAME) | FIELD(INITIALIZER) | FIELD(INPUT) |
                        FIELD(OUTPUT) | FIELD(VALUE_INFO));
  print_declarations(printer, graph);
  psplit_i_print(printer, " ");
  print_nodes(printer, graph->n_node, graph->node);
}

/* < a field a line > */
static void print_header(psplit_i_printer *printer, const ProtobufCMessage *message,
                         uint64_t printed) {
  psplit_i_print(printer, "<");
  if (psplit_i_has_more(message, printed)) {
    printer->indent++;
    psplit_i_print_fields(printer, message, printed, true);
    printer->indent--;
    psplit_i_print_line(printer);
  }
  psplit_i_print(printer, ">");
  psplit_i_print_line(printer);
}

/* Names that are attributes, and attributes with default values. */
static void print_function_attributes(psplit_i_printer *printer,
                                      const Onnx__FunctionProto *function) {
  if (!function->n_attribute && !function->n_attribute_proto) return;
  psplit_i_print(printer, " <");
  print_ids(printer, function->n_attribute, function->attribute, false);
  for (size_t i = 0; i < function->n_attribute_proto; i++) {
    psplit_i_print_comma(printer, i == 0 && !function->n_attribute);
    print_attribute(printer, function->attribute_proto[i]);
  }
  psplit_i_print(printer, ">");
}

static void print_function(psplit_i_printer *printer, const Onnx__FunctionProto *function) {
  enum { NAME = 1, INPUT = 4, OUTPUT = 5, ATTRIBUTE = 6, NODE = 7, DEFAULTS = 11, INFO = 12 };
  if (!function->name) {
    psplit_i_print_spelled_out(printer, &function->base);
    return;
  }
  print_header(printer, &function->base,
               FIELD(NAME) | FIELD(INPUT) | FIELD(OUTPUT) | FIELD(ATTRIBUTE) | FIELD(NODE) |
                 FIELD(DEFAULTS) | FIELD(INFO));
  psplit_i_print_name(printer, function->name);
  print_function_attributes(printer, function);
  psplit_i_print(printer, " (");
  print_ids(printer, function->n_input, function->input, true);
  psplit_i_print(printer, ") => (");
  print_ids(printer, function->n_output, function->output, true);
  psplit_i_print(printer, ")");
  for (size_t i = 0; i < function->n_value_info; i++) {
    psplit_i_print(printer, i ? ", " : " <");
    psplit_i_print_value_info(printer, function->value_info[i]);
  }
  psplit_i_print(printer, function->n_value_info ? "> " : " ");
  print_nodes(printer, function->n_node, function->node);
}

static void print_model(psplit_i_printer *printer, const Onnx__ModelProto *model) {
  enum { GRAPH = 7, FUNCTIONS = 25 };
  print_header(printer, &model->base, model->graph ? FIELD(GRAPH) | FIELD(FUNCTIONS) : 0);
  if (!model->graph) return;
  print_graph(printer, model->graph);
  psplit_i_print(printer, "\n");
  for (size_t i = 0; i < model->n_functions; i++) {
    print_function(printer, model->functions[i]);
    psplit_i_print(printer, "\n");
  }
}

static void write_graph(psplit_i_printer *printer, const void *message) {
  print_graph(printer, message);
}

static void write_tensor(psplit_i_printer *printer, const void *message) {
  psplit_i_print_tensor(printer, message, false);
}

static void write_type(psplit_i_printer *printer, const void *message) {
  psplit_i_print_type(printer, message);
}

static void write_value_info(psplit_i_printer *printer, const void *message) {
  psplit_i_print_value_info(printer, message);
}

static const psplit_i_message_printer MESSAGE_SYNTAX[] = {
  {&onnx__graph_proto__descriptor, write_graph},
  {&onnx__tensor_proto__descriptor, write_tensor},
  {&onnx__type_proto__descriptor, write_type},
  {&onnx__value_info_proto__descriptor, write_value_info},
  {NULL, NULL}};

psplit_code psplit_i_text_print(const Onnx__ModelProto *model,
                                const psplit_print_text_options *options,
                                psplit_i_payload_reader reader, void *user, psplit_diag *diag,
                                psplit_i_text *out) {
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  psplit_i_printer printer = {.out = out,
                              .max_data_bytes = options ? options->max_data_bytes : 1024,
                              .reader = reader,
                              .user = user,
                              .diag = diag,
                              .syntax = MESSAGE_SYNTAX};
  print_model(&printer, model);
  psplit_i_plain_numbers_end(numbers);
  if (printer.code == PSPLIT_OK && out->failed) printer.code = psplit_i_nomem(diag);
  return printer.code;
}
