/* Connects the nodes of a scope: inputs, captures of bodies, called functions. Scopes are built
 * from the outside in. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "graph_order.h"
#include "graph_scope.h"

/* Value of `name` as seen from scope `s`; a name of an enclosing scope is captured on the way in.
 * PSPLIT_NONE in *out where no scope defines it. */
static psplit_code look_up(psplit_i_graph_builder *b, psplit_i_graph_scope *s, const char *name,
                           uint32_t *out) {
  psplit_code code = PSPLIT_OK;
  *out = psplit_i_intern_find(&s->graph->names, name);
  if (*out != PSPLIT_NONE || !s->outer) return PSPLIT_OK;
  uint32_t outer;
  PSPLIT_TRY(look_up(b, s->outer, name, &outer));
  if (outer == PSPLIT_NONE) return PSPLIT_OK;
  psplit_i_value *value;
  PSPLIT_TRY(psplit_i_graph_scope_define(b, s, name, &value));
  value->outer = outer;
  *out = (uint32_t)(value - s->values.items);
out:
  return code;
}

static void sort_ids(uint32_t *ids, uint32_t n) {
  if (n) qsort(ids, n, sizeof *ids, psplit_i_compare_u32);
}

/* Sorts, drops repeats and what `inputs` already names; the new count. Sorts `inputs` too. */
static uint32_t tidy_captures(uint32_t *captures, uint32_t n, uint32_t *inputs, uint32_t n_inputs) {
  sort_ids(captures, n);
  sort_ids(inputs, n_inputs);
  uint32_t kept = 0;
  for (uint32_t c = 0, i = 0; c < n; c++) {
    while (i < n_inputs && inputs[i] < captures[c]) i++;
    const bool is_input = i < n_inputs && inputs[i] == captures[c];
    const bool repeated = kept && captures[kept - 1] == captures[c];
    if (!is_input && !repeated) captures[kept++] = captures[c];
  }
  return kept;
}

static psplit_code build_body(psplit_i_graph_builder *b, psplit_i_graph_scope *s, uint32_t node,
                              const Onnx__GraphProto *proto, psplit_i_graph **out) {
  psplit_i_graph *graph = PSPLIT_NEW(&b->model->arena, psplit_i_graph, 1);
  if (!graph) return psplit_i_nomem(b->diag);
  *out = graph; /* owned by the node from here, so that closing the model finds it */
  graph->model = b->model;
  graph->parent = s->graph;
  graph->parent_node = node;
  graph->name = psplit_i_text_or_empty(proto->name);
  graph->proto = proto;
  psplit_i_graph_scope inner = {.outer = s, .graph = graph, .opsets = s->opsets};
  const psplit_code code = psplit_i_graph_scope_build(b, &inner);
  psplit_i_vec_fini(&inner.values);
  return code;
}

/* Bodies of a node, and what they capture from scope `s`. */
static psplit_code build_bodies(psplit_i_graph_builder *b, psplit_i_graph_scope *s, uint32_t id) {
  psplit_code code = PSPLIT_OK;
  psplit_i_node *node = &s->graph->nodes[id];
  psplit_i_arena *arena = &b->model->arena;
  size_t n_bodies = 0;
  node->table_bytes = psplit_i_table_bytes(node);
  for (size_t a = 0; a < node->n_attributes; a++)
    n_bodies += (node->attributes[a]->g != NULL) + node->attributes[a]->n_graphs;
  if (!n_bodies) return PSPLIT_OK;
  psplit_i_graph **bodies = PSPLIT_NEW(arena, psplit_i_graph *, n_bodies);
  if (!bodies) return psplit_i_nomem(b->diag);
  node->bodies = bodies;
  size_t n_captures = 0;
  for (size_t a = 0; a < node->n_attributes; a++) {
    const Onnx__AttributeProto *attribute = node->attributes[a];
    for (size_t g = 0; g < attribute->n_graphs + 1; g++) {
      const Onnx__GraphProto *proto = g ? attribute->graphs[g - 1] : attribute->g;
      if (!proto) continue;
      psplit_i_graph **body = &bodies[node->n_bodies++];
      PSPLIT_TRY(build_body(b, s, id, proto, body));
      for (uint32_t v = 0; v < (*body)->n_values; v++)
        n_captures += (*body)->values[v].outer != PSPLIT_NONE;
    }
  }
  /* Behind the captures, room to sort the inputs. */
  uint32_t *captures = psplit_i_arena_array(arena, n_captures + node->n_inputs, sizeof *captures);
  if (!captures) return psplit_i_nomem(b->diag);
  uint32_t n = 0;
  for (uint32_t i = 0; i < node->n_bodies; i++)
    for (uint32_t v = 0; v < bodies[i]->n_values; v++)
      if (bodies[i]->values[v].outer != PSPLIT_NONE) captures[n++] = bodies[i]->values[v].outer;
  if (node->n_inputs) memcpy(captures + n, node->inputs, node->n_inputs * sizeof *captures);
  node->captures = captures;
  node->n_captures = tidy_captures(captures, n, captures + n, node->n_inputs);
out:
  return code;
}

/* An attribute given twice has no one meaning. */
static psplit_code check_attribute_names(psplit_i_graph_builder *b, const psplit_i_graph *graph,
                                         uint32_t id) {
  enum { FEW = 16 };
  const psplit_i_node *node = &graph->nodes[id];
  const char *repeated = NULL;
  psplit_i_intern names;
  psplit_i_intern_init(&names);
  for (size_t a = 0; a < node->n_attributes && !repeated; a++) {
    const char *name = psplit_i_text_or_empty(node->attributes[a]->name);
    if (node->n_attributes > FEW) {
      const uint32_t known = psplit_i_intern_add(&names, name);
      if (known == PSPLIT_NONE) {
        psplit_i_intern_fini(&names);
        return psplit_i_nomem(b->diag);
      }
      if (known != a) repeated = name;
    } else {
      for (size_t before = 0; before < a; before++)
        if (strcmp(psplit_i_text_or_empty(node->attributes[before]->name), name) == 0)
          repeated = name;
    }
  }
  psplit_i_intern_fini(&names);
  if (!repeated) return PSPLIT_OK;
  char label[128];
  return psplit_i_fail(b->diag, PSPLIT_INVALID, "node %s has the attribute \"%s\" twice",
                       psplit_i_node_label(graph, id, label, sizeof label), repeated);
}

static psplit_code connect_input(psplit_i_graph_builder *b, psplit_i_graph_scope *s,
                                 const psplit_i_name_mention *one) {
  psplit_code code = PSPLIT_OK;
  *one->place = psplit_i_intern_find_hashed(&s->graph->names, one->name, one->bytes, one->hash);
  if (*one->place != PSPLIT_NONE) return PSPLIT_OK;
  if (s->outer) PSPLIT_TRY(look_up(b, s, one->name, one->place)); /* a body's, and so with a NUL */
  if (*one->place == PSPLIT_NONE) {
    char label[128];
    return psplit_i_fail(b->diag, PSPLIT_INVALID, "node %s reads \"%.*s\", which is not defined",
                         psplit_i_node_label(s->graph, one->node, label, sizeof label),
                         (int)one->bytes, one->name);
  }
out:
  return code;
}

static psplit_code connect_nodes(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  psplit_i_name_gathering g = {.b = b, .s = s, .take = connect_input};
  int64_t opset = 0; /* of the node before, mostly of the same domain */
  size_t n_all = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) n_all += graph->nodes[i].n_inputs;
  uint32_t *inputs = psplit_i_arena_array(&b->model->arena, n_all, sizeof *inputs);
  if (!inputs) return psplit_i_nomem(b->diag);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    psplit_i_node *node = &graph->nodes[i];
    PSPLIT_TRY(psplit_i_go_on(b->model->options.cancel, b->diag));
    PSPLIT_TRY(psplit_i_gather_names(&g, i, psplit_i_node_inputs(graph, i), inputs));
    node->inputs = inputs;
    inputs += node->n_inputs;
    if (!i || node->domain != graph->nodes[i - 1].domain)
      opset = psplit_i_opset_of(s, node->domain);
    node->opset = opset;
    PSPLIT_TRY(psplit_i_find_function(b, node));
    if (!node->n_attributes && !s->outer) continue;
    /* What a body captures is numbered as it comes, and bodies look at the inputs of their node. */
    PSPLIT_TRY(psplit_i_settle_names(&g));
    PSPLIT_TRY(check_attribute_names(b, graph, i));
    PSPLIT_TRY(build_bodies(b, s, i));
  }
  PSPLIT_TRY(psplit_i_settle_names(&g));
out:
  return code;
}

static psplit_code connect_outputs(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  const size_t n = graph->proto ? graph->proto->n_output : graph->function->n_output;
  graph->outputs = PSPLIT_NEW(&b->model->arena, uint32_t, n);
  if (!graph->outputs) return psplit_i_nomem(b->diag);
  for (size_t i = 0; i < n; i++) {
    const char *name = psplit_i_text_or_empty(graph->proto ? graph->proto->output[i]->name
                                                           : graph->function->output[i]);
    uint32_t id = PSPLIT_NONE;
    if (*name) PSPLIT_TRY(look_up(b, s, name, &id));
    if (id == PSPLIT_NONE)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "output \"%s\" of %s \"%s\" is never defined",
                           name, psplit_i_graph_scope_kind(s), graph->name);
    psplit_i_value *value = &s->values.items[id];
    value->is_output = true;
    if (graph->proto && !value->declared_type) value->declared_type = graph->proto->output[i]->type;
    graph->outputs[graph->n_outputs++] = id;
  }
out:
  return code;
}

static void attach_value_infos(psplit_i_graph_scope *s) {
  psplit_i_graph *graph = s->graph;
  const size_t n = graph->proto ? graph->proto->n_value_info : graph->function->n_value_info;
  for (size_t i = 0; i < n; i++) {
    const Onnx__ValueInfoProto *info =
      graph->proto ? graph->proto->value_info[i] : graph->function->value_info[i];
    const uint32_t id = info->name ? psplit_i_intern_find(&graph->names, info->name) : PSPLIT_NONE;
    if (id == PSPLIT_NONE) continue; /* exporters leave entries for values that are gone */
    psplit_i_value *value = &s->values.items[id];
    if (value->outer != PSPLIT_NONE) continue;
    value->value_info = (uint32_t)i;
    if (!value->declared_type) value->declared_type = info->type;
  }
}

psplit_code psplit_i_graph_scope_build(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_code code;
  psplit_i_graph *graph = s->graph;
  PSPLIT_TRY(psplit_i_graph_scope_define_all(b, s));
  PSPLIT_TRY(connect_nodes(b, s));
  PSPLIT_TRY(connect_outputs(b, s));
  attach_value_infos(s);
  graph->values = s->values.items;
  graph->n_values = (uint32_t)s->values.n;
  memset(&s->values, 0, sizeof s->values);
  PSPLIT_TRY(psplit_i_graph_index_consumers(graph, &b->model->arena, b->diag));
  PSPLIT_TRY(psplit_i_go_on(b->model->options.cancel, b->diag));
  PSPLIT_TRY(psplit_i_graph_sort(graph, &b->model->arena, b->diag));
out:
  return code;
}
