/* The proof of what belongs to training, shared by the files of it: one a kind of file. */
#ifndef PSPLIT_VERIFY_TRAINING_INSIDE_H
#define PSPLIT_VERIFY_TRAINING_INSIDE_H

#include <string.h>

#include "declared.h"

/* The model differentiated again, and what its values are called. */
typedef struct psplit_i_training_proof {
  psplit_i_proof *p; /* of the forward stages: its model is the gradient's, with the loss */
  const psplit_i_training_table *table;
  const char *directory;
  const psplit_verify_options *options;
  psplit_gradient *gradient;
  psplit_model *backward;
  psplit_i_intern names;
  psplit_i_table sets;
  uint8_t *trained, *first_seen; /* trained: as training has it */
  uint32_t
    *arises; /* [n_trainables] of a weight: the first stage that gives some of its gradient */
  uint32_t *row_of;  /* [n_trainables] of a weight: its row in the table */
  const char *twice; /* kept, or computed again */
  psplit_i_training_ports training;
} psplit_i_training_proof;

/* What a name stands for in a set of the stage, or PSPLIT_NONE. */
static inline uint32_t psplit_i_named(const psplit_i_training_proof *c, psplit_i_set set,
                                      const char *name, uint32_t stage) {
  return psplit_i_training_ports_find(&c->training, set, name, stage);
}

static inline bool psplit_i_same(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* Each as psplit_verify fails, where the files of a stage are not what they should be. */

/* That all backward files are a split of the backward pass. */
PSPLIT_MUST_USE psplit_code psplit_i_prove_backward(psplit_i_training_proof *c);
/* That inputs of a backward pass, or of what computes again, come from where they should. */
PSPLIT_MUST_USE psplit_code psplit_i_check_feeds(const psplit_i_training_proof *c, uint32_t s,
                                                 const psplit_i_part *part);
/* Gradients of weights go to the update, those of inputs to the caller, and nothing else does. */
PSPLIT_MUST_USE psplit_code psplit_i_check_goals(const psplit_i_training_proof *c,
                                                 const psplit_i_part *backward);
PSPLIT_MUST_USE psplit_code psplit_i_check_again(psplit_i_training_proof *c, uint32_t s);
PSPLIT_MUST_USE psplit_code psplit_i_check_update(psplit_i_training_proof *c, uint32_t s);
PSPLIT_MUST_USE psplit_code psplit_i_check_first_weights(psplit_i_training_proof *c, uint32_t s);

#endif
