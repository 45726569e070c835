#include "arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static psplit_code read_all(const char *path, psplit_diag *diag, unsigned char **out,
                            size_t *out_n) {
  uint64_t bytes, n = 0;
  int fd;
  psplit_code code = psplit_i_in_open(path, diag, &fd, &bytes);
  if (code != PSPLIT_OK) return code;
  unsigned char *data = bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
  if (!data) code = psplit_i_nomem(diag);
  while (code == PSPLIT_OK && n < bytes) {
    const ssize_t got = read(fd, data + n, (size_t)(bytes - n));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      code = psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", path,
                           got ? strerror(errno) : "it became shorter");
    n += got > 0 ? (uint64_t)got : 0;
  }
  close(fd);
  if (code == PSPLIT_OK) {
    *out = data;
    *out_n = (size_t)bytes;
  } else {
    free(data);
  }
  return code;
}

psplit_code psplit_i_raw_parse(const psplit_i_ort *ort, const char *path, const unsigned char *data,
                               size_t n, const psplit_i_array_wanted *wanted, psplit_diag *diag,
                               psplit_i_tensor **out) {
  psplit_i_tensor *tensor;
  psplit_i_tensor_view view;
  if (!psplit_i_element_bits(wanted->data_type))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s: strings have no raw form; use .npy", path);
  if (wanted->n_dims == PSPLIT_NONE)
    return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(INPUT_SIZE),
                               "%s holds raw bytes: say how large the input is", path);
  psplit_code code =
    psplit_i_tensor_create(ort, wanted->data_type, wanted->dims, wanted->n_dims, diag, &tensor);
  if (code != PSPLIT_OK) return code;
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
  if (view.n_bytes != n)
    code = psplit_i_fail_about(diag, PSPLIT_INVALID, PSPLIT_I_HELPS(INPUT_SIZES),
                               "%s has %zu bytes, the input has %" PRIu64, path, n, view.n_bytes);
  else if (n)
    memcpy(view.data, data, n);
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
  unsigned char *data, *unpacked = NULL;
  size_t n;
  psplit_code code = read_all(path, diag, &data, &n);
  if (code != PSPLIT_OK) return code;
  if (ends_with(path, ".npz")) {
    psplit_i_npz_member found;
    const unsigned char *part;
    PSPLIT_TRY(psplit_i_npz_find(path, data, n, member, diag, &found));
    if (!found.data)
      PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_INVALID, "%s has no array %s", path, member));
    PSPLIT_TRY(psplit_i_npz_unpack(path, &found, diag, &unpacked, &part));
    code = psplit_i_npy_parse(ort, path, part, found.n_bytes, wanted, diag, out);
  } else if (ends_with(path, ".npy")) {
    code = psplit_i_npy_parse(ort, path, data, n, wanted, diag, out);
  } else if (ends_with(path, ".pb")) {
    code = psplit_i_pb_parse(ort, path, data, n, wanted, diag, out);
  } else {
    code = psplit_i_raw_parse(ort, path, data, n, wanted, diag, out);
  }
out:
  free(unpacked);
  free(data);
  return code;
}

psplit_code psplit_i_npz_has(const char *path, const char *member, psplit_diag *diag, bool *out) {
  unsigned char *data;
  psplit_i_npz_member found;
  size_t n;
  psplit_code code = read_all(path, diag, &data, &n);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_npz_find(path, data, n, member, diag, &found);
  if (code == PSPLIT_OK) *out = found.data != NULL;
  free(data);
  return code;
}

psplit_code psplit_i_array_write(const psplit_i_tensor *tensor, const char *stem,
                                 psplit_diag *diag) {
  const psplit_i_out_options options = {.is_many = true};
  psplit_i_text text = {0}, path = {0};
  psplit_i_value_kind kind;
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
