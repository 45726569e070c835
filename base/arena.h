/* Region allocator: many small allocations, one release. It is used for three lifetimes: the model
 * (the whole run), scratch of a pass (reset by the host), scratch of a thread (one arena per OpenMP
 * thread).
 *
 * Failures are sticky: a function that allocates several arrays checks `arena->failed` once, before
 * the first use. */
#ifndef PSPLIT_BASE_ARENA_H
#define PSPLIT_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct psplit_i_arena_block psplit_i_arena_block;

typedef struct psplit_i_arena {
  psplit_i_arena_block *blocks; /* newest first */
  size_t used_bytes;            /* bytes taken from the system, block headers included */
  size_t limit_bytes;           /* 0: none; allocations beyond it fail */
  bool over_limit;              /* an allocation exceeded it */
  bool failed;                  /* an allocation failed since the arena was last empty */
} psplit_i_arena;

/* `limit_bytes` 0 means no limit. Allocates nothing. Not thread-safe: one arena, one thread. */
void psplit_i_arena_init(psplit_i_arena *arena, size_t limit_bytes);

/* Frees everything. Safe on a zeroed arena, and twice. */
void psplit_i_arena_fini(psplit_i_arena *arena);

/* Frees everything but the newest block and makes that one empty. */
void psplit_i_arena_reset(psplit_i_arena *arena);

/* 16-byte aligned, uninitialised; NULL when out of memory or over the limit. A zero size gives a
 * valid unique pointer. */
void *psplit_i_arena_alloc(psplit_i_arena *arena, size_t bytes);

/* The same, but only 8-byte aligned, for many small pieces: a string of 40 bytes takes 40. */
void *psplit_i_arena_alloc_close(psplit_i_arena *arena, size_t bytes);

/* n * size bytes, zeroed; NULL on overflow too. */
void *psplit_i_arena_zeroed(psplit_i_arena *arena, size_t n, size_t size);

/* n * size bytes, uninitialised; NULL on overflow too. */
void *psplit_i_arena_array(psplit_i_arena *arena, size_t n, size_t size);

/* Copies `bytes` bytes and appends a NUL. Unaligned, so consecutive strings are adjacent. */
char *psplit_i_arena_strndup(psplit_i_arena *arena, const char *text, size_t bytes);

/* Typed helpers: PSPLIT_NEW(arena, psplit_i_node, n_nodes). Zeroed. */
#define PSPLIT_NEW(arena, type, n) ((type *)psplit_i_arena_zeroed((arena), (n), sizeof(type)))

#endif
