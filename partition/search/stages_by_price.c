/* Prices of clusters (prices.h) say which part of a stage each cluster needs at least. A stage in
 * which they add up to the most possible is a good one, whatever the others are: it leaves least to
 * them. So a beam of partial splits is extended, from the last stage on, by stages with the highest
 * sums of prices, and by those with the highest sums of slightly changed prices. What is behind a
 * stage is known, hence also the stages that receive each of its tensors. The downsets between all
 * stages found go to the program over downsets (downset_dp.h), together with those of the best
 * split. */
#include "stages_by_price.h"

#include <stdlib.h>
#include <string.h>

#include "closure.h"
#include "downset_dp.h"
#include "hash.h"
#include "prices.h"

enum {
  WIDTH = 16, /* of the beam */
  TRIES = 4,  /* stages from one partial split */
  MOST_GROWN = WIDTH * TRIES,
  MOST_LIMITS = 8,
  MOST_IDLE = 2,     /* limits in a row that bring nothing */
  FIRST_PART = 4,    /* the limit is below the value by one of so many parts of the gap */
  NEXT_PART = 16,    /* the same where the first limit brought nothing */
  FIRST_ROUNDS = 10, /* in which prices grow, with the first limit */
  NEXT_ROUNDS = 3,
  LEAST_ROUNDS = 32 /* that the budget has to be worth */
};

/* What is left in front of some stages. */
typedef struct partial {
  uint64_t *left;     /* bits by cluster */
  uint16_t *n_stages; /* [n_nets] that receive the net */
  int64_t price_left; /* of what is left */
  uint32_t number;
} partial;

typedef struct beam {
  const psplit_i_instance *instance;
  psplit_i_instance counted; /* each net is sent as often as stages there are for it */
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_closure closure;
  psplit_i_pricing *pricing; /* of `counted`; NULL: the graph is too wide */
  psplit_i_prices prices;
  psplit_i_downsets *set, level; /* of all that was kept; of the stage that is formed */
  partial kept[WIDTH], grown[MOST_GROWN];
  uint32_t n_kept, n_grown;
  int64_t limit;
  uint32_t n_rounds; /* of prices, at the limit */
  uint64_t salt;
  int32_t *price;        /* [n] changed a little */
  uint8_t *sides, *side; /* [n] */
} beam;

static bool make_partials(beam *b, uint32_t n, partial *out) {
  for (uint32_t i = 0; i < n; i++) {
    out[i].left = PSPLIT_NEW(&b->arena, uint64_t, b->closure.words);
    out[i].n_stages = PSPLIT_NEW(&b->arena, uint16_t, b->instance->n_nets);
  }
  return !b->arena.failed;
}

static psplit_code beam_init(beam *b, int64_t value) {
  const psplit_i_instance *in = b->instance;
  psplit_i_arena_init(&b->arena, 0);
  psplit_i_downsets_init(&b->level, in);
  b->counted = *in;
  b->counted.send = PSPLIT_NEW(&b->arena, int64_t, in->n_nets);
  b->price = PSPLIT_NEW(&b->arena, int32_t, in->n);
  b->sides = PSPLIT_NEW(&b->arena, uint8_t, in->n);
  b->side = PSPLIT_NEW(&b->arena, uint8_t, in->n);
  if (b->arena.failed) return PSPLIT_NOMEM;
  memcpy(b->counted.send, in->send, in->n_nets * sizeof *in->send);
  psplit_code code = psplit_i_closure_make(in, b->budget, &b->closure);
  if (code == PSPLIT_OK) code = psplit_i_prices_init(in, value, &b->arena, &b->prices);
  if (code == PSPLIT_OK) code = psplit_i_pricing_make(&b->counted, b->budget, &b->pricing);
  if (code != PSPLIT_OK) return code;
  return make_partials(b, WIDTH, b->kept) && make_partials(b, MOST_GROWN, b->grown) ? PSPLIT_OK
                                                                                    : PSPLIT_NOMEM;
}

static void beam_fini(beam *b) {
  psplit_i_pricing_free(b->pricing);
  psplit_i_downsets_fini(&b->level);
  psplit_i_closure_fini(&b->closure);
  psplit_i_arena_fini(&b->arena);
}

/* Whether what is left and must come along with a cluster does not fit a stage. */
static bool is_too_much(const beam *b, uint32_t cluster, const uint64_t *left) {
  const uint64_t *behind = b->closure.behind + (size_t)cluster * b->closure.words;
  int64_t sum = 0;
  for (uint32_t k = 0; k < b->closure.words && sum <= b->limit; k++)
    for (uint64_t rest = behind[k] & left[k]; rest; rest &= rest - 1)
      sum += b->instance->w[64 * k + (uint32_t)__builtin_ctzll(rest)];
  return sum > b->limit;
}

/* Where each cluster may be by the stage in front of `from`, and what sending takes. */
static void look_back(beam *b, const partial *from) {
  const psplit_i_instance *in = b->instance;
  for (uint32_t v = 0; v < in->n; v++) {
    const bool left = psplit_i_holds(from->left, v);
    b->sides[v] = 1 << PSPLIT_I_BEFORE | 1 << PSPLIT_I_INSIDE;
    if (!left) b->sides[v] = 1 << PSPLIT_I_BEHIND;
    if (left && is_too_much(b, v, from->left)) b->sides[v] = 1 << PSPLIT_I_BEFORE;
  }
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const uint16_t times = in->p2p && from->n_stages[e] > 1 ? from->n_stages[e] : 1;
    b->counted.send[e] = psplit_i_sat_mul_i64(in->send[e], times);
  }
  psplit_i_spend(b->budget, (uint64_t)in->n * b->closure.words + in->n_nets);
}

/* Prices for one more try: the first has them as they are, the last changes them most. */
static void change_prices(beam *b, uint32_t try) {
  for (uint32_t v = 0; v < b->instance->n; v++) {
    const uint64_t drawn = psplit_i_splitmix64(b->salt, v) >> 40; /* of 2^24 */
    const int64_t part = ((int64_t)drawn - (1 << 23)) * try / (TRIES - 1);
    b->price[v] = b->prices.price[v] + (int32_t)((b->prices.price[v] * part) >> 23);
  }
  b->salt++;
}

/* The stage by `side` in front of `from`. Whether it is new, and holds anything of worth. */
static psplit_code add_grown(beam *b, const partial *from) {
  const psplit_i_instance *in = b->instance;
  partial *to = &b->grown[b->n_grown];
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

static psplit_code grow(beam *b, const partial *from) {
  look_back(b, from);
  for (uint32_t try = 0; try < TRIES && !psplit_i_expired(b->budget); try++) {
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
  const partial *a = x, *b = y;
  if (a->price_left != b->price_left) return a->price_left < b->price_left ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

/* One stage more in front of each that is kept; what leaves least to the others is kept. */
static psplit_code add_stage(beam *b) {
  partial swap;
  b->n_grown = 0;
  psplit_i_downsets_forget(&b->level, 0);
  for (uint32_t i = 0; i < b->n_kept; i++) {
    const psplit_code code = grow(b, &b->kept[i]);
    if (code != PSPLIT_OK) return code;
  }
  qsort(b->grown, b->n_grown, sizeof *b->grown, compare);
  b->n_kept = b->n_grown < WIDTH ? b->n_grown : WIDTH;
  for (uint32_t i = 0; i < b->n_kept; i++) {
    swap = b->kept[i];
    b->kept[i] = b->grown[i];
    b->grown[i] = swap;
    if (!psplit_i_downsets_add(b->set, b->kept[i].left)) return PSPLIT_NOMEM;
  }
  return PSPLIT_OK;
}

/* The beam with stages of loads up to the limit. */
static psplit_code run(beam *b) {
  partial *root = &b->kept[0];
  int64_t sum;
  psplit_code code = PSPLIT_OK;
  memcpy(b->counted.send, b->instance->send, b->instance->n_nets * sizeof *b->counted.send);
  PSPLIT_TRY(
    psplit_i_prices_grow(&b->prices, b->pricing, b->limit, b->n_rounds, true, b->budget, &sum));
  memset(root->left, 0, b->closure.words * sizeof *root->left);
  for (uint32_t v = 0; v < b->instance->n; v++) root->left[v / 64] |= UINT64_C(1) << (v % 64);
  memset(root->n_stages, 0, b->instance->n_nets * sizeof *root->n_stages);
  root->price_left = sum;
  root->number = 0;
  b->n_kept = sum > 0;
  for (uint32_t k = 1; k < b->instance->n_stages && b->n_kept > 0; k++)
    if (!psplit_i_expired(b->budget)) PSPLIT_TRY(add_stage(b));
out:
  return code;
}

/* With one limit after the other, the next of which hangs on what the last one brought. */
static psplit_code try_limits(beam *b, const psplit_i_automaton *automaton, int64_t bound,
                              int64_t *scratch, psplit_i_assignment *trial,
                              psplit_i_assignment *io_split) {
  psplit_code code = PSPLIT_OK;
  uint32_t n_idle = 0;
  for (uint32_t k = 0; k < MOST_LIMITS && n_idle < MOST_IDLE && !psplit_i_expired(b->budget); k++) {
    const int64_t gap = io_split->value - bound;
    b->n_rounds = k ? NEXT_ROUNDS : FIRST_ROUNDS;
    b->limit = io_split->value - 1 - gap / (n_idle ? NEXT_PART : FIRST_PART);
    if (!psplit_i_downsets_add_split(b->set, b->instance, io_split->stage)) code = PSPLIT_NOMEM;
    if (code == PSPLIT_OK) code = run(b);
    if (code == PSPLIT_OK)
      code = psplit_i_downset_dp(b->instance, automaton, b->set, io_split->value, b->budget,
                                 scratch, trial);
    if (code != PSPLIT_OK) return code;
    n_idle = trial->value < io_split->value ? 0 : n_idle + 1;
    if (n_idle == 0) psplit_i_assignment_copy(io_split, trial, b->instance);
  }
  return code;
}

/* Whether one of so many parts of the budget does for a round of prices. Where it does not, that is
 * not charged: so little should not change what solvers behind find. */
static psplit_code can_afford(beam *b, int64_t value, bool *out_afford) {
  psplit_i_budget *whole = b->budget;
  psplit_i_budget part = psplit_i_budget_share(whole, LEAST_ROUNDS);
  int64_t sum = 0;
  *out_afford = false;
  b->budget = &part;
  psplit_code code = beam_init(b, value);
  if (code == PSPLIT_OK && b->pricing)
    code = psplit_i_prices_grow(&b->prices, b->pricing, value - 1, 1, true, &part, &sum);
  b->budget = whole;
  if (sum == 0) return code;
  *out_afford = true;
  psplit_i_spend(whole, part.spent);
  return code;
}

psplit_code psplit_i_stages_by_price(const psplit_i_instance *instance,
                                     const psplit_i_automaton *automaton, int64_t bound,
                                     psplit_i_budget *budget, int64_t *scratch,
                                     psplit_i_assignment *io_split, psplit_i_downsets *io_set) {
  psplit_i_assignment trial;
  if (instance->n_stages > PSPLIT_I_PRICED_STAGES) return PSPLIT_OK;
  beam *b = calloc(1, sizeof *b);
  if (!b) return PSPLIT_NOMEM;
  b->instance = instance;
  b->budget = budget;
  b->set = io_set;
  bool affordable;
  psplit_code code = can_afford(b, io_split->value, &affordable);
  if (code == PSPLIT_OK) code = psplit_i_assignment_init(&trial, instance, &b->arena);
  if (code == PSPLIT_OK && affordable)
    code = try_limits(b, automaton, bound, scratch, &trial, io_split);
  beam_fini(b);
  free(b);
  return code;
}
