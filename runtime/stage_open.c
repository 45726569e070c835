/* Opening the sessions, inputs and buffers of a stage. */
#include <stdlib.h>

#include "stage_inside.h"

static void close_process(psplit_i_stage *stage) {
  pthread_mutex_lock(&stage->mutex);
  psplit_i_process *process = stage->process;
  stage->process = NULL;
  pthread_mutex_unlock(&stage->mutex);
  psplit_i_process_destroy(process);
}

static void close_sessions(psplit_i_stage *stage, psplit_i_stage_work *w) {
  pthread_mutex_t *turn = psplit_i_stage_own_turn(stage);
  const psplit_i_keeper *keeper = psplit_i_stage_keeper(stage);
  psplit_i_stage_take_turn(turn);
  psplit_i_stage_begin(&stage->replicas[w->replica], PSPLIT_I_CLOSES);
  if (keeper) keeper->close(keeper->user, stage->index);
  for (uint32_t p = 0; w->sessions && p < stage->pipe->n_phases; p++)
    psplit_i_session_close(&w->sessions[p]);
  psplit_i_stage_end(&stage->replicas[w->replica]);
  psplit_i_stage_leave_turn(turn);
}

/* What every replica has for itself. */
void psplit_i_stage_close_replica(psplit_i_stage *stage, psplit_i_stage_work *w) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_i_tensors_release(w->inputs, table->n_inputs);
  psplit_i_tensors_release(w->outputs, table->n_outputs);
  close_sessions(stage, w);
  free(w->sessions);
  free(w->inputs);
  free(w->given);
  free(w->outputs);
}

void psplit_i_stage_close_work(psplit_i_stage *stage, psplit_i_stage_work *w) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  for (uint32_t i = 0; w->feeds && i < table->n_inputs; i++) psplit_i_feed_close(&w->feeds[i]);
  close_process(stage);
  psplit_i_stage_close_replica(stage, w);
  free(w->phases);
  free(w->feeds);
  free(w->is_fed);
  free(w->input_names);
  free(w->input_ports);
  free(w->output_names);
  free(w->stays);
}

/* The inputs of a phase: those that this stage reads by itself, and what its session is given. */
static psplit_code open_feeds(const psplit_i_stage *stage, uint32_t phase, psplit_i_stage_work *w,
                              psplit_diag *diag) {
  const psplit_i_phase_stage *own = &stage->pipe->phases[phase].stages[stage->index];
  const psplit_i_row *rows = stage->pipe->manifest.stages[stage->index].inputs;
  psplit_code code = PSPLIT_OK;
  w->phases[phase].first = w->n_given;
  for (uint32_t i = own->first_input; i < own->first_input + own->n_inputs; i++) {
    bool used = true;
    if (rows[i].from == PSPLIT_I_FROM_MODEL && (!stage->streams || rows[i].optional)) {
      const psplit_i_session_port *port = psplit_i_session_input(&w->sessions[phase], rows[i].name);
      if (!port && !rows[i].optional)
        return psplit_i_fail(diag, PSPLIT_INVALID, "%s has no input %s", own->file, rows[i].name);
      const psplit_i_feed_input input = {stage->ort, port, rows[i].tensor, rows[i].optional};
      PSPLIT_TRY(psplit_i_feed_open(&input, &stage->options->feed, stage->options->n_micro_batches,
                                    diag, &w->feeds[i], &used));
      w->is_fed[i] = used;
    }
    if (!used) continue;
    w->input_names[w->n_given] = rows[i].name;
    w->input_ports[w->n_given++] = i;
  }
out:
  w->phases[phase].n = w->n_given - w->phases[phase].first;
  return code;
}

static const psplit_i_session_options *replica_session(const psplit_i_stage *stage,
                                                       uint32_t replica) {
  const psplit_i_run_options *options = stage->options;
  return options->replica_sessions ? &options->replica_sessions[stage->index][replica]
                                   : psplit_i_stage_session(options, stage->index);
}

static psplit_code open_session(psplit_i_stage *stage, uint32_t replica, const char *path,
                                psplit_diag *diag, psplit_i_session *out) {
  pthread_mutex_t *turn = psplit_i_stage_own_turn(stage);
  psplit_i_stage_take_turn(turn);
  psplit_i_stage_begin(&stage->replicas[replica], PSPLIT_I_OPENS);
  const psplit_code code =
    psplit_i_session_open(stage->ort, path, replica_session(stage, replica), diag, out);
  psplit_i_stage_end(&stage->replicas[replica]);
  psplit_i_stage_leave_turn(turn);
  return code;
}

/* In place of a session, once it is known what it will be given. */
static psplit_code open_process(psplit_i_stage *stage, const char *path,
                                const psplit_i_stage_work *w, psplit_diag *diag) {
  const psplit_i_source *source = stage->options->source;
  psplit_i_process *process = NULL;
  const psplit_i_process_options options = {
    .ort = stage->ort,
    .command = source->stage_command,
    .stage = stage->index,
    .path = path,
    .session = psplit_i_stage_session(stage->options, stage->index),
    .input_names = w->input_names,
    .output_names = w->output_names,
    .n_inputs = w->n_given,
    .n_outputs = stage->pipe->manifest.stages[stage->index].n_outputs,
    .live = source->live ? &source->live[stage->index] : NULL};
  psplit_code code = psplit_i_process_create(&options, diag, &process);
  if (code != PSPLIT_OK) return code;
  pthread_mutex_lock(&stage->mutex);
  stage->process = process;
  if (stage->stopped) psplit_i_process_end(process);
  pthread_mutex_unlock(&stage->mutex);
  return psplit_i_process_open(process, diag);
}

/* The file of a phase, where the stage has one. */
static psplit_code open_phase(psplit_i_stage *stage, uint32_t phase, psplit_i_stage_work *w,
                              psplit_diag *diag) {
  const bool apart = stage->options->source && stage->options->source->stage_command;
  const psplit_i_phase *all = &stage->pipe->phases[phase];
  const char *file = all->stages[stage->index].file;
  psplit_i_text path = {0};
  psplit_code code = PSPLIT_OK;
  if (!file) return PSPLIT_OK;
  psplit_i_text_addf(&path, "%s/%s", all->directory, file);
  if (path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (!apart) PSPLIT_TRY(open_session(stage, 0, path.bytes, diag, &w->sessions[phase]));
  PSPLIT_TRY(open_feeds(stage, phase, w, diag));
  if (apart) PSPLIT_TRY(open_process(stage, path.bytes, w, diag)); /* services have one phase */
out:
  psplit_i_text_fini(&path);
  return code;
}

static psplit_code make_own(const psplit_i_stage *stage, psplit_i_stage_work *w,
                            psplit_diag *diag) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  w->sessions = calloc(stage->pipe->n_phases, sizeof *w->sessions);
  w->inputs = calloc((size_t)table->n_inputs + 1, sizeof *w->inputs);
  w->given = calloc((size_t)table->n_inputs + 1, sizeof *w->given);
  w->outputs = calloc((size_t)table->n_outputs + 1, sizeof *w->outputs);
  return w->sessions && w->inputs && w->given && w->outputs ? PSPLIT_OK : psplit_i_nomem(diag);
}

psplit_code psplit_i_stage_open_work(psplit_i_stage *stage, const psplit_i_manifest_stage *table,
                                     psplit_i_stage_work *w, psplit_diag *diag) {
  const size_t n_in = (size_t)table->n_inputs + 1, n_out = (size_t)table->n_outputs + 1;
  const uint32_t n_phases = stage->pipe->n_phases;
  psplit_code code = PSPLIT_OK;
  w->phases = calloc(n_phases, sizeof *w->phases);
  w->feeds = calloc(n_in, sizeof *w->feeds);
  w->is_fed = calloc(n_in, sizeof *w->is_fed);
  w->input_names = calloc(n_in, sizeof *w->input_names);
  w->input_ports = calloc(n_in, sizeof *w->input_ports);
  w->output_names = calloc(n_out, sizeof *w->output_names);
  w->stays = calloc(n_out, sizeof *w->stays);
  if (!w->phases || !w->feeds || !w->is_fed || !w->input_names || !w->input_ports ||
      !w->output_names || !w->stays)
    return psplit_i_nomem(diag);
  PSPLIT_TRY(make_own(stage, w, diag));
  for (uint32_t i = 0; i < table->n_outputs; i++) {
    w->output_names[i] = table->outputs[i].name;
    w->stays[i] = psplit_i_stage_keeper(stage) && !table->outputs[i].n_to &&
                  stage->pipe->model_output[stage->index][i] == PSPLIT_NONE;
  }
  for (uint32_t p = 0; p < n_phases; p++) PSPLIT_TRY(open_phase(stage, p, w, diag));
out:
  return code;
}

/* Weights of replicas are there once where they may be: on the CPU, with the same options. Else
 * each has a session of its own. */
psplit_code psplit_i_stage_open_replica(psplit_i_stage *stage, const psplit_i_stage_work *first,
                                        uint32_t replica, psplit_i_stage_work *w,
                                        psplit_diag *diag) {
  const psplit_i_run_options *options = stage->options;
  const bool alike =
    !options->replica_sessions && !psplit_i_stage_session(options, stage->index)->provider;
  psplit_code code;
  psplit_i_text path = {0};
  *w = *first;
  w->replica = replica;
  PSPLIT_TRY(make_own(stage, w, diag));
  for (uint32_t p = 0; p < stage->pipe->n_phases; p++) {
    const psplit_i_phase *phase = &stage->pipe->phases[p];
    const char *file = phase->stages[stage->index].file;
    if (!file) continue;
    path.n = 0;
    psplit_i_text_addf(&path, "%s/%s", phase->directory, file);
    if (path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
    PSPLIT_TRY(alike ? psplit_i_session_share(&first->sessions[p], diag, &w->sessions[p])
                     : open_session(stage, replica, path.bytes, diag, &w->sessions[p]));
  }
out:
  psplit_i_text_fini(&path);
  return code;
}
