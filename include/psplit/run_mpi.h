/* Running a pipeline over MPI, a stage a rank: libpsplit-run-mpi, `pkg-config psplit-run-mpi`.
 * Built where MPI was found, and for that MPI. */
#ifndef PSPLIT_RUN_MPI_H
#define PSPLIT_RUN_MPI_H

#include <psplit/run_service.h>
#include <psplit/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a launcher of MPI (mpirun) started this process. */
PSPLIT_API bool psplit_mpi_launched(void);

/* Starts MPI and says which of how many ranks this is. Once in a process, from its main thread,
 * which makes all later calls. Errors: PLUGIN. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_begin(psplit_diag *diag, uint32_t *out_rank,
                                                        uint32_t *out_n_ranks);

/* Whether there are as many ranks as stages. Errors: USAGE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_check_ranks(const psplit_pipeline *pipeline,
                                                              psplit_diag *diag);

/* Runs this rank's stage; all ranks call it, each with its own pipeline of the same directory. On
 * rank 0, the run holds what all ranks measured, on rank 0's clock; elsewhere *out_run is NULL. A
 * rank whose call fails must call psplit_mpi_abort, which stops all of them; so does a rank that
 * hears nothing for options->timeout_s. options->pin and one_at_a_time are not used. Errors: those
 * of psplit_mpi_check_ranks and psplit_pipeline_run. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_run(const psplit_onnxruntime *ort,
                                                      psplit_pipeline *pipeline,
                                                      const psplit_run_options *options,
                                                      psplit_diag *diag, psplit_run **out_run);

/* Trains (psplit/train.h) this rank's device; all ranks call it, each with its own pipeline of the
 * same directory and the same options. There are as many ranks as devices. The run is rank 0's, as
 * in psplit_mpi_run, and so are the rules for failures. Checkpoints go to a directory that all
 * ranks see. Errors: those of psplit_train; USAGE (not so many ranks). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_train(const psplit_onnxruntime *ort,
                                                        psplit_pipeline *pipeline,
                                                        const psplit_train_options *options,
                                                        psplit_diag *diag,
                                                        psplit_training_run **out_run);

/* A service (psplit/run_service.h) whose stages are ranks: rank 0 starts it, and takes and answers
 * requests; every other rank meanwhile is in psplit_mpi_service_run, which returns when rank 0
 * stops it. From then until it has stopped, rank 0 makes no other call here. A rank whose call
 * fails must call psplit_mpi_abort. Errors: those of psplit_mpi_run. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_service_start(
  const psplit_onnxruntime *ort, psplit_pipeline *pipeline, const psplit_run_options *run,
  const psplit_service_options *own, psplit_diag *diag, psplit_service **out_service);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_service_run(const psplit_onnxruntime *ort,
                                                              psplit_pipeline *pipeline,
                                                              const psplit_run_options *run,
                                                              psplit_diag *diag);

/* Ends MPI, after all is done and told: standard streams are flushed, and where MPI hangs the
 * process ends after 4 s. */
PSPLIT_API void psplit_mpi_end(void);

/* Ends all ranks with this exit status, within 3 s; does not return. */
PSPLIT_API void psplit_mpi_abort(int status);

#ifdef __cplusplus
}
#endif
#endif
