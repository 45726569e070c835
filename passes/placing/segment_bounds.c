#include "segment_bounds.h"

#include <string.h>

#include "cut_devices.h"

enum { WHOLE = 1024, MOST_DEVICES = PSPLIT_I_MOST_SEGMENT_DEVICES };

static const int64_t NEVER = INT64_MAX / 4;

static int64_t time_on(const psplit_problem *p, uint32_t node, uint32_t device) {
  return p->time_ns[(size_t)node * p->n_classes + p->devices[device].class_id];
}

static int64_t times(int64_t ns, int64_t by) {
  const int64_t product = psplit_i_sat_mul_i64(ns, by);
  return product < NEVER ? product : NEVER;
}

/* --- weighted mean over devices --- */

typedef struct pair {
  const psplit_problem *p;
  psplit_diag *diag;
  uint8_t *on_b;
  int64_t best_ns;
} pair;

/* The bound with weight / WHOLE for the first device: the value of the minimum cut. */
static psplit_code weigh(pair *w, uint32_t weight, int64_t *out_ns) {
  bool found;
  int64_t value;
  const psplit_i_device_cut what = {w->p->devices[0].class_id, w->p->devices[1].class_id, weight,
                                    WHOLE - weight, w->p->overlap ? 0 : 1};
  const psplit_code code = psplit_i_cut_devices(w->p, &what, w->diag, w->on_b, &found, &value);
  *out_ns = code == PSPLIT_OK && found ? value / WHOLE + (value % WHOLE > 0) : 0;
  if (*out_ns > w->best_ns) w->best_ns = *out_ns;
  return code;
}

/* A minimum of functions that are linear in the weight is concave, so ternary search applies. */
static psplit_code bound_pair(const psplit_problem *p, psplit_i_arena *arena, psplit_diag *diag,
                              int64_t *out_ns) {
  psplit_code code = PSPLIT_OK;
  pair w = {p, diag, psplit_i_arena_array(arena, p->n_nodes, sizeof(uint8_t)), 0};
  if (!w.on_b) return psplit_i_nomem(diag);
  for (uint32_t low = 0, high = WHOLE; high - low > 2;) {
    const uint32_t third = (high - low) / 3, a = low + third, b = high - third;
    int64_t a_ns, b_ns;
    PSPLIT_TRY(weigh(&w, a, &a_ns));
    PSPLIT_TRY(weigh(&w, b, &b_ns));
    if (a_ns < b_ns)
      low = a;
    else
      high = b;
  }
  *out_ns = w.best_ns;
out:
  return code;
}

/* Each node runs where its weighted time is least. Then the weight of the most loaded device is
 * increased. */
static int64_t bound_many(const psplit_problem *p) {
  enum { ROUNDS = 200, STEP = 32 };
  int64_t weight[MOST_DEVICES], best = 0;
  for (uint32_t d = 0; d < p->n_devices; d++) weight[d] = WHOLE;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    int64_t load[MOST_DEVICES] = {0}, sum = 0, whole = 0;
    uint32_t most = 0;
    for (uint32_t v = 0; v < p->n_nodes; v++) {
      uint32_t at = 0;
      int64_t least = INT64_MAX;
      for (uint32_t d = 0; d < p->n_devices; d++) {
        const int64_t ns = time_on(p, v, d);
        if (ns == PSPLIT_TIME_FORBIDDEN || times(ns, weight[d]) >= least) continue;
        least = times(ns, weight[d]);
        at = d;
      }
      if (least == INT64_MAX) return 0; /* no device runs it: there is no placement */
      sum = psplit_i_sat_add_i64(sum, least);
      load[at] = psplit_i_sat_add_i64(load[at], time_on(p, v, at));
    }
    for (uint32_t d = 0; d < p->n_devices; d++) {
      whole += weight[d];
      if (load[d] > load[most]) most = d;
    }
    const int64_t ns = sum / whole + (sum % whole > 0);
    if (sum < NEVER && ns > best) best = ns;
    weight[most] += weight[most] / STEP + 1;
  }
  return best;
}

psplit_code psplit_i_bound_devices(const psplit_problem *p, psplit_i_arena *arena,
                                   psplit_diag *diag, int64_t *out_ns) {
  *out_ns = 0;
  if (p->n_devices < 2) return PSPLIT_OK;
  if (p->n_devices == 2) return bound_pair(p, arena, diag, out_ns);
  *out_ns = bound_many(p);
  return PSPLIT_OK;
}

/* --- paths --- */

typedef struct paths {
  const psplit_problem *p;
  uint32_t *n_before, *net_off, *net; /* by node: number of reads; nets that it produces */
  /* [n_nodes][n_devices] earliest time at which all inputs are on the device */
  int64_t *ready_ns;
  uint32_t *open, n_open; /* nodes whose inputs are all known */
} paths;

static psplit_code prepare(paths *s, psplit_i_arena *arena, psplit_diag *diag) {
  const psplit_problem *p = s->p;
  s->n_before = psplit_i_arena_zeroed(arena, p->n_nodes, sizeof *s->n_before);
  s->net_off = psplit_i_arena_zeroed(arena, (size_t)p->n_nodes + 2, sizeof *s->net_off);
  s->net = psplit_i_arena_array(arena, p->n_nets, sizeof *s->net);
  s->open = psplit_i_arena_array(arena, p->n_nodes, sizeof *s->open);
  s->ready_ns =
    psplit_i_arena_zeroed(arena, (size_t)p->n_nodes * p->n_devices, sizeof *s->ready_ns);
  if (arena->failed) return psplit_i_nomem(diag);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    s->net_off[p->net_producer[e] + 2]++;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) s->n_before[p->net_consumer[k]]++;
  }
  for (uint32_t v = 0; v < p->n_nodes; v++) s->net_off[v + 2] += s->net_off[v + 1];
  for (uint32_t e = 0; e < p->n_nets; e++) s->net[s->net_off[p->net_producer[e] + 1]++] = e;
  for (uint32_t v = 0; v < p->n_nodes; v++)
    if (!s->n_before[v]) s->open[s->n_open++] = v;
  return PSPLIT_OK;
}

/* The earliest time at which a tensor can be on device `to`, if device d can compute it by
 * made_ns[d]. */
static int64_t arrives_ns(const paths *s, uint32_t net, const int64_t *made_ns, uint32_t to) {
  const psplit_problem *p = s->p;
  const bool stays = p->net_flags && p->net_flags[net] & PSPLIT_NET_UNCUTTABLE;
  const size_t row = (size_t)net * p->n_classes;
  int64_t least = made_ns[to];
  for (uint32_t from = 0; from < p->n_devices && !stays; from++) {
    if (from == to || made_ns[from] >= NEVER) continue;
    const int64_t ns = psplit_i_sat_add_i64(
      made_ns[from], psplit_i_sat_add_i64(p->net_send_ns[row + p->devices[from].class_id],
                                          p->net_recv_ns[row + p->devices[to].class_id]));
    if (ns < least) least = ns;
  }
  return least;
}

psplit_code psplit_i_bound_paths(const psplit_problem *p, psplit_i_arena *arena, psplit_diag *diag,
                                 int64_t *out_ns) {
  paths s = {.p = p};
  int64_t made_ns[MOST_DEVICES];
  *out_ns = 0;
  const psplit_code code = prepare(&s, arena, diag);
  if (code != PSPLIT_OK) return code;
  for (uint32_t i = 0; i < s.n_open; i++) {
    const uint32_t v = s.open[i];
    int64_t least = NEVER;
    for (uint32_t d = 0; d < p->n_devices; d++) {
      const int64_t ns = time_on(p, v, d);
      made_ns[d] = NEVER;
      if (ns != PSPLIT_TIME_FORBIDDEN)
        made_ns[d] = psplit_i_sat_add_i64(s.ready_ns[(size_t)v * p->n_devices + d], ns);
      if (made_ns[d] < least) least = made_ns[d];
    }
    if (least < NEVER && least > *out_ns) *out_ns = least;
    for (uint32_t k = s.net_off[v]; k < s.net_off[v + 1]; k++) {
      const uint32_t e = s.net[k];
      for (uint32_t d = 0; d < p->n_devices; d++) {
        const int64_t ns = arrives_ns(&s, e, made_ns, d);
        for (uint32_t c = p->net_off[e]; c < p->net_off[e + 1]; c++) {
          int64_t *ready = &s.ready_ns[(size_t)p->net_consumer[c] * p->n_devices + d];
          if (ns > *ready) *ready = ns;
        }
      }
      for (uint32_t c = p->net_off[e]; c < p->net_off[e + 1]; c++)
        if (--s.n_before[p->net_consumer[c]] == 0) s.open[s.n_open++] = p->net_consumer[c];
    }
  }
  return PSPLIT_OK;
}
