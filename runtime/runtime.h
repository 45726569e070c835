/* runtime: runs the stages of a split with ONNX Runtime, concurrently on different micro-batches.
 *
 *   pipeline.c         the communication pattern, from pipeline.json
 *   phases.c           combines several splits into one pipeline
 *   feed.c, feed_shape.c, feed_check.c, made_input.c
 *                      inputs of the model: files, the caller, generated numbers
 *   loss_text.c        the description of a loss in a manifest
 *   records.c          streams of tensors
 *   outputs.c          writes outputs to files
 *   queue.c            bounded queues of bundles of tensors
 *   sequencer.c        keeps replicas of a stage in order
 *   failures.c, delivered.c   failed and delivered micro-batches
 *   frames.c, process.c, process_task.c, process_main.c
 *                      stages in separate processes, for services
 *   stage.c, stage_open.c, stage_run.c, stage_state.c, stage_step.c
 *                      a stage: receives, runs and sends each micro-batch
 *   ends.c             the ends of a pipeline: feeder, collector
 *   workers.c          the threads of a run
 *   threads.c          the transport within a process
 *   resident.c         resident memory of a process
 *   clock.c, timeline.c, report.c, trace_json.c
 *                      measurements, and their report
 *   options.c, run.c   the API of psplit/run.h
 *   compare.c          compares the pipeline with the whole model
 *
 * ONNX Runtime is wrapped in sessions/, tensors in files in arrays/, the MPI transport in mpi/;
 * service/, profile/, gradients/ and train/ are built on pipelines.
 *
 * For each micro-batch, in order, a stage receives one bundle from each predecessor and sends one
 * to each successor, through queues of capacity `depth`. This cannot deadlock: consider the first
 * of the stages with the least current micro-batch. Its predecessors are past this micro-batch, so
 * its inputs are available; its successors have received all earlier bundles, so its outputs have
 * space. */
#ifndef PSPLIT_RUNTIME_RUNTIME_H
#define PSPLIT_RUNTIME_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>

#include "delivered.h"
#include "failures.h"
#include "feed.h"
#include "pipeline.h"
#include "source.h"

/* Receives output `output` (position in the manifest's outputs) of a micro-batch; called by the
 * thread of the only stage that finishes micro-batches, or by the collector. The tensor is lent. */
typedef psplit_code (*psplit_i_output_taker)(void *user, uint32_t micro_batch, uint32_t output,
                                             psplit_i_tensor *tensor, psplit_diag *diag);

/* As n_micro_batches: until the inputs of a stream end. */
#define PSPLIT_I_ENDLESS PSPLIT_RUN_ENDLESS

typedef struct psplit_i_run_options {
  psplit_i_session_options session;
  const psplit_i_session_options *stage_sessions; /* [n_stages]; NULL: `session` for all */
  const uint32_t *n_replicas; /* [n_stages] at most PSPLIT_MOST_REPLICAS; NULL: 1 each */
  /* [n_stages] rows for a stage's replicas; NULL: all are as the first. */
  const psplit_i_session_options *const *replica_sessions;
  psplit_i_feed_options feed;
  uint32_t n_micro_batches; /* measured ones, at least 1; of a stream, at most so many */
  uint32_t n_warmup;     /* run before the clock starts; their outputs are dropped; 0 in streams */
  uint32_t depth;        /* bundles that wait between two stages; 0: ends.h chooses */
  bool pin;              /* threads: a core for each stage, where there are enough */
  pthread_mutex_t *turn; /* threads: held by the stage that computes; NULL: all compute at once */
  double timeout_s;      /* MPI: longest silence of a rank that is waited for */
  double stall_timeout_s, deadline_s; /* psplit_run_options */
  psplit_on_error on_error;
  psplit_i_failures *failures; /* with PSPLIT_ON_ERROR_SKIP: gets them */
  uint32_t first;              /* what the first micro-batch is called outside; here it is 0 */
  psplit_delivered *delivered; /* gets those that are through, by their names outside */
  uint64_t chunk_bytes;        /* MPI: largest message, at most 2^30 */
  psplit_i_output_taker take_output; /* of measured micro-batches; may be NULL */
  void *user;                        /* of take_output */
  const psplit_i_source *source; /* of a stream, in place of files and take_output; NULL: none */
  const atomic_int *interrupted; /* looked at now and then; not 0: stop */
  atomic_bool *failed;           /* set at the first failure, for sinks that wait; may be NULL */
  /* Called where threads have not ended psplit_i_stop_ns after the first failure or an interrupt,
   * which nothing can make them; `diag` says what it was and names them. It ends the process. NULL:
   * they are waited for. */
  void (*give_up)(void *user, const psplit_diag *diag);
  void *give_up_user;
} psplit_i_run_options;

/* How long what was told to stop is waited for, ns: whoever interrupts wants the prompt back. */
static inline int64_t psplit_i_stop_ns(const psplit_i_run_options *options) {
  static const int64_t FAILED_NS = 2000000000, INTERRUPTED_NS = 400000000;
  return options->interrupted && atomic_load(options->interrupted) ? INTERRUPTED_NS : FAILED_NS;
}
enum { PSPLIT_I_STOP_S = 2 }; /* where nobody is waited for: a service */

/* What happened to a micro-batch in a stage: points in time, ns on the clock of rank 0. */
typedef struct psplit_i_event {
  int64_t begin_ns;    /* starts to wait for its inputs */
  int64_t ready_ns;    /* has them */
  int64_t done_ns;     /* has run */
  int64_t sent_ns;     /* has handed over its outputs */
  int64_t transfer_ns; /* time its inputs were on the way */
  uint64_t bytes;      /* of inputs that other stages sent */
  int64_t before_ns;   /* it worked so long for this piece before begin_ns */
} psplit_i_event;

/* Sums over all micro-batches of a stage. */
typedef struct psplit_i_sums {
  int64_t wait_in_ns, busy_ns, wait_out_ns, transfer_ns;
  uint64_t bytes;
  uint64_t n_micro_batches;
  int64_t first_ready_ns, first_sent_ns, last_sent_ns;
} psplit_i_sums;

/* Adds a micro-batch, or a piece of a training step. */
void psplit_i_sums_add(psplit_i_sums *sums, const psplit_i_event *e);

/* A long run keeps the events of its last micro-batches only, so that memory stays bounded. */
enum { PSPLIT_I_MOST_EVENTS = 1 << 14 };

typedef struct psplit_i_timeline {
  uint32_t n_stages;
  uint64_t n_micro_batches;
  uint32_t capacity;      /* micro-batches that there is room for */
  psplit_i_event *events; /* [stage * capacity + micro_batch % capacity]; malloc'd */
  psplit_i_sums *sums;    /* [n_stages]; malloc'd */
} psplit_i_timeline;

PSPLIT_MUST_USE psplit_code psplit_i_timeline_init(uint32_t n_stages, uint32_t n_micro_batches,
                                                   psplit_diag *diag, psplit_i_timeline *out);
void psplit_i_timeline_fini(psplit_i_timeline *timeline); /* a zeroed one is fine */
/* How many events of a stage there are, and the i-th of them, oldest first. */
uint32_t psplit_i_timeline_n(const psplit_i_timeline *timeline);
const psplit_i_event *psplit_i_timeline_event(const psplit_i_timeline *timeline, uint32_t stage,
                                              uint32_t i);
/* What a stage took for each micro-batch that it has events of, least first, into
 * out_ns[psplit_i_timeline_n()]. */
void psplit_i_timeline_times(const psplit_i_timeline *timeline, uint32_t stage, int64_t *out_ns);

/* Runs all stages in this process, a thread each. The first failure stops all; its message names
 * the stage. Errors: those of sessions, of inputs and of take_output; CANCELLED; NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_run_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                                 const psplit_i_run_options *options,
                                                 psplit_diag *diag, psplit_i_timeline *out);

#endif
