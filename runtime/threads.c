/* Transport: all stages in one process. A bundle changes hands; no tensor is copied. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "ends.h"

typedef struct crew {
  psplit_i_host host; /* first: the stages know only this */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint32_t n_stages, n_here, n_ended, round;
  psplit_diag diag;
  psplit_i_stage *stages;
  psplit_i_ends ends;
  pthread_t *threads;          /* of the stages, the feeder, the collector */
  uint32_t n_started, n_ready; /* threads; stages that are initialised */
  psplit_i_queue *queues;      /* [n_links] */
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
  while (c->round == round && !atomic_load(&host->stopped))
    pthread_cond_wait(&c->changed, &c->mutex);
  const bool good = !atomic_load(&host->stopped);
  pthread_mutex_unlock(&c->mutex);
  return good;
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  crew *c = (crew *)host;
  pthread_mutex_lock(&c->mutex);
  const bool first = !atomic_exchange(&host->stopped, true);
  if (first) c->diag = *diag;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->mutex);
  if (!first) return;
  atomic_bool *failed = c->ends.options->failed;
  if (failed) atomic_store(failed, true);
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

static void count_end(crew *c) {
  pthread_mutex_lock(&c->mutex);
  c->n_ended++;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->mutex);
}

static void *stage_thread(void *argument) {
  psplit_i_stage *stage = argument;
  crew *c = (crew *)stage->host;
  if (stage->options->pin && single_threaded(stage->options, c->n_stages))
    pin_to_core(stage->index, c->n_stages);
  psplit_i_stage_main(stage);
  count_end(c);
  return NULL;
}

static void *feeder_thread(void *argument) {
  crew *c = argument;
  psplit_i_feeder_main(&c->ends);
  count_end(c);
  return NULL;
}

static void *collector_thread(void *argument) {
  crew *c = argument;
  psplit_i_collector_main(&c->ends);
  count_end(c);
  return NULL;
}

/* Waits for all stages, and looks now and then whether someone interrupts. */
static void wait_for_all(crew *c, const atomic_int *interrupted) {
  static const long LOOK_NS = 50000000;
  bool told = false;
  pthread_mutex_lock(&c->mutex);
  while (c->n_ended < c->n_started) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->changed, &c->mutex, &until);
    if (told || !interrupted || !atomic_load(interrupted)) continue;
    told = true;
    pthread_mutex_unlock(&c->mutex);
    psplit_diag diag = {PSPLIT_IO, "interrupted"};
    fail(&c->host, &diag);
    pthread_mutex_lock(&c->mutex);
  }
  pthread_mutex_unlock(&c->mutex);
}

static bool start(crew *c, void *(*body)(void *), void *argument) {
  if (pthread_create(&c->threads[c->n_started], NULL, body, argument)) return false;
  c->n_started++;
  return true;
}

static psplit_code start_all(crew *c, psplit_diag *diag) {
  bool good = true;
  for (uint32_t s = 0; s < c->n_stages && good; s++) good = start(c, stage_thread, &c->stages[s]);
  if (good && c->stages[0].streams) good = start(c, feeder_thread, c);
  if (good && c->stages[0].collected) good = start(c, collector_thread, c);
  return good ? PSPLIT_OK : psplit_i_fail(diag, PSPLIT_NOMEM, "no thread can be started");
}

static psplit_code make(crew *c, const psplit_i_timeline *timeline, psplit_diag *diag) {
  const psplit_i_ends *e = &c->ends;
  psplit_code code = PSPLIT_OK;
  c->stages = calloc(c->n_stages, sizeof *c->stages);
  c->threads = calloc((size_t)c->n_stages + 2, sizeof *c->threads);
  c->queues = calloc((size_t)c->n_links + 1, sizeof *c->queues);
  c->queue_list = calloc((size_t)c->n_links + 1, sizeof *c->queue_list);
  if (!c->stages || !c->threads || !c->queues || !c->queue_list) return psplit_i_nomem(diag);
  c->ends.queues = c->queue_list;
  for (uint32_t l = 0; l < c->n_links; l++) {
    PSPLIT_TRY(psplit_i_queue_init(&c->queues[l], e->options->depth, diag));
    c->queue_list[l] = &c->queues[l];
  }
  for (; c->n_ready < c->n_stages; c->n_ready++) {
    const uint32_t s = c->n_ready;
    c->stages[s] = (psplit_i_stage){.index = s,
                                    .ort = e->ort,
                                    .pipe = e->pipe,
                                    .options = e->options,
                                    .host = &c->host,
                                    .queues = c->queue_list,
                                    .events = timeline->events + (size_t)s * timeline->capacity,
                                    .n_events = timeline->capacity,
                                    .sums = &timeline->sums[s]};
    psplit_i_stage_init(&c->stages[s]);
  }
out:
  return code;
}

static void drop(crew *c) {
  for (uint32_t s = 0; s < c->n_ready; s++) psplit_i_stage_fini(&c->stages[s]);
  for (uint32_t l = 0; c->queues && l < c->n_links; l++) psplit_i_queue_fini(&c->queues[l]);
  free(c->queue_list);
  free(c->queues);
  free(c->threads);
  free(c->stages);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->mutex);
}

psplit_code psplit_i_run_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                 const psplit_i_run_options *options, psplit_diag *diag,
                                 psplit_i_timeline *out) {
  crew c = {.host = {.meet = meet, .fail = fail},
            .n_stages = pipe->manifest.n_stages,
            .n_links = pipe->n_links};
  psplit_i_timeline timeline = {0};
  psplit_code code;
  c.ends = (psplit_i_ends){.ort = ort, .pipe = pipe, .options = options, .host = &c.host};
  pthread_mutex_init(&c.mutex, NULL);
  pthread_cond_init(&c.changed, NULL);
  PSPLIT_TRY(psplit_i_timeline_init(c.n_stages, options->n_micro_batches, diag, &timeline));
  PSPLIT_TRY(make(&c, &timeline, diag));
  code = start_all(&c, diag);
  if (code != PSPLIT_OK) fail(&c.host, diag);
  wait_for_all(&c, options->interrupted);
  for (uint32_t t = 0; t < c.n_started; t++) pthread_join(c.threads[t], NULL);
  if (code == PSPLIT_OK && atomic_load(&c.host.stopped)) {
    *diag = c.diag;
    code = c.diag.code;
  }
  timeline.n_micro_batches = timeline.sums[0].n_micro_batches;
out:
  drop(&c);
  if (code == PSPLIT_OK)
    *out = timeline;
  else
    psplit_i_timeline_fini(&timeline);
  return code;
}
