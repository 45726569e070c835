/* String interning: equal strings get equal dense ids, numbered in order of first appearance. */
#ifndef PSPLIT_BASE_INTERN_H
#define PSPLIT_BASE_INTERN_H

#include <psplit/base.h>
#include <stddef.h>
#include <stdint.h>

struct psplit_i_arena;

/* Keys are borrowed: interned strings must stay alive and unchanged. */
typedef struct psplit_i_intern {
  uint64_t *slots;   /* open addressing: hash << 32 | id + 1; 0 is empty */
  uint32_t n_slots;  /* a power of two */
  const char **text; /* id -> string */
  uint32_t n, capacity;
  uint64_t key[2]; /* random, so that no file can force collisions; ids do not depend on it */
} psplit_i_intern;

/* An empty table; allocates nothing. */
void psplit_i_intern_init(psplit_i_intern *table);
void psplit_i_intern_fini(psplit_i_intern *table);

/* Reserves room for `n` more strings; false when out of memory or of ids. */
bool psplit_i_intern_reserve(psplit_i_intern *table, size_t n);

/* Id of `text`, adding it if new; PSPLIT_NONE when out of memory. Amortised O(length). */
uint32_t psplit_i_intern_add(psplit_i_intern *table, const char *text);

/* Id of `text`, or PSPLIT_NONE if it was never added. */
uint32_t psplit_i_intern_find(const psplit_i_intern *table, const char *text);

/* The same for `n` bytes without a NUL, with a precomputed hash: hashing many names first lets
 * their table slots be prefetched. Only after psplit_i_intern_reserve. */
uint32_t psplit_i_intern_hash(const psplit_i_intern *table, const char *bytes, size_t n);
uint32_t psplit_i_intern_find_hashed(const psplit_i_intern *table, const char *bytes, size_t n,
                                     uint32_t hash);
/* A new string is copied into `arena`; if that is NULL, it must have a NUL and is borrowed. */
uint32_t psplit_i_intern_add_hashed(psplit_i_intern *table, const char *bytes, size_t n,
                                    uint32_t hash, struct psplit_i_arena *arena);

#endif
