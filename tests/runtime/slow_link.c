/* A slow link between any two ranks, which takes no processor; for LD_PRELOAD. SLOW_LINK bytes a
 * second: a message of 4 KiB or more, or behind one of these, leaves once those before it to the
 * same rank are through and its own time is over. With FEW_WINDOWS all data goes in messages. */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "few_windows.h"

enum { LEAST_BYTES = 4096, MOST_RANKS = 64, MOST_UNDER_WAY = 256 };

typedef struct message {
  MPI_Request shown, real; /* what the caller holds; MPI_REQUEST_NULL until it has left */
  const void *data;
  int count, to, tag;
  MPI_Comm comm;
  double due_s;
  bool used;
} message;

/* A rank calls MPI from one thread at a time. */
static message under_way[MOST_UNDER_WAY];
static double free_s[MOST_RANKS];

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int query(void *state, MPI_Status *status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

static int forget(void *state) {
  ((message *)state)->used = false;
  return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

static message *unused(void) {
  for (int i = 0; i < MOST_UNDER_WAY; i++)
    if (!under_way[i].used) return &under_way[i];
  abort();
}

/* Whether a message with this tag has not left yet: the next one must not be ahead of it. */
static bool waits(int to, int tag) {
  for (int i = 0; i < MOST_UNDER_WAY; i++)
    if (under_way[i].used && under_way[i].to == to && under_way[i].tag == tag) return true;
  return false;
}

__attribute__((visibility("default"))) int MPI_Isend(const void *data, int count, MPI_Datatype type,
                                                     int to, int tag, MPI_Comm comm,
                                                     MPI_Request *request) {
  const char *rate = getenv("SLOW_LINK");
  if (!rate || (count < LEAST_BYTES && !waits(to, tag)) || type != MPI_BYTE || to >= MOST_RANKS)
    return PMPI_Isend(data, count, type, to, tag, comm, request);
  const double begin_s = free_s[to] > now_s() ? free_s[to] : now_s();
  message *m = unused();
  *m = (message){.real = MPI_REQUEST_NULL,
                 .data = data,
                 .count = count,
                 .to = to,
                 .tag = tag,
                 .comm = comm,
                 .due_s = begin_s + count / atof(rate),
                 .used = true};
  free_s[to] = m->due_s;
  const int code = MPI_Grequest_start(query, forget, cancel, m, &m->shown);
  *request = m->shown;
  return code;
}

static void move(message *m) {
  int complete = 0;
  if (m->real == MPI_REQUEST_NULL && now_s() < m->due_s) return;
  if (m->real == MPI_REQUEST_NULL)
    PMPI_Isend(m->data, m->count, MPI_BYTE, m->to, m->tag, m->comm, &m->real);
  PMPI_Test(&m->real, &complete, MPI_STATUS_IGNORE);
  if (complete) MPI_Grequest_complete(m->shown);
}

__attribute__((visibility("default"))) int MPI_Test(MPI_Request *request, int *complete,
                                                    MPI_Status *status) {
  for (int i = 0; i < MOST_UNDER_WAY; i++)
    if (under_way[i].used && under_way[i].shown == *request) move(&under_way[i]);
  return PMPI_Test(request, complete, status);
}
