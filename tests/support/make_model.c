/* make_model [-e] OUT [TEXT]: the model that a text says (docs/text-form.md), of the file TEXT or
 * of standard input, as an ONNX file; OUT "-" is standard output. A text without a header has that
 * of text_model.h. -e: data that was left out is made up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/exit_status.h"
#include "text_model.h"

static char *read_all(FILE *in, size_t *out_n) {
  char *text = NULL;
  size_t n = 0, capacity = 0, got;
  do {
    if (capacity - n < 65536) {
      capacity = 2 * capacity + 65536;
      text = realloc(text, capacity);
      if (!text) abort();
    }
    got = fread(text + n, 1, capacity - n, in);
    n += got;
  } while (got);
  *out_n = n;
  return text;
}

int main(int argc, char **argv) {
  psplit_parse_text_options options = {.struct_size = sizeof options};
  if (argc > 1 && strcmp(argv[1], "-e") == 0) {
    options.fill_left_out = true;
    argc--, argv++;
  }
  if (argc < 2 || argc > 3) {
    fputs("usage: make_model [-e] OUT [TEXT]\n", stderr);
    return 2;
  }
  options.file_name = argc == 3 ? argv[2] : NULL;
  FILE *in = argc == 3 ? fopen(argv[2], "rb") : stdin;
  if (!in) {
    perror(argv[2]);
    return 3;
  }
  size_t n_text, n;
  char *text = read_all(in, &n_text);
  void *bytes;
  psplit_diag diag = {0};
  if (parse_model_text(text, n_text, &options, &diag, &bytes, &n) != PSPLIT_OK) {
    fprintf(stderr, "error: %s\n", diag.message);
    return cli_exit_status(diag.code);
  }
  FILE *out = strcmp(argv[1], "-") == 0 ? stdout : fopen(argv[1], "wb");
  if (!out || fwrite(bytes, 1, n, out) != n || fclose(out) != 0) {
    perror(argv[1]);
    return 3;
  }
  free(bytes);
  free(text);
  if (in != stdin) fclose(in);
  return 0;
}
