#include "failing_chains.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

/* Callers that make a chain; those in what asks here count too. */
enum { N_CALLERS = 9, MOST_CHAINS = 1 << 14 };

typedef struct chain {
  uint64_t hash;
  int n;
} chain;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t known[MOST_CHAINS]; /* hashes; 0: free */
static unsigned n_known;
static bool is_waiting;
static _Thread_local bool is_looking; /* what unwinds may allocate */

void forget_chains(void) {
  memset(known, 0, sizeof known);
  n_known = 0;
}

void fail_new_chain(void) {
  pthread_mutex_lock(&lock);
  is_waiting = true;
  pthread_mutex_unlock(&lock);
}

bool stop_failing_chains(void) {
  pthread_mutex_lock(&lock);
  const bool failed = !is_waiting;
  is_waiting = false;
  pthread_mutex_unlock(&lock);
  return failed;
}

static _Unwind_Reason_Code add_caller(struct _Unwind_Context *context, void *user) {
  chain *made = user;
  made->hash = (made->hash ^ _Unwind_GetIP(context)) * UINT64_C(0x9e3779b97f4a7c15);
  made->hash ^= made->hash >> 29;
  return ++made->n < N_CALLERS ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Notes the chain; whether it is new. */
static bool is_new(uint64_t hash) {
  size_t at = hash % MOST_CHAINS;
  for (; known[at]; at = (at + 1) % MOST_CHAINS)
    if (known[at] == hash) return false;
  if (++n_known == MOST_CHAINS) abort();
  known[at] = hash;
  return true;
}

bool next_chain_fails(void) {
  chain made = {1, 0};
  pthread_mutex_lock(&lock);
  bool fails = is_waiting && !is_looking;
  pthread_mutex_unlock(&lock);
  if (!fails) return false;
  is_looking = true;
  _Unwind_Backtrace(add_caller, &made);
  is_looking = false;
  pthread_mutex_lock(&lock);
  fails = is_waiting && is_new(made.hash | 1);
  is_waiting &= !fails;
  pthread_mutex_unlock(&lock);
  return fails;
}
