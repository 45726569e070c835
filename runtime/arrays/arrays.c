#include "arrays.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct open_file {
  const char *path;
  int fd;
  uint64_t bytes;
} open_file;

/* All of a file, malloc'd. */
static psplit_code read_all(const open_file *file, psplit_diag *diag, unsigned char **out,
                            uint64_t *out_n) {
  unsigned char *data = file->bytes < SIZE_MAX ? malloc((size_t)file->bytes + 1) : NULL;
  if (!data) return psplit_i_nomem(diag);
  const psplit_code code =
    psplit_i_in_read_at(file->path, file->fd, 0, data, (size_t)file->bytes, diag);
  *out_n = file->bytes;
  if (code == PSPLIT_OK)
    *out = data;
  else
    free(data);
  return code;
}

/* What may be unpacked: as much as the input needs, where its sizes are known. Else what is made of
 * the array counts, too: a tensor, and of another type one more of up to eight times as much. */
static uint64_t most_unpacked(const psplit_i_array_wanted *wanted, uint64_t n_file) {
  enum { HEADER = 1 << 16, COPIES = 2, MOST_TIMES = 10 };
  const unsigned times = wanted->safe_casts ? 1 : MOST_TIMES / COPIES;
  const uint64_t most = psplit_i_npz_limit(n_file, times, wanted->max_unpacked_bytes);
  uint64_t n_elements, needs;
  if (wanted->n_dims == PSPLIT_NONE ||
      !psplit_i_tensor_size(wanted->data_type, wanted->dims, wanted->n_dims, &n_elements, &needs))
    return most;
  needs = psplit_i_sat_add_u64(needs, HEADER);
  return needs > most ? needs : most;
}

/* An array of an archive, of which nothing else is read. */
static psplit_code read_member(const open_file *file, const char *member,
                               const psplit_i_array_wanted *wanted, psplit_diag *diag,
                               unsigned char **out, uint64_t *out_n) {
  psplit_i_npz_member found;
  psplit_code code = psplit_i_npz_find(file->path, file->fd, file->bytes, member, diag, &found);
  if (code != PSPLIT_OK) return code;
  if (!found.found)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s has no array %s", file->path, member);
  *out_n = found.n_bytes;
  return psplit_i_npz_unpack(file->path, file->fd, &found, most_unpacked(wanted, file->bytes), diag,
                             out);
}

psplit_code psplit_i_raw_parse(const psplit_i_ort *ort, const char *path, const unsigned char *data,
                               size_t n, const psplit_i_array_wanted *wanted, psplit_diag *diag,
                               psplit_i_tensor **out) {
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  uint64_t n_elements, n_bytes;
  psplit_code code;
  if (!psplit_i_element_bits(wanted->data_type))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s: strings have no raw form; use .npy", path);
  if (wanted->n_dims == PSPLIT_NONE)
    return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(INPUT_SIZE),
                               "%s holds raw bytes: say how large the input is", path);
  if (!psplit_i_tensor_size(wanted->data_type, wanted->dims, wanted->n_dims, &n_elements, &n_bytes))
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "%s: a tensor is too large, or has a negative dimension", path);
  if (n_bytes != n) /* before memory is taken for it */
    return psplit_i_fail_about(diag, PSPLIT_INVALID, PSPLIT_I_HELPS(INPUT_SIZES),
                               "%s has %zu bytes, the input has %" PRIu64, path, n, n_bytes);
  PSPLIT_TRY(psplit_i_tensor_make(ort, wanted->data_type, wanted->dims, wanted->n_dims, diag,
                                  &tensor, &view));
  if (n) memcpy(view.data, data, n);
out:
  if (code == PSPLIT_OK)
    *out = tensor;
  else
    psplit_i_tensor_release(tensor);
  return code;
}

psplit_code psplit_i_array_read(const psplit_i_ort *ort, const char *path, const char *member,
                                const psplit_i_array_wanted *wanted, psplit_diag *diag,
                                psplit_i_tensor **out) {
  unsigned char *data = NULL;
  uint64_t n_read = 0;
  open_file file = {.path = path};
  const bool npz = psplit_i_ends_with(path, ".npz");
  if (wanted->is_sequence && !psplit_i_ends_with(path, ".pb"))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s: a sequence is read from a .pb, a SequenceProto, as outputs that are "
                         "sequences are written",
                         path);
  psplit_code code = psplit_i_in_open(path, diag, &file.fd, &file.bytes);
  if (code != PSPLIT_OK) return code;
  code = npz ? read_member(&file, member, wanted, diag, &data, &n_read)
             : read_all(&file, diag, &data, &n_read);
  close(file.fd);
  if (code != PSPLIT_OK) return code;
  const size_t n = (size_t)n_read;
  if (wanted->is_sequence)
    code = psplit_i_sequence_parse(ort, path, data, n, diag, out);
  else if (npz || psplit_i_ends_with(path, ".npy"))
    code = psplit_i_npy_parse(ort, path, data, n, wanted, diag, out);
  else if (psplit_i_ends_with(path, ".pb"))
    code = psplit_i_pb_parse(ort, path, data, n, wanted, diag, out);
  else
    code = psplit_i_raw_parse(ort, path, data, n, wanted, diag, out);
  free(data);
  return code;
}

psplit_code psplit_i_npz_has(const char *path, const char *member, psplit_diag *diag, bool *out) {
  psplit_i_npz_member found;
  uint64_t bytes;
  int fd;
  psplit_code code = psplit_i_in_open(path, diag, &fd, &bytes);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_npz_find(path, fd, bytes, member, diag, &found);
  if (code == PSPLIT_OK) *out = found.found;
  close(fd);
  return code;
}

psplit_code psplit_i_array_write(const psplit_i_tensor *tensor, const char *stem,
                                 psplit_diag *diag) {
  const psplit_i_out_options options = {.is_many = true};
  psplit_i_text text = {0}, path = {0};
  psplit_i_value_view kind;
  psplit_code code = psplit_i_value_look(tensor, diag, &kind);
  bool npy = code == PSPLIT_OK && !kind.is_sequence && !kind.is_nothing;
  if (npy)
    code = psplit_i_npy_format(tensor, diag, &text);
  else if (code == PSPLIT_OK)
    code = psplit_i_pb_format(tensor, diag, &text);
  if (npy && code == PSPLIT_UNSUPPORTED && diag->code == PSPLIT_OK) {
    npy = false;
    code = psplit_i_pb_format(tensor, diag, &text);
  }
  psplit_i_text_addf(&path, "%s.%s", stem, npy ? "npy" : "pb");
  if (code == PSPLIT_OK)
    code = text.failed || path.failed
             ? psplit_i_nomem(diag)
             : psplit_i_out_put(path.bytes, &options, text.bytes, text.n, diag);
  psplit_i_text_fini(&path);
  psplit_i_text_fini(&text);
  return code;
}
