/* Extends a label by one more cluster: which part reads which tensor from whom, when the tensor is
 * available, and what that costs the three parts. */
#include <string.h>

#include "crossings_inside.h"

static uint32_t slot_of(const psplit_i_calls_enumeration *n, uint32_t e) {
  uint32_t s = 0;
  while (s < SLOTS && n->slot_of_net[s] != e) s++;
  return s;
}

static uint32_t part_in(const psplit_i_calls_label *l, uint32_t slot) {
  return (uint32_t)(l->state >> STATE_BITS * slot) & ((1u << PART_BITS) - 1);
}

static bool is_inside(uint32_t part) { return part >= CALL; }

/* In the only call of its type. */
static bool is_one(const psplit_i_calls_enumeration *n, uint32_t part) {
  return part >= CALL && (n->ones >> (part - CALL) & 1);
}

static uint32_t who_has(const psplit_i_calls_label *l, uint32_t slot) {
  return (uint32_t)(l->state >> (STATE_BITS * slot + PART_BITS) & 7);
}

static int64_t send_of(const psplit_i_calls_enumeration *n, uint32_t part, uint32_t e) {
  return n->x->send[(part - CALL) * n->x->net_stride + e];
}

static int64_t recv_of(const psplit_i_calls_enumeration *n, uint32_t part, uint32_t e) {
  return n->x->recv[(part - CALL) * n->x->net_stride + e];
}

static void add_load(psplit_i_calls_label *l, uint32_t part, int64_t ns) {
  l->load[part - CALL] = psplit_i_sum_or_inf(l->load[part - CALL], ns);
}

/* A lower bound on when the device of the producer of net e can have it sent. */
static int64_t sent_at(const psplit_i_calls_enumeration *n, const psplit_i_calls_label *l,
                       uint32_t slot, uint32_t e) {
  const uint32_t home = part_in(l, slot);
  if (is_one(n, home)) return psplit_i_sum_or_inf(l->start[home - CALL], l->load[home - CALL]);
  if (is_inside(home)) return psplit_i_sum_or_inf(l->end[slot], send_of(n, home, e));
  return home == CPU ? l->end[slot] : 0;
}

/* What a net that a part gets is had by. Of several types of calls those have a bit to themselves
 * that receive once and pay for it: the others may be one device then. */
static uint32_t receiver_of(const psplit_i_calls_enumeration *n, uint32_t to, uint32_t e) {
  if (to == RIGHT) return RIGHT_HAS;
  if (to == CPU) return CPU_HAS;
  if (!n->ones) return n->x->sends_to_each ? CALL_HAS : CPU_HAS;
  return is_one(n, to) && (recv_of(n, to, e) > 0 || n->x->n_types == 1) ? CALL_HAS : CPU_HAS;
}

/* One more device receives net e, in a part. *out_recv: what that costs a call inside. */
static void give(const psplit_i_calls_enumeration *n, psplit_i_calls_label *l, uint32_t slot,
                 uint32_t e, uint32_t to, int64_t *out_recv) {
  const psplit_i_calls_clusters *x = n->x;
  const uint32_t home = part_in(l, slot), has = who_has(l, slot);
  const uint32_t bit = receiver_of(n, to, e);
  const bool counts = x->sends_to_each ? !(has & bit) : !has;
  *out_recv = 0;
  if (is_inside(to) && !(is_one(n, to) && (has & bit))) *out_recv = recv_of(n, to, e);
  if (home == LEFT && counts) l->cost += x->send[n->a * x->net_stride + e];
  if (is_one(n, home) && counts) add_load(l, home, send_of(n, home, e));
  if (bit == RIGHT_HAS && !(has & bit)) l->cost += x->recv[n->b * x->net_stride + e];
  if (to != RIGHT && home != LEFT && !is_one(n, home) && !is_one(n, to)) return; /* nobody asks */
  l->state |= (uint64_t)bit << (STATE_BITS * slot + PART_BITS);
}

/* Reads all inputs of cluster v in a part. *out_start: when its call or CPU has them. Returns false
 * if the part may not read one of them. */
static bool read_all(const psplit_i_calls_enumeration *n, uint32_t v, uint32_t to,
                     psplit_i_calls_label *l, int64_t *out_start) {
  const psplit_i_calls_clusters *x = n->x;
  int64_t received = 0, called = 0; /* for v; when what its call makes is there */
  *out_start = 0;
  for (uint32_t k = x->in_off[v]; k < x->in_off[v + 1]; k++) {
    const uint32_t e = x->in[k], slot = slot_of(n, e);
    const uint32_t home = part_in(l, slot);
    int64_t recv = 0;
    if (home == RIGHT ? to != RIGHT : to == LEFT && home != LEFT) return false;
    if (home == to && to != CPU) {
      if (is_inside(to) && l->end[slot] > called) called = l->end[slot];
      continue;
    }
    if (home != to) give(n, l, slot, e, to, &recv);
    const int64_t at = sent_at(n, l, slot, e);
    if (to == RIGHT && at > l->last) l->last = at;
    if (at > *out_start) *out_start = at;
    received = psplit_i_sum_or_inf(received, recv);
  }
  if (is_one(n, to)) {
    add_load(l, to, received);
  } else if (is_inside(to)) {
    *out_start = psplit_i_sum_or_inf(*out_start, received);
    if (called > *out_start) *out_start = called;
  }
  return true;
}

static int64_t rest_of(const psplit_i_calls_sides *sides, uint64_t memory, uint64_t bytes) {
  if (!sides) return 0;
  return psplit_i_calls_least_with(sides, memory == UINT64_MAX ? memory : memory - bytes);
}

bool psplit_i_calls_is_below(const psplit_i_calls_enumeration *n, const psplit_i_calls_label *l) {
  int64_t own = psplit_i_sum_or_inf(l->cost, l->last);
  for (uint32_t t = 0; t < n->x->n_types; t++)
    if (l->state >> (TYPE_BIT + t) & 1) own = psplit_i_sum_or_inf(own, n->block->price[t]);
  return own < n->limit &&
         psplit_i_sum_or_inf(
           own, psplit_i_sum_or_inf(rest_of(n->before, n->left_memory, l->left),
                                    rest_of(n->behind, n->right_memory, l->right))) < n->limit;
}

void psplit_i_calls_end_calls(const psplit_i_calls_enumeration *n, psplit_i_calls_label *l) {
  for (uint32_t t = 0; t < n->x->n_types; t++) {
    const int64_t end = psplit_i_sum_or_inf(l->start[t], l->load[t]);
    if (end > l->last) l->last = end;
  }
}

/* Puts cluster v into a part. *out_end: the end of what is inside. Returns false if this is not
 * permitted, or costs too much. */
static bool place(const psplit_i_calls_enumeration *n, uint32_t v, uint32_t to,
                  psplit_i_calls_label *l, int64_t *out_end) {
  const psplit_i_calls_clusters *x = n->x;
  int64_t start;
  if (!read_all(n, v, to, l, &start)) return false;
  *out_end = 0;
  if (to == LEFT) {
    l->cost = psplit_i_sum_or_inf(l->cost, x->time[(size_t)n->a * x->n + v]);
    l->left = psplit_i_sat_add_u64(l->left, x->bytes[v]);
    if (l->left > n->most_left) return false;
  } else if (to == RIGHT) {
    l->cost = psplit_i_sum_or_inf(l->cost, x->time[(size_t)n->b * x->n + v]);
    l->right = psplit_i_sat_add_u64(l->right, x->bytes[v]);
    if (l->right > n->most_right) return false;
  } else {
    const int64_t ns = to == CPU ? x->alone[v] : x->time[(size_t)(to - CALL) * x->n + v];
    if (is_inside(to)) l->state |= UINT64_C(1) << (TYPE_BIT + to - CALL);
    if (is_one(n, to)) {
      if (start > l->start[to - CALL]) l->start[to - CALL] = start;
      add_load(l, to, ns);
    } else {
      *out_end = psplit_i_sum_or_inf(start, ns);
      if (*out_end > l->last) l->last = *out_end;
    }
  }
  psplit_i_calls_end_calls(n, l);
  return psplit_i_calls_is_below(n, l);
}

/* The last cluster of the block that reads net e, or NONE. */
static uint32_t last_reader(const psplit_i_calls_enumeration *n, uint32_t e) {
  uint32_t end = n->x->to_off[e + 1];
  if (n->x->to[end - 1] == n->block->last) end--;
  return end > n->x->to_off[e] ? n->x->to[end - 1] : PSPLIT_NONE;
}

/* Closes the nets of which v is the last reader. */
static void close_slots(const psplit_i_calls_enumeration *n, uint32_t v, psplit_i_calls_label *l) {
  for (uint32_t s = 0; s < SLOTS; s++) {
    const uint32_t e = n->slot_of_net[s];
    if (e == PSPLIT_NONE || last_reader(n, e) != v) continue;
    l->state &= ~(((UINT64_C(1) << STATE_BITS) - 1) << STATE_BITS * s);
    l->end[s] = 0;
  }
}

/* The separator behind the block reads net e, as soon as that is there: where it runs is known. */
static void read_behind(const psplit_i_calls_enumeration *n, uint32_t e, uint32_t slot,
                        psplit_i_calls_label *l) {
  const bool call = n->b < n->x->n_types;
  int64_t recv;
  if (part_in(l, slot) == (call ? (uint32_t)RIGHT : CPU)) return; /* that it ends is in l->last */
  give(n, l, slot, e, call ? RIGHT : CPU, &recv);
  const int64_t at = sent_at(n, l, slot, e);
  if (at > l->last) l->last = at;
}

void psplit_i_calls_open(const psplit_i_calls_enumeration *n, uint32_t v, uint32_t to, int64_t end,
                         psplit_i_calls_label *l) {
  for (uint32_t e = n->x->out_off[v]; e < n->x->out_off[v + 1]; e++) {
    const uint32_t s = slot_of(n, e);
    l->state |= (uint64_t)to << STATE_BITS * s;
    l->end[s] = to == CPU || is_inside(to) ? end : 0;
    if (n->x->to[n->x->to_off[e + 1] - 1] == n->block->last) read_behind(n, e, s, l);
    if (last_reader(n, e) != PSPLIT_NONE) continue;
    l->state &= ~(((UINT64_C(1) << STATE_BITS) - 1) << STATE_BITS * s);
    l->end[s] = 0;
  }
}

void psplit_i_calls_free_slots(psplit_i_calls_enumeration *n, uint32_t v) {
  for (uint32_t s = 0; s < SLOTS; s++) {
    const uint32_t e = n->slot_of_net[s];
    if (e != PSPLIT_NONE && last_reader(n, e) == v) n->slot_of_net[s] = PSPLIT_NONE;
  }
}

bool psplit_i_calls_take_slots(psplit_i_calls_enumeration *n, uint32_t v) {
  for (uint32_t e = n->x->out_off[v]; e < n->x->out_off[v + 1]; e++) {
    const uint32_t s = slot_of(n, PSPLIT_NONE);
    if (s == SLOTS) return false;
    n->slot_of_net[s] = e;
  }
  return true;
}

static void set_part(const psplit_i_calls_enumeration *n, uint32_t v, uint32_t to,
                     psplit_i_calls_label *l) {
  const int64_t at = v - n->block->first - 1;
  for (uint32_t k = 0; k < PART_BITS && at < PSPLIT_I_CALLS_PLACED; k++)
    l->parts.bit[k] |= (uint64_t)(to >> k & 1) << at;
}

/* Whether clusters may be in a part at all. */
static bool is_there(const psplit_i_calls_enumeration *n, uint32_t part) {
  if (part == LEFT) return n->a < n->x->n_types;
  if (part == RIGHT) return n->b < n->x->n_types;
  return part == CPU || (n->types >> (part - CALL) & 1);
}

bool psplit_i_calls_extend(psplit_i_calls_enumeration *n, uint32_t v) {
  uint32_t before[SLOTS], after[SLOTS];
  memcpy(before, n->slot_of_net, sizeof before);
  psplit_i_calls_free_slots(n, v);
  if (!psplit_i_calls_take_slots(n, v)) return false;
  memcpy(after, n->slot_of_net, sizeof after);
  for (size_t i = 0; i < n->now.n && !n->failed; i++)
    for (uint32_t to = 0; to < CALL + n->x->n_types; to++) {
      psplit_i_calls_label l = n->now.items[i];
      int64_t end;
      if (!is_there(n, to)) continue;
      memcpy(n->slot_of_net, before, sizeof before);
      if (!place(n, v, to, &l, &end)) continue;
      close_slots(n, v, &l);
      memcpy(n->slot_of_net, after, sizeof after);
      psplit_i_calls_open(n, v, to, end, &l);
      set_part(n, v, to, &l);
      if (psplit_i_calls_is_below(n, &l)) n->failed |= !psplit_i_vec_push(&n->next, l);
    }
  memcpy(n->slot_of_net, after, sizeof after);
  psplit_i_calls_free_slots(n, PSPLIT_NONE);
  return true;
}
