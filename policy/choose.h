/* Batches that are simulated. */
#ifndef PSPLIT_POLICY_CHOOSE_H
#define PSPLIT_POLICY_CHOOSE_H

#include "base.h"
#include "schedules.h"

/* What the batch takes in a schedule. Errors: LIMIT, NOMEM. O(stages * micro-batches). */
PSPLIT_MUST_USE psplit_code psplit_i_batch_simulate(const psplit_policy_batch *batch,
                                                    psplit_schedule_kind kind,
                                                    uint32_t n_micro_batches, psplit_diag *diag,
                                                    int64_t *out_step_ns);
/* Of all that are listed the one that takes least, the first of equals; out_ns[schedules->n] of
 * each (may be NULL). Errors: as above. */
PSPLIT_MUST_USE psplit_code psplit_i_batch_best(const psplit_policy_batch *batch,
                                                const psplit_i_schedules *schedules,
                                                psplit_diag *diag, int64_t *out_ns,
                                                uint32_t *out_best, int64_t *out_best_ns);

#endif
