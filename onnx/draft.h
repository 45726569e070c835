/* A skeleton under construction: the fields of its graph are added in order, and then combined with
 * the other fields of an existing skeleton. */
#ifndef PSPLIT_ONNX_DRAFT_H
#define PSPLIT_ONNX_DRAFT_H

#include "skeleton.h"

/* Zeroed: empty. */
typedef struct psplit_i_draft {
  psplit_i_text graph;         /* contents of the GraphProto */
  psplit_i_spans graph_fields; /* offsets into `graph` */
  bool failed;                 /* out of memory; see also graph.failed */
} psplit_i_draft;

/* Adds one field of n bytes; its offset and length are set in `span`. */
void psplit_i_draft_add(psplit_i_draft *draft, const void *bytes, size_t n, psplit_i_span span);

/* Completes the draft: `skeleton` with this graph. Errors: LIMIT (over 2 GiB), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_draft_finish(psplit_i_draft *draft,
                                                  const psplit_i_skeleton *skeleton,
                                                  psplit_diag *diag, psplit_i_skeleton *out);
/* Frees an unfinished draft; no effect after psplit_i_draft_finish. */
void psplit_i_draft_fini(psplit_i_draft *draft);

#endif
