/* numpy's .npz. Source: APPNOTE.TXT of ZIP; members that are stored, or deflated (RFC 1951). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#ifndef PSPLIT_HAS_ZLIB
#define PSPLIT_HAS_ZLIB 0
#endif
#if PSPLIT_HAS_ZLIB
#include <zlib.h>
#endif

#include "arrays.h"

static psplit_code damaged(psplit_diag *diag, const char *path) {
  return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: the archive is damaged", path);
}

static uint64_t little(const unsigned char *at, size_t n) {
  uint64_t value = 0;
  for (size_t i = 0; i < n; i++) value |= (uint64_t)at[i] << 8 * i;
  return value;
}

/* An entry of the central directory; sizes of 0xffffffff stand in the extra field of ZIP64. */
typedef struct entry {
  uint64_t flags, method, crc, n_packed, n_bytes, offset;
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

static bool is_member(const char *name, size_t n_name, const char *member) {
  const size_t n = strlen(member);
  return n_name == n + 4 && memcmp(name, member, n) == 0 && memcmp(name + n, ".npy", 4) == 0;
}

/* Where the data of an entry stands. */
static psplit_code locate(const char *path, const unsigned char *data, size_t n, const entry *e,
                          psplit_diag *diag, psplit_i_npz_member *out) {
  enum { LOCAL_BYTES = 30, STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };
  /* No stream of zlib is smaller than its data by more. */
  static const uint64_t MOST_RATIO = 1032, SLACK = 64;
  if ((e->flags & ENCRYPTED) || (e->method != STORED && e->method != DEFLATED))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s is encrypted, or not compressed as numpy does it", path);
  if (e->offset > n || n - e->offset < LOCAL_BYTES || memcmp(data + e->offset, "PK\3\4", 4) != 0)
    return damaged(diag, path);
  const unsigned char *local = data + e->offset;
  const uint64_t skip = LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
  if (skip > n - e->offset || e->n_packed > n - e->offset - skip ||
      (e->method == STORED ? e->n_packed != e->n_bytes
                           : e->n_bytes > SLACK + MOST_RATIO * e->n_packed))
    return damaged(diag, path);
  *out = (psplit_i_npz_member){.data = local + skip,
                               .n_packed = (size_t)e->n_packed,
                               .n_bytes = (size_t)e->n_bytes,
                               .crc = (uint32_t)e->crc,
                               .deflated = e->method == DEFLATED};
  return PSPLIT_OK;
}

psplit_code psplit_i_npz_find(const char *path, const unsigned char *data, size_t n,
                              const char *member, psplit_diag *diag, psplit_i_npz_member *out) {
  enum { END_BYTES = 22, ENTRY_BYTES = 46, MAX_COMMENT = 65535 };
  *out = (psplit_i_npz_member){0};
  size_t end = n;
  for (size_t back = END_BYTES; back <= n && back <= END_BYTES + MAX_COMMENT; back++) {
    if (memcmp(data + n - back, "PK\5\6", 4) != 0) continue;
    end = n - back;
    break;
  }
  if (end == n) return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: not a ZIP archive", path);
  uint64_t at = little(data + end + 16, 4);
  if (at == 0xffffffff)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s: archives over 4 GiB; use .npy", path);
  while (at <= end && end - at >= ENTRY_BYTES && memcmp(data + at, "PK\1\2", 4) == 0) {
    const unsigned char *head = data + at;
    entry e = {little(head + 8, 2),  little(head + 10, 2), little(head + 16, 4),
               little(head + 20, 4), little(head + 24, 4), little(head + 42, 4)};
    const size_t n_name = (size_t)little(head + 28, 2), n_extra = (size_t)little(head + 30, 2),
                 n_comment = (size_t)little(head + 32, 2);
    if (n_name + n_extra + n_comment > end - at - ENTRY_BYTES) break;
    read_zip64(head + ENTRY_BYTES + n_name, n_extra, &e);
    at += ENTRY_BYTES + n_name + n_extra + n_comment;
    if (is_member((const char *)head + ENTRY_BYTES, n_name, member))
      return locate(path, data, n, &e, diag, out);
  }
  return PSPLIT_OK;
}

#if PSPLIT_HAS_ZLIB
static psplit_code inflate_into(const char *path, const psplit_i_npz_member *from,
                                psplit_diag *diag, unsigned char *out) {
  enum { RAW = -15 };
  z_stream stream = {0};
  size_t in = 0, made = 0;
  int status = inflateInit2(&stream, RAW);
  if (status != Z_OK) return psplit_i_nomem(diag);
  while (status == Z_OK) { /* zlib counts in unsigned int */
    const size_t in_left = from->n_packed - in, out_left = from->n_bytes - made;
    stream.next_in = (unsigned char *)(uintptr_t)from->data + in;
    stream.avail_in = in_left < UINT_MAX ? (unsigned)in_left : UINT_MAX;
    stream.next_out = out + made;
    stream.avail_out = out_left < UINT_MAX ? (unsigned)out_left : UINT_MAX;
    const unsigned in_before = stream.avail_in, out_before = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    in += in_before - stream.avail_in;
    made += out_before - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status == Z_MEM_ERROR) return psplit_i_nomem(diag);
  return status == Z_STREAM_END && made == from->n_bytes ? PSPLIT_OK : damaged(diag, path);
}

static bool has_crc(const unsigned char *data, size_t n, uint32_t crc) {
  return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, n) == crc;
}
#else
static psplit_code inflate_into(const char *path, const psplit_i_npz_member *from,
                                psplit_diag *diag, unsigned char *out) {
  (void)from;
  (void)out;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "%s is compressed, and this was built without zlib; write it with "
                       "numpy.savez, or as .npy",
                       path);
}

static bool has_crc(const unsigned char *data, size_t n, uint32_t crc) {
  (void)data;
  (void)n;
  (void)crc;
  return true;
}
#endif

psplit_code psplit_i_npz_unpack(const char *path, const psplit_i_npz_member *member,
                                psplit_diag *diag, unsigned char **out_made,
                                const unsigned char **out_data) {
  psplit_code code = PSPLIT_OK;
  unsigned char *made = NULL;
  if (member->deflated) {
    made = malloc(member->n_bytes + 1);
    code = made ? inflate_into(path, member, diag, made) : psplit_i_nomem(diag);
  }
  const unsigned char *data = made ? made : member->data;
  if (code == PSPLIT_OK && !has_crc(data, member->n_bytes, member->crc)) code = damaged(diag, path);
  *out_data = data;
  *out_made = made;
  return code;
}
