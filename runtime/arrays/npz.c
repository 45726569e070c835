/* numpy's .npz. Source: APPNOTE.TXT of ZIP; members that are stored, or deflated (RFC 1951). */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
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

/* Where the data of an entry stands: behind a header of its own, whose fields differ in length from
 * the directory's. */
static psplit_code locate(const char *path, int fd, uint64_t n_file, const entry *e,
                          psplit_diag *diag, psplit_i_npz_member *out) {
  enum { LOCAL_BYTES = 30, STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };
  /* No stream of zlib is smaller than its data by more. */
  static const uint64_t MOST_RATIO = 1032, SLACK = 64;
  unsigned char local[LOCAL_BYTES];
  if ((e->flags & ENCRYPTED) || (e->method != STORED && e->method != DEFLATED))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s is encrypted, or not compressed as numpy does it", path);
  if (e->offset > n_file || n_file - e->offset < LOCAL_BYTES) return damaged(diag, path);
  const psplit_code code = psplit_i_in_read_at(path, fd, e->offset, local, LOCAL_BYTES, diag);
  if (code != PSPLIT_OK) return code;
  const uint64_t left = n_file - e->offset,
                 skip = LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
  if (memcmp(local, "PK\3\4", 4) != 0 || skip > left || e->n_packed > left - skip ||
      (e->method == STORED ? e->n_packed != e->n_bytes
                           : e->n_bytes > SLACK && (e->n_bytes - SLACK) / MOST_RATIO > e->n_packed))
    return damaged(diag, path);
  *out = (psplit_i_npz_member){.found = true,
                               .deflated = e->method == DEFLATED,
                               .offset = e->offset + skip,
                               .n_packed = e->n_packed,
                               .n_bytes = e->n_bytes,
                               .crc = (uint32_t)e->crc};
  return PSPLIT_OK;
}

/* The list of entries, which stands near the end of the file. */
typedef struct directory {
  uint64_t offset, n_bytes;
} directory;

/* What the end of the archive says of it; ZIP64 has a record before that one for what is large. */
static psplit_code find_directory(const char *path, int fd, uint64_t n_file, psplit_diag *diag,
                                  directory *out) {
  enum {
    END_BYTES = 22,
    MAX_COMMENT = 65535,
    LOCATOR_BYTES = 20,
    RECORD_BYTES = 56,
    HEAD_BYTES = 512
  };
  const size_t n = n_file < END_BYTES + MAX_COMMENT ? (size_t)n_file : END_BYTES + MAX_COMMENT;
  unsigned char *tail = malloc(n + 1), wide[RECORD_BYTES], head[HEAD_BYTES];
  if (!tail) return psplit_i_nomem(diag);
  psplit_code code;
  PSPLIT_TRY(psplit_i_in_read_at(path, fd, n_file - n, tail, n, diag));
  size_t back = END_BYTES;
  while (back <= n && memcmp(tail + n - back, "PK\5\6", 4) != 0) back++;
  if (back > n) {
    const size_t n_head = n_file < HEAD_BYTES ? (size_t)n_file : HEAD_BYTES;
    PSPLIT_TRY(psplit_i_in_read_at(path, fd, 0, head, n_head, diag));
    PSPLIT_TRY(psplit_i_array_foreign(path, "not a ZIP archive", head, n_head, diag));
  }
  const unsigned char *end = tail + n - back;
  *out = (directory){.offset = little(end + 16, 4), .n_bytes = little(end + 12, 4)};
  const uint64_t end_at = n_file - back;
  const bool is_wide = back + LOCATOR_BYTES <= n && memcmp(end - LOCATOR_BYTES, "PK\6\7", 4) == 0;
  if (is_wide) {
    const uint64_t at = little(end - LOCATOR_BYTES + 8, 8);
    if (at > end_at || end_at - at < RECORD_BYTES) PSPLIT_FAIL(damaged(diag, path));
    PSPLIT_TRY(psplit_i_in_read_at(path, fd, at, wide, sizeof wide, diag));
    if (memcmp(wide, "PK\6\6", 4) != 0) PSPLIT_FAIL(damaged(diag, path));
    *out = (directory){.offset = little(wide + 48, 8), .n_bytes = little(wide + 40, 8)};
  }
  if (out->offset > end_at || out->n_bytes > end_at - out->offset) code = damaged(diag, path);
out:
  free(tail);
  return code;
}

/* The entry of `member` in data[n], the first one; how many there are. *out_damaged: the list is no
 * list of entries to its end. */
static uint32_t find_entry(const unsigned char *data, size_t n, const char *member, entry *out,
                           bool *out_damaged) {
  enum { ENTRY_BYTES = 46 };
  size_t at = 0;
  uint32_t n_found = 0;
  *out_damaged = true;
  while (n - at >= ENTRY_BYTES && memcmp(data + at, "PK\1\2", 4) == 0) {
    const unsigned char *head = data + at;
    const size_t n_name = (size_t)little(head + 28, 2), n_extra = (size_t)little(head + 30, 2),
                 n_comment = (size_t)little(head + 32, 2);
    if (n_name + n_extra + n_comment > n - at - ENTRY_BYTES) return n_found;
    if (is_member((const char *)head + ENTRY_BYTES, n_name, member) && n_found++ == 0) {
      *out = (entry){little(head + 8, 2),  little(head + 10, 2), little(head + 16, 4),
                     little(head + 20, 4), little(head + 24, 4), little(head + 42, 4)};
      read_zip64(head + ENTRY_BYTES + n_name, n_extra, out);
    }
    at += ENTRY_BYTES + n_name + n_extra + n_comment;
  }
  *out_damaged = at != n;
  return n_found;
}

psplit_code psplit_i_npz_find(const char *path, int fd, uint64_t n_file, const char *member,
                              psplit_diag *diag, psplit_i_npz_member *out) {
  static const uint64_t MOST_BYTES = UINT64_C(64) << 20;
  unsigned char *data = NULL;
  directory where = {0};
  entry e = {0};
  bool is_damaged;
  psplit_code code;
  *out = (psplit_i_npz_member){0};
  PSPLIT_TRY(find_directory(path, fd, n_file, diag, &where));
  if (where.n_bytes > MOST_BYTES)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_LIMIT, "%s: its list of arrays is over 64 MiB", path));
  data = malloc((size_t)where.n_bytes + 1);
  if (!data) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_in_read_at(path, fd, where.offset, data, (size_t)where.n_bytes, diag));
  const uint32_t n_found = find_entry(data, (size_t)where.n_bytes, member, &e, &is_damaged);
  if (is_damaged)
    code = damaged(diag, path);
  else if (n_found > 1) /* readers differ in which one they take */
    code =
      psplit_i_fail(diag, PSPLIT_MALFORMED, "%s has %" PRIu32 " arrays %s", path, n_found, member);
  else if (n_found)
    code = locate(path, fd, n_file, &e, diag, out);
out:
  free(data);
  return code;
}

#if PSPLIT_HAS_ZLIB
static psplit_code inflate_into(const char *path, int fd, const psplit_i_npz_member *from,
                                psplit_diag *diag, unsigned char *out) {
  enum { RAW = -15, WINDOW = 1 << 16 };
  z_stream stream = {0};
  uint64_t in = 0, made = 0;
  unsigned char *packed = malloc(WINDOW);
  int status = packed ? inflateInit2(&stream, RAW) : Z_MEM_ERROR;
  const bool begun = status == Z_OK;
  psplit_code code = PSPLIT_OK;
  while (status == Z_OK) { /* zlib counts in unsigned int */
    const uint64_t in_left = from->n_packed - in, out_left = from->n_bytes - made;
    if (!stream.avail_in && in_left) {
      stream.next_in = packed;
      stream.avail_in = in_left < WINDOW ? (unsigned)in_left : WINDOW;
      PSPLIT_TRY(psplit_i_in_read_at(path, fd, from->offset + in, packed, stream.avail_in, diag));
      in += stream.avail_in;
    }
    stream.next_out = out + made;
    const unsigned room = out_left < UINT_MAX ? (unsigned)out_left : UINT_MAX;
    stream.avail_out = room;
    status = inflate(&stream, Z_NO_FLUSH);
    made += room - stream.avail_out;
  }
  if (status == Z_MEM_ERROR)
    code = psplit_i_nomem(diag);
  else if (status != Z_STREAM_END || made != from->n_bytes)
    code = damaged(diag, path);
out:
  if (begun) inflateEnd(&stream);
  free(packed);
  return code;
}

static bool has_crc(const unsigned char *data, size_t n, uint32_t crc) {
  return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, n) == crc;
}
#else
static psplit_code inflate_into(const char *path, int fd, const psplit_i_npz_member *from,
                                psplit_diag *diag, unsigned char *out) {
  (void)fd;
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

psplit_code psplit_i_npz_unpack(const char *path, int fd, const psplit_i_npz_member *member,
                                uint64_t most_bytes, psplit_diag *diag, unsigned char **out) {
  psplit_code code = PSPLIT_OK;
  if (member->n_bytes > most_bytes)
    return psplit_i_fail_about(diag, PSPLIT_LIMIT, PSPLIT_I_HELPS(MAX_UNPACKED),
                               "%s: an array of %" PRIu64 " bytes is packed into %" PRIu64
                               ", more than %" PRIu64 " are not unpacked",
                               path, member->n_bytes, member->n_packed, most_bytes);
  if (member->n_bytes >= SIZE_MAX) return psplit_i_nomem(diag);
  unsigned char *data = malloc((size_t)member->n_bytes + 1);
  if (!data) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(member->deflated ? inflate_into(path, fd, member, diag, data)
                              : psplit_i_in_read_at(path, fd, member->offset, data,
                                                    (size_t)member->n_packed, diag));
  if (!has_crc(data, (size_t)member->n_bytes, member->crc)) code = damaged(diag, path);
out:
  if (code == PSPLIT_OK)
    *out = data;
  else
    free(data);
  return code;
}
