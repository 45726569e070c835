/* Differentiating, and lowering Gradient nodes, when memory runs out:  test_oom_gradient MODEL...
 * The i-th allocation fails, for every i until none is reached: the call says NOMEM, or what it
 * says otherwise, or UNSUPPORTED, as contents that could not be read are merely unknown to shape
 * inference; and it leaves no memory behind. */
#include <psplit/gradient.h>
#include <stdio.h>

#include "failing.h"
#include "open.h"

static psplit_code differentiate(const psplit_model *model, psplit_diag *diag) {
  static const char *const all[] = {"*"};
  const psplit_training_options options = {.loss = "mse:", .train = all, .n_train = 1};
  psplit_gradient *gradient = NULL;
  psplit_code code = psplit_gradient_create(model, &options, NULL, diag, &gradient);
  if (code == PSPLIT_OK)
    code = psplit_gradient_write_update(gradient, "adamw", "/dev/null/x", diag);
  if (code == PSPLIT_IO) { /* as it should */
    *diag = (psplit_diag){0};
    code = psplit_gradient_write_training_info(gradient, "adamw", "/dev/null/x", diag);
  }
  psplit_gradient_destroy(gradient);
  return code;
}

static psplit_code lower(const psplit_model *model, psplit_diag *diag) {
  uint32_t n;
  return psplit_lower_gradients(model, "/dev/null/x", diag, &n);
}

typedef psplit_code (*attempt)(const psplit_model *model, psplit_diag *diag);

/* One of `step` fails. Number of allocations that it takes, about; -1: something went wrong. */
static long try_all(const psplit_model *model, attempt what, psplit_code usual, int step) {
  for (long i = 0; i < 100000; i += step) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = what(model, &diag);
    const bool reached = stop_failing();
    const bool known = code == usual || code == PSPLIT_NOMEM || code == PSPLIT_UNSUPPORTED;
    if (!known || (code != usual && !reached) || live_blocks() != live_before) {
      fprintf(stderr, "allocation %ld: %s (%s), %ld blocks stay\n", i, psplit_code_name(code),
              diag.message, live_blocks() - live_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

static bool try_both(const char *name, const psplit_model *model, int step) {
  static const attempt attempts[] = {differentiate, lower};
  for (int k = 0; k < 2; k++) {
    psplit_diag usual = {0};
    const psplit_code code = attempts[k](model, &usual);
    const long n = try_all(model, attempts[k], code, step);
    if (n < 2) return false; /* the wrapping does not work, or try_all said why */
    printf("%s: %ld allocations, %s\n", name, n, usual.message);
  }
  return true;
}

/* Operators whose rules make many nodes, and so many allocations that are alike. */
static const char *const OPERATORS[][2] = {
  {"constants",
   "(float[2,4] x) => (float[2,4] y) {"
   " w = Constant <value = float[4,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}> ()"
   " v = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> ()"
   " p = MatMul (x, w) y = Add (p, v) }"},
  {"recurrent",
   "(float[2,1,3] x) => (float[1,1,4] y) <float[2,16,3] w = raw {0 * 96},"
   " float[2,16,4] r = raw {0 * 128}, float[1,12,8] w3 = raw {0 * 96},"
   " float[1,12,4] r3 = raw {0 * 48}, int64[3] shape = {2, 1, 8}> {"
   " l = LSTM <hidden_size = 4, direction = \"bidirectional\"> (x, w, r)"
   " t = Transpose <perm = [0, 2, 1, 3]> (l) f = Reshape (t, shape)"
   " all, y = GRU <hidden_size = 4> (f, w3, r3) }"},
  {"images",
   "(float[2,4,6,6] x) => (float[2,4,5,5] y) <float[4,4,3,3] w = raw {0 * 144},"
   " float[4] s = raw {0 * 4}, float[4,4,2,2] v = raw {0 * 64}, float[4] up = {1, 1, 2, 2}> {"
   " c = Conv <pads = [1, 1, 1, 1]> (x, w) n = InstanceNormalization (c, s, s)"
   " m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (n) l = LRN <size = 3> (m)"
   " a = AveragePool <kernel_shape = [2, 2]> (l) u = Resize <mode = \"linear\"> (a, , up)"
   " y = ConvTranspose <group = 1> (u, v) }"},
  {"tokens",
   "(float[2,3,4] x) => (float[2,3,4] y) <float[4] w = raw {0 * 4}, float[4,4] q = raw {0 * 16},"
   " int64[1] one = {1}, int64[1] two = {3}, int64[1] last = {-1},"
   " int64[6] pads = {0, 1, 0, 0, 0, 0}> {"
   " n = LayerNormalization (x, w, w) a = MatMul (n, q) b = Softmax (a)"
   " c = Slice (b, one, two, one) d = Pad (c, pads) e = Einsum <equation = \"abc,cd->abd\"> (d, q)"
   " f = LogSoftmax (e) g = ReduceMax <axes = [2]> (f) h = Sub (f, g)"
   " i = ReduceLogSumExp <axes = [-1], keepdims = 1> (h) j = Div (h, i)"
   " y = Mul (j, x) }"},
  {"fused",
   "<ir_version: 8, opset_import: [\"\": 18, \"com.microsoft\": 1]>"
   "(float[2,3,4] x) => (float[2,3,4] y) <float[4] w = raw {0 * 4}, float[4,12] q = raw {0 * 48},"
   " float[4,4] m = raw {0 * 16}, int32[2] n = {2, 3}> {"
   " a = com.microsoft.SkipLayerNormalization (x, x, w, w) b = com.microsoft.BiasGelu (a, w)"
   " c = com.microsoft.Attention <num_heads = 2> (b, q, , n)"
   " y = com.microsoft.FusedMatMul <transB = 1, alpha = 0.5> (c, m) }"},
};

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    psplit_diag diag = {0};
    psplit_model *model;
    if (psplit_model_open(argv[i], NULL, &diag, &model) != PSPLIT_OK) {
      fprintf(stderr, "%s\n", diag.message);
      return 1;
    }
    if (!try_both(argv[i], model, 1)) return 1;
    psplit_model_close(model);
  }
  for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++) {
    psplit_model *model = opened_text(OPERATORS[i][1]);
    if (!try_both(OPERATORS[i][0], model, 3)) return 1;
    psplit_model_close(model);
  }
  return argc < 2;
}
