/* The option device_id of execution providers. */
#ifndef PSPLIT_BASE_DEVICE_ID_H
#define PSPLIT_BASE_DEVICE_ID_H

#include <psplit/base.h>
#include <stddef.h>

/* Reads it from n options of a provider as ONNX Runtime does: the last of equal keys counts, and
 * the default is 0. Errors: USAGE if it is not a device number. */
PSPLIT_MUST_USE psplit_code psplit_i_device_id(const char *const *keys, const char *const *values,
                                               size_t n, psplit_diag *diag, int *out);

#endif
