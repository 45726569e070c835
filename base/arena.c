#include "arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "compat.h"

enum {
  ALIGNMENT = 16,
  CLOSE_ALIGNMENT = 8,
  FIRST_BLOCK_BYTES = 4096,
  LARGEST_BLOCK_BYTES = 4 << 20
};

/* Bytes that stay untouchable behind each allocation where AddressSanitizer watches. */
#ifdef PSPLIT_HAS_ASAN
enum { REDZONE = 16 };
#else
enum { REDZONE = 0 };
#endif

struct psplit_i_arena_block {
  psplit_i_arena_block *next;
  size_t capacity; /* bytes of data[] */
  size_t used;
  alignas(ALIGNMENT) unsigned char data[];
};

void psplit_i_arena_init(psplit_i_arena *arena, size_t limit_bytes) {
  *arena = (psplit_i_arena){.limit_bytes = limit_bytes};
}

static void free_blocks(psplit_i_arena_block *block) {
  while (block) {
    psplit_i_arena_block *next = block->next;
    PSPLIT_UNPOISON(block->data, block->capacity);
    free(block);
    block = next;
  }
}

void psplit_i_arena_fini(psplit_i_arena *arena) {
  free_blocks(arena->blocks);
  psplit_i_arena_init(arena, arena->limit_bytes);
}

void psplit_i_arena_reset(psplit_i_arena *arena) {
  psplit_i_arena_block *kept = arena->blocks;
  arena->failed = false;
  if (!kept) return;
  free_blocks(kept->next);
  kept->next = NULL;
  kept->used = 0;
  PSPLIT_POISON(kept->data, kept->capacity);
  arena->used_bytes = sizeof *kept + kept->capacity;
}

/* A block for at least `bytes`. Small requests get blocks that double, so that an arena costs
 * little when small and few system calls when large; a large one gets a block of its own size. */
static psplit_i_arena_block *add_block(psplit_i_arena *arena, size_t bytes) {
  const bool dedicated = bytes > LARGEST_BLOCK_BYTES / 4 && arena->blocks;
  size_t capacity = arena->used_bytes;
  if (capacity < FIRST_BLOCK_BYTES) capacity = FIRST_BLOCK_BYTES;
  if (capacity > LARGEST_BLOCK_BYTES) capacity = LARGEST_BLOCK_BYTES;
  if (dedicated || capacity < bytes) capacity = bytes;
  size_t total;
  if (!psplit_i_add_size(capacity, sizeof(psplit_i_arena_block), &total)) return NULL;
  if (arena->limit_bytes && total > arena->limit_bytes - arena->used_bytes) {
    /* What is left may still hold the request, if not a whole block. */
    total = arena->limit_bytes - arena->used_bytes;
    if (total < sizeof(psplit_i_arena_block) || total - sizeof(psplit_i_arena_block) < bytes) {
      arena->over_limit = true;
      return NULL;
    }
    capacity = total - sizeof(psplit_i_arena_block);
  }
  psplit_i_arena_block *block = malloc(total);
  if (!block) return NULL;
  block->capacity = capacity;
  block->used = 0;
  arena->used_bytes += total;
  PSPLIT_POISON(block->data, capacity);
  /* A dedicated block goes behind the current one, whose free tail stays in use. */
  if (dedicated) {
    block->next = arena->blocks->next;
    arena->blocks->next = block;
  } else {
    block->next = arena->blocks;
    arena->blocks = block;
  }
  return block;
}

/* `n` up to the next multiple of `alignment`, a power of two. */
static size_t round_up(size_t n, size_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

/* Where the block has room for so much next, or beyond its end. */
static size_t next_in(const psplit_i_arena_block *block, size_t bytes, size_t alignment) {
  const size_t at = round_up(block->used, alignment);
  return at <= block->capacity && block->capacity - at >= bytes ? at : SIZE_MAX;
}

static void *allocate(psplit_i_arena *arena, size_t bytes, size_t alignment) {
  if (bytes == 0) bytes = 1;
  if (bytes > SIZE_MAX - ALIGNMENT - REDZONE) return NULL;
  const size_t asked = bytes;
  bytes = round_up(bytes, alignment) + REDZONE;
  psplit_i_arena_block *block = arena->blocks;
  size_t at = block ? next_in(block, bytes, alignment) : SIZE_MAX;
  if (at == SIZE_MAX) {
    block = add_block(arena, bytes);
    if (!block) return NULL;
    at = 0;
  }
  void *memory = block->data + at;
  block->used = at + bytes;
  PSPLIT_UNPOISON(memory, asked);
  (void)asked; /* only AddressSanitizer wants to know */
  return memory;
}

void *psplit_i_arena_alloc(psplit_i_arena *arena, size_t bytes) {
  void *memory = allocate(arena, bytes, ALIGNMENT);
  arena->failed |= !memory;
  return memory;
}

void *psplit_i_arena_alloc_close(psplit_i_arena *arena, size_t bytes) {
  void *memory = allocate(arena, bytes, CLOSE_ALIGNMENT);
  arena->failed |= !memory;
  return memory;
}

void *psplit_i_arena_array(psplit_i_arena *arena, size_t n, size_t size) {
  size_t bytes;
  if (!psplit_i_mul_size(n, size, &bytes)) bytes = SIZE_MAX; /* more than there is */
  return psplit_i_arena_alloc(arena, bytes);
}

void *psplit_i_arena_zeroed(psplit_i_arena *arena, size_t n, size_t size) {
  void *memory = psplit_i_arena_array(arena, n, size);
  if (memory) memset(memory, 0, n * size);
  return memory;
}

char *psplit_i_arena_strndup(psplit_i_arena *arena, const char *text, size_t bytes) {
  char *copy = allocate(arena, bytes < SIZE_MAX ? bytes + 1 : SIZE_MAX, 1);
  if (!copy) {
    arena->failed = true;
    return NULL;
  }
  memcpy(copy, text, bytes);
  copy[bytes] = '\0';
  return copy;
}
