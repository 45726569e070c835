#include "draws.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backward.h"
#include "constants.h"
#include "onnx.pb-c.h"
#include "onnx_fields.h"
#include "operator.h"

enum {
  FIRST_OPSET_WITHOUT_IS_TEST = 7,
  FIRST_OPSET_WITH_BROADCAST = 7,
  FIRST_OPSET_WITH_WHERE = 9,
  FIRST_OPSET_WITH_MODE = 12,
  RATIO_INPUT = 1,
  MODE_INPUT = 2
};

/* One operator on its way. */
typedef struct editor {
  const psplit_i_shapes *shapes;
  const psplit_i_graph *graph;
  psplit_i_arena *arena;
  psplit_diag *diag;
  psplit_i_text *inputs;
  psplit_i_draws *out;
  psplit_i_intern told; /* symbols that the model's inputs tell the sizes of */
  psplit_i_text fields; /* in place of the node */
  uint32_t place;
  const psplit_i_node *node;
  const char *y; /* its result */
} editor;

static psplit_code refuse(const editor *e, const char *why) {
  char label[128];
  return psplit_i_fail(e->diag, PSPLIT_UNSUPPORTED, "node \"%s\" (%s) draws at random, and %s",
                       psplit_i_node_label(e->graph, e->place, label, sizeof label),
                       e->node->op_type, why);
}

/* ---- nodes ---- */

static const char *fresh(editor *e, const char *what) {
  const char *name = psplit_i_name_beside(e->graph, e->y, what, e->arena);
  if (!name) e->fields.failed = true;
  return name ? name : "";
}

/* The node whose result is the operator's has its name, too. */
static void put(editor *e, const char *op_type, const char *const *inputs, const char *y,
                const psplit_i_text *attributes) {
  const char *const outputs[] = {y, NULL};
  const char *own = *e->node->name ? e->node->name : NULL;
  psplit_i_put_node(&e->fields, op_type, strcmp(y, e->y) == 0 ? own : y, inputs, outputs,
                    attributes);
}

static void put2(editor *e, const char *op_type, const char *a, const char *b, const char *y) {
  put(e, op_type, (const char *const[]){a, b, NULL}, y, NULL);
}

static const char *number(editor *e, const char *what, int32_t elem, double value) {
  const char *name = fresh(e, what);
  psplit_i_text attribute = {0};
  uint8_t bytes[8];
  const size_t n = psplit_i_number_bytes(elem, value, bytes);
  psplit_i_put_attr_tensor(&attribute, "value", elem, 0, NULL, bytes, n);
  put(e, "Constant", (const char *const[]){NULL}, name, &attribute);
  if (attribute.failed) e->fields.failed = true;
  psplit_i_text_fini(&attribute);
  return name;
}

static void put_cast(editor *e, const char *x, int32_t elem, const char *y) {
  psplit_i_text attribute = {0};
  psplit_i_put_attr_int(&attribute, "to", elem);
  put(e, "Cast", (const char *const[]){x, NULL}, y, &attribute);
  if (attribute.failed) e->fields.failed = true;
  psplit_i_text_fini(&attribute);
}

/* ---- sizes ---- */

/* The symbols that an input of the model has for a size. */
static psplit_code list_told(editor *e) {
  const psplit_i_dims *dims = psplit_i_shapes_dims(e->shapes);
  for (uint32_t i = 0; i < e->graph->n_inputs; i++) {
    const uint32_t v = e->graph->inputs[i];
    const psplit_i_vtype *type = psplit_i_shapes_type(e->shapes, v);
    if (e->graph->values[v].initializer != PSPLIT_NONE) continue;
    for (int32_t a = 0; a < type->rank; a++) {
      const char *name = psplit_i_dim_name(dims, type->dims[a]);
      if (name && psplit_i_intern_add(&e->told, name) == PSPLIT_NONE)
        return psplit_i_nomem(e->diag);
    }
  }
  return PSPLIT_OK;
}

static bool is_told_size(const editor *e, psplit_dim size, bool *io_plain) {
  psplit_i_dim_product terms[PSPLIT_DIM_MOST_TERMS];
  const psplit_i_dims *dims = psplit_i_shapes_dims(e->shapes);
  uint32_t n;
  int64_t value;
  if (psplit_i_dim_is_const(dims, size, &value)) return value >= 0;
  if (!psplit_i_dim_products(dims, size, terms, &n)) return false;
  for (uint32_t t = 0; t < n; t++)
    for (uint32_t i = 0; i < terms[t].n_symbols; i++)
      if (psplit_i_intern_find(&e->told, terms[t].symbols[i]) == PSPLIT_NONE) return false;
  if (!psplit_i_dim_name(dims, size)) *io_plain = false;
  return true;
}

static psplit_code check_sizes(const editor *e, const psplit_i_vtype *type, bool *out_plain) {
  psplit_i_text text = {0};
  char why[512];
  *out_plain = true;
  bool known = type->rank >= 0;
  for (int32_t a = 0; a < type->rank && known; a++)
    known = is_told_size(e, type->dims[a], out_plain);
  if (known) return PSPLIT_OK;
  psplit_i_shapes_print(e->shapes, type, &text);
  snprintf(why, sizeof why,
           "its result, %.200s, has sizes that do not follow from symbols of the model's inputs: "
           "name their sizes, or export with fixed ones",
           text.failed ? "" : text.bytes);
  psplit_i_text_fini(&text);
  return refuse(e, why);
}

/* The graph input of what is drawn, of the shape of `value`; its name, or that of the value that it
 * is reshaped to, in *out. */
static psplit_code draw(editor *e, psplit_draw_kind kind, double ratio, uint32_t value,
                        const char **out) {
  psplit_code code;
  const psplit_i_vtype *type = psplit_i_shapes_type(e->shapes, value);
  const char *like = e->graph->values[value].name;
  const char *const input = fresh(e, kind == PSPLIT_DRAW_KEEP ? "mask" : "drawn");
  char label[128];
  psplit_i_vtype drawn = *type;
  bool plain;
  PSPLIT_TRY(check_sizes(e, type, &plain));
  drawn.elem = kind == PSPLIT_DRAW_KEEP ? PSPLIT_ELEM_BOOL : PSPLIT_ELEM_FLOAT;
  psplit_i_put_typed_value(e->inputs, PSPLIT_I_GRAPH_INPUT, input, e->shapes, &drawn);
  const char *node = psplit_i_node_label(e->graph, e->place, label, sizeof label);
  const psplit_i_draw entry = {.kind = kind,
                               .place = e->place,
                               .input = input,
                               .node = psplit_i_arena_strndup(e->arena, node, strlen(node)),
                               .like = like,
                               .ratio = ratio};
  if (!entry.node || !psplit_i_vec_push(e->out, entry)) PSPLIT_FAIL(psplit_i_nomem(e->diag));
  *out = input;
  if (plain) return PSPLIT_OK;
  const char *shape = fresh(e, "shape");
  *out = fresh(e, "shaped");
  put(e, "Shape", (const char *const[]){like, NULL}, shape, NULL);
  put2(e, "Reshape", input, shape, *out);
out:
  return code;
}

/* ---- Dropout ---- */

typedef enum dropout_mode { DROPOUT_KEEPS, DROPOUT_DROPS, DROPOUT_ASKS } dropout_mode;

static bool is_given(const psplit_i_node *node, uint32_t input) {
  return input < node->n_inputs && node->inputs[input] != PSPLIT_NONE;
}

/* What a node does as it is. ASKS: an input that is not known says. */
static psplit_code mode_of(const psplit_i_shapes *shapes, const psplit_i_node *node,
                           psplit_diag *diag, dropout_mode *out) {
  int64_t is_test = 0;
  bool known;
  double mode = 0;
  *out = DROPOUT_KEEPS;
  if (node->opset < FIRST_OPSET_WITHOUT_IS_TEST) {
    psplit_i_attr_int(node, "is_test", &is_test);
    if (!is_test) *out = DROPOUT_DROPS;
    return PSPLIT_OK;
  }
  if (node->opset < FIRST_OPSET_WITH_MODE || !is_given(node, MODE_INPUT)) return PSPLIT_OK;
  const psplit_code code =
    psplit_i_constant_number(shapes, node->inputs[MODE_INPUT], diag, &known, &mode);
  *out = !known ? DROPOUT_ASKS : mode != 0 ? DROPOUT_DROPS : DROPOUT_KEEPS;
  return code;
}

static psplit_code ratio_of(const psplit_i_shapes *shapes, const psplit_i_node *node,
                            psplit_diag *diag, bool *out_known, double *out) {
  float attribute = 0.5F;
  *out_known = true;
  if (node->opset < FIRST_OPSET_WITH_MODE) psplit_i_attr_float(node, "ratio", &attribute);
  *out = (double)attribute;
  if (node->opset < FIRST_OPSET_WITH_MODE || !is_given(node, RATIO_INPUT)) return PSPLIT_OK;
  return psplit_i_constant_number(shapes, node->inputs[RATIO_INPUT], diag, out_known, out);
}

psplit_code psplit_i_dropout_keeps(const psplit_i_shapes *shapes, const psplit_i_node *node,
                                   psplit_diag *diag, bool *out) {
  psplit_code code;
  dropout_mode mode;
  bool known;
  double ratio;
  PSPLIT_TRY(mode_of(shapes, node, diag, &mode));
  PSPLIT_TRY(ratio_of(shapes, node, diag, &known, &ratio));
  *out = mode == DROPOUT_KEEPS || (known && ratio == 0);
out:
  return code;
}

/* The same node for inference: it may keep its ratio. */
static psplit_code freeze(editor *e) {
  psplit_code code;
  const Onnx__NodeProto *proto;
  PSPLIT_TRY(psplit_i_node_unpack(e->graph, e->place, e->arena, e->diag, &proto));
  Onnx__NodeProto edited = *proto;
  if (e->node->opset < FIRST_OPSET_WITHOUT_IS_TEST)
    return refuse(e, "opset 7 and later say otherwise: convert the model");
  if (edited.n_input > MODE_INPUT) edited.n_input = MODE_INPUT;
  while (edited.n_input > 1 && !*edited.input[edited.n_input - 1]) edited.n_input--;
  PSPLIT_TRY(psplit_i_pack_node(&edited, &e->fields, e->diag));
out:
  return code;
}

static psplit_code mask(editor *e) {
  psplit_code code;
  const uint32_t x = e->node->inputs[0];
  const int32_t elem = psplit_i_shapes_type(e->shapes, x)->elem;
  const char *keep;
  bool known;
  double ratio;
  PSPLIT_TRY(ratio_of(e->shapes, e->node, e->diag, &known, &ratio));
  if (!known) PSPLIT_FAIL(refuse(e, "its ratio is not a constant"));
  if (ratio == 0) return PSPLIT_OK;
  if (!(ratio > 0 && ratio < 1)) PSPLIT_FAIL(refuse(e, "its ratio is not in [0, 1)"));
  if (e->node->opset < FIRST_OPSET_WITH_WHERE)
    PSPLIT_FAIL(refuse(e, "no operator before opset 9 takes a mask: convert the model"));
  if (elem == 0) PSPLIT_FAIL(refuse(e, "its element type is not known: declare it in value_info"));
  PSPLIT_TRY(draw(e, PSPLIT_DRAW_KEEP, ratio, x, &keep));
  const char *scale = number(e, "scale", elem, 1 / (1 - ratio)), *zero = number(e, "zero", elem, 0);
  const char *scaled = fresh(e, "scaled");
  put2(e, "Mul", e->graph->values[x].name, scale, scaled);
  put(e, "Where", (const char *const[]){keep, scaled, zero, NULL}, e->y, NULL);
  if (e->node->n_outputs > 1 && e->node->outputs[1] != PSPLIT_NONE)
    put(e, "Identity", (const char *const[]){keep, NULL},
        e->graph->values[e->node->outputs[1]].name, NULL);
out:
  return code;
}

static psplit_code edit_dropout(editor *e, psplit_dropout how) {
  psplit_code code;
  dropout_mode mode;
  PSPLIT_TRY(mode_of(e->shapes, e->node, e->diag, &mode));
  if (how == PSPLIT_DROPOUT_FROZEN) return mode == DROPOUT_KEEPS ? PSPLIT_OK : freeze(e);
  if (how == PSPLIT_DROPOUT_TRAIN || mode == DROPOUT_DROPS) return mask(e);
out:
  return code;
}

/* ---- other operators ---- */

/* Of floating-point numbers to the result's type. */
static void put_typed(editor *e, const char *op_type, const char *a, const char *b) {
  const int32_t elem = psplit_i_shapes_type(e->shapes, e->node->outputs[0])->elem;
  if (elem == PSPLIT_ELEM_FLOAT && strcmp(op_type, "Less") != 0) {
    put2(e, op_type, a, b, e->y);
    return;
  }
  const char *before = fresh(e, "untyped");
  put2(e, op_type, a, b, before);
  put_cast(e, before, elem, e->y);
}

/* drawn * factor + term */
static psplit_code edit_scaled(editor *e, psplit_draw_kind kind, double factor, double term) {
  psplit_code code;
  const bool is_like = e->node->n_inputs > 0;
  const char *drawn;
  if (e->node->opset < FIRST_OPSET_WITH_BROADCAST)
    PSPLIT_FAIL(refuse(e, "operators before opset 7 do not broadcast: convert the model"));
  PSPLIT_TRY(draw(e, kind, 0, is_like ? e->node->inputs[0] : e->node->outputs[0], &drawn));
  const char *scale = number(e, "scale", PSPLIT_ELEM_FLOAT, factor);
  const char *shift = number(e, "shift", PSPLIT_ELEM_FLOAT, term);
  const char *scaled = fresh(e, "scaled");
  put2(e, "Mul", drawn, scale, scaled);
  put_typed(e, "Add", scaled, shift);
out:
  return code;
}

static psplit_code edit_uniform(editor *e) {
  float low = 0, high = 1;
  psplit_i_attr_float(e->node, "low", &low);
  psplit_i_attr_float(e->node, "high", &high);
  return edit_scaled(e, PSPLIT_DRAW_UNIFORM, (double)high - (double)low, (double)low);
}

static psplit_code edit_normal(editor *e) {
  float mean = 0, scale = 1;
  psplit_i_attr_float(e->node, "mean", &mean);
  psplit_i_attr_float(e->node, "scale", &scale);
  return edit_scaled(e, PSPLIT_DRAW_NORMAL, (double)scale, (double)mean);
}

static psplit_code edit_bernoulli(editor *e) {
  psplit_code code;
  const uint32_t x = e->node->inputs[0];
  const int32_t elem = psplit_i_shapes_type(e->shapes, x)->elem;
  const char *drawn;
  if (elem == 0) PSPLIT_FAIL(refuse(e, "the element type of its input is not known"));
  PSPLIT_TRY(draw(e, PSPLIT_DRAW_UNIFORM, 0, x, &drawn));
  if (elem != PSPLIT_ELEM_FLOAT) {
    const char *typed = fresh(e, "typed");
    put_cast(e, drawn, elem, typed);
    drawn = typed;
  }
  put_typed(e, "Less", drawn, e->graph->values[x].name);
out:
  return code;
}

/* Leaves e->fields empty where the node stays. */
static psplit_code edit(editor *e, psplit_dropout how) {
  const psplit_i_node *node = e->node;
  if (node->n_outputs == 0 || node->outputs[0] == PSPLIT_NONE) return PSPLIT_OK;
  e->y = e->graph->values[node->outputs[0]].name;
  if (psplit_i_node_is(node, "Dropout"))
    return is_given(node, 0) ? edit_dropout(e, how) : PSPLIT_OK;
  const bool is_like = psplit_i_node_is(node, "RandomUniformLike") ||
                       psplit_i_node_is(node, "RandomNormalLike") ||
                       psplit_i_node_is(node, "Bernoulli");
  if (is_like && !is_given(node, 0)) return PSPLIT_OK;
  if (psplit_i_shapes_type(e->shapes, node->outputs[0])->elem == 0) return PSPLIT_OK;
  if (psplit_i_node_is(node, "Bernoulli")) return edit_bernoulli(e);
  if (psplit_i_node_is(node, "RandomUniformLike") || psplit_i_node_is(node, "RandomUniform"))
    return edit_uniform(e);
  if (psplit_i_node_is(node, "RandomNormalLike") || psplit_i_node_is(node, "RandomNormal"))
    return edit_normal(e);
  return PSPLIT_OK;
}

psplit_code psplit_i_draw_edits(const psplit_i_shapes *shapes, psplit_dropout how,
                                psplit_i_arena *arena, psplit_diag *diag, psplit_i_text *inputs,
                                psplit_i_node_edits *edits, psplit_i_draws *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  editor e = {
    .shapes = shapes, .graph = graph, .arena = arena, .diag = diag, .inputs = inputs, .out = out};
  psplit_i_intern_init(&e.told);
  PSPLIT_TRY(list_told(&e));
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    e.place = n;
    e.node = &graph->nodes[n];
    e.fields.n = 0;
    if (!psplit_i_node_has(e.node, PSPLIT_I_OP_RANDOM)) continue;
    PSPLIT_TRY(edit(&e, how));
    if (e.fields.failed || inputs->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
    if (e.fields.n) PSPLIT_TRY(psplit_i_edits_add(edits, n, &e.fields, arena, diag));
  }
out:
  psplit_i_intern_fini(&e.told);
  psplit_i_text_fini(&e.fields);
  return code;
}

/* ---- what is left ---- */

static psplit_code refuse_node(const psplit_i_shapes *shapes, uint32_t n, psplit_diag *diag) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  const psplit_i_node *node = &graph->nodes[n];
  const bool is_dropout = psplit_i_node_is(node, "Dropout");
  char label[128];
  bool keeps = false;
  if (!psplit_i_node_has(node, PSPLIT_I_OP_RANDOM)) return PSPLIT_OK;
  if (is_dropout) {
    const psplit_code code = psplit_i_dropout_keeps(shapes, node, diag, &keeps);
    if (code != PSPLIT_OK || keeps) return code;
  }
  static const char *const why =
    "the loss depends on node \"%s\" (%s%s%s), which uses the runtime's random generator: no two "
    "runs would train in the same way%s";
  const char *name = psplit_i_node_label(graph, n, label, sizeof label);
  const char *dot = *node->domain ? "." : "";
  if (is_dropout)
    return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(DROPOUT), why, name,
                               node->domain, dot, node->op_type, "");
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, why, name, node->domain, dot, node->op_type,
                       "; make its random numbers an input of the model");
}

psplit_code psplit_i_refuse_draws(const psplit_i_shapes *shapes, uint32_t loss, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  bool *needed = PSPLIT_NEW(&scratch, bool, graph->n_values);
  if (!needed) PSPLIT_FAIL(psplit_i_nomem(diag));
  needed[loss] = true;
  for (uint32_t t = graph->n_nodes; t-- > 0;) {
    const psplit_i_node *node = &graph->nodes[graph->topo[t]];
    bool is_needed = false;
    for (uint32_t o = 0; o < node->n_outputs; o++)
      is_needed |= node->outputs[o] != PSPLIT_NONE && needed[node->outputs[o]];
    if (!is_needed) continue;
    PSPLIT_TRY(refuse_node(shapes, graph->topo[t], diag));
    PSPLIT_FOR_EACH_READ(node, value) needed[value] = true;
  }
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

psplit_code psplit_i_say_idle_dropouts(const psplit_i_shapes *shapes, const psplit_logger *logger,
                                       psplit_diag *diag) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  uint32_t idle = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    bool keeps;
    if (!psplit_i_node_is(&graph->nodes[n], "Dropout")) continue;
    const psplit_code code = psplit_i_dropout_keeps(shapes, &graph->nodes[n], diag, &keeps);
    if (code != PSPLIT_OK) return code;
    idle += keeps;
  }
  if (idle)
    psplit_i_say(logger, PSPLIT_WARNING,
                 "%" PRIu32 " Dropout node%s pass%s input through unchanged, as for inference",
                 idle, idle == 1 ? "" : "s", idle == 1 ? "es" : "");
  return PSPLIT_OK;
}
