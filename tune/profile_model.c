/* A profile of the whole model as a costs file. */
#include <stdlib.h>

#include "profile.h"
#include "tune.h"

psplit_code psplit_profile_model(const psplit_onnxruntime *ort, const char *path,
                                 const psplit_read_options *read, const psplit_run_options *options,
                                 psplit_diag *diag, char **out_text) {
  psplit_code code;
  psplit_i_run_setup setup = {0};
  psplit_i_profile profile = {0};
  psplit_model *whole = NULL, *optimized = NULL;
  psplit_run_shape *inputs = NULL;
  psplit_i_run_options *run = &setup.run;
  psplit_feed_options *feed = &run->feed.given;
  PSPLIT_TRY(psplit_i_run_setup_make(options, 0, false, diag, &setup));
  feed->random = true;
  feed->give = NULL;
  PSPLIT_TRY(psplit_model_open(path, read, diag, &whole));
  PSPLIT_TRY(psplit_i_profile_run(&ort->ort, path, run, diag, &profile));
  /* ONNX Runtime writes some models that it would not read itself: then names alone have to do. */
  psplit_diag ignored = {0};
  if (psplit_model_open(profile.optimized.bytes, NULL, &ignored, &optimized) != PSPLIT_OK)
    optimized = NULL;
  inputs = calloc(profile.n_inputs + 1, sizeof *inputs);
  if (!inputs) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (size_t i = 0; i < profile.n_inputs; i++)
    inputs[i] = (psplit_run_shape){profile.inputs[i].name, profile.inputs[i].dims,
                                   (uint32_t)profile.inputs[i].n_dims};
  const psplit_profiled_run made = {.profile = profile.events,
                                    .n_profile = profile.n_events,
                                    .least_ns = profile.least_ns,
                                    .median_ns = profile.median_ns,
                                    .spread_frac = profile.spread_frac,
                                    .onnxruntime = ort->ort.version,
                                    .optimization = run->session.optimization,
                                    .n_threads = run->session.n_threads,
                                    .n_runs = run->n_micro_batches,
                                    .dims = feed->dims,
                                    .n_dims = feed->n_dims,
                                    .inputs = inputs,
                                    .n_inputs = profile.n_inputs};
  PSPLIT_TRY(psplit_cost_table_profile(whole, optimized, &made, diag, out_text));
out:
  free(inputs);
  psplit_model_close(optimized);
  psplit_model_close(whole);
  psplit_i_profile_fini(&profile);
  psplit_i_run_setup_fini(&setup);
  return code;
}
