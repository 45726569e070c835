/* Showing and annotating a model when memory runs out: whichever allocation fails, the call says
 * NOMEM, leaks nothing and leaves no file behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/emit.h>
#include <psplit/snapshot.h>
#include <psplit/view.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing.h"
#include "open.h"
#include "planner.h"

/* A plan of a model with layers that repeat, scopes in its names, and notes. */
typedef struct fixture {
  psplit_model *model;
  psplit_planner *planner;
  char directory[64], path[80];
} fixture;

static psplit_model *make_layers(void) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(float[4] v0) => (float[4] v4) <float[1] w = {0}> {");
  for (unsigned layer = 0; layer < 4; layer++)
    psplit_i_text_addf(&text,
                       "[\"/layers/%u/mlp/Softmax\"] m%u = Softmax (v%u)\n"
                       "[\"/layers/%u/mlp/Max\"] v%u = Max (v%u, m%u)\n",
                       layer, layer, layer, layer, layer + 1, layer, layer);
  psplit_i_text_puts(&text, "}");
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

static int enter(void **state) {
  static fixture f;
  psplit_planner_options options;
  psplit_diag diag = {0};
  f.model = make_layers();
  psplit_planner_options_init(&options);
  options.n_stages = 2;
  options.n_threads = 1;
  strcpy(f.directory, "/tmp/psplit-view-XXXXXX");
  if (!mkdtemp(f.directory) ||
      psplit_planner_create(f.model, &options, &diag, &f.planner) != PSPLIT_OK ||
      psplit_planner_run(f.planner, NULL, &diag) != PSPLIT_OK ||
      !psplit_i_vec_push(&f.planner->notes, ((psplit_i_note){0, "test", "a note"})))
    return -1;
  snprintf(f.path, sizeof f.path, "%s/out.onnx", f.directory);
  *state = &f;
  return 0;
}

static int leave(void **state) {
  fixture *f = *state;
  psplit_planner_destroy(f->planner);
  psplit_model_close(f->model);
  return rmdir(f->directory);
}

typedef psplit_code attempt(const fixture *f, int which, psplit_diag *diag);

/* Fails every allocation of `run` in turn. */
static void fail_each(const fixture *f, attempt *run, int which) {
  long nth = 0;
  for (psplit_code code = PSPLIT_NOMEM; code != PSPLIT_OK; nth++) {
    psplit_diag diag = {0};
    struct stat status;
    const long live_before = live_blocks();
    fail_allocation_after(nth);
    code = run(f, which, &diag);
    const bool failed = stop_failing();
    if ((code != PSPLIT_OK && code != PSPLIT_NOMEM) || (code == PSPLIT_OK) == failed ||
        live_blocks() != live_before)
      fail_msg("form %d, allocation %ld: %s, %s; %ld blocks stay", which, nth,
               psplit_code_name(code), diag.message, live_blocks() - live_before);
    assert_true(stat(f->path, &status) != 0 || code == PSPLIT_OK);
    remove(f->path);
  }
  assert_true(nth > 5); /* else the wrapping does not work */
}

static psplit_code show(const fixture *f, int which, psplit_diag *diag) {
  psplit_snapshot *snapshot = NULL;
  char *text = NULL;
  const psplit_view_options options = {.struct_size = sizeof options,
                                       .format = (psplit_view_format)which,
                                       .level = PSPLIT_VIEW_SUPERNODES};
  psplit_code code = psplit_snapshot_take(f->planner, diag, &snapshot);
  const psplit_snapshot *one = snapshot;
  if (code == PSPLIT_OK && which == PSPLIT_VIEW_HTML)
    code = psplit_snapshot_count(f->planner, snapshot, diag);
  if (code == PSPLIT_OK) code = psplit_view(&one, 1, &options, diag, &text, NULL);
  free(text);
  psplit_snapshot_destroy(snapshot);
  return code;
}

static psplit_code annotate(const fixture *f, int which, psplit_diag *diag) {
  return psplit_emit_annotated(f->model, psplit_planner_plan(f->planner), (psplit_annotation)which,
                               f->path, NULL, diag);
}

static psplit_code make_blocks(const fixture *f, int which, psplit_diag *diag) {
  const uint32_t node_block[] = {0, 0, 1, 1, 2, 2, 3, 3};
  const char *const titles[] = {"a", "b", "c", "d"};
  const char *const kinds[] = {"conv + ReLU", "conv", "pool", "linear"};
  const psplit_blocks blocks = {8, node_block, 4, titles, kinds};
  (void)which;
  return psplit_emit_blocks(f->model, &blocks, f->path, NULL, diag);
}

static void views(void **state) {
  for (int format = PSPLIT_VIEW_TEXT; format <= PSPLIT_VIEW_SVG; format++)
    if (psplit_view_has((psplit_view_format)format)) fail_each(*state, show, format);
}

static void annotations(void **state) {
  for (int form = PSPLIT_ANNOTATION_ONNX; form <= PSPLIT_ANNOTATION_OLIVE; form++)
    fail_each(*state, annotate, form);
}

static void blocks(void **state) { fail_each(*state, make_blocks, 0); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(views), cmocka_unit_test(annotations),
                                     cmocka_unit_test(blocks)};
  return cmocka_run_group_tests(tests, enter, leave);
}
