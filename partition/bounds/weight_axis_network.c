/* The network of a bucket of the weight axis: its free clusters, and the nets that are near. */
#include "weight_axis_network.h"

#include <stdlib.h>

#include "problem.h"

enum { SOURCE = PSPLIT_I_SOURCE, SINK = PSPLIT_I_SINK };

bool psplit_i_bucket_network_init(psplit_i_bucket_network *c, const psplit_i_instance *instance) {
  c->place = malloc((instance->n + 1) * sizeof *c->place);
  c->fan = malloc(((size_t)instance->n_nets + 1) * sizeof *c->fan);
  c->pins = malloc(((size_t)instance->net_off[instance->n_nets] + 1) * sizeof *c->pins);
  return c->place && c->fan && c->pins;
}

void psplit_i_bucket_network_fini(psplit_i_bucket_network *c) {
  psplit_i_cut_network_fini(&c->cut);
  free(c->place);
  free(c->fan);
  free(c->pins);
}

static uint32_t place_of(const psplit_i_weight_axis_build *x, const psplit_i_bucket_network *c,
                         uint32_t q, uint32_t cluster) {
  if (q >= x->tin[cluster]) return SOURCE;
  if (q <= x->tout[cluster]) return SINK;
  return c->place[cluster];
}

static void arc(psplit_i_bucket_network *c, uint32_t from, uint32_t to, int64_t cap) {
  psplit_i_cut_network_arc(&c->cut, from, to, cap);
}

/* `ahead` is paid when the producer is in the downset and a consumer is not, `behind` when it is
 * the other way round. */
static void add_net(const psplit_i_weight_axis_build *x, psplit_i_bucket_network *c, uint32_t q,
                    uint32_t e, int64_t ahead, int64_t behind) {
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
static void add_consumer(const psplit_i_weight_axis_build *x, psplit_i_bucket_network *c,
                         uint32_t q, uint32_t e, uint32_t pin, int64_t ahead) {
  const uint32_t producer = place_of(x, c, q, x->instance->net_pin[x->instance->net_off[e]]);
  psplit_i_spend(&c->budget, 4);
  if (ahead == 0 || producer == SINK) return;
  if (c->fan[e] == PSPLIT_NONE) {
    c->fan[e] = psplit_i_cut_network_node(&c->cut);
    arc(c, producer, c->fan[e], ahead);
  }
  arc(c, c->fan[e], place_of(x, c, q, x->instance->net_pin[pin]), PSPLIT_I_INF);
}

uint32_t psplit_i_bucket_list_pins(const psplit_i_weight_axis_build *x, psplit_i_bucket_network *c,
                                   uint32_t q, bool incoming) {
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
      c->pins[n++] = (uint64_t)(incoming ? partner : axis->n_buckets - partner) << 32 | pin;
    }
  }
  return n;
}

/* The network of a bucket without its nets. */
static void build_network(const psplit_i_weight_axis_build *x, psplit_i_bucket_network *c,
                          uint32_t q) {
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

/* What a cut pays besides: per_time / ONE for each tick of the free clusters outside the downset,
 * or, where that is below 0, of those inside. */
static void add_weights(const psplit_i_weight_axis_build *x, psplit_i_bucket_network *c, uint32_t q,
                        int64_t per_time) {
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++) {
    const uint32_t i = x->free_cluster[k];
    const int64_t min_time = x->automaton->min_time[i];
    if (min_time == 0) continue;
    if (per_time > 0)
      arc(c, SOURCE, c->place[i], per_time * min_time);
    else
      arc(c, c->place[i], SINK, -per_time * min_time);
  }
}

/* A pin of c->pins, or its net, counts from now on. */
static void add_pin(const psplit_i_weight_axis_build *x, psplit_i_bucket_network *c,
                    const psplit_i_bucket_cut *cut, uint32_t pin, int64_t factor) {
  const uint32_t e = x->net_of_pin[pin];
  const int64_t ahead = factor * (cut->incoming ? x->cost_in[e] : x->cost_out[e]);
  const int64_t behind = factor * (cut->incoming ? x->cost_out[e] : x->cost_in[e]);
  if (pin > x->instance->net_off[e])
    add_consumer(x, c, cut->q, e, pin, ahead);
  else
    add_net(x, c, cut->q, e, ahead, x->instance->overlap ? 0 : behind);
}

void psplit_i_bucket_cut_groups(const psplit_i_weight_axis_build *x, const psplit_i_bucket_cut *cut,
                                int64_t factor, int64_t per_time, int64_t enough,
                                psplit_i_bucket_network *c, psplit_i_crossing_groups *out) {
  const uint32_t n_pins = cut->n_pins;
  uint32_t n_groups = 0;
  int64_t value = 0;
  out->n = 0;
  build_network(x, c, cut->q);
  if (c->cut.failed) return;
  if (per_time != 0) add_weights(x, c, cut->q, per_time);
  for (uint32_t k = 0; k < n_pins; k++)
    n_groups += k == 0 || c->pins[k] >> 32 != c->pins[k - 1] >> 32;
  const uint32_t stride = n_groups / PSPLIT_I_MAX_STEPS + 1;
  for (uint32_t k = 0; k < n_pins && !c->cut.failed && !psplit_i_expired(&c->budget);) {
    uint32_t rank = 0;
    for (uint32_t taken = 0; k < n_pins; k++) {
      const uint32_t here = (uint32_t)(c->pins[k] >> 32);
      if ((taken == 0 || here != rank) && taken++ == stride) break;
      rank = here;
      add_pin(x, c, cut, (uint32_t)c->pins[k], factor);
    }
    if (!psplit_i_cut_network_raise(&c->cut, enough, &c->budget, &value)) return;
    out->rank[out->n] = rank;
    out->value[out->n++] = value;
  }
}

static bool pays(const psplit_i_weight_axis_build *x, const psplit_i_bucket_network *c, uint32_t q,
                 uint32_t e, bool *out_behind) {
  const uint32_t first = x->instance->net_off[e], end = x->instance->net_off[e + 1];
  const bool *side = c->cut.reached.items,
             home = side[place_of(x, c, q, x->instance->net_pin[first])];
  bool in = false, outside = false;
  for (uint32_t k = first + 1; k < end; k++)
    *(side[place_of(x, c, q, x->instance->net_pin[k])] ? &in : &outside) = true;
  *out_behind = !home && in && !x->instance->net_forward[e];
  return home && outside;
}

psplit_i_crossing_downset psplit_i_bucket_last_downset(const psplit_i_weight_axis_build *x,
                                                       const psplit_i_bucket_cut *cut,
                                                       psplit_i_bucket_network *c) {
  const uint32_t q = cut->q;
  psplit_i_crossing_downset d = {(double)x->weight_in[q], 0};
  if (!psplit_i_cut_network_sides(&c->cut)) return d;
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++)
    if (c->cut.reached.items[c->place[x->free_cluster[k]]])
      d.weight += (double)x->automaton->min_time[x->free_cluster[k]];
  for (uint32_t k = 0; k < cut->n_pins; k++) {
    const uint32_t pin = (uint32_t)c->pins[k], e = x->net_of_pin[pin];
    bool behind;
    if (pin > x->instance->net_off[e] && c->fan[e] == PSPLIT_NONE) continue; /* counted */
    c->fan[e] = PSPLIT_NONE;
    if (pays(x, c, q, e, &behind)) d.cost += (double)(cut->incoming ? x->cost_in : x->cost_out)[e];
    if (behind && !x->instance->overlap)
      d.cost += (double)(cut->incoming ? x->cost_out : x->cost_in)[e];
  }
  psplit_i_spend(&c->budget, c->cut.flow.arcs.n);
  return d;
}
