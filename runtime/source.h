/* Source and destination of the micro-batches of a stream, instead of files. */
#ifndef PSPLIT_RUNTIME_SOURCE_H
#define PSPLIT_RUNTIME_SOURCE_H

#include <stdatomic.h>

#include "ort.h"
#include "queue.h"

/* What a stage has done since the start, readable by any thread meanwhile. */
typedef struct psplit_i_live {
  _Atomic uint64_t n_micro_batches;
  _Atomic int64_t busy_ns;
  atomic_int pid;                  /* of a process of its own; 0: it has none now */
  atomic_uint n_starts;            /* of such processes */
  _Atomic uint64_t resident_bytes; /* over MPI: of its rank, as last heard; 0: not known */
} psplit_i_live;

/* Memory of a process; 0: it is not known. */
uint64_t psplit_i_resident_bytes(int pid);

/* What stages keep of a sequence from one micro-batch to the next, in place of inputs and
 * outputs of the pipeline: it stays in the memory of the stage's device. Called by the thread of a
 * stage, of several at once. */
typedef struct psplit_i_keeper {
  void *user;
  /* Sets those inputs of a stage, by port, that the pipe says are kept; the caller releases
   * them. */
  psplit_code (*before)(void *user, uint32_t stage, const psplit_i_session *session,
                        const psplit_i_step *step, psplit_i_tensor **inputs, psplit_diag *diag);
  /* Takes what it keeps of outputs, by port, and may put others in the place of some. */
  psplit_code (*after)(void *user, uint32_t stage, const psplit_i_step *step,
                       psplit_i_tensor **outputs, psplit_diag *diag);
  /* The sessions of a stage are closed next: what they gave goes before them. */
  void (*close)(void *user, uint32_t stage);
} psplit_i_keeper;

typedef struct psplit_i_source {
  /* All stages are open; may be NULL. */
  void (*ready)(void *ready_user);
  void *ready_user;
  void *user;
  /* Waits for a micro-batch: inputs[n_needed] of the model, which the caller releases, or what is
   * wrong with it, in *failure. False when there are none any more, or *stopped is true. */
  bool (*next)(void *user, const atomic_bool *stopped, psplit_i_tensor **inputs,
               int64_t *out_deadline_ns, psplit_i_step *out_step, psplit_diag *failure);
  /* What became of the one that `next` gave first of those that are not done: outputs[n_outputs] of
   * the model, lent, or a failure (OK: none). */
  void (*done)(void *user, psplit_i_tensor *const *outputs, const psplit_diag *failure);
  psplit_i_live *live;           /* [n_stages]; may be NULL */
  const psplit_i_keeper *keeper; /* also in ranks that have no other use for a source; NULL: none */
  const char *const *stage_command; /* psplit_service_options; NULL: none */
} psplit_i_source;

#endif
