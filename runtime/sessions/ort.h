/* ONNX Runtime: the library and its sessions. */
#ifndef PSPLIT_RUNTIME_ORT_H
#define PSPLIT_RUNTIME_ORT_H

#include <pthread.h>

#include "tensor.h"

/* The open library with its environment; read-only once open, shared by threads. */
struct psplit_i_ort {
  void *library;
  OrtApi api;
  const char *version;
  bool has_placement; /* it tells which provider runs which node: 1.24 and newer */
  OrtPlacementApi placement;
  OrtEnv *env;
  OrtAllocator *allocator; /* of CPU memory, the library's own */
  pthread_mutex_t *alone;  /* held while a session of a provider of that kind is at work */
  char **custom_ops;       /* [n_custom_ops] libraries that all sessions get, by absolute paths */
  size_t n_custom_ops;
};

/* Opens `path`, else the file that PSPLIT_ONNXRUNTIME names, else libonnxruntime.so.1 or
 * libonnxruntime.so where the loader looks. Errors: IO (no library; says how to get one),
 * UNSUPPORTED (not ONNX Runtime, or too old), PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_ort_open(const char *path, psplit_diag *diag,
                                              psplit_i_ort *out);
void psplit_i_ort_close(psplit_i_ort *ort); /* a zeroed one is fine */

/* Behind psplit_onnxruntime_add_custom_ops; leaves `ort` as it is where it fails. */
PSPLIT_MUST_USE psplit_code psplit_i_ort_add_custom_ops(psplit_i_ort *ort, const char *path,
                                                        psplit_diag *diag);
/* By psplit_i_session_open: those libraries before, creating the session, and after a failure what
 * would help where an operator is unknown and there are none. */
PSPLIT_MUST_USE psplit_code psplit_i_custom_ops_register(const psplit_i_ort *ort,
                                                         OrtSessionOptions *settings,
                                                         psplit_diag *diag);
OrtStatus *psplit_i_custom_ops_create(const psplit_i_ort *ort, const char *path,
                                      const OrtSessionOptions *settings, OrtSession **out);
void psplit_i_custom_ops_advise(const psplit_i_ort *ort, psplit_diag *diag);

/* Turns a status into a failure "<what>: <message>" and releases it; NULL is OK. Errors: NOMEM
 * where the message says that memory ran out, else INVALID. */
PSPLIT_MUST_USE psplit_code psplit_i_ort_check(const psplit_i_ort *ort, OrtStatus *status,
                                               const char *what, psplit_diag *diag);

typedef struct psplit_i_session_options {
  int optimization;           /* 0 none, 1 basic, 2 extended, 99 all */
  uint32_t n_threads;         /* within an operator; 0: as many as there are cores */
  const char *profile_prefix; /* NULL: no profile */
  const char *optimized_path; /* where the model is written as it will run; NULL: nowhere */
  const char *provider; /* execution provider, with or without "ExecutionProvider"; NULL: CPU */
  size_t n_provider_options;
  const char *const *provider_keys, *const *provider_values;
  size_t n_config; /* configuration entries */
  const char *const *config_keys, *const *config_values;
  bool record_placement; /* for psplit_i_session_placed */
  bool assert_placement; /* a node on the CPU, but for host_nodes, is an error */
  size_t n_host_nodes;   /* names, or patterns of them */
  const char *const *host_nodes;
} psplit_i_session_options;

/* Whether what sessions of this provider do at the same time, creating, running and ending, goes
 * wrong or hangs, so that it has to be done one after the other. `provider` may be NULL. */
bool psplit_i_provider_is_alone(const char *provider);

/* Whether `given`, a provider as users name it (NULL: none), is the one of that full name. */
bool psplit_i_provider_is(const char *given, const char *name);

/* Adds options->provider to `settings`, before the CPU, which takes what it cannot run. Errors:
 * UNSUPPORTED (the library has no such provider; lists what it has), INVALID (it does not start).
 */
PSPLIT_MUST_USE psplit_code psplit_i_provider_append(const psplit_i_ort *ort,
                                                     OrtSessionOptions *settings,
                                                     const psplit_i_session_options *options,
                                                     psplit_diag *diag);

typedef struct psplit_i_session_port {
  char *name;     /* allocated by ONNX Runtime */
  bool is_tensor; /* inputs only, like all below */
  bool is_sequence;
  int32_t data_type;
  size_t n_dims;                          /* 0: a scalar, or ONNX Runtime is not told */
  bool any_rank;                          /* pipeline.json is not: n_dims is made up */
  int64_t dims[PSPLIT_I_MAX_RANK];        /* -1: not fixed */
  const char *symbols[PSPLIT_I_MAX_RANK]; /* "" where there is none; the session's */
  OrtTypeInfo *type;
} psplit_i_session_port;

typedef struct psplit_i_session {
  const psplit_i_ort *ort;
  OrtSession *session;
  OrtRunOptions *run_options; /* for psplit_i_session_stop */
  /* Where the provider's outputs may stay, and what says that they do; NULL: it has no such memory,
   * or it is the host's. */
  OrtMemoryInfo *device, *host;
  OrtIoBinding *binding;
  bool shared;                /* `session` and ports are another's */
  size_t n_inputs, n_outputs; /* inputs with a default stand behind the others */
  psplit_i_session_port *inputs, *outputs;
} psplit_i_session;

/* Errors: IO (no such file), INVALID (ONNX Runtime does not take it; with assert_placement: the
 * provider leaves nodes to the CPU, which it names, or, before 1.24, ONNX Runtime's words), USAGE
 * (options of the provider), UNSUPPORTED (record_placement, and the library is older than 1.24),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_session_open(const psplit_i_ort *ort, const char *path,
                                                  const psplit_i_session_options *options,
                                                  psplit_diag *diag, psplit_i_session *out);
void psplit_i_session_close(psplit_i_session *session); /* a zeroed one is fine */
/* The same session for another thread, which runs it at the same time, with weights there once.
 * `from` is closed after it, and has no binding. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_session_share(const psplit_i_session *from, psplit_diag *diag,
                                                   psplit_i_session *out);

/* A node that ONNX Runtime gave to a provider; strings are the session's. A node that its optimiser
 * made has a name of its own, most often one that begins with that of a node it is made from. */
typedef struct psplit_i_placed {
  const char *provider; /* full name */
  const char *name, *op_type;
} psplit_i_placed;

/* Which provider runs which node, of a session opened with record_placement. Bodies and inlined
 * functions count. What the CPU runs is all there; of providers that change the layout of tensors
 * (WebGPU), ONNX Runtime up to 1.30 tells few of the nodes that they take. The caller frees *out.
 * Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_session_placed(const psplit_i_session *session,
                                                    psplit_diag *diag, psplit_i_placed **out,
                                                    size_t *out_n);
/* By psplit_i_session_open: settings before, and options->assert_placement after. */
PSPLIT_MUST_USE psplit_code psplit_i_placement_prepare(const psplit_i_ort *ort,
                                                       OrtSessionOptions *settings,
                                                       const psplit_i_session_options *options,
                                                       psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_placement_check(const psplit_i_session *session,
                                                     const psplit_i_session_options *options,
                                                     psplit_diag *diag);

const psplit_i_session_port *psplit_i_session_input(const psplit_i_session *session,
                                                    const char *name);

/* Inputs and outputs of one run of a session, by name; arrays are the caller's. */
typedef struct psplit_i_session_io {
  const char *const *input_names;
  psplit_i_tensor *const *inputs;
  size_t n_inputs;
  const char *const *output_names;
  psplit_i_tensor **outputs; /* set by the run */
  size_t n_outputs;
} psplit_i_session_io;

/* On success the caller owns the tensors in io->outputs. Errors: INVALID (ONNX Runtime reports a
 * failure), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_session_run(psplit_i_session *session,
                                                 const psplit_i_session_io *io, psplit_diag *diag);

/* The same of a session with a binding; outputs with stays[n_outputs] stay in the device's memory:
 * they are inputs of later runs, and their data is not to be looked at. All others come to the
 * host. */
PSPLIT_MUST_USE psplit_code psplit_i_session_run_on_device(psplit_i_session *session,
                                                           const psplit_i_session_io *io,
                                                           const bool *stays, psplit_diag *diag);
/* By psplit_i_session_open and _close: which device has that memory, and finds it. Errors: USAGE,
 * where the provider's options name no device. */
PSPLIT_MUST_USE psplit_code psplit_i_binding_device(const psplit_i_session_options *options,
                                                    psplit_diag *diag, int *out);
void psplit_i_binding_open(psplit_i_session *session, const psplit_i_session_options *options,
                           int device);
void psplit_i_binding_close(psplit_i_session *session);

/* Makes the run under way, if any, and all later ones fail. From any thread. */
void psplit_i_session_stop(psplit_i_session *session);
/* Later ones run again. */
void psplit_i_session_go_on(psplit_i_session *session);

#endif
