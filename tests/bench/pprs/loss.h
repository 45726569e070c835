/* Losses of the laboratory: what is minimised, with its best value where that is known. */
#ifndef PSPLIT_TESTS_PPRS_LOSS_H
#define PSPLIT_TESTS_PPRS_LOSS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lab_loss lab_loss;

/* The value at x[n]; gradient[n], a subgradient there, where it is asked for (else NULL). */
typedef double (*lab_value)(const lab_loss *loss, const double *x, double *gradient);

struct lab_loss {
  const char *name;
  int n;         /* weights */
  int m;         /* samples of a gradient: micro-batches of it */
  int depth;     /* layers of a net; 0: it is none */
  double radius; /* of the ball that the weights stay in; 0: anywhere */
  double least;  /* the smallest value */
  double length; /* about the way from the start to there: the unit of steps and perturbations */
  double slope;  /* about the length of a gradient: steps are in units of length / slope */
  double *start; /* [n] */
  double *data, *target;
  lab_value value;
};

/* max       largest of n coordinates on the unit ball, from 0: the hardest loss for methods that go
 *           from gradient to gradient, each of which tells of one coordinate
 * max-start the same from a random point at distance 1/2
 * chain     Nesterov's hardest smooth loss, a chain of quadratics
 * l1        mean |a x - b| of 2 n samples: well conditioned
 * hinge     mean hinge loss of 10 samples that can be told apart
 * relu      mean absolute error of 10 samples, of a net of `depth` layers
 * False: there is none of this name. `seed` decides data and start. */
bool lab_loss_make(const char *name, int n, int depth, uint64_t seed, lab_loss *out);
void lab_loss_free(lab_loss *loss);

/* Zeroed memory for n numbers; ends the program where there is none. */
double *lab_numbers(int n);

#endif
