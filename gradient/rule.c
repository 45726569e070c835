/* Access of rules to a node: types, attributes, known contents, values. */
#include "rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "constants.h"
#include "fields.h"
#include "onnx.pb-c.h"
#include "wire.h"

const psplit_i_vtype *psplit_i_type_in(const psplit_i_at *at, uint32_t input) {
  static const psplit_i_vtype unknown = {.rank = -1};
  return psplit_i_given(at, input) ? psplit_i_shapes_type(at->pass->shapes, at->node->inputs[input])
                                   : &unknown;
}

const psplit_i_vtype *psplit_i_type_out(const psplit_i_at *at, uint32_t output) {
  static const psplit_i_vtype unknown = {.rank = -1};
  return output < at->node->n_outputs && at->node->outputs[output] != PSPLIT_NONE
           ? psplit_i_shapes_type(at->pass->shapes, at->node->outputs[output])
           : &unknown;
}

bool psplit_i_given(const psplit_i_at *at, uint32_t input) {
  return input < at->node->n_inputs && at->node->inputs[input] != PSPLIT_NONE;
}

int32_t psplit_i_need_rank(psplit_i_at *at, uint32_t input) {
  const int32_t rank = psplit_i_type_in(at, input)->rank;
  if (rank < 0) {
    char what[64];
    snprintf(what, sizeof what, "the rank of its input %" PRIu32, input);
    psplit_i_refuse_rank(at, what);
  }
  return rank;
}

bool psplit_i_size(const psplit_i_at *at, const psplit_i_vtype *type, int32_t axis, int64_t *out) {
  if (axis < 0) axis += type->rank;
  if (axis < 0 || axis >= type->rank) return false;
  return psplit_i_dim_is_const(psplit_i_shapes_dims(at->pass->shapes), type->dims[axis], out);
}

bool psplit_i_sizes(const psplit_i_at *at, const psplit_i_vtype *type, int64_t *out,
                    int64_t *out_count) {
  int64_t count = 1;
  if (type->rank < 0) return false;
  for (int32_t axis = 0; axis < type->rank; axis++)
    if (!psplit_i_size(at, type, axis, &out[axis]) || out[axis] < 0 ||
        __builtin_mul_overflow(count, out[axis], &count))
      return false;
  if (out_count) *out_count = count;
  return true;
}

bool psplit_i_known_ints(const psplit_i_at *at, uint32_t input, int64_t *out, uint32_t max,
                         uint32_t *out_n) {
  const psplit_i_vtype *type = psplit_i_type_in(at, input);
  if (!type->elements) {
    /* A tensor of no elements has no contents to know. */
    int64_t n;
    *out_n = 0;
    return type->rank == 1 && psplit_i_size(at, type, 0, &n) && n == 0;
  }
  if (type->n_elements > max) return false;
  for (uint32_t i = 0; i < type->n_elements; i++)
    if (!psplit_i_dim_is_const(psplit_i_shapes_dims(at->pass->shapes), type->elements[i], &out[i]))
      return false;
  *out_n = type->n_elements;
  return true;
}

bool psplit_i_known_number(const psplit_i_at *at, uint32_t input, double *out) {
  bool known = false;
  if (!psplit_i_given(at, input)) return false;
  const uint32_t v = at->node->inputs[input];
  if (at->pass->origin[v] != PSPLIT_NONE) return false; /* training changes it */
  if (psplit_i_constant_number(at->pass->shapes, v, NULL, &known, out) != PSPLIT_OK)
    at->b->failed = true;
  return known;
}

int64_t psplit_i_int_or(const psplit_i_at *at, const char *name, int64_t fallback) {
  int64_t value;
  return psplit_i_attr_int(at->node, name, &value) ? value : fallback;
}

float psplit_i_float_or(const psplit_i_at *at, const char *name, float fallback) {
  float value;
  return psplit_i_attr_float(at->node, name, &value) ? value : fallback;
}

bool psplit_i_text_equals(const psplit_i_at *at, const char *name, const char *text) {
  const char *value;
  size_t n;
  return psplit_i_attr_string(at->node, name, &value, &n) && n == strlen(text) &&
         memcmp(value, text, n) == 0;
}

void psplit_i_copy_attributes(psplit_i_at *at) {
  for (size_t i = 0; i < at->node->n_attributes; i++) {
    const Onnx__AttributeProto *attribute = at->node->attributes[i];
    const size_t n = onnx__attribute_proto__get_packed_size(attribute);
    uint8_t *bytes = malloc(n ? n : 1);
    psplit_i_text field = {0};
    if (bytes) {
      onnx__attribute_proto__pack(attribute, bytes);
      psplit_i_wire_bytes(&field, PSPLIT_I_NODE_ATTRIBUTE, bytes, n);
      psplit_i_backward_attr_fields(at->b, field.bytes, field.n);
    }
    if (!bytes || field.failed) at->b->failed = true;
    psplit_i_text_fini(&field);
    free(bytes);
  }
}

bool psplit_i_texts_repeat(const psplit_i_at *at, const char *name, const char *const *texts,
                           size_t n) {
  for (size_t i = 0; i < at->node->n_attributes; i++) {
    const Onnx__AttributeProto *attribute = at->node->attributes[i];
    if (!attribute->name || strcmp(attribute->name, name) != 0) continue;
    for (size_t k = 0; k < attribute->n_strings; k++)
      if (attribute->strings[k].len != strlen(texts[k % n]) ||
          strncasecmp((const char *)attribute->strings[k].data, texts[k % n],
                      attribute->strings[k].len) != 0)
        return false;
  }
  return true;
}

int32_t psplit_i_axis_of(psplit_i_at *at, int64_t axis, int32_t rank) {
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return (int32_t)axis;
  psplit_i_refuse(at, "its axis is out of range");
  return 0;
}

bool psplit_i_axes_of(psplit_i_at *at, uint32_t input, int32_t rank, int64_t *out,
                      uint32_t *out_n) {
  const int64_t *list;
  size_t n;
  int64_t given[PSPLIT_MAX_RANK];
  uint32_t n_given = 0;
  if (psplit_i_attr_ints(at->node, "axes", &list, &n)) {
    if (n > PSPLIT_MAX_RANK) return false;
    for (size_t i = 0; i < n; i++) given[n_given++] = list[i];
  } else if (psplit_i_given(at, input) &&
             !psplit_i_known_ints(at, input, given, PSPLIT_MAX_RANK, &n_given)) {
    psplit_i_refuse(at, "its axes are not constant");
    return false;
  }
  bool chosen[PSPLIT_MAX_RANK] = {false};
  for (uint32_t i = 0; i < n_given; i++) chosen[psplit_i_axis_of(at, given[i], rank)] = true;
  *out_n = 0;
  for (int32_t axis = 0; axis < rank && n_given; axis++)
    if (chosen[axis]) out[(*out_n)++] = axis;
  return at->pass->code == PSPLIT_OK;
}

psplit_i_ref psplit_i_in_value(psplit_i_at *at, uint32_t input) {
  if (!psplit_i_given(at, input)) return PSPLIT_NONE;
  return psplit_i_backward_forward(at->b, at->node->inputs[input]);
}

psplit_i_ref psplit_i_out_value(psplit_i_at *at, uint32_t output) {
  if (output >= at->node->n_outputs || at->node->outputs[output] == PSPLIT_NONE) {
    psplit_i_refuse(at, "its output %u, which the backward pass reads, is left out",
                    (unsigned)output);
    return PSPLIT_NONE;
  }
  return psplit_i_backward_forward(at->b, at->node->outputs[output]);
}

void psplit_i_widen(psplit_i_at *at) {
  if (psplit_i_is_half(at->elem)) at->elem = PSPLIT_ELEM_FLOAT;
}

psplit_i_ref psplit_i_wide(psplit_i_at *at, psplit_i_ref a, int32_t elem) {
  return a != PSPLIT_NONE && psplit_i_is_half(elem) && !psplit_i_is_half(at->elem)
           ? cast(at, a, at->elem)
           : a;
}

void psplit_i_give_narrowed(psplit_i_at *at, uint32_t input, psplit_i_ref gradient) {
  if (!wanted(at, input) || gradient == PSPLIT_NONE) return;
  const int32_t known = psplit_i_type_in(at, input)->elem, elem = known ? known : at->narrow;
  give(at, input, psplit_i_is_half(elem) && elem != at->elem ? cast(at, gradient, elem) : gradient);
}
