/* File input and output for programs that embed the library: psplit/file.h. */
#include <psplit/file.h>

#include "cancel.h"
#include "in_file.h"
#include "options.h"
#include "out_file.h"

psplit_code psplit_file_read(const char *path, const psplit_file_read_options *options,
                             psplit_diag *diag, char **out_text, size_t *out_n) {
  psplit_file_read_options taken;
  psplit_file_read_options_init(&taken);
  const psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_file_read_options, options, &taken, diag);
  if (code != PSPLIT_OK) return code;
  const psplit_i_text_options text = {
    .max_bytes = taken.max_bytes, .lifted_by = PSPLIT_HINT_MAX_TEXT, .or_stdin = taken.or_stdin};
  return psplit_i_text_read(path, &text, diag, out_text, out_n);
}

psplit_code psplit_file_write(const char *path, const void *bytes, size_t n_bytes,
                              const volatile int *cancel, psplit_diag *diag) {
  const psplit_i_out_options options = {.stop = psplit_i_flag(cancel)};
  psplit_diag own = {0};
  psplit_code code = psplit_i_go_on(cancel, diag);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_out_put(path, &options, bytes, n_bytes, &own);
  if (code != PSPLIT_OK && psplit_i_cancelled(cancel)) return psplit_i_interrupted(diag);
  return code == PSPLIT_OK ? code : psplit_i_fail_as(diag, &own);
}

psplit_code psplit_file_check(const char *path, psplit_diag *diag) {
  return psplit_i_out_probe(path, NULL, diag);
}
