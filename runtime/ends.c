#include "ends.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void tell(psplit_i_host *host, psplit_diag *diag, const char *who) {
  if (diag->code == PSPLIT_OK) return;
  psplit_i_diag_context(diag, "%s", who);
  host->fail(host, diag);
}

/* The inputs of the model that a stream needs, and the tensors of the micro-batch at hand. */
typedef struct feeder {
  const psplit_i_ends *ends;
  psplit_i_record_files files;
  psplit_i_feed *feeds;      /* [n_needed] */
  psplit_i_tensor **tensors; /* [n_needed] */
} feeder;

static int32_t data_type_of(const char *name) {
  for (int32_t type = 1; name && psplit_i_element_name(type); type++)
    if (strcmp(psplit_i_element_name(type), name) == 0) return type;
  return 0;
}

/* What pipeline.json says of an input, as a session would. */
static void declare(const psplit_i_manifest_value *value, psplit_i_port *out) {
  const psplit_i_shape *shape = &value->shape;
  *out = (psplit_i_port){.data_type = data_type_of(value->dtype)};
  out->is_tensor = out->data_type != 0;
  if (shape->rank < 0 || shape->rank > PSPLIT_I_MAX_RANK) {
    out->n_dims = 1; /* of a size that is not known */
    out->dims[0] = -1;
    out->symbols[0] = "";
    return;
  }
  out->n_dims = (size_t)shape->rank;
  for (size_t d = 0; d < out->n_dims; d++) {
    out->dims[d] = shape->dims[d].value;
    out->symbols[d] = shape->dims[d].param ? shape->dims[d].param : "";
  }
}

static psplit_code open_feeder(feeder *f, psplit_diag *diag) {
  const psplit_i_run_options *options = f->ends->options;
  const psplit_i_manifest *m = &f->ends->pipe->manifest;
  psplit_i_feed_options feed = options->feed;
  psplit_code code = PSPLIT_OK;
  bool ends = options->n_micro_batches != PSPLIT_I_ENDLESS, used;
  f->files.stop = &f->ends->host->stopped;
  f->files.stall_timeout_s = options->stall_timeout_s;
  feed.records = &f->files;
  f->feeds = calloc((size_t)m->n_needed + 1, sizeof *f->feeds);
  f->tensors = calloc((size_t)m->n_needed + 1, sizeof *f->tensors);
  if (!f->feeds || !f->tensors) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < m->n_needed; i++) {
    psplit_i_port port;
    declare(&m->input_values[i], &port);
    PSPLIT_TRY(psplit_i_feed_open(f->ends->ort, &port, m->inputs[i], false, &feed,
                                  options->n_micro_batches, diag, &f->feeds[i], &used));
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
  for (uint32_t i = 0; f->tensors && i < f->ends->pipe->manifest.n_needed; i++) {
    psplit_i_tensor_release(f->tensors[i]);
    f->tensors[i] = NULL;
  }
}

/* Reads the inputs of a micro-batch; *out_end: there is none any more. */
static psplit_code read_inputs(feeder *f, uint64_t micro_batch, psplit_diag *diag, bool *out_end) {
  const psplit_i_manifest *m = &f->ends->pipe->manifest;
  psplit_code code = PSPLIT_OK;
  bool begun = false;
  for (uint32_t i = 0; i < m->n_needed; i++) {
    PSPLIT_TRY(psplit_i_feed_get(&f->feeds[i], (uint32_t)micro_batch, diag, &f->tensors[i]));
    const bool streams = f->feeds[i].records || f->feeds[i].counts;
    if (!f->tensors[i]) {
      *out_end = true;
      if (!begun || atomic_load(&f->ends->host->stopped)) return PSPLIT_OK;
      return psplit_i_fail(diag, PSPLIT_INVALID, "input %s has ended, and others have not",
                           m->inputs[i]);
    }
    begun |= streams;
  }
out:
  return code;
}

/* Gives each stage its part of the tensors at hand, or the end. *out_stopped tells that the run was
 * stopped meanwhile. */
static psplit_code give_inputs(feeder *f, bool end, psplit_diag *diag, bool *out_stopped) {
  const psplit_i_ends *ends = f->ends;
  for (uint32_t l = 0; l < ends->pipe->n_links; l++) {
    const psplit_i_pipe_link *link = &ends->pipe->links[l];
    if (link->from != PSPLIT_I_OUTSIDE) continue;
    psplit_i_bundle *bundle = psplit_i_bundle_create(link->n_tensors);
    if (!bundle) return psplit_i_nomem(diag);
    bundle->end = end;
    for (uint32_t i = 0; i < link->n_tensors && !end; i++)
      bundle->tensors[i] = psplit_i_tensor_hold(f->tensors[link->outputs[i]]);
    *out_stopped = !psplit_i_queue_push(ends->queues[l], bundle);
    if (*out_stopped) break;
  }
  return PSPLIT_OK;
}

void psplit_i_feeder_main(const psplit_i_ends *ends) {
  feeder f = {.ends = ends};
  psplit_diag diag = {0};
  bool end = false, stopped = false;
  psplit_code code = open_feeder(&f, &diag);
  for (uint64_t m = 0; code == PSPLIT_OK && !end && !stopped; m++) {
    end = m == ends->options->n_micro_batches;
    if (!end && (code = read_inputs(&f, m, &diag, &end)) != PSPLIT_OK)
      psplit_i_diag_context(&diag, "micro-batch %" PRIu64, m);
    else
      code = give_inputs(&f, end, &diag, &stopped);
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

/* Takes a bundle from each stage that makes outputs, into `tensors` by output. False at the end. */
static bool take_outputs(const psplit_i_ends *ends, psplit_i_tensor **tensors) {
  for (uint32_t l = 0; l < ends->pipe->n_links; l++) {
    const psplit_i_pipe_link *link = &ends->pipe->links[l];
    if (link->to != PSPLIT_I_OUTSIDE) continue;
    psplit_i_bundle *bundle = psplit_i_queue_pop(ends->queues[l]);
    const bool end = !bundle || bundle->end;
    for (uint32_t i = 0; !end && i < link->n_tensors; i++) {
      tensors[link->inputs[i]] = bundle->tensors[i];
      bundle->tensors[i] = NULL;
    }
    psplit_i_bundle_destroy(bundle);
    if (end) return false;
  }
  return true;
}

void psplit_i_collector_main(const psplit_i_ends *ends) {
  const psplit_i_run_options *options = ends->options;
  const uint32_t n = ends->pipe->manifest.n_outputs;
  psplit_diag diag = {0};
  psplit_i_tensor **tensors = calloc((size_t)n + 1, sizeof *tensors);
  psplit_code code = tensors ? PSPLIT_OK : psplit_i_nomem(&diag);
  for (uint64_t m = 0; code == PSPLIT_OK && take_outputs(ends, tensors); m++) {
    for (uint32_t o = 0; o < n; o++) {
      if (tensors[o] && m >= options->n_warmup && code == PSPLIT_OK)
        code =
          options->logger(options->user, (uint32_t)m - options->n_warmup, o, tensors[o], &diag);
      psplit_i_tensor_release(tensors[o]);
      tensors[o] = NULL;
    }
  }
  tell(ends->host, &diag, "giving outputs");
  for (uint32_t o = 0; tensors && o < n; o++) psplit_i_tensor_release(tensors[o]);
  free(tensors);
}
