/* Random graphs as REGAL's authors made them for their synthetic set (Paliwal et al., "Reinforced
 * Genetic Algorithm Learning for Optimizing Computation Graphs", ICLR 2020, section 4.1): four
 * models of random graphs whose edges are then directed along a random order of the nodes; sizes of
 * tensors are normal, and an operation takes what it reads and writes. Their own graphs are not
 * published; numbers that the paper leaves open are chosen here. */
#include <stdlib.h>
#include <string.h>

#include "partition_make.h"

enum { TYPICAL = 200 }; /* nodes of the largest of their graphs: larger ones are as dense */

typedef struct sketch {
  maker *m;
  uint32_t n, n_edges, most;
  uint32_t *from, *to; /* from < to */
} sketch;

static double uniform(maker *m) { return (double)(maker_draw(m) >> 11) * 0x1p-53; }

static void *need(void *memory) {
  if (!memory) abort();
  return memory;
}

static void edge(sketch *s, uint32_t a, uint32_t b) {
  if (a == b) return;
  if (s->n_edges == s->most) {
    s->most = 2 * s->most + 1024;
    s->from = need(realloc(s->from, s->most * sizeof *s->from));
    s->to = need(realloc(s->to, s->most * sizeof *s->to));
  }
  s->from[s->n_edges] = a < b ? a : b;
  s->to[s->n_edges++] = a < b ? b : a;
}

/* Each pair with probability p. */
static void erdos_renyi(sketch *s) {
  const double p = s->n > TYPICAL ? 0.05 * TYPICAL / s->n : 0.05;
  for (uint32_t a = 0; a < s->n; a++)
    for (uint32_t b = a + 1; b < s->n; b++)
      if (uniform(s->m) < p) edge(s, a, b);
}

/* Each node joins two others, which are the likelier the more they are joined with. */
static void barabasi_albert(sketch *s) {
  edge(s, 0, 1);
  for (uint32_t v = 2; v < s->n; v++)
    for (int k = 0; k < 2; k++) {
      const uint32_t e = (uint32_t)(maker_draw(s->m) % s->n_edges);
      edge(s, v, maker_draw(s->m) % 2 ? s->from[e] : s->to[e]);
    }
}

/* A ring in which each is joined with the two on either side; 3 edges in 10 lead anywhere. */
static void watts_strogatz(sketch *s) {
  for (uint32_t v = 0; v < s->n; v++)
    for (uint32_t k = 1; k <= 2; k++)
      edge(s, v, uniform(s->m) < 0.3 ? (uint32_t)(maker_draw(s->m) % s->n) : (v + k) % s->n);
}

/* Four blocks, dense inside and sparse in between. */
static void stochastic_block(sketch *s) {
  const double scale = s->n > TYPICAL ? (double)TYPICAL / s->n : 1;
  for (uint32_t a = 0; a < s->n; a++)
    for (uint32_t b = a + 1; b < s->n; b++)
      if (uniform(s->m) < scale * (a * 4 / s->n == b * 4 / s->n ? 0.3 : 0.01)) edge(s, a, b);
}

/* Normal with mean 50 and deviation 10, us: the sum of twelve uniform numbers. */
static int64_t size_of_tensor(maker *m) {
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += uniform(m);
  const int64_t ns = (int64_t)(50000 + 10000 * sum);
  return ns > 1000 ? ns : 1000;
}

static void shuffle(maker *m, uint32_t *items, uint32_t n) {
  for (uint32_t i = n; i > 1; i--) {
    const uint32_t j = (uint32_t)(maker_draw(m) % i), item = items[j];
    items[j] = items[i - 1];
    items[i - 1] = item;
  }
}

/* Directs the edges along a random order and makes the nodes in that order. */
static void build(sketch *s) {
  maker *m = s->m;
  uint32_t *place = need(calloc((size_t)s->n + 1, sizeof *place));
  uint32_t *first = need(calloc((size_t)s->n + 2, sizeof *first));
  uint32_t *to = need(calloc((size_t)s->n_edges + 1, sizeof *to));
  int64_t *size = need(calloc((size_t)s->n + 1, sizeof *size));
  for (uint32_t v = 0; v < s->n; v++) place[v] = v;
  shuffle(m, place, s->n);
  for (uint32_t e = 0; e < s->n_edges; e++) {
    const uint32_t a = place[s->from[e]], b = place[s->to[e]];
    s->from[e] = a < b ? a : b;
    s->to[e] = a < b ? b : a;
    first[s->from[e] + 2]++;
  }
  for (uint32_t v = 1; v <= s->n; v++) first[v + 1] += first[v];
  for (uint32_t e = 0; e < s->n_edges; e++) to[first[s->from[e] + 1]++] = s->to[e];
  for (uint32_t v = 0; v < s->n; v++) maker_node(m, size[v] = size_of_tensor(m));
  for (uint32_t v = 0; v < s->n; v++) {
    if (first[v] == first[v + 1]) continue;
    maker_net(m, v, size[v], to + first[v], first[v + 1] - first[v]);
    for (uint32_t k = first[v]; k < first[v + 1]; k++) m->time[to[k]] += size[v];
  }
  free(place);
  free(first);
  free(to);
  free(size);
}

static void make(maker *m, uint32_t n_nodes, void (*model)(sketch *s)) {
  sketch s = {.m = m, .n = n_nodes};
  model(&s);
  build(&s);
  free(s.from);
  free(s.to);
}

static void make_erdos_renyi(maker *m, uint32_t n) { make(m, n, erdos_renyi); }
static void make_barabasi_albert(maker *m, uint32_t n) { make(m, n, barabasi_albert); }
static void make_watts_strogatz(maker *m, uint32_t n) { make(m, n, watts_strogatz); }
static void make_stochastic_block(maker *m, uint32_t n) { make(m, n, stochastic_block); }

const made_shape kMadeRandom[] = {
  {"erdos-renyi", make_erdos_renyi},
  {"barabasi-albert", make_barabasi_albert},
  {"watts-strogatz", make_watts_strogatz},
  {"stochastic-block", make_stochastic_block},
};
const uint32_t kNMadeRandom = sizeof kMadeRandom / sizeof *kMadeRandom;
