/* Work that is left out, as fluids.
 *
 * Whatever lies behind the kept clusters A and before the kept clusters B may flow to any stage
 * between theirs. Of an amount that a split divides into x(1), x(2), ... by stages, a row of pieces
 * of size d, one behind the other, can follow it: the k-th piece goes where x(1) + x(2) + ...
 * reaches k * d. A stage with x gets fewer than x / d + 1 of them, and none if x is 0: its load
 * grows by less than d for each fluid. So the best split with the pieces is no slower than the best
 * split without by d for each fluid or more. */
#include <stdlib.h>

#include "heavy_inside.h"

enum {
  PIECES = 256, /* of an even share of the work */
  LEAST = 16    /* that are worth a fluid */
};

/* Clusters that are left out, by those of `coarse` in front of them and behind. */
typedef struct signature {
  uint64_t hash;
  uint32_t cluster;
} signature;

static int compare_signatures(const void *a, const void *b) {
  const signature *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

static const uint64_t *before(const psplit_i_heavy_build *x, uint32_t i) {
  return x->closure->before + (size_t)i * x->closure->words;
}

static const uint64_t *behind(const psplit_i_heavy_build *x, uint32_t i) {
  return x->closure->behind + (size_t)i * x->closure->words;
}

static uint64_t hash_of(const psplit_i_heavy_build *x, uint32_t i) {
  uint64_t hash = 0;
  for (uint32_t k = 0; k < x->closure->words; k++) {
    hash = psplit_i_mix64(hash ^ (before(x, i)[k] & x->coarse[k]));
    hash = psplit_i_mix64(hash + (behind(x, i)[k] & x->coarse[k]));
  }
  return hash;
}

/* Larger ones come first; the smallest is dropped where there are too many. */
static void keep_largest(psplit_i_heavy_build *x, psplit_i_fluid fluid) {
  uint32_t k = x->n_fluids;
  if (k < PSPLIT_I_MOST_FLUIDS)
    x->n_fluids++;
  else if (x->fluids[--k].min_time >= fluid.min_time)
    return;
  for (; k > 0 && x->fluids[k - 1].min_time < fluid.min_time; k--) x->fluids[k] = x->fluids[k - 1];
  x->fluids[k] = fluid;
}

/* The fluid of n clusters, whatever they are: what comes before all of them is known. */
static psplit_code add(psplit_i_heavy_build *x, const signature *list, uint32_t n) {
  const uint32_t words = x->closure->words;
  psplit_i_fluid fluid = {0};
  for (uint32_t k = 0; k < n; k++) fluid.min_time += x->rest[list[k].cluster];
  if (fluid.min_time / x->piece < LEAST) return PSPLIT_OK;
  fluid.n_pieces = (uint32_t)(fluid.min_time / x->piece);
  fluid.before = PSPLIT_NEW(&x->scratch, uint64_t, words);
  fluid.behind = PSPLIT_NEW(&x->scratch, uint64_t, words);
  if (!fluid.before || !fluid.behind) return PSPLIT_NOMEM;
  for (uint32_t w = 0; w < words; w++) {
    fluid.before[w] = fluid.behind[w] = x->kept[w];
    for (uint32_t k = 0; k < n; k++) {
      fluid.before[w] &= before(x, list[k].cluster)[w];
      fluid.behind[w] &= behind(x, list[k].cluster)[w];
    }
  }
  keep_largest(x, fluid);
  return PSPLIT_OK;
}

psplit_code psplit_i_fluids_find(psplit_i_heavy_build *x) {
  const uint32_t n = x->instance->n;
  uint32_t n_left = 0;
  psplit_code code = PSPLIT_OK;
  signature *list = PSPLIT_NEW(&x->scratch, signature, n);
  if (!list) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++)
    if (!psplit_i_is_kept(x, i)) list[n_left++] = (signature){hash_of(x, i), i};
  psplit_i_spend(x->budget, 4 * (uint64_t)n * x->closure->words);
  if (n_left > 0) qsort(list, n_left, sizeof *list, compare_signatures);
  x->piece = (int64_t)(x->total / x->instance->n_stages / PIECES) + 1;
  for (uint32_t k = 0, end; k < n_left && code == PSPLIT_OK; k = end) {
    for (end = k + 1; end < n_left && list[end].hash == list[k].hash;) end++;
    code = add(x, list + k, end - k);
  }
  return code;
}
