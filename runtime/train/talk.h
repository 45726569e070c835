/* What devices say to device 0, and what it answers: rows of numbers. */
#ifndef PSPLIT_RUNTIME_TRAIN_TALK_H
#define PSPLIT_RUNTIME_TRAIN_TALK_H

#include "device.h"

/* Of what device 0 hears it makes what all are told: reports[n_devices][n], answer[n_answer]. */
typedef psplit_code (*psplit_i_decide)(void *user, const double *reports, size_t n, double *answer,
                                       psplit_diag *diag);

/* All devices at once, with the same sizes: each gives its report and gets the answer. Where the
 * run was stopped, an error without a message. Errors: those of decide, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_talk(const psplit_i_device *device, const double *report,
                                          size_t n, psplit_i_decide decide, void *user,
                                          size_t n_answer, double *answer, psplit_diag *diag);

/* What a function returns, without a message, where the run was stopped elsewhere. */
#define PSPLIT_I_STOPPED PSPLIT_CANCELLED

/* A bundle from a wire, and one to it; both wait. `bundle` is taken in any case. STOPPED where the
 * run was stopped. */
PSPLIT_MUST_USE psplit_code psplit_i_hear(const psplit_i_device *device, uint32_t wire,
                                          psplit_i_bundle **out);
PSPLIT_MUST_USE psplit_code psplit_i_tell(const psplit_i_device *device, uint32_t wire,
                                          psplit_i_bundle *bundle);

#endif
