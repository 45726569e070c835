#include "depfile.h"

#include <psplit/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A backslash counts for make only before a space or '#', where it has to be doubled. */
static void put_name(FILE *out, const char *name) {
  size_t n_backslashes = 0;
  for (; *name; name++) {
    if (*name == ' ' || *name == '#')
      for (size_t i = 0; i <= n_backslashes; i++) putc('\\', out);
    if (*name == '$') putc('$', out);
    n_backslashes = *name == '\\' ? n_backslashes + 1 : 0;
    putc(*name, out);
  }
}

static void put_prerequisite(FILE *out, const char *name) {
  fputs(" \\\n  ", out);
  put_name(out, name);
}

psplit_code depfile_write(const char *path, const char *directory, const psplit_model *model,
                          const plan_options *options, const planned *made, psplit_diag *diag) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out) return cli_nomem(diag);
  put_name(out, directory);
  fputs("/pipeline.json:", out);
  for (uint32_t i = 0; i < psplit_model_n_files(model); i++)
    put_prerequisite(out, psplit_model_file_path(model, i));
  if (options->devices_text && strcmp(options->devices, "-") != 0)
    put_prerequisite(out, options->devices);
  for (size_t i = 0; i < options->n_cost_files; i++)
    if (strcmp(options->cost_files[i], "-") != 0) put_prerequisite(out, options->cost_files[i]);
  for (size_t i = 0; i < options->n_plugin_files; i++)
    put_prerequisite(out, options->plugin_files[i]);
  for (size_t i = 0; i < made->n_read; i++) put_prerequisite(out, made->read[i]);
  fputs("\n", out);
  const bool whole = !ferror(out);
  const psplit_code code =
    fclose(out) == 0 && whole ? psplit_file_write(path, text, n, NULL, diag) : cli_nomem(diag);
  free(text);
  return code;
}
