/* Rules: reductions, softmax, and losses of class scores. */
#include "rule.h"

/* The axes that a reduction takes away: n 0 stands for all. */
typedef struct reduction {
  int64_t axes[PSPLIT_MAX_RANK];
  uint32_t n;
  bool keeps, nothing; /* `nothing`: no axis at all is reduced */
} reduction;

static bool read_reduction(psplit_i_at *at, reduction *r) {
  const int64_t *list;
  size_t n;
  *r = (reduction){.keeps = psplit_i_int_or(at, "keepdims", 1) != 0};
  if (psplit_i_given(at, 1) || psplit_i_attr_ints(at->node, "axes", &list, &n)) {
    const int32_t rank = psplit_i_need_rank(at, 0);
    if (rank < 0 || !psplit_i_axes_of(at, 1, rank, r->axes, &r->n)) return false;
  }
  r->nothing = r->n == 0 && psplit_i_int_or(at, "noop_with_empty_axes", 0) != 0;
  return true;
}

/* As read_reduction. Returns false also if no axis is reduced, so that the result is the input and
 * its gradient has been given. */
static bool read_reducing(psplit_i_at *at, reduction *r) {
  if (!read_reduction(at, r)) return false;
  if (r->nothing) give(at, 0, grad(at));
  return !r->nothing;
}

/* A result as it is with keepdims, so that it is broadcast against the input. A scalar is anyway.
 */
static ref kept(psplit_i_at *at, const reduction *r, ref a) {
  return r->keeps || r->n == 0 ? a : unsqueezed(at, a, r->axes, r->n);
}

/* The gradient, spread over the input. */
static void spread(psplit_i_at *at, ref g) {
  give(at, 0, expanded(at, g, psplit_i_shape_in(at, 0)));
}

void psplit_i_gradient_reduce_sum(psplit_i_at *at) {
  reduction r;
  if (!read_reducing(at, &r)) return;
  spread(at, kept(at, &r, grad(at)));
}

void psplit_i_gradient_reduce_mean(psplit_i_at *at) {
  reduction r;
  if (!read_reducing(at, &r)) return;
  psplit_i_widen(at);
  const ref n = r.n ? psplit_i_count_of_axes(at, r.axes, r.n) : psplit_i_count_in(at, 0);
  const ref share = quotient(at, kept(at, &r, wide_grad(at)), n);
  psplit_i_give_narrowed(at, 0, expanded(at, share, psplit_i_shape_in(at, 0)));
}

/* Shared evenly by the elements that are the maximum or minimum. */
void psplit_i_gradient_reduce_extremum(psplit_i_at *at) {
  reduction r;
  if (!read_reducing(at, &r)) return;
  psplit_i_widen(at);
  const ref is = indicator(at, op2(at, "Equal", in(at, 0), kept(at, &r, out(at, 0))));
  const ref count = sum_over(at, is, r.axes, r.n, true);
  const ref share = quotient(at, kept(at, &r, wide_grad(at)), count);
  psplit_i_give_narrowed(at, 0, mul(at, share, is));
}

void psplit_i_gradient_reduce_l1(psplit_i_at *at) {
  reduction r;
  if (!read_reduction(at, &r)) return;
  give(at, 0, mul(at, kept(at, &r, grad(at)), op1(at, "Sign", in(at, 0))));
}

/* 0 where the norm is 0. */
void psplit_i_gradient_reduce_l2(psplit_i_at *at) {
  reduction r;
  if (!read_reduction(at, &r)) return;
  const ref y = kept(at, &r, out(at, 0));
  const ref none = op2(at, "Equal", y, number(at, 0));
  const ref safe = choose(at, none, number(at, 1), y);
  const ref g = choose(at, none, number(at, 0), kept(at, &r, grad(at)));
  give(at, 0, mul(at, quotient(at, g, safe), in(at, 0)));
}

void psplit_i_gradient_reduce_sum_square(psplit_i_at *at) {
  reduction r;
  if (!read_reduction(at, &r)) return;
  give(at, 0, mul(at, mul(at, kept(at, &r, grad(at)), number(at, 2)), in(at, 0)));
}

void psplit_i_gradient_reduce_log_sum(psplit_i_at *at) {
  reduction r;
  if (!read_reduction(at, &r)) return;
  const ref inverse = op1(at, "Exp", neg(at, kept(at, &r, out(at, 0))));
  const ref g = mul(at, kept(at, &r, grad(at)), inverse);
  if (r.nothing)
    give(at, 0, g);
  else
    spread(at, g);
}

void psplit_i_gradient_reduce_log_sum_exp(psplit_i_at *at) {
  reduction r;
  if (!read_reduction(at, &r)) return;
  const ref share = op1(at, "Exp", sub(at, in(at, 0), kept(at, &r, out(at, 0))));
  give(at, 0, mul(at, kept(at, &r, grad(at)), share));
}

/* The product of the others: of all that are not 0, unless one of the others is 0. */
void psplit_i_gradient_reduce_prod(psplit_i_at *at) {
  reduction r;
  if (!read_reducing(at, &r)) return;
  const ref x = in(at, 0), zero = op2(at, "Equal", x, number(at, 0));
  const ref is_zero = indicator(at, zero);
  const ref others = sub(at, sum_over(at, is_zero, r.axes, r.n, true), is_zero);
  const ref safe = choose(at, zero, number(at, 1), x);
  const ref all = reduced(at, "ReduceProd", safe, r.axes, r.n, true);
  const ref alone = op2(at, "Equal", others, number(at, 0));
  const ref slope = choose(at, alone, quotient(at, all, safe), number(at, 0));
  give(at, 0, mul(at, kept(at, &r, grad(at)), slope));
}

/* ---- softmax ---- */

/* The axes that a softmax sums over: before opset 13 all from `axis` on. */
static bool softmax_axes(psplit_i_at *at, int64_t *axes, uint32_t *n) {
  const bool old = at->node->opset < 13;
  const int64_t axis = psplit_i_int_or(at, "axis", old ? 1 : -1);
  *n = 0;
  if (!old && axis == -1) {
    axes[(*n)++] = -1;
    return true;
  }
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 0) return false;
  int32_t first = rank == 0 ? 0 : psplit_i_axis_of(at, axis, rank);
  axes[(*n)++] = first;
  while (old && ++first < rank) axes[(*n)++] = first;
  return true;
}

void psplit_i_gradient_softmax(psplit_i_at *at) {
  int64_t axes[PSPLIT_MAX_RANK];
  uint32_t n;
  if (!softmax_axes(at, axes, &n)) return;
  const ref y = out(at, 0), g = grad(at);
  const ref mean = sum_over(at, mul(at, g, y), axes, n, true);
  give(at, 0, mul(at, y, sub(at, g, mean)));
}

void psplit_i_gradient_log_softmax(psplit_i_at *at) {
  int64_t axes[PSPLIT_MAX_RANK];
  uint32_t n;
  if (!softmax_axes(at, axes, &n)) return;
  const ref g = grad(at), sum = sum_over(at, g, axes, n, true);
  give(at, 0, sub(at, g, mul(at, op1(at, "Exp", out(at, 0)), sum)));
}

/* ---- losses: scores [n, c, ...], labels [n, ...] ---- */

/* 1 where a score is the label's, [n, c, ...]. Not OneHot: ONNX Runtime has it for few types. */
static ref one_hot(psplit_i_at *at, ref labels, int32_t rank) {
  int64_t size, spatial[PSPLIT_MAX_RANK];
  const int64_t axis = 1;
  ref count = PSPLIT_NONE;
  if (psplit_i_size(at, psplit_i_type_in(at, 0), 1, &size))
    count = psplit_i_backward_int(at->b, size);
  else
    count = gathered(at, psplit_i_shape_in(at, 0), psplit_i_backward_int(at->b, 1), 0);
  ref classes =
    op3(at, "Range", psplit_i_backward_int(at->b, 0), count, psplit_i_backward_int(at->b, 1));
  for (int32_t i = 0; i < rank - 2; i++) spatial[i] = i + 1;
  if (rank > 2) classes = unsqueezed(at, classes, spatial, (uint32_t)(rank - 2));
  return indicator(at, op2(at, "Equal", unsqueezed(at, labels, &axis, 1), classes));
}

/* What each label's row counts: its class's weight, 0 where it is ignored; PSPLIT_NONE for 1. */
static ref label_weights(psplit_i_at *at, ref labels) {
  int64_t ignored;
  const bool ignores = psplit_i_attr_int(at->node, "ignore_index", &ignored);
  ref weight = PSPLIT_NONE, counts = PSPLIT_NONE;
  if (ignores)
    counts = op1(at, "Not", op2(at, "Equal", labels, psplit_i_backward_int(at->b, ignored)));
  if (psplit_i_given(at, 2)) {
    const ref safe = ignores ? choose(at, counts, labels, psplit_i_backward_int(at->b, 0)) : labels;
    weight = gathered(at, wide_in(at, 2), safe, 0);
  }
  if (!ignores) return weight;
  const ref mask = indicator(at, counts);
  return weight == PSPLIT_NONE ? mask : mul(at, weight, mask);
}

/* The gradient of each row's loss, [n, 1, ...]. */
static ref row_gradients(psplit_i_at *at, ref weights) {
  const int64_t axis = 1;
  ref g = wide_grad(at);
  if (psplit_i_text_equals(at, "reduction", "none")) {
    if (weights != PSPLIT_NONE) g = mul(at, g, weights);
    return unsqueezed(at, g, &axis, 1);
  }
  if (!psplit_i_text_equals(at, "reduction", "sum")) {
    const ref count =
      weights == PSPLIT_NONE ? psplit_i_count_in(at, 1) : sum_over(at, weights, NULL, 0, false);
    g = quotient(at, g, count);
  }
  return weights == PSPLIT_NONE ? g : unsqueezed(at, mul(at, weights, g), &axis, 1);
}

static void class_loss(psplit_i_at *at, bool softmax) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 2) return;
  const ref labels = psplit_i_type_in(at, 1)->elem == PSPLIT_ELEM_INT64
                       ? in(at, 1)
                       : cast(at, in(at, 1), PSPLIT_ELEM_INT64);
  psplit_i_widen(at);
  const ref rows = row_gradients(at, label_weights(at, labels)), hot = one_hot(at, labels, rank);
  if (!softmax) {
    psplit_i_give_narrowed(at, 0, neg(at, mul(at, hot, rows)));
    return;
  }
  const ref scores = wide_in(at, 0);
  with_int(at, "axis", 1);
  psplit_i_give_narrowed(at, 0, mul(at, sub(at, op1(at, "Softmax", scores), hot), rows));
}

void psplit_i_gradient_softmax_cross_entropy(psplit_i_at *at) { class_loss(at, true); }
void psplit_i_gradient_negative_log_likelihood(psplit_i_at *at) { class_loss(at, false); }
