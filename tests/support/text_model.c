#include "text_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEADER[] = "<ir_version: 10, opset_import: [\"\": 18, \"local\": 1]> ";

/* Whether the first token is '<'. */
static bool has_header(const char *text, size_t n) {
  bool comment = false;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '\n')
      comment = false;
    else if (text[i] == '#')
      comment = true;
    else if (!comment && text[i] != ' ' && text[i] != '\t')
      return text[i] == '<';
  }
  return false;
}

psplit_code parse_model_text(const char *text, size_t n_text,
                             const psplit_parse_text_options *options, psplit_diag *diag,
                             void **out_bytes, size_t *out_n) {
  if (has_header(text, n_text))
    return psplit_model_parse_text(text, n_text, options, diag, out_bytes, out_n);
  const size_t n_header = strlen(HEADER);
  char *whole = malloc(n_header + n_text);
  if (!whole) abort();
  memcpy(whole, HEADER, n_header);
  memcpy(whole + n_header, text, n_text);
  const psplit_code code =
    psplit_model_parse_text(whole, n_header + n_text, options, NULL, out_bytes, out_n);
  free(whole);
  if (code == PSPLIT_OK) return code;
  return psplit_model_parse_text(text, n_text, options, diag, out_bytes, out_n); /* its place */
}

void write_model_text(const char *path, const char *text) {
  psplit_diag diag = {0};
  void *bytes;
  size_t n;
  if (parse_model_text(text, strlen(text), NULL, &diag, &bytes, &n) != PSPLIT_OK) {
    fprintf(stderr, "%s\n%s\n", diag.message, text);
    abort();
  }
  FILE *file = fopen(path, "wb");
  const bool written = file && fwrite(bytes, 1, n, file) == n;
  if (!file || fclose(file) != 0 || !written) {
    perror(path);
    abort();
  }
  free(bytes);
}
