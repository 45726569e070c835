/* Lossless reductions.
 *
 * Rule M (an exchange argument): let v have one predecessor u, in stage a, and lie in stage b.
 * Moving v to a keeps the order. Stage a gains w(v) and what v's other nets cost there, and saves
 * the sending of the nets {u, v}; stage b loses w(v) and the receiving of {u, v}, and pays at most
 * for v's other nets. When both balances are <= 0 on every type, no load rises: some best split has
 * v with u. The same holds for an only successor. A move to the predecessor only lowers stage
 * numbers, so where the sum of communication does not grow either, the lexicographically least of
 * the splits that send least has v with u.
 *
 * Over links between pairs of devices only the nets {u, v} are sure to be saved, at the least that
 * they can take; any other net of v, but one from u, must cost nothing. The same where messages
 * count, whose time other nets may keep up. By shared memory a stage sends one message for all, and
 * receives one: the two stages do so before and after where a net {u, v} makes one, in the
 * direction of v's other nets that do.
 *
 * Limit rule (monotonicity): a stage with x and without y has a load of at least w(x) and the nets
 * that they share. Where that is above the limit, x and y share a stage in every split within
 * it. */
#include <string.h>

#include "automaton.h"
#include "bisect.h"
#include "budget.h"
#include "instance.h"
#include "problem.h"
#include "reductions.h"
#include "union_find.h"

enum {
  MOST_ROUNDS = 64,
  ROUND_OPS = 12 /* for a node or a pin */
};

typedef struct reduction {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_arena arena;
  /* Keep the lexicographically least of the splits that send least: what is united shares a stage
   * there. */
  bool keep_first;
  bool symmetric; /* shared, and every net costs sender and receiver the same */
  bool memory_binds;
  uint32_t *joins;         /* [n] cluster whose stage this one has moved to; NONE */
  bool *moved;             /* [n] cluster is part of a merge of this round */
  uint32_t *first_node;    /* [n] */
  psplit_i_merge_log *log; /* may be NULL */
} reduction;

static bool is_symmetric(const psplit_i_instance *instance) {
  if (instance->p2p) return false;
  for (size_t k = 0; k < (size_t)instance->n_types * instance->n_nets; k++)
    if (instance->send[k] != instance->recv[k]) return false;
  return true;
}

static bool may_bind(const psplit_i_instance *instance) {
  if (!instance->has_memory) return false;
  uint64_t total = 0, least = UINT64_MAX;
  for (uint32_t i = 0; i < instance->n; i++)
    total += instance->weight_bytes[i] +
             instance->act_bytes[i] * (instance->stash ? instance->n_stages : 1);
  for (uint32_t g = 0; g < instance->n_groups; g++) total += instance->group_bytes[g];
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const uint64_t bytes = instance->problem->devices[t].memory_bytes;
    if (bytes && bytes < least) least = bytes;
  }
  return total > least;
}

static bool has_bytes(const psplit_i_instance *instance, uint32_t v) {
  return instance->weight_bytes[v] || instance->act_bytes[v] ||
         instance->own_off[v + 1] > instance->own_off[v];
}

typedef struct pin_search {
  const uint32_t *pins;
  uint32_t cluster;
} pin_search;

static bool is_at_or_after(const void *of, int64_t k) {
  const pin_search *s = of;
  return s->pins[k] >= s->cluster;
}

/* Is u a pin of net e? Pins after the first are sorted. */
static bool touches(const psplit_i_instance *instance, uint32_t e, uint32_t u) {
  const pin_search s = {instance->net_pin + instance->net_off[e], u};
  const int64_t n = instance->net_off[e + 1] - instance->net_off[e];
  if (s.pins[0] == u) return true;
  const int64_t k = psplit_i_bisect(1, n, is_at_or_after, &s);
  return k < n && s.pins[k] == u;
}

/* Balances of the two stages on type t when v joins its only neighbour u: both must be <= 0. */
typedef struct balance {
  int64_t joined, left;
} balance;

/* Whether a net takes no time over any link that it could take, and makes no message. */
static bool costs_nothing(const psplit_i_instance *instance, uint32_t e) {
  if (instance->makes_message && instance->makes_message[e]) return false;
  if (!instance->link) return true;
  for (uint32_t c = 0; c < instance->n_link_classes; c++)
    if (instance->link[(size_t)c * instance->n_nets + e] > 0) return false;
  return true;
}

/* What is sure to be saved of a net's time on type t: another net may keep the message up. */
static int64_t saved_of(const psplit_i_instance *instance, uint32_t e, uint32_t t, int64_t ns) {
  if (!instance->on_trunk || !instance->on_trunk[e]) return ns;
  const psplit_device *device = &instance->problem->devices[t];
  if (instance->problem->n_link_classes || device->free_comm) return 0;
  return ns - instance->problem->message_ns[device->class_id];
}

/* The balances of v and u on type t; false where they cannot be told. They hold whichever stage
 * comes first, and in whichever direction a net runs. */
static bool weigh(const reduction *k, uint32_t v, uint32_t u, uint32_t t, balance *out) {
  const psplit_i_instance *instance = k->instance;
  const int64_t w = instance->w[(size_t)t * instance->n + v];
  if (w >= PSPLIT_I_INF) return false;
  out->joined = w;
  out->left = -w;
  for (uint32_t l = instance->inc_off[v]; l < instance->inc_off[v + 1]; l++) {
    const uint32_t e = instance->inc[l] >> 1,
                   size = instance->net_off[e + 1] - instance->net_off[e];
    const bool sends = instance->inc[l] & 1, with_u = touches(instance, e, u);
    const int64_t send = instance->send[(size_t)t * instance->n_nets + e];
    const int64_t recv = instance->recv[(size_t)t * instance->n_nets + e];
    /* Over links between pairs, or in a message of its own, a third stage would now send to u's, or
     * receive from it. */
    if (psplit_i_pairs_count(instance) && size > 1 + (uint32_t)with_u && (sends || !with_u) &&
        !costs_nothing(instance, e))
      return false;
    const int64_t saved_send = saved_of(instance, e, t, send),
                  saved_recv = saved_of(instance, e, t, recv);
    if (sends) { /* u's stage sends it now, and v's old stage may receive it */
      const int64_t others = (int64_t)size - 1 - with_u;
      out->joined += send * (instance->p2p || others == 0 ? others : 1) - (with_u ? saved_recv : 0);
      out->left += (others > 0 ? recv : 0) - (with_u ? saved_send : 0);
    } else if (with_u) { /* u's stage has it already */
      if (size > 2) continue;
      out->joined -= saved_send;
      out->left -= saved_recv;
    } else if (instance->p2p && size > 2 && send > 0) {
      return false; /* its sender may have one receiver more */
    } else {
      out->joined += recv;
      out->left += send;
    }
  }
  return true;
}

/* By shared memory: whether the two stages send and receive a message anyway, if any is made by v's
 * other nets. */
static bool messages_stay(const psplit_i_instance *instance, uint32_t v, uint32_t u) {
  bool from_u = false, to_u = false, sends = false, receives = false;
  for (uint32_t l = instance->inc_off[v]; l < instance->inc_off[v + 1]; l++) {
    const uint32_t e = instance->inc[l] >> 1,
                   size = instance->net_off[e + 1] - instance->net_off[e];
    const bool made = instance->inc[l] & 1, with_u = touches(instance, e, u);
    if (!instance->makes_message[e]) continue;
    from_u |= !made && instance->net_pin[instance->net_off[e]] == u;
    to_u |= made && with_u;
    sends |= made && size > 1 + (uint32_t)with_u;
    receives |= !made && !with_u;
  }
  return (from_u || !sends) && (to_u || !receives);
}

static bool rule_m(const reduction *k, uint32_t v, uint32_t u) {
  const psplit_i_instance *instance = k->instance;
  if (instance->pin[v] != PSPLIT_NONE) return false;
  if (k->memory_binds && has_bytes(instance, v)) return false;
  if (k->automaton->replicated && has_bytes(instance, v)) return false;
  if (psplit_i_one_message(instance) && !messages_stay(instance, v, u)) return false;
  int64_t more = -PSPLIT_I_INF, less = -PSPLIT_I_INF; /* communication of the two stages */
  for (uint32_t t = 0; t < instance->n_types; t++) {
    balance b;
    if (k->automaton->count[t] == 0) continue;
    if (!weigh(k, v, u, t, &b) || b.joined > 0 || b.left > 0) return false;
    const int64_t w = instance->w[(size_t)t * instance->n + v];
    if (b.joined - w > more) more = b.joined - w;
    if (b.left + w > less) less = b.left + w;
  }
  return !k->keep_first || more + less <= 0;
}

static void log_merge(reduction *k, uint32_t v, uint32_t u, bool by_limit) {
  psplit_i_merge_log *log = k->log;
  if (!log) return;
  const psplit_i_merge merge = {log->n_rounds, k->first_node[v], k->first_node[u], by_limit};
  if (!psplit_i_vec_push(&log->merges, merge)) log->failed = true;
}

/* Cluster v moves to the stage of u. One merge per cluster and round: conditions are checked
 * against unmerged clusters. */
static void join(reduction *k, uint32_t *parent, uint32_t v, uint32_t u) {
  psplit_i_unite(parent, k->first_node[v], k->first_node[u]);
  log_merge(k, v, u, false);
  k->moved[v] = k->moved[u] = true;
  k->joins[v] = u;
}

/* Without an order, every net {u, v} makes u a candidate. */
static bool apply_rule_m_unordered(reduction *k, uint32_t *parent) {
  const psplit_i_instance *instance = k->instance;
  bool any = false;
  for (uint32_t v = 0; v < instance->n && k->symmetric; v++)
    for (uint32_t l = instance->inc_off[v]; l < instance->inc_off[v + 1] && !k->moved[v]; l++) {
      const uint32_t e = instance->inc[l] >> 1, at = instance->net_off[e];
      if (instance->net_off[e + 1] - at != 2) continue;
      const uint32_t u =
        instance->net_pin[at] == v ? instance->net_pin[at + 1] : instance->net_pin[at];
      if (!k->moved[u] && rule_m(k, v, u)) join(k, parent, v, u), any = true;
    }
  return any;
}

static bool apply_rule_m(reduction *k, uint32_t *parent) {
  const psplit_i_instance *instance = k->instance;
  bool any = false;
  if (instance->unordered) return apply_rule_m_unordered(k, parent);
  for (uint32_t v = 0; v < instance->n; v++) {
    const uint32_t n_pred = instance->pred_off[v + 1] - instance->pred_off[v];
    const uint32_t n_succ = instance->succ_off[v + 1] - instance->succ_off[v];
    const uint32_t u = n_pred == 1 ? instance->pred[instance->pred_off[v]] : PSPLIT_NONE;
    const uint32_t s = n_succ == 1 ? instance->succ[instance->succ_off[v]] : PSPLIT_NONE;
    if (k->moved[v]) continue;
    if (u != PSPLIT_NONE && !k->moved[u] && rule_m(k, v, u))
      join(k, parent, v, u), any = true;
    else if (s != PSPLIT_NONE && !k->keep_first && !k->moved[s] && rule_m(k, v, s))
      join(k, parent, v, s), any = true;
  }
  return any;
}

/* What each net costs at least, on whichever type it is sent or received. */
typedef struct least_costs {
  int64_t *send, *recv; /* [n_nets] */
} least_costs;

static bool find_least_costs(reduction *k, least_costs *out) {
  const psplit_i_instance *instance = k->instance;
  out->send = PSPLIT_NEW(&k->arena, int64_t, instance->n_nets);
  out->recv = PSPLIT_NEW(&k->arena, int64_t, instance->n_nets);
  if (!out->send || !out->recv) return false;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    out->send[e] = out->recv[e] = PSPLIT_I_INF;
    for (uint32_t t = 0; t < instance->n_types; t++) {
      if (k->automaton->count[t] == 0) continue;
      const size_t cell = (size_t)t * instance->n_nets + e;
      if (instance->send[cell] < out->send[e]) out->send[e] = instance->send[cell];
      if (instance->recv[cell] < out->recv[e]) out->recv[e] = instance->recv[cell];
    }
  }
  return true;
}

/* What a stage with x pays at least for nets that it shares with each other cluster, if that one is
 * not in the stage: x's own it sends, the other's it receives, and one of a third cluster it sends
 * or receives. */
typedef struct shared_costs {
  int64_t *paid;      /* [n] by the other cluster */
  uint32_t *clusters; /* [n] those with a cost */
  uint32_t n_clusters;
  uint64_t n_ops; /* not charged yet */
} shared_costs;

static void add_shared_costs(const psplit_i_instance *instance, const least_costs *least,
                             uint32_t x, shared_costs *out) {
  enum { MOST_SIBLINGS = 64 }; /* pins of a net whose consumers are compared with each other */
  for (uint32_t l = instance->inc_off[x]; l < instance->inc_off[x + 1]; l++) {
    const uint32_t e = instance->inc[l] >> 1, first = instance->net_off[e];
    const bool sends = instance->inc[l] & 1;
    const uint32_t n_pins = instance->net_off[e + 1] - first;
    const uint32_t end = first + (sends || n_pins <= MOST_SIBLINGS ? n_pins : 1);
    out->n_ops += 1 + (end - first) / 4;
    const int64_t either = least->send[e] < least->recv[e] ? least->send[e] : least->recv[e];
    for (uint32_t at = first; at < end; at++) {
      const uint32_t y = instance->net_pin[at];
      const int64_t cost = sends ? least->send[e] : at == first ? least->recv[e] : either;
      if (y == x || cost == 0) continue;
      if (!out->paid[y]) out->clusters[out->n_clusters++] = y;
      out->paid[y] = psplit_i_sat_add_i64(out->paid[y], cost);
    }
  }
}

/* The limit rule, for neighbours and for siblings that read the same net, as far as the budget
 * goes. */
static psplit_code apply_limit(reduction *k, int64_t limit, uint32_t *parent,
                               psplit_i_budget *budget, bool *out_any) {
  const psplit_i_instance *instance = k->instance;
  least_costs least;
  shared_costs shared = {0};
  *out_any = false;
  if (!psplit_i_takes(PSPLIT_I_RULE_LIMIT, k->automaton->features)) return PSPLIT_OK;
  shared.paid = PSPLIT_NEW(&k->arena, int64_t, instance->n);
  shared.clusters = PSPLIT_NEW(&k->arena, uint32_t, instance->n);
  if (!shared.paid || !shared.clusters || !find_least_costs(k, &least)) return PSPLIT_NOMEM;
  for (uint32_t x = 0; x < instance->n && psplit_i_spend(budget, shared.n_ops); x++) {
    shared.n_ops = 1;
    add_shared_costs(instance, &least, x, &shared);
    for (; shared.n_clusters; shared.n_clusters--) {
      const uint32_t y = shared.clusters[shared.n_clusters - 1];
      if (psplit_i_sat_add_i64(shared.paid[y], k->automaton->min_time[x]) > limit &&
          psplit_i_unite(parent, k->first_node[x], k->first_node[y])) {
        log_merge(k, x, y, true);
        *out_any = true;
      }
      shared.paid[y] = 0;
    }
  }
  return PSPLIT_OK;
}

/* Moves the nodes of a split as the round has moved clusters. */
static void carry(const reduction *k, uint32_t *stage) {
  const psplit_i_instance *instance = k->instance;
  for (uint32_t v = 0; v < instance->problem->n_nodes; v++) {
    const uint32_t u = k->joins[instance->cluster_of_node[v]];
    if (u != PSPLIT_NONE) stage[v] = stage[k->first_node[u]];
  }
}

psplit_code psplit_i_reduce_as(psplit_i_instance *instance,
                               const psplit_i_reduction_request *request, uint32_t *parent,
                               psplit_i_budget *budget, psplit_diag *diag) {
  const psplit_problem *problem = instance->problem;
  psplit_i_merge_log *log = request->log;
  const bool use_m = psplit_i_takes(PSPLIT_I_RULE_M, request->automaton->features);
  for (uint32_t round = 0; round < MOST_ROUNDS; round++) {
    if (round > 0 && psplit_i_expired(budget)) break;
    reduction k = {.instance = instance,
                   .automaton = request->automaton,
                   .keep_first = request->keep_first,
                   .log = log};
    psplit_i_arena_init(&k.arena, 0);
    k.moved = PSPLIT_NEW(&k.arena, bool, instance->n);
    k.first_node = PSPLIT_NEW(&k.arena, uint32_t, instance->n);
    k.joins = PSPLIT_NEW(&k.arena, uint32_t, instance->n);
    psplit_code code = k.moved && k.first_node && k.joins ? PSPLIT_OK : PSPLIT_NOMEM;
    bool any = false;
    if (code == PSPLIT_OK) {
      for (uint32_t v = problem->n_nodes; v-- > 0;) k.first_node[instance->cluster_of_node[v]] = v;
      memset(k.joins, 0xff, instance->n * sizeof *k.joins);
      k.symmetric = is_symmetric(instance);
      k.memory_binds = may_bind(instance);
      /* The limit rule needs the instance that automaton->min_time was computed for. */
      if (round == 0 && request->limit < PSPLIT_I_INF)
        code = apply_limit(&k, request->limit, parent, budget, &any);
      if (!any) any = use_m && apply_rule_m(&k, parent);
      if (request->stage) carry(&k, request->stage);
    }
    psplit_i_arena_fini(&k.arena);
    if (code != PSPLIT_OK) return psplit_i_nomem(diag);
    const uint64_t size = (uint64_t)problem->n_nodes + instance->net_off[instance->n_nets];
    if (!any) break;
    if (log && log->failed) return psplit_i_nomem(diag);
    if (log) log->n_rounds++;
    psplit_i_spend(budget, ROUND_OPS * size);
    const bool unordered = instance->unordered;
    psplit_i_instance_fini(instance); /* first, since there is hardly room for two large ones */
    code = unordered ? psplit_i_instance_init_unordered(instance, problem, parent, diag)
                     : psplit_i_instance_init(instance, problem, parent, diag);
    if (code != PSPLIT_OK) return code;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_reduce(psplit_i_instance *instance, const psplit_i_automaton *automaton,
                            int64_t limit, uint32_t *parent, psplit_i_budget *budget,
                            psplit_diag *diag) {
  const psplit_i_reduction_request request = {.automaton = automaton, .limit = limit};
  return psplit_i_reduce_as(instance, &request, parent, budget, diag);
}
