/* An open model, as onnx/ and emit/ see it: the unpacked messages, their bytes in the file, and the
 * files that hold tensor data. */
#ifndef PSPLIT_ONNX_MODEL_H
#define PSPLIT_ONNX_MODEL_H

#include "base.h"
#include "graph.h"
#include "onnx.pb-c.h"
#include "skeleton.h"

/* A file tensor data is read from. Index 0 is the model file itself. */
typedef struct psplit_i_data_file {
  const char *location; /* as the model spells it; "" for the model file */
  const char *path;     /* to open it from the working directory */
  uint64_t bytes;
  uint64_t device, inode; /* identity, so that no output is ever an input */
  int64_t modified_ns;
} psplit_i_data_file;

/* Descriptors of the data files that are open at the moment, under a lock. */
typedef struct psplit_i_open_files psplit_i_open_files;

struct psplit_model {
  psplit_i_arena arena; /* messages, graphs, names */
  const char *path;     /* or, without has_path, a name for messages */
  bool has_path;
  int fd;                      /* of the model file, as long as the model is open */
  psplit_read_options options; /* strings are the model's own; no inline_ifs */
  psplit_i_skeleton skeleton;
  Onnx__ModelProto *proto; /* without the nodes of its graph */
  psplit_i_graph *graph;
  psplit_i_graph **functions; /* [proto->n_functions] */
  PSPLIT_VEC(psplit_i_data_file) files;
  psplit_i_intern locations; /* of files[1..], in their order */
  psplit_i_open_files *open_files;
  int directory_fd; /* of the model file, for its external data; -1 until one is opened */
  bool has_external_data;
  PSPLIT_VEC(psplit_inlined) inlined; /* names live in the arena */
  /* Spans of the graph's repeated messages, by position: node i is graph_fields[node_spans[i]]. */
  uint32_t *node_spans, *initializer_spans, *sparse_spans, *value_info_spans;
  psplit_i_node *nodes; /* [n_nodes] of the main graph, which takes them over */
  uint32_t n_nodes;
  PSPLIT_VEC(uint32_t) placed_nodes; /* those with device configurations, ascending */
};

/* The whole message of a model, and of a node, in `arena` or where they are already. A model's own
 * `proto` lacks the nodes of its graph, and an index has no messages of nodes.
 * Errors: NOMEM, or MALFORMED. */
PSPLIT_MUST_USE psplit_code psplit_i_model_unpack(const psplit_model *model, psplit_i_arena *arena,
                                                  psplit_diag *diag, Onnx__ModelProto **out);
PSPLIT_MUST_USE psplit_code psplit_i_node_unpack(const psplit_i_graph *graph, uint32_t node,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 const Onnx__NodeProto **out);

/* The model read again from its open file, with other Ifs replaced and its other options, but for
 * `cancel` and, where they give none, max_graph_bytes. Errors: as psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_model_reopen(const psplit_model *model,
                                                  const psplit_inline_if *inline_ifs,
                                                  size_t n_inline_ifs,
                                                  const psplit_read_options *options,
                                                  psplit_diag *diag, psplit_model **out_model);

/* Where the raw bytes of a tensor are: in memory, or a range of a data file. */
typedef struct psplit_i_payload {
  const uint8_t *memory; /* NULL where `file` holds it */
  uint32_t file;         /* index into model->files */
  uint64_t offset, bytes;
} psplit_i_payload;

/* Finds the raw bytes of a tensor stored as raw_data or external data; false for tensors stored in
 * typed fields, as strings, or empty. The model was checked when it was opened: ranges are inside
 * their files. */
bool psplit_i_tensor_payload(const psplit_model *model, const Onnx__TensorProto *proto,
                             psplit_i_payload *out);

/* Reads [offset, offset + bytes) of a data file. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_model_read(const psplit_model *model, uint32_t file,
                                                uint64_t offset, void *out, size_t bytes,
                                                psplit_diag *diag);

/* Whether the files are still the ones that were opened (size and modification time).
 * Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_model_unchanged(const psplit_model *model, psplit_diag *diag);

/* A path that opens a file of the model from the working directory, `buffer` of
 * PSPLIT_I_FD_PATH bytes or the model's own: of a model without a path, that of its descriptor. */
enum { PSPLIT_I_FD_PATH = 32 };
const char *psplit_i_model_place(const psplit_model *model, uint32_t file, char *buffer);
/* The directory of its external data likewise, malloc'd; NULL when out of memory. */
char *psplit_i_model_data_directory(const psplit_model *model);

/* The external_data entries of a tensor, parsed strictly. */
typedef struct psplit_i_external {
  const char *location;
  uint64_t offset;
  uint64_t bytes; /* as stated, or UINT64_MAX where the file does not say */
} psplit_i_external;

/* Texts are the tensor's. Errors: INVALID (a key twice, an empty entry, a number that
 * is none, no location). */
PSPLIT_MUST_USE psplit_code psplit_i_external_parse(const Onnx__TensorProto *tensor,
                                                    psplit_diag *diag, psplit_i_external *out);

struct stat;

/* The entry for a file. */
psplit_i_data_file psplit_i_data_file_of(const char *location, const char *path,
                                         const struct stat *status);

/* The descriptors of a model's data files, none open yet. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_open_files_create(psplit_model *model, psplit_diag *diag);
/* Closes them all; a model without is fine. */
void psplit_i_open_files_close(psplit_model *model);

/* A descriptor of a data file, to be given back with release. Only so many stay open, the ones used
 * last; one that was closed is opened again. Threads: any number at once.
 * Errors: IO (cannot be opened, or is another file by now), LIMIT (too many open files). */
PSPLIT_MUST_USE psplit_code psplit_i_data_file_hold(const psplit_model *model, uint32_t file,
                                                    psplit_diag *diag, int *out_fd);
void psplit_i_data_file_release(const psplit_model *model, uint32_t file, int fd);

/* Index of the data file `location`, opened on first use: a regular file at or below the model's
 * directory, reached without `..`, and without symbolic links unless the options follow them.
 * Errors: IO, INVALID (a location that escapes, not a regular file), LIMIT (too many files),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_data_file_open(psplit_model *model, const char *location,
                                                    psplit_diag *diag, uint32_t *out_file);

/* The skeleton of `model` with the If replaced by the nodes of one branch: these stand where the If
 * stood, behind them an Identity for each output that has another name in the branch, and what else
 * the branch's graph holds joins the main graph's. A span whose bytes are not together in the file
 * has file_bytes 0. Strings of *out_inlined are the model's or the choice's. Errors: USAGE,
 * UNSUPPORTED, LIMIT (over 2 GiB), NOMEM; nothing to free then. */
PSPLIT_MUST_USE psplit_code psplit_i_inline_if(const psplit_model *model,
                                               const psplit_inline_if *choice, psplit_diag *diag,
                                               psplit_i_skeleton *out_skeleton,
                                               psplit_inlined *out_inlined);

/* The model of another skeleton over the same file, which must not have changed since. *skeleton is
 * taken over, also on failure. max_bytes as in psplit_read_options. Errors: as for
 * psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_model_rebuild(const psplit_model *before,
                                                   psplit_i_skeleton *skeleton, uint64_t max_bytes,
                                                   psplit_diag *diag, psplit_model **out_model);

/* A node that others stand in for. */
typedef struct psplit_i_node_edit {
  uint32_t node;
  const void *fields; /* fields of the GraphProto, in place of the node's */
  size_t bytes;
  bool has_view; /* they may hold payload views, which the node held */
} psplit_i_node_edit;

/* The skeleton of `model` with some nodes replaced and `fields` of the GraphProto added at its end.
 * edits[n_edits] ascend by node. What is new has file_bytes 0 in its span, and no view but those of
 * an edit that says so.
 * Errors: MALFORMED (fields that are none), LIMIT (over 2 GiB), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_skeleton_edit(const psplit_model *model,
                                                   const psplit_i_node_edit *edits, size_t n_edits,
                                                   const void *fields, size_t bytes,
                                                   psplit_diag *diag,
                                                   psplit_i_skeleton *out_skeleton);

/* Checks every tensor of the model: dims, size of the stored data, range of external data.
 * Errors: INVALID, UNSUPPORTED, IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tensors_check(psplit_model *model, psplit_diag *diag);

/* A sparse tensor of n_elements in the dense form, whose values and indices are sound tensors: an
 * index for each value, inside the tensor, ascending. Errors: INVALID. O(values). */
PSPLIT_MUST_USE psplit_code psplit_i_sparse_check(const psplit_model *model,
                                                  const Onnx__SparseTensorProto *sparse,
                                                  int64_t n_elements, psplit_diag *diag);

/* Names that the bindings of training_info speak of. Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_training_check(const psplit_model *model, psplit_diag *diag);

/* Builds model->graph and model->functions from model->nodes and model->proto.
 * Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_build(psplit_model *model, psplit_diag *diag);

#endif
