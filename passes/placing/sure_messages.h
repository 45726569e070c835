/* What messages cost stages whatever they compute again. */
#ifndef PSPLIT_PASSES_SURE_MESSAGES_H
#define PSPLIT_PASSES_SURE_MESSAGES_H

#include "builder.h"

/* Adds to `io` what each stage of a split with copies pays at least for messages, of latency_ns
 * each, besides bytes of results that nobody computes again. compute_ns[n_nodes]: what computing a
 * node takes at least. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_add_sure_messages(psplit_i_builder *b,
                                                       const int64_t *compute_ns,
                                                       int64_t latency_ns, psplit_i_charges *io);

#endif
