/* State of a running device: its stages, its data, its position, its measurements. */
#ifndef PSPLIT_RUNTIME_TRAIN_WORK_H
#define PSPLIT_RUNTIME_TRAIN_WORK_H

#include "checkpoint.h"
#include "device.h"

typedef struct psplit_i_work {
  psplit_i_device *device;
  const psplit_i_train_setup *setup;
  psplit_i_feeding feeding;
  psplit_i_learner *learners; /* [n_chunks] */
  uint32_t line, replica;     /* where this device stands */
  uint32_t n_weights;
  uint64_t first_step, step, n_steps, n_updates, n_piece;
  /* Who cancels the run does not wait for this step, or evaluation, to end: it comes to nothing.
   * What goes to other devices then says so, and they give theirs up. */
  bool given_up;
  double loss;                                    /* of the step so far, where it arises here */
  double *report;                                 /* room for any */
  int64_t *forward_ns, *backward_ns, *weights_ns; /* [n_chunks] */
  int64_t update_ns;
  psplit_i_checkpoint *resumed;
  psplit_i_checkpoint_writer writer; /* of device 0 */
  uint32_t peak_stashes;             /* of all stages here at once */
  uint64_t peak_bytes;
} psplit_i_work;

static inline const psplit_train_options *psplit_i_given(const psplit_i_work *work) {
  return &work->setup->given;
}

#endif
