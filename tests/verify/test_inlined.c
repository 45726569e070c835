/* Why: a model with Ifs taken for one branch stands for the model only if nothing else of it is
 * another; each line of that comparison has to say no to a model that only it can tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "open.h"
#include "verify.h"

/* An If whose branch has weights of both kinds, an annotation and a value of its own. */
static const char HEAD[] =
  "<ir_version: 10, opset_import: [\"\": 17, \"ai.onnx\": 17, \"local\": 1]>\n";
static const char MODEL[] =
  "g (float[4] x, bool flag) => (float[4] y) <bool yes = {1}, float[4] m = {1, 2, 3, 4}> {\n"
  "  [a] a = Relu (x)\n"
  "  [i] i, j = If (flag) <then_branch = main () => (float[4] t, float[4] u) @{\n"
  "    quantization_annotation: [{tensor_name: \"t\", quant_parameter_tensor_names: "
  "[\"SCALE_TENSOR\": \"w\"]}],\n"
  "    sparse_initializer: [{values: float[1] s {5}, indices: int64[1] {2}, dims: [4]}]\n"
  "  } <float[4] w = {1, 1, 1, 1}, float[4] p> {\n"
  "    [t] t = Add (a, w)\n"
  "    [p] p = Neg (t)\n"
  "    [u] u = Exp (p)\n"
  "  }, else_branch = main () => (float[4] e, float[4] h) { e = Neg (a) h = Abs (a) }>\n"
  "  [k] k = Add (i, j)\n"
  "  [y] y = Add (k, m)\n"
  "}\n";
static const char INLINED[] =
  "g (float[4] x, bool flag) => (float[4] y) @{\n"
  "    quantization_annotation: [{tensor_name: \"t\", quant_parameter_tensor_names: "
  "[\"SCALE_TENSOR\": \"w\"]}],\n"
  "    sparse_initializer: [{values: float[1] s {5}, indices: int64[1] {2}, dims: [4]}]\n"
  "} <bool yes = {1}, float[4] m = {1, 2, 3, 4}, float[4] w = {1, 1, 1, 1}, float[4] p,\n"
  "   float[4] t> {\n"
  "  [a] a = Relu (x)\n"
  "  [t] t = Add (a, w)\n"
  "  [p] p = Neg (t)\n"
  "  [u] u = Exp (p)\n"
  "  [\"i/i\"] i = Identity (t)\n"
  "  [\"i/j\"] j = Identity (u)\n"
  "  [k] k = Add (i, j)\n"
  "  [y] y = Add (k, m)\n"
  "}\n";

enum { MOST_EDITS = 4, MOST_TEXT = 4096 };

typedef struct edit {
  const char *from, *to;
} edit;

typedef struct inlined_case {
  const char *says; /* NULL: it is the model */
  edit before[MOST_EDITS], after[MOST_EDITS], both[MOST_EDITS];
  psplit_i_inlined_row rows[2]; /* none: the one that goes with the table */
} inlined_case;

static void apply(const edit *edits, char text[MOST_TEXT]) {
  for (int e = 0; edits && e < MOST_EDITS && edits[e].from; e++) {
    char *at = strstr(text, edits[e].from);
    if (!at) fail_msg("no \"%s\" in %s", edits[e].from, text);
    const size_t from = strlen(edits[e].from), to = strlen(edits[e].to), rest = strlen(at + from);
    assert_true(strlen(text) + to < MOST_TEXT);
    memmove(at + to, at + from, rest + 1);
    memcpy(at, edits[e].to, to);
  }
}

/* `condition`: the If's, in place of flag. */
static psplit_model *variant(const char *model, const edit *own, const edit *both,
                             const char *condition) {
  char text[MOST_TEXT], of_if[64];
  strcpy(text, HEAD);
  strcat(text, model);
  apply(own, text);
  apply(both, text);
  if (condition && strcmp(condition, "flag") != 0) {
    snprintf(of_if, sizeof of_if, "If (%s)", condition);
    apply((const edit[MOST_EDITS]){{"If (flag)", of_if}}, text);
  }
  return opened_text(text);
}

/* As psplit_i_model_reopen leaves it: one file gave both. */
static void share_file(const psplit_model *before, psplit_model *after) {
  const psplit_i_data_file *from = &before->files.items[0];
  psplit_i_data_file *to = &after->files.items[0];
  to->device = from->device;
  to->inode = from->inode;
  to->bytes = from->bytes;
  to->modified_ns = from->modified_ns;
}

static psplit_code check(const psplit_model *before, const psplit_model *after,
                         const psplit_i_inlined_row *rows, uint32_t n_rows, psplit_diag *diag) {
  psplit_i_proof p;
  psplit_i_proof_init(&p, before, diag);
  p.manifest = (psplit_i_manifest){.inlined = rows, .n_inlined = n_rows};
  const psplit_code code = psplit_i_check_inlined(&p, after);
  psplit_i_proof_fini(&p);
  return code;
}

#define OTHER_FIELDS "its fields differ"
#define OTHER_PARTS "its nodes or weights differ"
#define FROM_BRANCH "the outputs of an inlined If do not come out of its branch"

static const inlined_case CASES[] = {
  {.says = NULL},
  /* nodes */
  {OTHER_PARTS, .after = {{"Relu (x)", "Abs (x)"}}},
  {OTHER_PARTS, .after = {{"  [p] p = Neg (t)\n", "  [p] p = Neg (t)\n  [q] q = Neg (t)\n"}}},
  {OTHER_PARTS, .after = {{"  [p] p = Neg (t)\n  [u] u = Exp (p)", "  [u] u = Exp (t)"}}},
  /* what was the branch's own, and what is declared of it */
  {OTHER_PARTS, .after = {{"m = {1, 2", "m = {1, 3"}}},
  {OTHER_PARTS, .after = {{"w = {1", "w = {2"}}},
  {OTHER_PARTS, .after = {{"\"SCALE_TENSOR\": \"w\"", "\"ZERO_POINT_TENSOR\": \"w\""}}},
  {OTHER_PARTS, .after = {{"float[4] p,", "float[n] p,"}}},
  {OTHER_PARTS, .after = {{"float[4] p,", "float[4] p, float[4] k,"}}},
  {NULL, .after = {{" float[4] p,\n   float[4] t>", "\n   float[4] t>"}}},
  {NULL, .after = {{", float[4] p,\n   float[4] t>", ">"}}},
  {OTHER_PARTS, .before = {{", float[4] p>", ">"}, {"=> (float[4] t, float[4] u)", "=> (t, u)"}},
   .after = {{"float[4] p,", "float[n] p,"}}},
  {OTHER_PARTS, .after = {{"s {5}", "s {6}"}}},
  /* the rest */
  {OTHER_FIELDS, .after = {{"\"local\": 1", "\"local\": 2"}}},
  {OTHER_FIELDS, .after = {{"\"local\": 1", "\"local\": 1, \"more\": 1"}}},
  {OTHER_FIELDS, .after = {{"g (float[4] x", "g (float[5] x"}}},
  {OTHER_FIELDS, .after = {{"bool flag)", "bool flag, float more)"}}},
  /* from the branch's outputs to the If's */
  {FROM_BRANCH, .after = {{"i = Identity (t)", "i = Identity (p)"}}},
  {FROM_BRANCH, .after = {{"i = Identity (t)", "i = Abs (t)"}}},
  {FROM_BRANCH, .after = {{"i = Identity (t)", "i = local.Identity (t)"}}},
  {FROM_BRANCH, .after = {{"i = Identity (t)", "i = Identity:o (t)"}}},
  {FROM_BRANCH, .after = {{"i = Identity (t)", "i = Identity <a = 1> (t)"}}},
  {FROM_BRANCH, .after = {{"i = Identity (t)", "i = Identity (t, t)"}}},
  {FROM_BRANCH, .after = {{"[\"i/j\"] j = Identity (u)", "[\"i/j\"] j, r = Identity (u)"}}},
  {FROM_BRANCH, .after = {{"i = Identity (t)", "i = Identity (u)"}}},
  {NULL, .before = {{"] i, j = If", "] i, \"\" = If"}},
   .after = {{"  [\"i/j\"] j = Identity (u)\n", ""}}, .both = {{"Add (i, j)", "Add (i, i)"}}},
  {NULL,
   .before = {{"(float[4] t, float[4] u)", "(float[4] i, float[4] u)"},
              {"[t] t = Add", "[t] i = Add"},
              {"Neg (t)", "Neg (i)"}},
   .after = {{"float[4] t>", "float[4] i>"},
             {"[t] t = Add", "[t] i = Add"},
             {"Neg (t)", "Neg (i)"},
             {"  [\"i/i\"] i = Identity (t)\n", ""}},
   .both = {{"tensor_name: \"t\"", "tensor_name: \"x\""}}},
  /* what the manifest names */
  {"inlines If \"k\", which the model does not have", .rows = {{"k", "flag", true, true}}},
  {"inlines If \"I\", which the model does not have",
   .rows = {{"i", "flag", true, true}, {"I", "flag", true, true}}},
  {"inlines If \"i\", which the model does not have",
   .rows = {{"i", "flag", true, true}, {"i", "flag", true, true}}},
  {"inlines If \"i\", which the model does not have",
   .before = {{"] i, j = If", "] i, j = local.If"}}},
  {"the condition of If \"i\" is not \"yes\"", .rows = {{"i", "yes", true, true}}},
  {NULL, .before = {{"] i, j = If", "] i, j = \"ai.onnx\".If"}}},
  {NULL, .rows = {{"j", "flag", true, true}}},
  {NULL, .before = {{"[i] i, j = If", "i, j = If"}}, .rows = {{"j", "flag", true, true}}},
  {FROM_BRANCH, .rows = {{"i", "flag", false, true}}},
  {"If \"i\" has no such branch", .before = {{"then_branch", "other"}}},
  {"If \"i\" has no such branch",
   .before = {{"then_branch = main ()", "then_branch = main (float c)"}}},
  {"If \"i\" has no such branch", .before = {{"(float[4] t, float[4] u)", "(float[4] t)"}}},
  {"the condition of If \"i\" is not", .before = {{"If (flag)", "If ()"}}},
  {"the condition of If \"i\" is not", .before = {{"If (flag)", "If (flag, yes)"}}},
  {"\"j\" comes out of two Ifs",
   .before = {{"[p] p = Neg (t)",
               "[n] j = If (flag) <then_branch = main () => (v) { v = Neg (t) }> p = Neg (j)"}},
   .rows = {{"i", "flag", true, true}, {"n", "flag", true, true}}},
};

/* Conditions that are said to hold always. */
static const inlined_case CERTAIN[] = {
  {.says = NULL},
  {"\"yes\" is not always true", .both = {{"yes = {1}", "yes = {0}"}}},
  {"\"yes\" is not always true", .both = {{"bool yes = {1}", "bool[2] yes = {1, 1}"}}},
  {"\"yes\" is not always true", .both = {{"bool yes = {1}", "int64 yes = {1}"}}},
  {"\"yes\" is not always true", .both = {{"bool flag)", "bool flag, bool yes)"}}},
  {NULL, .both = {{"bool flag)", "bool flag, bool yes)"}, {"ir_version: 10", "ir_version: 3"}}},
  {"\"yes\" is not always true", .both = {{"bool flag)", "bool yes)"}, {"bool yes = {1}, ", ""}}},
  {"\"yes\" is not always true", .after = {{"bool yes = {1}, ", ""}}},
  {NULL, .both = {{"bool yes = {1}, ", ""},
                  {"[a] a", "yes = Constant <value = bool \"\" = {1}> () [a] a"}}},
  {"\"yes\" is not always true",
   .both = {{"bool yes = {1}, ", ""},
            {"[a] a", "yes = Constant <value = bool \"\" = {0}> () [a] a"}}},
  {"\"yes\" is not always true",
   .both = {{"bool yes = {1}, ", ""}, {"[a] a", "yes = Constant <value_int = 1> () [a] a"}}},
  {"\"yes\" is not always true",
   .both = {{"bool yes = {1}, ", ""},
            {"[a] a", "yes = local.Constant <value = bool \"\" = {1}> () [a] a"}}},
};

static void each_is_told(const inlined_case *cases, size_t n, psplit_i_inlined_row by) {
  for (size_t i = 0; i < n; i++) {
    psplit_diag diag = {0};
    uint32_t n_rows = 0;
    while (n_rows < 2 && cases[i].rows[n_rows].node) n_rows++;
    psplit_model *before = variant(MODEL, cases[i].before, cases[i].both, by.condition);
    psplit_model *after = variant(INLINED, cases[i].after, cases[i].both, NULL);
    share_file(before, after);
    const psplit_code code =
      check(before, after, n_rows ? cases[i].rows : &by, n_rows ? n_rows : 1, &diag);
    if (cases[i].says ? code != PSPLIT_MISMATCH || !strstr(diag.message, cases[i].says)
                      : code != PSPLIT_OK)
      fail_msg("case %zu, %s: %s: %s", i, cases[i].says, psplit_code_name(code), diag.message);
    psplit_model_close(before);
    psplit_model_close(after);
  }
}

static void an_if_is_its_branch(void **state) {
  (void)state;
  each_is_told(CASES, sizeof CASES / sizeof *CASES,
               (psplit_i_inlined_row){"i", "flag", true, true});
}

static void what_is_certain_is_a_constant(void **state) {
  (void)state;
  each_is_told(CERTAIN, sizeof CERTAIN / sizeof *CERTAIN,
               (psplit_i_inlined_row){"i", "yes", true, false});
}

/* Each thing by which a file is known. */
static void another_file_is_told(void **state) {
  (void)state;
  const psplit_i_inlined_row by = {"i", "flag", true, true};
  psplit_model *before = variant(MODEL, NULL, NULL, NULL),
               *after = variant(INLINED, NULL, NULL, NULL);
  psplit_i_data_file *file = &after->files.items[0];
  for (int field = 0; field < 4; field++) {
    psplit_diag diag = {0};
    share_file(before, after);
    switch (field) {
      case 0: file->device++; break;
      case 1: file->inode++; break;
      case 2: file->bytes++; break;
      default: file->modified_ns++;
    }
    assert_int_equal(check(before, after, &by, 1, &diag), PSPLIT_IO);
    assert_non_null(strstr(diag.message, "changed while it was being read"));
  }
  psplit_model_close(before);
  psplit_model_close(after);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_if_is_its_branch),
                                     cmocka_unit_test(what_is_certain_is_a_constant),
                                     cmocka_unit_test(another_file_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
