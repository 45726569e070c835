#include "random_problem.h"

#include <stdlib.h>
#include <string.h>

static uint64_t draw(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n) { return (uint32_t)(draw(state) % n); }

/* Zero, small and huge, in unpredictable proportions. */
static int64_t some_time(uint64_t *state, unsigned style) {
  switch (style == 3 ? below(state, 3) : style) {
    case 0: return below(state, 10);
    case 1: return below(state, 3) == 0 ? 0 : below(state, 100);
    default: return below(state, 8) == 0 ? INT64_C(1000000000000) : below(state, 50);
  }
}

/* Between separators branches of one node, or in larger graphs of two; seldom one that leads into
 * another, and tensors that jump over a separator. */
static bool connected_in_fans(uint64_t *state, uint32_t u, uint32_t v, uint32_t n) {
  const bool pairs = n >= 12;
  const uint32_t per = n < 8   ? 4
                       : pairs ? 10
                               : 6,
                 at = u % (per + 1), first = u - at, end = first + per + 1;
  if (v <= u || v > end + per) return false;
  if (at == 0 && v < end) return !pairs || (v - first) % 2 == 1;
  if (at == 0) return below(state, v == end ? 3 : 12) == 0;
  if (pairs && at % 2 == 1)
    return v == u + 1 || (v == end && below(state, 6) == 0) ||
           (v == u + 3 && v < end && below(state, 10) == 0);
  return v == end || (v == end + 1 && below(state, 10) == 0);
}

static bool connected(uint64_t *state, shape kind, uint32_t u, uint32_t v, uint32_t n) {
  const uint32_t width = n < 6 ? 2 : 3;
  switch (kind) {
    case CHAIN: return v == u + 1 || (v == u + 3 && below(state, 4) == 0);
    case TREE: return (v - 1) / 2 == u;
    case SERIES_PARALLEL:
      if (u % 4 == 0) return v > u && v <= u + 3;
      return v == u + 4 - u % 4;
    case FANS: return connected_in_fans(state, u, v, n);
    case LAYERED: return v / width == u / width + 1 && below(state, 2) == 0;
    default: return below(state, 10) < 3;
  }
}

static void add_nets(random_problem *r, uint64_t *state, shape kind, unsigned style,
                     uint32_t n_forward) {
  psplit_problem *p = &r->problem;
  const bool twins = p->n_nodes > n_forward;
  uint32_t n_pins = 0;
  for (uint32_t pass = 0; pass < (twins ? 2u : 1u); pass++)
    for (uint32_t a = 0; a < n_forward; a++) {
      /* The backward graph is the mirror image: twin of u is n_forward + u, edges reversed. */
      const uint32_t from = pass ? n_forward + (n_forward - 1 - a) : a;
      const uint32_t start = n_pins;
      for (uint32_t b = a + 1; b < n_forward; b++) {
        if (!connected(state, kind, a, b, n_forward)) continue;
        r->consumer[n_pins++] = pass ? n_forward + (n_forward - 1 - b) : b;
      }
      if (twins && pass == 0 && below(state, 3) == 0) r->consumer[n_pins++] = n_forward + a;
      if (n_pins == start) continue;
      r->producer[p->n_nets] = from;
      r->off[++p->n_nets] = n_pins;
    }
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t c = 0; c < p->n_classes; c++) {
      r->send_ns[e * p->n_classes + c] = some_time(state, style);
      r->recv_ns[e * p->n_classes + c] =
        below(state, 2) ? r->send_ns[e * p->n_classes + c] : some_time(state, style);
    }
}

static void add_devices(random_problem *r, uint64_t *state, uint32_t n_stages, unsigned features) {
  psplit_problem *p = &r->problem;
  p->n_devices = 1;
  r->devices[0] = (psplit_device){.count = n_stages};
  if ((features & WITH_CLASSES) && n_stages > 1) {
    p->n_devices = p->n_classes = 2;
    r->devices[0].count = n_stages - 1;
    r->devices[1] = (psplit_device){.class_id = 1, .count = 1};
    p->any_device_order = below(state, 2);
  }
  if ((features & WITH_ALIKE) && p->n_devices == 2 && n_stages > 2) {
    r->devices[0].count--;
    r->devices[p->n_devices++] = (psplit_device){.count = 1};
    p->any_device_order = true;
  }
  if (features & WITH_FREE_COMM) r->devices[p->n_devices - 1].free_comm = true;
  if (features & WITH_MEMORY)
    for (uint32_t d = 0; d < p->n_devices; d++) r->devices[d].memory_bytes = 20 + below(state, 60);
  if ((features & WITH_ALIKE) && p->n_devices == 3)
    r->devices[2].memory_bytes = r->devices[0].memory_bytes;
}

/* Some links at random, the others missing; a way goes to the nearest stage that has one. */
static void add_ways(random_problem *r, uint64_t *state, uint32_t n_stages) {
  bool link[MAX_DEVICES][MAX_DEVICES];
  const uint32_t density = below(state, 4);
  for (uint32_t i = 0; i < n_stages; i++)
    for (uint32_t j = 0; j < n_stages; j++)
      link[i][j] = density == 0 ? j == i + 1 : below(state, 4) < density;
  for (uint32_t j = 0; j < n_stages; j++)
    for (uint32_t i = n_stages; i-- > 0;) {
      uint32_t *next = &r->next_hop[i * n_stages + j];
      *next = PSPLIT_NONE;
      for (uint32_t m = j; i < j && m > i; m--)
        if (link[i][m] && (m == j || r->next_hop[m * n_stages + j] != PSPLIT_NONE) && *next != j)
          *next = m;
    }
  r->problem.comm = PSPLIT_COMM_P2P;
  r->problem.next_hop = r->next_hop;
}

/* Every device an entry of its own. */
static void list_one_by_one(random_problem *r) {
  psplit_device list[MAX_DEVICES];
  uint32_t n = 0;
  for (uint32_t d = 0; d < r->problem.n_devices; d++)
    for (uint32_t k = 0; k < r->devices[d].count; k++) {
      list[n] = r->devices[d];
      list[n++].count = 1;
    }
  memcpy(r->devices, list, n * sizeof *list);
  r->problem.n_devices = n;
}

/* Hosts, or any class for any pair. */
static void add_pairs(random_problem *r, uint64_t *state, unsigned style) {
  psplit_problem *p = &r->problem;
  if (below(state, 4)) list_one_by_one(r);
  const uint32_t n = p->n_devices;
  const bool hosts = below(state, 2);
  uint32_t host[MAX_DEVICES];
  p->n_link_classes = hosts ? 2 : 1 + below(state, 3);
  for (uint32_t d = 0; d < n; d++) host[d] = below(state, 2);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++)
      r->device_link[i * n + j] = hosts ? host[i] != host[j] : below(state, p->n_link_classes);
  for (uint32_t k = 0; k < p->n_nets * p->n_link_classes; k++)
    r->link_ns[k] = some_time(state, style);
  p->device_link = r->device_link;
  p->net_link_ns = r->link_ns;
  p->comm = PSPLIT_COMM_P2P;
  p->any_device_order = false;
}

/* Dear or cheap against tensors; some nets make none. */
static void add_messages(random_problem *r, uint64_t *state, unsigned style) {
  psplit_problem *p = &r->problem;
  for (uint32_t c = 0; c < MAX_DEVICES; c++) r->message_ns[c] = some_time(state, style);
  for (uint32_t e = 0; e < p->n_nets; e++)
    if (below(state, 8) == 0) r->net_flags[e] |= PSPLIT_NET_NO_MESSAGE;
  p->message_ns = r->message_ns;
}

void make_random_problem(random_problem *r, uint64_t seed, shape kind, uint32_t n_nodes,
                         uint32_t n_stages, unsigned features) {
  memset(r, 0, sizeof *r);
  uint64_t s = seed * 1000003 + kind * 101 + n_nodes * 7 + n_stages, *state = &s;
  psplit_problem *p = &r->problem;
  const unsigned style = below(state, 4), comm_style = below(state, 4);
  const uint32_t n_forward = n_nodes;
  *p = (psplit_problem){.n_nodes = features & WITH_TWINS ? 2 * n_nodes : n_nodes,
                        .n_classes = 1,
                        .time_ns = r->time_ns,
                        .node_flags = r->node_flags,
                        .together = r->together,
                        .net_producer = r->producer,
                        .net_off = r->off,
                        .net_consumer = r->consumer,
                        .net_send_ns = r->send_ns,
                        .net_recv_ns = r->recv_ns,
                        .net_flags = r->net_flags,
                        .order_from = r->order_from,
                        .order_to = r->order_to,
                        .devices = r->devices,
                        .comm = below(state, 2) ? PSPLIT_COMM_SHARED : PSPLIT_COMM_P2P,
                        .overlap = (features & WITH_OVERLAP) && below(state, 2),
                        .stash_1f1b = (features & WITH_STASH) && below(state, 2),
                        .ticks_per_unit = 1};
  if (p->n_nodes > MAX_NODES) abort(); /* arrays end there: a test asks for too much */
  add_devices(r, state, n_stages, features);
  add_nets(r, state, kind, comm_style, n_forward);
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    r->together[v] = r->pin[v] = PSPLIT_NONE;
    if (v >= n_forward) {
      r->node_flags[v] = PSPLIT_NODE_BACKWARD;
      /* Some backward nodes are orphans. */
      if (below(state, 5)) r->together[v] = r->together[v - n_forward] = v - n_forward;
    } else if (below(state, 6) == 0) {
      r->node_flags[v] = PSPLIT_NODE_AUXILIARY;
    }
    for (uint32_t c = 0; c < p->n_classes; c++)
      r->time_ns[v * p->n_classes + c] =
        c > 0 && below(state, 8) == 0 ? PSPLIT_TIME_FORBIDDEN : some_time(state, style);
  }
  if (features & WITH_MEMORY) {
    p->weight_bytes = r->weight_bytes;
    p->activation_bytes = r->activation_bytes;
    for (uint32_t v = 0; v < p->n_nodes; v++) {
      r->weight_bytes[v] = below(state, 15);
      r->activation_bytes[v] = below(state, 5);
    }
    p->n_weights = below(state, 3);
    p->weight_group_bytes = r->group_bytes;
    p->weight_off = r->weight_off;
    p->weight_user = r->weight_user;
    for (uint32_t g = 0; g < p->n_weights; g++) {
      r->group_bytes[g] = 5 + below(state, 15);
      r->weight_off[g + 1] = r->weight_off[g] + 2 + below(state, 2);
      for (uint32_t k = r->weight_off[g]; k < r->weight_off[g + 1]; k++)
        r->weight_user[k] = below(state, p->n_nodes);
    }
  }
  if (features & WITH_TOGETHER) {
    if (p->n_nodes > 3 && !(features & WITH_TWINS) && below(state, 2)) {
      r->together[0] = 77;
      r->together[1 + below(state, p->n_nodes - 1)] = 77;
    }
    if (p->n_nets && below(state, 2))
      r->net_flags[below(state, p->n_nets)] |= PSPLIT_NET_UNCUTTABLE;
    for (uint32_t k = 0; k < 2 && n_forward > 2; k++) {
      const uint32_t u = below(state, n_forward - 1);
      r->order_from[p->n_order] = u;
      r->order_to[p->n_order++] = u + 1 + below(state, n_forward - 1 - u);
    }
  }
  if (features & WITH_RELAYS) add_ways(r, state, n_stages);
  if (features & WITH_PAIRS) add_pairs(r, state, comm_style);
  if (features & WITH_MESSAGES) add_messages(r, state, comm_style);
  if (features & WITH_PINS) {
    p->pin = r->pin;
    r->pin[below(state, p->n_nodes)] = below(state, n_stages);
    if (below(state, 2)) r->pin[below(state, p->n_nodes)] = below(state, n_stages);
  }
}

/* --- enumeration --- */

typedef struct enumeration {
  const psplit_problem *p;
  const psplit_partition_options *o;
  uint32_t n_stages, n_virtual;
  uint32_t label[MAX_NODES], stage[MAX_NODES], chunk[MAX_NODES];
  uint32_t device[MAX_DEVICES * 2], replicas[MAX_DEVICES * 2];
  int64_t best, comm;
  uint32_t first[MAX_NODES]; /* stages */
  uint32_t first_device[MAX_DEVICES * 2];
  uint64_t n_leaves, most_leaves; /* 0: judge them; else only count, up to so many */
} enumeration;

static bool is_better(const enumeration *e, const psplit_solution *solution) {
  if (solution->objective_ns != e->best) return solution->objective_ns < e->best;
  if (solution->comm_ns != e->comm) return solution->comm_ns < e->comm;
  for (uint32_t v = 0; v < e->p->n_nodes; v++)
    if (e->stage[v] != e->first[v]) return e->stage[v] < e->first[v];
  return false;
}

static void judge(enumeration *e) {
  psplit_diag diag = {0};
  psplit_solution *solution;
  for (uint32_t v = 0; v < e->p->n_nodes; v++) {
    e->stage[v] = e->label[v] % e->n_stages;
    e->chunk[v] = e->label[v] / e->n_stages;
  }
  if (psplit_partition_check(e->p, e->o, e->stage, e->chunk, e->device, e->replicas, &diag,
                             &solution) != PSPLIT_OK)
    return;
  if (is_better(e, solution)) {
    e->best = solution->objective_ns;
    e->comm = solution->comm_ns;
    memcpy(e->first, e->stage, sizeof e->first);
    memcpy(e->first_device, e->device, sizeof e->first_device); /* orders come in their order */
  }
  psplit_solution_destroy(solution);
}

static void label_nodes(enumeration *e, uint32_t v) {
  if (e->most_leaves && e->n_leaves >= e->most_leaves) return;
  if (v == e->p->n_nodes) {
    e->n_leaves++;
    if (!e->most_leaves) judge(e);
    return;
  }
  uint32_t low = 0, high = e->n_virtual - 1;
  /* Forward nodes are numbered topologically; twins follow. This only prunes. */
  if (!e->o->noncontiguous)
    for (uint32_t k = 0; k < e->p->n_nets; k++)
      for (uint32_t l = e->p->net_off[k]; l < e->p->net_off[k + 1]; l++)
        if (e->p->net_consumer[l] == v && e->p->net_producer[k] < v &&
            !(e->p->node_flags[v] & PSPLIT_NODE_BACKWARD) && e->label[e->p->net_producer[k]] > low)
          low = e->label[e->p->net_producer[k]];
  for (uint32_t u = 0; u < v; u++)
    if (e->p->together[v] != PSPLIT_NONE && e->p->together[u] == e->p->together[v]) {
      if (e->label[u] < low) return;
      low = high = e->label[u];
    }
  for (uint32_t l = low; l <= high; l++) {
    e->label[v] = l;
    label_nodes(e, v + 1);
  }
}

static void choose_replicas(enumeration *e, uint32_t s) {
  if (s == e->n_stages) {
    label_nodes(e, 0);
    return;
  }
  for (e->replicas[s] = 1; e->replicas[s] <= e->o->max_replicas; e->replicas[s]++)
    choose_replicas(e, s + 1);
  e->replicas[s] = 1;
}

static void choose_devices(enumeration *e, uint32_t s, uint32_t *left) {
  if (s == e->n_stages) {
    choose_replicas(e, 0);
    return;
  }
  for (uint32_t d = 0; d < e->p->n_devices; d++) {
    if (left[d] == 0) continue;
    left[d]--;
    e->device[s] = d;
    choose_devices(e, s + 1, left);
    left[d]++;
    if (!e->p->any_device_order) return;
  }
}

static enumeration enumerate(const psplit_problem *p, const psplit_partition_options *o,
                             uint64_t most_leaves) {
  enumeration e = {
    .p = p, .o = o, .best = INT64_MAX, .comm = INT64_MAX, .most_leaves = most_leaves};
  e.n_stages = psplit_problem_n_stages(p);
  e.n_virtual = e.n_stages * o->chunks;
  uint32_t left[MAX_DEVICES] = {0};
  for (uint32_t d = 0; d < p->n_devices; d++) left[d] = p->devices[d].count;
  choose_devices(&e, 0, left);
  return e;
}

void first_devices_by_enumeration(const psplit_problem *p, const psplit_partition_options *o,
                                  uint32_t *out_device) {
  const enumeration e = enumerate(p, o, 0);
  memcpy(out_device, e.first_device, e.n_stages * sizeof *out_device);
}

int64_t best_by_enumeration(const psplit_problem *p, const psplit_partition_options *o,
                            int64_t *out_comm, uint32_t *out_stage) {
  const enumeration e = enumerate(p, o, 0);
  *out_comm = e.comm;
  if (out_stage) memcpy(out_stage, e.first, p->n_nodes * sizeof *out_stage);
  return e.best;
}

uint64_t count_to_enumerate(const psplit_problem *p, const psplit_partition_options *o,
                            uint64_t most) {
  return enumerate(p, o, most).n_leaves;
}
