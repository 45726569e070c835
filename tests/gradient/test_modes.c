/* What depends on how a model is trained: nodes that draw, batches that are normalised, and nodes
 * Gradient, which say themselves what is differentiated. Each is taken, noted or refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/gradient.h>
#include <stdio.h>
#include <string.h>

#include "open.h"
#include "opsets.h"

/* --- nodes that draw, and batches that are normalised --- */

#define DRAW(opset, inputs, body)                                               \
  OPSET(opset)                                                                  \
  "(float[2,6] x" inputs                                                        \
  ") => (float[2,6] y) <float[6] w = raw {0 * 6},"                              \
  " float half = {0.5}, float zero = {0}, float one = {1}, bool yes = raw {1}," \
  " bool no = raw {0}> { p = Mul (x, w) " body " }"
#define NORM(opset, body)                                                          \
  OPSET(opset)                                                                     \
  "(float[2,4,6] x) => (float[2,4,6] y) <float[4] w = raw {0 * 4}, float[4] w2 = " \
  "raw {0 * 4}, float[4] m = raw {0 * 4}, float[4] v = raw {0 * 4}> { " body " }"
enum { AS_IS, TRAIN, FROZEN };

static const struct {
  const char *model;
  int how; /* of Dropout and of BatchNormalization */
  psplit_code code;
  const char *message; /* of the failure, or what is said first; "": nothing is */
} draws[] = {
  {DRAW(18, "", "y = Dropout (p)"), AS_IS, PSPLIT_OK,
   "1 Dropout node passes input through unchanged"},
  {DRAW(18, "", "a = Dropout (p) y = Dropout (a)"), AS_IS, PSPLIT_OK,
   "2 Dropout nodes pass input through"},
  {DRAW(18, "", "y = Dropout (p)"), TRAIN, PSPLIT_OK, ""},
  {DRAW(18, "", "y = Dropout (p)"), FROZEN, PSPLIT_OK, ""},
  {DRAW(18, "", "y = Dropout (p, half, yes)"), AS_IS, PSPLIT_OK, ""},
  {DRAW(18, "", "y = Dropout (p, half, no)"), AS_IS, PSPLIT_OK, "1 Dropout node"},
  {DRAW(18, "", "y, kept = Dropout (p, half, yes)"), AS_IS, PSPLIT_OK, ""},
  {DRAW(18, "", "y = Dropout (p, half, yes)"), FROZEN, PSPLIT_OK, ""},
  {DRAW(18, "", "y = Dropout (p, , yes)"), FROZEN, PSPLIT_OK, ""},
  {DRAW(18, "", "y = Dropout (p, zero, yes)"), AS_IS, PSPLIT_OK, "1 Dropout node"},
  {DRAW(18, "", "y = Dropout (p, one, yes)"), AS_IS, PSPLIT_UNSUPPORTED,
   "its ratio is not in [0, 1)"},
  {DRAW(18, ", float r", "y = Dropout (p, r, yes)"), AS_IS, PSPLIT_UNSUPPORTED,
   "its ratio is not a constant"},
  {DRAW(18, ", bool b", "y = Dropout (p, half, b)"), AS_IS, PSPLIT_UNSUPPORTED,
   "uses the runtime's random generator"},
  {DRAW(18, ", bool b", "y = Dropout (p, half, b)"), FROZEN, PSPLIT_OK, ""},
  {DRAW(10, "", "y = Dropout <ratio = 0.25> (p)"), TRAIN, PSPLIT_OK, ""},
  {DRAW(10, "", "y = Dropout <ratio = 0.25> (p)"), AS_IS, PSPLIT_OK, "1 Dropout node"},
  {DRAW(8, "", "y = Dropout (p)"), TRAIN, PSPLIT_UNSUPPORTED, "no operator before opset 9"},
  {DRAW(6, "", "y = Dropout (p)"), FROZEN, PSPLIT_UNSUPPORTED, "opset 7 and later say otherwise"},
  {DRAW(6, "", "y = Dropout <is_test = 1> (p)"), FROZEN, PSPLIT_OK, ""},
  {DRAW(18, "", "n = RandomNormalLike (p) y = Add (p, n)"), AS_IS, PSPLIT_OK, ""},
  {DRAW(18, "", "n = RandomNormalLike <dtype = 11> (p) c = Cast <to = 1> (n) y = Add (p, c)"),
   AS_IS, PSPLIT_OK, ""},
  {DRAW(18, "", "n = RandomUniform <shape = [2, 6], low = 1.0> () y = Add (p, n)"), AS_IS,
   PSPLIT_OK, ""},
  {DRAW(18, "", "n = RandomNormal <shape = [2, 6]> () y = Add (p, n)"), AS_IS, PSPLIT_OK, ""},
  {DRAW(18, "", "n = Bernoulli (x) y = Mul (p, n)"), AS_IS, PSPLIT_OK, ""},
  {DRAW(18, "", "d = Cast <to = 11> (x) b = Bernoulli (d) n = Cast <to = 1> (b) y = Mul (p, n)"),
   AS_IS, PSPLIT_OK, ""},
  {DRAW(18, "", "n = Multinomial <sample_size = 6> (x) c = Cast <to = 1> (n) y = Add (p, c)"),
   AS_IS, PSPLIT_UNSUPPORTED, "make its random numbers an input of the model"},
  {DRAW(18, ", int64[2] s", "e = Expand (w, s) n = RandomNormalLike (e) y = Add (p, n)"), AS_IS,
   PSPLIT_UNSUPPORTED, "sizes that do not follow from symbols of the model's inputs"},
  {NORM(18, "y = BatchNormalization (x, w, w2, m, v)"), AS_IS, PSPLIT_OK,
   "1 node normalises batches by fixed statistics"},
  {NORM(18, "a = BatchNormalization (x, w, w2, m, v) y = BatchNormalization (a, w, w2, m, v)"),
   AS_IS, PSPLIT_OK, "2 nodes normalise batches by fixed statistics"},
  {NORM(18, "y = BatchNormalization (x, w, w2, m, v)"), TRAIN, PSPLIT_OK,
   "the model has no Dropout, which exports"},
  {NORM(18, "y, m2, v2 = BatchNormalization <training_mode = 1> (x, w, w2, m, v)"), AS_IS,
   PSPLIT_OK, ""},
  {NORM(18, "y, m2, v2 = BatchNormalization <training_mode = 1> (x, w, w2, m, v)"), FROZEN,
   PSPLIT_OK, ""},
  {NORM(18,
        "z, m2, v2 = BatchNormalization <training_mode = 1> (x, w, w2, m, v)"
        " k = Add (m2, v2) s = ReduceSum (k) y = Mul (z, s)"),
   FROZEN, PSPLIT_UNSUPPORTED, "are read or given by the model: it cannot be frozen"},
  {"(float[1,2,9,9] x) => (y) <float[2,2,1,1] w = raw {0 * 4}> {"
   " a = Conv (x, w) b = Conv (a, w) y = Conv (b, w) }",
   AS_IS, PSPLIT_OK, "the model has 3 convolutions and no normalisation"},
  {FUSED "(float[1,2,9,9] x) => (y) <float[2,2,1,1] w = raw {0 * 4}> {"
         " a = com.microsoft.FusedConv (x, w) b = Conv (a, w) y = com.microsoft.FusedConv (b, w) }",
   AS_IS, PSPLIT_OK, "the model has 3 convolutions and no normalisation"},
  {FUSED "(float[1,2,2,2] x) => (y) <float[2,2,1,1] w = raw {0 * 4}, float[2] w2 = {1, 1}> {"
         " a = Conv (x, w) b = Conv (a, w) c = Conv (b, w)"
         " y = com.microsoft.SkipSimplifiedLayerNormalization (c, c, w2) }",
   AS_IS, PSPLIT_OK, ""},
  {OPSET(16) "(float[1,2,2,2] x) => (y) <float[2,2,1,1] w = raw {0 * 4}, float eps = {1e-5}> {"
             " a = Conv (x, w) b = Conv (a, w) c = Conv (b, w) m = ReduceMean <axes = [1]> (c)"
             " d = Sub (c, m) s = Mul (d, d) v = ReduceMean <axes = [1]> (s) t = Add (v, eps)"
             " r = Sqrt (t) y = Div (d, r) }",
   AS_IS, PSPLIT_OK, ""},
  {NORM(9, "y = BatchNormalization (x, w, w2, m, v)"), TRAIN, PSPLIT_UNSUPPORTED,
   "convert the model to opset 14 or later"},
};

/* The first line that is said. */
static void note_first(void *user, psplit_severity severity, const char *message) {
  char *said = user;
  (void)severity;
  if (!*said) snprintf(said, 256, "%s", message);
}

static void of_draws(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
    static const char *const weights[] = {"w*"};
    char said[256] = "";
    const psplit_logger logger = {.emit = note_first, .user = said};
    const psplit_training_options options = {.loss = "mse:",
                                             .train = weights,
                                             .n_train = 1,
                                             .batch_norm = (psplit_batch_norm)draws[i].how,
                                             .dropout = (psplit_dropout)draws[i].how};
    psplit_diag diag = {0};
    psplit_gradient *gradient = NULL;
    psplit_model *model = opened_text(draws[i].model);
    const psplit_code code = psplit_gradient_create(model, &options, &logger, &diag, &gradient);
    const char *line = code == PSPLIT_OK ? said : diag.message;
    if (code != draws[i].code || !strstr(line, draws[i].message) || (*line && !*draws[i].message))
      fail_msg("%s, %d: %s, %s", draws[i].model, draws[i].how, psplit_code_name(code), line);
    psplit_gradient_destroy(gradient);
    psplit_model_close(model);
  }
}

/* Classes that nobody gave an axis, of logits whose last axis may hold them. */
static void of_axes(void **state) {
#define LOGITS(type, weight) "(" type " x) => (y) <" weight "> { y = Mul (x, w) }"
#define THREE "float[3] w = raw {0 * 3}"
  static const struct {
    const char *model, *loss, *said;
  } cases[] = {
    {LOGITS("float[2,5]", "float[5] w = raw {0 * 5}"), "softmax-cross-entropy:", ""},
    {LOGITS("float[2,5,3]", THREE), "softmax-cross-entropy:",
     "the classes of \"y\", float32[2, 5, 3], are assumed to be on axis 1; add axis=-1 to the "
     "loss if they are on the last one"},
    {LOGITS("float[b,t,3]", THREE), "softmax-cross-entropy:ignore=-100",
     "the classes of \"y\", float32[b, t, 3], are assumed"},
    {LOGITS("float[b,t,3]", THREE), "softmax-cross-entropy:axis=1", ""},
    {LOGITS("float[b,t,3]", THREE), "softmax-cross-entropy:axis=-1", ""},
    {LOGITS("float[b,t,3]", THREE), "mse:", ""},
    {LOGITS("float[b,4,h,3]", THREE), "softmax-cross-entropy:", ""}, /* an image's */
    {LOGITS("float[b,s,t,3]", THREE), "softmax-cross-entropy:", "float32[b, s, t, 3], are assumed"},
    {OPSET(11) LOGITS("float[2,5,3]", THREE),
     "softmax-cross-entropy:", "float32[2, 5, 3], are assumed"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static const char *const weights[] = {"w*"};
    char said[256] = "";
    const psplit_logger logger = {.emit = note_first, .user = said};
    const psplit_training_options options = {.loss = cases[i].loss, .train = weights, .n_train = 1};
    psplit_diag diag = {0};
    psplit_gradient *gradient = NULL;
    psplit_model *model = opened_text(cases[i].model);
    const psplit_code code = psplit_gradient_create(model, &options, &logger, &diag, &gradient);
    if (code != PSPLIT_OK || !strstr(said, cases[i].said) || (*said && !*cases[i].said))
      fail_msg("%s, %s: %s%s", cases[i].model, cases[i].loss, diag.message, said);
    psplit_gradient_destroy(gradient);
    psplit_model_close(model);
  }
}

/* Sums with what is named as an exporter's constant is, and what bodies read, are not trained, and
 * said to be. */
static void of_names(void **state) {
#define SUM(bias)                                             \
  "(float[2,4] x) => (y) <float[4,4] w = raw {0 * 16}, " bias \
  "> { a = MatMul (x, w) b = Add "                            \
  "(a, \"onnx::b\") y = Mul (b, \"onnx::s\") }"
#define TURNS(weights, inside, body)                               \
  "(float[2,4] x) => (y) <int64 n = {2}, bool c = raw {1}" weights \
  "> { [turns] a = Loop (n, c, x) <body = t ("                     \
  "int64 i, bool c2, float[2,4] x2) => (c3, x3) " inside "{ " body \
  " c3 = Identity (c2) }> y = MatMul (a, v) }"
#define V ", float[4,4] v = raw {0 * 16}"
#define CALL(more)                                                                             \
  "<ir_version: 9, opset_import: [\"\": 18, \"local\": 1]> (float[2,4] x) => (float[2,4] y) <" \
  "float[4,4] v = raw {0 * 16}" more                                                           \
  "> { [first] a = local.layer (x, w) y = MatMul (a, v) }"                                     \
  " <domain: \"local\", opset_import: [\"\": 18]> layer (p, q) => (r) { r = Mul (p, q) }"
#define FOURS(name) "float[4] " name " = raw {0 * 4}"
  static const struct {
    const char *model, *train, *freeze, *said;
  } cases[] = {
    {SUM("float[1,4] \"onnx::b\" = raw {0 * 4}, float[1,1] \"onnx::s\" = raw {0}"), NULL, NULL,
     "1 initializer that is added or multiplied, \"onnx::b\", is not trained"},
    {SUM("float[1,4] \"onnx::b\" = raw {0 * 4}, float[2,4] \"onnx::s\" = raw {0 * 8}"), NULL, NULL,
     "2 initializers that are added or multiplied, \"onnx::b\" and others, are not trained"},
    {SUM("float[1,4] \"onnx::b\" = raw {0 * 4}, float[2,4] \"onnx::s\" = raw {0 * 8}"), NULL,
     "onnx::b", "1 initializer that is added or multiplied, \"onnx::s\", is not trained"},
    {SUM("float[1,4] \"onnx::b\" = raw {0 * 4}, float[1,1] \"onnx::s\" = raw {0}"), "onnx::b", NULL,
     ""},
    {SUM("float[4] \"onnx::b\" = raw {0 * 4}, float \"onnx::s\" = raw {0}"), NULL, NULL, ""},
    {TURNS(V ", " FOURS("w"), "", "x3 = Mul (x2, w)"), NULL, NULL,
     "\"w\" is not trained: it is read in the bodies of Loop \"turns\", and gradients through "
     "bodies "
     "are not supported: export the model with its steps one after the other"},
    {TURNS(V ", " FOURS("w") ", " FOURS("u"), "", "p = Mul (x2, u) x3 = Add (p, w)"), NULL, NULL,
     "\"u\" and others are not trained: they are read in the bodies of Loop \"turns\""},
    {TURNS(V, "<" FOURS("w") "> ", "x3 = Mul (x2, w)"), NULL, NULL, "\"w\" is not trained: it is"},
    {TURNS(V ", " FOURS("w"), "", "x3 = Mul (x2, w)"), NULL, "w", ""},
    {TURNS(V ", " FOURS("w"), "", "x3 = Mul (x2, w)"), "v", NULL, ""},
    {TURNS(V ", float w = {2}", "", "x3 = Mul (x2, w)"), NULL, NULL, ""},
    {TURNS(V, "", "w = Constant <value = float[4] raw {0 * 4}> () x3 = Mul (x2, w)"), NULL, NULL,
     ""},
    {CALL(", " FOURS("w")), NULL, NULL,
     "\"w\" is not trained: it is read in the function of layer \"first\", and gradients through "
     "functions are not supported"},
    {CALL(", float w = {1}"), NULL, NULL, ""},
    {"(float[2,4] x, bool c) => (y) <float[4,4] v = raw {0 * 16}, float[4,4] w = raw {0 * 16}> {"
     " [choice] a = If (c) <then_branch = t () => (p) { p = MatMul (x, w) }, else_branch = e () =>"
     " (q) { q = Neg (x) }> y = MatMul (a, v) }",
     NULL, NULL,
     "\"w\" is not trained: it is read in the bodies of If \"choice\", and gradients through "
     "bodies "
     "are not supported"},
    {"(float[2,4] x, bool c) => (y) <float o = {1}> { v = Constant <value = float[4,4] raw {0 * "
     "16}>"
     " () [choice] a = If (c) <then_branch = t () => (p) { w = Constant <value = float[4] raw {0 * "
     "4}> () p = Mul (x, w) }, else_branch = e () => (q) { q = Neg (x) }> y = MatMul (a, v) }",
     NULL, NULL, "\"w\" is not trained: it is read in the bodies of If \"choice\""},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char said[256] = "";
    const psplit_logger logger = {.emit = note_first, .user = said};
    psplit_training_options options = {.loss = "mse:",
                                       .train = &cases[i].train,
                                       .n_train = cases[i].train != NULL,
                                       .freeze = &cases[i].freeze,
                                       .n_freeze = cases[i].freeze != NULL};
    psplit_diag diag = {0};
    psplit_gradient *gradient = NULL;
    psplit_model *model = opened_text(cases[i].model);
    const psplit_code code = psplit_gradient_create(model, &options, &logger, &diag, &gradient);
    if (code != PSPLIT_OK || !strstr(said, cases[i].said) || (*said && !*cases[i].said))
      fail_msg("%s: %s%s", cases[i].model, diag.message, said);
    psplit_gradient_destroy(gradient);
    psplit_model_close(model);
  }
}

/* A line of text for each call. */
static void note_all(void *user, psplit_severity severity, const char *message) {
  char *said = user;
  const size_t n = strlen(said);
  (void)severity;
  snprintf(said + n, 512 - n, "%s\n", message);
}

/* One line for all weights without a gradient: a detector with a loss of one output has many. */
static void of_other_branches(void **state) {
#define BRANCHES                                                                         \
  "(float[2,4] x) => (y, z) <float[4,4] w = raw {0 * 16}, float[4,4] u = raw {0 * 16}, " \
  "float[4,4] v = raw {0 * 16}> { y = MatMul (x, w) a = MatMul (x, u) z = MatMul (a, v) }"
  static const struct {
    const char *train, *said;
  } cases[] = {
    {"w", ""},
    {"[wv]", "the loss does not depend on \"v\"\n"},
    {"*", "the loss does not depend on 2 of the 3 tensors to be trained, \"u\" and others\n"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char said[512] = "";
    const psplit_logger logger = {.emit = note_all, .user = said};
    const psplit_training_options options = {
      .loss = "mse:prediction=y,target=t", .train = &cases[i].train, .n_train = 1};
    psplit_diag diag = {0};
    psplit_gradient *gradient = NULL;
    psplit_model *model = opened_text(BRANCHES);
    assert_int_equal(psplit_gradient_create(model, &options, &logger, &diag, &gradient), PSPLIT_OK);
    assert_string_equal(said, cases[i].said);
    psplit_gradient_destroy(gradient);
    psplit_model_close(model);
  }
}

/* What is dropped of all: as the node says, else half. */
static void of_ratios(void **state) {
  static const struct {
    const char *model;
    double ratio;
  } cases[] = {{DRAW(18, "", "y = Dropout (p)"), 0.5},
               {DRAW(18, "", "y = Dropout (p, , yes)"), 0.5},
               {DRAW(18, ", float r", "y = Dropout (p, half, yes)"), 0.5},
               {DRAW(10, "", "y = Dropout (p)"), 0.5},
               {DRAW(10, "", "y = Dropout <ratio = 0.25> (p)"), 0.25},
               {DRAW(18, "", "n = Bernoulli (x) y = Mul (p, n)"), 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static const char *const weights[] = {"w*"};
    const psplit_training_options options = {
      .loss = "mse:", .train = weights, .n_train = 1, .dropout = PSPLIT_DROPOUT_TRAIN};
    psplit_diag diag = {0};
    psplit_gradient *gradient = NULL;
    psplit_model *model = opened_text(cases[i].model);
    if (psplit_gradient_create(model, &options, NULL, &diag, &gradient) != PSPLIT_OK)
      fail_msg("%s: %s", cases[i].model, diag.message);
    assert_int_equal(psplit_gradient_n_masks(gradient), 1);
    const psplit_mask mask = psplit_gradient_mask(gradient, 0);
    assert_int_equal(mask.kind, cases[i].ratio > 0 ? PSPLIT_DRAW_KEEP : PSPLIT_DRAW_UNIFORM);
    if (mask.ratio != cases[i].ratio) fail_msg("%s: a ratio of %g", cases[i].model, mask.ratio);
    psplit_gradient_destroy(gradient);
    psplit_model_close(model);
  }
}

/* --- nodes Gradient --- */

#define GRADIENT(ir, opset, outputs, type, more, attributes, inputs)           \
  "<ir_version: " #ir ", opset_import: [\"\": " #opset                         \
  ", \"ai.onnx.preview.training\": 1]>"                                        \
  "(" type "[2,6] x, " type "[2,6] z) => (" outputs ") { y = Mul (x, z) " more \
  " d, e = ai.onnx.preview.training.Gradient <" attributes "> (" inputs ") after = Neg (y) }"
#define XS "xs = [\"x\", \"z\"]"

static const struct {
  const char *model;
  psplit_code code; /* IO: it is lowered, and cannot be written there */
  const char *message;
} lowered[] = {
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"y\"", "x, z"), PSPLIT_IO, ""},
  {GRADIENT(8, 18, "d, e", "double", "", XS ", y = \"y\"", "x, z"), PSPLIT_IO, ""},
  {GRADIENT(8, 18, "d, e", "float16", "", XS ", y = \"y\"", "x, z"), PSPLIT_IO, ""},
  {GRADIENT(8, 18, "d, e", "bfloat16", "", XS ", y = \"y\"", "x, z"), PSPLIT_IO, ""},
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"x\"", "x, z"), PSPLIT_IO, ""},
  {GRADIENT(8, 18, "d, e", "float", "", "xs = [\"x\", \"y\"], zs = [\"z\"], y = \"y\"", "x, y, z"),
   PSPLIT_IO, ""},
  {GRADIENT(8, 18, "d, e", "int64", "", XS ", y = \"y\"", "x, z"), PSPLIT_UNSUPPORTED,
   "no floating-point tensor, as far as is known, is \"y\""},
  {GRADIENT(3, 7, "d, e", "float", "", XS ", y = \"y\"", "x, z"), PSPLIT_UNSUPPORTED,
   "its constants need IR version 4 of \"the model\""},
  {GRADIENT(8, 18, "d, e", "float", "", XS, "x, z"), PSPLIT_INVALID, "it has no attribute \"y\""},
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"q\"", "x, z"), PSPLIT_INVALID,
   "the graph has no value \"q\""},
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"after\"", "x, z"), PSPLIT_UNSUPPORTED,
   "it comes before the node that computes \"after\""},
  {GRADIENT(8, 18, "d, e", "float", "", "y = \"y\"", "x, z"), PSPLIT_INVALID,
   "its inputs and outputs are not those of \"xs, zs\""},
  {GRADIENT(8, 18, "d, e", "float", "", "xs = [\"x\"], y = \"y\"", "x"), PSPLIT_INVALID,
   "its inputs and outputs are not those of \"xs, zs\""},
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"y\"", "x, z, y"), PSPLIT_INVALID,
   "its inputs and outputs are not those of \"xs, zs\""},
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"y\"", "x"), PSPLIT_INVALID,
   "no input is bound to \"z\""},
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"y\"", "x, "), PSPLIT_INVALID,
   "no input is bound to \"z\""},
  {GRADIENT(8, 18, "d, e", "float", "", XS ", y = \"y\"", "z, x"), PSPLIT_UNSUPPORTED,
   "an input is another tensor than the one that it is bound to, \"x\""},
};

static void of_gradients(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lowered / sizeof *lowered; i++) {
    psplit_diag diag = {0};
    uint32_t n = 77;
    psplit_model *model = opened_text(lowered[i].model);
    const psplit_code code = psplit_lower_gradients(model, "/dev/null/x", &diag, &n);
    if (code != lowered[i].code || !strstr(diag.message, lowered[i].message) || n != 77)
      fail_msg("%s: %s, %s", lowered[i].model, psplit_code_name(code), diag.message);
    psplit_model_close(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(of_draws),     cmocka_unit_test(of_axes),
    cmocka_unit_test(of_names),     cmocka_unit_test(of_ratios),
    cmocka_unit_test(of_gradients), cmocka_unit_test(of_other_branches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
