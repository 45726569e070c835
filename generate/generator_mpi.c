#include <psplit/generate_mpi.h>

#include "generator.h"
#include "over_mpi.h"

psplit_code psplit_mpi_generator_start(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                       const psplit_run_options *run,
                                       const psplit_generator_options *own, psplit_diag *diag,
                                       psplit_generator **out) {
  const psplit_i_communicator comm = psplit_i_over_mpi();
  const psplit_code code = psplit_mpi_check_ranks(pipeline, diag);
  if (code != PSPLIT_OK) return code;
  return psplit_i_generator_start_over(&comm, ort, pipeline, run, own, diag, out);
}

psplit_code psplit_mpi_generator_run(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                     const psplit_run_options *run,
                                     const psplit_generator_options *own, psplit_diag *diag) {
  const psplit_i_communicator comm = psplit_i_over_mpi();
  const psplit_code code = psplit_mpi_check_ranks(pipeline, diag);
  if (code != PSPLIT_OK) return code;
  return psplit_i_generator_run_over(&comm, ort, pipeline, run, own, diag);
}
