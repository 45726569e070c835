#include "ends.h"

#include <inttypes.h>
#include <stdlib.h>

#include "feed_check.h"

static void tell(psplit_i_host *host, psplit_diag *diag, const char *who) {
  if (diag->code == PSPLIT_OK) return;
  psplit_i_diag_context(diag, "%s", who);
  host->fail(host, diag);
}

uint32_t psplit_i_ends_depth(const psplit_i_ends *ends, uint32_t link) {
  enum { USUAL = 2 };
  const psplit_i_run_options *options = ends->options;
  const psplit_i_pipe_link *l = &ends->pipe->links[link];
  if (options->depth) return options->depth;
  if (l->from == PSPLIT_I_OUTSIDE || l->to == PSPLIT_I_OUTSIDE) return USUAL;
  return options->source || options->deadline_s > 0 ? USUAL : psplit_i_pipe_depth(ends->pipe);
}

/* The inputs of the model that a stream needs, and the tensors of the micro-batch at hand. */
typedef struct feeder {
  const psplit_i_ends *ends;
  psplit_i_record_files files;
  psplit_i_feed *feeds;      /* [n_needed] */
  psplit_i_tensor **tensors; /* [n_needed] */
} feeder;

static psplit_code open_feeder(feeder *f, psplit_diag *diag) {
  const psplit_i_run_options *options = f->ends->options;
  const psplit_i_manifest *m = &f->ends->pipe->manifest;
  psplit_i_feed_options feed = options->feed;
  psplit_code code = PSPLIT_OK;
  if (options->source) {
    f->tensors = calloc((size_t)m->n_needed + 1, sizeof *f->tensors);
    return f->tensors ? PSPLIT_OK : psplit_i_nomem(diag);
  }
  bool ends = options->n_micro_batches != PSPLIT_I_ENDLESS, used;
  f->files.stop = &f->ends->host->stopped;
  f->files.stall_timeout_s = options->stall_timeout_s;
  feed.records = &f->files;
  f->feeds = calloc((size_t)m->n_needed + 1, sizeof *f->feeds);
  f->tensors = calloc((size_t)m->n_needed + 1, sizeof *f->tensors);
  if (!f->feeds || !f->tensors) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < m->n_needed; i++) {
    psplit_i_session_port port;
    psplit_i_declared_port(&m->input_values[i], &port);
    const psplit_i_feed_input input = {f->ends->ort, &port, m->inputs[i], false};
    PSPLIT_TRY(
      psplit_i_feed_open(&input, &feed, options->n_micro_batches, diag, &f->feeds[i], &used));
    ends |= f->feeds[i].records || f->feeds[i].counts;
  }
  if (!ends)
    return psplit_i_fail_about(
      diag, PSPLIT_USAGE, PSPLIT_I_HELPS(MICRO_BATCHES),
      "no input is a stream (\"-\", a pipe, or a path with {}), so nothing ends "
      "it");
out:
  return code;
}

static void release_tensors(feeder *f) {
  if (f->tensors) psplit_i_tensors_release(f->tensors, f->ends->pipe->manifest.n_needed);
}

/* How a micro-batch was read. */
typedef struct reading {
  bool end;            /* not at all: there is none any more */
  bool last;           /* nothing can be read behind it */
  int64_t deadline_ns; /* 0: none */
  psplit_i_step step;
  psplit_diag failure; /* OK: it is good */
} reading;

/* Reads the inputs of a micro-batch. Where one is bad, the others are read all the same, so that
 * they stay in step. */
static void read_inputs(feeder *f, uint64_t micro_batch, reading *out) {
  const psplit_i_manifest *m = &f->ends->pipe->manifest;
  const double deadline_s = f->ends->options->deadline_s;
  bool begun = false, ended = false;
  for (uint32_t i = 0; i < m->n_needed && !ended && !out->last; i++) {
    const psplit_i_feed *feed = &f->feeds[i];
    const psplit_code code = psplit_i_feed_get(
      feed, f->ends->options->first + (uint32_t)micro_batch, &out->failure, &f->tensors[i]);
    ended = code == PSPLIT_OK && !f->tensors[i];
    out->last |= code != PSPLIT_OK && feed->records && psplit_i_records_are_lost(feed->records);
    if (ended && begun && !atomic_load(&f->ends->host->stopped) &&
        psplit_i_fail(&out->failure, PSPLIT_INVALID, "input %s has ended before others",
                      m->inputs[i]) != PSPLIT_OK)
      out->last = true;
    begun |= feed->records || feed->counts;
  }
  out->end = ended && !out->last;
  if (deadline_s > 0) out->deadline_ns = psplit_i_after(psplit_i_now_ns(), deadline_s);
  psplit_i_diag_context(&out->failure, "reading inputs: micro-batch %" PRIu64,
                        f->ends->options->first + micro_batch);
}

/* Gives each stage its part of the tensors at hand, or what is wrong with them, or the end.
 * *out_stopped tells that the run was stopped meanwhile. */
static psplit_code give_inputs(feeder *f, const reading *how, psplit_diag *diag,
                               bool *out_stopped) {
  const psplit_i_ends *ends = f->ends;
  psplit_code code = PSPLIT_OK;
  for (uint32_t l = 0; l < ends->pipe->n_links && !*out_stopped; l++) {
    const psplit_i_pipe_link *link = &ends->pipe->links[l];
    if (link->from != PSPLIT_I_OUTSIDE) continue;
    psplit_i_bundle *bundle = psplit_i_bundle_create(link->n_tensors);
    if (!bundle) return psplit_i_nomem(diag);
    bundle->end = how->end;
    bundle->deadline_ns = how->deadline_ns;
    bundle->step = how->step;
    code = psplit_i_bundle_fail(bundle, &how->failure, diag);
    if (code != PSPLIT_OK) {
      psplit_i_bundle_destroy(bundle);
      return code;
    }
    for (uint32_t i = 0; i < link->n_tensors && !how->end && !bundle->failure; i++)
      if (f->tensors[link->outputs[i]])
        bundle->tensors[i] = psplit_i_tensor_hold(f->tensors[link->outputs[i]]);
    *out_stopped = !psplit_i_queue_push(ends->queues[l], bundle);
  }
  return code;
}

void psplit_i_feeder_main(const psplit_i_ends *ends) {
  const psplit_i_run_options *options = ends->options;
  const psplit_i_source *source = options->source;
  feeder f = {.ends = ends};
  psplit_diag diag = {0};
  bool end = false, last = false, stopped = false;
  psplit_code code = open_feeder(&f, &diag);
  for (uint64_t m = 0; code == PSPLIT_OK && !end && !stopped; m++) {
    reading how = {.end = last || (m == options->n_micro_batches && m != PSPLIT_I_ENDLESS)};
    if (!how.end && source)
      how.end = !source->next(source->user, &ends->host->stopped, f.tensors, &how.deadline_ns,
                              &how.step, &how.failure);
    else if (!how.end)
      read_inputs(&f, m, &how);
    end = how.end;
    last = how.last || (how.failure.code != PSPLIT_OK && options->on_error == PSPLIT_ON_ERROR_STOP);
    code = give_inputs(&f, &how, &diag, &stopped);
    release_tensors(&f);
  }
  tell(ends->host, &diag, "reading inputs");
  release_tensors(&f);
  for (uint32_t i = 0; f.feeds && i < ends->pipe->manifest.n_needed; i++)
    psplit_i_feed_close(&f.feeds[i]);
  psplit_i_records_close_all(&f.files);
  free(f.tensors);
  free(f.feeds);
}

/* Takes a bundle from each stage that ends micro-batches, into `tensors` by output; in *failure
 * what went wrong. False at the end. */
static bool take_outputs(const psplit_i_ends *ends, uint64_t micro_batch, psplit_i_tensor **tensors,
                         psplit_diag *failure) {
  for (uint32_t l = 0; l < ends->pipe->n_links; l++) {
    const psplit_i_pipe_link *link = &ends->pipe->links[l];
    if (link->to != PSPLIT_I_OUTSIDE) continue;
    psplit_i_bundle *bundle = psplit_i_queue_pop(ends->queues[l]);
    const bool end = !bundle || bundle->end;
    for (uint32_t i = 0; !end && i < link->n_tensors; i++) {
      tensors[link->inputs[i]] = bundle->tensors[i];
      bundle->tensors[i] = NULL;
    }
    if (!end && bundle->failure && failure->code == PSPLIT_OK) *failure = *bundle->failure;
    if (!end && failure->code == PSPLIT_OK &&
        psplit_i_deadline_check(bundle->deadline_ns, failure) != PSPLIT_OK)
      psplit_i_diag_context(failure, "giving outputs: micro-batch %" PRIu64,
                            ends->options->first + micro_batch);
    psplit_i_bundle_destroy(bundle);
    if (end) return false;
  }
  return true;
}

void psplit_i_collector_main(const psplit_i_ends *ends) {
  const psplit_i_run_options *options = ends->options;
  const uint32_t n = ends->pipe->manifest.n_outputs, n_warmup = options->n_warmup;
  psplit_diag diag = {0}, failure = {0};
  psplit_i_tensor **tensors = calloc((size_t)n + 1, sizeof *tensors);
  psplit_code code = tensors ? PSPLIT_OK : psplit_i_nomem(&diag);
  bool stopped = false;
  for (uint64_t m = 0;
       code == PSPLIT_OK && !stopped && take_outputs(ends, m - n_warmup, tensors, &failure); m++) {
    if (options->source) {
      options->source->done(options->source->user, tensors, &failure);
      failure.code = PSPLIT_OK;
      failure.message[0] = '\0';
      psplit_i_tensors_release(tensors, n);
      continue;
    }
    if (failure.code != PSPLIT_OK) {
      code = psplit_i_host_pass_over(ends->host, options, m - n_warmup, m >= n_warmup, &failure,
                                     &diag, &stopped);
      failure = (psplit_diag){0};
      psplit_i_tensors_release(tensors, n);
      continue;
    }
    for (uint32_t o = 0; o < n && m >= n_warmup && code == PSPLIT_OK; o++) {
      if (!tensors[o]) continue;
      code = options->take_output(options->user, options->first + (uint32_t)(m - n_warmup), o,
                                  tensors[o], &diag);
      psplit_i_diag_context(&diag, "output %s", ends->pipe->manifest.outputs[o]);
    }
    if (code == PSPLIT_OK && m >= n_warmup)
      psplit_i_delivered_add(options->delivered, options->first + (m - n_warmup));
    psplit_i_tensors_release(tensors, n);
  }
  tell(ends->host, &diag, "giving outputs");
  if (tensors) psplit_i_tensors_release(tensors, n);
  free(tensors);
}
