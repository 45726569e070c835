/* String interning: equal strings get equal dense ids, numbered in order of first appearance. */
#ifndef PSPLIT_BASE_INTERN_H
#define PSPLIT_BASE_INTERN_H

#include <psplit/base.h>
#include <stddef.h>
#include <stdint.h>

/* Keys are borrowed: the caller keeps every interned string alive and unchanged. */
typedef struct psplit_intern {
  uint32_t *slots;     /* open addressing, id + 1; 0 is empty */
  uint32_t n_slots;    /* a power of two */
  const char **text;   /* id -> string */
  uint32_t *hash;      /* id -> low bits of its hash */
  uint32_t n, capacity;
} psplit_intern;

/* An empty table; allocates nothing. */
void psplit_i_intern_init(psplit_intern *table);
void psplit_i_intern_fini(psplit_intern *table);

/* Id of `text`, adding it if new; PSPLIT_NONE when out of memory. Amortised O(length). */
uint32_t psplit_i_intern_add(psplit_intern *table, const char *text);

/* Id of `text`, or PSPLIT_NONE if it was never added. */
uint32_t psplit_i_intern_find(const psplit_intern *table, const char *text);

#endif
