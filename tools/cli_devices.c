/* What --devices names: this machine, a preset or a file. */
#include "cli.h"

#include <string.h>

bool cli_is_preset(const char *name) {
  for (uint32_t i = 0; psplit_device_preset_name(i); i++)
    if (strcmp(psplit_device_preset_name(i), name) == 0) return true;
  return false;
}

/* A name that is no file may have been meant for a preset. */
static psplit_code add_presets(const char *name, psplit_diag *diag) {
  enum { MOST = 64 };
  const char *presets[MOST];
  uint32_t n_presets = 0;
  size_t n = strlen(diag->message);
  if (strchr(name, '/') || strchr(name, '.')) return diag->code;
  while (n_presets < MOST && (presets[n_presets] = psplit_device_preset_name(n_presets)))
    n_presets++;
  const uint32_t near = psplit_nearest_name(name, presets, n_presets);
  if (near != PSPLIT_NONE)
    n += (size_t)snprintf(diag->message + n, sizeof diag->message - n,
                          "; did you mean the preset %s?", presets[near]);
  for (uint32_t i = 0; i < n_presets && n < sizeof diag->message; i++)
    n += (size_t)snprintf(diag->message + n, sizeof diag->message - n, "%s%s",
                          i                     ? ", "
                          : near == PSPLIT_NONE ? "; presets are "
                                                : " presets are ",
                          presets[i]);
  return diag->code;
}

bool cli_is_file(const char *devices) {
  return strcmp(devices, "cpu") != 0 && !cli_is_preset(devices);
}

psplit_code cli_devices_read(const char *name, uint64_t max_bytes, bool or_stdin, psplit_diag *diag,
                             char **out_text, size_t *out_n) {
  if (!name || !cli_is_file(name)) return PSPLIT_OK;
  const psplit_code code = cli_read_file(name, max_bytes, or_stdin, diag, out_text, out_n);
  return code == PSPLIT_IO ? add_presets(name, diag) : code;
}

psplit_code cli_devices(const char *name, const char *text, size_t n, uint32_t *io_n_stages,
                        psplit_diag *diag, psplit_devices **out_devices) {
  if (!name) return PSPLIT_OK;
  psplit_code code;
  if (strcmp(name, "cpu") == 0) {
    code = cli_this_machine(*io_n_stages ? *io_n_stages : 1, diag, out_devices);
  } else if (cli_is_preset(name)) {
    code = psplit_devices_preset(name, *io_n_stages ? *io_n_stages : 1, diag, out_devices);
  } else {
    psplit_diag why = {0};
    code = psplit_devices_parse(text, n, &why, out_devices);
    if (code != PSPLIT_OK) {
      diag->code = code;
      snprintf(diag->message, sizeof diag->message, "%.300s: %.600s", name, why.message);
    }
  }
  if (code == PSPLIT_OK && !*io_n_stages) *io_n_stages = psplit_devices_count(*out_devices);
  return code;
}
