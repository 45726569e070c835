/* Structs of options that start with their size (psplit/base.h). */
#ifndef PSPLIT_BASE_OPTIONS_H
#define PSPLIT_BASE_OPTIONS_H

#include <psplit/base.h>

/* Overwrites *own, `bytes` of defaults, with the caller's struct; `name` is its type, for messages.
 * NULL for `given` keeps the defaults. Errors: USAGE (no size), UNSUPPORTED (unknown fields of a
 * newer version are set). */
PSPLIT_MUST_USE psplit_code psplit_i_options_take(const void *given, const char *name, void *own,
                                                  size_t bytes, psplit_diag *diag);

/* Copies the part of `defaults` that the caller's struct of struct_size has. */
void psplit_i_options_defaults(void *out, size_t struct_size, void *defaults, size_t bytes);

#define PSPLIT_I_TAKE_OPTIONS(type, given, own, diag) \
  psplit_i_options_take((given), #type, (own), sizeof(type), (diag))

#endif
