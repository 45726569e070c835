#include "ort.h"

#include <limits.h>
#include <string.h>

/* No code of ONNX Runtime tells that memory ran out: its allocators, the C++ library's and CUDA's
 * say it in words. */
static bool lacks_memory(const char *why) {
  static const char *const SAID[] = {"Failed to allocate memory", "bad_alloc", "bad allocation",
                                     "out of memory"};
  for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++)
    if (strstr(why, SAID[i])) return true;
  return false;
}

psplit_code psplit_i_ort_check(const psplit_i_ort *ort, OrtStatus *status, const char *what,
                               psplit_diag *diag) {
  if (!status) return PSPLIT_OK;
  const char *why = ort->api.GetErrorMessage(status);
  if (!why) why = "ONNX Runtime fails and does not say why";
  size_t n = strlen(why);
  while (n && strchr(" \n\r", why[n - 1])) n--; /* ends of lines of what it repeats */
  const psplit_code code = psplit_i_fail(diag, lacks_memory(why) ? PSPLIT_NOMEM : PSPLIT_INVALID,
                                         "%s: %.*s", what, n < INT_MAX ? (int)n : INT_MAX, why);
  ort->api.ReleaseStatus(status);
  return code;
}
