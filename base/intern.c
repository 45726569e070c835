#include "intern.h"

#include <stdlib.h>
#include <string.h>

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

static uint32_t hash_of(const psplit_i_intern *table, const char *text) {
  return (uint32_t)psplit_i_siphash(text, strlen(text), table->key);
}

/* The slot that holds `text`, or the empty one where it belongs. The table is never full. */
static uint32_t find_slot(const psplit_i_intern *table, const char *text, uint32_t hash) {
  const uint32_t mask = table->n_slots - 1;
  uint32_t slot = hash & mask;
  for (; table->slots[slot]; slot = (slot + 1) & mask)
    if (table->slots[slot] >> 32 == hash &&
        strcmp(table->text[(uint32_t)table->slots[slot] - 1], text) == 0)
      break;
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

uint32_t psplit_i_intern_add(psplit_i_intern *table, const char *text) {
  if (table->n >= MOST_IDS) return PSPLIT_NONE;
  if (table->n >= table->n_slots / 2 &&
      !grow_slots(table, table->n_slots ? table->n_slots * 2 : FEWEST_SLOTS))
    return PSPLIT_NONE;
  const uint32_t hash = hash_of(table, text);
  const uint32_t slot = find_slot(table, text, hash);
  if (table->slots[slot]) return (uint32_t)table->slots[slot] - 1;
  if (table->n == table->capacity && !grow_ids(table, table->n ? table->n * 2 : FEWEST_SLOTS / 2))
    return PSPLIT_NONE;
  const uint32_t id = table->n++;
  table->text[id] = text;
  table->slots[slot] = (uint64_t)hash << 32 | (id + 1);
  return id;
}

uint32_t psplit_i_intern_find(const psplit_i_intern *table, const char *text) {
  if (!table->n) return PSPLIT_NONE;
  const uint64_t found = table->slots[find_slot(table, text, hash_of(table, text))];
  return found ? (uint32_t)found - 1 : PSPLIT_NONE;
}
