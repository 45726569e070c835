/* The flow networks of a fan: a node for each cluster of H, and a hub for each net that several of
 * them read. */
#include "fan_network.h"

enum {
  ONE = PSPLIT_I_FAN_ONE,
  SOURCE = PSPLIT_I_SOURCE,
  SINK = PSPLIT_I_SINK,
  INNER /* network node of the first cluster of H */
};

static void arc(psplit_i_fan_builder *b, uint32_t from, uint32_t to, int64_t cap) {
  psplit_i_cut_network_arc(&b->cut, from, to, cap);
}

static uint32_t new_node(psplit_i_fan_builder *b) { return psplit_i_cut_network_node(&b->cut); }

static uint32_t inner_of(const psplit_i_fan_builder *b, uint32_t cluster) {
  return INNER + cluster - b->fan->first;
}

bool psplit_i_fan_holds(const psplit_i_fan_builder *b, uint32_t cluster) {
  return cluster >= b->fan->first && cluster < b->fan->end;
}

psplit_i_fan_readers psplit_i_fan_readers_of(const psplit_i_fan_builder *b, uint32_t e) {
  const psplit_i_instance *instance = b->instance;
  psplit_i_fan_readers r = {0};
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++) {
    const uint32_t pin = instance->net_pin[k];
    if (psplit_i_fan_holds(b, pin)) r.n_inner++;
    if (pin == b->fan->end) r.back = true;
    if (pin > b->fan->end) r.behind = true;
  }
  return r;
}

uint32_t psplit_i_fan_sender(const psplit_i_fan_builder *b, uint32_t e, uint32_t d) {
  const uint32_t producer = b->instance->net_pin[b->instance->net_off[e]];
  if (psplit_i_fan_holds(b, producer)) return inner_of(b, producer);
  if (b->fan->has_front && producer + 1 == b->fan->first) return SOURCE;
  for (uint32_t k = 0; k < d; k++)
    if (b->fan->open[k] == producer) return SOURCE;
  return PSPLIT_NONE;
}

/* A node for each cluster of H; `ordered`: source sides are downsets. */
static void begin_network(psplit_i_fan_builder *b, bool ordered) {
  const psplit_i_instance *instance = b->instance;
  const psplit_i_fan *f = b->fan;
  psplit_i_cut_network_begin(&b->cut);
  b->constant = 0;
  for (uint32_t i = f->first; i < f->end; i++) new_node(b);
  for (uint32_t i = f->first; i < f->end && ordered && !b->cut.failed; i++)
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
      if (psplit_i_fan_holds(b, instance->pred[k]))
        arc(b, inner_of(b, i), inner_of(b, instance->pred[k]), PSPLIT_I_INF);
}

/* `cost` is paid where `from` is on the source side, and a consumer of e in H is not, or where one
 * is elsewhere (`beyond`). */
static void pay_ahead(psplit_i_fan_builder *b, uint32_t e, uint32_t from, bool beyond,
                      int64_t cost) {
  const psplit_i_instance *instance = b->instance;
  if (cost <= 0) return;
  if (beyond && from == SOURCE) {
    b->constant += cost;
  } else if (beyond) {
    arc(b, from, SINK, ONE * cost);
  } else {
    const uint32_t hub = new_node(b);
    arc(b, from, hub, ONE * cost);
    for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
      if (psplit_i_fan_holds(b, instance->net_pin[k]))
        arc(b, hub, inner_of(b, instance->net_pin[k]), PSPLIT_I_INF);
  }
}

/* What stages in front of that of z send. */
static void add_sends(psplit_i_fan_builder *b, uint32_t d) {
  for (uint32_t k = 0; k < b->n_nets && !b->cut.failed; k++) {
    const uint32_t e = b->net[k], from = psplit_i_fan_sender(b, e, d);
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (from == PSPLIT_NONE || (r.n_inner == 0 && !r.back && !r.behind)) continue;
    pay_ahead(b, e, from, r.back || r.behind, b->send[e]);
  }
}

/* What the stage of z receives. */
static void add_receipts(psplit_i_fan_builder *b) {
  for (uint32_t k = 0; k < b->n_nets && !b->cut.failed; k++) {
    const uint32_t e = b->net[k], producer = b->instance->net_pin[b->instance->net_off[e]];
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (producer >= b->fan->end || (r.n_inner == 0 && !r.back)) continue;
    pay_ahead(b, e, psplit_i_fan_holds(b, producer) ? inner_of(b, producer) : SOURCE, r.back,
              b->recv[e]);
  }
}

/* Time on the side where it counts against the slope. */
static void add_times(psplit_i_fan_builder *b, int64_t slope) {
  for (uint32_t i = b->fan->first; i < b->fan->end && !b->cut.failed; i++) {
    if (slope > 0) arc(b, SOURCE, inner_of(b, i), slope * b->min_time[i]);
    if (slope < 0) arc(b, inner_of(b, i), SINK, -slope * b->min_time[i]);
  }
}

void psplit_i_fan_network(psplit_i_fan_builder *b, uint32_t d, int64_t slope) {
  begin_network(b, true);
  if (d == PSPLIT_NONE)
    add_receipts(b);
  else
    add_sends(b, d);
  add_times(b, slope);
}

static bool is_listed(const uint32_t *list, uint32_t n, uint32_t e) {
  for (uint32_t k = 0; k < n; k++)
    if (list[k] == e) return true;
  return false;
}

void psplit_i_fan_stage_network(psplit_i_fan_builder *b, const uint32_t *paid, uint32_t n_paid,
                                uint32_t missed, int64_t multiplier) {
  const psplit_i_instance *instance = b->instance;
  begin_network(b, false);
  for (uint32_t i = b->fan->first; i < b->fan->end; i++)
    arc(b, SOURCE, inner_of(b, i), (ONE - multiplier) * b->min_time[i]);
  for (uint32_t k = 0; k < b->n_nets && !b->cut.failed; k++) {
    const uint32_t e = b->net[k], producer = instance->net_pin[instance->net_off[e]];
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (producer >= b->fan->end || is_listed(paid, n_paid, e)) continue;
    if (psplit_i_fan_holds(b, producer) && (r.n_inner > 0 || r.back || r.behind)) {
      const uint32_t from = inner_of(b, producer), cost = r.back || r.behind;
      const uint32_t hub = cost ? SINK : new_node(b);
      arc(b, from, hub, multiplier * b->send[e]);
      for (uint32_t l = instance->net_off[e] + 1; l < instance->net_off[e + 1] && !cost; l++)
        if (psplit_i_fan_holds(b, instance->net_pin[l]))
          arc(b, hub, inner_of(b, instance->net_pin[l]), PSPLIT_I_INF);
    }
    if (r.n_inner == 0) continue;
    const uint32_t hub = new_node(b);
    arc(b, hub, psplit_i_fan_holds(b, producer) ? inner_of(b, producer) : SINK,
        e == missed ? PSPLIT_I_INF : multiplier * b->recv[e]);
    for (uint32_t l = instance->net_off[e] + 1; l < instance->net_off[e + 1]; l++)
      if (psplit_i_fan_holds(b, instance->net_pin[l]))
        arc(b, inner_of(b, instance->net_pin[l]), hub, PSPLIT_I_INF);
  }
}

/* How many of the nets a cluster receives. */
static uint32_t count_read(const psplit_i_instance *instance, uint32_t i, const uint32_t *nets,
                           uint32_t n) {
  uint32_t n_read = 0;
  for (uint32_t k = instance->inc_off[i]; k < instance->inc_off[i + 1]; k++)
    n_read += !(instance->inc[k] & 1) && is_listed(nets, n, instance->inc[k] >> 1);
  return n_read;
}

void psplit_i_fan_shared_network(psplit_i_fan_builder *b, const uint32_t *broad, uint32_t n_broad,
                                 int64_t share) {
  enum { ALL = PSPLIT_I_FAN_SHARES };
  const psplit_i_instance *instance = b->instance;
  begin_network(b, false);
  for (uint32_t i = b->fan->first; i < b->fan->end; i++) {
    const bool reads_all = count_read(instance, i, broad, n_broad) == n_broad;
    arc(b, inner_of(b, i), SINK, ALL * b->min_time[i]);
    arc(b, SOURCE, inner_of(b, i), reads_all ? PSPLIT_I_INF : share * b->min_time[i]);
  }
  for (uint32_t k = 0; k < b->n_nets && !b->cut.failed; k++) {
    const uint32_t e = b->net[k], producer = instance->net_pin[instance->net_off[e]];
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (!psplit_i_fan_holds(b, producer)) continue;
    const uint32_t from = inner_of(b, producer);
    const bool leaves = r.back || r.behind;
    if (leaves) {
      arc(b, from, SINK, ALL * b->send[e]);
      arc(b, SOURCE, from, share * b->send[e]);
    }
    if (r.n_inner == 0) continue;
    const uint32_t ahead = new_node(b), back = new_node(b);
    arc(b, from, ahead, (leaves ? 0 : ALL * b->send[e]) + share * b->recv[e]);
    arc(b, back, from, (leaves ? 0 : share * b->send[e]) + (r.back ? 0 : ALL * b->recv[e]));
    for (uint32_t l = instance->net_off[e] + 1; l < instance->net_off[e + 1]; l++) {
      if (!psplit_i_fan_holds(b, instance->net_pin[l])) continue;
      arc(b, ahead, inner_of(b, instance->net_pin[l]), PSPLIT_I_INF);
      arc(b, inner_of(b, instance->net_pin[l]), back, PSPLIT_I_INF);
    }
  }
}

/* What cluster i gains in the stage of z: what is not sent, and not received by z, less the price
 * of its load. */
static int64_t gain_of(const psplit_i_fan_builder *b, uint32_t i, int64_t price) {
  const psplit_i_instance *instance = b->instance;
  int64_t gain = -price * b->min_time[i];
  for (uint32_t k = instance->inc_off[i]; k < instance->inc_off[i + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if (!(instance->inc[k] & 1) || !instance->net_forward[e]) continue;
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (r.back || r.behind) gain += ONE * b->send[e];
    if (r.back) gain += (ONE + price) * b->recv[e];
  }
  return gain;
}

int64_t psplit_i_fan_saved_network(psplit_i_fan_builder *b, int64_t price) {
  const psplit_i_instance *instance = b->instance;
  int64_t sum = 0;
  begin_network(b, false);
  for (uint32_t i = b->fan->first; i < b->fan->end; i++) {
    const int64_t gain = gain_of(b, i, price);
    arc(b, SOURCE, inner_of(b, i), gain);
    arc(b, inner_of(b, i), SINK, -gain);
    if (gain > 0) sum += gain;
  }
  for (uint32_t k = 0; k < b->n_nets && !b->cut.failed; k++) {
    const uint32_t e = b->net[k], producer = instance->net_pin[instance->net_off[e]];
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (!psplit_i_fan_holds(b, producer) || r.n_inner == 0 || r.back) continue;
    const uint32_t hub = new_node(b);
    arc(b, hub, inner_of(b, producer), price * b->recv[e]);
    for (uint32_t l = instance->net_off[e] + 1; l < instance->net_off[e + 1]; l++)
      if (psplit_i_fan_holds(b, instance->net_pin[l]))
        arc(b, inner_of(b, instance->net_pin[l]), hub, PSPLIT_I_INF);
  }
  return sum;
}

int64_t psplit_i_fan_cut(psplit_i_fan_builder *b) {
  int64_t value = 0;
  psplit_i_spend(b->budget, 4 * (uint64_t)b->cut.flow.head.n + b->cut.flow.arcs.n);
  return psplit_i_cut_network_raise(&b->cut, PSPLIT_I_INF, b->budget, &value) ? value : 0;
}

int64_t psplit_i_fan_time_inside(psplit_i_fan_builder *b) {
  int64_t time = 0;
  if (!psplit_i_cut_network_sides(&b->cut)) return 0;
  for (uint32_t i = b->fan->first; i < b->fan->end; i++)
    if (b->cut.reached.items[inner_of(b, i)]) time += b->min_time[i];
  return time;
}
