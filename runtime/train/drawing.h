/* Random inputs that devices fill: training.masks of pipeline.json. */
#ifndef PSPLIT_RUNTIME_TRAIN_DRAWING_H
#define PSPLIT_RUNTIME_TRAIN_DRAWING_H

#include "manifest.h"
#include "tensor.h"

/* Of which symbols have a size: those of the model's inputs, each once, in their order. */
typedef struct psplit_i_symbols {
  uint32_t n;
  const char **names; /* [n] malloc'd; the strings are the manifest's */
} psplit_i_symbols;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_symbols_list(const psplit_i_manifest *manifest,
                                                  psplit_diag *diag, psplit_i_symbols *out);
void psplit_i_symbols_fini(psplit_i_symbols *symbols); /* a zeroed one is fine */
/* Notes in values[symbols->n] what `dims` of an input say: [n_dims], -1: nothing. */
void psplit_i_symbols_note(const psplit_i_symbols *symbols, const psplit_i_manifest_value *value,
                           const int64_t *dims, size_t n_dims, double *values);

/* The mask that input `input` of the model is, NULL: none. */
const psplit_i_mask_row *psplit_i_find_mask(const psplit_i_manifest *manifest, uint32_t input);

/* Where a mask is drawn. */
typedef struct psplit_i_drawing {
  uint64_t seed;
  uint32_t step, micro_batch;
  const psplit_i_symbols *symbols;
  const double *values; /* [symbols->n] -1: not known */
} psplit_i_drawing;

/* The mask as a tensor, which the caller releases. Errors: INVALID (a size is not known), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_draw_mask(const psplit_i_ort *ort,
                                               const psplit_i_mask_row *mask,
                                               const psplit_i_drawing *at, psplit_diag *diag,
                                               psplit_i_tensor **out);

#endif
