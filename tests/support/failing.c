#include "failing.h"

#include <stdatomic.h>
#include <stddef.h>

#include "failing_chains.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
char *__real_realpath(const char *path, char *resolved);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_realpath(const char *path, char *resolved);

static atomic_long n_live, n_until_failure = -1; /* of all threads */
static atomic_bool by_chains;

bool next_allocation_fails(void) {
  if (by_chains) return next_chain_fails();
  return n_until_failure >= 0 && atomic_fetch_sub(&n_until_failure, 1) == 0;
}

static void *counted(void *memory) {
  n_live += memory != NULL;
  return memory;
}

void *__wrap_malloc(size_t bytes) {
  return next_allocation_fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes) {
  return next_allocation_fails() ? NULL : counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes) {
  if (next_allocation_fails()) return NULL;
  return memory ? __real_realloc(memory, bytes) : counted(__real_realloc(NULL, bytes));
}

void __wrap_free(void *memory) {
  n_live -= memory != NULL;
  __real_free(memory);
}

/* What the C library allocates itself. A path that cannot be resolved is an error of its own: not
 * made to fail here. */
char *__wrap_strdup(const char *text) {
  return next_allocation_fails() ? NULL : counted(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t n) {
  return next_allocation_fails() ? NULL : counted(__real_strndup(text, n));
}

char *__wrap_realpath(const char *path, char *resolved) {
  char *made = __real_realpath(path, resolved);
  return resolved ? made : counted(made);
}

void fail_allocation_after(long nth) { n_until_failure = nth; }

void fail_new_allocation(void) {
  by_chains = true;
  fail_new_chain();
}

bool stop_failing(void) {
  if (by_chains) {
    by_chains = false;
    return stop_failing_chains();
  }
  const bool failed = n_until_failure < 0;
  n_until_failure = -1;
  return failed;
}

long live_blocks(void) { return n_live; }
