#include "opsets.h"

#include <inttypes.h>
#include <string.h>

#include "fields.h"
#include "onnx.pb-c.h"
#include "wire.h"

enum { PADS_WITH_AXES = 4 };

psplit_code psplit_i_check_operators(const psplit_model *model, psplit_diag *diag) {
  const char *own = psplit_i_model_own_operator(model, NULL);
  if (own)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "the model has its own function \"%s\" in place of an operator of ONNX's, "
                         "and nodes that training adds could call it",
                         own);
  return PSPLIT_OK;
}

/* Whether a node has an attribute, by its fields. */
static bool has_attribute(const psplit_i_bnode *node, const char *name) {
  psplit_i_field outer, inner;
  if (!node->attribute_bytes) return false;
  const uint8_t *at = (const uint8_t *)node->attributes, *end = at + node->attribute_bytes;
  while (at < end && psplit_i_next_field(&at, end, &outer)) {
    const uint8_t *part = outer.content, *part_end = outer.end;
    while (part < part_end && psplit_i_next_field(&part, part_end, &inner))
      if (inner.number == PSPLIT_I_ATTRIBUTE_NAME &&
          (size_t)(inner.end - inner.content) == strlen(name) &&
          memcmp(inner.content, name, strlen(name)) == 0)
        return true;
  }
  return false;
}

/* The first opset that has a node in this form. */
static int64_t first_opset(const psplit_i_bnode *node) {
  if (strcmp(node->op_type, "Pad") == 0 && node->n_inputs == PADS_WITH_AXES) return 18;
  if (has_attribute(node, "reduction")) return 16;
  if (strcmp(node->op_type, "Trilu") == 0 || has_attribute(node, "allowzero")) return 14;
  return PSPLIT_FIRST_RULE_OPSET;
}

static bool has_axes_input(const psplit_i_bnode *node) {
  return strncmp(node->op_type, "Reduce", 6) == 0 && strcmp(node->op_type, "ReduceSum") != 0 &&
         node->n_inputs == 2;
}

/* The constant axes of a reduction as its attribute. */
static bool move_axes(psplit_i_backward *b, psplit_i_bnode *node) {
  const psplit_i_bvalue *value = &b->values.items[b->inputs.items[node->first_input + 1]];
  if (value->origin != PSPLIT_ORIGIN_CONSTANT) return false;
  const psplit_i_bconstant *axes = &b->constants.items[value->index];
  b->attributes.n = 0;
  psplit_i_backward_attr_fields(b, node->attributes, node->attribute_bytes);
  psplit_i_backward_attr_ints(b, "axes", axes->bytes, axes->n_bytes / sizeof(int64_t));
  if (b->failed) return true;
  node->attributes = psplit_i_arena_strndup(&b->arena, b->attributes.bytes, b->attributes.n);
  node->attribute_bytes = b->attributes.n;
  node->n_inputs = 1;
  b->attributes.n = 0;
  if (!node->attributes) b->failed = true;
  return true;
}

static psplit_code refuse(const psplit_i_backward *b, const psplit_i_bnode *node, int64_t needs,
                          int64_t opset, const char *what, psplit_diag *diag) {
  char label[128];
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "%s has opset %" PRId64
                       ", but the gradient of node \"%s\" needs %s of opset "
                       "%" PRId64 ": convert the model",
                       what, opset,
                       node->twin == PSPLIT_NONE
                         ? "?"
                         : psplit_i_node_label(b->forward, node->twin, label, sizeof label),
                       node->op_type, needs);
}

psplit_code psplit_i_fit_opset(psplit_i_backward *b, int64_t opset, const char *what,
                               psplit_diag *diag) {
  if (opset >= PSPLIT_RULE_OPSET) return PSPLIT_OK;
  for (size_t i = 0; i < b->nodes.n; i++) {
    psplit_i_bnode *node = &b->nodes.items[i];
    if (!node->alive) continue;
    if (opset < first_opset(node)) return refuse(b, node, first_opset(node), opset, what, diag);
    if (has_axes_input(node) && !move_axes(b, node))
      return refuse(b, node, PSPLIT_RULE_OPSET, opset, what, diag);
    if (b->failed) return psplit_i_nomem(diag);
  }
  return PSPLIT_OK;
}
