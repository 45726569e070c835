/* The threads of a run: one per stage, and the feeder and the collector if needed. A computing
 * stage cannot be stopped within a node, nor a thread that opens a file without a writer, so
 * waiting for all threads has a time limit. */
#ifndef PSPLIT_RUNTIME_WORKERS_H
#define PSPLIT_RUNTIME_WORKERS_H

#include "ends.h"

typedef struct psplit_i_worker {
  struct psplit_i_workers *all;
  psplit_i_stage *stage;                  /* NULL: an end of the pipeline */
  void (*body)(const psplit_i_ends *end); /* of an end */
  const char *name;                       /* of an end */
  pthread_t thread;
  bool ended;
} psplit_i_worker;

typedef struct psplit_i_workers {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  const psplit_i_ends *ends;
  psplit_i_worker *each; /* [n] */
  uint32_t n, n_ended;
} psplit_i_workers;

/* Room for a thread for each of n_stages stages and both ends. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_workers_init(psplit_i_workers *workers,
                                                  const psplit_i_ends *ends, uint32_t n_stages,
                                                  psplit_diag *diag);
void psplit_i_workers_fini(psplit_i_workers *workers); /* joined; a zeroed one is fine */

/* Start a thread for a stage, and those for the ends that any stage says there are. Errors: NOMEM.
 */
PSPLIT_MUST_USE psplit_code psplit_i_workers_start(psplit_i_workers *workers, psplit_i_stage *stage,
                                                   psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_workers_start_ends(psplit_i_workers *workers,
                                                        const psplit_i_stage *any,
                                                        psplit_diag *diag);

/* Whether all have ended, after waiting for it so long at most. */
bool psplit_i_workers_wait(psplit_i_workers *workers, int64_t most_ns);

/* Joins all threads, which have been told to stop or have ended. Where one does not end within
 * psplit_i_stop_ns of since_ns, options->give_up is called with `diag` and the names of those that
 * are left. */
void psplit_i_workers_join(psplit_i_workers *workers, int64_t since_ns, const psplit_diag *diag);

#endif
