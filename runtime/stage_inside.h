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

/* The inputs of the session of one phase, among the ports of the stage: a range of the lists of the
 * work. Unused optional inputs are left out. */
typedef struct psplit_i_given {
  uint32_t first, n;
} psplit_i_given;

/* The state of one micro-batch. Arrays are indexed by the tables of pipeline.json. */
typedef struct psplit_i_stage_work {
  uint32_t replica;           /* index of the replica; feeds and names are those of the first one */
  psplit_i_session *sessions; /* [n_phases] */
  psplit_i_given *phases;     /* [n_phases] */
  psplit_i_feed *feeds;       /* [n_inputs] */
  bool *is_fed;               /* [n_inputs] */
  const char **input_names;   /* [n_inputs] names of the inputs given to sessions, by phase */
  uint32_t *input_ports;      /* [n_inputs] */
  uint32_t n_given;
  const char **output_names; /* [n_outputs] */
  bool *stays;               /* [n_outputs] only the keeper takes it, if there is one */
  psplit_i_tensor **inputs;  /* [n_inputs] by port */
  psplit_i_tensor **given;   /* [n_given] borrowed from inputs */
  psplit_i_tensor **outputs; /* [n_outputs] */
  psplit_diag failure;       /* of the current micro-batch; OK: none */
  int64_t deadline_ns;       /* of the current micro-batch; 0: none */
  psplit_i_step step;        /* the step of the current micro-batch */
} psplit_i_stage_work;

/* A thread of a stage: a replica, and its task. */
typedef struct psplit_i_side {
  psplit_i_stage *stage;
  psplit_i_stage_work w;
  uint32_t n;
  bool measured, good;
  psplit_diag diag;
} psplit_i_side;

/* The first argument of all functions below is the stage. */

/* Enclose each call of ONNX Runtime for a replica. */
void psplit_i_stage_begin(psplit_i_replica *replica, psplit_i_activity activity);
void psplit_i_stage_end(psplit_i_replica *replica);
/* NULL: no mutex need be held. */
pthread_mutex_t *psplit_i_stage_own_turn(const psplit_i_stage *stage);
void psplit_i_stage_take_turn(pthread_mutex_t *turn);
void psplit_i_stage_leave_turn(pthread_mutex_t *turn);
const psplit_i_keeper *psplit_i_stage_keeper(const psplit_i_stage *stage); /* NULL: none */
/* The caller holds the mutex. */
void psplit_i_stage_each_session(const psplit_i_stage *stage, const psplit_i_replica *replica,
                                 void (*act)(psplit_i_session *session));
/* After this, no replica waits for its turn. */
void psplit_i_stage_end_turns(psplit_i_stage *stage);

/* Opens everything for the first replica, or for another one, which uses the feeds of the first.
 * Must be closed after failures as well, the first replica last. Errors: those of sessions and
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

/* Sets w->inputs, or w->failure. Returns false if the run was stopped or, with *out_end, if there
 * are no more micro-batches. */
bool psplit_i_stage_take(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                         psplit_i_event *event, bool *out_end);
/* Runs the inputs, unless the micro-batch has failed already. */
void psplit_i_stage_compute(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                            psplit_i_event *event);
/* Sends w->outputs, or the failure, to the stages that read them, or tells these that there are no
 * more micro-batches. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_give(psplit_i_stage *stage, psplit_i_stage_work *w,
                                                bool end, psplit_diag *diag, bool *out_stopped);
/* Sends the outputs, also to take_output. Errors: NOMEM, those of take_output. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_hand_on(psplit_i_stage *stage, psplit_i_stage_work *w,
                                                   uint64_t micro_batch, bool measured,
                                                   psplit_i_event *event, psplit_diag *diag,
                                                   bool *out_stopped);

/* Runs micro-batches 0..n-1, or all of a stream, with all replicas. Returns false if the run was
 * stopped, by this stage (see diag) or elsewhere. */
bool psplit_i_stage_run_all(psplit_i_stage *stage, psplit_i_side *sides, uint32_t n, bool measured,
                            psplit_diag *diag);

#endif
