/* Tensors in place of ONNX Runtime's: programs that link made_tensors_dep have calls about tensors
 * and files of inputs sent here. */
#ifndef PSPLIT_TESTS_MADE_TENSORS_H
#define PSPLIT_TESTS_MADE_TENSORS_H

#include "feed.h"
#include "tensor.h"

/* A tensor with these numbers; one without numbers holds zeros. */
psplit_i_tensor *made_tensor(int32_t data_type, const int64_t *dims, size_t n_dims,
                             const double *numbers);

typedef struct made_tensors {
  bool look_fails, create_fails, file_fails; /* PSPLIT_PLUGIN; PSPLIT_IO */
  int n_live;
  char read[128];     /* the file that was read last */
  uint32_t given_for; /* the sequence that an input was taken for last */
  bool needs_prompts; /* an input was opened that prompts have to give */
} made_tensors;
extern made_tensors made;

#endif
