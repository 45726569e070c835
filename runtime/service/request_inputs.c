#include "request_inputs.h"

#include <inttypes.h>
#include <string.h>

#include "name_list.h"

/* What symbolic dimensions are in this request: each is one number. */
enum { MOST_SYMBOLS = 64 };
typedef struct symbols {
  const char *names[MOST_SYMBOLS];
  int64_t values[MOST_SYMBOLS];
  uint32_t n;
} symbols;

static psplit_code bind(symbols *s, const char *name, int64_t value, psplit_diag *diag) {
  for (uint32_t i = 0; i < s->n; i++) {
    if (strcmp(s->names[i], name) != 0) continue;
    if (s->values[i] == value) return PSPLIT_OK;
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "dimension %s is %" PRId64 " and, in another place, %" PRId64, name, value,
                         s->values[i]);
  }
  if (s->n == MOST_SYMBOLS) return PSPLIT_OK; /* the runtime sees to it */
  s->names[s->n] = name;
  s->values[s->n++] = value;
  return PSPLIT_OK;
}

static psplit_code check_shape(const psplit_i_manifest_value *declared,
                               const psplit_tensor_view *given, symbols *s, psplit_diag *diag) {
  const psplit_i_shape *shape = &declared->shape;
  psplit_code code = PSPLIT_OK;
  if (shape->rank < 0) return PSPLIT_OK;
  if (given->n_dims != (uint32_t)shape->rank)
    return psplit_i_fail(diag, PSPLIT_INVALID, "it has %u dimensions, the model's has %d",
                         given->n_dims, (int)shape->rank);
  for (uint32_t d = 0; d < given->n_dims && code == PSPLIT_OK; d++) {
    const psplit_i_manifest_dim *dim = &shape->dims[d];
    if (dim->value >= 0 && dim->value != given->dims[d])
      code =
        psplit_i_fail(diag, PSPLIT_INVALID, "dimension %u is %" PRId64 ", the model's is %" PRId64,
                      d, given->dims[d], dim->value);
    else if (dim->param)
      code = bind(s, dim->param, given->dims[d], diag);
  }
  return code;
}

static psplit_code check(const psplit_i_manifest_value *declared, const psplit_tensor_view *given,
                         symbols *s, psplit_diag *diag) {
  uint64_t n_elements, n_bytes;
  const char *type = psplit_i_element_name(given->data_type);
  const bool is_string = type && !psplit_i_element_bits(given->data_type);
  if (!type)
    return psplit_i_fail(diag, PSPLIT_INVALID, "unknown data type %d", (int)given->data_type);
  if (declared->dtype && strcmp(declared->dtype, type) != 0)
    return psplit_i_fail(diag, PSPLIT_INVALID, "it is %s, the model's is %s", type,
                         declared->dtype);
  if (given->n_dims > PSPLIT_I_MAX_RANK)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "it has more than %d dimensions", PSPLIT_I_MAX_RANK);
  if (!psplit_i_tensor_size(given->data_type, given->dims, given->n_dims, &n_elements, &n_bytes) ||
      (is_string ? n_elements > given->n_bytes / sizeof(uint64_t) : n_bytes != given->n_bytes) ||
      (given->n_bytes && !given->data))
    return psplit_i_fail(diag, PSPLIT_INVALID, "it has %" PRIu64 " bytes, which is not its shape's",
                         given->n_bytes);
  return check_shape(declared, given, s, diag);
}

static psplit_code copy(const psplit_i_ort *ort, const psplit_tensor_view *given, psplit_diag *diag,
                        psplit_i_tensor **out) {
  psplit_i_tensor_view view;
  psplit_code code;
  PSPLIT_TRY(
    psplit_i_tensor_make(ort, given->data_type, given->dims, given->n_dims, diag, out, &view));
  if (!psplit_i_element_bits(given->data_type))
    return view.n_elements
             ? psplit_i_tensor_unpack(*out, view.n_elements, given->data, given->n_bytes, diag)
             : PSPLIT_OK;
  if (view.n_bytes) memcpy(view.data, given->data, (size_t)view.n_bytes);
out:
  return code;
}

psplit_code psplit_i_request_inputs_take(const psplit_i_ort *ort, const psplit_i_manifest *m,
                                         const psplit_request *request, psplit_diag *diag,
                                         psplit_i_tensor **out) {
  symbols s = {.n = 0};
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < request->n_inputs; i++) {
    const psplit_named_tensor *given = &request->inputs[i];
    const uint32_t at =
      given->name ? psplit_i_name_find(m->inputs, m->n_inputs, given->name) : PSPLIT_NONE;
    if (at == PSPLIT_NONE)
      return psplit_i_fail_unknown(diag, PSPLIT_SUBJECT_NONE, "the model has no input",
                                   given->name ? given->name : "without a name", m->inputs,
                                   m->n_inputs);
    if (at >= m->n_needed)
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "input %s has a default, which a request cannot override", given->name);
    if (out[at]) return psplit_i_fail(diag, PSPLIT_USAGE, "input %s is given twice", given->name);
    code = check(&m->input_values[at], &given->tensor, &s, diag);
    if (code == PSPLIT_OK) code = copy(ort, &given->tensor, diag, &out[at]);
    if (code != PSPLIT_OK) {
      psplit_i_diag_context(diag, "input %s", given->name);
      return code;
    }
  }
  for (uint32_t i = 0; i < m->n_needed; i++)
    if (!out[i])
      return psplit_i_fail(diag, PSPLIT_USAGE, "there is no data for input %s", m->inputs[i]);
  return code;
}
