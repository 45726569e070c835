/* emit: writes a model and its plan as a directory of stage models.
 *
 * Stage files are assembled from bytes of the original file, never from unpacked messages:
 *   emit.c         writes a directory: checks, the stages, the manifest, the final rename
 *   stages.c       what belongs to each stage, and whether the plan fits the model
 *   stage_names.c  names of stages' files, from a template
 *   boundary.c     types, names and nodes of transferred tensors
 *   boundary_functions.c   Send and Recv as identity functions for stock runtimes
 *   weights.c      placement of a tensor's data: inline, in stageI.onnx.data, or unmoved
 *   rewrite.c      a message with moved tensors; everything else is copied byte by byte
 *   stage_model.c  a stage's ModelProto as a rope: byte ranges of memory and of files, in order
 *   rope.c         bytes to be written, in order
 *   file.c         writes a rope to a file, weights from file to file
 *   directory.c    a directory that appears complete or not at all
 *   old_split.c    an existing split that is to be replaced
 *   reference.c    stages that refer to the model's files
 *   inside.c       files added to an existing directory, all or none
 *   manifest.c     pipeline.json
 *   genai.c        genai_config.json
 *   triton.c, mpi_job.c, deployed.c   configurations for servers and clusters
 *   model_file.c   writes a single model file
 *   new_values.c   the whole model with new values of some weights
 *   annotate.c     the whole model with its stages in the multi-device fields
 *   name_assignment.c  the stages as ONNX Runtime's option name_based_layer_assignment
 *   blocks.c       the whole model with groups of nodes as model-local functions
 * Does not decide where to cut; a plan that leaves a value missing is rejected. */
#ifndef PSPLIT_EMIT_EMIT_H
#define PSPLIT_EMIT_EMIT_H

#include <psplit/emit.h>

#include "manifest.h"
#include "model.h"
#include "wire.h"

/* --- ropes: bytes to be written, in order --- */

typedef struct psplit_i_piece {
  const uint8_t *memory; /* NULL: a range of model->files[file] */
  uint32_t file;
  uint64_t offset, bytes;
} psplit_i_piece;

/* After a failed allocation every call is a no-op and `failed` stays true. */
typedef struct psplit_i_rope {
  PSPLIT_VEC(psplit_i_piece) pieces;
  uint64_t bytes;
  bool failed;
} psplit_i_rope;

void psplit_i_rope_fini(psplit_i_rope *rope);
/* Bytes that outlive the rope. */
void psplit_i_rope_view(psplit_i_rope *rope, const void *bytes, size_t n);
/* Bytes that do not: copied to `arena`. */
void psplit_i_rope_copy(psplit_i_rope *rope, psplit_i_arena *arena, const void *bytes, size_t n);
void psplit_i_rope_range(psplit_i_rope *rope, uint32_t file, uint64_t offset, uint64_t n);
/* A length-delimited field with `inner` as its content. */
void psplit_i_rope_message(psplit_i_rope *rope, psplit_i_arena *arena, uint32_t field,
                           const psplit_i_rope *inner);
/* The same with a message that is packed into `arena`. */
void psplit_i_rope_packed(psplit_i_rope *rope, psplit_i_arena *arena, uint32_t field,
                          const ProtobufCMessage *message);

/* --- stages --- */

/* Type of a tensor that crosses, as far as it is known for sure, in the words of the model. */
typedef struct psplit_i_boundary_type {
  int32_t elem;           /* TensorProto.DataType */
  int32_t rank;           /* -1: not known */
  const char *denotation; /* or NULL */
  const psplit_i_declared_dim *dims;
  bool declared_wrong; /* what the model declares contradicts it */
} psplit_i_boundary_type;

/* A graph input or output of a stage's file. */
typedef struct psplit_i_port {
  uint32_t value;                 /* in the model's graph */
  const char *name;               /* in the file */
  uint32_t transfer, n_transfers; /* the transfers [transfer, transfer + n_transfers) use it */
  bool model;                     /* it is the model's own too ... */
  uint32_t position;              /* ... at this position among the graph's inputs or outputs */
} psplit_i_port;

typedef struct psplit_i_stage {
  const uint32_t *nodes; /* in topological order, copies included */
  uint32_t n_nodes, n_copies;
  const psplit_i_port *inputs; /* the model's, in its order, then received ones by tag */
  uint32_t n_inputs;
  const psplit_i_port *outputs; /* the model's, in its order, then sent ones by tag */
  uint32_t n_outputs;
} psplit_i_stage;

/* Parts of a stage's file that are not from the model. */
typedef struct psplit_i_stage_extra {
  psplit_i_text nodes;     /* fields of the GraphProto, after its nodes */
  psplit_i_text ports;     /* graph inputs and outputs, after the stage's */
  const uint8_t *declared; /* [n_values] 1: in `ports`, and needs no value_info; or NULL */
} psplit_i_stage_extra;

struct psplit_i_split;
struct psplit_i_emission;

/* Additional contents of a directory. Functions may be NULL. */
typedef struct psplit_i_emit_extra {
  void *user;
  const bool *left_out; /* [n_values] initializers that no stage holds; or NULL */
  /* Fills *out, which is zeroed and freed by psplit_i_stage_extra_fini. Called by several
   * threads. */
  psplit_code (*stage)(void *user, uint32_t stage, psplit_i_arena *arena, psplit_diag *diag,
                       psplit_i_stage_extra *out);
  /* Called with the split after it has been checked. */
  psplit_code (*begin)(void *user, const struct psplit_i_split *split, psplit_diag *diag);
  /* Writes more files (psplit_i_emission_*). */
  psplit_code (*files)(void *user, struct psplit_i_emission *emission);
  void (*manifest)(void *user, psplit_i_json *json); /* more members of pipeline.json */
} psplit_i_emit_extra;

void psplit_i_stage_extra_fini(psplit_i_stage_extra *extra);

typedef struct psplit_i_split {
  const psplit_model *model;
  const psplit_i_graph *graph;
  const psplit_plan *plan;
  const psplit_i_emit_extra *extra; /* or NULL */
  const psplit_emit_file *files;    /* [n_files] */
  size_t n_files;
  psplit_boundary boundary;
  psplit_i_arena arena;
  uint32_t *info_values;          /* value of each value_info entry, or PSPLIT_NONE */
  psplit_i_stage *stages;         /* [plan->n_stages] */
  const char *const *stage_names; /* [plan->n_stages] of files */
  psplit_i_boundary_type *types;  /* [plan->n_transfers] */
  /* [graph->n_outputs] dimensions of an output in the manifest; NULL: as declared */
  psplit_i_declared_dim **output_dims;
  const char **send_names, **recv_names; /* [plan->n_transfers]; sendrecv only */
} psplit_i_split;

/* Works out every stage and checks the plan completely: whatever a stage reads is made there,
 * received or given, and nothing is sent for nothing. `options` may be NULL.
 * Errors: INVALID (the plan is of another model), INTERNAL (the plan is wrong; names the node and
 * the value), UNSUPPORTED (a value that cannot be sent), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_split_init(psplit_i_split *split, const psplit_model *model,
                                                const psplit_plan *plan,
                                                const psplit_emit_options *options,
                                                psplit_diag *diag);
void psplit_i_split_fini(psplit_i_split *split);

/* --- names of files --- */

/* Room for the name of a file and its data: the longest that file systems have. */
enum { PSPLIT_I_FILE_NAME = 256 };

/* Whether `template` (psplit_emit_options.name_template) is one; NULL is. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_template_check(const char *template, psplit_diag *diag);
/* The name of one stage's file. Errors: USAGE (wrong, or the name too long), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_name(const psplit_model *model, const char *template,
                                                uint32_t stage, uint32_t n_stages,
                                                psplit_diag *diag, char out[PSPLIT_I_FILE_NAME]);
/* Fills split->stage_names; they differ. Errors: those of psplit_i_stage_name. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_names(psplit_i_split *split, const char *template,
                                                 psplit_diag *diag);
/* Of the file that training has beside stage `stage`: stage0.WHAT.onnx beside stage0.onnx. */
void psplit_i_stage_name_of(const psplit_i_split *split, uint32_t stage, const char *what,
                            char out[PSPLIT_I_FILE_NAME]);

/* --- boundary --- */

/* Fills split->types and output_dims, and in sendrecv mode send_names and recv_names: `x.send2` is
 * x on its way to stage 2, `x.recv0` is x from stage 0; a suffix keeps them apart from every name
 * in the model. Errors: UNSUPPORTED (not a tensor, or of unknown type), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_boundary_init(psplit_i_split *split, psplit_diag *diag);

/* Appends fields of a GraphProto to `out`: a Send or Recv node, and a ValueInfoProto. */
void psplit_i_boundary_node(const psplit_i_split *split, uint32_t transfer, bool send,
                            psplit_i_arena *arena, psplit_i_rope *out);
void psplit_i_boundary_value(const psplit_i_split *split, const psplit_i_port *port, uint32_t field,
                             psplit_i_arena *arena, psplit_i_rope *out);

/* Appends fields of a ModelProto: the opset import and the functions that implement the nodes.
 * Errors: UNSUPPORTED if the model uses the domain `psplit` for something else, or has its own
 * function with the name of the operator that they call; NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_boundary_functions(const psplit_i_split *split, bool sends,
                                                        bool receives, psplit_i_arena *arena,
                                                        psplit_diag *diag, psplit_i_rope *out);

/* --- weights --- */

typedef struct psplit_i_data_range {
  uint32_t file;
  uint64_t offset, bytes;
  uint64_t out_offset;
} psplit_i_data_range;

/* Placement of the tensors of one stage. */
typedef struct psplit_i_weights {
  const psplit_model *model;
  psplit_weights mode;
  bool move_inline;             /* large inline initializers go to the data file as well ... */
  bool move_attributes;         /* ... and so does large inline data inside nodes */
  bool in_node;                 /* the tensor belongs to a node */
  const char *data_name;        /* of the stage's data file */
  const char *const *locations; /* REFERENCE: of model->files, seen from the stage */
  PSPLIT_VEC(psplit_i_data_range) ranges; /* of the data file, ascending */
  uint32_t *table;                        /* open addressing over ranges: index + 1 */
  uint32_t n_table;
  uint64_t data_bytes; /* length of the data file */
} psplit_i_weights;

/* Frees and clears all placements. */
void psplit_i_weights_reset(psplit_i_weights *weights);

/* Placement of a tensor's data. */
typedef struct psplit_i_place {
  bool external;
  const char *location;
  uint64_t offset;
} psplit_i_place;

/* Places `payload`, which was external or inline. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_weights_place(psplit_i_weights *weights,
                                                   const psplit_i_payload *payload,
                                                   bool was_external, psplit_diag *diag,
                                                   psplit_i_place *out);

/* Whether some tensor of the message would change under `weights`. */
bool psplit_i_weights_change_tensor(const psplit_i_weights *weights,
                                    const Onnx__TensorProto *tensor);
bool psplit_i_weights_change_sparse(const psplit_i_weights *weights,
                                    const Onnx__SparseTensorProto *sparse);
bool psplit_i_weights_change_attributes(const psplit_i_weights *weights,
                                        Onnx__AttributeProto *const *attributes, size_t n);

/* Appends one field (tag, length, content; in skeleton form) with a message of type `descriptor`,
 * placing the tensors in it. Errors: MALFORMED, UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_rewrite_field(psplit_i_weights *weights,
                                                   const ProtobufCMessageDescriptor *descriptor,
                                                   const uint8_t *bytes, size_t n,
                                                   psplit_i_arena *arena, psplit_diag *diag,
                                                   psplit_i_rope *out);

/* --- stage models and files --- */

/* The ModelProto of stage `stage`; tensors go where `weights` says. `arena` holds what the rope
 * does not find in the model. Errors: those of the parts, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_model(const psplit_i_split *split, uint32_t stage,
                                                 psplit_i_weights *weights, psplit_i_arena *arena,
                                                 psplit_diag *diag, psplit_i_rope *out);

/* Writes to a new file; `fd` is closed by psplit_i_file_close. */
typedef struct psplit_i_file {
  int fd;
  const char *directory, *name; /* for messages; the directory's final path, or NULL */
  uint8_t *buffer;
  size_t n_buffered;
  uint64_t written; /* buffered bytes included */
  bool no_copy_range, no_sendfile;
  bool through; /* `fd` is a FIFO, a device, or what others write to: its length says nothing */
  bool sync;    /* closed once the disk has it */
  const volatile int *cancel;
  psplit_activity *activity; /* or NULL */
  const psplit_model *model;
} psplit_i_file;

/* Starts writing to `fd`, which is closed on failure too. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_file_begin(int fd, const char *directory, const char *name,
                                                const psplit_model *model, psplit_diag *diag,
                                                psplit_i_file *out);

/* Append bytes; a range of model->files[source]; a rope. Errors: IO, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_file_bytes(psplit_i_file *file, const uint8_t *bytes, size_t n,
                                                psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_file_range(psplit_i_file *file, uint32_t source,
                                                uint64_t offset, uint64_t n, psplit_diag *diag);
/* Zeros up to file offset `offset`, as a hole where the file system has them. */
PSPLIT_MUST_USE psplit_code psplit_i_file_skip(psplit_i_file *file, uint64_t offset,
                                               psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_file_rope(psplit_i_file *file, const psplit_i_rope *rope,
                                               psplit_diag *diag);
/* Flushes, closes and compares the length with `expected`. Errors: IO, CANCELLED, INTERNAL (another
 * length). */
PSPLIT_MUST_USE psplit_code psplit_i_file_close(psplit_i_file *file, uint64_t expected,
                                                psplit_diag *diag);
/* Closes after a failure; a closed or zeroed file is fine. */
void psplit_i_file_abandon(psplit_i_file *file);

/* Locations of model->files as external data of a model in `directory`. Errors: UNSUPPORTED (one is
 * not below it), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_reference_locations(const psplit_model *model,
                                                         const char *directory,
                                                         psplit_i_arena *arena, psplit_diag *diag,
                                                         const char *const **out);

/* --- the split that is there already --- */

typedef struct psplit_i_old_split {
  int fd; /* of its directory, or -1 */
  bool found;
  psplit_i_manifest manifest; /* where it was found */
  char why[256];              /* reason if pipeline.json is unusable; "": no such file */
  psplit_i_arena arena;
} psplit_i_old_split;

/* Reads the split in the existing directory `directory`. A missing or invalid pipeline.json is not
 * an error: `found` is false. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_old_split_open(const char *directory, psplit_diag *diag,
                                                    psplit_i_old_split *out);
void psplit_i_old_split_close(psplit_i_old_split *old);
/* Whether `name` is a file of the split. */
bool psplit_i_old_split_wrote(const psplit_i_old_split *old, const char *name);
/* Checks that the directory `fd`, called `directory`, contains only regular files of the split.
 * Errors: IO (the message names another file), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_old_split_alone(const psplit_i_old_split *old, int fd,
                                                     const char *directory, psplit_diag *diag);
/* Owner and mode for a new file `name`: those of the old file, or else of the old pipeline.json.
 * False if neither exists. */
bool psplit_i_old_split_status(const psplit_i_old_split *old, const char *name, struct stat *out);
/* Removes its files, and no others, from the directory `fd`. */
void psplit_i_old_split_remove(const psplit_i_old_split *old, int fd);

/* --- the directory --- */

typedef struct psplit_i_directory {
  char *target; /* path without trailing slashes */
  char *parent; /* directory that holds it */
  char *temp;   /* NULL until made */
  int fd;       /* of temp; holds its lock */
  bool replace;
  bool sync;              /* sync before renaming */
  psplit_i_old_split old; /* the split that is replaced */
  bool exchanged;         /* after an exchange, temp is the name of the old directory */
} psplit_i_directory;

#define PSPLIT_I_DIRECTORY_NONE \
  { .fd = -1, .old.fd = -1 }

/* Creates a hidden directory next to `path`, locked while it is written, and removes leftovers of
 * killed runs for the same path. Errors: IO, USAGE (no such name), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_directory_begin(psplit_i_directory *directory,
                                                     const psplit_model *model, const char *path,
                                                     bool replace, psplit_diag *diag);
/* Starts a new file in it. */
PSPLIT_MUST_USE psplit_code psplit_i_directory_file(psplit_i_directory *directory, const char *name,
                                                    const psplit_model *model,
                                                    const volatile int *cancel, psplit_diag *diag,
                                                    psplit_i_file *out);
/* Renames it into place. */
PSPLIT_MUST_USE psplit_code psplit_i_directory_commit(psplit_i_directory *directory,
                                                      psplit_diag *diag);
/* The same inside the existing directory `path`, for files to be added to it. */
PSPLIT_MUST_USE psplit_code psplit_i_directory_begin_inside(psplit_i_directory *directory,
                                                            const char *path, bool replace,
                                                            psplit_diag *diag);
/* Checks that pipeline.json and `first`, a stage (NULL: not known yet), could be put in place.
 * Errors: IO (one exists). */
PSPLIT_MUST_USE psplit_code psplit_i_directory_check_inside(const psplit_i_directory *directory,
                                                            const psplit_model *model,
                                                            const char *first, psplit_diag *diag);
/* Moves the files into place, pipeline.json last. With `replace`, removes those of an earlier
 * split, but never an input of this one. Errors: IO (a file exists, or cannot be moved), NOMEM;
 * everything is restored then. */
PSPLIT_MUST_USE psplit_code psplit_i_directory_commit_inside(psplit_i_directory *directory,
                                                             const psplit_model *model,
                                                             psplit_diag *diag);
/* Reverts moves of a killed run between the directory `at` and its directory `hidden`. False if
 * this fails. */
bool psplit_i_inside_restore(int at, int hidden);
/* Removes uncommitted files, and frees. */
void psplit_i_directory_end(psplit_i_directory *directory);

/* --- single files --- */

/* Appends a field of the model or its main graph unchanged. */
void psplit_i_rope_span(psplit_i_rope *rope, const psplit_model *model, const psplit_i_span *span);

/* Position of the content of a field (after tag and length) in its file, for spans with a view.
 * Errors: IO, INTERNAL (the file changed). */
PSPLIT_MUST_USE psplit_code psplit_i_span_content(const psplit_model *model,
                                                  const psplit_i_span *span, psplit_diag *diag,
                                                  uint64_t *out_offset, uint64_t *out_bytes);

/* Writes `rope` to the file `path`, as base/out_file.h has it; `given` as psplit_emit_annotated. */
PSPLIT_MUST_USE psplit_code psplit_i_model_file_write(const psplit_model *model,
                                                      const psplit_i_rope *rope, const char *path,
                                                      const psplit_emit_options *given,
                                                      psplit_diag *diag);

/* --- a split that is being written --- */

typedef struct psplit_i_emission {
  const psplit_i_split *split;
  const psplit_emit_options *options;
  psplit_i_directory directory;
  const char *const *locations; /* REFERENCE: of the model's files */
  psplit_diag *diag;
} psplit_i_emission;

/* Writes stage `stage` of e->split or another split as `name` and, if weights are external,
 * `name`.data. */
PSPLIT_MUST_USE psplit_code psplit_i_emission_stage(psplit_i_emission *e,
                                                    const psplit_i_split *split, uint32_t stage,
                                                    const char *name);
/* Writes a ModelProto whose graph consists of the fields of `graph` and the initializers
 * initializers[n] of `model`; `head` contains the fields before the graph. */
PSPLIT_MUST_USE psplit_code psplit_i_emission_weights(psplit_i_emission *e,
                                                      const psplit_model *model,
                                                      const uint32_t *initializers, uint32_t n,
                                                      const psplit_i_text *head,
                                                      const psplit_i_text *graph, const char *name);
PSPLIT_MUST_USE psplit_code psplit_i_emission_bytes(psplit_i_emission *e, const void *bytes,
                                                    size_t n, const char *name);

/* psplit_emit and psplit_manifest with additional contents; `extra` may be NULL. */
PSPLIT_MUST_USE psplit_code psplit_i_emit(const psplit_model *model, const psplit_plan *plan,
                                          const char *directory, const psplit_emit_options *options,
                                          const psplit_i_emit_extra *extra, psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_manifest_text(const psplit_model *model,
                                                   const psplit_plan *plan,
                                                   const psplit_emit_options *options,
                                                   const psplit_i_emit_extra *extra,
                                                   psplit_diag *diag, char **out_text);

/* --- manifest --- */

/* pipeline.json as text. Check out->failed. */
void psplit_i_manifest_write(const psplit_i_split *split, psplit_i_text *out);

/* "dtype" and "shape" of a transferred tensor, as members of an object. */
void psplit_i_manifest_type(psplit_i_json *json, const psplit_i_boundary_type *type);

/* A model file's name without directory and suffix, in lower-case letters and digits separated by
 * `joint`, as servers and clusters require. */
void psplit_i_deployed_name(const char *path, char joint, char *out, size_t bytes);
/* Whether a session (may be NULL) is for an NVIDIA GPU. */
bool psplit_i_deployed_on_gpu(const psplit_session *session);

#endif
