/* Rules: Resize and Upsample, axis by axis. */
#include <string.h>

#include "separable.h"

typedef struct resizing {
  ref scales, sizes; /* float32[rank] or int64[rank]; one of them */
  const char *mode, *coordinates, *nearest;
  float cubic;
  int64_t exclude_outside, antialias;
} resizing;

/* The text of an attribute among those that are known, or the first of them. */
static const char *one_of(const psplit_i_at *at, const char *name, const char *const *texts) {
  for (size_t i = 0; texts[i]; i++)
    if (psplit_i_text_equals(at, name, texts[i])) return texts[i];
  return texts[0];
}

static ref resize_axis(psplit_i_at *at, ref units, int32_t axis, void *data) {
  const resizing *r = data;
  const float one = 1;
  const int64_t n = 1;
  ref inputs[4] = {units, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE};
  if (r->scales != PSPLIT_NONE) {
    const ref same = psplit_i_backward_constant(at->b, PSPLIT_ELEM_FLOAT, 1, &n, &one, 4);
    const ref parts[] = {same, same, gathered(at, r->scales, int1(at, axis), 0), same};
    inputs[2] = concat(at, parts, 4, 0);
  } else {
    const ref parts[] = {int1(at, 1), psplit_i_shape_element(at, psplit_i_shape_in(at, 0), axis),
                         gathered(at, r->sizes, int1(at, axis), 0), int1(at, 1)};
    inputs[3] = concat(at, parts, 4, 0);
  }
  with_text(at, "mode", r->mode);
  with_text(at, "coordinate_transformation_mode", r->coordinates);
  with_text(at, "nearest_mode", r->nearest);
  with_float(at, "cubic_coeff_a", r->cubic);
  with_int(at, "exclude_outside", r->exclude_outside);
  if (r->antialias) with_int(at, "antialias", 1);
  return psplit_i_backward_node(at->b, "Resize", 4, inputs, 1);
}

static void resize(psplit_i_at *at, resizing *r) {
  const psplit_i_vtype *x = psplit_i_type_in(at, 0), *y = psplit_i_type_out(at, 0);
  if (y->rank != x->rank || x->rank < 1) {
    psplit_i_refuse(at, "its rank is not known");
    return;
  }
  ref g = grad(at);
  for (int32_t axis = 0; axis < x->rank; axis++)
    if (x->dims[axis] != y->dims[axis])
      g = psplit_i_separable(at, g, axis, x->rank, resize_axis, r);
  give(at, 0, g);
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
  const int64_t *axes;
  if (psplit_i_attr_ints(at->node, "axes", &axes, &n) ||
      (psplit_i_attr_string(at->node, "keep_aspect_ratio_policy", &policy, &n) &&
       !psplit_i_text_equals(at, "keep_aspect_ratio_policy", "stretch"))) {
    psplit_i_refuse(at, "it has attribute axes or keep_aspect_ratio_policy");
    return;
  }
  resizing r = {.scales = PSPLIT_NONE,
                .sizes = PSPLIT_NONE,
                .mode = one_of(at, "mode", modes),
                .coordinates = one_of(at, "coordinate_transformation_mode", coordinates),
                .nearest = one_of(at, "nearest_mode", nearest),
                .cubic = psplit_i_float_or(at, "cubic_coeff_a", -0.75f),
                .exclude_outside = psplit_i_int_or(at, "exclude_outside", 0),
                .antialias = psplit_i_int_or(at, "antialias", 0)};
  if (at->node->opset < 11) {
    r.scales = in(at, 1);
    r.coordinates = "asymmetric";
    r.nearest = "floor";
  } else if (psplit_i_given(at, 3)) {
    r.sizes = in(at, 3);
  } else {
    r.scales = in(at, 2);
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
                .cubic = -0.75f};
  if (psplit_i_attr_floats(at->node, "scales", &scales, &n)) {
    const int64_t dim = (int64_t)n;
    r.scales =
      psplit_i_backward_constant(at->b, PSPLIT_ELEM_FLOAT, 1, &dim, scales, n * sizeof *scales);
  } else {
    r.scales = in(at, 1);
  }
  if (r.scales == PSPLIT_NONE)
    psplit_i_refuse(at, "it has no scales");
  else
    resize(at, &r);
}
