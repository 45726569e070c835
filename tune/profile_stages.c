/* A profile of all stages of a split as one costs file. */
#include <stdlib.h>
#include <string.h>

#include "feed_check.h"
#include "profile.h"
#include "tune.h"

/* A stage as it was written, and as ONNX Runtime ran it. */
typedef struct opened {
  psplit_model *model, *optimized;
} opened;

static psplit_code open_stage(const psplit_i_pipe *pipe, uint32_t stage,
                              const psplit_i_profile *profile, psplit_diag *diag, opened *out) {
  psplit_code code;
  psplit_i_text path = {0};
  psplit_diag ignored = {0};
  psplit_i_text_addf(&path, "%s/%s", pipe->directory, pipe->manifest.stages[stage].file);
  if (path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_model_open(path.bytes, NULL, diag, &out->model));
  /* Some it would not read itself: then names alone have to do. */
  if (psplit_model_open(profile->optimized.bytes, NULL, &ignored, &out->optimized) != PSPLIT_OK)
    out->optimized = NULL;
out:
  psplit_i_text_fini(&path);
  return code;
}

/* What of n files was opened; NULL is fine. */
static void close_stages(opened *files, uint32_t n) {
  if (!files) return;
  for (uint32_t s = 0; s < n; s++) {
    psplit_model_close(files[s].optimized);
    psplit_model_close(files[s].model);
  }
  free(files);
}

/* Shapes of inputs that the caller gave. */
static psplit_run_shape *given_shapes(const psplit_feed_options *feed) {
  psplit_run_shape *shapes = calloc(feed->n_shapes + 1, sizeof *shapes);
  for (size_t i = 0; shapes && i < feed->n_shapes; i++)
    shapes[i] = (psplit_run_shape){feed->shapes[i].input, feed->shapes[i].dims,
                                   (uint32_t)feed->shapes[i].n_dims};
  return shapes;
}

psplit_code psplit_i_costs_of_stages(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                     const psplit_i_run_options *run,
                                     const psplit_i_profile *profiles, psplit_diag *diag,
                                     char **out_text) {
  const uint32_t n = pipe->manifest.n_stages;
  const psplit_feed_options *feed = &run->feed.given;
  psplit_code code = PSPLIT_OK;
  psplit_profiled_stage *stages = calloc((size_t)n + 1, sizeof *stages);
  opened *files = calloc((size_t)n + 1, sizeof *files);
  psplit_run_shape *shapes = given_shapes(feed);
  if (!stages || !files || !shapes) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < n; s++) {
    PSPLIT_TRY(open_stage(pipe, s, &profiles[s], diag, &files[s]));
    stages[s] =
      (psplit_profiled_stage){.model = files[s].model,
                              .optimized = files[s].optimized,
                              .run = {.profile = profiles[s].events,
                                      .n_profile = profiles[s].n_events,
                                      .least_ns = profiles[s].least_ns,
                                      .median_ns = profiles[s].median_ns,
                                      .spread_frac = profiles[s].spread_frac,
                                      .onnxruntime = ort->version,
                                      .optimization = psplit_i_stage_session(run, s)->optimization,
                                      .n_threads = psplit_i_stage_session(run, s)->n_threads,
                                      .n_runs = run->n_micro_batches,
                                      .dims = feed->dims,
                                      .n_dims = feed->n_dims,
                                      .inputs = shapes,
                                      .n_inputs = feed->n_shapes}};
  }
  const char *slash = strrchr(pipe->directory, '/');
  const char *name = slash && slash[1] ? slash + 1 : pipe->directory;
  PSPLIT_TRY(psplit_cost_table_profile_stages(name, stages, n, diag, out_text));
out:
  close_stages(files, n);
  free(shapes);
  free(stages);
  return code;
}

psplit_code psplit_profile_stages(const psplit_onnxruntime *ort, const psplit_pipeline *pipeline,
                                  const psplit_run_options *options, psplit_diag *diag,
                                  char **out_text) {
  const psplit_i_pipe *pipe = &pipeline->pipe;
  const uint32_t n = pipe->manifest.n_stages;
  psplit_code code;
  psplit_i_run_setup setup = {0};
  psplit_i_profile *profiles = calloc((size_t)n + 1, sizeof *profiles);
  PSPLIT_TRY(psplit_i_run_setup_make(options, n, false, diag, &setup));
  if (!profiles) PSPLIT_FAIL(psplit_i_nomem(diag));
  setup.run.feed.given.random = true;
  setup.run.feed.given.give = NULL;
  /* One at a time, a replica gains nothing; what fails has no times. */
  setup.run.n_replicas = NULL;
  setup.run.replica_sessions = NULL;
  setup.run.on_error = PSPLIT_ON_ERROR_STOP;
  PSPLIT_TRY(psplit_i_pipe_check_runs(pipe, diag));
  PSPLIT_TRY(psplit_i_feed_meet(&setup.run.feed, pipe, diag));
  PSPLIT_TRY(psplit_i_profile_stages(&ort->ort, pipe, &setup.run, diag, profiles));
  PSPLIT_TRY(psplit_i_profile_time_stages(&ort->ort, pipe, &setup.run, diag, profiles));
  PSPLIT_TRY(psplit_i_costs_of_stages(&ort->ort, pipe, &setup.run, profiles, diag, out_text));
out:
  for (uint32_t s = 0; profiles && s < n; s++) psplit_i_profile_fini(&profiles[s]);
  free(profiles);
  psplit_i_run_setup_fini(&setup);
  return code;
}
