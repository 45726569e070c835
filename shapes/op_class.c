/* Names of operator classes. */
#include <psplit/work.h>

static const char *const class_names[PSPLIT_N_CLASSES] = {
  "other",     "constant", "view",      "shape", "elementwise", "conv",
  "depthwise", "matmul",   "attention", "rnn",   "norm",        "pool",
  "reduce",    "move",     "resize",    "quant", "search",      "control"};

const char *psplit_op_class_name(psplit_op_class op_class) {
  return (unsigned)op_class < PSPLIT_N_CLASSES ? class_names[op_class] : NULL;
}
