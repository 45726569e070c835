/* A rank that lies, for LD_PRELOAD. In the second message of a kind that rank LIE_RANK sends, word
 * LIE_WORD (of 64 bits) becomes LIE_VALUE, or it is sent with LIE_BYTES. LIE_KIND is what a message
 * is for: 0 envelopes, 1 data, 2 credits (mpi_carrier.h); through memory in common (mpi_channel.c)
 * 3 the size ahead of an envelope, 4 envelopes, 5 data, 6 what is at the head of a channel, once a
 * second envelope goes in or comes out. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "few_windows.h"

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

/* What the ranks of this host share; written before there is a second thread. */
enum { MOST_RANGES = 32 };
static struct range {
  unsigned char *base;
  size_t n;
} ranges[MOST_RANGES];
static int n_ranges, my_rank = -1;

__attribute__((visibility("default"))) int MPI_Win_shared_query(MPI_Win window, int rank,
                                                                MPI_Aint *bytes, int *unit,
                                                                void *base) {
  const int code = PMPI_Win_shared_query(window, rank, bytes, unit, base);
  if (code == MPI_SUCCESS && n_ranges < MOST_RANGES) {
    memcpy(&ranges[n_ranges].base, base, sizeof ranges->base);
    ranges[n_ranges++].n = (size_t)*bytes;
  }
  PMPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  return code;
}

static struct range *range_of(const void *at) {
  for (int i = 0; i < n_ranges; i++)
    if ((const unsigned char *)at >= ranges[i].base &&
        (size_t)((const unsigned char *)at - ranges[i].base) < ranges[i].n)
      return &ranges[i];
  return NULL;
}

/* What goes through a channel: a size, the envelope, then data. */
static int kind_of(size_t n) {
  static atomic_int after_size;
  enum { SIZE = 3, ENVELOPE, DATA };
  if (n == sizeof(uint64_t)) {
    atomic_store(&after_size, 1);
    return SIZE;
  }
  return atomic_exchange(&after_size, 0) ? ENVELOPE : DATA;
}

static void lie_in(unsigned char *at, size_t n, struct range *range) {
  enum { SIZE = 3, ENVELOPE, DATA, HEAD };
  const int wanted = (int)number("LIE_KIND", 0), kind = kind_of(n);
  const int hit = wanted == HEAD ? kind == ENVELOPE : kind == wanted;
  if (!hit || atomic_fetch_add(&n_seen, 1) != 1) return;
  const long long word = number("LIE_WORD", -1), bytes = number("LIE_BYTES", -1);
  const int64_t value = number("LIE_VALUE", 0);
  unsigned char *to = wanted == HEAD ? range->base : at;
  if (word >= 0 && (wanted == HEAD || (size_t)(word + 1) * sizeof value <= n))
    for (size_t i = 0; i < sizeof value; i++)
      to[(size_t)word * sizeof value + i] = ((const unsigned char *)&value)[i];
  if (bytes >= 0) { /* of an envelope: the lower half of its size */
    const uint32_t low = (uint32_t)bytes;
    for (size_t i = 0; i < sizeof low; i++) at[i] = ((const unsigned char *)&low)[i];
  }
  fprintf(stderr, "a lie: kind %d of %zu bytes\n", kind, n);
}

__attribute__((visibility("default"))) void *memcpy(void *restrict to, const void *restrict from,
                                                    size_t n) {
  unsigned char *volatile at = to; /* so that this is no call of memcpy */
  for (size_t i = 0; i < n; i++) at[i] = ((const unsigned char *)from)[i];
  if (my_rank < 0 || my_rank != number("LIE_RANK", -1)) return to;
  struct range *in = range_of(to), *out = range_of(from);
  if (in)
    lie_in(to, n, in);
  else if (out && number("LIE_KIND", 0) == 6)
    lie_in(to, n, out);
  return to;
}
