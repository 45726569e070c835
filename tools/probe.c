#include "probe.h"

#include <psplit/file.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "places.h"

psplit_code probe_restrict(const plan_options *options, psplit_devices *devices,
                           psplit_diag *diag) {
  return probe_apply(devices, options->probe_provider, options->probe_file, options->probed,
                     options->probe_text, options->n_probe_text, diag);
}

/* MODEL.PROVIDER.json where one is; the model's name without its folder and ".onnx". */
static char *default_file(const char *model, const char *provider) {
  const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model;
  const char *dot = strrchr(name, '.');
  const size_t n = dot && dot != name ? (size_t)(dot - name) : strlen(name);
  char *file = NULL;
  return asprintf(&file, "%.*s.%s.json", (int)n, name, provider) < 0 ? NULL : file;
}

static const psplit_session *find_session(const psplit_devices *devices, const char *provider) {
  for (uint32_t d = 0; d < psplit_devices_count(devices); d++)
    if (psplit_devices_run(devices, d, provider)) return psplit_devices_session(devices, d);
  return NULL;
}

static psplit_code ask(plan_options *o, const char *path, const psplit_session *session,
                       const probe_asker *asker, psplit_diag *diag) {
  char line[CLI_ADVICE_BYTES] = "";
  psplit_code code = PSPLIT_OK;
  if (!asker)
    return psplit_diag_fail(diag, PSPLIT_USAGE,
                            "%s is not there: onnx-pipeline-split --probe makes it", o->probe_file);
  code = place_check(o->probe_file, o->probed, diag);
  if (code == PSPLIT_OK)
    code = asker->ask(asker->user, path, session, o, diag, &o->probe_text, line);
  if (code != PSPLIT_OK) return code;
  o->n_probe_text = strlen(o->probe_text);
  code = psplit_file_write(o->probe_file, o->probe_text, o->n_probe_text, o->planner.cancel, diag);
  const psplit_logger *logger = o->planner.logger;
  if (code == PSPLIT_OK && logger) logger->emit(logger->user, PSPLIT_NOTE, line);
  return code;
}

psplit_code probe_load(plan_options *o, const char *path, const psplit_model *model,
                       const probe_asker *asker, psplit_diag *diag) {
  psplit_devices *devices = NULL;
  uint32_t n_stages = 0;
  if (!o->probe || o->probe_text) return PSPLIT_OK;
  psplit_code code = probe_cut(o->probe, diag, &o->probe_provider, &o->probe_file);
  if (code == PSPLIT_OK && !o->probe_file &&
      !(o->probe_file = default_file(path, o->probe_provider)))
    code = cli_nomem(diag);
  if (code == PSPLIT_OK)
    code = cli_devices(o->devices, o->devices_text, o->n_devices_text, &n_stages, diag, &devices);
  const psplit_session *session =
    code == PSPLIT_OK ? find_session(devices, o->probe_provider) : NULL;
  o->probed = model;
  if (code == PSPLIT_OK && !session)
    code = psplit_diag_fail(diag, PSPLIT_USAGE,
                            "--probe %s: no device of %s has {\"session\": {\"provider\": \"%s\"}}",
                            o->probe_provider, o->devices, o->probe_provider);
  if (code == PSPLIT_OK)
    code = access(o->probe_file, F_OK) == 0 ? cli_read_file(o->probe_file, o->max_text_bytes, false,
                                                            diag, &o->probe_text, &o->n_probe_text)
                                            : ask(o, path, session, asker, diag);
  psplit_devices_destroy(devices);
  return code;
}
