#include "mpi_shared.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

typedef struct segment {
  void *base; /* NULL: another host's */
  uint64_t n_bytes;
} segment;

struct psplit_i_shared {
  MPI_Comm host;
  MPI_Win window;     /* MPI_WIN_NULL: nothing is shared */
  segment segments[]; /* by rank */
};

/* The segments of the n ranks of this host, by their ranks among all; false where one cannot be
 * had. */
static bool find_segments(psplit_i_shared *shared, int n) {
  MPI_Group world, host;
  bool good = true;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(shared->host, &host);
  for (int i = 0; i < n && good; i++) {
    MPI_Aint bytes;
    int unit, rank;
    void *base;
    good = MPI_Group_translate_ranks(host, 1, &i, world, &rank) == MPI_SUCCESS &&
           MPI_Win_shared_query(shared->window, i, &bytes, &unit, &base) == MPI_SUCCESS;
    if (good) shared->segments[rank] = (segment){base, (uint64_t)bytes};
  }
  MPI_Group_free(&world);
  MPI_Group_free(&host);
  return good;
}

psplit_code psplit_i_shared_create(uint32_t n_ranks, uint64_t n_bytes, psplit_diag *diag,
                                   psplit_i_shared **out) {
  psplit_i_shared *shared = calloc(1, sizeof *shared + n_ranks * sizeof *shared->segments);
  void *base;
  int n, good;
  if (!shared) return psplit_i_nomem(diag);
  shared->window = MPI_WIN_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared->host);
  MPI_Comm_set_errhandler(shared->host, MPI_ERRORS_RETURN);
  MPI_Comm_size(shared->host, &n);
  /* In whole pages: they follow each other. */
  n_bytes += PAGE_BYTES - n_bytes % PAGE_BYTES;
  if (MPI_Win_allocate_shared((MPI_Aint)n_bytes, 1, MPI_INFO_NULL, shared->host, &base,
                              &shared->window) != MPI_SUCCESS)
    shared->window = MPI_WIN_NULL;
  good = shared->window != MPI_WIN_NULL && find_segments(shared, n);
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, shared->host);
  for (uint32_t r = 0; r < n_ranks && !good; r++) shared->segments[r] = (segment){NULL, 0};
  *out = shared;
  return PSPLIT_OK;
}

void psplit_i_shared_destroy(psplit_i_shared *shared) {
  if (!shared) return;
  if (shared->window != MPI_WIN_NULL) MPI_Win_free(&shared->window);
  MPI_Comm_free(&shared->host);
  free(shared);
}

void *psplit_i_shared_of(const psplit_i_shared *shared, uint32_t rank, uint64_t *out_bytes) {
  *out_bytes = shared->segments[rank].n_bytes;
  return shared->segments[rank].base;
}

void psplit_i_shared_meet(const psplit_i_shared *shared) { MPI_Barrier(shared->host); }

bool psplit_i_shared_reserve(void *at, uint64_t n) {
  unsigned char *to = at;
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  bool good = fd >= 0;
  while (good && n) { /* where a write would kill, read says no */
    const ssize_t got = read(fd, to, n < 1 << 20 ? (size_t)n : 1 << 20);
    good = got > 0;
    if (!good) break;
    to += got;
    n -= (uint64_t)got;
  }
  if (fd >= 0) close(fd);
  return good;
}
