/* A model that trains, split in two in scratch, to be edited as edited.h says. */
#ifndef PSPLIT_TESTS_EDITED_TRAINING_H
#define PSPLIT_TESTS_EDITED_TRAINING_H

#include <psplit/emit.h>
#include <psplit/training.h>

/* Files of each such split, in the order in which read_split is handed them; others follow. */
enum { FORWARD0, FORWARD1, MANIFEST, AGAIN0, N_SHARED };

typedef struct trained_split {
  const char *text;        /* of a model whose output "loss" is the loss */
  const char *const *pins; /* [2] */
  const char *freeze;      /* a weight that is not trained; NULL: all are */
  const char *gradient_of; /* an input; NULL: none */
  const char *inline_then; /* an If whose first branch is put in its place; NULL: none */
  psplit_boundary boundary;
} trained_split;

/* Writes model.onnx and the stages in "out"; `model` of edited.h is the model then. */
void split_training(const trained_split *split, const psplit_training_form *form);

#endif
