/* Transport: all stages in one process. A bundle changes hands; no tensor is copied. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "workers.h"

typedef struct crew {
  psplit_i_host host; /* first: the stages know only this */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint32_t n_stages;
  psplit_i_barrier barrier;
  psplit_diag diag;
  psplit_i_stage *stages;
  pthread_mutex_t *device_lock; /* [n_stages] that of a device's first stage counts */
  psplit_i_ends ends;
  psplit_i_workers workers;
  uint32_t n_ready;       /* stages that are initialised */
  psplit_i_queue *queues; /* [n_links] */
  psplit_i_queue **queue_list;
  uint32_t n_links;
} crew;

static bool meet(psplit_i_host *host) {
  crew *c = (crew *)host;
  return psplit_i_barrier_wait(&c->barrier, c->n_stages, host, &c->mutex, &c->changed);
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  crew *c = (crew *)host;
  if (!psplit_i_host_stop(host, &c->mutex, &c->changed, diag, &c->diag)) return;
  atomic_bool *failed = c->ends.options->failed;
  if (failed) atomic_store(failed, true);
  for (uint32_t l = 0; l < c->n_links; l++) psplit_i_queue_close(&c->queues[l]);
  for (uint32_t s = 0; s < c->n_stages; s++) psplit_i_stage_stop(&c->stages[s]);
}

/* What stopped the run, if anything has. It does not change any more. */
static const psplit_diag *first_failure(crew *c) {
  pthread_mutex_lock(&c->mutex); /* whoever failed may be writing it */
  pthread_mutex_unlock(&c->mutex);
  return &c->diag;
}

/* Whether each stage computes in one thread, so that a core of its own is what it needs. */
static bool single_threaded(const psplit_i_run_options *options, uint32_t n_stages) {
  for (uint32_t s = 0; s < n_stages; s++)
    if (psplit_i_stage_session(options, s)->n_threads != 1) return false;
  return true;
}

/* A core for each stage, where the process may use so many. */
static void pin_to_core(pthread_t thread, uint32_t index, uint32_t n_stages) {
  cpu_set_t allowed, mine;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < (int)n_stages)
    return;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &allowed) || index-- != 0) continue;
    CPU_ZERO(&mine);
    CPU_SET(cpu, &mine);
    pthread_setaffinity_np(thread, sizeof mine, &mine);
    return;
  }
}

/* Waits for all, and looks now and then whether someone interrupts, or a stage is stuck. */
static void wait_for_all(crew *c, const atomic_int *interrupted) {
  const int64_t look_ns = psplit_i_stage_look_ns(c->ends.options);
  while (!psplit_i_workers_wait(&c->workers, look_ns) && !atomic_load(&c->host.stopped)) {
    psplit_diag diag = {0};
    psplit_code code = PSPLIT_OK;
    if (interrupted && atomic_load(interrupted))
      code = psplit_i_fail(&diag, PSPLIT_CANCELLED, "interrupted");
    for (uint32_t s = 0; s < c->n_stages && code == PSPLIT_OK; s++)
      code = psplit_i_stage_check(&c->stages[s], &diag);
    if (code != PSPLIT_OK) fail(&c->host, &diag);
  }
}

static psplit_code start_all(crew *c, psplit_diag *diag) {
  const bool pin = c->ends.options->pin && single_threaded(c->ends.options, c->n_stages);
  psplit_code code = PSPLIT_OK;
  for (uint32_t s = 0; s < c->n_stages; s++) {
    PSPLIT_TRY(psplit_i_workers_start(&c->workers, &c->stages[s], diag));
    if (pin) pin_to_core(c->workers.each[s].thread, s, c->n_stages);
  }
  PSPLIT_TRY(psplit_i_workers_start_ends(&c->workers, &c->stages[0], diag));
out:
  return code;
}

/* A device that has several stages, which is told by its name, computes one thing at a time. NULL
 * for one that has not. */
static pthread_mutex_t *turn_of(crew *c, uint32_t stage) {
  const psplit_i_manifest *manifest = &c->ends.pipe->manifest;
  const char *device = manifest->stages[stage].device;
  uint32_t first = PSPLIT_NONE, n = 0;
  for (uint32_t s = 0; s < c->n_stages; s++) {
    if (strcmp(manifest->stages[s].device, device) != 0) continue;
    if (!n++) first = s;
  }
  return n > 1 ? &c->device_lock[first] : NULL;
}

static psplit_code make(crew *c, const psplit_i_timeline *timeline, psplit_diag *diag) {
  const psplit_i_ends *e = &c->ends;
  psplit_code code = PSPLIT_OK;
  c->stages = calloc(c->n_stages, sizeof *c->stages);
  c->queues = calloc((size_t)c->n_links + 1, sizeof *c->queues);
  c->queue_list = calloc((size_t)c->n_links + 1, sizeof *c->queue_list);
  c->device_lock = calloc(c->n_stages, sizeof(pthread_mutex_t));
  if (!c->stages || !c->queues || !c->queue_list || !c->device_lock) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < c->n_stages; s++) pthread_mutex_init(&c->device_lock[s], NULL);
  c->ends.queues = c->queue_list;
  PSPLIT_TRY(psplit_i_workers_init(&c->workers, e, c->n_stages, diag));
  for (uint32_t l = 0; l < c->n_links; l++) {
    PSPLIT_TRY(psplit_i_queue_init(&c->queues[l], psplit_i_ends_depth(e, l), diag));
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
                                    .device_turn = turn_of(c, s),
                                    .sums = &timeline->sums[s]};
    psplit_i_stage_init(&c->stages[s]);
  }
out:
  return code;
}

static void drop(crew *c) {
  for (uint32_t s = 0; s < c->n_ready; s++) psplit_i_stage_fini(&c->stages[s]);
  for (uint32_t l = 0; c->queues && l < c->n_links; l++) psplit_i_queue_fini(&c->queues[l]);
  for (uint32_t s = 0; c->device_lock && s < c->n_stages; s++)
    pthread_mutex_destroy(&c->device_lock[s]);
  free(c->device_lock);
  free(c->queue_list);
  free(c->queues);
  psplit_i_workers_fini(&c->workers);
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
  psplit_i_workers_join(&c.workers, psplit_i_now_ns(), first_failure(&c));
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
