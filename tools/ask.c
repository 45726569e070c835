#include "ask.h"

#include <inttypes.h>
#include <stdio.h>

#if PSPLIT_HAS_RUNTIME
#include <psplit/profile.h>

#include "ort_library.h"

static void describe(const psplit_probe *probe, const plan_options *options, char *out) {
  const uint32_t n_taken = probe->n_nodes - probe->n_left - probe->n_host;
  int n = snprintf(out, CLI_ADVICE_BYTES, "%.200s: %.60s takes %" PRIu32 " of %" PRIu32 " nodes",
                   options->probe_file, options->probe_provider, n_taken, probe->n_nodes);
  if (probe->n_left)
    n += snprintf(out + n, CLI_ADVICE_BYTES - (size_t)n, ", leaves to the CPU %.300s", probe->left);
  if (probe->n_host)
    snprintf(out + n, CLI_ADVICE_BYTES - (size_t)n, ", and of sizes %" PRIu32, probe->n_host);
}

psplit_code ask_provider(void *user, const char *path, const psplit_session *session,
                         const plan_options *options, psplit_diag *diag, char **out_text,
                         char *out_line) {
  psplit_onnxruntime *ort = NULL;
  psplit_probe probe = {0};
  psplit_code code = ort_library_open(user, diag, &ort);
  if (code == PSPLIT_OK)
    code =
      psplit_probe_provider(ort, path, options->probed, session, &options->planner, diag, &probe);
  if (code == PSPLIT_OK) {
    describe(&probe, options, out_line);
    *out_text = probe.text;
    probe.text = NULL;
  }
  psplit_probe_fini(&probe);
  psplit_onnxruntime_close(ort);
  return code;
}
#else
psplit_code ask_provider(void *user, const char *path, const psplit_session *session,
                         const plan_options *options, psplit_diag *diag, char **out_text,
                         char *out_line) {
  (void)user, (void)path, (void)session, (void)out_text, (void)out_line;
  return psplit_diag_fail(
    diag, PSPLIT_UNSUPPORTED,
    "%s is not there, and this program was built without what asks ONNX Runtime; build it with "
    "-Druntime=enabled",
    options->probe_file);
}
#endif
