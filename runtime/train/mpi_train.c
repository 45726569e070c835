/* Transport: one device per MPI rank (mpi_rank.h). The device works in a thread of its own. */
#include <mpi.h>
#include <psplit/run_mpi.h>
#include <stdlib.h>

#include "mpi_agree.h"
#include "mpi_gather.h"
#include "mpi_rank.h"
#include "patience.h"
#include "train.h"

typedef struct rank_host {
  psplit_i_rank rank;  /* first: of all ranks that compute */
  bool started, ended; /* the device's thread */
  pthread_t thread;
  psplit_i_device device;
  const psplit_i_train_setup *setup;
  psplit_i_patience patience;
} rank_host;

static void *thread_main(void *argument) {
  rank_host *h = argument;
  psplit_i_device_main(&h->device);
  pthread_mutex_lock(&h->rank.mutex);
  h->ended = true;
  pthread_cond_broadcast(&h->rank.changed);
  pthread_mutex_unlock(&h->rank.mutex);
  psplit_i_doorbell_ring_here(h->rank.doorbell, PSPLIT_I_DOORBELL_STAND_IN);
  return NULL;
}

static bool wait_ended(psplit_i_rank *rank, int64_t most_ns) {
  rank_host *h = (rank_host *)rank;
  const int64_t until_ns = psplit_i_now_ns() + most_ns;
  bool in_time = true;
  pthread_mutex_lock(&rank->mutex);
  while (h->started && !h->ended && in_time)
    in_time = psplit_i_timed_cond_wait(&rank->changed, &rank->mutex, until_ns);
  const bool ended = !h->started || h->ended;
  pthread_mutex_unlock(&rank->mutex);
  return ended;
}

static void stop(psplit_i_rank *rank) { psplit_i_device_stop(&((rank_host *)rank)->device); }

static psplit_code check(psplit_i_rank *rank, bool done, psplit_diag *diag) {
  rank_host *h = (rank_host *)rank;
  const psplit_train_options *given = &h->setup->given;
  const psplit_code code = psplit_i_watch_check(&h->device.watch, given->stall_timeout_s, diag);
  if (code != PSPLIT_OK || done) return code;
  return psplit_i_patience_check(&h->patience, given->cancel, &h->device, 1, diag);
}

static const psplit_i_rank_work WORK = {.wait = wait_ended, .stop = stop, .check = check};

/* NULL: out of memory. */
static psplit_i_rank_link *links_of(const psplit_i_train_setup *setup) {
  const psplit_i_wiring *w = &setup->wiring;
  psplit_i_rank_link *links = calloc((size_t)w->n_wires + 1, sizeof *links);
  for (uint32_t k = 0; links && k < w->n_wires; k++)
    links[k] = (psplit_i_rank_link){{w->wires[k].from_device, w->wires[k].to_device, 0},
                                    .n_tensors = w->wires[k].n_tensors,
                                    .depth = psplit_i_train_depth(setup)};
  return links;
}

static psplit_code make(rank_host *h, const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                        psplit_i_timeline *timeline, psplit_i_train_result *result,
                        psplit_diag *diag) {
  const psplit_i_train_setup *setup = h->setup;
  psplit_code code;
  PSPLIT_TRY(psplit_i_timeline_init(1, psplit_i_train_n_events(setup), diag, timeline));
  PSPLIT_TRY(psplit_i_rank_open_links(&h->rank, ort, setup->given.chunk_bytes, diag));
  PSPLIT_TRY(psplit_i_rank_open_heartbeat(&h->rank, setup->given.timeout_s, NULL, diag));
  h->device = (psplit_i_device){.index = h->rank.index,
                                .ort = ort,
                                .pipe = pipe,
                                .setup = setup,
                                .host = &h->rank.host,
                                .queues = h->rank.queue_list,
                                .events = timeline->events,
                                .n_events = timeline->capacity,
                                .sums = timeline->sums,
                                .result = result};
  psplit_i_device_init(&h->device);
  h->started = pthread_create(&h->thread, NULL, thread_main, h) == 0;
  if (!h->started) code = psplit_i_fail(diag, PSPLIT_NOMEM, "cannot start a thread");
out:
  return code;
}

/* A psplit_i_train_transport. */
static psplit_code over_mpi(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                            const psplit_i_train_setup *setup, uint32_t rank, psplit_diag *diag,
                            psplit_i_timeline *out, psplit_i_train_result *out_result) {
  rank_host h = {.setup = setup};
  const psplit_i_run_options *run = &setup->run;
  const uint32_t n_ranks = setup->wiring.n_devices;
  psplit_i_timeline mine = {0};
  psplit_code code;
  psplit_i_rank_init(&h.rank, &WORK, rank, n_ranks);
  PSPLIT_TRY(psplit_i_mpi_agree(pipe, n_ranks, run, diag));
  PSPLIT_TRY(psplit_i_rank_meet_others(&h.rank, links_of(setup), setup->wiring.n_wires, diag));
  code = make(&h, ort, pipe, &mine, out_result, diag);
  if (code == PSPLIT_OK) code = psplit_i_rank_serve(&h.rank, diag);
  if (code != PSPLIT_OK && h.started) {
    h.rank.host.fail(&h.rank.host, diag);
    psplit_i_rank_stay_heard(&h.rank, psplit_i_now_ns(), psplit_i_leave_ns(diag));
    if (!wait_ended(&h.rank, 0) && run->give_up) run->give_up(run->give_up_user, diag);
  }
  if (h.started) pthread_join(h.thread, NULL);
  if (code == PSPLIT_OK) code = psplit_i_mpi_gather(&mine, run, rank, n_ranks, diag, out);
out:
  psplit_i_timeline_fini(&mine);
  if (h.started) psplit_i_device_fini(&h.device);
  psplit_i_rank_close(&h.rank, code == PSPLIT_OK);
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
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "%d ranks for %u stages, %u each, in %u replicas: mpirun -n %u (of the "
                         "MPI that it was built with)",
                         n_ranks, n_stages, each, taken.n_replicas, wanted);
  const psplit_i_train_communicator comm = {over_mpi, "mpi", (uint32_t)rank};
  code = psplit_i_train_over(&comm, ort, pipeline, options, diag, out_run);
out:
  return code;
}
