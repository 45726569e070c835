/* Why: whoever looks for a checkpoint finds the one of before or the new one, whole, whatever
 * happened to who wrote it; and is told of one that does not fit or is not whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkpoint.h"
#include "checkpoint_place.h"
#include "counter_random.h"
#include "failing.h"
#include "failing_calls.h"
#include "scratch.h"

enum { FLOAT = 1, INT64 = 7 };

/* File systems that cannot exchange two entries. */
static bool cannot_exchange;
bool __real_psplit_i_exchange(const char *a, const char *b);
bool __wrap_psplit_i_exchange(const char *a, const char *b);
bool __wrap_psplit_i_exchange(const char *a, const char *b) {
  return !cannot_exchange && __real_psplit_i_exchange(a, b);
}

/* --- a run: three weights with a state each, over as many stages as one likes --- */

enum { N_WEIGHTS = 3, N_ELEMENTS = 24, N_TENSORS = 2 * N_WEIGHTS };
static const psplit_i_manifest_dim DIMS[] = {{4, NULL}, {6, NULL}};
static const psplit_i_trained_weight WEIGHTS[N_WEIGHTS] = {
  {.name = "fc.weight", .dtype = "float32", .shape = {2, DIMS}},
  {.name = "bias \"b\"", .dtype = "float32", .shape = {2, DIMS}},
  {.name = "a/w\n\xc3\xa9", .dtype = "float32", .shape = {2, DIMS}}};
static const char *const STATES[N_WEIGHTS] = {"fc.weight.momentum", "b.momentum", "a.momentum"};

static float value_of(uint64_t step, unsigned tensor, unsigned i) {
  return (float)(step * 1000 + tensor * 100 + i);
}

/* A checkpoint of `step` in `path`; tensors are dealt to the stages in turn. */
static psplit_code save(const char *path, uint64_t step, uint32_t n_stages, const char *optimizer,
                        psplit_diag *diag) {
  static const int64_t dims[] = {4, 6};
  psplit_i_checkpoint_writer writer;
  uint64_t bytes[8] = {0};
  psplit_code code = psplit_i_checkpoint_begin(path, diag, &writer);
  for (uint32_t s = 0; s < n_stages && code == PSPLIT_OK; s++) {
    psplit_i_checkpoint_tensor tensors[N_TENSORS];
    float values[N_TENSORS][N_ELEMENTS];
    size_t n = 0;
    for (unsigned t = s; t < N_TENSORS; t += n_stages, n++) {
      for (unsigned i = 0; i < N_ELEMENTS; i++) values[n][i] = value_of(step, t, i);
      tensors[n] = (psplit_i_checkpoint_tensor){
        {.name = t < N_WEIGHTS ? WEIGHTS[t].name : STATES[t - N_WEIGHTS],
         .data_type = FLOAT,
         .n_dims = 2,
         .dims = dims,
         .n_bytes = sizeof values[n]},
        values[n]};
    }
    code = psplit_i_checkpoint_write_stage(writer.path, s, tensors, n, diag, &bytes[s]);
  }
  const psplit_i_checkpoint_state state = {.step = step,
                                           .epoch = (uint32_t)(step / 10),
                                           .batch = step % 10,
                                           .seed = UINT64_MAX - 1,
                                           .optimizer = optimizer,
                                           .n_rows = 100,
                                           .batch_rows = 10,
                                           .n_micro_batches = 5,
                                           .n_stages = n_stages};
  if (code == PSPLIT_OK)
    code = psplit_i_checkpoint_commit(&writer, &state, WEIGHTS, N_WEIGHTS, bytes, diag);
  psplit_i_checkpoint_abort(&writer);
  return code;
}

static void must_save(const char *path, uint64_t step, uint32_t n_stages) {
  psplit_diag diag = {0};
  if (save(path, step, n_stages, "adamw", &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
}

/* The step of the checkpoint in `path`, all of which is as it was written; -1 and *out_diag: it
 * cannot be opened. */
static int64_t look(const char *path, psplit_diag *out_diag) {
  static const int64_t dims[] = {4, 6};
  psplit_i_checkpoint *found;
  psplit_diag diag = {0};
  float values[N_ELEMENTS];
  *out_diag = diag;
  if (psplit_i_checkpoint_open(path, out_diag, &found) != PSPLIT_OK) return -1;
  const psplit_i_checkpoint_state *state = psplit_i_checkpoint_state_of(found);
  assert_int_equal(psplit_i_checkpoint_n_tensors(found), N_TENSORS);
  assert_int_equal(state->epoch, state->step / 10);
  assert_int_equal(state->batch, state->step % 10);
  assert_true(state->seed == UINT64_MAX - 1);
  assert_int_equal(state->n_rows, 100);
  assert_int_equal(state->batch_rows, 10);
  assert_int_equal(state->n_micro_batches, 5);
  for (unsigned t = 0; t < N_TENSORS; t++) {
    const char *name = t < N_WEIGHTS ? WEIGHTS[t].name : STATES[t - N_WEIGHTS];
    assert_int_equal(psplit_i_checkpoint_load(found, name, FLOAT, dims, 2, &diag, values),
                     PSPLIT_OK);
    for (unsigned i = 0; i < N_ELEMENTS; i++) assert_true(values[i] == value_of(state->step, t, i));
  }
  const char *optimizer = state->optimizer;
  assert_int_equal(psplit_i_checkpoint_fits(found, WEIGHTS, N_WEIGHTS, optimizer, &diag),
                   PSPLIT_OK);
  const int64_t step = (int64_t)state->step;
  psplit_i_checkpoint_close(found);
  return step;
}

static int64_t must_look(const char *path) {
  psplit_diag diag;
  const int64_t step = look(path, &diag);
  if (step < 0) fail_msg("%s", diag.message);
  return step;
}

static unsigned n_entries(const char *path) {
  DIR *here = opendir(path);
  unsigned n = 0;
  assert_non_null(here);
  while (readdir(here)) n++;
  closedir(here);
  return n - 2;
}

static void put(const char *path, const char *text, size_t n) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, n), (ssize_t)n);
  close(fd);
}

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
              "that one, or start anew from its weights");
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
  expect_fits(WEIGHTS, N_WEIGHTS, "adamw",
              "c holds weights alone and not what \"adamw\" keeps from step to step; start anew "
              "from its weights");
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
  expect_open("c", PSPLIT_IO, "c is no checkpoint: it has no training.json");
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
              "c: training.json tells of fc.weight, which is in none of its files");
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
     "c/training.json: weights[1]: weights stand in the order of their names, each once"},
    {"c/stage0.safetensors", "\"F32\"", "\"I32\"", PSPLIT_INVALID,
     "c: training.json tells of fc.weight, which is of another type or shape in its file"},
    {"c/stage0.safetensors", "[4, 6]", "[6, 4]", PSPLIT_INVALID,
     "c: training.json tells of fc.weight, which is of another type or shape in its file"},
    {"c/stage0.safetensors", "[4, 6]", "[24]  ", PSPLIT_INVALID,
     "c: training.json tells of fc.weight, which is of another type or shape in its file"},
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
  expect_open("c", PSPLIT_IO, "c/stage1.safetensors is no regular file");
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
              "c holds notes.txt, which is no part of a checkpoint, and is not replaced; give "
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

/* --- what is left behind --- */

static void an_abort_leaves_the_old_one(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_i_checkpoint_writer writer;
  uint64_t bytes;
  must_save("c", 1, 1);
  assert_int_equal(psplit_i_checkpoint_probe("c", &diag), PSPLIT_OK);
  assert_int_equal(n_entries("."), 1);
  assert_int_equal(psplit_i_checkpoint_begin("c", &diag, &writer), PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_write_stage(writer.path, 0, NULL, 0, &diag, &bytes),
                   PSPLIT_OK);
  assert_int_equal(n_entries("."), 2);
  psplit_i_checkpoint_abort(&writer);
  assert_int_equal(n_entries("."), 1);
  assert_int_equal(must_look("c"), 1);
}

static void leftovers_go_and_what_is_written_stays(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_i_checkpoint_writer writer;
  assert_int_equal(psplit_i_checkpoint_begin("c", &diag, &writer), PSPLIT_OK);
  assert_int_equal(mkdir(".c.psplit-1-0", 0777), 0); /* of a process that was killed */
  put(".c.psplit-1-0/stage0.safetensors", "half", 4);
  put(".c.psplit-1-0/.stage1.safetensors.psplit-0123456789abcdef", "half", 4);
  assert_int_equal(mkdir(".c.psplit-mine", 0777), 0);
  must_save("c", 1, 1);
  assert_int_equal(n_entries("."), 3);
  assert_int_equal(access(writer.path, F_OK), 0);
  psplit_i_checkpoint_abort(&writer);
  assert_int_equal(n_entries("."), 2);
}

/* Killed between the two renames of a file system that cannot exchange. */
static void a_checkpoint_on_its_way_is_found(void **state) {
  (void)state;
  must_save("c", 4, 2);
  must_save("d", 5, 1);
  assert_int_equal(rename("c", ".c.psplit-7-09"), 0);
  assert_int_equal(must_look("c"), 4);
  assert_int_equal(rename("d", ".c.psplit-7-0"), 0);
  assert_int_equal(must_look("c"), 5);
  /* The next writer has it in its place before anything else. */
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_checkpoint_probe("c", &diag), PSPLIT_OK);
  assert_int_equal(access("c/training.json", F_OK), 0);
  assert_int_equal(must_look("c"), 5);
  assert_int_equal(n_entries("."), 1);
}

/* Of several that are hidden the one that is furthest, and none that is not whole. */
static void the_furthest_on_its_way_is_found(void **state) {
  (void)state;
  static const char *const others[] = {".c.psplit-1-0", ".c.psplit-2-0", ".c.psplit-3-0",
                                       ".c.psplit-4-0"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_int_equal(mkdir(others[i], 0777), 0);
  put(".c.psplit-1-0/training.json", "", 0);
  put(".c.psplit-2-0/training.json", "{\"step\": \"nine\"}", 16);
  assert_int_equal(mkdir(".c.psplit-3-0/training.json", 0777), 0);
  put(".c.psplit-4-0/training.json", "{\"step\": 99}", 12);
  assert_int_equal(truncate(".c.psplit-4-0/training.json", (64 << 20) + 1), 0);
  put(".c.psplit-5-0", "", 0); /* no directory */
  for (uint64_t step = 4; step <= 6; step++) {
    char hidden[40];
    must_save("d", step, 2);
    snprintf(hidden, sizeof hidden, ".c.psplit-7-0%u", (unsigned)(step * 7 % 10));
    assert_int_equal(rename("d", hidden), 0);
  }
  assert_int_equal(must_look("c"), 6);
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_checkpoint_probe("c", &diag), PSPLIT_OK);
  assert_int_equal(must_look("c"), 6);
}

static void without_exchange_it_is_the_same(void **state) {
  cannot_exchange = true;
  any_number_of_stages_reads_any_other(state);
  modes_are_kept(state);
  cannot_exchange = false;
}

/* --- trouble --- */

static void *save_many(void *stop) {
  for (uint64_t step = 2; !atomic_load((atomic_bool *)stop); step++)
    must_save("c", step, (uint32_t)(step % 3 + 1));
  return NULL;
}

static void readers_find_one_that_is_whole(void **state) {
  (void)state;
  for (int way = 0; way < 2; way++) {
    atomic_bool stop = false;
    pthread_t writer;
    int64_t last = 0;
    cannot_exchange = way == 1;
    must_save("c", 1, 1);
    assert_int_equal(pthread_create(&writer, NULL, save_many, &stop), 0);
    for (int i = 0; i < 200; i++) {
      const int64_t step = must_look("c");
      if (step < last) fail_msg("%" PRId64 " after %" PRId64, step, last);
      last = step;
    }
    atomic_store(&stop, true);
    pthread_join(writer, NULL);
    cannot_exchange = false;
  }
}

/* Writes checkpoints until it is killed; tells of each once it is there. */
static void write_until_killed(int told) {
  psplit_diag diag = {0};
  for (uint64_t step = 1; save("c", step, (uint32_t)(step % 3 + 1), "adamw", &diag) == PSPLIT_OK;
       step++)
    if (write(told, &step, sizeof step) != sizeof step) break;
  fprintf(stderr, "%s\n", diag.message);
  _exit(1);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Kills a writer at a random moment of its second to fifth checkpoint; PSPLIT_KILLS says how often.
 */
static void kill_at_random(unsigned n_kills) {
  unsigned moved = 0;
  for (unsigned k = 0; k < n_kills; k++) {
    const psplit_i_random_stream stream = {.seed = 17, .use = PSPLIT_I_RANDOM_TEST, .major = k};
    int told[2];
    uint64_t step = 0, last = 0;
    cannot_exchange = k % 2;
    if (access("c", F_OK) != 0) must_save("c", 0, 2);
    assert_int_equal(pipe(told), 0);
    const int64_t began = now_ns();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) write_until_killed(told[1]);
    close(told[1]);
    assert_int_equal(read(told[0], &last, sizeof last), sizeof last);
    const uint64_t most = 4 * (uint64_t)(now_ns() - began),
                   wait = psplit_i_random_below(&stream, 0, most);
    const struct timespec nap = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
    nanosleep(&nap, NULL);
    kill(child, SIGKILL);
    while (read(told[0], &step, sizeof step) == sizeof step) last = step;
    close(told[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    const int64_t found = must_look("c");
    if (found < (int64_t)last || found > (int64_t)last + 1)
      fail_msg("kill %u: step %" PRId64 " after %" PRIu64, k, found, last);
    moved += last > 1;
  }
  /* A writer that never got further would prove little. */
  assert_true(moved > n_kills / 4);
  cannot_exchange = false;
  must_save("c", 99, 1);
  assert_int_equal(n_entries("."), 1);
}

static void kill_9_leaves_the_old_or_the_new_one(void **state) {
  (void)state;
  const char *text = getenv("PSPLIT_KILLS");
  kill_at_random(text ? (unsigned)atoi(text) : 24);
}

/* In a child, since the limit is a process's. */
static void a_full_disk_costs_nothing(void **state) {
  (void)state;
  must_save("c", 1, 2);
  const pid_t child = fork();
  if (child == 0) {
    bool good = true;
    for (rlim_t most = 0; most < 500; most += 25) {
      const struct rlimit limit = {most, 1 << 20};
      psplit_diag diag = {0};
      setrlimit(RLIMIT_FSIZE, &limit);
      const psplit_code code = save("c", 2, 2, "adamw", &diag);
      good &= code == PSPLIT_IO && strstr(diag.message, "File too large");
    }
    _exit(good ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(must_look("c"), 1);
  assert_int_equal(n_entries("."), 1);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  must_save("c", 1, 2);
  const long before = live_blocks();
  bool failed = true;
  int64_t last = 1;
  for (long nth = 0; failed; nth++) {
    psplit_diag diag = {0};
    fail_allocation_after(nth);
    const psplit_code code = save("c", 2, 3, "adamw", &diag);
    failed = stop_failing();
    assert_true(code == PSPLIT_OK || (failed && code == PSPLIT_NOMEM));
    assert_int_equal(live_blocks(), before);
    const int64_t step = must_look("c");
    assert_true(step == 2 || (code != PSPLIT_OK && step == last));
    last = step;
    assert_int_equal(n_entries("."), 1);
    assert_true(nth < 2000);
  }
  failed = true;
  for (long nth = 0; failed; nth++) {
    psplit_diag diag = {0};
    psplit_i_checkpoint *found = NULL;
    fail_allocation_after(nth);
    psplit_code code = psplit_i_checkpoint_open("c", &diag, &found);
    if (code == PSPLIT_OK)
      code = psplit_i_checkpoint_fits(found, WEIGHTS, N_WEIGHTS, "adamw", &diag);
    failed = stop_failing();
    psplit_i_checkpoint_close(found);
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    assert_int_equal(live_blocks(), before);
    assert_true(nth < 2000);
  }
}

/* Whichever system call fails: the old one or the new one is there, and what is left of the other
 * goes with the next. */
static void no_failing_call_loses_a_checkpoint(void **state) {
  (void)state;
  static const int reasons[] = {EIO, ENOMEM, EMFILE, EACCES};
  for (size_t r = 0; r < 2 * sizeof reasons / sizeof *reasons; r++) {
    cannot_exchange = r % 2;
    long n_told = 0;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
      psplit_diag diag = {0};
      must_save("c", 1, 1);
      fail_call_after(nth, reasons[r / 2]);
      const psplit_code code = save("c", 2, 2, "adamw", &diag);
      failed = stop_failing_calls();
      n_told += code != PSPLIT_OK;
      const int64_t step = must_look("c");
      if (step != 2 && (step != 1 || code == PSPLIT_OK)) fail_msg("%ld: %d", nth, (int)step);
      if (code != PSPLIT_OK && (!failed || !*diag.message)) fail_msg("%ld: %s", nth, diag.message);
      psplit_i_checkpoint *found = NULL;
      diag = (psplit_diag){0};
      fail_call_after(nth, reasons[r / 2]);
      const psplit_code opened = psplit_i_checkpoint_open("c", &diag, &found);
      if (stop_failing_calls()) failed = true;
      if ((opened == PSPLIT_OK) != !*diag.message) fail_msg("%ld: %s", nth, diag.message);
      psplit_i_checkpoint_close(found);
    }
    assert_true(n_told > 20);
    must_save("c", 3, 1);
    assert_int_equal(n_entries("."), 1);
  }
  cannot_exchange = false;
}

/* What is hidden is found or not: out of memory it is not "no checkpoint". */
static void no_memory_hides_no_checkpoint(void **state) {
  (void)state;
  must_save("c", 4, 2);
  assert_int_equal(rename("c", ".c.psplit-7-09"), 0);
  bool failed = true;
  for (long nth = 0; failed; nth++) {
    psplit_diag diag = {0};
    psplit_i_checkpoint *found = NULL;
    fail_allocation_after(nth);
    const psplit_code code = psplit_i_checkpoint_open("c", &diag, &found);
    failed = stop_failing();
    psplit_i_checkpoint_close(found);
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    assert_true(nth < 2000);
  }
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
    IN_SCRATCH(an_abort_leaves_the_old_one),
    IN_SCRATCH(leftovers_go_and_what_is_written_stays),
    IN_SCRATCH(a_checkpoint_on_its_way_is_found),
    IN_SCRATCH(the_furthest_on_its_way_is_found),
    IN_SCRATCH(without_exchange_it_is_the_same),
    IN_SCRATCH(readers_find_one_that_is_whole),
    IN_SCRATCH(kill_9_leaves_the_old_or_the_new_one),
    IN_SCRATCH(a_full_disk_costs_nothing),
    IN_SCRATCH(no_failing_call_loses_a_checkpoint),
    IN_SCRATCH(every_allocation_may_fail),
    IN_SCRATCH(no_memory_hides_no_checkpoint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
