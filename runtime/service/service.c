#include <psplit/run_service.h>
#include <stdlib.h>
#include <time.h>

#include "cancel.h"
#include "queue.h"
#include "requests.h"
#include "run.h"
#include "service.h"

struct psplit_service {
  psplit_i_communicator comm;
  const psplit_onnxruntime *ort;
  psplit_pipeline *pipeline;
  psplit_run_options run;
  psplit_i_requests *requests;
  psplit_i_source source;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool started, ready, ended, joined;
  const volatile int *cancel_start; /* the caller's */
  volatile int cancel;              /* looked at by the run */
  psplit_code code;
  psplit_diag diag; /* of the run */
};

void psplit_service_options_defaults(psplit_service_options *options, size_t struct_size) {
  psplit_service_options defaults = {.max_waiting = 64};
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

static void set(psplit_service *s, bool *what) {
  pthread_mutex_lock(&s->mutex);
  *what = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
}

static void ready(void *user) {
  psplit_service *s = user;
  set(s, &s->ready);
}

static const psplit_diag OVER = {.code = PSPLIT_IO, .message = "the service was stopped"};

/* The run, from the first stage that opens to the last answer. */
static void *service_main(void *user) {
  psplit_service *s = user;
  psplit_run *run = NULL;
  s->code = psplit_i_run_over(&s->comm, s->ort, s->pipeline, &s->run, &s->source, &s->diag, &run);
  psplit_run_destroy(run);
  psplit_i_requests_close(s->requests);
  psplit_i_requests_fail_all(
    s->requests, s->code == PSPLIT_OK || psplit_i_cancelled(&s->cancel) ? &OVER : &s->diag);
  set(s, &s->ended);
  return NULL;
}

static psplit_code make(psplit_service *s, const psplit_run_options *run,
                        const psplit_service_options *own, psplit_diag *diag) {
  psplit_service_options taken;
  const psplit_i_pipe *pipe = &s->pipeline->pipe;
  psplit_code code;
  psplit_service_options_init(&taken);
  psplit_run_options_init(&s->run);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_run_options, run, &s->run, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_service_options, own, &taken, diag));
  if (!(taken.batch_delay_s >= 0))
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "requests wait for others 0 s or more"));
  if (taken.stage_command && s->comm.transport != PSPLIT_I_OVER_THREADS.transport)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "ranks are processes of their own already"));
  if (!taken.max_waiting)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "a service has room for one request at least"));
  const psplit_i_requests_options options = {
    &s->ort->ort,        pipe,           taken.max_waiting, s->run.deadline_s, taken.max_batch,
    taken.batch_delay_s, taken.batch_dim};
  s->source.live = calloc(pipe->manifest.n_stages, sizeof *s->source.live);
  if (!s->source.live) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_requests_create(&options, diag, &s->requests));
  psplit_i_requests_connect(s->requests, &s->source);
  s->source.stage_command = taken.stage_command;
  s->source.ready = ready;
  s->source.ready_user = s;
  s->cancel_start = s->run.cancel;
  psplit_i_service_run_options(&s->run);
  s->run.cancel = &s->cancel;
out:
  return code;
}

void psplit_i_service_run_options(psplit_run_options *run) {
  run->feed = NULL;
  run->output = NULL;
  run->take_output = NULL;
  run->stream = true;
  run->n_micro_batches = PSPLIT_RUN_ENDLESS;
  run->n_warmup = 0;
  run->cancel = NULL;
  run->deadline_s = 0; /* each request has its own */
  run->on_error = PSPLIT_ON_ERROR_SKIP;
}

/* Whether it can take requests: else it has ended, or the caller waits for it no more. */
static bool wait_ready(psplit_service *s) {
  static const int64_t LOOK_NS = 20000000;
  pthread_mutex_lock(&s->mutex);
  while (!s->ready && !s->ended && !psplit_i_cancelled(&s->cancel)) {
    psplit_i_timed_cond_wait(&s->changed, &s->mutex, psplit_i_now_ns() + LOOK_NS);
    if (!s->ready && psplit_i_cancelled(s->cancel_start)) psplit_i_cancel(&s->cancel);
  }
  const bool good = s->ready;
  pthread_mutex_unlock(&s->mutex);
  return good;
}

psplit_code psplit_i_service_start_over(const psplit_i_communicator *comm,
                                        const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                        const psplit_run_options *run,
                                        const psplit_service_options *own, psplit_diag *diag,
                                        psplit_service **out) {
  psplit_service *s = calloc(1, sizeof *s);
  psplit_code code = s ? PSPLIT_OK : psplit_i_nomem(diag);
  if (!s) return code;
  s->comm = *comm;
  s->ort = ort;
  s->pipeline = pipeline;
  pthread_mutex_init(&s->mutex, NULL);
  psplit_i_timed_cond_init(&s->changed);
  PSPLIT_TRY(make(s, run, own, diag));
  if (pthread_create(&s->thread, NULL, service_main, s))
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_NOMEM, "cannot start a thread"));
  s->started = true;
  if (!wait_ready(s)) {
    const bool cancelled = psplit_i_cancelled(&s->cancel);
    code = psplit_service_stop(s, 0, diag);
    if (cancelled) code = psplit_i_interrupted(diag);
  }
out:
  if (code == PSPLIT_OK)
    *out = s;
  else
    psplit_service_destroy(s);
  return code;
}

psplit_code psplit_service_start(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                 const psplit_run_options *run, const psplit_service_options *own,
                                 psplit_diag *diag, psplit_service **out) {
  return psplit_i_service_start_over(&PSPLIT_I_OVER_THREADS, ort, pipeline, run, own, diag, out);
}

psplit_code psplit_service_submit(psplit_service *s, const psplit_request *request,
                                  psplit_diag *diag, uint64_t *out_id) {
  return psplit_i_requests_submit(s->requests, request, diag, out_id);
}

psplit_code psplit_service_wait(psplit_service *s, uint64_t id, double most_s, psplit_diag *diag,
                                const psplit_response **out) {
  return psplit_i_requests_wait(s->requests, id, most_s, diag, out);
}

bool psplit_service_cancel(psplit_service *s, uint64_t id) {
  return psplit_i_requests_cancel(s->requests, id);
}

void psplit_service_get_stats(psplit_service *s, psplit_service_stats *out) {
  psplit_i_requests_get_stats(s->requests, out);
}

void psplit_service_get_stage(const psplit_service *s, uint32_t stage,
                              psplit_service_stage_stats *out) {
  const psplit_i_live *live = &s->source.live[stage];
  const int pid = atomic_load(&live->pid);
  const unsigned n_starts = atomic_load(&live->n_starts);
  psplit_service_stage_stats now = {
    .struct_size = out->struct_size,
    .n_micro_batches = atomic_load(&live->n_micro_batches),
    .busy_ns = atomic_load(&live->busy_ns),
    .n_restarts = n_starts ? n_starts - 1 : 0,
    .resident_bytes = pid ? psplit_i_resident_bytes(pid) : atomic_load(&live->resident_bytes)};
  psplit_i_options_defaults(out, out->struct_size, &now, sizeof now);
}

bool psplit_service_is_ready(psplit_service *s) { return psplit_i_requests_are_open(s->requests); }

/* Whether its stages alone are left, and who started it wants an end. Other ranks end by
 * themselves. */
static bool only_closes(psplit_service *s) {
  psplit_service_stats now = {.struct_size = sizeof now};
  if (s->comm.transport != PSPLIT_I_OVER_THREADS.transport || !psplit_i_cancelled(s->cancel_start))
    return false;
  psplit_i_requests_get_stats(s->requests, &now);
  return !now.n_waiting && !now.n_under_way;
}

/* Whether the run ends by itself within that time, or STOP_S where it only closes. */
static bool wait_end(psplit_service *s, double most_s) {
  static const long LOOK_NS = 5000000;
  int64_t until_ns = psplit_i_after(psplit_i_now_ns(), most_s);
  for (bool closes = false;;) {
    pthread_mutex_lock(&s->mutex);
    const bool ended = s->ended;
    pthread_mutex_unlock(&s->mutex);
    const int64_t now_ns = psplit_i_now_ns();
    if (ended || now_ns >= until_ns) return ended;
    if (!closes && only_closes(s)) {
      const int64_t soon_ns = now_ns + PSPLIT_I_STOP_S * INT64_C(1000000000);
      until_ns = until_ns < soon_ns ? until_ns : soon_ns;
      closes = true;
    }
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
  }
}

psplit_code psplit_service_stop(psplit_service *s, double most_s, psplit_diag *diag) {
  if (s->joined) return PSPLIT_OK;
  psplit_i_requests_close(s->requests);
  if (!wait_end(s, most_s)) {
    const bool closes = most_s > PSPLIT_I_STOP_S && only_closes(s);
    psplit_i_requests_cancel_all(s->requests, &OVER);
    /* What is under way does not come through. */
    if (closes || !wait_end(s, PSPLIT_I_STOP_S)) psplit_i_cancel(&s->cancel);
  }
  pthread_join(s->thread, NULL);
  s->joined = true;
  const bool ok = s->code == PSPLIT_OK || (psplit_i_cancelled(&s->cancel) &&
                                           s->comm.transport == PSPLIT_I_OVER_THREADS.transport);
  return ok ? PSPLIT_OK : psplit_i_fail_as(diag, &s->diag);
}

void psplit_service_destroy(psplit_service *s) {
  psplit_diag ignored = {0};
  if (!s) return;
  if (s->started && !s->joined && psplit_service_stop(s, 0, &ignored) != PSPLIT_OK)
    s->joined = true; /* it has told what it was to who asked */
  psplit_i_requests_destroy(s->requests);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->mutex);
  free(s->source.live);
  free(s);
}
