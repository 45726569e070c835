/* The set of delivered micro-batches of a run: psplit/run.h. */
#ifndef PSPLIT_RUNTIME_DELIVERED_H
#define PSPLIT_RUNTIME_DELIVERED_H

#include <psplit/run.h>
#include <pthread.h>

/* As it is kept and, over MPI, sent. */
typedef struct psplit_i_delivered_list {
  uint64_t n;
  uint64_t n_ranges; /* that are kept, in order */
  psplit_range ranges[PSPLIT_MOST_RANGES];
} psplit_i_delivered_list;

struct psplit_delivered {
  pthread_mutex_t mutex;
  psplit_i_delivered_list list;
};

/* In the order of micro-batches; NULL is fine. */
void psplit_i_delivered_add(psplit_delivered *delivered, uint64_t micro_batch);
/* Forgets what there was, for what another rank has. Where it makes no sense it stays empty. */
void psplit_i_delivered_set(psplit_delivered *delivered, const psplit_i_delivered_list *list);

#endif
