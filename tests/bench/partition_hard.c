/* Shapes whose gaps stay open longest: what they share is that one tensor goes to many, or many to
 * one. Times are ns; a tensor over a link takes 10 us and more. */
#include <string.h>

#include "partition_make.h"

/* A node behind `in`, whose tensor takes `net_ns`. */
static uint32_t behind(maker *m, uint32_t in, int64_t net_ns, int64_t ns) {
  const uint32_t v = maker_node(m, ns);
  maker_net(m, in, net_ns, &v, 1);
  return v;
}

/* Encoders whose layers all read what one small node makes of the attention mask and of scales:
 * five small tensors to every layer. */
static void make_encoder(maker *m, uint32_t n_nodes) {
  enum { MASKS = 5, LAYER = 22, MOST_LAYERS = 400 };
  static uint32_t readers[MASKS][3 * MOST_LAYERS];
  uint32_t n_readers[MASKS] = {0};
  uint32_t n_layers = n_nodes / LAYER ? n_nodes / LAYER : 1;
  if (n_layers > MOST_LAYERS) n_layers = MOST_LAYERS;
  const uint32_t shape = maker_node(m, 4000), mask = behind(m, shape, 10000, 16000);
  uint32_t in = behind(m, maker_node(m, 2000), 10050, 20000);
  for (uint32_t layer = 0; layer < n_layers; layer++) {
    const uint32_t norm = behind(m, in, 10100, 10000), quantised = maker_node(m, 6000);
    uint32_t parts[3], part[3];
    maker_net(m, norm, 10100, &quantised, 1);
    for (uint32_t k = 0; k < 3; k++) {
      parts[k] = maker_node(m, 22000);
      part[k] = behind(m, parts[k], 10200, 4000);
      readers[0][n_readers[0]++] = parts[k];
      readers[1][n_readers[1]++] = part[k];
    }
    maker_net(m, quantised, 10060, parts, 3);
    const uint32_t score = maker_node(m, 8000), mix = maker_node(m, 8000);
    maker_net(m, part[0], 10100, &score, 1);
    maker_net(m, part[1], 10100, &score, 1);
    maker_net(m, part[2], 10100, &mix, 1);
    const uint32_t soft = behind(m, score, 10100, 10000);
    maker_net(m, soft, 10100, &mix, 1);
    readers[2][n_readers[2]++] = score;
    readers[3][n_readers[3]++] = soft;
    const uint32_t add = behind(m, behind(m, mix, 10100, 22000), 10100, 4000);
    maker_net(m, in, 10100, &add, 1);
    const uint32_t up = behind(m, behind(m, add, 10100, 10000), 10100, 60000);
    const uint32_t down = behind(m, behind(m, up, 10400, 20000), 10400, 60000);
    readers[4][n_readers[4]++] = up;
    in = behind(m, down, 10100, 4000);
    maker_net(m, add, 10100, &in, 1);
  }
  for (uint32_t k = 0; k < MASKS; k++) maker_net(m, mask, 10003, readers[k], n_readers[k]);
  behind(m, in, 10100, 20000);
}

/* Vocoders: stages of upsampling, each of three parallel blocks of convolutions whose sum goes on;
 * every convolution reads the voice's style, every stage the noise. */
static void make_vocoder(maker *m, uint32_t n_nodes) {
  enum { BLOCKS = 3, CONVOLUTIONS = 6, MOST = 20000 };
  static uint32_t styled[MOST], noisy[MOST];
  uint32_t n_styled = 0, n_noisy = 0;
  const uint32_t per_stage = BLOCKS * CONVOLUTIONS * 3 + 3;
  const uint32_t style = maker_node(m, 5000), noise = behind(m, style, 10010, 30000);
  uint32_t in = maker_node(m, 40000);
  for (uint32_t stage = 0; m->n + per_stage < n_nodes || stage == 0; stage++) {
    const int64_t net_ns = 10500 + 1500 * (int64_t)(stage % 6), ns = 6000 << (stage % 3);
    const uint32_t up = behind(m, in, net_ns, 3 * ns), mixed = behind(m, up, net_ns, 2000);
    const uint32_t sum = maker_node(m, 2000);
    uint32_t first[BLOCKS];
    if (n_noisy < MOST) noisy[n_noisy++] = mixed;
    for (uint32_t b = 0; b < BLOCKS; b++) {
      uint32_t at = first[b] = maker_node(m, 1500);
      for (uint32_t k = 0; k < CONVOLUTIONS; k++) {
        if (k) at = behind(m, at, net_ns, 1500);
        if (n_styled < MOST) styled[n_styled++] = at;
        at = behind(m, behind(m, at, net_ns, ns * (int64_t)(2 + b)), net_ns, 1000);
      }
      maker_net(m, at, net_ns, &sum, 1);
    }
    maker_net(m, mixed, net_ns, first, BLOCKS);
    in = sum;
  }
  maker_net(m, style, 10002, styled, n_styled);
  maker_net(m, noise, 12000, noisy, n_noisy);
  behind(m, in, 11000, 9000);
}

/* Detectors: a trunk, a pyramid of five levels, three towers on each, and a tail of small nodes
 * that decode each tower's boxes, all of them joined at the end. */
static void make_detector(maker *m, uint32_t n_nodes) {
  enum { LEVELS = 5, TOWERS = 3 };
  const uint32_t tail = n_nodes / (LEVELS * TOWERS) > 40 ? n_nodes / (LEVELS * TOWERS) - 30 : 10;
  uint32_t in = maker_node(m, 60000), level[LEVELS], end[LEVELS * TOWERS], n_ends = 0;
  for (uint32_t k = 0; k < 48; k++) {
    in = behind(m, in, 40000 - 500 * (int64_t)k, 60000);
    if (k == 20 || k == 34 || k == 47) level[(k > 20) + (k > 34)] = in;
  }
  level[3] = behind(m, level[2], 14000, 20000);
  level[4] = behind(m, level[3], 12000, 8000);
  for (uint32_t l = 0; l < LEVELS; l++) {
    const int64_t net_ns = 10000 + (40000 >> l), ns = 160000 >> (l + l / 2);
    const uint32_t lateral = behind(m, level[l], net_ns, ns / 2);
    uint32_t to[TOWERS];
    for (uint32_t t = 0; t < TOWERS; t++) {
      uint32_t at = to[t] = maker_node(m, ns);
      for (uint32_t k = 0; k < 7; k++) at = behind(m, at, net_ns, k % 2 ? ns : 3000);
      const uint32_t logits = behind(m, at, net_ns, ns / 3);
      uint32_t small[3] = {0};
      for (uint32_t k = 0; k < tail / 3; k++) {
        for (uint32_t j = 0; j < 3; j++)
          small[j] = behind(m, k ? small[j] : logits, 10400, 2000 + 200 * (int64_t)j);
      }
      end[n_ends] = maker_node(m, 4000);
      for (uint32_t j = 0; j < 3; j++) maker_net(m, small[j], 10400, &end[n_ends], 1);
      n_ends++;
    }
    maker_net(m, lateral, net_ns, to, TOWERS);
  }
  const uint32_t joined = maker_node(m, 30000);
  for (uint32_t k = 0; k < n_ends; k++) maker_net(m, end[k], 10800, &joined, 1);
  behind(m, joined, 10200, 20000);
}

/* Nested U-nets: node (i, j) reads all of its row before it and (i + 1, j - 1). */
static void make_nested(maker *m, uint32_t n_nodes) {
  enum { DEPTH = 8, INSIDE = 4, CELLS = DEPTH * (DEPTH + 1) / 2 };
  uint32_t in = maker_node(m, 20000);
  while (m->n + CELLS * INSIDE < n_nodes || m->n == 1) {
    uint32_t first[DEPTH][DEPTH], last[DEPTH][DEPTH];
    for (uint32_t j = 0; j < DEPTH; j++)
      for (uint32_t i = 0; i + j < DEPTH; i++) {
        const int64_t net_ns = 2000 + (40000 >> i);
        uint32_t at = first[i][j] = maker_node(m, 30000 - 2000 * (int64_t)i);
        for (uint32_t k = 1; k < INSIDE; k++) at = behind(m, at, net_ns, 20000);
        last[i][j] = at;
      }
    maker_net(m, in, 20000, &first[0][0], 1);
    for (uint32_t j = 0; j < DEPTH; j++)
      for (uint32_t i = 0; i + j < DEPTH; i++) {
        uint32_t to[DEPTH], n = 0;
        for (uint32_t k = j + 1; i + k < DEPTH; k++) to[n++] = first[i][k];
        if (i > 0) to[n++] = first[i - 1][j + 1];
        if (i + 1 + j < DEPTH && j == 0) to[n++] = first[i + 1][0];
        if (n) maker_net(m, last[i][j], 2000 + (40000 >> i), to, n);
      }
    in = last[0][DEPTH - 1];
  }
}

/* A group of lines of a grid: what flows into each from both ends, by the magnitudes and angles
 * there, which `ends` read; out[4]: active and reactive power at both ends. */
static void add_lines(maker *m, uint32_t ends[4], uint32_t out[4]) {
  enum { TENSOR = 10320, NS = 1850 };
  for (uint32_t k = 0; k < 4; k++) ends[k] = maker_node(m, NS);
  const uint32_t angle = maker_node(m, NS), product = maker_node(m, NS);
  const uint32_t squares[2] = {maker_node(m, NS), maker_node(m, NS)};
  for (uint32_t k = 0; k < 2; k++) {
    const uint32_t to[2] = {product, squares[k]};
    maker_net(m, ends[k], TENSOR, to, 2);
    maker_net(m, ends[2 + k], TENSOR, &angle, 1);
  }
  const uint32_t waves[2] = {maker_node(m, 2 * NS), maker_node(m, 2 * NS)};
  maker_net(m, angle, TENSOR, waves, 2);
  uint32_t scaled[2][4], n_scaled[2] = {0}, powers[2];
  for (uint32_t k = 0; k < 2; k++) {
    const uint32_t own[2] = {maker_node(m, NS), maker_node(m, NS)};
    scaled[0][n_scaled[0]++] = own[0];
    scaled[1][n_scaled[1]++] = own[1];
    const uint32_t sum = behind(m, own[0], TENSOR, NS);
    maker_net(m, own[1], TENSOR, &sum, 1);
    powers[k] = behind(m, sum, TENSOR, NS);
  }
  for (uint32_t k = 0; k < 2; k++) maker_net(m, waves[k], TENSOR, scaled[k], n_scaled[k]);
  maker_net(m, product, TENSOR, powers, 2);
  for (uint32_t k = 0; k < 2; k++) { /* active, reactive: each from both squares */
    uint32_t both[2];
    for (uint32_t end = 0; end < 2; end++) both[end] = out[2 * k + end] = maker_node(m, NS);
    maker_net(m, powers[k], TENSOR, both, 2);
  }
  for (uint32_t end = 0; end < 2; end++) {
    const uint32_t weighed[2] = {maker_node(m, NS), maker_node(m, NS)};
    maker_net(m, squares[end], TENSOR, weighed, 2);
    for (uint32_t k = 0; k < 2; k++) maker_net(m, weighed[k], TENSOR, &out[2 * k + end], 1);
  }
}

/* Power flow: a small network makes magnitudes and angles of all buses; equal groups of lines read
 * both, and all that these make is joined twice. */
static void make_power_flow(maker *m, uint32_t n_nodes) {
  enum { GROUP = 25, MOST = 200 };
  static uint32_t readers[2][2 * MOST];
  uint32_t n_groups = n_nodes / GROUP ? n_nodes / GROUP : 1, n_readers = 0;
  if (n_groups > MOST) n_groups = MOST;
  uint32_t in = maker_node(m, 16000), values[2];
  for (uint32_t k = 0; k < 3; k++) in = behind(m, in, 11000, k % 2 ? 16000 : 2600);
  for (uint32_t k = 0; k < 2; k++) values[k] = maker_node(m, 2400);
  maker_net(m, in, 10900, values, 2);
  const uint32_t joined[2] = {maker_node(m, 5000), maker_node(m, 5000)};
  for (uint32_t g = 0; g < n_groups; g++) {
    uint32_t ends[4], out[4];
    add_lines(m, ends, out);
    for (uint32_t end = 0; end < 2; end++, n_readers++)
      for (uint32_t k = 0; k < 2; k++) readers[k][n_readers] = ends[2 * k + end];
    for (uint32_t k = 0; k < 4; k++) maker_net(m, out[k], 10320, &joined[k / 2], 1);
  }
  for (uint32_t k = 0; k < 2; k++) maker_net(m, values[k], 10450, readers[k], n_readers);
  const uint32_t total = maker_node(m, 3000);
  for (uint32_t k = 0; k < 2; k++) {
    const uint32_t to[2] = {total, maker_node(m, 15000)};
    maker_net(m, joined[k], 12500, to, 2);
    behind(m, to[1], 10900, 2400);
  }
}

const made_shape kMadeHardShapes[] = {
  {"encoder", make_encoder}, {"vocoder", make_vocoder},       {"detector", make_detector},
  {"nested", make_nested},   {"power-flow", make_power_flow}, {"experts-256", make_experts_256},
};
const uint32_t kNMadeHardShapes = sizeof kMadeHardShapes / sizeof *kMadeHardShapes;
