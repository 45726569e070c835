/* Observable state of a running stage. */
#include <errno.h>

#include "stage_inside.h"

uint32_t psplit_i_stage_n_replicas(const psplit_i_run_options *options, uint32_t index) {
  return options->n_replicas ? options->n_replicas[index] : 1;
}

const psplit_i_session_options *psplit_i_stage_session(const psplit_i_run_options *options,
                                                       uint32_t index) {
  return options->stage_sessions ? &options->stage_sessions[index] : &options->session;
}

/* By who holds the mutex. */
void psplit_i_stage_each_session(const psplit_i_stage *stage, const psplit_i_replica *replica,
                                 void (*act)(psplit_i_session *session)) {
  for (uint32_t p = 0; replica->running && p < stage->pipe->n_phases; p++)
    act(&replica->running[p]);
}

void psplit_i_stage_end_turns(psplit_i_stage *stage) {
  psplit_i_sequencer_end(&stage->taking);
  psplit_i_sequencer_end(&stage->giving);
}

void psplit_i_stage_begin(psplit_i_replica *replica, psplit_i_activity activity) {
  atomic_store(&replica->activity, activity);
  atomic_store(&replica->since_ns, psplit_i_now_ns());
}

void psplit_i_stage_end(psplit_i_replica *replica) { atomic_store(&replica->since_ns, 0); }

/* Held while ONNX Runtime works for this stage, where it may not do so for others meanwhile. */
pthread_mutex_t *psplit_i_stage_own_turn(const psplit_i_stage *stage) {
  const psplit_i_session_options *session = psplit_i_stage_session(stage->options, stage->index);
  return psplit_i_provider_is_alone(session->provider) ? stage->ort->alone : NULL;
}

void psplit_i_stage_take_turn(pthread_mutex_t *turn) {
  /* Of another process that is no more: the run ends anyway, and nothing is behind the mutex. */
  if (turn && pthread_mutex_lock(turn) == EOWNERDEAD) pthread_mutex_consistent(turn);
}

void psplit_i_stage_leave_turn(pthread_mutex_t *turn) {
  if (turn) pthread_mutex_unlock(turn);
}

const psplit_i_keeper *psplit_i_stage_keeper(const psplit_i_stage *stage) {
  return stage->options->source ? stage->options->source->keeper : NULL;
}

psplit_code psplit_i_host_pass_over(psplit_i_host *host, const psplit_i_run_options *options,
                                    uint64_t micro_batch, bool measured, const psplit_diag *failure,
                                    psplit_diag *diag, bool *out_stopped) {
  if (options->on_error == PSPLIT_ON_ERROR_SKIP && options->failures)
    return measured
             ? psplit_i_failures_add(options->failures, options->first + micro_batch, failure, diag)
             : PSPLIT_OK;
  host->fail(host, failure);
  *out_stopped = true;
  return PSPLIT_OK;
}
