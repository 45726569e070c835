/* Files of arrays as numpy writes them, and archives as it does not; for cmocka. */
#ifndef PSPLIT_TESTS_MADE_FILES_H
#define PSPLIT_TESTS_MADE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct made_bytes {
  unsigned char *at; /* malloc'd */
  size_t n;
} made_bytes;

void add_bytes(made_bytes *to, const void *from, size_t n);
void add_number(made_bytes *to, uint64_t value, size_t width);
/* An .npy of version 1 to 3 with `data`; with any header. */
made_bytes make_npy(int version, const char *descr, const char *order, const char *shape,
                    const void *data, size_t n);
made_bytes make_headed(unsigned version, const char *header, const void *data, size_t n);
void put_file(const char *path, const void *data, size_t n);
void put_npy(const char *path, const char *descr, const char *order, const char *shape,
             const void *data, size_t n);
/* An archive with one array, at `offset` of the file; past 4 GiB it takes ZIP64. */
void put_npz(const char *path, const char *name, const made_bytes *array, bool deflate,
             uint64_t offset);
extern bool listed_twice; /* arrays of archives that are made */

#endif
