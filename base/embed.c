/* Part of the build: turns files into C arrays, psplit_i_asset_NAME each (asset.h).
 *
 *     embed OUT.c OUT.d NAME=PATH... */
#include <stdio.h>
#include <string.h>

static int fail(const char *path) {
  fprintf(stderr, "embed: %s: cannot be read or written\n", path);
  return 1;
}

static int same(const char *a, const char *b) {
  FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
  int c = x && y ? 0 : 1, d = 0;
  while (x && y && c == d && c != EOF) c = getc(x), d = getc(y);
  if (x) fclose(x);
  if (y) fclose(y);
  return x && y && c == d;
}

int main(int argc, char **argv) {
  char temp[4096];
  if (argc < 4) return fail("usage: embed OUT.c OUT.d NAME=PATH...");
  snprintf(temp, sizeof temp, "%s.new", argv[1]);
  FILE *out = fopen(temp, "w");
  FILE *deps = fopen(argv[2], "w");
  if (!out || !deps) return fail(argv[1]);
  fprintf(deps, "%s:", argv[1]);
  fputs("#include \"asset.h\"\n", out);
  for (int i = 3; i < argc; i++) {
    char *path = strchr(argv[i], '=');
    if (!path) return fail(argv[i]);
    *path++ = '\0';
    fprintf(deps, " %s", path);
    FILE *in = fopen(path, "rb");
    if (!in) return fail(path);
    fprintf(out, "static const unsigned char %s[] = {", argv[i]);
    size_t n = 0;
    for (int c; (c = getc(in)) != EOF; n++) fprintf(out, "%s%d,", n % 32 ? "" : "\n", c);
    fprintf(out, "0};\nconst psplit_i_asset psplit_i_asset_%s = {%s, %zu};\n", argv[i], argv[i], n);
    fclose(in);
  }
  fputc('\n', deps);
  if (fclose(out) != 0 || fclose(deps) != 0) return fail(temp);
  /* The same as before keeps its time, so that nothing is built again for it. */
  return same(temp, argv[1]) ? remove(temp) : rename(temp, argv[1]);
}
