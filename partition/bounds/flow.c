/* Maximum flow: Dinic's blocking flows, without recursion.
 * Source: Dinic, "Algorithm for solution of a problem of maximum flow in networks", 1970. */
#include <string.h>

#include "flow.h"
#include "problem.h"

void psplit_i_flow_reset(psplit_i_flow *flow) { flow->head.n = flow->arcs.n = flow->scratch.n = 0; }

void psplit_i_flow_fini(psplit_i_flow *flow) {
  psplit_i_vec_fini(&flow->head);
  psplit_i_vec_fini(&flow->arcs);
  psplit_i_vec_fini(&flow->scratch);
}

bool psplit_i_flow_copy(psplit_i_flow *to, const psplit_i_flow *from) {
  psplit_i_flow_reset(to);
  if (!psplit_i_vec_reserve(&to->head, from->head.n) ||
      !psplit_i_vec_reserve(&to->arcs, from->arcs.n))
    return false;
  if (from->head.n) memcpy(to->head.items, from->head.items, from->head.n * sizeof *to->head.items);
  if (from->arcs.n) memcpy(to->arcs.items, from->arcs.items, from->arcs.n * sizeof *to->arcs.items);
  to->head.n = from->head.n;
  to->arcs.n = from->arcs.n;
  return true;
}

uint32_t psplit_i_flow_node(psplit_i_flow *flow) {
  return psplit_i_vec_push(&flow->head, 0) ? (uint32_t)flow->head.n - 1 : PSPLIT_NONE;
}

bool psplit_i_flow_arc_add(psplit_i_flow *flow, uint32_t from, uint32_t to, int64_t cap) {
  if (from == to) return true;
  if (!psplit_i_vec_reserve(&flow->arcs, 2)) return false;
  const uint32_t arc = (uint32_t)flow->arcs.n;
  flow->arcs.items[arc] = (psplit_i_flow_arc){to, flow->head.items[from], cap};
  flow->arcs.items[arc + 1] = (psplit_i_flow_arc){from, flow->head.items[to], 0};
  flow->head.items[from] = arc + 1;
  flow->head.items[to] = arc + 2;
  flow->arcs.n += 2;
  return true;
}

/* Breadth-first levels from the source; false when the sink is out of reach. */
static bool levels(const psplit_i_flow *flow, uint32_t source, uint32_t sink, uint32_t *level,
                   uint32_t *queue, uint64_t *n_ops) {
  memset(level, 0xff, flow->head.n * sizeof *level);
  uint32_t head = 0, tail = 0;
  level[source] = 0;
  queue[tail++] = source;
  *n_ops += flow->head.n / 16;
  while (head < tail) {
    const uint32_t v = queue[head++];
    for (uint32_t a = flow->head.items[v]; a; a = flow->arcs.items[a - 1].next) {
      const psplit_i_flow_arc *arc = &flow->arcs.items[a - 1];
      ++*n_ops;
      if (arc->cap <= 0 || level[arc->to] != PSPLIT_NONE) continue;
      level[arc->to] = level[v] + 1;
      if (arc->to == sink) return true;
      queue[tail++] = arc->to;
    }
  }
  return false;
}

static int64_t blocking_flow(psplit_i_flow *flow, uint32_t source, uint32_t sink,
                             const uint32_t *level, uint32_t *next, uint32_t *path, int64_t enough,
                             psplit_i_budget *budget) {
  int64_t total = 0;
  uint32_t depth = 0, v = source;
  memcpy(next, flow->head.items, flow->head.n * sizeof *next);
  while (total < enough) {
    if (v == sink) {
      int64_t least = PSPLIT_I_INF;
      for (uint32_t i = 0; i < depth; i++)
        if (flow->arcs.items[path[i]].cap < least) least = flow->arcs.items[path[i]].cap;
      uint32_t back = depth;
      for (uint32_t i = depth; i-- > 0;) {
        flow->arcs.items[path[i]].cap -= least;
        flow->arcs.items[path[i] ^ 1].cap += least;
        if (flow->arcs.items[path[i]].cap == 0) back = i;
      }
      total += least;
      if (!psplit_i_spend(budget, depth / 2 + 1)) return total;
      v = back < depth ? flow->arcs.items[path[back] ^ 1].to : source;
      depth = back < depth ? back : 0;
      /* Only unbounded arcs: the flow has no end. */
      if (least >= PSPLIT_I_INF) return enough;
      continue;
    }
    uint32_t a = next[v], n_seen = 1;
    for (; a; a = flow->arcs.items[a - 1].next) {
      const psplit_i_flow_arc *arc = &flow->arcs.items[a - 1];
      if (arc->cap > 0 && level[arc->to] == level[v] + 1) break;
      n_seen++;
    }
    if (!psplit_i_spend(budget, n_seen)) return total;
    next[v] = a;
    if (a) {
      path[depth++] = a - 1;
      v = flow->arcs.items[a - 1].to;
    } else if (depth == 0) {
      break;
    } else {
      v = flow->arcs.items[path[--depth] ^ 1].to;
      next[v] = flow->arcs.items[next[v] - 1].next;
    }
  }
  return total;
}

bool psplit_i_flow_run(psplit_i_flow *flow, uint32_t source, uint32_t sink, int64_t enough,
                       psplit_i_budget *budget, int64_t *inout_value) {
  const size_t n = flow->head.n;
  flow->scratch.n = 0;
  if (!psplit_i_vec_reserve(&flow->scratch, 3 * n)) return false;
  uint32_t *level = flow->scratch.items, *next = level + n, *path = next + n;
  while (*inout_value < enough) {
    uint64_t n_ops = 0;
    const bool more = levels(flow, source, sink, level, path, &n_ops);
    if (!psplit_i_spend(budget, n_ops) || !more) break;
    *inout_value +=
      blocking_flow(flow, source, sink, level, next, path, enough - *inout_value, budget);
  }
  if (*inout_value > enough) *inout_value = enough;
  return true;
}

bool psplit_i_flow_side(psplit_i_flow *flow, uint32_t source, bool *side) {
  const size_t n = flow->head.n;
  flow->scratch.n = 0;
  if (!psplit_i_vec_reserve(&flow->scratch, n)) return false;
  uint32_t *stack = flow->scratch.items, size = 0;
  memset(side, 0, n);
  side[source] = true;
  stack[size++] = source;
  while (size) {
    const uint32_t v = stack[--size];
    for (uint32_t a = flow->head.items[v]; a; a = flow->arcs.items[a - 1].next) {
      const psplit_i_flow_arc *arc = &flow->arcs.items[a - 1];
      if (arc->cap <= 0 || side[arc->to]) continue;
      side[arc->to] = true;
      stack[size++] = arc->to;
    }
  }
  return true;
}
