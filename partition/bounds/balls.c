/* Balls by Dijkstra's algorithm, which ends where the next cluster is farther than what the ball
 * has in the mean. */
#include "balls.h"

#include <math.h>
#include <string.h>

enum { UNSEEN, SEEN, TAKEN };

/* Appends the pair of i and j, j > i, to both lists. */
static void append(psplit_i_ball_graph *g, uint32_t *end, uint32_t i, uint32_t j) {
  g->to[end[i]] = j;
  g->to[end[j]] = i;
  g->which[end[i]++] = g->which[end[j]++] = g->n_pairs;
}

psplit_code psplit_i_ball_graph_make(const psplit_i_pairs *pairs, psplit_i_arena *arena,
                                     psplit_i_ball_graph *out) {
  const uint32_t n = pairs->n, n_ends = pairs->off[n];
  psplit_i_ball_graph g = {.n = n, .weight = pairs->weight};
  uint32_t *end = PSPLIT_NEW(arena, uint32_t, n);
  uint32_t *last = PSPLIT_NEW(arena, uint32_t, n); /* cluster whose list has it, + 1 */
  uint32_t *at = PSPLIT_NEW(arena, uint32_t, n);   /* pair with that */
  g.off = PSPLIT_NEW(arena, uint32_t, n + 1);
  g.to = PSPLIT_NEW(arena, uint32_t, n_ends);
  g.which = PSPLIT_NEW(arena, uint32_t, n_ends);
  g.one_of = PSPLIT_NEW(arena, uint32_t, n_ends);
  g.cost = PSPLIT_NEW(arena, double, n_ends / 2);
  g.alone = PSPLIT_NEW(arena, double, n_ends / 2);
  if (arena->failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t l = pairs->off[i]; l < pairs->off[i + 1]; l++) {
      g.off[i + 1] += last[pairs->to[l]] != i + 1;
      last[pairs->to[l]] = i + 1;
    }
  for (uint32_t i = 0; i < n; i++) g.off[i + 1] += g.off[i];
  memcpy(end, g.off, n * sizeof *end);
  memset(last, 0, n * sizeof *last);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t l = pairs->off[i]; l < pairs->off[i + 1]; l++) {
      const uint32_t j = pairs->to[l];
      if (j < i) continue;
      if (last[j] != i + 1) {
        append(&g, end, i, j);
        last[j] = i + 1;
        at[j] = g.n_pairs++;
      }
      g.one_of[l] = at[j];
      g.cost[at[j]] += pairs->cost[l];
      if (pairs->alone) g.alone[at[j]] += pairs->alone[l];
    }
  *out = g;
  return PSPLIT_OK;
}

psplit_code psplit_i_balls_init(psplit_i_balls *balls, const psplit_i_ball_graph *graph,
                                psplit_i_arena *arena) {
  psplit_i_balls b = {.graph = graph};
  double **reals[] = {&b.distance, &b.left, &b.moved, &b.behind};
  uint32_t **numbers[] = {&b.state, &b.at, &b.entry, &b.before, &b.heap, &b.order, &b.seen};
  for (size_t k = 0; k < sizeof reals / sizeof *reals; k++)
    *reals[k] = PSPLIT_NEW(arena, double, graph->n);
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
    *numbers[k] = PSPLIT_NEW(arena, uint32_t, graph->n);
  *balls = b;
  return arena->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

static void put(psplit_i_balls *b, uint32_t place, uint32_t i) {
  b->heap[place] = i;
  b->at[i] = place;
}

static void rise(psplit_i_balls *b, uint32_t i) {
  uint32_t place = b->at[i];
  for (; place > 0 && b->distance[b->heap[(place - 1) / 2]] > b->distance[i];
       place = (place - 1) / 2)
    put(b, place, b->heap[(place - 1) / 2]);
  put(b, place, i);
}

/* The heap without its first. */
static void pop(psplit_i_balls *b) {
  const uint32_t i = b->heap[--b->n_heap];
  uint32_t place = 0;
  if (b->n_heap == 0) return;
  for (uint32_t next = 1; next < b->n_heap; next = 2 * place + 1) {
    if (next + 1 < b->n_heap && b->distance[b->heap[next + 1]] < b->distance[b->heap[next]]) next++;
    if (b->distance[b->heap[next]] >= b->distance[i]) break;
    put(b, place, b->heap[next]);
    place = next;
  }
  put(b, place, i);
}

static void see(psplit_i_balls *b, uint32_t i, double distance, uint32_t before, uint32_t entry) {
  if (b->state[i] == UNSEEN) {
    b->state[i] = SEEN;
    b->left[i] = b->graph->weight[i];
    b->seen[b->n_seen++] = i;
    b->at[i] = b->n_heap++;
  } else if (distance >= b->distance[i]) {
    return;
  }
  b->distance[i] = distance;
  b->before[i] = before;
  b->entry[i] = entry;
  rise(b, i);
}

/* As much of the neighbour's weight as counts at a nearer cluster. */
static double move(psplit_i_balls *b, uint32_t from, uint32_t pair) {
  const double alone = b->graph->alone[pair];
  const double moved = alone < b->left[from] ? alone : b->left[from];
  b->left[from] -= moved;
  return moved;
}

double psplit_i_ball_grow(psplit_i_balls *b, uint32_t root, const double *length, double most) {
  const psplit_i_ball_graph *g = b->graph;
  double weight = 0, paths = 0, best = INFINITY;
  b->n_heap = b->n_order = b->n_seen = b->n_ball = 0;
  b->n_looks = 0;
  see(b, root, 0, root, 0);
  while (b->n_heap > 0) {
    const uint32_t i = b->heap[0];
    const double distance = b->distance[i];
    if (distance >= best) break; /* of what is farther, all is worse than the mean */
    pop(b);
    b->state[i] = TAKEN;
    b->order[b->n_order++] = i;
    weight += b->left[i];
    paths += b->left[i] * distance;
    b->n_looks += g->off[i + 1] - g->off[i];
    for (uint32_t l = g->off[i]; l < g->off[i + 1]; l++) {
      const uint32_t j = g->to[l], pair = g->which[l];
      if (b->state[j] == TAKEN) continue;
      see(b, j, distance + length[pair], i, pair);
      const double moved = move(b, j, pair);
      weight += moved;
      paths += moved * distance;
    }
    if (weight > most && paths / (weight - most) < best) {
      best = paths / (weight - most);
      b->n_ball = b->n_order;
    }
  }
  for (uint32_t k = 0; k < b->n_seen; k++) b->state[b->seen[k]] = UNSEEN;
  return best;
}

double psplit_i_ball_weigh(psplit_i_balls *b) {
  const psplit_i_ball_graph *g = b->graph;
  for (uint32_t k = 0; k < b->n_seen; k++) b->left[b->seen[k]] = g->weight[b->seen[k]];
  for (uint32_t k = 0; k < b->n_ball; k++) {
    const uint32_t i = b->order[k];
    b->state[i] = TAKEN;
    b->moved[i] = 0;
    for (uint32_t l = g->off[i]; l < g->off[i + 1]; l++)
      if (b->state[g->to[l]] != TAKEN) b->moved[i] += move(b, g->to[l], g->which[l]);
  }
  for (uint32_t k = 0; k < b->n_ball; k++) {
    const uint32_t i = b->order[k];
    b->state[i] = UNSEEN;
    b->behind[i] = b->left[i] + b->moved[i];
  }
  for (uint32_t k = b->n_ball; k-- > 1;) {
    const uint32_t i = b->order[k];
    b->behind[b->before[i]] += b->behind[i];
  }
  return b->behind[b->order[0]];
}
