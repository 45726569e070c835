/* Why: after training a model is its old file with new numbers, wherever these stood, and nothing
 * else of it has changed, which the proof tells from every other change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/emit.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "text_model.h"

/* A weight in each place that there is: in the file, small and large, in typed fields, outside. */
static const char MODEL[] =
  "<ir_version: 8, opset_import: [\"\": 17], metadata_props: [\"k\": \"v\"]>"
  "g (float[4,4] x) => (float[4,4] y) "
  "<float[4,4] raw = random(1), float[2] typed = {1.0, 2.0}, float[20,30] large = random(3),"
  " float[3] outside = [\"location\": \"d\", \"offset\": \"8\", \"length\": \"12\"],"
  " double[2] real = {1.0, 2.0}, int64[1] kept = {7}, float[0] empty = {}>"
  "{ a = MatMul (x, raw) y = Relu (a) }";

enum { FLOAT = 1, DOUBLE = 11, N_VALUES = 5, MOST = 16384 };

static float numbers[600];
static const psplit_emit_options REPLACING = {.struct_size = sizeof REPLACING, .replace = true};
static const double REALS[] = {3.25, 4.5};
static const int64_t SQUARE[] = {4, 4}, TWO[] = {2}, THREE[] = {3}, LARGE[] = {20, 30};

static void all_values(psplit_weight_value out[N_VALUES]) {
  for (int i = 0; i < 600; i++) numbers[i] = (float)(i * 0.37 - 11);
  const psplit_weight_value values[N_VALUES] = {
    {"raw", FLOAT, 2, SQUARE, 64, numbers},        {"typed", FLOAT, 1, TWO, 8, numbers + 16},
    {"large", FLOAT, 2, LARGE, 2400, numbers},     {"outside", FLOAT, 1, THREE, 12, numbers + 30},
    {"real", DOUBLE, 1, TWO, sizeof REALS, REALS},
  };
  memcpy(out, values, sizeof values);
}

static size_t load(const char *path, unsigned char out[MOST]) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t n = fread(out, 1, MOST, file);
  fclose(file);
  assert_true(n > 0 && n < MOST);
  return n;
}

static void save(const char *path, const void *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

static psplit_model *opened(const char *path) {
  psplit_diag diag = {0};
  psplit_model *model;
  if (psplit_model_open(path, NULL, &diag, &model) != PSPLIT_OK) fail_msg("%s", diag.message);
  return model;
}

static void make_model(void) {
  unsigned char data[40];
  for (unsigned i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * i + 1);
  write_model_text("m.onnx", MODEL);
  save("d", data, sizeof data);
}

static void tell(void *user, const char *name) {
  strcat(user, name);
  strcat(user, " ");
}

/* Verdict of the proof that "n.onnx" is "m.onnx", and the names that it tells. */
static psplit_code prove(char names[200], psplit_diag *diag, psplit_new_values_report *report) {
  psplit_model *before = opened("m.onnx"), *after = NULL;
  const psplit_changed_value changed = {tell, names};
  *names = '\0';
  psplit_code code = psplit_model_open("n.onnx", NULL, diag, &after);
  if (code == PSPLIT_OK)
    code = psplit_verify_new_values(before, after, &changed, NULL, diag, report);
  psplit_model_close(before);
  psplit_model_close(after);
  return code;
}

static void must_emit(const psplit_weight_value *values, size_t n) {
  psplit_diag diag = {0};
  psplit_model *model = opened("m.onnx");
  if (psplit_emit_new_values(model, values, n, "n.onnx", &REPLACING, &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_model_close(model);
}

/* A weight that was a node is an initializer then, wherever its numbers stood. */
static void values_take_the_place_of_constants(void **state) {
  (void)state;
  static const char WITH[] =
    "<ir_version: 8, opset_import: [\"\": 17]> g (float[4,4] x) => (float[4,4] y) {"
    " raw = Constant <value = float[4,4] a = random(1)> () typed = Constant <value_floats = [1.0, "
    "2.0]> ()"
    " large = Constant <value = float[20,30] b = random(3)> ()"
    " outside = Constant <value = float[3] o = [\"location\": \"d\", \"offset\": \"8\", "
    "\"length\": \"12\"]> ()"
    " real = Constant <value = double[2] {1, 2}> () kept = Constant <value = float[2] {5, 6}> ()"
    " a = MatMul (x, raw) y = Relu (a) }";
  psplit_weight_value values[N_VALUES];
  psplit_new_values_report report;
  psplit_diag diag = {0};
  psplit_initializer found;
  char names[200];
  float back[600];
  make_model();
  write_model_text("m.onnx", WITH);
  all_values(values);
  must_emit(values, N_VALUES);
  if (prove(names, &diag, &report) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_string_equal(names, "raw typed large outside real ");
  psplit_model *after = opened("n.onnx");
  assert_int_equal(psplit_model_read_initializer(after, "large", back, 2400, &diag), PSPLIT_OK);
  assert_memory_equal(back, numbers, 2400);
  assert_int_equal(psplit_model_initializer(after, "typed", &diag, &found), PSPLIT_OK);
  assert_int_equal(psplit_model_initializer(after, "kept", &diag, &found), PSPLIT_USAGE);
  psplit_model_close(after);
  values[0].data_type = DOUBLE;
  psplit_model *model = opened("m.onnx");
  assert_int_equal(psplit_emit_new_values(model, values, 1, "n.onnx", &REPLACING, &diag),
                   PSPLIT_INVALID);
  psplit_model_close(model);
}

static void values_take_the_place_of_any_form(void **state) {
  (void)state;
  psplit_weight_value values[N_VALUES];
  static unsigned char file[MOST];
  psplit_new_values_report report;
  psplit_diag diag = {0};
  char names[200];
  make_model();
  all_values(values);
  must_emit(values, N_VALUES);
  if (prove(names, &diag, &report) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_string_equal(names, "raw typed large outside real ");
  assert_int_equal(report.n_initializers, 7);
  assert_int_equal(report.n_changed, 5);
  const size_t n = load("n.onnx", file);
  for (int i = 0; i < N_VALUES; i++)
    assert_non_null(memmem(file, n, values[i].data, (size_t)values[i].n_bytes));
  must_emit(values, 0);
  assert_int_equal(prove(names, &diag, &report), PSPLIT_OK);
  assert_string_equal(names, "");
  static unsigned char other[MOST];
  assert_int_equal(load("n.onnx", file), load("m.onnx", other));
  assert_memory_equal(file, other, n < MOST ? load("m.onnx", other) : 0);
}

/* Where the data stays in the file, all other bytes stay where they are. */
static void no_other_byte_changes(void **state) {
  (void)state;
  psplit_weight_value values[N_VALUES];
  static unsigned char before[MOST], after[MOST];
  make_model();
  all_values(values);
  must_emit(values + 2, 1);
  const size_t n = load("m.onnx", before);
  assert_int_equal(load("n.onnx", after), n);
  const unsigned char *at = memmem(after, n, numbers, 2400);
  assert_non_null(at);
  const size_t begin = (size_t)(at - after);
  assert_memory_equal(before, after, begin);
  assert_memory_equal(before + begin + 2400, after + begin + 2400, n - begin - 2400);
}

/* Bits of the new file turned: the proof fails, or tells of another weight, unless the bit is
 * one of a weight that it tells of anyway. */
static void every_other_change_is_told(void **state) {
  (void)state;
  psplit_weight_value values[N_VALUES];
  static unsigned char file[MOST];
  char names[200];
  unsigned told = 0, listed = 0;
  make_model();
  all_values(values);
  must_emit(values, 1);
  const size_t n = load("n.onnx", file);
  const unsigned char *raw = memmem(file, n, numbers, 64);
  assert_non_null(raw);
  enum { LONG = 300, STRIDE = 97 }; /* most of the file is one weight's data */
  for (size_t at = 0; at<n; at += at> LONG && at + LONG < n ? STRIDE : 1)
    for (int bit = 0; bit < 8; bit += 3) {
      psplit_diag diag = {0};
      psplit_new_values_report report;
      const bool own = file + at >= raw && file + at < raw + 64;
      file[at] ^= (unsigned char)(1 << bit);
      save("n.onnx", file, n);
      file[at] ^= (unsigned char)(1 << bit);
      const psplit_code code = prove(names, &diag, &report);
      if (own) assert_int_equal(code, PSPLIT_OK);
      if (own) continue;
      if (code == PSPLIT_OK && strcmp(names, "raw ") == 0)
        fail_msg("byte %zu, bit %d: no difference is told", at, bit);
      told += code == PSPLIT_MISMATCH;
      listed += code == PSPLIT_OK;
    }
  assert_true(told > 100 && listed > 300);
}

static void expect_emit(const psplit_weight_value *values, size_t n, const char *path,
                        psplit_code code, const char *says) {
  psplit_diag diag = {0};
  psplit_model *model = opened("m.onnx");
  assert_int_equal(psplit_emit_new_values(model, values, n, path, NULL, &diag), code);
  if (strcmp(diag.message, says) != 0) fail_msg("\"%s\" is not \"%s\"", diag.message, says);
  psplit_model_close(model);
}

static void a_weight_of_a_branch_is_said(void **state) {
  (void)state;
  psplit_weight_value values[N_VALUES];
  make_model();
  all_values(values);
  values[0].name = "w";
  write_model_text("m.onnx",
                   "<ir_version: 8, opset_import: [\"\": 17]>\n"
                   "main (float[4] x, bool c, bool d) => (float[4] y) {\n"
                   "  y = If (c) <then_branch = t () => (a) {\n"
                   "    a = If (d) <then_branch = u () => (p) <float[4] w = {1, 2, 3, 4}> {\n"
                   "      p = Mul (x, w)\n"
                   "    }, else_branch = v () => (q) { q = Neg (x) }>\n"
                   "  }, else_branch = e () => (b) { b = Neg (x) }>\n"
                   "}\n");
  expect_emit(values, 1, "n.onnx", PSPLIT_INVALID,
              "m.onnx has initializer w in a body: give the model with the same Ifs inlined, which "
              "is the stage of a split with them in one stage");
  values[0].name = "x";
  expect_emit(values, 1, "n.onnx", PSPLIT_INVALID,
              "m.onnx has no initializer x: the weights are another model's");
}

static void what_cannot_be_is_said(void **state) {
  (void)state;
  psplit_weight_value values[N_VALUES];
  make_model();
  all_values(values);
  values[1] = values[0];
  expect_emit(values, 2, "n.onnx", PSPLIT_USAGE, "two new values of raw");
  values[1].name = "none";
  expect_emit(values, 2, "n.onnx", PSPLIT_INVALID,
              "m.onnx has no initializer none: the weights are another model's");
  values[1].name = "typed";
  expect_emit(values, 2, "n.onnx", PSPLIT_INVALID,
              "the new value of typed has another type or shape than in m.onnx");
  values[0].data_type = DOUBLE;
  expect_emit(values, 1, "n.onnx", PSPLIT_INVALID,
              "the new value of raw has another type or shape than in m.onnx");
  values[0].data_type = FLOAT;
  values[0].n_bytes = 60;
  expect_emit(values, 1, "n.onnx", PSPLIT_INVALID,
              "the new value of raw has 60 bytes, which are not those of its shape");
  values[0].n_bytes = 64;
  expect_emit(values, 1, "m.onnx", PSPLIT_IO, "m.onnx is a file of the model itself");
  assert_int_equal(mkdir("there", 0777), 0);
  expect_emit(values, 1, "there/n.onnx", PSPLIT_UNSUPPORTED,
              "there/n.onnx: the model has external data, which it finds from its own directory "
              "alone; write the file beside m.onnx");
  assert_int_not_equal(access("n.onnx", F_OK), 0);
}

/* The model as text, with something else in it; `to` may stand for what is added behind. */
static void write_variant(const char *path, const char *from, const char *to) {
  char text[2048];
  const char *at = strstr(MODEL, from);
  assert_non_null(at);
  const int n =
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - MODEL), MODEL, to, at + strlen(from));
  assert_true(n > 0 && n < (int)sizeof text);
  write_model_text(path, text);
}

#define FIELD(what) "n.onnx is not m.onnx with other weights: " what " differs"

static void another_model_is_told(void **state) {
  (void)state;
  static const struct {
    const char *from, *to;
    const char *says; /* the difference, or the weights that alone differ */
  } cases[] = {
    {"\"v\"]", "\"w\"]", FIELD("the model's field \"metadata_props\"")},
    {", metadata_props: [\"k\": \"v\"]", "", FIELD("the model's field \"metadata_props\"")},
    {"[\"k\": \"v\"]", "[\"k\": \"v\", \"l\": \"v\"]",
     FIELD("the model's field \"metadata_props\"")},
    {"[\"k\": \"v\"]", "[\"k\": \"v\"], 4000: \"new\"", FIELD("the model's field \"unknown\"")},
    {"ir_version: 8", "ir_version: 9", FIELD("the model's field \"ir_version\"")},
    {"Relu (a)", "Abs (a)", FIELD("the graph's field \"node\"")},
    {" y = Relu", " z = Neg (a) y = Relu", FIELD("the graph's field \"node\"")},
    {"float[0] empty = {}", "float[0] empty = {}, float[1] more = {1}",
     FIELD("the graph's field \"input\"")},
    {", float[0] empty = {}", "", FIELD("the graph's field \"initializer\"")},
    {"(float[4,4] y)", "(float[4,4] y, float[4,4] a)", FIELD("the graph's field \"output\"")},
    {"(float[4,4] y)", "(float[4,4] y) @{4000: \"new\"}", FIELD("the graph's field \"unknown\"")},
    {"float[2] typed", "float[1,2] typed",
     FIELD("in its name, type or shape the initializer \"typed\"")},
    {"typed =", "other =", FIELD("in its name, type or shape the initializer \"typed\"")},
    {"int64[1] kept = {7}", "int32[1] kept = {7}",
     FIELD("in its name, type or shape the initializer \"kept\"")},
    {"{7}", "{8}", "raw kept "},
    {"{7}", "raw {8}", "raw kept "},
    {"\"offset\": \"8\"", "\"offset\": \"20\"", "raw outside "},
    {"\"offset\": \"8\", ", "", "raw outside "},
  };
  make_model();
  write_variant("m.onnx", "raw = random(1)", "raw = random(2)");
  const unsigned char same[40] = {0}; /* of data outside, the place alone differs */
  save("d", same, sizeof same);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_diag diag = {0};
    char names[200];
    write_variant("n.onnx", cases[i].from, cases[i].to);
    const psplit_code code = prove(names, &diag, NULL);
    if (strcmp(code == PSPLIT_OK ? names : diag.message, cases[i].says) != 0)
      fail_msg("%s: %s: %s; told: %s", cases[i].to, psplit_code_name(code), diag.message, names);
  }
}

/* The same weights, longer than what is read at once, until one of the files breaks off. */
static void data_is_read_to_its_end(void **state) {
  (void)state;
  enum { BYTES = (3 << 20) + 12 };
  static const char OUTSIDE[] =
    "<ir_version: 8, opset_import: [\"\": 17]> g (float[1] x) => (float[1] y) "
    "<float[786435] w = [\"location\": \"%s\"]> { y = Relu (x) }";
  char names[200], text[sizeof OUTSIDE];
  unsigned char *data = calloc(BYTES, 1);
  assert_non_null(data);
  for (int f = 0; f < 2; f++) {
    snprintf(text, sizeof text, OUTSIDE, f ? "e" : "d");
    write_model_text(f ? "n.onnx" : "m.onnx", text);
    data[BYTES - 1] = 0;
    save(f ? "e" : "d", data, BYTES);
  }
  psplit_diag diag = {0};
  psplit_new_values_report report;
  int cancel = 1;
  assert_int_equal(prove(names, &diag, &report), PSPLIT_OK);
  assert_string_equal(names, "w "); /* another place */
  assert_int_equal(report.compared_bytes, BYTES);
  data[BYTES - 1] = 1;
  save("e", data, BYTES);
  free(data);
  psplit_model *before = opened("m.onnx"), *after = opened("n.onnx");
  assert_int_equal(psplit_verify_new_values(before, after, NULL, NULL, &diag, &report), PSPLIT_OK);
  assert_int_equal(report.n_changed, 1);
  assert_int_equal(psplit_verify_new_values(before, after, NULL, &cancel, &diag, NULL),
                   PSPLIT_CANCELLED);
  for (int f = 1; f >= 0; f--) {
    diag = (psplit_diag){0};
    assert_int_equal(truncate(f ? "e" : "d", 2 << 20), 0);
    assert_int_equal(psplit_verify_new_values(before, after, NULL, NULL, &diag, NULL), PSPLIT_IO);
    assert_non_null(strstr(diag.message, f ? "e" : "d"));
  }
  psplit_model_close(before);
  psplit_model_close(after);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    IN_SCRATCH(values_take_the_place_of_constants),
    IN_SCRATCH(values_take_the_place_of_any_form),
    IN_SCRATCH(no_other_byte_changes),
    IN_SCRATCH(every_other_change_is_told),
    IN_SCRATCH(what_cannot_be_is_said),
    IN_SCRATCH(a_weight_of_a_branch_is_said),
    IN_SCRATCH(another_model_is_told),
    IN_SCRATCH(data_is_read_to_its_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
