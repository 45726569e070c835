#include "depfile.h"

#include <errno.h>
#include <string.h>

/* A backslash counts for make only before a space or '#', where it has to be doubled. */
static void put_name(FILE *file, const char *name) {
  size_t n_backslashes = 0;
  for (; *name; name++) {
    if (*name == ' ' || *name == '#')
      for (size_t i = 0; i <= n_backslashes; i++) fputc('\\', file);
    if (*name == '$') fputc('$', file);
    n_backslashes = *name == '\\' ? n_backslashes + 1 : 0;
    fputc(*name, file);
  }
}

static void put_prerequisite(FILE *file, const char *name) {
  fputs(" \\\n  ", file);
  put_name(file, name);
}

psplit_code depfile_write(const char *path, const char *directory, const psplit_model *model,
                          const plan_options *options, const planned *made, psplit_diag *diag) {
  FILE *file = fopen(path, "w");
  bool good = file != NULL;
  if (file) {
    put_name(file, directory);
    fputs("/pipeline.json:", file);
    for (uint32_t i = 0; i < psplit_model_n_files(model); i++)
      put_prerequisite(file, psplit_model_file_path(model, i));
    if (options->devices && !cli_is_preset(options->devices))
      put_prerequisite(file, options->devices);
    for (size_t i = 0; i < options->n_cost_files; i++)
      put_prerequisite(file, options->cost_files[i]);
    for (size_t i = 0; i < options->n_plugin_files; i++)
      put_prerequisite(file, options->plugin_files[i]);
    for (size_t i = 0; i < made->n_read; i++) put_prerequisite(file, made->read[i]);
    fputc('\n', file);
    good = ferror(file) == 0;
    good &= fclose(file) == 0;
  }
  if (good) return PSPLIT_OK;
  snprintf(diag->message, sizeof diag->message, "%s: cannot be written: %s", path, strerror(errno));
  return diag->code = PSPLIT_IO;
}
