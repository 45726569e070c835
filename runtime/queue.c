#include "queue.h"

#include <stdlib.h>

psplit_i_bundle *psplit_i_bundle_create(uint32_t n) {
  psplit_i_bundle *bundle = calloc(1, sizeof *bundle + n * sizeof *bundle->tensors);
  if (bundle) bundle->n = n;
  return bundle;
}

psplit_code psplit_i_bundle_fail(psplit_i_bundle *bundle, const psplit_diag *failure,
                                 psplit_diag *diag) {
  if (failure->code == PSPLIT_OK) return PSPLIT_OK;
  bundle->failure = malloc(sizeof *bundle->failure);
  if (!bundle->failure) return psplit_i_nomem(diag);
  *bundle->failure = *failure;
  return PSPLIT_OK;
}

void psplit_i_bundle_destroy(psplit_i_bundle *bundle) {
  if (bundle) free(bundle->failure);
  for (uint32_t i = 0; bundle && i < bundle->n; i++) psplit_i_tensor_release(bundle->tensors[i]);
  free(bundle);
}

psplit_code psplit_i_queue_init(psplit_i_queue *queue, uint32_t depth, psplit_diag *diag) {
  *queue = (psplit_i_queue){.depth = depth, .ring = calloc(depth, sizeof *queue->ring)};
  if (!queue->ring) return psplit_i_nomem(diag);
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_cond_init(&queue->changed, NULL);
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

static bool is_full(const psplit_i_queue *queue) {
  return queue->n + queue->n_away >= queue->depth;
}
static bool is_empty(const psplit_i_queue *queue) { return queue->n == 0; }

/* Waits, with the mutex held, until the queue was closed or is not `so`. */
static void wait_while(psplit_i_queue *queue, bool (*so)(const psplit_i_queue *)) {
  psplit_i_mover *mover = queue->mover;
  while (!queue->closed && so(queue)) {
    if (!mover) {
      pthread_cond_wait(&queue->changed, &queue->mutex);
      continue;
    }
    pthread_mutex_unlock(&queue->mutex);
    const uint32_t ticket = mover->ticket(mover);
    mover->move(mover);
    pthread_mutex_lock(&queue->mutex);
    if (queue->closed || !so(queue)) return;
    pthread_mutex_unlock(&queue->mutex);
    mover->sleep(mover, ticket);
    pthread_mutex_lock(&queue->mutex);
  }
}

/* With no lock held: other threads may wait for what has changed. */
static void tell(psplit_i_queue *queue) {
  if (queue->mover) queue->mover->wake(queue->mover);
}
/* The same, for changes that concern the other end of the queue. */
static void tell_other_end(psplit_i_queue *queue) {
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
    tell_other_end(queue);
  else
    psplit_i_bundle_destroy(bundle);
  return open;
}

void psplit_i_queue_arrive(psplit_i_queue *queue, psplit_i_bundle *bundle) {
  pthread_mutex_lock(&queue->mutex);
  const bool open = !queue->closed;
  if (open) put(queue, bundle);
  pthread_mutex_unlock(&queue->mutex);
  tell(queue);
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
  if (bundle) tell_other_end(queue);
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
  pthread_mutex_unlock(&queue->mutex);
  tell(queue);
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
  tell(queue);
}
