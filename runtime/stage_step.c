/* One micro-batch in a stage. */
#include <inttypes.h>

#include "stage_inside.h"

static void take_bundle(const psplit_i_pipe_link *link, psplit_i_bundle *bundle,
                        psplit_i_stage_work *w) {
  for (uint32_t i = 0; !bundle->end && i < link->n_tensors; i++) {
    w->inputs[link->inputs[i]] = bundle->tensors[i];
    bundle->tensors[i] = NULL;
  }
  w->step = bundle->step; /* the same from all */
  if (bundle->failure && w->failure.code == PSPLIT_OK) w->failure = *bundle->failure;
  if (bundle->deadline_ns && (!w->deadline_ns || bundle->deadline_ns < w->deadline_ns))
    w->deadline_ns = bundle->deadline_ns;
}

/* What went wrong with a micro-batch here, for all that comes behind. */
static void name_place(const psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch) {
  psplit_i_diag_context(&w->failure, "stage %u (%s): micro-batch %" PRIu64, stage->index,
                        stage->pipe->manifest.stages[stage->index].file,
                        stage->options->first + micro_batch);
}

/* The inputs of the model that this stage reads by itself. */
static void read_feeds(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch) {
  const uint32_t n_inputs = stage->pipe->manifest.stages[stage->index].n_inputs;
  psplit_code code = w->failure.code;
  for (uint32_t i = 0; i < n_inputs && code == PSPLIT_OK; i++)
    if (w->is_fed[i])
      code = psplit_i_feed_get(&w->feeds[i], stage->options->first + (uint32_t)micro_batch,
                               &w->failure, &w->inputs[i]);
  if (code != PSPLIT_OK) name_place(stage, w, micro_batch);
}

/* Fills w->inputs, or w->failure. False if the run was stopped, or *out_end: that was all. */
bool psplit_i_stage_take(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                         psplit_i_event *event, bool *out_end) {
  const psplit_i_pipe *pipe = stage->pipe;
  if (w->failure.code != PSPLIT_OK) w->failure = (psplit_diag){0};
  w->deadline_ns = 0;
  for (uint32_t l = 0; l < pipe->n_links; l++) {
    if (pipe->links[l].to != stage->index) continue;
    psplit_i_bundle *bundle = psplit_i_queue_pop(stage->queues[l]);
    if (!bundle) return false;
    *out_end |= bundle->end; /* all come to the end at the same micro-batch */
    take_bundle(&pipe->links[l], bundle, w);
    event->transfer_ns += bundle->transfer_ns;
    event->bytes += bundle->bytes;
    psplit_i_bundle_destroy(bundle);
  }
  if (*out_end) return false;
  if (stage->begins && stage->options->deadline_s > 0)
    w->deadline_ns = psplit_i_after(psplit_i_now_ns(), stage->options->deadline_s);
  if (w->failure.code == PSPLIT_OK) read_feeds(stage, w, micro_batch);
  return true;
}

/* Hands w->outputs, or why there are none, to those behind this stage, or tells them the end. */
psplit_code psplit_i_stage_give(psplit_i_stage *stage, psplit_i_stage_work *w, bool end,
                                psplit_diag *diag, bool *out_stopped) {
  const psplit_i_pipe *pipe = stage->pipe;
  psplit_code code = PSPLIT_OK;
  for (uint32_t l = 0; l < pipe->n_links && !*out_stopped; l++) {
    const psplit_i_pipe_link *link = &pipe->links[l];
    if (link->from != stage->index) continue;
    psplit_i_bundle *bundle = psplit_i_bundle_create(link->n_tensors);
    if (!bundle) return psplit_i_nomem(diag);
    bundle->end = end;
    bundle->deadline_ns = w->deadline_ns;
    bundle->step = w->step;
    if (!end) code = psplit_i_bundle_fail(bundle, &w->failure, diag);
    for (uint32_t i = 0; i < link->n_tensors && !end && !bundle->failure; i++)
      if (code == PSPLIT_OK && w->outputs[link->outputs[i]])
        bundle->tensors[i] = psplit_i_tensor_hold(w->outputs[link->outputs[i]]);
    if (code != PSPLIT_OK) {
      psplit_i_bundle_destroy(bundle);
      return code;
    }
    *out_stopped = !psplit_i_queue_push(stage->queues[l], bundle);
  }
  return code;
}

/* Hands outputs of the model to who takes them, where no collector does. */
static psplit_code put_out(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                           psplit_diag *diag) {
  const psplit_i_run_options *options = stage->options;
  const uint32_t n = stage->pipe->manifest.stages[stage->index].n_outputs;
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; options->take_output && i < n; i++) {
    const uint32_t output = stage->pipe->model_output[stage->index][i];
    if (output == PSPLIT_NONE) continue;
    code = options->take_output(options->user, options->first + (uint32_t)micro_batch, output,
                                w->outputs[i], diag);
    if (code != PSPLIT_OK) {
      psplit_i_diag_context(diag, "output %s", stage->pipe->manifest.outputs[output]);
      break;
    }
  }
  return code;
}

/* The end of a micro-batch, where that is here. */
static psplit_code finish(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                          bool measured, psplit_diag *diag, bool *out_stopped) {
  if (!stage->finishes || *out_stopped) return PSPLIT_OK;
  if (w->failure.code == PSPLIT_OK) {
    const psplit_code code = measured ? put_out(stage, w, micro_batch, diag) : PSPLIT_OK;
    if (measured && code == PSPLIT_OK)
      psplit_i_delivered_add(stage->options->delivered, stage->options->first + micro_batch);
    return code;
  }
  return psplit_i_host_pass_over(stage->host, stage->options, micro_batch, measured, &w->failure,
                                 diag, out_stopped);
}

static void add_event(psplit_i_stage *stage, uint64_t micro_batch, const psplit_i_event *e) {
  stage->events[micro_batch % stage->n_events] = *e;
  psplit_i_sums_add(stage->sums, e);
  const psplit_i_source *source = stage->options->source;
  if (!source || !source->live) return;
  atomic_fetch_add(&source->live[stage->index].n_micro_batches, 1);
  atomic_fetch_add(&source->live[stage->index].busy_ns, e->done_ns - e->ready_ns);
}

static void set_computing(psplit_i_stage *stage, psplit_i_replica *replica, bool computing,
                          int64_t deadline_ns) {
  pthread_mutex_lock(&stage->mutex);
  replica->computing = computing;
  replica->deadline_ns = deadline_ns;
  if (replica->late && !computing && !stage->stopped && !stage->process)
    psplit_i_stage_each_session(stage, replica, psplit_i_session_go_on);
  replica->late = false;
  pthread_mutex_unlock(&stage->mutex);
}

/* A process omits values that are not dense tensors: the model may output them, but stages cannot
 * send them to each other. */
static psplit_code run_in_process(psplit_i_stage *stage, psplit_i_stage_work *w,
                                  psplit_diag *diag) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_code code;
  PSPLIT_TRY(psplit_i_process_run(stage->process, w->given, w->outputs, w->deadline_ns, diag));
  for (uint32_t o = 0; o < table->n_outputs; o++)
    if (!w->outputs[o] && table->outputs[o].n_to)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                                "output %s is not a dense tensor (sequence or map): it is not sent",
                                table->outputs[o].name));
out:
  if (code != PSPLIT_OK) psplit_i_tensors_release(w->outputs, table->n_outputs);
  return code;
}

/* Runs the session of the phase that the micro-batch is of. */
static psplit_code run_phase(psplit_i_stage *stage, psplit_i_stage_work *w, psplit_diag *diag) {
  const psplit_i_phase_stage *own = &stage->pipe->phases[w->step.phase].stages[stage->index];
  const psplit_i_given *g = &w->phases[w->step.phase];
  if (stage->process) return run_in_process(stage, w, diag);
  psplit_i_session *session = &w->sessions[w->step.phase];
  const psplit_i_session_io io = {.input_names = w->input_names + g->first,
                                  .inputs = w->given + g->first,
                                  .n_inputs = g->n,
                                  .output_names = w->output_names + own->first_output,
                                  .outputs = w->outputs + own->first_output,
                                  .n_outputs = own->n_outputs};
  if (session->binding)
    return psplit_i_session_run_on_device(session, &io, w->stays + own->first_output, diag);
  return psplit_i_session_run(session, &io, diag);
}

static psplit_code run_session(psplit_i_stage *stage, psplit_i_stage_work *w, psplit_diag *diag) {
  psplit_i_replica *replica = &stage->replicas[w->replica];
  psplit_i_stage_begin(replica, PSPLIT_I_COMPUTES);
  if (w->deadline_ns) set_computing(stage, replica, true, w->deadline_ns);
  const psplit_code code = run_phase(stage, w, diag);
  if (code == PSPLIT_INVALID)
    psplit_i_feeds_say_made(w->feeds, stage->pipe->manifest.stages[stage->index].n_inputs, diag);
  if (w->deadline_ns) set_computing(stage, replica, false, 0);
  psplit_i_stage_end(replica);
  return code;
}

/* What the session of the phase is given, by position. */
static psplit_code gather(const psplit_i_stage *stage, psplit_i_stage_work *w, psplit_diag *diag) {
  const psplit_i_given *g = &w->phases[w->step.phase];
  for (uint32_t i = g->first; i < g->first + g->n; i++)
    if (!(w->given[i] = w->inputs[w->input_ports[i]]))
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "input %s of stage %u has not arrived",
                           w->input_names[i], stage->index);
  return PSPLIT_OK;
}

/* Computes, with what is kept from earlier micro-batches of the sequence, when it is this stage's
 * turn: what was kept before is given back to the provider, too. event->ready_ns and event->done_ns
 * are the turn's. */
static psplit_code compute_step(psplit_i_stage *stage, psplit_i_stage_work *w, psplit_diag *diag,
                                psplit_i_event *event) {
  pthread_mutex_t *turn =
    stage->options->turn ? stage->options->turn : psplit_i_stage_own_turn(stage);
  const psplit_i_keeper *keeper = psplit_i_stage_keeper(stage);
  psplit_code code = PSPLIT_OK;
  if (w->step.phase >= stage->pipe->n_phases)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "there is no phase %u", w->step.phase);
  if (!stage->pipe->phases[w->step.phase].stages[stage->index].file) return PSPLIT_OK;
  psplit_i_stage_take_turn(stage->device_turn); /* nobody waits for a queue with one of these */
  psplit_i_stage_take_turn(turn);
  event->ready_ns = psplit_i_now_ns();
  if (keeper)
    PSPLIT_TRY(keeper->before(keeper->user, stage->index, &w->sessions[w->step.phase], &w->step,
                              w->inputs, diag));
  PSPLIT_TRY(gather(stage, w, diag));
  PSPLIT_TRY(run_session(stage, w, diag));
  if (keeper) PSPLIT_TRY(keeper->after(keeper->user, stage->index, &w->step, w->outputs, diag));
out:
  event->done_ns = psplit_i_now_ns();
  psplit_i_stage_leave_turn(turn);
  psplit_i_stage_leave_turn(stage->device_turn);
  return code;
}

/* Runs what was taken, where that is not in vain. */
void psplit_i_stage_compute(psplit_i_stage *stage, psplit_i_stage_work *w, uint64_t micro_batch,
                            psplit_i_event *event) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_diag late = {0};
  psplit_code code = w->failure.code;
  event->ready_ns = event->done_ns = psplit_i_now_ns();
  if (code == PSPLIT_OK) {
    atomic_store(&stage->replicas[w->replica].micro_batch, stage->options->first + micro_batch);
    code = psplit_i_deadline_check(w->deadline_ns, &w->failure);
    if (code == PSPLIT_OK) code = compute_step(stage, w, &w->failure, event);
    if (psplit_i_deadline_check(w->deadline_ns, &late) != PSPLIT_OK) {
      if (code == PSPLIT_OK) psplit_i_tensors_release(w->outputs, table->n_outputs);
      w->failure = late; /* whatever else: it may have failed because it was stopped */
      code = late.code;
    }
    if (code != PSPLIT_OK) name_place(stage, w, micro_batch);
  }
  psplit_i_tensors_release(w->inputs, table->n_inputs);
}

/* Hands on what was computed. */
psplit_code psplit_i_stage_hand_on(psplit_i_stage *stage, psplit_i_stage_work *w,
                                   uint64_t micro_batch, bool measured, psplit_i_event *event,
                                   psplit_diag *diag, bool *out_stopped) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_code code = PSPLIT_OK;
  *out_stopped = atomic_load(&stage->host->stopped); /* what fails then fails for that */
  PSPLIT_TRY(psplit_i_stage_give(stage, w, false, diag, out_stopped));
  PSPLIT_TRY(finish(stage, w, micro_batch, measured, diag, out_stopped));
  psplit_i_tensors_release(w->outputs, table->n_outputs);
  event->sent_ns = psplit_i_now_ns();
  if (measured) add_event(stage, micro_batch, event);
out:
  if (code != PSPLIT_OK)
    psplit_i_diag_context(diag, "micro-batch %" PRIu64, stage->options->first + micro_batch);
  return code;
}
