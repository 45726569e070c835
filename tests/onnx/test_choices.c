/* Why: what is asked of a model by name (an If to take, a configuration, dimensions, inputs) is
 * found or refused by the line that says why, in each form that a file may have; and whichever
 * allocation fails, nothing is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "model.h"
#include "placement.h"
#include "scratch.h"
#include "text_model.h"

#define OPSET(version) "<ir_version: 11, opset_import: [\"\": " #version "]>\n"

static psplit_code open_with(const char *path, const psplit_inline_if *choice, psplit_diag *diag,
                             psplit_model **out) {
  psplit_read_options options;
  psplit_read_options_init(&options);
  options.inline_ifs = choice;
  options.n_inline_ifs = choice ? 1 : 0;
  return psplit_model_open(path, &options, diag, out);
}

/* Each allocation of `call` fails: it says so, or leaves a hint out of what it says anyway. */
static void fail_each(psplit_code (*call)(const void *what, psplit_diag *diag), const void *what,
                      psplit_code code) {
  long i = 0;
  for (bool reached = true; reached; i++) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code found = call(what, &diag);
    reached = stop_failing();
    if ((found != code && !(reached && found == PSPLIT_NOMEM)) || found != diag.code ||
        live_blocks() != live_before)
      fail_msg("allocation %ld: %s: %s", i, psplit_code_name(found), diag.message);
  }
}

/* --- Ifs that are taken for a branch --- */

#define IF                                                               \
  "i = If (flag) <then_branch = t () => (float[2] p) { p = Relu (a) }, " \
  "else_branch = e () => (float[2] q) { q = Neg (a) }>"
#define MAIN(inputs, ifs)                                                         \
  OPSET(17)                                                                       \
  "main (float[2] x, bool flag" inputs ") => (float[2] y) { [a] a = Abs (x) " ifs \
  " [y] y = Exp (i) }"

typedef struct choice {
  const char *model, *node;
  bool then_branch;
  psplit_code code;
  const char *says; /* of the message; of the model's text where it is opened */
} choice;

static const choice CHOICES[] = {
  {MAIN("", "[n] " IF), "n", true, PSPLIT_OK, "[\"n/i\"] i = Identity (p)"},
  {MAIN("", "[n] " IF), "n", false, PSPLIT_OK, "[\"n/i\"] i = Identity (q)"},
  {MAIN("", "[n] " IF), "i", false, PSPLIT_OK, "q = Neg (a)"},
  {MAIN("", IF), "i", true, PSPLIT_OK, "[\"/i\"] i = Identity (p)"},
  /* names */
  {MAIN("", "[n] " IF), "m", true, PSPLIT_USAGE,
   "m: no If of the main graph has that name or output (an If in a branch can be inlined after the "
   "If that contains it); Ifs are n"},
  {MAIN("", IF), "m", true, PSPLIT_USAGE, "Ifs are i"},
  {MAIN("", "[a] i = Neg (a)"), "m", true, PSPLIT_USAGE, "no If of the main graph has that name"},
  {MAIN("",
        "\"\", j = If (flag) <then_branch = t () => (p, p2) { p = Relu (a) p2 = Neg (a) }, "
        "else_branch = e () => (q, q2) { q = Neg (a) q2 = Neg (q) }> i = Neg (j)"),
   "m", true, PSPLIT_USAGE, "no If of the main graph has that name"},
  {MAIN("", "[n] " IF " [n] k = If (flag) <then_branch = t () => (r) { r = Relu (a) }, "
            "else_branch = e () => (s) { s = Neg (a) }>"),
   "n", true, PSPLIT_USAGE, "n: several Ifs have that name; use the name of an output"},
  {MAIN("", "[n] " IF " [n] k = If (flag) <then_branch = t () => (r) { r = Relu (a) }, "
            "else_branch = e () => (s) { s = Neg (a) }>"),
   "k", false, PSPLIT_OK, "k = Identity (s)"},
  {MAIN("",
        "[n] i = If (flag) <then_branch = t () => (float[2] a2) { a2 = Relu (a) }, else_branch "
        "= e () => (float[2] q) { q = Neg (a) }> [o] a2 = Neg (a)"),
   "n", true, PSPLIT_UNSUPPORTED,
   "n: \"a2\" of its then_branch is the name of another value outside as well"},
  {MAIN("",
        "[n] i = If (flag) <then_branch = t () => (float[2] r) { r = Relu (a) }, else_branch = "
        "e () => (float[2] q) { q = Neg (a) }> [o] k = If (flag) <then_branch = t () => (v) {"
        " r = Neg (a) v = Neg (r) }, else_branch = e () => (w) { w = If (flag) <then_branch ="
        " t () => (b) { b = Neg (a) }, else_branch = e () => (q) { q = Abs (a) }> }>"),
   "n", true, PSPLIT_UNSUPPORTED, "\"r\" of its then_branch is the name of another value"},
  {MAIN("",
        "[n] i = If (flag) <then_branch = t () => (float[2] u) { u = Relu (a) }, else_branch = "
        "e () => (float[2] q) { q = Neg (a) }> [o] k = If (flag) <then_branch = t () => (v) {"
        " v = Neg (a) }, else_branch = e () => (w) { w = If (flag) <then_branch ="
        " t () => (b) { b = Neg (a) }, else_branch = e () => (q2) { q2 = If (flag) <then_branch"
        " = t () => (u) { u = Neg (a) }, else_branch = e () => (d) { d = Neg (a) }> }> }>"),
   "n", true, PSPLIT_UNSUPPORTED, "\"u\" of its then_branch is the name of another value"},
  /* branches */
  {MAIN("", "[n] i = If (flag) <then_branch = t () => (float[2] p) { p = Relu (a) }>"), "n", false,
   PSPLIT_INVALID, "If n has no else_branch without inputs and with its 1 outputs"},
  {MAIN("",
        "[n] i, j = If (flag) <then_branch = t () => (float[2] p) { p = Relu (a) }, else_branch"
        " = e () => (float[2] q, float[2] q2) { q = Neg (a) q2 = Abs (a) }>"),
   "n", true, PSPLIT_INVALID, "with its 2 outputs"},
  {MAIN("",
        "[n] i = If (flag) <then_branch = t (float[2] z) => (float[2] p) { p = Relu (z) }, "
        "else_branch = e () => (float[2] q) { q = Neg (a) }>"),
   "n", true, PSPLIT_INVALID, "no then_branch without inputs"},
  {MAIN("",
        "[n] i, \"\" = If (flag) <then_branch = t () => (float[2] p, float[2] p2) { p = Relu "
        "(a) p2 = Neg (a) }, else_branch = e () => (q, q2) { q = Neg (a) q2 = Abs (a) }>"),
   "n", true, PSPLIT_OK, "p2 = Neg (a)"},
  /* names of outputs that are the If's own */
  {MAIN("",
        "[n] i = If (flag) <then_branch = t () => (float[2] i) { i = Relu (a) }, else_branch = "
        "e () => (float[2] i) { i = Neg (a) }>"),
   "n", true, PSPLIT_OK, "i = Relu (a)"},
  {OPSET(
     17) "main (float[2] x, bool flag) => (float[2] i) { [a] a = Abs (x) [n] i = If (flag) "
         "<then_branch = t () => (float[?] i) <float[2] i> { i = Relu (a) }, else_branch = e () "
         "=> (float[2] i) { i = Neg (a) }> }",
   "n", true, PSPLIT_OK, "i = Relu (a)"},
  /* one value twice, the branch's weight and what is outside as outputs */
  {MAIN("",
        "[n] i, j, k = If (flag) <then_branch = t () => (float[2] p, float[2] p, float[2] w) "
        "<float[2] w = {1, 2}> { p = Relu (a) }, else_branch = e () => (q, q, a2) { q = Neg "
        "(a) a2 = Abs (a) }>"),
   "n", true, PSPLIT_OK, "k = Identity (w)"},
  {MAIN("",
        "[n] i, j = If (flag) <then_branch = t () => (p, float[2] r) <float[2] p> { p = Relu "
        "(a) r = Abs (a) }, else_branch = e () => (q, s) { q = Neg (a) s = Neg (q) }>"),
   "n", true, PSPLIT_OK, "j = Identity (r)"},
  /* what is declared in the branch of values outside, and what has a sparse weight */
  {MAIN("",
        "[n] i = If (flag) <then_branch = t () => (float[2] p) @{sparse_initializer: [{values: "
        "float[1] s {5}, indices: int64[1] {1}, dims: [2]}]} <float[2] a, float[2] b, float[2] "
        "z> { b = Add (a, s) p = Relu (b) }, else_branch = e () => (q) { q = Neg (a) }>"),
   "n", true, PSPLIT_OK, "b = Add (a, s)"},
  /* the condition */
  {MAIN("",
        "c = Constant <value = bool {1}> () i = If (c) <then_branch = t () => (p) { p = Relu "
        "(a) }, else_branch = e () => (q) { q = Neg (a) }>"),
   "i", false, PSPLIT_USAGE, "its condition \"c\" is always true, and its else_branch never runs"},
  {MAIN("",
        "c = Constant <value = bool {0}> () i = If (c) <then_branch = t () => (p) { p = Relu "
        "(a) }, else_branch = e () => (q) { q = Neg (a) }>"),
   "i", true, PSPLIT_USAGE, "is always false, and its then_branch never runs"},
  {MAIN("",
        "c = Constant <value = bool {0}> () i = If (c) <then_branch = t () => (p) { p = Relu "
        "(a) }, else_branch = e () => (q) { q = Neg (a) }>"),
   "i", false, PSPLIT_OK, "i = Identity (q)"},
  {MAIN("",
        "c = Constant <value_int = 1> () i = If (c) <then_branch = t () => (p) { p = Relu (a) "
        "}, else_branch = e () => (q) { q = Neg (a) }>"),
   "i", false, PSPLIT_OK, "i = Identity (q)"},
  {MAIN("",
        "c = Constant <value = int64 {1}> () i = If (c) <then_branch = t () => (p) { p = Relu "
        "(a) }, else_branch = e () => (q) { q = Neg (a) }>"),
   "i", false, PSPLIT_OK, "i = Identity (q)"},
  {MAIN("",
        "c = Constant <value = bool[2] {1, 1}> () i = If (c) <then_branch = t () => (p) { p = "
        "Relu (a) }, else_branch = e () => (q) { q = Neg (a) }>"),
   "i", false, PSPLIT_OK, "i = Identity (q)"},
  {MAIN("",
        "c = Not (flag) i = If (c) <then_branch = t () => (p) { p = Relu (a) }, else_branch = e "
        "() => (q) { q = Neg (a) }>"),
   "i", false, PSPLIT_OK, "i = Identity (q)"},
  {OPSET(17) "main (float[2] x) => (float[2] y) <bool c = {1}> { [a] a = Abs (x) i = If (c) "
             "<then_branch = t () => (p) { p = Relu (a) }, else_branch = e () => (q) { q = Neg (a) "
             "}> y = Neg (i) }",
   "i", false, PSPLIT_USAGE, "is always true"},
  {OPSET(17) "main (float[2] x, bool c) => (float[2] y) <bool c = {1}> { [a] a = Abs (x) i = If (c)"
             " <then_branch = t () => (p) { p = Relu (a) }, else_branch = e () => (q) { q = Neg (a)"
             " }> y = Neg (i) }",
   "i", false, PSPLIT_OK, "i = Identity (q)"},
  {"<ir_version: 3, opset_import: [\"\": 9]>\n"
   "main (float[2] x, bool c) => (float[2] y) <bool c = {1}> { [a] a = Abs (x) i = If (c)"
   " <then_branch = t () => (p) { p = Relu (a) }, else_branch = e () => (q) { q = Neg (a)"
   " }> y = Neg (i) }",
   "i", false, PSPLIT_USAGE, "is always true"},
  {MAIN("",
        "i = If () <then_branch = t () => (p) { p = Relu (a) }, else_branch = e () => (q) { q = "
        "Neg (a) }>"),
   "i", true, PSPLIT_INVALID, "If i has no condition"},
  {MAIN("",
        "i = If (\"\") <then_branch = t () => (p) { p = Relu (a) }, else_branch = e () => (q) {"
        " q = Neg (a) }>"),
   "i", true, PSPLIT_INVALID, "If i has no condition"},
  /* what Identity takes */
  {OPSET(
     13) "main (seq(float) x, bool flag) => (seq(float) i) { i = If (flag) <then_branch = t () "
         "=> (seq(float) p) { p = SequenceErase (x) }, else_branch = e () => (seq(float) q) { q "
         "= SequenceErase (x) }> }",
   "i", true, PSPLIT_UNSUPPORTED,
   "output \"p\" is not a tensor, and opset 13 has no Identity for it"},
  {OPSET(
     14) "main (seq(float) x, bool flag) => (seq(float) i) { i = If (flag) <then_branch = t () "
         "=> (seq(float) p) { p = SequenceErase (x) }, else_branch = e () => (seq(float) q) { q "
         "= SequenceErase (x) }> }",
   "i", true, PSPLIT_OK, "i = Identity (p)"},
  {OPSET(
     15) "main (float[2] x, bool flag) => (optional(float[2]) i) { i = If (flag) <then_branch = "
         "t () => (optional(float[2]) p) { p = Optional (x) }, else_branch = e () => "
         "(optional(float[2]) q) { q = Optional (x) }> }",
   "i", true, PSPLIT_UNSUPPORTED, "opset 15 has no Identity for it"},
  {OPSET(
     16) "main (float[2] x, bool flag) => (optional(float[2]) i) { i = If (flag) <then_branch = "
         "t () => (optional(float[2]) p) { p = Optional (x) }, else_branch = e () => "
         "(optional(float[2]) q) { q = Optional (x) }> }",
   "i", true, PSPLIT_OK, "i = Identity (p)"},
};

static psplit_code take(const void *what, psplit_diag *diag) {
  const choice *c = what;
  const psplit_inline_if taken = {.node = c->node, .then_branch = c->then_branch};
  psplit_model *model = NULL;
  const psplit_code code = open_with("model.onnx", &taken, diag, &model);
  psplit_model_close(model);
  return code;
}

static void ifs_are_taken_or_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof CHOICES / sizeof *CHOICES; i++) {
    const choice *c = &CHOICES[i];
    const psplit_inline_if taken = {.node = c->node, .then_branch = c->then_branch};
    psplit_diag diag = {0};
    psplit_model *model = NULL;
    char *text = NULL;
    size_t n = 0;
    write_model_text("model.onnx", c->model);
    const psplit_code code = open_with("model.onnx", &taken, &diag, &model);
    if (code == PSPLIT_OK)
      assert_int_equal(psplit_model_print_text(model, NULL, &diag, &text, &n), PSPLIT_OK);
    if (code != c->code || !strstr(text ? text : diag.message, c->says))
      fail_msg("If %zu: %s: %s, not: %s", i, psplit_code_name(code), text ? text : diag.message,
               c->says);
    free(text);
    psplit_model_close(model);
    if (i < 5 || code == PSPLIT_UNSUPPORTED) fail_each(take, c, c->code);
  }
}

/* --- configurations --- */

#define PLACED(configurations, a, b)                                                    \
  "<ir_version: 11, opset_import: [\"\": 17], configuration: [" configurations          \
  "]>\n"                                                                                \
  "main (float[2] x, bool flag) => (float[2] y) { [a] a = Abs (x) " a                   \
  " [k] k = Neg (a) [b] b = "                                                           \
  "Exp (k) " b                                                                          \
  " [f] y = If (flag) <then_branch = t () => (p) { p = Relu (b) }, else_branch = e () " \
  "=> (q) { q = Neg (a) }> }"
#define ON(entries) "@{device_configurations: [" entries "]}"
#define STAGE(name, stage) "{configuration_id: \"" name "\", pipeline_stage: " #stage "}"
#define TWO "{name: \"c\", num_devices: 2}"
#define THREE "{name: \"d\", num_devices: 3}"

typedef struct placed {
  const char *model, *name;
  psplit_code code;
  const char *says; /* of the message, or stages of a, k, b and f: "0-1-" */
} placed;

static const placed PLACES[] = {
  {PLACED(TWO, ON(STAGE("c", 0)), ON(STAGE("c", 1))), NULL, PSPLIT_OK, "0-1-"},
  {PLACED(TWO, ON(STAGE("c", 0)), ON(STAGE("c", 1))), "c", PSPLIT_OK, "0-1-"},
  {PLACED(TWO, ON(STAGE("c", 1)), ON(STAGE("c", 1))), "c", PSPLIT_OK, "1-1-"},
  {PLACED(TWO, "", ""), NULL, PSPLIT_OK, "none"},
  {PLACED(TWO, "", ""), "c", PSPLIT_OK, "none"},
  {PLACED(TWO, ON("{configuration_id: \"c\"}"), ""), NULL, PSPLIT_OK, "none"},
  {PLACED(TWO, ON("{configuration_id: \"c\"}"), ""), "c", PSPLIT_OK, "none"},
  {PLACED(TWO ", " THREE, ON(STAGE("c", 0) ", " STAGE("d", 2)), ""), "d", PSPLIT_OK, "2---"},
  {PLACED(TWO ", " THREE, ON(STAGE("c", 0) ", " STAGE("d", 2)), ""), NULL, PSPLIT_USAGE,
   "the model has stages of the configurations \"c\" and \"d\""},
  {PLACED(TWO ", " THREE, ON(STAGE("c", 0)), ""), "e", PSPLIT_USAGE,
   "the model has no configuration \"e\"; it has c, d"},
  {PLACED("", ON(STAGE("c", 0)), ""), NULL, PSPLIT_INVALID, "the model has no configuration \"c\""},
  {PLACED("", ON(STAGE("c", 0)), ""), "e", PSPLIT_USAGE, "the model has no configuration \"e\""},
  {PLACED(TWO, ON(STAGE("d", 0)), ""), "c", PSPLIT_INVALID,
   "node a is annotated for the configuration \"d\", which the model lacks"},
  {PLACED("{num_devices: 2}", ON("{pipeline_stage: 1}"), ""), NULL, PSPLIT_OK, "1---"},
  {PLACED(TWO, ON(STAGE("c", 2)), ""), NULL, PSPLIT_INVALID,
   "node a is annotated with stage 2, and the configuration \"c\" has 2 devices"},
  {PLACED(TWO, ON(STAGE("c", -1)), ""), NULL, PSPLIT_INVALID, "with stage -1"},
  {PLACED(TWO, ON(STAGE("c", 0) ", " STAGE("c", 1)), ""), NULL, PSPLIT_INVALID,
   "node a is annotated with two stages"},
  {PLACED(TWO, ON(STAGE("c", 1) ", " STAGE("c", 1)), ""), NULL, PSPLIT_OK, "1---"},
  {PLACED(TWO, ON(STAGE("c", 1)), ON(STAGE("c", 0))), NULL, PSPLIT_INVALID,
   "node b is annotated with stage 0 and depends on a of stage 1"},
};

static psplit_model *placed_model; /* of the case at hand */

static psplit_code place(const void *what, psplit_diag *diag) {
  const placed *p = what;
  uint32_t stages[8];
  return psplit_i_placement_read(psplit_i_model_graph(placed_model), p->name, diag, stages, NULL);
}

static void stages_are_read_or_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
    const placed *p = &PLACES[i];
    psplit_diag diag = {0};
    uint32_t stages[8] = {0};
    char found[8] = "";
    bool any = true;
    write_model_text("model.onnx", p->model);
    if (open_with("model.onnx", NULL, &diag, &placed_model) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    const psplit_i_graph *graph = psplit_i_model_graph(placed_model);
    const psplit_code code = psplit_i_placement_read(graph, p->name, &diag, stages, &any);
    for (uint32_t n = 0; code == PSPLIT_OK && any && n < graph->n_nodes; n++)
      found[n] = stages[n] == PSPLIT_NONE ? '-' : (char)('0' + stages[n]);
    const char *said = code != PSPLIT_OK ? diag.message : any ? found : "none";
    if (code != p->code || !strstr(said, p->says))
      fail_msg("stages %zu: %s: %s, not: %s", i, psplit_code_name(code), said, p->says);
    fail_each(place, p, p->code);
    psplit_model_close(placed_model);
  }
}

/* --- dimensions and inputs --- */

static const char NAMED[] =
  OPSET(17) "main (seq(float[N,2]) x, float[M] z, bool flag) => (float[?] y) <float[inner] w> {"
            " w = local.F (z) y = If (flag) <then_branch = t () => (p) <float[body] a, float r> {"
            " a = Relu (z) r = Neg (a) p = Neg (r) }, else_branch = e () => (q) { q = Neg (z)"
            " }> }\n"
            "<domain: \"local\", opset_import: [\"\": 17]> F (a) => (b) { b = Relu (a) }";

static psplit_code check_names(const void *what, psplit_diag *diag) {
  const psplit_dim_value dims[] = {{"N", 1}, {what, 2}};
  const char *const inputs[] = {"z", what};
  psplit_code code = psplit_model_check_dims(placed_model, dims, 2, diag);
  if (code == PSPLIT_OK) code = psplit_model_check_inputs(placed_model, inputs, 2, diag);
  return code;
}

static void names_are_known_or_told(void **state) {
  (void)state;
  psplit_diag diag = {0};
  write_model_text("model.onnx", NAMED);
  if (open_with("model.onnx", NULL, &diag, &placed_model) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  static const struct {
    const char *name, *says;
  } cases[] = {{"K", "the model has no dimension K"},
               {"bodi", "the model has no dimension bodi; did you mean body?"},
               {"body", "the model has no input body"},
               {"inner", "the model has no input inner"},
               {"M", "the model has no input M; it has"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    diag = (psplit_diag){0};
    assert_int_equal(check_names(cases[i].name, &diag), PSPLIT_USAGE);
    if (!strstr(diag.message, cases[i].says)) fail_msg("%s, not: %s", diag.message, cases[i].says);
    fail_each(check_names, cases[i].name, PSPLIT_USAGE);
  }
  assert_int_equal(psplit_model_check_dims(placed_model, NULL, 0, &diag), PSPLIT_OK);
  assert_int_equal(psplit_model_check_inputs(placed_model, NULL, 0, &diag), PSPLIT_OK);
  assert_int_equal(psplit_model_check_inputs(placed_model, (const char *[]){"x", "flag"}, 2, &diag),
                   PSPLIT_OK);
  psplit_model_close(placed_model);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(ifs_are_taken_or_refused),
    TEST(stages_are_read_or_refused),
    TEST(names_are_known_or_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
