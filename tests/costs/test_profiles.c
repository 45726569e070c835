/* A run that ONNX Runtime profiled becomes a costs file: kernels are mapped back to nodes, and what
 * the whole took is shared among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "costing.h"
#include "open.h"

static const char FOUR_KERNELS[] =
  "[" KERNEL("k0", "ReorderInput", 1, 1) "," KERNEL("r1_nchwc", "Conv", 2, 50) "," KERNEL(
    "whatever", "FusedConv", 3, 30) "," KERNEL("k3", "GlobalAveragePool", 4, 3) "]";

/* The model as it ran. */
static psplit_model *four_kernels(void) {
  return opened_text(
    "(float[4] x, float[4] w) => (float[4] y) {"
    "  [k0] t0 = ReorderInput (x)"
    "  [r1_nchwc] t1 = Conv (t0, w)"
    "  [whatever] r2 = FusedConv (t1, w, x)"
    "  [k3] y = GlobalAveragePool (r2)"
    "}");
}

/* A run of them, 86 us in all, that took least_ns. */
static psplit_profiled_run run_of_four(int64_t least_ns) {
  return (psplit_profiled_run){.profile = FOUR_KERNELS,
                               .n_profile = strlen(FOUR_KERNELS),
                               .least_ns = least_ns,
                               .median_ns = least_ns,
                               .onnxruntime = "1.99",
                               .optimization = 99,
                               .n_threads = 1,
                               .n_runs = 1};
}

/* A costs file of it; the caller's to free. */
static char *profiled(const psplit_model *model, int64_t least_ns) {
  psplit_model *optimized = four_kernels();
  const psplit_profiled_run run = run_of_four(least_ns);
  psplit_diag diag = {0};
  char *text;
  if (psplit_cost_table_profile(model, optimized, &run, &diag, &text) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_model_close(optimized);
  return text;
}

/* The optimised model says exactly what a kernel does, whatever it is called; times fit the whole.
 */
static void a_profiled_run_becomes_a_costs_file(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  char *text = profiled(model, 94000);
  costing b = costed(model, text, NULL);
  /* 86 us in kernels, 8 us between them: 2 us for each of the four. */
  assert_int_equal(b.ns[CONV1] + b.ns[RELU1], 1500 + 50500 + 2 * 2000);
  assert_int_equal(b.ns[CONV2] + b.ns[ADD] + b.ns[RELU2], 30500 + 2000);
  assert_int_equal(b.ns[POOL], 3500 + 2000);
  assert_non_null(strstr(text, "\"outputs\": [\"y\"]")); /* it has no name */
  costing_end(&b);
  free(text);
  psplit_model_close(model);
}

/* Of two stages that compute the same nodes the first one counts; one that ran nothing has no
 * profile. Nodes go by what they make, as names of nodes may be in several stages. */
static void profiles_of_stages_become_one_file(void **state) {
  (void)state;
  psplit_model *model = residual_block(), *optimized = four_kernels();
  const psplit_profiled_stage ran = {model, optimized, run_of_four(94000)};
  const psplit_profiled_stage stages[] = {ran, {.model = model}, ran};
  psplit_diag diag = {0};
  char *text;
  assert_int_equal(psplit_cost_table_profile_stages("split", stages, 3, &diag, &text), PSPLIT_OK);
  costing b = costed(model, text, NULL);
  assert_int_equal(b.ns[CONV1] + b.ns[RELU1], 1500 + 50500 + 2 * 2000);
  assert_int_equal(b.ns[CONV2] + b.ns[ADD] + b.ns[RELU2], 30500 + 2000);
  assert_int_equal(b.ns[POOL], 3500 + 2000);
  assert_non_null(strstr(text, "\"model\": \"split\""));
  assert_null(strstr(text, "\"nodes\""));
  costing_end(&b);
  free(text);
  assert_int_equal(psplit_cost_table_profile_stages("split", stages + 1, 1, &diag, &text),
                   PSPLIT_INVALID);
  psplit_model_close(optimized);
  psplit_model_close(model);
}

/* To start a kernel takes so much and no more: what a busy machine took besides is not each
 * kernel's alike, which would shift work to where the small ones are. */
static void a_busy_machine_makes_all_kernels_longer_by_as_much(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  char *text = profiled(model, 2 * 86000 + 4 * 3000);
  costing b = costed(model, text, NULL);
  assert_int_equal(b.ns[CONV1] + b.ns[RELU1], 2 * (1500 + 50500) + 2 * 3000);
  assert_int_equal(b.ns[POOL], 2 * 3500 + 3000);
  costing_end(&b);
  free(text);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_profiled_run_becomes_a_costs_file),
    cmocka_unit_test(profiles_of_stages_become_one_file),
    cmocka_unit_test(a_busy_machine_makes_all_kernels_longer_by_as_much),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
