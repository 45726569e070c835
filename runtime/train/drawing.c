#include "drawing.h"

#include <psplit/random.h>
#include <stdlib.h>
#include <string.h>

#include "name_list.h"

psplit_code psplit_i_symbols_list(const psplit_i_manifest *m, psplit_diag *diag,
                                  psplit_i_symbols *out) {
  size_t most = 1;
  for (uint32_t i = 0; i < m->n_inputs; i++)
    if (m->input_values[i].shape.rank > 0) most += (size_t)m->input_values[i].shape.rank;
  *out = (psplit_i_symbols){.names = calloc(most, sizeof *out->names)};
  if (!out->names) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < m->n_inputs; i++)
    for (int32_t a = 0; a < m->input_values[i].shape.rank; a++) {
      const char *name = m->input_values[i].shape.dims[a].param;
      if (name && psplit_i_name_find(out->names, out->n, name) == PSPLIT_NONE)
        out->names[out->n++] = name;
    }
  return PSPLIT_OK;
}

void psplit_i_symbols_fini(psplit_i_symbols *symbols) {
  free(symbols->names);
  *symbols = (psplit_i_symbols){0};
}

void psplit_i_symbols_note(const psplit_i_symbols *symbols, const psplit_i_manifest_value *value,
                           const int64_t *dims, size_t n_dims, double *values) {
  for (size_t a = 0; a < n_dims && (int64_t)a < value->shape.rank; a++) {
    const char *name = value->shape.dims[a].param;
    const uint32_t i = name ? psplit_i_name_find(symbols->names, symbols->n, name) : PSPLIT_NONE;
    if (i != PSPLIT_NONE && dims[a] >= 0) values[i] = (double)dims[a];
  }
}

const psplit_i_mask_row *psplit_i_find_mask(const psplit_i_manifest *m, uint32_t input) {
  for (uint32_t k = 0; k < m->training->n_masks; k++)
    if (strcmp(m->training->masks[k].tensor, m->inputs[input]) == 0) return &m->training->masks[k];
  return NULL;
}

/* A psplit_i_symbol_fn. */
static bool size_of(void *user, const char *symbol, int64_t *out) {
  const psplit_i_drawing *at = user;
  const uint32_t i = psplit_i_name_find(at->symbols->names, at->symbols->n, symbol);
  if (i == PSPLIT_NONE || !(at->values[i] >= 0)) return false;
  *out = (int64_t)at->values[i];
  return true;
}

psplit_code psplit_i_draw_mask(const psplit_i_ort *ort, const psplit_i_mask_row *mask,
                               const psplit_i_drawing *at, psplit_diag *diag,
                               psplit_i_tensor **out) {
  enum { FLOAT = 1, BOOL = 9 };
  const psplit_draw draw = {at->seed, at->step, at->micro_batch, mask->number};
  psplit_i_drawing given = *at;
  psplit_i_tensor_view view;
  int64_t dims[PSPLIT_I_MAX_RANK], n;
  psplit_code code;
  if (mask->rank > PSPLIT_I_MAX_RANK)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%s has more than %d dimensions", mask->tensor,
                         PSPLIT_I_MAX_RANK);
  PSPLIT_TRY(psplit_i_mask_sizes(mask, size_of, &given, diag, dims, &n));
  PSPLIT_TRY(psplit_i_tensor_make(ort, mask->kind == PSPLIT_DRAW_KEEP ? BOOL : FLOAT, dims,
                                  mask->rank, diag, out, &view));
  if (mask->kind == PSPLIT_DRAW_KEEP)
    psplit_draw_keep(&draw, mask->ratio, 0, (size_t)n, view.data);
  else if (mask->kind == PSPLIT_DRAW_UNIFORM)
    psplit_draw_uniform(&draw, 0, (size_t)n, view.data);
  else
    psplit_draw_normal(&draw, 0, (size_t)n, view.data);
out:
  return code;
}
