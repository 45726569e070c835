/* The last decision of a policy: in which schedule, and in how many micro-batches, a batch goes
 * through the stages that a split has. What there is to choose among, what the network sees of it,
 * and its scores. */
#ifndef PSPLIT_POLICY_SCHEDULES_H
#define PSPLIT_POLICY_SCHEDULES_H

#include <psplit/policy.h>

#include "network.h"

enum { PSPLIT_I_MOST_SCHEDULES = 64 };

typedef struct psplit_i_schedules {
  uint32_t n; /* >= 1 */
  bool fits;  /* all that are listed, else none does */
  psplit_schedule_kind kind[PSPLIT_I_MOST_SCHEDULES];
  uint32_t n_micro_batches[PSPLIT_I_MOST_SCHEDULES];
  double estimate[PSPLIT_I_MOST_SCHEDULES]; /* of the step; nothing can be below it */
  psplit_i_real x[PSPLIT_I_MOST_SCHEDULES * PSPLIT_I_SCHEDULE_FEATURES];
  psplit_i_real hidden[PSPLIT_I_MOST_SCHEDULES * PSPLIT_I_SCHEDULE_HIDDEN];
} psplit_i_schedules;

/* Micro-batches that a stage holds at once, at most. */
uint32_t psplit_i_schedule_in_flight(psplit_schedule_kind kind, uint32_t n_stages, uint32_t stage,
                                     uint32_t n_micro_batches);
/* Lists what divides the samples evenly and fits into memory; if nothing fits, all. The batch is
 * one that psplit_policy_choose takes. O(stages * schedules). */
void psplit_i_schedules_list(const psplit_policy_batch *batch, psplit_i_schedules *out);
/* out_logit[n]; keeps in `hidden` what the gradient needs. */
void psplit_i_schedules_score(const psplit_i_policy_network *network, psplit_i_schedules *schedules,
                              psplit_i_real *out_logit);
/* Adds to the gradient. */
void psplit_i_schedules_score_back(const psplit_i_policy_network *network,
                                   const psplit_i_schedules *schedules,
                                   const psplit_i_real *d_logit, psplit_i_policy_network *gradient);

#endif
