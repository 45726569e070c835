/* Internals of an open model, for onnx/ and emit/: the unpacked messages, their bytes in the file,
 * and the files of tensor data. */
#ifndef PSPLIT_ONNX_MODEL_H
#define PSPLIT_ONNX_MODEL_H

#include "base.h"
#include "graph.h"
#include "onnx.pb-c.h"
#include "skeleton.h"

/* A file tensor data is read from. Index 0 is the model file itself. */
typedef struct psplit_i_data_file {
  const char *location; /* as in the model; "" for the model file */
  const char *path;     /* relative to the working directory */
  uint64_t bytes;
  uint64_t device, inode; /* identity, so that no output is ever an input */
  int64_t modified_ns;
} psplit_i_data_file;

/* Currently open descriptors of data files, under a lock. */
typedef struct psplit_i_open_files psplit_i_open_files;

struct psplit_model {
  psplit_i_arena arena; /* messages, graphs, names */
  const char *path;     /* or, without has_path, a name for messages */
  bool has_path;
  int fd;                      /* of the model file; open while the model is */
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
  PSPLIT_VEC(uint32_t) placed_nodes; /* nodes with device configurations, ascending */
};

/* The complete message of a model or node, in `arena` or existing memory. psplit_model.proto lacks
 * the nodes of its graph, and the graph index has no messages of nodes. Errors: NOMEM,
 * MALFORMED. */
PSPLIT_MUST_USE psplit_code psplit_i_model_unpack(const psplit_model *model, psplit_i_arena *arena,
                                                  psplit_diag *diag, Onnx__ModelProto **out);
PSPLIT_MUST_USE psplit_code psplit_i_node_unpack(const psplit_i_graph *graph, uint32_t node,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 const Onnx__NodeProto **out);

/* Reads the model again from its open file, with other Ifs replaced and its previous options,
 * except `cancel` and, if not given, max_graph_bytes. Errors: as psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_model_reopen(const psplit_model *model,
                                                  const psplit_inline_if *inline_ifs,
                                                  size_t n_inline_ifs,
                                                  const psplit_read_options *options,
                                                  psplit_diag *diag, psplit_model **out_model);

/* Location of the raw bytes of a tensor: in memory, or a range of a data file. */
typedef struct psplit_i_payload {
  const uint8_t *memory; /* NULL: in `file` */
  uint32_t file;         /* index into model->files */
  uint64_t offset, bytes;
} psplit_i_payload;

/* Finds the raw bytes of a tensor stored as raw_data or external data; false for tensors in typed
 * fields, strings and empty tensors. Ranges were checked against file sizes when the model was
 * opened. */
bool psplit_i_tensor_payload(const psplit_model *model, const Onnx__TensorProto *proto,
                             psplit_i_payload *out);

/* Reads [offset, offset + bytes) of a data file. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_model_read(const psplit_model *model, uint32_t file,
                                                uint64_t offset, void *out, size_t bytes,
                                                psplit_diag *diag);

/* Checks that the files are unchanged (size and modification time). Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_model_unchanged(const psplit_model *model, psplit_diag *diag);

/* A path of a file of the model, relative to the working directory, in `buffer` of PSPLIT_I_FD_PATH
 * bytes or owned by the model; for a model without a path, that of its descriptor. */
enum { PSPLIT_I_FD_PATH = 32 };
const char *psplit_i_model_place(const psplit_model *model, uint32_t file, char *buffer);
/* Likewise the directory of its external data, malloc'd; NULL when out of memory. */
char *psplit_i_model_data_directory(const psplit_model *model);

/* The external_data entries of a tensor, parsed strictly. */
typedef struct psplit_i_external {
  const char *location;
  uint64_t offset;
  uint64_t bytes; /* as stated, or UINT64_MAX if missing */
} psplit_i_external;

/* Strings belong to the tensor. Errors: INVALID (a duplicate key, an empty entry, an invalid
 * number, no location). */
PSPLIT_MUST_USE psplit_code psplit_i_external_parse(const Onnx__TensorProto *tensor,
                                                    psplit_diag *diag, psplit_i_external *out);

struct stat;

/* Creates the entry for a file. */
psplit_i_data_file psplit_i_data_file_of(const char *location, const char *path,
                                         const struct stat *status);

/* Creates the table of descriptors of a model's data files, all closed. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_open_files_create(psplit_model *model, psplit_diag *diag);
/* Closes all; a model without the table is fine. */
void psplit_i_open_files_close(psplit_model *model);

/* Acquires a descriptor of a data file, to be released. A limited number stays open, by least
 * recent use; closed ones are reopened. Thread-safe. Errors: IO (cannot be opened, or was
 * replaced), LIMIT (too many open files). */
PSPLIT_MUST_USE psplit_code psplit_i_data_file_hold(const psplit_model *model, uint32_t file,
                                                    psplit_diag *diag, int *out_fd);
void psplit_i_data_file_release(const psplit_model *model, uint32_t file, int fd);

/* Index of the data file `location`, opened on first use: a regular file at or below the model's
 * directory, reached without `..`, and without symbolic links unless the options follow them.
 * Errors: IO, INVALID (a location that escapes, not a regular file), LIMIT (too many files),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_data_file_open(psplit_model *model, const char *location,
                                                    psplit_diag *diag, uint32_t *out_file);

/* The skeleton of `model` with an If replaced by the nodes of one branch: these take the place of
 * the If, followed by an Identity for each output that has another name in the branch; other fields
 * of the branch's graph are added to the main graph. Spans whose bytes are not contiguous in the
 * file have file_bytes 0. Strings of *out_inlined belong to the model or the choice. Errors: USAGE,
 * UNSUPPORTED, LIMIT (over 2 GiB), NOMEM; nothing to free then. */
PSPLIT_MUST_USE psplit_code psplit_i_inline_if(const psplit_model *model,
                                               const psplit_inline_if *choice, psplit_diag *diag,
                                               psplit_i_skeleton *out_skeleton,
                                               psplit_inlined *out_inlined);

/* Creates a model from another skeleton of the same, unchanged file. *skeleton is consumed, even on
 * failure. max_bytes as in psplit_read_options. Errors: as for psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_model_rebuild(const psplit_model *before,
                                                   psplit_i_skeleton *skeleton, uint64_t max_bytes,
                                                   psplit_diag *diag, psplit_model **out_model);

/* Replacement of a node. */
typedef struct psplit_i_node_edit {
  uint32_t node;
  const void *fields; /* fields of the GraphProto, in place of the node's */
  size_t bytes;
  bool has_view; /* they may contain payload views of the replaced node */
} psplit_i_node_edit;

/* The skeleton of `model` with some nodes replaced and `fields` appended to the GraphProto.
 * edits[n_edits] ascend by node. Spans of new fields have file_bytes 0, and no views unless the
 * edit says so. Errors: MALFORMED (invalid fields), LIMIT (over 2 GiB), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_skeleton_edit(const psplit_model *model,
                                                   const psplit_i_node_edit *edits, size_t n_edits,
                                                   const void *fields, size_t bytes,
                                                   psplit_diag *diag,
                                                   psplit_i_skeleton *out_skeleton);

/* Checks every tensor of the model: dims, size of the stored data, range of external data.
 * Errors: INVALID, UNSUPPORTED, IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tensors_check(psplit_model *model, psplit_diag *diag);

/* Checks a sparse tensor with n_elements in dense form, whose values and indices are valid tensors:
 * one index per value, in range, ascending. Errors: INVALID. O(values). */
PSPLIT_MUST_USE psplit_code psplit_i_sparse_check(const psplit_model *model,
                                                  const Onnx__SparseTensorProto *sparse,
                                                  int64_t n_elements, psplit_diag *diag);

/* Checks names in the bindings of training_info. Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_training_check(const psplit_model *model, psplit_diag *diag);

/* Builds model->graph and model->functions from model->nodes and model->proto.
 * Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_build(psplit_model *model, psplit_diag *diag);

#endif
