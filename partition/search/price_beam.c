/* Extends the beam: in front of each partial split, stages with the largest sums of prices, and
 * with the largest sums of slightly perturbed prices. Everything behind a stage is known, and hence
 * the stages that receive each of its tensors. */
#include "price_beam.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

static bool make_partials(psplit_i_beam *b, uint32_t n, psplit_i_partial *out) {
  for (uint32_t i = 0; i < n; i++) {
    out[i].left = PSPLIT_NEW(&b->arena, uint64_t, b->closure.words);
    out[i].n_stages = PSPLIT_NEW(&b->arena, uint16_t, b->instance->n_nets);
  }
  return !b->arena.failed;
}

psplit_code psplit_i_beam_init(psplit_i_beam *b, int64_t value) {
  const psplit_i_instance *in = b->instance;
  psplit_i_arena_init(&b->arena, 0);
  psplit_i_downsets_init(&b->level, in);
  b->counted = *in;
  b->counted.send = PSPLIT_NEW(&b->arena, int64_t, in->n_nets);
  b->price = PSPLIT_NEW(&b->arena, int32_t, in->n);
  b->sides = PSPLIT_NEW(&b->arena, uint8_t, in->n);
  b->side = PSPLIT_NEW(&b->arena, uint8_t, in->n);
  b->last_net = PSPLIT_NEW(&b->arena, uint32_t, in->n_stages);
  if (b->arena.failed) return PSPLIT_NOMEM;
  memcpy(b->counted.send, in->send, in->n_nets * sizeof *in->send);
  psplit_code code = psplit_i_closure_make(in, b->budget, &b->closure);
  if (code == PSPLIT_OK) code = psplit_i_prices_init(in, value, &b->arena, &b->prices);
  if (code == PSPLIT_OK) code = psplit_i_pricing_make(&b->counted, b->budget, &b->pricing);
  if (code != PSPLIT_OK) return code;
  return make_partials(b, PSPLIT_I_BEAM_WIDTH, b->kept) &&
             make_partials(b, PSPLIT_I_BEAM_GROWN, b->grown)
           ? PSPLIT_OK
           : PSPLIT_NOMEM;
}

void psplit_i_beam_fini(psplit_i_beam *b) {
  psplit_i_pricing_free(b->pricing);
  psplit_i_downsets_fini(&b->level);
  psplit_i_closure_fini(&b->closure);
  psplit_i_arena_fini(&b->arena);
}

/* Whether the remaining clusters that a cluster requires do not fit a stage together. */
static bool is_too_much(const psplit_i_beam *b, uint32_t cluster, const uint64_t *left) {
  const uint64_t *behind = b->closure.behind + (size_t)cluster * b->closure.words;
  int64_t sum = 0;
  for (uint32_t k = 0; k < b->closure.words && sum <= b->limit; k++)
    for (uint64_t rest = behind[k] & left[k]; rest; rest &= rest - 1)
      sum += b->instance->w[64 * k + (uint32_t)__builtin_ctzll(rest)];
  return sum > b->limit;
}

/* The permitted sides of each cluster for the stage in front of `from`, and the cost of sending. */
static void look_back(psplit_i_beam *b, const psplit_i_partial *from) {
  const psplit_i_instance *in = b->instance;
  for (uint32_t v = 0; v < in->n; v++) {
    const bool left = psplit_i_holds(from->left, v), stays = b->stage && b->stage[v] < b->first;
    b->sides[v] = 1 << PSPLIT_I_BEFORE | 1 << PSPLIT_I_INSIDE;
    if (!left) b->sides[v] = 1 << PSPLIT_I_BEHIND;
    if (left && (stays || is_too_much(b, v, from->left))) b->sides[v] = 1 << PSPLIT_I_BEFORE;
  }
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const uint16_t times = in->p2p && from->n_stages[e] > 1 ? from->n_stages[e] : 1;
    b->counted.send[e] = psplit_i_sat_mul_i64(in->send[e], times);
  }
  psplit_i_spend(b->budget, (uint64_t)in->n * b->closure.words + in->n_nets);
}

/* The prices for one more attempt. The first attempt uses them unchanged, and the last perturbs
 * them most. */
static void change_prices(psplit_i_beam *b, uint32_t try) {
  for (uint32_t v = 0; v < b->instance->n; v++) {
    const uint64_t drawn = psplit_i_splitmix64(b->salt, v) >> 40; /* of 2^24 */
    const int64_t part = ((int64_t)drawn - (1 << 23)) * try / (PSPLIT_I_BEAM_TRIES - 1);
    b->price[v] = b->prices.price[v] + (int32_t)((b->prices.price[v] * part) >> 23);
  }
  b->salt++;
}

/* Adds the stage given by `side` in front of `from`. Returns whether it is new and holds anything
 * of value. */
static psplit_code add_grown(psplit_i_beam *b, const psplit_i_partial *from) {
  const psplit_i_instance *in = b->instance;
  psplit_i_partial *to = &b->grown[b->n_grown];
  const uint32_t n_before = b->level.n;
  memcpy(to->left, from->left, b->closure.words * sizeof *to->left);
  to->price_left = from->price_left;
  to->number = b->n_grown;
  for (uint32_t v = 0; v < in->n; v++) {
    if (b->side[v] != PSPLIT_I_INSIDE) continue;
    to->left[v / 64] &= ~(UINT64_C(1) << (v % 64));
    to->price_left -= b->prices.price[v];
  }
  if (!psplit_i_downsets_add(&b->level, to->left)) return PSPLIT_NOMEM;
  if (b->level.n == n_before || to->price_left == from->price_left) return PSPLIT_OK;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    bool receives = false;
    for (uint32_t q = in->net_off[e] + 1; q < in->net_off[e + 1]; q++)
      receives = receives || b->side[in->net_pin[q]] == PSPLIT_I_INSIDE;
    to->n_stages[e] = (uint16_t)(from->n_stages[e] + receives);
  }
  b->n_grown++;
  return PSPLIT_OK;
}

static psplit_code grow(psplit_i_beam *b, const psplit_i_partial *from) {
  look_back(b, from);
  for (uint32_t try = 0; try < PSPLIT_I_BEAM_TRIES && !psplit_i_expired(b->budget); try++) {
    bool found;
    change_prices(b, try);
    psplit_code code = psplit_i_pricing_stage(b->pricing, b->limit, PSPLIT_I_PRICING_PARTS,
                                              b->price, b->sides, b->budget, b->side, &found);
    if (code == PSPLIT_OK && found) code = add_grown(b, from);
    if (code != PSPLIT_OK) return code;
  }
  return PSPLIT_OK;
}

static int compare(const void *x, const void *y) {
  const psplit_i_partial *a = x, *b = y;
  if (a->price_left != b->price_left) return a->price_left < b->price_left ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

/* Adds one stage in front of each partial split in the beam, and keeps those that leave least to
 * the other stages. */
static psplit_code add_stage(psplit_i_beam *b) {
  psplit_i_partial swap;
  b->n_grown = 0;
  psplit_i_downsets_forget(&b->level, 0);
  for (uint32_t i = 0; i < b->n_kept; i++) {
    const psplit_code code = grow(b, &b->kept[i]);
    if (code != PSPLIT_OK) return code;
  }
  qsort(b->grown, b->n_grown, sizeof *b->grown, compare);
  b->n_kept = b->n_grown < PSPLIT_I_BEAM_WIDTH ? b->n_grown : PSPLIT_I_BEAM_WIDTH;
  for (uint32_t i = 0; i < b->n_kept; i++) {
    swap = b->kept[i];
    b->kept[i] = b->grown[i];
    b->grown[i] = swap;
    if (!psplit_i_downsets_add(b->set, b->kept[i].left)) return PSPLIT_NOMEM;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_beam_price(psplit_i_beam *b, uint32_t n_rounds, int64_t *out_sum) {
  memcpy(b->counted.send, b->instance->send, b->instance->n_nets * sizeof *b->counted.send);
  return psplit_i_prices_grow(&b->prices, b->pricing, b->limit, n_rounds, true, b->budget, out_sum);
}

/* The clusters that are left in front of the stages behind `last`, and the number of stages that
 * receive each net. */
static void begin_at(psplit_i_beam *b, uint32_t last) {
  const psplit_i_instance *in = b->instance;
  psplit_i_partial *root = &b->kept[0];
  *root = (psplit_i_partial){.left = root->left, .n_stages = root->n_stages};
  memset(root->left, 0, b->closure.words * sizeof *root->left);
  memset(root->n_stages, 0, in->n_nets * sizeof *root->n_stages);
  memset(b->last_net, 0xff, in->n_stages * sizeof *b->last_net);
  b->n_kept = 1;
  for (uint32_t v = 0; v < in->n; v++) {
    if (b->stage && b->stage[v] > last) continue;
    root->left[v / 64] |= UINT64_C(1) << (v % 64);
    root->price_left += b->prices.price[v];
  }
  for (uint32_t e = 0; e < in->n_nets && b->stage; e++)
    for (uint32_t q = in->net_off[e] + 1; q < in->net_off[e + 1]; q++) {
      const uint32_t s = b->stage[in->net_pin[q]];
      if (s <= last || b->last_net[s] == e) continue;
      b->last_net[s] = e;
      root->n_stages[e]++;
    }
}

static psplit_code add_stages(psplit_i_beam *b, uint32_t n) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k < n && b->n_kept > 0 && code == PSPLIT_OK; k++)
    if (!psplit_i_expired(b->budget)) code = add_stage(b);
  return code;
}

psplit_code psplit_i_beam_run(psplit_i_beam *b) {
  b->stage = NULL;
  begin_at(b, b->instance->n_stages);
  return add_stages(b, b->instance->n_stages - 1);
}

psplit_code psplit_i_beam_window(psplit_i_beam *b, const uint32_t *stage, uint32_t first,
                                 uint32_t last) {
  b->stage = stage;
  b->first = first;
  begin_at(b, last);
  psplit_i_spend(b->budget, b->instance->net_off[b->instance->n_nets] + b->instance->n);
  return add_stages(b, last - first);
}
