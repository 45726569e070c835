/* The choice of trainable weights. */
#include "weights.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "inline_hint.h"
#include "moved_constants.h"
#include "rule.h"

/* Nodes looked at for one initializer: more than any parameter needs. */
enum { MAX_VIEWS = 8, MAX_LOOKS = 4096 };

/* An initializer on its way. */
typedef struct parameter {
  const psplit_i_graph *graph;
  const char *name;
  int32_t rank;
  uint32_t looks;
} parameter;

static bool reads(const psplit_i_node *node, uint32_t input, uint32_t value) {
  return input < node->n_inputs && node->inputs[input] == value;
}

/* An exporter's constant rather than a parameter: names of parameters come from the program, those
 * of folded constants from the exporter. */
static bool named_by_exporter(const char *name) {
  return strncmp(name, "onnx::", 6) == 0 || strncmp(name, "_v_", 3) == 0;
}

/* Whether `node` has `value` where a parameter would be. */
static bool is_place(const parameter *p, const psplit_i_node *node, uint32_t value,
                     uint32_t weights) {
  const uint32_t parameters = weights & PSPLIT_WEIGHTS_PARAMETERS;
  for (uint32_t i = 0; parameters >> i; i++)
    if (parameters >> i & 1 && reads(node, i, value)) return true;
  if (weights & PSPLIT_WEIGHTS_OPERAND && (p->rank == 1 || !named_by_exporter(p->name)))
    return true;
  return weights & PSPLIT_WEIGHTS_JOINED && p->rank > 2 && !named_by_exporter(p->name);
}

static bool hands_on(const psplit_i_node *node, uint32_t value, uint32_t weights) {
  if (node->n_outputs == 0 || node->outputs[0] == PSPLIT_NONE) return false;
  return weights & PSPLIT_WEIGHTS_ALL_HANDED_ON ||
         (weights & PSPLIT_WEIGHTS_HANDED_ON && reads(node, 0, value));
}

/* Whether the value comes to a parameter's place, through at most `depth` views. */
static bool comes_to_place(parameter *p, uint32_t value, int depth) {
  const psplit_i_graph *graph = p->graph;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    const psplit_i_node *node = &graph->nodes[graph->consumers[c]];
    const psplit_i_gradient_rule *rule = psplit_i_gradient_rule_of(node);
    const uint32_t weights = rule ? rule->weights : 0;
    if (++p->looks > MAX_LOOKS) return false;
    if (is_place(p, node, value, weights) || (depth > 0 && hands_on(node, value, weights) &&
                                              comes_to_place(p, node->outputs[0], depth - 1)))
      return true;
  }
  return false;
}

static bool is_parameter_called(const psplit_i_graph *graph, uint32_t value, int32_t rank,
                                const char *name) {
  parameter p = {.graph = graph, .name = name, .rank = rank};
  return rank >= 1 && comes_to_place(&p, value, MAX_VIEWS);
}

static bool is_parameter(const psplit_i_graph *graph, uint32_t value, int32_t rank) {
  return is_parameter_called(graph, value, rank, graph->values[value].name);
}

/* The choice on its way. */
typedef struct chooser {
  const psplit_i_shapes *shapes;
  const psplit_i_graph *graph;
  const psplit_training_options *options;
  bool by_constants; /* the model's parameters are results of Constant nodes, and none are not */
  bool *train_used, *freeze_used;
  bool *trained; /* [n_values] */
} chooser;

static bool is_float_initializer(const psplit_i_graph *graph, uint32_t value) {
  const uint32_t initializer = graph->values[value].initializer;
  return initializer != PSPLIT_NONE &&
         psplit_i_is_float(psplit_i_graph_initializer(graph, initializer).data_type);
}

/* What a name may say. */
static bool is_weight(const psplit_i_graph *graph, uint32_t value) {
  return is_float_initializer(graph, value) || psplit_i_constant_is_movable(graph, value);
}

static bool is_name(const psplit_i_graph *graph, const char *pattern) {
  const uint32_t v = psplit_i_graph_find_value(graph, pattern);
  return v != PSPLIT_NONE && is_weight(graph, v);
}

static bool matches(const psplit_i_graph *graph, const char *const *patterns, size_t n,
                    const char *name, bool *used) {
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    if (!psplit_i_name_match(patterns[i], is_name(graph, patterns[i]), name)) continue;
    used[i] = true;
    any = true;
  }
  return any;
}

static bool is_any(const char *const *names, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

static psplit_code all_used(const psplit_i_graph *graph, const char *option,
                            const char *const *patterns, size_t n, const bool *used,
                            psplit_diag *diag) {
  for (size_t i = 0; i < n; i++)
    if (!used[i])
      return psplit_i_graph_fail_unknown(
        graph, is_float_initializer, patterns[i], diag,
        "%s \"%s\" matches no floating-point initializer of the model", option, patterns[i]);
  return PSPLIT_OK;
}

/* By their names. O(n) */
static psplit_code choose_names(const psplit_i_graph *graph, const char *const *names, size_t n,
                                psplit_diag *diag, bool *out_trained) {
  for (size_t i = 0; i < n; i++) {
    if (!is_name(graph, names[i]))
      return psplit_i_graph_fail_unknown(graph, is_float_initializer, names[i], diag,
                                         "\"%s\" is not a floating-point initializer of the model",
                                         names[i]);
    out_trained[psplit_i_graph_find_value(graph, names[i])] = true;
  }
  return PSPLIT_OK;
}

/* Whether no initializer is a parameter. Then constants are; else they are numbers of the
 * program. */
static bool has_no_parameter(const psplit_i_graph *graph) {
  for (uint32_t i = 0; i < graph->n_initializers; i++) {
    const psplit_i_tensor tensor = psplit_i_graph_initializer(graph, i);
    if (psplit_i_is_float(tensor.data_type) &&
        is_parameter(graph, graph->initializers[i], (int32_t)tensor.n_dims))
      return false;
  }
  return true;
}

/* Whether patterns speak of a constant as they do of an initializer. */
static bool is_meant(const chooser *c, const char *name, int32_t rank) {
  return (c->by_constants && rank > 0) || is_any(c->options->train, c->options->n_train, name);
}

static void choose_value(const chooser *c, uint32_t v, int32_t rank, bool meant) {
  const psplit_training_options *options = c->options;
  const char *name = c->graph->values[v].name;
  const bool frozen = matches(c->graph, options->freeze, options->n_freeze, name, c->freeze_used);
  bool trained = false;
  if (meant && options->n_train)
    trained = matches(c->graph, options->train, options->n_train, name, c->train_used);
  else if (meant)
    trained = is_parameter(c->graph, v, rank);
  c->trained[v] = trained && !frozen;
}

static void choose_values(const chooser *c) {
  const psplit_i_graph *graph = c->graph;
  for (uint32_t i = 0; i < graph->n_initializers; i++) {
    const psplit_i_tensor tensor = psplit_i_graph_initializer(graph, i);
    if (psplit_i_is_float(tensor.data_type))
      choose_value(c, graph->initializers[i], (int32_t)tensor.n_dims, true);
  }
  for (uint32_t v = 0; v < graph->n_values; v++) {
    if (!psplit_i_constant_is_movable(graph, v)) continue;
    const int32_t rank = psplit_i_shapes_type(c->shapes, v)->rank;
    choose_value(c, v, rank, is_meant(c, graph->values[v].name, rank));
  }
}

/* Biases that an exporter folded are named as its constants are, and stay as they are unasked. */
static void say_unnamed(const chooser *c, const psplit_logger *logger) {
  const psplit_i_graph *graph = c->graph;
  uint32_t n = 0, first = PSPLIT_NONE;
  if (c->options->n_train) return;
  for (uint32_t i = 0; i < graph->n_initializers; i++) {
    const uint32_t v = graph->initializers[i];
    const psplit_i_tensor tensor = psplit_i_graph_initializer(graph, i);
    const int32_t rank = (int32_t)tensor.n_dims;
    const uint32_t bits = psplit_i_dtype_bits(tensor.data_type);
    if (c->trained[v] || !psplit_i_is_float(tensor.data_type) ||
        tensor.data_bytes * CHAR_BIT <= bits || !named_by_exporter(graph->values[v].name) ||
        matches(graph, c->options->freeze, c->options->n_freeze, graph->values[v].name,
                c->freeze_used) ||
        is_parameter(graph, v, rank) || !is_parameter_called(graph, v, rank, ""))
      continue;
    if (n++ == 0) first = v;
  }
  if (n)
    psplit_i_say(
      logger, PSPLIT_NOTE,
      "%" PRIu32
      " initializer%s that %s added or multiplied, \"%.80s\"%s, %s not "
      "trained: names like that are an exporter's for constants it folded, maybe biases; "
      "patterns of what to train include %s",
      n, n == 1 ? "" : "s", n == 1 ? "is" : "are", graph->values[first].name,
      n > 1 ? " and others" : "", n == 1 ? "is" : "are", n == 1 ? "it" : "them");
}

const char *psplit_i_without_bodies(const psplit_i_node *node) {
  return !node->n_bodies || psplit_i_node_is(node, "If")
           ? ""
           : ": export the model with its steps one after the other";
}

/* Weights that bodies and functions read, and that are left as they are. */
typedef struct left_inside {
  const chooser *c;
  uint32_t node; /* of the main graph, whose bodies or function read the first one */
  const char *name;
  bool more;
} left_inside;

/* The value of a Constant; of no type, if it is no tensor or the node is another one. */
static psplit_i_tensor constant_of(const psplit_i_node *node) {
  const struct Onnx__TensorProto *value =
    psplit_i_node_is(node, "Constant") ? psplit_i_attr_tensor(node, "value") : NULL;
  return value ? psplit_i_tensor_of(value) : (psplit_i_tensor){0};
}

/* The rank of a weight, which a graph reads as its value `v`; -1: it is none, or is trained.
 * *out_name is its name. */
static int32_t weight_inside(const chooser *c, const psplit_i_graph *body, uint32_t v,
                             const char **out_name) {
  const uint32_t value = psplit_i_value_resolve(&body, v);
  const psplit_i_value *of = &body->values[value];
  *out_name = of->name;
  if (body == c->graph && c->trained[value]) return -1;
  psplit_i_tensor tensor = {0};
  if (of->initializer != PSPLIT_NONE)
    tensor = psplit_i_graph_initializer(body, of->initializer);
  else if (c->by_constants && of->producer != PSPLIT_NONE)
    tensor = constant_of(&body->nodes[of->producer]);
  return psplit_i_is_float(tensor.data_type) ? (int32_t)tensor.n_dims : -1;
}

static void add_left(left_inside *all, uint32_t node, const char *name) {
  const psplit_training_options *o = all->c->options;
  if (matches(all->c->graph, o->freeze, o->n_freeze, name, all->c->freeze_used)) return;
  all->more |= all->name && strcmp(all->name, name) != 0;
  if (all->name) return;
  all->name = name;
  all->node = node;
}

/* Of a body of a node of the main graph, and of those inside it. Depth is bounded by the scan. */
static void look_inside(left_inside *all, uint32_t node, const psplit_i_graph *body) {
  for (uint32_t v = 0; v < body->n_values; v++) {
    const char *name;
    const int32_t rank = weight_inside(all->c, body, v, &name);
    if (is_parameter_called(body, v, rank, name)) add_left(all, node, name);
  }
  for (uint32_t n = 0; n < body->n_nodes; n++)
    for (uint32_t b = 0; b < body->nodes[n].n_bodies; b++)
      look_inside(all, node, body->nodes[n].bodies[b]);
}

/* Of a node that calls a function, which hands its inputs on to others: their place is not looked
 * for. */
static void look_at_call(left_inside *all, uint32_t node) {
  const psplit_i_graph *graph = all->c->graph;
  for (uint32_t i = 0; i < graph->nodes[node].n_inputs; i++) {
    const uint32_t v = graph->nodes[node].inputs[i];
    const char *name;
    if (v != PSPLIT_NONE && weight_inside(all->c, graph, v, &name) > 0 && !named_by_exporter(name))
      add_left(all, node, name);
  }
}

/* Where nothing is trained, that is an error, which says so itself. */
static psplit_code say_inside(const chooser *c, const psplit_logger *logger, psplit_diag *diag) {
  const psplit_i_graph *graph = c->graph;
  char label[160];
  psplit_i_advice advice = {0};
  left_inside all = {.c = c};
  uint32_t trained = 0;
  while (trained < graph->n_values && !c->trained[trained]) trained++;
  if (trained == graph->n_values || c->options->n_train) return PSPLIT_OK;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    for (uint32_t b = 0; b < graph->nodes[n].n_bodies; b++)
      look_inside(&all, n, graph->nodes[n].bodies[b]);
    if (graph->nodes[n].function != PSPLIT_NONE) look_at_call(&all, n);
  }
  if (!all.name) return PSPLIT_OK;
  const psplit_i_node *node = &graph->nodes[all.node];
  if (!psplit_i_inline_hint(graph, all.node, &advice)) return psplit_i_nomem(diag);
  const bool calls = node->function != PSPLIT_NONE;
  psplit_i_advise(logger, PSPLIT_WARNING, advice,
                  "\"%.80s\"%s %s not trained: %s read in the %s of %s \"%s\", and gradients "
                  "through %s are not supported%s",
                  all.name, all.more ? " and others" : "", all.more ? "are" : "is",
                  all.more ? "they are" : "it is", calls ? "function" : "bodies", node->op_type,
                  psplit_i_node_label(graph, all.node, label, sizeof label),
                  calls ? "functions" : "bodies", psplit_i_without_bodies(node));
  return PSPLIT_OK;
}

psplit_code psplit_i_weights_choose(const psplit_i_shapes *shapes,
                                    const psplit_training_options *options,
                                    const psplit_logger *logger, psplit_diag *diag,
                                    bool *out_trained) {
  psplit_code code;
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  psplit_i_arena scratch;
  if (options->train_names)
    return choose_names(graph, options->train, options->n_train, diag, out_trained);
  psplit_i_arena_init(&scratch, 0);
  const chooser c = {.shapes = shapes,
                     .graph = graph,
                     .options = options,
                     .by_constants = has_no_parameter(graph),
                     .train_used = PSPLIT_NEW(&scratch, bool, options->n_train),
                     .freeze_used = PSPLIT_NEW(&scratch, bool, options->n_freeze),
                     .trained = out_trained};
  if (!c.train_used || !c.freeze_used) PSPLIT_FAIL(psplit_i_nomem(diag));
  choose_values(&c);
  say_unnamed(&c, logger);
  PSPLIT_TRY(say_inside(&c, logger, diag));
  PSPLIT_TRY(all_used(graph, "train", options->train, options->n_train, c.train_used, diag));
  PSPLIT_TRY(all_used(graph, "freeze", options->freeze, options->n_freeze, c.freeze_used, diag));
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

/* Whether what stands where parameters do are constants that cannot be trained. */
static bool are_constants(const psplit_i_shapes *shapes) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  if (!has_no_parameter(graph)) return false;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    const uint32_t value = node->n_outputs ? node->outputs[0] : PSPLIT_NONE;
    if (value == PSPLIT_NONE || !psplit_i_node_is(node, "Constant")) continue;
    const psplit_i_vtype *type = psplit_i_shapes_type(shapes, value);
    if (psplit_i_is_float(type->elem) && is_parameter(graph, value, type->rank)) return true;
  }
  return false;
}

bool psplit_i_is_quantised(int32_t elem) {
  const uint32_t bits = psplit_i_dtype_bits(elem);
  return bits > 0 && bits <= 8 && elem != PSPLIT_ELEM_BOOL;
}

/* Only scales and points of zero are not matrices there. */
static bool are_quantised(const psplit_i_graph *graph) {
  uint32_t i = 0;
  for (; i < graph->n_initializers; i++) {
    const psplit_i_tensor tensor = psplit_i_graph_initializer(graph, i);
    if (tensor.n_dims > 1 && psplit_i_is_quantised(tensor.data_type)) break;
  }
  return i < graph->n_initializers;
}

static uint64_t float_bytes(const psplit_i_tensor *tensor) {
  return tensor->n_dims > 0 && psplit_i_is_float(tensor->data_type) ? tensor->data_bytes : 0;
}

/* Floating-point constants of a body and of those inside it. Depth is bounded by the scan. */
static uint64_t floats_inside(const psplit_i_graph *body) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < body->n_initializers; i++) {
    const psplit_i_tensor tensor = psplit_i_graph_initializer(body, i);
    bytes = psplit_i_sat_add_u64(bytes, float_bytes(&tensor));
  }
  for (uint32_t n = 0; n < body->n_nodes; n++) {
    const psplit_i_node *node = &body->nodes[n];
    const psplit_i_tensor constant = constant_of(node);
    bytes = psplit_i_sat_add_u64(bytes, float_bytes(&constant));
    for (uint32_t b = 0; b < node->n_bodies; b++)
      bytes = psplit_i_sat_add_u64(bytes, floats_inside(node->bodies[b]));
  }
  return bytes;
}

/* The node whose bodies read the most that could be trained, or PSPLIT_NONE: constants of their
 * own, and initializers of the main graph. */
static uint32_t with_weights_inside(const psplit_i_graph *graph) {
  uint32_t heaviest = PSPLIT_NONE;
  uint64_t most = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    uint64_t bytes = 0;
    for (uint32_t b = 0; b < node->n_bodies; b++)
      bytes = psplit_i_sat_add_u64(bytes, floats_inside(node->bodies[b]));
    for (uint32_t c = 0; c < node->n_captures; c++) {
      const uint32_t initializer = graph->values[node->captures[c]].initializer;
      if (initializer == PSPLIT_NONE) continue;
      const psplit_i_tensor tensor = psplit_i_graph_initializer(graph, initializer);
      bytes = psplit_i_sat_add_u64(bytes, float_bytes(&tensor));
    }
    if (bytes > most) {
      most = bytes;
      heaviest = n;
    }
  }
  return heaviest;
}

psplit_code psplit_i_weights_fail_none(const psplit_i_shapes *shapes, psplit_diag *diag) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  if (are_constants(shapes))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "there is nothing to train: the model's weights are results of Constant "
                         "nodes that are sparse, outputs of the model or of an IR version before "
                         "4; make initializers of them first");
  const uint32_t inside = with_weights_inside(graph);
  if (inside != PSPLIT_NONE) {
    char label[160];
    psplit_i_advice advice = {0};
    const psplit_i_node *node = &graph->nodes[inside];
    if (!psplit_i_inline_hint(graph, inside, &advice)) return psplit_i_nomem(diag);
    return psplit_i_fail_about(diag, PSPLIT_USAGE, advice,
                               "there is nothing to train: weights are read in the bodies of %s "
                               "\"%s\", and gradients through bodies are not supported%s",
                               node->op_type,
                               psplit_i_node_label(graph, inside, label, sizeof label),
                               psplit_i_without_bodies(node));
  }
  return psplit_i_fail(diag, PSPLIT_USAGE, "there is nothing to train: %s",
                       are_quantised(graph)
                         ? "the model's weights are quantised; train the model as it was before"
                         : "the model has no floating-point initializer in a parameter's place; "
                           "name some to be trained");
}
