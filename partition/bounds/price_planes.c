/* Raises prices with a proximal bundle method (Lemarechal 1975, Kiwiel 1990). If m(p) is the value
 * of the best stage by prices p, then all clusters together are worth sum p(v) / m(p) stages, and
 * that is to be maximised. Every stage S found so far gives a cutting plane m(p) >= p(S). Each step
 * maximises the model that consists of these planes, minus a quadratic term for the distance from
 * the best prices so far (the center). Its dual has one variable per plane, the share of the stage
 * in a convex combination, and is solved by moving share from one stage to another. The solution is
 * inexact and may be so: the tables compute m(p) for integer prices p, and p / m(p) are valid
 * prices, also if some are negative, since a split contains each cluster once.
 *
 * Planes remain valid where the limit grows, so a few steps suffice there. Where it falls, stages
 * above the limit no longer bound m(p). With few clusters they are dropped. With many they are kept
 * as guesses until a trial refutes them, or until the model predicts no further gain.
 *
 * With point-to-point transfers, receivers have prices beside the clusters (receiver_prices.c),
 * which begin at 0: a stage is credited r(e) for each receiver of e that it pays for, and charged
 * r(e) if it receives e. Over a whole split this sums to zero, so the planes require that the
 * convex combination pays for as many receivers as it contains. */
#include <math.h>
#include <string.h>

#include "hash.h"
#include "planes_inside.h"

enum {
  TRACES = 3,         /* stages traced per pricing */
  NEAR = 512,         /* tables keep what reaches the best known value less a NEAR-th */
  LITTLE = 100,       /* further traced stages are kept within a LITTLE-th of the first */
  MOST_SHIFTS = 4000, /* exchanges of share in one dual solve */
  MOST_ALL = 480,     /* upper bound on the sum of absolute prices, in stages */
  FLAT = 8192,        /* converged: the predicted gain is below a FLAT-th of the sum */
  OUTLOOK = 4,     /* give up if OUTLOOK times the predicted gain does not reach what is needed */
  FIRST_LOOK = 16, /* the first step at which progress is judged, and the interval between */
  PATIENCE = 3,    /* null steps before the proximal term is tightened */
  RESERVED = 8,    /* steps whose cost is kept in reserve for a lower limit */
  /* steps without predicted gain, which inexact shares cause, before giving up */
  MOST_LOST = 20,
  ONE = PSPLIT_I_PRICING_ONE
};

static const double SHORTER = 0.8, LONGER = 1.5, FLAT_SHARE = 1e-4, LEAST_WEIGHT = 0.3, SHORT = 0.2,
                    LONG = 0.6;

typedef struct psplit_i_planes planes;

psplit_code psplit_i_planes_make(psplit_i_prices *prices, const psplit_i_instance *instance,
                                 psplit_i_arena *arena, planes **out) {
  planes *x = PSPLIT_NEW(arena, planes, 1);
  if (!x) return PSPLIT_NOMEM;
  x->prices = prices;
  x->n = x->n_clusters = prices->n;
  x->most_nets = instance->p2p ? instance->net_off[instance->n_nets] : 0;
  x->most = x->n + x->most_nets;
  x->net = PSPLIT_NEW(arena, uint32_t, x->most_nets);
  x->known_by = PSPLIT_NEW(arena, uint64_t, x->most_nets);
  x->receiver = PSPLIT_NEW(arena, int32_t, x->most_nets);
  x->paid = PSPLIT_NEW(arena, int8_t, x->most_nets);
  x->center = PSPLIT_NEW(arena, double, x->most);
  x->weight = PSPLIT_NEW(arena, double, x->most);
  x->slope = PSPLIT_NEW(arena, double, x->most);
  x->price = PSPLIT_NEW(arena, int32_t, x->most);
  x->side = PSPLIT_NEW(arena, uint8_t, x->n);
  x->has = PSPLIT_NEW(arena, int8_t, (size_t)PSPLIT_I_MOST_PLANES * x->most);
  x->product = PSPLIT_NEW(arena, double, (size_t)PSPLIT_I_MOST_PLANES *PSPLIT_I_MOST_PLANES);
  if (arena->failed) return PSPLIT_NOMEM;
  *out = x;
  return PSPLIT_OK;
}

/* Moves plane `from` to the position `to`, which is not behind it. */
static void move_plane(planes *x, uint32_t from, uint32_t to) {
  if (from == to) return;
  memcpy(x->has + (size_t)to * x->most, x->has + (size_t)from * x->most, x->n);
  for (uint32_t j = 0; j < x->n_planes; j++)
    x->product[to * PSPLIT_I_MOST_PLANES + j] = x->product[from * PSPLIT_I_MOST_PLANES + j];
  for (uint32_t j = 0; j < x->n_planes; j++)
    x->product[j * PSPLIT_I_MOST_PLANES + to] = x->product[j * PSPLIT_I_MOST_PLANES + from];
  x->share[to] = x->share[from];
  x->hash[to] = x->hash[from];
  x->fits[to] = x->fits[from];
  x->used[to] = x->used[from];
}

/* The value of a stage by the trial prices. */
static int64_t value_of(const planes *x, uint32_t plane) {
  const int8_t *has = x->has + (size_t)plane * x->most;
  int64_t value = 0;
  for (uint32_t v = 0; v < x->n; v++) value += (int64_t)has[v] * x->price[v];
  return value;
}

/* Drops the planes of stages above the limit whose value exceeds `most`. Returns whether there were
 * any. */
static bool drop_above(planes *x, int64_t most) {
  uint32_t n = 0, n_weighed = 0;
  for (uint32_t i = 0; i < x->n_planes; i++) {
    n_weighed += !x->fits[i];
    if (x->fits[i] || value_of(x, i) <= most) move_plane(x, i, n++);
  }
  const bool any = n < x->n_planes;
  psplit_i_spend(x->budget, (uint64_t)x->n * n_weighed / 8);
  x->n_planes = n;
  return any;
}

/* Recomputes which stages are within the limit, for those found at a larger limit or with coarser
 * loads. */
static void weigh_planes(planes *x, int64_t limit) {
  for (uint32_t i = 0; i < x->n_planes; i++) x->fits[i] = psplit_i_planes_load(x, i) <= limit;
  psplit_i_spend(x->budget, (uint64_t)x->n * x->n_planes / 2);
}

/* Starts at the current prices. */
static void begin(planes *x, int64_t limit, uint32_t n_parts) {
  double sum = 0;
  if (limit < x->limit || n_parts > x->n_parts) {
    weigh_planes(x, limit);
    if (!x->prices->many) drop_above(x, INT64_MIN);
  }
  x->limit = limit;
  x->n_parts = n_parts;
  x->sum = x->hope = 0;
  x->impossible = false;
  for (uint32_t v = 0; v < x->n_clusters; v++) {
    x->price[v] = x->prices->price[v];
    x->center[v] = (double)x->price[v] / ONE;
    sum += fabs(x->center[v]);
  }
  for (uint32_t v = x->n_clusters; v < x->n; v++) x->price[v] = (int32_t)(x->center[v] * ONE);
  if (x->n_planes > 0) return;
  for (uint32_t v = 0; v < x->n_clusters; v++) {
    const double far = fabs(x->center[v]) + LEAST_WEIGHT * sum / x->n_clusters;
    x->weight[v] = far * far;
  }
  x->length = 1;
}

/* The value of a stage by the first n entries of `value`. */
static double over(const planes *x, uint32_t plane, const double *value, uint32_t n) {
  const int8_t *has = x->has + (size_t)plane * x->most;
  double sum = 0;
  for (uint32_t v = 0; v < n; v++) sum += has[v] * value[v];
  return sum;
}

/* The position for a new plane: a free one, or the least recently used one without share.
 * PSPLIT_I_MOST_PLANES if all planes have share. */
static uint32_t place_of_new(const planes *x) {
  uint32_t at = PSPLIT_I_MOST_PLANES;
  if (x->n_planes < PSPLIT_I_MOST_PLANES) return x->n_planes;
  for (uint32_t i = 0; i < PSPLIT_I_MOST_PLANES; i++)
    if (x->share[i] <= 0 && (at == PSPLIT_I_MOST_PLANES || x->used[i] < x->used[at])) at = i;
  return at;
}

/* Adds the stage given by `side` and `paid`, unless it is already there. */
static void add_plane(planes *x, uint64_t hash, uint32_t step) {
  for (uint32_t i = 0; i < x->n_planes; i++)
    if (x->hash[i] == hash) {
      x->fits[i] = true;
      return;
    }
  const uint32_t at = place_of_new(x);
  if (at == PSPLIT_I_MOST_PLANES) return;
  int8_t *to = x->has + (size_t)at * x->most;
  x->n_planes += at == x->n_planes;
  for (uint32_t v = 0; v < x->n_clusters; v++) to[v] = x->side[v] == PSPLIT_I_INSIDE;
  for (uint32_t v = x->n_clusters; v < x->n; v++) to[v] = x->paid[x->net[v - x->n_clusters]];
  x->hash[at] = hash;
  x->used[at] = step;
  x->fits[at] = true;
  x->share[at] = 0;
  for (uint32_t i = 0; i < x->n_planes; i++) psplit_i_planes_multiply(x, at, i);
  psplit_i_spend(x->budget, (uint64_t)x->n * x->n_planes / 4);
}

/* Adds the stages whose value by the trial prices is about the largest. */
static void add_planes(planes *x, int64_t most, uint32_t step) {
  for (uint32_t k = 0; k < TRACES; k++) {
    int64_t value = 0;
    uint64_t hash = 0;
    if (!psplit_i_pricing_trace(x->pricing, k, x->side, x->n > x->n_clusters ? x->paid : NULL))
      continue;
    for (uint32_t v = 0; v < x->n_clusters; v++)
      if (x->side[v] == PSPLIT_I_INSIDE) {
        value += x->price[v];
        hash = psplit_i_splitmix64(hash, v);
      }
    for (uint32_t v = x->n_clusters; v < x->n; v++) {
      const int8_t paid = x->paid[x->net[v - x->n_clusters]];
      value += (int64_t)paid * x->price[v];
      if (paid > 1) hash = psplit_i_splitmix64(hash, ((uint64_t)v << 8) + (uint64_t)paid);
    }
    if (k == 0 || value > most - most / LITTLE) add_plane(x, hash, step);
  }
}

/* Solves the dual of the proximal problem: the shares of the planes in the convex combination. */
static void share_out(planes *x) {
  const double square = x->length * x->sum * x->sum;
  double all = 0;
  for (uint32_t i = 0; i < x->n_planes; i++) all += x->share[i];
  if (all <= 0) x->share[0] = all = 1;
  for (uint32_t i = 0; i < x->n_planes; i++) x->share[i] /= all;
  for (uint32_t i = 0; i < x->n_planes; i++) {
    double with = 0;
    for (uint32_t j = 0; j < x->n_planes; j++)
      with += x->product[i * PSPLIT_I_MOST_PLANES + j] * x->share[j];
    x->gradient[i] = square * with - x->sum * (over(x, i, x->center, x->n) +
                                               x->length * over(x, i, x->weight, x->n_clusters));
  }
  uint32_t k = 0;
  for (; k < MOST_SHIFTS; k++) {
    uint32_t low = 0, high = 0;
    for (uint32_t i = 0; i < x->n_planes; i++) {
      if (x->gradient[i] < x->gradient[low]) low = i;
      if (x->share[i] > 0 && (x->share[high] <= 0 || x->gradient[i] > x->gradient[high])) high = i;
    }
    const double *to = x->product + (size_t)low * PSPLIT_I_MOST_PLANES,
                 *from = x->product + (size_t)high * PSPLIT_I_MOST_PLANES;
    const double gap = x->gradient[high] - x->gradient[low];
    if (gap < FLAT_SHARE) break;
    const double curve = square * (to[low] + from[high] - 2 * to[high]);
    double part = curve > 0 ? gap / curve : 1;
    if (part > x->share[high]) part = x->share[high];
    x->share[low] += part;
    x->share[high] -= part;
    for (uint32_t i = 0; i < x->n_planes; i++) x->gradient[i] += square * part * (to[i] - from[i]);
  }
  psplit_i_spend(x->budget, (uint64_t)x->n_planes * (x->n_planes + x->n + k) / 4);
}

/* The largest coefficient of a price in a plane: 1 for a cluster, the number of receivers for a
 * net. */
static uint32_t most_of(const planes *x, uint32_t v) {
  if (v < x->n_clusters) return 1;
  return psplit_i_pricing_receivers(x->instance, x->net[v - x->n_clusters]);
}

/* Computes the next trial prices from the shares, in `slope` as reals and in `price` as integers,
 * and the gain that the model predicts for them. */
static void next_prices(planes *x, uint32_t step) {
  double sum = 0, all = 0, most = 0;
  share_out(x);
  for (uint32_t v = 0; v < x->n; v++) x->slope[v] = v < x->n_clusters;
  for (uint32_t i = 0; i < x->n_planes; i++) {
    if (x->share[i] <= 0) continue;
    const int8_t *has = x->has + (size_t)i * x->most;
    for (uint32_t v = 0; v < x->n; v++) x->slope[v] -= has[v] * (x->sum * x->share[i]);
    x->used[i] = step;
  }
  for (uint32_t v = 0; v < x->n; v++) {
    x->slope[v] = x->center[v] + x->length * x->weight[v] * x->slope[v];
    if (v < x->n_clusters) sum += x->slope[v];
    all += fabs(x->slope[v]) * most_of(x, v);
  }
  for (uint32_t i = 0; i < x->n_planes; i++) {
    const double value = over(x, i, x->slope, x->n);
    if (value > most) most = value;
  }
  x->hope = most > 0 ? sum / most - x->sum : -1;
  /* Only the proportions matter. The scale keeps the sum within that of the center and within
   * MOST_ALL. */
  double scale = sum > x->sum ? x->sum / sum : 1;
  if (all * scale > MOST_ALL) scale = MOST_ALL / all;
  for (uint32_t v = 0; v < x->n; v++) x->price[v] = (int32_t)(scale * x->slope[v] * ONE);
  psplit_i_spend(x->budget, (uint64_t)x->n_planes * x->n / 2);
}

/* A price divided by `most`, rounded down. At most ONE, since the price of a cluster that no stage
 * contains is unbounded. */
static int64_t part_of(int32_t price, int64_t most) {
  const int64_t all = (int64_t)price * ONE, part = all / most - (all % most < 0);
  return part < ONE ? part : ONE;
}

/* Makes the trial prices the new center if their sum is larger (a serious step). */
static bool take(planes *x, int64_t most) {
  int64_t sum = 0, large = 0;
  double all = 0;
  for (uint32_t v = 0; v < x->n; v++) {
    const int64_t part = part_of(x->price[v], most);
    if (v < x->n_clusters) sum += part;
    large += (part < 0 ? -part : part) * most_of(x, v);
  }
  if ((double)sum / ONE <= x->sum || large / ONE >= MOST_ALL) return false;
  for (uint32_t v = 0; v < x->n; v++) {
    const int32_t price = (int32_t)part_of(x->price[v], most);
    x->center[v] = (double)price / ONE;
    if (v >= x->n_clusters) continue;
    x->prices->price[v] = price;
    all += x->center[v];
  }
  x->sum = all;
  return true;
}

static int64_t together(const planes *x) {
  int64_t sum = 0;
  for (uint32_t v = 0; v < x->n_clusters; v++) sum += x->price[v];
  return sum;
}

/* A value just below that of the best known stage by the trial prices. */
static int64_t least_of(planes *x) {
  int64_t most = 0;
  for (uint32_t i = 0; i < x->n_planes; i++) {
    const int64_t value = x->fits[i] ? value_of(x, i) : 0;
    if (value > most) most = value;
  }
  psplit_i_spend(x->budget, (uint64_t)x->n_planes * x->n / 8);
  return most - most / NEAR;
}

/* Progress of the steps at one limit. */
typedef struct steps_seen {
  uint32_t most, n_idle, n_lost;
  double needed, before; /* `before`: the sum when progress was last judged */
  bool to_the_end;
} steps_seen;

/* Whether to stop: the model predicts little or too little gain, or the remaining steps would not
 * suffice at the rate of the last ones. */
static bool is_over(const planes *x, uint32_t step, steps_seen *seen) {
  if (x->hope < x->sum / FLAT && (x->hope >= 0 || ++seen->n_lost > MOST_LOST)) return true;
  if (step < FIRST_LOOK || seen->to_the_end) return false;
  if (x->sum + OUTLOOK * x->hope < seen->needed) return true;
  if (step % FIRST_LOOK > 0) return false;
  const double gained = x->sum - seen->before, n_looks = (double)(seen->most - step) / FIRST_LOOK;
  const bool late = step > FIRST_LOOK && x->sum + gained * n_looks < seen->needed;
  seen->before = x->sum;
  return late;
}

static const int32_t *receivers(const planes *x) {
  for (uint32_t v = x->n_clusters; v < x->n; v++)
    x->receiver[x->net[v - x->n_clusters]] = x->price[v];
  return x->n > x->n_clusters ? x->receiver : NULL;
}

static psplit_code go_up(planes *x, uint32_t n_steps, bool to_the_end) {
  steps_seen seen = {
    .most = n_steps, .needed = (double)x->prices->needed / ONE, .to_the_end = to_the_end};
  for (uint32_t k = 0; k < n_steps && x->sum <= seen.needed; k++) {
    int64_t most;
    bool done;
    const uint64_t spent = x->budget ? x->budget->spent : 0;
    if (k > 0) next_prices(x, k);
    if (k > 0 && is_over(x, k, &seen)) {
      if (!drop_above(x, INT64_MIN) || x->n_planes == 0) break;
      next_prices(x, k);
    }
    const int64_t least = least_of(x);
    const psplit_code code = psplit_i_pricing_above(x->pricing, x->limit, x->n_parts, x->price,
                                                    receivers(x), least, x->budget, &most, &done);
    if (code != PSPLIT_OK || !done) return code;
    x->prices->step = x->budget ? x->budget->spent - spent : 0;
    x->impossible = most <= 0 && together(x) > 0;
    if (most <= 0) break;
    drop_above(x, most);
    add_planes(x, most, k);
    const double before = x->sum;
    if (take(x, most) && k > 0) {
      if (x->sum - before > x->hope / 2) x->length *= LONGER;
      seen.n_idle = 0;
    } else if (k > 0 && ++seen.n_idle % PATIENCE == 0) {
      x->length *= SHORTER;
      const double shortest = x->prices->many ? LONG : SHORT;
      if (x->length < shortest) x->length = shortest;
    }
    if (x->n_planes == 0) break;
    const uint64_t whole_step = x->budget ? x->budget->spent - spent : 0;
    if (!to_the_end && psplit_i_budget_left(x->budget) < RESERVED * whole_step) break;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_prices_raise(planes *x, psplit_i_pricing *pricing,
                                  const psplit_i_instance *instance, int64_t limit,
                                  uint32_t n_parts, uint32_t n_steps, bool to_the_end,
                                  psplit_i_budget *budget, int64_t *out_sum) {
  x->pricing = pricing;
  x->budget = budget;
  psplit_code code = psplit_i_planes_take_nets(x, instance, limit);
  if (code != PSPLIT_OK) return code;
  begin(x, limit, n_parts);
  code = go_up(x, n_steps, to_the_end);
  x->prices->hope = x->hope;
  *out_sum = 0;
  for (uint32_t v = 0; v < x->n_clusters && x->sum > 0; v++) *out_sum += x->prices->price[v];
  if (x->impossible) *out_sum = x->prices->needed + 1;
  return code;
}
