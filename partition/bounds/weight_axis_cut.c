/* The cheapest crossing of every bucket of the weight axis, by minimum cuts. A net counts on one
 * side only: behind J when its producer is in J, before I when that is outside every J; so no net
 * is counted twice in a stage. Behind J it counts with those of its consumers that are in every I:
 * where one of them is outside J, the stage holds it and receives the net. A net of the backward
 * pass counts behind J once all its pins are in every I.
 *
 * A cut adds up what is received and what is sent: a net of the backward pass crosses J the other
 * way. With overlap a load is the largest of the two, not their sum, so there only nets that run
 * ahead count: what a stage receives over J, and what it sends over I.
 *
 * Weighed, a cut knows besides what its downset weighs, by Lagrange's multipliers: for a downset D
 * of weight at least low, and m >= 0, cross(D) >= min over all D of cross(D) + m (low - w(D)), and
 * likewise for a weight of at most high. */
#include "compare.h"
#include "cut_network.h"
#include "instance.h"
#include "problem.h"
#include "team.h"
#include "weight_axis.h"
#include "weight_axis_inside.h"

#include <stdlib.h>
#include <string.h>

/* The last crossing that a thread cut in one direction. Buckets outnumber the places where what is
 * free changes, so the next one mostly asks for the same cut again. */
typedef struct last_cut {
  uint32_t run;   /* of its bucket; PSPLIT_NONE: none, or one that the budget cut short */
  uint64_t *pins; /* [n_pins] what it counted, unsorted */
  uint32_t n_pins;
  uint64_t spent;
  psplit_i_crossing_step steps[PSPLIT_I_MAX_STEPS];
  uint8_t n_steps;
} last_cut;

typedef struct cutter {
  psplit_i_cut_network cut;
  uint32_t *place;        /* [n] network node of a free cluster */
  uint32_t *fan;          /* [n_nets] network node of a net that counts by its consumers, or NONE */
  uint64_t *pins;         /* rank of the threshold << 32 | pin; see list_pins */
  last_cut last[2];       /* outgoing, incoming */
  psplit_i_budget budget; /* of the bucket */
} cutter;

enum {
  SOURCE = PSPLIT_I_SOURCE,
  SINK = PSPLIT_I_SINK,
  BATCH = 32,    /* buckets that share what is left of the budget */
  ONE = 1 << 10, /* multipliers are parts of it */
  MOST_PER_TIME = 8 * ONE,
  MULTIPLIERS = 5 /* for a bucket and direction */
};

static uint32_t place_of(const psplit_i_weight_axis_build *x, const cutter *c, uint32_t q,
                         uint32_t cluster) {
  if (q >= x->tin[cluster]) return SOURCE;
  if (q <= x->tout[cluster]) return SINK;
  return c->place[cluster];
}

static void arc(cutter *c, uint32_t from, uint32_t to, int64_t cap) {
  psplit_i_cut_network_arc(&c->cut, from, to, cap);
}

/* `ahead` is paid when the producer is in the downset and a consumer is not, `behind` when it is
 * the other way round. */
static void add_net(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, uint32_t e,
                    int64_t ahead, int64_t behind) {
  const uint32_t *pins = x->instance->net_pin + x->instance->net_off[e];
  const uint32_t n_pins = x->instance->net_off[e + 1] - x->instance->net_off[e];
  const uint32_t producer = place_of(x, c, q, pins[0]);
  psplit_i_spend(&c->budget, 2 * (uint64_t)n_pins);
  if (ahead > 0 && producer != SINK) {
    const uint32_t fan = n_pins == 2 ? producer : psplit_i_cut_network_node(&c->cut);
    if (n_pins > 2) arc(c, producer, fan, ahead);
    for (uint32_t k = 1; k < n_pins; k++)
      arc(c, fan, place_of(x, c, q, pins[k]), n_pins == 2 ? ahead : PSPLIT_I_INF);
  }
  if (behind > 0 && !x->instance->net_forward[e] && producer != SOURCE) {
    const uint32_t fan = psplit_i_cut_network_node(&c->cut);
    arc(c, fan, producer, behind);
    for (uint32_t k = 1; k < n_pins; k++) arc(c, place_of(x, c, q, pins[k]), fan, PSPLIT_I_INF);
  }
}

/* Whether a net counts by one consumer after another, not all at once. */
static bool by_consumers(const psplit_i_weight_axis_build *x, uint32_t e, bool incoming) {
  const uint32_t n_pins = x->instance->net_off[e + 1] - x->instance->net_off[e];
  return incoming && n_pins > 2 && x->instance->net_forward[e];
}

/* From now on a net counts where this consumer is outside J, too. */
static void add_consumer(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, uint32_t e,
                         uint32_t pin, int64_t ahead) {
  const uint32_t producer = place_of(x, c, q, x->instance->net_pin[x->instance->net_off[e]]);
  psplit_i_spend(&c->budget, 4);
  if (ahead == 0 || producer == SINK) return;
  if (c->fan[e] == PSPLIT_NONE) {
    c->fan[e] = psplit_i_cut_network_node(&c->cut);
    arc(c, producer, c->fan[e], ahead);
  }
  arc(c, c->fan[e], place_of(x, c, q, x->instance->net_pin[pin]), PSPLIT_I_INF);
}

/* The partner bucket from which on what has a rank counts: nearest first, the same in every bucket.
 * Incoming, ranks are partners. */
static uint32_t partner_of(const psplit_i_weight_axis_build *x, uint32_t rank, bool incoming) {
  return incoming ? rank : x->out->n_buckets - rank;
}

/* What counts for some partner bucket within reach, unsorted: consumers of nets that count by
 * those, producers of others. */
static uint32_t list_pins(const psplit_i_weight_axis_build *x, uint32_t q, bool incoming,
                          uint64_t *out_pins) {
  const psplit_i_weight_axis *axis = x->out;
  uint32_t n = 0;
  for (uint32_t k = x->near_off[q]; k < x->near_off[q + 1]; k++) {
    const uint32_t e = x->near_net[k], first = x->instance->net_off[e];
    const bool each = by_consumers(x, e, incoming);
    const uint32_t end = each ? x->instance->net_off[e + 1] : first + 1;
    for (uint32_t pin = each ? first + 1 : first; pin < end; pin++) {
      const uint32_t partner = each       ? x->tin[x->instance->net_pin[pin]]
                               : incoming ? x->net_in[e]
                                          : x->net_out[e];
      const int64_t gap =
        incoming ? axis->low[partner] - axis->high[q] : axis->low[q] - axis->high[partner];
      if (gap > x->reach || (each && partner <= q)) continue;
      out_pins[n++] = (uint64_t)(incoming ? partner : axis->n_buckets - partner) << 32 | pin;
    }
  }
  return n;
}

/* The network of a bucket without its nets. */
static void build_network(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q) {
  const psplit_i_instance *instance = x->instance;
  psplit_i_cut_network_begin(&c->cut);
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++)
    c->place[x->free_cluster[k]] = psplit_i_cut_network_node(&c->cut);
  for (uint32_t k = x->near_off[q]; k < x->near_off[q + 1]; k++)
    c->fan[x->near_net[k]] = PSPLIT_NONE;
  psplit_i_spend(&c->budget, 4 * (uint64_t)(x->free_off[q + 1] - x->free_off[q]) +
                               8 * (uint64_t)(x->near_off[q + 1] - x->near_off[q]));
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++) {
    const uint32_t i = x->free_cluster[k];
    psplit_i_spend(&c->budget, 2 * (uint64_t)(instance->pred_off[i + 1] - instance->pred_off[i]));
    for (uint32_t l = instance->pred_off[i]; l < instance->pred_off[i + 1]; l++)
      arc(c, c->place[i], place_of(x, c, q, instance->pred[l]), PSPLIT_I_INF);
  }
}

/* The least values of a bucket's cut once the nets of each of its groups count. */
typedef struct groups {
  uint32_t n, rank[PSPLIT_I_MAX_STEPS];
  int64_t value[PSPLIT_I_MAX_STEPS];
} groups;

/* What a cut pays besides: per_time / ONE for each tick of the free clusters outside the downset,
 * or, where that is below 0, of those inside. */
static void add_weights(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q,
                        int64_t per_time) {
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++) {
    const uint32_t i = x->free_cluster[k];
    const int64_t omega = x->automaton->omega[i];
    if (omega == 0) continue;
    if (per_time > 0)
      arc(c, SOURCE, c->place[i], per_time * omega);
    else
      arc(c, c->place[i], SINK, -per_time * omega);
  }
}

/* A pin of c->pins, or its net, counts from now on. */
static void add_pin(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, bool incoming,
                    uint32_t pin, int64_t factor) {
  const uint32_t e = x->net_of_pin[pin];
  const int64_t ahead = factor * (incoming ? x->cost_in[e] : x->cost_out[e]);
  const int64_t behind = factor * (incoming ? x->cost_out[e] : x->cost_in[e]);
  if (pin > x->instance->net_off[e])
    add_consumer(x, c, q, e, pin, ahead);
  else
    add_net(x, c, q, e, ahead, x->instance->overlap ? 0 : behind);
}

/* Cuts the bucket over the first n_pins of c->pins, sorted, with costs times `factor`, group by
 * group up to `enough`. */
static void cut_groups(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, bool incoming,
                       uint32_t n_pins, int64_t factor, int64_t per_time, int64_t enough,
                       groups *out) {
  uint32_t n_groups = 0;
  int64_t value = 0;
  out->n = 0;
  build_network(x, c, q);
  if (c->cut.failed) return;
  if (per_time != 0) add_weights(x, c, q, per_time);
  for (uint32_t k = 0; k < n_pins; k++)
    n_groups += k == 0 || c->pins[k] >> 32 != c->pins[k - 1] >> 32;
  const uint32_t stride = n_groups / PSPLIT_I_MAX_STEPS + 1;
  for (uint32_t k = 0; k < n_pins && !c->cut.failed && !psplit_i_expired(&c->budget);) {
    uint32_t rank = 0;
    for (uint32_t taken = 0; k < n_pins; k++) {
      const uint32_t here = (uint32_t)(c->pins[k] >> 32);
      if ((taken == 0 || here != rank) && taken++ == stride) break;
      rank = here;
      add_pin(x, c, q, incoming, (uint32_t)c->pins[k], factor);
    }
    if (!psplit_i_cut_network_raise(&c->cut, enough, &c->budget, &value)) return;
    out->rank[out->n] = rank;
    out->value[out->n++] = value;
  }
}

/* The downset of the last cut: its weight, and what the nets cost that cross it. */
typedef struct downset {
  double weight, cost;
} downset;

static bool pays(const psplit_i_weight_axis_build *x, const cutter *c, uint32_t q, uint32_t e,
                 bool *out_behind) {
  const uint32_t first = x->instance->net_off[e], end = x->instance->net_off[e + 1];
  const bool *side = c->cut.reached.items,
             home = side[place_of(x, c, q, x->instance->net_pin[first])];
  bool in = false, outside = false;
  for (uint32_t k = first + 1; k < end; k++)
    *(side[place_of(x, c, q, x->instance->net_pin[k])] ? &in : &outside) = true;
  *out_behind = !home && in && !x->instance->net_forward[e];
  return home && outside;
}

static downset last_downset(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q,
                            bool incoming, uint32_t n_pins) {
  downset d = {(double)x->weight_in[q], 0};
  if (!psplit_i_cut_network_sides(&c->cut)) return d;
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++)
    if (c->cut.reached.items[c->place[x->free_cluster[k]]])
      d.weight += (double)x->automaton->omega[x->free_cluster[k]];
  for (uint32_t k = 0; k < n_pins; k++) {
    const uint32_t pin = (uint32_t)c->pins[k], e = x->net_of_pin[pin];
    bool behind;
    if (pin > x->instance->net_off[e] && c->fan[e] == PSPLIT_NONE) continue; /* counted */
    c->fan[e] = PSPLIT_NONE;
    if (pays(x, c, q, e, &behind)) d.cost += (double)(incoming ? x->cost_in : x->cost_out)[e];
    if (behind && !x->instance->overlap) d.cost += (double)(incoming ? x->cost_out : x->cost_in)[e];
  }
  psplit_i_spend(&c->budget, c->cut.flow.arcs.n);
  return d;
}

/* Raises `best` by the cut with a multiplier of per_time / ONE. */
static void weigh_once(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, bool incoming,
                       uint32_t n_pins, int64_t per_time, int64_t free_weight, groups *best) {
  const int64_t all = x->weight_in[q] + free_weight, high = x->out->high[q];
  int64_t paid = per_time > 0 ? all - x->out->low[q] : high - x->weight_in[q];
  if (paid < 0) paid = 0;
  paid *= per_time > 0 ? per_time : -per_time;
  groups weighed;
  cut_groups(x, c, q, incoming, n_pins, ONE, per_time, (x->limit + 1) * ONE + paid, &weighed);
  for (uint32_t g = 0; g < weighed.n && g < best->n; g++) {
    const int64_t left = weighed.value[g] - paid;
    if (left > 0 && (left + ONE - 1) / ONE > best->value[g])
      best->value[g] = (left + ONE - 1) / ONE;
  }
}

/* Multipliers for the cut of all nets: the slope between the cheapest downset known that is too
 * light and the cheapest that is not, until no cut is below that line. */
static void weigh(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, bool incoming,
                  uint32_t n_pins, groups *best) {
  const double low = (double)x->out->low[q], high = (double)x->out->high[q];
  if (c->cut.failed || best->n == 0 || best->value[best->n - 1] > x->limit) return;
  if (psplit_i_expired(&c->budget)) return;
  int64_t free_weight = 0;
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++)
    free_weight += x->automaton->omega[x->free_cluster[k]];
  const downset first = last_downset(x, c, q, incoming, n_pins);
  const bool light = first.weight < low;
  if (!light && first.weight <= high) return; /* the cheapest of all has the right weight */
  const double target = light ? low : high;
  downset near = first, far = {0, 0};
  bool known = false; /* far */
  int64_t per_time = light ? ONE / 8 : -ONE / 8;
  for (int k = 0; k < MULTIPLIERS && !c->cut.failed && !psplit_i_expired(&c->budget); k++) {
    weigh_once(x, c, q, incoming, n_pins, per_time, free_weight, best);
    if (c->cut.failed || best->value[best->n - 1] > x->limit || psplit_i_expired(&c->budget))
      return;
    const downset now = last_downset(x, c, q, incoming, n_pins);
    const bool is_near = light ? now.weight < target : now.weight > target;
    if (is_near) {
      if (!known) {
        per_time *= 4;
        near = now;
        if (per_time > MOST_PER_TIME || per_time < -MOST_PER_TIME) return;
        continue;
      }
      if (now.weight == near.weight) return;
      near = now;
    } else {
      if (known && now.weight == far.weight) return;
      far = now;
      known = true;
    }
    if (far.weight == near.weight) return;
    const double slope = (far.cost - near.cost) / (far.weight - near.weight) * ONE;
    const int64_t next = (int64_t)slope;
    if (next == per_time || next == 0 || (next > 0) != light) return;
    if (next > MOST_PER_TIME || next < -MOST_PER_TIME) return;
    per_time = next;
  }
}

/* The crossings of a bucket over the first n_pins of c->pins, which it sorts; their number. */
static uint8_t cut_network(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q,
                           bool incoming, uint32_t n_pins, psplit_i_crossing_step *steps) {
  groups best;
  qsort(c->pins, n_pins, sizeof *c->pins, psplit_i_compare_u64);
  cut_groups(x, c, q, incoming, n_pins, 1, 0, x->limit + 1, &best);
  if (x->weighed) weigh(x, c, q, incoming, n_pins, &best);
  uint8_t n_steps = 0;
  int64_t before = 0;
  for (uint32_t g = 0; g < best.n; g++) {
    if (best.value[g] <= before) continue;
    before = best.value[g] > x->limit ? x->limit + 1 : best.value[g];
    steps[n_steps++] = (psplit_i_crossing_step){partner_of(x, best.rank[g], incoming), before};
    if (before > x->limit) break;
  }
  return n_steps;
}

/* Whether the last cut is that of bucket q too, and would not have run out of this budget. */
static bool is_last(const psplit_i_weight_axis_build *x, const cutter *c, const last_cut *last,
                    uint32_t q, uint32_t n_pins) {
  return !x->weighed && last->run == x->run[q] && last->n_pins == n_pins &&
         memcmp(last->pins, c->pins, n_pins * sizeof *c->pins) == 0 &&
         last->spent < psplit_i_budget_left(&c->budget);
}

static void cut_bucket(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, bool incoming) {
  last_cut *last = &c->last[incoming];
  const uint32_t n_pins = list_pins(x, q, incoming, c->pins);
  if (is_last(x, c, last, q, n_pins)) {
    /* What is charged must not depend on what this thread happened to cut before. */
    psplit_i_spend(&c->budget, last->spent);
  } else {
    const uint64_t before = c->budget.spent;
    last->n_pins = n_pins;
    memcpy(last->pins, c->pins, n_pins * sizeof *c->pins);
    last->n_steps = cut_network(x, c, q, incoming, n_pins, last->steps);
    if (c->cut.failed) return;
    last->run = psplit_i_expired(&c->budget) ? PSPLIT_NONE : x->run[q];
    last->spent = c->budget.spent - before;
  }
  psplit_i_crossing_step *steps = (incoming ? x->in : x->outgoing) + (size_t)q * PSPLIT_I_MAX_STEPS;
  memcpy(steps, last->steps, last->n_steps * sizeof *steps);
  *(incoming ? &x->n_in[q] : &x->n_outgoing[q]) = last->n_steps;
}

/* Numbers the runs of buckets in which the same is free and the same stands on each side. */
static psplit_code number_runs(psplit_i_weight_axis_build *x) {
  const uint32_t n_buckets = x->out->n_buckets;
  x->run = PSPLIT_NEW(&x->arena, uint32_t, (size_t)n_buckets + 1);
  if (!x->run) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < x->instance->n; i++) x->run[x->tin[i]] = x->run[x->tout[i] + 1] = 1;
  for (uint32_t q = 1; q < n_buckets; q++) x->run[q] += x->run[q - 1];
  return PSPLIT_OK;
}

static bool cutter_init(cutter *c, const psplit_i_instance *instance) {
  const size_t n_pins = (size_t)instance->net_off[instance->n_nets] + 1;
  c->place = malloc((instance->n + 1) * sizeof *c->place);
  c->fan = malloc(((size_t)instance->n_nets + 1) * sizeof *c->fan);
  c->pins = malloc(3 * n_pins * sizeof *c->pins);
  if (!c->place || !c->fan || !c->pins) return false;
  for (int i = 0; i < 2; i++)
    c->last[i] = (last_cut){.run = PSPLIT_NONE, .pins = c->pins + (size_t)(i + 1) * n_pins};
  return true;
}

static void cutter_fini(cutter *c) {
  psplit_i_cut_network_fini(&c->cut);
  free(c->place);
  free(c->fan);
  free(c->pins);
}

static psplit_code cheapest_costs(psplit_i_weight_axis_build *x) {
  const psplit_i_instance *instance = x->instance;
  x->cost_in = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  x->cost_out = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  if (!x->cost_in || !x->cost_out) return PSPLIT_NOMEM;
  bool any = false;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    if (instance->problem->devices[t].free_comm || x->automaton->count[t] == 0) continue;
    for (uint32_t e = 0; e < instance->n_nets; e++) {
      const int64_t recv = instance->recv[(size_t)t * instance->n_nets + e];
      const int64_t send = instance->send[(size_t)t * instance->n_nets + e];
      if (!any || recv < x->cost_in[e]) x->cost_in[e] = recv;
      if (!any || send < x->cost_out[e]) x->cost_out[e] = send;
    }
    any = true;
  }
  return PSPLIT_OK;
}

/* Buckets that share what is left of the budget. */
typedef struct batch {
  psplit_i_weight_axis_build *x;
  cutter *cutters; /* of each thread */
  uint32_t first;
  uint64_t spent[BATCH];
} batch;

static void cut_one(void *with, size_t i, int thread) {
  batch *b = with;
  cutter *c = &b->cutters[thread];
  const uint32_t q = (uint32_t)i;
  /* A bucket without crossings bounds less, but holds. */
  c->budget = psplit_i_budget_share(b->x->budget, BATCH);
  const bool may = !psplit_i_expired(&c->budget);
  if (may && !c->cut.failed) cut_bucket(b->x, c, q, true);
  if (may && !c->cut.failed) cut_bucket(b->x, c, q, false);
  b->spent[q - b->first] = c->budget.spent;
}

/* Weights of what every downset of a bucket holds; and whether products with multipliers stay
 * within 64 bits. */
static psplit_code prepare_weights(psplit_i_weight_axis_build *x) {
  const uint32_t n_buckets = x->out->n_buckets;
  const int64_t most = PSPLIT_I_INF / (8 * (int64_t)MOST_PER_TIME);
  int64_t sum = x->automaton->total_omega;
  for (uint32_t e = 0; e < x->instance->n_nets && sum < most; e++) {
    const int64_t cost = psplit_i_sat_add_i64(x->cost_in[e], x->cost_out[e]);
    sum = psplit_i_sat_add_i64(sum, cost);
  }
  if (sum >= most || x->limit >= most) x->weighed = false;
  x->weight_in = PSPLIT_NEW(&x->arena, int64_t, (size_t)n_buckets + 1);
  if (!x->weight_in) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < x->instance->n; i++) x->weight_in[x->tin[i]] += x->automaton->omega[i];
  for (uint32_t q = 1; q < n_buckets; q++) x->weight_in[q] += x->weight_in[q - 1];
  return PSPLIT_OK;
}

psplit_code psplit_i_weight_axis_cut(psplit_i_weight_axis_build *x, int n_threads) {
  const uint32_t n_buckets = x->out->n_buckets;
  x->in = psplit_i_arena_array(&x->arena, (size_t)n_buckets * PSPLIT_I_MAX_STEPS, sizeof *x->in);
  x->outgoing =
    psplit_i_arena_array(&x->arena, (size_t)n_buckets * PSPLIT_I_MAX_STEPS, sizeof *x->outgoing);
  x->n_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  x->n_outgoing = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  if (!x->in || !x->outgoing || !x->n_in || !x->n_outgoing) return PSPLIT_NOMEM;
  if (cheapest_costs(x) != PSPLIT_OK || number_runs(x) != PSPLIT_OK) return PSPLIT_NOMEM;
  if (x->weighed && prepare_weights(x) != PSPLIT_OK) return PSPLIT_NOMEM;
  batch b = {.x = x, .cutters = calloc((size_t)n_threads, sizeof *b.cutters)};
  if (!b.cutters) return PSPLIT_NOMEM;
  bool failed = false;
  for (int t = 0; t < n_threads; t++)
    if (!cutter_init(&b.cutters[t], x->instance)) failed = true;
  for (uint32_t first = 1; !failed && first + 1 < n_buckets; first += BATCH) {
    const uint32_t end = n_buckets - 1 - first < BATCH ? n_buckets - 1 : first + BATCH;
    b.first = first;
    psplit_i_team_for(n_threads, first, end, cut_one, &b);
    for (uint32_t q = first; q < end; q++) psplit_i_spend(x->budget, b.spent[q - first]);
  }
  for (int t = 0; t < n_threads; t++) {
    failed |= b.cutters[t].cut.failed;
    cutter_fini(&b.cutters[t]);
  }
  free(b.cutters);
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
