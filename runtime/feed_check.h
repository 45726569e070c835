/* Names in a feed that nothing is called by. */
#ifndef PSPLIT_RUNTIME_FEED_CHECK_H
#define PSPLIT_RUNTIME_FEED_CHECK_H

#include "feed.h"
#include "pipeline.h"

/* Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_check_inputs(const psplit_feed_options *feed,
                                                       const psplit_i_pipe *pipe,
                                                       psplit_diag *diag);
/* And dimensions. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_check(const psplit_feed_options *feed,
                                                const psplit_i_pipe *pipe, psplit_diag *diag);

/* The i-th name of n_files + n_shapes; NULL: an .npz that names inputs itself. */
const char *psplit_i_feed_name(const psplit_feed_options *feed, size_t i);

#endif
