/* verify: proves that stages are the model they were split from.
 *
 *   canonical.c  messages in a form where equal content is equal bytes, wherever tensors are stored
 *   manifest.c   pipeline.json, read strictly
 *   verify.c     the proof
 *   payloads.c   weights, byte for byte, in parallel
 * Shares the reader (onnx/) with the rest of the project; knows nothing of passes/ and emit/, so that
 * a mistake there cannot hide here. */
#ifndef PSPLIT_VERIFY_VERIFY_INTERNAL_H
#define PSPLIT_VERIFY_VERIFY_INTERNAL_H

#include <psplit/verify.h>

#include "canonical.h"

enum { PSPLIT_I_FROM_MODEL = 0xfffffffe };

/* A row of a stage's inputs or outputs. */
typedef struct psplit_i_row {
  const char *name, *tensor;
  uint32_t from;      /* inputs: a stage, or PSPLIT_I_FROM_MODEL */
  bool to_model;      /* outputs */
  const uint32_t *to; /* outputs: stages */
  uint32_t n_to;
} psplit_i_row;

typedef struct psplit_i_manifest_stage {
  const char *file;
  uint32_t n_inputs, n_outputs;
  const psplit_i_row *inputs; /* optional ones included */
  const psplit_i_row *outputs;
} psplit_i_manifest_stage;

typedef struct psplit_i_manifest_transfer {
  uint64_t tag;
  const char *tensor;
  uint32_t from, to;
} psplit_i_manifest_transfer;

typedef struct psplit_i_duplicate {
  uint32_t node;
  uint32_t n_stages; /* its own and the others */
} psplit_i_duplicate;

typedef struct psplit_i_manifest {
  bool sendrecv;
  uint32_t n_inputs, n_outputs; /* of the model */
  const char *const *inputs;    /* optional ones behind the others */
  const char *const *outputs;
  uint32_t n_stages;
  const psplit_i_manifest_stage *stages;
  uint32_t n_transfers;
  const psplit_i_manifest_transfer *transfers;
  uint32_t n_duplicates;
  const psplit_i_duplicate *duplicates;
} psplit_i_manifest;

/* Reads directory/pipeline.json into `arena`. Errors: IO, MALFORMED, INVALID, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_manifest_read(const char *directory, psplit_arena *arena,
                                                   psplit_diag *diag,
                                                   psplit_i_manifest *out_manifest);

/* Bytes of the model and of a stage that must be equal. */
typedef struct psplit_i_pair {
  psplit_i_payload whole, part; /* of equal length */
  uint32_t stage;
  const char *name; /* of the tensor or node that holds them */
} psplit_i_pair;

typedef PSPLIT_VEC(psplit_i_pair) psplit_i_pairs;

/* Compares every pair; the first that differs, in the order of the list, is the MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_compare(const psplit_model *whole,
                                                   psplit_model *const *parts,
                                                   const psplit_i_pairs *pairs, uint32_t n_threads,
                                                   psplit_diag *diag);

#endif
