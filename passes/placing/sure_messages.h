/* The cost of messages that stages pay in any case, even with copies. */
#ifndef PSPLIT_PASSES_SURE_MESSAGES_H
#define PSPLIT_PASSES_SURE_MESSAGES_H

#include "builder.h"

/* Adds to `io` a lower bound on the cost of messages, of latency_ns each, that each stage of a
 * split with copies pays in addition to the bytes of results that are not copied.
 * compute_ns[n_nodes] is a lower bound on the time to compute a node. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_add_sure_messages(psplit_i_builder *b,
                                                       const int64_t *compute_ns,
                                                       int64_t latency_ns, psplit_i_charges *io);

#endif
