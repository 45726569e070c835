/* What cannot be differentiated, and losses and optimizers that say what they cannot mean: each is
 * refused by its name, and what is nearly so is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/gradient.h>
#include <string.h>

#include "open.h"
#include "opsets.h"
#include "rule.h"

#define BAD_LOSS "expected softmax-cross-entropy:logits=L,labels=Y"

/* `output`: the loss is a value of the model, not of a kind. */
static psplit_code differentiate(const psplit_model *model, const char *loss, bool output,
                                 psplit_diag *diag) {
  static const char *const inputs[] = {"x"}, *const all[] = {"w*"};
  psplit_training_options options = {.loss = output ? NULL : loss,
                                     .loss_output = output ? loss : NULL,
                                     .train = all,
                                     .n_train = 1,
                                     .gradient_of = inputs,
                                     .n_gradient_of = 1};
  psplit_gradient *gradient = NULL;
  const psplit_code code = psplit_gradient_create(model, &options, NULL, diag, &gradient);
  psplit_gradient_destroy(gradient);
  return code;
}

/* --- losses --- */

static const char TWO_OUTPUTS[] =
  "(float[2,5] x) => (y, z) <float[5] w = raw {0 * 5}> { y = Mul (x, w) z = Neg (x) }";
static const char MANY_OUTPUTS[] =
  "(float[5] x, int64 n) => (n, y0, y1, y2, y3, y4, y5, y6, y7, y8, y9) <float[5] w = raw {0 * 5}> "
  "{ y0 = Mul (x, w) y1 = Neg (x) y2 = Neg (x) y3 = Neg (x) y4 = Neg (x) y5 = Neg (x) y6 = Neg (x) "
  "y7 = Neg (x) y8 = Neg (x) y9 = Neg (x) }";
static const char IMAGE[] = "(float[2,5,3] x) => (y) <float[3] w = raw {0 * 3}> { y = Mul (x, w) }";
static const char WHOLE[] =
  "(float[2,5] x) => (y) <float[5] w = raw {0 * 5}> { p = Mul (x, w) y = Cast <to = 7> (p) }";
static const char MIXED[] =
  "(float[2,5] x, int64[2,5] k, double[2,5] d) => (y) <float[5] w = raw {0 "
  "* 5}> { y = Mul (x, w) }";
static const char DOUBLES[] =
  "(double[2,5] x) => (y) <double[5] w = raw {0 * 5}> { y = Mul (x, w) }";
static const char OLD[] =
  OPSET(11) "(float[2,5] x) => (y) <float[5] w = raw {0 * 5}> { y = Mul (x, w) }";
static const char OLDEST[] =
  OPSET(6) "(float[2,5] x) => (y) <float[2,5] w = raw {0 * 10}> { y = Mul (x, w) }";
static const char OLD_NARROW[] =
  OPSET(8) "(float[2,5] x, int32[2] k) => (y) <float[5] w = raw {0 * 5}> { y = Mul (x, w) }";
static const char OLD_OPEN[] =
  OPSET(11) "(float[2,c] x) => (y) <float[1] w = raw {0}> { y = Mul (x, w) }";
static const char OLD_FLAT[] =
  OPSET(11) "(float[5] x) => (y) <float[5] w = raw {0 * 5}> { y = Mul (x, w) }";
static const char FLAT[] = "(float[5] x) => (y) <float[5] w = raw {0 * 5}> { y = Mul (x, w) }";
static const char TAKEN[] =
  "(float[2,5] x) => (y, loss) <float[5] w = raw {0 * 5}> { y = Mul (x, w) loss = Neg (x) }";

static const struct {
  const char *model, *loss;
  psplit_code code;
  const char *message;
} losses[] = {
  {IMAGE, "mse:", PSPLIT_OK, ""},
  {IMAGE, "mse", PSPLIT_OK, ""},
  {IMAGE, "mse:prediction=y,target=t", PSPLIT_OK, ""},
  {IMAGE, "mse:target=x", PSPLIT_OK, ""},
  {IMAGE, "bce-with-logits:", PSPLIT_OK, ""},
  {IMAGE, "bce-with-logits:logits=y,labels=t,", PSPLIT_OK, ""},
  {IMAGE, "softmax-cross-entropy:", PSPLIT_OK, ""},
  {IMAGE, "softmax-cross-entropy:axis=1,ignore=-100", PSPLIT_OK, ""},
  {IMAGE, "softmax-cross-entropy:axis=2", PSPLIT_OK, ""},
  {IMAGE, "softmax-cross-entropy:axis=-1", PSPLIT_OK, ""},
  {IMAGE, "softmax-cross-entropy:axis=-2", PSPLIT_OK, ""},
  {DOUBLES, "mse:", PSPLIT_OK, ""},
  {TAKEN, "mse:prediction=y", PSPLIT_OK, ""},
  {IMAGE, "softmax-cross-entropy:axis=0", PSPLIT_USAGE, "its axis is out of range; " BAD_LOSS},
  {IMAGE, "softmax-cross-entropy:axis=3", PSPLIT_USAGE, "its axis is out of range"},
  {IMAGE, "softmax-cross-entropy:axis=", PSPLIT_USAGE, "not a whole number"},
  {IMAGE, "softmax-cross-entropy:ignore=1x", PSPLIT_USAGE, "not a whole number"},
  {IMAGE, "softmax-cross-entropy:ignore=9223372036854775808", PSPLIT_USAGE, "beyond 64 bits"},
  {IMAGE, "softmax-cross-entropy:ignore=-9223372036854775809", PSPLIT_USAGE, "beyond 64 bits"},
  {IMAGE, "softmax-cross-entropy:axis=18446744073709551617", PSPLIT_USAGE, "beyond 64 bits"},
  {IMAGE, "softmax-cross-entropy:ignore=-9223372036854775808", PSPLIT_OK, ""},
  {IMAGE, "softmax-cross-entropy:labels", PSPLIT_USAGE, "an entry without a value"},
  {IMAGE, "mse:axis=1", PSPLIT_USAGE, "unknown entry"},
  {IMAGE, "mse:ignore=1", PSPLIT_USAGE, "unknown entry"},
  {IMAGE, "mse:tarket=t", PSPLIT_USAGE, "did you mean target? " BAD_LOSS},
  {IMAGE, "mse:zzzzzzzzzzzz=t", PSPLIT_USAGE, "unknown entry; " BAD_LOSS},
  {IMAGE, "msee:", PSPLIT_USAGE, "unknown loss, did you mean mse? " BAD_LOSS},
  {IMAGE, "zzzzzzzzzzzzz:", PSPLIT_USAGE, "unknown loss; " BAD_LOSS},
  {IMAGE, "mse:prediction=q", PSPLIT_USAGE, "the model has no value \"q\""},
  {TWO_OUTPUTS, "mse:", PSPLIT_USAGE,
   "the model has several outputs, so it has to say which one, of y, z; " BAD_LOSS},
  {MANY_OUTPUTS, "mse:", PSPLIT_USAGE, "which one, of y0, y1, y2, y3, y4, y5, y6, y7 and 2 more; "},
  {WHOLE, "mse:", PSPLIT_USAGE, "\"y\" is not a floating-point tensor"},
  {MIXED, "softmax-cross-entropy:labels=x", PSPLIT_USAGE,
   "\"x\" is float32 in the model, and labels of int64 or int32 are needed; a name that"},
  {MIXED, "mse:target=k", PSPLIT_USAGE, "\"k\" is int64 in the model, and float32 are needed"},
  {MIXED, "bce-with-logits:labels=d", PSPLIT_USAGE, "\"d\" is float64 in the model, and float32"},
  {OLD, "softmax-cross-entropy:", PSPLIT_OK, ""},
  {OLD, "softmax-cross-entropy:axis=0", PSPLIT_USAGE, "its axis is out of range"},
  {OLD, "softmax-cross-entropy:axis=2", PSPLIT_USAGE, "its axis is out of range"},
  {OLD_NARROW, "softmax-cross-entropy:labels=k,ignore=1", PSPLIT_OK, ""},
  {OLD_FLAT, "softmax-cross-entropy:", PSPLIT_USAGE, "the logits \"y\" have no axis of classes"},
  {FLAT, "softmax-cross-entropy:axis=-1", PSPLIT_USAGE, "the logits \"y\" have no axis of classes"},
  {OLD_OPEN, "softmax-cross-entropy:", PSPLIT_UNSUPPORTED,
   "opset 11 needs the number of classes, two or more, as the size of axis 1 of \"y\""},
  {OLDEST, "softmax-cross-entropy:", PSPLIT_UNSUPPORTED, "opset 7 or later, this one has 6; "},
};

static const char GIVEN[] =
  "(float[1] x) => (x, y, w) <float[1] w = {1}> { y = Mul (x, w) z = Exp (y) }";

static const struct {
  const char *model, *value;
  psplit_code code;
  const char *message;
} values[] = {
  {GIVEN, "y", PSPLIT_OK, ""},
  {GIVEN, "z", PSPLIT_OK, ""},
  {GIVEN, "x", PSPLIT_USAGE, "the loss \"x\" is an input or a weight"},
  {GIVEN, "w", PSPLIT_USAGE, "the loss \"w\" is an input or a weight"},
  {GIVEN, "q", PSPLIT_USAGE, "the model has no value \"q\""},
  {IMAGE, "y", PSPLIT_USAGE, "more than one element"},
};

static void expect(const char *text, const char *loss, bool output, psplit_code wanted,
                   const char *message) {
  psplit_diag diag = {0};
  psplit_model *model = opened_text(text);
  const psplit_code code = differentiate(model, loss, output, &diag);
  if (code != wanted || !strstr(diag.message, message))
    fail_msg("%s: %s, %s", loss, psplit_code_name(code), diag.message);
  psplit_model_close(model);
}

static void of_values(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    expect(values[i].model, values[i].value, true, values[i].code, values[i].message);
}

static void of_losses(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
    expect(losses[i].model, losses[i].loss, false, losses[i].code, losses[i].message);
}

/* --- optimizers --- */

static const struct {
  const char *text, *why; /* NULL: it is one */
} optimizers[] = {
  {"sgd", NULL},
  {"sgd:weight_decay=0.1", NULL},
  {"momentum:momentum=0.5,nesterov=1,weight_decay=0,", NULL},
  {"momentum:nesterov=0", NULL},
  {"adam:beta1=0,beta2=0.5,epsilon=0", NULL},
  {"adamw:weight_decay=0", NULL},
  {"adamm", "unknown method, did you mean adam? expected"},
  {"zzzzzzzzzzzz", "unknown method; expected"},
  {"sgd:weight_decay", "an entry without a value"},
  {"sgd:weight_decay=", "a value out of range"},
  {"sgd:weight_decay=1x", "a value out of range"},
  {"sgd:weight_decay=-1", "a value out of range"},
  {"sgd:weight_decay=nan", "a value out of range"},
  {"sgd:weight_decay=inf", "a value out of range"},
  {"sgd:momentum=0.9", "unknown entry"},
  {"sgd:beta1=0.9", "unknown entry"},
  {"momentum:momentum=-0.1", "a value out of range"},
  {"momentum:momentum=1e999", "a value out of range"},
  {"momentum:nesterov=2", "a value out of range"},
  {"momentum:epsilon=1", "unknown entry"},
  {"adam:beta1=1", "a value out of range"},
  {"adam:beta1=-0.1", "a value out of range"},
  {"adam:beta2=1", "a value out of range"},
  {"adam:beta2=-0.1", "a value out of range"},
  {"adam:epsilon=-1", "a value out of range"},
  {"adamw:epsilon=inf", "a value out of range"},
  {"adamw:nesterov=1", "unknown entry"},
};

static void of_optimizers(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_model *model = opened_text(IMAGE);
  psplit_gradient *gradient;
  const psplit_training_options options = {.loss = "mse:"};
  assert_int_equal(psplit_gradient_create(model, &options, NULL, &diag, &gradient), PSPLIT_OK);
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
    diag = (psplit_diag){0};
    const psplit_code code =
      psplit_gradient_write_update(gradient, optimizers[i].text, "/dev/null/x", &diag);
    /* What is taken cannot be written there. */
    if (code != (optimizers[i].why ? PSPLIT_USAGE : PSPLIT_IO) ||
        (optimizers[i].why && !strstr(diag.message, optimizers[i].why)))
      fail_msg("%s: %s, %s", optimizers[i].text, psplit_code_name(code), diag.message);
  }
  psplit_gradient_destroy(gradient);
  psplit_model_close(model);
}

/* --- operators --- */

#define LSTM(attributes, more)                                             \
  "(float[2,1,3] x, int32[1] lens, float[1,12] peep) => (float[1,1,4] y) " \
  "<float[1,16,3] w = raw {0 * 48}, float[1,16,4] w2 = raw {0 * 64}> {"    \
  " all, h = LSTM <hidden_size = 4" attributes "> (x, w, w2" more ") y = Identity (h) }"
#define IN4(body) "(float[2,4,6,6] x) => (y) <float[6] w = raw {0 * 6}> { p = Mul (x, w) " body " }"
#define WITH(inputs, body) \
  "(float[2,6] x, " inputs ") => (y) <float[6] w = raw {0 * 6}> { p = Mul (x, w) " body " }"

/* More axes than a tensor may have. */
#define TEN "69, 69, 69, 69, 69, 69, 69, 69, 69, 69, "
#define PERM_OF_71 TEN TEN TEN TEN TEN TEN TEN "69"
#define TURNED(perm)                                              \
  "(float[2,6] x) => (float[6,2] y) <float[6] w = raw {0 * 6}> {" \
  " p = Mul (x, w) y = Transpose <perm = [" perm "]> (p) }"

#define PARTS(outputs)                                                                    \
  "(float[2,6] x) => (float[2,2] y) <float[6] w = raw {0 * 6}, int64[3] n = {2, 2, 2}> {" \
  " p = Mul (x, w) " outputs " = Split <axis = 1> (p, n) }"
#define ONES "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1" /* as many as letters */

#define MOST "9223372036854775807"
#define WINDOW(size, body) \
  "(float[1,1," size "] x) => (float[1,1,8] y) <float[1,1,3] w = raw {0 * 3}> { " body " }"

#define UNKNOWN(type)                                  \
  "(float[2,6] x, " type                               \
  " q) => (float[2,6] y) <float[6] w = raw {0 * 6}> {" \
  " p = Mul (x, w) y = com.example.Product (p, q) }"

/* x [2, 6] and p [2, 3, 8], of 4 heads. */
#define TOKENS(inputs, body)                                                                \
  FUSED "(float[2,3,8] x" inputs                                                            \
        ") => (float[2,3,8] y) <float[8] w = raw {0 * 8}, float[8,24] w2 = raw {0 * 192}, " \
        "float[24] w3 = raw {0 * 24}, float[9,2] table = raw {0 * 18}> {"                   \
        " p = Mul (x, w) " body " }"
#define HEADS "<num_heads = 4"

static const struct {
  const char *model;
  const char *why; /* NULL: it has a gradient */
} operators[] = {
  {TOKENS("", "y = com.microsoft.Attention " HEADS "> (p, w2, w3)"), NULL},
  {TOKENS("", "y = com.microsoft.Attention " HEADS ", do_rotary = 1> (p, w2, w3)"),
   "by a table that is not an input"},
  {TOKENS("", "y = com.microsoft.Attention <num_heads = 5> (p, w2, w3)"),
   "its heads do not fit its weight"},
  {TOKENS("", "y = com.microsoft.Attention (p, w2, w3)"), "its heads, or the shape of its weight"},
  {TOKENS("", "y = com.microsoft.Attention " HEADS ", qkv_hidden_sizes = [8, 8, 4]> (p, w2, w3)"),
   "its heads do not fit its weight"},
  {TOKENS(", float[2,2,4,5,2] past",
          "y, now = com.microsoft.Attention " HEADS "> (p, w2, w3, , past)"),
   "without a cache"},
  {TOKENS(", int32[4] mask", "y = com.microsoft.Attention " HEADS "> (p, w2, w3, mask)"),
   "its mask is not one of lengths"},
  {TOKENS(", int32[2] mask", "y = com.microsoft.Attention " HEADS "> (p, w2, w3, mask)"), NULL},
  {TOKENS("", "y = com.microsoft.MultiHeadAttention " HEADS "> (p, p, p, w3)"), NULL},
  {TOKENS("", "y = com.microsoft.MultiHeadAttention <num_heads = 3> (p, p, p, w3)"),
   "its heads, or their size, are not known"},
  {TOKENS("", "y = com.microsoft.MultiHeadAttention " HEADS "> (p)"), "its input 1 is omitted"},
  {TOKENS(", float[2,4,5,2] k", "y = com.microsoft.MultiHeadAttention " HEADS "> (p, k, k)"), NULL},
  {TOKENS(", float[2,4,5,2] k", "y = com.microsoft.MultiHeadAttention " HEADS "> (p, k, k, w3)"),
   "do not fit each other"},
  {TOKENS(", float[2,4,5,2] k",
          "y, k2, v2 = com.microsoft.MultiHeadAttention " HEADS "> (p, p, p, w3, , , k, k)"),
   "without a cache"},
  {TOKENS(", int32[2] seqlens, int32 total", "y, k, v = com.microsoft.GroupQueryAttention " HEADS
                                             ", kv_num_heads = 4> (p, p, p, , , seqlens, total)"),
   "which an optimiser wrote for one runtime: train the original model"},
  {"<ir_version: 8, opset_import: [\"\": 18, \"com.microsoft.nchwc\": 1]>"
   "(float[1,8,4,4] x) => (float[1,8,4,4] y) <float[8,8,1,1] w = raw {0 * 64}> {"
   " y = com.microsoft.nchwc.Conv (x, w) }",
   "which an optimiser wrote for one runtime: train the original model"},
  {TOKENS(", uint8[8,1,16] q, float[8] s",
          "y = com.microsoft.MatMulNBits <K = 8, N = 8, bits = 4, block_size = 32> (p, q, s)"),
   "it computes with quantised numbers, which have no gradients: train the model as it was before"},
  {TOKENS("", "y = com.microsoft.SkipLayerNormalization (p, p, w)"), NULL},
  {TOKENS("", "y, m = com.microsoft.SkipLayerNormalization (p, p, w) "), NULL},
  {TOKENS("", "z, m, i, y = com.microsoft.SkipLayerNormalization (p, p, w)"), NULL},
  {TOKENS("", "z, m = com.microsoft.SkipLayerNormalization (p, p, w) y = Mul (z, m)"),
   "the loss depends on its output 1"},
  {TOKENS(", int64[1] at", "y = com.microsoft.RotaryEmbedding (p, at, table, table)"), NULL},
  {TOKENS(", int64[1] at", "y = com.microsoft.RotaryEmbedding <scale = 2.0> (p, at, table, table)"),
   "its positions are scaled or packed"},
  {TOKENS(", int64[1] at",
          "y = com.microsoft.RotaryEmbedding <num_heads = 8, rotary_embedding_dim = 3> (p, at, "
          "table, table)"),
   "the size that it turns is not even"},
  {TOKENS("", "y = com.microsoft.FusedMatMul <transBatchA = 1> (p, w2)"),
   "its operands are not matrices, or not of the same number"},
  {FUSED "(float[2,6] x) => (y) <float[6,6] w = raw {0 * 36}> {"
         " y = com.microsoft.FusedGemm <activation = \"Sin\"> (x, w) }",
   "the gradient of its activation cannot be computed from its result"},
  {FUSED "(float[2,6] x) => (y) <float[6,6] w = raw {0 * 36}> {"
         " y = com.microsoft.FusedGemm <activation = \"LeakyRelu\", activation_alpha = -0.5>"
         " (x, w) }",
   "the gradient of its activation cannot be computed from its result"},
  {FUSED "(int32[2,3] x, float[2,3,6] target) => (y) <float[9,6] w = raw {0 * 54}> {"
         " y, i = com.microsoft.EmbedLayerNormalization (x, x, w, w, , , ) }",
   "one of the tables are missing"},
  {LSTM("", ""), NULL},
  {LSTM(", activations = [\"sigmoid\", \"Tanh\", \"tanh\"]", ""), NULL},
  {LSTM("", ", , lens"), "it has sequence_lens"},
  {LSTM("", ", , , , , peep"), "it has peepholes"},
  {LSTM(", layout = 1", ""), "its layout is batch first"},
  {LSTM(", input_forget = 1", ""), "it couples its gates"},
  {LSTM(", clip = 1.0", ""), "it clips"},
  {LSTM(", activations = [\"Relu\", \"Tanh\", \"Tanh\"]", ""), "its activations are not the usual"},
  {LSTM(", activations = [\"Sigmoids\", \"Tanh\", \"Tanh\"]", ""),
   "its activations are not the usual"},
  {"(float[2,1,3] x, float[1,c,d] r) => (y) <float[1,12,3] w = raw {0 * 36}> {"
   " all, y = GRU (x, w, r) }",
   "its hidden size is not known"},
  {IN4("y = MaxPool <kernel_shape = [2, 2], storage_order = 1> (p)"), NULL},
  {IN4("y, at = MaxPool <kernel_shape = [2, 2], storage_order = 1> (p)"), NULL},
  {IN4("y = MaxPool <kernel_shape = [2, 2]> (p)"), NULL},
  {IN4("y, at = MaxPool <kernel_shape = [2, 2]> (p)"), NULL},
  {IN4("y = MaxPool <kernel_shape = [2, 2], auto_pad = \"SAME_LOWER\"> (p)"), NULL},
  {IN4("y = MaxPool <kernel_shape = [2, 2], auto_pad = \"VALID\"> (p)"), NULL},
  {IN4("y = AveragePool <kernel_shape = [1, 1], strides = [2, 2]> (p)"), NULL},
  {OPSET(23) IN4("y = Attention (p, p, p)"), NULL},
  {OPSET(23) IN4("y, k, v = Attention (p, p, p, , p, p)"), "keys and values of steps before"},
  {OPSET(24) IN4("y = Attention (p, p, p, , , , x)"), "it has lengths of sequences"},
  {OPSET(23) "(float[2,4,q,6] x, float[2,3,4,6] k) => (y) <float[6] w = raw {0 * 6}> {"
             " p = Mul (x, w) y = Attention (p, k, k) }",
   "its heads do not fit each other"},
  {OPSET(23) "(float[2,h,4,6] x) => (y) <float[6] w = raw {0 * 6}> {"
             " p = Mul (x, w) y = Attention (p, p, p) }",
   "its heads, or their size, are not known"},
  {OPSET(23) "(float[2,4,5,6] x, float[9,2] c, int64[2,5] at) => (y) <float[6] w = raw {0 * 6}> {"
             " p = Mul (x, w) y = RotaryEmbedding <rotary_embedding_dim = 3> (p, c, c, at) }",
   "the size that it turns is not even"},
  {OPSET(23) "(float[2,4,5,4] p, float[9,2] x, int64[2,5] at) => (y) <float[2] w = raw {0 * 2}> {"
             " c = Mul (x, w) y = RotaryEmbedding (p, c, x, at) }",
   "its rule does not support this form"},
  {IN4("y = LRN <size = 2000> (p)"), "its size is out of range"},
  {IN4("y = LRN <size = 3> (p)"), NULL},
  {IN4("y = DepthToSpace <blocksize = 2> (p)"), NULL},
  {IN4("y = LpPool <kernel_shape = [2, 2]> (p)"), "there is no rule for this operator"},
  {UNKNOWN("uint8[6,6]"), "it computes with quantised numbers"},
  {WITH("float s, uint8 z", "q = QuantizeLinear (p, s, z) y = DequantizeLinear (q, s, z)"),
   "it computes with quantised numbers, which have no gradients: train the model as it was before"},
  {UNKNOWN("bool[6,6]"), "there is no rule for this operator"},
  {IN4("y = Transpose <perm = [3, 1, 0, 2]> (p)"), NULL},
  {IN4("y = Transpose <perm = [-1, 1, 0, -2]> (p)"), NULL},
  {TURNED("1, 2"), "its perm is not a permutation of its axes"},
  {TURNED("1, 1"), "its perm is not a permutation of its axes"},
  {TURNED("2, 1, 0"), "its perm is not a permutation of its axes"},
  {TURNED(PERM_OF_71), "its perm is not a permutation of its axes"},
  {PARTS("a, b, y"), NULL},
  {PARTS("y, , b"), "its output 1 is left out"},
  {OPSET(19) "(float[2,6] x) => (y) <float[6] w = raw {0 * 6}, int64[4] n = {0, 1, 0, 1}> {"
             " p = Mul (x, w) y = Pad <mode = \"wrap\"> (p, n) }",
   "it pads by wrapping around"},
  {IN4("y = Einsum <equation = \"abcd->dcba\"> (p)"), NULL},
  {"(float[" ONES "] x) => (float y) <float[" ONES ",6] w = raw {0 * 6}> {"
   " y = Einsum <equation = \"abcdefghijklmnopqrstuvwxyz,...ABCDEFGHIJKLMNOPQRSTUVWXYZ\"> (x, w) }",
   "its ellipses need more letters than there are"},
  {WITH("float[6] z", "y = Einsum <equation = \"ab,b,b,b,b,b,b,b->ab\"> (p, w, w, w, w, w, w, w)"),
   NULL},
  {WITH("float[6] z",
        "y = Einsum <equation = \"ab,b,b,b,b,b,b,b,b->ab\"> (p, w, w, w, w, w, w, w, w)"),
   "its equation has over 8 terms"},
  {IN4("y = Einsum <equation = \"a b c d -> a b\"> (p)"), NULL},
  {IN4("y = Einsum <equation = \"...cd->...dc\"> (p)"), NULL},
  {"(float[2,4,6] x) => (float[4] y) <float[6] w = raw {0 * 6}> {"
   " p = Mul (x, w) y = Einsum <equation = \"...c...->c\"> (p) }",
   "a letter, or an ellipsis, twice in one term"},
  {IN4("y = Einsum <equation = \"abcc->ab\"> (p)"), "a letter, or an ellipsis, twice in one term"},
  {"(float[2,4,6] x) => (float[2,4] y) <float[6] w = raw {0 * 6}> {"
   " p = Mul (x, w) y = Einsum <equation = \"abcd...->ab\"> (p) }",
   "is not for tensors of such ranks"},
  {"(float[2,4,6] x) => (float[2,4] y) <float[6] w = raw {0 * 6}> {"
   " p = Mul (x, w) y = Einsum <equation = \"abcd->ab\"> (p) }",
   "is not for tensors of such ranks"},
  {OPSET(19) IN4("y = AveragePool <kernel_shape = [2, 2], dilations = [2, 1], ceil_mode = 1,"
                 " pads = [1, 1, 1, 1], count_include_pad = 1> (p)"),
   "it counts padding of dilated windows"},
  {OPSET(19) IN4("y = AveragePool <kernel_shape = [2, 2], dilations = [2, 1], ceil_mode = 1,"
                 " pads = [1, 1, 1, 1]> (p)"),
   NULL},
  {"(float[6] x) => (y) <float[6] w = raw {0 * 6}, float[1] s = {1}> {"
   " p = Mul (x, w) y = BatchNormalization (p, s, s, s, s) }",
   "its rule does not support this form"},
  {WITH("float[3,6] z", "y = Einsum <equation = \"ab,Cb->aC\"> (p, z)"), NULL},
  {WITH("int64[2] at", "y = Slice (p, at, at)"), NULL},
  {WITH("int64[1] at", "y = Reshape (p, at)"), NULL},
  {WITH("int64[1] at", "y = ReduceSum (p, at)"), "its axes are not constant"},
  {WITH("int64[r] at", "q = Reshape (p, at) y = ReduceMean <keepdims = 0> (q)"), NULL},
  {WITH("int64[r] at", "q = Reshape (p, at) y = ReduceMean <keepdims = 0, axes = [0]> (q)"),
   "the rank of its input 0 is not known"},
  {WITH("int64[1] at", "y = Gather <axis = 1> (p, at)"), NULL},
  {WITH("int64[4] at", "y = Pad (p, at)"), NULL},
  {WITH("int64[2,6] at", "y = GatherElements <axis = 1> (p, at)"), NULL},
  {WITH("int64[2,1] at", "y = ScatterND <reduction = \"add\"> (p, at, x)"), NULL},
  {WITH("int64[2,1] at", "y = ScatterND <reduction = \"mul\"> (p, at, x)"), NULL},
  {WITH("int64[2,6] at", "y = ScatterElements <axis = 1, reduction = \"max\"> (p, at, x)"), NULL},
  {WITH("int64[2,6] at", "y = ScatterElements <axis = 1, reduction = \"mean\"> (p, at, x)"),
   "its reduction is not known"},
  {WITH("int64[1] k", "y, n = TopK (p, k)"), NULL},
  /* Trained where nobody trains: a gradient of 0 would be wrong without a word. */
  {WITH("int64[2] l", "q = Relu (w) y = SoftmaxCrossEntropyLoss (x, l, q)"),
   "its rule does not support this form"},
  {WITH("int64[2] l", "q = Relu (w) y = NegativeLogLikelihoodLoss (x, l, q)"),
   "its rule does not support this form"},
  {WITH("float[6] z, int64[2] l", "y = SoftmaxCrossEntropyLoss (p, l, z)"), NULL},
  {WITH("int64[2] l, int64 n, float[2] z", "q = OneHot (l, n, z) y = Mul (p, q)"), NULL},
  {"(float[2] x, int64[3] l, int64 n) => (y) <float[2] w = raw {0 * 2}> {"
   " p = Mul (x, w) y = OneHot (l, n, p) }",
   "there is no rule for this operator"},
  {"(float x, float d) => (y) <float w = {1}> { p = Mul (x, w) y = Range (x, p, d) }",
   "there is no rule for this operator"},
  {WITH("int64[2] l", "y = Unique (p)"), "there is no rule for this operator"},
  {WITH("int64[6] l", "q = Unique (l) s = Cast <to = 1> (q) y = Mul (p, s)"), NULL},
  {WITH("float[2,6] z", "y = Mod <fmod = 1> (p, z)"), NULL},
  {WITH("float[c,d] z", "y = MatMul (p, z)"), NULL},
  {WITH("float[c,d] z", "y = Gemm (p, z)"), NULL},
  {WITH("float[2] s", "y = Resize (p, , s)"), NULL},
  {"(float[1,1,4,4] x) => (y) <float[4] w = raw {0 * 4}, float[4] s = {1, 1, 2, 2}> {"
   " p = Mul (x, w) y = Resize <mode = \"linear\", antialias = 1> (p, , s) }",
   NULL},
  {"(float[1,1,4,4] x) => (y) <float[4] w = raw {0 * 4}, float[4] s = {1, 1, 2, 2},"
   " float[8] roi = raw {0 * 8}> { p = Mul (x, w)"
   " y = Resize <coordinate_transformation_mode = \"tf_crop_and_resize\"> (p, roi, s) }",
   "its coordinates are those of one framework"},
  {"(float[1,1,4,4] x) => (y) <float[4] w = raw {0 * 4}, float[4] s = {1, 1, 2, 2}> {"
   " p = Mul (x, w) y = Resize <mode = \"linear\"> (p, , s) }",
   NULL},
  {"(float[1,1,4,4] x) => (y) <float[4] w = raw {0 * 4}, float[2] s = {2, 2}> {"
   " p = Mul (x, w) y = Resize <axes = [2, 4]> (p, , s) }",
   "its axis is out of range"},
  {"(float[1,1,4,4] x) => (y) <float[4] w = raw {0 * 4}, int64[4] s = {1, 1, 8, 9}> {"
   " p = Mul (x, w) y = Resize <keep_aspect_ratio_policy = \"not_larger\"> (p, , , s) }",
   "its sizes follow from one of them"},
  {"(float[1,2,4,4] x, float[c,d,e,f] w3) => (y) <float[4] w = raw {0 * 4}> {"
   " p = Mul (x, w) y = Conv (p, w3) }",
   "the size of its kernel is not known"},
  {"(float[1,2,4,4] x) => (y) <float[2,1,1,1] w = raw {0 * 2}> { y = Conv <group = 2> (x, w) }",
   NULL},
  {WINDOW(MOST, "y = Conv <auto_pad = \"SAME_UPPER\", strides = [2]> (x, w)"),
   "its window is out of range"},
  {WINDOW(MOST, "y = ConvTranspose <auto_pad = \"SAME_LOWER\", strides = [2]> (x, w)"),
   "its window is out of range"},
  {WINDOW("8", "y = ConvTranspose <output_shape = [-" MOST "], strides = [2]> (x, w)"),
   "its window is out of range"},
  {WINDOW("8", "y = ConvTranspose <output_shape = [9], output_padding = [" MOST "]> (x, w)"),
   "its window is out of range"},
  {WINDOW("8", "y = ConvTranspose <output_shape = [8]> (x, w)"), NULL},
  {"(float[1,2,4,4] x) => (y) <float[2,1,1,1] w = raw {0 * 2}> {"
   " y = ConvTranspose <group = 2> (x, w) }",
   NULL},
  {OPSET(8) "(float[2,4,6] x) => (y) <float[4] w = raw {0 * 4}, float[4] w2 = raw {0 * 4},"
            " float[4] m = raw {0 * 4}, float[4] v = raw {0 * 4}> {"
            " y = BatchNormalization <spatial = 0> (x, w, w2, m, v) }",
   "each position by itself (spatial = 0)"},
  {OPSET(8) "(float[2,4,6] x) => (y) <float[4] w = raw {0 * 4}, float[4] w2 = raw {0 * 4},"
            " float[4] m = raw {0 * 4}, float[4] v = raw {0 * 4}> {"
            " y = BatchNormalization (x, w, w2, m, v) }",
   NULL},
  {"(float[2,4,6] x) => (y) <float[4] w = raw {0 * 4}, float[4] m = raw {0 * 4}> {"
   " y = BatchNormalization (x, w, w, m, w) }",
   "its running mean and variance are not weights that can be trained"},
  {FUSED "(float[2,2,2,4] x) => (float[2,2,2,4] y) <float[4] w = raw {0 * 4}> { p = Mul (x, w)"
         " z, y = com.microsoft.SkipGroupNorm <groups = 2> (p, w, w, x) }",
   NULL},
};

static void of_operators(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    psplit_diag diag = {0};
    psplit_model *model = opened_text(operators[i].model);
    const psplit_code code = differentiate(model, "mse:", false, &diag);
    const char *why = operators[i].why;
    if (code != (why ? PSPLIT_UNSUPPORTED : PSPLIT_OK) || (why && !strstr(diag.message, why)))
      fail_msg("%s: %s, %s", operators[i].model, psplit_code_name(code), diag.message);
    psplit_model_close(model);
  }
}

/* --- weights that nothing looks at --- */

#define IF(inputs, weights, then, otherwise)  \
  "(float[2,6] x" inputs ") => (y) <" weights \
  "> { [choice] y = If (c) <"                 \
  "then_branch = t () => (a) { " then " }, else_branch = e () => (b) { " otherwise " }> }"
#define W "float[6] w = raw {0 * 6}"
#define CONSTANT_W "k = Constant <value = float[6] raw {0 * 6}> () "
#define LOOP(weights, body)                                                                       \
  "(float[2,6] x) => (y) <int64 n = {2}, bool c = raw {1}" weights                                \
  ">"                                                                                             \
  " { [turns] y = Loop (n, c, x) <body = t (int64 i, bool c2, float[2,6] x2) => (c3, y2) { " body \
  " c3 = Identity (c2) }> }"

static const struct {
  const char *model;
  psplit_code code;
  const char *message;
  psplit_hint hint;
  const char *arguments[2];
} bodies[] = {
  {IF(", bool c", W, "a = Mul (x, w)", "b = Neg (x)"),
   PSPLIT_USAGE,
   "nothing to train: weights are read in the bodies of If \"choice\", and gradients through "
   "bodies are not supported",
   PSPLIT_HINT_INLINE_ASSUMED,
   {"choice"}},
  {IF("", W ", bool c = raw {1}", "a = Mul (x, w)", "b = Neg (x)"),
   PSPLIT_USAGE,
   "the bodies of If \"choice\"",
   PSPLIT_HINT_INLINE_KNOWN,
   {"choice", "then"}},
  {IF(", bool c", "float[1] o = {1}", "a = Neg (x)", CONSTANT_W "b = Mul (x, k)"),
   PSPLIT_USAGE,
   "the bodies of If \"choice\"",
   PSPLIT_HINT_INLINE_ASSUMED,
   {"choice"}},
  {IF(", bool c", "float o = {1}", "a = Mul (x, o)", "b = Neg (x)"),
   PSPLIT_USAGE,
   "no floating-point initializer in a parameter's place",
   PSPLIT_HINT_NONE,
   {0}},
  {LOOP(", " W, "y2 = Mul (x2, w)"),
   PSPLIT_USAGE,
   "weights are read in the bodies of Loop \"turns\", and gradients through bodies are not "
   "supported: "
   "export the model with its steps one after the other",
   PSPLIT_HINT_NONE,
   {0}},
  {LOOP(", int64[2,6] w = {0 * 12}", "z = Cast <to = 1> (w) y2 = Mul (x2, z)"),
   PSPLIT_USAGE,
   "no floating-point initializer in a parameter's place",
   PSPLIT_HINT_NONE,
   {0}},
  {"(float[2,6] x, bool c) => (y) <" W "> { p = Mul (x, w) [choice] y = If (c) <"
   "then_branch = t () => (a) { a = Neg (p) }, else_branch = e () => (b) { b = Abs (p) }> }",
   PSPLIT_UNSUPPORTED,
   "gradients through its bodies are not supported",
   PSPLIT_HINT_INLINE_ASSUMED,
   {"choice"}},
  {"(float[2,6] x) => (y) <int64 n = {2}, bool c = raw {1}, " W
   "> { p = Mul (x, w) [turns] y = Loop "
   "(n, c, p) <body = t (int64 i, bool c2, float[2,6] x2) => (c3, y2) { y2 = Neg (x2) c3 = "
   "Identity "
   "(c2) }> }",
   PSPLIT_UNSUPPORTED,
   "bodies are not supported: export the model with its steps one after the other; freeze \"w\"",
   PSPLIT_HINT_NONE,
   {0}},
  /* Branches of two ranks leave that of all behind them open. */
  {"(float[1,4,4] x, bool c) => (y) <float[2,4,1] w = raw {0 * 8}> { [choice] a = If (c) <"
   "then_branch = t () => (p) { p = Identity (x) }, else_branch = e () => (q) { q = Squeeze (x) }>"
   " b = Relu (a) y = Conv (b, w) }",
   PSPLIT_UNSUPPORTED,
   "the rank of its input 0 is not known: If \"choice\" leaves it open",
   PSPLIT_HINT_INLINE_ASSUMED,
   {"choice"}},
  {"(float[2,6] x) => (y) <int8[6,6] q = raw {0 * 36}, float s = {1}> {"
   " w = DequantizeLinear (q, s) y = MatMul (x, w) }",
   PSPLIT_USAGE,
   "the model's weights are quantised; train the model as it was",
   PSPLIT_HINT_NONE,
   {0}},
};

static void of_bodies(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    psplit_diag diag = {0};
    psplit_model *model = opened_text(bodies[i].model);
    psplit_gradient *gradient = NULL;
    const psplit_training_options options = {.loss = "mse:"};
    const psplit_code code = psplit_gradient_create(model, &options, NULL, &diag, &gradient);
    bool right = code == bodies[i].code && strstr(diag.message, bodies[i].message) &&
                 diag.hint == bodies[i].hint;
    for (uint32_t a = 0; a < 2 && bodies[i].arguments[a]; a++)
      right &= strcmp(psplit_hint_argument(&diag, a), bodies[i].arguments[a]) == 0;
    if (!right)
      fail_msg("%s: %s, %s, hint %d", bodies[i].model, psplit_code_name(code), diag.message,
               (int)diag.hint);
    psplit_gradient_destroy(gradient);
    psplit_model_close(model);
  }
}

/* Every operator that has a rule, without one of the inputs that it needs. */
static void of_omitted_inputs(void **state) {
  (void)state;
  uint32_t n_rules, n_refused = 0;
  const psplit_i_gradient_rule *rules = psplit_i_gradient_rules(&n_rules);
  for (uint32_t r = 0; r < n_rules; r++) {
    /* Behind the last one that is given, an omitted one is none. */
    const bool all = rules[r].needs == PSPLIT_ALL;
    const uint32_t needs = all ? 3 : rules[r].needs;
    for (uint32_t omitted = 0; omitted + all < needs && needs > 1; omitted++) {
      psplit_i_text text = {0};
      psplit_diag diag = {0};
      psplit_i_text_addf(&text,
                         FUSED
                         "(float[1,1,1,1] x) => (y) <float[1] w = {0}> {"
                         " p = Mul (x, w) y = %s%s%s (",
                         rules[r].domain, *rules[r].domain ? "." : "", rules[r].op_type);
      for (uint32_t i = 0; i < needs; i++)
        psplit_i_text_addf(&text, "%s%s", i ? ", " : "", i == omitted ? "" : "p");
      psplit_i_text_puts(&text, ") }");
      psplit_model *model = opened_text(text.bytes);
      const psplit_code code = differentiate(model, "y", true, &diag);
      if (code == PSPLIT_OK) fail_msg("%s: it was differentiated", text.bytes);
      n_refused += strstr(diag.message, "is omitted") != NULL;
      psplit_model_close(model);
      psplit_i_text_fini(&text);
    }
  }
  assert_true(n_refused > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(of_losses),     cmocka_unit_test(of_values),
    cmocka_unit_test(of_optimizers), cmocka_unit_test(of_operators),
    cmocka_unit_test(of_bodies),     cmocka_unit_test(of_omitted_inputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
