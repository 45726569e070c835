/* Transport: one stage per MPI rank (mpi_rank.h).
 *
 * The stage computes in a thread of its own and knows only queues; so do, on rank 0, the feeder and
 * the collector. */
#include <limits.h>
#include <mpi.h>
#include <psplit/run_mpi.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "mpi_agree.h"
#include "mpi_device_lock.h"
#include "mpi_gather.h"
#include "mpi_rank.h"
#include "mpi_wait.h"
#include "over_mpi.h"
#include "service.h"
#include "workers.h"

typedef struct port_host {
  psplit_i_rank rank; /* first: of all ranks that compute */
  psplit_i_stage stage;
  psplit_i_ends ends;
  psplit_i_workers workers;
  psplit_i_device_lock *lock;
} port_host;

static bool wait_ended(psplit_i_rank *rank, int64_t most_ns) {
  return psplit_i_workers_wait(&((port_host *)rank)->workers, most_ns);
}

static void stop(psplit_i_rank *rank) { psplit_i_stage_stop(&((port_host *)rank)->stage); }

static psplit_code check(psplit_i_rank *rank, bool done, psplit_diag *diag) {
  port_host *h = (port_host *)rank;
  (void)done;
  const psplit_code code = psplit_i_mpi_check_interrupt(h->ends.options, diag);
  return code == PSPLIT_OK ? psplit_i_stage_check(&h->stage, diag) : code;
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

static const psplit_i_rank_work WORK = {
  .wait = wait_ended, .stop = stop, .check = check, .met = keep_memory};

/* Who gives outputs says which they were, before all ranks are ended. */
static void tell_deliverer(port_host *h, const psplit_diag *diag) {
  psplit_i_driver_enter(&h->rank.driver);
  psplit_i_heartbeat_tell_failure(h->rank.heartbeat, psplit_i_pipe_deliverer(h->ends.pipe), diag);
  psplit_i_driver_leave(&h->rank.driver);
}

static uint32_t rank_of(uint32_t end) { return end == PSPLIT_I_OUTSIDE ? 0 : end; }

/* NULL: out of memory. */
static psplit_i_rank_link *links_of(const psplit_i_ends *ends) {
  const psplit_i_pipe *pipe = ends->pipe;
  psplit_i_rank_link *links = calloc((size_t)pipe->n_links + 1, sizeof *links);
  for (uint32_t k = 0; links && k < pipe->n_links; k++) {
    const psplit_i_pipe_link *link = &pipe->links[k];
    const uint64_t n = psplit_i_pipe_link_bytes(pipe, link);
    const uint32_t depth = psplit_i_ends_depth(ends, k);
    links[k] = (psplit_i_rank_link){
      {rank_of(link->from), rank_of(link->to), 0}, .n_tensors = link->n_tensors, .depth = depth};
    if (n) links[k].ends.n_bytes = psplit_i_lane_bytes(link->n_tensors, n, depth);
  }
  return links;
}

static psplit_code make(port_host *h, psplit_i_timeline *timeline, psplit_diag *diag) {
  const psplit_i_ends *e = &h->ends;
  psplit_code code;
  PSPLIT_TRY(psplit_i_workers_init(&h->workers, e, 1, diag));
  PSPLIT_TRY(psplit_i_timeline_init(1, e->options->n_micro_batches, diag, timeline));
  PSPLIT_TRY(psplit_i_rank_open_links(&h->rank, e->ort, e->options->chunk_bytes, diag));
  h->ends.queues = h->rank.queue_list;
  PSPLIT_TRY(psplit_i_rank_open_heartbeat(
    &h->rank, e->options->timeout_s, e->options->source ? e->options->source->live : NULL, diag));
  h->stage = (psplit_i_stage){.index = h->rank.index,
                              .ort = e->ort,
                              .pipe = e->pipe,
                              .options = e->options,
                              .host = &h->rank.host,
                              .queues = h->rank.queue_list,
                              .device_turn = psplit_i_device_lock_mine(h->lock),
                              .events = timeline->events,
                              .n_events = timeline->capacity,
                              .sums = timeline->sums};
  psplit_i_stage_init(&h->stage);
out:
  return code;
}

/* Until all ranks have done their part, or one has failed. */
static psplit_code compute(port_host *h, psplit_diag *diag) {
  psplit_code code = psplit_i_workers_start(&h->workers, &h->stage, diag);
  if (code == PSPLIT_OK && h->rank.index == 0)
    code = psplit_i_workers_start_ends(&h->workers, &h->stage, diag);
  if (code == PSPLIT_OK) code = psplit_i_rank_serve(&h->rank, diag);
  const int64_t ended_ns = psplit_i_now_ns();
  if (code != PSPLIT_OK) {
    h->rank.host.fail(&h->rank.host, diag);
    tell_deliverer(h, diag);
    psplit_i_rank_stay_heard(&h->rank, ended_ns, psplit_i_stop_ns(h->ends.options));
  }
  psplit_i_workers_join(&h->workers, ended_ns, diag);
  return code;
}

/* A psplit_i_transport. */
static psplit_code over_mpi(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                            const psplit_i_run_options *options, uint32_t rank, psplit_diag *diag,
                            psplit_i_timeline *out) {
  const uint32_t n_ranks = pipe->manifest.n_stages;
  port_host h = {.ends = {.ort = ort, .pipe = pipe, .options = options, .host = &h.rank.host}};
  psplit_i_timeline mine = {0};
  psplit_code code;
  psplit_i_rank_init(&h.rank, &WORK, rank, n_ranks);
  h.rank.failed = options->failed;
  PSPLIT_TRY(psplit_i_mpi_agree(pipe, n_ranks, options, diag));
  PSPLIT_TRY(psplit_i_rank_meet_others(&h.rank, links_of(&h.ends), pipe->n_links, diag));
  PSPLIT_TRY(psplit_i_device_lock_create(&pipe->manifest, rank, diag, &h.lock));
  PSPLIT_TRY(make(&h, &mine, diag));
  code = compute(&h, diag);
  if (code == PSPLIT_OK) code = psplit_i_mpi_gather_delivered(pipe, options, rank, diag);
  if (code == PSPLIT_OK) code = psplit_i_mpi_gather(&mine, options, rank, n_ranks, diag, out);
  psplit_i_stage_fini(&h.stage);
out:
  if (code == PSPLIT_OK) psplit_i_device_lock_destroy(h.lock);
  psplit_i_rank_close(&h.rank, code == PSPLIT_OK);
  psplit_i_workers_fini(&h.workers);
  psplit_i_timeline_fini(&mine);
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
                       "%u rank%s for %u stage%s: mpirun -n %u (of the MPI that it was built with)",
                       n_ranks, n_ranks == 1 ? "" : "s", n_stages, n_stages == 1 ? "" : "s",
                       n_stages);
}

psplit_i_communicator psplit_i_over_mpi(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return (psplit_i_communicator){over_mpi, "mpi", (uint32_t)rank};
}

psplit_code psplit_mpi_run(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                           const psplit_run_options *options, psplit_diag *diag,
                           psplit_run **out_run) {
  const psplit_i_communicator comm = psplit_i_over_mpi();
  const psplit_code code = psplit_mpi_check_ranks(pipeline, diag);
  if (code != PSPLIT_OK) return code;
  return psplit_i_run_over(&comm, ort, pipeline, options, NULL, diag, out_run);
}

psplit_code psplit_mpi_service_start(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                     const psplit_run_options *run,
                                     const psplit_service_options *own, psplit_diag *diag,
                                     psplit_service **out_service) {
  const psplit_code code = psplit_mpi_check_ranks(pipeline, diag);
  if (code != PSPLIT_OK) return code;
  const psplit_i_communicator comm = psplit_i_over_mpi();
  return psplit_i_service_start_over(&comm, ort, pipeline, run, own, diag, out_service);
}

psplit_code psplit_mpi_service_run(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                   const psplit_run_options *run, psplit_diag *diag) {
  psplit_i_source elsewhere = {.user = NULL};
  psplit_run_options options;
  psplit_run *none = NULL;
  const psplit_i_communicator comm = psplit_i_over_mpi();
  psplit_code code;
  psplit_run_options_init(&options);
  PSPLIT_TRY(psplit_mpi_check_ranks(pipeline, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_run_options, run, &options, diag));
  psplit_i_service_run_options(&options);
  elsewhere.live = calloc(pipeline->pipe.manifest.n_stages, sizeof *elsewhere.live);
  if (!elsewhere.live) PSPLIT_FAIL(psplit_i_nomem(diag));
  code = psplit_i_run_over(&comm, ort, pipeline, &options, &elsewhere, diag, &none);
out:
  free(elsewhere.live);
  return code;
}
