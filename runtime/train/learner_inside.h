/* Internals shared by the files of learner.h. */
#ifndef PSPLIT_RUNTIME_TRAIN_LEARNER_INSIDE_H
#define PSPLIT_RUNTIME_TRAIN_LEARNER_INSIDE_H

#include "learner.h"
#include "name_list.h"

/* The manifest's part on training. */
static inline const psplit_i_training_table *psplit_i_learner_table(const psplit_i_learner *l) {
  return l->pipe->manifest.training;
}

/* The manifest's row of a gradient, 0 to l->n_gradients - 1. */
static inline psplit_i_gradient_row psplit_i_learner_gradient(const psplit_i_learner *l,
                                                              uint32_t gradient) {
  const uint32_t w = l->gradient_weight[gradient];
  return psplit_i_gradient_of(&psplit_i_learner_table(l)->weights[w],
                              gradient - l->first_gradient[w]);
}

/* The trained weight of that name, or PSPLIT_NONE. */
uint32_t psplit_i_learner_find_weight(const psplit_i_learner *l, const char *name);

/* Fails: the manifest has no source for input `name` of the file. INVALID. */
PSPLIT_MUST_USE psplit_code psplit_i_nothing_gives(const psplit_i_learner *l, const char *file,
                                                   const char *name, psplit_diag *diag);

/* Opens all files of the stage but that of the first weights, and finds where their inputs come
 * from. l->wire_base and l->first_gradient are set. Errors: INVALID (the manifest contradicts
 * itself or the files), those of psplit_i_session_open. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_open_files(psplit_i_learner *l, psplit_diag *diag);

/* Runs the file that gives the first weights, once, and closes it; where there is none, nothing.
 * Errors: those of psplit_i_session_open and psplit_i_session_run, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_learner_first_weights(psplit_i_learner *l, psplit_diag *diag);

#endif
