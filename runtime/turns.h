/* Replicas of a stage take micro-batches, and give what they made of them, in the order of these:
 * whoever has micro-batch m waits until all before it are through. */
#ifndef PSPLIT_RUNTIME_TURNS_H
#define PSPLIT_RUNTIME_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct psplit_i_turns {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t next; /* guarded, like `over` */
  bool over;
} psplit_i_turns;

void psplit_i_turns_init(psplit_i_turns *turns);
void psplit_i_turns_fini(psplit_i_turns *turns);
/* From micro-batch 0 again; by who knows that nobody waits. */
void psplit_i_turns_begin(psplit_i_turns *turns);
/* False: there will be no such turn. */
bool psplit_i_turns_wait(psplit_i_turns *turns, uint64_t micro_batch);
void psplit_i_turns_pass(psplit_i_turns *turns); /* by who had it */
void psplit_i_turns_end(psplit_i_turns *turns);  /* nobody waits any more. From any thread. */

#endif
