/* Adam. Source: Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015. */
#ifndef PSPLIT_POLICY_ADAM_H
#define PSPLIT_POLICY_ADAM_H

#include <psplit/base.h>

#include "network.h"

typedef struct psplit_i_adam {
  uint64_t n_steps;
  psplit_i_policy_network mean, square;
} psplit_i_adam;

/* A step against `gradient`, which is scaled down to a norm of at most 1 before. Errors, without a
 * message: INVALID, and nothing moves, where it is not finite. */
PSPLIT_MUST_USE psplit_code psplit_i_adam_step(psplit_i_adam *adam, double rate,
                                               psplit_i_policy_network *gradient,
                                               psplit_i_policy_network *network);

#endif
