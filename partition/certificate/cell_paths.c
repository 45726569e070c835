/* Paths of a cell: a maximum flow from the clusters that are in to those that are out, by Dinic's
 * algorithm, decomposed into paths. A downset of the cell contains the producer of a path's first
 * tensor, but not its last consumer. So the path leaves the downset somewhere, and there a tensor
 * crosses. */
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "cut_network.h"

enum { SOURCE = PSPLIT_I_SOURCE, SINK = PSPLIT_I_SINK, MAX_PATHS = 64 };

/* What a pair of arcs represents: a consumer that receives a tensor, or nothing. */
typedef struct meaning {
  uint32_t net, consumer;
} meaning;

typedef struct network {
  const psplit_i_cells *cells;
  const psplit_i_cell *cell;
  psplit_i_cut_network cut;
  PSPLIT_VEC(meaning) meanings; /* by arc / 2 */
  uint32_t *place;              /* [n] */
} network;

static void add_arc(network *x, uint32_t from, uint32_t to, int64_t cap, meaning what) {
  psplit_i_cut_network_arc(&x->cut, from, to, cap);
  /* The network leaves out arcs that can never cost anything. */
  if (x->meanings.n < x->cut.flow.arcs.n / 2 && !psplit_i_vec_push(&x->meanings, what))
    x->cut.failed = true;
}

static void add_net(network *x, uint32_t e, int64_t cap) {
  const psplit_i_instance *instance = x->cells->instance;
  const uint32_t first = instance->net_off[e], end = instance->net_off[e + 1];
  const uint32_t producer = x->place[instance->net_pin[first]];
  const meaning none = {PSPLIT_NONE, PSPLIT_NONE};
  bool leads = false, crosses = false;
  for (uint32_t k = first + 1; k < end; k++) {
    leads |= x->place[instance->net_pin[k]] != SOURCE;
    crosses |= x->place[instance->net_pin[k]] == SINK;
  }
  /* Nets that certainly cross are counted without a path. */
  if (cap <= 0 || producer == SINK || !leads || (producer == SOURCE && crosses)) return;
  const uint32_t fan = psplit_i_cut_network_node(&x->cut);
  add_arc(x, producer, fan, cap, none);
  for (uint32_t k = first + 1; k < end; k++)
    add_arc(x, fan, x->place[instance->net_pin[k]], PSPLIT_I_INF,
            (meaning){e, instance->net_pin[k]});
}

static void build(network *x, const int64_t *cost) {
  const psplit_i_instance *instance = x->cells->instance;
  psplit_i_cut_network_begin(&x->cut);
  x->meanings.n = 0;
  for (uint32_t i = 0; i < instance->n && !x->cut.failed; i++)
    x->place[i] = psplit_i_holds(x->cell->in, i)    ? SOURCE
                  : psplit_i_holds(x->cell->out, i) ? SINK
                                                    : psplit_i_cut_network_node(&x->cut);
  for (uint32_t i = 0; i < instance->n && !x->cut.failed; i++)
    for (uint32_t k = instance->pred_off[i]; x->place[i] > SINK && k < instance->pred_off[i + 1];
         k++)
      add_arc(x, x->place[i], x->place[instance->pred[k]], PSPLIT_I_INF,
              (meaning){PSPLIT_NONE, PSPLIT_NONE});
  for (uint32_t e = 0; e < instance->n_nets && !x->cut.failed; e++) add_net(x, e, cost[e]);
}

static int64_t *flow_on(network *x, uint32_t arc) { return &x->cut.flow.arcs.items[arc ^ 1].cap; }

/* Subtracts `amount` from the arcs of a walk, from depth `from` on. */
static void take_off(network *x, const uint32_t *walk, uint32_t from, uint32_t to, int64_t amount) {
  for (uint32_t k = from; k < to; k++) *flow_on(x, walk[k]) -= amount;
}

static int64_t least_on(network *x, const uint32_t *walk, uint32_t from, uint32_t to) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t k = from; k < to; k++)
    if (*flow_on(x, walk[k]) < least) least = *flow_on(x, walk[k]);
  return least;
}

/* Finds a walk along the flow from source to sink, without cycles, in walk[nodes]. Returns its
 * length, 0 if there is none. at[nodes]: depth at which the walk met a node, or NONE. */
static uint32_t find_walk(network *x, uint32_t *walk, uint32_t *at) {
  const psplit_i_flow *flow = &x->cut.flow;
  uint32_t depth = 0, v = SOURCE;
  memset(at, 0xff, flow->head.n * sizeof *at);
  at[SOURCE] = 0;
  while (v != SINK) {
    uint32_t a = flow->head.items[v];
    while (a && ((a - 1) % 2 || *flow_on(x, a - 1) <= 0)) a = flow->arcs.items[a - 1].next;
    if (!a) return 0;
    const uint32_t to = flow->arcs.items[a - 1].to;
    walk[depth++] = a - 1;
    if (at[to] == PSPLIT_NONE) {
      at[to] = depth;
      v = to;
      continue;
    }
    const uint32_t from = at[to]; /* a cycle */
    take_off(x, walk, from, depth, least_on(x, walk, from, depth));
    for (uint32_t k = from; k + 1 < depth; k++) at[flow->arcs.items[walk[k]].to] = PSPLIT_NONE;
    depth = from;
    v = to;
  }
  return depth;
}

static bool add_path(network *x, psplit_i_cells *c, const uint32_t *walk, uint32_t length,
                     int64_t amount, psplit_i_path *out) {
  const psplit_i_instance *instance = c->instance;
  *out = (psplit_i_path){.amount = amount, .message = instance->makes_message};
  out->steps = psplit_i_arena_array(&c->arena, 2 * (size_t)length, sizeof *out->steps);
  out->pins = PSPLIT_NEW(&c->arena, uint64_t, c->words);
  if (!out->steps || !out->pins) return false;
  for (uint32_t k = 0; k < length; k++) {
    const meaning what = x->meanings.items[walk[k] / 2];
    if (what.net == PSPLIT_NONE) continue;
    out->steps[2 * out->n_steps] = what.net;
    out->steps[2 * out->n_steps++ + 1] = what.consumer;
    out->message = out->message && instance->makes_message[what.net];
    for (uint32_t l = instance->net_off[what.net]; l < instance->net_off[what.net + 1]; l++)
      out->pins[instance->net_pin[l] / 64] |= UINT64_C(1) << (instance->net_pin[l] % 64);
  }
  return true;
}

static bool take_apart(network *x, psplit_i_cells *c, psplit_i_path **out, uint32_t *out_n) {
  const size_t n = x->cut.flow.head.n;
  uint32_t *walk = malloc(2 * (n + 1) * sizeof *walk);
  uint32_t *at = walk ? walk + n + 1 : NULL;
  psplit_i_path paths[MAX_PATHS];
  uint32_t n_paths = 0;
  bool ok = walk != NULL;
  while (ok && n_paths < MAX_PATHS) {
    const uint32_t length = find_walk(x, walk, at);
    if (length == 0) break;
    const int64_t amount = least_on(x, walk, 0, length);
    take_off(x, walk, 0, length, amount);
    ok = add_path(x, c, walk, length, amount, &paths[n_paths++]);
  }
  free(walk);
  *out = psplit_i_arena_array(&c->arena, n_paths, sizeof **out);
  if (!ok || !*out) return false;
  memcpy(*out, paths, n_paths * sizeof *paths);
  *out_n = n_paths;
  return true;
}

psplit_code psplit_i_cell_paths_find(psplit_i_cells *c, psplit_i_cell *cell, int64_t enough,
                                     psplit_i_budget *budget) {
  network x = {.cells = c, .cell = cell};
  bool ok = true;
  if (cell->n_free == 0) return PSPLIT_OK;
  x.place = malloc((size_t)c->n * sizeof *x.place);
  ok = x.place != NULL;
  for (int sends = 0; sends < 2 && ok; sends++) {
    int64_t value = 0;
    build(&x, sends ? c->least_send : c->least_recv);
    ok = psplit_i_cut_network_raise(&x.cut, enough, budget, &value);
    psplit_i_spend(budget, x.cut.flow.arcs.n);
    if (ok && value > 0) ok = take_apart(&x, c, &cell->paths[sends], &cell->n_paths[sends]);
  }
  psplit_i_cut_network_fini(&x.cut);
  psplit_i_vec_fini(&x.meanings);
  free(x.place);
  return ok ? PSPLIT_OK : PSPLIT_NOMEM;
}
