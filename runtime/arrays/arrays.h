/* Tensors in files: .npy and .npz of numpy, .pb (TensorProto), raw bytes. */
#ifndef PSPLIT_RUNTIME_ARRAYS_H
#define PSPLIT_RUNTIME_ARRAYS_H

#include "ort.h"

/* Requirements on a file: the type (0: any) and, if `n_dims` is not PSPLIT_NONE, the shape, which a
 * raw file needs. */
typedef struct psplit_i_array_wanted {
  int32_t data_type;
  bool is_sequence; /* a sequence of tensors: the other fields are ignored */
  uint32_t n_dims;
  const int64_t *dims;
  bool safe_casts;             /* also accept a file whose type is contained in data_type */
  uint64_t max_unpacked_bytes; /* see psplit_i_npz_limit */
} psplit_i_array_wanted;

/* Reads the tensor in `path`. The extension decides on the format: .npy and .npz (array `member`)
 * as numpy writes them, .pb; all others are raw little-endian bytes, which need wanted->dims.
 * Errors: IO, MALFORMED, INVALID (another type), UNSUPPORTED (external data, archives that numpy
 * does not write), LIMIT (psplit_i_npz_limit), NOMEM. Takes memory of at most ten times the file,
 * twice that limit or twice the size of the input. */
PSPLIT_MUST_USE psplit_code psplit_i_array_read(const psplit_i_ort *ort, const char *path,
                                                const char *member,
                                                const psplit_i_array_wanted *wanted,
                                                psplit_diag *diag, psplit_i_tensor **out);

/* Whether an .npz has array `member`. Errors: IO, MALFORMED, LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_npz_has(const char *path, const char *member,
                                             psplit_diag *diag, bool *out);

/* Writes `stem`.npy, or `stem`.pb if numpy has no such type (a SequenceProto for a sequence, an
 * OptionalProto for an absent optional value), as one of many files (base/out_file.h). Errors: IO,
 * UNSUPPORTED (maps), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_array_write(const psplit_i_tensor *tensor, const char *stem,
                                                 psplit_diag *diag);

/* Parsers of the formats, in one file each. `data` is the content of the whole file. */
PSPLIT_MUST_USE psplit_code psplit_i_npy_parse(const psplit_i_ort *ort, const char *path,
                                               const unsigned char *data, size_t n,
                                               const psplit_i_array_wanted *wanted,
                                               psplit_diag *diag, psplit_i_tensor **out);
/* Size of a .npy that begins with these n bytes, as far as they tell: at most n if it is complete.
 * Errors: MALFORMED (not a .npy), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_npy_measure(const char *path, const unsigned char *data,
                                                 size_t n, psplit_diag *diag, uint64_t *out_needed);
/* Layout of the data of a .npy, from its header. */
typedef struct psplit_i_npy_layout {
  int32_t data_type; /* the type of the input or, with safe casts, of the file */
  bool fortran;      /* the first dimension varies fastest */
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
  size_t width;   /* bytes of an element */
  size_t swapped; /* size of the units whose bytes are swapped; 1: none */
  bool wide;      /* strings are in UTF-32 */
} psplit_i_npy_layout;
/* Fails with MALFORMED: the file is not `what` ("not an .npy file"), but what its first bytes
 * data[n] suggest. */
PSPLIT_MUST_USE psplit_code psplit_i_array_foreign(const char *path, const char *what,
                                                   const unsigned char *data, size_t n,
                                                   psplit_diag *diag);
enum { PSPLIT_I_NPY_FIRST = 12 }; /* number of bytes that contain the length of the header */
/* Finds the start of the data, after the header of at most 1 MiB. Reads at most PSPLIT_I_NPY_FIRST
 * of the first n bytes. Errors: MALFORMED (not a .npy). */
PSPLIT_MUST_USE psplit_code psplit_i_npy_find(const char *path, const unsigned char *data, size_t n,
                                              psplit_diag *diag, size_t *out_at);
/* Parses the header in data[at]. Errors: MALFORMED, INVALID (an unsuitable type). */
PSPLIT_MUST_USE psplit_code psplit_i_npy_look(const char *path, const unsigned char *data,
                                              size_t at, const psplit_i_array_wanted *wanted,
                                              psplit_diag *diag, psplit_i_npy_layout *out);
/* Reverses the bytes of each `unit` in data[n]. */
void psplit_i_swap_bytes(unsigned char *data, size_t n, size_t unit);
/* Errors: USAGE (wanted->n_dims is PSPLIT_NONE), INVALID (another number of bytes), LIMIT,
 * UNSUPPORTED (strings), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_raw_parse(const psplit_i_ort *ort, const char *path,
                                               const unsigned char *data, size_t n,
                                               const psplit_i_array_wanted *wanted,
                                               psplit_diag *diag, psplit_i_tensor **out);
/* Fills *out, or sets out->failed. UNSUPPORTED, without a message, if numpy has no such type. */
PSPLIT_MUST_USE psplit_code psplit_i_npy_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                                                psplit_i_text *out);
/* A member of an archive: a .npy at `offset` in the file. */
typedef struct psplit_i_npz_member {
  bool found, deflated;
  uint64_t offset, n_packed, n_bytes;
  uint32_t crc;
} psplit_i_npz_member;
/* Finds array `member` in an open archive of n_file bytes; only reads the directory of the archive.
 * Errors: IO, MALFORMED, UNSUPPORTED (encryption, other compression), LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_npz_find(const char *path, int fd, uint64_t n_file,
                                              const char *member, psplit_diag *diag,
                                              psplit_i_npz_member *out);
/* Unpacks its n_bytes and verifies their checksum; the caller frees *out. Fails with LIMIT before
 * taking memory if they exceed most_bytes, since they can be some thousand times the size of the
 * archive. Errors: IO, MALFORMED, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_npz_unpack(const char *path, int fd,
                                                const psplit_i_npz_member *member,
                                                uint64_t most_bytes, psplit_diag *diag,
                                                unsigned char **out);
/* Limit on the bytes unpacked from an archive of n_file bytes: `times` as many, or
 * max_unpacked_bytes (0: 64 MiB) if that is more. */
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
/* A SequenceProto of at least one tensor. Errors: as above. */
PSPLIT_MUST_USE psplit_code psplit_i_sequence_parse(const psplit_i_ort *ort, const char *path,
                                                    const unsigned char *data, size_t n,
                                                    psplit_diag *diag, psplit_i_tensor **out);
/* A TensorProto, SequenceProto or OptionalProto as bytes; fills *out, or sets out->failed. Errors:
 * UNSUPPORTED (maps), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pb_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                                               psplit_i_text *out);

#endif
