/* Running the stages of a split with ONNX Runtime: libpsplit-run, `pkg-config psplit-run`.
 *
 * A pipeline is the directory of a split. A run sends micro-batches through it; stages work
 * concurrently, each in a thread of this process (over MPI: psplit/run_mpi.h). The ONNX Runtime
 * library is loaded at run time and is not needed for building.
 *
 * Option structs start with their size, which their _init function sets: psplit/base.h. */
#ifndef PSPLIT_RUN_H
#define PSPLIT_RUN_H

#include <psplit/devices.h>
#include <psplit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loaded ONNX Runtime. Thread-safe; all runs, profiles and comparisons of a process should share
 * one, since loading takes about 10 ms and allocates threads and memory. */
typedef struct psplit_onnxruntime psplit_onnxruntime;

/* Loads the shared library `path`: a file or, if there is none and the name has no slash, a library
 * on the loader's search path. NULL: the value of the environment variable PSPLIT_ONNXRUNTIME, else
 * libonnxruntime.so.1 or libonnxruntime.so from the loader's search path. The caller owns *out_ort.
 * Errors: IO (no library; the message says how to get one), UNSUPPORTED (not ONNX Runtime, or too
 * old), PLUGIN, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_onnxruntime_open(const char *path, psplit_diag *diag,
                                                               psplit_onnxruntime **out_ort);
PSPLIT_API void psplit_onnxruntime_close(psplit_onnxruntime *ort); /* NULL is fine */

/* Registers a shared library of custom operators (one that exports RegisterCustomOps) for all
 * sessions opened later. Must not run concurrently with other uses of `ort`. Errors: IO (no such
 * file), UNSUPPORTED (not such a library; ONNX Runtime's message), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_onnxruntime_add_custom_ops(psplit_onnxruntime *ort,
                                                                         const char *path,
                                                                         psplit_diag *diag);

/* Its version, "1.30.0"; owned by `ort`. */
PSPLIT_API const char *psplit_onnxruntime_version(const psplit_onnxruntime *ort);

/* A split, read from its pipeline.json. Only one run at a time may use it. */
typedef struct psplit_pipeline psplit_pipeline;

/* A stage and its predicted times in ns; -1: unknown. */
typedef struct psplit_pipeline_stage {
  const char *file, *device; /* the file's name in the directory; the device it was planned for */
  int64_t compute_ns, recv_ns, send_ns, load_ns;
  uint32_t n_replicas;                /* devices that compute it, a micro-batch each */
  const char *const *replica_devices; /* [n_replicas]; NULL where there is one */
} psplit_pipeline_stage;

/* Declaration of an input or output of the model. */
typedef struct psplit_pipeline_value {
  const char *name, *dtype;   /* dtype: as numpy has it, "sequence(float32)", or NULL: not known */
  uint32_t n_dims;            /* 0 also where the rank is not known */
  const int64_t *dims;        /* -1: not fixed */
  const char *const *symbols; /* name of that dimension, or NULL */
} psplit_pipeline_value;

/* Contents of pipeline.json; owned by the pipeline. */
typedef struct psplit_pipeline_info {
  uint32_t n_stages;
  const psplit_pipeline_stage *stages;
  uint32_t n_inputs, n_outputs; /* of the model, in its order, optional inputs last */
  const char *const *inputs, *const *outputs;
  int64_t bottleneck_ns;   /* of the slowest stage, as predicted; -1: not known */
  const char *cost_source; /* source of the predicted costs */
  uint32_t n_needed;       /* inputs that are not optional: the first ones */
  uint32_t n_assumed;      /* sizes that the prediction assumed */
  const char *const *assumed_names;
  const int64_t *assumed_sizes;
  const psplit_pipeline_value *input_values, *output_values; /* as `inputs` and `outputs` */
} psplit_pipeline_info;

typedef struct psplit_pipeline_options {
  size_t struct_size;      /* set by psplit_pipeline_options_init() */
  uint64_t max_text_bytes; /* of pipeline.json; 0: 64 MiB */
  bool for_training;       /* accept stages that only psplit_train can run */
} psplit_pipeline_options;

static inline void psplit_pipeline_options_init(psplit_pipeline_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Reads directory/pipeline.json; each run opens the stages. `options` may be NULL: defaults. The
 * caller owns *out_pipeline. Errors: IO, LIMIT, MALFORMED, INVALID (inconsistent tables of stages),
 * UNSUPPORTED, USAGE, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_pipeline_open(const char *directory,
                                                            const psplit_pipeline_options *options,
                                                            psplit_diag *diag,
                                                            psplit_pipeline **out_pipeline);
PSPLIT_API void psplit_pipeline_close(psplit_pipeline *pipeline); /* NULL is fine */
PSPLIT_API const psplit_pipeline_info *psplit_pipeline_get_info(const psplit_pipeline *pipeline);

/* View of a dense numeric tensor: row-major, little-endian, packed. */
typedef struct psplit_tensor_view {
  int32_t data_type; /* TensorProto.DataType of ONNX: 1 float, 7 int64, ... */
  uint32_t n_dims;
  const int64_t *dims;
  const void *data; /* NULL for strings: such outputs can be written to files only */
  uint64_t n_bytes;
} psplit_tensor_view;

/* A file for an input: .npy, .npz, .pb (TensorProto; SequenceProto for sequences), otherwise raw
 * bytes. {} in the path is replaced by the number of the micro-batch. */
typedef struct psplit_feed_file {
  const char *input; /* NULL: an .npz whose arrays are named after inputs */
  const char *path;
} psplit_feed_file;

/* Shape of an input with dynamic dimensions. */
typedef psplit_input_size psplit_feed_shape;

/* Range of generated values of an input: low..high, random with the seed; integers for integer
 * types, both ends included. low == high: a constant. Errors of a run: USAGE (low > high, or not
 * representable in the input's type). */
typedef struct psplit_feed_range {
  const char *input;
  double low, high;
} psplit_feed_range;

/* Callback that provides input `input` of a micro-batch, warm-up included, in *out. The memory must
 * remain valid until the next call for the same input (it is copied). Called by threads of stages,
 * concurrently for different inputs. Any result but OK ends the run. */
typedef psplit_code (*psplit_give_input)(void *user, uint32_t micro_batch, const char *input,
                                         psplit_diag *diag, psplit_tensor_view *out);

/* Sources of inputs. The first applicable of these is used: files, ranges, `give`, random
 * numbers. */
typedef struct psplit_feed_options {
  size_t struct_size;
  const psplit_feed_file *files;
  size_t n_files;
  const psplit_dim_value *dims; /* values of symbolic dimensions */
  size_t n_dims;
  const psplit_feed_shape *shapes;
  size_t n_shapes;
  /* Floats are in [-1, 1), integers in 0..99, 8-bit types arbitrary. Masks, lengths and positions,
   * recognised by exporters' names, are made consistent with the other inputs. */
  bool random;
  uint64_t seed;          /* random numbers depend on it, the input's name and the micro-batch */
  psplit_give_input give; /* for inputs without a default that no file gives; may be NULL */
  void *give_user;
  bool safe_casts; /* convert files of another type if the input's type holds all values */
  const psplit_feed_range *ranges;
  size_t n_ranges;
  /* Limit on compressed .npz arrays that expand more than five-fold, if the size of the input is
   * unknown; 0: 64 MiB. */
  uint64_t max_unpacked_bytes;
} psplit_feed_options;

/* The defaults: no inputs, seed 1. */
PSPLIT_API void psplit_feed_options_defaults(psplit_feed_options *options, size_t struct_size);
static inline void psplit_feed_options_init(psplit_feed_options *options) {
  psplit_feed_options_defaults(options, sizeof *options);
}

/* Checks that the inputs and dimensions named in `feed` exist in the pipeline, since a misspelt one
 * would have no effect. Runs do this themselves. Errors: USAGE (with the nearest name), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_feed_check(const psplit_feed_options *feed,
                                                         const psplit_pipeline *pipeline,
                                                         psplit_diag *diag);
/* The same for a whole model. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_feed_check_model(const psplit_feed_options *feed,
                                                               const psplit_model *model,
                                                               psplit_diag *diag);

/* Whether `path` is a stream of tensors: "-" (standard input or output), a pipe, a device, or an
 * open descriptor by name (/dev/stdin, /dev/fd/3). */
PSPLIT_API bool psplit_is_tensor_stream(const char *path);

/* Callback that receives output `output` (index in the model's outputs) of a micro-batch. Called by
 * threads of stages: concurrently for different outputs, in the order of micro-batches for each
 * output. The tensor is valid during the call. Any result but OK ends the run. */
typedef psplit_code (*psplit_take_output)(void *user, uint32_t micro_batch, uint32_t output,
                                          const psplit_tensor_view *tensor, psplit_diag *diag);

/* As n_micro_batches of a stream: until the input ends. */
#define PSPLIT_RUN_ENDLESS UINT32_MAX

/* What a run does if a micro-batch cannot be read, fails in a stage or misses its deadline. Earlier
 * micro-batches are delivered in any case. */
typedef enum psplit_on_error {
  PSPLIT_ON_ERROR_STOP, /* ends the run with that failure */
  PSPLIT_ON_ERROR_SKIP  /* skips it: no outputs, but listed in the report */
} psplit_on_error;

/* The set of delivered micro-batches of a run: those whose outputs were all written, passed to the
 * callback, or not requested. Can be queried at any time from any thread, also after a failure. */
typedef struct psplit_delivered psplit_delivered;
typedef struct psplit_range {
  uint64_t first, last; /* micro-batches, both included */
} psplit_range;
enum { PSPLIT_MOST_RANGES = 1024 };

/* Nothing is delivered yet. The caller owns *out_delivered. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_delivered_create(psplit_diag *diag,
                                                               psplit_delivered **out_delivered);
PSPLIT_API void psplit_delivered_destroy(psplit_delivered *delivered); /* NULL is fine */
/* Copies the first `most` ranges, in order, and returns their number; *out_n (may be NULL) receives
 * the number of micro-batches. At most PSPLIT_MOST_RANGES ranges are kept. */
PSPLIT_API uint32_t psplit_delivered_get(psplit_delivered *delivered, psplit_range *out_ranges,
                                         uint32_t most, uint64_t *out_n);

typedef struct psplit_run_options {
  size_t struct_size;
  /* Sessions of the stages. n_sessions 0: one thread, all optimisations, CPU; 1: the same for all
   * stages; otherwise one per stage, or one per replica of each stage, in order. Unset fields have
   * their defaults. */
  const psplit_session *sessions;
  size_t n_sessions;
  const psplit_feed_options *feed; /* NULL: the model needs no inputs */
  uint32_t n_micro_batches; /* measured micro-batches, at least 1; for a stream, an upper limit */
  uint32_t n_warmup;        /* before measuring; outputs are discarded; 0 for a stream */
  /* Capacity of the queues between stages; 0: 2, but up to 32 if no stage is planned to take 200 us
   * or more, all queued data is at most 1 MiB, and there is no deadline. */
  uint32_t depth;
  bool stream;        /* inputs are streams: "-", pipes, or {} counting up */
  bool pin;           /* pin each stage to a core, if there are enough */
  bool one_at_a_time; /* only one stage computes at a time, to measure each in isolation */
  /* Destination of outputs: a directory, which is created, for files MICROBATCH-OUTPUT.npy (.pb for
   * types that numpy lacks) and outputs.json; or a tensor stream, for a sequence of .npy. NULL:
   * none. */
  const char *output;
  psplit_take_output take_output; /* instead of `output`; may be NULL */
  void *take_output_user;
  const volatile int *cancel; /* see base.h */
  /* Called if threads are still running 2 s after the first failure or cancellation, because a node
   * still computes or a file is never written, which cannot be interrupted; `diag` names them. It
   * must end the process. NULL: wait for the threads. */
  void (*give_up)(void *user, const psplit_diag *diag);
  void *give_up_user;
  double timeout_s;     /* MPI: timeout for messages of other ranks */
  uint64_t chunk_bytes; /* MPI: maximum size of a message, at most 2^30 */
  /* Timeout for ONNX Runtime to open or close a stage or to run a micro-batch, and for a named pipe
   * to be opened at its other end; 0: none. A connected source or reader may be slow. */
  double stall_timeout_s;
  /* Maximum time from the inputs of a micro-batch to its outputs; it fails afterwards. 0:
   * unlimited. */
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

/* The defaults: one micro-batch after one warm-up, timeout 60 s, messages of 1 GiB, otherwise 0 or
 * NULL. */
PSPLIT_API void psplit_run_options_defaults(psplit_run_options *options, size_t struct_size);
static inline void psplit_run_options_init(psplit_run_options *options) {
  psplit_run_options_defaults(options, sizeof *options);
}

/* A skipped micro-batch. */
typedef struct psplit_run_failure {
  uint64_t micro_batch;
  psplit_code code;
  const char *message;
} psplit_run_failure;

/* Means over the micro-batches of a stage, ns. */
typedef struct psplit_stage_report {
  int64_t busy_ns;     /* in ONNX Runtime */
  int64_t wait_in_ns;  /* for inputs */
  int64_t wait_out_ns; /* for space in the queues of its outputs */
  int64_t transfer_ns; /* transfer time of its inputs, overlapped with waiting and computing */
  uint64_t bytes;      /* received from other stages, over MPI */
  uint32_t n_replicas; /* threads that computed it */
} psplit_stage_report;

typedef struct psplit_run_report {
  uint32_t n_stages;
  uint64_t n_micro_batches;
  double seconds;    /* from the first input to the last output */
  double throughput; /* micro-batches a second */
  /* Micro-batches per second between the first and the last output, i.e. without filling and
   * draining. 0 for a single one. */
  double steady_throughput;
  /* Of a micro-batch, from its first to its last stage. */
  int64_t latency_median_ns, latency_max_ns;
  double bubble_frac;      /* fraction of the stages' time in which they did not compute */
  double bubble_fill_frac; /* the part due to filling and draining */
  const psplit_stage_report *stages; /* [n_stages] */
  uint64_t first_micro_batch;        /* as requested */
  uint64_t n_delivered;              /* of n_micro_batches */
  uint32_t n_ranges;                 /* of these, in order, at most PSPLIT_MOST_RANGES */
  const psplit_range *delivered;     /* [n_ranges] */
  uint64_t n_failed;                 /* of n_micro_batches: skipped */
  uint32_t n_failures;               /* the first of these, at most 256 */
  const psplit_run_failure *failures;
  /* Deviation from the plan. drift_ratio: measured over predicted time of all stages (below 1 on a
   * faster machine). worst_drift_ratio: that of the worst stage relative to drift_ratio; 1 if all
   * deviate equally, and if it is far above, another cut would be better. 0: a prediction is
   * missing. */
  double drift_ratio, worst_drift_ratio;
  uint32_t worst_drift_stage;
} psplit_run_report;

/* Measurements of a finished run. */
typedef struct psplit_run psplit_run;

/* Runs the pipeline in this process, one thread per stage, and returns when all have ended. The
 * first failure stops all stages; its message names the stage, its file and the micro-batch.
 * Memory: that of the sessions and of `depth` micro-batches per stage. The caller owns *out_run;
 * `ort` and `pipeline` must outlive it. Errors: USAGE (options, inputs), IO (files), CANCELLED,
 * INVALID (ONNX Runtime rejects a stage or fails), MALFORMED, UNSUPPORTED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_pipeline_run(const psplit_onnxruntime *ort,
                                                           psplit_pipeline *pipeline,
                                                           const psplit_run_options *options,
                                                           psplit_diag *diag, psplit_run **out_run);
PSPLIT_API void psplit_run_destroy(psplit_run *run); /* NULL is fine */

/* Owned by the run. */
PSPLIT_API const psplit_run_report *psplit_run_get_report(const psplit_run *run);

/* Report and predictions as JSON (docs/running.md); malloc'd. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_run_report_json(const psplit_run *run,
                                                              psplit_diag *diag, char **out_text);

/* The last 16,384 micro-batches in the trace event format of Perfetto and chrome://tracing: one
 * process per stage, with rows for computing and waiting; malloc'd. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_run_trace_json(const psplit_run *run,
                                                             psplit_diag *diag, char **out_text);

/* Difference of an output of the pipeline from that of the whole model, over all micro-batches. */
typedef struct psplit_output_difference {
  uint64_t n_elements, n_different; /* bitwise; over all tensors of a sequence or map */
  double max_abs, max_rel; /* of these; rel: over the model's; infinite with NaN, strings */
  bool random;             /* differs, and so do two runs of the model itself */
  /* Differs, and depends on transferred float16 tensors: a cut rounds them, whereas ONNX Runtime
   * may keep float32 within a file. */
  bool rounded;
  bool added; /* added for training, such as the loss: nothing to compare with */
} psplit_output_difference;

/* Runs the whole model `model_path`, then the pipeline as psplit_pipeline_run does, on the same
 * inputs and with options->sessions[0] for all stages (options->output, take_output, stream and
 * first_micro_batch are ignored, and n_micro_batches must be finite). For pipelines that train,
 * sessions do not prepack weights, which are inputs there. out[info->n_outputs] is provided by the
 * caller. Errors: MISMATCH if types or shapes differ; those of running. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_compare_run(
  const psplit_onnxruntime *ort, const char *model_path, psplit_pipeline *pipeline,
  const psplit_run_options *options, psplit_diag *diag, psplit_output_difference *out);

#ifdef __cplusplus
}
#endif
#endif
