/* Whole files, for the small ones that commands read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

psplit_code cli_read_file(const char *path, psplit_diag *diag, char **out_text, size_t *out_n) {
  static const size_t MAX_BYTES = (size_t)1 << 30;
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  size_t n = 0, capacity = 0;
  psplit_code code = file ? PSPLIT_OK : PSPLIT_IO;
  while (code == PSPLIT_OK) {
    if (n + 1 >= capacity) {
      capacity = capacity ? 2 * capacity : 65536;
      char *grown = capacity <= 2 * MAX_BYTES ? realloc(text, capacity) : NULL;
      if (!grown) {
        code = PSPLIT_LIMIT;
        break;
      }
      text = grown;
    }
    const size_t got = fread(text + n, 1, capacity - 1 - n, file);
    n += got;
    if (got == 0) {
      if (ferror(file)) code = PSPLIT_IO;
      break;
    }
  }
  if (code != PSPLIT_OK) {
    diag->code = code;
    snprintf(diag->message, sizeof diag->message, "%s: %s", path,
             code == PSPLIT_IO ? strerror(errno) : "too large");
    free(text);
  } else {
    text[n] = '\0';
    *out_text = text;
    *out_n = n;
  }
  if (file) fclose(file);
  return code;
}
