/* Transport: all stages in one process. A bundle changes hands; no tensor is copied. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "stage.h"

typedef struct crew {
  psplit_i_host host; /* first: the stages know only this */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint32_t n_stages, n_here, n_left, round;
  bool stopped;
  psplit_diag diag;
  psplit_i_stage *stages;
  pthread_t *threads;
  psplit_i_queue *queues; /* [n_links] */
  psplit_i_queue **queue_list;
  uint32_t n_links;
} crew;

static bool meet(psplit_i_host *host) {
  crew *c = (crew *)host;
  pthread_mutex_lock(&c->mutex);
  const uint32_t round = c->round;
  if (++c->n_here == c->n_stages) {
    c->n_here = 0;
    c->round++;
    pthread_cond_broadcast(&c->changed);
  }
  while (c->round == round && !c->stopped) pthread_cond_wait(&c->changed, &c->mutex);
  const bool good = !c->stopped;
  pthread_mutex_unlock(&c->mutex);
  return good;
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  crew *c = (crew *)host;
  pthread_mutex_lock(&c->mutex);
  const bool first = !c->stopped;
  if (first) c->diag = *diag;
  c->stopped = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->mutex);
  if (!first) return;
  for (uint32_t l = 0; l < c->n_links; l++) psplit_i_queue_close(&c->queues[l]);
  for (uint32_t s = 0; s < c->n_stages; s++) psplit_i_stage_stop(&c->stages[s]);
}

/* Whether each stage computes in one thread, so that a core of its own is what it needs. */
static bool single_threaded(const psplit_i_run_options *options, uint32_t n_stages) {
  for (uint32_t s = 0; s < n_stages; s++)
    if (psplit_i_stage_session(options, s)->n_threads != 1) return false;
  return true;
}

/* A core for each stage, where the process may use so many. */
static void pin_to_core(uint32_t index, uint32_t n_stages) {
  cpu_set_t allowed, mine;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < (int)n_stages)
    return;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &allowed) || index-- != 0) continue;
    CPU_ZERO(&mine);
    CPU_SET(cpu, &mine);
    pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
    return;
  }
}

static void *stage_thread(void *argument) {
  psplit_i_stage *stage = argument;
  crew *c = (crew *)stage->host;
  if (stage->options->pin && single_threaded(stage->options, c->n_stages))
    pin_to_core(stage->index, c->n_stages);
  psplit_i_stage_main(stage);
  pthread_mutex_lock(&c->mutex);
  c->n_left--;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->mutex);
  return NULL;
}

/* Waits for all stages, and looks now and then whether someone interrupts. */
static void wait_for_all(crew *c, const atomic_int *interrupted) {
  static const long LOOK_NS = 50000000;
  bool told = false;
  pthread_mutex_lock(&c->mutex);
  while (c->n_left) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->changed, &c->mutex, &until);
    if (told || !interrupted || !atomic_load(interrupted)) continue;
    told = true;
    pthread_mutex_unlock(&c->mutex);
    psplit_diag diag = {0};
    psplit_i_fail(&diag, PSPLIT_IO, "interrupted");
    fail(&c->host, &diag);
    pthread_mutex_lock(&c->mutex);
  }
  pthread_mutex_unlock(&c->mutex);
}

void psplit_i_timeline_fini(psplit_i_timeline *timeline) {
  free(timeline->events);
  timeline->events = NULL;
}

static psplit_code start(crew *c, psplit_diag *diag) {
  for (; c->n_left < c->n_stages; c->n_left++) {
    const int error =
      pthread_create(&c->threads[c->n_left], NULL, stage_thread, &c->stages[c->n_left]);
    if (error) return psplit_i_fail(diag, PSPLIT_NOMEM, "no thread can be started");
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_run_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                 const psplit_i_run_options *options, psplit_diag *diag,
                                 psplit_i_timeline *out) {
  const uint32_t n = pipe->manifest.n_stages, n_mb = options->n_micro_batches;
  crew c = {.host = {meet, fail}, .n_stages = n, .n_links = pipe->n_links};
  psplit_i_timeline timeline = {n, n_mb, calloc((size_t)n * n_mb, sizeof *timeline.events)};
  psplit_code code = PSPLIT_OK;
  pthread_mutex_init(&c.mutex, NULL);
  pthread_cond_init(&c.changed, NULL);
  c.stages = calloc(n, sizeof *c.stages);
  c.threads = calloc(n, sizeof *c.threads);
  c.queues = calloc((size_t)pipe->n_links + 1, sizeof *c.queues);
  c.queue_list = calloc((size_t)pipe->n_links + 1, sizeof *c.queue_list);
  uint32_t n_started = 0, n_ready = 0;
  if (!timeline.events || !c.stages || !c.threads || !c.queues || !c.queue_list) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  for (uint32_t l = 0; l < pipe->n_links; l++) {
    PSPLIT_TRY(psplit_i_queue_init(&c.queues[l], options->depth, diag));
    c.queue_list[l] = &c.queues[l];
  }
  for (; n_ready < n; n_ready++)
    psplit_i_stage_init(&c.stages[n_ready], n_ready, ort, pipe, options, &c.host, c.queue_list,
                        timeline.events + (size_t)n_ready * n_mb);
  pthread_mutex_lock(&c.mutex); /* n_left is not looked at before it is whole */
  code = start(&c, diag);
  n_started = c.n_left;
  pthread_mutex_unlock(&c.mutex);
  if (code != PSPLIT_OK) fail(&c.host, diag);
  wait_for_all(&c, options->interrupted);
  for (uint32_t s = 0; s < n_started; s++) pthread_join(c.threads[s], NULL);
  if (code == PSPLIT_OK && c.stopped) {
    *diag = c.diag;
    code = c.diag.code;
  }
out:
  for (uint32_t s = 0; s < n_ready; s++) psplit_i_stage_fini(&c.stages[s]);
  for (uint32_t l = 0; c.queues && l < pipe->n_links; l++) psplit_i_queue_fini(&c.queues[l]);
  free(c.queue_list);
  free(c.queues);
  free(c.threads);
  free(c.stages);
  pthread_cond_destroy(&c.changed);
  pthread_mutex_destroy(&c.mutex);
  if (code == PSPLIT_OK)
    *out = timeline;
  else
    psplit_i_timeline_fini(&timeline);
  return code;
}
