/* A few stages: each cluster is in one of the stages [lo, hi], and the largest load is to be least.
 * For any shares p of the stages that sum to 1,
 *
 *     max over k of load(k)  >=  sum over k of p(k) load(k),
 *
 * and what the right side is at least a minimum cut tells (nested_cut.c).
 *
 * What is open is divided: a cluster is in front of a boundary, with all that comes before it, or
 * behind, with all that comes behind it. No load may reach the best value known, which narrows
 * intervals further (nested_intervals.c). Every cut is a split by itself. What may be least is
 * divided first, so what no split is below is known whenever this stops. */
#include "nested.h"

#include <stdlib.h>
#include <string.h>

#include "nested_inside.h"

enum {
  FIRST_SHARES = 40, /* tried for the first branch, which is everything */
  SHARES = 3,        /* tried for another branch */
  FIRST_MOVE = 3,    /* a share moves by one of so many parts of all at most, in the first branch */
  MOVE = 7,          /* the same in others */
  FIRST_DIVES = 8,   /* the first branches that are divided are followed to their ends */
  DIVES_APART = 64,  /* behind these one of so many is */
  MOST_BYTES = 1 << 25, /* of branches */
  MOST_CLUSTERS = 1024  /* of which every two are looked at for a branch */
};

static const double AIM = 0.7; /* of the step that would reach what is known */

/* --- shares --- */

/* Moves shares to the stages whose loads are above the mean by these shares, by a subgradient step
 * that aims at what is known; false where all loads are alike. */
static bool move_shares(const psplit_i_nested_solver *d, psplit_i_nested_branch *b, int64_t least,
                        int divisor) {
  double mean = 0, apart = 0, moved[PSPLIT_I_NESTED_STAGES], sum = 0;
  int32_t left = PSPLIT_I_NESTED_WHOLE;
  int most = 0;
  for (int k = 0; k < d->n_stages; k++)
    mean += (double)d->load[k] * (double)b->share[k] / (double)PSPLIT_I_NESTED_WHOLE;
  for (int k = 0; k < d->n_stages; k++)
    apart += ((double)d->load[k] - mean) * ((double)d->load[k] - mean);
  if (!(apart > 0)) return false;
  const double step = AIM * (double)PSPLIT_I_NESTED_WHOLE * (double)(d->known - least) / apart;
  const double far = (double)PSPLIT_I_NESTED_WHOLE / divisor;
  for (int k = 0; k < d->n_stages; k++) {
    double by = step * ((double)d->load[k] - mean);
    by = by > far ? far : by < -far ? -far : by;
    moved[k] = (double)b->share[k] + by < 1 ? 1 : (double)b->share[k] + by;
    sum += moved[k];
  }
  for (int k = 0; k < d->n_stages; k++) {
    b->share[k] = (int32_t)(moved[k] / sum * (double)PSPLIT_I_NESTED_WHOLE);
    left -= b->share[k];
    if (b->share[k] > b->share[most]) most = k;
  }
  b->share[most] += left;
  return true;
}

/* Raises b->least to what a few shares say, the best of which stay. */
static void bound(psplit_i_nested_solver *d, psplit_i_nested_branch *b, int n_shares) {
  int32_t best[PSPLIT_I_NESTED_STAGES];
  int64_t most = -1;
  memset(d->seen, 0, d->n * sizeof *d->seen);
  d->n_cuts = 0;
  for (int t = 0; t < n_shares; t++) {
    bool whole;
    const int64_t least = psplit_i_nested_cheapest(d, b, &whole);
    if (d->failed) return;
    if (least > most) {
      most = least;
      memcpy(best, b->share, sizeof best);
    }
    if (least > b->least) b->least = least;
    if (!whole || b->least >= d->known ||
        !move_shares(d, b, least, n_shares > SHARES ? FIRST_MOVE : MOVE))
      break;
  }
  if (most >= 0) memcpy(b->share, best, sizeof best);
}

/* --- branches --- */

static psplit_i_nested_branch pop(psplit_i_nested_solver *d) {
  psplit_i_open_pop(d->open.items, d->open.n, sizeof *d->open.items);
  return d->open.items[--d->open.n];
}

static bool make_intervals(psplit_i_nested_solver *d, psplit_i_nested_branch *b) {
  b->lo = d->spare.n > 0 ? d->spare.items[--d->spare.n]
                         : PSPLIT_NEW(&d->arena, uint8_t, 2 * (size_t)d->n);
  b->hi = b->lo ? b->lo + d->n : NULL;
  d->failed |= !b->lo;
  return b->lo != NULL;
}

static void drop(psplit_i_nested_solver *d, const psplit_i_nested_branch *b) {
  if (!psplit_i_vec_push(&d->spare, b->lo)) d->failed = true;
}

/* By what the branch is divided: of the clusters and boundaries on whose sides its cuts differ,
 * those with most to both sides. False: every cluster's stage is known, and it is by nothing. */
static bool choose(psplit_i_nested_solver *d, psplit_i_nested_branch *b) {
  const uint64_t n_free = psplit_i_nested_find_free(d, b);
  double most = -1;
  b->cluster = PSPLIT_NONE;
  for (uint32_t i = 0; i < d->n; i++) {
    int64_t ahead[PSPLIT_I_NESTED_STAGES], behind[PSPLIT_I_NESTED_STAGES], end;
    if (!psplit_i_nested_free(b, i)) continue;
    /* What is on the other side for certain does not come along, nor what is there. */
    psplit_i_nested_along(d, b, i, true, ahead, &end);
    psplit_i_nested_along(d, b, i, false, behind, &end);
    for (int j = b->lo[i]; j < b->hi[i]; j++) {
      const uint32_t in = d->seen[i][j], rest = d->n_cuts - in, fewer = in < rest ? in : rest;
      const double differ =
        fewer > 0 ? 1 + (double)fewer / (double)d->n_cuts : 1.0 / (double)PSPLIT_I_NESTED_WHOLE;
      const double score = ((double)ahead[j] + 1) * ((double)behind[j] + 1) * differ;
      if (score <= most) continue;
      most = score;
      b->cluster = i;
      b->boundary = (uint8_t)j;
    }
  }
  psplit_i_spend(d->budget, n_free * (d->closure.words + n_free / 4) / 5);
  return most >= 0;
}

/* Bounds a branch; false where it has nothing better than what is known, or every stage is known:
 * that was measured, if there was time for it. Then its intervals are dropped. */
static bool stays_open(psplit_i_nested_solver *d, psplit_i_nested_branch *b, int n_shares) {
  bool is_open = psplit_i_nested_narrow(d, b);
  if (is_open) {
    bound(d, b, n_shares);
    is_open = !d->failed && (choose(d, b) || d->n_cuts == 0) && b->least < d->known;
  }
  if (!is_open) drop(d, b);
  return is_open;
}

static void keep(psplit_i_nested_solver *d, psplit_i_nested_branch b) {
  b.number = d->n_opened++;
  if (!psplit_i_vec_push(&d->open, b)) {
    d->failed = true;
    return;
  }
  psplit_i_open_pushed(d->open.items, d->open.n, sizeof b);
}

/* Divides a branch. Whether a half stays open: the one in *io may be least; the other
 * is kept. */
static bool divide(psplit_i_nested_solver *d, psplit_i_nested_branch *io) {
  psplit_i_nested_branch ahead = *io, behind = *io;
  if (io->cluster == PSPLIT_NONE) return stays_open(d, io, 1); /* there was no time to measure it */
  if (!make_intervals(d, &ahead)) return false;
  memcpy(ahead.lo, io->lo, d->n);
  memcpy(ahead.hi, io->hi, d->n);
  ahead.hi[io->cluster] = io->boundary;
  behind.lo[io->cluster] = (uint8_t)(io->boundary + 1);
  const bool first = stays_open(d, &ahead, SHARES), second = stays_open(d, &behind, SHARES);
  if (d->failed || (!first && !second)) return false;
  const bool is_ahead = first && (!second || ahead.least <= behind.least);
  *io = is_ahead ? ahead : behind;
  if (first && second) keep(d, is_ahead ? behind : ahead);
  return true;
}

/* Divides what may be least; some of these are followed half by half to where nothing is open, as
 * that finds splits. */
static void divide_least(psplit_i_nested_solver *d) {
  psplit_i_nested_branch b = pop(d);
  const uint64_t turn = d->n_divided++;
  const bool follow = turn < FIRST_DIVES || turn % DIVES_APART == 0;
  bool is_open = divide(d, &b);
  while (is_open && follow && !d->failed && b.least < d->known && !psplit_i_expired(d->budget))
    is_open = divide(d, &b);
  if (is_open) keep(d, b);
}

/* No split takes more than this; INF where times are too large for the networks. */
static int64_t most_of_all(const psplit_i_nested_solver *d) {
  int64_t sum = 1;
  for (uint32_t i = 0; i < d->n; i++) sum = psplit_i_sat_add_i64(sum, d->w[i]);
  for (uint32_t e = 0; e < d->instance->n_nets; e++)
    sum = psplit_i_sat_add_i64(
      sum,
      psplit_i_sat_mul_i64(PSPLIT_I_NESTED_STAGES, psplit_i_sat_add_i64(d->send[e], d->recv[e])));
  return sum < PSPLIT_I_INF >> (PSPLIT_I_NESTED_BITS + 6) ? sum : PSPLIT_I_INF;
}

/* Leaves those of list[n] out that come before another one; *io_m: of all lists so far. */
static void leave_out_implied(const psplit_i_nested_solver *d, const uint32_t *list, uint32_t n,
                              uint32_t *out, uint32_t *io_m) {
  for (uint32_t k = 0; k < n; k++) {
    bool implied = false;
    for (uint32_t q = 0; q < n && !implied; q++) {
      const uint64_t *before = d->closure.before + (size_t)list[q] * d->closure.words;
      implied = q != k && (before[list[k] / 64] >> (list[k] % 64) & 1);
    }
    if (!implied) out[(*io_m)++] = list[k];
  }
  psplit_i_spend(d->budget, 1 + (uint64_t)n * n / 4);
}

static psplit_code find_implied(psplit_i_nested_solver *d) {
  const psplit_i_instance *instance = d->instance;
  uint32_t m = 0;
  d->pred_off = PSPLIT_NEW(&d->arena, uint32_t, (size_t)d->n + 1);
  d->pred = PSPLIT_NEW(&d->arena, uint32_t, instance->pred_off[d->n]);
  d->last_off = PSPLIT_NEW(&d->arena, uint32_t, (size_t)instance->n_nets + 1);
  d->last = PSPLIT_NEW(&d->arena, uint32_t, psplit_i_nested_pins(d));
  if (d->arena.failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < d->n; i++) {
    const uint32_t first = instance->pred_off[i];
    d->pred_off[i] = m;
    leave_out_implied(d, instance->pred + first, instance->pred_off[i + 1] - first, d->pred, &m);
  }
  d->pred_off[d->n] = m;
  m = 0;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e] + 1;
    d->last_off[e] = m;
    leave_out_implied(d, instance->net_pin + first, instance->net_off[e + 1] - first, d->last, &m);
  }
  d->last_off[instance->n_nets] = m;
  return PSPLIT_OK;
}

static psplit_code nested_init(psplit_i_nested_solver *d) {
  const psplit_i_instance *instance = d->instance;
  psplit_i_arena_init(&d->arena, 0);
  d->place = psplit_i_arena_zeroed(&d->arena, d->n, sizeof *d->place);
  d->cost = psplit_i_arena_zeroed(&d->arena, d->n, sizeof *d->cost);
  d->seen = psplit_i_arena_zeroed(&d->arena, d->n, sizeof *d->seen);
  d->now = PSPLIT_NEW(&d->arena, uint8_t, d->n);
  d->best = PSPLIT_NEW(&d->arena, uint8_t, d->n);
  if (d->arena.failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < d->n; i++) d->work = psplit_i_sat_add_i64(d->work, d->w[i]);
  d->known = d->above = most_of_all(d);
  const psplit_code code = psplit_i_closure_make(instance, d->budget, &d->closure);
  if (code != PSPLIT_OK) return code;
  d->free = PSPLIT_NEW(&d->arena, uint64_t, d->closure.words);
  return d->free ? find_implied(d) : PSPLIT_NOMEM;
}

/* Whether what is still open is closer to what is known than was asked for, or no better. */
static bool is_near(const psplit_i_nested_solver *d, int64_t least) {
  return least >= d->known - (int64_t)(d->gap_frac * (double)d->known);
}

static void begin(psplit_i_nested_solver *d) {
  psplit_i_nested_branch whole = {.least = 0};
  d->begun = true;
  if (!make_intervals(d, &whole)) return;
  memset(whole.lo, 0, d->n);
  memset(whole.hi, d->n_stages - 1, d->n);
  for (int k = 0; k < d->n_stages; k++)
    whole.share[k] =
      PSPLIT_I_NESTED_WHOLE / d->n_stages + (k < PSPLIT_I_NESTED_WHOLE % d->n_stages);
  if (stays_open(d, &whole, FIRST_SHARES)) keep(d, whole);
}

/* Goes on where it was; *out_least: no split is below. `given`: the caller's best. */
static psplit_code solve(psplit_i_nested_solver *d, int64_t given, int64_t *out_least) {
  const size_t most = MOST_BYTES / (2 * (size_t)d->n + sizeof(psplit_i_nested_branch));
  *out_least = 0;
  if (d->above >= PSPLIT_I_INF) return PSPLIT_OK;
  if (!d->begun) begin(d);
  while (d->open.n > 0 && !d->failed && d->open.n < most && !psplit_i_expired(d->budget) &&
         !is_near(d, d->open.items[0].least))
    divide_least(d);
  if (d->failed) return PSPLIT_NOMEM;
  *out_least = d->known;
  if (d->open.n > 0 && d->open.items[0].least < d->known)
    *out_least = d->open.items[0].least;
  else if (!d->found && d->known == d->above && d->above < given)
    *out_least = given; /* there is none */
  return PSPLIT_OK;
}

bool psplit_i_nested_takes(const psplit_i_instance *instance, const psplit_i_automaton *automaton) {
  return automaton->n_stages > 2 && automaton->n_stages <= PSPLIT_I_NESTED_STAGES &&
         instance->n_types == 1 && instance->n <= MOST_CLUSTERS && instance->all_forward &&
         !instance->link && !instance->makes_message &&
         psplit_i_takes(PSPLIT_I_SOLVER_NESTED, automaton->features);
}

psplit_code psplit_i_nested_create(const psplit_i_instance *instance,
                                   const psplit_i_automaton *automaton, psplit_i_budget *budget,
                                   psplit_i_nested_solver **out) {
  psplit_i_nested_solver *d = malloc(sizeof *d);
  *out = NULL;
  if (!d) return PSPLIT_NOMEM;
  *d = (psplit_i_nested_solver){.instance = instance,
                                .w = instance->w,
                                .send = instance->send,
                                .recv = instance->recv,
                                .n = instance->n,
                                .n_stages = (int)automaton->n_stages,
                                .all_used = automaton->all_used,
                                .budget = budget};
  const psplit_code code = nested_init(d);
  if (code != PSPLIT_OK) {
    psplit_i_nested_destroy(d);
    return code;
  }
  *out = d;
  return PSPLIT_OK;
}

void psplit_i_nested_destroy(psplit_i_nested_solver *d) {
  if (!d) return;
  psplit_i_vec_fini(&d->open);
  psplit_i_vec_fini(&d->spare);
  psplit_i_cut_network_fini(&d->network);
  psplit_i_closure_fini(&d->closure);
  psplit_i_arena_fini(&d->arena);
  free(d);
}

psplit_code psplit_i_nested_run(psplit_i_nested_solver *d, const psplit_i_automaton *automaton,
                                double gap_frac, psplit_i_budget *budget, int64_t *scratch,
                                psplit_i_assignment *io_best, int64_t *out_least) {
  d->gap_frac = gap_frac;
  d->budget = budget;
  if (io_best->value < d->known) {
    d->known = io_best->value;
    d->found = false;
  }
  const psplit_code code = solve(d, io_best->value, out_least);
  if (code != PSPLIT_OK || !d->found || d->known >= io_best->value) return code;
  for (uint32_t i = 0; i < d->n; i++) io_best->stage[i] = d->best[i];
  for (uint32_t k = 0; k < automaton->n_stages; k++) {
    io_best->device[k] = 0;
    io_best->replicas[k] = 1;
  }
  psplit_i_assignment_evaluate(io_best, d->instance, automaton, scratch);
  return code;
}

psplit_code psplit_i_nested_cut(const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton, uint8_t *lo, uint8_t *hi,
                                const int32_t *share, int64_t *out_least) {
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_i_nested_branch b = {.lo = lo, .hi = hi};
  psplit_i_nested_solver *d;
  bool whole;
  memcpy(b.share, share, automaton->n_stages * sizeof *share);
  *out_least = 0;
  const psplit_code code = psplit_i_nested_create(instance, automaton, &budget, &d);
  if (code == PSPLIT_OK) *out_least = psplit_i_nested_cheapest(d, &b, &whole);
  const bool failed = code == PSPLIT_OK && d->failed;
  psplit_i_nested_destroy(d);
  return failed ? PSPLIT_NOMEM : code;
}
