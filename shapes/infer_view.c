/* Rules: sizes and the same elements under another shape. */
#include <math.h>
#include <string.h>

#include "infer.h"

enum { INT64 = 7, FLOAT = 1, STRING = 8, BOOL = 9 };

/* The size that element `e` of a target shape asks for; PSPLIT_NONE where it may be -1. */
static psplit_dim asked(const psplit_i_site *at, psplit_dim e) {
  return psplit_i_dim_low(at->dims, e) == INT64_MIN ? PSPLIT_NONE : e;
}

/* Contents pass through a change of shape. */
static void keep_elements(psplit_i_site *at) {
  uint32_t n;
  const psplit_dim *elements = psplit_i_known_elements(at, 0, &n);
  psplit_i_out_elements(at, 0, elements, n);
}

/* Shape attribute of Reshape before opset 5, else its input 1. */
static bool target_shape(psplit_i_site *at, psplit_dim *target, int32_t *out_rank) {
  uint32_t n = 0;
  size_t n_list;
  const int64_t *list = at->node->n_inputs < 2 ? psplit_i_int_list(at, "shape", &n_list) : NULL;
  if (list) {
    if (n_list > PSPLIT_MAX_RANK) return false;
    for (size_t i = 0; i < n_list; i++) target[i] = psplit_i_dim_const(at->dims, list[i]);
    *out_rank = (int32_t)n_list;
    return true;
  }
  const psplit_dim *elements = psplit_i_elements(at, 1, &n);
  if (elements) {
    if (n > PSPLIT_MAX_RANK) return false;
    if (n) memcpy(target, elements, n * sizeof *target);
    *out_rank = (int32_t)n;
    return true;
  }
  int64_t count;
  if (psplit_i_rank(at, 1) != 1 || !psplit_i_count(at->dims, psplit_i_in(at, 1), &count) ||
      count > PSPLIT_MAX_RANK)
    return false;
  for (int64_t i = 0; i < count; i++) target[i] = psplit_i_dim_fresh_value(at->dims);
  *out_rank = (int32_t)count;
  return true;
}

/* The one size without a name of an input of the model that is reshaped to `elements` elements: a
 * mask of [batch * heads, n, n] has an open first size, since no name can say a product. */
static void learn_open_size(psplit_i_site *at, psplit_dim elements) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const uint32_t v = at->node->inputs[0];
  if (at->scope != at->s->root || at->scope->graph->values[v].producer != PSPLIT_NONE) return;
  psplit_dim others = psplit_i_dim_const(at->dims, 1);
  psplit_dim open = PSPLIT_NONE;
  for (int32_t axis = 0; axis < data->rank; axis++) {
    const psplit_dim dim = data->dims[axis];
    if (!psplit_i_dim_is_anonymous(at->dims, dim))
      others = psplit_i_dim_mul(at->dims, others, dim);
    else if (open == PSPLIT_NONE)
      open = dim;
    else
      return;
  }
  if (open != PSPLIT_NONE)
    psplit_i_learn_equal(at->s, open, psplit_i_dim_floor_div(at->dims, elements, others));
}

void psplit_i_infer_reshape(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  int32_t rank;
  if (!target_shape(at, dims, &rank)) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  const bool zero_is_zero = psplit_i_int(at, "allowzero", 0) != 0;
  psplit_dim others = psplit_i_dim_const(at->dims, 1);
  int32_t open = -1, n_open = 0;
  for (int32_t i = 0; i < rank; i++) {
    int64_t value;
    if (!psplit_i_dim_is_const(at->dims, dims[i], &value))
      dims[i] = asked(at, dims[i]);
    else if (value < 0)
      dims[i] = PSPLIT_NONE;
    else if (value == 0 && !zero_is_zero)
      dims[i] = psplit_i_dim_of(at, 0, i < 64 ? i : 0);
    if (dims[i] == PSPLIT_NONE) {
      open = i;
      n_open++;
    } else {
      others = psplit_i_dim_mul(at->dims, others, dims[i]);
    }
  }
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] == PSPLIT_NONE && (n_open > 1 || data->rank < 0))
      dims[i] = psplit_i_dim_fresh(at->dims);
  if (n_open == 0 && data->rank >= 0) {
    psplit_i_must_agree(at, psplit_i_volume(at, data, 0, data->rank), others);
    learn_open_size(at, others);
  }
  if (n_open == 1 && data->rank >= 0)
    dims[open] = psplit_i_dim_floor_div(at->dims, psplit_i_volume(at, data, 0, data->rank), others);
  psplit_i_out(at, 0, data->elem, rank, dims);
  keep_elements(at);
}

void psplit_i_infer_flatten(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[2];
  const int64_t axis = psplit_i_int(at, "axis", 1);
  if (data->rank < 0 || axis < -(int64_t)data->rank || axis > data->rank) {
    psplit_i_fresh_dims(at, 2, dims);
  } else {
    const int32_t cut = (int32_t)(axis < 0 ? axis + data->rank : axis);
    dims[0] = psplit_i_volume(at, data, 0, cut);
    dims[1] = psplit_i_volume(at, data, cut, data->rank);
  }
  psplit_i_out(at, 0, data->elem, 2, dims);
  keep_elements(at);
}

void psplit_i_infer_squeeze(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  bool drop[PSPLIT_MAX_RANK], given;
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t rank = data->rank < 0 ? -1 : 0;
  if (rank == 0 && !psplit_i_axes(at, 1, "axes", data->rank, drop, &given)) rank = -1;
  for (int32_t i = 0; i < data->rank && rank >= 0; i++) {
    int64_t size;
    if (!given) {
      if (psplit_i_dim_is_const(at->dims, data->dims[i], &size))
        drop[i] = size == 1;
      else if (psplit_i_dim_low(at->dims, data->dims[i]) <= 1) {
        rank = -1;
        break;
      }
    }
    if (!drop[i]) dims[rank++] = data->dims[i];
  }
  psplit_i_out(at, 0, data->elem, rank, dims);
  keep_elements(at);
}

void psplit_i_infer_unsqueeze(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  int64_t from_input[PSPLIT_MAX_RANK];
  size_t n = 0;
  const int64_t *list = NULL;
  if (psplit_i_has(at, 1)) {
    uint32_t n_input;
    if (psplit_i_ints(at, 1, from_input, PSPLIT_MAX_RANK, &n_input)) {
      list = from_input;
      n = n_input;
    }
  } else {
    list = psplit_i_int_list(at, "axes", &n);
  }
  psplit_dim dims[PSPLIT_MAX_RANK];
  bool added[PSPLIT_MAX_RANK] = {false};
  int32_t rank = -1;
  if (list && data->rank >= 0 && n <= PSPLIT_MAX_RANK &&
      data->rank + (int32_t)n <= PSPLIT_MAX_RANK) {
    rank = data->rank + (int32_t)n;
    for (size_t i = 0; i < n; i++) {
      int32_t axis;
      if (!psplit_i_axis(list[i], rank, &axis) || added[axis]) {
        psplit_i_out(at, 0, data->elem, -1, NULL);
        return;
      }
      added[axis] = true;
    }
    for (int32_t i = 0, from = 0; i < rank; i++)
      dims[i] = added[i] ? psplit_i_dim_const(at->dims, 1) : data->dims[from++];
  }
  psplit_i_out(at, 0, data->elem, rank, dims);
  keep_elements(at);
}

void psplit_i_infer_shape(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  if (data->rank < 0) {
    const psplit_dim unknown = psplit_i_dim_fresh(at->dims);
    psplit_i_out(at, 0, INT64, 1, &unknown);
    return;
  }
  int64_t start = psplit_i_int(at, "start", 0), end = psplit_i_int(at, "end", data->rank);
  if (start < 0) start += data->rank;
  if (end < 0) end += data->rank;
  start = start < 0 ? 0 : start > data->rank ? data->rank : start;
  end = end < start ? start : end > data->rank ? data->rank : end;
  const psplit_dim n = psplit_i_dim_const(at->dims, end - start);
  psplit_i_out(at, 0, INT64, 1, &n);
  psplit_dim *elements = psplit_i_new_elements(at, end - start);
  if (!elements) return;
  for (int64_t i = start; i < end; i++) elements[i - start] = data->dims[i];
  psplit_i_out_elements(at, 0, elements, (uint32_t)(end - start));
}

void psplit_i_infer_size(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_i_out(at, 0, INT64, 0, NULL);
  psplit_dim *element = data->rank < 0 ? NULL : psplit_i_new_elements(at, 1);
  if (!element) return;
  *element = psplit_i_volume(at, data, 0, data->rank);
  psplit_i_out_elements(at, 0, element, 1);
}

/* A constant of these sizes, which opening the model has checked. */
static void constant_of(psplit_i_site *at, int32_t elem, const int64_t *size, size_t n) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (size_t i = 0; i < n && i < PSPLIT_MAX_RANK; i++)
    dims[i] = psplit_i_dim_const(at->dims, size[i]);
  psplit_i_out(at, 0, elem, n > PSPLIT_MAX_RANK ? -1 : (int32_t)n, dims);
}

static void constant_list(psplit_i_site *at, int32_t elem, size_t n) {
  const psplit_dim size = psplit_i_dim_const(at->dims, (int64_t)n);
  psplit_i_out(at, 0, elem, 1, &size);
}

void psplit_i_infer_constant(psplit_i_site *at) {
  const Onnx__AttributeProto *a;
  psplit_dim *elements = NULL;
  uint32_t n = 0;
  if ((a = psplit_i_attribute(at, "value")) && a->t) {
    const psplit_i_tensor tensor = psplit_i_tensor_of(a->t);
    constant_of(at, tensor.data_type, tensor.dims, tensor.n_dims);
  } else if ((a = psplit_i_attribute(at, "sparse_value")) && a->sparse_tensor) {
    const Onnx__SparseTensorProto *sparse = a->sparse_tensor;
    constant_of(at, sparse->values->data_type, sparse->dims, sparse->n_dims);
  } else if ((a = psplit_i_attribute(at, "value_int")) && a->has_i) {
    psplit_i_out(at, 0, INT64, 0, NULL);
    if ((elements = psplit_i_new_elements(at, n = 1)))
      elements[0] = psplit_i_dim_const(at->dims, a->i);
  } else if ((a = psplit_i_attribute(at, "value_ints"))) {
    constant_list(at, INT64, a->n_ints);
    if (a->n_ints <= PSPLIT_MAX_ELEMENTS &&
        (elements = psplit_i_new_elements(at, n = (uint32_t)a->n_ints)))
      for (uint32_t i = 0; i < n; i++) elements[i] = psplit_i_dim_const(at->dims, a->ints[i]);
  } else if ((a = psplit_i_attribute(at, "value_float")) && a->has_f) {
    psplit_i_out(at, 0, FLOAT, 0, NULL);
    if ((elements = psplit_i_new_elements(at, n = 1)))
      elements[0] = psplit_i_dim_real(at->dims, (double)a->f);
  } else if ((a = psplit_i_attribute(at, "value_floats"))) {
    constant_list(at, FLOAT, a->n_floats);
    if (a->n_floats <= 64 && (elements = psplit_i_new_elements(at, n = (uint32_t)a->n_floats)))
      for (uint32_t i = 0; i < n; i++)
        elements[i] = psplit_i_dim_real(at->dims, (double)a->floats[i]);
  } else if (psplit_i_attribute(at, "value_string")) {
    psplit_i_out(at, 0, STRING, 0, NULL);
  } else if ((a = psplit_i_attribute(at, "value_strings"))) {
    constant_list(at, STRING, a->n_strings);
  }
  psplit_i_out_elements(at, 0, elements, n);
  if (psplit_i_wants(at, 0)) at->scope->types[at->node->outputs[0]].is_weight = true;
}

/* One value of a tensor attribute as contents; PSPLIT_NONE if there is none to tell. */
static psplit_dim fill_value(psplit_i_site *at, const psplit_i_tensor *tensor) {
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  const int64_t *ints;
  const double *reals;
  size_t n;
  psplit_dim value = PSPLIT_NONE;
  psplit_code code = PSPLIT_OK;
  const psplit_model *model = at->s->graph->model;
  if (psplit_i_is_int_type(tensor->data_type)) {
    code = psplit_i_tensor_int64s(model, tensor, 1, &scratch, at->s->diag, &ints, &n);
    if (code == PSPLIT_OK && n == 1) value = psplit_i_dim_const(at->dims, ints[0]);
  } else if (psplit_i_is_real_type(tensor->data_type)) {
    code = psplit_i_tensor_doubles(model, tensor, 1, &scratch, at->s->diag, &reals, &n);
    if (code == PSPLIT_OK && n == 1) value = psplit_i_dim_real(at->dims, reals[0]);
  }
  if (code != PSPLIT_OK) psplit_i_read_failed(at->s, code);
  psplit_i_arena_fini(&scratch);
  return value;
}

static void fill_elements(psplit_i_site *at, psplit_dim value) {
  if (!psplit_i_wants(at, 0) || value == PSPLIT_NONE) return;
  int64_t n;
  if (!psplit_i_count(at->dims, &at->scope->types[at->node->outputs[0]], &n) || n > 1024) return;
  psplit_dim *elements = psplit_i_new_elements(at, n);
  if (!elements) return;
  for (int64_t i = 0; i < n; i++) elements[i] = value;
  psplit_i_out_elements(at, 0, elements, (uint32_t)n);
}

void psplit_i_infer_constant_of_shape(psplit_i_site *at) {
  const Onnx__AttributeProto *a = psplit_i_attribute(at, "value");
  const psplit_i_tensor tensor = a && a->t ? psplit_i_tensor_of(a->t) : (psplit_i_tensor){0};
  const int32_t elem = a && a->t ? tensor.data_type : FLOAT;
  uint32_t n;
  int64_t count;
  psplit_dim dims[PSPLIT_MAX_RANK];
  const psplit_dim *shape = psplit_i_elements(at, 0, &n);
  if (shape) {
    if (n <= PSPLIT_MAX_RANK && n) memcpy(dims, shape, n * sizeof *dims);
    psplit_i_out(at, 0, elem, n <= PSPLIT_MAX_RANK ? (int32_t)n : -1, dims);
    fill_elements(at, a && a->t ? fill_value(at, &tensor) : psplit_i_dim_const(at->dims, 0));
  } else if (psplit_i_rank(at, 0) == 1 && psplit_i_count(at->dims, psplit_i_in(at, 0), &count) &&
             count <= PSPLIT_MAX_RANK) {
    psplit_i_fresh_dims(at, (int32_t)count, dims);
    psplit_i_out(at, 0, elem, (int32_t)count, dims);
  } else {
    psplit_i_out(at, 0, elem, -1, NULL);
  }
}

/* Number of steps from start to limit, and the elements where they are few. */
void psplit_i_infer_range(psplit_i_site *at) {
  const int32_t elem = psplit_i_elem(at, 0);
  uint32_t n[3];
  const psplit_dim *start = psplit_i_elements(at, 0, &n[0]);
  const psplit_dim *limit = start ? psplit_i_elements(at, 1, &n[1]) : NULL;
  const psplit_dim *delta = limit ? psplit_i_elements(at, 2, &n[2]) : NULL;
  psplit_dim count = psplit_i_dim_const(at->dims, 0);
  bool known = delta && n[0] == 1 && n[1] == 1 && n[2] == 1;
  double a, b, d;
  int64_t step;
  if (known && psplit_i_dim_is_real(at->dims, *start, &a) &&
      psplit_i_dim_is_real(at->dims, *limit, &b) && psplit_i_dim_is_real(at->dims, *delta, &d)) {
    const double steps = ceil((b - a) / d);
    known = d != 0 && steps < 9e15 && steps > -9e15;
    if (known) count = psplit_i_dim_const(at->dims, steps > 0 ? (int64_t)steps : 0);
  } else if (known && psplit_i_dim_is_const(at->dims, *delta, &step) && step != 0 &&
             step > INT32_MIN && psplit_i_dim_is_integer(at->dims, *start) &&
             psplit_i_dim_is_integer(at->dims, *limit)) {
    const psplit_dim distance = step > 0 ? psplit_i_dim_sub(at->dims, *limit, *start)
                                         : psplit_i_dim_sub(at->dims, *start, *limit);
    count = psplit_i_dim_ceil_div(at->dims, distance,
                                  psplit_i_dim_const(at->dims, step > 0 ? step : -step));
    /* A lone unknown integer stands for itself: were it negative, a run would give 0. */
    if (!psplit_i_dim_is_anonymous(at->dims, count))
      count = psplit_i_dim_max(at->dims, count, psplit_i_dim_const(at->dims, 0));
  } else {
    known = false;
  }
  if (!known) count = psplit_i_dim_fresh(at->dims);
  psplit_i_out(at, 0, elem, 1, &count);
  int64_t total;
  if (!known || !psplit_i_is_int_type(elem) || !psplit_i_dim_is_const(at->dims, count, &total))
    return;
  psplit_dim *elements = psplit_i_new_elements(at, total);
  if (!elements) return;
  for (int64_t i = 0; i < total; i++)
    elements[i] = psplit_i_dim_add(at->dims, *start, psplit_i_dim_mul_const(at->dims, *delta, i));
  psplit_i_out_elements(at, 0, elements, (uint32_t)total);
}

void psplit_i_infer_expand(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim target[PSPLIT_MAX_RANK], dims[PSPLIT_MAX_RANK];
  int32_t n;
  if (data->rank < 0 || !target_shape(at, target, &n)) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  const int32_t rank = n > data->rank ? n : data->rank;
  for (int32_t i = 0; i < rank; i++) {
    const int32_t own = i - (rank - data->rank), asked_at = i - (rank - n);
    dims[i] = own < 0 ? target[asked_at] : data->dims[own];
    if (own < 0 || asked_at < 0) continue;
    dims[i] = psplit_i_dim_broadcast(at->dims, data->dims[own], target[asked_at]);
    if (dims[i] != PSPLIT_NONE) continue;
    psplit_i_sizes_differ(at, data->dims[own], target[asked_at]);
    dims[i] = psplit_i_dim_fresh(at->dims);
  }
  psplit_i_out(at, 0, data->elem, rank, dims);
  uint32_t n_elements;
  const psplit_dim *elements = psplit_i_known_elements(at, 0, &n_elements);
  if (elements && n_elements == 1) fill_elements(at, elements[0]);
}

void psplit_i_infer_tile(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  uint32_t n;
  const psplit_dim *repeats = psplit_i_elements(at, 1, &n);
  if (data->rank < 0) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  if (at->node->opset > 0 && at->node->opset < 6) {
    int64_t axis;
    int32_t on;
    psplit_i_fresh_dims(at, data->rank, dims);
    if (psplit_i_int_input(at, 2, &axis) && psplit_i_axis(axis, data->rank, &on)) {
      const psplit_dim times = psplit_i_element_or_fresh(at, 1);
      for (int32_t i = 0; i < data->rank; i++)
        dims[i] = i == on ? psplit_i_dim_mul(at->dims, data->dims[i], times) : data->dims[i];
    }
  } else {
    for (int32_t i = 0; i < data->rank; i++)
      dims[i] = repeats && (int32_t)n == data->rank
                  ? psplit_i_dim_mul(at->dims, data->dims[i], repeats[i])
                  : psplit_i_dim_fresh(at->dims);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
  uint32_t n_elements;
  const psplit_dim *elements = psplit_i_known_elements(at, 0, &n_elements);
  int64_t total;
  if (data->rank != 1 || !elements || n_elements == 0 || !psplit_i_wants(at, 0) ||
      !psplit_i_count(at->dims, &at->scope->types[at->node->outputs[0]], &total))
    return;
  psplit_dim *out = psplit_i_new_elements(at, total);
  if (!out) return;
  for (int64_t i = 0; i < total; i++) out[i] = elements[i % n_elements];
  psplit_i_out_elements(at, 0, out, (uint32_t)total);
}

/* RandomNormal and RandomUniform: shape and type are attributes. */
void psplit_i_infer_random(psplit_i_site *at) {
  size_t n;
  const int64_t *list = psplit_i_int_list(at, "shape", &n);
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (size_t i = 0; i < n && i < PSPLIT_MAX_RANK; i++)
    dims[i] = list[i] < 0 ? psplit_i_dim_fresh(at->dims) : psplit_i_dim_const(at->dims, list[i]);
  psplit_i_out(at, 0, psplit_i_elem_named(at, "dtype", FLOAT),
               list && n <= PSPLIT_MAX_RANK ? (int32_t)n : -1, dims);
}

/* Windows of a size that input 0 holds. */
void psplit_i_infer_window(psplit_i_site *at) {
  const psplit_dim dim = psplit_i_element_or_fresh(at, 0);
  psplit_i_out(at, 0, psplit_i_elem_named(at, "output_datatype", FLOAT), 1, &dim);
}

void psplit_i_infer_mel_weight_matrix(psplit_i_site *at) {
  const psplit_dim half = psplit_i_dim_floor_div(at->dims, psplit_i_element_or_fresh(at, 1),
                                                 psplit_i_dim_const(at->dims, 2));
  const psplit_dim dims[2] = {psplit_i_dim_add_const(at->dims, half, 1),
                              psplit_i_element_or_fresh(at, 0)};
  psplit_i_out(at, 0, psplit_i_elem_named(at, "output_datatype", FLOAT), 2, dims);
}
