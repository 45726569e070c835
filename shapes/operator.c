/* The way from an operator's name to its row of rules.def. */
#include "operator.h"

#include <string.h>

#include "operator_hash.h"

/* Flags as rules.def calls them. */
enum {
  COMMUTATIVE = PSPLIT_I_OP_COMMUTATIVE,
  READS_PART = PSPLIT_I_OP_READS_PART,
  RANDOM = PSPLIT_I_OP_RANDOM,
  KERNEL_TAIL = PSPLIT_I_OP_KERNEL_TAIL,
  RUNS_OTHERS = PSPLIT_I_OP_RUNS_OTHERS,
  LAYOUT = PSPLIT_I_OP_LAYOUT,
  FOR_NEXT = PSPLIT_I_OP_FOR_NEXT,
  BLOCKED = PSPLIT_I_OP_BLOCKED,
  KEEPS_BLOCKS = PSPLIT_I_OP_KEEPS_BLOCKS,
  FOLDS = PSPLIT_I_OP_FOLDS,
  FIXED = PSPLIT_I_OP_FIXED
};

typedef struct operator_row {
  const char *domain, *op_type;
  psplit_op_class op_class;
  unsigned flags;
} operator_row;

/* The flags of a row: what stands behind its flops, or nothing. */
#define FLAGS(flops, flags, ...) (flags)

static const operator_row ROWS[] = {
#define PSPLIT_RULE(domain, op, since, until, fn, op_class, ...) \
  {domain, op, PSPLIT_CLASS_##op_class, FLAGS(__VA_ARGS__, 0, 0)},
#define PSPLIT_NO_RULE(domain, op, flags) {domain, op, PSPLIT_CLASS_OTHER, flags},
#include "rules.def"
#undef PSPLIT_RULE
#undef PSPLIT_NO_RULE
};

/* INDEX_SIZE and kIndex[INDEX_SIZE], by index_operators.c: 1 + the first row of the operator whose
 * hash leads there, with linear probing; 0: none. */
#include "operator_index.inc"

uint32_t psplit_i_operator_row(const char *domain, const char *op_type) {
  for (uint32_t at = psplit_i_operator_hash(domain, op_type);; at++) {
    const uint32_t row = kIndex[at % INDEX_SIZE];
    if (!row) return PSPLIT_NONE;
    if (strcmp(ROWS[row - 1].op_type, op_type) == 0 && strcmp(ROWS[row - 1].domain, domain) == 0)
      return row - 1;
  }
}

psplit_op_class psplit_i_op_class(const char *domain, const char *op_type) {
  const uint32_t row = psplit_i_operator_row(domain, op_type);
  return row == PSPLIT_NONE ? PSPLIT_CLASS_OTHER : ROWS[row].op_class;
}

bool psplit_i_op_is_heavy(const char *domain, const char *op_type) {
  switch (psplit_i_op_class(domain, op_type)) {
    case PSPLIT_CLASS_OTHER:
    case PSPLIT_CLASS_CONV:
    case PSPLIT_CLASS_DEPTHWISE:
    case PSPLIT_CLASS_MATMUL:
    case PSPLIT_CLASS_ATTENTION:
    case PSPLIT_CLASS_RNN:
    case PSPLIT_CLASS_POOL:
    case PSPLIT_CLASS_RESIZE:
    case PSPLIT_CLASS_SEARCH:
    case PSPLIT_CLASS_CONTROL: return true;
    default: return false;
  }
}

static bool has(const char *domain, const char *op_type, unsigned flags) {
  const uint32_t row = psplit_i_operator_row(domain, op_type);
  return row != PSPLIT_NONE && ROWS[row].flags & flags;
}

bool psplit_i_node_has(const psplit_i_node *node, unsigned flags) {
  return node->function == PSPLIT_NONE && has(node->domain, node->op_type, flags);
}

bool psplit_i_kernel_has(const char *op_type, unsigned flags) {
  return has("", op_type, flags) || has("com.microsoft", op_type, flags) ||
         has("com.microsoft.nchwc", op_type, flags);
}
