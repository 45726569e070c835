/* The whole model against the pipeline, in numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cancel.h"
#include "casts.h"
#include "feed_check.h"
#include "run.h"

typedef struct comparison {
  const psplit_i_pipe *pipe;
  psplit_i_tensor **whole;               /* [micro_batch * n_outputs + output] */
  psplit_output_difference *differences; /* each output is made by one stage, so by one thread */
} comparison;

static void release(psplit_i_tensor **tensors, size_t n) {
  for (size_t i = 0; i < n; i++) {
    psplit_i_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

/* Whether the whole model gives it: training adds outputs, such as the loss. */
static bool has_output(const psplit_i_session *session, const char *name) {
  for (size_t i = 0; i < session->n_outputs; i++)
    if (strcmp(session->outputs[i].name, name) == 0) return true;
  return false;
}

/* The whole model, opened, and what its session is given and asked for. */
typedef struct whole_model {
  const psplit_i_pipe *pipe;
  psplit_i_session session;
  psplit_i_feed *feeds;    /* [n_given] */
  const char **names;      /* [n_given] */
  psplit_i_tensor **given; /* [n_given] of the micro-batch at hand */
  const char **asked;      /* [n_asked] outputs */
  uint32_t *place;         /* [n_asked] of the output among the pipeline's */
  psplit_i_tensor **made;  /* [n_asked] */
  uint32_t n_given, n_asked;
} whole_model;

static psplit_code open_whole(const psplit_i_ort *ort, const char *path,
                              const psplit_i_run_options *options, psplit_diag *diag,
                              whole_model *w) {
  psplit_code code;
  const psplit_i_manifest *m = &w->pipe->manifest;
  const bool trains = m->training != NULL;
  const size_t n_inputs = (size_t)m->n_inputs + 1, n_outputs = (size_t)m->n_outputs + 1;
  w->feeds = calloc(n_inputs, sizeof *w->feeds);
  w->names = calloc(n_inputs, sizeof *w->names);
  w->given = calloc(n_inputs, sizeof *w->given);
  w->asked = calloc(n_outputs, sizeof *w->asked);
  w->place = calloc(n_outputs, sizeof *w->place);
  w->made = calloc(n_outputs, sizeof *w->made);
  if (!w->feeds || !w->names || !w->given || !w->asked || !w->place || !w->made)
    return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_session_open(ort, path, &options->session, diag, &w->session));
  for (uint32_t i = 0; i < m->n_inputs; i++) {
    bool used;
    const psplit_i_feed_input input = {ort, psplit_i_session_input(&w->session, m->inputs[i]),
                                       m->inputs[i], i >= m->n_needed};
    if (trains && !input.port) continue; /* labels, masks */
    PSPLIT_TRY(psplit_i_feed_open(&input, &options->feed, options->n_micro_batches, diag,
                                  &w->feeds[w->n_given], &used));
    if (used) w->names[w->n_given++] = m->inputs[i];
  }
  for (uint32_t o = 0; o < m->n_outputs; o++) {
    if (trains && !has_output(&w->session, m->outputs[o])) continue;
    w->place[w->n_asked] = o;
    w->asked[w->n_asked++] = m->outputs[o];
  }
out:
  return code;
}

/* Runs a micro-batch n_times, and keeps what the last run gives, by the pipeline's outputs. */
static psplit_code run_micro_batch(whole_model *w, uint32_t micro_batch, uint32_t n_times,
                                   psplit_diag *diag, psplit_i_tensor **outputs) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < w->n_given && code == PSPLIT_OK; i++)
    code = psplit_i_feed_get(&w->feeds[i], micro_batch, diag, &w->given[i]);
  for (uint32_t time = 0; time < n_times && code == PSPLIT_OK; time++) {
    release(outputs, w->pipe->manifest.n_outputs);
    code = psplit_i_session_run(
      &w->session,
      &(psplit_i_session_io){w->names, w->given, w->n_given, w->asked, w->made, w->n_asked}, diag);
    if (code == PSPLIT_INVALID) psplit_i_feeds_say_made(w->feeds, w->n_given, diag);
    for (uint32_t o = 0; o < w->n_asked; o++) {
      outputs[w->place[o]] = w->made[o];
      w->made[o] = NULL;
    }
  }
  for (uint32_t i = 0; i < w->n_given; i++) {
    psplit_i_tensor_release(w->given[i]);
    w->given[i] = NULL;
  }
  return code;
}

static void close_whole(whole_model *w) {
  for (uint32_t i = 0; w->feeds && i < w->n_given; i++) psplit_i_feed_close(&w->feeds[i]);
  psplit_i_session_close(&w->session);
  free(w->made);
  free(w->place);
  free(w->asked);
  free(w->given);
  free(w->names);
  free(w->feeds);
}

/* Fills whole[micro_batch * n_outputs + output] with what the last of n_times runs of each gives;
 * NULL: an output that training adds. */
static psplit_code run_whole(const psplit_i_ort *ort, const char *path, const psplit_i_pipe *pipe,
                             const psplit_i_run_options *options, uint32_t n_times,
                             psplit_i_tensor **whole, psplit_diag *diag) {
  whole_model w = {.pipe = pipe};
  psplit_code code = open_whole(ort, path, options, diag, &w);
  for (uint32_t m = 0; m < options->n_micro_batches && code == PSPLIT_OK; m++) {
    if (options->interrupted && atomic_load(options->interrupted))
      code = psplit_i_interrupted(diag);
    else
      code = run_micro_batch(&w, m, n_times, diag, whole + (size_t)m * pipe->manifest.n_outputs);
  }
  if (code != PSPLIT_OK && code != PSPLIT_CANCELLED) psplit_i_diag_file(diag, path);
  close_whole(&w);
  return code;
}

static void add_numbers(const psplit_i_tensor_view *whole, const psplit_i_tensor_view *part,
                        psplit_output_difference *d) {
  const uint32_t bits = psplit_i_element_bits(whole->data_type);
  const uint64_t bytes = bits < 8 ? 1 : bits / 8, n = bits < 8 ? whole->n_bytes : whole->n_elements;
  for (uint64_t i = 0; i < n; i++) {
    if (memcmp((const char *)whole->data + i * bytes, (const char *)part->data + i * bytes,
               bytes) == 0)
      continue;
    d->n_different++;
    const double a = psplit_i_tensor_number(whole, i), b = psplit_i_tensor_number(part, i),
                 gap = fabs(a - b);
    d->max_abs = isnan(gap) ? INFINITY : fmax(d->max_abs, gap);
    d->max_rel = isnan(gap) || a == 0 ? INFINITY : fmax(d->max_rel, gap / fabs(a));
  }
}

static psplit_code add_strings(const psplit_i_tensor *whole, const psplit_i_tensor *part,
                               const psplit_i_tensor_view *a, const psplit_i_tensor_view *b,
                               psplit_diag *diag, psplit_output_difference *d) {
  char *x = malloc((size_t)a->n_bytes + 1), *y = malloc((size_t)b->n_bytes + 1);
  psplit_code code = x && y ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code != PSPLIT_OK) goto out;
  PSPLIT_TRY(psplit_i_tensor_pack(whole, a, diag, x));
  PSPLIT_TRY(psplit_i_tensor_pack(part, b, diag, y));
  if (a->n_bytes != b->n_bytes || memcmp(x, y, (size_t)a->n_bytes) != 0) {
    d->n_different++;
    d->max_abs = d->max_rel = INFINITY;
  }
out:
  free(x);
  free(y);
  return code;
}

static psplit_code add_tensors(const char *output, const psplit_i_tensor *whole,
                               const psplit_i_tensor *part, psplit_diag *diag,
                               psplit_output_difference *d) {
  psplit_i_tensor_view a, b;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(whole, diag, &a));
  PSPLIT_TRY(psplit_i_tensor_look(part, diag, &b));
  if (a.data_type != b.data_type || a.n_dims != b.n_dims ||
      memcmp(a.dims, b.dims, a.n_dims * sizeof *a.dims) != 0)
    return psplit_i_fail(diag, PSPLIT_MISMATCH, "output %s has another type or shape", output);
  d->n_elements += a.n_elements;
  if (a.data)
    add_numbers(&a, &b, d);
  else if (a.n_elements)
    code = add_strings(whole, part, &a, &b, diag, d);
out:
  return code;
}

/* Sequences are compared value by value, maps as their keys and their values, each of which may be
 * a sequence or a map again: `depth` is how often. */
static psplit_code add_values(const char *output, const psplit_i_tensor *whole,
                              const psplit_i_tensor *part, unsigned depth, psplit_diag *diag,
                              psplit_output_difference *d) {
  enum { MOST_DEPTH = 8 };
  psplit_i_value_view a, b;
  psplit_i_tensor *x = NULL, *y = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_value_look(whole, diag, &a));
  PSPLIT_TRY(psplit_i_value_look(part, diag, &b));
  if (a.is_sequence != b.is_sequence || a.is_map != b.is_map || a.is_nothing != b.is_nothing ||
      a.n != b.n)
    return psplit_i_fail(diag, PSPLIT_MISMATCH, "output %s has another type or number of values",
                         output);
  if (a.is_nothing) return PSPLIT_OK;
  if (!a.is_sequence && !a.is_map) return add_tensors(output, whole, part, diag, d);
  if (depth == MOST_DEPTH)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "output %s has more than %d nested sequences",
                         output, MOST_DEPTH);
  for (size_t i = 0; i < a.n; i++) {
    PSPLIT_TRY(psplit_i_value_of(whole, i, diag, &x));
    PSPLIT_TRY(psplit_i_value_of(part, i, diag, &y));
    PSPLIT_TRY(add_values(output, x, y, depth + 1, diag, d));
    psplit_i_tensor_release(x);
    psplit_i_tensor_release(y);
    x = y = NULL;
  }
out:
  psplit_i_tensor_release(x);
  psplit_i_tensor_release(y);
  return code;
}

static psplit_code compare(void *user, uint32_t micro_batch, uint32_t output, psplit_i_tensor *part,
                           psplit_diag *diag) {
  comparison *c = user;
  const psplit_i_tensor *whole =
    c->whole[(size_t)micro_batch * c->pipe->manifest.n_outputs + output];
  psplit_output_difference *d = &c->differences[output];
  d->added = !whole;
  if (!whole) return PSPLIT_OK;
  return add_values(c->pipe->manifest.outputs[output], whole, part, 0, diag, d);
}

/* A model that draws random numbers differs from itself: its second run in one session, since the
 * first may begin with the same seed. */
static psplit_code find_random(const psplit_i_ort *ort, const char *path, comparison *c,
                               const psplit_i_run_options *options, psplit_diag *diag) {
  const uint32_t n_outputs = c->pipe->manifest.n_outputs;
  const size_t n = (size_t)options->n_micro_batches * n_outputs;
  psplit_i_tensor **again = calloc(n + 1, sizeof *again);
  psplit_output_difference *own = calloc((size_t)n_outputs + 1, sizeof *own);
  comparison self = {c->pipe, c->whole, own};
  psplit_code code = again && own ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code == PSPLIT_OK) code = run_whole(ort, path, c->pipe, options, 2, again, diag);
  for (size_t i = 0; i < n && code == PSPLIT_OK; i++)
    code = compare(&self, (uint32_t)(i / n_outputs), (uint32_t)(i % n_outputs), again[i], diag);
  for (uint32_t o = 0; o < n_outputs && code == PSPLIT_OK; o++)
    c->differences[o].random = c->differences[o].n_different && own[o].n_different;
  if (again) release(again, n);
  free(again);
  free(own);
  return code;
}

/* Where a runtime has no kernel in float16 it keeps float32 between the nodes of a file, and rounds
 * what leaves it: outputs that follow from a float16 tensor that crosses may have other bits. */
static psplit_code find_rounded(const psplit_i_pipe *pipe, psplit_diag *diag,
                                psplit_output_difference *out) {
  const psplit_i_manifest *m = &pipe->manifest;
  bool *rounded = calloc((size_t)m->n_stages + 1, sizeof *rounded); /* [stage] what it is given */
  if (!rounded) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < m->n_transfers; t++)
    if (m->transfers[t].dtype && strcmp(m->transfers[t].dtype, "float16") == 0)
      rounded[m->transfers[t].to] = true;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t t = 0; t < m->n_transfers; t++) {
      const psplit_i_manifest_transfer *transfer = &m->transfers[t];
      if (!rounded[transfer->from] || rounded[transfer->to]) continue;
      rounded[transfer->to] = more = true;
    }
  }
  for (uint32_t s = 0; s < m->n_stages; s++)
    for (uint32_t i = 0; i < m->stages[s].n_outputs; i++) {
      const uint32_t o = pipe->model_output[s][i];
      if (o != PSPLIT_NONE) out[o].rounded = rounded[s] && out[o].n_different;
    }
  free(rounded);
  return PSPLIT_OK;
}

/* Stages that train take weights as inputs, which ONNX Runtime cannot pack once for all. With the
 * model's packed, products would add up in another order: no session packs any. */
static psplit_code pack_nothing(psplit_i_session_options *session, psplit_diag *diag,
                                const char ***out_lists) {
  const size_t n = session->n_config;
  const char **lists = calloc(2 * (n + 1), sizeof *lists);
  if (!lists) return psplit_i_nomem(diag);
  const char **values = lists + n + 1;
  for (size_t i = 0; i < n; i++) {
    lists[i] = session->config_keys[i];
    values[i] = session->config_values[i];
  }
  lists[n] = "session.disable_prepacking";
  values[n] = "1";
  session->config_keys = lists;
  session->config_values = values;
  session->n_config = n + 1;
  *out_lists = lists;
  return PSPLIT_OK;
}

static psplit_code compare_run(const psplit_i_ort *ort, const char *model_path,
                               const psplit_i_pipe *pipe, const psplit_i_run_options *options,
                               psplit_diag *diag, psplit_output_difference *out) {
  const size_t n = (size_t)options->n_micro_batches * pipe->manifest.n_outputs;
  comparison c = {pipe, calloc(n + 1, sizeof *c.whole), out};
  psplit_i_run_options run = *options;
  psplit_i_timeline timeline = {0};
  const char **lists = NULL;
  psplit_code code = c.whole ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code != PSPLIT_OK) return code;
  memset(out, 0, pipe->manifest.n_outputs * sizeof *out);
  if (pipe->manifest.training) PSPLIT_TRY(pack_nothing(&run.session, diag, &lists));
  run.take_output = compare;
  run.user = &c;
  PSPLIT_TRY(run_whole(ort, model_path, pipe, &run, 1, c.whole, diag));
  PSPLIT_TRY(psplit_i_run_threads(ort, pipe, &run, diag, &timeline));
  bool differ = false;
  for (uint32_t o = 0; o < pipe->manifest.n_outputs; o++) differ |= out[o].n_different != 0;
  if (differ) PSPLIT_TRY(find_rounded(pipe, diag, out));
  if (differ && options->session.optimization == 0)
    PSPLIT_TRY(find_random(ort, model_path, &c, &run, diag));
out:
  psplit_i_timeline_fini(&timeline);
  release(c.whole, n);
  free(c.whole);
  free(lists);
  return code;
}

psplit_code psplit_compare_run(const psplit_onnxruntime *ort, const char *model_path,
                               psplit_pipeline *pipeline, const psplit_run_options *options,
                               psplit_diag *diag, psplit_output_difference *out) {
  psplit_i_run_setup setup = {0};
  psplit_code code;
  PSPLIT_TRY(
    psplit_i_run_setup_make(options, pipeline->pipe.manifest.n_stages, false, diag, &setup));
  setup.run.stage_sessions = NULL;
  setup.run.first = setup.run.feed.first = 0;
  PSPLIT_TRY(psplit_i_feed_meet(&setup.run.feed, &pipeline->pipe, diag));
  PSPLIT_TRY(compare_run(&ort->ort, model_path, &pipeline->pipe, &setup.run, diag, out));
out:
  psplit_i_run_setup_fini(&setup);
  return code;
}
