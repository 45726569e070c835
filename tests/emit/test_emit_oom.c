/* Why: whichever allocation fails, an emission says so, leaks nothing and leaves nothing behind.
 * Fails the first allocation, then the second, and so on until one run gets through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <psplit/emit.h>

#include "../support/hand_plan.h"
#include "failing.h"
#include "graph.h"
#include "scratch.h"
#include "text_model.h"

/* The weight is large enough to be moved. */
static const char MODEL[] =
  "(float[300] x) => (float[300] y) <float[300] w = random(1), float[300] \"b.send1\"> {"
  "  a = Add (x, w)"
  "  \"b.send1\" = Relu (a)"
  "  y = Add (\"b.send1\", w)"
  "}";

static void every_allocation(void **state) {
  (void)state;
  write_model_text("model.onnx", MODEL);
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
  const uint32_t node_stage[] = {0, 0, 1};
  const psplit_plan_stage stages[] = {{.device = "d", .n_nodes = 2},
                                      {.device = "d", .n_nodes = 2, .n_duplicated = 1}};
  const psplit_plan_copy copies[] = {{.node = 1, .stage = 1}};
  const uint32_t value = psplit_i_graph_find_value(psplit_i_model_graph(model), "a");
  const psplit_plan_transfer transfers[] = {{.value = value, .tensor = "a", .from = 0, .to = 1}};
  psplit_plan plan = hand_plan(3, node_stage, 2, stages, 1, transfers);
  plan.n_copies = 1;
  plan.copies = copies;
  const psplit_emit_options options = {.struct_size = sizeof options,
                                       .weights = PSPLIT_WEIGHTS_EXTERNAL};
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
