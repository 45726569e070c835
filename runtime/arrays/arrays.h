/* Tensors in files: .npy and .npz of numpy, .pb (TensorProto), raw bytes. */
#ifndef PSPLIT_RUNTIME_ARRAYS_H
#define PSPLIT_RUNTIME_ARRAYS_H

#include "ort.h"

/* What a file has to give: the type (0: any), and where `n_dims` is not PSPLIT_NONE, the size of a
 * raw file. */
typedef struct psplit_i_array_wanted {
  int32_t data_type;
  bool is_sequence; /* of tensors: nothing else of this counts */
  uint32_t n_dims;
  const int64_t *dims;
  bool safe_casts;             /* also of a file whose type data_type holds all values of */
  uint64_t max_unpacked_bytes; /* see psplit_i_npz_limit */
} psplit_i_array_wanted;

/* Reads the tensor in `path`, whose kind its ending tells: .npy and .npz (array `member`) as numpy
 * writes them, .pb; all else is raw little-endian bytes, for which wanted->dims is needed. Errors:
 * IO, MALFORMED, INVALID (another type), UNSUPPORTED (external data, archives that numpy does not
 * write), LIMIT (psplit_i_npz_limit), NOMEM. No more than ten times the file, twice that limit or
 * twice what the input needs is taken for it. */
PSPLIT_MUST_USE psplit_code psplit_i_array_read(const psplit_i_ort *ort, const char *path,
                                                const char *member,
                                                const psplit_i_array_wanted *wanted,
                                                psplit_diag *diag, psplit_i_tensor **out);

/* Whether an .npz has array `member`. Errors: IO, MALFORMED, LIMIT. */
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
 * Errors: MALFORMED (it is none), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_npy_measure(const char *path, const unsigned char *data,
                                                 size_t n, psplit_diag *diag, uint64_t *out_needed);
/* What the header of an .npy says of the data behind it. */
typedef struct psplit_i_npy_layout {
  int32_t data_type; /* that of the input, or with safe casts the file's own */
  bool fortran;      /* the first dimension is the fastest */
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
  size_t width;   /* bytes of an element */
  size_t swapped; /* bytes whose order is turned round; 1: none */
  bool wide;      /* strings are of UTF-32 */
} psplit_i_npy_layout;
/* MALFORMED: `what` it is not, "not an .npy file", and what data[n], its beginning, says it is. */
PSPLIT_MUST_USE psplit_code psplit_i_array_foreign(const char *path, const char *what,
                                                   const unsigned char *data, size_t n,
                                                   psplit_diag *diag);
enum { PSPLIT_I_NPY_FIRST = 12 }; /* bytes that tell how long the header is */
/* Where the data begins: behind the header, which is at most 1 MiB. Of the first n bytes no more
 * than PSPLIT_I_NPY_FIRST are looked at. Errors: MALFORMED (no .npy). */
PSPLIT_MUST_USE psplit_code psplit_i_npy_find(const char *path, const unsigned char *data, size_t n,
                                              psplit_diag *diag, size_t *out_at);
/* The header in data[at]. Errors: MALFORMED, INVALID (a type that does not fit). */
PSPLIT_MUST_USE psplit_code psplit_i_npy_look(const char *path, const unsigned char *data,
                                              size_t at, const psplit_i_array_wanted *wanted,
                                              psplit_diag *diag, psplit_i_npy_layout *out);
/* Turns the bytes of each `unit` round, in data[n]. */
void psplit_i_swap_bytes(unsigned char *data, size_t n, size_t unit);
/* Errors: USAGE (wanted->n_dims is PSPLIT_NONE), INVALID (another number of bytes), LIMIT,
 * UNSUPPORTED (strings), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_raw_parse(const psplit_i_ort *ort, const char *path,
                                               const unsigned char *data, size_t n,
                                               const psplit_i_array_wanted *wanted,
                                               psplit_diag *diag, psplit_i_tensor **out);
/* Fills *out, or sets out->failed. UNSUPPORTED, without a message, where numpy has no such type. */
PSPLIT_MUST_USE psplit_code psplit_i_npy_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                                                psplit_i_text *out);
/* A member of an archive, as it stands there: an .npy from `offset` of the file on. */
typedef struct psplit_i_npz_member {
  bool found, deflated;
  uint64_t offset, n_packed, n_bytes;
  uint32_t crc;
} psplit_i_npz_member;
/* Looks for array `member` in an open archive of n_file bytes, of which only the list of its arrays
 * is read. Errors: IO, MALFORMED, UNSUPPORTED (encrypted, or packed otherwise), LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_npz_find(const char *path, int fd, uint64_t n_file,
                                              const char *member, psplit_diag *diag,
                                              psplit_i_npz_member *out);
/* Its n_bytes, unpacked and held against their checksum; the caller frees *out. Before memory is
 * taken, LIMIT where they are more than most_bytes: they may be some thousand times as many as the
 * archive has. Errors: IO, MALFORMED, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_npz_unpack(const char *path, int fd,
                                                const psplit_i_npz_member *member,
                                                uint64_t most_bytes, psplit_diag *diag,
                                                unsigned char **out);
/* What may be unpacked of an archive of n_file bytes: so many times as much, or max_unpacked_bytes
 * (0: 64 MiB) if that is more. */
static inline uint64_t psplit_i_npz_limit(uint64_t n_file, unsigned times,
                                          uint64_t max_unpacked_bytes) {
  const uint64_t most = max_unpacked_bytes ? max_unpacked_bytes : (uint64_t)64 << 20;
  const uint64_t by_file = psplit_i_sat_mul_u64(n_file, times);
  return by_file > most ? by_file : most;
}
/* A TensorProto. Errors: MALFORMED, INVALID (another type), UNSUPPORTED (external data), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pb_parse(const psplit_i_ort *ort, const char *path,
                                              const unsigned char *data, size_t n,
                                              const psplit_i_array_wanted *wanted,
                                              psplit_diag *diag, psplit_i_tensor **out);
/* A SequenceProto of tensors, one at least. Errors: the same. */
PSPLIT_MUST_USE psplit_code psplit_i_sequence_parse(const psplit_i_ort *ort, const char *path,
                                                    const unsigned char *data, size_t n,
                                                    psplit_diag *diag, psplit_i_tensor **out);
/* A TensorProto, SequenceProto or OptionalProto as bytes; fills *out, or sets out->failed. Errors:
 * UNSUPPORTED (maps), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pb_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                                               psplit_i_text *out);

#endif
