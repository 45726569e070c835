/* Source and destination of the micro-batches of a stream, instead of files. */
#ifndef PSPLIT_RUNTIME_SOURCE_H
#define PSPLIT_RUNTIME_SOURCE_H

#include <stdatomic.h>

#include "ort.h"
#include "queue.h"

/* Progress of a stage, which any thread may read. */
typedef struct psplit_i_live {
  _Atomic uint64_t n_micro_batches;
  _Atomic int64_t busy_ns;
  atomic_int pid;                  /* id of its own process; 0: there is none at present */
  atomic_uint n_starts;            /* number of such processes started so far */
  _Atomic uint64_t resident_bytes; /* over MPI: of its rank, as last reported; 0: unknown */
} psplit_i_live;

/* Memory of a process; 0: unknown. */
uint64_t psplit_i_resident_bytes(int pid);

/* Keeps tensors of a sequence in stages from one micro-batch to the next, instead of inputs and
 * outputs of the pipeline, so they remain in the memory of the stage's device. Threads of several
 * stages call it at the same time. */
typedef struct psplit_i_keeper {
  void *user;
  /* Sets the inputs of a stage, by port, that are marked as kept; the caller releases them. */
  psplit_code (*before)(void *user, uint32_t stage, const psplit_i_session *session,
                        const psplit_i_step *step, psplit_i_tensor **inputs, psplit_diag *diag);
  /* Takes the outputs that it keeps, by port, and may replace some of them. */
  psplit_code (*after)(void *user, uint32_t stage, const psplit_i_step *step,
                       psplit_i_tensor **outputs, psplit_diag *diag);
  /* Called before the sessions of a stage are closed: releases the tensors that they created. */
  void (*close)(void *user, uint32_t stage);
} psplit_i_keeper;

typedef struct psplit_i_source {
  /* Called when all stages are open; may be NULL. */
  void (*ready)(void *ready_user);
  void *ready_user;
  void *user;
  /* Waits for a micro-batch: sets inputs[n_needed] of the model, which the caller releases, or
   * *failure. Returns false if there are no more, or once *stopped is true. */
  bool (*next)(void *user, const atomic_bool *stopped, psplit_i_tensor **inputs,
               int64_t *out_deadline_ns, psplit_i_step *out_step, psplit_diag *failure);
  /* The result of the oldest unfinished micro-batch of `next`: outputs[n_outputs] of the model,
   * which are lent, or a failure (OK: none). */
  void (*done)(void *user, psplit_i_tensor *const *outputs, const psplit_diag *failure);
  psplit_i_live *live; /* [n_stages]; may be NULL */
  /* also set in ranks without another use for a source; NULL: none */
  const psplit_i_keeper *keeper;
  const char *const *stage_command; /* psplit_service_options; NULL: none */
} psplit_i_source;

#endif
