/* runtime/train: what a run that trains reads and leaves behind. Data by rows (this file), which
 * rows a step takes (order.h), checkpoints (checkpoint.h) in files that others read too
 * (safetensors.h).
 *
 * Data by rows: an array whose first axis counts examples, in an .npy or .npz of any size, of which
 * only those rows are read that are asked for. */
#ifndef PSPLIT_RUNTIME_TRAIN_ROWS_H
#define PSPLIT_RUNTIME_TRAIN_ROWS_H

#include "order.h"
#include "tensor.h"

/* What an input of the model has to be given. */
typedef struct psplit_i_rows_wanted {
  const char *name;    /* of the input, for messages; also the array's name in an .npz */
  int32_t data_type;   /* TensorProto.DataType */
  uint32_t n_dims;     /* of the input, the first axis included; PSPLIT_NONE: any */
  const int64_t *dims; /* [n_dims] -1: any size. dims[0] is that of a micro-batch and is not held
                          against the file */
  bool safe_casts;     /* also of a file whose type data_type holds all values of */
  uint64_t max_unpacked_bytes; /* of a compressed array of over ten times its file; 0: 64 MiB */
} psplit_i_rows_wanted;

/* An open array. It does not change: any number of threads may read it at once. */
typedef struct psplit_i_rows {
  const char *name, *path;         /* the caller's: they outlive it */
  int32_t data_type;               /* TensorProto.DataType of what is read */
  int32_t wanted_type;             /* of the input: what psplit_i_rows_tensor gives */
  uint64_t n_rows;                 /* >= 1 */
  size_t n_dims;                   /* of the array, >= 1 */
  int64_t dims[PSPLIT_I_MAX_RANK]; /* dims[0] == n_rows */
  uint64_t row_bytes;              /* >= 1 */
  uint32_t swapped;                /* bytes whose order is turned round; 1: none */
  int fd;                          /* -1: in memory */
  uint64_t offset;                 /* of row 0 in the file */
  unsigned char *loaded;           /* of a compressed array: the unpacked .npy */
  const unsigned char *first;      /* row 0 in it */
} psplit_i_rows;

#define PSPLIT_I_ROWS_NONE \
  { .fd = -1 }

/* Opens `path`, whose ending says what it is: .npy, or .npz with the array wanted->name. Of an .npy
 * and of an array that an .npz stores as it is, headers alone are read; a compressed one is
 * unpacked into memory. The strings of `wanted` and `path` outlive *out, the caller's, which ends
 * with psplit_i_rows_close. Errors, each with path and input:
 *   IO           not there, no regular file
 *   MALFORMED    no .npy or .npz, or cut short
 *   INVALID      another type or shape than the input's, no row, an .npz without such an array
 *   UNSUPPORTED  Fortran order, strings, another kind of file: the line says how to write it
 *   LIMIT        max_unpacked_bytes
 *   NOMEM
 * O(1); of an .npz O(arrays in it). */
PSPLIT_MUST_USE psplit_code psplit_i_rows_open(const char *path, const psplit_i_rows_wanted *wanted,
                                               psplit_diag *diag, psplit_i_rows *out);
void psplit_i_rows_close(psplit_i_rows *rows); /* PSPLIT_I_ROWS_NONE is fine */

/* INVALID unless both have as many rows: "x.npy has 60000 rows for x, y.npy 10000 for y". For ranks
 * that have not opened both: n_rows and names are all that is looked at. */
PSPLIT_MUST_USE psplit_code psplit_i_rows_agree(const char *name, uint64_t n_rows,
                                                const char *other_name, uint64_t other_n_rows,
                                                psplit_diag *diag);

/* Reads rows begin .. end - 1 of a batch, by `order`, one behind the other into `out`, which has
 * (end - begin) * row_bytes bytes, little-endian. Rows that are neighbours in the file are read at
 * once; no other byte is. order->n_rows is rows->n_rows. Errors: IO (also where the file became
 * shorter). */
PSPLIT_MUST_USE psplit_code psplit_i_rows_read(const psplit_i_rows *rows,
                                               const psplit_i_order *order,
                                               const psplit_i_slice *slice, psplit_diag *diag,
                                               void *out);

/* The same as a new tensor of the type that was wanted, whose first axis is the slice's rows; the
 * caller releases it. Errors: those of psplit_i_rows_read and psplit_i_tensor_create. */
PSPLIT_MUST_USE psplit_code psplit_i_rows_tensor(const psplit_i_ort *ort, const psplit_i_rows *rows,
                                                 const psplit_i_order *order,
                                                 const psplit_i_slice *slice, psplit_diag *diag,
                                                 psplit_i_tensor **out);

#endif
