/* The option device_id of execution providers: which of their devices a session is for. */
#ifndef PSPLIT_BASE_DEVICE_ID_H
#define PSPLIT_BASE_DEVICE_ID_H

#include <psplit/base.h>
#include <stddef.h>

/* Reads it from a provider's options, n of them, as ONNX Runtime does: of equal keys the last
 * counts, and without one it is 0. Errors: USAGE, where it is not a number of a device. */
PSPLIT_MUST_USE psplit_code psplit_i_device_id(const char *const *keys, const char *const *values,
                                               size_t n, psplit_diag *diag, int *out);

#endif
