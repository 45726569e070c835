/* Policies in files: what is written is read again, what is none is refused, also out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "policy.h"
#include "scratch.h"
#include "text_model.h"

static psplit_policy *made(uint64_t seed) {
  psplit_diag diag = {0};
  psplit_policy *policy;
  assert_int_equal(psplit_policy_create(seed, &diag, &policy), PSPLIT_OK);
  return policy;
}

static void again(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    psplit_diag diag = {0};
    psplit_policy *policy = made(seed), *found = NULL;
    if (psplit_policy_write(policy, "policy.onnx", &diag) != PSPLIT_OK ||
        psplit_policy_read("policy.onnx", &diag, &found) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    assert_memory_equal(&found->network, &policy->network, sizeof policy->network);
    psplit_policy_destroy(found);
    psplit_policy_destroy(policy);
  }
}

/* Each weight of the first tensor, the last, and one of a round is looked at. */
static void no_weights(void **state) {
  (void)state;
  static const float wrong[] = {NAN, INFINITY, -INFINITY, 1e6f, -1e6f};
  const size_t n = sizeof(psplit_i_policy_network) / sizeof(psplit_i_real);
  const size_t places[] = {0, n / 2, n - 1};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong * 3; i++) {
    psplit_diag diag = {0};
    psplit_policy *policy = made(1), *found = NULL;
    ((psplit_i_real *)&policy->network)[places[i % 3]] = wrong[i / 3];
    assert_int_equal(psplit_policy_write(policy, "policy.onnx", &diag), PSPLIT_OK);
    assert_int_equal(psplit_policy_read("policy.onnx", &diag, &found), PSPLIT_MALFORMED);
    assert_non_null(strstr(diag.message, "holds what is not a weight"));
    assert_null(found);
    psplit_policy_destroy(policy);
  }
}

static void others(void **state) {
  (void)state;
  const psplit_i_tensor_row *first = &psplit_i_policy_tensors[0];
  const unsigned rows = first->rows, columns = first->columns;
  const struct {
    const char *type, *name;
    unsigned rank, rows, columns;
  } models[] = {
    {"float", "other", 2, rows, columns},         {"double", first->name, 2, rows, columns},
    {"float", first->name, 2, rows + 1, columns}, {"float", first->name, 2, rows, columns + 1},
    {"float", first->name, 1, rows, 1},
  };
  char wanted[96];
  snprintf(wanted, sizeof wanted, "it has no %ux%u floats \"%s\"", rows, columns, first->name);
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    psplit_diag diag = {0};
    psplit_policy *found = NULL;
    psplit_i_text text = {0};
    psplit_i_text_addf(&text, "(float[1] x) => (float[1] y) <%s[%u", models[i].type,
                       models[i].rows);
    if (models[i].rank == 2) psplit_i_text_addf(&text, ",%u", models[i].columns);
    psplit_i_text_addf(&text, "] %s = raw {0 * %u}> { y = Neg (x) }", models[i].name,
                       models[i].rows * models[i].columns);
    write_model_text("policy.onnx", text.bytes);
    psplit_i_text_fini(&text);
    assert_int_equal(psplit_policy_read("policy.onnx", &diag, &found), PSPLIT_MALFORMED);
    if (!strstr(diag.message, wanted)) fail_msg("%s", diag.message);
    assert_int_equal(psplit_policy_read("policy.onnx", NULL, &found), PSPLIT_MALFORMED);
    assert_null(found);
  }
  psplit_diag diag = {0};
  psplit_policy *policy = made(1), *found = NULL;
  assert_int_equal(psplit_policy_read("none.onnx", &diag, &found), PSPLIT_IO);
  assert_int_equal(psplit_policy_write(policy, "nowhere/policy.onnx", &diag), PSPLIT_IO);
  psplit_policy_destroy(policy);
}

/* Written again and read, with one allocation that fails. */
static psplit_code write_and_read(const psplit_policy *policy, psplit_diag *diag) {
  psplit_policy *found = NULL;
  psplit_code code = psplit_policy_write(policy, "policy.onnx", diag);
  if (code == PSPLIT_OK) code = psplit_policy_read("policy.onnx", diag, &found);
  if (code == PSPLIT_OK)
    assert_memory_equal(&found->network, &policy->network, sizeof policy->network);
  psplit_policy_destroy(found);
  return code;
}

static void out_of_memory(void **state) {
  (void)state;
  psplit_policy *policy = made(2);
  long nth = 0;
  for (bool failed = true; failed; nth++) {
    psplit_diag diag = {0};
    const long live = live_blocks();
    fail_allocation_after(nth);
    const psplit_code code = write_and_read(policy, &diag);
    failed = stop_failing();
    if (code != (failed ? PSPLIT_NOMEM : PSPLIT_OK) || live_blocks() != live)
      fail_msg("allocation %ld: %s, %s, %ld blocks stay", nth, psplit_code_name(code), diag.message,
               live_blocks() - live);
  }
  assert_true(nth > 50);
  psplit_policy_destroy(policy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(again, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(no_weights, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(others, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(out_of_memory, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
