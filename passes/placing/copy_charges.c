/* Charges for splits with copied nodes, where computing a node again is cheaper than receiving its
 * results.
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
 * All of this is about one stage, so each kind of stages has pieces of its own: what it receives
 * takes at least the time of the best link from earlier stages, and what it sends that of the best
 * link to later ones.
 *
 * Where latency is charged per message, pieces cover only the bytes. A result whose node is never
 * copied is sent from the node's stage to the stages of all its readers, so it makes a message. A
 * result that may be copied makes none. */
#include "copy_charges.h"

#include <string.h>

#include "devices_inside.h"
#include "sure_messages.h"

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
  const int64_t *compute_ns;
  const uint8_t *copied; /* [n_nodes] */
  psplit_device_link link;
  uint32_t kind;   /* of stages */
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
static int64_t share_of_node(const pieces *p, uint32_t n, uint32_t value) {
  const psplit_i_node *node = &p->b->planner->graph->nodes[n];
  const int64_t ns = p->compute_ns[n], n_out = psplit_i_n_results(node);
  return ns / n_out + (node->outputs[0] == value ? ns % n_out : 0);
}

static bool fill(pieces *p, uint32_t node, uint32_t value) {
  const psplit_planner *planner = p->b->planner;
  if (!psplit_i_planner_sendable(planner, value) || planner->uncuttable[value]) return true;
  int64_t left = psplit_i_link_ns(&p->link, psplit_i_planner_sent_bytes(planner, value, NULL));
  if (!p->copied[node]) return begin_piece(p, node, value, left, false);
  /* its time may be covered by a charge for a message */
  if (p->b->charges_messages) return true;
  int64_t own = p->sending ? 0 : share_of_node(p, node, value);
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

static size_t n_readers(const pieces *p) {
  const uint32_t *off = p->b->planner->graph->consumer_off;
  size_t n = 0;
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
    to->kind[to->n] = p->kind;
    to->send_ns[to->n] = p->sending ? this->ns : 0;
    to->recv_ns[to->n] = p->sending ? 0 : this->ns;
    to->off[++to->n] = end;
  }
}

/* What the stages of one kind receive, or send. */
static psplit_code find_pieces(psplit_i_builder *b, const psplit_i_copy_costs *costs, uint32_t kind,
                               bool sending, pieces *out) {
  const psplit_i_copy_kind *of = &costs->kinds[kind];
  *out = (pieces){.b = b,
                  .compute_ns = costs->compute_ns,
                  .copied = sending ? b->copied : of->copied,
                  .link = sending ? of->out : of->in,
                  .kind = kind,
                  .sending = sending,
                  .one_sender = b->planner->options.n_stages == 2,
                  .of_value = PSPLIT_NEW(b->arena, uint32_t, b->planner->graph->n_values)};
  if (b->planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR) out->link.latency_ns = 0;
  return out->of_value && make_pieces(out) ? PSPLIT_OK : psplit_i_nomem(b->diag);
}

/* Room for all pieces and for the messages of as many nodes. */
static psplit_code begin_charges(psplit_i_builder *b, const pieces *all, size_t n_all,
                                 size_t n_messages, psplit_i_charges *out) {
  size_t n = n_messages, n_pins = n_messages;
  for (size_t i = 0; i < n_all; i++) {
    n += all[i].all.n;
    n_pins += n_readers(&all[i]);
  }
  *out = (psplit_i_charges){.producer = psplit_i_builder_array(b, n, sizeof *out->producer),
                            .kind = psplit_i_builder_array(b, n, sizeof *out->kind),
                            .off = psplit_i_builder_array(b, n + 1, sizeof *out->off),
                            .reader = psplit_i_builder_array(b, n_pins, sizeof *out->reader),
                            .send_ns = psplit_i_builder_array(b, n, sizeof *out->send_ns),
                            .recv_ns = psplit_i_builder_array(b, n, sizeof *out->recv_ns)};
  return b->arena->failed ? psplit_i_nomem(b->diag) : PSPLIT_OK;
}

psplit_code psplit_i_copy_charges_make(psplit_i_builder *b, const psplit_i_copy_costs *costs,
                                       psplit_i_charges *out) {
  psplit_code code;
  const size_t n_all = (size_t)2 * costs->n_kinds;
  pieces *all = PSPLIT_NEW(b->arena, pieces, n_all);
  if (!all) return psplit_i_nomem(b->diag);
  for (uint32_t i = 0; i < n_all; i++) PSPLIT_TRY(find_pieces(b, costs, i / 2, i % 2, &all[i]));
  PSPLIT_TRY(begin_charges(
    b, all, n_all, b->charges_messages ? (size_t)costs->n_kinds * b->planner->graph->n_nodes : 0,
    out));
  for (size_t i = 0; i < n_all; i++) add_charges(&all[i], out);
  for (uint32_t k = 0; b->charges_messages && k < costs->n_kinds; k++)
    PSPLIT_TRY(psplit_i_add_sure_messages(b, costs, k, out));
  out->kind_of_column = costs->kind_of_column;
out:
  for (size_t i = 0; i < n_all; i++) {
    psplit_i_vec_fini(&all[i].all);
    psplit_i_vec_fini(&all[i].cells);
  }
  return code;
}
