/* Region allocator: many small allocations, one release. Three lifetimes use it: the model (whole
 * run), pass scratch (reset by the pass host), thread scratch (one arena per OpenMP thread).
 *
 * An arena remembers that it could not give what was asked for: who makes several arrays asks once,
 * `if (arena->failed)`, before the first of them is used. */
#ifndef PSPLIT_BASE_ARENA_H
#define PSPLIT_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct psplit_i_arena_block psplit_i_arena_block;

typedef struct psplit_i_arena {
  psplit_i_arena_block *blocks; /* newest first */
  size_t used_bytes;            /* bytes taken from the system, block headers included */
  size_t limit_bytes;           /* 0: none; an allocation that would pass it fails */
  bool over_limit;              /* one did */
  bool failed;                  /* an allocation did, since the arena was last empty */
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

/* The same, aligned to 8 bytes alone, for many small pieces: a string of 40 bytes takes 40. */
void *psplit_i_arena_alloc_close(psplit_i_arena *arena, size_t bytes);

/* n * size bytes, zeroed; NULL on overflow too. */
void *psplit_i_arena_zeroed(psplit_i_arena *arena, size_t n, size_t size);

/* n * size bytes, uninitialised; NULL on overflow too. */
void *psplit_i_arena_array(psplit_i_arena *arena, size_t n, size_t size);

/* Copies `bytes` bytes and adds a NUL; takes no more, so texts lie one behind the other. */
char *psplit_i_arena_strndup(psplit_i_arena *arena, const char *text, size_t bytes);

/* Typed helpers: PSPLIT_NEW(arena, psplit_i_node, n_nodes). Zeroed. */
#define PSPLIT_NEW(arena, type, n) ((type *)psplit_i_arena_zeroed((arena), (n), sizeof(type)))

#endif
