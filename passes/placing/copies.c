/* A lower bound for splits with copied nodes, where computing a node again is cheaper than
 * receiving its results.
 *
 * Relaxation. What a stage pays for a result that it reads from another stage is represented as a
 * set of *pieces* of time, whose sum is at most the time to receive the result. If the node is
 * never copied, the result has a single piece of its own. A copy costs the node's time, which is
 * one piece, and requires the inputs of the node, whose pieces are inherited up to the time to
 * receive the result. A stage that has several results, each received or copied, pays at least the
 * union of their pieces: for a received result it pays the whole set, and for a copied result
 * everything but the node's own time is in the sets of its inputs, which the stage has as well. A
 * piece becomes a net. Its producer is the node for which it was created, and its readers are those
 * of all results whose sets contain it. A stage with the producer and such a reader has all nodes
 * in between, so it pays nothing.
 *
 * The same holds for the times of senders, except that copies cost nothing there, and that pieces
 * are inherited only within a supernode unless there is a single sender, since others may be in
 * another stage.
 *
 * Where latency is charged per message, pieces cover only the bytes. A result whose node is never
 * copied is sent from the node's stage to the stages of all its readers, so it makes a message. A
 * result that may be copied makes none. */
#include "copies.h"

#include <math.h>
#include <string.h>

#include "builder.h"
#include "devices_inside.h"
#include "keep_state.h"
#include "links.h"
#include "plan_budget.h"
#include "sure_messages.h"

#define NO_COPY INT64_MAX

/* The range of links between stages. */
typedef struct link_range {
  /* worst and best value of latency and of bandwidth, each by itself */
  psplit_device_link slowest, fastest;
} link_range;

static link_range range_of_links(const psplit_planner *planner) {
  link_range r = {{.bytes_per_second = HUGE_VAL}, {.latency_ns = INT64_MAX}};
  for (uint32_t from = 0; from < planner->options.n_stages; from++)
    for (uint32_t to = 0; to < planner->options.n_stages; to++) {
      if (from == to) continue;
      const psplit_device_link link = psplit_devices_link(planner->devices, from, to);
      if (link.bytes_per_second < r.slowest.bytes_per_second)
        r.slowest.bytes_per_second = link.bytes_per_second;
      if (link.latency_ns > r.slowest.latency_ns) r.slowest.latency_ns = link.latency_ns;
      if (link.bytes_per_second > r.fastest.bytes_per_second)
        r.fastest.bytes_per_second = link.bytes_per_second;
      if (link.latency_ns < r.fastest.latency_ns) r.fastest.latency_ns = link.latency_ns;
    }
  /* A fetched tensor may share a message that is sent anyway. */
  if (planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR) r.fastest.latency_ns = 0;
  return r;
}

/* The least time of the node over all device classes; INT64_MAX if none runs it. */
static int64_t least_ns(const psplit_planner *planner, uint32_t node) {
  int64_t least = INT64_MAX;
  for (uint32_t c = 0; c < planner->n_classes; c++) {
    const size_t at = (size_t)c * planner->graph->n_nodes + node;
    if (planner->node_refused && planner->node_refused[at]) continue;
    if (planner->node_ns[at] < least) least = planner->node_ns[at];
  }
  return least;
}

static uint32_t n_results(const psplit_i_node *node) {
  uint32_t n = 0;
  for (uint32_t o = 0; o < node->n_outputs; o++) n += node->outputs[o] != PSPLIT_NONE;
  return n;
}

/* Whether the node is the only reader of the value. */
static bool is_private(const psplit_i_graph *graph, uint32_t value, uint32_t node) {
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
    if (graph->consumers[c] != node) return false;
  return true;
}

bool psplit_i_may_be_copied(const psplit_planner *planner, uint32_t node) {
  return (planner->node_flags[node] & PSPLIT_I_NODE_REPEATABLE) &&
         !planner->graph->nodes[node].n_bodies && planner->pin[node] == PSPLIT_NONE &&
         !psplit_i_planner_reads_state(planner, node);
}

/* A lower bound on the cost of a copy, where inputs that only this node reads are received or
 * computed again (least[n_nodes] of earlier nodes). Other inputs may be there for other readers.
 * NO_COPY: the node is never copied. */
static int64_t copy_ns(const psplit_planner *planner, const link_range *links, const int64_t *least,
                       uint32_t n) {
  const psplit_i_graph *graph = planner->graph;
  const psplit_i_node *node = &graph->nodes[n];
  if (!psplit_i_may_be_copied(planner, n)) return NO_COPY;
  int64_t sum = least_ns(planner, n);
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const uint32_t value = node->inputs[i];
    const uint32_t producer = value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].producer;
    bool met = false;
    for (uint32_t k = 0; k < i; k++) met |= node->inputs[k] == value;
    if (producer == PSPLIT_NONE || met || !is_private(graph, value, n) ||
        (planner->node_flags[producer] & PSPLIT_I_NODE_FREE))
      continue;
    const bool sendable = psplit_i_planner_sendable(planner, value);
    const uint64_t bytes = psplit_i_planner_sent_bytes(planner, value, NULL);
    const int64_t sent_ns = sendable ? psplit_i_link_ns(&links->fastest, bytes) : NO_COPY;
    if (!sendable && least[producer] == NO_COPY) return NO_COPY;
    sum = psplit_i_sat_add_i64(sum, sent_ns < least[producer] ? sent_ns : least[producer]);
  }
  return sum;
}

/* Whether the copy is cheaper than receiving all results over the slowest link. */
static bool is_cheaper(const psplit_planner *planner, const link_range *links, uint32_t n,
                       int64_t ns) {
  const psplit_i_node *node = &planner->graph->nodes[n];
  int64_t receive_ns = 0;
  if (planner->next_hop) return true; /* routes may have several links */
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE)
      receive_ns = psplit_i_sat_add_i64(
        receive_ns, psplit_i_link_ns(&links->slowest,
                                     psplit_i_planner_sent_bytes(planner, node->outputs[o], NULL)));
  return ns < receive_ns;
}

/* out_copied[n_nodes]: a copy may be cheaper than receiving the results. least_ns[n_nodes]: a lower
 * bound on its cost. */
static void find_copied(const psplit_planner *planner, int64_t *least_ns, uint8_t *out_copied) {
  const psplit_i_graph *graph = planner->graph;
  const link_range links = range_of_links(planner);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    least_ns[n] = n_results(&graph->nodes[n]) ? copy_ns(planner, &links, least_ns, n) : NO_COPY;
    out_copied[n] = least_ns[n] != NO_COPY && is_cheaper(planner, &links, n, least_ns[n]);
  }
}

typedef struct piece {
  int64_t ns;
  uint32_t producer; /* node */
  uint32_t n_users;  /* number of results whose sets contain it */
  uint32_t first;    /* cell of the last of them, or PSPLIT_NONE */
  bool closed;       /* never inherited, since no copy is made for that reader */
} piece;

/* The membership of a piece in a result's set. */
typedef struct cell {
  uint32_t piece, value;
  uint32_t of_piece, of_value; /* the next cell of the piece and of the result, or PSPLIT_NONE */
} cell;

typedef struct pieces {
  const psplit_i_builder *b;
  const uint8_t *copied; /* [n_nodes] */
  psplit_device_link link;
  bool sending;    /* times of senders instead of receivers */
  bool one_sender; /* only one stage sends */
  PSPLIT_VEC(piece) all;
  PSPLIT_VEC(cell) cells;
  uint32_t *of_value; /* [n_values] its last cell, or PSPLIT_NONE */
} pieces;

enum { MOST_CELLS = 32 }; /* per value, on average; above that, pieces are no longer inherited */

static bool put(pieces *p, uint32_t at, uint32_t value) {
  const cell new = {at, value, p->all.items[at].first, p->of_value[value]};
  const uint32_t id = (uint32_t)p->cells.n;
  if (!psplit_i_vec_push(&p->cells, new)) return false;
  p->all.items[at].first = p->of_value[value] = id;
  p->all.items[at].n_users++;
  return true;
}

static bool begin_piece(pieces *p, uint32_t node, uint32_t value, int64_t ns, bool closed) {
  if (ns <= 0) return true;
  return psplit_i_vec_push(&p->all, ((piece){ns, node, 0, PSPLIT_NONE, closed})) &&
         put(p, (uint32_t)p->all.n - 1, value);
}

/* Divides a piece, of which `ns` remain. */
static bool divide(pieces *p, uint32_t at, int64_t ns) {
  const piece old = p->all.items[at];
  const uint32_t rest = (uint32_t)p->all.n;
  if (!psplit_i_vec_push(&p->all, ((piece){old.ns - ns, old.producer, 0, PSPLIT_NONE, false})))
    return false;
  p->all.items[at].ns = ns;
  for (uint32_t c = old.first; c != PSPLIT_NONE; c = p->cells.items[c].of_piece)
    if (!put(p, rest, p->cells.items[c].value)) return false;
  return true;
}

static bool has(const pieces *p, uint32_t value, uint32_t at) {
  for (uint32_t c = p->of_value[value]; c != PSPLIT_NONE; c = p->cells.items[c].of_value)
    if (p->cells.items[c].piece == at) return true;
  return false;
}

/* Selects a piece of the node's inputs that the value does not have, preferring pieces in the
 * fewest sets, so that results with the same inputs pay for different pieces. */
static uint32_t next_piece(const pieces *p, uint32_t node, uint32_t value) {
  const uint32_t *group = p->b->group;
  uint32_t best = PSPLIT_NONE;
  PSPLIT_FOR_EACH_READ(&p->b->planner->graph->nodes[node], input)
    for (uint32_t c = p->of_value[input]; c != PSPLIT_NONE; c = p->cells.items[c].of_value) {
      const uint32_t at = p->cells.items[c].piece;
      const piece *this = &p->all.items[at];
      if (this->closed || (p->sending && !p->one_sender && group[this->producer] != group[node]))
        continue;
      if (best != PSPLIT_NONE && (this->n_users > p->all.items[best].n_users ||
                                  (this->n_users == p->all.items[best].n_users && at >= best)))
        continue;
      if (!has(p, value, at)) best = at;
    }
  return best;
}

/* Whether all readers of the node are in one other supernode. Then the node's own stage would have
 * no use for it if it were copied to that supernode's stage, so the results are sent in any case
 * (copies_idle.c), and the reader pays for them in full: a closed piece stands for what is not in
 * the inherited ones. Copies of the reader may still come with copies of the node. */
static bool is_left(const psplit_i_builder *b, uint32_t n) {
  const psplit_i_graph *graph = b->planner->graph;
  uint32_t reader = PSPLIT_NONE;
  for (uint32_t o = 0; o < graph->nodes[n].n_outputs; o++) {
    const uint32_t value = graph->nodes[n].outputs[o];
    if (value == PSPLIT_NONE) continue;
    if (graph->values[value].is_output) return false;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
      const uint32_t group = b->group[graph->consumers[c]];
      if (group == PSPLIT_NONE || group == b->group[n] ||
          (reader != PSPLIT_NONE && reader != group))
        return false;
      reader = group;
    }
  }
  return reader != PSPLIT_NONE;
}

/* The share of a result in the node's own time. The shares of all results add up to it. */
static int64_t share_of_node(const psplit_planner *planner, uint32_t n, uint32_t value) {
  const psplit_i_node *node = &planner->graph->nodes[n];
  const int64_t ns = least_ns(planner, n), n_out = n_results(node);
  return ns / n_out + (node->outputs[0] == value ? ns % n_out : 0);
}

static bool fill(pieces *p, uint32_t node, uint32_t value) {
  const psplit_planner *planner = p->b->planner;
  if (!psplit_i_planner_sendable(planner, value) || planner->uncuttable[value]) return true;
  int64_t left = psplit_i_link_ns(&p->link, psplit_i_planner_sent_bytes(planner, value, NULL));
  if (!p->copied[node]) return begin_piece(p, node, value, left, false);
  /* its time may be covered by a charge for a message */
  if (p->b->charges_messages) return true;
  int64_t own = p->sending ? 0 : share_of_node(planner, node, value);
  if (own > left) own = left;
  if (!begin_piece(p, node, value, own, false)) return false;
  left -= own;
  while (left > 0 && p->cells.n / MOST_CELLS < planner->graph->n_values) {
    const uint32_t at = next_piece(p, node, value);
    if (at == PSPLIT_NONE) break;
    if (p->all.items[at].ns > left && !divide(p, at, left)) return false;
    left -= p->all.items[at].ns;
    if (!put(p, at, value)) return false;
  }
  return !is_left(p->b, node) || begin_piece(p, node, value, left, true);
}

/* Makes the sets of all results. */
static bool make_pieces(pieces *p) {
  const psplit_i_graph *graph = p->b->planner->graph;
  for (uint32_t v = 0; v < graph->n_values; v++) p->of_value[v] = PSPLIT_NONE;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs && p->b->group[n] != PSPLIT_NONE; o++)
      if (graph->nodes[n].outputs[o] != PSPLIT_NONE && !fill(p, n, graph->nodes[n].outputs[o]))
        return false;
  }
  return true;
}

static uint32_t n_readers(const pieces *p) {
  const uint32_t *off = p->b->planner->graph->consumer_off;
  uint32_t n = 0;
  for (size_t c = 0; c < p->cells.n; c++)
    n += off[p->cells.items[c].value + 1] - off[p->cells.items[c].value];
  return n;
}

static void add_charges(const pieces *p, psplit_i_charges *to) {
  const psplit_i_graph *graph = p->b->planner->graph;
  for (size_t i = 0; i < p->all.n; i++) {
    const piece *this = &p->all.items[i];
    uint32_t end = to->off[to->n];
    for (uint32_t c = this->first; c != PSPLIT_NONE; c = p->cells.items[c].of_piece) {
      const uint32_t value = p->cells.items[c].value;
      for (uint32_t r = graph->consumer_off[value]; r < graph->consumer_off[value + 1]; r++)
        to->reader[end++] = graph->consumers[r];
    }
    to->producer[to->n] = this->producer;
    to->send_ns[to->n] = p->sending ? this->ns : 0;
    to->recv_ns[to->n] = p->sending ? 0 : this->ns;
    to->off[++to->n] = end;
  }
}

/* Makes the charges for all stages, where nodes take compute_ns[n_nodes]. b->charges stays NULL if
 * links are of several kinds, or with overlap. Then copies are assumed to save everything. */
static psplit_code make_charges(psplit_i_builder *b, const int64_t *compute_ns,
                                psplit_i_charges *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_links links;
  pieces received = {.b = b, .copied = b->copied}, sent = {.b = b, .copied = b->copied};
  PSPLIT_TRY(psplit_i_links_find(b->planner, b->any_order, b->arena, b->diag, &links));
  const psplit_planner_options *options = &b->planner->options;
  if (links.n != 1 || options->overlap) goto out;
  received.link = sent.link = links.link[0];
  if (options->message_latency == PSPLIT_LATENCY_PER_PAIR)
    received.link.latency_ns = sent.link.latency_ns = 0;
  sent.sending = true;
  sent.one_sender = b->planner->options.n_stages == 2;
  received.of_value = PSPLIT_NEW(b->arena, uint32_t, b->planner->graph->n_values);
  sent.of_value = PSPLIT_NEW(b->arena, uint32_t, b->planner->graph->n_values);
  if (b->arena->failed || !make_pieces(&received) || !make_pieces(&sent))
    PSPLIT_FAIL(psplit_i_nomem(b->diag));
  const size_t n_more = b->charges_messages ? b->planner->graph->n_nodes : 0,
               n = received.all.n + sent.all.n + n_more,
               n_pins = (size_t)n_readers(&received) + n_readers(&sent) + n_more;
  *out = (psplit_i_charges){.producer = psplit_i_builder_array(b, n, sizeof *out->producer),
                            .off = psplit_i_builder_array(b, n + 1, sizeof *out->off),
                            .reader = psplit_i_builder_array(b, n_pins, sizeof *out->reader),
                            .send_ns = psplit_i_builder_array(b, n, sizeof *out->send_ns),
                            .recv_ns = psplit_i_builder_array(b, n, sizeof *out->recv_ns)};
  if (b->arena->failed) PSPLIT_FAIL(psplit_i_nomem(b->diag));
  add_charges(&received, out);
  add_charges(&sent, out);
  if (b->charges_messages)
    PSPLIT_TRY(psplit_i_add_sure_messages(b, compute_ns, links.link[0].latency_ns, out));
  b->charges = out;
out:
  psplit_i_vec_fini(&received.all);
  psplit_i_vec_fini(&received.cells);
  psplit_i_vec_fini(&sent.all);
  psplit_i_vec_fini(&sent.cells);
  return code;
}

/* For each node: whether it may be copied, and a lower bound on its time. */
typedef struct node_facts {
  uint8_t *copied;
  int64_t *ns;
} node_facts;

static psplit_code find_facts(const psplit_planner *planner, psplit_i_arena *arena,
                              psplit_diag *diag, node_facts *out) {
  const uint32_t n_nodes = planner->graph->n_nodes;
  out->copied = PSPLIT_NEW(arena, uint8_t, n_nodes);
  out->ns = psplit_i_arena_array(arena, n_nodes, sizeof *out->ns);
  if (!out->copied || !out->ns) return psplit_i_nomem(diag);
  find_copied(planner, out->ns, out->copied);
  for (uint32_t n = 0; n < n_nodes; n++) out->ns[n] = least_ns(planner, n);
  return PSPLIT_OK;
}

/* Whether each stage has a device of the same class as in the plan. The solver may have chosen
 * another order. */
static bool in_plans_order(const psplit_planner *planner, const psplit_solution *solution) {
  for (uint32_t s = 0; s < solution->n_stages; s++)
    if (planner->device_class[solution->stages[s].device] != planner->device_class[s]) return false;
  return true;
}

/* Solves one relaxation. Messages come either from results of nodes that are never copied or, with
 * `charged`, from charges. Updates *io_bound_ns if the bound is higher, and the stages if their
 * devices match those of the plan. */
static psplit_code relax(psplit_planner *planner, const node_facts *facts, bool charged,
                         psplit_diag *diag, int64_t *io_bound_ns, uint32_t *io_stage) {
  static const double SHARE = 0.3; /* of the time limit of the split itself */
  psplit_code code;
  psplit_solution *solution = NULL;
  psplit_partition_options options;
  psplit_i_charges charges;
  const uint32_t n_nodes = planner->graph->n_nodes;
  psplit_i_builder b = {.planner = planner,
                        .arena = &planner->scratch,
                        .diag = diag,
                        .any_order = planner->order_chosen, /* as for the bound of the plan */
                        .copied = facts->copied,
                        .charges_messages = charged};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(make_charges(&b, facts->ns, &charges));
  if (charged && !b.charges) goto out;
  PSPLIT_TRY(psplit_i_builder_unlimited(&b));
  psplit_i_partition_options(planner, SHARE, &options);
  psplit_diag why = {0};
  code = psplit_i_plan_solve(planner, &b.problem, &options, &why, &solution);
  if (code == PSPLIT_OK && solution->lower_bound_ns > *io_bound_ns) {
    *io_bound_ns = solution->lower_bound_ns;
    const uint32_t n_taken = in_plans_order(planner, solution) ? n_nodes : 0;
    for (uint32_t n = 0; n < n_taken; n++)
      io_stage[n] = b.group[n] == PSPLIT_NONE ? PSPLIT_NONE : solution->stage[b.group[n]];
  }
  psplit_solution_destroy(solution);
  code =
    code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED ? psplit_i_fail_as(diag, &why) : PSPLIT_OK;
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

psplit_code psplit_i_bound_with_copies(psplit_planner *planner, psplit_diag *diag,
                                       int64_t *out_bound_ns, uint32_t *out_stage) {
  psplit_code code;
  node_facts facts;
  psplit_i_arena arena; /* since each relaxation resets the planner's scratch */
  *out_bound_ns = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) out_stage[n] = PSPLIT_NONE;
  /* The bound would say nothing about other subsets of devices. */
  if (planner->order_chosen && planner->n_candidates > planner->options.n_stages) return PSPLIT_OK;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(find_facts(planner, &arena, diag, &facts));
  PSPLIT_TRY(relax(planner, &facts, false, diag, out_bound_ns, out_stage));
  if (planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR &&
      *out_bound_ns < planner->plan->bottleneck_ns)
    PSPLIT_TRY(relax(planner, &facts, true, diag, out_bound_ns, out_stage));
out:
  psplit_i_arena_fini(&arena);
  return code;
}
