/* Divides receivers that no stage can hold together (clusters that are apart). A stage with two
 * clusters, one of which precedes the other, holds everything between them. If that, with a lower
 * bound on its communication, exceeds the limit, no stage holds both. Consumers of a tensor that
 * are apart from each other receive it separately, and its producer sends it to each of them, so
 * the net is divided into several, which share the producer. If the producer is apart from the
 * consumers as well, the tensor is certainly cut, and its cost becomes time of its producer and of
 * a consumer. That increases the work between other clusters, so more of them are apart. */
#include "apart.h"
#include "bits.h"
#include "flow.h"
#include "lists.h"
#include "node_cut.h"
#include "problem.h"

#include <string.h>

enum {
  MOST_PINS = 512, /* of a net that is looked at */
  MOST_ROUNDS = 6
};

/* --- whether two clusters are apart --- */

/* A net of the instance that is made. */
typedef struct new_net {
  uint32_t first_pin, n_pins, from; /* from: the net it is a part of */
  bool sends, receives;
} new_net;

/* Scratch of one net. */
typedef struct groups {
  uint32_t n;       /* of the consumers; pins that are in none have NONE */
  uint32_t *of_pin; /* [n_pins]; the producer's: 0, or NONE where no consumer is with it */
  uint32_t *length, *next, *inside;
} groups;

typedef struct separation {
  const psplit_i_instance *instance, *now; /* as it was made, and as the last round left it */
  const psplit_i_automaton *automaton;
  const psplit_i_closure *closure;
  psplit_i_budget *budget;
  int64_t limit;
  int64_t *w;        /* [n_types * n] with what is communicated for certain, at most limit + 1 */
  int64_t *min_time; /* [n] its least over types: that of the round before */
  uint64_t *known, *is_apart; /* [n * words] of a pair, in this round */
  psplit_i_flow whole, flow;
  uint32_t *pin; /* [MOST_PINS] */
  groups groups;
  bool may_cut; /* every type pays for what it sends */
  bool failed;
  PSPLIT_VEC(new_net) nets;
  PSPLIT_VEC(uint32_t) pins;
  uint32_t *node; /* [n] of the network: all clusters */
  int64_t *send, *recv, *least;
  psplit_i_arena arena;
} separation;

/* Time of what lies between a and b, both included; more than the limit may be cut short. */
static int64_t between(separation *x, uint32_t a, uint32_t b, uint32_t *inside, uint32_t *out_n) {
  const uint32_t words = x->closure->words;
  const uint64_t *behind = x->closure->behind + (size_t)a * words;
  const uint64_t *before = x->closure->before + (size_t)b * words;
  int64_t sum = 0;
  uint32_t n = 0;
  for (uint32_t j = a / 64; j <= b / 64 && sum <= x->limit; j++)
    for (uint64_t both = behind[j] & before[j]; both; both &= both - 1) {
      const uint32_t i = j * 64 + (uint32_t)__builtin_ctzll(both);
      sum += x->min_time[i];
      inside[n++] = i;
      if (sum > x->limit) break;
    }
  psplit_i_spend(x->budget, (b - a) / 64 / 4 + n / 2 + 2);
  *out_n = n;
  return sum;
}

static bool hold_both(const uint64_t *behind, const uint64_t *before, uint32_t cluster) {
  return psplit_i_holds(behind, cluster) && psplit_i_holds(before, cluster);
}

/* What inside[n], clusters between a and b, would communicate as a stage; more than `enough` may be
 * cut short. */
static int64_t communicates(separation *x, uint32_t a, uint32_t b, const uint32_t *inside,
                            uint32_t n, int64_t enough) {
  const psplit_i_instance *now = x->now;
  const uint32_t words = x->closure->words;
  const uint64_t *behind = x->closure->behind + (size_t)a * words;
  const uint64_t *before = x->closure->before + (size_t)b * words;
  int64_t sum = 0;
  uint64_t n_seen = 0;
  for (uint32_t k = 0; k < n && sum <= enough; k++)
    for (uint32_t l = now->inc_off[inside[k]]; l < now->inc_off[inside[k] + 1]; l++) {
      const uint32_t e = now->inc[l] >> 1, *pins = now->net_pin + now->net_off[e];
      const uint32_t n_pins = now->net_off[e + 1] - now->net_off[e];
      uint32_t at = 0;
      n_seen++;
      if (now->inc[l] & 1) { /* sent if some consumer is not inside */
        for (at = 1; at < n_pins && hold_both(behind, before, pins[at]);) at++;
        if (at < n_pins) sum += x->send[e];
      } else if (!hold_both(behind, before, pins[0])) {
        /* received, counted at the first consumer inside */
        for (at = 1; !hold_both(behind, before, pins[at]);) at++;
        if (pins[at] == inside[k]) sum += x->recv[e];
      }
      n_seen += at / 4;
    }
  psplit_i_spend(x->budget, n_seen);
  return sum;
}

static bool fail(separation *x) {
  x->failed = true;
  return false;
}

/* Whether every set with all of inside[n] takes more than the limit, by minimum cut. */
static bool cut_is_above(separation *x, const uint32_t *inside, uint32_t n) {
  int64_t value = 0;
  if (!psplit_i_flow_copy(&x->flow, &x->whole)) return fail(x);
  psplit_i_spend(x->budget, x->flow.arcs.n / 2);
  const uint32_t source = psplit_i_flow_node(&x->flow);
  if (source == PSPLIT_NONE) return fail(x);
  for (uint32_t k = 0; k < n; k++)
    if (!psplit_i_flow_arc_add(&x->flow, source, inside[k], PSPLIT_I_INF)) return fail(x);
  if (!psplit_i_flow_run(&x->flow, source, x->instance->n, x->limit + 1, x->budget, &value))
    return fail(x);
  return value > x->limit;
}

/* Whether no stage within the limit holds both a and b. */
static bool apart(separation *x, uint32_t a, uint32_t b, uint32_t *inside) {
  const uint32_t words = x->closure->words;
  if (a > b) {
    const uint32_t swap = a;
    a = b;
    b = swap;
  }
  uint64_t *known = x->known + (size_t)a * words, *is_apart = x->is_apart + (size_t)a * words;
  if (!psplit_i_holds(x->closure->behind + (size_t)a * words, b) || a == b) return false;
  if (psplit_i_holds(known, b)) return psplit_i_holds(is_apart, b);
  uint32_t n;
  const int64_t time = between(x, a, b, inside, &n);
  bool yes = time > x->limit;
  /* No cut is above what they communicate by themselves. */
  if (!yes && x->may_cut && !psplit_i_expired(x->budget) &&
      communicates(x, a, b, inside, n, x->limit - time) > x->limit - time)
    yes = cut_is_above(x, inside, n);
  known[b / 64] |= UINT64_C(1) << (b % 64);
  if (yes) is_apart[b / 64] |= UINT64_C(1) << (b % 64);
  return yes;
}

/* --- the groups of a net's consumers --- */

/* pins[n] in the order of ids: the longest chain of pins each of which is apart from the next, and
 * of these one with the producer. Its first place; g->next leads on. */
static uint32_t longest_chain(separation *x, const uint32_t *pins, uint32_t n, uint32_t producer,
                              groups *g) {
  uint32_t best = n - 1;
  for (uint32_t j = n; j-- > 0;) {
    g->length[j] = 1;
    g->next[j] = PSPLIT_NONE;
    for (uint32_t i = j + 1; i < n; i++)
      if (g->length[i] >= g->length[j] && apart(x, pins[j], pins[i], g->inside)) {
        g->length[j] = g->length[i] + 1;
        g->next[j] = i;
      }
    if (g->length[j] > g->length[best] || (g->length[j] == g->length[best] && pins[j] == producer))
      best = j;
  }
  return best;
}

/* Puts pins into groups, any two of which are apart from each other, pin by pin; those that are not
 * apart from two groups go into none. Group 0 is the producer's if it has one (*out_home). */
static void group_pins(separation *x, const uint32_t *pins, uint32_t n, uint32_t producer,
                       groups *g, bool *out_home) {
  uint32_t first = longest_chain(x, pins, n, producer, g);
  memset(g->of_pin, 0xff, n * sizeof *g->of_pin);
  g->n = 1;
  *out_home = false;
  for (uint32_t k = first; k != PSPLIT_NONE; k = g->next[k]) {
    if (pins[k] == producer) {
      *out_home = true;
      g->of_pin[k] = 0;
    } else {
      g->of_pin[k] = g->n++;
    }
  }
  if (g->n == 1) return;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t with = PSPLIT_NONE;
    if (g->of_pin[k] != PSPLIT_NONE || pins[k] == producer) continue;
    bool fits = true;
    for (uint32_t l = 0; l < n && fits; l++) {
      if (g->of_pin[l] == PSPLIT_NONE || g->of_pin[l] == with) continue;
      if (apart(x, pins[k], pins[l], g->inside)) continue;
      fits = with == PSPLIT_NONE;
      with = g->of_pin[l];
    }
    if (fits) g->of_pin[k] = with == PSPLIT_NONE ? g->n++ : with;
  }
}

/* --- the nets that take a net's place --- */

static void add_time(separation *x, uint32_t cluster, const int64_t *cost, uint32_t e) {
  const psplit_i_instance *instance = x->instance;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    int64_t *w = &x->w[(size_t)t * instance->n + cluster];
    const int64_t ns = cost[(size_t)t * instance->n_nets + e];
    if (*w > x->limit) continue; /* it cannot run there */
    *w = ns > x->limit - *w ? x->limit + 1 : *w + ns;
  }
}

/* A net, with its pins in the order of ids. */
typedef struct pinned_net {
  uint32_t e, producer, n;
  const uint32_t *pins; /* [n] */
} pinned_net;

/* A net from the producer to the pins of a group, or of `g` NULL to all. */
static void add_net(separation *x, const pinned_net *net, const groups *g, uint32_t group,
                    bool sends, bool receives) {
  const uint32_t at = (uint32_t)x->pins.n;
  bool ok = psplit_i_vec_push(&x->pins, net->producer);
  for (uint32_t k = 0; k < net->n && ok; k++)
    if (net->pins[k] != net->producer && (!g || g->of_pin[k] == group))
      ok = psplit_i_vec_push(&x->pins, net->pins[k]);
  const new_net added = {at, (uint32_t)x->pins.n - at, net->e, sends, receives};
  if (added.n_pins < 2) {
    x->pins.n = at;
    return;
  }
  if (!ok || !psplit_i_vec_push(&x->nets, added)) x->failed = true;
}

/* Group `group` is apart from the producer, or not; *io_sent: the producer has paid already, and
 * pays once. */
static void add_group(separation *x, const pinned_net *net, const groups *g, uint32_t group,
                      bool *io_sent) {
  const psplit_i_instance *instance = x->instance;
  const bool send_again = instance->p2p || !*io_sent;
  bool forced = true;
  uint32_t n_members = 0, first = PSPLIT_NONE;
  for (uint32_t k = 0; k < net->n && forced; k++) {
    if (g->of_pin[k] != group) continue;
    forced = apart(x, net->producer, net->pins[k], g->inside);
    if (n_members++ == 0) first = net->pins[k];
  }
  if (!forced) {
    add_net(x, net, g, group, instance->p2p, true);
    return;
  }
  if (send_again) add_time(x, net->producer, instance->send, net->e);
  *io_sent = true;
  add_time(x, first, instance->recv, net->e);
}

/* True: the net has fallen apart. */
static bool separate_net(separation *x, uint32_t e) {
  uint32_t *pins = x->pin;
  groups *g = &x->groups;
  const psplit_i_instance *instance = x->instance;
  const uint32_t first = instance->net_off[e], n = instance->net_off[e + 1] - first;
  const pinned_net net = {e, instance->net_pin[first], n, pins};
  bool home = false, sent = false;
  if (n > MOST_PINS || psplit_i_expired(x->budget)) {
    const pinned_net as_it_is = {e, net.producer, n, instance->net_pin + first};
    add_net(x, &as_it_is, NULL, 0, true, true);
    return false;
  }
  memcpy(pins, instance->net_pin + first, n * sizeof *pins);
  psplit_i_sort_distinct(pins, n);
  psplit_i_spend(x->budget, (uint64_t)n * n / 4 + n);
  group_pins(x, pins, n, net.producer, g, &home);
  if (g->n < 2 || (g->n == 2 && !home)) { /* one group: its net may have fewer pins */
    add_net(x, &net, NULL, 0, true, true);
    return false;
  }
  for (uint32_t group = 1; group < g->n; group++) add_group(x, &net, g, group, &sent);
  if (home) add_net(x, &net, g, 0, instance->p2p, true);
  /* Shared: who sends pays once, whoever receives. */
  if (!instance->p2p && !sent) add_net(x, &net, NULL, 0, true, false);
  return true;
}

/* --- rounds --- */

/* Times of a round: those of `now`, at most limit + 1, and the least over types. False: some
 * cluster fits no device. */
static bool least_times(separation *x, const psplit_i_instance *now) {
  const uint32_t n = now->n;
  bool fits = true;
  for (uint32_t i = 0; i < n; i++) {
    x->min_time[i] = x->limit + 1;
    for (uint32_t t = 0; t < now->n_types; t++)
      if (x->automaton->count[t] > 0 && now->w[(size_t)t * n + i] < x->min_time[i])
        x->min_time[i] = now->w[(size_t)t * n + i];
    fits &= x->min_time[i] <= x->limit;
  }
  return fits;
}

static void reset_times(separation *x) {
  const psplit_i_instance *instance = x->instance;
  const size_t n = (size_t)instance->n * instance->n_types;
  for (size_t k = 0; k < n; k++)
    x->w[k] = instance->w[k] > x->limit ? x->limit + 1 : instance->w[k];
}

static psplit_code separation_init(separation *x) {
  const psplit_i_instance *instance = x->instance;
  const size_t n = instance->n, cells = n * x->closure->words,
               n_pins = instance->net_off[instance->n_nets];
  psplit_i_arena_init(&x->arena, 0);
  x->w = PSPLIT_NEW(&x->arena, int64_t, n * instance->n_types);
  x->min_time = PSPLIT_NEW(&x->arena, int64_t, n);
  x->known = PSPLIT_NEW(&x->arena, uint64_t, cells);
  x->is_apart = PSPLIT_NEW(&x->arena, uint64_t, cells);
  x->node = PSPLIT_NEW(&x->arena, uint32_t, n);
  x->least = PSPLIT_NEW(&x->arena, int64_t, n);
  x->send = PSPLIT_NEW(&x->arena, int64_t, n_pins);
  x->recv = PSPLIT_NEW(&x->arena, int64_t, n_pins);
  x->pin = PSPLIT_NEW(&x->arena, uint32_t, MOST_PINS);
  x->groups.of_pin = PSPLIT_NEW(&x->arena, uint32_t, MOST_PINS);
  x->groups.length = PSPLIT_NEW(&x->arena, uint32_t, MOST_PINS);
  x->groups.next = PSPLIT_NEW(&x->arena, uint32_t, MOST_PINS);
  x->groups.inside = PSPLIT_NEW(&x->arena, uint32_t, n);
  if (x->arena.failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < instance->n; i++) x->node[i] = i;
  x->may_cut = true;
  for (uint32_t t = 0; t < instance->n_types; t++)
    if (x->automaton->count[t] > 0 && instance->problem->devices[t].free_comm) x->may_cut = false;
  return PSPLIT_OK;
}

static void separation_fini(separation *x) {
  psplit_i_flow_fini(&x->whole);
  psplit_i_flow_fini(&x->flow);
  psplit_i_vec_fini(&x->nets);
  psplit_i_vec_fini(&x->pins);
  psplit_i_arena_fini(&x->arena);
}

/* The instance of what was found: its own times and nets, all else shared. */
static psplit_code take_instance(const separation *x, psplit_i_apart *out) {
  const psplit_i_instance *from = x->instance;
  psplit_i_arena *arena = &out->arena;
  psplit_i_instance *to = &out->instance;
  const uint32_t n_nets = (uint32_t)x->nets.n, n_types = from->n_types;
  *to = *from;
  psplit_i_arena_init(&to->arena, 0);
  to->n_nets = n_nets;
  to->link = NULL;
  to->makes_message = to->on_trunk = NULL; /* sums over nets are what counts here */
  to->n_roots = 0;
  to->w = PSPLIT_NEW(arena, int64_t, (size_t)from->n * n_types);
  to->total_w = PSPLIT_NEW(arena, int64_t, n_types);
  to->net_off = PSPLIT_NEW(arena, uint32_t, (size_t)n_nets + 1);
  to->net_pin = PSPLIT_NEW(arena, uint32_t, x->pins.n);
  to->net_forward = PSPLIT_NEW(arena, bool, n_nets);
  to->send = PSPLIT_NEW(arena, int64_t, (size_t)n_nets * n_types);
  to->recv = PSPLIT_NEW(arena, int64_t, (size_t)n_nets * n_types);
  to->inc_off = PSPLIT_NEW(arena, uint32_t, (size_t)from->n + 1);
  to->inc = PSPLIT_NEW(arena, uint32_t, x->pins.n);
  if (arena->failed) return PSPLIT_NOMEM;
  for (uint32_t t = 0; t < n_types; t++)
    for (uint32_t i = 0; i < from->n; i++) {
      const int64_t w = x->w[(size_t)t * from->n + i];
      to->w[(size_t)t * from->n + i] = w > x->limit ? PSPLIT_I_INF : w;
      int64_t *total = &to->total_w[t];
      *total = w > x->limit || *total >= PSPLIT_I_INF ? PSPLIT_I_INF : *total + w;
    }
  if (x->pins.n) memcpy(to->net_pin, x->pins.items, x->pins.n * sizeof *to->net_pin);
  for (uint32_t e = 0; e < n_nets; e++) {
    const new_net *net = &x->nets.items[e];
    to->net_off[e] = net->first_pin;
    to->net_forward[e] = from->net_forward[net->from];
    for (uint32_t t = 0; t < n_types; t++) {
      const size_t cell = (size_t)t * from->n_nets + net->from;
      to->send[(size_t)t * n_nets + e] = net->sends ? from->send[cell] : 0;
      to->recv[(size_t)t * n_nets + e] = net->receives ? from->recv[cell] : 0;
    }
  }
  to->net_off[n_nets] = (uint32_t)x->pins.n;
  psplit_i_lists_transpose_marked(n_nets, to->net_off, to->net_pin, to->n, to->inc_off, to->inc);
  return PSPLIT_OK;
}

/* One round over all nets, by what is known in `now`. */
static psplit_code run_round(separation *x, const psplit_i_instance *now, psplit_i_apart *out) {
  const size_t cells = (size_t)now->n * x->closure->words;
  psplit_code code = PSPLIT_OK;
  *out = (psplit_i_apart){0};
  psplit_i_arena_init(&out->arena, 0);
  x->now = now;
  if (!least_times(x, now)) {
    out->impossible = true;
    return PSPLIT_OK;
  }
  memset(x->known, 0, cells * sizeof *x->known);
  memset(x->is_apart, 0, cells * sizeof *x->is_apart);
  psplit_i_spend(x->budget, cells / 8 + now->inc_off[now->n]);
  if (x->may_cut) {
    psplit_i_least_costs(now, x->automaton, x->send, x->recv, x->least);
    const psplit_i_cut_costs costs = {.cluster = x->node,
                                      .local = x->node,
                                      .n = now->n,
                                      .weight = x->min_time,
                                      .send = x->send,
                                      .recv = x->recv};
    if (!psplit_i_set_network(&x->whole, now, &costs)) return PSPLIT_NOMEM;
  }
  reset_times(x);
  x->nets.n = x->pins.n = 0;
  for (uint32_t e = 0; e < x->instance->n_nets && !x->failed; e++)
    out->changed |= separate_net(x, e);
  PSPLIT_TRY(x->failed ? PSPLIT_NOMEM : PSPLIT_OK);
  PSPLIT_TRY(take_instance(x, out));
out:
  if (code != PSPLIT_OK) psplit_i_apart_fini(out);
  return code;
}

/* Whether a round has found more than the one before. */
static bool grew(const psplit_i_apart *out, const psplit_i_instance *before) {
  if (out->instance.n_nets != before->n_nets) return true;
  const size_t n = (size_t)before->n * before->n_types;
  return memcmp(out->instance.w, before->w, n * sizeof *before->w) != 0;
}

psplit_code psplit_i_apart_make(const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton,
                                const psplit_i_closure *closure,
                                const psplit_partition_options *options, int64_t limit,
                                psplit_i_budget *budget, psplit_i_apart *out_apart) {
  separation x = {.instance = instance,
                  .automaton = automaton,
                  .closure = closure,
                  .budget = budget,
                  .limit = limit};
  psplit_i_apart last = {0};
  psplit_diag diag = {0};
  *out_apart = (psplit_i_apart){0};
  psplit_code code = separation_init(&x);
  if (code != PSPLIT_OK) goto out;
  const psplit_i_instance *now = instance;
  for (uint32_t round = 0; round < MOST_ROUNDS; round++) {
    PSPLIT_TRY(run_round(&x, now, out_apart));
    const bool more = out_apart->changed && !out_apart->impossible && grew(out_apart, now);
    psplit_i_apart_fini(&last);
    if (!more || psplit_i_expired(budget) || round + 1 == MOST_ROUNDS) break;
    last = *out_apart;
    *out_apart = (psplit_i_apart){0};
    now = &last.instance;
  }
  if (out_apart->changed && !out_apart->impossible && !least_times(&x, &out_apart->instance))
    out_apart->impossible = true;
  if (out_apart->changed && !out_apart->impossible)
    code = psplit_i_automaton_init(&out_apart->automaton, &out_apart->instance, options, &diag);
out:
  psplit_i_apart_fini(&last);
  separation_fini(&x);
  if (code != PSPLIT_OK) psplit_i_apart_fini(out_apart);
  return code;
}

void psplit_i_apart_fini(psplit_i_apart *apart) {
  psplit_i_automaton_fini(&apart->automaton);
  psplit_i_arena_fini(&apart->arena);
  memset(apart, 0, sizeof *apart);
}
