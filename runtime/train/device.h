/* A device at work: it runs the pieces of its stages in the order that the simulator gave them,
 * step after step. What is the same for every transport.
 *
 * At the end of a step each device reports to device 0, which decides and orders: whether weights
 * move, how far, and how it goes on. So all do the same, and the order of every sum is fixed.
 *
 * That cannot deadlock: a piece waits for pieces that the simulator ran before it, by the order of
 * the same lists, and every queue has room for all micro-batches of a step. */
#ifndef PSPLIT_RUNTIME_TRAIN_DEVICE_H
#define PSPLIT_RUNTIME_TRAIN_DEVICE_H

#include "learner.h"
#include "stage.h"

/* What a run works with; the same for all its devices. */
typedef struct psplit_i_train_setup {
  psplit_train_options given;
  psplit_i_session_options *sessions; /* [n_stages] */
  psplit_i_wiring wiring;
  psplit_schedule *schedule;
  uint32_t n_micro_batches; /* of each replica, each sample of smoothing counted */
  uint32_t n_slots;         /* of each device in a step */
  psplit_i_run_options run; /* what transports ask for */
  psplit_i_failures none;   /* that there are no failures of micro-batches */
} psplit_i_train_setup;

/* What device 0 knows at the end. Lists are malloc'd. */
typedef struct psplit_i_train_result {
  uint64_t first_step, n_steps, n_skipped, all_steps;
  double *losses; /* [n_steps] */
  double eval_loss;
  int64_t began_ns, ended_ns;
  uint64_t digest;
  psplit_train_device *devices;                   /* [n_devices] */
  int64_t *forward_ns, *backward_ns, *weights_ns; /* [n_stages] means, of pieces of their own */
  bool interrupted;
} psplit_i_train_result;

void psplit_i_train_result_fini(psplit_i_train_result *result); /* a zeroed one is fine */

typedef struct psplit_i_device {
  uint32_t index;
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  const psplit_i_train_setup *setup;
  psplit_i_host *host;
  psplit_i_queue **queues; /* [wires] those of other devices may be NULL */
  psplit_i_event *events;  /* [n_events] a ring of the last pieces */
  uint32_t n_events;
  psplit_i_sums *sums;
  psplit_i_train_result *result; /* of device 0 */
  psplit_i_watch watch;
} psplit_i_device;

/* `device` with all before `watch` set, ready to run. */
void psplit_i_device_init(psplit_i_device *device);
void psplit_i_device_fini(psplit_i_device *device);
/* Opens its stages, meets the others, trains, says what it measured. Failures go to the host. */
void psplit_i_device_main(psplit_i_device *device);
/* Makes psplit_i_device_main return soon. From any thread. */
void psplit_i_device_stop(psplit_i_device *device);

/* Pieces of a step in a device's timeline: those of the schedule, and the update. */
static inline uint32_t psplit_i_pieces_each(const psplit_i_train_setup *setup) {
  return setup->n_slots + 1;
}

#endif
