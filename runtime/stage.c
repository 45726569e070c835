#include <inttypes.h>
#include <stdlib.h>

#include "stage_inside.h"

void psplit_i_stage_init(psplit_i_stage *stage) {
  pthread_mutex_init(&stage->mutex, NULL);
  psplit_i_sequencer_init(&stage->taking);
  psplit_i_sequencer_init(&stage->giving);
  stage->n_replicas = psplit_i_stage_n_replicas(stage->options, stage->index);
  stage->begins = true;
  for (uint32_t l = 0; l < stage->pipe->n_links; l++) {
    stage->streams |= stage->pipe->links[l].from == PSPLIT_I_OUTSIDE;
    stage->collected |= stage->pipe->links[l].to == PSPLIT_I_OUTSIDE;
    stage->begins &= stage->pipe->links[l].to != stage->index;
  }
  stage->finishes = !stage->collected && psplit_i_pipe_is_final(stage->pipe, stage->index);
}

void psplit_i_stage_fini(psplit_i_stage *stage) {
  psplit_i_sequencer_fini(&stage->giving);
  psplit_i_sequencer_fini(&stage->taking);
  pthread_mutex_destroy(&stage->mutex);
}

void psplit_i_stage_stop(psplit_i_stage *stage) {
  pthread_mutex_lock(&stage->mutex);
  stage->stopped = true;
  for (uint32_t r = 0; r < stage->n_replicas; r++)
    psplit_i_stage_each_session(stage, &stage->replicas[r], psplit_i_session_stop);
  if (stage->process) psplit_i_process_end(stage->process);
  pthread_mutex_unlock(&stage->mutex);
  psplit_i_stage_end_turns(stage);
}

static void stop_late(psplit_i_stage *stage, psplit_i_replica *replica) {
  pthread_mutex_lock(&stage->mutex);
  if (replica->computing && !replica->late && psplit_i_now_ns() > replica->deadline_ns) {
    replica->late = true;
    if (stage->process)
      psplit_i_process_stop_run(stage->process);
    else
      psplit_i_stage_each_session(stage, replica, psplit_i_session_stop);
  }
  pthread_mutex_unlock(&stage->mutex);
}

int64_t psplit_i_stage_look_ns(const psplit_i_run_options *options) {
  static const int64_t LEAST_NS = 1000000, MOST_NS = 50000000;
  const int64_t ns = psplit_i_after(0, options->deadline_s / 10);
  return !ns || ns > MOST_NS ? MOST_NS : ns < LEAST_NS ? LEAST_NS : ns;
}

/* A process of its own is killed where it takes too long, and started again; false: there is none.
 */
static bool look_after(psplit_i_stage *stage, double most_s) {
  pthread_mutex_lock(&stage->mutex);
  const bool has = stage->process;
  if (has) psplit_i_process_look(stage->process, most_s);
  pthread_mutex_unlock(&stage->mutex);
  return has;
}

static psplit_code check_replica(psplit_i_stage *stage, psplit_i_replica *replica,
                                 psplit_diag *diag) {
  const double most_s = stage->options->stall_timeout_s;
  const int64_t since_ns = atomic_load(&replica->since_ns);
  if (!(most_s > 0) || !since_ns || 1e-9 * (double)(psplit_i_now_ns() - since_ns) <= most_s)
    return PSPLIT_OK;
  const psplit_i_activity activity = atomic_load(&replica->activity);
  psplit_i_text what = {0};
  if (activity == PSPLIT_I_COMPUTES)
    psplit_i_text_addf(&what, "has computed micro-batch %" PRIu64,
                       atomic_load(&replica->micro_batch));
  else
    psplit_i_text_puts(&what, activity == PSPLIT_I_OPENS ? "has been opened" : "has been closed");
  const psplit_code code = psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                                               "stage %u (%s) %s for more than %g s", stage->index,
                                               stage->pipe->manifest.stages[stage->index].file,
                                               what.failed ? "is at work" : what.bytes, most_s);
  psplit_i_text_fini(&what);
  return code;
}

psplit_code psplit_i_stage_check(psplit_i_stage *stage, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t r = 0; r < stage->n_replicas; r++) stop_late(stage, &stage->replicas[r]);
  if (look_after(stage, stage->options->stall_timeout_s)) return PSPLIT_OK;
  for (uint32_t r = 0; r < stage->n_replicas && code == PSPLIT_OK; r++)
    code = check_replica(stage, &stage->replicas[r], diag);
  return code;
}

static void set_running(psplit_i_stage *stage, uint32_t replica, psplit_i_session *sessions) {
  pthread_mutex_lock(&stage->mutex);
  stage->replicas[replica].running = sessions;
  if (stage->stopped)
    psplit_i_stage_each_session(stage, &stage->replicas[replica], psplit_i_session_stop);
  pthread_mutex_unlock(&stage->mutex);
}

/* All from the first meeting to the word that this was all. */
static psplit_code work_through(psplit_i_stage *stage, psplit_i_side *sides, psplit_diag *diag) {
  const psplit_i_run_options *options = stage->options;
  psplit_i_host *host = stage->host;
  bool stopped = false;
  if (!host->meet(host)) return diag->code;
  if (options->source && options->source->ready && stage->index == 0)
    options->source->ready(options->source->ready_user);
  if (!stage->streams &&
      !(psplit_i_stage_run_all(stage, sides, options->n_warmup, false, diag) && host->meet(host)))
    return diag->code;
  if (!psplit_i_stage_run_all(stage, sides, options->n_micro_batches, true, diag))
    return diag->code;
  return psplit_i_stage_give(stage, &sides[0].w, true, diag, &stopped);
}

static psplit_code open_sides(psplit_i_stage *stage, psplit_i_side *sides, psplit_diag *diag) {
  psplit_code code;
  for (uint32_t r = 0; r < stage->n_replicas; r++) sides[r].stage = stage;
  PSPLIT_TRY(psplit_i_stage_open_work(stage, &stage->pipe->manifest.stages[stage->index],
                                      &sides[0].w, diag));
  for (uint32_t r = 1; r < stage->n_replicas; r++)
    PSPLIT_TRY(psplit_i_stage_open_replica(stage, &sides[0].w, r, &sides[r].w, diag));
  for (uint32_t r = 0; r < stage->n_replicas && !stage->process; r++)
    set_running(stage, r, sides[r].w.sessions);
out:
  return code;
}

void psplit_i_stage_main(psplit_i_stage *stage) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_diag diag = {0};
  psplit_i_side *sides = calloc(stage->n_replicas, sizeof *sides);
  psplit_code code = sides ? open_sides(stage, sides, &diag) : psplit_i_nomem(&diag);
  if (code == PSPLIT_OK) code = work_through(stage, sides, &diag);
  for (uint32_t r = 0; r < stage->n_replicas; r++) set_running(stage, r, NULL);
  if (code != PSPLIT_OK) {
    psplit_i_diag_context(&diag, "stage %u (%s)", stage->index, table->file);
    stage->host->fail(stage->host, &diag);
  }
  for (uint32_t r = stage->n_replicas; sides && r-- > 1;)
    if (sides[r].w.replica) psplit_i_stage_close_replica(stage, &sides[r].w);
  if (sides) psplit_i_stage_close_work(stage, &sides[0].w);
  free(sides);
}
