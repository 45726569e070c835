/* Requests to arenas and tables of names fail like allocations: most are served from what an
 * earlier allocation got, so that failing calls of the allocator alone would not reach who asks. */
#include "failing_requests.h"

#include "arena.h"
#include "failing.h"
#include "failing_chains.h"
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

static bool by_chain;
/* Requests of this run, and how many of it fail nothing: the runs before it made the same. */
static unsigned n_requests, n_known;

void fail_requests_by_chain(void) { by_chain = true; }

void fail_new_request(void) {
  n_requests = 0;
  fail_new_chain();
}

bool stop_failing_requests(void) {
  const bool failed = stop_failing_chains();
  if (!failed) n_known = 0;
  return failed;
}

static bool request_fails(void) {
  if (!by_chain) return next_allocation_fails();
  if (n_requests++ < n_known || !next_chain_fails()) return false;
  n_known = n_requests;
  return true;
}

/* An arena remembers that it failed. */
static bool fails(psplit_i_arena *arena) {
  const bool failing = request_fails();
  arena->failed |= failing;
  return failing;
}

void *__wrap_psplit_i_arena_alloc(psplit_i_arena *arena, size_t bytes) {
  return fails(arena) ? NULL : __real_psplit_i_arena_alloc(arena, bytes);
}

void *__wrap_psplit_i_arena_alloc_close(psplit_i_arena *arena, size_t bytes) {
  return fails(arena) ? NULL : __real_psplit_i_arena_alloc_close(arena, bytes);
}

void *__wrap_psplit_i_arena_zeroed(psplit_i_arena *arena, size_t n, size_t size) {
  return fails(arena) ? NULL : __real_psplit_i_arena_zeroed(arena, n, size);
}

void *__wrap_psplit_i_arena_array(psplit_i_arena *arena, size_t n, size_t size) {
  return fails(arena) ? NULL : __real_psplit_i_arena_array(arena, n, size);
}

char *__wrap_psplit_i_arena_strndup(psplit_i_arena *arena, const char *text, size_t bytes) {
  return fails(arena) ? NULL : __real_psplit_i_arena_strndup(arena, text, bytes);
}

uint32_t __wrap_psplit_i_intern_add(psplit_i_intern *table, const char *text) {
  return request_fails() ? PSPLIT_NONE : __real_psplit_i_intern_add(table, text);
}

uint32_t __wrap_psplit_i_intern_add_hashed(psplit_i_intern *table, const char *bytes, size_t n,
                                           uint32_t hash, psplit_i_arena *arena) {
  return request_fails() ? PSPLIT_NONE
                         : __real_psplit_i_intern_add_hashed(table, bytes, n, hash, arena);
}
