#include "ort.h"

#include <limits.h>
#include <string.h>

psplit_code psplit_i_ort_check(const psplit_i_ort *ort, OrtStatus *status, const char *what,
                               psplit_diag *diag) {
  if (!status) return PSPLIT_OK;
  const char *why = ort->api.GetErrorMessage(status);
  if (!why) why = "ONNX Runtime fails and does not say why";
  size_t n = strlen(why);
  while (n && strchr(" \n\r", why[n - 1])) n--; /* ends of lines of what it repeats */
  const psplit_code code =
    psplit_i_fail(diag, PSPLIT_INVALID, "%s: %.*s", what, n < INT_MAX ? (int)n : INT_MAX, why);
  ort->api.ReleaseStatus(status);
  return code;
}
