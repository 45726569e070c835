/* Whole files, for the small ones that commands read. */
#include <psplit/file.h>

#include "cli.h"

psplit_code cli_read_file(const char *path, uint64_t max_bytes, bool or_stdin, psplit_diag *diag,
                          char **out_text, size_t *out_n) {
  psplit_file_read_options options;
  psplit_file_read_options_init(&options);
  options.max_bytes = max_bytes;
  options.or_stdin = or_stdin;
  return psplit_file_read(path, &options, diag, out_text, out_n);
}
