#include "blocks.h"

#include <string.h>

#include "row.h"

enum {
  KINDS = PSPLIT_I_CALLS_TYPES + 2,
  N_ROUNDS = 4,
  FIRST_PARTS = 4,   /* of a memory: bytes that the first round tells apart */
  COST_PARTS = 1024, /* of the limit: costs that a round tells apart for each part of a memory */
  BLOCK_SHARE = 8,
  TELLING_SHARE = 4,
  OPEN = 50,     /* calls are told where bound and value are one of so many parts apart */
  SCARCE = 4096, /* one of so many parts of the value: price of an accelerator that is short */
  TOLD_AS = N_ROUNDS - 2, /* the round as which calls are told */
  FALLS = 256,            /* calls are told again where the value falls by one of so many parts */
  MOST_TELLINGS = 32,
  MOST_IDLE = 2,   /* rounds of annealing that bring nothing */
  CHEAP_STEPS = 32 /* how many of its steps take what valuing a placement does: most fail at once */
};

typedef struct blocks {
  const psplit_i_calls *calls;
  const psplit_i_calls_closure *closure;
  const psplit_i_solver_request *search; /* NULL: by others */
  const psplit_i_calls_clusters *x;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_calls_row row;
  uint8_t *told; /* [(n + 1) * KINDS * KINDS] types of which calls are told, by list */
  psplit_i_calls_placed *best;
  psplit_i_calls_scratch scratch;
  psplit_i_calls_placed trial;
} blocks;

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
  for (uint32_t k = 0; k < b->row.n; k++)
    all = psplit_i_sum_or_inf(all, least_of(b, x->separator[k]));
  for (uint32_t k = 0; k <= b->row.n; k++) {
    psplit_i_calls_block *block = &b->row.block[k];
    for (uint32_t i = (uint32_t)(block->first + 1); i < block->last; i++) {
      int64_t start = 0;
      for (uint32_t l = x->in_off[i]; l < x->in_off[i + 1]; l++) {
        const uint32_t from = x->from[x->in[l]];
        if (from > block->first && end[from] > start) start = end[from];
      }
      end[i] = psplit_i_sum_or_inf(start, least_of(b, i));
      if (end[i] > block->path) block->path = end[i];
    }
    all = psplit_i_sum_or_inf(all, block->path);
  }
  for (uint32_t k = 0; k <= b->row.n; k++)
    b->row.block[k].limit = all < PSPLIT_I_INF ? b->row.limit - (all - b->row.block[k].path) : 0;
  return true;
}

/* The ways to cut all blocks; each gets a share of the round's work, or keeps what is known. */
static psplit_code cross_blocks(blocks *b, uint32_t round, psplit_i_calls_grain grain) {
  psplit_i_budget of_round = psplit_i_budget_share(b->budget, N_ROUNDS + 1 - round);
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k <= b->row.n && code == PSPLIT_OK; k++) {
    psplit_i_budget share =
      psplit_i_budget_share(&of_round, b->row.n - k < BLOCK_SHARE ? b->row.n - k + 1 : BLOCK_SHARE);
    if (round > 0) psplit_i_calls_row_set_sides(&b->row, k);
    code = psplit_i_calls_cross(b->x, &share, grain, round > 0, &b->row.block[k]);
    psplit_i_spend(&of_round, share.spent);
  }
  psplit_i_spend(b->budget, of_round.spent);
  return code;
}

static uint32_t left_of(const blocks *b, uint32_t k) {
  return k > 0 ? b->row.choice[k - 1].right : psplit_i_calls_outside(b->x);
}

/* Types of which calls are told in the list that block k's choice is from. */
static uint8_t *told_of(const blocks *b, uint32_t k) {
  return &b->told[((size_t)k * KINDS + left_of(b, k)) * KINDS + b->row.choice[k].right];
}

/* Sets the trial to what was chosen, and *out_value to what that takes; INF: nothing is allowed. */
static psplit_code try_chosen(blocks *b, int64_t *out_value) {
  bool placed;
  int64_t busy;
  const psplit_code code = psplit_i_calls_place_parts(b->calls, b->x, b->row.block, b->row.choice,
                                                      &b->arena, b->trial.device, &placed);
  *out_value = PSPLIT_I_INF;
  if (code == PSPLIT_OK && placed)
    *out_value = psplit_i_calls_latency(b->calls, &b->scratch, b->trial.device, &busy);
  return code;
}

/* What is better limits what follows. */
static void take_trial(blocks *b) {
  psplit_i_calls_placed *best = b->best;
  if (b->trial.value >= best->value) return;
  best->value = b->trial.value;
  memcpy(best->device, b->trial.device, b->calls->n * sizeof *best->device);
  if (best->value < b->row.limit) b->row.limit = best->value;
}

/* Values what was chosen. */
static psplit_code place(blocks *b) {
  const psplit_code code = try_chosen(b, &b->trial.value);
  if (code == PSPLIT_OK) take_trial(b);
  return code;
}

/* The same, and what annealing makes of it: where few calls take what the bound gives to many it
 * may be bad at first. */
static psplit_code search_from_chosen(blocks *b, int64_t bound) {
  psplit_code code;
  PSPLIT_TRY(try_chosen(b, &b->trial.value));
  if (b->trial.value < PSPLIT_I_INF)
    PSPLIT_TRY(psplit_i_calls_anneal(b->search, b->calls, b->closure,
                                     psplit_i_calls_latency_ops(b->calls) / CHEAP_STEPS, MOST_IDLE,
                                     bound, &b->trial));
  take_trial(b);
out:
  return code;
}

/* The best of all crossings, whose calls may turn out to take longer, then of those that are
 * known. */
static psplit_code look_for_placements(blocks *b) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < 2 && code == PSPLIT_OK; i++) {
    int64_t cost;
    if (psplit_i_calls_row_choose(&b->row, i ? PSPLIT_I_CALLS_OWN_TOLD : PSPLIT_I_CALLS_OWN, &cost))
      code = place(b);
  }
  return code;
}

/* Costs are told apart by ever less, in the last round by all. */
static psplit_i_calls_grain grain_of(const blocks *b, uint32_t round) {
  psplit_i_calls_grain grain = {.n_bytes = (uint32_t)FIRST_PARTS << 2 * round};
  if (round + 1 < N_ROUNDS && b->row.limit < PSPLIT_I_INF)
    grain.cost = b->row.limit / COST_PARTS / grain.n_bytes;
  return grain;
}

/* Tells calls of the types given in the lists that the choice of a placement takes. */
static psplit_code tell_chosen(blocks *b, const uint8_t *types) {
  psplit_i_calls_row *row = &b->row;
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k <= row->n && code == PSPLIT_OK; k++) {
    if (!types[k]) continue;
    const uint32_t left = left_of(b, k), right = row->choice[k].right;
    psplit_i_budget share = psplit_i_budget_share(b->budget, TELLING_SHARE);
    psplit_i_calls_row_set_sides(row, k);
    *told_of(b, k) |= types[k];
    code = psplit_i_calls_tell(b->x, &share, grain_of(b, TOLD_AS), left, right, *told_of(b, k),
                               &row->block[k]);
    psplit_i_spend(b->budget, share.spent);
  }
  return code;
}

/* Sets types[k] to those of which a choice has calls in block k that are not told yet; scarce: and
 * of which all blocks together want too many. Whether there are any. */
static bool find_untold(const blocks *b, bool scarce, uint8_t *types) {
  const psplit_i_calls_row *row = &b->row;
  bool any = false;
  for (uint32_t k = 0; k <= row->n; k++) {
    const psplit_i_calls_crossing *c = row->choice[k].crossing;
    types[k] = 0;
    for (uint32_t t = 0; t < b->x->n_types && c && !c->told; t++)
      if (c->calls[t] > 0 && !(*told_of(b, k) >> t & 1) &&
          (!scarce || row->price[t] > row->limit / SCARCE))
        types[k] |= (uint8_t)(1u << t);
    any |= types[k] != 0;
  }
  return any;
}

/* Searches from what the bound has; where the value falls much, lists are told again, since less is
 * in the way then. */
static psplit_code search(blocks *b, int64_t bound, bool *io_scarce) {
  const int64_t before = b->row.limit;
  const psplit_code code = search_from_chosen(b, bound);
  if (before - b->row.limit > before / FALLS) {
    memset(b->told, 0, ((size_t)b->row.n + 1) * KINDS * KINDS);
    *io_scarce = true;
  }
  return code;
}

/* One call is told from several in the lists from which the bound has calls that are not told,
 * until there are no more of those: first of types of which there are too few. What the bound has
 * is where search begins again. *out_any: there was such a list. */
static psplit_code tell(blocks *b, int64_t *inout_bound, bool *out_any) {
  psplit_i_calls_row *row = &b->row;
  uint8_t *types = PSPLIT_NEW(&b->arena, uint8_t, (size_t)row->n + 1);
  bool scarce = true, any = true;
  psplit_code code = PSPLIT_OK;
  b->told = PSPLIT_NEW(&b->arena, uint8_t, ((size_t)row->n + 1) * KINDS * KINDS);
  if (!types || !b->told) return PSPLIT_NOMEM;
  *out_any = false;
  for (uint32_t i = 0; i < MOST_TELLINGS && any; i++) {
    int64_t bound;
    psplit_i_calls_row_set_prices(row);
    psplit_i_calls_row_look(row);
    const bool found = psplit_i_calls_row_choose(row, PSPLIT_I_CALLS_BOUND, &bound);
    if (bound > *inout_bound) *inout_bound = bound;
    if (found && b->search && *out_any) PSPLIT_TRY(search(b, *inout_bound, &scarce));
    if (!found || *inout_bound >= row->limit) break;
    any = find_untold(b, scarce, types);
    if (!any && scarce) any = find_untold(b, scarce = false, types);
    if (any) PSPLIT_TRY(tell_chosen(b, types));
    *out_any |= any;
  }
  if (*out_any && *inout_bound < row->limit) PSPLIT_TRY(look_for_placements(b));
out:
  return row->failed ? PSPLIT_NOMEM : code;
}

/* Calls of several types, and bound and value far apart. */
static bool should_raise(const blocks *b, int64_t bound) {
  return b->x->n_types > 1 && b->row.row && b->row.limit - bound > b->row.limit / OPEN;
}

/* Each round knows of the other blocks what the one before found, and tells more apart. */
static psplit_code run(blocks *b, int64_t *inout_bound) {
  psplit_i_calls_row *row = &b->row;
  psplit_code code = measure(b) ? PSPLIT_OK : PSPLIT_NOMEM;
  for (uint32_t round = 0; round < N_ROUNDS && code == PSPLIT_OK && !row->spent; round++) {
    PSPLIT_TRY(cross_blocks(b, round, grain_of(b, round)));
    psplit_i_calls_row_look(row);
    const int64_t bound = psplit_i_calls_row_bound(row);
    if (!row->spent && bound > *inout_bound) *inout_bound = bound;
    if (bound < row->limit) PSPLIT_TRY(look_for_placements(b));
    if (row->failed) return PSPLIT_NOMEM;
    if (*inout_bound >= row->limit) break;
    if (round + 2 < N_ROUNDS || !should_raise(b, *inout_bound)) continue;
    bool told;
    PSPLIT_TRY(tell(b, inout_bound, &told));
    if (told) break;
  }
out:
  return code;
}

/* Raises the bound by the row of the clusters' separators. `given`: calls, closure, search, budget
 * and best are set. *out_all: no node was left out. */
static psplit_code bound_rows(const blocks *given, bool main_only, bool *out_all,
                              int64_t *inout_bound) {
  psplit_i_calls_clusters clusters;
  const int64_t limit = given->best->value;
  blocks b = *given;
  psplit_code code;
  b.x = &clusters;
  psplit_i_arena_init(&b.arena, 0);
  PSPLIT_TRY(
    psplit_i_calls_clusters_init(&clusters, b.calls, b.closure, limit, main_only, &b.arena));
  *out_all = clusters.all;
  if (clusters.n_separators == 0) goto out;
  b.trial.device = PSPLIT_NEW(&b.arena, uint32_t, b.calls->n);
  PSPLIT_TRY(b.trial.device && psplit_i_calls_row_init(&b.row, &clusters, b.budget, limit, &b.arena)
               ? PSPLIT_OK
               : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_calls_scratch_init(&b.scratch, b.calls, &b.arena));
  PSPLIT_TRY(run(&b, inout_bound));
out:
  psplit_i_calls_row_fini(&b.row);
  psplit_i_arena_fini(&b.arena);
  return code;
}

psplit_code psplit_i_calls_blocks(const psplit_i_calls *calls,
                                  const psplit_i_calls_closure *closure,
                                  const psplit_i_solver_request *search, psplit_i_budget *budget,
                                  int64_t *inout_bound, psplit_i_calls_placed *inout_best) {
  psplit_code code;
  bool all = false;
  const blocks given = {
    .calls = calls, .closure = closure, .search = search, .budget = budget, .best = inout_best};
  PSPLIT_TRY(bound_rows(&given, true, &all, inout_bound));
  if (!all && *inout_bound < inout_best->value)
    PSPLIT_TRY(bound_rows(&given, false, &all, inout_bound));
out:
  return code;
}
