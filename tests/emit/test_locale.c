/* Why: numbers stand in what the library brings along (defaults of passes, patterns), in what it is
 * given and in what it writes. All of that is the same in a program that writes 0,5: the files are,
 * byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/file.h>
#include <psplit/gradient.h>
#include <psplit/psplit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comma_locale.h"
#include "scratch.h"
#include "text_model.h"

static const char MODEL[] =
  "(float[4,2] x) => (float[1,1] y) "
  "<float[2,2] A = {1, 2.5, 3, 4}, float[2,2] B = {5, 6, 7.5, 8}, float HALF = {0.5}> {"
  " a = MatMul (x, A) r = Mul (a, HALF) g = Relu (r) b = MatMul (g, B)"
  " s = ReduceMean <keepdims = 0> (b) y = Flatten <axis = 0> (s) }";
static const char DEVICES[] =
  "{\"devices\": [{\"name\": \"a\", \"flops_per_second\": {\"float32\": 1.5e9}, "
  "\"memory_bandwidth\": 2.5e9, \"efficiency\": {\"matmul\": 0.7}}, "
  "{\"name\": \"b\", \"flops_per_second\": {\"float32\": 1.25e9}, \"memory_bandwidth\": 2e9}], "
  "\"links\": [{\"from\": \"a\", \"to\": \"b\", \"bytes_per_second\": 1.5e9}]}";

static void ok(psplit_code code, const psplit_diag *diag) {
  if (code != PSPLIT_OK) fail_msg("%s: %s", psplit_code_name(code), diag->message);
}

static char *contents(const char *directory, const char *name, size_t *out_n) {
  char path[64], *text = NULL;
  psplit_diag diag = {0};
  snprintf(path, sizeof path, "%s/%s", directory, name);
  ok(psplit_file_read(path, NULL, &diag, &text, out_n), &diag);
  return text;
}

static void same_file(const char *a, const char *b, const char *name) {
  size_t n_a, n_b;
  char *left = contents(a, name, &n_a), *right = contents(b, name, &n_b);
  assert_int_equal(n_a, n_b);
  assert_memory_equal(left, right, n_a);
  free(left);
  free(right);
}

static void split(const psplit_model *model, const char *directory) {
  psplit_diag diag = {0};
  psplit_devices *devices = NULL;
  psplit_planner *planner = NULL;
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  ok(psplit_devices_parse(DEVICES, strlen(DEVICES), &diag, &devices), &diag);
  options.devices = devices;
  ok(psplit_planner_create(model, &options, &diag, &planner), &diag);
  ok(psplit_planner_run(planner, NULL, &diag), &diag);
  ok(psplit_emit(model, psplit_planner_plan(planner), directory, NULL, &diag), &diag);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
}

static void write_update(const psplit_model *model, const char *path) {
  psplit_diag diag = {0};
  psplit_gradient *gradient = NULL;
  const psplit_training_options options = {.loss_output = "s"};
  ok(psplit_gradient_create(model, &options, NULL, &diag, &gradient), &diag);
  ok(psplit_gradient_write_update(gradient, "momentum:momentum=0.5", path, &diag), &diag);
  psplit_gradient_destroy(gradient);
}

static void check_pipeline_text(void) {
  psplit_diag diag = {0};
  char *text = NULL;
  ok(psplit_pipeline_canonical("partition:gap=0.5", &diag, &text), &diag);
  assert_non_null(strstr(text, "gap=0.5"));
  free(text);
}

static void changes_nothing(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  write_model_text("model.onnx", MODEL);
  ok(psplit_model_open("model.onnx", NULL, &diag, &model), &diag);
  split(model, "plain");
  write_update(model, "plain/update.onnx");
  for (int i = 0; i < N_POINTS; i++) {
    char directory[16], update[32];
    use_point(&POINTS[i]);
    snprintf(directory, sizeof directory, "split%d", i);
    snprintf(update, sizeof update, "%s/update.onnx", directory);
    split(model, directory);
    write_update(model, update);
    check_pipeline_text();
    use_plain_point();
    same_file("plain", directory, "pipeline.json");
    same_file("plain", directory, "update.onnx");
  }
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(changes_nothing, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
