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
#include <unistd.h>

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

/* MODEL with its first `from` as `to`. */
static psplit_model *variant(const char *from, const char *to) {
  char text[sizeof MODEL + 200], path[] = "/tmp/psplit-masks-XXXXXX";
  const char *at = strstr(MODEL, from);
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - MODEL), MODEL, to, at + strlen(from));
  pb bytes = bytes_of_text(text);
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes.bytes, bytes.n), (ssize_t)bytes.n);
  close(fd);
  psplit_model *model;
  psplit_diag diag = {0};
  if (psplit_model_open(path, NULL, &diag, &model) != PSPLIT_OK) fail_msg("%s", diag.message);
  unlink(path);
  psplit_i_text_fini(&bytes);
  return model;
}

enum { MOST = 8 };

/* The manifest that the edited model should have. */
typedef struct table {
  psplit_i_training_table training;
  psplit_i_mask_row masks[MOST];
  psplit_i_row inputs[MOST];
  psplit_i_manifest_stage stage;
} table;

static void fill(table *t, const psplit_gradient *gradient,
                 const psplit_training_options *options) {
  static const psplit_i_size_term three = {.factor = 3}, eight = {.factor = 8};
  static const psplit_i_mask_size sizes[] = {{&three, 1}, {&eight, 1}};
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_same_model_is_accepted),
    cmocka_unit_test(another_model_is_told),
    cmocka_unit_test(another_way_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
