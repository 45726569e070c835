#include "support.h"

#include <inttypes.h>
#include <string.h>

static bool same_limits(const psplit_i_support_limits *a, const psplit_i_support_limits *b) {
  return a->types == b->types && a->since == b->since && a->until == b->until &&
         a->static_shapes == b->static_shapes && a->max_rank == b->max_rank &&
         a->max_bytes == b->max_bytes;
}

static bool same_rules(const psplit_i_support_rules *a, const psplit_i_support_rules *b) {
  bool same = a->n == b->n;
  for (uint32_t i = 0; same && i < a->n; i++)
    same = strcmp(a->items[i].domain, b->items[i].domain) == 0 &&
           strcmp(a->items[i].op_type, b->items[i].op_type) == 0 &&
           same_limits(&a->items[i].limits, &b->items[i].limits);
  return same;
}

bool psplit_i_support_same(const psplit_i_support *a, const psplit_i_support *b) {
  if (a == b) return true;
  if (!a || !b || a->listed != b->listed || a->refused_types != b->refused_types ||
      a->n_nodes != b->n_nodes || !same_limits(&a->limits, &b->limits) ||
      !same_rules(&a->runs, &b->runs) || !same_rules(&a->refuses, &b->refuses))
    return false;
  for (uint32_t i = 0; i < a->n_nodes; i++)
    if (strcmp(a->nodes[i], b->nodes[i]) != 0) return false;
  return true;
}

/* A node that is asked about, and where to say why not. */
typedef struct question {
  const psplit_i_support *support;
  const psplit_i_shapes *shapes;
  const psplit_i_costs *costs;
  const psplit_i_node *node;
  psplit_i_text *why;
} question;

static bool no(const question *q, const char *what, const char *which) {
  if (q->why) psplit_i_text_addf(q->why, "%s %.80s", what, which);
  return false;
}

static const psplit_i_support_rule *find(const psplit_i_support_rules *rules,
                                         const psplit_i_node *node) {
  for (uint32_t i = 0; i < rules->n; i++) {
    const psplit_i_support_rule *rule = &rules->items[i];
    if (strcmp(rule->op_type, node->op_type) == 0 && strcmp(rule->domain, node->domain) == 0)
      return rule;
  }
  return NULL;
}

/* Sizes and axes are no data. */
static bool is_size(const psplit_i_vtype *type) {
  enum { INT64 = 7 };
  return type->is_weight && type->elem == INT64;
}

static bool touches(const question *q, uint32_t value, uint32_t types) {
  const psplit_i_vtype *type = psplit_i_shapes_type(q->shapes, value);
  return !is_size(type) && type->elem > 0 && type->elem < 32 && types >> type->elem & 1;
}

static bool within(const question *q, uint32_t value, const psplit_i_support_limits *limits) {
  const psplit_i_vtype *type = psplit_i_shapes_type(q->shapes, value);
  const char *name = psplit_i_shapes_graph(q->shapes)->values[value].name;
  int64_t size;
  uint64_t bytes;
  bool assumed;
  if (limits->types && !is_size(type) &&
      (type->kind != PSPLIT_TYPE_TENSOR || !(type->elem < 32 && limits->types >> type->elem & 1))) {
    const char *elem = psplit_i_dtype_name(type->elem);
    return no(q, "type", elem ? elem : "that is not known");
  }
  if (limits->max_rank >= 0 && (type->rank < 0 || type->rank > limits->max_rank))
    return no(q, "rank of", name);
  if (limits->static_shapes && type->rank < 0) return no(q, "open sizes of", name);
  for (int32_t i = 0; limits->static_shapes && i < type->rank; i++)
    if (!psplit_i_dim_is_const(psplit_i_shapes_dims(q->shapes), type->dims[i], &size))
      return no(q, "open sizes of", name);
  if (limits->max_bytes != UINT64_MAX &&
      (!psplit_i_costs_value_bytes(q->costs, value, &bytes, &assumed) || bytes > limits->max_bytes))
    return no(q, "size of", name);
  return true;
}

static bool keeps_to(const question *q, const psplit_i_support_limits *limits) {
  const psplit_i_node *node = q->node;
  if ((limits->since && node->opset < limits->since) ||
      (limits->until && node->opset > limits->until))
    return no(q, "opset of", node->op_type);
  PSPLIT_FOR_EACH_READ(node, value)
    if (!within(q, value, limits)) return false;
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE && !within(q, node->outputs[o], limits)) return false;
  return true;
}

static bool any_touches(const question *q, uint32_t types) {
  PSPLIT_FOR_EACH_READ(q->node, value)
    if (touches(q, value, types)) return true;
  for (uint32_t o = 0; o < q->node->n_outputs; o++)
    if (q->node->outputs[o] != PSPLIT_NONE && touches(q, q->node->outputs[o], types)) return true;
  return false;
}

static bool runs_operator(const question *q, const psplit_i_graph *graph, const psplit_i_node *node,
                          unsigned depth);

static bool runs_operators_of(const question *q, const psplit_i_graph *graph, unsigned depth) {
  enum { MOST_DEPTH = 100 };
  for (uint32_t n = 0; depth <= MOST_DEPTH && n < graph->n_nodes; n++)
    if (!runs_operator(q, graph, &graph->nodes[n], depth)) return false;
  return true;
}

/* By name alone: the node's operator, and those of its bodies and of the function that it calls. */
static bool runs_operator(const question *q, const psplit_i_graph *graph, const psplit_i_node *node,
                          unsigned depth) {
  const psplit_i_support *s = q->support;
  const psplit_i_support_rule *refused = find(&s->refuses, node);
  const psplit_i_graph *function =
    node->function == PSPLIT_NONE ? NULL : psplit_i_model_function(graph->model, node->function);
  if (refused && !refused->limits.types) return no(q, "operator", node->op_type);
  if (s->listed && !function && !find(&s->runs, node)) return no(q, "operator", node->op_type);
  for (uint32_t b = 0; b < node->n_bodies; b++)
    if (!runs_operators_of(q, node->bodies[b], depth + 1)) return false;
  return !function || runs_operators_of(q, function, depth + 1);
}

bool psplit_i_support_runs(const psplit_i_support *support, const psplit_i_shapes *shapes,
                           const psplit_i_costs *costs, uint32_t n, psplit_i_text *out_why) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  const psplit_i_node *node = &graph->nodes[n];
  const question q = {support, shapes, costs, node, out_why};
  if (!support) return true;
  const char *name = psplit_i_node_known_as(graph, node);
  for (uint32_t i = 0; i < support->n_nodes; i++)
    if (psplit_i_glob_match(support->nodes[i], name) || strcmp(support->nodes[i], name) == 0)
      return no(&q, "node", name);
  if (!runs_operator(&q, graph, node, 0)) return false;
  const psplit_i_support_rule *runs = find(&support->runs, node);
  const psplit_i_support_rule *refuses = find(&support->refuses, node);
  const uint32_t types = support->refused_types | (refuses ? refuses->limits.types : 0);
  if (types && any_touches(&q, types)) return no(&q, "a type of", node->op_type);
  return keeps_to(&q, &support->limits) && (!runs || keeps_to(&q, &runs->limits));
}
