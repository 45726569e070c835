/* Graphs that were made here in the operator set of a model that they are to stand in. */
#ifndef PSPLIT_GRADIENT_OPSETS_H
#define PSPLIT_GRADIENT_OPSETS_H

#include "backward.h"

/* The opset that rules write, and the first one that their nodes can be said in. */
enum { PSPLIT_RULE_OPSET = 18, PSPLIT_FIRST_RULE_OPSET = 13 };

/* Changes living nodes to what they are in `opset`: reductions had their axes as an attribute
 * before 18. Later ones than 18 take the nodes as they are. what: for the message. Errors:
 * UNSUPPORTED (a node that the opset does not have: the message names it), NOMEM. O(nodes). */
PSPLIT_MUST_USE psplit_code psplit_i_fit_opset(psplit_i_backward *b, int64_t opset,
                                               const char *what, psplit_diag *diag);

/* That a node of an operator of ONNX's is that operator in this model. Errors: UNSUPPORTED. */
PSPLIT_MUST_USE psplit_code psplit_i_check_operators(const psplit_model *model, psplit_diag *diag);

#endif
