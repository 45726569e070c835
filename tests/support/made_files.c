#include "made_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void add_bytes(made_bytes *to, const void *from, size_t n) {
  to->at = realloc(to->at, to->n + n + 1);
  assert_non_null(to->at);
  if (n) memcpy(to->at + to->n, from, n);
  to->n += n;
}

void add_number(made_bytes *to, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; i++) {
    const unsigned char byte = i < sizeof value ? (unsigned char)(value >> 8 * i) : 0;
    add_bytes(to, &byte, 1);
  }
}

made_bytes make_headed(unsigned version, const char *header, const void *data, size_t n) {
  made_bytes out = {0};
  const unsigned char head[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
  add_bytes(&out, head, sizeof head);
  add_number(&out, strlen(header), version == 1 ? 2 : 4);
  add_bytes(&out, header, strlen(header));
  add_bytes(&out, data, n);
  return out;
}

made_bytes make_npy(int version, const char *descr, const char *order, const char *shape,
                    const void *data, size_t n) {
  char text[200];
  snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order,
           shape);
  return make_headed((unsigned)version, text, data, n);
}

void put_file(const char *path, const void *data, size_t n) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, data, n), (ssize_t)n);
  close(fd);
}

void put_npy(const char *path, const char *descr, const char *order, const char *shape,
             const void *data, size_t n) {
  made_bytes file = make_npy(1, descr, order, shape, data, n);
  put_file(path, file.at, file.n);
  free(file.at);
}

static uint32_t crc_of(const unsigned char *data, size_t n) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < n; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/* RFC 1951, as blocks that are stored. */
static made_bytes deflated(const made_bytes *from) {
  made_bytes out = {0};
  for (size_t at = 0; at < from->n || at == 0; at += 0xffff) {
    const size_t n = from->n - at < 0xffff ? from->n - at : 0xffff;
    add_number(&out, at + n == from->n, 1);
    add_number(&out, n, 2);
    add_number(&out, ~n, 2);
    add_bytes(&out, from->at + at, n);
  }
  return out;
}

bool listed_twice;

void put_npz(const char *path, const char *name, const made_bytes *array, bool deflate,
             uint64_t offset) {
  made_bytes packed = {0}, local = {0}, end = {0};
  const bool wide = offset > 0xffffffff;
  const uint64_t method = deflate ? 8 : 0, crc = crc_of(array->at, array->n);
  if (deflate)
    packed = deflated(array);
  else
    add_bytes(&packed, array->at, array->n);
  char file[64];
  snprintf(file, sizeof file, "%s.npy", name);
  add_bytes(&local, "PK\3\4\24\0\0\0", 8);
  add_number(&local, method, 2), add_number(&local, 0, 4), add_number(&local, crc, 4);
  add_number(&local, packed.n, 4), add_number(&local, array->n, 4);
  add_number(&local, strlen(file), 2), add_number(&local, 5, 2);
  add_bytes(&local, file, strlen(file)), add_bytes(&local, "extra", 5);
  add_bytes(&local, packed.at, packed.n);
  const uint64_t list = offset + local.n;
  add_bytes(&end, "PK\1\2\24\0\24\0\0\0", 10);
  add_number(&end, method, 2), add_number(&end, 0, 4), add_number(&end, crc, 4);
  add_number(&end, packed.n, 4), add_number(&end, array->n, 4);
  add_number(&end, strlen(file), 2), add_number(&end, wide ? 12 : 0, 2);
  add_number(&end, 0, 10), add_number(&end, wide ? 0xffffffff : offset, 4);
  add_bytes(&end, file, strlen(file));
  if (wide) add_number(&end, 1, 2), add_number(&end, 8, 2), add_number(&end, offset, 8);
  if (listed_twice) {
    const made_bytes once = end;
    end = (made_bytes){0};
    add_bytes(&end, once.at, once.n), add_bytes(&end, once.at, once.n);
    free(once.at);
  }
  const uint64_t n_list = end.n;
  if (wide) {
    add_bytes(&end, "PK\6\6", 4), add_number(&end, 44, 8), add_number(&end, 0, 12);
    add_number(&end, 1, 8), add_number(&end, 1, 8);
    add_number(&end, n_list, 8), add_number(&end, list, 8);
    add_bytes(&end, "PK\6\7", 4), add_number(&end, 0, 4);
    add_number(&end, list + n_list, 8), add_number(&end, 1, 4);
  }
  add_bytes(&end, "PK\5\6", 4), add_number(&end, 0, 4), add_number(&end, 1, 2),
    add_number(&end, 1, 2);
  add_number(&end, wide ? 0xffffffff : n_list, 4), add_number(&end, wide ? 0xffffffff : list, 4);
  add_number(&end, 0, 2);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, local.at, local.n, (off_t)offset), (ssize_t)local.n);
  assert_int_equal(pwrite(fd, end.at, end.n, (off_t)list), (ssize_t)end.n);
  close(fd);
  free(packed.at), free(local.at), free(end.at);
}
