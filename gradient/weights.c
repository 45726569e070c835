/* The choice of trainable weights. */
#include "weights.h"

#include <string.h>

#include "backward.h"

/* Where operators have parameters: bit i for input i. */
static const struct place {
  const char *op_type;
  uint32_t inputs;
} places[] = {
  {"BatchNormalization", 0x6},
  {"Conv", 0x6},
  {"ConvTranspose", 0x6},
  {"GRU", 0xe},
  {"Gather", 0x1},
  {"Gemm", 0x7},
  {"GroupNormalization", 0x6},
  {"InstanceNormalization", 0x6},
  {"LSTM", 0xe},
  {"LayerNormalization", 0x6},
  {"MatMul", 0x3},
  {"PRelu", 0x2},
  {"RMSNormalization", 0x2},
  {"RNN", 0xe},
  {"SimplifiedLayerNormalization", 0x2},
};

/* Operators that hand a parameter on by another shape. */
static const char *const views[] = {"Expand",    "Flatten",   "Identity", "Reshape", "Squeeze",
                                    "Transpose", "Unsqueeze", "Concat",   "Cast"};

static bool is_float(int32_t elem) {
  return elem == PSPLIT_ELEM_FLOAT || elem == PSPLIT_ELEM_DOUBLE || elem == PSPLIT_ELEM_FLOAT16 ||
         elem == PSPLIT_ELEM_BFLOAT16;
}

static bool reads(const psplit_i_node *node, uint32_t input, uint32_t value) {
  return input < node->n_inputs && node->inputs[input] == value;
}

/* An exporter's constant rather than a parameter: names of parameters come from the program, those
 * of folded constants from the exporter. */
static bool named_by_exporter(const char *name) {
  return strncmp(name, "onnx::", 6) == 0 || strncmp(name, "_v_", 3) == 0;
}

/* Whether `node` has `value` where a parameter of rank `rank`, called `name`, would be. */
static bool is_place(const psplit_i_node *node, uint32_t value, int32_t rank, const char *name) {
  if (*node->domain) return false;
  for (size_t p = 0; p < sizeof places / sizeof *places; p++)
    for (uint32_t i = 0; i < 32 && strcmp(places[p].op_type, node->op_type) == 0; i++)
      if (places[p].inputs >> i & 1 && reads(node, i, value)) return true;
  /* A bias, the scale of a norm in parts, an embedding of positions; but masks and tables of
   * angles are operands of the same operators. */
  const bool operand = psplit_i_node_is(node, "Add") || psplit_i_node_is(node, "Mul");
  return operand && (rank == 1 || !named_by_exporter(name));
}

/* Whether the initializer comes to a parameter's place, through at most `depth` views. */
static bool comes_to_place(const psplit_i_graph *graph, uint32_t value, int32_t rank,
                           const char *name, int depth) {
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    const psplit_i_node *node = &graph->nodes[graph->consumers[c]];
    if (is_place(node, value, rank, name)) return true;
    if (*node->domain || depth == 0 || node->n_outputs == 0 || node->outputs[0] == PSPLIT_NONE)
      continue;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
      if (strcmp(views[i], node->op_type) != 0) continue;
      if (strcmp(views[i], "Concat") == 0) {
        /* A token that is put before a sequence. */
        if (rank > 1 && !named_by_exporter(name)) return true;
      } else if (reads(node, 0, value) &&
                 comes_to_place(graph, node->outputs[0], rank, name, depth - 1)) {
        return true;
      }
    }
  }
  return false;
}

static bool matches(const char *const *patterns, size_t n, const char *name, bool *used) {
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    if (!psplit_i_glob_match(patterns[i], name)) continue;
    used[i] = true;
    any = true;
  }
  return any;
}

static psplit_code all_used(const char *option, const char *const *patterns, size_t n,
                            const bool *used, psplit_diag *diag) {
  for (size_t i = 0; i < n; i++)
    if (!used[i])
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "--%s \"%s\" matches no floating-point initializer of the model", option,
                           patterns[i]);
  return PSPLIT_OK;
}

enum { MAX_VIEWS = 8 };

psplit_code psplit_i_weights_choose(const psplit_i_shapes *shapes,
                                    const psplit_training_options *options, psplit_diag *diag,
                                    bool *out_trained) {
  psplit_code code;
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  bool *train_used = PSPLIT_NEW(&scratch, bool, options->n_train);
  bool *freeze_used = PSPLIT_NEW(&scratch, bool, options->n_freeze);
  if (!train_used || !freeze_used) PSPLIT_TRY(psplit_i_nomem(diag));
  for (uint32_t i = 0; i < graph->n_initializers; i++) {
    const uint32_t v = graph->initializers[i];
    const psplit_i_tensor tensor = psplit_i_graph_initializer(graph, i);
    const char *name = graph->values[v].name;
    if (!is_float(tensor.data_type)) continue;
    const bool frozen = matches(options->freeze, options->n_freeze, name, freeze_used);
    bool trained;
    if (options->n_train)
      trained = matches(options->train, options->n_train, name, train_used);
    else
      trained =
        tensor.n_dims >= 1 && comes_to_place(graph, v, (int32_t)tensor.n_dims, name, MAX_VIEWS);
    out_trained[v] = trained && !frozen;
  }
  PSPLIT_TRY(all_used("train", options->train, options->n_train, train_used, diag));
  PSPLIT_TRY(all_used("freeze", options->freeze, options->n_freeze, freeze_used, diag));
out:
  psplit_i_arena_fini(&scratch);
  return code;
}
