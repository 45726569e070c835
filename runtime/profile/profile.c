#include "profile.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "feed_check.h"
#include "hidden_directory.h"
#include "profile_watch.h"
#include "queue.h"
#include "scratch_directory.h"

/* What ONNX Runtime tells of a run: some 300 bytes for each node and micro-batch. */
static const uint64_t PROFILE_BYTES = UINT64_C(1) << 30;

/* A session of the whole model with what it is fed. */
typedef struct whole {
  psplit_i_profile_watch *watch;
  psplit_i_session session;
  psplit_i_feed *feeds;    /* [n_inputs] */
  const char **names;      /* [n_given] */
  psplit_i_tensor **given; /* [n_given] */
  const char **outputs;    /* [n_outputs] names */
  psplit_i_tensor **got;   /* [n_outputs] */
  uint32_t n_given;
  bool told_zero; /* some size is to be 0 */
} whole;

/* What goes wrong in closing is told no more, but it is not waited for either. */
static void close_session(whole *w) {
  psplit_diag ignored = {0};
  psplit_i_profile_watch_begin(w->watch, "has been closed", NULL);
  psplit_i_session_close(&w->session);
  const psplit_code late = psplit_i_profile_watch_end(w->watch, PSPLIT_OK, &ignored);
  (void)late;
}

static void close_whole(whole *w) {
  for (uint32_t i = 0; w->feeds && i < w->n_given; i++) psplit_i_feed_close(&w->feeds[i]);
  psplit_i_tensors_release(w->given, w->n_given);
  psplit_i_tensors_release(w->got, w->session.n_outputs);
  if (w->session.ort) close_session(w);
  free(w->feeds);
  free(w->names);
  free(w->given);
  free(w->outputs);
  free(w->got);
  *w = (whole){.watch = w->watch};
}

/* Inputs that the model does not have are a mistake. */
static psplit_code check_feed(const psplit_i_session *session, const psplit_feed_options *feed,
                              psplit_diag *diag) {
  for (size_t i = 0; i < psplit_i_feed_n_names(feed); i++) {
    const char *name = psplit_i_feed_name(feed, i);
    if (name && !psplit_i_session_input(session, name))
      return psplit_i_fail(diag, PSPLIT_USAGE, "the model has no input %s", name);
  }
  return PSPLIT_OK;
}

static bool told_zero(const psplit_feed_options *feed) {
  for (size_t i = 0; i < feed->n_dims; i++)
    if (feed->dims[i].value == 0) return true;
  for (size_t i = 0; i < feed->n_shapes; i++)
    for (uint32_t d = 0; d < feed->shapes[i].n_dims; d++)
      if (feed->shapes[i].dims[d] == 0) return true;
  return false;
}

static psplit_code open_whole(const psplit_i_ort *ort, const char *path,
                              const psplit_i_session_options *session,
                              const psplit_i_run_options *options, psplit_diag *diag, whole *w) {
  psplit_code code;
  size_t n_needed;
  psplit_i_profile_watch_begin(w->watch, "has been opened", NULL);
  code = psplit_i_session_open(ort, path, session, diag, &w->session);
  PSPLIT_TRY(psplit_i_profile_watch_end(w->watch, code, diag));
  PSPLIT_TRY(check_feed(&w->session, &options->feed.given, diag));
  w->told_zero = told_zero(&options->feed.given);
  const size_t n_in = w->session.n_inputs, n_out = w->session.n_outputs;
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.SessionGetInputCount(w->session.session, &n_needed),
                                path, diag));
  w->feeds = calloc(n_in + 1, sizeof *w->feeds);
  w->names = calloc(n_in + 1, sizeof *w->names);
  w->given = calloc(n_in + 1, sizeof *w->given);
  w->outputs = calloc(n_out + 1, sizeof *w->outputs);
  w->got = calloc(n_out + 1, sizeof *w->got);
  if (!w->feeds || !w->names || !w->given || !w->outputs || !w->got)
    PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_feed_options feed = options->feed;
  for (size_t i = 0; i < n_in; i++) {
    const psplit_i_session_port *port = &w->session.inputs[i];
    psplit_i_feed_look(&feed, &(psplit_i_feed_input){ort, port, port->name, i >= n_needed});
  }
  for (size_t i = 0; i < n_in; i++) {
    const char *name = w->session.inputs[i].name;
    bool used;
    const psplit_i_feed_input input = {ort, &w->session.inputs[i], name, i >= n_needed};
    PSPLIT_TRY(
      psplit_i_feed_open(&input, &feed, PSPLIT_I_DISTINCT, diag, &w->feeds[w->n_given], &used));
    if (used) w->names[w->n_given++] = name;
  }
  for (size_t o = 0; o < n_out; o++) w->outputs[o] = w->session.outputs[o].name;
out:
  return code;
}

/* A size of 0 is one that a dimension may have, such as that of an empty cache; but times of a run
 * whose outputs are empty say nothing. */
static psplit_code check_outputs(const whole *w, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t o = 0; o < w->session.n_outputs; o++) {
    psplit_i_value_view kind;
    psplit_i_tensor_view view;
    PSPLIT_TRY(psplit_i_value_look(w->got[o], diag, &kind));
    if (kind.is_sequence || kind.is_map || kind.is_nothing) continue;
    PSPLIT_TRY(psplit_i_tensor_look(w->got[o], diag, &view));
    if (!view.n_elements)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE,
                                "with a size of 0 the output \"%s\" is empty: there is nothing to "
                                "measure; use the sizes of a run",
                                w->outputs[o]));
  }
out:
  return code;
}

static psplit_code run_once(whole *w, uint64_t number, psplit_diag *diag, int64_t *out_ns) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < w->n_given; i++)
    PSPLIT_TRY(
      psplit_i_feed_get(&w->feeds[i], (uint32_t)(number % PSPLIT_I_DISTINCT), diag, &w->given[i]));
  const int64_t begin_ns = psplit_i_now_ns();
  psplit_i_profile_watch_begin(w->watch, "has computed", &w->session);
  code = psplit_i_session_run(&w->session,
                              &(psplit_i_session_io){w->names, w->given, w->n_given, w->outputs,
                                                     w->got, w->session.n_outputs},
                              diag);
  if (code == PSPLIT_INVALID) psplit_i_feeds_say_made(w->feeds, w->n_given, diag);
  PSPLIT_TRY(psplit_i_profile_watch_end(w->watch, code, diag));
  *out_ns = psplit_i_now_ns() - begin_ns;
  if (w->told_zero) PSPLIT_TRY(check_outputs(w, diag));
out:
  psplit_i_tensors_release(w->got, w->session.n_outputs);
  psplit_i_tensors_release(w->given, w->n_given);
  return code;
}

/* Warms up, then runs; out_ns[n_micro_batches] gets the times. */
static psplit_code run_timed(whole *w, const psplit_i_run_options *options, psplit_diag *diag,
                             int64_t *out_ns) {
  psplit_code code = PSPLIT_OK;
  int64_t warm_ns;
  const uint64_t n_warmup = options->n_warmup, n = n_warmup + options->n_micro_batches;
  for (uint64_t i = 0; i < n && code == PSPLIT_OK; i++)
    code = run_once(w, i, diag, i < n_warmup ? &warm_ns : &out_ns[i - n_warmup]);
  return code;
}

void psplit_i_profile_take_times(int64_t *ns, uint32_t n, psplit_i_profile *profile) {
  qsort(ns, n, sizeof *ns, psplit_i_compare_ns);
  const int64_t slow = ns[3 * (size_t)n / 4];
  profile->least_ns = ns[0];
  profile->median_ns = ns[n / 2];
  profile->spread_frac = ns[0] > 0 ? (double)(slow - ns[0]) / (double)ns[0] : 0;
}

/* Into the times of `out`, which may be NULL. */
static psplit_code run_all(whole *w, const psplit_i_run_options *options, psplit_diag *diag,
                           psplit_i_profile *out) {
  const uint32_t n = options->n_micro_batches;
  psplit_code code = PSPLIT_OK;
  int64_t *ns = calloc(n, sizeof *ns);
  if (!ns) return psplit_i_nomem(diag);
  PSPLIT_TRY(run_timed(w, options, diag, ns));
  if (out) psplit_i_profile_take_times(ns, n, out);
out:
  free(ns);
  return code;
}

psplit_code psplit_i_profile_make_room(psplit_i_profile *profile, psplit_diag *diag) {
  psplit_i_arena_init(&profile->arena, 0);
  psplit_code code = PSPLIT_OK;
  PSPLIT_TRY(psplit_i_scratch_directory("profile", diag, &profile->directory));
  psplit_i_text_addf(&profile->optimized, "%s/optimized.onnx", profile->directory.bytes);
  if (profile->optimized.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
out:
  return code;
}

/* What the last run was fed. */
static psplit_code keep_inputs(whole *w, const psplit_i_run_options *options, psplit_diag *diag,
                               psplit_i_profile *profile) {
  const uint64_t last = (uint64_t)options->n_warmup + options->n_micro_batches - 1;
  psplit_code code = PSPLIT_OK;
  psplit_i_arena *arena = &profile->arena;
  profile->inputs = psplit_i_arena_array(arena, w->n_given, sizeof *profile->inputs);
  if (!profile->inputs) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < w->n_given; i++) {
    psplit_i_value_view kind;
    psplit_i_tensor_view view;
    PSPLIT_TRY(
      psplit_i_feed_get(&w->feeds[i], (uint32_t)(last % PSPLIT_I_DISTINCT), diag, &w->given[i]));
    PSPLIT_TRY(psplit_i_value_look(w->given[i], diag, &kind));
    if (kind.is_sequence) continue; /* it has no shape */
    PSPLIT_TRY(psplit_i_tensor_look(w->given[i], diag, &view));
    int64_t *dims = psplit_i_arena_array(arena, view.n_dims, sizeof *dims);
    assert(w->names[i]); /* by open_whole() */
    const char *name = psplit_i_arena_strndup(arena, w->names[i], strlen(w->names[i]));
    if (!dims || !name) PSPLIT_FAIL(psplit_i_nomem(diag));
    if (view.n_dims) memcpy(dims, view.dims, view.n_dims * sizeof *dims);
    profile->inputs[profile->n_inputs++] = (psplit_i_fed){name, dims, view.n_dims};
  }
out:
  psplit_i_tensors_release(w->given, w->n_given);
  return code;
}

/* ONNX Runtime says nothing where it cannot write: what it wrote is then not the whole list. */
static bool is_whole(const psplit_i_profile *profile) {
  size_t n = profile->n_events;
  while (n && strchr(" \r\n", profile->events[n - 1])) n--;
  return n && profile->events[n - 1] == ']';
}

psplit_code psplit_i_profile_take_events(const char *file, psplit_diag *diag,
                                         psplit_i_profile *profile) {
  const psplit_i_text_options most = {.max_bytes = PROFILE_BYTES,
                                      .lifted_by = PSPLIT_HINT_FEWER_MICRO_BATCHES};
  const psplit_code code =
    psplit_i_text_read(file, &most, diag, &profile->events, &profile->n_events);
  if (code != PSPLIT_OK || is_whole(profile)) return code;
  return psplit_i_fail(diag, PSPLIT_IO,
                       "ONNX Runtime could not write all of its profile in %s; TMPDIR can name a "
                       "directory with more room",
                       psplit_i_scratch_place());
}

/* Under the profiler. Its file appears when the profile is ended. */
static psplit_code run_profiled(const psplit_i_ort *ort, const char *path,
                                const psplit_i_run_options *options, psplit_i_profile_watch *watch,
                                psplit_diag *diag, psplit_i_profile *profile) {
  psplit_code code;
  psplit_i_text prefix = {0};
  whole w = {.watch = watch};
  char *file = NULL;
  psplit_i_session_options session = options->session;
  psplit_i_text_addf(&prefix, "%s/profile", profile->directory.bytes);
  if (prefix.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  session.profile_prefix = prefix.bytes;
  session.optimized_path = profile->optimized.bytes;
  PSPLIT_TRY(open_whole(ort, path, &session, options, diag, &w));
  PSPLIT_TRY(run_all(&w, options, diag, NULL));
  PSPLIT_TRY(keep_inputs(&w, options, diag, profile));
  PSPLIT_TRY(psplit_i_ort_check(
    ort, ort->api.SessionEndProfiling(w.session.session, ort->allocator, &file), path, diag));
  PSPLIT_TRY(psplit_i_profile_take_events(file, diag, profile));
out:
  if (file) {
    OrtStatus *status = ort->api.AllocatorFree(ort->allocator, file);
    if (status) ort->api.ReleaseStatus(status);
  }
  close_whole(&w);
  psplit_i_text_fini(&prefix);
  return code;
}

void psplit_i_profile_remove_files(const psplit_i_profile *profile) {
  if (profile->directory.bytes) psplit_i_remove_tree(AT_FDCWD, profile->directory.bytes);
}

static void remove_files(void *user) { psplit_i_profile_remove_files(user); }

psplit_code psplit_i_profile_run(const psplit_i_ort *ort, const char *path,
                                 const psplit_i_run_options *options, psplit_diag *diag,
                                 psplit_i_profile *out) {
  psplit_code code;
  psplit_i_profile profile = {0};
  psplit_i_profile_watch watch = {.options = options, .clean_up = remove_files, .user = &profile};
  whole w = {.watch = &watch};
  bool watched = false;
  PSPLIT_TRY(psplit_i_profile_make_room(&profile, diag));
  PSPLIT_TRY(psplit_i_profile_watch_start(&watch, diag));
  watched = true;
  PSPLIT_TRY(run_profiled(ort, path, options, &watch, diag, &profile));
  PSPLIT_TRY(open_whole(ort, path, &options->session, options, diag, &w));
  PSPLIT_TRY(run_all(&w, options, diag, &profile));
out:
  close_whole(&w);
  if (watched) psplit_i_profile_watch_stop(&watch);
  if (code == PSPLIT_OK) {
    *out = profile;
  } else {
    psplit_i_diag_file(diag, path);
    psplit_i_profile_fini(&profile);
  }
  return code;
}

void psplit_i_profile_fini(psplit_i_profile *profile) {
  psplit_i_profile_remove_files(profile);
  free(profile->events);
  psplit_i_arena_fini(&profile->arena);
  psplit_i_text_fini(&profile->optimized);
  psplit_i_text_fini(&profile->directory);
  memset(profile, 0, sizeof *profile);
}
