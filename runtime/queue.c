#include "queue.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

psplit_i_bundle *psplit_i_bundle_create(uint32_t n) {
  psplit_i_bundle *bundle = calloc(1, sizeof *bundle + n * sizeof *bundle->tensors);
  if (bundle) bundle->n = n;
  return bundle;
}

void psplit_i_bundle_destroy(psplit_i_bundle *bundle) {
  for (uint32_t i = 0; bundle && i < bundle->n; i++) psplit_i_tensor_release(bundle->tensors[i]);
  free(bundle);
}

psplit_code psplit_i_queue_init(psplit_i_queue *queue, uint32_t depth, psplit_diag *diag) {
  *queue = (psplit_i_queue){.depth = depth, .ring = calloc(depth, sizeof *queue->ring)};
  if (!queue->ring) return psplit_i_nomem(diag);
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_cond_init(&queue->changed, &clock);
  pthread_condattr_destroy(&clock);
  return PSPLIT_OK;
}

void psplit_i_queue_fini(psplit_i_queue *queue) {
  if (!queue->ring) return;
  while (queue->n) {
    psplit_i_bundle_destroy(queue->ring[queue->head]);
    queue->head = (queue->head + 1) % queue->depth;
    queue->n--;
  }
  pthread_cond_destroy(&queue->changed);
  pthread_mutex_destroy(&queue->mutex);
  free(queue->ring);
  queue->ring = NULL;
}

int64_t psplit_i_backoff_ns(uint32_t n_idle, int64_t most_ns) {
  enum { LOOKS = 30, DOUBLINGS = 16 };
  static const int64_t SHORTEST_NS = 20000;
  if (n_idle < LOOKS) return 0;
  const uint32_t doublings = n_idle - LOOKS < DOUBLINGS ? n_idle - LOOKS : DOUBLINGS;
  const int64_t ns = SHORTEST_NS << doublings;
  return ns < most_ns ? ns : most_ns;
}

static bool is_full(const psplit_i_queue *queue) {
  return queue->n + queue->n_away >= queue->depth;
}
static bool is_empty(const psplit_i_queue *queue) { return queue->n == 0; }

/* Waits, with the mutex held, until the queue was closed or is not `so`. Where another process has
 * the other end nobody need wake us, so we look. */
static void wait_while(psplit_i_queue *queue, bool (*so)(const psplit_i_queue *)) {
  static const int64_t LONGEST_NS = 1000000;
  for (uint32_t n_idle = 0; !queue->closed && so(queue); n_idle++) {
    if (!queue->mover) {
      pthread_cond_wait(&queue->changed, &queue->mutex);
      continue;
    }
    pthread_mutex_unlock(&queue->mutex);
    if (queue->mover->move(queue->mover)) n_idle = 0;
    const int64_t ns = psplit_i_backoff_ns(n_idle, LONGEST_NS), until = psplit_i_now_ns() + ns;
    if (!ns) sched_yield();
    pthread_mutex_lock(&queue->mutex);
    if (ns && !queue->closed && so(queue))
      pthread_cond_timedwait(&queue->changed, &queue->mutex,
                             &(struct timespec){until / 1000000000, until % 1000000000});
  }
}

/* Moves on what has changed, with no lock held. */
static void tell_mover(psplit_i_queue *queue) {
  if (queue->mover) queue->mover->move(queue->mover);
}

/* Puts it behind the others, with the mutex held. */
static void put(psplit_i_queue *queue, psplit_i_bundle *bundle) {
  queue->ring[(queue->head + queue->n) % queue->depth] = bundle;
  queue->n++;
  pthread_cond_signal(&queue->changed);
}

bool psplit_i_queue_push(psplit_i_queue *queue, psplit_i_bundle *bundle) {
  pthread_mutex_lock(&queue->mutex);
  wait_while(queue, is_full);
  const bool open = !queue->closed;
  if (open) put(queue, bundle);
  pthread_mutex_unlock(&queue->mutex);
  if (open)
    tell_mover(queue);
  else
    psplit_i_bundle_destroy(bundle);
  return open;
}

void psplit_i_queue_arrive(psplit_i_queue *queue, psplit_i_bundle *bundle) {
  pthread_mutex_lock(&queue->mutex);
  const bool open = !queue->closed;
  if (open) put(queue, bundle);
  pthread_mutex_unlock(&queue->mutex);
  if (!open) psplit_i_bundle_destroy(bundle);
}

static psplit_i_bundle *take(psplit_i_queue *queue) {
  if (queue->closed || queue->n == 0) return NULL;
  psplit_i_bundle *bundle = queue->ring[queue->head];
  queue->head = (queue->head + 1) % queue->depth;
  queue->n--;
  return bundle;
}

psplit_i_bundle *psplit_i_queue_pop(psplit_i_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  wait_while(queue, is_empty);
  psplit_i_bundle *bundle = take(queue);
  queue->n_popped += bundle != NULL;
  pthread_cond_signal(&queue->changed);
  pthread_mutex_unlock(&queue->mutex);
  if (bundle) tell_mover(queue);
  return bundle;
}

psplit_i_bundle *psplit_i_queue_send_off(psplit_i_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  psplit_i_bundle *bundle = take(queue);
  queue->n_away += bundle != NULL;
  pthread_mutex_unlock(&queue->mutex);
  return bundle;
}

void psplit_i_queue_free_places(psplit_i_queue *queue, uint32_t n) {
  pthread_mutex_lock(&queue->mutex);
  queue->n_away -= n < queue->n_away ? n : queue->n_away;
  pthread_cond_signal(&queue->changed);
  pthread_mutex_unlock(&queue->mutex);
}

bool psplit_i_queue_has_room(psplit_i_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  const bool has = queue->n < queue->depth;
  pthread_mutex_unlock(&queue->mutex);
  return has;
}

uint64_t psplit_i_queue_n_popped(psplit_i_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  const uint64_t n = queue->n_popped;
  pthread_mutex_unlock(&queue->mutex);
  return n;
}

void psplit_i_queue_close(psplit_i_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  queue->closed = true;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->mutex);
}

int64_t psplit_i_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
