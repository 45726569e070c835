/* Why: whoever looks for a split finds the one of before or the new one, whole, and nothing that is
 * not a split's is lost. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rich.h"
#include "scratch.h"

static void emit_refused(const psplit_model *model, const test_plan *p, const char *directory,
                         bool replace, const char *says) {
  psplit_diag diag;
  assert_int_equal(
    emit(model, p, directory, PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO, replace, &diag), PSPLIT_IO);
  if (!strstr(diag.message, says)) fail_msg("\"%s\" does not say \"%s\"", diag.message, says);
  if (strcmp(says, "exists") == 0) assert_int_equal(diag.hint, PSPLIT_HINT_REPLACE);
}

/* What is in the way stays as it is, unless it is a directory that may be replaced. */
static void what_is_in_the_way(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  assert_int_equal(system("mkdir old && echo mine > old/note && echo mine > file && "
                          "ln -s old link && mkdir holds && cp model.onnx holds/"),
                   0);
  emit_refused(model, &p, "old", false, "old holds note,"); /* leave to replace would not help */
  assert_int_equal(system("mkdir bare"), 0);
  emit_refused(model, &p, "bare", false, "exists");
  emit_refused(model, &p, "bare/", false, "exists");
  emit_refused(model, &p, "file", true, "is not a directory");
  emit_refused(model, &p, "link", true, "is not a directory");
  emit_refused(model, &p, "none/out", true, "none: No such file");
  emit_refused(model, &p, "file/out", true, "Not a directory");
  emit_refused(model, &p, ".", true, "holds the model itself");
  assert_true(exists("old/note"));
  assert_int_equal(system("mkdir -p tree/src here && echo mine > tree/src/note"), 0);
  emit_refused(model, &p, "tree", true, "tree holds src,");
  assert_true(exists("tree/src/note"));
  assert_int_equal(chdir("here"), 0);
  emit_refused(model, &p, ".", true, "working directory");
  emit_refused(model, &p, "../here", true, "working directory");
  assert_int_equal(chdir(".."), 0);
  emit_refused(model, &p, "old", true,
               "old holds note, which does not belong to the split there (there");
  assert_true(exists("old/note"));
  assert_int_equal(system("rm old/note"), 0);
  psplit_diag diag;
  assert_int_equal(emit(model, &p, "old//", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO, true, &diag),
                   PSPLIT_OK);
  assert_true(exists("old/pipeline.json"));
  emit_refused(model, &p, "old", false, "exists");
  emit_ok(model, &p, "./holds/../new/", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  assert_true(exists("new/stage2.onnx"));
  assert_int_equal(system("test -z \"$(ls -A | grep psplit)\""), 0);
  psplit_model_close(model);
}

/* A directory is replaced where all that it holds is of the split that its pipeline.json describes.
 */
static void only_splits_are_replaced(void **state) {
  (void)state;
  static const struct {
    const char *make, *says; /* NULL: it is replaced */
  } cases[] = {
    {"rm -r old && mkdir old", NULL},
    {"true", NULL},
    {"rm old/stage1.onnx", NULL},
    {"touch old/thesis.tex old/zebra",
     "old holds thesis.tex, which does not belong to the split there,"},
    {"touch old/.hidden", "old holds .hidden,"},
    {"touch old/stage3.onnx", "old holds stage3.onnx,"},
    {"touch old/stage0.onnx.data.bak", "old holds stage0.onnx.data.bak,"},
    {"rm old/stage0.onnx && ln -s ../model.onnx old/stage0.onnx", "old holds stage0.onnx,"},
    {"rm old/stage0.onnx && mkfifo old/stage0.onnx", "old holds stage0.onnx,"},
    {"rm old/stage0.onnx && mkdir old/stage0.onnx", "old holds stage0.onnx,"},
    {"rm old/pipeline.json", "old holds stage0.onnx,"},
    {"rm old/pipeline.json old/stage*", NULL},
    {"rm old/pipeline.json && mkfifo old/pipeline.json", "old holds pipeline.json,"},
    {"echo '{\"steps\": []}' > old/pipeline.json && rm old/stage*",
     "old holds pipeline.json, which does not belong to the split there (this version cannot read "
     "its pipeline.json: "},
    {"sed -i 's/\"transfers\"/\"sent\"/' old/pipeline.json",
     "(this version cannot read its pipeline.json: old/pipeline.json: transfers: is missing)"},
    {"mv old/pipeline.json . && ln -s ../pipeline.json old/", "old holds pipeline.json,"},
  };
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(system("rm -rf old pipeline.json"), 0);
    emit_ok(model, &p, "old", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_EXTERNAL);
    assert_int_equal(system(cases[i].make), 0);
    assert_int_equal(system("rm -rf as_it_was && cp -a old as_it_was && chmod 750 old"), 0);
    if (cases[i].says) {
      emit_refused(model, &p, "old", true, cases[i].says);
      psplit_diag diag = {0};
      const psplit_emit_options force = {.struct_size = sizeof force, .replace = true};
      assert_int_equal(psplit_emit_check(model, "old", &force, &diag), PSPLIT_IO);
      assert_non_null(strstr(diag.message, cases[i].says));
      assert_int_equal(system("test \"$(ls -lA old)\" = \"$(ls -lA as_it_was)\""), 0);
    } else {
      psplit_diag diag;
      assert_int_equal(emit(model, &p, "old", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO, true, &diag),
                       PSPLIT_OK);
      assert_int_equal(system("test \"$(ls -A old | tr '\\n' ' ')\" = "
                              "'pipeline.json stage0.onnx stage1.onnx stage2.onnx '"),
                       0);
    }
    assert_int_equal(system("test \"$(stat -c %a old)\" = 750"), 0);
  }
  psplit_model_close(model);
}

static psplit_code put_note(void *user, const char *directory, psplit_diag *diag) {
  (void)user, (void)directory, (void)diag;
  return system("touch old/note") == 0 ? PSPLIT_OK : PSPLIT_IO;
}

/* What comes into the old directory while the new one is written is not lost. */
static void late_files_are_kept(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "old", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  assert_int_equal(system("cp -a old before && touch before/note"), 0);
  const psplit_emit_options options = {
    .struct_size = sizeof options, .replace = true, .accept = put_note};
  psplit_diag diag = {0};
  assert_int_equal(psplit_emit(model, &p.plan, "old", &options, &diag), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "old holds note,"));
  assert_int_equal(system("diff -r old before && test -z \"$(ls -A | grep psplit)\""), 0);
  psplit_model_close(model);
}

/* Files keep their modes, new ones that of pipeline.json; DIR keeps its own. */
static void modes_are_kept(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  for (int inside = 0; inside < 2; inside++) {
    const psplit_weights weights = inside ? PSPLIT_WEIGHTS_REFERENCE : PSPLIT_WEIGHTS_AUTO;
    const char *directory = inside ? "." : "out";
    psplit_diag diag;
    assert_int_equal(chmod(".", 0755), 0);
    emit_ok(model, &p, directory, PSPLIT_BOUNDARY_IO, weights);
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(chmod(".", 0700) | chmod("pipeline.json", 0640) | chmod("stage0.onnx", 0600) |
                       chmod("stage1.onnx", 0444) | unlink("stage2.onnx"),
                     0);
    assert_int_equal(chdir(inside ? "." : ".."), 0);
    assert_int_equal(emit(model, &p, directory, PSPLIT_BOUNDARY_SENDRECV, weights, true, &diag),
                     PSPLIT_OK);
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(system("test \"$(stat -c %a . pipeline.json stage?.onnx | tr '\\n' ' ')\" = "
                            "'700 640 600 444 640 '"),
                     0);
    assert_int_equal(chdir(inside ? "." : ".."), 0);
  }
  psplit_model_close(model);
}

/* What a killed run left is removed; what is being written, or is a user's own, is not. */
static void hidden_directories(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  assert_int_equal(system("mkdir -p .out.psplit-1-0/x .out.psplit-2-0 .out.psplit-mine "
                          ".other.psplit-1-0 && touch .out.psplit-1-0/stage0.onnx"),
                   0);
  const int live = open(".out.psplit-2-0", O_RDONLY | O_DIRECTORY);
  assert_true(live >= 0 && flock(live, LOCK_EX) == 0);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  assert_false(exists(".out.psplit-1-0"));
  assert_true(exists(".out.psplit-2-0"));
  assert_true(exists(".out.psplit-mine"));
  assert_true(exists(".other.psplit-1-0"));
  close(live);
  psplit_model_close(model);
}

/* A model that changes under the reader is not mixed with what it was. */
static void changed_model(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  assert_int_equal(system("echo >> model.onnx"), 0);
  emit_refused(model, &p, "out", false, "changed while");
  assert_int_equal(truncate("model.onnx", 100), 0);
  emit_refused(model, &p, "out", false, "was truncated");
  assert_int_equal(system("test \"$(ls -A)\" = model.onnx"), 0);
  psplit_model_close(model);
}

static void interrupted(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  const int cancel = 1;
  const psplit_emit_options options = {.struct_size = sizeof options, .cancel = &cancel};
  psplit_diag diag = {0};
  assert_int_equal(psplit_emit(model, &p.plan, "out", &options, &diag), PSPLIT_CANCELLED);
  assert_string_equal(diag.message, "interrupted");
  assert_int_equal(system("test \"$(ls -A)\" = model.onnx"), 0);
  psplit_model_close(model);
}

/* Before the last stage those in front of it have been counted. */
typedef struct watched {
  psplit_activity *activity;
  uint64_t done, all;
} watched;

static void watch(void *user, psplit_severity severity, const char *line) {
  watched *w = user;
  if (severity != PSPLIT_PROGRESS || !strstr(line, "writing stage 3")) return;
  assert_int_equal(psplit_activity_get(w->activity, &w->done, &w->all), PSPLIT_ACTIVITY_BYTES);
}

static void bytes_are_counted(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  watched w = {0};
  psplit_diag diag = {0};
  assert_int_equal(psplit_activity_create(&diag, &w.activity), PSPLIT_OK);
  const psplit_logger logger = {.emit = watch, .user = &w};
  const psplit_emit_options options = {
    .struct_size = sizeof options, .n_threads = 1, .logger = &logger, .activity = w.activity};
  assert_int_equal(psplit_emit(model, &p.plan, "out", &options, &diag), PSPLIT_OK);
  struct stat whole, first, second;
  assert_int_equal(stat("model.onnx", &whole), 0);
  assert_int_equal(stat("out/stage0.onnx", &first), 0);
  assert_int_equal(stat("out/stage1.onnx", &second), 0);
  assert_int_equal(w.done, first.st_size + second.st_size);
  assert_int_equal(w.all, whole.st_size);
  assert_int_equal(psplit_activity_get(w.activity, &w.done, &w.all), PSPLIT_ACTIVITY_NONE);
  psplit_activity_destroy(w.activity);
  psplit_model_close(model);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(what_is_in_the_way),  CASE(hidden_directories), CASE(only_splits_are_replaced),
    CASE(late_files_are_kept), CASE(modes_are_kept),     CASE(changed_model),
    CASE(interrupted),         CASE(bytes_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
