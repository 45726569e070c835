/* Internal form of the options of runs (psplit/run.h). */
#ifndef PSPLIT_RUNTIME_OPTIONS_H
#define PSPLIT_RUNTIME_OPTIONS_H

#include "runtime.h"

/* `given` may be NULL. Errors: USAGE (also a shape of too many dimensions). */
PSPLIT_MUST_USE psplit_code psplit_i_take_feed(const psplit_feed_options *given, psplit_diag *diag,
                                               psplit_feed_options *out);

/* `given` may be NULL: all defaults. */
psplit_i_session_options psplit_i_take_session(const psplit_session *given);

/* What a run works with; freed after it. */
typedef struct psplit_i_run_setup {
  psplit_run_options given;
  psplit_i_run_options run;                     /* points into the rest */
  psplit_i_session_options *sessions;           /* of stages, or of all replicas */
  psplit_i_session_options *first_sessions;     /* [n_stages] of first replicas; NULL: `sessions` */
  const psplit_i_session_options **of_replicas; /* [n_stages] */
  pthread_mutex_t turn;
  atomic_bool failed;
  psplit_i_failures failures;
  psplit_delivered *delivered; /* where the caller gives none */
} psplit_i_run_setup;

/* n_stages: 0 where there is but one session, of the whole model. may_stream: false for what counts
 * its micro-batches, to which given->stream means nothing. Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_run_setup_make(const psplit_run_options *given,
                                                    uint32_t n_stages, bool may_stream,
                                                    psplit_diag *diag, psplit_i_run_setup *out);
void psplit_i_run_setup_fini(psplit_i_run_setup *setup); /* a zeroed one is fine */

#endif
