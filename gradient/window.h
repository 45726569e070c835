/* Windows that slide over spatial axes: what convolutions and pools share. */
#ifndef PSPLIT_GRADIENT_WINDOW_H
#define PSPLIT_GRADIENT_WINDOW_H

#include "rule.h"

enum { PSPLIT_MAX_SPATIAL = 8 };

/* One entry per spatial axis; auto_pad is resolved into begin and end. */
typedef struct psplit_i_window {
  int32_t n;
  int64_t kernel[PSPLIT_MAX_SPATIAL], stride[PSPLIT_MAX_SPATIAL], dilation[PSPLIT_MAX_SPATIAL];
  int64_t begin[PSPLIT_MAX_SPATIAL], end[PSPLIT_MAX_SPATIAL];
} psplit_i_window;

/* Reads the attributes of a node whose data is input 0. weights: the type that kernel sizes come
 * from where there is no kernel_shape, from its axis 2 on; NULL for pools.
 * transposed: pads are those of a ConvTranspose, where output_shape and auto_pad tell them.
 * Refuses and returns false where something is missing. */
bool psplit_i_read_window(psplit_i_at *at, const psplit_i_vtype *weights, bool is_transposed,
                          psplit_i_window *out);

/* Sizes of the spatial axes as numbers. */
bool psplit_i_spatial(const psplit_i_at *at, const psplit_i_vtype *type, int64_t *out);

/* Zero padding by the window's pads, spatial axes from `first` on, of a tensor of `rank`. */
psplit_i_ref psplit_i_padded(psplit_i_at *at, psplit_i_ref a, const psplit_i_window *w,
                             int32_t first, int32_t rank);

/* The positions that the kernel's element `tap` (one index per axis) meets, of a padded tensor
 * whose spatial axes start at `first`: a Slice. sizes[n] number of positions per axis, or NULL with
 * size_refs[n], their int64[1] values. */
psplit_i_ref psplit_i_tap(psplit_i_at *at, psplit_i_ref is_padded, const psplit_i_window *w,
                          const int64_t *tap, int32_t first, const int64_t *sizes,
                          const psplit_i_ref *size_refs);

/* kernel_shape, strides, dilations, pads for the next node. */
void psplit_i_with_window(psplit_i_at *at, const psplit_i_window *w, bool with_kernel);

#endif
