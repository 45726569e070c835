/* Checking a feed against its pipeline. */
#ifndef PSPLIT_RUNTIME_FEED_CHECK_H
#define PSPLIT_RUNTIME_FEED_CHECK_H

#include "feed.h"
#include "pipeline.h"

/* What pipeline.json says of an input, as a session would. */
void psplit_i_declared_port(const psplit_i_manifest_value *value, psplit_i_session_port *out);

/* Before a pipeline is fed: looks for names of inputs that it does not have, and what its inputs
 * say of sequences. Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_meet_inputs(psplit_i_feed_options *feed,
                                                      const psplit_i_pipe *pipe, psplit_diag *diag);
/* And of dimensions. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_meet(psplit_i_feed_options *feed,
                                               const psplit_i_pipe *pipe, psplit_diag *diag);

/* The names of inputs in a feed; NULL: an .npz that names inputs itself. */
size_t psplit_i_feed_n_names(const psplit_feed_options *feed);
const char *psplit_i_feed_name(const psplit_feed_options *feed, size_t i);

#endif
