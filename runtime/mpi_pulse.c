#include "mpi_pulse.h"

#include <mpi.h>
#include <stdlib.h>

#include "mpi_lane.h"

/* What passes between this rank and another. A message is 0, or 1 as the last one. */
typedef struct peer {
  MPI_Request sending, receiving; /* MPI_REQUEST_NULL: nothing under way */
  int32_t out, in;
  int64_t sent_ns, heard_ns;
  bool said_last, heard_last;
} peer;

struct psplit_i_pulse {
  uint32_t rank, n_ranks;
  double timeout_s;
  int64_t period_ns, looked_ns;
  peer peers[];
};

psplit_code psplit_i_pulse_create(uint32_t rank, uint32_t n_ranks, double timeout_s,
                                  psplit_diag *diag, psplit_i_pulse **out) {
  static const double SLOWEST_S = 1;
  psplit_i_pulse *pulse = calloc(1, sizeof *pulse + n_ranks * sizeof *pulse->peers);
  if (!pulse) return psplit_i_nomem(diag);
  pulse->rank = rank;
  pulse->n_ranks = n_ranks;
  pulse->timeout_s = timeout_s;
  pulse->period_ns = (int64_t)(1e9 * (timeout_s / 4 < SLOWEST_S ? timeout_s / 4 : SLOWEST_S));
  for (uint32_t p = 0; p < n_ranks; p++)
    pulse->peers[p] = (peer){
      .sending = MPI_REQUEST_NULL, .receiving = MPI_REQUEST_NULL, .heard_ns = psplit_i_now_ns()};
  *out = pulse;
  return PSPLIT_OK;
}

void psplit_i_pulse_destroy(psplit_i_pulse *pulse) { free(pulse); }

static void send(peer *p, int to, int64_t now_ns, int64_t period_ns, bool last) {
  int complete = 1;
  if (p->sending != MPI_REQUEST_NULL) MPI_Test(&p->sending, &complete, MPI_STATUS_IGNORE);
  if (!complete || p->said_last) return;
  if (!last && p->sent_ns && now_ns - p->sent_ns < period_ns) return;
  p->out = last;
  p->sent_ns = now_ns;
  p->said_last = last;
  MPI_Isend(&p->out, 1, MPI_INT32_T, to, PSPLIT_I_TAG_PULSE, MPI_COMM_WORLD, &p->sending);
}

static void receive(peer *p, int from, int64_t now_ns) {
  while (!p->heard_last) {
    int complete = 0;
    if (p->receiving == MPI_REQUEST_NULL)
      MPI_Irecv(&p->in, 1, MPI_INT32_T, from, PSPLIT_I_TAG_PULSE, MPI_COMM_WORLD, &p->receiving);
    MPI_Test(&p->receiving, &complete, MPI_STATUS_IGNORE);
    if (!complete) return;
    p->heard_ns = now_ns;
    p->heard_last = p->in != 0;
  }
}

psplit_code psplit_i_pulse_step(psplit_i_pulse *pulse, bool last, psplit_diag *diag,
                                bool *out_all_last) {
  const int64_t now_ns = psplit_i_now_ns();
  *out_all_last = false;
  if (!last && now_ns - pulse->looked_ns < pulse->period_ns / 10) return PSPLIT_OK;
  pulse->looked_ns = now_ns;
  bool all = last;
  for (uint32_t r = 0; r < pulse->n_ranks; r++) {
    peer *p = &pulse->peers[r];
    if (r == pulse->rank) continue;
    send(p, (int)r, now_ns, pulse->period_ns, last);
    receive(p, (int)r, now_ns);
    all &= p->said_last && p->sending == MPI_REQUEST_NULL && p->heard_last;
    if (!p->heard_last && 1e-9 * (double)(now_ns - p->heard_ns) > pulse->timeout_s)
      return psplit_i_fail_about(
        diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
        "the rank of stage %u was not heard of for %g s: it is gone, or cannot "
        "be reached",
        r, pulse->timeout_s);
  }
  *out_all_last = all;
  return PSPLIT_OK;
}
