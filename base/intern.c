#include "intern.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

void psplit_i_intern_init(psplit_intern *table) { *table = (psplit_intern){0}; }

void psplit_i_intern_fini(psplit_intern *table) {
  free(table->slots);
  free(table->text);
  free(table->hash);
  psplit_i_intern_init(table);
}

static uint32_t hash_of(const char *text) {
  return (uint32_t)psplit_i_hash_bytes(text, strlen(text), 0);
}

/* The slot that holds `text`, or the empty one where it belongs. The table is never full. */
static uint32_t find_slot(const psplit_intern *table, const char *text, uint32_t hash) {
  const uint32_t mask = table->n_slots - 1;
  uint32_t slot = hash & mask;
  for (; table->slots[slot]; slot = (slot + 1) & mask) {
    const uint32_t id = table->slots[slot] - 1;
    if (table->hash[id] == hash && strcmp(table->text[id], text) == 0) break;
  }
  return slot;
}

static bool grow_slots(psplit_intern *table) {
  const uint32_t n_slots = table->n_slots ? table->n_slots * 2 : 64;
  uint32_t *slots = n_slots ? calloc(n_slots, sizeof *slots) : NULL;
  if (!slots) return false;
  for (uint32_t id = 0; id < table->n; id++) {
    uint32_t slot = table->hash[id] & (n_slots - 1);
    while (slots[slot]) slot = (slot + 1) & (n_slots - 1);
    slots[slot] = id + 1;
  }
  free(table->slots);
  table->slots = slots;
  table->n_slots = n_slots;
  return true;
}

static bool grow_ids(psplit_intern *table) {
  if (table->capacity > UINT32_MAX / 4) return false;
  const uint32_t capacity = table->capacity ? table->capacity * 2 : 32;
  const char **text = realloc((void *)table->text, capacity * sizeof *text);
  if (!text) return false;
  table->text = text;
  uint32_t *hash = realloc(table->hash, capacity * sizeof *hash);
  if (!hash) return false;
  table->hash = hash;
  table->capacity = capacity;
  return true;
}

uint32_t psplit_i_intern_add(psplit_intern *table, const char *text) {
  if (table->n >= table->n_slots / 2 && !grow_slots(table)) return PSPLIT_NONE;
  const uint32_t hash = hash_of(text);
  const uint32_t slot = find_slot(table, text, hash);
  if (table->slots[slot]) return table->slots[slot] - 1;
  if (table->n == table->capacity && !grow_ids(table)) return PSPLIT_NONE;
  const uint32_t id = table->n++;
  table->text[id] = text;
  table->hash[id] = hash;
  table->slots[slot] = id + 1;
  return id;
}

uint32_t psplit_i_intern_find(const psplit_intern *table, const char *text) {
  if (!table->n) return PSPLIT_NONE;
  const uint32_t slot = find_slot(table, text, hash_of(text));
  return table->slots[slot] ? table->slots[slot] - 1 : PSPLIT_NONE;
}
