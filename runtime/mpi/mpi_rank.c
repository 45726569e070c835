#include "mpi_rank.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static bool meet(psplit_i_host *host) {
  psplit_i_rank *r = (psplit_i_rank *)host;
  pthread_mutex_lock(&r->mutex);
  const uint32_t mine = ++r->n_met;
  psplit_i_doorbell_ring_here(r->doorbell, PSPLIT_I_DOORBELL_STAND_IN); /* it calls MPI for us */
  while (r->n_allowed < mine && !atomic_load(&host->stopped))
    pthread_cond_wait(&r->changed, &r->mutex);
  const bool good = !atomic_load(&host->stopped);
  pthread_mutex_unlock(&r->mutex);
  return good;
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  psplit_i_rank *r = (psplit_i_rank *)host;
  if (!psplit_i_host_stop(host, &r->mutex, &r->changed, diag, &r->diag)) return;
  if (r->failed) atomic_store(r->failed, true);
  for (uint32_t l = 0; r->queue_list && l < r->n_links; l++)
    if (r->queue_list[l]) psplit_i_queue_close(r->queue_list[l]);
  r->work->stop(r);
}

void psplit_i_rank_init(psplit_i_rank *rank, const psplit_i_rank_work *work, uint32_t index,
                        uint32_t n_ranks) {
  memset(rank, 0, sizeof *rank);
  rank->host.meet = meet;
  rank->host.fail = fail;
  rank->work = work;
  rank->index = index;
  rank->n_ranks = n_ranks;
  pthread_mutex_init(&rank->mutex, NULL);
  psplit_i_timed_cond_init(&rank->changed);
}

psplit_code psplit_i_rank_meet_others(psplit_i_rank *rank, psplit_i_rank_link *links,
                                      uint32_t n_links, psplit_diag *diag) {
  psplit_i_channel_row *rows = NULL;
  psplit_code code;
  rank->links = links;
  rank->n_links = n_links;
  PSPLIT_TRY(psplit_i_doorbell_create(rank->n_ranks, diag, &rank->doorbell));
  rows = calloc((size_t)n_links + 1, sizeof *rows);
  if (!links || !rows) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t l = 0; l < n_links; l++) rows[l] = links[l].ends;
  code = psplit_i_channels_create(rank->index, rank->n_ranks, rows, n_links, diag, &rank->channels);
out:
  free(rows);
  return code;
}

static psplit_code open_link(psplit_i_rank *r, uint32_t l, const psplit_i_ort *ort,
                             uint64_t chunk_bytes, psplit_diag *diag) {
  const psplit_i_rank_link *link = &r->links[l];
  const uint32_t from = link->ends.from, to = link->ends.to;
  if (from != r->index && to != r->index) return PSPLIT_OK;
  const psplit_code code = psplit_i_queue_init(&r->queues[l], link->depth, diag);
  if (code != PSPLIT_OK) return code;
  r->queue_list[l] = &r->queues[l];
  if (from == to) return PSPLIT_OK;
  r->queues[l].mover = &r->driver.mover;
  psplit_i_lane *lane = &r->lanes[r->driver.n_lanes++];
  *lane = (psplit_i_lane){.n_tensors = link->n_tensors,
                          .queue = &r->queues[l],
                          .ort = ort,
                          .carrier = {.link = l,
                                      .outward = from == r->index,
                                      .peer = (int)(from == r->index ? to : from),
                                      .chunk_bytes = chunk_bytes,
                                      .doorbell = r->doorbell,
                                      .channel = psplit_i_channels_get(r->channels, l)}};
  return psplit_i_lane_init(lane, diag);
}

psplit_code psplit_i_rank_open_links(psplit_i_rank *rank, const psplit_i_ort *ort,
                                     uint64_t chunk_bytes, psplit_diag *diag) {
  const size_t n = (size_t)rank->n_links + 1;
  psplit_code code = PSPLIT_OK;
  rank->queues = calloc(n, sizeof *rank->queues);
  rank->queue_list = calloc(n, sizeof *rank->queue_list);
  rank->lanes = calloc(n, sizeof *rank->lanes);
  if (!rank->queues || !rank->queue_list || !rank->lanes) return psplit_i_nomem(diag);
  psplit_i_driver_init(&rank->driver, &rank->host, rank->doorbell, rank->lanes);
  for (uint32_t l = 0; l < rank->n_links && code == PSPLIT_OK; l++)
    code = open_link(rank, l, ort, chunk_bytes, diag);
  return code;
}

psplit_code psplit_i_rank_open_heartbeat(psplit_i_rank *rank, double timeout_s, psplit_i_live *live,
                                         psplit_diag *diag) {
  return psplit_i_heartbeat_create(rank->index, rank->n_ranks, timeout_s, live, diag,
                                   &rank->heartbeat);
}

/* Whether what computes waits for all ranks. */
static bool is_meeting(psplit_i_rank *r) {
  pthread_mutex_lock(&r->mutex);
  const bool is = r->n_met > r->n_allowed;
  pthread_mutex_unlock(&r->mutex);
  return is;
}

static void step_meeting(psplit_i_rank *r, MPI_Request *barrier) {
  int complete = 0;
  if (*barrier == MPI_REQUEST_NULL) MPI_Ibarrier(MPI_COMM_WORLD, barrier);
  MPI_Test(barrier, &complete, MPI_STATUS_IGNORE);
  if (!complete) return;
  pthread_mutex_lock(&r->mutex);
  if (r->n_allowed++ == 0 && r->work->met) r->work->met();
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->mutex);
}

static bool is_done(psplit_i_rank *r) {
  bool done = r->work->wait(r, 0);
  for (uint32_t i = 0; i < r->driver.n_lanes; i++) done &= r->lanes[i].ended;
  return done;
}

static psplit_code first_failure(psplit_i_rank *r, psplit_diag *diag) {
  pthread_mutex_lock(&r->mutex);
  *diag = r->diag;
  pthread_mutex_unlock(&r->mutex);
  return diag->code;
}

psplit_code psplit_i_rank_serve(psplit_i_rank *rank, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  MPI_Request barrier = MPI_REQUEST_NULL;
  bool all_done = false;
  while (!all_done && code == PSPLIT_OK) {
    const uint32_t ticket = psplit_i_doorbell_ticket(rank->doorbell);
    const bool meeting = is_meeting(rank);
    psplit_i_driver_enter(&rank->driver);
    const bool done = is_done(rank);
    if (meeting) step_meeting(rank, &barrier);
    code = psplit_i_heartbeat_step(rank->heartbeat, done, diag, &all_done);
    psplit_i_driver_leave(&rank->driver);
    if (atomic_load(&rank->host.stopped)) return first_failure(rank, diag);
    if (code == PSPLIT_OK) code = rank->work->check(rank, done, diag);
    if (code == PSPLIT_OK && !all_done)
      psplit_i_driver_stand_by(&rank->driver, ticket, meeting || done);
  }
  return code;
}

void psplit_i_rank_stay_heard(psplit_i_rank *rank, int64_t since_ns, int64_t most_ns) {
  static const int64_t LOOK_NS = 20000000;
  psplit_diag ignored = {0};
  bool all_last, heard = true;
  while (heard && !rank->work->wait(rank, LOOK_NS) && psplit_i_now_ns() - since_ns < most_ns) {
    psplit_i_driver_enter(&rank->driver);
    heard = psplit_i_heartbeat_step(rank->heartbeat, false, &ignored, &all_last) == PSPLIT_OK;
    psplit_i_driver_leave(&rank->driver);
  }
}

void psplit_i_rank_close(psplit_i_rank *rank, bool good) {
  for (uint32_t i = 0; good && i < rank->driver.n_lanes; i++) psplit_i_lane_fini(&rank->lanes[i]);
  if (good) psplit_i_heartbeat_destroy(rank->heartbeat);
  if (good) psplit_i_channels_destroy(rank->channels);
  if (good) psplit_i_doorbell_destroy(rank->doorbell);
  for (uint32_t l = 0; rank->queues && l < rank->n_links; l++)
    psplit_i_queue_fini(&rank->queues[l]);
  free(rank->queue_list);
  free(rank->queues);
  if (good) free(rank->lanes);
  free(rank->links);
  if (rank->driver.host) psplit_i_driver_fini(&rank->driver);
  pthread_cond_destroy(&rank->changed);
  pthread_mutex_destroy(&rank->mutex);
}
