#include "copies_add.h"

#include <string.h>

#include "copies.h"
#include "tied_weights.h"

enum { MOST_DEPTH = 16 }; /* of nodes that are computed again for another that is */

/* What a stage does for a micro-batch. */
typedef struct work {
  int64_t compute_ns, recv_ns, send_ns;
} work;

typedef struct state {
  psplit_planner *planner;
  psplit_diag *diag;
  work *works;          /* [n_stages] as they are by now */
  uint32_t *held;       /* [n_nodes] stamp: the node is in the stage at hand */
  uint32_t *received;   /* [n_values] stamp: the stage at hand gets the value */
  uint32_t *constant;   /* [n_values] stamp: the stage at hand holds the constant */
  uint64_t *room_bytes; /* [n_stages] memory that is left */
  uint32_t *n_from;     /* [n_stages] tensors that the stage at hand gets from each */
  uint32_t stamp;
} state;

/* What the value takes, without what is a message's. */
static int64_t send_cost(const psplit_planner *planner, uint32_t from, uint32_t to,
                         uint32_t value) {
  const int64_t ns = psplit_i_planner_transfer_ns(
    planner, from, to, psplit_i_planner_sent_bytes(planner, value, NULL));
  if (planner->options.message_latency != PSPLIT_LATENCY_PER_PAIR || ns == INT64_MAX) return ns;
  return ns - psplit_i_planner_transfer_ns(planner, from, to, 0);
}

/* What a message takes that `n` tensors are all of, if latency is a message's and that many come
 * from the stage now; where they are passed on, others may need it. */
static int64_t message_ns(const state *s, uint32_t from, uint32_t to, uint32_t n) {
  const psplit_planner *planner = s->planner;
  if (planner->options.message_latency != PSPLIT_LATENCY_PER_PAIR || planner->next_hop ||
      s->n_from[from] != n)
    return 0;
  return psplit_i_planner_transfer_ns(planner, from, to, 0);
}

/* Of the node's results, those that the stage at hand gets. */
static uint32_t count_received(const state *s, uint32_t node) {
  const psplit_i_node *data = &s->planner->graph->nodes[node];
  uint32_t n = 0;
  for (uint32_t o = 0; o < data->n_outputs; o++)
    n += data->outputs[o] != PSPLIT_NONE && s->received[data->outputs[o]] == s->stamp;
  return n;
}

/* What it costs the stage to receive the node's results, all of them: a copy makes each local. */
static int64_t received_ns(const state *s, uint32_t node, uint32_t stage) {
  const psplit_i_node *data = &s->planner->graph->nodes[node];
  const uint32_t home = s->planner->stage[node], n = count_received(s, node);
  int64_t sum = n ? message_ns(s, home, stage, n) : 0;
  for (uint32_t o = 0; o < data->n_outputs; o++)
    if (data->outputs[o] != PSPLIT_NONE && s->received[data->outputs[o]] == s->stamp)
      sum = psplit_i_sat_add_i64(sum, send_cost(s->planner, home, stage, data->outputs[o]));
  return sum;
}

/* What it takes to get one more value from a stage. */
static int64_t fetch_cost(const state *s, uint32_t from, uint32_t to, uint32_t value) {
  return psplit_i_sat_add_i64(send_cost(s->planner, from, to, value), message_ns(s, from, to, 0));
}

static psplit_code add_copy(state *s, uint32_t node, uint32_t stage) {
  s->held[node] = s->stamp;
  return psplit_i_vec_push(&s->planner->copies, ((psplit_plan_copy){node, stage}))
           ? PSPLIT_OK
           : psplit_i_nomem(s->diag);
}

/* Copies of the constants that a copied node reads. */
static psplit_code add_free_producers(state *s, uint32_t node, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = s->planner->graph;
  PSPLIT_VEC(uint32_t) open = {0};
  if (!psplit_i_vec_push(&open, node)) PSPLIT_FAIL(psplit_i_nomem(s->diag));
  while (open.n) {
    const psplit_i_node *data = &graph->nodes[open.items[--open.n]];
    for (uint32_t i = 0; i < data->n_inputs; i++) {
      const uint32_t producer =
        data->inputs[i] == PSPLIT_NONE ? PSPLIT_NONE : graph->values[data->inputs[i]].producer;
      if (producer == PSPLIT_NONE || s->held[producer] == s->stamp ||
          !(s->planner->node_flags[producer] & PSPLIT_I_NODE_FREE))
        continue;
      PSPLIT_TRY(add_copy(s, producer, stage));
      if (!psplit_i_vec_push(&open, producer)) PSPLIT_FAIL(psplit_i_nomem(s->diag));
    }
  }
out:
  psplit_i_vec_fini(&open);
  return code;
}

/* Whether the stage may and can hold the constants that a copy of `node` reads or carries;
 * *out_bytes are those of the ones it does not hold yet. */
static bool has_room(const state *s, uint32_t node, uint32_t stage, uint64_t *out_bytes) {
  const psplit_planner *planner = s->planner;
  *out_bytes = psplit_i_node_inner_bytes(planner->graph, node);
  PSPLIT_FOR_EACH_READ(&planner->graph->nodes[node], value) {
    if (s->constant[value] == s->stamp || !psplit_i_planner_is_constant(planner, value)) continue;
    const uint64_t bytes = psplit_i_planner_weight_bytes(planner, value);
    if (bytes >= PSPLIT_I_TIED_BYTES && planner->options.tied_weights == PSPLIT_TIED_TOGETHER)
      return false;
    *out_bytes = psplit_i_sat_add_u64(*out_bytes, bytes);
  }
  return *out_bytes <= s->room_bytes[stage];
}

static void mark_constants(state *s, uint32_t node) {
  PSPLIT_FOR_EACH_READ(&s->planner->graph->nodes[node], value) s->constant[value] = s->stamp;
}

/* Whether a stage with so much more to do is slower than the slowest may be. */
static bool too_slow(const state *s, uint32_t stage, const work *more, int64_t bottleneck_ns) {
  const work *now = &s->works[stage];
  return psplit_i_planner_load_ns(
           s->planner, psplit_i_sat_add_i64(now->compute_ns, more->compute_ns),
           psplit_i_sat_add_i64(now->recv_ns, more->recv_ns),
           psplit_i_sat_add_i64(now->send_ns, more->send_ns)) > bottleneck_ns;
}

static bool may_copy(const psplit_planner *planner, uint32_t node, uint32_t stage) {
  return psplit_i_may_be_copied(planner, node) && !psplit_i_planner_refuses(planner, stage, node);
}

/* Whether the value has to be brought to the stage at hand: nobody there makes or receives it. */
static bool is_missing(const state *s, uint32_t value) {
  const uint32_t producer =
    value == PSPLIT_NONE ? PSPLIT_NONE : s->planner->graph->values[value].producer;
  return producer != PSPLIT_NONE && s->held[producer] != s->stamp &&
         s->received[value] != s->stamp && !(s->planner->node_flags[producer] & PSPLIT_I_NODE_FREE);
}

/* What it takes to compute in the stage what makes `value`, and all that is missing for that,
 * without a tensor more: INT64_MAX where that cannot be, or is no cheaper than to receive it. What
 * several of them need counts for each. */
static int64_t chain_ns(const state *s, uint32_t value, uint32_t stage, uint32_t depth) {
  const psplit_planner *planner = s->planner;
  const uint32_t node = planner->graph->values[value].producer;
  const int64_t fetched_ns = fetch_cost(s, planner->stage[node], stage, value);
  uint64_t weight_bytes;
  if (depth == MOST_DEPTH || !may_copy(planner, node, stage) ||
      !has_room(s, node, stage, &weight_bytes) || weight_bytes > 0)
    return INT64_MAX;
  int64_t sum =
    planner->node_ns[(size_t)planner->device_class[stage] * planner->graph->n_nodes + node];
  PSPLIT_FOR_EACH_READ(&planner->graph->nodes[node], input) {
    if (sum >= fetched_ns) return INT64_MAX;
    if (is_missing(s, input)) sum = psplit_i_sat_add_i64(sum, chain_ns(s, input, stage, depth + 1));
  }
  return sum < fetched_ns ? sum : INT64_MAX;
}

/* Adds a copy of `node`, behind copies of all that is missing for it. */
static psplit_code add_chain(state *s, uint32_t node, uint32_t stage) {
  psplit_code code;
  const psplit_i_graph *graph = s->planner->graph;
  PSPLIT_FOR_EACH_READ(&graph->nodes[node], input)
    if (is_missing(s, input)) PSPLIT_TRY(add_chain(s, graph->values[input].producer, stage));
  mark_constants(s, node);
  PSPLIT_TRY(add_copy(s, node, stage));
  PSPLIT_TRY(add_free_producers(s, node, stage));
out:
  return code;
}

/* Adds a copy of `node` to `stage` if that pays. */
static psplit_code consider(state *s, uint32_t node, uint32_t stage, int64_t bottleneck_ns) {
  psplit_planner *planner = s->planner;
  const psplit_i_graph *graph = planner->graph;
  const psplit_i_node *data = &graph->nodes[node];
  const int64_t saved_ns = received_ns(s, node, stage);
  uint64_t weight_bytes;
  if (!has_room(s, node, stage, &weight_bytes)) return PSPLIT_OK;
  int64_t added_ns = planner->node_ns[(size_t)planner->device_class[stage] * graph->n_nodes + node];
  int64_t fetched_ns = 0;
  uint32_t fetched = PSPLIT_NONE; /* at most one new tensor is fetched for it */
  PSPLIT_FOR_EACH_READ(data, value) {
    if (!is_missing(s, value) || value == fetched) continue;
    const int64_t chained_ns = chain_ns(s, value, stage, 0);
    if (chained_ns < INT64_MAX) {
      added_ns = psplit_i_sat_add_i64(added_ns, chained_ns);
      continue;
    }
    const uint32_t producer = graph->values[value].producer;
    if (fetched != PSPLIT_NONE || !psplit_i_planner_sendable(planner, value)) return PSPLIT_OK;
    fetched = value;
    fetched_ns = fetch_cost(s, planner->stage[producer], stage, value);
  }
  if (psplit_i_sat_add_i64(added_ns, fetched_ns) >= saved_ns) return PSPLIT_OK;
  const work here = {.compute_ns = added_ns, .recv_ns = fetched_ns - saved_ns};
  if (too_slow(s, stage, &here, bottleneck_ns)) return PSPLIT_OK;
  if (fetched != PSPLIT_NONE) {
    const uint32_t from = planner->stage[graph->values[fetched].producer];
    const work there = {.send_ns = fetched_ns};
    if (from != planner->stage[node] && too_slow(s, from, &there, bottleneck_ns)) return PSPLIT_OK;
    s->works[from].send_ns += fetched_ns;
    s->received[fetched] = s->stamp;
    s->n_from[from]++;
  }
  s->n_from[planner->stage[node]] -= count_received(s, node);
  s->works[planner->stage[node]].send_ns -= saved_ns;
  s->works[stage].compute_ns += here.compute_ns;
  s->works[stage].recv_ns += here.recv_ns;
  for (uint32_t o = 0; o < data->n_outputs; o++)
    if (data->outputs[o] != PSPLIT_NONE) s->received[data->outputs[o]] = 0;
  s->room_bytes[stage] -= weight_bytes;
  return add_chain(s, node, stage);
}

/* What is in the stage is marked. */
static void begin_stage(state *s, uint32_t stage) {
  const psplit_planner *planner = s->planner;
  s->stamp++;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (planner->stage[n] == stage) s->held[n] = s->stamp;
  for (size_t c = 0; c < planner->copies.n; c++)
    if (planner->copies.items[c].stage == stage) s->held[planner->copies.items[c].node] = s->stamp;
}

/* One stage: its received tensors from the last made to the first, so that a chain of copies is
 * followed back as long as each link pays. */
static psplit_code replicate_into(state *s, uint32_t stage, int64_t bottleneck_ns) {
  psplit_code code = PSPLIT_OK;
  psplit_planner *planner = s->planner;
  const psplit_i_graph *graph = planner->graph;
  const psplit_plan *plan = planner->plan;
  begin_stage(s, stage);
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (s->held[n] == s->stamp) mark_constants(s, n);
  bool any = false;
  memset(s->n_from, 0, plan->n_stages * sizeof *s->n_from);
  for (uint32_t t = 0; t < plan->n_transfers; t++)
    if (plan->transfers[t].to == stage) {
      s->n_from[plan->transfers[t].from]++;
      s->received[plan->transfers[t].value] = s->stamp;
      any = true;
    }
  for (uint32_t i = any ? graph->n_nodes : 0; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    if (s->held[n] == s->stamp || !may_copy(planner, n, stage) || !received_ns(s, n, stage))
      continue;
    PSPLIT_TRY(consider(s, n, stage, bottleneck_ns));
  }
out:
  return code;
}

psplit_code psplit_i_copies_add(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_plan *plan = planner->plan;
  const psplit_i_graph *graph = planner->graph;
  state s = {.planner = planner, .diag = diag};
  s.works = PSPLIT_NEW(&planner->scratch, work, plan->n_stages);
  s.held = PSPLIT_NEW(&planner->scratch, uint32_t, graph->n_nodes);
  s.received = PSPLIT_NEW(&planner->scratch, uint32_t, graph->n_values);
  s.constant = PSPLIT_NEW(&planner->scratch, uint32_t, graph->n_values);
  s.room_bytes = PSPLIT_NEW(&planner->scratch, uint64_t, plan->n_stages);
  s.n_from = PSPLIT_NEW(&planner->scratch, uint32_t, plan->n_stages);
  if (planner->scratch.failed) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < plan->n_stages; i++) {
    const psplit_plan_stage *stage = &plan->stages[i];
    const uint64_t limit = psplit_devices_memory_bytes(planner->devices, i);
    s.works[i] = (work){stage->compute_ns, stage->recv_ns, stage->send_ns};
    s.room_bytes[i] = limit > stage->memory_bytes ? limit - stage->memory_bytes : 0;
  }
  for (uint32_t i = 1; i < plan->n_stages; i++)
    PSPLIT_TRY(replicate_into(&s, i, plan->bottleneck_ns));
  psplit_i_copies_sort(planner);
out:
  return code;
}

psplit_code psplit_i_copies_give(psplit_planner *planner, const psplit_plan_copy *copies, size_t n,
                                 psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  state s = {.planner = planner, .diag = diag};
  s.held = PSPLIT_NEW(&planner->scratch, uint32_t, planner->graph->n_nodes);
  if (!s.held) return psplit_i_nomem(diag);
  for (size_t c = 0; c < n; c++) {
    begin_stage(&s, copies[c].stage);
    PSPLIT_TRY(add_copy(&s, copies[c].node, copies[c].stage));
    PSPLIT_TRY(add_free_producers(&s, copies[c].node, copies[c].stage));
  }
  psplit_i_copies_sort(planner);
out:
  return code;
}
