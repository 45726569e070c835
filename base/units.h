/* Human-readable bytes and times: three significant digits and a unit. */
#ifndef PSPLIT_BASE_UNITS_H
#define PSPLIT_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum { PSPLIT_I_UNIT_BYTES = 32 }; /* of `out`, which is returned */
/* "1010 KiB" */
const char *psplit_i_in_bytes(uint64_t bytes, char *out);
/* "9.52 ms" */
const char *psplit_i_in_seconds(int64_t ns, char *out);

#endif
