/* Turns files into C arrays at build time: embed OUT.c OUT.d NAME=PATH... A path with '?' before it
 * may be missing: its array is empty then, and the build looks again the next time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *path) {
  fprintf(stderr, "embed: %s: cannot be read or written\n", path);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) return fail("usage: embed OUT.c OUT.d NAME=PATH...");
  FILE *out = fopen(argv[1], "w");
  FILE *deps = fopen(argv[2], "w");
  if (!out || !deps) return fail(argv[1]);
  fprintf(deps, "%s:", argv[1]);
  fputs("#include \"view.h\"\n", out);
  for (int i = 3; i < argc; i++) {
    char *path = strchr(argv[i], '=');
    if (!path) return fail(argv[i]);
    *path++ = '\0';
    const int may_miss = *path == '?';
    path += may_miss;
    fprintf(deps, " %s", path);
    FILE *in = fopen(path, "rb");
    if (!in && !may_miss) return fail(path);
    if (!in) printf("page: left out, for there is no %s\n", path);
    fprintf(out, "static const unsigned char %s[] = {", argv[i]);
    size_t n = 0;
    for (int c; in && (c = getc(in)) != EOF; n++) fprintf(out, "%s%d,", n % 32 ? "" : "\n", c);
    fprintf(out, "0};\nconst psplit_i_asset psplit_i_asset_%s = {%s, %zu};\n", argv[i], argv[i], n);
    if (in) fclose(in);
  }
  fputc('\n', deps);
  return fclose(out) == 0 && fclose(deps) == 0 ? 0 : fail(argv[1]);
}
