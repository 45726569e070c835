/* What MPI itself takes to move bytes between two ranks: mpirun -n 2 pingpong BYTES...
 *
 * For each size prints "BYTES NS": the median, over round trips of one message there and one back,
 * of half a round trip. The buffers stay the same and are warm; nothing else happens. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIPS = 41, WARM_TRIPS = 5, TAG = 0 };

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void trip(char *bytes, int n, int rank) {
  const int peer = 1 - rank;
  if (rank == 0) MPI_Send(bytes, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
  MPI_Recv(bytes, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(bytes, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static double half_trip_ns(char *bytes, int n, int rank) {
  double seconds[TRIPS];
  for (int i = 0; i < WARM_TRIPS; i++) trip(bytes, n, rank);
  for (int i = 0; i < TRIPS; i++) {
    const double begin = MPI_Wtime();
    trip(bytes, n, rank);
    seconds[i] = MPI_Wtime() - begin;
  }
  qsort(seconds, TRIPS, sizeof *seconds, by_size);
  return 1e9 * seconds[TRIPS / 2] / 2;
}

int main(int argc, char **argv) {
  int rank, n_ranks, status = EXIT_SUCCESS;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  for (int i = 1; i < argc && status == EXIT_SUCCESS; i++) {
    const long long wanted = strtoll(argv[i], NULL, 10);
    const int n = wanted > 0 && wanted <= INT32_MAX ? (int)wanted : 0;
    char *bytes = n && n_ranks == 2 ? malloc((size_t)n) : NULL;
    if (!bytes) {
      fprintf(stderr, "usage: mpirun -n 2 pingpong BYTES... (each below 2 GiB)\n");
      status = EXIT_FAILURE;
    } else {
      memset(bytes, 1, (size_t)n);
      const double ns = half_trip_ns(bytes, n, rank);
      if (rank == 0) printf("%d %.0f\n", n, ns);
    }
    free(bytes);
  }
  MPI_Finalize();
  return status;
}
