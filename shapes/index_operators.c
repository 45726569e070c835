/* Part of the build: writes the index over rules.def that operator.c looks operators up in, so that
 * the library has neither state nor a search for it. Fails where the rows contradict each other.
 *
 *     index_operators FILE */
#include <stdio.h>
#include <string.h>

#include "operator_hash.h"

typedef struct row {
  const char *domain, *op_type, *op_class;
  const char *flags; /* behind the flops, as written; the flops differ where an opset's formula does
                      */
} row;

#define FLAGS(flops, flags, ...) #flags

static const row ROWS[] = {
#define PSPLIT_RULE(domain, op, since, until, fn, op_class, ...) \
  {domain, op, #op_class, FLAGS(__VA_ARGS__, 0, 0)},
#define PSPLIT_NO_RULE(domain, op, flags) {domain, op, "", #flags},
#include "rules.def"
#undef PSPLIT_RULE
#undef PSPLIT_NO_RULE
};

enum { N_ROWS = sizeof ROWS / sizeof *ROWS, INDEX_SIZE = 1024 };
_Static_assert(2 * N_ROWS <= INDEX_SIZE, "double INDEX_SIZE: probing gets long");

static int same_operator(const row *a, const row *b) {
  return strcmp(a->op_type, b->op_type) == 0 && strcmp(a->domain, b->domain) == 0;
}

int main(int argc, char **argv) {
  static unsigned index[INDEX_SIZE]; /* 1 + row */
  for (unsigned i = 0; i < N_ROWS; i++) {
    const row *own = &ROWS[i];
    if (i && same_operator(own, own - 1)) {
      if (strcmp(own->op_class, (own - 1)->op_class) == 0 &&
          strcmp(own->flags, (own - 1)->flags) == 0)
        continue;
      fprintf(stderr, "rules.def: the rows of \"%s\" differ in class or flags\n", own->op_type);
      return 1;
    }
    uint32_t at = psplit_i_operator_hash(own->domain, own->op_type) % INDEX_SIZE;
    for (; index[at]; at = (at + 1) % INDEX_SIZE)
      if (same_operator(own, &ROWS[index[at] - 1])) {
        fprintf(stderr, "rules.def: the rows of \"%s\" do not follow each other\n", own->op_type);
        return 1;
      }
    index[at] = i + 1;
  }
  FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
  if (!out) {
    fprintf(stderr, "usage: index_operators FILE\n");
    return 1;
  }
  fprintf(out, "enum { INDEX_SIZE = %d };\nstatic const uint16_t kIndex[INDEX_SIZE] = {",
          INDEX_SIZE);
  for (unsigned i = 0; i < INDEX_SIZE; i++) fprintf(out, "%s%u,", i % 16 ? " " : "\n  ", index[i]);
  fprintf(out, "\n};\n");
  return fclose(out) == 0 ? 0 : 1;
}
