/* The best that a method can do on a loss: over one grid of step sizes for all methods, and for
 * PPRS of sizes and numbers of perturbations besides. */
#ifndef PSPLIT_TESTS_PPRS_TUNE_H
#define PSPLIT_TESTS_PPRS_TUNE_H

#include "method.h"

enum { LAB_MOST_DEPTHS = 16, LAB_MOST_GOALS = 16 };

typedef struct lab_question {
  const lab_loss *loss;
  uint64_t seed;
  int n_depths, n_goals;
  const double *depths;  /* stages, >= 1 */
  const double *goals;   /* values to be reached, descending */
  double most_gradients; /* in the time of how many gradients an answer is looked for */
  double shift;          /* all steps of the grid are multiplied by this; 1 */
} lab_question;

typedef struct lab_best {
  double value; /* units of a stage's time to the goal, INFINITY: none got there; or least value */
  lab_setting by;
  uint64_t steps;
} lab_best;

typedef lab_best lab_answer[LAB_MOST_DEPTHS][LAB_MOST_GOALS];

/* Units of time of a step, and before the first one: a gradient over m samples takes
 * 2 (m + depth - 1), over as many perturbed weights each 2 (m k + depth - 1); methods that do not
 * wait take 2 m once the pipeline is full. */
double lab_step_time(const lab_setting *setting, const lab_loss *loss, double depth);
double lab_fill_time(const lab_setting *setting, double depth);

/* Least time to each goal at each depth. No run goes on that could not be the best any more, or
 * takes 8 times as long (twice, of a method that does not wait) as `rival`, another method's
 * answer, or NULL. */
void lab_tune_time(const lab_question *question, lab_method by, lab_answer rival, lab_answer out);
/* Least value within the time of most_gradients, for each depth; goals are not looked at. */
void lab_tune_value(const lab_question *question, lab_method by, lab_best out[LAB_MOST_DEPTHS]);

#endif
