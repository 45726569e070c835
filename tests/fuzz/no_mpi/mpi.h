/* As much of MPI as links between ranks need, without a library: fuzz_lane.c is the other rank. */
#ifndef PSPLIT_TESTS_FUZZ_NO_MPI_H
#define PSPLIT_TESTS_FUZZ_NO_MPI_H

typedef int MPI_Request, MPI_Datatype, MPI_Comm;
typedef struct MPI_Status {
  int n_bytes;
} MPI_Status;

enum { MPI_REQUEST_NULL, MPI_BYTE, MPI_UINT64_T, MPI_COMM_WORLD };
#define MPI_STATUS_IGNORE ((MPI_Status *)0)

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Test(MPI_Request *request, int *complete, MPI_Status *status);
int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);

#endif
