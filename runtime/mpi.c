/* Transport: one stage per MPI rank.
 *
 * The stage computes in a thread of its own and knows only queues. The main thread, the only one
 * that calls MPI, moves bundles between queues and ranks: one at a time on each link, so the order
 * of messages between two ranks on a tag is that of micro-batches. A bundle is one message of
 * sizes, then its data in chunks. Every call is non-blocking and tested in turn, so no order of
 * arrival on different links can make ranks wait for each other (see runtime.h), and silence is
 * noticed. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi_transport.h"
#include "stage.h"

enum {
  TAG_SIZES = 1, /* + 2 * link; the data behind it has TAG_SIZES + 1 + 2 * link */
  /* Of the message of sizes, int64_t for each tensor: type, bytes, rank, dims. */
  SIZES_EACH = 3 + PSPLIT_I_MAX_RANK,
};

/* A bundle on its way over a link, in or out. */
typedef struct lane {
  uint32_t link, n_tensors;
  int peer;
  bool outward;
  enum { IDLE, SIZES, DATA } state;
  uint32_t n_left; /* bundles that have not begun */
  psplit_i_bundle *bundle;
  int64_t *sizes; /* [n_tensors * SIZES_EACH] */
  void **packed;  /* [n_tensors] strings as bytes */
  MPI_Request *requests;
  int n_requests, n_complete, capacity;
  int64_t began_ns;
} lane;

typedef struct port_host {
  psplit_i_host host;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint32_t n_met, n_allowed; /* meetings the stage has come to, and that have taken place */
  bool stopped, done;
  psplit_diag diag;
  psplit_i_stage stage;
  psplit_i_queue *queues;
  psplit_i_queue **queue_list;
  uint32_t n_links;
} port_host;

bool psplit_i_mpi_launched(void) {
  return getenv("PMI_RANK") || getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK");
}

psplit_code psplit_i_mpi_begin(psplit_diag *diag, uint32_t *out_rank, uint32_t *out_n_ranks) {
  int given, rank, n_ranks;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS ||
      given < MPI_THREAD_FUNNELED)
    return psplit_i_fail(diag, PSPLIT_PLUGIN, "MPI cannot be started with threads");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  *out_rank = (uint32_t)rank;
  *out_n_ranks = (uint32_t)n_ranks;
  return PSPLIT_OK;
}

void psplit_i_mpi_end(void) { MPI_Finalize(); }

static volatile sig_atomic_t abort_status;
static void leave(int number) {
  (void)number;
  _Exit(abort_status);
}

_Noreturn void psplit_i_mpi_abort(int status) {
  static const long TELL_NS = 200000000;
  enum { ABORT_S = 10 };
  /* A launcher that is told to end all may drop what it has not yet passed on: our error line. */
  nanosleep(&(struct timespec){0, TELL_NS}, NULL);
  /* Nor does MPI say how long it takes to abort where a host cannot be reached. */
  abort_status = status;
  signal(SIGALRM, leave);
  alarm(ABORT_S);
  MPI_Abort(MPI_COMM_WORLD, status);
  _Exit(status);
}

static bool meet(psplit_i_host *host) {
  port_host *h = (port_host *)host;
  pthread_mutex_lock(&h->mutex);
  const uint32_t mine = ++h->n_met;
  while (h->n_allowed < mine && !h->stopped) pthread_cond_wait(&h->changed, &h->mutex);
  const bool good = !h->stopped;
  pthread_mutex_unlock(&h->mutex);
  return good;
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  port_host *h = (port_host *)host;
  pthread_mutex_lock(&h->mutex);
  const bool first = !h->stopped;
  if (first) h->diag = *diag;
  h->stopped = true;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->mutex);
  if (!first) return;
  for (uint32_t l = 0; l < h->n_links; l++)
    if (h->queue_list[l]) psplit_i_queue_close(h->queue_list[l]);
  psplit_i_stage_stop(&h->stage);
}

static void *stage_thread(void *argument) {
  port_host *h = argument;
  psplit_i_stage_main(&h->stage);
  pthread_mutex_lock(&h->mutex);
  h->done = true;
  pthread_mutex_unlock(&h->mutex);
  return NULL;
}

static bool reserve_requests(lane *l, uint64_t n) {
  if (n > (uint64_t)INT32_MAX / 2) return false;
  if ((int)n <= l->capacity) return true;
  MPI_Request *grown = realloc(l->requests, (size_t)n * sizeof *grown);
  if (!grown) return false;
  l->requests = grown;
  l->capacity = (int)n;
  return true;
}

/* Starts moving `bytes` in messages of at most chunk_bytes each. */
static bool move(lane *l, void *data, uint64_t bytes, uint64_t chunk_bytes) {
  const int tag = TAG_SIZES + 1 + 2 * (int)l->link;
  if (!reserve_requests(l, (uint64_t)l->n_requests + bytes / chunk_bytes + 1)) return false;
  for (uint64_t at = 0; at < bytes; at += chunk_bytes) {
    const int n = (int)(bytes - at < chunk_bytes ? bytes - at : chunk_bytes);
    MPI_Request *request = &l->requests[l->n_requests++];
    if (l->outward)
      MPI_Isend((char *)data + at, n, MPI_BYTE, l->peer, tag, MPI_COMM_WORLD, request);
    else
      MPI_Irecv((char *)data + at, n, MPI_BYTE, l->peer, tag, MPI_COMM_WORLD, request);
  }
  return true;
}

static void clear_packed(lane *l) {
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    free(l->packed[i]);
    l->packed[i] = NULL;
  }
}

static psplit_code begin_out(lane *l, uint64_t chunk_bytes, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_tensor_view view;
  if (!reserve_requests(l, 1)) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    int64_t *sizes = l->sizes + (size_t)i * SIZES_EACH;
    PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
    sizes[0] = view.data_type;
    sizes[1] = (int64_t)view.n_bytes;
    sizes[2] = (int64_t)view.n_dims;
    memcpy(sizes + 3, view.dims, view.n_dims * sizeof *sizes);
  }
  MPI_Isend(l->sizes, (int)l->n_tensors * SIZES_EACH, MPI_INT64_T, l->peer,
            TAG_SIZES + 2 * (int)l->link, MPI_COMM_WORLD, &l->requests[l->n_requests++]);
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    psplit_i_tensor *tensor = l->bundle->tensors[i];
    PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
    if (!view.data && view.n_bytes) {
      l->packed[i] = malloc((size_t)view.n_bytes);
      if (!l->packed[i]) return psplit_i_nomem(diag);
      PSPLIT_TRY(psplit_i_tensor_pack(tensor, &view, diag, l->packed[i]));
    }
    if (!move(l, view.data ? view.data : l->packed[i], view.n_bytes, chunk_bytes))
      return psplit_i_nomem(diag);
  }
  l->state = DATA;
out:
  return code;
}

static psplit_code begin_data_in(lane *l, const psplit_i_ort *ort, uint64_t chunk_bytes,
                                 psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  l->began_ns = psplit_i_now_ns();
  l->bundle = psplit_i_bundle_create(l->n_tensors);
  if (!l->bundle) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    const int64_t *sizes = l->sizes + (size_t)i * SIZES_EACH;
    psplit_i_tensor_view view;
    if (sizes[2] < 0 || sizes[2] > PSPLIT_I_MAX_RANK || sizes[1] < 0)
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "a message of sizes makes no sense");
    PSPLIT_TRY(psplit_i_tensor_create(ort, (int32_t)sizes[0], sizes + 3, (size_t)sizes[2], diag,
                                      &l->bundle->tensors[i]));
    PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
    if (!view.data && sizes[1]) {
      l->packed[i] = malloc((size_t)sizes[1]);
      if (!l->packed[i]) return psplit_i_nomem(diag);
    } else if (view.data && (uint64_t)sizes[1] != view.n_bytes) {
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "a message of sizes makes no sense");
    }
    if (!move(l, view.data ? view.data : l->packed[i], (uint64_t)sizes[1], chunk_bytes))
      return psplit_i_nomem(diag);
    l->bundle->bytes += (uint64_t)sizes[1];
  }
  l->state = DATA;
out:
  return code;
}

/* All data is there: strings are made, the bundle goes to the stage. */
static psplit_code end_data_in(lane *l, psplit_i_queue *queue, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < l->n_tensors; i++) {
    if (!l->packed[i]) continue;
    psplit_i_tensor_view view;
    PSPLIT_TRY(psplit_i_tensor_look(l->bundle->tensors[i], diag, &view));
    PSPLIT_TRY(psplit_i_tensor_unpack(l->bundle->tensors[i], view.n_elements, l->packed[i],
                                      (uint64_t)l->sizes[(size_t)i * SIZES_EACH + 1], diag));
  }
  clear_packed(l);
  l->bundle->transfer_ns = psplit_i_now_ns() - l->began_ns;
  psplit_i_queue_push(queue, l->bundle); /* there was room when the bundle began */
  l->bundle = NULL;
  l->state = IDLE;
out:
  return code;
}

/* Whether all that is under way has arrived. One after the other: MPI_Testall's own declaration
 * makes gcc warn of MPI_STATUSES_IGNORE. */
static bool all_complete(lane *l) {
  for (; l->n_complete < l->n_requests; l->n_complete++) {
    int complete = 0;
    MPI_Test(&l->requests[l->n_complete], &complete, MPI_STATUS_IGNORE);
    if (!complete) return false;
  }
  l->n_requests = l->n_complete = 0;
  return true;
}

/* One look at a lane; *moved says whether something happened. */
static psplit_code step(lane *l, psplit_i_queue *queue, const port_host *h, uint64_t chunk_bytes,
                        psplit_diag *diag, bool *moved) {
  if (l->state == IDLE) {
    if (!l->n_left) return PSPLIT_OK;
    if (l->outward) {
      l->bundle = psplit_i_queue_try_pop(queue);
      if (!l->bundle) return PSPLIT_OK;
    } else if (!psplit_i_queue_has_room(queue)) {
      return PSPLIT_OK;
    }
    *moved = true;
    l->n_left--;
    if (l->outward) return begin_out(l, chunk_bytes, diag);
    if (!reserve_requests(l, 1)) return psplit_i_nomem(diag);
    MPI_Irecv(l->sizes, (int)l->n_tensors * SIZES_EACH, MPI_INT64_T, l->peer,
              TAG_SIZES + 2 * (int)l->link, MPI_COMM_WORLD, &l->requests[0]);
    l->n_requests = 1;
    l->state = SIZES;
    return PSPLIT_OK;
  }
  if (!all_complete(l)) return PSPLIT_OK;
  *moved = true;
  if (l->state == SIZES) return begin_data_in(l, h->stage.ort, chunk_bytes, diag);
  if (!l->outward) return end_data_in(l, queue, diag);
  clear_packed(l);
  psplit_i_bundle_destroy(l->bundle);
  l->bundle = NULL;
  l->state = IDLE;
  return PSPLIT_OK;
}

/* Waits a little when nothing happened: a rank shares its core with its stage. */
static void rest(uint32_t n_idle) {
  static const long SHORT_NS = 20000, LONG_NS = 200000;
  if (n_idle < 20) return;
  nanosleep(&(struct timespec){0, n_idle < 200 ? SHORT_NS : LONG_NS}, NULL);
}

/* What this rank waits for has not moved for too long, or somebody interrupts. */
static psplit_code check_patience(const psplit_i_run_options *options, int64_t silent_since_ns,
                                  const char *what, psplit_diag *diag) {
  if (options->interrupted && atomic_load(options->interrupted))
    return psplit_i_fail(diag, PSPLIT_IO, "interrupted");
  if (1e-9 * (double)(psplit_i_now_ns() - silent_since_ns) > options->timeout_s)
    return psplit_i_fail(diag, PSPLIT_IO,
                         "%s: nothing was heard from the other ranks for %g s "
                         "(see --timeout)",
                         what, options->timeout_s);
  return PSPLIT_OK;
}

static psplit_code wait_for(MPI_Request *request, const psplit_i_run_options *options,
                            const char *what, psplit_diag *diag) {
  const int64_t since = psplit_i_now_ns();
  for (uint32_t n_idle = 0;; n_idle++) {
    int complete = 0;
    MPI_Test(request, &complete, MPI_STATUS_IGNORE);
    if (complete) return PSPLIT_OK;
    const psplit_code code = check_patience(options, since, what, diag);
    if (code != PSPLIT_OK) return code;
    rest(n_idle);
  }
}

/* Serves the lanes until the stage is done and everything is sent. Silence counts only while the
 * stage is not computing: it waits in a queue, or is done. */
static psplit_code serve(port_host *h, lane *lanes, uint32_t n_lanes,
                         const psplit_i_run_options *options, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  int64_t heard_ns = psplit_i_now_ns();
  MPI_Request barrier = MPI_REQUEST_NULL;
  uint32_t n_idle = 0;
  for (;;) {
    bool moved = false, busy = false;
    /* Looked at before the lanes: what a stage gave before it came here or was done is in them. */
    pthread_mutex_lock(&h->mutex);
    const bool stopped = h->stopped, done = h->done, meeting = h->n_met > h->n_allowed;
    pthread_mutex_unlock(&h->mutex);
    if (stopped) {
      *diag = h->diag;
      return h->diag.code;
    }
    for (uint32_t i = 0; i < n_lanes; i++) {
      lane *l = &lanes[i];
      PSPLIT_TRY(step(l, h->queue_list[l->link], h, options->chunk_bytes, diag, &moved));
      if (l->outward) busy |= l->state != IDLE || psplit_i_queue_n(h->queue_list[l->link]) != 0;
    }
    if (meeting && !busy) {
      int complete = 0;
      if (barrier == MPI_REQUEST_NULL) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
      MPI_Test(&barrier, &complete, MPI_STATUS_IGNORE);
      if (complete) {
        barrier = MPI_REQUEST_NULL;
        moved = true;
        pthread_mutex_lock(&h->mutex);
        h->n_allowed++;
        pthread_cond_broadcast(&h->changed);
        pthread_mutex_unlock(&h->mutex);
      }
    }
    if (done && !busy) return PSPLIT_OK;
    if (moved || psplit_i_stage_computes(&h->stage)) heard_ns = psplit_i_now_ns();
    PSPLIT_TRY(check_patience(options, heard_ns, "a stage waits", diag));
    n_idle = moved ? 0 : n_idle + 1;
    rest(n_idle);
  }
out:
  return code;
}

/* How much later this rank's clock is than rank 0's, by the quickest of some round trips. */
static psplit_code clock_offset(uint32_t rank, uint32_t n_ranks,
                                const psplit_i_run_options *options, psplit_diag *diag,
                                int64_t *out_ns) {
  enum { TRIPS = 8, TAG = 0 };
  static const char WHAT[] = "comparing clocks";
  psplit_code code = PSPLIT_OK;
  *out_ns = 0;
  for (uint32_t peer = 1; peer < n_ranks; peer++) {
    if (rank != 0 && rank != peer) continue;
    int64_t best_ns = INT64_MAX;
    for (int trip = 0; trip < TRIPS; trip++) {
      MPI_Request request;
      int64_t theirs = 0;
      const int64_t before = psplit_i_now_ns();
      if (rank == 0) {
        MPI_Irecv(&theirs, 1, MPI_INT64_T, (int)peer, TAG, MPI_COMM_WORLD, &request);
        PSPLIT_TRY(wait_for(&request, options, WHAT, diag));
        theirs = psplit_i_now_ns();
        MPI_Isend(&theirs, 1, MPI_INT64_T, (int)peer, TAG, MPI_COMM_WORLD, &request);
        PSPLIT_TRY(wait_for(&request, options, WHAT, diag));
        continue;
      }
      MPI_Isend(&before, 1, MPI_INT64_T, 0, TAG, MPI_COMM_WORLD, &request);
      PSPLIT_TRY(wait_for(&request, options, WHAT, diag));
      MPI_Irecv(&theirs, 1, MPI_INT64_T, 0, TAG, MPI_COMM_WORLD, &request);
      PSPLIT_TRY(wait_for(&request, options, WHAT, diag));
      const int64_t after = psplit_i_now_ns();
      if (after - before >= best_ns) continue;
      best_ns = after - before;
      *out_ns = before + best_ns / 2 - theirs;
    }
  }
out:
  return code;
}

static void shift(psplit_i_event *events, uint32_t n, int64_t offset_ns) {
  for (uint32_t m = 0; m < n; m++) {
    events[m].begin_ns -= offset_ns;
    events[m].ready_ns -= offset_ns;
    events[m].done_ns -= offset_ns;
    events[m].sent_ns -= offset_ns;
  }
}

static psplit_code gather(psplit_i_event *mine, const psplit_i_run_options *options, uint32_t rank,
                          uint32_t n_ranks, psplit_diag *diag, psplit_i_timeline *out) {
  psplit_code code;
  const size_t n = options->n_micro_batches, bytes = n * sizeof *mine;
  psplit_i_timeline all = {n_ranks, options->n_micro_batches, NULL};
  MPI_Request request;
  int64_t offset_ns;
  if (bytes > INT32_MAX)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "too many micro-batches for a report over MPI");
  PSPLIT_TRY(clock_offset(rank, n_ranks, options, diag, &offset_ns));
  shift(mine, options->n_micro_batches, offset_ns);
  if (rank == 0 && !(all.events = calloc(n * n_ranks, sizeof *mine))) return psplit_i_nomem(diag);
  MPI_Igather(mine, (int)bytes, MPI_BYTE, all.events, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD,
              &request);
  PSPLIT_TRY(wait_for(&request, options, "collecting the report", diag));
  *out = all;
  return PSPLIT_OK;
out:
  psplit_i_timeline_fini(&all);
  return code;
}

static psplit_code open_lanes(const psplit_i_pipe *pipe, const psplit_i_run_options *options,
                              uint32_t rank, port_host *h, lane *lanes, uint32_t *n_lanes,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k < pipe->n_links; k++) {
    const psplit_i_pipe_link *link = &pipe->links[k];
    if (link->from != rank && link->to != rank) continue;
    PSPLIT_TRY(psplit_i_queue_init(&h->queues[k], options->depth, diag));
    h->queue_list[k] = &h->queues[k];
    lane *l = &lanes[(*n_lanes)++];
    *l = (lane){.link = k,
                .n_tensors = link->n_tensors,
                .outward = link->from == rank,
                .peer = (int)(link->from == rank ? link->to : link->from),
                .n_left = options->n_warmup + options->n_micro_batches};
    l->sizes = calloc((size_t)l->n_tensors * SIZES_EACH + 1, sizeof *l->sizes);
    l->packed = calloc((size_t)l->n_tensors + 1, sizeof *l->packed);
    if (!l->sizes || !l->packed) return psplit_i_nomem(diag);
  }
out:
  return code;
}

psplit_code psplit_i_run_mpi(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                             const psplit_i_run_options *options, uint32_t rank, psplit_diag *diag,
                             psplit_i_timeline *out) {
  port_host h = {.host = {meet, fail}, .n_links = pipe->n_links};
  const size_t n_links = (size_t)pipe->n_links + 1;
  psplit_i_event *events = calloc(options->n_micro_batches, sizeof *events);
  lane *lanes = calloc(n_links, sizeof *lanes);
  uint32_t n_lanes = 0;
  pthread_t thread;
  psplit_code code;
  pthread_mutex_init(&h.mutex, NULL);
  pthread_cond_init(&h.changed, NULL);
  h.queues = calloc(n_links, sizeof *h.queues);
  h.queue_list = calloc(n_links, sizeof *h.queue_list);
  psplit_i_stage_init(&h.stage, rank, ort, pipe, options, &h.host, h.queue_list, events);
  if (!events || !lanes || !h.queues || !h.queue_list) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  PSPLIT_TRY(open_lanes(pipe, options, rank, &h, lanes, &n_lanes, diag));
  if (pthread_create(&thread, NULL, stage_thread, &h)) {
    code = psplit_i_fail(diag, PSPLIT_NOMEM, "no thread can be started");
    goto out;
  }
  code = serve(&h, lanes, n_lanes, options, diag);
  if (code != PSPLIT_OK) fail(&h.host, diag);
  pthread_join(thread, NULL);
  if (code == PSPLIT_OK) code = gather(events, options, rank, pipe->manifest.n_stages, diag, out);
out:
  /* After a failure, requests are under way that still use these: the caller ends the process. */
  for (uint32_t i = 0; code == PSPLIT_OK && i < n_lanes; i++) {
    free(lanes[i].sizes);
    free(lanes[i].packed);
    free(lanes[i].requests);
  }
  for (uint32_t l = 0; h.queues && l < pipe->n_links; l++) psplit_i_queue_fini(&h.queues[l]);
  psplit_i_stage_fini(&h.stage);
  free(h.queue_list);
  free(h.queues);
  free(lanes);
  free(events);
  pthread_cond_destroy(&h.changed);
  pthread_mutex_destroy(&h.mutex);
  return code;
}
