/* Rules: convolutions. */
#include "conv.h"

static bool read_conv(psplit_i_at *at, bool is_transposed, psplit_i_conv *conv) {
  const psplit_i_vtype *weight = psplit_i_type_in(at, 1);
  int64_t first, second;
  if (!psplit_i_read_window(at, weight, is_transposed, &conv->window)) return false;
  conv->groups = psplit_i_int_or(at, "group", 1);
  if (weight->rank != conv->window.n + 2 || !psplit_i_size(at, weight, 0, &first) ||
      !psplit_i_size(at, weight, 1, &second) || conv->groups < 1 || first < 1 || second < 1 ||
      first % conv->groups || second > INT32_MAX || conv->groups > INT32_MAX) {
    psplit_i_refuse(at, "the shape of its weight is not known");
    return false;
  }
  conv->o = first;
  conv->c = second * conv->groups;
  conv->x = is_transposed ? psplit_i_type_out(at, 0) : psplit_i_type_in(at, 0);
  conv->y = is_transposed ? psplit_i_type_in(at, 0) : psplit_i_type_out(at, 0);
  conv->x_known = conv->x->rank == weight->rank && psplit_i_spatial(at, conv->x, conv->x_size);
  conv->y_known = conv->y->rank == weight->rank && psplit_i_spatial(at, conv->y, conv->y_size);
  return true;
}

static void give_bias(psplit_i_at *at, int32_t n_spatial) {
  int64_t axes[PSPLIT_MAX_SPATIAL + 1] = {0};
  if (!wanted(at, 2)) return;
  for (int32_t i = 0; i < n_spatial; i++) axes[i + 1] = i + 2;
  give(at, 2, sum_over(at, grad(at), axes, (uint32_t)n_spatial + 1, false));
}

void psplit_i_gradient_conv(psplit_i_at *at) {
  psplit_i_conv conv;
  if (!read_conv(at, false, &conv)) return;
  if (wanted(at, 0)) {
    const ref weight = in(at, 1);
    give(at, 0, psplit_i_conv_input(at, &conv, weight, grad(at), 0));
  }
  if (wanted(at, 1)) {
    const ref y_shape = conv.y_known ? PSPLIT_NONE : psplit_i_shape_out(at, 0);
    const ref x = in(at, 0);
    give(at, 1, psplit_i_conv_weight(at, &conv, x, grad(at), y_shape));
  }
  give_bias(at, conv.window.n);
}

/* y = activation(conv + z) */
void psplit_i_gradient_fused_conv(psplit_i_at *at) {
  if (!psplit_i_through_activation(at, "activation_params")) return;
  if (wanted(at, 3)) give(at, 3, psplit_i_sum_like(at, grad(at), psplit_i_type_out(at, 0), 3));
  if (wanted(at, 0) || wanted(at, 1) || wanted(at, 2)) psplit_i_gradient_conv(at);
}

/* The gradient of its input is a convolution; of its weight, that of a convolution's weight with
 * data and gradient exchanged. */
void psplit_i_gradient_conv_transpose(psplit_i_at *at) {
  psplit_i_conv conv;
  if (!read_conv(at, true, &conv)) return;
  if (wanted(at, 0)) {
    psplit_i_with_window(at, &conv.window, true);
    if (conv.groups != 1) with_int(at, "group", conv.groups);
    const ref kernel = in(at, 1);
    give(at, 0, op2(at, "Conv", grad(at), kernel));
  }
  if (wanted(at, 1)) {
    const ref y_shape = conv.y_known ? PSPLIT_NONE : psplit_i_shape_in(at, 0);
    const ref g = grad(at);
    give(at, 1, psplit_i_conv_weight(at, &conv, g, in(at, 0), y_shape));
  }
  give_bias(at, conv.window.n);
}
