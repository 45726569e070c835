/* A rank that lies, for LD_PRELOAD: in the second message of a kind that rank LIE_RANK sends, word
 * LIE_WORD (of 64 bits) becomes LIE_VALUE, or it is sent with LIE_BYTES. LIE_KIND is what a message
 * is for, modulo three: 0 envelopes, 1 data, 2 credits (mpi_lane.h). */
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_LANE_TAG = 3, KINDS = 3, MOST_BYTES = 1 << 20 };
static atomic_int n_seen;

static long long number(const char *name, long long otherwise) {
  const char *text = getenv(name);
  return text ? strtoll(text, NULL, 10) : otherwise;
}

__attribute__((visibility("default"))) int MPI_Isend(const void *data, int count, MPI_Datatype type,
                                                     int to, int tag, MPI_Comm comm,
                                                     MPI_Request *request) {
  static _Alignas(8) unsigned char lie[MOST_BYTES];
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank != number("LIE_RANK", -1) || tag < FIRST_LANE_TAG ||
      (tag - FIRST_LANE_TAG) % KINDS != number("LIE_KIND", 0) || atomic_fetch_add(&n_seen, 1) != 1)
    return PMPI_Isend(data, count, type, to, tag, comm, request);
  int each;
  MPI_Type_size(type, &each);
  const long long n = (long long)each * count, most = number("LIE_BYTES", n);
  if (n > MOST_BYTES || most > MOST_BYTES) abort();
  memcpy(lie, data, (size_t)n);
  const long long word = number("LIE_WORD", -1);
  const int64_t value = number("LIE_VALUE", 0);
  if (word >= 0 && (word + 1) * (long long)sizeof value <= n)
    memcpy(lie + (size_t)word * sizeof value, &value, sizeof value);
  fprintf(stderr, "a lie: %lld of %lld bytes\n", most, n);
  return PMPI_Isend(lie, (int)most, MPI_BYTE, to, tag, comm, request);
}
