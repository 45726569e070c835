/* Why: a step trains on the data that it was given, under the names it was given by; a label that
 * is no class, or data that does not fit, is told with its file and its row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/random.h>
#include <stdlib.h>
#include <string.h>

#include "casts.h"
#include "failing.h"
#include "feeding.h"
#include "held_values.h"
#include "made_files.h"
#include "scratch.h"

enum { X, Y, K, MASK, N_INPUTS, N_ROWS = 7 };

/* --- a model that trains: rows, labels, an array for all, and what is drawn --- */

static const psplit_i_manifest_dim X_DIMS[] = {{-1, "n"}, {2, NULL}}, Y_DIMS[] = {{-1, "n"}},
                                   K_DIMS[] = {{-1, "k"}}, LOGITS[] = {{-1, "n"}, {5, NULL}};
static const psplit_i_manifest_dim FIXED_ROWS[] = {{2, NULL}, {2, NULL}};
static const char *const INPUTS[] = {"x", "y", "k", "mask"},
                         *const OUTPUTS[] = {"loss", "logits", "other"}, *const N_SYMBOL[] = {"n"},
                         *const K_SYMBOL[] = {"k"}, *const NO_SYMBOL[] = {"m"};
static const psplit_i_manifest_value OUTPUT_VALUES[] = {
  {"loss", "float32", {0, NULL}}, {"logits", "float32", {2, LOGITS}}, {"other", NULL, {-1, NULL}}};
static const psplit_i_size_term N_TERM = {1, N_SYMBOL, 1}, K_TERM = {1, K_SYMBOL, 1},
                                NO_TERM = {1, NO_SYMBOL, 1};
static const psplit_i_mask_size SIZES[] = {{&N_TERM, 1}, {&K_TERM, 1}}, NO_SIZE[] = {{&NO_TERM, 1}};
static psplit_i_manifest_value values[N_INPUTS];
static psplit_i_mask_row mask;
static psplit_i_training_table table;
static psplit_i_manifest manifest;
static const psplit_feed_file DATA[] = {{"x", "x.npy"}, {"y", "y.npy"}}, FIXED[] = {{"k", "k.npy"}},
                              FIXED_Y[] = {{"k", "k.npy"}, {"y", "y.npy"}};
static psplit_train_options options;

static int enter(void **state) {
  static const float x[N_ROWS * 2] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
                                k[3] = {7, 8, 9};
  static const int64_t y[N_ROWS] = {0, 1, 2, 3, 4, 0, 1};
  if (enter_scratch(state)) return 1;
  put_npy("x.npy", "<f4", "False", "(7, 2)", x, sizeof x);
  put_npy("y.npy", "<i8", "False", "(7,)", y, sizeof y);
  put_npy("k.npy", "<f4", "False", "(3,)", k, sizeof k);
  values[X] = (psplit_i_manifest_value){"x", "float32", {2, X_DIMS}};
  values[Y] = (psplit_i_manifest_value){"y", "int64", {1, Y_DIMS}};
  values[K] = (psplit_i_manifest_value){"k", "float32", {1, K_DIMS}};
  values[MASK] = (psplit_i_manifest_value){"mask", "bool", {2, X_DIMS}};
  mask = (psplit_i_mask_row){.name = "mask",
                             .tensor = "mask",
                             .kind = PSPLIT_DRAW_KEEP,
                             .ratio = 0.5,
                             .rank = 2,
                             .shape = SIZES};
  table = (psplit_i_training_table){.loss = "softmax-cross-entropy:logits=logits,labels=y",
                                    .loss_tensor = "loss",
                                    .n_masks = 1,
                                    .masks = &mask};
  manifest = (psplit_i_manifest){.n_inputs = N_INPUTS,
                                 .n_needed = N_INPUTS,
                                 .inputs = INPUTS,
                                 .input_values = values,
                                 .n_outputs = 3,
                                 .outputs = OUTPUTS,
                                 .output_values = OUTPUT_VALUES,
                                 .training = &table};
  psplit_train_options_init(&options);
  options.data = options.eval_data = DATA;
  options.n_data = options.n_eval_data = 2;
  options.fixed = FIXED;
  options.n_fixed = 1;
  options.batch = 4;
  options.n_micro_batches = 2;
  options.in_order = true;
  return 0;
}

static psplit_code open_feeding(psplit_diag *diag, psplit_i_feeding *out) {
  static const bool all[N_INPUTS] = {true, true, true, true};
  const psplit_code code = psplit_i_feeding_open(&HELD_VALUES, &manifest, &options, all, diag, out);
  if (code != PSPLIT_OK) return code;
  const uint64_t rows[] = {out->order[PSPLIT_I_SET_TRAIN].n_rows,
                           out->order[PSPLIT_I_SET_EVAL].n_rows};
  return psplit_i_feeding_settle(out, &options, rows, diag);
}

static void must_open(psplit_i_feeding *out) {
  psplit_diag diag = {0};
  if (open_feeding(&diag, out) != PSPLIT_OK) fail_msg("%s", diag.message);
}

static void expect_open(psplit_code wanted, const char *says) {
  psplit_i_feeding feeding;
  psplit_diag diag = {0};
  const psplit_code code = open_feeding(&diag, &feeding);
  psplit_i_feeding_close(&feeding);
  if (code != wanted || strncmp(diag.message, says, strlen(says)) != 0)
    fail_msg("%s: \"%s\" is not \"%s\"", psplit_code_name(code), diag.message, says);
}

/* The shape and the numbers of what one input is given. */
static void expect_given(const psplit_i_feeding *f, psplit_i_feed_set set, uint64_t step,
                         uint32_t m, uint32_t input, const double *numbers, uint64_t n) {
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  psplit_diag diag = {0};
  if (psplit_i_feeding_get(f, set, step, m, input, &diag, &tensor) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  assert_int_equal(psplit_i_tensor_look(tensor, &diag, &view), PSPLIT_OK);
  assert_int_equal(view.n_elements, n);
  for (uint64_t i = 0; i < n; i++) assert_true(psplit_i_tensor_number(&view, i) == numbers[i]);
  psplit_i_tensor_release(tensor);
}

static void expect_label(psplit_i_feed_set set, psplit_code wanted, const char *says) {
  psplit_i_feeding feeding;
  psplit_i_tensor *tensor = NULL;
  psplit_diag diag = {0};
  must_open(&feeding);
  const psplit_code code = psplit_i_feeding_get(&feeding, set, 0, 0, Y, &diag, &tensor);
  if (code != wanted || strcmp(diag.message, says) != 0)
    fail_msg("%s: \"%s\" is not \"%s\"", psplit_code_name(code), diag.message, says);
  assert_true((tensor != NULL) == (code == PSPLIT_OK));
  psplit_i_tensor_release(tensor);
  psplit_i_feeding_close(&feeding);
}

/* --- what is given --- */

static void rows_are_those_of_their_step(void **state) {
  (void)state;
  psplit_i_feeding feeding;
  options.eval_every = 1;
  must_open(&feeding);
  expect_given(&feeding, PSPLIT_I_SET_TRAIN, 0, 1, X, (const double[]){4, 5, 6, 7}, 4);
  expect_given(&feeding, PSPLIT_I_SET_TRAIN, 0, 1, Y, (const double[]){2, 3}, 2);
  expect_given(&feeding, PSPLIT_I_SET_TRAIN, 0, 1, K, (const double[]){7, 8, 9}, 3);
  /* The last evaluation has what is left: the model takes any number of samples. */
  assert_int_equal(psplit_i_feeding_n_eval(&feeding), 4);
  assert_int_equal(psplit_i_feeding_eval_rows(&feeding, 3), 1);
  expect_given(&feeding, PSPLIT_I_SET_EVAL, 3, 0, X, (const double[]){12, 13}, 2);
  psplit_i_feeding_close(&feeding);
  values[X].shape.dims = FIXED_ROWS;
  must_open(&feeding);
  assert_int_equal(psplit_i_feeding_n_eval(&feeding), 3);
  psplit_i_feeding_close(&feeding);
  /* An array for all micro-batches says nothing of how many there may be. */
  values[X].shape.dims = X_DIMS;
  values[K].shape.dims = (const psplit_i_manifest_dim[]){{3, NULL}};
  mask.rank = 1;
  must_open(&feeding);
  assert_int_equal(psplit_i_feeding_n_eval(&feeding), 4);
  psplit_i_feeding_close(&feeding);
}

static void archives_are_asked_by_name(void **state) {
  (void)state;
  static const psplit_feed_file archive[] = {{NULL, "x.npz"}, {NULL, "y.npz"}};
  static const int64_t y[N_ROWS] = {4, 3, 2, 1, 0, 1, 2};
  static const float x[N_ROWS * 2] = {9, 8, 7};
  psplit_i_feeding feeding;
  made_bytes array = make_npy(1, "<i8", "False", "(7,)", y, sizeof y);
  put_npz("y.npz", "y", &array, false, 0);
  free(array.at);
  array = make_npy(1, "<f4", "False", "(7, 2)", x, sizeof x);
  put_npz("x.npz", "x", &array, false, 0);
  free(array.at);
  options.data = archive;
  must_open(&feeding);
  expect_given(&feeding, PSPLIT_I_SET_TRAIN, 0, 0, Y, (const double[]){4, 3}, 2);
  expect_given(&feeding, PSPLIT_I_SET_TRAIN, 0, 0, X, (const double[]){9, 8, 7, 0}, 4);
  psplit_i_feeding_close(&feeding);
  assert_string_equal(psplit_i_feeding_file(&options, PSPLIT_I_SET_TRAIN, "y"), "y.npz");
  assert_string_equal(psplit_i_feeding_file(&options, PSPLIT_I_SET_EVAL, "y"), "y.npy");
  assert_string_equal(psplit_i_feeding_file(&options, PSPLIT_I_SET_TRAIN, "k"), "k");
  put_file("y.npz", "text", 4);
  assert_string_equal(psplit_i_feeding_file(&options, PSPLIT_I_SET_TRAIN, "y"), "y");
  expect_open(PSPLIT_MALFORMED, "y.npz: not a ZIP archive");
}

/* --- what does not fit --- */

static void names_that_there_are_not_are_told(void **state) {
  (void)state;
  static const psplit_feed_file unknown = {"z", "x.npy"};
  psplit_train_options each[3] = {options, options, options};
  each[0].data = each[1].eval_data = each[2].fixed = &unknown;
  each[0].n_data = each[1].n_eval_data = each[2].n_fixed = 1;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_feeding_check(&manifest, &options, &diag), PSPLIT_OK);
  for (int i = 0; i < 3; i++) {
    diag = (psplit_diag){0};
    assert_int_equal(psplit_i_feeding_check(&manifest, &each[i], &diag), PSPLIT_USAGE);
    assert_non_null(strstr(diag.message, "the model has no input z"));
  }
}

static void inputs_that_nothing_gives_are_told(void **state) {
  (void)state;
  options.n_data = 1;
  expect_open(PSPLIT_USAGE, "there is no data for input y");
  options.n_data = 2;
  options.n_fixed = 0;
  expect_open(PSPLIT_USAGE, "there is no data for input k");
  options.n_fixed = 1;
  options.n_eval_data = 1;
  expect_open(PSPLIT_OK, "");
  options.eval_every = 1;
  expect_open(PSPLIT_USAGE, "the data of evaluations does not give the input y");
}

static void data_that_does_not_fit_is_told(void **state) {
  (void)state;
  static const int64_t y[6];
  static const psplit_feed_file no_file[] = {{"k", "none.npy"}}, no_archive[] = {{NULL, "x.npy"}};
  values[X].dtype = "sequence(float32)";
  expect_open(PSPLIT_UNSUPPORTED, "input x is not a tensor of a known type");
  values[X].dtype = NULL;
  expect_open(PSPLIT_UNSUPPORTED, "input x is not a tensor of a known type");
  values[X].dtype = "float32";
  values[X].shape.rank = -1;
  expect_open(PSPLIT_OK, "");
  values[X].shape.rank = 2;
  options.fixed = no_file;
  expect_open(PSPLIT_IO, "none.npy: ");
  options.fixed = no_archive;
  expect_open(PSPLIT_MALFORMED, "x.npy: not a ZIP archive");
  options.fixed = FIXED;
  put_npy("y.npy", "<i8", "False", "(6,)", y, sizeof y);
  expect_open(PSPLIT_INVALID, "the data has 6 rows for y.npy and 7 for x.npy");
}

/* --- classes --- */

static void the_loss_says_what_classes_there_are(void **state) {
  (void)state;
#define LOSS "softmax-cross-entropy:"
  static const struct {
    const char *loss;
    bool has_labels;
    int64_t n_classes; /* -1: it does not say */
  } rows[] = {
    {LOSS "logits=logits,labels=y", true, 5},
    {LOSS "labels=y", true, 5}, /* the first output that is not the loss */
    {LOSS "prediction=logits,target=y", true, 5},
    {LOSS "prediction=none,target=y", false, -1},
    {"mse:prediction=logits,target=y", false, -1},
    {LOSS "logits=logits,labels=y,axis=1", true, 5},
    {LOSS "logits=logits,labels=y,axis=-1", true, 5},
    {LOSS "axis,logits=logits,axisy=9,labels=y", true, 5},
    {LOSS "logits=logits", false, 5},
    {LOSS "logits=logits,labels=z", false, 5},
    {LOSS "logits=logits,labels=y,axis=0", false, -1},
    {LOSS "logits=logits,labels=y,axis=2", false, -1},
    {LOSS "logits=logits,labels=y,axis=-3", false, -1},
    {LOSS "logits=none,labels=y", false, -1},
    {LOSS "logits=other,labels=y", false, -1},
    {"mean-squared-error:logits=logits,labels=y", false, -1},
    {NULL, false, -1},
  };
  static const bool none[N_INPUTS];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_i_feeding feeding;
    psplit_diag diag = {0};
    table.loss = rows[i].loss;
    assert_int_equal(
      psplit_i_feeding_open(&HELD_VALUES, &manifest, &options, none, &diag, &feeding), PSPLIT_OK);
    if ((feeding.labels == Y) != rows[i].has_labels) fail_msg("%s", rows[i].loss);
    assert_int_equal(feeding.n_classes, rows[i].n_classes < 0 ? 0 : rows[i].n_classes);
    psplit_i_feeding_close(&feeding);
  }
}

static void labels_have_a_name_where_none_is_given(void **state) {
  (void)state;
  static const char *const NAMES[] = {"x", "labels", "k", "mask"};
  static const bool none[N_INPUTS];
  static const psplit_feed_file LABELS[] = {{"x", "x.npy"}, {"labels", "y.npy"}};
  static const char *const LOSSES[] = {LOSS, "softmax-cross-entropy"};
  manifest.inputs = NAMES;
  values[Y].name = "labels";
  options.data = LABELS;
  for (size_t i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
    psplit_i_feeding feeding;
    psplit_diag diag = {0};
    table.loss = LOSSES[i];
    assert_int_equal(
      psplit_i_feeding_open(&HELD_VALUES, &manifest, &options, none, &diag, &feeding), PSPLIT_OK);
    assert_int_equal(feeding.labels, Y);
    psplit_i_feeding_close(&feeding);
  }
}

static void labels_that_are_no_classes_are_told(void **state) {
  (void)state;
  static const int64_t y[N_ROWS] = {0, 5, 2, 3, 4, 0, 1};
  static const int32_t narrow[N_ROWS] = {-1, 1, 2, 3, 4, 0, 1};
  static const float scores[N_ROWS] = {0, 9};
  options.eval_every = 1;
  expect_label(PSPLIT_I_SET_TRAIN, PSPLIT_OK, "");
  put_npy("y.npy", "<i8", "False", "(7,)", y, sizeof y);
  expect_label(PSPLIT_I_SET_TRAIN, PSPLIT_INVALID,
               "y.npy: row 1: the label 5 is not one of the 5 classes");
  expect_label(PSPLIT_I_SET_EVAL, PSPLIT_INVALID,
               "y.npy: row 1: the label 5 is not one of the 5 classes");
  table.loss = "softmax-cross-entropy:logits=logits,labels=y,ignore=5";
  expect_label(PSPLIT_I_SET_TRAIN, PSPLIT_OK, "");
  values[Y].dtype = "int32";
  put_npy("y.npy", "<i4", "False", "(7,)", narrow, sizeof narrow);
  expect_label(PSPLIT_I_SET_TRAIN, PSPLIT_INVALID,
               "y.npy: row 0: the label -1 is not one of the 5 classes");
  /* Of the same for all micro-batches there is no row. */
  options.fixed = FIXED_Y;
  options.n_fixed = 2;
  expect_open(PSPLIT_INVALID, "input y: the label -1 is not one of the 5 classes");
  table.loss = "softmax-cross-entropy:logits=logits,labels=y,ignore=-1";
  expect_open(PSPLIT_OK, "");
  options.n_fixed = 1;
  values[Y].dtype = "float32";
  put_npy("y.npy", "<f4", "False", "(7,)", scores, sizeof scores);
  expect_label(PSPLIT_I_SET_TRAIN, PSPLIT_OK, "");
}

/* --- what is drawn --- */

static psplit_i_tensor *draw(const psplit_i_feeding *f, psplit_i_feed_set set, uint64_t step,
                             uint32_t m) {
  psplit_i_tensor *tensor = NULL;
  psplit_diag diag = {0};
  if (psplit_i_feeding_get(f, set, step, m, MASK, &diag, &tensor) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return tensor;
}

static void masks_are_drawn_for_their_micro_batch(void **state) {
  (void)state;
  static const int types[] = {9, 1, 1};
  options.eval_every = 1;
  for (uint32_t kind = PSPLIT_DRAW_KEEP; kind <= PSPLIT_DRAW_NORMAL; kind++) {
    psplit_i_feeding feeding;
    mask.kind = kind;
    must_open(&feeding);
    enum { N = 4 };
    psplit_i_tensor *drawn[N] = {
      draw(&feeding, PSPLIT_I_SET_TRAIN, 3, 0), draw(&feeding, PSPLIT_I_SET_TRAIN, 3, 1),
      draw(&feeding, PSPLIT_I_SET_TRAIN, 4, 0), draw(&feeding, PSPLIT_I_SET_EVAL, 0, 0)};
    psplit_i_tensor *again = draw(&feeding, PSPLIT_I_SET_TRAIN, 3, 0);
    for (int i = 0; i < N; i++) {
      const OrtValue *value = psplit_i_tensor_value(drawn[i]);
      assert_int_equal(value->type, types[kind]);
      /* As many rows as a micro-batch, by the size of what is the same for all. */
      assert_true(value->n_dims == 2 && value->dims[0] == 2 && value->dims[1] == 3);
      assert_int_equal(same_values(drawn[0], drawn[i]), i == 0);
      if (kind == PSPLIT_DRAW_UNIFORM)
        for (int e = 0; e < 6; e++)
          assert_true(((const float *)value->data)[e] >= 0 && ((const float *)value->data)[e] < 1);
    }
    assert_true(same_values(drawn[0], again));
    psplit_i_tensors_release(drawn, N);
    psplit_i_tensor_release(again);
    psplit_i_feeding_close(&feeding);
  }
}

static void masks_without_a_size_are_told(void **state) {
  (void)state;
  psplit_i_feeding feeding;
  psplit_i_tensor *tensor = NULL;
  psplit_diag diag = {0};
  must_open(&feeding);
  mask.rank = 1;
  mask.shape = NO_SIZE;
  assert_int_equal(psplit_i_feeding_get(&feeding, PSPLIT_I_SET_TRAIN, 0, 0, MASK, &diag, &tensor),
                   PSPLIT_INVALID);
  assert_string_equal(diag.message,
                      "mask \"mask\": axis 0 has no size by what is fed (symbol \"m\")");
  diag = (psplit_diag){0};
  mask.rank = PSPLIT_I_MAX_RANK + 1;
  assert_int_equal(psplit_i_feeding_get(&feeding, PSPLIT_I_SET_TRAIN, 0, 0, MASK, &diag, &tensor),
                   PSPLIT_LIMIT);
  assert_string_equal(diag.message, "mask has more than 32 dimensions");
  psplit_i_feeding_close(&feeding);
  /* A size that is known by its name, and by no data. */
  static const bool no_k[N_INPUTS] = {true, true, false, true};
  diag = (psplit_diag){0};
  mask.rank = 2;
  mask.shape = SIZES;
  assert_int_equal(psplit_i_feeding_open(&HELD_VALUES, &manifest, &options, no_k, &diag, &feeding),
                   PSPLIT_OK);
  const uint64_t rows[] = {N_ROWS, 0};
  assert_int_equal(psplit_i_feeding_settle(&feeding, &options, rows, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_feeding_get(&feeding, PSPLIT_I_SET_TRAIN, 0, 0, MASK, &diag, &tensor),
                   PSPLIT_INVALID);
  assert_string_equal(diag.message,
                      "mask \"mask\": axis 1 has no size by what is fed (symbol \"k\")");
  psplit_i_feeding_close(&feeding);
}

static void no_memory_is_told(void **state) {
  (void)state;
  const long before = live_blocks();
  long n_told = 0;
  options.eval_every = 1;
  for (bool failed = true; failed; n_told += failed) {
    psplit_i_feeding feeding;
    psplit_i_tensor *tensor = NULL;
    psplit_diag diag = {0};
    fail_new_allocation();
    psplit_code code = open_feeding(&diag, &feeding);
    for (uint32_t i = 0; i < N_INPUTS && code == PSPLIT_OK; i++) {
      code = psplit_i_feeding_get(&feeding, PSPLIT_I_SET_TRAIN, 0, 0, i, &diag, &tensor);
      psplit_i_tensor_release(tensor);
      tensor = NULL;
    }
    failed = stop_failing();
    psplit_i_feeding_close(&feeding);
    if (failed && code != PSPLIT_NOMEM && !strstr(diag.message, ": no memory"))
      fail_msg("%s: %s", psplit_code_name(code), diag.message);
    if (!failed) assert_int_equal(code, PSPLIT_OK);
    assert_int_equal(live_blocks(), before);
  }
  assert_true(n_told > 12);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    IN_SCRATCH(rows_are_those_of_their_step),
    IN_SCRATCH(archives_are_asked_by_name),
    IN_SCRATCH(names_that_there_are_not_are_told),
    IN_SCRATCH(inputs_that_nothing_gives_are_told),
    IN_SCRATCH(data_that_does_not_fit_is_told),
    IN_SCRATCH(the_loss_says_what_classes_there_are),
    IN_SCRATCH(labels_have_a_name_where_none_is_given),
    IN_SCRATCH(labels_that_are_no_classes_are_told),
    IN_SCRATCH(masks_are_drawn_for_their_micro_batch),
    IN_SCRATCH(masks_without_a_size_are_told),
    IN_SCRATCH(no_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
