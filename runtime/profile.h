/* Measuring the whole model: how long each kernel takes, and the whole. */
#ifndef PSPLIT_RUNTIME_PROFILE_H
#define PSPLIT_RUNTIME_PROFILE_H

#include "runtime.h"

/* The shape of an input in a run. */
typedef struct psplit_i_fed {
  const char *name;
  const int64_t *dims; /* [n_dims] */
  size_t n_dims;
} psplit_i_fed;

typedef struct psplit_i_profile {
  psplit_i_text directory; /* temporary; holds the files below, the weights too */
  psplit_i_text optimized; /* path of the model as it ran */
  char *events;            /* ONNX Runtime's profile, n_events bytes; malloc'd */
  size_t n_events;
  int64_t least_ns, median_ns; /* of runs without the profiler */
  double spread_frac;          /* of these: how much longer than the least three quarters took */
  psplit_i_fed *inputs;        /* [n_inputs] of the last run; in `arena` */
  size_t n_inputs;
  psplit_i_arena arena;
} psplit_i_profile;

/* Runs the model at options->session n_warmup + n_micro_batches times under the profiler, then as
 * often without. Errors: IO (no temporary directory), those of sessions and feeds;
 * CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_profile_run(const psplit_i_ort *ort, const char *path,
                                                 const psplit_i_run_options *options,
                                                 psplit_diag *diag, psplit_i_profile *out);
/* Removes the files; a zeroed one is fine. */
void psplit_i_profile_fini(psplit_i_profile *profile);

#endif
