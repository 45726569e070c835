/* Writing the stages of a plan as ONNX models, with their manifest. */
#ifndef PSPLIT_EMIT_H
#define PSPLIT_EMIT_H

#include <psplit/base.h>
#include <psplit/model.h>
#include <psplit/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum psplit_boundary { PSPLIT_BOUNDARY_SENDRECV, PSPLIT_BOUNDARY_IO } psplit_boundary;

typedef enum psplit_weights {
  PSPLIT_WEIGHTS_AUTO,     /* inline; external where the model has external data or a stage passes 1 GiB */
  PSPLIT_WEIGHTS_INLINE,
  PSPLIT_WEIGHTS_EXTERNAL, /* stageI.onnx.data beside each stage */
  PSPLIT_WEIGHTS_REFERENCE /* point into the model's own files; nothing is copied */
} psplit_weights;

typedef struct psplit_emit_options {
  psplit_boundary boundary;
  psplit_weights weights;
  bool replace;            /* an existing directory is replaced, once the new one is complete */
  uint32_t n_threads;      /* 0: as many as OpenMP gives; never changes a byte */
  const volatile int *cancel; /* becomes non-zero to stop early (IO "interrupted"); may be NULL */
  const psplit_sink *sink; /* may be NULL */
} psplit_emit_options;

/* Writes stage0.onnx ..., their .data files and pipeline.json to the directory `directory`, which
 * appears complete or not at all: it is written beside its place and renamed. The nodes are the
 * model's own bytes. `options` may be NULL.
 * Errors: IO (exists, not writable, disk full), INVALID and INTERNAL (a plan that does not fit the
 * model), UNSUPPORTED, LIMIT, NOMEM; nothing is left behind then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit(const psplit_model *model,
                                                   const psplit_plan *plan, const char *directory,
                                                   const psplit_emit_options *options,
                                                   psplit_diag *diag);

/* The manifest alone (pipeline.json), as JSON text, malloc'd; no file is written. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_manifest(const psplit_model *model,
                                                       const psplit_plan *plan,
                                                       const psplit_emit_options *options,
                                                       psplit_diag *diag, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
