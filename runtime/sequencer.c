#include "sequencer.h"

void psplit_i_sequencer_init(psplit_i_sequencer *turns) {
  *turns = (psplit_i_sequencer){.next = 0};
  pthread_mutex_init(&turns->mutex, NULL);
  pthread_cond_init(&turns->changed, NULL);
}

void psplit_i_sequencer_fini(psplit_i_sequencer *turns) {
  pthread_cond_destroy(&turns->changed);
  pthread_mutex_destroy(&turns->mutex);
}

void psplit_i_sequencer_begin(psplit_i_sequencer *turns) {
  pthread_mutex_lock(&turns->mutex);
  turns->next = 0;
  turns->over = false;
  pthread_mutex_unlock(&turns->mutex);
}

bool psplit_i_sequencer_wait(psplit_i_sequencer *turns, uint64_t micro_batch) {
  pthread_mutex_lock(&turns->mutex);
  while (turns->next != micro_batch && !turns->over)
    pthread_cond_wait(&turns->changed, &turns->mutex);
  const bool mine = !turns->over;
  pthread_mutex_unlock(&turns->mutex);
  return mine;
}

void psplit_i_sequencer_pass(psplit_i_sequencer *turns) {
  pthread_mutex_lock(&turns->mutex);
  turns->next++;
  pthread_cond_broadcast(&turns->changed);
  pthread_mutex_unlock(&turns->mutex);
}

void psplit_i_sequencer_end(psplit_i_sequencer *turns) {
  pthread_mutex_lock(&turns->mutex);
  turns->over = true;
  pthread_cond_broadcast(&turns->changed);
  pthread_mutex_unlock(&turns->mutex);
}
