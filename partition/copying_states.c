/* A set of states, hashed. */
#include <stdlib.h>
#include <string.h>

#include "copying_inside.h"
#include "hash.h"

enum { MOST_WORDS = 1 << 22, FIRST_SLOTS = 1 << 10, KEY_WORDS = 2 + 2 * PSPLIT_I_COPYING_STAGES };

/* The state as words, of which the second tells how many there are. */
static uint32_t key_of(const psplit_i_copying_state *state, uint64_t *key) {
  uint32_t n = 0;
  key[n++] = state->blocks;
  key[n++] = (uint64_t)state->stage << 32 | state->n_waits;
  for (uint32_t w = 0; w < state->n_waits; w++) {
    key[n++] = state->wait[w].nets;
    key[n++] = state->wait[w].n_messages;
  }
  return n;
}

static uint32_t n_words_of(const uint64_t *key) { return 2 + 2 * (uint32_t)key[1]; }

/* The slot of the key, or a free one. */
static size_t slot_of(const psplit_i_copying_states *states, const uint64_t *key, uint32_t n) {
  size_t at = psplit_i_hash_bytes(key, n * sizeof *key, 0) & (states->n_slots - 1);
  for (; states->slot[at]; at = (at + 1) & (states->n_slots - 1)) {
    const uint64_t *other = &states->word[states->slot[at] - 1];
    if (other[1] == key[1] && memcmp(other, key, n * sizeof *key) == 0) break;
  }
  return at;
}

void psplit_i_copying_states_fini(psplit_i_copying_states *states) {
  free(states->word);
  free(states->slot);
  *states = (psplit_i_copying_states){0};
}

bool psplit_i_copying_states_have(const psplit_i_copying_states *states,
                                  const psplit_i_copying_state *state) {
  uint64_t key[KEY_WORDS];
  const uint32_t n = key_of(state, key);
  return states->n && states->slot[slot_of(states, key, n)];
}

/* Room for as many words again, and slots for what they hold. */
static psplit_code grow(psplit_i_copying_states *states) {
  const size_t n_slots = states->n_slots ? 2 * states->n_slots : FIRST_SLOTS;
  uint32_t *slot = calloc(n_slots, sizeof *slot);
  uint64_t *word = slot ? realloc(states->word, n_slots * KEY_WORDS / 2 * sizeof *word) : NULL;
  if (!word) {
    free(slot);
    return PSPLIT_NOMEM;
  }
  free(states->slot);
  states->word = word;
  states->slot = slot;
  states->n_slots = n_slots;
  for (size_t at = 0; at < states->n_words; at += n_words_of(&word[at]))
    slot[slot_of(states, &word[at], n_words_of(&word[at]))] = (uint32_t)at + 1;
  return PSPLIT_OK;
}

psplit_code psplit_i_copying_states_add(psplit_i_copying_states *states,
                                        const psplit_i_copying_state *state) {
  uint64_t key[KEY_WORDS];
  const uint32_t n = key_of(state, key);
  if (states->n_words + n > MOST_WORDS) return PSPLIT_OK;
  if (2 * states->n >= states->n_slots && grow(states) != PSPLIT_OK) return PSPLIT_NOMEM;
  memcpy(&states->word[states->n_words], key, n * sizeof *key);
  states->slot[slot_of(states, key, n)] = (uint32_t)states->n_words + 1;
  states->n_words += n;
  states->n++;
  return PSPLIT_OK;
}
