/* --devices cpu: this machine, measured once. */
#include <ctype.h>
#include <psplit/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

enum { PATH_BYTES = 4096 };

/* What tells one kind of machine from another, as letters for a file name. */
static void name_of_cpu(char *out, size_t bytes) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  snprintf(out, bytes, "unknown");
  while (file && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 && strncmp(line, "CPU part", 8) != 0) continue;
    if (!colon) continue;
    size_t n = 0;
    for (const char *c = colon + 1; *c && n + 1 < bytes; c++)
      if (isalnum((unsigned char)*c) || (n && out[n - 1] != '-'))
        out[n++] = isalnum((unsigned char)*c) ? *c : '-';
    out[n] = '\0';
    break;
  }
  if (file) fclose(file);
}

/* Path of the kept measurement; false where there is no place for one. Makes the directories. */
static bool cache_path(char *out, size_t bytes) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char cpu[96];
  int n = cache && *cache == '/' ? snprintf(out, bytes, "%s", cache)
          : home && *home == '/' ? snprintf(out, bytes, "%s/.cache", home)
                                 : -1;
  name_of_cpu(cpu, sizeof cpu);
  if (n < 0 || (size_t)n + sizeof cpu + 64 > bytes) return false;
  mkdir(out, 0700);
  snprintf(out + n, bytes - (size_t)n, "/onnx-pipeline-split");
  mkdir(out, 0700);
  snprintf(out + n, bytes - (size_t)n, "/onnx-pipeline-split/device-%s.json", cpu);
  return true;
}

/* Best effort: whoever comes next measures again. Others see the whole file or none. */
static void keep(const char *path, const char *text) {
  psplit_diag ignored = {0};
  const psplit_code code = psplit_file_write(path, text, strlen(text), NULL, &ignored);
  (void)code;
}

/* The kept measurement, or NULL: one that does not parse is as good as none. */
static psplit_devices *kept(const char *path) {
  psplit_diag ignored = {0};
  psplit_devices *devices = NULL;
  char *text;
  size_t n;
  if (cli_read_file(path, 0, false, &ignored, &text, &n) != PSPLIT_OK) return NULL;
  if (psplit_devices_parse(text, n, &ignored, &devices) != PSPLIT_OK) devices = NULL;
  free(text);
  return devices;
}

psplit_code cli_this_machine(uint32_t n_devices, psplit_diag *diag, psplit_devices **out_devices) {
  char path[PATH_BYTES];
  const bool cached = cache_path(path, sizeof path);
  psplit_devices *one = cached ? kept(path) : NULL;
  psplit_code code = PSPLIT_OK;
  if (!one) {
    char *text;
    cli_doing("measuring this machine");
    code = psplit_devices_calibrate(diag, &text);
    if (code != PSPLIT_OK) return code;
    if (cached) keep(path, text);
    code = psplit_devices_parse(text, strlen(text), diag, &one);
    free(text);
    if (code != PSPLIT_OK) return code;
  }
  code = psplit_devices_repeat(one, n_devices, diag, out_devices);
  psplit_devices_destroy(one);
  return code;
}
