/* All-reduce over devices: each sends a row of numbers to device 0, which computes one answer for
 * all. */
#ifndef PSPLIT_RUNTIME_TRAIN_ALL_REDUCE_H
#define PSPLIT_RUNTIME_TRAIN_ALL_REDUCE_H

#include "device.h"

/* On device 0: makes the answer for all from every device's report. reports[n_devices][n],
 * answer[n_answer]. */
typedef psplit_code (*psplit_i_decide)(void *user, const double *reports, size_t n, double *answer,
                                       psplit_diag *diag);

/* How reports become an answer. */
typedef struct psplit_i_reduction {
  psplit_i_decide decide; /* called on device 0 alone */
  void *user;
  size_t n_answer;
} psplit_i_reduction;

/* Called by all devices, with the same sizes: each gives report[n] and receives
 * out_answer[n_answer]. Where the run was stopped, an error without a message. Errors: those of
 * decide, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_all_reduce(const psplit_i_device *device, const double *report,
                                                size_t n, psplit_i_reduction reduction,
                                                psplit_diag *diag, double *out_answer);

/* What a function returns, without a message, where the run was stopped elsewhere. */
#define PSPLIT_I_STOPPED PSPLIT_CANCELLED

/* A bundle from a wire, and one to it; both wait. `bundle` is taken in any case. STOPPED where the
 * run was stopped. */
PSPLIT_MUST_USE psplit_code psplit_i_receive_from(const psplit_i_device *device, uint32_t wire,
                                                  psplit_i_bundle **out);
PSPLIT_MUST_USE psplit_code psplit_i_send_to(const psplit_i_device *device, uint32_t wire,
                                             psplit_i_bundle *bundle);

#endif
