/* Tensors by name in one file: safetensors, as Hugging Face describe it. Eight bytes say how long
 * the header is, little-endian; the header is a JSON object, {"NAME": {"dtype": "F32",
 * "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"KEY": "TEXT"}}, padded with
 * spaces; then the data, little-endian, in C order.
 *
 * What is read is taken from no one on trust: the header's length is limited, every tensor has as
 * many bytes as its type and shape say, and tensors lie one behind the other from the first byte of
 * the data to the file's last, without a gap and without sharing a byte. */
#ifndef PSPLIT_RUNTIME_TRAIN_SAFETENSORS_H
#define PSPLIT_RUNTIME_TRAIN_SAFETENSORS_H

#include "base.h"
#include "tensor.h"

typedef struct psplit_i_stored {
  const char *name;  /* not empty, not "__metadata__" */
  int32_t data_type; /* TensorProto.DataType */
  uint32_t n_dims;   /* at most PSPLIT_I_MAX_RANK */
  const int64_t *dims;
  uint64_t n_bytes;
  uint64_t offset; /* read: of the data in the file */
} psplit_i_stored;

typedef struct psplit_i_safetensors {
  psplit_i_stored *tensors; /* ascending by offset; those without bytes by name among themselves */
  size_t n;
} psplit_i_safetensors;

/* Headers are read up to this size: some 500,000 tensors. */
#define PSPLIT_I_SAFETENSORS_HEADER (UINT64_C(64) << 20)

/* Whether the format has a name for this type; NULL: it has none. */
const char *psplit_i_safetensors_type(int32_t data_type);

/* The header of a file of n_file bytes whose first n (8 and the header, at least) are `bytes`; what
 * the table names lives in `arena`. `path` is for messages. Errors: MALFORMED (cut short, no
 * safetensors), INVALID (offsets, sizes, names), UNSUPPORTED (a type that ONNX does not have),
 * LIMIT, NOMEM. O(n log n) of the tensors. */
PSPLIT_MUST_USE psplit_code psplit_i_safetensors_parse(const char *path, const unsigned char *bytes,
                                                       size_t n, uint64_t n_file,
                                                       psplit_i_arena *arena, psplit_diag *diag,
                                                       psplit_i_safetensors *out);
/* The same of an open regular file of n_file bytes, of which the header alone is read. Errors: IO
 * too. */
PSPLIT_MUST_USE psplit_code psplit_i_safetensors_read(const char *path, int fd, uint64_t n_file,
                                                      psplit_i_arena *arena, psplit_diag *diag,
                                                      psplit_i_safetensors *out);

/* The first bytes of a file with these tensors, which the caller writes behind them in this order,
 * without a gap; the header is padded so that the data begins at a multiple of 8. `offset` of the
 * tensors is not read. Types with wider elements first keep each tensor aligned. Errors:
 * UNSUPPORTED (a type that the format does not have), INVALID (a name twice, or that cannot stand
 * there, or n_bytes that are not those of type and shape), LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_safetensors_format(const psplit_i_stored *tensors, size_t n,
                                                        psplit_diag *diag, psplit_i_text *out);

#endif
