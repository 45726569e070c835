/* Why: whichever allocation fails, an emission says so, leaks nothing and leaves nothing behind.
 * Fails the first allocation, then the second, and so on until one run gets through. */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <psplit/emit.h>

#include "failing.h"
#include "fixture.h"
#include "graph.h"
#include "scratch.h"

/* x -> Add(w) -> Relu -> Add(w) -> y; the weight is large enough to be moved. */
static void write_model(void) {
  psplit_text graph = {0};
  put(&graph, 1, node("Add", "x w", "a"));
  put(&graph, 1, node("Relu", "a", "b.send1"));
  put(&graph, 1, node("Add", "b.send1 w", "y"));
  put(&graph, 5, weight("w", 300, 1));
  put(&graph, 11, value_info("x", 1, "300"));
  put(&graph, 12, value_info("y", 1, "300"));
  put(&graph, 13, value_info("b.send1", 1, "300"));
  psplit_text model = model_of(graph, 8, 17);
  FILE *file = fopen("model.onnx", "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(model.bytes, 1, model.n, file), model.n);
  assert_int_equal(fclose(file), 0);
  psplit_i_text_fini(&model);
}

static void every_allocation(void **state) {
  (void)state;
  write_model();
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
  const uint32_t node_stage[] = {0, 0, 1};
  const psplit_plan_stage stages[] = {{.device = "d", .n_nodes = 2},
                                      {.device = "d", .n_nodes = 2, .n_duplicated = 1}};
  const psplit_plan_copy copies[] = {{.node = 1, .stage = 1}};
  const uint32_t value = psplit_i_graph_find_value(psplit_i_model_graph(model), "a");
  const psplit_plan_transfer transfers[] = {{.value = value, .tensor = "a", .from = 0, .to = 1}};
  const psplit_plan plan = {.n_nodes = 3,
                            .node_stage = node_stage,
                            .n_stages = 2,
                            .stages = stages,
                            .n_copies = 1,
                            .copies = copies,
                            .n_transfers = 1,
                            .transfers = transfers,
                            .objective = "throughput",
                            .solver = "hand",
                            .bound = "none",
                            .cost_source = "given"};
  const psplit_emit_options options = {.weights = PSPLIT_WEIGHTS_EXTERNAL};
  psplit_code code = PSPLIT_NOMEM;
  for (long nth = 0; code != PSPLIT_OK; nth++) {
    diag = (psplit_diag){0};
    const long live_before = live_blocks();
    fail_allocation_after(nth);
    code = psplit_emit(model, &plan, "out", &options, &diag);
    stop_failing();
    assert_int_equal(live_blocks(), live_before);
    if (code != PSPLIT_OK && code != PSPLIT_NOMEM)
      fail_msg("allocation %ld: %s: %s", nth, psplit_code_name(code), diag.message);
    struct stat status;
    assert_int_equal(stat("out", &status) == 0, code == PSPLIT_OK);
    assert_true(nth < 100000);
  }
  assert_int_equal(system("test \"$(ls -A | tr '\\n' ' ')\" = 'model.onnx out '"), 0);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_allocation, enter_scratch, leave_scratch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
