/* Clusters are placed in topological order: left, right, or inside, on a CPU or in some call. A
 * label represents partial placements that are equivalent for the remaining clusters: in the parts
 * of producers that are still read, and in the devices that have their tensors. Of labels with the
 * same state, only those are kept that no other dominates in cost, bytes and end times. */
#include <stdlib.h>
#include <string.h>

#include "crossings_inside.h"

enum {
  MOST_LABELS = 1 << 16,
  MOST_COMPARED = 1 << 26,
  LABEL_OPS = 24,
  COMPARED_PER_OP = 2,
  ONE_CALL_SHARE = 4, /* of what is left */
  TELLING_SHARE = 2,  /* the same, where all ways are told apart */
  TELLING_COST = 4096 /* part of the limit that costs are told apart by then */
};

static int compare(const void *a, const void *b) {
  const psplit_i_calls_label *x = a, *y = b;
  if (x->state != y->state) return x->state < y->state ? -1 : 1;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  if (x->left != y->left) return x->left < y->left ? -1 : 1;
  if (x->right != y->right) return x->right < y->right ? -1 : 1;
  for (uint32_t t = 0; t < PSPLIT_I_CALLS_TYPES; t++) {
    if (x->start[t] != y->start[t]) return x->start[t] < y->start[t] ? -1 : 1;
    if (x->load[t] != y->load[t]) return x->load[t] < y->load[t] ? -1 : 1;
  }
  return memcmp(x->end, y->end, sizeof x->end);
}

/* The largest excess cost of x over y in any placement that completes both in the same way. Later
 * end times of what is inside count as cost, since nothing that follows is delayed by more than
 * that. */
static int64_t excess(const psplit_i_calls_enumeration *n, const psplit_i_calls_label *x,
                      const psplit_i_calls_label *y) {
  int64_t later = 0;
  if (x->last > y->last) later = x->last - y->last;
  for (uint32_t t = 0; t < n->x->n_types; t++)
    if (x->start[t] - y->start[t] > later) later = x->start[t] - y->start[t];
  for (uint32_t s = 0; s < n->n_slots; s++)
    if (x->end[s] - y->end[s] > later) later = x->end[s] - y->end[s];
  for (uint32_t t = 0; t < n->x->n_types; t++)
    if (x->load[t] > y->load[t]) later += x->load[t] - y->load[t];
  return later + x->cost - y->cost;
}

/* Whether x dominates y: no more bytes, in parts of the memory, and hardly more cost. Then x gets
 * the lesser values of both. */
static bool takes_place(const psplit_i_calls_enumeration *n, psplit_i_calls_label *x,
                        const psplit_i_calls_label *y, int64_t *inout_less) {
  if (x->left_cell > y->left_cell || x->right_cell > y->right_cell) return false;
  const int64_t less = excess(n, x, y);
  if (less > n->grain.cost) return false;
  if (less > *inout_less) *inout_less = less;
  if (y->left < x->left) x->left = y->left;
  if (y->right < x->right) x->right = y->right;
  return true;
}

static void sort(psplit_i_calls_enumeration *n) {
  psplit_i_calls_labels *l = &n->next;
  n->n_slots = 0;
  for (uint32_t s = 0; s < SLOTS; s++)
    if (n->slot_of_net[s] != PSPLIT_NONE) n->n_slots = s + 1;
  for (size_t i = 0; i < l->n; i++) {
    l->items[i].left_cell = (uint32_t)(l->items[i].left / n->left_unit);
    l->items[i].right_cell = (uint32_t)(l->items[i].right / n->right_unit);
  }
  if (l->n > 1) qsort(l->items, l->n, sizeof *l->items, compare);
}

/* Removes dominated labels. */
static void sift(psplit_i_calls_enumeration *n) {
  psplit_i_calls_labels *l = &n->next;
  size_t n_kept = 0, first = 0;
  uint64_t n_ops = 0;
  if (l->n > n->n_less) {
    int64_t *less = realloc(n->less, 2 * l->n * sizeof *less);
    n->failed |= !less;
    if (!less) return;
    n->less = less;
    n->n_less = 2 * l->n;
  }
  sort(n);
  for (size_t i = 0; i < l->n && n_ops < MOST_COMPARED; i++) {
    bool worse = false;
    if (n_kept > first && l->items[first].state != l->items[i].state) first = n_kept;
    for (size_t k = first; k < n_kept && !worse; k++, n_ops++)
      worse = takes_place(n, &l->items[k], &l->items[i], &n->less[k]);
    if (worse) continue;
    n->less[n_kept] = 0;
    l->items[n_kept++] = l->items[i];
  }
  for (size_t k = 0; k < n_kept; k++) {
    l->items[k].cost -= n->less[k];
    l->items[k].less += n->less[k];
  }
  n->too_many |= n_ops >= MOST_COMPARED;
  if (!psplit_i_spend(n->budget, LABEL_OPS * l->n + n_ops / COMPARED_PER_OP)) n->too_many = true;
  l->n = n_kept;
  n->too_many |= n_kept > MOST_LABELS;
}

static void swap(psplit_i_calls_enumeration *n) {
  const psplit_i_calls_labels now = n->now;
  n->now = n->next;
  n->next = now;
  n->next.n = 0;
}

static void step(psplit_i_calls_enumeration *n, uint32_t v) {
  if (!psplit_i_calls_extend(n, v)) {
    n->too_many = true;
    return;
  }
  sift(n);
  swap(n);
}

static void add_own_bytes(const psplit_i_calls_enumeration *n, psplit_i_calls_crossing *c) {
  for (int64_t v = n->block->first + 1; v < n->block->last; v++) {
    const uint32_t part = psplit_i_calls_part(&c->parts, (uint32_t)(v - n->block->first - 1));
    uint64_t *bytes = part == LEFT ? &c->own_left : &c->own_right;
    if (part == LEFT || part == RIGHT) *bytes = psplit_i_sat_add_u64(*bytes, n->x->bytes[v]);
  }
}

static void finish(psplit_i_calls_enumeration *n, psplit_i_calls_crossings *list) {
  const bool known = n->block->last - n->block->first - 1 <= PSPLIT_I_CALLS_PLACED;
  for (size_t i = 0; i < n->now.n && !n->failed; i++) {
    psplit_i_calls_label *l = &n->now.items[i];
    psplit_i_calls_end_calls(n, l);
    psplit_i_calls_crossing crossing = {
      .cost = psplit_i_sum_or_inf(l->cost, l->last),
      .left = l->left,
      .right = l->right,
      .own_cost = psplit_i_sum_or_inf(l->cost, psplit_i_sum_or_inf(l->last, l->less)),
      .parts = l->parts};
    for (uint32_t t = 0; t < n->x->n_types; t++)
      crossing.calls[t] = (uint8_t)(l->state >> (TYPE_BIT + t) & 1);
    crossing.parts.known = known;
    crossing.ones = (uint8_t)n->ones;
    crossing.told = !(l->state >> TYPE_BIT & ~(uint64_t)n->ones);
    if (known) add_own_bytes(n, &crossing);
    if (psplit_i_calls_is_below(n, l)) n->failed |= !psplit_i_vec_push(list, crossing);
  }
}

static int by_cost(const void *a, const void *b) {
  const psplit_i_calls_crossing *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->left != y->left) return x->left < y->left ? -1 : 1;
  if (x->right != y->right) return x->right < y->right ? -1 : 1;
  return memcmp(x->calls, y->calls, sizeof x->calls);
}

static bool has_no_more(const psplit_i_calls_crossing *x, const psplit_i_calls_crossing *y) {
  bool no_more = x->left <= y->left && x->right <= y->right;
  for (uint32_t t = 0; t < PSPLIT_I_CALLS_TYPES; t++) no_more &= x->calls[t] <= y->calls[t];
  return no_more;
}

/* Keeps the crossings that no other dominates. */
static void sift_list(psplit_i_budget *budget, psplit_i_calls_crossings *list) {
  size_t n = 0;
  uint64_t n_ops = 0;
  if (list->n > 1) qsort(list->items, list->n, sizeof *list->items, by_cost);
  for (size_t i = 0; i < list->n; i++) {
    const psplit_i_calls_crossing c = list->items[i];
    bool worse = false;
    for (size_t k = 0; k < n && !worse; k++, n_ops++) worse = has_no_more(&list->items[k], &c);
    if (!worse) list->items[n++] = c;
  }
  psplit_i_spend(budget, 8 * list->n + n_ops);
  list->n = n;
}

static uint64_t unit(const psplit_i_calls_enumeration *n, uint64_t memory) {
  return memory == UINT64_MAX ? UINT64_MAX : memory / n->grain.n_bytes + 1;
}

/* A separator runs on that kind. */
static bool runs(const psplit_i_calls_clusters *x, uint32_t kind, int64_t separator) {
  if (kind == psplit_i_calls_outside(x)) return true;
  const int64_t *time = kind < x->n_types ? x->time + (size_t)kind * x->n : x->alone;
  return time[separator] < PSPLIT_I_INF;
}

/* Adds the crossings of one pair of kinds. */
static void enumerate(psplit_i_calls_enumeration *n, psplit_i_calls_crossings *list) {
  const psplit_i_calls_clusters *x = n->x;
  const psplit_i_calls_block *block = n->block;
  const psplit_i_calls_label none = {0};
  n->now.n = n->next.n = 0;
  n->too_many = false;
  memset(n->slot_of_net, 0xff, sizeof n->slot_of_net);
  n->left_unit = unit(n, n->left_memory);
  n->right_unit = unit(n, n->right_memory);
  if (!psplit_i_vec_push(&n->now, none)) {
    n->failed = true;
    return;
  }
  if (block->first >= 0) {
    n->too_many = !psplit_i_calls_take_slots(n, (uint32_t)block->first);
    if (!n->too_many)
      psplit_i_calls_open(n, (uint32_t)block->first, n->a < x->n_types ? LEFT : CPU, 0,
                          &n->now.items[0]);
    psplit_i_calls_free_slots(n, PSPLIT_NONE);
  }
  for (int64_t v = block->first + 1; v < block->last && !n->failed && !n->too_many; v++)
    step(n, (uint32_t)v);
  if (!n->failed && !n->too_many) finish(n, list);
}

static bool has_memory(const psplit_i_calls_clusters *x, uint32_t kind) {
  return kind < x->n_types && x->memory[kind] < UINT64_MAX;
}

static uint64_t room(const psplit_i_calls_clusters *x, uint32_t kind, int64_t separator) {
  if (!has_memory(x, kind)) return UINT64_MAX;
  const uint64_t held = x->bytes[separator];
  return held < x->memory[kind] ? x->memory[kind] - held : 0;
}

static uint32_t all_types(const psplit_i_calls_clusters *x) { return (1u << x->n_types) - 1; }

/* Adds the ways with calls of some types inside and no more than one of each of those in `ones`;
 * false: they are too many. */
static bool add_ones(psplit_i_calls_enumeration *n, uint32_t ones, uint32_t types,
                     uint32_t n_shares, psplit_i_calls_crossings *list) {
  psplit_i_budget *budget = n->budget;
  psplit_i_budget share = psplit_i_budget_share(budget, n_shares);
  n->budget = &share;
  n->ones = ones;
  n->types = types;
  enumerate(n, list);
  n->ones = 0;
  n->types = all_types(n->x);
  n->budget = budget;
  psplit_i_spend(budget, share.spent);
  return !n->too_many;
}

/* Whether all calls inside are of a type, and there are some. */
static bool has_only(const psplit_i_calls_crossing *c, uint32_t type) {
  bool only = c->calls[type] > 0;
  for (uint32_t t = 0; t < PSPLIT_I_CALLS_TYPES; t++) only &= t == type || c->calls[t] == 0;
  return only;
}

/* Adds to *list, of ways with calls of one type inside, those with one call at what all of it
 * takes; the others have two at least. Nothing changes where that is too much. */
static void tell_pure(psplit_i_calls_enumeration *n, uint32_t type,
                      psplit_i_calls_crossings *list) {
  const size_t n_before = list->n;
  if (!add_ones(n, 1u << type, 1u << type, ONE_CALL_SHARE, list)) return;
  for (size_t i = 0; i < n_before; i++)
    if (has_only(&list->items[i], type)) list->items[i].calls[type] = 2;
}

/* Whether each set of types that has these, and others of n->telling, is among those told. */
static bool are_told(const psplit_i_calls_enumeration *n, uint32_t told, uint32_t with) {
  bool all = true;
  for (uint32_t set = with; set <= n->telling && all; set++)
    all = (set & with) != with || (set & n->telling) != set || (told >> set & 1);
  return all;
}

/* Adds to *list all ways with one call at most of each type of a set, for each set of the types
 * that are to be told. A way with calls of other types has two of each at least, if no set has its
 * way with one. */
static void tell_all(psplit_i_calls_enumeration *n, psplit_i_calls_crossings *list) {
  const psplit_i_calls_grain grain = n->grain;
  uint32_t told = 1; /* sets, as bits */
  if (grain.cost < n->limit / TELLING_COST) n->grain.cost = n->limit / TELLING_COST;
  for (uint32_t ones = 1; ones <= n->telling && !n->failed; ones++)
    if ((ones & n->telling) == ones && add_ones(n, ones, all_types(n->x), TELLING_SHARE, list))
      told |= 1u << ones;
  n->grain = grain;
  for (size_t i = 0; i < list->n; i++) {
    psplit_i_calls_crossing *c = &list->items[i];
    for (uint32_t t = 0; t < n->x->n_types; t++)
      if (c->calls[t] > 0 && (n->telling & ~(uint32_t)c->ones) >> t & 1 &&
          are_told(n, told, c->ones | 1u << t))
        c->calls[t] = 2;
  }
}

/* Any way to cut the block, at what its longest path takes. */
static void keep_loosest(psplit_i_calls_enumeration *n, psplit_i_calls_crossings *list) {
  const psplit_i_calls_crossing loosest = {.cost = n->block->path};
  list->n = 0;
  n->failed |= !psplit_i_vec_push(list, loosest);
}

/* Fills *list for one pair of kinds, if that is not too much work. */
static void fill(psplit_i_calls_enumeration *n, bool again, psplit_i_calls_crossings *fresh,
                 psplit_i_calls_crossings *list) {
  fresh->n = 0;
  enumerate(n, fresh);
  if (n->failed) return;
  if (!n->too_many) {
    const psplit_i_calls_crossings old = *list;
    *list = *fresh;
    *fresh = old;
    for (uint32_t t = 0; t < n->x->n_types && again && !n->telling && !n->failed; t++)
      tell_pure(n, t, list);
    if (n->telling) tell_all(n, list);
    sift_list(n->budget, list);
  } else if (!again) {
    keep_loosest(n, list);
  }
}

/* Fills the list of kinds a and b, where that is a way to run the block's separators. */
static void fill_pair(psplit_i_calls_enumeration *n, uint32_t a, uint32_t b, bool again,
                      psplit_i_calls_crossings *fresh, psplit_i_calls_block *block) {
  const psplit_i_calls_clusters *x = n->x;
  const uint32_t outside = psplit_i_calls_outside(x);
  psplit_i_calls_crossings *list = &block->list[a][b];
  if ((a == outside) != (block->first < 0) || (b == outside) != (block->last == x->n)) return;
  list->n = again ? list->n : 0;
  if (!runs(x, a, block->first) || !runs(x, b, block->last)) return;
  n->a = a;
  n->b = b;
  n->types = all_types(x);
  n->limit = block->limit;
  n->before = block->before && a < outside ? &block->before[a] : NULL;
  n->behind = block->behind && b < outside ? &block->behind[b] : NULL;
  n->left_memory = a < x->n_types ? x->memory[a] : UINT64_MAX;
  n->right_memory = b < x->n_types ? x->memory[b] : UINT64_MAX;
  n->most_left = room(x, a, block->first);
  n->most_right = room(x, b, block->last);
  fill(n, again, fresh, list);
}

static psplit_code fini(psplit_i_calls_enumeration *n, psplit_i_calls_crossings *fresh) {
  psplit_i_vec_fini(fresh);
  psplit_i_vec_fini(&n->now);
  psplit_i_vec_fini(&n->next);
  free(n->less);
  return n->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

psplit_code psplit_i_calls_cross(const psplit_i_calls_clusters *x, psplit_i_budget *budget,
                                 psplit_i_calls_grain grain, bool again,
                                 psplit_i_calls_block *block) {
  psplit_i_calls_enumeration n = {.x = x, .budget = budget, .block = block, .grain = grain};
  psplit_i_calls_crossings fresh = {0};
  const uint32_t outside = psplit_i_calls_outside(x);
  for (uint32_t a = 0; a <= outside && !n.failed; a++)
    for (uint32_t b = 0; b <= outside && !n.failed; b++) fill_pair(&n, a, b, again, &fresh, block);
  return fini(&n, &fresh);
}

psplit_code psplit_i_calls_tell(const psplit_i_calls_clusters *x, psplit_i_budget *budget,
                                psplit_i_calls_grain grain, uint32_t a, uint32_t b, uint32_t types,
                                psplit_i_calls_block *block) {
  psplit_i_calls_enumeration n = {
    .x = x, .budget = budget, .block = block, .grain = grain, .telling = types};
  psplit_i_calls_crossings fresh = {0};
  fill_pair(&n, a, b, true, &fresh, block);
  return fini(&n, &fresh);
}
