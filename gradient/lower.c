/* Replaces Gradient nodes of a model by nodes that compute them, one at a time in topological
 * order: a Gradient of a Gradient is differentiated through the nodes that replaced the latter. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differentiate.h"
#include "gradient.h"
#include "model.h"
#include "model_pieces.h"
#include "onnx.pb-c.h"
#include "opsets.h"
#include "write.h"

/* Derivatives of derivatives may double at each turn. */
enum { MOST_XS = 4096, MOST_NODES = 1 << 20 };

/* One Gradient node. */
typedef struct lowering {
  const psplit_i_graph *graph;
  psplit_i_shapes *shapes;
  psplit_i_backward b;
  uint32_t place;
  const psplit_i_node *node;
  uint32_t n_xs, y;
  psplit_diag *diag;
} lowering;

static bool is_gradient(const psplit_i_node *node) {
  return strcmp(node->domain, "ai.onnx.preview.training") == 0 &&
         strcmp(node->op_type, "Gradient") == 0 && node->function == PSPLIT_NONE;
}

static psplit_code refuse(const lowering *l, psplit_code code, const char *what, const char *name) {
  char label[128];
  return psplit_i_fail(l->diag, code, "node \"%s\" (Gradient): %s \"%s\"",
                       psplit_i_node_label(l->graph, l->place, label, sizeof label), what, name);
}

/* The values that a list of names binds to inputs from `first` on, which have to be these values:
 * another would ask for the gradient elsewhere than where the model computes. */
static psplit_code check_names(lowering *l, const char *list, uint32_t first, uint32_t *out_n) {
  const ProtobufCBinaryData *names;
  size_t n;
  *out_n = 0;
  if (!psplit_i_attr_strings(l->node, list, &names, &n)) return PSPLIT_OK;
  if (n > MOST_XS) return refuse(l, PSPLIT_LIMIT, "too many names in", list);
  for (size_t i = 0; i < n; i++) {
    char name[1024];
    const ProtobufCBinaryData *text = &names[i];
    snprintf(name, sizeof name, "%.*s", (int)(text->len < 1000 ? text->len : 1000),
             (const char *)text->data);
    const uint32_t input = first + (uint32_t)i;
    const uint32_t value = input < l->node->n_inputs ? l->node->inputs[input] : PSPLIT_NONE;
    if (value == PSPLIT_NONE) return refuse(l, PSPLIT_INVALID, "no input is bound to", name);
    if (strcmp(l->graph->values[value].name, name) != 0)
      return refuse(l, PSPLIT_UNSUPPORTED,
                    "an input is another tensor than the one that it is bound to,", name);
    (*out_n)++;
  }
  return PSPLIT_OK;
}

static psplit_code read_node(lowering *l) {
  psplit_code code;
  uint32_t n_zs;
  const char *y;
  size_t n;
  char name[1024];
  PSPLIT_TRY(check_names(l, "xs", 0, &l->n_xs));
  PSPLIT_TRY(check_names(l, "zs", l->n_xs, &n_zs));
  if (!l->n_xs || l->n_xs + n_zs != l->node->n_inputs || l->node->n_outputs > l->n_xs)
    PSPLIT_FAIL(refuse(l, PSPLIT_INVALID, "its inputs and outputs are not those of", "xs, zs"));
  if (!psplit_i_attr_string(l->node, "y", &y, &n))
    PSPLIT_FAIL(refuse(l, PSPLIT_INVALID, "it has no attribute", "y"));
  snprintf(name, sizeof name, "%.*s", (int)(n < 1000 ? n : 1000), y);
  l->y = psplit_i_graph_find_value(l->graph, name);
  if (l->y == PSPLIT_NONE) PSPLIT_FAIL(refuse(l, PSPLIT_INVALID, "the graph has no value", name));
  const uint32_t producer = l->graph->values[l->y].producer;
  if (producer != PSPLIT_NONE && producer > l->place)
    PSPLIT_FAIL(refuse(l, PSPLIT_UNSUPPORTED, "it comes before the node that computes", name));
out:
  return code;
}

/* A number as a tensor of the shape of a value. */
static psplit_i_ref filled(lowering *l, double number, uint32_t like) {
  psplit_i_backward *b = &l->b;
  const psplit_i_vtype *type = psplit_i_shapes_type(l->shapes, like);
  const psplit_i_ref value = psplit_i_backward_forward(b, like);
  const psplit_i_ref one = psplit_i_backward_number(b, type->elem, number);
  if (type->rank == 0) return one;
  const psplit_i_ref shape = psplit_i_backward_node(b, "Shape", 1, &value, 1);
  return psplit_i_backward_node(b, "Expand", 2, (psplit_i_ref[]){one, shape}, 1);
}

static psplit_code differentiate(lowering *l, psplit_i_ref *gradients) {
  psplit_code code;
  psplit_i_backward *b = &l->b;
  const int32_t elem = psplit_i_shapes_type(l->shapes, l->y)->elem;
  b->twin = l->graph->values[l->y].producer;
  if (!psplit_i_is_float(elem))
    return refuse(l, PSPLIT_UNSUPPORTED, "no floating-point tensor, as far as is known, is",
                  l->graph->values[l->y].name);
  const psplit_i_differentiated output = {l->y, filled(l, 1, l->y)};
  PSPLIT_TRY(
    psplit_i_differentiate(l->shapes, output, l->node->inputs, l->n_xs, b, l->diag, gradients));
  for (uint32_t i = 0; i < l->n_xs; i++) {
    b->twin = l->graph->values[l->y].producer;
    if (gradients[i] == PSPLIT_NONE) gradients[i] = filled(l, 0, l->node->inputs[i]);
  }
out:
  return code;
}

/* Results get the names of the node's outputs; the rest gets names that are free. */
static psplit_code name_values(lowering *l, psplit_i_ref *gradients) {
  psplit_i_backward *b = &l->b;
  psplit_i_text text = {0};
  for (uint32_t i = 0; i < l->node->n_outputs && !b->failed; i++) {
    if (l->node->outputs[i] == PSPLIT_NONE) continue;
    const psplit_i_bvalue *value = &b->values.items[gradients[i]];
    if (value->origin != PSPLIT_ORIGIN_NODE || value->name)
      gradients[i] = psplit_i_backward_node(b, "Identity", 1, &gradients[i], 1);
    if (!b->failed) b->values.items[gradients[i]].name = l->graph->values[l->node->outputs[i]].name;
  }
  if (b->failed) return psplit_i_nomem(l->diag);
  for (uint32_t i = l->node->n_outputs; i < l->n_xs; i++) gradients[i] = PSPLIT_NONE;
  for (uint32_t i = 0; i < l->node->n_outputs; i++)
    if (l->node->outputs[i] == PSPLIT_NONE) gradients[i] = PSPLIT_NONE;
  psplit_i_backward_sweep(b, gradients, l->n_xs);
  for (psplit_i_ref r = 0; r < b->values.n && !b->failed; r++) {
    if (!b->values.items[r].alive || b->values.items[r].name) continue;
    text.n = 0;
    psplit_i_text_addf(&text, "grad.%" PRIu32, r);
    b->values.items[r].name = psplit_i_backward_name(b, psplit_i_backward_text(b, &text));
  }
  psplit_i_text_fini(&text);
  return b->failed ? psplit_i_nomem(l->diag) : PSPLIT_OK;
}

/* Shapes that the backward pass would stash are computed where it stands. */
static void put_shapes(const psplit_i_backward *b, psplit_i_text *out) {
  for (size_t r = 0; r < b->values.n; r++) {
    const psplit_i_bvalue *value = &b->values.items[r];
    if (!value->alive || value->origin != PSPLIT_ORIGIN_SHAPE) continue;
    const char *const inputs[] = {b->forward->values[value->index].name, NULL};
    const char *const outputs[] = {value->name, NULL};
    psplit_i_put_node(out, "Shape", value->name, inputs, outputs, NULL);
  }
}

/* The model with its node `place` lowered. */
static psplit_code lower(const psplit_model *model, uint32_t place, psplit_diag *diag,
                         psplit_model **out) {
  psplit_code code;
  lowering l = {.graph = psplit_i_model_graph(model),
                .place = place,
                .node = &psplit_i_model_graph(model)->nodes[place],
                .diag = diag};
  const int64_t opset = psplit_i_model_opset(l.graph->model, "");
  psplit_i_text fields = {0};
  psplit_i_skeleton skeleton = {0};
  psplit_i_ref *gradients = calloc((size_t)l.node->n_inputs + 1, sizeof *gradients);
  if (!gradients) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_backward_init(&l.b, l.graph, diag));
  if (psplit_i_model_ir_version(model) < 4)
    PSPLIT_FAIL(refuse(&l, PSPLIT_UNSUPPORTED, "its constants need IR version 4 of", "the model"));
  PSPLIT_TRY(psplit_i_shapes_create(l.graph, NULL, 0, NULL, diag, &l.shapes));
  PSPLIT_TRY(read_node(&l));
  PSPLIT_TRY(differentiate(&l, gradients));
  PSPLIT_TRY(name_values(&l, gradients));
  PSPLIT_TRY(psplit_i_fit_opset(&l.b, opset, "the model", diag));
  put_shapes(&l.b, &fields);
  psplit_i_put_nodes(&l.b, &fields);
  psplit_i_put_constants(&l.b, &fields);
  if (fields.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  const psplit_i_node_edit edit = {.node = place, .fields = fields.bytes, .bytes = fields.n};
  PSPLIT_TRY(psplit_i_skeleton_edit(model, &edit, 1, NULL, 0, diag, &skeleton));
  PSPLIT_TRY(psplit_i_model_rebuild(model, &skeleton, 0, diag, out));
out:
  free(gradients);
  psplit_i_text_fini(&fields);
  psplit_i_shapes_destroy(l.shapes);
  psplit_i_backward_fini(&l.b);
  return code;
}

static uint32_t find_gradient(const psplit_i_graph *graph) {
  for (uint32_t t = 0; t < graph->n_nodes; t++)
    if (is_gradient(&graph->nodes[graph->topo[t]])) return graph->topo[t];
  return PSPLIT_NONE;
}

psplit_code psplit_lower_gradients(const psplit_model *model, const char *path, psplit_diag *diag,
                                   uint32_t *out_n) {
  psplit_code code = PSPLIT_OK;
  const psplit_model *last = model;
  psplit_model *made = NULL;
  psplit_i_pieces whole = {0};
  psplit_i_text head = {0};
  uint32_t n = 0;
  for (uint32_t at; (at = find_gradient(psplit_i_model_graph(last))) != PSPLIT_NONE; n++) {
    psplit_model *next = NULL;
    PSPLIT_TRY(psplit_i_check_operators(last, diag));
    PSPLIT_TRY(lower(last, at, diag, &next));
    psplit_model_close(made);
    last = made = next;
    if (psplit_i_model_graph(last)->n_nodes > MOST_NODES)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_LIMIT,
                                "the Gradient nodes become more than %d nodes, the limit",
                                (int)MOST_NODES));
  }
  psplit_i_pieces_model(&whole, last, NULL, &head);
  PSPLIT_TRY(psplit_i_pieces_write(&whole, last, path, diag));
  *out_n = n;
out:
  psplit_i_pieces_fini(&whole);
  psplit_i_text_fini(&head);
  psplit_model_close(made);
  return code;
}
