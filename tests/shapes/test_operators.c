/* Facts about operators by name: every row of rules.def is found, by its domain alone, and says
 * what it says there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "infer.h"
#include "operator.h"

typedef struct row {
  const char *domain, *op_type;
} row;

static const row ROWS[] = {
#define PSPLIT_RULE(domain, op, ...) {domain, op},
#define PSPLIT_NO_RULE(domain, op, flags) {domain, op},
#include "rules.def"
#undef PSPLIT_RULE
#undef PSPLIT_NO_RULE
};
enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

static bool has(const char *domain, const char *op_type, unsigned flags) {
  const psplit_i_node node = {.domain = domain, .op_type = op_type, .function = PSPLIT_NONE};
  return psplit_i_node_has(&node, flags);
}

static void test_every_row_is_found(void **state) {
  (void)state;
  for (uint32_t i = 0; i < N_ROWS; i++) {
    const bool again = i && strcmp(ROWS[i].op_type, ROWS[i - 1].op_type) == 0 &&
                       strcmp(ROWS[i].domain, ROWS[i - 1].domain) == 0;
    const uint32_t first = psplit_i_operator_row(ROWS[i].domain, ROWS[i].op_type);
    if (again)
      assert_in_range(first, 0, i - 1);
    else
      assert_int_equal(first, i);
  }
}

static void test_names_without_a_row(void **state) {
  (void)state;
  assert_int_equal(psplit_i_operator_row("", ""), PSPLIT_NONE);
  assert_int_equal(psplit_i_operator_row("", "add"), PSPLIT_NONE);
  assert_int_equal(psplit_i_operator_row("my.domain", "Add"), PSPLIT_NONE);
  assert_int_equal(psplit_i_operator_row("A", "dd"), PSPLIT_NONE);
  assert_int_equal(psplit_i_op_class("my.domain", "Conv"), PSPLIT_CLASS_OTHER);
  assert_false(has("my.domain", "Add", ~0u));
}

static void test_classes(void **state) {
  (void)state;
  assert_int_equal(psplit_i_op_class("", "Conv"), PSPLIT_CLASS_CONV);
  assert_int_equal(psplit_i_op_class("", "Shape"), PSPLIT_CLASS_SHAPE);
  assert_int_equal(psplit_i_op_class("com.microsoft", "QGemm"), PSPLIT_CLASS_MATMUL);
  assert_int_equal(psplit_i_op_class("com.microsoft", "BeamSearch"), PSPLIT_CLASS_CONTROL);
  assert_int_equal(psplit_i_op_class("com.microsoft", "EPContext"), PSPLIT_CLASS_OTHER);
}

static void test_flags(void **state) {
  (void)state;
  assert_true(has("", "Add", PSPLIT_I_OP_COMMUTATIVE));
  assert_true(has("", "Add", PSPLIT_I_OP_KERNEL_TAIL));
  assert_false(has("", "Add", PSPLIT_I_OP_RANDOM));
  assert_false(has("", "Sub", ~0u));
  assert_true(has("com.microsoft", "GatherND", PSPLIT_I_OP_READS_PART));
  assert_true(has("com.microsoft", "BitmaskDropout", PSPLIT_I_OP_RANDOM));
  /* Rows for several ranges of opsets. */
  assert_false(has("", "Resize", ~0u));
}

/* A call of a function of the model is what the function says, whatever its name. */
static void test_functions_have_no_flags(void **state) {
  (void)state;
  const psplit_i_node node = {.domain = "", .op_type = "Bernoulli", .function = 0};
  assert_false(psplit_i_node_has(&node, ~0u));
}

static void test_kernels_are_found_without_a_domain(void **state) {
  (void)state;
  assert_true(psplit_i_kernel_has("Loop", PSPLIT_I_OP_RUNS_OTHERS));
  assert_true(psplit_i_kernel_has("BeamSearch", PSPLIT_I_OP_RUNS_OTHERS));
  assert_true(psplit_i_kernel_has("ReorderInput", PSPLIT_I_OP_FOR_NEXT));
  assert_true(psplit_i_kernel_has("ReorderOutput", PSPLIT_I_OP_LAYOUT));
  assert_false(psplit_i_kernel_has("ReorderOutput", PSPLIT_I_OP_FOR_NEXT));
  assert_false(psplit_i_kernel_has("FusedConv", ~(unsigned)PSPLIT_I_OP_BLOCKED));
}

/* inputs.def: found by bisection, so it has to be in order, and of operators that are known. */
static void test_inputs(void **state) {
  (void)state;
  static const row OF[] = {
#define PSPLIT_INPUTS(domain, op, since, inputs) {domain, op},
#include "inputs.def"
#undef PSPLIT_INPUTS
  };
  assert_true(psplit_i_inputs_sorted());
  for (size_t i = 0; i < sizeof OF / sizeof *OF; i++)
    assert_int_not_equal(psplit_i_operator_row(OF[i].domain, OF[i].op_type), PSPLIT_NONE);
  assert_null(psplit_i_inputs_of("", "Mish", 13));
  assert_null(psplit_i_inputs_of("", "Zzz", 13));
  assert_string_equal(psplit_i_inputs_of("", "Slice", 9), ".");
  assert_string_equal(psplit_i_inputs_of("", "Slice", 10), ".TTT?T?");
  assert_string_equal(psplit_i_inputs_of("", "Slice", 25), ".TTT?T?");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_row_is_found),
    cmocka_unit_test(test_names_without_a_row),
    cmocka_unit_test(test_classes),
    cmocka_unit_test(test_flags),
    cmocka_unit_test(test_functions_have_no_flags),
    cmocka_unit_test(test_kernels_are_found_without_a_domain),
    cmocka_unit_test(test_inputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
