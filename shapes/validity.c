/* Detects nodes that violate rules of their operator, which runtimes reject, during inference,
 * which continues. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "infer.h"

/* The newest operator set of ONNX that rules.def knows. */
enum { NEWEST_OPSET = 26, BOOL = 9, INT64 = 7, N_LETTERS = 'Z' - 'A' + 1 };

typedef struct inputs_row {
  const char *domain, *op_type;
  int64_t since;
  const char *inputs;
} inputs_row;

static const inputs_row ROWS[] = {
#define PSPLIT_INPUTS(domain, op, since, inputs) {domain, op, since, inputs},
#include "inputs.def"
#undef PSPLIT_INPUTS
};
enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

static int compare(const inputs_row *row, const char *domain, const char *op_type, int64_t opset) {
  const int by_domain = strcmp(row->domain, domain);
  if (by_domain) return by_domain;
  const int by_name = strcmp(row->op_type, op_type);
  return by_name ? by_name : (row->since > opset) - (row->since < opset);
}

const char *psplit_i_inputs_of(const char *domain, const char *op_type, int64_t opset) {
  size_t low = 0, high = N_ROWS; /* rows below `low` are at most what is looked for */
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (compare(&ROWS[middle], domain, op_type, opset) <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return NULL;
  const inputs_row *row = &ROWS[low - 1];
  return strcmp(row->domain, domain) == 0 && strcmp(row->op_type, op_type) == 0 ? row->inputs
                                                                                : NULL;
}

bool psplit_i_inputs_sorted(void) {
  for (size_t i = 1; i < N_ROWS; i++)
    if (compare(&ROWS[i - 1], ROWS[i].domain, ROWS[i].op_type, ROWS[i].since) >= 0) return false;
  return true;
}

/* Keeps the first fault of a kind. */
static void note(psplit_i_shapes *s, const char **fault, const char *text) {
  if (*fault) return;
  const size_t n = strlen(text) + 1;
  char *copy = psplit_i_arena_array(&s->arena, n, 1);
  if (!copy) {
    s->failed = true;
    return;
  }
  *fault = memcpy(copy, text, n);
}

static void node_fault(psplit_i_site *at, const char **fault, const char *format, ...)
  PSPLIT_PRINTF(3, 4);
static void node_fault(psplit_i_site *at, const char **fault, const char *format, ...) {
  char label[200], why[600], text[900];
  va_list args;
  if (*fault) return;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  snprintf(text, sizeof text, "no runtime accepts node %s%s%s%s: %s",
           psplit_i_node_label(at->scope->graph, at->id, label, sizeof label),
           *at->node->name ? " (" : "", *at->node->name ? at->node->op_type : "",
           *at->node->name ? ")" : "", why);
  note(at->s, fault, text);
}

void psplit_i_sizes_differ(psplit_i_site *at, psplit_dim a, psplit_dim b) {
  /* A body may hold what never runs. */
  if (at->s->size_fault || at->scope->depth > 0) return;
  psplit_i_text text = {0};
  for (uint32_t i = 0; i < at->node->n_inputs; i++) {
    if (!psplit_i_has(at, i)) continue;
    if (text.n) psplit_i_text_puts(&text, " and ");
    psplit_i_shapes_print(at->s, psplit_i_in(at, i), &text);
    if (text.n > 300) break;
  }
  psplit_i_text_puts(&text, " do not fit: ");
  psplit_i_dim_print(at->dims, a, &text);
  psplit_i_text_puts(&text, " is not ");
  psplit_i_dim_print(at->dims, b, &text);
  if (text.failed)
    at->s->failed = true;
  else
    node_fault(at, &at->s->size_fault, "inputs %s", text.bytes);
  psplit_i_text_fini(&text);
}

void psplit_i_must_agree(psplit_i_site *at, psplit_dim a, psplit_dim b) {
  int64_t x, y;
  const bool x_known = psplit_i_dim_is_const(at->dims, a, &x);
  const bool y_known = psplit_i_dim_is_const(at->dims, b, &y);
  if (x_known && y_known && x != y) psplit_i_sizes_differ(at, a, b);
  /* A body may hold what never runs. */
  if (x_known != y_known && at->scope == at->s->root)
    psplit_i_learn_size(at->s, x_known ? b : a, x_known ? x : y, true);
}

static const char *type_name(int32_t elem) {
  const char *name = psplit_i_dtype_name(elem);
  return name ? name : "of another type";
}

/* The element type of an input that is a tensor; 0 where it is not known. */
static int32_t tensor_elem(const psplit_i_site *at, uint32_t input) {
  const psplit_i_vtype *type = psplit_i_in(at, input);
  return type->kind == PSPLIT_TYPE_TENSOR ? type->elem : 0;
}

/* bound[letter]: the type that a letter stands for so far. */
static void check_input(psplit_i_site *at, uint32_t input, char letter, int32_t *bound) {
  const int32_t elem = letter == '.' ? 0 : tensor_elem(at, input);
  if (!elem) return;
  if (letter == 'B' || letter == 'I') {
    const int32_t asked = letter == 'B' ? BOOL : INT64;
    if (elem != asked)
      node_fault(at, &at->s->fault, "input %u is %s and has to be %s", (unsigned)input,
                 type_name(elem), type_name(asked));
  } else if (letter < 'T' && !psplit_i_is_real_type(elem)) {
    node_fault(at, &at->s->fault, "input %u is %s and has to be a floating-point type",
               (unsigned)input, type_name(elem));
  } else if (bound[letter - 'A'] && bound[letter - 'A'] != elem) {
    node_fault(at, &at->s->fault, "types of its inputs do not agree: %s and %s",
               type_name(bound[letter - 'A']), type_name(elem));
  } else {
    bound[letter - 'A'] = elem;
  }
}

static void check_inputs(psplit_i_site *at, const char *inputs) {
  int32_t bound[N_LETTERS] = {0};
  uint32_t input = 0;
  for (const char *c = inputs; *c; input++) {
    const char letter = *c++;
    const bool optional = *c == '?';
    if (optional) c++;
    const bool rest = *c == '*';
    if (rest) c++;
    if (!optional && !psplit_i_has(at, input))
      node_fault(at, &at->s->fault, "input %u is missing", (unsigned)input);
    check_input(at, input, letter, bound);
    while (rest && ++input < at->node->n_inputs) check_input(at, input, letter, bound);
  }
}

/* ONNX Runtime knows the domains of its own without an import. */
static bool needs_import(const char *domain) {
  return strncmp(domain, "com.m", 5) != 0 && strncmp(domain, "ai.onnx.", 8) != 0;
}

void psplit_i_fault_node(psplit_i_site *at) {
  const psplit_i_node *node = at->node;
  const char **fault = &at->s->fault;
  if (*fault) return;
  if (!*node->op_type)
    node_fault(at, fault, "it has no operator");
  else if (node->function != PSPLIT_NONE)
    return;
  else if (!*node->domain && node->opset > NEWEST_OPSET)
    node_fault(at, fault, "operator set %lld is newer than all that are known here, up to %d",
               (long long)node->opset, NEWEST_OPSET);
  else if (node->opset == 0 && needs_import(node->domain))
    node_fault(at, fault, "no operator set is imported for %s%s%s", *node->domain ? "\"" : "",
               *node->domain ? node->domain : "the operators of ONNX", *node->domain ? "\"" : "");
  const char *inputs = psplit_i_inputs_of(node->domain, node->op_type, node->opset);
  if (inputs) check_inputs(at, inputs);
}

void psplit_i_fault_declared(psplit_i_site *at, uint32_t output) {
  if (at->s->fault || *at->node->domain || at->node->function != PSPLIT_NONE) return;
  const uint32_t value = at->node->outputs[output];
  const psplit_i_vtype *made = &at->scope->types[value];
  const Onnx__TypeProto *declared = at->scope->graph->values[value].declared_type;
  if (!declared || made->kind != PSPLIT_TYPE_TENSOR || !made->elem ||
      psplit_i_type_kind(declared) != PSPLIT_TYPE_TENSOR)
    return;
  const int32_t elem = psplit_i_type_elem(declared);
  if (elem && elem != made->elem)
    node_fault(at, &at->s->fault, "its result \"%s\" is %s and declared as %s",
               at->scope->graph->values[value].name, type_name(made->elem), type_name(elem));
}

void psplit_i_fault_outputs(psplit_i_shapes *s) {
  const psplit_i_graph *graph = s->graph;
  bool *seen = psplit_i_arena_zeroed(&s->arena, graph->n_values, sizeof *seen);
  if (!seen) {
    s->failed = true;
    return;
  }
  for (uint32_t i = 0; i < graph->n_outputs; i++) {
    const uint32_t value = graph->outputs[i];
    char text[600];
    if (seen[value]) {
      snprintf(text, sizeof text, "ONNX forbids that output \"%s\" is listed twice",
               graph->values[value].name);
      note(s, &s->fault, text);
    }
    seen[value] = true;
  }
}

const char *psplit_i_shapes_fault(const psplit_i_shapes *s) { return s->fault; }
const char *psplit_i_shapes_size_fault(const psplit_i_shapes *s) { return s->size_fault; }
