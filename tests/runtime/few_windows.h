/* Included by libraries for LD_PRELOAD: FEW_WINDOWS says how many pieces of memory ranks get in
 * common at most, as on a system that has no more: with 0 each is by itself, with 1 they can wake
 * each other, but what they hand on goes in messages. */
#ifndef PSPLIT_TESTS_FEW_WINDOWS_H
#define PSPLIT_TESTS_FEW_WINDOWS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int MPI_Win_allocate_shared(MPI_Aint size, int unit,
                                                                   MPI_Info info, MPI_Comm comm,
                                                                   void *base, MPI_Win *out) {
  static atomic_int n_given;
  const char *most = getenv("FEW_WINDOWS");
  if (most && atomic_fetch_add(&n_given, 1) >= atoi(most)) return MPI_ERR_NO_MEM;
  return PMPI_Win_allocate_shared(size, unit, info, comm, base, out);
}

#endif
