/* Dynamic programming over downsets as a decision: is every load <= limit possible?
 *
 * A label (left, state, receivers): the downset of items not yet placed, the devices used behind
 * it, and how many stages already receive each tensor still to be sent. Labels are expanded in
 * rounds by the number of devices used; the labels of a round are independent. From a label the
 * last stage of what is left grows item by item in decreasing topological order, which visits every
 * sub-downset exactly once; the walk stops where compute or memory alone exceed the limit, both
 * monotone.
 *
 * The set of labels of a round does not depend on threads: labels are only dropped when an equal
 * one exists or, between rounds, when one of an earlier round needs no more. Steps and bytes are
 * counted in total, so running out is deterministic as well. */
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "partition.h"

enum { N_SHARDS = 128, N_RECENT = 1 << 13, STEPS_PER_LABEL = 8 };

typedef struct label {
  uint64_t hash, receivers; /* of the downset; of the receiver counts */
  uint64_t parent_hash;     /* tie-break between equal labels, so that the parent is unique */
  int64_t comm;             /* least communication of what is placed */
  int64_t omega;            /* of what is left */
  uint32_t parent;          /* id of a label, NONE: the first */
  uint32_t state, next_of_round;
} label;

/* Labels by hash; a label's id is index * N_SHARDS + shard. */
typedef struct shard {
  omp_lock_t lock;
  PSPLIT_VEC(label) labels;
  PSPLIT_VEC(uint64_t) bits;      /* [labels.n * words] */
  PSPLIT_VEC(uint32_t) counts;    /* net, count pairs of all labels, one after the other */
  PSPLIT_VEC(uint32_t) counts_at; /* [labels.n] end of a label's pairs */
  uint32_t *slots;
  size_t n_slots;
  uint32_t *round_head; /* [n_stages + 1] labels by devices used */
} shard;

typedef struct exact {
  const psplit_core *core;
  const psplit_machine *machine;
  const psplit_wamc *wamc;
  const psplit_exact_options *options;
  psplit_arena arena;
  uint32_t words;
  uint64_t *zobrist2; /* [n] a second, independent hash */
  uint64_t *zobrist;  /* [n] */
  bool count_receivers;
  int64_t *least_recv; /* [n_nets] over types that pay; 0 with overlap */
  bool *counted;       /* [n_nets] forward, several consumers, sent to each */
  shard shards[N_SHARDS];
  int64_t *low, *high; /* [n_states] omega a downset before the state may have at all */
  int64_t reach;       /* most omega of one stage */
  uint64_t most_bytes; /* most memory of any device */
  _Atomic uint64_t n_steps, n_bytes;
  atomic_bool out_of_work, out_of_memory;
  /* The labels of the round in flight, copied: shards grow while it runs. */
  uint32_t n_round;
  uint32_t *round_ids;
  uint64_t *round_bits;
} exact;

/* What a thread handed in lately, by 128 bits of hash: most offers repeat one, and need no lock. */
typedef struct recent {
  uint64_t hash, check, parent_hash;
  int64_t comm;
  uint32_t state;
} recent;

/* One thread's walk down from a label. */
typedef struct digger {
  exact *x;
  psplit_walk walk;
  psplit_arena arena;
  uint32_t *times_sent, *pairs;
  uint64_t *left, *tops; /* bitsets: what is left, its maximal items */
  uint32_t *n_succ;      /* successors left, by item */
  uint32_t *taken;       /* items of the stage, in order */
  uint32_t n_taken;
  int64_t *passed; /* [n + 1] received for good, by depth */
  uint64_t hash, check, receivers, n_steps;
  recent *recent; /* [N_RECENT] */
  int64_t omega;  /* of what is left */
  const label *from;
  uint32_t from_id;
} digger;

static uint64_t count_key(uint32_t net, uint32_t count) {
  return psplit_i_splitmix64(net, (UINT64_C(1) << 32) + count);
}

/* --- labels --- */

/* States of one downset must not share a slot: there are many, and they would cluster. */
static size_t slot_of(const shard *s, uint64_t hash, uint32_t state) {
  return (size_t)(psplit_i_mix64(hash + state) >> 7) & (s->n_slots - 1);
}

static bool shard_grow(shard *s) {
  const size_t n = s->n_slots ? s->n_slots * 2 : 256;
  uint32_t *slots = malloc(n * sizeof *slots);
  if (!slots) return false;
  memset(slots, 0xff, n * sizeof *slots);
  free(s->slots);
  s->slots = slots;
  s->n_slots = n;
  for (size_t i = 0; i < s->labels.n; i++) {
    size_t slot = slot_of(s, s->labels.items[i].hash, s->labels.items[i].state);
    while (slots[slot] != PSPLIT_NONE) slot = (slot + 1) & (n - 1);
    slots[slot] = (uint32_t)i;
  }
  return true;
}

static bool same_bits(const exact *x, const shard *s, size_t i, const uint64_t *bits) {
  return memcmp(s->bits.items + i * x->words, bits, x->words * sizeof *bits) == 0;
}

/* Takes over an equal label's better way; ties go to the smaller parent hash. */
static void improve(label *old, const label *fresh) {
  if (fresh->comm > old->comm) return;
  if (fresh->comm == old->comm && fresh->parent_hash >= old->parent_hash) return;
  old->comm = fresh->comm;
  old->parent = fresh->parent;
  old->parent_hash = fresh->parent_hash;
}

static uint32_t list_counts(const digger *d, uint32_t *pairs) {
  const exact *x = d->x;
  uint32_t n = 0;
  for (uint32_t e = 0; e < x->core->n_nets; e++) {
    if (!x->counted[e]) continue;
    const uint32_t source = x->core->net_pin[x->core->net_off[e]];
    if (!(d->left[source / 64] >> (source % 64) & 1)) continue;
    const uint32_t count = d->times_sent[e] + (d->walk.n_in[e] > 0);
    if (count < 2) continue;
    pairs[n++] = e;
    pairs[n++] = count;
  }
  return n;
}

/* Inserts the digger's downset as a label with `fresh`'s state. False: out of memory. */
static bool insert(digger *d, const label *fresh) {
  exact *x = d->x;
  shard *s = &x->shards[fresh->hash % N_SHARDS];
  bool ok = true;
  omp_set_lock(&s->lock);
  if (s->labels.n * 2 >= s->n_slots && !shard_grow(s)) goto fail;
  size_t slot = slot_of(s, fresh->hash, fresh->state);
  for (; s->slots[slot] != PSPLIT_NONE; slot = (slot + 1) & (s->n_slots - 1)) {
    label *old = &s->labels.items[s->slots[slot]];
    if (old->hash != fresh->hash || old->state != fresh->state ||
        old->receivers != fresh->receivers || !same_bits(x, s, s->slots[slot], d->left))
      continue;
    improve(old, fresh);
    goto out;
  }
  const uint32_t n_pairs = x->count_receivers ? list_counts(d, d->pairs) : 0;
  const uint32_t index = (uint32_t)s->labels.n;
  if (!psplit_i_vec_reserve(&s->bits, x->words) || !psplit_i_vec_reserve(&s->counts, n_pairs) ||
      !psplit_i_vec_reserve(&s->labels, 1) || !psplit_i_vec_reserve(&s->counts_at, 1) ||
      index >= PSPLIT_NONE / N_SHARDS - 1)
    goto fail;
  memcpy(s->bits.items + s->bits.n, d->left, x->words * sizeof *d->left);
  s->bits.n += x->words;
  if (n_pairs) memcpy(s->counts.items + s->counts.n, d->pairs, n_pairs * sizeof *d->pairs);
  s->counts.n += n_pairs;
  s->counts_at.items[s->counts_at.n++] = (uint32_t)s->counts.n;
  uint32_t *head = &s->round_head[x->machine->used[fresh->state]];
  s->labels.items[s->labels.n] = *fresh;
  s->labels.items[s->labels.n++].next_of_round = *head;
  *head = index;
  s->slots[slot] = index;
  atomic_fetch_add_explicit(&x->n_steps, STEPS_PER_LABEL, memory_order_relaxed);
  const uint64_t bytes =
    x->words * sizeof(uint64_t) + sizeof(label) + 12 + n_pairs * sizeof(uint32_t);
  if (atomic_fetch_add_explicit(&x->n_bytes, bytes, memory_order_relaxed) + bytes >
      x->options->memory_bytes / 2) /* vectors grow by half, and rounds are copied */
    atomic_store_explicit(&x->out_of_work, true, memory_order_relaxed);
  goto out;
fail:
  ok = false;
  atomic_store_explicit(&x->out_of_memory, true, memory_order_relaxed);
out:
  omp_unset_lock(&s->lock);
  return ok;
}

/* A label of an earlier round with the same downset and receivers that used no more of any device
 * (and, where it matters, no more communication). */
static bool dominated(const exact *x, const shard *s, uint32_t index) {
  const label *mine = &s->labels.items[index];
  if (x->machine->all_used) return false;
  const uint64_t *bits = s->bits.items + (size_t)index * x->words;
  const int64_t omega = mine->omega;
  for (uint32_t state = 0; state < mine->state; state++) { /* leq implies a smaller number */
    if (omega < x->low[state] || omega > x->high[state]) continue;
    if (!psplit_i_machine_leq(x->machine, state, mine->state)) continue;
    size_t slot = slot_of(s, mine->hash, state);
    for (; s->slots[slot] != PSPLIT_NONE; slot = (slot + 1) & (s->n_slots - 1)) {
      const label *other = &s->labels.items[s->slots[slot]];
      if (other->hash != mine->hash || other->receivers != mine->receivers || other->state != state)
        continue;
      if (x->options->least_comm && other->comm > mine->comm) continue;
      if (same_bits(x, s, s->slots[slot], bits)) return true;
    }
  }
  return false;
}

/* --- expanding one label --- */

static void offer(digger *d, uint32_t next, int64_t comm) {
  const exact *x = d->x;
  if (d->omega < x->low[next] || d->omega > x->high[next]) return;
  bool empty = true;
  for (uint32_t k = 0; k < x->words && empty; k++) empty = d->left[k] == 0;
  if (empty) {
    if (!psplit_i_machine_final(x->machine, next)) return;
  } else if (psplit_i_wamc_before(x->wamc, d->omega, next) > x->options->limit) {
    return;
  }
  const label fresh = {.hash = d->hash ^ d->receivers,
                       .receivers = d->receivers,
                       .parent_hash = d->from ? psplit_i_mix64(d->from->hash ^ d->from->state) : 0,
                       .comm = x->options->least_comm ? comm : 0,
                       .omega = d->omega,
                       .parent = d->from_id,
                       .state = next};
  if (d->from) {
    recent *r = &d->recent[psplit_i_mix64(fresh.hash + next) & (N_RECENT - 1)];
    const uint64_t check = d->check + psplit_i_mix64(d->receivers);
    if (r->hash == fresh.hash && r->check == check && r->state == next &&
        (r->comm < fresh.comm || (r->comm == fresh.comm && r->parent_hash <= fresh.parent_hash)))
      return; /* an equal label with a parent at least as good is in already */
    *r = (recent){fresh.hash, check, fresh.parent_hash, fresh.comm, next};
  }
  insert(d, &fresh);
}

static void offer_stage(digger *d) {
  const exact *x = d->x;
  const psplit_machine *m = x->machine;
  const psplit_walk *walk = &d->walk;
  const uint32_t state = d->from->state;
  if (m->all_used && walk->n_counted == 0) return;
  if (walk->pin != PSPLIT_NONE) {
    psplit_move move;
    if (psplit_i_machine_pinned(m, state, walk->pin, &move) &&
        psplit_i_walk_load(walk, m, &move) <= x->options->limit)
      offer(d, move.next, d->from->comm + walk->recv[move.type] + walk->send[move.type]);
    return;
  }
  for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++) {
    const psplit_move *move = &m->moves[k];
    if (psplit_i_walk_load(walk, m, move) > x->options->limit) continue;
    offer(d, move->next, d->from->comm + walk->recv[move->type] + walk->send[move->type]);
  }
}

/* Receiver counts of the label that would begin here change as the stage takes an item. */
static void count_taken(digger *d, uint32_t item, bool add) {
  const psplit_core *core = d->x->core;
  for (uint32_t k = core->inc_off[item]; k < core->inc_off[item + 1]; k++) {
    const uint32_t e = core->inc[k] >> 1;
    if (!d->x->counted[e]) continue;
    const uint32_t others = d->walk.n_in[e] - (add ? 1 : 0);
    if (core->inc[k] & 1) { /* the producer comes last and settles the net */
      const uint32_t count = d->times_sent[e] + (others > 0);
      if (count >= 2) d->receivers ^= count_key(e, count);
    } else if (others == 0) {
      if (d->times_sent[e] >= 2) d->receivers ^= count_key(e, d->times_sent[e]);
      if (d->times_sent[e] >= 1) d->receivers ^= count_key(e, d->times_sent[e] + 1);
    }
  }
}

static void take(digger *d, uint32_t item) {
  const psplit_core *core = d->x->core;
  const uint64_t bit = UINT64_C(1) << (item % 64);
  d->taken[d->n_taken++] = item;
  d->left[item / 64] &= ~bit;
  d->tops[item / 64] &= ~bit;
  d->hash ^= d->x->zobrist[item];
  d->check ^= d->x->zobrist2[item];
  d->omega -= d->x->machine->omega[item];
  psplit_i_walk_add(&d->walk, item);
  if (d->x->count_receivers) count_taken(d, item, true);
  for (uint32_t k = core->pred_off[item]; k < core->pred_off[item + 1]; k++) {
    const uint32_t p = core->pred[k];
    if (--d->n_succ[p] == 0) d->tops[p / 64] |= UINT64_C(1) << (p % 64);
  }
}

static void give_back(digger *d) {
  const psplit_core *core = d->x->core;
  const uint32_t item = d->taken[--d->n_taken];
  const uint64_t bit = UINT64_C(1) << (item % 64);
  for (uint32_t k = core->pred_off[item]; k < core->pred_off[item + 1]; k++) {
    const uint32_t p = core->pred[k];
    if (d->n_succ[p]++ == 0) d->tops[p / 64] &= ~(UINT64_C(1) << (p % 64));
  }
  psplit_i_walk_remove(&d->walk, item);
  if (d->x->count_receivers) count_taken(d, item, false);
  d->omega += d->x->machine->omega[item];
  d->hash ^= d->x->zobrist[item];
  d->check ^= d->x->zobrist2[item];
  d->left[item / 64] |= bit;
  d->tops[item / 64] |= bit;
}

/* The largest maximal item below `limit`, NONE if there is none. */
static uint32_t top_below(const digger *d, uint32_t limit) {
  if (limit == 0) return PSPLIT_NONE;
  uint32_t word = (limit - 1) / 64;
  uint64_t bits = d->tops[word] & (UINT64_MAX >> (63 - (limit - 1) % 64));
  while (bits == 0) {
    if (word == 0) return PSPLIT_NONE;
    bits = d->tops[--word];
  }
  return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
}

/* Can the stage grow at all? Compute and memory only grow; so do sends when all nets are forward:
 * whoever receives is placed already. `received` is what is received for good. */
static bool fits(const digger *d, int64_t received) {
  const exact *x = d->x;
  const psplit_walk *walk = &d->walk;
  const bool sends_grow = x->core->all_forward && !x->core->overlap;
  for (uint32_t t = 0; t < x->machine->n_types; t++)
    if (x->machine->count[t] && !walk->n_forbidden[t] &&
        walk->w[t] + (sends_grow ? walk->send[t] : 0) +
            (x->core->problem->devices[t].free_comm ? 0 : received) <=
          x->reach)
      return walk->weight_bytes + walk->act_bytes <= x->most_bytes;
  return false;
}

/* The walk takes items in decreasing order: one that it has passed stays out, and what the stage
 * receives from it is paid for good. */
static int64_t cost_of_passing(const digger *d, uint32_t item) {
  const psplit_core *core = d->x->core;
  int64_t sum = 0;
  for (uint32_t k = core->inc_off[item]; k < core->inc_off[item + 1]; k++)
    if ((core->inc[k] & 1) && d->walk.n_in[core->inc[k] >> 1] > 0)
      sum += d->x->least_recv[core->inc[k] >> 1];
  return sum;
}

static int64_t cost_of_range(const digger *d, uint32_t above, uint32_t below) {
  int64_t sum = 0;
  for (uint32_t word = (above + 1) / 64; word * 64 < below; word++) {
    uint64_t bits = d->left[word];
    if (word == (above + 1) / 64) bits &= UINT64_MAX << ((above + 1) % 64);
    if (below - word * 64 < 64) bits &= (UINT64_C(1) << (below - word * 64)) - 1;
    for (; bits; bits &= bits - 1)
      sum += cost_of_passing(d, word * 64 + (uint32_t)__builtin_ctzll(bits));
  }
  return sum;
}

/* Pinned elsewhere than what the stage already holds. */
static bool pins_clash(const digger *d, uint32_t item) {
  const uint32_t pin = d->x->core->pin[item];
  return pin != PSPLIT_NONE && d->walk.pin != PSPLIT_NONE && d->walk.pin != pin;
}

static void load_label(digger *d, uint32_t k) {
  exact *x = d->x;
  const psplit_core *core = x->core;
  const uint32_t id = x->round_ids[k];
  memcpy(d->left, x->round_bits + (size_t)k * x->words, x->words * sizeof *d->left);
  memset(d->tops, 0, x->words * sizeof *d->tops);
  d->from_id = id;
  d->receivers = d->from->receivers;
  d->hash = d->from->hash ^ d->receivers;
  d->omega = 0;
  d->check = 0;
  for (uint32_t i = 0; i < core->n; i++) {
    if (!(d->left[i / 64] >> (i % 64) & 1)) continue;
    d->omega += x->machine->omega[i];
    d->check ^= x->zobrist2[i];
    uint32_t n_succ = 0;
    for (uint32_t l = core->succ_off[i]; l < core->succ_off[i + 1]; l++)
      n_succ += d->left[core->succ[l] / 64] >> (core->succ[l] % 64) & 1;
    d->n_succ[i] = n_succ;
    if (n_succ == 0) d->tops[i / 64] |= UINT64_C(1) << (i % 64);
  }
  if (!core->p2p) return;
  /* Default: one receiving stage as soon as a consumer is placed. */
  for (uint32_t e = 0; e < core->n_nets; e++) {
    d->times_sent[e] = x->counted[e] ? 0 : 1;
    for (uint32_t l = core->net_off[e] + 1; x->counted[e] && l < core->net_off[e + 1]; l++)
      if (!(d->left[core->net_pin[l] / 64] >> (core->net_pin[l] % 64) & 1)) d->times_sent[e] = 1;
  }
}

static void expand(digger *d) {
  exact *x = d->x;
  const psplit_machine *m = x->machine;
  const psplit_core *core = x->core;
  const uint32_t state = d->from->state;
  bool last = core->has_pins ? m->used[state] + 1 == m->n_stages : true;
  for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++)
    last &= m->capacity[m->moves[k].next] == 0;
  if (last) { /* all that is left or nothing */
    if (d->omega > x->reach) return;
    bool clash = false;
    for (uint32_t u; (u = top_below(d, core->n)) != PSPLIT_NONE;) {
      clash |= pins_clash(d, u);
      take(d, u);
      d->n_steps++;
    }
    if (!clash && fits(d, 0)) offer_stage(d);
    while (d->n_taken) give_back(d);
    return;
  }
  uint32_t below = core->n;
  d->passed[0] = 0;
  for (;;) {
    uint32_t u = top_below(d, below);
    int64_t *passed = &d->passed[d->n_taken];
    if (u != PSPLIT_NONE) {
      *passed += cost_of_range(d, u, below);
      if (*passed > 0 && !fits(d, *passed)) u = PSPLIT_NONE; /* nothing below helps */
    }
    if (u == PSPLIT_NONE) {
      if (d->n_taken == 0) break;
      below = d->taken[d->n_taken - 1];
      give_back(d);
      d->passed[d->n_taken] += cost_of_passing(d, below);
      continue;
    }
    below = u;
    const bool clash = pins_clash(d, u);
    if (!clash) {
      take(d, u);
      d->n_steps++;
      d->passed[d->n_taken] = *passed;
    }
    if (clash || !fits(d, *passed)) {
      if (!clash) give_back(d);
      *passed += cost_of_passing(d, u);
      continue;
    }
    offer_stage(d);
    if ((d->n_steps & 1023) == 0) {
      atomic_fetch_add_explicit(&x->n_steps, 1024, memory_order_relaxed);
      if (atomic_load_explicit(&x->n_steps, memory_order_relaxed) > x->options->max_steps ||
          psplit_i_expired(&x->options->deadline))
        atomic_store_explicit(&x->out_of_work, true, memory_order_relaxed);
      if (atomic_load_explicit(&x->out_of_work, memory_order_relaxed)) {
        while (d->n_taken) give_back(d);
        return;
      }
    }
  }
}

/* --- rounds --- */

static psplit_code digger_init(digger *d, exact *x) {
  memset(d, 0, sizeof *d);
  d->x = x;
  psplit_i_arena_init(&d->arena, 0);
  const uint32_t n = x->core->n;
  d->times_sent = PSPLIT_NEW(&d->arena, uint32_t, x->core->n_nets);
  d->pairs = PSPLIT_NEW(&d->arena, uint32_t, 2 * (size_t)x->core->n_nets);
  d->left = PSPLIT_NEW(&d->arena, uint64_t, x->words);
  d->tops = PSPLIT_NEW(&d->arena, uint64_t, x->words);
  d->n_succ = PSPLIT_NEW(&d->arena, uint32_t, n);
  d->taken = PSPLIT_NEW(&d->arena, uint32_t, n);
  d->recent = PSPLIT_NEW(&d->arena, recent, N_RECENT);
  if (!d->recent) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < N_RECENT; i++) d->recent[i].state = PSPLIT_NONE;
  d->passed = PSPLIT_NEW(&d->arena, int64_t, (size_t)n + 1);
  if (!d->times_sent || !d->pairs || !d->left || !d->tops || !d->n_succ || !d->taken || !d->passed)
    return PSPLIT_NOMEM;
  const psplit_code code = psplit_i_walk_init(&d->walk, x->core, &d->arena);
  if (x->core->p2p) d->walk.times_sent = d->times_sent;
  return code;
}

typedef struct round_label {
  label head;
  uint32_t counts_from, counts_to;
} round_label;

/* Copies the labels of round `used` that are not dominated. */
static psplit_code gather(exact *x, uint32_t used, round_label **out_labels,
                          uint32_t **out_counts) {
  size_t n = 0, n_counts = 0;
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1) {
      *out_labels = malloc((n + 1) * sizeof **out_labels);
      *out_counts = malloc((n_counts + 1) * sizeof **out_counts);
      x->round_ids = malloc((n + 1) * sizeof *x->round_ids);
      x->round_bits = malloc((n + 1) * x->words * sizeof *x->round_bits);
      if (!*out_labels || !*out_counts || !x->round_ids || !x->round_bits) return PSPLIT_NOMEM;
      n = n_counts = 0;
    }
    for (uint32_t i = 0; i < N_SHARDS; i++) {
      shard *s = &x->shards[i];
      for (uint32_t k = s->round_head[used]; k != PSPLIT_NONE;
           k = s->labels.items[k].next_of_round) {
        const uint32_t from = k ? s->counts_at.items[k - 1] : 0, to = s->counts_at.items[k];
        if (pass == 0) {
          n++;
          n_counts += to - from;
          continue;
        }
        if (dominated(x, s, k)) continue;
        x->round_ids[n] = k * N_SHARDS + i;
        memcpy(x->round_bits + n * x->words, s->bits.items + (size_t)k * x->words,
               x->words * sizeof *x->round_bits);
        (*out_labels)[n] =
          (round_label){s->labels.items[k], (uint32_t)n_counts, (uint32_t)(n_counts + to - from)};
        if (to > from)
          memcpy(*out_counts + n_counts, s->counts.items + from, (to - from) * sizeof **out_counts);
        n_counts += to - from;
        n++;
      }
    }
  }
  x->n_round = (uint32_t)n;
  return PSPLIT_OK;
}

static psplit_code run_round(exact *x, uint32_t used, digger *diggers, int n_threads) {
  round_label *labels = NULL;
  uint32_t *counts = NULL;
  const psplit_code code = gather(x, used, &labels, &counts);
  if (code == PSPLIT_OK && x->n_round > 0) {
#pragma omp parallel for schedule(dynamic, 4) num_threads(n_threads) if (x->n_round > 1)
    for (uint32_t k = 0; k < x->n_round; k++) {
      if (atomic_load_explicit(&x->out_of_work, memory_order_relaxed) ||
          atomic_load_explicit(&x->out_of_memory, memory_order_relaxed))
        continue;
      digger *d = &diggers[omp_get_thread_num()];
      d->from = &labels[k].head;
      load_label(d, k);
      for (uint32_t i = labels[k].counts_from; i < labels[k].counts_to; i += 2)
        d->times_sent[counts[i]] = counts[i + 1];
      if (d->omega > 0 || labels[k].head.hash != labels[k].head.receivers) expand(d);
    }
  }
  free(labels);
  free(counts);
  free(x->round_ids);
  free(x->round_bits);
  x->round_ids = NULL;
  x->round_bits = NULL;
  return code;
}

/* Best final label with nothing left, NONE if there is none. */
static uint32_t final_label(const exact *x, uint32_t from_round) {
  uint32_t best = PSPLIT_NONE;
  const label *least = NULL;
  for (uint32_t used = from_round; used <= x->machine->n_stages; used++)
    for (uint32_t i = 0; i < N_SHARDS; i++) {
      const shard *s = &x->shards[i];
      for (uint32_t k = s->round_head[used]; k != PSPLIT_NONE;
           k = s->labels.items[k].next_of_round) {
        const label *l = &s->labels.items[k];
        bool empty = true;
        for (uint32_t w = 0; w < x->words && empty; w++)
          empty = s->bits.items[(size_t)k * x->words + w] == 0;
        if (!empty || !psplit_i_machine_final(x->machine, l->state)) continue;
        if (least &&
            (l->comm > least->comm || (l->comm == least->comm && l->state >= least->state)))
          continue;
        least = l;
        best = k * N_SHARDS + i;
      }
    }
  return best;
}

static psplit_code trace(exact *x, uint32_t id, psplit_cut *cut) {
  const psplit_machine *m = x->machine;
  const psplit_core *core = x->core;
  int64_t *scratch = PSPLIT_NEW(&x->arena, int64_t, (size_t)core->n_stages * 4);
  if (!scratch) return PSPLIT_NOMEM;
  for (uint32_t k = 0; k < m->n_stages; k++) {
    cut->device[k] = m->any_order ? 0 : m->stage_type[k];
    cut->replicas[k] = 1;
  }
  for (;;) {
    const shard *s = &x->shards[id % N_SHARDS];
    const label *l = &s->labels.items[id / N_SHARDS];
    if (l->parent == PSPLIT_NONE) break;
    const shard *up = &x->shards[l->parent % N_SHARDS];
    const label *from = &up->labels.items[l->parent / N_SHARDS];
    const uint64_t *bits = s->bits.items + (size_t)(id / N_SHARDS) * x->words;
    const uint64_t *all = up->bits.items + (size_t)(l->parent / N_SHARDS) * x->words;
    psplit_move move = {0};
    uint32_t pin = PSPLIT_NONE;
    for (uint32_t i = 0; i < core->n; i++)
      if (((all[i / 64] & ~bits[i / 64]) >> (i % 64) & 1) && core->pin[i] != PSPLIT_NONE)
        pin = core->pin[i];
    if (pin != PSPLIT_NONE)
      psplit_i_machine_pinned(m, from->state, pin, &move);
    else
      for (uint32_t k = m->move_off[from->state]; k < m->move_off[from->state + 1]; k++)
        if (m->moves[k].next == l->state) move = m->moves[k];
    for (uint32_t i = 0; i < core->n; i++)
      if ((all[i / 64] & ~bits[i / 64]) >> (i % 64) & 1) cut->stage[i] = move.stage;
    cut->device[move.stage] = move.type;
    cut->replicas[move.stage] = move.replicas;
    id = l->parent;
  }
  psplit_i_cut_evaluate(cut, core, m, scratch);
  return PSPLIT_OK;
}

static psplit_code prepare(exact *x) {
  const psplit_core *core = x->core;
  const psplit_machine *m = x->machine;
  const uint32_t n = core->n;
  x->words = (n + 63) / 64;
  x->zobrist = psplit_i_arena_array(&x->arena, n, sizeof *x->zobrist);
  x->counted = PSPLIT_NEW(&x->arena, bool, core->n_nets);
  x->low = psplit_i_arena_array(&x->arena, m->n_states, sizeof *x->low);
  x->high = psplit_i_arena_array(&x->arena, m->n_states, sizeof *x->high);
  x->zobrist2 = psplit_i_arena_array(&x->arena, n, sizeof *x->zobrist2);
  if (!x->zobrist2) return PSPLIT_NOMEM;
  x->least_recv = PSPLIT_NEW(&x->arena, int64_t, core->n_nets);
  if (!x->least_recv || !x->zobrist || !x->counted || !x->low || !x->high) return PSPLIT_NOMEM;
  bool any_pays = false;
  for (uint32_t t = 0; t < core->n_types && !core->overlap; t++) {
    if (core->problem->devices[t].free_comm || m->count[t] == 0) continue;
    for (uint32_t e = 0; e < core->n_nets; e++) {
      const int64_t recv = core->recv[(size_t)t * core->n_nets + e];
      if (!any_pays || recv < x->least_recv[e]) x->least_recv[e] = recv;
    }
    any_pays = true;
  }
  for (uint32_t i = 0; i < n; i++) {
    x->zobrist[i] = psplit_i_splitmix64(0x5eed, i);
    x->zobrist2[i] = psplit_i_splitmix64(0xfeed, i);
  }
  for (uint32_t e = 0; core->p2p && !x->options->send_once && e < core->n_nets; e++) {
    bool costs = false;
    for (uint32_t t = 0; t < core->n_types; t++)
      costs |= core->send[(size_t)t * core->n_nets + e] > 0;
    x->counted[e] = costs && core->net_forward[e] && core->net_off[e + 1] - core->net_off[e] > 2;
    x->count_receivers |= x->counted[e];
  }
  uint32_t copies = 1;
  for (uint32_t k = 0; k < m->move_off[m->n_states]; k++)
    if (m->moves[k].replicas > copies) copies = m->moves[k].replicas;
  const int64_t limit = x->options->limit;
  x->reach = limit > PSPLIT_I_INF / copies ? PSPLIT_I_INF : limit * copies;
  for (uint32_t t = 0; t < m->n_types; t++) {
    const uint64_t bytes = core->problem->devices[t].memory_bytes;
    if (m->count[t] > 0 && x->most_bytes != UINT64_MAX)
      x->most_bytes = bytes == 0 ? UINT64_MAX : bytes > x->most_bytes ? bytes : x->most_bytes;
  }
  for (uint32_t c = 0; c < m->n_states; c++) {
    const double most = (double)limit * m->capacity[c] * (1 + 1e-9);
    x->low[c] = 0;
    x->high[c] = most < (double)m->total_omega ? (int64_t)most : m->total_omega;
    if (x->wamc->n_buckets == 0) continue;
    int64_t low = PSPLIT_I_INF, high = -1;
    for (uint32_t q = 0; q < x->wamc->n_buckets; q++)
      if (x->wamc->before[(size_t)q * m->n_states + c] <= limit) {
        if (x->wamc->low[q] < low) low = x->wamc->low[q];
        if (x->wamc->high[q] > high) high = x->wamc->high[q];
      }
    if (low > x->low[c]) x->low[c] = low;
    if (high < x->high[c]) x->high[c] = high;
  }
  for (uint32_t i = 0; i < N_SHARDS; i++) {
    shard *s = &x->shards[i];
    s->round_head = psplit_i_arena_array(&x->arena, (size_t)m->n_stages + 1, sizeof *s->round_head);
    if (!s->round_head || !shard_grow(s)) return PSPLIT_NOMEM;
    memset(s->round_head, 0xff, ((size_t)m->n_stages + 1) * sizeof *s->round_head);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_exact(const psplit_core *core, const psplit_machine *machine,
                           const psplit_wamc *wamc, const psplit_exact_options *options,
                           psplit_cut *out_cut, psplit_verdict *out_verdict) {
  *out_verdict = PSPLIT_I_UNKNOWN;
  psplit_code code = PSPLIT_NOMEM;
  const int n_threads = options->n_threads ? (int)options->n_threads : omp_get_max_threads();
  exact *x = calloc(1, sizeof *x);
  digger *diggers = calloc((size_t)n_threads, sizeof *diggers);
  if (!x || !diggers) goto out_early;
  x->core = core;
  x->machine = machine;
  x->wamc = wamc;
  x->options = options;
  for (uint32_t i = 0; i < N_SHARDS; i++) omp_init_lock(&x->shards[i].lock);
  PSPLIT_TRY(prepare(x));
  for (int i = 0; i < n_threads; i++) PSPLIT_TRY(digger_init(&diggers[i], x));
  digger *d = &diggers[0];
  for (uint32_t i = 0; i < core->n; i++) {
    d->left[i / 64] |= UINT64_C(1) << (i % 64);
    d->hash ^= x->zobrist[i];
  }
  const label root = {.hash = d->hash, .omega = machine->total_omega, .parent = PSPLIT_NONE};
  insert(d, &root);
  uint32_t found = PSPLIT_NONE;
  for (uint32_t used = 0; used < machine->n_stages; used++) {
    PSPLIT_TRY(run_round(x, used, diggers, n_threads));
    if (atomic_load(&x->out_of_memory)) PSPLIT_TRY(PSPLIT_NOMEM);
    uint64_t steps = 0;
    for (int i = 0; i < n_threads; i++) steps += diggers[i].n_steps;
    for (uint32_t i = 0; i < N_SHARDS; i++) steps += x->shards[i].labels.n * STEPS_PER_LABEL;
    if (options->out_steps) *options->out_steps = steps;
    if (atomic_load(&x->out_of_work) || steps > options->max_steps) goto out;
    if (!options->least_comm) found = final_label(x, used + 1);
    if (found != PSPLIT_NONE) break;
  }
  if (options->least_comm) found = final_label(x, 1);
  *out_verdict = found == PSPLIT_NONE ? PSPLIT_I_NO : PSPLIT_I_YES;
  if (found != PSPLIT_NONE) PSPLIT_TRY(trace(x, found, out_cut));
out:
  for (uint32_t i = 0; i < N_SHARDS; i++) {
    shard *s = &x->shards[i];
    omp_destroy_lock(&s->lock);
    psplit_i_vec_fini(&s->labels);
    psplit_i_vec_fini(&s->bits);
    psplit_i_vec_fini(&s->counts);
    psplit_i_vec_fini(&s->counts_at);
    free(s->slots);
  }
  for (int i = 0; i < n_threads; i++) psplit_i_arena_fini(&diggers[i].arena);
  psplit_i_arena_fini(&x->arena);
out_early:
  free(x);
  free(diggers);
  return code;
}
