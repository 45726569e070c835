#include "classes.h"
#include "compare.h"
#include "lists.h"
#include "union_find.h"

#include <stdlib.h>
#include <string.h>

/* Scratch of one build. `class_of` are dense class ids in the order of their smallest node. */
typedef struct build {
  const psplit_problem *p;
  psplit_i_arena *scratch;
  psplit_i_arena
    order;            /* what only finding the order of classes needs: the arrays from `edges` on */
  uint32_t *parent;   /* [n_nodes] */
  uint32_t *class_of; /* [n_nodes] */
  uint32_t n;
  bool *orphan; /* [n_nodes] backward, and no forward node in its keep-together class */
  size_t n_edges;
  uint64_t *edges;    /* from << 32 | to, between classes, as they come */
  uint32_t *off, *to; /* [n + 1] and the same edges, sorted and distinct */
  bool unordered;     /* no edge orders anything */
} build;

static psplit_code unite_given(build *b, const uint32_t *merge) {
  const psplit_problem *p = b->p;
  const uint32_t n = p->n_nodes;
  for (uint32_t v = 0; v < n; v++) b->parent[v] = v;
  if (p->together) {
    uint64_t *by_class = psplit_i_arena_array(b->scratch, n, sizeof *by_class);
    if (!by_class) return PSPLIT_NOMEM;
    uint32_t n_members = 0;
    for (uint32_t v = 0; v < n; v++)
      if (p->together[v] != PSPLIT_NONE) by_class[n_members++] = (uint64_t)p->together[v] << 32 | v;
    qsort(by_class, n_members, sizeof *by_class, psplit_i_compare_u64);
    for (uint32_t i = 1; i < n_members; i++)
      if (by_class[i] >> 32 == by_class[i - 1] >> 32)
        psplit_i_unite(b->parent, (uint32_t)by_class[i], (uint32_t)by_class[i - 1]);
  }
  /* Before anything else is united: reductions must not change which edges order stages. */
  if (p->node_flags) {
    bool *has_forward = PSPLIT_NEW(b->scratch, bool, n);
    b->orphan = PSPLIT_NEW(b->scratch, bool, n);
    if (!has_forward || !b->orphan) return PSPLIT_NOMEM;
    for (uint32_t v = 0; v < n; v++)
      if (!psplit_i_is_backward(p, v)) has_forward[psplit_i_find(b->parent, v)] = true;
    for (uint32_t v = 0; v < n; v++) b->orphan[v] = !has_forward[psplit_i_find(b->parent, v)];
  }
  for (uint32_t v = 0; merge && v < n; v++) psplit_i_unite(b->parent, v, merge[v]);
  for (uint32_t e = 0; p->net_flags && e < p->n_nets; e++)
    if (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE)
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
        psplit_i_unite(b->parent, p->net_producer[e], p->net_consumer[k]);
  return PSPLIT_OK;
}

static void number_classes(build *b) {
  const psplit_problem *p = b->p;
  b->n = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t root = psplit_i_find(b->parent, v); /* never above v */
    b->class_of[v] = root == v ? b->n++ : b->class_of[root];
  }
}

/* An edge between forward nodes orders their classes. One between backward nodes does so, reversed,
 * only where one of them has no forward twin: the backward pass visits the stages in reverse. */
static void add_edge(build *b, uint32_t from, uint32_t to) {
  const uint32_t x = b->class_of[from], y = b->class_of[to];
  if (x == y || b->unordered) return;
  const bool back_from = psplit_i_is_backward(b->p, from), back_to = psplit_i_is_backward(b->p, to);
  if (!back_from && !back_to)
    b->edges[b->n_edges++] = (uint64_t)x << 32 | y;
  else if (back_from && back_to && (b->orphan[from] || b->orphan[to]))
    b->edges[b->n_edges++] = (uint64_t)y << 32 | x;
}

static psplit_code collect_edges(build *b) {
  const psplit_problem *p = b->p;
  const size_t most = (size_t)(p->n_nets ? p->net_off[p->n_nets] : 0) + p->n_order;
  psplit_i_arena_fini(&b->order);
  b->edges = psplit_i_arena_array(&b->order, most, sizeof *b->edges);
  b->off = PSPLIT_NEW(&b->order, uint32_t, (size_t)b->n + 1);
  b->to = psplit_i_arena_array(&b->order, most, sizeof *b->to);
  if (!b->edges || !b->off || !b->to) return PSPLIT_NOMEM;
  b->n_edges = 0;
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      add_edge(b, p->net_producer[e], p->net_consumer[k]);
  for (uint32_t k = 0; k < p->n_order; k++) add_edge(b, p->order_from[k], p->order_to[k]);
  psplit_i_lists_of_edges(b->edges, b->n_edges, b->n, b->off, b->to);
  return PSPLIT_OK;
}

/* Tarjan's strongly connected components, without recursion. Unites the nodes of classes on a
 * common cycle; *out_found tells whether there were any. */
static psplit_code unite_cycles(build *b, bool *out_found) {
  const uint32_t n = b->n;
  const uint32_t *off = b->off;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  uint32_t *memory = psplit_i_arena_array(&arena, n, 6 * sizeof *memory);
  bool *on_stack = PSPLIT_NEW(&arena, bool, n);
  if (!memory || !on_stack) {
    psplit_i_arena_fini(&arena);
    return PSPLIT_NOMEM;
  }
  uint32_t *index = memory, *low = index + n, *stack = low + n, *calls = stack + n;
  uint32_t *next = calls + n, *node_of = next + n;
  for (uint32_t v = b->p->n_nodes; v-- > 0;) node_of[b->class_of[v]] = v;
  memset(index, 0xff, n * sizeof *index);
  *out_found = false;
  uint32_t counter = 0, n_stack = 0;
  for (uint32_t root = 0; root < n; root++) {
    if (index[root] != PSPLIT_NONE) continue;
    uint32_t n_calls = 0;
    calls[n_calls++] = root;
    index[root] = low[root] = counter++;
    next[root] = off[root];
    stack[n_stack++] = root;
    on_stack[root] = true;
    while (n_calls) {
      const uint32_t x = calls[n_calls - 1];
      if (next[x] < off[x + 1]) {
        const uint32_t y = b->to[next[x]++];
        if (index[y] == PSPLIT_NONE) {
          calls[n_calls++] = y;
          index[y] = low[y] = counter++;
          next[y] = off[y];
          stack[n_stack++] = y;
          on_stack[y] = true;
        } else if (on_stack[y] && index[y] < low[x]) {
          low[x] = index[y];
        }
        continue;
      }
      n_calls--;
      if (n_calls && low[x] < low[calls[n_calls - 1]]) low[calls[n_calls - 1]] = low[x];
      if (low[x] != index[x]) continue;
      for (;;) {
        const uint32_t y = stack[--n_stack];
        on_stack[y] = false;
        if (y == x) break;
        psplit_i_unite(b->parent, node_of[x], node_of[y]);
        *out_found = true;
      }
    }
  }
  psplit_i_arena_fini(&arena);
  return PSPLIT_OK;
}

/* Renumbers the classes topologically, the smallest ready class first; `succ_off` and `succ` are
 * the edges between the new numbers. */
static psplit_code sort_topologically(build *b, psplit_i_arena *arena, psplit_i_classes *out) {
  const uint32_t n = b->n;
  const uint32_t *off = b->off;
  uint32_t *memory = psplit_i_arena_zeroed(&b->order, n, 4 * sizeof *memory);
  out->succ_off = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  out->succ = PSPLIT_NEW(arena, uint32_t, off[n]);
  if (!memory || !out->succ_off || !out->succ) return PSPLIT_NOMEM;
  uint32_t *indegree = memory, *heap = memory + n, *number = memory + 2 * (size_t)n;
  uint32_t *order = memory + 3 * (size_t)n;
  for (uint32_t k = 0; k < off[n]; k++) indegree[b->to[k]]++;
  uint32_t size = 0, done = 0;
  for (uint32_t x = 0; x < n; x++)
    if (indegree[x] == 0) heap[size++] = x; /* ascending, hence a heap */
  while (size) {
    const uint32_t x = heap[0];
    uint32_t last = heap[--size], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < size; at = child) {
      if (child + 1 < size && heap[child + 1] < heap[child]) child++;
      if (heap[child] >= last) break;
      heap[at] = heap[child];
    }
    heap[at] = last;
    order[done] = x;
    number[x] = done++;
    for (uint32_t k = off[x]; k < off[x + 1]; k++) {
      const uint32_t y = b->to[k];
      if (--indegree[y]) continue;
      uint32_t i = size++;
      for (; i > 0 && heap[(i - 1) / 2] > y; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
      heap[i] = y;
    }
  }
  if (done != n) return PSPLIT_INTERNAL;
  for (uint32_t v = 0; v < b->p->n_nodes; v++) b->class_of[v] = number[b->class_of[v]];
  for (uint32_t i = 0, at = 0; i < n; i++) {
    const uint32_t first = at;
    for (uint32_t k = off[order[i]]; k < off[order[i] + 1]; k++) out->succ[at++] = number[b->to[k]];
    psplit_i_sort_distinct(out->succ + first, at - first);
    out->succ_off[i + 1] = at;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_classes_make(const psplit_problem *problem, const uint32_t *merge,
                                  bool unordered, psplit_i_arena *arena, psplit_i_arena *scratch,
                                  psplit_i_classes *out) {
  psplit_code code = PSPLIT_NOMEM;
  build b = {.p = problem, .scratch = scratch, .unordered = unordered};
  psplit_i_arena_init(&b.order, 0);
  b.parent = psplit_i_arena_array(scratch, problem->n_nodes, sizeof *b.parent);
  b.class_of = psplit_i_arena_array(scratch, problem->n_nodes, sizeof *b.class_of);
  if (!b.parent || !b.class_of) goto out;
  PSPLIT_TRY(unite_given(&b, merge));
  for (bool cycles = true; cycles;) {
    number_classes(&b);
    PSPLIT_TRY(collect_edges(&b));
    PSPLIT_TRY(unite_cycles(&b, &cycles));
  }
  PSPLIT_TRY(sort_topologically(&b, arena, out));
  out->n = b.n;
  out->class_of = b.class_of;
out:
  psplit_i_arena_fini(&b.order);
  return code;
}
