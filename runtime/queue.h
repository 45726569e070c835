/* Bounded queues of bundles between stages, and the switch that stops them all. */
#ifndef PSPLIT_RUNTIME_QUEUE_H
#define PSPLIT_RUNTIME_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "clock.h"
#include "tensor.h"

/* Whose micro-batch it is, where stages keep something of a sequence from one to the next. */
typedef struct psplit_i_step {
  uint64_t sequence;
  uint64_t position; /* so much of the sequence came before */
  uint64_t slot;     /* where stages keep what is the sequence's, and of no other at the time */
  uint32_t phase;    /* which of the models that stages hold parts of */
} psplit_i_step;

/* All tensors that one stage sends to another for one micro-batch, in the order of their tags; NULL
 * are those of other phases. */
typedef struct psplit_i_bundle {
  uint32_t n;
  uint64_t bytes;      /* of their data; filled in by who moves it */
  int64_t transfer_ns; /* time its data was on the way; 0 where it did not move */
  bool end;            /* no micro-batch: none comes behind it, and there are no tensors */
  psplit_diag
    *failure;          /* why the micro-batch is not computed, and there are no tensors; malloc'd */
  int64_t deadline_ns; /* when it has to be through, on this process's clock; 0: whenever */
  psplit_i_step step;
  psplit_i_tensor *tensors[];
} psplit_i_bundle;

psplit_i_bundle *psplit_i_bundle_create(uint32_t n); /* NULL when out of memory */
/* A copy of `failure`, unless it is none (OK). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bundle_fail(psplit_i_bundle *bundle,
                                                 const psplit_diag *failure, psplit_diag *diag);
void psplit_i_bundle_destroy(psplit_i_bundle *bundle); /* releases the tensors; NULL is fine */

/* Moves bundles between queues of different processes; any thread that uses such a queue calls it,
 * with no lock held. */
typedef struct psplit_i_mover {
  /* Moves what can be moved without waiting. */
  void (*move)(struct psplit_i_mover *mover);
  /* Sleeps after a move in vain, until something may have come since the ticket was taken, which
   * was before the move, or for a while. */
  uint32_t (*ticket)(struct psplit_i_mover *mover);
  void (*sleep)(struct psplit_i_mover *mover, uint32_t ticket);
  /* Wakes who sleeps: a queue has changed. */
  void (*wake)(struct psplit_i_mover *mover);
} psplit_i_mover;

/* A bounded queue with one producer and one consumer. Where they are in different processes, each
 * has a queue and a transport moves bundles from one to the other; a bundle then keeps its place in
 * the producer's queue until the consumer has taken it, so that no more are under way than within a
 * process. */
typedef struct psplit_i_queue {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  psplit_i_bundle **ring; /* [depth] */
  uint32_t depth, head, n;
  uint32_t n_away;       /* places of bundles that psplit_i_queue_send_off gave */
  uint64_t n_popped;     /* by psplit_i_queue_pop, since the beginning */
  psplit_i_mover *mover; /* NULL: both ends are in this process */
  bool closed;
} psplit_i_queue;

PSPLIT_MUST_USE psplit_code psplit_i_queue_init(psplit_i_queue *queue, uint32_t depth,
                                                psplit_diag *diag);
/* Destroys what is still in it. */
void psplit_i_queue_fini(psplit_i_queue *queue);

/* Waits for room. False if the queue was closed: the bundle is destroyed then. */
bool psplit_i_queue_push(psplit_i_queue *queue, psplit_i_bundle *bundle);
/* Waits for a bundle, which the caller then owns; NULL if the queue was closed. */
psplit_i_bundle *psplit_i_queue_pop(psplit_i_queue *queue);
/* For transports; these do not wait. A bundle, which the caller then owns, or NULL; its place stays
 * taken until psplit_i_queue_free_places. */
psplit_i_bundle *psplit_i_queue_send_off(psplit_i_queue *queue);
void psplit_i_queue_free_places(psplit_i_queue *queue, uint32_t n);
bool psplit_i_queue_has_room(psplit_i_queue *queue);
/* Where there is room. The bundle is destroyed if the queue was closed. */
void psplit_i_queue_arrive(psplit_i_queue *queue, psplit_i_bundle *bundle);
uint64_t psplit_i_queue_n_popped(psplit_i_queue *queue);
/* Wakes whoever waits; from then on nothing goes in or out. */
void psplit_i_queue_close(psplit_i_queue *queue);

#endif
