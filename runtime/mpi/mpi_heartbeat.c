#include "mpi_heartbeat.h"

#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi_lane.h"

/* A message. One that is not ALIVE is the last. */
typedef enum kind { ALIVE, LAST, FAILED } kind;
typedef struct beat {
  int64_t kind, code; /* code: of a failure */
  uint64_t n_micro_batches, resident_bytes;
  int64_t busy_ns;
  char message[PSPLIT_DIAG_BYTES]; /* of a failure; else it is not sent */
} beat;

/* What passes between this rank and another. */
typedef struct peer {
  MPI_Request sending, receiving, leaving; /* MPI_REQUEST_NULL: nothing under way */
  beat out, in, farewell;
  int64_t sent_ns, heard_ns;
  bool said_last, heard_last, said_farewell;
} peer;

struct psplit_i_heartbeat {
  uint32_t rank, n_ranks;
  double timeout_s;
  int64_t period_ns, looked_ns;
  psplit_i_live *live; /* may be NULL */
  peer peers[];
};

psplit_code psplit_i_heartbeat_create(uint32_t rank, uint32_t n_ranks, double timeout_s,
                                      psplit_i_live *live, psplit_diag *diag,
                                      psplit_i_heartbeat **out) {
  static const double SLOWEST_S = 1;
  psplit_i_heartbeat *heartbeat = calloc(1, sizeof *heartbeat + n_ranks * sizeof *heartbeat->peers);
  if (!heartbeat) return psplit_i_nomem(diag);
  heartbeat->rank = rank;
  heartbeat->n_ranks = n_ranks;
  heartbeat->timeout_s = timeout_s;
  heartbeat->live = live;
  heartbeat->period_ns = (int64_t)(1e9 * (timeout_s / 4 < SLOWEST_S ? timeout_s / 4 : SLOWEST_S));
  for (uint32_t p = 0; p < n_ranks; p++)
    heartbeat->peers[p] = (peer){.sending = MPI_REQUEST_NULL,
                                 .receiving = MPI_REQUEST_NULL,
                                 .leaving = MPI_REQUEST_NULL,
                                 .heard_ns = psplit_i_now_ns()};
  *out = heartbeat;
  return PSPLIT_OK;
}

void psplit_i_heartbeat_destroy(psplit_i_heartbeat *heartbeat) { free(heartbeat); }

static void post(const beat *b, int to, MPI_Request *request) {
  const size_t n = offsetof(beat, message) + (b->kind == FAILED ? strlen(b->message) + 1 : 0);
  MPI_Isend(b, (int)n, MPI_BYTE, to, PSPLIT_I_TAG_PULSE, MPI_COMM_WORLD, request);
}

/* What is told of the stage of this rank. */
static beat look_at_stage(const psplit_i_heartbeat *heartbeat) {
  if (!heartbeat->live) return (beat){.kind = ALIVE};
  psplit_i_live *mine = &heartbeat->live[heartbeat->rank];
  atomic_store(&mine->resident_bytes, psplit_i_resident_bytes(getpid()));
  return (beat){.kind = ALIVE,
                .n_micro_batches = atomic_load(&mine->n_micro_batches),
                .resident_bytes = atomic_load(&mine->resident_bytes),
                .busy_ns = atomic_load(&mine->busy_ns)};
}

static void send(psplit_i_heartbeat *heartbeat, uint32_t to, int64_t now_ns, bool last) {
  peer *p = &heartbeat->peers[to];
  int complete = 1;
  if (p->sending != MPI_REQUEST_NULL) MPI_Test(&p->sending, &complete, MPI_STATUS_IGNORE);
  if (!complete || p->said_last) return;
  if (!last && p->sent_ns && now_ns - p->sent_ns < heartbeat->period_ns) return;
  p->out = look_at_stage(heartbeat);
  if (last) p->out.kind = LAST;
  p->sent_ns = now_ns;
  p->said_last = last;
  post(&p->out, (int)to, &p->sending);
}

static void send_farewell(psplit_i_heartbeat *heartbeat, uint32_t to, const psplit_diag *diag) {
  peer *p = &heartbeat->peers[to];
  if (p->said_farewell) return;
  p->said_farewell = true;
  p->farewell.kind = FAILED;
  p->farewell.code = (int64_t)diag->code;
  memcpy(p->farewell.message, diag->message, sizeof diag->message);
  post(&p->farewell, (int)to, &p->leaving);
}

static void take(psplit_i_heartbeat *heartbeat, uint32_t from, int64_t now_ns) {
  peer *p = &heartbeat->peers[from];
  p->heard_ns = now_ns;
  p->heard_last = p->in.kind != ALIVE;
  if (!heartbeat->live || p->in.kind == FAILED) return;
  atomic_store(&heartbeat->live[from].n_micro_batches, p->in.n_micro_batches);
  atomic_store(&heartbeat->live[from].busy_ns, p->in.busy_ns);
  atomic_store(&heartbeat->live[from].resident_bytes, p->in.resident_bytes);
}

static void receive(psplit_i_heartbeat *heartbeat, uint32_t from, int64_t now_ns) {
  peer *p = &heartbeat->peers[from];
  while (!p->heard_last) {
    int complete = 0;
    if (p->receiving == MPI_REQUEST_NULL)
      MPI_Irecv(&p->in, sizeof p->in, MPI_BYTE, (int)from, PSPLIT_I_TAG_PULSE, MPI_COMM_WORLD,
                &p->receiving);
    MPI_Test(&p->receiving, &complete, MPI_STATUS_IGNORE);
    if (!complete) return;
    take(heartbeat, from, now_ns);
  }
}

void psplit_i_heartbeat_tell_failure(psplit_i_heartbeat *heartbeat, uint32_t to,
                                     const psplit_diag *diag) {
  static const int64_t MOST_NS = 500000000;
  static const long LOOK_NS = 2000000;
  const int64_t until_ns = psplit_i_now_ns() + MOST_NS;
  if (to == heartbeat->rank || heartbeat->peers[to].heard_last) return;
  send_farewell(heartbeat, to, diag);
  while (!heartbeat->peers[to].heard_last && psplit_i_now_ns() < until_ns) {
    int complete = 0;
    receive(heartbeat, to, psplit_i_now_ns());
    MPI_Test(&heartbeat->peers[to].leaving, &complete, MPI_STATUS_IGNORE);
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
  }
}

/* What ends another rank ends this one, too; that one hears that it was heard. */
static psplit_code take_failure(psplit_i_heartbeat *heartbeat, uint32_t from, psplit_diag *diag) {
  beat *b = &heartbeat->peers[from].in;
  const bool good = b->code > PSPLIT_OK && b->code <= PSPLIT_CANCELLED;
  b->message[sizeof b->message - 1] = '\0';
  const psplit_code code =
    psplit_i_fail(diag, good ? (psplit_code)b->code : PSPLIT_INTERNAL, "%s", b->message);
  send_farewell(heartbeat, from, diag);
  return code;
}

psplit_code psplit_i_heartbeat_step(psplit_i_heartbeat *heartbeat, bool last, psplit_diag *diag,
                                    bool *out_all_last) {
  const int64_t now_ns = psplit_i_now_ns();
  *out_all_last = false;
  if (!last && now_ns - heartbeat->looked_ns < heartbeat->period_ns / 10) return PSPLIT_OK;
  heartbeat->looked_ns = now_ns;
  bool all = last;
  for (uint32_t r = 0; r < heartbeat->n_ranks; r++) {
    peer *p = &heartbeat->peers[r];
    if (r == heartbeat->rank) continue;
    send(heartbeat, r, now_ns, last);
    receive(heartbeat, r, now_ns);
    if (p->heard_last && p->in.kind == FAILED) return take_failure(heartbeat, r, diag);
    all &= p->said_last && p->sending == MPI_REQUEST_NULL && p->heard_last;
    if (!p->heard_last && 1e-9 * (double)(now_ns - p->heard_ns) > heartbeat->timeout_s)
      return psplit_i_fail_about(
        diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
        "the rank of stage %u did not respond for %g s: it is gone, or cannot "
        "be reached",
        r, heartbeat->timeout_s);
  }
  *out_all_last = all;
  return PSPLIT_OK;
}
