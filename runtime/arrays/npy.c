/* numpy's .npy. Source: NEP 1 and numpy.lib.format, versions 1 to 3. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "casts.h"

/* Types without their byte order; `written`: how numpy itself spells the type. */
static const struct {
  const char *descr;
  int32_t data_type;
  bool written;
} DESCRS[] = {
  {"f4", 1, true},   {"u1", 2, true},   {"i1", 3, true},   {"u2", 4, true},   {"i2", 5, true},
  {"i4", 6, true},   {"i8", 7, true},   {"b1", 9, true},   {"f2", 10, true},  {"f8", 11, true},
  {"u4", 12, true},  {"u8", 13, true},  {"c8", 14, true},  {"c16", 15, true}, {"u2", 10, false},
  {"u2", 16, false}, {"V2", 16, false}, {"u1", 17, false}, {"u1", 18, false}, {"u1", 19, false},
  {"u1", 20, false}, {"u1", 24, false}, {"V1", 17, false}, {"V1", 18, false}, {"V1", 19, false},
  {"V1", 20, false}, {"V1", 24, false},
};
enum {
  N_DESCRS = sizeof DESCRS / sizeof *DESCRS,
  STRING = 8,
  FIRST_BYTES = PSPLIT_I_NPY_FIRST,
  MAX_HEADER = 1 << 20
};

static psplit_code malformed(psplit_diag *diag, const char *path, const char *what) {
  return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: %s", path, what);
}

typedef struct header {
  char descr[16];
  bool fortran;
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
} header;

/* Whether `c` stands next, behind blanks, and goes. */
static bool take(const char **io_at, char c) {
  *io_at += strspn(*io_at, " \t\r\n");
  if (**io_at != c) return false;
  ++*io_at;
  return true;
}

/* A string without escapes that fits into out[size]. */
static bool take_string(const char **io_at, char *out, size_t size) {
  const char quote = take(io_at, '\'') ? '\'' : take(io_at, '"') ? '"' : '\0';
  const char *end = quote ? strchr(*io_at, quote) : NULL;
  const size_t n = end ? (size_t)(end - *io_at) : 0;
  if (n == 0 || n >= size) return false;
  memcpy(out, *io_at, n);
  out[n] = '\0';
  *io_at = end + 1;
  return true;
}

static bool take_order(const char **io_at, bool *out_fortran) {
  static const char YES[] = "True", NO[] = "False";
  *io_at += strspn(*io_at, " \t\r\n");
  *out_fortran = strncmp(*io_at, YES, strlen(YES)) == 0;
  if (!*out_fortran && strncmp(*io_at, NO, strlen(NO)) != 0) return false;
  *io_at += strlen(*out_fortran ? YES : NO);
  return true;
}

/* (), (2,), (2, 3); numpy on Python 2 wrote 2L. */
static bool take_shape(const char **io_at, header *out) {
  if (!take(io_at, '(')) return false;
  while (!take(io_at, ')')) {
    char *end;
    *io_at += strspn(*io_at, " ");
    if (**io_at < '0' || **io_at > '9' || out->n_dims == PSPLIT_I_MAX_RANK) return false;
    out->dims[out->n_dims++] = strtoll(*io_at, &end, 10);
    *io_at = end + (*end == 'L');
    if (!take(io_at, ',') && **io_at != ')') return false;
  }
  return true;
}

/* The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } */
static bool parse_header(const char *at, header *out) {
  enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };
  unsigned seen = 0;
  if (!take(&at, '{')) return false;
  while (!take(&at, '}')) {
    char key[16];
    if (!take_string(&at, key, sizeof key) || !take(&at, ':')) return false;
    const unsigned which = strcmp(key, "descr") == 0           ? DESCR
                           : strcmp(key, "fortran_order") == 0 ? ORDER
                           : strcmp(key, "shape") == 0         ? SHAPE
                                                               : 0;
    if (!which || (seen & which)) return false;
    seen |= which;
    if (which == DESCR   ? !take_string(&at, out->descr, sizeof out->descr)
        : which == ORDER ? !take_order(&at, &out->fortran)
                         : !take_shape(&at, out))
      return false;
    if (!take(&at, ',') && *at != '}') return false;
  }
  return seen == ALL && !at[strspn(at, " \t\r\n")];
}

/* Where the data behind the header begins, which may lie past n. */
static bool find_header(const unsigned char *data, size_t n, size_t *out) {
  if (n < FIRST_BYTES || memcmp(data, "\x93NUMPY", 6) != 0 || data[6] < 1 || data[6] > 3)
    return false;
  *out =
    data[6] == 1
      ? 10 + (data[8] | (size_t)data[9] << 8)
      : 12 + (data[8] | (size_t)data[9] << 8 | (size_t)data[10] << 16 | (size_t)data[11] << 24);
  return true;
}

/* The header, which ends at `end`. False: it is none, or *out_nomem. */
static bool read_header(const unsigned char *data, size_t end, header *out, bool *out_nomem) {
  const size_t begin = data[6] == 1 ? 10 : 12;
  char *text = malloc(end - begin + 1); /* strndup() is for strings, and nothing ends this one */
  memset(out, 0, sizeof *out);
  *out_nomem = !text;
  if (text) memcpy(text, data + begin, end - begin);
  if (text) text[end - begin] = 0;
  const bool good = text && parse_header(text, out);
  free(text);
  return good;
}

/* Bytes of the file of such a header; false: nobody can tell. */
static bool measure(const header *head, size_t at, uint64_t *out) {
  const char *kind = head->descr + (strchr("<|=>", head->descr[0]) != NULL);
  uint64_t bytes;
  if (!*kind || !psplit_i_parse_u64(kind + 1, &bytes)) return false;
  if (*kind == 'U' && !psplit_i_mul_u64(bytes, 4, &bytes)) return false;
  for (size_t d = 0; d < head->n_dims; d++)
    if (!psplit_i_mul_u64(bytes, (uint64_t)head->dims[d], &bytes)) return false;
  return psplit_i_add_u64(bytes, at, out);
}

psplit_code psplit_i_npy_measure(const char *path, const unsigned char *data, size_t n,
                                 psplit_diag *diag, uint64_t *out_needed) {
  size_t at;
  header head;
  bool nomem = false;
  *out_needed = FIRST_BYTES;
  if (n < FIRST_BYTES && (n < 6 || memcmp(data, "\x93NUMPY", 6) == 0)) return PSPLIT_OK;
  if (find_header(data, n, &at) && at <= MAX_HEADER) {
    *out_needed = at;
    if (at > n || (read_header(data, at, &head, &nomem) && measure(&head, at, out_needed)))
      return PSPLIT_OK;
  }
  return nomem ? psplit_i_nomem(diag)
               : malformed(diag, path, "the next bytes are not a .npy array");
}

static size_t put_utf8(uint32_t c, char *out) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3f)), 2;
  if (c < 0x10000) {
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
  }
  out[0] = (char)(0xf0 | (c >> 18 & 7));
  out[1] = (char)(0x80 | (c >> 12 & 0x3f));
  out[2] = (char)(0x80 | (c >> 6 & 0x3f));
  out[3] = (char)(0x80 | (c & 0x3f));
  return 4;
}

/* The data behind the header. */
typedef struct body {
  const unsigned char *data;
  size_t n;
  unsigned char *made; /* a copy in C order, little-endian; malloc'd */
} body;

void psplit_i_swap_bytes(unsigned char *data, size_t n, size_t unit) {
  for (size_t at = 0; at + unit <= n; at += unit)
    for (size_t i = 0; i < unit / 2; i++) {
      const unsigned char byte = data[at + i];
      data[at + i] = data[at + unit - 1 - i];
      data[at + unit - 1 - i] = byte;
    }
}

/* Element by element in C order, from where the first dimension is the fastest. */
static void from_fortran(const psplit_i_npy_layout *of, const body *from, unsigned char *out) {
  int64_t index[PSPLIT_I_MAX_RANK] = {0};
  size_t strides[PSPLIT_I_MAX_RANK], at = 0;
  strides[0] = of->width;
  for (size_t d = 1; d < of->n_dims; d++) strides[d] = strides[d - 1] * (size_t)of->dims[d - 1];
  for (size_t done = 0; done < from->n; done += of->width) {
    memcpy(out + done, from->data + at, of->width);
    for (size_t d = of->n_dims; d-- > 0;) {
      at += strides[d];
      if (++index[d] < of->dims[d]) break;
      at -= strides[d] * (size_t)of->dims[d];
      index[d] = 0;
    }
  }
}

/* Whether n bytes are what such an array has: before memory is taken for it. Strings of no width
 * have none, however many there are. */
static psplit_code check_size(const psplit_i_npy_layout *of, size_t n, const char *path,
                              psplit_diag *diag) {
  enum { MOST_EMPTY = 1 << 16 };
  uint64_t n_elements, n_bytes, all;
  if (!psplit_i_tensor_size(of->data_type, of->dims, of->n_dims, &n_elements, &n_bytes) ||
      !psplit_i_mul_u64(n_elements, of->width, &all) || all != n)
    return malformed(diag, path, "the file does not have the size of its shape");
  if (!of->width && n_elements > MOST_EMPTY)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%s: over %d strings without a character", path,
                         MOST_EMPTY);
  return PSPLIT_OK;
}

/* Brings the body to C order, little-endian. */
static psplit_code arrange(const psplit_i_npy_layout *of, psplit_diag *diag, body *io) {
  const bool fortran = of->fortran && of->n_dims > 1;
  if ((of->swapped == 1 && !fortran) || !io->n) return PSPLIT_OK;
  io->made = malloc(io->n);
  if (!io->made) return psplit_i_nomem(diag);
  if (fortran)
    from_fortran(of, io, io->made);
  else
    memcpy(io->made, io->data, io->n);
  if (of->swapped > 1) psplit_i_swap_bytes(io->made, io->n, of->swapped);
  io->data = io->made;
  return PSPLIT_OK;
}

/* Fixed-width strings, padded with zeros: bytes ('S') or UTF-32 ('U'). */
static psplit_code set_strings(const psplit_i_npy_layout *of, const body *from, psplit_diag *diag,
                               psplit_i_tensor *tensor) {
  const bool wide = of->wide;
  const size_t unit = wide ? 4 : 1, width = of->width / unit;
  char *text = malloc(width * 4 + 1);
  if (!text) return psplit_i_nomem(diag);
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; width && i < from->n / of->width && code == PSPLIT_OK; i++) {
    size_t n_text = 0, trimmed = 0;
    for (size_t c = 0; c < width; c++) {
      uint32_t point = from->data[(i * width + c) * unit];
      if (wide) memcpy(&point, from->data + (i * width + c) * unit, sizeof point);
      n_text += wide ? put_utf8(point, text + n_text) : (text[n_text] = (char)point, (size_t)1);
      if (point) trimmed = n_text;
    }
    code = psplit_i_tensor_set_string(tensor, i, text, trimmed, diag);
  }
  free(text);
  return code;
}

/* The type that is read of a file: that of the input, or with casts its own; 0: neither fits. */
static int32_t type_to_read(const char *kind, const psplit_i_array_wanted *wanted) {
  if (wanted->data_type == STRING) return *kind == 'U' || *kind == 'S' ? STRING : 0;
  for (size_t i = 0; i < N_DESCRS; i++)
    if (DESCRS[i].data_type == wanted->data_type && strcmp(DESCRS[i].descr, kind) == 0)
      return wanted->data_type;
  for (size_t i = 0; wanted->safe_casts && i < N_DESCRS; i++)
    if (DESCRS[i].written && strcmp(DESCRS[i].descr, kind) == 0 &&
        psplit_i_cast_is_safe(DESCRS[i].data_type, wanted->data_type))
      return DESCRS[i].data_type;
  return 0;
}

static psplit_code measure_elements(const header *head, const char *kind, const char *path,
                                    psplit_diag *diag, psplit_i_npy_layout *out) {
  uint64_t width = psplit_i_element_bits(out->data_type) / 8;
  const bool complex = out->data_type == 14 || out->data_type == 15;
  const bool strings = out->data_type == STRING;
  if (strings && (!psplit_i_parse_u64(kind + 1, &width) || width > SIZE_MAX / 8))
    return malformed(diag, path, "the width of its strings");
  out->wide = strings && *kind == 'U';
  if (out->wide) width *= 4;
  out->width = (size_t)width;
  out->swapped = strings ? out->wide ? 4 : 1 : out->width / (complex ? 2 : 1);
  if (head->descr[0] != '>') out->swapped = 1;
  return PSPLIT_OK;
}

psplit_code psplit_i_npy_find(const char *path, const unsigned char *data, size_t n,
                              psplit_diag *diag, size_t *out_at) {
  if (!find_header(data, n, out_at) || *out_at > MAX_HEADER)
    return psplit_i_array_foreign(path, "not an .npy file of version 1 to 3", data, n, diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_npy_look(const char *path, const unsigned char *data, size_t at,
                              const psplit_i_array_wanted *wanted, psplit_diag *diag,
                              psplit_i_npy_layout *out) {
  header head;
  bool nomem;
  if (!read_header(data, at, &head, &nomem))
    return nomem ? psplit_i_nomem(diag) : malformed(diag, path, "the header is not a .npy header");
  const char *kind = head.descr + (strchr("<|=>", head.descr[0]) != NULL);
  *out = (psplit_i_npy_layout){
    .data_type = type_to_read(kind, wanted), .fortran = head.fortran, .n_dims = head.n_dims};
  memcpy(out->dims, head.dims, sizeof out->dims);
  if (!out->data_type)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s holds %s, the input is %s", path, head.descr,
                         psplit_i_element_name(wanted->data_type));
  return measure_elements(&head, kind, path, diag, out);
}

psplit_code psplit_i_npy_parse(const psplit_i_ort *ort, const char *path, const unsigned char *data,
                               size_t n, const psplit_i_array_wanted *wanted, psplit_diag *diag,
                               psplit_i_tensor **out) {
  psplit_i_npy_layout of;
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  body from = {0};
  psplit_code code;
  size_t at = 0;
  PSPLIT_TRY(psplit_i_npy_find(path, data, n, diag, &at));
  if (at > n) PSPLIT_FAIL(malformed(diag, path, "the header is cut off"));
  PSPLIT_TRY(psplit_i_npy_look(path, data, at, wanted, diag, &of));
  from = (body){.data = data + at, .n = n - at};
  PSPLIT_TRY(check_size(&of, from.n, path, diag));
  PSPLIT_TRY(psplit_i_tensor_make(ort, of.data_type, of.dims, of.n_dims, diag, &tensor, &view));
  PSPLIT_TRY(arrange(&of, diag, &from));
  if (of.data_type == STRING)
    PSPLIT_TRY(set_strings(&of, &from, diag, tensor));
  else if (from.n)
    memcpy(view.data, from.data, from.n);
  if (of.data_type != wanted->data_type)
    PSPLIT_TRY(psplit_i_tensor_cast(ort, wanted->data_type, diag, &tensor));
out:
  free(from.made);
  if (code == PSPLIT_OK)
    *out = tensor;
  else
    psplit_i_tensor_release(tensor);
  return code;
}

static void put_header(psplit_i_text *out, const char *descr, const psplit_i_tensor_view *view) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (size_t i = 0; i < view->n_dims; i++)
    psplit_i_text_addf(&text, "%" PRId64 "%s", view->dims[i],
                       i + 1 < view->n_dims ? ", "
                       : view->n_dims == 1  ? ","
                                            : "");
  psplit_i_text_puts(&text, "), }");
  while (!text.failed && (10 + text.n + 1) % 64) psplit_i_text_puts(&text, " ");
  psplit_i_text_puts(&text, "\n");
  const char n[2] = {(char)(text.n & 0xff), (char)(text.n >> 8)};
  psplit_i_text_add(out, "\x93NUMPY\1\0", 8);
  psplit_i_text_add(out, n, sizeof n);
  psplit_i_text_add(out, text.bytes, text.n);
  out->failed |= text.failed;
  psplit_i_text_fini(&text);
}

/* Strings as UTF-32 of one width; as bytes where one is not UTF-8. */
static psplit_code format_strings(const psplit_i_tensor *tensor, const psplit_i_tensor_view *view,
                                  psplit_diag *diag, psplit_i_text *out) {
  unsigned char *packed = malloc((size_t)view->n_bytes + 1);
  if (!packed) return psplit_i_nomem(diag);
  psplit_code code = psplit_i_tensor_pack(tensor, view, diag, packed);
  size_t width_bytes = 1, width_points = 1;
  bool utf8 = true;
  for (int writing = 0; writing < 2 && code == PSPLIT_OK; writing++) {
    if (writing) {
      char descr[32];
      snprintf(descr, sizeof descr, utf8 ? "<U%zu" : "|S%zu", utf8 ? width_points : width_bytes);
      put_header(out, descr, view);
    }
    const unsigned char *text = packed + view->n_elements * sizeof(uint64_t);
    for (uint64_t i = 0; i < view->n_elements; i++) {
      uint64_t length;
      memcpy(&length, packed + i * sizeof length, sizeof length);
      size_t n_points = 0;
      for (uint64_t at = 0; utf8 && at < length; n_points++) {
        const size_t n = psplit_i_utf8_length(text + at, (size_t)(length - at));
        if (n == 0) {
          utf8 = false;
          break;
        }
        uint32_t point = n == 1 ? text[at] : text[at] & (0x7fU >> n);
        for (size_t b = 1; b < n; b++) point = point << 6 | (text[at + b] & 0x3f);
        if (writing) psplit_i_text_add(out, &point, sizeof point);
        at += n;
      }
      if (n_points > width_points) width_points = n_points;
      if (length > width_bytes) width_bytes = (size_t)length;
      if (writing && !utf8) psplit_i_text_add(out, text, (size_t)length);
      const size_t pad = !writing ? 0 : utf8 ? 4 * (width_points - n_points) : width_bytes - length;
      for (size_t z = 0; z < pad; z++) psplit_i_text_add(out, "", 1);
      text += length;
    }
  }
  free(packed);
  return code;
}

psplit_code psplit_i_npy_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                                psplit_i_text *out) {
  psplit_i_tensor_view view;
  psplit_code code = psplit_i_tensor_look(tensor, diag, &view);
  if (code != PSPLIT_OK) return code;
  if (view.data_type == STRING) return format_strings(tensor, &view, diag, out);
  for (size_t i = 0; i < N_DESCRS; i++) {
    if (DESCRS[i].data_type != view.data_type || !DESCRS[i].written) continue;
    char descr[8];
    snprintf(descr, sizeof descr, "%c%s", psplit_i_element_bits(view.data_type) > 8 ? '<' : '|',
             DESCRS[i].descr);
    put_header(out, descr, &view);
    psplit_i_text_add(out, view.data, (size_t)view.n_bytes);
    return PSPLIT_OK;
  }
  return PSPLIT_UNSUPPORTED;
}
