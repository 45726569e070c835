#include "listed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *memory) {
  if (!memory) {
    fputs("error: out of memory\n", stderr);
    exit(6);
  }
  return memory;
}

/* A node that takes from `ns` to twice as long. */
static uint32_t node(maker *m, int64_t ns) {
  return maker_node(m, ns + (int64_t)(maker_draw(m) % (uint64_t)ns));
}

static void edge(maker *m, uint32_t from, int64_t ns, uint32_t to) {
  maker_net(m, from, ns, &to, 1);
}

static uint32_t steps(maker *m, uint32_t in, uint32_t n, int64_t node_ns, int64_t net_ns) {
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t v = node(m, node_ns);
    edge(m, in, net_ns, v);
    in = v;
  }
  return in;
}

/* Modules of two to five branches of different lengths. */
static void make_branches(maker *m, uint32_t n_nodes) {
  uint32_t in = node(m, 4000);
  while (m->n + 24 < n_nodes || m->n == 1) {
    const uint32_t n_branches = 2 + (uint32_t)(maker_draw(m) % 4);
    const int64_t net_ns = 100 + (int64_t)(maker_draw(m) % 900);
    uint32_t last[5];
    for (uint32_t b = 0; b < n_branches; b++)
      last[b] = steps(m, in, 1 + (uint32_t)(maker_draw(m) % 4), 3000, net_ns);
    const uint32_t join = node(m, 400);
    for (uint32_t b = 0; b < n_branches; b++) edge(m, last[b], net_ns, join);
    in = join;
  }
}

/* Cells as searches for architectures find them: five nodes that each read two of those before, and
 * of the two cells in front. */
static void make_cells(maker *m, uint32_t n_nodes) {
  enum { CELL = 5 };
  uint32_t before[2] = {node(m, 3000), node(m, 3000)};
  edge(m, before[0], 300, before[1]);
  while (m->n + 2 * CELL + 1 < n_nodes || m->n == 2) {
    uint32_t state[CELL + 2] = {before[0], before[1]};
    for (uint32_t k = 0; k < CELL; k++) {
      const uint32_t v = node(m, 2500);
      const uint32_t a = (uint32_t)(maker_draw(m) % (k + 2)),
                     b = (a + 1 + (uint32_t)(maker_draw(m) % (k + 1))) % (k + 2);
      edge(m, state[a], 300 + (int64_t)(maker_draw(m) % 300), v);
      if (a != b) edge(m, state[b], 300 + (int64_t)(maker_draw(m) % 300), v);
      state[k + 2] = v;
    }
    const uint32_t join = node(m, 300);
    for (uint32_t k = 0; k < CELL; k++) edge(m, state[k + 2], 300, join);
    before[0] = before[1];
    before[1] = join;
  }
}

/* Residual blocks, whose tensors shrink as their work grows. */
static void make_residual(maker *m, uint32_t n_nodes) {
  uint32_t in = node(m, 5000), block = 0;
  while (m->n + 6 < n_nodes || m->n == 1) {
    const int64_t net_ns = 900 / (1 + block / 4) + 50;
    const uint32_t out = steps(m, in, 2 + (uint32_t)(maker_draw(m) % 3), 4000, net_ns);
    const uint32_t add = node(m, 300);
    edge(m, out, net_ns, add);
    edge(m, block % 4 ? in : steps(m, in, 1, 2000, net_ns), net_ns, add);
    in = add;
    block++;
  }
}

/* A backbone whose levels feed a pyramid of heads. */
static void make_pyramid(maker *m, uint32_t n_nodes) {
  enum { LEVELS = 4 };
  uint32_t level[LEVELS], in = node(m, 4000);
  for (uint32_t k = 0; k < LEVELS; k++)
    level[k] = in = steps(m, in, n_nodes / 8 + 1, 3000, 800 >> k);
  uint32_t above = level[LEVELS - 1];
  for (uint32_t k = LEVELS; k-- > 0;) {
    const uint32_t lateral = steps(m, level[k], 1, 1500, 800 >> k);
    const uint32_t join = node(m, 300);
    edge(m, lateral, 400, join);
    if (above != level[k]) edge(m, above, 400, join);
    above = join;
    for (uint32_t head = 0; head < 2; head++) steps(m, join, n_nodes / 24 + 1, 2500, 300);
  }
}

static const made_shape kShapes[] = {{"branches", make_branches},
                                     {"cells", make_cells},
                                     {"residual", make_residual},
                                     {"pyramid", make_pyramid}};

static bool make_graph(listed *l) {
  for (uint32_t i = 0; i < kNMadeFamilies; i++) {
    /* Their names have spaces; lists say underscores. */
    char name[64];
    snprintf(name, sizeof name, "%s", kMadeFamilies[i].name);
    for (char *c = name; *c; c++)
      if (*c == ' ') *c = '_';
    name[31] = 0;
    if (strcmp(name, l->family)) continue;
    make_family(&kMadeFamilies[i], &l->m);
    return true;
  }
  const made_shape *shape = made_shape_named(l->family);
  for (uint32_t i = 0; i < sizeof kShapes / sizeof *kShapes; i++)
    if (strcmp(kShapes[i].name, l->family) == 0) shape = &kShapes[i];
  if (!shape) return false;
  maker_init(&l->m, 3 * l->nodes + 600);
  l->m.state = l->seed * UINT64_C(0x9e3779b97f4a7c15) + 7;
  shape->make(&l->m, l->nodes);
  if (strcmp(l->mode, "train") == 0) make_training(&l->m);
  return true;
}

/* Devices of the kinds in turn; class k takes so many halves longer. */
static void set_devices(listed *l) {
  const uint32_t n = l->m.n, n_kinds = l->kinds;
  l->times = need(calloc((size_t)n * n_kinds + 1, sizeof *l->times));
  l->transfers = need(calloc((size_t)l->m.n_nets * n_kinds + 1, sizeof *l->transfers));
  for (uint32_t v = 0; v < n; v++)
    for (uint32_t k = 0; k < n_kinds; k++) {
      const bool not_here = k > 0 && v % 11 == 5;
      l->times[(size_t)v * n_kinds + k] =
        not_here ? PSPLIT_TIME_FORBIDDEN : l->m.time[v] * (2 + k) / 2;
    }
  for (uint32_t e = 0; e < l->m.n_nets; e++)
    for (uint32_t k = 0; k < n_kinds; k++) l->transfers[(size_t)e * n_kinds + k] = l->m.send[e];
  for (uint32_t d = 0; d < n_kinds; d++)
    l->devices[d] = (psplit_device){.class_id = d, .count = l->stages / n_kinds};
  l->devices[0].count += l->stages % n_kinds;
}

static void set_memory(listed *l) {
  uint64_t total = 0, most = 0;
  l->bytes = need(calloc(l->m.n + 1, sizeof *l->bytes));
  for (uint32_t v = 0; v < l->m.n; v++) {
    l->bytes[v] = 1 + (uint64_t)l->m.time[v] * (1 + v % 3) / 2;
    total += l->bytes[v];
    most = l->bytes[v] > most ? l->bytes[v] : most;
  }
  for (uint32_t d = 0; d < l->kinds; d++)
    l->devices[d].memory_bytes = (uint64_t)((double)total / l->stages * l->memory) + most;
}

bool listed_make(const char *line, listed *l) {
  memset(l, 0, sizeof *l);
  if (line[0] == '#' || line[strspn(line, " \n")] == 0) return false;
  if (sscanf(line, "%31s %u %u %u %7s %lf %lf %15s", l->family, &l->seed, &l->nodes, &l->stages,
             l->devices_as, &l->comm, &l->memory, l->mode) != 8 ||
      l->stages == 0 || l->nodes == 0 || l->nodes > 2000000) {
    fprintf(stderr, "error: not of a list: %s", line);
    return false;
  }
  l->kinds = (unsigned)(l->devices_as[0] - '0');
  if (l->kinds < 1 || l->kinds > 3 || !make_graph(l)) {
    fprintf(stderr, "error: no such family, or kinds of devices: %s", line);
    return false;
  }
  for (uint32_t e = 0; e < l->m.n_nets; e++)
    l->m.send[e] = (int64_t)((double)l->m.send[e] * l->comm) + 1;
  set_devices(l);
  if (l->memory > 0) set_memory(l);
  l->problem = maker_problem(&l->m, l->devices, l->kinds);
  l->problem.n_classes = l->kinds;
  l->problem.time_ns = l->times;
  l->problem.net_send_ns = l->problem.net_recv_ns = l->transfers;
  l->problem.weight_bytes = l->bytes;
  l->problem.comm = strcmp(l->mode, "shared") == 0 || strcmp(l->mode, "train") == 0
                      ? PSPLIT_COMM_SHARED
                      : PSPLIT_COMM_P2P;
  l->problem.overlap = strcmp(l->mode, "overlap") == 0;
  l->problem.any_device_order = l->devices_as[1] == 'a';
  return true;
}

void listed_fini(listed *l) {
  if (l->m.time) maker_fini(&l->m);
  free(l->times);
  free(l->transfers);
  free(l->bytes);
}

void listed_name(const listed *l, char *out, size_t n) {
  snprintf(out, n, "%s-%u-%u-k%u-%s-c%g%s%s", l->family, l->seed, l->m.n, l->stages, l->devices_as,
           l->comm, l->memory > 0 ? "-memory" : "", strcmp(l->mode, "p2p") ? l->mode : "");
}
