/* What of a model a provider takes, by places of nodes that are made up; and profiles of a model
 * and of stages as costs files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <psplit/emit.h>
#include <psplit/profile.h>

#include "failing.h"
#include "failing_requests.h"
#include "fake_runs.h"
#include "scratch.h"
#include "text_model.h"

/* Sizes, a body, a constant, a node that reaches no output. */
#define HEAD "(float[a,8] x, bool c) => (float[a,8] y) <float[8] w = raw {0 * 8}> {"
#define TAIL                                                             \
  " [\"dead\"] dead = Neg (x)"                                           \
  " [\"choice\"] b = If (c) <then_branch = t () => (r) { r = Exp (m) }," \
  " else_branch = e () => (q) { q = Abs (m) }> "
static const char NAMED[] =
  HEAD "[\"size\"] s = Shape (x) [\"flat\"] m = Mul (x, w)" TAIL
       "[\"back/Reshape\"] r2 = Reshape (b, s) [\"clip_1\"] y = Clip (r2) }";
static const char UNNAMED[] =
  HEAD "s = Shape (x) m = Mul (x, w)" TAIL "r2 = Reshape (b, s) y = Clip (r2) }";
static const char TWICE[] = HEAD "[\"size\"] s = Shape (x) [\"op\"] m = Mul (x, w)" TAIL
                                 "[\"op\"] r2 = Reshape (b, s) [\"clip_1\"] y = Clip (r2) }";
static const char GATHER[] =
  "(float[a,8] x) => (float[a,8] y) <int64[8] order = {0, 1, 2, 3, 4, 5, 6, 7}> {"
  "[\"size\"] s = Shape (x) [\"Gather\"] g = Gather <axis = 1> (x, order)"
  "[\"back\"] y = Reshape (g, s) }";
static const char SIZELESS[] = "(float[a,8] x) => (float[a,8] y) { [\"only\"] y = Neg (x) }";

static const char PICKED[] =
  "(float[a,8] x) => (float[a,8] y) <int64[8] order = {0, 1, 2, 3, 4, 5, 6, 7}> {"
  "[\"size\"] s = Shape (x) [\"pick\"] g = Gather <axis = 1> (x, order)"
  "[\"back\"] y = Reshape (g, s) }";
static const char FOLDED[] =
  "(float[a,8] x) => (float[8] y) <float[8] w = raw {0 * 8}> {"
  "[\"size\"] s = Shape (w) [\"sum\"] m = ReduceSum (x) [\"wide\"] y = Expand (m, s) }";
static const char SECOND[] =
  "(float[3,1,4] x) => (float[1,1,4] y) <float[1,16,4] w = raw {0 * 64}> {"
  "\"\", h = LSTM <hidden_size = 4> (x, w, w) n = Neg (h) y = Abs (n) }";

#define CPU(name, op) \
  { "CPUExecutionProvider", name, op }
#define GPU(name, op) \
  { "OddExecutionProvider", name, op }
#define REST(name, op) \
  { "OtherExecutionProvider", name, op }

static psplit_model *open_model(const char *path, const char *text) {
  psplit_diag diag = {0};
  psplit_model *model;
  write_model_text(path, text);
  if (psplit_model_open(path, NULL, &diag, &model) != PSPLIT_OK) fail_msg("%s", diag.message);
  return model;
}

/* Files and directories here besides models and the stages that tests wrote. */
static int n_left(void) {
  int n = 0;
  DIR *here = opendir(".");
  assert_non_null(here);
  for (struct dirent *each; (each = readdir(here));) n += strncmp(each->d_name, "psplit-", 7) == 0;
  closedir(here);
  return n;
}

static psplit_code probe(const psplit_model *model, const char *path, psplit_diag *diag,
                         psplit_probe *out) {
  psplit_planner_options planner;
  const psplit_session session = {.provider = "odd", .optimization = 2, .assert_placement = true};
  psplit_planner_options_init(&planner);
  planner.n_threads = 1;
  fake.n_calls = 0;
  return psplit_probe_provider(&FAKE_ORT, path, model, &session, &planner, diag, out);
}

static char long_name[1200];

static const struct probing {
  const char *title, *text;
  psplit_i_placed placed[MOST_PLACED];
  uint32_t n_left, n_host;
  const char *left, *nodes, *host, *others;
} probings[] = {
  {"all is taken",
   NAMED,
   {GPU("flat", "Mul")},
   0,
   0,
   "",
   "",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   ""},
  {"what is with a third one is not left",
   NAMED,
   {REST("flat", "Mul")},
   0,
   0,
   "",
   "",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   ""},
  {"most first, of equals the first; what is made of a node is that node",
   NAMED,
   {CPU("clip_1", "Clip"), CPU("flat/MulFusion/", "Fused"), CPU("back/Reshape_token_3", "Reshape"),
    CPU("size", "Shape"), CPU("dead", "Neg")},
   3,
   1,
   "Mul 1, Reshape 1, Clip 1",
   "\"flat\",\"back/Reshape\",\"clip_1\"",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   ""},
  {"a body's node leaves what has bodies, and is told once",
   NAMED,
   {CPU("inner", "Exp"), CPU("inner", "Exp"), CPU("", "Abs"), CPU(long_name, "Abs")},
   1,
   0,
   "If 1",
   "\"choice\"",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   "\"inner\",LONG"},
  {"a Gather of ONNX Runtime's own is nobody's",
   NAMED,
   {CPU("Gather", "Gather"), CPU("Gather_token_7", "Gather"), CPU("", "Gather")},
   0,
   0,
   "",
   "",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   ""},
  {"another Gather is",
   NAMED,
   {CPU("inner/Gather", "Gather")},
   1,
   0,
   "If 1",
   "\"choice\"",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   "\"inner/Gather\""},
  {"the model's own Gather keeps its name",
   GATHER,
   {CPU("Gather", "Gather")},
   1,
   0,
   "Gather 1",
   "\"Gather\"",
   "\"size\"",
   ""},
  {"a Gather by another name is no bar to one",
   PICKED,
   {CPU("Gather", "Gather"), CPU("pick", "Gather")},
   1,
   0,
   "Gather 1",
   "\"pick\"",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   ""},
  {"sizes of constants are nobody's",
   FOLDED,
   {CPU("size", "Shape"), CPU("wide", "Expand")},
   1,
   0,
   "Expand 1",
   "\"wide\"",
   "\"Gather\",\"Gather_token_*\"",
   ""},
  {"by what it makes, which is not its first output",
   SECOND,
   {CPU("#0#", "LSTM")},
   1,
   0,
   "LSTM 1",
   "\"h\"",
   "",
   ""},
  {"without sizes none is made", SIZELESS, {CPU("only", "Neg")}, 1, 0, "Neg 1", "\"only\"", "", ""},
  {"without names numbers tell",
   UNNAMED,
   {CPU("#1#", "Mul"), CPU("#1#_token_2", "Mul"), CPU("#0#", "Shape"), CPU("#99#", "Mul"),
    CPU("#4", "Mul"), CPU("Clip", "Clip")},
   2,
   1,
   "Mul 1, If 1",
   "\"m\",\"choice\"",
   "\"s\",\"Gather\",\"Gather_token_*\"",
   "\"#99#\",\"#4\",\"Clip\""},
  {"and where a name stands twice",
   TWICE,
   {CPU("#4#", "Reshape")},
   1,
   0,
   "Reshape 1",
   "\"op\"",
   "\"size\",\"Gather\",\"Gather_token_*\"",
   ""},
};

static void set_placed(const struct probing *p) {
  fake = (fake_runs){.placed = p->placed};
  while (fake.n_placed < MOST_PLACED && p->placed[fake.n_placed].provider) fake.n_placed++;
}

/* JSON without what stands between its words; names here have no spaces. */
static void squeeze(const char *text, char *out) {
  for (; *text; text++)
    if (*text != ' ' && *text != '\n') *out++ = *text;
  *out = '\0';
}

static void has_list(const char *title, const char *text, const char *key, const char *list) {
  static char wanted[4096];
  const char *at = strstr(list, "LONG");
  snprintf(wanted, sizeof wanted, "\"%s\":[%.*s%s%s%s]", key, at ? (int)(at - list) : 999, list,
           at ? "\"" : "", at ? long_name : "", at ? "\"" : "");
  if (!strstr(text, wanted)) fail_msg("%s: no %s in\n%s", title, wanted, text);
}

static void probes(void **state) {
  static char text[8192];
  memset(long_name, 'n', sizeof long_name - 1);
  setenv("TMPDIR", *state, 1);
  for (size_t i = 0; i < sizeof probings / sizeof *probings; i++) {
    const struct probing *p = &probings[i];
    psplit_diag diag = {0};
    psplit_probe found;
    psplit_model *model = open_model("some.onnx", p->text);
    set_placed(p);
    if (probe(model, "./some.onnx", &diag, &found) != PSPLIT_OK)
      fail_msg("%s: %s", p->title, diag.message);
    const bool copied = p->text == UNNAMED || p->text == TWICE || p->text == SECOND;
    assert_int_equal(strstr(fake.opened, "/psplit-probe-") != NULL, copied);
    assert_true(fake.session.record_placement && !fake.session.assert_placement);
    if (found.n_left != p->n_left || found.n_host != p->n_host || strcmp(found.left, p->left) != 0)
      fail_msg("%s: %u, %u, %s", p->title, found.n_left, found.n_host, found.left);
    assert_int_equal(found.n_nodes, p->text == SIZELESS      ? 1
                                    : p->text == FOLDED      ? 2 /* one is a constant */
                                    : strstr(p->text, " c)") ? 5
                                                             : 3);
    assert_true(strlen(found.text) < sizeof text);
    squeeze(found.text, text);
    assert_non_null(strstr(text,
                           "\"provider\":\"odd\",\"onnxruntime\":\"1.99\",\"optimization\":2,"
                           "\"model\":\"some.onnx\""));
    has_list(p->title, text, "nodes", p->nodes);
    has_list(p->title, text, "host_nodes", p->host);
    has_list(p->title, text, "others", p->others);
    assert_int_equal(n_left(), 0);
    psplit_probe_fini(&found);
    assert_null(found.text);
    psplit_model_close(model);
  }
}

/* A model in which an If was replaced is in no file: a copy is asked. */
static void probes_of_inlined(void **state) {
  psplit_diag diag = {0};
  psplit_probe found;
  psplit_model *model;
  psplit_read_options read;
  const psplit_inline_if branch = {.node = "choice", .then_branch = true};
  const psplit_i_placed placed[] = {CPU("#0#", "Shape")};
  setenv("TMPDIR", *state, 1);
  psplit_read_options_init(&read);
  read.inline_ifs = &branch;
  read.n_inline_ifs = 1;
  write_model_text("some.onnx", NAMED);
  if (psplit_model_open("some.onnx", &read, &diag, &model)) fail_msg("%s", diag.message);
  fake = (fake_runs){.placed = placed, .n_placed = 1};
  assert_int_equal(probe(model, "some.onnx", &diag, &found), PSPLIT_OK);
  assert_non_null(strstr(fake.opened, "/psplit-probe-"));
  assert_int_equal(found.n_host, 1);
  assert_int_equal(n_left(), 0);
  psplit_probe_fini(&found);
  psplit_model_close(model);
}

static void probes_refused(void **state) {
  psplit_diag diag = {0};
  psplit_probe found;
  psplit_planner_options planner;
  const psplit_session session = {.optimization = -1};
  psplit_model *model = open_model("some.onnx", UNNAMED);
  psplit_planner_options_init(&planner);
  assert_int_equal(
    psplit_probe_provider(&FAKE_ORT, "some.onnx", model, &session, &planner, &diag, &found),
    PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "no execution provider"));
  for (int fails_at = 1; fails_at <= 2; fails_at++) {
    diag = (psplit_diag){0};
    fake = (fake_runs){.fails_at = fails_at};
    assert_int_equal(probe(model, "some.onnx", &diag, &found), PSPLIT_IO);
    assert_int_equal(n_left(), 0);
  }
  diag = (psplit_diag){0};
  fake = (fake_runs){0};
  setenv("TMPDIR", "nowhere", 1);
  assert_int_equal(probe(model, "some.onnx", &diag, &found), PSPLIT_IO);
  assert_string_equal(diag.message, "no directory can be made under nowhere");
  for (int set = 0; set < 2; set++) { /* no TMPDIR, or one that says nothing */
    if (set)
      setenv("TMPDIR", "", 1);
    else
      unsetenv("TMPDIR");
    assert_int_equal(probe(model, "some.onnx", &diag, &found), PSPLIT_OK);
    assert_int_equal(strncmp(fake.opened, "/tmp/psplit-probe-", 18), 0);
    psplit_probe_fini(&found);
  }
  setenv("TMPDIR", *state, 1);
  psplit_model_close(model);
}

/* What is tried while memory runs out; frees what it was given. */
typedef psplit_code attempt(void *given, psplit_diag *diag);

static bool fails_well(attempt *try, void *given, long nth, bool (*stop)(void)) {
  psplit_diag diag = {0};
  const long live = live_blocks();
  const psplit_code code = try(given, &diag);
  const bool failed = stop();
  if ((code != PSPLIT_OK && (code != PSPLIT_NOMEM || !failed)) || live_blocks() != live || n_left())
    fail_msg("allocation %ld: %s, %s; %ld blocks and %d files stay", nth, psplit_code_name(code),
             diag.message, live_blocks() - live, n_left());
  return failed;
}

static void fail_each(attempt *try, void *given) {
  long nth = 0;
  for (bool failed = true; failed; nth++) {
    fail_allocation_after(nth);
    failed = fails_well(try, given, nth, stop_failing);
  }
  assert_true(nth > 10);
  for (bool failed = true; failed; nth++) {
    fail_new_request();
    failed = fails_well(try, given, nth, stop_failing_requests);
  }
}

static psplit_code try_probe(void *given, psplit_diag *diag) {
  psplit_probe found = {0};
  const psplit_code code = probe(given, "some.onnx", diag, &found);
  psplit_probe_fini(&found);
  return code;
}

static void probes_starve(void **state) {
  setenv("TMPDIR", *state, 1);
  for (size_t i = 3; i < sizeof probings / sizeof *probings; i += 5) {
    psplit_model *model = open_model("some.onnx", probings[i].text);
    set_placed(&probings[i]);
    fail_each(try_probe, model);
    psplit_model_close(model);
  }
}

/* Of a model: what ONNX Runtime tells becomes a costs file that is read again. */
static psplit_code profile_model(void *path, psplit_diag *diag) {
  char *text = NULL;
  psplit_cost_table *table;
  psplit_run_options options;
  psplit_run_options_init(&options);
  fake.n_calls = 0;
  psplit_code code = psplit_profile_model(&FAKE_ORT, path, NULL, &options, diag, &text);
  if (code == PSPLIT_OK) {
    code = psplit_cost_table_parse("made", text, strlen(text), diag, &table);
    if (code == PSPLIT_OK) psplit_cost_table_destroy(table);
  }
  free(text);
  return code;
}

static const char CHAIN[] =
  "(float[1,16] x) => (float[1,16] v2) {"
  " [\"n0\"] v0 = Relu (x) [\"n1\"] v1 = Exp (v0) [\"n2\"] v2 = Neg (v1) }";

static void models(void **state) {
  static char squeezed[8192];
  static char path[] = "chain.onnx", missing[] = "none.onnx";
  psplit_diag diag = {0};
  psplit_run_options options;
  psplit_feed_options feed;
  char *text = NULL;
  write_model_text(path, CHAIN);
  setenv("TMPDIR", *state, 1);
  psplit_run_options_init(&options);
  psplit_feed_options_init(&feed);
  options.feed = &feed;
  options.n_micro_batches = 7;
  for (int i = 0; i < 2; i++) {
    fake = (fake_runs){.kernel_us = 10, .no_optimized = i == 1};
    if (psplit_profile_model(&FAKE_ORT, path, NULL, &options, &diag, &text) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    assert_true(strlen(text) < sizeof squeezed);
    squeeze(text, squeezed);
    /* Later kernels are longer; together they are the 60 us that runs took. */
    for (const char *const *part =
           (const char *const[]){"\"ns\":18522", "\"ns\":20000", "\"ns\":21478", "1.99", NULL};
         *part; part++)
      if (!strstr(squeezed, *part)) fail_msg("no %s in %s", *part, text);
    free(text);
    assert_int_equal(n_left(), 0);
  }
  fake = (fake_runs){.kernel_us = 10, .fails_at = 1};
  assert_int_equal(profile_model(path, &diag), PSPLIT_IO);
  assert_int_equal(profile_model(missing, &diag), PSPLIT_IO);
  options.n_micro_batches = 0;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_profile_model(&FAKE_ORT, path, NULL, &options, &diag, &text),
                   PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "at least one micro-batch"));
  fake = (fake_runs){.kernel_us = 10};
  fail_each(profile_model, path);
}

/* The chain in two stages, in `directory`. */
static void write_stages(const char *directory) {
  psplit_diag diag = {0};
  psplit_planner *planner;
  psplit_planner_options options;
  psplit_emit_options emit;
  psplit_model *model = open_model("chain.onnx", CHAIN);
  psplit_planner_options_init(&options);
  psplit_emit_options_init(&emit);
  options.n_stages = 2;
  if (psplit_planner_create(model, &options, &diag, &planner) != PSPLIT_OK ||
      psplit_planner_run(planner, NULL, &diag) != PSPLIT_OK ||
      psplit_emit(model, psplit_planner_plan(planner), directory, &emit, &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

static psplit_code profile_stages(void *pipeline, psplit_diag *diag) {
  char *text = NULL;
  psplit_run_options options;
  psplit_run_options_init(&options);
  fake.n_calls = 0;
  const psplit_code code = psplit_profile_stages(&FAKE_ORT, pipeline, &options, diag, &text);
  free(text);
  return code;
}

static void stages(void **state) {
  static const int64_t dims[] = {1, 16};
  static const psplit_feed_shape shape = {.input = "x", .dims = dims, .n_dims = 2};
  static const psplit_feed_shape other = {.input = "z", .dims = dims, .n_dims = 2};
  static const struct {
    const char *directory, *name;
  } names[] = {{"split", "\"split\""}, {"./split", "\"split\""}, {"./split/", "\"./split/\""}};
  static char squeezed[8192];
  psplit_pipeline *pipeline;
  psplit_run_options options;
  psplit_feed_options feed;
  write_stages("split");
  setenv("TMPDIR", *state, 1);
  psplit_run_options_init(&options);
  psplit_feed_options_init(&feed);
  options.feed = &feed;
  feed.n_shapes = 1;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    psplit_diag diag = {0};
    char *text = NULL;
    fake = (fake_runs){.kernel_us = 10, .no_optimized = i == 1, .stage_ns = {{70000, 90000}}};
    if (psplit_pipeline_open(names[i].directory, NULL, &diag, &pipeline) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    feed.shapes = &shape;
    if (psplit_profile_stages(&FAKE_ORT, pipeline, &options, &diag, &text) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    assert_true(strlen(text) < sizeof squeezed);
    squeeze(text, squeezed);
    if (!strstr(squeezed, names[i].name)) fail_msg("no %s in %s", names[i].name, text);
    assert_int_equal(n_left(), 0);
    free(text);
    feed.shapes = &other;
    assert_int_equal(psplit_profile_stages(&FAKE_ORT, pipeline, &options, &diag, &text),
                     PSPLIT_USAGE);
    assert_non_null(strstr(diag.message, "no input z"));
    psplit_pipeline_close(pipeline);
  }
  psplit_diag diag = {0};
  assert_int_equal(psplit_pipeline_open("split", NULL, &diag, &pipeline), PSPLIT_OK);
  options.n_micro_batches = 0;
  assert_int_equal(psplit_profile_stages(&FAKE_ORT, pipeline, &options, &diag, NULL), PSPLIT_USAGE);
  for (int fails_at = 1; fails_at <= 2; fails_at++) {
    fake.fails_at = fails_at;
    assert_int_equal(profile_stages(pipeline, &diag), PSPLIT_IO);
    assert_int_equal(n_left(), 0);
  }
  fake.fails_at = 0;
  fail_each(profile_stages, pipeline);
  assert_int_equal(remove("split/stage1.onnx"), 0);
  assert_int_equal(profile_stages(pipeline, &diag), PSPLIT_IO);
  psplit_pipeline_close(pipeline);
}

int main(void) {
  fail_requests_by_chain();
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(probes, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(probes_of_inlined, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(probes_refused, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(probes_starve, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(models, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(stages, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
