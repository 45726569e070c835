/* Rules: normalisations. Statistics are recomputed, as they are cheap and small; for half precision
 * in float32, as the operators do, since squares of values above 256 overflow. */
#include "rule.h"

/* x minus its mean over the axes, and one over its standard deviation. */
typedef struct normalised {
  ref centred, inverse, unit; /* unit = centred * inverse */
} normalised;

static normalised normalise(psplit_i_at *at, ref x, const int64_t *axes, uint32_t n, double epsilon,
                            bool centre) {
  normalised s;
  s.centred = centre ? sub(at, x, reduced(at, "ReduceMean", x, axes, n, true)) : x;
  const ref variance = reduced(at, "ReduceMean", mul(at, s.centred, s.centred), axes, n, true);
  const ref deviation = op1(at, "Sqrt", add(at, variance, number(at, epsilon)));
  s.inverse = op1(at, "Reciprocal", deviation);
  s.unit = mul(at, s.centred, s.inverse);
  return s;
}

/* inverse * (g - mean(g) - unit * mean(g * unit)), the first mean only where x was centred. */
static ref through_statistics(psplit_i_at *at, const normalised *s, ref g, const int64_t *axes,
                              uint32_t n, bool centre) {
  const ref along = reduced(at, "ReduceMean", mul(at, g, s->unit), axes, n, true);
  ref rest = sub(at, g, mul(at, s->unit, along));
  if (centre) rest = sub(at, rest, reduced(at, "ReduceMean", g, axes, n, true));
  return mul(at, rest, s->inverse);
}

/* ---- over the last axes ---- */

/* What is normalised, of which type, over its last `n` axes, and the inputs that it is multiplied
 * by and that is added then: */
typedef struct layer {
  const psplit_i_vtype *type;
  uint32_t scale, bias;
  double epsilon;
  int64_t axes[PSPLIT_MAX_RANK];
  uint32_t n;
  bool centre;
} layer;

/* Gives scale and bias their parts of the gradient at output 0; the rest goes to `x`. */
static ref through_layer(psplit_i_at *at, const layer *l, ref x, bool x_wanted) {
  const uint32_t scale = l->scale, bias = l->bias;
  const ref g = wide_grad(at);
  if (wanted(at, bias)) psplit_i_give_narrowed(at, bias, psplit_i_sum_like(at, g, l->type, bias));
  if (!x_wanted && !wanted(at, scale)) return PSPLIT_NONE;
  const normalised s = normalise(at, x, l->axes, l->n, l->epsilon, l->centre);
  if (wanted(at, scale))
    psplit_i_give_narrowed(at, scale, psplit_i_sum_like(at, mul(at, g, s.unit), l->type, scale));
  if (!x_wanted) return PSPLIT_NONE;
  const ref scaled = psplit_i_given(at, scale) ? mul(at, g, wide_in(at, scale)) : g;
  return through_statistics(at, &s, scaled, l->axes, l->n, l->centre);
}

static void layer_norm(psplit_i_at *at, bool centre) {
  layer l = {.type = psplit_i_type_in(at, 0), .scale = 1, .bias = 2, .centre = centre};
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 1) return;
  const int32_t first = psplit_i_axis_of(at, psplit_i_int_or(at, "axis", -1), rank);
  for (int32_t axis = first; axis < rank; axis++) l.axes[l.n++] = axis;
  l.epsilon = (double)psplit_i_float_or(at, "epsilon", 1e-5f);
  psplit_i_widen(at);
  psplit_i_give_narrowed(at, 0, through_layer(at, &l, wide_in(at, 0), wanted(at, 0)));
}

void psplit_i_gradient_layer_normalization(psplit_i_at *at) { layer_norm(at, true); }
void psplit_i_gradient_rms_normalization(psplit_i_at *at) { layer_norm(at, false); }

/* ---- of sums ---- */

enum { SKIP_SUM = 3, EMBEDDING_SUM = 2, IDS = 0, SEGMENTS = 1, FIRST_TABLE = 2, POSITIONS = 8 };

/* The gradient at a sum that is normalised over its last axis to output 0, and itself is output
 * `output`. */
static ref through_sum(psplit_i_at *at, layer *l, ref sum, uint32_t output, bool sum_wanted) {
  const ref direct = psplit_i_wide(at, psplit_i_gradient_at(at, output), at->narrow);
  ref all = PSPLIT_NONE;
  l->n = 1;
  l->axes[0] = -1;
  l->epsilon = (double)psplit_i_float_or(at, "epsilon", 1e-12f);
  if (psplit_i_gradient_at(at, 0) != PSPLIT_NONE) {
    all = through_layer(at, l, sum, sum_wanted);
  } else {
    psplit_i_give_nothing(at, l->scale);
    psplit_i_give_nothing(at, l->bias);
  }
  return sum_given(at, all, direct);
}

/* x + skip, and a bias where there is one. */
static void skip_norm(psplit_i_at *at, layer *l, uint32_t bias) {
  bool any = false;
  for (uint32_t i = 0; i < at->node->n_inputs; i++) any |= (i < 2 || i == bias) && wanted(at, i);
  psplit_i_widen(at);
  const ref two = add(at, wide_in(at, 0), wide_in(at, 1)), shift = wide_in(at, bias);
  const ref x = sum_given(at, two, shift);
  const ref g = through_sum(at, l, x, SKIP_SUM, any);
  if (!any) return;
  psplit_i_give_narrowed(at, 0, g);
  if (wanted(at, 1)) psplit_i_give_narrowed(at, 1, psplit_i_sum_like(at, g, l->type, 1));
  if (wanted(at, bias)) psplit_i_give_narrowed(at, bias, psplit_i_sum_like(at, g, l->type, bias));
}

void psplit_i_gradient_skip_layer_normalization(psplit_i_at *at) {
  layer l = {.type = psplit_i_type_in(at, 0), .scale = 2, .bias = 3, .centre = true};
  skip_norm(at, &l, 4);
}
void psplit_i_gradient_skip_rms_normalization(psplit_i_at *at) {
  layer l = {.type = psplit_i_type_in(at, 0), .scale = 2, .bias = PSPLIT_NONE};
  skip_norm(at, &l, 3);
}

/* Of each word [batch, sequence] the row of table i: of words, of positions, of segments. */
static ref rows_of_table(psplit_i_at *at, uint32_t i) {
  static const uint32_t where[] = {IDS, POSITIONS, SEGMENTS};
  const ref shape = op1(at, "Shape", in(at, IDS));
  ref rows = in(at, where[i]);
  if (rows == PSPLIT_NONE) {
    const ref length = gathered(at, shape, psplit_i_backward_int(at->b, 1), 0);
    rows =
      op3(at, "Range", psplit_i_backward_int(at->b, 0), length, psplit_i_backward_int(at->b, 1));
  } else {
    rows = cast(at, rows, PSPLIT_ELEM_INT64);
  }
  return expanded(at, rows, shape);
}

void psplit_i_gradient_embed_layer_normalization(psplit_i_at *at) {
  layer l = {.type = psplit_i_type_out(at, 0), .scale = 5, .bias = 6, .centre = true};
  ref rows[3] = {PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE}, sum = PSPLIT_NONE;
  bool any = false;
  const bool segments = psplit_i_given(at, SEGMENTS);
  if (!psplit_i_given(at, IDS) || !psplit_i_given(at, FIRST_TABLE) ||
      !psplit_i_given(at, FIRST_TABLE + 1) || segments != psplit_i_given(at, FIRST_TABLE + 2)) {
    psplit_i_refuse(at, "words, positions or one of the tables are missing");
    return;
  }
  psplit_i_widen(at);
  for (uint32_t i = 0; i < 2 + (uint32_t)segments; i++) {
    any |= wanted(at, FIRST_TABLE + i);
    rows[i] = rows_of_table(at, i);
    const ref table = wide_in(at, FIRST_TABLE + i), part = gathered(at, table, rows[i], 0);
    sum = sum_given(at, sum, part);
  }
  const ref g = through_sum(at, &l, sum, EMBEDDING_SUM, any);
  const int64_t last = -1;
  for (uint32_t i = 0; i < 2 + (uint32_t)segments; i++) {
    if (!wanted(at, FIRST_TABLE + i)) continue;
    const ref index = unsqueezed(at, rows[i], &last, 1);
    const ref shape = psplit_i_shape_in(at, FIRST_TABLE + i);
    psplit_i_give_narrowed(at, FIRST_TABLE + i,
                           psplit_i_scattered(at, shape, index, g, PSPLIT_BY_INDEX));
  }
}

/* (x - mean) / (deviation + 1e-9) */
void psplit_i_gradient_mean_variance(psplit_i_at *at) {
  const int64_t *list;
  size_t n_list;
  int64_t axes[PSPLIT_MAX_RANK] = {0, 2, 3};
  uint32_t n = 3;
  if (psplit_i_attr_ints(at->node, "axes", &list, &n_list) && n_list <= PSPLIT_MAX_RANK)
    for (n = 0; n < n_list; n++) axes[n] = list[n];
  psplit_i_widen(at);
  const ref x = wide_in(at, 0), g = wide_grad(at);
  const ref centred = sub(at, x, reduced(at, "ReduceMean", x, axes, n, true));
  const ref variance = reduced(at, "ReduceMean", mul(at, centred, centred), axes, n, true);
  const ref deviation = op1(at, "Sqrt", variance);
  const ref divisor = add(at, deviation, number(at, 1e-9));
  const ref along = reduced(at, "ReduceMean", mul(at, g, centred), axes, n, true);
  const ref bend = quotient(at, along, mul(at, deviation, mul(at, divisor, divisor)));
  const ref level = quotient(at, sub(at, g, reduced(at, "ReduceMean", g, axes, n, true)), divisor);
  psplit_i_give_narrowed(at, 0, sub(at, level, mul(at, centred, bend)));
}

/* ---- by channel: [n, c, ...] ---- */

/* A vector over channels against a tensor of `rank`. */
static ref by_channel(psplit_i_at *at, ref vector, int32_t rank) {
  int64_t axes[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < rank - 2; i++) axes[i] = i + 1;
  return rank > 2 ? unsqueezed(at, vector, axes, (uint32_t)(rank - 2)) : vector;
}

/* All axes but that of the channels. */
static uint32_t other_axes(int32_t rank, int64_t *axes) {
  uint32_t n = 0;
  for (int32_t i = 0; i < rank; i++)
    if (i != 1) axes[n++] = i;
  return n;
}

static void batch_norm_frozen(psplit_i_at *at, int32_t rank, double epsilon) {
  int64_t axes[PSPLIT_MAX_RANK];
  const uint32_t n = other_axes(rank, axes);
  const ref g = wide_grad(at);
  if (wanted(at, 3) || wanted(at, 4)) {
    psplit_i_refuse(at, "its running mean and variance are not weights that can be trained");
    return;
  }
  if (wanted(at, 2)) psplit_i_give_narrowed(at, 2, sum_over(at, g, axes, n, false));
  if (!wanted(at, 0) && !wanted(at, 1)) return;
  const ref deviation = op1(at, "Sqrt", add(at, wide_in(at, 4), number(at, epsilon)));
  if (wanted(at, 0))
    psplit_i_give_narrowed(
      at, 0, mul(at, g, by_channel(at, quotient(at, wide_in(at, 1), deviation), rank)));
  if (!wanted(at, 1)) return;
  const ref centred = sub(at, wide_in(at, 0), by_channel(at, wide_in(at, 3), rank));
  psplit_i_give_narrowed(
    at, 1, quotient(at, sum_over(at, mul(at, g, centred), axes, n, false), deviation));
}

static void batch_norm_training(psplit_i_at *at, int32_t rank, double epsilon) {
  int64_t axes[PSPLIT_MAX_RANK];
  const uint32_t n = other_axes(rank, axes);
  /* The running statistics are not read. */
  psplit_i_give_nothing(at, 3);
  psplit_i_give_nothing(at, 4);
  const ref g = wide_grad(at);
  const normalised s = normalise(at, wide_in(at, 0), axes, n, epsilon, true);
  const ref along = mul(at, g, s.unit);
  if (wanted(at, 2)) psplit_i_give_narrowed(at, 2, sum_over(at, g, axes, n, false));
  if (wanted(at, 1)) psplit_i_give_narrowed(at, 1, sum_over(at, along, axes, n, false));
  if (!wanted(at, 0)) return;
  const ref mean = reduced(at, "ReduceMean", g, axes, n, true);
  const ref mean_along = reduced(at, "ReduceMean", along, axes, n, true);
  const ref rest = sub(at, sub(at, g, mean), mul(at, s.unit, mean_along));
  psplit_i_give_narrowed(at, 0,
                         mul(at, rest, mul(at, s.inverse, by_channel(at, wide_in(at, 1), rank))));
}

void psplit_i_gradient_batch_normalization(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  const double epsilon = (double)psplit_i_float_or(at, "epsilon", 1e-5f);
  if (rank < 2) return;
  const int64_t opset = at->node->opset;
  psplit_i_widen(at);
  bool training = psplit_i_int_or(at, "training_mode", 0) != 0;
  if (opset < 7) training = psplit_i_int_or(at, "is_test", 0) == 0;
  if (opset >= 7 && opset < 14) training = at->node->n_outputs > 1;
  if (opset < 9 && psplit_i_int_or(at, "spatial", 1) == 0)
    psplit_i_refuse(at, "it normalises each position by itself (spatial = 0)");
  else if (training)
    batch_norm_training(at, rank, epsilon);
  else
    batch_norm_frozen(at, rank, epsilon);
}

void psplit_i_gradient_instance_normalization(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  int64_t axes[PSPLIT_MAX_RANK], others[PSPLIT_MAX_RANK];
  if (rank < 3) return;
  const uint32_t n = (uint32_t)rank - 2, n_others = other_axes(rank, others);
  for (uint32_t i = 0; i < n; i++) axes[i] = i + 2;
  psplit_i_widen(at);
  const ref g = wide_grad(at);
  const double epsilon = (double)psplit_i_float_or(at, "epsilon", 1e-5f);
  const normalised s = normalise(at, wide_in(at, 0), axes, n, epsilon, true);
  if (wanted(at, 2)) psplit_i_give_narrowed(at, 2, sum_over(at, g, others, n_others, false));
  if (wanted(at, 1))
    psplit_i_give_narrowed(at, 1, sum_over(at, mul(at, g, s.unit), others, n_others, false));
  if (!wanted(at, 0)) return;
  const ref scaled = mul(at, g, by_channel(at, wide_in(at, 1), rank));
  psplit_i_give_narrowed(at, 0, through_statistics(at, &s, scaled, axes, n, true));
}

/* Scale and bias by group up to opset 20, by channel since. */
void psplit_i_gradient_group_normalization(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  int64_t others[PSPLIT_MAX_RANK];
  if (rank < 2) return;
  const int64_t groups = psplit_i_int_or(at, "num_groups", 1), last = 2;
  const ref grouped = ints(at, (int64_t[]){0, groups, -1}, 3);
  const uint32_t n_others = other_axes(rank, others);
  const bool per_group = at->node->opset < 21;
  const double epsilon = (double)psplit_i_float_or(at, "epsilon", 1e-5f);
  psplit_i_widen(at);
  const ref g = wide_grad(at), g3 = reshaped(at, g, grouped),
            x3 = reshaped(at, wide_in(at, 0), grouped);
  const normalised s = normalise(at, x3, &last, 1, epsilon, true);
  static const int64_t outer[] = {0, 2};
  if (per_group) {
    if (wanted(at, 2)) psplit_i_give_narrowed(at, 2, sum_over(at, g3, outer, 2, false));
    if (wanted(at, 1))
      psplit_i_give_narrowed(at, 1, sum_over(at, mul(at, g3, s.unit), outer, 2, false));
  } else {
    if (wanted(at, 2)) psplit_i_give_narrowed(at, 2, sum_over(at, g, others, n_others, false));
    if (wanted(at, 1)) {
      const ref unit = psplit_i_reshape_like(at, s.unit, 0);
      psplit_i_give_narrowed(at, 1, sum_over(at, mul(at, g, unit), others, n_others, false));
    }
  }
  if (!wanted(at, 0)) return;
  static const int64_t one = 1;
  const ref scaled = per_group
                       ? mul(at, g3, unsqueezed(at, wide_in(at, 1), &one, 1))
                       : reshaped(at, mul(at, g, by_channel(at, wide_in(at, 1), rank)), grouped);
  psplit_i_give_narrowed(
    at, 0, psplit_i_reshape_like(at, through_statistics(at, &s, scaled, &last, 1, true), 0));
}

/* Channels last, [n, ..., c], or first: the groups of `x` normalised, multiplied, added to, and
 * with `activation` z * sigmoid(z) of that. The gradient at x. */
static ref through_group_norm(psplit_i_at *at, ref x, int32_t rank, bool x_wanted) {
  const bool last = psplit_i_int_or(at, "channels_last", 1) != 0;
  const int64_t groups = psplit_i_int_or(at, "groups", 1), axis = 2;
  int64_t first[PSPLIT_MAX_RANK] = {0, rank - 1}, back[PSPLIT_MAX_RANK] = {0},
          others[PSPLIT_MAX_RANK];
  const uint32_t n_others = other_axes(rank, others);
  for (int32_t i = 2; i < rank; i++) first[i] = i - 1;
  for (int32_t i = 1; i < rank; i++) back[first[i]] = i;
  ref g = wide_grad(at);
  if (last) x = transposed(at, x, first, (size_t)rank);
  if (last) g = transposed(at, g, first, (size_t)rank);
  const ref shape = op1(at, "Shape", x), grouped = ints(at, (int64_t[]){0, groups, -1}, 3);
  const normalised s = normalise(at, reshaped(at, x, grouped), &axis, 1,
                                 (double)psplit_i_float_or(at, "epsilon", 1e-5f), true);
  const ref unit = reshaped(at, s.unit, shape);
  const ref scale = by_channel(at, wide_in(at, 1), rank);
  if (psplit_i_int_or(at, "activation", 0)) {
    const ref scaled = mul(at, unit, scale);
    const ref z = add(at, scaled, by_channel(at, wide_in(at, 2), rank));
    const ref share = op1(at, "Sigmoid", z), rest = sub(at, number(at, 1), share);
    g = mul(at, g, mul(at, share, add(at, mul(at, z, rest), number(at, 1))));
  }
  if (wanted(at, 2)) psplit_i_give_narrowed(at, 2, sum_over(at, g, others, n_others, false));
  if (wanted(at, 1))
    psplit_i_give_narrowed(at, 1, sum_over(at, mul(at, g, unit), others, n_others, false));
  if (!x_wanted) return PSPLIT_NONE;
  const ref part =
    through_statistics(at, &s, reshaped(at, mul(at, g, scale), grouped), &axis, 1, true);
  const ref all = reshaped(at, part, shape);
  return last ? transposed(at, all, back, (size_t)rank) : all;
}

void psplit_i_gradient_group_norm(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 3) return;
  psplit_i_widen(at);
  psplit_i_give_narrowed(at, 0, through_group_norm(at, wide_in(at, 0), rank, wanted(at, 0)));
}

/* x + skip, and a bias where there is one; its sum is output 1. */
void psplit_i_gradient_skip_group_norm(psplit_i_at *at) {
  enum { SKIP = 3, BIAS = 4, SUM = 1 };
  const int32_t rank = psplit_i_need_rank(at, 0), skip_rank = psplit_i_need_rank(at, SKIP);
  const bool any = wanted(at, 0) || wanted(at, SKIP) || wanted(at, BIAS);
  const psplit_i_vtype *type = psplit_i_type_in(at, 0);
  if (rank < 3 || skip_rank < 0) return;
  if (skip_rank != rank || !psplit_i_int_or(at, "channels_last", 1)) {
    psplit_i_refuse(at, "it adds no tensor of as many axes, or channels are first");
    return;
  }
  psplit_i_widen(at);
  const ref two = add(at, wide_in(at, 0), wide_in(at, SKIP)), shift = wide_in(at, BIAS);
  ref all = psplit_i_wide(at, psplit_i_gradient_at(at, SUM), at->narrow);
  if (psplit_i_gradient_at(at, 0) != PSPLIT_NONE) {
    const ref normal = through_group_norm(at, sum_given(at, two, shift), rank, any);
    all = sum_given(at, normal, all);
  } else {
    psplit_i_give_nothing(at, 1);
    psplit_i_give_nothing(at, 2);
  }
  psplit_i_give_narrowed(at, 0, all);
  if (wanted(at, SKIP)) psplit_i_give_narrowed(at, SKIP, psplit_i_sum_like(at, all, type, SKIP));
  if (wanted(at, BIAS)) psplit_i_give_narrowed(at, BIAS, psplit_i_sum_like(at, all, type, BIAS));
}

/* x over its norm along an axis; 0 where the norm is 0. */
void psplit_i_gradient_lp_normalization(psplit_i_at *at) {
  const int64_t axis = psplit_i_int_or(at, "axis", -1), p = psplit_i_int_or(at, "p", 2);
  psplit_i_widen(at);
  const ref x = wide_in(at, 0), g = wide_grad(at);
  const ref norm = reduced(at, p == 1 ? "ReduceL1" : "ReduceL2", x, &axis, 1, true);
  const ref none = op2(at, "Equal", norm, number(at, 0));
  const ref safe = choose(at, none, number(at, 1), norm);
  const ref y = psplit_i_wide(at, out(at, 0), at->narrow);
  const ref along = sum_over(at, mul(at, g, y), &axis, 1, true);
  const ref direction = p == 1 ? op1(at, "Sign", x) : y;
  const ref part = quotient(at, sub(at, g, mul(at, direction, along)), safe);
  psplit_i_give_narrowed(at, 0, choose(at, none, number(at, 0), part));
}

/* Sums over windows of `size` neighbouring channels, `before` of them in front. */
static ref channel_windows(psplit_i_at *at, ref a, int32_t rank, int64_t size, int64_t before) {
  int64_t pads[2 * PSPLIT_MAX_RANK] = {0};
  const int64_t axis = 1;
  pads[1] = before;
  pads[1 + rank] = size - 1 - before;
  const ref padded = op2(at, "Pad", a, ints(at, pads, 2 * (uint32_t)rank));
  ref sum = PSPLIT_NONE;
  for (int64_t i = 0; i < size; i++) {
    const int64_t end = i - size + 1;
    const ref inputs[] = {padded, int1(at, i), int1(at, end ? end : INT64_MAX), int1(at, axis)};
    const ref part = psplit_i_backward_node(at->b, "Slice", 4, inputs, 1);
    sum = sum_given(at, sum, part);
  }
  return sum;
}

/* y = x base^-beta, base = bias + alpha / size * (x^2 summed over a window of channels) */
void psplit_i_gradient_lrn(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  const double alpha = (double)psplit_i_float_or(at, "alpha", 0.0001f);
  const double beta = (double)psplit_i_float_or(at, "beta", 0.75f);
  const double bias = (double)psplit_i_float_or(at, "bias", 1);
  const int64_t size = psplit_i_int_or(at, "size", 1);
  if (rank < 2) return;
  if (size < 1 || size > 1024) {
    psplit_i_refuse(at, "its size is out of range");
    return;
  }
  const int64_t before = (size - 1) / 2;
  psplit_i_widen(at);
  const ref x = wide_in(at, 0), g = wide_grad(at);
  const ref squares = channel_windows(at, mul(at, x, x), rank, size, before);
  const ref base = add(at, times(at, squares, alpha / (double)size), number(at, bias));
  const ref power = op2(at, "Pow", base, number(at, -beta));
  const ref part = quotient(at, mul(at, mul(at, g, x), power), base);
  const ref bend = channel_windows(at, part, rank, size, size - 1 - before);
  const ref curve = times(at, mul(at, x, bend), 2 * alpha * beta / (double)size);
  psplit_i_give_narrowed(at, 0, sub(at, mul(at, g, power), curve));
}
