/* Building the graph index: names to ids, captures of bodies, function calls.
 *
 * Scopes are built from the outside in. All definitions of a scope are numbered before its nodes
 * are connected, so files whose nodes are not in topological order need no special case. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_order.h"
#include "unpack.h"

/* Versions of the operator sets that a model or function imports, by domain. */
typedef struct opsets {
  psplit_i_intern domains;
  PSPLIT_VEC(int64_t) versions;
} opsets;

/* A graph under construction. `values` becomes the graph's when the scope is complete. */
typedef struct scope {
  struct scope *outer;
  psplit_i_graph *graph;
  PSPLIT_VEC(psplit_i_value) values;
  const opsets *opsets; /* those of the model or function; bodies share them */
} scope;

typedef struct builder {
  psplit_model *model;
  psplit_i_intern functions; /* function_key() -> index */
  psplit_i_text key;
  psplit_diag *diag;
} builder;

static psplit_code build_scope(builder *b, scope *s);

static const char *text_or_empty(const char *text) { return text ? text : ""; }

static const char *domain_of(const char *domain) {
  return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static bool is_main(const scope *s) { return !s->outer && !s->graph->function; }

/* What to call the scope in a message. */
static const char *scope_kind(const scope *s) {
  if (s->graph->function) return "function";
  return s->outer ? "body" : "graph";
}

/* The value of name `id`, which is new where it is the one behind those that were there before. */
static psplit_code note_value(builder *b, scope *s, uint32_t id, uint32_t before,
                              psplit_i_value **out) {
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
static psplit_code define_hashed(builder *b, scope *s, const char *name, size_t bytes,
                                 uint32_t hash, psplit_i_value **out) {
  const uint32_t before = s->graph->names.n;
  psplit_i_arena *arena = is_main(s) ? &b->model->arena : NULL;
  return note_value(b, s, psplit_i_intern_add_hashed(&s->graph->names, name, bytes, hash, arena),
                    before, out);
}

static psplit_code define(builder *b, scope *s, const char *name, psplit_i_value **out) {
  const uint32_t before = s->graph->names.n;
  return note_value(b, s, psplit_i_intern_add(&s->graph->names, name), before, out);
}

static psplit_code defined_twice(builder *b, const scope *s, const char *name) {
  return psplit_i_fail(b->diag, PSPLIT_INVALID, "value \"%s\" is defined twice in %s \"%s\"", name,
                       scope_kind(s), s->graph->name);
}

static bool has_initializer(const psplit_i_value *value) {
  return value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
}

static psplit_code define_inputs(builder *b, scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  psplit_i_arena *arena = &b->model->arena;
  const size_t n = graph->proto ? graph->proto->n_input : graph->function->n_input;
  graph->inputs = PSPLIT_NEW(arena, uint32_t, n);
  if (!graph->inputs) return psplit_i_nomem(b->diag);
  for (size_t i = 0; i < n; i++) {
    const char *name =
      text_or_empty(graph->proto ? graph->proto->input[i]->name : graph->function->input[i]);
    if (!*name)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "input %zu of %s \"%s\" has no name", i,
                           scope_kind(s), graph->name);
    psplit_i_value *value;
    PSPLIT_TRY(define(b, s, name, &value));
    if (value->input != PSPLIT_NONE) return defined_twice(b, s, name);
    value->input = (uint32_t)i;
    if (graph->proto) value->declared_type = graph->proto->input[i]->type;
    graph->inputs[graph->n_inputs++] = (uint32_t)(value - s->values.items);
  }
out:
  return code;
}

static psplit_code define_initializers(builder *b, scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  if (!graph->proto) return PSPLIT_OK;
  const Onnx__GraphProto *proto = graph->proto;
  graph->initializers = PSPLIT_NEW(&b->model->arena, uint32_t, proto->n_initializer);
  if (!graph->initializers) return psplit_i_nomem(b->diag);
  for (size_t i = 0; i < proto->n_initializer; i++) {
    const char *name = text_or_empty(proto->initializer[i]->name);
    if (!*name)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "initializer %zu of %s \"%s\" has no name", i,
                           scope_kind(s), graph->name);
    psplit_i_value *value;
    PSPLIT_TRY(define(b, s, name, &value));
    if (has_initializer(value)) return defined_twice(b, s, name);
    value->initializer = (uint32_t)i;
    graph->initializers[graph->n_initializers++] = (uint32_t)(value - s->values.items);
  }
  for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
    const Onnx__SparseTensorProto *sparse = proto->sparse_initializer[i];
    const char *name = text_or_empty(sparse->values ? sparse->values->name : NULL);
    if (!*name)
      return psplit_i_fail(b->diag, PSPLIT_INVALID,
                           "sparse initializer %zu of %s \"%s\" has no name", i, scope_kind(s),
                           graph->name);
    psplit_i_value *value;
    PSPLIT_TRY(define(b, s, name, &value));
    if (has_initializer(value)) return defined_twice(b, s, name);
    value->sparse_initializer = (uint32_t)i;
    graph->n_sparse_initializers++;
  }
out:
  return code;
}

/* A name that a node lists, and where its id goes. */
typedef struct mention {
  const char *name;
  size_t bytes;
  uint32_t hash, node;
  uint32_t *place;
} mention;

/* Mentions are gathered some at a time: hashing them first has their places in the table fetched
 * together, which a million names do not fit into a cache for. */
enum { MENTIONS = 32 };

typedef struct gathering {
  builder *b;
  scope *s;
  psplit_code (*take)(builder *b, scope *s, const mention *one);
  mention items[MENTIONS];
  unsigned n;
} gathering;

static psplit_code settle(gathering *g) {
  psplit_code code = PSPLIT_OK;
  for (unsigned i = 0; i < g->n; i++) PSPLIT_TRY(g->take(g->b, g->s, &g->items[i]));
  g->n = 0;
out:
  return code;
}

/* The names of one node, whose ids go to places[] once they are settled; PSPLIT_NONE for one that
 * is omitted. */
static psplit_code gather(gathering *g, uint32_t node, psplit_i_node_names names,
                          uint32_t *places) {
  psplit_code code = PSPLIT_OK;
  mention one = {.node = node, .place = places};
  for (; psplit_i_next_name(&names, &one.name, &one.bytes); one.place++) {
    *one.place = PSPLIT_NONE;
    if (!one.bytes) continue;
    one.hash = psplit_i_intern_hash(&g->s->graph->names, one.name, one.bytes);
    g->items[g->n++] = one;
    if (g->n == MENTIONS) PSPLIT_TRY(settle(g));
  }
out:
  return code;
}

/* The nodes of the scope as they are by themselves. */
static psplit_code take_nodes(builder *b, scope *s) {
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
      graph->nodes[i] = (psplit_i_node){.name = text_or_empty(protos[i]->name),
                                        .op_type = text_or_empty(protos[i]->op_type),
                                        .domain = text_or_empty(protos[i]->domain),
                                        .overload = text_or_empty(protos[i]->overload),
                                        .n_inputs = (uint32_t)protos[i]->n_input,
                                        .n_outputs = (uint32_t)protos[i]->n_output,
                                        .n_attributes = (uint32_t)protos[i]->n_attribute,
                                        .attributes = protos[i]->attribute,
                                        .function = PSPLIT_NONE};
  }
  for (uint32_t i = 0; i < graph->n_nodes; i++)
    graph->nodes[i].domain = domain_of(graph->nodes[i].domain);
  return PSPLIT_OK;
}

static psplit_code define_output(builder *b, scope *s, const mention *one) {
  psplit_i_value *value = NULL;
  const psplit_code code = define_hashed(b, s, one->name, one->bytes, one->hash, &value);
  if (code != PSPLIT_OK) return code;
  if (value->producer != PSPLIT_NONE || value->input != PSPLIT_NONE || has_initializer(value))
    return defined_twice(b, s, value->name);
  value->producer = one->node;
  *one->place = (uint32_t)(value - s->values.items);
  return PSPLIT_OK;
}

static psplit_code define_node_outputs(builder *b, scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  gathering g = {.b = b, .s = s, .take = define_output};
  size_t n_all = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) n_all += graph->nodes[i].n_outputs;
  uint32_t *outputs = psplit_i_arena_array(&b->model->arena, n_all, sizeof *outputs);
  if (!outputs) return psplit_i_nomem(b->diag);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    PSPLIT_TRY(psplit_i_go_on(b->model->options.cancel, b->diag));
    PSPLIT_TRY(gather(&g, i, psplit_i_node_outputs(graph, i), outputs));
    graph->nodes[i].outputs = outputs;
    outputs += graph->nodes[i].n_outputs;
  }
  PSPLIT_TRY(settle(&g));
out:
  return code;
}

/* Value of `name` as seen from scope `s`; a name of an enclosing scope is captured on the way in.
 * PSPLIT_NONE in *out where no scope defines it. */
static psplit_code look_up(builder *b, scope *s, const char *name, uint32_t *out) {
  psplit_code code = PSPLIT_OK;
  *out = psplit_i_intern_find(&s->graph->names, name);
  if (*out != PSPLIT_NONE || !s->outer) return PSPLIT_OK;
  uint32_t outer;
  PSPLIT_TRY(look_up(b, s->outer, name, &outer));
  if (outer == PSPLIT_NONE) return PSPLIT_OK;
  psplit_i_value *value;
  PSPLIT_TRY(define(b, s, name, &value));
  value->outer = outer;
  *out = (uint32_t)(value - s->values.items);
out:
  return code;
}

static int compare_ids(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static void sort_ids(uint32_t *ids, uint32_t n) {
  if (n) qsort(ids, n, sizeof *ids, compare_ids);
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

static psplit_code build_body(builder *b, scope *s, uint32_t node, const Onnx__GraphProto *proto,
                              psplit_i_graph **out) {
  psplit_i_graph *graph = PSPLIT_NEW(&b->model->arena, psplit_i_graph, 1);
  if (!graph) return psplit_i_nomem(b->diag);
  *out = graph; /* owned by the node from here, so that closing the model finds it */
  graph->model = b->model;
  graph->parent = s->graph;
  graph->parent_node = node;
  graph->name = text_or_empty(proto->name);
  graph->proto = proto;
  scope inner = {.outer = s, .graph = graph, .opsets = s->opsets};
  const psplit_code code = build_scope(b, &inner);
  psplit_i_vec_fini(&inner.values);
  return code;
}

/* Bodies of a node, and what they capture from scope `s`. */
static psplit_code build_bodies(builder *b, scope *s, uint32_t id) {
  psplit_code code = PSPLIT_OK;
  psplit_i_node *node = &s->graph->nodes[id];
  psplit_i_arena *arena = &b->model->arena;
  size_t n_bodies = 0;
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

/* The key of a function: its names behind their lengths, so that no two functions share one. Valid
 * until the next call; NULL when out of memory. */
static const char *function_key(builder *b, const char *domain, const char *name,
                                const char *overload) {
  b->key.n = 0;
  psplit_i_text_addf(&b->key, "%zu %zu ", strlen(domain), strlen(name));
  psplit_i_text_puts(&b->key, domain);
  psplit_i_text_puts(&b->key, name);
  psplit_i_text_puts(&b->key, overload);
  return b->key.failed ? NULL : b->key.bytes;
}

static psplit_code find_function(builder *b, psplit_i_node *node) {
  if (!b->functions.n) return PSPLIT_OK;
  const char *key = function_key(b, node->domain, node->op_type, node->overload);
  if (!key) return psplit_i_nomem(b->diag);
  node->function = psplit_i_intern_find(&b->functions, key);
  return PSPLIT_OK;
}

static psplit_code index_opsets(builder *b, size_t n, Onnx__OperatorSetIdProto *const *imports,
                                opsets *out) {
  for (size_t i = 0; i < n; i++) {
    const char *domain = domain_of(imports[i]->domain);
    const uint32_t id = psplit_i_intern_add(&out->domains, domain);
    if (id == PSPLIT_NONE) return psplit_i_nomem(b->diag);
    if (id == out->versions.n) {
      if (!psplit_i_vec_push(&out->versions, imports[i]->version)) return psplit_i_nomem(b->diag);
    } else if (out->versions.items[id] != imports[i]->version) {
      return psplit_i_fail(b->diag, PSPLIT_INVALID,
                           "operator set \"%s\" is imported in versions %" PRId64 " and %" PRId64,
                           domain, out->versions.items[id], imports[i]->version);
    }
  }
  return PSPLIT_OK;
}

static void opsets_fini(opsets *o) {
  psplit_i_intern_fini(&o->domains);
  psplit_i_vec_fini(&o->versions);
}

static int64_t opset_of(const scope *s, const char *domain) {
  const uint32_t id = psplit_i_intern_find(&s->opsets->domains, domain);
  return id == PSPLIT_NONE ? 0 : s->opsets->versions.items[id];
}

/* An attribute given twice has no one meaning. */
static psplit_code check_attribute_names(builder *b, const psplit_i_graph *graph, uint32_t id) {
  enum { FEW = 16 };
  const psplit_i_node *node = &graph->nodes[id];
  const char *repeated = NULL;
  psplit_i_intern names;
  psplit_i_intern_init(&names);
  for (size_t a = 0; a < node->n_attributes && !repeated; a++) {
    const char *name = text_or_empty(node->attributes[a]->name);
    if (node->n_attributes > FEW) {
      const uint32_t known = psplit_i_intern_add(&names, name);
      if (known == PSPLIT_NONE) {
        psplit_i_intern_fini(&names);
        return psplit_i_nomem(b->diag);
      }
      if (known != a) repeated = name;
    } else {
      for (size_t before = 0; before < a; before++)
        if (strcmp(text_or_empty(node->attributes[before]->name), name) == 0) repeated = name;
    }
  }
  psplit_i_intern_fini(&names);
  if (!repeated) return PSPLIT_OK;
  char label[128];
  return psplit_i_fail(b->diag, PSPLIT_INVALID, "node %s has the attribute \"%s\" twice",
                       psplit_i_node_label(graph, id, label, sizeof label), repeated);
}

static psplit_code connect_input(builder *b, scope *s, const mention *one) {
  psplit_code code = PSPLIT_OK;
  *one->place = psplit_i_intern_find_hashed(&s->graph->names, one->name, one->bytes, one->hash);
  if (*one->place != PSPLIT_NONE) return PSPLIT_OK;
  if (s->outer) PSPLIT_TRY(look_up(b, s, one->name, one->place)); /* a body's, and so with a NUL */
  if (*one->place == PSPLIT_NONE) {
    char label[128];
    return psplit_i_fail(b->diag, PSPLIT_INVALID, "node %s reads \"%.*s\", which nothing defines",
                         psplit_i_node_label(s->graph, one->node, label, sizeof label),
                         (int)one->bytes, one->name);
  }
out:
  return code;
}

static psplit_code connect_nodes(builder *b, scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  gathering g = {.b = b, .s = s, .take = connect_input};
  int64_t opset = 0; /* of the node before, mostly of the same domain */
  size_t n_all = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) n_all += graph->nodes[i].n_inputs;
  uint32_t *inputs = psplit_i_arena_array(&b->model->arena, n_all, sizeof *inputs);
  if (!inputs) return psplit_i_nomem(b->diag);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    psplit_i_node *node = &graph->nodes[i];
    PSPLIT_TRY(psplit_i_go_on(b->model->options.cancel, b->diag));
    PSPLIT_TRY(gather(&g, i, psplit_i_node_inputs(graph, i), inputs));
    node->inputs = inputs;
    inputs += node->n_inputs;
    if (!i || node->domain != graph->nodes[i - 1].domain) opset = opset_of(s, node->domain);
    node->opset = opset;
    PSPLIT_TRY(find_function(b, node));
    if (!node->n_attributes && !s->outer) continue;
    /* What a body captures is numbered as it comes, and bodies look at the inputs of their node. */
    PSPLIT_TRY(settle(&g));
    PSPLIT_TRY(check_attribute_names(b, graph, i));
    PSPLIT_TRY(build_bodies(b, s, i));
  }
  PSPLIT_TRY(settle(&g));
out:
  return code;
}

static psplit_code connect_outputs(builder *b, scope *s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_graph *graph = s->graph;
  const size_t n = graph->proto ? graph->proto->n_output : graph->function->n_output;
  graph->outputs = PSPLIT_NEW(&b->model->arena, uint32_t, n);
  if (!graph->outputs) return psplit_i_nomem(b->diag);
  for (size_t i = 0; i < n; i++) {
    const char *name =
      text_or_empty(graph->proto ? graph->proto->output[i]->name : graph->function->output[i]);
    uint32_t id = PSPLIT_NONE;
    if (*name) PSPLIT_TRY(look_up(b, s, name, &id));
    if (id == PSPLIT_NONE)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "output \"%s\" of %s \"%s\" is never defined",
                           name, scope_kind(s), graph->name);
    psplit_i_value *value = &s->values.items[id];
    value->is_output = true;
    if (graph->proto && !value->declared_type) value->declared_type = graph->proto->output[i]->type;
    graph->outputs[graph->n_outputs++] = id;
  }
out:
  return code;
}

static void attach_value_infos(scope *s) {
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

/* At most as many names as this are the scope's own. */
static size_t count_definitions(const psplit_i_graph *graph) {
  const Onnx__GraphProto *proto = graph->proto;
  const Onnx__FunctionProto *function = graph->function;
  size_t n =
    proto ? proto->n_input + proto->n_initializer + proto->n_sparse_initializer : function->n_input;
  for (uint32_t i = 0; i < graph->n_nodes; i++) n += graph->nodes[i].n_outputs;
  return n;
}

static psplit_code build_scope(builder *b, scope *s) {
  psplit_code code;
  psplit_i_graph *graph = s->graph;
  PSPLIT_TRY(take_nodes(b, s));
  const size_t n_definitions = count_definitions(graph);
  if (!psplit_i_vec_reserve(&s->values, n_definitions) ||
      !psplit_i_intern_reserve(&graph->names, n_definitions + 1))
    return psplit_i_nomem(b->diag);
  PSPLIT_TRY(define_inputs(b, s));
  PSPLIT_TRY(define_initializers(b, s));
  PSPLIT_TRY(define_node_outputs(b, s));
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

static psplit_code index_functions(builder *b) {
  psplit_model *model = b->model;
  for (size_t f = 0; f < model->proto->n_functions; f++) {
    const Onnx__FunctionProto *function = model->proto->functions[f];
    const char *key = function_key(b, domain_of(function->domain), text_or_empty(function->name),
                                   text_or_empty(function->overload));
    char *kept = key ? psplit_i_arena_strndup(&model->arena, key, b->key.n) : NULL;
    const uint32_t id = kept ? psplit_i_intern_add(&b->functions, kept) : PSPLIT_NONE;
    if (id == PSPLIT_NONE) return psplit_i_nomem(b->diag);
    if (id != f)
      return psplit_i_fail(b->diag, PSPLIT_INVALID, "function \"%s\" is defined twice",
                           text_or_empty(function->name));
  }
  return PSPLIT_OK;
}

static psplit_code build_functions(builder *b) {
  psplit_model *model = b->model;
  model->functions = PSPLIT_NEW(&model->arena, psplit_i_graph *, model->proto->n_functions);
  if (!model->functions) return psplit_i_nomem(b->diag);
  for (size_t f = 0; f < model->proto->n_functions; f++) {
    const Onnx__FunctionProto *function = model->proto->functions[f];
    psplit_i_graph *graph = PSPLIT_NEW(&model->arena, psplit_i_graph, 1);
    if (!graph) return psplit_i_nomem(b->diag);
    model->functions[f] = graph;
    graph->model = model;
    graph->name = text_or_empty(function->name);
    graph->function = function;
    opsets imports = {0};
    scope s = {.graph = graph, .opsets = &imports};
    psplit_code code = index_opsets(b, function->n_opset_import, function->opset_import, &imports);
    if (code == PSPLIT_OK) code = build_scope(b, &s);
    psplit_i_vec_fini(&s.values);
    opsets_fini(&imports);
    if (code != PSPLIT_OK) {
      psplit_i_diag_context(b->diag, "function \"%s\"", graph->name);
      return code;
    }
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_graph_build(psplit_model *model, psplit_diag *diag) {
  psplit_code code;
  builder b = {.model = model, .diag = diag};
  psplit_i_intern_init(&b.functions);
  opsets imports = {0};
  scope s = {.opsets = &imports};
  PSPLIT_TRY(index_opsets(&b, model->proto->n_opset_import, model->proto->opset_import, &imports));
  PSPLIT_TRY(index_functions(&b));
  PSPLIT_TRY(build_functions(&b));
  PSPLIT_TRY(psplit_i_refuse_recursion(model, diag));
  model->graph = PSPLIT_NEW(&model->arena, psplit_i_graph, 1);
  if (!model->graph) PSPLIT_FAIL(psplit_i_nomem(diag));
  s.graph = model->graph;
  s.graph->model = model;
  s.graph->name = text_or_empty(model->proto->graph->name);
  s.graph->proto = model->proto->graph;
  PSPLIT_TRY(build_scope(&b, &s));
out:
  psplit_i_vec_fini(&s.values);
  opsets_fini(&imports);
  psplit_i_intern_fini(&b.functions);
  psplit_i_text_fini(&b.key);
  return code;
}
