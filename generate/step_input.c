#include "step_input.h"

#include <inttypes.h>

#include "casts.h"
#include "feed_check.h"

/* What is added to the score of a token that must not be looked at: exp of it is 0 in any type. */
#define FORBIDDEN (-65504.0)

static bool goes_by_token(psplit_i_role role) {
  return role == PSPLIT_I_ROLE_IDS || role == PSPLIT_I_ROLE_POSITIONS ||
         role == PSPLIT_I_ROLE_TYPES;
}

/* A mask with a row for each new token. */
static bool has_rows(psplit_i_role role, size_t n_dims) {
  return role == PSPLIT_I_ROLE_MASK && n_dims > 2;
}

/* A tensor of the input's type with the sizes that it takes: of open dimensions the last one goes
 * by tokens, that before it too where there are rows, others are 1. */
static psplit_code make(const psplit_i_ort *ort, const psplit_i_manifest_value *value,
                        psplit_i_role role, const psplit_i_step_tokens *step, psplit_diag *diag,
                        psplit_i_tensor **out) {
  int64_t dims[PSPLIT_I_MAX_RANK];
  psplit_i_session_port port;
  const int64_t n_new = (int64_t)(step->n_tokens - step->n_past);
  const int64_t last = goes_by_token(role)          ? n_new
                       : role == PSPLIT_I_ROLE_MASK ? (int64_t)step->n_tokens
                                                    : 1;
  psplit_i_declared_port(value, &port);
  for (size_t d = 0; d < port.n_dims; d++) {
    const size_t behind = port.n_dims - d - 1;
    const int64_t open = behind == 0                                  ? last
                         : behind == 1 && has_rows(role, port.n_dims) ? n_new
                                                                      : 1;
    dims[d] = port.dims[d] >= 0 ? port.dims[d] : open;
  }
  return psplit_i_tensor_create(ort, port.data_type, dims, port.n_dims, diag, out);
}

/* Sizes that are fixed have to be those of the step. */
static psplit_code check(const char *name, psplit_i_role role, const psplit_i_tensor_view *view,
                         const psplit_i_step_tokens *step, psplit_diag *diag) {
  const uint64_t n_new = step->n_tokens - step->n_past;
  const uint64_t last = view->n_dims ? (uint64_t)view->dims[view->n_dims - 1] : 1;
  const uint64_t rows = view->n_dims > 1 ? (uint64_t)view->dims[view->n_dims - 2] : 1;
  if (goes_by_token(role) && last != n_new)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "input %s takes %" PRIu64 " tokens a step, not %" PRIu64, name, last,
                         n_new);
  if (has_rows(role, view->n_dims) && rows != n_new)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "input %s takes %" PRIu64 " tokens a step, not %" PRIu64, name, rows,
                         n_new);
  if (role == PSPLIT_I_ROLE_MASK && last < step->n_tokens)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "input %s has room for %" PRIu64 " tokens, not %" PRIu64, name, last,
                         step->n_tokens);
  return PSPLIT_OK;
}

static double number_of_mask(const psplit_i_tensor_view *view, const psplit_i_step_tokens *step,
                             uint64_t at) {
  const uint64_t n = view->n_dims ? (uint64_t)view->dims[view->n_dims - 1] : 1;
  if (!has_rows(PSPLIT_I_ROLE_MASK, view->n_dims)) return at % n < step->n_tokens;
  const uint64_t row = at / n % (uint64_t)view->dims[view->n_dims - 2];
  const bool seen = at % n <= step->n_past + row;
  return !psplit_i_element_is_float(view->data_type) ? seen : seen ? 0 : FORBIDDEN;
}

/* The number at place `at`. */
static double number_of(psplit_i_role role, const psplit_i_tensor_view *view,
                        const psplit_i_step_tokens *step, uint64_t at) {
  const uint64_t n_new = step->n_tokens - step->n_past;
  switch (role) {
    case PSPLIT_I_ROLE_IDS: return (double)step->tokens[step->n_past + at % n_new];
    case PSPLIT_I_ROLE_TYPES: return 0;
    case PSPLIT_I_ROLE_MASK: return number_of_mask(view, step, at);
    case PSPLIT_I_ROLE_POSITIONS: return (double)(step->n_past + at % n_new);
    case PSPLIT_I_ROLE_LAST: return (double)(step->n_tokens - 1);
    case PSPLIT_I_ROLE_TOTAL: return (double)step->n_tokens;
    default: return step->n_past > 0;
  }
}

bool psplit_i_step_input_may_be_given(psplit_i_role role) {
  return role == PSPLIT_I_ROLE_POSITIONS || role == PSPLIT_I_ROLE_TYPES ||
         role == PSPLIT_I_ROLE_MASK;
}

static uint64_t size_from_end(const psplit_i_tensor_view *view, size_t behind) {
  return behind < view->n_dims ? (uint64_t)view->dims[view->n_dims - behind - 1] : 1;
}

/* The columns of what is given stand for tokens, and the rows of a mask that has them too. */
static psplit_code check_given(const char *name, psplit_i_role role,
                               const psplit_i_tensor_view *given, const psplit_i_step_tokens *step,
                               psplit_diag *diag) {
  const uint64_t columns = size_from_end(given, 0), rows = size_from_end(given, 1);
  const uint64_t n = has_rows(role, given->n_dims) ? (rows < columns ? rows : columns) : columns;
  if (n >= step->n_tokens && given->n_elements) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_USAGE,
                       "input %s is given for %" PRIu64 " tokens, and there are %" PRIu64, name, n,
                       step->n_tokens);
}

/* What is given for place `at` of the step. */
static double given_number(psplit_i_role role, const psplit_i_tensor_view *view,
                           const psplit_i_tensor_view *given, const psplit_i_step_tokens *step,
                           uint64_t at) {
  const uint64_t columns = size_from_end(given, 0), n = size_from_end(view, 0);
  const uint64_t column = at % n + (goes_by_token(role) ? step->n_past : 0);
  const uint64_t row = at / n + (has_rows(role, view->n_dims) ? step->n_past : 0);
  if (column >= step->n_tokens) return 0; /* of a mask of a fixed size */
  return psplit_i_tensor_number(given, row % (given->n_elements / columns) * columns + column);
}

psplit_code psplit_i_step_input_make(const psplit_i_ort *ort, const psplit_i_step_input *input,
                                     const psplit_i_tensor *given, const psplit_i_step_tokens *step,
                                     psplit_diag *diag, psplit_i_tensor **out) {
  psplit_code code;
  const psplit_i_role role = input->role;
  const char *name = input->name;
  psplit_i_tensor_view view, all;
  PSPLIT_TRY(make(ort, input->declared, role, step, diag, out));
  PSPLIT_TRY(psplit_i_tensor_look(*out, diag, &view));
  PSPLIT_TRY(check(name, role, &view, step, diag));
  if (given) {
    PSPLIT_TRY(psplit_i_tensor_look(given, diag, &all));
    PSPLIT_TRY(check_given(name, role, &all, step, diag));
  }
  for (uint64_t i = 0; i < view.n_elements; i++) {
    const double number =
      given ? given_number(role, &view, &all, step, i) : number_of(role, &view, step, i);
    if (!psplit_i_element_holds(view.data_type, number))
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "input %s does not hold %.0f", name, number);
    psplit_i_tensor_set_number(&view, i, number);
  }
out:
  return code;
}
