#include "clusters.h"

#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "contract.h"

enum {
  MOST_JUMP = 64, /* clusters */
  CHEAP = 4096    /* part of the latency that a net may cost and count as nothing */
};

typedef struct builder {
  psplit_i_calls_clusters *x;
  const psplit_i_calls *calls;
  psplit_i_arena *arena;
  int64_t limit;
  bool main_only, *kept;    /* [nodes] of roots */
  uint32_t *root;           /* [nodes] the node that a node is one with */
  uint32_t *cluster;        /* [nodes] */
  uint32_t *min_reader;     /* [n] first cluster that needs this one; NONE: there is none */
  uint32_t *max_read, *end; /* [n] last cluster that it needs, or NONE; first separator behind */
} builder;

/* The node at which the longest path of least times ends. */
static bool find_last(builder *b, uint32_t *out_last) {
  const psplit_i_calls *c = b->calls;
  int64_t longest = -1, *ready = PSPLIT_NEW(b->arena, int64_t, c->n);
  if (!ready) return false;
  for (uint32_t i = 0; i < c->n; i++) {
    const uint32_t v = c->order[i];
    int64_t least = PSPLIT_I_INF;
    for (uint32_t t = 0; t < c->n_types; t++)
      if (c->time[(size_t)t * c->n + v] < least) least = c->time[(size_t)t * c->n + v];
    const int64_t end = ready[v] >= PSPLIT_I_INF ? PSPLIT_I_INF : ready[v] + least;
    if (end >= longest) *out_last = v;
    if (end >= longest) longest = end;
    for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++)
      if (end > ready[c->succ[k]]) ready[c->succ[k]] = end;
  }
  return true;
}

/* kept: clusters with a node before `last`; b->kept is by root. */
static bool keep_before(builder *b) {
  const psplit_i_calls *c = b->calls;
  uint32_t last = 0;
  b->kept = PSPLIT_NEW(b->arena, bool, c->n);
  if (!b->kept || !find_last(b, &last)) return false;
  bool *before = PSPLIT_NEW(b->arena, bool, c->n);
  if (!before) return false;
  for (uint32_t i = c->n; i-- > 0;) {
    const uint32_t v = c->order[i];
    before[v] = v == last;
    for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++) before[v] |= before[c->succ[k]];
    b->kept[b->root[v]] |= before[v] || !b->main_only;
  }
  b->x->all = true;
  for (uint32_t v = 0; v < c->n; v++) b->x->all &= b->kept[b->root[v]];
  return true;
}

/* A search to all depth over clusters, each of which is left by all edges of all its members. */
typedef struct walk {
  uint32_t *first, *next; /* [nodes] members of roots */
  uint32_t *member, *at;  /* [nodes] where a root's search is: at which member, and edge of that */
  uint32_t *stack, size;
  uint32_t *done, n_done; /* roots, in the order in which they were left */
  bool *seen;             /* [nodes] of roots */
} walk;

static bool init_walk(const builder *b, walk *w) {
  const uint32_t n = b->calls->n;
  *w = (walk){.first = PSPLIT_NEW(b->arena, uint32_t, n),
              .next = PSPLIT_NEW(b->arena, uint32_t, n),
              .member = PSPLIT_NEW(b->arena, uint32_t, n),
              .at = PSPLIT_NEW(b->arena, uint32_t, n),
              .stack = PSPLIT_NEW(b->arena, uint32_t, n),
              .done = PSPLIT_NEW(b->arena, uint32_t, n),
              .seen = PSPLIT_NEW(b->arena, bool, n)};
  if (!w->first || !w->next || !w->member || !w->at || !w->stack || !w->done || !w->seen)
    return false;
  memset(w->first, 0xff, n * sizeof *w->first);
  for (uint32_t v = n; v-- > 0;) {
    w->next[v] = w->first[b->root[v]];
    w->first[b->root[v]] = v;
  }
  return true;
}

static void enter(const builder *b, walk *w, uint32_t root) {
  w->seen[root] = true;
  w->stack[w->size++] = root;
  w->member[root] = w->first[root];
  w->at[root] = b->calls->succ_off[w->first[root]];
}

/* The next cluster that this one leads to and that was not seen; NONE: there are no more. */
static uint32_t next_behind(const builder *b, walk *w, uint32_t root) {
  const psplit_i_calls *c = b->calls;
  while (w->member[root] != PSPLIT_NONE) {
    while (w->at[root] < c->succ_off[w->member[root] + 1]) {
      const uint32_t to = b->root[c->succ[w->at[root]++]];
      if (!w->seen[to] && b->kept[to]) return to;
    }
    w->member[root] = w->next[w->member[root]];
    if (w->member[root] != PSPLIT_NONE) w->at[root] = c->succ_off[w->member[root]];
  }
  return PSPLIT_NONE;
}

static void walk_from(const builder *b, walk *w, uint32_t start) {
  enter(b, w, start);
  while (w->size > 0) {
    const uint32_t root = w->stack[w->size - 1], to = next_behind(b, w, root);
    if (to != PSPLIT_NONE)
      enter(b, w, to);
    else
      w->done[w->n_done++] = w->stack[--w->size];
  }
}

/* Clusters in the reverse order of the search: what is behind one reader stands together. */
static bool number(builder *b) {
  const uint32_t n = b->calls->n;
  walk w;
  if (!init_walk(b, &w)) return false;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t start = b->root[b->calls->order[i]];
    if (!w.seen[start] && b->kept[start]) walk_from(b, &w, start);
  }
  memset(b->cluster, 0xff, n * sizeof *b->cluster);
  for (uint32_t k = 0; k < w.n_done; k++) b->cluster[w.done[k]] = w.n_done - 1 - k;
  for (uint32_t v = 0; v < n; v++)
    if (b->root[v] != v) b->cluster[v] = b->cluster[b->root[v]];
  b->x->n = w.n_done;
  return true;
}

static bool price(builder *b) {
  psplit_i_calls_clusters *x = b->x;
  const psplit_i_calls *c = b->calls;
  const psplit_problem *p = c->problem;
  x->time = PSPLIT_NEW(b->arena, int64_t, (size_t)x->n_types * x->n + 1);
  x->alone = PSPLIT_NEW(b->arena, int64_t, x->n);
  x->bytes = PSPLIT_NEW(b->arena, uint64_t, x->n);
  if (!x->time || !x->alone || !x->bytes) return false;
  for (uint32_t v = 0; v < c->n; v++) {
    const uint32_t i = b->cluster[v];
    if (i == PSPLIT_NONE) continue;
    for (uint32_t t = 0; t < x->n_types; t++) {
      int64_t *time = &x->time[(size_t)t * x->n + i];
      const int64_t more = c->time[(size_t)t * c->n + v];
      *time = more >= PSPLIT_I_INF || *time >= PSPLIT_I_INF ? PSPLIT_I_INF : *time + more;
    }
    const int64_t alone =
      c->has_cpus ? c->time[(size_t)c->type[c->n_accelerators] * c->n + v] : PSPLIT_I_INF;
    if (x->alone[i] < PSPLIT_I_INF && (v == b->root[v] || alone >= PSPLIT_I_INF))
      x->alone[i] = alone;
    if (p->weight_bytes) x->bytes[i] = psplit_i_sat_add_u64(x->bytes[i], p->weight_bytes[v]);
    if (p->activation_bytes)
      x->bytes[i] = psplit_i_sat_add_u64(x->bytes[i], p->activation_bytes[v]);
  }
  return true;
}

/* What a call receives for net e at least. */
static int64_t least_recv(const builder *b, uint32_t e) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < b->x->n_types; t++) {
    const int64_t recv = b->calls->recv[(size_t)t * b->calls->problem->n_nets + e];
    if (recv < least) least = recv;
  }
  return least;
}

/* Leaves out separators that short and dear nets jump over: what those cost would not count. */
static void hide(builder *b) {
  psplit_i_calls_clusters *x = b->x;
  const psplit_problem *p = b->calls->problem;
  uint32_t *reach = b->end, n = 0, furthest = 0;
  memset(reach, 0, x->n * sizeof *reach);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t u = b->cluster[p->net_producer[e]];
    uint32_t last = 0;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t to = b->cluster[p->net_consumer[k]];
      if (to != PSPLIT_NONE && to > last) last = to;
    }
    if (u == PSPLIT_NONE) continue;
    if (last > reach[u] && last <= u + MOST_JUMP && least_recv(b, e) > b->limit / CHEAP)
      reach[u] = last;
  }
  for (uint32_t i = 0, k = 0; i < x->n && k < x->n_separators; i++) {
    if (x->separator[k] == i) {
      if (furthest <= i) x->separator[n++] = i;
      k++;
    }
    if (reach[i] > furthest) furthest = reach[i];
  }
  x->n_separators = n;
}

/* Cluster i is one where each cluster before has a reader up to i, so that it leads there, and each
 * behind needs one from i on. */
static bool find_separators(builder *b) {
  psplit_i_calls_clusters *x = b->x;
  const psplit_i_calls *c = b->calls;
  bool *all_behind = PSPLIT_NEW(b->arena, bool, x->n);
  x->separator = PSPLIT_NEW(b->arena, uint32_t, x->n);
  b->min_reader = PSPLIT_NEW(b->arena, uint32_t, x->n);
  b->max_read = PSPLIT_NEW(b->arena, uint32_t, x->n);
  b->end = PSPLIT_NEW(b->arena, uint32_t, x->n);
  if (!all_behind || !x->separator || !b->min_reader || !b->max_read || !b->end) return false;
  memset(b->min_reader, 0xff, x->n * sizeof *b->min_reader);
  memset(b->max_read, 0xff, x->n * sizeof *b->max_read);
  for (uint32_t v = 0; v < c->n; v++)
    for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++) {
      const uint32_t u = b->cluster[v], to = b->cluster[c->succ[k]];
      if (u == to || u == PSPLIT_NONE || to == PSPLIT_NONE) continue;
      if (to < b->min_reader[u]) b->min_reader[u] = to;
      if (b->max_read[to] == PSPLIT_NONE || u > b->max_read[to]) b->max_read[to] = u;
    }
  uint32_t least = x->n;
  for (uint32_t i = x->n; i-- > 0;) {
    all_behind[i] = least != PSPLIT_NONE && least >= i;
    if (b->max_read[i] == PSPLIT_NONE) least = PSPLIT_NONE;
    if (least != PSPLIT_NONE && b->max_read[i] < least) least = b->max_read[i];
  }
  uint32_t most = 0;
  for (uint32_t i = 0; i < x->n && most != PSPLIT_NONE; i++) {
    if (most <= i && all_behind[i]) x->separator[x->n_separators++] = i;
    if (b->min_reader[i] > most) most = b->min_reader[i];
  }
  hide(b);
  for (uint32_t i = x->n, k = x->n_separators, end = x->n; i-- > 0;) {
    b->end[i] = end;
    if (k > 0 && x->separator[k - 1] == i) end = x->separator[--k];
  }
  return true;
}

/* Net e of cluster `from`, which is read as far as `last` behind separators, and by none at or
 * before the first of those if `only`. If no call of a type can hold what lies between, that of
 * `last` receives it, if it is of the type, and nobody receives it twice for that. */
static void charge_jump(builder *b, uint32_t e, uint32_t from, uint32_t last, bool only) {
  psplit_i_calls_clusters *x = b->x;
  const psplit_problem *p = b->calls->problem;
  uint64_t between = x->bytes[last];
  uint32_t k = x->n_separators;
  while (x->separator[k - 1] >= last) k--;
  for (uint32_t i = b->end[from]; i <= x->separator[k - 1]; i++)
    between = psplit_i_sat_add_u64(between, x->bytes[i]);
  for (uint32_t t = 0; t < x->n_types; t++) {
    int64_t *there = &x->time[(size_t)t * x->n + last], *here = &x->time[(size_t)t * x->n + from];
    if (between <= x->memory[t]) continue;
    if (*there < PSPLIT_I_INF) *there += b->calls->recv[(size_t)t * p->n_nets + e];
    if (*here < PSPLIT_I_INF && only) *here += b->calls->send[(size_t)t * p->n_nets + e];
  }
}

static bool make_room_for_nets(const builder *b, size_t n_all, size_t n_pins) {
  psplit_i_calls_clusters *x = b->x;
  x->from = PSPLIT_NEW(b->arena, uint32_t, n_all + 1);
  x->to_off = PSPLIT_NEW(b->arena, uint32_t, n_all + 1);
  x->to = PSPLIT_NEW(b->arena, uint32_t, n_pins + 1);
  x->out_off = PSPLIT_NEW(b->arena, uint32_t, (size_t)x->n + 1);
  x->in_off = PSPLIT_NEW(b->arena, uint32_t, (size_t)x->n + 1);
  x->in = PSPLIT_NEW(b->arena, uint32_t, n_pins + 1);
  x->send = PSPLIT_NEW(b->arena, int64_t, (size_t)x->n_types * n_all + 1);
  x->recv = PSPLIT_NEW(b->arena, int64_t, (size_t)x->n_types * n_all + 1);
  x->net_stride = n_all;
  return x->from && x->to_off && x->to && x->out_off && x->in_off && x->in && x->send && x->recv;
}

/* Net e of the problem, or edge e - nets of its order, of cluster `from`; `reader`: scratch. */
static void add_net(builder *b, uint32_t e, uint32_t from, uint64_t *reader) {
  psplit_i_calls_clusters *x = b->x;
  const psplit_problem *p = b->calls->problem;
  const bool order = e >= p->n_nets;
  const uint32_t off = order ? e - p->n_nets : p->net_off[e];
  const uint32_t end = order ? off + 1 : p->net_off[e + 1];
  const uint32_t *to = order ? p->order_to : p->net_consumer;
  uint32_t n_readers = 0, at = x->to_off[x->n_nets], last = 0;
  for (uint32_t k = off; k < end; k++) {
    const uint32_t r = b->cluster[to[k]];
    if (r == PSPLIT_NONE) continue;
    if (r > last) last = r;
    if (r != from && r <= b->end[from]) reader[n_readers++] = r;
  }
  if (last > b->end[from] && !order) charge_jump(b, e, from, last, n_readers == 0);
  if (n_readers == 0) return;
  qsort(reader, n_readers, sizeof *reader, psplit_i_compare_u64);
  for (uint32_t k = 0; k < n_readers; k++)
    if (k == 0 || reader[k] != reader[k - 1]) x->to[at++] = (uint32_t)reader[k];
  for (uint32_t t = 0; t < x->n_types && !order; t++) {
    x->send[t * x->net_stride + x->n_nets] = b->calls->send[(size_t)t * p->n_nets + e];
    x->recv[t * x->net_stride + x->n_nets] = b->calls->recv[(size_t)t * p->n_nets + e];
  }
  x->from[x->n_nets++] = from;
  x->to_off[x->n_nets] = at;
}

/* Nets of the problem, then its order, by producer: [nets + order] producer << 32 | net. */
static bool add_nets(builder *b) {
  const psplit_problem *p = b->calls->problem;
  const size_t n_all = (size_t)p->n_nets + p->n_order;
  const size_t n_pins = (size_t)p->net_off[p->n_nets] + p->n_order;
  uint64_t *by_producer = PSPLIT_NEW(b->arena, uint64_t, n_all + 1);
  uint64_t *reader = PSPLIT_NEW(b->arena, uint64_t, n_pins + 1);
  if (!by_producer || !reader || !make_room_for_nets(b, n_all, n_pins)) return false;
  for (size_t e = 0; e < n_all; e++) {
    const uint32_t v = e < p->n_nets ? p->net_producer[e] : p->order_from[e - p->n_nets];
    by_producer[e] = (uint64_t)b->cluster[v] << 32 | e;
  }
  qsort(by_producer, n_all, sizeof *by_producer, psplit_i_compare_u64);
  for (size_t i = 0; i < n_all; i++) {
    const uint32_t from = (uint32_t)(by_producer[i] >> 32);
    if (from != PSPLIT_NONE) add_net(b, (uint32_t)by_producer[i], from, reader);
  }
  return true;
}

static void index_nets(psplit_i_calls_clusters *x) {
  for (uint32_t e = 0; e < x->n_nets; e++) x->out_off[x->from[e] + 1] = e + 1;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->out_off[i + 1] < x->out_off[i]) x->out_off[i + 1] = x->out_off[i];
  for (uint32_t k = 0; k < x->to_off[x->n_nets]; k++) x->in_off[x->to[k]]++;
  for (uint32_t i = 0, sum = 0; i <= x->n; i++) x->in_off[i] = sum += x->in_off[i];
  for (uint32_t e = x->n_nets; e-- > 0;)
    for (uint32_t k = x->to_off[e]; k < x->to_off[e + 1]; k++) x->in[--x->in_off[x->to[k]]] = e;
}

psplit_code psplit_i_calls_clusters_init(psplit_i_calls_clusters *x, const psplit_i_calls *calls,
                                         const psplit_i_calls_closure *closure, int64_t limit,
                                         bool main_only, psplit_i_arena *arena) {
  const psplit_problem *p = calls->problem;
  psplit_code code;
  builder b = {.x = x, .calls = calls, .arena = arena, .limit = limit, .main_only = main_only};
  *x = (psplit_i_calls_clusters){.n_types = calls->n_types - calls->has_cpus,
                                 .sends_to_each = p->comm == PSPLIT_COMM_P2P};
  if (x->n_types > PSPLIT_I_CALLS_TYPES) return PSPLIT_OK;
  for (uint32_t a = 0; a < calls->n_accelerators; a++) {
    const uint64_t bytes = p->devices[calls->entry[a]].memory_bytes;
    x->memory[calls->type[a]] = bytes ? bytes : UINT64_MAX;
    x->count[calls->type[a]]++;
  }
  b.root = PSPLIT_NEW(arena, uint32_t, calls->n);
  b.cluster = x->cluster = PSPLIT_NEW(arena, uint32_t, calls->n);
  if (!b.root || !b.cluster) return PSPLIT_NOMEM;
  PSPLIT_TRY(psplit_i_calls_contract(calls, closure, arena, b.root));
  if (!keep_before(&b) || !number(&b) || !price(&b) || !find_separators(&b)) return PSPLIT_NOMEM;
  if (x->n_separators == 0) return PSPLIT_OK;
  if (!add_nets(&b)) return PSPLIT_NOMEM;
  index_nets(x);
out:
  return code;
}
