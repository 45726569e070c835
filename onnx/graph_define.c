#include <inttypes.h>

#include "graph_scope.h"

static bool is_main(const psplit_i_graph_scope *s) { return !s->outer && !s->graph->function; }

/* The value of name `id`, which is new where it is the one behind those that were there before. */
static psplit_code note_value(psplit_i_graph_builder *b, psplit_i_graph_scope *s, uint32_t id,
                              uint32_t before, psplit_i_value **out) {
  if (id == PSPLIT_NONE) return psplit_i_nomem(b->diag);
  if (id == before) {
    const psplit_i_value value = {.name = s->graph->names.text[id],
                                  .producer = PSPLIT_NONE,
                                  .input = PSPLIT_NONE,
                                  .initializer = PSPLIT_NONE,
                                  .sparse_initializer = PSPLIT_NONE,
                                  .outer = PSPLIT_NONE,
                                  .value_info = PSPLIT_NONE};
    if (!psplit_i_vec_push(&s->values, value)) return psplit_i_nomem(b->diag);
  }
  *out = &s->values.items[id];
  return PSPLIT_OK;
}

/* A name of the scope that a node lists: those of the main graph's nodes are but bytes yet. */
static psplit_code define_hashed(psplit_i_graph_builder *b, psplit_i_graph_scope *s,
                                 const char *name, size_t bytes, uint32_t hash,
                                 psplit_i_value **out) {
  const uint32_t before = s->graph->names.n;
  psplit_i_arena *arena = is_main(s) ? &b->model->arena : NULL;
  return note_value(b, s, psplit_i_intern_add_hashed(&s->graph->names, name, bytes, hash, arena),
                    before, out);
}

psplit_code psplit_i_graph_scope_define(psplit_i_graph_builder *b, psplit_i_graph_scope *s,
                                        const char *name, psplit_i_value **out) {
  const uint32_t before = s->graph->names.n;
  return note_value(b, s, psplit_i_intern_add(&s->graph->names, name), before, out);
}

static psplit_code defined_twice(psplit_i_graph_builder *b, const psplit_i_graph_scope *s,
                                 const char *name) {
  return psplit_i_fail(b->diag, PSPLIT_INVALID, "value \"%s\" is defined twice in %s \"%s\"", name,
                       psplit_i_graph_scope_kind(s), s->graph->name);
}

static psplit_code define_inputs(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  psplit_i_arena *arena = &b->model->arena;
  const size_t n = graph->proto ? graph->proto->n_input : graph->function->n_input;
  graph->inputs = PSPLIT_NEW(arena, uint32_t, n);
  if (!graph->inputs) return psplit_i_nomem(b->diag);
  for (size_t i = 0; i < n; i++) {
    const char *name = psplit_i_text_or_empty(graph->proto ? graph->proto->input[i]->name
                                                           : graph->function->input[i]);
    if (!*name)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "input %zu of %s \"%s\" has no name", i,
                           psplit_i_graph_scope_kind(s), graph->name);
    psplit_i_value *value;
    PSPLIT_TRY(psplit_i_graph_scope_define(b, s, name, &value));
    if (value->input != PSPLIT_NONE) return defined_twice(b, s, name);
    value->input = (uint32_t)i;
    if (graph->proto) value->declared_type = graph->proto->input[i]->type;
    graph->inputs[graph->n_inputs++] = (uint32_t)(value - s->values.items);
  }
out:
  return code;
}

static psplit_code define_initializers(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  if (!graph->proto) return PSPLIT_OK;
  const Onnx__GraphProto *proto = graph->proto;
  graph->initializers = PSPLIT_NEW(&b->model->arena, uint32_t, proto->n_initializer);
  if (!graph->initializers) return psplit_i_nomem(b->diag);
  for (size_t i = 0; i < proto->n_initializer; i++) {
    const char *name = psplit_i_text_or_empty(proto->initializer[i]->name);
    if (!*name)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "initializer %zu of %s \"%s\" has no name", i,
                           psplit_i_graph_scope_kind(s), graph->name);
    psplit_i_value *value;
    PSPLIT_TRY(psplit_i_graph_scope_define(b, s, name, &value));
    if (psplit_i_has_initializer(value)) return defined_twice(b, s, name);
    value->initializer = (uint32_t)i;
    graph->initializers[graph->n_initializers++] = (uint32_t)(value - s->values.items);
  }
  for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
    const Onnx__SparseTensorProto *sparse = proto->sparse_initializer[i];
    const char *name = psplit_i_text_or_empty(sparse->values ? sparse->values->name : NULL);
    if (!*name)
      return psplit_i_fail(b->diag, PSPLIT_INVALID,
                           "sparse initializer %zu of %s \"%s\" has no name", i,
                           psplit_i_graph_scope_kind(s), graph->name);
    psplit_i_value *value;
    PSPLIT_TRY(psplit_i_graph_scope_define(b, s, name, &value));
    if (psplit_i_has_initializer(value)) return defined_twice(b, s, name);
    value->sparse_initializer = (uint32_t)i;
    graph->n_sparse_initializers++;
  }
out:
  return code;
}

psplit_code psplit_i_settle_names(psplit_i_name_gathering *g) {
  psplit_code code = PSPLIT_OK;
  for (unsigned i = 0; i < g->n; i++) PSPLIT_TRY(g->take(g->b, g->s, &g->items[i]));
  g->n = 0;
out:
  return code;
}

psplit_code psplit_i_gather_names(psplit_i_name_gathering *g, uint32_t node,
                                  psplit_i_node_names names, uint32_t *places) {
  psplit_code code = PSPLIT_OK;
  psplit_i_name_mention one = {.node = node, .place = places};
  for (; psplit_i_next_name(&names, &one.name, &one.bytes); one.place++) {
    *one.place = PSPLIT_NONE;
    if (!one.bytes) continue;
    one.hash = psplit_i_intern_hash(&g->s->graph->names, one.name, one.bytes);
    g->items[g->n++] = one;
    if (g->n == PSPLIT_I_MENTIONS) PSPLIT_TRY(psplit_i_settle_names(g));
  }
out:
  return code;
}

/* The nodes of the scope as they are by themselves. */
static psplit_code take_nodes(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_i_graph *graph = s->graph;
  if (is_main(s)) {
    graph->nodes = b->model->nodes;
    graph->n_nodes = b->model->n_nodes;
  } else {
    const size_t n = graph->proto ? graph->proto->n_node : graph->function->n_node;
    Onnx__NodeProto *const *protos = graph->proto ? graph->proto->node : graph->function->node;
    graph->nodes = PSPLIT_NEW(&b->model->arena, psplit_i_node, n);
    if (!graph->nodes) return psplit_i_nomem(b->diag);
    graph->n_nodes = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
      graph->nodes[i] = (psplit_i_node){.name = psplit_i_text_or_empty(protos[i]->name),
                                        .op_type = psplit_i_text_or_empty(protos[i]->op_type),
                                        .domain = psplit_i_text_or_empty(protos[i]->domain),
                                        .overload = psplit_i_text_or_empty(protos[i]->overload),
                                        .n_inputs = (uint32_t)protos[i]->n_input,
                                        .n_outputs = (uint32_t)protos[i]->n_output,
                                        .n_attributes = (uint32_t)protos[i]->n_attribute,
                                        .attributes = protos[i]->attribute,
                                        .function = PSPLIT_NONE};
  }
  for (uint32_t i = 0; i < graph->n_nodes; i++)
    graph->nodes[i].domain = psplit_i_domain_of(graph->nodes[i].domain);
  return PSPLIT_OK;
}

static psplit_code define_output(psplit_i_graph_builder *b, psplit_i_graph_scope *s,
                                 const psplit_i_name_mention *one) {
  psplit_i_value *value = NULL;
  const psplit_code code = define_hashed(b, s, one->name, one->bytes, one->hash, &value);
  if (code != PSPLIT_OK) return code;
  if (value->producer != PSPLIT_NONE || value->input != PSPLIT_NONE ||
      psplit_i_has_initializer(value))
    return defined_twice(b, s, value->name);
  value->producer = one->node;
  *one->place = (uint32_t)(value - s->values.items);
  return PSPLIT_OK;
}

static psplit_code define_node_outputs(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  psplit_i_name_gathering g = {.b = b, .s = s, .take = define_output};
  size_t n_all = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) n_all += graph->nodes[i].n_outputs;
  uint32_t *outputs = psplit_i_arena_array(&b->model->arena, n_all, sizeof *outputs);
  if (!outputs) return psplit_i_nomem(b->diag);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    PSPLIT_TRY(psplit_i_go_on(b->model->options.cancel, b->diag));
    PSPLIT_TRY(psplit_i_gather_names(&g, i, psplit_i_node_outputs(graph, i), outputs));
    graph->nodes[i].outputs = outputs;
    outputs += graph->nodes[i].n_outputs;
  }
  PSPLIT_TRY(psplit_i_settle_names(&g));
out:
  return code;
}

/* At most as many names as this are the scope's own. */
static size_t count_definitions(const psplit_i_graph *graph) {
  const Onnx__GraphProto *proto = graph->proto;
  const Onnx__FunctionProto *function = graph->function;
  size_t n =
    proto ? proto->n_input + proto->n_initializer + proto->n_sparse_initializer : function->n_input;
  for (uint32_t i = 0; i < graph->n_nodes; i++) n += graph->nodes[i].n_outputs;
  return n;
}

psplit_code psplit_i_graph_scope_define_all(psplit_i_graph_builder *b, psplit_i_graph_scope *s) {
  psplit_code code;
  PSPLIT_TRY(take_nodes(b, s));
  const size_t n_definitions = count_definitions(s->graph);
  if (!psplit_i_vec_reserve(&s->values, n_definitions) ||
      !psplit_i_intern_reserve(&s->graph->names, n_definitions + 1))
    return psplit_i_nomem(b->diag);
  PSPLIT_TRY(define_inputs(b, s));
  PSPLIT_TRY(define_initializers(b, s));
  PSPLIT_TRY(define_node_outputs(b, s));
out:
  return code;
}
