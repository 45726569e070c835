/* Whole files, for the small ones that commands read. */
#include <psplit/file.h>
#include <psplit/partition.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

psplit_code cli_read_file(const char *path, uint64_t max_bytes, bool or_stdin, psplit_diag *diag,
                          char **out_text, size_t *out_n) {
  psplit_file_read_options options;
  psplit_file_read_options_init(&options);
  options.max_bytes = max_bytes;
  options.or_stdin = or_stdin;
  return psplit_file_read(path, &options, diag, out_text, out_n);
}

psplit_code cli_read_problem(const char *path, uint64_t max_bytes, bool or_stdin, psplit_diag *diag,
                             psplit_problem **out) {
  char *text;
  size_t n;
  psplit_code code = cli_read_file(path, max_bytes, or_stdin, diag, &text, &n);
  if (code != PSPLIT_OK) return code;
  const char *name = or_stdin && strcmp(path, "-") == 0 ? "standard input" : path;
  code = psplit_problem_parse_json(text, n, name, diag, out);
  free(text);
  return code;
}
