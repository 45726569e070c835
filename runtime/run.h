/* Opaque types of psplit/run.h, and runs, independent of the transport. */
#ifndef PSPLIT_RUNTIME_RUN_H
#define PSPLIT_RUNTIME_RUN_H

#include "options.h"
#include "report.h"

struct psplit_onnxruntime {
  psplit_i_ort ort;
};

struct psplit_pipeline {
  char *directory;
  psplit_i_pipe pipe;
  psplit_pipeline_info info;
  psplit_pipeline_stage *stages;
  psplit_pipeline_value *values; /* of inputs, then of outputs */
};

/* Runs all stages, or that of `rank`; only rank 0 gets a timeline. */
typedef psplit_code (*psplit_i_transport)(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                          const psplit_i_run_options *options, uint32_t rank,
                                          psplit_diag *diag, psplit_i_timeline *out);

/* A transport, what reports call it, and who we are in it. */
typedef struct psplit_i_communicator {
  psplit_i_transport transport;
  const char *name;
  uint32_t rank;
} psplit_i_communicator;
extern const psplit_i_communicator PSPLIT_I_OVER_THREADS;

/* psplit_pipeline_run over a transport. `source`: in place of files, NULL where there is none;
 * ranks other than 0 have one that is not used. *out_run is NULL where the rank is not 0. */
PSPLIT_MUST_USE psplit_code psplit_i_run_over(const psplit_i_communicator *comm,
                                              const psplit_onnxruntime *ort,
                                              psplit_pipeline *pipeline,
                                              const psplit_run_options *options,
                                              const psplit_i_source *source, psplit_diag *diag,
                                              psplit_run **out_run);

#endif
