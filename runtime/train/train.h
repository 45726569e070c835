/* Training runs (psplit/train.h), independent of the transport. */
#ifndef PSPLIT_RUNTIME_TRAIN_TRAIN_H
#define PSPLIT_RUNTIME_TRAIN_TRAIN_H

#include "device.h"
#include "run.h"

struct psplit_training_run {
  const psplit_onnxruntime *ort;
  const psplit_pipeline *pipeline;
  const char *transport;
  psplit_i_train_setup setup;
  psplit_i_timeline timeline; /* a row for each device; pieces in place of micro-batches */
  psplit_i_train_result result;
  psplit_train_report report;
};

/* Runs all devices, or that of `rank`; only rank 0 gets a timeline and a result. */
typedef psplit_code (*psplit_i_train_transport)(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                                const psplit_i_train_setup *setup, uint32_t rank,
                                                psplit_diag *diag, psplit_i_timeline *out,
                                                psplit_i_train_result *out_result);

/* A transport, what reports call it, and who we are in it. */
typedef struct psplit_i_train_communicator {
  psplit_i_train_transport transport;
  const char *name;
  uint32_t rank;
} psplit_i_train_communicator;

/* psplit_train over a transport. *out_run is NULL where the rank is not 0. */
PSPLIT_MUST_USE psplit_code psplit_i_train_over(const psplit_i_train_communicator *comm,
                                                const psplit_onnxruntime *ort,
                                                psplit_pipeline *pipeline,
                                                const psplit_train_options *options,
                                                psplit_diag *diag, psplit_training_run **out_run);

/* Transport: all devices in this process, a thread each. */
PSPLIT_MUST_USE psplit_code psplit_i_train_threads(const psplit_i_ort *ort,
                                                   const psplit_i_pipe *pipe,
                                                   const psplit_i_train_setup *setup, uint32_t rank,
                                                   psplit_diag *diag, psplit_i_timeline *out,
                                                   psplit_i_train_result *out_result);

/* Events that a timeline has room for. */
static inline uint32_t psplit_i_train_n_events(const psplit_i_train_setup *setup) {
  const uint32_t each = psplit_i_pieces_each(setup);
  return each < PSPLIT_I_MOST_EVENTS ? PSPLIT_I_MOST_EVENTS / each * each : PSPLIT_I_MOST_EVENTS;
}
/* Bundles that a queue for this wire has room for. */
static inline uint32_t psplit_i_train_depth(const psplit_i_train_setup *setup) {
  return setup->given.n_micro_batches * setup->given.smooth_samples + 1;
}

/* That the split was planned for. */
static inline psplit_schedule_kind psplit_i_planned_schedule(const psplit_i_manifest *manifest) {
  return manifest->fill_drain ? PSPLIT_SCHEDULE_FILL_DRAIN : PSPLIT_SCHEDULE_1F1B;
}

/* Fills in the report from what else the run has. */
PSPLIT_MUST_USE psplit_code psplit_i_train_report_make(psplit_training_run *run, psplit_diag *diag);

#endif
