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
  /* As in the model: inline data inline, external data in stageI.onnx.data. Large inline data
   * becomes external where a stage would pass 64 MiB: runtimes start in half the time then. */
  PSPLIT_WEIGHTS_AUTO,
  PSPLIT_WEIGHTS_INLINE,   /* all inline; LIMIT where a stage would pass 2 GiB */
  PSPLIT_WEIGHTS_EXTERNAL, /* initializers over 1 KiB in stageI.onnx.data */
  /* Nothing is copied: stages point into the model's own files. Runtimes read external data only at
   * or below a stage's directory, so `directory` has to be the model's own or one above it. The
   * files take their places there one by one, pipeline.json last; what fails on the way is undone.
   * A killed process leaves the old split, the new one, or no pipeline.json and what the next such
   * run undoes. */
  PSPLIT_WEIGHTS_REFERENCE
} psplit_weights;

/* A file beside the stages. */
typedef struct psplit_emit_file {
  const char *name; /* none that a split has, and without a slash */
  const char *text;
  size_t n;
} psplit_emit_file;

typedef struct psplit_emit_options {
  size_t struct_size; /* set by psplit_emit_options_init() */
  psplit_boundary boundary;
  psplit_weights weights;
  /* An existing directory is replaced, once the new one is complete, where it is empty or holds a
   * pipeline.json of ours, the files that it names, and nothing else; never where it holds the
   * model, or is or holds the working directory. Modes of the directory and of files of the same
   * name are kept, new files get that of the old pipeline.json. REFERENCE: files that a
   * pipeline.json there names are replaced, and nothing else. */
  bool replace;
  /* Stages written at a time, where there is much to write; 0: as many as OpenMP gives. Never
   * changes a byte. `logger` is called by one of the threads at a time. */
  uint32_t n_threads;
  const volatile int *cancel;  /* see base.h */
  const psplit_logger *logger; /* may be NULL */
  /* Called with the directory that holds the finished files before they are put in place; anything
   * but OK removes them and becomes the result. REFERENCE: the files point into the model's as seen
   * from where they will be. May be NULL. */
  psplit_code (*accept)(void *user, const char *directory, psplit_diag *diag);
  void *accept_user;
  /* More files of the directory, which pipeline.json names, so that they belong to the split. */
  const psplit_emit_file *files;
  size_t n_files;
  /* The directory is thrown away soon: OK is not waited for until the disk has it. */
  bool no_sync;
  psplit_activity *activity; /* see activity.h: bytes written, of about so many */
  /* Names of the stages' files: letters, digits, '.', '_', '-', and the fields {model} (the model
   * file's name up to its first '.'), {stage} (its number, from 0) and {stages} (how many), the
   * last two also with leading zeros, {stage:02}. With {stage}, and ending in .onnx; what is beside
   * a stage has the name before that with its own ending. NULL: stage{stage}.onnx. */
  const char *name_template;
} psplit_emit_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_emit_options_init(psplit_emit_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Writes stage0.onnx ..., their .data files and pipeline.json to the directory `directory`, which
 * appears complete or not at all: it is written under a hidden name beside its place and renamed;
 * what killed runs for the same directory left there is removed. After OK it is complete whatever
 * becomes of the power, on file systems that can sync (unless no_sync). The nodes are the model's
 * own bytes. `options` may be NULL. Peak memory: O(nodes), whatever the weights.
 * Errors: IO (exists, not writable, disk full), INVALID and INTERNAL (a plan that does not fit the
 * model), UNSUPPORTED, LIMIT, NOMEM; nothing is left behind then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit(const psplit_model *model,
                                                   const psplit_plan *plan, const char *directory,
                                                   const psplit_emit_options *options,
                                                   psplit_diag *diag);

/* The name of a stage's file among `n_stages`, as psplit_emit gives it: *out_name, malloc'd.
 * `options` may be NULL. Errors: USAGE (name_template), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_stage_file_name(const psplit_model *model,
                                                              uint32_t stage, uint32_t n_stages,
                                                              const psplit_emit_options *options,
                                                              psplit_diag *diag, char **out_name);

/* The manifest alone (pipeline.json), as JSON text, malloc'd; no file is written.
 * Errors: those of psplit_emit but IO. */
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

/* What ONNX Runtime GenAI reads to run the stages of a decoder, genai_config.json as JSON text,
 * malloc'd. What the model does not tell (numbers of special tokens) is left to be added. `options`
 * are those that the stages are written with.
 * Errors: USAGE (no context_length), UNSUPPORTED (no decoder, an input that GenAI does not give, a
 * state that is not one or two tensors a layer or is made and read by different stages, a tensor
 * that GenAI cannot hand on, heads or a vocabulary without a number), those of psplit_manifest. */
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

/* A script for the directory of the stages, triton.sh, as text, malloc'd: it lays them out as a
 * model repository of Triton Inference Server, a model for each stage and an ensemble of them.
 * `options` are those that the stages are written with.
 * Errors: USAGE (weights by reference, a session's device_id that is no number), UNSUPPORTED (a
 * type that Triton has not, a number of dimensions that is not known, a stage without inputs),
 * those of psplit_manifest. */
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

/* An MPI job of Kubernetes (MPIJob, kubeflow.org/v2beta1) that runs the stages, a worker for each,
 * as YAML, malloc'd. Errors: USAGE (no command), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_mpi_job(const psplit_model *model,
                                                      const psplit_plan *plan,
                                                      const psplit_mpi_job_options *options,
                                                      psplit_diag *diag, char **out_text);

/* Whether psplit_emit could put a split in `directory` now: for the time before a plan is made.
 * Nothing is written or left behind. Errors: those of psplit_emit that concern the place. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_check(const psplit_model *model,
                                                         const char *directory,
                                                         const psplit_emit_options *options,
                                                         psplit_diag *diag);

/* Removes from `directory` what killed processes left of splits, models and files that they were
 * writing there: hidden names .NAME.psplit-..., which nobody locks. Files of a split
 * that one with PSPLIT_WEIGHTS_REFERENCE had moved when it was killed go back before. Checkpoints
 * stay, which training takes up by itself. *out_n (may be NULL): how many. Errors: IO. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_clean(const char *directory, uint32_t *out_n,
                                                         psplit_diag *diag);

/* What it means to a split in the directory of `path` to have something written there. */
typedef enum psplit_split_place {
  PSPLIT_PLACE_FREE,   /* there is none, or one among other files */
  PSPLIT_PLACE_OWN,    /* a file of the split stands there */
  PSPLIT_PLACE_FOREIGN /* psplit_emit replaces the split as it is, and not with that beside it */
} psplit_split_place;

/* Errors: NOMEM; what cannot be looked at is FREE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_place(const char *path, psplit_diag *diag,
                                                         psplit_split_place *out_place);

/* The same as psplit_emit_check for the functions below that write a file. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_file_check(const psplit_model *model,
                                                              const char *path, bool replace,
                                                              psplit_diag *diag);

typedef enum psplit_annotation {
  /* The multi-device fields of ONNX: a configuration (named "pipeline", or "pipeline-2" ... where
   * the model has one) with the plan's devices, and the stage of each node, counted from 0. */
  PSPLIT_ANNOTATION_ONNX,
  /* Node metadata "layer_ann" = "stage0" ..., which ONNX Runtime's option
   * session.layer_assignment_settings maps to devices. */
  PSPLIT_ANNOTATION_LAYER_ANN,
  /* Model metadata "split_assignments", which Olive's SplitModel cuts by: scopes of node names, all
   * of one depth, and their stages. Unnamed nodes are left to it. */
  PSPLIT_ANNOTATION_OLIVE
} psplit_annotation;

/* Writes the model itself to the file `path` with the stages of its nodes added and nothing else
 * changed. Bodies of control flow belong to their node. Of the options `replace`, `cancel` and
 * `activity` count; NULL: the defaults. A file in place of `path` is kept unless `replace`; the
 * model's own files always are. The file appears complete or not at all, and where
 * it replaces one it has its mode; a link stays and leads to the new file; a FIFO or a device is
 * written to, once somebody reads it. Nothing is left behind on failure.
 * Errors: IO, CANCELLED, UNSUPPORTED (external data, and `path` is in another directory than the
 * model: its locations would not hold there; names that Olive's form cannot tell apart), INVALID
 * (the plan is of another model), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_annotated(
  const psplit_model *model, const psplit_plan *plan, psplit_annotation annotation,
  const char *path, const psplit_emit_options *options, psplit_diag *diag);

/* The same with each node of the main graph named by its position in the file, "#0#", "#1#", ...,
 * for runtimes that tell of nodes by their names, which need not be there nor differ. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_numbered(const psplit_model *model,
                                                            const char *path,
                                                            const psplit_emit_options *options,
                                                            psplit_diag *diag);

/* The plan as the value of ONNX Runtime's session option session.name_based_layer_assignment, by
 * which it runs the whole model, as one process, on the providers of the stages: *out_text,
 * malloc'd. stage_provider[n_stages] are names of execution providers, NULL for the CPU's; the
 * array may be NULL. Names of nodes are told by what they begin with where that is enough. With the
 * CPU and one other provider there are rules for the CPU alone, and for others where these need an
 * exception: the other one is asked first. Nodes in bodies, whose names count by themselves, and
 * Constant nodes are not looked at.
 * Errors: USAGE (all stages run on one provider), UNSUPPORTED (a node without a name, or whose name
 * cannot be written there; one name on two providers; over 8192 bytes, which is the most that ONNX
 * Runtime takes), INVALID (the plan is of another model), NOMEM. O(names * rules). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_name_assignment(const psplit_model *model,
                                                              const psplit_plan *plan,
                                                              const char *const *stage_provider,
                                                              psplit_diag *diag, char **out_text);

/* Groups of the main graph's nodes. */
typedef struct psplit_blocks {
  uint32_t n_nodes;
  const uint32_t *node_block; /* [n_nodes] block, or PSPLIT_NONE for a function of constants */
  uint32_t n_blocks;          /* in topological order */
  const char *const *titles;  /* [n_blocks] */
  const char *const *kinds;   /* [n_blocks] what functions' names begin with; NULL: nothing */
} psplit_blocks;

/* Writes a model that computes the same with the same node bytes, in which every block of several
 * nodes is a call of a model-local function: it opens in model viewers as boxes to step into. Nodes
 * of constants that one block alone reads move into it; the others stay outside. Rules for `path`
 * and errors: as psplit_emit_annotated. */
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

/* Writes the model itself to the file `path` with these values in place of the initializers' own,
 * as raw_data in the file, wherever the old data was, and nothing else changed: after training.
 * Rules for `path`: as psplit_emit_annotated. Errors: INVALID (no such initializer, or of another
 * type or shape), USAGE (one named twice), LIMIT (over 2 GiB), and those of psplit_emit_annotated.
 */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_emit_new_values(const psplit_model *model,
                                                              const psplit_weight_value *values,
                                                              size_t n_values, const char *path,
                                                              const psplit_emit_options *options,
                                                              psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
