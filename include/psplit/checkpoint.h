/* Checkpoints of training runs (docs/training.md): reading their contents, and exporting the
 * trained model. Part of libpsplit-run; does not need ONNX Runtime. */
#ifndef PSPLIT_CHECKPOINT_H
#define PSPLIT_CHECKPOINT_H

#include <psplit/emit.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_checkpoint psplit_checkpoint;

/* A trained weight, by its name in the model. */
typedef struct psplit_checkpoint_weight {
  const char *name;
  int32_t data_type; /* TensorProto.DataType */
  uint32_t n_dims;
  const int64_t *dims;
  uint64_t n_bytes;
} psplit_checkpoint_weight;

/* Owned by the checkpoint. */
typedef struct psplit_checkpoint_info {
  uint64_t step;         /* number of updates applied to the weights */
  uint64_t seed;         /* of all random numbers */
  const char *optimizer; /* as text; NULL: the checkpoint has weights only */
  uint32_t n_stages;     /* of the run that wrote it */
  uint32_t n_weights;
  const psplit_checkpoint_weight *weights; /* by name */
} psplit_checkpoint_info;

/* Opens the checkpoint in the directory `path` by reading the headers of all its files. It stays
 * valid even if another checkpoint replaces it. The caller owns *out_checkpoint. Errors: IO (no
 * checkpoint there), MALFORMED (truncated), INVALID (inconsistent files), UNSUPPORTED (of a later
 * release), LIMIT, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_checkpoint_open(const char *path, psplit_diag *diag,
                                                              psplit_checkpoint **out_checkpoint);
PSPLIT_API void psplit_checkpoint_close(psplit_checkpoint *checkpoint); /* NULL is fine */

/* Valid until the checkpoint is closed. */
PSPLIT_API const psplit_checkpoint_info *psplit_checkpoint_get_info(
  const psplit_checkpoint *checkpoint);

/* Reads info->weights[index] into out[n_bytes], packed and little-endian. Any thread may. Errors:
 * IO, USAGE (no such index). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_checkpoint_read(const psplit_checkpoint *checkpoint,
                                                              uint32_t index, psplit_diag *diag,
                                                              void *out);

/* Writes `model`, the one that was split for training, to the file `path` with the trained weights
 * in place of its own and nothing else changed: psplit_emit_new_values, whose rules for `path`
 * and `options` hold. Memory: that of the trained weights. Errors: INVALID (of another model),
 * those of psplit_emit_new_values and psplit_checkpoint_read. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_checkpoint_export(const psplit_checkpoint *checkpoint,
                                                                const psplit_model *model,
                                                                const char *path,
                                                                const psplit_emit_options *options,
                                                                psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
