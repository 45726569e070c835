/* Dynamic programming over a set of downsets, from all clusters down to none. A stage is the
 * difference of two nested downsets, so stages of different splits are combined wherever one
 * downset contains the other. */
#include <stdlib.h>
#include <string.h>

#include "downset_dp.h"
#include "problem.h"

enum {
  MOST_CELLS = 1 << 23,
  MOST_TYPES = 8,
  MOST_LACK = 4 /* times the mean of what stages lack of the limit */
};

/* A downset: the clusters that are left when the stages behind it are placed. */
typedef struct place {
  const uint64_t *bits;
  int64_t min_time, send; /* `send`: what leaves it, once each, at the least of all types */
  uint32_t number, n_inside, n_counted;
  uint32_t first, last;  /* words: all before `first` are full, all from `last` on empty */
  uint32_t cut, n_cut;   /* nets that leave it: net[cut ..] */
  int64_t w[MOST_TYPES]; /* what it computes; without clusters that the type cannot run: */
  uint32_t n_forbidden[MOST_TYPES];
} place;

/* The best way to place the clusters behind a downset, in a given state. */
typedef struct cell {
  int64_t value;
  double energy;        /* sum of powers of loads */
  uint32_t from, state; /* the downset and the state behind the stage */
} cell;

/* A net that several stages behind a downset receive. */
typedef struct fan {
  uint32_t producer;
  uint32_t net, times; /* besides the first */
} fan;

/* A state that is reached for the current downset. */
typedef struct active {
  uint32_t state, fans, n_fans; /* fan[fans ..] */
} active;

typedef struct program {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_budget *budget;
  int64_t limit, least; /* of a stage's load; of what it computes */
  psplit_i_arena arena;
  uint32_t n, words;
  place *places; /* [n] by min_time, the largest first */
  cell *cells;   /* [n * n_states] */
  PSPLIT_VEC(uint32_t) net;
  PSPLIT_VEC(fan) fan;
  active *active; /* [n_states] */
  uint32_t n_active;
} program;

static int compare_places(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->min_time != y->min_time) return x->min_time > y->min_time ? -1 : 1;
  if (x->n_inside != y->n_inside) return x->n_inside > y->n_inside ? -1 : 1;
  return x->number < y->number ? -1 : 1;
}

static bool leaves(const psplit_i_instance *instance, const uint64_t *bits, uint32_t e) {
  if (!psplit_i_holds(bits, instance->net_pin[instance->net_off[e]])) return false;
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
    if (!psplit_i_holds(bits, instance->net_pin[k])) return true;
  return false;
}

/* A lower bound on the cost of sending a net, over all devices. */
static int64_t least_send(const program *p, uint32_t e) {
  const psplit_i_instance *instance = p->instance;
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const int64_t ns = instance->problem->devices[t].free_comm
                         ? 0
                         : instance->send[(size_t)t * instance->n_nets + e];
    if (p->automaton->count[t] > 0 && ns < least) least = ns;
  }
  return least;
}

static bool measure(program *p, place *at) {
  const psplit_i_instance *instance = p->instance;
  for (uint32_t i = 0; i < instance->n; i++) {
    if (!psplit_i_holds(at->bits, i)) continue;
    at->min_time += p->automaton->min_time[i];
    at->n_counted += instance->n_counted[i];
    at->n_inside++;
    for (uint32_t t = 0; t < instance->n_types; t++) {
      const int64_t w = instance->w[(size_t)t * instance->n + i];
      if (w < PSPLIT_I_INF)
        at->w[t] += w;
      else
        at->n_forbidden[t]++;
    }
  }
  while (at->first < p->words && at->bits[at->first] == UINT64_MAX) at->first++;
  for (at->last = p->words; at->last > 0 && at->bits[at->last - 1] == 0;) at->last--;
  at->cut = (uint32_t)p->net.n;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    if (!leaves(instance, at->bits, e)) continue;
    if (!psplit_i_vec_push(&p->net, e)) return false;
    at->send += least_send(p, e);
  }
  at->n_cut = (uint32_t)p->net.n - at->cut;
  psplit_i_spend(p->budget, instance->n / 2 + instance->net_off[instance->n_nets] / 2);
  return true;
}

static bool inside(const place *small, const place *large) {
  for (uint32_t w = large->first; w < small->last; w++)
    if (small->bits[w] & ~large->bits[w]) return false;
  return true;
}

/* Whether a net that leaves `small` has a consumer in `large`. */
static bool received(const psplit_i_instance *instance, const place *small, const place *large,
                     uint32_t e) {
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
    if (psplit_i_holds(large->bits, instance->net_pin[k]) &&
        !psplit_i_holds(small->bits, instance->net_pin[k]))
      return true;
  return false;
}

/* What the clusters between two downsets receive, and send to one receiver, on each type of
 * device. */
static void communication(const program *p, const place *small, const place *large,
                          int64_t *out_recv, int64_t *out_send) {
  const psplit_i_instance *instance = p->instance;
  const uint32_t n_types = instance->n_types;
  memset(out_recv, 0, n_types * sizeof *out_recv);
  memset(out_send, 0, n_types * sizeof *out_send);
  for (uint32_t k = small->cut; k < small->cut + small->n_cut; k++) {
    const uint32_t e = p->net.items[k];
    if (!received(instance, small, large, e)) continue;
    for (uint32_t t = 0; t < n_types; t++)
      out_recv[t] += instance->recv[(size_t)t * instance->n_nets + e];
  }
  for (uint32_t k = large->cut; k < large->cut + large->n_cut; k++) {
    const uint32_t e = p->net.items[k];
    if (psplit_i_holds(small->bits, instance->net_pin[instance->net_off[e]])) continue;
    for (uint32_t t = 0; t < n_types; t++)
      out_send[t] += instance->send[(size_t)t * instance->n_nets + e];
  }
}

/* The nets that leave the downset and are received by several stages behind it. */
static bool find_fans(program *p, const place *at, const cell *way, active *now) {
  const psplit_i_instance *instance = p->instance;
  const size_t n_states = p->automaton->n_states;
  now->fans = (uint32_t)p->fan.n;
  uint64_t n_ops = at->n_cut;
  for (uint32_t k = at->cut; k < at->cut + at->n_cut && instance->p2p; k++) {
    const uint32_t e = p->net.items[k];
    fan f = {instance->net_pin[instance->net_off[e]], e, 0};
    if (instance->net_off[e + 1] - instance->net_off[e] < 3) continue;
    const place *small = at;
    uint32_t n = 0;
    for (const cell *c = way; c->from != PSPLIT_NONE; n_ops++) {
      const place *large = &p->places[c->from];
      n += received(instance, small, large, e);
      small = large;
      c = &p->cells[c->from * n_states + c->state];
    }
    f.times = n > 1 ? n - 1 : 0;
    if (f.times && !psplit_i_vec_push(&p->fan, f)) return false;
  }
  now->n_fans = (uint32_t)p->fan.n - now->fans;
  psplit_i_spend(p->budget, n_ops);
  return true;
}

/* The states that are reached for a downset. Returns false if out of memory. */
static bool find_active(program *p, uint32_t at) {
  const size_t n_states = p->automaton->n_states;
  p->n_active = 0;
  p->fan.n = 0;
  for (uint32_t s = 0; s < n_states; s++) {
    const cell *c = &p->cells[at * n_states + s];
    if (c->value >= PSPLIT_I_INF) continue;
    active *now = &p->active[p->n_active++];
    now->state = s;
    if (!find_fans(p, &p->places[at], c, now)) return false;
  }
  return true;
}

/* The 24th power, which is dominated by the few stages that are nearly full. */
static double power_of(double x) {
  x *= x * x;
  x *= x;
  x *= x;
  return x * x;
}

/* Whether the remaining devices of a state have enough time for the remaining work and its
 * communication. */
static bool fits(const program *p, const place *at, uint32_t state) {
  const psplit_i_automaton *m = p->automaton;
  const bool alike = m->n_types == 1 && !p->instance->overlap;
  const double work = (double)at->min_time + (alike ? (double)at->send : 0);
  return work <= (double)p->limit * m->capacity[state] * (1 + 1e-9);
}

static void relax(program *p, uint32_t from, uint32_t to, const active *behind, uint32_t type,
                  int64_t load) {
  const psplit_i_automaton *m = p->automaton;
  const cell *c = &p->cells[(size_t)from * m->n_states + behind->state];
  if (load > p->limit) return;
  const cell now = {load > c->value ? load : c->value,
                    c->energy + power_of((double)load / (double)p->limit), from, behind->state};
  for (uint32_t k = m->move_off[behind->state]; k < m->move_off[behind->state + 1]; k++) {
    cell *other = &p->cells[(size_t)to * m->n_states + m->moves[k].next];
    if (m->moves[k].type != type || now.value > other->value) continue;
    if (now.value == other->value && now.energy >= other->energy) continue;
    if (fits(p, &p->places[to], m->moves[k].next)) *other = now;
  }
}

/* Adds the stage between two downsets to all states of the larger one. */
static void place_stage(program *p, uint32_t from, uint32_t to) {
  const psplit_i_instance *instance = p->instance;
  const place *large = &p->places[from], *small = &p->places[to];
  int64_t recv[MOST_TYPES], send[MOST_TYPES];
  communication(p, small, large, recv, send);
  for (uint32_t k = 0; k < p->n_active; k++) {
    const active *behind = &p->active[k];
    for (uint32_t t = 0; t < instance->n_types; t++) {
      int64_t more = 0;
      if (p->automaton->count[t] == 0 || large->n_forbidden[t] != small->n_forbidden[t]) continue;
      for (uint32_t l = behind->fans; l < behind->fans + behind->n_fans; l++) {
        const fan *f = &p->fan.items[l];
        if (!psplit_i_holds(small->bits, f->producer))
          more += f->times * instance->send[(size_t)t * instance->n_nets + f->net];
      }
      const bool pays = !instance->problem->devices[t].free_comm;
      relax(p, from, to, behind, t,
            psplit_i_load(instance, large->w[t] - small->w[t], pays ? recv[t] : 0,
                          pays ? send[t] + more : 0));
    }
  }
}

/* Charges: of a stage, of each state that it is added to, and nets and pairs of downsets that are
 * looked at in one operation. */
enum { STAGE_OPS = 4, STATE_OPS = 3, LOOKS_PER_OP = 4 };

/* Adds all stages that lead from a downset to smaller ones. Returns false if out of memory. */
static bool place_all(program *p) {
  for (uint32_t a = 0; a < p->n; a++) {
    const place *large = &p->places[a];
    uint64_t n_looks = 0, n_ops = 1;
    if (!find_active(p, a)) return false;
    for (uint32_t b = a + 1; b < p->n && p->n_active; b++) {
      const place *small = &p->places[b];
      const int64_t min_time = large->min_time - small->min_time;
      if (min_time > p->limit) break;
      n_looks++;
      if (min_time < p->least && a > 0 && b + 1 < p->n) continue;
      if (p->automaton->all_used && large->n_counted == small->n_counted) continue;
      if (!inside(small, large)) continue;
      n_looks += small->n_cut + large->n_cut;
      n_ops += STAGE_OPS + STATE_OPS * (uint64_t)p->n_active;
      place_stage(p, a, b);
    }
    if (!psplit_i_spend(p->budget, n_ops + n_looks / LOOKS_PER_OP)) return true;
  }
  return true;
}

/* The final state with the best value, or NONE. */
static uint32_t best_end(const program *p) {
  const cell *end = p->cells + (size_t)(p->n - 1) * p->automaton->n_states;
  uint32_t best = PSPLIT_NONE;
  for (uint32_t s = 0; s < p->automaton->n_states; s++) {
    if (end[s].value >= PSPLIT_I_INF || !psplit_i_automaton_final(p->automaton, s)) continue;
    if (best == PSPLIT_NONE || end[s].value < end[best].value ||
        (end[s].value == end[best].value && end[s].energy < end[best].energy))
      best = s;
  }
  return best;
}

static void trace(const program *p, uint32_t state, psplit_i_assignment *out) {
  const psplit_i_automaton *m = p->automaton;
  for (uint32_t s = 0; s < m->n_stages; s++) {
    out->device[s] = PSPLIT_NONE;
    out->replicas[s] = 1;
  }
  for (uint32_t at = p->n - 1; at != 0;) {
    const cell *c = &p->cells[(size_t)at * m->n_states + state];
    const psplit_i_transition move = psplit_i_automaton_between(m, c->state, state, PSPLIT_NONE);
    const place *large = &p->places[c->from], *small = &p->places[at];
    for (uint32_t i = 0; i < p->instance->n; i++)
      if (psplit_i_holds(large->bits, i) && !psplit_i_holds(small->bits, i))
        out->stage[i] = move.stage;
    out->device[move.stage] = move.type;
    at = c->from;
    state = c->state;
  }
  psplit_i_automaton_name_devices(m, out->replicas, out->device);
}

/* A stage that computes little leaves more to the others: with up to four stages than the limit
 * allows, else more than is likely. Where devices differ nothing is known. */
static void set_least(program *p) {
  const psplit_i_automaton *m = p->automaton;
  const double all = (double)p->limit * m->n_stages - (double)m->total_min_time;
  const double lack = m->n_stages > MOST_LACK ? all * MOST_LACK / m->n_stages : all;
  p->least = m->n_types > 1 || lack >= (double)p->limit ? 0 : p->limit - (int64_t)(lack + 1);
}

static psplit_code set_up(program *p, const psplit_i_downsets *set) {
  const size_t words = p->words, n_states = p->automaton->n_states;
  uint64_t *ends = PSPLIT_NEW(&p->arena, uint64_t, 2 * words); /* all clusters, none */
  p->places = PSPLIT_NEW(&p->arena, place, (size_t)set->n + 2);
  p->active = PSPLIT_NEW(&p->arena, active, n_states);
  if (!ends || !p->places || !p->active) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < p->instance->n; i++) ends[i / 64] |= UINT64_C(1) << (i % 64);
  p->places[p->n++].bits = ends;
  p->places[p->n++].bits = ends + words;
  for (uint32_t i = 0; i < set->n; i++) {
    const uint64_t *bits = psplit_i_downset(set, i);
    if (memcmp(bits, ends, words * sizeof *bits) == 0) continue;
    if (memcmp(bits, ends + words, words * sizeof *bits) == 0) continue;
    p->places[p->n++].bits = bits;
  }
  for (uint32_t i = 0; i < p->n; i++) {
    p->places[i].number = i;
    if (!measure(p, &p->places[i])) return PSPLIT_NOMEM;
  }
  qsort(p->places, p->n, sizeof *p->places, compare_places);
  p->cells = psplit_i_arena_array(&p->arena, (size_t)p->n * n_states, sizeof *p->cells);
  if (!p->cells) return PSPLIT_NOMEM;
  for (size_t i = 0; i < p->n * n_states; i++)
    p->cells[i] = (cell){PSPLIT_I_INF, 0, PSPLIT_NONE, PSPLIT_NONE};
  p->cells[0].value = 0;
  return PSPLIT_OK;
}

psplit_code psplit_i_downset_dp(const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton, const psplit_i_downsets *set,
                                int64_t limit, psplit_i_budget *budget, int64_t *scratch,
                                psplit_i_assignment *out) {
  program p = {.instance = instance,
               .automaton = automaton,
               .budget = budget,
               .limit = limit,
               .words = set->words};
  psplit_code code = PSPLIT_OK;
  out->value = out->comm = PSPLIT_I_INF;
  if (((uint64_t)set->n + 2) * automaton->n_states > MOST_CELLS || instance->n == 0 ||
      instance->n_types > MOST_TYPES || limit <= 0 || limit >= PSPLIT_I_INF)
    return PSPLIT_OK;
  psplit_i_arena_init(&p.arena, 0);
  PSPLIT_TRY(set_up(&p, set));
  set_least(&p);
  PSPLIT_TRY(place_all(&p) ? PSPLIT_OK : PSPLIT_NOMEM);
  const uint32_t state = psplit_i_expired(budget) ? PSPLIT_NONE : best_end(&p);
  if (state == PSPLIT_NONE) goto out;
  trace(&p, state, out);
  psplit_i_assignment_evaluate(out, instance, automaton, scratch);
out:
  psplit_i_vec_fini(&p.net);
  psplit_i_vec_fini(&p.fan);
  psplit_i_arena_fini(&p.arena);
  return code;
}
