/* Between two separators lie branches without edges between them, such as the experts of a layer or
 * attention heads. A stage that holds some of them and the separator in front sends their results.
 * A stage that holds the separator behind receives them, and also the inputs of the other branches.
 * So the cost of a branch is what it sends minus what it would receive by itself. Branches are
 * sorted by that cost per unit of time, for any number of stages (Dantzig's order for the knapsack
 * problem).
 *
 * A tensor that all branches read may cost so much that few stages can receive it. More branches
 * fit these stages if some leave their rest, which does not read it, to stages behind: two rows of
 * stages. */
#include "branch_order.h"
#include "separators.h"
#include "union_find.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 4 /* branches of a block that are worth an order */ };

typedef struct branch {
  double cost, time;
  uint32_t root; /* its first cluster */
} branch;

/* A branch that may be in two rows, by places in the order: its front is [begin, cut). */
typedef struct row_branch {
  double saved, rest; /* by the front instead of the whole branch; what the rest costs */
  uint32_t begin, cut, end;
} row_branch;

typedef struct ordering {
  const psplit_i_instance *instance;
  uint32_t *root; /* [n] union-find, then where the branch of a root goes */
  branch *branches;
  uint32_t *at; /* [n] of a root: number of its branch, then where its next cluster goes */
  uint32_t
    part; /* of PSPLIT_I_ROW_PARTS of the branches are in two rows; 0: what follows is NULL */
  row_branch *rows;
  uint32_t *place; /* [n] of a cluster in the order */
  double *change;  /* [n] of what clusters up to a place send on to the rest of their branch */
} ordering;

static int compare_branches(const void *a, const void *b) {
  const branch *x = a, *y = b;
  const double left = x->cost * y->time, right = y->cost * x->time;
  if (left != right) return left < right ? -1 : 1;
  return x->root < y->root ? -1 : x->root > y->root;
}

/* The send and receive cost of a net together, on the device type where it is largest. */
static double cost_of(const psplit_i_instance *instance, uint32_t e) {
  int64_t most = 0;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const size_t cell = (size_t)t * instance->n_nets + e;
    const int64_t both = psplit_i_sat_add_i64(instance->send[cell], instance->recv[cell]);
    if (both > most) most = both;
  }
  return (double)most;
}

/* Unites the clusters [first, end) that an edge or a net from within the block connects. */
static void unite(ordering *o, uint32_t first, uint32_t end) {
  const psplit_i_instance *instance = o->instance;
  for (uint32_t i = first; i < end; i++) {
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      if (instance->succ[k] < end) psplit_i_unite(o->root, i, instance->succ[k]);
    for (uint32_t k = instance->inc_off[i]; k < instance->inc_off[i + 1]; k++) {
      const uint32_t e = instance->inc[k] >> 1;
      if (!(instance->inc[k] & 1)) continue;
      for (uint32_t l = instance->net_off[e]; l < instance->net_off[e + 1]; l++) {
        const uint32_t pin = instance->net_pin[l];
        if (pin >= first && pin < end) psplit_i_unite(o->root, i, pin);
      }
    }
  }
}

/* The only branch in [first, end) that has consumers of a net from outside, if it has all of them;
 * else NONE. */
static uint32_t only_reader(const ordering *o, uint32_t first, uint32_t end, uint32_t e) {
  const psplit_i_instance *instance = o->instance;
  uint32_t only = PSPLIT_NONE;
  for (uint32_t l = instance->net_off[e] + 1; l < instance->net_off[e + 1]; l++) {
    const uint32_t pin = instance->net_pin[l];
    if (pin < first || pin >= end) return PSPLIT_NONE;
    const uint32_t root = psplit_i_find(o->root, pin);
    if (only != PSPLIT_NONE && root != only) return PSPLIT_NONE;
    only = root;
  }
  return only;
}

/* Adds the costs of the nets of cluster i to its branch, each net once. */
static void add_nets(ordering *o, uint32_t first, uint32_t end, uint32_t i) {
  const psplit_i_instance *instance = o->instance;
  branch *b = &o->branches[o->at[psplit_i_find(o->root, i)]];
  for (uint32_t k = instance->inc_off[i]; k < instance->inc_off[i + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    const uint32_t *pin = instance->net_pin + instance->net_off[e];
    const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
    if (instance->inc[k] & 1) {
      bool leaves = false;
      for (uint32_t l = 1; l < n_pins; l++) leaves |= pin[l] < first || pin[l] >= end;
      if (leaves) b->cost += cost_of(instance, e);
    } else if (pin[0] < first && pin[1] == i && only_reader(o, first, end, e) != PSPLIT_NONE) {
      b->cost -= cost_of(instance, e);
    }
  }
}

/* The consumers of net e in [first, end) if cluster i is the first of them; else 0. */
static uint32_t count_readers(const psplit_i_instance *instance, uint32_t first, uint32_t end,
                              uint32_t i, uint32_t e) {
  uint32_t n = 0;
  for (uint32_t l = instance->net_off[e] + 1; l < instance->net_off[e + 1]; l++) {
    const uint32_t pin = instance->net_pin[l];
    if (pin >= first && pin < i) return 0;
    n += pin >= i && pin < end;
  }
  return n;
}

/* The net from in front of a block [first, end) that costs most if each of its consumers there
 * receives it; NONE: no net has LEAST consumers. */
static uint32_t dearest_net(const psplit_i_instance *instance, uint32_t first, uint32_t end) {
  uint32_t dearest = PSPLIT_NONE;
  double most = 0;
  for (uint32_t i = first; i < end; i++) {
    for (uint32_t k = instance->inc_off[i]; k < instance->inc_off[i + 1]; k++) {
      const uint32_t e = instance->inc[k] >> 1;
      if ((instance->inc[k] & 1) || instance->net_pin[instance->net_off[e]] >= first) continue;
      const uint32_t n = count_readers(instance, first, end, i, e);
      if (n < LEAST || n * cost_of(instance, e) <= most) continue;
      most = n * cost_of(instance, e);
      dearest = e;
    }
  }
  return dearest;
}

/* The last place of the branch [begin, end) of the order that net e of it reaches; end: it leaves
 * the branch. */
static uint32_t last_place(const ordering *o, uint32_t begin, uint32_t end, uint32_t e) {
  const psplit_i_instance *instance = o->instance;
  uint32_t last = begin;
  for (uint32_t l = instance->net_off[e]; l < instance->net_off[e + 1]; l++) {
    const uint32_t place = o->place[instance->net_pin[l]];
    if (place < begin || place >= end) return end;
    if (place > last) last = place;
  }
  return last;
}

/* Of the branch [begin, end) of the order: the front that costs least to compute and to send, with
 * all consumers of `net`. Saves nothing if no front is cheaper than the whole branch. */
static row_branch find_front(const ordering *o, const int64_t *min_time, const uint32_t *order,
                             uint32_t begin, uint32_t end, uint32_t net) {
  const psplit_i_instance *instance = o->instance;
  row_branch row = {.begin = begin, .cut = end, .end = end};
  uint32_t least_cut = end;
  double whole = 0, front = 0, sent = 0;
  for (uint32_t at = begin; at < end; at++) o->change[at] = 0;
  for (uint32_t at = begin; at < end; at++) {
    const uint32_t i = order[at];
    whole += (double)min_time[i];
    for (uint32_t k = instance->inc_off[i]; k < instance->inc_off[i + 1]; k++) {
      const uint32_t e = instance->inc[k] >> 1;
      if (e == net) least_cut = at + 1;
      if (!(instance->inc[k] & 1)) continue;
      const uint32_t last = last_place(o, begin, end, e);
      const double send = cost_of(instance, e) / 2;
      o->change[at] += send;
      if (last < end)
        o->change[last] -= send;
      else
        whole += send;
    }
  }
  for (uint32_t at = begin; at + 1 < end; at++) {
    front += (double)min_time[order[at]];
    sent += o->change[at];
    const double saved = whole - front - sent;
    if (at + 1 < least_cut || saved <= row.saved) continue;
    row.saved = saved;
    row.rest = saved + 2 * sent; /* it receives what the front sends */
    row.cut = at + 1;
  }
  return row;
}

static int compare_saved(const void *a, const void *b) {
  const row_branch *x = a, *y = b;
  const double left = x->saved * y->rest, right = y->saved * x->rest;
  if (left != right) return left > right ? -1 : 1;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int compare_begins(const void *a, const void *b) {
  const row_branch *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Puts branches of a block [first, end) that is in the order of branches in two rows: those that
 * save most by their fronts for what their rest costs. Returns whether any may be. */
static bool make_rows(ordering *o, const int64_t *min_time, uint32_t first, uint32_t end,
                      uint32_t *io_order) {
  const uint32_t net = dearest_net(o->instance, first, end);
  uint32_t n_may = 0, at = first;
  if (net == PSPLIT_NONE) return false;
  for (uint32_t k = first; k < end; k++) o->place[io_order[k]] = k;
  for (uint32_t begin = first, next; begin < end; begin = next) {
    const uint32_t root = psplit_i_find(o->root, io_order[begin]);
    for (next = begin; next < end && psplit_i_find(o->root, io_order[next]) == root;) next++;
    o->rows[n_may] = find_front(o, min_time, io_order, begin, next, net);
    n_may += o->rows[n_may].saved > 0;
  }
  qsort(o->rows, n_may, sizeof *o->rows, compare_saved);
  const uint32_t n = (uint32_t)((uint64_t)n_may * o->part / PSPLIT_I_ROW_PARTS);
  qsort(o->rows, n, sizeof *o->rows, compare_begins);
  for (uint32_t k = first, b = 0; k < end;)
    if (b < n && k == o->rows[b].begin)
      k = o->rows[b++].end;
    else
      o->at[at++] = io_order[k++];
  for (uint32_t b = 0; b < n; b++)
    for (uint32_t k = o->rows[b].begin; k < o->rows[b].cut; k++) o->at[at++] = io_order[k];
  for (uint32_t b = n; b-- > 0;)
    for (uint32_t k = o->rows[b].cut; k < o->rows[b].end; k++) o->at[at++] = io_order[k];
  memcpy(io_order + first, o->at + first, (end - first) * sizeof *io_order);
  return n_may > 0;
}

/* Sorts the branches of a block [first, end), without its separator. Returns whether branches
 * differ or, with rows, whether any may be in two. */
static bool order_block(ordering *o, const int64_t *min_time, uint32_t first, uint32_t end,
                        uint32_t *out) {
  uint32_t n = 0;
  bool differ = false;
  unite(o, first, end);
  for (uint32_t i = first; i < end; i++) {
    const uint32_t root = psplit_i_find(o->root, i);
    if (root == i) o->branches[o->at[i] = n++] = (branch){.root = i};
    o->branches[o->at[root]].time += (double)min_time[i];
  }
  if (n < LEAST) return false;
  for (uint32_t i = first; i < end; i++) add_nets(o, first, end, i);
  qsort(o->branches, n, sizeof *o->branches, compare_branches);
  for (uint32_t b = 1; b < n; b++) differ |= o->branches[b].root < o->branches[b - 1].root;
  if (!differ && o->part == 0) return false;
  /* Sizes, then places. */
  for (uint32_t b = 0; b < n; b++) o->at[o->branches[b].root] = 0;
  for (uint32_t i = first; i < end; i++) o->at[psplit_i_find(o->root, i)]++;
  for (uint32_t b = 0, at = first; b < n; b++) {
    const uint32_t size = o->at[o->branches[b].root];
    o->at[o->branches[b].root] = at;
    at += size;
  }
  for (uint32_t i = first; i < end; i++) out[o->at[psplit_i_find(o->root, i)]++] = i;
  return o->part == 0 || make_rows(o, min_time, first, end, out);
}

psplit_code psplit_i_branch_order(const psplit_i_instance *instance,
                                  const psplit_i_automaton *automaton, uint32_t part,
                                  uint32_t *out_order, bool *out_any) {
  const uint32_t n = instance->n;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  ordering o = {.instance = instance,
                .root = PSPLIT_NEW(&arena, uint32_t, n),
                .branches = PSPLIT_NEW(&arena, branch, n),
                .at = PSPLIT_NEW(&arena, uint32_t, n),
                .part = part};
  if (part > 0) {
    o.rows = PSPLIT_NEW(&arena, row_branch, n);
    o.place = PSPLIT_NEW(&arena, uint32_t, n);
    o.change = PSPLIT_NEW(&arena, double, n);
  }
  uint32_t *ends = PSPLIT_NEW(&arena, uint32_t, n), *scratch = PSPLIT_NEW(&arena, uint32_t, n);
  *out_any = false;
  if (!arena.failed) {
    for (uint32_t i = 0; i < n; i++) out_order[i] = o.root[i] = i;
    for (uint32_t i = 0; part > 0 && i < n; i++) o.place[i] = n; /* none of any branch */
    const uint32_t n_blocks = psplit_i_separators(instance, scratch, ends);
    const bool whole = !psplit_i_ends_in_separator(instance, scratch);
    for (uint32_t b = 0, first = 0; b < n_blocks; first = ends[b++]) {
      const uint32_t end = b + 1 == n_blocks && whole ? ends[b] : ends[b] - 1;
      if (order_block(&o, automaton->min_time, first, end, out_order)) *out_any = true;
    }
  }
  const psplit_code code = arena.failed ? PSPLIT_NOMEM : PSPLIT_OK;
  psplit_i_arena_fini(&arena);
  return code;
}
