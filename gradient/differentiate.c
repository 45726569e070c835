/* Need analysis, the walk over nodes, sums of contributions. */
#include "differentiate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "rule.h"

static bool is_float(int32_t elem) {
  return elem == PSPLIT_ELEM_FLOAT || elem == PSPLIT_ELEM_DOUBLE || elem == PSPLIT_ELEM_FLOAT16 ||
         elem == PSPLIT_ELEM_BFLOAT16;
}

/* Whether a value can carry a gradient at all; an unknown type may. Integers do not, but for those
 * that an operator without a rule makes of floats: a gradient that ended at a quantised tensor
 * would be wrong without a word, so the operator has to be met, and refused. */
static bool carries(const psplit_i_pass *pass, uint32_t value) {
  const int32_t elem = psplit_i_shapes_type(pass->shapes, value)->elem;
  if (elem == 0 || is_float(elem)) return true;
  if (elem == PSPLIT_ELEM_INT64 || elem == PSPLIT_ELEM_BOOL || elem == PSPLIT_ELEM_STRING)
    return false;
  const uint32_t producer = pass->graph->values[value].producer;
  return producer != PSPLIT_NONE && !psplit_i_gradient_rule_of(&pass->graph->nodes[producer]);
}

/* Whether a gradient goes from the node to its input i. A node without a rule is taken to pass
 * gradients to all inputs and captures: it is refused where that matters. */
static bool passes(const psplit_i_gradient_rule *rule, uint32_t i) {
  if (!rule) return true;
  if (!rule->rule) return false;
  return i < 31 ? rule->inputs >> i & 1 : rule->inputs >> 31;
}

/* Input i of the node where it exists and carries gradients from it, or PSPLIT_NONE. Captures come
 * after the inputs. */
static uint32_t edge(const psplit_i_pass *pass, const psplit_i_node *node,
                     const psplit_i_gradient_rule *rule, uint32_t i) {
  const uint32_t value = i < node->n_inputs ? node->inputs[i] : node->captures[i - node->n_inputs];
  if (value == PSPLIT_NONE || !passes(rule, i) || !carries(pass, value)) return PSPLIT_NONE;
  return value;
}

static void mark_depends(psplit_i_pass *pass) {
  const psplit_i_graph *graph = pass->graph;
  for (uint32_t w = 0; w < pass->n_wanted; w++) pass->origin[pass->wanted[w]] = pass->wanted[w];
  for (uint32_t t = 0; t < graph->n_nodes; t++) {
    const psplit_i_node *node = &graph->nodes[graph->topo[t]];
    const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(node);
    uint32_t from = PSPLIT_NONE;
    for (uint32_t i = 0; i < node->n_inputs + node->n_captures && from == PSPLIT_NONE; i++) {
      const uint32_t value = edge(pass, node, rule, i);
      if (value != PSPLIT_NONE) from = pass->origin[value];
    }
    for (uint32_t o = 0; o < node->n_outputs && from != PSPLIT_NONE; o++) {
      const uint32_t value = node->outputs[o];
      if (value != PSPLIT_NONE && carries(pass, value) && pass->origin[value] == PSPLIT_NONE)
        pass->origin[value] = from;
    }
  }
}

static void mark_reaches(psplit_i_pass *pass, uint32_t loss) {
  const psplit_i_graph *graph = pass->graph;
  pass->reaches[loss] = true;
  for (uint32_t t = graph->n_nodes; t-- > 0;) {
    const psplit_i_node *node = &graph->nodes[graph->topo[t]];
    bool reaches = false;
    for (uint32_t o = 0; o < node->n_outputs; o++) {
      const uint32_t value = node->outputs[o];
      if (value != PSPLIT_NONE) reaches |= pass->reaches[value] && carries(pass, value);
    }
    if (!reaches) continue;
    const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(node);
    for (uint32_t i = 0; i < node->n_inputs + node->n_captures; i++) {
      const uint32_t value = edge(pass, node, rule, i);
      if (value != PSPLIT_NONE) pass->reaches[value] = true;
    }
  }
}

/* Whether the gradient of a value is needed on the way to a wanted one. */
static bool needed(const psplit_i_pass *pass, uint32_t value) {
  return pass->origin[value] != PSPLIT_NONE && pass->reaches[value];
}

void psplit_i_refuse(psplit_i_at *at, const char *format, ...) {
  psplit_i_pass *pass = at->pass;
  if (pass->code != PSPLIT_OK || at->b->failed) return; /* out of memory comes first */
  char why[512], label[160];
  va_list args;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(at->node);
  uint32_t from = PSPLIT_NONE;
  for (uint32_t i = 0; i < at->node->n_inputs + at->node->n_captures && from == PSPLIT_NONE; i++) {
    const uint32_t value = edge(pass, at->node, rule, i);
    if (value != PSPLIT_NONE && pass->reaches[value]) from = pass->origin[value];
  }
  const char *weight = from == PSPLIT_NONE ? "?" : pass->graph->values[from].name;
  pass->code = psplit_i_fail(
    pass->diag, PSPLIT_UNSUPPORTED,
    "node \"%s\" (%s%s%s), on the path from the loss to \"%s\", cannot be differentiated: %s; "
    "freeze \"%s\", and all else that it is on the path to, or change the model",
    psplit_i_node_label(pass->graph, at->id, label, sizeof label), at->node->domain,
    *at->node->domain ? "." : "", at->node->op_type, weight, why, weight);
  at->b->failed = true;
}

psplit_i_ref psplit_i_gradient_at(psplit_i_at *at, uint32_t output) {
  if (output >= at->node->n_outputs || at->node->outputs[output] == PSPLIT_NONE) return PSPLIT_NONE;
  return at->pass->gradient[at->node->outputs[output]];
}

bool psplit_i_wanted(const psplit_i_at *at, uint32_t input) {
  if (input >= at->node->n_inputs || at->node->inputs[input] == PSPLIT_NONE) return false;
  return needed(at->pass, at->node->inputs[input]) && carries(at->pass, at->node->inputs[input]);
}

void psplit_i_give(psplit_i_at *at, uint32_t input, psplit_i_ref gradient) {
  if (!wanted(at, input) || gradient == PSPLIT_NONE) return;
  psplit_i_ref *sum = &at->pass->gradient[at->node->inputs[input]];
  *sum = *sum == PSPLIT_NONE ? gradient : add(at, *sum, gradient);
}

/* Runs the rule of one node, if a gradient arrives and one is needed. */
static void visit(psplit_i_pass *pass, uint32_t id) {
  const psplit_i_node *node = &pass->graph->nodes[id];
  psplit_i_at at = {pass, pass->b, node, id, 0};
  const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(node);
  uint32_t arrives = PSPLIT_NONE, goes = PSPLIT_NONE, beyond = PSPLIT_NONE;
  for (uint32_t o = node->n_outputs; o-- > 0;) {
    const uint32_t value = node->outputs[o];
    if (value == PSPLIT_NONE || pass->gradient[value] == PSPLIT_NONE) continue;
    arrives = value;
    if (rule && (o > 31 || !(rule->outputs >> o & 1))) beyond = o;
  }
  for (uint32_t i = node->n_inputs + node->n_captures; i-- > 0;) {
    const uint32_t value = edge(pass, node, rule, i);
    if (value != PSPLIT_NONE && needed(pass, value)) goes = value;
  }
  if (arrives == PSPLIT_NONE || goes == PSPLIT_NONE) return;
  at.elem = psplit_i_shapes_type(pass->shapes, arrives)->elem;
  pass->b->twin = id;
  if (!rule) {
    psplit_i_refuse(&at, node->n_bodies ? "its bodies are not looked into"
                         : node->function != PSPLIT_NONE
                           ? "it calls a function of the model, which is not looked into"
                           : "there is no rule for this operator");
  } else if (!is_float(at.elem)) {
    psplit_i_refuse(&at, "its element type is not known");
  } else if (beyond != PSPLIT_NONE) {
    psplit_i_refuse(&at, "the loss is made of its output %" PRIu32, beyond);
  } else {
    rule->rule(&at);
  }
}

psplit_code psplit_i_differentiate(const psplit_i_shapes *shapes, uint32_t loss,
                                   psplit_i_ref loss_gradient, const uint32_t *wanted_values,
                                   uint32_t n, psplit_i_backward *b, psplit_diag *diag,
                                   psplit_i_ref *out_gradients) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  psplit_i_pass pass = {
    .graph = graph, .shapes = shapes, .b = b, .wanted = wanted_values, .n_wanted = n, .diag = diag};
  pass.origin = psplit_i_arena_array(&scratch, graph->n_values, sizeof *pass.origin);
  pass.reaches = PSPLIT_NEW(&scratch, bool, graph->n_values);
  pass.gradient = psplit_i_arena_array(&scratch, graph->n_values, sizeof *pass.gradient);
  if (!pass.origin || !pass.reaches || !pass.gradient) PSPLIT_TRY(psplit_i_nomem(diag));
  for (uint32_t v = 0; v < graph->n_values; v++) pass.origin[v] = pass.gradient[v] = PSPLIT_NONE;
  mark_depends(&pass);
  mark_reaches(&pass, loss);
  pass.gradient[loss] = loss_gradient;
  for (uint32_t t = graph->n_nodes; t-- > 0 && pass.code == PSPLIT_OK && !b->failed;)
    visit(&pass, graph->topo[t]);
  PSPLIT_TRY(pass.code);
  if (b->failed) PSPLIT_TRY(psplit_i_nomem(diag));
  for (uint32_t w = 0; w < n; w++) out_gradients[w] = pass.gradient[wanted_values[w]];
out:
  psplit_i_arena_fini(&scratch);
  return code;
}
