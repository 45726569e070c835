/* make_corpus LIST DIRECTORY: the problems of a list (listed.h) as files that onnx-pipeline-learn
 * and onnx-pipeline-plan read. */
#include <errno.h>
#include <psplit/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "listed.h"

int main(int argc, char **argv) {
  char line[512];
  unsigned n = 0;
  if (argc != 3) {
    fputs("usage: make_corpus LIST DIRECTORY\n", stderr);
    return 2;
  }
  FILE *list = fopen(argv[1], "r");
  if (!list || (mkdir(argv[2], 0777) != 0 && errno != EEXIST)) {
    fprintf(stderr, "error: %s or %s: %s\n", argv[1], argv[2], strerror(errno));
    return 3;
  }
  int status = 0;
  while (status == 0 && fgets(line, sizeof line, list)) {
    listed l;
    psplit_diag diag = {0};
    char name[128], path[4096], *text;
    size_t bytes;
    if (!listed_make(line, &l)) continue;
    listed_name(&l, name, sizeof name);
    snprintf(path, sizeof path, "%s/%03u-%s.json", argv[2], n++, name);
    if (psplit_problem_format_json(&l.problem, &diag, &text, &bytes) != PSPLIT_OK ||
        psplit_file_write(path, text, bytes, NULL, &diag) != PSPLIT_OK) {
      fprintf(stderr, "error: %s: %s\n", path, diag.message);
      status = 4;
    } else {
      free(text);
    }
    listed_fini(&l);
  }
  fclose(list);
  printf("%u problems\n", n);
  return status;
}
