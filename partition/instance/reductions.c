/* Lossless reductions. Rule M: v has one predecessor u, in stage a, and sits in stage b. Moving v
 * to a keeps the order. Stage a gains w(v) and what v's other nets cost there, and saves the
 * sending of the nets {u, v}; stage b loses w(v) and the receiving of {u, v}, and pays at most for
 * v's other nets. When both balances are <= 0 on every type, no stage gets worse. The same with the
 * only successor. A move to the predecessor only lowers numbers of stages, so where the sum of
 * communication does not grow either, the first of the splits that send least has made it. */
#include <stdlib.h>
#include <string.h>

#include "automaton.h"
#include "instance.h"
#include "problem.h"
#include "reductions.h"
#include "union_find.h"

typedef struct kernel {
  const psplit_core *core;
  const psplit_machine *machine;
  psplit_arena arena;
  bool
    keep_first;   /* what is united must share a stage in the first of the splits that send least */
  bool symmetric; /* shared, and every net costs sender and receiver the same */
  bool memory_binds;
  uint32_t *joins;      /* [n] item whose stage this one has moved to; NONE */
  bool *moved;          /* [n] item is part of a merge of this round */
  uint32_t *first_node; /* [n] */
} kernel;

static bool is_symmetric(const psplit_core *core) {
  if (core->p2p) return false;
  for (size_t k = 0; k < (size_t)core->n_types * core->n_nets; k++)
    if (core->send[k] != core->recv[k]) return false;
  return true;
}

static bool may_bind(const psplit_core *core) {
  if (!core->has_memory) return false;
  uint64_t total = 0, least = UINT64_MAX;
  for (uint32_t i = 0; i < core->n; i++)
    total += core->weight_bytes[i] + core->act_bytes[i] * (core->stash ? core->n_stages : 1);
  for (uint32_t g = 0; g < core->n_groups; g++) total += core->group_bytes[g];
  for (uint32_t t = 0; t < core->n_types; t++) {
    const uint64_t bytes = core->problem->devices[t].memory_bytes;
    if (bytes && bytes < least) least = bytes;
  }
  return total > least;
}

static bool has_bytes(const psplit_core *core, uint32_t v) {
  return core->weight_bytes[v] || core->act_bytes[v] || core->own_off[v + 1] > core->own_off[v];
}

/* Is u a pin of net e? Pins after the first are sorted. */
static bool touches(const psplit_core *core, uint32_t e, uint32_t u) {
  if (core->net_pin[core->net_off[e]] == u) return true;
  uint32_t low = core->net_off[e] + 1, high = core->net_off[e + 1];
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (core->net_pin[middle] < u)
      low = middle + 1;
    else
      high = middle;
  }
  return low < core->net_off[e + 1] && core->net_pin[low] == u;
}

/* Balances of the two stages on type t when v joins its only neighbour u: both must be <= 0. */
typedef struct balance {
  int64_t joined, left;
} balance;

/* Nothing here asks which stage comes first, or in which direction a net runs. */
static bool weigh(const kernel *k, uint32_t v, uint32_t u, uint32_t t, balance *out) {
  const psplit_core *core = k->core;
  const int64_t w = core->w[(size_t)t * core->n + v];
  if (w >= PSPLIT_I_INF) return false;
  out->joined = w;
  out->left = -w;
  for (uint32_t l = core->inc_off[v]; l < core->inc_off[v + 1]; l++) {
    const uint32_t e = core->inc[l] >> 1, size = core->net_off[e + 1] - core->net_off[e];
    const bool sends = core->inc[l] & 1, with_u = touches(core, e, u);
    const int64_t send = core->send[(size_t)t * core->n_nets + e];
    const int64_t recv = core->recv[(size_t)t * core->n_nets + e];
    if (sends) { /* u's stage does now, and v's old one may receive it */
      const int64_t others = (int64_t)size - 1 - with_u;
      out->joined += send * (core->p2p || others == 0 ? others : 1) - (with_u ? recv : 0);
      out->left += (others > 0 ? recv : 0) - (with_u ? send : 0);
    } else if (with_u) { /* u's stage has it already */
      if (size > 2) continue;
      out->joined -= send;
      out->left -= recv;
    } else if (core->p2p && size > 2 && send > 0) {
      return false; /* whoever sends it may have one receiver more */
    } else {
      out->joined += recv;
      out->left += send;
    }
  }
  return true;
}

static bool rule_m(const kernel *k, uint32_t v, uint32_t u) {
  const psplit_core *core = k->core;
  if (core->pin[v] != PSPLIT_NONE) return false;
  if (k->memory_binds && has_bytes(core, v)) return false;
  if (k->machine->replicated && has_bytes(core, v)) return false;
  int64_t more = -PSPLIT_I_INF, less = -PSPLIT_I_INF; /* communication of the two stages */
  for (uint32_t t = 0; t < core->n_types; t++) {
    balance b;
    if (k->machine->count[t] == 0) continue;
    if (!weigh(k, v, u, t, &b) || b.joined > 0 || b.left > 0) return false;
    const int64_t w = core->w[(size_t)t * core->n + v];
    if (b.joined - w > more) more = b.joined - w;
    if (b.left + w > less) less = b.left + w;
  }
  return !k->keep_first || more + less <= 0;
}

/* Item v moves to the stage of u. One merge per item and round: conditions are checked against
 * unmerged items. */
static void join(kernel *k, uint32_t *parent, uint32_t v, uint32_t u) {
  psplit_i_unite(parent, k->first_node[v], k->first_node[u]);
  k->moved[v] = k->moved[u] = true;
  k->joins[v] = u;
}

/* Without an order, every net {u, v} makes u a candidate. */
static bool apply_rule_m_unordered(kernel *k, uint32_t *parent) {
  const psplit_core *core = k->core;
  bool any = false;
  for (uint32_t v = 0; v < core->n && k->symmetric; v++)
    for (uint32_t l = core->inc_off[v]; l < core->inc_off[v + 1] && !k->moved[v]; l++) {
      const uint32_t e = core->inc[l] >> 1, at = core->net_off[e];
      if (core->net_off[e + 1] - at != 2) continue;
      const uint32_t u = core->net_pin[at] == v ? core->net_pin[at + 1] : core->net_pin[at];
      if (!k->moved[u] && rule_m(k, v, u)) join(k, parent, v, u), any = true;
    }
  return any;
}

static bool apply_rule_m(kernel *k, uint32_t *parent) {
  const psplit_core *core = k->core;
  bool any = false;
  if (core->unordered) return apply_rule_m_unordered(k, parent);
  for (uint32_t v = 0; v < core->n; v++) {
    const uint32_t n_pred = core->pred_off[v + 1] - core->pred_off[v];
    const uint32_t n_succ = core->succ_off[v + 1] - core->succ_off[v];
    const uint32_t u = n_pred == 1 ? core->pred[core->pred_off[v]] : PSPLIT_NONE;
    const uint32_t s = n_succ == 1 ? core->succ[core->succ_off[v]] : PSPLIT_NONE;
    if (k->moved[v]) continue;
    if (u != PSPLIT_NONE && !k->moved[u] && rule_m(k, v, u))
      join(k, parent, v, u), any = true;
    else if (s != PSPLIT_NONE && !k->keep_first && !k->moved[s] && rule_m(k, v, s))
      join(k, parent, v, s), any = true;
  }
  return any;
}

/* What each net costs at least, whoever sends or receives it. */
typedef struct least_costs {
  int64_t *send, *recv; /* [n_nets] */
} least_costs;

static bool find_least_costs(kernel *k, least_costs *out) {
  const psplit_core *core = k->core;
  out->send = PSPLIT_NEW(&k->arena, int64_t, core->n_nets);
  out->recv = PSPLIT_NEW(&k->arena, int64_t, core->n_nets);
  if (!out->send || !out->recv) return false;
  for (uint32_t e = 0; e < core->n_nets; e++) {
    out->send[e] = out->recv[e] = PSPLIT_I_INF;
    for (uint32_t t = 0; t < core->n_types; t++) {
      if (k->machine->count[t] == 0) continue;
      const size_t cell = (size_t)t * core->n_nets + e;
      if (core->send[cell] < out->send[e]) out->send[e] = core->send[cell];
      if (core->recv[cell] < out->recv[e]) out->recv[e] = core->recv[cell];
    }
  }
  return true;
}

/* What a stage with x pays at least for nets that it shares with each other item, if that one is
 * not in the stage: x's own it sends, the other's it receives, and one of a third item it sends or
 * receives. */
typedef struct shared_costs {
  int64_t *paid;   /* [n] by the other item */
  uint32_t *items; /* [n] those with a cost */
  uint32_t n_items;
} shared_costs;

static void add_shared_costs(const psplit_core *core, const least_costs *least, uint32_t x,
                             shared_costs *out) {
  enum { MOST_SIBLINGS = 64 }; /* pins of a net whose consumers are compared with each other */
  for (uint32_t l = core->inc_off[x]; l < core->inc_off[x + 1]; l++) {
    const uint32_t e = core->inc[l] >> 1, first = core->net_off[e];
    const bool sends = core->inc[l] & 1;
    const uint32_t n_pins = core->net_off[e + 1] - first;
    const uint32_t end = first + (sends || n_pins <= MOST_SIBLINGS ? n_pins : 1);
    const int64_t either = least->send[e] < least->recv[e] ? least->send[e] : least->recv[e];
    for (uint32_t at = first; at < end; at++) {
      const uint32_t y = core->net_pin[at];
      const int64_t cost = sends ? least->send[e] : at == first ? least->recv[e] : either;
      if (y == x || cost == 0) continue;
      if (!out->paid[y]) out->items[out->n_items++] = y;
      out->paid[y] = psplit_i_sat_add_i64(out->paid[y], cost);
    }
  }
}

/* Where a stage with x and without y would be above the limit, they share one: neighbours, and
 * siblings that read the same. */
static psplit_code apply_limit(kernel *k, int64_t limit, uint32_t *parent, bool *out_any) {
  const psplit_core *core = k->core;
  least_costs least;
  shared_costs shared = {0};
  *out_any = false;
  for (uint32_t t = 0; t < core->n_types; t++) /* someone may take a cut net for nothing */
    if (core->problem->devices[t].free_comm && k->machine->count[t] > 0) return PSPLIT_OK;
  if (k->machine->replicated || core->overlap) return PSPLIT_OK;
  shared.paid = PSPLIT_NEW(&k->arena, int64_t, core->n);
  shared.items = PSPLIT_NEW(&k->arena, uint32_t, core->n);
  if (!shared.paid || !shared.items || !find_least_costs(k, &least)) return PSPLIT_NOMEM;
  for (uint32_t x = 0; x < core->n; x++) {
    add_shared_costs(core, &least, x, &shared);
    for (; shared.n_items; shared.n_items--) {
      const uint32_t y = shared.items[shared.n_items - 1];
      if (psplit_i_sat_add_i64(shared.paid[y], k->machine->omega[x]) > limit)
        *out_any |= psplit_i_unite(parent, k->first_node[x], k->first_node[y]);
      shared.paid[y] = 0;
    }
  }
  return PSPLIT_OK;
}

/* Makes the moves of the round in a split of the nodes. */
static void carry(const kernel *k, uint32_t *stage) {
  const psplit_core *core = k->core;
  for (uint32_t v = 0; v < core->problem->n_nodes; v++) {
    const uint32_t u = k->joins[core->item_of_node[v]];
    if (u != PSPLIT_NONE) stage[v] = stage[k->first_node[u]];
  }
}

psplit_code psplit_i_kernel_carrying(psplit_core *core, const psplit_machine *machine,
                                     int64_t limit, bool keep_first, uint32_t *parent,
                                     uint32_t *stage, psplit_diag *diag) {
  const psplit_problem *problem = core->problem;
  const bool use_m = !machine->all_used && !core->overlap;
  for (uint32_t round = 0; round < 64; round++) {
    kernel k = {.core = core, .machine = machine, .keep_first = keep_first};
    psplit_i_arena_init(&k.arena, 0);
    k.moved = PSPLIT_NEW(&k.arena, bool, core->n);
    k.first_node = PSPLIT_NEW(&k.arena, uint32_t, core->n);
    k.joins = PSPLIT_NEW(&k.arena, uint32_t, core->n);
    psplit_code code = k.moved && k.first_node && k.joins ? PSPLIT_OK : PSPLIT_NOMEM;
    bool any = false;
    if (code == PSPLIT_OK) {
      for (uint32_t v = problem->n_nodes; v-- > 0;) k.first_node[core->item_of_node[v]] = v;
      memset(k.joins, 0xff, core->n * sizeof *k.joins);
      k.symmetric = is_symmetric(core);
      k.memory_binds = may_bind(core);
      /* machine->omega belongs to the core it was made for: the limit rule needs that one. */
      if (round == 0 && limit < PSPLIT_I_INF) code = apply_limit(&k, limit, parent, &any);
      if (!any) any = use_m && apply_rule_m(&k, parent);
      if (stage) carry(&k, stage);
    }
    psplit_i_arena_fini(&k.arena);
    if (code != PSPLIT_OK) return psplit_i_nomem(diag);
    if (!any) break;
    psplit_core next;
    code = core->unordered ? psplit_i_core_init_unordered(&next, problem, parent, diag)
                           : psplit_i_core_init(&next, problem, parent, diag);
    if (code != PSPLIT_OK) return code;
    psplit_i_core_fini(core);
    *core = next;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_kernel(psplit_core *core, const psplit_machine *machine, int64_t limit,
                            uint32_t *parent, psplit_diag *diag) {
  return psplit_i_kernel_carrying(core, machine, limit, false, parent, NULL, diag);
}
