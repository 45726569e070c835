/* merge: the stages of a split, perhaps changed since, as one model.
 *
 *   open.c    the stages that pipeline.json names, and which values of different files are one
 *   boundary.c Send and Recv, which the split put in
 *   compare.c whether two fields say the same
 *   copies.c  nodes and weights that stand in several stages, found once
 *   names.c   what each value is called in the whole
 *   rename.c  a node or a declaration with other names in it, bodies included
 *   graph.c   the fields of the whole graph, from those of the stages
 *   model.c   what stands around the graph, likewise
 *   merge.c   where weights go, and the file
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
  psplit_i_field_spans ports; /* where its inputs and outputs stand */
  uint8_t *gone;              /* [n_nodes] boundary nodes, and copies of earlier stages' */
  psplit_i_weights weights;   /* where data of its tensors goes */
} psplit_i_merge_stage;

/* Bytes of the whole from one stage's files and memory. */
typedef struct psplit_i_segment {
  const psplit_model *model;
  psplit_i_rope rope;
} psplit_i_segment;

typedef PSPLIT_VEC(psplit_i_segment) psplit_i_segments;

/* An output of the model that is another value as well, and needs a node to be so. */
typedef struct psplit_i_merge_identity {
  uint32_t value;
  const char *name;
} psplit_i_merge_identity;

/* What compare.c works in. */
typedef struct psplit_i_comparer {
  psplit_i_text a, b;
  psplit_i_payloads payload_a, payload_b;
} psplit_i_comparer;

typedef struct psplit_i_merger {
  const char *directory;
  const psplit_merge_options *options;
  const psplit_read_options *read;
  const psplit_model *whole; /* options->model, with the Ifs replaced that the split replaced */
  psplit_model *inlined;     /* where there are some: that */
  psplit_i_manifest manifest;
  psplit_i_arena arena;
  psplit_i_merge_stage *stages; /* [manifest.n_stages] */
  uint32_t n_values;
  uint32_t *same_as;  /* [n_values] an earlier value or one of the same stage; itself: its own */
  const char **names; /* [n_values] in the whole, of those that are their own; NULL: not there */
  uint8_t *declared;  /* [n_values] a value_info of the whole speaks of it */
  uint32_t *given;    /* [manifest.n_inputs] value that is the model's input; PSPLIT_NONE */
  PSPLIT_VEC(psplit_i_merge_identity) identities;
  /* Of the domain of Send and Recv, what is the model's own: the import, and each function. */
  bool keeps_opset, keeps_function[2];
  uint64_t data_end;       /* of what was placed in the data file so far */
  psplit_i_segments graph; /* fields of the GraphProto */
  psplit_i_text scratch;
  psplit_i_comparer comparer;
  psplit_merge_report report;
  psplit_diag *diag;
} psplit_i_merger;

/* Opens the stages and joins what crosses. Errors: as psplit_merge. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_open(psplit_i_merger *m);
/* Whether field `a` of a message `owner` of model x says what b of y says: equal content, wherever
 * tensors are stored. Errors: IO, NOMEM, CANCELLED. O(bytes). */
PSPLIT_MUST_USE psplit_code psplit_i_merge_same(psplit_i_merger *m,
                                                const ProtobufCMessageDescriptor *owner,
                                                const psplit_model *x, const psplit_i_span *a,
                                                const psplit_model *y, const psplit_i_span *b,
                                                bool *out);
/* Joins what the Send and Recv nodes of stage s hand on, without these; ones that the model had
 * before it was split are nodes like others. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_boundary(psplit_i_merger *m, uint32_t s);
/* Whether an import of the domain, and function k of stage s, came with the boundary; once all
 * stages are joined. */
bool psplit_i_merge_drops_opset(const psplit_i_merger *m, const char *domain);
bool psplit_i_merge_drops_function(const psplit_i_merger *m, uint32_t s, size_t k);
void psplit_i_comparer_fini(psplit_i_comparer *comparer);
/* Joins copies. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_copies(psplit_i_merger *m);
/* Names all values. Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_names(psplit_i_merger *m);
/* graph.c: fills m->graph. Errors: INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_graph(psplit_i_merger *m);
/* model.c: the other fields of the ModelProto. Errors: UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_model(psplit_i_merger *m, psplit_i_segments *head);

/* Puts a field of stage s, n bytes in skeleton form, behind `out`, with its tensors where they
 * belong: in one data file for all stages. Errors: those of psplit_i_rewrite_field. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_rewrite(psplit_i_merger *m, uint32_t stage,
                                                   const ProtobufCMessageDescriptor *descriptor,
                                                   const void *bytes, size_t n, psplit_i_rope *out);

/* The value that a value of stage s is in the end. */
uint32_t psplit_i_merge_value(psplit_i_merger *m, uint32_t stage, uint32_t value);

/* The rope at the end of `list` for bytes of `model`; NULL when out of memory. */
psplit_i_rope *psplit_i_last_rope(psplit_i_segments *list, const psplit_model *model);
void psplit_i_segments_fini(psplit_i_segments *list);

/* Whether some name in the node of stage s is another one in the whole. */
bool psplit_i_merge_renames(psplit_i_merger *m, uint32_t stage, uint32_t node);
/* The node as a field of a GraphProto, in skeleton form, with the names of the whole; in
 * m->scratch. Errors: INTERNAL, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_node(psplit_i_merger *m, uint32_t stage, uint32_t node);
/* A message whose string field `path` (numbers of fields from the outside in, 0 at the end) is
 * `name`, as field `field`; likewise. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_named(psplit_i_merger *m, const psplit_model *model,
                                                 const psplit_i_span *span, uint32_t field,
                                                 const uint32_t *path, const char *name);
/* A quantization annotation of stage s with the names of the whole; likewise. */
PSPLIT_MUST_USE psplit_code psplit_i_merge_annotation(psplit_i_merger *m, uint32_t stage,
                                                      const psplit_i_span *span);

#endif
