/* Rules: Resize and Upsample, axis by axis. */

#include "separable.h"

typedef struct resizing {
  ref scales, sizes; /* float32 or int64, one of them, with a number for each axis that has one */
  uint32_t scales_input;          /* of the node; 0: none, or an attribute */
  int32_t entry[PSPLIT_MAX_RANK]; /* place of each axis in them, or -1 */
  const char *mode, *coordinates, *nearest;
  float cubic;
  int64_t exclude_outside, antialias;
  const float *known; /* scales by an attribute */
  ref others;         /* float32[1], once it is needed: 1 where no size changes, else 2 */
} resizing;

/* The text of an attribute among those that are known, or the first of them. */
static const char *one_of(const psplit_i_at *at, const char *name, const char *const *texts) {
  for (size_t i = 0; texts[i]; i++)
    if (psplit_i_text_equals(at, name, texts[i])) return texts[i];
  return texts[0];
}

/* The scale of an axis, where scales are given and this one is known. */
static bool scale_of(const psplit_i_at *at, const resizing *r, int32_t axis, double *out) {
  const int32_t entry = r->entry[axis];
  if (r->scales == PSPLIT_NONE) return false;
  if (r->known) {
    *out = (double)r->known[entry];
    return true;
  }
  const psplit_i_vtype *type = psplit_i_type_in(at, r->scales_input);
  return type->elements && (uint32_t)entry < type->n_elements &&
         psplit_i_dim_is_real(psplit_i_shapes_dims(at->pass->shapes), type->elements[entry], out);
}

/* Whether an axis may keep its size though its scale is not 1, as 5 times 1.1 is rounded to 5.
 * Unit vectors that are resized along no other axis would be handed on then, as ONNX Runtime hands
 * on what keeps all of its sizes. */
static bool may_keep_size(const psplit_i_at *at, const resizing *r, int32_t axis) {
  int64_t before, after;
  double scale;
  if (r->scales == PSPLIT_NONE) return false;
  if (psplit_i_size(at, psplit_i_type_in(at, 0), axis, &before) &&
      psplit_i_size(at, psplit_i_type_out(at, 0), axis, &after))
    return before == after;
  return !scale_of(at, r, axis, &scale) || (scale > 0.5 && scale < 2);
}

/* 1 where nothing changes its size, else 2. */
static ref scale_of_others(psplit_i_at *at) {
  const ref same = op2(at, "Equal", psplit_i_shape_in(at, 0), psplit_i_shape_out(at, 0));
  const ref all = reduced(at, "ReduceMin", cast(at, same, PSPLIT_ELEM_FLOAT), NULL, 0, true);
  const ref two = psplit_i_backward_number(at->b, PSPLIT_ELEM_FLOAT, 2);
  return reshaped(at, sub(at, two, all), int1(at, 1));
}

static ref resize_axis(psplit_i_at *at, ref units, int32_t axis, void *data) {
  resizing *r = data;
  const float one = 1;
  const int64_t n = 1, entry = r->entry[axis];
  ref inputs[4] = {units, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE};
  const bool twice = may_keep_size(at, r, axis);
  if (twice && r->others == PSPLIT_NONE) r->others = scale_of_others(at);
  if (r->scales != PSPLIT_NONE) {
    const ref same = psplit_i_backward_constant(at->b, PSPLIT_ELEM_FLOAT, 1, &n, &one, 4);
    const ref parts[] = {same, same, gathered(at, r->scales, int1(at, entry), 0),
                         twice ? r->others : same};
    inputs[2] = concat(at, parts, 4, 0);
  } else {
    const ref parts[] = {int1(at, 1), psplit_i_shape_element(at, psplit_i_shape_in(at, 0), axis),
                         gathered(at, r->sizes, int1(at, entry), 0), int1(at, 1)};
    inputs[3] = concat(at, parts, 4, 0);
  }
  with_text(at, "mode", r->mode);
  with_text(at, "coordinate_transformation_mode", r->coordinates);
  with_text(at, "nearest_mode", r->nearest);
  with_float(at, "cubic_coeff_a", r->cubic);
  with_int(at, "exclude_outside", r->exclude_outside);
  if (r->antialias) with_int(at, "antialias", 1);
  const ref y = psplit_i_backward_node(at->b, "Resize", 4, inputs, 1);
  if (!twice) return y;
  const ref first[] = {y, int1(at, 0), int1(at, 1), int1(at, 3)};
  return psplit_i_backward_node(at->b, "Slice", 4, first, 1);
}

/* Whether nothing changes along an axis. Scales say so, not sizes alone. */
static bool stays(const psplit_i_at *at, const resizing *r, int32_t axis) {
  double scale;
  if (r->entry[axis] < 0) return true;
  if (scale_of(at, r, axis, &scale)) return scale == 1;
  return psplit_i_type_in(at, 0)->dims[axis] == psplit_i_type_out(at, 0)->dims[axis];
}

static void resize(psplit_i_at *at, resizing *r) {
  const psplit_i_vtype *x = psplit_i_type_in(at, 0), *y = psplit_i_type_out(at, 0);
  if (y->rank != x->rank || x->rank < 1) {
    psplit_i_refuse_rank(at, "its rank");
    return;
  }
  bool all_same = true;
  for (int32_t axis = 0; axis < x->rank; axis++) all_same &= x->dims[axis] == y->dims[axis];
  ref g = grad(at);
  for (int32_t axis = 0; axis < x->rank && !all_same; axis++)
    if (!stays(at, r, axis)) g = psplit_i_separable(at, g, axis, x->rank, resize_axis, r);
  give(at, 0, g);
}

/* The place of each axis in scales or sizes: of all of them in their order, or of those that an
 * attribute names. */
static bool read_axes(psplit_i_at *at, resizing *r) {
  const int64_t *axes;
  size_t n;
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 0) return false;
  const bool named = psplit_i_attr_ints(at->node, "axes", &axes, &n);
  for (int32_t axis = 0; axis < rank; axis++) r->entry[axis] = named ? -1 : axis;
  for (size_t i = 0; named && i < n; i++)
    r->entry[psplit_i_axis_of(at, axes[i], rank)] = (int32_t)i;
  return at->pass->code == PSPLIT_OK;
}

void psplit_i_gradient_resize(psplit_i_at *at) {
  static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
  static const char *const coordinates[] = {"half_pixel",           "align_corners",
                                            "asymmetric",           "pytorch_half_pixel",
                                            "half_pixel_symmetric", NULL};
  static const char *const nearest[] = {"round_prefer_floor", "floor", "ceil", "round_prefer_ceil",
                                        NULL};
  if (psplit_i_text_equals(at, "coordinate_transformation_mode", "tf_crop_and_resize") ||
      psplit_i_text_equals(at, "coordinate_transformation_mode", "tf_half_pixel_for_nn")) {
    psplit_i_refuse(at, "its coordinates are those of one framework");
    return;
  }
  const char *policy;
  size_t n;
  if (psplit_i_given(at, 3) &&
      psplit_i_attr_string(at->node, "keep_aspect_ratio_policy", &policy, &n) &&
      !psplit_i_text_equals(at, "keep_aspect_ratio_policy", "stretch")) {
    psplit_i_refuse(at, "its sizes follow from one of them (keep_aspect_ratio_policy)");
    return;
  }
  resizing r = {.scales = PSPLIT_NONE,
                .sizes = PSPLIT_NONE,
                .mode = one_of(at, "mode", modes),
                .coordinates = one_of(at, "coordinate_transformation_mode", coordinates),
                .nearest = one_of(at, "nearest_mode", nearest),
                .cubic = psplit_i_float_or(at, "cubic_coeff_a", -0.75f),
                .exclude_outside = psplit_i_int_or(at, "exclude_outside", 0),
                .antialias = psplit_i_int_or(at, "antialias", 0),
                .others = PSPLIT_NONE};
  if (!read_axes(at, &r)) return;
  if (at->node->opset < 11) {
    r.scales = in(at, r.scales_input = 1);
    r.coordinates = "asymmetric";
    r.nearest = "floor";
  } else if (psplit_i_given(at, 3)) {
    r.sizes = in(at, 3);
  } else {
    r.scales = in(at, r.scales_input = 2);
  }
  resize(at, &r);
}

void psplit_i_gradient_upsample(psplit_i_at *at) {
  const float *scales;
  size_t n;
  resizing r = {.scales = PSPLIT_NONE,
                .sizes = PSPLIT_NONE,
                .mode = psplit_i_text_equals(at, "mode", "linear") ? "linear" : "nearest",
                .coordinates = "asymmetric",
                .nearest = "floor",
                .cubic = -0.75f,
                .others = PSPLIT_NONE};
  if (!read_axes(at, &r)) return;
  if (psplit_i_attr_floats(at->node, "scales", &scales, &n)) {
    const int64_t dim = (int64_t)n;
    if ((int32_t)n == psplit_i_type_in(at, 0)->rank) r.known = scales;
    r.scales =
      psplit_i_backward_constant(at->b, PSPLIT_ELEM_FLOAT, 1, &dim, scales, n * sizeof *scales);
  } else {
    r.scales = in(at, r.scales_input = 1);
  }
  if (r.scales == PSPLIT_NONE)
    psplit_i_refuse(at, "it has no scales");
  else
    resize(at, &r);
}
