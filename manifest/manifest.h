/* manifest: pipeline.json, read strictly. What verify/ checks and runtime/ follows; knows neither
 * emit/, which writes it, nor models. Besides, what it says as other JSON does: promise.h. */
#ifndef PSPLIT_MANIFEST_MANIFEST_H
#define PSPLIT_MANIFEST_MANIFEST_H

#include "base.h"

enum { PSPLIT_I_FROM_MODEL = 0xfffffffe };

/* A row of a stage's inputs or outputs. */
typedef struct psplit_i_row {
  const char *name, *tensor;
  uint32_t from;      /* inputs: a stage, or PSPLIT_I_FROM_MODEL */
  bool optional;      /* inputs: the file has a default for it */
  bool to_model;      /* outputs */
  const uint32_t *to; /* outputs: stages */
  uint32_t n_to;
} psplit_i_row;

typedef struct psplit_i_manifest_stage {
  const char *file, *device;
  uint32_t n_nodes, n_duplicated;
  uint32_t n_inputs, n_outputs;
  const psplit_i_row *inputs; /* optional ones behind the others */
  const psplit_i_row *outputs;
  int64_t compute_ns, recv_ns, send_ns, load_ns; /* as planned; -1: not known */
} psplit_i_manifest_stage;

/* As it is written: a dimension is a number, a symbol, or neither (value -1, param NULL). */
typedef struct psplit_i_manifest_dim {
  int64_t value;
  const char *param;
} psplit_i_manifest_dim;

typedef struct psplit_i_shape {
  int32_t rank; /* -1: null */
  const psplit_i_manifest_dim *dims;
} psplit_i_shape;

/* An input or output of the model. */
typedef struct psplit_i_manifest_value {
  const char *name, *dtype; /* dtype NULL: null */
  psplit_i_shape shape;
} psplit_i_manifest_value;

typedef struct psplit_i_manifest_transfer {
  uint64_t tag;
  const char *tensor, *dtype;
  uint32_t from, to;
  psplit_i_shape shape;
  bool bytes_known;
  uint64_t bytes;
} psplit_i_manifest_transfer;

typedef struct psplit_i_duplicate {
  uint32_t node;
  uint32_t stage; /* its own */
  const uint32_t *also;
  uint32_t n_also;
} psplit_i_duplicate;

/* An If that was taken for one branch. */
typedef struct psplit_i_inlined_row {
  const char *node, *condition;
  bool then_branch, assumed;
} psplit_i_inlined_row;

typedef struct psplit_i_manifest {
  bool sendrecv;
  uint32_t n_inputs, n_outputs; /* of the model */
  uint32_t n_needed;            /* inputs that are not optional: the first ones */
  const char *const *inputs;    /* names; what is declared of them stands in the values */
  const char *const *outputs;
  const psplit_i_manifest_value *input_values, *output_values; /* by the same positions */
  uint32_t n_stages;
  const psplit_i_manifest_stage *stages;
  uint32_t n_transfers;
  const psplit_i_manifest_transfer *transfers;
  uint32_t n_duplicates;
  const psplit_i_duplicate *duplicates;
  uint32_t n_inlined;
  const psplit_i_inlined_row *inlined;
  int64_t bottleneck_ns, total_compute_ns; /* as planned; -1: not known */
  const char *cost_source;
  const char *const *training_files; /* of the object "training": all that it names */
  uint32_t n_training_files;
} psplit_i_manifest;

/* Reads directory/pipeline.json, a regular file of at most `max_bytes` (0: as base/in_file.h has
 * it), into `arena`. Stages and positions are in range; whether the tables of two stages agree is
 * for the caller to see. Errors: IO, LIMIT, MALFORMED, INVALID, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_manifest_read(const char *directory, uint64_t max_bytes,
                                                   psplit_i_arena *arena, psplit_diag *diag,
                                                   psplit_i_manifest *out_manifest);

#endif
