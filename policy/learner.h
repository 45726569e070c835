/* The state of learning; learner.c makes steps, learner_file.c saves it. */
#ifndef PSPLIT_POLICY_LEARNER_H
#define PSPLIT_POLICY_LEARNER_H

#include "adam.h"
#include "case.h"
#include "decisions.h"
#include "policy.h"
#include "vec.h"

struct psplit_policy_learner {
  psplit_policy *policy;
  psplit_policy_learn_options options;
  PSPLIT_VEC(psplit_i_case *) cases;
  psplit_i_adam adam;
  psplit_i_policy_network gradient;
  psplit_i_learner learner;
  uint32_t step;    /* done */
  uint32_t n_added; /* problems, those that were refused included */
};

#endif
