#include "bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "open.h"

bench start(const char *model, const psplit_planner_options *options) {
  bench b = {.model = opened_text(model)};
  psplit_diag diag = {0};
  if (psplit_planner_create(b.model, options, &diag, &b.planner) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  b.graph = psplit_i_model_graph(b.model);
  return b;
}

void stop(bench *b) {
  psplit_planner_destroy(b->planner);
  psplit_model_close(b->model);
}

void run(bench *b, const char *pipeline) {
  psplit_diag diag = {0};
  if (psplit_planner_run(b->planner, pipeline, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
}

psplit_planner_options stages(uint32_t n) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = n;
  options.verify_each = true;
  return options;
}

uint32_t node_of(const bench *b, const char *value) {
  const uint32_t v = psplit_i_graph_find_value(b->graph, value);
  assert_int_not_equal(v, PSPLIT_NONE);
  return b->graph->values[v].producer;
}
