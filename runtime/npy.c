/* numpy's file formats. Source: NEP 1 and numpy.lib.format, versions 1 to 3; APPNOTE.TXT of ZIP for
 * .npz, stored members only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"

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
  FIRST_BYTES = 12,
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

static const char *after(const char *text, const char *key) {
  const char *at = strstr(text, key);
  if (!at) return NULL;
  at += strlen(key);
  return at + strspn(at, " :");
}

/* The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } */
static bool parse_header(const char *text, header *out) {
  const char *descr = after(text, "'descr'"), *order = after(text, "'fortran_order'"),
             *shape = after(text, "'shape'");
  if (!descr || !order || !shape || *descr != '\'' || *shape != '(') return false;
  const size_t n = strcspn(++descr, "'");
  if (n == 0 || n >= sizeof out->descr) return false;
  memcpy(out->descr, descr, n);
  out->descr[n] = '\0';
  out->fortran = strncmp(order, "True", 4) == 0;
  for (shape++; *shape && *shape != ')';) {
    char *end;
    if (*shape == ' ' || *shape == ',') {
      shape++;
      continue;
    }
    if (*shape < '0' || *shape > '9' || out->n_dims == PSPLIT_I_MAX_RANK) return false;
    out->dims[out->n_dims++] = strtoll(shape, &end, 10);
    shape = end + (*end == 'L');
  }
  return *shape == ')';
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

/* The header, which ends at `end`. */
static bool read_header(const unsigned char *data, size_t end, header *out) {
  const size_t begin = data[6] == 1 ? 10 : 12;
  char *text = strndup((const char *)data + begin, end - begin);
  memset(out, 0, sizeof *out);
  const bool good = text && parse_header(text, out);
  free(text);
  return good;
}

bool psplit_i_npy_measure(const unsigned char *data, size_t n, uint64_t *out_needed) {
  size_t at;
  header head;
  *out_needed = FIRST_BYTES;
  if (n < FIRST_BYTES) return n < 6 || memcmp(data, "\x93NUMPY", 6) == 0;
  if (!find_header(data, n, &at) || at > MAX_HEADER) return false;
  *out_needed = at;
  if (at > n) return true;
  if (!read_header(data, at, &head)) return false;
  const char *kind = head.descr + (strchr("<|=>", head.descr[0]) != NULL);
  uint64_t bytes;
  if (!*kind || !psplit_i_parse_u64(kind + 1, &bytes)) return false;
  if (*kind == 'U' && !psplit_i_mul_u64(bytes, 4, &bytes)) return false;
  for (size_t d = 0; d < head.n_dims; d++)
    if (!psplit_i_mul_u64(bytes, (uint64_t)head.dims[d], &bytes)) return false;
  return psplit_i_add_u64(bytes, at, out_needed);
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

/* Fixed-width strings, padded with zeros: bytes ('S') or UTF-32 ('U'). */
static psplit_code parse_strings(const char *path, const unsigned char *data, size_t n,
                                 size_t width, bool wide, uint64_t n_elements, psplit_diag *diag,
                                 psplit_i_tensor *tensor) {
  const size_t unit = wide ? 4 : 1;
  uint64_t all;
  if (!psplit_i_mul_u64(n_elements, width * unit, &all) || all != n)
    return malformed(diag, path, "the file does not have the size of its shape");
  char *text = malloc(width * 4 + 1);
  if (!text) return psplit_i_nomem(diag);
  psplit_code code = PSPLIT_OK;
  for (uint64_t i = 0; i < n_elements && code == PSPLIT_OK; i++) {
    size_t n_text = 0, trimmed = 0;
    for (size_t c = 0; c < width; c++) {
      uint32_t point = data[(i * width + c) * unit];
      if (wide) memcpy(&point, data + (i * width + c) * unit, sizeof point);
      n_text += wide ? put_utf8(point, text + n_text) : (text[n_text] = (char)point, (size_t)1);
      if (point) trimmed = n_text;
    }
    code = psplit_i_tensor_set_string(tensor, (size_t)i, text, trimmed, diag);
  }
  free(text);
  return code;
}

psplit_code psplit_i_npy_parse(const psplit_i_ort *ort, const char *path, const unsigned char *data,
                               size_t n, const psplit_i_array_wanted *wanted, psplit_diag *diag,
                               psplit_i_tensor **out) {
  header head;
  size_t at;
  if (!find_header(data, n, &at))
    return malformed(diag, path, "not an .npy file of version 1 to 3");
  if (at > n) return malformed(diag, path, "the header is cut off");
  if (!read_header(data, at, &head)) return malformed(diag, path, "the header is no .npy header");
  if (head.fortran)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s is in Fortran order; save numpy.ascontiguousarray of it", path);
  if (head.descr[0] == '>')
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s is big-endian", path);
  const char *kind = head.descr + (strchr("<|=", head.descr[0]) != NULL);
  bool fits = wanted->data_type == STRING && (*kind == 'U' || *kind == 'S');
  for (size_t i = 0; i < N_DESCRS; i++)
    fits |= DESCRS[i].data_type == wanted->data_type && strcmp(DESCRS[i].descr, kind) == 0;
  if (!fits)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s holds %s, the input is %s", path, head.descr,
                         psplit_i_element_name(wanted->data_type));
  psplit_i_tensor *tensor;
  psplit_i_tensor_view view;
  psplit_code code =
    psplit_i_tensor_create(ort, wanted->data_type, head.dims, head.n_dims, diag, &tensor);
  if (code != PSPLIT_OK) return code;
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
  const unsigned char *body = data + at;
  const size_t n_body = n - at;
  if (wanted->data_type == STRING) {
    uint64_t width;
    if (!psplit_i_parse_u64(kind + 1, &width) || width > SIZE_MAX / 8)
      code = malformed(diag, path, "the width of its strings");
    else
      code = parse_strings(path, body, n_body, (size_t)width, *kind == 'U', view.n_elements, diag,
                           tensor);
  } else if (n_body != view.n_bytes) {
    code = malformed(diag, path, "the file does not have the size of its shape");
  } else if (n_body) {
    memcpy(view.data, body, n_body);
  }
out:
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

static uint64_t little(const unsigned char *at, size_t n) {
  uint64_t value = 0;
  for (size_t i = 0; i < n; i++) value |= (uint64_t)at[i] << 8 * i;
  return value;
}

/* An entry of the central directory; sizes of 0xffffffff stand in the extra field of ZIP64. */
typedef struct entry {
  uint64_t method, n_packed, n_bytes, offset;
} entry;

static void read_zip64(const unsigned char *extra, size_t n_extra, entry *e) {
  for (size_t at = 0; at + 4 <= n_extra;) {
    const uint64_t id = little(extra + at, 2), n = little(extra + at + 2, 2);
    size_t field = at + 4;
    if (n > n_extra - field) return;
    const size_t end = field + (size_t)n;
    uint64_t *const wide[] = {&e->n_bytes, &e->n_packed, &e->offset};
    for (size_t w = 0; id == 1 && w < 3; w++) {
      if (*wide[w] != 0xffffffff || end - field < 8) continue;
      *wide[w] = little(extra + field, 8);
      field += 8;
    }
    at = end;
  }
}

psplit_code psplit_i_npz_find(const char *path, const unsigned char *data, size_t n,
                              const char *member, psplit_diag *diag, const unsigned char **out_data,
                              size_t *out_n) {
  enum { END_BYTES = 22, ENTRY_BYTES = 46, LOCAL_BYTES = 30, MAX_COMMENT = 65535 };
  *out_data = NULL;
  size_t end = n;
  for (size_t back = END_BYTES; back <= n && back <= END_BYTES + MAX_COMMENT; back++) {
    if (memcmp(data + n - back, "PK\5\6", 4) != 0) continue;
    end = n - back;
    break;
  }
  if (end == n) return malformed(diag, path, "not a ZIP archive");
  uint64_t at = little(data + end + 16, 4);
  if (at == 0xffffffff)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s: archives over 4 GiB; use .npy", path);
  while (at <= end && end - at >= ENTRY_BYTES && memcmp(data + at, "PK\1\2", 4) == 0) {
    const unsigned char *head = data + at;
    entry e = {little(head + 10, 2), little(head + 20, 4), little(head + 24, 4),
               little(head + 42, 4)};
    const size_t n_name = (size_t)little(head + 28, 2), n_extra = (size_t)little(head + 30, 2),
                 n_comment = (size_t)little(head + 32, 2);
    if (n_name + n_extra + n_comment > end - at - ENTRY_BYTES) break;
    read_zip64(head + ENTRY_BYTES + n_name, n_extra, &e);
    at += ENTRY_BYTES + n_name + n_extra + n_comment;
    const char *name = (const char *)head + ENTRY_BYTES;
    const size_t n_member = strlen(member);
    if (n_name != n_member + 4 || memcmp(name, member, n_member) != 0 ||
        memcmp(name + n_member, ".npy", 4) != 0)
      continue;
    if (e.method != 0)
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "%s is compressed; write it with numpy.savez, or as .npy", path);
    if (e.offset > n || n - e.offset < LOCAL_BYTES || memcmp(data + e.offset, "PK\3\4", 4) != 0)
      return malformed(diag, path, "the archive is damaged");
    const unsigned char *local = data + e.offset;
    const uint64_t skip = LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
    if (skip > n - e.offset || e.n_bytes > n - e.offset - skip || e.n_packed != e.n_bytes)
      return malformed(diag, path, "the archive is damaged");
    *out_data = local + skip;
    *out_n = (size_t)e.n_bytes;
    return PSPLIT_OK;
  }
  return PSPLIT_OK;
}
