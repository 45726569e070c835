#include "blocks.h"

#include <string.h>

#include "block_parts.h"

enum {
  KINDS = PSPLIT_I_CALLS_TYPES + 2,
  MOST_STATES = 4096,
  MOST_FRONTS = 1 << 18, /* that are kept to find a placement */
  N_ROUNDS = 4,
  FIRST_PARTS = 4,   /* of a memory, that the first round tells apart */
  COST_PARTS = 1024, /* of the limit, by those */
  BLOCK_SHARE = 8
};

typedef psplit_i_calls_side label;
typedef psplit_i_calls_sides front;

typedef struct blocks {
  const psplit_i_calls *calls;
  const psplit_i_calls_clusters *x;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  uint32_t n;                  /* separators */
  psplit_i_calls_block *block; /* [n + 1] */
  uint32_t n_states;           /* accelerators used, by type: mixed radix, the first type lowest */
  front *ahead, *behind;       /* [n * KINDS] with any number of accelerators */
  front *turn[2];              /* [n_states * KINDS] of one separator, of every other one */
  front *row;                  /* [n * n_states * KINDS] of all; NULL: those are too many */
  bool own;  /* crossings count as what they are, not as what is like them; on `row` */
  bool told; /* those alone of which that is known */
  psplit_i_calls_choice *choice; /* [n + 1] of a placement */
  psplit_i_calls_placed *best;
  psplit_i_calls_scratch scratch;
  uint32_t *trial; /* [nodes] */
  int64_t limit;
  bool failed, spent;
} blocks;

static bool is_call(const blocks *b, uint32_t kind) { return kind < b->x->n_types; }

static int64_t time_of(const blocks *b, uint32_t k, uint32_t kind) {
  const uint32_t v = b->x->separator[k];
  return is_call(b, kind) ? b->x->time[(size_t)kind * b->x->n + v] : b->x->alone[v];
}

static uint64_t bytes_of(const blocks *b, uint32_t k, uint32_t kind) {
  return is_call(b, kind) ? b->x->bytes[b->x->separator[k]] : 0;
}

static uint64_t memory_of(const blocks *b, uint32_t kind) {
  return is_call(b, kind) ? b->x->memory[kind] : UINT64_MAX;
}

static int64_t least_with(const front *f, uint64_t bytes) {
  return psplit_i_calls_least_with(f, bytes);
}

static void insert(blocks *b, front *f, label l) {
  const size_t at = psplit_i_calls_more_than(f, l.bytes);
  if (at > 0 && f->items[at - 1].cost <= l.cost) return;
  const size_t first = at > 0 && f->items[at - 1].bytes == l.bytes ? at - 1 : at;
  size_t end = first;
  while (end < f->n && f->items[end].cost >= l.cost) end++;
  if (end == first) {
    if (!psplit_i_vec_push(f, l)) {
      b->failed = true;
      return;
    }
    memmove(f->items + first + 1, f->items + first, (f->n - 1 - first) * sizeof l);
  } else {
    memmove(f->items + first + 1, f->items + end, (f->n - end) * sizeof l);
    f->n -= end - first - 1;
  }
  f->items[first] = l;
}

/* Time and bytes of all of block k in one call. */
static label whole(const blocks *b, uint32_t k, uint32_t kind) {
  label all = {0};
  for (int64_t v = b->block[k].first + 1; v < b->block[k].last; v++) {
    all.cost = psplit_i_calls_add(all.cost, b->x->time[(size_t)kind * b->x->n + (size_t)v]);
    all.bytes = psplit_i_sat_add_u64(all.bytes, b->x->bytes[v]);
  }
  return all;
}

/* Adds separator k, on a device of that kind, to what its call has in the block beside it. */
static bool add_separator(const blocks *b, uint32_t k, uint32_t kind, label *l) {
  l->cost = psplit_i_calls_add(l->cost, time_of(b, k, kind));
  l->bytes = is_call(b, kind) ? psplit_i_sat_add_u64(l->bytes, bytes_of(b, k, kind)) : 0;
  return l->cost < b->limit && l->bytes <= memory_of(b, kind);
}

static void charge(blocks *b, uint64_t n_ops) {
  if (!psplit_i_spend(b->budget, n_ops)) b->spent = true;
}

/* From one side, without counting accelerators: of separator k from that of its neighbour `from`
 * (NONE: there is none) over block `k_block`. */
static void reach(blocks *b, uint32_t k, uint32_t k_block, uint32_t from, bool forwards,
                  front *fronts) {
  const uint32_t outside = psplit_i_calls_outside(b->x);
  for (uint32_t kind = 0; kind < outside; kind++) {
    front *to = &fronts[(size_t)k * KINDS + kind];
    to->n = 0;
    for (uint32_t other = 0; other <= outside; other++) {
      const psplit_i_calls_crossings *list =
        forwards ? &b->block[k_block].list[other][kind] : &b->block[k_block].list[kind][other];
      for (size_t i = 0; i < list->n; i++) {
        const psplit_i_calls_crossing *c = &list->items[i];
        label l = {forwards ? c->right : c->left, c->cost};
        const uint64_t there = forwards ? c->left : c->right, memory = memory_of(b, other);
        if (from != PSPLIT_NONE)
          l.cost = there > memory
                     ? PSPLIT_I_INF
                     : psplit_i_calls_add(
                         l.cost, least_with(&fronts[(size_t)from * KINDS + other], memory - there));
        if (add_separator(b, k, kind, &l)) insert(b, to, l);
      }
      charge(b, 8 * list->n + 1);
    }
    const front *same = from == PSPLIT_NONE ? NULL : &fronts[(size_t)from * KINDS + kind];
    if (!same || !is_call(b, kind)) continue;
    const label all = whole(b, k_block, kind);
    for (size_t i = 0; i < same->n; i++) {
      label l = {psplit_i_sat_add_u64(same->items[i].bytes, all.bytes),
                 psplit_i_calls_add(same->items[i].cost, all.cost)};
      if (add_separator(b, k, kind, &l)) insert(b, to, l);
    }
    charge(b, 8 * same->n);
  }
}

static void look_both_ways(blocks *b) {
  for (uint32_t k = 0; k < b->n; k++) reach(b, k, k, k ? k - 1 : PSPLIT_NONE, true, b->ahead);
  for (uint32_t k = b->n; k-- > 0;)
    reach(b, k, k + 1, k + 1 < b->n ? k + 1 : PSPLIT_NONE, false, b->behind);
}

/* What is known of both sides of block k. */
static void set_sides(blocks *b, uint32_t k) {
  b->block[k].limit = b->limit;
  b->block[k].before = k > 0 ? &b->ahead[(size_t)(k - 1) * KINDS] : NULL;
  b->block[k].behind = k < b->n ? &b->behind[(size_t)k * KINDS] : NULL;
}

/* The state with one more accelerator of a type; n_states: there are no more. */
static uint32_t state_with(const blocks *b, uint32_t state, uint32_t type) {
  uint32_t power = 1;
  if (b->n_states == 1) return state; /* they are not counted */
  for (uint32_t t = 0; t < type; t++) power *= b->x->count[t] + 1;
  const uint32_t used = state / power % (b->x->count[type] + 1);
  return used < b->x->count[type] ? state + power : b->n_states;
}

/* The state behind a crossing: with the calls inside and what begins behind it. */
static uint32_t state_behind(const blocks *b, uint32_t state, uint32_t kind,
                             const psplit_i_calls_crossing *c) {
  for (uint32_t t = 0; t < b->x->n_types; t++)
    for (uint32_t i = 0; i < c->calls[t] && state < b->n_states; i++)
      state = state_with(b, state, t);
  return state < b->n_states && is_call(b, kind) ? state_with(b, state, kind) : state;
}

static int64_t cost_of(const blocks *b, const psplit_i_calls_crossing *c) {
  if (!b->own) return c->cost;
  return c->parts.known && (c->told || !b->told) ? c->own_cost : PSPLIT_I_INF;
}

static uint64_t left_of(const blocks *b, const psplit_i_calls_crossing *c) {
  return b->own ? c->own_left : c->left;
}

static uint64_t right_of(const blocks *b, const psplit_i_calls_crossing *c) {
  return b->own ? c->own_right : c->right;
}

/* Of separator k, by state and kind. */
static front *fronts_of(const blocks *b, uint32_t k) {
  return b->own ? b->row + (size_t)k * b->n_states * KINDS : b->turn[k % 2];
}

/* Keeps separator k on, if it can end below the limit. */
static void keep(blocks *b, uint32_t k, uint32_t state, uint32_t kind, label l) {
  if (state >= b->n_states || !add_separator(b, k, kind, &l)) return;
  const uint64_t room = memory_of(b, kind) - l.bytes + bytes_of(b, k, kind);
  const int64_t rest = least_with(&b->behind[(size_t)k * KINDS + kind],
                                  memory_of(b, kind) == UINT64_MAX ? UINT64_MAX : room);
  if (psplit_i_calls_add(l.cost - time_of(b, k, kind), rest) >= b->limit) return;
  insert(b, &fronts_of(b, k)[(size_t)state * KINDS + kind], l);
}

/* Crosses block k from a label of a kind (outside: from nothing). */
static void cross(blocks *b, uint32_t k, uint32_t state, uint32_t kind, label from) {
  for (uint32_t to = 0; to < psplit_i_calls_outside(b->x); to++) {
    const psplit_i_calls_crossings *list = &b->block[k].list[kind][to];
    for (size_t i = 0; i < list->n; i++) {
      const psplit_i_calls_crossing *c = &list->items[i];
      if (psplit_i_sat_add_u64(from.bytes, left_of(b, c)) > memory_of(b, kind)) continue;
      keep(b, k, state_behind(b, state, to, c), to,
           (label){right_of(b, c), psplit_i_calls_add(from.cost, cost_of(b, c))});
    }
    charge(b, 16 * list->n + 1);
  }
}

static void clear_row(blocks *b, uint32_t k) {
  front *fronts = fronts_of(b, k);
  for (size_t i = 0; i < (size_t)b->n_states * KINDS; i++) fronts[i].n = 0;
}

static void step(blocks *b, uint32_t k) {
  const uint32_t outside = psplit_i_calls_outside(b->x);
  clear_row(b, k);
  for (uint32_t state = 0; state < b->n_states; state++)
    for (uint32_t kind = 0; kind < outside; kind++) {
      const front *f = &fronts_of(b, k - 1)[(size_t)state * KINDS + kind];
      const label all = is_call(b, kind) ? whole(b, k, kind) : (label){0};
      for (size_t i = 0; i < f->n && !b->spent && !b->failed; i++) {
        cross(b, k, state, kind, f->items[i]);
        if (is_call(b, kind))
          keep(b, k, state, kind,
               (label){psplit_i_sat_add_u64(f->items[i].bytes, all.bytes),
                       psplit_i_calls_add(f->items[i].cost, all.cost)});
      }
    }
}

/* Where a row of separators ends: behind the last one. */
typedef struct ending {
  uint32_t state, kind;
  label from;
  const psplit_i_calls_crossing *crossing;
} ending;

/* The least of all, with accelerators counted. */
static int64_t end_row(blocks *b, ending *out_end) {
  const uint32_t outside = psplit_i_calls_outside(b->x);
  int64_t best = b->limit;
  for (uint32_t state = 0; state < b->n_states; state++)
    for (uint32_t kind = 0; kind < outside; kind++) {
      const front *f = &fronts_of(b, b->n - 1)[(size_t)state * KINDS + kind];
      const psplit_i_calls_crossings *list = &b->block[b->n].list[kind][outside];
      for (size_t i = 0; i < list->n; i++) {
        const psplit_i_calls_crossing *c = &list->items[i];
        if (left_of(b, c) > memory_of(b, kind) || state_behind(b, state, outside, c) >= b->n_states)
          continue;
        const size_t at = psplit_i_calls_more_than(f, memory_of(b, kind) - left_of(b, c));
        const int64_t cost =
          at ? psplit_i_calls_add(cost_of(b, c), f->items[at - 1].cost) : PSPLIT_I_INF;
        if (cost >= best) continue;
        best = cost;
        *out_end = (ending){state, kind, f->items[at - 1], c};
      }
    }
  return best;
}

static int64_t add_up(blocks *b, ending *out_end) {
  clear_row(b, 0);
  cross(b, 0, 0, psplit_i_calls_outside(b->x), (label){0});
  for (uint32_t k = 1; k < b->n; k++) step(b, k);
  return end_row(b, out_end);
}

/* Where a label of separator k, on a device of a kind, comes from over block k; sets the choice of
 * that block. */
static bool find_before(const blocks *b, uint32_t k, ending *io) {
  psplit_i_calls_choice *choice = &b->choice[k];
  for (uint32_t state = 0; state < b->n_states; state++)
    for (uint32_t kind = 0; kind < psplit_i_calls_outside(b->x); kind++) {
      const front *f = &fronts_of(b, k - 1)[(size_t)state * KINDS + kind];
      const psplit_i_calls_crossings *list = &b->block[k].list[kind][io->kind];
      const label all = is_call(b, kind) ? whole(b, k, kind) : (label){0};
      for (size_t j = 0; j < f->n; j++) {
        const label from = f->items[j];
        label l = {psplit_i_sat_add_u64(from.bytes, all.bytes),
                   psplit_i_calls_add(from.cost, all.cost)};
        *choice = (psplit_i_calls_choice){.right = kind};
        if (is_call(b, kind) && kind == io->kind && state == io->state &&
            add_separator(b, k, kind, &l) && l.cost == io->from.cost && l.bytes == io->from.bytes) {
          *io = (ending){state, kind, from, NULL};
          return true;
        }
        for (size_t i = 0; i < list->n; i++) {
          const psplit_i_calls_crossing *c = &list->items[i];
          l = (label){right_of(b, c), psplit_i_calls_add(from.cost, cost_of(b, c))};
          if (!add_separator(b, k, io->kind, &l) || l.cost != io->from.cost ||
              l.bytes != io->from.bytes || state_behind(b, state, io->kind, c) != io->state ||
              psplit_i_sat_add_u64(from.bytes, left_of(b, c)) > memory_of(b, kind))
            continue;
          *choice = (psplit_i_calls_choice){.right = io->kind, .crossing = c};
          *io = (ending){state, kind, from, c};
          return true;
        }
      }
    }
  return false;
}

/* Cuts the first block. */
static bool find_first(const blocks *b, const ending *from) {
  const psplit_i_calls_crossings *list =
    &b->block[0].list[psplit_i_calls_outside(b->x)][from->kind];
  for (size_t i = 0; i < list->n; i++) {
    const psplit_i_calls_crossing *c = &list->items[i];
    label l = {right_of(b, c), cost_of(b, c)};
    if (!add_separator(b, 0, from->kind, &l) || l.cost != from->from.cost ||
        l.bytes != from->from.bytes || state_behind(b, 0, from->kind, c) != from->state)
      continue;
    b->choice[0] = (psplit_i_calls_choice){.right = from->kind, .crossing = c};
    return true;
  }
  return false;
}

/* Sets choices to a placement of what crossings are themselves; false: there is none. */
static bool choose(blocks *b) {
  ending end = {0};
  bool found = false;
  if (!b->row || b->spent || b->failed) return false;
  b->own = true;
  const int64_t cost = add_up(b, &end);
  if (cost < b->limit && !b->spent && !b->failed) {
    found = true;
    b->choice[b->n] =
      (psplit_i_calls_choice){.right = psplit_i_calls_outside(b->x), .crossing = end.crossing};
    for (uint32_t k = b->n - 1; k > 0 && found; k--) found = find_before(b, k, &end);
    found = found && find_first(b, &end);
  }
  b->own = false;
  return found;
}

/* Least time of a cluster. */
static int64_t least_of(const blocks *b, uint32_t v) {
  int64_t least = b->x->alone[v];
  for (uint32_t t = 0; t < b->x->n_types; t++)
    if (b->x->time[(size_t)t * b->x->n + v] < least) least = b->x->time[(size_t)t * b->x->n + v];
  return least;
}

/* Longest paths of least times of all blocks, and what their crossings may cost beside those. */
static bool measure(blocks *b) {
  const psplit_i_calls_clusters *x = b->x;
  int64_t *end = PSPLIT_NEW(&b->arena, int64_t, x->n), all = 0;
  if (!end) return false;
  for (uint32_t k = 0; k < b->n; k++) all = psplit_i_calls_add(all, least_of(b, x->separator[k]));
  for (uint32_t k = 0; k <= b->n; k++) {
    psplit_i_calls_block *block = &b->block[k];
    for (uint32_t i = (uint32_t)(block->first + 1); i < block->last; i++) {
      int64_t start = 0;
      for (uint32_t l = x->in_off[i]; l < x->in_off[i + 1]; l++) {
        const uint32_t from = x->from[x->in[l]];
        if (from > block->first && end[from] > start) start = end[from];
      }
      end[i] = psplit_i_calls_add(start, least_of(b, i));
      if (end[i] > block->path) block->path = end[i];
    }
    all = psplit_i_calls_add(all, block->path);
  }
  for (uint32_t k = 0; k <= b->n; k++)
    b->block[k].limit = all < PSPLIT_I_INF ? b->limit - (all - b->block[k].path) : 0;
  return true;
}

/* The ways to cut all blocks; each gets a share of the round's work, or keeps what is known. */
static psplit_code cross_blocks(blocks *b, uint32_t round, psplit_i_calls_grain grain) {
  psplit_i_budget of_round = psplit_i_budget_share(b->budget, N_ROUNDS + 1 - round);
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k <= b->n && code == PSPLIT_OK; k++) {
    psplit_i_budget share =
      psplit_i_budget_share(&of_round, b->n - k < BLOCK_SHARE ? b->n - k + 1 : BLOCK_SHARE);
    if (round > 0) set_sides(b, k);
    code = psplit_i_calls_cross(b->x, &share, grain, round > 0, &b->block[k]);
    psplit_i_spend(&of_round, share.spent);
  }
  psplit_i_spend(b->budget, of_round.spent);
  return code;
}

/* Values what was chosen; what is better limits what follows. */
static psplit_code place(blocks *b) {
  psplit_i_calls_placed *best = b->best;
  bool placed;
  int64_t busy;
  psplit_code code;
  PSPLIT_TRY(
    psplit_i_calls_place_parts(b->calls, b->x, b->block, b->choice, &b->arena, b->trial, &placed));
  if (!placed) goto out;
  const int64_t value = psplit_i_calls_latency(b->calls, &b->scratch, b->trial, &busy);
  if (value >= best->value) goto out;
  best->value = value;
  memcpy(best->device, b->trial, b->calls->n * sizeof *b->trial);
  if (value < b->limit) b->limit = value;
out:
  return code;
}

/* The best of all crossings, whose calls may turn out to take longer, then of those that are
 * known. */
static psplit_code look_for_placements(blocks *b) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < 2 && code == PSPLIT_OK; i++) {
    b->told = i > 0;
    if (choose(b)) code = place(b);
  }
  return code;
}

/* Costs are told apart by ever less, in the last round by all. */
static psplit_i_calls_grain grain_of(const blocks *b, uint32_t round) {
  psplit_i_calls_grain grain = {.n_bytes = (uint32_t)FIRST_PARTS << 2 * round};
  if (round + 1 < N_ROUNDS && b->limit < PSPLIT_I_INF)
    grain.cost = b->limit / COST_PARTS / grain.n_bytes;
  return grain;
}

/* Each round knows of the other blocks what the one before found, and tells more apart. */
static psplit_code run(blocks *b, int64_t *inout_bound) {
  psplit_code code = measure(b) ? PSPLIT_OK : PSPLIT_NOMEM;
  ending end = {0};
  for (uint32_t round = 0; round < N_ROUNDS && code == PSPLIT_OK && !b->spent; round++) {
    PSPLIT_TRY(cross_blocks(b, round, grain_of(b, round)));
    look_both_ways(b);
    const int64_t bound = add_up(b, &end);
    if (!b->spent && bound > *inout_bound) *inout_bound = bound;
    if (bound < b->limit) PSPLIT_TRY(look_for_placements(b));
    if (b->failed) return PSPLIT_NOMEM;
    if (*inout_bound >= b->limit) break;
  }
out:
  return code;
}

static bool init(blocks *b) {
  const psplit_i_calls_clusters *x = b->x;
  b->n = x->n_separators;
  b->n_states = 1;
  for (uint32_t t = 0; t < x->n_types && b->n_states <= MOST_STATES; t++)
    b->n_states *= x->count[t] < MOST_STATES ? x->count[t] + 1 : MOST_STATES + 1;
  if (b->n_states > MOST_STATES) b->n_states = 1;
  b->block = PSPLIT_NEW(&b->arena, psplit_i_calls_block, (size_t)b->n + 1);
  b->ahead = PSPLIT_NEW(&b->arena, front, (size_t)b->n * KINDS);
  b->behind = PSPLIT_NEW(&b->arena, front, (size_t)b->n * KINDS);
  b->choice = PSPLIT_NEW(&b->arena, psplit_i_calls_choice, (size_t)b->n + 1);
  b->trial = PSPLIT_NEW(&b->arena, uint32_t, b->calls->n);
  const size_t n_fronts = (size_t)b->n_states * KINDS;
  if (b->n * n_fronts <= MOST_FRONTS) b->row = PSPLIT_NEW(&b->arena, front, b->n * n_fronts);
  for (int i = 0; i < 2; i++) b->turn[i] = PSPLIT_NEW(&b->arena, front, n_fronts);
  if (!b->block || !b->ahead || !b->behind || !b->choice || !b->trial || !b->turn[0] ||
      !b->turn[1] || (b->n * n_fronts <= MOST_FRONTS && !b->row))
    return false;
  for (uint32_t k = 0; k <= b->n; k++) {
    b->block[k].first = k > 0 ? (int64_t)x->separator[k - 1] : -1;
    b->block[k].last = k < b->n ? (int64_t)x->separator[k] : (int64_t)x->n;
  }
  return true;
}

static void clear(front *fronts, size_t n) {
  for (size_t i = 0; fronts && i < n; i++) psplit_i_vec_fini(&fronts[i]);
}

static void fini(blocks *b) {
  for (uint32_t k = 0; b->block && k <= b->n; k++)
    for (uint32_t i = 0; i < KINDS * KINDS; i++)
      psplit_i_vec_fini(&b->block[k].list[i / KINDS][i % KINDS]);
  clear(b->ahead, (size_t)b->n * KINDS);
  clear(b->behind, (size_t)b->n * KINDS);
  clear(b->turn[0], (size_t)b->n_states * KINDS);
  clear(b->turn[1], (size_t)b->n_states * KINDS);
  clear(b->row, (size_t)b->n * b->n_states * KINDS);
  psplit_i_arena_fini(&b->arena);
}

static psplit_code bound_rows(const psplit_i_calls *calls, const psplit_i_calls_closure *closure,
                              psplit_i_budget *budget, bool main_only, bool *out_all,
                              int64_t *inout_bound, psplit_i_calls_placed *best) {
  psplit_i_calls_clusters clusters;
  blocks b = {.calls = calls, .x = &clusters, .budget = budget, .limit = best->value, .best = best};
  psplit_code code;
  psplit_i_arena_init(&b.arena, 0);
  PSPLIT_TRY(psplit_i_calls_clusters_init(&clusters, calls, closure, b.limit, main_only, &b.arena));
  *out_all = clusters.all;
  if (clusters.n_separators == 0) goto out;
  PSPLIT_TRY(init(&b) ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_calls_scratch_init(&b.scratch, calls, &b.arena));
  PSPLIT_TRY(run(&b, inout_bound));
out:
  fini(&b);
  return code;
}

psplit_code psplit_i_calls_blocks(const psplit_i_calls *calls,
                                  const psplit_i_calls_closure *closure, psplit_i_budget *budget,
                                  int64_t *inout_bound, psplit_i_calls_placed *inout_best) {
  psplit_code code;
  bool all = false;
  PSPLIT_TRY(bound_rows(calls, closure, budget, true, &all, inout_bound, inout_best));
  if (!all && *inout_bound < inout_best->value)
    PSPLIT_TRY(bound_rows(calls, closure, budget, false, &all, inout_bound, inout_best));
out:
  return code;
}
