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

/* Learning rate schedule after the warm-up, which rises linearly: w / warmup_steps of the peak in
 * step w = 1, 2, ... */
typedef enum psplit_train_rate {
  PSPLIT_RATE_CONSTANT,
  PSPLIT_RATE_LINEAR, /* to last_learning_rate, which step n_steps + 1 would have */
  PSPLIT_RATE_COSINE  /* likewise, along half a cosine */
} psplit_train_rate;

/* What a run does if a loss or a gradient is not finite. */
typedef enum psplit_on_nan {
  PSPLIT_ON_NAN_STOP, /* fails; weights and checkpoint are unchanged */
  PSPLIT_ON_NAN_SKIP  /* skips the update of this step */
} psplit_on_nan;

/* Report after each step, on device 0. */
typedef struct psplit_train_step {
  uint64_t step, n_steps;     /* completed steps; total */
  double loss, gradient_norm; /* means over micro-batches; before clipping */
  double learning_rate;       /* of this step */
  double seconds;             /* since the first step of this run began */
  bool skipped;               /* by PSPLIT_ON_NAN_SKIP */
  bool evaluated;             /* eval_loss is set */
  double eval_loss;           /* mean over the micro-batches of eval_data */
} psplit_train_step;

typedef struct psplit_train_options {
  size_t struct_size;
  /* As in psplit_run_options. The default is level 1 of the optimiser: at levels 2 and 99, ONNX
   * Runtime 1.30 fuses as if weights were constant, and may crash. */
  const psplit_session *sessions;
  size_t n_sessions;
  /* Not STREAM; ZERO_BUBBLE for stages made with PSPLIT_WEIGHT_GRADIENTS_APART. */
  psplit_schedule_kind schedule;
  uint32_t n_chunks; /* stages of each device; above 1 only with INTERLEAVED */
  /* Data parallelism: copies of all devices, which share the micro-batches of a step; gradients are
   * summed in order of micro-batches. n_micro_batches must be a multiple of it. */
  uint32_t n_replicas;
  /* Arrays whose first axis is samples: .npy, or .npz with `input` NULL or the array's name. A
   * batch takes `batch` samples, the same of each array. */
  const psplit_feed_file *data, *eval_data;
  size_t n_data, n_eval_data;
  /* Inputs that are constant over micro-batches. */
  const psplit_feed_file *fixed;
  size_t n_fixed;
  uint32_t batch;           /* samples per step, a multiple of n_micro_batches; 0: all */
  uint32_t n_micro_batches; /* at least 1 */
  uint64_t n_steps;         /* total; 0: by n_epochs */
  uint64_t n_epochs;        /* of complete batches; remaining samples are dropped */
  uint64_t seed;
  bool in_order; /* take samples in the order of the files, without shuffling */
  double learning_rate, last_learning_rate;
  psplit_train_rate rate;
  uint64_t warmup_steps;
  double clip_norm;    /* maximum norm of all gradients together; 0: no clipping */
  uint64_t eval_every; /* steps; 0: not */
  psplit_on_nan on_nan;
  /* Directory for checkpoints, written every checkpoint_every steps (0: never), at the end, and on
   * cancellation. The previous one remains until the new one is complete. NULL: none. */
  const char *checkpoint;
  uint64_t checkpoint_every;
  const char *resume; /* checkpoint to resume from, of any number of stages; NULL: none */
  double timeout_s, stall_timeout_s; /* as in psplit_run_options */
  uint64_t chunk_bytes;
  /* When set, the run ends with CANCELLED after the current step. A step that takes another 0.2 s
   * is abandoned, and the checkpoint is of the steps before it, if any. Threads that do not return
   * from ONNX Runtime within the same time again are abandoned, or waited for if give_up is
   * NULL. */
  const volatile int *cancel;
  void (*give_up)(void *user, const psplit_diag *diag);
  void *give_up_user;
  void (*progress)(void *user, const psplit_train_step *step); /* from another thread */
  void *progress_user;
  /* Random smoothing: each micro-batch is run smooth_samples times with weights perturbed by
   * smooth_gamma * N(0, 1), counter-based; loss and gradient are means over these. Evaluations and
   * updates use the unperturbed weights. Not with states that carry over between micro-batches. */
  double smooth_gamma;     /* 0: no perturbation */
  uint32_t smooth_samples; /* at least 1; at most 2^20 / n_micro_batches */
  /* Called when writing of a checkpoint begins and ends: after a cancellation, it is waited for.
   * From other threads; may be NULL. */
  void (*saving)(void *user, bool begins);
  void *saving_user;
  /* Limit on compressed .npz arrays that expand more than ten-fold; 0: 64 MiB. */
  uint64_t max_unpacked_bytes;
  /* Use the schedule that the split was planned for instead of `schedule`: FILL_DRAIN if that was
   * the objective, otherwise 1F1B. */
  bool as_planned;
} psplit_train_options;

/* The defaults: 1F1B with 8 micro-batches, one epoch of all samples, seed 1, constant rate 0.001,
 * no smoothing, otherwise as psplit_run_options_init. */
PSPLIT_API void psplit_train_options_defaults(psplit_train_options *options, size_t struct_size);
static inline void psplit_train_options_init(psplit_train_options *options) {
  psplit_train_options_defaults(options, sizeof *options);
}

/* Report of a device; times are means over its pieces. */
typedef struct psplit_train_device {
  uint32_t peak_stashes;           /* micro-batches held for their backward pass at once */
  uint32_t scheduled_stashes;      /* maximum by the schedule */
  uint64_t stash_bytes;            /* of these, at the peak */
  uint64_t weight_bytes;           /* weights, perturbed ones too, and the optimizer's state */
  uint64_t peak_resident_bytes;    /* of its process */
  int64_t forward_ns, backward_ns; /* including recomputation */
  int64_t update_ns;
  int64_t weight_gradients_ns; /* with ZERO_BUBBLE, excluded from backward_ns; otherwise 0 */
} psplit_train_device;

typedef struct psplit_train_report {
  uint32_t n_devices, n_stages, n_micro_batches;
  uint64_t first_step, n_steps,
    n_skipped; /* steps before this run; in it; of these, without update */
  double seconds, steps_per_s;
  const double *losses; /* [n_steps] */
  double eval_loss;     /* of the last evaluation; NaN: none */
  /* Idle fraction of the devices' time, from the first forward piece of a step to its last backward
   * piece: measured, and simulated from the measured time of each piece; the difference is overhead
   * between pieces. Reading data belongs to the pieces. */
  double bubble_frac, simulated_bubble_frac;
  uint64_t weights_digest;            /* hash of the bits of all weights */
  const psplit_train_device *devices; /* [n_devices] */
  uint64_t all_steps; /* requested in total; at most first_step: nothing was left to do */
  psplit_schedule_kind schedule;         /* used */
  psplit_schedule_kind planned_schedule; /* that the split was planned for */
} psplit_train_report;

typedef struct psplit_training_run psplit_training_run;

/* Trains in this process, one thread per device, and returns when all have ended. The caller owns
 * *out_run; `ort` and `pipeline` must outlive it. Errors: USAGE (options; missing inputs), IO,
 * INVALID (data of another type or shape, labels out of range, a loss that is not finite), MISMATCH
 * (a checkpoint of another model or optimizer), CANCELLED, UNSUPPORTED (the stages do not train),
 * MALFORMED, NOMEM. */
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
