/* What all that reads a psplit_schedule_input asks of it. */
#ifndef PSPLIT_SCHEDULE_INPUT_H
#define PSPLIT_SCHEDULE_INPUT_H

#include <psplit/schedule.h>

/* Most pieces of a schedule, those that fill up groups of micro-batches counted as well. */
enum { PSPLIT_I_MOST_SLOTS = 1 << 26 };

/* Numbers are there and in range, and no sum of times in a schedule overflows. Errors: USAGE,
 * LIMIT. O(chunks * stages). */
PSPLIT_MUST_USE psplit_code psplit_i_schedule_check(const psplit_schedule_input *in,
                                                    psplit_diag *diag);

/* Time from virtual stage v to v + 1, and back. */
static inline int64_t psplit_i_schedule_link(const psplit_schedule_input *in, uint32_t v) {
  return in->link_ns ? in->link_ns[v] : 0;
}

static inline int64_t psplit_i_schedule_backward(const psplit_schedule_input *in, uint32_t v) {
  return in->backward_ns ? in->backward_ns[v] : 0;
}

/* Of gradients of weights, where they are pieces of their own. */
static inline int64_t psplit_i_schedule_weights(const psplit_schedule_input *in, uint32_t v) {
  return in->weights_ns ? in->weights_ns[v] : 0;
}

#endif
