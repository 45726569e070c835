/* Maximum flow by two trees, from the source and towards the sink, that are kept from one path to
 * the next: an arc that is full cuts off a part of a tree, which looks for another place in it.
 * Dinic's phases look at every arc again, for a few paths each.
 * Source: Boykov and Kolmogorov, "An experimental comparison of min-cut/max-flow algorithms for
 * energy minimization in vision", PAMI 2004. */
#include "tree_flow.h"

#include <string.h>

#include "problem.h"

enum { NO_TREE = 0, SOURCE_TREE = 1, SINK_TREE = 2 };

#define ROOT PSPLIT_NONE

typedef struct walk {
  psplit_i_flow *flow;
  psplit_i_flow_arc *arcs;
  psplit_i_tree_node *nodes;
  psplit_i_tree_flow *trees;
  uint32_t first, last; /* of the queue, or NONE */
  uint32_t now;         /* the number of the path */
  uint64_t n_ops;
} walk;

void psplit_i_tree_flow_fini(psplit_i_tree_flow *trees) {
  psplit_i_vec_fini(&trees->nodes);
  psplit_i_vec_fini(&trees->lost);
}

static void queue(walk *w, uint32_t v) {
  psplit_i_tree_node *node = &w->nodes[v];
  if (node->queued) return;
  node->queued = true;
  node->next = PSPLIT_NONE;
  *(w->last == PSPLIT_NONE ? &w->first : &w->nodes[w->last].next) = v;
  w->last = v;
}

static uint32_t unqueue(walk *w) {
  const uint32_t v = w->first;
  w->first = w->nodes[v].next;
  if (w->first == PSPLIT_NONE) w->last = PSPLIT_NONE;
  w->nodes[v].queued = false;
  return v;
}

/* What is left from a node of the tree along its arc `a`, in the direction of the flow. */
static int64_t left(const walk *w, uint32_t a, uint8_t tree) {
  return w->arcs[tree == SOURCE_TREE ? a : a ^ 1].cap;
}

/* Grows the tree of v along its arcs. Returns the arc, from the source's tree to the sink's, that
 * closes a path; or NONE: v has none. */
static uint32_t grow(walk *w, uint32_t v) {
  psplit_i_tree_node *node = &w->nodes[v];
  for (uint32_t a = w->flow->head.items[v]; a; a = w->arcs[a - 1].next) {
    psplit_i_tree_node *other = &w->nodes[w->arcs[a - 1].to];
    w->n_ops++;
    if (left(w, a - 1, node->tree) <= 0) continue;
    if (other->tree == NO_TREE) {
      *other = (psplit_i_tree_node){.up = (a - 1) ^ 1,
                                    .seen = node->seen,
                                    .far = node->far + 1,
                                    .tree = node->tree,
                                    .queued = other->queued,
                                    .next = other->next};
      queue(w, w->arcs[a - 1].to);
    } else if (other->tree != node->tree) {
      return node->tree == SOURCE_TREE ? a - 1 : (a - 1) ^ 1;
    } else if (other->seen <= node->seen && other->far > node->far + 1) {
      other->up = (a - 1) ^ 1; /* a shorter way */
      other->seen = node->seen;
      other->far = node->far + 1;
    }
  }
  return PSPLIT_NONE;
}

static bool lose(walk *w, uint32_t v) {
  w->nodes[v].lost = true;
  return psplit_i_vec_push(&w->trees->lost, v);
}

/* The arc of the flow by which v hangs on its tree. */
static uint32_t hangs_on(const walk *w, uint32_t v) {
  return w->nodes[v].tree == SOURCE_TREE ? w->nodes[v].up ^ 1 : w->nodes[v].up;
}

/* The least that is left from a node to the root of its tree. */
static int64_t least_up(walk *w, uint32_t v, int64_t least) {
  for (; w->nodes[v].up != ROOT; v = w->arcs[w->nodes[v].up].to) {
    const int64_t cap = w->arcs[hangs_on(w, v)].cap;
    if (cap < least) least = cap;
    w->n_ops++;
  }
  return least;
}

/* Pushes along the same; false when out of memory. */
static bool push_up(walk *w, uint32_t v, int64_t by) {
  while (w->nodes[v].up != ROOT) {
    const uint32_t a = hangs_on(w, v), above = w->arcs[w->nodes[v].up].to;
    w->arcs[a].cap -= by;
    w->arcs[a ^ 1].cap += by;
    w->n_ops++;
    if (w->arcs[a].cap == 0 && !lose(w, v)) return false;
    v = above;
  }
  return true;
}

/* How far v is from its root; NONE: it is cut off. The way there is marked. */
static uint32_t way_up(walk *w, uint32_t v) {
  uint32_t far = 0, at = v;
  while (w->nodes[at].seen != w->now && w->nodes[at].up != ROOT) {
    if (w->nodes[at].lost) return PSPLIT_NONE;
    at = w->arcs[w->nodes[at].up].to;
    far++;
  }
  far += w->nodes[at].far;
  w->n_ops += far;
  uint32_t mark = far;
  for (at = v; w->nodes[at].seen != w->now && w->nodes[at].up != ROOT;
       at = w->arcs[w->nodes[at].up].to) {
    w->nodes[at].seen = w->now;
    w->nodes[at].far = mark--;
  }
  return far;
}

/* Finds a lost node another place in its tree, the nearest to the root; or takes it out, and loses
 * what hangs on it. False when out of memory. */
static bool adopt(walk *w, uint32_t v) {
  psplit_i_tree_node *node = &w->nodes[v];
  uint32_t nearest = PSPLIT_NONE, by = PSPLIT_NONE;
  for (uint32_t a = w->flow->head.items[v]; a; a = w->arcs[a - 1].next) {
    const uint32_t u = w->arcs[a - 1].to;
    w->n_ops++;
    if (w->nodes[u].tree != node->tree || left(w, (a - 1) ^ 1, node->tree) <= 0) continue;
    const uint32_t far = way_up(w, u);
    if (far < nearest) {
      nearest = far;
      by = a - 1;
    }
  }
  if (by != PSPLIT_NONE) {
    node->up = by;
    node->seen = w->now;
    node->far = nearest + 1;
    node->lost = false;
    return true;
  }
  for (uint32_t a = w->flow->head.items[v]; a; a = w->arcs[a - 1].next) {
    const uint32_t u = w->arcs[a - 1].to;
    w->n_ops++;
    if (w->nodes[u].tree != node->tree) continue;
    if (left(w, (a - 1) ^ 1, node->tree) > 0) queue(w, u); /* it may grow to here again */
    if (!w->nodes[u].lost && w->nodes[u].up == ((a - 1) ^ 1) && !lose(w, u)) return false;
  }
  node->tree = NO_TREE;
  node->lost = false;
  return true;
}

/* Pushes along a path over the arc; false when out of memory. */
static bool augment(walk *w, uint32_t arc, int64_t *io_value) {
  const uint32_t to = w->arcs[arc].to, from = w->arcs[arc ^ 1].to;
  const int64_t by = least_up(w, to, least_up(w, from, w->arcs[arc].cap));
  if (by >= PSPLIT_I_INF) { /* the flow has no end */
    *io_value = PSPLIT_I_INF;
    return true;
  }
  w->now++;
  w->arcs[arc].cap -= by;
  w->arcs[arc ^ 1].cap += by;
  *io_value += by;
  if (!push_up(w, from, by) || !push_up(w, to, by)) return false;
  for (size_t k = 0; k < w->trees->lost.n; k++)
    if (!adopt(w, w->trees->lost.items[k])) return false;
  w->trees->lost.n = 0;
  return true;
}

static bool begin(walk *w, uint32_t source, uint32_t sink) {
  const size_t n = w->flow->head.n;
  w->trees->nodes.n = w->trees->lost.n = 0;
  if (!psplit_i_vec_reserve(&w->trees->nodes, n)) return false;
  w->nodes = w->trees->nodes.items;
  memset(w->nodes, 0, n * sizeof *w->nodes);
  w->nodes[source] = (psplit_i_tree_node){.up = ROOT, .tree = SOURCE_TREE};
  w->nodes[sink] = (psplit_i_tree_node){.up = ROOT, .tree = SINK_TREE};
  queue(w, source);
  queue(w, sink);
  return true;
}

bool psplit_i_tree_flow_run(psplit_i_tree_flow *trees, psplit_i_flow *flow, uint32_t source,
                            uint32_t sink, psplit_i_budget *budget, psplit_i_tree_cut *out) {
  walk w = {.flow = flow,
            .arcs = flow->arcs.items,
            .trees = trees,
            .first = PSPLIT_NONE,
            .last = PSPLIT_NONE};
  out->value = 0;
  out->whole = false;
  if (!begin(&w, source, sink)) return false;
  w.n_ops = flow->head.n / 2;
  while (w.first != PSPLIT_NONE) {
    const uint32_t v = w.first;
    const uint32_t arc = w.nodes[v].tree == NO_TREE ? PSPLIT_NONE : grow(&w, v);
    if (arc == PSPLIT_NONE)
      unqueue(&w);
    else if (!augment(&w, arc, &out->value))
      return false;
    if (out->value >= PSPLIT_I_INF) return true;
    if (!psplit_i_spend(budget, w.n_ops + w.n_ops / 4)) return true;
    w.n_ops = 0;
  }
  for (size_t v = 0; v < flow->head.n; v++) out->side[v] = w.nodes[v].tree == SOURCE_TREE;
  out->whole = true;
  return true;
}
