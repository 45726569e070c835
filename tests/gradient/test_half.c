/* What sums in half precision: its sums and squares leave the range of that, so all between the
 * casts of a backward pass is float32. Runtimes without kernels for half precision compute in
 * float32 either way, so that only the types tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/gradient.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gradient.h"
#include "open.h"

#define HALF(opset, x, others, op)                                                     \
  "<ir_version: 8, opset_import: [\"\": " #opset ", \"com.microsoft\": 1]>(float16[" x \
  "] x" others                                                                         \
  ") => (f)"                                                                           \
  "<float16[4] w = raw {0 * 4}, float16[4] w2 = raw {0 * 4}, float16[4] m"             \
  " = raw {0 * 4}, float16[4] v = raw {0 * 4}> { y" op " f = Cast <to = 1> (y) }"

static const char *const models[] = {
  HALF(17, "2,3,4", "", " = LayerNormalization (x, w, w2)"),
  HALF(23, "2,3,4", "", " = RMSNormalization (x, w)"),
  HALF(18, "2,4,5", "", " = InstanceNormalization (x, w, w2)"),
  HALF(21, "2,4,5", "", " = GroupNormalization <num_groups = 2> (x, w, w2)"),
  HALF(18, "2,4,5", "", " = BatchNormalization (x, w, w2, m, v)"),
  HALF(18, "2,4,5", "", ", m2, v2 = BatchNormalization <training_mode = 1> (x, w, w2, m, v)"),
  HALF(18, "2,3,4", "", " = LpNormalization (x)"),
  HALF(18, "2,3,4", "", " = LpNormalization <p = 1> (x)"),
  HALF(18, "2,4,5", "", " = LRN <size = 3> (x)"),
  HALF(18, "2,4,5", "", " = MeanVarianceNormalization <axes = [0, 2]> (x)"),
  HALF(18, "2,3,4", ", float16[2,3,4] s", " = com.microsoft.SkipLayerNormalization (x, s, w, w2)"),
  HALF(18, "2,3,4", ", float16[2,3,4] s",
       " = com.microsoft.SkipSimplifiedLayerNormalization (x, s, w)"),
  HALF(18, "2,3,5,4", "", " = com.microsoft.GroupNorm <groups = 2, activation = 1> (x, w, w2)"),
  HALF(18, "2,3,5,4", ", float16[2,3,5,4] s",
       " = com.microsoft.SkipGroupNorm <groups = 2, activation = 0> (x, w, w2, s)"),
  HALF(18, "5,4", ", int32[2,3] ids, float16[3,4] p",
       ", lengths = com.microsoft.EmbedLayerNormalization (ids, , x, p, , w, w2)"),
  HALF(18, "2,3,4", ", float16[2,5,4] k",
       " = com.microsoft.MultiHeadAttention <num_heads = 2> (x, k, k)"),
  HALF(23, "2,2,3,4", ", float16[2,2,5,4] k, float16[2,2,5,4] l", " = Attention (x, k, l)"),
  HALF(23, "2,3,8", ", float16[6,2] c, float16[6,2] s, int64[2,3] p",
       " = RotaryEmbedding <num_heads = 2> (x, c, s, p)"),
  HALF(18, "2,3,8", ", float16[6,2] c, float16[6,2] s, int64[2,3] p",
       " = com.microsoft.RotaryEmbedding <num_heads = 2> (x, p, c, s)"),
  HALF(18, "2,3,4", "", " = ReduceMean <keepdims = 0> (x)"),
  HALF(18, "2,3,4", "", " = ReduceMax <keepdims = 0> (x)"),
  HALF(18, "2,3,4,4", "", " = GlobalAveragePool (x)"),
  HALF(18, "2,3,4,4", "", " = GlobalMaxPool (x)"),
  HALF(18, "2,3", ", int64[2] t", " = SoftmaxCrossEntropyLoss (x, t)"),
  HALF(18, "5,4", ", int64[3] t", " = Gather (x, t)"),
};

/* The backward pass, its loss by the float32 output. */
static psplit_model *backward_of(const char *text) {
  static const char *const weights[] = {"w*"}, *const inputs[] = {"x"};
  const psplit_training_options options = {
    .loss = "mse:", .train = weights, .n_train = 1, .gradient_of = inputs, .n_gradient_of = 1};
  psplit_diag diag = {0};
  psplit_gradient *gradient = NULL;
  psplit_model *model = opened_text(text), *backward = NULL;
  char *bytes = NULL;
  size_t n = 0;
  if (psplit_gradient_create(model, &options, NULL, &diag, &gradient) != PSPLIT_OK)
    fail_msg("%s: %s", text, diag.message);
  FILE *file = open_memstream(&bytes, &n);
  assert_non_null(file);
  psplit_code code = psplit_i_gradient_put_backward(gradient, file, "backward", &diag);
  fclose(file);
  if (code == PSPLIT_OK) code = psplit_model_open_memory(bytes, n, NULL, NULL, &diag, &backward);
  if (code != PSPLIT_OK) fail_msg("%s: %s", text, diag.message);
  free(bytes);
  psplit_gradient_destroy(gradient);
  psplit_model_close(model);
  return backward;
}

static void sums_are_wide(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    psplit_diag diag = {0};
    psplit_i_shapes *shapes;
    psplit_model *backward = backward_of(models[i]);
    const psplit_i_graph *graph = psplit_i_model_graph(backward);
    if (psplit_i_shapes_create(graph, NULL, 0, NULL, &diag, &shapes) != PSPLIT_OK)
      fail_msg("%s: %s", models[i], diag.message);
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
      const psplit_i_node *node = &graph->nodes[n];
      const int32_t elem = psplit_i_shapes_type(shapes, node->outputs[0])->elem;
      assert_int_not_equal(elem, 0);
      if (elem == PSPLIT_ELEM_FLOAT16 && strcmp(node->op_type, "Cast") != 0)
        fail_msg("%s: %s \"%s\" is of half precision", models[i], node->op_type, node->name);
    }
    psplit_i_shapes_destroy(shapes);
    psplit_model_close(backward);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_wide)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
