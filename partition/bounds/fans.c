/* Fans: between two separators a and z (clusters comparable with all others) lie branches that no
 * stage within the limit T holds together. Let H be what lies between, without a and z, w(S) the
 * time of a stage S in it, and comm(S) what S pays for nets that have all pins there, a and z
 * included. A stage has a, or z, or neither: with both it would have all of H. The largest r with
 * comm(S) >= r w(S) for all stages within T is looked for, case by case:
 *
 *   neither  comm(S) - r w(S) >= 0                                          for all S in H
 *   z (a)    (1 + m) comm(S) + (m - r) w(S) + m w(z) >= m T, for some m >= 0,  for all S with z
 *
 * The second is enough, since m (T - w(z) - w(S) - comm(S)) >= 0 where the load is within T: the
 * knapsack of branches with Lagrange's multiplier m. All are minimum cuts. Then the time of each
 * cluster in H may be taken for (1 + r) times as long, and those nets for nothing. */
#include "fans.h"
#include "flow.h"
#include "node_cut.h"
#include "problem.h"

#include <string.h>

enum {
  ONE = 1024, /* r and m are parts of it */
  MOST_RATIO = 4 * ONE,
  WORTH = ONE / 32,
  STEPS = 12, /* in which r is halved, and m is */
  LEAST = 2   /* clusters between */
};

typedef struct fan {
  psplit_i_instance *instance;
  const int64_t *min_time;
  int64_t limit;
  psplit_i_budget *budget;
  uint32_t first, last;               /* the separators; what lies between has the ids between */
  int64_t total;                      /* time of what lies between */
  int64_t *send, *recv;               /* [n_nets] of the nets inside, else 0 */
  int64_t *scaled_send, *scaled_recv; /* [n_nets] */
  int64_t *w;                         /* [n] */
  uint32_t *cluster, *local;          /* [n] */
  uint32_t *net;                      /* [n_nets] those inside */
  uint32_t n_nets;
  psplit_i_flow flow;
  bool failed;
} fan;

static bool build(fan *f, int64_t factor) {
  const uint32_t n = f->last - f->first + 1;
  for (uint32_t k = 0; k < f->n_nets; k++) {
    f->scaled_send[f->net[k]] = f->send[f->net[k]] * factor;
    f->scaled_recv[f->net[k]] = f->recv[f->net[k]] * factor;
  }
  psplit_i_spend(f->budget, 4 * (uint64_t)n + 8 * (uint64_t)f->n_nets);
  const psplit_i_cut_costs costs = {.cluster = f->cluster,
                                    .local = f->local,
                                    .n = n,
                                    .weight = f->w,
                                    .send = f->scaled_send,
                                    .recv = f->scaled_recv};
  if (!psplit_i_set_network(&f->flow, f->instance, &costs)) f->failed = true;
  return !f->failed;
}

/* No cut that was stopped early says yes. */
static bool flow_is(fan *f, uint32_t source, int64_t most) {
  int64_t value = 0;
  if (!psplit_i_flow_run(&f->flow, source, f->last - f->first + 1, most, f->budget, &value))
    f->failed = true;
  return !f->failed && value >= most;
}

/* comm(S) (ONE + m) + w(S) (m - r) >= m (limit - w(end)) for all S with `end`, and without the
 * other separator; NONE: without either, and m = 0. */
static bool holds_by(fan *f, int64_t ratio, int64_t multiplier, uint32_t end) {
  const int64_t per_time = multiplier - ratio;
  for (uint32_t i = f->first + 1; i < f->last; i++)
    f->w[i] = per_time > 0 ? per_time * f->min_time[i] : 0;
  f->w[f->first] = f->w[f->last] = PSPLIT_I_INF;
  if (end != PSPLIT_NONE) f->w[end] = 0;
  if (!build(f, ONE + multiplier)) return false;
  const uint32_t source = psplit_i_flow_node(&f->flow);
  bool ok = source != PSPLIT_NONE;
  if (ok && end != PSPLIT_NONE)
    ok = psplit_i_flow_arc_add(&f->flow, source, f->local[end], PSPLIT_I_INF);
  /* What S does not hold is paid where time counts against it. */
  for (uint32_t i = f->first + 1; i < f->last && ok && per_time < 0; i++)
    ok = psplit_i_flow_arc_add(&f->flow, source, f->local[i], -per_time * f->min_time[i]);
  if (!ok) {
    f->failed = true;
    return false;
  }
  const int64_t paid = per_time < 0 ? -per_time * f->total : 0;
  return flow_is(f, source,
                 paid + (end == PSPLIT_NONE ? 0 : multiplier * (f->limit - f->min_time[end])));
}

static bool holds_with(fan *f, int64_t ratio, uint32_t end) {
  if (f->min_time[end] >= f->limit) return true; /* no such stage, but for the end alone */
  if (holds_by(f, ratio, 0, end)) return true;
  for (int64_t m = ratio / 4 + 1; m <= 16 * ratio + 16 && !f->failed; m += m / 2 + 1)
    if (holds_by(f, ratio, m, end)) return true;
  return false;
}

/* In parts of ONE, rounded down. */
static int64_t largest_ratio(fan *f) {
  int64_t low = 0, high = MOST_RATIO;
  for (int step = 0; step < STEPS && high - low > 1 && !f->failed; step++) {
    if (psplit_i_expired(f->budget)) break;
    const int64_t ratio = step == 0 ? WORTH : low + (high - low) / 2;
    if (holds_by(f, ratio, 0, PSPLIT_NONE) && holds_with(f, ratio, f->last) &&
        holds_with(f, ratio, f->first))
      low = ratio;
    else if (step == 0)
      break; /* next to nothing */
    else
      high = ratio;
  }
  return low;
}

/* Nets with all pins from one separator to the other, and one in between. */
static void list_nets(fan *f, const int64_t *send, const int64_t *recv) {
  const psplit_i_instance *instance = f->instance;
  f->n_nets = 0;
  for (uint32_t i = f->first; i < f->last; i++)
    for (uint32_t l = instance->inc_off[i]; l < instance->inc_off[i + 1]; l++) {
      const uint32_t e = instance->inc[l] >> 1;
      bool inside = instance->inc[l] & 1, between = false;
      for (uint32_t k = instance->net_off[e]; k < instance->net_off[e + 1] && inside; k++) {
        const uint32_t pin = instance->net_pin[k];
        inside = pin >= f->first && pin <= f->last;
        between |= pin != f->first && pin != f->last;
      }
      if (!inside || !between) continue;
      f->net[f->n_nets++] = e;
      f->send[e] = send[e];
      f->recv[e] = recv[e];
    }
}

static void forget_nets(fan *f) {
  for (uint32_t k = 0; k < f->n_nets; k++) {
    const uint32_t e = f->net[k];
    f->send[e] = f->recv[e] = f->scaled_send[e] = f->scaled_recv[e] = 0;
  }
}

static void take(fan *f, int64_t ratio) {
  psplit_i_instance *instance = f->instance;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    int64_t *w = instance->w + (size_t)t * instance->n;
    for (uint32_t i = f->first + 1; i < f->last; i++) {
      const int64_t more = ratio * f->min_time[i] / ONE;
      if (w[i] >= PSPLIT_I_INF) continue;
      w[i] += more;
      if (instance->total_w[t] < PSPLIT_I_INF) instance->total_w[t] += more;
    }
    for (uint32_t k = 0; k < f->n_nets; k++)
      instance->send[(size_t)t * instance->n_nets + f->net[k]] =
        instance->recv[(size_t)t * instance->n_nets + f->net[k]] = 0;
  }
}

static uint32_t count_bits(const uint64_t *row, uint32_t words) {
  uint32_t n = 0;
  for (uint32_t j = 0; j < words; j++) n += (uint32_t)__builtin_popcountll(row[j]);
  return n;
}

static void look_at(fan *f, const int64_t *send, const int64_t *recv, bool *out_any) {
  const uint32_t n = f->last - f->first + 1;
  f->total = 0;
  for (uint32_t i = f->first + 1; i < f->last; i++) f->total += f->min_time[i];
  if (n < LEAST + 2 || f->total <= f->limit || f->total > PSPLIT_I_INF / MOST_RATIO / 32) return;
  for (uint32_t k = 0; k < n; k++) {
    f->cluster[k] = f->first + k;
    f->local[f->first + k] = k;
  }
  list_nets(f, send, recv);
  const int64_t ratio = largest_ratio(f);
  if (ratio > 0 && !f->failed) {
    take(f, ratio);
    *out_any = true;
  }
  forget_nets(f);
  for (uint32_t k = 0; k < n; k++) f->local[f->first + k] = PSPLIT_NONE;
}

psplit_code psplit_i_fans_count(psplit_i_instance *instance, const psplit_i_automaton *automaton,
                                const psplit_i_closure *closure, int64_t limit,
                                psplit_i_budget *budget, bool *out_any) {
  const uint32_t n = instance->n, n_nets = instance->n_nets, words = closure->words;
  *out_any = false;
  for (uint32_t t = 0; t < instance->n_types; t++)
    if (automaton->count[t] > 0 && instance->problem->devices[t].free_comm) return PSPLIT_OK;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  int64_t *min_time = PSPLIT_NEW(&arena, int64_t, n), *least = PSPLIT_NEW(&arena, int64_t, n);
  int64_t *send = PSPLIT_NEW(&arena, int64_t, n_nets), *recv = PSPLIT_NEW(&arena, int64_t, n_nets);
  fan f = {.instance = instance,
           .min_time = min_time,
           .limit = limit,
           .budget = budget,
           .send = PSPLIT_NEW(&arena, int64_t, n_nets),
           .recv = PSPLIT_NEW(&arena, int64_t, n_nets),
           .scaled_send = PSPLIT_NEW(&arena, int64_t, n_nets),
           .scaled_recv = PSPLIT_NEW(&arena, int64_t, n_nets),
           .w = PSPLIT_NEW(&arena, int64_t, n),
           .cluster = PSPLIT_NEW(&arena, uint32_t, n),
           .local = PSPLIT_NEW(&arena, uint32_t, n),
           .net = PSPLIT_NEW(&arena, uint32_t, n_nets)};
  psplit_code code = PSPLIT_NOMEM;
  if (arena.failed) goto out;
  memset(f.local, 0xff, n * sizeof *f.local);
  for (uint32_t i = 0; i < n; i++) {
    min_time[i] = PSPLIT_I_INF;
    for (uint32_t t = 0; t < instance->n_types; t++)
      if (automaton->count[t] > 0 && instance->w[(size_t)t * n + i] < min_time[i])
        min_time[i] = instance->w[(size_t)t * n + i];
  }
  if (psplit_i_least_costs(instance, automaton, send, recv, least)) {
    uint32_t before = PSPLIT_NONE;
    for (uint32_t i = 0; i < n && !f.failed && !psplit_i_expired(budget); i++) {
      const uint64_t *row = closure->before + (size_t)i * words;
      if (count_bits(row, words) != i + 1 ||
          count_bits(closure->behind + (size_t)i * words, words) != n - i)
        continue;
      f.first = before;
      f.last = i;
      if (before != PSPLIT_NONE) look_at(&f, send, recv, out_any);
      before = i;
    }
    psplit_i_spend(budget, (uint64_t)n * words / 4);
  }
  code = f.failed ? PSPLIT_NOMEM : PSPLIT_OK;
out:
  psplit_i_flow_fini(&f.flow);
  psplit_i_arena_fini(&arena);
  return code;
}
