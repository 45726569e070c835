/* Losses: nodes at the model's end. */
#include "loss.h"

#include <inttypes.h>

#include "backward.h"
#include "loss_text.h"
#include "onnx_fields.h"

enum {
  FIRST_OPSET_WITH_BROADCAST = 7,
  FIRST_OPSET_WITH_WHERE = 9,
  FIRST_OPSET_WITH_LOSSES = 12,
};

typedef struct loss {
  const psplit_i_shapes *shapes;
  const psplit_i_graph *graph;
  psplit_i_arena *arena;
  psplit_diag *diag;
  psplit_i_text *fields;
  psplit_i_loss_text is; /* its prediction is a value's name, once there is one */
  uint32_t value;        /* of the prediction */
  const psplit_i_vtype *type;
  int32_t elem; /* that the loss is computed in */
  uint32_t n_named;
} loss;

/* A name that no value has. */
static const char *fresh(loss *l, const char *stem) {
  psplit_i_text text = {0};
  char *name = NULL;
  do {
    text.n = 0;
    psplit_i_text_puts(&text, stem);
    if (l->n_named) psplit_i_text_addf(&text, ".%" PRIu32, l->n_named);
    l->n_named++;
  } while (!text.failed && psplit_i_graph_find_value(l->graph, text.bytes) != PSPLIT_NONE);
  if (!text.failed) name = psplit_i_arena_strndup(l->arena, text.bytes, text.n);
  psplit_i_text_fini(&text);
  if (!name) l->fields->failed = true;
  return name ? name : "";
}

/* Which outputs there are to choose from: what a loss is made of is of floating point. */
static psplit_code one_of_outputs(loss *l) {
  enum { MOST = 8 };
  const psplit_i_graph *graph = l->graph;
  psplit_i_text why = {0};
  uint32_t n = 0;
  psplit_i_text_puts(&why, "the model has several outputs, so it has to say which one");
  for (uint32_t o = 0; o < graph->n_outputs; o++) {
    const uint32_t value = graph->outputs[o];
    if (!psplit_i_is_float(psplit_i_shapes_type(l->shapes, value)->elem) || ++n > MOST) continue;
    psplit_i_text_addf(&why, "%s%.100s", n == 1 ? ", of " : ", ", graph->values[value].name);
  }
  if (n > MOST) psplit_i_text_addf(&why, " and %" PRIu32 " more", n - MOST);
  const psplit_code code =
    why.failed ? psplit_i_nomem(l->diag) : psplit_i_choice_fail(&l->is.choice, why.bytes);
  psplit_i_text_fini(&why);
  return code;
}

static psplit_code find_prediction(loss *l, const char *text) {
  if (*l->is.prediction) {
    l->value = psplit_i_graph_find_value(l->graph, l->is.prediction);
    if (l->value == PSPLIT_NONE)
      return psplit_i_graph_fail_unknown(l->graph, NULL, l->is.prediction, l->diag,
                                         "loss \"%s\": the model has no value \"%s\"", text,
                                         l->is.prediction);
  } else {
    if (l->graph->n_outputs != 1) return one_of_outputs(l);
    l->value = l->graph->outputs[0];
    l->is.prediction = l->graph->values[l->value].name;
  }
  l->type = psplit_i_shapes_type(l->shapes, l->value);
  if (!psplit_i_is_float(l->type->elem))
    return psplit_i_fail(l->diag, PSPLIT_USAGE,
                         "loss \"%s\": \"%s\" is not a floating-point tensor", text,
                         l->is.prediction);
  return PSPLIT_OK;
}

/* Labels or targets that are values of the model are of a type that the loss takes. */
static psplit_code check_target(loss *l, const char *text, bool classes) {
  const uint32_t value = psplit_i_graph_find_value(l->graph, l->is.target);
  const int32_t elem = value == PSPLIT_NONE ? 0 : psplit_i_shapes_type(l->shapes, value)->elem;
  if (!elem || !psplit_i_dtype_name(elem)) return PSPLIT_OK;
  if (classes ? elem == PSPLIT_ELEM_INT32 || elem == PSPLIT_ELEM_INT64
              : elem == l->elem || (psplit_i_is_half(elem) && l->elem == PSPLIT_ELEM_FLOAT))
    return PSPLIT_OK;
  return psplit_i_fail(l->diag, PSPLIT_USAGE,
                       "loss \"%s\": \"%s\" is %s in the model, and %s are needed; a name that the "
                       "model does not have makes an input",
                       text, l->is.target, psplit_i_dtype_name(elem),
                       classes ? "labels of int64 or int32" : psplit_i_dtype_name(l->elem));
}

/* The input for labels or targets, unless a value has its name: of the prediction's shape, without
 * axis `skip` where that is not negative. */
static void add_target(loss *l, int32_t elem, int32_t skip) {
  psplit_i_emit_dim dims[PSPLIT_MAX_RANK];
  int32_t rank = 0;
  if (psplit_i_graph_find_value(l->graph, l->is.target) != PSPLIT_NONE) return;
  for (int32_t i = 0; i < l->type->rank; i++)
    if (i != skip) dims[rank++] = psplit_i_shapes_emit_dim(l->shapes, l->type->dims[i]);
  psplit_i_put_value(l->fields, PSPLIT_I_GRAPH_INPUT, l->is.target, elem, rank,
                     l->type->rank < 0 ? NULL : dims);
}

static void put(loss *l, const char *op_type, const char *a, const char *b, const char *y,
                const psplit_i_text *attributes) {
  const char *const inputs[] = {a, b, NULL}, *const outputs[] = {y, NULL};
  psplit_i_put_node(l->fields, op_type, y, inputs, outputs, attributes);
}

/* A node with one attribute, a list of integers where n is not 0. */
static void put_with(loss *l, const char *op_type, const char *a, const char *y, const char *name,
                     const int64_t *values, size_t n) {
  psplit_i_text attributes = {0};
  if (n)
    psplit_i_put_attr_ints(&attributes, name, values, n);
  else
    psplit_i_put_attr_int(&attributes, name, *values);
  put(l, op_type, a, NULL, y, &attributes);
  if (attributes.failed) l->fields->failed = true;
  psplit_i_text_fini(&attributes);
}

static const char *cast_to(loss *l, const char *name, int32_t elem, const char *called) {
  const char *y = fresh(l, called);
  const int64_t to = elem;
  put_with(l, "Cast", name, y, "to", &to, 0);
  return y;
}

/* What is of half precision as float32: sums over a batch are beyond it, and so is a loss that is
 * told to many digits. */
static const char *widened(loss *l, const char *name, int32_t elem) {
  return psplit_i_is_half(elem) ? cast_to(l, name, PSPLIT_ELEM_FLOAT, "loss.wide") : name;
}

/* The target as it is computed with: a value of the model may be of half precision, too. */
static const char *target_of(loss *l) {
  const uint32_t value = psplit_i_graph_find_value(l->graph, l->is.target);
  return value == PSPLIT_NONE
           ? l->is.target
           : widened(l, l->is.target, psplit_i_shapes_type(l->shapes, value)->elem);
}

static void put_mean(loss *l, const char *a, const char *y) {
  const int64_t no = 0;
  put_with(l, "ReduceMean", a, y, "keepdims", &no, 0);
}

/* Of the classes, counted from the front. */
static psplit_code find_axis(loss *l, const char *text, int32_t *out) {
  const int32_t rank = l->type->rank;
  const int64_t axis = l->is.axis < 0 ? l->is.axis + rank : l->is.axis;
  if (rank < 2)
    return psplit_i_fail(l->diag, PSPLIT_USAGE, "loss \"%s\": %s \"%s\" %s", text,
                         rank < 0 ? "the rank of" : "the logits", l->is.prediction,
                         rank < 0 ? "is not known" : "have no axis of classes");
  if (axis < 1 || axis >= rank)
    return psplit_i_choice_fail(&l->is.choice, "its axis is out of range");
  *out = (int32_t)axis;
  return PSPLIT_OK;
}

/* The classes on axis 1, as the operator has them. */
static psplit_code classes_second(loss *l, const char *text, const char **out, int32_t *out_axis) {
  int64_t perm[PSPLIT_MAX_RANK];
  psplit_code code = PSPLIT_OK;
  *out = l->is.prediction;
  *out_axis = 1;
  if (l->is.axis != 1) PSPLIT_TRY(find_axis(l, text, out_axis));
  if (*out_axis == 1) return PSPLIT_OK;
  int32_t n = 0;
  perm[n++] = 0;
  perm[n++] = *out_axis;
  for (int32_t i = 1; i < l->type->rank; i++)
    if (i != *out_axis) perm[n++] = i;
  *out = fresh(l, "loss.logits");
  put_with(l, "Transpose", l->is.prediction, *out, "perm", perm, (size_t)n);
out:
  return code;
}

static int64_t standard_opset(const loss *l) {
  for (uint32_t n = 0; n < l->graph->n_nodes; n++)
    if (!*l->graph->nodes[n].domain) return l->graph->nodes[n].opset;
  return FIRST_OPSET_WITH_LOSSES;
}

/* A scalar where n is 1, a list where it is more; data NULL: out of memory. */
static const char *constant(loss *l, const char *called, int32_t elem, int64_t n, const void *data,
                            size_t bytes) {
  const char *y = fresh(l, called);
  psplit_i_text attributes = {0};
  if (data) psplit_i_put_attr_tensor(&attributes, "value", elem, n > 1, &n, data, bytes);
  put(l, "Constant", NULL, NULL, y, &attributes);
  if (attributes.failed || !data) l->fields->failed = true;
  psplit_i_text_fini(&attributes);
  return y;
}

/* Whole numbers of the labels' type: `first` where n is 1, 0..n-1 where it is more. */
static const char *whole_numbers(loss *l, int32_t elem, int64_t first, int64_t n) {
  const bool narrow = elem == PSPLIT_ELEM_INT32;
  const size_t size = narrow ? sizeof(int32_t) : sizeof(int64_t);
  void *numbers = psplit_i_arena_array(l->arena, (size_t)n, size);
  for (int64_t i = 0; numbers && i < n; i++) {
    if (narrow)
      ((int32_t *)numbers)[i] = (int32_t)(first + i);
    else
      ((int64_t *)numbers)[i] = first + i;
  }
  return constant(l, "loss.numbers", elem, n, numbers, (size_t)n * size);
}

/* 0 of the loss's type. */
static const char *zero(loss *l) {
  static const double nothing = 0;
  return constant(l, "loss.zero", l->elem, 1, &nothing,
                  l->elem == PSPLIT_ELEM_DOUBLE ? sizeof(double) : sizeof(float));
}

/* Logarithms of probabilities with the classes on the last axis, where LogSoftmax of these opsets
 * has them. */
static const char *log_probabilities(loss *l, int32_t axis) {
  int64_t perm[PSPLIT_MAX_RANK];
  const int32_t rank = l->type->rank;
  const char *logits = l->is.prediction, *y = fresh(l, "loss.log");
  const int64_t last = rank - 1;
  int32_t n = 0;
  for (int32_t i = 0; i < rank; i++)
    if (i != axis) perm[n++] = i;
  perm[n] = axis;
  if (axis != last) {
    logits = fresh(l, "loss.logits");
    put_with(l, "Transpose", l->is.prediction, logits, "perm", perm, (size_t)rank);
  }
  put_with(l, "LogSoftmax", logits, y, "axis", &last, 0);
  return y;
}

/* SoftmaxCrossEntropyLoss in operators that there were before it. */
static void old_cross_entropy(loss *l, int32_t axis, int64_t n_classes, const char *y) {
  const int64_t last = l->type->rank - 1;
  const uint32_t value = psplit_i_graph_find_value(l->graph, l->is.target);
  const int32_t given = value == PSPLIT_NONE ? 0 : psplit_i_shapes_type(l->shapes, value)->elem;
  const int32_t elem = given == PSPLIT_ELEM_INT32 ? given : PSPLIT_ELEM_INT64;
  const char *logs = log_probabilities(l, axis);
  const char *column = fresh(l, "loss.column"), *is_class = fresh(l, "loss.class"),
             *picked = fresh(l, "loss.picked"), *each = fresh(l, "loss.each"),
             *mean = fresh(l, "loss.mean");
  psplit_i_text sum = {0};
  add_target(l, PSPLIT_ELEM_INT64, axis);
  put_with(l, "Unsqueeze", l->is.target, column, "axes", &last, 1);
  put(l, "Equal", column, whole_numbers(l, elem, 0, n_classes), is_class, NULL);
  /* What is not picked may be infinite, and has no part in it. */
  if (standard_opset(l) < FIRST_OPSET_WITH_WHERE) {
    put(l, "Mul", logs, cast_to(l, is_class, l->elem, "loss.cast"), picked, NULL);
  } else {
    const char *const inputs[] = {is_class, logs, zero(l), NULL}, *const outputs[] = {picked, NULL};
    psplit_i_put_node(l->fields, "Where", picked, inputs, outputs, NULL);
  }
  psplit_i_put_attr_ints(&sum, "axes", &last, 1);
  psplit_i_put_attr_int(&sum, "keepdims", 0);
  put(l, "ReduceSum", picked, NULL, each, &sum);
  if (sum.failed) l->fields->failed = true;
  psplit_i_text_fini(&sum);
  if (l->is.has_ignore) {
    const char *ignored = fresh(l, "loss.ignored"), *counts = fresh(l, "loss.counts"),
               *counted = fresh(l, "loss.counted"), *total = fresh(l, "loss.total"),
               *number = fresh(l, "loss.number");
    const int64_t no = 0;
    put(l, "Equal", l->is.target, whole_numbers(l, elem, l->is.ignore, 1), ignored, NULL);
    put(l, "Not", ignored, NULL, counts, NULL);
    const char *weights = cast_to(l, counts, l->elem, "loss.cast");
    put(l, "Mul", each, weights, counted, NULL);
    put_with(l, "ReduceSum", counted, total, "keepdims", &no, 0);
    put_with(l, "ReduceSum", weights, number, "keepdims", &no, 0);
    put(l, "Div", total, number, mean, NULL);
  } else {
    put_mean(l, each, mean);
  }
  put(l, "Neg", mean, NULL, y, NULL);
}

/* What the operators of old opsets need to be known. */
static psplit_code check_old(loss *l, const char *text, int32_t *out_axis, int64_t *out_classes) {
  const int64_t opset = standard_opset(l);
  psplit_code code = PSPLIT_OK;
  *out_axis = 0;
  *out_classes = 0;
  if (opset < FIRST_OPSET_WITH_BROADCAST)
    PSPLIT_FAIL(
      psplit_i_fail(l->diag, PSPLIT_UNSUPPORTED,
                    "softmax-cross-entropy needs a model of opset %d or later, this one has "
                    "%" PRId64 "; convert_version(model, %d) of onnx.version_converter, in "
                    "Python, converts it",
                    FIRST_OPSET_WITH_BROADCAST, opset, FIRST_OPSET_WITH_LOSSES));
  PSPLIT_TRY(find_axis(l, text, out_axis));
  const psplit_i_emit_dim classes = psplit_i_shapes_emit_dim(l->shapes, l->type->dims[*out_axis]);
  *out_classes = classes.value;
  if (!classes.symbol && classes.value > 1) return PSPLIT_OK;
  PSPLIT_FAIL(
    psplit_i_fail(l->diag, PSPLIT_UNSUPPORTED,
                  "softmax-cross-entropy in a model of opset %" PRId64
                  " needs the number of classes, two or more, as the size of axis %" PRId32
                  " of \"%s\"; from opset %d on it does not",
                  opset, *out_axis, l->is.prediction, FIRST_OPSET_WITH_LOSSES));
out:
  return code;
}

static psplit_code cross_entropy(loss *l, const char *text, const char *y) {
  psplit_code code;
  const char *logits;
  int32_t axis;
  int64_t n_classes;
  psplit_i_text attributes = {0};
  if (standard_opset(l) < FIRST_OPSET_WITH_LOSSES) {
    PSPLIT_TRY(check_old(l, text, &axis, &n_classes));
    old_cross_entropy(l, axis, n_classes, y);
    return PSPLIT_OK;
  }
  PSPLIT_TRY(classes_second(l, text, &logits, &axis));
  add_target(l, PSPLIT_ELEM_INT64, axis);
  psplit_i_put_attr_text(&attributes, "reduction", "mean");
  if (l->is.has_ignore) psplit_i_put_attr_int(&attributes, "ignore_index", l->is.ignore);
  put(l, "SoftmaxCrossEntropyLoss", logits, l->is.target, y, &attributes);
  if (attributes.failed) l->fields->failed = true;
out:
  psplit_i_text_fini(&attributes);
  return code;
}

static void squared_error(loss *l, const char *y) {
  const char *difference = fresh(l, "loss.difference"), *square = fresh(l, "loss.square");
  add_target(l, l->elem, -1);
  put(l, "Sub", l->is.prediction, target_of(l), difference, NULL);
  put(l, "Mul", difference, difference, square, NULL);
  put_mean(l, square, y);
}

/* softplus(x) - x t */
static void binary_cross_entropy(loss *l, const char *y) {
  const char *softplus = fresh(l, "loss.softplus"), *part = fresh(l, "loss.product"),
             *each = fresh(l, "loss.each");
  add_target(l, l->elem, -1);
  put(l, "Softplus", l->is.prediction, NULL, softplus, NULL);
  put(l, "Mul", l->is.prediction, target_of(l), part, NULL);
  put(l, "Sub", softplus, part, each, NULL);
  put_mean(l, each, y);
}

/* Frameworks often give [batch, words, classes]. With the words for classes such a model trains as
 * well, for nothing. Images, [batch, classes, rows, columns], have so many classes. */
static void say_axis(const loss *l, const psplit_logger *logger) {
  const psplit_i_vtype *type = l->type;
  if (l->is.has_axis || type->rank < 3) return;
  const bool second = psplit_i_shapes_emit_dim(l->shapes, type->dims[1]).value >= 0;
  const bool last = psplit_i_shapes_emit_dim(l->shapes, type->dims[type->rank - 1]).value >= 0;
  if (type->rank > 3 && (second || !last)) return;
  psplit_i_text text = {0};
  psplit_i_shapes_print(l->shapes, type, &text);
  if (!text.failed)
    psplit_i_say(logger, PSPLIT_WARNING,
                 "the classes of \"%s\", %s, are assumed to be on axis 1; add axis=-1 to the loss "
                 "if they are on the last one, or axis=1 to confirm",
                 l->graph->values[l->value].name, text.bytes);
  psplit_i_text_fini(&text);
}

psplit_code psplit_i_loss_fields(const psplit_i_shapes *shapes, const char *text,
                                 psplit_i_arena *arena, const psplit_logger *logger,
                                 psplit_diag *diag, psplit_i_text *out_fields,
                                 const char **out_loss) {
  psplit_code code;
  loss l = {.shapes = shapes,
            .graph = psplit_i_shapes_graph(shapes),
            .arena = arena,
            .diag = diag,
            .fields = out_fields};
  PSPLIT_TRY(psplit_i_loss_text_read(text, arena, diag, &l.is));
  PSPLIT_TRY(find_prediction(&l, text));
  const char *y = fresh(&l, "loss");
  l.is.prediction = widened(&l, l.is.prediction, l.type->elem);
  l.elem = psplit_i_is_half(l.type->elem) ? PSPLIT_ELEM_FLOAT : l.type->elem;
  const bool classes = l.is.method == PSPLIT_I_CROSS_ENTROPY;
  PSPLIT_TRY(check_target(&l, text, classes));
  if (classes) say_axis(&l, logger);
  if (classes)
    PSPLIT_TRY(cross_entropy(&l, text, y));
  else if (l.is.method == PSPLIT_I_SQUARED_ERROR)
    squared_error(&l, y);
  else
    binary_cross_entropy(&l, y);
  const psplit_i_emit_dim none = {0};
  psplit_i_put_value(out_fields, PSPLIT_I_GRAPH_OUTPUT, y, l.elem, 0, &none);
  if (out_fields->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_loss = y;
out:
  return code;
}
