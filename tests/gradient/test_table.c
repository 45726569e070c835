/* The table of rules: in the order that finding one relies on, and every entry found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rule.h"

static void every_entry_is_found(void **state) {
  (void)state;
  uint32_t n;
  const psplit_i_gradient_rule *rules = psplit_i_gradient_rules(&n);
  assert_true(n > 100);
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0) {
      const int domains = strcmp(rules[i - 1].domain, rules[i].domain);
      assert_true(domains < 0 ||
                  (domains == 0 && strcmp(rules[i - 1].op_type, rules[i].op_type) < 0));
    }
    const psplit_i_node node = {
      .op_type = rules[i].op_type, .domain = rules[i].domain, .opset = 18, .function = PSPLIT_NONE};
    assert_ptr_equal(psplit_i_gradient_rule_of(&node), &rules[i]);
  }
}

static void others_are_not(void **state) {
  (void)state;
  const psplit_i_node unknown = {
    .op_type = "Loop", .domain = "", .opset = 18, .function = PSPLIT_NONE};
  const psplit_i_node elsewhere = {
    .op_type = "Relu", .domain = "other", .opset = 1, .function = PSPLIT_NONE};
  const psplit_i_node standard = {
    .op_type = "Relu", .domain = "com.microsoft", .opset = 1, .function = PSPLIT_NONE};
  const psplit_i_node fused = {
    .op_type = "FusedConv", .domain = "", .opset = 18, .function = PSPLIT_NONE};
  const psplit_i_node local = {.op_type = "Relu", .domain = "", .opset = 18, .function = 0};
  const psplit_i_node early = {
    .op_type = "SoftmaxCrossEntropyLoss", .domain = "", .opset = 11, .function = PSPLIT_NONE};
  assert_null(psplit_i_gradient_rule_of(&unknown));
  assert_null(psplit_i_gradient_rule_of(&elsewhere));
  assert_null(psplit_i_gradient_rule_of(&standard));
  assert_null(psplit_i_gradient_rule_of(&fused));
  assert_null(psplit_i_gradient_rule_of(&local));
  assert_null(psplit_i_gradient_rule_of(&early));
}

/* What is trained unless one says otherwise takes a gradient. */
static void parameters_take_gradients(void **state) {
  (void)state;
  uint32_t n, n_places = 0;
  const psplit_i_gradient_rule *rules = psplit_i_gradient_rules(&n);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t parameters = rules[i].weights & PSPLIT_WEIGHTS_PARAMETERS;
    assert_int_equal(parameters & ~rules[i].inputs, 0);
    n_places += parameters != 0;
    if (rules[i].weights) assert_non_null(rules[i].rule);
    if (rules[i].weights & PSPLIT_WEIGHTS_HANDED_ON) assert_true(rules[i].inputs & 1);
  }
  assert_true(n_places > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_entry_is_found),
                                     cmocka_unit_test(others_are_not),
                                     cmocka_unit_test(parameters_take_gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
