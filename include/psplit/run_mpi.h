/* Running a pipeline over MPI, one stage per rank: libpsplit-run-mpi, `pkg-config psplit-run-mpi`.
 * Built for the MPI library that was found. */
#ifndef PSPLIT_RUN_MPI_H
#define PSPLIT_RUN_MPI_H

#include <psplit/run_service.h>
#include <psplit/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether this process was started by an MPI launcher (mpirun). */
PSPLIT_API bool psplit_mpi_launched(void);

/* Initialises MPI and returns rank and number of ranks. To be called once per process, from its
 * main thread, which must make all later calls. Errors: PLUGIN. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_begin(psplit_diag *diag, uint32_t *out_rank,
                                                        uint32_t *out_n_ranks);

/* Checks that there are as many ranks as stages. Errors: USAGE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_check_ranks(const psplit_pipeline *pipeline,
                                                              psplit_diag *diag);

/* Runs the stage of this rank. Called by all ranks, each with its own pipeline of the same
 * directory. On rank 0, the run holds the measurements of all ranks, in rank 0's clock; elsewhere
 * *out_run is NULL. A rank whose call fails must call psplit_mpi_abort, which stops all ranks; so
 * must a rank that receives nothing for options->timeout_s. options->pin and one_at_a_time are
 * ignored. Errors: those of psplit_mpi_check_ranks and psplit_pipeline_run. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_run(const psplit_onnxruntime *ort,
                                                      psplit_pipeline *pipeline,
                                                      const psplit_run_options *options,
                                                      psplit_diag *diag, psplit_run **out_run);

/* Trains (psplit/train.h) the device of this rank. Called by all ranks, as many as devices, each
 * with its own pipeline of the same directory and the same options. The run is on rank 0, as for
 * psplit_mpi_run, and the same rules apply to failures. Checkpoints go to a directory that all
 * ranks can access. Errors: those of psplit_train; USAGE (wrong number of ranks). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_train(const psplit_onnxruntime *ort,
                                                        psplit_pipeline *pipeline,
                                                        const psplit_train_options *options,
                                                        psplit_diag *diag,
                                                        psplit_training_run **out_run);

/* A service (psplit/run_service.h) whose stages are ranks: rank 0 starts it, and receives and
 * answers requests; all other ranks call psplit_mpi_service_run, which returns when rank 0 stops
 * the service. Until then, rank 0 must make no other call of this header. A rank whose call fails
 * must call psplit_mpi_abort. Errors: those of psplit_mpi_run. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_service_start(
  const psplit_onnxruntime *ort, psplit_pipeline *pipeline, const psplit_run_options *run,
  const psplit_service_options *own, psplit_diag *diag, psplit_service **out_service);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_service_run(const psplit_onnxruntime *ort,
                                                              psplit_pipeline *pipeline,
                                                              const psplit_run_options *run,
                                                              psplit_diag *diag);

/* Finalises MPI, as the last action: standard streams are flushed, and if MPI hangs, the process
 * ends after 4 s. */
PSPLIT_API void psplit_mpi_end(void);

/* Terminates all ranks with this exit status within 3 s; does not return. */
PSPLIT_API void psplit_mpi_abort(int status);

#ifdef __cplusplus
}
#endif
#endif
