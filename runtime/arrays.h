/* Tensors in files: .npy and .npz of numpy, .pb (TensorProto), raw bytes. */
#ifndef PSPLIT_RUNTIME_ARRAYS_H
#define PSPLIT_RUNTIME_ARRAYS_H

#include "ort.h"

/* What a file has to give: the type, and where `n_dims` is not PSPLIT_NONE, the size of a raw file.
 */
typedef struct psplit_i_array_wanted {
  int32_t data_type;
  uint32_t n_dims;
  const int64_t *dims;
  bool safe_casts; /* also of a file whose type data_type holds all values of */
} psplit_i_array_wanted;

/* Reads the tensor in `path`, whose kind its ending tells: .npy and .npz (array `member`) as numpy
 * writes them, .pb; all else is raw little-endian bytes, for which wanted->dims is needed. Errors:
 * IO, MALFORMED, INVALID (another type), UNSUPPORTED (external data, archives that numpy does not
 * write), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_array_read(const psplit_i_ort *ort, const char *path,
                                                const char *member,
                                                const psplit_i_array_wanted *wanted,
                                                psplit_diag *diag, psplit_i_tensor **out);

/* Whether an .npz has array `member`. */
PSPLIT_MUST_USE psplit_code psplit_i_npz_has(const char *path, const char *member,
                                             psplit_diag *diag, bool *out);

/* Writes `stem`.npy, or `stem`.pb where numpy has no such type (of a sequence a SequenceProto, of
 * an optional value that is not there an OptionalProto), as one of many files (base/out_file.h).
 * Errors: IO, UNSUPPORTED (maps), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_array_write(const psplit_i_tensor *tensor, const char *stem,
                                                 psplit_diag *diag);

/* The kinds, one file each. `data` is what the whole file holds. */
PSPLIT_MUST_USE psplit_code psplit_i_npy_parse(const psplit_i_ort *ort, const char *path,
                                               const unsigned char *data, size_t n,
                                               const psplit_i_array_wanted *wanted,
                                               psplit_diag *diag, psplit_i_tensor **out);
/* Bytes that a .npy which begins with these n has, as far as they tell: n or less once it is whole.
 * False where it is none. */
bool psplit_i_npy_measure(const unsigned char *data, size_t n, uint64_t *out_needed);
PSPLIT_MUST_USE psplit_code psplit_i_raw_parse(const psplit_i_ort *ort, const char *path,
                                               const unsigned char *data, size_t n,
                                               const psplit_i_array_wanted *wanted,
                                               psplit_diag *diag, psplit_i_tensor **out);
/* False where numpy has no such type; else sets out->failed or fills it. */
PSPLIT_MUST_USE psplit_code psplit_i_npy_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                                                psplit_i_text *out);
/* A member of an archive, as it stands there. */
typedef struct psplit_i_npz_member {
  const unsigned char *data; /* NULL: there is none */
  size_t n_packed, n_bytes;
  uint32_t crc;
  bool deflated;
} psplit_i_npz_member;
PSPLIT_MUST_USE psplit_code psplit_i_npz_find(const char *path, const unsigned char *data, size_t n,
                                              const char *member, psplit_diag *diag,
                                              psplit_i_npz_member *out);
/* Its n_bytes, in memory of the archive or in *out_made, which the caller frees also after a
 * failure. At most some thousand times as large as the archive. */
PSPLIT_MUST_USE psplit_code psplit_i_npz_unpack(const char *path, const psplit_i_npz_member *member,
                                                psplit_diag *diag, unsigned char **out_made,
                                                const unsigned char **out_data);
PSPLIT_MUST_USE psplit_code psplit_i_pb_parse(const psplit_i_ort *ort, const char *path,
                                              const unsigned char *data, size_t n,
                                              const psplit_i_array_wanted *wanted,
                                              psplit_diag *diag, psplit_i_tensor **out);
PSPLIT_MUST_USE psplit_code psplit_i_pb_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                                               psplit_i_text *out);

#endif
