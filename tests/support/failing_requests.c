/* Requests to arenas and tables of names fail like allocations: most are served from what an
 * earlier allocation got, so that failing calls of the allocator alone would not reach who asks. */
#include "failing_requests.h"

#include <stdlib.h>

#include "arena.h"
#include "failing.h"
#include "intern.h"

void *__real_psplit_i_arena_alloc(psplit_i_arena *arena, size_t bytes);
void *__real_psplit_i_arena_alloc_close(psplit_i_arena *arena, size_t bytes);
void *__real_psplit_i_arena_zeroed(psplit_i_arena *arena, size_t n, size_t size);
void *__real_psplit_i_arena_array(psplit_i_arena *arena, size_t n, size_t size);
char *__real_psplit_i_arena_strndup(psplit_i_arena *arena, const char *text, size_t bytes);
uint32_t __real_psplit_i_intern_add(psplit_i_intern *table, const char *text);
uint32_t __real_psplit_i_intern_add_hashed(psplit_i_intern *table, const char *bytes, size_t n,
                                           uint32_t hash, psplit_i_arena *arena);
void *__wrap_psplit_i_arena_alloc(psplit_i_arena *arena, size_t bytes);
void *__wrap_psplit_i_arena_alloc_close(psplit_i_arena *arena, size_t bytes);
void *__wrap_psplit_i_arena_zeroed(psplit_i_arena *arena, size_t n, size_t size);
void *__wrap_psplit_i_arena_array(psplit_i_arena *arena, size_t n, size_t size);
char *__wrap_psplit_i_arena_strndup(psplit_i_arena *arena, const char *text, size_t bytes);
uint32_t __wrap_psplit_i_intern_add(psplit_i_intern *table, const char *text);
uint32_t __wrap_psplit_i_intern_add_hashed(psplit_i_intern *table, const char *bytes, size_t n,
                                           uint32_t hash, psplit_i_arena *arena);

enum { MOST_PLACES = 4096 };

static const void *places[MOST_PLACES];
static unsigned n_places;
static bool by_place, is_waiting;

void fail_requests_by_place(void) { by_place = true; }

void fail_new_place(void) { is_waiting = true; }

bool stop_failing_places(void) {
  const bool failed = !is_waiting;
  is_waiting = false;
  return failed;
}

static bool new_place_fails(const void *place) {
  if (!is_waiting) return false;
  for (unsigned i = 0; i < n_places; i++)
    if (places[i] == place) return false;
  if (n_places == MOST_PLACES) abort();
  places[n_places++] = place;
  is_waiting = false;
  return true;
}

static bool request_fails(const void *place) {
  return by_place ? new_place_fails(place) : next_allocation_fails();
}

/* An arena remembers that it failed. */
static bool fails(psplit_i_arena *arena, const void *place) {
  const bool failing = request_fails(place);
  arena->failed |= failing;
  return failing;
}

void *__wrap_psplit_i_arena_alloc(psplit_i_arena *arena, size_t bytes) {
  return fails(arena, __builtin_return_address(0)) ? NULL
                                                   : __real_psplit_i_arena_alloc(arena, bytes);
}

void *__wrap_psplit_i_arena_alloc_close(psplit_i_arena *arena, size_t bytes) {
  return fails(arena, __builtin_return_address(0))
           ? NULL
           : __real_psplit_i_arena_alloc_close(arena, bytes);
}

void *__wrap_psplit_i_arena_zeroed(psplit_i_arena *arena, size_t n, size_t size) {
  return fails(arena, __builtin_return_address(0)) ? NULL
                                                   : __real_psplit_i_arena_zeroed(arena, n, size);
}

void *__wrap_psplit_i_arena_array(psplit_i_arena *arena, size_t n, size_t size) {
  return fails(arena, __builtin_return_address(0)) ? NULL
                                                   : __real_psplit_i_arena_array(arena, n, size);
}

char *__wrap_psplit_i_arena_strndup(psplit_i_arena *arena, const char *text, size_t bytes) {
  return fails(arena, __builtin_return_address(0))
           ? NULL
           : __real_psplit_i_arena_strndup(arena, text, bytes);
}

uint32_t __wrap_psplit_i_intern_add(psplit_i_intern *table, const char *text) {
  return request_fails(__builtin_return_address(0)) ? PSPLIT_NONE
                                                    : __real_psplit_i_intern_add(table, text);
}

uint32_t __wrap_psplit_i_intern_add_hashed(psplit_i_intern *table, const char *bytes, size_t n,
                                           uint32_t hash, psplit_i_arena *arena) {
  return request_fails(__builtin_return_address(0))
           ? PSPLIT_NONE
           : __real_psplit_i_intern_add_hashed(table, bytes, n, hash, arena);
}
