#include "depfile.h"

#include <stdio.h>
#include <string.h>

/* A stream into memory does not remember by itself that there was too little. */
typedef struct rule {
  FILE *out;
  bool failed;
} rule;

static void put(rule *r, int c) { r->failed |= putc(c, r->out) == EOF; }

/* A backslash counts for make only before a space or '#', where it has to be doubled. */
static void put_name(rule *r, const char *name) {
  size_t n_backslashes = 0;
  for (; *name; name++) {
    if (*name == ' ' || *name == '#')
      for (size_t i = 0; i <= n_backslashes; i++) put(r, '\\');
    if (*name == '$') put(r, '$');
    n_backslashes = *name == '\\' ? n_backslashes + 1 : 0;
    put(r, *name);
  }
}

static void put_prerequisite(rule *r, const char *name) {
  r->failed |= fputs(" \\\n  ", r->out) == EOF;
  put_name(r, name);
}

psplit_code depfile_make(const char *directory, const psplit_model *model,
                         const plan_options *options, const planned *made, psplit_diag *diag,
                         char **out_text, size_t *out_n) {
  rule r = {.out = open_memstream(out_text, out_n)};
  if (!r.out) return cli_nomem(diag);
  put_name(&r, directory);
  r.failed |= fputs("/pipeline.json:", r.out) == EOF;
  for (uint32_t i = 0; i < psplit_model_n_files(model); i++)
    put_prerequisite(&r, psplit_model_file_path(model, i));
  if (options->devices_text && strcmp(options->devices, "-") != 0)
    put_prerequisite(&r, options->devices);
  if (options->pins_file && strcmp(options->pins_file, "-") != 0)
    put_prerequisite(&r, options->pins_file);
  if (options->probe_file) put_prerequisite(&r, options->probe_file);
  for (size_t i = 0; i < options->n_cost_files; i++)
    if (strcmp(options->cost_files[i], "-") != 0) put_prerequisite(&r, options->cost_files[i]);
  for (size_t i = 0; i < options->n_plugin_files; i++)
    put_prerequisite(&r, options->plugin_files[i]);
  if (options->policy_file) put_prerequisite(&r, options->policy_file);
  for (size_t i = 0; i < made->n_read; i++) put_prerequisite(&r, made->read[i]);
  put(&r, '\n');
  return cli_close_text(r.out, out_text) && !r.failed ? PSPLIT_OK : cli_nomem(diag);
}
