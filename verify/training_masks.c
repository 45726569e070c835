#include "training_masks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "gradient.h"
#include "mask_expression.h"
#include "onnx.pb-c.h"
#include "operator.h"

enum { MODE_INPUT = 2, RATIO_INPUT = 1, FLOAT = 1, BOOL = 9 };

static psplit_code differs(const psplit_i_mask_walk *w, const char *why) {
  char label[128];
  return PSPLIT_I_DIFFERS(w->p, "node %s of the model is trained otherwise: %s",
                          psplit_i_node_label(w->whole, w->n, label, sizeof label), why);
}

/* ---- what an operator says ---- */

/* The number that inference knows a value to be. */
static bool is_inferred(const psplit_i_mask_walk *w, uint32_t value, double *out) {
  const uint32_t edited = psplit_i_graph_find_value(w->edited, w->whole->values[value].name);
  if (edited == PSPLIT_NONE) return false;
  const psplit_i_vtype *type = psplit_i_shapes_type(w->shapes, edited);
  return type->elements && type->n_elements == 1 &&
         psplit_i_dim_is_real(psplit_i_shapes_dims(w->shapes), type->elements[0], out);
}

/* The number in a constant of one element. */
static psplit_code read_number(const psplit_i_mask_walk *w, uint32_t value, bool *out_known,
                               double *out) {
  psplit_code code;
  const psplit_i_value *v = &w->whole->values[value];
  psplit_i_arena scratch;
  psplit_i_tensor tensor;
  const double *reals = NULL;
  const int64_t *whole = NULL;
  size_t n = 0;
  *out_known = is_inferred(w, value, out);
  if (*out_known) return PSPLIT_OK;
  if (v->initializer != PSPLIT_NONE) {
    tensor = psplit_i_graph_initializer(w->whole, v->initializer);
  } else if (v->producer != PSPLIT_NONE &&
             psplit_i_node_is(&w->whole->nodes[v->producer], "Constant")) {
    const Onnx__TensorProto *proto = psplit_i_attr_tensor(&w->whole->nodes[v->producer], "value");
    if (!proto) return PSPLIT_OK;
    tensor = psplit_i_tensor_of(proto);
  } else {
    return PSPLIT_OK;
  }
  psplit_i_arena_init(&scratch, 0);
  PSPLIT_TRY(psplit_i_tensor_doubles(w->before, &tensor, 1, &scratch, w->p->diag, &reals, &n));
  if (!reals)
    PSPLIT_TRY(psplit_i_tensor_int64s(w->before, &tensor, 1, &scratch, w->p->diag, &whole, &n));
  *out_known = n == 1 && (reals || whole);
  if (*out_known) *out = reals ? *reals : (double)*whole;
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

/* Whether a Dropout has to read a mask, and what it drops. */
static psplit_code dropout(const psplit_i_mask_walk *w, const psplit_i_node *node, bool *out_masked,
                           double *out_ratio) {
  psplit_code code = PSPLIT_OK;
  float ratio = 0.5F;
  double mode = 0;
  int64_t is_test = 0;
  bool known = true;
  if (node->opset < 7) {
    psplit_i_attr_int(node, "is_test", &is_test);
    mode = !is_test;
  } else if (node->opset >= 12 && psplit_i_is_given(node, MODE_INPUT)) {
    PSPLIT_TRY(read_number(w, node->inputs[MODE_INPUT], &known, &mode));
    if (!known) mode = 0;
  }
  if (node->opset < 12) psplit_i_attr_float(node, "ratio", &ratio);
  *out_ratio = (double)ratio;
  if (node->opset >= 12 && psplit_i_is_given(node, RATIO_INPUT))
    PSPLIT_TRY(read_number(w, node->inputs[RATIO_INPUT], &known, out_ratio));
  *out_masked = *out_ratio != 0 && (w->table->dropout == PSPLIT_DROPOUT_TRAIN ||
                                    (w->table->dropout == PSPLIT_DROPOUT_AS_IS && mode != 0));
out:
  return code;
}

/* ---- the manifest's row ---- */

static bool is_term(const psplit_i_dim_product *product, const psplit_i_size_term *term) {
  bool good = term->factor == product->factor && term->n_symbols == product->n_symbols;
  for (uint32_t i = 0; good && i < term->n_symbols; i++)
    good = strcmp(term->symbols[i], product->symbols[i]) == 0;
  return good;
}

static bool is_size(const psplit_i_dims *dims, psplit_dim dim, const psplit_i_mask_size *size) {
  psplit_i_dim_product products[PSPLIT_DIM_MOST_TERMS];
  uint32_t n;
  int64_t value;
  if (psplit_i_dim_is_const(dims, dim, &value))
    return size->n_terms == 1 && size->terms[0].n_symbols == 0 && size->terms[0].factor == value;
  bool good = psplit_i_dim_products(dims, dim, products, &n) && n == size->n_terms;
  for (uint32_t t = 0; good && t < n; t++) good = is_term(&products[t], &size->terms[t]);
  return good;
}

/* Whether the stage takes it. */
static bool is_taken(const psplit_i_mask_walk *w, const psplit_i_mask_row *row) {
  const psplit_i_manifest_stage *stage = &w->p->manifest.stages[row->stage];
  for (uint32_t i = 0; i < stage->n_inputs; i++)
    if (stage->inputs[i].from == PSPLIT_I_FROM_MODEL &&
        strcmp(stage->inputs[i].tensor, row->tensor) == 0 &&
        strcmp(stage->inputs[i].name, row->name) == 0)
      return true;
  return false;
}

static psplit_code check_row(const psplit_i_mask_walk *w, const psplit_gradient *gradient,
                             const psplit_i_node *node, const psplit_i_mask_expected *e) {
  const psplit_i_mask_row *row = &w->table->masks[w->mask];
  const psplit_i_shapes *shapes = gradient->shapes;
  const char *like = *e->like ? e->like : w->whole->values[node->outputs[0]].name;
  const psplit_i_vtype *type =
    psplit_i_shapes_type(shapes, psplit_i_graph_find_value(w->edited, like));
  const psplit_i_vtype *input =
    psplit_i_shapes_type(shapes, psplit_i_graph_find_value(w->edited, row->tensor));
  char label[128];
  bool good = row->kind == (uint32_t)e->kind && row->number == w->mask &&
              (e->kind != PSPLIT_DRAW_KEEP || row->ratio == e->ratio) &&
              strcmp(row->node, psplit_i_node_label(w->whole, w->n, label, sizeof label)) == 0 &&
              input->elem == (e->kind == PSPLIT_DRAW_KEEP ? BOOL : FLOAT) && type->rank >= 0 &&
              (uint32_t)type->rank == row->rank && is_taken(w, row);
  for (uint32_t a = 0; good && a < row->rank; a++)
    good = is_size(psplit_i_shapes_dims(shapes), type->dims[a], &row->shape[a]);
  if (good) return PSPLIT_OK;
  return PSPLIT_I_DIFFERS(w->p, "the manifest's mask %" PRIu32 " is not \"%s\" as it is", w->mask,
                          row->tensor);
}

/* ---- nodes that differ ---- */

static bool same_node(const Onnx__NodeProto *a, const Onnx__NodeProto *b) {
  const size_t n = onnx__node_proto__get_packed_size(a);
  if (n != onnx__node_proto__get_packed_size(b)) return false;
  uint8_t *bytes = malloc(2 * n + 1);
  if (!bytes) return false;
  onnx__node_proto__pack(a, bytes);
  onnx__node_proto__pack(b, bytes + n);
  const bool same = memcmp(bytes, bytes + n, n) == 0;
  free(bytes);
  return same;
}

/* The same without training_mode, which has to be `train`. */
static bool is_normalisation(const Onnx__NodeProto *whole, const Onnx__NodeProto *edited,
                             bool train) {
  static const char MODE[] = "training_mode";
  Onnx__NodeProto a = *whole, b = *edited;
  Onnx__NodeProto *const both[] = {&a, &b};
  bool good = edited->n_output == (train ? 3U : 1U) && whole->n_output > 0 &&
              strcmp(whole->output[0], edited->output[0]) == 0;
  for (size_t o = 1; good && o < whole->n_output && o < edited->n_output; o++)
    good = !*whole->output[o] || strcmp(whole->output[o], edited->output[o]) == 0;
  a.n_output = b.n_output = 1;
  for (int i = 0; i < 2; i++) {
    Onnx__AttributeProto **kept = malloc((both[i]->n_attribute + 1) * sizeof *kept);
    size_t n = 0;
    if (!kept) good = false;
    for (size_t k = 0; kept && k < both[i]->n_attribute; k++) {
      const Onnx__AttributeProto *attribute = both[i]->attribute[k];
      if (!attribute->name || strcmp(attribute->name, MODE) != 0)
        kept[n++] = both[i]->attribute[k];
      else if (i == 1)
        good &= attribute->i == train;
    }
    both[i]->attribute = kept;
    both[i]->n_attribute = kept ? n : 0;
  }
  good = good && same_node(&a, &b);
  free(a.attribute);
  free(b.attribute);
  return good;
}

/* The same without what tells it to drop. */
static bool is_frozen(const Onnx__NodeProto *whole, const Onnx__NodeProto *edited) {
  Onnx__NodeProto a = *whole;
  if (a.n_input > MODE_INPUT) a.n_input = MODE_INPUT;
  while (a.n_input > 1 && !*a.input[a.n_input - 1]) a.n_input--;
  return same_node(&a, edited);
}

/* How many nodes of the edited model come before that of the next one: up to the one that makes
 * the last output. */
static uint32_t count_part(const psplit_i_mask_walk *w, const psplit_i_node *node) {
  uint32_t n = 0;
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    if (node->outputs[o] == PSPLIT_NONE) continue;
    const uint32_t value =
      psplit_i_graph_find_value(w->edited, w->whole->values[node->outputs[o]].name);
    const uint32_t producer =
      value == PSPLIT_NONE ? PSPLIT_NONE : w->edited->values[value].producer;
    if (producer == PSPLIT_NONE || producer < w->m) return 0;
    if (producer - w->m + 1 > n) n = producer - w->m + 1;
  }
  return n;
}

/* Whether the next row is an input that the whole model does not have. */
static bool is_mask(const psplit_i_mask_walk *w) {
  const char *name = w->table->masks[w->mask].tensor;
  const uint32_t value = psplit_i_graph_find_value(w->edited, name);
  return value != PSPLIT_NONE && w->edited->values[value].input != PSPLIT_NONE &&
         psplit_i_graph_find_value(w->whole, name) == PSPLIT_NONE;
}

static psplit_code check_masked(psplit_i_mask_walk *w, const psplit_gradient *gradient,
                                const psplit_i_node *node, double ratio) {
  psplit_code code;
  psplit_i_mask_part at = {.w = w, .first = w->m, .n = count_part(w, node)};
  psplit_i_mask_expected e = {.ratio = ratio};
  psplit_i_text scratch = {0};
  if (w->mask >= w->table->n_masks) return differs(w, "the manifest lists no mask for it");
  if (!is_mask(w)) return differs(w, "what the manifest lists as its mask is not a mask");
  if (at.n == 0 || at.n > PSPLIT_I_MASK_MOST_NODES) return differs(w, "it reads no mask");
  psplit_i_mask_expect(w, gradient, node, &e);
  if (!psplit_i_mask_is_expression(&at, &e, node, false, &scratch) &&
      !psplit_i_mask_is_expression(&at, &e, node, true, &scratch))
    PSPLIT_TRY(scratch.failed ? psplit_i_nomem(w->p->diag)
                              : differs(w, "what it computes from its mask"));
  PSPLIT_TRY(check_row(w, gradient, node, &e));
  w->mask++;
  w->m += at.n;
  w->n++;
out:
  psplit_i_text_fini(&scratch);
  return code;
}

/* Whether a node is the model's own but for what tells it to train. */
static psplit_code compare_messages(const psplit_i_mask_walk *w, uint32_t norm, bool *out_same) {
  psplit_code code;
  const psplit_i_node *node = &w->whole->nodes[w->n];
  const Onnx__NodeProto *whole, *edited;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(psplit_i_node_unpack(w->whole, w->n, &arena, w->p->diag, &whole));
  PSPLIT_TRY(psplit_i_node_unpack(w->edited, w->m, &arena, w->p->diag, &edited));
  *out_same = psplit_i_node_is(node, "BatchNormalization")
                ? is_normalisation(whole, edited, norm == PSPLIT_BATCH_NORM_TRAIN)
                : is_frozen(whole, edited);
out:
  psplit_i_arena_fini(&arena);
  return code;
}

/* A node that is not the model's own. */
static psplit_code check_edit(psplit_i_mask_walk *w, const psplit_gradient *gradient) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_node *node = &w->whole->nodes[w->n];
  const uint32_t norm = w->table->batch_norm;
  bool masked = true, good = false;
  double ratio = 0;
  if (psplit_i_node_is(node, "Dropout")) PSPLIT_TRY(dropout(w, node, &masked, &ratio));
  if (psplit_i_node_is(node, "BatchNormalization"))
    good = norm != PSPLIT_BATCH_NORM_AS_IS;
  else if (!masked)
    good = w->table->dropout == PSPLIT_DROPOUT_FROZEN;
  else if (psplit_i_node_has(node, PSPLIT_I_OP_RANDOM))
    return check_masked(w, gradient, node, ratio);
  if (good) PSPLIT_TRY(compare_messages(w, norm, &good));
  if (!good) return differs(w, "its bytes differ");
  w->n++;
  w->m++;
out:
  return code;
}

/* A Dropout that stays has to be one that does. */
static psplit_code check_kept(const psplit_i_mask_walk *w) {
  const psplit_i_node *node = &w->whole->nodes[w->n];
  bool masked = false;
  double ratio;
  if (!psplit_i_node_is(node, "Dropout") || !psplit_i_is_given(node, 0)) return PSPLIT_OK;
  const psplit_code code = dropout(w, node, &masked, &ratio);
  return code != PSPLIT_OK ? code : masked ? differs(w, "it reads no mask") : PSPLIT_OK;
}

/* ---- constants that are trained ---- */

static bool same_numbers(const Onnx__AttributeProto *constant, const Onnx__TensorProto *tensor) {
  const bool list = strcmp(constant->name, "value_floats") == 0;
  const float *numbers = list ? constant->floats : &constant->f;
  const size_t n = list ? constant->n_floats : 1;
  return (list || strcmp(constant->name, "value_float") == 0) && tensor->data_type == FLOAT &&
         tensor->n_dims == list && (!list || tensor->dims[0] == (int64_t)n) &&
         tensor->n_float_data == n && !tensor->has_raw_data && !tensor->n_payload_view &&
         (!n || memcmp(numbers, tensor->float_data, n * sizeof *numbers) == 0);
}

/* All of a tensor but its name. */
static bool same_tensor(const Onnx__TensorProto *constant, const Onnx__TensorProto *tensor) {
  Onnx__TensorProto a = *constant, b = *tensor;
  a.name = b.name = NULL;
  const size_t n = onnx__tensor_proto__get_packed_size(&a);
  if (n != onnx__tensor_proto__get_packed_size(&b)) return false;
  uint8_t *bytes = malloc(2 * n + 1);
  if (!bytes) return false;
  onnx__tensor_proto__pack(&a, bytes);
  onnx__tensor_proto__pack(&b, bytes + n);
  const bool same = memcmp(bytes, bytes + n, n) == 0;
  free(bytes);
  return same;
}

/* A node whose place an initializer has taken, the after'th of the model that is trained: the
 * Constant of that name, which is fed as weights are. */
static psplit_code check_moved(psplit_i_mask_walk *w, const psplit_gradient *gradient,
                               uint32_t after) {
  const psplit_i_node *node = &w->whole->nodes[w->n];
  const uint32_t value = w->edited->initializers[after];
  const Onnx__TensorProto *tensor = w->after->proto->graph->initializer[after];
  bool good = psplit_i_node_is(node, "Constant") && node->n_attributes == 1 &&
              node->n_outputs == 1 && node->outputs[0] != PSPLIT_NONE &&
              strcmp(w->whole->values[node->outputs[0]].name, tensor->name) == 0;
  if (good) {
    const Onnx__TensorProto *constant = psplit_i_attr_tensor(node, "value");
    good = constant ? same_tensor(constant, tensor) : same_numbers(node->attributes[0], tensor);
  }
  for (uint32_t i = 0, found = 0; good && !found; i++) {
    good = i < gradient->n_trainables;
    found = good && gradient->trainables[i].value == value && !gradient->trainables[i].is_input;
  }
  if (!good) return differs(w, "the initializer in its place is not a trained constant");
  w->n++;
  return PSPLIT_OK;
}

/* ---- both models ---- */

static bool same_field(const psplit_i_mask_walk *w, size_t i, size_t j) {
  const psplit_i_skeleton *a = &w->before->skeleton, *b = &w->after->skeleton;
  if (j >= b->graph_fields.n) return false;
  const psplit_i_span *x = &a->graph_fields.items[i], *y = &b->graph_fields.items[j];
  return x->field == y->field && x->skeleton_bytes == y->skeleton_bytes &&
         memcmp(a->bytes + x->skeleton_offset, b->bytes + y->skeleton_offset, x->skeleton_bytes) ==
           0;
}

psplit_code psplit_i_check_masks(const psplit_i_proof *p, const psplit_model *before,
                                 const psplit_gradient *gradient,
                                 const psplit_i_training_table *table) {
  psplit_code code = PSPLIT_OK;
  psplit_i_mask_walk w = {.p = p,
                          .before = before,
                          .after = gradient->model,
                          .whole = psplit_i_model_graph(before),
                          .edited = psplit_i_model_graph(gradient->model),
                          .shapes = gradient->shapes,
                          .table = table};
  const psplit_i_spans *fields = &before->skeleton.graph_fields;
  const psplit_i_spans *made = &gradient->model->skeleton.graph_fields;
  uint32_t n_initializers = 0;
  for (size_t i = 0, j = 0; i < fields->n; i++) {
    const bool is_node = fields->items[i].field == PSPLIT_I_GRAPH_NODE;
    const bool is_tensor = j < made->n && made->items[j].field == PSPLIT_I_GRAPH_INITIALIZER;
    const uint32_t m = w.m;
    if (is_node && is_tensor) {
      PSPLIT_TRY(check_moved(&w, gradient, n_initializers));
      j++;
    } else if (same_field(&w, i, j++)) {
      if (is_node) PSPLIT_TRY(check_kept(&w));
      w.n += is_node;
      w.m += is_node;
    } else if (is_node && w.m < w.edited->n_nodes) {
      PSPLIT_TRY(check_edit(&w, gradient));
      j += w.m - m - 1;
    } else {
      PSPLIT_FAIL(PSPLIT_I_DIFFERS(p, "the model that is trained has other parts"));
    }
    n_initializers += is_tensor;
  }
  if (w.mask != table->n_masks)
    PSPLIT_FAIL(PSPLIT_I_DIFFERS(p, "the manifest lists mask \"%s\", which nothing reads",
                                 table->masks[w.mask].tensor));
out:
  return code;
}
