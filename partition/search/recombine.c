/* A local search over downsets: computes the best split over a set of downsets, adds downsets near
 * its cuts, computes the best split over all, and repeats this while the value improves. */
#include <stdlib.h>
#include <string.h>

#include "closure.h"
#include "downset_cuts.h"
#include "downset_dp.h"
#include "problem.h"
#include "recombine.h"
#include "segments.h"

enum {
  PARTS_A_STAGE = 8, /* of all work, at which the whole graph is cut */
  MOST_PARTS = 512,
  N_FIRST = 3,  /* depth-first orders */
  N_ORDERS = 6, /* and by what is before, not behind, and both */
  NEAR = 3,     /* one cluster more or less, with no more than one of so many parts of a stage */
  MOST_ROUNDS = 8,
  ROUND_PART = 2 /* of what is left a round may take one of so many parts */
};

typedef struct search {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_closure closure;
  psplit_i_depths depths;
  psplit_i_downsets set;
  uint32_t *order[N_ORDERS], *sorted; /* [n] */
  uint32_t *first;                    /* [n_stages + 1] */
  uint64_t *base, *bits;              /* [words] */
  bool is_costly; /* a round took all that it was given, or the next one would */
  uint64_t last;  /* what the last round took */
} search;

/* A cluster and its key in an order. */
typedef struct keyed {
  int64_t key;
  uint32_t cluster;
} keyed;

static int compare_keyed(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

/* The work of the clusters in a row of the closure, except those in `without`; NULL: of all of
 * them. */
static int64_t work_of(const search *s, const uint64_t *row, const uint64_t *mask, bool inside) {
  int64_t sum = 0;
  for (uint32_t w = 0; w < s->closure.words; w++) {
    uint64_t left = !mask ? row[w] : inside ? row[w] & mask[w] : row[w] & ~mask[w];
    for (uint32_t i = 64 * w; left; i++, left >>= 1)
      if (left & 1) sum += s->automaton->min_time[i];
  }
  return sum;
}

/* Neither key decreases along an edge, and ids are topological, so sorting by key and id gives a
 * topological order. */
static void sort_by_depth(const search *s, uint32_t kind, keyed *scratch, uint32_t *out_order) {
  for (uint32_t i = 0; i < s->instance->n; i++) {
    const int64_t before = s->depths.before[i];
    const int64_t not_behind = s->automaton->total_min_time - s->depths.behind[i];
    scratch[i] = (keyed){kind == 0 ? before : kind == 1 ? not_behind : before + not_behind, i};
  }
  qsort(scratch, s->instance->n, sizeof *scratch, compare_keyed);
  for (uint32_t k = 0; k < s->instance->n; k++) out_order[k] = scratch[k].cluster;
}

static psplit_code search_init(search *s) {
  const uint32_t n = s->instance->n;
  psplit_i_arena_init(&s->arena, 0);
  psplit_i_downsets_init(&s->set, s->instance);
  if (psplit_i_closure_make(s->instance, s->budget, &s->closure) != PSPLIT_OK) return PSPLIT_NOMEM;
  keyed *scratch = PSPLIT_NEW(&s->arena, keyed, n);
  s->depths.before = PSPLIT_NEW(&s->arena, int64_t, n);
  s->depths.behind = PSPLIT_NEW(&s->arena, int64_t, n);
  s->sorted = PSPLIT_NEW(&s->arena, uint32_t, n);
  s->first = PSPLIT_NEW(&s->arena, uint32_t, (size_t)s->instance->n_stages + 1);
  s->base = PSPLIT_NEW(&s->arena, uint64_t, s->closure.words);
  s->bits = PSPLIT_NEW(&s->arena, uint64_t, s->closure.words);
  uint32_t *left = PSPLIT_NEW(&s->arena, uint32_t, n);
  for (uint32_t k = 0; k < N_ORDERS; k++) s->order[k] = PSPLIT_NEW(&s->arena, uint32_t, n);
  if (s->arena.failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++) {
    const size_t row = (size_t)i * s->closure.words;
    s->depths.before[i] = work_of(s, s->closure.before + row, NULL, true);
    s->depths.behind[i] = work_of(s, s->closure.behind + row, NULL, true);
  }
  psplit_i_spend(s->budget, (uint64_t)n * n / 2);
  for (uint32_t k = 0; k < N_FIRST; k++)
    psplit_i_topological_order(s->instance, k, left, s->sorted, s->order[k]);
  for (uint32_t k = N_FIRST; k < N_ORDERS; k++) sort_by_depth(s, k - N_FIRST, scratch, s->order[k]);
  return PSPLIT_OK;
}

static void search_fini(search *s) {
  psplit_i_downsets_fini(&s->set);
  psplit_i_closure_fini(&s->closure);
  psplit_i_arena_fini(&s->arena);
}

/* The clusters sorted by the stages of a split. The sort is stable, so the order stays
 * topological. */
static void sort_by_stage(const search *s, const uint32_t *order, const uint32_t *stage) {
  const uint32_t n = s->instance->n, n_stages = s->instance->n_stages;
  memset(s->first, 0, ((size_t)n_stages + 1) * sizeof *s->first);
  for (uint32_t i = 0; i < n; i++) s->first[stage[i] + 1]++;
  for (uint32_t k = 0; k < n_stages; k++) s->first[k + 1] += s->first[k];
  for (uint32_t k = 0; k < n; k++) s->sorted[s->first[stage[order[k]]]++] = order[k];
}

/* The cuts of a split with one more cluster of the stage behind, and everything it requires, or
 * with one cluster less of the stage in front. */
static psplit_code add_neighbours(search *s, const psplit_i_assignment *split, uint32_t stage) {
  const size_t words = s->closure.words;
  memset(s->base, 0, words * sizeof *s->base);
  for (uint32_t i = 0; i < s->instance->n; i++)
    if (split->stage[i] <= stage) s->base[i / 64] |= UINT64_C(1) << (i % 64);
  for (uint32_t i = 0; i < s->instance->n; i++) {
    const bool more = split->stage[i] == stage + 1, less = split->stage[i] == stage;
    const uint64_t *row = (more ? s->closure.before : s->closure.behind) + i * words;
    if (!(more || less) || work_of(s, row, s->base, less) > split->value / NEAR) continue;
    for (size_t w = 0; w < words; w++)
      s->bits[w] = more ? s->base[w] | row[w] : s->base[w] & ~row[w];
    if (!psplit_i_downsets_add(&s->set, s->bits)) return PSPLIT_NOMEM;
    psplit_i_spend(s->budget, 4 * words);
  }
  psplit_i_spend(s->budget, 2 * (uint64_t)s->instance->n);
  return PSPLIT_OK;
}

/* Adds downsets near the cuts of a split. */
static psplit_code look_around(search *s, const psplit_i_assignment *split) {
  psplit_code code = PSPLIT_OK;
  PSPLIT_TRY(psplit_i_downsets_add_split(&s->set, s->instance, split->stage) ? PSPLIT_OK
                                                                             : PSPLIT_NOMEM);
  for (uint32_t k = 0; k + 1 < s->instance->n_stages; k++) PSPLIT_TRY(add_neighbours(s, split, k));
  for (uint32_t k = 0; k < N_ORDERS; k++) {
    sort_by_stage(s, s->order[k], split->stage);
    PSPLIT_TRY(psplit_i_downset_cuts_near(s->instance, s->automaton, s->sorted, split->value,
                                          s->budget, &s->set));
  }
out:
  return code;
}

/* One round from a split, with a part of the remaining budget. If that does not suffice, as in
 * graphs whose clusters may be at many positions each, `is_costly` is set. *out_better: the
 * bottleneck improved. */
static psplit_code improve_once(search *s, int64_t *scratch, psplit_i_assignment *trial,
                                psplit_i_assignment *io_split, bool *out_better) {
  psplit_code code = PSPLIT_OK;
  psplit_i_budget *whole = s->budget;
  psplit_i_budget part = psplit_i_budget_share(whole, ROUND_PART);
  const int64_t before = io_split->value;
  *out_better = false;
  s->budget = &part;
  PSPLIT_TRY(look_around(s, io_split));
  if (psplit_i_expired(&part)) goto out;
  PSPLIT_TRY(
    psplit_i_downset_dp(s->instance, s->automaton, &s->set, before, &part, scratch, trial));
  if (psplit_i_assignment_better(trial, io_split, s->instance))
    psplit_i_assignment_copy(io_split, trial, s->instance);
  *out_better = io_split->value < before;
out:
  s->is_costly = psplit_i_expired(&part);
  s->last = part.spent;
  s->budget = whole;
  psplit_i_spend(whole, part.spent);
  return code;
}

/* Whether another round would end within its part of the budget, since an interrupted round finds
 * nothing. */
static bool affords_round(const search *s) {
  return psplit_i_budget_left(s->budget) / ROUND_PART > s->last;
}

/* Rounds from a split, while its bottleneck improves. The set keeps its first n_kept downsets. */
static psplit_code improve(search *s, uint32_t n_kept, int64_t *scratch, psplit_i_assignment *trial,
                           psplit_i_assignment *io_split) {
  psplit_code code = PSPLIT_OK;
  bool better = true;
  for (uint32_t round = 0; better && round < MOST_ROUNDS && !psplit_i_expired(s->budget); round++) {
    s->is_costly |= !affords_round(s);
    if (s->is_costly) break;
    psplit_i_downsets_forget(&s->set, n_kept);
    PSPLIT_TRY(improve_once(s, scratch, trial, io_split, &better));
  }
out:
  return code;
}

static psplit_code run(search *s, const psplit_i_downsets *more, int64_t limit, int64_t *scratch,
                       psplit_i_assignment *trial, psplit_i_assignment *found,
                       psplit_i_assignment *io_split) {
  const uint32_t n_stages = s->instance->n_stages;
  const uint32_t n_parts =
    n_stages < MOST_PARTS / PARTS_A_STAGE ? n_stages * PARTS_A_STAGE : MOST_PARTS;
  psplit_code code = PSPLIT_OK;
  PSPLIT_TRY(psplit_i_downset_cuts_whole(s->instance, s->automaton, &s->depths, n_parts, s->budget,
                                         &s->set));
  for (uint32_t i = 0; i < more->n; i++)
    PSPLIT_TRY(psplit_i_downsets_add(&s->set, psplit_i_downset(more, i)) ? PSPLIT_OK
                                                                         : PSPLIT_NOMEM);
  const uint32_t n_whole = s->set.n;
  PSPLIT_TRY(
    psplit_i_downset_dp(s->instance, s->automaton, &s->set, limit, s->budget, scratch, found));
  if (found->value >= PSPLIT_I_INF) goto out; /* hardly a stage ends where little is cut */
  PSPLIT_TRY(improve(s, n_whole, scratch, trial, found));
  if (io_split->value < found->value && !s->is_costly) {
    PSPLIT_TRY(improve(s, n_whole, scratch, trial, io_split));
  } else if (psplit_i_assignment_better(found, io_split, s->instance)) {
    psplit_i_assignment_copy(io_split, found, s->instance);
  }
out:
  return code;
}

psplit_code psplit_i_recombine(const psplit_i_instance *instance,
                               const psplit_i_automaton *automaton, const psplit_i_downsets *more,
                               int64_t limit, psplit_i_budget *budget, int64_t *scratch,
                               psplit_i_assignment *io_split) {
  search s = {.instance = instance, .automaton = automaton, .budget = budget};
  psplit_i_assignment trial, found;
  psplit_code code = search_init(&s);
  if (code == PSPLIT_OK) code = psplit_i_assignment_init(&trial, instance, &s.arena);
  if (code == PSPLIT_OK) code = psplit_i_assignment_init(&found, instance, &s.arena);
  if (code == PSPLIT_OK) code = run(&s, more, limit, scratch, &trial, &found, io_split);
  search_fini(&s);
  return code;
}
