/* Writing the stages of a plan as ONNX models, with their manifest. */
#ifndef PSPLIT_EMIT_H
#define PSPLIT_EMIT_H

#include <psplit/activity.h>
#include <psplit/base.h>
#include <psplit/devices.h>
#include <psplit/model.h>
#include <psplit/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum psplit_boundary { PSPLIT_BOUNDARY_SENDRECV, PSPLIT_BOUNDARY_IO } psplit_boundary;

typedef enum psplit_weights {
  /* As in the model: inline data stays inline, external data goes to stageI.onnx.data. Large inline
   * data becomes external if a stage would exceed 64 MiB, since runtimes then start in half the
   * time. */
  PSPLIT_WEIGHTS_AUTO,
  PSPLIT_WEIGHTS_INLINE,   /* all inline; LIMIT if a stage would exceed 2 GiB */
  PSPLIT_WEIGHTS_EXTERNAL, /* initializers over 1 KiB in stageI.onnx.data */
  /* Nothing is copied: stages refer to the model's own files. Runtimes read external data only at
   * or below a stage's directory, so `directory` must be the model's own or one above it. Files are
   * put in place one by one, pipeline.json last; a failure undoes this. A killed process leaves the
   * old split, the new one, or no pipeline.json and files that the next such run restores. */
  PSPLIT_WEIGHTS_REFERENCE
} psplit_weights;

/* An additional file of the split. */
typedef struct psplit_emit_file {
  const char *name; /* differs from all names of a split; no slash */
  const char *text;
  size_t n;
} psplit_emit_file;

typedef struct psplit_emit_options {
  size_t struct_size; /* set by psplit_emit_options_init() */
  psplit_boundary boundary;
  psplit_weights weights;
  /* Replace an existing directory once the new one is complete, provided that it is empty or
   * contains only one of our pipeline.json and the files named in it. A directory that contains the
   * model, or is or contains the working directory, is never replaced. Modes of the directory and
   * of files of the same name are kept; new files get the mode of the old pipeline.json. REFERENCE:
   * replaces only files that an existing pipeline.json names. */
  bool replace;
  /* Number of stages written concurrently, if they are large; 0: OpenMP's default. Does not affect
   * the output. `logger` is called by one thread at a time. */
  uint32_t n_threads;
  const volatile int *cancel;  /* see base.h */
  const psplit_logger *logger; /* may be NULL */
  /* Called with the directory of the finished files before it is renamed into place; any result but
   * OK removes them and is returned. REFERENCE: the files refer to the model's relative to their
   * final place. May be NULL. */
  psplit_code (*accept)(void *user, const char *directory, psplit_diag *diag);
  void *accept_user;
  /* Additional files for the directory; pipeline.json lists them as part of the split. */
  const psplit_emit_file *files;
  size_t n_files;
  /* For temporary directories: do not sync files to disk. */
  bool no_sync;
  psplit_activity *activity; /* see activity.h: bytes written, of an estimate */
  /* Names of the stage files: letters, digits, '.', '_', '-', and the fields {model} (the model's
   * file name up to its first '.'), {stage} (index from 0) and {stages} (their number); the latter
   * two can be zero-padded, as in {stage:02}. {stage} is required, and so is the suffix .onnx,
   * which other files of the stage replace by their own. NULL: stage{stage}.onnx. */
  const char *name_template;
} psplit_emit_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_emit_options_init(psplit_emit_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Writes stage0.onnx ..., their .data files and pipeline.json to the directory `directory`, which
 * appears complete or not at all: it is written under a hidden name next to its place and renamed.
 * Leftovers of killed runs for the same directory are removed. After OK, the files survive a power
 * failure if the file system can sync (unless no_sync). Nodes are copied byte by byte. `options`
 * may be NULL. Peak memory: O(nodes), independent of the weights. Errors: IO (exists, not writable,
 * disk full), INVALID and INTERNAL (the plan does not match the model), UNSUPPORTED, LIMIT, NOMEM;
 * nothing is left behind then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit(const psplit_model *model,
                                                   const psplit_plan *plan, const char *directory,
                                                   const psplit_emit_options *options,
                                                   psplit_diag *diag);

/* The file name of a stage of `n_stages`, as psplit_emit assigns it: *out_name, malloc'd. `options`
 * may be NULL. Errors: USAGE (name_template), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_stage_file_name(const psplit_model *model,
                                                              uint32_t stage, uint32_t n_stages,
                                                              const psplit_emit_options *options,
                                                              psplit_diag *diag, char **out_name);

/* Only the manifest (pipeline.json), as malloc'd JSON text; no file is written. Errors: those of
 * psplit_emit except IO. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_manifest(const psplit_model *model,
                                                       const psplit_plan *plan,
                                                       const psplit_emit_options *options,
                                                       psplit_diag *diag, char **out_text);

typedef struct psplit_genai_options {
  size_t struct_size;                    /* set by psplit_genai_options_init() */
  uint32_t context_length;               /* tokens of a sequence, prompt included; > 0 */
  const psplit_session *const *sessions; /* [stages] how each runs; NULL: on the CPU */
} psplit_genai_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_genai_options_init(psplit_genai_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* The configuration that ONNX Runtime GenAI needs to run the stages of a decoder,
 * genai_config.json, as malloc'd text. What the model does not say (ids of special tokens) must be
 * added. `options` must be those that the stages are written with. Errors: USAGE (no
 * context_length), UNSUPPORTED (not a decoder, an input that GenAI does not provide, states other
 * than one or two tensors per layer or written and read by different stages, a tensor that GenAI
 * cannot pass on, unknown head size or vocabulary), those of psplit_manifest. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_genai_config(const psplit_model *model,
                                                           const psplit_plan *plan,
                                                           const psplit_emit_options *options,
                                                           const psplit_genai_options *genai,
                                                           psplit_diag *diag, char **out_text);

typedef struct psplit_triton_options {
  size_t struct_size;                    /* set by psplit_triton_options_init() */
  const psplit_session *const *sessions; /* [stages] how each runs; NULL: on the CPU */
} psplit_triton_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_triton_options_init(psplit_triton_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* A script for the directory of the stages, triton.sh, as malloc'd text. It arranges them as a
 * model repository of Triton Inference Server: a model per stage and an ensemble. `options` must be
 * those that the stages are written with. Errors: USAGE (weights by reference, a session's
 * device_id that is not a number), UNSUPPORTED (a type that Triton lacks, an unknown rank, a stage
 * without inputs), those of psplit_manifest. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_triton_script(const psplit_model *model,
                                                            const psplit_plan *plan,
                                                            const psplit_emit_options *options,
                                                            const psplit_triton_options *triton,
                                                            psplit_diag *diag, char **out_text);

typedef struct psplit_mpi_job_options {
  size_t struct_size;                    /* set by psplit_mpi_job_options_init() */
  const char *image;                     /* of containers; NULL: onnx-pipeline-split:latest */
  const psplit_session *const *sessions; /* [stages] how each runs; NULL: on the CPU */
  const char *const *command;            /* [n_command] of each rank; the stages are in /split */
  size_t n_command;
} psplit_mpi_job_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_mpi_job_options_init(psplit_mpi_job_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* A Kubernetes MPIJob (kubeflow.org/v2beta1) that runs the stages, one worker each, as malloc'd
 * YAML. Errors: USAGE (no command), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_job(const psplit_model *model,
                                                      const psplit_plan *plan,
                                                      const psplit_mpi_job_options *options,
                                                      psplit_diag *diag, char **out_text);

/* Checks whether psplit_emit could write a split to `directory` now, to be called before planning.
 * Leaves nothing behind. Errors: those of psplit_emit that concern the directory. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_check(const psplit_model *model,
                                                         const char *directory,
                                                         const psplit_emit_options *options,
                                                         psplit_diag *diag);

/* Removes from `directory` leftovers of killed processes that were writing splits, models or files:
 * hidden names .NAME.psplit-..., unless locked. Files of a split that PSPLIT_WEIGHTS_REFERENCE had
 * moved are restored first. Checkpoints remain, since training resumes from them by itself. *out_n
 * (may be NULL): number of removals. Errors: IO. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_clean(const char *directory, uint32_t *out_n,
                                                         psplit_diag *diag);

/* Effect of writing a file `path` on a split in the same directory. */
typedef enum psplit_split_place {
  PSPLIT_PLACE_FREE,   /* no split, or one among other files: no effect */
  PSPLIT_PLACE_OWN,    /* `path` is a file of the split */
  PSPLIT_PLACE_FOREIGN /* psplit_emit could no longer replace the split with this file in it */
} psplit_split_place;

/* Errors: NOMEM; a directory that cannot be read counts as FREE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_place(const char *path, psplit_diag *diag,
                                                         psplit_split_place *out_place);

/* As psplit_emit_check, for the functions below, which write a single file. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_file_check(const psplit_model *model,
                                                              const char *path, bool replace,
                                                              psplit_diag *diag);

typedef enum psplit_annotation {
  /* The multi-device fields of ONNX: a configuration with the plan's devices (named "pipeline", or
   * "pipeline-2" ... if that name is taken), and the stage of each node, from 0. */
  PSPLIT_ANNOTATION_ONNX,
  /* Node metadata "layer_ann" = "stage0" ..., which ONNX Runtime's option
   * session.layer_assignment_settings maps to devices. */
  PSPLIT_ANNOTATION_LAYER_ANN,
  /* Model metadata "split_assignments" for Olive's SplitModel: scopes of node names, all of the
   * same depth, and their stages. Nodes without a name are left to Olive. */
  PSPLIT_ANNOTATION_OLIVE
} psplit_annotation;

/* Writes the model to the file `path`, unchanged except that nodes are annotated with their stages.
 * Nodes in bodies of control flow belong to the outer node. Of the options, `replace`, `cancel` and
 * `activity` are used; NULL: the defaults. An existing file is replaced only if `replace` is set,
 * and the model's own files never. The file appears complete or not at all; a replaced file keeps
 * its mode; a symbolic link is kept, and its target replaced; a FIFO or device is written to once
 * it has a reader. Nothing is left behind on failure. Errors: IO, CANCELLED, UNSUPPORTED (external
 * data, and `path` is not in the model's directory, so that locations would be invalid; names that
 * Olive's form cannot tell apart), INVALID (the plan is for another model), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_annotated(
  const psplit_model *model, const psplit_plan *plan, psplit_annotation annotation,
  const char *path, const psplit_emit_options *options, psplit_diag *diag);

/* As psplit_emit_annotated, but names each node of the main graph by its position in the file,
 * "#0#", "#1#", ..., for runtimes that report nodes by name, since names may be missing or
 * ambiguous. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_numbered(const psplit_model *model,
                                                            const char *path,
                                                            const psplit_emit_options *options,
                                                            psplit_diag *diag);

/* The plan as a value of ONNX Runtime's session option session.name_based_layer_assignment, which
 * runs the whole model in one process on the providers of the stages: *out_text, malloc'd.
 * stage_provider[n_stages] are names of execution providers, NULL for the CPU; the array may be
 * NULL. Prefixes of node names are used where they suffice. With the CPU and one other provider,
 * rules are written for the CPU only, plus exceptions: the other provider is asked first. Ignores
 * nodes in bodies, whose names count separately, and Constant nodes. Errors: USAGE (all stages on
 * one provider), UNSUPPORTED (a node without a name or with a name that the syntax cannot express;
 * one name on two providers; over 8192 bytes, ONNX Runtime's limit), INVALID (the plan is for
 * another model), NOMEM. O(names * rules). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_name_assignment(const psplit_model *model,
                                                              const psplit_plan *plan,
                                                              const char *const *stage_provider,
                                                              psplit_diag *diag, char **out_text);

/* Groups of the main graph's nodes. */
typedef struct psplit_blocks {
  uint32_t n_nodes;
  const uint32_t *node_block; /* [n_nodes] block; PSPLIT_NONE: a constant expression */
  uint32_t n_blocks;          /* in topological order */
  const char *const *titles;  /* [n_blocks] */
  const char *const *kinds;   /* [n_blocks] prefixes of the functions' names; NULL: none */
} psplit_blocks;

/* Writes an equivalent model, with unchanged node bytes, in which each block of several nodes is a
 * call of a model-local function; model viewers show it as a box that can be opened. Constant nodes
 * used by a single block move into it; the others stay outside. Rules for `path` and errors: as
 * psplit_emit_annotated. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_blocks(const psplit_model *model,
                                                          const psplit_blocks *blocks,
                                                          const char *path,
                                                          const psplit_emit_options *options,
                                                          psplit_diag *diag);

/* A new value of an initializer of the main graph. */
typedef struct psplit_weight_value {
  const char *name;
  int32_t data_type; /* TensorProto.DataType, the initializer's */
  uint32_t n_dims;
  const int64_t *dims; /* its shape */
  uint64_t n_bytes;    /* packed, little-endian, as raw_data */
  const void *data;
} psplit_weight_value;

/* Writes the model to the file `path` with these values of initializers, as raw_data in the file,
 * wherever the old data was; otherwise unchanged. For models after training. Rules for `path`: as
 * psplit_emit_annotated. Errors: INVALID (no such initializer, or a different type or shape), USAGE
 * (a name given twice), LIMIT (over 2 GiB), and those of psplit_emit_annotated. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_new_values(const psplit_model *model,
                                                              const psplit_weight_value *values,
                                                              size_t n_values, const char *path,
                                                              const psplit_emit_options *options,
                                                              psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
