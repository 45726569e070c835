/* What stands in for ONNX Runtime where tensors are read, written and filled, and nothing is run:
 * it holds their values. */
#ifndef PSPLIT_TESTS_HELD_VALUES_H
#define PSPLIT_TESTS_HELD_VALUES_H

#include "ort.h"

typedef struct held_text {
  char *bytes;
  size_t n;
} held_text;

struct OrtValue {
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
  int type;
  uint64_t n_elements;
  void *data;         /* of numbers */
  held_text *strings; /* [n_elements] */
  OrtValue **parts;   /* [n_elements] of a sequence, which is nothing else */
  size_t n_others;    /* that hold it besides */
};

/* More than a tensor may have ends the program. */
extern uint64_t most_held_bytes, most_held_elements;
extern const psplit_i_ort HELD_VALUES;

bool same_values(const psplit_i_tensor *a, const psplit_i_tensor *b);

#endif
