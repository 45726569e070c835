#include "depfile.h"

#include <string.h>

#include "out_file.h"
#include "text.h"

/* A backslash counts for make only before a space or '#', where it has to be doubled. */
static void put_name(psplit_i_text *out, const char *name) {
  size_t n_backslashes = 0;
  for (; *name; name++) {
    if (*name == ' ' || *name == '#')
      for (size_t i = 0; i <= n_backslashes; i++) psplit_i_text_puts(out, "\\");
    if (*name == '$') psplit_i_text_puts(out, "$");
    n_backslashes = *name == '\\' ? n_backslashes + 1 : 0;
    psplit_i_text_add(out, name, 1);
  }
}

static void put_prerequisite(psplit_i_text *out, const char *name) {
  psplit_i_text_puts(out, " \\\n  ");
  put_name(out, name);
}

psplit_code depfile_write(const char *path, const char *directory, const psplit_model *model,
                          const plan_options *options, const planned *made, psplit_diag *diag) {
  psplit_i_text text = {0};
  put_name(&text, directory);
  psplit_i_text_puts(&text, "/pipeline.json:");
  for (uint32_t i = 0; i < psplit_model_n_files(model); i++)
    put_prerequisite(&text, psplit_model_file_path(model, i));
  if (options->devices_text && strcmp(options->devices, "-") != 0)
    put_prerequisite(&text, options->devices);
  for (size_t i = 0; i < options->n_cost_files; i++)
    if (strcmp(options->cost_files[i], "-") != 0) put_prerequisite(&text, options->cost_files[i]);
  for (size_t i = 0; i < options->n_plugin_files; i++)
    put_prerequisite(&text, options->plugin_files[i]);
  for (size_t i = 0; i < made->n_read; i++) put_prerequisite(&text, made->read[i]);
  psplit_i_text_puts(&text, "\n");
  const psplit_code code =
    text.failed ? cli_nomem(diag) : psplit_i_out_put(path, NULL, text.bytes, text.n, diag);
  psplit_i_text_fini(&text);
  return code;
}
