/* The elimination order: min-degree, that is, the variable with the fewest neighbours first. */
#include "pricing_inside.h"

#include <string.h>

enum { RANKS = 4 * MOST_WIDTH + 4 };

static void use_part(psplit_i_pricing *p, uint32_t part_id) {
  const part *q = &p->parts[part_id];
  for (uint32_t i = 0; i < q->n_scope; i++) {
    p->uses[p->n_uses] = (use){part_id, p->first_use[q->scope[i]]};
    p->first_use[q->scope[i]] = p->n_uses++;
  }
}

static part *add_part(psplit_i_pricing *p, part_kind kind, uint32_t of) {
  part *q = &p->parts[p->n_parts++];
  *q = (part){.kind = kind, .of = of};
  return q;
}

static void add_net(psplit_i_pricing *p, uint32_t e, uint32_t *inout_var) {
  const psplit_i_instance *in = p->instance;
  const uint32_t *pin = in->net_pin + in->net_off[e];
  const uint32_t n = in->net_off[e + 1] - in->net_off[e];
  if (n <= MOST_DIRECT) {
    part *q = add_part(p, WHOLE_NET, e);
    q->n_scope = n;
    memcpy(q->scope, pin, n * sizeof *pin);
    use_part(p, p->n_parts - 1);
    return;
  }
  const uint32_t var = (*inout_var)++;
  for (uint32_t i = 0; i < n; i++) {
    part *q = add_part(p, i ? MUST_PAY : PAYS, e);
    q->n_scope = i ? 3 : 2;
    q->scope[0] = pin[0];
    q->scope[1] = var;
    q->scope[2] = pin[i];
    use_part(p, p->n_parts - 1);
  }
}

/* The scope of the table that eliminating `var` would make, and the number of tables it joins.
 * Returns false if either is too large. */
static bool scope_of(const psplit_i_pricing *p, uint32_t var, uint32_t *scope, uint32_t *out_n,
                     uint32_t *out_tables) {
  uint32_t n = 0, tables = 0;
  for (uint32_t l = p->first_use[var]; l != PSPLIT_NONE; l = p->uses[l].next) {
    const part *q = &p->parts[p->uses[l].part];
    if (q->gone) continue;
    tables += q->kind == TABLE;
    for (uint32_t i = 0; i < q->n_scope; i++) {
      uint32_t k = 0;
      if (q->scope[i] == var) continue;
      while (k < n && scope[k] != q->scope[i]) k++;
      if (k < n) continue;
      if (n == p->most_width) return false;
      scope[n++] = q->scope[i];
    }
  }
  *out_n = n;
  *out_tables = tables;
  return tables < MOST_JOINED;
}

static uint32_t power(uint32_t n) {
  uint32_t all = 1;
  while (n-- > 0) all *= LABELS;
  return all;
}

static bool eliminate(psplit_i_pricing *p, uint32_t k, uint32_t var) {
  step *s = &p->steps[k];
  uint32_t n_tables, n = 0;
  s->var = var;
  if (!scope_of(p, var, s->scope, &s->n_scope, &n_tables)) return false;
  for (uint32_t l = p->first_use[var]; l != PSPLIT_NONE; l = p->uses[l].next)
    n += !p->parts[p->uses[l].part].gone;
  s->parts = PSPLIT_NEW(&p->arena, uint32_t, n + 1);
  if (!s->parts) return !(p->failed = true);
  if (p->loose != PSPLIT_NONE) {
    s->parts[s->n_parts++] = p->loose;
    s->n_tables++;
    p->loose = PSPLIT_NONE;
  }
  for (int tables = 1; tables >= 0; tables--)
    for (uint32_t l = p->first_use[var]; l != PSPLIT_NONE; l = p->uses[l].next) {
      part *q = &p->parts[p->uses[l].part];
      if (q->gone || (q->kind == TABLE) != (tables == 1)) continue;
      s->parts[s->n_parts++] = p->uses[l].part;
      s->n_tables += tables == 1;
      q->gone = true;
    }
  s->first_list = p->n_lists;
  s->n_lists = power(s->n_scope);
  p->n_lists += s->n_lists;
  part *q = add_part(p, TABLE, k);
  q->n_scope = s->n_scope;
  memcpy(q->scope, s->scope, s->n_scope * sizeof *s->scope);
  use_part(p, p->n_parts - 1);
  if (s->n_scope == 0) p->loose = p->n_parts - 1;
  return true;
}

/* The fewest neighbours first. Ties prefer a variable with a single table, so that chains are
 * eliminated from one end. */
static uint32_t rank_of(const psplit_i_pricing *p, uint32_t var) {
  uint32_t scope[MOST_WIDTH], n, tables;
  if (!scope_of(p, var, scope, &n, &tables)) return PSPLIT_NONE;
  return 4 * n + (tables == 1 ? 0 : tables == 0 ? 1 : tables == 2 ? 2 : 3);
}

/* The remaining variables, by rank and id. */
typedef struct ranking {
  uint32_t words;
  uint32_t n_of[RANKS];
  uint64_t *of[RANKS]; /* [words] bit sets of variables */
  uint32_t *rank;      /* [n_vars] NONE: not a member */
} ranking;

static void put_rank(ranking *x, uint32_t var, uint32_t rank) {
  const uint32_t before = x->rank[var];
  if (before != PSPLIT_NONE) {
    x->of[before][var / 64] &= ~(UINT64_C(1) << (var % 64));
    x->n_of[before]--;
  }
  x->rank[var] = rank;
  if (rank == PSPLIT_NONE) return;
  x->of[rank][var / 64] |= UINT64_C(1) << (var % 64);
  x->n_of[rank]++;
}

/* The first variable of the lowest rank, or NONE. */
static uint32_t first_of(const ranking *x) {
  uint32_t rank = 0, w = 0, bit = 0;
  while (rank < RANKS && x->n_of[rank] == 0) rank++;
  if (rank == RANKS) return PSPLIT_NONE;
  while (x->of[rank][w] == 0) w++;
  while ((x->of[rank][w] >> bit & 1) == 0) bit++;
  return 64 * w + bit;
}

static bool order(psplit_i_pricing *p) {
  ranking x = {.words = p->n_vars / 64 + 1};
  x.rank = PSPLIT_NEW(&p->arena, uint32_t, p->n_vars);
  for (uint32_t r = 0; r < RANKS; r++) x.of[r] = PSPLIT_NEW(&p->arena, uint64_t, x.words);
  if (p->arena.failed) return !(p->failed = true);
  memset(x.rank, 0xff, p->n_vars * sizeof *x.rank);
  for (uint32_t v = 0; v < p->n_vars; v++) put_rank(&x, v, rank_of(p, v));
  for (uint32_t k = 0; k < p->n_vars; k++) {
    const uint32_t best = first_of(&x);
    psplit_i_spend(p->budget, x.words);
    if (best == PSPLIT_NONE || !eliminate(p, k, best) || p->n_lists > p->most_lists) return false;
    put_rank(&x, best, PSPLIT_NONE);
    for (uint32_t i = 0; i < p->steps[k].n_scope; i++)
      put_rank(&x, p->steps[k].scope[i], rank_of(p, p->steps[k].scope[i]));
  }
  return true;
}

bool psplit_i_pricing_build(psplit_i_pricing *p) {
  const psplit_i_instance *in = p->instance;
  size_t n_parts = 0;
  uint32_t var = in->n;
  p->n_vars = in->n;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const uint32_t n = in->net_off[e + 1] - in->net_off[e];
    if (!p->counted[e]) continue;
    p->n_vars += n > MOST_DIRECT;
    n_parts += n > MOST_DIRECT ? n : 1;
  }
  p->loose = PSPLIT_NONE;
  p->parts = PSPLIT_NEW(&p->arena, part, n_parts + p->n_vars);
  p->uses = PSPLIT_NEW(&p->arena, use, 3 * n_parts + (size_t)MOST_WIDTH * p->n_vars);
  p->first_use = PSPLIT_NEW(&p->arena, uint32_t, p->n_vars);
  p->steps = PSPLIT_NEW(&p->arena, step, p->n_vars);
  p->label = PSPLIT_NEW(&p->arena, uint8_t, p->n_vars);
  p->room = PSPLIT_NEW(&p->arena, int32_t, p->n_vars);
  p->goal = PSPLIT_NEW(&p->arena, entry, p->n_vars);
  p->n_parts = p->n_uses = p->n_lists = 0;
  if (p->arena.failed) return !(p->failed = true);
  memset(p->first_use, 0xff, p->n_vars * sizeof *p->first_use);
  for (uint32_t e = 0; e < in->n_nets; e++)
    if (p->counted[e]) add_net(p, e, &var);
  if (!order(p)) return false;
  uint32_t most = 0;
  for (uint32_t k = 0; k < p->n_vars; k++)
    most = p->steps[k].n_parts > most ? p->steps[k].n_parts : most;
  p->own_net = PSPLIT_NEW(&p->arena, uint32_t, most);
  p->own_deal = PSPLIT_NEW(&p->arena, uint8_t, most);
  p->inside = PSPLIT_NEW(&p->arena, list, p->n_lists);
  p->outside = PSPLIT_NEW(&p->arena, list, p->n_lists);
  return !(p->failed = p->arena.failed);
}
