/* Rules: attention, and the rotation of what it compares. Probabilities are computed again: of a
 * sequence there are as many as its length squared. */
#include <float.h>
#include <math.h>

#include "rule.h"

/* Tensors are [batch, heads, sequence, size] or, flat, [batch, sequence, heads * size]. */
typedef struct heads {
  psplit_i_at *at;
  int64_t n, size;
  bool flat;
} heads;

static const int64_t swapped[] = {0, 2, 1, 3}, matrix_flipped[] = {0, 1, 3, 2};

/* How input i is divided into heads, `attribute` says how many where it is flat; false, refused,
 * where that is not known. */
static bool read_heads(psplit_i_at *at, uint32_t i, const char *attribute, heads *h) {
  const psplit_i_vtype *type = psplit_i_type_in(at, i);
  const int32_t rank = psplit_i_need_rank(at, i);
  *h = (heads){.at = at, .flat = rank == 3};
  if (rank < 0) return false;
  h->n = psplit_i_int_or(at, attribute, 0);
  bool known = rank == 3 || rank == 4;
  if (!h->flat) known = known && psplit_i_size(at, type, 1, &h->n);
  known = known && psplit_i_size(at, type, rank - 1, &h->size) && h->n > 0 && h->size > 0;
  if (known && h->flat) {
    known = h->size % h->n == 0;
    h->size /= h->n;
  }
  if (!known) psplit_i_refuse(at, "its heads, or their size, are not known");
  return known;
}

/* [batch, heads, sequence, size] */
static ref apart(const heads *h, ref a) {
  if (!h->flat) return a;
  const ref parts = reshaped(h->at, a, ints(h->at, (int64_t[]){0, 0, h->n, h->size}, 4));
  return transposed(h->at, parts, swapped, 4);
}

static ref together(const heads *h, ref a) {
  if (!h->flat) return a;
  const ref rows = transposed(h->at, a, swapped, 4);
  return reshaped(h->at, rows, ints(h->at, (int64_t[]){0, 0, h->n * h->size}, 3));
}

/* Each head `times` times in a row, and the sum of what each of these gets. */
static ref repeated(const heads *h, ref a, int64_t times) {
  psplit_i_at *at = h->at;
  if (times == 1) return a;
  const int64_t shape[] = {1, 1, times, 1, 1}, axis = 2;
  const ref ones = expanded(at, number(at, 1), ints(at, shape, 5));
  const ref all = mul(at, unsqueezed(at, a, &axis, 1), ones);
  return reshaped(at, all, ints(at, (int64_t[]){0, h->n * times, -1, h->size}, 4));
}

static ref summed(const heads *h, ref a, int64_t times) {
  psplit_i_at *at = h->at;
  if (times == 1) return a;
  const ref parts = reshaped(at, a, ints(at, (int64_t[]){0, h->n, times, -1, h->size}, 5));
  return sum_over(at, parts, (int64_t[]){2}, 1, false);
}

/* No position looks at one behind it. */
static ref causal(psplit_i_at *at, ref scores) {
  const ref inputs[] = {op1(at, "Shape", scores), int1(at, 2), int1(at, 4)};
  const ref square = psplit_i_backward_node(at->b, "Slice", 3, inputs, 1);
  const ref ones = expanded(at, number(at, 1), square);
  with_int(at, "upper", 0);
  const ref lower = op1(at, "Trilu", ones);
  return op2(at, "Greater", lower, number(at, 0));
}

/* Which scores count, or PSPLIT_NONE for all. */
static ref conditions(psplit_i_at *at, ref scores) {
  const ref before = psplit_i_int_or(at, "is_causal", 0) ? causal(at, scores) : PSPLIT_NONE;
  if (psplit_i_type_in(at, 3)->elem != PSPLIT_ELEM_BOOL) return before;
  return before == PSPLIT_NONE ? in(at, 3) : op2(at, "And", before, in(at, 3));
}

void psplit_i_gradient_attention(psplit_i_at *at) {
  static const psplit_i_vtype any = {.rank = -1};
  heads q, k, v;
  if (!read_heads(at, 0, "q_num_heads", &q) || !read_heads(at, 1, "kv_num_heads", &k) ||
      !read_heads(at, 2, "kv_num_heads", &v))
    return;
  const char *why =
    psplit_i_given(at, 4) || psplit_i_given(at, 5) ? "it has keys and values of steps before"
    : psplit_i_given(at, 6)                        ? "it has lengths of sequences"
    : q.n % k.n || k.n != v.n || q.size != k.size  ? "its heads do not fit each other"
                                                   : NULL;
  if (why) {
    psplit_i_refuse(at, "%s", why);
    return;
  }
  psplit_i_widen(at);
  const int64_t times = q.n / k.n;
  const double scale = (double)psplit_i_float_or(at, "scale", 0);
  const ref factor = number(at, scale != 0 ? scale : 1 / sqrt((double)q.size));
  const heads out_heads = {.at = at, .n = q.n, .size = v.size, .flat = q.flat};
  const ref g = apart(&out_heads, wide_grad(at));
  const ref queries = apart(&q, wide_in(at, 0));
  const ref keys = repeated(&k, apart(&k, wide_in(at, 1)), times);
  const ref values = repeated(&v, apart(&v, wide_in(at, 2)), times);
  ref scores = product(at, mul(at, queries, factor), transposed(at, keys, matrix_flipped, 4));
  const double cap = (double)psplit_i_float_or(at, "softcap", 0);
  ref bent = PSPLIT_NONE;
  if (cap != 0) {
    bent = op1(at, "Tanh", quotient(at, scores, number(at, cap)));
    scores = mul(at, bent, number(at, cap));
  }
  const ref counts = conditions(at, scores);
  if (psplit_i_given(at, 3) && psplit_i_type_in(at, 3)->elem != PSPLIT_ELEM_BOOL)
    scores = add(at, scores, wide_in(at, 3));
  /* Not minus infinity: of a row in which none counts nothing comes out, as in ONNX Runtime. */
  if (counts != PSPLIT_NONE) scores = choose(at, counts, scores, number(at, -(double)FLT_MAX));
  with_int(at, "axis", -1);
  ref shares = op1(at, "Softmax", scores);
  if (counts != PSPLIT_NONE) shares = choose(at, counts, shares, number(at, 0));
  if (wanted(at, 2)) {
    const ref part = product(at, transposed(at, shares, matrix_flipped, 4), g);
    psplit_i_give_narrowed(at, 2, together(&v, summed(&v, part, times)));
  }
  if (!wanted(at, 0) && !wanted(at, 1) && !wanted(at, 3)) return;
  const ref to_shares = product(at, g, transposed(at, values, matrix_flipped, 4));
  const ref mean = sum_over(at, mul(at, to_shares, shares), (int64_t[]){-1}, 1, true);
  const ref to_scores = mul(at, shares, sub(at, to_shares, mean));
  if (wanted(at, 3)) psplit_i_give_narrowed(at, 3, psplit_i_sum_like(at, to_scores, &any, 3));
  ref scaled = mul(at, to_scores, factor);
  if (cap != 0) scaled = mul(at, scaled, sub(at, number(at, 1), mul(at, bent, bent)));
  if (wanted(at, 0)) psplit_i_give_narrowed(at, 0, together(&q, product(at, scaled, keys)));
  if (!wanted(at, 1)) return;
  const ref part = product(at, transposed(at, scaled, matrix_flipped, 4), queries);
  psplit_i_give_narrowed(at, 1, together(&k, summed(&k, part, times)));
}

/* [begin, end) of the last axis, by steps. */
static ref columns(psplit_i_at *at, ref a, int64_t begin, int64_t end, int64_t step) {
  const ref inputs[] = {a, int1(at, begin), int1(at, end), int1(at, -1), int1(at, step)};
  return psplit_i_backward_node(at->b, "Slice", 5, inputs, 1);
}

/* Cosines or sines for each position, [batch, 1, sequence, size / 2]. */
static ref angles(psplit_i_at *at, uint32_t i) {
  ref a = wide_in(at, i);
  if (psplit_i_given(at, 3)) a = gathered(at, a, in(at, 3), 0);
  return unsqueezed(at, a, (int64_t[]){1}, 1);
}

/* Pairs (a, b) were turned to (a cos - b sin, a sin + b cos): back by the same angle. */
void psplit_i_gradient_rotary_embedding(psplit_i_at *at) {
  heads h;
  if (!read_heads(at, 0, "num_heads", &h)) return;
  const int64_t some = psplit_i_int_or(at, "rotary_embedding_dim", 0), n = some ? some : h.size;
  const bool in_turn = psplit_i_int_or(at, "interleaved", 0) != 0;
  if (n < 0 || n % 2 || n > h.size) {
    psplit_i_refuse(at, "the size that it turns is not even, or too large");
    return;
  }
  psplit_i_widen(at);
  const ref g = apart(&h, wide_grad(at)), cosines = angles(at, 1), sines = angles(at, 2);
  const ref a = columns(at, g, 0, in_turn ? n : n / 2, in_turn ? 2 : 1);
  const ref b = columns(at, g, in_turn ? 1 : n / 2, n, in_turn ? 2 : 1);
  ref pair[] = {add(at, mul(at, a, cosines), mul(at, b, sines)),
                sub(at, mul(at, b, cosines), mul(at, a, sines))};
  const int64_t last = -1;
  for (size_t i = 0; i < 2 && in_turn; i++) pair[i] = unsqueezed(at, pair[i], &last, 1);
  ref turned = concat(at, pair, 2, -1);
  if (in_turn) turned = reshaped(at, turned, ints(at, (int64_t[]){0, h.n, -1, n}, 4));
  const ref all[] = {turned, n < h.size ? columns(at, g, n, h.size, 1) : PSPLIT_NONE};
  psplit_i_give_narrowed(at, 0, together(&h, concat(at, all, n < h.size ? 2 : 1, -1)));
}
