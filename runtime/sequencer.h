/* Keeps the replicas of a stage in order: they take micro-batches and pass on results in the order
 * of micro-batches. The thread with micro-batch m waits until all earlier ones have passed. */
#ifndef PSPLIT_RUNTIME_SEQUENCER_H
#define PSPLIT_RUNTIME_SEQUENCER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct psplit_i_sequencer {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t next; /* guarded, like `over` */
  bool over;
} psplit_i_sequencer;

void psplit_i_sequencer_init(psplit_i_sequencer *turns);
void psplit_i_sequencer_fini(psplit_i_sequencer *turns);
/* From micro-batch 0 again; by who knows that nobody waits. */
void psplit_i_sequencer_begin(psplit_i_sequencer *turns);
/* False: there will be no such turn. */
bool psplit_i_sequencer_wait(psplit_i_sequencer *turns, uint64_t micro_batch);
void psplit_i_sequencer_pass(psplit_i_sequencer *turns); /* by who had it */
void psplit_i_sequencer_end(
  psplit_i_sequencer *turns); /* nobody waits any more. From any thread. */

#endif
