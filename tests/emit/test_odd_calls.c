/* Why: whichever system call fails while files are written, and with whichever reason, there is the
 * new state and OK or the old state and an error with a reason. Interrupted calls, file systems
 * that cannot do something and races look like this; one_failure.py fails whole commands with one
 * reason a call. Hidden leftovers may stay where they could not be removed: the next run does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <psplit/emit.h>
#include <psplit/merge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/hand_plan.h"
#include "failing_calls.h"
#include "graph.h"
#include "in_file.h"
#include "out_file.h"
#include "scratch.h"
#include "text_model.h"

/* Weights of which one is large enough to be moved, and one lies in a file already. */
static const char MODEL[] =
  "(float[300] x) => (float[300] y) <float[300] w = random(1), float[300] a,"
  " float[2] e = [\"location\": \"weights\", \"offset\": \"4\", \"length\": \"8\"]> {"
  "  a = Add (x, w)"
  "  s = ReduceSum <keepdims = 0> (e)"
  "  b = Mul (a, s)"
  "  y = Add (b, w)"
  "}";

static psplit_model *model;
static psplit_plan plan;
static psplit_emit_options options;

/* --- what there is --- */

static psplit_i_text *seen;
static int sorted(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}
static int no_hidden(const struct dirent *entry) { return *entry->d_name != '.'; }

/* Names, modes and contents of all that is not hidden, sorted. */
static void look(const char *directory) {
  struct dirent **entries;
  const int n = scandir(directory, &entries, no_hidden, sorted);
  assert_true(n >= 0);
  for (int i = 0; i < n; i++) {
    char path[512], buffer[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
    free(entries[i]);
    assert_int_equal(lstat(path, &status), 0);
    psplit_i_text_addf(seen, "\n%s %o ", path, status.st_mode);
    if (S_ISDIR(status.st_mode)) {
      look(path);
      continue;
    }
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;)
      psplit_i_text_add(seen, buffer, got);
    fclose(file);
  }
  free(entries);
}

static psplit_i_text snapshot(void) {
  psplit_i_text text = {0};
  seen = &text;
  look(".");
  assert_false(text.failed);
  return text;
}

static bool is_as(const psplit_i_text *wanted) {
  psplit_i_text found = snapshot();
  const bool same =
    found.n == wanted->n && (!found.n || memcmp(found.bytes, wanted->bytes, found.n) == 0);
  psplit_i_text_fini(&found);
  return same;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)status;
  (void)kind;
  return place->level ? remove(path) : 0;
}

static void put(const char *path, const void *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

/* --- each call with each reason --- */

typedef psplit_code (*action)(psplit_diag *diag);

static const int REASONS[] = {EIO, EINTR, EINVAL, ENOSPC, EEXIST, ENOENT, ENOSYS, EACCES};
static size_t n_reasons = sizeof REASONS / sizeof *REASONS;

static void begin_state(action before) {
  psplit_diag diag = {0};
  nftw(".", remove_one, 8, FTW_DEPTH | FTW_PHYS);
  put("weights", "0123456789ab", 12);
  write_model_text("model.onnx", MODEL);
  put("a", "old", 3);
  assert_int_equal(chmod("a", 0640), 0);
  if (before && before(&diag) != PSPLIT_OK) fail_msg("%s", diag.message);
}

/* `before` makes the state that `act` changes. */
static void each(const char *what, action before, action act) {
  psplit_diag diag = {0};
  begin_state(before);
  psplit_i_text old = snapshot();
  if (act(&diag) != PSPLIT_OK) fail_msg("%s: %s", what, diag.message);
  psplit_i_text new = snapshot();
  bool is_old = false;
  long n_calls = 0;
  for (size_t r = 0; r < n_reasons; r++) {
    bool reached = true;
    for (long nth = 0; reached; nth++, n_calls++) {
      if (!is_old) begin_state(before);
      diag = (psplit_diag){0};
      fail_call_after(nth, REASONS[r]);
      const psplit_code code = act(&diag);
      reached = stop_failing_calls();
      is_old = code != PSPLIT_OK;
      if (!is_as(is_old ? &old : &new))
        fail_msg("%s, call %ld, %s: %s: %s, and files are others", what, nth, strerror(REASONS[r]),
                 psplit_code_name(code), diag.message);
      if (is_old && (!reached || code != diag.code || !*diag.message ||
                     diag.message[strlen(diag.message) - 1] == ' '))
        fail_msg("%s, call %ld, %s: %s: \"%s\"", what, nth, strerror(REASONS[r]),
                 psplit_code_name(code), diag.message);
      assert_true(nth < 10000);
    }
  }
  assert_true(n_calls > (long)(2 * n_reasons)); /* the wrapping works */
  psplit_i_text_fini(&old);
  psplit_i_text_fini(&new);
}

/* --- calls of the library --- */

static psplit_code emit_it(psplit_diag *diag) {
  return psplit_emit(model, &plan, options.weights == PSPLIT_WEIGHTS_REFERENCE ? "." : "out",
                     &options, diag);
}

/* With other weights and another boundary, so that it has other files. */
static psplit_code emit_another(psplit_diag *diag) {
  psplit_emit_options other = options;
  other.boundary = PSPLIT_BOUNDARY_IO;
  if (other.weights == PSPLIT_WEIGHTS_EXTERNAL) other.weights = PSPLIT_WEIGHTS_INLINE;
  return psplit_emit(model, &plan, other.weights == PSPLIT_WEIGHTS_REFERENCE ? "." : "out", &other,
                     diag);
}

static psplit_code annotate_it(psplit_diag *diag) {
  const psplit_emit_options replacing = {.struct_size = sizeof replacing, .replace = true};
  return psplit_emit_annotated(model, &plan, PSPLIT_ANNOTATION_ONNX, "a", &replacing, diag);
}

static psplit_code put_it(psplit_diag *diag) { return psplit_i_out_put("a", NULL, "new", 3, diag); }

static psplit_code put_once(psplit_diag *diag) {
  const psplit_i_out_options keep = {.keep = true};
  return psplit_i_out_put("b", &keep, "new", 3, diag);
}

static psplit_code read_it(psplit_diag *diag) {
  char *text;
  size_t n;
  const psplit_code code = psplit_i_text_read("a", NULL, diag, &text, &n);
  if (code != PSPLIT_OK) return code;
  assert_string_equal(text, "old");
  free(text);
  return code;
}

static psplit_code open_it(psplit_diag *diag) {
  psplit_model *found;
  const psplit_code code = psplit_model_open("model.onnx", NULL, diag, &found);
  if (code == PSPLIT_OK) psplit_model_close(found);
  return code;
}

static void files_are_old_or_new(void **state) {
  (void)state;
  each("replace", NULL, put_it);
  each("keep", NULL, put_once);
  each("read", NULL, read_it);
  each("open", NULL, open_it);
}

static int enter_model(void **state) {
  static const uint32_t node_stage[] = {0, 0, 0, 1};
  static const psplit_plan_stage stages[] = {{.device = "d", .n_nodes = 3},
                                             {.device = "d", .n_nodes = 1}};
  static psplit_plan_transfer transfers[] = {{.tensor = "b", .from = 0, .to = 1}};
  psplit_diag diag = {0};
  if (enter_scratch(state) != 0) return -1;
  begin_state(NULL);
  if (psplit_model_open("model.onnx", NULL, &diag, &model) != PSPLIT_OK) return -1;
  transfers[0].value = psplit_i_graph_find_value(psplit_i_model_graph(model), "b");
  plan = hand_plan(4, node_stage, 2, stages, 1, transfers);
  options = (psplit_emit_options){.struct_size = sizeof options, .n_threads = 1};
  return 0;
}

static int leave_model(void **state) {
  psplit_model_close(model);
  return leave_scratch(state);
}

static void splits_are_old_or_new(void **state) {
  (void)state;
  options.weights = PSPLIT_WEIGHTS_EXTERNAL;
  each("emit", NULL, emit_it);
  options.replace = true;
  each("emit in place of another", emit_another, emit_it);
  each("annotate", NULL, annotate_it);
}

static void references_are_old_or_new(void **state) {
  (void)state;
  options.weights = PSPLIT_WEIGHTS_REFERENCE;
  each("reference", NULL, emit_it);
  options.replace = true;
  each("reference in place of another", emit_another, emit_it);
}

/* A model and its data that are no split's. */
static psplit_code put_merged(psplit_diag *diag) {
  put("m.onnx", "old model", 9);
  put("m.onnx.data", "old data", 8);
  return psplit_emit(model, &plan, "s", &options, diag);
}

static psplit_code only_split(psplit_diag *diag) {
  return psplit_emit(model, &plan, "s", &options, diag);
}

static psplit_code refuse(void *user, const char *path, psplit_diag *diag) {
  (void)user;
  return psplit_i_fail(diag, PSPLIT_MISMATCH, "%s is refused", path);
}

static bool is_refused;

static psplit_code merge_it(psplit_diag *diag) {
  psplit_merge_options merging;
  psplit_merge_options_init(&merging);
  merging.weights = PSPLIT_WEIGHTS_EXTERNAL;
  merging.replace = true;
  if (is_refused) merging.accept = refuse;
  return psplit_merge("s", "m.onnx", &merging, diag, NULL);
}

/* A model and its data are old or new, both. The reasons of calls that look are those above. */
static void merged_models_are_old_or_new(void **state) {
  (void)state;
  options.weights = PSPLIT_WEIGHTS_INLINE;
  n_reasons = 3;
  each("merge", only_split, merge_it);
  each("merge in place of another", put_merged, merge_it);
  n_reasons = sizeof REASONS / sizeof *REASONS;
  static const action before[] = {only_split, put_merged};
  for (int i = 0; i < 4; i++) {
    psplit_diag diag = {0};
    begin_state(before[i % 2]);
    psplit_i_text old = snapshot();
    is_refused = true;
    if (i / 2) fail_exchanges(EINVAL);
    assert_int_equal(merge_it(&diag), PSPLIT_MISMATCH);
    stop_failing_calls();
    is_refused = false;
    assert_true(is_as(&old));
    psplit_i_text_fini(&old);
  }
}

/* Opens the finished model, whose data is in its place, while the old model is still in its own. */
static psplit_code open_finished(void *user, const char *path, psplit_diag *diag) {
  psplit_model *finished;
  struct stat old;
  const psplit_code code = psplit_model_open(path, NULL, diag, &finished);
  if (code != PSPLIT_OK) return code;
  *(uint32_t *)user = psplit_i_model_graph(finished)->n_nodes;
  psplit_model_close(finished);
  assert_int_equal(stat("m.onnx", &old), 0);
  assert_int_equal(old.st_size, strlen("old model"));
  return PSPLIT_OK;
}

static void an_accepted_model_replaces_the_old_one(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_merge_report report;
  psplit_merge_options merging;
  uint32_t n_nodes = 0;
  struct stat now;
  begin_state(put_merged);
  psplit_merge_options_init(&merging);
  merging.weights = PSPLIT_WEIGHTS_EXTERNAL;
  merging.replace = true;
  merging.accept = open_finished;
  merging.accept_user = &n_nodes;
  assert_int_equal(psplit_merge("s", "./m.onnx", &merging, &diag, &report), PSPLIT_OK);
  assert_int_equal(n_nodes, 4);
  assert_int_equal(stat("m.onnx", &now), 0);
  assert_int_equal(now.st_size, report.bytes);
  assert_int_equal(stat("m.onnx.data", &now), 0);
  assert_int_equal(now.st_size, report.data_bytes);
}

/* A weight of both stages, of many pieces that are compared. */
static const char LONG_MODEL[] =
  "(float[n,400000] x) => (float[n,400000] y)"
  " <float[400000] w = random(1)> { a = Add (x, w) y = Add (a, w) }";

static psplit_code split_long(psplit_diag *diag) {
  static const uint32_t node_stage[] = {0, 1};
  static const psplit_plan_stage stages[] = {{.device = "d", .n_nodes = 1},
                                             {.device = "d", .n_nodes = 1}};
  psplit_model *whole = NULL;
  write_model_text("long.onnx", LONG_MODEL);
  psplit_code code = psplit_model_open("long.onnx", NULL, diag, &whole);
  if (code != PSPLIT_OK) return code;
  const psplit_plan_transfer transfers[] = {
    {.value = psplit_i_graph_find_value(psplit_i_model_graph(whole), "a"),
     .tensor = "a",
     .from = 0,
     .to = 1}};
  const psplit_plan long_plan = hand_plan(2, node_stage, 2, stages, 1, transfers);
  const psplit_emit_options inlining = {.struct_size = sizeof inlining, .n_threads = 1};
  code = psplit_emit(whole, &long_plan, "s", &inlining, diag);
  psplit_model_close(whole);
  return code;
}

static void a_merge_ends_soon_after_it_is_cancelled(void **state) {
  enum { MOST_CALLS = 32 }; /* writing the weight takes 25, comparing it 50 */
  (void)state;
  psplit_code code = PSPLIT_CANCELLED;
  begin_state(split_long);
  psplit_i_text old = snapshot();
  for (long nth = 0; code != PSPLIT_OK; nth++) {
    volatile int flag = 0;
    psplit_diag diag = {0};
    psplit_merge_options merging;
    psplit_merge_options_init(&merging);
    merging.cancel = &flag;
    cancel_at_call(nth, &flag);
    code = psplit_merge("s", "m.onnx", &merging, &diag, NULL);
    const long more = calls_since_cancelled();
    stop_failing_calls();
    if (code == PSPLIT_OK) continue;
    if (code != PSPLIT_CANCELLED || more > MOST_CALLS)
      fail_msg("call %ld: %s: %s, and %ld more calls", nth, psplit_code_name(code), diag.message,
               more);
    assert_true(is_as(&old));
  }
  psplit_i_text_fini(&old);
}

/* Stages may point into the model they are of, a merged model into nothing. */
static void a_merged_model_has_its_own_weights(void **state) {
  (void)state;
  psplit_diag diag = {0};
  struct stat status;
  psplit_merge_options merging;
  begin_state(only_split);
  psplit_merge_options_init(&merging);
  merging.weights = PSPLIT_WEIGHTS_REFERENCE;
  assert_int_equal(psplit_merge("s", "m.onnx", &merging, &diag, NULL), PSPLIT_USAGE);
  assert_string_equal(diag.message, "a merged model cannot point into stages");
  assert_int_equal(stat("m.onnx", &status), -1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_model, leave_model)
  const struct CMUnitTest tests[] = {
    TEST(files_are_old_or_new),
    TEST(splits_are_old_or_new),
    TEST(references_are_old_or_new),
    TEST(merged_models_are_old_or_new),
    TEST(an_accepted_model_replaces_the_old_one),
    TEST(a_merged_model_has_its_own_weights),
    TEST(a_merge_ends_soon_after_it_is_cancelled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
