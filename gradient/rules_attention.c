/* Rules: attention, and rotary embeddings. */
#include <float.h>
#include <math.h>

#include "attention.h"

typedef psplit_i_heads heads;

static const int64_t SWAPPED[] = {0, 2, 1, 3}, MATRIX_FLIPPED[] = {0, 1, 3, 2};

bool psplit_i_read_heads(psplit_i_at *at, uint32_t i, const char *attribute, heads *h) {
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
  known = known && h->n <= INT32_MAX / h->size;
  if (!known) psplit_i_refuse(at, "its heads, or their size, are not known");
  return known;
}

ref psplit_i_heads_apart(const heads *h, ref a) {
  if (!h->flat) return a;
  const ref parts = reshaped(h->at, a, ints(h->at, (int64_t[]){0, 0, h->n, h->size}, 4));
  return transposed(h->at, parts, SWAPPED, 4);
}

ref psplit_i_heads_together(const heads *h, ref a) {
  if (!h->flat) return a;
  const ref rows = transposed(h->at, a, SWAPPED, 4);
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
static ref conditions(psplit_i_at *at, const psplit_i_attention *a, ref scores) {
  const ref before = a->causal ? causal(at, scores) : PSPLIT_NONE;
  if (a->mask == PSPLIT_NONE) return before;
  return before == PSPLIT_NONE ? a->mask : op2(at, "And", before, a->mask);
}

/* `values` gets its gradient from the shares, the others from the scores. */
void psplit_i_through_attention(psplit_i_at *at, psplit_i_attention *a) {
  ref scores =
    product(at, mul(at, a->queries, a->factor), transposed(at, a->keys, MATRIX_FLIPPED, 4));
  ref bent = PSPLIT_NONE;
  if (a->cap != 0) {
    bent = op1(at, "Tanh", quotient(at, scores, number(at, a->cap)));
    scores = mul(at, bent, number(at, a->cap));
  }
  const ref counts = conditions(at, a, scores);
  scores = sum_given(at, scores, a->added);
  /* Not minus infinity: of a row in which none counts nothing comes out, as in ONNX Runtime. */
  if (counts != PSPLIT_NONE) scores = choose(at, counts, scores, number(at, -(double)FLT_MAX));
  with_int(at, "axis", -1);
  ref shares = op1(at, "Softmax", scores);
  if (counts != PSPLIT_NONE) shares = choose(at, counts, shares, number(at, 0));
  if (a->want & PSPLIT_I_VALUES)
    a->to_values = product(at, transposed(at, shares, MATRIX_FLIPPED, 4), a->gradient);
  if (!(a->want & ~(uint32_t)PSPLIT_I_VALUES)) return;
  const ref to_shares = product(at, a->gradient, transposed(at, a->values, MATRIX_FLIPPED, 4));
  const ref mean = sum_over(at, mul(at, to_shares, shares), (int64_t[]){-1}, 1, true);
  a->to_added = mul(at, shares, sub(at, to_shares, mean));
  ref scaled = mul(at, a->to_added, a->factor);
  if (a->cap != 0) scaled = mul(at, scaled, sub(at, number(at, 1), mul(at, bent, bent)));
  if (a->want & PSPLIT_I_QUERIES) a->to_queries = product(at, scaled, a->keys);
  if (a->want & PSPLIT_I_KEYS)
    a->to_keys = product(at, transposed(at, scaled, MATRIX_FLIPPED, 4), a->queries);
}

ref psplit_i_attention_factor(psplit_i_at *at, int64_t size) {
  const double scale = (double)psplit_i_float_or(at, "scale", 0);
  return number(at, scale != 0 ? scale : 1 / sqrt((double)size));
}

void psplit_i_gradient_attention(psplit_i_at *at) {
  static const psplit_i_vtype any = {.rank = -1};
  heads q, k, v;
  if (!psplit_i_read_heads(at, 0, "q_num_heads", &q) ||
      !psplit_i_read_heads(at, 1, "kv_num_heads", &k) ||
      !psplit_i_read_heads(at, 2, "kv_num_heads", &v))
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
  const bool masks = psplit_i_type_in(at, 3)->elem == PSPLIT_ELEM_BOOL;
  const heads out_heads = {.at = at, .n = q.n, .size = v.size, .flat = q.flat};
  psplit_i_attention a = {.factor = psplit_i_attention_factor(at, q.size),
                          .cap = (double)psplit_i_float_or(at, "softcap", 0),
                          .causal = psplit_i_int_or(at, "is_causal", 0) != 0};
  a.gradient = psplit_i_heads_apart(&out_heads, wide_grad(at));
  a.queries = psplit_i_heads_apart(&q, wide_in(at, 0));
  a.keys = repeated(&k, psplit_i_heads_apart(&k, wide_in(at, 1)), times);
  a.values = repeated(&v, psplit_i_heads_apart(&v, wide_in(at, 2)), times);
  a.mask = masks ? in(at, 3) : PSPLIT_NONE;
  a.added = masks ? PSPLIT_NONE : wide_in(at, 3);
  a.want = psplit_i_attention_want(at, 3);
  psplit_i_through_attention(at, &a);
  if (wanted(at, 2))
    psplit_i_give_narrowed(at, 2, psplit_i_heads_together(&v, summed(&v, a.to_values, times)));
  if (wanted(at, 3)) psplit_i_give_narrowed(at, 3, psplit_i_sum_like(at, a.to_added, &any, 3));
  if (wanted(at, 0)) psplit_i_give_narrowed(at, 0, psplit_i_heads_together(&q, a.to_queries));
  if (wanted(at, 1))
    psplit_i_give_narrowed(at, 1, psplit_i_heads_together(&k, summed(&k, a.to_keys, times)));
}

/* Cosines or sines for each position, [batch, 1, sequence, size / 2]. */
static ref angles(psplit_i_at *at, uint32_t i) {
  ref a = wide_in(at, i);
  if (psplit_i_given(at, 3)) a = gathered(at, a, in(at, 3), 0);
  return unsqueezed(at, a, (int64_t[]){1}, 1);
}

bool psplit_i_read_turned(psplit_i_at *at, const heads *h, int64_t *out_n) {
  const int64_t some = psplit_i_int_or(at, "rotary_embedding_dim", 0);
  *out_n = some ? some : h->size;
  if (*out_n > 0 && *out_n % 2 == 0 && *out_n <= h->size) return true;
  psplit_i_refuse(at, "the size that it turns is not even, or too large");
  return false;
}

/* Pairs (a, b) were turned to (a cos - b sin, a sin + b cos): back by the same angle. */
void psplit_i_rotate_back(psplit_i_at *at, const heads *h, int64_t n, ref g, ref cosines,
                          ref sines) {
  const bool in_turn = psplit_i_int_or(at, "interleaved", 0) != 0;
  const ref a = columns(at, g, 0, in_turn ? n : n / 2, in_turn ? 2 : 1);
  const ref b = columns(at, g, in_turn ? 1 : n / 2, n, in_turn ? 2 : 1);
  ref pair[] = {add(at, mul(at, a, cosines), mul(at, b, sines)),
                sub(at, mul(at, b, cosines), mul(at, a, sines))};
  const int64_t last = -1;
  for (size_t i = 0; i < 2 && in_turn; i++) pair[i] = unsqueezed(at, pair[i], &last, 1);
  ref turned = concat(at, pair, 2, -1);
  if (in_turn) turned = reshaped(at, turned, ints(at, (int64_t[]){0, h->n, -1, n}, 4));
  const ref all[] = {turned, n < h->size ? columns(at, g, n, h->size, 1) : PSPLIT_NONE};
  psplit_i_give_narrowed(at, 0,
                         psplit_i_heads_together(h, concat(at, all, n < h->size ? 2 : 1, -1)));
}

void psplit_i_gradient_rotary_embedding(psplit_i_at *at) {
  heads h;
  int64_t n;
  if (!psplit_i_read_heads(at, 0, "num_heads", &h) || !psplit_i_read_turned(at, &h, &n)) return;
  psplit_i_widen(at);
  const ref g = psplit_i_heads_apart(&h, wide_grad(at)), cosines = angles(at, 1),
            sines = angles(at, 2);
  psplit_i_rotate_back(at, &h, n, g, cosines, sines);
}
