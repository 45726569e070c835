#include "row_cuts.h"

#include "node_cut.h"

enum {
  BUDGET_SHARE = 4,     /* cuts may spend one part in BUDGET_SHARE of the budget */
  MOST_CLUSTERS = 20000 /* larger blocks are not cut */
};

/* The parameters of one minimum cut: the factors of a cluster's time in each of its three places.
 * All costs are multiplied by `scale`. */
typedef struct cut {
  uint32_t front, behind; /* clusters around the block, or NONE */
  int64_t scale;
  int64_t of_work,
    /* factor of the time of a cluster in between, and the additional one on the longest path */
    of_path;
  bool own; /* whether there are stages in between */
} cut;

psplit_code psplit_i_row_cuts_init(psplit_i_row_cuts *c, const psplit_i_instance *instance,
                                   const psplit_i_automaton *automaton, psplit_i_budget *budget) {
  *c = (psplit_i_row_cuts){.instance = instance,
                           .min_time = automaton->min_time,
                           .whole = budget,
                           .budget = psplit_i_budget_share(budget, BUDGET_SHARE)};
  psplit_i_arena *a = &c->arena;
  const size_t n = instance->n;
  psplit_i_arena_init(a, 0);
  c->cluster = PSPLIT_NEW(a, uint32_t, n);
  c->local = PSPLIT_NEW(a, uint32_t, n);
  c->on_path = PSPLIT_NEW(a, bool, n);
  c->length = PSPLIT_NEW(a, int64_t, n);
  c->before = PSPLIT_NEW(a, uint32_t, n);
  c->least = PSPLIT_NEW(a, int64_t, (size_t)instance->n_stages + 1);
  int64_t *send = PSPLIT_NEW(a, int64_t, instance->n_nets);
  int64_t *recv = PSPLIT_NEW(a, int64_t, instance->n_nets);
  if (a->failed) return PSPLIT_NOMEM;
  bool pays =
    !instance->overlap && psplit_i_least_costs(instance, automaton, send, recv, c->length);
  for (uint32_t t = 0; t < instance->n_types; t++)
    pays &= !automaton->count[t] || !instance->problem->devices[t].free_comm;
  for (uint32_t i = 0; i < n; i++) c->local[i] = PSPLIT_NONE;
  c->send = pays ? send : NULL;
  c->recv = recv;
  return PSPLIT_OK;
}

void psplit_i_row_cuts_fini(psplit_i_row_cuts *c) {
  psplit_i_spend(c->whole, c->budget.spent);
  psplit_i_cut_network_fini(&c->network);
  psplit_i_arena_fini(&c->arena);
}

/* Marks a longest path of the block, and returns its length. */
static int64_t mark_path(psplit_i_row_cuts *c) {
  const psplit_i_instance *instance = c->instance;
  uint32_t end = PSPLIT_NONE;
  for (uint32_t k = 0; k < c->n_clusters; k++) {
    const uint32_t v = c->cluster[k];
    c->on_path[v] = false;
    c->before[v] = PSPLIT_NONE;
    c->length[v] = 0;
    for (uint32_t l = instance->pred_off[v]; l < instance->pred_off[v + 1]; l++) {
      const uint32_t p = instance->pred[l];
      if (c->local[p] == PSPLIT_NONE || c->length[p] <= c->length[v]) continue;
      c->length[v] = c->length[p];
      c->before[v] = p;
    }
    c->length[v] += c->min_time[v];
    if (end == PSPLIT_NONE || c->length[v] > c->length[end]) end = v;
  }
  for (uint32_t v = end; v != PSPLIT_NONE; v = c->before[v]) c->on_path[v] = true;
  return end == PSPLIT_NONE ? 0 : c->length[end];
}

/* The two vertices of a cluster. The first is on the source's side if the cluster is not in the
 * stage in front, the second if it is in the one behind. */
static uint32_t vertex(const psplit_i_row_cuts *c, uint32_t cluster, bool last) {
  return 2 + 2 * c->local[cluster] + last;
}

static void add_cluster(psplit_i_row_cuts *c, const cut *q, uint32_t v) {
  const psplit_i_instance *instance = c->instance;
  psplit_i_cut_network *network = &c->network;
  const uint32_t left = vertex(c, v, false), right = vertex(c, v, true);
  const int64_t w = c->min_time[v], own = w * q->of_work + (c->on_path[v] ? w * q->of_path : 0);
  psplit_i_cut_network_arc(network, PSPLIT_I_SOURCE, left,
                           q->front == PSPLIT_NONE ? PSPLIT_I_INF : w * q->scale);
  psplit_i_cut_network_arc(network, left, right, q->own ? own : PSPLIT_I_INF);
  psplit_i_cut_network_arc(network, right, PSPLIT_I_SINK,
                           q->behind == PSPLIT_NONE ? PSPLIT_I_INF : w * q->scale);
  psplit_i_cut_network_arc(network, right, left, PSPLIT_I_INF);
  for (uint32_t l = instance->succ_off[v]; l < instance->succ_off[v + 1]; l++) {
    const uint32_t s = instance->succ[l];
    if (c->local[s] == PSPLIT_NONE) continue;
    psplit_i_cut_network_arc(network, left, vertex(c, s, false), PSPLIT_I_INF);
    psplit_i_cut_network_arc(network, right, vertex(c, s, true), PSPLIT_I_INF);
  }
}

/* Charges `cost` for the net where a consumer has left the stage in front but the producer has not;
 * with `last`, where a consumer is in the stage behind but the producer is not. `read`: the cluster
 * behind is a consumer. */
static void add_side(psplit_i_row_cuts *c, const cut *q, uint32_t e, bool last, bool read,
                     int64_t cost) {
  const psplit_i_instance *instance = c->instance;
  psplit_i_cut_network *network = &c->network;
  const uint32_t *pin = instance->net_pin + instance->net_off[e];
  const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
  const uint32_t to = pin[0] == q->front ? PSPLIT_I_SINK : vertex(c, pin[0], last);
  if (cost <= 0) return;
  if (read) {
    psplit_i_cut_network_arc(network, PSPLIT_I_SOURCE, to, cost);
    return;
  }
  const uint32_t any = psplit_i_cut_network_node(network);
  psplit_i_cut_network_arc(network, any, to, cost);
  for (uint32_t k = 1; k < n_pins; k++)
    if (c->local[pin[k]] != PSPLIT_NONE)
      psplit_i_cut_network_arc(network, vertex(c, pin[k], last), any, PSPLIT_I_INF);
}

/* A net between the stages of the two row clusters and the block costs its sender or receiver there
 * in full, and the stages in between a share of the other end. For a net that runs directly from
 * the stage in front to the one behind, that share is subtracted, so that it is not counted
 * twice. */
static void add_net(psplit_i_row_cuts *c, const cut *q, uint32_t e) {
  const psplit_i_instance *instance = c->instance;
  const int64_t send = c->send[e], recv = c->recv[e];
  int64_t leaves = send * q->scale, enters = recv * q->scale;
  const uint32_t first = instance->net_off[e], end = instance->net_off[e + 1];
  bool read = false;
  psplit_i_spend(&c->budget, (end - first) / 4);
  for (uint32_t k = first + 1; k < end; k++) read |= instance->net_pin[k] == q->behind;
  if (read || q->front == PSPLIT_NONE) {
    leaves -= send * q->of_work;
    enters += send * q->of_work;
  } else if (instance->net_pin[first] == q->front || q->behind == PSPLIT_NONE) {
    leaves += recv * q->of_work;
    enters -= recv * q->of_work;
  }
  if (q->front != PSPLIT_NONE) add_side(c, q, e, false, read, leaves);
  if (q->behind != PSPLIT_NONE) add_side(c, q, e, true, read, enters);
}

/* Adds the nets that cluster v produces. */
static void add_nets(psplit_i_row_cuts *c, const cut *q, uint32_t v) {
  const psplit_i_instance *instance = c->instance;
  for (uint32_t l = instance->inc_off[v]; l < instance->inc_off[v + 1]; l++)
    if (instance->inc[l] & 1) add_net(c, q, instance->inc[l] >> 1);
}

/* Solves one minimum cut. *out_least is the least total of the three places, or less where the
 * budget ran out. */
static bool run(psplit_i_row_cuts *c, const cut *q, int64_t *out_least) {
  psplit_i_cut_network *network = &c->network;
  psplit_i_cut_network_begin(network);
  for (uint32_t k = 0; k < 2 * c->n_clusters; k++) psplit_i_cut_network_node(network);
  for (uint32_t k = 0; k < c->n_clusters; k++) {
    add_cluster(c, q, c->cluster[k]);
    add_nets(c, q, c->cluster[k]);
  }
  if (q->front != PSPLIT_NONE) add_nets(c, q, q->front);
  psplit_i_spend(&c->budget, network->flow.arcs.n);
  int64_t value = 0;
  if (!psplit_i_cut_network_raise(network, PSPLIT_I_INF, &c->budget, &value)) return false;
  *out_least = (value + q->scale - 1) / q->scale;
  return true;
}

/* The least total with n_own stages in between. `more`: with at least that many, where only the
 * longest path counts. */
static bool cut_with(psplit_i_row_cuts *c, uint32_t front, uint32_t behind, uint32_t n_own,
                     bool more, const psplit_i_row_block *b, int64_t *out_least) {
  const int64_t n = n_own;
  cut q = {.front = front, .behind = behind, .scale = n_own && !more ? 2 * n : 1, .own = n_own > 0};
  *out_least = 0;
  if (more) {
    q.of_path = 1;
    return run(c, &q, out_least);
  }
  q.of_work = n_own ? 2 : 0;
  if (!run(c, &q, out_least) || b->path * n <= b->work / 2 || n_own < 2) return !c->network.failed;
  q.of_work = 1;
  q.of_path = n;
  int64_t least;
  if (!run(c, &q, &least)) return false;
  if (least > *out_least) *out_least = least;
  q.of_work = 0;
  q.of_path = 2 * n;
  if (!run(c, &q, &least)) return false;
  if (least > *out_least) *out_least = least;
  return true;
}

bool psplit_i_row_cuts_measure(psplit_i_row_cuts *c, uint32_t front, uint32_t behind,
                               psplit_i_row_block *io_block) {
  const uint32_t n_devices = c->instance->n_stages;
  if (!c->send || c->n_clusters > MOST_CLUSTERS) return true;
  if (io_block->work > PSPLIT_I_INF / 8 / (2 * (int64_t)n_devices + 1) ||
      psplit_i_expired(&c->budget))
    return true;
  for (uint32_t k = 0; k < c->n_clusters; k++) c->local[c->cluster[k]] = k;
  mark_path(c);
  const bool outside = front == PSPLIT_NONE || behind == PSPLIT_NONE;
  const uint32_t enough = psplit_i_row_enough(io_block, n_devices);
  bool ok = true;
  for (uint32_t q = 0; q <= enough && ok; q++) {
    c->least[q] = io_block->work;
    if (q > 0 || !outside) /* otherwise everything is in the one stage */
      ok = cut_with(c, front, behind, q, q == enough && enough < n_devices, io_block, &c->least[q]);
  }
  for (uint32_t k = 0; k < c->n_clusters; k++) c->local[c->cluster[k]] = PSPLIT_NONE;
  io_block->least = c->least;
  return ok;
}
