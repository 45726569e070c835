#include "stage.h"

#include <stdlib.h>
#include <string.h>

/* What one micro-batch needs, by position in the tables of pipeline.json. */
typedef struct work {
  psplit_i_session session;
  psplit_i_feed *feeds;     /* [n_inputs] */
  bool *is_fed;             /* [n_inputs] */
  const char **input_names; /* [n_inputs] given to the session: unused optional inputs are not */
  uint32_t *input_ports;
  uint32_t n_given;
  const char **output_names; /* [n_outputs] */
  psplit_i_tensor **inputs;  /* [n_inputs] by port */
  psplit_i_tensor **given;   /* [n_given], borrowed from inputs */
  psplit_i_tensor **outputs; /* [n_outputs] */
} work;

void psplit_i_stage_init(psplit_i_stage *stage, uint32_t index, const psplit_i_ort *ort,
                         const psplit_i_pipe *pipe, const psplit_i_run_options *options,
                         psplit_i_host *host, psplit_i_queue **queues, psplit_i_event *events) {
  *stage = (psplit_i_stage){.index = index,
                            .ort = ort,
                            .pipe = pipe,
                            .options = options,
                            .host = host,
                            .queues = queues,
                            .events = events};
  pthread_mutex_init(&stage->mutex, NULL);
}

const psplit_i_session_options *psplit_i_stage_session(const psplit_i_run_options *options,
                                                       uint32_t index) {
  return options->stage_sessions ? &options->stage_sessions[index] : &options->session;
}

void psplit_i_stage_fini(psplit_i_stage *stage) { pthread_mutex_destroy(&stage->mutex); }

bool psplit_i_stage_computes(psplit_i_stage *stage) { return atomic_load(&stage->computes); }

void psplit_i_stage_stop(psplit_i_stage *stage) {
  pthread_mutex_lock(&stage->mutex);
  stage->stopped = true;
  if (stage->running) psplit_i_session_stop(stage->running);
  pthread_mutex_unlock(&stage->mutex);
}

static void set_running(psplit_i_stage *stage, psplit_i_session *session) {
  pthread_mutex_lock(&stage->mutex);
  stage->running = session;
  if (session && stage->stopped) psplit_i_session_stop(session);
  pthread_mutex_unlock(&stage->mutex);
}

static void release_all(psplit_i_tensor **tensors, uint32_t n) {
  for (uint32_t i = 0; tensors && i < n; i++) {
    psplit_i_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

static void close_work(work *w, const psplit_i_manifest_stage *table) {
  for (uint32_t i = 0; w->feeds && i < table->n_inputs; i++) psplit_i_feed_close(&w->feeds[i]);
  release_all(w->inputs, table->n_inputs);
  release_all(w->outputs, table->n_outputs);
  psplit_i_session_close(&w->session);
  free(w->feeds);
  free(w->is_fed);
  free(w->input_names);
  free(w->input_ports);
  free(w->output_names);
  free(w->inputs);
  free(w->given);
  free(w->outputs);
}

static psplit_code open_feeds(const psplit_i_stage *stage, const psplit_i_manifest_stage *table,
                              work *w, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < table->n_inputs; i++) {
    const psplit_i_row *row = &table->inputs[i];
    bool used = true;
    if (row->from == PSPLIT_I_FROM_MODEL) {
      const psplit_i_port *port = psplit_i_session_input(&w->session, row->name);
      if (!port && !row->optional)
        return psplit_i_fail(diag, PSPLIT_INVALID, "%s has no input %s", table->file, row->name);
      PSPLIT_TRY(psplit_i_feed_open(stage->ort, port, row->tensor, row->optional,
                                    &stage->options->feed, stage->options->n_micro_batches, diag,
                                    &w->feeds[i], &used));
      w->is_fed[i] = used;
    }
    if (!used) continue;
    w->input_names[w->n_given] = row->name;
    w->input_ports[w->n_given++] = i;
  }
out:
  return code;
}

static psplit_code open_work(const psplit_i_stage *stage, const psplit_i_manifest_stage *table,
                             work *w, psplit_diag *diag) {
  const size_t n_in = (size_t)table->n_inputs + 1, n_out = (size_t)table->n_outputs + 1;
  psplit_text path = {0};
  psplit_code code = PSPLIT_NOMEM;
  w->feeds = calloc(n_in, sizeof *w->feeds);
  w->is_fed = calloc(n_in, sizeof *w->is_fed);
  w->input_names = calloc(n_in, sizeof *w->input_names);
  w->input_ports = calloc(n_in, sizeof *w->input_ports);
  w->output_names = calloc(n_out, sizeof *w->output_names);
  w->inputs = calloc(n_in, sizeof *w->inputs);
  w->given = calloc(n_in, sizeof *w->given);
  w->outputs = calloc(n_out, sizeof *w->outputs);
  psplit_i_text_addf(&path, "%s/%s", stage->pipe->directory, table->file);
  if (!w->feeds || !w->is_fed || !w->input_names || !w->input_ports || !w->output_names ||
      !w->inputs || !w->given || !w->outputs || path.failed)
    psplit_i_nomem(diag);
  else
    code = psplit_i_session_open(stage->ort, path.bytes,
                                 psplit_i_stage_session(stage->options, stage->index), diag,
                                 &w->session);
  psplit_i_text_fini(&path);
  if (code != PSPLIT_OK) return code;
  for (uint32_t i = 0; i < table->n_outputs; i++) w->output_names[i] = table->outputs[i].name;
  return open_feeds(stage, table, w, diag);
}

/* Fills w->inputs. False if the run was stopped. */
static bool take(psplit_i_stage *stage, work *w, uint32_t micro_batch, psplit_diag *diag,
                 psplit_i_event *event) {
  const psplit_i_pipe *pipe = stage->pipe;
  for (uint32_t l = 0; l < pipe->n_links; l++) {
    const psplit_i_pipe_link *link = &pipe->links[l];
    if (link->to != stage->index) continue;
    atomic_store(&stage->computes, false);
    psplit_i_bundle *bundle = psplit_i_queue_pop(stage->queues[l]);
    atomic_store(&stage->computes, true);
    if (!bundle) return false;
    for (uint32_t i = 0; i < link->n_tensors; i++) {
      w->inputs[link->inputs[i]] = bundle->tensors[i];
      bundle->tensors[i] = NULL;
    }
    event->transfer_ns += bundle->transfer_ns;
    event->bytes += bundle->bytes;
    psplit_i_bundle_destroy(bundle);
  }
  const uint32_t n_inputs = pipe->manifest.stages[stage->index].n_inputs;
  for (uint32_t i = 0; i < n_inputs; i++)
    if (w->is_fed[i] && psplit_i_feed_get(&w->feeds[i], micro_batch, diag, &w->inputs[i]))
      return false;
  return true;
}

/* Hands w->outputs to the stages behind this one and to the sink. */
static psplit_code give(psplit_i_stage *stage, work *w, uint32_t micro_batch, bool to_sink,
                        psplit_diag *diag, bool *out_stopped) {
  const psplit_i_pipe *pipe = stage->pipe;
  const psplit_i_manifest_stage *table = &pipe->manifest.stages[stage->index];
  psplit_code code = PSPLIT_OK;
  for (uint32_t l = 0; l < pipe->n_links && !*out_stopped; l++) {
    const psplit_i_pipe_link *link = &pipe->links[l];
    if (link->from != stage->index) continue;
    psplit_i_bundle *bundle = psplit_i_bundle_create(link->n_tensors);
    if (!bundle) return psplit_i_nomem(diag);
    for (uint32_t i = 0; i < link->n_tensors; i++)
      bundle->tensors[i] = psplit_i_tensor_hold(w->outputs[link->outputs[i]]);
    atomic_store(&stage->computes, false);
    *out_stopped = !psplit_i_queue_push(stage->queues[l], bundle);
    atomic_store(&stage->computes, true);
  }
  for (uint32_t i = 0; to_sink && stage->options->sink && i < table->n_outputs; i++) {
    const uint32_t output = pipe->model_output[stage->index][i];
    if (output == PSPLIT_NONE) continue;
    PSPLIT_TRY(
      stage->options->sink(stage->options->user, micro_batch, output, w->outputs[i], diag));
  }
out:
  return code;
}

/* Runs micro-batches 0..n-1. False if the run was stopped, here (diag tells) or elsewhere. */
static bool run_all(psplit_i_stage *stage, work *w, uint32_t n, bool measured, psplit_diag *diag) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  bool stopped = false;
  for (uint32_t m = 0; m < n && !stopped; m++) {
    psplit_i_event event = {.begin_ns = psplit_i_now_ns()};
    if (!take(stage, w, m, diag, &event)) return false;
    event.ready_ns = psplit_i_now_ns();
    for (uint32_t i = 0; i < w->n_given; i++) w->given[i] = w->inputs[w->input_ports[i]];
    if (psplit_i_session_run(&w->session, w->input_names, w->given, w->n_given, w->output_names,
                             w->outputs, table->n_outputs, diag)) {
      psplit_i_diag_context(diag, "micro-batch %u", m);
      return false;
    }
    release_all(w->inputs, table->n_inputs);
    event.done_ns = psplit_i_now_ns();
    if (give(stage, w, m, measured, diag, &stopped)) return false;
    release_all(w->outputs, table->n_outputs);
    event.sent_ns = psplit_i_now_ns();
    if (measured) stage->events[m] = event;
  }
  return !stopped;
}

static bool meet(psplit_i_stage *stage) {
  atomic_store(&stage->computes, false);
  const bool good = stage->host->meet(stage->host);
  atomic_store(&stage->computes, true);
  return good;
}

void psplit_i_stage_main(psplit_i_stage *stage) {
  const psplit_i_manifest_stage *table = &stage->pipe->manifest.stages[stage->index];
  const psplit_i_run_options *options = stage->options;
  psplit_diag diag = {0};
  work w = {0};
  atomic_store(&stage->computes, true);
  if (open_work(stage, table, &w, &diag) == PSPLIT_OK) {
    set_running(stage, &w.session);
    if (meet(stage) && run_all(stage, &w, options->n_warmup, false, &diag) && meet(stage))
      run_all(stage, &w, options->n_micro_batches, true, &diag);
    set_running(stage, NULL);
  }
  if (diag.code != PSPLIT_OK) {
    psplit_i_diag_context(&diag, "stage %u (%s)", stage->index, table->file);
    stage->host->fail(stage->host, &diag);
  }
  close_work(&w, table);
  atomic_store(&stage->computes, false);
}
