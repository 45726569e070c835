/* Learning of schedules: what a rollout's batch takes in the schedule that was chosen, and steps on
 * schedules alone. */
#ifndef PSPLIT_POLICY_SCHEDULING_H
#define PSPLIT_POLICY_SCHEDULING_H

#include "learner.h"
#include "schedules.h"

/* A schedule that was chosen: what learning needs of it. */
typedef struct psplit_i_scheduled {
  psplit_i_schedules list;
  uint32_t chosen;
  psplit_i_real chance;
} psplit_i_scheduled;

/* Chooses for the stages of a rollout: drawn, or with `stream` NULL the likeliest. *out_ratio is
 * the simulated time over what no split is below. Errors: LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code
psplit_i_schedule_rollout(const psplit_policy_learner *learner, const psplit_i_case *c,
                          const psplit_i_stages *stages, const psplit_i_random_stream *stream,
                          psplit_diag *diag, psplit_i_scheduled *out_scheduled, double *out_ratio);
/* Adds the gradient of a choice to the learner's, as psplit_i_learn does for a decision. */
void psplit_i_schedule_learn(psplit_policy_learner *learner, psplit_i_scheduled *scheduled,
                             const psplit_i_objective *objective, double share,
                             psplit_i_learned *out);
/* A step on schedules alone, of batches drawn by chance through the best splits of the corpus: by
 * cross-entropy on the best schedule in the first two thirds, then by PPO. Errors: LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_schedule_step(psplit_policy_learner *learner, double done,
                                                   psplit_diag *diag, psplit_policy_step *io_step);

#endif
