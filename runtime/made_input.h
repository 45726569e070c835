/* Generated inputs: within a given range, or, for masks, lengths and positions recognised by
 * exporters' names, consistent with the other inputs. */
#ifndef PSPLIT_RUNTIME_MADE_INPUT_H
#define PSPLIT_RUNTIME_MADE_INPUT_H

#include <psplit/run.h>

#include "tensor.h"

/* What the other inputs say of a sequence; 0: nothing. */
typedef struct psplit_i_sequence_sizes {
  int64_t past;   /* positions that caches hold */
  int64_t tokens; /* positions that are new */
} psplit_i_sequence_sizes;

/* Looks at an input of the model, whose dims (-1: not known) may tell: the caches past*, and for
 * tokens input_ids, else the first other input with two dimensions or more. In any order but for
 * that; starts from {0}. */
void psplit_i_sequence_sizes_look(psplit_i_sequence_sizes *sizes, const char *name,
                                  const int64_t *dims, size_t n_dims);

typedef enum psplit_i_made_how {
  PSPLIT_I_MADE_RANDOM,    /* psplit_i_tensor_fill_random */
  PSPLIT_I_MADE_RANGE,     /* low..high */
  PSPLIT_I_MADE_POSITIONS, /* low, low + 1, ... along the last axis */
} psplit_i_made_how;

typedef struct psplit_i_made {
  psplit_i_made_how how;
  double low, high;
  bool asked; /* by name: an error where the type does not hold it; else any numbers will do */
} psplit_i_made;

/* How `random` makes an input of that name: docs/running.md has the rules. */
psplit_i_made psplit_i_made_by_name(const char *name, const psplit_i_sequence_sizes *sizes);

/* Fills a tensor with numbers that depend on the seed, the name and the micro-batch alone. Errors:
 * USAGE (its type does not hold what was asked), and those of psplit_i_tensor_look. */
PSPLIT_MUST_USE psplit_code psplit_i_made_fill(const psplit_i_made *made, psplit_i_tensor *tensor,
                                               uint64_t seed, const char *name,
                                               uint32_t micro_batch, psplit_diag *diag);

/* Random whole numbers, of types of more than 8 bits, are below this. */
enum { PSPLIT_I_MADE_BELOW = 100 };
bool psplit_i_made_is_small(int32_t data_type); /* whether they are */

/* By `seed`, `name` and `micro_batch` alone. Floats are uniform in [-1, 1), those of 16 bits in
 * +-[0.125, 1), of 8 bits finite; integers 0..99, of 8 bits all there are; strings "s0".."s99".
 * Errors: PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_fill_random(psplit_i_tensor *tensor, uint64_t seed,
                                                        const char *name, uint32_t micro_batch,
                                                        psplit_diag *diag);

#endif
