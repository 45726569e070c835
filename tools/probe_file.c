#include "probe_file.h"

#include <string.h>

psplit_code probe_cut(const char *argument, psplit_diag *diag, char **out_provider,
                      char **out_file) {
  const char *equals = strchr(argument, '=');
  const size_t n = equals ? (size_t)(equals - argument) : strlen(argument);
  if (!n || (equals && !equals[1]))
    return psplit_diag_fail(diag, PSPLIT_USAGE, "--probe %s: it takes PROVIDER or PROVIDER=FILE",
                            argument);
  *out_provider = strndup(argument, n);
  *out_file = equals ? strdup(equals + 1) : NULL;
  return *out_provider && (*out_file || !equals) ? PSPLIT_OK : cli_nomem(diag);
}

psplit_code probe_apply(psplit_devices *devices, const char *provider, const char *file,
                        const psplit_model *model, const char *text, size_t n, psplit_diag *diag) {
  psplit_diag why = {0};
  const psplit_code code = psplit_devices_restrict(devices, provider, model, text, n, &why);
  if (code == PSPLIT_OK) return code;
  return psplit_diag_fail(diag, code, "%.300s: %.600s", file, why.message);
}
