/* A running stage, independent of the transport. */
#ifndef PSPLIT_RUNTIME_STAGE_H
#define PSPLIT_RUNTIME_STAGE_H

#include "process.h"
#include "queue.h"
#include "runtime.h"
#include "sequencer.h"

/* Who runs stages: how they meet, and what happens when one fails. */
typedef struct psplit_i_host {
  /* Waits until every stage is here; false if the run was stopped. */
  bool (*meet)(struct psplit_i_host *host);
  /* Keeps the first failure, closes all queues and stops all sessions. */
  void (*fail)(struct psplit_i_host *host, const psplit_diag *diag);
  atomic_bool stopped; /* there was a failure */
} psplit_i_host;

/* Notes a failure, the first of them in *out_first, and wakes who waits. Whether it was the first:
 * then the caller closes queues and stops sessions. */
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

/* A barrier that a stopped run opens. Zeroed at first. */
typedef struct psplit_i_barrier {
  uint32_t n_here, round;
} psplit_i_barrier;

/* Waits until n threads are here; false if the run was stopped, for all that wait. */
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

/* What a stage does that may never end: calls of ONNX Runtime. */
typedef enum psplit_i_activity {
  PSPLIT_I_WAITS,
  PSPLIT_I_OPENS,
  PSPLIT_I_COMPUTES,
  PSPLIT_I_CLOSES
} psplit_i_activity;

/* By who finishes micro-batches: notes the failure of one, but in the warm-up, or stops the run
 * with it, as options->on_error says. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_host_pass_over(psplit_i_host *host,
                                                    const psplit_i_run_options *options,
                                                    uint64_t micro_batch, bool measured,
                                                    const psplit_diag *failure, psplit_diag *diag,
                                                    bool *out_stopped);

/* One of a stage's threads, which compute micro-batches side by side: the r-th of n has all m with
 * m mod n = r. */
typedef struct psplit_i_replica {
  /* Guarded by the stage's mutex: */
  psplit_i_session *running; /* [pipe->n_phases] for psplit_i_stage_stop; NULL: none is open */
  bool computing, late;      /* a run is under way; it was stopped as too late */
  int64_t deadline_ns;       /* of what is computed */
  _Atomic psplit_i_activity activity;
  _Atomic uint64_t micro_batch; /* that is computed */
  _Atomic int64_t since_ns;     /* when the activity began; 0: it waits */
} psplit_i_replica;

typedef struct psplit_i_stage {
  uint32_t index;
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  const psplit_i_run_options *options;
  psplit_i_host *host;
  psplit_i_queue **queues; /* [pipe->n_links]; those of other stages may be NULL */
  psplit_i_event *events;  /* [n_events] a ring of the last micro-batches */
  uint32_t n_events;
  /* Held while it computes, where other stages run on its device, in this process or, over MPI, on
   * this host; NULL: none do. */
  pthread_mutex_t *device_turn;
  psplit_i_sums *sums;
  uint32_t n_replicas;
  psplit_i_replica replicas[PSPLIT_MOST_REPLICAS]; /* [n_replicas] */
  psplit_i_sequencer taking, giving;               /* where there are several */
  pthread_mutex_t mutex;                           /* guards the replicas and these two: */
  psplit_i_process *process; /* in place of a session; NULL: it is in this process */
  bool stopped;
  bool streams, collected; /* there is a feeder, a collector */
  bool begins;             /* nobody gives it anything */
  bool finishes;           /* micro-batches end here */
} psplit_i_stage;

/* `stage` with its ort, pipe, options, host, queues, events and sums set, ready to run. */
void psplit_i_stage_init(psplit_i_stage *stage);
void psplit_i_stage_fini(psplit_i_stage *stage);

/* How stage `index` is run, the first of its replicas. */
const psplit_i_session_options *psplit_i_stage_session(const psplit_i_run_options *options,
                                                       uint32_t index);
/* How many replicas it has. */
uint32_t psplit_i_stage_n_replicas(const psplit_i_run_options *options, uint32_t index);

/* Opens the session, meets the others, warms up, meets again, runs all micro-batches, and tells the
 * stages behind it that this was all. Failures go to the host. */
void psplit_i_stage_main(psplit_i_stage *stage);

/* Makes psplit_i_stage_main return soon. From any thread. */
void psplit_i_stage_stop(psplit_i_stage *stage);

/* A look from outside, now and then: stops what is computed and too late, and fails where ONNX
 * Runtime has kept the stage for longer than options->stall_timeout_s. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_check(psplit_i_stage *stage, psplit_diag *diag);
/* How often to look. */
int64_t psplit_i_stage_look_ns(const psplit_i_run_options *options);

#endif
