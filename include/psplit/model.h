/* Opening an ONNX model. */
#ifndef PSPLIT_MODEL_H
#define PSPLIT_MODEL_H

#include <psplit/activity.h>
#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open model: its structure in memory, its weights still in their files. Read-only once open,
 * so several threads may use one. Holds file descriptors for the model and its external data. */
typedef struct psplit_model psplit_model;

/* The size of a symbolic dimension, for costs alone; never written into emitted files. */
typedef struct psplit_dim_value {
  const char *name;
  int64_t value; /* >= 0 */
} psplit_dim_value;

/* An If of the main graph that is taken for one of its branches. */
typedef struct psplit_inline_if {
  const char *node; /* its name, or that of one of its outputs */
  bool then_branch;
} psplit_inline_if;

/* The size of an input of the model, which may leave it open. */
typedef struct psplit_input_size {
  const char *input;
  uint32_t n_dims; /* at most 32 */
  const int64_t *dims;
} psplit_input_size;

typedef struct psplit_read_options {
  size_t struct_size; /* set by psplit_read_options_init() */
  /* Memory the structure (not the weights) may take; 0: 32 times the file, but at least 256 MiB and
   * at most 2 GiB. */
  uint64_t max_graph_bytes;
  bool follow_symlinks; /* external data may be a symbolic link, as in model hubs' caches */
  /* Ifs to replace by the nodes of one branch, one after the other, so that an If of a branch can
   * follow: the open model is then the file's with these Ifs replaced. Where the condition is not a
   * constant it computes the same only for inputs that give it that value (psplit_model_inlined).
   */
  const psplit_inline_if *inline_ifs;
  size_t n_inline_ifs;
  bool is_stage; /* of a split: its training_info may bind weights of other stages */
  /* Of external data; copied. NULL: beside the model's file; a model that has none, since it is
   * opened from memory or a descriptor, may then have no external data. */
  const char *data_directory;
  const volatile int *cancel; /* see base.h; may go once the model is open */
  psplit_activity *activity;  /* see activity.h: bytes of the file; as long as `cancel` */
} psplit_read_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_read_options_init(psplit_read_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Opens the model file `path`; `options` may be NULL. On success the caller owns *out_model.
 * Errors: USAGE (no such If to inline, or one whose branch cannot stand in its place; the message
 * says why), IO (cannot be read), MALFORMED (not protobuf, not a model), INVALID (breaks an ONNX
 * rule: the message names the node or tensor), UNSUPPORTED, LIMIT (depth, counts, max_graph_bytes),
 * NOMEM, CANCELLED; *out_model is untouched then. Reads the structure once, O(its bytes);
 * weights are skipped. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_open(const char *path,
                                                         const psplit_read_options *options,
                                                         psplit_diag *diag,
                                                         psplit_model **out_model);

/* The same for a model in memory, `bytes`[n]: copied, so that they may go at once. `name` is for
 * messages and the manifest ("model.onnx"); NULL: "model". Errors: as above, and USAGE where the
 * model has external data and the options name no data_directory for it. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_open_memory(const void *bytes, size_t n,
                                                                const char *name,
                                                                const psplit_read_options *options,
                                                                psplit_diag *diag,
                                                                psplit_model **out_model);

/* The same for a regular file that is open for reading, from its start whatever its offset. `fd` is
 * duplicated and stays the caller's; what it stands for must not change while the model is open. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_open_fd(int fd, const char *name,
                                                            const psplit_read_options *options,
                                                            psplit_diag *diag,
                                                            psplit_model **out_model);

/* Whether the model declares dimensions of these names: a misspelt one would leave costs as they
 * are, silently. The model's graphs, bodies and functions count. Errors: USAGE (the message names
 * the nearest one, and those there are), NOMEM. O(values). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_check_dims(const psplit_model *model,
                                                               const psplit_dim_value *dims,
                                                               size_t n_dims, psplit_diag *diag);
/* Whether it has inputs of these names. Errors: USAGE, as above, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_check_inputs(const psplit_model *model,
                                                                 const char *const *inputs,
                                                                 size_t n_inputs,
                                                                 psplit_diag *diag);

/* What was inlined, in the order of the options. */
typedef struct psplit_inlined {
  const char *node;      /* as the options name it */
  const char *condition; /* the value that chooses the branch */
  bool then_branch;
  bool assumed; /* the condition is not a constant: it has to be true (then) or false (else) at run
                   time */
} psplit_inlined;

/* How many were; `index` is below that. Owned by the model. */
PSPLIT_API uint32_t psplit_model_n_inlined(const psplit_model *model);
PSPLIT_API const psplit_inlined *psplit_model_inlined(const psplit_model *model, uint32_t index);

/* A constant tensor of the main graph. */
typedef struct psplit_initializer {
  int32_t data_type; /* TensorProto.DataType of ONNX: 1 float, 7 int64, ... */
  uint32_t n_dims;
  const int64_t *dims; /* the model's */
  uint64_t n_bytes;    /* packed; of strings 0 */
} psplit_initializer;

/* The initializer of that name. Errors: USAGE (there is none). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_initializer(const psplit_model *model,
                                                                const char *name, psplit_diag *diag,
                                                                psplit_initializer *out);
/* Its elements, row-major, little-endian, packed, into out[n_bytes]: as many as it has. Errors:
 * USAGE, IO, UNSUPPORTED (neither raw bytes nor external data nor of type float or double). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_read_initializer(const psplit_model *model,
                                                                     const char *name, void *out,
                                                                     uint64_t n_bytes,
                                                                     psplit_diag *diag);

/* The model with initializers in place of Constant nodes of the main graph, those whose values have
 * one of these names: *out_model is the same file's, and the caller closes it. Moved are dense
 * floating-point tensors that are no outputs, and of IR version 4 or later; other names count for
 * nothing. *out_model is NULL where none of them is moved. Errors: as for psplit_model_open. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_model_move_constants(const psplit_model *model,
                                                                   const char *const *names,
                                                                   size_t n, psplit_diag *diag,
                                                                   psplit_model **out_model);

/* Closes and frees; NULL is fine. */
PSPLIT_API void psplit_model_close(psplit_model *model);

/* Files the model was read from: itself first, then its external data files. Paths as one would
 * open them from the working directory, but for a model from memory or a descriptor, which has its
 * name there; owned by the model. */
PSPLIT_API uint32_t psplit_model_n_files(const psplit_model *model);
PSPLIT_API const char *psplit_model_file_path(const psplit_model *model, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
