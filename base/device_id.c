#include "device_id.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "diag.h"
#include "text.h"

psplit_code psplit_i_device_id(const char *const *keys, const char *const *values, size_t n,
                               psplit_diag *diag, int *out) {
  const char *text = "0";
  for (size_t i = 0; i < n; i++)
    if (strcmp(keys[i], "device_id") == 0) text = values[i];
  uint64_t number = 0;
  if (!psplit_i_parse_u64(text, &number) || number > INT_MAX)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "device_id is \"%s\", and not the number of a device, as 0 or 1", text);
  *out = (int)number;
  return PSPLIT_OK;
}
