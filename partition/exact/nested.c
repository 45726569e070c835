/* A few stages: each cluster is in one of the stages [lo, hi], and the largest load is to be least.
 * For any shares p of the stages that sum to 1,
 *
 *     max over k of load(k)  >=  sum over k of p(k) load(k),
 *
 * and what the right side is at least a minimum cut tells, in a network with each cluster once for
 * each boundary: on the source's side where the cluster is in front of it. A cluster costs p(k) of
 * its time in stage k, exactly. Of what a net takes as much is counted as costs of single clusters
 * and of boundaries can tell: all of it for consumers whose stage is known, and where the
 * producer's is known all of it for one consumer. Where neither is known, the net is charged at
 * boundaries, so that no stages of its producer and its last consumer cost more than they pay.
 *
 * What is open is divided: a cluster is in front of a boundary, with all that comes before it, or
 * behind, with all that comes behind it. No load may reach the best value known, which narrows
 * intervals further. Every cut is a split by itself. What may be least is divided first, so what no
 * split is below is known whenever this stops. */
#include "nested.h"

#include <string.h>

#include "closure.h"
#include "flow.h"

enum {
  MOST_STAGES = PSPLIT_I_NESTED_STAGES,
  BITS = 10, /* shares are of 2^10 */
  WHOLE = 1 << BITS,
  SHARES = 4,           /* tried for a branch, */
  FIRST_DIVES = 8,      /* branches followed at once, */
  DIVES_APART = 64,     /* then one of so many */
  FIRST_SHARES = 40,    /* and for the first */
  MOST_BYTES = 1 << 25, /* of branches */
  MOST_CLUSTERS = 1024, /* of which every two are looked at for a branch */
  SOON_PART = 16,       /* of the budget, one of so many parts in the first turn, */
  NEXT_PART = 2,        /* then where one of so many parts of the value or less is open, */
  NEAR_PART = 20,       /* or late */
  SOURCE = 0,
  SINK = 1
};

typedef struct branch {
  int64_t least; /* no split of it is below */
  uint32_t number, cluster;
  uint8_t boundary; /* by which it is divided, with the cluster */
  uint8_t *lo, *hi; /* [n] the stages of each cluster */
  int32_t share[MOST_STAGES];
} branch;

typedef struct nested {
  const psplit_i_instance *instance;
  const int64_t *w, *send, *recv;
  uint32_t n;
  int n_stages;
  bool all_used;
  double gap_frac;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_closure closure;
  psplit_i_flow flow;
  PSPLIT_VEC(bool) reached;
  PSPLIT_VEC(branch) open;     /* a heap, the least in front */
  PSPLIT_VEC(uint8_t *) spare; /* intervals that no branch has any more */
  uint32_t n_opened;
  uint32_t (*place)[MOST_STAGES]; /* [n] flow nodes by boundary */
  int64_t (*cost)[MOST_STAGES];   /* [n] by stage, in shares */
  uint32_t (*seen)[MOST_STAGES];  /* [n] of the cuts of a branch, those with it in front */
  uint32_t n_cuts;                /* of the branch */
  uint8_t *now, *best;            /* [n] stages */
  int64_t load[MOST_STAGES];      /* of `now` */
  int64_t work;                   /* of all clusters */
  int64_t known;                  /* no larger split matters */
  bool found, failed;
} nested;

/* --- what is certain --- */

typedef struct sums {
  int64_t load[MOST_STAGES]; /* that each stage has for certain */
  int64_t comm;              /* that all have, whichever */
} sums;

static uint64_t n_pins(const nested *d) { return d->instance->net_off[d->instance->n_nets]; }

static bool is_free(const branch *b, uint32_t i) { return b->lo[i] < b->hi[i]; }

static uint32_t count_bits(uint32_t bits) { return (uint32_t)__builtin_popcount(bits); }

/* Consumers and producers are no further apart than the order says; false where none is left. */
static bool follow_order(nested *d, branch *b) {
  const psplit_i_instance *instance = d->instance;
  bool fits = true;
  for (uint32_t i = 0; i < d->n; i++)
    for (uint32_t l = instance->pred_off[i]; l < instance->pred_off[i + 1]; l++)
      if (b->lo[instance->pred[l]] > b->lo[i]) b->lo[i] = b->lo[instance->pred[l]];
  for (uint32_t i = d->n; i-- > 0;) {
    for (uint32_t l = instance->pred_off[i]; l < instance->pred_off[i + 1]; l++)
      if (b->hi[instance->pred[l]] > b->hi[i]) b->hi[instance->pred[l]] = b->hi[i];
    fits &= b->lo[i] <= b->hi[i];
  }
  psplit_i_spend(d->budget, (d->n + (uint64_t)instance->pred_off[d->n]) / 2);
  return fits;
}

static sums sum_up(nested *d, const branch *b) {
  const psplit_i_instance *instance = d->instance;
  sums s = {0};
  for (uint32_t i = 0; i < d->n; i++)
    if (!is_free(b, i)) s.load[b->lo[i]] += d->w[i];
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e], producer = instance->net_pin[first];
    uint32_t there = 0;
    bool crosses = false;
    for (uint32_t k = first + 1; k < instance->net_off[e + 1]; k++) {
      const uint32_t i = instance->net_pin[k];
      if (b->lo[i] <= b->hi[producer]) continue;
      crosses = true;
      if (!is_free(b, i)) there |= 1U << b->lo[i];
    }
    if (!crosses) continue;
    for (int k = 0; k < d->n_stages; k++)
      if (there >> k & 1) s.load[k] += d->recv[e];
    const int64_t n_there = there ? count_bits(there) : 1;
    const int64_t sent = d->send[e] * (instance->p2p ? n_there : 1);
    if (!is_free(b, producer)) s.load[b->lo[producer]] += sent;
    s.comm += sent + d->recv[e] * n_there;
  }
  psplit_i_spend(d->budget, (d->n + n_pins(d)) / 3);
  return s;
}

/* Loads of the stages up to each boundary, and of those behind it. */
typedef struct sides {
  int64_t front[MOST_STAGES], behind[MOST_STAGES];
} sides;

static sides sum_sides(const nested *d, const branch *b, const sums *s) {
  sides out = {{0}, {0}};
  for (int j = 0; j < d->n_stages - 1; j++) {
    for (int k = 0; k < d->n_stages; k++) *(k <= j ? &out.front[j] : &out.behind[j]) += s->load[k];
    for (uint32_t i = 0; i < d->n; i++) {
      if (!is_free(b, i)) continue;
      if (b->hi[i] <= j) out.front[j] += d->w[i];
      if (b->lo[i] > j) out.behind[j] += d->w[i];
    }
  }
  return out;
}

/* What comes along where a cluster goes in front of boundary j (ahead) or behind it, and is not
 * there; [n_stages] is of what comes along to the first, or the last, of its stages. */
static void weigh_along(const nested *d, const branch *b, uint32_t cluster, bool ahead,
                        int64_t out[MOST_STAGES], int64_t *out_end) {
  const psplit_i_closure *closure = &d->closure;
  const uint64_t *bits =
    (ahead ? closure->before : closure->behind) + (size_t)cluster * closure->words;
  const int lo = b->lo[cluster], hi = b->hi[cluster];
  for (int j = lo; j < hi; j++) out[j] = 0;
  *out_end = 0;
  for (uint32_t q = 0; q < closure->words; q++)
    for (uint64_t rest = bits[q]; rest; rest &= rest - 1) {
      const uint32_t i = 64 * q + (uint32_t)__builtin_ctzll(rest);
      if (!is_free(b, i)) continue;
      for (int j = lo; j < hi; j++)
        if (ahead ? b->hi[i] > j : b->lo[i] <= j) out[j] += d->w[i];
      if (ahead ? b->lo[i] == lo : b->hi[i] == hi) *out_end += d->w[i];
    }
}

/* Narrows the stages of a cluster to where no load reaches the value known; whether it did. */
static bool narrow(const nested *d, branch *b, uint32_t i, const sums *s, const sides *both) {
  const int64_t most = d->known - 1;
  const int lo = b->lo[i], hi = b->hi[i];
  int64_t ahead[MOST_STAGES], behind[MOST_STAGES], in_first, in_last;
  int first = lo, last = hi;
  weigh_along(d, b, i, true, ahead, &in_first);
  weigh_along(d, b, i, false, behind, &in_last);
  for (int j = lo; j < hi; j++) {
    if (both->front[j] + ahead[j] > (j + 1) * most) first = j + 1;
    if (both->behind[j] + behind[j] > (d->n_stages - 1 - j) * most && j < last) last = j;
  }
  if (first == lo && s->load[lo] + in_first > most) first++;
  if (last == hi && s->load[hi] + in_last > most) last--;
  b->lo[i] = (uint8_t)first;
  b->hi[i] = (uint8_t)(last < 0 ? 0 : last);
  return first != lo || last != hi;
}

/* Narrows all intervals; false where no split of the branch is better than what is known. */
static bool narrow_all(nested *d, branch *b) {
  for (bool again = true; again;) {
    if (!follow_order(d, b)) return false;
    const sums s = sum_up(d, b);
    const sides both = sum_sides(d, b, &s);
    uint64_t n_free = 0;
    again = false;
    if (d->work + s.comm > d->n_stages * (d->known - 1)) return false;
    for (int k = 0; k < d->n_stages; k++)
      if (s.load[k] >= d->known) return false;
    for (uint32_t i = 0; i < d->n; i++) {
      if (!is_free(b, i)) continue;
      n_free++;
      again |= narrow(d, b, i, &s, &both);
      if (b->lo[i] > b->hi[i]) return false;
    }
    psplit_i_spend(d->budget, 2 * (uint64_t)d->n + n_free * (d->closure.words + n_free / 4) / 3);
  }
  return true;
}

/* --- minimum cuts --- */

static uint32_t node(nested *d) {
  const uint32_t id = psplit_i_flow_node(&d->flow);
  if (id == PSPLIT_NONE) d->failed = true;
  return d->failed ? SOURCE : id;
}

static void arc(nested *d, uint32_t from, uint32_t to, int64_t cap) {
  if (to == SOURCE || from == SINK || from == to || cap <= 0 || d->failed) return;
  if (!psplit_i_flow_arc_add(&d->flow, from, to, cap)) d->failed = true;
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

static net look_at(const nested *d, const branch *b, uint32_t e) {
  const psplit_i_instance *instance = d->instance;
  net t = {.e = e,
           .producer = instance->net_pin[instance->net_off[e]],
           .first = instance->net_off[e] + 1,
           .end = instance->net_off[e + 1],
           .last_there = -1,
           .share = b->share};
  for (uint32_t k = t.first; k < t.end; k++) {
    const uint32_t i = instance->net_pin[k];
    if (is_free(b, i)) {
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
static int64_t more(const nested *d, const net *t, int from, int to) {
  if (to <= from || (t->there >> to & 1)) return 0;
  const bool sent = !d->instance->p2p && from < t->last_there;
  return t->share[to] * d->recv[t->e] + (sent ? 0 : t->share[from] * d->send[t->e]);
}

/* Pays `cap` where the cluster at `from` (a flow node) is in front of boundary j and a consumer
 * behind it. */
static void charge(nested *d, const net *t, uint32_t from, int j, int64_t cap) {
  if (cap <= 0 || from == SINK) return;
  const uint32_t fan = node(d);
  arc(d, from, fan, cap);
  for (uint32_t k = t->first; k < t->end; k++)
    arc(d, fan, d->place[d->instance->net_pin[k]][j], PSPLIT_I_INF);
}

/* The producer is in stage `from`. The last of its consumers pays no less than what any stage from
 * there on takes. */
static void charge_last(nested *d, const net *t, int from) {
  int64_t least[MOST_STAGES] = {0};
  for (int k = t->top; k >= 0; k--) {
    least[k] = more(d, t, from, k);
    if (k < t->top && least[k + 1] < least[k]) least[k] = least[k + 1];
  }
  const int begin = t->last_there > from ? t->last_there : from; /* nothing up to there */
  for (int j = begin; j < t->top; j++) charge(d, t, SOURCE, j, least[j + 1] - least[j]);
}

/* A consumer that is behind the producer for certain, in none of the stages that are known; NONE:
 * there is none. */
static uint32_t certain_consumer(const nested *d, const branch *b, const net *t) {
  uint32_t found = PSPLIT_NONE;
  for (uint32_t k = t->first; k < t->end; k++) {
    const uint32_t i = d->instance->net_pin[k];
    if (!is_free(b, i) || b->lo[i] <= b->hi[t->producer]) continue;
    const uint32_t stages = (2U << b->hi[i]) - (1U << b->lo[i]);
    if (t->there & stages) continue;
    if (found == PSPLIT_NONE || b->hi[i] - b->lo[i] < b->hi[found] - b->lo[found]) found = i;
  }
  return found;
}

/* What boundary j may be charged beside the others: at first even shares of what stages pay, with
 * `even`, then all that these leave. */
static int64_t room(const nested *d, const branch *b, const net *t, int begin, int j, bool even,
                    const int64_t *charged) {
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

static void charge_boundaries(nested *d, const branch *b, const net *t) {
  const int lo = b->lo[t->producer], begin = lo > t->last_there ? lo : t->last_there;
  int64_t charged[MOST_STAGES] = {0};
  for (int j = begin; j < t->top; j++) charged[j] = room(d, b, t, begin, j, true, NULL);
  for (int j = begin; j < t->top; j++) {
    const int64_t left = room(d, b, t, begin, j, false, charged);
    if (left > 0) charged[j] += left;
    charge(d, t, d->place[t->producer][j], j, charged[j]);
  }
}

static void add_net(nested *d, const branch *b, uint32_t e) {
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
  if (!is_free(b, t.producer)) {
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
static int64_t build(nested *d, const branch *b) {
  const psplit_i_instance *instance = d->instance;
  int64_t fixed = 0;
  psplit_i_flow_reset(&d->flow);
  if (node(d) != SOURCE || node(d) != SINK) d->failed = true;
  for (uint32_t i = 0; i < d->n; i++) {
    for (int j = 0; j < d->n_stages - 1; j++)
      d->place[i][j] = j < b->lo[i] ? SINK : j >= b->hi[i] ? SOURCE : node(d);
    for (int j = 0; j < d->n_stages - 2; j++)
      arc(d, d->place[i][j], d->place[i][j + 1], PSPLIT_I_INF);
    for (int k = 0; k < d->n_stages; k++) d->cost[i][k] = b->share[k] * d->w[i];
    for (uint32_t l = instance->pred_off[i]; l < instance->pred_off[i + 1]; l++)
      for (int j = 0; j < d->n_stages - 1; j++)
        arc(d, d->place[i][j], d->place[instance->pred[l]][j], PSPLIT_I_INF);
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
  psplit_i_spend(d->budget, (d->n + n_pins(d) + d->flow.arcs.n) / 2);
  return fixed;
}

static bool is_split(const nested *d) {
  uint32_t used = 0;
  if (!d->all_used) return true;
  for (uint32_t i = 0; i < d->n; i++)
    if (d->instance->n_counted[i] > 0) used |= 1U << d->now[i];
  return used + 1 == 1U << d->n_stages;
}

/* The loads of d->now; a split that is better than what is known is kept. */
static void measure(nested *d) {
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
  psplit_i_spend(d->budget, (d->n + n_pins(d)) / 3);
  for (int k = 0; k < d->n_stages; k++)
    if (d->load[k] > value) value = d->load[k];
  if (value >= d->known || !is_split(d)) return;
  d->known = value;
  d->found = true;
  memcpy(d->best, d->now, d->n);
}

/* What no split of the branch is below by its shares. d->now is the cheapest split by them, and
 * *out_whole says whether there was time to find it. */
static int64_t cut(nested *d, const branch *b, bool *out_whole) {
  int64_t value = 0;
  const int64_t fixed = build(d, b);
  *out_whole = false;
  if (d->failed || psplit_i_expired(d->budget)) return 0;
  d->reached.n = 0;
  if (!psplit_i_flow_run(&d->flow, SOURCE, SINK, PSPLIT_I_INF, d->budget, &value) ||
      !psplit_i_vec_reserve(&d->reached, d->flow.head.n)) {
    d->failed = true;
    return 0;
  }
  const int64_t least = (value + fixed + WHOLE - 1) >> BITS;
  if (psplit_i_expired(d->budget)) return least;
  if (!psplit_i_flow_side(&d->flow, SOURCE, d->reached.items)) {
    d->failed = true;
    return 0;
  }
  for (uint32_t i = 0; i < d->n; i++) {
    int k = 0;
    while (k < d->n_stages - 1 && !d->reached.items[d->place[i][k]]) k++;
    d->now[i] = (uint8_t)k;
    for (int j = k; j < d->n_stages - 1; j++) d->seen[i][j]++;
  }
  d->n_cuts++;
  *out_whole = true;
  measure(d);
  return least;
}

/* Moves shares to the stages whose loads are above the mean by these shares, by a subgradient step
 * that aims at what is known; false where all loads are alike. */
static bool move_shares(const nested *d, branch *b, int64_t least, int divisor) {
  double mean = 0, apart = 0, moved[MOST_STAGES], sum = 0;
  int32_t left = WHOLE;
  int most = 0;
  for (int k = 0; k < d->n_stages; k++)
    mean += (double)d->load[k] * (double)b->share[k] / (double)WHOLE;
  for (int k = 0; k < d->n_stages; k++)
    apart += ((double)d->load[k] - mean) * ((double)d->load[k] - mean);
  if (!(apart > 0)) return false;
  const double step = 0.7 * (double)WHOLE * (double)(d->known - least) / apart;
  const double far = (double)WHOLE / divisor;
  for (int k = 0; k < d->n_stages; k++) {
    double by = step * ((double)d->load[k] - mean);
    by = by > far ? far : by < -far ? -far : by;
    moved[k] = (double)b->share[k] + by < 1 ? 1 : (double)b->share[k] + by;
    sum += moved[k];
  }
  for (int k = 0; k < d->n_stages; k++) {
    b->share[k] = (int32_t)(moved[k] / sum * (double)WHOLE);
    left -= b->share[k];
    if (b->share[k] > b->share[most]) most = k;
  }
  b->share[most] += left;
  return true;
}

/* Raises b->least to what a few shares say, the best of which stay. */
static void bound(nested *d, branch *b, int n_shares) {
  int32_t best[MOST_STAGES];
  int64_t most = -1;
  memset(d->seen, 0, d->n * sizeof *d->seen);
  d->n_cuts = 0;
  for (int t = 0; t < n_shares; t++) {
    bool whole;
    const int64_t least = cut(d, b, &whole);
    if (d->failed) return;
    if (least > most) {
      most = least;
      memcpy(best, b->share, sizeof best);
    }
    if (least > b->least) b->least = least;
    if (!whole || b->least >= d->known || !move_shares(d, b, least, n_shares > SHARES ? 3 : 7))
      break;
  }
  if (most >= 0) memcpy(b->share, best, sizeof best);
}

/* --- branches --- */

static bool less(const branch *a, const branch *b) {
  return a->least != b->least ? a->least < b->least : a->number < b->number;
}

static bool push(nested *d, branch b) {
  b.number = d->n_opened++;
  if (!psplit_i_vec_push(&d->open, b)) return false;
  branch *heap = d->open.items;
  size_t i = d->open.n - 1;
  for (; i > 0 && less(&b, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = b;
  return true;
}

static branch pop(nested *d) {
  branch *heap = d->open.items;
  const branch top = heap[0], last = heap[--d->open.n];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < d->open.n; at = child) {
    if (child + 1 < d->open.n && less(&heap[child + 1], &heap[child])) child++;
    if (!less(&heap[child], &last)) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return top;
}

static bool make_intervals(nested *d, branch *b) {
  b->lo = d->spare.n > 0 ? d->spare.items[--d->spare.n]
                         : PSPLIT_NEW(&d->arena, uint8_t, 2 * (size_t)d->n);
  b->hi = b->lo ? b->lo + d->n : NULL;
  d->failed |= !b->lo;
  return b->lo != NULL;
}

static void drop(nested *d, const branch *b) {
  if (!psplit_i_vec_push(&d->spare, b->lo)) d->failed = true;
}

/* By what the branch is divided: of the clusters and boundaries on whose sides its cuts differ,
 * those with most to both sides. False: every cluster's stage is known. */
static bool choose(nested *d, branch *b) {
  double most = -1;
  uint64_t n_free = 0;
  for (uint32_t i = 0; i < d->n; i++) {
    int64_t ahead[MOST_STAGES], behind[MOST_STAGES], end;
    if (!is_free(b, i)) continue;
    n_free++;
    /* What is on the other side for certain does not come along, nor what is there. */
    weigh_along(d, b, i, true, ahead, &end);
    weigh_along(d, b, i, false, behind, &end);
    for (int j = b->lo[i]; j < b->hi[i]; j++) {
      const uint32_t in = d->seen[i][j], rest = d->n_cuts - in, fewer = in < rest ? in : rest;
      const double differ = fewer > 0 ? 1 + (double)fewer / (double)d->n_cuts : 1.0 / (double)WHOLE;
      const double worth = ((double)ahead[j] + 1) * ((double)behind[j] + 1) * differ;
      if (worth <= most) continue;
      most = worth;
      b->cluster = i;
      b->boundary = (uint8_t)j;
    }
  }
  psplit_i_spend(d->budget, n_free * (d->closure.words + n_free / 4) / 3);
  return most >= 0;
}

/* Bounds a branch; false where it has nothing better than what is known, or every stage is known:
 * that was measured, if there was time for it. Then its intervals are dropped. */
static bool is_worth(nested *d, branch *b, int n_shares) {
  bool is_open = narrow_all(d, b);
  if (is_open) {
    bound(d, b, n_shares);
    is_open = !d->failed && (choose(d, b) || d->n_cuts == 0) && b->least < d->known;
  }
  if (!is_open) drop(d, b);
  return is_open;
}

static void keep(nested *d, const branch *b) {
  if (!push(d, *b)) d->failed = true;
}

/* Divides a branch. Returns whether a half is worth it, the one in *io that may be least; the other
 * is kept. */
static bool divide(nested *d, branch *io) {
  branch ahead = *io, behind = *io;
  if (!make_intervals(d, &ahead)) return false;
  memcpy(ahead.lo, io->lo, d->n);
  memcpy(ahead.hi, io->hi, d->n);
  ahead.hi[io->cluster] = io->boundary;
  behind.lo[io->cluster] = (uint8_t)(io->boundary + 1);
  const bool first = is_worth(d, &ahead, SHARES), second = is_worth(d, &behind, SHARES);
  if (d->failed || (!first && !second)) return false;
  const bool is_ahead = first && (!second || ahead.least <= behind.least);
  *io = is_ahead ? ahead : behind;
  if (first && second) keep(d, is_ahead ? &behind : &ahead);
  return true;
}

/* Divides what may be least; some of these are followed half by half to where nothing is open, as
 * that finds splits. */
static void divide_least(nested *d, uint64_t turn) {
  branch b = pop(d);
  const bool follow = turn < FIRST_DIVES || turn % DIVES_APART == 0;
  bool is_open = divide(d, &b);
  while (is_open && follow && !d->failed && b.least < d->known && !psplit_i_expired(d->budget))
    is_open = divide(d, &b);
  if (is_open) keep(d, &b);
}

/* No split takes more than this; INF where times are too large for the networks. */
static int64_t most_of_all(const nested *d) {
  int64_t sum = 1;
  for (uint32_t i = 0; i < d->n; i++) sum = psplit_i_sat_add_i64(sum, d->w[i]);
  for (uint32_t e = 0; e < d->instance->n_nets; e++)
    sum = psplit_i_sat_add_i64(
      sum, psplit_i_sat_mul_i64(MOST_STAGES, psplit_i_sat_add_i64(d->send[e], d->recv[e])));
  return sum < PSPLIT_I_INF >> (BITS + 6) ? sum : PSPLIT_I_INF;
}

static psplit_code nested_init(nested *d) {
  const psplit_i_instance *instance = d->instance;
  psplit_i_arena_init(&d->arena, 0);
  d->place = psplit_i_arena_zeroed(&d->arena, d->n, sizeof *d->place);
  d->cost = psplit_i_arena_zeroed(&d->arena, d->n, sizeof *d->cost);
  d->seen = psplit_i_arena_zeroed(&d->arena, d->n, sizeof *d->seen);
  d->now = PSPLIT_NEW(&d->arena, uint8_t, d->n);
  d->best = PSPLIT_NEW(&d->arena, uint8_t, d->n);
  if (d->arena.failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < d->n; i++) d->work = psplit_i_sat_add_i64(d->work, d->w[i]);
  return psplit_i_closure_make(instance, d->budget, &d->closure);
}

static void nested_fini(nested *d) {
  psplit_i_vec_fini(&d->open);
  psplit_i_vec_fini(&d->spare);
  psplit_i_vec_fini(&d->reached);
  psplit_i_flow_fini(&d->flow);
  psplit_i_closure_fini(&d->closure);
  psplit_i_arena_fini(&d->arena);
}

/* Whether what is still open is closer to what is known than was asked for, or no better. */
static bool is_near(const nested *d, int64_t least) {
  return least >= d->known - (int64_t)(d->gap_frac * (double)d->known);
}

static psplit_code solve(nested *d, int64_t *out_least) {
  const size_t most = MOST_BYTES / (2 * (size_t)d->n + sizeof(branch));
  const int64_t above = most_of_all(d), given = d->known;
  branch whole = {.least = 0};
  *out_least = 0;
  if (above >= PSPLIT_I_INF) return PSPLIT_OK;
  if (d->known > above) d->known = above;
  const int64_t started = d->known;
  if (make_intervals(d, &whole)) {
    memset(whole.lo, 0, d->n);
    memset(whole.hi, d->n_stages - 1, d->n);
    for (int k = 0; k < d->n_stages; k++)
      whole.share[k] = WHOLE / d->n_stages + (k < WHOLE % d->n_stages);
    if (is_worth(d, &whole, FIRST_SHARES)) keep(d, &whole);
  }
  uint64_t turn = 0;
  while (d->open.n > 0 && !d->failed && d->open.n < most && !psplit_i_expired(d->budget) &&
         !is_near(d, d->open.items[0].least))
    divide_least(d, turn++);
  if (d->failed) return PSPLIT_NOMEM;
  *out_least = d->known;
  if (d->open.n > 0 && d->open.items[0].least < d->known)
    *out_least = d->open.items[0].least;
  else if (!d->found && started < given)
    *out_least = given; /* there is none */
  return PSPLIT_OK;
}

bool psplit_i_nested_takes(const psplit_i_instance *instance, const psplit_i_automaton *automaton) {
  return automaton->n_stages > 2 && automaton->n_stages <= MOST_STAGES && instance->n_types == 1 &&
         instance->n <= MOST_CLUSTERS && instance->all_forward && !instance->link &&
         !instance->makes_message && psplit_i_takes(PSPLIT_I_SOLVER_NESTED, automaton->features);
}

static nested of(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                 psplit_i_budget *budget) {
  return (nested){.instance = instance,
                  .w = instance->w,
                  .send = instance->send,
                  .recv = instance->recv,
                  .n = instance->n,
                  .n_stages = (int)automaton->n_stages,
                  .all_used = automaton->all_used,
                  .budget = budget};
}

psplit_code psplit_i_nested(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                            double gap_frac, psplit_i_budget *budget, int64_t *scratch,
                            psplit_i_assignment *io_best, int64_t *out_least) {
  nested d = of(instance, automaton, budget);
  d.gap_frac = gap_frac;
  d.known = io_best->value;
  *out_least = 0;
  psplit_code code = nested_init(&d);
  if (code == PSPLIT_OK) code = solve(&d, out_least);
  if (code == PSPLIT_OK && d.found) {
    for (uint32_t i = 0; i < d.n; i++) io_best->stage[i] = d.best[i];
    for (uint32_t k = 0; k < automaton->n_stages; k++) {
      io_best->device[k] = 0;
      io_best->replicas[k] = 1;
    }
    psplit_i_assignment_evaluate(io_best, instance, automaton, scratch);
  }
  nested_fini(&d);
  return code;
}

psplit_code psplit_i_nested_cut(const psplit_i_instance *instance,
                                const psplit_i_automaton *automaton, uint8_t *lo, uint8_t *hi,
                                const int32_t *share, int64_t *out_least) {
  psplit_i_budget budget = psplit_i_budget_unlimited();
  nested d = of(instance, automaton, &budget);
  branch b = {.lo = lo, .hi = hi};
  bool whole;
  memcpy(b.share, share, automaton->n_stages * sizeof *share);
  d.known = PSPLIT_I_INF;
  *out_least = 0;
  const psplit_code code = nested_init(&d);
  if (code == PSPLIT_OK) *out_least = cut(&d, &b, &whole);
  const bool failed = d.failed;
  nested_fini(&d);
  return failed ? PSPLIT_NOMEM : code;
}

/* --- turns --- */

static psplit_code ask(psplit_i_solver_state *a, uint32_t share) {
  int64_t least;
  if (!psplit_i_state_asks_all(a) || psplit_i_state_done(a) || a->best.value >= PSPLIT_I_INF ||
      !psplit_i_nested_takes(&a->instance, &a->automaton))
    return PSPLIT_OK;
  psplit_i_budget part = psplit_i_budget_share(a->request->budget, share);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const psplit_code code =
    psplit_i_nested(&a->instance, &a->automaton, a->request->options->gap_frac, &part, a->scratch,
                    &a->trial, &least);
  psplit_i_spend(a->request->budget, part.spent);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_NESTED);
  psplit_i_result_raise(a->result, least, PSPLIT_I_SOLVER_NESTED);
  return PSPLIT_OK;
}

/* Whether it says more than all other bounds, and little is open: then it may decide soon. */
static bool comes_near(const psplit_i_solver_state *a) {
  const int64_t open = a->best.value - a->result->bound;
  return a->result->bound_by == PSPLIT_I_SOLVER_NESTED && open <= a->best.value / NEAR_PART;
}

psplit_code psplit_i_nested_turn(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (turn->salt > 1) return PSPLIT_OK;
  const psplit_code code = ask(a, SOON_PART);
  return code == PSPLIT_OK && comes_near(a) ? ask(a, NEXT_PART) : code;
}

psplit_code psplit_i_nested_late(psplit_i_solver_state *a, psplit_i_turn *turn) {
  (void)turn;
  return ask(a, NEXT_PART);
}
