/* Transport: all devices in one process. A bundle changes hands; no tensor is copied. */
#include <stdlib.h>

#include "patience.h"
#include "train.h"

typedef struct crew {
  psplit_i_host host; /* first: devices know only this */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint32_t n_devices, n_ended;
  psplit_i_barrier barrier;
  psplit_diag diag;
  psplit_i_device *devices;
  pthread_t *threads;
  uint32_t n_started, n_ready; /* threads, devices that are initialised */
  psplit_i_queue *queues;
  psplit_i_queue **queue_list;
  uint32_t n_queues;
} crew;

static bool meet(psplit_i_host *host) {
  crew *c = (crew *)host;
  return psplit_i_barrier_wait(&c->barrier, c->n_devices, host, &c->mutex, &c->changed);
}

static void fail(psplit_i_host *host, const psplit_diag *diag) {
  crew *c = (crew *)host;
  if (!psplit_i_host_stop(host, &c->mutex, &c->changed, diag, &c->diag)) return;
  for (uint32_t i = 0; i < c->n_queues; i++) psplit_i_queue_close(&c->queues[i]);
  for (uint32_t d = 0; d < c->n_ready; d++) psplit_i_device_stop(&c->devices[d]);
}

typedef struct start {
  crew *crew;
  psplit_i_device *device;
} start;

static void *thread_main(void *argument) {
  start s = *(start *)argument;
  free(argument);
  psplit_i_device_main(s.device);
  pthread_mutex_lock(&s.crew->mutex);
  s.crew->n_ended++;
  pthread_cond_broadcast(&s.crew->changed);
  pthread_mutex_unlock(&s.crew->mutex);
  return NULL;
}

static psplit_code make(crew *c, const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                        const psplit_i_train_setup *setup, psplit_i_timeline *timeline,
                        psplit_i_train_result *result, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  c->devices = calloc(c->n_devices, sizeof *c->devices);
  c->threads = calloc(c->n_devices, sizeof *c->threads);
  c->queues = calloc((size_t)setup->wiring.n_wires + 1, sizeof *c->queues);
  c->queue_list = calloc((size_t)setup->wiring.n_wires + 1, sizeof *c->queue_list);
  if (!c->devices || !c->threads || !c->queues || !c->queue_list) return psplit_i_nomem(diag);
  for (; c->n_queues < setup->wiring.n_wires; c->n_queues++) {
    PSPLIT_TRY(psplit_i_queue_init(&c->queues[c->n_queues], psplit_i_train_depth(setup), diag));
    c->queue_list[c->n_queues] = &c->queues[c->n_queues];
  }
  for (; c->n_ready < c->n_devices; c->n_ready++) {
    const uint32_t d = c->n_ready;
    c->devices[d] = (psplit_i_device){.index = d,
                                      .ort = ort,
                                      .pipe = pipe,
                                      .setup = setup,
                                      .host = &c->host,
                                      .queues = c->queue_list,
                                      .events = timeline->events + (size_t)d * timeline->capacity,
                                      .n_events = timeline->capacity,
                                      .sums = &timeline->sums[d],
                                      .result = result};
    psplit_i_device_init(&c->devices[d]);
  }
out:
  return code;
}

static psplit_code start_all(crew *c, psplit_diag *diag) {
  for (; c->n_started < c->n_devices; c->n_started++) {
    start *s = malloc(sizeof *s);
    if (!s) return psplit_i_nomem(diag);
    *s = (start){c, &c->devices[c->n_started]};
    if (pthread_create(&c->threads[c->n_started], NULL, thread_main, s)) {
      free(s);
      return psplit_i_fail(diag, PSPLIT_NOMEM, "cannot start a thread");
    }
  }
  return PSPLIT_OK;
}

/* Whether all have ended, after waiting for it so long at most. */
static bool wait_ended(crew *c, int64_t most_ns) {
  const int64_t until_ns = psplit_i_now_ns() + most_ns;
  bool in_time = true;
  pthread_mutex_lock(&c->mutex);
  while (c->n_ended < c->n_started && in_time)
    in_time = psplit_i_timed_cond_wait(&c->changed, &c->mutex, until_ns);
  const bool all = c->n_ended == c->n_started;
  pthread_mutex_unlock(&c->mutex);
  return all;
}

/* Until all have ended; a device that is stuck fails. */
static void wait_for_all(crew *c, const psplit_i_train_setup *setup) {
  static const int64_t LOOK_NS = 50000000;
  psplit_i_patience patience = {0};
  while (!wait_ended(c, LOOK_NS) && !atomic_load(&c->host.stopped)) {
    psplit_diag late = {0};
    if (psplit_i_patience_check(&patience, setup->given.cancel, c->devices, c->n_devices, &late) !=
        PSPLIT_OK)
      fail(&c->host, &late);
    for (uint32_t d = 0; d < c->n_devices; d++) {
      psplit_diag diag = {0};
      if (psplit_i_watch_check(&c->devices[d].watch, setup->given.stall_timeout_s, &diag) ==
          PSPLIT_OK)
        continue;
      psplit_i_diag_context(&diag, "device %u", d);
      fail(&c->host, &diag);
    }
  }
  const psplit_i_run_options *run = &setup->run;
  if (run->give_up && !wait_ended(c, psplit_i_leave_ns(&c->diag)))
    run->give_up(run->give_up_user, &c->diag);
  for (uint32_t d = 0; d < c->n_started; d++) pthread_join(c->threads[d], NULL);
}

static void drop(crew *c) {
  for (uint32_t d = 0; d < c->n_ready; d++) psplit_i_device_fini(&c->devices[d]);
  for (uint32_t i = 0; i < c->n_queues; i++) psplit_i_queue_fini(&c->queues[i]);
  free(c->queue_list);
  free(c->queues);
  free(c->threads);
  free(c->devices);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->mutex);
}

psplit_code psplit_i_train_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                   const psplit_i_train_setup *setup, uint32_t rank,
                                   psplit_diag *diag, psplit_i_timeline *out,
                                   psplit_i_train_result *out_result) {
  crew c = {.host = {.meet = meet, .fail = fail}, .n_devices = setup->wiring.n_devices};
  psplit_code code;
  (void)rank;
  pthread_mutex_init(&c.mutex, NULL);
  psplit_i_timed_cond_init(&c.changed);
  PSPLIT_TRY(psplit_i_timeline_init(c.n_devices, psplit_i_train_n_events(setup), diag, out));
  PSPLIT_TRY(make(&c, ort, pipe, setup, out, out_result, diag));
  code = start_all(&c, diag);
  if (code != PSPLIT_OK) fail(&c.host, diag);
  wait_for_all(&c, setup);
  if (code == PSPLIT_OK && atomic_load(&c.host.stopped)) {
    *diag = c.diag;
    code = c.diag.code;
  }
  out->n_micro_batches = out->sums[0].n_micro_batches;
out:
  drop(&c);
  return code;
}
