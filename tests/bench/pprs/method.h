/* Methods of the laboratory, step by step; what a step costs is for the caller to say. */
#ifndef PSPLIT_TESTS_PPRS_METHOD_H
#define PSPLIT_TESTS_PPRS_METHOD_H

#include "loss.h"

typedef enum lab_method {
  LAB_SUBGRADIENT,     /* a gradient after the other */
  LAB_NESTEROV,        /* accelerated */
  LAB_PPRS,            /* accelerated, on the mean of gradients at perturbed weights */
  LAB_DELAYED,         /* PipeDream: a gradient of older weights, without waiting for newer ones */
  LAB_DELAYED_NESTEROV /* the same with momentum and a look ahead */
} lab_method;
enum { LAB_N_METHODS = 5 };

/* Each method has two forms, between which it may choose like between step sizes:
 *   subgradient, delayed   a constant step; one that falls as 1 / sqrt(t)
 *   Nesterov, PPRS         primal, constant perturbations; dual averaging, perturbations that fall
 *                          with the momentum's weights (Duchi, Bartlett, Wainwright, "Randomized
 *                          smoothing for stochastic optimization", 2012, section 2.2)
 *   delayed Nesterov       momentum 0.9; momentum 0.99 */
typedef struct lab_setting {
  lab_method by;
  int form;            /* 0 or 1 */
  double step;         /* in units of length / slope */
  double gamma;        /* size of perturbations, in units of length */
  int n_perturbations; /* of a step; 1 for all but PPRS */
  int delay;           /* steps; 0 for methods that wait */
} lab_setting;

/* Goes on until the value of the best iterate, or of their mean, is at most each of goals[n_goals],
 * which descend, or most_steps are done. out_steps[g]: steps that took, 0 where it is not there.
 * Returns the least value met. A function of loss, setting and seed alone. */
double lab_run(const lab_loss *loss, const lab_setting *setting, uint64_t seed, const double *goals,
               int n_goals, uint64_t most_steps, uint64_t *out_steps);

#endif
