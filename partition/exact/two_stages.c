/* Two stages: the first holds a downset D, and the larger of the two loads is to be least. For any
 * share p of one,
 *
 *     max(front(D), back(D))  >=  p front(D) + (1 - p) back(D),
 *
 * and the least of the right side over all downsets is a minimum cut: a cluster costs p of its time
 * inside and 1 - p of it outside, a net that crosses p of what it takes the one and 1 - p of what
 * it takes the other. The best p is where the cheapest downset changes from one with the larger
 * load behind to one with the larger load in front, and every cut is a split by itself.
 *
 * What is still open is divided: a cluster is inside, with all that comes before it, or outside,
 * with all that comes behind it. No load may reach the best value known, which forces further
 * clusters to either side. The half that may be best is divided first, so what no split is below is
 * known whenever this stops. */
#include "two_stages.h"

#include <string.h>

#include "boundary_network.h"
#include "branches.h"
#include "budget.h"

enum {
  SHARES = 12,          /* tried for a branch */
  MOST_BITS = 16,       /* of a share */
  LEAST_BITS = 4,       /* of a share: with fewer, cuts say little */
  MOST_CLUSTERS = 4096, /* of which the closure is made */
  FEW_CLUSTERS = 128,   /* so few are soon decided elsewhere where pairs count */
  SOON_PART = 16,       /* of the budget, one of so many parts: in the first turn */
  LATE_PART = 3         /* the same when no solver's turn has helped */
};

typedef struct downset {
  bool *in;            /* [n] */
  int64_t front, back; /* loads */
} downset;

typedef struct divider {
  const psplit_i_instance *instance;
  uint32_t type[2]; /* of the devices */
  const int64_t *w[2];
  int64_t *ahead[2];     /* [n_nets] what the stages take for a net that crosses forwards, */
  int64_t *back[2];      /* and backwards; 0: it cannot */
  int64_t message[2][2]; /* what the first and the second take for one forwards, backwards; or 0 */
  bool surely;           /* a tensor goes forwards as soon as both stages have something */
  bool all_used;
  int bits;        /* shares are of 2^bits */
  double gap_frac; /* that is near enough */
  psplit_i_closure closure;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_boundary_network network;
  psplit_i_branches all;
  int64_t *before, *behind; /* [n] times of what is free there, with the cluster itself */
  downset now, light, heavy;
  int64_t sure[2]; /* what both take for messages that cross in the branch for certain */
  int64_t known;   /* no larger split matters */
  bool *best;      /* [n] inside; of a split of `known`, where one was found */
  bool found;
  bool failed;
} divider;

/* --- what is forced --- */

typedef struct loads {
  int64_t front, back;
  bool message[2]; /* that it has one forwards, backwards */
} loads;

/* Adds a net that crosses, backwards where `back`. */
static void cross(const divider *d, uint32_t e, bool back, loads *io) {
  io->front += back ? d->back[0][e] : d->ahead[0][e];
  io->back += back ? d->back[1][e] : d->ahead[1][e];
  io->message[back] |= d->instance->makes_message && d->instance->makes_message[e];
}

/* What stage k takes for the messages. */
static int64_t messages_of(const divider *d, const loads *sum, int k) {
  return (sum->message[0] ? d->message[0][k] : 0) + (sum->message[1] ? d->message[1][k] : 0);
}

/* What both stages take already: times, and nets and messages that cross for certain; leaves the
 * latter in d->sure. */
static loads weigh(divider *d, const uint8_t *where) {
  const psplit_i_instance *instance = d->instance;
  loads sum = {.message = {d->surely, false}};
  for (uint32_t i = 0; i < instance->n; i++) {
    if (where[i] == PSPLIT_I_SIDE_INSIDE) sum.front = psplit_i_sat_add_i64(sum.front, d->w[0][i]);
    if (where[i] == PSPLIT_I_SIDE_OUTSIDE) sum.back = psplit_i_sat_add_i64(sum.back, d->w[1][i]);
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e];
    const uint8_t home = where[instance->net_pin[first]];
    bool crosses = false;
    if (home == PSPLIT_I_SIDE_FREE) continue;
    for (uint32_t k = first + 1; k < instance->net_off[e + 1]; k++) {
      const uint8_t there = where[instance->net_pin[k]];
      crosses |= there != PSPLIT_I_SIDE_FREE && there != home;
    }
    if (crosses) cross(d, e, home != PSPLIT_I_SIDE_INSIDE, &sum);
  }
  d->sure[0] = messages_of(d, &sum, 0);
  d->sure[1] = messages_of(d, &sum, 1);
  sum.front += d->sure[0];
  sum.back += d->sure[1];
  psplit_i_spend(d->budget, instance->n + instance->net_off[instance->n_nets]);
  return sum;
}

/* Forces what would make a load reach the value known; false where both sides would. */
static bool force_by_load(divider *d, uint8_t *where) {
  const psplit_i_closure *closure = &d->closure;
  for (bool again = true; again;) {
    const loads sum = weigh(d, where);
    uint64_t n_free = 0;
    again = false;
    if (sum.front >= d->known || sum.back >= d->known) return false;
    for (uint32_t i = 0; i < closure->n; i++) {
      if (where[i] != PSPLIT_I_SIDE_FREE) continue;
      const size_t at = (size_t)i * closure->words;
      n_free++;
      d->before[i] = psplit_i_branch_free_weight(&d->all, where, closure->before + at, d->w[0]);
      d->behind[i] = psplit_i_branch_free_weight(&d->all, where, closure->behind + at, d->w[1]);
      const bool not_inside = psplit_i_sat_add_i64(sum.front, d->before[i]) >= d->known;
      const bool not_outside = psplit_i_sat_add_i64(sum.back, d->behind[i]) >= d->known;
      if (!not_inside && !not_outside) continue;
      if (not_inside && not_outside) return false;
      if (!psplit_i_branch_force(&d->all, where, i,
                                 not_inside ? PSPLIT_I_SIDE_OUTSIDE : PSPLIT_I_SIDE_INSIDE))
        return false;
      again = true;
    }
    psplit_i_spend(d->budget, n_free * (closure->words + n_free / 8) / 4);
  }
  return true;
}

/* --- minimum cuts --- */

static int64_t whole_share(const divider *d) { return INT64_C(1) << d->bits; }

static int64_t mixed(const divider *d, int64_t share, int64_t front, int64_t back) {
  return share * front + (whole_share(d) - share) * back;
}

/* Times by this share; *out_fixed: what no cut tells. */
static void build(divider *d, const uint8_t *where, int64_t share, int64_t *out_fixed) {
  const psplit_i_instance *instance = d->instance;
  *out_fixed = mixed(d, share, d->sure[0], d->sure[1]);
  psplit_i_boundary_begin(&d->network, where);
  for (uint32_t i = 0; i < instance->n; i++) {
    const int64_t inside = where[i] == PSPLIT_I_SIDE_OUTSIDE ? 0 : mixed(d, share, d->w[0][i], 0);
    const int64_t outside = where[i] == PSPLIT_I_SIDE_INSIDE ? 0 : mixed(d, share, 0, d->w[1][i]);
    *out_fixed += where[i] != PSPLIT_I_SIDE_FREE
                    ? inside + outside
                    : psplit_i_boundary_cluster(&d->network, i, inside, outside);
  }
  for (uint32_t e = 0; e < instance->n_nets; e++)
    psplit_i_boundary_net(&d->network, e, mixed(d, share, d->ahead[0][e], d->ahead[1][e]),
                          mixed(d, share, d->back[0][e], d->back[1][e]));
}

static bool is_split(const divider *d, const downset *s) {
  if (!d->all_used) return true;
  bool in = false, out = false;
  for (uint32_t i = 0; i < d->instance->n; i++) {
    in |= s->in[i] && d->instance->n_counted[i] > 0;
    out |= !s->in[i] && d->instance->n_counted[i] > 0;
  }
  return in && out;
}

/* Its loads; a split that is better than what is known is kept. */
static void measure(divider *d, downset *s) {
  const psplit_i_instance *instance = d->instance;
  loads sum = {0};
  for (uint32_t i = 0; i < instance->n; i++) {
    int64_t *load = s->in[i] ? &sum.front : &sum.back;
    *load = psplit_i_sat_add_i64(*load, d->w[s->in[i] ? 0 : 1][i]);
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e];
    const bool home = s->in[instance->net_pin[first]];
    bool crosses = false;
    for (uint32_t k = first + 1; k < instance->net_off[e + 1] && !crosses; k++)
      crosses = s->in[instance->net_pin[k]] != home;
    if (crosses) cross(d, e, !home, &sum);
  }
  psplit_i_spend(d->budget, instance->n / 2 + instance->net_off[instance->n_nets] / 2);
  s->front = sum.front + messages_of(d, &sum, 0);
  s->back = sum.back + messages_of(d, &sum, 1);
  const int64_t value = s->front > s->back ? s->front : s->back;
  if (value >= d->known || !is_split(d, s)) return;
  d->known = value;
  d->found = true;
  memcpy(d->best, s->in, instance->n * sizeof *s->in);
}

/* What no split of the branch is below, by this share; d->now is the cheapest downset by it, and
 * *out_whole says whether there was time to find it. */
static int64_t cut(divider *d, const uint8_t *where, int64_t share, bool *out_whole) {
  int64_t value, fixed;
  build(d, where, share, &fixed);
  *out_whole = psplit_i_boundary_cut(&d->network, &value, d->now.in);
  d->failed |= d->network.cut.failed;
  if (*out_whole) measure(d, &d->now);
  return (value + fixed + whole_share(d) - 1) >> d->bits;
}

static void take(const divider *d, downset *to) {
  memcpy(to->in, d->now.in, d->instance->n * sizeof *to->in);
  to->front = d->now.front;
  to->back = d->now.back;
}

/* The end of a branch that this one is a half of, as far as it fits here, where its front still is
 * the smaller (PSPLIT_I_END_LIGHT) or the larger; else the smallest or largest downset there is. */
static void recall(divider *d, const psplit_i_branch *b, downset *end, uint8_t which) {
  psplit_i_branch_recall(&d->all, b, which, end->in);
  measure(d, end);
  if ((end->front < end->back) == (which == PSPLIT_I_END_LIGHT)) return;
  psplit_i_branch_extreme(&d->all, b, which, end->in);
  measure(d, end);
}

/* The share by which both ends cost the same; the front alone counts where it is always the larger,
 * and likewise the back. */
static int64_t share_between(const divider *d) {
  const double light = (double)d->light.front - (double)d->light.back;
  const double heavy = (double)d->heavy.front - (double)d->heavy.back;
  const int64_t whole = whole_share(d);
  if (light >= 0) return whole;
  if (heavy <= 0) return 0;
  const double share = ((double)d->light.back - (double)d->heavy.back) / (heavy - light);
  return share <= 0 ? 0 : share >= 1 ? whole : (int64_t)(share * (double)whole);
}

/* Raises b->least to what the best share says; leaves the ends in d->light and d->heavy. */
static void bound(divider *d, psplit_i_branch *b) {
  recall(d, b, &d->light, PSPLIT_I_END_LIGHT);
  recall(d, b, &d->heavy, PSPLIT_I_END_HEAVY);
  int64_t last = -1;
  for (int k = 0; k < SHARES && b->least < d->known; k++) {
    const int64_t share = share_between(d);
    bool whole;
    if (share == last) return;
    last = share;
    const int64_t least = cut(d, b->where, share, &whole);
    if (least > b->least) b->least = least;
    if (!whole || d->failed) return;
    downset *end = d->now.front < d->now.back ? &d->light : &d->heavy;
    if (end->front == d->now.front && end->back == d->now.back) return;
    take(d, end);
  }
}

/* --- branches --- */

static bool is_decided(const divider *d, const uint8_t *where) {
  for (uint32_t i = 0; i < d->instance->n; i++)
    if (where[i] == PSPLIT_I_SIDE_FREE) return false;
  return true;
}

/* Opens a branch unless it has nothing better than what is known; where all is on a side, that was
 * measured. */
static void open_branch(divider *d, psplit_i_branch *b) {
  if (!force_by_load(d, b->where)) return;
  bound(d, b);
  if (d->failed || b->least >= d->known || is_decided(d, b->where)) return;
  if (!psplit_i_branch_open(&d->all, b, d->light.in, d->heavy.in, d->before, d->behind))
    d->failed = true;
}

static void divide(divider *d) {
  psplit_i_branch half[2];
  bool possible[2];
  if (!psplit_i_branch_divide(&d->all, half, possible)) {
    d->failed = true;
    return;
  }
  for (int k = 0; k < 2; k++)
    if (possible[k]) open_branch(d, &half[k]);
}

/* What a device cannot run is on the other's side; false where neither side may have something. */
static bool force_forbidden(const divider *d, uint8_t *where) {
  for (uint32_t i = 0; i < d->instance->n; i++) {
    const bool not_inside = d->w[0][i] >= PSPLIT_I_INF, not_outside = d->w[1][i] >= PSPLIT_I_INF;
    if (not_inside && !psplit_i_branch_force(&d->all, where, i, PSPLIT_I_SIDE_OUTSIDE))
      return false;
    if (not_outside && !psplit_i_branch_force(&d->all, where, i, PSPLIT_I_SIDE_INSIDE))
      return false;
  }
  return true;
}

/* Shares of so many bits that all sums in every network stay in bounds; false: of too few. */
static bool scale(divider *d) {
  const psplit_i_instance *instance = d->instance;
  int64_t sum = 0;
  for (int k = 0; k < 2; k++) {
    for (uint32_t i = 0; i < instance->n; i++) {
      if (d->w[k][i] < PSPLIT_I_INF) sum = psplit_i_sat_add_i64(sum, d->w[k][i]);
    }
    for (uint32_t e = 0; e < instance->n_nets; e++)
      sum = psplit_i_sat_add_i64(sum, psplit_i_sat_add_i64(d->ahead[k][e], d->back[k][e]));
  }
  while (d->bits < MOST_BITS && sum < PSPLIT_I_INF >> (d->bits + 4)) d->bits++;
  return d->bits >= LEAST_BITS;
}

static void find_costs(divider *d) {
  const psplit_i_instance *instance = d->instance;
  const uint32_t front = d->type[0], back = d->type[1];
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    d->ahead[0][e] = psplit_i_tensor_send_ns(instance, e, front, back);
    d->ahead[1][e] = psplit_i_tensor_recv_ns(instance, e, front, back);
    if (instance->net_forward[e]) continue;
    d->back[0][e] = psplit_i_tensor_recv_ns(instance, e, back, front);
    d->back[1][e] = psplit_i_tensor_send_ns(instance, e, back, front);
  }
  if (!instance->makes_message) return;
  for (int k = 0; k < 2; k++) {
    const uint32_t from = k ? back : front, to = k ? front : back;
    d->message[k][k] = psplit_i_message_ns(instance, from, to, true);
    d->message[k][1 - k] = psplit_i_message_ns(instance, from, to, false);
  }
  d->surely = instance->all_forward && instance->n_roots > 0 && instance->n_parts == 1;
}

static psplit_code divider_init(divider *d) {
  const uint32_t n = d->instance->n, n_nets = d->instance->n_nets;
  psplit_i_arena_init(&d->arena, 0);
  psplit_i_branches_init(&d->all, &d->closure, d->budget);
  for (int k = 0; k < 2; k++) {
    d->w[k] = d->instance->w + (size_t)d->type[k] * n;
    d->ahead[k] = PSPLIT_NEW(&d->arena, int64_t, n_nets);
    d->back[k] = PSPLIT_NEW(&d->arena, int64_t, n_nets);
  }
  d->before = PSPLIT_NEW(&d->arena, int64_t, n);
  d->behind = PSPLIT_NEW(&d->arena, int64_t, n);
  d->now.in = PSPLIT_NEW(&d->arena, bool, n);
  d->light.in = PSPLIT_NEW(&d->arena, bool, n);
  d->heavy.in = PSPLIT_NEW(&d->arena, bool, n);
  d->best = PSPLIT_NEW(&d->arena, bool, n);
  if (d->arena.failed) return PSPLIT_NOMEM;
  find_costs(d);
  const psplit_code code =
    psplit_i_boundary_network_init(&d->network, d->instance, d->budget, &d->arena);
  if (code != PSPLIT_OK) return code;
  return psplit_i_closure_make(d->instance, d->budget, &d->closure);
}

static void divider_fini(divider *d) {
  psplit_i_boundary_network_fini(&d->network);
  psplit_i_branches_fini(&d->all);
  psplit_i_closure_fini(&d->closure);
  psplit_i_arena_fini(&d->arena);
}

static void measure_whole(divider *d, bool in_front) {
  for (uint32_t i = 0; i < d->instance->n; i++) d->now.in[i] = in_front;
  measure(d, &d->now);
}

/* Whether what is still open is closer to what is known than was asked for, or no better. */
static bool is_near(const divider *d, int64_t least) {
  return least >= d->known - (int64_t)(d->gap_frac * (double)d->known);
}

/* *out_least: no split on such devices is below; where it is d->known, which goes down to the best
 * split found, all is known. Errors: NOMEM. */
static psplit_code solve(divider *d, int64_t *out_least) {
  const uint32_t most = psplit_i_branches_most(&d->all);
  psplit_i_branch whole;
  *out_least = 0;
  if (!scale(d)) return PSPLIT_OK;
  measure_whole(d, false); /* all in one stage: what `surely` says is not of these */
  measure_whole(d, true);
  d->failed = !psplit_i_branch_init(&d->all, &whole);
  if (!d->failed && force_forbidden(d, whole.where)) open_branch(d, &whole);
  while (d->all.open.n > 0 && !d->failed && d->all.n_opened < most &&
         !psplit_i_expired(d->budget) && !is_near(d, d->all.open.items[0].least))
    divide(d);
  if (d->failed) return PSPLIT_NOMEM;
  *out_least = d->known;
  if (d->all.open.n > 0 && d->all.open.items[0].least < d->known)
    *out_least = d->all.open.items[0].least;
  return PSPLIT_OK;
}

/* Takes over a split on such devices. */
static void give(const divider *d, const psplit_i_automaton *automaton, int64_t *scratch,
                 psplit_i_assignment *out) {
  for (uint32_t i = 0; i < d->instance->n; i++) out->stage[i] = d->best[i] ? 0 : 1;
  for (uint32_t k = 0; k < 2; k++) {
    out->device[k] = d->type[k];
    out->replicas[k] = 1;
  }
  psplit_i_assignment_evaluate(out, d->instance, automaton, scratch);
}

/* The devices of the first and the second stage; the number of such pairs. */
static uint32_t pairs_of_devices(const psplit_i_automaton *automaton, uint32_t pair[2][2]) {
  uint32_t type[2] = {0}, n = 0;
  for (uint32_t t = 0; t < automaton->n_types; t++)
    for (uint32_t k = 0; k < automaton->count[t] && n < 2; k++) type[n++] = t;
  for (uint32_t k = 0; k < 2; k++) {
    pair[0][k] = automaton->any_order ? type[k] : automaton->stage_type[k];
    pair[1][k] = type[1 - k];
  }
  return automaton->any_order && type[0] != type[1] ? 2 : 1;
}

psplit_code psplit_i_two_stages(const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton, double gap_frac,
                                psplit_i_budget *budget, int64_t *scratch,
                                psplit_i_assignment *io_best, int64_t *out_least) {
  uint32_t pair[2][2];
  const uint32_t n_pairs = pairs_of_devices(automaton, pair);
  psplit_code code = PSPLIT_OK;
  *out_least = PSPLIT_I_INF;
  for (uint32_t k = 0; k < n_pairs && code == PSPLIT_OK; k++) {
    int64_t least = 0;
    psplit_i_budget part = psplit_i_budget_share(budget, n_pairs - k);
    divider d = {.instance = instance,
                 .type = {pair[k][0], pair[k][1]},
                 .all_used = automaton->all_used,
                 .gap_frac = gap_frac,
                 .budget = &part,
                 .known = io_best->value};
    code = divider_init(&d);
    if (code == PSPLIT_OK) code = solve(&d, &least);
    if (code == PSPLIT_OK && d.found) give(&d, automaton, scratch, io_best);
    if (least < *out_least) *out_least = least;
    psplit_i_spend(budget, part.spent);
    divider_fini(&d);
  }
  return code;
}

/* --- turns --- */

static psplit_code ask(psplit_i_solver_state *a, uint32_t share) {
  int64_t least;
  if (!psplit_i_state_runs_all(a) || a->automaton.n_stages != 2 || a->instance.n > MOST_CLUSTERS ||
      psplit_i_state_done(a) || a->best.value >= PSPLIT_I_INF ||
      !psplit_i_takes(PSPLIT_I_SOLVER_TWO_STAGES, a->automaton.features))
    return PSPLIT_OK;
  psplit_i_budget part = psplit_i_budget_share(a->request->budget, share);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const psplit_code code =
    psplit_i_two_stages(&a->instance, &a->automaton, a->request->options->gap_frac, &part,
                        a->scratch, &a->trial, &least);
  psplit_i_spend(a->request->budget, part.spent);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_TWO_STAGES);
  psplit_i_result_raise(a->result, least, PSPLIT_I_SOLVER_TWO_STAGES);
  return PSPLIT_OK;
}

static bool comes_first(const psplit_i_solver_state *a) {
  return a->instance.n > FEW_CLUSTERS && psplit_i_pairs_count(&a->instance);
}

psplit_code psplit_i_two_stages_first(psplit_i_solver_state *a) {
  return comes_first(a) ? ask(a, SOON_PART) : PSPLIT_OK;
}

psplit_code psplit_i_two_stages_turn(psplit_i_solver_state *a, psplit_i_turn *turn) {
  return turn->salt == 1 && !comes_first(a) ? ask(a, SOON_PART) : PSPLIT_OK;
}

psplit_code psplit_i_two_stages_late(psplit_i_solver_state *a, psplit_i_turn *turn) {
  return turn->salt == 1 ? ask(a, LATE_PART) : PSPLIT_OK;
}
