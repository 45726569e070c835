/* Arithmetic on single elements of small tensors: integers as expressions, floats as reals and
 * exact quotients. What cannot be told is a fresh integer, or PSPLIT_NONE for floats. */
#ifndef PSPLIT_SHAPES_INFER_FOLD_H
#define PSPLIT_SHAPES_INFER_FOLD_H

#include "infer.h"

typedef enum psplit_i_folding {
  PSPLIT_FOLD_ADD,
  PSPLIT_FOLD_SUB,
  PSPLIT_FOLD_MUL,
  PSPLIT_FOLD_DIV,
  PSPLIT_FOLD_MOD,
  PSPLIT_FOLD_FMOD,
  PSPLIT_FOLD_POW,
  PSPLIT_FOLD_MIN,
  PSPLIT_FOLD_MAX,
  PSPLIT_FOLD_EQUAL,
  PSPLIT_FOLD_LESS,
  PSPLIT_FOLD_GREATER,
  PSPLIT_FOLD_LESS_EQUAL,
  PSPLIT_FOLD_GREATER_EQUAL,
  PSPLIT_FOLD_AND,
  PSPLIT_FOLD_OR,
  PSPLIT_FOLD_XOR
} psplit_i_folding;

/* One element of a result of type `elem` from operands of type `from`. */
psplit_dim psplit_i_fold(psplit_i_site *at, psplit_i_folding op, int32_t from, int32_t elem,
                         psplit_dim a, psplit_dim b);

/* An integer result of type `elem`: itself, or an unknown integer where it cannot be told. */
psplit_dim psplit_i_fold_settle(psplit_i_site *at, int32_t elem, psplit_dim result);

/* A float of type `elem`, rounded as the type is. */
psplit_dim psplit_i_fold_real(psplit_i_site *at, int32_t elem, double value);

#endif
