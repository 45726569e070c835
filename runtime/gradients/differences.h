/* Compares a derivative with values of a function that are subject to rounding: decides whether the
 * difference from central differences is an error, or due to rounding, curvature and kinks. */
#ifndef PSPLIT_RUNTIME_DIFFERENCES_H
#define PSPLIT_RUNTIME_DIFFERENCES_H

#include "base.h"

/* f at x + h d, as nearly as x + h d can be stored, and how much f should have changed there since
 * x by the derivative that is in question: its product with the move as stored. */
typedef psplit_code (*psplit_i_move)(void *user, double h, psplit_diag *diag, double *out_value,
                                     double *out_change);

/* What is in question, along d. */
typedef struct psplit_i_question {
  double value;       /* f(x) */
  double largest_h;   /* steps begin here and halve */
  double epsilon;     /* relative spacing of the numbers that x is stored in */
  double least_noise; /* of f, where no rounding is met: what storing it does */
  double scale;       /* of the derivative, >= 0; what is not finite differs */
  double enough;      /* an error of so much is none: no smaller steps are taken to tell it */
} psplit_i_question;

typedef enum psplit_i_answer {
  PSPLIT_I_ANSWER_HOLDS, /* the error is at most `bound`, which is below a tenth of the scale */
  PSPLIT_I_ANSWER_DIFFERS,
  PSPLIT_I_ANSWER_NONE
} psplit_i_answer;

typedef struct psplit_i_differences {
  psplit_i_answer answer;
  double gap;        /* derivative by differences, less the one in question: the best guess */
  double bound;      /* of its size */
  uint32_t n_values; /* of f that were taken */
} psplit_i_differences;

/* Errors: those of `move`. */
PSPLIT_MUST_USE psplit_code psplit_i_differences_find(psplit_i_move move, void *user,
                                                      const psplit_i_question *question,
                                                      psplit_diag *diag, psplit_i_differences *out);

#endif
