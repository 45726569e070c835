/* Why: stages that take their places among other files (--weights reference) do it all or none,
 * whichever rename fails and wherever the process is killed; what could not be undone at once, the
 * next run undoes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>

#include <psplit/emit.h>

#include "../support/hand_plan.h"
#include "graph.h"
#include "scratch.h"
#include "text_model.h"

/* The linker sends the library's calls here (--wrap). */
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);

typedef enum trouble { FAIL_ONCE, FAIL_FROM_THEN_ON, KILL } trouble;

enum { KILLED = 99 };

static long left = -1; /* renames until there is trouble; negative: none comes */
static trouble kind;

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to) {
  if (left == 0 && kind == KILL) _exit(KILLED);
  if (left == 0) {
    if (kind == FAIL_ONCE) left = -1;
    errno = ENOSPC;
    return -1;
  }
  if (left > 0) left--;
  return __real_renameat(from_fd, from, to_fd, to);
}

static void shell(const char *command) {
  if (system(command) != 0) fail_msg("%s", command);
}

static bool holds(const char *command) { return system(command) == 0; }

/* The weight is large enough to be left there. */
static const char MODEL[] =
  "(float[300] x) => (float[300] y) <float[300] w = random(1)> {"
  "  a = Add (x, w)"
  "  b = Relu (a)"
  "  y = Tanh (b)"
  "}";

static psplit_code refuse(void *user, const char *directory, psplit_diag *diag) {
  (void)user;
  (void)directory;
  return diag->code = PSPLIT_MISMATCH;
}

/* In two or three stages, the middle one alone or with the last. */
static psplit_code split(const psplit_model *model, uint32_t n_stages, bool refused,
                         psplit_diag *diag) {
  const uint32_t node_stage[] = {0, 1, n_stages - 1};
  const psplit_plan_stage stages[] = {{.device = "d", .n_nodes = 1},
                                      {.device = "d", .n_nodes = n_stages == 2 ? 2 : 1},
                                      {.device = "d", .n_nodes = 1}};
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  const psplit_plan_transfer transfers[] = {
    {.value = psplit_i_graph_find_value(graph, "a"), .tensor = "a", .from = 0, .to = 1},
    {.value = psplit_i_graph_find_value(graph, "b"), .tensor = "b", .from = 1, .to = 2}};
  const psplit_plan plan = hand_plan(3, node_stage, n_stages, stages, n_stages - 1, transfers);
  const psplit_emit_options options = {.struct_size = sizeof options,
                                       .weights = PSPLIT_WEIGHTS_REFERENCE,
                                       .replace = true,
                                       .accept = refused ? refuse : NULL};
  *diag = (psplit_diag){0};
  return psplit_emit(model, &plan, "place", &options, diag);
}

static psplit_model *prepare(void) {
  shell("mkdir -p place/m && echo mine > place/note");
  write_model_text("place/m/model.onnx", MODEL);
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  assert_int_equal(psplit_model_open("place/m/model.onnx", NULL, &diag, &model), PSPLIT_OK);
  assert_int_equal(split(model, 2, false, &diag), PSPLIT_OK);
  shell("cp -a place new && find place -mindepth 1 -maxdepth 1 ! -name m ! -name note -delete");
  assert_int_equal(split(model, 3, false, &diag), PSPLIT_OK);
  shell("cp -a place old && ! diff -rq old new >diff");
  return model;
}

/* The model stays the file that is open. */
static void back_to_old(void) {
  shell(
    "find place -mindepth 1 -maxdepth 1 ! -name m -exec rm -rf {} + &&"
    "find old -mindepth 1 -maxdepth 1 ! -name m -exec cp -a {} place ';'");
}

static void every_rename_fails(void **state) {
  (void)state;
  psplit_model *model = prepare();
  psplit_diag diag;
  psplit_code code = PSPLIT_IO;
  long nth = 0;
  for (kind = FAIL_ONCE; code != PSPLIT_OK; nth++) {
    left = nth;
    code = split(model, 2, false, &diag);
    left = -1;
    if (code == PSPLIT_OK) break;
    assert_int_equal(code, PSPLIT_IO);
    assert_non_null(strstr(diag.message, "No space left"));
    shell("diff -r place old");
    assert_true(nth < 100);
  }
  assert_true(nth > 7); /* four of the old, three of the new, and the list of names */
  shell("diff -r place new");
  psplit_model_close(model);
}

/* Nothing can be undone at once: it says where things are, and the next run undoes it. */
static void every_rename_fails_from_then_on(void **state) {
  (void)state;
  psplit_model *model = prepare();
  psplit_diag diag;
  kind = FAIL_FROM_THEN_ON;
  for (long nth = 0;; nth++) {
    back_to_old();
    left = nth;
    const psplit_code code = split(model, 2, false, &diag);
    left = -1;
    if (code == PSPLIT_OK) break;
    assert_int_equal(code, PSPLIT_IO);
    if (nth > 1) assert_non_null(strstr(diag.message, "holds the replaced files"));
    if (nth > 1) assert_false(holds("test -e place/pipeline.json"));
    assert_int_equal(split(model, 2, true, &diag), PSPLIT_MISMATCH);
    shell("diff -r place old");
  }
  psplit_model_close(model);
}

static int status_of_child(const psplit_model *model) {
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    psplit_diag diag;
    _exit(split(model, 2, false, &diag) == PSPLIT_OK ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* Also where the run that undoes it is killed in turn. */
static void killed_at_every_rename(void **state) {
  (void)state;
  psplit_model *model = prepare();
  psplit_diag diag;
  kind = KILL;
  for (long nth = 0;; nth++) {
    back_to_old();
    left = nth;
    const int status = status_of_child(model);
    left = -1;
    if (status == 0) break;
    assert_int_equal(status, KILLED);
    assert_true(!holds("test -e place/pipeline.json") || holds("diff -r -x '.*' place old"));
    for (left = 0; left < nth; left++) {
      const long again = left;
      assert_int_equal(status_of_child(model), KILLED);
      left = again;
    }
    left = -1;
    assert_int_equal(split(model, 2, true, &diag), PSPLIT_MISMATCH);
    shell("diff -r place old");
  }
  shell("diff -r place new");
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_rename_fails, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(every_rename_fails_from_then_on, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(killed_at_every_rename, enter_scratch, leave_scratch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
