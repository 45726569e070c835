#include "profile_model.h"

#include <psplit/cost_table.h>
#include <stdlib.h>

#include "profile.h"

psplit_code profile_model(const char *model, const psplit_read_options *read,
                          const char *onnxruntime, const psplit_i_run_options *options,
                          const feed_settings *feed, psplit_diag *diag, char **out_text) {
  psplit_code code;
  psplit_i_ort ort = {0};
  psplit_i_profile profile = {0};
  psplit_model *whole = NULL, *optimized = NULL;
  psplit_i_run_options run = *options;
  run.feed = feed->options;
  run.feed.random = true;
  psplit_dim_value *dims = calloc(run.feed.n_dims + 1, sizeof *dims);
  if (!dims) return cli_nomem(diag);
  for (size_t i = 0; i < run.feed.n_dims; i++)
    dims[i] = (psplit_dim_value){run.feed.dims[i].name, run.feed.dims[i].value};
  PSPLIT_TRY(psplit_model_open(model, read, diag, &whole));
  PSPLIT_TRY(psplit_i_ort_open(onnxruntime, diag, &ort));
  PSPLIT_TRY(psplit_i_profile_run(&ort, model, &run, diag, &profile));
  /* ONNX Runtime writes some models that it would not read itself: then names alone have to do. */
  psplit_diag ignored = {0};
  if (psplit_model_open(profile.optimized.bytes, NULL, &ignored, &optimized) != PSPLIT_OK)
    optimized = NULL;
  const psplit_profiled_run made = {.profile = profile.events,
                                    .n_profile = profile.n_events,
                                    .least_ns = profile.least_ns,
                                    .median_ns = profile.median_ns,
                                    .onnxruntime = ort.version,
                                    .optimization = run.session.optimization,
                                    .n_threads = run.session.n_threads,
                                    .n_runs = run.n_micro_batches,
                                    .dims = dims,
                                    .n_dims = run.feed.n_dims};
  PSPLIT_TRY(psplit_cost_table_profile(whole, optimized, &made, diag, out_text));
out:
  psplit_model_close(optimized);
  psplit_model_close(whole);
  psplit_i_profile_fini(&profile);
  psplit_i_ort_close(&ort);
  free(dims);
  return code;
}
