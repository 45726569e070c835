/* Fuzz target: pipeline texts and fusion patterns. The input's first line is the text, what follows
 * is the file that a pass's option names. The canonical form of a text is its own canonical form;
 * what runs gives a plan whose groups are convex (verify_each) or a reason. */
#include <stdlib.h>
#include <string.h>

#include "splits.h"

static const char MODEL[] =
  "<ir_version: 10, opset_import: [\"\": 18]>"
  "g (float[1, 8, 8] x) => (float[1, 8, 8] y, float[1, 8, 8] z) <float[8, 8] w = {...}, float two "
  "= {2.0}> "
  "{"
  " a = MatMul (x, w) b = Add (a, w) c = Sigmoid (b) d = Mul (b, c)"
  " e = MatMul (d, w) f = Relu (e) h = Pow (f, two) i = Softmax (h) j = Transpose (i)"
  " k = Add (j, x) y = Div (k, two) z = Relu (d) }";

typedef struct patterns {
  const char *text;
  size_t n;
} patterns;

static psplit_code give_text(void *user, const char *path, psplit_diag *diag, char **out_text,
                             size_t *out_n) {
  const patterns *given = user;
  (void)path;
  char *copy = malloc(given->n + 1);
  if (!copy) return psplit_diag_fail(diag, PSPLIT_NOMEM, "out of memory");
  memcpy(copy, given->text, given->n);
  copy[given->n] = '\0';
  *out_text = copy;
  *out_n = given->n;
  return PSPLIT_OK;
}

static void check_canonical(const char *text) {
  psplit_diag diag = {0};
  char *once = NULL, *twice = NULL;
  const psplit_code code = psplit_pipeline_canonical(text, &diag, &once);
  if (code == PSPLIT_OK) {
    fuzz_must(psplit_pipeline_canonical(once, &diag, &twice) == PSPLIT_OK, once, &diag);
    if (strcmp(once, twice) != 0) abort();
  } else if (code != PSPLIT_USAGE) {
    fuzz_fail("canonical", &diag);
  }
  free(twice);
  free(once);
}

static void run(const char *text, patterns *given) {
  static psplit_model *model;
  if (!model) model = fuzz_model_of(MODEL);
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_diag diag = {0};
  fuzz_planner_options(&options, 3);
  options.read_text = give_text;
  options.read_text_user = given;
  if (psplit_planner_create(model, &options, &diag, &planner) != PSPLIT_OK)
    fuzz_fail("planner", &diag);
  switch (psplit_planner_run(planner, text, &diag)) {
    case PSPLIT_OK:
    case PSPLIT_USAGE:
    case PSPLIT_LIMIT:
    case PSPLIT_INFEASIBLE:
    case PSPLIT_UNSUPPORTED: break;
    default: fuzz_fail(text, &diag);
  }
  psplit_planner_destroy(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  char *copy = malloc(n + 1);
  if (!copy) abort();
  memcpy(copy, data, n);
  copy[n] = '\0';
  char *end = memchr(copy, '\n', n);
  patterns given = {.text = copy + n};
  if (end) {
    *end = '\0';
    given = (patterns){end + 1, n - (size_t)(end + 1 - copy)};
  }
  check_canonical(copy);
  run(copy, &given);
  free(copy);
  return 0;
}
