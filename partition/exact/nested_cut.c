/* The network of a branch, with each cluster once for each boundary: on the source's side where it
 * is in front of it.
 *
 * A cluster costs p(k) of its time in stage k, exactly. Of what a net takes as much is counted as
 * costs of single clusters and of boundaries can tell: all of it for consumers whose stage is
 * known, and where the producer's is known all of it for one consumer. Where neither is known, the
 * net is charged at boundaries, so that no stages of its producer and its last consumer cost more
 * than they pay. */
#include <string.h>

#include "nested_inside.h"

enum { SOURCE = PSPLIT_I_SOURCE, SINK = PSPLIT_I_SINK };

static uint32_t count_bits(uint32_t bits) { return (uint32_t)__builtin_popcount(bits); }

static void arc(psplit_i_nested_solver *d, uint32_t from, uint32_t to, int64_t cap) {
  psplit_i_cut_network_arc(&d->network, from, to, cap);
}

/* A net in a branch, by shares of stages: what is known of it. */
typedef struct net {
  uint32_t e, producer, first, end; /* consumers: net_pin[first .. end) */
  uint32_t there;                   /* stages that consumers are in for certain, as bits, */
  int last_there;                   /* the last of them, or -1 */
  uint32_t n_free, one; /* consumers of which the stage is not known; the last of them */
  int top;              /* the last stage that one may be in */
  const int32_t *share;
} net;

static net look_at(const psplit_i_nested_solver *d, const psplit_i_nested_branch *b, uint32_t e) {
  const psplit_i_instance *instance = d->instance;
  net t = {.e = e,
           .producer = instance->net_pin[instance->net_off[e]],
           .first = instance->net_off[e] + 1,
           .end = instance->net_off[e + 1],
           .last_there = -1,
           .share = b->share};
  for (uint32_t k = t.first; k < t.end; k++) {
    const uint32_t i = instance->net_pin[k];
    if (psplit_i_nested_free(b, i)) {
      t.n_free++;
      t.one = i;
      if (b->hi[i] > t.top) t.top = b->hi[i];
    } else {
      t.there |= 1U << b->lo[i];
      if (b->lo[i] > t.last_there) t.last_there = b->lo[i];
    }
  }
  return t;
}

/* What it takes at least, beside what consumers that are known take, if the producer is in stage
 * `from` and another consumer in `to`. */
static int64_t more(const psplit_i_nested_solver *d, const net *t, int from, int to) {
  if (to <= from || (t->there >> to & 1)) return 0;
  const bool sent = !d->instance->p2p && from < t->last_there;
  return t->share[to] * d->recv[t->e] + (sent ? 0 : t->share[from] * d->send[t->e]);
}

/* Pays `cap` where the cluster at `from` (a flow node) is in front of boundary j and a consumer
 * behind it. */
static void charge(psplit_i_nested_solver *d, const net *t, uint32_t from, int j, int64_t cap) {
  if (cap <= 0 || from == SINK) return;
  const uint32_t fan = psplit_i_cut_network_node(&d->network);
  arc(d, from, fan, cap);
  for (uint32_t k = d->last_off[t->e]; k < d->last_off[t->e + 1]; k++)
    arc(d, fan, d->place[d->last[k]][j], PSPLIT_I_INF);
}

/* The producer is in stage `from`. The last of its consumers pays no less than what any stage from
 * there on takes. */
static void charge_last(psplit_i_nested_solver *d, const net *t, int from) {
  int64_t least[PSPLIT_I_NESTED_STAGES] = {0};
  for (int k = t->top; k >= 0; k--) {
    least[k] = more(d, t, from, k);
    if (k < t->top && least[k + 1] < least[k]) least[k] = least[k + 1];
  }
  const int begin = t->last_there > from ? t->last_there : from; /* nothing up to there */
  for (int j = begin; j < t->top; j++) charge(d, t, SOURCE, j, least[j + 1] - least[j]);
}

/* A consumer that is behind the producer for certain, in none of the stages that are known; NONE:
 * there is none. */
static uint32_t certain_consumer(const psplit_i_nested_solver *d, const psplit_i_nested_branch *b,
                                 const net *t) {
  uint32_t found = PSPLIT_NONE;
  for (uint32_t k = t->first; k < t->end; k++) {
    const uint32_t i = d->instance->net_pin[k];
    if (!psplit_i_nested_free(b, i) || b->lo[i] <= b->hi[t->producer]) continue;
    const uint32_t stages = (2U << b->hi[i]) - (1U << b->lo[i]);
    if (t->there & stages) continue;
    if (found == PSPLIT_NONE || b->hi[i] - b->lo[i] < b->hi[found] - b->lo[found]) found = i;
  }
  return found;
}

/* What boundary j may be charged beside the others: at first even shares of what stages pay, with
 * `even`, then all that these leave. */
static int64_t room(const psplit_i_nested_solver *d, const psplit_i_nested_branch *b, const net *t,
                    int begin, int j, bool even, const int64_t *charged) {
  int64_t least = PSPLIT_I_INF;
  for (int from = b->lo[t->producer]; from <= b->hi[t->producer] && from <= j; from++) {
    const int start = from > begin ? from : begin;
    for (int to = j + 1; to <= t->top; to++) {
      int64_t left = more(d, t, from, to);
      if (even) left /= to - start;
      for (int k = start; k < to && !even; k++) left -= charged[k];
      if (left < least) least = left;
    }
  }
  return least;
}

static void charge_boundaries(psplit_i_nested_solver *d, const psplit_i_nested_branch *b,
                              const net *t) {
  const int lo = b->lo[t->producer], begin = lo > t->last_there ? lo : t->last_there;
  int64_t charged[PSPLIT_I_NESTED_STAGES] = {0};
  for (int j = begin; j < t->top; j++) charged[j] = room(d, b, t, begin, j, true, NULL);
  for (int j = begin; j < t->top; j++) {
    const int64_t left = room(d, b, t, begin, j, false, charged);
    if (left > 0) charged[j] += left;
    charge(d, t, d->place[t->producer][j], j, charged[j]);
  }
}

static void add_net(psplit_i_nested_solver *d, const psplit_i_nested_branch *b, uint32_t e) {
  const net t = look_at(d, b, e);
  int64_t *producer = d->cost[t.producer];
  for (int from = b->lo[t.producer]; from <= b->hi[t.producer]; from++) {
    const uint32_t behind = t.there >> from >> 1;
    const int64_t times = d->instance->p2p ? count_bits(behind) : behind != 0;
    producer[from] += times * b->share[from] * d->send[e];
    for (int k = from + 1; k < d->n_stages; k++)
      if (t.there >> k & 1) producer[from] += b->share[k] * d->recv[e];
  }
  if (t.n_free == 0) return;
  if (!psplit_i_nested_free(b, t.producer)) {
    const int from = b->lo[t.producer];
    if (t.n_free > 1) {
      charge_last(d, &t, from);
      return;
    }
    for (int k = b->lo[t.one]; k <= b->hi[t.one]; k++) d->cost[t.one][k] += more(d, &t, from, k);
    return;
  }
  const uint32_t certain = certain_consumer(d, b, &t);
  if (certain == PSPLIT_NONE) {
    charge_boundaries(d, b, &t);
    return;
  }
  for (int k = b->lo[certain]; k <= b->hi[certain]; k++)
    d->cost[certain][k] += b->share[k] * d->recv[e];
  for (int k = b->lo[t.producer]; k <= b->hi[t.producer]; k++)
    if (d->instance->p2p || k >= t.last_there) producer[k] += b->share[k] * d->send[e];
}

/* Returns what no cut tells. */
static int64_t build(psplit_i_nested_solver *d, const psplit_i_nested_branch *b) {
  const psplit_i_instance *instance = d->instance;
  int64_t fixed = 0;
  psplit_i_cut_network_begin(&d->network);
  for (uint32_t i = 0; i < d->n; i++) {
    for (int j = 0; j < d->n_stages - 1; j++)
      d->place[i][j] = j < b->lo[i]    ? SINK
                       : j >= b->hi[i] ? SOURCE
                                       : psplit_i_cut_network_node(&d->network);
    for (int j = 0; j < d->n_stages - 2; j++)
      arc(d, d->place[i][j], d->place[i][j + 1], PSPLIT_I_INF);
    for (int k = 0; k < d->n_stages; k++) d->cost[i][k] = b->share[k] * d->w[i];
    for (uint32_t l = d->pred_off[i]; l < d->pred_off[i + 1]; l++)
      for (int j = 0; j < d->n_stages - 1; j++)
        arc(d, d->place[i][j], d->place[d->pred[l]][j], PSPLIT_I_INF);
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) add_net(d, b, e);
  for (uint32_t i = 0; i < d->n; i++) {
    fixed += d->cost[i][b->hi[i]];
    for (int j = b->lo[i]; j < b->hi[i]; j++) {
      const int64_t ahead = d->cost[i][j] - d->cost[i][j + 1]; /* more than behind the boundary */
      if (ahead < 0) fixed += ahead;
      arc(d, d->place[i][j], SINK, ahead);
      arc(d, SOURCE, d->place[i][j], -ahead);
    }
  }
  psplit_i_spend(d->budget, (d->n + psplit_i_nested_pins(d) + d->network.flow.arcs.n) / 2);
  return fixed;
}

static bool is_split(const psplit_i_nested_solver *d) {
  uint32_t used = 0;
  if (!d->all_used) return true;
  for (uint32_t i = 0; i < d->n; i++)
    if (d->instance->n_counted[i] > 0) used |= 1U << d->now[i];
  return used + 1 == 1U << d->n_stages;
}

/* The loads of d->now; a split that is better than what is known is kept. */
static void measure(psplit_i_nested_solver *d) {
  const psplit_i_instance *instance = d->instance;
  int64_t value = 0;
  for (int k = 0; k < d->n_stages; k++) d->load[k] = 0;
  for (uint32_t i = 0; i < d->n; i++) d->load[d->now[i]] += d->w[i];
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e], home = d->now[instance->net_pin[first]];
    uint32_t there = 0;
    for (uint32_t k = first + 1; k < instance->net_off[e + 1]; k++)
      there |= 1U << d->now[instance->net_pin[k]];
    there &= ~(1U << home);
    if (!there) continue;
    d->load[home] += d->send[e] * (instance->p2p ? count_bits(there) : 1);
    for (int k = 0; k < d->n_stages; k++)
      if (there >> k & 1) d->load[k] += d->recv[e];
  }
  psplit_i_spend(d->budget, (d->n + psplit_i_nested_pins(d)) / 3);
  for (int k = 0; k < d->n_stages; k++)
    if (d->load[k] > value) value = d->load[k];
  if (value >= d->known || !is_split(d)) return;
  d->known = value;
  d->found = true;
  memcpy(d->best, d->now, d->n);
}

int64_t psplit_i_nested_cheapest(psplit_i_nested_solver *d, const psplit_i_nested_branch *b,
                                 bool *out_whole) {
  int64_t value = 0;
  const int64_t fixed = build(d, b);
  *out_whole = false;
  if (!d->network.failed && psplit_i_expired(d->budget)) return 0;
  *out_whole = !d->network.failed && psplit_i_cut_network_run_trees(&d->network, d->budget, &value);
  d->failed |= d->network.failed;
  if (d->failed) return 0;
  const int64_t least = (value + fixed + PSPLIT_I_NESTED_WHOLE - 1) >> PSPLIT_I_NESTED_BITS;
  if (!*out_whole) return least;
  for (uint32_t i = 0; i < d->n; i++) {
    int k = 0;
    while (k < d->n_stages - 1 && !d->network.reached.items[d->place[i][k]]) k++;
    d->now[i] = (uint8_t)k;
    for (int j = k; j < d->n_stages - 1; j++) d->seen[i][j]++;
  }
  d->n_cuts++;
  measure(d);
  return least;
}
