/* Training the stages of a split in ONNX Runtime: libpsplit-run, `pkg-config psplit-run`.
 *
 * The stages are those that `onnx-pipeline-split --training` writes (psplit/training.h), opened by
 * psplit_pipeline_open with for_training. A device is a thread of this process, or a rank over MPI
 * (psplit/run_mpi.h); it runs the pieces of micro-batches in the order that psplit/schedule.h gives
 * it. What a run computes is a function of the files, the data, the seed, the batch and the number
 * of micro-batches in each replica: not of transport or schedule, and with ONNX Runtime's optimiser
 * off (level 0) not of the cut either. */
#ifndef PSPLIT_TRAIN_H
#define PSPLIT_TRAIN_H

#include <psplit/run.h>
#include <psplit/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the learning rate goes on from its peak after the warm-up, in which it rises in equal steps:
 * w / warmup_steps of the peak in step w = 1, 2, ... */
typedef enum psplit_train_rate {
  PSPLIT_RATE_CONSTANT,
  PSPLIT_RATE_LINEAR, /* to last_learning_rate, which the step behind the last would have */
  PSPLIT_RATE_COSINE  /* the same along half a cosine */
} psplit_train_rate;

/* What a run does at a loss or a gradient that is not finite. */
typedef enum psplit_on_nan {
  PSPLIT_ON_NAN_STOP, /* fails; weights and checkpoint stay as they were */
  PSPLIT_ON_NAN_SKIP  /* goes on without this step's update */
} psplit_on_nan;

/* After each step, where it is known: on device 0. */
typedef struct psplit_train_step {
  uint64_t step, n_steps;     /* steps done, of all */
  double loss, gradient_norm; /* means over micro-batches; before clipping */
  double learning_rate;       /* of this step */
  double seconds;             /* since the first step of this run began */
  bool skipped;               /* PSPLIT_ON_NAN_SKIP did */
  bool evaluated;             /* what follows is there */
  double eval_loss;           /* mean over the micro-batches of eval_data */
} psplit_train_step;

typedef struct psplit_train_options {
  size_t struct_size;
  /* As in psplit_run_options. Level 1 of the optimiser is the default here: at 2 and 99 ONNX
   * Runtime 1.30 fuses as if weights were constants, and may crash. */
  const psplit_session *sessions;
  size_t n_sessions;
  /* Not STREAM; ZERO_BUBBLE for stages made with PSPLIT_WEIGHT_GRADIENTS_APART. */
  psplit_schedule_kind schedule;
  uint32_t n_chunks; /* stages of each device; above 1 only with INTERLEAVED */
  /* Copies of all devices, which share the micro-batches of a step; gradients are added in their
   * order. n_micro_batches is a multiple of it. */
  uint32_t n_replicas;
  /* Arrays whose first axis is samples: .npy, or .npz with `input` NULL or as the array's name. A
   * batch has `batch` of them; the same ones of each array. */
  const psplit_feed_file *data, *eval_data;
  size_t n_data, n_eval_data;
  /* Inputs that are the same for each micro-batch. */
  const psplit_feed_file *fixed;
  size_t n_fixed;
  uint32_t batch;           /* samples in a step, a multiple of n_micro_batches; 0: all of them */
  uint32_t n_micro_batches; /* at least 1 */
  uint64_t n_steps;         /* in all; 0: as n_epochs says */
  uint64_t n_epochs;        /* of so many whole batches each as there are; the rest is left out */
  uint64_t seed;
  bool in_order; /* samples are taken in the order of the files, not shuffled in each epoch */
  double learning_rate, last_learning_rate;
  psplit_train_rate rate;
  uint64_t warmup_steps;
  double clip_norm;    /* of all gradients together, after which they are scaled; 0: none */
  uint64_t eval_every; /* steps; 0: not */
  psplit_on_nan on_nan;
  /* A directory that a checkpoint is written to: each checkpoint_every steps (0: not), at the end,
   * and where the run is cancelled. The old one stays until the new one is whole. NULL: none. */
  const char *checkpoint;
  uint64_t checkpoint_every;
  const char *resume; /* a checkpoint to go on from, of any number of stages; NULL: none */
  double timeout_s, stall_timeout_s; /* as in psplit_run_options */
  uint64_t chunk_bytes;
  /* Once it is set the run ends, with CANCELLED, after the step under way; one that has not ended
   * 0.2 s later is given up, and the checkpoint is of those before it, unless there are none. What
   * does not return from ONNX Runtime within as long again is left, or waited for without give_up.
   */
  const volatile int *cancel;
  void (*give_up)(void *user, const psplit_diag *diag);
  void *give_up_user;
  void (*progress)(void *user, const psplit_train_step *step); /* from another thread */
  void *progress_user;
  /* Random smoothing: each micro-batch is run smooth_samples times, with weights moved each time by
   * smooth_gamma * N(0, 1), drawn by counter; loss and gradient are means over these. Evaluations
   * and updates are of the weights themselves. Not with states that go from one micro-batch to the
   * next. */
  double smooth_gamma;     /* 0: weights stay where they are */
  uint32_t smooth_samples; /* at least 1; with n_micro_batches at most 2^20 in a step */
  /* Told where a checkpoint begins to be written and where that has ended: it is waited for once
   * the run is cancelled. From other threads; may be NULL. */
  void (*saving)(void *user, bool begins);
  void *saving_user;
  /* Of a compressed array in an .npz that unpacks to more than ten times the file; 0: 64 MiB. */
  uint64_t max_unpacked_bytes;
  /* `schedule` becomes what the split was planned for: FILL_DRAIN where that was its objective,
   * else 1F1B. */
  bool as_planned;
} psplit_train_options;

/* 1F1B of 8 micro-batches, one epoch of all samples, seed 1, constant rate 0.001, no smoothing,
 * else as psplit_run_options_init. */
PSPLIT_API void psplit_train_options_defaults(psplit_train_options *options, size_t struct_size);
static inline void psplit_train_options_init(psplit_train_options *options) {
  psplit_train_options_defaults(options, sizeof *options);
}

/* Of a device; times are means over its pieces. */
typedef struct psplit_train_device {
  uint32_t peak_stashes;           /* micro-batches held for their backward pass at once */
  uint32_t scheduled_stashes;      /* what the schedule allows */
  uint64_t stash_bytes;            /* of all those, at their peak */
  uint64_t weight_bytes;           /* weights, perturbed ones too, and the optimizer's state */
  uint64_t peak_resident_bytes;    /* of its process */
  int64_t forward_ns, backward_ns; /* with what is computed again */
  int64_t update_ns;
  int64_t weight_gradients_ns; /* with ZERO_BUBBLE, and not in backward_ns then; else 0 */
} psplit_train_device;

typedef struct psplit_train_report {
  uint32_t n_devices, n_stages, n_micro_batches;
  uint64_t first_step, n_steps, n_skipped; /* steps done before this run, in it, without update */
  double seconds, steps_per_s;
  const double *losses; /* [n_steps] */
  double eval_loss;     /* the last one; NaN: none */
  /* Idle part of the devices' time, from the first forward piece of a step to its last backward
   * piece; and by the simulator, of the times that were measured of each piece, so that what is
   * more than that is time between pieces. Reading data belongs to the pieces. */
  double bubble_frac, simulated_bubble_frac;
  uint64_t weights_digest;            /* of the bits of all weights */
  const psplit_train_device *devices; /* [n_devices] */
  uint64_t all_steps; /* that the options ask for, with first_step; at most that: none was left */
  psplit_schedule_kind schedule, planned_schedule; /* of the run; that the split was planned for */
} psplit_train_report;

typedef struct psplit_training_run psplit_training_run;

/* Trains in this process, a thread a device, and returns when all have ended. The caller owns
 * *out_run, which `ort` and `pipeline` outlive. Errors: USAGE (options; inputs that nothing gives),
 * IO, INVALID (data of another type or shape, labels that are no classes, a loss that is not
 * finite), MISMATCH (a checkpoint of another model or optimizer), CANCELLED, UNSUPPORTED (the
 * stages do not train), MALFORMED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_train(const psplit_onnxruntime *ort,
                                                    psplit_pipeline *pipeline,
                                                    const psplit_train_options *options,
                                                    psplit_diag *diag,
                                                    psplit_training_run **out_run);
PSPLIT_API void psplit_training_run_destroy(psplit_training_run *run); /* NULL is fine */

/* Owned by the run. */
PSPLIT_API const psplit_train_report *psplit_training_run_report(const psplit_training_run *run);
/* The report as JSON (docs/train.md); malloc'd. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_run_json(const psplit_training_run *run,
                                                                psplit_diag *diag, char **out_text);
/* The last 16,384 pieces of each device in the trace event format of Perfetto; malloc'd. Errors:
 * NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_run_trace(const psplit_training_run *run,
                                                                 psplit_diag *diag,
                                                                 char **out_text);

#ifdef __cplusplus
}
#endif
#endif
