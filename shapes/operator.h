/* Facts about operators that hold wherever a node stands: the rows of rules.def, found by name.
 *
 * Adding a fact: a flag here, its name in operator.c, and the flag in the rows that have it. */
#ifndef PSPLIT_SHAPES_OPERATOR_H
#define PSPLIT_SHAPES_OPERATOR_H

#include <psplit/work.h>

#include "graph.h"

typedef enum psplit_i_op_flag {
  PSPLIT_I_OP_COMMUTATIVE = 1 << 0, /* its two operands may stand in either order */
  PSPLIT_I_OP_READS_PART = 1 << 1,  /* reads of input 0 only the part that it hands on */
  PSPLIT_I_OP_RANDOM = 1 << 2,      /* its results are no function of its inputs */
  /* What a runtime's kernel does behind the operator that it is named for: a sum, an activation. */
  PSPLIT_I_OP_KERNEL_TAIL = 1 << 3,
  PSPLIT_I_OP_RUNS_OTHERS = 1 << 4, /* its time in a profile holds that of the kernels it runs */
  PSPLIT_I_OP_LAYOUT = 1 << 5,      /* a kernel that brings a tensor into another layout or place */
  PSPLIT_I_OP_FOR_NEXT = 1 << 6,    /* such a one that serves the kernel that runs next */
  /* Has a kernel that works on blocks of channels, whatever it reads; where all that it reads is in
   * blocks. */
  PSPLIT_I_OP_BLOCKED = 1 << 7,
  PSPLIT_I_OP_KEEPS_BLOCKS = 1 << 8,
  PSPLIT_I_OP_FOLDS =
    1 << 9, /* behind a convolution, with constants: becomes part of its weights */
  PSPLIT_I_OP_FIXED = 1 << 10 /* tells sizes: where the file fixes these, runtimes fold it */
} psplit_i_op_flag;

/* Number of an operator's first row in rules.def, PSPLIT_NONE for one that has none. Rows of one
 * operator, for ranges of opsets, follow each other. O(1). */
uint32_t psplit_i_operator_row(const char *domain, const char *op_type);

/* Class of an operator by name, without shapes; OTHER for one without a row. O(1). */
psplit_op_class psplit_i_op_class(const char *domain, const char *op_type);
/* Products of matrices, and what is made of them: devices may have units of their own for these. */
static inline bool psplit_i_is_product(psplit_op_class op_class) {
  return op_class == PSPLIT_CLASS_CONV || op_class == PSPLIT_CLASS_DEPTHWISE ||
         op_class == PSPLIT_CLASS_MATMUL || op_class == PSPLIT_CLASS_ATTENTION ||
         op_class == PSPLIT_CLASS_RNN;
}
/* Whether its results are dear to compute again, as "recompute": "heavy" means it; so are those of
 * one without a row. O(1). */
bool psplit_i_op_is_heavy(const char *domain, const char *op_type);

/* Whether a node's operator has one of `flags`; false for one without a row, and for calls of
 * functions of the model. O(1). */
bool psplit_i_node_has(const psplit_i_node *node, unsigned flags);

/* The same of a kernel in a profile, which tells no domain. */
bool psplit_i_kernel_has(const char *op_type, unsigned flags);

#endif
