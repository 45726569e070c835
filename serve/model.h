/* A served model: a split with the service that runs it. Reference-counted, so that a replaced one
 * ends after its last response was sent. */
#ifndef PSPLIT_SERVE_MODEL_H
#define PSPLIT_SERVE_MODEL_H

#include <psplit/run_service.h>

#include "ort_options.h"

typedef struct serve_model_options {
  const char *directory;
  const ort_settings *ort; /* as given, not yet applied */
  psplit_run_options run;  /* without sessions */
  psplit_service_options service;
  bool mpi; /* stages are ranks, of which this is the first */
} serve_model_options;

typedef struct serve_model serve_model;

/* Reads the split, without ONNX Runtime. Everything in `options` must outlive *out, which has one
 * reference. Errors: those of psplit_pipeline_open and ort_settings_apply. */
PSPLIT_MUST_USE psplit_code serve_model_open(const serve_model_options *options, psplit_diag *diag,
                                             serve_model **out);
/* Starts its service; once. `ort` must outlive it. Errors: those of psplit_service_start. */
PSPLIT_MUST_USE psplit_code serve_model_start(serve_model *model, const psplit_onnxruntime *ort,
                                              psplit_diag *diag);
/* For ranks other than the first: runs until the first one stops. */
PSPLIT_MUST_USE psplit_code serve_model_work(serve_model *model, const psplit_onnxruntime *ort,
                                             psplit_diag *diag);

void serve_model_hold(serve_model *model);
/* The last release stops the service, if it still runs, and closes the split; NULL is fine. */
void serve_model_release(serve_model *model);

psplit_service *serve_model_service(const serve_model *model);
const psplit_pipeline_info *serve_model_info(const serve_model *model);

#endif
