/* Losses: from an option's text to nodes at the model's end. */
#include "loss.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backward.h"
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
  const char *kind, *prediction, *target; /* prediction: "" where left out */
  int64_t ignore, axis;
  bool has_ignore, has_axis;
  uint32_t value; /* of the prediction */
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

static psplit_code bad(loss *l, const char *text, const char *why) {
  return psplit_i_fail(l->diag, PSPLIT_USAGE,
                       "loss \"%s\": %s%s it is softmax-cross-entropy:logits=L,labels=Y"
                       "[,ignore=N][,axis=N], mse:prediction=P,target=T or "
                       "bce-with-logits:logits=L,labels=Y",
                       text, why, why[strlen(why) - 1] == '?' ? "" : ";");
}

/* The same of a word that was meant for one of `words`. */
static psplit_code unknown(loss *l, const char *text, const char *why, const char *word,
                           const char *const *words, uint32_t n) {
  char line[256];
  const uint32_t near = psplit_i_nearest(word, words, n);
  if (near == PSPLIT_NONE) return bad(l, text, why);
  snprintf(line, sizeof line, "%s, did you mean %s?", why, words[near]);
  return bad(l, text, line);
}

static psplit_code parse_entry(loss *l, const char *text, const char *key, const char *value) {
  char *end;
  const bool number = strcmp(key, "ignore") == 0 || strcmp(key, "axis") == 0;
  errno = 0;
  const int64_t n = number ? strtoll(value, &end, 10) : 0;
  if (number && (!*value || *end)) return bad(l, text, "not a whole number");
  if (number && errno == ERANGE) return bad(l, text, "a number beyond 64 bits");
  if (strcmp(key, "logits") == 0 || strcmp(key, "prediction") == 0) {
    l->prediction = value;
  } else if (strcmp(key, "labels") == 0 || strcmp(key, "target") == 0) {
    l->target = value;
  } else if (strcmp(key, "ignore") == 0) {
    l->ignore = n;
    l->has_ignore = true;
  } else if (strcmp(key, "axis") == 0) {
    l->axis = n;
    l->has_axis = true;
  } else {
    static const char *const KEYS[] = {"logits", "prediction", "labels",
                                       "target", "ignore",     "axis"};
    return unknown(l, text, "an entry that it does not have", key, KEYS, 6);
  }
  return PSPLIT_OK;
}

/* "kind:key=value,key=value"; names with a comma cannot be said. */
static psplit_code parse(loss *l, const char *text) {
  static const char *const KINDS[] = {"softmax-cross-entropy", "mse", "bce-with-logits"};
  psplit_code code = PSPLIT_OK;
  char *copy = psplit_i_arena_strndup(l->arena, text, strlen(text));
  if (!copy) return psplit_i_nomem(l->diag);
  l->kind = copy;
  l->prediction = "";
  l->target = NULL;
  l->axis = 1;
  char *rest = strchr(copy, ':');
  if (rest) *rest++ = '\0';
  while (rest && *rest) {
    char *entry = rest;
    rest = strchr(entry, ',');
    if (rest) *rest++ = '\0';
    char *value = strchr(entry, '=');
    if (!value) return bad(l, text, "an entry without a value");
    *value++ = '\0';
    PSPLIT_TRY(parse_entry(l, text, entry, value));
  }
  const bool classes = strcmp(l->kind, "softmax-cross-entropy") == 0;
  if (!classes && strcmp(l->kind, "mse") != 0 && strcmp(l->kind, "bce-with-logits") != 0)
    return unknown(l, text, "no such loss", l->kind, KINDS, 3);
  if (!classes && (l->has_ignore || l->has_axis))
    return bad(l, text, "an entry that it does not have");
  if (!l->target) l->target = strcmp(l->kind, "mse") == 0 ? "target" : "labels";
out:
  return code;
}

/* Which outputs there are to choose from: what a loss is made of is of floating point. */
static psplit_code one_of_outputs(loss *l, const char *text) {
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
  const psplit_code code = why.failed ? psplit_i_nomem(l->diag) : bad(l, text, why.bytes);
  psplit_i_text_fini(&why);
  return code;
}

static psplit_code find_prediction(loss *l, const char *text) {
  if (*l->prediction) {
    l->value = psplit_i_graph_find_value(l->graph, l->prediction);
    if (l->value == PSPLIT_NONE)
      return psplit_i_graph_fail_unknown(l->graph, NULL, l->prediction, l->diag,
                                         "loss \"%s\": the model has no value \"%s\"", text,
                                         l->prediction);
  } else {
    if (l->graph->n_outputs != 1) return one_of_outputs(l, text);
    l->value = l->graph->outputs[0];
    l->prediction = l->graph->values[l->value].name;
  }
  l->type = psplit_i_shapes_type(l->shapes, l->value);
  if (!psplit_i_is_float(l->type->elem))
    return psplit_i_fail(l->diag, PSPLIT_USAGE, "loss \"%s\": \"%s\" is no floating-point tensor",
                         text, l->prediction);
  return PSPLIT_OK;
}

/* Labels or targets that are values of the model are of a type that the loss takes. */
static psplit_code check_target(loss *l, const char *text, bool classes) {
  const uint32_t value = psplit_i_graph_find_value(l->graph, l->target);
  const int32_t elem = value == PSPLIT_NONE ? 0 : psplit_i_shapes_type(l->shapes, value)->elem;
  if (!elem || !psplit_i_dtype_name(elem)) return PSPLIT_OK;
  if (classes ? elem == PSPLIT_ELEM_INT32 || elem == PSPLIT_ELEM_INT64
              : elem == l->elem || (psplit_i_is_half(elem) && l->elem == PSPLIT_ELEM_FLOAT))
    return PSPLIT_OK;
  return psplit_i_fail(l->diag, PSPLIT_USAGE,
                       "loss \"%s\": \"%s\" is %s in the model, and %s are needed; a name that the "
                       "model does not have makes an input",
                       text, l->target, psplit_i_dtype_name(elem),
                       classes ? "labels of int64 or int32" : psplit_i_dtype_name(l->elem));
}

/* The input for labels or targets, unless a value has its name: of the prediction's shape, without
 * axis `skip` where that is not negative. */
static void add_target(loss *l, int32_t elem, int32_t skip) {
  psplit_i_emit_dim dims[PSPLIT_MAX_RANK];
  int32_t rank = 0;
  if (psplit_i_graph_find_value(l->graph, l->target) != PSPLIT_NONE) return;
  for (int32_t i = 0; i < l->type->rank; i++)
    if (i != skip) dims[rank++] = psplit_i_shapes_emit_dim(l->shapes, l->type->dims[i]);
  psplit_i_put_value(l->fields, PSPLIT_I_GRAPH_INPUT, l->target, elem, rank,
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
  const uint32_t value = psplit_i_graph_find_value(l->graph, l->target);
  return value == PSPLIT_NONE ? l->target
                              : widened(l, l->target, psplit_i_shapes_type(l->shapes, value)->elem);
}

static void put_mean(loss *l, const char *a, const char *y) {
  const int64_t no = 0;
  put_with(l, "ReduceMean", a, y, "keepdims", &no, 0);
}

/* Of the classes, counted from the front. */
static psplit_code find_axis(loss *l, const char *text, int32_t *out) {
  const int32_t rank = l->type->rank;
  const int64_t axis = l->axis < 0 ? l->axis + rank : l->axis;
  if (rank < 2)
    return psplit_i_fail(l->diag, PSPLIT_USAGE, "loss \"%s\": %s \"%s\" %s", text,
                         rank < 0 ? "the rank of" : "the logits", l->prediction,
                         rank < 0 ? "is not known" : "have no axis of classes");
  if (axis < 1 || axis >= rank) return bad(l, text, "its axis is out of range");
  *out = (int32_t)axis;
  return PSPLIT_OK;
}

/* The classes on axis 1, as the operator has them. */
static psplit_code classes_second(loss *l, const char *text, const char **out, int32_t *out_axis) {
  int64_t perm[PSPLIT_MAX_RANK];
  psplit_code code = PSPLIT_OK;
  *out = l->prediction;
  *out_axis = 1;
  if (l->axis != 1) PSPLIT_TRY(find_axis(l, text, out_axis));
  if (*out_axis == 1) return PSPLIT_OK;
  int32_t n = 0;
  perm[n++] = 0;
  perm[n++] = *out_axis;
  for (int32_t i = 1; i < l->type->rank; i++)
    if (i != *out_axis) perm[n++] = i;
  *out = fresh(l, "loss.logits");
  put_with(l, "Transpose", l->prediction, *out, "perm", perm, (size_t)n);
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
  const char *logits = l->prediction, *y = fresh(l, "loss.log");
  const int64_t last = rank - 1;
  int32_t n = 0;
  for (int32_t i = 0; i < rank; i++)
    if (i != axis) perm[n++] = i;
  perm[n] = axis;
  if (axis != last) {
    logits = fresh(l, "loss.logits");
    put_with(l, "Transpose", l->prediction, logits, "perm", perm, (size_t)rank);
  }
  put_with(l, "LogSoftmax", logits, y, "axis", &last, 0);
  return y;
}

/* SoftmaxCrossEntropyLoss in operators that there were before it. */
static void old_cross_entropy(loss *l, int32_t axis, int64_t n_classes, const char *y) {
  const int64_t last = l->type->rank - 1;
  const uint32_t value = psplit_i_graph_find_value(l->graph, l->target);
  const int32_t given = value == PSPLIT_NONE ? 0 : psplit_i_shapes_type(l->shapes, value)->elem;
  const int32_t elem = given == PSPLIT_ELEM_INT32 ? given : PSPLIT_ELEM_INT64;
  const char *logs = log_probabilities(l, axis);
  const char *column = fresh(l, "loss.column"), *is_class = fresh(l, "loss.class"),
             *picked = fresh(l, "loss.picked"), *each = fresh(l, "loss.each"),
             *mean = fresh(l, "loss.mean");
  psplit_i_text sum = {0};
  add_target(l, PSPLIT_ELEM_INT64, axis);
  put_with(l, "Unsqueeze", l->target, column, "axes", &last, 1);
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
  if (l->has_ignore) {
    const char *ignored = fresh(l, "loss.ignored"), *counts = fresh(l, "loss.counts"),
               *counted = fresh(l, "loss.counted"), *total = fresh(l, "loss.total"),
               *number = fresh(l, "loss.number");
    const int64_t no = 0;
    put(l, "Equal", l->target, whole_numbers(l, elem, l->ignore, 1), ignored, NULL);
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
                  opset, *out_axis, l->prediction, FIRST_OPSET_WITH_LOSSES));
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
  if (l->has_ignore) psplit_i_put_attr_int(&attributes, "ignore_index", l->ignore);
  put(l, "SoftmaxCrossEntropyLoss", logits, l->target, y, &attributes);
  if (attributes.failed) l->fields->failed = true;
out:
  psplit_i_text_fini(&attributes);
  return code;
}

static void squared_error(loss *l, const char *y) {
  const char *difference = fresh(l, "loss.difference"), *square = fresh(l, "loss.square");
  add_target(l, l->elem, -1);
  put(l, "Sub", l->prediction, target_of(l), difference, NULL);
  put(l, "Mul", difference, difference, square, NULL);
  put_mean(l, square, y);
}

/* softplus(x) - x t */
static void binary_cross_entropy(loss *l, const char *y) {
  const char *softplus = fresh(l, "loss.softplus"), *part = fresh(l, "loss.product"),
             *each = fresh(l, "loss.each");
  add_target(l, l->elem, -1);
  put(l, "Softplus", l->prediction, NULL, softplus, NULL);
  put(l, "Mul", l->prediction, target_of(l), part, NULL);
  put(l, "Sub", softplus, part, each, NULL);
  put_mean(l, each, y);
}

/* Frameworks often give [batch, words, classes]. With the words for classes such a model trains as
 * well, for nothing. Images, [batch, classes, rows, columns], have so many classes. */
static void say_axis(const loss *l, const psplit_logger *logger) {
  const psplit_i_vtype *type = l->type;
  if (l->has_axis || type->rank < 3) return;
  const bool second = psplit_i_shapes_emit_dim(l->shapes, type->dims[1]).value >= 0;
  const bool last = psplit_i_shapes_emit_dim(l->shapes, type->dims[type->rank - 1]).value >= 0;
  if (type->rank > 3 && (second || !last)) return;
  psplit_i_text text = {0};
  psplit_i_shapes_print(l->shapes, type, &text);
  if (!text.failed)
    psplit_i_say(logger, PSPLIT_WARNING,
                 "the classes of \"%s\", %s, are taken to be on axis 1; with axis=-1 in the loss "
                 "they are on the last one, and axis=1 says that this is right",
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
  PSPLIT_TRY(parse(&l, text));
  PSPLIT_TRY(find_prediction(&l, text));
  const char *y = fresh(&l, "loss");
  l.prediction = widened(&l, l.prediction, l.type->elem);
  l.elem = psplit_i_is_half(l.type->elem) ? PSPLIT_ELEM_FLOAT : l.type->elem;
  const bool classes = strcmp(l.kind, "softmax-cross-entropy") == 0;
  PSPLIT_TRY(check_target(&l, text, classes));
  if (classes) say_axis(&l, logger);
  if (classes)
    PSPLIT_TRY(cross_entropy(&l, text, y));
  else if (strcmp(l.kind, "mse") == 0)
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
