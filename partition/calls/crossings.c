/* Clusters are placed in topological order: left, right, or inside, on a CPU or in some call. A
 * label is a set of partial placements that the rest cannot tell apart, by what it needs of them:
 * the parts of producers that are still read, and who has their tensors. Of those with one such
 * state only the ones are kept that no other is better than in cost, bytes and ends. */
#include "crossings.h"

#include <stdlib.h>
#include <string.h>

enum {
  SLOTS = 12, /* nets that are open at once */
  MOST_LABELS = 1 << 16,
  MOST_COMPARED = 1 << 26,
  LABEL_OPS = 24
};

typedef enum part { LEFT, RIGHT, CPU, CALL } part;
enum { RIGHT_HAS = 1, CPU_HAS = 2, CALL_HAS = 4, STATE_BITS = 5 };

typedef struct label {
  uint64_t state;     /* STATE_BITS of each slot: its part, and who has it; and whether calls are */
  int64_t cost, last; /* of the left and the right; when all that is inside so far has ended */
  uint64_t left, right; /* bytes */
  int64_t start, load;  /* of the one call inside: when it can begin, and what it takes */
  int64_t end[SLOTS];   /* of producers inside, but for that call's */
} label;

typedef PSPLIT_VEC(label) labels;

static const uint64_t CALLS = UINT64_C(1) << 63; /* of a state */

typedef struct enumeration {
  const psplit_i_calls_clusters *x;
  psplit_i_budget *budget;
  const psplit_i_calls_block *block;
  uint32_t a, b;    /* kinds */
  bool one_call;    /* inside; else any number, each of which is known by paths alone */
  uint32_t n_calls; /* at least, where there are calls */
  uint64_t left_unit, right_unit, most_left, most_right;
  int64_t limit;
  uint32_t slot_of_net[SLOTS]; /* the net in a slot, or NONE */
  labels now, next;
  bool failed, too_many;
} enumeration;

static int64_t add(int64_t a, int64_t b) {
  return a >= PSPLIT_I_INF || b >= PSPLIT_I_INF ? PSPLIT_I_INF : a + b;
}

static uint32_t slot_of(const enumeration *n, uint32_t e) {
  uint32_t s = 0;
  while (s < SLOTS && n->slot_of_net[s] != e) s++;
  return s;
}

static part part_in(const label *l, uint32_t slot) {
  return (part)(l->state >> STATE_BITS * slot & 3);
}

static uint32_t who_has(const label *l, uint32_t slot) {
  return (uint32_t)(l->state >> (STATE_BITS * slot + 2) & 7);
}

static int64_t least(const enumeration *n, const int64_t *of_types, size_t stride) {
  int64_t ns = PSPLIT_I_INF;
  for (uint32_t t = 0; t < n->x->n_types; t++)
    if (of_types[t * stride] < ns) ns = of_types[t * stride];
  return ns;
}

/* When the device of the producer of net e can have it sent, at least. */
static int64_t sent_at(const enumeration *n, const label *l, uint32_t slot, uint32_t e) {
  const part home = part_in(l, slot);
  if (home == CALL && n->one_call) return add(l->start, l->load);
  if (home == CALL) return add(l->end[slot], least(n, n->x->send + e, n->x->net_stride));
  return home == CPU ? l->end[slot] : 0;
}

/* One more device gets net e; *out_recv: what that takes a call inside. */
static void give(const enumeration *n, label *l, uint32_t slot, uint32_t e, uint32_t bit,
                 int64_t *out_recv) {
  const psplit_i_calls_clusters *x = n->x;
  const part home = part_in(l, slot);
  const uint32_t has = who_has(l, slot);
  const bool counts = x->sends_to_each ? !(has & bit) : !has;
  *out_recv = 0;
  if (bit == CALL_HAS && !(n->one_call && (has & bit)))
    *out_recv = least(n, x->recv + e, x->net_stride);
  if (home == LEFT && counts) l->cost += x->send[n->a * x->net_stride + e];
  if (home == CALL && n->one_call && counts)
    l->load = add(l->load, least(n, x->send + e, x->net_stride));
  if (bit == RIGHT_HAS && !(has & bit)) l->cost += x->recv[n->b * x->net_stride + e];
  if (bit != RIGHT_HAS && home != LEFT && !n->one_call) return; /* nobody asks */
  if (bit == CALL_HAS && !x->sends_to_each && !n->one_call) bit = CPU_HAS;
  l->state |= (uint64_t)bit << (STATE_BITS * slot + 2);
}

/* Reads all that cluster v reads, in a part; the time at which a call or CPU has it in *out_start.
 * False: the part may not read that. */
static bool read_all(const enumeration *n, uint32_t v, part to, label *l, int64_t *out_start) {
  const psplit_i_calls_clusters *x = n->x;
  int64_t received = 0, called = 0; /* for v; when what its call makes is there */
  *out_start = 0;
  for (uint32_t k = x->in_off[v]; k < x->in_off[v + 1]; k++) {
    const uint32_t e = x->in[k], slot = slot_of(n, e);
    const part home = part_in(l, slot);
    int64_t recv = 0;
    if (home == RIGHT ? to != RIGHT : to == LEFT && home != LEFT) return false;
    if (home == to && to != CPU) {
      if (to == CALL && l->end[slot] > called) called = l->end[slot];
      continue;
    }
    if (home != to)
      give(n, l, slot, e, to == RIGHT ? RIGHT_HAS : to == CPU ? CPU_HAS : CALL_HAS, &recv);
    const int64_t at = sent_at(n, l, slot, e);
    if (to == RIGHT && at > l->last) l->last = at;
    if (at > *out_start) *out_start = at;
    received = add(received, recv);
  }
  if (to == CALL && n->one_call) {
    l->load = add(l->load, received);
  } else if (to == CALL) {
    *out_start = add(*out_start, received);
    if (called > *out_start) *out_start = called;
  }
  return true;
}

/* Puts cluster v into a part; *out_end: of what is inside. False: it does not go, or costs too
 * much. */
static bool place(const enumeration *n, uint32_t v, part to, label *l, int64_t *out_end) {
  const psplit_i_calls_clusters *x = n->x;
  int64_t start;
  if (!read_all(n, v, to, l, &start)) return false;
  *out_end = 0;
  if (to == LEFT) {
    l->cost = add(l->cost, x->time[(size_t)n->a * x->n + v]);
    l->left = psplit_i_sat_add_u64(l->left, x->bytes[v]);
    if (l->left > n->most_left) return false;
  } else if (to == RIGHT) {
    l->cost = add(l->cost, x->time[(size_t)n->b * x->n + v]);
    l->right = psplit_i_sat_add_u64(l->right, x->bytes[v]);
    if (l->right > n->most_right) return false;
  } else if (to == CALL && n->one_call) {
    if (start > l->start) l->start = start;
    l->load = add(l->load, least(n, x->time + v, x->n));
    l->state |= CALLS;
  } else {
    *out_end = add(start, to == CPU ? x->alone[v] : least(n, x->time + v, x->n));
    if (*out_end > l->last) l->last = *out_end;
    if (to == CALL) l->state |= CALLS;
  }
  if (add(l->start, l->load) > l->last) l->last = add(l->start, l->load);
  return add(l->cost, l->last) < n->limit;
}

/* Closes the nets that v is the last to read. */
static void close_slots(const enumeration *n, uint32_t v, label *l) {
  for (uint32_t s = 0; s < SLOTS; s++) {
    const uint32_t e = n->slot_of_net[s];
    if (e == PSPLIT_NONE || n->x->to[n->x->to_off[e + 1] - 1] != v) continue;
    l->state &= ~(UINT64_C(31) << STATE_BITS * s);
    l->end[s] = 0;
  }
}

static void open_slots(const enumeration *n, uint32_t v, part to, int64_t end, label *l) {
  for (uint32_t e = n->x->out_off[v]; e < n->x->out_off[v + 1]; e++) {
    const uint32_t s = slot_of(n, e);
    l->state |= (uint64_t)to << STATE_BITS * s;
    l->end[s] = to == CPU || to == CALL ? end : 0;
  }
}

/* What of slots changes at v, for all labels. False: there are too few. */
static void free_slots(enumeration *n, uint32_t v) {
  for (uint32_t s = 0; s < SLOTS; s++) {
    const uint32_t e = n->slot_of_net[s];
    if (e != PSPLIT_NONE && n->x->to[n->x->to_off[e + 1] - 1] == v) n->slot_of_net[s] = PSPLIT_NONE;
  }
}

static bool take_slots(enumeration *n, uint32_t v) {
  for (uint32_t e = n->x->out_off[v]; e < n->x->out_off[v + 1]; e++) {
    const uint32_t s = slot_of(n, PSPLIT_NONE);
    if (s == SLOTS) return false;
    n->slot_of_net[s] = e;
  }
  return true;
}

static int compare(const void *a, const void *b) {
  const label *x = a, *y = b;
  if (x->state != y->state) return x->state < y->state ? -1 : 1;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  if (x->left != y->left) return x->left < y->left ? -1 : 1;
  if (x->right != y->right) return x->right < y->right ? -1 : 1;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->load != y->load) return x->load < y->load ? -1 : 1;
  return memcmp(x->end, y->end, sizeof x->end);
}

/* With no more cost, bytes (rounded) and time. */
static bool dominates(const enumeration *n, const label *x, const label *y) {
  if (x->cost > y->cost || x->last > y->last || x->start > y->start || x->load > y->load ||
      x->left / n->left_unit > y->left / n->left_unit ||
      x->right / n->right_unit > y->right / n->right_unit)
    return false;
  for (uint32_t s = 0; s < SLOTS; s++)
    if (x->end[s] > y->end[s]) return false;
  return true;
}

/* A label of the same bytes, rounded, takes the place of another only as a bound: with the fewer
 * bytes of both. */
static void sift(enumeration *n) {
  labels *l = &n->next;
  size_t n_kept = 0, first = 0;
  uint64_t n_ops = 0;
  if (l->n > 1) qsort(l->items, l->n, sizeof *l->items, compare);
  for (size_t i = 0; i < l->n && n_ops < MOST_COMPARED; i++) {
    bool worse = false;
    if (n_kept > first && l->items[first].state != l->items[i].state) first = n_kept;
    for (size_t k = first; k < n_kept && !worse; k++, n_ops++) {
      worse = dominates(n, &l->items[k], &l->items[i]);
      if (worse && l->items[i].left < l->items[k].left) l->items[k].left = l->items[i].left;
      if (worse && l->items[i].right < l->items[k].right) l->items[k].right = l->items[i].right;
    }
    if (!worse) l->items[n_kept++] = l->items[i];
  }
  n->too_many |= n_ops >= MOST_COMPARED;
  if (!psplit_i_spend(n->budget, LABEL_OPS * l->n + n_ops)) n->too_many = true;
  l->n = n_kept;
  n->too_many |= n_kept > MOST_LABELS;
}

static void swap(enumeration *n) {
  const labels now = n->now;
  n->now = n->next;
  n->next = now;
  n->next.n = 0;
}

static void step(enumeration *n, uint32_t v) {
  static const part parts[] = {LEFT, CPU, CALL, RIGHT};
  labels *next = &n->next;
  uint32_t before[SLOTS], after[SLOTS];
  memcpy(before, n->slot_of_net, sizeof before);
  free_slots(n, v);
  if (!take_slots(n, v)) {
    n->too_many = true;
    return;
  }
  memcpy(after, n->slot_of_net, sizeof after);
  for (size_t i = 0; i < n->now.n && !n->failed; i++)
    for (uint32_t k = 0; k < 4; k++) {
      label l = n->now.items[i];
      int64_t end;
      if ((parts[k] == LEFT && n->a >= n->x->n_types) ||
          (parts[k] == RIGHT && n->b >= n->x->n_types))
        continue;
      memcpy(n->slot_of_net, before, sizeof before);
      if (!place(n, v, parts[k], &l, &end)) continue;
      close_slots(n, v, &l);
      memcpy(n->slot_of_net, after, sizeof after);
      open_slots(n, v, parts[k], end, &l);
      n->failed |= !psplit_i_vec_push(next, l);
    }
  memcpy(n->slot_of_net, after, sizeof after);
  sift(n);
  swap(n);
}

/* The separator behind reads what it reads. */
static void finish(enumeration *n, psplit_i_calls_crossings *list) {
  for (size_t i = 0; i < n->now.n && !n->failed; i++) {
    label *l = &n->now.items[i];
    int64_t start = 0;
    if (n->b < psplit_i_calls_outside(n->x) &&
        !read_all(n, (uint32_t)n->block->last, n->b < n->x->n_types ? RIGHT : CPU, l, &start))
      continue;
    if (start > l->last) l->last = start;
    if (add(l->start, l->load) > l->last) l->last = add(l->start, l->load);
    const bool calls = (l->state & CALLS) != 0;
    if (!calls && n->n_calls > 1) continue; /* those are known */
    const psplit_i_calls_crossing crossing = {add(l->cost, l->last), l->left, l->right,
                                              calls ? n->n_calls : 0};
    if (crossing.cost < n->limit) n->failed |= !psplit_i_vec_push(list, crossing);
  }
}

static int by_cost(const void *a, const void *b) {
  const psplit_i_calls_crossing *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->left != y->left) return x->left < y->left ? -1 : 1;
  if (x->right != y->right) return x->right < y->right ? -1 : 1;
  return (x->calls > y->calls) - (x->calls < y->calls);
}

/* Keeps the crossings that no other is better than. */
static void sift_list(psplit_i_budget *budget, psplit_i_calls_crossings *list) {
  size_t n = 0;
  uint64_t n_ops = 0;
  if (list->n > 1) qsort(list->items, list->n, sizeof *list->items, by_cost);
  for (size_t i = 0; i < list->n; i++) {
    const psplit_i_calls_crossing c = list->items[i];
    bool worse = false;
    for (size_t k = 0; k < n && !worse; k++, n_ops++)
      worse = list->items[k].left <= c.left && list->items[k].right <= c.right &&
              list->items[k].calls <= c.calls;
    if (!worse) list->items[n++] = c;
  }
  psplit_i_spend(budget, 8 * list->n + n_ops);
  list->n = n;
}

static uint64_t unit(uint64_t memory, uint32_t parts) {
  return memory == UINT64_MAX || parts == 0 ? UINT64_MAX : memory / parts + 1;
}

/* Adds the crossings of one pair of kinds, with bytes in so many parts of the memory. */
static void enumerate(enumeration *n, uint32_t parts, psplit_i_calls_crossings *list) {
  const psplit_i_calls_clusters *x = n->x;
  const psplit_i_calls_block *block = n->block;
  const label none = {0};
  n->now.n = n->next.n = 0;
  n->too_many = false;
  memset(n->slot_of_net, 0xff, sizeof n->slot_of_net);
  n->left_unit = n->a < x->n_types ? unit(x->memory[n->a], parts) : UINT64_MAX;
  n->right_unit = n->b < x->n_types ? unit(x->memory[n->b], parts) : UINT64_MAX;
  if (!psplit_i_vec_push(&n->now, none)) {
    n->failed = true;
    return;
  }
  if (block->first >= 0) {
    n->too_many = !take_slots(n, (uint32_t)block->first);
    if (!n->too_many)
      open_slots(n, (uint32_t)block->first, n->a < x->n_types ? LEFT : CPU, 0, &n->now.items[0]);
  }
  for (int64_t v = block->first + 1; v < block->last && !n->failed && !n->too_many; v++)
    step(n, (uint32_t)v);
  if (!n->failed && !n->too_many) finish(n, list);
  sift_list(n->budget, list);
}

static bool has_memory(const psplit_i_calls_clusters *x, uint32_t kind) {
  return kind < x->n_types && x->memory[kind] < UINT64_MAX;
}

static uint64_t room(const psplit_i_calls_clusters *x, uint32_t kind, int64_t separator) {
  if (!has_memory(x, kind)) return UINT64_MAX;
  const uint64_t held = x->bytes[separator];
  return held < x->memory[kind] ? x->memory[kind] - held : 0;
}

/* Fills `list` for one pair of kinds, where that is not too much. */
static void fill(enumeration *n, uint32_t parts, bool tell_calls, psplit_i_calls_crossings *list) {
  list->n = 0;
  n->too_many = false;
  for (n->n_calls = 1; n->n_calls <= (tell_calls ? 2u : 1u) && !n->too_many && !n->failed;
       n->n_calls++) {
    n->one_call = tell_calls && n->n_calls == 1;
    enumerate(n, parts, list);
  }
}

/* Any way to cut the block, at what its longest path takes. */
static void keep_loosest(enumeration *n, psplit_i_calls_crossings *list) {
  const psplit_i_calls_crossing loosest = {.cost = n->block->path};
  list->n = 0;
  n->failed |= !psplit_i_vec_push(list, loosest);
}

psplit_code psplit_i_calls_cross(const psplit_i_calls_clusters *x, psplit_i_budget *budget,
                                 uint32_t parts, bool again, psplit_i_calls_block *block) {
  enumeration n = {.x = x, .budget = budget, .block = block};
  psplit_i_calls_crossings fresh = {0};
  const uint32_t outside = psplit_i_calls_outside(x);
  for (n.a = 0; n.a <= outside && !n.failed; n.a++)
    for (n.b = 0; n.b <= outside && !n.failed; n.b++) {
      psplit_i_calls_crossings *list = &block->list[n.a][n.b];
      if ((n.a == outside) != (block->first < 0) || (n.b == outside) != (block->last == x->n))
        continue;
      n.limit = block->limit[n.a][n.b];
      n.most_left = room(x, n.a, block->first);
      n.most_right = room(x, n.b, block->last);
      fill(&n, parts, again, &fresh);
      if (!n.too_many) {
        const psplit_i_calls_crossings old = *list;
        *list = fresh;
        fresh = old;
      } else if (!again) {
        keep_loosest(&n, list);
      }
    }
  psplit_i_vec_fini(&fresh);
  psplit_i_vec_fini(&n.now);
  psplit_i_vec_fini(&n.next);
  return n.failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
