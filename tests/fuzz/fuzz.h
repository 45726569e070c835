/* What the fuzz targets share. */
#ifndef PSPLIT_TESTS_FUZZ_H
#define PSPLIT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The target: libFuzzer calls it, and so does replay.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* An unnamed file in memory that holds `data`, always with the same descriptor: so that an input
 * can name it, and hold itself as its external data. The caller closes it. */
enum { FUZZ_FD = 100 };
int fuzz_file(const uint8_t *data, size_t n);

#endif
