#include "mpi_doorbell.h"

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

struct psplit_i_doorbell {
  word *mine, own;
  psplit_i_shared *shared;
  uint32_t n_ranks, n_reached;
  word *words[]; /* [n_ranks] NULL: another host's */
};

psplit_code psplit_i_doorbell_create(uint32_t n_ranks, psplit_diag *diag, psplit_i_doorbell **out) {
  psplit_i_doorbell *doorbell = calloc(1, sizeof *doorbell + n_ranks * sizeof *doorbell->words);
  int rank;
  if (!doorbell) return psplit_i_nomem(diag);
  doorbell->n_ranks = n_ranks;
  const psplit_code code = psplit_i_shared_create(n_ranks, sizeof(word), diag, &doorbell->shared);
  if (code != PSPLIT_OK) {
    free(doorbell);
    return code;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (uint32_t r = 0; r < n_ranks; r++) {
    uint64_t n_bytes;
    doorbell->words[r] = psplit_i_shared_of(doorbell->shared, r, &n_bytes);
  }
  if (!doorbell->words[rank]) doorbell->words[rank] = &doorbell->own;
  doorbell->mine = doorbell->words[rank];
  atomic_init(&doorbell->mine->n_rings, 0);
  atomic_init(&doorbell->mine->n_idle, 0);
  atomic_init(&doorbell->mine->n_stand_in, 0);
  for (uint32_t r = 0; r < n_ranks; r++) doorbell->n_reached += doorbell->words[r] != NULL;
  psplit_i_shared_meet(doorbell->shared); /* no one rings before */
  *out = doorbell;
  return PSPLIT_OK;
}

void psplit_i_doorbell_destroy(psplit_i_doorbell *doorbell) {
  if (doorbell) psplit_i_shared_destroy(doorbell->shared);
  free(doorbell);
}

bool psplit_i_doorbell_reaches_all(const psplit_i_doorbell *doorbell) {
  return doorbell->n_reached == doorbell->n_ranks;
}

static void wake(word *w, int n, psplit_i_doorbell_waiter who) {
  syscall(SYS_futex, &w->n_rings, FUTEX_WAKE_BITSET, n, NULL, NULL, who);
}

void psplit_i_doorbell_ring(psplit_i_doorbell *doorbell, uint32_t rank, bool can_wait) {
  word *w = doorbell->words[rank];
  if (!w) return;
  atomic_fetch_add(&w->n_rings, 1);
  if (atomic_load(&w->n_idle))
    wake(w, 1, PSPLIT_I_DOORBELL_IDLE);
  else if (!can_wait && atomic_load(&w->n_stand_in))
    wake(w, 1, PSPLIT_I_DOORBELL_STAND_IN);
}

static _Atomic uint32_t *waiters(word *w, psplit_i_doorbell_waiter who) {
  return who == PSPLIT_I_DOORBELL_IDLE ? &w->n_idle : &w->n_stand_in;
}

void psplit_i_doorbell_ring_here(psplit_i_doorbell *doorbell, psplit_i_doorbell_waiter who) {
  atomic_fetch_add(&doorbell->mine->n_rings, 1);
  if (atomic_load(waiters(doorbell->mine, who))) wake(doorbell->mine, INT_MAX, who);
}

uint32_t psplit_i_doorbell_ticket(const psplit_i_doorbell *doorbell) {
  return atomic_load(&doorbell->mine->n_rings);
}

void psplit_i_doorbell_wait(psplit_i_doorbell *doorbell, uint32_t ticket,
                            psplit_i_doorbell_waiter who, int64_t most_ns) {
  static const int64_t SECOND_NS = 1000000000;
  _Atomic uint32_t *n = waiters(doorbell->mine, who);
  struct timespec until; /* FUTEX_WAIT_BITSET takes a point in time */
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += most_ns % SECOND_NS;
  until.tv_sec += most_ns / SECOND_NS + until.tv_nsec / SECOND_NS;
  until.tv_nsec %= SECOND_NS;
  atomic_fetch_add(n, 1);
  syscall(SYS_futex, &doorbell->mine->n_rings, FUTEX_WAIT_BITSET, ticket, &until, NULL, who);
  atomic_fetch_sub(n, 1);
}
