/* Transport: one stage per MPI rank.
 *
 * The stage computes in a thread of its own and knows only queues; so do, on rank 0, the feeder and
 * the collector. Queues that lead to other ranks are moved by whoever uses them (mpi_driver.c,
 * mpi_lane.c). The main thread gives signs of life (mpi_pulse.c) and moves what comes while the
 * others compute. Every call is non-blocking and tested in turn, so no order of arrival on
 * different links can make ranks wait for each other (see runtime.h), and silence is noticed. */
#include <limits.h>
#include <mpi.h>
#include <psplit/run_mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "mpi_agree.h"
#include "mpi_driver.h"
#include "mpi_gather.h"
#include "mpi_pulse.h"
#include "mpi_turns.h"
#include "mpi_wait.h"
#include "over_mpi.h"
#include "service.h"
#include "workers.h"

typedef struct port_host {
  psplit_i_host host; /* first: the stage knows only this */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint32_t n_met, n_allowed; /* meetings the stage has come to, and that have taken place */
  psplit_diag diag;
  psplit_i_stage stage;
  psplit_i_ends ends;
  psplit_i_workers workers;
  psplit_i_queue *queues;
  psplit_i_queue **queue_list;
  psplit_i_lane *lanes;
  uint32_t n_links;
  psplit_i_bell *bell;
  psplit_i_channels *channels;
  psplit_i_device_turns *turns;
  psplit_i_driver driver;
  psplit_i_pulse *pulse;
} port_host;

bool psplit_mpi_launched(void) {
  return getenv("PMI_RANK") || getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK");
}

psplit_code psplit_mpi_begin(psplit_diag *diag, uint32_t *out_rank, uint32_t *out_n_ranks) {
  int given, rank, n_ranks;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS ||
      given < MPI_THREAD_SERIALIZED)
    return psplit_i_fail(diag, PSPLIT_PLUGIN, "MPI cannot be started with threads");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  *out_rank = (uint32_t)rank;
  *out_n_ranks = (uint32_t)n_ranks;
  return PSPLIT_OK;
}

static volatile sig_atomic_t abort_status;
static void leave(int number) {
  (void)number;
  _Exit(abort_status);
}

/* This process ends at the latest so much later, whatever MPI does. */
static void leave_within(unsigned seconds, int status) {
  abort_status = status;
  signal(SIGALRM, leave);
  struct itimerval left; /* of an interrupt: sooner stays sooner */
  const bool sooner = getitimer(ITIMER_REAL, &left) == 0 && timerisset(&left.it_value) &&
                      left.it_value.tv_sec < (time_t)seconds;
  if (!sooner) alarm(seconds);
}

void psplit_mpi_end(void) {
  /* All is done and told. Some MPI hang here now and then: MPICH 4.0 with UCX over TCP. */
  enum { FINALIZE_S = 4 };
  fflush(NULL);
  leave_within(FINALIZE_S, 0);
  MPI_Finalize();
  alarm(0);
}

void psplit_mpi_abort(int status) {
  static const long TELL_NS = 200000000;
  enum { ABORT_S = 2 };
  /* A launcher that is told to end all may drop what it has not yet passed on: our error line. */
  nanosleep(&(struct timespec){0, TELL_NS}, NULL);
  /* Nor does MPI say how long it takes to abort where a host cannot be reached. */
  leave_within(ABORT_S, status);
  MPI_Abort(MPI_COMM_WORLD, status);
  _Exit(status);
}

static bool meet(psplit_i_host *host) {
  port_host *h = (port_host *)host;
  pthread_mutex_lock(&h->mutex);
  const uint32_t mine = ++h->n_met;
  psplit_i_bell_ring_here(h->bell, PSPLIT_I_BELL_STAND_IN); /* it calls MPI for us */
  while (h->n_allowed < mine && !atomic_load(&host->stopped))
    pthread_cond_wait(&h->changed, &h->mutex);
  const bool good = !atomic_load(&host->stopped);
  pthread_mutex_unlock(&h->mutex);
  return good;
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  port_host *h = (port_host *)host;
  pthread_mutex_lock(&h->mutex);
  const bool first = !atomic_exchange(&host->stopped, true);
  if (first) h->diag = *diag;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->mutex);
  if (!first) return;
  atomic_bool *failed = h->ends.options->failed;
  if (failed) atomic_store(failed, true);
  for (uint32_t l = 0; l < h->n_links; l++)
    if (h->queue_list[l]) psplit_i_queue_close(h->queue_list[l]);
  psplit_i_stage_stop(&h->stage);
}

/* Tensors that arrive are allocated and freed again and again. malloc would give large ones back to
 * the system each time, and page faults cost as much as moving the bytes. Not before sessions are
 * open: what loading a model takes for a while goes back. */
static void keep_memory(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

/* A meeting of all ranks, where this one's stage has come to it. */
static void step_meeting(port_host *h, MPI_Request *barrier) {
  int complete = 0;
  if (*barrier == MPI_REQUEST_NULL) MPI_Ibarrier(MPI_COMM_WORLD, barrier);
  MPI_Test(barrier, &complete, MPI_STATUS_IGNORE);
  if (!complete) return;
  pthread_mutex_lock(&h->mutex);
  if (h->n_allowed++ == 0) keep_memory(); /* the first meeting is that of open sessions */
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->mutex);
}

static bool is_meeting(port_host *h) {
  pthread_mutex_lock(&h->mutex);
  const bool is = h->n_met > h->n_allowed;
  pthread_mutex_unlock(&h->mutex);
  return is;
}

static bool is_done(port_host *h) {
  bool done = psplit_i_workers_wait(&h->workers, 0);
  for (uint32_t i = 0; i < h->driver.n_lanes; i++) done &= h->lanes[i].ended;
  return done;
}

static psplit_code first_failure(port_host *h, psplit_diag *diag) {
  pthread_mutex_lock(&h->mutex);
  *diag = h->diag;
  pthread_mutex_unlock(&h->mutex);
  return diag->code;
}

/* Serves the lanes until this rank and all others have nothing more to do. */
static psplit_code serve(port_host *h, const psplit_i_run_options *options, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  MPI_Request barrier = MPI_REQUEST_NULL;
  bool all_done = false;
  while (!all_done && code == PSPLIT_OK) {
    const uint32_t ticket = psplit_i_bell_ticket(h->bell);
    const bool meeting = is_meeting(h);
    psplit_i_driver_enter(&h->driver);
    const bool done = is_done(h);
    if (meeting) step_meeting(h, &barrier);
    code = psplit_i_pulse_step(h->pulse, done, diag, &all_done);
    psplit_i_driver_leave(&h->driver);
    if (atomic_load(&h->host.stopped)) return first_failure(h, diag);
    if (code == PSPLIT_OK) code = psplit_i_mpi_check_interrupt(options, diag);
    if (code == PSPLIT_OK) code = psplit_i_stage_check(&h->stage, diag);
    if (code == PSPLIT_OK && !all_done)
      psplit_i_driver_stand_by(&h->driver, ticket, meeting || done);
  }
  return code;
}

/* Who gives outputs says which they were, before all ranks are ended. */
static void tell_deliverer(port_host *h, const psplit_diag *diag) {
  psplit_i_driver_enter(&h->driver);
  psplit_i_pulse_tell_failure(h->pulse, psplit_i_pipe_deliverer(h->ends.pipe), diag);
  psplit_i_driver_leave(&h->driver);
}

/* While a stage that was told to stop may still do so: others are to hear of the failure from here,
 * not that this rank is silent. */
static void stay_heard(port_host *h, int64_t since_ns) {
  static const int64_t LOOK_NS = 20000000;
  const int64_t stop_ns = psplit_i_stop_ns(h->ends.options);
  psplit_diag ignored = {0};
  bool all_last;
  while (!psplit_i_workers_wait(&h->workers, LOOK_NS) && psplit_i_now_ns() - since_ns < stop_ns) {
    psplit_i_driver_enter(&h->driver);
    if (psplit_i_pulse_step(h->pulse, false, &ignored, &all_last) != PSPLIT_OK) since_ns -= stop_ns;
    psplit_i_driver_leave(&h->driver);
  }
}

static uint32_t rank_of(uint32_t end) { return end == PSPLIT_I_OUTSIDE ? 0 : end; }

/* By all ranks at once. */
static psplit_code open_channels(port_host *h, uint32_t rank, psplit_diag *diag) {
  const psplit_i_pipe *pipe = h->ends.pipe;
  psplit_i_channel_row *rows = calloc((size_t)pipe->n_links + 1, sizeof *rows);
  if (!rows) return psplit_i_nomem(diag);
  for (uint32_t k = 0; k < pipe->n_links; k++) {
    const psplit_i_pipe_link *link = &pipe->links[k];
    const uint64_t n = psplit_i_pipe_link_bytes(pipe, link);
    rows[k] = (psplit_i_channel_row){rank_of(link->from), rank_of(link->to), 0};
    if (n)
      rows[k].n_bytes = psplit_i_lane_bytes(link->n_tensors, n, psplit_i_ends_depth(&h->ends, k));
  }
  const psplit_code code = psplit_i_channels_create(rank, pipe->manifest.n_stages, rows,
                                                    pipe->n_links, diag, &h->channels);
  free(rows);
  return code;
}

/* A queue for each link that this rank has to do with, and a lane where it leads to another. */
static psplit_code open_links(port_host *h, uint32_t rank, psplit_diag *diag) {
  const psplit_i_pipe *pipe = h->ends.pipe;
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k < pipe->n_links; k++) {
    const psplit_i_pipe_link *link = &pipe->links[k];
    const uint32_t from = rank_of(link->from), to = rank_of(link->to);
    if (from != rank && to != rank) continue;
    PSPLIT_TRY(psplit_i_queue_init(&h->queues[k], psplit_i_ends_depth(&h->ends, k), diag));
    h->queue_list[k] = &h->queues[k];
    if (from == to) continue;
    h->queues[k].mover = &h->driver.mover;
    psplit_i_lane *l = &h->lanes[h->driver.n_lanes++];
    *l = (psplit_i_lane){.n_tensors = link->n_tensors,
                         .queue = &h->queues[k],
                         .ort = h->ends.ort,
                         .carrier = {.link = k,
                                     .outward = from == rank,
                                     .peer = (int)(from == rank ? to : from),
                                     .chunk_bytes = h->ends.options->chunk_bytes,
                                     .bell = h->bell,
                                     .channel = psplit_i_channels_get(h->channels, k)}};
    PSPLIT_TRY(psplit_i_lane_init(l, diag));
  }
out:
  return code;
}

static psplit_code make(port_host *h, uint32_t rank, psplit_i_timeline *timeline,
                        psplit_diag *diag) {
  const psplit_i_ends *e = &h->ends;
  const size_t n_links = (size_t)h->n_links + 1;
  psplit_code code;
  h->queues = calloc(n_links, sizeof *h->queues);
  h->queue_list = calloc(n_links, sizeof *h->queue_list);
  h->lanes = calloc(n_links, sizeof *h->lanes);
  if (!h->queues || !h->queue_list || !h->lanes) return psplit_i_nomem(diag);
  h->ends.queues = h->queue_list;
  PSPLIT_TRY(psplit_i_workers_init(&h->workers, e, 1, diag));
  psplit_i_driver_init(&h->driver, &h->host, h->bell, h->lanes);
  PSPLIT_TRY(psplit_i_timeline_init(1, e->options->n_micro_batches, diag, timeline));
  PSPLIT_TRY(open_links(h, rank, diag));
  PSPLIT_TRY(psplit_i_pulse_create(rank, e->pipe->manifest.n_stages, e->options->timeout_s,
                                   e->options->source ? e->options->source->live : NULL, diag,
                                   &h->pulse));
  h->stage = (psplit_i_stage){.index = rank,
                              .ort = e->ort,
                              .pipe = e->pipe,
                              .options = e->options,
                              .host = &h->host,
                              .queues = h->queue_list,
                              .device_turn = psplit_i_device_turns_mine(h->turns),
                              .events = timeline->events,
                              .n_events = timeline->capacity,
                              .sums = timeline->sums};
  psplit_i_stage_init(&h->stage);
out:
  return code;
}

/* A psplit_i_transport. */
static psplit_code over_mpi(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                            const psplit_i_run_options *options, uint32_t rank, psplit_diag *diag,
                            psplit_i_timeline *out) {
  port_host h = {.host = {.meet = meet, .fail = fail}, .n_links = pipe->n_links};
  psplit_i_timeline mine = {0};
  psplit_code code;
  h.ends = (psplit_i_ends){.ort = ort, .pipe = pipe, .options = options, .host = &h.host};
  pthread_mutex_init(&h.mutex, NULL);
  pthread_cond_init(&h.changed, NULL);
  PSPLIT_TRY(psplit_i_mpi_agree(pipe, pipe->manifest.n_stages, options, diag));
  PSPLIT_TRY(psplit_i_bell_create(pipe->manifest.n_stages, diag, &h.bell));
  PSPLIT_TRY(open_channels(&h, rank, diag));
  PSPLIT_TRY(psplit_i_device_turns_create(&pipe->manifest, rank, diag, &h.turns));
  PSPLIT_TRY(make(&h, rank, &mine, diag));
  code = psplit_i_workers_start(&h.workers, &h.stage, diag);
  if (code == PSPLIT_OK && rank == 0)
    code = psplit_i_workers_start_ends(&h.workers, &h.stage, diag);
  if (code == PSPLIT_OK) code = serve(&h, options, diag);
  const int64_t ended_ns = psplit_i_now_ns();
  if (code != PSPLIT_OK) {
    fail(&h.host, diag);
    tell_deliverer(&h, diag);
    stay_heard(&h, ended_ns);
  }
  psplit_i_workers_join(&h.workers, ended_ns, diag);
  if (code == PSPLIT_OK) code = psplit_i_mpi_gather_delivered(pipe, options, rank, diag);
  if (code == PSPLIT_OK)
    code = psplit_i_mpi_gather(&mine, options, rank, pipe->manifest.n_stages, diag, out);
  psplit_i_stage_fini(&h.stage);
out:
  /* After a failure, requests are under way that still use these: the caller ends the process. */
  for (uint32_t i = 0; code == PSPLIT_OK && i < h.driver.n_lanes; i++)
    psplit_i_lane_fini(&h.lanes[i]);
  if (code == PSPLIT_OK) psplit_i_pulse_destroy(h.pulse);
  if (code == PSPLIT_OK) psplit_i_device_turns_destroy(h.turns);
  if (code == PSPLIT_OK) psplit_i_channels_destroy(h.channels);
  if (code == PSPLIT_OK) psplit_i_bell_destroy(h.bell);
  for (uint32_t l = 0; h.queues && l < pipe->n_links; l++) psplit_i_queue_fini(&h.queues[l]);
  free(h.queue_list);
  free(h.queues);
  psplit_i_workers_fini(&h.workers);
  if (code == PSPLIT_OK) free(h.lanes);
  psplit_i_driver_fini(&h.driver);
  psplit_i_timeline_fini(&mine);
  pthread_cond_destroy(&h.changed);
  pthread_mutex_destroy(&h.mutex);
  return code;
}

static uint32_t ask_size(void) {
  int n_ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  return (uint32_t)n_ranks;
}

psplit_code psplit_mpi_check_ranks(const psplit_pipeline *pipeline, psplit_diag *diag) {
  const uint32_t n_ranks = ask_size(), n_stages = pipeline->pipe.manifest.n_stages;
  if (n_ranks == n_stages) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_USAGE,
                       "%u ranks for %u stages: mpirun -n %u, of the MPI it is built with", n_ranks,
                       n_stages, n_stages);
}

psplit_i_way psplit_i_over_mpi(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return (psplit_i_way){over_mpi, "mpi", (uint32_t)rank};
}

psplit_code psplit_mpi_run(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                           const psplit_run_options *options, psplit_diag *diag,
                           psplit_run **out_run) {
  const psplit_i_way way = psplit_i_over_mpi();
  const psplit_code code = psplit_mpi_check_ranks(pipeline, diag);
  if (code != PSPLIT_OK) return code;
  return psplit_i_run_over(&way, ort, pipeline, options, NULL, diag, out_run);
}

psplit_code psplit_mpi_service_start(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                     const psplit_run_options *run,
                                     const psplit_service_options *own, psplit_diag *diag,
                                     psplit_service **out_service) {
  const psplit_code code = psplit_mpi_check_ranks(pipeline, diag);
  if (code != PSPLIT_OK) return code;
  const psplit_i_way way = psplit_i_over_mpi();
  return psplit_i_service_start_over(&way, ort, pipeline, run, own, diag, out_service);
}

psplit_code psplit_mpi_service_run(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                   const psplit_run_options *run, psplit_diag *diag) {
  psplit_i_source elsewhere = {.user = NULL};
  psplit_run_options options;
  psplit_run *none = NULL;
  const psplit_i_way way = psplit_i_over_mpi();
  psplit_code code;
  psplit_run_options_init(&options);
  PSPLIT_TRY(psplit_mpi_check_ranks(pipeline, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_run_options, run, &options, diag));
  psplit_i_service_run_options(&options);
  elsewhere.live = calloc(pipeline->pipe.manifest.n_stages, sizeof *elsewhere.live);
  if (!elsewhere.live) PSPLIT_FAIL(psplit_i_nomem(diag));
  code = psplit_i_run_over(&way, ort, pipeline, &options, &elsewhere, diag, &none);
out:
  free(elsewhere.live);
  return code;
}
