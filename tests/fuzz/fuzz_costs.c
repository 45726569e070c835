/* Fuzz target: files of costs, of all four kinds, and profiles of ONNX Runtime. A table that is
 * taken plans a small model: a valid plan or a reason. A profile that becomes a file of costs
 * becomes one that is taken. */
#include <stdlib.h>
#include <string.h>

#include "splits.h"

static const char MODEL[] =
  "<ir_version: 10, opset_import: [\"\": 18]>"
  "g (float[\"n\", 8, 16, 16] x) => (float[\"n\", 8, 16, 16] y) <float[8, 8, 3, 3] w = {...}> {"
  " [conv_a] a = Conv <pads = [1, 1, 1, 1]> (x, w) [relu] b = Relu (a)"
  " [conv_b] c = Conv <pads = [1, 1, 1, 1]> (b, w) [add] d = Add (c, x)"
  " e = Sigmoid (d) [mul] y = Mul (d, e) }";

static psplit_model *model;

static void check_plan(const psplit_cost_table *table) {
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_diag diag = {0};
  fuzz_planner_options(&options, 2);
  options.costs = &table;
  options.n_costs = 1;
  if (psplit_planner_create(model, &options, &diag, &planner) != PSPLIT_OK)
    fuzz_fail("planner", &diag);
  const psplit_code code = psplit_planner_run(planner, NULL, &diag);
  /* INVALID: the table is of another model. */
  if (code != PSPLIT_OK && code != PSPLIT_INVALID) fuzz_fail("plan", &diag);
  if (code == PSPLIT_OK) {
    const psplit_plan *plan = psplit_planner_plan(planner);
    FUZZ_HOLDS(plan->lower_bound_ns >= 0 && plan->lower_bound_ns <= plan->bottleneck_ns);
    FUZZ_HOLDS(plan->measured_frac >= 0 && plan->measured_frac <= 1);
    int64_t node_ns[8];
    FUZZ_HOLDS(plan->n_nodes <= 8);
    psplit_planner_node_ns(planner, 0, node_ns);
    for (uint32_t i = 0; i < plan->n_nodes; i++) FUZZ_HOLDS(node_ns[i] >= 0);
  }
  psplit_planner_destroy(planner);
}

static void check_table(const char *text, size_t n) {
  psplit_diag diag = {0};
  psplit_cost_table *table = NULL;
  const psplit_code code = psplit_cost_table_parse("costs", text, n, &diag, &table);
  FUZZ_HOLDS((code == PSPLIT_OK) == (table != NULL) && (code == PSPLIT_OK) == !*diag.message);
  if (table) check_plan(table);
  psplit_cost_table_destroy(table);
}

static void check_profile(const char *text, size_t n) {
  static const int64_t dims[] = {1, 8, 16, 16};
  const psplit_run_shape input = {"x", dims, 4};
  const psplit_profiled_run run = {.profile = text,
                                   .n_profile = n,
                                   .least_ns = 900,
                                   .median_ns = 1000,
                                   .optimization = 99,
                                   .n_threads = 1,
                                   .n_runs = 1,
                                   .inputs = &input,
                                   .n_inputs = 1};
  psplit_diag diag = {0};
  psplit_cost_table *table = NULL;
  char *made = NULL;
  if (psplit_cost_table_profile(model, model, &run, &diag, &made) == PSPLIT_OK) {
    fuzz_must(psplit_cost_table_parse("made", made, strlen(made), &diag, &table) == PSPLIT_OK, made,
              &diag);
    check_plan(table);
  }
  psplit_cost_table_destroy(table);
  free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (!model) model = fuzz_model_of(MODEL);
  char *text = malloc(n + 1); /* of its own, for sanitizers to see its ends */
  if (!text) abort();
  memcpy(text, data, n);
  check_table(text, n);
  check_profile(text, n);
  free(text);
  return 0;
}
