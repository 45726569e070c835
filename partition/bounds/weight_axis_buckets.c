/* Buckets of the weight axis. Which clusters a downset of weight in [low, high] must or cannot hold
 * follows from the weight of their ancestors and descendants. */
#include "bisect.h"
#include "instance.h"
#include "separators.h"
#include "weight_axis.h"
#include "weight_axis_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
  MIN_CELLS = 64,
  MAX_FREE = 1 << 21 /* clusters and nets in the networks of all buckets together */
};

static int compare_ranks(const void *a, const void *b) {
  const psplit_i_cluster_rank *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

/* Weight of the ancestors (or descendants) of the clusters [first, end) within them, at least; by
 * sets. False: the budget is spent. bits[size * words] */
static bool weigh_sets(const psplit_i_weight_axis_build *x, uint32_t first, uint32_t end, bool down,
                       uint64_t *bits, int64_t *sums) {
  const psplit_i_instance *instance = x->instance;
  const uint32_t *off = down ? instance->succ_off : instance->pred_off;
  const uint32_t *list = down ? instance->succ : instance->pred;
  const uint32_t words = (end - first + 63) / 64;
  for (uint32_t k = 0; k < end - first; k++) {
    const uint32_t i = down ? end - 1 - k : first + k;
    uint64_t *row = bits + (size_t)(i - first) * words;
    memset(row, 0, words * sizeof *row);
    row[(i - first) / 64] |= UINT64_C(1) << ((i - first) % 64);
    for (uint32_t l = off[i]; l < off[i + 1]; l++) {
      if (list[l] < first || list[l] >= end) continue;
      const uint64_t *other = bits + (size_t)(list[l] - first) * words;
      for (uint32_t j = 0; j < words; j++) row[j] |= other[j];
    }
    sums[i] = 0;
    uint64_t n_ops = ((uint64_t)off[i + 1] - off[i] + 2) * words / 8;
    for (uint32_t j = 0; j < words; j++) {
      n_ops += (uint64_t)__builtin_popcountll(row[j]) / 4;
      for (uint64_t left = row[j]; left; left &= left - 1)
        sums[i] += x->automaton->min_time[first + j * 64 + (uint32_t)__builtin_ctzll(left)];
    }
    if (!psplit_i_spend(x->budget, n_ops)) return false;
  }
  return true;
}

/* The same by the heaviest path. */
static void weigh_paths(const psplit_i_weight_axis_build *x, uint32_t first, uint32_t end,
                        bool down, int64_t *sums) {
  const psplit_i_instance *instance = x->instance;
  const uint32_t *off = down ? instance->succ_off : instance->pred_off;
  const uint32_t *list = down ? instance->succ : instance->pred;
  for (uint32_t k = 0; k < end - first; k++) {
    const uint32_t i = down ? end - 1 - k : first + k;
    int64_t most = 0;
    for (uint32_t l = off[i]; l < off[i + 1]; l++)
      if (list[l] >= first && list[l] < end && sums[list[l]] > most) most = sums[list[l]];
    sums[i] = most + x->automaton->min_time[i];
  }
}

psplit_code psplit_i_weight_axis_rank(psplit_i_weight_axis_build *x) {
  const psplit_i_instance *instance = x->instance;
  const uint32_t n = instance->n;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  psplit_code code = PSPLIT_NOMEM;
  uint32_t *sinks = PSPLIT_NEW(&scratch, uint32_t, n);
  uint32_t *ends = PSPLIT_NEW(&scratch, uint32_t, n);
  int64_t *sums = PSPLIT_NEW(&scratch, int64_t, n);
  x->by_in = PSPLIT_NEW(&x->arena, psplit_i_cluster_rank, n);
  x->by_out = PSPLIT_NEW(&x->arena, psplit_i_cluster_rank, n);
  if (!sinks || !ends || !sums || !x->by_in || !x->by_out) goto out;
  const uint32_t n_blocks = psplit_i_separators(instance, sinks, ends);
  x->most_close = psplit_i_longest_block(ends, n_blocks);
  size_t most = 1;
  for (uint32_t b = 0, first = 0; b < n_blocks; first = ends[b++]) {
    const size_t size = ends[b] - first, cells = size * ((size + 63) / 64);
    if (size <= x->most_exact && cells > most) most = cells;
  }
  uint64_t *bits = psplit_i_arena_array(&scratch, most, sizeof *bits);
  if (!bits) goto out;
  for (int down = 0; down < 2; down++) {
    int64_t before = 0; /* weight of the blocks passed */
    for (uint32_t b = 0, first = 0; b < n_blocks; first = ends[b++]) {
      int64_t inside = 0;
      for (uint32_t i = first; i < ends[b]; i++) inside += x->automaton->min_time[i];
      if (ends[b] - first > x->most_exact || psplit_i_expired(x->budget) ||
          !weigh_sets(x, first, ends[b], down, bits, sums))
        weigh_paths(x, first, ends[b], down, sums);
      for (uint32_t i = first; i < ends[b]; i++)
        if (down) /* total less all behind the block */
          x->by_in[i] = (psplit_i_cluster_rank){before + inside - sums[i], 0, i};
        else
          x->by_out[i] = (psplit_i_cluster_rank){before + sums[i], 0, i};
      before += inside;
    }
    assert(before == x->automaton->total_min_time);
  }
  psplit_i_spend(x->budget, 64 * (uint64_t)n + instance->pred_off[n]);
  code = PSPLIT_OK;
  if (n > x->most_exact && psplit_i_expired(x->budget)) goto out; /* sorted for nobody */
  qsort(x->by_in, n, sizeof *x->by_in, compare_ranks);
  qsort(x->by_out, n, sizeof *x->by_out, compare_ranks);
  int64_t sum = 0;
  for (uint32_t k = 0; k < n; k++)
    x->by_in[k].sum = sum += x->automaton->min_time[x->by_in[k].cluster];
  sum = 0;
  for (uint32_t k = n; k-- > 0;)
    x->by_out[k].sum = sum += x->automaton->min_time[x->by_out[k].cluster];
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

/* First rank with key >= value. */
static uint32_t lower_rank(const psplit_i_cluster_rank *ranks, uint32_t n, int64_t value) {
  const size_t stride = sizeof *ranks / sizeof ranks->key;
  return (uint32_t)psplit_i_first_at_least(&ranks->key, stride, n, value);
}

/* Shrinks [*low, *high] to weights that downsets can have, as far as forced clusters tell; false
 * when none is left. */
static bool tighten(const psplit_i_weight_axis_build *x, int64_t *low, int64_t *high) {
  const uint32_t n = x->instance->n;
  for (;;) {
    const uint32_t n_in = lower_rank(x->by_in, n, *low);
    const uint32_t first_out = lower_rank(x->by_out, n, *high + 1);
    const int64_t least = n_in ? x->by_in[n_in - 1].sum : 0;
    const int64_t most =
      x->automaton->total_min_time - (first_out < n ? x->by_out[first_out].sum : 0);
    const bool settled = least <= *low && most >= *high;
    if (least > *low) *low = least;
    if (most < *high) *high = most;
    if (*low > *high) return false;
    if (settled) return true;
  }
}

static psplit_code make_buckets(psplit_i_weight_axis_build *x, uint32_t n_cells) {
  psplit_i_weight_axis *out = x->out;
  const int64_t total = x->automaton->total_min_time;
  out->low = PSPLIT_NEW(&out->arena, int64_t, n_cells + 2);
  out->high = PSPLIT_NEW(&out->arena, int64_t, n_cells + 2);
  if (!out->low || !out->high) return PSPLIT_NOMEM;
  uint32_t n = 1; /* bucket 0: the empty downset */
  int64_t low = 0;
  for (uint32_t k = 0; k < n_cells && low <= total; k++) {
    int64_t high = (int64_t)((double)total * (k + 1) / n_cells);
    if (k + 1 == n_cells || high > total) high = total;
    if (high < low) continue;
    int64_t a = low, b = high;
    if (tighten(x, &a, &b)) {
      out->low[n] = a;
      out->high[n++] = b;
    }
    low = high + 1;
  }
  out->low[n] = out->high[n] = total; /* the last: everything */
  out->n_buckets = n + 1;
  return PSPLIT_OK;
}

static psplit_code find_windows(psplit_i_weight_axis_build *x) {
  const psplit_i_instance *instance = x->instance;
  const uint32_t n = instance->n, n_buckets = x->out->n_buckets;
  x->tin = PSPLIT_NEW(&x->arena, uint32_t, n);
  x->tout = PSPLIT_NEW(&x->arena, uint32_t, n);
  x->net_in = PSPLIT_NEW(&x->arena, uint32_t, instance->n_nets);
  x->net_out = PSPLIT_NEW(&x->arena, uint32_t, instance->n_nets);
  x->free_off = PSPLIT_NEW(&x->arena, uint32_t, (size_t)n_buckets + 1);
  x->near_off = PSPLIT_NEW(&x->arena, uint32_t, (size_t)n_buckets + 1);
  x->net_of_pin = PSPLIT_NEW(&x->arena, uint32_t, instance->net_off[instance->n_nets] + 1);
  if (!x->net_of_pin || !x->tin || !x->tout || !x->net_in || !x->net_out || !x->free_off ||
      !x->near_off)
    return PSPLIT_NOMEM;
  uint32_t q = 1;
  for (uint32_t k = 0; k < n; k++) {
    while (q + 1 < n_buckets && x->out->low[q] <= x->by_in[k].key) q++;
    x->tin[x->by_in[k].cluster] = q;
  }
  q = n_buckets - 2;
  for (uint32_t k = n; k-- > 0;) {
    while (q > 0 && x->out->high[q] >= x->by_out[k].key) q--;
    x->tout[x->by_out[k].cluster] = q;
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    x->net_out[e] = n_buckets;
    for (uint32_t k = instance->net_off[e]; k < instance->net_off[e + 1]; k++) {
      const uint32_t i = instance->net_pin[k];
      x->net_of_pin[k] = e;
      if (x->tin[i] > x->net_in[e]) x->net_in[e] = x->tin[i];
      if (x->tout[i] < x->net_out[e]) x->net_out[e] = x->tout[i];
    }
  }
  return PSPLIT_OK;
}

/* Sizes of the networks of all buckets together. */
static uint64_t count_free(const psplit_i_weight_axis_build *x) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < x->instance->n; i++)
    if (x->tin[i] > x->tout[i] + 1) total += x->tin[i] - x->tout[i] - 1;
  for (uint32_t e = 0; e < x->instance->n_nets; e++)
    if (x->net_in[e] > x->net_out[e] + 1) total += x->net_in[e] - x->net_out[e] - 1;
  return total;
}

/* Lists the free clusters and the nets that may be cut, by bucket. */
static psplit_code list_by_bucket(psplit_i_weight_axis_build *x) {
  const uint32_t n_buckets = x->out->n_buckets;
  const uint32_t *from[] = {x->tout, x->net_out}, *to[] = {x->tin, x->net_in};
  uint32_t *off[] = {x->free_off, x->near_off};
  const uint32_t count[] = {x->instance->n, x->instance->n_nets};
  for (int which = 0; which < 2; which++) {
    for (uint32_t i = 0; i < count[which]; i++)
      for (uint32_t q = from[which][i] + 1; q < to[which][i]; q++) off[which][q + 1]++;
    for (uint32_t q = 0; q < n_buckets; q++) off[which][q + 1] += off[which][q];
    const uint32_t total = off[which][n_buckets];
    uint32_t *list = psplit_i_arena_array(&x->arena, total, sizeof *list);
    uint32_t *fill = psplit_i_arena_array(&x->arena, n_buckets, sizeof *fill);
    if (!list || !fill) return PSPLIT_NOMEM;
    memcpy(fill, off[which], n_buckets * sizeof *fill);
    for (uint32_t i = 0; i < count[which]; i++)
      for (uint32_t q = from[which][i] + 1; q < to[which][i]; q++) list[fill[q]++] = i;
    *(which ? &x->near_net : &x->free_cluster) = list;
  }
  return PSPLIT_OK;
}

/* Clusters that an average downset leaves open: what a bucket has at least to look at. */
static double count_open(const psplit_i_weight_axis_build *x) {
  const uint32_t n = x->instance->n;
  double width = 0;
  for (uint32_t k = 0; k < n; k++) width += (double)x->by_in[k].key - (double)x->by_out[k].key;
  const double open = width / (double)x->automaton->total_min_time;
  return open > 0 ? open : 0;
}

psplit_code psplit_i_weight_axis_divide(psplit_i_weight_axis_build *x, uint32_t n_cells) {
  const double open = count_open(x);
  if (open * MIN_CELLS > MAX_FREE * 4.) return PSPLIT_OK; /* hardly anything is forced */
  while (n_cells > MIN_CELLS && open * n_cells > MAX_FREE) n_cells /= 2;
  for (;; n_cells /= 2) { /* wide graphs have too many free clusters for fine buckets */
    psplit_code code = make_buckets(x, n_cells);
    if (code == PSPLIT_OK) code = find_windows(x);
    if (code != PSPLIT_OK) return code;
    psplit_i_spend(x->budget,
                   2 * (uint64_t)x->instance->n + x->instance->net_off[x->instance->n_nets]);
    if (n_cells <= MIN_CELLS || count_free(x) <= MAX_FREE) return list_by_bucket(x);
  }
}
