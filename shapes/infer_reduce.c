/* Rules: reductions, normalisations, losses. */

#include "infer.h"

enum { FLOAT = 1, INT64 = 7 };

/* Dimensions of input 0 with the marked axes dropped or made 1; the new rank. */
static int32_t without(psplit_i_site *at, const psplit_i_vtype *data, const bool *reduced,
                       bool keep, psplit_dim *dims) {
  int32_t n = 0;
  for (int32_t i = 0; i < data->rank; i++) {
    if (!reduced[i])
      dims[n++] = data->dims[i];
    else if (keep)
      dims[n++] = psplit_i_dim_const(at->dims, 1);
  }
  return n;
}

typedef psplit_dim (*join_fn)(psplit_i_dims *dims, psplit_dim a, psplit_dim b);

/* The same of two numbers; the result is exact, or not told. */
static psplit_dim join_reals(psplit_i_site *at, join_fn join, psplit_dim a, psplit_dim b) {
  double x, y;
  if (psplit_i_dim_is_integer(at->dims, a) && psplit_i_dim_is_integer(at->dims, b))
    return join(at->dims, a, b);
  if (!psplit_i_dim_is_real(at->dims, a, &x) || !psplit_i_dim_is_real(at->dims, b, &y))
    return PSPLIT_NONE;
  if (join == psplit_i_dim_max) return x > y ? a : b;
  if (join == psplit_i_dim_min) return x < y ? a : b;
  return PSPLIT_NONE;
}

/* Contents of a reduction of a whole small tensor. */
static void reduce_all(psplit_i_site *at, join_fn join) {
  uint32_t n;
  const psplit_dim *elements = psplit_i_elements(at, 0, &n);
  psplit_dim *out = elements && n > 0 ? psplit_i_new_elements(at, 1) : NULL;
  if (!out) return;
  *out = elements[0];
  for (uint32_t i = 1; i < n; i++) {
    *out = join_reals(at, join, *out, elements[i]);
    if (*out == PSPLIT_NONE) return;
  }
  psplit_i_out_elements(at, 0, out, 1);
}

/* `axes_input`: input that holds the axes, or -1 for the attribute. */
static void reduce(psplit_i_site *at, int axes_input, join_fn join) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const bool keep = psplit_i_int(at, "keepdims", 1) != 0;
  bool reduced[PSPLIT_MAX_RANK], given;
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (data->rank < 0) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  if (!psplit_i_axes(at, axes_input, "axes", data->rank, reduced, &given)) {
    psplit_i_fresh_dims(at, data->rank, dims);
    psplit_i_out(at, 0, data->elem, keep ? data->rank : -1, dims);
    return;
  }
  bool any = false;
  for (int32_t i = 0; i < data->rank; i++) any |= given && reduced[i];
  if (!any && psplit_i_int(at, "noop_with_empty_axes", 0)) {
    psplit_i_out_like(at, 0, 0, data->elem);
    return;
  }
  bool all = true;
  for (int32_t i = 0; i < data->rank; i++) {
    if (!any) reduced[i] = true;
    all = all && reduced[i];
  }
  const int32_t rank = without(at, data, reduced, keep, dims);
  psplit_i_out(at, 0, data->elem, rank, dims);
  if (all && join) reduce_all(at, join);
}

/* Axes became an input with opset 18, for ReduceSum with opset 13. */
static int axes_at(const psplit_i_site *at, int64_t since) {
  return at->node->opset == 0 || at->node->opset >= since ? 1 : -1;
}

void psplit_i_infer_reduce(psplit_i_site *at) { reduce(at, axes_at(at, 18), NULL); }
void psplit_i_infer_reduce_prod(psplit_i_site *at) {
  reduce(at, axes_at(at, 18), psplit_i_dim_mul);
}
void psplit_i_infer_reduce_max(psplit_i_site *at) { reduce(at, axes_at(at, 18), psplit_i_dim_max); }
void psplit_i_infer_reduce_min(psplit_i_site *at) { reduce(at, axes_at(at, 18), psplit_i_dim_min); }
void psplit_i_infer_reduce_sum(psplit_i_site *at) { reduce(at, axes_at(at, 13), psplit_i_dim_add); }

void psplit_i_infer_arg_reduce(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  bool reduced[PSPLIT_MAX_RANK] = {false};
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (data->rank < 0 || !psplit_i_axis(psplit_i_int(at, "axis", 0), data->rank, &axis)) {
    psplit_i_out(at, 0, INT64, -1, NULL);
    return;
  }
  reduced[axis] = true;
  const int32_t rank = without(at, data, reduced, psplit_i_int(at, "keepdims", 1) != 0, dims);
  psplit_i_out(at, 0, INT64, rank, dims);
}

/* Y like X; running or saved statistics are one number per channel. */
void psplit_i_infer_batch_normalization(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  for (uint32_t o = 1; o < 5; o++) {
    if (!psplit_i_wants(at, o)) continue;
    const psplit_dim channels = psplit_i_dim_of(at, 0, psplit_i_rank(at, 0) > 1 ? 1 : 0);
    const int32_t own = psplit_i_elem(at, o < 3 ? 2 + o : o);
    psplit_i_out(at, o, own ? own : psplit_i_elem(at, 0), 1, &channels);
  }
}

/* Y like X; mean and inverse deviation keep the axes before `axis`, and 1 after. */
void psplit_i_infer_layer_normalization(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis, rank = data->rank;
  psplit_i_out_like(at, 0, 0, data->elem);
  if (rank < 0 || !psplit_i_axis(psplit_i_int(at, "axis", -1), rank, &axis)) rank = -1;
  for (int32_t i = 0; i < rank; i++)
    dims[i] = i < axis ? data->dims[i] : psplit_i_dim_const(at->dims, 1);
  const int32_t stash = psplit_i_elem_named(at, "stash_type", FLOAT);
  for (uint32_t o = 1; o < 3; o++) psplit_i_out(at, o, stash, rank, dims);
}

/* The result has the type of the scale (input 1). */
void psplit_i_infer_rms_normalization(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 1) ? psplit_i_elem(at, 1) : psplit_i_elem(at, 0));
}

/* Losses: target-shaped without reduction, else a scalar; output 1 is the log of probabilities. */
void psplit_i_infer_loss(psplit_i_site *at) {
  if (psplit_i_text_is(at, "reduction", "none", false))
    psplit_i_out_like(at, 0, 1, psplit_i_elem(at, 0));
  else
    psplit_i_out(at, 0, psplit_i_elem(at, 0), 0, NULL);
  psplit_i_out_like(at, 1, 0, psplit_i_elem(at, 0));
}

/* Determinants of the last two axes. */
void psplit_i_infer_det(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_i_out(at, 0, data->elem, data->rank >= 2 ? data->rank - 2 : -1, data->dims);
}
