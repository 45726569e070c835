/* A running stage, independent of the transport. */
#ifndef PSPLIT_RUNTIME_STAGE_H
#define PSPLIT_RUNTIME_STAGE_H

#include "process.h"
#include "queue.h"
#include "runtime.h"
#include "sequencer.h"

/* The environment that runs stages: how they meet, and what happens if one fails. */
typedef struct psplit_i_host {
  /* Waits until every stage has called it. Returns false if the run was stopped. */
  bool (*meet)(struct psplit_i_host *host);
  /* Records the first failure, closes all queues and stops all sessions. */
  void (*fail)(struct psplit_i_host *host, const psplit_diag *diag);
  atomic_bool stopped; /* some stage failed */
} psplit_i_host;

/* Records a failure, the first of them in *out_first, and wakes all waiting threads. Returns
 * whether it is the first; then the caller closes the queues and stops the sessions. */
static inline bool psplit_i_host_stop(psplit_i_host *host, pthread_mutex_t *mutex,
                                      pthread_cond_t *changed, const psplit_diag *diag,
                                      psplit_diag *out_first) {
  pthread_mutex_lock(mutex);
  const bool first = !atomic_exchange(&host->stopped, true);
  if (first) *out_first = *diag;
  pthread_cond_broadcast(changed);
  pthread_mutex_unlock(mutex);
  return first;
}

/* A barrier that opens when the run is stopped. Zeroed at first. */
typedef struct psplit_i_barrier {
  uint32_t n_here, round;
} psplit_i_barrier;

/* Waits until n threads have arrived. Returns false, in all waiting threads, if the run was
 * stopped. */
static inline bool psplit_i_barrier_wait(psplit_i_barrier *barrier, uint32_t n,
                                         const psplit_i_host *host, pthread_mutex_t *mutex,
                                         pthread_cond_t *changed) {
  pthread_mutex_lock(mutex);
  const uint32_t round = barrier->round;
  if (++barrier->n_here == n) {
    barrier->n_here = 0;
    barrier->round++;
    pthread_cond_broadcast(changed);
  }
  while (barrier->round == round && !atomic_load(&host->stopped)) pthread_cond_wait(changed, mutex);
  const bool good = !atomic_load(&host->stopped);
  pthread_mutex_unlock(mutex);
  return good;
}

/* Activities of a stage that may never end: calls of ONNX Runtime. */
typedef enum psplit_i_activity {
  PSPLIT_I_WAITS,
  PSPLIT_I_OPENS,
  PSPLIT_I_COMPUTES,
  PSPLIT_I_CLOSES
} psplit_i_activity;

/* Called by whatever completes micro-batches: records the failure of one, except in the warm-up, or
 * stops the run with it, as options->on_error says. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_host_pass_over(psplit_i_host *host,
                                                    const psplit_i_run_options *options,
                                                    uint64_t micro_batch, bool measured,
                                                    const psplit_diag *failure, psplit_diag *diag,
                                                    bool *out_stopped);

/* One of a stage's threads, which compute micro-batches in parallel: replica r of n has all
 * micro-batches m with m mod n = r. */
typedef struct psplit_i_replica {
  /* Guarded by the stage's mutex: */
  /* [pipe->n_phases] sessions that psplit_i_stage_stop stops; NULL: none is open */
  psplit_i_session *running;
  /* a run is in progress; it was stopped because it exceeded its deadline */
  bool computing, late;
  int64_t deadline_ns; /* of the micro-batch that is computed */
  _Atomic psplit_i_activity activity;
  _Atomic uint64_t micro_batch; /* the micro-batch that is computed */
  _Atomic int64_t since_ns;     /* start of the activity; 0: the thread waits */
} psplit_i_replica;

typedef struct psplit_i_stage {
  uint32_t index;
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  const psplit_i_run_options *options;
  psplit_i_host *host;
  psplit_i_queue **queues; /* [pipe->n_links]; those of other stages may be NULL */
  psplit_i_event *events;  /* [n_events] ring buffer of the latest micro-batches */
  uint32_t n_events;
  /* Held during computation if other stages run on the same device, in this process or, over MPI,
   * on this host; NULL: none do. */
  pthread_mutex_t *device_turn;
  psplit_i_sums *sums;
  uint32_t n_replicas;
  psplit_i_replica replicas[PSPLIT_MOST_REPLICAS]; /* [n_replicas] */
  psplit_i_sequencer taking, giving;               /* if there are several replicas */
  pthread_mutex_t mutex; /* guards the replicas, and the two fields below */
  /* runs the sessions in another process; NULL: they are in this process */
  psplit_i_process *process;
  bool stopped;
  bool streams, collected; /* there is a feeder; there is a collector */
  bool begins;             /* no other stage or feeder sends it anything */
  bool finishes;           /* it completes micro-batches */
} psplit_i_stage;

/* Prepares `stage`, whose ort, pipe, options, host, queues, events and sums are set. */
void psplit_i_stage_init(psplit_i_stage *stage);
void psplit_i_stage_fini(psplit_i_stage *stage);

/* The options of the sessions of stage `index`, of its first replica. */
const psplit_i_session_options *psplit_i_stage_session(const psplit_i_run_options *options,
                                                       uint32_t index);
/* Its number of replicas. */
uint32_t psplit_i_stage_n_replicas(const psplit_i_run_options *options, uint32_t index);

/* Opens the session, meets the other stages, warms up, meets them again, runs all micro-batches,
 * and tells the stages that read from it that there are no more. Failures go to the host. */
void psplit_i_stage_main(psplit_i_stage *stage);

/* Makes psplit_i_stage_main return soon. Any thread may call it. */
void psplit_i_stage_stop(psplit_i_stage *stage);

/* Called periodically by another thread: stops a computation that exceeds its deadline, and fails
 * if ONNX Runtime has held the stage longer than options->stall_timeout_s. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_check(psplit_i_stage *stage, psplit_diag *diag);
/* The period of these calls. */
int64_t psplit_i_stage_look_ns(const psplit_i_run_options *options);

#endif
