/* The two gradients of a convolution y = Conv(x, w). ConvTranspose is the same with x and y
 * exchanged. */
#ifndef PSPLIT_GRADIENT_CONV_H
#define PSPLIT_GRADIENT_CONV_H

#include "window.h"

/* A convolution with x [n, c, ...], w [o, c / groups, kernel...], y [n, o, ...]. */
typedef struct psplit_i_conv {
  psplit_i_window window;
  int64_t groups, c, o;
  const psplit_i_vtype *x, *y;                                    /* ranks known */
  int64_t x_size[PSPLIT_MAX_SPATIAL], y_size[PSPLIT_MAX_SPATIAL]; /* where sizes_known */
  bool x_known, y_known;
} psplit_i_conv;

/* A product along the channels: kernels of one element, without strides, pads and groups. */
static inline bool psplit_i_conv_is_point(const psplit_i_conv *conv) {
  const psplit_i_window *w = &conv->window;
  for (int32_t i = 0; i < w->n; i++)
    if (w->kernel[i] != 1 || w->stride[i] != 1 || w->begin[i] || w->end[i]) return false;
  return conv->groups == 1;
}

/* dy -> dx. x_shape: the int64 shape of x. Three forms, by which is fastest: a product (1x1), a
 * convolution with the kernel turned around, a ConvTranspose. */
psplit_i_ref psplit_i_conv_input(psplit_i_at *at, const psplit_i_conv *conv, psplit_i_ref w,
                                 psplit_i_ref dy, uint32_t x_input);

/* x, dy -> dw, in the form that is fastest: one product (1x1), a convolution with batch and
 * channels exchanged, one with a group per sample and channel, or a product per kernel element. */
psplit_i_ref psplit_i_conv_weight(psplit_i_at *at, const psplit_i_conv *conv, psplit_i_ref x,
                                  psplit_i_ref dy, psplit_i_ref y_shape);

#endif
