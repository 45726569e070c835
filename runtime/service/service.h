/* Services over a transport (psplit/run_service.h). */
#ifndef PSPLIT_RUNTIME_SERVICE_H
#define PSPLIT_RUNTIME_SERVICE_H

#include <psplit/run_service.h>

#include "run.h"

PSPLIT_MUST_USE psplit_code psplit_i_service_start_over(
  const psplit_i_communicator *comm, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
  const psplit_run_options *run, const psplit_service_options *own, psplit_diag *diag,
  psplit_service **out_service);

/* What of a run's options is another thing in a service. */
void psplit_i_service_run_options(psplit_run_options *run);

#endif
