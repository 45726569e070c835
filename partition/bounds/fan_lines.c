/* Lines below what a cut of a fan costs, by minimum cuts with Lagrange's multipliers: for a downset
 * D of H with time x, and any slope m, cost(D) >= min over all D of (cost(D) - m time(D)) + m x.
 * Those that touch the lower convex hull of cost over time are looked for (Eisner and Severance,
 * JACM 1976), between D empty and D = H.
 *
 * Upper bounds on what a stage S in H has of it are such lines, too: for 0 < m <= 1 and a load of
 * at most T, time(S) <= time(S) + m (T - time(S) - comm(S)), of which a cut tells the most. As
 * convex combinations of no stage at all and one of all H would lie above T without what all stages
 * receive, stages that receive all broad nets, and those that miss one, have lines of their own.
 *
 * What all stages take together is a minimum cut as well, between those that receive all broad
 * nets, or have one of the separators, and those that miss one: clusters that read all broad nets
 * are on the first side.
 *
 * Only nets that run ahead count. */
#include "fan_lines.h"
#include "fan_network.h"
#include "node_cut.h"
#include "problem.h"
#include "separators.h"

enum {
  ONE = PSPLIT_I_FAN_ONE,
  MOST_CUTS = 10, /* for a hull */
  FEW_CUTS = 3,
  MANY = 1 << 14, /* clusters in all from which on there are few */
  MOST_INSIDE = 1 << 13,
  MIDDLES = 8 /* multipliers tried for the middle */
};

/* A point of a hull. */
typedef struct point {
  int64_t time, cost;
} point;

static void keep_line(psplit_i_fan_builder *b, int64_t at_zero, int64_t slope) {
  if (!psplit_i_vec_push(&b->fans->lines, ((psplit_i_fan_line){at_zero, slope})))
    b->cut.failed = true;
}

/* The line of a slope, and where it touches; `d` NONE: of what is received. */
static point touch(psplit_i_fan_builder *b, uint32_t d, int64_t slope) {
  psplit_i_fan_network(b, d, slope);
  /* Of slope x: what is outside was paid for in place of what is inside. */
  const int64_t value = psplit_i_fan_cut(b) - (slope > 0 ? slope * b->fan->time : 0);
  const int64_t constant = b->constant;
  if (b->cut.failed) return (point){0};
  keep_line(b, value + ONE * constant, slope);
  const int64_t time = psplit_i_fan_time_inside(b);
  return (point){time, psplit_i_floor_div(value + slope * time, ONE) + constant};
}

static int64_t slope_between(point p, point q) {
  const int64_t steepest = (int64_t)ONE * PSPLIT_I_FAN_STEEPEST;
  const double slope = (double)(q.cost - p.cost) / (double)(q.time - p.time) * ONE;
  if (slope > (double)steepest) return steepest;
  return slope < -(double)steepest ? -steepest : (int64_t)slope;
}

/* What it costs with nothing, or all, of H in front. */
static int64_t cost_of_end(psplit_i_fan_builder *b, uint32_t d, bool all) {
  int64_t cost = 0;
  for (uint32_t k = 0; k < b->n_nets; k++) {
    const uint32_t e = b->net[k], producer = b->instance->net_pin[b->instance->net_off[e]];
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    const bool beyond = r.back || (r.behind && d != PSPLIT_NONE);
    const bool from =
      d == PSPLIT_NONE ? producer < b->fan->first : psplit_i_fan_sender(b, e, d) == PSPLIT_I_SOURCE;
    if (!from && !(all && psplit_i_fan_holds(b, producer))) continue;
    if (beyond || (r.n_inner > 0 && !all)) cost += (d == PSPLIT_NONE ? b->recv : b->send)[e];
  }
  return cost;
}

/* Lines below what all downsets of H cost, `d` as psplit_i_fan_network: from none and all of H on,
 * the line through two points that are known touches at a third, until there are most_cuts. */
static psplit_i_fan_lines hull(psplit_i_fan_builder *b, uint32_t d) {
  psplit_i_fan_lines lines = {(uint32_t)b->fans->lines.n, 0};
  point from[2 * MOST_CUTS + 2], to[2 * MOST_CUTS + 2];
  uint32_t n = 0;
  if (b->fan->first == b->fan->end) {
    keep_line(b, ONE * cost_of_end(b, d, false), 0);
  } else if (b->fan->time > 0) {
    from[n] = (point){0, cost_of_end(b, d, false)};
    to[n++] = (point){b->fan->time, cost_of_end(b, d, true)};
  } else {
    touch(b, d, 0);
  }
  for (uint32_t k = 0; k < n && k < b->most_cuts && !b->cut.failed; k++) {
    if (psplit_i_expired(b->budget)) break;
    const int64_t slope = slope_between(from[k], to[k]);
    const point p = touch(b, d, slope);
    if (p.time <= from[k].time || p.time >= to[k].time) continue;
    from[n] = from[k], to[n++] = p;
    from[n] = p, to[n++] = to[k];
  }
  lines.end = (uint32_t)b->fans->lines.n;
  return lines;
}

static psplit_i_fan_lines shifted(psplit_i_fan_builder *b, psplit_i_fan_lines of, int64_t more) {
  psplit_i_fan_lines lines = {(uint32_t)b->fans->lines.n, 0};
  if (more == 0) return of;
  for (uint32_t k = of.first; k < of.end && !b->cut.failed; k++)
    keep_line(b, b->fans->lines.items[k].at_zero + ONE * more, b->fans->lines.items[k].slope);
  lines.end = (uint32_t)b->fans->lines.n;
  return lines;
}

/* Whether what is received depends on what is in front as what is sent does. */
static bool alike(const psplit_i_fan_builder *b) {
  for (uint32_t k = 0; k < b->n_nets; k++) {
    const uint32_t e = b->net[k], producer = b->instance->net_pin[b->instance->net_off[e]];
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (producer >= b->fan->end || (r.n_inner == 0 && !r.back && !r.behind)) continue;
    const bool sends = psplit_i_fan_sender(b, e, 0) != PSPLIT_NONE,
               certain = !psplit_i_fan_holds(b, producer) && r.back;
    if (!certain && sends && (b->send[e] != b->recv[e] || (r.behind && !r.back))) return false;
    if (!certain && !sends && r.n_inner > 0) return false;
  }
  return true;
}

static psplit_i_fan_lines receipts(psplit_i_fan_builder *b) {
  if (!alike(b)) return hull(b, PSPLIT_NONE);
  return shifted(b, b->fan->send[0], cost_of_end(b, PSPLIT_NONE, false) - cost_of_end(b, 0, false));
}

/* --- stages with neither separator --- */

/* Of nets that enter H from in front: some that most of it reads. */
static uint32_t list_broad(psplit_i_fan_builder *b, uint32_t *out_net) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < b->n_nets; k++) {
    const uint32_t e = b->net[k], producer = b->instance->net_pin[b->instance->net_off[e]];
    if (producer >= b->fan->first || psplit_i_fan_readers_of(b, e).n_inner < 2) continue;
    uint32_t at = n;
    while (at > 0 && b->recv[e] > b->recv[out_net[at - 1]]) at--;
    if (at >= PSPLIT_I_FAN_BROAD) continue;
    if (n < PSPLIT_I_FAN_BROAD) n++;
    for (uint32_t l = n - 1; l > at; l--) out_net[l] = out_net[l - 1];
    out_net[at] = e;
  }
  return n;
}

/* Lines above what a stage in H has of it, by its time T beside what is paid. */
static psplit_i_fan_lines middle_lines(psplit_i_fan_builder *b, const uint32_t *paid,
                                       uint32_t n_paid, uint32_t missed) {
  psplit_i_fan_lines lines = {(uint32_t)b->fans->lines.n, 0};
  int64_t low = 0, high = ONE, limit = b->limit;
  for (uint32_t k = 0; k < n_paid; k++) limit -= b->recv[paid[k]];
  for (int step = 0; step < MIDDLES && high - low > 1 && !b->cut.failed; step++) {
    const int64_t m = low + (high - low) / 2;
    if (psplit_i_expired(b->budget)) break;
    psplit_i_fan_stage_network(b, paid, n_paid, missed, m);
    const int64_t value = psplit_i_fan_cut(b), time = psplit_i_fan_time_inside(b);
    if (b->cut.failed) break;
    keep_line(b, (ONE - m) * b->fan->time - value, m);
    const int64_t comm = (value - (ONE - m) * (b->fan->time - time)) / m;
    /* The sum that is bounded falls with m where the stage takes more than there is. */
    *(time + comm > limit ? &low : &high) = m;
  }
  lines.end = (uint32_t)b->fans->lines.n;
  return lines;
}

/* Lines above what is saved by what the stage of z has of H, by the load that it adds at most. */
static psplit_i_fan_lines saved_lines(psplit_i_fan_builder *b) {
  psplit_i_fan_lines lines = {(uint32_t)b->fans->lines.n, 0};
  for (int64_t price = ONE / 8; price <= 2 * ONE && !b->cut.failed; price *= 2) {
    if (psplit_i_expired(b->budget)) break;
    const int64_t most = psplit_i_fan_saved_network(b, price);
    keep_line(b, most - psplit_i_fan_cut(b), price);
  }
  lines.end = (uint32_t)b->fans->lines.n;
  return lines;
}

/* What all stages take together. */
static void add_shared(psplit_i_fan_builder *b, const uint32_t *broad, uint32_t n_broad) {
  psplit_i_fan *f = b->fan;
  const int64_t step = b->most_cuts < MOST_CUTS ? 2 : 1;
  for (uint32_t k = 0; k < b->n_nets; k++) {
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, b->net[k]);
    const uint32_t producer = b->instance->net_pin[b->instance->net_off[b->net[k]]];
    if (r.back && producer < f->end) f->back_recv += b->recv[b->net[k]];
  }
  f->saved = saved_lines(b);
  for (int64_t share = 0; share < PSPLIT_I_FAN_SHARES && !b->cut.failed; share += step) {
    if (psplit_i_expired(b->budget)) break;
    psplit_i_fan_shared_network(b, broad, n_broad, share);
    f->shared[share] = psplit_i_fan_cut(b);
  }
}

static void add_middle(psplit_i_fan_builder *b) {
  psplit_i_fan *f = b->fan;
  uint32_t broad[PSPLIT_I_FAN_BROAD];
  if (f->time <= b->limit / 2) return; /* whatever a stage has of it */
  const uint32_t n = list_broad(b, broad);
  f->n_broad = n;
  for (uint32_t k = 0; k < n; k++) {
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, broad[k]);
    f->broad_recv += b->recv[broad[k]];
    f->broad[k] = (psplit_i_fan_net){b->instance->net_pin[b->instance->net_off[broad[k]]],
                                     b->instance->p2p ? b->send[broad[k]] : 0, r.back || r.behind};
    for (uint32_t d = 0; d <= f->n_open && b->instance->p2p; d++) {
      if (psplit_i_fan_sender(b, broad[k], d) != PSPLIT_I_SOURCE) continue;
      f->broad_send[d] += b->send[broad[k]];
      if (r.back || r.behind) f->certain_send[d] += b->send[broad[k]];
    }
  }
  f->middle = middle_lines(b, broad, n, PSPLIT_NONE);
  for (uint32_t k = 0; k < n && !b->cut.failed; k++)
    f->missing[k] = middle_lines(b, NULL, 0, broad[k]);
  if (n > 0 && !b->cut.failed) add_shared(b, broad, n);
}

/* --- all fans --- */

static void list_net(psplit_i_fan_builder *b, uint32_t e, uint32_t fan) {
  if (b->seen[e] == fan + 1 || !b->instance->net_forward[e]) return;
  b->seen[e] = fan + 1;
  b->net[b->n_nets++] = e;
}

static void list_nets(psplit_i_fan_builder *b, uint32_t fan) {
  const psplit_i_instance *instance = b->instance;
  const psplit_i_fan *f = b->fan;
  const uint32_t first = f->has_front ? f->first - 1 : f->first;
  const uint32_t end = f->has_back ? f->end + 1 : f->end;
  b->n_nets = 0;
  for (uint32_t i = first; i < end; i++)
    for (uint32_t k = instance->inc_off[i]; k < instance->inc_off[i + 1]; k++)
      list_net(b, instance->inc[k] >> 1, fan);
  for (uint32_t o = 0; o < f->n_open; o++)
    for (uint32_t k = instance->inc_off[f->open[o]]; k < instance->inc_off[f->open[o] + 1]; k++)
      if (instance->inc[k] & 1) list_net(b, instance->inc[k] >> 1, fan);
  psplit_i_spend(b->budget, 4 * (uint64_t)b->n_nets + end - first);
}

/* The latest producers before a that clusters behind a read, from those of the fan in front. */
static void list_open(const psplit_i_fan_builder *b, const psplit_i_fan *before, psplit_i_fan *f) {
  const uint32_t front = f->first - 1; /* a */
  uint32_t i = front;
  while (i-- > before->first && f->n_open < PSPLIT_I_FAN_OPEN)
    if (b->last[i] > front) f->open[f->n_open++] = i;
  if (f->n_open < PSPLIT_I_FAN_OPEN && before->has_front && b->last[before->first - 1] > front)
    f->open[f->n_open++] = before->first - 1;
  for (uint32_t k = 0; k < before->n_open && f->n_open < PSPLIT_I_FAN_OPEN; k++)
    if (b->last[before->open[k]] > front) f->open[f->n_open++] = before->open[k];
}

/* Whether an open producer, d of them known, changes more than what is certain. */
static bool reads_inside_alone(const psplit_i_fan_builder *b, uint32_t d) {
  const psplit_i_instance *instance = b->instance;
  const uint32_t producer = b->fan->open[d - 1];
  for (uint32_t k = instance->inc_off[producer]; k < instance->inc_off[producer + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if (!(instance->inc[k] & 1) || !instance->net_forward[e]) continue;
    const psplit_i_fan_readers r = psplit_i_fan_readers_of(b, e);
    if (r.n_inner > 0 && !r.back && !r.behind) return true;
  }
  return false;
}

/* Of d open producers, from the lines of one less where what they send besides is certain. */
static psplit_i_fan_lines sends(psplit_i_fan_builder *b, uint32_t d) {
  if (d == 0 || reads_inside_alone(b, d)) return hull(b, d);
  return shifted(b, b->fan->send[d - 1], cost_of_end(b, d, false) - cost_of_end(b, d - 1, false));
}

/* Where the time that is left to the stage of z and what it receives are least together. */
static int64_t best_front(const psplit_i_fans *fans, const psplit_i_fan *f) {
  int64_t low = 0, high = f->time;
  while (low < high) {
    const int64_t x = low + (high - low) / 2;
    if (psplit_i_fan_at(fans, f->recv, x + 1) - psplit_i_fan_at(fans, f->recv, x) >= ONE)
      high = x;
    else
      low = x + 1;
  }
  return low;
}

static void make_fan(psplit_i_fan_builder *b, uint32_t k) {
  psplit_i_fan *f = &b->fans->fan[k];
  b->fan = f;
  for (uint32_t i = f->first; i < f->end; i++) f->time += b->min_time[i];
  f->back_time = f->has_back ? b->min_time[f->end] : 0;
  if (k > 0) list_open(b, f - 1, f);
  f->best_front = f->time; /* where nothing is known to cost */
  if (f->end - f->first > MOST_INSIDE) return;
  list_nets(b, k);
  for (uint32_t d = 0; d <= f->n_open && !b->cut.failed; d++) f->send[d] = sends(b, d);
  f->recv = receipts(b);
  if (!b->cut.failed) add_middle(b);
  if (!b->cut.failed) f->best_front = best_front(b->fans, f);
}

/* The blocks; false: numbers are too large. */
static bool lay_out(psplit_i_fan_builder *b, const uint32_t *ends, uint32_t n_blocks,
                    bool ends_in_separator) {
  psplit_i_fans *fans = b->fans;
  int64_t most = 0;
  for (uint32_t i = 0; i < b->instance->n; i++) most = psplit_i_sat_add_i64(most, b->min_time[i]);
  for (uint32_t e = 0; e < b->instance->n_nets; e++) {
    const int64_t fan = b->instance->net_off[e + 1] - b->instance->net_off[e];
    most = psplit_i_sat_add_i64(most, psplit_i_sat_mul_i64(b->send[e], fan));
    most = psplit_i_sat_add_i64(most, b->recv[e]);
  }
  fans->most = most;
  if (most >= PSPLIT_I_INF / (4 * (int64_t)ONE * PSPLIT_I_FAN_STEEPEST)) return false;
  for (uint32_t k = 0, first = 0; k < n_blocks; first = ends[k++]) {
    const bool back = k + 1 < n_blocks || ends_in_separator;
    fans->fan[fans->n++] = (psplit_i_fan){
      .first = first, .end = back ? ends[k] - 1 : ends[k], .has_front = k > 0, .has_back = back};
  }
  return true;
}

psplit_code psplit_i_fans_make(const psplit_i_instance *instance,
                               const psplit_i_automaton *automaton, int64_t limit,
                               psplit_i_budget *budget, bool *out_any, psplit_i_fans *out_fans) {
  const uint32_t n = instance->n, n_nets = instance->n_nets;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  *out_fans = (psplit_i_fans){0};
  *out_any = false;
  psplit_i_arena_init(&out_fans->arena, 0);
  uint32_t *sinks = PSPLIT_NEW(&scratch, uint32_t, n), *ends = PSPLIT_NEW(&scratch, uint32_t, n);
  int64_t *least = PSPLIT_NEW(&scratch, int64_t, n);
  psplit_i_fan_builder b = {.instance = instance,
                            .min_time = automaton->min_time,
                            .send = PSPLIT_NEW(&scratch, int64_t, n_nets),
                            .recv = PSPLIT_NEW(&scratch, int64_t, n_nets),
                            .last = PSPLIT_NEW(&scratch, uint32_t, n),
                            .net = PSPLIT_NEW(&scratch, uint32_t, n_nets),
                            .seen = PSPLIT_NEW(&scratch, uint32_t, n_nets),
                            .fans = out_fans,
                            .limit = limit,
                            .most_cuts = n > MANY ? FEW_CUTS : MOST_CUTS,
                            .budget = budget};
  psplit_code code = PSPLIT_NOMEM;
  if (scratch.failed) goto out;
  const uint32_t n_blocks = psplit_i_separators(instance, sinks, ends);
  out_fans->fan = PSPLIT_NEW(&out_fans->arena, psplit_i_fan, n_blocks);
  if (!out_fans->fan) goto out;
  code = PSPLIT_OK;
  psplit_i_spend(budget, 8 * (uint64_t)n + instance->net_off[n_nets]);
  if (!psplit_i_least_costs(instance, automaton, b.send, b.recv, least)) goto out;
  if (!lay_out(&b, ends, n_blocks, psplit_i_ends_in_separator(instance, sinks))) goto out;
  for (uint32_t i = 0; i < n; i++) b.last[i] = i;
  for (uint32_t e = 0; e < n_nets; e++) { /* consumers ascend */
    const uint32_t producer = instance->net_pin[instance->net_off[e]];
    const uint32_t consumer = instance->net_pin[instance->net_off[e + 1] - 1];
    if (instance->net_forward[e] && consumer > b.last[producer]) b.last[producer] = consumer;
  }
  for (uint32_t k = 0; k < out_fans->n && !b.cut.failed; k++) make_fan(&b, k);
  *out_any = true;
  code = b.cut.failed ? PSPLIT_NOMEM : PSPLIT_OK;
out:
  psplit_i_cut_network_fini(&b.cut);
  psplit_i_arena_fini(&scratch);
  if (code != PSPLIT_OK) psplit_i_fans_fini(out_fans);
  return code;
}

void psplit_i_fans_fini(psplit_i_fans *fans) {
  psplit_i_vec_fini(&fans->lines);
  psplit_i_arena_fini(&fans->arena);
}
