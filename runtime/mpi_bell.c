#include "mpi_bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What ranks share. */
typedef struct word {
  _Atomic uint32_t n_rings, n_idle, n_stand_in; /* threads that wait */
  char rest[64 - 3 * sizeof(uint32_t)];         /* a cache line each */
} word;

struct psplit_i_bell {
  word *mine, own;
  MPI_Comm host;
  MPI_Win window; /* MPI_WIN_NULL: nothing is shared */
  uint32_t n_ranks, n_reached;
  word *words[]; /* [n_ranks] NULL: another host's */
};

/* The words of the n ranks of this host, by their ranks among all; false where one cannot be had.
 */
static bool find_words(psplit_i_bell *bell, int n) {
  MPI_Group world, host;
  bool good = true;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(bell->host, &host);
  for (int i = 0; i < n && good; i++) {
    MPI_Aint bytes;
    int unit, rank;
    void *base;
    good = MPI_Group_translate_ranks(host, 1, &i, world, &rank) == MPI_SUCCESS &&
           MPI_Win_shared_query(bell->window, i, &bytes, &unit, &base) == MPI_SUCCESS;
    if (good) bell->words[rank] = base;
  }
  MPI_Group_free(&world);
  MPI_Group_free(&host);
  return good;
}

/* Gets memory in common with the ranks of this host; where one of them cannot, none has any. */
static void share(psplit_i_bell *bell) {
  void *base;
  int n, good;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &bell->host);
  MPI_Comm_set_errhandler(bell->host, MPI_ERRORS_RETURN);
  MPI_Comm_size(bell->host, &n);
  if (MPI_Win_allocate_shared(sizeof(word), 1, MPI_INFO_NULL, bell->host, &base, &bell->window) !=
      MPI_SUCCESS)
    bell->window = MPI_WIN_NULL;
  good = bell->window != MPI_WIN_NULL && find_words(bell, n);
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, bell->host);
  for (uint32_t r = 0; r < bell->n_ranks && !good; r++) bell->words[r] = NULL;
}

psplit_code psplit_i_bell_create(uint32_t n_ranks, psplit_diag *diag, psplit_i_bell **out) {
  psplit_i_bell *bell = calloc(1, sizeof *bell + n_ranks * sizeof *bell->words);
  int rank;
  if (!bell) return psplit_i_nomem(diag);
  bell->n_ranks = n_ranks;
  bell->window = MPI_WIN_NULL;
  share(bell);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!bell->words[rank]) bell->words[rank] = &bell->own;
  bell->mine = bell->words[rank];
  atomic_init(&bell->mine->n_rings, 0);
  atomic_init(&bell->mine->n_idle, 0);
  atomic_init(&bell->mine->n_stand_in, 0);
  for (uint32_t r = 0; r < n_ranks; r++) bell->n_reached += bell->words[r] != NULL;
  MPI_Barrier(bell->host); /* no one rings before */
  *out = bell;
  return PSPLIT_OK;
}

void psplit_i_bell_destroy(psplit_i_bell *bell) {
  if (!bell) return;
  if (bell->window != MPI_WIN_NULL) MPI_Win_free(&bell->window);
  MPI_Comm_free(&bell->host);
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
