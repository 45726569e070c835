/* The hash table of labels, divided into shards with a lock each. */
#include <stdlib.h>
#include <string.h>

#include "automaton.h"
#include "exact_inside.h"

/* Hashes the state as well: a downset may have many labels, which would collide otherwise. */
static size_t slot_of(const psplit_i_shard *s, uint64_t hash, uint32_t state) {
  return (size_t)(psplit_i_mix64(hash + state) >> 7) & (s->n_slots - 1);
}

static bool shard_grow(psplit_i_shard *s) {
  const size_t n = s->n_slots ? s->n_slots * 2 : 16;
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

static bool same_bits(const psplit_i_program *x, const psplit_i_shard *s, size_t i,
                      const uint64_t *bits) {
  return memcmp(s->bits.items + i * x->words, bits, x->words * sizeof *bits) == 0;
}

static uint8_t *keys_at(const psplit_i_program *x, const psplit_i_shard *s, size_t i) {
  return x->n_key_bytes ? s->keys.items + i * x->n_key_bytes : NULL;
}

/* Of two equal labels, keeps the one that sends less. Ties prefer the smaller key, if keys are
 * required, else the smaller parent hash. */
static void improve(const psplit_i_program *x, psplit_i_label *old, uint8_t *old_keys,
                    const psplit_i_label *fresh, const uint8_t *keys) {
  if (fresh->comm > old->comm) return;
  if (x->n_key_bytes) {
    if (fresh->comm == old->comm && memcmp(keys, old_keys, x->n_key_bytes) >= 0) return;
    memcpy(old_keys, keys, x->n_key_bytes);
  } else if (fresh->comm == old->comm && fresh->parent_hash >= old->parent_hash) {
    return;
  }
  old->comm = fresh->comm;
  old->parent = fresh->parent;
  old->parent_hash = fresh->parent_hash;
}

void psplit_i_exact_insert(psplit_i_expander *d, const psplit_i_label *fresh) {
  psplit_i_program *x = d->x;
  psplit_i_shard *s = &x->shards[fresh->hash % PSPLIT_I_N_SHARDS];
  pthread_mutex_lock(&s->lock);
  if (s->labels.n * 2 >= s->n_slots && !shard_grow(s)) goto fail;
  size_t slot = slot_of(s, fresh->hash, fresh->state);
  for (; s->slots[slot] != PSPLIT_NONE; slot = (slot + 1) & (s->n_slots - 1)) {
    psplit_i_label *old = &s->labels.items[s->slots[slot]];
    if (old->hash != fresh->hash || old->state != fresh->state ||
        old->receivers != fresh->receivers || !same_bits(x, s, s->slots[slot], d->left))
      continue;
    improve(x, old, keys_at(x, s, s->slots[slot]), fresh, d->keys);
    goto out;
  }
  const uint32_t n_pairs = x->count_receivers ? psplit_i_receivers_list(d, d->pairs) : 0;
  const uint32_t index = (uint32_t)s->labels.n;
  if (!psplit_i_vec_reserve(&s->bits, x->words) || !psplit_i_vec_reserve(&s->counts, n_pairs) ||
      !psplit_i_vec_reserve(&s->keys, x->n_key_bytes) || !psplit_i_vec_reserve(&s->labels, 1) ||
      !psplit_i_vec_reserve(&s->counts_at, 1) || index >= PSPLIT_NONE / PSPLIT_I_N_SHARDS - 1)
    goto fail;
  memcpy(s->bits.items + s->bits.n, d->left, x->words * sizeof *d->left);
  s->bits.n += x->words;
  if (x->n_key_bytes) memcpy(s->keys.items + s->keys.n, d->keys, x->n_key_bytes);
  s->keys.n += x->n_key_bytes;
  if (n_pairs) memcpy(s->counts.items + s->counts.n, d->pairs, n_pairs * sizeof *d->pairs);
  s->counts.n += n_pairs;
  s->counts_at.items[s->counts_at.n++] = (uint32_t)s->counts.n;
  uint32_t *head = &s->round_head[x->automaton->used[fresh->state]];
  s->labels.items[s->labels.n] = *fresh;
  s->labels.items[s->labels.n++].next_of_round = *head;
  *head = index;
  s->slots[slot] = index;
  atomic_fetch_add_explicit(&x->n_steps, PSPLIT_I_STEPS_PER_LABEL, memory_order_relaxed);
  const uint64_t bytes = x->words * sizeof(uint64_t) + x->n_key_bytes + sizeof(psplit_i_label) +
                         12 + n_pairs * sizeof(uint32_t);
  if (atomic_fetch_add_explicit(&x->n_bytes, bytes, memory_order_relaxed) + bytes >
      x->options->memory_bytes / 2) { /* vectors grow by half, and rounds are copied */
    atomic_store_explicit(&x->full, true, memory_order_relaxed);
    atomic_store_explicit(&x->out_of_work, true, memory_order_relaxed);
  }
  goto out;
fail:
  atomic_store_explicit(&x->out_of_memory, true, memory_order_relaxed);
out:
  pthread_mutex_unlock(&s->lock);
}

/* Whether there is a label with these bits in `state` that sends no more than `most_comm`. */
static bool holds(const psplit_i_program *x, const psplit_i_shard *s, const psplit_i_label *like,
                  const uint64_t *bits, uint32_t state, int64_t most_comm) {
  if (like->min_time < x->low[state] || like->min_time > x->high[state]) return false;
  size_t slot = slot_of(s, like->hash, state);
  for (; s->slots[slot] != PSPLIT_NONE; slot = (slot + 1) & (s->n_slots - 1)) {
    const psplit_i_label *other = &s->labels.items[s->slots[slot]];
    if (other->hash == like->hash && other->receivers == like->receivers && other->state == state &&
        other->comm <= most_comm && same_bits(x, s, s->slots[slot], bits))
      return true;
  }
  return false;
}

bool psplit_i_exact_dominated(const psplit_i_program *x, const psplit_i_shard *s, uint32_t index) {
  const psplit_i_label *mine = &s->labels.items[index];
  if (x->automaton->all_used) return false;
  const uint64_t *bits = s->bits.items + (size_t)index * x->words;
  for (uint32_t state = 0; state < mine->state; state++) /* leq implies a smaller number */
    if (psplit_i_automaton_leq(x->automaton, state, mine->state) &&
        holds(x, s, mine, bits, state, mine->comm - (x->n_key_bytes > 0)))
      return true;
  return false;
}

bool psplit_i_exact_reached(psplit_i_program *x, const psplit_i_label *like, const uint64_t *bits) {
  psplit_i_shard *s = &x->shards[like->hash % PSPLIT_I_N_SHARDS];
  pthread_mutex_lock(&s->lock);
  const bool reached = holds(x, s, like, bits, like->state, INT64_MAX);
  pthread_mutex_unlock(&s->lock);
  return reached;
}

psplit_code psplit_i_labels_init(psplit_i_program *x) {
  const uint32_t n_rounds = x->automaton->n_stages + 1;
  for (uint32_t i = 0; i < PSPLIT_I_N_SHARDS; i++) pthread_mutex_init(&x->shards[i].lock, NULL);
  for (uint32_t i = 0; i < PSPLIT_I_N_SHARDS; i++) {
    psplit_i_shard *s = &x->shards[i];
    s->round_head = psplit_i_arena_array(&x->arena, n_rounds, sizeof *s->round_head);
    if (!s->round_head || !shard_grow(s)) return PSPLIT_NOMEM;
    memset(s->round_head, 0xff, n_rounds * sizeof *s->round_head);
  }
  return PSPLIT_OK;
}

void psplit_i_labels_fini(psplit_i_program *x) {
  for (uint32_t i = 0; i < PSPLIT_I_N_SHARDS; i++) {
    psplit_i_shard *s = &x->shards[i];
    pthread_mutex_destroy(&s->lock);
    psplit_i_vec_fini(&s->labels);
    psplit_i_vec_fini(&s->bits);
    psplit_i_vec_fini(&s->keys);
    psplit_i_vec_fini(&s->counts);
    psplit_i_vec_fini(&s->counts_at);
    free(s->slots);
  }
}
