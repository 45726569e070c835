#include "options.h"

#include "diag.h"

static bool all_zero(const unsigned char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (bytes[i]) return false;
  return true;
}

psplit_code psplit_i_options_take(const void *given, const char *name, void *own, size_t bytes,
                                  psplit_diag *diag) {
  size_t size;
  if (!given) return PSPLIT_OK;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size)
    return psplit_i_fail(diag, PSPLIT_USAGE, "%s.struct_size is %zu; %s_init() sets it", name, size,
                         name);
  if (size > bytes && !all_zero((const unsigned char *)given + bytes, size - bytes))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s has a field set that version %s of the library does not know", name,
                         psplit_version());
  memcpy(own, given, size < bytes ? size : bytes);
  memcpy(own, &bytes, sizeof bytes);
  return PSPLIT_OK;
}

void psplit_i_options_defaults(void *out, size_t struct_size, void *defaults, size_t bytes) {
  memcpy(defaults, &struct_size, sizeof struct_size);
  if (struct_size > bytes) memset(out, 0, struct_size);
  memcpy(out, defaults, struct_size < bytes ? struct_size : bytes);
}
