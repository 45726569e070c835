#include "mpi_bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mpi_shared.h"

/* What ranks share. */
typedef struct word {
  _Atomic uint32_t n_rings, n_idle, n_stand_in; /* threads that wait */
  char rest[64 - 3 * sizeof(uint32_t)];         /* a cache line each */
} word;

struct psplit_i_bell {
  word *mine, own;
  psplit_i_shared *shared;
  uint32_t n_ranks, n_reached;
  word *words[]; /* [n_ranks] NULL: another host's */
};

psplit_code psplit_i_bell_create(uint32_t n_ranks, psplit_diag *diag, psplit_i_bell **out) {
  psplit_i_bell *bell = calloc(1, sizeof *bell + n_ranks * sizeof *bell->words);
  int rank;
  if (!bell) return psplit_i_nomem(diag);
  bell->n_ranks = n_ranks;
  const psplit_code code = psplit_i_shared_create(n_ranks, sizeof(word), diag, &bell->shared);
  if (code != PSPLIT_OK) {
    free(bell);
    return code;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (uint32_t r = 0; r < n_ranks; r++) {
    uint64_t n_bytes;
    bell->words[r] = psplit_i_shared_of(bell->shared, r, &n_bytes);
  }
  if (!bell->words[rank]) bell->words[rank] = &bell->own;
  bell->mine = bell->words[rank];
  atomic_init(&bell->mine->n_rings, 0);
  atomic_init(&bell->mine->n_idle, 0);
  atomic_init(&bell->mine->n_stand_in, 0);
  for (uint32_t r = 0; r < n_ranks; r++) bell->n_reached += bell->words[r] != NULL;
  psplit_i_shared_meet(bell->shared); /* no one rings before */
  *out = bell;
  return PSPLIT_OK;
}

void psplit_i_bell_destroy(psplit_i_bell *bell) {
  if (bell) psplit_i_shared_destroy(bell->shared);
  free(bell);
}

bool psplit_i_bell_reaches_all(const psplit_i_bell *bell) {
  return bell->n_reached == bell->n_ranks;
}

static void wake(word *w, int n, psplit_i_bell_waiter who) {
  syscall(SYS_futex, &w->n_rings, FUTEX_WAKE_BITSET, n, NULL, NULL, who);
}

void psplit_i_bell_ring(psplit_i_bell *bell, uint32_t rank, bool can_wait) {
  word *w = bell->words[rank];
  if (!w) return;
  atomic_fetch_add(&w->n_rings, 1);
  if (atomic_load(&w->n_idle))
    wake(w, 1, PSPLIT_I_BELL_IDLE);
  else if (!can_wait && atomic_load(&w->n_stand_in))
    wake(w, 1, PSPLIT_I_BELL_STAND_IN);
}

static _Atomic uint32_t *waiters(word *w, psplit_i_bell_waiter who) {
  return who == PSPLIT_I_BELL_IDLE ? &w->n_idle : &w->n_stand_in;
}

void psplit_i_bell_ring_here(psplit_i_bell *bell, psplit_i_bell_waiter who) {
  atomic_fetch_add(&bell->mine->n_rings, 1);
  if (atomic_load(waiters(bell->mine, who))) wake(bell->mine, INT_MAX, who);
}

uint32_t psplit_i_bell_ticket(const psplit_i_bell *bell) {
  return atomic_load(&bell->mine->n_rings);
}

void psplit_i_bell_wait(psplit_i_bell *bell, uint32_t ticket, psplit_i_bell_waiter who,
                        int64_t most_ns) {
  static const int64_t SECOND_NS = 1000000000;
  _Atomic uint32_t *n = waiters(bell->mine, who);
  struct timespec until; /* FUTEX_WAIT_BITSET takes a point in time */
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += most_ns % SECOND_NS;
  until.tv_sec += most_ns / SECOND_NS + until.tv_nsec / SECOND_NS;
  until.tv_nsec %= SECOND_NS;
  atomic_fetch_add(n, 1);
  syscall(SYS_futex, &bell->mine->n_rings, FUTEX_WAIT_BITSET, ticket, &until, NULL, who);
  atomic_fetch_sub(n, 1);
}
