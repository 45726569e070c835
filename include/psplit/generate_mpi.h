/* Generators whose stages are MPI ranks: libpsplit-run-mpi. */
#ifndef PSPLIT_GENERATE_MPI_H
#define PSPLIT_GENERATE_MPI_H

#include <psplit/generate.h>
#include <psplit/run_mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* psplit_generator_start for rank 0. All other ranks call psplit_mpi_generator_run with the same
 * options, which returns when rank 0 has finished the generator. Until then, rank 0 must make no
 * other MPI calls. A rank whose call fails must call psplit_mpi_abort. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_generator_start(
  const psplit_onnxruntime *ort, psplit_pipeline *pipeline, const psplit_run_options *run,
  const psplit_generator_options *own, psplit_diag *diag, psplit_generator **out_generator);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_generator_run(const psplit_onnxruntime *ort,
                                                                psplit_pipeline *pipeline,
                                                                const psplit_run_options *run,
                                                                const psplit_generator_options *own,
                                                                psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
