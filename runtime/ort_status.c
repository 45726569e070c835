#include "ort.h"

psplit_code psplit_i_ort_check(const psplit_i_ort *ort, OrtStatus *status, const char *what,
                               psplit_diag *diag) {
  if (!status) return PSPLIT_OK;
  const char *why = ort->api.GetErrorMessage(status);
  const psplit_code code = psplit_i_fail(diag, PSPLIT_INVALID, "%s: %s", what,
                                         why ? why : "ONNX Runtime fails and does not say why");
  ort->api.ReleaseStatus(status);
  return code;
}
