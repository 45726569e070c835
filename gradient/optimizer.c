/* Optimizers: the update of all weights as a model of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choice_text.h"
#include "fields.h"
#include "gradient.h"
#include "model_pieces.h"
#include "number.h"
#include "opsets.h"
#include "write.h"

typedef enum method { SGD, MOMENTUM, ADAM, ADAMW } method;

typedef struct optimizer {
  method method;
  double momentum, beta1, beta2, epsilon, weight_decay;
  bool nesterov;
} optimizer;

/* The update graph under construction. Scalars are computed once, in float64, and brought to the
 * type of each weight. */
typedef struct update {
  const psplit_gradient *gradient;
  optimizer how;
  psplit_i_backward b;
  psplit_i_text inputs, outputs;
  psplit_i_ref lr, step, scale; /* float64 */
  int32_t elem;                 /* of the weight at hand */
  const psplit_i_vtype *type;
  const char *name;
  uint32_t trainable;
  psplit_i_arena *arena; /* of the names in `ports` */
  psplit_i_update_ports *ports;
} update;

/* ---- options ---- */

static bool set(optimizer *o, const char *key, double value) {
  const bool adaptive = o->method == ADAM || o->method == ADAMW;
  if (strcmp(key, "weight_decay") == 0 && value >= 0)
    o->weight_decay = value;
  else if (adaptive && strcmp(key, "beta1") == 0 && value >= 0 && value < 1)
    o->beta1 = value;
  else if (adaptive && strcmp(key, "beta2") == 0 && value >= 0 && value < 1)
    o->beta2 = value;
  else if (adaptive && strcmp(key, "epsilon") == 0 && value >= 0)
    o->epsilon = value;
  else if (o->method == MOMENTUM && strcmp(key, "momentum") == 0 && value >= 0)
    o->momentum = value;
  else if (o->method == MOMENTUM && strcmp(key, "nesterov") == 0 && (value == 0 || value == 1))
    o->nesterov = value != 0;
  else
    return false;
  return true;
}

static psplit_code read_entry(const psplit_i_choice *choice, const char *key, const char *value,
                              optimizer *o) {
  char *end;
  const double number = psplit_i_number_parse(value, &end);
  if (*value && !*end && isfinite(number) && set(o, key, number)) return PSPLIT_OK;
  return psplit_i_choice_fail(choice, "unknown entry, or a value out of range");
}

static psplit_code parse(const char *text, psplit_i_arena *arena, psplit_diag *diag,
                         optimizer *out) {
  static const char *const METHODS[] = {
    [SGD] = "sgd", [MOMENTUM] = "momentum", [ADAM] = "adam", [ADAMW] = "adamw"};
  enum { N_METHODS = sizeof METHODS / sizeof *METHODS };
  psplit_i_choice choice = {.what = "optimizer",
                            .form =
                              "sgd[:weight_decay=], "
                              "momentum[:momentum=,nesterov=,weight_decay=] "
                              "or adam or adamw[:beta1=,beta2=,epsilon=,weight_decay=]",
                            .text = text,
                            .diag = diag};
  const char *key, *value;
  uint32_t kind = 0;
  psplit_code code;
  *out = (optimizer){.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
  PSPLIT_TRY(psplit_i_choice_begin(&choice, arena));
  while (kind < N_METHODS && strcmp(METHODS[kind], choice.kind) != 0) kind++;
  if (kind == N_METHODS)
    PSPLIT_FAIL(
      psplit_i_choice_fail_unlike(&choice, "unknown method", choice.kind, METHODS, N_METHODS));
  out->method = (method)kind;
  if (out->method == ADAMW) out->weight_decay = 0.01;
  PSPLIT_TRY(psplit_i_choice_next(&choice, &key, &value));
  while (key) {
    PSPLIT_TRY(read_entry(&choice, key, value, out));
    PSPLIT_TRY(psplit_i_choice_next(&choice, &key, &value));
  }
out:
  return code;
}

/* ---- the graph ---- */

static psplit_i_ref op(update *u, const char *op_type, psplit_i_ref a, psplit_i_ref b) {
  return psplit_i_backward_node(&u->b, op_type, 2, (psplit_i_ref[]){a, b}, 1);
}
static psplit_i_ref number(update *u, double value) {
  return psplit_i_backward_number(&u->b, u->elem, value);
}
static psplit_i_ref wide(update *u, double value) {
  return psplit_i_backward_number(&u->b, PSPLIT_ELEM_DOUBLE, value);
}
/* A float64 scalar in the type of the weight. */
static psplit_i_ref narrow(update *u, psplit_i_ref a) {
  if (u->elem == PSPLIT_ELEM_DOUBLE) return a;
  psplit_i_backward_attr_int(&u->b, "to", u->elem);
  return psplit_i_backward_node(&u->b, "Cast", 1, &a, 1);
}

static psplit_i_ref scalar_input(update *u, const char *name, int32_t elem) {
  const psplit_i_emit_dim none = {0};
  const psplit_i_ref value = psplit_i_backward_received(&u->b, name, elem);
  if (value == PSPLIT_NONE) return value;
  psplit_i_put_value(&u->inputs, PSPLIT_I_GRAPH_INPUT, u->b.values.items[value].name, elem, 0,
                     &none);
  return value;
}

/* "<weight><suffix>" as an input of the weight's type. */
static psplit_i_ref weight_input(update *u, const char *name) {
  const psplit_i_ref value = psplit_i_backward_received(&u->b, name, u->elem);
  if (value == PSPLIT_NONE) return value;
  psplit_i_put_typed_value(&u->inputs, PSPLIT_I_GRAPH_INPUT, u->b.values.items[value].name,
                           u->gradient->shapes, u->type);
  return value;
}

static psplit_i_ref state(update *u, const char *suffix) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "%s.%s", u->name, suffix);
  const psplit_i_ref value = weight_input(u, psplit_i_backward_text(&u->b, &text));
  psplit_i_text_fini(&text);
  return value;
}

static const char *kept_name(update *u, const char *name) {
  const char *own = psplit_i_arena_strndup(u->arena, name, strlen(name));
  if (!own) u->b.failed = true;
  return own;
}

static void keep(update *u, const char *name, const char *new_name) {
  if (!u->ports || u->b.failed) return;
  const psplit_i_kept kept = {.trainable = u->trainable,
                              .name = kept_name(u, name),
                              .new_name = kept_name(u, new_name),
                              .is_state = strcmp(name, u->name) != 0};
  if (!psplit_i_vec_push(&u->ports->kept, kept)) u->b.failed = true;
}

/* Says which names the scalars have. */
static void keep_scalars(update *u, psplit_i_ref step) {
  if (!u->ports || u->b.failed) return;
  u->ports->lr = kept_name(u, u->b.values.items[u->lr].name);
  u->ports->scale = kept_name(u, u->b.values.items[u->scale].name);
  u->ports->step = step == PSPLIT_NONE ? NULL : kept_name(u, u->b.values.items[step].name);
}

void psplit_i_update_ports_fini(psplit_i_update_ports *ports) { psplit_i_vec_fini(&ports->kept); }

/* Makes a node's result the output "<name of `from`>.new". */
static void result(update *u, psplit_i_ref from, psplit_i_ref value) {
  psplit_i_text text = {0};
  if (u->b.failed) return;
  psplit_i_text_addf(&text, "%s.new", u->b.values.items[from].name);
  const char *name = psplit_i_backward_name(&u->b, psplit_i_backward_text(&u->b, &text));
  psplit_i_text_fini(&text);
  u->b.values.items[value].name = name;
  u->b.values.items[value].alive = true;
  psplit_i_put_typed_value(&u->outputs, PSPLIT_I_GRAPH_OUTPUT, name, u->gradient->shapes, u->type);
  keep(u, u->b.values.items[from].name, name);
}

/* a * x + b * y */
static psplit_i_ref blend(update *u, double a, psplit_i_ref x, double b, psplit_i_ref y) {
  const psplit_i_ref ax = op(u, "Mul", x, number(u, a));
  return op(u, "Add", ax, op(u, "Mul", y, number(u, b)));
}

static psplit_i_ref decayed_gradient(update *u, psplit_i_ref w, psplit_i_ref g) {
  g = op(u, "Mul", g, narrow(u, u->scale));
  if (u->how.weight_decay > 0 && u->how.method != ADAMW)
    g = op(u, "Add", g, op(u, "Mul", w, number(u, u->how.weight_decay)));
  return g;
}

static void descend(update *u, psplit_i_ref w, psplit_i_ref g) {
  g = decayed_gradient(u, w, g);
  if (u->how.method == MOMENTUM) {
    const psplit_i_ref before = state(u, "momentum");
    const psplit_i_ref after = op(u, "Add", op(u, "Mul", before, number(u, u->how.momentum)), g);
    result(u, before, after);
    g = u->how.nesterov ? op(u, "Add", g, op(u, "Mul", after, number(u, u->how.momentum))) : after;
  }
  result(u, w, op(u, "Sub", w, op(u, "Mul", g, narrow(u, u->lr))));
}

/* 1 - beta^step, float64 */
static psplit_i_ref correction(update *u, double beta) {
  const psplit_i_ref one = wide(u, 1);
  return op(u, "Sub", one, op(u, "Pow", wide(u, beta), u->step));
}

/* Decay first, epsilon outside the root. Source: Kingma, Ba, "Adam", ICLR 2015; Loshchilov, Hutter,
 * "Decoupled weight decay regularization", ICLR 2019; the order of operations is PyTorch's. */
static void adapt(update *u, psplit_i_ref w, psplit_i_ref g) {
  const optimizer *o = &u->how;
  const psplit_i_ref m = state(u, "m"), v = state(u, "v"), from = w;
  g = decayed_gradient(u, w, g);
  if (o->method == ADAMW && o->weight_decay > 0) {
    const psplit_i_ref one = wide(u, 1);
    const psplit_i_ref kept = op(u, "Sub", one, op(u, "Mul", u->lr, wide(u, o->weight_decay)));
    w = op(u, "Mul", w, narrow(u, kept));
  }
  const psplit_i_ref m_new = blend(u, o->beta1, m, 1 - o->beta1, g);
  const psplit_i_ref v_new = blend(u, o->beta2, v, 1 - o->beta2, op(u, "Mul", g, g));
  const psplit_i_ref wide_root = correction(u, o->beta2);
  const psplit_i_ref root = psplit_i_backward_node(&u->b, "Sqrt", 1, &wide_root, 1);
  const psplit_i_ref deviation = psplit_i_backward_node(&u->b, "Sqrt", 1, &v_new, 1);
  const psplit_i_ref corrected = op(u, "Div", deviation, narrow(u, root));
  const psplit_i_ref divisor = op(u, "Add", corrected, number(u, o->epsilon));
  const psplit_i_ref size = narrow(u, op(u, "Div", u->lr, correction(u, o->beta1)));
  result(u, from, op(u, "Sub", w, op(u, "Mul", size, op(u, "Div", m_new, divisor))));
  result(u, m, m_new);
  result(u, v, v_new);
}

static void start(update *u) {
  u->lr = scalar_input(u, "lr", PSPLIT_ELEM_DOUBLE);
  u->scale = scalar_input(u, "scale", PSPLIT_ELEM_DOUBLE);
  const bool counts = u->how.method == ADAM || u->how.method == ADAMW;
  const psplit_i_ref step = counts ? scalar_input(u, "step", PSPLIT_ELEM_INT64) : PSPLIT_NONE;
  keep_scalars(u, step);
  if (!counts) return;
  psplit_i_backward_attr_int(&u->b, "to", PSPLIT_ELEM_DOUBLE);
  u->step = psplit_i_backward_node(&u->b, "Cast", 1, &step, 1);
}

static void update_weight(update *u, const psplit_i_trainable *t) {
  u->type = psplit_i_shapes_type(u->gradient->shapes, t->value);
  u->elem = u->type->elem;
  u->name = u->b.forward->values[t->value].name;
  const psplit_i_ref w = psplit_i_backward_forward(&u->b, t->value);
  psplit_i_put_typed_value(&u->inputs, PSPLIT_I_GRAPH_INPUT, u->name, u->gradient->shapes, u->type);
  psplit_i_ref g = weight_input(u, t->parts[0].names.gradient);
  for (uint32_t p = 1; p < t->n_parts; p++)
    g = op(u, "Add", g, weight_input(u, t->parts[p].names.gradient));
  if (u->how.method == ADAM || u->how.method == ADAMW)
    adapt(u, w, g);
  else
    descend(u, w, g);
}

/* Everything that was made is needed; names for what has none. */
static void name_values(update *u) {
  for (size_t n = 0; n < u->b.nodes.n; n++) u->b.nodes.items[n].alive = true;
  for (size_t r = 0; r < u->b.values.n && !u->b.failed; r++) {
    psplit_i_bvalue *value = &u->b.values.items[r];
    value->alive = true;
    if (value->name) continue;
    psplit_i_text text = {0};
    psplit_i_text_addf(&text, "u%zu", r);
    value->name = psplit_i_backward_name(&u->b, psplit_i_backward_text(&u->b, &text));
    psplit_i_text_fini(&text);
  }
}

/* Squares of gradients below 2.4e-4 are 0 in float16, as is epsilon: what is divided by their root
 * is lost, or infinite. */
static psplit_code check_moments(const update *u, const char *how, uint32_t trainable,
                                 psplit_diag *diag) {
  const uint32_t value = u->gradient->trainables[trainable].value;
  if ((u->how.method != ADAM && u->how.method != ADAMW) ||
      psplit_i_shapes_type(u->gradient->shapes, value)->elem != PSPLIT_ELEM_FLOAT16)
    return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "optimizer \"%s\": weight \"%s\" is float16, which cannot hold squares of "
                       "small gradients; take sgd or momentum, freeze it, or convert the model to "
                       "float32",
                       how, u->b.forward->values[value].name);
}

/* The graph of an update; `u` is ended with fini_update in any case. */
static psplit_code build(update *u, const psplit_i_update_request *request, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(parse(request->optimizer, &u->b.arena, diag, &u->how));
  start(u);
  for (uint32_t i = 0; i < request->n && !u->b.failed; i++) {
    u->trainable = request->trainables[i];
    PSPLIT_TRY(check_moments(u, request->optimizer, u->trainable, diag));
    update_weight(u, &u->gradient->trainables[u->trainable]);
  }
  name_values(u);
  if (u->b.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
out:
  return code;
}

static void fini_update(update *u) {
  psplit_i_text_fini(&u->inputs);
  psplit_i_text_fini(&u->outputs);
  psplit_i_backward_fini(&u->b);
}

psplit_code psplit_i_gradient_update(const psplit_i_update_request *request, psplit_i_arena *arena,
                                     psplit_diag *diag, psplit_i_text *out,
                                     psplit_i_update_ports *out_ports) {
  psplit_code code;
  update u = {.gradient = request->gradient, .arena = arena, .ports = out_ports};
  psplit_i_text graph = {0};
  PSPLIT_TRY(psplit_i_backward_init(&u.b, request->gradient->b.forward, diag));
  PSPLIT_TRY(build(&u, request, diag));
  psplit_i_put_nodes(&u.b, &graph);
  psplit_i_put_string(&graph, PSPLIT_I_GRAPH_NAME, "update");
  psplit_i_put_constants(&u.b, &graph);
  psplit_i_text_add(&graph, u.inputs.bytes, u.inputs.n);
  psplit_i_text_add(&graph, u.outputs.bytes, u.outputs.n);
  psplit_i_put_model_head(out);
  psplit_i_wire_bytes(out, PSPLIT_I_MODEL_GRAPH, graph.bytes, graph.n);
  if (graph.failed || out->failed || u.inputs.failed || u.outputs.failed)
    PSPLIT_FAIL(psplit_i_nomem(diag));
out:
  psplit_i_text_fini(&graph);
  fini_update(&u);
  return code;
}

/* Names of the backward pass are taken, but for those of the gradients. */
static bool take_names(update *u) {
  const psplit_i_intern *names = &u->gradient->b.names;
  psplit_i_intern gradients;
  bool good = true;
  psplit_i_intern_init(&gradients);
  for (uint32_t t = 0; t < u->gradient->n_trainables && good; t++) {
    const psplit_i_trainable *trainable = &u->gradient->trainables[t];
    for (uint32_t p = 0; p < trainable->n_parts && good; p++)
      good = psplit_i_intern_add(&gradients, trainable->parts[p].names.gradient) != PSPLIT_NONE;
  }
  for (uint32_t i = 0; i < names->n && good; i++)
    good = psplit_i_intern_find(&gradients, names->text[i]) != PSPLIT_NONE ||
           psplit_i_intern_add(&u->b.names, names->text[i]) != PSPLIT_NONE;
  psplit_i_intern_fini(&gradients);
  return good;
}

psplit_code psplit_i_gradient_update_nodes(const psplit_i_update_request *request, int64_t opset,
                                           psplit_i_arena *arena, psplit_diag *diag,
                                           psplit_i_text *out_fields, psplit_i_text *out_outputs,
                                           psplit_i_update_ports *out_ports) {
  psplit_code code;
  update u = {.gradient = request->gradient, .arena = arena, .ports = out_ports};
  PSPLIT_TRY(psplit_i_backward_init(&u.b, request->gradient->b.forward, diag));
  if (!take_names(&u)) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(build(&u, request, diag));
  PSPLIT_TRY(psplit_i_fit_opset(&u.b, opset, "the model", diag));
  psplit_i_put_nodes(&u.b, out_fields);
  psplit_i_put_constants(&u.b, out_fields);
  psplit_i_text_add(out_outputs, u.outputs.bytes, u.outputs.n);
  if (u.outputs.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
out:
  fini_update(&u);
  return code;
}

psplit_code psplit_gradient_write_update(const psplit_gradient *gradient, const char *text,
                                         const char *path, psplit_diag *diag) {
  psplit_code code;
  psplit_i_pieces whole = {0};
  psplit_i_text bytes = {0};
  uint32_t n = 0;
  uint32_t *trainables = malloc((gradient->n_trainables + (size_t)1) * sizeof *trainables);
  if (!trainables) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < gradient->n_trainables; i++)
    if (gradient->trainables[i].n_parts && !gradient->trainables[i].is_input) trainables[n++] = i;
  PSPLIT_TRY(psplit_i_gradient_update(&(psplit_i_update_request){gradient, text, trainables, n},
                                      NULL, diag, &bytes, NULL));
  psplit_i_pieces_text(&whole, &bytes);
  PSPLIT_TRY(psplit_i_pieces_write(&whole, gradient->model, path, diag));
out:
  psplit_i_pieces_fini(&whole);
  psplit_i_text_fini(&bytes);
  free(trainables);
  return code;
}
