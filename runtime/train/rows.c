#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrays.h"
#include "casts.h"

enum { STRING = 8 };

/* An .npy somewhere: n bytes of a file from `offset` on, or of memory. */
typedef struct source {
  int fd;
  uint64_t offset, n;
  const unsigned char *memory; /* NULL: in the file */
} source;

/* Its first n bytes. */
static psplit_code read_source(const char *path, const source *from, void *out, size_t n,
                               psplit_diag *diag) {
  if (!from->memory) return psplit_i_in_read_at(path, from->fd, from->offset, out, n, diag);
  if (n) memcpy(out, from->memory, n);
  return PSPLIT_OK;
}

/* --- what the header says, held against what is wanted --- */

static void put_dims(psplit_i_text *out, const int64_t *dims, size_t n) {
  for (size_t d = 0; d < n; d++) {
    psplit_i_text_puts(out, d ? ", " : "[");
    if (dims[d] < 0)
      psplit_i_text_puts(out, "?");
    else
      psplit_i_text_addf(out, "%" PRId64, dims[d]);
  }
  psplit_i_text_puts(out, n ? "]" : "[]");
}

static psplit_code check_shape(const char *path, const psplit_i_npy_layout *of,
                               const psplit_i_rows_wanted *wanted, psplit_diag *diag) {
  if (of->n_dims == 0)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "%s holds a single number; its first axis has to be the rows", path);
  bool same = wanted->n_dims == PSPLIT_NONE || wanted->n_dims == of->n_dims;
  for (size_t d = 1; same && wanted->n_dims != PSPLIT_NONE && d < of->n_dims; d++)
    same = wanted->dims[d] < 0 || wanted->dims[d] == of->dims[d];
  if (same) return PSPLIT_OK;
  psplit_i_text has = {0}, takes = {0};
  put_dims(&has, of->dims, of->n_dims);
  put_dims(&takes, wanted->dims, wanted->n_dims);
  const psplit_code code =
    has.failed || takes.failed
      ? psplit_i_nomem(diag)
      : psplit_i_fail(diag, PSPLIT_INVALID,
                      "%s has the shape %s, the input takes %s: all but the first have to agree",
                      path, has.bytes, takes.bytes);
  psplit_i_text_fini(&has);
  psplit_i_text_fini(&takes);
  return code;
}

static psplit_code check_layout(const char *path, const psplit_i_npy_layout *of,
                                const psplit_i_rows_wanted *wanted, psplit_diag *diag) {
  const psplit_code code = check_shape(path, of, wanted, diag);
  if (code != PSPLIT_OK) return code;
  if (of->fortran && of->n_dims > 1)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s is in Fortran order, where a row is spread over the file; write it "
                         "with numpy.ascontiguousarray",
                         path);
  for (size_t d = 0; d < of->n_dims; d++)
    if (of->dims[d] == 0) return psplit_i_fail(diag, PSPLIT_INVALID, "%s is empty", path);
  return PSPLIT_OK;
}

/* Fills *out by the header of an .npy; its data is known to be there. */
static psplit_code look(const char *path, const source *from, const psplit_i_rows_wanted *wanted,
                        psplit_diag *diag, psplit_i_rows *out) {
  const psplit_i_array_wanted type = {
    .data_type = wanted->data_type, .n_dims = PSPLIT_NONE, .safe_casts = wanted->safe_casts};
  unsigned char first[PSPLIT_I_NPY_FIRST] = {0}, *head = NULL;
  const size_t n_first = from->n < sizeof first ? (size_t)from->n : sizeof first;
  psplit_i_npy_layout of;
  uint64_t elements, bytes;
  size_t at;
  psplit_code code;
  if (wanted->data_type == STRING)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s: strings cannot be read by rows; number them before the training",
                         path);
  PSPLIT_TRY(read_source(path, from, first, n_first, diag));
  PSPLIT_TRY(psplit_i_npy_find(path, first, n_first, diag, &at));
  if (at > from->n)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: cut short within its header", path));
  head = malloc(at + 1);
  if (!head) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(read_source(path, from, head, at, diag));
  PSPLIT_TRY(psplit_i_npy_look(path, head, at, &type, diag, &of));
  PSPLIT_TRY(check_layout(path, &of, wanted, diag));
  const bool fits = psplit_i_tensor_size(of.data_type, of.dims, of.n_dims, &elements, &bytes);
  if (!fits || bytes > from->n - at)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_MALFORMED,
                              "%s: cut short: its shape takes more than the %" PRIu64
                              " bytes that it has",
                              path, from->n - at));
  if (bytes < from->n - at)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: has %" PRIu64 " bytes after its array",
                              path, from->n - at - bytes));
  out->data_type = of.data_type;
  out->wanted_type = wanted->data_type;
  out->n_rows = (uint64_t)of.dims[0];
  out->n_dims = of.n_dims;
  memcpy(out->dims, of.dims, sizeof out->dims);
  out->row_bytes = bytes / out->n_rows;
  out->swapped = (uint32_t)of.swapped;
  out->offset = from->offset + at;
  out->first = from->memory ? from->memory + at : NULL;
out:
  free(head);
  return code;
}

/* --- opening --- */

static psplit_code find_source(const char *path, const psplit_i_rows_wanted *wanted, uint64_t n,
                               psplit_diag *diag, psplit_i_rows *io, source *out) {
  enum { MOST_TIMES = 10 };
  psplit_i_npz_member member;
  *out = (source){.fd = io->fd, .n = n};
  if (psplit_i_ends_with(path, ".npy")) return PSPLIT_OK;
  if (!psplit_i_ends_with(path, ".npz"))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s: rows are read from .npy and .npz; write it with numpy.save", path);
  psplit_code code = psplit_i_npz_find(path, io->fd, n, wanted->name, diag, &member);
  if (code != PSPLIT_OK) return code;
  if (!member.found)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s has no array %s", path, wanted->name);
  out->offset = member.offset;
  out->n = member.n_bytes;
  if (!member.deflated) return PSPLIT_OK;
  const uint64_t most = psplit_i_npz_limit(n, MOST_TIMES, wanted->max_unpacked_bytes);
  code = psplit_i_npz_unpack(path, io->fd, &member, most, diag, &io->loaded);
  close(io->fd);
  io->fd = -1;
  *out = (source){.fd = -1, .n = member.n_bytes, .memory = io->loaded};
  return code;
}

psplit_code psplit_i_rows_open(const char *path, const psplit_i_rows_wanted *wanted,
                               psplit_diag *diag, psplit_i_rows *out) {
  psplit_i_rows rows = {.name = wanted->name, .path = path, .fd = -1};
  source from;
  uint64_t n;
  psplit_code code;
  *out = (psplit_i_rows)PSPLIT_I_ROWS_NONE;
  PSPLIT_TRY(psplit_i_in_open(path, diag, &rows.fd, &n));
  PSPLIT_TRY(find_source(path, wanted, n, diag, &rows, &from));
  PSPLIT_TRY(look(path, &from, wanted, diag, &rows));
out:
  if (code == PSPLIT_OK) {
    *out = rows;
  } else {
    psplit_i_diag_context(diag, "data for %s", wanted->name);
    psplit_i_rows_close(&rows);
  }
  return code;
}

void psplit_i_rows_close(psplit_i_rows *rows) {
  if (rows->fd >= 0) close(rows->fd);
  free(rows->loaded);
  *rows = (psplit_i_rows)PSPLIT_I_ROWS_NONE;
}

psplit_code psplit_i_rows_agree(const char *name, uint64_t n_rows, const char *other_name,
                                uint64_t other_n_rows, psplit_diag *diag) {
  if (n_rows == other_n_rows) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_INVALID,
                       "the data has %" PRIu64 " rows for %s and %" PRIu64
                       " for %s: row by row they have to belong together",
                       n_rows, name, other_n_rows, other_name);
}

/* --- reading --- */

/* n rows of the file from `row` on. */
static psplit_code read_run(const psplit_i_rows *rows, uint64_t row, uint64_t n, unsigned char *out,
                            psplit_diag *diag) {
  const size_t bytes = (size_t)(n * rows->row_bytes);
  if (rows->first) {
    memcpy(out, rows->first + row * rows->row_bytes, bytes);
    return PSPLIT_OK;
  }
  const psplit_code code = psplit_i_in_read_at(
    rows->path, rows->fd, rows->offset + row * rows->row_bytes, out, bytes, diag);
  if (code != PSPLIT_OK) psplit_i_diag_context(diag, "data for %s", rows->name);
  return code;
}

psplit_code psplit_i_rows_read(const psplit_i_rows *rows, const psplit_i_order *order,
                               const psplit_i_slice *slice, psplit_diag *diag, void *out) {
  unsigned char *to = out;
  for (uint64_t at = slice->begin; at < slice->end;) {
    const uint64_t row = psplit_i_order_row(order, slice->epoch, at);
    uint64_t n = 1;
    while (at + n < slice->end && psplit_i_order_row(order, slice->epoch, at + n) == row + n) n++;
    const psplit_code code = read_run(rows, row, n, to, diag);
    if (code != PSPLIT_OK) return code;
    to += n * rows->row_bytes;
    at += n;
  }
  if (rows->swapped > 1)
    psplit_i_swap_bytes(out, (size_t)(to - (unsigned char *)out), rows->swapped);
  return PSPLIT_OK;
}

psplit_code psplit_i_rows_tensor(const psplit_i_ort *ort, const psplit_i_rows *rows,
                                 const psplit_i_order *order, const psplit_i_slice *slice,
                                 psplit_diag *diag, psplit_i_tensor **out) {
  int64_t dims[PSPLIT_I_MAX_RANK];
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  psplit_code code;
  memcpy(dims, rows->dims, sizeof dims);
  dims[0] = (int64_t)(slice->end - slice->begin);
  PSPLIT_TRY(psplit_i_tensor_make(ort, rows->data_type, dims, rows->n_dims, diag, &tensor, &view));
  PSPLIT_TRY(psplit_i_rows_read(rows, order, slice, diag, view.data));
  if (rows->data_type != rows->wanted_type)
    PSPLIT_TRY(psplit_i_tensor_cast(ort, rows->wanted_type, diag, &tensor));
out:
  if (code == PSPLIT_OK)
    *out = tensor;
  else
    psplit_i_tensor_release(tensor);
  return code;
}
