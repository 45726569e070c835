/* Shapes that scale: each is hard for another part of the partitioner. */
#include <string.h>

#include "partition_make.h"

/* A node that costs between `ns` and twice as much. */
static uint32_t random_node(maker *m, int64_t ns) {
  return maker_node(m, ns + (int64_t)(maker_draw(m) % (uint64_t)ns));
}

/* One after the other: nothing but balance. */
static void make_chain(maker *m, uint32_t n_nodes) {
  uint32_t in = random_node(m, 1000);
  while (m->n < n_nodes) {
    const uint32_t v = random_node(m, 1000 + (int64_t)(maker_draw(m) % 20000));
    maker_net(m, in, 500 + (int64_t)(maker_draw(m) % 1000), &v, 1);
    in = v;
  }
}

/* Each node reads two of the layer in front, layers are 1,000 nodes wide: hardly anything is known
 * of what a downset of some weight holds. */
static void make_wide(maker *m, uint32_t n_nodes) {
  enum { WIDTH = 1000, FAN = 8 };
  const uint32_t width = n_nodes < 4 * WIDTH ? n_nodes / 4 + 1 : WIDTH;
  while (m->n < n_nodes) random_node(m, 1000 + (int64_t)(maker_draw(m) % 20000));
  for (uint32_t v = 0; v < n_nodes; v++) {
    uint32_t to[FAN], n = 0;
    const uint32_t first = (v / width + 1) * width;
    for (uint32_t k = 0; k < 2 && first < n_nodes; k++) {
      const uint32_t u = first + (uint32_t)(maker_draw(m) % width);
      if (u < n_nodes && (n == 0 || to[0] != u)) to[n++] = u;
    }
    if (n) maker_net(m, v, 500 + (int64_t)(maker_draw(m) % 1000), to, n);
  }
}

enum { MOST_EXPERTS = 256 };

/* Mixtures of experts: a router feeds chains of three that a sum collects. */
static void add_mixtures(maker *m, uint32_t n_nodes, uint32_t n_experts) {
  uint32_t in = random_node(m, 3000);
  while (m->n + 3 * n_experts + 4 <= n_nodes || m->n == 1) {
    const uint32_t attention = random_node(m, 60000), router = random_node(m, 2000);
    const uint32_t sum = random_node(m, 3000);
    uint32_t to[MOST_EXPERTS + 2] = {router};
    maker_net(m, in, 6000, &attention, 1);
    for (uint32_t k = 0; k < n_experts; k++) {
      const uint32_t up = random_node(m, 8000), act = random_node(m, 400);
      const uint32_t down = random_node(m, 8000);
      maker_net(m, up, 900, &act, 1);
      maker_net(m, act, 900, &down, 1);
      maker_net(m, down, 300, &sum, 1);
      to[k + 1] = up;
    }
    to[n_experts + 1] = sum;
    maker_net(m, router, 20, to + 1, n_experts);
    maker_net(m, attention, 6000, to, n_experts + 2);
    in = sum;
  }
}

static void make_experts(maker *m, uint32_t n_nodes) { add_mixtures(m, n_nodes, 128); }
void make_experts_256(maker *m, uint32_t n_nodes) { add_mixtures(m, n_nodes, MOST_EXPERTS); }

/* One U: every fourth node on the way down feeds its mirror image on the way up. */
static void make_unet(maker *m, uint32_t n_nodes) {
  const uint32_t half = n_nodes / 2;
  while (m->n < 2 * half) random_node(m, 8000);
  for (uint32_t v = 0; v + 1 < 2 * half; v++) {
    const uint32_t to[] = {v + 1, 2 * half - 1 - v};
    const bool skips = v % 4 == 0 && v + 1 < half;
    maker_net(m, v, 400 + (int64_t)(maker_draw(m) % 400), to, skips ? 2 : 1);
  }
}

/* Dense blocks: a node feeds all behind it in its block of 32. */
static void make_dense(maker *m, uint32_t n_nodes) {
  enum { BLOCK = 32 };
  while (m->n < n_nodes) random_node(m, 8000);
  for (uint32_t v = 0; v + 1 < n_nodes; v++) {
    uint32_t to[BLOCK], n = 0;
    const uint32_t end = (v / BLOCK + 1) * BLOCK;
    for (uint32_t u = v + 1; u < n_nodes && (u < end || n == 0); u++) to[n++] = u;
    maker_net(m, v, 300 + (int64_t)(maker_draw(m) % 600), to, n);
  }
}

const made_shape kMadeShapes[] = {
  {"transformer", make_transformer},
  {"layered", make_layered},
  {"chain", make_chain},
  {"wide", make_wide},
  {"experts", make_experts},
  {"unet", make_unet},
  {"dense", make_dense},
};
const uint32_t kNMadeShapes = sizeof kMadeShapes / sizeof *kMadeShapes;

const made_shape *made_shape_named(const char *name) {
  for (uint32_t i = 0; i < kNMadeShapes; i++)
    if (strcmp(kMadeShapes[i].name, name) == 0) return &kMadeShapes[i];
  for (uint32_t i = 0; i < kNMadeRandom; i++)
    if (strcmp(kMadeRandom[i].name, name) == 0) return &kMadeRandom[i];
  for (uint32_t i = 0; i < kNMadeHardShapes; i++)
    if (strcmp(kMadeHardShapes[i].name, name) == 0) return &kMadeHardShapes[i];
  return NULL;
}
