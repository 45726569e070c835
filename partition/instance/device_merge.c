/* Merges device entries that no solver needs to distinguish: the work of every solver grows with
 * the number of entries. */
#include <string.h>

#include "device_merge.h"
#include "messages.h"
#include "pair_links.h"

static psplit_code merge(const psplit_problem *problem, const psplit_partition_options *options,
                         psplit_i_arena *arena, psplit_problem *out_problem, uint32_t *out_merged) {
  *out_problem = *problem;
  for (uint32_t d = 0; d < problem->n_devices; d++) out_merged[d] = d;
  if (options->max_replicas > 1) return PSPLIT_OK; /* copies stay within an entry */
  if (problem->n_link_classes) return psplit_i_pairs_merge(problem, options, arena, out_problem);
  psplit_device *devices = PSPLIT_NEW(arena, psplit_device, problem->n_devices);
  if (!devices) return PSPLIT_NOMEM;
  uint32_t n = 0;
  for (uint32_t d = 0; d < problem->n_devices; d++) {
    const psplit_device *device = &problem->devices[d];
    if (device->count == 0) { /* keeps no two entries apart */
      out_merged[d] = PSPLIT_NONE;
      continue;
    }
    uint32_t with = n;
    for (uint32_t k = problem->any_device_order || n == 0 ? 0 : n - 1; k < n && with == n; k++)
      if (psplit_i_entries_alike(&devices[k], device)) with = k;
    out_merged[d] = with;
    if (with == n)
      devices[n++] = *device;
    else
      devices[with].count += device->count;
  }
  if (n == 0) { /* no devices at all: the validator has said so */
    *out_problem = *problem;
    return PSPLIT_OK;
  }
  out_problem->devices = devices;
  out_problem->n_devices = n;
  return PSPLIT_OK;
}

psplit_code psplit_i_devices_merge(const psplit_problem *problem,
                                   const psplit_partition_options *options, psplit_i_arena *arena,
                                   psplit_problem *out_problem, uint32_t *out_merged) {
  const psplit_code code = merge(problem, options, arena, out_problem, out_merged);
  return code == PSPLIT_OK ? psplit_i_messages_mark(arena, NULL, out_problem) : code;
}

/* Devices in their order: stage s has the s-th, whether others in front of it hold something or
 * not. */
static psplit_code as_listed(const psplit_problem *problem, const uint32_t *merged,
                             const bool *holds, uint32_t *inout_device) {
  uint32_t s = 0;
  for (uint32_t d = 0; d < problem->n_devices; d++)
    for (uint32_t k = 0; k < problem->devices[d].count; k++, s++) {
      /* Links may make several types of one entry. */
      if (holds[s] && !problem->n_link_classes && merged[d] != inout_device[s])
        return PSPLIT_INTERNAL;
      inout_device[s] = d;
    }
  return PSPLIT_OK;
}

psplit_code psplit_i_devices_tell_apart(const psplit_problem *problem, const uint32_t *merged,
                                        const uint32_t *stage, psplit_i_arena *arena,
                                        uint32_t *inout_device) {
  const uint32_t n_stages = psplit_problem_n_stages(problem);
  uint32_t *left = PSPLIT_NEW(arena, uint32_t, problem->n_devices);
  bool *holds = PSPLIT_NEW(arena, bool, n_stages);
  if (!left || !holds) return PSPLIT_NOMEM;
  for (uint32_t d = 0; d < problem->n_devices; d++) left[d] = problem->devices[d].count;
  for (uint32_t v = 0; v < problem->n_nodes; v++) holds[stage[v]] = true;
  if (!problem->any_device_order) return as_listed(problem, merged, holds, inout_device);
  for (int pass = 0; pass < 2; pass++) /* empty stages get what is left */
    for (uint32_t s = 0; s < n_stages; s++) {
      if (holds[s] != (pass == 0)) continue;
      uint32_t d = 0;
      while (d < problem->n_devices &&
             (left[d] == 0 || (pass == 0 && merged[d] != inout_device[s])))
        d++;
      if (d == problem->n_devices) return PSPLIT_INTERNAL;
      left[d]--;
      inout_device[s] = d;
    }
  return PSPLIT_OK;
}

/* --- the lexicographically least of the best orders of devices --- */

enum { MOST_STATES = 1 << 16 }; /* counts of devices by type; an automaton has no more either */

/* What the stages of a split take on each type of device, [type * n_stages + stage]. */
typedef struct orders {
  const psplit_problem *problem; /* its entries are types */
  uint32_t n_stages;
  int64_t *w, *recv, *send; /* w: INF where some node cannot run */
  uint64_t *bytes;          /* [n_stages] */
  bool *holds;              /* [n_stages] something */
  uint32_t *mark;           /* [n_stages] */
} orders;

static void add_nodes(orders *o, const uint32_t *stage) {
  const psplit_problem *p = o->problem;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t s = stage[v];
    o->holds[s] = true;
    if (p->weight_bytes) o->bytes[s] += p->weight_bytes[v];
    if (p->activation_bytes)
      o->bytes[s] = psplit_i_sat_add_u64(
        o->bytes[s],
        psplit_i_sat_mul_u64(p->stash_1f1b ? o->n_stages - s : 1, p->activation_bytes[v]));
    for (uint32_t t = 0; t < p->n_devices; t++) {
      const int64_t ns = p->time_ns[(size_t)v * p->n_classes + p->devices[t].class_id];
      int64_t *w = &o->w[(size_t)t * o->n_stages + s];
      *w = ns == PSPLIT_TIME_FORBIDDEN || *w >= PSPLIT_I_INF ? PSPLIT_I_INF : *w + ns;
    }
  }
  memset(o->mark, 0xff, o->n_stages * sizeof *o->mark);
  for (uint32_t g = 0; g < p->n_weights; g++)
    for (uint32_t k = p->weight_off[g]; k < p->weight_off[g + 1]; k++) {
      const uint32_t s = stage[p->weight_user[k]];
      if (o->mark[s] == g) continue;
      o->mark[s] = g;
      o->bytes[s] += p->weight_group_bytes[g];
    }
}

/* Adds `times` what net e takes stage s to send or receive, on every type that pays. */
static void charge(orders *o, uint32_t e, uint32_t s, bool send, int64_t times) {
  for (uint32_t t = 0; t < o->problem->n_devices; t++)
    if (!o->problem->devices[t].free_comm)
      (send ? o->send : o->recv)[(size_t)t * o->n_stages + s] +=
        times * psplit_i_net_ns(o->problem, e, o->problem->devices[t].class_id, send);
}

static void add_nets(orders *o, const uint32_t *stage) {
  const psplit_problem *p = o->problem;
  memset(o->mark, 0xff, o->n_stages * sizeof *o->mark);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t home = stage[p->net_producer[e]];
    int64_t n_receivers = 0;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t s = stage[p->net_consumer[k]];
      if (s == home || o->mark[s] == e) continue;
      o->mark[s] = e;
      n_receivers++;
      charge(o, e, s, false, 1);
    }
    if (n_receivers) charge(o, e, home, true, p->comm == PSPLIT_COMM_SHARED ? 1 : n_receivers);
  }
}

/* Communication of stage s on a device of type t; INF where its load or memory does not fit. */
static int64_t cost_on(const orders *o, uint32_t s, uint32_t t, int64_t limit) {
  const psplit_device *device = &o->problem->devices[t];
  const size_t cell = (size_t)t * o->n_stages + s;
  const int64_t w = o->w[cell], recv = o->recv[cell], send = o->send[cell];
  if (!o->holds[s]) return 0;
  if (w >= PSPLIT_I_INF || (device->memory_bytes && o->bytes[s] > device->memory_bytes))
    return PSPLIT_I_INF;
  int64_t load = w + recv + send;
  if (o->problem->overlap) load = w > recv ? (w > send ? w : send) : recv > send ? recv : send;
  return load <= limit ? recv + send : PSPLIT_I_INF;
}

static bool orders_init(orders *o, const psplit_problem *types, psplit_i_arena *arena) {
  const uint32_t n = psplit_problem_n_stages(types);
  const size_t n_cells = (size_t)n * types->n_devices;
  *o = (orders){.problem = types,
                .n_stages = n,
                .w = PSPLIT_NEW(arena, int64_t, n_cells),
                .recv = PSPLIT_NEW(arena, int64_t, n_cells),
                .send = PSPLIT_NEW(arena, int64_t, n_cells),
                .bytes = PSPLIT_NEW(arena, uint64_t, n),
                .holds = PSPLIT_NEW(arena, bool, n),
                .mark = PSPLIT_NEW(arena, uint32_t, n)};
  return o->w && o->recv && o->send && o->bytes && o->holds && o->mark;
}

/* radix[t]: weight of type t's count in a state; the number of states, 0 where they are too many.
 */
static uint32_t number_states(const psplit_problem *types, uint32_t *radix) {
  uint64_t n_states = 1;
  for (uint32_t t = 0; t < types->n_devices; t++) {
    radix[t] = (uint32_t)n_states;
    n_states *= (uint64_t)types->devices[t].count + 1;
    if (n_states > MOST_STATES) return 0;
  }
  return (uint32_t)n_states;
}

static uint32_t count_in(const psplit_problem *types, const uint32_t *radix, uint32_t state,
                         uint32_t t) {
  return state / radix[t] % (types->devices[t].count + 1);
}

psplit_code psplit_i_devices_first(const psplit_problem *problem, const psplit_problem *types,
                                   const uint32_t *merged, const uint32_t *stage, int64_t limit,
                                   psplit_i_arena *arena, uint32_t *inout_device) {
  orders o;
  uint32_t *radix = PSPLIT_NEW(arena, uint32_t, types->n_devices);
  uint32_t *left = PSPLIT_NEW(arena, uint32_t, problem->n_devices);
  if (!radix || !left) return PSPLIT_NOMEM;
  const uint32_t n_states = number_states(types, radix);
  if (n_states == 0) return PSPLIT_OK;
  int64_t *least = PSPLIT_NEW(arena, int64_t, n_states); /* of the last stages, on such devices */
  if (!least || !orders_init(&o, types, arena)) return PSPLIT_NOMEM;
  add_nodes(&o, stage);
  add_nets(&o, stage);
  for (uint32_t c = 1; c < n_states; c++) {
    uint32_t n_used = 0;
    for (uint32_t t = 0; t < types->n_devices; t++) n_used += count_in(types, radix, c, t);
    least[c] = PSPLIT_I_INF;
    for (uint32_t t = 0; t < types->n_devices; t++) {
      if (count_in(types, radix, c, t) == 0) continue;
      const int64_t comm = least[c - radix[t]] + cost_on(&o, o.n_stages - n_used, t, limit);
      if (comm < least[c]) least[c] = comm;
    }
  }
  uint32_t c = n_states - 1; /* all devices */
  if (least[c] >= PSPLIT_I_INF) return PSPLIT_OK;
  for (uint32_t d = 0; d < problem->n_devices; d++) left[d] = problem->devices[d].count;
  for (uint32_t s = 0; s < o.n_stages; s++)
    for (uint32_t d = 0; d < problem->n_devices; d++) {
      const uint32_t t = merged[d];
      if (left[d] == 0 || least[c - radix[t]] + cost_on(&o, s, t, limit) != least[c]) continue;
      inout_device[s] = d;
      left[d]--;
      c -= radix[t];
      break;
    }
  return PSPLIT_OK;
}
