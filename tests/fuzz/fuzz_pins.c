/* Fuzz target: files of pins. A small model, whose names have letters of patterns in them, is
 * planned with them: a valid plan, in which what a line pins by its plain name is where it says,
 * or a reason. */
#include <stdlib.h>
#include <string.h>

#include "splits.h"

enum { N_STAGES = 3 };

static const char MODEL[] =
  "<ir_version: 10, opset_import: [\"\": 18]>"
  "g (float[1, 8] x) => (float[1, 8] y) <float[8, 8] w = {...}> {"
  " [a] a = MatMul (x, w) [\"b*\"] b = Relu (a) [\"[c]\"] c = MatMul (b, w) [\"d=0\"] d = Relu (c)"
  " [\"block/1/e\"] e = MatMul (d, w) [\"block/2/f\"] f = Relu (e) h = MatMul (f, w) [\"\\\\\"] y "
  "= Relu "
  "(h) }";

/* Node "a" comes first: whoever pins it by name, and gets a plan, has it there. */
static void check_first(const psplit_plan *plan, const char *text, size_t n) {
  if (n != 3 || memcmp(text, "a=", 2) != 0) return;
  FUZZ_HOLDS(plan->node_stage[0] == (uint32_t)(text[2] - '0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static psplit_model *model;
  if (!model) model = fuzz_model_of(MODEL);
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_diag diag = {0};
  char *text = malloc(n + 1); /* of its own, for sanitizers to see its ends */
  if (!text) abort();
  if (n) memcpy(text, data, n);
  fuzz_planner_options(&options, N_STAGES);
  options.pins_text = text;
  options.n_pins_text = n;
  const psplit_code code = psplit_planner_create(model, &options, &diag, &planner);
  FUZZ_HOLDS((code == PSPLIT_OK) == (planner != NULL) && (code == PSPLIT_OK) == !*diag.message);
  if (code != PSPLIT_OK && code != PSPLIT_USAGE) fuzz_fail("pins", &diag);
  if (planner && fuzz_plan(planner)) check_first(psplit_planner_plan(planner), text, n);
  psplit_planner_destroy(planner);
  free(text);
  return 0;
}
