/* A stage at work, inside:
 *
 *   stage.c        its life: stopping it, looking after it, all from the first meeting on
 *   stage_open.c   sessions, feeds and room for tensors, for each replica
 *   stage_step.c   one micro-batch: taken, computed, handed on
 *   stage_run.c    all of them, by one thread or several
 *   stage_state.c  what these ask of it: what it does at the moment, whose turn it is */
#ifndef PSPLIT_RUNTIME_STAGE_INSIDE_H
#define PSPLIT_RUNTIME_STAGE_INSIDE_H

#include "stage.h"

/* What is given to the session of a phase, among the ports of the stage: a range of the lists of
 * the work. Unused optional inputs are not given. */
typedef struct psplit_i_given {
  uint32_t first, n;
} psplit_i_given;

/* What one micro-batch needs, by position in the tables of pipeline.json. */
typedef struct psplit_i_stage_work {
  uint32_t replica;           /* whose it is; feeds and names are the first one's */
  psplit_i_session *sessions; /* [n_phases] */
  psplit_i_given *phases;     /* [n_phases] */
  psplit_i_feed *feeds;       /* [n_inputs] */
  bool *is_fed;               /* [n_inputs] */
  const char **input_names;   /* [n_inputs] given to sessions, by phase */
  uint32_t *input_ports;      /* [n_inputs] */
  uint32_t n_given;
  const char **output_names; /* [n_outputs] */
  bool *stays;               /* [n_outputs] none but the keeper takes it, where there is one */
  psplit_i_tensor **inputs;  /* [n_inputs] by port */
  psplit_i_tensor **given;   /* [n_given], borrowed from inputs */
  psplit_i_tensor **outputs; /* [n_outputs] */
  psplit_diag failure;       /* of the micro-batch at hand; OK: none */
  int64_t deadline_ns;       /* of it; 0: none */
  psplit_i_step step;        /* of it */
} psplit_i_stage_work;

/* A thread of a stage: a replica, and what it is asked for. */
typedef struct psplit_i_side {
  psplit_i_stage *stage;
  psplit_i_stage_work w;
  uint32_t n;
  bool measured, good;
  psplit_diag diag;
} psplit_i_side;

/* The stage that everything below is of comes first. */

/* Around what ONNX Runtime does for a replica. */
void psplit_i_stage_begin(psplit_i_replica *replica, psplit_i_activity activity);
void psplit_i_stage_end(psplit_i_replica *replica);
/* NULL: it need not be held. */
pthread_mutex_t *psplit_i_stage_own_turn(const psplit_i_stage *stage);
void psplit_i_stage_take_turn(pthread_mutex_t *turn);
void psplit_i_stage_leave_turn(pthread_mutex_t *turn);
const psplit_i_keeper *psplit_i_stage_keeper(const psplit_i_stage *stage); /* NULL: none */
/* By who holds the mutex. */
void psplit_i_stage_each_session(const psplit_i_stage *stage, const psplit_i_replica *replica,
                                 void (*act)(psplit_i_session *session));
/* No replica waits for its turn any more. */
void psplit_i_stage_end_turns(psplit_i_stage *stage);

/* Everything for the first replica; for another one, whose feeds are the first one's. What was
 * opened is to be closed after failures too, the first one last. Errors: those of sessions and
 * feeds. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_open_work(psplit_i_stage *stage,
                                                     const psplit_i_manifest_stage *table,
                                                     psplit_i_stage_work *w, psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_stage_open_replica(psplit_i_stage *stage,
                                                        const psplit_i_stage_work *first,
                                                        uint32_t replica, psplit_i_stage_work *w,
                                                        psplit_diag *diag);
void psplit_i_stage_close_replica(psplit_i_stage *stage, psplit_i_stage_work *w);
void psplit_i_stage_close_work(psplit_i_stage *stage, psplit_i_stage_work *w);

/* Fills w->inputs, or w->failure. False if the run was stopped, or *out_end: that was all. */
bool psplit_i_stage_take(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                         psplit_i_event *event, bool *out_end);
/* Runs what was taken, where that is not in vain. */
void psplit_i_stage_compute(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                            psplit_i_event *event);
/* Hands w->outputs, or why there are none, to those behind this stage, or tells them the end.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_give(psplit_i_stage *stage, psplit_i_stage_work *w,
                                                bool end, psplit_diag *diag, bool *out_stopped);
/* Hands on what was computed, also to take_output. Errors: NOMEM, those of take_output. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_hand_on(psplit_i_stage *stage, psplit_i_stage_work *w,
                                                   uint64_t micro_batch, bool measured,
                                                   psplit_i_event *event, psplit_diag *diag,
                                                   bool *out_stopped);

/* Runs micro-batches 0..n-1, in a stream all that come, by all replicas. False if the run was
 * stopped, here (diag tells) or elsewhere. */
bool psplit_i_stage_run_all(psplit_i_stage *stage, psplit_i_side *sides, uint32_t n, bool measured,
                            psplit_diag *diag);

#endif
