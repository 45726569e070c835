#include "intern.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "compat.h"
#include "hash.h"

/* More ids would need more slots than 32 bits can number. */
enum { FEWEST_SLOTS = 16, MOST_IDS = 1 << 30 };

void psplit_i_intern_init(psplit_i_intern *table) { *table = (psplit_i_intern){0}; }

void psplit_i_intern_fini(psplit_i_intern *table) {
  free(table->slots);
  free((void *)table->text);
  psplit_i_intern_init(table);
}

static uint32_t hash_of(const psplit_i_intern *table, const char *bytes, size_t n) {
  return (uint32_t)psplit_i_siphash(bytes, n, table->key);
}

/* The slot that holds a text, or the empty one where it belongs. The table is never full. */
static uint32_t find_slot(const psplit_i_intern *table, const char *bytes, size_t n,
                          uint32_t hash) {
  const uint32_t mask = table->n_slots - 1;
  uint32_t slot = hash & mask;
  for (; table->slots[slot]; slot = (slot + 1) & mask) {
    if (table->slots[slot] >> 32 != hash) continue;
    const char *text = table->text[(uint32_t)table->slots[slot] - 1];
    if (strncmp(text, bytes, n) == 0 && !text[n]) break;
  }
  return slot;
}

static bool grow_slots(psplit_i_intern *table, uint32_t n_slots) {
  uint64_t *slots = n_slots ? calloc(n_slots, sizeof *slots) : NULL;
  if (!slots) return false;
  for (uint32_t old = 0; old < table->n_slots; old++) {
    if (!table->slots[old]) continue;
    uint32_t slot = (uint32_t)(table->slots[old] >> 32) & (n_slots - 1);
    while (slots[slot]) slot = (slot + 1) & (n_slots - 1);
    slots[slot] = table->slots[old];
  }
  if (!table->n_slots) psplit_i_random(table->key, sizeof table->key);
  free(table->slots);
  table->slots = slots;
  table->n_slots = n_slots;
  return true;
}

static bool grow_ids(psplit_i_intern *table, uint32_t capacity) {
  const char **text = realloc((void *)table->text, capacity * sizeof *text);
  if (!text) return false;
  table->text = text;
  table->capacity = capacity;
  return true;
}

bool psplit_i_intern_reserve(psplit_i_intern *table, size_t n) {
  if (n == 0) return true;
  if (n > MOST_IDS - table->n) return false;
  const uint32_t wanted = table->n + (uint32_t)n;
  uint32_t n_slots = table->n_slots ? table->n_slots : FEWEST_SLOTS;
  while (n_slots / 2 < wanted) n_slots *= 2;
  return (n_slots == table->n_slots || grow_slots(table, n_slots)) &&
         (wanted <= table->capacity || grow_ids(table, wanted));
}

static uint32_t add(psplit_i_intern *table, const char *bytes, size_t n, uint32_t hash,
                    psplit_i_arena *arena) {
  const uint32_t slot = find_slot(table, bytes, n, hash);
  if (table->slots[slot]) return (uint32_t)table->slots[slot] - 1;
  if (table->n == table->capacity && !grow_ids(table, table->n ? table->n * 2 : FEWEST_SLOTS / 2))
    return PSPLIT_NONE;
  const char *kept = arena ? psplit_i_arena_strndup(arena, bytes, n) : bytes;
  if (!kept) return PSPLIT_NONE;
  const uint32_t id = table->n++;
  table->text[id] = kept;
  table->slots[slot] = (uint64_t)hash << 32 | (id + 1);
  return id;
}

/* Whether one more has room in the slots. */
static bool make_room(psplit_i_intern *table) {
  if (table->n >= MOST_IDS) return false;
  return table->n < table->n_slots / 2 ||
         grow_slots(table, table->n_slots ? table->n_slots * 2 : FEWEST_SLOTS);
}

uint32_t psplit_i_intern_add(psplit_i_intern *table, const char *text) {
  if (!make_room(table)) return PSPLIT_NONE;
  const size_t n = strlen(text);
  return add(table, text, n, hash_of(table, text, n), NULL);
}

uint32_t psplit_i_intern_find(const psplit_i_intern *table, const char *text) {
  if (!table->n) return PSPLIT_NONE;
  const size_t n = strlen(text);
  return psplit_i_intern_find_hashed(table, text, n, hash_of(table, text, n));
}

uint32_t psplit_i_intern_hash(const psplit_i_intern *table, const char *bytes, size_t n) {
  const uint32_t hash = hash_of(table, bytes, n);
  if (table->n_slots) PSPLIT_PREFETCH(&table->slots[hash & (table->n_slots - 1)]);
  return hash;
}

uint32_t psplit_i_intern_find_hashed(const psplit_i_intern *table, const char *bytes, size_t n,
                                     uint32_t hash) {
  if (!table->n) return PSPLIT_NONE;
  const uint64_t found = table->slots[find_slot(table, bytes, n, hash)];
  return found ? (uint32_t)found - 1 : PSPLIT_NONE;
}

uint32_t psplit_i_intern_add_hashed(psplit_i_intern *table, const char *bytes, size_t n,
                                    uint32_t hash, psplit_i_arena *arena) {
  if (!make_room(table)) return PSPLIT_NONE;
  return add(table, bytes, n, hash, arena);
}
