/* A long-running pipeline that serves requests from any thread: libpsplit-run.
 *
 * A request is one set of inputs. Requests pass through the pipeline in the order of acceptance,
 * and each is answered exactly once: with all outputs of the model or with a failure. */
#ifndef PSPLIT_RUN_SERVICE_H
#define PSPLIT_RUN_SERVICE_H

#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_service psplit_service;

typedef struct psplit_service_options {
  size_t struct_size;   /* set by psplit_service_options_init() */
  uint32_t max_waiting; /* capacity of the queue of accepted requests; at least 1 */
  /* Dynamic batching: queued requests are concatenated along the dimension `batch_dim`, which must
   * be dynamic in the model and part of all its outputs, up to max_batch rows; the first request
   * waits at most batch_delay_s for others. Results are unchanged only for models that treat rows
   * independently. If a batch fails, its requests are run again individually. 0 or 1: no
   * batching. */
  uint32_t max_batch;
  double batch_delay_s;
  const char *batch_dim; /* NULL: "batch" */
  /* If set, each stage is a separate process, started by this NULL-terminated command: the path of
   * a program, which must call psplit_stage_process(), and its arguments; the stage's number is
   * appended. A process that ends for any reason is restarted and repeats its pending work, so that
   * each accepted request is answered once. A request that terminates a process twice, or twice
   * exceeds run->stall_timeout_s, fails with PLUGIN. Tensors are copied in both directions. NULL:
   * threads of this process. Not over MPI. */
  const char *const *stage_command;
} psplit_service_options;

/* The defaults: a queue of 64, no batching. */
PSPLIT_API void psplit_service_options_defaults(psplit_service_options *options,
                                                size_t struct_size);
static inline void psplit_service_options_init(psplit_service_options *options) {
  psplit_service_options_defaults(options, sizeof *options);
}

/* Opens all stages and returns when they accept requests. Of `run`, these are used: sessions,
 * depth, pin, one_at_a_time, give_up, the timeouts, deadline_s for requests without one, and
 * `cancel`, which cancels the opening (CANCELLED) and has no effect afterwards, except for
 * psplit_service_stop; NULL: the defaults. `own` may be NULL. Only one service or run of a pipeline
 * at a time; `ort`, `pipeline` and the flag must outlive *out_service, which the caller owns.
 * Errors: those of psplit_pipeline_run. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_start(
  const psplit_onnxruntime *ort, psplit_pipeline *pipeline, const psplit_run_options *run,
  const psplit_service_options *own, psplit_diag *diag, psplit_service **out_service);

/* To be called first by the program of options->stage_command, before it opens or starts anything:
 * serves one stage on file descriptors 3 and 4, and exits with the service. Returns only if the
 * process was not started by a service. Ignores SIGINT, SIGTERM and SIGHUP, which the service
 * handles. Errors: USAGE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_stage_process(psplit_diag *diag);

/* A tensor by its name in the model. Strings: `data` has n_elements lengths (uint64_t), followed by
 * the concatenated bytes. An output that is not a tensor (a sequence, a map, an optional value) has
 * only a name, with data_type 0. */
typedef struct psplit_named_tensor {
  const char *name;
  psplit_tensor_view tensor;
} psplit_named_tensor;

typedef struct psplit_response {
  uint64_t id;
  psplit_code code;    /* OK, or why there are no outputs */
  const char *message; /* "" for OK */
  uint32_t n_outputs;  /* those of the model, in its order */
  const psplit_named_tensor *outputs;
  int64_t waited_ns; /* from submission until the first stage was ready for it */
  int64_t total_ns;  /* until it was answered */
} psplit_response;

/* Callback for a response, which is valid during the call. Called by a thread of the service, or
 * the thread that cancels or stops. It must not wait for other responses. */
typedef void (*psplit_respond)(void *user, const psplit_response *response);

typedef struct psplit_request {
  size_t struct_size;                /* set by psplit_request_init() */
  const psplit_named_tensor *inputs; /* all required inputs, once each; copied */
  uint32_t n_inputs;
  double deadline_s;      /* from submission to response; 0: run->deadline_s of the service */
  bool wait;              /* block while the queue is full; otherwise LIMIT */
  psplit_respond respond; /* NULL: the response is retrieved by psplit_service_wait */
  void *user;
} psplit_request;

/* The defaults: no inputs, no callback. */
PSPLIT_API void psplit_request_defaults(psplit_request *request, size_t struct_size);
static inline void psplit_request_init(psplit_request *request) {
  psplit_request_defaults(request, sizeof *request);
}

/* Submits a request, from any thread; *out_id (may be NULL) is set before the response can arrive.
 * Errors, if it was not accepted: USAGE and INVALID (its inputs), LIMIT (queue full), IO (the
 * service has ended), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_submit(psplit_service *service,
                                                             const psplit_request *request,
                                                             psplit_diag *diag, uint64_t *out_id);

/* Waits up to most_s for the response to a request without `respond`. To be called once per
 * request, since responses are kept until then. The caller owns *out_response. Errors: USAGE (no
 * such request), LIMIT (not yet available). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_wait(psplit_service *service, uint64_t id,
                                                           double most_s, psplit_diag *diag,
                                                           const psplit_response **out_response);
PSPLIT_API void psplit_response_release(const psplit_response *response); /* NULL is fine */
/* In a callback, for a successful response: extends its lifetime until the caller releases it. */
PSPLIT_API void psplit_response_keep(const psplit_response *response);

/* Cancels a request: it is answered immediately with IO "cancelled", and not computed if it is
 * still queued. False if it was already answered or does not exist. */
PSPLIT_API bool psplit_service_cancel(psplit_service *service, uint64_t id);

/* Statistics since the start. */
typedef struct psplit_service_stats {
  size_t struct_size;        /* set by the caller: sizeof */
  uint64_t n_accepted;       /* requests */
  uint64_t n_refused;        /* since the queue was full */
  uint64_t n_good, n_failed; /* answers */
  uint32_t n_waiting;        /* for the first stage, now */
  uint32_t n_under_way;      /* in the stages, now */
} psplit_service_stats;
/* Fills out->struct_size bytes. Thread-safe. */
PSPLIT_API void psplit_service_get_stats(psplit_service *service, psplit_service_stats *out);

/* Statistics of a stage since the start. Over MPI, other ranks report once per second. */
typedef struct psplit_service_stage_stats {
  size_t struct_size;       /* set by the caller: sizeof */
  uint64_t n_micro_batches; /* computed */
  int64_t busy_ns;          /* time in ONNX Runtime */
  uint32_t n_restarts;      /* of its process */
  /* Resident memory of its process or rank; 0: it has no process of its own, or unknown. */
  uint64_t resident_bytes;
} psplit_service_stage_stats;
/* Statistics of an existing stage; fills out->struct_size bytes. Thread-safe. */
PSPLIT_API void psplit_service_get_stage(const psplit_service *service, uint32_t stage,
                                         psplit_service_stage_stats *out);

/* Whether it accepts requests: it was not stopped, and no stage has failed. */
PSPLIT_API bool psplit_service_is_ready(psplit_service *service);

/* Accepts no more requests, and returns when all accepted ones are answered and the stages have
 * ended. After most_s (0: immediately), or 2 s after the last response if run->cancel is set,
 * remaining requests fail; after 2 more seconds the stages are terminated. To be called once.
 * Errors: that of a failed stage; over MPI also CANCELLED, if some ranks did not end. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_stop(psplit_service *service, double most_s,
                                                           psplit_diag *diag);
/* Stops it immediately if it is still running; NULL is fine. */
PSPLIT_API void psplit_service_destroy(psplit_service *service);

#ifdef __cplusplus
}
#endif
#endif
