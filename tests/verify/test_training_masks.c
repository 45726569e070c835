/* What is trained differs from the model in what docs/training.md says alone: the edited form of
 * one model is held against another one that differs from the first in one thing. */
#include <psplit/gradient.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gradient.h"
#include "open.h"
#include "training_masks.h"

static const char MODEL[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[3,8] x) => (float[3,8] y) <\n"
  "  float[8,8] w = random(1), float[8] s = random(2), float[8] b = random(3), float ratio = "
  "{0.25},\n"
  "  float[8] mean = random(4), float[8] var = raw {1, 1, 1, 1, 1, 1, 1, 1}, bool yes = {1}> {\n"
  "  [m] a = MatMul (x, w)\n"
  "  [d] d, kept = Dropout (a, ratio, yes)\n"
  "  [i] i = Dropout (d, ratio)\n"
  "  [n] n = RandomNormalLike <mean = 0.5, scale = 0.25> (i)\n"
  "  [e] e = Add (i, n)\n"
  "  [p] p = Sigmoid (e)\n"
  "  [k] k = Bernoulli (p)\n"
  "  [f] f = Mul (e, k)\n"
  "  [u] u = RandomUniform <low = 1.0, high = 3.0, shape = [8]> ()\n"
  "  [g] g = Mul (f, u)\n"
  "  [c] c = Cast <to = 1> (kept)\n"
  "  [h] h = Mul (g, c)\n"
  "  [o] y = BatchNormalization <epsilon = 0.001> (h, s, b, mean, var)\n"
  "}\n";

/* A model with its first `from` as `to`. */
static psplit_model *variant_of(const char *model, const char *from, const char *to) {
  char text[sizeof MODEL + 400];
  const char *at = strstr(model, from);
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - model), model, to, at + strlen(from));
  return opened_text(text);
}

static psplit_model *variant(const char *from, const char *to) {
  return variant_of(MODEL, from, to);
}

enum { MOST = 8 };
static bool has_open_rows; /* they are n, not 3 */

/* The manifest that the edited model should have. */
typedef struct table {
  psplit_i_training_table training;
  psplit_i_mask_row masks[MOST];
  psplit_i_row inputs[MOST];
  psplit_i_manifest_stage stage;
} table;

static void fill(table *t, const psplit_gradient *gradient,
                 const psplit_training_options *options) {
  static const char *const symbols[] = {"n"};
  static const psplit_i_size_term three = {.factor = 3}, eight = {.factor = 8},
                                  rows = {.factor = 1, .symbols = symbols, .n_symbols = 1};
  static const psplit_i_mask_size fixed[] = {{&three, 1}, {&eight, 1}},
                                  open[] = {{&rows, 1}, {&eight, 1}};
  const psplit_i_mask_size *sizes = has_open_rows ? open : fixed;
  *t = (table){.training = {.batch_norm = (uint32_t)options->batch_norm,
                            .dropout = (uint32_t)options->dropout,
                            .masks = t->masks,
                            .n_masks = psplit_gradient_n_masks(gradient)},
               .stage = {.inputs = t->inputs, .n_inputs = psplit_gradient_n_masks(gradient)}};
  assert_true(t->training.n_masks <= MOST);
  for (uint32_t i = 0; i < t->training.n_masks; i++) {
    const psplit_mask mask = psplit_gradient_mask(gradient, i);
    const bool is_row = strcmp(mask.node, "u") == 0;
    t->masks[i] = (psplit_i_mask_row){.name = mask.name,
                                      .tensor = mask.name,
                                      .node = mask.node,
                                      .number = i,
                                      .kind = (uint32_t)mask.kind,
                                      .ratio = mask.ratio,
                                      .rank = is_row ? 1 : 2,
                                      .shape = is_row ? sizes + 1 : sizes};
    t->inputs[i] =
      (psplit_i_row){.name = mask.name, .tensor = mask.name, .from = PSPLIT_I_FROM_MODEL};
  }
}

static void (*spoil)(table *t); /* what `check` does to the manifest's table; NULL: nothing */

/* `edited` trained by `made`, held against `before` by what `said` of it. */
static psplit_code check(const psplit_model *before, const psplit_model *edited,
                         psplit_training_options made, psplit_training_options said,
                         psplit_diag *diag) {
  psplit_gradient *gradient = NULL;
  psplit_i_proof p;
  table t;
  made.loss = "mse:";
  if (psplit_gradient_create(edited, &made, NULL, diag, &gradient) != PSPLIT_OK)
    fail_msg("%s", diag->message);
  fill(&t, gradient, &said);
  if (spoil) spoil(&t);
  psplit_i_proof_init(&p, before, diag);
  p.manifest = (psplit_i_manifest){.stages = &t.stage, .n_stages = 1};
  const psplit_code code = psplit_i_check_masks(&p, before, gradient, &t.training);
  psplit_i_proof_fini(&p);
  psplit_gradient_destroy(gradient);
  return code;
}

static const psplit_training_options as_is = {0};
static const psplit_training_options all_train = {.batch_norm = PSPLIT_BATCH_NORM_TRAIN,
                                                  .dropout = PSPLIT_DROPOUT_TRAIN};
static const psplit_training_options all_frozen = {.batch_norm = PSPLIT_BATCH_NORM_FROZEN,
                                                   .dropout = PSPLIT_DROPOUT_FROZEN};

static void the_same_model_is_accepted(void **state) {
  (void)state;
  const psplit_training_options ways[] = {as_is, all_train, all_frozen};
  psplit_model *model = variant("main", "main");
  for (size_t i = 0; i < 3; i++) {
    psplit_diag diag = {0};
    if (check(model, model, ways[i], ways[i], &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  }
  psplit_model_close(model);
}

static void another_model_is_told(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *part;
  } cases[] = {
    {"ratio = {0.25}", "ratio = {0.5}", "initializer|parts"},
    {"random(1)", "random(9)", "parts"},
    {"[m] a = MatMul (x, w)", "[m] a = Gemm (x, w)", "node m"},
    {"Dropout (a, ratio, yes)", "Dropout (x, ratio, yes)", "node d"},
    {"Dropout (d, ratio)", "Dropout (a, ratio)", "node i"},
    {"mean = 0.5", "mean = 0.25", "node n"},
    {"scale = 0.25", "scale = 0.5", "node n"},
    {"RandomNormalLike <mean = 0.5, scale = 0.25> (i)", "RandomUniformLike (i)", "node n"},
    {"Bernoulli (p)", "Bernoulli (e)", "node k"},
    {"low = 1.0", "low = 0.5", "node u"},
    {"high = 3.0", "high = 4.0", "node u"},
    {"epsilon = 0.001", "epsilon = 0.01", "node o"},
    {"(h, s, b, mean, var)", "(g, s, b, mean, var)", "node o"},
    {"[d] d, kept = Dropout (a, ratio, yes)", "[d] d, kept = Dropout (a, , yes)", "node d"},
    {"[i] i = Dropout (d, ratio)", "[i] i = Identity (d)", "node i"},
  };
  psplit_model *model = variant("main", "main");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_model *other = variant(cases[i].from, cases[i].to);
    const psplit_training_options *const ways[] = {&as_is, &all_train};
    for (size_t k = 0; k < 2; k++) {
      psplit_diag diag = {0};
      const psplit_code code = check(model, other, *ways[k], *ways[k], &diag);
      if (code != PSPLIT_MISMATCH) fail_msg("%s: %d %s", cases[i].to, (int)code, diag.message);
      if (*cases[i].part == 'n' && !strstr(diag.message, cases[i].part))
        fail_msg("%s is not said in: %s", cases[i].part, diag.message);
    }
    psplit_model_close(other);
  }
  psplit_model_close(model);
}

static void another_way_is_told(void **state) {
  (void)state;
  const psplit_training_options norm = {.batch_norm = PSPLIT_BATCH_NORM_TRAIN};
  const psplit_training_options drops = {.dropout = PSPLIT_DROPOUT_TRAIN};
  const psplit_training_options keeps = {.dropout = PSPLIT_DROPOUT_FROZEN};
  const psplit_training_options pairs[][2] = {{as_is, drops}, {drops, as_is}, {as_is, keeps},
                                              {keeps, as_is}, {keeps, drops}, {drops, keeps},
                                              {norm, as_is}};
  psplit_model *model = variant("main", "main");
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    psplit_diag diag = {0};
    const psplit_code code = check(model, model, pairs[i][0], pairs[i][1], &diag);
    if (code != PSPLIT_MISMATCH) fail_msg("pair %zu: %d %s", i, (int)code, diag.message);
  }
  psplit_model_close(model);
}

/* --- each way to write one --- */

#define OPSET(version) "<ir_version: 8, opset_import: [\"\": " #version "]>\n"
#define WEIGHTS "float[8,8] w = random(1), float ratio = {0.25}, bool yes = {1}, bool no = {0}"

/* Models that have one operator each, `from` and what it is in another one. */
static const struct {
  const char *model, *from, *to;
} forms[] = {
  /* where ratio and mode are said */
  {OPSET(13) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " r = Constant <value = float {0.5}> () t = Constant <value = bool {1}> ()"
             " [d] y = Dropout (a, r, t) }",
   "float {0.5}", "float {0.25}"},
  {OPSET(13) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " r = Constant <value_float = 0.25> () t = Constant <value = bool {1}> ()"
             " [d] y = Dropout (a, r, t) }",
   "value_float = 0.25", "value_float = 0.125"},
  {OPSET(13) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " o = Constant <value_int = 1> () t = Cast <to = 9> (o)"
             " [d] y = Dropout (a, ratio, t) }",
   "[d] y = Dropout (a, ratio, t)", "[d] y = Dropout (a, , t)"},
  {OPSET(13) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " b = Neg (a) [d] y = Dropout (a, , yes) }",
   "Dropout (a, , yes)", "Dropout (b, , yes)"},
  {OPSET(13) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " b = Relu (a) [d] y = Dropout (a, ratio, no) }",
   "[d] y = Dropout (a, ratio, no)", "[d] y = Dropout (b, ratio, no)"},
  {OPSET(11) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " [d] y = Dropout <ratio = 0.25> (a) }",
   "ratio = 0.25> (a)", "ratio = 0.125> (a)"},
  {OPSET(11) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " [d] b = Dropout <ratio = 0.0> (a) [e] y = Dropout (b) }",
   "[e] y = Dropout (b)", "[e] y = Dropout <ratio = 0.25> (b)"},
  {OPSET(6) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
            " [d] y = Dropout <is_test = 1, ratio = 0.25> (a) }",
   "MatMul (x, w) [d]", "MatMul (x, w) [e]"},
  /* what is drawn, and of which type */
  {OPSET(17) "g (double[3,8] x) => (double[3,8] y) <double[8,8] w = random(1)> { a = MatMul (x, w)"
             " [r] u = RandomUniformLike <low = -1.0> (a) y = Add (a, u) }",
   "low = -1.0", "low = -2.0"},
  {OPSET(17) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " [r] u = RandomNormal <shape = [3, 8], mean = 2.0> () y = Add (a, u) }",
   "mean = 2.0", "mean = 3.0"},
  {OPSET(17) "g (double[3,8] x) => (double[3,8] y) <double[8,8] w = random(1)> { a = MatMul (x, w)"
             " p = Sigmoid (x) [k] k = Bernoulli (p) y = Mul (a, k) }",
   "Bernoulli (p)", "Bernoulli (x)"},
  {OPSET(17) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS "> { a = MatMul (x, w)"
             " p = Sigmoid (x) [k] k = Bernoulli <dtype = 11> (p) c = Cast <to = 1> (k)"
             " y = Mul (a, c) }",
   "dtype = 11", "dtype = 10"},
  {OPSET(17) "g (double[3,8] x) => (double[3,8] y) <double[8,8] w = random(1), double ratio = "
             "{0.25}, bool yes = {1}> { a = MatMul (x, w) [d] y, m = Dropout (a, ratio, yes)"
             " z = Not (m) }",
   "y, m = Dropout (a, ratio, yes)", "y, m = Dropout (a, , yes)"},
  /* normalisation by the batch, with what it gives besides */
  {OPSET(17) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS
             ", float[8] s = random(2), float[8] b = "
             "random(3), float[8] m = random(4), float[8] v = raw {1, 1, 1, 1, 1, 1, 1, 1}> {"
             " a = MatMul (x, w) [n] y, m1, v1 = BatchNormalization <training_mode = 1> (a, s, b, "
             "m, v) }",
   "(a, s, b, m, v)", "(a, b, s, m, v)"},
  {OPSET(17) "g (float[3,8] x) => (float[3,8] y) <" WEIGHTS
             ", float[8] s = random(2), float[8] b = "
             "random(3), float[8] m = random(4), float[8] v = raw {1, 1, 1, 1, 1, 1, 1, 1}> {"
             " a = MatMul (x, w) [n] y = BatchNormalization <momentum = 0.5> (a, s, b, m, v) }",
   "momentum = 0.5", "momentum = 0.25"},
};

/* Of themselves, by each way to train that they take; and of nothing else. */
static void each_form_is_accepted_and_told(void **state) {
  (void)state;
  const psplit_training_options ways[] = {as_is, all_train, all_frozen};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    psplit_model *model = opened_text(forms[i].model);
    psplit_model *other = variant_of(forms[i].model, forms[i].from, forms[i].to);
    unsigned n_ways = 0;
    for (size_t k = 0; k < 3; k++) {
      psplit_gradient *gradient = NULL;
      psplit_training_options way = ways[k];
      psplit_diag diag = {0};
      way.loss = "mse:";
      const psplit_code made = psplit_gradient_create(model, &way, NULL, &diag, &gradient);
      psplit_gradient_destroy(gradient);
      if (made == PSPLIT_UNSUPPORTED) continue; /* old operators take no masks */
      n_ways++;
      diag = (psplit_diag){0};
      if (check(model, model, ways[k], ways[k], &diag) != PSPLIT_OK)
        fail_msg("form %zu, way %zu: %s", i, k, diag.message);
      diag = (psplit_diag){0};
      const psplit_code code = check(model, other, ways[k], ways[k], &diag);
      if (code != PSPLIT_MISMATCH) fail_msg("form %zu, way %zu: %d of another", i, k, (int)code);
    }
    if (!n_ways) fail_msg("form %zu is trained in no way", i);
    psplit_model_close(model);
    psplit_model_close(other);
  }
}

/* --- the manifest's rows --- */

static const psplit_i_size_term SIX = {.factor = 6};
static const psplit_i_size_term ONE_MORE[] = {{.factor = 3}, {.factor = 1}};
static const char *const SYMBOLS[] = {"n", "m"};
static const psplit_i_size_term N = {.factor = 3, .symbols = SYMBOLS, .n_symbols = 1},
                                TWO_N = {.factor = 2, .symbols = SYMBOLS, .n_symbols = 1},
                                M = {.factor = 1, .symbols = SYMBOLS + 1, .n_symbols = 1},
                                N_M = {.factor = 1, .symbols = SYMBOLS, .n_symbols = 2},
                                BOTH[] = {{.factor = 1, .symbols = SYMBOLS, .n_symbols = 1},
                                          {.factor = 1, .symbols = SYMBOLS + 1, .n_symbols = 1}};

static void resize(table *t, const psplit_i_size_term *terms, uint32_t n) {
  static psplit_i_mask_size sizes[2];
  sizes[0] = (psplit_i_mask_size){terms, n};
  sizes[1] = t->masks[0].shape[1];
  t->masks[0].shape = sizes;
}
static void other_kind(table *t) { t->masks[0].kind ^= 1; }
static void other_number(table *t) { t->masks[1].number = 0; }
static void other_ratio(table *t) { t->masks[0].ratio = 0.5; }
static void other_node(table *t) { t->masks[0].node = "i"; }
static void other_rank(table *t) { t->masks[0].rank = 1; }
static void other_size(table *t) { resize(t, &SIX, 1); }
static void more_terms(table *t) { resize(t, ONE_MORE, 2); }
static void a_symbol(table *t) { resize(t, &N, 1); }
static void not_taken(table *t) { t->inputs[0].name = "other"; }
static void of_a_stage(table *t) { t->inputs[0].from = 0; }
static void another_tensor(table *t) { t->inputs[0].tensor = "other"; }
static void too_few(table *t) { t->training.n_masks--; }
static void none_at_all(table *t) { t->training.n_masks = 0; }
static void no_value(table *t) { t->masks[0].tensor = "none"; }
static void no_input(table *t) { t->masks[0].tensor = "y"; }
static void of_the_model(table *t) { t->masks[0].tensor = "x"; }
static void next_ones(table *t) { t->masks[0].tensor = t->masks[1].tensor; }
static void one_more(table *t) { t->masks[t->training.n_masks++] = t->masks[0]; }
static void two_rows(table *t) { resize(t, &TWO_N, 1); }
static void other_symbol(table *t) { resize(t, &M, 1); }
static void a_product(table *t) { resize(t, &N_M, 1); }
static void a_sum(table *t) { resize(t, BOTH, 2); }

static void rows_are_told(const psplit_model *model, void (*const *spoils)(table *), size_t n) {
  psplit_diag diag = {0};
  spoil = NULL;
  if (check(model, model, all_train, all_train, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  for (size_t i = 0; i < n; i++) {
    diag = (psplit_diag){0};
    spoil = spoils[i];
    if (check(model, model, all_train, all_train, &diag) != PSPLIT_MISMATCH)
      fail_msg("row %zu is not told", i);
  }
  spoil = NULL;
}

static void another_row_is_told(void **state) {
  (void)state;
  void (*const fixed[])(table *) = {
    other_kind, other_number, other_ratio, other_node,   other_rank, other_size,
    more_terms, a_symbol,     not_taken,   of_a_stage,   too_few,    another_tensor,
    no_value,   no_input,     none_at_all, of_the_model, next_ones,  one_more};
  void (*const open[])(table *) = {two_rows, other_symbol, a_product, a_sum, other_size};
  psplit_model *model = variant("main", "main");
  rows_are_told(model, fixed, sizeof fixed / sizeof *fixed);
  psplit_model_close(model);
  has_open_rows = true;
  model = variant("main (float[3,8] x) => (float[3,8] y)", "main (float[n,8] x) => (float[n,8] y)");
  rows_are_told(model, open, sizeof open / sizeof *open);
  has_open_rows = false;
  psplit_model_close(model);
}

/* Sizes that are no symbols' alone are told by the value itself: what is drawn is reshaped. */
static void reshaped_masks_are_accepted(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_model *model = opened_text(
    OPSET(17) "g (float[n,8] x) => (float[m,8] y) <" WEIGHTS
              "> { c = Concat <axis = 0> (x, "
              "x) a = MatMul (c, w) b = Neg (a) [d] y, k = Dropout (a, ratio, yes) z = Not (k) }");
  psplit_model *other = opened_text(
    OPSET(17) "g (float[n,8] x) => (float[m,8] y) <" WEIGHTS
              "> { c = Concat <axis = 0> (x, "
              "x) a = MatMul (c, w) b = Neg (a) [d] y, k = Dropout (b, ratio, yes) z = Not (k) }");
  has_open_rows = true;
  spoil = two_rows;
  if (check(model, model, as_is, as_is, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_int_equal(check(model, other, as_is, as_is, &diag), PSPLIT_MISMATCH);
  spoil = NULL;
  assert_int_equal(check(model, model, as_is, as_is, &diag), PSPLIT_MISMATCH);
  has_open_rows = false;
  psplit_model_close(model);
  psplit_model_close(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_form_is_accepted_and_told), cmocka_unit_test(another_row_is_told),
    cmocka_unit_test(reshaped_masks_are_accepted),    cmocka_unit_test(the_same_model_is_accepted),
    cmocka_unit_test(another_model_is_told),          cmocka_unit_test(another_way_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
