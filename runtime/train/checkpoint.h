/* Checkpoints: a directory that a run goes on from. It has stageI.safetensors, the trained weights
 * that stage I updates with the optimizer's state, by the names of pipeline.json, and
 * training.json, which says of what model they are and where the run stood. A reader looks tensors
 * up by name over all files, so a checkpoint of any number of stages is one for any other.
 *
 * The directory is written under a hidden name beside its place, .NAME.psplit-PID-N, brought to the
 * disk, and takes its place by one rename: who looks there, or comes back after the machine
 * stopped, finds the checkpoint of before or the new one, whole. Where entries cannot be exchanged
 * (some network file systems) the old one is moved away first; a reader that comes between finds
 * the new one by its hidden name. What a killed writer left is removed by the next. */
#ifndef PSPLIT_RUNTIME_TRAIN_CHECKPOINT_H
#define PSPLIT_RUNTIME_TRAIN_CHECKPOINT_H

#include "manifest.h"
#include "safetensors.h"

/* What training.json says, besides which files there are. */
typedef struct psplit_i_checkpoint_state {
  uint64_t step;               /* updates that are in the weights: the next one is step + 1 */
  uint32_t epoch;              /* of the next batch ... */
  uint64_t batch;              /* ... and its number in the epoch */
  uint64_t seed;               /* of all that is drawn */
  const char *optimizer;       /* its text, or NULL: weights alone */
  uint64_t digest[2];          /* psplit_i_checkpoint_digest */
  uint64_t n_rows, batch_rows; /* of the data; 0: not by rows */
  uint32_t n_micro_batches;
  uint32_t n_stages;
} psplit_i_checkpoint_state;

/* What a checkpoint is of: names, types and shapes of the trained weights, in any order, so that it
 * does not depend on how they are cut into stages. A dimension that is not a number counts as
 * unknown. O(n log n). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_digest(const psplit_i_trained_weight *weights,
                                                       uint32_t n_weights, psplit_diag *diag,
                                                       uint64_t out[2]);

/* --- writing --- */

/* One that is being written, by whoever commits it (rank 0). */
typedef struct psplit_i_checkpoint_writer {
  char *target, *parent; /* the place, and the directory that it is in */
  char *path;            /* the hidden directory: what the other ranks are told */
  int fd;                /* of it, locked; -1: none */
  int old_fd;            /* of the checkpoint that is replaced; -1: none */
} psplit_i_checkpoint_writer;

#define PSPLIT_I_CHECKPOINT_WRITER_NONE \
  { .fd = -1, .old_fd = -1 }

/* Prepares a checkpoint in the directory `path`. What stands there is replaced if it is a
 * checkpoint and holds nothing else; it is not read. Errors: IO (it holds something else, or cannot
 * be made), USAGE (a path without a name), NOMEM. *out is NONE then. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_begin(const char *path, psplit_diag *diag,
                                                      psplit_i_checkpoint_writer *out);

/* A tensor to write: data[n_bytes] of `as`, whose offset is not read. */
typedef struct psplit_i_checkpoint_tensor {
  psplit_i_stored as;
  const void *data;
} psplit_i_checkpoint_tensor;

/* Writes stage<stage>.safetensors into the hidden directory `hidden` (writer->path) and brings it
 * to the disk. Any thread and any process that sees the directory may, each stage once; a stage
 * without tensors has a file as well. *out_bytes, the file's size, is what commit is told. Errors:
 * IO (disk full; no such directory: another machine without a shared file system), those of
 * psplit_i_safetensors_format. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_write_stage(
  const char *hidden, uint32_t stage, const psplit_i_checkpoint_tensor *tensors, size_t n,
  psplit_diag *diag, uint64_t *out_bytes);

/* Once all have written: writes training.json, puts the directory into its place and ends the
 * writer, also on failure: then what stood there stands there still. `state` is whole but for
 * `digest`, which is that of `weights`; stage_bytes[state->n_stages]: the sizes that
 * psplit_i_checkpoint_write_stage gave, against which the files are held. Errors: IO, NOMEM,
 * INTERNAL (a file has another size). */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_commit(psplit_i_checkpoint_writer *writer,
                                                       const psplit_i_checkpoint_state *state,
                                                       const psplit_i_trained_weight *weights,
                                                       uint32_t n_weights,
                                                       const uint64_t *stage_bytes,
                                                       psplit_diag *diag);
/* Removes what was written. NONE, and one that was committed, are fine. */
void psplit_i_checkpoint_abort(psplit_i_checkpoint_writer *writer);

/* Whether psplit_i_checkpoint_begin would find nothing wrong with `path`: for the time before long
 * work. Nothing is left behind. Errors: those of psplit_i_checkpoint_begin. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_probe(const char *path, psplit_diag *diag);

/* --- reading --- */

typedef struct psplit_i_checkpoint psplit_i_checkpoint;

/* Opens the checkpoint in `path`, the headers of all its files; these stay what they are when
 * another takes their place. Errors, one line each: IO (no such directory, not a checkpoint),
 * MALFORMED (cut short, no JSON), INVALID (files that do not fit together, a tensor in two of
 * them), UNSUPPORTED (a later version), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_open(const char *path, psplit_diag *diag,
                                                     psplit_i_checkpoint **out);
void psplit_i_checkpoint_close(psplit_i_checkpoint *checkpoint); /* NULL is fine */

/* Lives as long as the checkpoint. */
const psplit_i_checkpoint_state *psplit_i_checkpoint_state_of(
  const psplit_i_checkpoint *checkpoint);
/* Its trained weights, by name; of each, name, type and shape are filled. All are among the
 * tensors. */
const psplit_i_trained_weight *psplit_i_checkpoint_weights(const psplit_i_checkpoint *checkpoint,
                                                           uint32_t *out_n);

/* MISMATCH unless it is of these weights (which tells a name, or a shape) and, where `optimizer` is
 * given, of the same one. `optimizer` NULL: weights alone are to be read, as for a run that starts
 * anew from them. Every weight is found then. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_fits(const psplit_i_checkpoint *checkpoint,
                                                     const psplit_i_trained_weight *weights,
                                                     uint32_t n_weights, const char *optimizer,
                                                     psplit_diag *diag);

size_t psplit_i_checkpoint_n_tensors(const psplit_i_checkpoint *checkpoint);
/* Lives as long as the checkpoint; NULL: there is none of this name. */
const psplit_i_stored *psplit_i_checkpoint_find(const psplit_i_checkpoint *checkpoint,
                                                const char *name);

/* Reads a tensor of this checkpoint into out[tensor->n_bytes]. Any thread may. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_read(const psplit_i_checkpoint *checkpoint,
                                                     const psplit_i_stored *tensor,
                                                     psplit_diag *diag, void *out);
/* The tensor `name`, which has this type and these dims, into out[n_bytes]. Errors: IO, MISMATCH
 * (none of this name, or another type or shape). */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_load(const psplit_i_checkpoint *checkpoint,
                                                     const char *name, int32_t data_type,
                                                     const int64_t *dims, uint32_t n_dims,
                                                     psplit_diag *diag, void *out);

#endif
