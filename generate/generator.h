/* Generators over a transport (psplit/generate.h). */
#ifndef PSPLIT_GENERATE_GENERATOR_H
#define PSPLIT_GENERATE_GENERATOR_H

#include <psplit/generate.h>

#include "run.h"

/* psplit_generator_start over a transport, where this is rank 0. */
PSPLIT_MUST_USE psplit_code psplit_i_generator_start_over(
  const psplit_i_communicator *comm, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
  const psplit_run_options *run, const psplit_generator_options *own, psplit_diag *diag,
  psplit_generator **out_generator);

/* The part of any other rank, until rank 0 has finished. */
PSPLIT_MUST_USE psplit_code psplit_i_generator_run_over(
  const psplit_i_communicator *comm, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
  const psplit_run_options *run, const psplit_generator_options *own, psplit_diag *diag);

#endif
