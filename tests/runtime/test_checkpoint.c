/* Why: a checkpoint is read as it was written, by any number of stages, and whoever looks for one
 * is told of one that does not fit or is not whole. What happens to who writes one, and what it
 * leaves behind: test_checkpoint_trouble.c. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint.h"
#include "checkpoint_place.h"
#include "checkpoints.h"
#include "scratch.h"

/* --- what is written is what is read --- */

static void any_number_of_stages_reads_any_other(void **state) {
  (void)state;
  psplit_diag diag = {0};
  for (uint32_t n = 1; n <= 7; n++) {
    must_save("c", n, n);
    assert_int_equal(must_look("c"), n);
    assert_int_equal(n_entries("c"), n + 1);
    assert_int_equal(n_entries("."), 1);
  }
  /* The digest is of the weights, in whichever order. */
  uint64_t one[2], other[2];
  const psplit_i_trained_weight turned[] = {WEIGHTS[2], WEIGHTS[0], WEIGHTS[1]};
  assert_int_equal(psplit_i_checkpoint_digest(WEIGHTS, N_WEIGHTS, &diag, one), PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_digest(turned, N_WEIGHTS, &diag, other), PSPLIT_OK);
  assert_memory_equal(one, other, sizeof one);
  assert_int_equal(psplit_i_checkpoint_digest(WEIGHTS, 2, &diag, other), PSPLIT_OK);
  assert_memory_not_equal(one, other, sizeof one);
}

static void the_same_run_writes_the_same_bytes(void **state) {
  (void)state;
  char text[2][4096];
  ssize_t n[2];
  for (int i = 0; i < 2; i++) {
    must_save(i ? "b" : "a", 7, 2);
    const int fd = open(i ? "b/training.json" : "a/training.json", O_RDONLY);
    n[i] = read(fd, text[i], sizeof text[i]);
    close(fd);
  }
  assert_true(n[0] > 200 && n[0] == n[1]);
  assert_memory_equal(text[0], text[1], (size_t)n[0]);
}

/* A directory that may be read by nobody else stays so. */
static void modes_are_kept(void **state) {
  (void)state;
  struct stat status;
  must_save("c/", 1, 1);
  assert_int_equal(chmod("c", 0750), 0);
  must_save("./c", 2, 2);
  assert_int_equal(stat("c", &status), 0);
  assert_int_equal(status.st_mode & 07777, 0750);
  assert_int_equal(mkdir("empty", 0700), 0);
  must_save("empty", 3, 1);
  assert_int_equal(must_look("empty"), 3);
}

/* --- what does not fit --- */

static void expect_open(const char *path, psplit_code code, const char *says) {
  psplit_diag diag = {0};
  psplit_i_checkpoint *found = NULL;
  assert_int_equal(psplit_i_checkpoint_open(path, &diag, &found), code);
  if (strcmp(diag.message, says) != 0) fail_msg("\"%s\" is not \"%s\"", diag.message, says);
  assert_null(found);
}

static void expect_fits(const psplit_i_trained_weight *weights, uint32_t n, const char *optimizer,
                        const char *says) {
  psplit_diag diag = {0};
  psplit_i_checkpoint *found;
  assert_int_equal(psplit_i_checkpoint_open("c", &diag, &found), PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_fits(found, weights, n, optimizer, &diag),
                   says ? PSPLIT_MISMATCH : PSPLIT_OK);
  if (says) assert_string_equal(diag.message, says);
  psplit_i_checkpoint_close(found);
}

static void another_model_or_optimizer_is_said(void **state) {
  (void)state;
  static const psplit_i_manifest_dim other_dims[] = {{4, NULL}, {7, NULL}};
  psplit_i_trained_weight weights[N_WEIGHTS + 1];
  psplit_diag diag = {0};
  memcpy(weights, WEIGHTS, sizeof WEIGHTS);
  weights[N_WEIGHTS] = (psplit_i_trained_weight){.name = "z", .dtype = "float32"};
  must_save("c", 1, 2);
  expect_fits(weights, N_WEIGHTS, "adamw", NULL);
  expect_fits(weights, N_WEIGHTS, NULL, NULL);
  expect_fits(weights, N_WEIGHTS, "sgd",
              "c is of the optimizer \"adamw\", and these stages update with \"sgd\"; split with "
              "that one, or start from its weights");
  expect_fits(
    weights, N_WEIGHTS + 1, "adamw",
    "c is a checkpoint of another model, or of other trained weights: it has no weight z");
  expect_fits(weights + 1, N_WEIGHTS - 1, "adamw",
              "c is a checkpoint of other trained weights: fc.weight is not trained here");
  weights[0].shape.dims = other_dims;
  expect_fits(weights, N_WEIGHTS, "adamw",
              "c is a checkpoint of another model: fc.weight is float32 [4, 6] there, and float32 "
              "[4, 7] here");
  weights[0] = WEIGHTS[0];
  weights[0].dtype = "float16";
  expect_fits(weights, N_WEIGHTS, "adamw",
              "c is a checkpoint of another model: fc.weight is float32 [4, 6] there, and float16 "
              "[4, 6] here");
  assert_int_equal(save("c", 2, 1, NULL, &diag), PSPLIT_OK);
  expect_fits(
    WEIGHTS, N_WEIGHTS, "adamw",
    "c holds only weights, not the state of optimizer \"adamw\"; start a new run from its "
    "weights");
  psplit_i_checkpoint *found;
  float values[N_ELEMENTS];
  static const int64_t dims[] = {6, 4};
  assert_int_equal(psplit_i_checkpoint_open("c", &diag, &found), PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_load(found, "none", FLOAT, dims, 2, &diag, values),
                   PSPLIT_MISMATCH);
  assert_string_equal(diag.message, "c has no tensor none");
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_checkpoint_load(found, "fc.weight", FLOAT, dims, 2, &diag, values),
                   PSPLIT_MISMATCH);
  assert_string_equal(diag.message, "c: fc.weight is of another type or shape than here");
  psplit_i_checkpoint_close(found);
}

/* Puts `to` for `from`, of the same length, into a file. */
static void change(const char *path, const char *from, const char *to) {
  char text[8192];
  const int fd = open(path, O_RDWR);
  const ssize_t n = read(fd, text, sizeof text - 1);
  assert_true(n > 0);
  char *at = memmem(text, (size_t)n, from, strlen(from));
  assert_non_null(at);
  assert_int_equal(strlen(from), strlen(to));
  assert_int_equal(pwrite(fd, to, strlen(to), at - text), (ssize_t)strlen(to));
  close(fd);
}

static void what_is_not_whole_is_said(void **state) {
  (void)state;
  expect_open("c", PSPLIT_IO, "c: no checkpoint can be read there: No such file or directory");
  put("file", "", 0);
  expect_open("file", PSPLIT_IO, "file: no checkpoint can be read there: Not a directory");
  assert_int_equal(mkdir("c", 0777), 0);
  expect_open("c", PSPLIT_IO, "c is not a checkpoint: it has no training.json");
  must_save("c", 1, 2);
  struct stat status;
  assert_int_equal(stat("c/stage1.safetensors", &status), 0);
  char says[200];
  snprintf(says, sizeof says,
           "c/stage1.safetensors: cut short: it has %lld bytes, and training.json says %lld",
           (long long)status.st_size - 1, (long long)status.st_size);
  assert_int_equal(truncate("c/stage1.safetensors", status.st_size - 1), 0);
  expect_open("c", PSPLIT_MALFORMED, says);
  assert_int_equal(unlink("c/stage1.safetensors"), 0);
  expect_open("c", PSPLIT_IO, "c/stage1.safetensors: No such file or directory");
  must_save("c", 1, 2);
  change("c/training.json", "\"version\": 1", "\"version\": 2");
  expect_open("c", PSPLIT_UNSUPPORTED, "c/training.json: version: 2 is of a later release");
  must_save("c", 1, 2);
  change("c/training.json", "float32", "float64");
  expect_open("c", PSPLIT_INVALID, "c/training.json: the digest is not that of its weights");
  must_save("c", 1, 2);
  change("c/stage0.safetensors", "fc.weight\"", "gc.weight\"");
  expect_open("c", PSPLIT_INVALID,
              "c: training.json lists fc.weight, which is in none of its files");
  must_save("c", 1, 1);
  assert_int_equal(truncate("c/training.json", 100), 0);
  psplit_diag diag;
  assert_int_equal(look("c", &diag), -1);
  assert_int_equal(diag.code, PSPLIT_MALFORMED);
}

static void what_was_changed_is_said(void **state) {
  (void)state;
  static const struct {
    const char *file, *from, *to;
    psplit_code code;
    const char *says;
  } rows[] = {
    {"c/training.json", "551614\"", "55161x\"", PSPLIT_INVALID,
     "c/training.json: seed: must be a number from 0 to 2^64 - 1, as a string, not "
     "\"1844674407370955161x\""},
    {"c/training.json", "\"stage0.", "\"stage1.", PSPLIT_INVALID,
     "c/training.json: stages[0].file: must be \"stage0.safetensors\", not "
     "\"stage1.safetensors\""},
    {"c/training.json", "\"digest\": \"", "\"digest\":\"0", PSPLIT_INVALID,
     "c/training.json: digest: must be 32 hexadecimal digits, not "},
    {"c/training.json", "\"a/w", "\"z/w", PSPLIT_INVALID,
     "c/training.json: weights[1]: weights must be in the order of their names, each once"},
    {"c/stage0.safetensors", "\"F32\"", "\"I32\"", PSPLIT_INVALID,
     "c: training.json lists fc.weight, which is of another type or shape in its file"},
    {"c/stage0.safetensors", "[4, 6]", "[6, 4]", PSPLIT_INVALID,
     "c: training.json lists fc.weight, which is of another type or shape in its file"},
    {"c/stage0.safetensors", "[4, 6]", "[24]  ", PSPLIT_INVALID,
     "c: training.json lists fc.weight, which is of another type or shape in its file"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_diag diag = {0};
    psplit_i_checkpoint *found = NULL;
    must_save("c", 1, 2);
    change(rows[i].file, rows[i].from, rows[i].to);
    const psplit_code code = psplit_i_checkpoint_open("c", &diag, &found);
    if (code != rows[i].code || !strstr(diag.message, rows[i].says)) fail_msg("%s", diag.message);
  }
}

static void what_is_no_file_of_it_is_said(void **state) {
  (void)state;
  struct stat status;
  char says[200];
  must_save("c", 1, 2);
  assert_int_equal(stat("c/stage1.safetensors", &status), 0);
  snprintf(says, sizeof says,
           "c/stage1.safetensors: not the checkpoint's: it has %lld bytes, and training.json says "
           "%lld",
           (long long)status.st_size + 1, (long long)status.st_size);
  assert_int_equal(truncate("c/stage1.safetensors", status.st_size + 1), 0);
  expect_open("c", PSPLIT_MALFORMED, says);
  assert_int_equal(unlink("c/stage1.safetensors"), 0);
  assert_int_equal(mkdir("c/stage1.safetensors", 0777), 0);
  expect_open("c", PSPLIT_IO, "c/stage1.safetensors is not a regular file");
  assert_int_equal(truncate("c/training.json", (64 << 20) + 1), 0);
  expect_open("c", PSPLIT_LIMIT, "c/training.json has over 64 MiB");
  expect_open("/.psplit-none", PSPLIT_IO,
              "/.psplit-none: no checkpoint can be read there: No such file or directory");
}

/* What a killed writer may have left is known by its name alone. */
static void files_are_known_by_their_names(void **state) {
  (void)state;
  static const char *const ours[] = {"training.json",
                                     "stage0.safetensors",
                                     "stage12.safetensors",
                                     ".training.json.psplit-0123456789abcdef",
                                     ".stage3.safetensors.psplit-9f",
                                     ".stage3.safetensors.psplit-"};
  static const char *const others[] = {"training_json",
                                       "training.json2",
                                       "stage",
                                       "stage1",
                                       "stage.safetensors",
                                       "stage1.safetensorx",
                                       "scene1.safetensors",
                                       "stage1.safetensors2",
                                       ".stage1.safetensors",
                                       ".notes.psplit-9f",
                                       ".training.json.psplit-9g",
                                       "."};
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
    assert_true(psplit_i_is_checkpoint_file(ours[i]));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (psplit_i_is_checkpoint_file(others[i])) fail_msg("%s", others[i]);
}

static void a_tensor_twice_is_said(void **state) {
  (void)state;
  must_save("c", 1, 6);
  /* Stage 3 has the state "fc.weight.momentum", stage 4 "b.momentum": one name for both. */
  assert_int_equal(unlink("c/stage4.safetensors"), 0);
  must_save("d", 1, 6);
  assert_int_equal(rename("d/stage3.safetensors", "c/stage4.safetensors"), 0);
  struct stat three, four;
  assert_int_equal(stat("c/stage3.safetensors", &three), 0);
  assert_int_equal(stat("c/stage4.safetensors", &four), 0);
  char from[100], to[100];
  snprintf(from, sizeof from, "\"stage4.safetensors\", \"bytes\": %lld",
           (long long)three.st_size - 8);
  snprintf(to, sizeof to, "\"stage4.safetensors\", \"bytes\": %lld", (long long)four.st_size);
  change("c/training.json", from, to);
  expect_open("c", PSPLIT_INVALID,
              "c/stage4.safetensors: fc.weight.momentum is in c/stage3.safetensors, too");
}

static void expect_save(const char *path, psplit_code code, const char *says) {
  psplit_diag diag = {0};
  assert_int_equal(save(path, 1, 1, "adamw", &diag), code);
  if (strcmp(diag.message, says) != 0) fail_msg("\"%s\" is not \"%s\"", diag.message, says);
}

static void nothing_else_is_replaced(void **state) {
  (void)state;
  expect_save("", PSPLIT_USAGE, "\"\": a checkpoint needs a directory of its own; give its name");
  expect_save("/", PSPLIT_USAGE, "\"/\": a checkpoint needs a directory of its own; give its name");
  expect_save("a/./", PSPLIT_USAGE,
              "\"a/./\": a checkpoint needs a directory of its own; give its name");
  expect_save("a/..", PSPLIT_USAGE,
              "\"a/..\": a checkpoint needs a directory of its own; give its name");
  expect_save("none/c", PSPLIT_IO, "cannot make a directory in none: No such file or directory");
  put("file", "", 0);
  expect_save("file", PSPLIT_IO, "file exists and is not a directory");
  must_save("c", 1, 1);
  assert_int_equal(symlink("c", "link"), 0);
  expect_save("link", PSPLIT_IO, "link exists and is not a directory");
  assert_int_equal(must_look("link"), 1);
  put("c/notes.txt", "mine", 4);
  expect_save("c", PSPLIT_IO,
              "c holds notes.txt, which is not part of a checkpoint, and is not replaced; give "
              "another directory");
  assert_int_equal(must_look("c"), 1);
  /* What comes there meanwhile is not lost either. */
  assert_int_equal(unlink("c/notes.txt"), 0);
  psplit_diag diag = {0};
  psplit_i_checkpoint_writer writer;
  assert_int_equal(psplit_i_checkpoint_begin("c", &diag, &writer), PSPLIT_OK);
  put("c/notes.txt", "mine", 4);
  const uint64_t none = 0;
  uint64_t bytes;
  const psplit_i_checkpoint_state at = {.n_stages = 1};
  assert_int_equal(psplit_i_checkpoint_write_stage(writer.path, 0, NULL, 0, &diag, &bytes),
                   PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_commit(&writer, &at, NULL, 0, &bytes, &diag), PSPLIT_IO);
  assert_int_equal(access("c/notes.txt", F_OK), 0);
  assert_int_equal(n_entries("."), 3);
  /* A stage that says another size than its file has was cut short on the way. */
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_checkpoint_begin("d", &diag, &writer), PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_write_stage(writer.path, 0, NULL, 0, &diag, &bytes),
                   PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_commit(&writer, &at, NULL, 0, &none, &diag),
                   PSPLIT_INTERNAL);
  assert_int_equal(n_entries("."), 3);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_checkpoint_write_stage("gone", 0, NULL, 0, &diag, &bytes), PSPLIT_IO);
  assert_string_equal(diag.message,
                      "gone: No such file or directory; stages on other machines need a directory "
                      "for checkpoints that all of them see");
}

static void without_exchange_it_is_the_same(void **state) {
  cannot_exchange = true;
  any_number_of_stages_reads_any_other(state);
  modes_are_kept(state);
  cannot_exchange = false;
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    IN_SCRATCH(any_number_of_stages_reads_any_other),
    IN_SCRATCH(the_same_run_writes_the_same_bytes),
    IN_SCRATCH(modes_are_kept),
    IN_SCRATCH(another_model_or_optimizer_is_said),
    IN_SCRATCH(what_is_not_whole_is_said),
    IN_SCRATCH(what_was_changed_is_said),
    IN_SCRATCH(what_is_no_file_of_it_is_said),
    cmocka_unit_test(files_are_known_by_their_names),
    IN_SCRATCH(a_tensor_twice_is_said),
    IN_SCRATCH(nothing_else_is_replaced),
    IN_SCRATCH(without_exchange_it_is_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
