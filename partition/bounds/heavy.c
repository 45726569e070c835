/* Chooses the heavy clusters and builds the problem of those alone. */
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "heavy_inside.h"

/* Of the work: the rest are the heaviest, by which fluids are told apart. */
static const double COARSE = 0.12;

enum { TIMES_PAID = 8 }; /* what nets cost, over the work that others take over for them */

typedef struct by_weight {
  int64_t min_time;
  uint32_t cluster;
} by_weight;

static int compare_weights(const void *a, const void *b) {
  const by_weight *x = a, *y = b;
  if (x->min_time != y->min_time) return x->min_time < y->min_time ? -1 : 1;
  return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

static int64_t least_time(const psplit_i_instance *instance, uint32_t i) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < instance->n_types; t++)
    if (instance->w[(size_t)t * instance->n + i] < least)
      least = instance->w[(size_t)t * instance->n + i];
  return least;
}

static int64_t least_cost(const psplit_i_instance *instance, const int64_t *cost, uint32_t e) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < instance->n_types; t++)
    if (cost[(size_t)t * instance->n_nets + e] < least)
      least = cost[(size_t)t * instance->n_nets + e];
  return least;
}

/* What the net to a cluster alone, and the one from it, cost at least: so much of its work others
 * may take over. 0 where nets from several, or several nets, would be lost with it. */
static int64_t may_pay(const psplit_i_instance *in, uint32_t i) {
  uint32_t n_in = 0, n_out = 0;
  int64_t sum = 0;
  for (uint32_t k = in->inc_off[i]; k < in->inc_off[i + 1]; k++) {
    const uint32_t e = in->inc[k] >> 1;
    const bool sends = in->inc[k] & 1;
    if (!sends && in->net_off[e + 1] - in->net_off[e] > 2) continue;
    if (++*(sends ? &n_out : &n_in) > 1) return 0;
    sum += least_cost(in, sends ? in->recv : in->send, e);
  }
  return sum;
}

/* Whether nets pay for all that a cluster computes, several times over. */
static bool is_paid(const psplit_i_instance *in, by_weight cluster) {
  return cluster.min_time <= may_pay(in, cluster.cluster) / TIMES_PAID;
}

static psplit_code choose(psplit_i_heavy_build *x, double light) {
  const uint32_t n = x->instance->n;
  double gone = 0;
  by_weight *list = PSPLIT_NEW(&x->scratch, by_weight, n);
  x->min_time = PSPLIT_NEW(&x->scratch, int64_t, n);
  x->number = PSPLIT_NEW(&x->scratch, uint32_t, n);
  x->kept = PSPLIT_NEW(&x->scratch, uint64_t, x->closure->words);
  x->coarse = PSPLIT_NEW(&x->scratch, uint64_t, x->closure->words);
  if (x->scratch.failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++) {
    x->min_time[i] = least_time(x->instance, i);
    x->total += (double)x->min_time[i];
    list[i] = (by_weight){x->min_time[i], i};
  }
  qsort(list, n, sizeof *list, compare_weights);
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = list[k].cluster;
    const uint64_t bit = UINT64_C(1) << (i % 64);
    gone += (double)list[k].min_time;
    const bool paid = light <= 0 && x->take_over && is_paid(x->instance, list[k]);
    const bool keep = gone > light * x->total && !paid;
    if (keep) x->kept[i / 64] |= bit;
    if (keep && gone > COARSE * x->total) x->coarse[i / 64] |= bit;
  }
  for (uint32_t i = 0; i < n; i++)
    x->number[i] = psplit_i_holds(x->kept, i) ? x->n_kept++ : PSPLIT_NONE;
  return PSPLIT_OK;
}

/* --- the problem --- */

typedef PSPLIT_VEC(uint32_t) numbers;

typedef struct lists {
  numbers producer, off, consumer;            /* nets */
  PSPLIT_VEC(int64_t) time[PSPLIT_I_N_SIDES]; /* by type */
  numbers from, to;                           /* order */
} lists;

static void lists_fini(lists *out) {
  psplit_i_vec_fini(&out->producer);
  psplit_i_vec_fini(&out->off);
  psplit_i_vec_fini(&out->consumer);
  for (int s = 0; s < PSPLIT_I_N_SIDES; s++) psplit_i_vec_fini(&out->time[s]);
  psplit_i_vec_fini(&out->from);
  psplit_i_vec_fini(&out->to);
}

/* A net from a kept cluster that costs what these sides of net e cost. */
static bool add_net(const psplit_i_heavy_build *x, uint32_t e, uint32_t from, unsigned sides,
                    const uint64_t *to, lists *out) {
  const psplit_i_instance *in = x->instance;
  if (psplit_i_no_bits(to, x->words)) return true;
  bool ok = psplit_i_vec_push(&out->producer, from);
  for (uint32_t k = 0; k < x->words; k++)
    for (uint64_t bits = to[k]; bits; bits &= bits - 1)
      ok &= psplit_i_vec_push(&out->consumer, k * 64 + (uint32_t)__builtin_ctzll(bits));
  ok &= psplit_i_vec_push(&out->off, (uint32_t)out->consumer.n);
  for (uint32_t t = 0; t < in->n_types; t++)
    for (unsigned s = 0; s < PSPLIT_I_N_SIDES; s++)
      ok &= psplit_i_vec_push(&out->time[s],
                              sides >> s & 1 ? x->cost[s][(size_t)t * in->n_nets + e] : 0);
  return ok;
}

static bool list_nets(const psplit_i_heavy_build *x, lists *out) {
  enum { RECEIVES = 1 << PSPLIT_I_RECEIVES, SENDS = 1 << PSPLIT_I_SENDS };
  const psplit_i_instance *in = x->instance;
  bool ok = psplit_i_vec_push(&out->off, 0);
  for (uint32_t e = 0; e < in->n_nets && ok; e++) {
    const uint32_t from = x->number[in->net_pin[in->net_off[e]]];
    const uint64_t *receives = x->to[PSPLIT_I_RECEIVES] + (size_t)e * x->words;
    const uint64_t *sends = x->to[PSPLIT_I_SENDS] + (size_t)e * x->words;
    if (from == PSPLIT_NONE) continue;
    if (memcmp(receives, sends, x->words * sizeof *sends) == 0)
      ok = add_net(x, e, from, RECEIVES | SENDS, sends, out);
    else
      ok = add_net(x, e, from, RECEIVES, receives, out) && add_net(x, e, from, SENDS, sends, out);
  }
  return ok;
}

static bool add_order(uint32_t from, uint32_t to, lists *out) {
  return psplit_i_vec_push(&out->from, from) && psplit_i_vec_push(&out->to, to);
}

/* The order of what is kept, without what follows from the rest of it. scratch[closure words]. */
static bool order_kept(const psplit_i_heavy_build *x, uint64_t *scratch, lists *out) {
  const uint32_t words = x->closure->words;
  bool ok = true;
  for (uint32_t u = 0; ok && u < x->instance->n; u++) {
    const uint64_t *behind = x->closure->behind + (size_t)u * words;
    if (!psplit_i_is_kept(x, u)) continue;
    for (uint32_t k = 0; k < words; k++) scratch[k] = behind[k] & x->kept[k];
    scratch[u / 64] &= ~(UINT64_C(1) << (u % 64));
    for (uint32_t k = u / 64; k < words; k++)
      while (scratch[k] && ok) {
        const uint32_t v = k * 64 + (uint32_t)__builtin_ctzll(scratch[k]);
        ok = add_order(x->number[u], x->number[v], out);
        for (uint32_t w = k; w < words; w++)
          scratch[w] &= ~x->closure->behind[(size_t)v * words + w];
        psplit_i_spend(x->budget, words / 4 + 1);
      }
  }
  return ok;
}

/* The pieces of fluids one behind the other, between what they flow between. */
static bool order_fluids(const psplit_i_heavy_build *x, lists *out) {
  uint32_t first = x->n_kept;
  bool ok = true;
  for (uint32_t f = 0; f < x->n_fluids; f++) {
    const psplit_i_fluid *fluid = &x->fluids[f];
    const uint32_t last = first + fluid->n_pieces - 1;
    for (uint32_t i = 0; ok && i < x->instance->n; i++) {
      const uint32_t number = x->number[i];
      if (psplit_i_holds(fluid->before, i)) ok = add_order(number, first, out);
      if (psplit_i_holds(fluid->behind, i)) ok = ok && add_order(last, number, out);
    }
    for (uint32_t k = first; ok && k < last; k++) ok = add_order(k, k + 1, out);
    first = last + 1;
  }
  return ok;
}

/* A copy of a list that the arena owns. */
static const void *give(psplit_i_arena *arena, const void *items, size_t n, size_t size) {
  void *copy = psplit_i_arena_array(arena, n, size);
  if (copy && n) memcpy(copy, items, n * size);
  return copy;
}

static psplit_code write_lists(psplit_i_heavy_build *x, psplit_i_arena *arena, psplit_problem *p) {
  lists list = {0};
  psplit_code code = PSPLIT_NOMEM;
  uint64_t *scratch = PSPLIT_NEW(&x->scratch, uint64_t, x->closure->words);
  if (!scratch || !list_nets(x, &list) || !order_kept(x, scratch, &list) || !order_fluids(x, &list))
    goto out;
  p->n_nets = (uint32_t)list.producer.n;
  p->net_producer = give(arena, list.producer.items, list.producer.n, sizeof(uint32_t));
  p->net_off = give(arena, list.off.items, list.off.n, sizeof(uint32_t));
  p->net_consumer = give(arena, list.consumer.items, list.consumer.n, sizeof(uint32_t));
  const size_t n_times = list.time[PSPLIT_I_SENDS].n;
  p->net_send_ns = give(arena, list.time[PSPLIT_I_SENDS].items, n_times, sizeof(int64_t));
  p->net_recv_ns = give(arena, list.time[PSPLIT_I_RECEIVES].items, n_times, sizeof(int64_t));
  p->n_order = (uint32_t)list.from.n;
  p->order_from = give(arena, list.from.items, list.from.n, sizeof(uint32_t));
  p->order_to = give(arena, list.to.items, list.to.n, sizeof(uint32_t));
  if (!arena->failed) code = PSPLIT_OK;
out:
  lists_fini(&list);
  return code;
}

/* Weights that clusters share are left out, too; pieces of fluids have no bytes. */
static psplit_code write_nodes(const psplit_i_heavy_build *x, psplit_i_arena *arena,
                               psplit_i_heavy *out) {
  const psplit_i_instance *in = x->instance;
  const uint32_t n_types = in->n_types;
  uint32_t n_nodes = x->n_kept;
  for (uint32_t f = 0; f < x->n_fluids; f++) n_nodes += x->fluids[f].n_pieces;
  psplit_device *devices = PSPLIT_NEW(arena, psplit_device, n_types);
  int64_t *time = PSPLIT_NEW(arena, int64_t, (size_t)n_nodes * n_types);
  uint64_t *weights = PSPLIT_NEW(arena, uint64_t, n_nodes);
  uint64_t *activations = PSPLIT_NEW(arena, uint64_t, n_nodes);
  uint32_t *pin = PSPLIT_NEW(arena, uint32_t, n_nodes);
  out->cluster = PSPLIT_NEW(arena, uint32_t, x->n_kept);
  if (arena->failed) return PSPLIT_NOMEM;
  for (uint32_t t = 0; t < n_types; t++) {
    devices[t] = in->problem->devices[t];
    devices[t].class_id = t;
  }
  for (uint32_t i = 0, k = 0; i < in->n; i++) {
    if (!psplit_i_is_kept(x, i)) continue;
    out->cluster[k] = i;
    weights[k] = in->weight_bytes[i];
    activations[k] = in->act_bytes[i];
    pin[k] = in->pin[i];
    for (uint32_t t = 0; t < n_types; t++) {
      const int64_t w = x->time[(size_t)t * in->n + i];
      time[(size_t)k * n_types + t] = w >= PSPLIT_I_INF ? PSPLIT_TIME_FORBIDDEN : w;
    }
    k++;
  }
  for (uint32_t k = x->n_kept; k < n_nodes; k++) {
    pin[k] = PSPLIT_NONE;
    for (uint32_t t = 0; t < n_types; t++) time[(size_t)k * n_types + t] = x->piece;
  }
  out->n_kept = x->n_kept;
  out->slack = x->piece * x->n_fluids;
  out->problem = (psplit_problem){.n_nodes = n_nodes,
                                  .n_classes = n_types,
                                  .time_ns = time,
                                  .weight_bytes = weights,
                                  .activation_bytes = activations,
                                  .pin = in->has_pins ? pin : NULL,
                                  .n_devices = n_types,
                                  .devices = devices,
                                  .comm = in->problem->comm,
                                  .overlap = in->overlap,
                                  .any_device_order = in->problem->any_device_order,
                                  .stash_1f1b = in->stash,
                                  .ticks_per_unit = in->problem->ticks_per_unit};
  return PSPLIT_OK;
}

psplit_code psplit_i_heavy_make(const psplit_i_instance *instance, const psplit_i_closure *closure,
                                double light, bool take_over, psplit_i_arena *arena,
                                psplit_i_budget *budget, psplit_i_heavy *out) {
  psplit_i_heavy_build x = {.instance = instance,
                            .closure = closure,
                            .budget = budget,
                            .take_over = take_over && !instance->overlap};
  psplit_code code;
  psplit_i_arena_init(&x.scratch, 0);
  PSPLIT_TRY(choose(&x, light));
  PSPLIT_TRY(psplit_i_heavy_nets(&x));
  PSPLIT_TRY(psplit_i_fluids_find(&x));
  PSPLIT_TRY(write_nodes(&x, arena, out));
  PSPLIT_TRY(write_lists(&x, arena, &out->problem));
out:
  psplit_i_arena_fini(&x.scratch);
  return code;
}
