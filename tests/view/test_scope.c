/* Titles of supernodes from the scope names of their members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base.h"
#include "module_scope.h"

static void expect_titles(const psplit_i_scoped *groups, uint32_t n, const char *const *expected) {
  psplit_i_arena arena;
  psplit_diag diag = {0};
  const char *titles[8], *scopes[8];
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_scope_titles(groups, n, &arena, &diag, titles, scopes), PSPLIT_OK);
  for (uint32_t g = 0; g < n; g++) assert_string_equal(titles[g], expected[g]);
  psplit_i_arena_fini(&arena);
}

#define GROUP(main_, ...)                                                            \
  {                                                                                  \
    .names = (const char *const[]){__VA_ARGS__},                                     \
    .n = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), .main = main_, \
    .fallback = "#7 (Relu)"                                                          \
  }

/* The scope that all members share, whole components only. */
static void test_shared_scope(void **state) {
  (void)state;
  const psplit_i_scoped groups[] = {
    GROUP(0, "/encoder/layers/3/attn/MatMul", "/encoder/layers/3/attn/Add"),
    GROUP(0, "/encoder/layers/1/fc/Gemm", "/encoder/layers/10/fc/Gemm"),
    GROUP(1, "/head/a/Conv", "", "/head/b/Conv"),
  };
  expect_titles(groups, 3,
                (const char *const[]){"encoder.layers.3.attn", "encoder.layers", "head"});
}

/* Exporters that repeat a parent in its child's name. */
static void test_repeated_parent(void **state) {
  (void)state;
  const psplit_i_scoped groups[] = {GROUP(0, "/layer1/layer1.0/conv1/Conv")};
  expect_titles(groups, 1, (const char *const[]){"layer1.0.conv1"});
}

/* Without a scope: the main member's name, or what stands for it. */
static void test_no_scope(void **state) {
  (void)state;
  const psplit_i_scoped groups[] = {GROUP(1, "Conv_0", "Relu_1"), GROUP(0, "", "Relu_2")};
  expect_titles(groups, 2, (const char *const[]){"Relu_1", "#7 (Relu)"});
}

/* Equal titles are told apart, also from names that look like numbered ones. */
static void test_distinct(void **state) {
  (void)state;
  const psplit_i_scoped groups[] = {
    GROUP(0, "/a/Conv"), GROUP(0, "/a/Conv_1"), GROUP(0, "x#2"), GROUP(0, "x"), GROUP(0, "x"),
  };
  expect_titles(groups, 5, (const char *const[]){"a:Conv", "a:Conv_1", "x#2", "x", "x#3"});
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shared_scope),
    cmocka_unit_test(test_repeated_parent),
    cmocka_unit_test(test_no_scope),
    cmocka_unit_test(test_distinct),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
