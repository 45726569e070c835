/* Rules: elementwise functions of one tensor. At a kink, the gradient is PyTorch's. */
#include <float.h>
#include <math.h>

#include "draws.h"
#include "rule.h"

static ref greater(psplit_i_at *at, ref a, double b) {
  return op2(at, "Greater", a, number(at, b));
}
static ref less(psplit_i_at *at, ref a, double b) { return op2(at, "Less", a, number(at, b)); }
static ref plus(psplit_i_at *at, ref a, double b) { return add(at, a, number(at, b)); }
static ref square(psplit_i_at *at, ref a) { return mul(at, a, a); }
/* 1 - a */
static ref rest(psplit_i_at *at, ref a) { return sub(at, number(at, 1), a); }

/* The derivative, times the gradient that arrives. */
static void chain(psplit_i_at *at, ref derivative) { give(at, 0, mul(at, grad(at), derivative)); }

void psplit_i_gradient_same(psplit_i_at *at) { give(at, 0, grad(at)); }
void psplit_i_gradient_neg(psplit_i_at *at) { give(at, 0, neg(at, grad(at))); }

void psplit_i_gradient_cast(psplit_i_at *at) {
  const int32_t from = psplit_i_type_in(at, 0)->elem;
  if (!from) {
    psplit_i_refuse(at, "the element type of its input is not known");
    return;
  }
  give(at, 0, from == at->elem ? grad(at) : cast(at, grad(at), from));
}

void psplit_i_gradient_abs(psplit_i_at *at) { chain(at, op1(at, "Sign", in(at, 0))); }
void psplit_i_gradient_exp(psplit_i_at *at) { chain(at, out(at, 0)); }
void psplit_i_gradient_log(psplit_i_at *at) { give(at, 0, quotient(at, grad(at), in(at, 0))); }
void psplit_i_gradient_sqrt(psplit_i_at *at) {
  give(at, 0, quotient(at, times(at, grad(at), 0.5), out(at, 0)));
}
void psplit_i_gradient_reciprocal(psplit_i_at *at) { chain(at, neg(at, square(at, out(at, 0)))); }
void psplit_i_gradient_sin(psplit_i_at *at) { chain(at, op1(at, "Cos", in(at, 0))); }
void psplit_i_gradient_cos(psplit_i_at *at) { chain(at, neg(at, op1(at, "Sin", in(at, 0)))); }
void psplit_i_gradient_tan(psplit_i_at *at) { chain(at, plus(at, square(at, out(at, 0)), 1)); }
/* sinh and cosh by exp: ONNX Runtime has them for few types. */
void psplit_i_gradient_sinh(psplit_i_at *at) {
  const ref x = in(at, 0);
  chain(at, times(at, add(at, op1(at, "Exp", x), op1(at, "Exp", neg(at, x))), 0.5));
}
void psplit_i_gradient_cosh(psplit_i_at *at) {
  const ref x = in(at, 0);
  chain(at, times(at, sub(at, op1(at, "Exp", x), op1(at, "Exp", neg(at, x))), 0.5));
}
static ref root(psplit_i_at *at, ref a) { return op1(at, "Sqrt", a); }
void psplit_i_gradient_asin(psplit_i_at *at) {
  give(at, 0, quotient(at, grad(at), root(at, rest(at, square(at, in(at, 0))))));
}
void psplit_i_gradient_acos(psplit_i_at *at) {
  give(at, 0, neg(at, quotient(at, grad(at), root(at, rest(at, square(at, in(at, 0)))))));
}
void psplit_i_gradient_atan(psplit_i_at *at) {
  give(at, 0, quotient(at, grad(at), plus(at, square(at, in(at, 0)), 1)));
}
void psplit_i_gradient_asinh(psplit_i_at *at) {
  give(at, 0, quotient(at, grad(at), root(at, plus(at, square(at, in(at, 0)), 1))));
}
void psplit_i_gradient_acosh(psplit_i_at *at) {
  give(at, 0, quotient(at, grad(at), root(at, plus(at, square(at, in(at, 0)), -1))));
}
void psplit_i_gradient_atanh(psplit_i_at *at) {
  give(at, 0, quotient(at, grad(at), rest(at, square(at, in(at, 0)))));
}
void psplit_i_gradient_sigmoid(psplit_i_at *at) {
  const ref y = out(at, 0);
  chain(at, mul(at, y, rest(at, y)));
}
void psplit_i_gradient_tanh(psplit_i_at *at) { chain(at, rest(at, square(at, out(at, 0)))); }
void psplit_i_gradient_erf(psplit_i_at *at) {
  const ref bell = op1(at, "Exp", neg(at, square(at, in(at, 0))));
  chain(at, times(at, bell, 2 / sqrt(acos(-1))));
}
void psplit_i_gradient_softplus(psplit_i_at *at) { chain(at, op1(at, "Sigmoid", in(at, 0))); }
void psplit_i_gradient_softsign(psplit_i_at *at) {
  give(at, 0, quotient(at, grad(at), square(at, plus(at, op1(at, "Abs", in(at, 0)), 1))));
}

void psplit_i_gradient_relu(psplit_i_at *at) {
  chain(at, indicator(at, greater(at, out(at, 0), 0)));
}
void psplit_i_gradient_leaky_relu(psplit_i_at *at) {
  const double alpha = (double)psplit_i_float_or(at, "alpha", 0.01f);
  chain(at, choose(at, greater(at, in(at, 0), 0), number(at, 1), number(at, alpha)));
}
void psplit_i_gradient_thresholded_relu(psplit_i_at *at) {
  chain(at, indicator(at, greater(at, in(at, 0), (double)psplit_i_float_or(at, "alpha", 1))));
}
void psplit_i_gradient_elu(psplit_i_at *at) {
  const double alpha = (double)psplit_i_float_or(at, "alpha", 1);
  chain(at, choose(at, greater(at, in(at, 0), 0), number(at, 1), plus(at, out(at, 0), alpha)));
}
void psplit_i_gradient_celu(psplit_i_at *at) {
  const double alpha = (double)psplit_i_float_or(at, "alpha", 1);
  const ref below = plus(at, times(at, out(at, 0), 1 / alpha), 1);
  chain(at, choose(at, greater(at, in(at, 0), 0), number(at, 1), below));
}
void psplit_i_gradient_selu(psplit_i_at *at) {
  const double alpha = (double)psplit_i_float_or(at, "alpha", 1.67326319217681884765625f);
  const double gamma = (double)psplit_i_float_or(at, "gamma", 1.05070102214813232421875f);
  const ref below = plus(at, out(at, 0), alpha * gamma);
  chain(at, choose(at, greater(at, in(at, 0), 0), number(at, gamma), below));
}
void psplit_i_gradient_shrink(psplit_i_at *at) {
  const double lambd = (double)psplit_i_float_or(at, "lambd", 0.5f);
  chain(at, indicator(at, greater(at, op1(at, "Abs", in(at, 0)), lambd)));
}
void psplit_i_gradient_hard_sigmoid(psplit_i_at *at) {
  const double alpha = (double)psplit_i_float_or(at, "alpha", 0.2f);
  const ref y = out(at, 0);
  const ref inside = op2(at, "And", greater(at, y, 0), less(at, y, 1));
  chain(at, times(at, indicator(at, inside), alpha));
}
void psplit_i_gradient_hard_swish(psplit_i_at *at) {
  const ref x = in(at, 0);
  const ref middle = plus(at, times(at, x, 1.0 / 3), 0.5);
  const ref lower = choose(at, less(at, x, -3), number(at, 0), middle);
  chain(at, choose(at, greater(at, x, 3), number(at, 1), lower));
}
void psplit_i_gradient_mish(psplit_i_at *at) {
  const ref x = in(at, 0), t = op1(at, "Tanh", op1(at, "Softplus", x));
  const ref slope = mul(at, rest(at, square(at, t)), op1(at, "Sigmoid", x));
  chain(at, add(at, t, mul(at, x, slope)));
}
static void sigmoid_weighted(psplit_i_at *at, float alpha) {
  const ref ax = times(at, in(at, 0), (double)psplit_i_float_or(at, "alpha", alpha));
  const ref s = op1(at, "Sigmoid", ax);
  chain(at, mul(at, s, plus(at, mul(at, ax, rest(at, s)), 1)));
}
void psplit_i_gradient_swish(psplit_i_at *at) { sigmoid_weighted(at, 1); }
void psplit_i_gradient_quick_gelu(psplit_i_at *at) { sigmoid_weighted(at, 1.702f); }

/* The slope of y = x/2 (1 + t), t = tanh(c (x + 0.044715 x^3)) */
static ref slope_of_tanh_gelu(psplit_i_at *at, ref x) {
  const double c = sqrt(2 / acos(-1)), k = 0.044715;
  const ref x2 = square(at, x);
  const ref inner = mul(at, times(at, x, c), plus(at, times(at, x2, k), 1));
  const ref t = op1(at, "Tanh", inner);
  const ref slope = plus(at, times(at, x2, 3 * k * c), c);
  const ref curve = mul(at, mul(at, times(at, x, 0.5), rest(at, square(at, t))), slope);
  return add(at, times(at, plus(at, t, 1), 0.5), curve);
}

static ref slope_of_gelu(psplit_i_at *at, ref x) {
  const ref x2 = square(at, x);
  const ref phi = times(at, plus(at, op1(at, "Erf", times(at, x, sqrt(0.5))), 1), 0.5);
  const ref bell = times(at, op1(at, "Exp", times(at, x2, -0.5)), 1 / sqrt(2 * acos(-1)));
  return add(at, phi, mul(at, x, bell));
}

void psplit_i_gradient_gelu(psplit_i_at *at) {
  const ref x = in(at, 0);
  chain(at, psplit_i_text_equals(at, "approximate", "tanh") ? slope_of_tanh_gelu(at, x)
                                                            : slope_of_gelu(at, x));
}

/* Of x and a bias, which may be omitted. */
static void biased(psplit_i_at *at, ref (*slope)(psplit_i_at *, ref)) {
  const ref x = psplit_i_given(at, 1) ? add(at, in(at, 0), in(at, 1)) : in(at, 0);
  const ref part = mul(at, grad(at), slope(at, x));
  give(at, 0, part);
  if (wanted(at, 1)) give(at, 1, psplit_i_sum_like(at, part, psplit_i_type_in(at, 0), 1));
}
void psplit_i_gradient_bias_gelu(psplit_i_at *at) { biased(at, slope_of_gelu); }
void psplit_i_gradient_fast_gelu(psplit_i_at *at) { biased(at, slope_of_tanh_gelu); }

/* y = x + bias + skip */
void psplit_i_gradient_bias_add(psplit_i_at *at) {
  const psplit_i_vtype *type = psplit_i_type_in(at, 0);
  give(at, 0, grad(at));
  for (uint32_t i = 1; i < 3; i++)
    if (wanted(at, i)) give(at, i, psplit_i_sum_like(at, grad(at), type, i));
}

/* The first half of x + bias, times the gelu of the second. */
void psplit_i_gradient_bias_split_gelu(psplit_i_at *at) {
  int64_t width;
  if (!psplit_i_size(at, psplit_i_type_in(at, 1), 0, &width) || width < 2 || width % 2) {
    psplit_i_refuse(at, "the size of its bias is not known");
    return;
  }
  const int64_t begins[] = {0, width / 2}, ends[] = {width / 2, width};
  const ref x = add(at, in(at, 0), in(at, 1));
  ref halves[2];
  for (uint32_t i = 0; i < 2; i++) {
    const ref inputs[] = {x, int1(at, begins[i]), int1(at, ends[i]), int1(at, -1)};
    halves[i] = psplit_i_backward_node(at->b, "Slice", 4, inputs, 1);
  }
  const ref phi = plus(at, op1(at, "Erf", times(at, halves[1], sqrt(0.5))), 1);
  const ref gelu = mul(at, times(at, halves[1], 0.5), phi);
  const ref to_first = mul(at, grad(at), gelu), to_gelu = mul(at, grad(at), halves[0]);
  const ref to_second = mul(at, to_gelu, slope_of_gelu(at, halves[1]));
  const ref part = concat(at, (ref[]){to_first, to_second}, 2, -1);
  give(at, 0, part);
  if (wanted(at, 1)) give(at, 1, psplit_i_sum_like(at, part, psplit_i_type_in(at, 0), 1));
}

/* ---- activations that are fused into another operator ---- */

/* Parameter i of it: of a list, or by itself. */
static double activation_parameter(const psplit_i_at *at, const char *list, uint32_t i,
                                   float fallback) {
  static const char *const names[] = {"activation_alpha", "activation_beta", "activation_gamma"};
  const float *given;
  size_t n;
  if (!list) return (double)psplit_i_float_or(at, names[i], fallback);
  return psplit_i_attr_floats(at->node, list, &given, &n) && i < n ? (double)given[i]
                                                                   : (double)fallback;
}

/* Its slope where `y` came out; PSPLIT_NONE where that is not known. */
static ref slope_of_activation(psplit_i_at *at, const char *list, ref y) {
  const char *const name = "activation";
  const double first = activation_parameter(at, list, 0, 1);
  if (psplit_i_text_equals(at, name, "Relu")) return indicator(at, greater(at, y, 0));
  if (psplit_i_text_equals(at, name, "Tanh")) return rest(at, square(at, y));
  if (psplit_i_text_equals(at, name, "Sigmoid")) return mul(at, y, rest(at, y));
  if (psplit_i_text_equals(at, name, "Softplus")) return rest(at, op1(at, "Exp", neg(at, y)));
  if (psplit_i_text_equals(at, name, "Softsign")) return square(at, rest(at, op1(at, "Abs", y)));
  if (psplit_i_text_equals(at, name, "ThresholdedRelu") && first >= 0)
    return indicator(at, greater(at, y, 0));
  if (psplit_i_text_equals(at, name, "LeakyRelu")) {
    const double alpha = activation_parameter(at, list, 0, 0.01f);
    if (alpha < 0) return PSPLIT_NONE;
    return choose(at, greater(at, y, 0), number(at, 1), number(at, alpha));
  }
  if (psplit_i_text_equals(at, name, "Elu") && first >= 0)
    return choose(at, greater(at, y, 0), number(at, 1), plus(at, y, first));
  if (psplit_i_text_equals(at, name, "Selu")) {
    const double alpha = activation_parameter(at, list, 0, 1.67326319217681884765625f);
    const double gamma = activation_parameter(at, list, 2, 1.05070102214813232421875f);
    if (alpha < 0 || gamma <= 0) return PSPLIT_NONE;
    return choose(at, greater(at, y, 0), number(at, gamma), plus(at, y, alpha * gamma));
  }
  if (psplit_i_text_equals(at, name, "HardSigmoid")) {
    const ref inside = op2(at, "And", greater(at, y, 0), less(at, y, 1));
    return times(at, indicator(at, inside), activation_parameter(at, list, 0, 0.2f));
  }
  if (psplit_i_text_equals(at, name, "Clip")) {
    const ref above = greater(at, y, activation_parameter(at, list, 0, -FLT_MAX));
    const ref below = less(at, y, activation_parameter(at, list, 1, FLT_MAX));
    return indicator(at, op2(at, "And", above, below));
  }
  return PSPLIT_NONE;
}

bool psplit_i_through_activation(psplit_i_at *at, const char *parameters) {
  const char *name;
  size_t n;
  if (!psplit_i_attr_string(at->node, "activation", &name, &n) || n == 0) return true;
  const ref slope = slope_of_activation(at, parameters, out(at, 0));
  if (slope == PSPLIT_NONE) {
    psplit_i_refuse(at, "the gradient of its activation cannot be computed from its result");
    return false;
  }
  at->before_activation = mul(at, grad(at), slope);
  return true;
}

/* The bound of a Clip: an attribute up to opset 10, an input since. */
static ref clip_bound(psplit_i_at *at, uint32_t input, const char *name) {
  float value;
  if (psplit_i_attr_float(at->node, name, &value)) return number(at, (double)value);
  return in(at, input);
}

void psplit_i_gradient_clip(psplit_i_at *at) {
  const ref x = in(at, 0), low = clip_bound(at, 1, "min"), high = clip_bound(at, 2, "max");
  const ref above = low == PSPLIT_NONE ? PSPLIT_NONE : op2(at, "Greater", x, low);
  const ref below = high == PSPLIT_NONE ? PSPLIT_NONE : op2(at, "Less", x, high);
  ref inside = above == PSPLIT_NONE ? below : above;
  if (above != PSPLIT_NONE && below != PSPLIT_NONE) inside = op2(at, "And", above, below);
  if (inside == PSPLIT_NONE)
    give(at, 0, grad(at));
  else
    chain(at, indicator(at, inside));
  for (uint32_t i = 1; i < 3; i++) {
    if (!wanted(at, i)) continue;
    ref beyond = op1(at, "Not", i == 1 ? above : below);
    /* Where bounds cross, all that comes out is the upper one. */
    if (low != PSPLIT_NONE && high != PSPLIT_NONE) {
      const ref crossed = op2(at, "Greater", low, high);
      if (i == 1)
        beyond = op2(at, "And", beyond, op1(at, "Not", crossed));
      else
        beyond = op2(at, "Or", beyond, crossed);
    }
    const ref sum = sum_over(at, mul(at, grad(at), indicator(at, beyond)), NULL, 0, false);
    give(at, i, psplit_i_reshape_like(at, sum, i));
  }
}

void psplit_i_gradient_prelu(psplit_i_at *at) {
  const ref x = in(at, 0), positive = greater(at, x, 0);
  if (wanted(at, 0)) chain(at, choose(at, positive, number(at, 1), in(at, 1)));
  if (!wanted(at, 1)) return;
  const ref part = mul(at, grad(at), choose(at, positive, number(at, 0), x));
  give(at, 1, psplit_i_sum_like(at, part, psplit_i_type_in(at, 0), 1));
}

/* What drops reads a mask by now, and is no Dropout any more. */
void psplit_i_gradient_dropout(psplit_i_at *at) {
  bool keeps = false;
  if (psplit_i_dropout_keeps(at->pass->shapes, at->node, NULL, &keeps) != PSPLIT_OK) {
    at->b->failed = true;
    return;
  }
  if (keeps)
    give(at, 0, grad(at));
  else
    psplit_i_refuse(at, "it drops at random, or that is not known");
}
