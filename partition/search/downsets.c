/* A set of downsets, as a hash table. */
#include <string.h>

#include "downsets.h"
#include "hash.h"

void psplit_i_downsets_init(psplit_i_downsets *set, const psplit_i_instance *instance) {
  *set = (psplit_i_downsets){.n_clusters = instance->n, .words = (instance->n + 63) / 64};
}

void psplit_i_downsets_fini(psplit_i_downsets *set) {
  psplit_i_vec_fini(&set->bits);
  psplit_i_vec_fini(&set->table);
  psplit_i_vec_fini(&set->split);
  set->n = 0;
}

/* The slot of a downset in the table, or the free slot for it. */
static uint32_t *slot_of(psplit_i_downsets *set, const uint64_t *bits) {
  const size_t bytes = set->words * sizeof *bits, mask = set->table.n - 1;
  size_t at = psplit_i_hash_bytes(bits, bytes, 0) & mask;
  for (;; at = (at + 1) & mask) {
    uint32_t *slot = &set->table.items[at];
    if (*slot == 0 || memcmp(psplit_i_downset(set, *slot - 1), bits, bytes) == 0) return slot;
  }
}

static void fill_table(psplit_i_downsets *set) {
  if (set->table.n == 0) return;
  memset(set->table.items, 0, set->table.n * sizeof *set->table.items);
  for (uint32_t i = 0; i < set->n; i++) *slot_of(set, psplit_i_downset(set, i)) = i + 1;
}

/* Doubles the table. Returns false if out of memory. */
static bool grow(psplit_i_downsets *set) {
  const size_t n = set->table.n ? 2 * set->table.n : 256;
  if (!psplit_i_vec_reserve(&set->table, n - set->table.n)) return false;
  set->table.n = n;
  fill_table(set);
  return true;
}

void psplit_i_downsets_forget(psplit_i_downsets *set, uint32_t n) {
  if (n >= set->n) return;
  set->n = n;
  set->bits.n = (size_t)n * set->words;
  fill_table(set);
}

bool psplit_i_downsets_add(psplit_i_downsets *set, const uint64_t *bits) {
  if (2 * ((size_t)set->n + 1) > set->table.n && !grow(set)) return false;
  uint32_t *slot = slot_of(set, bits);
  if (*slot) return true;
  if (!psplit_i_vec_reserve(&set->bits, set->words)) return false;
  memcpy(set->bits.items + set->bits.n, bits, set->words * sizeof *bits);
  set->bits.n += set->words;
  *slot = ++set->n;
  return true;
}

uint32_t psplit_i_downsets_number(psplit_i_downsets *set, const uint64_t *bits) {
  return *slot_of(set, bits) - 1;
}

bool psplit_i_downsets_add_split(psplit_i_downsets *set, const psplit_i_instance *instance,
                                 const uint32_t *stage) {
  const size_t words = set->words;
  if (!psplit_i_vec_reserve(&set->split, words * instance->n_stages)) return false;
  uint64_t *bits = set->split.items;
  memset(bits, 0, words * instance->n_stages * sizeof *bits);
  for (uint32_t i = 0; i < instance->n; i++)
    bits[stage[i] * words + i / 64] |= UINT64_C(1) << (i % 64);
  for (uint32_t s = 0; s + 1 < instance->n_stages; s++, bits += words) {
    if (!psplit_i_downsets_add(set, bits)) return false;
    for (size_t w = 0; w < words; w++) bits[words + w] |= bits[w];
  }
  return true;
}
