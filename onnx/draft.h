/* A skeleton on its way: the fields of its graph, one after the other, then the model that another
 * skeleton is around its own. */
#ifndef PSPLIT_ONNX_DRAFT_H
#define PSPLIT_ONNX_DRAFT_H

#include "skeleton.h"

/* Zeroed: empty. */
typedef struct psplit_i_draft {
  psplit_i_text graph;         /* contents of the GraphProto */
  psplit_i_spans graph_fields; /* offsets into `graph` */
  bool failed;                 /* out of memory, as `graph` may tell, too */
} psplit_i_draft;

/* Adds n bytes, which are one field; its place and length are set in `span`. */
void psplit_i_draft_add(psplit_i_draft *draft, const void *bytes, size_t n, psplit_i_span span);

/* Ends the draft: the model that `skeleton` is, with this graph. Errors: LIMIT (over 2 GiB),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_draft_finish(psplit_i_draft *draft,
                                                  const psplit_i_skeleton *skeleton,
                                                  psplit_diag *diag, psplit_i_skeleton *out);
/* Ends one that comes to nothing; once it is finished nothing is left to do. */
void psplit_i_draft_fini(psplit_i_draft *draft);

#endif
