#include "messages.h"
#include "classes.h"

#include <string.h>

enum {
  WINDOW = 512,        /* positions behind a net's last consumer that are looked at */
  LONGEST = 8192,      /* positions from a net's first consumer to its last */
  MOST_CONSUMERS = 64, /* of a net, as bits of a mask */
};

typedef struct trunk {
  const psplit_problem *p;
  psplit_i_arena *arena;
  const bool *inside;   /* [n] or NULL */
  uint32_t *off, *pred; /* [n + 1] edges between forward nodes, by the later end */
  uint32_t *at, *node;  /* [n] position of a node in a topological order; and back */
  uint64_t *mask;       /* [n] by position: consumers of the net at hand at or before it */
  /* Heaviest series that ends, with all consumers, at or before the position; and its last net. */
  int64_t *best;
  uint32_t *best_net;               /* [n] */
  int64_t *value;                   /* [n_nets] of the heaviest series that ends with the net */
  uint32_t *before;                 /* [n_nets] the net before it */
  uint32_t *first_met, *next_met;   /* [n], [n_nets] nets whose consumers are all at or before it */
  uint32_t *first_made, *next_made; /* [n], [n_nets] nets of a producer */
} trunk;

/* --- edges between forward nodes, in a topological order --- */

typedef struct edges {
  trunk *t;
  uint32_t *fill; /* NULL: count */
} edges;

static void add_edge(const edges *to, uint32_t u, uint32_t v) {
  const psplit_problem *p = to->t->p;
  if (psplit_i_is_backward(p, u) || psplit_i_is_backward(p, v)) return;
  if (to->fill)
    to->t->pred[to->fill[v]++] = u;
  else
    to->t->off[v + 1]++;
}

static void add_edges(const edges *to) {
  const psplit_problem *p = to->t->p;
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      add_edge(to, p->net_producer[e], p->net_consumer[k]);
  for (uint32_t k = 0; k < p->n_order; k++) add_edge(to, p->order_from[k], p->order_to[k]);
}

/* Predecessors before successors, depth first from each node: near ones stand near each other. */
static bool sort_nodes(trunk *t) {
  const uint32_t n = t->p->n_nodes;
  uint32_t *stack = PSPLIT_NEW(t->arena, uint32_t, n);
  uint32_t *next = PSPLIT_NEW(t->arena, uint32_t, n);
  uint8_t *state = PSPLIT_NEW(t->arena, uint8_t, n); /* 1: on the stack, 2: placed */
  uint32_t placed = 0;
  if (!stack || !next || !state) return false;
  for (uint32_t root = 0; root < n; root++) {
    uint32_t depth = 0;
    if (state[root]) continue;
    stack[depth++] = root;
    state[root] = 1;
    next[root] = t->off[root];
    while (depth) {
      const uint32_t v = stack[depth - 1];
      if (next[v] < t->off[v + 1]) {
        const uint32_t u = t->pred[next[v]++];
        if (state[u]) continue;
        stack[depth++] = u;
        state[u] = 1;
        next[u] = t->off[u];
      } else {
        state[v] = 2;
        t->at[v] = placed;
        t->node[placed++] = v;
        depth--;
      }
    }
  }
  return true;
}

static psplit_code order_nodes(trunk *t) {
  const psplit_problem *p = t->p;
  const uint32_t n = p->n_nodes;
  t->off = PSPLIT_NEW(t->arena, uint32_t, (size_t)n + 1);
  uint32_t *fill = PSPLIT_NEW(t->arena, uint32_t, n);
  t->at = PSPLIT_NEW(t->arena, uint32_t, n);
  t->node = PSPLIT_NEW(t->arena, uint32_t, n);
  if (!t->off || !fill || !t->at || !t->node) return PSPLIT_NOMEM;
  add_edges(&(edges){t, NULL});
  for (uint32_t v = 0; v < n; v++) t->off[v + 1] += t->off[v];
  memcpy(fill, t->off, n * sizeof *fill);
  t->pred = PSPLIT_NEW(t->arena, uint32_t, t->off[n]);
  if (!t->pred) return PSPLIT_NOMEM;
  add_edges(&(edges){t, fill});
  return sort_nodes(t) ? PSPLIT_OK : PSPLIT_NOMEM;
}

/* --- where all consumers of a net come together --- */

/* The first position at or behind all consumers of net e; PSPLIT_NONE: none that is near, or a net
 * that is not for a trunk. *out_last is that of the last consumer. */
static uint32_t find_meeting(trunk *t, uint32_t e, uint32_t *out_last) {
  const psplit_problem *p = t->p;
  const uint32_t n = p->net_off[e + 1] - p->net_off[e];
  uint32_t first = PSPLIT_NONE, last = 0;
  *out_last = 0;
  if (!psplit_i_makes_message(p, e) || n == 0 || psplit_i_is_backward(p, p->net_producer[e]) ||
      (p->net_flags && (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE)))
    return PSPLIT_NONE;
  for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
    if (psplit_i_is_backward(p, p->net_consumer[k])) return PSPLIT_NONE;
    const uint32_t at = t->at[p->net_consumer[k]];
    if (at < first) first = at;
    if (at > last) last = at;
  }
  *out_last = last;
  if (first == last) return first;
  if (n > MOST_CONSUMERS || last - first > LONGEST) return PSPLIT_NONE;
  const uint32_t end = p->n_nodes - last > WINDOW ? last + WINDOW : p->n_nodes;
  const uint64_t all = n == MOST_CONSUMERS ? UINT64_MAX : (UINT64_C(1) << n) - 1;
  memset(t->mask + first, 0, (end - first) * sizeof *t->mask);
  for (uint32_t k = 0; k < n; k++)
    t->mask[t->at[p->net_consumer[p->net_off[e] + k]]] |= UINT64_C(1) << k;
  for (uint32_t i = first; i < end; i++) {
    const uint32_t v = t->node[i];
    for (uint32_t k = t->off[v]; k < t->off[v + 1]; k++)
      if (t->at[t->pred[k]] >= first) t->mask[i] |= t->mask[t->at[t->pred[k]]];
    if (t->mask[i] == all) return i;
  }
  return PSPLIT_NONE;
}

/* --- the heaviest series --- */

/* Whether the net goes from the nodes that come first to others, or back. */
static bool goes_through(const trunk *t, uint32_t e) {
  const psplit_problem *p = t->p;
  bool others = false;
  for (uint32_t k = p->net_off[e]; t->inside && k < p->net_off[e + 1] && !others; k++)
    others = t->inside[p->net_consumer[k]] != t->inside[p->net_producer[e]];
  return others;
}

/* Long nets are crossed by many stages; but one that is read everywhere is no trunk. */
static int64_t weight_of(const trunk *t, uint32_t e, uint32_t last) {
  const uint32_t n = t->p->n_nodes, most = n > 128 ? n / 8 : 16;
  const uint32_t length = last - t->at[t->p->net_producer[e]];
  const int64_t first = goes_through(t, e) ? (int64_t)n * n : 0; /* above all others together */
  return first + (length < most ? length : most);
}

static bool find_series(trunk *t, uint8_t *flags) {
  const psplit_problem *p = t->p;
  const size_t n = p->n_nodes, n_nets = p->n_nets;
  t->mask = PSPLIT_NEW(t->arena, uint64_t, n);
  t->best = PSPLIT_NEW(t->arena, int64_t, n);
  t->best_net = PSPLIT_NEW(t->arena, uint32_t, n);
  t->value = PSPLIT_NEW(t->arena, int64_t, n_nets);
  t->before = PSPLIT_NEW(t->arena, uint32_t, n_nets);
  t->first_met = PSPLIT_NEW(t->arena, uint32_t, n);
  t->next_met = PSPLIT_NEW(t->arena, uint32_t, n_nets);
  t->first_made = PSPLIT_NEW(t->arena, uint32_t, n);
  t->next_made = PSPLIT_NEW(t->arena, uint32_t, n_nets);
  if (!t->mask || !t->best || !t->best_net || !t->value || !t->before || !t->first_met ||
      !t->next_met || !t->first_made || !t->next_made)
    return false;
  memset(t->first_met, 0xff, n * sizeof *t->first_met);
  memset(t->first_made, 0xff, n * sizeof *t->first_made);
  for (uint32_t e = 0; e < n_nets; e++) {
    uint32_t last;
    const uint32_t meeting = find_meeting(t, e, &last);
    if (last == 0) continue; /* a consumer stands behind its producer */
    const uint32_t made = t->at[p->net_producer[e]];
    t->value[e] = weight_of(t, e, last);
    t->next_made[e] = t->first_made[made];
    t->first_made[made] = e;
    if (meeting == PSPLIT_NONE) continue; /* it may be the last */
    t->next_met[e] = t->first_met[meeting];
    t->first_met[meeting] = e;
  }
  uint32_t end = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t v = t->node[i];
    t->best_net[i] = PSPLIT_NONE;
    for (uint32_t k = t->off[v]; k < t->off[v + 1]; k++) {
      const uint32_t u = t->at[t->pred[k]];
      if (t->best[u] <= t->best[i]) continue;
      t->best[i] = t->best[u];
      t->best_net[i] = t->best_net[u];
    }
    for (uint32_t e = t->first_met[i]; e != PSPLIT_NONE; e = t->next_met[e])
      if (t->value[e] > t->best[i]) {
        t->best[i] = t->value[e];
        t->best_net[i] = e;
      }
    for (uint32_t e = t->first_made[i]; e != PSPLIT_NONE; e = t->next_made[e]) {
      t->value[e] += t->best[i];
      t->before[e] = t->best_net[i];
      if (end == PSPLIT_NONE || t->value[e] > t->value[end]) end = e;
    }
  }
  for (; end != PSPLIT_NONE; end = t->before[end]) flags[end] |= PSPLIT_I_NET_TRUNK;
  return true;
}

psplit_code psplit_i_messages_mark(psplit_i_arena *arena, const bool *inside,
                                   psplit_problem *io_problem) {
  const psplit_problem *p = io_problem;
  psplit_i_arena own;
  if (!p->message_ns || p->n_nets == 0 || p->comm != PSPLIT_COMM_P2P) return PSPLIT_OK;
  uint8_t *flags = PSPLIT_NEW(arena, uint8_t, p->n_nets);
  if (!flags) return PSPLIT_NOMEM;
  if (p->net_flags) memcpy(flags, p->net_flags, p->n_nets);
  for (uint32_t e = 0; e < p->n_nets; e++) flags[e] &= (uint8_t)~PSPLIT_I_NET_TRUNK;
  psplit_i_arena_init(&own, 0);
  trunk t = {.p = p, .arena = &own, .inside = inside};
  psplit_code code = order_nodes(&t);
  if (code == PSPLIT_OK) code = find_series(&t, flags) ? PSPLIT_OK : PSPLIT_NOMEM;
  psplit_i_arena_fini(&own);
  if (code == PSPLIT_OK) io_problem->net_flags = flags;
  return code;
}

psplit_code psplit_i_messages_relax(const psplit_problem *p, psplit_i_arena *arena,
                                    psplit_problem *out) {
  const size_t n = p->n_link_classes ? p->n_link_classes : p->n_classes;
  *out = *p;
  out->message_ns = NULL;
  for (int side = 0; side < (p->n_link_classes ? 1 : 2); side++) {
    int64_t *ns = psplit_i_arena_array(arena, p->n_nets, n * sizeof *ns);
    if (!ns) return PSPLIT_NOMEM;
    for (uint32_t e = 0; e < p->n_nets; e++)
      for (uint32_t c = 0; c < n; c++) {
        ns[e * n + c] =
          p->n_link_classes ? p->net_link_ns[e * n + c] : psplit_i_net_ns(p, e, c, side == 0);
        if (psplit_i_on_trunk(p, e)) ns[e * n + c] += p->message_ns[c];
      }
    if (p->n_link_classes)
      out->net_link_ns = ns;
    else if (side == 0)
      out->net_send_ns = ns;
    else
      out->net_recv_ns = ns;
  }
  return PSPLIT_OK;
}
