/* Functions for rules: inputs, contents, attributes, outputs. */
#include <string.h>

#include "infer.h"

/* Contents up to this size get symbols when a run alone can tell them. */
enum { MADE_UP_ELEMENTS = 8, REAL_ELEMENTS = 64 };

bool psplit_i_is_int_type(int32_t elem) {
  return (elem >= 2 && elem <= 7) || elem == 9 || elem == 12 || elem == 13;
}
bool psplit_i_is_real_type(int32_t elem) {
  return elem == 1 || elem == 10 || elem == 11 || elem == 16;
}

bool psplit_i_has(const psplit_i_site *at, uint32_t input) {
  return input < at->node->n_inputs && at->node->inputs[input] != PSPLIT_NONE;
}

const psplit_i_vtype *psplit_i_in(const psplit_i_site *at, uint32_t input) {
  static const psplit_i_vtype unknown = {.rank = -1};
  return psplit_i_has(at, input) ? &at->scope->types[at->node->inputs[input]] : &unknown;
}

int32_t psplit_i_elem(const psplit_i_site *at, uint32_t input) {
  return psplit_i_in(at, input)->elem;
}
int32_t psplit_i_rank(const psplit_i_site *at, uint32_t input) {
  return psplit_i_in(at, input)->rank;
}

psplit_dim psplit_i_dim_of(psplit_i_site *at, uint32_t input, int32_t axis) {
  const psplit_i_vtype *type = psplit_i_in(at, input);
  if (axis < 0) axis += type->rank;
  if (axis < 0 || axis >= type->rank) return psplit_i_dim_fresh(at->dims);
  return type->dims[axis];
}

psplit_dim psplit_i_number_or_fresh(psplit_i_site *at, int64_t value) {
  return value > 0 ? psplit_i_dim_const(at->dims, value) : psplit_i_dim_fresh(at->dims);
}

psplit_dim psplit_i_element_or_fresh(psplit_i_site *at, uint32_t input) {
  uint32_t n;
  const psplit_dim *elements = psplit_i_elements(at, input, &n);
  const bool one = elements && n == 1 && psplit_i_dim_is_integer(at->dims, elements[0]);
  return one ? elements[0] : psplit_i_dim_fresh(at->dims);
}

psplit_dim psplit_i_volume(psplit_i_site *at, const psplit_i_vtype *type, int32_t from,
                           int32_t to) {
  psplit_dim volume = psplit_i_dim_const(at->dims, 1);
  for (int32_t axis = from; axis < to; axis++)
    volume = psplit_i_dim_mul(at->dims, volume, type->dims[axis]);
  return volume;
}

bool psplit_i_count(const psplit_i_dims *dims, const psplit_i_vtype *type, int64_t *out) {
  if (type->rank < 0 || type->kind != PSPLIT_TYPE_TENSOR) return false;
  uint64_t n = 1;
  int64_t size;
  for (int32_t axis = 0; axis < type->rank; axis++)
    if (!psplit_i_dim_is_const(dims, type->dims[axis], &size) || size < 0 ||
        !psplit_i_mul_u64(n, (uint64_t)size, &n))
      return false;
  if (n > INT64_MAX) return false;
  *out = (int64_t)n;
  return true;
}

psplit_dim *psplit_i_new_elements(psplit_i_site *at, int64_t n) {
  if (n < 0 || n > PSPLIT_MAX_ELEMENTS || (uint64_t)n > at->s->budget_elements) return NULL;
  at->s->budget_elements -= (uint64_t)n;
  psplit_dim *elements = psplit_i_arena_array(&at->s->arena, (size_t)n, sizeof *elements);
  if (!elements) at->s->failed = true;
  return elements;
}

void psplit_i_read_failed(psplit_i_shapes *s, psplit_code code) {
  if (!s->failed) s->code = code;
  s->failed = true;
}

static const psplit_dim *load_tensor(psplit_i_site *at, psplit_i_tensor tensor) {
  const bool is_int = psplit_i_is_int_type(tensor.data_type);
  const bool is_real = psplit_i_is_real_type(tensor.data_type);
  const int64_t limit = is_int ? PSPLIT_MAX_ELEMENTS : REAL_ELEMENTS;
  if ((!is_int && !is_real) || tensor.n_elements > limit) return NULL;
  psplit_dim *elements = NULL;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  const psplit_model *model = at->s->graph->model;
  psplit_code code;
  size_t n;
  if (is_int) {
    const int64_t *ints;
    code = psplit_i_tensor_int64s(model, &tensor, limit, &scratch, at->s->diag, &ints, &n);
    if (code == PSPLIT_OK && ints && (int64_t)n == tensor.n_elements &&
        (elements = psplit_i_new_elements(at, (int64_t)n)))
      for (size_t i = 0; i < n; i++) elements[i] = psplit_i_dim_const(at->dims, ints[i]);
  } else {
    const double *reals;
    code = psplit_i_tensor_doubles(model, &tensor, limit, &scratch, at->s->diag, &reals, &n);
    if (code == PSPLIT_OK && reals && (int64_t)n == tensor.n_elements &&
        (elements = psplit_i_new_elements(at, (int64_t)n)))
      for (size_t i = 0; i < n; i++) elements[i] = psplit_i_dim_real(at->dims, reals[i]);
  }
  if (code != PSPLIT_OK) psplit_i_read_failed(at->s, code);
  psplit_i_arena_fini(&scratch);
  return elements;
}

/* Contents of an initializer or a Constant, looked up where it is defined. As many as the type has
 * elements: an input may be declared unlike the initializer that is its default. */
static const psplit_dim *load(psplit_i_site *at, uint32_t value, const psplit_i_vtype *type,
                              int64_t n) {
  psplit_i_scope *scope = at->scope;
  while (scope->graph->values[value].outer != PSPLIT_NONE) {
    value = scope->graph->values[value].outer;
    scope = scope->parent;
  }
  const psplit_i_value *v = &scope->graph->values[value];
  /* From IR 4 on, an initializer listed as an input is a default that a caller may replace. */
  if (v->input != PSPLIT_NONE && psplit_i_model_ir_version(scope->graph->model) >= 4) {
    if (!at->s->defaults_hold) return NULL;
    if (!at->s->default_of) at->s->default_of = v->name;
  }
  if (v->initializer != PSPLIT_NONE) {
    const psplit_i_tensor tensor = psplit_i_graph_initializer(scope->graph, v->initializer);
    const bool agrees = tensor.n_elements == n && tensor.data_type == type->elem;
    return agrees ? load_tensor(at, tensor) : NULL;
  }
  if (v->producer == PSPLIT_NONE) return NULL;
  const psplit_i_node *node = &scope->graph->nodes[v->producer];
  if (!psplit_i_node_is(node, "Constant") || node->function != PSPLIT_NONE) return NULL;
  const Onnx__TensorProto *proto = psplit_i_attr_tensor(node, "value");
  return proto ? load_tensor(at, psplit_i_tensor_of(proto)) : NULL;
}

static const psplit_dim *elements_of(psplit_i_site *at, uint32_t input, uint32_t *out_n,
                                     bool make_up) {
  *out_n = 0;
  if (!psplit_i_has(at, input)) return NULL;
  psplit_i_vtype *type = &at->scope->types[at->node->inputs[input]];
  int64_t n;
  if (type->kind == PSPLIT_TYPE_SEQUENCE) return NULL; /* sizes of its members are no contents */
  if (!type->elements) {
    if (!psplit_i_count(at->dims, type, &n) || n > PSPLIT_MAX_ELEMENTS) return NULL;
    const bool is_int = psplit_i_is_int_type(type->elem);
    if (!is_int && !psplit_i_is_real_type(type->elem)) return NULL;
    const psplit_dim *elements =
      type->is_weight ? load(at, at->node->inputs[input], type, n) : NULL;
    if (!elements && is_int && make_up && n <= MADE_UP_ELEMENTS) {
      psplit_dim *made = psplit_i_new_elements(at, n);
      if (made)
        for (int64_t i = 0; i < n; i++) made[i] = psplit_i_dim_fresh_value(at->dims);
      elements = made;
    }
    if (!elements) return NULL;
    type->elements = elements;
    type->n_elements = (uint32_t)n;
  }
  *out_n = type->n_elements;
  return type->elements;
}

const psplit_dim *psplit_i_elements(psplit_i_site *at, uint32_t input, uint32_t *out_n) {
  return elements_of(at, input, out_n, true);
}
const psplit_dim *psplit_i_known_elements(psplit_i_site *at, uint32_t input, uint32_t *out_n) {
  return elements_of(at, input, out_n, false);
}

bool psplit_i_ints(psplit_i_site *at, uint32_t input, int64_t *out, uint32_t max, uint32_t *out_n) {
  uint32_t n;
  const psplit_dim *elements = psplit_i_known_elements(at, input, &n);
  if (!elements || n > max) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!psplit_i_dim_is_const(at->dims, elements[i], &out[i])) return false;
  *out_n = n;
  return true;
}

bool psplit_i_int_input(psplit_i_site *at, uint32_t input, int64_t *out) {
  uint32_t n;
  return psplit_i_ints(at, input, out, 1, &n) && n == 1;
}

static const Onnx__AttributeProto *named(Onnx__AttributeProto *const *list, size_t n,
                                         const char *name) {
  for (size_t i = 0; i < n; i++)
    if (list[i]->name && strcmp(list[i]->name, name) == 0) return list[i];
  return NULL;
}

const Onnx__AttributeProto *psplit_i_attribute(const psplit_i_site *at, const char *name) {
  const psplit_i_node *node = at->node;
  const psplit_i_scope *scope = at->scope;
  for (;;) {
    const Onnx__AttributeProto *found = named(node->attributes, node->n_attributes, name);
    if (!found || !found->ref_attr_name || !*found->ref_attr_name) return found;
    while (scope && !scope->call) scope = scope->parent;
    if (!scope) return NULL;
    name = found->ref_attr_name;
    node = scope->call;
    const Onnx__FunctionProto *function = scope->graph->function;
    if (!named(node->attributes, node->n_attributes, name))
      return named(function->attribute_proto, function->n_attribute_proto, name);
    scope = scope->caller;
  }
}

int64_t psplit_i_int(const psplit_i_site *at, const char *name, int64_t fallback) {
  const Onnx__AttributeProto *a = psplit_i_attribute(at, name);
  return a && a->has_i ? a->i : fallback;
}

int32_t psplit_i_elem_named(const psplit_i_site *at, const char *name, int32_t fallback) {
  const int64_t elem = psplit_i_int(at, name, fallback);
  return elem > 0 && elem < 64 ? (int32_t)elem : fallback;
}

float psplit_i_float(const psplit_i_site *at, const char *name, float fallback) {
  const Onnx__AttributeProto *a = psplit_i_attribute(at, name);
  return a && a->has_f ? a->f : fallback;
}

const int64_t *psplit_i_int_list(const psplit_i_site *at, const char *name, size_t *out_n) {
  static const int64_t none[1] = {0};
  const Onnx__AttributeProto *a = psplit_i_attribute(at, name);
  *out_n = 0;
  if (!a || (a->n_ints == 0 && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS)) return NULL;
  *out_n = a->n_ints;
  return a->n_ints ? a->ints : none;
}

bool psplit_i_text_is(const psplit_i_site *at, const char *name, const char *text, bool fallback) {
  const Onnx__AttributeProto *a = psplit_i_attribute(at, name);
  if (!a || !a->has_s) return fallback;
  const size_t n = strlen(text);
  return a->s.len == n && (n == 0 || memcmp(a->s.data, text, n) == 0);
}

bool psplit_i_axis(int64_t axis, int32_t rank, int32_t *out) {
  if (axis < -(int64_t)rank || axis >= rank) return false;
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return true;
}

bool psplit_i_axes(psplit_i_site *at, int input, const char *attribute, int32_t rank, bool *in,
                   bool *out_given) {
  int64_t from_input[PSPLIT_MAX_RANK] = {0};
  const int64_t *list;
  size_t n;
  if (input >= 0 && psplit_i_has(at, (uint32_t)input)) {
    uint32_t n_input;
    if (!psplit_i_ints(at, (uint32_t)input, from_input, PSPLIT_MAX_RANK, &n_input)) return false;
    list = from_input;
    n = n_input;
  } else {
    list = psplit_i_int_list(at, attribute, &n);
  }
  memset(in, 0, (size_t)rank * sizeof *in);
  *out_given = list != NULL;
  for (size_t i = 0; list && i < n; i++) {
    int32_t axis;
    if (!psplit_i_axis(list[i], rank, &axis)) return false;
    in[axis] = true;
  }
  return true;
}

bool psplit_i_wants(const psplit_i_site *at, uint32_t output) {
  return output < at->node->n_outputs && at->node->outputs[output] != PSPLIT_NONE;
}

void psplit_i_out(psplit_i_site *at, uint32_t output, int32_t elem, int32_t rank,
                  const psplit_dim *dims) {
  if (!psplit_i_wants(at, output)) return;
  psplit_i_vtype *type = &at->scope->types[at->node->outputs[output]];
  *type = (psplit_i_vtype){.kind = PSPLIT_TYPE_TENSOR, .elem = elem, .rank = -1};
  if (rank < 0 || rank > PSPLIT_MAX_RANK) return;
  psplit_dim *copy = psplit_i_arena_array(&at->s->arena, (size_t)rank, sizeof *copy);
  if (!copy) {
    at->s->failed = true;
    return;
  }
  for (int32_t axis = 0; axis < rank; axis++) {
    int64_t size;
    /* A negative size only comes from a model that cannot run. */
    const bool negative = psplit_i_dim_is_const(at->dims, dims[axis], &size) && size < 0;
    copy[axis] = negative ? psplit_i_dim_fresh(at->dims) : dims[axis];
  }
  type->dims = copy;
  type->rank = rank;
}

void psplit_i_out_type(psplit_i_site *at, uint32_t output, const psplit_i_vtype *type) {
  if (!psplit_i_wants(at, output)) return;
  psplit_i_vtype *out = &at->scope->types[at->node->outputs[output]];
  *out = *type;
  out->is_weight = out->declared_wrong = false;
}

void psplit_i_out_like(psplit_i_site *at, uint32_t output, uint32_t input, int32_t elem) {
  if (!psplit_i_wants(at, output)) return;
  const psplit_i_vtype *type = psplit_i_in(at, input);
  at->scope->types[at->node->outputs[output]] = (psplit_i_vtype){
    .kind = PSPLIT_TYPE_TENSOR, .elem = elem, .rank = type->rank, .dims = type->dims};
}

void psplit_i_out_elements(psplit_i_site *at, uint32_t output, const psplit_dim *elements,
                           uint32_t n) {
  if (!psplit_i_wants(at, output) || !elements) return;
  psplit_i_vtype *type = &at->scope->types[at->node->outputs[output]];
  int64_t count;
  if (!psplit_i_count(at->dims, type, &count) || count != n) return;
  type->elements = elements;
  type->n_elements = n;
}

void psplit_i_out_sequence(psplit_i_site *at, uint32_t output, int32_t elem, int32_t rank,
                           const psplit_dim *dims) {
  if (!psplit_i_wants(at, output)) return;
  psplit_i_out(at, output, elem, rank, dims);
  psplit_i_vtype *type = &at->scope->types[at->node->outputs[output]];
  type->kind = PSPLIT_TYPE_SEQUENCE;
  type->inner = PSPLIT_TYPE_TENSOR;
}

void psplit_i_fresh_dims(psplit_i_site *at, int32_t rank, psplit_dim *dims) {
  for (int32_t i = 0; i < rank && i < PSPLIT_MAX_RANK; i++) dims[i] = psplit_i_dim_fresh(at->dims);
}
