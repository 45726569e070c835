#include "costing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "open.h"

psplit_model *residual_block(void) {
  return opened_text(
    "(float[1,8,16,16] x) => (float[1,8,1,1] y) <float[8,8,1,1] w = raw {0 * 64}> {"
    "  [\"/a/conv/Conv\"] c1 = Conv (x, w)"
    "  [\"/a/act/Relu\"] r1 = Relu (c1)"
    "  [\"/b/b.0/conv/Conv\"] c2 = Conv (r1, w)"
    "  [\"/b/Add\"] sum = Add (c2, x)"
    "  [\"/b/Relu\"] r2 = Relu (sum)"
    "  y = GlobalAveragePool (r2)"
    "}");
}

psplit_cost_table *parsed_costs(const char *text) {
  psplit_diag diag = {0};
  psplit_cost_table *table;
  if (psplit_cost_table_parse("costs", text, strlen(text), &diag, &table) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return table;
}

psplit_code costing_start(costing *b, psplit_model *model, const char *one, const char *two,
                          psplit_diag *diag) {
  *b = (costing){0};
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  if (one) b->tables[options.n_costs++] = parsed_costs(one);
  if (two) b->tables[options.n_costs++] = parsed_costs(two);
  options.costs = (const psplit_cost_table *const *)b->tables;
  psplit_code code;
  PSPLIT_TRY(psplit_planner_create(model, &options, diag, &b->planner));
  PSPLIT_TRY(psplit_planner_run(b->planner, "infer-shapes,cost", diag));
  psplit_planner_node_ns(b->planner, 0, b->ns);
out:
  return code;
}

void costing_end(costing *b) {
  psplit_planner_destroy(b->planner);
  for (size_t i = 0; i < 2; i++) psplit_cost_table_destroy(b->tables[i]);
}

costing costed(psplit_model *model, const char *one, const char *two) {
  costing b;
  psplit_diag diag = {0};
  if (costing_start(&b, model, one, two, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  return b;
}
