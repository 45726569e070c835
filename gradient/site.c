/* Interface between a node and its rule: arriving gradients, wanted gradients, results. */
#include "site.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "inline_hint.h"

/* Whether a value can carry a gradient at all; an unknown type may. Integers do not, but for those
 * that an operator without a rule makes of floats: a gradient that ended at a quantised tensor
 * would be wrong without a word, so the operator has to be met, and refused. */
bool psplit_i_carries(const psplit_i_pass *pass, uint32_t value) {
  const int32_t elem = psplit_i_shapes_type(pass->shapes, value)->elem;
  if (elem == 0 || psplit_i_is_float(elem)) return true;
  if (elem == PSPLIT_ELEM_INT64 || elem == PSPLIT_ELEM_BOOL || elem == PSPLIT_ELEM_STRING)
    return false;
  const uint32_t producer = pass->graph->values[value].producer;
  return producer != PSPLIT_NONE && !pass->rule_of(&pass->graph->nodes[producer]);
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
uint32_t psplit_i_edge(const psplit_i_pass *pass, const psplit_i_node *node,
                       const psplit_i_gradient_rule *rule, uint32_t i) {
  const uint32_t value = i < node->n_inputs ? node->inputs[i] : node->captures[i - node->n_inputs];
  if (value == PSPLIT_NONE || !passes(rule, i) || !psplit_i_carries(pass, value))
    return PSPLIT_NONE;
  return value;
}

/* Whether the gradient of a value is needed on the way to a wanted one. */
bool psplit_i_needed(const psplit_i_pass *pass, uint32_t value) {
  return pass->origin[value] != PSPLIT_NONE && pass->reaches[value];
}

/* if_node: the If whose branch, inlined, would help; PSPLIT_NONE: there is none. */
static void refuse(psplit_i_at *at, uint32_t if_node, const char *why) {
  psplit_i_pass *pass = at->pass;
  if (pass->code != PSPLIT_OK || at->b->failed) return; /* out of memory comes first */
  char label[160];
  const psplit_i_gradient_rule *rule = pass->rule_of(at->node);
  uint32_t from = PSPLIT_NONE;
  for (uint32_t i = 0; i < at->node->n_inputs + at->node->n_captures && from == PSPLIT_NONE; i++) {
    const uint32_t value = psplit_i_edge(pass, at->node, rule, i);
    if (value != PSPLIT_NONE && pass->reaches[value]) from = pass->origin[value];
  }
  const char *weight = from == PSPLIT_NONE ? "?" : pass->graph->values[from].name;
  psplit_i_advice advice = {0};
  at->b->failed = true;
  if (if_node != PSPLIT_NONE && !psplit_i_inline_hint(pass->graph, if_node, &advice)) return;
  pass->code = psplit_i_fail_about(
    pass->diag, PSPLIT_UNSUPPORTED, advice,
    "node \"%s\" (%s%s%s), on the path from the loss to \"%s\", cannot be differentiated: %s; "
    "freeze \"%s\", and all else that it is on the path to, or change the model",
    psplit_i_node_label(pass->graph, at->id, label, sizeof label), at->node->domain,
    *at->node->domain ? "." : "", at->node->op_type, weight, why, weight);
}

void psplit_i_refuse(psplit_i_at *at, const char *format, ...) {
  char why[512];
  va_list args;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  refuse(at, psplit_i_node_is(at->node, "If") ? at->id : PSPLIT_NONE, why);
}

/* The node that computes the first input of unknown rank, or PSPLIT_NONE. */
static uint32_t leaves_rank_open(const psplit_i_pass *pass, const psplit_i_node *node) {
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const uint32_t v = node->inputs[i];
    if (v != PSPLIT_NONE && psplit_i_shapes_type(pass->shapes, v)->rank < 0 &&
        pass->graph->values[v].producer != PSPLIT_NONE)
      return pass->graph->values[v].producer;
  }
  return PSPLIT_NONE;
}

void psplit_i_refuse_rank(psplit_i_at *at, const char *what) {
  const psplit_i_graph *graph = at->pass->graph;
  char why[512], label[160];
  uint32_t before = leaves_rank_open(at->pass, at->node);
  while (before != PSPLIT_NONE && !psplit_i_node_is(&graph->nodes[before], "If"))
    before = leaves_rank_open(at->pass, &graph->nodes[before]);
  snprintf(why, sizeof why, "%s is not known", what);
  if (before != PSPLIT_NONE)
    snprintf(why, sizeof why, "%s is not known: If \"%s\" leaves it open", what,
             psplit_i_node_label(graph, before, label, sizeof label));
  refuse(at, before, why);
}

psplit_i_ref psplit_i_gradient_at(psplit_i_at *at, uint32_t output) {
  if (output >= at->node->n_outputs || at->node->outputs[output] == PSPLIT_NONE) return PSPLIT_NONE;
  if (output == 0 && at->before_activation != PSPLIT_NONE) return at->before_activation;
  return at->pass->gradient[at->node->outputs[output]];
}

bool psplit_i_wanted(const psplit_i_at *at, uint32_t input) {
  if (input >= at->node->n_inputs || at->node->inputs[input] == PSPLIT_NONE) return false;
  return psplit_i_needed(at->pass, at->node->inputs[input]) &&
         psplit_i_carries(at->pass, at->node->inputs[input]);
}

void psplit_i_give_nothing(psplit_i_at *at, uint32_t input) {
  at->given |= psplit_i_given_bit(input);
}

void psplit_i_give(psplit_i_at *at, uint32_t input, psplit_i_ref gradient) {
  if (!wanted(at, input) || gradient == PSPLIT_NONE) return;
  const uint32_t value = at->node->inputs[input];
  psplit_i_give_nothing(at, input);
  if (at->b->apart && at->b->apart[value]) {
    const psplit_i_contribution one = {value, at->id, gradient};
    if (!psplit_i_vec_push(&at->b->contributions, one)) at->b->failed = true;
    return;
  }
  psplit_i_ref *sum = &at->pass->gradient[value];
  *sum = sum_given(at, *sum, gradient);
}
