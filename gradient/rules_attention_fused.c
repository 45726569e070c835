/* Rules: attention as com.microsoft has it. */
#include "attention.h"

static const char *const HAS_PAST =
  "it has keys and values of steps before: train an export "
  "that takes whole sequences, without a cache";

/* [batch, 1, 1 or queries, keys]: what is added to scores of keys that the int32 input `i` masks,
 * by how many come first in each sequence, by key, or by query and key. PSPLIT_NONE: nothing. */
static ref key_mask(psplit_i_at *at, uint32_t i, ref keys) {
  const psplit_i_vtype *type = psplit_i_type_in(at, i), *data = psplit_i_type_in(at, 0);
  const double low = (double)psplit_i_float_or(at, "mask_filter_value", -10000);
  if (!psplit_i_given(at, i)) return PSPLIT_NONE;
  const bool lengths = type->rank == 1 && data->rank > 0 && type->dims[0] == data->dims[0];
  if (!lengths && type->rank != 2 && type->rank != 3) {
    psplit_i_refuse(at, "its mask is not one of lengths, of keys, or of queries and keys");
    return PSPLIT_NONE;
  }
  ref counts = cast(at, in(at, i), PSPLIT_ELEM_INT64);
  if (lengths) {
    const ref shape = op1(at, "Shape", keys), zero = psplit_i_backward_int(at->b, 0);
    const ref length = gathered(at, shape, psplit_i_backward_int(at->b, 2), 0);
    const ref places = op3(at, "Range", zero, length, psplit_i_backward_int(at->b, 1));
    counts = op2(at, "Less", places, unsqueezed(at, counts, (int64_t[]){1}, 1));
  } else {
    counts = op2(at, "Greater", counts, psplit_i_backward_int(at->b, 0));
  }
  counts = unsqueezed(at, counts, (int64_t[]){1, 2}, type->rank == 3 ? 1 : 2);
  return choose(at, counts, number(at, 0), number(at, low));
}

/* Scores get a mask and what another input adds. */
static void read_added(psplit_i_at *at, uint32_t mask, uint32_t added, psplit_i_attention *a) {
  const ref masked = key_mask(at, mask, a->keys), more = wide_in(at, added);
  a->mask = PSPLIT_NONE;
  a->added = sum_given(at, masked, more);
  a->causal = psplit_i_int_or(at, "unidirectional", 0) != 0;
}

static void give_added(psplit_i_at *at, uint32_t added, const psplit_i_attention *a) {
  static const psplit_i_vtype any = {.rank = -1};
  if (wanted(at, added))
    psplit_i_give_narrowed(at, added, psplit_i_sum_like(at, a->to_added, &any, added));
}

/* Widens, and begins with the scores' factor and the gradient at what comes out. h: of queries,
 * keys and values. */
static psplit_i_attention attention_of(psplit_i_at *at, const psplit_i_heads *h) {
  const psplit_i_heads results = {.at = at, .n = h[0].n, .size = h[2].size, .flat = true};
  psplit_i_widen(at);
  psplit_i_attention a = {.factor = psplit_i_attention_factor(at, h[0].size)};
  a.gradient = psplit_i_heads_apart(&results, wide_grad(at));
  return a;
}

static bool has_any(const psplit_i_at *at, uint32_t from) {
  bool any = false;
  for (uint32_t i = from; i < at->node->n_inputs; i++) any |= psplit_i_given(at, i);
  return any;
}

/* ---- queries, keys and values given ---- */

/* Input i, with its part of a bias, from `begin` on. */
static ref biased(const psplit_i_heads *h, uint32_t i, ref bias, int64_t *inout_begin) {
  psplit_i_at *at = h->at;
  const int64_t begin = *inout_begin;
  *inout_begin += h->n * h->size;
  ref a = wide_in(at, i);
  if (bias != PSPLIT_NONE) a = add(at, a, columns(at, bias, begin, *inout_begin, 1));
  return psplit_i_heads_apart(h, a);
}

void psplit_i_gradient_multi_head_attention(psplit_i_at *at) {
  enum { BIAS = 3, MASK = 4, ADDED = 5, PAST = 6 };
  psplit_i_heads h[3];
  int64_t begin = 0;
  for (uint32_t i = 0; i < 3; i++)
    if (!psplit_i_read_heads(at, i, "num_heads", &h[i])) return;
  const bool has_bias = psplit_i_given(at, BIAS);
  const char *why = has_any(at, PAST) ? HAS_PAST
                    : !h[0].flat || (has_bias && !(h[1].flat && h[2].flat)) || h[1].n != h[0].n ||
                        h[2].n != h[0].n || h[1].size != h[0].size
                      ? "its queries, keys and values do not fit each other"
                      : NULL;
  if (why) {
    psplit_i_refuse(at, "%s", why);
    return;
  }
  psplit_i_attention a = attention_of(at, h);
  const ref bias = wide_in(at, BIAS);
  a.queries = biased(&h[0], 0, bias, &begin);
  a.keys = biased(&h[1], 1, bias, &begin);
  a.values = biased(&h[2], 2, bias, &begin);
  read_added(at, MASK, ADDED, &a);
  const bool train_bias = wanted(at, BIAS);
  a.want = psplit_i_attention_want(at, ADDED);
  if (train_bias) a.want |= PSPLIT_I_QUERIES | PSPLIT_I_KEYS | PSPLIT_I_VALUES;
  psplit_i_through_attention(at, &a);
  give_added(at, ADDED, &a);
  const ref parts[] = {a.to_queries, a.to_keys, a.to_values};
  ref sums[3];
  for (uint32_t i = 0; i < 3; i++) {
    if (!(a.want >> i & 1)) continue;
    const ref flat = psplit_i_heads_together(&h[i], parts[i]);
    psplit_i_give_narrowed(at, i, flat);
    if (train_bias) sums[i] = sum_over(at, flat, (int64_t[]){0, 1}, 2, false);
  }
  if (train_bias) psplit_i_give_narrowed(at, BIAS, concat(at, sums, 3, 0));
}

/* ---- queries, keys and values of one product ---- */

/* How the product's columns are divided; false, refused, where that is not known. *out_inner: rows
 * of the weight. */
static bool read_columns(psplit_i_at *at, psplit_i_heads *h, int64_t *out_inner) {
  const psplit_i_vtype *weight = psplit_i_type_in(at, 1);
  const int64_t heads = psplit_i_int_or(at, "num_heads", 0);
  const int64_t *sizes;
  int64_t all;
  size_t n;
  if (weight->rank != 2 || !psplit_i_size(at, weight, 0, out_inner) ||
      !psplit_i_size(at, weight, 1, &all) || all > INT32_MAX || heads < 1) {
    psplit_i_refuse(at, "its heads, or the shape of its weight, are not known");
    return false;
  }
  const bool given = psplit_i_attr_ints(at->node, "qkv_hidden_sizes", &sizes, &n) && n == 3;
  bool fits = true;
  for (uint32_t i = 0; i < 3; i++) {
    const int64_t columns = given ? sizes[i] : all / 3;
    fits = fits && columns > 0 && columns % heads == 0 && columns <= all;
    h[i] = (psplit_i_heads){.at = at, .n = heads, .size = columns / heads, .flat = true};
  }
  fits = fits && (h[0].size + h[1].size + h[2].size) * heads == all && h[0].size == h[1].size;
  if (!fits) psplit_i_refuse(at, "its heads do not fit its weight");
  return fits;
}

/* The product's gradient to what it was made of. */
static void give_product(psplit_i_at *at, ref g, int64_t inner, int64_t all) {
  if (wanted(at, 0))
    psplit_i_give_narrowed(at, 0,
                           product(at, g, transposed(at, wide_in(at, 1), (int64_t[]){1, 0}, 2)));
  if (wanted(at, 2)) psplit_i_give_narrowed(at, 2, sum_over(at, g, (int64_t[]){0, 1}, 2, false));
  if (!wanted(at, 1)) return;
  const ref rows = reshaped(at, wide_in(at, 0), ints(at, (int64_t[]){-1, inner}, 2));
  const ref g_rows = reshaped(at, g, ints(at, (int64_t[]){-1, all}, 2));
  psplit_i_give_narrowed(at, 1, product(at, transposed(at, rows, (int64_t[]){1, 0}, 2), g_rows));
}

void psplit_i_gradient_attention_qkv(psplit_i_at *at) {
  enum { BIAS = 2, MASK = 3, PAST = 4, ADDED = 5, PAST_LENGTH = 6 };
  psplit_i_heads h[3];
  int64_t inner, end = 0;
  if (!read_columns(at, h, &inner)) return;
  const char *why = psplit_i_given(at, PAST) || has_any(at, PAST_LENGTH) ? HAS_PAST
                    : psplit_i_int_or(at, "do_rotary", 0)
                      ? "it rotates queries and keys by a table that is not an input"
                      : NULL;
  if (why) {
    psplit_i_refuse(at, "%s", why);
    return;
  }
  psplit_i_attention a = attention_of(at, h);
  const ref projected = product(at, wide_in(at, 0), wide_in(at, 1)), bias = wide_in(at, BIAS);
  const ref all = sum_given(at, projected, bias);
  ref *const parts[] = {&a.queries, &a.keys, &a.values};
  for (uint32_t i = 0; i < 3; i++) {
    const int64_t begin = end;
    end += h[i].n * h[i].size;
    *parts[i] = psplit_i_heads_apart(&h[i], columns(at, all, begin, end, 1));
  }
  read_added(at, MASK, ADDED, &a);
  const bool through = wanted(at, 0) || wanted(at, 1) || wanted(at, BIAS);
  a.want = through ? PSPLIT_I_QUERIES | PSPLIT_I_KEYS | PSPLIT_I_VALUES : 0;
  if (wanted(at, ADDED)) a.want |= PSPLIT_I_ADDED;
  psplit_i_through_attention(at, &a);
  give_added(at, ADDED, &a);
  if (!through) return;
  ref flat[] = {a.to_queries, a.to_keys, a.to_values};
  for (uint32_t i = 0; i < 3; i++) flat[i] = psplit_i_heads_together(&h[i], flat[i]);
  give_product(at, concat(at, flat, 3, -1), inner, end);
}

/* ---- rotation ---- */

/* Rows of a table for each position: [1 or batch, 1, sequence, size / 2]. */
static ref rows_at(psplit_i_at *at, uint32_t table, ref positions) {
  return unsqueezed(at, gathered(at, wide_in(at, table), positions, 0), (int64_t[]){1}, 1);
}

void psplit_i_gradient_rotary_positions(psplit_i_at *at) {
  const psplit_i_vtype *type = psplit_i_type_in(at, 0), *positions = psplit_i_type_in(at, 1);
  psplit_i_heads h;
  int64_t hidden, half, n;
  /* Without a number of heads their size is that of the table. */
  if (type->rank == 3 && !psplit_i_int_or(at, "num_heads", 0) &&
      psplit_i_size(at, type, 2, &hidden) && psplit_i_size(at, psplit_i_type_in(at, 2), 1, &half) &&
      half > 0 && half <= hidden / 2 && hidden % (2 * half) == 0) {
    h = (psplit_i_heads){.at = at, .n = hidden / (2 * half), .size = 2 * half, .flat = true};
  } else if (!psplit_i_read_heads(at, 0, "num_heads", &h)) {
    return;
  }
  if (!psplit_i_read_turned(at, &h, &n)) return;
  if (psplit_i_float_or(at, "scale", 1) != 1 || psplit_i_int_or(at, "is_packed_batching", 0) ||
      (positions->rank != 1 && positions->rank != 2)) {
    psplit_i_refuse(at, "its positions are scaled or packed, or the rank of them is not known");
    return;
  }
  psplit_i_widen(at);
  const ref g = psplit_i_heads_apart(&h, wide_grad(at));
  ref rows = in(at, 1);
  if (positions->rank == 1) {
    /* That of the first. */
    const ref length = gathered(at, op1(at, "Shape", g), psplit_i_backward_int(at->b, 2), 0);
    const ref places =
      op3(at, "Range", psplit_i_backward_int(at->b, 0), length, psplit_i_backward_int(at->b, 1));
    rows = unsqueezed(at, add(at, places, rows), (int64_t[]){0}, 1);
  }
  const ref cosines = rows_at(at, 2, rows), sines = rows_at(at, 3, rows);
  psplit_i_rotate_back(at, &h, n, g, cosines, sines);
}
