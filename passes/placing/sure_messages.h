/* The cost of messages that stages pay in any case, even with copies. */
#ifndef PSPLIT_PASSES_SURE_MESSAGES_H
#define PSPLIT_PASSES_SURE_MESSAGES_H

#include "copy_charges.h"

/* Adds to `io` a lower bound on the cost of messages that each stage of this kind of a split with
 * copies pays in addition to the bytes of results that are not copied. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_add_sure_messages(psplit_i_builder *b,
                                                       const psplit_i_copy_costs *costs,
                                                       uint32_t kind, psplit_i_charges *io);

#endif
