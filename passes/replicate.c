/* needs: costs, live, stages  keeps: everything  breaks: nothing
 *
 * Computes a node again in a stage that receives its result, where that is cheaper than sending: a
 * DequantizeLinear behind an int8 tensor, a Cast, a mask made from the model's inputs. Decided by
 * cost alone, for repeatable nodes only, only while no stage it touches gets slower than the
 * slowest is, and only where the stage's memory holds the weights that come along. What it reads is
 * received for it, or computed again as well where that is cheaper: back to the model's inputs. A
 * stage that holds more than its device can, once all is counted, does without. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "copies.h"
#include "keep_state.h"
#include "pass.h"
#include "pass_on.h"
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

/* Whether the stage may and can hold the constants that a copy of `node` reads; *out_bytes are
 * those of the ones it does not hold yet. */
static bool has_room(const state *s, uint32_t node, uint32_t stage, uint64_t *out_bytes) {
  const psplit_planner *planner = s->planner;
  *out_bytes = 0;
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
  return (planner->node_flags[node] & PSPLIT_I_NODE_REPEATABLE) &&
         !planner->graph->nodes[node].n_bodies && planner->pin[node] == PSPLIT_NONE &&
         !psplit_i_planner_refuses(planner, stage, node) &&
         !psplit_i_planner_reads_state(planner, node);
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

/* One stage: its received tensors from the last made to the first, so that a chain of copies is
 * followed back as long as each link pays. */
static psplit_code replicate_into(state *s, uint32_t stage, int64_t bottleneck_ns) {
  psplit_code code = PSPLIT_OK;
  psplit_planner *planner = s->planner;
  const psplit_i_graph *graph = planner->graph;
  const psplit_plan *plan = planner->plan;
  s->stamp++;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (planner->stage[n] == stage) s->held[n] = s->stamp;
  for (size_t c = 0; c < planner->copies.n; c++)
    if (planner->copies.items[c].stage == stage) s->held[planner->copies.items[c].node] = s->stamp;
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

static bool stage_holds(const psplit_planner *planner, const uint32_t *copy_off,
                        const uint32_t *copy_at, uint32_t stage, uint32_t node) {
  if (planner->stage[node] == stage) return true;
  for (uint32_t c = copy_off[node]; c < copy_off[node + 1]; c++)
    if (planner->copies.items[copy_at[c]].stage == stage &&
        planner->copies.items[copy_at[c]].node == node)
      return true;
  return false;
}

/* Whether the node's own stage still has a use for it: a live reader, a receiver, an output. */
static bool used_at_home(const psplit_planner *planner, const uint32_t *copy_off,
                         const uint32_t *copy_at, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t home = planner->stage[node];
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    if (value == PSPLIT_NONE) continue;
    if (graph->values[value].is_output) return true;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
      const uint32_t reader = graph->consumers[c];
      if (planner->node_flags[reader] & PSPLIT_I_NODE_DEAD) continue;
      if (stage_holds(planner, copy_off, copy_at, home, reader) ||
          !stage_holds(planner, copy_off, copy_at, planner->stage[reader], node))
        return true;
      for (uint32_t k = copy_off[reader]; k < copy_off[reader + 1]; k++)
        if (!stage_holds(planner, copy_off, copy_at, planner->copies.items[copy_at[k]].stage, node))
          return true;
    }
  }
  return false;
}

/* Copies that nothing in their stage reads any more, from the last made to the first. */
static void drop_unread(psplit_planner *planner, const uint32_t *copy_off,
                        const uint32_t *copy_at) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    for (uint32_t k = copy_off[n]; k < copy_off[n + 1]; k++) {
      psplit_plan_copy *copy = &planner->copies.items[copy_at[k]];
      bool read = false;
      for (uint32_t o = 0; o < graph->nodes[n].n_outputs && !read; o++) {
        const uint32_t value = graph->nodes[n].outputs[o];
        for (uint32_t c = value == PSPLIT_NONE ? 0 : graph->consumer_off[value];
             value != PSPLIT_NONE && c < graph->consumer_off[value + 1] && !read; c++)
          read = stage_holds(planner, copy_off, copy_at, copy->stage, graph->consumers[c]);
      }
      if (!read) copy->node = PSPLIT_NONE;
    }
  }
}

/* Whether a stage that does not have the value's node can get it from there. */
static bool can_get(const psplit_planner *planner, uint32_t value, uint32_t stage) {
  const uint32_t home = planner->stage[planner->graph->values[value].producer];
  return home < stage && psplit_i_planner_sendable(planner, value) &&
         send_cost(planner, home, stage, value) < INT64_MAX;
}

/* What all moves keep: whatever a stage uses is made there, by a node of its own or by a copy, or
 * in an earlier stage that can send it. Here of what the node reads in its own stage, and of what
 * its readers, dead ones and copies as well, have of it in theirs. */
static bool is_in_time(const psplit_planner *planner, const uint32_t *copy_off,
                       const uint32_t *copy_at, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t home = planner->stage[node];
  PSPLIT_FOR_EACH_READ(&graph->nodes[node], value) {
    const uint32_t producer = graph->values[value].producer;
    if (producer != PSPLIT_NONE && !stage_holds(planner, copy_off, copy_at, home, producer) &&
        !can_get(planner, value, home))
      return false;
  }
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    if (value == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
      const uint32_t reader = graph->consumers[c];
      if (!stage_holds(planner, copy_off, copy_at, planner->stage[reader], node) &&
          !can_get(planner, value, planner->stage[reader]))
        return false;
      for (uint32_t k = copy_off[reader]; k < copy_off[reader + 1]; k++) {
        const psplit_plan_copy *copy = &planner->copies.items[copy_at[k]];
        if (copy->node == reader && !stage_holds(planner, copy_off, copy_at, copy->stage, node) &&
            !can_get(planner, value, copy->stage))
          return false;
      }
    }
  }
  return true;
}

/* Whether the node gives its stage work: bounds are of splits that have such nodes in all. */
static bool is_live(const psplit_planner *planner, uint32_t node) {
  return psplit_i_node_runs(planner->node_flags[node]);
}

/* Whether the node may leave its stage: it is a supernode by itself, nothing holds it there, and
 * neither constants nor a stage without a live node would stay behind. */
static bool may_leave(const psplit_planner *planner, const uint32_t *n_live, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  if (planner->grouping.next[node] != node ||
      n_live[planner->stage[node]] <= is_live(planner, node) ||
      planner->together[node] != PSPLIT_NONE || planner->options.training ||
      planner->state_class[node] != PSPLIT_NONE)
    return false;
  PSPLIT_FOR_EACH_READ(&graph->nodes[node], value) {
    const uint32_t producer = graph->values[value].producer;
    if (producer != PSPLIT_NONE && (planner->node_flags[producer] & PSPLIT_I_NODE_FREE))
      return false;
  }
  return true;
}

/* Moves the node to a stage where it has a copy that went, unless something would be used before it
 * is made then: what is dead may read it where it is. */
static bool move_to(psplit_planner *planner, const uint32_t *copy_off, const uint32_t *copy_at,
                    uint32_t node, uint32_t stage) {
  const uint32_t home = planner->stage[node];
  planner->stage[node] = stage;
  if (is_in_time(planner, copy_off, copy_at, node)) return true;
  planner->stage[node] = home;
  return false;
}

/* A node that was copied to every stage that reads it would stand in its own without a use. It
 * moves to the first of them; where it cannot, as supernodes stay whole, that copy goes, and its
 * result is sent, or stays if it cannot be sent. */
static psplit_code drop_idle(psplit_planner *planner, bool moving, bool *out_moved,
                             psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  uint32_t *n_live = PSPLIT_NEW(&planner->scratch, uint32_t, planner->options.n_stages);
  const size_t n_copies = planner->copies.n;
  uint32_t *off = PSPLIT_NEW(&planner->scratch, uint32_t, (size_t)graph->n_nodes + 2);
  uint32_t *at = psplit_i_arena_array(&planner->scratch, n_copies, sizeof *at);
  if (!n_live || !off || !at) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < graph->n_nodes; n++) n_live[planner->stage[n]] += is_live(planner, n);
  for (size_t c = 0; c < n_copies; c++) off[planner->copies.items[c].node + 2]++;
  for (uint32_t n = 0; n < graph->n_nodes; n++) off[n + 2] += off[n + 1];
  for (uint32_t c = 0; c < n_copies; c++) at[off[planner->copies.items[c].node + 1]++] = c;
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    if (off[n] == off[n + 1] || (planner->node_flags[n] & PSPLIT_I_NODE_FREE) ||
        used_at_home(planner, off, at, n))
      continue;
    psplit_plan_copy *first = &planner->copies.items[at[off[n]]];
    first->node = PSPLIT_NONE;
    const uint32_t home = planner->stage[n];
    if (moving && may_leave(planner, n_live, n) && move_to(planner, off, at, n, first->stage)) {
      n_live[home] -= is_live(planner, n);
      n_live[first->stage] += is_live(planner, n);
      *out_moved = true;
    } else if (!is_in_time(planner, off, at, n)) {
      first->node = n;
    }
    assert(is_in_time(planner, off, at, n));
  }
  drop_unread(planner, off, at);
  size_t kept = 0;
  for (size_t c = 0; c < n_copies; c++)
    if (planner->copies.items[c].node != PSPLIT_NONE)
      planner->copies.items[kept++] = planner->copies.items[c];
  planner->copies.n = kept;
  return PSPLIT_OK;
}

/* The copies that there were, and which stages went back to theirs: when, from 1. */
typedef struct fallback {
  uint32_t *stage; /* [n_nodes] */
  psplit_plan_copy *copies;
  size_t n;
  uint32_t *round; /* [n_stages] 0: not yet */
  uint32_t n_rounds;
} fallback;

static psplit_code remember(psplit_planner *planner, psplit_diag *diag, fallback *out) {
  psplit_i_arena *arena = &planner->arena;
  out->n = planner->copies.n;
  out->n_rounds = 0;
  out->copies = psplit_i_arena_array(arena, out->n, sizeof *out->copies);
  out->round = PSPLIT_NEW(arena, uint32_t, planner->plan->n_stages);
  out->stage = psplit_i_arena_array(arena, planner->graph->n_nodes, sizeof *out->stage);
  if (!out->copies || !out->round || !out->stage) return psplit_i_nomem(diag);
  memcpy(out->stage, planner->stage, planner->graph->n_nodes * sizeof *out->stage);
  if (out->n) memcpy(out->copies, planner->copies.items, out->n * sizeof *out->copies);
  return PSPLIT_OK;
}

/* Stages of the plan that hold more than their devices can go back to the copies that they had, and
 * the plan is made again; *out_any: there were some. What they receive then others send, who may
 * hold too much for that. */
static psplit_code go_back(psplit_planner *planner, fallback *to, bool *out_any,
                           psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t now = ++to->n_rounds;
  size_t kept = 0;
  *out_any = false;
  for (uint32_t s = 0; s < planner->plan->n_stages; s++)
    if (!to->round[s] &&
        planner->plan->stages[s].memory_bytes > psplit_devices_memory_bytes(planner->devices, s)) {
      to->round[s] = now;
      *out_any = true;
    }
  if (!*out_any) return PSPLIT_OK;
  for (size_t c = 0; c < planner->copies.n; c++)
    if (to->round[planner->copies.items[c].stage] != now)
      planner->copies.items[kept++] = planner->copies.items[c];
  planner->copies.n = kept;
  for (size_t c = 0; c < to->n; c++)
    if (to->round[to->copies[c].stage] == now &&
        !psplit_i_vec_push(&planner->copies, to->copies[c]))
      PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_copies_sort(planner);
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

/* Copies for the stages as they stand, and the plan with them; nodes that would be idle may move,
 * *out_moved. */
static psplit_code copy_nodes(psplit_planner *planner, bool moving, bool *out_moved,
                              psplit_diag *diag) {
  psplit_code code;
  const psplit_plan *plan = planner->plan;
  const size_t n_before = planner->copies.n;
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
  PSPLIT_TRY(drop_idle(planner, moving, out_moved, diag));
  planner->plan_holds = !n_before && !planner->copies.n && !*out_moved;
  if (!planner->plan_holds) PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

static psplit_code restore(psplit_planner *planner, const fallback *to, psplit_diag *diag) {
  psplit_code code;
  memcpy(planner->stage, to->stage, planner->graph->n_nodes * sizeof *planner->stage);
  planner->copies.n = 0;
  for (size_t c = 0; c < to->n; c++)
    if (!psplit_i_vec_push(&planner->copies, to->copies[c])) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
out:
  return code;
}

/* The same; nodes move where the plan is faster for it than where they stay: of a chain that moves,
 * what stays behind is sent all the same. */
static psplit_code replicate(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  fallback before, with_moves = {0};
  int64_t moved_ns = INT64_MAX;
  bool moved = false;
  const bool moving = planner->options.objective == PSPLIT_THROUGHPUT;
  PSPLIT_TRY(remember(planner, diag, &before));
  PSPLIT_TRY(copy_nodes(planner, moving, &moved, diag));
  if (moved) {
    if (psplit_i_plan_fits(planner)) moved_ns = planner->plan->bottleneck_ns;
    PSPLIT_TRY(remember(planner, diag, &with_moves));
    PSPLIT_TRY(restore(planner, &before, diag));
    PSPLIT_TRY(copy_nodes(planner, false, &moved, diag));
  }
  for (bool any = !planner->plan_holds; any;) PSPLIT_TRY(go_back(planner, &before, &any, diag));
  if (moved_ns < planner->plan->bottleneck_ns) PSPLIT_TRY(restore(planner, &with_moves, diag));
out:
  return code;
}

/* Whether the stages that are best for the bound may be taken: what binds the plan binds them, and
 * nothing was given up for other ends. */
static bool may_move(const psplit_planner *planner, const uint32_t *other) {
  bool differs = false;
  if (planner->best_ns || planner->options.training ||
      planner->options.tied_weights == PSPLIT_TIED_TOGETHER)
    return false;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    differs |= other[n] != PSPLIT_NONE && other[n] != planner->stage[n];
  return differs;
}

/* Whether a node that takes time is computed in several stages. */
static bool has_copies(const psplit_planner *planner) {
  for (size_t c = 0; c < planner->copies.n; c++)
    if (!(planner->node_flags[planner->copies.items[c].node] & PSPLIT_I_NODE_FREE)) return true;
  return false;
}

/* The bound knows what copies save, and its split may be better than one that was found without:
 * takes these stages and their copies, if they fit and no stage is as slow as the slowest is now.
 */
static psplit_code try_stages(psplit_planner *planner, const uint32_t *other, bool *out_taken,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_nodes = planner->graph->n_nodes;
  const int64_t best_ns = planner->plan->bottleneck_ns, bound_ns = planner->copies_bound_ns;
  psplit_solution *solution = planner->solution;
  const size_t n_copies = planner->copies.n;
  *out_taken = false;
  if (!may_move(planner, other)) return PSPLIT_OK;
  uint32_t *stage = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *stage);
  psplit_plan_copy *copies = psplit_i_arena_array(&planner->arena, n_copies, sizeof *copies);
  if (!stage || !copies) return psplit_i_nomem(diag);
  memcpy(stage, planner->stage, n_nodes * sizeof *stage);
  if (n_copies) memcpy(copies, planner->copies.items, n_copies * sizeof *copies);
  /* Bounds are not asked until it is known whether the split counts: stages that do not fit their
   * devices may be faster than all that do. */
  planner->copies_bound_ns = 0;
  planner->solution = NULL;
  code = psplit_i_builder_adopt(planner, other, diag);
  if (code == PSPLIT_OK) code = replicate(planner, diag);
  planner->solution = solution;
  planner->copies_bound_ns = bound_ns;
  if (code != PSPLIT_OK) goto out;
  *out_taken = planner->plan->bottleneck_ns < best_ns && psplit_i_plan_fits(planner);
  if (*out_taken) goto out;
  memcpy(planner->stage, stage, n_nodes * sizeof *stage);
  planner->copies.n = 0;
  for (size_t c = 0; c < n_copies; c++)
    if (!psplit_i_vec_push(&planner->copies, copies[c])) PSPLIT_FAIL(psplit_i_nomem(diag));
out:
  return code;
}

/* Whether a slowest stage spends more on what it receives and sends than it computes: then another
 * split may be far better with copies, though this one has no use for any. */
static bool mostly_moves(const psplit_planner *planner) {
  const psplit_plan *plan = planner->plan;
  bool moves = false;
  for (uint32_t s = 0; s < plan->n_stages; s++)
    moves |= plan->stages[s].load_ns == plan->bottleneck_ns &&
             plan->stages[s].compute_ns < plan->bottleneck_ns - plan->stages[s].compute_ns;
  return moves && !planner->best_ns && !planner->options.training &&
         planner->options.tied_weights != PSPLIT_TIED_TOGETHER;
}

/* A bound with copies may be far lower than the one without, which says nothing of other plans with
 * copies: what it says is told besides. */
static void tell_without(const psplit_planner *planner, int64_t plain_ns, int64_t value_ns) {
  const int64_t bound_ns = planner->copies_bound_ns; /* 0: the plan says the other one */
  if (!has_copies(planner) || bound_ns <= 0 || plain_ns <= bound_ns || value_ns <= 0) return;
  if (plain_ns >= value_ns) {
    psplit_i_say(planner->options.logger, PSPLIT_NOTE,
                 "of the plans without copies that the bound covers, none is faster");
    return;
  }
  psplit_i_say(planner->options.logger, PSPLIT_NOTE,
               "the gap is to plans with copies; to those without that the bound covers, it is "
               "%.2f %%",
               100.0 * (double)(value_ns - plain_ns) / (double)value_ns);
}

/* The solver's bound is for splits without copies, and so is its split: asks with them. What is
 * passed on is not, unless that stays the plan. */
static psplit_code ask_with_copies(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  uint32_t *next = planner->next_hop;
  const bool passes_on = planner->passes_on;
  bool taken;
  uint32_t *other = psplit_i_arena_array(&planner->arena, planner->graph->n_nodes, sizeof *other);
  if (!other) return psplit_i_nomem(diag);
  /* What holds for all plans holds for those without copies, too. */
  const int64_t plain_ns = planner->plan->lower_bound_ns, before_ns = planner->plan->bottleneck_ns;
  planner->plan_holds = false;
  if (!has_copies(planner)) psplit_i_pass_nothing_on(planner);
  planner->copies_any_way = planner->passes_on;
  PSPLIT_TRY(psplit_i_bound_with_copies(planner, diag, &planner->copies_bound_ns, other));
  PSPLIT_TRY(try_stages(planner, other, &taken, diag));
  planner->plan_holds = false;
  tell_without(planner, plain_ns, taken ? planner->plan->bottleneck_ns : before_ns);
  if (taken) goto out;
  planner->next_hop = next;
  planner->passes_on = passes_on;
out:
  return code;
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  psplit_code code = PSPLIT_OK;
  if (planner->segmented || planner->n_replicas) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_plan_make(planner, diag));
  PSPLIT_TRY(replicate(planner, diag));
  if (planner->solution && planner->options.objective == PSPLIT_THROUGHPUT &&
      (has_copies(planner) || mostly_moves(planner)))
    PSPLIT_TRY(ask_with_copies(planner, diag));
out:
  return code;
}

const psplit_i_pass psplit_i_pass_replicate = {
  .name = "replicate",
  .help = "compute a node again where that is cheaper than receiving its result",
  .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_STAGES,
  .keeps = ~0u,
  .run = run,
};
