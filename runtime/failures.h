/* Failed micro-batches. A failure passes through the pipeline in place of the tensors, so that all
 * stages stay in step and earlier micro-batches are delivered; the last stage or the collector,
 * which completes micro-batches, ends the run with it or records it. */
#ifndef PSPLIT_RUNTIME_FAILURES_H
#define PSPLIT_RUNTIME_FAILURES_H

#include <psplit/run.h>
#include <pthread.h>

#include "base.h"

/* As it is kept and, over MPI, sent. */
typedef struct psplit_i_failure {
  uint64_t micro_batch;
  int32_t code;
  char message[PSPLIT_DIAG_BYTES];
} psplit_i_failure;

/* Those that were passed over: how many, and the first of them. */
enum { PSPLIT_I_MOST_FAILURES = 256 };
typedef struct psplit_i_failures {
  pthread_mutex_t mutex;
  uint64_t n;
  uint32_t n_kept;
  psplit_i_failure *kept; /* [n_kept] malloc'd */
} psplit_i_failures;

void psplit_i_failures_init(psplit_i_failures *failures);
void psplit_i_failures_fini(psplit_i_failures *failures);
/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_failures_add(psplit_i_failures *failures, uint64_t micro_batch,
                                                  const psplit_diag *why, psplit_diag *diag);

/* Fails where the deadline, a point in time of psplit_i_now_ns, has passed; 0: there is none.
 * Errors: LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_deadline_check(int64_t deadline_ns, psplit_diag *diag);

#endif
