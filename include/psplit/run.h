/* Running the stages of a split with ONNX Runtime: libpsplit-run, `pkg-config psplit-run`.
 *
 * A pipeline is the directory of a split. A run takes micro-batches through it, every stage at work
 * on its own, each in a thread of this process (over MPI: psplit/run_mpi.h). ONNX Runtime is a
 * library that is opened when it is needed; nothing here has to be built with it.
 *
 * Structs of options begin with their size, which their _init sets: psplit/base.h. */
#ifndef PSPLIT_RUN_H
#define PSPLIT_RUN_H

#include <psplit/devices.h>
#include <psplit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ONNX Runtime, opened. Threads may share it; runs, profiles and comparisons of a process should:
 * opening it takes some 10 ms, and its threads and memory are its own. */
typedef struct psplit_onnxruntime psplit_onnxruntime;

/* Opens the shared library `path`; NULL: the file that the environment variable PSPLIT_ONNXRUNTIME
 * names, else libonnxruntime.so.1 or libonnxruntime.so where the loader looks. The caller owns
 * *out_ort. Errors: IO (no library; the message says how to get one), UNSUPPORTED (not ONNX
 * Runtime, or too old), PLUGIN, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_onnxruntime_open(const char *path, psplit_diag *diag,
                                                               psplit_onnxruntime **out_ort);
PSPLIT_API void psplit_onnxruntime_close(psplit_onnxruntime *ort); /* NULL is fine */

/* Gives all sessions that are opened later the custom operators of a shared library, which exports
 * RegisterCustomOps as ONNX Runtime has it. Not while others use `ort`. Errors: IO (no such file),
 * UNSUPPORTED (no such library; ONNX Runtime's words), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_onnxruntime_add_custom_ops(psplit_onnxruntime *ort,
                                                                         const char *path,
                                                                         psplit_diag *diag);

/* Its version, "1.30.0"; owned by `ort`. */
PSPLIT_API const char *psplit_onnxruntime_version(const psplit_onnxruntime *ort);

/* A split, read from its pipeline.json. One run at a time: a run changes it. */
typedef struct psplit_pipeline psplit_pipeline;

/* A stage and what was predicted of it; times in ns, -1: not known. */
typedef struct psplit_pipeline_stage {
  const char *file, *device; /* the file's name in the directory; the device it was planned for */
  int64_t compute_ns, recv_ns, send_ns, load_ns;
  uint32_t n_replicas;                /* devices that compute it, a micro-batch each */
  const char *const *replica_devices; /* [n_replicas]; NULL where there is one */
} psplit_pipeline_stage;

/* An input or output of the model, as it is declared. */
typedef struct psplit_pipeline_value {
  const char *name, *dtype;   /* dtype: as numpy has it, "sequence(float32)", or NULL: not known */
  uint32_t n_dims;            /* 0 also where the rank is not known */
  const int64_t *dims;        /* -1: not fixed */
  const char *const *symbols; /* its name then, or NULL */
} psplit_pipeline_value;

/* What pipeline.json says; owned by the pipeline. */
typedef struct psplit_pipeline_info {
  uint32_t n_stages;
  const psplit_pipeline_stage *stages;
  uint32_t n_inputs, n_outputs; /* of the model, in its order, optional inputs last */
  const char *const *inputs, *const *outputs;
  int64_t bottleneck_ns;   /* of the slowest stage, as predicted; -1: not known */
  const char *cost_source; /* what the prediction stands on */
  uint32_t n_needed;       /* inputs that are not optional: the first ones */
  uint32_t n_assumed; /* sizes that nobody fixed for the prediction, and what they counted as */
  const char *const *assumed_names;
  const int64_t *assumed_sizes;
  const psplit_pipeline_value *input_values, *output_values; /* as `inputs` and `outputs` */
} psplit_pipeline_info;

typedef struct psplit_pipeline_options {
  size_t struct_size;      /* set by psplit_pipeline_options_init() */
  uint64_t max_text_bytes; /* of pipeline.json; 0: 64 MiB */
  bool for_training;       /* also where only psplit_train can run the stages */
} psplit_pipeline_options;

static inline void psplit_pipeline_options_init(psplit_pipeline_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Reads directory/pipeline.json; stages are opened by each run. `options` may be NULL: defaults.
 * The caller owns *out_pipeline. Errors: IO, LIMIT, MALFORMED, INVALID (tables of two stages do not
 * agree), UNSUPPORTED, USAGE, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_pipeline_open(const char *directory,
                                                            const psplit_pipeline_options *options,
                                                            psplit_diag *diag,
                                                            psplit_pipeline **out_pipeline);
PSPLIT_API void psplit_pipeline_close(psplit_pipeline *pipeline); /* NULL is fine */
PSPLIT_API const psplit_pipeline_info *psplit_pipeline_get_info(const psplit_pipeline *pipeline);

/* A dense tensor of numbers, row-major, little-endian, packed. Lent. */
typedef struct psplit_tensor_view {
  int32_t data_type; /* TensorProto.DataType of ONNX: 1 float, 7 int64, ... */
  uint32_t n_dims;
  const int64_t *dims;
  const void *data; /* NULL for strings: such outputs can be written to files only */
  uint64_t n_bytes;
} psplit_tensor_view;

/* A file for an input: .npy, .npz, .pb (TensorProto; SequenceProto of a sequence), else raw bytes.
 * In the path, {} stands for the number of the micro-batch. */
typedef struct psplit_feed_file {
  const char *input; /* NULL: an .npz with arrays named like inputs */
  const char *path;
} psplit_feed_file;

/* The size of an input that the model leaves open. */
typedef psplit_input_size psplit_feed_shape;

/* An input whose numbers are made: within low..high, from the seed as random ones are; of integers
 * whole ones, both ends included. low == high: that number. Errors of a run: USAGE (low > high, or
 * the input's type does not hold them). */
typedef struct psplit_feed_range {
  const char *input;
  double low, high;
} psplit_feed_range;

/* Gives input `input` of a micro-batch, warm-up included: fills *out, whose memory stays as it is
 * until the next call for the same input (it is copied). Called by the threads of stages, for
 * different inputs at once. Anything but OK ends the run. */
typedef psplit_code (*psplit_give_input)(void *user, uint32_t micro_batch, const char *input,
                                         psplit_diag *diag, psplit_tensor_view *out);

/* Where inputs come from: of those that apply the first of files, ranges, `give` and random
 * numbers. */
typedef struct psplit_feed_options {
  size_t struct_size;
  const psplit_feed_file *files;
  size_t n_files;
  const psplit_dim_value *dims; /* sizes of symbolic dimensions */
  size_t n_dims;
  const psplit_feed_shape *shapes;
  size_t n_shapes;
  /* Floats in [-1, 1), integers in 0..99, 8-bit types any value; masks, lengths and positions, as
   * exporters call them, fit the other inputs. */
  bool random;
  uint64_t seed;          /* of these; they depend on it, the input's name and the micro-batch */
  psplit_give_input give; /* for inputs without a default that no file gives; may be NULL */
  void *give_user;
  bool safe_casts; /* files may be of another type than the input, which holds all its values */
  const psplit_feed_range *ranges;
  size_t n_ranges;
  /* Of a compressed array in an .npz that unpacks to more than five times the file, where the sizes
   * of the input are not known; 0: 64 MiB. */
  uint64_t max_unpacked_bytes;
} psplit_feed_options;

/* Nothing is given, seed 1. */
PSPLIT_API void psplit_feed_options_defaults(psplit_feed_options *options, size_t struct_size);
static inline void psplit_feed_options_init(psplit_feed_options *options) {
  psplit_feed_options_defaults(options, sizeof *options);
}

/* Whether the pipeline has the inputs and dimensions that `feed` names: a misspelt one would be
 * without effect. Runs look for themselves. Errors: USAGE (with the nearest name), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_feed_check(const psplit_feed_options *feed,
                                                         const psplit_pipeline *pipeline,
                                                         psplit_diag *diag);
/* The same for a whole model. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_feed_check_model(const psplit_feed_options *feed,
                                                               const psplit_model *model,
                                                               psplit_diag *diag);

/* Whether tensors go one after the other through `path`: "-" (standard input or output), a pipe, a
 * device, what is open already by such a name (/dev/stdin, /dev/fd/3). */
PSPLIT_API bool psplit_is_tensor_stream(const char *path);

/* Takes output `output` (position in the model's outputs) of a micro-batch; called by the threads
 * of stages, for different outputs at once, for each output in the order of micro-batches. The
 * tensor is lent for the call. Anything but OK ends the run. */
typedef psplit_code (*psplit_take_output)(void *user, uint32_t micro_batch, uint32_t output,
                                          const psplit_tensor_view *tensor, psplit_diag *diag);

/* As n_micro_batches of a stream: until its inputs end. */
#define PSPLIT_RUN_ENDLESS UINT32_MAX

/* What a run does at a micro-batch that cannot be read, fails in a stage or misses its deadline. In
 * either case those before it are delivered. */
typedef enum psplit_on_error {
  PSPLIT_ON_ERROR_STOP, /* ends, with that failure */
  PSPLIT_ON_ERROR_SKIP  /* passes over it: gives no outputs of it, and names it in the report */
} psplit_on_error;

/* Which micro-batches of a run are delivered: all their outputs were written or taken, or nobody
 * wants them. It can be asked at any time and from any thread, also once the run has failed. */
typedef struct psplit_delivered psplit_delivered;
typedef struct psplit_range {
  uint64_t first, last; /* micro-batches, both included */
} psplit_range;
enum { PSPLIT_MOST_RANGES = 1024 };

/* Nothing is delivered yet. The caller owns *out_delivered. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_delivered_create(psplit_diag *diag,
                                                               psplit_delivered **out_delivered);
PSPLIT_API void psplit_delivered_destroy(psplit_delivered *delivered); /* NULL is fine */
/* Copies the first `most` ranges, in order, and returns how many; *out_n, which may be NULL, gets
 * the number of micro-batches. No more than PSPLIT_MOST_RANGES ranges are kept. */
PSPLIT_API uint32_t psplit_delivered_get(psplit_delivered *delivered, psplit_range *out_ranges,
                                         uint32_t most, uint64_t *out_n);

typedef struct psplit_run_options {
  size_t struct_size;
  /* How ONNX Runtime runs stages: 0: one thread, all optimisations, CPU; 1: `sessions` holds what
   * is for all; else a row for each stage, or for each replica of each, by stage. What a row does
   * not say has its default. */
  const psplit_session *sessions;
  size_t n_sessions;
  const psplit_feed_options *feed; /* NULL: the model needs no inputs */
  uint32_t n_micro_batches;        /* measured ones, at least 1; of a stream, at most so many */
  uint32_t n_warmup; /* run before the clock starts; outputs dropped; none in a stream */
  /* Micro-batches that wait between two stages; 0: 2, but up to 32 between stages where the plan
   * has none of 200 us or more and all that waits takes 1 MiB at most, and there is no deadline. */
  uint32_t depth;
  bool stream;        /* micro-batches are taken as they come: from "-", pipes, {} that counts */
  bool pin;           /* a core for each stage, where there are enough */
  bool one_at_a_time; /* no two stages compute at once: what each takes by itself */
  /* Outputs are written here: to a directory, which is made, as MICROBATCH-OUTPUT.npy (.pb where
   * numpy has no such type) beside outputs.json; to a tensor stream as one .npy after the other.
   * NULL: nowhere. */
  const char *output;
  psplit_take_output take_output; /* instead of `output`; may be NULL */
  void *take_output_user;
  const volatile int *cancel; /* see base.h */
  /* Called where threads have not ended 2 s after the first failure or a cancellation, which
   * nothing can make them, since one computes on in a node or waits for a file that nobody writes;
   * `diag` names them. It has to end the process. NULL: they are waited for. */
  void (*give_up)(void *user, const psplit_diag *diag);
  void *give_up_user;
  double timeout_s;     /* MPI: longest silence of a rank that is waited for */
  uint64_t chunk_bytes; /* MPI: largest message, at most 2^30 */
  /* Longest time that ONNX Runtime may take to open or to close a stage or for a micro-batch of it,
   * and that a named pipe may have nobody at its other end; 0: any. A source or a reader that is
   * there may take its time. */
  double stall_timeout_s;
  /* A micro-batch whose outputs are not there so long after its inputs were fails. 0: they may take
   * any time. */
  double deadline_s;
  psplit_on_error on_error;
  /* The number of the first micro-batch, for all that is given to others: inputs are those from
   * there on, outputs and reports are numbered from there, as in a run that began at 0. What comes
   * through a pipe has no place to begin at: USAGE. */
  uint32_t first_micro_batch;
  psplit_delivered *delivered; /* gets what is, over MPI on the rank that gives outputs; may be NULL
                                */
  /* [number of stages] threads that compute a stage, each a micro-batch of its own, in turn; what
   * they hand on stays in order. On the CPU, without rows of their own, they share one session, and
   * so its weights. From 1 to PSPLIT_MOST_REPLICAS; NULL: as planned. */
  const uint32_t *n_replicas;
} psplit_run_options;

/* One micro-batch after one warm-up, timeout 60 s, messages of 1 GiB, else 0 or NULL. */
PSPLIT_API void psplit_run_options_defaults(psplit_run_options *options, size_t struct_size);
static inline void psplit_run_options_init(psplit_run_options *options) {
  psplit_run_options_defaults(options, sizeof *options);
}

/* A micro-batch that was passed over. */
typedef struct psplit_run_failure {
  uint64_t micro_batch;
  psplit_code code;
  const char *message;
} psplit_run_failure;

/* Means over the micro-batches of a stage, ns. */
typedef struct psplit_stage_report {
  int64_t busy_ns;     /* in ONNX Runtime */
  int64_t wait_in_ns;  /* for inputs */
  int64_t wait_out_ns; /* for room to hand over outputs */
  int64_t transfer_ns; /* its inputs were on the way, while it waited or computed */
  uint64_t bytes;      /* of inputs from other stages, over MPI */
  uint32_t n_replicas; /* threads that computed it */
} psplit_stage_report;

typedef struct psplit_run_report {
  uint32_t n_stages;
  uint64_t n_micro_batches;
  double seconds;    /* from the first input taken to the last output given */
  double throughput; /* micro-batches a second */
  /* Micro-batches a second between the first output given and the last: without filling and
   * draining. 0 where there is but one. */
  double steady_throughput;
  /* Of a micro-batch, from its first to its last stage. */
  int64_t latency_median_ns, latency_max_ns;
  double bubble_frac;                /* part of the stages' time in which they did not compute */
  double bubble_fill_frac;           /* what filling and draining alone would cost: (K-1)/(M+K-1) */
  const psplit_stage_report *stages; /* [n_stages] */
  uint64_t first_micro_batch;        /* as it was asked for */
  uint64_t n_delivered;              /* of n_micro_batches */
  uint32_t n_ranges;                 /* of these, in order, at most PSPLIT_MOST_RANGES */
  const psplit_range *delivered;     /* [n_ranges] */
  uint64_t n_failed;                 /* of n_micro_batches: those that were passed over */
  uint32_t n_failures;               /* the first of these, at most 256 */
  const psplit_run_failure *failures;
  /* How times drift from the plan: what all stages took over what was predicted (a faster machine:
   * below 1), and the stage that takes most of its share of that, 1 where all keep theirs: another
   * cut would be better where it is far above. 0: something was not predicted. */
  double drift_ratio, worst_drift_ratio;
  uint32_t worst_drift_stage;
} psplit_run_report;

/* A finished run: what was measured. */
typedef struct psplit_run psplit_run;

/* Runs the pipeline in this process, a thread a stage, and returns when all have ended. The first
 * failure stops all; its message names the stage, its file and the micro-batch. Memory: that of the
 * sessions and of `depth` micro-batches before each stage. The caller owns *out_run, which `ort`
 * and `pipeline` outlive. Errors: USAGE (options, inputs), IO (files), CANCELLED, INVALID (ONNX
 * Runtime refuses a stage or fails), MALFORMED, UNSUPPORTED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_pipeline_run(const psplit_onnxruntime *ort,
                                                           psplit_pipeline *pipeline,
                                                           const psplit_run_options *options,
                                                           psplit_diag *diag, psplit_run **out_run);
PSPLIT_API void psplit_run_destroy(psplit_run *run); /* NULL is fine */

/* Owned by the run. */
PSPLIT_API const psplit_run_report *psplit_run_get_report(const psplit_run *run);

/* The report beside what was predicted, as JSON (docs/running.md); malloc'd. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_run_report_json(const psplit_run *run,
                                                              psplit_diag *diag, char **out_text);

/* The last 16,384 micro-batches in the trace event format of Perfetto and chrome://tracing: a
 * process for each stage, in it a row for computing and one for waiting; malloc'd. Errors: NOMEM.
 */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_run_trace_json(const psplit_run *run,
                                                             psplit_diag *diag, char **out_text);

/* How an output of the pipeline differs from the whole model's, over all micro-batches. */
typedef struct psplit_output_difference {
  uint64_t n_elements, n_different; /* by their bits; of all tensors of a sequence or map */
  double max_abs, max_rel; /* of these; rel: over the model's; infinite with NaN, strings */
  bool random;             /* differs, and the model gives other bits itself when it runs again */
  bool rounded; /* differs, and float16 tensors crossed before it: a cut rounds what crosses, where
                 * ONNX Runtime may keep float32 within a file */
  bool added;   /* training adds it, as the loss: there is nothing to compare it with */
} psplit_output_difference;

/* Runs the model `model_path` whole, then the pipeline as psplit_pipeline_run does, on the same
 * inputs and with options->sessions[0] for all stages (options->output, take_output, stream and
 * first_micro_batch are not used, and n_micro_batches is a number). Where the pipeline trains, no
 * session packs weights, which are inputs there. out[info->n_outputs] is the
 * caller's. Errors: MISMATCH where types or shapes differ; those of running. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_compare_run(
  const psplit_onnxruntime *ort, const char *model_path, psplit_pipeline *pipeline,
  const psplit_run_options *options, psplit_diag *diag, psplit_output_difference *out);

#ifdef __cplusplus
}
#endif
#endif
