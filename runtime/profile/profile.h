/* Measuring the whole model, or stages: how long each kernel takes, and all together.
 *
 *   profile.c         the whole model, in a session of its own
 *   profile_stages.c  the stages of a pipeline, on what they hand each other */
#ifndef PSPLIT_RUNTIME_PROFILE_H
#define PSPLIT_RUNTIME_PROFILE_H

#include "pipeline.h"
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

/* At once; the rest stays to be finished. */
void psplit_i_profile_remove_files(const psplit_i_profile *profile);

/* Makes the directory and begins the arena of a zeroed one. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_profile_make_room(psplit_i_profile *profile,
                                                       psplit_diag *diag);
/* Takes ONNX Runtime's file, malloc'd. Errors: IO; LIMIT (above a GiB). */
PSPLIT_MUST_USE psplit_code psplit_i_profile_take_events(const char *file, psplit_diag *diag,
                                                         psplit_i_profile *profile);
/* Of n >= 1 times, which get sorted: least, median and spread. */
void psplit_i_profile_take_times(int64_t *ns, uint32_t n, psplit_i_profile *profile);

/* Runs the stages one at a time, n_warmup + n_micro_batches micro-batches under the profiler: what
 * each of out[pipe->n_stages], zeroed, gets but for times. psplit_i_profile_fini is for each, after
 * failures too. Errors: those of runs; IO (no temporary directory). */
PSPLIT_MUST_USE psplit_code psplit_i_profile_stages(const psplit_i_ort *ort,
                                                    const psplit_i_pipe *pipe,
                                                    const psplit_i_run_options *options,
                                                    psplit_diag *diag, psplit_i_profile *out);
/* What they take one at a time without the profiler, into their times. */
PSPLIT_MUST_USE psplit_code psplit_i_profile_time_stages(const psplit_i_ort *ort,
                                                         const psplit_i_pipe *pipe,
                                                         const psplit_i_run_options *options,
                                                         psplit_diag *diag, psplit_i_profile *out);

#endif
