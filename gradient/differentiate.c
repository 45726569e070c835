/* Need analysis, the walk over nodes, sums of contributions. */
#include "differentiate.h"

#include <inttypes.h>
#include <string.h>

#include "rule.h"
#include "site.h"
#include "weights.h"

static void mark_depends(psplit_i_pass *pass) {
  const psplit_i_graph *graph = pass->graph;
  for (uint32_t w = 0; w < pass->n_wanted; w++) pass->origin[pass->wanted[w]] = pass->wanted[w];
  for (uint32_t t = 0; t < graph->n_nodes; t++) {
    const psplit_i_node *node = &graph->nodes[graph->topo[t]];
    const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(node);
    uint32_t from = PSPLIT_NONE;
    for (uint32_t i = 0; i < node->n_inputs + node->n_captures && from == PSPLIT_NONE; i++) {
      const uint32_t value = psplit_i_edge(pass, node, rule, i);
      if (value != PSPLIT_NONE) from = pass->origin[value];
    }
    for (uint32_t o = 0; o < node->n_outputs && from != PSPLIT_NONE; o++) {
      const uint32_t value = node->outputs[o];
      if (value != PSPLIT_NONE && psplit_i_carries(pass, value) &&
          pass->origin[value] == PSPLIT_NONE)
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
      if (value != PSPLIT_NONE) reaches |= pass->reaches[value] && psplit_i_carries(pass, value);
    }
    if (!reaches) continue;
    const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(node);
    for (uint32_t i = 0; i < node->n_inputs + node->n_captures; i++) {
      const uint32_t value = psplit_i_edge(pass, node, rule, i);
      if (value != PSPLIT_NONE) pass->reaches[value] = true;
    }
  }
}

/* An input that the rule reads, and the node has not; PSPLIT_NONE: it has them all. */
static uint32_t omitted_input(const psplit_i_at *at, const psplit_i_gradient_rule *rule) {
  const uint32_t n = at->node->n_inputs;
  const uint32_t needs = rule->needs != PSPLIT_ALL ? rule->needs : n ? n : 1;
  for (uint32_t i = 0; i < needs; i++)
    if (!psplit_i_given(at, i)) return i;
  return PSPLIT_NONE;
}

static bool computes_with_quantised(const psplit_i_at *at) {
  bool any = false;
  for (uint32_t i = 0; i < at->node->n_inputs; i++)
    any |= psplit_i_given(at, i) && psplit_i_is_quantised(psplit_i_type_in(at, i)->elem);
  for (uint32_t o = 0; o < at->node->n_outputs; o++)
    any |= psplit_i_is_quantised(psplit_i_type_out(at, o)->elem);
  return any;
}

/* What a node without a rule and without bodies is refused for. */
static const char *why_no_rule(const psplit_i_at *at) {
  if (at->node->function != PSPLIT_NONE)
    return "it calls a function of the model, and gradients through functions are not supported";
  if (computes_with_quantised(at))
    return "it computes with quantised numbers, which have no gradients: train the model as it was "
           "before it was quantised";
  static const char runtime[] = "com.microsoft"; /* and com.microsoft.nchwc */
  if (strncmp(at->node->domain, runtime, sizeof runtime - 1) == 0)
    return "there is no rule for this operator, which an optimiser wrote for one runtime: train "
           "the original model";
  return "there is no rule for this operator";
}

/* A gradient that a rule left out would be missing from a sum without a word. */
static void check_given(psplit_i_at *at, const psplit_i_gradient_rule *rule) {
  for (uint32_t i = 0; i < at->node->n_inputs; i++)
    if (psplit_i_edge(at->pass, at->node, rule, i) != PSPLIT_NONE && wanted(at, i) &&
        !(at->given & psplit_i_given_bit(i)))
      psplit_i_refuse(at, "its rule does not support this form");
}

/* Runs the rule of one node, if a gradient arrives and one is needed. */
static void visit(psplit_i_pass *pass, uint32_t id) {
  const psplit_i_node *node = &pass->graph->nodes[id];
  psplit_i_at at = {
    .pass = pass, .b = pass->b, .node = node, .id = id, .before_activation = PSPLIT_NONE};
  const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(node);
  uint32_t arrives = PSPLIT_NONE, goes = PSPLIT_NONE, beyond = PSPLIT_NONE;
  for (uint32_t o = node->n_outputs; o-- > 0;) {
    const uint32_t value = node->outputs[o];
    if (value == PSPLIT_NONE || pass->gradient[value] == PSPLIT_NONE) continue;
    arrives = value;
    if (rule && (o > 31 || !(rule->outputs >> o & 1))) beyond = o;
  }
  for (uint32_t i = node->n_inputs + node->n_captures; i-- > 0;) {
    const uint32_t value = psplit_i_edge(pass, node, rule, i);
    if (value != PSPLIT_NONE && psplit_i_needed(pass, value)) goes = value;
  }
  if (arrives == PSPLIT_NONE || goes == PSPLIT_NONE) return;
  const uint32_t omitted = rule ? omitted_input(&at, rule) : PSPLIT_NONE;
  at.elem = at.narrow = psplit_i_shapes_type(pass->shapes, arrives)->elem;
  pass->b->twin = id;
  if (!rule && node->n_bodies) {
    psplit_i_refuse(&at, "gradients through its bodies are not supported%s",
                    psplit_i_without_bodies(node));
  } else if (!rule) {
    psplit_i_refuse(&at, "%s", why_no_rule(&at));
  } else if (omitted != PSPLIT_NONE) {
    psplit_i_refuse(&at, "its input %" PRIu32 " is omitted", omitted);
  } else if (!psplit_i_is_float(at.elem)) {
    psplit_i_refuse(&at, "its element type is not known");
  } else if (beyond != PSPLIT_NONE) {
    psplit_i_refuse(&at, "the loss depends on its output %" PRIu32, beyond);
  } else {
    rule->rule(&at);
    check_given(&at, rule);
  }
}

psplit_code psplit_i_differentiate(const psplit_i_shapes *shapes, psplit_i_differentiated loss,
                                   const uint32_t *wanted_values, uint32_t n, psplit_i_backward *b,
                                   psplit_diag *diag, psplit_i_ref *out_gradients) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  psplit_i_pass pass = {.graph = graph,
                        .shapes = shapes,
                        .b = b,
                        .wanted = wanted_values,
                        .n_wanted = n,
                        .rule_of = psplit_i_gradient_rule_of,
                        .diag = diag};
  pass.origin = psplit_i_arena_array(&scratch, graph->n_values, sizeof *pass.origin);
  pass.reaches = PSPLIT_NEW(&scratch, bool, graph->n_values);
  pass.gradient = psplit_i_arena_array(&scratch, graph->n_values, sizeof *pass.gradient);
  if (scratch.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t v = 0; v < graph->n_values; v++) pass.origin[v] = pass.gradient[v] = PSPLIT_NONE;
  mark_depends(&pass);
  mark_reaches(&pass, loss.value);
  pass.gradient[loss.value] = loss.gradient;
  for (uint32_t t = graph->n_nodes; t-- > 0 && pass.code == PSPLIT_OK && !b->failed;)
    visit(&pass, graph->topo[t]);
  PSPLIT_TRY(pass.code);
  if (b->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t w = 0; w < n; w++) out_gradients[w] = pass.gradient[wanted_values[w]];
out:
  psplit_i_arena_fini(&scratch);
  return code;
}
