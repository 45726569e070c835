#include "stage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What is given to the session of a phase, among the ports of the stage: a range of the lists of
 * the work. Unused optional inputs are not given. */
typedef struct given {
  uint32_t first, n;
} given;

/* What one micro-batch needs, by position in the tables of pipeline.json. */
typedef struct work {
  psplit_i_session *sessions; /* [n_phases] */
  given *phases;              /* [n_phases] */
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
} work;

void psplit_i_stage_init(psplit_i_stage *stage) {
  pthread_mutex_init(&stage->mutex, NULL);
  stage->begins = true;
  for (uint32_t l = 0; l < stage->pipe->n_links; l++) {
    stage->streams |= stage->pipe->links[l].from == PSPLIT_I_OUTSIDE;
    stage->collected |= stage->pipe->links[l].to == PSPLIT_I_OUTSIDE;
    stage->begins &= stage->pipe->links[l].to != stage->index;
  }
  stage->finishes = !stage->collected && psplit_i_pipe_is_final(stage->pipe, stage->index);
}

const psplit_i_session_options *psplit_i_stage_session(const psplit_i_run_options *options,
                                                       uint32_t index) {
  return options->stage_sessions ? &options->stage_sessions[index] : &options->session;
}

void psplit_i_stage_fini(psplit_i_stage *stage) { pthread_mutex_destroy(&stage->mutex); }

/* By who holds the mutex. */
static void each_session(const psplit_i_stage *stage, void (*act)(psplit_i_session *session)) {
  for (uint32_t p = 0; p < stage->pipe->n_phases; p++) act(&stage->running[p]);
}

void psplit_i_stage_stop(psplit_i_stage *stage) {
  pthread_mutex_lock(&stage->mutex);
  stage->stopped = true;
  if (stage->running) each_session(stage, psplit_i_session_stop);
  if (stage->process) psplit_i_process_end(stage->process);
  pthread_mutex_unlock(&stage->mutex);
}

static void begin(psplit_i_stage *stage, psplit_i_activity activity) {
  atomic_store(&stage->activity, activity);
  atomic_store(&stage->since_ns, psplit_i_now_ns());
}

static void end(psplit_i_stage *stage) { atomic_store(&stage->since_ns, 0); }

static void stop_late(psplit_i_stage *stage) {
  pthread_mutex_lock(&stage->mutex);
  if (stage->computing && !stage->late && psplit_i_now_ns() > stage->deadline_ns) {
    stage->late = true;
    if (stage->process)
      psplit_i_process_stop_run(stage->process);
    else
      each_session(stage, psplit_i_session_stop);
  }
  pthread_mutex_unlock(&stage->mutex);
}

int64_t psplit_i_stage_look_ns(const psplit_i_run_options *options) {
  static const int64_t LEAST_NS = 1000000, MOST_NS = 50000000;
  const int64_t ns = (int64_t)(1e9 * options->deadline_s / 10);
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

psplit_code psplit_i_stage_check(psplit_i_stage *stage, psplit_diag *diag) {
  stop_late(stage);
  const double most_s = stage->options->stall_timeout_s;
  if (look_after(stage, most_s)) return PSPLIT_OK;
  const int64_t since_ns = atomic_load(&stage->since_ns);
  if (!(most_s > 0) || !since_ns || 1e-9 * (double)(psplit_i_now_ns() - since_ns) <= most_s)
    return PSPLIT_OK;
  const psplit_i_activity activity = atomic_load(&stage->activity);
  psplit_i_text what = {0};
  if (activity == PSPLIT_I_COMPUTES)
    psplit_i_text_addf(&what, "has computed micro-batch %" PRIu64,
                       atomic_load(&stage->micro_batch));
  else
    psplit_i_text_puts(&what, activity == PSPLIT_I_OPENS ? "has been opened" : "has been closed");
  const psplit_code code = psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                                               "stage %u (%s) %s for more than %g s", stage->index,
                                               stage->pipe->manifest.stages[stage->index].file,
                                               what.failed ? "is at work" : what.bytes, most_s);
  psplit_i_text_fini(&what);
  return code;
}

/* Held while ONNX Runtime works for this stage, where it may not do so for others meanwhile. */
static pthread_mutex_t *own_turn(const psplit_i_stage *stage) {
  const psplit_i_session_options *session = psplit_i_stage_session(stage->options, stage->index);
  return psplit_i_provider_is_alone(session->provider) ? stage->ort->alone : NULL;
}

static void take_turn(pthread_mutex_t *turn) {
  if (turn) pthread_mutex_lock(turn);
}

static void leave_turn(pthread_mutex_t *turn) {
  if (turn) pthread_mutex_unlock(turn);
}

static void set_running(psplit_i_stage *stage, psplit_i_session *sessions) {
  pthread_mutex_lock(&stage->mutex);
  stage->running = sessions;
  if (sessions && stage->stopped) each_session(stage, psplit_i_session_stop);
  pthread_mutex_unlock(&stage->mutex);
}

static void close_process(psplit_i_stage *stage) {
  pthread_mutex_lock(&stage->mutex);
  psplit_i_process *process = stage->process;
  stage->process = NULL;
  pthread_mutex_unlock(&stage->mutex);
  psplit_i_process_destroy(process);
}

static const psplit_i_keeper *keeper_of(const psplit_i_stage *stage) {
  return stage->options->source ? stage->options->source->keeper : NULL;
}

static void close_sessions(psplit_i_stage *stage, work *w) {
  pthread_mutex_t *turn = own_turn(stage);
  const psplit_i_keeper *keeper = keeper_of(stage);
  take_turn(turn);
  begin(stage, PSPLIT_I_CLOSES);
  if (keeper) keeper->close(keeper->user, stage->index);
  for (uint32_t p = 0; w->sessions && p < stage->pipe->n_phases; p++)
    psplit_i_session_close(&w->sessions[p]);
  end(stage);
  leave_turn(turn);
}

static void close_work(psplit_i_stage *stage, work *w) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  for (uint32_t i = 0; w->feeds && i < table->n_inputs; i++) psplit_i_feed_close(&w->feeds[i]);
  psplit_i_tensors_release(w->inputs, table->n_inputs);
  psplit_i_tensors_release(w->outputs, table->n_outputs);
  close_process(stage);
  close_sessions(stage, w);
  free(w->sessions);
  free(w->phases);
  free(w->feeds);
  free(w->is_fed);
  free(w->input_names);
  free(w->input_ports);
  free(w->output_names);
  free(w->stays);
  free(w->inputs);
  free(w->given);
  free(w->outputs);
}

/* The inputs of a phase: those that this stage reads by itself, and what its session is given. */
static psplit_code open_feeds(const psplit_i_stage *stage, uint32_t phase, work *w,
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
      PSPLIT_TRY(psplit_i_feed_open(stage->ort, port, rows[i].tensor, rows[i].optional,
                                    &stage->options->feed, stage->options->n_micro_batches, diag,
                                    &w->feeds[i], &used));
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

static psplit_code open_session(psplit_i_stage *stage, const char *path, psplit_diag *diag,
                                psplit_i_session *out) {
  pthread_mutex_t *turn = own_turn(stage);
  take_turn(turn);
  begin(stage, PSPLIT_I_OPENS);
  const psplit_code code = psplit_i_session_open(
    stage->ort, path, psplit_i_stage_session(stage->options, stage->index), diag, out);
  end(stage);
  leave_turn(turn);
  return code;
}

/* In place of a session, once it is known what it will be given. */
static psplit_code open_process(psplit_i_stage *stage, const char *path, const work *w,
                                psplit_diag *diag) {
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
static psplit_code open_phase(psplit_i_stage *stage, uint32_t phase, work *w, psplit_diag *diag) {
  const bool apart = stage->options->source && stage->options->source->stage_command;
  const psplit_i_phase *all = &stage->pipe->phases[phase];
  const char *file = all->stages[stage->index].file;
  psplit_i_text path = {0};
  psplit_code code = PSPLIT_OK;
  if (!file) return PSPLIT_OK;
  psplit_i_text_addf(&path, "%s/%s", all->directory, file);
  if (path.failed) PSPLIT_TRY(psplit_i_nomem(diag));
  if (!apart) PSPLIT_TRY(open_session(stage, path.bytes, diag, &w->sessions[phase]));
  PSPLIT_TRY(open_feeds(stage, phase, w, diag));
  if (apart) PSPLIT_TRY(open_process(stage, path.bytes, w, diag)); /* services have one phase */
out:
  psplit_i_text_fini(&path);
  return code;
}

static psplit_code open_work(psplit_i_stage *stage, const psplit_i_manifest_stage *table, work *w,
                             psplit_diag *diag) {
  const size_t n_in = (size_t)table->n_inputs + 1, n_out = (size_t)table->n_outputs + 1;
  const uint32_t n_phases = stage->pipe->n_phases;
  psplit_code code = PSPLIT_OK;
  w->sessions = calloc(n_phases, sizeof *w->sessions);
  w->phases = calloc(n_phases, sizeof *w->phases);
  w->feeds = calloc(n_in, sizeof *w->feeds);
  w->is_fed = calloc(n_in, sizeof *w->is_fed);
  w->input_names = calloc(n_in, sizeof *w->input_names);
  w->input_ports = calloc(n_in, sizeof *w->input_ports);
  w->output_names = calloc(n_out, sizeof *w->output_names);
  w->stays = calloc(n_out, sizeof *w->stays);
  w->inputs = calloc(n_in, sizeof *w->inputs);
  w->given = calloc(n_in, sizeof *w->given);
  w->outputs = calloc(n_out, sizeof *w->outputs);
  if (!w->sessions || !w->phases || !w->feeds || !w->is_fed || !w->input_names || !w->input_ports ||
      !w->output_names || !w->stays || !w->inputs || !w->given || !w->outputs)
    return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < table->n_outputs; i++) {
    w->output_names[i] = table->outputs[i].name;
    w->stays[i] = keeper_of(stage) && !table->outputs[i].n_to &&
                  stage->pipe->model_output[stage->index][i] == PSPLIT_NONE;
  }
  for (uint32_t p = 0; p < n_phases && code == PSPLIT_OK; p++) code = open_phase(stage, p, w, diag);
  return code;
}

static void take_bundle(const psplit_i_pipe_link *link, psplit_i_bundle *bundle, work *w) {
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
static void name_place(const psplit_i_stage *stage, work *w, uint64_t micro_batch) {
  psplit_i_diag_context(&w->failure, "stage %u (%s): micro-batch %" PRIu64, stage->index,
                        stage->pipe->manifest.stages[stage->index].file,
                        stage->options->first + micro_batch);
}

/* The inputs of the model that this stage reads by itself. */
static void read_feeds(psplit_i_stage *stage, work *w, uint64_t micro_batch) {
  const uint32_t n_inputs = stage->pipe->manifest.stages[stage->index].n_inputs;
  psplit_code code = w->failure.code;
  for (uint32_t i = 0; i < n_inputs && code == PSPLIT_OK; i++)
    if (w->is_fed[i])
      code = psplit_i_feed_get(&w->feeds[i], stage->options->first + (uint32_t)micro_batch,
                               &w->failure, &w->inputs[i]);
  if (code != PSPLIT_OK) name_place(stage, w, micro_batch);
}

/* Fills w->inputs, or w->failure. False if the run was stopped, or *out_end: that was all. */
static bool take(psplit_i_stage *stage, work *w, uint64_t micro_batch, psplit_i_event *event,
                 bool *out_end) {
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
    w->deadline_ns = psplit_i_now_ns() + (int64_t)(1e9 * stage->options->deadline_s);
  if (w->failure.code == PSPLIT_OK) read_feeds(stage, w, micro_batch);
  return true;
}

/* Hands w->outputs, or why there are none, to those behind this stage, or tells them the end. */
static psplit_code give(psplit_i_stage *stage, work *w, bool end, psplit_diag *diag,
                        bool *out_stopped) {
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

/* Hands outputs of the model to the logger, where no collector does. */
static psplit_code put_out(psplit_i_stage *stage, work *w, uint64_t micro_batch,
                           psplit_diag *diag) {
  const psplit_i_run_options *options = stage->options;
  const uint32_t n = stage->pipe->manifest.stages[stage->index].n_outputs;
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; options->logger && i < n; i++) {
    const uint32_t output = stage->pipe->model_output[stage->index][i];
    if (output == PSPLIT_NONE) continue;
    code = options->logger(options->user, options->first + (uint32_t)micro_batch, output,
                           w->outputs[i], diag);
    if (code != PSPLIT_OK) {
      psplit_i_diag_context(diag, "output %s", stage->pipe->manifest.outputs[output]);
      break;
    }
  }
  return code;
}

/* The end of a micro-batch, where that is here. */
static psplit_code finish(psplit_i_stage *stage, work *w, uint64_t micro_batch, bool measured,
                          psplit_diag *diag, bool *out_stopped) {
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
  psplit_i_sums *sums = stage->sums;
  stage->events[micro_batch % stage->n_events] = *e;
  sums->wait_in_ns += e->ready_ns - e->begin_ns;
  sums->busy_ns += e->done_ns - e->ready_ns;
  sums->wait_out_ns += e->sent_ns - e->done_ns;
  sums->transfer_ns += e->transfer_ns;
  sums->bytes += e->bytes;
  if (sums->n_micro_batches++ == 0) {
    sums->first_ready_ns = e->ready_ns;
    sums->first_sent_ns = e->sent_ns;
  }
  sums->last_sent_ns = e->sent_ns;
  const psplit_i_source *source = stage->options->source;
  if (!source || !source->live) return;
  atomic_fetch_add(&source->live[stage->index].n_micro_batches, 1);
  atomic_fetch_add(&source->live[stage->index].busy_ns, e->done_ns - e->ready_ns);
}

static void set_computing(psplit_i_stage *stage, bool computing, int64_t deadline_ns) {
  pthread_mutex_lock(&stage->mutex);
  stage->computing = computing;
  stage->deadline_ns = deadline_ns;
  if (stage->late && !computing && !stage->stopped && !stage->process)
    each_session(stage, psplit_i_session_go_on);
  stage->late = false;
  pthread_mutex_unlock(&stage->mutex);
}

/* Runs the session of the phase that the micro-batch is of. */
static psplit_code run_phase(psplit_i_stage *stage, work *w, psplit_diag *diag) {
  const psplit_i_phase_stage *own = &stage->pipe->phases[w->step.phase].stages[stage->index];
  const given *g = &w->phases[w->step.phase];
  if (stage->process)
    return psplit_i_process_run(stage->process, w->given, w->outputs, w->deadline_ns, diag);
  psplit_i_session *session = &w->sessions[w->step.phase];
  const char **input_names = w->input_names + g->first;
  const char **output_names = w->output_names + own->first_output;
  psplit_i_tensor **outputs = w->outputs + own->first_output;
  if (session->binding)
    return psplit_i_session_run_on_device(session, input_names, w->given + g->first, g->n,
                                          output_names, w->stays + own->first_output, outputs,
                                          own->n_outputs, diag);
  return psplit_i_session_run(session, input_names, w->given + g->first, g->n, output_names,
                              outputs, own->n_outputs, diag);
}

static psplit_code compute(psplit_i_stage *stage, work *w, psplit_diag *diag) {
  begin(stage, PSPLIT_I_COMPUTES);
  if (w->deadline_ns) set_computing(stage, true, w->deadline_ns);
  const psplit_code code = run_phase(stage, w, diag);
  if (w->deadline_ns) set_computing(stage, false, 0);
  end(stage);
  return code;
}

/* What the session of the phase is given, by position. */
static psplit_code gather(const psplit_i_stage *stage, work *w, psplit_diag *diag) {
  const given *g = &w->phases[w->step.phase];
  for (uint32_t i = g->first; i < g->first + g->n; i++)
    if (!(w->given[i] = w->inputs[w->input_ports[i]]))
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "input %s of stage %u has not come",
                           w->input_names[i], stage->index);
  return PSPLIT_OK;
}

/* Computes, with what is kept from earlier micro-batches of the sequence, when it is this stage's
 * turn: what was kept before is given back to the provider, too. event->ready_ns is when it begins.
 */
static psplit_code compute_step(psplit_i_stage *stage, work *w, psplit_diag *diag,
                                psplit_i_event *event) {
  pthread_mutex_t *turn = stage->options->turn ? stage->options->turn : own_turn(stage);
  const psplit_i_keeper *keeper = keeper_of(stage);
  psplit_code code = PSPLIT_OK;
  if (w->step.phase >= stage->pipe->n_phases)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "there is no phase %u", w->step.phase);
  if (!stage->pipe->phases[w->step.phase].stages[stage->index].file) return PSPLIT_OK;
  take_turn(stage->device_turn); /* nobody waits for a queue with one of these */
  take_turn(turn);
  event->ready_ns = psplit_i_now_ns();
  if (keeper)
    PSPLIT_TRY(keeper->before(keeper->user, stage->index, &w->sessions[w->step.phase], &w->step,
                              w->inputs, diag));
  PSPLIT_TRY(gather(stage, w, diag));
  PSPLIT_TRY(compute(stage, w, diag));
  if (keeper) PSPLIT_TRY(keeper->after(keeper->user, stage->index, &w->step, w->outputs, diag));
out:
  leave_turn(turn);
  leave_turn(stage->device_turn);
  return code;
}

/* Runs what was taken, where that is not in vain. */
static void run_or_fail(psplit_i_stage *stage, work *w, uint64_t micro_batch,
                        psplit_i_event *event) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_diag late = {0};
  psplit_code code = w->failure.code;
  event->ready_ns = psplit_i_now_ns();
  if (code == PSPLIT_OK) {
    atomic_store(&stage->micro_batch, stage->options->first + micro_batch);
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
  event->done_ns = psplit_i_now_ns();
}

/* Runs what was taken and hands it on. */
static psplit_code run_one(psplit_i_stage *stage, work *w, uint64_t micro_batch, bool measured,
                           psplit_i_event *event, psplit_diag *diag, bool *out_stopped) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_code code = PSPLIT_OK;
  run_or_fail(stage, w, micro_batch, event);
  *out_stopped = atomic_load(&stage->host->stopped); /* what fails then fails for that */
  PSPLIT_TRY(give(stage, w, false, diag, out_stopped));
  PSPLIT_TRY(finish(stage, w, micro_batch, measured, diag, out_stopped));
  psplit_i_tensors_release(w->outputs, table->n_outputs);
  event->sent_ns = psplit_i_now_ns();
  if (measured) add_event(stage, micro_batch, event);
out:
  return code;
}

/* Whether what others say is the end can be it. */
static bool is_end(const psplit_i_stage *stage, uint64_t micro_batch, uint32_t n,
                   psplit_diag *diag) {
  return stage->streams || psplit_i_fail(diag, PSPLIT_INTERNAL,
                                         "its inputs end after %" PRIu64 " of %u micro-batches",
                                         micro_batch, n) == PSPLIT_OK;
}

/* Runs micro-batches 0..n-1, in a stream all that come. False if the run was stopped, here (diag
 * tells) or elsewhere. */
static bool run_all(psplit_i_stage *stage, work *w, uint32_t n, bool measured, psplit_diag *diag) {
  bool stopped = false, at_end = false;
  for (uint64_t m = 0; (m < n || stage->streams) && !stopped; m++) {
    psplit_i_event event = {.begin_ns = psplit_i_now_ns()};
    if (!take(stage, w, m, &event, &at_end)) return at_end && is_end(stage, m, n, diag);
    if (run_one(stage, w, m, measured, &event, diag, &stopped) == PSPLIT_OK) continue;
    psplit_i_diag_context(diag, "micro-batch %" PRIu64, stage->options->first + m);
    return false;
  }
  return !stopped;
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

/* All from the first meeting to the word that this was all. */
static psplit_code work_through(psplit_i_stage *stage, work *w, psplit_diag *diag) {
  const psplit_i_run_options *options = stage->options;
  psplit_i_host *host = stage->host;
  bool stopped = false;
  if (!host->meet(host)) return diag->code;
  if (options->source && options->source->ready && stage->index == 0)
    options->source->ready(options->source->ready_user);
  if (!stage->streams && !(run_all(stage, w, options->n_warmup, false, diag) && host->meet(host)))
    return diag->code;
  if (!run_all(stage, w, options->n_micro_batches, true, diag)) return diag->code;
  return give(stage, w, true, diag, &stopped);
}

void psplit_i_stage_main(psplit_i_stage *stage) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  psplit_diag diag = {0};
  work w = {0};
  psplit_code code = open_work(stage, table, &w, &diag);
  if (code == PSPLIT_OK) {
    if (!stage->process) set_running(stage, w.sessions);
    code = work_through(stage, &w, &diag);
    set_running(stage, NULL);
  }
  if (code != PSPLIT_OK) {
    psplit_i_diag_context(&diag, "stage %u (%s)", stage->index, table->file);
    stage->host->fail(stage->host, &diag);
  }
  close_work(stage, &w);
}
