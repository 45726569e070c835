/* make_corpus LIST DIRECTORY [COPIES]: the problems of a list (listed.h) as files that
 * onnx-pipeline-learn and onnx-pipeline-plan read. Copies have other seeds, and every second and
 * third has half as many nodes again, or twice as many. */
#include <errno.h>
#include <psplit/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "listed.h"

/* Copy 0 is the line. */
static bool copy_of(const char *line, unsigned copy, char *out, size_t n) {
  char family[32], rest[256];
  unsigned seed, nodes;
  if (line[0] == '#' || sscanf(line, "%31s %u %u %255[^\n]", family, &seed, &nodes, rest) != 4)
    return false;
  snprintf(out, n, "%s %u %u %s\n", family, seed + 10000 * copy, nodes + nodes * (copy % 3) / 2,
           rest);
  return true;
}

int main(int argc, char **argv) {
  char line[512];
  unsigned n = 0;
  const unsigned copies = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
  if (argc < 3 || argc > 4 || copies == 0 || copies > 1000) {
    fputs("usage: make_corpus LIST DIRECTORY [COPIES]\n", stderr);
    return 2;
  }
  FILE *list = fopen(argv[1], "r");
  if (!list || (mkdir(argv[2], 0777) != 0 && errno != EEXIST)) {
    fprintf(stderr, "error: %s or %s: %s\n", argv[1], argv[2], strerror(errno));
    return 3;
  }
  int status = 0;
  unsigned copy = copies;
  while (status == 0 && (++copy < copies || fgets(line, sizeof line, list))) {
    listed l;
    if (copy >= copies) copy = 0;
    psplit_diag diag = {0};
    char name[128], path[4096], *text;
    size_t bytes;
    char text_line[512];
    if (!copy_of(line, copy, text_line, sizeof text_line)) {
      copy = copies;
      continue;
    }
    if (!listed_make(text_line, &l)) return 2;
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
