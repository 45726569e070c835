/* Why: what a run has trained goes back into the model that it came from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/checkpoint.h>
#include <psplit/emit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "failing.h"
#include "scratch.h"
#include "text_model.h"

enum { FLOAT = 1 };
static const psplit_emit_options REPLACING = {.struct_size = sizeof REPLACING, .replace = true};
static const int64_t TWO[] = {2}, FOUR[] = {4};
static const float NEW_A[] = {10, 20}, NEW_B[] = {30, 40, 50, 60}, STATE[] = {7, 8};

static void make_checkpoint(void) {
  static const psplit_i_manifest_dim two[] = {{2, NULL}}, four[] = {{4, NULL}};
  static const psplit_i_trained_weight weights[] = {
    {.name = "a", .dtype = "float32", .shape = {1, two}},
    {.name = "b", .dtype = "float32", .shape = {1, four}}};
  const psplit_i_checkpoint_tensor first[] = {
    {{.name = "b", .data_type = FLOAT, .n_dims = 1, .dims = FOUR, .n_bytes = 16}, NEW_B}};
  const psplit_i_checkpoint_tensor second[] = {
    {{.name = "a.momentum", .data_type = FLOAT, .n_dims = 1, .dims = TWO, .n_bytes = 8}, STATE},
    {{.name = "a", .data_type = FLOAT, .n_dims = 1, .dims = TWO, .n_bytes = 8}, NEW_A}};
  psplit_diag diag = {0};
  psplit_i_checkpoint_writer writer;
  uint64_t bytes[2];
  const psplit_i_checkpoint_state state = {
    .step = 12, .seed = 3, .optimizer = "momentum", .n_stages = 2};
  assert_int_equal(psplit_i_checkpoint_begin("c", &diag, &writer), PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_write_stage(writer.path, 1, second, 2, &diag, &bytes[1]),
                   PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_write_stage(writer.path, 0, first, 1, &diag, &bytes[0]),
                   PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_commit(&writer, &state, weights, 2, bytes, &diag),
                   PSPLIT_OK);
}

static void make_model(const char *path, const char *b) {
  char text[300];
  snprintf(text, sizeof text,
           "g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, %s, float[1] kept = {9}> "
           "{ t = Add (x, a) y = Add (t, kept) }",
           b);
  write_model_text(path, text);
}

static psplit_model *opened(const char *path) {
  psplit_diag diag = {0};
  psplit_model *model;
  if (psplit_model_open(path, NULL, &diag, &model) != PSPLIT_OK) fail_msg("%s", diag.message);
  return model;
}

static void a_checkpoint_tells_what_it_holds(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_checkpoint *c;
  float values[4];
  make_checkpoint();
  assert_int_equal(psplit_checkpoint_open("c", &diag, &c), PSPLIT_OK);
  const psplit_checkpoint_info *info = psplit_checkpoint_get_info(c);
  assert_int_equal(info->step, 12);
  assert_int_equal(info->seed, 3);
  assert_string_equal(info->optimizer, "momentum");
  assert_int_equal(info->n_stages, 2);
  assert_int_equal(info->n_weights, 2);
  assert_string_equal(info->weights[0].name, "a");
  assert_string_equal(info->weights[1].name, "b");
  assert_int_equal(info->weights[1].dims[0], 4);
  assert_int_equal(psplit_checkpoint_read(c, 1, &diag, values), PSPLIT_OK);
  assert_memory_equal(values, NEW_B, sizeof NEW_B);
  assert_int_equal(psplit_checkpoint_read(c, 2, &diag, values), PSPLIT_USAGE);
  psplit_checkpoint_close(c);
}

static void trained_weights_go_into_the_model(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_checkpoint *c;
  char file[4096];
  make_checkpoint();
  make_model("m.onnx", "float[4] b = raw {1, 2, 3, 4}");
  psplit_model *model = opened("m.onnx");
  assert_int_equal(psplit_checkpoint_open("c", &diag, &c), PSPLIT_OK);
  const long before = live_blocks();
  bool failed = true;
  for (long nth = 0; failed; nth++) {
    diag = (psplit_diag){0};
    fail_allocation_after(nth);
    const psplit_code code = psplit_checkpoint_export(c, model, "n.onnx", &REPLACING, &diag);
    failed = stop_failing();
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    assert_int_equal(live_blocks(), before);
  }
  psplit_model_close(model);
  psplit_model_close(opened("n.onnx"));
  FILE *in = fopen("n.onnx", "rb");
  const size_t n = fread(file, 1, sizeof file, in);
  fclose(in);
  assert_non_null(memmem(file, n, NEW_A, sizeof NEW_A));
  assert_non_null(memmem(file, n, NEW_B, sizeof NEW_B));
  assert_null(memmem(file, n, STATE, sizeof STATE));
  static const char *const others[][2] = {
    {"float[3] b = {1, 2, 3}", "the new value of b has another type or shape than in o.onnx"},
    {"float[4] d = {1, 2, 3, 4}", "o.onnx has no initializer b: the weights are another model's"}};
  for (int i = 0; i < 2; i++) {
    make_model("o.onnx", others[i][0]);
    model = opened("o.onnx");
    diag = (psplit_diag){0};
    assert_int_equal(psplit_checkpoint_export(c, model, "p.onnx", &REPLACING, &diag),
                     PSPLIT_INVALID);
    assert_string_equal(diag.message, others[i][1]);
    psplit_model_close(model);
  }
  psplit_checkpoint_close(c);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    IN_SCRATCH(a_checkpoint_tells_what_it_holds),
    IN_SCRATCH(trained_weights_go_into_the_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
