/* States are formed from the last stage backwards: (what is left, devices used, for every tensor
 * whose producer is left the number of stages that read it already) with the least bottleneck of
 * what is placed. Not for stages without links, where loads depend on all stages; nor for tensors
 * that are sent point to point to stages in front, whose number is not known when the producer's
 * stage is formed. */
#include "lattice.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 64, MOST_NETS = 160, MOST_TYPES = 4 };
static const int64_t FORBIDDEN = INT64_MAX / 4;

typedef struct state {
  uint64_t left;
  uint32_t used[MOST_TYPES];
  uint8_t readers[MOST_NETS];
} state;

typedef struct table {
  state *keys;
  int64_t *values;
  uint32_t *slots;
  uint32_t n, n_slots, most;
} table;

typedef struct lattice {
  const psplit_problem *p;
  bool nonempty;
  int64_t limit;
  uint32_t n; /* clusters */
  uint32_t cluster[MOST_NODES];
  uint64_t before[MOST_NODES]; /* clusters that must not come after */
  uint32_t pin[MOST_NODES];
  int64_t time[MOST_TYPES][MOST_NODES];
  uint64_t weight[MOST_NODES], activation[MOST_NODES];
  bool counts[MOST_NODES];
  uint64_t source[MOST_NETS], readers[MOST_NETS]; /* clusters; readers without the source */
  uint64_t *downsets;
  uint32_t n_downsets;
} lattice;

static bool is_backward(const psplit_problem *p, uint32_t v) {
  return p->node_flags && (p->node_flags[v] & PSPLIT_NODE_BACKWARD);
}

static void unite(uint32_t *of, uint32_t n, uint32_t a, uint32_t b) {
  const uint32_t from = of[a], to = of[b];
  for (uint32_t v = 0; v < n; v++)
    if (of[v] == from) of[v] = to;
}

static void order(uint64_t *reach, const uint32_t *of, uint32_t from, uint32_t to) {
  reach[of[from]] |= UINT64_C(1) << of[to];
}

/* Whether the two ends of an edge are ordered, and which way round. */
static void add_edge(const psplit_problem *p, const uint32_t *of, const bool *twin, uint64_t *reach,
                     uint32_t from, uint32_t to) {
  const bool back = is_backward(p, from);
  if (back != is_backward(p, to)) return;
  if (!back)
    order(reach, of, from, to);
  else if (!twin[from] || !twin[to])
    order(reach, of, to, from);
}

/* Nodes that must share a stage, and what must come before what; false where pins contradict. */
static bool find_clusters(lattice *l) {
  const psplit_problem *p = l->p;
  const uint32_t n = p->n_nodes;
  uint32_t of[MOST_NODES];
  uint64_t reach[MOST_NODES] = {0};
  bool twin[MOST_NODES];
  for (uint32_t v = 0; v < n; v++) of[v] = v;
  for (uint32_t v = 0; v < n; v++) {
    twin[v] = !is_backward(p, v);
    for (uint32_t u = 0; u < n && p->together && p->together[v] != PSPLIT_NONE; u++)
      if (p->together[u] == p->together[v]) {
        twin[v] |= !is_backward(p, u);
        unite(of, n, u, v);
      }
  }
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      if (p->net_flags && (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE))
        unite(of, n, p->net_producer[e], p->net_consumer[k]);
  for (bool again = true; again;) {
    again = false;
    memset(reach, 0, sizeof reach);
    for (uint32_t e = 0; e < p->n_nets; e++)
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
        add_edge(p, of, twin, reach, p->net_producer[e], p->net_consumer[k]);
    for (uint32_t k = 0; k < p->n_order; k++)
      add_edge(p, of, twin, reach, p->order_from[k], p->order_to[k]);
    for (uint32_t m = 0; m < n; m++)
      for (uint32_t v = 0; v < n; v++)
        if (reach[v] >> m & 1) reach[v] |= reach[m];
    for (uint32_t v = 0; v < n && !again; v++)
      for (uint32_t u = 0; u < n && !again; u++)
        if (of[u] != of[v] && (reach[of[u]] >> of[v] & 1) && (reach[of[v]] >> of[u] & 1)) {
          unite(of, n, u, v);
          again = true;
        }
  }
  for (uint32_t v = 0; v < n; v++)
    if (of[v] == v) l->cluster[v] = l->n++;
  for (uint32_t v = 0; v < n; v++) l->cluster[v] = l->cluster[of[v]];
  for (uint32_t c = 0; c < l->n; c++) l->pin[c] = PSPLIT_NONE;
  for (uint32_t v = 0; v < n; v++)
    for (uint32_t u = 0; u < n; u++)
      if (of[u] != of[v] && (reach[of[u]] >> of[v] & 1))
        l->before[l->cluster[v]] |= UINT64_C(1) << l->cluster[u];
  for (uint32_t v = 0; v < n; v++) {
    const uint32_t c = l->cluster[v];
    l->counts[c] |= !p->node_flags || !(p->node_flags[v] & PSPLIT_NODE_AUXILIARY);
    if (p->weight_bytes) l->weight[c] += p->weight_bytes[v];
    if (p->activation_bytes) l->activation[c] += p->activation_bytes[v];
    for (uint32_t t = 0; t < p->n_devices; t++) {
      const int64_t ns = p->time_ns[v * p->n_classes + p->devices[t].class_id];
      if (ns == PSPLIT_TIME_FORBIDDEN || l->time[t][c] == FORBIDDEN)
        l->time[t][c] = FORBIDDEN;
      else
        l->time[t][c] += ns;
    }
    if (!p->pin || p->pin[v] == PSPLIT_NONE) continue;
    if (l->pin[c] != PSPLIT_NONE && l->pin[c] != p->pin[v]) return false;
    l->pin[c] = p->pin[v];
  }
  return true;
}

/* False: some tensor runs to a stage in front, and each receiver costs. */
static bool find_nets(lattice *l) {
  const psplit_problem *p = l->p;
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t source = l->cluster[p->net_producer[e]];
    l->source[e] = UINT64_C(1) << source;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t reader = l->cluster[p->net_consumer[k]];
      if (reader == source) continue;
      l->readers[e] |= UINT64_C(1) << reader;
      if (p->comm == PSPLIT_COMM_P2P && !(l->before[reader] >> source & 1)) return false;
    }
  }
  return true;
}

static bool find_downsets(lattice *l, uint32_t most) {
  l->downsets = malloc(((size_t)most + 1) * sizeof *l->downsets);
  if (!l->downsets) abort();
  l->downsets[l->n_downsets++] = 0;
  /* Each is reached once: from the one without its largest maximal cluster. */
  for (uint32_t at = 0; at < l->n_downsets; at++)
    for (uint32_t c = 0; c < l->n; c++) {
      const uint64_t set = l->downsets[at], bit = UINT64_C(1) << c;
      if ((set & bit) || (l->before[c] & ~set)) continue;
      bool largest = true;
      for (uint32_t d = c + 1; d < l->n && largest; d++) {
        bool needed = false;
        for (uint32_t f = 0; f < l->n && !needed; f++)
          needed = ((set | bit) >> f & 1) && (l->before[f] >> d & 1);
        largest = !(set >> d & 1) || needed;
      }
      if (!largest) continue;
      if (l->n_downsets == most) return false;
      l->downsets[l->n_downsets++] = set | bit;
    }
  return true;
}

/* --- states --- */

static uint64_t hash_of(const state *key) {
  uint64_t h = UINT64_C(14695981039346656037);
  const unsigned char *bytes = (const unsigned char *)key;
  for (size_t i = 0; i < sizeof *key; i++) h = (h ^ bytes[i]) * UINT64_C(1099511628211);
  return h ^ h >> 29;
}

static void open_table(table *t, uint32_t most) {
  t->n = 0;
  t->most = most;
  for (t->n_slots = 16; t->n_slots < 2 * most; t->n_slots *= 2) {
  }
  t->keys = malloc(most * sizeof *t->keys);
  t->values = malloc(most * sizeof *t->values);
  t->slots = malloc(t->n_slots * sizeof *t->slots);
  if (!t->keys || !t->values || !t->slots) abort();
  memset(t->slots, 0xff, t->n_slots * sizeof *t->slots);
}

static void close_table(table *t) {
  free(t->keys);
  free(t->values);
  free(t->slots);
}

static bool put(table *t, const state *key, int64_t value) {
  uint32_t slot = (uint32_t)hash_of(key) & (t->n_slots - 1);
  for (; t->slots[slot] != PSPLIT_NONE; slot = (slot + 1) & (t->n_slots - 1)) {
    const uint32_t i = t->slots[slot];
    if (memcmp(&t->keys[i], key, sizeof *key) != 0) continue;
    if (value < t->values[i]) t->values[i] = value;
    return true;
  }
  if (t->n == t->most) return false;
  t->slots[slot] = t->n;
  t->keys[t->n] = *key;
  t->values[t->n++] = value;
  return true;
}

/* --- stages --- */

static uint64_t bytes_of(const lattice *l, uint64_t set, uint64_t held) {
  const psplit_problem *p = l->p;
  uint64_t bytes = 0;
  for (uint32_t c = 0; c < l->n; c++)
    if (set >> c & 1) bytes += l->weight[c] + held * l->activation[c];
  for (uint32_t g = 0; g < p->n_weights; g++) {
    bool any = false;
    for (uint32_t k = p->weight_off[g]; k < p->weight_off[g + 1]; k++)
      any |= set >> l->cluster[p->weight_user[k]] & 1;
    if (any) bytes += p->weight_group_bytes[g];
  }
  return bytes;
}

/* Load of stage k with `set` on a device of entry t; FORBIDDEN where it cannot be. */
static int64_t load_of(const lattice *l, const state *from, uint64_t set, uint32_t k,
                       uint32_t n_stages, uint32_t t) {
  const psplit_problem *p = l->p;
  const psplit_device *device = &p->devices[t];
  int64_t work = 0, recv = 0, send = 0;
  for (uint32_t c = 0; c < l->n; c++) {
    if (!(set >> c & 1)) continue;
    if (l->time[t][c] == FORBIDDEN) return FORBIDDEN;
    if (l->pin[c] != PSPLIT_NONE && l->pin[c] != k) return FORBIDDEN;
    work += l->time[t][c];
  }
  if (device->memory_bytes &&
      bytes_of(l, set, p->stash_1f1b ? n_stages - k : 1) > device->memory_bytes)
    return FORBIDDEN;
  for (uint32_t e = 0; e < p->n_nets && !device->free_comm; e++) {
    const size_t cell = (size_t)e * p->n_classes + device->class_id;
    if (!(l->source[e] & set)) {
      if (l->readers[e] & set) recv += p->net_recv_ns[cell];
    } else if (p->comm == PSPLIT_COMM_SHARED) {
      if (l->readers[e] & ~set) send += p->net_send_ns[cell];
    } else {
      send += p->net_send_ns[cell] * from->readers[e];
    }
  }
  if (!p->overlap) return work + recv + send;
  const int64_t most = recv > send ? recv : send;
  return work > most ? work : most;
}

static state behind(const lattice *l, const state *from, uint64_t set) {
  state next = *from;
  next.left &= ~set;
  for (uint32_t e = 0; e < l->p->n_nets; e++) {
    if (!(l->source[e] & next.left))
      next.readers[e] = 0;
    else if (l->p->comm == PSPLIT_COMM_P2P && (l->readers[e] & set))
      next.readers[e]++;
  }
  return next;
}

static bool has_node_that_counts(const lattice *l, uint64_t set) {
  for (uint32_t c = 0; c < l->n; c++)
    if ((set >> c & 1) && l->counts[c]) return true;
  return false;
}

/* All stages k that may follow a state; false: too many states. */
static bool expand(const lattice *l, const state *from, int64_t value, uint32_t k,
                   uint32_t n_stages, uint32_t entry, table *out) {
  for (uint32_t i = 0; i < l->n_downsets; i++) {
    if (l->downsets[i] & ~from->left) continue;
    const uint64_t set = from->left & ~l->downsets[i];
    if (l->nonempty && !has_node_that_counts(l, set)) continue;
    if (!set) {
      if (!put(out, from, value)) return false;
      continue;
    }
    for (uint32_t t = 0; t < l->p->n_devices; t++) {
      if (l->p->any_device_order ? from->used[t] == l->p->devices[t].count : t != entry) continue;
      int64_t load = load_of(l, from, set, k, n_stages, t);
      if (load == FORBIDDEN || load > l->limit) continue;
      if (load < value) load = value;
      state next = behind(l, from, set);
      if (l->p->any_device_order) next.used[t]++;
      if (!put(out, &next, load)) return false;
    }
  }
  return true;
}

lattice_answer lattice_best(const psplit_problem *p, bool nonempty, int64_t limit,
                            uint32_t most_downsets, uint32_t most_states, int64_t *out_best) {
  const uint32_t n_stages = psplit_problem_n_stages(p);
  lattice l = {.p = p, .nonempty = nonempty, .limit = limit};
  if (p->n_nodes > MOST_NODES || p->n_nets > MOST_NETS || p->n_devices > MOST_TYPES || p->next_hop)
    return LATTICE_NOT_FOR_IT;
  if (!find_clusters(&l)) return LATTICE_NONE;
  if (!find_nets(&l)) return LATTICE_NOT_FOR_IT;
  table now, next;
  lattice_answer answer = find_downsets(&l, most_downsets) ? LATTICE_NONE : LATTICE_TOO_LARGE;
  open_table(&now, most_states);
  state all;
  memset(&all, 0, sizeof all);
  all.left = l.n == 64 ? UINT64_MAX : (UINT64_C(1) << l.n) - 1;
  (void)put(&now, &all, 0);
  for (uint32_t k = n_stages, entry = p->n_devices - 1, left = p->devices[entry].count;
       k-- > 0 && answer == LATTICE_NONE; left--) {
    while (left == 0) left = p->devices[--entry].count;
    open_table(&next, most_states);
    for (uint32_t i = 0; i < now.n && answer == LATTICE_NONE; i++)
      if (!expand(&l, &now.keys[i], now.values[i], k, n_stages, entry, &next))
        answer = LATTICE_TOO_LARGE;
    close_table(&now);
    now = next;
  }
  for (uint32_t i = 0; i < now.n && answer != LATTICE_TOO_LARGE; i++)
    if (now.keys[i].left == 0 && (answer == LATTICE_NONE || now.values[i] < *out_best)) {
      *out_best = now.values[i];
      answer = LATTICE_BEST;
    }
  close_table(&now);
  free(l.downsets);
  return answer;
}
