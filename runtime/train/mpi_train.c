/* Transport: one device per MPI rank. As in mpi.c the device works in a thread of its own and knows
 * only queues; the main thread gives signs of life and moves what comes while the other computes.
 */
#include <mpi.h>
#include <psplit/run_mpi.h>
#include <stdlib.h>
#include <time.h>

#include "mpi_agree.h"
#include "mpi_driver.h"
#include "mpi_gather.h"
#include "mpi_pulse.h"
#include "mpi_wait.h"
#include "patience.h"
#include "train.h"

typedef struct rank_host {
  psplit_i_host host; /* first: the device knows only this */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool is_here, may_go; /* the device is at the meeting; all are */
  bool started, ended;  /* its thread */
  psplit_diag diag;
  psplit_i_device device;
  pthread_t thread;
  psplit_i_queue *queues; /* [n_queues] of the wires */
  psplit_i_queue **queue_list;
  psplit_i_lane *lanes;
  uint32_t n_queues;
  psplit_i_bell *bell;
  psplit_i_channels *channels;
  psplit_i_driver driver;
  psplit_i_pulse *pulse;
} rank_host;

static bool meet(psplit_i_host *host) {
  rank_host *h = (rank_host *)host;
  pthread_mutex_lock(&h->mutex);
  h->is_here = true;
  psplit_i_bell_ring_here(h->bell, PSPLIT_I_BELL_STAND_IN); /* it calls MPI for us */
  while (!h->may_go && !atomic_load(&host->stopped)) pthread_cond_wait(&h->changed, &h->mutex);
  const bool good = !atomic_load(&host->stopped);
  pthread_mutex_unlock(&h->mutex);
  return good;
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  rank_host *h = (rank_host *)host;
  pthread_mutex_lock(&h->mutex);
  const bool first = !atomic_exchange(&host->stopped, true);
  if (first) h->diag = *diag;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->mutex);
  if (!first) return;
  for (uint32_t i = 0; i < h->n_queues; i++)
    if (h->queue_list[i]) psplit_i_queue_close(h->queue_list[i]);
  psplit_i_device_stop(&h->device);
}

static void *thread_main(void *argument) {
  rank_host *h = argument;
  psplit_i_device_main(&h->device);
  pthread_mutex_lock(&h->mutex);
  h->ended = true;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->mutex);
  psplit_i_bell_ring_here(h->bell, PSPLIT_I_BELL_STAND_IN);
  return NULL;
}

/* Whether the device has ended, after waiting for it so long at most. */
static bool wait_ended(rank_host *h, int64_t most_ns) {
  static const int64_t SECOND_NS = 1000000000;
  const int64_t until = psplit_i_now_ns() + most_ns;
  int late = 0;
  pthread_mutex_lock(&h->mutex);
  while (h->started && !h->ended && !late)
    late = pthread_cond_timedwait(&h->changed, &h->mutex,
                                  &(struct timespec){until / SECOND_NS, until % SECOND_NS});
  const bool ended = !h->started || h->ended;
  pthread_mutex_unlock(&h->mutex);
  return ended;
}

/* Whether the device waits for all ranks. */
static bool is_meeting(rank_host *h) {
  pthread_mutex_lock(&h->mutex);
  const bool is = h->is_here && !h->may_go;
  pthread_mutex_unlock(&h->mutex);
  return is;
}

static void step_meeting(rank_host *h, MPI_Request *barrier) {
  int complete = 0;
  if (*barrier == MPI_REQUEST_NULL) MPI_Ibarrier(MPI_COMM_WORLD, barrier);
  MPI_Test(barrier, &complete, MPI_STATUS_IGNORE);
  if (!complete) return;
  pthread_mutex_lock(&h->mutex);
  h->may_go = true;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->mutex);
}

static bool is_done(rank_host *h) {
  bool done = wait_ended(h, 0);
  for (uint32_t i = 0; i < h->driver.n_lanes; i++) done &= h->lanes[i].ended;
  return done;
}

static psplit_code first_failure(rank_host *h, psplit_diag *diag) {
  pthread_mutex_lock(&h->mutex);
  *diag = h->diag;
  pthread_mutex_unlock(&h->mutex);
  return diag->code;
}

/* Serves the lanes until this rank and all others have nothing more to do. */
static psplit_code serve(rank_host *h, const psplit_i_train_setup *setup, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  MPI_Request barrier = MPI_REQUEST_NULL;
  bool all_done = false;
  psplit_i_patience patience = {0};
  while (!all_done && code == PSPLIT_OK) {
    const uint32_t ticket = psplit_i_bell_ticket(h->bell);
    const bool meeting = is_meeting(h);
    psplit_i_driver_enter(&h->driver);
    const bool done = is_done(h);
    if (meeting) step_meeting(h, &barrier);
    code = psplit_i_pulse_step(h->pulse, done, diag, &all_done);
    psplit_i_driver_leave(&h->driver);
    if (atomic_load(&h->host.stopped)) return first_failure(h, diag);
    if (code == PSPLIT_OK)
      code = psplit_i_watch_check(&h->device.watch, setup->given.stall_timeout_s, diag);
    if (code == PSPLIT_OK && !done)
      code = psplit_i_patience_check(&patience, setup->given.cancel, &h->device, 1, diag);
    if (code == PSPLIT_OK && !all_done)
      psplit_i_driver_stand_by(&h->driver, ticket, meeting || done);
  }
  return code;
}

/* While a device that was told to stop may still do so: others are to hear of the failure from
 * here, not that this rank is silent. */
static void stay_heard(rank_host *h, int64_t most_ns) {
  static const int64_t LOOK_NS = 20000000;
  const int64_t since_ns = psplit_i_now_ns();
  psplit_diag ignored = {0};
  bool all_last, heard = true;
  while (heard && !wait_ended(h, LOOK_NS) && psplit_i_now_ns() - since_ns < most_ns) {
    psplit_i_driver_enter(&h->driver);
    heard = psplit_i_pulse_step(h->pulse, false, &ignored, &all_last) == PSPLIT_OK;
    psplit_i_driver_leave(&h->driver);
  }
}

/* By all ranks at once. */
static psplit_code open_channels(rank_host *h, const psplit_i_train_setup *setup, uint32_t rank,
                                 psplit_diag *diag) {
  const psplit_i_wiring *w = &setup->wiring;
  psplit_i_channel_row *rows = calloc((size_t)w->n_wires + 1, sizeof *rows);
  if (!rows) return psplit_i_nomem(diag);
  for (uint32_t k = 0; k < w->n_wires; k++)
    rows[k] = (psplit_i_channel_row){w->wires[k].from_device, w->wires[k].to_device, 0};
  const psplit_code code =
    psplit_i_channels_create(rank, w->n_devices, rows, w->n_wires, diag, &h->channels);
  free(rows);
  return code;
}

/* A queue for each wire that this rank has to do with, and a lane where it leads to another. */
static psplit_code open_wires(rank_host *h, const psplit_i_ort *ort,
                              const psplit_i_train_setup *setup, uint32_t rank, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k < setup->wiring.n_wires; k++) {
    const psplit_i_wire *wire = &setup->wiring.wires[k];
    const uint32_t from = wire->from_device, to = wire->to_device;
    if (from != rank && to != rank) continue;
    PSPLIT_TRY(psplit_i_queue_init(&h->queues[k], psplit_i_train_depth(setup), diag));
    h->queue_list[k] = &h->queues[k];
    if (from == to) continue;
    h->queues[k].mover = &h->driver.mover;
    psplit_i_lane *l = &h->lanes[h->driver.n_lanes++];
    *l = (psplit_i_lane){.n_tensors = wire->n_tensors,
                         .queue = &h->queues[k],
                         .ort = ort,
                         .carrier = {.link = k,
                                     .outward = from == rank,
                                     .peer = (int)(from == rank ? to : from),
                                     .chunk_bytes = setup->given.chunk_bytes,
                                     .bell = h->bell,
                                     .channel = psplit_i_channels_get(h->channels, k)}};
    PSPLIT_TRY(psplit_i_lane_init(l, diag));
  }
out:
  return code;
}

static psplit_code make(rank_host *h, const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                        const psplit_i_train_setup *setup, uint32_t rank,
                        psplit_i_timeline *timeline, psplit_i_train_result *result,
                        psplit_diag *diag) {
  const size_t n = (size_t)setup->wiring.n_wires + 1;
  psplit_code code;
  h->queues = calloc(n, sizeof *h->queues);
  h->queue_list = calloc(n, sizeof *h->queue_list);
  h->lanes = calloc(n, sizeof *h->lanes);
  if (!h->queues || !h->queue_list || !h->lanes) return psplit_i_nomem(diag);
  h->n_queues = setup->wiring.n_wires;
  psplit_i_driver_init(&h->driver, &h->host, h->bell, h->lanes);
  PSPLIT_TRY(psplit_i_timeline_init(1, psplit_i_train_n_events(setup), diag, timeline));
  PSPLIT_TRY(open_wires(h, ort, setup, rank, diag));
  PSPLIT_TRY(psplit_i_pulse_create(rank, setup->wiring.n_devices, setup->given.timeout_s, NULL,
                                   diag, &h->pulse));
  h->device = (psplit_i_device){.index = rank,
                                .ort = ort,
                                .pipe = pipe,
                                .setup = setup,
                                .host = &h->host,
                                .queues = h->queue_list,
                                .events = timeline->events,
                                .n_events = timeline->capacity,
                                .sums = timeline->sums,
                                .result = result};
  psplit_i_device_init(&h->device);
  h->started = pthread_create(&h->thread, NULL, thread_main, h) == 0;
  if (!h->started) code = psplit_i_fail(diag, PSPLIT_NOMEM, "no thread can be started");
out:
  return code;
}

static void drop(rank_host *h, bool good) {
  /* After a failure, requests are under way that still use these: the caller ends the process. */
  for (uint32_t i = 0; good && i < h->driver.n_lanes; i++) psplit_i_lane_fini(&h->lanes[i]);
  if (good) psplit_i_pulse_destroy(h->pulse);
  if (good) psplit_i_channels_destroy(h->channels);
  if (good) psplit_i_bell_destroy(h->bell);
  for (uint32_t i = 0; i < h->n_queues; i++) psplit_i_queue_fini(&h->queues[i]);
  free(h->queue_list);
  free(h->queues);
  if (good) free(h->lanes);
  if (h->started) psplit_i_device_fini(&h->device);
  if (h->queues) psplit_i_driver_fini(&h->driver);
  pthread_cond_destroy(&h->changed);
  pthread_mutex_destroy(&h->mutex);
}

/* A psplit_i_train_transport. */
static psplit_code over_mpi(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                            const psplit_i_train_setup *setup, uint32_t rank, psplit_diag *diag,
                            psplit_i_timeline *out, psplit_i_train_result *out_result) {
  rank_host h = {.host = {.meet = meet, .fail = fail}};
  const psplit_i_run_options *run = &setup->run;
  const uint32_t n_ranks = setup->wiring.n_devices;
  psplit_i_timeline mine = {0};
  pthread_condattr_t clock;
  psplit_code code;
  pthread_mutex_init(&h.mutex, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&h.changed, &clock);
  pthread_condattr_destroy(&clock);
  PSPLIT_TRY(psplit_i_mpi_agree(pipe, n_ranks, run, diag));
  PSPLIT_TRY(psplit_i_bell_create(n_ranks, diag, &h.bell));
  PSPLIT_TRY(open_channels(&h, setup, rank, diag));
  code = make(&h, ort, pipe, setup, rank, &mine, out_result, diag);
  if (code == PSPLIT_OK) code = serve(&h, setup, diag);
  if (code != PSPLIT_OK && h.started) {
    fail(&h.host, diag);
    stay_heard(&h, psplit_i_leave_ns(diag));
    if (!wait_ended(&h, 0) && run->give_up) run->give_up(run->give_up_user, diag);
  }
  if (h.started) pthread_join(h.thread, NULL);
  if (code == PSPLIT_OK) code = psplit_i_mpi_gather(&mine, run, rank, n_ranks, diag, out);
out:
  psplit_i_timeline_fini(&mine);
  drop(&h, code == PSPLIT_OK);
  return code;
}

psplit_code psplit_mpi_train(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                             const psplit_train_options *options, psplit_diag *diag,
                             psplit_training_run **out_run) {
  psplit_train_options taken;
  int rank, n_ranks;
  psplit_code code;
  psplit_train_options_init(&taken);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_train_options, options, &taken, diag));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const uint32_t n_stages = pipeline->pipe.manifest.n_stages;
  const uint32_t each = taken.n_chunks ? taken.n_chunks : 1;
  const uint32_t wanted = n_stages / each * taken.n_replicas;
  if (n_stages % each == 0 && (uint32_t)n_ranks != wanted)
    return psplit_i_fail(
      diag, PSPLIT_USAGE,
      "%d ranks for %u stages, %u each, in %u replicas: mpirun -n %u, of the MPI it is built with",
      n_ranks, n_stages, each, taken.n_replicas, wanted);
  code =
    psplit_i_train_over(over_mpi, "mpi", (uint32_t)rank, ort, pipeline, options, diag, out_run);
out:
  return code;
}
