/* Opening an ONNX model. */
#ifndef PSPLIT_MODEL_H
#define PSPLIT_MODEL_H

#include <psplit/activity.h>
#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open model: its structure in memory, its weights still in their files. Read-only, so threads
 * may share it. Holds file descriptors for the model and its external data. */
typedef struct psplit_model psplit_model;

/* Value of a symbolic dimension, used only for costs; never written to emitted files. */
typedef struct psplit_dim_value {
  const char *name;
  int64_t value; /* >= 0 */
} psplit_dim_value;

/* An If of the main graph to be replaced by one of its branches. */
typedef struct psplit_inline_if {
  const char *node; /* its name, or that of one of its outputs */
  bool then_branch;
} psplit_inline_if;

/* Shape of an input, which may have dynamic dimensions in the model. */
typedef struct psplit_input_size {
  const char *input;
  uint32_t n_dims; /* at most 32 */
  const int64_t *dims;
} psplit_input_size;

typedef struct psplit_read_options {
  size_t struct_size; /* set by psplit_read_options_init() */
  /* Limit on memory for the structure (not the weights); 0: 32 times the file, but at least 256 MiB
   * and at most 2 GiB. */
  uint64_t max_graph_bytes;
  bool follow_symlinks; /* external data may be a symbolic link, as in model hubs' caches */
  /* Ifs to replace by the nodes of one branch, in order, so that an If of an inlined branch can
   * follow: the open model is then the file's with these Ifs replaced. If the condition is not
   * constant, it is equivalent only for inputs for which the condition has that value
   * (psplit_model_inlined). */
  const psplit_inline_if *inline_ifs;
  size_t n_inline_ifs;
  bool is_stage; /* of a split: its training_info may bind weights of other stages */
  /* Directory of external data; copied. NULL: that of the model file; a model opened from memory or
   * a descriptor must then have no external data. */
  const char *data_directory;
  const volatile int *cancel; /* see base.h; only used until the model is open */
  psplit_activity *activity;  /* see activity.h: bytes of the file; likewise */
} psplit_read_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_read_options_init(psplit_read_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Opens the model file `path`; `options` may be NULL. On success the caller owns *out_model.
 * Errors: USAGE (no such If to inline, or one whose branch cannot replace it, with the reason), IO
 * (cannot be read), MALFORMED (not protobuf, not a model), INVALID (violates a rule of ONNX: the
 * message names the node or tensor), UNSUPPORTED, LIMIT (depth, counts, max_graph_bytes), NOMEM,
 * CANCELLED; *out_model is untouched then. Reads the structure once, in O(its bytes); skips
 * weights. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_open(const char *path,
                                                         const psplit_read_options *options,
                                                         psplit_diag *diag,
                                                         psplit_model **out_model);

/* The same for a model in memory, bytes[n], which is copied. `name` is used in messages and the
 * manifest ("model.onnx"); NULL: "model". Errors: as above, and USAGE if the model has external
 * data and the options have no data_directory. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_open_memory(const void *bytes, size_t n,
                                                                const char *name,
                                                                const psplit_read_options *options,
                                                                psplit_diag *diag,
                                                                psplit_model **out_model);

/* The same for an open regular file, which is read from its start. `fd` is duplicated and remains
 * the caller's; the file must not change while the model is open. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_open_fd(int fd, const char *name,
                                                            const psplit_read_options *options,
                                                            psplit_diag *diag,
                                                            psplit_model **out_model);

/* Checks that the model (graphs, bodies and functions) declares dimensions of these names, since a
 * misspelt one would silently have no effect. Errors: USAGE (the message names the nearest one, and
 * those that exist), NOMEM. O(values). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_check_dims(const psplit_model *model,
                                                               const psplit_dim_value *dims,
                                                               size_t n_dims, psplit_diag *diag);
/* Checks that the model has inputs of these names. Errors: USAGE, as above, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_check_inputs(const psplit_model *model,
                                                                 const char *const *inputs,
                                                                 size_t n_inputs,
                                                                 psplit_diag *diag);

/* An inlined If. */
typedef struct psplit_inlined {
  const char *node;      /* as the options name it */
  const char *condition; /* the value that selects the branch */
  bool then_branch;
  bool assumed; /* the condition is not constant, and must have this value at run time */
} psplit_inlined;

/* Inlined Ifs, in the order of the options. Owned by the model. */
PSPLIT_API uint32_t psplit_model_n_inlined(const psplit_model *model);
PSPLIT_API const psplit_inlined *psplit_model_inlined(const psplit_model *model, uint32_t index);

/* A constant tensor of the main graph. */
typedef struct psplit_initializer {
  int32_t data_type; /* TensorProto.DataType of ONNX: 1 float, 7 int64, ... */
  uint32_t n_dims;
  const int64_t *dims; /* the model's */
  uint64_t n_bytes;    /* packed; 0 for strings */
} psplit_initializer;

/* The initializer `name`. Errors: USAGE (no such initializer). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_initializer(const psplit_model *model,
                                                                const char *name, psplit_diag *diag,
                                                                psplit_initializer *out);
/* Reads its elements, row-major, little-endian, packed, into out[n_bytes], which must have the
 * exact size. Errors: USAGE, IO, UNSUPPORTED (neither raw bytes nor external data nor of type float
 * or double). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_read_initializer(const psplit_model *model,
                                                                     const char *name, void *out,
                                                                     uint64_t n_bytes,
                                                                     psplit_diag *diag);

/* Replaces Constant nodes of the main graph, those whose outputs have one of these names, by
 * initializers: *out_model is of the same file, and the caller closes it. Only dense floating-point
 * tensors that are not outputs are moved, in IR version 4 or later; other names are ignored.
 * *out_model is NULL if nothing is moved. Errors: as for psplit_model_open. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_move_constants(const psplit_model *model,
                                                                   const char *const *names,
                                                                   size_t n, psplit_diag *diag,
                                                                   psplit_model **out_model);

/* Closes and frees; NULL is fine. */
PSPLIT_API void psplit_model_close(psplit_model *model);

/* Files that the model was read from: itself first, then its external data. Paths are relative to
 * the working directory, or the given name for a model from memory or a descriptor; owned by the
 * model. */
PSPLIT_API uint32_t psplit_model_n_files(const psplit_model *model);
PSPLIT_API const char *psplit_model_file_path(const psplit_model *model, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
