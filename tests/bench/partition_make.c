#include "partition_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static void *need(void *memory) {
  if (!memory) {
    fputs("error: out of memory\n", stderr);
    exit(6);
  }
  return memory;
}

void maker_init(maker *m, uint32_t most) {
  *m = (maker){.most = most, .state = 7};
  m->time = need(malloc((size_t)most * sizeof *m->time));
  m->send = need(malloc((size_t)most * sizeof *m->send));
  m->producer = need(malloc((size_t)most * sizeof *m->producer));
  m->off = need(calloc((size_t)most + 1, sizeof *m->off));
  m->most_pins = (size_t)most * 8;
  m->consumer = need(malloc(m->most_pins * sizeof *m->consumer));
  m->together = need(malloc((size_t)most * sizeof *m->together));
  m->flags = need(calloc(most, 1));
  memset(m->together, 0xff, (size_t)most * sizeof *m->together);
}

void maker_fini(maker *m) {
  free(m->time);
  free(m->send);
  free(m->producer);
  free(m->off);
  free(m->consumer);
  free(m->together);
  free(m->flags);
}

psplit_problem maker_problem(const maker *m, const psplit_device *devices, uint32_t n_devices) {
  return (psplit_problem){.n_nodes = m->n,
                          .n_classes = 1,
                          .time_ns = m->time,
                          .node_flags = m->flags,
                          .together = m->together,
                          .n_nets = m->n_nets,
                          .net_producer = m->producer,
                          .net_off = m->off,
                          .net_consumer = m->consumer,
                          .net_send_ns = m->send,
                          .net_recv_ns = m->send,
                          .n_devices = n_devices,
                          .devices = devices,
                          .ticks_per_unit = 1};
}

uint64_t maker_draw(maker *m) { return draw(&m->state); }

uint32_t maker_node(maker *m, int64_t ns) {
  m->time[m->n] = ns;
  return m->n++;
}

static uint32_t node(maker *m, int64_t ns) {
  return maker_node(m, ns + (int64_t)(draw(&m->state) % (uint64_t)(ns / 8 + 1)));
}

void maker_net(maker *m, uint32_t producer, int64_t ns, const uint32_t *to, uint32_t n) {
  if (m->n_pins + n > m->most_pins) {
    m->most_pins = 2 * m->most_pins + n;
    m->consumer = need(realloc(m->consumer, m->most_pins * sizeof *m->consumer));
  }
  m->producer[m->n_nets] = producer;
  m->send[m->n_nets] = ns;
  memcpy(m->consumer + m->n_pins, to, n * sizeof *to);
  m->n_pins += n;
  m->off[++m->n_nets] = m->n_pins;
}

static void net(maker *m, uint32_t producer, int64_t ns, const uint32_t *to, uint32_t n) {
  maker_net(m, producer, ns, to, n);
}

/* Attention and feed-forward with residuals: 16 nodes a block, times in ns like a small model's. */
void make_transformer(maker *m, uint32_t n_nodes) {
  uint32_t in = node(m, 10000);
  while (m->n + 16 <= n_nodes) {
    const uint32_t norm = node(m, 8000), q = node(m, 60000), k = node(m, 60000), v = node(m, 60000);
    const uint32_t kt = node(m, 2000), score = node(m, 40000), scale = node(m, 4000);
    const uint32_t soft = node(m, 9000), mix = node(m, 40000), out = node(m, 60000);
    const uint32_t add = node(m, 3000), norm2 = node(m, 8000), up = node(m, 240000);
    const uint32_t gelu = node(m, 12000), down = node(m, 240000), add2 = node(m, 3000);
    net(m, in, 6000, (uint32_t[]){norm, add}, 2);
    net(m, norm, 6000, (uint32_t[]){q, k, v}, 3);
    net(m, q, 6000, &score, 1);
    net(m, k, 6000, &kt, 1);
    net(m, kt, 6000, &score, 1);
    net(m, v, 6000, &mix, 1);
    net(m, score, 24000, &scale, 1);
    net(m, scale, 24000, &soft, 1);
    net(m, soft, 24000, &mix, 1);
    net(m, mix, 6000, &out, 1);
    net(m, out, 6000, &add, 1);
    net(m, add, 6000, (uint32_t[]){norm2, add2}, 2);
    net(m, norm2, 6000, &up, 1);
    net(m, up, 24000, &gelu, 1);
    net(m, gelu, 24000, &down, 1);
    net(m, down, 6000, &add2, 1);
    in = add2;
  }
}

/* Layers of 100 nodes; each node feeds 1 to 3 of the next layer. */
void make_layered(maker *m, uint32_t n_nodes) {
  const uint32_t width = n_nodes < 1000 ? 10 : 100;
  while (m->n < n_nodes) node(m, 1000 + (int64_t)(draw(&m->state) % 20000));
  for (uint32_t v = 0; v + 2 * width <= n_nodes; v++) {
    uint32_t to[3], n = 1 + (uint32_t)(draw(&m->state) % 3);
    const uint32_t first = (v / width + 1) * width;
    for (uint32_t i = 0; i < n; i++) to[i] = first + (uint32_t)(draw(&m->state) % width);
    net(m, v, 500 + (int64_t)(draw(&m->state) % 1000), to, n);
  }
}

/* --- stand-ins for published instances --- */

/* `to` receives the whole tensor of `from`; join_nets makes one of those with one producer. */
static void edge(maker *m, uint32_t from, int64_t ns, uint32_t to) { net(m, from, ns, &to, 1); }

/* A chain of n nodes behind `in`; returns its last. */
static uint32_t chain(maker *m, uint32_t in, uint32_t n, int64_t node_ns, int64_t net_ns) {
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t v = node(m, k == 0 ? node_ns : node_ns / 20 + 100);
    edge(m, in, net_ns, v);
    in = v;
  }
  return in;
}

/* One node a layer, a mask for all of them. */
static void make_bert_layers(maker *m) {
  const uint32_t mask = node(m, 100), words = node(m, 3000);
  uint32_t in = chain(m, words, 4, 2000, 20);
  for (uint32_t layer = 0; layer < 24; layer++) {
    const uint32_t v = node(m, 36000);
    edge(m, in, 20, v);
    edge(m, mask, 5, v);
    in = v;
  }
  chain(m, in, 2, 9000, 20);
}

/* Attention in single operators; tensors cost more than most operators do. */
static void make_bert_operators(maker *m) {
  const uint32_t mask = chain(m, node(m, 100), 3, 100, 40);
  uint32_t in = chain(m, node(m, 900), 6, 800, 2800);
  for (uint32_t layer = 0; layer < 12; layer++) {
    uint32_t part[3];
    for (uint32_t k = 0; k < 3; k++) part[k] = chain(m, in, 5, 6000, 2800);
    const uint32_t score = node(m, 1500);
    edge(m, part[0], 2800, score);
    edge(m, part[1], 2800, score);
    const uint32_t masked = node(m, 900);
    edge(m, chain(m, score, 1, 800, 11000), 11000, masked);
    edge(m, mask, 40, masked);
    const uint32_t mix = node(m, 1500);
    edge(m, chain(m, masked, 5, 1200, 11000), 11000, mix);
    edge(m, part[2], 2800, mix);
    for (uint32_t half = 0; half < 2; half++) { /* projection; feed-forward */
      const uint32_t out =
        half == 0
          ? chain(m, mix, 5, 6000, 2800)
          : chain(m, chain(m, chain(m, in, 2, 20000, 11000), 8, 900, 11000), 2, 20000, 2800);
      const uint32_t add = node(m, 400);
      edge(m, in, 2800, add);
      edge(m, out, 2800, add);
      in = chain(m, add, 9, 500, 2800);
    }
  }
  chain(m, in, 6, 5000, 2800);
}

/* Encoder and decoder of recurrent layers; every decoder layer reads the encoder's context. */
static void make_gnmt(maker *m) {
  uint32_t in[2] = {chain(m, node(m, 500), 2, 700, 4), chain(m, node(m, 500), 2, 700, 4)};
  uint32_t context = PSPLIT_NONE;
  for (uint32_t side = 0; side < 2; side++) {
    for (uint32_t layer = 0; layer < 8; layer++) {
      const uint32_t lstm = node(m, layer == 0 && side == 0 ? 14000 : 9000);
      edge(m, in[side], 4, lstm);
      if (side == 1) edge(m, context, 4, lstm);
      const uint32_t drop = chain(m, lstm, 2, 300, 4), add = node(m, 200);
      edge(m, drop, 4, add);
      edge(m, in[side], 4, add);
      in[side] = add;
      if (side == 0 || layer > 0) continue;
      const uint32_t query = chain(m, add, 3, 2000, 4), mixed = node(m, 800);
      edge(m, query, 4, mixed);
      edge(m, context, 4, mixed);
      context = mixed;
    }
    if (side == 0) context = chain(m, in[0], 1, 400, 4);
  }
  chain(m, in[1], 3, 25000, 4);
}

/* Modules of four branches, each of convolutions with normalisation and activation. */
static void make_inception(maker *m) {
  static const uint32_t branches[][4] = {{1, 2, 3, 1}, {1, 3, 5, 1}, {1, 2, 4, 2}};
  uint32_t in = chain(m, node(m, 100), 15, 9000, 150);
  for (uint32_t module = 0; module < 11; module++) {
    const uint32_t *depth = branches[module / 4];
    const int64_t net_ns = 90 - 6 * (int64_t)module;
    uint32_t last[4] = {in, in, in, in};
    for (uint32_t b = 0; b < 4; b++) {
      for (uint32_t k = 0; k < depth[b]; k++)
        last[b] = chain(m, last[b], 3, 1400 + 300 * (int64_t)(b + k), net_ns);
    }
    const uint32_t join = node(m, 200);
    for (uint32_t b = 0; b < 4; b++) edge(m, last[b], net_ns, join);
    in = join;
  }
  chain(m, in, 4, 3000, 20);
}

static void residual_blocks(maker *m, uint32_t n_small, int64_t scale, int64_t net_ns) {
  uint32_t in = chain(m, node(m, 100), 3 + n_small, 9 * scale, 2 * net_ns);
  for (uint32_t block = 0; block < 16; block++) {
    uint32_t out = in;
    for (uint32_t k = 0; k < 3; k++) out = chain(m, out, 3 + n_small, 4 * scale, net_ns);
    const bool widens = block == 0 || block == 3 || block == 7 || block == 13;
    const uint32_t skip = widens ? chain(m, in, 2 + n_small, 4 * scale, net_ns) : in;
    const uint32_t add = node(m, 300);
    edge(m, out, net_ns, add);
    edge(m, skip, net_ns, add);
    in = chain(m, add, 1, 200, net_ns);
  }
  chain(m, in, 3, scale, 20);
}

static void make_resnet_layers(maker *m) { residual_blocks(m, 0, 900, 45); }

static void make_resnet_operators(maker *m) { residual_blocks(m, 8, 900, 3800); }

/* One net for each producer: the tensor is sent once, whoever reads it. */
static void join_nets(maker *m) {
  uint32_t *first = need(calloc((size_t)m->n + 1, sizeof *first));
  uint32_t *consumer = need(malloc((size_t)m->most * 8 * sizeof *consumer));
  int64_t *cost = need(calloc(m->n, sizeof *cost));
  for (uint32_t e = 0; e < m->n_nets; e++) {
    first[m->producer[e] + 1] += m->off[e + 1] - m->off[e];
    if (m->send[e] > cost[m->producer[e]]) cost[m->producer[e]] = m->send[e];
  }
  for (uint32_t v = 0; v < m->n; v++) first[v + 1] += first[v];
  for (uint32_t e = m->n_nets; e-- > 0;) /* backwards: `first` ends where it began */
    for (uint32_t k = m->off[e + 1]; k-- > m->off[e];)
      consumer[--first[m->producer[e] + 1]] = m->consumer[k];
  /* first[v + 1] is now where v's consumers begin. */
  m->n_nets = 0;
  for (uint32_t v = 0; v < m->n; v++) {
    const uint32_t end = v + 1 < m->n ? first[v + 2] : m->n_pins;
    if (end == first[v + 1]) continue;
    m->producer[m->n_nets] = v;
    m->send[m->n_nets] = cost[v];
    m->off[++m->n_nets] = end;
  }
  memcpy(m->consumer, consumer, m->n_pins * sizeof *consumer);
  free(first);
  free(consumer);
  free(cost);
}

/* Mirrors every node and tensor as the backward pass; twins stay together. */
void make_training(maker *m) {
  const uint32_t n = m->n, n_nets = m->n_nets;
  maker all;
  maker_init(&all, 2 * (n + m->n_pins)); /* nets are few only once joined */
  for (uint32_t v = 0; v < 2 * n; v++) {
    const uint32_t twin = v % n;
    all.time[v] = v < n ? m->time[v] : m->time[twin] * 3 / 2;
    all.flags[v] = v < n ? 0 : PSPLIT_NODE_BACKWARD;
    all.together[v] = twin;
  }
  all.n = 2 * n;
  for (uint32_t e = 0; e < n_nets; e++)
    for (uint32_t k = m->off[e]; k < m->off[e + 1]; k++) {
      const uint32_t to = m->consumer[k];
      net(&all, m->producer[e], m->send[e], (uint32_t[]){to, n + to}, 2); /* kept for backward */
      edge(&all, n + to, m->send[e], n + m->producer[e]);                 /* gradient */
    }
  join_nets(&all);
  maker_fini(m);
  *m = all;
}

void make_family(const made_family *family, maker *m) {
  maker_init(m, 2000);
  family->make(m);
  join_nets(m);
  if (family->training) make_training(m);
}

const made_family kMadeFamilies[] = {
  {"bert24-like layers", make_bert_layers, false, 6},
  {"bert24-like layers, training", make_bert_layers, true, 6},
  {"gnmt-like layers", make_gnmt, false, 6},
  {"gnmt-like layers, training", make_gnmt, true, 6},
  {"inception-like layers", make_inception, false, 6},
  {"inception-like layers, training", make_inception, true, 6},
  {"resnet50-like layers", make_resnet_layers, false, 6},
  {"resnet50-like layers, training", make_resnet_layers, true, 6},
  {"bert12-like operators", make_bert_operators, false, 6},
  {"bert12-like operators, training", make_bert_operators, true, 6},
  {"resnet50-like operators", make_resnet_operators, false, 6},
  {"resnet50-like operators, training", make_resnet_operators, true, 6},
};
const uint32_t kNMadeFamilies = sizeof kMadeFamilies / sizeof *kMadeFamilies;
