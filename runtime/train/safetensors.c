#include "safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "json_put.h"

enum { LENGTH_BYTES = 8, ALIGNMENT = 8 };

/* Types that both formats have. */
static const struct {
  const char *name;
  int32_t data_type;
} TYPES[] = {{"F32", 1},      {"U8", 2},      {"I8", 3},   {"U16", 4},   {"I16", 5},
             {"I32", 6},      {"I64", 7},     {"BOOL", 9}, {"F16", 10},  {"F64", 11},
             {"U32", 12},     {"U64", 13},    {"C64", 14}, {"BF16", 16}, {"F8_E4M3", 17},
             {"F8_E5M2", 19}, {"F8_E8M0", 24}};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

const char *psplit_i_safetensors_type(int32_t data_type) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (TYPES[i].data_type == data_type) return TYPES[i].name;
  return NULL;
}

/* --- reading --- */

typedef psplit_i_json_item item;

static void read_type(item at, int32_t *out) {
  const char *name = "";
  psplit_i_json_name(at, &name);
  for (size_t i = 0; i < N_TYPES; i++)
    if (strcmp(TYPES[i].name, name) == 0) *out = TYPES[i].data_type;
  if (!*out && *name)
    psplit_i_json_fail(&at, PSPLIT_UNSUPPORTED, "\"%.40s\" is no type that ONNX has, too", name);
}

/* One tensor; `offset` is in the data. */
static void read_tensor(const item *row, const char *name, psplit_i_stored *out) {
  static const char *const known[] = {"dtype", "shape", "data_offsets"};
  PSPLIT_I_JSON_KEYS(row, known);
  read_type(psplit_i_json_need(row, "dtype"), &out->data_type);
  const item shape = psplit_i_json_need(row, "shape"),
             offsets = psplit_i_json_need(row, "data_offsets");
  out->n_dims = (uint32_t)psplit_i_json_length(&shape, 0, PSPLIT_I_MAX_RANK);
  int64_t *dims = PSPLIT_I_JSON_NEW(row->reader, int64_t, out->n_dims ? out->n_dims : 1);
  for (uint32_t d = 0; d < out->n_dims && dims; d++)
    psplit_i_json_i64(psplit_i_json_element(&shape, d), 0, INT64_MAX, &dims[d]);
  uint64_t begin = 0, end = 0, elements;
  psplit_i_json_length(&offsets, 2, 2);
  psplit_i_json_u64(psplit_i_json_element(&offsets, 0), &begin);
  psplit_i_json_u64(psplit_i_json_element(&offsets, 1), &end);
  out->name = psplit_i_json_copy(row->reader, name);
  out->dims = dims;
  out->offset = begin;
  if (row->reader->code != PSPLIT_OK) return;
  if (!*name) psplit_i_json_wrong(row, "a tensor needs a name");
  if (!psplit_i_tensor_size(out->data_type, dims, out->n_dims, &elements, &out->n_bytes))
    psplit_i_json_wrong(&shape, "more elements than memory can hold");
  else if (end < begin || end - begin != out->n_bytes)
    psplit_i_json_wrong(&offsets, "must be as far apart as type and shape need bytes, %" PRIu64,
                        out->n_bytes);
}

static void read_metadata(const item *object) {
  item entry;
  for (void *at = NULL; psplit_i_json_next(object, &at, &entry);) {
    const char *text = "";
    psplit_i_json_text(entry, &text);
  }
}

static int by_offset(const void *a, const void *b) {
  const psplit_i_stored *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  if (x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* Tensors in the order of their bytes, which they cover; offsets become those in the file. */
static psplit_code place(const char *path, uint64_t n_data, uint64_t n_before, psplit_diag *diag,
                         psplit_i_safetensors *io) {
  uint64_t end = 0;
  qsort(io->tensors, io->n, sizeof *io->tensors, by_offset);
  for (size_t i = 0; i < io->n; i++) {
    psplit_i_stored *tensor = &io->tensors[i];
    if (tensor->offset != end)
      return psplit_i_fail(
        diag, PSPLIT_INVALID, "%s: %s begins at byte %" PRIu64 " of the data, %s %" PRIu64, path,
        tensor->name, tensor->offset,
        tensor->offset < end ? "inside another tensor, which ends at" : "after a gap from", end);
    if (tensor->n_bytes > n_data - end)
      return psplit_i_fail(diag, PSPLIT_MALFORMED,
                           "%s: cut short: %s ends at byte %" PRIu64
                           " of the data, which has %" PRIu64,
                           path, tensor->name, psplit_i_sat_add_u64(end, tensor->n_bytes), n_data);
    end += tensor->n_bytes;
    tensor->offset += n_before;
  }
  if (end != n_data)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "%s: %" PRIu64 " bytes at its end belong to no tensor", path,
                         n_data - end);
  return PSPLIT_OK;
}

static psplit_code header_length(const char *path, const unsigned char *bytes, uint64_t n_file,
                                 psplit_diag *diag, uint64_t *out) {
  uint64_t length = 0;
  for (unsigned i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)bytes[i] << 8 * i;
  if (length > n_file - LENGTH_BYTES)
    return psplit_i_fail(diag, PSPLIT_MALFORMED,
                         "%s: cut short, or not a safetensors file: its header would have %" PRIu64
                         " bytes",
                         path, length);
  if (length > PSPLIT_I_SAFETENSORS_HEADER)
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "%s: its header has %" PRIu64 " bytes; at most %" PRIu64 " are read", path,
                         length, PSPLIT_I_SAFETENSORS_HEADER);
  *out = length;
  return PSPLIT_OK;
}

static psplit_code too_short(const char *path, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_MALFORMED,
                       "%s: cut short: a safetensors file has at least %d "
                       "bytes",
                       path, LENGTH_BYTES + 2);
}

psplit_code psplit_i_safetensors_parse(const char *path, const unsigned char *bytes, size_t n,
                                       uint64_t n_file, psplit_i_arena *arena, psplit_diag *diag,
                                       psplit_i_safetensors *out) {
  psplit_i_json_reader reader = {.diag = diag, .arena = arena, .file = path};
  psplit_i_safetensors found = {0};
  uint64_t length = 0;
  if (n < LENGTH_BYTES + 2 || n > n_file) return too_short(path, diag);
  const psplit_code code = header_length(path, bytes, n_file, diag, &length);
  if (code != PSPLIT_OK) return code;
  if (length > n - LENGTH_BYTES || length < 2) return too_short(path, diag);
  const char *text = (const char *)bytes + LENGTH_BYTES;
  if (*text != '{')
    return psplit_i_fail(diag, PSPLIT_MALFORMED,
                         "%s: not a safetensors file: no header begins at byte %d", path,
                         LENGTH_BYTES);
  item root = psplit_i_json_load(&reader, text, (size_t)length), row;
  size_t n_rows = 0;
  for (void *at = NULL; psplit_i_json_next(&root, &at, &row);) n_rows++;
  found.tensors = PSPLIT_I_JSON_NEW(&reader, psplit_i_stored, n_rows ? n_rows : 1);
  for (void *at = NULL; found.tensors && psplit_i_json_next(&root, &at, &row);) {
    if (strcmp(row.key, "__metadata__") == 0)
      read_metadata(&row);
    else
      read_tensor(&row, row.key, &found.tensors[found.n++]);
  }
  psplit_i_json_release(&root);
  if (reader.code == PSPLIT_OK)
    reader.code = place(path, n_file - LENGTH_BYTES - length, LENGTH_BYTES + length, diag, &found);
  if (reader.code == PSPLIT_OK) *out = found;
  return reader.code;
}

psplit_code psplit_i_safetensors_read(const char *path, int fd, uint64_t n_file,
                                      psplit_i_arena *arena, psplit_diag *diag,
                                      psplit_i_safetensors *out) {
  unsigned char first[LENGTH_BYTES], *head = NULL;
  uint64_t length = 0;
  psplit_code code;
  if (n_file < LENGTH_BYTES + 2) return too_short(path, diag);
  PSPLIT_TRY(psplit_i_in_read_at(path, fd, 0, first, sizeof first, diag));
  PSPLIT_TRY(header_length(path, first, n_file, diag, &length));
  const size_t n = LENGTH_BYTES + (size_t)length;
  head = malloc(n);
  if (!head) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_in_read_at(path, fd, 0, head, n, diag));
  PSPLIT_TRY(psplit_i_safetensors_parse(path, head, n, n_file, arena, diag, out));
out:
  free(head);
  return code;
}

/* --- writing --- */

static psplit_code check_tensor(const psplit_i_stored *tensor, psplit_diag *diag) {
  uint64_t elements, bytes;
  if (!*tensor->name || strcmp(tensor->name, "__metadata__") == 0 ||
      !psplit_i_is_utf8(tensor->name))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "a tensor \"%s\" cannot be written to a safetensors file: names there are "
                         "UTF-8 and not \"__metadata__\"",
                         tensor->name);
  if (!psplit_i_safetensors_type(tensor->data_type)) {
    const char *type = psplit_i_element_name(tensor->data_type);
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s is of %s, which a safetensors file cannot hold", tensor->name,
                         type ? type : "no known type");
  }
  if (!psplit_i_tensor_size(tensor->data_type, tensor->dims, tensor->n_dims, &elements, &bytes) ||
      bytes != tensor->n_bytes)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "%s has %" PRIu64 " bytes, which are not those of its shape", tensor->name,
                         tensor->n_bytes);
  return PSPLIT_OK;
}

static void put_tensor(psplit_i_json *json, const psplit_i_stored *tensor, uint64_t begin) {
  psplit_i_json_put_open(json, tensor->name, '{');
  psplit_i_json_put_string(json, "dtype", psplit_i_safetensors_type(tensor->data_type));
  psplit_i_json_put_open(json, "shape", '[');
  for (uint32_t d = 0; d < tensor->n_dims; d++) psplit_i_json_int(json, tensor->dims[d]);
  psplit_i_json_close(json, ']');
  psplit_i_json_put_open(json, "data_offsets", '[');
  psplit_i_json_uint(json, begin);
  psplit_i_json_uint(json, begin + tensor->n_bytes);
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
}

static psplit_code put_tensors(const psplit_i_stored *tensors, size_t n, psplit_i_intern *names,
                               psplit_diag *diag, psplit_i_text *out) {
  psplit_i_json json;
  uint64_t at = 0;
  psplit_i_json_init(&json, out);
  json.compact = true;
  psplit_i_json_open(&json, '{');
  for (size_t i = 0; i < n; i++) {
    const psplit_code code = check_tensor(&tensors[i], diag);
    if (code != PSPLIT_OK) return code;
    const uint32_t id = psplit_i_intern_add(names, tensors[i].name);
    if (id == PSPLIT_NONE) return psplit_i_nomem(diag);
    if (id != i)
      return psplit_i_fail(diag, PSPLIT_INVALID, "two tensors of a file have the name %s",
                           tensors[i].name);
    if (!psplit_i_add_u64(at, tensors[i].n_bytes, &at) || at > INT64_MAX / 2)
      return psplit_i_fail(diag, PSPLIT_LIMIT,
                           "tensors of a file with more bytes than it can have");
    put_tensor(&json, &tensors[i], at - tensors[i].n_bytes);
  }
  psplit_i_json_close(&json, '}');
  return PSPLIT_OK;
}

psplit_code psplit_i_safetensors_format(const psplit_i_stored *tensors, size_t n, psplit_diag *diag,
                                        psplit_i_text *out) {
  psplit_i_text head = {0};
  psplit_i_intern names;
  unsigned char length[LENGTH_BYTES];
  psplit_i_intern_init(&names);
  psplit_code code = put_tensors(tensors, n, &names, diag, &head);
  psplit_i_intern_fini(&names);
  if (!head.failed && code == PSPLIT_OK) head.bytes[head.n - 1] = ' '; /* the writer's newline */
  while (!head.failed && head.n % ALIGNMENT) psplit_i_text_puts(&head, " ");
  if (code == PSPLIT_OK && head.failed) code = psplit_i_nomem(diag);
  if (code == PSPLIT_OK && head.n > PSPLIT_I_SAFETENSORS_HEADER)
    code =
      psplit_i_fail(diag, PSPLIT_LIMIT, "%zu tensors are too many for one safetensors file", n);
  for (unsigned i = 0; i < LENGTH_BYTES; i++) length[i] = (unsigned char)(head.n >> 8 * i);
  psplit_i_text_add(out, length, sizeof length);
  psplit_i_text_add(out, head.bytes, head.n);
  if (code == PSPLIT_OK && out->failed) code = psplit_i_nomem(diag);
  psplit_i_text_fini(&head);
  return code;
}
