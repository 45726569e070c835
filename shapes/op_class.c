/* Names of operator classes. */
#include <psplit/work.h>

static const char *const CLASS_NAMES[PSPLIT_N_CLASSES] = {
  "other",     "constant", "view",      "shape", "elementwise", "conv",
  "depthwise", "matmul",   "attention", "rnn",   "norm",        "pool",
  "reduce",    "move",     "resize",    "quant", "search",      "control"};

const char *psplit_op_class_name(psplit_op_class op_class) {
  return (unsigned)op_class < PSPLIT_N_CLASSES ? CLASS_NAMES[op_class] : NULL;
}
