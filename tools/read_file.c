/* Whole files, for the small ones that commands read. */
#include "cli.h"
#include "in_file.h"

psplit_code cli_read_file(const char *path, uint64_t max_bytes, bool or_stdin, psplit_diag *diag,
                          char **out_text, size_t *out_n) {
  const psplit_i_text_options options = {
    .max_bytes = max_bytes, .lifted_by = PSPLIT_HINT_MAX_TEXT, .or_stdin = or_stdin};
  return psplit_i_text_read(path, &options, diag, out_text, out_n);
}
