/* merge: merges the stages of a split, possibly modified, into one model.
 *
 *   open.c      opens the stages of pipeline.json, and unites values of different files
 *   boundary.c  Send and Recv nodes, which the split added
 *   compare.c   whether two fields have the same content
 *   copies.c    nodes and weights that are in several stages
 *   names.c     names of values in the merged model
 *   rename.c    a node or a declaration with other names, bodies included
 *   graph.c     fields of the merged graph, from those of the stages
 *   model.c     fields outside of the graph, likewise
 *   merge.c     placement of weights, and the file
 * Values are numbered over all stages: those of stage s follow those of stage s - 1. */
#ifndef PSPLIT_MERGE_MERGE_INTERNAL_H
#define PSPLIT_MERGE_MERGE_INTERNAL_H

#include <psplit/merge.h>

#include "canonical.h"
#include "emit.h"
#include "manifest.h"
#include "verify.h"

typedef struct psplit_i_merge_stage {
  psplit_model *model;
  const psplit_i_graph *graph;
  uint32_t first;             /* number of its value 0 */
  psplit_i_field_spans ports; /* fields of its inputs and outputs */
  uint32_t *offers;           /* of its inputs from stages: the row of the sender's outputs */
  uint8_t *gone; /* [n_nodes] removed: boundary nodes, and copies of nodes of earlier stages */
  psplit_i_weights weights; /* placement of its tensors' data */
} psplit_i_merge_stage;

/* Bytes of the merged model from one stage's files and memory. */
typedef struct psplit_i_segment {
  const psplit_model *model;
  psplit_i_rope rope;
} psplit_i_segment;

typedef PSPLIT_VEC(psplit_i_segment) psplit_i_segments;

/* An output of the model that equals another value, so that an Identity node is needed. */
typedef struct psplit_i_merge_identity {
  uint32_t value;
  const char *name;
} psplit_i_merge_identity;

/* Buffers of compare.c. */
typedef struct psplit_i_comparer {
  psplit_i_text a, b;
  psplit_i_payloads payload_a, payload_b;
} psplit_i_comparer;

typedef struct psplit_i_merger {
  const char *directory;
  const psplit_merge_options *options;
  const psplit_read_options *read;
  const psplit_model *whole; /* options->model, with the split's inlined Ifs replaced */
  psplit_model *inlined;     /* owns it, if there are inlined Ifs */
  psplit_i_manifest manifest;
  psplit_i_arena arena;
  psplit_i_merge_stage *stages; /* [manifest.n_stages] */
  uint32_t n_values;
  uint32_t *same_as;  /* [n_values] union-find over equal values; itself: a representative */
  const char **names; /* [n_values] names of representatives in the merged model; NULL: not in it */
  uint8_t *declared;  /* [n_values] it has a value_info already */
  uint32_t *given;    /* [manifest.n_inputs] the value of the model's input, or PSPLIT_NONE */
  PSPLIT_VEC(psplit_i_merge_identity) identities;
  /* Which parts of the domain of Send and Recv are the model's own: the import, and each
   * function. */
  bool keeps_opset, keeps_function[2];
  uint64_t data_end;       /* end of the data placed so far */
  psplit_i_segments graph; /* fields of the GraphProto */
  psplit_i_text scratch;
  psplit_i_comparer comparer;
  psplit_merge_report report;
  psplit_diag *diag;
} psplit_i_merger;

/* Opens the stages and unites transferred values. Errors: as psplit_merge. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_open(psplit_i_merger *m);
/* Whether field `a` of a message `owner` of model x has the same content as b of y, regardless of
 * where tensors are stored. Errors: IO, NOMEM, CANCELLED. O(bytes). */
PSPLIT_MUST_USE psplit_code psplit_i_merge_same(psplit_i_merger *m,
                                                const ProtobufCMessageDescriptor *owner,
                                                const psplit_model *x, const psplit_i_span *a,
                                                const psplit_model *y, const psplit_i_span *b,
                                                bool *out);
/* Notes what the original model has of the domain of Send and Recv, which remains; nothing if the
 * model is not given. */
void psplit_i_merge_keep_of_model(psplit_i_merger *m);
/* Unites inputs and outputs of the Send and Recv nodes of stage s, and removes these; ones that the
 * original model had are ordinary nodes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_boundary(psplit_i_merger *m, uint32_t s);
/* Whether an import of the domain, or function k of stage s, was added by the split; valid after
 * all stages are united. */
bool psplit_i_merge_drops_opset(const psplit_i_merger *m, const char *domain);
bool psplit_i_merge_drops_function(const psplit_i_merger *m, uint32_t s, size_t k);
void psplit_i_comparer_fini(psplit_i_comparer *comparer);
/* Unites the values of copies of nodes and weights. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_copies(psplit_i_merger *m);
/* Names all values. Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_names(psplit_i_merger *m);
/* graph.c: fills m->graph. Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_graph(psplit_i_merger *m);
/* model.c: the other fields of the ModelProto. Errors: UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_model(psplit_i_merger *m, psplit_i_segments *head);

/* Appends a field of stage s, n bytes in skeleton form, to `out`, with tensors moved to the common
 * data file. Errors: those of psplit_i_rewrite_field. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_rewrite(psplit_i_merger *m, uint32_t stage,
                                                   const ProtobufCMessageDescriptor *descriptor,
                                                   const void *bytes, size_t n, psplit_i_rope *out);

/* The representative of a value of stage s. */
uint32_t psplit_i_merge_value(psplit_i_merger *m, uint32_t stage, uint32_t value);

/* The rope at the end of `list` for bytes of `model`; NULL when out of memory. */
psplit_i_rope *psplit_i_last_rope(psplit_i_segments *list, const psplit_model *model);
void psplit_i_segments_fini(psplit_i_segments *list);

/* Whether some name in the node of stage s differs in the merged model. */
bool psplit_i_merge_renames(psplit_i_merger *m, uint32_t stage, uint32_t node);
/* Writes the node as a field of a GraphProto, in skeleton form, with the names of the merged model,
 * to m->scratch. Errors: INTERNAL, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_node(psplit_i_merger *m, uint32_t stage, uint32_t node);
/* Likewise a message, as field `field`, with its string field `path` (field numbers from the
 * outside in, 0 at the end) replaced by `name`. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_named(psplit_i_merger *m, const psplit_model *model,
                                                 const psplit_i_span *span, uint32_t field,
                                                 const uint32_t *path, const char *name);
/* Likewise a quantization annotation of stage s, with the names of the merged model. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_annotation(psplit_i_merger *m, uint32_t stage,
                                                      const psplit_i_span *span);

#endif
