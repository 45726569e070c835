#include "batching.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int32_t axis_of(const psplit_i_manifest_value *value, const char *name) {
  for (int32_t d = 0; d < value->shape.rank; d++)
    if (value->shape.dims[d].param && strcmp(value->shape.dims[d].param, name) == 0) return d;
  return -1;
}

/* Symbols of inputs, for a message. */
static psplit_code no_such(const psplit_i_manifest *m, const char *name, psplit_diag *diag) {
  psplit_i_intern names;
  psplit_code code = PSPLIT_OK;
  psplit_i_intern_init(&names);
  for (uint32_t i = 0; i < m->n_needed && code == PSPLIT_OK; i++)
    for (int32_t d = 0; d < m->input_values[i].shape.rank; d++) {
      const char *param = m->input_values[i].shape.dims[d].param;
      if (param && psplit_i_intern_add(&names, param) == PSPLIT_NONE) code = psplit_i_nomem(diag);
    }
  if (code == PSPLIT_OK)
    code = psplit_i_fail_unknown(diag, PSPLIT_SUBJECT_BATCH_DIM, "no input has a dimension", name,
                                 names.text, names.n);
  psplit_i_intern_fini(&names);
  return code;
}

static psplit_code find_axes(psplit_i_batching *b, const char *name, psplit_diag *diag) {
  const psplit_i_manifest *m = b->manifest;
  bool any = false;
  b->input_axes = calloc((size_t)m->n_needed + 1, sizeof *b->input_axes);
  b->output_axes = calloc((size_t)m->n_outputs + 1, sizeof *b->output_axes);
  if (!b->input_axes || !b->output_axes) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < m->n_needed; i++) {
    b->input_axes[i] = axis_of(&m->input_values[i], name);
    any |= b->input_axes[i] >= 0;
  }
  if (!any) return no_such(m, name, diag);
  for (uint32_t o = 0; o < m->n_outputs; o++) {
    const psplit_i_manifest_value *value = &m->output_values[o];
    b->output_axes[o] = axis_of(value, name);
    if (b->output_axes[o] < 0 || (value->dtype && strcmp(value->dtype, "string") == 0))
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "requests cannot be joined along %s: output %s has no such dimension, "
                           "or is of strings",
                           name, m->outputs[o]);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_batching_init(const psplit_i_ort *ort, const psplit_i_manifest *manifest,
                                   const char *name, psplit_diag *diag, psplit_i_batching *out) {
  psplit_i_batching made = {.ort = ort, .manifest = manifest};
  const psplit_code code = find_axes(&made, name, diag);
  if (code == PSPLIT_OK)
    *out = made;
  else
    psplit_i_batching_fini(&made);
  return code;
}

void psplit_i_batching_fini(psplit_i_batching *b) {
  free(b->input_axes);
  free(b->output_axes);
  b->input_axes = b->output_axes = NULL;
}

/* A tensor as blocks: `n_outer` of them, each of dims[axis] rows of `row_bytes`. */
typedef struct blocks {
  psplit_i_tensor_view view;
  uint64_t n_outer, row_bytes;
} blocks;

/* Errors: INVALID where it has no rows of whole bytes along `axis`. */
static psplit_code look(const psplit_i_tensor *tensor, int32_t axis, psplit_diag *diag,
                        blocks *out) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &out->view));
  const uint32_t bits = psplit_i_element_bits(out->view.data_type);
  if (bits < 8 || (size_t)axis >= out->view.n_dims)
    return psplit_i_fail(diag, PSPLIT_INVALID, "a tensor of %zu dimensions and type %s has no rows",
                         out->view.n_dims, psplit_i_element_name(out->view.data_type));
  out->n_outer = 1;
  out->row_bytes = bits / 8;
  for (int32_t d = 0; d < axis; d++) out->n_outer *= (uint64_t)out->view.dims[d];
  for (size_t d = (size_t)axis + 1; d < out->view.n_dims; d++)
    out->row_bytes *= (uint64_t)out->view.dims[d];
out:
  return code;
}

int64_t psplit_i_batching_rows(const psplit_i_batching *b, psplit_i_tensor *const *inputs) {
  int64_t rows = -1;
  psplit_diag ignored = {0};
  for (uint32_t i = 0; i < b->manifest->n_needed; i++) {
    blocks x;
    if (b->input_axes[i] < 0) continue;
    if (look(inputs[i], b->input_axes[i], &ignored, &x) != PSPLIT_OK) return -1;
    if (rows >= 0 && x.view.dims[b->input_axes[i]] != rows) return -1;
    rows = x.view.dims[b->input_axes[i]];
  }
  return rows;
}

/* The same but for the dimension `axis`, which may be -1. */
static bool is_like(const psplit_i_tensor_view *x, const psplit_i_tensor_view *y, int32_t axis) {
  if (x->data_type != y->data_type || x->n_dims != y->n_dims) return false;
  for (size_t d = 0; d < x->n_dims; d++)
    if ((int32_t)d != axis && x->dims[d] != y->dims[d]) return false;
  return axis >= 0 || (x->data && memcmp(x->data, y->data, (size_t)x->n_bytes) == 0);
}

bool psplit_i_batching_fits(const psplit_i_batching *b, psplit_i_tensor *const *a,
                            psplit_i_tensor *const *c) {
  psplit_diag ignored = {0};
  for (uint32_t i = 0; i < b->manifest->n_needed; i++) {
    psplit_i_tensor_view x, y;
    if (psplit_i_tensor_look(a[i], &ignored, &x) != PSPLIT_OK ||
        psplit_i_tensor_look(c[i], &ignored, &y) != PSPLIT_OK || !is_like(&x, &y, b->input_axes[i]))
      return false;
  }
  return true;
}

static psplit_code join_one(const psplit_i_batching *b, psplit_i_tensor *const *const *inputs,
                            size_t n, uint32_t i, psplit_diag *diag, psplit_i_tensor **out) {
  const int32_t axis = b->input_axes[i];
  blocks first, part;
  psplit_i_tensor_view all;
  psplit_code code;
  if (axis < 0) {
    *out = psplit_i_tensor_hold(inputs[0][i]);
    return PSPLIT_OK;
  }
  assert(n > 0);
  PSPLIT_TRY(look(inputs[0][i], axis, diag, &first));
  int64_t n_rows = first.view.dims[axis];
  for (size_t r = 1; r < n; r++) {
    PSPLIT_TRY(look(inputs[r][i], axis, diag, &part));
    n_rows += part.view.dims[axis];
  }
  first.view.dims[axis] = n_rows;
  PSPLIT_TRY(psplit_i_tensor_make(b->ort, first.view.data_type, first.view.dims, first.view.n_dims,
                                  diag, out, &all));
  uint64_t row = 0;
  for (size_t r = 0; r < n; r++) {
    PSPLIT_TRY(look(inputs[r][i], axis, diag, &part));
    const uint64_t bytes = (uint64_t)part.view.dims[axis] * part.row_bytes;
    for (uint64_t o = 0; o < first.n_outer && bytes; o++)
      memcpy((char *)all.data + (o * (uint64_t)n_rows + row) * first.row_bytes,
             (const char *)part.view.data + o * bytes, (size_t)bytes);
    row += (uint64_t)part.view.dims[axis];
  }
out:
  return code;
}

psplit_code psplit_i_batching_join(const psplit_i_batching *b,
                                   psplit_i_tensor *const *const *inputs, size_t n,
                                   psplit_diag *diag, psplit_i_tensor **out) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < b->manifest->n_needed; i++)
    PSPLIT_TRY(join_one(b, inputs, n, i, diag, &out[i]));
out:
  return code;
}

static psplit_code split_one(const psplit_i_batching *b, const psplit_i_tensor *output,
                             int32_t axis, psplit_i_batch_rows rows, psplit_diag *diag,
                             psplit_i_tensor **out) {
  blocks all;
  psplit_i_tensor_view part;
  psplit_code code;
  PSPLIT_TRY(look(output, axis, diag, &all));
  if (all.view.dims[axis] != rows.n_all)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "it does not have the %" PRId64 " rows of the joined requests",
                         rows.n_all);
  all.view.dims[axis] = rows.n;
  PSPLIT_TRY(psplit_i_tensor_make(b->ort, all.view.data_type, all.view.dims, all.view.n_dims, diag,
                                  out, &part));
  const uint64_t bytes = (uint64_t)rows.n * all.row_bytes;
  for (uint64_t o = 0; o < all.n_outer && bytes; o++)
    memcpy((char *)part.data + o * bytes,
           (const char *)all.view.data +
             (o * (uint64_t)rows.n_all + (uint64_t)rows.first) * all.row_bytes,
           (size_t)bytes);
out:
  return code;
}

psplit_code psplit_i_batching_split(const psplit_i_batching *b, psplit_i_tensor *const *outputs,
                                    psplit_i_batch_rows rows, psplit_diag *diag,
                                    psplit_i_tensor **out) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < b->manifest->n_outputs && code == PSPLIT_OK; i++) {
    code = split_one(b, outputs[i], b->output_axes[i], rows, diag, &out[i]);
    if (code != PSPLIT_OK) psplit_i_diag_context(diag, "output %s", b->manifest->outputs[i]);
  }
  return code;
}
