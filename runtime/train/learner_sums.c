/* Gradients of weights at the end of a step: sums over replicas, and how large they are. */
#include <stdint.h>
#include <stdlib.h>

#include "casts.h"
#include "learner_inside.h"

psplit_code psplit_i_learner_fill_sums(psplit_i_learner *l, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t g = 0; g < l->n_gradients && code == PSPLIT_OK; g++) {
    const uint32_t w = l->gradient_weight[g];
    if (psplit_i_learner_owns(l, w) && !l->sums[g])
      code = psplit_i_learner_zeros(l->ort, l->weights[w], diag, &l->sums[g]);
  }
  return code;
}

static psplit_code add_tensor(const psplit_i_tensor *to, const psplit_i_tensor *more,
                              psplit_diag *diag) {
  enum { FLOAT = 1, DOUBLE = 11 };
  psplit_i_tensor_view sum, part;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(to, diag, &sum));
  PSPLIT_TRY(psplit_i_tensor_look(more, diag, &part));
  if (sum.data_type != part.data_type || sum.n_elements != part.n_elements)
    return psplit_i_fail(diag, PSPLIT_INVALID, "gradients of two replicas have different shapes");
  if (sum.data_type != FLOAT && sum.data_type != DOUBLE)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "gradients of type %s in replicas",
                         psplit_i_element_name(sum.data_type));
  for (uint64_t i = 0; sum.data_type == FLOAT && i < sum.n_elements; i++)
    ((float *)sum.data)[i] += ((const float *)part.data)[i];
  for (uint64_t i = 0; sum.data_type == DOUBLE && i < sum.n_elements; i++)
    ((double *)sum.data)[i] += ((const double *)part.data)[i];
out:
  return code;
}

psplit_code psplit_i_learner_add(psplit_i_learner *l, uint32_t wire, const psplit_i_bundle *bundle,
                                 psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t t = 0; t < bundle->n && code == PSPLIT_OK; t++)
    code = add_tensor(l->sums[l->wire_tensors[wire][t]], bundle->tensors[t], diag);
  return code;
}

/* Eight sums side by side, which a compiler can add at once; always the same eight. Parts of a
 * gradient of 32 or 64 bits are added in its type and in their order, as the update does. */
enum { N_LANES = 8 };
#define SUM_SQUARES(type)                                                      \
  do {                                                                         \
    for (uint64_t i = 0; i < n; i++) {                                         \
      type x = ((const type *)parts[0])[i];                                    \
      for (uint32_t p = 1; p < n_parts; p++) x += ((const type *)parts[p])[i]; \
      sums[i % N_LANES] += (double)x * (double)x;                              \
    }                                                                          \
  } while (0)

/* Of 16 bits. Parts are added unrounded, since their sum may be one that the type does not hold. */
static void add_short_squares(const void *const *parts, uint32_t n_parts, uint64_t n, int32_t type,
                              double *sums) {
  for (uint64_t i = 0; i < n; i++) {
    double x = 0;
    for (uint32_t p = 0; p < n_parts; p++) {
      const psplit_i_tensor_view part = {.data = (void *)(uintptr_t)parts[p], .data_type = type};
      x += psplit_i_tensor_number(&part, i);
    }
    sums[i % N_LANES] += x * x;
  }
}

static double sum_squares(const void *const *parts, uint32_t n_parts, uint64_t n, int32_t type) {
  enum { FLOAT = 1, DOUBLE = 11 };
  double sums[N_LANES] = {0}, all = 0;
  if (type == FLOAT)
    SUM_SQUARES(float);
  else if (type == DOUBLE)
    SUM_SQUARES(double);
  else
    add_short_squares(parts, n_parts, n, type, sums);
  for (int k = 0; k < N_LANES; k++) all += sums[k];
  return all;
}

/* Of the weight whose gradients are first .. first + n_parts - 1. */
static psplit_code weight_squares(const psplit_i_learner *l, uint32_t first, uint32_t n_parts,
                                  psplit_diag *diag, double *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_tensor_view view = {0};
  const void **parts = malloc((n_parts + (size_t)1) * sizeof *parts);
  uint64_t n = 0;
  if (!parts) return psplit_i_nomem(diag);
  for (uint32_t p = 0; p < n_parts; p++) {
    if (!l->sums[first + p])
      PSPLIT_FAIL(
        psplit_i_fail(diag, PSPLIT_INTERNAL, "a gradient of %s has not arrived",
                      psplit_i_learner_table(l)->weights[l->gradient_weight[first]].name));
    PSPLIT_TRY(psplit_i_tensor_look(l->sums[first + p], diag, &view));
    if (p && view.n_elements != n)
      PSPLIT_FAIL(
        psplit_i_fail(diag, PSPLIT_INVALID, "gradients of %s differ in size",
                      psplit_i_learner_table(l)->weights[l->gradient_weight[first]].name));
    parts[p] = view.data;
    n = view.n_elements;
  }
  if (!psplit_i_element_is_float(view.data_type))
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "gradients of type %s",
                              psplit_i_element_name(view.data_type)));
  *out = sum_squares(parts, n_parts, n, view.data_type);
out:
  free(parts);
  return code;
}

psplit_code psplit_i_learner_squares(const psplit_i_learner *l, psplit_diag *diag, double *out) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t w = 0; w < psplit_i_learner_table(l)->n_weights && code == PSPLIT_OK; w++) {
    const uint32_t first = l->first_gradient[w], n = l->first_gradient[w + 1] - first;
    if (n && psplit_i_learner_owns(l, w)) code = weight_squares(l, first, n, diag, &out[w]);
  }
  return code;
}
