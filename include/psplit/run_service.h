/* A pipeline that stays at work and takes requests as they come, from any thread: libpsplit-run.
 *
 * A request is one set of inputs. It goes through the pipeline behind those that were accepted
 * before it, and is answered exactly once: with all outputs of the model or with one failure. */
#ifndef PSPLIT_RUN_SERVICE_H
#define PSPLIT_RUN_SERVICE_H

#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_service psplit_service;

typedef struct psplit_service_options {
  size_t struct_size;   /* set by psplit_service_options_init() */
  uint32_t max_waiting; /* accepted requests that wait for the first stage; at least 1 */
  /* Requests that wait are joined along the dimension `batch_dim`, which the model leaves open and
   * all its outputs have, up to max_batch rows; the first of them waits at most so long for others.
   * Only models that treat each row by itself give what they give one by one; where a joined run
   * fails, its requests run again, each alone. 0 or 1: none are joined. */
  uint32_t max_batch;
  double batch_delay_s;
  const char *batch_dim; /* NULL: "batch" */
  /* Each stage is a process of its own, which this command starts, a list that NULL ends: the path
   * of a program, which has to call psplit_stage_process(), and its arguments; the stage's number
   * is added. One that ends, whatever ends it, is started again, and computes again what it had:
   * all that was accepted is answered once. A request that ends it twice fails, with PLUGIN; so
   * does one that it is at for longer than run->stall_timeout_s twice. Each tensor is copied there
   * and back. NULL: threads of this process. Not over MPI. */
  const char *const *stage_command;
} psplit_service_options;

/* At most 64 wait, none are joined. */
PSPLIT_API void psplit_service_options_defaults(psplit_service_options *options,
                                                size_t struct_size);
static inline void psplit_service_options_init(psplit_service_options *options) {
  psplit_service_options_defaults(options, sizeof *options);
}

/* Opens all stages and returns when they can take requests. Of `run` are used: sessions, depth,
 * pin, one_at_a_time, give_up, the timeouts, deadline_s for requests that say none, and `cancel`,
 * which ends the opening (CANCELLED), and nothing once it is done, but see psplit_service_stop;
 * NULL: their defaults. `own` may be NULL. One service or run of a pipeline at a time; `ort`,
 * `pipeline` and the flag outlive *out_service, which the caller owns. Errors: those of
 * psplit_pipeline_run. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_start(
  const psplit_onnxruntime *ort, psplit_pipeline *pipeline, const psplit_run_options *run,
  const psplit_service_options *own, psplit_diag *diag, psplit_service **out_service);

/* The program of options->stage_command calls this first, and with nothing opened or started: it
 * serves one stage on file descriptors 3 and 4, and ends the process with the service. It returns
 * only where no service started it. SIGINT, SIGTERM and SIGHUP are ignored: they are the service's.
 * Errors: USAGE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_stage_process(psplit_diag *diag);

/* A tensor by its name in the model. Strings: `data` has n_elements lengths (uint64_t), then their
 * bytes one after the other. An output that is not a tensor (a sequence, a map, an optional value)
 * has only a name, with data_type 0. */
typedef struct psplit_named_tensor {
  const char *name;
  psplit_tensor_view tensor;
} psplit_named_tensor;

typedef struct psplit_response {
  uint64_t id;
  psplit_code code;    /* OK, or why there are no outputs */
  const char *message; /* "" where it is OK */
  uint32_t n_outputs;  /* those of the model, in its order */
  const psplit_named_tensor *outputs;
  int64_t waited_ns; /* from its submission until the first stage could take it */
  int64_t total_ns;  /* until it was answered */
} psplit_response;

/* Gets an answer, which is lent for the call; by a thread of the service, or by that which cancels
 * or stops. It must not wait for other answers. */
typedef void (*psplit_respond)(void *user, const psplit_response *response);

typedef struct psplit_request {
  size_t struct_size;                /* set by psplit_request_init() */
  const psplit_named_tensor *inputs; /* each that the model needs, once; copied */
  uint32_t n_inputs;
  double deadline_s;      /* from now to its answer; 0: run->deadline_s of the service */
  bool wait;              /* for room, where max_waiting are waiting; else that is LIMIT */
  psplit_respond respond; /* NULL: psplit_service_wait takes the answer */
  void *user;
} psplit_request;

/* No inputs, and no function to be called with the answer. */
PSPLIT_API void psplit_request_defaults(psplit_request *request, size_t struct_size);
static inline void psplit_request_init(psplit_request *request) {
  psplit_request_defaults(request, sizeof *request);
}

/* Hands in a request; *out_id, which may be NULL, is set before its answer can come. From any
 * thread. Errors, where it was not accepted: USAGE and INVALID (its inputs), LIMIT (no room), IO
 * (the service has ended), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_submit(psplit_service *service,
                                                             const psplit_request *request,
                                                             psplit_diag *diag, uint64_t *out_id);

/* Waits at most so long for the answer to a request that has no `respond`; once for each of them,
 * else answers pile up. The caller owns *out_response. Errors: USAGE (no such request), LIMIT (not
 * yet). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_wait(psplit_service *service, uint64_t id,
                                                           double most_s, psplit_diag *diag,
                                                           const psplit_response **out_response);
PSPLIT_API void psplit_response_release(const psplit_response *response); /* NULL is fine */
/* In a callback that got an answer which is OK: makes it the caller's, too, to be released later.
 */
PSPLIT_API void psplit_response_keep(const psplit_response *response);

/* Answers a request at once, with IO "cancelled", and computes it no more where it still waits for
 * the first stage. False where it has been answered, or there is none. */
PSPLIT_API bool psplit_service_cancel(psplit_service *service, uint64_t id);

/* What has happened since the start. */
typedef struct psplit_service_stats {
  size_t struct_size;        /* set by the caller: sizeof */
  uint64_t n_accepted;       /* requests */
  uint64_t n_refused;        /* for want of room */
  uint64_t n_good, n_failed; /* answers */
  uint32_t n_waiting;        /* for the first stage, now */
  uint32_t n_under_way;      /* in the stages, now */
} psplit_service_stats;
/* Fills out->struct_size bytes. Any thread may. */
PSPLIT_API void psplit_service_get_stats(psplit_service *service, psplit_service_stats *out);

/* What a stage has done since the start. Over MPI, what other ranks last told, each second. */
typedef struct psplit_service_stage_stats {
  size_t struct_size;       /* set by the caller: sizeof */
  uint64_t n_micro_batches; /* that it has computed */
  int64_t busy_ns;          /* that ONNX Runtime had it */
  uint32_t n_restarts;      /* of its process */
  /* Resident, of its process or rank; 0: it has none of its own, or it is not known. */
  uint64_t resident_bytes;
} psplit_service_stage_stats;
/* Of a stage that there is; fills out->struct_size bytes. Any thread may. */
PSPLIT_API void psplit_service_get_stage(const psplit_service *service, uint32_t stage,
                                         psplit_service_stage_stats *out);

/* Whether it takes requests: it has not been stopped, and no stage has broken down. */
PSPLIT_API bool psplit_service_is_ready(psplit_service *service);

/* Takes no more requests, and returns when all that were accepted have been answered, after most_s
 * (0: at once) with failures, and the stages have ended, which after 2 s more they are made to; 2 s
 * behind the last answer where run->cancel is set. Once. Errors: that of a stage that broke down;
 * over MPI also CANCELLED, where ranks are left that did not end. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_service_stop(psplit_service *service, double most_s,
                                                           psplit_diag *diag);
/* Stops it at once where it was not; NULL is fine. */
PSPLIT_API void psplit_service_destroy(psplit_service *service);

#ifdef __cplusplus
}
#endif
#endif
